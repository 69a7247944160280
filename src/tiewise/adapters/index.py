"""An approximate or quantised index against the exact ranking of the same vectors.

`check` searches the index and the collection for the same queries. It says how much of the exact ranking the index
finds, how similar the two rankings are, what ties it has, and, with judgments, what that does to a measure.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tiewise._version import __version__
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
from tiewise.results.base import Result
from tiewise.results.estimates import record_table
from tiewise.results.model import Column, Hint, Paragraph, Part, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import PLAIN, NumberFormat, count_noun, format_percent
from tiewise.scoring import Collection
from tiewise.scoring.judgments import IdsLike
from tiewise.scoring.options import require_int
from tiewise.ties import tie_groups

if TYPE_CHECKING:
    import altair as alt

__all__ = ["INDEX_KEYS", "IndexCheck", "Search", "check"]

#: A search of an index: queries and k to scores (or distances) and indices, both (queries, k), best first.
Search = Callable[[Any, int], tuple[Any, Any]]

Found = TypeVar("Found")

MAX_CUTOFFS = 50  # points of the figure

#: The keys of `IndexCheck.to_dict` and of JSON.
INDEX_KEYS = {
    "version": "of Tiewise",
    "k": "how many documents were searched for",
    "queries": "the number of queries",
    "rbr": "the measure of the columns `rbr_…`, with its parameters",
    "rbo": "the measure of the columns `rbo_…`",
    "notes": "what a reader should know",
    "searches": "a row for the index and one for the exact search",
}

EXPLANATION = (
    "recall@{k}: the share of the first {k} documents of the exact search that the index found, as a mean over the "
    "orders of exact ties. by tie order: the lowest and the highest that an order can give; same: it changes no digit "
    "shown. RBR: {RBR}, the same documents weighted by their rank in the exact search; at most: 1 − φᵏ, what k "
    "documents can have. RBO: {RBO} of the two rankings, if what follows agrees as much as what was seen. tied: the "
    "share of tied rows. ms/query: all queries at once; of the index the mean of {searches}, of the exact search one."
)


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
    if not callable(search):
        name = type(search).__name__
        raise InputError(f"search is a function of queries and k, not a {name}. Give index.search, not the index.")
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
    def means(self) -> list[Estimate]:
        """The mean of each measure."""
        return [self.report[measure] for measure in self.report] if self.report else []

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

    _schema = "tiewise/index/1"

    k: int
    index: Searched
    exact: Searched
    overlap: Report  #: P of the exact ranking, where the documents that the index found are relevant
    similarities: dict[str, Similarity]  #: of RBR and RBO

    def __repr__(self) -> str:
        found = (self.recall, self.rbr.lower, self.rbo.extrapolated or self.rbo.lower)
        recall, rbr, rbo = (PLAIN.number(one.expected) for one in found)
        ceiling = PLAIN.number(self.rbr_ceiling)
        return f"<IndexCheck: recall@{self.k} {recall}, RBR {rbr} of {ceiling}, RBO {rbo}, {self._n_queries}>"

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
        cut = int(np.count_nonzero(self.index.run.ends_tied))
        lists = count_noun(len(self.index.run.queries), "list")
        note = f"{cut:,} of {lists} of the index may have been cut inside a tie group: the last scores tie."
        return (note,) if cut else ()

    def _section(self, view: View) -> Section:
        rows = [self._record(name) for name in self._searches]
        for row in rows:
            row |= {"tied_share": format_percent(row["tied_share"]), "ms_per_query": f"{row['ms_per_query']:.3g}"}
        moves = view.numbers.differ(self.recall.minimum, self.recall.maximum)
        columns: dict[Column, Sequence[str]] = {
            Column("search", shown="always"): ["search"],
            Column("recall", f"recall@{self.k}", "right"): ["recall"],
            Column("ties", "by tie order", shown="default" if moves else "wide"): ["recall_minimum", "recall_maximum"],
            Column("rbr_lower", "RBR", "right"): ["rbr_lower"],
            Column("rbr_ceiling", "at most", "right"): ["rbr_ceiling"],
            Column("rbo_extrapolated", "RBO", "right"): ["rbo_extrapolated"],
            Column("tied_share", "tied", "right"): ["tied_share"],
        }
        for measure in map(str, self.index.report or ()):
            columns[Column(f"{measure} expected", "value", "right", group=measure)] = [f"{measure} expected"]
            ends = [f"{measure} minimum", f"{measure} maximum"]
            columns[Column(f"{measure} ties", "by tie order", group=measure)] = ends
        columns |= {Column(name, name.replace("_per_", "/"), "right"): [name] for name in ("ms_per_query", "bytes")}
        parts: list[Part] = [record_table(rows, columns, view), self._sentence(view.numbers)]
        if view.explain:
            searches = count_noun(len(self.index.seconds), "search", "searches")
            names = {name: one.measure for name, one in self.similarities.items()}
            parts += ["", Paragraph(EXPLANATION.format(k=self.k, searches=searches, **names), "dim")]
        else:
            parts.append(Hint.explain())
        return Section(parts, f"{self._n_queries} · k = {self.k}", self.notes)

    def _sentence(self, numbers: NumberFormat) -> str:
        """How much the index finds, and what that does to the first measure."""
        ends = self.recall.minimum, self.recall.maximum
        ties = f", by tie order {numbers.extremes(*ends)}" if numbers.differ(*ends) else ""
        text = f"The index finds {numbers.number(self.recall.expected)} of the exact first {self.k}{ties}"
        for ours, exact in list(zip(self.index.means, self.exact.means, strict=True))[:1]:
            text += f"; {ours.measure} is {numbers.number(ours.expected)}, exact {numbers.number(exact.expected)}"
        return f"{text}."

    @property
    def _searches(self) -> dict[str, Searched]:
        return {"index": self.index, "exact": self.exact}

    def _document(self, view: View) -> dict[str, Any]:
        return {
            "version": __version__,
            "k": self.k,
            "queries": len(self.exact.run.queries),
            "rbr": self.similarities["RBR"].measure.name,
            "rbo": self.similarities["RBO"].measure.name,
            "notes": list(self.notes),
            "searches": [self._record(name) for name in self._searches],
        }

    def _records(self, view: View) -> Table:
        rows = [self._record(name) for name in self._searches]
        return Table.of_records(rows[0], rows)

    def _record(self, name: str) -> dict[str, Any]:
        one, parts = self._searches[name], ("expected", "minimum", "maximum")
        found = {"recall" if part == "expected" else f"recall_{part}": getattr(self.recall, part) for part in parts}
        found |= {f"rbr_{part}": getattr(self.rbr, part).expected for part in ("lower", "upper")}
        bounds = {part: getattr(self.rbo, part) or Estimate() for part in ("lower", "extrapolated", "upper")}
        found |= {f"rbo_{part}": one.expected for part, one in bounds.items()}
        found |= {"rbr_ceiling": self.rbr_ceiling, "rbo_residual": self.rbo.residual}
        return {
            "search": name,
            "k": self.k,
            "queries": len(one.run.queries),
            **(found if name == "index" else dict.fromkeys(found)),
            "tied_share": one.run.tied_share,
            **{f"{mean.measure} {part}": getattr(mean, part) for mean in one.means for part in parts},
            "ms_per_query": one.milliseconds,
            "ms_std": one.milliseconds_std,
            "bytes": one.bytes,
        }
