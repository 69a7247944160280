"""`python -m benchmarks [--shapes dl,miracl,marco,large] [--repeat 3]`: every door, every tool, as ratios of one run.

Each measurement is a process of its own; contenders take turns, so that a noisy machine is noisy for all. The time is
the CPU time from the end of imports to the last value, the best of the turns. Memory is the peak of the process, what
the caller holds included.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from benchmarks.contenders import CONTENDERS
from benchmarks.shapes import SHAPES, files

#: Where a tool needs minutes, it is left out of a shape, and the table says so.
TOO_SLOW = {("columns", "trm (lists)"): {"marco", "large", "dl"}}


def measure(door: str, name: str, qrels: Path, run: Path, limit: float) -> dict[str, float] | None:
    """One process; None, with the reason on stderr, if the tool is missing, fails, or takes too long."""
    command = [sys.executable, "-m", "benchmarks.worker", door, name, str(qrels), str(run)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        print(f"  {name}: more than {limit:g} s", file=sys.stderr)
        return None
    if done.returncode:
        print(f"  {name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(shape: str, door: str, folder: Path, repeat: int, limit: float) -> list[dict[str, object]]:
    """The best of `repeat` turns of every contender through one door."""
    qrels, run = files(shape, folder)
    best: dict[str, dict[str, float]] = {}
    gone: set[str] = set()
    for _ in range(repeat):
        for name in CONTENDERS[door]:
            if name in gone or shape in TOO_SLOW.get((door, name), ()):
                continue
            found = measure(door, name, qrels, run, limit)
            if found is None:
                gone.add(name)
            elif name not in best or found["cpu"] < best[name]["cpu"]:
                best[name] = found
    ours = best.get("tiewise", {}).get("cpu")
    return [
        {"shape": shape, "door": door, "tool": name, "ratio": found["cpu"] / ours if ours else None, **found}
        for name, found in best.items()
    ]


def environment() -> dict[str, str]:
    """Where and with what this was measured."""
    packages = {}
    for name in ("tiewise", "numpy", "pytrec_eval-terrier", "ir_measures", "ranx", "tie-aware-retrieval-metrics"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "not installed"
    return {"python": platform.python_version(), "machine": platform.machine(), **packages}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", default="dl,miracl,marco", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--doors", default="files,dicts,columns")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that one process may take")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"), help="where made data is kept")
    parser.add_argument("--json", type=Path, default=Path("build/bench/results.json"))
    chosen = parser.parse_args()
    rows: list[dict[str, object]] = []
    for shape in chosen.shapes.split(","):
        for door in chosen.doors.split(","):
            print(f"\n{shape}, {door}: {SHAPES[shape]}")
            print(f"  {'tool':<22} {'CPU s':>9} {'÷ tiewise':>10} {'MB':>7}  nDCG@10")
            for row in compare(shape, door, chosen.folder, chosen.repeat, chosen.limit):
                rows.append(row)
                print(
                    f"  {row['tool']:<22} {row['cpu']:>9.4f} {row['ratio'] or np.nan:>10.2f} "
                    f"{row['peak_bytes'] / 1e6:>7.0f}  {row['nDCG@10']:.6f}"  # type: ignore[operator]
                )
    chosen.json.parent.mkdir(parents=True, exist_ok=True)
    chosen.json.write_text(json.dumps({"environment": environment(), "results": rows}, indent=2))


if __name__ == "__main__":
    main()
