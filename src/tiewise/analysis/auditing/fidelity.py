"""How faithful a run is to a reference run, such as the same scores in float32: a run without ties can still be wrong.

For each query, the pairs of documents that both runs list are counted as concordant, inverted or tied. RBO compares the
lists themselves, and the gap is the difference of expected values.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tiewise.analysis.reports import Report
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.rankings.run_similarity import RunPair
from tiewise.results.base import Result
from tiewise.results.model import Section, Table
from tiewise.results.view import View
from tiewise.results.wording import NumberFormat, format_percent, list_examples

PHI, DEPTH = 0.9, 100  # of RBO; a tie group across the last rank is read whole, because it has little weight there
MIN_GAP = 0.005  # half a point: a run that differs from its reference by this is not faithful to it
MIN_RBO = 0.95  # below this, a run does not rank as its reference does


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
    pair = RunPair(run, reference)
    counts = pair.count_pairs()
    ordered, tied = counts.total - counts.tied_y, counts.tied_x - counts.tied_both
    taus = counts.tau(extremes=False)[0, counts.total > 0]
    total = int(ordered.sum())
    return Fidelity(
        queries=len(common),
        pairs=total,
        inverted=int(counts.discordant.sum()) / total if total else None,
        tied=int(tied.sum()) / total if total else None,
        tau=float(taus.mean()) if len(taus) else None,
        rbo=pair.rbo(PHI, DEPTH),
        gap={} if report is None or reference_report is None else _measure_gaps(report, reference_report, common),
    )


def _measure_gaps(run: Report, reference: Report, common: set[str]) -> dict[str, float]:
    """By measure, the mean difference of expected values over common queries."""
    gaps = {}
    for measure in run:
        left, right = run.per_query(measure), reference.per_query(measure)  # both are along the queries of the qrels
        gap = (left.expected - right.expected)[[query in common for query in left.queries]]
        if len(gap) and not np.isnan(gap).any():
            gaps[measure.name] = float(gap.sum() if measure.total else gap.mean())
    return gaps
