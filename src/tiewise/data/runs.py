"""`Run`: ranked lists, a score for each retrieved document of each query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats, encode, identifiers, numbers, positions, project, to_host
from tiewise.data.documents import Documents
from tiewise.data.judgments import Qrels
from tiewise.data.neighbors import Metric, neighbor_lists
from tiewise.data.table import LABEL_NAMES, RANK_NAMES, Table, find_name, pick_column, swapped_message
from tiewise.errors import InputError
from tiewise.results.wording import count_noun

if TYPE_CHECKING:
    from typing_extensions import Self

#: Of columns, ours first; a prediction beside a probability is a class.
SCORE_NAMES = ("score", "sim", "similarity", "relevance_score", "logit", "probability", "prob", "prediction")
MAX_SUMMARY_ROWS = 2_000_000  # a larger run is shown without its tied share, which takes too long


class Trend(NamedTuple):
    """How the scores change along the lists, or along the ranks of a rank column."""

    rising: int  # lists in which no score is lower than the one before it, and one is higher
    falling: int  # lists in which no score is higher than the one before it, and one is lower
    lists: int  # lists with different scores
    steps: int  # from a score to a higher one, in the lists that rise
    by_rank: bool = False  # whether this is along the rank column

    @property
    def falls(self) -> bool:
        """Whether most lists fall, as ranked lists do."""
        return self.falling >= self.lists / 2

    @property
    def rises(self) -> bool:
        """Whether most lists rise."""
        return self.rising > self.lists / 2

    def or_along_ranks(self, find: Callable[[], Trend | None]) -> Trend:
        """This trend, or, if most lists do not fall, the one along the rank column, perhaps of some lists only."""
        by_rank = None if self.falls else find()
        if by_rank is None:
            return self
        return self._replace(by_rank=True) if self.rises and by_rank.rises else by_rank

    @classmethod
    def sum(cls, parts: Iterable[Trend]) -> Trend:
        """The trend of all lists of several parts."""
        rising, falling, lists, steps = map(sum, zip((0, 0, 0, 0), *(part[:4] for part in parts), strict=True))
        return cls(rising, falling, lists, steps)

    @classmethod
    def of(cls, value: Floats, offsets: Codes, rank: NDArray[np.int64] | None = None) -> Trend:
        """The trend of lists, along their ranks if there are any.

        >>> Trend.of(np.array([1.0, 2.0, 2.0, 3.0, 1.0]), np.array([0, 3, 5]))
        Trend(rising=1, falling=1, lists=2, steps=1, by_rank=False)
        """
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        if rank is not None and not ((rank[1:] != rank[:-1]) & (query[1:] == query[:-1])).any():
            rank = None  # a column of one number is not a rank
        if rank is not None:
            value = value[np.lexsort((rank, query))]
        inside = query[1:] == query[:-1]
        up, down = (
            np.bincount(query[1:][inside & moved], minlength=len(offsets) - 1)
            for moved in (value[1:] > value[:-1], value[1:] < value[:-1])
        )
        rising = (up > 0) & (down == 0)
        kinds = (rising, (down > 0) & (up == 0), (up > 0) | (down > 0))
        counts = (int(np.count_nonzero(lists)) for lists in kinds)
        return cls._make([*counts, int(up[rising].sum()), rank is not None])


@dataclass(frozen=True, eq=False, repr=False)
class Run(Table):
    """Ranked lists: a score for each retrieved document of each query. Equal scores are ties.

    >>> run = Run.from_dict({"q1": {"a": 2.0, "b": 1.0, "c": 1.0}})
    >>> run
    <Run: 1 query, 3 rows>
    >>> run.tied_share
    0.6666666666666666
    """

    rank: NDArray[np.int64] | None = field(default=None, kw_only=True)  # the file's rank column
    name: str | None = field(default=None, kw_only=True)  # the file's run tag
    complete_lists: NDArray[np.bool_] | None = field(default=None, kw_only=True)  # (n_queries,): not cut in a tie group
    numbered: tuple[str, ...] = field(default=(), kw_only=True)  # whose ids are row numbers: "query", "document"

    noun = "run"
    value_names = SCORE_NAMES
    nan_advice = "NaN has no rank; drop the row or score it -inf"
    allows_infinity = True

    @classmethod
    def from_rankings(cls, rankings: Mapping[Any, Iterable[Any]]) -> Self:
        """A run from ordered lists of ids, best first, without scores: the score of a document is −rank.

        A set, list or tuple inside a list is a tie group.

        >>> Run.from_rankings({"q": ["d2", {"d1", "d3"}, "d4"]}).to_dict()
        {'q': {'d2': -1.0, 'd1': -2.0, 'd3': -2.0, 'd4': -4.0}}
        """
        if not isinstance(rankings, Mapping):
            raise InputError(f"A {type(rankings).__name__} is not a set of rankings. Give {{query: [document, …]}}.")
        table = {}
        for query, ranking in rankings.items():
            if isinstance(ranking, (str, bytes, AbstractSet, Mapping)) or not isinstance(ranking, Iterable):
                raise InputError(f"query {query!r}: a {type(ranking).__name__} has no order. Give a list, best first.")
            docs: dict[Any, float] = {}
            for item in ranking:
                group = sorted(item, key=str) if isinstance(item, AbstractSet) else item
                rank = -1.0 - len(docs)
                for doc in group if isinstance(group, (list, tuple)) else [item]:
                    if doc in docs:
                        raise InputError(f"query {query!r}: document {doc!r} appears twice. Keep one.")
                    docs[doc] = rank
            table[query] = docs
        return cls.from_dict(table)

    @classmethod
    def from_neighbors(
        cls,
        scores: Any,
        indices: Any,
        *,
        metric: Metric | str | int = "ip",
        doc_ids: Any = None,
        query_ids: Any = None,
        k: int | None = None,
        counts: Any = None,
    ) -> Self:
        """A run from what an index of vectors returns: FAISS, usearch, hnswlib, cuVS, ScaNN.

        - `scores`, `indices`: (queries, neighbours), best first, of NumPy or torch, or lists of any lengths. Places
          with the index -1 are padding; `counts` says how many places of each row are filled, if the index says so
          instead (usearch). Indices may be ids: text or UUIDs, with None as padding.
        - `metric`: also as the libraries call it: "cos", "l2sq", "euclidean", faiss.METRIC_L2. "l2" and "hamming" are
          distances. "ip" and "cosine" are scores in FAISS and distances in usearch and
          hnswlib: distances rise along a row. Of a distance d the score is -d, which keeps ties as they are.
        - `doc_ids`: the id of each row of the index; by default its number. `query_ids`: one for each row.
        - `k`: keep the first k neighbours and all that tie with the k-th. With more than k columns (k + 1 are enough)
          it is known which lists do *not* end inside a tie group (`complete_lists`); `evaluate` does not warn of these.
          A list that ends with tied documents in its last column may have been cut there.

        >>> scores, indices = [[0.9, 0.5, 0.5], [0.8, 0.8, 0.1]], [[4, 7, 2], [1, 0, 5]]
        >>> run = Run.from_neighbors(scores, indices, k=2)
        >>> run.to_dict()
        {'0': {'4': 0.9, '7': 0.5, '2': 0.5}, '1': {'1': 0.8, '0': 0.8}}
        >>> run.complete_lists
        array([False,  True])
        >>> Run.from_neighbors([[0.0, 1.5, 3e38]], [[1, 0, -1]], metric="l2", doc_ids=["a", "b"]).to_dict()
        {'0': {'b': 0.0, 'a': -1.5}}
        """
        found = neighbor_lists(scores, indices, metric, counts, k)
        n = len(found.complete_lists)
        queries = _id_column(range(n) if query_ids is None else query_ids, "query")
        if len(queries) != n or len(set(queries)) < n:
            found_ids = f"{len(queries):,} query ids, {len(set(queries)):,} of them distinct"
            raise InputError(f"{found_ids}, for {count_noun(n, 'row')} of neighbours. Give one for each row.")
        if doc_ids is None:
            documents = Documents(*encode(found.document, "document"))
        elif found.document.dtype == object:
            raise InputError("The indices are ids already. Leave out doc_ids.")
        else:
            names = _id_column(doc_ids, "document")
            _check_range(found.document, found.offsets, len(names))
            documents = Documents(found.document.astype(np.int64), names, distinct=len(set(names)) == len(names))
        known: dict[str, Any] = {"complete_lists": found.complete_lists}
        known["numbered"] = ("query",) if query_ids is None else ()  # indices may be ids: usearch calls them keys
        built = cls(tuple(queries), found.offsets, documents, found.score, **known)
        built.check_unique()
        return built

    @classmethod
    def _values(cls, names: Sequence[str], fetch: Callable[[str], Any]) -> Any:
        """The scores; of ranks alone −rank."""
        rank, label = find_name(names, RANK_NAMES), find_name(names, LABEL_NAMES)
        is_scored = find_name(names, cls.value_names) is not None
        if not is_scored and label is not None:
            raise InputError(
                f"Found {swapped_message(cls, f'column {label!r}')} If these are scores, call the column score."
            )
        if rank is None or is_scored:
            return super()._values(names, fetch)
        return -numbers(fetch(rank), "rank")

    @classmethod
    def _optional_columns(cls, names: Sequence[str], fetch: Callable[[str], Any]) -> dict[str, Any]:
        name = find_name(names, RANK_NAMES)
        if name is None:
            return {}
        rank = numbers(fetch(pick_column(cls, names, [name])), "rank")
        is_whole = bool((np.abs(rank) < 2**53).all() and (rank == np.round(rank)).all())
        return {"rank": rank.astype(np.int64)} if is_whole else {}

    @property
    def score(self) -> Floats:
        """The score of each row, (n_rows,)."""
        return self.value

    @property
    def _title(self) -> str:
        name = "" if self.name is None else f" ({self.name})"
        from tiewise.results.wording import format_percent

        tied = f", {format_percent(self.tied_share)} of them tied" if len(self) <= MAX_SUMMARY_ROWS else ""
        return f"{super()._title}{tied}{name}"

    @cached_property
    def ends_tied(self) -> NDArray[np.bool_]:
        """Whether a list ends with tied documents, so that it may have been cut among more of them, (n_queries,).

        >>> Run.from_dict({"q1": {"a": 2.0, "b": 1.0, "c": 1.0}, "q2": {"a": 1.0, "b": 1.0, "c": 0.0}}).ends_tied
        array([ True, False])
        """
        ends_tied = (np.diff(self.offsets) > 0) & self._same_as_previous[self.offsets[1:] - 1]
        return ends_tied if self.complete_lists is None else ends_tied & ~self.complete_lists

    @property
    def last_start(self) -> Codes:
        """The number of documents above the last tie group of each list, (n_queries,).

        >>> Run.from_dict({"q1": {"a": 2.0, "b": 1.0, "c": 1.0}, "q2": {"a": 1.0, "b": 1.0}}).last_start
        array([1, 0])
        """
        heads = np.flatnonzero(~self._same_as_previous)  # the first row of each tie group, and the number of rows
        last = heads[np.searchsorted(heads, self.offsets[1:]) - 1]
        return np.where(np.diff(self.offsets) > 0, last - self.offsets[:-1], 0)  # an empty list has none

    def projected(self, dtype: str) -> Run:
        """The run with scores rounded to float32, float16, bfloat16 or n decimals.

        >>> run = Run.from_dict({"q": {"a": 0.123456789, "b": 0.123456788}})
        >>> run.tied_rows, run.projected("float32").tied_rows
        (0, 2)
        """
        # Rounded, the last document may tie with one that was left out.
        return replace(self, value=project(self.value, dtype), complete_lists=None)

    def negated(self) -> Run:
        """The run with the opposite scores: distances become scores.

        >>> Run.from_dict({"q": {"a": 0.0, "b": 1.5}}).negated().to_dict()
        {'q': {'a': 0.0, 'b': -1.5}}
        """
        return replace(self, value=0.0 - self.value, complete_lists=None)

    def trend(self) -> Trend:
        """How the scores change along the lists, or, if most do not fall, along the rank column."""
        return Trend.of(self.value, self.offsets).or_along_ranks(self.rank_trend)

    def rank_trend(self) -> Trend | None:
        """How the scores change along the rank column; None if there is none."""
        return None if self.rank is None else Trend.of(self.value, self.offsets, self.rank)

    @cached_property
    def self_rows(self) -> Codes:
        """The rows whose document has the id of their query, ascending."""
        n = len(self.queries)
        own = Qrels(self.queries, np.arange(n + 1), Documents.of_rows(list(self.queries)), np.zeros(n))
        rows = self.find(own, np.arange(n))[1]
        return rows[rows >= 0]

    def without_self(self) -> Run:
        """The run without documents that have the id of their query.

        >>> Run.from_dict({"q": {"q": 2.0, "a": 1.0}}).without_self().to_dict()
        {'q': {'a': 1.0}}
        """
        rows, dropped = np.delete(np.arange(len(self)), self.self_rows), self.self_rows
        # Where only the dropped document had the lowest score, the documents above it were not cut.
        lists, kept = self.query[dropped], self.take(rows)
        some = np.flatnonzero(np.diff(kept.offsets))
        lowest = np.full(len(self.queries), np.inf)
        lowest[some] = np.minimum.reduceat(kept.value, kept.offsets[some]) if len(some) else []
        complete = np.zeros(len(self.queries), bool) if self.complete_lists is None else self.complete_lists.copy()
        complete[lists[self.value[dropped] < lowest[lists]]] = True
        return replace(kept, complete_lists=complete)

    def select_queries(self, queries: Iterable[str]) -> Run:
        """The lists of some queries, in the order of this run.

        >>> Run.from_dict({"q": {"a": 2.0}, "r": {"a": 1.0}}).select_queries(["r", "s"]).to_dict()
        {'r': {'a': 1.0}}
        """
        places = np.array(sorted(self.query_index[one] for one in queries if one in self.query_index), dtype=np.int64)
        if len(places) == len(self.queries):
            return self
        kept = self.take(np.flatnonzero(np.isin(self.query, places)))
        complete = None if self.complete_lists is None else self.complete_lists[places]
        offsets = np.append(kept.offsets[places], kept.offsets[-1])
        return replace(
            kept, queries=tuple(self.queries[place] for place in places), offsets=offsets, complete_lists=complete
        )

    def find(self, qrels: Table, places: Codes) -> tuple[Floats, Codes]:
        """The score and the row of every judged document, NaN and −1 if it was not retrieved.

        `places` is the position of each query of `qrels`, which may also be a run, in this run, −1 if it is missing.
        """
        doc = self._codes_of(qrels)[qrels.doc]
        judged = np.flatnonzero((places[qrels.query] >= 0) & (doc >= 0))
        is_judged = np.zeros(len(self.docs), dtype=bool)
        is_judged[doc[judged]] = True
        candidates = np.flatnonzero(is_judged.take(self.doc, mode="clip"))  # codes are in range: "clip" skips the check
        score, rows = np.full(len(qrels), np.nan), np.full(len(qrels), -1)
        if len(candidates):
            key = self.query[candidates] * len(self.docs) + self.doc[candidates]
            target = places[qrels.query[judged]] * len(self.docs) + doc[judged]
            order = np.argsort(key)
            at = np.minimum(np.searchsorted(key[order], target), len(key) - 1)
            found = key[order][at] == target
            rows[judged[found]] = candidates[order[at[found]]]
            score[judged[found]] = self.value[rows[judged[found]]]
        return score, rows

    def judged_only(self, qrels: Qrels) -> Run:
        """The run without unjudged documents and those with a negative label (condensed lists), as trec_eval -J."""
        places = positions(self.query_index, qrels.queries)
        _, rows = self.find(qrels, places)
        return self.take(np.sort(rows[(rows >= 0) & (qrels.label >= 0)]))


def _id_column(values: Any, what: str) -> list[str]:
    values = to_host(values)
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InputError(f"The {what} ids must be a list with one id for each row, not {values!r}.")
    return identifiers(values.tolist() if hasattr(values, "tolist") else values, what)


def _check_range(index: NDArray[Any], offsets: Codes, n: int) -> None:
    """Raise if a neighbour has no id."""
    bad = np.flatnonzero(index >= n)
    if len(bad):
        row = int(np.searchsorted(offsets, bad[0], side="right")) - 1
        raise InputError(
            f"Row {row}: index {int(index[bad[0]])}, but there are {count_noun(n, 'document id')}. Give doc_ids with "
            "an id for every vector of the index, in the order in which they were added."
        )
