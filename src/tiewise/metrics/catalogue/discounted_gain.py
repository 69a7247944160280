"""Gains discounted by rank: DCG, nDCG and RBP."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.errors import MeasureError
from tiewise.metrics.catalogue.parts import Binary, clip_labels, exponential_gain, ideal_sum
from tiewise.metrics.definition import Measure, param
from tiewise.metrics.engine import GroupedJudgments, Order
from tiewise.metrics.names import measure

__all__ = ["DCG", "RBP", "nDCG"]


class _Discounted(Measure):
    gains: str = param("linear", choices=("linear", "exp", "binary"))

    def gain(self, label: Floats) -> Floats:
        if self.gains == "binary":
            return Measure.gain(self, label)
        positive = np.maximum(label, 0.0)
        return positive if self.gains == "linear" else exponential_gain(positive)

    def payoff(self, rank: Floats) -> Floats:  # type: ignore[override]  # it ignores `seen`
        return 1.0 / np.log2(rank + 1)


#: The square of a larger gain, added up over a list, could exceed float64.
LARGEST_GAIN = 1e150


class _DCG(_Discounted):
    """Discounted cumulative gain: the sum of gains over log2(rank + 1).

    Gains are labels, 2^label − 1 (`gains="exp"`), or 1 for labels from 1 on (`gains="binary"`).

    >>> DCG.of("(20)1", k=2)
    DCG@2 1.6309 [1.2619, 2.0000]
    """

    aliases = ("dcg_burges:gains='exp'",)

    def gain(self, label: Floats) -> Floats:
        gain = super().gain(label)
        if gain.size and gain.max() > LARGEST_GAIN:
            raise MeasureError(
                f"{self.name}: a gain of {gain.max():g} is too large to be added up. Divide all labels by one number, "
                "or use nDCG, which does not depend on their unit."
            )
        return gain


DCG = measure(_DCG)


class _nDCG(_Discounted):
    """DCG over the DCG of the best list of all judged documents.

    Gains are labels, 2^label − 1 (`gains="exp"`), or 1 for labels from 1 on (`gains="binary"`).

    >>> nDCG.of("(20)10")
    nDCG 0.8100 [0.6697, 0.9502]
    """

    aliases = ("ndcg_burges:gains='exp'",)

    def scaled_gain(self, documents: GroupedJudgments | Order) -> Floats:
        gain, unit = self.gain(documents.label), documents.grouped.unit(self)
        return gain if unit is None else gain / unit[documents.query]

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return ideal_sum(self, q)


nDCG = measure(_nDCG)


class _RBP(Binary):
    """Rank-biased precision: (1 − p) · Σ p^(rank−1) over the relevant documents; `residual` is what is unknown.

    With `gains="graded"` a document counts label / max; with `gains="judged"` every judged one counts 1. `phi` is
    another name of `p`.

    >>> RBP(p=0.5).of("(10)1")
    RBP(p=0.5) 0.5000 [0.3750, 0.6250]
    >>> RBP(phi=0.5)
    RBP(p=0.5)
    """

    p: float = param(0.8, above=0, below=1, shown=True)
    gains: str = param("binary", choices=("binary", "graded", "judged"))
    max: float = param(1, above=0)

    def __call__(self, /, **params: Any) -> _RBP:
        if {"p", "phi"} <= params.keys():
            raise MeasureError("RBP: p and phi are two names of one parameter. Give one of them.")
        return super().__call__(**{"p" if name == "phi" else name: value for name, value in params.items()})

    def gain(self, label: Floats) -> Floats:
        if self.gains == "binary":
            return Binary.gain(self, label)
        if self.gains == "judged":
            return np.ones_like(label)
        return clip_labels(self.max, label, self) / self.max

    def key(self, label: Floats) -> Floats:
        return np.ones_like(label) if self.gains == "judged" else label

    def payoff(self, rank: Floats) -> Floats:  # type: ignore[override]
        return (1 - self.p) * self.p ** (rank - 1)

    def judged_weight(self) -> Measure | None:
        return None if self.gains == "judged" else self(gains="judged")


RBP = measure(_RBP)
