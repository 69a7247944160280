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

import logging
from typing import TYPE_CHECKING, Any

from tiewise import scoring
from tiewise.adapters.last_layer import check_precision
from tiewise.adapters.sentence_transformers.ends import End
from tiewise.adapters.sentence_transformers.library import base_class, package
from tiewise.adapters.sentence_transformers.reranking import Reranking
from tiewise.adapters.sentence_transformers.retrieval import Retrieval
from tiewise.adapters.sentence_transformers.views import CrossEncoderView, SentenceTransformerView
from tiewise.errors import InputError

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
    library = package()
    if level is not None and level not in scoring.LEVELS:
        raise InputError(f"Unknown level {level!r}. Use one of: {', '.join(scoring.LEVELS)}.")
    check_precision(precision)
    if isinstance(model, (CrossEncoderView, SentenceTransformerView)):
        raise InputError("This is a high-precision view already. Give the model that it was made of.")
    if isinstance(model, library.CrossEncoder):
        view = _view(model, CrossEncoderView, "HighPrecisionCrossEncoder")
        end = view.__dict__["_tiewise"] = End(model, level or "head", precision, positive)
        view.activation_fn = end.activation
    elif isinstance(model, library.SentenceTransformer):
        _check_no_logits(level, positive)
        view = _view(model, SentenceTransformerView, "HighPrecisionSentenceTransformer")
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


def _check_no_logits(level: str | None, positive: int | str | None) -> None:
    """Refuse what concerns logits, for a model that has embeddings instead."""
    if level in (None, "score") and positive is None:
        return
    given = f"level={level!r}" if positive is None else f"positive={positive!r}"
    raise InputError(
        f"{given} is for a CrossEncoder, which has logits. A SentenceTransformer compares embeddings: leave it out."
    )


def _view(model: Any, mixin: type, name: str) -> Any:
    """An object of the model's class, mixed with ours, that shares all of the model's attributes."""
    base = getattr(package(), name.removeprefix("HighPrecision"))
    cls: Any = _made(name) if type(model) is base else type(name, (mixin, type(model)), {"__module__": __name__})
    view = cls.__new__(cls)
    view.__dict__.update(model.__dict__)
    if "activation_fn" in model._modules:  # before 5.4; the view has its own, and the model's must stay
        view.__dict__["_modules"] = dict(model._modules)
    return view


#: What is made of the library's classes: our part, and the names under which the library has had its own.
_CLASSES: dict[str, tuple[type, tuple[str, ...]]] = {
    "HighPrecisionCrossEncoder": (CrossEncoderView, ("sentence_transformers.CrossEncoder",)),
    "HighPrecisionSentenceTransformer": (SentenceTransformerView, ("sentence_transformers.SentenceTransformer",)),
    "TieAwareInformationRetrievalEvaluator": (
        Retrieval,
        (
            "sentence_transformers.sentence_transformer.evaluation.InformationRetrievalEvaluator",
            "sentence_transformers.evaluation.InformationRetrievalEvaluator",
        ),
    ),
    "TieAwareRerankingEvaluator": (
        Reranking,
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
        globals()[name] = type(name, (ours, base_class(homes)), {"__module__": __name__, "__doc__": ours.__doc__})
    return globals()[name]
