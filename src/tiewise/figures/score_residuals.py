"""`residuals`: how far two scores of one document lie apart, against the score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tiewise.analysis.rerun.residuals import ScoreNoise
from tiewise.errors import InputError
from tiewise.figures.theme import GREY, PALETTE, layer_chart, load_altair

if TYPE_CHECKING:
    import altair as alt

#: The most documents that are drawn, at even distances by score.
MAX_POINTS = 2000


class ScoreNoisePlots:
    """The figure of a `ScoreNoise`; it is an ordinary altair chart."""

    def __init__(self, noise: ScoreNoise):
        self._noise = noise

    def residuals(self, *, title: str = "") -> alt.LayerChart:
        """The residuals by score, with ± their standard deviation: see `tiewise.figures.residuals`."""
        return residuals(self._noise, title=title)


def residuals(noise: ScoreNoise, *, title: str = "") -> alt.LayerChart:
    """The second score of each document less the curve of the first, against its first score.

    The bars are ± one standard deviation of the residuals, by ranges of the score.
    """
    score, residual = noise.residuals
    if not len(score):
        raise InputError("No document was compared: there are no residuals to draw.")
    alt = load_altair()
    order = np.argsort(score, kind="stable")[:: len(score) // MAX_POINTS + 1]
    points = [{"score": x, "residual": y} for x, y in zip(score[order].tolist(), residual[order].tolist(), strict=True)]
    spread = [one.std * 2**0.5 for one in noise.by_score]
    bars = [
        {"low": one.low, "high": one.high, "top": size, "bottom": -size, "documents": one.documents}
        for one, size in zip(noise.by_score, spread, strict=True)
    ]
    scale = alt.Scale(zero=False, nice=False)
    dots = alt.Chart(alt.InlineData(values=points)).mark_circle(size=9, opacity=0.4, color=GREY)
    ranges = alt.Chart(alt.InlineData(values=bars)).mark_rect(opacity=0.3, color=PALETTE[0])
    layers = [
        ranges.encode(
            alt.X("low:Q", title="score in the first run", scale=scale),
            alt.X2("high:Q"),
            alt.Y("bottom:Q", title="second score − curve"),
            alt.Y2("top:Q"),
            tooltip=[alt.Tooltip("documents:Q"), alt.Tooltip("top:Q", format=".2g", title="standard deviation")],
        ),
        dots.encode(alt.X("score:Q"), alt.Y("residual:Q")),
    ]
    return layer_chart(
        layers,
        title=title or "What scoring again changes",
        subtitle=noise.sentence,
        description="The residuals of two scores of each document, against the score.",
        height=280,
    )
