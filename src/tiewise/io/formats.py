"""Formats of files: their names, how they are recognised from the content, and the columns of text formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from tiewise.data.judgments import Kind, Qrels, has_subtopics
from tiewise.data.neighbors import find_metric
from tiewise.data.runs import Run
from tiewise.data.table import DOC_NAMES, QUERY_NAMES, Table, swapped_message
from tiewise.errors import InputError
from tiewise.io.compression import HEAD
from tiewise.io.text_columns import (
    QUOTED,
    SEPARATORS,
    ColumnOrder,
    check_names,
    check_order,
    find_columns,
    named_columns,
    names_columns,
    rewrite,
    split_line,
)


class Format(NamedTuple):
    """What is known of a format by its name."""

    family: str  # lines of text, JSON documents, or Parquet
    only: str = ""  # "run" or "qrels", if it holds no other
    subtopics: bool = True  # whether it can hold judgments for subtopics


FORMATS = {
    "trec": Format("lines"),
    "msmarco": Format("lines", subtopics=False),
    "beir": Format("lines", "qrels", subtopics=False),
    "columns": Format("lines", subtopics=False),
    "json": Format("documents"),
    "mteb": Format("documents", "run"),
    "sentence-transformers": Format("documents", "run"),
    "reranker": Format("documents", "run"),
    "rankings": Format("documents"),
    "rows": Format("documents"),
    "parquet": Format("parquet"),
    "arrow": Format("arrow"),
}
ARROW = (b"ARROW1", b"\xff\xff\xff\xff")  # a file, also called Feather, and a stream
BOM = b"\xef\xbb\xbf"
SAMPLE = HEAD  # bytes from the first row on that show which column is which
MAX_COLUMNS = 100  # more columns of a malformed line are not counted
# The start of JSON, well-formed or not. An id in a TREC file may start with a bracket too.
JSON = re.compile(rb"""\s*(?:\{\s*(?:["'}]|$)|\[\s*(?:["'\[{\]]|[-\d.]+\s*,|$))""")
INTEGER = re.compile(rb"[-+]?[0-9]+")
RETURN_ADVICE = "a carriage return inside a line. If lines end in CR alone, convert them: tr '\\r' '\\n' < FILE"


class Layout(NamedTuple):
    """The columns of a line: "query", "document", and a number, which is a "score", a "label" or a "rank".

    Judgments for diversity measures have a "subtopic", too.
    """

    format: str
    columns: tuple[str, ...]
    nan_advice: str
    tabs: bool = False  # only tabs separate columns, so ids may contain spaces
    tag: bytes = b""  # of the run; a line with more words must have it, if it is known

    @property
    def has_subtopics(self) -> bool:
        """Whether there is a column of subtopics."""
        return "subtopic" in self.columns

    @property
    def number(self) -> str:
        """The column with the number: the rank only if there is neither a score nor a label."""
        return next(name for name in ("score", "label", "rank") if name in self.columns)

    def split(self, line: bytes) -> list[bytes]:
        """The cells of a line. Words after the run tag are ignored, as trec_eval does.

        If the rank is not an integer, or the tag is not that of the run, they are kept: an id may contain a blank,
        which shifts the columns.
        """
        cells, width = split_cells(line, self.tabs), len(self.columns)
        if "tag" in self.columns and len(cells) > width and INTEGER.fullmatch(cells[self.columns.index("rank")]):
            return cells[:width] if self.tag in (b"", cells[width - 1]) else cells
        return cells

    def is_row(self, line: bytes) -> bool:
        """Whether a line is neither blank nor a comment."""
        return bool(line.strip()) and not line.lstrip(b"\t\r" if self.tabs else None).startswith(b"#")

    def normalize(self, line: bytes) -> bytes:
        """A row with one blank between columns and the score or label as Python prints it."""
        cells, place = self.split(line), self.columns.index(self.number)
        cells[place] = cells[place].strip() if self.number == "rank" else repr(float(cells[place])).encode()
        return (b"\t" if self.tabs else b" ").join(cells)


TREC_RUN = Layout("trec", ("query", "Q0", "document", "rank", "score", "tag"), Run.nan_advice)
MSMARCO_RUN = Layout("msmarco", ("query", "document", "rank"), Run.nan_advice)
COLUMNS_RUN = Layout("columns", ("query", "document", "score"), Run.nan_advice)
RANKED_RUN = Layout("columns", ("query", "document", "rank", "score"), Run.nan_advice)
TREC_QRELS = Layout("trec", ("query", "iteration", "document", "label"), Qrels.nan_advice)
MSMARCO_QRELS = Layout("msmarco", ("query", "document", "label"), Qrels.nan_advice)
DIVERSITY_QRELS = Layout("trec", ("query", "subtopic", "document", "label"), Qrels.nan_advice)
LAYOUTS: dict[type[Table], tuple[Layout, ...]] = {
    Run: (TREC_RUN, MSMARCO_RUN, COLUMNS_RUN, RANKED_RUN),
    # MS MARCO publishes judgments in four columns and in three.
    Qrels: (TREC_QRELS, MSMARCO_QRELS, TREC_QRELS._replace(format="msmarco"), MSMARCO_QRELS._replace(format="beir")),
}


def _layouts(cls: type[Table], kind: Kind) -> tuple[Layout, ...]:
    return (DIVERSITY_QRELS,) if has_subtopics(kind) else LAYOUTS[cls]


def split_cells(line: bytes, tabs: bool = False) -> list[bytes]:
    """The cells of a line, at most `MAX_COLUMNS` + 1: a malformed line may have as many as the file has bytes."""
    found = re.finditer(rb"[^\t\r]+" if tabs else rb"\S+", line)
    return [cell.group() for cell in islice(found, MAX_COLUMNS + 1)]


def has_inner_return(line: bytes) -> bool:
    """Whether a carriage return stands inside a line, and not only at its end."""
    return b"\r" in line.rstrip()


def is_nonzero(number: bytes) -> bool:
    """Whether the text of a number has a digit other than 0 before its exponent."""
    return re.search(rb"[1-9]", re.split(rb"[eE]", number)[0]) is not None


def describe_width(columns: int) -> str:
    """The number of columns in words."""
    return f"over {MAX_COLUMNS} columns" if columns > MAX_COLUMNS else f"{columns} column{'s' * (columns != 1)}"


def check_format(cls: type[Table], format: str | None, kind: Kind = "adhoc") -> tuple[str | None, str]:
    """The name of a format and the part after its colon: ``mteb:default/test`` is ``("mteb", "default/test")``."""
    if format is None:
        return None, ""
    name, _, part = format.partition(":")
    if name not in FORMATS:
        raise InputError(f"Unknown format {format!r}. Use one of {', '.join(FORMATS)}, or none to have it recognised.")
    if part and name not in ("mteb", "columns", "rankings"):
        raise InputError(f"Format {format!r}: only 'mteb' takes a part, as in 'mteb:default/test'.")
    if name == "rankings" and part:
        part = find_metric(part)
    if name == "columns":
        check_names(cls, part)
    if FORMATS[name].only not in ("", cls.noun):
        raise InputError(f"Format {name!r} holds {swapped_message(cls)}")
    if has_subtopics(kind) and not FORMATS[name].subtopics:
        raise InputError(f"Format {name!r} has no subtopics. For diversity, use 'trec', 'json' or 'parquet'.")
    return name, part


def detect_family(format: str | None, head: bytes, name: str) -> str:
    """The family of a format or, if it is not known, the one that the first bytes of a file belong to."""
    if format is not None:
        return FORMATS[format].family
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(ARROW):
        return "arrow"
    if head.startswith(b"\x04\x22\x4d\x18"):  # of ranx
        raise InputError(f"{name}: is compressed with lz4, which is not read. Decompress it: lz4 -d FILE")
    wide = "UTF-32" if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")) else "UTF-16"
    if wide == "UTF-32" or head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{name}: is {wide} text. Convert it: iconv -f {wide} -t UTF-8")
    if head[257:262] == b"ustar":
        raise InputError(f"{name}: is a tar archive. Extract the file: tar -xf FILE")
    if b"\0" in head[:HEAD]:  # the line is reported for a NUL byte after them
        raise InputError(f"{name}: is a binary file. Give text, JSON or Parquet, plain or as .gz, .zst, .bz2 or .xz.")
    return "documents" if JSON.match(head.removeprefix(BOM)) else "lines"


def detect_layout(
    cls: type[Table], blocks: Iterable[bytes], format: str | None, part: str, name: str, kind: Kind = "adhoc"
) -> tuple[Layout, Iterator[bytes]]:
    """The layout of a text file, and its blocks of whole lines without byte-order mark and header.

    If the columns are in another order than that of a layout, the blocks are those of rewritten lines.
    """
    blocks = iter(blocks)
    skipped: list[int] = []  # the lines of blocks without rows
    for block in blocks:
        if not skipped and bytes(block[: len(BOM)]) == BOM:
            block = block[len(BOM) :]
        match = _find_row(block)
        if match is None:
            skipped.append(bytes(block).count(b"\n"))
            continue
        ahead = [block[match.start() :]]
        while sum(map(len, ahead)) < SAMPLE and (more := next(blocks, None)) is not None:
            ahead.append(more)
        before = bytes(block[: match.start()])
        number = sum(skipped) + before.count(b"\n") + 1
        where = f"{name}:{number}"
        layout, order = _find_layout(cls, _sample(ahead), match.group().strip(), format, part, where, kind)
        lines = chain([b"\n" * (sum(skipped)) + before], ahead, blocks)
        if order is not None and order.is_rewritten:
            return layout, rewrite(filter(None, lines), order, name)
        if order is not None and order.has_header:  # an empty line replaces it, which keeps the line numbers
            ahead[0] = ahead[0][match.end() - match.start() :]
        return layout, filter(None, lines)
    raise InputError(f"{name}: {'has no rows' if skipped else 'is empty'}. Expected {_expected(cls, kind)}.")


def _sample(blocks: Iterable[bytes]) -> bytes:
    """Whole lines of the beginning, the same for blocks of any size."""
    sample = b"".join(map(bytes, blocks))
    end = sample.rfind(b"\n", 0, SAMPLE) + 1 if len(sample) > SAMPLE else 0
    return sample[:end] if end else sample


def _find_row(block: bytes) -> re.Match[bytes] | None:
    """The first line that is neither blank nor a comment, or that has a carriage return inside it."""
    for match in re.finditer(rb"[^\n]+", block):
        line = match.group()
        if line.strip() and (not line.lstrip().startswith(b"#") or has_inner_return(line)):
            return match
    return None


def _add_tag(layout: Layout, first: bytes, second: bytes) -> Layout:
    """The layout with the tag of the run: that of the second row, if only this one has no more words."""
    width = len(layout.columns)
    cells, others = split_cells(first), split_cells(second)
    kept = others if len(cells) > width == len(others) else cells
    return layout._replace(tag=b"".join(kept[width - 1 : width]))


def _find_layout(
    cls: type[Table], sample: bytes, line: bytes, format: str | None, part: str, where: str, kind: Kind
) -> tuple[Layout, ColumnOrder | None]:
    """The layout of a file from its first rows, and its columns if a header or an option, or all rows, say them."""
    if has_inner_return(line):
        raise InputError(f"{where}: {RETURN_ADVICE}")
    if format == "columns":
        return _layout_of_columns(cls, named_columns(cls, part, sample, where))
    words = [word[:HEAD].lower().decode(errors="replace") for word in split_cells(line)]
    is_header = len(words) > 2 and words[0] in QUERY_NAMES and words[1] in DOC_NAMES
    if format is None and not has_subtopics(kind) and not _is_usual(cls, line, words):
        order = find_columns(cls, sample, where)
        if order is not None:
            return _layout_of_columns(cls, order)
    tsv = format in ("msmarco", "beir") or len(words) not in (4, 6)
    is_trec = cls is Run and format is None and len(words) > 6 and not INTEGER.fullmatch(line.split(b"\t")[-1].strip())
    width = 3 if tsv and line.count(b"\t") == 2 and not is_trec else len(words)
    candidates = [layout for layout in _layouts(cls, kind) if format in (None, layout.format)]
    fitting = [layout for layout in candidates if width == len(layout.columns)] or [
        layout for layout in candidates if "tag" in layout.columns and len(layout.split(line)) == len(layout.columns)
    ]
    if not fitting and width == (4 if cls is Run else 6):
        raise InputError(f"{where}: looks like {swapped_message(cls, describe_width(width))}")
    if not fitting and format is None:
        raise InputError(f"{where}: {_describe_misfit(cls, line, width, kind)}")
    layout = (fitting or candidates)[0]
    second = _find_row(sample[len(line) :])
    if "tag" in layout.columns:
        layout = _add_tag(layout, line, second.group() if second else b"")
    if format is None and not has_subtopics(kind) and not _is_plain(layout, line, second):
        check_order(cls, sample, layout.columns, where)
    tabs = len(layout.columns) == 3 and b"\t" in line
    header = ColumnOrder(layout.columns, "\t" if tabs else "", has_header=True) if is_header else None
    return layout._replace(tabs=tabs), header


def _is_plain(layout: Layout, first: bytes, second: re.Match[bytes] | None) -> bool:
    """Whether the first two rows leave no doubt of TREC's columns: all rows need not be looked at."""
    one, two = layout.split(first), layout.split(second.group() if second else b"")
    if len(one) != len(layout.columns) or len(one) != len(two):
        return False
    if "iteration" in layout.columns:  # is constant, and documents are no labels
        are_ids = all(len(row[2]) > 2 or not INTEGER.fullmatch(row[2]) for row in (one, two))
        return are_ids and one[1] == two[1] and all(INTEGER.fullmatch(row[3]) for row in (one, two))
    if "tag" in layout.columns and one[3] in (b"0", b"1"):  # ranks count up in their query
        return two[3] == (b"%d" % (int(one[3]) + 1) if one[0] == two[0] else one[3])
    return False


def _is_usual(cls: type[Table], line: bytes, words: list[str]) -> bool:
    """Whether a line is one of TREC's between blanks, or has the three columns of judgments."""
    marks = [mark for mark in (*SEPARATORS[:-1], *QUOTED) if mark[-1].encode() in line]
    if names_columns(words) or any(names_columns(split_line(line, mark)) for mark in marks):
        return False
    if cls is Qrels:
        return len(words) in (3, 4, 6) and line.count(b",") < 2
    return len(words) == 6 or (len(words) > 6 and len(TREC_RUN.split(line)) == 6)


def _describe_misfit(cls: type[Table], line: bytes, width: int, kind: Kind) -> str:
    text = line[:60].decode(errors="replace")
    advice = (
        " Of relevant documents alone, add a label: awk -v OFS='\\t' '{print $1, $2, 1}' FILE"
        if cls is Qrels and width == 2
        else ""
    )
    return f"{describe_width(width)}, which fits no {cls.noun}: {text!r}. Expected {_expected(cls, kind)}.{advice}"


def _layout_of_columns(cls: type[Table], order: ColumnOrder) -> tuple[Layout, ColumnOrder]:
    """The layout of columns that are known, and these."""
    layout = next(one for one in LAYOUTS[cls] if one.columns == order.columns)
    tabs, named = order.is_rewritten or order.separator == "\t", order.is_rewritten or order.has_header
    usual = layout.format if not named else "beir" if layout in LAYOUTS[Qrels] and not order.is_rewritten else "columns"
    return layout._replace(tabs=tabs, format=usual), order


def _expected(cls: type[Table], kind: Kind) -> str:
    columns = dict.fromkeys(" ".join(layout.columns) for layout in _layouts(cls, kind))
    return " or ".join(f"'{names}'" for names in columns)
