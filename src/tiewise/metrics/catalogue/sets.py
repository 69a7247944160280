"""Counts and sets: precision, recall, F, hits, and the measures of the whole list."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.metrics.catalogue.parts import Binary
from tiewise.metrics.definition import Measure, param
from tiewise.metrics.engine import GroupedJudgments
from tiewise.metrics.names import measure

__all__ = ["F1", "F", "Hits", "Judged", "NumRel", "NumRelRet", "NumRet", "P", "R", "Rprec", "SetP", "SetR"]


class _Hits(Binary):
    """The number of relevant documents in the first k, averaged over queries (NumRelRet adds them up).

    >>> Hits.of("(10)1", k=2)
    Hits@2 1.0000
    """


Hits = measure(_Hits)


class _P(Binary):
    """Precision: the share of relevant documents among the first k ranks, also where the list is shorter.

    >>> P.of("(100)", k=2)
    P@2 0.3333 [0.0000, 0.5000]
    """

    aliases = ("precision",)

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.ranks(self.cutoff)


P = measure(_P)


class _R(Binary):
    """Recall: the share of all relevant documents that stand in the first k.

    >>> R.of("(10)1", k=1)
    R@1 0.2500 [0.0000, 0.5000]
    """

    aliases = ("recall",)

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.relevant(self)


R = measure(_R)


class _Balanced(Binary):
    beta: Any = 1.0

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        square = self.beta**2
        return (q.ranks(self.cutoff) + square * q.relevant(self)) / (1 + square)


class _F1(_Balanced):
    """The harmonic mean of precision and recall at k.

    >>> F1.of("(10)1", k=1)
    F1@1 0.3333 [0.0000, 0.6667]
    """

    aliases = ("f1_score",)


F1 = measure(_F1)


class _F(_Balanced):
    """The weighted harmonic mean of precision and recall at k; recall counts beta times as much.

    >>> F(beta=2).of("(10)1", k=1)
    F(beta=2)@1 0.2778 [0.0000, 0.5556]
    """

    beta: float = param(1.0, above=0, below=1e100, shown=True)


F = measure(_F)


class _Rprec(Binary):
    """Precision at the rank that is the number of relevant documents.

    >>> Rprec.of("(10)1")
    Rprec 0.5000
    """

    takes_cutoff = False
    aliases = ("r-precision", "r_precision", "rprecision")

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        return np.minimum(q.length, q.relevant(self))

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.relevant(self)


Rprec = measure(_Rprec)


class _SetP(Binary):
    """The share of relevant documents in the whole list.

    >>> SetP.of("(10)1")
    SetP 0.6667
    """

    takes_cutoff = False
    aliases = ("set_p",)

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.length


SetP = measure(_SetP)


class _SetR(Binary):
    """The share of all relevant documents that the whole list holds.

    >>> SetR.of("(10)1|1")
    SetR 0.6667
    """

    takes_cutoff = False
    aliases = ("set_recall",)

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.relevant(self)


SetR = measure(_SetR)


class _NumRet(Measure):
    """The number of documents retrieved, added up over queries.

    >>> NumRet.of("(10)1")
    NumRet 3.0000
    """

    takes_cutoff = False
    total = True
    aliases = ("num_ret",)

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        return np.zeros(q.n_queries)  # it does not depend on what is retrieved where

    def base(self, q: GroupedJudgments) -> Floats:
        return q.length.astype(np.float64)


NumRet = measure(_NumRet)


class _NumRel(Binary):
    """The number of relevant documents judged, retrieved or not, added up over queries.

    >>> NumRel.of("(10)1|1")
    NumRel 3.0000
    """

    takes_cutoff = False
    total = True
    aliases = ("num_rel",)

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        return np.zeros(q.n_queries)  # it does not depend on what is retrieved where

    def base(self, q: GroupedJudgments) -> Floats:
        return q.relevant(self)


NumRel = measure(_NumRel)


class _NumRelRet(Binary):
    """The number of relevant documents retrieved, added up over queries.

    >>> NumRelRet.of("(10)1|1")
    NumRelRet 2.0000
    """

    takes_cutoff = False
    total = True
    aliases = ("num_rel_ret",)


NumRelRet = measure(_NumRelRet)


class _Judged(Measure):
    """The share of judged documents among the first k ranks (`norm="cap"`: among those of them that the list has).

    >>> Judged.of("(1-)0", k=1)
    Judged@1 0.5000 [0.0000, 1.0000]
    """

    norm: str = param("all", choices=("all", "cap"))

    def gain(self, label: Floats) -> Floats:
        return np.ones_like(label)

    def relevant(self, label: Floats) -> NDArray[np.bool_]:
        return label >= 1

    def key(self, label: Floats) -> Floats:
        return np.ones_like(label)  # a negative label is a judgment too

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        return q.ranks(self.cutoff) if self.norm == "all" else np.minimum(q.length, q.ranks(self.cutoff))


Judged = measure(_Judged)
