"""One contender, once, in a process of its own: prints its seconds, its peak of memory and its means as JSON."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.contenders import COMMANDS, CONTENDERS

#: The shape that a process evaluates before the clock runs; its files lie beside the others.
WARM = "miracl"


def call(door: str, name: str, qrels: Path, run: Path) -> dict[str, Any]:
    """A function of Python, from the end of its imports to its last value."""
    prepare, timed = CONTENDERS[door][name](*(path.with_stem(WARM) for path in (qrels, run)))
    timed(prepare())  # some import, or compile, when they are first called
    prepare, timed = CONTENDERS[door][name](qrels, run)
    held = prepare()
    values, cpu, wall = clocked(lambda: timed(held))
    return {"cpu": cpu, "wall": wall, "peak_bytes": peak(resource.RUSAGE_SELF), "values": values}


def command(name: str, qrels: Path, run: Path) -> dict[str, Any]:
    """A program, from its start to its end."""
    words, read = COMMANDS[name](qrels, run)
    began = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    wall, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    most, own = peak(resource.RUSAGE_CHILDREN), peak(resource.RUSAGE_SELF)
    return {
        "cpu": used.ru_utime + used.ru_stime,
        "wall": wall,
        "peak_bytes": most if most > own else None,  # less than this process had when it started the other is not seen
        "values": read(done.stdout),
    }


def clocked(timed: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a function returns, and its CPU and wall seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = timed()
    return found, time.process_time() - cpu, time.perf_counter() - wall


def peak(whose: int) -> int:
    """The most memory that a process held so far, in bytes."""
    return resource.getrusage(whose).ru_maxrss * 1024


def main() -> None:
    warnings.simplefilter("ignore")
    door, name, qrels, run = sys.argv[1:]
    paths = Path(qrels), Path(run)
    print(json.dumps(command(name, *paths) if name in COMMANDS else call(door, name, *paths)))


if __name__ == "__main__":
    main()
