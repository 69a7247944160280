"""Orders of tied documents: the ones that tools use, all rows of a run by tie group, and random orders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tiewise.data.columns import Codes
from tiewise.data.runs import Run
from tiewise.errors import InputError

__all__ = ["ORDERS", "TOOL_ORDERS", "break_ties_randomly", "check_orders", "group_rows"]

#: The orders in which a tool may list tied documents.
ORDERS = ("docid-desc", "docid-asc", "given", "rank")
#: Those of them that some known tool uses.
TOOL_ORDERS = ("docid-desc", "docid-asc", "given")


def check_orders(orders: Iterable[str]) -> None:
    """Raise if an order is unknown."""
    for order in orders:
        if order not in ORDERS:
            raise InputError(f"Unknown tie-break order {order!r}. Use one of: {', '.join(ORDERS)}.")


def group_rows(run: Run) -> tuple[Codes, Codes, Codes]:
    """All rows of a run, list by list and best first, with the start and the size of the tie group of each.

    >>> group_rows(Run.from_dict({"q": {"a": 1.0, "b": 2.0, "c": 1.0}}))
    (array([1, 0, 2]), array([0, 1, 1]), array([1, 2, 2]))
    """
    rows = np.arange(len(run)) if run.descending else np.lexsort((-run.value, run.query))
    value, query = run.value[rows], run.query[rows]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (value[1:] != value[:-1]) | (query[1:] != query[:-1])
    heads = np.flatnonzero(new)
    size = np.diff(np.append(heads, len(rows)))
    start = heads - run.offsets[query[heads]]
    return rows, np.repeat(start, size), np.repeat(size, size)


def break_ties_randomly(run: Run, seed: int) -> Run:
    """The run with its ties broken strictly at random: down each list scores are n … 2, 1 and ranks 1, 2 … n.

    Documents that were not tied keep their order. Scores are whole numbers, so that a reader of float32 ties none of
    them again (up to 2**24 documents a list). Equal seeds give equal runs, in every version of NumPy.

    >>> run = Run.from_dict({"q": {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.9}})
    >>> break_ties_randomly(run, seed=1).to_dict()
    {'q': {'d': 4.0, 'c': 3.0, 'a': 2.0, 'b': 1.0}}
    """
    chance = np.random.PCG64(seed).random_raw(len(run))
    rows = np.lexsort((chance, -run.value, run.query))  # queries stay in place, so offsets hold
    lengths = np.diff(run.offsets)
    rank = np.arange(len(run)) - np.repeat(run.offsets[:-1], lengths) + 1
    score = (np.repeat(lengths, lengths) - rank + 1).astype(np.float64)
    return replace(run, documents=run.documents.take(rows), value=score, rank=rank, source=None)
