"""The library itself, imported when it is first used: its classes, wherever a version keeps them, and what it does."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tiewise.errors import InputError, MissingExtraError

__all__ = ["base_class", "package", "widens"]


def package() -> Any:
    """sentence-transformers, or an error that says how to install it."""
    try:
        return import_module("sentence_transformers")
    except ImportError:
        raise MissingExtraError("The adapter of sentence-transformers", "sentence-transformers") from None


def widens() -> bool:
    """Whether the library widens logits and embeddings before it scores: since 6.0."""
    return int(str(package().__version__).partition(".")[0]) >= 6


def base_class(homes: Sequence[str]) -> Any:
    """The first of some classes of the library that this version has."""
    version = package().__version__
    for home in homes:
        module, _, name = home.rpartition(".")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise InputError(f"sentence-transformers {version} has no {homes[0].rpartition('.')[2]}. Update it.")
