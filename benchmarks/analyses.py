"""The cost of comparisons, RBO, audits and rows for each query beside evaluations, and of the HTML report.

    python -m benchmarks.analyses ACTION QRELS RUN…    one process, which prints its time as JSON

The comparison is of two runs of a million rows; all pairs are those of 200 runs in memory. RBO is that of the first
lists of two runs, from their scores, and of the same lists without ties; for the package rbo they are sorted first.
Audit and rows for each query are of the large shapes. Such a process first does the same with a small run, so imports
do not count. Reports are on ten systems with 1,000 queries each, and on fifty; imports count there, as in the command.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contenders import MEASURES, dicts, load_tiewise, means, read
from benchmarks.shapes import SHAPES, PooledShape, files, reorder, short, write_files, write_run
from benchmarks.turns import Row, best_turns, run_module
from benchmarks.worker import clock, peak_memory

PAIR = PooledShape(1000, 1000, 100, 0.3)
SYSTEMS = PooledShape(1000, 100, 20, 0.3)
SYSTEM_COUNT, MANY_SYSTEMS = 10, 50
MANY, MANY_COUNT = PooledShape(100, 100, 20, 0.3), 200
RBO_CALLS = 100
RBO_ACTIONS = ("rbo", "rbo package", "rbo untied", "rbo package untied")

#: The actions on each shape whose files have a name.
ON_SHAPES = {"marco": ("means", "judged only", "audit"), "large": ("table", "per-query", "json")}


def analysis_times(folder: Path, repeat: int, enough: float, limit: float, *, quick: bool) -> Iterator[Row]:
    """The best turn of `compare`, of two calls of `evaluate`, of `write_page`, and of others on the large shapes."""
    pair, systems, counts, many, many_count = PAIR, SYSTEMS, (SYSTEM_COUNT, MANY_SYSTEMS), MANY, MANY_COUNT
    if quick:
        pair, systems, counts = PooledShape(10, 1000, 100, 0.3), PooledShape(10, 100, 20, 0.3), (2,)
        many, many_count = systems, 2
    of_pair = _write_runs(pair, 2, folder)
    inputs: list[tuple[Sequence[str], Any, list[Path]]] = [
        (("evaluate", "compare"), pair, of_pair),
        (RBO_ACTIONS, pair, of_pair),
        (("pairs",), many, _write_runs(many, many_count, folder)),
        *((("report",), systems, _write_runs(systems, count, folder)) for count in counts),
        *((actions, SHAPES[name], [*files(name, folder)]) for name, actions in ON_SHAPES.items() if not quick),
    ]
    for actions, shape, paths in inputs:
        words = {action: ["benchmarks.analyses", action, *map(str, paths)] for action in actions}
        turns = {
            action: lambda word=word, action=action: run_module(word, action, limit) for action, word in words.items()
        }
        for action, row in best_turns(turns, repeat, enough).items():
            yield {
                "action": action,
                "runs": len(paths) - 1,
                "queries": shape.queries,
                "documents": shape.documents,
            } | row


def _write_runs(shape: PooledShape, runs: int, folder: Path) -> list[Path]:
    """The paths of the qrels and of some runs for them."""
    stem = f"runs-{shape.queries}x{shape.documents}"
    qrels, first = write_files(shape, folder / f"{stem}.qrels", folder / f"{stem}-0.run")
    others = [folder / f"{stem}-{number}.run" for number in range(1, runs)]
    if not all(path.exists() for path in others):
        scores = read(first, float, 2, 4)
        for seed, path in enumerate(others, start=1):
            write_run(reorder(scores, seed), path)
    return [qrels, first, *others]


# -- in the process ---------------------------------------------------------------------------------------------------


def _load(action: str, qrels: Path, runs: Sequence[Path]) -> tuple[Any, Sequence[Any]]:
    """What is in memory when the clock starts."""
    if action == "pairs":
        both = [dicts(qrels, run) for run in runs]
        return both[0][0], [scores for _, scores in both]
    if action.startswith("rbo"):
        lists = [next(iter(dicts(qrels, run)[1].values())) for run in runs]
        if action.endswith("untied"):
            lists = [{doc: -float(place) for place, doc in enumerate(scores)} for scores in lists]
        return qrels, lists
    return qrels, runs


def _analyse(tw: Any, action: str, qrels: Any, runs: Sequence[Any], folder: Path) -> None:
    if action.startswith("rbo"):
        one, other = runs
        package = importlib.import_module("rbo") if action.startswith("rbo package") else None
        for _ in range(RBO_CALLS):
            if package is None:
                _ = tw.rbo(tw.Ranking.from_scores(one), tw.Ranking.from_scores(other), phi=0.9).extrapolated.expected
            else:
                sorted_lists = [sorted(scores, key=scores.__getitem__, reverse=True) for scores in runs]
                package.RankingSimilarity(*sorted_lists).rbo(p=0.9)
        return
    if action == "evaluate":
        for run in runs:
            means(tw.evaluate(qrels, run, MEASURES))
        return
    if action == "means":
        means(tw.evaluate(qrels, runs[0], MEASURES))
        return
    if action == "judged only":
        means(tw.evaluate(qrels, runs[0], MEASURES, judged_only=True))
        return
    if action == "audit":
        tw.audit(runs[0])
        return
    if action in ("table", "per-query", "json"):
        words = [] if action == "table" else ["--per-query"]
        output = ["--format", "json" if action == "json" else "tsv", "-o", str(folder / "out"), "--quiet"]
        status = importlib.import_module("tiewise.cli.program").status_of(
            ["evaluate", str(qrels), str(runs[0]), *words, *output]
        )
        assert status == 0, action
        return
    named = {f"system {number}": run for number, run in enumerate(runs, start=1)}
    if action == "compare":
        list(tw.compare(qrels, named, MEASURES).pairs())  # differences, tests and intervals are computed on demand
    elif action == "pairs":
        list(tw.compare(qrels, named).pairs())
    else:
        tw.write_page(qrels, named, folder / "report.html", MEASURES)


def main() -> None:
    warnings.simplefilter("ignore")
    action, *paths = sys.argv[1:]
    qrels, *runs = map(Path, paths)
    tw = load_tiewise()
    with tempfile.TemporaryDirectory() as name:
        if action != "report":
            warm_qrels, warm_run = short(Path(name))
            _analyse(tw, action, *_load(action, warm_qrels, [warm_run, warm_run]), Path(name))
        loaded = _load(action, qrels, runs)
        _, cpu, wall = clock(lambda: _analyse(tw, action, *loaded, Path(name)))
    memory = peak_memory(resource.RUSAGE_SELF)
    print(json.dumps({"cpu": cpu, "wall": wall, "peak_bytes": memory}))


if __name__ == "__main__":
    main()
