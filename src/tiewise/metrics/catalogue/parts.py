"""What measures of several families share."""

from __future__ import annotations

import numpy as np

from tiewise.data.columns import Floats
from tiewise.errors import MeasureError
from tiewise.metrics.definition import Measure, param
from tiewise.metrics.engine import GroupedJudgments

__all__ = ["Binary", "clip_labels", "exponential_gain", "ideal_sum"]


class Binary(Measure):
    """Measures that tell relevant documents from all others: a judged one is relevant if 0 ≤ rel ≤ label."""

    rel: float = param(1, least=0)


def exponential_gain(label: Floats) -> Floats:
    """2^label − 1, precise for small fractional labels too."""
    if label.size and label.max() > 1023:  # 2^1024 is not a float64
        raise MeasureError(f"A label of {label.max():g} is too large for a gain of 2^label − 1. Use linear gains.")
    return np.where(label == np.floor(label), 2.0**label - 1, np.expm1(label * np.log(2.0)))


def clip_labels(most: float, label: Floats, who: Measure) -> Floats:
    """Labels with negative ones at 0; an error if one exceeds the scale."""
    if label.size and label.max() > most:
        raise MeasureError(
            f"{who.name}: a label of {label.max():g} exceeds max={most:g}. Give the highest label of the scale: "
            f"{who.stem}(…, max={label.max():g})."
        )
    return np.maximum(label, 0.0)


def ideal_sum(who: Measure, q: GroupedJudgments) -> Floats:
    """The sum of a measure's terms on the best list of all judged documents."""
    order = q.ideal
    within = order.rank <= (np.inf if who.cutoff is None else who.cutoff)
    return order.sum(np.where(within, who.terms(order), 0.0))
