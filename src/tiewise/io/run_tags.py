"""The tag of a TREC run: the sixth column of its last line, which trec_eval prints as its runid."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tiewise.io.compression import PathLike, opened
from tiewise.io.text import line_blocks

TAIL = 1 << 14  # bytes in which the last line is looked for first


def read_tag(path: PathLike) -> str | None:
    """The tag in the last line of a file, plain or compressed; None if that line has less than six columns."""
    with opened(path, hashed=False) as stream:
        if stream.compressed:
            return _last_tag(line_blocks(stream.chunks(), stream.name))
    with Path(path).open("rb") as file:
        start = max(file.seek(0, 2) - TAIL, 0)
        file.seek(start)
        tail = file.read()
    lines = tail if not start else tail.partition(b"\n")[2]
    if not any(map(_is_row, lines.split(b"\n"))):  # a long line, or many comments
        with opened(path, hashed=False) as stream:
            return _last_tag(line_blocks(stream.chunks(), stream.name))
    return _last_tag([lines])


def _last_tag(blocks: Iterable[bytes]) -> str | None:
    """The tag of the last row in blocks of whole lines."""
    last = b""
    for block in blocks:
        last = next(filter(_is_row, reversed(block.split(b"\n"))), last)
    cells = last.split()
    return cells[5].decode(errors="replace") if len(cells) > 5 else None


def _is_row(line: bytes) -> bool:
    """Whether a line is neither empty nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith(b"#")
