"""What a line costs, from ten thousand lines to a hundred million, and how much memory a run of gigabytes takes.

A call costs something whatever it reads. So each process first evaluates two short lists with a tie, many times, and
then the long run: what is left when the first is taken from the second is the cost of the lines. `wc -l` takes turns
with it.

    python -m benchmarks.lines QRELS RUN TINY_QRELS TINY_RUN    one process, which prints what it found as JSON
"""

from __future__ import annotations

import json
import math
import resource
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contenders import tiewise_files
from benchmarks.shapes import DOCUMENTS, LISTS, list_bytes, long_run, short
from benchmarks.turns import Found, best, process
from benchmarks.worker import clocked, peak

ENOUGH = 0.5  # seconds of calls, of which the fastest counts
FEWEST = 10  # queries of the shortest run
ROOM = 0.8  # of the free disk, which a run may take


def costs(most: int, gigabytes: float, folder: Path, repeat: int, enough: float, limit: float) -> Iterator[Found]:
    """A row for each power of ten up to `most` lines, and one for a run of some gigabytes, if the disk has room."""
    right = _by_list(folder)
    queries = FEWEST
    while queries * DOCUMENTS <= most:
        yield from _cost(queries, right, folder, repeat, enough, limit)
        queries *= 10
    room, wanted = shutil.disk_usage(folder).free * ROOM, round(gigabytes * 1e9)
    for row in _cost(int(min(wanted, room)) // list_bytes(), right, folder, 1, enough, limit):
        yield row | {"wanted_bytes": wanted}


def _by_list(folder: Path) -> Any:
    """nDCG@10 of every distinct list, in trec_eval's order."""
    import tiewise as tw

    made = long_run(LISTS, folder)
    try:
        return tw.evaluate(made.qrels, made.run, "nDCG@10").per_query("nDCG@10").oblivious
    finally:
        made.delete()


def _cost(queries: int, right: Any, folder: Path, repeat: int, enough: float, limit: float) -> Iterator[Found]:
    """One row, or none if a process failed."""
    tiny = short(folder)
    made = long_run(queries, folder)
    paths = [str(path) for path in (made.qrels, made.run)]
    ours, counting = ["benchmarks.lines", *paths, *map(str, tiny)], ["benchmarks.worker", "files", "wc -l", *paths]
    try:
        found = best(
            {
                "wc -l": lambda: process(counting, "wc -l", limit),
                "tiewise": lambda: process(ours, f"tiewise, {made.lines:,} lines", limit),
            },
            repeat,
            enough,
        )
        size = made.run.stat().st_size
    finally:
        made.delete()
    if len(found) < 2:
        return
    value = found["tiewise"].pop("value")
    if not math.isclose(value, right[np.arange(queries) % LISTS].mean(), rel_tol=1e-9):
        raise SystemExit(f"nDCG@10 of {made.lines:,} lines is {value}, which it cannot be")
    yield {"lines": made.lines, "bytes": size, "wc": found["wc -l"]["cpu"], **found["tiewise"]}


# -- in the process ---------------------------------------------------------------------------------------------------


def fastest(timed: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a function returns, and the CPU and wall seconds of the fastest of its calls."""
    began = time.process_time()
    found, cpu, wall = clocked(timed)
    while time.process_time() - began < ENOUGH:
        _, *again = clocked(timed)
        cpu, wall = min(cpu, again[0]), min(wall, again[1])
    return found, cpu, wall


def main() -> None:
    warnings.simplefilter("ignore")
    qrels, run, *tiny = map(Path, sys.argv[1:])
    call = fastest(_call(*tiny))[1]
    value, cpu, wall = fastest(_call(qrels, run))
    found = {"call": call, "cpu": cpu, "wall": wall, "peak_bytes": peak(resource.RUSAGE_SELF), "value": value}
    print(json.dumps(found))


def _call(qrels: Path, run: Path) -> Callable[[], float]:
    prepare, timed = tiewise_files(qrels, run)
    held = prepare()
    return lambda: timed(held)["nDCG@10"]


if __name__ == "__main__":
    main()
