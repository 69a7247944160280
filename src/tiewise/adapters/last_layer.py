"""The last linear layer of a model: where it is, what it was given in a forward pass, and its logits in high precision.

A low-precision model rounds its logits to a coarse grid, and there they tie. The hidden state before that layer is
finer, and one row of weights a class is all it takes to compute the logits again: next to nothing beside the forward
pass. So a `Tap` takes the place of the layer in a replica of the model, lets the layer compute what it always does, and
afterwards tells the hidden state that each logit came from. The model itself is not changed (`adapters.replicas`).
torch is imported when a tap is used; the model brings it along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from tiewise import scoring
from tiewise.adapters.replicas import uncompiled, without_autocast, without_hooks
from tiewise.errors import InputError

__all__ = ["LastLayer", "Tap", "check_precision", "classifier_of", "label_of", "language_head_of"]


class LastLayer:
    """A linear layer that ends a model; `rows` are the classes that matter, None for all of them."""

    def __init__(self, name: str, module: Any, rows: Sequence[int] | None = None):
        self.name, self.module, self.rows = name, module, None if rows is None else list(rows)
        weight = module.weight
        if not weight.is_floating_point() or weight.is_meta or tuple(weight.shape)[1:] != (module.in_features,):
            raise InputError(
                f"The last layer {name!r} holds weights of type {_type(weight)} on {weight.device}, which cannot be "
                f"read as a matrix. Load the model without quantising or offloading that layer. {_INSTEAD}"
            )

    def __repr__(self) -> str:
        classes = self.module.out_features if self.rows is None else len(self.rows)
        return f"{self.name} ({self.module.in_features} → {classes}, {_type(self.module.weight)})"

    def logits(self, hidden: Any, precision: str) -> Any:
        """The layer's logits of hidden states, (n, width) to (n, classes), in high precision, even in autocast."""
        weight, bias = self.module.weight.detach(), self.module.bias
        if self.rows is not None:
            weight, bias = weight[self.rows], None if bias is None else bias[self.rows]
        with without_autocast(hidden):
            return scoring.head(hidden, weight, None if bias is None else bias.detach(), precision=precision)

    def tap(self) -> Tap:
        """A `Tap` for one forward pass after another, in one thread."""
        return Tap(self) if self.rows is None else LanguageTap(self)


class Tap:
    """What went through a classifier's last layer.

    Some models apply the layer to every token and then choose a position, each in its own way. So a column rides along
    with the logits: the number of the row that they were computed from. It comes out beside the logits that the model
    chose, and tells their hidden state. If anything else was done to them, the column tells that too.
    """

    def __init__(self, layer: LastLayer):
        self.layer = layer
        self._hidden: Any = None  # (rows, width)
        self._logits: Any = None  # (rows, classes), in the model's own precision

    def replace(self, copy: Any, module: Any) -> None:
        """Let the copy of the last layer, in a replica, call the layer and keep what went through it."""
        without_hooks(copy)  # the layer's own are called with the layer

        def forward(hidden: Any) -> Any:
            return self._passed(hidden, module(hidden))

        copy.forward = forward

    def _passed(self, hidden: Any, output: Any) -> Any:
        """The logits with the column beside them, in a type that holds both exactly."""
        import torch

        self._hidden, self._logits = hidden.reshape(-1, hidden.shape[-1]), output.reshape(-1, output.shape[-1])
        count = self._logits.shape[0]
        wide = torch.promote_types(output.dtype, torch.float32 if count < 2**24 else torch.float64)
        rows = torch.arange(count, device=output.device, dtype=wide).reshape(*output.shape[:-1], 1)
        return torch.cat([output.to(wide), rows], -1)

    def read(self, logits: Any) -> tuple[Any, Any]:
        """From the logits that the model returned: its own, (n, classes), and their hidden states, (n, width)."""
        import torch

        if self._logits is None:
            raise InputError(f"The layer {self.layer.name!r} took no part in the forward pass. {_INSTEAD}")
        classes = self._logits.shape[-1]
        rows = logits[..., -1].long() if logits.shape[-1] == classes + 1 and logits.ndim == 2 else None
        if rows is None or not ((rows >= 0) & (rows < len(self._logits)) & (rows == logits[..., -1])).all():
            raise InputError(f"The model changes what its last layer {self.layer.name!r} computes. {_INSTEAD}")
        own, hidden = self._logits[rows], self._hidden[rows]
        if not torch.allclose(own.to(logits.dtype), logits[:, :-1], rtol=0, atol=0, equal_nan=True):
            raise InputError(f"The model changes what its last layer {self.layer.name!r} computes. {_INSTEAD}")
        return own, hidden

    def again(self, logits: Any, precision: str) -> Any:
        """What to return in the place of the logits that the model returned: the same, computed in high precision."""
        return self.layer.logits(self.read(logits)[1], precision)


class LanguageTap(Tap):
    """What went through a language model's last layer, at the last position and for the classes that matter."""

    def _passed(self, hidden: Any, output: Any) -> Any:
        """The output as it is; the hidden state of the last position is kept."""
        self._hidden = hidden[:, -1]
        return output

    def read(self, logits: Any) -> tuple[Any, Any]:
        """From the logits that the model returned, (n, positions, tokens): those that matter, and the hidden states."""
        import torch

        if self._hidden is None:
            raise InputError(f"The layer {self.layer.name!r} took no part in the forward pass. {_INSTEAD}")
        own, hidden = logits[:, -1, self.layer.rows], self._hidden
        # The model's rounding, and no more than that, may lie between its logits and ours.
        ours = self.layer.logits(hidden, "float32")
        weight = self.layer.module.weight.detach()[self.layer.rows].float().abs()
        with without_autocast(hidden):
            size = hidden.float().abs() @ weight.T
        room = 8 * torch.finfo(own.dtype).eps * (size + ours.abs() + 1e-30)
        if ((own.float() - ours).abs() > room).any():
            raise InputError(
                f"The model changes what its last layer {self.layer.name!r} computes, by a cap or a scale as in "
                f"Gemma 2. {_INSTEAD}"
            )
        return own, hidden

    def again(self, logits: Any, precision: str) -> Any:
        """The logits of all tokens at the last position, those that matter computed in high precision."""
        found = self.layer.logits(self.read(logits)[1], precision)
        wide = logits[:, -1:].to(found.dtype)
        wide[:, 0, self.layer.rows] = found
        return wide


_INSTEAD = "Or rank on the model's own logits in float32: tiewise.scoring.logit."


def classifier_of(model: Any) -> LastLayer:
    """The last layer of a model for sequence classification: outside the backbone, with an output for each label."""
    import torch

    model = uncompiled(model)
    labels, backbone = int(model.config.num_labels), set(model.base_model.modules()) - {model}
    found = [
        (name, module)
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and module not in backbone and module.out_features == labels
    ]
    if not found:
        raise InputError(
            f"{type(model).__name__} has no linear layer with {labels} outputs behind its backbone. Supported are "
            "models for sequence classification that end in one, such as BERT, RoBERTa, DeBERTa, ModernBERT and Qwen."
        )
    return LastLayer(*found[-1])


def language_head_of(model: Any, tokens: Sequence[int]) -> LastLayer:
    """The last layer of a causal language model, tied to its embeddings or not, for some of its tokens."""
    import torch

    model = uncompiled(model)
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if not isinstance(head, torch.nn.Linear):
        raise InputError(
            f"{type(model).__name__} has no linear layer from hidden states to tokens. Supported are causal language "
            "models (…ForCausalLM) and models for sequence classification (…ForSequenceClassification)."
        )
    name = next((name for name, module in model.named_modules() if module is head), "lm_head")
    return LastLayer(name, head, tokens)


def check_precision(precision: str) -> None:
    """Refuse a precision that is not higher than that of low-precision models."""
    if precision not in ("float32", "float64"):
        raise InputError(f"precision is 'float32' or 'float64', not {precision!r}.")


def label_of(positive: int | str | None, labels: int, names: Mapping[Any, Any] | None = None) -> int:
    """The number of the label that means relevant: as given, by its number or its name; of one or two, the last.

    >>> label_of(None, 2), label_of("yes", 3, {0: "no", 1: "perhaps", 2: "yes"})
    (1, 2)
    """
    named = {int(number): str(name) for number, name in (names or {}).items()}
    if positive is None:
        if labels > 2:
            raise InputError(f"The model has the labels {named or labels}. Say which one means relevant: positive=…")
        return labels - 1
    if isinstance(positive, str):
        found = [number for number, name in named.items() if name == positive]
        if not found:
            raise InputError(f"The model has no label {positive!r}. Its labels: {', '.join(named.values())}.")
        return found[0]
    if isinstance(positive, bool) or not isinstance(positive, Integral) or not 0 <= positive < labels:
        there = "one label, 0" if labels == 1 else f"{labels} labels, 0 to {labels - 1}"
        raise InputError(f"positive={positive!r} is none of the model's labels: it has {there}.")
    return int(positive)


def _type(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")
