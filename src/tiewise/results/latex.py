r"""Sections as LaTeX tables for a paper: they need ``\usepackage{booktabs,siunitx}``.

Columns of numbers are aligned at the decimal point (siunitx). A table that is too wide for a column of a paper spans
both (``table*``), in smaller letters if it must. The title and the legend of a table are its caption; paragraphs of a
section are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tiewise._version import __version__
from tiewise.results.model import BEST, OPEN, Cell, Code, Column, Hint, Paragraph, Part, Section, Table
from tiewise.results.wording import MINUS, MISSING, add_zeros, capitalize_first, escape_controls

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",  # a dash in the first encoding of TeX
    "[": "{[}",  # at the head of a line it would belong to the line break before it
    "–": "--",
    MINUS: "$-$",
    "≈": r"$\approx$",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "τ": r"$\tau$",
    "φ": r"$\varphi$",
    "→": r"$\rightarrow$",
    "↑": r"$\triangle$",  # an arrow would look like a dagger
    "°": r"$\circ$",
    "↓": r"$\downarrow$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "¶": r"\P{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{raised: rf"\textsuperscript{{{digit}}}" for digit, raised in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
}
_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_NUMBER = re.compile(rf"([+{MINUS}]?)(\d*)(?:\.(\d+))?")
_ENDS = re.compile(rf"[~≥≤{MINUS}]?\d*\.\d+ – [~≥≤{MINUS}]?\d*\.\d+")  #: lowest – highest
#: The width of a column of a paper, and of a letter and a small letter of a table, in points.
_COLUMN, _LETTER, _SMALL = 235, 4.8, 3.3
#: Sizes of letters, with their ratio to the first, and the space on both sides of a column in points.
_SIZES = {"small": (1, 4), "footnotesize": (8 / 9, 3), "scriptsize": (7 / 9, 2)}
_NUMBERS = "reset-text-series=false,text-series-to-math=true,retain-explicit-plus"  #: bold ones, and those with a sign
_PREAMBLE = rf"% tiewise {__version__}; needs \usepackage{{booktabs,siunitx}}"


def render_latex(section: Section) -> str:
    """Every table of a section in a table environment, with the paragraphs that follow it as comments above it."""
    found: list[tuple[Table, list[str]]] = []
    for part in section.parts:
        if isinstance(part, Table):
            found.append((part, []))
        elif found:
            found[-1][1].extend(_comments(part))
    return "\n".join(
        "".join(f"{line}\n" for line in _lines(table, "" if place else section.title, comments))
        for place, (table, comments) in enumerate(found)
    )


def _comments(part: Part) -> Iterator[str]:
    if isinstance(part, Code):
        yield from (f"  {use}: {line}" for use, line in part.lines.items())
    elif not isinstance(part, (Table, Hint)):
        yield part.text if isinstance(part, Paragraph) else part


def _lines(whole: Table, title: str, comments: Sequence[str]) -> Iterator[str]:
    table = whole.without_bars()
    cells, columns = table.cells(), _columns(table)
    environment, size = _layout(columns)
    yield _PREAMBLE
    yield from (f"% {escape_controls(line)}" for line in comments if line)
    yield rf"\begin{{{environment}}}[t]"
    space = _SIZES[size][1]
    yield rf"\centering\{size}\setlength{{\tabcolsep}}{{{space}pt}}\setlength{{\belowcaptionskip}}{{4pt}}"
    yield rf"\sisetup{{{_NUMBERS}}}"
    sentences = (
        text.replace(f"{BEST} highest", "Bold: highest").replace(f"{BEST} chosen", "Bold: chosen")
        for text in (title, table.title, *map(capitalize_first, table.document_notes))
        if text
    )
    caption = " ".join(text if text.endswith((".", ":")) else f"{text}." for text in sentences)
    yield from [rf"\caption{{{escape_latex(add_zeros(caption))}}}"] if caption else []
    yield rf"\begin{{tabular}}{{{''.join(column.kind for column in columns)}}}"
    yield r"\toprule"
    if table.groups:
        yield from _group_lines(table.groups, [1 + column.has_details for column in columns])
    if any(column.title for column in table.columns):
        yield _row([column.head for column in columns])
        yield r"\midrule"
    for number, row in enumerate(cells):
        if number and {number, number - 1} & table.summary:
            yield r"\midrule"
        yield _row([column.cell(cell) for column, cell in zip(columns, row, strict=True)])
        if any(cell.detail for cell in row) and not any(column.has_details for column in columns):
            yield _row([_detail(cell, column.is_numeric) for column, cell in zip(columns, row, strict=True)])
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield rf"\end{{{environment}}}"


def fits_page(table: Table) -> bool:
    """Whether a table is narrow enough for letters that are easy to read."""
    return _layout(_columns(table))[1] != list(_SIZES)[-1]


def _layout(columns: Sequence[_LatexColumn]) -> tuple[str, str]:
    """The environment of a table, which may span both columns of a paper, and the size of its letters."""
    width, number = sum(column.width for column in columns), len(columns)
    totals = {size: width * ratio + 2 * space * number for size, (ratio, space) in _SIZES.items()}
    size = next((size for size, total in totals.items() if total <= 2 * _COLUMN), list(_SIZES)[-1])
    return "table" if totals["small"] <= _COLUMN else "table*", size


def _columns(table: Table) -> list[_LatexColumn]:
    cells = table.cells()
    detailed = [place for place in range(len(table.columns)) if any(row[place].detail for row in cells)]
    # The details of several columns stand below the numbers: beside them, they would make the table too wide.
    return [
        _LatexColumn(column, [row[place] for row in cells], details_beside=detailed == [place])
        for place, column in enumerate(table.columns)
    ]


def _group_lines(groups: Sequence[tuple[str, int]], spans: Sequence[int]) -> Iterator[str]:
    """The headings of groups of columns, and a rule below each; a column with details is two of LaTeX."""
    heads, rules, place, start = list[str](), list[str](), 0, 1
    for name, many in groups:
        span = sum(spans[place : place + many])
        heads.append(rf"\multicolumn{{{span}}}{{{'c' if name else 'l'}}}{{{escape_latex(name)}}}")
        rules += [rf"\cmidrule(lr){{{start}-{start + span - 1}}}"] if name else []
        place, start = place + many, start + span
    yield _row(heads)
    yield "".join(rules)


class _LatexColumn:
    """A column of a tabular: numbers are aligned at the point; details may have a column of their own behind them."""

    def __init__(self, column: Column, cells: Sequence[Cell], *, details_beside: bool):
        texts = [cell.text for cell in cells if cell.text not in ("", MISSING)]
        found = [_NUMBER.fullmatch(text) for text in texts]
        self._title, self.has_details = column.title, details_beside
        self._is_text = column.align == "left"
        words = _LETTER * max(len(column.title), *(len(add_zeros(cell.text) + cell.footnote) for cell in cells), 0)
        details = _SMALL * max((len(add_zeros(cell.detail)) for cell in cells), default=0)
        self.width = words + details if details_beside else max(words, details)  #: about, in points
        self.is_numeric = column.align == "right" and bool(texts) and all(found)
        self.kind = column.align[0]
        if self.is_numeric:
            sign = "+" if any(match and match[1] for match in found) else ""
            whole, digits = (max(len(match[part] or "") for match in found if match) for part in (2, 3))
            widest = max(cells, key=lambda cell: len(cell.footnote) + 0.8 * cell.footnote.count(OPEN))  # ↑ is wide
            marks = _mark(widest)
            space = f",table-space-text-post={{{marks}}}" if marks else ""
            self.kind = f"S[table-format={sign}{max(whole, 1)}.{digits}{space}]"
        if self.has_details:
            self.kind += r"@{\,}l"

    @property
    def head(self) -> str:
        title = escape_latex(self._title)
        if self.has_details:
            return rf"\multicolumn{{2}}{{c}}{{{title}}}"
        return f"{{{title}}}" if self.is_numeric else title

    def cell(self, cell: Cell) -> str:
        is_name = self._is_text and not _ENDS.search(cell.text)
        text, mark = escape_latex(cell.text if is_name else add_zeros(cell.text)), _mark(cell)
        if not self.is_numeric:
            text = (rf"\textbf{{{text}}}" if cell.is_best else text) + mark
        elif _NUMBER.fullmatch(cell.text) and cell.text:
            number = add_zeros(cell.text.replace(MINUS, "-"))
            text = (r"\bfseries " if cell.is_best else "") + number + (f"{{{mark}}}" if mark else "")
        else:
            text = f"{{{text}{mark}}}" if text or mark else "{}"
        if not self.has_details:
            return text
        return f"{text} & {_detail(cell)}"


def _mark(cell: Cell) -> str:
    return rf"\textsuperscript{{{escape_latex(cell.footnote.translate(_LOWERED))}}}" if cell.footnote else ""


def _detail(cell: Cell, is_numeric: bool = False) -> str:
    """Small text, with zeros as siunitx writes them; in a column of numbers in braces, as it is not one of them."""
    if not cell.detail:
        return "{}" if is_numeric else ""
    return rf"{{\scriptsize {escape_latex(add_zeros(cell.detail))}}}"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def escape_latex(text: str) -> str:
    r"""Text in which nothing is LaTeX.

    >>> print(escape_latex("a_b 50% [−.004, .003]"))
    a\_b 50\% {[}$-$.004, .003]
    """
    return "".join(_SPECIAL.get(sign, sign) for sign in escape_controls(text))
