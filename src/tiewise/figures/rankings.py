"""The range of RBA as a chart to choose φ by: Figure 6 of Moffat et al. (SIGIR-AP 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.figures.theme import INK, inline_data, layer_chart, load_altair
from tiewise.rankings.weights import reversed_rba

if TYPE_CHECKING:
    import altair as alt

EXTREMES = ("reversed: the least", "the same: the most")


def rba_range(lengths: Sequence[int] = (10, 50, 100), *, phi: tuple[float, float] = (0.3, 1.0)) -> alt.LayerChart:
    """The range of RBA between permutations as a function of φ, for some lengths: a chart to choose φ by.

    The solid line is the score of a reversed ranking, k(1−φ)·φ^((k−1)/2) (Eq. 12), the lowest of a permutation. The
    dashed line is the score of the same ranking, 1 − φ^k, the highest. A dot marks the peak of each solid line, at
    φ* = (k−1)/(k+1). `phi` are the ends of the axis.
    """
    low, high = phi
    if not lengths or min(lengths) < 2:
        raise InputError(f"lengths={tuple(lengths)!r}: give one or more lengths of rankings, of two items or more.")
    if not 0 <= low < high <= 1:
        raise InputError(f"phi={phi!r}: give where the axis begins and ends, between 0 and 1.")
    alt = load_altair()
    names = [f"{k} items" for k in lengths]
    legend = {"orient": "top", "symbolType": "stroke", "symbolSize": 500}
    axes = {
        "x": alt.X("phi:Q", title="φ", scale=alt.Scale(domain=[low, high], nice=False), axis=alt.Axis(tickCount=8)),
        "y": alt.Y("score:Q", title="RBA", scale=alt.Scale(domain=[0, 1])),
        "color": alt.Color("length:N", title=None, scale=alt.Scale(domain=names), legend=alt.Legend(**legend)),
    }
    dash = alt.StrokeDash(
        "order:N",
        title=None,
        scale=alt.Scale(domain=list(EXTREMES), range=[[1, 0], [6, 4]]),
        legend=alt.Legend(**legend, symbolStrokeColor=INK),
    )
    grid = np.linspace(low, high, 281)
    lines = alt.Chart(_range_lines(lengths, names, grid)).mark_line().encode(**axes, strokeDash=dash)
    peaks = alt.Chart(_range_peaks(lengths, names, phi)).mark_point(size=70, opacity=1).encode(**axes)
    return layer_chart(
        [lines, peaks],
        title="The range of RBA between permutations",
        subtitle="Where the solid line has come near the dashed one, orders can no longer be told apart.",
        description=f"RBA of reversed and of equal rankings of {', '.join(map(str, lengths))} items against φ.",
        height=340,
    )


def _range_lines(lengths: Sequence[int], names: Sequence[str], phi: Floats) -> Any:
    """The two lines of each length, point by point."""
    scores = [line for k in lengths for line in (reversed_rba(phi, k), 1 - phi**k)]
    return inline_data(
        {
            "length": np.repeat(names, 2 * len(phi)),
            "order": np.tile(np.repeat(EXTREMES, len(phi)), len(lengths)),
            "phi": np.round(np.tile(phi, 2 * len(lengths)), 5),
            "score": np.round(np.concatenate(scores), 5),
        }
    )


def _range_peaks(lengths: Sequence[int], names: Sequence[str], phi: tuple[float, float]) -> Any:
    """The peaks of the solid lines that are on the axis."""
    peaks = [((k - 1) / (k + 1), k, name) for k, name in zip(lengths, names, strict=True)]
    inside = [(peak, reversed_rba(peak, k), name) for peak, k, name in peaks if phi[0] <= peak <= phi[1]]
    return inline_data(dict(zip(("phi", "score", "length"), zip(*inside, strict=True), strict=False)))
