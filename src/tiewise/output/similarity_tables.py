"""The tables of a `Similarity`: a row for each pair of runs, or a matrix where there are more than two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import isnan
from typing import Any, NamedTuple

from tiewise._version import __version__
from tiewise.data.runs import Run
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.output.cells import estimate_cell
from tiewise.output.options import OutputOptions
from tiewise.rankings.pair_measures import PairMeasure
from tiewise.rankings.run_similarity import Similarity
from tiewise.tables.model import Section, Table, columns_of
from tiewise.tables.wording import MISSING, count_noun

__all__ = ["SIMILARITY_COLUMNS", "VALUE_COLUMNS", "SimilarityTables", "is_matrix"]

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines, as stable as those of ``tiewise evaluate``.
SIMILARITY_COLUMNS = {
    "observed": "the name of one run",
    "reference": "the name of the run it is measured against; a symmetric measure has one row for the two",
    "query": "the query's id, or `all` for the mean over the queries that all runs have",
    "lower": "the value if all that was not seen disagrees: its mean over the orders of ties",
    "lower_minimum": "the lowest that an order of the tied documents can make of that",
    "lower_maximum": "the highest",
    "upper": "the value if what was not seen agrees as far as it can: its mean over the orders of ties",
    "upper_minimum": "the lowest",
    "upper_maximum": "the highest",
    "extrapolated": "the value if what was not seen agrees as much as what was (RBO): its mean",
    "residual": "upper − lower: what the unseen leaves open",
}
#: More columns for a measure of the lists as they are: MED_RBP, tau and tau_ap.
VALUE_COLUMNS = {
    "value": "the value of the lists as they are, if nothing follows them: its mean over the orders of ties",
    "value_minimum": "the lowest",
    "value_maximum": "the highest",
}

LONGEST_HEADING = 16  # where a name is longer, the columns of a matrix have numbers


def is_matrix(runs: int, options: OutputOptions) -> bool:
    """Whether people see a matrix of these runs, with one number for each pair."""
    return runs > 2 and not options.per_query and options.format in ("table", "markdown", "latex")


class _Pair(NamedTuple):
    """The bounds of a pair for one query, or their mean over all queries."""

    observed: str
    reference: str
    query: str
    bounds: Bounds
    is_mean: bool = False


@dataclass(frozen=True)
class SimilarityTables:
    """The similarity of some runs, to show."""

    similarity: Similarity
    runs: Mapping[str, Run]
    edge: str = "extend"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        left = self.similarity.left_out
        are = "is" if left == 1 else "are"
        notes = [f"{count_noun(left, 'query', 'queries')} {are} not in all runs and left out."] if left else []
        return (*notes, *self.similarity.notes)

    def section(self, options: OutputOptions) -> Section:
        """A row for each pair, or a matrix."""
        table = self._matrix(options) if is_matrix(len(self.runs), options) else self._pair_table(options)
        title = f"{self.similarity.measure} · {count_noun(len(self.similarity.queries), 'query', 'queries')}"
        return Section([table], title, options.notes)

    def records(self, options: OutputOptions) -> Table:
        """A row for each pair, query by query if these are asked for, and the mean as ``all``."""
        parts = self.similarity.measure.parts
        rows = (pair._asdict() | _statistics(pair.bounds, parts) for pair in self._pairs(options))
        return Table.of_records(SIMILARITY_COLUMNS | (VALUE_COLUMNS if "value" in parts else {}), rows)

    def document(self, options: OutputOptions) -> dict[str, Any]:
        """What was compared, and the rows."""
        sources = {name: run.source for name, run in self.runs.items()}
        return {
            "version": __version__,
            "measure": self.similarity.measure.name,
            "edge": self.edge,
            "runs": [{"name": name} | (source.to_dict() if source else {}) for name, source in sources.items()],
            "queries": len(self.similarity.queries),
            "queries_left_out": self.similarity.left_out,
            "notes": list(options.notes),
            "pairs": self.records(options).records(),
        }

    def _pairs(self, options: OutputOptions) -> Iterator[_Pair]:
        pairs = combinations if self.similarity.measure.symmetric else permutations
        for pair in pairs(self.similarity.systems, 2):
            if options.per_query:
                for query, bounds in self.similarity.per_query(*pair).items():
                    yield _Pair(*pair, query, bounds)
            yield _Pair(*pair, "all", self.similarity.pair(*pair), is_mean=True)

    def _pair_table(self, options: OutputOptions) -> Table:
        pairs = list(self._pairs(options))
        measure = self.similarity.measure
        parts = [part for part in measure.parts if getattr(pairs[0].bounds, part) is not None]
        residual = ["residual"] if "upper" in measure.parts else []
        query = ["query"] if options.per_query else []
        rows = [
            (
                pair.observed,
                pair.reference,
                *([pair.query] if options.per_query else []),
                *(estimate_cell(_defined(getattr(pair.bounds, part)), measure, options) for part in parts),
                *(options.numbers.number(pair.bounds.residual) for _ in residual),
            )
            for pair in pairs
        ]
        means = (place for place, pair in enumerate(pairs) if options.per_query and pair.is_mean)
        columns = columns_of(["observed", "reference", *query], [*parts, *residual])
        return Table(columns, rows, notes=(_legend(parts, measure),), summary=frozenset(means))

    def _matrix(self, options: OutputOptions) -> Table:
        systems = self.similarity.systems
        numbered = max(map(len, systems)) > LONGEST_HEADING
        heads = tuple(map(str, range(1, len(systems) + 1))) if numbered else systems
        rows = [
            (
                *([head] if numbered else []),
                system,
                *(MISSING if isnan(value) else options.numbers.number(value) for value in row.tolist()),
            )
            for head, system, row in zip(heads, systems, self.similarity.matrix(), strict=True)
        ]
        legend = f"{self._matrix_legend()}{self._diagonal_legend(options)}"
        return Table(columns_of(["", "run"] if numbered else ["run"], heads), rows, notes=(legend,))

    def _diagonal_legend(self, options: OutputOptions) -> str:
        """Why a run differs from itself, if one does in the digits shown."""
        same = 0.0 if self.similarity.measure.is_distance else 1.0
        itself = self.similarity.matrix().diagonal().tolist()
        if not any(options.numbers.differ(value, same) for value in itself if not isnan(value)):
            return ""
        side = "above 0" if same == 0 else "below 1"
        why = "two independent orders of its ties differ"
        if self.similarity.score_part == "lower":
            why = "what follows its list is not seen, and two independent orders of its ties, if it has any, differ"
        return f" A run can be {side} against itself: {why}."

    def _matrix_legend(self) -> str:
        measure = self.similarity.measure
        what = {"extrapolated": "The extrapolated value", "value": "The value of the lists as they are"}
        sides = "" if measure.symmetric else "; a row is the observed run, a column the reference"
        shown = what.get(self.similarity.score_part, "The lower bound")
        return f"{shown}, expected over the orders of ties, mean over queries{sides}.{_DISTANCE * measure.is_distance}"


_DISTANCE = " It is a distance: 0 for the same ranking."
_PARTS = {
    "value": "of the lists as they are, if nothing follows them",
    "lower": "if all that was not seen disagrees",
    "upper": "if it agrees as far as it can",
    "extrapolated": "if it agrees as much as what was seen",
}


_DISTANCE_PARTS = _PARTS | {"lower": "if what was not seen agrees as far as it can", "upper": _PARTS["lower"]}


def _legend(parts: list[str], measure: PairMeasure) -> str:
    words = _DISTANCE_PARTS if measure.is_distance else _PARTS
    text = "; ".join(f"{part}: {words[part]}" for part in parts)
    return f"{text}. [lowest, highest] over the orders of ties.{_DISTANCE * measure.is_distance}"


def _defined(estimate: Estimate | None) -> Estimate | None:
    """The estimate, or None if it is not defined for these rankings (one of them is empty)."""
    return None if estimate is None or estimate.expected is None or isnan(estimate.expected) else estimate


def _statistics(bounds: Bounds, parts: Sequence[str]) -> dict[str, float | None]:
    plain: dict[str, float | None] = {"residual": bounds.residual if "upper" in parts else None}
    for part in Similarity.PARTS:
        estimate = (_defined(getattr(bounds, part)) if part in parts else None) or Estimate()
        plain |= {part: estimate.expected, f"{part}_minimum": estimate.minimum, f"{part}_maximum": estimate.maximum}
    return plain
