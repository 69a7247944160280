"""Arrays in files by their role, and the ids of their rows: the input of ``score`` and ``protocol logits``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tiewise.errors import InputError
from tiewise.io.compression import opened
from tiewise.io.tensors import read_tensors
from tiewise.results.optional import installed
from tiewise.results.wording import escape_controls, list_examples

#: The roles of arrays. An array has the name of its role, unless --array gives another.
ROLES = {
    "queries": "vectors of queries",
    "docs": "vectors of documents",
    "logits": "logits, a row for each pair of query and document",
    "hidden": "hidden states, a row for each pair",
    "weight": "weights of the last layer, a row for each class",
    "bias": "biases of the last layer",
    "query": "the query of each row",
    "doc": "the document of each row",
    "query_ids": "ids of the rows of queries",
    "doc_ids": "ids of the rows of docs",
    "query_mask": "which tokens of queries count",
    "doc_mask": "which tokens of docs count",
}

#: The roles of arrays of pairs, for ``tiewise protocol logits``.
PAIR_ROLES = {
    **{role: ROLES[role] for role in ("logits", "hidden", "weight", "bias", "query", "doc")},
    "reference": "logits of the same pairs from the model in float32",
}

#: What has ids, and the option that names a file of them. Their array is called ``query_ids``, that of pairs ``query``.
IDS = {"query": ("queries", "--query-ids"), "doc": ("documents", "--doc-ids")}

BLOCK = 2**24  # numbers that are checked at a time


@dataclass
class Arrays:
    """The arrays of some files by role; `renamed` are texts ROLE=NAME, and the other options are files of ids.

    Ids of rows are the lines of a file that an option named, an array, or numbers, which a note mentions.
    """

    files: Sequence[Path]
    renamed: Sequence[str]
    query_ids: Path | None
    doc_ids: Path | None
    roles: ClassVar[Mapping[str, str]] = ROLES

    def __post_init__(self) -> None:
        self.numbered: list[str] = []  #: the roles that could have given ids
        self._arrays: dict[str, tuple[Path, Mapping[str, Any]]] = {}  # by name: the file, and its arrays
        twice: dict[str, Path] = {}
        for path in self.files:
            for name in (arrays := read_tensors(path)):
                if name in self._arrays:
                    twice[name] = path
                self._arrays[name] = path, arrays
        _exit_if_shortened(sorted({str(path) for path, _ in self._arrays.values()}))
        self._names = {role: role for role in self.roles if role in self._arrays}
        for text in self.renamed:
            role, _, name = text.partition("=")
            if role not in self.roles or not name:
                raise InputError(f"--array {text}: write ROLE=NAME with one of the roles {', '.join(self.roles)}.")
            if name not in self._arrays:
                raise InputError(f"There is no array '{name}'. The files hold {self.all_names()}.")
            self._names[role] = name
        for name in sorted(twice.keys() & self._names.values()):
            raise InputError(f"{twice[name]}: another file has an array '{name}' too. Rename one of them.")

    def __getitem__(self, role: str) -> Any:
        name = self._names[role]
        return self._arrays[name][1][name]

    def __contains__(self, role: object) -> bool:
        return role in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def all_names(self) -> str:
        """The names of all arrays, for a message."""
        return list_examples(self._arrays, limit=20)

    def names_of(self, roles: Iterable[str]) -> str:
        """The names of the arrays with some roles, for a message."""
        return list_examples(self._names[role] for role in self.roles if role in roles and role in self)

    def location(self, role: str) -> str:
        """The file and the name of an array, for a message."""
        return f"{self._arrays[self._names[role]][0]}: '{self._names[role]}'"

    def first_empty(self) -> str:
        """The location of the first array without rows."""
        return next(self.location(role) for role in self if not np.size(self[role]))

    def require(self, *roles: str, why: str = "", instead: str = "") -> None:
        """Require arrays with these roles; the error says `why`, and what can be given `instead`."""
        for role in roles:
            if role not in self:
                hint = f"The files hold {self.all_names()}. Give its name with --array {role}=NAME{instead}."
                raise InputError(f"There is no array '{role}' ({self.roles[role]}){why}. {hint}")

    def require_finite(self, *roles: str) -> list[Any]:
        """Arrays of numbers, none of them NaN or infinite."""
        for role in roles:
            rows, bad = len(self[role]) if self[role].ndim else 0, _rows_not_finite(self[role])
            if len(bad):
                raise InputError(
                    f"{self.location(role)} holds NaN or infinity in row {bad[0]}, counted from 0 ({len(bad):,} of "
                    f"{rows:,} rows). Such a row has no score: remove it, or run the model in a wider type if its own "
                    "overflowed (float16 ends at 65,504)."
                )
        return [self[role] for role in roles]

    def ids(self, role: str, count: int, rows: str) -> Any:
        """The ids of `count` rows, from the file of an option or the array of a role; None if they are numbered."""
        if path := self._id_file(role):
            return _check_count(read_lines(path), count, f"{path}: holds {{}} lines", rows)
        if role in self:
            return _check_count(self[role], count, f"{self.location(role)} holds {{}} ids", rows)
        self.numbered.append(role)
        return None

    def _id_file(self, role: str) -> Path | None:
        return self.query_ids if role.startswith("query") else self.doc_ids

    def require_ids(self, role: str) -> None:
        """Require the ids of pairs, in a file or an array."""
        if self._id_file(role) is None:
            self.require(role, instead=f", or give {IDS[role][1]} FILE")


class Pairs(Arrays):
    """Arrays that have a row for each pair of a query and a document."""

    roles = PAIR_ROLES


def numbered_note(roles: Sequence[str]) -> list[str]:
    """The note on rows without ids, which an array with one of these roles could have given.

    >>> numbered_note(["doc_ids"])
    ['The documents are numbered 0, 1, 2 ... Name them with --doc-ids, or in an array doc_ids.']
    """
    if not roles:
        return []
    known = [IDS[role.removesuffix("_ids")] for role in roles]
    what, options = (" and ".join(parts) for parts in zip(*known, strict=True))
    arrays = "an array" if len(roles) == 1 else "arrays"
    return [f"The {what} are numbered 0, 1, 2 ... Name them with {options}, or in {arrays} {' and '.join(roles)}."]


def _exit_if_shortened(files: Iterable[str]) -> None:
    """End the process with a message if a file that is mapped into memory becomes shorter, which raises SIGBUS."""
    kernels = installed("tiewise._kernels")
    if kernels is not None:
        names = escape_controls(", ".join(files))
        kernels.exit_on_bus_error(f"tiewise: {names}: a file became shorter while it was read. Try again.\n")


def _rows_not_finite(array: NDArray[Any]) -> NDArray[Any]:
    """The rows that hold NaN or infinity, in blocks to save memory."""
    if array.dtype.kind in "biuSUO" or not array.ndim or not len(array):
        return np.zeros(0, dtype=np.int64)
    step = max(1, BLOCK // max(1, int(np.prod(array.shape[1:]))))
    blocks = [array[at : at + step] for at in range(0, len(array), step)]
    return np.flatnonzero(np.concatenate([~np.isfinite(one).reshape(len(one), -1).all(1) for one in blocks]))


def _check_count(ids: Any, count: int, message: str, rows: str) -> Any:
    if np.ndim(ids) != 1 or len(ids) != count:
        raise InputError(f"{message.format(f'{np.size(ids):,}')} for {count:,} {rows}. Give one for each.")
    return ids


def read_lines(path: Path) -> list[str]:
    """The lines of a text file."""
    with opened(path) as stream:
        try:
            return stream.read().decode().splitlines()
        except UnicodeDecodeError:
            raise InputError(f"{path}: is not UTF-8 text.") from None
