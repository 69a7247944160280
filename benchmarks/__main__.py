"""Measure how fast Tiewise is beside other tools, print tables, and write the results and the page about them.

    python -m benchmarks --trec-eval PATH                 measure everything, some ten minutes
    python -m benchmarks --quick                          small shapes, to see that it runs: nothing is kept
    python -m benchmarks --from benchmarks/results/speed.json    write the page anew from results

Each measurement is a process of its own; contenders take turns, so that a noisy machine is noisy for all. The time is
the CPU time from the end of imports to the last value, the best of the turns. Memory is the peak of the process, what
the caller holds included.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.contenders import FOLLOWERS, MEASURES, TREC_EVAL, names
from benchmarks.lines import costs
from benchmarks.shapes import SHAPES, files
from benchmarks.speed_page import aims, figure, page, seconds
from benchmarks.start import starts
from benchmarks.turns import Found, best, process
from benchmarks.worker import WARM

ROOT = Path(__file__).parent.parent
RESULTS, PAGE, FIGURE = (
    ROOT / "benchmarks/results/speed.json",
    ROOT / "docs/speed.md",
    ROOT / "docs/img/speed-lines.svg",
)

DOORS = {"files": ("dl", "miracl", "marco", "large"), "dicts": ("dl", "miracl", "marco")}
DOORS["columns"] = DOORS["dicts"]
SMALL = ("dl", "miracl")

#: trec_eval prints four digits, so its means may be off by half of the last.
TOLERANCE = 0.00005 + 1e-9


def compare(shape: str, door: str, chosen: argparse.Namespace) -> list[Found]:
    """The best turn of every contender through one door."""
    qrels, run = files(shape, chosen.folder)
    print(f"\n{shape}, {door}: {SHAPES[shape]}")
    print(f"  {'tool':<24} {'CPU s':>9} {'÷ tiewise':>10} {'wall s':>9} {'MB':>7} {'turns':>5}  nDCG@10", flush=True)
    words = [["benchmarks.worker", door, name, str(qrels), str(run)] for name in names(door, shape, chosen.compiling)]
    turns = {w[2]: lambda w=w: process(w, w[2], chosen.limit) for w in words}  # type: ignore[misc]
    found = best(turns, chosen.repeat, chosen.enough)
    if "tiewise" not in found:
        raise SystemExit("Tiewise itself failed: there is nothing to compare.")
    ours, lines = found["tiewise"], SHAPES[shape].queries * SHAPES[shape].documents
    for name, row in found.items():
        held = f"{row['peak_bytes'] / 1e6:.0f}" if row["peak_bytes"] else "–"
        value = f"{row['values']['nDCG@10']:.6f}" if row["values"] else ""
        ratio = row["cpu"] / ours["cpu"]
        print(
            f"  {name:<24} {row['cpu']:>9.4f} {ratio:>10.2f} {row['wall']:>9.4f} {held:>7} {row['turns']:>5}  {value}"
        )
        if name in FOLLOWERS or name.startswith("tiewise"):
            agree(name, row["values"], ours["values"])
    return [{"shape": shape, "door": door, "tool": name, "lines": lines, **row} for name, row in found.items()]


def agree(name: str, theirs: dict[str, float], ours: dict[str, float]) -> None:
    """Stop if a tool that breaks ties as trec_eval does came to other means."""
    for measure in MEASURES:
        if abs(theirs[measure] - ours[measure]) > TOLERANCE:
            raise SystemExit(
                f"{name} says {measure} is {theirs[measure]}, and Tiewise {ours[measure]}: not comparable."
            )


def measured(chosen: argparse.Namespace) -> Found:
    """All that is measured."""
    load = os.getloadavg()[0]
    files(WARM, chosen.folder)
    rows: list[Found] = []
    for door in chosen.doors:
        for shape in SMALL if chosen.quick else DOORS[door]:
            if shape in chosen.shapes:
                rows += compare(shape, door, chosen)
    start, lines = [], []
    if "start" in chosen.parts:
        start = _told("start-up", starts(chosen.folder, 5 if chosen.quick else 31), _start)
    if "lines" in chosen.parts:
        most, size = (10**5, 0.01) if chosen.quick else (chosen.lines, chosen.gigabytes)
        turns = chosen.repeat, chosen.enough, chosen.limit
        lines = _told("cost of a line", costs(most, size, chosen.folder, *turns), _line)
    environment = _environment() | {"load": [load, os.getloadavg()[0]]}
    kept = {"environment": environment, "quick": chosen.quick, "measures": MEASURES}
    return kept | {"results": rows, "start": start, "lines": lines}


def _told(title: str, rows: Iterable[Found], said: Any) -> list[Found]:
    print(f"\n{title}")
    kept = []
    for row in rows:
        print(f"  {said(row)}", flush=True)
        kept.append(row)
    return kept


def _start(row: Found) -> str:
    return f"{row['command']:<28} {seconds(row['wall'])}"


def _line(row: Found) -> str:
    each = row["cpu"] / row["lines"] * 1e9
    return f"{row['lines']:>13,} lines: {each:.1f} ns a line, {row['peak_bytes'] / 1e6:.0f} MB"


def _environment() -> dict[str, Any]:
    """Where, when and with what this was measured."""
    packages: dict[str, str | None] = {"python": platform.python_version()}
    for name in ("tiewise", "numpy", "pytrec_eval-terrier", "ir_measures", "ranx", "tie-aware-retrieval-metrics"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    if TREC_EVAL in os.environ:
        said = subprocess.run([os.environ[TREC_EVAL], "-v"], capture_output=True, text=True)
        packages["trec_eval"] = (said.stderr + said.stdout).strip().removeprefix("trec_eval version ")
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {"device": _device(), "date": today, "packages": packages}


def _device() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores"


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small shapes, to see that it runs")
    parser.add_argument("--trec-eval", default=shutil.which("trec_eval"), metavar="PATH", help="a binary of trec_eval")
    parser.add_argument("--shapes", type=_words, default=[*DOORS["files"]], help=f"of {', '.join(DOORS['files'])}")
    parser.add_argument("--doors", type=_words, default=[*DOORS], help=f"of {', '.join(DOORS)}")
    parser.add_argument("--parts", type=_words, default=["start", "lines"], help="of start, lines")
    parser.add_argument("--compiling", action="store_true", help="ranx too, which compiles for half a minute a turn")
    parser.add_argument("--repeat", type=int, default=5, help="turns of each contender")
    parser.add_argument("--enough", type=float, default=12.0, help="seconds after which a contender has no more turns")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that one process may take")
    parser.add_argument("--lines", type=int, default=10**8, help="of the longest run that shows what a line costs")
    parser.add_argument("--gigabytes", type=float, default=10.0, help="the size of the largest run")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/bench", help="where made data is kept")
    parser.add_argument(
        "--from", type=Path, dest="source", metavar="JSON", help="results to show, instead of measuring"
    )
    parser.add_argument("--json", type=Path, help="where to write results (default: benchmarks/results/speed.json)")
    parser.add_argument("--page", type=Path, help="where to write the page (default: docs/speed.md)")
    parser.add_argument("--figure", type=Path, help="where to write the figure (default: docs/img/speed-lines.svg)")
    chosen = parser.parse_args()
    spare = chosen.folder if chosen.quick else None
    chosen.json = chosen.json or (spare / RESULTS.name if spare else RESULTS)
    chosen.page = chosen.page or (spare / PAGE.name if spare else PAGE)
    chosen.figure = chosen.figure or (spare / FIGURE.name if spare else FIGURE)
    return chosen


def _words(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    chosen = _asked()
    if chosen.trec_eval:
        os.environ[TREC_EVAL] = chosen.trec_eval
    if chosen.source:
        found = json.loads(chosen.source.read_text())
    else:
        found = measured(chosen)
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    print("\naims")
    for aim in aims(found):
        print(f"  {aim.name:<66} {aim.said:>9} {aim.shown:>9}  {aim.verdict.strip('*')}")
    chosen.page.write_text(page(found), encoding="utf-8")
    if found["lines"]:
        from tiewise.figures.theme import save

        save(figure(found), chosen.figure)
    print(f"\nwritten: {chosen.page}", file=sys.stderr)


if __name__ == "__main__":
    main()
