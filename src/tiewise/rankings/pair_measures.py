"""The measures of two rankings: `RBO`, `RBA`, `RBR`, `MED_RBP`, tau and tau_ap.

They are measures like those of the catalogue, with names, parameters and cutoffs, and `parse` reads them. Each has the
value of one pair of rankings. Some have the values of one ranking with many others, which costs less for each pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tiewise.data.columns import Floats
from tiewise.errors import MeasureError
from tiewise.metrics.definition import Measure, param
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.names import measure, measures
from tiewise.rankings.alignment import compute_rba
from tiewise.rankings.correlation import compute_tau, compute_tau_ap, union_groups
from tiewise.rankings.effectiveness import med_of_row
from tiewise.rankings.overlap import compute_rbo, rbo_of_row
from tiewise.rankings.pairs import RankingPair
from tiewise.rankings.query_rankings import QueryRankings
from tiewise.rankings.rank_biased import rbr_of_row
from tiewise.rankings.weights import Weights

__all__ = ["MED_RBP", "PARTS", "RBA", "RBO", "RBR", "PairMeasure", "list_pair_measures"]

#: What is known of a pair, in the order in which it is shown.
PARTS = ("value", "lower", "upper", "extrapolated")


class _NoValueError(MeasureError, AttributeError):
    """Raised by `of` of a measure of two rankings, so that `hasattr` is False."""


class PairMeasure(Measure):
    """A measure of an observed ranking against a reference ranking. It has no `of`: one ranking has no value.

    >>> isinstance(RBO, PairMeasure), RBO.symmetric, RBR.symmetric
    (True, True, False)
    """

    compares: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True
    is_distance: ClassVar[bool] = False  #: 0 for the same ranking
    parts: ClassVar[tuple[str, ...]] = ("lower", "upper")  #: which of `PARTS` it has

    @property
    def list_depth(self) -> int | None:
        """The depth at which both lists are cut: the cutoff, unless the measure is exact inside a tie group."""
        return self.cutoff

    def weight_after(self, n: int) -> float:
        """The most by which the documents of a list after the first n can change the value."""
        return float(getattr(self, "phi", 1.0) ** n)

    @property
    def of(self) -> Any:
        """Raise an error: one ranking has no value."""
        phi = ", ".join(f"{name}={getattr(self, name):g}" for name in self.params if name == "phi")
        function = f"tiewise.rankings.{self.stem.lower()}(x, y{', ' * bool(phi)}{phi})"
        raise _NoValueError(f"{self} compares two rankings: one ranking has no value. Use {function}.")

    def of_pair(self, pair: RankingPair, extremes: bool = True) -> Bounds | Estimate:
        """The value of a pair of rankings; without `extremes`, only the expectations."""
        raise NotImplementedError

    def of_row(self, rankings: QueryRankings, i: int, others: range, extremes: bool = True) -> dict[str, Floats]:
        """The parts of one ranking with each of some others, (n_statistics, n_pairs); NaN if one is not defined.

        The statistics are the expectation, and with `extremes` the lowest and the highest value.
        """
        found = [self.of_pair(rankings.pair(i, j), extremes) for j in others]
        names = ("expected", "minimum", "maximum") if extremes else ("expected",)

        def column(part: str, name: str) -> list[float]:
            estimates = (one if part == "value" else getattr(one, part) for one in found)
            numbers = (getattr(estimate, name, None) for estimate in estimates)
            return [np.nan if number is None else number for number in numbers]

        return {part: np.array([column(part, name) for name in names]) for part in self.parts}


def _statistics(blocks: Sequence[Sequence[Floats]], parts: Sequence[str], extremes: bool) -> dict[str, Floats]:
    """What `of_row` returns, from the parts of blocks of pairs, (n_orders, n_pairs) each."""

    def statistics(orders: Floats) -> Floats:
        """Of the expectation alone, which is the value of every order, or of expected, worst and best."""
        if not extremes:
            return orders[:1]
        low, high = orders[1:] if len(orders) > 1 else orders[[0, 0]]
        return np.array([np.clip(orders[0], low, high), low, high])

    joined = (np.concatenate([*map(statistics, part)], axis=1) for part in zip(*blocks, strict=True))
    return dict(zip(parts, joined, strict=True))


class _RBO(PairMeasure):
    """Rank-biased overlap of two rankings: how much their heads share, at every depth.

    >>> RBO(phi=0.95) @ 100
    RBO(phi=0.95)@100
    """

    phi: float = param(0.9, above=0, below=1, shown=True)
    ties: str = param("average", choices=("average", "w", "a", "b"))
    parts = ("lower", "upper", "extrapolated")

    def of_pair(self, pair: RankingPair, extremes: bool = True) -> Bounds:
        return compute_rbo(pair, self.phi, self.ties, extremes=extremes)

    def of_row(self, rankings: QueryRankings, i: int, others: range, extremes: bool = True) -> dict[str, Floats]:
        if self.ties != "average":
            return super().of_row(rankings, i, others, extremes)
        blocks = [rbo_of_row(row, self.phi, extremes) for row in rankings.rows(i, others)]
        return _statistics(blocks, self.parts, extremes)


RBO = measure(_RBO)


class _RBA(PairMeasure):
    """Rank-biased alignment of two rankings: common items weigh by their rank in both.

    >>> RBA(phi=0.95)
    RBA(phi=0.95)
    """

    phi: float = param(0.9, above=0, below=1, shown=True)
    ties: str = param("average", choices=("average", "share"))

    def weight_after(self, n: int) -> float:
        return float(self.phi ** (n / 2))  # Σ √(w·w′) ≤ √(Σw · Σw′)

    def of_pair(self, pair: RankingPair, extremes: bool = True) -> Bounds:
        return compute_rba(pair, Weights.geometric(self.phi), self.ties, extremes=extremes)

    def of_row(self, rankings: QueryRankings, i: int, others: range, extremes: bool = True) -> dict[str, Floats]:
        if extremes or self.ties != "average":
            return super().of_row(rankings, i, others, extremes)
        weights, groups = Weights.geometric(self.phi), rankings.groups[i]
        mean = weights.mean(groups.item_start, groups.item_size, power=0.5)
        return {"lower": rankings.sum_products(i, others, mean, weights, power=0.5)[None]}


RBA = measure(_RBA)


class _RBR(PairMeasure):
    """Rank-biased recall: the weight, in a reference ranking, of the items that the observed one holds.

    A cutoff is of the observed ranking alone, and exact inside a tie group.

    >>> RBR(phi=0.8) @ 20
    RBR(phi=0.8)@20
    """

    phi: float = param(0.9, above=0, below=1, shown=True)
    symmetric = False

    @property
    def list_depth(self) -> int | None:
        """None: the lists are not cut, because the cutoff defines the set."""
        return None

    def weight_after(self, n: int) -> float:
        if self.cutoff is not None and n < self.cutoff:
            return 1.0  # the set depends on them, wherever the reference has its documents
        return super().weight_after(n)  # without a cutoff, the set is the list as it is

    def of_row(self, rankings: QueryRankings, i: int, others: range, extremes: bool = True) -> dict[str, Floats]:
        weights = Weights.geometric(self.phi)
        if not extremes:
            probability = rankings.groups[i].inclusion(self.cutoff)
            return {"lower": rankings.sum_products(i, others, probability, weights)[None]}
        blocks = [rbr_of_row(row, weights, self.cutoff) for row in rankings.rows(i, others)]
        return _statistics(blocks, self.parts, extremes)


RBR = measure(_RBR)


class _MED_RBP(PairMeasure):
    """Maximised effectiveness difference: the largest difference of RBP that any judgments could give.

    It is a distance: 0 for the same ranking. The value takes both lists as complete; the bounds are for lists that go
    on. `p` is another name of `phi`.

    >>> MED_RBP(phi=0.9) @ 100
    MED_RBP(phi=0.9)@100
    """

    aliases = ("MED-RBP",)
    phi: float = param(0.9, above=0, below=1, shown=True)
    is_distance = True
    parts = ("value", "lower", "upper")

    def __call__(self, /, **params: Any) -> _MED_RBP:
        if {"p", "phi"} <= params.keys():
            raise MeasureError("MED_RBP: p and phi are two names of one parameter. Give one of them.")
        return super().__call__(**{"phi" if name == "p" else name: value for name, value in params.items()})

    def of_row(self, rankings: QueryRankings, i: int, others: range, extremes: bool = True) -> dict[str, Floats]:
        weights = Weights.geometric(self.phi)
        blocks = [med_of_row(row, weights, extremes) for row in rankings.rows(i, others)]
        return _statistics(blocks, self.parts, extremes)


MED_RBP = measure(_MED_RBP)


class _tau(PairMeasure):
    """Kendall's τ of two rankings: concordant minus discordant pairs of documents, divided by all pairs.

    Documents that one list lacks are appended to it as one last tie group.

    >>> from tiewise import parse
    >>> parse("tau") @ 100
    tau@100
    """

    aliases = ("kendall_tau",)
    parts = ("value",)

    def of_pair(self, pair: RankingPair, extremes: bool = True) -> Estimate:
        return compute_tau(*union_groups(pair))


class _tau_ap(PairMeasure):
    """τ_AP of an observed ranking against a reference: pairs near the top of the observed ranking weigh more.

    Documents that one list lacks are appended to it as one last tie group.

    >>> from tiewise import parse
    >>> parse("tau_ap") @ 100
    tau_ap@100
    """

    symmetric = False
    parts = ("value",)

    def of_pair(self, pair: RankingPair, extremes: bool = True) -> Estimate:
        return compute_tau_ap(*union_groups(pair), extremes)


def list_pair_measures() -> str:
    """The names of all measures of two rankings, for a message."""
    return ", ".join(name for name, one in measures().items() if one.compares)


measure(_tau)  # `tiewise.tau` is the function
measure(_tau_ap)
