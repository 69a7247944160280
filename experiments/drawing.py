"""What the modules that draw pictures for the documentation do when they are run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tiewise import figures


def draw(module: str, doc: str | None, pictures: Callable[[], dict[str, Any]], arguments: Sequence[str] | None) -> None:
    """Save the pictures of a module into a folder, which an option names."""
    parser = argparse.ArgumentParser(f"python -m {module}", description=str(doc).partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/img"), metavar="FOLDER")
    out = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures().items():
        figures.save(picture, out / name)
