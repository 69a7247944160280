"""What a file holds, told from its content: its first bytes, or the first line that is no comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from tiewise.data.runs import DOC_NAMES, QUERY_NAMES, Qrels, Run, Table
from tiewise.errors import InputError
from tiewise.io.layouts import Layout, split, width

__all__ = ["FORMATS", "check_format", "family", "layout_of", "swapped"]

# The formats by family: each is read by the module of that name.
FORMATS = {
    "trec": "lines",
    "msmarco": "lines",
    "beir": "lines",
    "json": "documents",
    "mteb": "documents",
    "sentence-transformers": "documents",
    "parquet": "parquet",
}
BOM = b"\xef\xbb\xbf"
HEAD = 1 << 16  # bytes by which a file is recognised; a NUL byte further on is told with its line
# How JSON begins, or what was meant to be JSON; an id of a TREC file may begin with a bracket too.
JSON = re.compile(rb"""\s*(?:\{\s*(?:["'}]|$)|\[\s*(?:["'\[{\]]|[-\d.]+\s*,|$))""")

TREC_RUN = Layout("trec", ("query", "Q0", "document", "rank", "score", "tag"), Run.nan_advice)
MSMARCO_RUN = Layout("msmarco", ("query", "document", "rank"), Run.nan_advice)
TREC_QRELS = Layout("trec", ("query", "iteration", "document", "label"), Qrels.nan_advice)
MSMARCO_QRELS = Layout("msmarco", ("query", "document", "label"), Qrels.nan_advice)
BEIR_QRELS = replace(MSMARCO_QRELS, format="beir")
LAYOUTS: dict[type[Table], tuple[Layout, ...]] = {
    Run: (TREC_RUN, MSMARCO_RUN),
    # MS MARCO's judgments come in TREC's four columns and in three.
    Qrels: (TREC_QRELS, MSMARCO_QRELS, replace(TREC_QRELS, format="msmarco"), BEIR_QRELS),
}


def check_format(cls: type[Table], format: str | None) -> tuple[str | None, str]:
    """A format's name and what follows its colon: ``mteb:default/test`` is ``("mteb", "default/test")``."""
    if format is None:
        return None, ""
    name, _, part = format.partition(":")
    if name not in FORMATS:
        raise InputError(f"Unknown format {format!r}. Use one of {', '.join(FORMATS)}, or none to have it recognised.")
    if part and name != "mteb":
        raise InputError(f"Format {format!r}: only 'mteb' takes a part, as in 'mteb:default/test'.")
    if name in ("mteb", "sentence-transformers") if cls is Qrels else name == "beir":
        raise InputError(f"Format {name!r} holds {swapped(cls)}")
    return name, part


def swapped(cls: type[Table], sign: str = "") -> str:
    """The end of a message about a run where judgments should be, or the reverse."""
    found, wanted = ("qrels", "a run") if cls is Run else ("a run", "qrels")
    return f"{found}{sign and f' ({sign})'}, not {wanted}. Where both are given, qrels come first."


def family(head: bytes, name: str) -> str:
    """The family of formats that the first bytes of a file belong to."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{name}: is UTF-16 text. Convert it: iconv -f UTF-16 -t UTF-8")
    if b"\0" in head[:HEAD]:
        raise InputError(f"{name}: is a binary file. Give text, JSON or Parquet, plain or as .gz, .zst, .bz2 or .xz.")
    return "documents" if JSON.match(head.removeprefix(BOM)) else "lines"


def layout_of(
    cls: type[Table], blocks: Iterable[bytes], format: str | None, name: str
) -> tuple[Layout, Iterator[bytes]]:
    """The layout of a text file, and its blocks without byte-order mark and header."""
    blocks = iter(blocks)
    skipped: list[bytes] = []
    for part in blocks:
        block = bytes(part)
        if not skipped:
            block = block.removeprefix(BOM)
        for found in re.finditer(rb"[^\n]+", block):
            line = found.group().strip()
            if line and not line.startswith(b"#"):
                number = sum(part.count(b"\n") for part in skipped) + block.count(b"\n", 0, found.start()) + 1
                layout, header = _layout(cls, line, format, f"{name}:{number}")
                if header:  # an empty line takes its place, so that lines keep their numbers
                    block = block[: found.start()] + block[found.end() :]
                return layout, chain(skipped, [block], blocks)
        skipped.append(block)
    raise InputError(f"{name}: {'holds no rows' if skipped else 'is empty'}. Expected {_expected(cls)}.")


def _layout(cls: type[Table], line: bytes, format: str | None, place: str) -> tuple[Layout, bool]:
    """The layout that a file's first line shows, and whether that line is a header."""
    words = [word[:HEAD].lower().decode(errors="replace") for word in split(line)]
    header = len(words) > 2 and words[0] in QUERY_NAMES and words[1] in DOC_NAMES
    tsv = format in ("msmarco", "beir") or header or len(words) not in (4, 6)
    columns = 3 if tsv and line.count(b"\t") == 2 else len(words)
    if header and cls is Run and format is None:
        raise InputError(f"{place}: looks like {swapped(cls, 'BEIR header')}")
    wanted = "beir" if header and format is None else format
    named = [layout for layout in LAYOUTS[cls] if wanted in (None, layout.format)]
    fitting = [layout for layout in named if columns == len(layout.columns)]
    fitting = fitting or [layout for layout in named if layout.more and len(layout.split(line)) == len(layout.columns)]
    if not fitting and columns == (4 if cls is Run else 6):
        raise InputError(f"{place}: looks like {swapped(cls, width(columns))}")
    if not fitting and len(words) < 3 and line.count(b",") > 1:
        raise InputError(f"{place}: the columns are separated by commas. Use blanks or tabs: tr , '\\t' < FILE")
    if not fitting and format is None:
        shown = line[:60].decode(errors="replace")
        raise InputError(f"{place}: {width(columns)}, which fits no {cls.noun}: {shown!r}. Expected {_expected(cls)}.")
    layout = (fitting or named)[0]
    return replace(layout, tabs=len(layout.columns) == 3 and b"\t" in line), header


def _expected(cls: type[Table]) -> str:
    shapes = dict.fromkeys(" ".join(layout.columns) for layout in LAYOUTS[cls])
    return " or ".join(f"'{shape}'" for shape in shapes)
