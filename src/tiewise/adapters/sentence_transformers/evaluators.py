"""The tie-aware evaluators: those of the library, with statistics over the orders of ties beside their numbers."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from tiewise.adapters.sentence_transformers.views import CrossEncoderView, package
from tiewise.adapters.statistics import check_statistics, name_statistics
from tiewise.analysis.evaluating import evaluate
from tiewise.data.runs import Run
from tiewise.errors import InputError, warn
from tiewise.metrics import catalogue as c
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.results.wording import count_noun, list_examples

#: What is added to each of the library's numbers by default, and what can be.
STATISTICS = ("expected", "minimum", "maximum", "bias")
KNOWN_STATISTICS = (*STATISTICS, "range")


class TieAwareEvaluator:
    """Adds statistics to the library's numbers, writes them to a file, and makes the expectation the primary metric.

    The library calls `prefix_name_to_metrics` before it stores or returns its numbers: ours are added there.
    `statistics` choose what is added: "expected", which chooses checkpoints, and of "minimum", "maximum", "range" and
    "bias" what should be logged.
    """

    _estimates: Mapping[str, Estimate] = {}  # by the library's key without the evaluator's name
    _primary: str | None = None
    name: str
    csv_file: str
    write_csv: bool

    def __init__(self, *args: Any, statistics: str | Sequence[str] = STATISTICS, **kwargs: Any):
        self.statistics = check_statistics(statistics, KNOWN_STATISTICS)
        if "expected" not in self.statistics:
            raise InputError("statistics must have 'expected': it is the number that chooses checkpoints.")
        super().__init__(*args, **kwargs)

    @property
    def primary_metric(self) -> str | None:
        """The key of the number that chooses checkpoints: an expectation."""
        return self._primary

    @primary_metric.setter
    def primary_metric(self, key: str | None) -> None:
        self._primary = key and key.removesuffix("_expected") + "_expected"

    def prefix_name_to_metrics(self, metrics: dict[str, Any], name: str) -> dict[str, Any]:
        """The library's numbers and ours by name."""
        added: dict[str, Any] = {}
        for key in (key for key in self._estimates if key in metrics):
            estimate, own = self._estimates[key], metrics[key]
            added |= name_statistics(key, estimate, [name for name in self.statistics if name != "bias"])
            if "bias" in self.statistics and not isinstance(own, str) and estimate.expected is not None:
                added[f"{key}_bias"] = float(own) - estimate.expected  # model cards hold texts
        return super().prefix_name_to_metrics(metrics | added, name)  # type: ignore[misc]

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1, *args: Any, **kwargs: Any
    ) -> dict[str, float]:
        """Evaluates a model. Our numbers go to a file of their own beside the library's."""
        metrics: dict[str, float] = super().__call__(model, output_path, epoch, steps, *args, **kwargs)  # type: ignore[misc]
        if output_path is not None and self.write_csv:
            own = {key: value for key, value in metrics.items() if key.startswith(self.name)}  # not of parts
            row = {key: value for key, value in own.items() if key.rpartition("_")[2] in self.statistics}
            row = {"epoch": epoch, "steps": steps} | row
            path = Path(output_path) / self.csv_file.replace("_results", "_ties")
            new = not path.exists()
            with path.open("a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(row))
                if new:
                    writer.writeheader()
                writer.writerow(row)
        return metrics


# -- retrieval ------------------------------------------------------------------------------------------------

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
    truncate_dim: int | None
    batch_size: int
    show_progress_bar: bool

    def __init__(self, queries: Any, corpus: Any, relevant_docs: Any, *args: Any, **kwargs: Any):
        super().__init__(queries, corpus, relevant_docs, *args, **kwargs)
        if not self.corpus_ids:
            raise InputError("The corpus is empty: there is no document to retrieve.")
        if not self.queries_ids:
            raise InputError(
                f"No query has a relevant document. There are the queries {_list_ids(queries)}, and relevant_docs is "
                f"for {_list_ids(relevant_docs)}. Ids must be the same in both, and of the same type."
            )
        relevant = [document for query in self.queries_ids for document in self.relevant_docs[query]]
        if not set(self.corpus_ids).intersection(relevant):
            warn(
                f"None of the relevant documents is in the corpus, so every number is 0. They are "
                f"{_list_ids(relevant)}, and the corpus has {_list_ids(self.corpus_ids)}. Ids must be the same in "
                "both, and of the same type."
            )

    def embed_inputs(self, model: Any, sentences: Any, encode_fn_name: str | None = None, **kwargs: Any) -> Any:
        """The library's embeddings; those of a SparseEncoder without `truncate_dim`, which it does not take."""
        if not isinstance(model, package().SparseEncoder) or self.truncate_dim is not None:
            return super().embed_inputs(model, sentences, encode_fn_name, **kwargs)  # type: ignore[misc]
        encode = getattr(model, f"encode_{encode_fn_name}") if encode_fn_name else model.encode
        options = {"batch_size": self.batch_size, "show_progress_bar": self.show_progress_bar}
        return encode(sentences, convert_to_tensor=True, **options, **kwargs)

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
        # Ids are positions here: those of the library may be of any type, and 1 is not "1".
        run = Run.from_columns(*recorder.rows(self.queries_ids))
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


class SparseRetrievalEvaluator(RetrievalEvaluator):
    """The library's SparseInformationRetrievalEvaluator, with ours beside each of its numbers, as for dense models.

    It takes the same arguments. The numbers about sparsity are the library's.
    """

    def embed_inputs(self, *args: Any, **kwargs: Any) -> Any:
        """The library's embeddings, of which it keeps the sparsity."""
        return super(RetrievalEvaluator, self).embed_inputs(*args, **kwargs)  # type: ignore[misc]


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
        lowest = scores.topk(min(self._depth, scores.shape[1]), dim=1).values.amin(1, keepdim=True)
        rows, columns = (~(scores < lowest)).nonzero(as_tuple=True)  # NaN too, so that it can be named
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


# -- reranking ------------------------------------------------------------------------------------------------


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
        for query, (_, size) in enumerate(groups):
            similarity = self._model.similarity(_rows(queries, query, 1), _rows(documents, start, size))[0]
            scores.append(similarity.double().cpu().numpy())
            start += size
        return np.concatenate(scores)

    def _encode(self, method: str, texts: Sequence[Any], **options: Any) -> Any:
        encode = getattr(self._model, method, self._model.encode)
        return encode(texts, convert_to_tensor=True, **options)


def _rows(embeddings: Any, start: int, count: int) -> Any:
    """Some rows of a tensor, which may be sparse."""
    return embeddings.narrow_copy(0, start, count) if embeddings.is_sparse else embeddings[start : start + count]


def _check_one_column(scores: Any) -> Any:
    """Scores, after a check that there is one for each pair."""
    if np.ndim(scores) == 1:
        return scores
    raise InputError(
        f"The model predicts an array of shape {np.shape(scores)}, and a ranking needs one number a pair. Evaluate "
        "high_precision(model): it ranks by the log-odds of the label that means relevant (positive=, of two the "
        "second)."
    )


# -- several datasets ---------------------------------------------------------------------------------------------


class NanoBEIREvaluator(TieAwareEvaluator):
    """The library's NanoBEIREvaluator, with expectation, extremes and bias beside each of its numbers.

    It takes the same arguments and loads the same data. The mean over the datasets is taken of ours as of the
    library's: the mean of the minima is the lowest mean, because ties of one dataset do not depend on another's.
    """

    def _load_dataset(self, dataset_name: str, **kwargs: Any) -> Any:
        """The evaluator of a dataset, of the class `information_retrieval_class`."""
        return super()._load_dataset(dataset_name, statistics=self.statistics, **kwargs)  # type: ignore[misc]


class RerankingNanoBEIREvaluator(TieAwareEvaluator):
    """The library's CrossEncoderNanoBEIREvaluator, with expectation, extremes and bias beside each of its numbers.

    It takes the same arguments and loads the same data.
    """

    reranking_class: type[RerankingEvaluator]

    def _load_dataset(self, dataset_name: str, **kwargs: Any) -> Any:
        """The evaluator of a dataset: ours, with the samples of the library's."""
        usual = super()._load_dataset(dataset_name, **kwargs)  # type: ignore[misc]
        return self.reranking_class(samples=usual.samples, name=usual.name, statistics=self.statistics, **kwargs)
