"""How faithful a run is to a reference, such as the same scores in float32: no ties does not mean the right order.

Pairs of documents that both runs list are compared, query by query: does the run order them as the reference does, the
other way round, or not at all? RBO compares the lists themselves, and the gap is the difference in expected values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiewise.columns import Codes, Floats, positions
from tiewise.correlation import inversions
from tiewise.data import MappedRun, Run
from tiewise.errors import InputError, listed
from tiewise.likeness import similarity
from tiewise.report import Report

__all__ = ["Fidelity", "fidelity"]

RBO = "RBO(phi=0.9)@100"


@dataclass(frozen=True)
class Fidelity:
    """A run beside its reference, over the queries that both have."""

    queries: int
    pairs: int  #: pairs of documents in both lists, of different scores in the reference
    inverted: float | None  #: the share of these pairs that the run orders the other way round
    tied: float | None  #: the share that it ties
    tau: float | None  #: Kendall's τ of the common documents, expected over the orders of ties, mean over queries
    rbo: float | None  #: RBO of the lists (φ = 0.9, first 100 ranks), extrapolated and expected, mean over queries
    gap: dict[str, float]  #: by measure: what the run is expected to score, less what the reference is

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return dict(vars(self))


def fidelity(run: Run | MappedRun, reference: Run | MappedRun, judged: tuple[Report, Report] | None) -> Fidelity:
    """How faithful a run is to a reference; `judged` are the reports of both, where there are judgments."""
    ours, theirs = (one if isinstance(one, Run) else one.to_run() for one in (run, reference))
    shared = set(ours.queries) & set(theirs.queries)
    if not shared:
        raise InputError(
            f"The run and the reference have no query in common. Queries of the run: {listed(ours.queries)}; of the "
            f"reference: {listed(theirs.queries)}."
        )
    counts = np.array([_compared(own, other) for own, other in _common(ours, theirs)]).reshape(-1, 4)
    pairs, ordered, inverted, tied = counts.T
    several = pairs > 0
    taus = (ordered - inverted - tied - inverted)[several] / pairs[several]
    total = int(ordered.sum())
    alike = similarity({"run": ours, "reference": theirs}, RBO, edge="extend").pair("run", "reference").extrapolated
    return Fidelity(
        queries=len(shared),
        pairs=total,
        inverted=int(inverted.sum()) / total if total else None,
        tied=int(tied.sum()) / total if total else None,
        tau=float(taus.mean()) if several.any() else None,
        rbo=None if alike is None else alike.expected,
        gap={} if judged is None else _gaps(*judged, shared),
    )


def _common(run: Run, reference: Run) -> Iterator[tuple[Floats, Floats]]:
    """For each query of both, the scores of the documents that both list."""
    place = positions(run.query_index, reference.queries)[reference.query]
    code = positions(run.doc_index, reference.docs)[reference.doc]
    theirs = np.flatnonzero((place >= 0) & (code >= 0))
    keys = run.query * len(run.docs) + run.doc, place[theirs] * len(run.docs) + code[theirs]
    _, left, right = np.intersect1d(*keys, assume_unique=True, return_indices=True)
    ends = np.flatnonzero(np.diff(run.query[left])) + 1
    own, other = run.score[left], reference.score[theirs[right]]
    yield from zip(np.split(own, ends), np.split(other, ends), strict=True)


def _compared(own: Floats, other: Floats) -> tuple[int, int, int, int]:
    """Pairs in all; those that the reference orders; of these, how many the run inverts, and how many it ties."""
    a, b = (np.unique(-scores, return_inverse=True)[1] for scores in (other, own))
    pairs = len(a) * (len(a) - 1) // 2
    inverted = inversions(b[np.lexsort((b, a))])
    tied_both = _tied(a * len(b) + b)
    return pairs, pairs - _tied(a), inverted, _tied(b) - tied_both


def _tied(group: Codes) -> int:
    counts = np.unique(group, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _gaps(run: Report, reference: Report, shared: set[str]) -> dict[str, float]:
    """By measure, the mean over common queries of what the run is expected to score less what the reference is."""
    gaps = {}
    for measure in run:
        left, right = run.per_query(measure), reference.per_query(measure)
        mine = np.array([query in shared for query in left.queries])
        gap = (left.expected - right.expected)[mine]  # both are along the queries of the qrels
        if len(gap) and not np.isnan(gap).any():
            gaps[measure.name] = float(gap.sum() if measure.total else gap.mean())
    return gaps
