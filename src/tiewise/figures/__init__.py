"""Figures: charts from plain numbers, in one look, with altair.

Each figure is a function that returns an ordinary altair chart: show it in a notebook, change it, or `save` it as SVG,
PNG, PDF, HTML or JSON. altair comes with the extra ``tiewise[report]`` and is imported when the first figure is drawn.
A new kind of figure is a new module whose functions end with `theme.apply_theme` or `theme.layer_chart`.
"""

from tiewise.figures.curves import curve
from tiewise.figures.forests import forest, forest_rows
from tiewise.figures.protocols import losses
from tiewise.figures.query_differences import differences
from tiewise.figures.rankings import rba_range
from tiewise.figures.score_residuals import residuals
from tiewise.figures.theme import save
from tiewise.figures.tie_group_sizes import group_sizes

__all__ = [
    "curve",
    "differences",
    "forest",
    "forest_rows",
    "group_sizes",
    "losses",
    "rba_range",
    "residuals",
    "save",
]
