"""A LaTeX table for booktabs, with the range small behind its number and the highest of each column in bold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tiewise._version import __version__
from tiewise.output.grid import BEST, OPEN, Cell, Grid, grid_of, tool_grid
from tiewise.output.sheet import Sheet
from tiewise.output.view import Named, View
from tiewise.output.wording import safe

__all__ = ["draw", "render"]

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # at the head of a line it would belong to the line break before it
    "–": "--",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_MARKS = {"": "", BEST: "", OPEN: r"$^{\approx}$"}


def render(reports: Sequence[Named], view: View) -> str:
    r"""The grid of some reports as a tabular; it needs ``\usepackage{booktabs}``."""
    grids = [tool_grid(report, view) for _, report in reports] if view.tools else [grid_of(reports, view)]
    return "\n".join(_tabular(grid) for grid in grids)


def draw(sheet: Sheet, view: View) -> str:
    """The grid of a sheet as a tabular, its title in a comment."""
    return _tabular(sheet.grid(view), sheet.title)


def _tabular(grid: Grid, *title: str) -> str:
    return "".join(f"{line}\n" for line in _lines(grid, title))


def _lines(grid: Grid, title: Sequence[str]) -> Iterator[str]:
    yield f"% tiewise {__version__}; needs \\usepackage{{booktabs}}"
    yield from (f"% {safe(line)}" for line in (*title, *grid.legend))
    yield rf"\begin{{tabular}}{{{'l' * len(grid.names)}{'r' * len(grid.heads)}}}"
    yield r"\toprule"
    yield _row([*map(_escaped, grid.names), *map(_escaped, grid.heads)])
    yield r"\midrule"
    for before, line in zip((None, *grid.lines), grid.lines, strict=False):
        if before and (before.summary or line.summary):
            yield r"\midrule"
        yield _row([*map(_escaped, line.names), *map(_cell, line.cells)])
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(cell: Cell) -> str:
    number = _escaped(cell.number)
    number = rf"\textbf{{{number}}}" if cell.mark == BEST else number
    detail = rf" {{\scriptsize {_escaped(cell.detail)}}}" if cell.detail else ""
    return number + _MARKS.get(cell.mark, rf"\textsuperscript{{{_plain(cell.mark)}}}") + detail


def _plain(mark: str) -> str:
    """A raised number as digits."""
    return mark.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))


def _escaped(text: str) -> str:
    r"""Text in which nothing is LaTeX.

    >>> print(_escaped("a_b 50%"))
    a\_b 50\%
    """
    return "".join(_SPECIAL.get(sign, sign) for sign in safe(text))
