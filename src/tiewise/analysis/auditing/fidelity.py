"""How faithful a run is to a reference, such as the same scores in float32: no ties does not mean the right order.

Pairs of documents that both runs list are compared, query by query: does the run order them as the reference does, the
other way round, or not at all? RBO compares the lists themselves, and the gap is the difference in expected values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tiewise.analysis.reports import Report
from tiewise.data.columns import Codes, Floats, positions
from tiewise.data.runs import Run
from tiewise.errors import InputError, listed
from tiewise.rankings.run_similarity import mean_rbo

__all__ = ["Fidelity", "fidelity"]

PHI, DEPTH = 0.9, 100  # of RBO; a tie group at the last rank is read whole, for what stands so deep hardly weighs
AT_ONCE = 2**20  # so many scores are sorted at a time
SMALLEST = 32  # lists of this length are compared pair by pair
SHARES = ("inverted", "tied")


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

    def _repr_html_(self) -> str:
        from tiewise.tables import html as notebook

        shares = {name: None if (part := getattr(self, name)) is None else notebook.share(part) for name in SHARES}
        gaps = {name: notebook.signed(gap) for name, gap in self.gap.items()}
        return notebook.block("Beside its reference", notebook.facts(self.to_dict() | shares | {"gap": gaps}))


def fidelity(run: Run, reference: Run, judged: tuple[Report, Report] | None) -> Fidelity:
    """How faithful a run is to a reference; `judged` are the reports of both, where there are judgments."""
    ours, theirs = run, reference
    shared = set(ours.queries) & set(theirs.queries)
    if not shared:
        raise InputError(
            f"The run and the reference have no query in common. Queries of the run: {listed(ours.queries)}; of the "
            f"reference: {listed(theirs.queries)}."
        )
    pairs, ordered, inverted, tied = _compared(_common(ours, theirs))
    several = pairs > 0
    taus = (ordered - inverted - tied - inverted)[several] / pairs[several]
    total = int(ordered.sum())
    return Fidelity(
        queries=len(shared),
        pairs=total,
        inverted=int(inverted.sum()) / total if total else None,
        tied=int(tied.sum()) / total if total else None,
        tau=float(taus.mean()) if several.any() else None,
        rbo=mean_rbo(ours, theirs, PHI, DEPTH),
        gap={} if judged is None else _gaps(*judged, shared),
    )


class Common(NamedTuple):
    """The documents that both runs list, query by query: their scores in the run and in the reference."""

    query: Codes  # (n,): ascending
    own: Floats  # (n,)
    other: Floats  # (n,)


def _common(run: Run, reference: Run) -> Common:
    place = positions(run.query_index, reference.queries)[reference.query]
    code = positions(run.doc_index, reference.docs)[reference.doc]
    theirs = np.flatnonzero((place >= 0) & (code >= 0))
    keys = run.query * len(run.docs) + run.doc, place[theirs] * len(run.docs) + code[theirs]
    _, left, right = np.intersect1d(*keys, assume_unique=True, return_indices=True)
    return Common(run.query[left], run.score[left], reference.score[theirs[right]])


def _compared(common: Common) -> Codes:
    """For each query: pairs in all; those that the reference orders; of these, those inverted, and those tied.

    Lists of about one length are looked at side by side, as rows of a matrix.
    """
    starts = np.flatnonzero(np.diff(common.query, prepend=-1))
    length = np.diff(np.append(starts, len(common.query)))
    wide = 2 ** np.ceil(np.log2(np.maximum(length, 1))).astype(np.int64)
    found = np.zeros((4, len(starts)), dtype=np.int64)
    for width in np.unique(wide).tolist():
        mine = np.flatnonzero(wide == width)
        for some in np.array_split(mine, -(-len(mine) * width // AT_ONCE)):
            place = np.arange(width)
            inside = place < length[some, None]
            rows = np.where(inside, starts[some, None] + place, 0)
            a, b = (_groups(np.where(inside, scores[rows], np.nan)) for scores in (common.other, common.own))
            found[:, some] = _counted(a, b, length[some])
    return found


def _groups(scores: Floats) -> Codes:
    """The tie group of each score in its row, the best first; what is NaN stands last, alone."""
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=1)
    group = np.empty(scores.shape, dtype=np.int64)
    new = np.ones(scores.shape, dtype=bool)
    new[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    np.put_along_axis(group, order, np.cumsum(new, axis=1) - 1, axis=1)
    return group


def _counted(a: Codes, b: Codes, length: Codes) -> tuple[Codes, Codes, Codes, Codes]:
    """The counts of `_compared` from the groups in the reference and in the run."""
    width = a.shape[1]
    both = np.sort(a * width + b, axis=1)
    pairs = length * (length - 1) // 2
    tied_both = _tied(both)
    return (
        pairs,
        pairs - _tied(both // width),
        inversions_by_row(both % width),
        _tied(np.sort(b, axis=1)) - tied_both,
    )


def _tied(rows: Codes) -> Codes:
    """How many pairs of each row are equal numbers; rows ascend."""
    place = np.arange(rows.shape[1])
    new = np.ones(rows.shape, dtype=bool)
    new[:, 1:] = rows[:, 1:] != rows[:, :-1]
    first = np.maximum.accumulate(np.where(new, place, 0), axis=1)
    return np.asarray((place - first).sum(axis=1), dtype=np.int64)  # each has a pair with all equal ones before it


def inversions_by_row(rows: Codes) -> Codes:
    """How many pairs of each row stand in the wrong order; a row's length is a power of two.

    Halves that are sorted already are merged: each number of the right one passes all larger ones of the left one.

    >>> inversions_by_row(np.array([[3, 1, 2, 2], [1, 2, 3, 4]]))
    array([3, 0])
    """
    count, width = rows.shape
    part = min(width, SMALLEST)
    blocks = rows.reshape(-1, part)
    later = np.triu(np.ones((part, part), dtype=bool), 1)
    found = ((blocks[:, :, None] > blocks[:, None, :]) & later).sum(axis=(1, 2)).reshape(count, -1).sum(axis=1)
    while part < width:
        halves = np.sort(rows.reshape(-1, 2, part), axis=2)
        found += _passed(halves[:, 0], halves[:, 1]).reshape(count, -1).sum(axis=1)
        part *= 2
    return np.asarray(found, dtype=np.int64)


def _passed(left: Codes, right: Codes) -> Codes:
    """For each row, how many pairs have a larger number at the left; both sides ascend."""
    both = np.argsort(
        np.concatenate([left, right], axis=1), axis=1, kind="stable"
    )  # of equal ones, the left stands first
    from_right = both >= left.shape[1]
    still_left = left.shape[1] - np.cumsum(~from_right, axis=1)
    return np.asarray((still_left * from_right).sum(axis=1), dtype=np.int64)


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
