"""Columns from ``{query: {document: number}}``: the numbers, and where the list of each query begins."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tiewise.data.columns import Codes, Floats, check_each
from tiewise.data.native import native
from tiewise.errors import InputError

if TYPE_CHECKING:
    from tiewise.data.table import Table

__all__ = ["all_text", "check_mapping", "mapped_columns", "plain_columns"]


def plain_columns(table: Mapping[Any, Any]) -> tuple[Floats, Codes] | None:
    """The numbers of a plain ``{query: {document: number}}`` and the offsets of its lists; None for other mappings."""
    module = native()
    found: tuple[Floats, Codes] | None = module.walk(table) if module is not None and type(table) is dict else None
    return found


def mapped_columns(cls: type[Table], table: Mapping[Any, Mapping[Any, Any]]) -> tuple[Floats, Codes]:
    """The same for any mapping; raises if a value is not a number."""
    check_mapping(cls, table)
    lengths = np.fromiter(map(len, table.values()), np.int64, len(table))
    values = array("d")  # stricter than NumPy: neither text nor None is a number
    try:
        for docs in table.values():
            values.extend(docs.values())
    except (TypeError, ValueError, OverflowError):
        _check_values(cls, table)
        raise
    column = np.frombuffer(values) if values else np.zeros(0)
    if (np.abs(column) >= 2**53).any():  # an integer that float64 cannot hold?
        _check_values(cls, table)
    return column, np.concatenate([[0], np.cumsum(lengths)])


def all_text(table: Mapping[Any, Any]) -> bool:
    """Whether all ids are text."""
    return set(map(type, table)) <= {str} and all(
        set(map(type, docs)) <= {str} for docs in table.values() if isinstance(docs, Mapping)
    )


def check_mapping(cls: type[Table], table: Mapping[Any, Any]) -> None:
    """Raise if a query has something other than a mapping."""
    for query, docs in table.items():
        if not isinstance(docs, Mapping):
            raise InputError(
                f"The {cls.noun} has a {type(docs).__name__} for query {query!r}. "
                f"Give {{query: {{document: {cls.value_names[0]}}}}}."
            )


def _check_values(cls: type[Table], table: Mapping[Any, Mapping[Any, float]]) -> None:
    values = ((f"query {query!r}, document {doc!r}", docs[doc]) for query, docs in table.items() for doc in docs)
    check_each(cls.value_names[0], values)
