"""The look that all figures share, and how they become files.

Colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart; lines that differ in
meaning differ in dashes too, for print in grey. The background is a white card, so that a figure can be read on a dark
page. The look is part of the chart and not of altair's settings: the charts of others stay as they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tiewise.errors import InputError
from tiewise.io.compression import PathLike
from tiewise.io.compression import save as save_bytes
from tiewise.tables.optional import need

if TYPE_CHECKING:
    import altair as alt

__all__ = ["FAINT", "GREY", "INK", "PALETTE", "WIDTH", "altair", "dressed", "kind_of", "rows", "save"]

Drawn = TypeVar("Drawn")

WIDTH = 620  # of a chart's frame, in pixels: a page's column

#: Okabe & Ito's colours in the order in which figures use them, without black, which is text, and yellow, too light.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
INK, GREY, FAINT = "#1f2328", "#59636e", "#e4e8ec"  # of text, of what stands beside it, of grids

_WORDS = {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal"}
_LINES = {"domainColor": GREY, "tickColor": GREY, "gridColor": FAINT}
_SUBTITLE = {"subtitleColor": GREY, "subtitleFontSize": 13, "subtitlePadding": 5, "subtitleLineHeight": 17}

CONFIG: Mapping[str, Any] = {
    "background": "#ffffff",
    "padding": 14,
    "font": "Helvetica, Arial, sans-serif",
    "view": {"stroke": None},
    "range": {"category": list(PALETTE)},
    "title": {"color": INK, "fontSize": 16, "anchor": "start", "offset": 12, **_SUBTITLE},
    "axis": {**_WORDS, **_LINES, "titlePadding": 8, "labelFlush": False},
    "legend": {**_WORDS, "symbolStrokeWidth": 2.5},
    "header": _WORDS,
    "text": {"color": INK, "fontSize": 12},
    "line": {"strokeWidth": 2.5},
    "bar": {"color": PALETTE[0]},
    "point": {"color": PALETTE[0], "filled": True, "size": 60},
    "rule": {"color": GREY},
}


class _InScript(json.JSONEncoder):
    """JSON to stand in a script: a name that looks like the end of the script does not end it."""

    def encode(self, o: Any) -> str:
        return super().encode(o).replace("<", "\\u003c")  # in JSON this can only stand in a text


#: The suffixes of files, and how altair is asked for each.
FORMATS: Mapping[str, Mapping[str, Any]] = {
    ".svg": {},
    ".png": {"scale_factor": 2},  # sharp in print and on dense screens
    ".pdf": {},
    ".html": {"inline": True, "json_kwds": {"cls": _InScript}},  # holds the programs that draw it: no network
    ".json": {},
}
BINARY = (".png", ".pdf")


def altair() -> Any:
    """The module altair, or an error that says how to install it."""
    return need("altair", "Drawing a figure", "report")


def dressed(chart: Drawn, description: str) -> Drawn:
    """The chart in the look of all figures, with a sentence that says what it shows to those who cannot see it.

    The look is the chart's configuration: ``chart.configure_axis(labelFontSize=20)`` puts another look of axes in the
    place of this one, and the rest stays.
    """
    drawn: Any = chart
    return drawn.properties(config=altair().Config(**CONFIG), description=description)


def rows(columns: Mapping[str, Iterable[Any]]) -> Any:
    """Columns as altair's data, without a data frame; NumPy's numbers become Python's."""
    plain = [column.tolist() if hasattr(column, "tolist") else list(column) for column in columns.values()]
    return altair().InlineData(values=[dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True)])


def kind_of(path: PathLike) -> str:
    """The suffix of a figure's path, or an error if a figure cannot be saved so, or not on this machine."""
    name = os.fspath(path)
    suffix = Path(name).suffix.lower()
    if suffix not in FORMATS:
        known = ", ".join(FORMATS)
        raise InputError(f"{name}: a figure cannot be saved as '{suffix}'. Give the file one of the suffixes {known}.")
    altair()
    need("vl_convert", "Saving a figure", "report")
    return suffix


def save(chart: alt.TopLevelMixin, path: PathLike) -> None:
    """Write a chart as SVG, PNG, PDF, HTML or JSON, by the suffix of the path: a whole file or none.

    It needs neither a browser nor a network. The HTML holds all that is needed to draw it; the JSON is the chart's
    specification in Vega-Lite.
    """
    suffix = kind_of(path)
    made: Any = BytesIO() if suffix in BINARY else StringIO()
    kind: Any = suffix[1:]
    chart.save(made, format=kind, **FORMATS[suffix])
    whole = made.getvalue()
    save_bytes(path, [whole if isinstance(whole, bytes) else whole.encode()])
