"""The CPU time of whole commands on a tiny input, with the start of Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.contenders import TREC_EVAL
from benchmarks.contenders import trec_eval as trec_eval_command
from benchmarks.shapes import files
from benchmarks.turns import Row

PLAIN, NUMPY, TABLE = "python -c pass", "python -c 'import numpy'", "tiewise evaluate, a table"


def start_times(folder: Path, turns: int, *, quick: bool = False) -> list[Row]:
    """The CPU seconds of each command, in its best turn; the commands take turns.

    `quick` uses the programs of this environment.
    """
    programs = Path(sys.executable).parent if quick else _install(folder)
    commands = _commands(programs, *files("tiny", folder))
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(turns + 1):  # the first turn fills the caches of files and compiled modules
        for name, words in commands.items():
            best[name] = min(best[name], _cpu_seconds(words))
    return [{"command": name, "cpu": cpu, "turns": turns} for name, cpu in best.items()]


def _cpu_seconds(words: list[str]) -> float:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}.")
    return used.ru_utime + used.ru_stime


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
