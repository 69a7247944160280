"""The cost of a line, from ten thousand lines to a hundred million, and the memory that a run of gigabytes takes.

Every call has a fixed cost. So each process first evaluates two short lists with a tie, many times, and then the long
run; the difference is the cost of the lines. `wc -l` takes turns with it.

    python -m benchmarks.lines QRELS RUN SHORT_QRELS SHORT_RUN    one process, which prints its measurement as JSON
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
from benchmarks.turns import Row, best_turns, run_module
from benchmarks.worker import clock, peak_memory

ENOUGH = 0.5  # seconds of repeated calls; the fastest call counts
FEWEST_QUERIES = 10
DISK_SHARE = 0.8  # of the free disk, which a run may fill


def line_costs(most: int, gigabytes: float, folder: Path, repeat: int, enough: float, limit: float) -> Iterator[Row]:
    """A row for each power of ten up to `most` lines, and one for a run of some gigabytes, if the disk has space."""
    expected = _list_values(folder)
    queries = FEWEST_QUERIES
    while queries * DOCUMENTS <= most:
        yield from _line_cost(queries, expected, folder, repeat, enough, limit)
        queries *= 10
    space, wanted = shutil.disk_usage(folder).free * DISK_SHARE, round(gigabytes * 1e9)
    for row in _line_cost(int(min(wanted, space)) // list_bytes(), expected, folder, 1, enough, limit):
        yield row | {"wanted_bytes": wanted}


def _list_values(folder: Path) -> Any:
    """nDCG@10 of every distinct list, in trec_eval's order."""
    import tiewise as tw

    made = long_run(LISTS, folder)
    try:
        return tw.evaluate(made.qrels, made.run, "nDCG@10").per_query("nDCG@10").oblivious
    finally:
        made.delete()


def _line_cost(queries: int, expected: Any, folder: Path, repeat: int, enough: float, limit: float) -> Iterator[Row]:
    """One row, or none if a process failed."""
    small = short(folder)
    made = long_run(queries, folder)
    paths = [str(path) for path in (made.qrels, made.run)]
    ours, counting = ["benchmarks.lines", *paths, *map(str, small)], ["benchmarks.worker", "files", "wc -l", *paths]
    try:
        best = best_turns(
            {
                "wc -l": lambda: run_module(counting, "wc -l", limit),
                "tiewise": lambda: run_module(ours, f"tiewise, {made.lines:,} lines", limit),
            },
            repeat,
            enough,
        )
        size = made.run.stat().st_size
    finally:
        made.delete()
    if len(best) < 2:
        return
    value = best["tiewise"].pop("value")
    if not math.isclose(value, expected[np.arange(queries) % LISTS].mean(), rel_tol=1e-9):
        raise SystemExit(f"nDCG@10 of {made.lines:,} lines is {value}, which is wrong")
    yield {"lines": made.lines, "bytes": size, "wc": best["wc -l"]["cpu"], **best["tiewise"]}


# -- in the process ---------------------------------------------------------------------------------------------------


def fastest_call(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result of a function, and the CPU and wall seconds of the fastest of its calls."""
    start = time.process_time()
    result, cpu, wall = clock(function)
    while time.process_time() - start < ENOUGH:
        _, *again = clock(function)
        cpu, wall = min(cpu, again[0]), min(wall, again[1])
    return result, cpu, wall


def main() -> None:
    warnings.simplefilter("ignore")
    qrels, run, *small = map(Path, sys.argv[1:])
    call = fastest_call(_evaluation(*small))[1]
    value, cpu, wall = fastest_call(_evaluation(qrels, run))
    memory = peak_memory(resource.RUSAGE_SELF)
    print(json.dumps({"call": call, "cpu": cpu, "wall": wall, "peak_bytes": memory, "value": value}))


def _evaluation(qrels: Path, run: Path) -> Callable[[], float]:
    prepare, timed = tiewise_files(qrels, run)
    data = prepare()
    return lambda: timed(data)["nDCG@10"]


if __name__ == "__main__":
    main()
