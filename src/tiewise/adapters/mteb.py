"""Tie-aware numbers beside MTEB's own.

    from tiewise.adapters.mteb import tie_aware
    results = mteb.evaluate(model, tie_aware(task))

`tie_aware(task)` is a copy of a retrieval or reranking task that adds to each of MTEB's numbers the expectation, the
minimum and the maximum over all orders of the tied documents, and the bias of MTEB's own order: ``ndcg_at_10_expected``
and so on stand in the results, and in the files of its cache, beside ``ndcg_at_10``. MTEB's numbers stay as they are.

Predictions that MTEB has saved (``prediction_folder=``) need none of this: `tiewise.evaluate` and ``tiewise evaluate``
read them as they are, with the package or without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from tiewise.analysis.evaluating import evaluate
from tiewise.errors import InputError, MissingExtraError
from tiewise.metrics import catalogue as c
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import parse

__all__ = ["tie_aware"]

#: MTEB's words for measures.
FAMILIES: dict[str, Measure] = {
    "ndcg": c.nDCG,
    "map": c.AP,
    "recall": c.R,
    "precision": c.P,
    "mrr": c.RR,
    "hit_rate": c.Success,
}


def tie_aware(task: Any, measures: Iterable[str | Measure] | None = None) -> Any:
    """A copy of a task of MTEB that gives expectation, minimum, maximum and bias beside its own scores.

    `measures` are names, MTEB's or ours, that stand in the results as they are given; without them, all that MTEB has:
    nDCG, MAP, recall, precision, MRR and hit rate at each of the task's ``k_values``. Results that MTEB finds in its
    cache are taken from there as they are: give ``overwrite_strategy="always"`` or ``cache=None``.
    """
    _package()
    if not isinstance(task, import_module("mteb.abstasks").AbsTaskRetrieval):
        raise InputError(
            f"{type(task).__name__} is not a retrieval or reranking task of MTEB, so it has no tied documents. "
            "Give a task, not a list or a benchmark: [tie_aware(task) for task in tasks]."
        )
    if isinstance(task, _TieAware):
        raise InputError("This task is tie-aware already. Give the task that it was made of.")
    chosen = _all(task.k_values) if measures is None else {str(name): parse(name) for name in measures}
    cls: Any = type(type(task).__name__, (_TieAware, type(task)), {"__module__": type(task).__module__})
    ours = cls.__new__(cls)
    ours.__dict__.update(task.__dict__, _tiewise_measures=chosen)
    return ours


class _TieAware:
    """A task that adds to its scores; MTEB asks every task for scores of its own."""

    _tiewise_measures: Mapping[str, Measure]
    skip_first_result: bool
    _top_k: int  # how many documents MTEB asks for

    def task_specific_scores(
        self, scores: Any, qrels: Any, results: Mapping[str, Mapping[str, float]], *args: Any, **kwargs: Any
    ) -> dict[str, float]:
        """The task's own additions, and ours."""
        found: dict[str, float] = super().task_specific_scores(scores, qrels, results, *args, **kwargs)  # type: ignore[misc]
        if self.skip_first_result:  # the first of the list, as MTEB takes it
            results = {q: dict(sorted(docs.items(), key=lambda row: -row[1])[1:]) for q, docs in results.items()}
        whole = all(len(docs) < self._top_k - 1 for docs in results.values())  # MTEB may have taken one out
        measures = list(self._tiewise_measures.values())
        report = evaluate(qrels, results, measures, oblivious=_order(), missing="skip", complete=whole)
        ours: dict[str, float] = {}
        for name, measure in self._tiewise_measures.items():
            estimate = report[measure]
            for field in ("expected", "minimum", "maximum", "bias"):
                ours[f"{name}_{field}"] = getattr(estimate, field)
        return found | ours


def _all(cutoffs: Iterable[int]) -> dict[str, Measure]:
    return {f"{word}_at_{k}": measure @ k for word, measure in FAMILIES.items() for k in cutoffs}


def _order() -> str:
    """How this version of MTEB orders tied documents."""
    version = tuple(int(part) for part in str(_package().__version__).split(".")[:3] if part.isdigit())
    return "mteb" if version >= (2, 18, 19) else "mteb-2.18"


def _package() -> Any:
    try:
        return import_module("mteb")
    except ImportError:
        raise MissingExtraError("The MTEB adapter", "mteb") from None
