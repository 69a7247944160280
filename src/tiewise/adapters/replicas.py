"""Replicas of models: module trees that share a model's weights and can be altered without changing the model.

A replica shares all parameters and buffers with the model, and every submodule that need not differ. Only altered
modules, their parents, and modules in training mode are copied: new objects of the same class with the same attributes.
So a forward pass can be observed, changed and kept in evaluation mode while other threads use the model, and nothing
has to be undone afterwards. Making one takes some microseconds a module, so every call makes its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MethodType
from typing import Any

from tiewise.errors import InputError

#: Alters the copy of a module; called with the copy and the original.
Change = Callable[[Any, Any], None]


def make_replica(model: Any, changes: Mapping[Any, Change]) -> Any:
    """A replica of a model in evaluation mode, with some of its modules altered.

    `changes` has a function for each module to alter, which is called with the module's copy and the module itself. The
    replica of a model compiled by ``torch.compile(model)`` is compiled in the same way. Modules compiled in place
    (``module.compile()``) run compiled if they are shared, and uncompiled if they are copied, because the options of
    the compilation are not known.

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
    replica = _replicate(model, changes, made)
    missing = [module for module in changes if module not in made]
    if missing:
        raise InputError(
            f"A layer of type {type(missing[0]).__name__} is not part of the {type(model).__name__} that is run. Was "
            "the model changed meanwhile? Call high_precision again."
        )
    return replica


def _replicate(module: Any, changes: Mapping[Any, Change], made: dict[Any, Any]) -> Any:
    """The replica of a module: the module itself if nothing in it is altered or in training mode."""
    import torch

    if module is None or isinstance(module, torch.jit.ScriptModule):
        return module
    if module not in made:
        children = {name: _replicate(child, changes, made) for name, child in module._modules.items()}
        shared = all(child is module._modules[name] for name, child in children.items())
        if shared and module not in changes and not module.training:
            made[module] = module
        elif is_compiled(module):
            made[module] = type(module)(children["_orig_mod"], module.dynamo_ctx)
        else:
            made[module] = _copy_module(module, children)
        if module in changes:
            changes[module](made[module], module)
    return made[module]


def _copy_module(module: Any, children: dict[str, Any]) -> Any:
    """A copy of a module with other children, in evaluation mode, and not compiled."""
    copy = object.__new__(type(module))
    attributes = {name: _rebind(value, module, copy) for name, value in vars(module).items()}
    attributes.pop("_compiled_call_impl", None)
    vars(copy).update(attributes, _modules=children, training=False)
    return copy


def _rebind(value: Any, module: Any, copy: Any) -> Any:
    """An attribute for the copy of a module: functions bound to the module, as by accelerate, are bound to the copy."""
    if isinstance(value, MethodType) and value.__self__ is module:
        return MethodType(value.__func__, copy)
    if isinstance(value, partial) and any(one is module for one in value.args):
        bound = partial(value.func, *(copy if one is module else one for one in value.args), **value.keywords)
        vars(bound).update({name: _rebind(one, module, copy) for name, one in vars(value).items()})
        return bound
    return value


def remove_hooks(copy: Any) -> None:
    """Remove all hooks from the copy of a module whose forward function calls the original with its hooks."""
    for name, value in vars(copy).items():
        if "_hooks" in name and isinstance(value, dict):
            vars(copy)[name] = type(value)()


def is_compiled(model: Any) -> bool:
    """Whether a model was returned by ``torch.compile(model)``: a module around the original."""
    return "_orig_mod" in getattr(model, "_modules", {}) and hasattr(model, "dynamo_ctx")


def unwrap_compiled(model: Any) -> Any:
    """The original of a model returned by ``torch.compile``, or the model itself."""
    return model._orig_mod if is_compiled(model) else model


def without_autocast(tensor: Any) -> Any:
    """A context without autocast on the tensor's device: operations keep the precision of their operands."""
    import torch

    return torch.autocast(tensor.device.type, enabled=False)


def autocast_dtype(tensor: Any) -> Any:
    """The type in which autocast computes products on the tensor's device; None where it is off."""
    import torch

    kind = tensor.device.type
    is_on = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.get_autocast_dtype(kind) if is_on else None
