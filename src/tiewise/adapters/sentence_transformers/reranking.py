"""The evaluator of reranking, for models that score pairs and for models that embed texts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from tiewise.adapters.sentence_transformers.evaluators import TieAwareEvaluator
from tiewise.adapters.sentence_transformers.views import CrossEncoderView
from tiewise.analysis.evaluating import evaluate
from tiewise.errors import InputError
from tiewise.metrics import catalogue as c
from tiewise.metrics.estimate import Estimate

__all__ = ["RerankingEvaluator"]


class RerankingEvaluator(TieAwareEvaluator):
    """The library's CrossEncoderRerankingEvaluator, with expectation, extremes and bias beside each of its numbers.

    It takes the same arguments, and a SentenceTransformer as well as a CrossEncoder. The library's MRR depends on an
    unstable sort, and its MAP treats each tie group as one step, so both may differ from the expectation. For a
    CrossEncoder with several labels, give a `high_precision` view, which defines what to rank by.
    """

    samples: Sequence[Any]
    at_k: int
    _seen: list[tuple[Any, Any]]  # labels and scores of each query

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1, *args: Any, **kwargs: Any
    ) -> dict[str, float]:
        """Evaluates a model."""
        if not self.samples:
            raise InputError("There is no sample to evaluate.")
        self._seen = []
        return super().__call__(_Scorer(model, self._seen), output_path, epoch, steps, *args, **kwargs)

    def compute_metrics(self, y_true: Any, y_pred: Any) -> Any:
        """The library's numbers for one query; stores its labels and scores."""
        self._seen.append((np.asarray(y_true, dtype=float), np.asarray(y_pred, dtype=float)))
        return super().compute_metrics(y_true, y_pred)  # type: ignore[misc]

    def prefix_name_to_metrics(self, metrics: dict[str, Any], name: str) -> dict[str, Any]:
        """The library's numbers and ours, computed after all queries."""
        self._estimates = self._evaluate()
        return super().prefix_name_to_metrics(metrics, name)

    def _evaluate(self) -> dict[str, Estimate]:
        qrels, run = {}, {}
        for query, (labels, scores) in enumerate(self._seen):
            qrels[str(query)] = {str(doc): label for doc, label in enumerate(labels.tolist())}
            run[str(query)] = {str(doc): score for doc, score in enumerate(scores.tolist())}
        for query in range(len(self._seen), len(self.samples)):  # nothing relevant: 0, as in the library's mean
            qrels[str(query)] = run[str(query)] = {"none": 0.0}
        measures = {"map": c.AP, f"mrr@{self.at_k}": c.RR @ self.at_k, f"ndcg@{self.at_k}": c.nDCG @ self.at_k}
        report = evaluate(qrels, run, list(measures.values()), oblivious=None, complete=True)
        return {key: report[measure] for key, measure in measures.items()}


class _Scorer:
    """A model that predicts scores of pairs, from embeddings if necessary, and clears a list first.

    The list is cleared because the evaluator also evaluates the original order of the documents, before it predicts.
    """

    def __init__(self, model: Any, seen: list[Any]):
        self._model, self._seen = model, seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def predict(self, pairs: Sequence[Sequence[Any]], **kwargs: Any) -> Any:
        """The scores of pairs."""
        self._seen.clear()
        if isinstance(self._model, CrossEncoderView):
            return self._model.relevance(pairs, **kwargs)
        if hasattr(self._model, "predict"):
            return _check_one_column(self._model.predict(pairs, **kwargs))
        prompt = kwargs.pop("prompt_name", None)
        options = {name: kwargs[name] for name in ("batch_size", "show_progress_bar") if name in kwargs}
        groups = [(query, len(list(group))) for query, group in groupby(pairs, lambda pair: pair[0])]
        queries = self._encode("encode_query", [query for query, _ in groups], prompt_name=prompt, **options)
        documents = self._encode("encode_document", [document for _, document in pairs], **options)
        scores, start = [], 0
        for query, (_, size) in zip(queries, groups, strict=True):
            similarity = self._model.similarity(query[None], documents[start : start + size])[0]
            scores.append(similarity.double().cpu().numpy())
            start += size
        return np.concatenate(scores)

    def _encode(self, method: str, texts: Sequence[Any], **options: Any) -> Any:
        encode = getattr(self._model, method, self._model.encode)
        return encode(texts, convert_to_tensor=True, **options)


def _check_one_column(scores: Any) -> Any:
    """Scores, after a check that there is one for each pair."""
    if np.ndim(scores) == 1:
        return scores
    raise InputError(
        f"The model predicts an array of shape {np.shape(scores)}, and a ranking needs one number a pair. Evaluate "
        "high_precision(model): it ranks by the log-odds of the label that means relevant (positive=, of two the "
        "second)."
    )
