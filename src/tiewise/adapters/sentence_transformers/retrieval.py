"""The evaluator of retrieval: block by block, it keeps all documents that tie with the last one that counts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tiewise.adapters.sentence_transformers.evaluators import TieAwareEvaluator
from tiewise.analysis.evaluating import evaluate
from tiewise.data.runs import Run
from tiewise.errors import InputError, TiewiseWarning
from tiewise.metrics import catalogue as c
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.tables.wording import count_noun, list_examples

__all__ = ["RetrievalEvaluator"]

#: The library's names of measures, the option that holds their cutoffs, and our measure.
RETRIEVAL: tuple[tuple[str, str, Measure], ...] = (
    ("accuracy", "accuracy_at_k", c.Success),
    ("precision", "precision_recall_at_k", c.P),
    ("recall", "precision_recall_at_k", c.R),
    ("ndcg", "ndcg_at_k", c.nDCG(gains="binary")),
    ("mrr", "mrr_at_k", c.RR),
    ("map", "map_at_k", c.AP(norm="cap")),
)


class RetrievalEvaluator(TieAwareEvaluator):
    """The library's InformationRetrievalEvaluator, with expectation, extremes and bias beside each of its numbers.

    It takes the same arguments. All documents that tie with the last one that counts are kept, so the numbers are exact
    however many there are.
    """

    queries_ids: Sequence[Any]
    corpus_ids: Sequence[Any]
    relevant_docs: Mapping[Any, Any]
    score_functions: dict[str, Callable[[Any, Any], Any]]

    def __init__(self, queries: Any, corpus: Any, relevant_docs: Any, *args: Any, **kwargs: Any):
        super().__init__(queries, corpus, relevant_docs, *args, **kwargs)  # type: ignore[call-arg]
        if not self.corpus_ids:
            raise InputError("The corpus is empty: there is no document to retrieve.")
        if not self.queries_ids:
            raise InputError(
                f"No query has a relevant document. There are the queries {_list_ids(queries)}, and relevant_docs is "
                f"for {_list_ids(relevant_docs)}. Ids must be the same in both, and of the same type."
            )
        relevant = [document for query in self.queries_ids for document in self.relevant_docs[query]]
        if not set(self.corpus_ids).intersection(relevant):
            warnings.warn(
                f"None of the relevant documents is in the corpus, so every number is 0. They are "
                f"{_list_ids(relevant)}, and the corpus has {_list_ids(self.corpus_ids)}. Ids must be the same in "
                "both, and of the same type.",
                TiewiseWarning,
                stacklevel=2,
            )

    def compute_all_metrics(self, *args: Any, **kwargs: Any) -> Any:
        """The library's numbers; records the scores for ours."""
        return self._record_scores(super().compute_all_metrics, *args, **kwargs)  # type: ignore[misc]

    def compute_metrices(self, *args: Any, **kwargs: Any) -> Any:
        """The same, under its name before sentence-transformers 6."""
        return self._record_scores(super().compute_metrices, *args, **kwargs)  # type: ignore[misc]

    def _record_scores(self, compute: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        functions, depth = self.score_functions, max(measure.cutoff or 0 for measure in self._measures().values())
        recorders = {name: _RecordingFunction(function, depth) for name, function in functions.items()}
        self.score_functions = dict(recorders)
        try:
            numbers = compute(*args, **kwargs)
        finally:
            self.score_functions = functions
        self._estimates = {
            f"{name}_{key}": estimate
            for name, recorder in recorders.items()
            for key, estimate in self._evaluate(recorder).items()
        }
        return numbers

    def _measures(self) -> dict[str, Measure]:
        return {f"{name}@{k}": measure @ k for name, option, measure in RETRIEVAL for k in getattr(self, option)}

    def _evaluate(self, recorder: _RecordingFunction) -> dict[str, Estimate]:
        run = Run.from_columns(
            *recorder.rows(self.queries_ids)
        )  # by position: ids may be of any type, and 1 is not "1"
        positions = {document: str(position) for position, document in enumerate(self.corpus_ids)}
        qrels = {
            str(position): {
                positions.get(document, f"not in the corpus: {document!r}"): 1 for document in self.relevant_docs[query]
            }
            for position, query in enumerate(self.queries_ids)
        }
        measures = self._measures()
        report = evaluate(qrels, run, list(measures.values()), oblivious=None, complete=True)
        return {key: report[measure] for key, measure in measures.items()}


def _list_ids(given: Any) -> str:
    """A few ids, quoted so that 1 and '1' look different."""
    ids = [repr(one) for one in given]
    return ", ".join(ids[:3]) + (" …" if len(ids) > 3 else "") if ids else "none"


class _RecordingFunction:
    """A score function that records the best documents of each block, and all that tie with the last of them."""

    def __init__(self, function: Callable[[Any, Any], Any], depth: int):
        self._function, self._depth, self._seen = function, depth, 0
        self._parts: list[tuple[Any, Any, Any]] = []

    def __call__(self, queries: Any, documents: Any) -> Any:
        scores = self._function(queries, documents)
        floor = scores.topk(min(self._depth, scores.shape[1]), dim=1).values.amin(1, keepdim=True)
        rows, columns = (~(scores < floor)).nonzero(as_tuple=True)  # NaN too, so that it can be named
        values = scores[rows, columns].double().cpu().numpy()
        self._parts.append((rows.cpu().numpy(), columns.cpu().numpy() + self._seen, values))
        self._seen += scores.shape[1]
        return scores

    def rows(self, queries: Sequence[Any]) -> tuple[Any, Any, Any]:
        """The positions of queries and documents, and their scores."""
        rows, columns, scores = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        bad = np.unique(rows[np.isnan(scores)])
        if len(bad):
            subject = count_noun(len(bad), "query has", "queries have")
            raise InputError(f"{subject} scores that are NaN: {list_examples(queries[query] for query in bad)}.")
        return rows, columns, scores
