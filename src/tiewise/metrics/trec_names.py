"""The measures of trec_eval that stand beside our catalogue: simple, of one tool, and known to the drop-ins alone.

They are values of the same class `Measure`, so their statistics over the orders of ties follow from the definition as
those of every other measure do. Where no exact expectation is known, `offers` says what there is.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.errors import MeasureError
from tiewise.metrics.catalogue.parts import Binary
from tiewise.metrics.definition import param
from tiewise.metrics.engine import Order, Urn, Urns, safe_divide

__all__ = [
    "BinG",
    "ElevenPointAP",
    "IPrec",
    "InfAP",
    "NumNonrelRet",
    "NumQ",
    "NumRelRet",
    "RelativeP",
    "RprecMult",
    "RunId",
    "SetAP",
    "SetF",
    "SetRelP",
    "Utility",
]


# -- of the whole list: no order matters ----------------------------------------------------------------------


class Fixed(Binary):
    """Measures of the set of retrieved documents; a subclass defines `base`."""

    takes_cutoff = False

    def divisor(self, q: Urns) -> NDArray[Any]:
        """Nothing depends on a rank."""
        return np.zeros(q.n_queries)

    def found(self, q: Urns) -> Floats:
        """The number of relevant documents retrieved."""
        return q.retrieved(self.gain(q.label))


class RunId(Fixed):
    """0: pytrec_eval has a number where trec_eval prints the run's name."""


class NumQ(Fixed):
    """1 for every query, added up over queries."""

    total = True

    def base(self, q: Urns) -> Floats:
        """One a query."""
        return np.ones(q.n_queries)


class NumRelRet(Fixed):
    """The number of relevant documents retrieved, added up over queries.

    >>> NumRelRet().of("(10)1|1")
    NumRelRet 2.0000
    """

    total = True

    def base(self, q: Urns) -> Floats:
        """All relevant documents of the list."""
        return self.found(q)


class NumNonrelRet(NumRelRet):
    """The number of retrieved documents that were judged not relevant, those of a negative label apart.

    >>> NumNonrelRet().of("(10)1-|0")
    NumNonrelRet 1.0000
    """

    def gain(self, label: Floats) -> Floats:
        """1 for a label from 0 to below `rel`."""
        return ((label >= 0) & (label < self.rel)).astype(np.float64)


class SetRelP(Fixed):
    """The relevant documents of the whole list over the most there can be, the list's length or N+.

    >>> SetRelP().of("(10)1|1")
    SetRelP 0.6667
    """

    def base(self, q: Urns) -> Floats:
        """A share."""
        return safe_divide(self.found(q), np.minimum(q.length, q.relevant(self)))


class SetAP(Fixed):
    """SetP · SetR.

    >>> SetAP().of("(10)1|1")
    SetAP 0.4444
    """

    def base(self, q: Urns) -> Floats:
        """A product."""
        return safe_divide(self.found(q) ** 2, q.length * q.relevant(self))


class SetF(Fixed):
    """The weighted harmonic mean of SetP and SetR, (x + 1)·P·R / (x·P + R): trec_eval's parameter x is β².

    >>> SetF(x=2).of("100|1")
    SetF(x=2) 0.4286
    """

    x: float = param(1.0, above=-1)

    def base(self, q: Urns) -> Floats:
        """A mean."""
        precision, recall = safe_divide(self.found(q), q.length), safe_divide(self.found(q), q.relevant(self))
        return safe_divide((self.x + 1) * precision * recall, self.x * precision + recall)


class Utility(Fixed):
    """The relevant documents retrieved less the others.

    >>> Utility().of("(100)1-")
    Utility -1.0000
    """

    def base(self, q: Urns) -> Floats:
        """A difference."""
        return 2 * self.found(q) - q.length


# -- of ranks -------------------------------------------------------------------------------------------------


class RelativeP(Binary):
    """The relevant documents in the first k over the most there can be, k or N+.

    >>> RelativeP().of("(100)1", k=1)
    RelativeP@1 0.3333 [0.0000, 1.0000]
    """

    def divisor(self, q: Urns) -> NDArray[Any]:
        """At most k."""
        return np.minimum(q.ranks(self.cutoff), q.relevant(self))


class RprecMult(Binary):
    """Precision at the rank that is a multiple of the number of relevant documents, ⌊multiple · N+ + 0.9⌋.

    >>> RprecMult(multiple=0.5).of("(10)1")
    RprecMult(multiple=0.5) 0.5000 [0.0000, 1.0000]
    """

    takes_cutoff = False
    multiple: float = param(1.0, above=-1, shown=True)

    def _rank(self, q: Urns) -> Floats:
        return np.floor(self.multiple * q.relevant(self) + 0.9)

    def depth(self, q: Urns) -> NDArray[Any]:
        """At most the list's length."""
        return np.minimum(q.length, self._rank(q))

    def divisor(self, q: Urns) -> NDArray[Any]:
        """Also where the list is shorter."""
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

    def divisor(self, q: Urns) -> NDArray[Any]:
        """All relevant documents."""
        return q.relevant(self)


# -- without an exact expectation -----------------------------------------------------------------------------


class Unexpected(Binary):
    """Measures of which only the value in an order is known, not the expectation over all orders."""

    takes_cutoff = False
    offers: ClassVar[tuple[str, ...]] = ("oblivious",)

    def moments(self, urn: Urn) -> tuple[Floats, Floats]:
        """Not known."""
        raise MeasureError(f"The expectation of {self.name} over the orders of ties is not known.")


class IPrec(Unexpected):
    """Interpolated precision: the highest at or below the rank where a share of the relevant documents is found.

    It is highest with the relevant documents of a tie first, and lowest with them last.
    """

    offers = ("oblivious", "minimum", "maximum")
    recall: float = param(0.0, above=-1, shown=True)

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares over which to take the mean."""
        return (self.recall,)

    def terms(self, order: Order) -> Floats:
        """The value of a query, all of it at its first judged document."""
        relevant = self.gain(order.label) > 0
        found = order.count_before(relevant) + 1
        precision = np.where(relevant, found / order.rank, 0.0)
        total = np.zeros(order.n_queries)
        for share in self.shares:
            enough = found >= np.floor(share * order.urns.relevant(self) + 0.9)[order.query]
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


class InfAP(Unexpected):
    """Average precision, its precisions inferred from the judged documents above (Yilmaz & Aslam, 2006).

    A document with a negative label was in the pool and was not judged. The best order of ties is not known either.
    """

    def divisor(self, q: Urns) -> NDArray[Any]:
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
