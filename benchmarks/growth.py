"""How the commands grow: CPU time and memory of each, with ten times the queries, documents, systems or tied documents.

    python -m benchmarks.growth                 measure, write the results and docs/speed.md; a few minutes
    python -m benchmarks.growth --quick         a tenth of the size, to see that it runs; nothing is written

Every command runs as a process of its own, from its start to its end. The CPU time is that of the best of a few turns.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import whole_page as pages
from benchmarks.growth_page import AXES
from tiewise.cli.program import COMMANDS

ROOT = Path(__file__).parent.parent
RESULTS = pages.RESULTS / "growth.json"
FACTOR, DIMENSIONS, SEED = 10, 64, 0


@dataclass(frozen=True)
class Size:
    """The size of an input."""

    queries: int = 100
    documents: int = 500  # in each list; a tenth of them, and as many others, are judged
    systems: int = 3
    group: int = 5  # documents with the same score


#: The arguments of each command for a folder of files, and the axes that it has.
CALLS: dict[str, tuple[Callable[[Path, Sequence[str]], list[str]], str]] = {
    "evaluate": (lambda folder, runs: ["qrels", *runs], "queries documents systems group"),
    "trec_eval": (lambda folder, runs: ["-q", "qrels", runs[0]], "queries documents group"),
    "compare": (lambda folder, runs: ["qrels", *runs], "queries documents systems group"),
    "report": (lambda folder, runs: ["qrels", *runs, "-o", "page.html"], "queries documents systems group"),
    "audit": (lambda folder, runs: [runs[0]], "queries documents group"),
    "similarity": (lambda folder, runs: list(runs), "queries documents systems group"),
    "stages": (lambda folder, runs: ["reference", *runs], "queries documents systems group"),
    "score": (lambda folder, runs: ["queries.npy", "docs.npy", "-o", "scored.trec"], "queries documents"),
    "break": (lambda folder, runs: [runs[0], "-o", "broken.trec"], "queries documents group"),
}


def write_inputs(size: Size, folder: Path) -> list[str]:
    """Judgments, runs, a reference and vectors of this size; the names of the runs."""
    rng = np.random.default_rng(SEED)
    judged = range(0, 2 * size.documents, 10)
    labels = rng.integers(0, 3, (size.queries, len(judged)))
    with (folder / "qrels").open("w") as file:
        for query, row in enumerate(labels.tolist()):
            file.writelines(f"q{query} 0 d{doc} {label}\n" for doc, label in zip(judged, row, strict=True))
    names = [f"run-{number}" for number in range(size.systems)]
    for name in ["reference", *names]:
        with (folder / name).open("w") as file:
            for query in range(size.queries):
                docs = rng.permutation(2 * size.documents)[: size.documents].tolist()
                rows = (
                    f"q{query} Q0 d{doc} {place + 1} {-(place // size.group)} x\n" for place, doc in enumerate(docs)
                )
                file.writelines(rows)
    for name, many in (("queries", size.queries), ("docs", size.documents)):
        np.save(folder / f"{name}.npy", rng.normal(size=(many, DIMENSIONS)).astype(np.float32))
    return names


def run_command(name: str, arguments: Sequence[str], folder: Path, turns: int) -> dict[str, float]:
    """CPU seconds, the best of some turns, and megabytes of one command."""
    command, found = [sys.executable, "-W", "ignore", "-m", "tiewise", name, *arguments], []
    for _ in range(turns):
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{' '.join(command)} in {folder} ended with {process.returncode}.")
        found.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
    return {"cpu": round(min(cpu for cpu, _ in found), 3), "mb": round(max(mb for _, mb in found))}


def measure(base: Size, turns: int) -> list[dict[str, Any]]:
    """A row for each command: its cost at the base, and with each axis ten times as large."""
    commands = [name for name in CALLS if name in COMMANDS]
    rows: dict[str, dict[str, Any]] = {name: {"command": name} for name in commands}
    sizes = {"base": base} | {axis: replace(base, **{axis: FACTOR * getattr(base, axis)}) for axis in AXES}
    for axis, size in sizes.items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            runs = write_inputs(size, folder)
            for command in commands:
                arguments, axes = CALLS[command]
                if axis == "base" or axis in axes.split():
                    rows[command][axis] = run_command(command, arguments(folder, runs), folder, turns)
                    print(f"{axis:<10} {command:<11} {rows[command][axis]}", flush=True)
    return list(rows.values())


def main() -> None:
    """Measure, and write the results and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    base = Size(10, 50) if options.quick else Size()
    result = {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "factor": FACTOR,
        "base": asdict(base),
        "dimensions": DIMENSIONS,
        "commands": measure(base, options.turns),
    }
    if not options.quick:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        pages.PAGE.write_text(pages.whole_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
