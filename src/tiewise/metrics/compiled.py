"""The measures that people use most, by compiled closed forms.

A sum whose terms have one of three forms is handed down as tables: gains along the judgments, weights by rank, and for
each query how many ranks count and what the sum is divided by. All of them follow from the measure and the judgments,
so they are made once for any number of runs. The formulas are in src/measures; without a compiler, and for all other
measures, `tiewise.metrics.engine` has them too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tiewise.data.columns import Floats, freeze
from tiewise.data.judgments import Qrels
from tiewise.data.native import native
from tiewise.errors import MeasureError
from tiewise.metrics import engine
from tiewise.metrics.definition import Measure
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.ties.counted import CompiledLists, Counted
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import TOOL_ORDERS

#: The forms of terms, as src/measures numbers them.
FORMS = ("sum", "average precision", "first")
#: The length of a list that is longer than any.
ENDLESS = 2**52


class Statistics(NamedTuple):
    """The statistics of some measures for each query."""

    #: (7, n_measures, n_queries): expected, minimum, maximum, variance, oblivious, and bounds of what is expected if
    #: lists are truncated.
    values: Floats
    reached: list[bool]  # (n_measures,): whether a measure looks at ranks after which a list may be truncated

    def column(self, name: str) -> Floats:
        """The statistic of a name, (n_measures, n_queries)."""
        if name == "std":
            return np.sqrt(self.values[3])
        return self.values[("expected", "minimum", "maximum", "variance", "oblivious").index(name)]


def compute_statistics(
    tables: list[Any], counted: Counted, order: str | None, dtype: str, depth: int | None, *, truncated: bool
) -> Statistics:
    """The statistics of measures that have tables, for the scores read as a type."""
    if isinstance(counted.ties, CompiledLists):
        place = 0 if order is None else 1 + TOOL_ORDERS.index(order)
        found = counted.ties.lists.statistics(tables, place, dtype == "float32", depth or 0, not truncated)
    else:
        module, ties = native(), counted.ties[dtype]
        assert module is not None
        ties = ties if depth is None else ties.to_depth(depth)
        before = None if order is None else ties.before[order]
        cut = ties.may_be_truncated if truncated else np.zeros(len(ties.length), dtype=bool)
        of_lists = ties.limit, ties.last_start, ties.lowest_size, cut
        found = module.statistics(tables, ties.qrels.offsets, ties.start, ties.size, before, *of_lists)
    values, reached = found
    return Statistics(values.reshape(7, len(tables), -1), reached)


def can_compute(counted: Counted) -> bool:
    """Whether these are whole lists."""
    return isinstance(counted.ties, CompiledLists) or counted.ties["float64"].condensed_end is None


def longest_list(counted: Counted) -> int:
    """The length of the longest list of a judged query."""
    if isinstance(counted.ties, CompiledLists):
        longest: int = counted.ties.lists.longest
        return longest
    return int(next(iter(counted.ties.values())).length.max(initial=0))


def tables_of(measure: Measure, qrels: Qrels, longest: int) -> Any | None:
    """The tables of a measure for lists of up to so many ranks; None if it has another form."""
    n_weights = 1 << max(longest, 127).bit_length()
    return qrels.derived(("tables", measure, n_weights), lambda: _make_tables(measure, qrels, n_weights))


def _make_tables(measure: Measure, qrels: Qrels, n_weights: int) -> Any | None:
    module, form = native(), _form_of(measure)
    weight = None if module is None or form is None else _weights(measure, n_weights)
    if module is None or form is None or weight is None:
        return None
    q, *others = (_lists(qrels, size, length) for size, length in ((1, ENDLESS), (0, ENDLESS), (1, 1)))
    try:
        gain = np.empty(len(qrels))
        gain[q.rows] = measure.scaled_gain(q)
        divisor, *other_divisors = (engine.divisors(measure, one) for one in (q, *others))
        depth, *other_depths = (np.asarray(measure.depth(one)) for one in (q, *others))
    except MeasureError:  # of a label, perhaps of a document that is not in the run
        return None
    of_length = bool((divisor == ENDLESS).all() and (other_divisors[1] == 1).all())
    is_fixed = of_length or all((divisor == other).all() for other in other_divisors)
    limits = zip(other_depths, others, strict=True)
    if (gain < 0).any() or not is_fixed or any((found != np.minimum(depth, one.length)).any() for found, one in limits):
        return None
    return module.Tables(FORMS.index(form), gain, weight, depth.astype(np.int64), np.array(divisor), of_length)


def _form_of(measure: Measure) -> str | None:
    """The form of a measure's terms; None if it is not a sum of one of them."""
    cls = type(measure)
    is_sum = measure.additive and measure.sorted_extremes and measure.part is None and measure.value_range is None
    if not is_sum or measure.judged_only or cls.terms is not Measure.terms or cls.base is not Measure.base:
        return None
    return measure.form if measure.form or measure.uses_seen or cls.moments is not Measure.moments else "sum"


@lru_cache(maxsize=256)
def _weights(measure: Measure, n_weights: int) -> Floats | None:
    """The weights of ranks, from rank 1 on; None if one is negative or above that of the rank before it."""
    rank = np.arange(1.0, n_weights)
    try:
        weight: Floats = np.append(0.0, measure.payoff(rank, np.zeros_like(rank)))
    except Exception:  # that of a user may be defined for the ranks of his lists alone
        return None
    return freeze(weight) if weight.min() >= 0 and not (np.diff(weight[1:]) > 0).any() else None


def _lists(qrels: Qrels, size: int, length: int) -> GroupedJudgments:
    """Lists of some length with all judged documents, without ties, or with none of them if `size` is 0."""
    n, sizes = len(qrels.queries), np.full(len(qrels), size)
    rank = np.arange(len(qrels)) - qrels.offsets[qrels.query]
    of_query = np.full(n, length), np.ones(n, bool), np.zeros(n), np.ones(n, np.int64)
    return GroupedJudgments(TieGroups(qrels, sizes.astype(np.float64), rank, sizes, *of_query))
