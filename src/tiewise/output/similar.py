"""The sheet of a `Similarity`: a line for each pair of runs, or a matrix where there are more than two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations
from math import isnan
from typing import Any, NamedTuple

from tiewise._version import __version__
from tiewise.data.runs import Run
from tiewise.errors import counted
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.output.grid import Cell, Grid, Line, cell_of
from tiewise.output.numerals import NONE, number
from tiewise.output.rows import SIMILARITY_COLUMNS, rounded
from tiewise.output.view import View
from tiewise.rankings.run_similarity import Similarity

__all__ = ["Similar", "is_matrix"]

LONGEST_HEAD = 16  # where a name is longer, the columns of a matrix have numbers


def is_matrix(runs: int, view: View) -> bool:
    """Whether people see a matrix of so many runs, which holds one number of each pair."""
    return runs > 2 and not view.per_query and view.format in ("table", "markdown", "latex")


class _Found(NamedTuple):
    """What was found for a pair and a query, or for a pair over all queries."""

    observed: str
    reference: str
    query: str
    bounds: Bounds
    mean: bool = False


@dataclass(frozen=True)
class Similar:
    """The similarity of some runs, to be shown."""

    found: Similarity
    runs: Mapping[str, Run]
    edge: str = "extend"

    @property
    def title(self) -> str:
        """The measure and the number of queries."""
        return f"{self.found.measure} · {counted(len(self.found.queries), 'query', 'queries')}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        left = self.found.left_out
        are = "is" if left == 1 else "are"
        return (f"{counted(left, 'query', 'queries')} {are} not in all runs and left out.",) if left else ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(SIMILARITY_COLUMNS)

    def rows(self, view: View) -> Iterator[dict[str, Any]]:
        """Each pair, query by query if that was asked for, and then its mean as ``all``."""
        for one in self._found(view):
            yield {"observed": one.observed, "reference": one.reference, "query": one.query} | _statistics(one.bounds)

    def document(self, view: View) -> dict[str, Any]:
        """What was compared, and the rows."""
        sources = {name: run.source for name, run in self.runs.items()}
        return {
            "version": __version__,
            "measure": self.found.measure.name,
            "edge": self.edge,
            "runs": [{"name": name} | (source.to_dict() if source else {}) for name, source in sources.items()],
            "queries": len(self.found.queries),
            "queries_left_out": self.found.left_out,
            "notes": list(view.notes),
            "pairs": rounded(list(self.rows(view)), view.digits),
        }

    def grid(self, view: View) -> Grid:
        """A line for each pair, or a matrix."""
        return self._matrix(view) if is_matrix(len(self.runs), view) else self._list(view)

    def _found(self, view: View) -> Iterator[_Found]:
        pairs = combinations if self.found.measure.symmetric else permutations
        for pair in pairs(self.found.systems, 2):
            if view.per_query:
                for query, bounds in self.found.per_query(*pair).items():
                    yield _Found(*pair, query, bounds)
            yield _Found(*pair, "all", self.found.pair(*pair), mean=True)

    def _list(self, view: View) -> Grid:
        found = list(self._found(view))
        parts = [part for part in Similarity.PARTS if getattr(found[0].bounds, part) is not None]
        lines = [
            Line(
                (one.observed, one.reference, *([one.query] if view.per_query else [])),
                (
                    *(cell_of(_known(getattr(one.bounds, part)), self.found.measure, view) for part in parts),
                    Cell(number(one.bounds.residual, view.places)),
                ),
                summary=view.per_query and one.mean,
            )
            for one in found
        ]
        names = ("observed", "reference", *(["query"] if view.per_query else []))
        return Grid(names, (*parts, "residual"), tuple(lines), _legend(parts))

    def _matrix(self, view: View) -> Grid:
        systems = self.found.systems
        numbered = max(map(len, systems)) > LONGEST_HEAD
        heads = tuple(map(str, range(1, len(systems) + 1))) if numbered else systems
        lines = [
            Line(
                (head, system) if numbered else (system,),
                tuple(Cell(NONE if isnan(value) else number(value, view.places)) for value in row.tolist()),
            )
            for head, system, row in zip(heads, systems, self.found.matrix(), strict=True)
        ]
        return Grid(("", "run") if numbered else ("run",), heads, tuple(lines), self._matrix_legend())

    def _matrix_legend(self) -> tuple[str, ...]:
        extrapolated = self.found.pair(*self.found.systems[:2]).extrapolated is not None
        what = "extrapolated value" if extrapolated else "lower bound"
        sides = "" if self.found.measure.symmetric else "; a row is the observed run, a column the reference"
        return (f"The {what}, expected over the orders of ties, mean over queries{sides}.",)


_WORDS = {
    "lower": "if all that was not seen disagrees",
    "upper": "if it agrees as far as it can",
    "extrapolated": "if it agrees as much as what was seen",
}


def _legend(parts: list[str]) -> tuple[str, ...]:
    return ("; ".join(f"{part}: {_WORDS[part]}" for part in parts) + ". [lowest, highest] over the orders of ties.",)


def _known(estimate: Estimate | None) -> Estimate | None:
    """The estimate, unless it is not defined for these rankings (one of them is empty)."""
    return None if estimate is None or estimate.expected is None or isnan(estimate.expected) else estimate


def _statistics(bounds: Bounds) -> dict[str, float | None]:
    plain: dict[str, float | None] = {}
    for part in Similarity.PARTS:
        estimate = _known(getattr(bounds, part)) or Estimate()
        plain |= {part: estimate.expected, f"{part}_minimum": estimate.minimum, f"{part}_maximum": estimate.maximum}
    plain["residual"] = bounds.residual
    return {name: plain[name] for name in SIMILARITY_COLUMNS if name in plain}
