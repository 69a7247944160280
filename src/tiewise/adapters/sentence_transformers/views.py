"""Views of models: objects of the library's classes, on a model's own weights, whose scores tie less.

A class here is only our part of a view. It is mixed with the library's class, of which `super` is the model's own way.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tiewise import scoring
from tiewise.adapters.last_layer import LastLayer
from tiewise.adapters.replicas import without_autocast, without_hooks
from tiewise.adapters.sentence_transformers.ends import End
from tiewise.adapters.sentence_transformers.library import package, widens

__all__ = ["CrossEncoderView", "SentenceTransformerView"]


class CrossEncoderView:
    """A CrossEncoder whose last step is computed in high precision; `high_precision` makes it."""

    activation_fn: Any

    def predict(self, *args: Any, convert_to_numpy: bool = True, convert_to_tensor: bool = False, **kwargs: Any) -> Any:
        """As the CrossEncoder's own, with scores of the view's level and precision."""
        import torch

        end: End = self.__dict__["_tiewise"]
        runner: Any = self
        pooled = kwargs.get("pool") is not None or isinstance(kwargs.get("device"), list)
        if not hasattr(super(), "_inference") and not pooled:  # before 6: predict itself runs the model
            runner = end.replica(self)
            if len(args) < 2:  # otherwise the activation may be among them
                kwargs["activation_fn"] = _in_high_precision(kwargs.get("activation_fn") or self.activation_fn)
        found = super(CrossEncoderView, runner).predict(*args, convert_to_tensor=True, **kwargs)  # type: ignore[misc]
        if not found.numel():  # of no pairs, the library has numbers in torch's default type
            found = found.to(getattr(torch, end.precision))
        return _converted(found, convert_to_numpy, convert_to_tensor)

    def relevance(self, pairs: Any, *, activation_fn: Any = None, **kwargs: Any) -> Any:
        """One number a pair to rank by: of several labels the log-odds of the one that means relevant.

        At the level "score" it is that label's probability. It takes what `predict` takes. Where labels stand alone
        (sigmoids), and with an activation of your own, it is the label's column of `predict`.
        """
        from torch.nn import Identity

        end: End = self.__dict__["_tiewise"]
        if end.labels == 1:
            return self.predict(pairs, activation_fn=activation_fn, **kwargs)
        label, mixes = end.label(), end.mixes and activation_fn is None
        kwargs.pop("apply_softmax", None)  # log-odds have its order
        convert = {name: kwargs.pop(name) for name in ("convert_to_numpy", "convert_to_tensor") if name in kwargs}
        last = Identity() if mixes else activation_fn
        found = self.predict(pairs, activation_fn=last, convert_to_tensor=True, **kwargs)
        if mixes and found.numel():
            compute = scoring.score if end.level == "score" else scoring.logit
            with without_autocast(found):
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
        end: End = self.__dict__["_tiewise"]
        saved: Any = copy.copy(self)  # the view itself may be in use
        saved.activation_fn = end.own if self.activation_fn is end.activation else self.activation_fn
        return super(CrossEncoderView, saved)._get_model_config()  # type: ignore[misc]

    def _inference(self, *args: Any, activation_fn: Any = None, **kwargs: Any) -> Any:
        """The loop over batches, which the library also runs in processes of a pool."""
        runner: Any = self.__dict__["_tiewise"].replica(self)
        kwargs["activation_fn"] = _in_high_precision(activation_fn)
        return super(CrossEncoderView, runner)._inference(*args, **kwargs)  # type: ignore[misc]

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Run the view with ``torch.compile``, with these arguments; the last layer stays out of it, and the model."""
        self.__dict__["_tiewise"].compiling = (args, kwargs)

    def explain(self) -> str:
        """What is computed in which precision here, and what the library does by itself."""
        end: End = self.__dict__["_tiewise"]
        own = "computes scores in the model's own precision."
        if widens():
            own = "itself widens the logits to float32 before the activation."
        if end.tokens is not None:
            own = "takes the difference of yes and no in the model's own precision" + (
                ", then widens." if widens() else "."
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
        same = (end.level, end.precision, end.tokens) == ("score", "float32", None) and widens()
        done = " So this view changes nothing; level='head' would." if same else ""
        if getattr(self, "_compiled_call_impl", None) is not None and end.compiling is None:
            done += " The model was compiled by model.compile(); the view runs uncompiled until you call its compile()."
        return f"{here} sentence-transformers {package().__version__} {own}{done}"

    def _last_layer(self) -> LastLayer:
        """The last layer, under its name in the whole model."""
        layer: LastLayer = self.__dict__["_tiewise"].layer(self)
        named: Iterator[tuple[str, Any]] = self.named_modules()  # type: ignore[attr-defined]
        layer.name = next((name for name, module in named if module is layer.module), layer.name)
        return layer


class SentenceTransformerView:
    """A SentenceTransformer that compares embeddings in high precision; `high_precision` makes it."""

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The similarity of all pairs, (n, m), in the view's precision."""
        precision, name = self.__dict__["_tiewise_precision"], str(self.similarity_fn_name)  # type: ignore[attr-defined]
        left, right = (_tensor(given, precision) for given in (embeddings1, embeddings2))
        with without_autocast(left):
            if name in ("cosine", "dot", "euclidean") and not left.is_sparse and not right.is_sparse:
                left, right = (x[None] if x.ndim == 1 else x for x in (left, right))
                return scoring.score(left, right, fn=name, precision=precision)
            return super().similarity(*_widened(left, right, precision))  # type: ignore[misc]

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The similarity of each pair, (n,), in the view's precision."""
        precision = self.__dict__["_tiewise_precision"]
        left, right = (_tensor(given, precision) for given in (embeddings1, embeddings2))
        with without_autocast(left):
            return super().similarity_pairwise(*_widened(left, right, precision))  # type: ignore[misc]

    def explain(self) -> str:
        """What is computed in which precision here, and what the library does by itself."""
        name, precision = self.similarity_fn_name, self.__dict__["_tiewise_precision"]  # type: ignore[attr-defined]
        version = package().__version__
        here = f"The {name} similarity of embeddings is computed in {precision}, whatever they are in."
        if not widens():
            return f"{here} sentence-transformers {version} computes it in the embeddings' own precision."
        done = " So this view changes next to nothing." if precision == "float32" else ""
        return f"{here} sentence-transformers {version} itself widens embeddings to float32.{done}"


def _name(activation: Any) -> str:
    return getattr(activation, "__name__", type(activation).__name__)


def _converted(found: Any, convert_to_numpy: bool = True, convert_to_tensor: bool = False) -> Any:
    """A tensor of predictions as the library would return it, in the precision that it has."""
    if convert_to_tensor:
        return found
    if convert_to_numpy:
        return found.cpu().numpy()[()]
    return list(found) if found.ndim else found


def _in_high_precision(activation: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """An activation that autocast leaves in the precision of the logits it is given; of a module, a module."""
    from torch.nn import Module

    if activation is None:
        return None

    def applied(logits: Any) -> Any:
        with without_autocast(logits):
            return activation(logits)

    if not isinstance(activation, Module):
        return applied
    found = copy.copy(activation)
    without_hooks(found)
    found.forward = applied
    return found


def _tensor(given: Any, precision: str) -> Any:
    """Embeddings as a tensor; numbers that have no type of their own are taken in the precision."""
    import torch

    if isinstance(given, torch.Tensor):
        return given
    if isinstance(given, (list, tuple)) and len(given) and isinstance(given[0], (torch.Tensor, np.ndarray)):
        return torch.stack([torch.as_tensor(one) for one in given])
    array = np.asarray(given)
    typed = isinstance(given, np.ndarray) or array.dtype.kind != "f"
    return torch.as_tensor(array if typed else array.astype(precision))


def _widened(left: Any, right: Any, precision: str) -> tuple[Any, Any]:
    """Embeddings in the precision, or as they are if they are wider."""
    import torch

    wide = getattr(torch, precision)
    first, second = (x.to(torch.promote_types(x.dtype, wide)) for x in (left, right))
    return first, second
