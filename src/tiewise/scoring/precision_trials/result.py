"""`Precisions`: a table of ways to store and score vectors, and which of them loses little enough.

`RerankerPrecisions` is the same for the last step of a reranker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, NamedTuple

import numpy as np

from tiewise.analysis.significance import bootstrap_intervals, loss_bounds, queries_for_loss
from tiewise.caching import cached_property
from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Bounds, Estimate, Estimates
from tiewise.metrics.names import parse
from tiewise.scoring.functions import LEVELS
from tiewise.scoring.precision_trials.setups import Setup
from tiewise.tables.model import BEST, Cell, Section, Table, columns_of
from tiewise.tables.results import Result
from tiewise.tables.wording import PLAIN, SHORT, NumberFormat, count_noun, format_percent

__all__ = ["DEFAULT_CUTOFF", "RERANKER_ROWS", "Difference", "PrecisionRow", "Precisions", "RerankerPrecisions", "Speed"]

#: How many of the first documents count if a measure has no cutoff.
DEFAULT_CUTOFF = 10
#: A query that loses more than this counts as one that loses much.
LARGE_LOSS = 0.1

#: The rows of a reranker, from the most to the least that is computed again.
RERANKER_ROWS = {
    **{level: LEVELS[level] for level in ("head", "logit", "score")},
    "native": "the activation in the type of the logits",
}

Verdict = Literal["reference", "keeps", "loses", "unknown"]


class Speed(NamedTuple):
    """How fast a search was: the mean and the standard deviation of its repetitions."""

    queries_per_second: float
    std: float
    batch: int
    repeats: int
    device: str


@dataclass(frozen=True, eq=False)
class PrecisionRow:
    """One way to store and score the vectors, or to compute the scores of a reranker, measured."""

    setup: Setup | str
    estimates: Mapping[Measure, Estimates]  #: by query
    judged: float | None  #: the share of judged documents in the first ranks
    rbo: Bounds  #: against the ranking of the reference
    rbr: Bounds | None  #: None for a reranker, whose rows have the same documents
    tied_share: float  #: of the first documents
    bytes: float = 0.0  #: of a document vector, with its share of the scales; not of the vectors for rescoring
    speed: Speed | None = None

    @property
    def measure(self) -> Measure:
        """The measure that decides."""
        return next(iter(self.estimates))

    @property
    def estimate(self) -> Estimate:
        """The mean over queries of the measure that decides, over all orders of ties."""
        return self.estimates[self.measure].mean()

    @property
    def expected(self) -> float:
        """Its expectation."""
        expected = self.estimate.expected
        assert expected is not None
        return expected


class Difference(NamedTuple):
    """A row less the reference, paired by query: the mean with a 95% interval, and bounds for all rows at once."""

    mean: float
    low: float
    high: float
    lower: float  #: one-sided, simultaneous over the rows
    upper: float
    differs: int  #: the number of queries with another value
    losing: float  #: the share of queries that lose more than 0.1


class Precisions(Result):
    """What each precision costs and saves: `rows`, `difference(setup)`, `choice`. The first row is the reference."""

    _name_column, _has_vectors = "vectors", True

    def __init__(
        self,
        rows: Sequence[PrecisionRow],
        measures: Sequence[Measure],
        max_loss: float | None,
        *,
        judged: bool,
        resamples: int,
        seed: int,
    ):
        self.rows, self.measures, self.max_loss, self.has_judgments = tuple(rows), tuple(measures), max_loss, judged
        self._resamples, self._seed = resamples, seed

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {count_noun(len(self.rows), 'row')}, {self.measure}, {self._queries}>"

    @property
    def measure(self) -> Measure:
        """The measure that decides."""
        return self.measures[0]

    @property
    def _queries(self) -> str:
        return count_noun(len(self.rows[0].estimates[self.measure]), "query", "queries")

    @property
    def reference(self) -> str:
        """The row that the others are compared with."""
        return str(self.rows[0].setup)

    @property
    def plot(self) -> Any:
        """The figure of this result: `loss()`."""
        return import_module("tiewise.figures.precision_losses").PrecisionPlots(self)

    def row(self, setup: str | Setup) -> PrecisionRow:
        """One row, by its notation."""
        wanted = self._parse(setup)
        for row in self.rows:
            if row.setup == wanted:
                return row
        raise InputError(f"There is no row '{wanted}'. There are: {', '.join(str(row.setup) for row in self.rows)}.")

    def _parse(self, setup: str | Setup) -> Setup | str:
        return Setup.parse(setup)

    @cached_property
    def _differences(self) -> dict[Measure, dict[Setup | str, Difference]]:
        return {measure: self._compute(measure) for measure in self.measures}

    def _compute(self, measure: Measure) -> dict[Setup | str, Difference]:
        reference = self.rows[0].estimates[measure].expected
        values: Floats = np.stack([row.estimates[measure].expected - reference for row in self.rows], axis=1)
        low, high = bootstrap_intervals(values, resamples=self._resamples, seed=self._seed)
        lower, upper = np.zeros((2, len(self.rows)))
        if len(self.rows) > 1:
            lower[1:], upper[1:] = loss_bounds(values[:, 1:], _worst_loss(reference), seed=self._seed)
        differs = (np.abs(values) > 1e-12).sum(axis=0)
        losing = (values < -LARGE_LOSS).mean(axis=0)
        mean = values.mean(axis=0)
        return {
            row.setup: Difference(
                mean=float(mean[at]),
                low=float(low[at]),
                high=float(high[at]),
                lower=float(lower[at]),
                upper=float(upper[at]),
                differs=int(differs[at]),
                losing=float(losing[at]),
            )
            for at, row in enumerate(self.rows)
        }

    def difference(self, setup: str | Setup, measure: str | Measure | None = None) -> Difference:
        """A row less the reference."""
        return self._differences[self.measure if measure is None else parse(measure)][self.row(setup).setup]

    def verdict(self, setup: str | Setup) -> Verdict:
        """Whether a row keeps the quality of the reference, up to `max_loss`.

        "keeps": the lower bound is above −max_loss; "loses": the upper bound is below −max_loss; else "unknown". The
        bounds hold for all rows at once, and for a query more that loses all (see `loss_bounds`).
        """
        if self.max_loss is None:
            raise InputError("There is no verdict without max_loss. Say how much may be lost, such as max_loss=0.005.")
        found = self.row(setup)
        if found is self.rows[0]:
            return "reference"
        difference = self.difference(found.setup)
        if difference.lower > -self.max_loss:
            return "keeps"
        return "loses" if difference.upper < -self.max_loss else "unknown"

    @property
    def choice(self) -> PrecisionRow | None:
        """The row with the smallest vectors that keeps the quality of the reference, if they are smaller than its own;
        of several, the one whose lower bound is highest. None if there is none, or if these queries cannot tell.
        """
        kept = [row for row in self._candidates if self.verdict(row.setup) == "keeps"]
        return min(kept, key=lambda row: (row.bytes, -self.difference(row.setup).lower), default=None)

    @property
    def _candidates(self) -> list[PrecisionRow]:
        """The rows that save something."""
        return [row for row in self.rows if row.bytes < self.rows[0].bytes]

    @property
    def sentence(self) -> str:
        """What to choose, or that these queries cannot tell."""
        loss, found = SHORT.short(self.max_loss or 0), self.choice
        if found is not None:
            return f"Choose {found.setup}: {self._advantage(found)}. {self._evidence(found, loss)}"
        if not self._candidates:
            return f"Stay with {self.reference}: no row has smaller vectors."
        unknown = [row for row in self._candidates if self.verdict(row.setup) == "unknown"]
        if not unknown:
            return f"Stay with {self.reference}: every row with smaller vectors {self._loses(f'more than {loss}')}."
        reference = self.rows[0].estimates[self.measure].expected
        needed = queries_for_loss(self.max_loss or 0, _worst_loss(reference))
        if len(reference) < needed:
            cannot = f"{self._queries} cannot show a loss below {self.max_loss:g}; {needed:,} could."
            return f"{cannot} Stay with {self.reference}."
        best = max(unknown, key=lambda row: self.difference(row.setup).lower)
        return (
            f"{self._queries} cannot tell whether a row {self._loses(f'less than {loss}')}: the highest "
            f"{self._bound_of(best)}, of {best.setup}. Use more queries, allow a larger loss, or stay with "
            f"{self.reference}."
        )

    def _loses(self, amount: str) -> str:
        """That a row loses an amount of the measure. Without judgments it is not quality that is lost."""
        what = "loses" if self.has_judgments else f"agrees less with the {self.reference} ranking, by"
        return f"{what} {amount} {self.measure}"

    def _bound_of(self, row: PrecisionRow) -> str:
        """The lower bound of a row, for a sentence."""
        rows = "" if len(self.rows) == 2 else f" for all {len(self.rows) - 1} rows at once"
        return f"95% lower bound{rows} is {SHORT.signed(self.difference(row.setup).lower)}"

    def _evidence(self, row: PrecisionRow, loss: str) -> str:
        """What shows that a row keeps the quality of the reference."""
        return f"It {self._loses(f'less than {loss}')}: the {self._bound_of(row)}."

    def _advantage(self, row: PrecisionRow) -> str:
        """Why to choose a row."""
        assert isinstance(row.setup, Setup)
        whole = self.rows[0].bytes
        more = "" if row.setup.rescore is None else f", and {whole:,.0f} more on disk for rescoring"
        return f"{_format_bytes(row.bytes)} bytes a vector instead of {whole:,.0f}{more}"

    # -- tables -------------------------------------------------------------------------------------------------------

    def _section(self, numbers: NumberFormat = PLAIN) -> Section:
        """What people read, with numbers in a format."""
        values = self._columns_for_people(numbers)
        names, *others = values
        rows = list(zip(*values.values(), strict=True))
        table = Table(columns_of([names], others), rows, notes=self._legend())
        said = ["", self.sentence] if self.max_loss is not None else []
        return Section([table, *said], f"{self._title} · {self._queries}", self.notes)

    @property
    def _title(self) -> str:
        """What the values are."""
        if self.has_judgments:
            return str(self.measure)
        return f"Agreement with the {self.reference} ranking ({self.measure} against its first documents)"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        notes = []
        if not self.has_judgments:
            notes.append(
                f"There are no judgments: the first documents of the {self.reference} ranking are taken for relevant. "
                "So the values show agreement with that ranking, not quality."
            )
        if any(isinstance(row.setup, Setup) and row.setup.docs in ("int8", "int4") for row in self.rows):
            notes.append("The quantisation ranges of int8 and int4 are set from the documents, not from the queries.")
        speed = self.rows[0].speed
        if speed is not None:
            notes.append(
                f"Speed: the mean of {count_noun(speed.repeats, 'search', 'searches')} for all {speed.batch:,} queries "
                f"at once on {speed.device}, ± the standard deviation."
            )
        return tuple(notes)

    def _legend(self) -> tuple[str, ...]:
        losing = "losing: queries that lose" if self.has_judgments else "less: queries that agree less by"
        return (
            f"{self._legend_of_setups} {self.measure}: expected [lowest, highest], and std, over the orders of ties. "
            f"difference: to {self.reference}, paired; 95% interval: over queries, for the row alone."
            f"{self._legend_of_bounds} differ: queries with another value; {losing} more than {LARGE_LOSS:g}. "
            f"RBO{', RBR' * self._has_vectors}: similarity "
            f"to the {self.reference} ranking. judged: the share of judged documents in the first "
            f"{self.measure.cutoff or DEFAULT_CUTOFF} ranks.",
        )

    @property
    def _legend_of_bounds(self) -> str:
        if self.max_loss is None:
            return ""
        chosen = f" {BEST} chosen." if self.choice is not None else ""
        return (
            " bounds: lower and upper 95% bounds, one-sided, for all rows at once, with one more query at its worst or "
            f"best. verdict: whether they exclude a loss of {SHORT.short(self.max_loss)} or more; unknown: there "
            f"are too few queries to say.{chosen}"
        )

    @property
    def _legend_of_setups(self) -> str:
        setups = [row.setup for row in self.rows if isinstance(row.setup, Setup)]
        notation = {
            "queries:documents": any(setup.queries != setup.docs for setup in setups),
            "@dimensions": any(setup.dims is not None for setup in setups),
            "/scores": any(setup.scores != "float32" for setup in setups),
            "+documents rescored": any(setup.rescore is not None for setup in setups),
        }
        used = ", ".join(part for part, is_used in notation.items() if is_used)
        names = f"vectors: as stored{f' ({used})' if used else ''}."
        bytes_ = "bytes: of a document vector, with its share of the scales"
        full = f"; rescoring also reads full vectors from disk, {self.rows[0].bytes:,.0f} bytes each"
        return f"{names} {bytes_}{full if notation['+documents rescored'] else ''}."

    def _columns_for_people(self, numbers: NumberFormat) -> dict[str, list[object]]:
        differences = [self.difference(row.setup) for row in self.rows]
        best = self.choice if self.max_loss is not None else None
        columns: dict[str, list[object]] = {
            self._name_column: [Cell(str(row.setup), mark=BEST if row is best else "") for row in self.rows],
            **({"bytes": [_format_bytes(row.bytes) for row in self.rows]} if self._has_vectors else {}),
            str(self.measure): [_estimate_cell(row.estimate, numbers) for row in self.rows],
            "std": [numbers.number(row.estimate.std) for row in self.rows],
            "difference": ["", *(numbers.signed(one.mean) for one in differences[1:])],
            "95% interval": ["", *(f"[{numbers.end(one.low)}, {numbers.end(one.high)}]" for one in differences[1:])],
            **({} if self.max_loss is None else {"bounds": self._bounds(numbers)}),
            "differ": ["", *(one.differs for one in differences[1:])],
            "losing" if self.has_judgments else "less": [format_percent(one.losing) for one in differences],
            "RBO": [_bound(row.rbo, "extrapolated", numbers) for row in self.rows],
            **({"RBR": [_bound(row.rbr, "lower", numbers) for row in self.rows]} if self._has_vectors else {}),
            "tied": [format_percent(row.tied_share) for row in self.rows],
            "judged": [format_percent(row.judged or 0.0) for row in self.rows],
        }
        if self.rows[0].speed is not None:
            columns["queries/s"] = [_speed_cell(row.speed) for row in self.rows]
        if self.max_loss is not None:
            words = {} if self.has_judgments else {"loses": "agrees less"}
            verdicts = [self.verdict(row.setup) for row in self.rows]
            columns["verdict"] = [words.get(verdict, verdict) for verdict in verdicts]
        return columns

    def _bounds(self, numbers: NumberFormat) -> list[object]:
        """The bounds for all rows at once, with one more digit, because they are compared with the largest loss."""
        finer = replace(numbers, digits=numbers.digits + 1)
        each = [self.difference(row.setup) for row in self.rows[1:]]
        return ["", *(finer.interval(one.lower, one.upper) for one in each)]

    def to_dict(self) -> dict[str, Any]:
        """The rows, what to choose, and the notes as plain values; `write_report` takes them."""
        choice = None if self.max_loss is None else self.choice
        return {
            "reference": self.reference,
            "has_judgments": self.has_judgments,
            "max_loss": self.max_loss,
            "choice": None if choice is None else str(choice.setup),
            "sentence": None if self.max_loss is None else self.sentence,
            "notes": list(self.notes),
            "rows": self._records().records(),
        }

    def _records(self) -> Table:
        rows = (self._record(row, measure) for measure in self.measures for row in self.rows)
        return Table.of_records(self._record_columns, rows)

    @property
    def _record_columns(self) -> list[str]:
        return [*_SETUP_COLUMNS, *_COLUMNS]

    def _setup_record(self, row: PrecisionRow) -> dict[str, object]:
        setup = row.setup
        assert isinstance(setup, Setup)
        return {
            "setup": str(setup),
            "encoder": setup.encoder,
            "queries": setup.queries,
            "docs": setup.docs,
            "scores": setup.scores,
            "dims": setup.dims,
            "rescore": setup.rescore,
            "bytes": row.bytes,
        }

    def _record(self, row: PrecisionRow, measure: Measure) -> dict[str, object]:
        estimate, difference = row.estimates[measure].mean(), self.difference(row.setup, measure)
        speed = row.speed
        return {
            **self._setup_record(row),
            "measure": measure.name,
            "expected": estimate.expected,
            "minimum": estimate.minimum,
            "maximum": estimate.maximum,
            "std": estimate.std,
            "difference": difference.mean,
            "difference_low": difference.low,
            "difference_high": difference.high,
            "lower": difference.lower,
            "upper": difference.upper,
            "differs": difference.differs,
            "losing": difference.losing,
            "rbo": row.rbo.extrapolated.expected if row.rbo.extrapolated else None,
            "rbr": row.rbr.lower.expected if row.rbr and row.rbr.lower else None,
            "tied_share": row.tied_share,
            "judged": row.judged,
            "queries_per_second": speed.queries_per_second if speed else None,
            "queries_per_second_std": speed.std if speed else None,
            "batch": speed.batch if speed else None,
            "repeats": speed.repeats if speed else None,
            "device": speed.device if speed else None,
            "verdict": self.verdict(row.setup) if self.max_loss is not None and measure == self.measure else None,
        }


class RerankerPrecisions(Precisions):
    """What each way to compute the scores of a reranker costs. The first row is the reference.

    There is no RBR: all rows have the same documents.
    """

    _name_column, _has_vectors = "scores", False

    def _parse(self, setup: str | Setup) -> Setup | str:
        return str(setup)

    @property
    def choice(self) -> PrecisionRow | None:
        """The row with the most that is computed again, which costs next to nothing: the reference, unless that is
        another model. Then the first row that keeps its quality; None if these queries cannot tell.
        """
        if self.rows[0].setup in RERANKER_ROWS:
            return self.rows[0]
        kept = [row for row in self._candidates if self.verdict(row.setup) == "keeps"]
        return next(iter(kept), None)

    @property
    def _candidates(self) -> list[PrecisionRow]:
        return [row for row in self.rows if row.setup in RERANKER_ROWS]

    def _advantage(self, row: PrecisionRow) -> str:
        return RERANKER_ROWS[str(row.setup)]

    def _evidence(self, row: PrecisionRow, loss: str) -> str:
        if row is not self.rows[0]:
            return super()._evidence(row, loss)
        return "It costs next to nothing, and of these rows it is the most precise."

    @property
    def _legend_of_setups(self) -> str:
        shown = [f"{name}: {text}" for name, text in RERANKER_ROWS.items() if name in [row.setup for row in self.rows]]
        return "; ".join(shown) + "."

    @property
    def _record_columns(self) -> list[str]:
        return ["setup", *(name for name in _COLUMNS if name not in _VECTOR_COLUMNS)]

    def _setup_record(self, row: PrecisionRow) -> dict[str, object]:
        return {"setup": str(row.setup)}


#: The columns of TSV and JSON that describe a row of vectors, with what they mean.
_SETUP_COLUMNS = {
    "setup": "how vectors are stored and scored, in short",
    "encoder": "the name of other vectors, from a model in another type",
    "queries": "the type of the stored queries",
    "docs": "the type of the stored documents",
    "scores": "the type of the scores",
    "dims": "the dimensions that are kept; empty: all",
    "rescore": "how many of the first documents are scored again in float32",
    "bytes": "of a document vector, with its share of the scales",
}
#: The columns of all rows.
_COLUMNS = {
    "measure": "the measure",
    "expected": "its mean over the orders of ties and over queries",
    "minimum": "the lowest over the orders of ties",
    "maximum": "the highest",
    "std": "the standard deviation over the orders of ties",
    "difference": "the mean difference to the reference, paired by query",
    "difference_low": "the lower end of its 95% interval over queries",
    "difference_high": "the upper end",
    "lower": "the one-sided 95% lower bound that holds for all rows at once",
    "upper": "the upper bound",
    "differs": "the number of queries with another value than the reference",
    "losing": "the share of queries that lose more than 0.1",
    "rbo": "RBO to the ranking of the reference, extrapolated",
    "rbr": "RBR against the ranking of the reference, its lower bound",
    "tied_share": "the share of tied rows in the lists",
    "judged": "the share of judged documents in the first ranks",
    "queries_per_second": "the mean speed of the search",
    "queries_per_second_std": "its standard deviation over the repetitions",
    "batch": "queries at once",
    "repeats": "repetitions",
    "device": "where it was computed",
    "verdict": "reference, keeps, loses or unknown, with a largest loss",
}


#: Those of them that only vectors have.
_VECTOR_COLUMNS = ("rbr", "queries_per_second", "queries_per_second_std", "batch", "repeats", "device")


def _worst_loss(reference: Floats) -> float:
    """What a query can lose: 1, or, of a measure that goes beyond 1, the largest value of the reference."""
    return max(1.0, float(reference.max()))


def _format_bytes(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"


def _estimate_cell(estimate: Estimate, numbers: NumberFormat) -> Cell:
    ends = numbers.interval(estimate.minimum, estimate.maximum) if estimate.range else ""
    return Cell(numbers.number(estimate.expected), ends)


def _bound(bounds: Bounds | None, part: str, numbers: NumberFormat) -> str:
    estimate: Estimate | None = getattr(bounds, part, None)
    return numbers.number(None if estimate is None else estimate.expected)


def _speed_cell(speed: Speed | None) -> Cell:
    assert speed is not None
    return Cell(f"{speed.queries_per_second:,.0f}", f"± {speed.std:,.0f}")
