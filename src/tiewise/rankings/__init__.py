"""Rankings against sets and against other rankings: RBP, RBR, RBO, RBA, MED-RBP, τ, similarity of runs, first stages.

A name is imported from its module when it is first used.
"""

from typing import TYPE_CHECKING

from tiewise.tables.optional import lazy_names

if TYPE_CHECKING:
    from tiewise.metrics.estimate import Bounds
    from tiewise.rankings.alignment import rba
    from tiewise.rankings.correlation import Tau, TauAP, tau, tau_ap
    from tiewise.rankings.costs import read_costs
    from tiewise.rankings.effectiveness import MED, med_rbp
    from tiewise.rankings.first_stages import Stages, stages
    from tiewise.rankings.overlap import rbo
    from tiewise.rankings.pair_measures import MED_RBP, RBA, RBO, RBR, PairMeasure
    from tiewise.rankings.rank_biased import rbp, rbr
    from tiewise.rankings.ranking import Ranking
    from tiewise.rankings.run_similarity import Similarity, similarity
    from tiewise.rankings.set_measures import precision, precision_at, recall, recall_at
    from tiewise.rankings.weights import Weights, phi_for_discount, phi_for_reverse_rba, phi_for_weight, top_weight

_MODULES = {
    "tiewise.metrics.estimate": "Bounds",
    "tiewise.rankings.correlation": "Tau TauAP tau tau_ap",
    "tiewise.rankings.costs": "read_costs",
    "tiewise.rankings.first_stages": "Stages stages",
    "tiewise.rankings.alignment": "rba",
    "tiewise.rankings.effectiveness": "MED med_rbp",
    "tiewise.rankings.overlap": "rbo",
    "tiewise.rankings.pair_measures": "MED_RBP RBA RBO RBR PairMeasure",
    "tiewise.rankings.rank_biased": "rbp rbr",
    "tiewise.rankings.ranking": "Ranking",
    "tiewise.rankings.run_similarity": "Similarity similarity",
    "tiewise.rankings.set_measures": "precision precision_at recall recall_at",
    "tiewise.rankings.weights": "Weights phi_for_discount phi_for_reverse_rba phi_for_weight top_weight",
}

__all__ = [
    "MED",
    "MED_RBP",
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
    "Weights",
    "med_rbp",
    "phi_for_discount",
    "phi_for_reverse_rba",
    "phi_for_weight",
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
