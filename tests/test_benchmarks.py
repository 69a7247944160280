"""The benchmarks: they compare what is comparable, take turns as they say, and judge their aims. Nothing is timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import __main__ as bench
from benchmarks import speed_page
from benchmarks.contenders import COMMANDS, MEASURES, TREC_EVAL
from benchmarks.shapes import DOCUMENTS, files, long_run
from benchmarks.turns import best, process
from benchmarks.worker import WARM

import tiewise as tw
from tiewise.data.native import native

ROOT = Path(__file__).parent.parent


def turns(*seconds):
    """A contender whose turns take so many seconds, CPU and wall; None fails."""
    left = iter(seconds)
    return lambda: (spent := next(left)) and dict(zip(("cpu", "wall"), spent, strict=True))


def test_the_best_turn_counts():
    found = best({"a": turns((3, 9), (1, 8), (2, 7)), "b": turns((2, 2), None), "c": turns(None)}, 3, enough=60)
    assert found == {"a": {"cpu": 1, "wall": 7, "turns": 3}, "b": {"cpu": 2, "wall": 2, "turns": 1}}


def test_who_took_long_enough_has_no_further_turn():
    assert best({"a": turns((1, 1))}, 3, enough=0.0) == {}
    assert best({"a": turns((1, 1))}, 3, enough=1e-12)["a"]["turns"] == 1


def test_other_means_stop_the_comparison():
    ours = dict.fromkeys(MEASURES, 0.25)
    bench.agree("trec_eval", ours | {"AP": 0.24996}, ours)  # what four digits leave open
    with pytest.raises(SystemExit, match=r"trec_eval says AP is 0\.2499, and Tiewise 0\.25"):
        bench.agree("trec_eval", ours | {"AP": 0.2499}, ours)


@pytest.mark.parametrize("name", ["tiewise", "tiewise, Python reader", "wc -l"])
def test_a_process_measures_one_contender(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    files(WARM, tmp_path)
    qrels, run = files("tiny", tmp_path)
    if name == "tiewise" and native() is None:
        pytest.skip("the compiled reader is not installed")
    found = process(["benchmarks.worker", "files", name, str(qrels), str(run)], name, limit=60)
    assert found is not None and found["cpu"] >= 0 and found["wall"] >= 0
    report = tw.evaluate(qrels, run, MEASURES)
    assert found["values"] == ({} if name in COMMANDS else {m: report[m].oblivious for m in MEASURES})


def test_a_failing_process_says_why(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv(TREC_EVAL, raising=False)
    nothing = str(tmp_path / "nothing")
    assert process(["benchmarks.worker", "files", "trec_eval", nothing, nothing], "trec_eval", limit=60) is None
    assert "trec_eval: no binary was given" in capsys.readouterr().err


def test_a_binary_of_trec_eval_is_asked_for_the_same_measures(monkeypatch):
    monkeypatch.setenv(TREC_EVAL, "/opt/trec_eval")
    words, read = COMMANDS["trec_eval"](Path("q"), Path("r"))
    assert words[:3] == ["/opt/trec_eval", "-m", "ndcg_cut.10"] and words[-2:] == ["q", "r"] and len(words) == 13
    printed = "map\tall\t0.1\nP_10\tall\t0.2\nrecall_100\tall\t0.3\nrecip_rank\tall\t0.4\nndcg_cut_10\tall\t0.5\n"
    assert read(printed) == {"nDCG@10": 0.5, "AP": 0.1, "RR": 0.4, "P@10": 0.2, "R@100": 0.3}


def test_long_runs_repeat_lists_under_new_queries(tmp_path):
    made = long_run(3, tmp_path)
    run, qrels = tw.read_run(made.run), tw.read_qrels(made.qrels)
    assert run.queries == ("1000000", "1000001", "1000002") and len(run) == made.lines == 3 * DOCUMENTS
    judged = {query: next(iter(docs)) for query, docs in qrels.to_dict().items()}
    assert all(doc in run.to_dict()[query] for query, doc in judged.items())
    made.delete()
    assert not list(tmp_path.iterdir())


def result(**changed):
    """Results in which Tiewise takes a second, trec_eval 20, pytrec_eval 10 and wc a half."""
    cpu = {"tiewise": 1.0, "trec_eval": 20.0, "pytrec_eval": 10.0, "wc -l": 0.5}
    row = {"door": "files", "shape": "marco", "lines": 10, "wall": 1.0, "peak_bytes": 5e7}
    rows = [row | {"tool": tool, "cpu": spent} for tool, spent in cpu.items()]
    packages = {"python": "3", "ranx": None}
    where = {"device": "a machine", "date": "2026-01-01", "load": [0.0, 0.5], "packages": packages}
    made = {"environment": where, "quick": False, "measures": MEASURES, "results": rows, "start": [], "lines": []}
    return made | changed


def test_aims_are_met_missed_or_not_measured():
    verdicts = {aim.name: (aim.shown, aim.verdict) for aim in speed_page.aims(result())}
    assert verdicts["marco: trec_eval over Tiewise"] == ("20×", "met")
    assert verdicts["marco: pytrec_eval over Tiewise"] == ("10×", "**missed**")
    assert verdicts["marco: Tiewise over `wc -l`"] == ("2×", "met")
    assert verdicts["marco: memory"] == ("50 MB", "met")
    assert verdicts["large: memory"] == ("–", "not measured")


@pytest.mark.parametrize(("load", "verdict"), [(0.2, "met"), (3.0, "not measured")])
def test_a_busy_machine_cannot_judge_threads(load, verdict):
    made = result()
    one = next(row for row in made["results"] if row["tool"] == "tiewise")
    made["results"].append(one | {"tool": "tiewise, 2 threads", "wall": one["wall"] / 1.9})
    made["environment"]["load"] = [load, load]
    found = {aim.name: aim.verdict for aim in speed_page.aims(made)}
    assert found["marco: one thread over two, wall time, on idle cores"] == verdict


def test_the_page_says_what_was_measured_and_what_not():
    page = speed_page.page(result())
    assert "3 of 4 aims are met. 13 could not be measured here." in page
    assert "| trec_eval | 20 s (20×) | 50 MB |" in page and "load 0.0 before and 0.5 after" in page
    assert "## From files" in page and "## From dictionaries" not in page and "ranx" not in page.split("## Aims")[0]


def test_a_disk_without_room_is_told():
    line = {"lines": 10**6, "bytes": 4 * 10**7, "wc": 0.01, "call": 0.001, "cpu": 0.05, "peak_bytes": 6e7}
    page = speed_page.page(result(lines=[line, line | {"wanted_bytes": 10**10}]))
    assert "The last run was to have 10 GB; the disk had no room for it." in page
    assert "| 1,000,000 | 40.0 MB | 50.0 | 49.0 | 10.0 | 60 MB |" in page


def test_the_page_is_written_anew_from_results(tmp_path):
    source, page = tmp_path / "results.json", tmp_path / "page.md"
    source.write_text(json.dumps(result()))
    command = [sys.executable, "-m", "benchmarks", "--from", str(source), "--page", str(page)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    assert page.read_text(encoding="utf-8") == speed_page.page(result())
