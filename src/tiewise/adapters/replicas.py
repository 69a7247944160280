"""Replicas of models: module trees that can be altered without changing the model, on the model's own weights.

A replica shares all parameters and buffers with the model, and every submodule that need not differ from the original.
Only the modules on the way to an altered one, and those in training mode, are copied: new objects of the same class
with the same attributes. So a forward pass can be observed, changed and kept in evaluation mode while other threads use
the model, and there is nothing to undo afterwards. Making one takes some microseconds a module, so that every call
makes its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MethodType
from typing import Any

from tiewise.errors import InputError

__all__ = ["is_compiled", "make_replica", "uncompiled", "without_autocast", "without_hooks"]

#: Alters the copy of a module; it is given the copy and the original.
Change = Callable[[Any, Any], None]


def make_replica(model: Any, changes: Mapping[Any, Change]) -> Any:
    """A replica of a model in evaluation mode, with some of its modules altered.

    `changes` holds a function for each module to alter, which is called with the module's copy and the module itself. A
    model compiled by ``torch.compile(model)`` has a replica that is compiled in the same way. Modules compiled in place
    (``module.compile()``) run compiled if they are shared, and uncompiled if they are copied: the options that they
    were compiled with are not known.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout()).train()
    >>> def negate(copy, original):
    ...     copy.forward = lambda x: -original(x)
    >>> replica = make_replica(model, {model[0]: negate})
    >>> x = torch.ones(1, 2)
    >>> bool((replica(x) == -model[0](x)).all()), replica[0].weight is model[0].weight
    (True, True)
    >>> model.training, replica.training, "forward" in vars(model[0])
    (True, False, False)
    """
    made: dict[Any, Any] = {}
    replica = _replicated(model, changes, made)
    missing = [module for module in changes if module not in made]
    if missing:
        raise InputError(
            f"A layer of type {type(missing[0]).__name__} is not part of the {type(model).__name__} that is run. Was "
            "the model changed meanwhile? Call high_precision again."
        )
    return replica


def _replicated(module: Any, changes: Mapping[Any, Change], made: dict[Any, Any]) -> Any:
    """The replica of a module: the module itself where nothing in it is altered or in training mode."""
    import torch

    if module is None or isinstance(module, torch.jit.ScriptModule):
        return module
    if module not in made:
        children = {name: _replicated(child, changes, made) for name, child in module._modules.items()}
        shared = all(child is module._modules[name] for name, child in children.items())
        if shared and module not in changes and not module.training:
            made[module] = module
        elif is_compiled(module):
            made[module] = type(module)(children["_orig_mod"], module.dynamo_ctx)
        else:
            made[module] = _copied(module, children)
        if module in changes:
            changes[module](made[module], module)
    return made[module]


def _copied(module: Any, children: dict[str, Any]) -> Any:
    """An object like a module, with other children, not in training, and not compiled."""
    copy = object.__new__(type(module))
    attributes = {name: _rebound(value, module, copy) for name, value in vars(module).items()}
    attributes.pop("_compiled_call_impl", None)
    vars(copy).update(attributes, _modules=children, training=False)
    return copy


def _rebound(value: Any, module: Any, copy: Any) -> Any:
    """An attribute of a module for its copy: functions bound to the module, as accelerate sets, bound to the copy."""
    if isinstance(value, MethodType) and value.__self__ is module:
        return MethodType(value.__func__, copy)
    if isinstance(value, partial) and any(one is module for one in value.args):
        found = partial(value.func, *(copy if one is module else one for one in value.args), **value.keywords)
        vars(found).update({name: _rebound(one, module, copy) for name, one in vars(value).items()})
        return found
    return value


def without_hooks(copy: Any) -> None:
    """Take all hooks off the copy of a module, for a forward function that calls the original with its hooks."""
    for name, value in vars(copy).items():
        if "_hooks" in name and isinstance(value, dict):
            vars(copy)[name] = type(value)()


def is_compiled(model: Any) -> bool:
    """Whether a model is what ``torch.compile(model)`` returned, a module around the original."""
    return "_orig_mod" in getattr(model, "_modules", {}) and hasattr(model, "dynamo_ctx")


def uncompiled(model: Any) -> Any:
    """The model that ``torch.compile`` was given, or the model itself."""
    return model._orig_mod if is_compiled(model) else model


def without_autocast(tensor: Any) -> Any:
    """A context in which no operation on the tensor's device is computed in a lower precision than its operands."""
    import torch

    return torch.autocast(tensor.device.type, enabled=False)
