"""`TieGroups`, the waist of Tiewise: what a measure needs to know of a ranking with ties, and no more.

For a judged document with score s, all that matters is how many documents of its list score above s (`start`)
and how many score exactly s (`size`). Both are found by counting, so no run is ever sorted; counts of
disjoint shards add up, so a collection in a thousand pieces is evaluated exactly. How ties are *broken* by one
fixed order is decided here too, and nowhere else: `before` counts the tied documents that this order puts first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats, positions, project
from tiewise.data.dict_run import MappedRun
from tiewise.data.runs import Qrels, Run
from tiewise.data.streamed import StreamedRun
from tiewise.errors import InputError, counted
from tiewise.ties.shards import Counts, Total

__all__ = [
    "ORDERS",
    "TieGroups",
    "check_orders",
    "grouped",
    "judged_scores",
    "notation",
    "randomly_broken",
    "scores_as",
    "some_docs",
    "tie_groups",
    "tie_groups_as",
]

#: The orders in which a tool may list tied documents.
ORDERS = ("docid-desc", "docid-asc", "given", "rank")
NO_RANKS = "The run has no rank column of whole numbers to list its ties by. Use the order 'given'."


@dataclass(frozen=True, eq=False, repr=False)
class TieGroups:
    """Per judged document the start and size of its tie group, and per query the list's length.

    Arrays over documents run along the rows of `qrels`, arrays over queries along `qrels.queries`.

    >>> ties = notation("(20)-1")
    >>> ties.start, ties.size, ties.length
    (array([0, 0, 3]), array([2, 2, 1]), array([4]))
    """

    qrels: Qrels
    score: Floats  # (n_judged,): NaN if the document was not retrieved
    start: Codes  # (n_judged,): documents of its list that score higher
    size: Codes  # (n_judged,): documents that score the same, itself included; 0 if not retrieved
    length: Codes  # (n_queries,): documents in the list
    present: NDArray[np.bool_]  # (n_queries,): whether the run has the query at all
    floor: Floats  # (n_queries,): the lowest score of the list, NaN if it is empty
    floor_size: Codes  # (n_queries,): documents with that score, the list's last tie group
    before: Mapping[str, Codes] = field(default_factory=dict)  # by order, (n_judged,): tied documents ahead of it
    owned: NDArray[np.bool_] | None = None  # (n_judged,): retrieved in this shard; None: this is the whole
    unjudged: frozenset[str] = frozenset()  # queries of the run that the qrels do not have
    depth: int | None = None  # only ranks up to here count
    complete: bool = False  # the lists are known to be whole, so none was cut inside its last tie group

    def __repr__(self) -> str:
        queries = counted(len(self.qrels.queries), "query", "queries")
        retrieved = counted(int(np.count_nonzero(self.size)), "judged document")
        return f"<TieGroups: {queries}, {retrieved} retrieved, {int(np.count_nonzero(self.size > 1)):,} of them tied>"

    def _repr_html_(self) -> str:
        from tiewise.tables import html as notebook

        few, offsets = self.qrels.queries[: notebook.FEW], self.qrels.offsets
        sizes = [self.size[offsets[q] : offsets[q + 1]] for q in range(len(few))]
        counts = (
            (len(size), np.count_nonzero(size), np.count_nonzero(size > 1), size.max(initial=0)) for size in sizes
        )
        heads = ("query", "documents", "judged", "of them retrieved", "of these tied", "largest tie group")
        rows = ((query, self.length[q], *found) for q, (query, found) in enumerate(zip(few, counts, strict=True)))
        return notebook.block(repr(self).strip("<>"), notebook.table(heads, rows, total=len(self.qrels.queries)))

    @cached_property
    def limit(self) -> Codes:
        """The number of ranks that count in each list, (n_queries,)."""
        return self.length if self.depth is None else np.minimum(self.length, self.depth)

    def to_depth(self, depth: int | None) -> TieGroups:
        """The same rankings, of which only the first `depth` ranks count."""
        return replace(self, depth=depth)

    def retrieved_only(self) -> TieGroups:
        """The same rankings with the judgments of retrieved documents alone."""
        return self.where(np.flatnonzero(self.size > 0))

    def where(self, rows: Codes) -> TieGroups:
        """The same rankings with some of the judgments, given as ascending rows of the qrels."""
        return replace(
            self,
            qrels=self.qrels.where(rows),
            score=self.score[rows],
            start=self.start[rows],
            size=self.size[rows],
            before={order: before[rows] for order, before in self.before.items()},
        )

    # -- lists that end inside a tie group --------------------------------------------------------------------

    @cached_property
    def open_ended(self) -> NDArray[np.bool_]:
        """Whether a list ends with tied documents, so that it may have been cut among more of them, (n_queries,)."""
        return self.floor_size > 1

    def condensed_from(self, whole: TieGroups) -> TieGroups:
        """These lists, made of `whole` by leaving documents out, are open-ended only where they end as those do."""
        return replace(self, floor_size=np.where(self.floor == whole.floor, self.floor_size, 1))

    def with_last_group(self, rows: Codes) -> TieGroups:
        """The lists with these judged documents in their last tie group and no others; it has as many ranks as before.

        `rows` are of the qrels, at most as many in a list as its last group has documents.
        """
        query = self.qrels.query
        last = self.in_last_group
        last[rows] = True
        joins = np.zeros(len(query), dtype=bool)
        joins[rows] = True
        return replace(
            self,
            start=np.where(joins, (self.length - self.floor_size)[query], self.start),
            size=np.where(last, np.where(joins, self.floor_size[query], 0), self.size),
        )

    @property
    def in_last_group(self) -> NDArray[np.bool_]:
        """Whether a judged document stands in the last tie group of an open-ended list, (n_judged,)."""
        query = self.qrels.query
        return (self.size > 0) & (self.score == self.floor[query]) & self.open_ended[query]

    # -- shards -----------------------------------------------------------------------------------------------

    @staticmethod
    def merge(shards: Iterable[TieGroups]) -> TieGroups:
        """The tie groups of a collection from those of its disjoint shards, which may come one by one.

        Every shard must have counted for the judged scores of all shards: see `from_shards`, which does it.
        Tied documents are `given` in the order of the shards.
        """
        first, total, unjudged = None, None, set[str]()
        for shard in shards:
            if first is None or total is None:
                first, total = shard, shard._total()
            shard._check_like(first)
            counts = shard.counts()
            _check_apart(first.qrels, total.held(counts))
            total.add(counts)
            unjudged |= shard.unjudged
        if first is None or total is None:
            raise InputError("There are no shards to merge.")
        return replace(first, **total.columns(), owned=None, unjudged=frozenset(unjudged))

    def counts(self) -> Counts:
        """What these tie groups add to those of a larger collection, of which they are a shard."""
        owned = ~np.isnan(self.score) if self.owned is None else self.owned
        per_query = (self.present, self.length, self.floor, self.floor_size)
        return Counts.of(self.start, self.size, owned, self.before, *per_query)

    def _total(self) -> Total:
        if "rank" in self.before:
            raise InputError("Rank columns of shards do not make one ranking. Use another tie-break order.")
        return Total(len(self.qrels), len(self.qrels.queries), self.before)

    def _check_like(self, first: TieGroups) -> None:
        if self.qrels is not first.qrels and tuple(self.qrels) != tuple(first.qrels):
            raise InputError("Shards with different qrels cannot be merged. Use the same qrels for all.")
        if set(self.before) != set(first.before):
            raise InputError("Shards counted for different tie-break orders cannot be merged.")
        if not np.array_equal(self.score, first.score, equal_nan=True):
            raise InputError(
                "Shards that counted for different scores cannot be merged. Gather judged_scores() of all "
                "shards first and give them to tie_groups(), or use TieGroups.from_shards()."
            )

    @staticmethod
    def from_shards(qrels: Any, shards: Sequence[Any], orders: Sequence[str] = ("docid-desc",)) -> TieGroups:
        """The tie groups of a run that is cut into shards of disjoint documents, given as whatever `evaluate` takes.

        >>> qrels = Qrels.from_dict({"q": {"a": 1, "c": 1}})
        >>> left = Run.from_dict({"q": {"a": 2.0, "b": 1.0}})
        >>> right = Run.from_dict({"q": {"c": 1.0, "d": 3.0}})
        >>> whole = TieGroups.from_shards(qrels, [left, right])
        >>> whole.start, whole.size
        (array([1, 2]), array([1, 2]))
        """
        if not shards:
            raise InputError("There are no shards to count.")
        judged = _judgments(qrels)
        runs = [_countable(shard) for shard in shards]
        scores = np.fmax.reduce([judged_scores(judged, run) for run in runs])
        return TieGroups.merge(tie_groups(judged, run, orders, scores=scores) for run in runs)


def tie_groups_as(
    qrels: Qrels,
    run: Run | MappedRun | StreamedRun,
    wanted: Mapping[str, Sequence[str]],
    scores: Floats | None = None,
) -> dict[str, TieGroups]:
    """The tie groups of a run for several readings of its scores (``"float64"``: as they are), each with its orders."""
    if isinstance(run, StreamedRun):
        return run.tie_groups(qrels, wanted, scores)
    found = {}
    for dtype, orders in wanted.items():
        read = run if dtype == "float64" else run.projected(dtype)
        found[dtype] = _of_rows(qrels, read, tuple(orders), scores_as(scores, dtype))
    return found


def scores_as(scores: Floats | None, dtype: str) -> Floats | None:
    """The judged scores of a larger collection, if there is one, in another reading."""
    return scores if scores is None or dtype == "float64" else project(scores, dtype)


def some_docs(run: Run | MappedRun | StreamedRun) -> Sequence[str]:
    """Some documents of a run, for messages."""
    return run.docs if isinstance(run, StreamedRun) else run.ids(np.arange(min(3, len(run))))


def check_orders(orders: Iterable[str]) -> None:
    """Raise if an order is not known."""
    for order in orders:
        if order not in ORDERS:
            raise InputError(f"Unknown tie-break order {order!r}. Use one of: {', '.join(ORDERS)}.")


def _judgments(given: Any) -> Qrels:
    """Judgments from whatever `evaluate` takes."""
    from tiewise.io import as_qrels  # here, since reading counts too

    return given if isinstance(given, Qrels) else as_qrels(given)


def _countable(given: Any) -> Run | MappedRun | StreamedRun:
    """A run from whatever `evaluate` takes."""
    from tiewise.io import countable

    return given if isinstance(given, (Run, MappedRun, StreamedRun)) else countable(given)


def judged_scores(qrels: Any, run: Any) -> Floats:
    """The score of every judged document, NaN where the run does not have it; both as `evaluate` takes them."""
    judged, held = _judgments(qrels), _countable(run)
    if isinstance(held, StreamedRun):
        return held.tie_groups(judged, {"float64": ()})["float64"].score
    return held.find(judged, positions(held.query_index, judged.queries))[0]


def tie_groups(
    qrels: Any,
    run: Any,
    orders: Sequence[str] = ("docid-desc",),
    *,
    scores: Floats | None = None,
) -> TieGroups:
    """The tie groups of the judged documents of a run, by counting.

    `qrels` and `run` are whatever `evaluate` takes: paths, dictionaries, data frames, rows, `Qrels` and `Run`.
    `orders` names the tie-break orders for which to count `before`. `scores` are the judged scores of a larger
    collection of which `run` is one shard; without them the run is the whole collection.

    >>> tie_groups({"q": {"a": 1, "z": 1}}, {"q": {"a": 1.0, "b": 1.0, "c": 2.0}})
    <TieGroups: 1 query, 1 judged document retrieved, 1 of them tied>
    """
    return tie_groups_as(_judgments(qrels), _countable(run), {"float64": tuple(orders)}, scores)["float64"]


def _of_rows(qrels: Qrels, run: Run | MappedRun, orders: tuple[str, ...], scores: Floats | None) -> TieGroups:
    """The tie groups of a run in memory, its scores as they are."""
    check_orders(orders)
    if isinstance(run, MappedRun) and {"given", "rank"} & set(orders):
        run = run.to_run()
    if "rank" in orders and run.rank is None:
        raise InputError(NO_RANKS)
    places = positions(run.query_index, qrels.queries)
    own, rows = run.find(qrels, places)
    owned = ~np.isnan(own)
    score = own if scores is None else scores
    probes = _Probes(qrels, places, score)
    above, equal, tied = _count(run, probes, 2 if scores is None else 1)
    low, high = run.offsets[places], run.offsets[places + 1]  # places of −1 are masked by `present`
    present = places >= 0
    length = np.where(present, high - low, 0)
    floor, floor_size = _floor(run, places, length)
    doc = probes.of_document
    known = doc >= 0
    size = np.where(known, equal[doc] if len(equal) else 0, 0)
    ahead = {order: np.where(known, _before(order, run, probes, tied, rows, owned, size), 0) for order in orders}
    return TieGroups(
        qrels=qrels,
        score=score,
        start=np.where(known, above[doc] if len(above) else 0, 0),
        size=size,
        length=length,
        present=present,
        floor=floor,
        floor_size=floor_size,
        before=ahead,
        owned=None if scores is None else owned,
        unjudged=frozenset(run.query_index.keys() - qrels.query_index.keys()),
    )


def notation(text: str) -> TieGroups:
    """Tie groups from a ranking in short: digits are labels, ``-`` is unjudged, brackets tie.

    What follows a ``|`` was judged but not retrieved. The order written is the `given` order.

    >>> notation("(20)-1|1")
    <TieGroups: 1 query, 3 judged documents retrieved, 2 of them tied>
    """
    listed, _, unretrieved = text.replace(" ", "").partition("|")
    scores, labels, group, open_ = [], [], 0, False
    for place, sign in enumerate(listed):
        if sign in "()" and (sign == "(") != open_:
            open_ = not open_
            group += 1
        elif sign.isdecimal() or sign == "-":
            scores.append(-group)
            labels.append(None if sign == "-" else int(sign))
            group += not open_
        else:
            raise InputError(
                f"'{sign}' at position {place + 1} of {text!r} is not ranking notation: digits are labels, "
                "'-' is unjudged, brackets tie, and brackets do not nest."
            )
    if open_ or not set(unretrieved) <= set("0123456789"):
        raise InputError(f"{text!r} is not ranking notation: a bracket is left open, or '|' is not followed by labels.")
    names = [f"d{place:03d}" for place in range(len(labels) + len(unretrieved))]
    judged = {name: float(label) for name, label in zip(names, labels, strict=False) if label is not None}
    judged |= {name: float(label) for name, label in zip(names[len(labels) :], unretrieved, strict=True)}
    run = Run.from_dict({"q": dict(zip(names, map(float, scores), strict=False))})
    return tie_groups(Qrels.from_dict({"q": judged}), run, ("given", "docid-desc", "docid-asc"))


def grouped(run: Run) -> tuple[Codes, Codes, Codes]:
    """All rows of a run, list by list and best first, with the start and the size of the tie group of each.

    >>> grouped(Run.from_dict({"q": {"a": 1.0, "b": 2.0, "c": 1.0}}))
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


def randomly_broken(run: Run, seed: int) -> Run:
    """The run with its ties broken strictly at random: down each list scores are n … 2, 1 and ranks 1, 2 … n.

    Documents that were not tied keep their order. Scores are whole numbers, so that a reader of float32 ties none of
    them again (up to 2**24 documents a list). Equal seeds give equal runs, in every version of NumPy.

    >>> run = Run.from_dict({"q": {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.9}})
    >>> randomly_broken(run, seed=1).to_dict()
    {'q': {'d': 4.0, 'c': 3.0, 'a': 2.0, 'b': 1.0}}
    """
    chance = np.random.PCG64(seed).random_raw(len(run))
    rows = np.lexsort((chance, -run.value, run.query))  # queries stay in place, so offsets hold
    lengths = np.diff(run.offsets)
    rank = np.arange(len(run)) - np.repeat(run.offsets[:-1], lengths) + 1
    score = (np.repeat(lengths, lengths) - rank + 1).astype(np.float64)
    return replace(run, doc=run.doc[rows], value=score, rank=rank, source=None)


# -- counting -------------------------------------------------------------------------------------------------


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


def _count(run: Run | MappedRun, probes: _Probes, least: int) -> tuple[Codes, Codes, tuple[Codes, Codes]]:
    """For each probe the rows above and equal; and the rows of groups of at least so many rows, with their probe.

    A judged document may tie with a single row of a shard that does not hold it.
    """
    if run.descending:
        low, high = run.offsets[probes.place], run.offsets[probes.place + 1]
        first = _bisect(run.value, low, high, probes.value, np.greater)
        last = _bisect(run.value, first, high, probes.value, np.greater_equal)
        equal = last - first
        many = np.flatnonzero(equal >= least)
        return first - low, equal, (_ranges(first[many], equal[many]), np.repeat(many, equal[many]))
    heads = np.flatnonzero(np.diff(probes.place, prepend=-1))
    segments, bounds = probes.place[heads], np.append(heads, len(probes.place))
    lengths = run.offsets[segments + 1] - run.offsets[segments]
    rows = _ranges(run.offsets[segments], lengths)
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


def _ranges(starts: Codes, lengths: Codes) -> Codes:
    """The integers of many ranges, one after another."""
    ends = np.cumsum(lengths)
    flat: Codes = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return flat


def _totals(flags: NDArray[np.bool_], lengths: Codes) -> Codes:
    """How many flags of each stretch are set; stretches may be empty."""
    heads = np.cumsum(lengths) - lengths
    total: Codes = np.add.reduceat(np.append(flags, False), heads, dtype=np.int64)
    return np.where(lengths > 0, total, 0)


def _floor(run: Run | MappedRun, places: Codes, length: Codes) -> tuple[Floats, Codes]:
    """The lowest score of each list and how many documents have it."""
    floor, size = np.full(len(places), np.nan), np.zeros(len(places), dtype=np.int64)
    some = np.flatnonzero(length > 0)
    low, high = run.offsets[places[some]], run.offsets[places[some] + 1]
    if run.descending:
        floor[some] = run.value[high - 1]
        size[some] = high - _bisect(run.value, low, high, floor[some], np.greater)
    elif len(some):
        rows = _ranges(low, length[some])
        heads = np.cumsum(length[some]) - length[some]
        floor[some] = np.minimum.reduceat(run.value[rows], heads)
        size[some] = np.add.reduceat(run.value[rows] == np.repeat(floor[some], length[some]), heads, dtype=np.int64)
    return floor, size


def _before(
    order: str,
    run: Run | MappedRun,
    probes: _Probes,
    tied: tuple[Codes, Codes],
    rows: Codes | None,
    owned: NDArray[np.bool_],
    size: Codes,
) -> Codes:
    """How many tied documents of the run stand before each judged document in an order, (n_judged,)."""
    if order == "docid-asc":
        return size - owned - _before("docid-desc", run, probes, tied, rows, owned, size)
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
        assert rows is not None
        docs = np.flatnonzero((in_group >= 0) & owned)
        place = np.arange(len(run))
        if order == "rank":
            assert run.rank is not None
            place = np.argsort(np.lexsort((place, run.rank)))
        keys, wanted = -place[tied_rows], -place[rows[docs]]
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


def _check_apart(qrels: Qrels, twice: Codes) -> None:
    """Raise if there are judged documents that an earlier shard had."""
    if len(twice):
        query, doc = qrels.row(int(twice[0]))
        some = counted(len(twice), "such document")
        raise InputError(
            f"Document '{doc}' of query '{query}' was retrieved in two shards ({some}). Shards must not share "
            "documents; was one given twice?"
        )
