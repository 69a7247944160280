"""Comparison of systems: who is ahead, and whether ties, the sample of queries or a tool decide that.

`comparing` measures each run once, `result` has what follows, `pair` one pair in one measure. `tie_orders` says what
the orders of ties make of a difference and of ranks: `distribution` adds up what the orders of tie groups add, and
`shared_order` is about one order for all runs. `system` keeps what is needed of a run; `sections` and `paper_table`
show the result.
"""

from tiewise.analysis.comparison.comparing import DEFAULT_MEASURES, check_options, compare
from tiewise.analysis.comparison.pair import PairComparison
from tiewise.analysis.comparison.result import Compared
from tiewise.analysis.comparison.tie_orders import Orders

__all__ = ["DEFAULT_MEASURES", "Compared", "Orders", "PairComparison", "check_options", "compare"]
