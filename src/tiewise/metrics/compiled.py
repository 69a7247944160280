"""The measures that people use most, by compiled closed forms.

A sum whose terms have one of three forms is handed down as tables: gains along the judgments, weights by rank, and for
each query how many ranks count and what the sum is divided by. All of them follow from the measure and the judgments,
so they are made once for any number of runs. The formulas are in src/measures; without a compiler, and for all other
measures, `tiewise.metrics.engine` has them too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Floats, freeze
from tiewise.data.judgments import Qrels
from tiewise.data.native import native
from tiewise.errors import MeasureError
from tiewise.metrics import engine
from tiewise.metrics.definition import Measure
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.ties.counted import Counted, CountedLists
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import TOOL_ORDERS

#: The forms of terms, as src/measures numbers them.
FORMS = ("sum", "average precision", "first")
#: What such a term is made of.
DEFINITION = (
    *("gain", "scaled_gain", "payoff", "divisor", "base", "depth", "key", "sort_key", "sorts_by_label"),
    *("terms", "law", "value_range"),
)
#: The statistics of a measure; low and high are bounds of what is expected if lists are truncated.
STATISTICS = ("expected", "minimum", "maximum", "variance", "oblivious", "low", "high")
#: The length of a list that is longer than any.
ENDLESS = 2**52
#: The most ranks that a table has weights for.
MAX_RANKS = 1 << 16


class Tables(NamedTuple):
    """The tables of those of some measures that have them."""

    rows: dict[Measure, int]  # of their statistics
    compiled: list[Any]


class Statistics:
    """The statistics of some measures for each query."""

    def __init__(self, rows: Mapping[Measure, int], values: Floats, reached: NDArray[np.bool_]):
        self.rows = rows  #: of the measures
        #: (n_statistics, n_measures, n_queries)
        self.values = values
        #: (n_measures, n_queries): whether a measure looks at ranks after which a list may be truncated.
        self.reached = reached

    def column(self, name: str) -> Floats:
        """The statistic of a name, (n_measures, n_queries)."""
        if name == "std":
            return np.sqrt(self.values[3])
        return self.values[STATISTICS.index(name)]

    def with_oblivious(self, other: Statistics) -> Statistics:
        """The same with the oblivious values of another reading of the scores."""
        values = self.values.copy()
        values[4] = other.values[4]
        return Statistics(self.rows, freeze(values), self.reached)

    @cached_property
    def sums(self) -> list[list[float]]:
        """The sum over queries of each statistic, by measure."""
        sums: list[list[float]] = np.add.reduce(self.values, axis=-1).T.tolist()
        return sums

    @cached_property
    def is_reached(self) -> list[bool]:
        """Whether a measure looks at such ranks in any query."""
        found: list[bool] = np.logical_or.reduce(self.reached, axis=-1).tolist()
        return found


def compute_statistics(
    tables: Tables,
    counted: Counted,
    order: str | None,
    dtype: str,
    depth: int | None,
    *,
    truncated: bool,
    moments: bool = True,
) -> Statistics:
    """The statistics of measures that have tables, for the scores read as a type.

    Without `moments`, there are no expectations and no variances.
    """
    if isinstance(counted, CountedLists):
        place = 0 if order is None else 1 + TOOL_ORDERS.index(order)
        rounded = dtype == "float32"
        found = counted.lists.statistics(tables.compiled, place, rounded, depth or 0, not truncated, moments)
    else:
        module, ties = native(), counted.ties[dtype]
        assert module is not None
        ties = ties if depth is None else ties.to_depth(depth)
        before = None if order is None else ties.before[order]
        cut = ties.may_be_truncated if truncated else np.zeros(len(ties.length), dtype=bool)
        of_lists = ties.limit, ties.last_start, ties.lowest_size, cut
        found = module.statistics(
            tables.compiled, ties.qrels.offsets, ties.start, ties.size, before, *of_lists, moments
        )
    return Statistics(tables.rows, *found)


NO_TABLES = Tables({}, [])


def tables_of(measures: tuple[Measure, ...], counted: Counted) -> Tables:
    """The tables of some measures for some lists.

    There are none for a measure that has another form or needs judgments that were not counted, if lists are condensed,
    and if tables are large.
    """
    if counted.is_condensed or (not isinstance(counted, CountedLists) and native() is None):
        return NO_TABLES
    qrels, n_weights = counted.qrels, _round_up(counted.longest)

    def make() -> Tables:
        retrieve = cache(partial(_retrieve_all, qrels))
        tables = {
            one: found
            for one in measures
            if not (one.needs_all_judged and qrels.pool is not None)
            and (found := _tables(one, qrels, n_weights, retrieve))
        }
        return Tables({one: row for row, one in enumerate(tables)}, list(tables.values()))

    return qrels.derived(("tables", measures, n_weights), make)


def _tables(measure: Measure, qrels: Qrels, n_weights: int, retrieve: Callable[[], GroupedJudgments]) -> Any | None:
    n_weights = n_weights if measure.cutoff is None else min(n_weights, _round_up(measure.cutoff))
    if n_weights > MAX_RANKS + 1 or measure.judged_only or not _is_of_its_form(measure):
        return None
    return qrels.derived(("tables", measure, n_weights), lambda: _make_tables(measure, qrels, n_weights, retrieve))


def _round_up(n_ranks: int) -> int:
    """The size of a table of weights that has this rank: lists of similar lengths share tables."""
    return (1 << max(n_ranks - 1, 127).bit_length()) + 1


def _make_tables(
    measure: Measure, qrels: Qrels, n_weights: int, retrieve: Callable[[], GroupedJudgments]
) -> Any | None:
    module = native()
    assert module is not None and measure.form is not None
    q = retrieve()
    try:
        gain = np.empty(len(qrels))
        gain[q.rows] = measure.scaled_gain(q)
        divisor, by_length = engine.divisors(measure, q), measure.divisor(q) is q.length  # of P without a cutoff
        depth = np.asarray(measure.depth(q)).astype(np.int64)
    except MeasureError:  # of a label, perhaps of a document that is not in the run
        return None
    form, weight = FORMS.index(measure.form), _weights(measure, n_weights)
    return module.make_tables(form, gain, weight, depth, divisor, by_length)


@lru_cache(maxsize=1024)
def _is_of_its_form(measure: Measure) -> bool:
    """Whether it has a form, and no subclass of the class that declares it overrides what the form stands for."""
    cls = type(measure)
    declaring = next(one for one in cls.__mro__ if "form" in vars(one))
    owners = (next(one for one in cls.__mro__ if name in vars(one)) for name in DEFINITION)
    is_sum = measure.additive and measure.sorted_extremes and measure.takes_depth
    return is_sum and measure.form is not None and all(issubclass(declaring, owner) for owner in owners)


@lru_cache(maxsize=64)
def _weights(measure: Measure, n_weights: int) -> Floats:
    """The weights of ranks, from rank 1 on."""
    rank = np.arange(1.0, n_weights)
    return freeze(np.append(0.0, measure.payoff(rank, np.zeros_like(rank))))


def _retrieve_all(qrels: Qrels) -> GroupedJudgments:
    """Endless lists with all judged documents first, without ties."""
    n, one = len(qrels.queries), np.ones(len(qrels), np.int64)
    rank = np.arange(len(qrels)) - qrels.offsets[qrels.query]
    of_query = np.full(n, ENDLESS), np.ones(n, bool), np.zeros(n), np.ones(n, np.int64)
    return GroupedJudgments(TieGroups(qrels, one.astype(np.float64), rank, one, *of_query))
