"""Arrays of NumPy and of torch, on any device, behind one small set of operations.

The first operand of a call decides where scores are computed: on the device of a tensor, or in main memory, where NumPy
does the work for tensors too. A second operand is brought there, documents block by block. torch is used only if the
user has imported it. Types that NumPy does not have (bfloat16, float8) come from ml_dtypes, which is not needed here
either: an array brings its type along.
"""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from tiewise.errors import InputError, TiewiseWarning, counted

__all__ = [
    "Array",
    "Library",
    "Numpy",
    "Torch",
    "finfo",
    "is_integer",
    "is_low",
    "library_of",
    "scoring_library",
    "such_rows",
    "whole",
]

Array = Any  # a NumPy array or a torch tensor

#: Names of floating types that hold less than float32 does, with their beginnings; torch and ml_dtypes share them.
LOW = ("bfloat16", "float16", "float8_", "float6_", "float4_")
INTEGERS = ("bool", "int", "uint")

#: Types of torch that hold less than a byte and have no arithmetic.
PACKED = {f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)}

#: So many numbers are copied from a device sooner than it says something about them.
FEW = 2**14


class Numpy:
    """Arrays in main memory, and the operations that `Torch` has too."""

    xp: Any = np
    on_device = False  # whether arrays lie in a memory of their own

    def array(self, given: Any, what: str) -> Array:
        """Whatever was given as an array of numbers."""
        tensor = _tensor(given)
        if tensor is not None:
            return _numpy_of(_checked_tensor(tensor, what))
        return _host_array(given, what)

    def here(self, array: Array) -> Array:
        """Rows brought to this library and device."""
        return self.array(array, "vectors")

    def index(self, rows: Any) -> Any:
        """Rows, a slice or positions, as this library indexes with them."""
        return rows

    def name(self, dtype: Any) -> str:
        """The name of a type."""
        return str(np.dtype(dtype).name)

    def dtype(self, name: str) -> Any:
        """A type from its name."""
        return np.dtype(name)

    def cast(self, array: Array, dtype: Any) -> Array:
        """The array in another type, rounded to nearest; what a type cannot hold becomes what the type says."""
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(dtype, copy=False)

    def lies_here(self, array: Array) -> bool:
        """Whether an array need not be brought to this library and device."""
        return isinstance(array, np.ndarray)

    def finite(self, array: Array) -> bool:
        """Whether all of it are finite numbers."""
        if array.dtype.name.startswith(LOW) and array.dtype != np.float16:  # types that NumPy lacks
            array = array.astype(np.float32)
        return not array.size or bool(np.isfinite(array.min()) and np.isfinite(array.max()))

    def zeros(self, shape: Sequence[int], dtype: Any) -> Array:
        """An array of zeros."""
        return np.zeros(shape, dtype)

    def integers(self, values: Any) -> Array:
        """Positions as an array of the library."""
        return np.asarray(values, dtype=np.int64)

    def joined(self, parts: Sequence[Array], axis: int = 0) -> Array:
        """Arrays one after another."""
        return np.concatenate(parts, axis=axis)

    def host(self, array: Array) -> Any:
        """The array in main memory, as NumPy."""
        return array


class Torch(Numpy):
    """Tensors on one device."""

    query_tile, doc_tile, block = 256, 65_536, 131_072
    held = 2**32  # bytes of scores that `tie_groups` holds at once

    def __init__(self, device: Any):
        self.xp = self.torch = sys.modules["torch"]
        self.device = device
        self.on_device = device.type != "cpu"

    def array(self, given: Any, what: str) -> Array:
        """Whatever was given as a tensor, where it lies."""
        tensor = _tensor(given)
        if tensor is None:
            tensor = _tensor_of(self.torch, _host_array(given, what))
        return _checked_tensor(tensor, what)

    def here(self, array: Array) -> Array:
        """Rows brought to this device."""
        found = self.array(array, "vectors")
        return found if found.device == self.device else found.to(self.device)

    def index(self, rows: Any) -> Any:
        """Rows, a slice or positions, as torch indexes with them."""
        return rows if isinstance(rows, slice) else self.torch.from_numpy(np.asarray(rows, dtype=np.int64))

    def name(self, dtype: Any) -> str:
        """The name of a type."""
        return _name_in_torch(dtype)

    def dtype(self, name: str) -> Any:
        """A type from its name."""
        return getattr(self.torch, name)

    def cast(self, array: Array, dtype: Any) -> Array:
        """The tensor in another type."""
        return array if array.dtype == dtype else array.to(dtype)

    def product(self, a: Array, b: Array) -> Array:
        """All dot products of the rows of two matrices; bfloat16 and float16 come out in float32 where they can."""
        if self.multiplies(a.dtype):
            return self.torch.mm(a, b.T, out_dtype=self.torch.float32)
        return self.torch.mm(a, b.T)

    def product_into(self, room: Array, a: Array, b: Array) -> bool:
        """Write all dot products where they belong, if the device can."""
        if a.dtype != b.dtype or not self.writes(a.dtype, room.dtype):
            return False
        if room.dtype != a.dtype:
            self.torch.mm(a, b.T, out_dtype=room.dtype, out=room)
        else:
            self.torch.mm(a, b.T, out=room)
        return True

    def writes(self, dtype: Any, held: Any) -> bool:
        """Whether the device writes products of a type, float32 of bfloat16 and float16 among them."""
        wide = self.multiplies(dtype) and held == self.torch.float32
        return self.device.type == "cuda" and bool(wide or held == dtype)

    def lies_here(self, array: Array) -> bool:
        """Whether a tensor is on this device."""
        return _tensor(array) is not None and array.device == self.device

    def finite(self, array: Array) -> bool:
        """Whether all of it are finite numbers, found in one reading: where it lies, or on the host if it is small."""
        if not array.numel():
            return True
        if array.numel() <= FEW:
            return bool(np.isfinite(self.host(array)).all())
        low, high = self.torch.aminmax(array.float() if array.dtype.itemsize <= 2 else array)
        return float(low * 0 + high * 0) == 0  # anything else times 0 is NaN

    def same(self, a: Array, b: Array) -> bool:
        """Whether two tensors are equal throughout, NaN to NaN."""
        return bool(((a == b) | ((a != a) & (b != b))).all())

    def contiguous(self, array: Array) -> bool:
        """Whether its rows lie one after another, with nothing between."""
        return bool(array.is_contiguous())

    def steady_alone(self) -> bool:
        """Whether the product of a single row does not depend on the place of a row of the other matrix (cuBLAS)."""
        return bool(self.device.type == "cuda")

    def norms(self, x: Array, dtype: Any) -> Array:
        """The Euclidean norm of each row, with no wider copy of the rows where torch knows their type."""
        if not self.multiplies(x.dtype):
            x = self.cast(x, dtype)
        return self.torch.linalg.vector_norm(x, dim=-1, dtype=dtype)

    def fuses(self, a: str, b: str) -> bool:
        """Whether the device multiplies in a low precision and adds up, and answers, in float32."""
        if self.device.type != "cuda" or a != b or a not in ("bfloat16", "float16"):
            return False
        return _has_wide_output(self.torch, self.device)

    def own_product(self, a: Array, b: Array) -> Array | None:
        """The product in the tensors' own type, if torch has one."""
        return self.torch.mm(a, b.T) if a.dtype == b.dtype and self.multiplies(a.dtype) else None

    def multiplies(self, dtype: Any) -> bool:
        """Whether torch multiplies matrices of a low precision as they are."""
        return dtype in (self.torch.bfloat16, self.torch.float16)

    def zeros(self, shape: Sequence[int], dtype: Any) -> Array:
        """A tensor of zeros."""
        return self.torch.zeros(tuple(shape), dtype=dtype, device=self.device)

    def empty(self, shape: Sequence[int], dtype: Any) -> Array:
        """A tensor still to be filled."""
        return self.torch.empty(tuple(shape), dtype=dtype, device=self.device)

    def integers(self, values: Any) -> Array:
        """Positions as a tensor; nobody waits for the device to take them."""
        tensor = self.torch.from_numpy(np.array(values, dtype=np.int64))
        return tensor.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else tensor

    def beside(self, values: Any) -> Array:
        """Positions as a tensor: what the device is asked for next waits for them, but they wait for nothing."""
        if self.device.type != "cuda":
            return self.integers(values)
        with self.ahead():
            found = self.integers(values)
        here = self.torch.cuda.current_stream(self.device)
        here.wait_stream(_express(self.torch, self.device))
        found.record_stream(here)
        return found

    def largest(self, scores: Array, k: int) -> Array:
        """The k largest values of each row."""
        return scores if scores.shape[1] <= k else self.torch.topk(scores, k, dim=1, sorted=False).values

    def where(self, mask: Array) -> tuple[Array, Array]:
        """The rows and columns of what is set."""
        rows, columns = self.torch.nonzero(mask, as_tuple=True)
        return rows, columns

    def joined(self, parts: Sequence[Array], axis: int = 0) -> Array:
        """Tensors one after another."""
        return self.torch.cat(list(parts), dim=axis)

    def host(self, array: Array) -> Any:
        """The tensor in main memory, as NumPy."""
        return _numpy_of(array.cpu())

    def soon(self, array: Array) -> Callable[[], Any]:
        """Begin to copy a tensor to main memory; what waits for it gives it as NumPy."""
        if self.device.type != "cuda":
            return lambda: self.host(array)
        there = self.torch.empty(array.shape, dtype=array.dtype, pin_memory=True)
        there.copy_(array, non_blocking=True)
        done = self.torch.cuda.Event()
        done.record()

        def wait() -> Any:
            done.synchronize()
            return there.numpy().copy()

        return wait

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Work that overtakes what the device has been asked for; it may only use what has already arrived."""
        if self.device.type != "cuda":
            yield
            return
        with self.torch.cuda.stream(_express(self.torch, self.device)):
            yield


Library = Numpy


def library_of(array: Any) -> Library:
    """The library and the device of an array; lists and whatever else NumPy understands are NumPy's."""
    tensor = _tensor(array)
    return Numpy() if tensor is None else Torch(tensor.device)


def scoring_library(array: Any) -> Library:
    """The library that computes scores for a first operand: torch on a device, NumPy in main memory."""
    lib = library_of(array)
    return lib if lib.on_device else Numpy()


def finfo(dtype: Any) -> Any:
    """What is known of a floating type: eps, smallest_normal, max."""
    if _tensor_type(dtype):
        return sys.modules["torch"].finfo(dtype)
    if np.dtype(dtype).name in ("float16", "float32", "float64"):
        return np.finfo(dtype)
    return sys.modules["ml_dtypes"].finfo(dtype)


def _tensor_type(dtype: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(dtype, getattr(torch, "dtype", ()))


def is_low(name: str) -> bool:
    """Whether a type holds less than float32.

    >>> is_low("bfloat16"), is_low("float8_e4m3fn"), is_low("float32")
    (True, True, False)
    """
    return name.startswith(LOW)


def is_integer(name: str) -> bool:
    """Whether a type holds whole numbers."""
    return name.startswith(INTEGERS)


def whole(value: Any) -> int | None:
    """A whole number of whatever kind, NumPy's among them; None for anything else, truth values too.

    >>> whole(np.int64(3)), whole(3.0), whole(True)
    (3, None, None)
    """
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def such_rows(count: int) -> str:
    """How many rows have a fault, for a message.

    >>> such_rows(1), such_rows(1200)
    ('1 such row', '1,200 such rows')
    """
    return counted(count, "such row")


def _host_array(given: Any, what: str) -> Any:
    """Whatever NumPy understands as an array of numbers."""
    try:
        array = np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"The {what} make no array: are their rows of different lengths, or tensors that are not stacked? "
            f"({reason})"
        ) from error
    _check_numeric(array.dtype.name, what)
    return array


def _tensor(given: Any) -> Any:
    """The tensor that was given, None if it is none."""
    torch = sys.modules.get("torch")
    return given if torch is not None and isinstance(given, getattr(torch, "Tensor", ())) else None


def _checked_tensor(tensor: Any, what: str) -> Any:
    """A dense tensor with values, cut off from its history."""
    torch = sys.modules["torch"]
    if tensor.is_nested:
        raise InputError(f"The {what} are a nested tensor. Pad them to one length and give a mask.")
    if tensor.layout != torch.strided:
        raise InputError(f"The {what} are a sparse tensor ({tensor.layout}). Give dense vectors: .to_dense().")
    if tensor.is_meta or hasattr(tensor, "fake_mode"):
        raise InputError(f"The {what} are on the meta device, or fake, and have no values. Load them first.")
    if tensor.is_quantized:
        raise InputError(f"The {what} are a quantised tensor of torch. Give .dequantize(), or scoring.quantize(...).")
    name = _name_in_torch(tensor.dtype)
    _check_numeric("packed " + name if name in PACKED or name.endswith("_x2") else name, what)
    return tensor.detach().resolve_neg() if tensor.requires_grad or tensor.is_neg() else tensor


def _check_numeric(name: str, what: str) -> None:
    if not (name in ("float32", "float64") or is_low(name) or is_integer(name)):
        raise InputError(f"The {what} are of type {name}, in which no score can be computed. Give real numbers.")


def _numpy_of(tensor: Any) -> Any:
    """A tensor as a NumPy array in main memory; types that NumPy lacks come out as float32, which holds them."""
    name, tensor = _name_in_torch(tensor.dtype), tensor.cpu()
    return tensor.float().numpy() if is_low(name) and name != "float16" else tensor.numpy()


def _tensor_of(torch: Any, array: Any) -> Any:
    """A NumPy array as a tensor, ml_dtypes' types bit for bit."""
    name = array.dtype.name
    if is_low(name) and name != "float16":
        bits = array.view(np.int16 if array.dtype.itemsize == 2 else np.uint8)
        return torch.from_numpy(np.ascontiguousarray(bits)).view(getattr(torch, name))
    if not array.flags.writeable:  # torch warns of what it cannot write to, though nothing here writes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return torch.from_numpy(array)
    return torch.from_numpy(array)


@cache
def _name_in_torch(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


@cache
def _express(torch: Any, device: Any) -> Any:
    """A stream of a device that goes before others."""
    return torch.cuda.Stream(device, priority=-1)


_wide: dict[Any, bool] = {}


def _has_wide_output(torch: Any, device: Any) -> bool:
    """Whether `torch.mm` takes `out_dtype` on a device; where it does not, that is said once."""
    if device not in _wide:
        one = torch.ones((16, 16), dtype=torch.bfloat16, device=device)
        try:
            torch.mm(one, one, out_dtype=torch.float32)
            _wide[device] = True
        except (TypeError, RuntimeError, NotImplementedError):
            _wide[device] = False
            warnings.warn(
                f"This torch ({torch.__version__}) has no float32 output of low-precision products on {device}. "
                "Documents are widened block by block instead, which is exact but several times slower.",
                TiewiseWarning,
                stacklevel=2,
            )
    return _wide[device]
