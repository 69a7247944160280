"""Figures: charts that are drawn from plain numbers, in one look, with altair.

A figure is a function that returns an ordinary altair chart: show it in a notebook, change it, or `save` it as SVG,
PNG, PDF, HTML or JSON. altair comes with the extra ``tiewise[report]`` and is imported when the first figure is drawn.
A new family of figures is a module beside `rankings`, whose functions end with `theme.dressed`.
"""

from tiewise.figures.rankings import agreement, chooser, rba_range
from tiewise.figures.reports import curve, differences, forest, forest_rows, group_sizes
from tiewise.figures.theme import save

__all__ = [
    "agreement",
    "chooser",
    "curve",
    "differences",
    "forest",
    "forest_rows",
    "group_sizes",
    "rba_range",
    "save",
]
