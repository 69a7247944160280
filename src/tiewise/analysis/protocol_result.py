"""`Protocol`: rows of an experiment beside their reference: expected value, range, bias, difference, verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
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
from tiewise.metrics.aggregation import sum_over_queries
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate, Estimates
from tiewise.metrics.names import parse
from tiewise.results.base import Result
from tiewise.results.estimates import is_wide
from tiewise.results.model import BEST, CUT, Cell, Column, Paragraph, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import (
    MISSING,
    NumberFormat,
    count_noun,
    format_percent,
    join_names,
    merge_notes,
    spell_option,
)
from tiewise.ties.orders import ORDER_NAMES

__all__ = ["Agreement", "Difference", "MeasuredRow", "Protocol", "Verdict"]

Verdict = Literal["reference", "keeps", "loses", "unknown"]


#: The columns of a protocol, a row for each row and measure, and the keys of `rows` in JSON. Values are fractions.
PROTOCOL_COLUMNS = {
    "row": "the name of the row",
    "measure": "the measure in its canonical spelling",
    "expected": "the mean over queries and over all orders of ties",
    "minimum": "the lowest value that an order can give",
    "maximum": "the highest",
    "range": "maximum − minimum",
    "std": "the standard deviation over the orders",
    "oblivious": "the value in the one order of the table",
    "bias": "oblivious − expected",
    "tied_share": "the share of the row's rows that are tied",
    "difference": "expected less that of the reference",
    "ci_low": "the 95% interval of the difference, which holds for all rows at once: its lower end",
    "ci_high": "its upper end",
    "lower": "the one-sided 95% bound for losses, for all rows at once",
    "upper": "the one for gains",
    "differs": "queries in which the value is another",
    "verdict": "with a largest loss allowed: reference, keeps, loses or unknown",
    "rbo": "rank-biased overlap with the ranking of the reference",
    "rbr": "rank-biased recall of the row's first documents in that ranking; of k documents at most 1 − φᵏ",
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
        self.max_loss, self.worst, self._seed, self._numbers = max_loss, worst, seed, Scaled()
        _ = self._estimates  # an error now, if rows have no query in common
        if worst is not None:
            _ = self._differences  # or if a query loses more

    def __repr__(self) -> str:
        what = f"{self.measures[0]}, {self._queries}" if self.measures else "no judgments"
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
        return self._differences[self._find_measure(measure)][self.row(row).name]

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

        Where those of the reference are not known, every row may be chosen. None without `max_loss`, or if no row is.
        """
        kept = [name for name in self._candidates if self.verdict(name) == "keeps"]
        return min(kept, key=lambda name: (self.row(name).bytes or 0.0, -self.difference(name).lower), default=None)

    @property
    def _candidates(self) -> list[str]:
        """The rows that save bytes; if those of the reference are not known, all but the reference."""
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
            lower, upper = loss_bounds(values, self._worst_loss(measure), seed=self._seed)
            low, high = max_t_intervals(values, seed=self._seed) if len(values) > 1 else (None, None)
            means = sum_over_queries(values) / len(values)
            for at, name in enumerate(others):
                ends = (None if low is None else float(low[at]), None if high is None else float(high[at]))
                differs = int(np.count_nonzero(np.abs(values[:, at]) > ATOL))
                found[name] = Difference(float(means[at]), *ends, float(lower[at]), float(upper[at]), differs)
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
    def _queries(self) -> str:
        return count_noun(len(self.estimates(self.reference)), "query", "queries")

    @property
    def order_name(self) -> str:
        """What the order of the oblivious values is called."""
        return describe_order(self.oblivious or "")

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
        numbers = self._numbers
        if not self.measures:
            return self._describe_overlap()
        parts = self._describe_bias(numbers), self._describe_levels(numbers), self._describe_choice(numbers)
        return " ".join(filter(None, parts)) or self._describe_changes(numbers)

    def _describe_changes(self, numbers: Scaled) -> str:
        """How far ties and rows change the value, where there is no more to say."""
        ranges = {name: self.estimate(name).range or 0.0 for name in self.rows}
        widest = max(ranges, key=ranges.__getitem__)
        size = numbers.number(ranges[widest])
        ties = (
            f"Ties change {widest} by up to {size}"
            if size != numbers.number(0.0)
            else "No order of ties changes a digit shown"
        )
        others = {name: self.difference(name) for name in self.rows if name != self.reference}
        if not others:
            return f"{ties}."
        name = max(others, key=lambda one: (abs(others[one].mean), others[one].differs))
        if not others[name].differs:
            return f"{ties}, and every row has the values of {self.reference}."
        return f"{ties}; {name} is the farthest from {self.reference}: {numbers.with_half_width(others[name])}."

    def _describe_overlap(self) -> str:
        """Which row has the fewest of the reference's first documents."""
        shares = {name: row.agreement.overlap for name, row in self._rows.items() if row.agreement}
        shares.pop(self.reference, None)
        if not shares:
            return ""
        name = min(shares, key=shares.__getitem__)
        share = format_percent(shares[name])
        return f"Without judgments: {name} has {share} of the first {self.cutoff} documents of {self.reference}."

    def _describe_bias(self, numbers: Scaled) -> str:
        """What one order prints for the row that it moves most, if that shows."""
        each = {name: self.estimate(name) for name in self.rows}
        name = max(each, key=lambda one: abs(each[one].bias or 0.0))
        found, whole = each[name], each[self.reference]
        assert found.expected is not None and whole.expected is not None
        if found.oblivious is None or numbers.number(found.oblivious) == numbers.number(found.expected):
            return ""
        printed, side = numbers.number(found.oblivious), ""
        if name != self.reference and (found.oblivious > whole.expected) != (found.expected > whole.expected):
            side = f", {'above' if found.oblivious > whole.expected else 'below'} {self.reference}"
        if self.oblivious in ORDER_NAMES:
            start = f"In {self.order_name} {name} prints {printed}"
        else:
            start = f"{self.oblivious} prints {printed} for {name}"
        return f"{start}{side}; expected it is {numbers.number(found.expected)}."

    def _describe_levels(self, numbers: Scaled) -> str:
        """What high-precision scoring makes of the range of each row, beside that of the reference."""
        parts, whole = [], self.estimate(self.reference).range or 0.0
        for name in self.rows:
            base, _, level = name.rpartition(" + ")
            if base in self._rows and (before := self.estimate(base).range):
                after = self.estimate(name).range
                left = "no ties left" if self.row(name).tied_share == 0 else "no tie matters"
                shown = numbers.number(before), numbers.number(after)
                moved = f"range stays {shown[0]}" if shown[0] == shown[1] else f"range {shown[0]} → {shown[1]}"
                change = moved if after else left
                if after and whole > after - ATOL:
                    change += f" ({self.reference}: {numbers.number(whole)})"
                parts.append(f"{base} + {level}: {change}")
        return f"{'; '.join(parts)}." if parts else ""

    def _describe_choice(self, numbers: Scaled) -> str:
        """What to choose, or how many queries could tell."""
        if self.max_loss is None or len(self.rows) < 2:
            return ""
        loss, choice = numbers.amount(self.max_loss, self.measures[0]), self.choice
        if choice is not None:
            found, chosen, whole = self.difference(choice), self.row(choice).bytes, self.row(self.reference).bytes
            size = "" if chosen is None or whole is None else f": {chosen:,.0f} bytes a vector instead of {whole:,.0f}"
            bound = f"95% bound for all rows: {numbers.signed(found.lower)}"
            return f"Choose {choice}{size}. It loses less than {loss}{', if anything' * (found.mean >= 0)} ({bound})."
        if not self._candidates:
            return f"Stay with {self.reference}: no row has smaller vectors."
        whole_values = self.estimates(self.reference).expected
        needed = queries_for_loss(self.max_loss, self._worst_loss(self.measures[0]))
        unknown = [name for name in self._candidates if self.verdict(name) == "unknown"]
        if unknown and len(whole_values) < needed:
            return f"{self._queries} cannot show that a loss is below {loss}; at least {needed:,} could."
        kept = [name for name in self.rows if self.verdict(name) == "keeps"]
        but = f"{join_names(kept)} keep{'s' * (len(kept) == 1)} the quality, but not in fewer bytes. " if kept else ""
        if unknown:
            names = join_names(unknown, "or")
            return f"{but}{self._queries} do not show that {names} loses less than {loss}. Stay with {self.reference}."
        others = "every row with smaller vectors" if kept else "every other row"
        return f"{but}Stay with {self.reference}: {others} loses more than {loss}."

    def in_fractions(self) -> Protocol:
        """The same result, which shows fractions and not points.

        >>> import tiewise as tw
        >>> found = tw.protocol({"q": {"a": 1}}, {"float32": {"q": {"a": 0.5, "b": 0.4}}}, "RR", complete=True)
        >>> found.in_fractions().to_markdown().splitlines()[4]
        '| float32 | 0% | 1.0000 | 1.0000 | 0 | 0 |'
        """
        made = copy(self)
        made._numbers = Scaled(points=False)
        return made

    def _latex(self, view: View) -> str:
        return self.latex_of({"": self}) if self.measures else super()._latex(view)

    @staticmethod
    def latex_of(protocols: Mapping[str, Protocol]) -> str:
        r"""The table of a paper, which needs ``\usepackage{booktabs}``: a line for each model by name.

        It has obl, E, range and bias of each row; if that line is too wide for a page, a line for each row.
        """
        from tiewise.analysis.protocol_latex import paper_table

        numbers = next(iter(protocols.values()))._numbers if protocols else Scaled()
        return paper_table({name: one.to_dict() for name, one in protocols.items()}, numbers)

    def _section(self, view: View) -> Section:
        if self.measures:
            tables = [self._table(measure, view) for measure in self.measures]
        else:
            tables = [self._similarity_table(view)]
        said = [self.sentence]
        if self.measures and self.max_loss is None and len(self.rows) > 1:
            said.append(f"For a choice add {spell_option('max_loss', 0.01)}.")
        return Section([*tables, *map(Paragraph, filter(None, said))], "", self.notes)

    def _table(self, measure: Measure, view: View) -> Table:
        numbers, each = self._numbers, {name: self.estimate(name, measure) for name in self.rows}
        obl = "" if self.oblivious is None else f" · obl: {self.order_name}"
        title = f"{numbers.unit(measure)} · {self._queries}{obl} · reference {self.reference}"
        columns: dict[Column, list[Any]] = {
            Column("row", shown="always"): [Cell(n, mark=BEST if n == self.choice else "") for n in self.rows],
            _number("tied_share", "tied"): [_percent(self._rows[name].tied_share) for name in self.rows],
        }
        if self.oblivious is not None:
            columns[_number("oblivious", "obl")] = [numbers.number(one.oblivious) for one in each.values()]
        columns[_number("expected", "E")] = [
            Cell(numbers.number(one.expected), mark=CUT if is_wide(one.open_cut) else "") for one in each.values()
        ]
        columns[_number("range")] = [numbers.size(one.range) for one in each.values()]
        if self.oblivious is not None:
            columns[_number("bias")] = [numbers.signed(one.bias) for one in each.values()]
        columns[_number("std", wide=True)] = [numbers.size(one.std) for one in each.values()]
        columns[_number("cv", "CV", wide=True)] = [
            format_percent(one.std / (one.expected or 1) if one.std else 0.0) for one in each.values()
        ]
        if len(self.rows) > 1:
            columns |= self._difference_columns(measure)
        columns |= self._cost_columns(wide=True)
        if self.max_loss is not None and measure == self.measures[0]:
            columns[Column("verdict", shown="wide")] = [self.verdict(name) for name in self.rows]
        is_last = measure == self.measures[-1]
        legend = self._legend() if is_last and (view.wide or view.explain) else ""
        chosen = f"{BEST} chosen." if self.choice is not None else ""
        return _make_table(columns, title=title, notes=tuple(filter(None, (chosen, legend)))).choose(view)

    def _difference_columns(self, measure: Measure) -> dict[Column, list[Any]]:
        numbers = self._numbers
        found = {name: None if name == self.reference else self.difference(name, measure) for name in self.rows}
        return {
            _number("difference", f"to {self.reference} ±95%"): [
                "" if one is None else numbers.with_half_width(one) for one in found.values()
            ],
            _number("differs", "differ"): ["" if one is None else f"{one.differs:,}" for one in found.values()],
            _number("bounds", wide=True): [
                "" if one is None else f"{numbers.signed(one.lower)}, {numbers.signed(one.upper)}"
                for one in found.values()
            ],
        }

    def _similarity_table(self, view: View) -> Table:
        title = f"similarity to {self.reference} · no judgments"
        tied = [_percent(self._rows[name].tied_share) for name in self.rows]
        columns = {Column("row", shown="always"): list(self.rows), _number("tied_share", "tied"): tied}
        return _make_table(columns | self._cost_columns(wide=False), title=title).choose(view)

    def _cost_columns(self, *, wide: bool) -> dict[Column, list[Any]]:
        """Similarity to the reference, bytes and seconds: those that are known and say something."""
        three, rows = NumberFormat(3, leading_zero=False), list(self._rows.values())
        columns: dict[Column, list[Any]] = {}
        for name, heading in (("rbo", "RBO"), ("rbr", "RBR"), ("overlap", f"overlap@{self.cutoff}")):
            values = [None if row.agreement is None else getattr(row.agreement, name) for row in rows]
            if name != "rbr" or len({three.number(value) for value in values}) > 1:  # rerankers have the same documents
                columns[_number(name, heading, wide=wide)] = [three.number(value) for value in values]
        columns[_number("bytes", wide=wide)] = [MISSING if row.bytes is None else f"{row.bytes:,.0f}" for row in rows]
        columns[_number("seconds", wide=wide)] = [
            MISSING if row.seconds is None else f"{row.seconds:.3g}" for row in rows
        ]
        return {name: cells for name, cells in columns.items() if any(cell != MISSING for cell in cells)}

    def _legend(self) -> str:
        """What the columns of the wide table mean."""
        timed = " and ".join(dict.fromkeys(row.timed for row in self._rows.values() if row.timed))
        losses = {f"{self._worst_loss(measure):g}": None for measure in self.measures}
        return (
            "CV: std / E. differ: queries with another value. bounds: 95% on each side, for all rows at once, with one "
            f"more query that loses or gains {' or '.join(losses)}. RBO, RBR, overlap: with the ranking of "
            f"{self.reference}. RBR of k documents is at most 1 − φᵏ, and a row with ties is not quite like itself."
            f"{f' seconds: {timed}, all queries.' if timed else ''}"
        )

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


@dataclass(frozen=True)
class Scaled:
    """Numbers in points, hundredths of a measure with two digits, or as fractions with four."""

    points: bool = True

    def unit(self, measure: Measure | str) -> str:
        """The name of a measure, and what its numbers are multiplied by."""
        return f"{measure} ×100" if self.points else str(measure)

    def amount(self, value: float, measure: Measure) -> str:
        """An amount of a measure, in a sentence: "1 point of nDCG@10", ".01 nDCG@10"."""
        text = f"{self._scale(value):.4g}"
        if not self.points:
            return f"{text.removeprefix('0')} {measure}"
        return f"{text.removeprefix('0')} point{'s' * (text != '1')} of {measure}"

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
        if not difference.differs or difference.ci_low is None or difference.ci_high is None:
            return mean
        return f"{mean} ±{self.size((difference.ci_high - difference.ci_low) / 2)}"


def describe_order(oblivious: str) -> str:
    """What the order of the oblivious values is called."""
    return ORDER_NAMES.get(oblivious, f"as {oblivious} prints it")


def _make_table(columns: Mapping[Column, Sequence[Any]], **fields: Any) -> Table:
    return Table(tuple(columns), list(zip(*columns.values(), strict=True)), **fields)


def _number(name: str, heading: str | None = None, *, wide: bool = False) -> Column:
    return Column(name, heading, "right", shown="wide" if wide else "default")


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{share:.0%}" if not 0 < share < 0.005 else "<1%"
