"""The evaluator of reranking, for models that score pairs and for those that embed texts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from tiewise.adapters.sentence_transformers.evaluators import TieAware
from tiewise.adapters.sentence_transformers.views import CrossEncoderView
from tiewise.analysis.evaluating import evaluate
from tiewise.errors import InputError
from tiewise.metrics import catalogue as c
from tiewise.metrics.estimate import Estimate

__all__ = ["Reranking"]


class Reranking(TieAware):
    """The library's CrossEncoderRerankingEvaluator, with expectation, extremes and bias beside each of its numbers.

    It takes the same arguments, and a SentenceTransformer as well as a CrossEncoder. The library's MRR follows an
    unstable sort and its MAP takes each tie group as one step, so that either may lie away from the expectation. A
    CrossEncoder of several labels is evaluated as a `high_precision` view, which says what it ranks by.
    """

    samples: Sequence[Any]
    at_k: int
    _seen: list[tuple[Any, Any]]

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1, *args: Any, **kwargs: Any
    ) -> dict[str, float]:
        """Evaluates a model."""
        if not self.samples:
            raise InputError("There is no sample to evaluate.")
        self._seen = []
        return super().__call__(_Scorer(model, self._seen), output_path, epoch, steps, *args, **kwargs)

    def compute_metrics(self, y_true: Any, y_pred: Any) -> Any:
        """The library's numbers for one query; its labels and scores are kept for ours."""
        self._seen.append((np.asarray(y_true, dtype=float), np.asarray(y_pred, dtype=float)))
        return super().compute_metrics(y_true, y_pred)  # type: ignore[misc]

    def prefix_name_to_metrics(self, metrics: dict[str, Any], name: str) -> dict[str, Any]:
        """The library's numbers and ours, which are computed now that all queries have been seen."""
        self._estimates = self._computed()
        return super().prefix_name_to_metrics(metrics, name)

    def _computed(self) -> dict[str, Estimate]:
        judged, found = {}, {}
        for at, (labels, scores) in enumerate(self._seen):
            judged[f"{at}"] = {f"{place}": label for place, label in enumerate(labels.tolist())}
            found[f"{at}"] = {f"{place}": score for place, score in enumerate(scores.tolist())}
        for at in range(len(self._seen), len(self.samples)):  # nothing relevant to rank: 0, as in the library's mean
            judged[f"{at}"] = found[f"{at}"] = {"none": 0.0}
        measures = {"map": c.AP, f"mrr@{self.at_k}": c.RR @ self.at_k, f"ndcg@{self.at_k}": c.nDCG @ self.at_k}
        report = evaluate(judged, found, list(measures.values()), oblivious=None, complete=True)
        return {key: report[measure] for key, measure in measures.items()}


class _Scorer:
    """A model that predicts scores of pairs, from embeddings if need be, and clears a list before it does.

    The evaluator also computes numbers of the order that documents were given in, before it asks for scores.
    """

    def __init__(self, model: Any, seen: list[Any]):
        self._model, self._seen = model, seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def predict(self, pairs: Sequence[Sequence[Any]], **kwargs: Any) -> Any:
        """Scores of pairs, one after another."""
        self._seen.clear()
        if isinstance(self._model, CrossEncoderView):
            return self._model.relevance(pairs, **kwargs)
        if hasattr(self._model, "predict"):
            return _one_each(self._model.predict(pairs, **kwargs))
        prompt = kwargs.pop("prompt_name", None)
        options = {name: kwargs[name] for name in ("batch_size", "show_progress_bar") if name in kwargs}
        groups = [(query, [document for _, document in some]) for query, some in groupby(pairs, lambda pair: pair[0])]
        queries = self._embedded("encode_query", [query for query, _ in groups], prompt_name=prompt, **options)
        documents = self._embedded("encode_document", [document for _, document in pairs], **options)
        scores, at = [], 0
        for query, (_, some) in zip(queries, groups, strict=True):
            found = self._model.similarity(query[None], documents[at : at + len(some)])[0]
            scores.append(found.double().cpu().numpy())
            at += len(some)
        return np.concatenate(scores)

    def _embedded(self, method: str, texts: Sequence[Any], **options: Any) -> Any:
        encode = getattr(self._model, method, self._model.encode)
        return encode(texts, convert_to_tensor=True, **options)


def _one_each(scores: Any) -> Any:
    """Scores, one a pair."""
    if np.ndim(scores) == 1:
        return scores
    raise InputError(
        f"The model predicts an array of shape {np.shape(scores)}, and a ranking needs one number a pair. Evaluate "
        "high_precision(model): it ranks by the log-odds of the label that means relevant (positive=, of two the "
        "second)."
    )
