"""Counting the tie groups of the judged documents of a run in memory.

In a list that is sorted by score, bisection finds how many rows score above a judged document and how many score the
same. `count_ties` counts for several score types at once: a reader of float32 may tie documents that float64 tells
apart. The compiled reader counts the same (src/reader/count.h).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats, positions, project, ranges
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import NO_RANKS, TOOL_ORDERS, check_orders


def count_ties(
    qrels: Qrels, run: Run, orders: Sequence[str], dtypes: Sequence[str] = ("float64",), scores: Floats | None = None
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
    qrels: Qrels, run: Run, orders: Sequence[str], places: Codes, own: Floats, rows: Codes, scores: Floats | None
) -> TieGroups:
    """The tie groups of a run, its scores as they are; `own` and `rows` are its judged documents."""
    rows_in_order = run.best_first
    value = run.value[rows_in_order]
    present = places >= 0
    low = np.where(present, run.offsets[places], 0)
    high = np.where(present, run.offsets[places + 1], 0)
    length = high - low
    lowest = np.full(len(places), np.nan)
    lowest[length > 0] = value[high[length > 0] - 1]
    score = own if scores is None else scores
    first = _bisect(value, low[qrels.query], high[qrels.query], score, np.greater)
    size = _bisect(value, first, high[qrels.query], score, np.greater_equal) - first
    in_shard = ~np.isnan(own)
    # A judged document may tie with a single row of a shard that does not hold it.
    tied = np.flatnonzero(size >= (2 if scores is None else 1))
    groups, group = np.unique(first[tied], return_inverse=True)
    group_size = np.zeros(len(groups), dtype=np.int64)
    group_size[group] = size[tied]
    members = rows_in_order[ranges(groups, group_size)]
    group_of_member = np.repeat(np.arange(len(groups)), group_size)

    @cache
    def count_before(order: str) -> Codes:
        if order == "docid-asc":
            return size - in_shard - count_before("docid-desc")
        before = np.zeros(len(qrels), dtype=np.int64)
        if order == "docid-desc":
            key, own_key = _descending_ids(run.ids(members), qrels.ids(tied))
            before[tied] = _count_smaller(group_of_member, key, group, own_key)
            return before
        here = in_shard[tied]
        place = np.arange(len(run))
        if order == "rank":
            assert run.rank is not None
            place[np.argsort(run.rank, kind="stable")] = np.arange(len(run))
        own_place = place[rows[tied[here]]]
        before[tied[here]] = _count_smaller(group_of_member, place[members], group[here], own_place)
        return before

    return TieGroups(
        qrels=qrels,
        score=score,
        start=first - low[qrels.query],
        size=size,
        length=length,
        present=present,
        lowest=lowest,
        lowest_size=high - _bisect(value, low, high, lowest, np.greater),
        before={order: count_before(order) for order in orders},
        in_shard=None if scores is None else in_shard,
        unjudged=frozenset(run.query_index.keys() - qrels.query_index.keys()),
    )


def _bisect(values: NDArray[Any], low: Codes, high: Codes, x: NDArray[Any], ahead: np.ufunc) -> Codes:
    """The first index in [low, high) whose value is not `ahead` of x, for many x at once."""
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) // 2
        open_ = low < high
        further = open_ & ahead(values[np.where(open_, middle, 0)], x)
        low = np.where(further, middle + 1, low)
        high = np.where(open_ & ~further, middle, high)
    return low


def _descending_ids(*columns: Sequence[str]) -> list[Codes]:
    """Numbers for the ids of several columns, smaller for what comes first in the order by descending ids."""
    ids = np.array([id for column in columns for id in column], dtype=object)
    # Text is sorted by code point, which is the byte order of its UTF-8.
    key = -np.unique(ids, return_inverse=True)[1]
    return np.split(key, np.cumsum([len(column) for column in columns])[:-1])


def _count_smaller(group: Codes, key: Codes, own_group: Codes, own_key: Codes) -> Codes:
    """How many of the keys of its group are smaller than an own key, for many at once."""
    by_key = np.lexsort((key, group))
    low, high = (np.searchsorted(group, own_group, side=side) for side in ("left", "right"))
    return _bisect(key[by_key], low, high, own_key, np.less) - low


# -- ranking notation -----------------------------------------------------------------------------------------------

#: A bracket, a label, a document that was not judged, or one that is relevant for subtopics.
TOKEN = r"[()\d-]|[a-z]|\{[a-z]+\}"


def notation(text: str) -> TieGroups:
    """Tie groups from a ranking in short: digits are labels, ``-`` is unjudged, brackets tie.

    What follows a ``|`` was judged but not retrieved. The order written is the `given` order. For diversity measures,
    letters instead of digits are subtopics for which a document is relevant, several of them in braces.

    >>> notation("(20)-1|1")
    <TieGroups: 1 query, 3 judged documents retrieved, 2 of them tied>
    >>> notation("({ab}a)-b").qrels.to_dict()
    {'q': {'d000': {'a': 1.0, 'b': 1.0}, 'd001': {'a': 1.0}, 'd003': {'b': 1.0}}}
    """
    listed, _, unretrieved = text.replace(" ", "").partition("|")
    scores, labels, group, open_, place = [], list[str](), 0, False, 0
    while place < len(listed):
        match = re.compile(TOKEN).match(listed, place)
        sign = match[0] if match else listed[place]
        if sign in ("(", ")") and (sign == "(") != open_:
            open_ = not open_
            group += 1
        elif match and sign not in ("(", ")"):
            scores.append(-group)
            labels.append(sign)
            group += not open_
        else:
            raise InputError(
                f"'{sign}' at position {place + 1} of {text!r} is not ranking notation: digits are labels, "
                "'-' is unjudged, brackets tie, and brackets do not nest. Letters are subtopics, several in braces."
            )
        place += len(sign)
    if open_ or re.sub(TOKEN, "", unretrieved) or set(unretrieved) & set("()-"):
        raise InputError(f"{text!r} is not ranking notation: a bracket is left open, or '|' is not followed by labels.")
    labels += re.findall(TOKEN, unretrieved)
    if len({sign.isdecimal() for sign in labels if sign != "-"}) > 1:
        raise InputError(f"{text!r} is not ranking notation: digits are labels, letters are subtopics. Use either.")
    names = [f"d{place:03d}" for place in range(len(labels))]
    judged = {name: _label(sign) for name, sign in zip(names, labels, strict=True) if sign != "-"}
    run = Run.from_dict({"q": dict(zip(names, map(float, scores), strict=False))})
    return count_ties(Qrels.from_dict({"q": judged}), run, TOOL_ORDERS)["float64"]


def _label(sign: str) -> float | dict[str, float]:
    return float(sign) if sign.isdecimal() else dict.fromkeys(sign.strip("{}"), 1.0)
