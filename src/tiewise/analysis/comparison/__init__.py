"""Systems against each other: who is ahead, and whether ties, the sample of queries or a tool decide that.

`comparing` measures each run once and answers what is asked; `duel` has one pair in one measure, and its words; `board`
the leaderboard. What chance there is in the order of ties is in `lots` (each run on its own) and `shared` (one order
for both); `system` keeps what is needed of a run.
"""

from tiewise.analysis.comparison.comparing import (
    DEFAULT_MEASURES,
    MOST_SYSTEMS,
    Compared,
    Orders,
    check_options,
    check_pairs,
    compare,
    prefix_errors,
)
from tiewise.analysis.comparison.pair import Duel

__all__ = [
    "DEFAULT_MEASURES",
    "MOST_SYSTEMS",
    "Compared",
    "Duel",
    "Orders",
    "check_options",
    "check_pairs",
    "compare",
    "prefix_errors",
]
