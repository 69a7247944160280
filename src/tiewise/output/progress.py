"""How far long work has come: a bar on standard error, where that is a terminal and the work takes a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

__all__ = ["progress"]

PATIENCE = 2.0  # seconds without a word


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None] | None]:
    """What long work tells ``(done, total)``; None if nobody would see it. The bar is gone when the work is done."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    began, bars = monotonic(), list[Any]()

    def tell(done: int, total: int) -> None:
        if not bars and done < total and monotonic() - began > PATIENCE:
            bars.append(_started(what, total))
        for bar in bars:
            bar.update(0, completed=done)

    try:
        yield tell
    finally:
        for bar in bars:
            bar.stop()


def _started(what: str, total: int) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(what, total=total)
    bar.start()
    return bar
