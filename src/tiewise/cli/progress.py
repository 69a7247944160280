"""A progress bar on standard error, if that is a terminal and the work takes a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

DELAY = 2.0  # seconds before a bar appears


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A callback ``(done, total)`` that draws the bar, if anybody would see it. The bar vanishes at the end."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    start, bars = monotonic(), list[Any]()

    def update(done: int, total: int) -> None:
        if not bars and done < total and monotonic() - start > DELAY:
            bars.append(_start_bar(what, total))
        for bar in bars:
            bar.update(0, completed=done)

    try:
        yield update
    finally:
        for bar in bars:
            bar.stop()


def _start_bar(what: str, total: int) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(what, total=total)
    bar.start()
    return bar
