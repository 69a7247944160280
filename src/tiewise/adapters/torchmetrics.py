"""A metric of torchmetrics, which Lightning takes too: expectation and range over all orders of tied documents.

    from tiewise.adapters.torchmetrics import TieAwareMetric
    metric = TieAwareMetric(["nDCG@10", "RR"])
    metric.update(scores, labels)
    metric.compute()

Scores and labels are kept as rows until `compute`, as in the retrieval metrics of torchmetrics, and gathered from all
processes. A distributed sampler repeats rows so that all processes have equally many: with numbers of queries
(`indexes`), what was given twice counts once.

torchmetrics is imported when `TieAwareMetric` is first used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tiewise.adapters.statistics import check_statistics, name_statistics
from tiewise.analysis.options import OptionNames
from tiewise.analysis.reports import Report
from tiewise.errors import InputError, warn
from tiewise.metrics.names import MeasureLike, parse_all
from tiewise.results.optional import need
from tiewise.results.wording import count_noun
from tiewise.scoring.labelled_scores import check_integers, evaluate_scores, read_arrays

if TYPE_CHECKING:  # made by __getattr__, from the library's class
    TieAwareMetric: Any

__all__ = ["TieAwareMetric"]

#: The columns of the rows that are kept, and their types.
COLUMNS = {"scores": "float64", "labels": "float64", "queries": "int64", "documents": "int64", "origins": "int64"}
#: What is known of a row: its query, its document. An origin is one of these and four times the number of the process.
NO_NUMBERS, QUERIES, DOCUMENTS = 0, 1, 2
#: Scores of a repeated document may differ so much: their last bits depend on the batch.
RTOL, ATOL = 1e-2, 1e-3


class MetricOfRows:
    """Expectation and range of measures over all orders of tied documents.

    `measures` are as in `evaluate`. `statistics` choose what is computed of each: "expected", "minimum", "maximum",
    "range", "std", "oblivious" (in the order given), "bias". Other keywords are options of `evaluate_scores` or of
    ``torchmetrics.Metric``.

    `compute` returns ``{"nDCG@10_expected": tensor, "nDCG@10_range": tensor, …}``, ready for ``self.log_dict`` of
    Lightning. Then `report` is the whole `Report`.

    >>> import torch
    >>> from tiewise.adapters.torchmetrics import TieAwareMetric
    >>> metric = TieAwareMetric("RR")
    >>> metric.update(torch.tensor([[0.5, 0.5, 0.1]]), torch.tensor([[0, 1, 0]]))
    >>> {name: float(value) for name, value in metric.compute().items()}
    {'RR_expected': 0.75, 'RR_range': 0.5}
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    report: Report | None = None  #: of the last `compute`
    device: Any

    def __init__(
        self,
        measures: MeasureLike | Iterable[MeasureLike] = ("nDCG@10",),
        *,
        statistics: str | Sequence[str] = ("expected", "range"),
        **options: Any,
    ):
        names = {name: options.pop(name) for name in [*options] if name in OptionNames.__annotations__}
        super().__init__(**options)
        self.measures, self.statistics, self._options = parse_all(measures), check_statistics(statistics), names
        evaluate_scores([[1.0]], [[1]], self.measures, **names)  # wrong measures and options are an error now
        for name in COLUMNS:
            self.add_state(name, default=[], dist_reduce_fx="cat")  # type: ignore[attr-defined]
        self._given = 0  # rows of all updates, for numbers that are never used twice

    def update(self, preds: Any, target: Any, indexes: Any = None, documents: Any = None, *, mask: Any = None) -> None:
        """Keep the rows of a batch.

        As in torchmetrics, `preds` are scores and `target` labels. They are tensors of shape (queries, documents),
        perhaps with a `mask`; then `indexes` has the number of each query. Or they are flat, and `indexes` has the
        number of the query of each row. `documents` has the number of the document of each score; in a matrix it is the
        column if not given.

        The same query and document given twice, by two updates or two processes, count once. Flat rows without
        `documents` count each, but a list of a query that two processes have alike counts once. In a matrix without
        `indexes` each row is a query of its own.
        """
        import torch

        backend, score, label, kept = read_arrays(preds, target, mask)
        if not isinstance(preds, torch.Tensor) or score.ndim not in (1, 2):
            raise InputError("A metric takes tensors: scores and labels of shape (queries, documents), or flat ones.")
        is_matrix = score.ndim == 2
        if indexes is None and (not is_matrix or documents is not None):
            what = "documents= is" if documents is not None else "Flat scores are"
            raise InputError(f"{what} for queries that have numbers. Give indexes= too.")
        place = torch.arange(score.shape[0], device=score.device) + self._given
        self._given += score.shape[0]
        kind = NO_NUMBERS if indexes is None else QUERIES if documents is None and not is_matrix else DOCUMENTS
        query = place if indexes is None else check_integers(backend, indexes, "indexes", score, score.shape[:1])
        if documents is not None:
            column = check_integers(backend, documents, "documents", score, score.shape)
        else:
            column = torch.arange(score.shape[1], device=score.device).expand(score.shape) if is_matrix else place
        query = query[:, None].expand(score.shape) if is_matrix else query
        origin = torch.full(score.shape, 4 * _process() + kind, device=score.device)
        rows = (one.reshape(-1) if kept is None else one[kept] for one in (score, label, query, column, origin))
        for (name, dtype), tensor in zip(COLUMNS.items(), rows, strict=True):
            getattr(self, name).append(tensor.to(getattr(torch, dtype)))

    def sync(self, *args: Any, **kwargs: Any) -> None:
        """Gather the rows of all processes, also from one that has none."""
        import torch

        for name, dtype in COLUMNS.items():
            if isinstance(getattr(self, name), list) and not getattr(self, name):
                getattr(self, name).append(torch.zeros(0, dtype=getattr(torch, dtype), device=self.device))
        super().sync(*args, **kwargs)  # type: ignore[misc]

    def compute(self) -> dict[str, Any]:
        """The statistics of all rows by name, as tensors."""
        import torch

        states = [getattr(self, name) for name in COLUMNS]
        columns = [torch.cat(state) if isinstance(state, list) and state else state for state in states]
        if not len(columns[0]):
            raise InputError("The metric has no rows: call update() before compute().")
        scores, labels, queries = _count_once(torch, *columns)
        self.report = evaluate_scores(scores, labels, self.measures, indexes=queries, **self._options)
        found: dict[str, float | None] = {}
        for measure in self.measures:
            found |= name_statistics(str(measure), self.report[measure], self.statistics)
        missing = float("nan")  # a statistic that does not apply
        return {
            name: torch.tensor(missing if value is None else value, dtype=torch.float64, device=scores.device)
            for name, value in found.items()
        }


def _process() -> int:
    import torch.distributed as processes

    return processes.get_rank() if processes.is_available() and processes.is_initialized() else 0


def _count_once(torch: Any, scores: Any, labels: Any, queries: Any, documents: Any, origins: Any) -> tuple[Any, ...]:
    """Scores, labels and queries of all rows, each document once."""
    process, kind = origins // 4, origins % 4
    if bool((kind != kind[0]).any()):
        raise InputError("Some updates gave other arguments than others. Give indexes= and documents= always or never.")
    several = int(process.max()) > 0
    if int(kind[0]) == NO_NUMBERS:
        if several:
            warn(
                "Queries have no numbers, so those that a distributed sampler repeats count twice. Give update() "
                "indexes=, the number of each query."
            )
        return scores, labels, queries * (int(process.max()) + 1) + process
    if int(kind[0]) == DOCUMENTS:
        kept = _find_distinct(torch, scores, labels, queries, documents)
    else:
        kept = _find_distinct_lists(torch, scores, labels, queries, process) if several else slice(None)
    return scores[kept], labels[kept], queries[kept]


def _find_distinct(torch: Any, scores: Any, labels: Any, queries: Any, documents: Any) -> Any:
    """The first row of each document of each query, in the order of rows."""
    order = documents.argsort(stable=True)
    order = order[queries[order].argsort(stable=True)]
    query, document, score, label = (one[order] for one in (queries, documents, scores, labels))
    again = torch.zeros(len(order), dtype=torch.bool, device=order.device)
    again[1:] = (query[1:] == query[:-1]) & (document[1:] == document[:-1])
    near = torch.isclose(score[1:], score[:-1], rtol=RTOL, atol=ATOL, equal_nan=True) & (label[1:] == label[:-1])
    wrong = (again[1:] & ~near).nonzero()[:, 0]
    if len(wrong):
        at = int(wrong[0])
        both = " and ".join(f"score {float(score[i]):g}, label {float(label[i]):g}" for i in (at, at + 1))
        raise InputError(
            f"Document {int(document[at])} of query {int(query[at])} was given twice with different values: {both} "
            f"({count_noun(len(wrong), 'such row')}). In a matrix, the number of a document is its column: give "
            "documents= if the columns of a query come in several updates."
        )
    return order[~again].sort().values


def _find_distinct_lists(torch: Any, scores: Any, labels: Any, queries: Any, process: Any) -> Any:
    """All rows but those of a query's list that an earlier process has alike."""
    order = process.argsort(stable=True)
    order = order[queries[order].argsort(stable=True)]
    kept = torch.ones(len(order), dtype=torch.bool, device=order.device)
    keys = torch.stack([queries[order], process[order]], 1)
    (found, sizes), start = torch.unique_consecutive(keys, dim=0, return_counts=True), 0
    seen: list[Any] = []  # of the query
    last = None
    for (query, _), size in zip(found.tolist(), sizes.tolist(), strict=True):
        seen, last = (seen if query == last else []), query
        rows = order[start : start + size]
        start += size
        own = torch.stack([scores[rows], labels[rows]])
        if size > 1 and any(one.shape == own.shape and torch.equal(one, own) for one in seen):
            kept[rows] = False
        seen.append(own)
    return kept


def __getattr__(name: str) -> Any:
    """The metric, made of our class and the library's, and stored here, so that it can be pickled."""
    if name != "TieAwareMetric":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    base = need("torchmetrics", "The metric of torchmetrics", "torchmetrics").Metric
    made = type(name, (MetricOfRows, base), {"__module__": __name__, "__doc__": MetricOfRows.__doc__})
    globals()[name] = made
    return made
