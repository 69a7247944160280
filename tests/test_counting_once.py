"""Each run is counted once: how often a command opens its files, and what the counts are enough for."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import tiewise as tw
from tiewise.io.file_run import FileRun

#: Runs a command in this process, and prints how often each file was opened for reading.
COMMAND = """
import collections, json, os, sys
opened, folder = collections.Counter(), sys.argv[1]
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[1] in (None, "r", "rb"):
        name = os.path.abspath(arguments[0])
        if os.path.dirname(name) == folder:
            opened[os.path.basename(name)] += 1
sys.addaudithook(hook)
from tiewise.cli import main
sys.argv = ["tiewise", *sys.argv[2:]]
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
print(json.dumps(opened), file=sys.stderr)
"""

#: A file is opened once to recognise its format, and once to be counted; its SHA-256 takes another time. A small
#: file is opened once for format and counts.
FORMAT, COUNT, ROWS, HASH = 1, 1, 1, 1
COMMANDS = {
    "evaluate qrels a": FORMAT + COUNT,
    "evaluate qrels a b -m nDCG@10 -m Bpref -q": FORMAT + COUNT,
    "evaluate qrels a --tools": FORMAT + COUNT,
    "evaluate qrels a --format json": FORMAT + COUNT + HASH,
    "evaluate qrels a -J": FORMAT + COUNT,
    "compare qrels a b": FORMAT + COUNT,
    "compare qrels a b --format markdown": FORMAT + COUNT,
    "compare qrels a b --orders shared": FORMAT + COUNT + ROWS,
    "audit a": FORMAT + COUNT,
    "audit a --qrels qrels": FORMAT + COUNT,
    "similarity a b": ROWS,
    "report qrels a b -o page.html": ROWS,
}


@pytest.fixture
def files(tmp_path: Path, n_queries: int) -> Path:
    rows = {
        "a": [(q, d, (7 * d + q) % 5) for q in range(n_queries) for d in range(20)],
        "b": [(q, d, (3 * d + q) % 7) for q in range(n_queries) for d in range(20)],
    }
    for name, lines in rows.items():
        text = (f"q{q} Q0 d{d} 1 {score} {name}\n" for q, d, score in lines)
        (tmp_path / name).write_text("".join(text))
    (tmp_path / "qrels").write_text("".join(f"q{q} 0 d{d} {d % 3}\n" for q in range(6) for d in range(0, 20, 3)))
    return tmp_path


@pytest.fixture
def n_queries() -> int:
    return 6


@pytest.mark.parametrize("n_queries", [6, 300])
@pytest.mark.parametrize("command", COMMANDS)
def test_how_often_a_command_opens_a_run(files: Path, n_queries: int, command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, str(files), *command.split()],
        cwd=files,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    opened = json.loads(done.stderr.splitlines()[-1])
    runs = [name for name in ("a", "b") if f" {name}" in f" {command} "]
    times = COMMANDS[command] if n_queries > 6 else max(COMMANDS[command] - FORMAT, 1)
    assert {name: opened.get(name, 0) for name in runs} == dict.fromkeys(runs, times)
    assert opened.get("qrels", 0) <= 1


def test_a_report_needs_no_run_after_counting(files: Path) -> None:
    report = tw.evaluate(files / "qrels", files / "a", ["nDCG@10", "RR"], complete=True)
    wanted = report.oblivious_by_tool(), report.at(["Success@3", "P@5"]).to_dict(per_query=True)["queries"]
    again = pickle.loads(pickle.dumps(report))
    (files / "a").unlink()
    for one in (report, again):
        assert (one.oblivious_by_tool(), one.at(["Success@3", "P@5"]).to_dict(per_query=True)["queries"]) == wanted
    assert again.provenance.run == {
        "path": str(files / "a"),
        "sha256": again.provenance.run["sha256"],
        "format": "trec",
    }


def test_a_measure_of_judged_non_relevant_documents_counts_the_run_again(files: Path) -> None:
    report = tw.evaluate(files / "qrels", files / "a", "nDCG@10", complete=True)
    bpref = tw.evaluate(files / "qrels", files / "a", "Bpref", complete=True).to_dict(per_query=True)["queries"]
    assert report.at("Bpref").to_dict(per_query=True)["queries"] == bpref
    assert pickle.loads(pickle.dumps(report)).at("Bpref").to_dict(per_query=True)["queries"] == bpref  # counted before
    fresh = tw.evaluate(files / "qrels", files / "a", "nDCG@10", complete=True)
    with pytest.raises(tw.TiewiseError, match="without the documents of label 0"):
        pickle.loads(pickle.dumps(fresh)).at("Bpref")
    (files / "a").unlink()
    with pytest.raises(tw.TiewiseError, match="cannot be read again"):
        fresh.at("Bpref")


def test_a_dictionary_is_not_counted_again() -> None:
    """It may have changed: a report must not mix two states of a run."""
    qrels = {"q": {"a": 1, "b": 0, "c": 0}}
    run = {"q": {"b": 3.0, "a": 2.0, "c": 1.0}}
    report = tw.evaluate(qrels, run, "nDCG")
    run["q"] = {"a": 1.0}
    assert report.at("RR")["RR"].expected == 0.5
    with pytest.raises(tw.TiewiseError, match="Evaluate it again with this measure"):
        report.at("Bpref")
    assert tw.evaluate(qrels, tw.Run.from_dict(run), "nDCG").at("Bpref")["Bpref"].expected == 1.0


@pytest.mark.parametrize("orders", ["independent", "per-query", "shared"])
def test_a_comparison_needs_no_run_after_counting(files: Path, orders: str) -> None:
    runs = {"a": files / "a", "b": files / "b"}
    compared = tw.compare(files / "qrels", runs, ["nDCG@10", "AP"], orders=orders, complete=True)
    for name in runs:
        (files / name).unlink()
    pairs = [pair.to_dict() for pair in compared.pairs()]
    assert [pair.to_dict() for pair in pickle.loads(pickle.dumps(compared)).pairs()] == pairs
    assert all(pair["tools"] for pair in pairs)


def test_the_page_counts_each_run_twice(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    read = FileRun._read
    monkeypatch.setattr(FileRun, "_read", lambda run, counting: calls.append(run) or read(run, counting))
    tw.write_page(files / "qrels", {"a": files / "a", "b": files / "b"}, files / "page.html", complete=True)
    # The comparison also counts documents of label 0: it notes how much is judged.
    assert len(calls) == 4
