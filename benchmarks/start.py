"""The start-up time of whole commands on a tiny input: wall time, as a user at a terminal sees it."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.contenders import TREC_EVAL
from benchmarks.contenders import trec_eval as trec_eval_command
from benchmarks.shapes import files
from benchmarks.turns import Row

PLAIN, NUMPY, TABLE = "python -c pass", "python -c 'import numpy'", "tiewise evaluate, a table"


def start_times(folder: Path, turns: int, *, quick: bool = False) -> list[Row]:
    """The median seconds of each command; the commands take turns. `quick` uses the programs of this environment."""
    programs = Path(sys.executable).parent if quick else _install(folder)
    commands = _commands(programs, *files("tiny", folder))
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(turns + 1):
        for name, words in commands.items():
            start = time.perf_counter()
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if turn:  # the first turn fills the caches of files and compiled modules
                seconds[name].append(time.perf_counter() - start)
    return [{"command": name, "wall": statistics.median(spent), "turns": turns} for name, spent in seconds.items()]


def _install(folder: Path) -> Path:
    """The programs of a regular install: an editable install is slower, because it looks up every module it imports."""
    programs = folder / "installed" / "bin"
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(programs.parent)], check=True)
    here = Path(__file__).parents[1]
    subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", here, "pytrec_eval-terrier"], check=True)
    return programs


def _commands(programs: Path, qrels: Path, run: Path) -> dict[str, list[str]]:
    python, tiewise = str(programs / "python"), str(programs / "tiewise")
    script = "import pytrec_eval as p, sys; a, b = map(open, sys.argv[1:])"
    script += "; p.RelevanceEvaluator(p.parse_qrel(a), {'map'}).evaluate(p.parse_run(b))"
    commands = {
        PLAIN: [python, "-c", "pass"],
        NUMPY: [python, "-c", "import numpy"],
        TABLE: [tiewise, "evaluate", str(qrels), str(run), "--format", "table"],
        "tiewise evaluate, TSV": [tiewise, "evaluate", str(qrels), str(run), "--format", "tsv"],
        "pytrec_eval in a script": [python, "-c", script, str(qrels), str(run)],
    }
    if TREC_EVAL in os.environ:
        commands["trec_eval"] = trec_eval_command(qrels, run)[0]
    return commands
