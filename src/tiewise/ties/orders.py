"""Orders of tied documents: the ones that tools use, all rows of a run by tie group, and random orders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes
from tiewise.data.runs import Run
from tiewise.errors import InputError

__all__ = [
    *("NO_RANKS", "ORDERS", "ORDER_NAMES", "TOOL_ORDERS"),
    *("arrange_ties", "check_orders", "group_rows", "name_order"),
]

#: What the orders in which a tool may list tied documents are called in a sentence.
ORDER_NAMES = {
    "docid-desc": "the order by descending ids",
    "docid-asc": "the order by ascending ids",
    "given": "the order of the data",
    "rank": "the order of the rank column",
}
ORDERS = tuple(ORDER_NAMES)
NO_RANKS = "The run has no rank column of whole numbers to list its ties by. Use the order 'given'."
#: Those of them that some known tool uses.
TOOL_ORDERS = ("docid-desc", "docid-asc", "given")


def check_orders(orders: Iterable[str]) -> None:
    """Raise if an order is unknown."""
    for order in orders:
        if order not in ORDERS:
            raise InputError(f"Unknown tie-break order {order!r}. Use one of: {', '.join(ORDERS)}.")


def name_order(order: str) -> str:
    """What an order, or that of a tool, is called in a sentence.

    >>> name_order("given"), name_order("trec_eval")
    ('the order of the data', 'the order of trec_eval')
    """
    return ORDER_NAMES.get(order, f"the order of {order}")


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


def arrange_ties(run: Run, order: str, seed: int) -> Run:
    """The run with its ties broken strictly in an order: down each list scores are n … 2, 1 and ranks 1, 2 … n.

    Equal seeds give equal random orders, in every version of NumPy.
    """
    key: NDArray[Any]
    if order == "random":
        key = np.random.PCG64(seed).random_raw(len(run))
    elif order in ("docid-desc", "docid-asc"):  # text by code point, which is the byte order of its UTF-8
        key = np.argsort(np.argsort(np.array(run.ids(np.arange(len(run))), dtype=object), kind="stable"))
        key = -key if order == "docid-desc" else key
    else:
        check_orders([order])
        if order == "rank" and run.rank is None:
            raise InputError(NO_RANKS)
        key = np.arange(len(run)) if run.rank is None or order == "given" else run.rank
    rows = np.lexsort((key, -run.value, run.query))  # queries stay in place, so offsets hold
    lengths = np.diff(run.offsets)
    rank = np.arange(len(run)) - np.repeat(run.offsets[:-1], lengths) + 1
    score = (np.repeat(lengths, lengths) - rank + 1).astype(np.float64)
    return replace(run, documents=run.documents.take(rows), value=score, rank=rank, source=None)
