"""`Source`: the file from which a table was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tiewise.caching import cached_property
from tiewise.errors import InputError


class Source:
    """The file of a table: its path, its format, and its SHA-256, which may be computed on first use."""

    def __init__(self, path: str, sha256: str | Callable[[], str], format: str):
        self.path, self.format = path, format
        self._sha256 = sha256

    def __repr__(self) -> str:
        return f"Source(path={self.path!r}, format={self.format!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.path, self.format))

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the file's bytes."""
        return self._sha256 if isinstance(self._sha256, str) else self._sha256()

    def to_dict(self) -> dict[str, str]:
        """The path, the SHA-256 and the format."""
        return {"path": self.path, "sha256": self.sha256, "format": self.format}

    def __reduce__(self) -> tuple[Any, tuple[str, str, str]]:
        try:
            digest = self.sha256
        except (InputError, OSError):  # the file was changed or deleted
            digest = ""
        return Source, (self.path, digest, self.format)


def describe_sources(names: Iterable[str], sources: Iterable[Source | None]) -> list[dict[str, str]]:
    """The name of each run, with path, SHA-256 and format if it was read from a file.

    >>> describe_sources(["bm25"], [None])
    [{'name': 'bm25'}]
    """
    return [{"name": name} | (one.to_dict() if one else {}) for name, one in zip(names, sources, strict=True)]
