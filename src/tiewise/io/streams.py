"""Bytes in and bytes out: where they come from, how they are compressed, and that nothing is left half-written.

Compression is recognised from a file's first bytes when reading and chosen by the file's suffix when writing.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from typing import IO, Any

from tiewise.columns import need
from tiewise.errors import InputError

__all__ = ["PathLike", "Stream", "opened", "save"]

PathLike = str | os.PathLike[str]
CHUNK = 1 << 20

MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}


class Stream:
    """A file that is being read: its plain bytes, decompressed, and in the end the hash of its raw bytes."""

    def __init__(self, name: str, file: IO[bytes]):
        self.name = name
        self._file = file
        self._hash = sha256()
        self._plain = self._decompressed()
        self.head = next(self._plain, b"")

    def chunks(self) -> Iterator[bytes]:
        """The plain bytes from the start, once."""
        if self.head:
            yield self.head
        yield from self._plain

    def read(self) -> bytes:
        """All the plain bytes at once."""
        return b"".join(self.chunks())

    @property
    def sha256(self) -> str:
        """The hash of the raw bytes that have been read."""
        return self._hash.hexdigest()

    def _raw(self) -> Iterator[bytes]:
        while chunk := self._file.read(CHUNK):
            self._hash.update(chunk)
            yield chunk

    def _decompressed(self) -> Iterator[bytes]:
        raw = self._raw()
        first = next(raw, b"")
        method = next((name for magic, name in MAGIC.items() if first.startswith(magic)), None)
        if method is None:
            yield first
            yield from raw
            return
        decoder, failure = _decompressor(method)
        decode = decoder()
        try:
            for chunk in _chain(first, raw):
                rest = chunk
                while rest:
                    if decode.eof:  # files may be concatenated, and padded with NUL bytes
                        rest = rest.lstrip(b"\0")
                        decode = decoder() if rest else decode
                    if plain := decode.decompress(rest):
                        yield plain
                    rest = decode.unused_data
        except failure as error:
            raise InputError(f"{self.name}: the {method} data is corrupt ({error}). Fetch or write it again.") from None
        if not decode.eof:
            raise InputError(f"{self.name}: the {method} data ends too early; the file is cut off. Fetch it again.")
