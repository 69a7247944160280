"""The measures of two rankings: `RBO`, `RBA`, `RBR`, `MED_RBP`, tau and tau_ap.

They are measures like those of the catalogue, with names, parameters and cutoffs, and `parse` reads them. Each computes
many pairs of rankings at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tiewise.errors import MeasureError
from tiewise.metrics.definition import Measure, param
from tiewise.metrics.names import measure, measures
from tiewise.rankings.correlation import compute_tau, compute_tau_ap
from tiewise.rankings.overlap import compute_med, compute_rba, compute_rbo
from tiewise.rankings.rank_biased import compute_rbr
from tiewise.rankings.tie_orders import Parts
from tiewise.rankings.weights import Weights
from tiewise.ties.pairs import PairGroups

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
        return 1.0

    @property
    def of(self) -> Any:
        """Raise an error: one ranking has no value."""
        phi = ", ".join(f"{name}={getattr(self, name):g}" for name in self.params if name == "phi")
        function = f"tiewise.rankings.{self.stem.lower()}(x, y{', ' * bool(phi)}{phi})"
        raise _NoValueError(f"{self} compares two rankings: one ranking has no value. Use {function}.")

    def of_pairs(self, pairs: PairGroups, extremes: bool = True) -> Parts:
        """The parts of the values of pairs of rankings; without `extremes`, only the expectations."""
        raise NotImplementedError


class _RankBiased(PairMeasure):
    """A measure that weighs ranks by φ."""

    other_names: ClassVar[Mapping[str, str]] = {"p": "phi"}
    phi: float = param(0.9, above=0, below=1, shown=True)

    def weight_after(self, n: int) -> float:
        return float(self.phi**n)


class _RBO(_RankBiased):
    """Rank-biased overlap of two rankings: how much their heads share, at every depth.

    >>> RBO(phi=0.95) @ 100
    RBO(phi=0.95)@100
    """

    ties: str = param("average", choices=("average", "w", "a", "b"))
    parts = ("lower", "upper", "extrapolated")

    def of_pairs(self, pairs: PairGroups, extremes: bool = True) -> Parts:
        return compute_rbo(pairs, self.phi, self.ties, extremes)


class _RBA(_RankBiased):
    """Rank-biased alignment of two rankings: common items weigh by their rank in both.

    >>> RBA(phi=0.95)
    RBA(phi=0.95)
    """

    ties: str = param("average", choices=("average", "share"))

    def weight_after(self, n: int) -> float:
        return float(self.phi ** (n / 2))  # Σ √(w·w′) ≤ √(Σw · Σw′)

    def of_pairs(self, pairs: PairGroups, extremes: bool = True) -> Parts:
        return compute_rba(pairs, Weights.geometric(self.phi), self.ties, extremes)


class _RBR(_RankBiased):
    """Rank-biased recall: the weight, in a reference ranking, of the items that the observed one holds.

    A cutoff is of the observed ranking alone, and exact inside a tie group.

    >>> RBR(phi=0.8) @ 20
    RBR(phi=0.8)@20
    """

    symmetric = False
    list_depth = None  #: the lists are not cut, because the cutoff defines the set

    def weight_after(self, n: int) -> float:
        if self.cutoff is not None and n < self.cutoff:
            return 1.0  # the set depends on them, wherever the reference has its documents
        return super().weight_after(n)  # without a cutoff, the set is the list as it is

    def of_pairs(self, pairs: PairGroups, extremes: bool = True) -> Parts:
        return compute_rbr(pairs, Weights.geometric(self.phi), self.cutoff, extremes)


class _MED_RBP(_RankBiased):
    """Maximised effectiveness difference: the largest difference of RBP that any judgments could give.

    It is a distance: 0 for the same ranking. The value takes both lists as complete; the bounds are for lists that go
    on.

    >>> MED_RBP(phi=0.9) @ 100
    MED_RBP(phi=0.9)@100
    """

    aliases = ("MED-RBP",)
    is_distance = True
    parts = ("value", "lower", "upper")

    def of_pairs(self, pairs: PairGroups, extremes: bool = True) -> Parts:
        return compute_med(pairs, Weights.geometric(self.phi), extremes)


class _tau(PairMeasure):
    """Kendall's τ of two rankings: concordant minus discordant pairs of documents, divided by all pairs.

    Documents that one list lacks are appended to it as one last tie group.

    >>> from tiewise import parse
    >>> parse("tau") @ 100
    tau@100
    """

    aliases = ("kendall_tau",)
    parts = ("value",)

    def of_pairs(self, pairs: PairGroups, extremes: bool = True) -> Parts:
        return compute_tau(pairs.union(), extremes)


class _tau_ap(PairMeasure):
    """τ_AP of an observed ranking against a reference: pairs near the top of the observed ranking weigh more.

    Documents that one list lacks are appended to it as one last tie group.

    >>> from tiewise import parse
    >>> parse("tau_ap") @ 100
    tau_ap@100
    """

    symmetric = False
    parts = ("value",)

    def of_pairs(self, pairs: PairGroups, extremes: bool = True) -> Parts:
        return compute_tau_ap(pairs.union(), extremes)


def list_pair_measures() -> str:
    """The names of all measures of two rankings, for a message."""
    return ", ".join(name for name, one in measures().items() if one.compares)


RBO = measure(_RBO)
RBA = measure(_RBA)
RBR = measure(_RBR)
MED_RBP = measure(_MED_RBP)
measure(_tau)  # `tiewise.tau` is the function
measure(_tau_ap)
