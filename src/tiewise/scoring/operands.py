"""Queries and documents, whose rows are taken a few at a time, and the types in which they are scored.

An operand is a matrix of vectors, token vectors with a mask, quantised vectors, or packed bits. Its rows are brought to
the device, unpacked or decoded only when they are taken, so an operand need not fit into memory as a whole.

With ``precision="float32"`` a score is rounded once, at the end, to float32; ``"float64"`` leaves out this rounding.
``"native"`` reproduces what a model gives that runs in the low precision of its operands: products are added in a wider
type and rounded to the operands' type, and so is the result of every later step. Products of integers are exact in all
three.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tiewise.errors import InputError, warn
from tiewise.results.wording import count_noun
from tiewise.scoring.backends import Array, Backend, TorchBackend, backend_of, is_integer, is_low_precision
from tiewise.scoring.spans import Rows
from tiewise.scoring.storage import Bits, Codes, Sparse, Storage

Mask: TypeAlias = ArrayLike | None

#: Integer types whose products can be exact in float32.
SMALL_INTEGERS = ("bool", "int8", "uint8")


class Operand:
    """Queries or documents on the device where scores are computed."""

    def __init__(self, storage: Storage, backend: Backend, mask: Array | None = None):
        self.storage, self.target, self.mask = storage, backend, mask  # mask: (n, tokens), which tokens count
        self.n, self.dims, self.tokens, self.lengths = storage.n, storage.dims, storage.tokens, storage.lengths
        self.backend, self.dtype, self.dtype_name = storage.backend, storage.dtype, storage.dtype_name
        self._is_local = storage.backend.device == backend.device
        #: What was computed from the vectors, for the next call.
        self.prepared: dict[str, Any] = {}

    @property
    def is_sparse(self) -> bool:
        """Whether `take` gives sparse rows."""
        return isinstance(self.storage, Sparse)

    @property
    def terms(self) -> int:
        """The largest number of products that are not 0 in a sum over the dimensions."""
        return self.storage.terms if isinstance(self.storage, Sparse) else self.dims

    @property
    def matrix(self) -> Array | None:
        """The vectors, if they are one matrix on the device where scores are computed."""
        array = self.storage.array
        return array if array is not None and array.ndim == 2 and self._is_local else None

    def take(self, rows: Rows) -> Array:
        """Some rows on the device. Bits are packed in main memory, and −1 and 1 elsewhere."""
        part = self.storage.take(rows)
        part = part if self._is_local or self.is_sparse else self.target.to_device(part)
        if isinstance(self.storage, Bits) and self.target.on_device:
            return self.storage.unpack(self.target, part)
        return part

    def take_half(self, rows: Rows) -> Array:
        """Some rows of bfloat16 or float16 in main memory, as NumPy: float16, or the bits of bfloat16 in uint16."""
        if self.dtype_name == "float16":
            return np.asarray(self.take(rows), np.float16)  # in the byte order of this machine
        part = self.storage.take(rows)
        if isinstance(self.storage.backend, TorchBackend):
            part = part.cpu().view(self.storage.backend.torch.int16).numpy()
        return part.view(np.uint16)


def make_operand(storage: Storage, backend: Backend, mask: Mask, what: str, *, integers: bool = False) -> Operand:
    """Queries or documents for scores on a device. Codes stay `integers` if both sides are quantised."""
    if isinstance(storage, Codes) and integers:
        storage = Codes(storage.quantised, decoded=False)
    if mask is None:
        return Operand(storage, backend)
    if storage.lengths is not None:
        raise InputError(f"The {what} are token vectors without padding, so they take no mask.")
    return Operand(storage, backend, _check_mask(backend, mask, (storage.n, storage.tokens), what))


def check_operands(queries: Storage, docs: Storage, fn: str) -> None:
    """Raise if queries and documents do not fit together; warn if they seem to be packed bits, scored as numbers."""
    if queries.dims != docs.dims:
        raise InputError(
            f"Queries have {queries.dims} dimensions and documents {docs.dims}. Both must come from one model."
        )
    if isinstance(queries, Codes) and isinstance(docs, Codes) and not queries.quantised.same_scale(docs.quantised):
        raise InputError("Queries and documents are quantised on different scales. Share one: calibration=docs.")
    if fn != "hamming":
        warn_of_bits({queries.dtype_name, docs.dtype_name}, "use fn='hamming' (--fn hamming)")


def warn_of_bits(types: Collection[str], advice: str) -> None:
    """Warn if queries and documents, by the names of their types, seem to be packed bits that are scored as numbers."""
    if set(types) == {"uint8"}:
        warn(
            "Queries and documents are uint8 and are scored as numbers from 0 to 255. If they are packed bits "
            f"(ubinary), {advice}."
        )


def _check_mask(backend: Backend, mask: Mask, shape: tuple[int, ...], what: str) -> Array:
    counts = backend.to_device(backend_of(mask).as_array(mask, f"mask of the {what}") != 0)
    if tuple(counts.shape) != shape:
        raise InputError(f"The mask of the {what} has shape {tuple(counts.shape)}; their tokens have {shape}.")
    empty = np.asarray(backend.to_numpy(~counts.any(1))).nonzero()[0]
    if len(empty):
        raise InputError(
            f"The mask leaves no token in row {empty[0]} of the {what} ({count_noun(len(empty), 'such row')})."
        )
    return counts


class ScoreTypes:
    """The types of one computation of scores.

    - `wide`: vectors are converted to float64 (otherwise to float32).
    - `result`: the type in which scores are kept, float32 or float64.
    - `low`: scores are rounded to the low precision of the operands.
    - `integer`: all scores are integers, which need no rounding.
    """

    def __init__(self, precision: str, fn: str, queries: Operand, docs: Operand):
        names = queries.dtype_name, docs.dtype_name
        self.integer, self.wide, double = _choose_types(fn, precision, names, queries.dims * queries.tokens)
        self.result = "float64" if double else "float32"
        self.low = precision == "native" and names[0] == names[1] and is_low_precision(names[0])

    def native_dtype(self, queries: Operand, backend: Backend) -> Any:
        """The type of scores in native precision."""
        if self.integer:
            return backend.dtype("int32" if self.result == "float32" else "int64")
        return queries.dtype if self.low else backend.dtype(self.result)


@cache
def _choose_types(fn: str, precision: str, names: tuple[str, str], terms: int) -> tuple[bool, bool, bool]:
    """Whether scores are integers, whether vectors are float64, and whether scores are; `terms` are added for one."""
    if fn == "hamming" or (fn in ("dot", "maxsim") and set(names) <= set(SMALL_INTEGERS)):
        # Sums up to 2**24 are exact in float32, whatever the order of additions.
        largest = terms * (1 if fn == "hamming" else 2**16 if "uint8" in names else 2**14)
        wide = precision == "float64" or largest > 2**24
        return True, wide, wide
    wide = "float64" in names or any(is_integer(name) and name not in SMALL_INTEGERS for name in names)
    return False, wide, precision == "float64" or (precision == "native" and wide)
