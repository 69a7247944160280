"""The last linear layer of a model: how to find it, what its input was, and its logits in high precision.

A low-precision model rounds its logits to a coarse grid, where they tie. The hidden state before the last layer is
finer. Computing the logits again from it needs one row of weights for each class, which costs almost nothing compared
with the forward pass. A `LogitRecorder` replaces the layer in a replica of the model, lets the layer compute its usual
output, and records the hidden state of each logit. The model itself is not changed (`adapters.replicas`). torch is
imported when a recorder is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from tiewise import scoring
from tiewise.adapters.replicas import autocast_dtype, remove_hooks, unwrap_compiled, without_autocast
from tiewise.errors import InputError


class LastLayer:
    """The last linear layer of a model; `rows` are the classes to use, None for all.

    `cap` limits the logits to cap·tanh(logit / cap), as Gemma 2 does with those of tokens.
    """

    def __init__(self, name: str, module: Any, rows: Sequence[int] | None = None, cap: float | None = None):
        self.name, self.module, self.rows, self.cap = name, module, None if rows is None else list(rows), cap
        weight = self._weight
        if not weight.is_floating_point() or weight.is_meta or tuple(weight.shape)[1:] != (module.in_features,):
            raise InputError(
                f"The last layer {name!r} holds weights of type {self.dtype} on {weight.device}, which cannot "
                f"be read as a matrix. Load the model without quantising or offloading that layer. {_ADVICE}"
            )

    def __repr__(self) -> str:
        classes = self.module.out_features if self.rows is None else len(self.rows)
        autocast = "" if self.own_dtype == self.dtype else f" in {self.own_dtype} by autocast"
        return f"{self.name} ({self.module.in_features} → {classes}, {self.dtype}{autocast})"

    @property
    def _weight(self) -> Any:
        weight = self.module.weight
        return weight() if callable(weight) else weight  # a method, if torch quantised the layer

    @property
    def dtype(self) -> str:
        """The type of its weights."""
        return str(self._weight.dtype).removeprefix("torch.")

    @property
    def own_dtype(self) -> str:
        """The type in which the model itself computes the logits: under autocast, that of autocast."""
        return str(autocast_dtype(self._weight) or self._weight.dtype).removeprefix("torch.")

    def weights(self) -> dict[str, Any]:
        """The weights of the classes to use, and their bias if there is one, as `scoring.head` takes them."""
        rows = slice(None) if self.rows is None else self.rows
        weights = {"weight": self.module.weight, "bias": self.module.bias}
        return {name: tensor.detach()[rows] for name, tensor in weights.items() if tensor is not None}

    def logits(self, hidden: Any, precision: str) -> Any:
        """The logits of hidden states, (n, width) to (n, classes), in high precision, even under autocast."""
        with without_autocast(hidden):
            if self.cap is None:
                return scoring.head(hidden, **self.weights(), precision=precision)
            return self.apply_cap(scoring.head(hidden, **self.weights(), precision="float64"), precision)

    def apply_cap(self, logits: Any, precision: str) -> Any:
        """Logits below the cap, computed in float64."""
        import torch

        return (self.cap * torch.tanh(logits.double() / self.cap)).to(getattr(torch, precision))

    def recorder(self) -> LogitRecorder:
        """A `LogitRecorder`, for use in one thread."""
        return LogitRecorder(self) if self.rows is None else LastPositionRecorder(self)


class LogitRecorder:
    """Records the input and the output of a classifier's last layer.

    Some models apply the layer to every token and then choose a position, each in its own way. So one column is added
    to the logits: the number of the row that they were computed from. The column of the logits that the model returns
    identifies their hidden state, and shows whether the model changed the logits.
    """

    def __init__(self, layer: LastLayer):
        self.layer = layer
        self._hidden: Any = None  # (rows, width)
        self._logits: Any = None  # (rows, classes), in the model's own precision

    def replace(self, copy: Any, module: Any) -> None:
        """Let the copy of the last layer, in a replica, call the layer and record its input and output."""
        remove_hooks(copy)  # calling the layer calls its own hooks

        def forward(hidden: Any) -> Any:
            return self._record(hidden, module(hidden))

        copy.forward = forward

    def _record(self, hidden: Any, output: Any) -> Any:
        """The logits with the added column, in a type that holds both exactly."""
        import torch

        self._hidden, self._logits = hidden.reshape(-1, hidden.shape[-1]), output.reshape(-1, output.shape[-1])
        count = self._logits.shape[0]
        wide = torch.promote_types(output.dtype, torch.float32 if count < 2**24 else torch.float64)
        rows = torch.arange(count, device=output.device, dtype=wide).reshape(*output.shape[:-1], 1)
        return torch.cat([output.to(wide), rows], -1)

    def read(self, logits: Any) -> tuple[Any, Any]:
        """The model's own logits, (n, classes), and their hidden states, (n, width), from the logits it returned."""
        if self._logits is None:
            raise InputError(f"The layer {self.layer.name!r} was not used in the forward pass. {_ADVICE}")
        found = self._find(logits)
        if found is None:
            raise InputError(f"The model changes what its last layer {self.layer.name!r} computes. {_ADVICE}")
        return found

    def _find(self, logits: Any) -> tuple[Any, Any] | None:
        """What `read` returns; None if the model changed the logits."""
        import torch

        if logits.ndim != 2 or logits.shape[1] != self._logits.shape[1] + 1:
            return None
        rows = logits[:, -1].long()
        if not ((rows >= 0) & (rows < len(self._logits)) & (rows == logits[:, -1])).all():
            return None
        own = self._logits[rows]
        same = torch.allclose(own.to(logits.dtype), logits[:, :-1], rtol=0, atol=0, equal_nan=True)
        return (own, self._hidden[rows]) if same else None

    def recompute(self, logits: Any, precision: str) -> Any:
        """The logits to return instead of those that the model returned, computed in high precision."""
        return self.layer.logits(self.read(logits)[1], precision)


class LastPositionRecorder(LogitRecorder):
    """Records the input and the output of a language model's last layer at the last position."""

    def _record(self, hidden: Any, output: Any) -> Any:
        """The output as it is."""
        self._hidden, self._logits = hidden[:, -1], output[:, -1, self.layer.rows]
        return output

    def _find(self, logits: Any) -> tuple[Any, Any] | None:
        """The logits of the tokens to use, and their hidden states, from all logits, (n, positions, tokens)."""
        import torch

        own, expected, rounding = logits[:, -1, self.layer.rows], self._logits.double(), 0.0
        if self.layer.cap is not None:  # a quotient, tanh and a product, each rounded
            expected, rounding = self.layer.apply_cap(expected, "float64"), 2 * torch.finfo(self._logits.dtype).eps
        same = torch.allclose(own.double(), expected, rtol=rounding, atol=0, equal_nan=True)
        return (own, self._hidden) if same else None

    def recompute(self, logits: Any, precision: str) -> Any:
        """The logits of all tokens at the last position; those of the tokens to use are in high precision.

        Of two tokens, the logit of the first is subtracted from both, so that only their difference is rounded.
        """
        import torch

        recomputed = self.layer.logits(self.read(logits)[1], "float64")
        if recomputed.shape[1] == 2:
            recomputed = recomputed - recomputed[:, :1]
        wide = logits[:, -1:].to(getattr(torch, precision))
        wide[:, 0, self.layer.rows] = recomputed.to(wide.dtype)
        return wide


_ADVICE = "Or rank on the model's own logits in float32: tiewise.scoring.logit."


def find_classifier(model: Any) -> LastLayer:
    """The last layer of a sequence classification model: outside the backbone, with an output for each label."""
    model = unwrap_compiled(model)
    labels, backbone = int(model.config.num_labels), set(model.base_model.modules()) - {model}
    layers = [
        (name, module)
        for name, module in model.named_modules()
        if _is_linear(module) and module not in backbone and module.out_features == labels
    ]
    if not layers:
        raise InputError(
            f"{type(model).__name__} has no linear layer with {labels} outputs behind its backbone. Supported are "
            "models for sequence classification that end in one, such as BERT, RoBERTa, DeBERTa, ModernBERT and Qwen."
        )
    return LastLayer(*layers[-1])


def find_language_head(model: Any, tokens: Sequence[int]) -> LastLayer:
    """The last layer of a causal language model, tied to its embeddings or not, for some of its tokens."""
    model = unwrap_compiled(model)
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if not _is_linear(head):
        raise InputError(
            f"{type(model).__name__} has no linear layer from hidden states to tokens. Supported are causal language "
            "models (…ForCausalLM) and models for sequence classification (…ForSequenceClassification)."
        )
    name = next((name for name, module in model.named_modules() if module is head), "lm_head")
    return LastLayer(name, head, tokens, getattr(model.config.get_text_config(), "final_logit_softcapping", None))


def _is_linear(module: Any) -> bool:
    """Whether a module is a linear layer, quantised or not."""
    return all(hasattr(module, name) for name in ("in_features", "out_features", "weight"))


def labels_are_independent(config: Any) -> bool:
    """Whether each label of a classifier has a probability of its own, so that a sigmoid, not softmax, applies."""
    return getattr(config, "problem_type", None) == "multi_label_classification"


def resolve_label(positive: int | str | None, labels: int, names: Mapping[Any, Any] | None = None) -> int:
    """The number of the label that means relevant, given by number or name; by default the last of one or two.

    >>> resolve_label(None, 2), resolve_label("yes", 3, {0: "no", 1: "perhaps", 2: "yes"})
    (1, 2)
    """
    named = {int(number): str(name) for number, name in (names or {}).items()}
    if positive is None:
        if labels > 2:
            raise InputError(f"The model has the labels {named or labels}. Say which one means relevant: positive=…")
        return labels - 1
    if isinstance(positive, str):
        numbers = [number for number, name in named.items() if name == positive]
        if not numbers:
            raise InputError(f"The model has no label {positive!r}. Its labels: {', '.join(named.values())}.")
        return numbers[0]
    if isinstance(positive, bool) or not isinstance(positive, Integral) or not 0 <= positive < labels:
        labels_text = "one label, 0" if labels == 1 else f"{labels} labels, 0 to {labels - 1}"
        raise InputError(f"positive={positive!r} is not one of the model's labels: it has {labels_text}.")
    return int(positive)
