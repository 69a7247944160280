"""The end of a CrossEncoder: where its logits come from, and how to put those of a level in their place.

The model runs as it always does, and the library around it too, but on a replica whose end is altered: the module that
gives the logits gives others, the same ones widened, or those that its last layer has in high precision. The model
itself is never changed, so that other threads can use it meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tiewise.adapters.last_layer import LastLayer, Tap, classifier_of, label_of, language_head_of
from tiewise.adapters.replicas import Change, make_replica
from tiewise.errors import InputError

__all__ = ["End"]


class End:
    """The end of a CrossEncoder: a classifier, the tokens yes and no of a language model, or a Dense module.

    The last layer is looked up whenever it is used: others replace it in place, as MTEB does.
    """

    def __init__(self, model: Any, level: str, precision: str, positive: int | str | None = None):
        from torch.nn import Identity

        self.level, self.precision = level, precision
        self.labels, self.own = int(model.num_labels), model.activation_fn
        self.activation = Identity() if level != "score" and _increases(self.own) else self.own
        #: The arguments for torch.compile where the view is to run compiled.
        self.compiling: tuple[tuple[Any, ...], Mapping[str, Any]] | None = None
        self._positive = positive
        network = model.model
        if not hasattr(network, "base_model"):
            raise InputError(f"The CrossEncoder runs on {type(network).__name__}. Load it with backend='torch'.")
        self._names = getattr(network.config, "id2label", None)
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
        return label_of(self._positive, self.labels, self._names)

    @property
    def mixes(self) -> bool:
        """Whether labels compete, so that a pair is ranked by log-odds; with sigmoids each label stands alone."""
        from torch import nn

        return isinstance(self.own, (nn.Softmax, nn.LogSoftmax, nn.Identity))

    def ranked_by(self) -> str:
        """What a pair is ranked by where there are several labels, in words."""
        label = "the label that positive= names" if self._positive is None and self.labels > 2 else self.label()
        what = f"label {label}" if isinstance(label, int) else label
        if not self.mixes:
            return f"relevance() or rank(), the column of {what}"
        return f"relevance() or rank(), the {'probability' if self.level == 'score' else 'log-odds'} of {what}"

    def layer(self, model: Any) -> LastLayer:
        """The last layer of a model."""
        dense = _dense_of(model)
        if dense is not None:
            return LastLayer("linear", dense.linear)
        return classifier_of(model.model) if self.tokens is None else language_head_of(model.model, self.tokens)

    def replica(self, model: Any) -> Any:
        """A replica of a model that gives logits of the level, in float32 or wider; for one call, in one thread."""
        dense, changes = _dense_of(model), {}
        if dense is not None:
            parts = {name: getattr(dense, name, None) for name in ("linear", "residual")}  # the scores are their sum
            changes = {part: self._raised_layer(name, part) for name, part in parts.items() if part is not None}
            changes[model.model] = self._around(lambda output: output)
        elif self.level == "head":
            layer = self.layer(model)
            tap = layer.tap()
            changes = {layer.module: tap.replace, model.model: self._around(lambda output: self._again(output, tap))}
        else:
            changes = {model.model: self._around(self._widened)}
        replica = make_replica(model, changes)
        # The library calls eval() before it runs a model. A replica is in evaluation mode already, and what it shares
        # with the model is not to be touched.
        replica.train = lambda mode=True: replica
        return replica

    def _around(self, change: Callable[[Any], Any]) -> Change:
        """The network of a replica with its output changed, by its `forward`, which the library calls past any hook."""

        def put(copy: Any, network: Any) -> None:
            import torch

            forward = copy.forward
            if self.compiling is not None:
                options, named = self.compiling
                forward = torch.compile(forward, *options, **named)
            copy.forward = lambda *args, **kwargs: change(forward(*args, **kwargs))

        return put

    def _raised_layer(self, name: str, module: Any) -> Change:
        """A linear layer of a Dense module with outputs of the level."""
        import torch

        layer = LastLayer(name, module) if self.level == "head" else None

        def raised(hidden: Any) -> Any:
            if layer is None:
                return module.forward(hidden).to(getattr(torch, self.precision))
            return layer.logits(hidden, self.precision)

        return lambda copy, module: setattr(copy, "forward", raised)

    def _widened(self, output: Any) -> Any:
        """The output of a network with its logits widened; of a language model, at the last position."""
        import torch

        logits = output.logits if self.tokens is None else output.logits[:, -1:]
        output.logits = logits.to(getattr(torch, self.precision))
        return output

    def _again(self, output: Any, tap: Tap) -> Any:
        """The output of a network with logits computed again."""
        output.logits = tap.again(output.logits, self.precision)
        return output


def _dense_of(model: Any) -> Any:
    """The Dense module that makes a model's scores, if there is one."""
    found = [one for one in model.children() if type(one).__name__ == "Dense" and one.module_output_name == "scores"]
    return found[-1] if found else None


def _increases(activation: Any) -> bool:
    """Whether an activation keeps the order of whatever numbers it is given; of one that is not known, no."""
    import torch

    kinds = (torch.nn.Identity, torch.nn.Sigmoid, torch.nn.Tanh, torch.nn.LogSigmoid)
    return activation is None or type(activation) in kinds or activation in (torch.sigmoid, torch.tanh)
