"""The compiled kernels (`src/kernels`), and how many threads they use. No result depends on the number of threads."""

from __future__ import annotations

import os
from typing import Any

from tiewise.data.native import native

__all__ = ["compiled_kernels", "thread_count"]

MAX_THREADS = 8

#: Below this number of steps, starting a thread costs more than it saves.
STEPS_PER_THREAD = 2**18


def compiled_kernels() -> Any | None:
    """The compiled module, or None where it is not installed; then NumPy does the same work."""
    return native("kernels")


def thread_count(steps: int) -> int:
    """The number of threads for some work: at most the usable cores, OMP_NUM_THREADS, and 8.

    >>> thread_count(10)
    1
    """
    return max(1, min(_usable_cores(), steps // STEPS_PER_THREAD))


def _usable_cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(allowed) if allowed.isdecimal() and int(allowed) else cores, MAX_THREADS)
