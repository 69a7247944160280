"""Views of models: objects of the library's classes that share a model's weights, and whose scores tie less.

Most classes here are mixins: a view's class inherits from one of them and from the library's class. The view of a
CrossEncoder runs the model as usual, but on a replica with another head: which layer computes its logits, and how they
are widened, or computed again in high precision, says `Head`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tiewise import scoring
from tiewise.adapters.last_layer import (
    LastLayer,
    find_classifier,
    find_language_head,
    labels_are_independent,
    resolve_label,
)
from tiewise.adapters.replicas import Change, make_replica, remove_hooks, without_autocast
from tiewise.adapters.transformers import Reranker, Scores
from tiewise.errors import InputError
from tiewise.results.optional import need


class Head:
    """The head of a CrossEncoder: a classifier, the tokens yes and no of a language model, or a Dense module.

    The last layer is looked up whenever it is used, because other code may replace it in place, as MTEB does.
    """

    def __init__(self, model: Any, level: str, precision: str, positive: int | str | None = None):
        from torch.nn import Identity

        self.level, self.precision = level, precision
        self.labels, self.own = int(model.num_labels), model.activation_fn
        self.activation = Identity() if level != "score" and _is_increasing(self.own) else self.own
        #: The arguments of torch.compile, if the view runs compiled.
        self.compiling: tuple[tuple[Any, ...], Mapping[str, Any]] | None = None
        self._positive = positive
        network = model.model
        if not hasattr(network, "base_model"):
            raise InputError(f"The CrossEncoder runs on {type(network).__name__}. Load it with backend='torch'.")
        self._names = getattr(network.config, "id2label", None)
        self._independent = labels_are_independent(network.config)
        if positive is not None:
            self.label()
        self.tokens: list[int] | None = None
        for module in model.children():
            if type(module).__name__ == "LogitScore":
                self.tokens = [token for token in (module.false_token_id, module.true_token_id) if token is not None]
        if level == "head":
            self.layer(model)

    def label(self) -> int:
        """The label that means relevant."""
        return resolve_label(self._positive, self.labels, self._names)

    @property
    def labels_compete(self) -> bool:
        """Whether labels compete, so that a pair is ranked by log-odds; with sigmoids, labels are independent."""
        from torch import nn

        return isinstance(self.own, (nn.Softmax, nn.LogSoftmax, nn.Identity)) and not self._independent

    def describe_ranking(self) -> str:
        """What pairs are ranked by if there are several labels, in words."""
        known = self._positive is not None or self.labels <= 2
        what = f"label {self.label()}" if known else "the label that positive= names"
        if not self.labels_compete:
            return f"relevance() or rank(), the column of {what}"
        return f"relevance() or rank(), the {'probability' if self.level == 'score' else 'log-odds'} of {what}"

    def layer(self, model: Any) -> LastLayer:
        """The last layer of a model."""
        dense = _find_dense(model)
        if dense is not None:
            return LastLayer("linear", dense.linear)
        return find_classifier(model.model) if self.tokens is None else find_language_head(model.model, self.tokens)

    def replica(self, model: Any) -> Any:
        """A replica of a model with logits of the level, in float32 or wider; for one call, in one thread."""
        dense, changes = _find_dense(model), dict[Any, Change]()
        change_logits: Callable[[Any], Any] | None = None
        if dense is not None:
            for name in ("linear", "residual"):  # the scores are the sum of both
                if (part := getattr(dense, name, None)) is not None:
                    changes[part] = self._change_dense(LastLayer(name, part) if self.level == "head" else None)
        elif self.level == "head":
            layer = self.layer(model)
            recorder = layer.recorder()
            changes[layer.module] = recorder.replace
            change_logits = partial(recorder.recompute, precision=self.precision)
        else:
            change_logits = self._widen
        changes[model.model] = self._change_output(change_logits)
        replica = make_replica(model, changes)
        # The library calls eval() before it runs a model. A replica is in evaluation mode already, and eval() would
        # change the modules that it shares with the model.
        replica.train = lambda mode=True: replica
        return replica

    def _change_output(self, change_logits: Callable[[Any], Any] | None) -> Change:
        """Changes the logits of a replica's network in its `forward`, which the library calls without hooks."""

        def alter(copy: Any, network: Any) -> None:
            import torch

            run = copy.forward
            if self.compiling is not None:
                args, kwargs = self.compiling
                run = torch.compile(run, *args, **kwargs)

            def forward(*args: Any, **kwargs: Any) -> Any:
                output = run(*args, **kwargs)
                if change_logits is not None:
                    output.logits = change_logits(output.logits)
                return output

            copy.forward = forward

        return alter

    def _change_dense(self, layer: LastLayer | None) -> Change:
        """Gives a linear layer of a Dense module outputs of the level: recomputed by `layer`, or widened."""

        def alter(copy: Any, module: Any) -> None:
            if layer is not None:
                copy.forward = partial(layer.logits, precision=self.precision)
            else:
                copy.forward = lambda hidden: self._to_precision(module.forward(hidden))

        return alter

    def _widen(self, logits: Any) -> Any:
        """Logits in the precision; for a language model, those of the last position."""
        return self._to_precision(logits if self.tokens is None else logits[:, -1:])

    def _to_precision(self, tensor: Any) -> Any:
        import torch

        return tensor.to(getattr(torch, self.precision))


class CrossEncoderReranker(Reranker):
    """The network of a CrossEncoder, with the library's inputs and activation: all levels from one forward pass."""

    def __init__(self, model: Any, head: Head):
        if _find_dense(model) is not None:
            raise InputError(
                "A Dense module computes the scores of this CrossEncoder, so its levels need a forward pass each: use "
                "predict() of high_precision(model, level)."
            )
        super().__init__(model.model, model.tokenizer, head.layer(model), head.precision, None)
        self._cross_encoder = model
        two_tokens = head.tokens is not None and len(head.tokens) == 2
        self.fn = "softmax" if two_tokens or (head.labels > 1 and head.labels_compete) else "sigmoid"
        self.positive = 1 if two_tokens else head.label()
        self._activation = head.own if head.labels == 1 else None

    def _tokenize(self, pairs: Sequence[tuple[str, str]], instruction: str | None) -> Mapping[str, Any]:
        model = self._cross_encoder
        if hasattr(model, "preprocess"):  # since 5.4
            features = model.preprocess([list(pair) for pair in pairs], prompt=instruction)
        else:
            texts = map(list, zip(*pairs, strict=True))
            features = self.tokenizer(*texts, padding=True, truncation=True, return_tensors="pt")
        return {name: value for name, value in features.items() if hasattr(value, "to")}

    def _native(self, own: Any) -> Any:
        if self._activation is None:
            return super()._native(own)
        return self._activation(own if self.fn == "sigmoid" else own[:, 1] - own[:, 0])

    def _scores(self, own: Any, recomputed: Any) -> Scores:
        scores = super()._scores(own, recomputed)
        if self._activation is None or _is_sigmoid(self._activation):
            return scores
        return replace(scores, score=self._activation(scores.logit))


def _find_dense(model: Any) -> Any:
    modules = [module for module in model.children() if type(module).__name__ == "Dense"]
    return next((module for module in reversed(modules) if module.module_output_name == "scores"), None)


def _is_sigmoid(activation: Any) -> bool:
    import torch

    return isinstance(activation, torch.nn.Sigmoid) or activation is torch.sigmoid


def _is_increasing(activation: Any) -> bool:
    """Whether an activation is known to be increasing, so that it keeps the order of scores."""
    import torch

    kinds = (torch.nn.Identity, torch.nn.Sigmoid, torch.nn.Tanh, torch.nn.LogSigmoid)
    return activation is None or type(activation) in kinds or activation in (torch.sigmoid, torch.tanh)


def package() -> Any:
    """sentence-transformers, imported when it is first used."""
    return need("sentence_transformers", "The adapter of sentence-transformers", "sentence-transformers")


def widens_scores() -> bool:
    """Whether the library widens logits and embeddings before it scores: since 6.0."""
    return int(str(package().__version__).partition(".")[0]) >= 6


class CrossEncoderView:
    """A CrossEncoder whose last step is computed in high precision; made by `high_precision`."""

    activation_fn: Any

    @property
    def _head(self) -> Head:
        return self.__dict__["_tiewise"]

    def predict(self, *args: Any, convert_to_numpy: bool = True, convert_to_tensor: bool = False, **kwargs: Any) -> Any:
        """Like the CrossEncoder's method, with scores of the view's level and precision."""
        import torch

        head = self._head
        runner: Any = self
        pooled = kwargs.get("pool") is not None or isinstance(kwargs.get("device"), list)
        if not hasattr(super(), "_inference") and not pooled:  # before 6: predict itself runs the model
            runner = head.replica(self)
            if len(args) < 2:  # else the activation may be among them
                kwargs["activation_fn"] = _in_high_precision(kwargs.get("activation_fn") or self.activation_fn)
        scores = super(CrossEncoderView, runner).predict(*args, convert_to_tensor=True, **kwargs)  # type: ignore[misc]
        if not scores.numel():  # without pairs, the library returns torch's default type
            scores = scores.to(getattr(torch, head.precision))
        return _convert(scores, convert_to_numpy, convert_to_tensor)

    def scores(self, pairs: Any, *, batch_size: int = 32, instruction: str | None = None, keep: bool = False) -> Scores:
        """The scores of pairs at every level, from one forward pass: one number for each pair, to rank by.

        `instruction` is the library's prompt. `keep` keeps the logits and hidden states.
        """
        reranker = CrossEncoderReranker(self, self._head)
        return reranker.predict(pairs, batch_size=batch_size, instruction=instruction, keep=keep)

    def relevance(self, pairs: Any, *, activation_fn: Any = None, **kwargs: Any) -> Any:
        """One number for each pair to rank by: with several labels, the log-odds of the one that means relevant.

        At the level "score" it is that label's probability. It takes the arguments of `predict`. If labels are
        independent (sigmoids), or with an activation of your own, it is the label's column of `predict`.
        """
        from torch.nn import Identity

        head = self._head
        if head.labels == 1:
            return self.predict(pairs, activation_fn=activation_fn, **kwargs)
        label, compete = head.label(), head.labels_compete and activation_fn is None
        kwargs.pop("apply_softmax", None)  # log-odds have its order
        convert = {name: kwargs.pop(name) for name in ("convert_to_numpy", "convert_to_tensor") if name in kwargs}
        last = Identity() if compete else activation_fn
        runner: Any = copy.copy(self)
        if compete:  # log-odds are rounded, not logits
            runner.__dict__["_tiewise"] = wide = copy.copy(head)
            wide.precision = "float64"
        scores = runner.predict(pairs, activation_fn=last, convert_to_tensor=True, **kwargs)
        if compete and scores.numel():
            compute = scoring.score if head.level == "score" else scoring.logit
            with without_autocast(scores):
                scores = compute(scores, fn="softmax", positive=label, precision=head.precision)
        elif scores.numel():
            scores = scores[..., label]
        return _convert(scores, **convert)

    def rank(
        self,
        query: Any,
        documents: Sequence[Any],
        top_k: int | None = None,
        return_documents: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """Like the CrossEncoder's method; with several labels, by `relevance`."""
        if self._head.labels == 1:
            return super().rank(query, documents, top_k, return_documents, *args, **kwargs)  # type: ignore[misc]
        scores = self.relevance([[query, document] for document in documents], *args, **kwargs).tolist()
        rows: list[dict[str, Any]] = [{"corpus_id": at, "score": score} for at, score in enumerate(scores)]
        if return_documents:
            rows = [row | {"text": document} for row, document in zip(rows, documents, strict=True)]
        return sorted(rows, key=lambda row: -row["score"])[:top_k]

    def _get_model_config(self) -> Any:
        """The configuration to save: with the model's own activation, unless another one was set on the view."""
        head = self._head
        saved: Any = copy.copy(self)  # the view itself may be in use
        saved.activation_fn = head.own if self.activation_fn is head.activation else self.activation_fn
        return super(CrossEncoderView, saved)._get_model_config()  # type: ignore[misc]

    def _inference(self, *args: Any, activation_fn: Any = None, **kwargs: Any) -> Any:
        """The loop over batches, which the library also runs in a pool of processes."""
        runner: Any = self._head.replica(self)
        kwargs["activation_fn"] = _in_high_precision(activation_fn)
        return super(CrossEncoderView, runner)._inference(*args, **kwargs)  # type: ignore[misc]

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Run the view with ``torch.compile`` and these arguments. The last layer and the model are not compiled."""
        self._head.compiling = (args, kwargs)

    def explain(self) -> str:
        """A text that says what the view computes in which precision, and what the library does itself."""
        head = self._head
        own = "computes scores in the model's own precision."
        if widens_scores():
            own = "itself widens the logits to float32 before the activation."
        if head.tokens is not None:
            own = "takes the difference of yes and no in the model's own precision" + (
                ", then widens." if widens_scores() else "."
            )
        layer = self._last_layer() if head.level == "head" else None
        if layer is not None and layer.name in (getattr(self, "keep_in_fp32_modules", None) or []):
            own = "itself computes that layer in float32 too, as this model asks (keep_in_fp32_modules)."
        last = "without the activation"
        if head.activation is head.own:
            last = f"then {_activation_name(head.own)} is applied in {head.precision}, as it may change their order"
        here = {
            "score": f"The activation is computed in {head.precision} on the model's logits.",
            "logit": f"Scores are the model's logits, widened to {head.precision}, {last}.",
            "head": f"Scores are logits of {layer!r}, computed again in {head.precision}, {last}.",
        }[head.level]
        if head.labels > 1:
            here += f" They have a column for each of {head.labels} labels; to rank, use {head.describe_ranking()}."
        same = (head.level, head.precision, head.tokens) == ("score", "float32", None) and widens_scores()
        done = " So this view changes nothing; level='head' would." if same else ""
        if getattr(self, "_compiled_call_impl", None) is not None and head.compiling is None:
            done += " The model was compiled by model.compile(); the view runs uncompiled until you call its compile()."
        return f"{here} sentence-transformers {package().__version__} {own}{done}"

    def _last_layer(self) -> LastLayer:
        """The last layer, with its name in the whole model."""
        layer = self._head.layer(self)
        named: Iterator[tuple[str, Any]] = self.named_modules()  # type: ignore[attr-defined]
        layer.name = next((name for name, module in named if module is layer.module), layer.name)
        return layer


class SentenceTransformerView:
    """A SentenceTransformer that compares embeddings in high precision; made by `high_precision`."""

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The similarity of all pairs, (n, m), in the view's precision."""
        precision, name = self.__dict__["_tiewise_precision"], str(self.similarity_fn_name)  # type: ignore[attr-defined]
        left, right = (_to_tensor(given, precision) for given in (embeddings1, embeddings2))
        with without_autocast(left):
            if name in ("cosine", "dot", "euclidean") and not left.is_sparse and not right.is_sparse:
                left, right = (x[None] if x.ndim == 1 else x for x in (left, right))
                return scoring.score(left, right, fn=name, precision=precision)
            return super().similarity(*_widen(left, right, precision))  # type: ignore[misc]

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The similarity of each pair, (n,), in the view's precision."""
        precision = self.__dict__["_tiewise_precision"]
        left, right = (_to_tensor(given, precision) for given in (embeddings1, embeddings2))
        with without_autocast(left):
            return super().similarity_pairwise(*_widen(left, right, precision))  # type: ignore[misc]

    def explain(self) -> str:
        """A text that says what the view computes in which precision, and what the library does itself."""
        name, precision = self.similarity_fn_name, self.__dict__["_tiewise_precision"]  # type: ignore[attr-defined]
        version = package().__version__
        here = f"The {name} similarity of embeddings is computed in {precision}, whatever they are in."
        if not widens_scores():
            return f"{here} sentence-transformers {version} computes it in the embeddings' own precision."
        done = " So this view changes next to nothing." if precision == "float32" else ""
        return f"{here} sentence-transformers {version} itself widens embeddings to float32.{done}"


def _activation_name(activation: Any) -> str:
    return getattr(activation, "__name__", type(activation).__name__)


def _convert(scores: Any, convert_to_numpy: bool = True, convert_to_tensor: bool = False) -> Any:
    """A tensor of predictions in the form that the library would return, in its own precision."""
    if convert_to_tensor:
        return scores
    if convert_to_numpy:
        return scores.cpu().numpy()[()]
    return list(scores) if scores.ndim else scores


def _in_high_precision(activation: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """An activation that keeps the precision of its logits under autocast; a module stays a module."""
    from torch.nn import Module

    if activation is None:
        return None

    def apply(logits: Any) -> Any:
        with without_autocast(logits):
            return activation(logits)

    if not isinstance(activation, Module):
        return apply
    module = copy.copy(activation)
    remove_hooks(module)
    module.forward = apply
    return module


def _to_tensor(given: Any, precision: str) -> Any:
    """Embeddings as a tensor; Python numbers, which have no type, take the precision."""
    import torch

    if isinstance(given, torch.Tensor):
        return given
    if isinstance(given, (list, tuple)) and len(given) and isinstance(given[0], (torch.Tensor, np.ndarray)):
        return torch.stack([torch.as_tensor(one) for one in given])
    array = np.asarray(given)
    typed = isinstance(given, np.ndarray) or array.dtype.kind != "f"
    return torch.as_tensor(array if typed else array.astype(precision))


def _widen(left: Any, right: Any, precision: str) -> tuple[Any, Any]:
    """Embeddings in the precision, or in their own if it is wider."""
    import torch

    wide = getattr(torch, precision)
    first, second = (x.to(torch.promote_types(x.dtype, wide)) for x in (left, right))
    return first, second
