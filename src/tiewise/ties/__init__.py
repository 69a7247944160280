"""Tie groups: what a measure needs to know of a ranking with ties, how they are counted, and how shards add up.

The public names are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiewise.io.sources import judged_scores, tie_groups
    from tiewise.ties.counted import Counted, RunSource
    from tiewise.ties.groups import TieGroups
    from tiewise.ties.ranking_notation import notation

_MODULES = {
    "Counted": "tiewise.ties.counted",
    "RunSource": "tiewise.ties.counted",
    "TieGroups": "tiewise.ties.groups",
    "judged_scores": "tiewise.io.sources",
    "notation": "tiewise.ties.ranking_notation",
    "tie_groups": "tiewise.io.sources",
}

__all__ = ["Counted", "RunSource", "TieGroups", "judged_scores", "notation", "tie_groups"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'tiewise.ties' has no attribute {name!r}")
        return getattr(import_module(_MODULES[name]), name)
