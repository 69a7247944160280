"""Tie-aware numbers beside MTEB's own.

    from tiewise.adapters.mteb import tie_aware
    results = mteb.evaluate(model, tie_aware(task))

`tie_aware(task)` is a copy of a retrieval or reranking task that adds to each of MTEB's numbers the expectation, the
minimum and the maximum over all orders of the tied documents, and the bias of MTEB's own order. The results, and the
files of MTEB's cache, have ``ndcg_at_10_expected`` and so on beside ``ndcg_at_10``. MTEB's numbers do not change.

Predictions that MTEB has saved (``prediction_folder=``) do not need this adapter: `tiewise.evaluate` and ``tiewise
evaluate`` read them directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from tiewise.analysis.evaluating import evaluate
from tiewise.errors import InputError
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import parse
from tiewise.results.optional import need

__all__ = ["tie_aware"]

#: MTEB's names of measures, which `parse` knows.
FAMILIES = ("ndcg", "map", "recall", "precision", "mrr", "hit_rate")


def tie_aware(task: Any, measures: Iterable[str | Measure] | None = None) -> Any:
    """A copy of a task of MTEB that adds expectation, minimum, maximum and bias to its own scores.

    `measures` are names of MTEB or Tiewise, which become the keys of the results. The default is all that MTEB has:
    nDCG, MAP, recall, precision, MRR and hit rate at each of the task's ``k_values``. MTEB does not compute results
    that are in its cache again: give ``overwrite_strategy="always"`` or ``cache=None``.
    """
    _package()
    if not isinstance(task, import_module("mteb.abstasks").AbsTaskRetrieval):
        raise InputError(
            f"{type(task).__name__} is not a retrieval or reranking task of MTEB, so it has no tied documents. "
            "Give a task, not a list or a benchmark: [tie_aware(task) for task in tasks]."
        )
    if isinstance(task, _TieAware):
        raise InputError("This task is tie-aware already. Give the original task.")
    if measures is None:
        measures = [f"{name}_at_{k}" for name in FAMILIES for k in task.k_values]
    chosen = {str(name): parse(name) for name in measures}
    cls: Any = type(type(task).__name__, (_TieAware, type(task)), {"__module__": type(task).__module__})
    copy = cls.__new__(cls)
    copy.__dict__.update(task.__dict__, _tiewise_measures=chosen)
    return copy


class _TieAware:
    """Adds scores to those of a task; MTEB calls `task_specific_scores` of every task."""

    _tiewise_measures: Mapping[str, Measure]
    skip_first_result: bool
    _top_k: int  # the number of documents that MTEB retrieves

    def task_specific_scores(
        self, scores: Any, qrels: Any, results: Mapping[str, Mapping[str, float]], *args: Any, **kwargs: Any
    ) -> dict[str, float]:
        """The task's own additions, and ours."""
        own: dict[str, float] = super().task_specific_scores(scores, qrels, results, *args, **kwargs)  # type: ignore[misc]
        if self.skip_first_result:  # the first one after MTEB's sort
            results = {q: dict(sorted(docs.items(), key=lambda row: -row[1])[1:]) for q, docs in results.items()}
        complete = all(len(docs) < self._top_k - 1 for docs in results.values())  # MTEB may have removed one
        measures = list(self._tiewise_measures.values())
        report = evaluate(qrels, results, measures, oblivious=_tie_order(), missing="skip", complete=complete)
        return own | {
            f"{name}_{field}": getattr(report[measure], field)
            for name, measure in self._tiewise_measures.items()
            for field in ("expected", "minimum", "maximum", "bias")
        }


def _tie_order() -> str:
    """How this version of MTEB orders tied documents."""
    version = tuple(int(part) for part in str(_package().__version__).split(".")[:3] if part.isdigit())
    return "mteb" if version >= (2, 18, 19) else "mteb-2.18"


def _package() -> Any:
    return need("mteb", "The MTEB adapter", "mteb")
