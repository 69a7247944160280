"""High-precision scores and tie-aware evaluators for sentence-transformers.

    from tiewise.adapters.sentence_transformers import high_precision, TieAwareInformationRetrievalEvaluator

`high_precision(model)` gives a view of a CrossEncoder or a SentenceTransformer: the same modules and weights, still an
instance of its class, but with scores that tie less. Your model stays as it is; to undo it, go on with your model.
sentence-transformers widens logits and embeddings to float32 by itself since 6.0. The view says so (`explain`), does it
for older versions, and goes beyond it: a CrossEncoder's logits are computed again from the hidden state (level "head").

`TieAwareInformationRetrievalEvaluator` and `TieAwareRerankingEvaluator` are the library's evaluators, their numbers
included, with four more beside each: ``…_expected``, ``…_minimum`` and ``…_maximum`` over all orders of the tied
documents, and ``…_bias``, by which the library's number differs from the expectation. They serve in training as well.

The package is imported when one of these names is first used.
"""

from __future__ import annotations

import csv
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tiewise import catalogue as c
from tiewise import scoring
from tiewise.adapters.last_layer import LastLayer, classifier_of, label_of, language_head_of
from tiewise.data import Run
from tiewise.errors import InputError, MissingExtraError, TiewiseWarning, listed
from tiewise.estimate import Estimate
from tiewise.evaluation import evaluate
from tiewise.registry import Measure

__all__ = [
    "HighPrecisionCrossEncoder",
    "HighPrecisionSentenceTransformer",
    "TieAwareInformationRetrievalEvaluator",
    "TieAwareRerankingEvaluator",
    "high_precision",
]

if TYPE_CHECKING:  # made by __getattr__, from the library's classes
    HighPrecisionCrossEncoder: Any
    HighPrecisionSentenceTransformer: Any
    TieAwareInformationRetrievalEvaluator: Any
    TieAwareRerankingEvaluator: Any

logger = logging.getLogger(__name__)


def high_precision(
    model: Any, level: str | None = None, precision: str = "float32", *, positive: int | str | None = None
) -> Any:
    """A view of a model that scores in high precision; the model itself is not changed, and the two share weights.

    For a CrossEncoder `predict`, `rank` and whatever is built on them give the scores of a `level`:

    - ``"score"``: the activation in `precision` on the model's logits, as sentence-transformers does itself since 6.0;
    - ``"logit"``: those logits, without an activation such as the sigmoid, which keeps their order and makes ties;
    - ``"head"``: logits computed again, in `precision`, from the last hidden state. This is what to rank by, and the
      default.

    An ``activation_fn`` given to `predict` is applied at every level.

    With two labels or more `predict` has a column for each, as the library has. Softmax mixes them, so it does change
    the order within a column: it is applied at every level, in `precision`. One number a pair is `relevance`, the
    log-odds of the label `positive` (its number or its name; of two the second), which does not saturate. `rank`, which
    the library has for one label only, and `TieAwareRerankingEvaluator` go by it.

    For a SentenceTransformer, `similarity` and `similarity_pairwise` are computed in `precision`, whatever the
    embeddings are in; levels and labels do not concern it. `explain()` of the view says what is computed where, and
    what the library does by itself.
    """
    package = _package()
    if level is not None and level not in scoring.LEVELS:
        raise InputError(f"Unknown level {level!r}. Use one of: {', '.join(scoring.LEVELS)}.")
    if precision not in ("float32", "float64"):
        raise InputError(f"precision is 'float32' or 'float64', not {precision!r}.")
    if isinstance(model, (_CrossEncoderView, _SentenceTransformerView)):
        raise InputError("This is a high-precision view already. Give the model that it was made of.")
    if isinstance(model, package.CrossEncoder):
        view = _view(model, _CrossEncoderView, "HighPrecisionCrossEncoder")
        end = view.__dict__["_tiewise"] = _End(model, level or "head", precision, positive)
        view.activation_fn = end.activation
    elif isinstance(model, package.SentenceTransformer):
        if level not in (None, "score") or positive is not None:
            given = f"level={level!r}" if positive is None else f"positive={positive!r}"
            raise InputError(
                f"{given} is for a CrossEncoder, which has logits. A SentenceTransformer compares embeddings: leave it "
                "out."
            )
        view = _view(model, _SentenceTransformerView, "HighPrecisionSentenceTransformer")
        view.__dict__["_tiewise_precision"] = precision
    else:
        raise InputError(
            f"{type(model).__name__} is neither a CrossEncoder nor a SentenceTransformer. For a model of transformers "
            "itself, use tiewise.adapters.transformers."
        )
    logger.info(view.explain())
    return view


def _view(model: Any, mixin: type, name: str) -> Any:
    """An object of the model's class, mixed with ours, that shares all of the model's attributes."""
    base = getattr(_package(), name.removeprefix("HighPrecision"))
    cls: Any = _made(name) if type(model) is base else type(name, (mixin, type(model)), {"__module__": __name__})
    view = cls.__new__(cls)
    view.__dict__.update(model.__dict__)
    return view


# -- models ---------------------------------------------------------------------------------------------------


class _CrossEncoderView:
    """A CrossEncoder whose last step is computed in high precision; `high_precision` makes it."""

    activation_fn: Any

    def predict(self, *args: Any, convert_to_numpy: bool = True, convert_to_tensor: bool = False, **kwargs: Any) -> Any:
        """As the CrossEncoder's own, with scores of the view's level and precision."""
        with self._raised(inside=hasattr(super(), "_inference")):
            found = super().predict(*args, convert_to_tensor=True, **kwargs)  # type: ignore[misc]
        return _converted(found, convert_to_numpy, convert_to_tensor)

    def relevance(self, pairs: Any, *, activation_fn: Any = None, **kwargs: Any) -> Any:
        """One number a pair to rank by: of several labels the log-odds of the one that means relevant.

        At the level "score" it is that label's probability. It takes what `predict` takes. Where labels stand alone
        (sigmoids), and with an activation of your own, it is the label's column of `predict`.
        """
        end: _End = self.__dict__["_tiewise"]
        if end.labels == 1:
            return self.predict(pairs, activation_fn=activation_fn, **kwargs)
        label, mixes = end.label(), end.mixes and activation_fn is None
        kwargs.pop("apply_softmax", None)  # log-odds have its order
        convert = {name: kwargs.pop(name) for name in ("convert_to_numpy", "convert_to_tensor") if name in kwargs}
        last = _nn().Identity() if mixes else activation_fn
        found = self.predict(pairs, activation_fn=last, convert_to_tensor=True, **kwargs)
        if mixes and found.numel():
            compute = scoring.score if end.level == "score" else scoring.logit
            found = compute(found, fn="softmax", positive=label, precision=end.precision)
        elif found.numel():
            found = found[..., label]
        return _converted(found, **convert)

    def rank(self, query: Any, documents: Any, *args: Any, **kwargs: Any) -> Any:
        """As the CrossEncoder's own, and with several labels by `relevance`."""
        if self.__dict__["_tiewise"].labels == 1:
            return super().rank(query, documents, *args, **kwargs)  # type: ignore[misc]
        return self._ranked(query, documents, *args, **kwargs)

    def _ranked(
        self,
        query: Any,
        documents: Sequence[Any],
        top_k: int | None = None,
        return_documents: bool = False,
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        scores = self.relevance([[query, document] for document in documents], **kwargs).tolist()
        rows: list[dict[str, Any]] = [{"corpus_id": at, "score": score} for at, score in enumerate(scores)]
        if return_documents:
            rows = [row | {"text": document} for row, document in zip(rows, documents, strict=True)]
        return sorted(rows, key=lambda row: -row["score"])[:top_k]

    def _get_model_config(self) -> Any:
        """What is saved: the model's own activation, not that of the view, unless another was set since."""
        end: _End = self.__dict__["_tiewise"]
        shown = self.activation_fn
        self.activation_fn = end.own if shown is end.activation else shown
        try:
            return super()._get_model_config()  # type: ignore[misc]
        finally:
            self.activation_fn = shown

    def _inference(self, *args: Any, **kwargs: Any) -> Any:
        """The loop over batches, which the library also runs in processes of a pool."""
        with self._raised():
            return super()._inference(*args, **kwargs)  # type: ignore[misc]

    @contextmanager
    def _raised(self, inside: bool = False) -> Iterator[None]:
        """The model's logits replaced by those of the level, unless a step further in does it."""
        if inside:
            yield
            return
        with self.__dict__["_tiewise"].raised():
            yield

    def explain(self) -> str:
        """What is computed in which precision here, and what the library does by itself."""
        end: _End = self.__dict__["_tiewise"]
        own = "computes scores in the model's own precision."
        if _widens():
            own = "itself widens the logits to float32 before the activation."
        if end.tokens is not None:
            own = "takes the difference of yes and no in the model's own precision" + (
                ", then widens." if _widens() else "."
            )
        layer = self._last_layer() if end.level == "head" else None
        if layer is not None and layer.name in (getattr(self, "keep_in_fp32_modules", None) or []):
            own = "itself computes that layer in float32 too, as this model asks (keep_in_fp32_modules)."
        last = "without the activation"
        if end.activation is end.own:
            last = f"then {_name(end.own)} is applied in {end.precision}, as it may change their order"
        here = {
            "score": f"The activation is computed in {end.precision} on the model's logits.",
            "logit": f"Scores are the model's logits, widened to {end.precision}, {last}.",
            "head": f"Scores are logits of {layer!r}, computed again in {end.precision}, {last}.",
        }[end.level]
        if end.labels > 1:
            here += f" They have a column for each of {end.labels} labels; to rank, use {end.ranked_by()}."
        same = (end.level, end.precision, end.tokens) == ("score", "float32", None) and _widens()
        done = " So this view changes nothing; level='head' would." if same else ""
        return f"{here} sentence-transformers {_package().__version__} {own}{done}"

    def _last_layer(self) -> LastLayer:
        """The last layer, under its name in the whole model."""
        layer: LastLayer = self.__dict__["_tiewise"].layer()
        named: Iterator[tuple[str, Any]] = self.named_modules()  # type: ignore[attr-defined]
        layer.name = next((name for name, module in named if module is layer.module), layer.name)
        return layer


class _SentenceTransformerView:
    """A SentenceTransformer that compares embeddings in high precision; `high_precision` makes it."""

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The similarity of all pairs, (n, m), in the view's precision."""
        precision, name = self.__dict__["_tiewise_precision"], str(self.similarity_fn_name)  # type: ignore[attr-defined]
        left, right = (_tensor(given) for given in (embeddings1, embeddings2))
        if name in ("cosine", "dot", "euclidean") and not left.is_sparse and not right.is_sparse:
            left, right = (x[None] if x.ndim == 1 else x for x in (left, right))
            return scoring.score(left, right, fn=name, precision=precision)
        return super().similarity(*_widened(left, right, precision))  # type: ignore[misc]

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The similarity of each pair, (n,), in the view's precision."""
        precision = self.__dict__["_tiewise_precision"]
        pairs = _widened(_tensor(embeddings1), _tensor(embeddings2), precision)
        return super().similarity_pairwise(*pairs)  # type: ignore[misc]

    def explain(self) -> str:
        """What is computed in which precision here, and what the library does by itself."""
        name, precision = self.similarity_fn_name, self.__dict__["_tiewise_precision"]  # type: ignore[attr-defined]
        version = _package().__version__
        here = f"The {name} similarity of embeddings is computed in {precision}, whatever they are in."
        if not _widens():
            return f"{here} sentence-transformers {version} computes it in the embeddings' own precision."
        done = " So this view changes next to nothing." if precision == "float32" else ""
        return f"{here} sentence-transformers {version} itself widens embeddings to float32.{done}"


class _End:
    """The end of a CrossEncoder: a classifier, the tokens yes and no of a language model, or a Dense module.

    The last layer is looked up whenever it is used: others replace it in place, as MTEB does.
    """

    def __init__(self, model: Any, level: str, precision: str, positive: int | str | None = None):
        self.level, self.precision, self.network = level, precision, model.model
        self.labels, self.own = int(model.num_labels), model.activation_fn
        self.activation = _nn().Identity() if level != "score" and _increases(self.own) else self.own
        self._positive = positive
        if positive is not None:
            self.label()
        self.tokens: list[int] | None = None
        self._dense: Any = None
        for module in model.children():
            if type(module).__name__ == "LogitScore":
                self.tokens = [token for token in (module.false_token_id, module.true_token_id) if token is not None]
            if type(module).__name__ == "Dense" and module.module_output_name == "scores":
                self._dense = module
        if not hasattr(self.network, "base_model"):
            raise InputError(f"The CrossEncoder runs on {type(self.network).__name__}. Load it with backend='torch'.")
        if level == "head":
            self.layer()

    def label(self) -> int:
        """The label that means relevant."""
        return label_of(self._positive, self.labels, getattr(self.network.config, "id2label", None))

    @property
    def mixes(self) -> bool:
        """Whether labels compete, so that a pair is ranked by log-odds; with sigmoids each label stands alone."""
        nn = _nn()
        return isinstance(self.own, (nn.Softmax, nn.LogSoftmax, nn.Identity))

    def ranked_by(self) -> str:
        """What a pair is ranked by where there are several labels, in words."""
        label = "the label that positive= names" if self._positive is None and self.labels > 2 else self.label()
        what = f"label {label}" if isinstance(label, int) else label
        if not self.mixes:
            return f"relevance() or rank(), the column of {what}"
        return f"relevance() or rank(), the {'probability' if self.level == 'score' else 'log-odds'} of {what}"

    def layer(self) -> LastLayer:
        """The last layer."""
        if self._dense is not None:
            return LastLayer("linear", self._dense.linear)
        return classifier_of(self.network) if self.tokens is None else language_head_of(self.network, self.tokens)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """The model gives logits of the level, in float32 or wider, while the block runs."""
        layer, precision = self.layer() if self.level == "head" else None, self.precision
        wide = getattr(import_module("torch"), precision)

        def scores(args: tuple[Any, ...], output: Any) -> Any:
            return output.to(wide) if layer is None else layer.logits(args[0], precision)

        def widened(args: tuple[Any, ...], output: Any) -> Any:
            output.logits = (output.logits if self.tokens is None else output.logits[:, -1:]).to(wide)
            return output

        def again(args: tuple[Any, ...], output: Any) -> Any:
            output.logits = tap.again(output.logits, precision)
            return output

        if self._dense is not None:
            with _changed(self._dense.linear, scores):
                yield
        elif layer is None:
            with _changed(self.network, widened):
                yield
        else:
            with layer.tapped() as tap, _changed(self.network, again):
                yield


@contextmanager
def _changed(module: Any, change: Callable[[tuple[Any, ...], Any], Any]) -> Iterator[None]:
    """The module's output changed while the block runs; by its `forward`, which the library calls past any hook."""
    forward, own = module.forward, module.__dict__.get("forward")

    @wraps(forward)
    def changed(*args: Any, **kwargs: Any) -> Any:
        return change(args, forward(*args, **kwargs))

    module.forward = changed
    try:
        yield
    finally:
        del module.forward
        if own is not None:
            module.forward = own


def _nn() -> Any:
    return import_module("torch").nn


def _increases(activation: Any) -> bool:
    """Whether an activation keeps the order of whatever numbers it is given; of one that is not known, no."""
    torch = import_module("torch")
    kinds = (torch.nn.Identity, torch.nn.Sigmoid, torch.nn.Tanh, torch.nn.LogSigmoid)
    return activation is None or type(activation) in kinds or activation in (torch.sigmoid, torch.tanh)


def _name(activation: Any) -> str:
    return getattr(activation, "__name__", type(activation).__name__)


def _converted(found: Any, convert_to_numpy: bool = True, convert_to_tensor: bool = False) -> Any:
    """A tensor of predictions as the library would return it, in the precision that it has."""
    if convert_to_tensor:
        return found
    if convert_to_numpy:
        return found.cpu().numpy()[()]
    return list(found) if found.ndim else found


def _tensor(given: Any) -> Any:
    torch = import_module("torch")
    if isinstance(given, torch.Tensor):
        return given
    if isinstance(given, (list, tuple)) and len(given) and isinstance(given[0], (torch.Tensor, np.ndarray)):
        return torch.stack([torch.as_tensor(one) for one in given])
    return torch.as_tensor(given)


def _widened(left: Any, right: Any, precision: str) -> tuple[Any, Any]:
    """Embeddings in the precision, or as they are if they are wider."""
    torch = import_module("torch")
    wide = getattr(torch, precision)
    first, second = (x.to(torch.promote_types(x.dtype, wide)) for x in (left, right))
    return first, second


# -- evaluators -----------------------------------------------------------------------------------------------

STATISTICS = ("expected", "minimum", "maximum", "bias")


class _TieAware:
    """What both evaluators share: numbers beside those of the library, a file of them, and the expectation as primary.

    It passes its numbers through `prefix_name_to_metrics` before it keeps or returns them: ours are added there.
    """

    _estimates: Mapping[str, Estimate] = {}  # by the library's key, without the evaluator's name
    _primary: str | None = None
    name: str
    csv_file: str
    write_csv: bool

    @property
    def primary_metric(self) -> str | None:
        """The key of the number by which checkpoints are chosen: the expectation."""
        return self._primary

    @primary_metric.setter
    def primary_metric(self, key: str | None) -> None:
        self._primary = key and key.removesuffix("_expected") + "_expected"

    def prefix_name_to_metrics(self, metrics: dict[str, Any], name: str) -> dict[str, Any]:
        """The library's numbers and ours, under their names."""
        added: dict[str, Any] = {}
        for key, estimate in self._estimates.items():
            if key in metrics:
                added |= _beside(key, estimate, metrics[key])
        return super().prefix_name_to_metrics(metrics | added, name)  # type: ignore[misc]

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1, *args: Any, **kwargs: Any
    ) -> dict[str, float]:
        """Evaluates a model; the library's file stays as it is, ours is written beside it."""
        metrics: dict[str, float] = super().__call__(model, output_path, epoch, steps, *args, **kwargs)  # type: ignore[misc]
        if output_path is not None and self.write_csv:
            row = {key: value for key, value in metrics.items() if key.rpartition("_")[2] in STATISTICS}
            path = Path(output_path) / self.csv_file.replace("_results", "_ties")
            _append(path, {"epoch": epoch, "steps": steps} | row)
        return metrics


def _beside(key: str, estimate: Estimate, own: Any) -> dict[str, Any]:
    """The statistics of a measure; its bias only beside a number (for model cards the library writes some as text)."""
    found = {f"{key}_{name}": getattr(estimate, name) for name in STATISTICS[:3]}
    if not isinstance(own, str) and estimate.expected is not None:
        found[f"{key}_bias"] = float(own) - estimate.expected
    return found


def _append(path: Path, row: Mapping[str, Any]) -> None:
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)


#: The library's words for measures of retrieval, the option that holds their cutoffs, and our measure.
RETRIEVAL: tuple[tuple[str, str, Measure], ...] = (
    ("accuracy", "accuracy_at_k", c.Success),
    ("precision", "precision_recall_at_k", c.P),
    ("recall", "precision_recall_at_k", c.R),
    ("ndcg", "ndcg_at_k", c.nDCG(gains="binary")),
    ("mrr", "mrr_at_k", c.RR),
    ("map", "map_at_k", c.AP(norm="cap")),
)


class _Retrieval(_TieAware):
    """The library's InformationRetrievalEvaluator, with expectation, extremes and bias beside each of its numbers.

    It takes the same arguments. Documents that tie with the last one looked at are counted to the last, so that the
    numbers are exact however many there are.
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
                f"No query has a relevant document. There are the queries {_ids(queries)}, and relevant_docs is for "
                f"{_ids(relevant_docs)}. Ids must be the same in both, and of the same type."
            )
        named = [document for query in self.queries_ids for document in self.relevant_docs[query]]
        if not set(self.corpus_ids).intersection(named):
            warnings.warn(
                f"None of the relevant documents is in the corpus, so every number is 0. They are {_ids(named)}, and "
                f"the corpus has {_ids(self.corpus_ids)}. Ids must be the same in both, and of the same type.",
                TiewiseWarning,
                stacklevel=2,
            )

    def compute_all_metrics(self, *args: Any, **kwargs: Any) -> Any:
        """The library's numbers; what they were computed from is kept for ours."""
        return self._watched(super().compute_all_metrics, *args, **kwargs)  # type: ignore[misc]

    def compute_metrices(self, *args: Any, **kwargs: Any) -> Any:
        """The same, under the name that it had before sentence-transformers 6."""
        return self._watched(super().compute_metrices, *args, **kwargs)  # type: ignore[misc]

    def _watched(self, compute: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        functions, depth = self.score_functions, max(measure.cutoff or 0 for measure in self._measures().values())
        watched = {name: _Watched(function, depth) for name, function in functions.items()}
        self.score_functions = dict(watched)
        try:
            found = compute(*args, **kwargs)
        finally:
            self.score_functions = functions
        self._estimates = {f"{name}_{key}": e for name in watched for key, e in self._of(watched[name]).items()}
        return found

    def _measures(self) -> dict[str, Measure]:
        return {f"{word}@{k}": measure @ k for word, option, measure in RETRIEVAL for k in getattr(self, option)}

    def _of(self, watched: _Watched) -> dict[str, Estimate]:
        rows, columns, scores = watched.kept(self.queries_ids)
        run = Run.from_columns(rows, columns, scores)  # by their places: ids may be of any type, and 1 is not "1"
        place = {document: str(at) for at, document in enumerate(self.corpus_ids)}
        judged = {
            str(at): {
                place.get(document, f"not in the corpus: {document!r}"): 1 for document in self.relevant_docs[query]
            }
            for at, query in enumerate(self.queries_ids)
        }
        measures = self._measures()
        report = evaluate(judged, run, list(measures.values()), oblivious=None, complete=True)
        return {key: report[measure] for key, measure in measures.items()}


def _ids(given: Any) -> str:
    """Some ids in words, so that 1 and '1' look different."""
    shown = [repr(one) for one in given]
    return ", ".join(shown[:3]) + (" …" if len(shown) > 3 else "") if shown else "none"


class _Watched:
    """A score function that keeps the best documents of each block, and all that tie with the last of them."""

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

    def kept(self, queries: Sequence[Any]) -> tuple[Any, Any, Any]:
        """The places of queries and documents, and their scores."""
        rows, columns, scores = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        bad = np.unique(rows[np.isnan(scores)])
        if len(bad):
            raise InputError(f"{len(bad)} queries have scores that are NaN: {listed(queries[at] for at in bad)}.")
        return rows, columns, scores


class _Reranking(_TieAware):
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
        if isinstance(self._model, _CrossEncoderView):
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


# -- the library ----------------------------------------------------------------------------------------------

#: What is made of the library's classes: our part, and the names under which the library has had its own.
_CLASSES: dict[str, tuple[type, tuple[str, ...]]] = {
    "HighPrecisionCrossEncoder": (_CrossEncoderView, ("sentence_transformers.CrossEncoder",)),
    "HighPrecisionSentenceTransformer": (_SentenceTransformerView, ("sentence_transformers.SentenceTransformer",)),
    "TieAwareInformationRetrievalEvaluator": (
        _Retrieval,
        (
            "sentence_transformers.sentence_transformer.evaluation.InformationRetrievalEvaluator",
            "sentence_transformers.evaluation.InformationRetrievalEvaluator",
        ),
    ),
    "TieAwareRerankingEvaluator": (
        _Reranking,
        ("sentence_transformers.cross_encoder.evaluation.CrossEncoderRerankingEvaluator",),
    ),
}


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return _made(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _made(name: str) -> Any:
    """A class of ours on one of the library's, made once; it stands in this module, so that it can be pickled."""
    if name not in globals():
        ours, homes = _CLASSES[name]
        globals()[name] = type(name, (ours, _found(homes)), {"__module__": __name__, "__doc__": ours.__doc__})
    return globals()[name]


def _found(homes: Sequence[str]) -> Any:
    _package()
    for home in homes:
        module, _, name = home.rpartition(".")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise InputError(f"sentence-transformers {_package().__version__} has no {homes[0].rpartition('.')[2]}. Update it.")


def _package() -> Any:
    try:
        return import_module("sentence_transformers")
    except ImportError:
        raise MissingExtraError("The adapter of sentence-transformers", "sentence-transformers") from None


def _widens() -> bool:
    """Whether the library widens logits and embeddings before it scores: since 6.0."""
    return int(str(_package().__version__).partition(".")[0]) >= 6
