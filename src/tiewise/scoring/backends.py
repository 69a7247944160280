"""NumPy arrays and torch tensors behind one small set of operations.

The first operand of a call decides where scores are computed: a tensor on a GPU is scored there, everything else in
main memory by NumPy. The second operand is brought there; documents block by block. torch is used only if the user has
imported it. Types that NumPy does not have (bfloat16, float8) come from ml_dtypes; an array brings its type along, so
nothing is imported for them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tiewise.errors import InputError, TiewiseWarning, first_line
from tiewise.results.optional import need
from tiewise.results.wording import count_noun
from tiewise.scoring.spans import Indices, Rows, numbers_of

Array: TypeAlias = Any  # a NumPy array or a torch tensor

#: How the names begin of floating-point types with less precision than float32, in torch and ml_dtypes.
LOW_PRECISION = ("bfloat16", "float16", "float8_", "float6_", "float4_")
INTEGERS = ("bool", "int", "uint")

#: Types of torch that are smaller than a byte and have no arithmetic.
SUB_BYTE = {f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)}

#: An array of at most this size is copied from a device to be checked; that is faster than checking it there.
SMALL_ARRAY = 2**14


class NumpyBackend:
    """Arrays in main memory, and the operations that `TorchBackend` has too."""

    xp: Any = np
    device: Any = None  # of torch
    on_device = False  # whether arrays are in the memory of another device

    def as_array(self, given: Any, what: str) -> Array:
        """The given object as an array of numbers; `what` names it in messages."""
        tensor = _as_tensor(given)
        if tensor is not None:
            return _tensor_to_numpy(_check_tensor(tensor, what))
        return _as_numpy(given, what)

    def to_device(self, array: Array) -> Array:
        """The array in this library and on this device."""
        return self.as_array(array, "vectors")

    def as_index(self, rows: Any) -> Any:
        """Rows (a slice or indices) as this library indexes with them."""
        return rows

    def has_room(self, nbytes: int) -> bool:
        """Whether documents of a size should be copied to this device."""
        return False

    def dtype(self, name: str) -> Any:
        """A type by name."""
        return np.dtype(name)

    def cast(self, array: Array, dtype: Any) -> Array:
        """The array in another type, rounded to nearest."""
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(dtype, copy=False)

    def all_finite(self, array: Array) -> bool:
        """Whether no element is NaN or infinite."""
        if array.dtype.name.startswith(LOW_PRECISION) and array.dtype != np.float16:  # types that NumPy does not have
            array = array.astype(np.float32)
        return not array.size or bool(np.isfinite(array.min()) and np.isfinite(array.max()))

    def rows_not_finite(self, array: Array) -> Indices:
        """The rows that hold NaN or infinity."""
        wide = self.cast(array, self.dtype("float64"))
        return self.to_numpy(~self.xp.isfinite(wide.reshape(wide.shape[0] if wide.ndim else 1, -1)).all(1)).nonzero()[0]

    def zeros(self, shape: Sequence[int], dtype: Any) -> Array:
        """An array of zeros."""
        return np.zeros(shape, dtype)

    def as_indices(self, values: Any) -> Array:
        """Indices as an array of this library."""
        return np.asarray(values, dtype=np.int64)

    def to_numpy(self, array: Array) -> Any:
        """The array in main memory, as NumPy."""
        return array

    def sort_descending(self, matrix: Array) -> tuple[Array, Array]:
        """The rows in descending order, and the places where their elements were; equal ones keep their order."""
        last = matrix.shape[1] - 1
        order = last - np.argsort(matrix[:, ::-1], axis=1, kind="stable")[:, ::-1]
        return np.take_along_axis(matrix, order, 1), order

    def take_along_rows(self, matrix: Array, places: Array) -> Array:
        """Elements of each row."""
        return np.take_along_axis(matrix, places, 1)

    def flat_nonzero(self, array: Array) -> Array:
        """The places of the elements that are not 0, in the flattened array."""
        return np.flatnonzero(array)


class TorchBackend(NumpyBackend):
    """Tensors on one device."""

    query_tile, doc_tile, block = 256, 65_536, 131_072
    score_memory = 2**32  # bytes of scores that `tie_groups` keeps at a time
    large_memory = 2**36  # on a device with this many bytes, it keeps twice as many

    def __init__(self, device: Any):
        self.xp = self.torch = sys.modules["torch"]
        self.device = device
        self.on_device = device.type != "cpu"
        self.is_cuda = device.type == "cuda"
        if self.is_cuda:
            self.query_tile *= 2
            if _device_memory(self.torch, device) >= self.large_memory:
                self.score_memory *= 2

    def as_array(self, given: Any, what: str) -> Array:
        """The given object as a tensor, on the device where it is."""
        tensor = _as_tensor(given)
        if tensor is None:
            tensor = _numpy_to_tensor(self.torch, _as_numpy(given, what))
        return _check_tensor(tensor, what)

    def to_device(self, array: Array) -> Array:
        """The tensor on this device."""
        tensor = self.as_array(array, "vectors")
        return tensor if tensor.device == self.device else tensor.to(self.device)

    def as_index(self, rows: Any) -> Any:
        """Rows (a slice or indices) as torch indexes with them."""
        return rows if isinstance(rows, slice) else self.torch.from_numpy(np.asarray(rows, dtype=np.int64))

    def has_room(self, nbytes: int) -> bool:
        """Whether documents of a size fit into two thirds of the free memory of the device, and scores beside them."""
        if not self.is_cuda:
            return self.on_device
        return 3 * nbytes < 2 * int(self.torch.cuda.mem_get_info(self.device)[0])

    def dtype(self, name: str) -> Any:
        """A type by name."""
        return getattr(self.torch, name)

    def cast(self, array: Array, dtype: Any) -> Array:
        """The tensor in another type."""
        return array if array.dtype == dtype else array.to(dtype)

    # -- products -----------------------------------------------------------------------------------------------------

    def product(self, a: Array, b: Array) -> Array:
        """All dot products of the rows of two matrices; those of bfloat16 and float16 come out in float32."""
        if self.supports_matmul(a.dtype):
            return self.torch.mm(a, b.T, out_dtype=self.torch.float32)
        return self.torch.mm(a, b.T)

    def product_into(self, out: Array, a: Array, b: Array) -> bool:
        """Write all dot products into `out`, if the device can; otherwise return False."""
        if a.dtype != b.dtype or not self.can_write_product(a.dtype, out.dtype):
            return False
        if out.dtype != a.dtype:
            self.torch.mm(a, b.T, out_dtype=out.dtype, out=out)
        else:
            self.torch.mm(a, b.T, out=out)
        return True

    def can_write_product(self, dtype: Any, out_dtype: Any) -> bool:
        """Whether the device writes products of a type into memory of another one (float32 for low precision)."""
        wide = self.supports_matmul(dtype) and out_dtype == self.torch.float32
        return self.is_cuda and bool(wide or out_dtype == dtype)

    def has_float32_output(self, a: str, b: str) -> bool:
        """Whether the device multiplies two low-precision types as they are, and adds and returns float32."""
        if not self.is_cuda or a != b or a not in ("bfloat16", "float16"):
            return False
        return _has_float32_output(self.torch, self.device)

    def supports_matmul(self, dtype: Any) -> bool:
        """Whether torch multiplies matrices of this low-precision type."""
        return dtype in (self.torch.bfloat16, self.torch.float16)

    # -- arrays -------------------------------------------------------------------------------------------------------

    def all_finite(self, array: Array) -> bool:
        """Whether no element is NaN or infinite, found in one pass over the data."""
        if not array.numel():
            return True
        if array.numel() <= SMALL_ARRAY:
            return bool(np.isfinite(self.to_numpy(array)).all())
        low, high = self.torch.aminmax(array.float() if array.dtype.itemsize <= 2 else array)
        return float(low * 0 + high * 0) == 0  # NaN and infinity times 0 are NaN

    def zeros(self, shape: Sequence[int], dtype: Any) -> Array:
        """A tensor of zeros."""
        return self.torch.zeros(tuple(shape), dtype=dtype, device=self.device)

    def empty(self, shape: Sequence[int], dtype: Any) -> Array:
        """A tensor without values yet."""
        return self.torch.empty(tuple(shape), dtype=dtype, device=self.device)

    # -- transfers ----------------------------------------------------------------------------------------------------

    def as_indices(self, values: Any) -> Array:
        """Indices as a tensor, copied without waiting for the device."""
        return self.copy_async(np.asarray(values, dtype=np.int64))

    def copy_async(self, values: NDArray[Any]) -> Array:
        """A NumPy array as a tensor, copied without waiting for the device."""
        tensor = self.torch.empty(values.shape, dtype=self.dtype(values.dtype.name), pin_memory=self.is_cuda)
        tensor.numpy()[...] = values  # torch would use several threads, which have to wake up
        return tensor.to(self.device, non_blocking=True)

    def to_numpy(self, array: Array) -> Any:
        """The tensor in main memory, as NumPy."""
        return _tensor_to_numpy(array.cpu())

    def sort_descending(self, matrix: Array) -> tuple[Array, Array]:
        """The rows in descending order, and the places where their elements were; equal ones keep their order."""
        return tuple(matrix.sort(dim=1, descending=True, stable=True))

    def take_along_rows(self, matrix: Array, places: Array) -> Array:
        """Elements of each row."""
        return matrix.gather(1, places)

    def flat_nonzero(self, array: Array) -> Array:
        """The places of the elements that are not 0, in the flattened tensor."""
        return array.reshape(-1).nonzero()[:, 0]

    def to_numpy_async(self, array: Array) -> Callable[[], Any]:
        """Start to copy a tensor to main memory; the result waits for the copy and returns it."""
        if not self.is_cuda:
            return lambda: self.to_numpy(array)
        pinned = self.torch.empty(array.shape, dtype=array.dtype, pin_memory=True)
        pinned.copy_(array, non_blocking=True)
        done = self.torch.cuda.Event()
        done.record()

        def wait() -> Any:
            done.synchronize()
            return pinned.numpy()

        return wait

    @contextmanager
    def side_stream(self) -> Iterator[None]:
        """Run work ahead of what is queued on the device; it may use only results that are already there."""
        if not self.is_cuda:
            yield
            return
        with self.torch.cuda.stream(_priority_stream(self.torch, self.device)):
            yield


Backend = NumpyBackend


def backend_of(array: Any) -> Backend:
    """The library and the device of an array. Lists and similar objects belong to NumPy."""
    tensor = _as_tensor(array)
    return NumpyBackend() if tensor is None else TorchBackend(tensor.device)


def scoring_backend(backend: Backend) -> Backend:
    """The backend that computes scores for arrays of a backend: torch on a device, NumPy in main memory."""
    return backend if backend.on_device else NumpyBackend()


def device_backend(device: Any) -> Backend:
    """The backend that computes scores on a device of torch, which is imported for it."""
    torch = need("torch", "Scoring on a device", "torch")
    try:
        place = torch.empty(0, device=device).device  # "cuda" is the current one of several devices
    except (RuntimeError, TypeError, AssertionError) as error:
        problem = f"There is no device {device!r} ({first_line(error)})"
        raise InputError(f"{problem}. Use 'cpu', 'cuda' or 'cuda:0'.") from None
    return scoring_backend(TorchBackend(place))


@cache
def dtype_name(dtype: Any) -> str:
    """The name of a type of NumPy or torch."""
    return getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")


def is_low_precision(name: str) -> bool:
    """Whether a floating-point type has less precision than float32.

    >>> is_low_precision("bfloat16"), is_low_precision("float8_e4m3fn"), is_low_precision("float32")
    (True, True, False)
    """
    return name.startswith(LOW_PRECISION)


def is_integer(name: str) -> bool:
    """Whether a type holds integers or truth values."""
    return name.startswith(INTEGERS)


def not_finite_error(what: str, bad: Indices, rows: Rows | None = None, advice: str = "") -> InputError:
    """The error for rows that hold NaN or infinity; `bad` are positions among `rows`, if these are some of all rows."""
    first = bad[0] if rows is None else numbers_of(rows, bad[0])
    where = "" if rows is None else " in this block"
    return InputError(
        f"Row {int(first)} of the {what} holds NaN or infinity ({count_noun(len(bad), 'such row')}{where}).{advice}"
    )


# -- conversion -------------------------------------------------------------------------------------------------------


def _as_numpy(given: Any, what: str) -> Any:
    """The given object as a NumPy array of numbers."""
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise InputError(f"The {what} are a masked array, whose mask is not read. Give its data, without the masked.")
    try:
        array = np.asarray(given)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"The {what} do not form an array: do their rows have different lengths, or are they tensors that are not "
            f"stacked? ({reason})"
        ) from error
    check_numeric(array.dtype.name, what)
    return array


def _as_tensor(given: Any) -> Any:
    """The given object if it is a tensor, else None."""
    torch = sys.modules.get("torch")
    return given if torch is not None and isinstance(given, getattr(torch, "Tensor", ())) else None


def _check_tensor(tensor: Any, what: str) -> Any:
    """The tensor without its gradient, if it is dense and has values."""
    torch = sys.modules["torch"]
    if tensor.is_nested:
        raise InputError(f"The {what} are a nested tensor. Pad them to one length and give a mask.")
    if tensor.layout != torch.strided:
        raise InputError(f"The {what} are a sparse tensor ({tensor.layout}). Give dense vectors: .to_dense().")
    if tensor.is_meta or hasattr(tensor, "fake_mode"):
        raise InputError(f"The {what} are on the meta device, or fake, and have no values. Load them first.")
    if tensor.is_quantized:
        raise InputError(f"The {what} are a quantised tensor of torch. Give .dequantize(), or scoring.quantize(...).")
    name = dtype_name(tensor.dtype)
    check_numeric("packed " + name if name in SUB_BYTE or name.endswith("_x2") else name, what)
    return tensor.detach().resolve_neg() if tensor.requires_grad or tensor.is_neg() else tensor


def check_numeric(name: str, what: str) -> None:
    """Raise if a type does not hold real numbers."""
    if not (name in ("float32", "float64") or is_low_precision(name) or is_integer(name)):
        raise InputError(f"The {what} have type {name}, which cannot be scored. Give real numbers.")


def _tensor_to_numpy(tensor: Any) -> Any:
    """A tensor as a NumPy array; types that NumPy does not have become float32, which represents them exactly."""
    name, tensor = dtype_name(tensor.dtype), tensor.cpu()
    return tensor.float().numpy() if is_low_precision(name) and name != "float16" else tensor.numpy()


def _numpy_to_tensor(torch: Any, array: Any) -> Any:
    """A NumPy array as a tensor; the types of ml_dtypes bit by bit."""
    name = array.dtype.name
    if is_low_precision(name) and name != "float16":
        bits = array.view(np.int16 if array.dtype.itemsize == 2 else np.uint8)
        return torch.from_numpy(np.ascontiguousarray(bits)).view(getattr(torch, name))
    if not array.flags.writeable:  # torch warns about read-only memory, but nothing here writes to it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return torch.from_numpy(array)
    return torch.from_numpy(array)


@cache
def _device_memory(torch: Any, device: Any) -> int:
    """The memory of a CUDA device, in bytes."""
    return int(torch.cuda.get_device_properties(device).total_memory)


@cache
def _priority_stream(torch: Any, device: Any) -> Any:
    """A stream of a device that runs before the others."""
    return torch.cuda.Stream(device, priority=-1)


@cache
def _has_float32_output(torch: Any, device: Any) -> bool:
    """Whether `torch.mm` takes `out_dtype` on a device; warn once where it does not."""
    ones = torch.ones((16, 16), dtype=torch.bfloat16, device=device)
    try:
        torch.mm(ones, ones, out_dtype=torch.float32)
    except (TypeError, RuntimeError, NotImplementedError):
        warnings.warn(
            f"This torch ({torch.__version__}) has no float32 output of low-precision products on {device}. "
            "Documents are converted to float32 block by block. This is exact, but several times slower.",
            TiewiseWarning,
            stacklevel=2,
        )
        return False
    return True
