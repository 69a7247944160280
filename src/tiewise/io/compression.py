"""Reading and writing files, plain or compressed.

Reading recognises compression from the first bytes, writing chooses it by the suffix. A file is written completely or
not at all.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from glob import has_magic
from importlib import import_module
from io import FileIO
from itertools import chain
from pathlib import Path
from stat import S_IMODE, S_ISREG
from typing import IO, Any

from tiewise.caching import cached_property
from tiewise.errors import InputError, name_memory_errors
from tiewise.results.optional import need
from tiewise.results.wording import escape_lines

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PathLike = str | os.PathLike[str]
FileLike = PathLike | IO[Any]  # a path, or an open file
CHUNK = 1 << 20  # bytes that are read at a time
HEAD = 1 << 16  # bytes that are read first, from which the format is recognised
SHARDED = "for shards of one run, use `tiewise evaluate --engine ray` or tiewise.adapters.ray"
COMPRESSED = (".gz", ".zst", ".bz2", ".xz")  # the suffixes of compressed files

# The first bytes of compressed files and the modules that read them; the names of these formats.
MAGIC = {b"\x1f\x8b": "zlib", b"BZh": "bz2", b"\xfd7zXZ\x00": "lzma", b"\x28\xb5\x2f\xfd": "zstandard"}
ZIP = b"PK\x03\x04"
OPEN_FILES = {"/dev/stdout": 1, "/dev/stderr": 2}
METHODS = {"zlib": "gzip", "bz2": "bzip2", "lzma": "xz", "zstandard": "zstd"}

# A file that grows more than so many times, and beyond so many bytes, is refused: no real run or array does.
MAX_EXPANSION = 250
FREE_EXPANSION = 1 << 28
MAX_DICTIONARY = 1 << 30  # bytes of memory that an xz file may ask for; those of xz -9 ask for 64 MiB
INPUT = 1 << 16  # compressed bytes that are given to a decompressor at a time
ZSTD_INPUT = 1 << 10  # for zstandard, which has no limit for its output: a kilobyte becomes at most 32 MiB


def is_pattern(path: PathLike) -> bool:
    """Whether a path is a pattern for several files, such as ``shards/*.trec``."""
    return has_magic(str(path)) and not Path(path).exists()


class Stream:
    """A file that is being read: its decompressed bytes and the SHA-256 of its raw bytes."""

    def __init__(self, name: str, file: IO[bytes], hashed: bool = True):
        self.name, self._hash = name, None
        if hashed:
            from hashlib import sha256  # here, since it takes time and not every use needs it

            self._hash = sha256()
        self.n_raw = 0  # bytes read so far, before they are decompressed
        raw = self._raw(file)
        first = next(raw, b"")
        zipped = first.startswith(ZIP)
        if zipped:
            raw = iter(_unzipped(b"".join([first, *raw]), name))
            first = next(raw, b"")
        module = next((module for magic, module in MAGIC.items() if first.startswith(magic)), None)
        self.compressed = zipped or module is not None
        whole = chain([first], raw)
        self._plain = filter(None, whole if module is None else _decompressed(whole, module, name))
        self.head = b""  # enough to recognise the format
        while len(self.head) < 64 and (chunk := next(self._plain, b"")):
            self.head += chunk

    def _raw(self, file: IO[bytes]) -> Iterator[bytes]:
        size = min(HEAD, CHUNK)
        while chunk := file.read(size):
            self.n_raw += len(chunk)
            if self._hash is not None:
                self._hash.update(chunk)
            yield chunk
            size = CHUNK

    def chunks(self) -> Iterator[bytes]:
        """All decompressed bytes in pieces of any size. They can be read once."""
        return chain([self.head], self._plain)

    def read(self) -> bytes:
        """All decompressed bytes."""
        return b"".join(self.chunks())

    def sha256(self) -> str:
        """The hash of the raw bytes read so far."""
        assert self._hash is not None
        return self._hash.hexdigest()


class Reread:
    """A file that is read more than once and must not change."""

    def __init__(self, path: str):
        self.path = path  # as the user gave it, for messages
        self.absolute = Path(path).absolute()
        self._first = self._state()
        self.size = self._first[0]  # in bytes

    def check(self) -> None:
        """Raise if the file was changed since it was first read."""
        if self._state() != self._first:
            raise InputError(f"{self.path}: was changed after it was first read. Read it again.")

    @cached_property
    def sha256(self) -> str:
        """The hash of its bytes."""
        from hashlib import sha256

        self.check()
        hashed = sha256()
        with self.absolute.open("rb") as file:
            while chunk := file.read(CHUNK):
                hashed.update(chunk)
        return hashed.hexdigest()

    def _state(self) -> tuple[int, int]:
        try:
            stat = self.absolute.stat()
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read again ({error.strerror or error}).") from None
        return stat.st_size, stat.st_mtime_ns


def _decompressed(raw: Iterable[bytes], module: str, name: str) -> Iterator[bytes]:
    """The decompressed bytes in pieces of bounded size."""
    method = METHODS[module]
    start, failure = _decompressor(module)
    limit, size = ((), ZSTD_INPUT) if module == "zstandard" else ((CHUNK,), INPUT)
    decoder = start()
    n_raw = n_plain = 0
    try:
        for chunk in (some[at : at + size] for some in raw for at in range(0, len(some), size)):
            n_raw += len(chunk)
            # A file may consist of several compressed streams, with NUL bytes between them.
            while chunk := chunk.lstrip(b"\0") if decoder.eof else chunk:
                decoder = start() if decoder.eof else decoder
                plain = None
                while not decoder.eof and (plain is None or chunk or len(plain) >= CHUNK):
                    plain = decoder.decompress(chunk, *limit)
                    chunk = getattr(decoder, "unconsumed_tail", b"")  # bz2 and lzma keep it themselves
                    n_plain += len(plain)
                    check_expansion(name, n_raw, n_plain)
                    yield plain
                chunk = decoder.unused_data
    except failure as error:
        raise InputError(f"{name}: the {method} data is corrupt ({error}). Copy or create the file again.") from None
    if not decoder.eof:
        raise InputError(f"{name}: the {method} data stops before its end. Copy or create the file again.")


def _unzipped(data: bytes, name: str) -> Iterator[bytes]:
    """The bytes of the only file in a zip archive."""
    from io import BytesIO
    from zipfile import ZipFile

    try:
        with ZipFile(BytesIO(data)) as archive:
            members = [one.filename for one in archive.infolist() if not one.is_dir()]
            files = [one for one in members if not one.startswith("__MACOSX/") and not one.endswith(".DS_Store")]
            if any(one.startswith(("xl/", "word/")) for one in files):
                raise InputError(f"{name}: is an Office document. Save the table as CSV.")
            if len(files) != 1:
                shown = ", ".join(files[:3]) + (" …" if len(files) > 3 else "")
                raise InputError(f"{name}: has {len(files)} files ({shown}). Unzip it, and give one of them.")
            n_plain = 0
            with archive.open(files[0]) as file:
                while chunk := file.read(CHUNK):
                    n_plain += len(chunk)
                    check_expansion(name, len(data), n_plain)
                    yield chunk
    except (InputError, MemoryError):
        raise
    except Exception as error:  # zipfile raises anything for a damaged archive
        raise InputError(f"{name}: the zip data cannot be read ({error}). Unzip it, or create it again.") from None


def check_expansion(name: str, compressed: int, plain: int) -> None:
    """Refuse data that grow too much when they are decompressed; both sizes are in bytes.

    >>> check_expansion("bomb.gz", 1_000_000, 1_000_000_000)
    Traceback (most recent call last):
    tiewise.errors.InputError: bomb.gz: grows over 250 times when decompressed. If you trust it, decompress it first.
    """
    if plain > max(FREE_EXPANSION, compressed * MAX_EXPANSION):
        raise InputError(
            f"{name}: grows over {MAX_EXPANSION} times when decompressed. If you trust it, decompress it first."
        )


def _decompressor(module: str) -> tuple[Callable[[], Any], type[Exception]]:
    """A constructor of decompressors, and the error they raise. All four libraries have the same interface."""
    library = need(module, "Reading .zst", "zstd") if module == "zstandard" else import_module(module)
    if module == "zlib":
        return partial(library.decompressobj, 31), library.error  # 31: gzip's header and checksum
    if module == "bz2":
        return library.BZ2Decompressor, OSError
    if module == "lzma":
        return partial(library.LZMADecompressor, memlimit=MAX_DICTIONARY), library.LZMAError
    return library.ZstdDecompressor().decompressobj, library.ZstdError


@contextmanager
def opened(path: FileLike, *, name: str | None = None, hashed: bool = True) -> Iterator[Stream]:
    """The stream of a file, or of standard input for ``-``; `name` is for messages, `hashed` computes the SHA-256.

    An open file of text or bytes is read from where it stands.
    """
    if not isinstance(path, (str, os.PathLike)):
        from io import BytesIO

        given, data = name or name_of_file(path), path.read()
        if not isinstance(data, (str, bytes, bytearray)):
            raise InputError(f"{given}: reading it gives a {type(data).__name__}, neither text nor bytes.")
        yield Stream(given, BytesIO(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data), hashed)
        return
    path = os.fspath(path)
    name = "stdin" if path == "-" else name or path
    if "\n" in path or "\0" in path:
        raise InputError(f"{path[:40]!r}… is text, not a path. Write it to a file, or give a dictionary.")
    try:
        with name_memory_errors(name):
            if path == "-":
                yield Stream(name, sys.stdin.buffer)
            else:
                with FileIO(path) as file, _unchanged(file, name):
                    yield Stream(name, file, hashed)
    except FileNotFoundError:
        shards = f" Give the files themselves; or, {SHARDED}." if is_pattern(path) else ""
        raise InputError(f"{name}: there is no such file.{shards}") from None
    except IsADirectoryError:
        raise InputError(f"{name}: is a folder. Give a file in it; or, {SHARDED}.") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error}).") from None


def name_of_file(file: Any) -> str:
    """The name of an open file for messages."""
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else "the open file"


@contextmanager
def _unchanged(file: IO[bytes], name: str) -> Iterator[None]:
    """Raise if a file is changed while it is read, which may be the cause of another error."""
    before = _state(os.fstat(file.fileno()))
    try:
        yield
    except InputError:
        if _state(os.fstat(file.fileno())) == before:
            raise
    if _state(os.fstat(file.fileno())) != before:
        raise InputError(f"{name}: was changed while it was read. Read it again.") from None


def _state(stat: os.stat_result) -> tuple[int, int] | None:
    """The size of a file and the time of its last change; None for pipes and devices."""
    return (stat.st_size, stat.st_mtime_ns) if S_ISREG(stat.st_mode) else None


def check_writable(path: PathLike) -> None:
    """Raise an error if no file can be written at a path; ``-``, pipes and devices are not checked.

    Whether the disk has room is only seen when the file is written, whole or not at all.

    >>> check_writable("nowhere/run.trec")
    Traceback (most recent call last):
    tiewise.errors.InputError: nowhere/run.trec: cannot be written: there is no folder nowhere. Make it first.
    """
    name = os.fspath(path)
    if name == "-":
        return
    target = Path(os.path.realpath(name))  # a link stays a link
    if target.is_dir():
        raise InputError(f"{name}: is a folder. Name a file in it.")
    if target.exists() and not target.is_file():
        return
    if not target.parent.is_dir():
        raise InputError(f"{name}: cannot be written: there is no folder {Path(name).parent}. Make it first.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{name}: cannot be written: you may not write to the folder {Path(name).parent}.")
    if target.suffix == ".zst":
        need("zstandard", "Writing .zst", "zstd")


def save(path: PathLike, chunks: Iterable[bytes], *, styled: bool = False) -> None:
    """Write chunks to a file, which is complete or does not appear; ``-`` is standard output.

    On a terminal control characters are written as escapes, unless text is `styled`: then colours are among them. Pipes
    and devices are written to directly. A `BrokenPipeError` is left to the caller: the path is not the reason.
    """
    path = os.fspath(path)
    if path == "-" and not styled and sys.stdout.isatty():
        chunks = map(_escape_chunk, chunks)
    try:
        with _open_special(path) or _open_atomic(path) as file, _compressor(path, file) as out:
            for chunk in chunks:
                out.write(chunk)
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "standard output" if path == "-" else path
        raise InputError(f"{name}: cannot be written ({error.strerror or error}).") from None


def _escape_chunk(chunk: bytes) -> bytes:
    encoding = sys.stdout.encoding
    return escape_lines(chunk.decode(encoding, "backslashreplace")).encode(encoding, "backslashreplace")


def _open_special(path: str) -> AbstractContextManager[IO[bytes]] | None:
    """The file if it cannot be replaced: an open file descriptor, a pipe or a device."""
    if path == "-":
        return _flushed(sys.stdout.buffer)
    number = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", path)
    if number or path in OPEN_FILES:  # not opened again: that would start at its beginning
        return os.fdopen(os.dup(int(number[1]) if number else OPEN_FILES[path]), "wb")
    return Path(path).open("wb") if Path(path).exists() and not Path(path).is_file() else None


@contextmanager
def _flushed(file: IO[bytes]) -> Iterator[IO[bytes]]:
    yield file
    file.flush()


@contextmanager
def _open_atomic(path: str) -> Iterator[IO[bytes]]:
    """A temporary file that replaces the target, and takes its mode, when it is complete."""
    target = Path(os.path.realpath(path))  # a link is kept
    mode = S_IMODE(target.stat().st_mode) if target.exists() else None
    part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        # Until it is complete, the owner alone may read what replaces a file that perhaps is not for all.
        with open(part, "xb", opener=partial(os.open, mode=0o666 if mode is None else 0o600)) as file:
            _lock(file)
            yield file
        if mode is not None:
            part.chmod(mode)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def remove_stale(folder: Path) -> None:
    """Remove temporary files that no process writes: those of one that was killed."""
    for path in folder.glob(".*.part"):
        with suppress(OSError):  # it is complete by now
            with path.open("rb") as file:
                is_free = _lock(file)
            if is_free:
                path.unlink()


def _lock(file: IO[bytes]) -> bool:
    """Lock a file while it is open; whether no other process, or thread, has locked it."""
    if fcntl is None:
        return True  # Windows removes no file that is open
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked, or on a file system without locks
        return False
    return True


@contextmanager
def _compressor(path: str, file: IO[Any]) -> Iterator[Any]:
    """A file to write to, compressed according to the suffix of the path."""
    suffix = Path(path).suffix
    if suffix == ".gz":  # without name and time, so equal runs give equal files
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
