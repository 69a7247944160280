"""The public names, each written once: `__init__.py` reads this file, and imports a name when it is used."""

from tiewise.rankings.correlation import Tau as Tau
from tiewise.rankings.correlation import TauAP as TauAP
from tiewise.rankings.correlation import tau as tau
from tiewise.rankings.correlation import tau_ap as tau_ap
from tiewise.rankings.costs import read_costs as read_costs
from tiewise.rankings.overlap import MED as MED
from tiewise.rankings.overlap import med_rbp as med_rbp
from tiewise.rankings.overlap import rba as rba
from tiewise.rankings.overlap import rbo as rbo
from tiewise.rankings.pair_measures import PairMeasure as PairMeasure
from tiewise.rankings.rank_biased import precision as precision
from tiewise.rankings.rank_biased import precision_at as precision_at
from tiewise.rankings.rank_biased import rbp as rbp
from tiewise.rankings.rank_biased import rbr as rbr
from tiewise.rankings.rank_biased import recall as recall
from tiewise.rankings.rank_biased import recall_at as recall_at
from tiewise.rankings.ranking import Ranking as Ranking
from tiewise.rankings.weights import Weights as Weights
from tiewise.rankings.weights import phi_for_discount as phi_for_discount
from tiewise.rankings.weights import phi_for_reverse_rba as phi_for_reverse_rba
from tiewise.rankings.weights import phi_for_weight as phi_for_weight
from tiewise.rankings.weights import top_weight as top_weight
