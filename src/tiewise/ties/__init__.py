"""Tie groups: what a measure needs to know of a ranking with ties, how they are counted, and how shards add up.

The public names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from tiewise.results.optional import lazy_names

if TYPE_CHECKING:
    from tiewise.io.sources import break_ties, judged_scores, tie_groups
    from tiewise.ties.counted import Counted, RunSource
    from tiewise.ties.counting import notation
    from tiewise.ties.groups import TieGroups

_MODULES = {
    "tiewise.io.sources": "break_ties judged_scores tie_groups",
    "tiewise.ties.counted": "Counted RunSource",
    "tiewise.ties.groups": "TieGroups",
    "tiewise.ties.counting": "notation",
}

__all__ = ["Counted", "RunSource", "TieGroups", "break_ties", "judged_scores", "notation", "tie_groups"]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, _MODULES)
