"""`Protocol`: rows of an experiment beside their reference: expected value, range, bias, difference, verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, NamedTuple

import numpy as np

from tiewise.analysis.incomplete_runs import cut_note
from tiewise.analysis.reports import Report
from tiewise.analysis.significance import ATOL, loss_bounds, max_t_intervals, queries_for_loss
from tiewise.caching import cached_property
from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate, Estimates
from tiewise.metrics.names import parse
from tiewise.tables.model import BEST, Cell, Column, Paragraph, Section, Table
from tiewise.tables.results import Result
from tiewise.tables.wording import MISSING, NumberFormat, count_noun, format_percent, merge_notes

__all__ = ["Difference", "Fidelity", "MeasuredRow", "Protocol", "Verdict"]

Verdict = Literal["reference", "keeps", "loses", "unknown"]
#: What an order of ties is called in the table.
ORDER_NAMES = {"given": "order of the data", "rank": "rank column", "docid-desc": "ids descending"}


class Fidelity(NamedTuple):
    """How similar a ranking is to that of the reference, expected over the orders of ties."""

    rbo: float | None  #: extrapolated
    rbr: float | None  #: of the row's first documents against the reference's ranking
    overlap: float | None  #: the share of the first documents that both have


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
    fidelity: Fidelity | None
    bytes: float | None = None
    seconds: float | None = None


class Protocol(Result):
    """The rows of an experiment, each measured and compared with the reference."""

    def __init__(
        self,
        rows: Sequence[MeasuredRow],
        measures: Sequence[Measure],
        reference: str,
        oblivious: str,
        *,
        max_loss: float | None = None,
        worst: float | None = None,
        seed: int = 0,
    ):
        self._rows = {row.name: row for row in rows}
        self.rows, self.measures = tuple(self._rows), tuple(measures)
        self.reference, self.oblivious = reference, oblivious
        self.max_loss, self.worst, self._seed = max_loss, worst, seed

    def __repr__(self) -> str:
        what = f"{self.measures[0]}, {self._queries}" if self.measures else "no judgments"
        return f"<Protocol: {count_noun(len(self.rows), 'row')}, {what}, reference {self.reference}>"

    @property
    def has_judgments(self) -> bool:
        """Whether rows were measured against judgments, not only against the reference."""
        return bool(self.measures)

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
        return self._differences[self._find_measure(measure)][self.row(row).name]

    def verdict(self, row: str, measure: str | Measure | None = None) -> Verdict | None:
        """Whether a row keeps the reference's quality up to `max_loss`; None without one.

        "keeps": the lower bound is above −max_loss; "loses": the upper bound is below it; else "unknown".
        """
        if self.max_loss is None:
            return None
        if row == self.reference:
            return "reference"
        found = self.difference(row, measure)
        if found.lower > -self.max_loss:
            return "keeps"
        return "loses" if found.upper < -self.max_loss else "unknown"

    @property
    def choice(self) -> str | None:
        """Of the rows that keep the quality, that with the fewest bytes, then with the highest lower bound.

        None without `max_loss`, and if no row keeps it.
        """
        if self.max_loss is None or not self.measures:
            return None
        kept = [row for row in self._rows.values() if self.verdict(row.name) == "keeps"]
        none = float("inf")
        best = min(
            kept,
            key=lambda row: (none if row.bytes is None else row.bytes, -self.difference(row.name).lower),
            default=None,
        )
        return None if best is None else best.name

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

    @cached_property
    def _differences(self) -> dict[Measure, dict[str, Difference]]:
        return {measure: self._compare(measure) for measure in self.measures}

    def _compare(self, measure: Measure) -> dict[str, Difference]:
        each = self._estimates[measure]
        whole = each[self.reference].expected
        others = [name for name in each if name != self.reference]
        found = {self.reference: Difference(0.0, None, None, 0.0, 0.0, 0)}
        if others:
            values: Floats = np.stack([each[name].expected - whole for name in others], axis=1)
            lower, upper = loss_bounds(values, self._worst_loss(whole), seed=self._seed)
            low, high = max_t_intervals(values, seed=self._seed) if len(values) > 1 else (None, None)
            for at, name in enumerate(others):
                ends = (None, None) if low is None or high is None else (float(low[at]), float(high[at]))
                mean, differs = float(values[:, at].mean()), int(np.count_nonzero(np.abs(values[:, at]) > ATOL))
                found[name] = Difference(mean, *ends, float(lower[at]), float(upper[at]), differs)
        return {name: found[name] for name in each}

    def _worst_loss(self, reference: Floats) -> float:
        return max(1.0, float(reference.max())) if self.worst is None else self.worst

    # -- what is shown --------------------------------------------------------------------------------------------

    @property
    def _queries(self) -> str:
        return count_noun(len(self.estimates(self.reference)), "query", "queries")

    @property
    def order_name(self) -> str:
        """What the order of the oblivious values is called."""
        return ORDER_NAMES.get(self.oblivious, f"as {self.oblivious} prints it")

    @property
    def cut_note(self) -> str:
        """The note on lists that may have been cut inside a tie group; empty if there are none."""
        reports = {name: row.report for name, row in self._rows.items() if row.report is not None}
        return cut_note(reports) if reports else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        reports = {name: row.report for name, row in self._rows.items() if row.report is not None}
        others = merge_notes((name, report.other_notes) for name, report in reports.items()) if reports else []
        return (*([self.cut_note] if self.cut_note else []), *others)

    @property
    def sentence(self) -> str:
        """What the table says, in a few sentences."""
        return " ".join(filter(None, (self._describe_bias(), self._describe_levels(), self._describe_choice())))

    def _describe_bias(self, numbers: Scaled | None = None) -> str:
        """What one order prints for the row that it moves most, if that shows."""
        if not self.measures:
            return ""
        numbers = numbers or Scaled()
        each = {name: self.estimate(name) for name in self.rows}
        name = max(each, key=lambda one: abs(each[one].bias or 0.0))
        found, whole = each[name], each[self.reference]
        if found.oblivious is None or numbers.number(found.oblivious) == numbers.number(found.expected):
            return ""
        order = f"In the {self.order_name}" if self.oblivious in ORDER_NAMES else self.order_name.capitalize()
        beside = ""
        if name != self.reference and (found.oblivious > whole.expected) != (found.expected > whole.expected):
            beside = f", {'above' if found.oblivious > whole.expected else 'below'} {self.reference}"
        return (
            f"{order} {name} prints {numbers.number(found.oblivious)}{beside}; expected it is "
            f"{numbers.number(found.expected)}."
        )

    def _describe_levels(self, numbers: Scaled | None = None) -> str:
        """What high-precision scoring makes of the range of each row."""
        if not self.measures:
            return ""
        numbers, parts = numbers or Scaled(), []
        for name in self.rows:
            base, _, level = name.rpartition(" + ")
            if base not in self._rows or not self.estimate(base).range:
                continue
            left = self.estimate(name).range or 0.0
            before, after = (numbers.number(size) for size in (self.estimate(base).range, left))
            result = "no tie matters" if not left else f"range {before} → {after}"
            parts.append(f"{base} + {level}: {result}")
        return f"{'; '.join(parts)}." if parts else ""

    def _describe_choice(self) -> str:
        """What to choose, or how many queries could tell."""
        if self.max_loss is None or not self.measures or len(self.rows) < 2:
            return ""
        loss, choice = f"{self.max_loss:g}", self.choice
        if choice is not None:
            lower = NumberFormat(4, leading_zero=False).signed(self.difference(choice).lower)
            return f"{choice} loses less than {loss} {self.measures[0]} (95% bound for all rows: {lower})."
        others = [name for name in self.rows if name != self.reference]
        if all(self.verdict(name) == "loses" for name in others):
            return f"Every row loses more than {loss} {self.measures[0]}: stay with {self.reference}."
        whole = self.estimates(self.reference).expected
        needed = queries_for_loss(self.max_loss, self._worst_loss(whole))
        if len(whole) < needed:
            return f"{self._queries} cannot show a loss below {loss}; {needed:,} could."
        return f"{self._queries} do not show that a row loses less than {loss}."

    def _section(self, *, points: bool = True, wide: bool = False) -> Section:
        if not self.measures:
            title = f"similarity to {self.reference} · no judgments"
            return Section([self._similarity_table()], title, self.notes)
        tables = [self._table(measure, Scaled(points), wide=wide) for measure in self.measures]
        return Section([*tables, Paragraph(self.sentence)], "", self.notes)

    def _table(self, measure: Measure, numbers: Scaled, *, wide: bool) -> Table:
        each = {name: self.estimate(name, measure) for name in self.rows}
        unit = f"{measure} ×100" if numbers.points else str(measure)
        title = f"{unit} · {self._queries} · obl: {self.order_name} · reference {self.reference}"
        columns: dict[str, list[Any]] = {
            "row": [Cell(name, mark=BEST if name == self.choice else "") for name in self.rows],
            "tied": [_percent(self._rows[name].tied_share) for name in self.rows],
            "obl": [numbers.number(one.oblivious) for one in each.values()],
            "E": [numbers.number(one.expected) for one in each.values()],
            "range": [numbers.size(one.range) for one in each.values()],
            "bias": [numbers.signed(one.bias) for one in each.values()],
        }
        if wide:
            columns["std"] = [numbers.size(one.std) for one in each.values()]
            columns["CV"] = [
                format_percent((one.std or 0.0) / one.expected if one.expected else None) for one in each.values()
            ]
        if len(self.rows) > 1:
            found = {name: self.difference(name, measure) for name in self.rows}
            columns[f"to {self.reference} ±95%"] = [
                "" if name == self.reference else numbers.with_half_width(one) for name, one in found.items()
            ]
            columns["differ"] = ["" if name == self.reference else f"{one.differs:,}" for name, one in found.items()]
            if wide:
                columns["bounds"] = [
                    "" if name == self.reference else f"{numbers.signed(one.lower)}, {numbers.signed(one.upper)}"
                    for name, one in found.items()
                ]
                columns |= self._cost_columns()
                if self.max_loss is not None:
                    columns["verdict"] = [self.verdict(name, measure) for name in self.rows]
        made = tuple(Column(name, align="left" if name == "row" else "right") for name in columns)
        return Table(made, list(zip(*columns.values(), strict=True)), title=title)

    def _similarity_table(self) -> Table:
        tied = [_percent(self._rows[name].tied_share) for name in self.rows]
        columns = {"row": list(self.rows), "tied": tied, **self._cost_columns()}
        made = tuple(Column(name, align="left" if name == "row" else "right") for name in columns)
        return Table(made, list(zip(*columns.values(), strict=True)))

    def _cost_columns(self) -> dict[str, list[Any]]:
        """Similarity to the reference, bytes and seconds, those that are known."""
        three, rows = NumberFormat(3, leading_zero=False), list(self._rows.values())
        columns: dict[str, list[Any]] = {}
        for name in Fidelity._fields:
            if name == "overlap" and self.measures:
                continue
            values = [None if row.fidelity is None else getattr(row.fidelity, name) for row in rows]
            columns[name.upper() if len(name) == 3 else name] = [three.number(value) for value in values]
        columns["bytes"] = [MISSING if row.bytes is None else f"{row.bytes:,.0f}" for row in rows]
        columns["seconds"] = [MISSING if row.seconds is None else f"{row.seconds:.3g}" for row in rows]
        return {name: cells for name, cells in columns.items() if any(cell != MISSING for cell in cells)}

    def _records(self) -> Table:
        if not self.measures:
            records = [{"row": name, **self._facts(name)} for name in self.rows]
            return Table.of_records(records[0], records)
        records = [self._record(name, measure) for measure in self.measures for name in self.rows]
        return Table.of_records(records[0], records)

    def _record(self, name: str, measure: Measure) -> dict[str, object]:
        one, difference = self.estimate(name, measure), self.difference(name, measure)
        statistics = ("expected", "minimum", "maximum", "range", "std", "oblivious", "bias")
        facts = self._facts(name)
        return {
            "row": name,
            "measure": measure.name,
            **{statistic: getattr(one, statistic) for statistic in statistics},
            "tied_share": facts.pop("tied_share"),
            "difference": difference.mean,
            **{part: getattr(difference, part) for part in ("ci_low", "ci_high", "lower", "upper", "differs")},
            "verdict": self.verdict(name, measure),
            **facts,
        }

    def _facts(self, name: str) -> dict[str, Any]:
        row = self._rows[name]
        similar = Fidelity(None, None, None) if row.fidelity is None else row.fidelity
        return {"tied_share": row.tied_share, **similar._asdict(), "bytes": row.bytes, "seconds": row.seconds}

    def to_dict(self) -> dict[str, Any]:
        """The rows, what to choose, and the notes as plain values; `write_report` takes them."""
        return {
            "schema": "tiewise/protocol/1",
            "reference": self.reference,
            "oblivious": self.oblivious,
            "max_loss": self.max_loss,
            "worst": self.worst,
            "choice": self.choice,
            "sentence": self.sentence,
            "notes": list(self.notes),
            "rows": self._records().records(),
        }


@dataclass(frozen=True)
class Scaled:
    """Numbers in points, hundredths of a measure with two digits, or as fractions with four."""

    points: bool = True

    @property
    def _format(self) -> NumberFormat:
        return NumberFormat(2 if self.points else 4, leading_zero=False)

    def _scale(self, value: float) -> float:
        return 100 * value if self.points else value

    def number(self, value: float | None) -> str:
        """A value of the measure."""
        return MISSING if value is None else self._format.number(self._scale(value))

    def size(self, value: float | None) -> str:
        """A range or a standard deviation; exactly zero is 0."""
        return self.number(value) if value is None or value > ATOL else "0"

    def signed(self, value: float | None) -> str:
        """A difference with its sign; zero is 0."""
        return MISSING if value is None else "0" if abs(value) <= ATOL else self._format.signed(self._scale(value))

    def with_half_width(self, difference: Difference) -> str:
        """A difference and the half width of its interval."""
        mean = self.signed(difference.mean)
        if difference.ci_low is None or difference.ci_high is None:
            return mean
        return f"{mean} ±{self.size((difference.ci_high - difference.ci_low) / 2)}"


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{share:.0%}" if not 0 < share < 0.005 else "<1%"
