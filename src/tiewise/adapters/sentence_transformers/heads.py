"""The head of a CrossEncoder: which layer computes its logits, and how to replace them by those of a level.

The library runs the model as usual, but on a replica with another head: its logits are widened, or computed again in
high precision. The model itself is never changed, so other threads can use it at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tiewise.adapters.last_layer import (
    LastLayer,
    find_classifier,
    find_language_head,
    labels_are_independent,
    resolve_label,
)
from tiewise.adapters.replicas import Change, make_replica
from tiewise.adapters.transformers import Reranker, Scores
from tiewise.errors import InputError


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
    """The Dense module that computes a model's scores, if there is one."""
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
