"""How faithful a run is to a reference run, such as the same scores in float32: a run without ties can still be wrong.

For each query, the pairs of documents that both runs list are counted as concordant, inverted or tied. RBO compares the
lists themselves, and the gap is the difference of expected values.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.reports import Report
from tiewise.data.columns import Codes, positions
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.rankings.correlation import count_inversions
from tiewise.rankings.run_similarity import mean_rbo
from tiewise.results.base import Result
from tiewise.results.model import Section, Table
from tiewise.results.view import View
from tiewise.results.wording import NumberFormat, format_percent, list_examples

__all__ = ["Fidelity", "measure_fidelity"]

PHI, DEPTH = 0.9, 100  # of RBO; a tie group across the last rank is read whole, because it has little weight there
MIN_GAP = 0.005  # half a point: a run that differs from its reference by this is not faithful to it
MIN_RBO = 0.95  # below this, a run does not rank as its reference does
BATCH_SIZE = 2**20  # scores that are sorted at a time


@dataclass(frozen=True)
class Fidelity(Result):
    """A run compared with its reference, over the queries of both.

    >>> import tiewise as tw
    >>> run, reference = {"q": {"a": 3.0, "b": 1.0, "c": 1.0}}, {"q": {"a": 2.0, "b": 3.0, "c": 1.0}}
    >>> found = tw.audit(run, reference=reference).fidelity
    >>> found.pairs, round(found.inverted, 4), round(found.tied, 4), round(found.tau, 4)
    (3, 0.3333, 0.3333, 0.0)
    """

    queries: int
    pairs: int  #: pairs of documents in both lists that the reference orders
    inverted: float | None  #: the share of these pairs that the run orders the other way round
    tied: float | None  #: the share of these pairs that the run ties
    tau: float | None  #: Kendall's τ of the common documents, expected over the orders of ties, mean over queries
    rbo: float | None  #: RBO of the lists (φ = 0.9, first 100 ranks), extrapolated and expected, mean over queries
    gap: dict[str, float]  #: by measure: the expected value of the run minus that of the reference

    @property
    def differs(self) -> bool:
        """Whether a measure differs by .005 or more, or RBO is below .95."""
        is_low = self.rbo is not None and self.rbo < MIN_RBO
        return self.inverted is not None and (is_low or any(abs(gap) >= MIN_GAP for gap in self.gap.values()))

    def describe(self, numbers: NumberFormat) -> str:
        """Whether the run ranks as the reference does, and how far it differs, in a few words."""
        if self.inverted is None:
            return "unknown: the reference orders no pair of documents that both runs list"
        facts = [f"RBO {numbers.number(self.rbo)}", f"{format_percent(self.inverted)} of pairs inverted"]
        if self.gap:
            measure = max(self.gap, key=lambda name: abs(self.gap[name]))
            facts.append(f"{measure} {numbers.signed(self.gap[measure], tiny='≈0')}")
        return f"{'no' if self.differs else 'yes'}: {', '.join(facts)}"

    def _document(self, view: View) -> dict[str, Any]:
        return asdict(self)

    def _section(self, view: View) -> Section:
        shares = {"inverted": format_percent(self.inverted), "tied": format_percent(self.tied)}
        means = {"tau": view.numbers.number(self.tau), "rbo": view.numbers.number(self.rbo)}
        gaps = {name: view.numbers.signed(gap, tiny="≈0") for name, gap in self.gap.items()}
        return Section([Table.of_facts(asdict(self) | shares | means | {"gap": gaps}, title="Beside its reference")])

    def _records(self, view: View) -> Table:
        return Table.of_record(asdict(self))


def measure_fidelity(run: Run, reference: Run, report: Report | None, reference_report: Report | None) -> Fidelity:
    """The fidelity of a run to a reference, with the gap between their reports if there are judgments."""
    common = set(run.queries) & set(reference.queries)
    if not common:
        raise InputError(
            f"The run and the reference have no query in common. Queries of the run: {list_examples(run.queries)}; of "
            f"the reference: {list_examples(reference.queries)}."
        )
    pairs, ordered, inverted, tied = _count_pairs(*_join_documents(run, reference))
    several = pairs > 0
    taus = (ordered - inverted - tied - inverted)[several] / pairs[several]
    total = int(ordered.sum())
    return Fidelity(
        queries=len(common),
        pairs=total,
        inverted=int(inverted.sum()) / total if total else None,
        tied=int(tied.sum()) / total if total else None,
        tau=float(taus.mean()) if several.any() else None,
        rbo=mean_rbo(run, reference, PHI, DEPTH),
        gap={} if report is None or reference_report is None else _measure_gaps(report, reference_report, common),
    )


def _join_documents(run: Run, reference: Run) -> tuple[Codes, Codes, Codes]:
    """The documents that both runs list: their query, and the rank of their score in each run (equal if scores are)."""
    query = positions(run.query_index, reference.queries)[reference.query]
    doc = positions(run.doc_index, reference.docs)[reference.doc]
    known = np.flatnonzero((query >= 0) & (doc >= 0))
    keys = run.query * len(run.docs) + run.doc, query[known] * len(run.docs) + doc[known]
    _, left, right = np.intersect1d(*keys, assume_unique=True, return_indices=True)
    scores = run.score[left], reference.score[known[right]]
    own, other = (np.unique(-score, return_inverse=True)[1] for score in scores)
    return run.query[left], own, other


def _count_pairs(query: Codes, own: Codes, other: Codes) -> NDArray[np.int64]:
    """For each query: all pairs, those that the reference orders, and of these the inverted and the tied ones.

    Lists of about the same length are rows of one matrix. Padding follows all documents, in the same order in both.
    """
    first = np.flatnonzero(np.diff(query, prepend=-1))
    length = np.diff(np.append(first, len(query)))
    widths = 2 ** np.ceil(np.log2(np.maximum(length, 1))).astype(np.int64)
    counts = np.zeros((4, len(first)), dtype=np.int64)
    counts[0] = length * (length - 1) // 2
    for width in np.unique(widths).tolist():
        lists = np.flatnonzero(widths == width)
        for some in np.array_split(lists, -(-len(lists) * width // BATCH_SIZE)):
            place = np.arange(width)
            inside = place < length[some, None]
            rows = np.where(inside, first[some, None] + place, 0)
            a, b = (np.where(inside, rank[rows], len(query) + place) for rank in (other, own))
            scale = len(query) + width
            both = np.sort(a * scale + b, axis=1)
            counts[1, some] = counts[0, some] - _count_equal(both // scale)
            counts[2, some] = count_inversions(both % scale)
            counts[3, some] = _count_equal(np.sort(b, axis=1)) - _count_equal(both)
    return counts


def _count_equal(rows: Codes) -> Codes:
    """How many pairs of each ascending row are equal."""
    place = np.arange(rows.shape[1])
    new = np.ones(rows.shape, dtype=bool)
    new[:, 1:] = rows[:, 1:] != rows[:, :-1]
    first = np.maximum.accumulate(np.where(new, place, 0), axis=1)
    return np.asarray((place - first).sum(axis=1), dtype=np.int64)  # a pair with each equal number before it


def _measure_gaps(run: Report, reference: Report, common: set[str]) -> dict[str, float]:
    """By measure, the mean difference of expected values over common queries."""
    gaps = {}
    for measure in run:
        left, right = run.per_query(measure), reference.per_query(measure)  # both are along the queries of the qrels
        gap = (left.expected - right.expected)[[query in common for query in left.queries]]
        if len(gap) and not np.isnan(gap).any():
            gaps[measure.name] = float(gap.sum() if measure.total else gap.mean())
    return gaps
