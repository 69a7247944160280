r"""Sections as LaTeX tables: they need ``\usepackage{booktabs}``. Paragraphs and notes of a table are comments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tiewise._version import __version__
from tiewise.tables.model import BEST, OPEN, Cell, Code, Paragraph, Part, Section, Table
from tiewise.tables.wording import escape_controls

__all__ = ["render_latex"]

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # at the head of a line it would belong to the line break before it
    "–": "--",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "≈": r"$\approx$",
    "−": "$-$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_MARKS = {"": "", BEST: "", OPEN: r"$^{\approx}$"}
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def render_latex(section: Section) -> str:
    """Every table of a section as a tabular, with the paragraphs that follow it as comments above it."""
    found: list[tuple[Table, list[str]]] = []
    for part in section.parts:
        if isinstance(part, Table):
            title = [] if found else [section.title]
            found.append((part, [*title, part.title, *part.notes]))
        elif found:
            found[-1][1].extend(_comments(part))
    return "\n".join("".join(f"{line}\n" for line in _lines(table, comments)) for table, comments in found)


def _comments(part: Part) -> Iterator[str]:
    if isinstance(part, Code):
        yield from (f"  {use}: {line}" for use, line in part.lines.items())
    elif not isinstance(part, Table):
        yield part.text if isinstance(part, Paragraph) else part


def _lines(whole: Table, comments: Sequence[str]) -> Iterator[str]:
    table = whole.without_bars()
    yield f"% tiewise {__version__}; needs \\usepackage{{booktabs}}"
    yield from (f"% {escape_controls(line)}" for line in comments if line)
    yield rf"\begin{{tabular}}{{{''.join(column.align[0] for column in table.columns)}}}"
    yield r"\toprule"
    yield _row([_escape(column.title) for column in table.columns])
    yield r"\midrule"
    for place, row in enumerate(table.cells()):
        if place and {place, place - 1} & table.summary:
            yield r"\midrule"
        yield _row([_cell(cell) for cell in row])
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(cell: Cell) -> str:
    text = _escape(cell.text)
    text = rf"\textbf{{{text}}}" if cell.mark == BEST else text
    detail = rf" {{\scriptsize {_escape(cell.detail)}}}" if cell.detail else ""
    raised = rf"\textsuperscript{{{cell.mark.translate(_RAISED)}}}"
    return text + _MARKS.get(cell.mark, raised) + detail


def _escape(text: str) -> str:
    r"""Text in which nothing is LaTeX.

    >>> print(_escape("a_b 50%"))
    a\_b 50\%
    """
    return "".join(_SPECIAL.get(sign, sign) for sign in escape_controls(text))
