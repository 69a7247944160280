"""`Protocol`: rows of an experiment beside their reference: expected value, range, bias, difference, verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, NamedTuple

import numpy as np

from tiewise.analysis.incomplete_runs import cut_note
from tiewise.analysis.protocol_tables import POINTS, describe_protocol, paper_section, protocol_section
from tiewise.analysis.reports import Report
from tiewise.analysis.significance import ATOL, loss_bounds
from tiewise.analysis.simultaneous import Family
from tiewise.caching import cached_method, cached_property
from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.metrics.aggregation import sum_over_queries
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate, Estimates
from tiewise.metrics.names import parse
from tiewise.results.base import Result
from tiewise.results.estimates import is_wide
from tiewise.results.latex import render_latex
from tiewise.results.model import Section, Table
from tiewise.results.view import View
from tiewise.results.wording import SHORT, count_noun, merge_notes

Verdict = Literal["reference", "keeps", "loses", "unknown"]


#: The columns of a protocol, a row for each row and measure, and the keys of `rows` in JSON. Values are fractions.
PROTOCOL_COLUMNS = {
    "row": "the name of the row",
    "measure": "the measure in its canonical spelling",
    "expected": "the mean over all orders of the tied documents",
    "minimum": "the lowest value that an order of the tied documents can give",
    "maximum": "the highest",
    "range": "maximum − minimum",
    "std": "the standard deviation over all orders",
    "oblivious": "the value in the one order of the table",
    "bias": "oblivious − expected",
    "tied_share": "the share of tied documents in its lists",
    "difference": "expected − that of the reference",
    "ci_low": "the 95% interval of the difference, for all rows at once: its lower end",
    "ci_high": "its upper end",
    "lower": "the one-sided 95% bound for losses, for all rows at once",
    "upper": "that for gains",
    "differs": "the number of queries with another value",
    "verdict": "with a largest loss allowed: reference, keeps, loses or unknown",
    "rbo": "rank-biased overlap with the ranking of the reference",
    "rbr": "rank-biased recall of its first documents in that ranking",
    "overlap": "the share of the first documents that both have",
    "bytes": "of a stored document vector",
    "seconds": "for all queries",
}


class Agreement(NamedTuple):
    """How similar a ranking is to that of the reference, expected over the orders of ties."""

    rbo: float | None  #: extrapolated
    rbr: float | None  #: of the row's first documents against the reference's ranking
    overlap: float  #: the share of the first documents that both have


class Difference(NamedTuple):
    """A row less the reference, paired by query."""

    mean: float
    ci_low: float | None  #: the 95% interval over queries, which holds for all rows at once; None for one query
    ci_high: float | None
    lower: float  #: the one-sided 95% bounds for losses, for all rows at once (see `loss_bounds`)
    upper: float
    differs: int  #: how many queries have another value


@dataclass(frozen=True, eq=False)
class MeasuredRow:
    """A row, measured."""

    name: str
    report: Report | None  #: None without judgments
    tied_share: float | None  #: of its rows; None if only tie groups are known
    agreement: Agreement | None
    bytes: float | None = None
    seconds: float | None = None
    timed: str = ""
    note: str = ""


class Protocol(Result):
    """The rows of an experiment, each measured and compared with the reference.

    Values are points, hundredths of a measure, where people read them (`to_markdown`, `to_latex`, notebooks; else:
    `in_fractions`), and fractions in `to_frame` and `to_dict`.

    >>> import tiewise as tw
    >>> rows = {"float32": {"q": {"a": 0.51, "b": 0.5}}, "bfloat16": {"q": {"a": 0.5, "b": 0.5}}}
    >>> found = tw.protocol({"q": {"a": 1}}, rows, "RR", complete=True)
    >>> found.estimate("bfloat16").expected, found.difference("bfloat16").differs
    (0.75, 1)
    >>> found.to_markdown().splitlines()[5]
    '| bfloat16 | 100% | 100.00 | 75.00 | 50.00 | +25.00 | −25.00 | 1 |'
    """

    _schema = "tiewise/protocol/1"

    def __init__(
        self,
        rows: Sequence[MeasuredRow],
        measures: Sequence[Measure],
        reference: str,
        oblivious: str | None,
        cutoff: int,
        *,
        max_loss: float | None = None,
        worst: float | None = None,
        seed: int = 0,
    ):
        self._rows = {row.name: row for row in rows}
        self.rows, self.measures = tuple(self._rows), tuple(measures)
        self.reference, self.oblivious = reference, oblivious
        self.cutoff = cutoff  #: of the overlap with the reference
        self.max_loss, self.worst, self._seed, self._numbers = max_loss, worst, seed, POINTS
        _ = self._estimates  # an error now, if rows have no query in common
        if worst is not None:
            _ = [self._differences(measure) for measure in measures]  # or if a query loses more

    def __repr__(self) -> str:
        what = "no judgments"
        if self.measures:
            queries = count_noun(len(self.estimates(self.reference)), "query", "queries")
            what = f"{self.measures[0]}, {queries}"
        return f"<Protocol: {count_noun(len(self.rows), 'row')}, {what}, reference {self.reference}>"

    def row(self, name: str) -> MeasuredRow:
        """A row, by its name."""
        if name not in self._rows:
            raise InputError(f"There is no row '{name}'. There are: {', '.join(self.rows)}.")
        return self._rows[name]

    def estimates(self, row: str, measure: str | Measure | None = None) -> Estimates:
        """The estimates of a row for each query that all rows have."""
        return self._estimates[self._find_measure(measure)][self.row(row).name]

    def estimate(self, row: str, measure: str | Measure | None = None) -> Estimate:
        """The estimate of a row: its mean over queries."""
        return self.estimates(row, measure).mean()

    def difference(self, row: str, measure: str | Measure | None = None) -> Difference:
        """A row less the reference."""
        return self._differences(self._find_measure(measure))[self.row(row).name]

    def verdict(self, row: str) -> Verdict | None:
        """Whether a row keeps the reference's quality, in the first measure, up to `max_loss`; None without one.

        "keeps": the lower bound is above −max_loss; "loses": the upper bound is below it; else "unknown". If lists were
        probably cut inside a tie group, this must hold whatever was cut off.
        """
        name = self.row(row).name
        if self.max_loss is None or not self.measures:
            return None
        if name == self.reference:
            return "reference"
        found, own, whole = self.difference(name), self._open_by_cuts(name), self._open_by_cuts(self.reference)
        if found.lower - own[0] - whole[1] > -self.max_loss:
            return "keeps"
        return "loses" if found.upper + own[1] + whole[0] < -self.max_loss else "unknown"

    def _open_by_cuts(self, name: str) -> tuple[float, float]:
        """How far below and above its value lists that were probably cut leave the first measure of a row."""
        mean = self.estimate(name)
        if mean.expected is None or not is_wide(mean.open_cut):
            return 0.0, 0.0
        low, high = mean.open_cut or (mean.expected, mean.expected)
        return mean.expected - low, high - mean.expected

    @property
    def choice(self) -> str | None:
        """Of the rows that keep the quality and save bytes, that with the fewest, then with the highest lower bound.

        None without `max_loss`, if no row is, or if the bytes of the reference are not known.
        """
        if self.row(self.reference).bytes is None:
            return None
        kept = [name for name in self._candidates if self.verdict(name) == "keeps"]
        return min(kept, key=lambda name: (self.row(name).bytes or 0.0, -self.difference(name).lower), default=None)

    @property
    def _candidates(self) -> list[str]:
        """The rows that may be taken: those that save bytes, or all, if the bytes of the reference are not known."""
        whole = self.row(self.reference).bytes
        others = [row for row in self._rows.values() if row.name != self.reference]
        return [row.name for row in others if whole is None or (row.bytes is not None and row.bytes < whole)]

    @property
    def plot(self) -> Any:
        """Figures of this result: `cutoffs()` and `loss()`."""
        return import_module("tiewise.figures.protocols").ProtocolPlots(self)

    # -- values ---------------------------------------------------------------------------------------------------

    def _find_measure(self, measure: str | Measure | None) -> Measure:
        if not self.measures:
            raise InputError("Without judgments no measure has a value: give qrels.")
        chosen = self.measures[0] if measure is None else parse(measure)
        if chosen not in self.measures:
            raise InputError(f"{chosen} was not measured. Available: {', '.join(map(str, self.measures))}.")
        return chosen

    @cached_property
    def _estimates(self) -> dict[Measure, dict[str, Estimates]]:
        found = {}
        for measure in self.measures:
            each = {name: row.report.per_query(measure) for name, row in self._rows.items() if row.report is not None}
            common = set.intersection(*(set(one.queries) for one in each.values()))
            if not common:
                raise InputError(f"No query is left for {measure}: the rows have none in common.")
            found[measure] = {
                name: one.take(np.array([query in common for query in one.queries])) for name, one in each.items()
            }
        return found

    @cached_method
    def _differences(self, measure: Measure) -> dict[str, Difference]:
        each = self._estimates[measure]
        whole = each[self.reference].expected
        others = [name for name in each if name != self.reference]
        found = {self.reference: Difference(0.0, None, None, 0.0, 0.0, 0)}
        if others:
            values: Floats = np.stack([each[name].expected - whole for name in others], axis=1)
            lower, upper = loss_bounds(values, self._worst_loss(measure), seed=self._seed)
            columns = np.column_stack([whole, *(each[name].expected for name in others)])
            family = Family([columns], [np.ones(len(whole), dtype=bool)], baseline=0, seed=self._seed)
            means = sum_over_queries(values) / len(values)
            for at, name in enumerate(others):
                low, high = family.test(at + 1, 0).ci or (None, None)
                differs = int(np.count_nonzero(np.abs(values[:, at]) > ATOL))
                found[name] = Difference(float(means[at]), low, high, float(lower[at]), float(upper[at]), differs)
        return {name: found[name] for name in each}

    def _worst_loss(self, measure: Measure) -> float:
        """What one query can lose: 1, the reference's largest value, or, of a measure below 0, the largest loss."""
        if self.worst is not None:
            return self.worst
        each = self._estimates[measure]
        reference = each[self.reference].expected
        lost = max(float((reference - one.expected).max()) for one in each.values()) if measure.limits[0] < 0 else 0.0
        return max(1.0, float(reference.max()), lost)

    # -- what is shown --------------------------------------------------------------------------------------------

    @property
    def cut_note(self) -> str:
        """The note on lists that may have been cut inside a tie group; empty if there are none."""
        reports = {name: row.report for name, row in self._rows.items() if row.report is not None}
        return cut_note(reports) if reports else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        own = [
            (row.name, [*(row.report.other_notes if row.report else ()), *([row.note] if row.note else [])])
            for row in self._rows.values()
        ]
        return (*([self.cut_note] if self.cut_note else []), *merge_notes(own))

    @property
    def sentence(self) -> str:
        """What the table says, in a few sentences."""
        return describe_protocol(self, self._numbers)

    def in_fractions(self) -> Protocol:
        """The same result, which shows fractions and not points.

        >>> import tiewise as tw
        >>> found = tw.protocol({"q": {"a": 1}}, {"float32": {"q": {"a": 0.5, "b": 0.4}}}, "RR", complete=True)
        >>> found.in_fractions().to_markdown().splitlines()[4]
        '| float32 | 0% | 1.0000 | 1.0000 | 0 | 0 |'
        """
        made = copy(self)
        made._numbers = SHORT
        return made

    def _section(self, view: View) -> Section:
        return protocol_section(self, self._numbers, view)

    def _latex(self, view: View) -> str:
        return self.latex_of({"": self}) if self.measures else super()._latex(view)

    @staticmethod
    def latex_of(protocols: Mapping[str, Protocol]) -> str:
        r"""The table of a paper, which needs ``\usepackage{booktabs,siunitx}``: a line for each model by name.

        It has obl, E, range and bias of each row; if that line is too wide for a page, a line for each row.
        """
        numbers = next(iter(protocols.values()))._numbers if protocols else POINTS
        return render_latex(paper_section({name: one.to_dict() for name, one in protocols.items()}, numbers))

    def _records(self, view: View) -> Table:
        records = [self._record(name, measure) for measure in self.measures or [None] for name in self.rows]
        return Table.of_records([name for name in PROTOCOL_COLUMNS if name in records[0]], records)

    def _record(self, name: str, measure: Measure | None) -> dict[str, Any]:
        row = self._rows[name]
        similar = dict.fromkeys(Agreement._fields) if row.agreement is None else row.agreement._asdict()
        facts = {"row": name, "tied_share": row.tied_share, "bytes": row.bytes, "seconds": row.seconds, **similar}
        if measure is None:
            return facts
        one, difference = self.estimate(name, measure), self.difference(name, measure)
        verdict = self.verdict(name) if measure == self.measures[0] else None
        statistics = ("expected", "minimum", "maximum", "range", "std", "oblivious", "bias")
        values = {statistic: getattr(one, statistic) for statistic in statistics}
        differences = {"difference": difference.mean, **difference._asdict()}
        return {"measure": measure.name, "verdict": verdict, **facts, **values, **differences}

    def _document(self, view: View) -> dict[str, Any]:
        return {
            "queries": len(self.estimates(self.reference)) if self.measures else None,
            "reference": self.reference,
            "oblivious": self.oblivious,
            "cutoff": self.cutoff,
            "max_loss": self.max_loss,
            "worst": self.worst,
            "choice": self.choice,
            "sentence": self.in_fractions().sentence,
            "notes": list(self.notes),
            "rows": self._records(view).records(),
        }
