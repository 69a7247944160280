"""Counting the tie groups of the judged documents of a run in memory.

For each distinct score of a judged document, a *probe*, the rows of its list that score above it and equal to it are
counted. No run is sorted. `count_ties` counts for several score types at once: a reader of float32 may tie documents
that float64 tells apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats, positions, project, ranges
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import NO_RANKS, check_orders

__all__ = ["count_above", "count_ties"]


def count_ties(
    qrels: Qrels,
    run: Run,
    orders: Sequence[str],
    dtypes: Sequence[str] = ("float64",),
    scores: Floats | None = None,
) -> dict[str, TieGroups]:
    """The tie groups of a run for each score type (``"float64"``: the scores as they are), with counts for all orders.

    `scores` are the judged scores of a larger collection, of which the run is one shard.
    """
    check_orders(orders)
    if "rank" in orders and run.rank is None:
        raise InputError(NO_RANKS)
    places = positions(run.query_index, qrels.queries)
    own, rows = run.find(qrels, places)
    counted: dict[str, TieGroups] = {}
    for dtype in dtypes:
        if dtype == "float64":
            counted[dtype] = _count_one(qrels, run, orders, places, own, rows, scores)
            continue
        read = run.projected(dtype)
        whole = None if scores is None else project(scores, dtype)
        exact = counted.get("float64")
        if exact is not None and scores is None and run.descending and read.n_groups == run.n_groups:
            # No two groups became one: all counts are the same.
            counted[dtype] = replace(exact, score=project(exact.score, dtype), lowest=project(exact.lowest, dtype))
        else:
            counted[dtype] = _count_one(qrels, read, orders, places, project(own, dtype), rows, whole)
    return counted


def _count_one(
    qrels: Qrels,
    run: Run,
    orders: Sequence[str],
    places: Codes,
    own: Floats,
    rows: Codes | None,
    scores: Floats | None,
) -> TieGroups:
    """The tie groups of a run, its scores as they are; `own` and `rows` are its judged documents."""
    in_shard = ~np.isnan(own)
    score = own if scores is None else scores
    probes = _Probes(qrels, places, score)
    above, equal, tied = _count(run, probes, 2 if scores is None else 1)
    low, high = run.offsets[places], run.offsets[places + 1]  # places of −1 are masked by `present`
    present = places >= 0
    length = np.where(present, high - low, 0)
    lowest, lowest_size = _lowest_scores(run, places, length)
    probe = probes.of_document
    retrieved = probe >= 0
    size = np.where(retrieved, equal[probe] if len(equal) else 0, 0)
    before = {
        order: np.where(retrieved, _before(order, run, probes, tied, rows, in_shard, size), 0) for order in orders
    }
    return TieGroups(
        qrels=qrels,
        score=score,
        start=np.where(retrieved, above[probe] if len(above) else 0, 0),
        size=size,
        length=length,
        present=present,
        lowest=lowest,
        lowest_size=lowest_size,
        before=before,
        in_shard=None if scores is None else in_shard,
        unjudged=frozenset(run.query_index.keys() - qrels.query_index.keys()),
    )


class _Probes:
    """The distinct scores of judged documents, by query and ascending: where the run is to be counted."""

    def __init__(self, qrels: Qrels, places: Codes, score: Floats):
        place = places[qrels.query] if len(qrels) else np.zeros(0, dtype=np.int64)
        wanted = np.flatnonzero(~np.isnan(score) & (place >= 0))
        order = wanted[np.lexsort((score[wanted], qrels.query[wanted]))]
        query, value = qrels.query[order], score[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (query[1:] != query[:-1]) | (value[1:] != value[:-1])
        self.value: Floats = value[new]  # (n_probes,)
        self.place: Codes = place[order][new]  # (n_probes,): the query's position in the run
        self.of_document = np.full(len(qrels), -1)  # (n_judged,): the probe of each judged document
        self.of_document[order] = np.cumsum(new) - 1
        self.qrels = qrels


def _count(run: Run, probes: _Probes, least: int) -> tuple[Codes, Codes, tuple[Codes, Codes]]:
    """For each probe the rows above and equal; and the rows of groups of at least so many rows, with their probe.

    A judged document may tie with a single row of a shard that does not hold it.
    """
    if run.descending:
        low, high = run.offsets[probes.place], run.offsets[probes.place + 1]
        first = _bisect(run.value, low, high, probes.value, np.greater)
        last = _bisect(run.value, first, high, probes.value, np.greater_equal)
        equal = last - first
        many = np.flatnonzero(equal >= least)
        return first - low, equal, (ranges(first[many], equal[many]), np.repeat(many, equal[many]))
    heads = np.flatnonzero(np.diff(probes.place, prepend=-1))
    segments, bounds = probes.place[heads], np.append(heads, len(probes.place))
    lengths = run.offsets[segments + 1] - run.offsets[segments]
    rows = ranges(run.offsets[segments], lengths)
    if len(segments) == len(probes.place):  # one probe a list: compare all rows with it at once
        value, probe = run.value[rows], np.repeat(probes.value, lengths)
        above, equal = _totals(value > probe, lengths), _totals(value == probe, lengths)
        tied = np.flatnonzero((value == probe) & np.repeat(equal >= least, lengths))
        return above, equal, (rows[tied], np.searchsorted(np.cumsum(lengths), tied, side="right"))
    segment = np.repeat(np.arange(len(segments)), lengths)
    above, equal, at = count_above(run.value[rows], segment, probes.value, bounds)
    tied = np.flatnonzero((at >= 0) & (equal[at] >= least)) if len(equal) else np.zeros(0, dtype=np.int64)
    return above, equal, (rows[tied], at[tied])


def count_above(
    values: NDArray[Any], segment: Codes, probes: NDArray[Any], bounds: Codes
) -> tuple[Codes, Codes, Codes]:
    """For each probe, how many values of its segment lie above it and how many equal it.

    `probes[bounds[s]:bounds[s + 1]]` are the distinct probes of segment s, ascending. Each value is placed among
    the probes of its segment by bisection, all values at once: one comparison a value if there is one probe.
    The third result is, for each value, the probe it equals, or −1. Values may be numbers or text.

    >>> count_above(np.array([3, 1, 2, 2]), np.zeros(4, int), np.array([1, 2]), np.array([0, 2]))
    (array([3, 1]), array([1, 2]), array([-1,  0,  1,  1]))
    """
    low, high = bounds[segment], bounds[segment + 1]
    place = _bisect(probes, low, high, values, np.less)  # the probes below the value end here
    slots = np.bincount(place + segment, minlength=len(probes) + len(bounds) - 1)
    so_far = np.cumsum(slots)
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    above = so_far[bounds[owner + 1] + owner] - so_far[np.arange(len(probes)) + owner]
    at = np.full(len(values), -1)
    hit = np.flatnonzero(place < high)
    hit = hit[np.asarray(probes[place[hit]] == values[hit], dtype=bool)]
    at[hit] = place[hit]
    return above, np.bincount(at[hit], minlength=len(probes)), at


def _bisect(values: NDArray[Any], low: Codes, high: Codes, x: NDArray[Any], ahead: np.ufunc) -> Codes:
    """The first index in [low, high) whose value is not `ahead` of x, for many x at once."""
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) // 2
        open_ = low < high
        further = open_ & np.asarray(ahead(values[np.where(open_, middle, 0)], x), dtype=bool)
        low = np.where(further, middle + 1, low)
        high = np.where(open_ & ~further, middle, high)
    return low


def _totals(flags: NDArray[np.bool_], lengths: Codes) -> Codes:
    """How many flags of each stretch are set; stretches may be empty."""
    heads = np.cumsum(lengths) - lengths
    total: Codes = np.add.reduceat(np.append(flags, False), heads, dtype=np.int64)
    return np.where(lengths > 0, total, 0)


def _lowest_scores(run: Run, places: Codes, length: Codes) -> tuple[Floats, Codes]:
    """The lowest score of each list and how many documents have it."""
    lowest, size = np.full(len(places), np.nan), np.zeros(len(places), dtype=np.int64)
    some = np.flatnonzero(length > 0)
    low, high = run.offsets[places[some]], run.offsets[places[some] + 1]
    if run.descending:
        lowest[some] = run.value[high - 1]
        size[some] = high - _bisect(run.value, low, high, lowest[some], np.greater)
    elif len(some):
        rows = ranges(low, length[some])
        heads = np.cumsum(length[some]) - length[some]
        lowest[some] = np.minimum.reduceat(run.value[rows], heads)
        size[some] = np.add.reduceat(run.value[rows] == np.repeat(lowest[some], length[some]), heads, dtype=np.int64)
    return lowest, size


def _before(
    order: str,
    run: Run,
    probes: _Probes,
    tied: tuple[Codes, Codes],
    rows: Codes | None,
    in_shard: NDArray[np.bool_],
    size: Codes,
) -> Codes:
    """How many tied documents of the run stand before each judged document in an order, (n_judged,)."""
    if order == "docid-asc":
        return size - in_shard - _before("docid-desc", run, probes, tied, rows, in_shard, size)
    tied_rows, tied_probe = tied
    group = np.full(len(probes.value), -1)
    present = np.flatnonzero(np.bincount(tied_probe, minlength=len(group)))
    group[present] = np.arange(len(present))
    in_group = np.where(probes.of_document >= 0, group[probes.of_document] if len(group) else -1, -1)
    if order == "docid-desc":
        docs = np.flatnonzero(in_group >= 0)
        keys: NDArray[Any] = np.array(run.ids(tied_rows), dtype=object)
        wanted: NDArray[Any] = np.array(probes.qrels.ids(docs), dtype=object)
    else:  # what comes first has the larger key
        docs = np.flatnonzero((in_group >= 0) & in_shard)
        own_rows = run.rows_of(probes.qrels, docs) if rows is None else rows[docs]
        place = np.arange(len(run))
        if order == "rank":
            assert run.rank is not None
            place = np.argsort(np.lexsort((place, run.rank)))
        keys, wanted = -place[tied_rows], -place[own_rows]
    # By group, ascending key: text by code point, which is the byte order of its UTF-8.
    arranged = docs[_sorted_within(in_group[docs], wanted)]
    key_of = np.empty(len(in_group), dtype=wanted.dtype)
    key_of[docs] = wanted
    bounds = np.searchsorted(in_group[arranged], np.arange(len(present) + 1))
    above, _, _ = count_above(keys, group[tied_probe], key_of[arranged], bounds)
    before = np.zeros(len(in_group), dtype=np.int64)
    before[arranged] = above
    return before


def _sorted_within(group: Codes, key: NDArray[Any]) -> Codes:
    """The order that sorts by group, then by key."""
    by_key = np.argsort(key, kind="stable")
    return by_key[np.argsort(group[by_key], kind="stable")]
