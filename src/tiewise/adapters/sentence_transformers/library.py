"""sentence-transformers, imported when it is first used, and differences between its versions."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tiewise.errors import InputError
from tiewise.tables.optional import need

__all__ = ["find_class", "package", "widens_scores"]


def package() -> Any:
    """sentence-transformers, or an error that says how to install it."""
    return need("sentence_transformers", "The adapter of sentence-transformers", "sentence-transformers")


def widens_scores() -> bool:
    """Whether the library widens logits and embeddings before it scores: since 6.0."""
    return int(str(package().__version__).partition(".")[0]) >= 6


def find_class(paths: Sequence[str]) -> Any:
    """The first of several classes that this version of the library has."""
    version = package().__version__
    for path in paths:
        module, _, name = path.rpartition(".")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise InputError(f"sentence-transformers {version} has no {paths[0].rpartition('.')[2]}. Update it.")
