"""How many threads the compiled kernels use; no result depends on it."""

from __future__ import annotations

import os

__all__ = ["threads_for"]

MOST = 8

#: Steps of work below which starting a thread costs more than it saves.
WORTH = 2**18


def threads_for(steps: int) -> int:
    """A number of threads for so many steps: up to the usable cores, OMP_NUM_THREADS, and 8.

    >>> threads_for(10)
    1
    """
    return max(1, min(_usable(), steps // WORTH))


def _usable() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(allowed) if allowed.isdecimal() and int(allowed) else cores, MOST)
