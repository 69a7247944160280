"""Runs every recipe whose package is installed, and says which are not: ``python -m recipes``."""

from __future__ import annotations

import sys
from importlib import import_module

RECIPES = {"duckdb_search": "duckdb", "lancedb_search": "lancedb", "qdrant_search": "qdrant-client"}


def main() -> int:
    """0, or 1 if a recipe does not give what the exact search gives."""
    failed = 0
    for name, package in RECIPES.items():
        try:
            recipe = import_module(f"recipes.{name}")
        except ModuleNotFoundError as error:
            print(f"{name}: skipped, there is no {error.name}: pip install {package}")
            continue
        try:
            recipe.main()
        except AssertionError as error:
            failed = 1
            print(f"{name}: FAILED {error}")
        else:
            print(f"{name}: ok")
    return failed


if __name__ == "__main__":
    sys.exit(main())
