"""Commands that start quickly: their words are converted here.

From 0.29 on, typer converts the words of a command line with pydantic, and importing that takes as long as importing
NumPy. Our options are texts, paths, numbers and words to choose from, so a few lines do. Versions of typer that know no
`_runtime_param` convert as they always did.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["QuickCommand", "QuickGroup"]


class QuickCommand(TyperCommand):
    """A command whose parameters convert themselves."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, with conversions of our own."""
        return [_worded(_quick(param)) for param in super().get_params(ctx)]


class QuickGroup(TyperGroup):
    """A group of commands whose parameters convert themselves."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, with conversions of our own."""
        return [_worded(_quick(param)) for param in super().get_params(ctx)]


def _worded(param: Any) -> Any:
    """The parameter with help as a person would word it: no type for a flag or a file, no bounds, no braces."""
    param._get_number_range_help_str = lambda: None
    if getattr(param, "is_flag", False):
        param.metavar = ""
    elif param.param_type_name == "argument":
        name = str(param.metavar) + (f" [{param.metavar}]..." if param.nargs != 1 else "")
        param._usage_display_name = lambda: name if param.required else f"[{name}]"
        param.display_type_rich = lambda ctx: None
    return param


def _quick(param: Any) -> Any:
    described = getattr(param, "type_descriptor", None)
    if described is not None and getattr(param, "_runtime_param", described) is None:
        convert = _converter(described.annotation)
        if convert is not None:
            param._runtime_param = _Conversion(param, convert, described.parameter_info)
    return param


class _Conversion:
    """What typer asks to convert a parameter's words."""

    def __init__(self, param: Any, convert: Callable[[str], Any], described: Any):
        self._param, self._convert = param, convert
        self._low, self._high = described.min, described.max

    def coerce(self, value: Any, *_: Any, **context: Any) -> Any:
        """The value of a word, or of many."""
        many = self._param.multiple or self._param.nargs == -1
        if value is None:
            return () if many else None
        try:
            return [self._one(word) for word in value] if many else self._one(value)
        except ValueError as error:
            raise typer.BadParameter(f"{error}.", ctx=context.get("ctx"), param=self._param) from None

    def _one(self, word: Any) -> Any:
        value = self._convert(word)
        if self._low is not None and value < self._low:
            raise ValueError(f"{value} is below {self._low}")
        if self._high is not None and value > self._high:
            raise ValueError(f"{value} is above {self._high}")
        return value


def _converter(annotation: Any) -> Callable[[Any], Any] | None:
    """What converts a word to a type; None if that is left to typer."""
    if get_origin(annotation) is list:
        return _converter(*get_args(annotation))
    if get_args(annotation):
        return lambda word: _chosen(word, get_args(annotation))
    plain: dict[Any, Callable[[Any], Any]] = {str: str, bool: bool, Path: Path, int: _whole, float: _number}
    return plain.get(annotation)


def _chosen(word: Any, words: tuple[str, ...]) -> str:
    if word not in words:
        raise ValueError(f"'{word}' is not one of {', '.join(words)}")
    return str(word)


def _whole(word: Any) -> int:
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"'{word}' is no whole number") from None


def _number(word: Any) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"'{word}' is no number") from None
