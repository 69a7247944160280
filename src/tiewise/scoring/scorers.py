"""How every call starts: queries and documents are checked, and they decide about the scorer."""

from __future__ import annotations

from typing import Any

from tiewise.errors import InputError, warn
from tiewise.scoring.backends import Backend, NumpyBackend, TorchBackend
from tiewise.scoring.blocks import Scorer
from tiewise.scoring.device_scorer import DeviceScorer
from tiewise.scoring.host_scorer import HostScorer
from tiewise.scoring.operands import Mask, Operand, check_operands, make_operand
from tiewise.scoring.options import check_pair_function, check_precision
from tiewise.scoring.reproducible import ReproducibleScorer
from tiewise.scoring.storage import Codes, Sparse, Storage, VectorsLike, make_storage

__all__ = ["DocumentOperands", "check_masks", "make_scorer"]


class DocumentOperands:
    """The documents of one or many calls, on each device on which they are scored."""

    def __init__(self, docs: Storage, mask: Mask = None):
        self.storage, self._mask = docs, mask
        self._operands: dict[tuple[Any, bool], Operand] = {}

    def on(self, backend: Backend, *, integers: bool) -> Operand:
        """The documents on a device; what was prepared for an earlier call is still there."""
        key = backend.device, integers
        if key not in self._operands:
            self._operands[key] = make_operand(self.storage, backend, self._mask, "documents", integers=integers)
        return self._operands[key]

    def scorer(
        self,
        queries: Storage,
        fn: str,
        precision: str,
        query_mask: Mask = None,
        backend: Backend | None = None,
        *,
        score_dtype: str | None = None,
        reproducible: bool = False,
        **device_options: Any,
    ) -> Scorer:
        """The scorer of queries against the documents, by default where the queries are.

        Sparse vectors are scored in main memory. `device_options` are options of `DeviceScorer`.
        """
        check_operands(queries, self.storage)
        if fn != "hamming" and queries.dtype_name == self.storage.dtype_name == "uint8":
            warn(
                "Queries and documents are uint8 and are scored as numbers from 0 to 255. If they are packed bits "
                "(ubinary), use fn='hamming' (--fn hamming)."
            )
        if backend is None:
            backend = queries.backend if queries.backend.on_device else NumpyBackend()
        if isinstance(queries, Sparse) or isinstance(self.storage, Sparse):
            backend = NumpyBackend()
        integers = isinstance(queries, Codes) and isinstance(self.storage, Codes)

        def operands(place: Backend) -> tuple[Operand, Operand]:
            left = make_operand(queries, place, query_mask, "queries", integers=integers)
            return left, self.on(place, integers=integers)

        if not isinstance(backend, TorchBackend):
            return HostScorer(*operands(backend), fn, precision, score_dtype)
        own_dtype = None if reproducible else score_dtype  # the definition decides about scores that are not rounded
        scorer = DeviceScorer(backend, *operands(backend), fn, precision, score_dtype=own_dtype, **device_options)
        if not reproducible or (scorer.types.integer and score_dtype is None):  # integers are exact everywhere
            return scorer
        host = operands(NumpyBackend())
        return (
            ReproducibleScorer(*host, scorer, score_dtype)
            if ReproducibleScorer.supports(scorer)
            else HostScorer(*host, fn, precision, score_dtype)
        )


def make_scorer(
    queries: VectorsLike,
    docs: VectorsLike,
    fn: str = "dot",
    precision: str = "float32",
    *,
    masks: tuple[Mask, Mask] = (None, None),
    **device_options: Any,
) -> Scorer:
    """The scorer of queries against documents for a single call."""
    check_pair_function(fn)
    check_precision(precision)
    check_masks(fn, *masks)
    left, right = make_storage(queries, "queries", fn), make_storage(docs, "documents", fn)
    return DocumentOperands(right, masks[1]).scorer(left, fn, precision, masks[0], **device_options)


def check_masks(fn: str, *masks: Mask) -> None:
    """Raise if there are masks for a function of single vectors."""
    if fn != "maxsim" and any(mask is not None for mask in masks):
        raise InputError(f"Masks are for fn='maxsim', which scores tokens; fn={fn!r} has one vector per row.")
