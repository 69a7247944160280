"""Measures of trec_eval that are not in the catalogue; only the drop-ins use them.

They are of the class `Measure`, so their statistics over the orders of ties follow from the definition. Where no exact
expectation is known, `known_values` lists what is known.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.errors import MeasureError
from tiewise.metrics.catalogue.parts import Binary
from tiewise.metrics.definition import param
from tiewise.metrics.engine import GroupBlock, GroupedJudgments, Order, safe_divide

__all__ = [
    "BinG",
    "ElevenPointAP",
    "IPrec",
    "InfAP",
    "NumNonrelRet",
    "NumQ",
    "RelativeP",
    "RprecMult",
    "RunId",
    "SetAP",
    "SetF",
    "SetRelP",
    "Utility",
]


# -- of the set of retrieved documents, in any order ----------------------------------------------------------


class SetMeasure(Binary):
    """Measures of the set of retrieved documents; a subclass defines `base`."""

    takes_cutoff = False

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        """Nothing depends on a rank."""
        return np.zeros(q.n_queries)

    def relevant_retrieved(self, q: GroupedJudgments) -> Floats:
        """The number of relevant documents retrieved."""
        return q.retrieved(self.gain(q.label))


class RunId(SetMeasure):
    """0: pytrec_eval gives a number where trec_eval prints the run's name."""


class NumQ(SetMeasure):
    """1 for every query, added up over queries."""

    total = True

    def base(self, q: GroupedJudgments) -> Floats:
        """One for each query."""
        return np.ones(q.n_queries)


class NumNonrelRet(SetMeasure):
    """The number of retrieved documents that were judged not relevant, without those with a negative label.

    >>> NumNonrelRet().of("(10)1-|0")
    NumNonrelRet 1.0000
    """

    total = True

    def base(self, q: GroupedJudgments) -> Floats:
        """All such documents of the list."""
        return self.relevant_retrieved(q)

    def gain(self, label: Floats) -> Floats:
        """1 for a label from 0 to below `rel`."""
        return ((label >= 0) & (label < self.rel)).astype(np.float64)


class SetRelP(SetMeasure):
    """The relevant documents retrieved, divided by the smaller of the list's length and N+.

    >>> SetRelP().of("(10)1|1")
    SetRelP 0.6667
    """

    def base(self, q: GroupedJudgments) -> Floats:
        """A share."""
        return safe_divide(self.relevant_retrieved(q), np.minimum(q.length, q.relevant(self)))


class SetAP(SetMeasure):
    """SetP · SetR.

    >>> SetAP().of("(10)1|1")
    SetAP 0.4444
    """

    def base(self, q: GroupedJudgments) -> Floats:
        """A product."""
        return safe_divide(self.relevant_retrieved(q) ** 2, q.length * q.relevant(self))


class SetF(SetMeasure):
    """The weighted harmonic mean of SetP and SetR, (x + 1)·P·R / (x·P + R): trec_eval's parameter x is β².

    >>> SetF(x=2).of("100|1")
    SetF(x=2) 0.4286
    """

    x: float = param(1.0, above=-1)

    def base(self, q: GroupedJudgments) -> Floats:
        """A mean."""
        retrieved = self.relevant_retrieved(q)
        precision, recall = safe_divide(retrieved, q.length), safe_divide(retrieved, q.relevant(self))
        return safe_divide((self.x + 1) * precision * recall, self.x * precision + recall)


class Utility(SetMeasure):
    """The relevant documents retrieved minus the others.

    >>> Utility().of("(100)1-")
    Utility -1.0000
    """

    def base(self, q: GroupedJudgments) -> Floats:
        """A difference."""
        return 2 * self.relevant_retrieved(q) - q.length


# -- of ranks -------------------------------------------------------------------------------------------------


class RelativeP(Binary):
    """The relevant documents in the first k, divided by the smaller of k and N+.

    >>> RelativeP().of("(100)1", k=1)
    RelativeP@1 0.3333 [0.0000, 1.0000]
    """

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        """At most k."""
        return np.minimum(q.ranks(self.cutoff), q.relevant(self))


class RprecMult(Binary):
    """Precision at the rank that is a multiple of the number of relevant documents, ⌊multiple · N+ + 0.9⌋.

    >>> RprecMult(multiple=0.5).of("(10)1")
    RprecMult(multiple=0.5) 0.5000 [0.0000, 1.0000]
    """

    takes_cutoff = False
    multiple: float = param(1.0, above=-1, shown=True)

    def _rank(self, q: GroupedJudgments) -> Floats:
        return np.floor(self.multiple * q.relevant(self) + 0.9)

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        """At most the list's length."""
        return np.minimum(q.length, self._rank(q))

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        """The same rank, even if the list is shorter."""
        return self._rank(q)


class BinG(Binary):
    """The sum of 1 / log2(2 + others above) over the relevant documents, over N+.

    >>> BinG().of("(10)")
    BinG 0.8155 [0.6309, 1.0000]
    """

    takes_cutoff = False
    uses_seen = True

    def payoff(self, rank: Floats, seen: Floats) -> Floats:
        """Less for each document above that is not relevant."""
        return 1.0 / np.log2(2 + np.maximum(rank - 1 - seen, 0))

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        """All relevant documents."""
        return q.relevant(self)


# -- without an exact expectation -----------------------------------------------------------------------------


class WithoutExpectation(Binary):
    """Measures with a value for one order, but no known expectation over all orders."""

    takes_cutoff = False
    known_values: ClassVar[tuple[str, ...]] = ("oblivious",)

    def moments(self, block: GroupBlock) -> tuple[Floats, Floats]:
        """Not known."""
        raise MeasureError(f"The expectation of {self.name} over the orders of ties is not known.")


class IPrec(WithoutExpectation):
    """Interpolated precision: the highest at or below the rank where a share of the relevant documents was seen.

    It is highest with the relevant documents of a tie first, and lowest with them last.
    """

    known_values = ("oblivious", "minimum", "maximum")
    recall: float = param(0.0, above=-1, shown=True)

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares to average over."""
        return (self.recall,)

    def terms(self, order: Order) -> Floats:
        """The value of a query, placed at its first judged document."""
        relevant = self.gain(order.label) > 0
        seen = order.count_before(relevant) + 1
        precision = np.where(relevant, seen / order.rank, 0.0)
        total = np.zeros(order.n_queries)
        for share in self.shares:
            enough = seen >= np.floor(share * order.grouped.relevant(self) + 0.9)[order.query]
            highest = np.zeros(order.n_queries)
            np.maximum.at(highest, order.query[enough], precision[enough])
            total += highest
        first = np.flatnonzero(np.diff(order.query, prepend=-1))
        terms = np.zeros(len(order.query))
        terms[first] = total[order.query[first]] / len(self.shares)
        return terms


class ElevenPointAP(IPrec):
    """The mean of the interpolated precision at the eleven shares 0, 0.1, … 1 (trec_eval's 11pt_avg)."""

    @property
    def shares(self) -> tuple[float, ...]:
        """All eleven."""
        return tuple(i / 10 for i in range(11))


class InfAP(WithoutExpectation):
    """Average precision, its precisions inferred from the judged documents above (Yilmaz & Aslam, 2006).

    A document with a negative label was in the pool but was not judged. The best order of ties is not known either.
    """

    distinguishes_unjudged = True

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        """All relevant documents."""
        return q.relevant(self)

    def terms(self, order: Order) -> Floats:
        """The inferred precision at each relevant document."""
        gain, tiny = self.gain(order.label), 0.00001
        relevant = order.count_before(gain > 0)
        other = order.count_before((gain == 0) & (order.label >= 0))
        pooled = relevant + other + order.count_before(order.label < 0)
        above = np.maximum(order.rank - 1, 1)
        share = (order.rank - 1) / order.rank * (pooled / above)  # the factors of trec_eval, to the last bit
        return gain * (1.0 / order.rank + share * ((relevant + tiny) / (relevant + other + 2 * tiny)))
