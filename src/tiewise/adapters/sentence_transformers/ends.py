"""The end of a CrossEncoder: where its logits come from, and how to put those of a level in their place.

The model runs as it always does, and the library around it too. Only while a block of code runs does the module that
gives the logits give others: the same ones widened, or those that its last layer has in high precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from tiewise.adapters.last_layer import LastLayer, classifier_of, label_of, language_head_of
from tiewise.errors import InputError

__all__ = ["End"]


class End:
    """The end of a CrossEncoder: a classifier, the tokens yes and no of a language model, or a Dense module.

    The last layer is looked up whenever it is used: others replace it in place, as MTEB does.
    """

    def __init__(self, model: Any, level: str, precision: str, positive: int | str | None = None):
        from torch.nn import Identity

        self.level, self.precision, self.network = level, precision, model.model
        self.labels, self.own = int(model.num_labels), model.activation_fn
        self.activation = Identity() if level != "score" and _increases(self.own) else self.own
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
        from torch import nn

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
        import torch

        layer, precision = self.layer() if self.level == "head" else None, self.precision
        wide = getattr(torch, precision)

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


def _increases(activation: Any) -> bool:
    """Whether an activation keeps the order of whatever numbers it is given; of one that is not known, no."""
    import torch

    kinds = (torch.nn.Identity, torch.nn.Sigmoid, torch.nn.Tanh, torch.nn.LogSigmoid)
    return activation is None or type(activation) in kinds or activation in (torch.sigmoid, torch.tanh)
