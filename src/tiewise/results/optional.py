"""Imports when they are needed: optional libraries, with an error that says how to install them, and our own names."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tiewise.errors import InputError, MissingExtraError


def installed(module: str) -> Any | None:
    """An optional module, or None."""
    try:
        return import_module(module)
    except ImportError:
        return None


def need(module: str, what: str, name: str) -> Any:
    """An optional module, or an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(what, name) from None


def names_in_stub(path: str) -> dict[str, str]:
    """The names that the stub of a package imports from each module, separated by blanks."""
    text = Path(path).with_suffix(".pyi").read_text(encoding="utf-8")
    modules: dict[str, str] = {}
    for module, name in re.findall(r"^from (\S+) import (\w+) as \w+$", text, re.MULTILINE):
        modules[module] = f"{modules.get(module, '')} {name}"
    return modules


def lazy_names(package: str, modules: Mapping[str, str], hints: str = "") -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are imported when they are first used.

    `modules` has the names of each module, separated by blanks; those of the package itself are its own modules.
    `suggest` of the module `hints` ends the error for another name.
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in module_of:
            hint = import_module(hints).suggest(name) if hints else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        if module_of[name] == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(module_of[name]), name)
        vars(sys.modules[package])[name] = value
        return value

    return get


def data_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame, or a polars one where pandas is not installed."""
    for library in ("pandas", "polars"):
        try:
            return import_module(library).DataFrame(dict(columns))
        except ImportError:
            continue
    raise InputError("A data frame needs pandas or polars: pip install pandas")
