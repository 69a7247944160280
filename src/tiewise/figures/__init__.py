"""Figures: charts from plain numbers, in one look, with altair.

Each figure is a function that returns an ordinary altair chart: show it in a notebook, change it, or `save` it as SVG,
PNG, PDF, HTML or JSON. altair comes with the extra ``tiewise[report]`` and is imported when the first figure is drawn.
A new kind of figure is a new module whose functions end with `theme.apply_theme` or `theme.layer_chart`.
"""

from tiewise.figures.curves import curve
from tiewise.figures.first_stages import rba_range
from tiewise.figures.forests import forest, forest_rows
from tiewise.figures.plots import differences, group_sizes
from tiewise.figures.protocols import losses
from tiewise.figures.score_residuals import residuals
from tiewise.figures.theme import save

__all__ = ["curve", "differences", "forest", "forest_rows", "group_sizes", "losses", "rba_range", "residuals", "save"]
