"""The common look of all figures, and how they are saved.

The colours are those of Okabe and Ito, which people with any kind of colour vision can distinguish. Lines also differ
in dashes, for print in grey. The background is white, so a figure can be read on a dark page. The look is part of each
chart and not of altair's settings, so other charts of the user do not change.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from io import BytesIO, StringIO
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeVar

from tiewise.errors import InputError
from tiewise.io.compression import PathLike
from tiewise.io.compression import save as save_bytes
from tiewise.results.optional import installed, need

if TYPE_CHECKING:
    import altair as alt

ChartT = TypeVar("ChartT")

WIDTH = 620  # of a chart's frame, in pixels: the width of a page's column
ROWS_WIDTH = WIDTH - 160  # of the frame of a chart with a row for each name
# A saved figure is drawn in the font of its reader, which may be wider than that of the renderer by a sixth.
SUBTITLE_WIDTH = 96  # in characters
LETTER = 7  # the width of a letter of a label, in pixels
BETWEEN = 28  # the distance of a legend's columns, in pixels

#: Okabe & Ito's colours in the order of use, without black, which is for text, and yellow, which is too light.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
INK, GREY, FAINT = "#1f2328", "#59636e", "#e4e8ec"  # text, secondary text, grids

_TEXT = {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal"}
_AXIS_LINES = {"domainColor": GREY, "tickColor": GREY, "gridColor": FAINT}
_SUBTITLE = {"subtitleColor": GREY, "subtitleFontSize": 13, "subtitlePadding": 5, "subtitleLineHeight": 17}

CONFIG: Mapping[str, Any] = {
    "background": "#ffffff",
    "padding": 14,
    "font": "Helvetica, Arial, sans-serif",
    "view": {"stroke": None},
    "range": {"category": list(PALETTE)},
    "title": {"color": INK, "fontSize": 16, "anchor": "start", "offset": 12, **_SUBTITLE},
    "axis": {**_TEXT, **_AXIS_LINES, "titlePadding": 8, "labelFlush": False},
    "legend": {**_TEXT, "symbolStrokeWidth": 2.5, "columnPadding": BETWEEN},
    "header": _TEXT,
    "text": {"color": INK, "fontSize": 12},
    "line": {"strokeWidth": 2.5},
    "bar": {"color": PALETTE[0]},
    "point": {"color": PALETTE[0], "filled": True, "size": 60},
    "rule": {"color": GREY},
}


class _ScriptSafeEncoder(json.JSONEncoder):
    """JSON for an HTML script: a name such as ``</script>`` does not end the script."""

    def encode(self, o: Any) -> str:
        return super().encode(o).replace("<", "\\u003c")  # in JSON, < can only be part of a string


#: The suffixes of files, with altair's options for each.
FORMATS: Mapping[str, Mapping[str, Any]] = {
    ".svg": {},
    ".png": {"scale_factor": 2},  # sharp in print and on dense screens
    ".pdf": {},
    ".html": {"inline": True, "json_kwds": {"cls": _ScriptSafeEncoder}},  # with all scripts inside: needs no network
    ".json": {},
}
BINARY = (".png", ".pdf")


def load_altair() -> Any:
    """The module altair, or an error that says how to install it."""
    return need("altair", "Drawing a figure", "report")


def load_renderer(what: str) -> Any:
    """The module vl_convert, or an error that says how to install it, or that it cannot run under a limit of memory."""
    module = need("vl_convert", what, "report")
    limit = _address_space()
    if limit is not None and not _renders():
        raise InputError(
            f"Charts cannot be drawn under this limit of address space ({limit:,} bytes; the renderer reserves about "
            "40 GB and uses little of it). Raise it: ulimit -v unlimited"
        )
    return module


def _address_space() -> int | None:
    """The limit of this process's address space in bytes; None if there is none."""
    resource = installed("resource")
    if resource is None:  # Windows has no such limits
        return None
    limit: int = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


@cache
def _renders() -> bool:
    """Whether the renderer starts, tried in another process: it kills its process if it cannot."""
    code = "import sys; sys.path.pop(0); import vl_convert; vl_convert.vegalite_to_vega({'mark': 'point'})"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def shorten_labels(pixels: int) -> dict[str, Any]:
    """Options of an axis or a legend that shorten labels in the middle: long names often differ at their ends."""
    return {"labelLimit": pixels, "labelExpr": f"truncate(datum.label, {pixels // LETTER}, 'center')"}


def name_axis(field: str, names: Sequence[str]) -> Any:
    """The axis of a chart with a row for each name: names stand on the left of a frame of `ROWS_WIDTH`."""
    alt = load_altair()
    axis = alt.Axis(**shorten_labels(240), ticks=False, domain=False, labelPadding=8, grid=True)
    return alt.Y(f"{field}:N", title=None, sort=list(names), axis=axis)


def name_legend(names: Sequence[str]) -> dict[str, Any]:
    """Options of a legend of names, in as many columns as the frame has room for."""
    longest = min(260, LETTER * max(map(len, names)))
    return {"orient": "top", "columns": max(1, min(4, WIDTH // (longest + 32 + BETWEEN))), **shorten_labels(260)}


def inline_data(columns: Mapping[str, Iterable[Any]]) -> Any:
    """Columns as data for altair, without a data frame; NumPy's numbers become Python's."""
    plain = [column.tolist() if hasattr(column, "tolist") else list(column) for column in columns.values()]
    values = [dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True)]
    return load_altair().InlineData(values=values)


def tooltips(*fields: str) -> list[Any]:
    """Tooltips of fields such as ``"cutoff:Q"``. altair would check plain texts against its whole schema."""
    alt = load_altair()
    return [alt.Tooltip(field) for field in fields]


def palette_colors(n: int) -> list[str]:
    """The colours of n series, in order; after the last colour they start again."""
    return [PALETTE[i % len(PALETTE)] for i in range(n)]


def apply_theme(chart: ChartT, description: str) -> ChartT:
    """The chart in the common look, with a description for readers who cannot see it.

    The look is the chart's configuration: ``chart.configure_axis(labelFontSize=20)`` replaces the look of the axes and
    keeps the rest.
    """
    themed: Any = chart
    made: ChartT = themed.properties(config=load_altair().Config(**CONFIG), description=description)
    kind: Any = type(made)
    object.__setattr__(made, "__class__", _offline_class(kind))  # altair would put an attribute into the chart
    return made


@cache
def _offline_class(kind: Any) -> Any:
    """A class of charts that a notebook shows as SVG: altair's own way loads scripts from a server.

    If another of altair's renderers is chosen (``alt.renderers.enable``), it is used.
    """

    def show(self: Any, *args: Any, **kwds: Any) -> Any:
        if load_altair().renderers.active != "default" or installed("vl_convert") is None:
            return kind._repr_mimebundle_(self, *args, **kwds)
        buffer = StringIO()
        self.save(buffer, format="svg")
        return {"image/svg+xml": buffer.getvalue(), "text/plain": f"{kind.__name__}(…)"}

    return type(kind.__name__, (kind,), {"_repr_mimebundle_": show, "__doc__": kind.__doc__})


def make_title(title: str, subtitle: str = "") -> Any:
    """A title; the subtitle is wrapped to its width."""
    return load_altair().Title(title, **({"subtitle": wrap(subtitle, SUBTITLE_WIDTH)} if subtitle else {}))


def layer_chart(
    layers: Sequence[Any], *, title: str, description: str, height: Any, width: float = WIDTH, subtitle: str = ""
) -> alt.LayerChart:
    """Layers as one chart in the common look."""
    heading = make_title(title, subtitle)
    chart: Any = load_altair().layer(*layers).properties(width=width, height=height, title=heading)
    return apply_theme(chart, description)


def check_figure_path(path: PathLike) -> str:
    """The suffix of a path; an error if a figure cannot be saved in that format, or not on this machine."""
    name = os.fspath(path)
    suffix = Path(name).suffix.lower()
    if suffix not in FORMATS:
        known = ", ".join(FORMATS)
        raise InputError(f"{name}: a figure cannot be saved as '{suffix}'. Give the file one of the suffixes {known}.")
    load_altair()
    load_renderer("Saving a figure")
    return suffix


def save(chart: alt.TopLevelMixin, path: PathLike) -> None:
    """Write a chart as SVG, PNG, PDF, HTML or JSON, by the suffix of the path. The file is written whole or not at all.

    It needs no browser and no network. The HTML holds everything that is needed to draw the chart; the JSON is its
    specification in Vega-Lite.
    """
    suffix = check_figure_path(path)
    buffer: Any = BytesIO() if suffix in BINARY else StringIO()
    format_name: Any = suffix[1:]
    chart.save(buffer, format=format_name, **FORMATS[suffix])
    content = buffer.getvalue()
    save_bytes(path, [content if isinstance(content, bytes) else content.encode()])
