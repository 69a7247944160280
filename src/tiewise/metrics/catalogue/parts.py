"""What measures of several families share."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from tiewise.caching import cached_property
from tiewise.data.columns import Floats
from tiewise.errors import MeasureError
from tiewise.metrics.definition import Measure, check_size, param
from tiewise.metrics.grouped_judgments import GroupedJudgments


class OfGains(Measure):
    """Measures that see nothing of a document but its gain."""

    distinguishes_unjudged = False

    def kinds(self, documents: GroupedJudgments) -> tuple[Floats, float]:
        return self.scaled_gain(documents), 0.0


class Binary(OfGains):
    """Measures that tell relevant documents from all others: a judged one is relevant if 0 ≤ rel ≤ label."""

    rel: float = param(1, least=0)
    limits = (0.0, 1.0)


def spell_numbers(text: str) -> str:
    """The canonical spelling of numbers with commas between them.

    >>> spell_numbers("1.0, .5,-2")
    '1,0.5,-2'
    """
    try:
        numbers = [float(number) for number in text.split(",")]
    except ValueError:
        raise ValueError("Give numbers with commas between them.") from None
    return ",".join(f"{check_size(number):.15g}" for number in numbers)


def spell_levels(text: str) -> str:
    """The canonical spelling of gains by label.

    >>> spell_levels("2=9.0, 1=5")
    '1=5,2=9'
    """
    found = [
        re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*=\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*", one)
        for one in text.split(",")
    ]
    if not all(found):
        raise ValueError('Give a gain for each label from 0 on, as in "1=5,2=9"; others have their label as gain.')
    gains = {float(one[1]): float(one[2]) for one in found if one}
    if len(gains) < len(found):
        raise ValueError("Give one gain for a label.")
    return ",".join(f"{check_size(label):.15g}={check_size(gain):.15g}" for label, gain in sorted(gains.items()))


class LevelGains(OfGains):
    """Measures with gains: the label, unless `gains` gives the label another one (``gains="1=5,2=9"``)."""

    gains: str = param("linear", choices=("linear",), text=spell_levels)

    @property
    def limits(self) -> tuple[float, float]:  # type: ignore[override]
        """From 0 to 1, unless the gains of some labels are given."""
        return (-math.inf, math.inf) if self.levels else (0.0, 1.0)

    @cached_property
    def levels(self) -> Mapping[float, float]:
        """The gains of labels that do not have their label as gain."""
        pairs = (pair.split("=") for pair in self.gains.split(",") if "=" in pair)
        return {float(label): float(gain) for label, gain in pairs}

    def gain(self, label: Floats) -> Floats:
        gain = np.maximum(label, 0.0)
        for level, own in self.levels.items():
            gain[label == level] = own
        return gain

    @property
    def sorts_by_label(self) -> bool:
        return not self.levels


def log_discount(rank: Floats) -> Floats:
    """What DCG divides the gain at a rank by."""
    return np.asarray(np.log2(rank + 1))


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
    """The sum of a measure's terms on the best list of judged documents; those with a negative gain are not in it."""

    def compute() -> Floats:
        order = q.ideal(who)
        within = order.rank <= (np.inf if who.cutoff is None else who.cutoff)
        return order.sum(np.where(within, np.maximum(who.terms(order), 0.0), 0.0))

    return q.of_judgments("ideal", who, compute)
