"""The arrays of files by what they are for, and the ids of their rows: what ``tiewise score`` reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tiewise.errors import InputError, listed
from tiewise.io.compression import opened
from tiewise.io.tensors import read_tensors

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ROLES", "Arrays", "Ids"]

#: What arrays are for, by the name that they have unless --array says another.
ROLES = {
    "queries": "vectors of queries",
    "docs": "vectors of documents",
    "logits": "logits, a row for each pair of query and document",
    "hidden": "hidden states, a row for each pair",
    "weight": "weights of the last layer, a row for each class",
    "bias": "biases of the last layer",
    "query": "the query of each row",
    "doc": "the document of each row",
    "query_ids": "names of the rows of queries",
    "doc_ids": "names of the rows of docs",
    "query_mask": "which tokens of queries count",
    "doc_mask": "which tokens of docs count",
}


class Arrays(Mapping[str, "NDArray[Any]"]):
    """The arrays of some files by their role."""

    def __init__(self, files: Iterable[Path], renamed: Iterable[str]):
        self._arrays: dict[str, Any] = {}
        self._files: dict[str, Path] = {}
        for path in files:
            for name, one in read_tensors(path).items():
                if name in self._arrays:
                    raise InputError(f"{path}: an array '{name}' was in another file already. Name them apart.")
                self._arrays[name], self._files[name] = one, path
        self._names = {role: role for role in ROLES if role in self._arrays}
        self.named: set[str] = set()  # the roles that --array gave
        for text in renamed:
            role, _, name = text.partition("=")
            if role not in ROLES or not name:
                raise InputError(f"--array {text}: say ROLE=NAME, with one of the roles {', '.join(ROLES)}.")
            if name not in self._arrays:
                raise InputError(f"There is no array '{name}'. There are: {self.all()}.")
            self._names[role] = name
            self.named.add(role)

    def __getitem__(self, role: str) -> Any:
        return self._arrays[self._names[role]]

    def __iter__(self) -> Any:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def all(self) -> str:
        """The names of all arrays, for a message."""
        return listed(self._arrays, most=20)

    def listed(self, roles: Iterable[str]) -> str:
        """The names of the arrays that have one of some roles, for a message."""
        return listed(self._names[role] for role in ROLES if role in roles and role in self)

    def empty(self) -> str:
        """The file and the name of the first array without rows, for a message."""
        return next(self.where(role) for role in self if not np.size(self[role]))

    def where(self, role: str) -> str:
        """The file and the name of an array, for a message."""
        return f"{self._files[self._names[role]]}: '{self._names[role]}'"

    def need(self, *roles: str, why: str = "", instead: str = "") -> list[Any]:
        """Some arrays, or an error that says which is missing; `why` it is needed, and what there is `instead`."""
        for role in roles:
            if role not in self:
                there = f"There are: {self.all()}. Say which it is: --array {role}=NAME{instead}."
                raise InputError(f"There is no array '{role}' ({ROLES[role]}){why}. {there}")
        return [self[role] for role in roles]

    def finite(self, *roles: str) -> list[Any]:
        """Some arrays of numbers, or an error that says where one holds what has no rank."""
        for role in roles:
            rows, bad = len(self[role]) if self[role].ndim else 0, _not_finite(self[role])
            if len(bad):
                many = f"{len(bad):,} of {rows:,} rows"
                raise InputError(
                    f"{self.where(role)} holds NaN or infinity in row {bad[0]}, counted from 0 ({many}). Such a row "
                    "has no score: leave it out, or run the model in a wider type if its own overflowed (float16 ends "
                    "at 65,504)."
                )
        return [self[role] for role in roles]


def _not_finite(array: NDArray[Any]) -> NDArray[Any]:
    """The rows that hold NaN or infinity, looked for a block at a time."""
    if array.dtype.kind in "biuSUO" or not array.ndim:
        return np.zeros(0, dtype=np.int64)
    step = max(1, 2**24 // max(1, int(np.prod(array.shape[1:]))))
    blocks = [array[at : at + step] for at in range(0, len(array), step)]
    bad = [~np.isfinite(block).reshape(len(block), -1).all(1) for block in blocks]
    return np.flatnonzero(np.concatenate(bad)) if bad else np.zeros(0, dtype=np.int64)


class Ids:
    """The ids of rows: the lines of a file, an array, or else counted, which a note says."""

    def __init__(self, found: Arrays, files: Mapping[str, Path | None]):
        self._found, self._files = found, files
        self._counted: list[tuple[str, str, str]] = []  # what, and the option and the array that would name it

    def of(self, what: str, option: str, role: str, rows: int, each: str) -> Any:
        """The ids of so many rows, each of them a query, a document or a pair; None where they are counted."""
        path = self._files[option]
        if path is not None:
            return _checked(_lines(path), rows, f"{path}: holds {{}} lines", each)
        if role in self._found:
            return _checked(self._found[role], rows, f"{self._found.where(role)} holds {{}} ids", each)
        self._counted.append((what, option, role))
        return None

    def given(self, option: str) -> bool:
        """Whether a file of ids was given."""
        return self._files[option] is not None

    def notes(self) -> list[str]:
        """Which ids were counted, and how to name them."""
        if not self._counted:
            return []
        whats, options, roles = (" and ".join(parts) for parts in zip(*self._counted, strict=True))
        arrays = "an array" if len(self._counted) == 1 else "arrays"
        return [f"The {whats} are counted 0, 1, 2 ... Name them with {options}, or in {arrays} {roles}."]


def _checked(ids: Any, rows: int, found: str, each: str) -> Any:
    if np.ndim(ids) != 1 or len(ids) != rows:
        raise InputError(f"{found.format(f'{np.size(ids):,}')} for {rows:,} {each}. Give one for each.")
    return ids


def _lines(path: Path) -> list[str]:
    with opened(path) as stream:
        try:
            return stream.read().decode().splitlines()
        except UnicodeDecodeError:
            raise InputError(f"{path}: is not UTF-8 text.") from None
