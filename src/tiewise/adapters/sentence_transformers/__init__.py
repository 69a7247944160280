"""High-precision scores and tie-aware evaluators for sentence-transformers.

    from tiewise.adapters.sentence_transformers import high_precision, TieAwareInformationRetrievalEvaluator

`high_precision(model)` makes a view of a CrossEncoder or a SentenceTransformer: it shares the model's modules and
weights and is an instance of its class, but its scores tie less. The model itself is not changed. sentence-transformers
itself widens logits and embeddings to float32 since 6.0. The view says so (`explain`), does it for older versions, and
does more: a CrossEncoder's logits are computed again from the hidden state (level "head").

`TieAwareInformationRetrievalEvaluator` and `TieAwareRerankingEvaluator` are the library's evaluators with four more
numbers beside each of theirs: ``…_expected``, ``…_minimum`` and ``…_maximum`` over all orders of the tied documents,
and ``…_bias``, the difference between the library's number and the expectation; `statistics` chooses among them. They
can be used in training. So can those of NanoBEIR and for sparse models: `TieAwareNanoBEIREvaluator`,
`TieAwareSparseInformationRetrievalEvaluator`, `TieAwareSparseNanoBEIREvaluator`,
`TieAwareCrossEncoderNanoBEIREvaluator`.

sentence-transformers is imported when one of these names is first used.
"""

from __future__ import annotations

import logging
from typing import Any

from tiewise import scoring
from tiewise.adapters.sentence_transformers.evaluators import (
    NanoBEIREvaluator,
    RerankingEvaluator,
    RerankingNanoBEIREvaluator,
    RetrievalEvaluator,
    SparseRetrievalEvaluator,
)
from tiewise.adapters.sentence_transformers.views import CrossEncoderView, Head, SentenceTransformerView, package
from tiewise.errors import InputError
from tiewise.results.optional import installed
from tiewise.scoring.options import HIGH_PRECISIONS, check_choice

__all__ = [
    "HighPrecisionCrossEncoder",
    "HighPrecisionSentenceTransformer",
    "TieAwareCrossEncoderNanoBEIREvaluator",
    "TieAwareInformationRetrievalEvaluator",
    "TieAwareNanoBEIREvaluator",
    "TieAwareRerankingEvaluator",
    "TieAwareSparseInformationRetrievalEvaluator",
    "TieAwareSparseNanoBEIREvaluator",
    "high_precision",
]

logger = logging.getLogger(__name__)


def high_precision(
    model: Any, level: str | None = None, precision: str = "float32", *, positive: int | str | None = None
) -> Any:
    """A view of a model that scores in high precision. It shares the weights of the model, which is not changed.

    For a CrossEncoder, `predict`, `rank` and everything that uses them return the scores of a `level`:

    - ``"score"``: the activation in `precision` on the model's logits, as sentence-transformers does itself since 6.0;
    - ``"logit"``: those logits, without an activation such as the sigmoid, which keeps their order and makes ties;
    - ``"head"``: logits computed again, in `precision`, from the last hidden state. Rank by these; it is the default.

    An ``activation_fn`` given to `predict` is applied at every level.

    With several labels, `predict` has a column for each, as in the library. Softmax can change the order within a
    column, so it is applied at every level, in `precision`. `relevance` gives one number for each pair: the log-odds of
    the label `positive` (its number or its name; of two the second), which do not saturate. `rank`, which the library
    supports for one label only, and `TieAwareRerankingEvaluator` use it.

    For a SentenceTransformer, `similarity` and `similarity_pairwise` are computed in `precision`, whatever the type of
    the embeddings; it has no levels and labels. `explain()` of the view says what is computed in which precision.
    """
    library = package()
    if level is not None:
        check_choice(level, tuple(scoring.LEVELS), f"level {level!r}")
    check_choice(precision, HIGH_PRECISIONS, f"precision {precision!r}")
    if isinstance(model, (CrossEncoderView, SentenceTransformerView)):
        raise InputError("This is a high-precision view already. Give the original model.")
    if isinstance(model, library.CrossEncoder):
        view = _make_view(model, "HighPrecisionCrossEncoder")
        head = view.__dict__["_tiewise"] = Head(model, level or "head", precision, positive)
        view.activation_fn = head.activation
    elif isinstance(model, library.SentenceTransformer):
        if level not in (None, "score") or positive is not None:
            given = f"level={level!r}" if positive is None else f"positive={positive!r}"
            raise InputError(
                f"{given} is for a CrossEncoder, which has logits. A SentenceTransformer compares embeddings: leave it "
                "out."
            )
        view = _make_view(model, "HighPrecisionSentenceTransformer")
        view.__dict__["_tiewise_precision"] = precision
    elif isinstance(model, str):
        raise InputError(f"{model!r} is a name. Load the model first: CrossEncoder({model!r}), say.")
    else:
        raise InputError(
            f"{type(model).__name__} is neither a CrossEncoder nor a SentenceTransformer. For a model of transformers "
            "itself, use tiewise.adapters.transformers."
        )
    logger.info(view.explain())
    return view


def _make_view(model: Any, name: str) -> Any:
    """An object of the model's class and our mixin that shares all attributes of the model."""
    mixin, base = _CLASSES[name]
    cls: Any = type(name, (mixin, type(model)), {"__module__": __name__})
    if type(model) is getattr(package(), base):
        cls = globals().get(name) or __getattr__(name)
    view = cls.__new__(cls)
    view.__dict__.update(model.__dict__)
    if "activation_fn" in model._modules:  # before 5.4: the view must not change the model's activation
        view.__dict__["_modules"] = dict(model._modules)
    return view


#: Our classes: the mixin, and the library's class.
_CLASSES: dict[str, tuple[type, str]] = {
    "HighPrecisionCrossEncoder": (CrossEncoderView, "CrossEncoder"),
    "HighPrecisionSentenceTransformer": (SentenceTransformerView, "SentenceTransformer"),
    "TieAwareInformationRetrievalEvaluator": (RetrievalEvaluator, "InformationRetrievalEvaluator"),
    "TieAwareRerankingEvaluator": (RerankingEvaluator, "CrossEncoderRerankingEvaluator"),
    "TieAwareSparseInformationRetrievalEvaluator": (SparseRetrievalEvaluator, "SparseInformationRetrievalEvaluator"),
    "TieAwareNanoBEIREvaluator": (NanoBEIREvaluator, "NanoBEIREvaluator"),
    "TieAwareSparseNanoBEIREvaluator": (NanoBEIREvaluator, "SparseNanoBEIREvaluator"),
    "TieAwareCrossEncoderNanoBEIREvaluator": (RerankingNanoBEIREvaluator, "CrossEncoderNanoBEIREvaluator"),
}
#: Of classes that evaluate several datasets: the attribute with the class for one, and that class.
_PARTS = {
    "TieAwareNanoBEIREvaluator": ("information_retrieval_class", "TieAwareInformationRetrievalEvaluator"),
    "TieAwareSparseNanoBEIREvaluator": ("information_retrieval_class", "TieAwareSparseInformationRetrievalEvaluator"),
    "TieAwareCrossEncoderNanoBEIREvaluator": ("reranking_class", "TieAwareRerankingEvaluator"),
}
#: The library's modules that have such a class, in one version or another.
_MODULES = tuple(
    f"{folder}evaluation" for folder in (".sentence_transformer.", ".cross_encoder.", ".sparse_encoder.", ".")
)


def __getattr__(name: str) -> Any:
    """One of our classes, made of our mixin and the library's class, and stored here, so that it can be pickled."""
    if name not in _CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    mixin, base = _CLASSES[name]
    library = package()
    found = (getattr(installed(f"sentence_transformers{module}"), base, None) for module in ("", *_MODULES))
    cls = next(filter(None, found), None)
    if cls is None:
        raise InputError(f"sentence-transformers {library.__version__} has no {base}. Update it.")
    made = type(name, (mixin, cls), {"__module__": __name__, "__doc__": mixin.__doc__})
    if name in _PARTS:
        attribute, part = _PARTS[name]
        setattr(made, attribute, globals().get(part) or __getattr__(part))
    globals()[name] = made
    return made
