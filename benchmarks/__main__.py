"""Measure the speed of Tiewise beside other tools, print tables, and write the results and the page about them.

    python -m benchmarks --trec-eval PATH                 measure everything, about twenty minutes
    python -m benchmarks --quick                          small inputs, to see that it runs; docs are not changed
    python -m benchmarks --from benchmarks/results/speed.json    write the page again from results

Each contender runs in its own process, and contenders take turns, so noise of the machine affects all of them. The
time is the CPU time from the end of imports to the last value, in the best turn. Memory is the peak of the process,
with the data of the caller.
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
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.analyses import analysis_times
from benchmarks.contenders import MEASURES, SAME_TIES, TREC_EVAL, check_means, contender_names
from benchmarks.lines import line_costs
from benchmarks.shapes import CALL_DOCUMENTS, SHAPES, files
from benchmarks.speed_page import format_seconds, line_figure, sweep_figure
from benchmarks.start import start_times
from benchmarks.sweeps import sweep_costs
from benchmarks.turns import Row, best_turns, run_module
from benchmarks.whole_page import PAGE, RESULTS, ROOT, all_aims, whole_page
from benchmarks.worker import WARM_UP

SPEED, IMAGES = RESULTS / "speed.json", ROOT / "docs/img"

#: The shapes for each kind of input.
INPUTS = {
    "files": ("call-10", "robust", "robust-untied", "dl", "miracl", "marco", "large", "one-list"),
    "dicts": ("robust", "robust-untied", "dl", "miracl", "marco"),
    "columns": ("robust", "robust-untied", "dl", "miracl", "marco"),
}
QUICK_INPUTS = {"files": ("robust",), "dicts": ("robust",), "columns": ("tiny",)}
PARTS = ("calls", "analyses", "sweeps", "start", "lines")


def measure_shape(shape: str, source: str, options: argparse.Namespace) -> list[Row]:
    """The best turn of every contender for one shape and one kind of input."""
    qrels, run = files(shape, options.folder)
    print(f"\n{shape}, {source}: {SHAPES[shape]}")
    print(f"  {'tool':<24} {'CPU s':>9} {'÷ tiewise':>10} {'wall s':>9} {'MB':>7} {'turns':>5}  nDCG@10", flush=True)
    names = contender_names(source, shape, options.compiling)
    turns: dict[str, Callable[[], Row | None]] = {
        name: lambda name=name: run_module(  # type: ignore[misc]
            ["benchmarks.worker", source, name, str(qrels), str(run)], name, options.limit
        )
        for name in names
    }
    best = best_turns(turns, options.repeat, options.enough)
    if "tiewise" not in best:
        raise SystemExit("Tiewise itself failed: there is nothing to compare.")
    ours, lines = best["tiewise"], SHAPES[shape].queries * SHAPES[shape].documents
    for name, row in best.items():
        memory = f"{row['peak_bytes'] / 1e6:.0f}" if row["peak_bytes"] else "–"
        value = f"{row['values']['nDCG@10']:.6f}" if row["values"] else ""
        times = f"{row['cpu']:>9.4f} {row['cpu'] / ours['cpu']:>10.2f} {row['wall']:>9.4f}"
        print(f"  {name:<24} {times} {memory:>7} {row['turns']:>5}  {value}")
        if name in SAME_TIES or name.startswith("tiewise"):
            check_means(name, row["values"], ours["values"])
    return [{"shape": shape, "input": source, "tool": name, "lines": lines, **row} for name, row in best.items()]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All results."""
    load = os.getloadavg()[0]
    files(WARM_UP, options.folder)
    rows: list[Row] = []
    for source in options.inputs:
        for shape in (QUICK_INPUTS if options.quick else INPUTS)[source]:
            if options.quick or shape in options.shapes:
                rows += measure_shape(shape, source, options)
    results: dict[str, Any] = {"quick": options.quick, "measures": MEASURES, "results": rows}
    results |= {part: [] for part in ("calls", "many_runs", "tuples", "analyses", "sweeps", "start", "lines")}
    turns, quick = (options.repeat, options.enough, options.limit), options.quick
    if "calls" in options.parts:
        words = ["benchmarks.calls", str(options.folder), *(["--quick"] if quick else [])]
        calls = run_module(words, "calls", options.limit) or {"calls": [], "many_runs": [], "tuples": []}
        results["calls"] = print_rows("small calls", calls["calls"], _call_line)
        results["many_runs"] = print_rows("many runs with the same judgments", calls["many_runs"], _runs_line)
        results["tuples"] = print_rows("named tuples", calls["tuples"], _tuples_line)
    if "analyses" in options.parts:
        rows = print_rows("analyses", analysis_times(options.folder, *turns, quick=quick), _analysis_line)
        results["analyses"] = rows
    if "sweeps" in options.parts:
        results["sweeps"] = print_rows("sweeps", sweep_costs(options.folder, *turns, quick=quick), _sweep_line)
    if "start" in options.parts:
        starts = start_times(options.folder, 1 if quick else 31, quick=quick)
        results["start"] = print_rows("start-up", starts, _start_line)
    if "lines" in options.parts:
        most, size = (10**4, 0.001) if quick else (options.lines, options.gigabytes)
        results["lines"] = print_rows("cost of a line", line_costs(most, size, options.folder, *turns), _cost_line)
    return {"environment": _environment() | {"load": [load, os.getloadavg()[0]]}, **results}


def print_rows(title: str, rows: Iterable[Row], line: Callable[[Row], str]) -> list[Row]:
    """The rows as a list; each is printed as soon as it is measured."""
    print(f"\n{title}")
    result = []
    for row in rows:
        print(f"  {line(row)}", flush=True)
        result.append(row)
    return result


def _call_line(row: Row) -> str:
    size = f"{row['queries']} × {CALL_DOCUMENTS[row['queries']]}"
    return f"{size:<9} {row['tool']:<40} {format_seconds(row['cpu'])}"


def _runs_line(row: Row) -> str:
    times = (f"{name} {format_seconds(row[name])}" for name in ("prepare", "first", "later"))
    return f"{row['shape']:<14} {row['tool']:<12} {', '.join(times)}"


def _tuples_line(row: Row) -> str:
    return f"{row['shape']:<14} {row['tool']:<40} {format_seconds(row['cpu'])}"


def _analysis_line(row: Row) -> str:
    size = f"{row['runs']} runs of {row['queries']:,} × {row['documents']:,}"
    return f"{row['action']:<9} {size:<25} {format_seconds(row['cpu'])}"


def _sweep_line(row: Row) -> str:
    return f"{row['sweep']:<7} {row['value']:>5}  {row['input']:<6} {row['tool']:<12} {format_seconds(row['cpu'])}"


def _start_line(row: Row) -> str:
    return f"{row['command']:<28} {format_seconds(row['cpu'])}"


def _cost_line(row: Row) -> str:
    each = row["cpu"] / row["lines"] * 1e9
    return f"{row['lines']:>13,} lines: {each:.1f} ns a line, {row['peak_bytes'] / 1e6:.0f} MB"


def _environment() -> dict[str, Any]:
    """The machine, the date and the versions."""
    packages: dict[str, str | None] = {"python": platform.python_version()}
    for name in ("tiewise", "numpy", "pytrec_eval-terrier", "ir_measures", "ranx", "tie-aware-retrieval-metrics"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    if TREC_EVAL in os.environ:
        output = subprocess.run([os.environ[TREC_EVAL], "-v"], capture_output=True, text=True)
        packages["trec_eval"] = (output.stderr + output.stdout).strip().removeprefix("trec_eval version ")
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {"device": _device(), "date": today, "packages": packages}


def _device() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores"


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs and one turn, to see that it runs")
    parser.add_argument("--trec-eval", default=shutil.which("trec_eval"), metavar="PATH", help="a trec_eval binary")
    parser.add_argument("--shapes", type=_split, default=[*INPUTS["files"]], help=f"from {', '.join(INPUTS['files'])}")
    parser.add_argument("--inputs", type=_split, default=[*INPUTS], help=f"from {', '.join(INPUTS)}")
    parser.add_argument("--parts", type=_split, default=[*PARTS], help=f"from {', '.join(PARTS)}")
    parser.add_argument("--compiling", action="store_true", help="also ranx, which compiles for half a minute a turn")
    parser.add_argument("--repeat", type=int, default=5, help="turns of each contender")
    parser.add_argument("--enough", type=float, default=12.0, help="seconds after which a contender has no more turns")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that one process may take")
    parser.add_argument("--lines", type=int, default=10**8, help="of the longest run for the cost of a line")
    parser.add_argument("--gigabytes", type=float, default=10.0, help="the size of the largest run")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/bench", help="for generated data")
    parser.add_argument(
        "--from", type=Path, dest="source", metavar="JSON", help="results to show, instead of measuring"
    )
    parser.add_argument("--json", type=Path, help="output for results (default: benchmarks/results/speed.json)")
    parser.add_argument("--page", type=Path, help="output for the page (default: docs/speed.md)")
    parser.add_argument("--images", type=Path, help="folder for the figures (default: docs/img)")
    options = parser.parse_args()
    if options.quick:
        options.repeat = 1
    defaults = (options.folder / SPEED.name, options.folder / PAGE.name, options.folder)
    defaults = defaults if options.quick else (SPEED, PAGE, IMAGES)
    options.json, options.page = options.json or defaults[0], options.page or defaults[1]
    options.images = options.images or defaults[2]
    return options


def _split(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    options = parse_options()
    if options.trec_eval:
        os.environ[TREC_EVAL] = options.trec_eval
    if options.source:
        result = json.loads(options.source.read_text())
    else:
        result = measure(options)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    print("\naims")
    for aim in all_aims(result):
        print(f"  {aim.name:<72} {aim.target:>9} {aim.value:>9}  {aim.verdict.strip('*')}")
    options.page.write_text(whole_page(result), encoding="utf-8")
    figures = {"lines": ("speed-lines.svg", line_figure), "sweeps": ("speed-sweeps.svg", sweep_figure)}
    for part, (name, figure) in figures.items():
        if result.get(part):
            from tiewise.figures.theme import save

            save(figure(result), options.images / name)
    print(f"\nwritten: {options.page}", file=sys.stderr)


if __name__ == "__main__":
    main()
