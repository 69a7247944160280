"""Optional libraries: imported where they are used, with an error that says how to install them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tiewise.errors import InputError, MissingExtraError

__all__ = ["data_frame", "installed", "need"]


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


def data_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame, or a polars one where pandas is not installed."""
    for library in ("pandas", "polars"):
        try:
            return import_module(library).DataFrame(dict(columns))
        except ImportError:
            continue
    raise InputError("A data frame needs pandas or polars: pip install pandas")
