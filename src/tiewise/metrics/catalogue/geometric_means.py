"""Geometric means over queries, GMAP and GMBpref, and the logarithms of which they are made."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from tiewise.data.columns import Floats
from tiewise.metrics import engine
from tiewise.metrics.aggregation import GEOMETRIC_MEAN, Aggregation
from tiewise.metrics.catalogue.average_precision import AP
from tiewise.metrics.catalogue.parts import Binary
from tiewise.metrics.catalogue.preferences import Bpref
from tiewise.metrics.definition import Law, Measure
from tiewise.metrics.grouped_judgments import GroupedJudgments, Order
from tiewise.metrics.names import measure

__all__ = ["GMAP", "GMBpref", "LogAP", "LogBpref"]

#: Smaller values count as this one, as in trec_eval: a single 0 would make a geometric mean 0.
SMALLEST = 0.00001


class _Floored(Binary):
    """Another measure, of which a value is at least 0.00001."""

    takes_cutoff = False
    additive = False
    of_measure: ClassVar[Measure]

    @property
    def _plain(self) -> Measure:
        return self.of_measure(rel=self.rel)

    def kinds(self, documents: GroupedJudgments) -> tuple[Floats, float]:
        return self._plain.kinds(documents)

    def values(self, order: Order) -> Floats:
        return np.maximum(engine.value(self._plain, order.grouped, order), SMALLEST)


class _Geometric(_Floored):
    """The geometric mean over queries of another measure."""

    _exponent = 1.0

    @property
    def aggregation(self) -> Aggregation:
        return GEOMETRIC_MEAN

    def to_power(self, exponent: float) -> Measure:
        power = self()
        vars(power)["_exponent"] = exponent
        return power

    def values(self, order: Order) -> Floats:
        power: Floats = super().values(order) ** self._exponent
        return power

    def law(self, q: GroupedJudgments) -> Law:
        """That of the plain measure, if it is never too small."""
        if self._exponent != 1:
            return super().law(q)
        is_plain = engine.value(self._plain, q, q.worst(self)) >= SMALLEST
        mean = np.where(is_plain, engine.expected(self._plain, q), np.nan)
        return Law(mean, lambda: np.where(is_plain, engine.variance(self._plain, q), np.nan))


class _Log(_Floored):
    """The logarithm of another measure."""

    limits = (-math.inf, 0.0)

    def values(self, order: Order) -> Floats:
        logs: Floats = np.log(super().values(order))
        return logs


class _GMAP(_Geometric):
    """The geometric mean of AP over queries; values below 0.00001 count as 0.00001.

    >>> GMAP.of("(10)1")
    GMAP 0.7083 [0.5833, 0.8333]
    """

    aliases = ("gm_map",)
    of_measure = AP


class _LogAP(_Log):
    """The natural logarithm of AP; values below 0.00001 count as 0.00001.

    In one order of ties its mean over queries is the logarithm of GMAP; expectations differ.

    >>> LogAP.of("(10)1")
    LogAP -0.3607 [-0.5390, -0.1823]
    """

    of_measure = AP


class _GMBpref(_Geometric):
    """The geometric mean of Bpref over queries; values below 0.00001 count as 0.00001.

    >>> GMBpref.of("(10)1")
    GMBpref 0.2500 [0.0000, 0.5000]
    """

    aliases = ("gm_bpref",)
    distinguishes_unjudged = True
    of_measure = Bpref


class _LogBpref(_Log):
    """The natural logarithm of Bpref; values below 0.00001 count as 0.00001.

    >>> LogBpref.of("(10)1")
    LogBpref -6.1030 [-11.5129, -0.6931]
    """

    distinguishes_unjudged = True
    of_measure = Bpref


GMAP = measure(_GMAP)
LogAP = measure(_LogAP)
GMBpref = measure(_GMBpref)
LogBpref = measure(_LogBpref)
