"""An approximate or quantised index against the exact ranking of the same vectors.

`check` searches the index and the collection for the same queries. It says how much of the exact ranking the index
finds, how similar the two rankings are, what ties it has, and, with judgments, what that does to a measure.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tiewise.analysis.evaluating import evaluate
from tiewise.analysis.reports import Report
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import CutWarning, InputError
from tiewise.io import as_qrels
from tiewise.io.types import QrelsLike
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.names import MeasureLike
from tiewise.rankings.run_similarity import Similarity, similarity
from tiewise.scoring import Collection
from tiewise.scoring.ids import IdsLike
from tiewise.scoring.options import require_int
from tiewise.tables.model import Cell, Section, Table
from tiewise.tables.results import Result
from tiewise.tables.wording import PLAIN, count_noun, format_percent
from tiewise.ties import tie_groups

if TYPE_CHECKING:
    import altair as alt

__all__ = ["IndexCheck", "Search", "check"]

#: A search of an index: queries and k to scores (or distances) and indices, both (queries, k), best first.
Search = Callable[[Any, int], tuple[Any, Any]]

Found = TypeVar("Found")

MAX_CUTOFFS = 50  # points of the figure


def check(
    search: Search,
    collection: Collection,
    queries: Any,
    k: int,
    *,
    phi: float = 0.9,
    qrels: QrelsLike | None = None,
    measures: MeasureLike | Iterable[MeasureLike] = "nDCG@10",
    query_ids: IdsLike = None,
    drop_self: bool = False,
    index_bytes: int | None = None,
    repeats: int = 3,
) -> IndexCheck:
    """How well an index finds what an exact search of a collection finds.

    - `search(queries, k)` returns scores or distances and indices, as `Run.from_neighbors` takes them. Index i is row i
      of the collection.
    - `phi`: the persistence of RBR and RBO. `query_ids`: one for each query; by default its number.
    - `qrels`: judgments, for `measures` of both rankings: that of the index, and the exact one of the whole collection.
      With `drop_self` they leave out documents with the id of their query.
    - `index_bytes`: the size of the index, which only the index knows. `repeats`: how often its search is timed.

    >>> import numpy as np
    >>> from tiewise.scoring import Collection
    >>> docs = np.random.default_rng(0).normal(size=(200, 16)).astype(np.float32)
    >>> def search(queries, k):  # an index that sees every second document
    ...     scores = queries @ docs[::2].T
    ...     best = np.argsort(-scores, axis=1)[:, :k]
    ...     return np.take_along_axis(scores, best, 1), 2 * best
    >>> found = check(search, Collection(docs), docs[:50], 10)
    >>> 0.4 < found.recall.expected < 0.6
    True
    """
    k = min(require_int(k, "k"), len(collection))
    judged, exact_report = None if qrels is None else as_qrels(qrels), None
    if judged is not None:  # first, because it checks ids
        ties = collection.tie_groups(queries, judged, query_ids=query_ids, orders=(), drop_self=drop_self)
        exact_report = evaluate(None, ties, measures, oblivious=None)
    exact_seconds, exact = _timed(lambda: collection.search(queries, k, query_ids=query_ids))
    times, answer = [], None
    for _ in range(require_int(repeats, "repeats")):
        seconds, answer = _timed(lambda: search(queries, k))
        times.append(seconds)
    run = _as_run(answer, collection, exact.queries)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutWarning)  # a note says it
        report = None if judged is None else evaluate(judged, run, measures, oblivious=None, drop_self=drop_self)
    pair = {"index": run, "exact": exact}
    return IndexCheck(
        k=k,
        index=Searched(run, report, times, index_bytes),
        exact=Searched(exact, exact_report, [exact_seconds], collection.nbytes),
        overlap=_overlap(run, exact, k),
        similarities={name: similarity(pair, f"{name}(phi={phi})", complete=True) for name in ("RBR", "RBO")},
    )


def _timed(compute: Callable[[], Found]) -> tuple[float, Found]:
    begin = perf_counter()
    found = compute()
    return perf_counter() - begin, found


def _as_run(answer: Any, collection: Collection, queries: tuple[str, ...]) -> Run:
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InputError(f"search(queries, k) returned a {type(answer).__name__}. It must return (scores, indices).")
    ids = collection.doc_ids
    run = Run.from_neighbors(*answer, query_ids=queries, doc_ids=None if ids.are_row_numbers else ids.all)
    unknown = [] if not ids.are_row_numbers else [doc for doc in run.docs if int(doc) >= len(collection)]
    if unknown:
        raise InputError(f"search returned index {unknown[0]}, but the collection has {len(collection):,} documents.")
    return run


def _overlap(run: Run, exact: Run, k: int) -> Report:
    """P of the exact ranking, where the documents that the index found are the relevant ones."""
    found = Qrels(run.queries, run.offsets, run.documents, np.ones(len(run)))
    ties = replace(tie_groups(found, exact, orders=()), complete=True)
    return evaluate(None, ties, f"P@{k}", oblivious=None)


@dataclass(frozen=True, eq=False)
class Searched:
    """One of the two searches."""

    run: Run  #: its lists
    report: Report | None  #: its measures, with judgments
    seconds: list[float]  #: of each search for all queries
    bytes: int | None

    @property
    def milliseconds(self) -> float:
        """The mean time of a query."""
        return 1000 * float(np.mean(self.seconds)) / max(len(self.run.queries), 1)

    @property
    def milliseconds_std(self) -> float | None:
        """The standard deviation over searches; None of one."""
        return 1000 * float(np.std(self.seconds)) / max(len(self.run.queries), 1) if len(self.seconds) > 1 else None


@dataclass(frozen=True, eq=False, repr=False)
class IndexCheck(Result):
    """An index beside the exact search: `recall`, `rbr`, `rbo`, and both searches, `index` and `exact`."""

    k: int
    index: Searched
    exact: Searched
    overlap: Report  #: P of the exact ranking, where the documents that the index found are relevant
    similarities: dict[str, Similarity]  #: of RBR and RBO

    def __repr__(self) -> str:
        found = [f"{name} {cell.text} {cell.detail}".rstrip() for name, cell in self._agreement().items()]
        return f"<IndexCheck: {', '.join(found)}, {self._n_queries}>"

    @property
    def _n_queries(self) -> str:
        return count_noun(len(self.exact.run.queries), "query", "queries")

    @property
    def recall(self) -> Estimate:
        """recall@k: the share of the exact first k documents that the index found, over the orders of exact ties.

        Where more documents tie with the k-th than fit, the highest value counts every one of them as right.
        """
        return self._named(self.overlap[f"P@{self.k}"])

    def _named(self, estimate: Estimate) -> Estimate:
        return replace(estimate, measure=f"recall@{self.k}")

    @property
    def rbr(self) -> Bounds:
        """RBR of what the index found, against the exact ranking. Its lower bound is at most `rbr_ceiling`."""
        return self.similarities["RBR"].pair("index", "exact")

    @property
    def rbr_ceiling(self) -> float:
        """1 − φᵏ: the lower bound of RBR for the first k documents of the exact ranking."""
        return 1 - self.similarities["RBR"].measure.weight_after(self.k)

    @property
    def rbo(self) -> Bounds:
        """RBO of the two rankings."""
        return self.similarities["RBO"].pair("index", "exact")

    def per_query(self) -> dict[str, Estimate]:
        """recall@k of each query."""
        return {query: self._named(one) for query, one in self.overlap.per_query(f"P@{self.k}").items()}

    def _agreement(self) -> dict[str, Cell]:
        """recall@k, RBR beside its ceiling, and RBO, extrapolated, beside its residual."""
        rbo = self.rbo.extrapolated or self.rbo.lower
        return {
            f"recall@{self.k}": _estimate_cell(self.recall),
            "RBR": Cell(PLAIN.number(self.rbr.lower.expected), f"of {PLAIN.number(self.rbr_ceiling)}"),
            "RBO": Cell(PLAIN.number(rbo.expected), f"residual {PLAIN.number(self.rbo.residual)}"),
        }

    def plot(self, *, title: str = "") -> alt.LayerChart:
        """The share of the exact first r documents that the index found, for r up to k."""
        from tiewise.figures import curve

        cutoffs = np.unique(np.linspace(1, self.k, min(self.k, MAX_CUTOFFS)).astype(int)).tolist()
        heading = title or "What the index finds of the exact ranking"
        chart: Any = curve(self.overlap, "P", cutoffs, oblivious=False, title=heading)
        for layer in chart.layer:
            layer.encoding.x.title, layer.encoding.y.title = "first documents of the exact ranking", "share found"
        return chart

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        searches = count_noun(len(self.index.seconds), "search", "searches")
        notes = [
            f"recall@{self.k}: of the first {self.k} documents of the exact search, over the orders of their ties. "
            f"{self.similarities['RBR'].measure}: of what the first {self.k} documents can give, 1 − φᵏ. "
            f"{self.similarities['RBO'].measure}: extrapolated; residual: what is left open behind the lists. "
            f"ms/query: all queries at once; of the index the mean of {searches}, of the exact search one."
        ]
        cut = int(np.count_nonzero(self.index.run.may_be_truncated))
        if cut:
            lists = count_noun(len(self.index.run.queries), "list")
            notes.append(f"{cut:,} of {lists} of the index may have been cut inside a tie group: the last scores tie.")
        return tuple(notes)

    def _section(self) -> Section:
        both = {"index": self.index, "exact": self.exact}
        columns: dict[str, list[object]] = {
            "search": list(both),
            **{name: [cell, Cell("")] for name, cell in self._agreement().items()},
            "tied": [Cell(format_percent(one.run.tied_share)) for one in both.values()],
        }
        for measure in self.index.report or ():
            columns[str(measure)] = [
                _estimate_cell(one.report[measure]) for one in both.values() if one.report is not None
            ]
        columns["ms/query"] = [_time_cell(one) for one in both.values()]
        columns["bytes"] = [Cell("" if one.bytes is None else f"{one.bytes:,}") for one in both.values()]
        return Section([Table.of_columns(columns)], f"{self._n_queries}, k = {self.k}", self.notes)

    def _records(self) -> Table:
        rows = [self._record(name) for name in ("index", "exact")]
        return Table.of_records(rows[0], rows)

    def _record(self, name: str) -> dict[str, object]:
        one: Searched = getattr(self, name)
        is_index = name == "index"
        record: dict[str, object] = {"search": name, "k": self.k, "queries": len(one.run.queries)}
        for part in ("expected", "minimum", "maximum"):
            record["recall" if part == "expected" else f"recall_{part}"] = (
                getattr(self.recall, part) if is_index else None
            )
        for measure, bounds in (("rbr", self.rbr), ("rbo", self.rbo)):
            for part in ("lower", "extrapolated", "upper"):
                estimate: Estimate | None = getattr(bounds, part)
                record[f"{measure}_{part}"] = estimate.expected if is_index and estimate is not None else None
        record["rbr_ceiling"] = self.rbr_ceiling if is_index else None
        record["rbo_residual"] = self.rbo.residual if is_index else None
        record["tied_share"] = one.run.tied_share
        for measured in one.report or ():
            for part in ("expected", "minimum", "maximum"):
                record[f"{measured} {part}"] = getattr(one.report[measured], part) if one.report else None
        return record | {"ms_per_query": one.milliseconds, "ms_std": one.milliseconds_std, "bytes": one.bytes}


def _estimate_cell(estimate: Estimate) -> Cell:
    ends = PLAIN.interval(estimate.minimum, estimate.maximum) if estimate.range else ""
    return Cell(PLAIN.number(estimate.expected), ends)


def _time_cell(one: Searched) -> Cell:
    std = one.milliseconds_std
    return Cell(f"{one.milliseconds:.3g}", "" if std is None else f"± {std:.2g}")
