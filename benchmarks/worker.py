"""One contender, once, in its own process: prints its time, its peak memory and its means as JSON."""

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

#: The shape that a process evaluates before the clock starts. Its files are in the same folder as the others.
WARM_UP = "miracl"

#: Seconds after which the threads that an import starts, those of OpenBLAS, wait without using a core.
IDLE = 0.1


def time_function(source: str, name: str, qrels: Path, run: Path) -> dict[str, Any]:
    """The time of a Python function, without its imports."""
    prepare, timed = CONTENDERS[source][name](*(path.with_stem(WARM_UP) for path in (qrels, run)))
    timed(prepare())  # some tools import or compile at their first call
    prepare, timed = CONTENDERS[source][name](qrels, run)
    data = prepare()
    values, cpu, wall = clock(lambda: timed(data))
    return {"cpu": cpu, "wall": wall, "peak_bytes": peak_memory(resource.RUSAGE_SELF), "values": values}


def time_command(name: str, qrels: Path, run: Path) -> dict[str, Any]:
    """The time of a whole program."""
    words, read = COMMANDS[name](qrels, run)
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    wall, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    peak, own = peak_memory(resource.RUSAGE_CHILDREN), peak_memory(resource.RUSAGE_SELF)
    return {
        "cpu": used.ru_utime + used.ru_stime,
        "wall": wall,
        "peak_bytes": peak if peak > own else None,  # a child counts the memory of this process at its start
        "values": read(done.stdout),
    }


def clock(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result of a function, and its CPU and wall seconds."""
    time.sleep(IDLE)
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def peak_memory(who: int) -> int:
    """The peak memory of a process so far, in bytes."""
    return resource.getrusage(who).ru_maxrss * 1024


def main() -> None:
    warnings.simplefilter("ignore")
    source, name, qrels, run = sys.argv[1:]
    paths = Path(qrels), Path(run)
    print(json.dumps(time_command(name, *paths) if name in COMMANDS else time_function(source, name, *paths)))


if __name__ == "__main__":
    main()
