"""`Table` and `Section`: what every format shows. A result describes itself with them, and knows no format.

A `Table` has columns, rows of plain values, a title above and notes below. It knows nothing of measures. A `Section` is
what one result shows: tables and paragraphs, and notes at the end. The modules beside this one render them:
`text`, `markdown`, `latex`, `html`, and, for programs, `data_formats`. `Rows` is a small table for Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from tiewise.errors import InputError
from tiewise.results.base import Result
from tiewise.results.view import View
from tiewise.results.wording import format_value, spell_option

MAX_ROWS, PREVIEW_ROWS = 30, 10  #: the most rows that a notebook shows of a result, and of data
BLOCK_ROWS = 8192  #: the most rows that programs get at a time
BEST = "*"  #: the mark of the highest value of a column; some formats print it in bold instead
OPEN = "↑"  #: the mark of a value that another order of ties may put above the highest
CUT = "°"  #: the mark of an expected value that lists which may have been cut leave open


class Cell(NamedTuple):
    """The text of a cell, its mark, and smaller text behind it, such as a range."""

    text: str
    detail: str = ""
    mark: str = ""  #: BEST, OPEN, or the sign of a footnote, also after BEST
    shade: float | None = None  #: from 0 to 1: how strong its background is in HTML
    value: Any = None  #: what programs read, if that is not the text

    @property
    def is_best(self) -> bool:
        """Whether it is marked as the highest value."""
        return self.mark.startswith(BEST)

    @property
    def footnote(self) -> str:
        """The mark without that of the highest value."""
        return self.mark.removeprefix(BEST)

    def __str__(self) -> str:
        return f"{self.text}{self.mark}{' ' * bool(self.detail)}{self.detail}"


class Bar(NamedTuple):
    """A range to draw, with a line at its middle and a cross at its mark. Only HTML shows it."""

    low: float | None
    middle: float | None
    high: float | None
    mark: float | None = None


class Column(NamedTuple):
    """A column: programs read its name, people its heading."""

    name: str
    heading: str | None = None  #: None: the name
    align: Literal["left", "right"] = "left"
    width: int | None = None  #: on a terminal, longer texts are wrapped
    group: str = ""  #: a heading above this column and its neighbours of the same group
    shown: Literal["always", "default", "wide"] = "default"  #: see `Table.choose`

    @property
    def title(self) -> str:
        """The heading that people read."""
        return self.name if self.heading is None else self.heading


def cell_of(value: Any) -> Cell:
    """A value as people read it."""
    return value if isinstance(value, Cell) else Cell(format_value(value))


def columns_of(names: Sequence[str], numbers: Sequence[str]) -> tuple[Column, ...]:
    """Columns of names at the left, and columns of numbers."""
    return (*map(Column, names), *(Column(number, align="right") for number in numbers))


class Block(NamedTuple):
    """Some rows, by column: an array of numbers (NaN: none), a list of values, or one value that all rows have."""

    n_rows: int
    columns: Sequence[Any]

    def lists(self) -> list[list[Any]]:
        """The plain values of each column."""
        return [self._list(column) for column in self.columns]

    def _list(self, column: Any) -> list[Any]:
        if isinstance(column, np.ndarray):
            return [None if number != number else number for number in column.tolist()]
        return column if isinstance(column, list) else [column] * self.n_rows


class BlockRows(Sequence[Any]):
    """Rows that are computed when they are read, a block at a time: what programs read of a million queries.

    >>> rows = BlockRows(lambda: iter([Block(2, ["bm25", np.array([0.5, np.nan])])]))
    >>> list(rows), list(rows.take_columns([1]))
    ([('bm25', 0.5), ('bm25', None)], [(0.5,), (None,)])
    """

    def __init__(self, blocks: Callable[[], Iterator[Block]]):
        self.blocks = blocks

    def __iter__(self) -> Iterator[Any]:
        for block in self.blocks():
            yield from zip(*block.lists(), strict=True)

    def __len__(self) -> int:
        return sum(block.n_rows for block in self.blocks())

    def __getitem__(self, place: Any) -> Any:
        return list(self)[place]

    def take_columns(self, places: Sequence[int]) -> BlockRows:
        """The same rows with some of the columns."""
        return BlockRows(lambda: (Block(n, [columns[place] for place in places]) for n, columns in self.blocks()))


class Table(NamedTuple):
    """Columns and rows. A value is plain (text, number, bool or None), a `Cell` or a `Bar`."""

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    notes: tuple[str, ...] = ()  #: a legend, footnotes
    hint: str = ""  #: words of the notes that tell how to ask for more: see `Hint`
    bar_legend: str = ""  #: what the bars mean, for formats that draw them
    summary: frozenset[int] = frozenset()  #: rows that are set off by rules, such as a mean
    total: int | None = None  #: the number of all rows, where `rows` holds only the first

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any]], **fields: Any) -> Table:
        """A table of columns by name. Numbers and cells are aligned to the right.

        >>> table = Table.of_columns({"system": ["A", "B"], "score": [None, 0.5]})
        >>> [column.align for column in table.columns], table.rows
        (['left', 'right'], [('A', None), ('B', 0.5)])
        """
        made = tuple(Column(name, align=_alignment(values)) for name, values in columns.items())
        return cls(made, list(zip(*columns.values(), strict=True)), **fields)

    @classmethod
    def of_records(cls, names: Iterable[str], records: Iterable[Mapping[str, Any]]) -> Table:
        """A table for programs: these columns of some records."""
        columns = tuple(map(Column, names))
        return cls(columns, [tuple(record[column.name] for column in columns) for record in records])

    @classmethod
    def of_rows(
        cls, columns: Mapping[Column, Callable[[Any], Any]], rows: Iterable[Any], view: View, **fields: Any
    ) -> Table:
        """A table of objects, of which each column shows something; what a view does not want is not computed.

        >>> columns = {Column("name"): str.upper, Column("length", shown="wide"): len}
        >>> Table.of_rows(columns, ["bm25"], View()).records()
        [{'name': 'BM25'}]
        """
        empty = cls(tuple(columns), [], **fields).choose(view)
        return empty._replace(rows=[tuple(columns[column](row) for column in empty.columns) for row in rows])

    @classmethod
    def of_facts(cls, facts: Mapping[str, object], **fields: Any) -> Table:
        """A table with a row for each name and value; the values of a nested mapping follow its name.

        >>> Table.of_facts({"queries": 3, "gap": {"RR": 0.5}}).rows
        [('queries', 3), ('gap: RR', 0.5)]
        """
        rows: list[tuple[str, object]] = []
        for name, value in facts.items():
            nested = value.items() if isinstance(value, Mapping) else [("", value)]
            rows += [(f"{name}: {part}" if part else name, one) for part, one in nested]
        return cls((Column("name", ""), Column("value", "")), rows, **fields)

    @classmethod
    def of_record(cls, plain: Mapping[str, Any]) -> Table:
        """One row with a column for each single value of nested dictionaries."""
        flat = dict(_flatten(plain))
        return cls.of_records(flat, [flat])

    @property
    def full_titles(self) -> list[str]:
        """The headings, the first of each group after the name of the group: for formats with one line of headings."""
        groups = [column.group for column in self.columns]
        starts = [group if group != before else "" for before, group in zip(["", *groups], groups, strict=False)]
        return [f"{start} {column.title}".strip() for start, column in zip(starts, self.columns, strict=True)]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups of neighbouring columns, each with their number; empty if no column has a group."""
        found = [(name, len(list(some))) for name, some in groupby(column.group for column in self.columns)]
        return found if any(name for name, _ in found) else []

    def cells(self) -> list[list[Cell]]:
        """Every row as people read it."""
        return [list(map(cell_of, row)) for row in self.rows]

    def records(self) -> list[dict[str, Any]]:
        """Every row by the names of the columns, for programs."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, map(_plain, row), strict=True)) for row in self.rows]

    def blocks(self) -> Iterator[Block]:
        """The rows by column, some of them at a time, for programs."""
        if isinstance(self.rows, BlockRows):
            yield from self.rows.blocks()
        elif self.rows:
            yield Block(len(self.rows), [list(map(_plain, values)) for values in zip(*self.rows, strict=True)])

    def values(self, name: str) -> list[Any]:
        """The values of one column."""
        column = self.take_columns([[column.name for column in self.columns].index(name)])
        return [value for block in column.blocks() for value in block.lists()[0]]

    def choose(self, view: View) -> Table:
        """The table with the columns that a reader wants: those of `view.columns`, all, or those of the default.

        >>> columns = Column("run", shown="always"), Column("expected"), Column("std", shown="wide")
        >>> table = Table(columns, [("bm25", 0.5, 0.1)])
        >>> table.choose(View()).records(), table.choose(View(columns=("std",))).records()
        ([{'run': 'bm25', 'expected': 0.5}], [{'run': 'bm25', 'std': 0.1}])
        """
        names = list(dict.fromkeys(column.name for column in self.columns if column.shown != "always"))
        if unknown := [name for name in view.columns if name not in names]:
            raise InputError(f"There is no column '{unknown[0]}'. Use {', '.join(filter(None, names))}.")

        def is_chosen(column: Column) -> bool:
            if column.shown == "always" or view.wide:
                return True
            return column.name in view.columns if view.columns else column.shown == "default"

        return self.take_columns(place for place, column in enumerate(self.columns) if is_chosen(column))

    def take_columns(self, places: Iterable[int]) -> Table:
        """The same rows with some of the columns."""
        kept = list(places)
        columns, rows = tuple(self.columns[place] for place in kept), self.rows
        if isinstance(rows, BlockRows):
            return self._replace(columns=columns, rows=rows.take_columns(kept))
        return self._replace(columns=columns, rows=[tuple(row[place] for place in kept) for row in rows])

    def drop(self, *names: str) -> Table:
        """The same table without some columns, by name."""
        return self.take_columns(place for place, column in enumerate(self.columns) if column.name not in names)

    @property
    def document_notes(self) -> list[str]:
        """The notes without the hint.

        >>> Table((), [], notes=("±: other queries (two runs: compare)",), hint=" (two runs: compare)").document_notes
        ['±: other queries']
        """
        return [note.replace(self.hint, "") if self.hint else note for note in self.notes]

    def without_bars(self) -> Table:
        """The same table without columns of bars, for formats that cannot draw."""
        drawn = {place for row in self.rows for place, value in enumerate(row) if isinstance(value, Bar)}
        return self.take_columns(place for place in range(len(self.columns)) if place not in drawn) if drawn else self


def _plain(value: Any) -> Any:
    """What programs read of a value."""
    return value.value if isinstance(value, Cell) and value.value is not None else value


def _flatten(plain: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in plain.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{path}{name}.")
        elif not isinstance(value, list):
            yield f"{path}{name}", value


def _alignment(values: Sequence[Any]) -> Literal["left", "right"]:
    first = next((value for value in values if value is not None), "")
    return "right" if isinstance(first, (Real, Cell)) and not isinstance(first, bool) else "left"


Style = Literal["", "bold", "dim", "good", "warning", "bad"]


class Paragraph(NamedTuple):
    """A line of text that a terminal prints in a style."""

    text: str
    style: Style = ""


class Hint(Paragraph):
    """How to ask for more: a terminal and a notebook show it; documents (Markdown, LaTeX) do not."""

    @classmethod
    def explain(cls, *more: str) -> Hint:
        """The hint that `explain` tells how to read a result, and shows more.

        >>> Hint.explain("every tool").text
        'How to read this, every tool: explain=True'
        """
        return cls(f"{', '.join(('How to read this', *more))}: {spell_option('explain')}", "dim")


class Code(NamedTuple):
    """Lines of code, each under the name of what it is for."""

    lines: Mapping[str, str]


Part = Table | Paragraph | Code | str  #: a plain text is a paragraph; an empty one is a gap


class Section(NamedTuple):
    """What one result shows: a title, tables and paragraphs, and notes at the end."""

    parts: Sequence[Part] = ()
    title: str = ""
    notes: Sequence[str] = ()

    @property
    def tables(self) -> list[Table]:
        """The tables alone."""
        return [part for part in self.parts if isinstance(part, Table)]


# -- a small table to read, to loop over and to convert, without a data frame library -------------------------------


class Rows(Result, Sequence[Any]):
    """Rows that are dictionaries with the same keys; ``rows["score"]`` is a column, ``rows[0]`` a row.

    >>> rows = Rows({"system": ["A", "B"], "score": [0.5, None]})
    >>> rows["score"], rows[1]["system"], len(rows)
    ([0.5, None], 'B', 2)
    >>> rows
    system  score
    A       0.5000
    B       –
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]):
        self._columns = {name: list(column) for name, column in columns.items()}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), []))

    def __getitem__(self, key: Any) -> Any:
        """A column by its name, a row by its number, or some rows by a slice."""
        if isinstance(key, str):
            return self._columns[key]
        if isinstance(key, slice):
            return Rows({name: column[key] for name, column in self._columns.items()})
        return {name: column[key] for name, column in self._columns.items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self._columns, row, strict=True)) for row in zip(*self._columns.values(), strict=True))

    def _section(self, view: View) -> Section:
        return Section([Table.of_columns(self._columns)])

    def __repr__(self) -> str:
        shown = [[name, *map(format_value, column)] for name, column in self._columns.items()]
        widths = [max(map(len, column)) for column in shown]
        lines = (zip(row, widths, strict=True) for row in zip(*shown, strict=True))
        return "\n".join("  ".join(f"{text:<{width}}" for text, width in line).rstrip() for line in lines)
