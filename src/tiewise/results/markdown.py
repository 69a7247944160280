"""Sections as Markdown, good for a pull request: tables, the paragraphs that explain them, and notes as a list."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tiewise.results.model import Cell, Code, Hint, Paragraph, Part, Section, Table
from tiewise.results.wording import escape_controls


def render_markdown(section: Section) -> str:
    """A section as Markdown that ends with a line break."""
    blocks = [f"{_escape(section.title)}:"] if section.title else []
    blocks += [block for part in section.parts for block in _blocks(part)]
    blocks += ["\n".join(f"- {_escape(note)}" for note in section.notes)]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _blocks(part: Part) -> Iterator[str]:
    if isinstance(part, Table):
        yield f"{_escape(part.title)}:" if part.title else ""
        yield "\n".join(f"| {' | '.join(line)} |" for line in _lines(part.without_bars()))
        yield from map(_escape, part.document_notes)
    elif isinstance(part, Code):
        lines = (f"# for {use}\n{line}\n" for use, line in part.lines.items())
        yield f"```python\n{''.join(lines)}```"
    elif not isinstance(part, Hint):
        yield _escape(part.text if isinstance(part, Paragraph) else part)


def _lines(table: Table) -> Iterator[list[str]]:
    yield [_escape(title) for title in table.full_titles]
    yield [":--" if column.align == "left" else "--:" for column in table.columns]
    for row in table.cells():
        yield [_cell(cell, column.align) for column, cell in zip(table.columns, row, strict=True)]


def _cell(cell: Cell, align: str) -> str:
    text = _escape(cell.text) if align == "left" else cell.text  # numbers need no escapes
    text = f"**{text}**" if cell.is_best else text
    return f"{text}{_escape(cell.mark)}{' ' * bool(cell.detail)}{cell.detail}"


def _escape(text: str) -> str:
    """Text in which nothing is Markdown or HTML.

    >>> print(_escape("a_b|<i>"))
    a\\_b\\|&lt;i>
    """
    shown = re.sub(r"([\\`*_{}\[\]|~#])", r"\\\1", escape_controls(text))
    return shown.replace("&", "&amp;").replace("<", "&lt;")
