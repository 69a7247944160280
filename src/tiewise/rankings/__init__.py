"""Rankings compared with sets and with other rankings: RBP, RBR, RBO, RBA, τ, similarity of runs, first stages.

A name is imported from its module when it is first used.
"""

from typing import TYPE_CHECKING

from tiewise.tables.optional import lazy_names

if TYPE_CHECKING:
    from tiewise.metrics.estimate import Bounds
    from tiewise.rankings.alignment import rba
    from tiewise.rankings.correlation import Tau, TauAP, tau, tau_ap
    from tiewise.rankings.costs import read_costs
    from tiewise.rankings.first_stages import Stages, stages
    from tiewise.rankings.overlap import rbo
    from tiewise.rankings.rank_biased import rbp, rbr
    from tiewise.rankings.ranking import Ranking
    from tiewise.rankings.run_similarity import RBA, RBO, RBR, PairMeasure, Similarity, similarity
    from tiewise.rankings.set_measures import precision, precision_at, recall, recall_at
    from tiewise.rankings.weights import phi_for_discount, phi_for_reverse_rba, top_weight

_MODULES = {
    "tiewise.metrics.estimate": "Bounds",
    "tiewise.rankings.correlation": "Tau TauAP tau tau_ap",
    "tiewise.rankings.costs": "read_costs",
    "tiewise.rankings.first_stages": "Stages stages",
    "tiewise.rankings.alignment": "rba",
    "tiewise.rankings.overlap": "rbo",
    "tiewise.rankings.rank_biased": "rbp rbr",
    "tiewise.rankings.ranking": "Ranking",
    "tiewise.rankings.run_similarity": "RBA RBO RBR PairMeasure Similarity similarity",
    "tiewise.rankings.set_measures": "precision precision_at recall recall_at",
    "tiewise.rankings.weights": "phi_for_discount phi_for_reverse_rba top_weight",
}

__all__ = [
    "RBA",
    "RBO",
    "RBR",
    "Bounds",
    "PairMeasure",
    "Ranking",
    "Similarity",
    "Stages",
    "Tau",
    "TauAP",
    "phi_for_discount",
    "phi_for_reverse_rba",
    "precision",
    "precision_at",
    "rba",
    "rbo",
    "rbp",
    "rbr",
    "read_costs",
    "recall",
    "recall_at",
    "similarity",
    "stages",
    "tau",
    "tau_ap",
    "top_weight",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
