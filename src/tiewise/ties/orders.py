"""Orders of tied documents: the ones that tools use, all rows of a run by tie group, and random orders.

There is one source of random orders. A seed and the number of a draw give each document a random priority, which is a
hash of its id; a tie group is in the order of the priorities. An id may be the hash of a name, so that several runs
have one order, or a row number. Where the documents of a group are only counted, `RandomPlaces` draws the places of
some of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats, is_first
from tiewise.data.runs import Run
from tiewise.errors import InputError

Hashes = NDArray[np.uint64]

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
    rows = run.best_first
    value, query = run.value[rows], run.query[rows]
    first = np.flatnonzero(is_first(value, query))
    size = np.diff(np.append(first, len(rows)))
    start = first - run.offsets[query[first]]
    return rows, np.repeat(start, size), np.repeat(size, size)


def find_reordered(lists: Codes, first: Floats, second: Floats) -> Codes:
    """The lists in which two documents are in opposite order by two scores.

    >>> find_reordered(np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 1.0, 2.0]), np.array([4.0, 3.0, 3.0, 3.0]))
    array([0])
    """
    order = np.lexsort((second, first, lists))  # a list that is not ascending in `second` has neighbours that fall
    lists, second = lists[order], second[order]
    return np.unique(lists[1:][(lists[1:] == lists[:-1]) & (second[1:] < second[:-1])])


def breaks_ties(lists: Codes, first: Floats, second: Floats) -> bool:
    """Whether documents of a list that the first score ties differ in the second.

    >>> breaks_ties(np.array([0, 0]), np.array([1.0, 1.0]), np.array([1.0, 2.0]))
    True
    """
    order = np.lexsort((second, first, lists))
    lists, first, second = lists[order], first[order], second[order]
    tied = (lists[1:] == lists[:-1]) & (first[1:] == first[:-1])
    return bool((tied & (second[1:] != second[:-1])).any())


def arrange_ties(run: Run, order: str, seed: int) -> Run:
    """The run with its ties broken strictly in an order: down each list scores are n … 2, 1 and ranks 1, 2 … n.

    Equal seeds give equal random orders.
    """
    key: NDArray[Any]
    if order == "random":
        key = random_priorities(np.arange(len(run)), seed)
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


# -- random orders ----------------------------------------------------------------------------------------------------


def _digest(text: bytes) -> bytes:
    from hashlib import blake2b  # here, since it takes time and not every use needs it

    return blake2b(text, digest_size=8).digest()


def hash_names(names: Sequence[str], codes: Codes) -> Hashes:
    """The hash of the name of each code."""
    used, index = np.unique(codes, return_inverse=True)
    digests = (_digest(names[code].encode("utf-8", "surrogatepass")) for code in used.tolist())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)[index]


def random_priorities(ids: NDArray[Any], seed: int, number: int = 0) -> Hashes:
    """A random number for each id, the same wherever the id occurs; others for another seed or number of the draw."""
    step = _digest(f"{seed} {number}".encode())
    return _mix_bits(ids.astype(np.uint64) + np.uint64(int.from_bytes(step, "little")))


def random_shares(ids: NDArray[Any], seed: int, number: int = 0) -> Floats:
    """The same as numbers from 0 to 1, without 1."""
    return np.asarray((random_priorities(ids, seed, number) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def _mix_bits(key: Hashes) -> Hashes:
    """A hash of 64 bits to 64 bits, each of which depends on all of them (SplitMix64)."""
    key = key + np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


class RandomPlaces:
    """Random places of some documents of tie groups, of which the others are only counted.

    Arrays run over the groups: `ids`, their `size`, and how many documents of them are `held`.
    """

    def __init__(self, ids: Hashes, size: Codes, held: Codes, seed: int):
        self._size, self._seed, ids = size, seed, _mix_bits(ids)
        self._group = np.repeat(np.arange(len(size)), held)  # of each document that is held
        self._offset = np.arange(len(self._group)) - np.repeat(np.cumsum(held) - held, held)
        self._ids = ids[self._group] + self._offset.astype(np.uint64)
        is_dense = held**2 > size  # two random places would be equal too often: all places are shuffled
        self._dense, self._sparse = (np.flatnonzero(mask[self._group]) for mask in (is_dense, ~is_dense))
        self._slots = np.where(is_dense, size, 0)
        self._first = np.cumsum(self._slots) - self._slots
        self._slot_group = np.repeat(np.arange(len(size)), self._slots)
        slot = np.arange(len(self._slot_group)) - self._first[self._slot_group]
        self._slot_ids = ids[self._slot_group] + slot.astype(np.uint64)
        # A dense group needs its lowest shares, as many as it has documents that are held. More of them are below this.
        self._held_dense = np.where(is_dense, held, 0)
        self._low = ((self._held_dense + 8 * np.sqrt(self._held_dense) + 8) / size)[self._slot_group]

    @property
    def moved(self) -> int:
        """About how many documents one order moves."""
        return len(self._slot_group) + len(self._group) + 1

    def draw(self, number: int) -> Codes:
        """How many documents of its group precede each document that is held, group by group."""
        before = np.zeros(len(self._group), dtype=np.int64)
        if len(self._dense):
            share = random_shares(self._slot_ids, self._seed, number * 1024)
            low = np.flatnonzero(share <= self._low)
            many = np.bincount(self._slot_group[low], minlength=len(self._size))
            if (many < self._held_dense).any():  # by a rare chance
                low, many = np.arange(len(share)), self._slots
            shuffled = low[np.argsort((self._slot_group + share)[low], kind="stable")]
            group = self._group[self._dense]
            first = np.cumsum(many) - many
            before[self._dense] = shuffled[first[group] + self._offset[self._dense]] - self._first[group]
        documents, attempt = self._sparse, 1
        while len(documents):  # until no two documents of a group have the same place
            group = self._group[documents]
            share = random_shares(self._ids[documents], self._seed, number * 1024 + attempt)
            before[documents] = place = (share * self._size[group]).astype(np.int64)
            key = np.sort((group << 32) + place)
            again = np.zeros(len(self._size), dtype=bool)
            again[key[1:][key[1:] == key[:-1]] >> 32] = True
            documents, attempt = documents[again[group]], attempt + 1
        return before
