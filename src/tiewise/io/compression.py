"""Bytes in and bytes out: where they come from, how they are compressed, and that nothing is left half-written.

Compression is recognised from a file's first bytes when reading and chosen by the file's suffix when writing.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from glob import has_magic
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import IO, Any

from tiewise.errors import InputError
from tiewise.tables.optional import need

__all__ = ["COMPRESSED", "PathLike", "Reread", "Stream", "is_pattern", "opened", "save"]

PathLike = str | os.PathLike[str]
CHUNK = 1 << 20  # bytes that are read at a time
SHARDED = "for shards of one run, use `tiewise evaluate --engine ray` or tiewise.adapters.ray"
COMPRESSED = (".gz", ".zst", ".bz2", ".xz")  # the suffixes that compress

# How a compressed file begins, the module that knows it, and what it is called.
MAGIC = {b"\x1f\x8b": "zlib", b"BZh": "bz2", b"\xfd7zXZ\x00": "lzma", b"\x28\xb5\x2f\xfd": "zstandard"}
OPEN_FILES = {"/dev/stdout": 1, "/dev/stderr": 2}
METHODS = {"zlib": "gzip", "bz2": "bzip2", "lzma": "xz", "zstandard": "zstd"}


def is_pattern(path: PathLike) -> bool:
    """Whether a path is no file but stands for some, such as ``shards/*.trec``."""
    return has_magic(str(path)) and not Path(path).exists()


class Stream:
    """A file that is being read: its plain bytes, decompressed, and in the end the hash of its raw bytes."""

    def __init__(self, name: str, file: IO[bytes], hashed: bool = True):
        self.name = name
        from hashlib import sha256  # here, since few who import the package read a file

        self._hash = sha256() if hashed else None
        self._file = file
        raw = self._raw(file)
        first = next(raw, b"")
        module = next((module for magic, module in MAGIC.items() if first.startswith(magic)), None)
        self.compressed = module is not None
        whole = chain([first], raw)
        self._plain = filter(None, whole if module is None else _decompressed(whole, module, name))
        self.head = b""  # enough to recognise a format by
        while len(self.head) < 64 and (chunk := next(self._plain, b"")):
            self.head += chunk

    def _raw(self, file: IO[bytes]) -> Iterator[bytes]:
        while chunk := file.read(CHUNK):
            if self._hash is not None:
                self._hash.update(chunk)
            yield chunk

    def chunks(self) -> Iterator[bytes]:
        """The plain bytes from the start, once, in pieces of any size."""
        return chain([self.head], self._plain)

    def readinto(self, memory: memoryview) -> int:
        """Read into some memory, as much as there is room for or less; 0 at the end. Only of what is not compressed
        and not hashed."""
        if self.head:
            some, self.head = self.head[: len(memory)], self.head[len(memory) :]
            memory[: len(some)] = some
            return len(some)
        return self._file.readinto(memory) or 0  # type: ignore[attr-defined]

    def read(self) -> bytes:
        """The plain bytes at once."""
        return b"".join(self.chunks())

    def sha256(self) -> str:
        """The hash of the raw bytes read so far."""
        assert self._hash is not None
        return self._hash.hexdigest()


class Reread:
    """A file that is read more than once, and must stay the same."""

    def __init__(self, path: str):
        self.path = path  # as it was given, for messages
        self.absolute = str(Path(path).absolute())
        self._first = self._now()

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self._first[0]

    def check(self) -> None:
        """Raise if the file is no longer the one that was read first."""
        if self._now() != self._first:
            raise InputError(f"{self.path}: was changed after it was evaluated. Evaluate it again.")

    @cached_property
    def sha256(self) -> str:
        """The hash of its bytes."""
        from hashlib import sha256

        self.check()
        hashed = sha256()
        with Path(self.absolute).open("rb") as file:
            while chunk := file.read(CHUNK):
                hashed.update(chunk)
        return hashed.hexdigest()

    def _now(self) -> tuple[int, int]:
        try:
            found = Path(self.absolute).stat()
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read again ({error.strerror or error}).") from None
        return found.st_size, found.st_mtime_ns


def _decompressed(raw: Iterable[bytes], module: str, name: str) -> Iterator[bytes]:
    method = METHODS[module]
    start, failure = _decompressor(module)
    decoder = start()
    try:
        for chunk in raw:
            # Compressed files may be concatenated, and padded with NUL bytes.
            while chunk := chunk.lstrip(b"\0") if decoder.eof else chunk:
                decoder = start() if decoder.eof else decoder
                yield decoder.decompress(chunk)
                chunk = decoder.unused_data
    except failure as error:
        raise InputError(f"{name}: the {method} data is corrupt ({error}). Copy or make the file again.") from None
    if not decoder.eof:
        raise InputError(f"{name}: the {method} data stops before its end. Copy or make the file again.")


def _decompressor(module: str) -> tuple[Callable[[], Any], type[Exception]]:
    """What starts to decompress, and the error it raises; all four libraries have one interface."""
    library = need(module, "Reading .zst", "zstd") if module == "zstandard" else import_module(module)
    if module == "zlib":
        return partial(library.decompressobj, 31), library.error  # 31: gzip's header and checksum
    if module == "bz2":
        return library.BZ2Decompressor, OSError
    if module == "lzma":
        return library.LZMADecompressor, library.LZMAError
    return library.ZstdDecompressor().decompressobj, library.ZstdError


@contextmanager
def opened(path: PathLike, *, name: str | None = None, hashed: bool = True) -> Iterator[Stream]:
    """The stream of a file, or of standard input for ``-``, under a name for messages.

    `hashed`: its SHA-256 is computed on the way.
    """
    path = os.fspath(path)
    name = "stdin" if path == "-" else name or path
    if "\n" in path or "\0" in path:
        raise InputError(f"{path[:40]!r}… is text, not a path. Write it to a file, or give a dictionary.")
    try:
        if path == "-":
            yield Stream(name, sys.stdin.buffer)
        else:
            with Path(path).open("rb", buffering=0) as file:
                yield Stream(name, file, hashed)
    except FileNotFoundError:
        shards = f" Give the files themselves; or, {SHARDED}." if is_pattern(path) else ""
        raise InputError(f"{name}: there is no such file.{shards}") from None
    except IsADirectoryError:
        raise InputError(f"{name}: is a folder. Give a file in it; or, {SHARDED}.") from None
    except PermissionError:
        raise InputError(f"{name}: may not be read (permission denied).") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error}).") from None


def save(path: PathLike, chunks: Iterable[bytes]) -> None:
    """Write chunks to a file that appears whole or not at all; to standard output for ``-``.

    What is no regular file (a pipe, a device, /dev/stdout) is written to where it stands. A `BrokenPipeError` is left
    to the caller: it is no fault of the path.
    """
    path = os.fspath(path)
    try:
        with _standing(path) or _appearing(path) as file, _compressor(path, file) as out:
            for chunk in chunks:
                out.write(chunk)
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "standard output" if path == "-" else path
        raise InputError(f"{name}: cannot be written ({error.strerror or error}).") from None


def _standing(path: str) -> AbstractContextManager[IO[bytes]] | None:
    """What a path stands for if that cannot be replaced: a file that is open already, a pipe or a device."""
    if path == "-":
        return _flushed(sys.stdout.buffer)
    number = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", path)
    if number or path in OPEN_FILES:  # not opened anew: that would begin at its start
        return os.fdopen(os.dup(int(number[1]) if number else OPEN_FILES[path]), "wb")
    return Path(path).open("wb") if Path(path).exists() and not Path(path).is_file() else None


@contextmanager
def _flushed(file: IO[bytes]) -> Iterator[IO[bytes]]:
    yield file
    file.flush()


@contextmanager
def _appearing(path: str) -> Iterator[IO[bytes]]:
    """A file that takes its place when it is whole."""
    target = Path(os.path.realpath(path))  # a link stays a link
    part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        with part.open("xb") as file:
            yield file
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _compressor(path: str, file: IO[Any]) -> Iterator[Any]:
    """A file to write to that compresses by the suffix of the path."""
    suffix = Path(path).suffix
    if suffix == ".gz":  # no name and no time inside, so that equal runs are equal files
        opened: Any = import_module("gzip").GzipFile("", "wb", fileobj=file, mtime=0)
    elif suffix == ".bz2":
        opened = import_module("bz2").BZ2File(file, "wb")
    elif suffix == ".xz":
        opened = import_module("lzma").LZMAFile(file, "wb")
    elif suffix == ".zst":
        opened = need("zstandard", "Writing .zst", "zstd").ZstdCompressor().stream_writer(file, closefd=False)
    else:
        yield file
        return
    with opened:
        yield opened
