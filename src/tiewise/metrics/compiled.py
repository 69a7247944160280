"""The measures that people use most, by compiled closed forms.

A sum whose terms have one of three forms is handed down as tables: gains along the judgments, weights by rank, and for
each query how many ranks count and what the sum is divided by. All of them follow from the measure's class and the
judgments, so they are made once for any number of runs. The formulas are in src/measures; without a compiler, and for
all other measures, `tiewise.metrics.engine` has them too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tiewise.data.columns import Floats
from tiewise.data.judgments import Qrels
from tiewise.data.native import native
from tiewise.errors import MeasureError
from tiewise.metrics.definition import Measure
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.ties.groups import TieGroups

__all__ = ["tables_of"]

FORMS = ("sum", "average precision", "first")
#: A list that is longer than any.
ENDLESS = 2**52


def tables_of(measure: Measure, qrels: Qrels, n_ranks: int) -> Any | None:
    """The tables of a measure for lists of up to so many ranks; None if it has another form."""
    n_weights = 1 << max(n_ranks, 63).bit_length()
    return qrels.derived(("tables", measure, n_weights), lambda: _make_tables(measure, qrels, n_weights))


def _make_tables(measure: Measure, qrels: Qrels, n_weights: int) -> Any | None:
    module, form = native(), _form_of(measure)
    if module is None or form is None:
        return None
    q, shorter = _endless(qrels, ENDLESS), _endless(qrels, ENDLESS // 2)
    try:
        gain = _gains(measure, q)
        divisor, other = (np.broadcast_to(np.asarray(measure.divisor(one), np.float64), q.n_queries) for one in (q, shorter))
        depth = np.asarray(measure.depth(q))
    except MeasureError:  # of a label, perhaps of a document that was not retrieved
        return None
    of_length = bool((divisor == ENDLESS).all())
    rank = np.arange(1.0, n_weights)
    weight = np.append(0.0, measure.payoff(rank, np.zeros_like(rank)))
    if (gain < 0).any() or not (of_length or (divisor == other).all()) or (np.diff(weight[1:]) > 0).any() or weight.min() < 0:
        return None
    return module.Tables(FORMS.index(form), gain, weight, depth.astype(np.int64), np.array(divisor), of_length)


def _form_of(measure: Measure) -> str | None:
    cls = type(measure)
    if not measure.additive or measure.needs_subtopics or not measure.sorted_extremes or cls.base is not Measure.base:
        return None
    form = getattr(cls, "form", "sum" if cls.moments is Measure.moments and not measure.uses_seen else None)
    return form if cls.terms is Measure.terms and measure.value_range is None else None


def _gains(measure: Measure, q: GroupedJudgments) -> Floats:
    """The gains along the rows of the judgments."""
    gain = np.empty(len(q.rows))
    gain[q.rows] = measure.scaled_gain(q)
    return gain


def _endless(qrels: Qrels, length: int) -> GroupedJudgments:
    """All judged documents in lists of one length."""
    n = len(qrels.queries)
    one, rank = np.ones(len(qrels), np.int64), np.arange(len(qrels)) - qrels.offsets[qrels.query]
    lengths = np.full(n, length)
    return GroupedJudgments(TieGroups(qrels, one.astype(float), rank, one, lengths, np.ones(n, bool), np.zeros(n), np.ones(n, np.int64)))
