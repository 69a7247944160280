"""The benchmarks: generated data, turns, comparable results, aims and the page. Nothing is timed here."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from benchmarks import growth, growth_page, speed_page, whole_page
from benchmarks.__main__ import SPEED
from benchmarks.calls import DROP_INS, OBJECTS
from benchmarks.contenders import COMMANDS, CONTENDERS, MEASURES, PREPARED, TREC_EVAL, check_means, dicts
from benchmarks.shapes import DOCUMENTS, SHAPES, PooledShape, files, long_run, reorder, write_files
from benchmarks.turns import best_turns, run_module
from benchmarks.worker import WARM_UP

import tiewise as tw
from tiewise.data.native import native
from tiewise.io import streaming

ROOT = Path(__file__).parent.parent


def turns(*seconds):
    """A contender whose turns take the given CPU and wall seconds; None fails."""
    left = iter(seconds)
    return lambda: (spent := next(left)) and dict(zip(("cpu", "wall"), spent, strict=True))


def test_best_turn_counts():
    found = best_turns({"a": turns((3, 9), (1, 8), (2, 7)), "b": turns((2, 2), None), "c": turns(None)}, 3, enough=60)
    assert found == {"a": {"cpu": 1, "wall": 7, "turns": 3}, "b": {"cpu": 2, "wall": 2, "turns": 1}}


def test_slow_contender_has_no_further_turn():
    assert best_turns({"a": turns((1, 1))}, 3, enough=0.0) == {}
    assert best_turns({"a": turns((1, 1))}, 3, enough=1e-12)["a"]["turns"] == 1


def test_different_means_stop_the_comparison():
    ours = dict.fromkeys(MEASURES, 0.25)
    check_means("trec_eval", ours | {"AP": 0.24996}, ours)  # equal to four digits
    with pytest.raises(SystemExit, match=r"trec_eval has AP 0\.2499, Tiewise has 0\.25"):
        check_means("trec_eval", ours | {"AP": 0.2499}, ours)


@pytest.mark.parametrize("name", ["tiewise", "tiewise, Python reader", "wc -l"])
def test_worker_measures_one_contender(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    files(WARM_UP, tmp_path)
    qrels, run = files("tiny", tmp_path)
    if name == "tiewise" and native() is None:
        pytest.skip("the compiled reader is not installed")
    found = run_module(["benchmarks.worker", "files", name, str(qrels), str(run)], name, limit=60)
    assert found is not None and found["cpu"] >= 0 and found["wall"] >= 0
    report = tw.evaluate(qrels, run, MEASURES)
    assert found["values"] == ({} if name in COMMANDS else {m: report[m].oblivious for m in MEASURES})


def test_failing_process_prints_the_reason(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv(TREC_EVAL, raising=False)
    nothing = str(tmp_path / "nothing")
    assert run_module(["benchmarks.worker", "files", "trec_eval", nothing, nothing], "trec_eval", limit=60) is None
    assert "trec_eval: no binary was given" in capsys.readouterr().err


def test_trec_eval_computes_the_same_measures(monkeypatch):
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


def digest(*paths):
    return [hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in paths]


def test_earlier_shapes_have_the_same_bytes(tmp_path):
    """Results of different dates can be compared only if the generated files do not change."""
    expected = {
        "tiny": ["d857058bb451b224", "fb7c1734c22581d3"],
        "miracl": ["e716095d899751a4", "f988368834da32a5"],
    }
    assert {name: digest(*files(name, tmp_path)) for name in expected} == expected


@pytest.mark.parametrize("name", ["robust", "robust-untied"])
def test_robust_shapes_have_the_proportions_of_robust_2003(name, tmp_path):
    labels, scores = dicts(*files(name, tmp_path))
    assert len(labels) == len(scores) == 100
    assert {len(docs) for docs in labels.values()} == {1288} and {len(docs) for docs in scores.values()} == {1000}
    judgments = Counter(label for docs in labels.values() for label in docs.values())
    assert (judgments[1] + judgments[2]) / 128_800 == pytest.approx(0.047, abs=0.004)
    assert judgments[2] / (judgments[1] + judgments[2]) == pytest.approx(0.067, abs=0.01)
    judged = [labels[query][doc] for query, docs in scores.items() for doc in docs if doc in labels[query]]
    assert len(judged) / 128_800 == pytest.approx(0.34, abs=0.01)
    assert sum(label > 0 for label in judged) / (judgments[1] + judgments[2]) == pytest.approx(0.48, abs=0.02)
    assert tied_share(scores) == pytest.approx(SHAPES[name].tied, abs=0.005)


def tied_share(scores):
    groups = [size for docs in scores.values() for size in Counter(docs.values()).values()]
    return sum(size for size in groups if size > 1) / sum(groups)


@pytest.mark.parametrize("tied", [0.0, 0.03, 0.3, 0.97, 1.0])
def test_pooled_shapes_have_the_tied_share(tied, tmp_path):
    paths = write_files(PooledShape(30, 1000, 10, tied), tmp_path / "a.qrels", tmp_path / "a.run")
    labels, scores = dicts(*paths)
    assert tied_share(scores) == pytest.approx(tied, abs=0.01 if 0 < tied < 1 else 0)
    assert {len(docs) for docs in labels.values()} == {10}
    assert all(list(docs.values()) == sorted(docs.values(), reverse=True) for docs in scores.values())
    again = write_files(PooledShape(30, 1000, 10, tied), tmp_path / "b.qrels", tmp_path / "b.run")
    assert digest(*paths) == digest(*again)


def test_reordered_runs_keep_documents_and_scores():
    run = {"q": {f"d{number}": 1.0 / (number // 3 + 1) for number in range(50)}}
    other = reorder(run, 1)
    assert other != run and other == reorder(run, 1)
    assert set(other["q"]) == set(run["q"]) and list(other["q"].values()) == list(run["q"].values())


@pytest.mark.filterwarnings("ignore::tiewise.TiewiseWarning")
@pytest.mark.skipif(native() is None, reason="the compiled reader is not installed")
@pytest.mark.parametrize("source", ["dicts", "columns"])
def test_tiewise_contenders_have_the_same_means(source, tmp_path, monkeypatch):
    monkeypatch.setenv("TIEWISE_READER", "compiled")  # contenders set both: restore them afterwards
    monkeypatch.setattr(streaming, "THREADS", 1)
    qrels, run = write_files(PooledShape(5, 100, 20, 0.5), tmp_path / "a.qrels", tmp_path / "a.run")
    report = tw.evaluate(qrels, run, MEASURES)
    for name, contender in CONTENDERS[source].items():
        if name.startswith("tiewise"):
            prepare, timed = contender(qrels, run)
            assert timed(prepare()) == pytest.approx({m: report[m].oblivious for m in MEASURES}, abs=1e-9)


def result(**changed):
    """Results in which Tiewise takes 1 second, trec_eval 20, pytrec_eval 10 and wc 0.5; only the earlier parts."""
    cpu = {"tiewise": 1.0, "trec_eval": 20.0, "pytrec_eval": 10.0, "wc -l": 0.5}
    row = {"input": "files", "shape": "marco", "lines": 10, "wall": 1.0, "peak_bytes": 5e7}
    rows = [row | {"tool": tool, "cpu": spent} for tool, spent in cpu.items()]
    packages = {"python": "3", "ranx": None}
    where = {"device": "a machine", "date": "2026-01-01", "load": [0.0, 0.5], "packages": packages}
    made = {"environment": where, "quick": False, "measures": MEASURES, "results": rows, "start": [], "lines": []}
    return made | changed


def new_parts():
    """The parts that earlier results do not have, and rows of the shape robust."""
    dictionaries = {"tiewise": 0.04, PREPARED: 0.02, "pytrec_eval": 0.05}
    rows = [("dicts", tool, cpu) for tool, cpu in dictionaries.items()]
    rows += [("files", "tiewise", 0.03), ("files", "trec_eval", 0.09)]
    robust = [
        {"input": source, "shape": "robust", "tool": tool, "lines": 10**5, "cpu": cpu, "wall": cpu, "peak_bytes": 6e7}
        for source, tool, cpu in rows
    ]
    calls = [
        {"queries": queries, "tool": tool, "cpu": cpu * queries}
        for queries in (1, 10, 50)
        for tool, cpu in {
            OBJECTS: 5e-5,
            **dict.fromkeys(DROP_INS, 1e-4),
            **dict.fromkeys(DROP_INS.values(), 2e-4),
        }.items()
    ]
    times = {"prepare": 0.01, "first": 0.03, "later": 0.01}
    runs = [{"shape": "robust", "tool": "tiewise", "runs": 20, **times}]
    size = {"runs": 2, "queries": 1000, "documents": 1000}
    analyses = [
        size | {"action": action, "cpu": cpu, "wall": cpu} for action, cpu in (("evaluate", 0.2), ("compare", 0.3))
    ]
    analyses.append(size | {"action": "report", "runs": 10, "documents": 100, "cpu": 4.0, "wall": 4.5})
    sweeps = [
        {"sweep": sweep, "value": value, "input": "dicts", "tool": tool, "cpu": cpu}
        for sweep, value in (("judged", 10), ("judged", 3000), ("tied", 97))
        for tool, cpu in (("tiewise", 0.02), ("pytrec_eval", 0.05))
    ]
    parts = {"calls": calls, "many_runs": runs, "analyses": analyses, "sweeps": sweeps}
    return {"results": result()["results"] + robust, **parts}


def test_aims_are_met_missed_or_not_measured():
    verdicts = {aim.name: (aim.value, aim.verdict) for aim in speed_page.aims(result())}
    assert verdicts["marco: trec_eval over Tiewise"] == ("20×", "met")
    assert verdicts["marco: pytrec_eval over Tiewise"] == ("10×", "**missed**")
    assert verdicts["marco: Tiewise over `wc -l`"] == ("2×", "met")
    assert verdicts["marco: memory"] == ("50 MB", "met")
    assert verdicts["large: memory"] == ("–", "not measured")
    assert verdicts["robust, dictionaries: pytrec_eval over Tiewise"] == ("–", "not measured")
    assert verdicts["marco, files: pytrec_eval over Tiewise, not less than before"] == ("10×", "**missed**")


def test_aims_of_pools_calls_and_analyses():
    every = {aim.name: (aim.target, aim.value, aim.verdict) for aim in speed_page.aims(result(**new_parts()))}
    assert every["robust, dictionaries: pytrec_eval over Tiewise"] == ("≥ 1.2×", "1.25×", "met")
    assert every["robust, prepared `Qrels`: pytrec_eval over Tiewise"] == ("≥ 2×", "2.5×", "met")
    assert every["robust, files: trec_eval over Tiewise"] == ("≥ 3×", "3×", "met")
    assert every["robust-untied, files: trec_eval over Tiewise"][0] == "≥ 6×"
    assert every["drop-in, 50 × 100: pytrec_eval over Tiewise"] == ("≥ 1×", "0.5×", "**missed**")
    assert every["drop-in, 1 × 100: ir_measures over Tiewise"] == ("≥ 0.5×", "0.5×", "met")
    assert every["one call of `evaluate`, 10 × 100, in memory"] == ("≤ 0.6 ms", "0.5 ms", "met")
    assert every["robust, many runs: a later run over the first with its `Qrels`"] == ("≤ 0.5×", "0.25×", "met")
    name = "`compare`, 2 × 1,000,000 rows: over two calls of `evaluate`"
    assert every[name] == ("≤ 1.2×", "1.5×", "**missed**")
    assert every["`write_page`, 10 systems × 1,000 queries"] == ("≤ 5 s", "4 s", "met")
    assert every["large: one thread over two, wall time, on idle cores"][0] == "≥ 1.6×"
    quick = {aim.name: aim.verdict for aim in speed_page.aims(result(quick=True, **new_parts()))}
    assert quick[name] == "not measured"  # quick results are of other sizes


@pytest.mark.parametrize(("load", "verdict"), [(0.2, "met"), (3.0, "not measured")])
def test_a_busy_machine_cannot_judge_threads(load, verdict):
    made = result()
    one = next(row for row in made["results"] if row["tool"] == "tiewise")
    made["results"].append(one | {"tool": "tiewise, 2 threads", "wall": one["wall"] / 1.9})
    made["environment"]["load"] = [load, load]
    found = {aim.name: aim.verdict for aim in speed_page.aims(made)}
    assert found["marco: one thread over two, wall time, on idle cores"] == verdict


def test_page_shows_what_was_measured():
    page = speed_page.page(result())
    aims = speed_page.aim_section(list(speed_page.aims(result())))
    assert "3 of 5 are met, 59 were not measured." in aims and "| marco: trec_eval over Tiewise |" not in aims
    assert "| marco: pytrec_eval over Tiewise | ≥ 18× | 10× |" in aims
    assert "From files Tiewise is 20 times as fast as trec_eval and 10 times as fast as pytrec_eval." in page
    assert "| a file of 7,000,000 rows, 6,980 queries | 20× | 10× | – |" in page
    assert "| trec_eval | 20 s (20×) | 50 MB |" in page and "load 0.0 before and 0.5 after" in page
    assert "## From files" in page and "## From dictionaries" not in page and "ranx" not in page
    assert "## Small calls" not in page and "## Judgments and ties" not in page


def test_page_has_a_section_for_each_new_part():
    page = speed_page.page(result(**new_parts()))
    assert f"| {PREPARED} | 20 ms (0.5×) | 60 MB |" in page
    assert "| tiewise drop-in for pytrec_eval, one evaluator | 200 µs | 2 ms | 10 ms |" in page
    assert "in a loop, 1 list of 100 | – | 0.5× | 0.5× |" in page
    assert "| `write_page` | 10 runs of 1,000 × 100 | 4 s | – |" in page
    assert "divided by that of Tiewise: pytrec_eval 2.5 to 2.5 (dictionaries)." in page


def test_figure_of_sweeps_has_a_line_for_each_tool():
    chart = speed_page.sweep_figure(result(**new_parts())).to_dict()
    text = json.dumps(chart)
    assert "pytrec_eval, dictionaries" in text and "trec_eval, files" not in text and len(chart["hconcat"]) == 2


def test_page_tells_the_cost_of_a_line():
    line = {"lines": 10**6, "bytes": 4 * 10**7, "wc": 0.01, "call": 0.001, "cpu": 0.05, "peak_bytes": 6e7}
    page = speed_page.page(result(lines=[line, line | {"lines": 2 * 10**6, "cpu": 0.119}]))
    assert "costs 49 to 59 ns in runs of 1,000,000 to 2,000,000 lines, and memory does not grow (60 MB)." in page


@pytest.mark.parametrize("key", ["input", "door"])
def test_page_is_written_again_from_results(key, tmp_path):
    """Results of earlier versions, with `door` for `input`, give the same page."""
    source, page = tmp_path / "results.json", tmp_path / "page.md"
    rows = [{key if name == "input" else name: value for name, value in row.items()} for row in result()["results"]]
    source.write_text(json.dumps(result(results=rows)))
    command = [sys.executable, "-m", "benchmarks", "--from", str(source), "--page", str(page)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    assert page.read_text(encoding="utf-8") == whole_page.whole_page(result())


def test_page_has_every_benchmark():
    text = whole_page.PAGE.read_text(encoding="utf-8")
    assert text == whole_page.whole_page() and text.startswith(speed_page.page(json.loads(SPEED.read_text())))
    assert {"# Speed", "## Growth", "## Scoring", "## Aims"} <= set(text.splitlines()) and text.count("\n# ") == 0
    results = json.loads(growth.RESULTS.read_text())
    assert {row["command"] for row in results["commands"]} <= set(growth.CALLS)


def test_growth_of_commands(tmp_path, monkeypatch):
    """Commands run on the inputs that are made; an axis that a command lacks is left out."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(growth, "AXES", {"group": "tie group"})
    monkeypatch.setattr(growth, "CALLS", {name: growth.CALLS[name] for name in ("evaluate", "score")})
    rows = growth.measure(growth.Size(2, 20, 2, 2), turns=1)
    assert [set(row) for row in rows] == [{"command", "base", "group"}, {"command", "base"}]
    assert all(cost["cpu"] > 0 and cost["mb"] > 0 for row in rows for cost in row.values() if isinstance(cost, dict))


def test_growth_page_shows_each_axis():
    cost = {"cpu": 0.5, "mb": 40}
    row = {"command": "score", "base": cost, "queries": {"cpu": 2.0, "mb": 1400}, "documents": cost}
    result = {"date": "2026-01-02", "machine": "x", "python": "3", "factor": 10, "dimensions": 64, "commands": [row]}
    text = growth_page.page(result | {"base": {"queries": 1, "documents": 2, "systems": 3, "group": 4}})
    assert "| `score` | 0.50 s, 40 MB | 4.0 and 35.0 | 1.0 and 1.0 | – | – |" in text
