"""The command line as a whole, and `tiewise evaluate`; as processes where streams and exit codes are tested."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pyarrow.parquet
import pytest

import tiewise as tw
from tiewise.analysis.report_tables import REPORT_COLUMNS, Reports
from tiewise.analysis.tool_values import TOOL_COLUMNS
from tiewise.cli.inputs import name_of_shards
from tiewise.cli.program import COMMANDS, all_commands
from tiewise.data.native import native
from tiewise.metrics import names as registry
from tiewise.results.wording import spelled_for_shell

EXAMPLE = Path(tw.__file__).parent / "example"
EXAMPLE_RUNS = [str(EXAMPLE / name) for name in ("minilm-bf16.trec.gz", "bm25.trec.bz2")]

QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 c 2\nq2 0 d 1\n"
# RR is .875 [.75, 1], and .75 in the order of trec_eval, which lists b before a.
TIED = "q1 Q0 a 1 0.5 tied\nq1 Q0 b 2 0.5 tied\nq1 Q0 x 3 0.1 tied\nq2 Q0 c 1 0.9 tied\nq2 Q0 y 2 0.8 tied\n"
# RR is .75, whatever the order.
STRICT = "q1 Q0 b 1 0.9 s\nq1 Q0 a 2 0.8 s\nq2 Q0 c 1 0.9 s\nq2 Q0 d 2 0.8 s\n"
# Half of the queries; RR is 1.
HALF = "q1 Q0 a 1 0.9 h\nq1 Q0 b 2 0.8 h\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    for name, text in (("qrels.txt", QRELS), ("tied.trec", TIED), ("strict.trec", STRICT), ("half.trec", HALF)):
        (folder / name).write_text(text)
    return folder


# -- evaluate -------------------------------------------------------------------------------------------------


def test_shards_need_the_ray_engine(tiewise, tmp_path):
    shards = "for shards of one run, use `tiewise evaluate --engine ray` or tiewise.adapters.ray."
    for given, words in (
        ("*.trec", f"*.trec: there is no such file. Give the files themselves; or, {shards}"),
        (str(tmp_path), f"is a folder. Give a file in it; or, {shards}"),
    ):
        done = tiewise("evaluate", "qrels.txt", given, code=2)
        assert words in done.err


@pytest.mark.parametrize(
    "words", ["evaluate qrels.txt .", "evaluate qrels.txt ./", "report qrels.txt . -o page.html", "audit ."]
)
def test_the_current_folder_is_no_run(process, folder, words):
    done = process(*words.split(), code=2)
    assert done.err.startswith("tiewise: .: is a folder. Give a file in it;") and done.err.count("\n") == 1
    assert not done.out and not (folder / "page.html").exists()


def test_name_of_a_run_in_shards(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("runs/bm25.trec").mkdir(parents=True)
    Path("runs/odd[1].trec").touch()
    for given, name in (
        ("runs", "runs"),
        ("runs/bm25.trec/", "bm25"),
        ("runs/*.parquet", "runs"),
        ("runs/dense-*.parquet", "dense"),
        ("runs/dense.part-???.trec.gz", "dense.part"),
        ("runs/**/[0-9].trec", "runs"),
        ("runs/odd[1].trec", "odd[1]"),
        ("*.trec", tmp_path.name),
        (".", tmp_path.name),
    ):
        assert name_of_shards([Path(given)]) == name, given
    assert name_of_shards([Path("a"), Path("b")]) == "2 shards"
    assert name_of_shards([Path("a"), Path("b")], ["mine"]) == "mine"


def test_tsv_has_stable_columns(tiewise):
    done = tiewise("evaluate", "qrels.txt", "tied.trec", "-m", "RR", "--format", "tsv")
    assert done.out.split("\n")[0].split("\t") == list(REPORT_COLUMNS)
    (row,) = done.rows
    assert {name: value for name, value in row.items() if name != "std"} == {
        "run": "tied",
        "measure": "RR",
        "query": "all",
        "expected": "0.875",
        "ci_low": "0.0",
        "ci_high": "1.0",
        "minimum": "0.75",
        "maximum": "1.0",
        "oblivious": "0.75",
        "bias": "-0.125",
        "range": "0.25",
        "z": "-1.0",
        "residual": "",
        "cut_lower": "",
        "cut_upper": "",
        "expected_method": "exact",
        "extremes_method": "exact",
        "std_method": "exact",
        "standard_error": "",
        "rerun_low": "",
        "rerun_high": "",
        "rerun_std": "",
        "noise_expected": "",
        "noise_std": "",
    }
    assert float(row["std"]) == pytest.approx(0.125)


def test_column_names():
    assert (
        " ".join(REPORT_COLUMNS)
        == "run measure query expected ci_low ci_high minimum maximum std oblivious bias range z residual cut_lower "
        "cut_upper expected_method extremes_method std_method standard_error rerun_low rerun_high rerun_std "
        "noise_expected noise_std"
    )
    assert " ".join(TOOL_COLUMNS) == "run measure tool version value bias note"


def test_per_query_and_no_summary(tiewise):
    both = tiewise("evaluate", "qrels.txt", "tied.trec", "-q", "-m", "RR").rows
    assert [(row["query"], row["expected"]) for row in both] == [("q1", "0.75"), ("q2", "1.0"), ("all", "0.875")]
    queries = tiewise("evaluate", "qrels.txt", "tied.trec", "-qn", "-m", "RR,AP").rows
    assert [(row["measure"], row["query"]) for row in queries] == [
        ("RR", "q1"),
        ("RR", "q2"),
        ("AP", "q1"),
        ("AP", "q2"),
    ]


def test_spellings_of_measures(tiewise):
    done = tiewise("evaluate", "qrels.txt", "tied.trec", "-m", "ndcg_cut.5,10 map", "-m", "P(rel=2)@5,R@100")
    assert [row["measure"] for row in done.rows] == ["nDCG@5", "nDCG@10", "AP", "P(rel=2)@5", "R@100"]
    assert tiewise("evaluate", "qrels.txt", "tied.trec").rows[0]["measure"] == "nDCG@10"
    names = ("-m", "nDCG(cutoff=10)", "-m", "P@5,10 P(rel=1)@1,3")
    done = tiewise("evaluate", "qrels.txt", "tied.trec", "-l", "2", *names)
    assert [row["measure"] for row in done.rows] == ["nDCG@10", "P(rel=2)@5", "P(rel=2)@10", "P@1", "P@3"]
    several = tiewise("evaluate", "qrels.txt", "tied.trec", "--fail-if", "range(nDCG@10,20) > 0", code=2)
    assert "nDCG@10,20" in several.err


def test_rel_applies_to_measures_that_do_not_set_it(tiewise):
    done = tiewise("evaluate", "qrels.txt", "tied.trec", "-l", "2", "-m", "RR P(rel=1)@1 nDCG@10 map@5-l1", "-q")
    assert [row["measure"] for row in done.rows if row["query"] == "all"] == ["RR(rel=2)", "P@1", "nDCG@10", "AP@5"]
    assert next(row["expected"] for row in done.rows if row["query"] == "q1") == "0.0"
    trec = tiewise("evaluate", "qrels.txt", "tied.trec", "-l", "2", "-m", "P.1 P(rel=1)@1", "--format", "trec")
    assert [line.split("\t")[0].strip() for line in trec.out.splitlines()] == ["P_1", "P@1"]


def test_rel_is_not_negative(tiewise):
    assert "-1.0 is not in the range x>=0" in tiewise("evaluate", "qrels.txt", "tied.trec", "-l", "-1", code=2).err
    assert tiewise("evaluate", "qrels.txt", "tied.trec", "-l", "0", "-m", "P@2").rows[0]["expected"] == "0.75"


def test_a_plugin_keeps_its_own_default_of_rel(tiewise, folder):
    """A document of label 1 is not relevant to it, unless -l says so; ours have their default of 1."""
    (folder / "high.py").write_text(
        "import tiewise as tw\n\n\n@tw.measure\nclass HighP(tw.Measure):\n"
        '    """Precision, of labels from 2 on."""\n\n    rel: float = tw.param(2)\n\n'
        "    def divisor(self, q):\n        return q.ranks(self.cutoff)\n"
    )
    command = ("evaluate", "qrels.txt", "strict.trec", "--plugin", "high.py")
    try:
        rows = tiewise(*command, "-m", "HighP@1 P@1", "--fail-if", "expected(HighP@1) > 0.6").rows
        assert [(row["measure"], row["expected"]) for row in rows] == [("HighP@1", "0.5"), ("P@1", "0.5")]
        rows = tiewise(*command, "-m", "HighP@2 P@2").rows  # q2 has labels 2 and 1
        assert [(row["measure"], row["expected"]) for row in rows] == [("HighP@2", "0.25"), ("P@2", "0.75")]
        audited = tiewise("audit", "strict.trec", "--qrels", "qrels.txt", "--plugin", "high.py", "-m", "HighP@2").out
        assert "HighP@2" in audited and "rel=1" not in audited
        pairs = tiewise("compare", *command[1:3], "tied.trec", *command[3:], "-m", "HighP@2").rows
        assert [pair["measure"] for pair in pairs] == ["HighP@2"]
        (row,) = tiewise(*command, "-m", "HighP@2", "-l", "1").rows
        assert (row["measure"], row["expected"]) == ("HighP(rel=1)@2", "0.75")
        (row,) = tiewise(*command, "-m", "HighP(rel=1)@2", "-l", "2").rows
        assert (row["measure"], row["expected"]) == ("HighP(rel=1)@2", "0.75")
    finally:
        registry._registry.pop("HighP", None)
        registry._aliases.pop("highp", None)


def test_depth_inside_a_tie_group_in_trec_format(tiewise):
    """b, a, x in the order of trec_eval: -M 1 leaves b, which is not relevant."""
    command = ("evaluate", "qrels.txt", "tied.trec", "-M", "1", "-m", "map", "-m", "bpref", "-q", "--format", "trec")
    lines = [line.split() for line in tiewise(*command, "--columns", "oblivious").out.splitlines()]
    assert ["map", "q1", "0.0000"] in lines and ["bpref", "q1", "0.0000"] in lines
    assert ["bpref", "q1", "0.5000"] in [line.split() for line in tiewise(*command).out.splitlines()]


def test_missing_queries(tiewise):
    def expected(*options: str) -> str:
        return tiewise("evaluate", "qrels.txt", "half.trec", "-m", "RR", *options).rows[0]["expected"]

    assert expected() == expected("-c") == "0.5"
    assert expected("--missing", "skip") == "1.0"
    for options, title in (
        ((), "half · 2 queries · "),
        (("--missing", "skip"), "half · 1 query · "),
    ):  # the queries averaged
        shown = tiewise("evaluate", "qrels.txt", "half.trec", *options, "--format", "table").out
        assert shown.startswith(title)
    assert "missing from the run: 'q2'" in tiewise("evaluate", "qrels.txt", "half.trec", "--missing=error", code=2).err
    assert "Give one" in tiewise("evaluate", "qrels.txt", "half.trec", "-c", "--missing=skip", code=2).err


def test_evaluation_options(tiewise):
    options = (
        "-J -M 5 --no-relevant skip --score-dtype float16 --complete --oblivious given --input-format trec "
        "--qrels-format trec"
    )
    done = tiewise("evaluate", "qrels.txt", "tied.trec", *options.split(), "--format", "json", "-m", "RR")
    run = done.json
    assert run["schema"] == "tiewise/evaluation/1" and run["name"] == "tied"
    assert run["provenance"]["options"] == {
        "oblivious": "given",
        "missing": "zero",
        "no_relevant": "skip",
        "score_dtype": "float16",
        "depth": 5,
        "judged_only": True,
        "drop_self": False,
        "distances": False,
        "complete": True,
        "samples": 1000,
        "seed": 0,
    }
    assert run["provenance"]["rows"] == 3  # x and y are not judged
    short = tiewise("evaluate", "qrels.txt", "tied.trec", "--score-dtype", "bf16", "--format", "json").json
    assert short["provenance"]["options"]["score_dtype"] == "bfloat16"
    assert run["measures"]["RR"]["oblivious"] == 1.0
    none = tiewise("evaluate", "qrels.txt", "tied.trec", "--oblivious", "none", "-m", "RR").rows[0]
    assert none["oblivious"] == none["bias"] == none["z"] == ""


def test_standard_input_can_be_read_once(tiewise):
    done = tiewise("evaluate", "qrels.txt", "-", "-m", "RR", stdin=TIED)
    assert (done.rows[0]["run"], done.rows[0]["expected"]) == ("stdin", "0.875")
    assert "can be read once" in tiewise("evaluate", "-", "-", code=2).err


def test_notes_go_to_standard_error(tiewise, folder):
    (folder / "cut.trec").write_text("q1 Q0 a 1 0.5 t\nq1 Q0 b 2 0.5 t\n")
    done = tiewise("evaluate", "qrels.txt", "cut.trec", "-m", "RR", "--format", "tsv")
    notes = done.err.splitlines()
    assert any("may have been cut inside a tie group" in note for note in notes)
    assert any("1 judged query is missing" in note for note in notes)
    assert all(note.startswith("note: ") for note in notes)
    assert not tiewise("evaluate", "qrels.txt", "strict.trec", "-m", "RR").err
    assert not tiewise("evaluate", "qrels.txt", "cut.trec", "-m", "RR", "--quiet").err
    assert not tiewise("break", "cut.trec", "--quiet").err
    for form in ("table", "markdown"):
        command = ("evaluate", "qrels.txt", "cut.trec", "-m", "RR", "--format", form)
        assert (
            "may have been cut" in tiewise(*command).out and "may have been cut" not in tiewise(*command, "--quiet").out
        )


# -- formats --------------------------------------------------------------------------------------------------


def test_machine_formats_hold_the_same_numbers(tiewise):
    command = ("evaluate", "qrels.txt", "tied.trec", "strict.trec", "-q", "-m", "RR RBP(p=0.5)", "--format")
    tsv = tiewise(*command, "tsv").rows
    assert list(csv.DictReader(io.StringIO(tiewise(*command, "csv").out))) == tsv
    lines = [json.loads(line) for line in tiewise(*command, "jsonl").out.splitlines()]
    assert [{name: "" if value is None else str(value) for name, value in line.items()} for line in lines] == tsv
    runs = tiewise(*command, "json").json["runs"]
    assert [run["name"] for run in runs] == ["tied", "strict"]
    assert runs[0]["measures"]["RR"]["expected"] == 0.875
    assert runs[0]["queries"]["RR"]["q1"]["range"] == 0.5
    assert runs[0]["provenance"]["run"]["path"] == "tied.trec"


def test_digits(tiewise):
    row = tiewise("evaluate", "qrels.txt", "tied.trec", "-m", "RR", "-p", "2").rows[0]
    assert (row["expected"], row["range"]) == ("0.88", "0.25")


def test_trec_format(tiewise):
    measures = "ndcg_cut_10 map map_cut.5 recip_rank P_5 recall_100 success_5 Rprec bpref set_P set_recall"
    counts = "num_ret num_rel num_rel_ret"
    done = tiewise("evaluate", "qrels.txt", "strict.trec", "--format", "trec", "-m", f"{measures} {counts} RBP(p=0.5)")
    names = [line.split("\t")[0].strip() for line in done.out.splitlines()]
    assert names == [*measures.replace(".", "_").split(), *counts.split(), "RBP(p=0.5)"]
    assert "map                   \tall\t0.7500\n" in done.out
    assert "num_rel_ret           \tall\t3\n" in done.out
    queries = tiewise(
        "evaluate", "qrels.txt", "tied.trec", "--format=trec", "-q", "-m", "RR AP", "--columns", "oblivious"
    )
    assert queries.out.splitlines()[:2] == ["recip_rank            \tq1\t0.5000", "map                   \tq1\t0.5000"]
    assert queries.out.splitlines()[-2] == "recip_rank            \tall\t0.7500"
    done = tiewise("evaluate", "qrels.txt", "tied.trec", "strict.trec", "--format=trec", code=2)
    assert "one run at a time" in done.err and not done.out


def test_latex_and_markdown(tiewise, folder):
    (folder / "a_b|%.trec").write_text(STRICT)
    runs = ("tied.trec", "a_b|%.trec", "-m", "RR")
    latex = tiewise("evaluate", "qrels.txt", *runs, "--format", "latex").out
    assert r"tied & 40.0\% & 0.875 & 0.750 -- 1.000 \\" in latex
    assert r"a\_b\textbar{}\% & 0\% & 0.750 & same \\" in latex
    assert r"means over all orders of tied documents. By tie order: lowest -- highest." in latex
    assert latex.count(r"\toprule") == latex.count(r"\end{tabular}") == 1 and r"\multicolumn{2}{c}{RR}" in latex
    markdown = tiewise("evaluate", "qrels.txt", *runs, "--format", "markdown").out
    assert "| run | tied | RR value | by tie order |" in markdown
    assert "| tied | 40.0% | .875 | .750 – 1.000 |" in markdown
    assert r"| a\_b\|% | 0% | .750 | same |" in markdown


@pytest.mark.parametrize(
    "command",
    [
        "evaluate qrels.txt tied.trec strict.trec -m R@1",
        "compare qrels.txt tied.trec strict.trec",
        "audit tied.trec --qrels qrels.txt",
        "audit tied.trec strict.trec --qrels qrels.txt",
        "similarity tied.trec strict.trec -m tau",
        "stages strict.trec tied.trec",
        "protocol runs qrels.txt tied.trec strict.trec",
    ],
)
def test_hints_for_the_reader_of_a_terminal_are_not_in_documents(tiewise, command):
    hint = re.compile(r"(?<!-)--[a-z][a-z-]+|tiewise (?:compare|evaluate)")
    arguments = command.split() + ["--complete"] * ("qrels" in command and "protocol" not in command)
    assert hint.search(tiewise(*arguments, "--format", "table").out)
    for kind in ("markdown", "latex"):
        assert not hint.findall(tiewise(*arguments, "--format", kind).out), kind


def test_tools(tiewise):
    command = ("evaluate", "qrels.txt", "tied.trec", "-m", "RR@10", "--tools")
    rows = tiewise(*command).rows
    printed = {row["tool"]: row["value"] for row in rows}
    assert (printed["ir_measures"], printed["trec_eval"], printed["ranx"]) == ("1.0", "0.75", "")
    assert next(row["note"] for row in rows if row["tool"] == "ranx")
    found = tiewise(*command, "--format", "json").json
    assert found["schema"] == "tiewise/tools/1" and {row["tool"] for row in found["rows"]} == set(printed)
    assert "What each tool prints" in tiewise(*command, "--format=markdown", "-M2").out


@pytest.mark.parametrize("names", [("tied",), ("tied", "strict")])
def test_python_and_the_command_show_the_same(tiewise, folder, monkeypatch, names):
    """Every format of an evaluation: the command adds only the names of runs."""
    monkeypatch.chdir(folder)
    files = [f"{name}.trec" for name in names]
    measures = ["RR", "nDCG@10"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reports = {name: tw.evaluate(tw.read_qrels("qrels.txt"), f"{name}.trec", measures) for name in names}
    shown = Reports(reports)
    command = ("evaluate", "qrels.txt", *files, "-m", "RR nDCG@10", "--format")
    found = tiewise(*command, "json").json
    ours = found["runs"] if len(names) > 1 else [found]
    assert [run.pop("name") for run in ours] == list(names)
    assert ours == [json.loads(report.to_json()) for report in reports.values()]
    with spelled_for_shell():
        assert tiewise(*command, "markdown").out == shown.to_markdown()
        assert tiewise(*command, "latex").out == shown.to_latex()
        assert tiewise(*command, "table").out == shown.to_text()


def test_the_default_output_is_short(tiewise):
    """What was asked, and nothing else: a table, what its columns mean, and one sentence."""
    text = tiewise("evaluate", str(EXAMPLE / "qrels.txt"), *EXAMPLE_RUNS, "-m", "nDCG@10", "-m", "RR@10").out
    lines = text.splitlines()
    assert len(lines) == 7 and max(map(len, lines)) <= 100 and len(text.split()) <= 65
    assert lines[-1] == "Ties move no value as much as other queries would: report the values."
    assert re.search(r"^minilm-bf16 +49\.4% +\.446 +\.056 +\.442 – \.450 +\.387 +\.057 +\.383 – \.391$", text, re.M)


def test_the_sentence_says_what_to_report(tiewise, folder):
    """No order matters, less than queries, as much, or nothing is said about the system."""
    (folder / "constant.trec").write_text("".join(f"{q} Q0 {d} 0 1.0 t\n" for q in ("q1", "q2") for d in "abcdxy"))
    for run, words in (
        ("strict.trec", "No order of ties changes a digit shown."),
        ("tied.trec", "Ties move RR less than other queries would: report .875."),
        ("constant.trec", "All scores of 2 lists are equal: the number says nothing about the system."),
    ):
        assert words in tiewise("evaluate", "qrels.txt", run, "-m", "RR", "--complete").out.splitlines()
    one = tiewise("evaluate", "qrels.txt", "half.trec", "-m", "RR", "--missing", "skip").out
    assert "No order of ties changes a digit shown." in one
    alone = {"q": {"a": 0.5, "b": 0.5, "c": 0.1}}
    sentence = tw.evaluate({"q": {"a": 1}}, alone, "RR", complete=True).sentence
    assert sentence == "Ties move RR: report .750 and its range, .500 to 1.000."


def test_names_of_runs_are_unique(tiewise, folder):
    (folder / "other").mkdir(exist_ok=True)
    (folder / "other" / "tied.run.gz").write_bytes(gzip.compress(STRICT.encode()))
    rows = tiewise("evaluate", "qrels.txt", "tied.trec", "other/tied.run.gz", "tied.trec", "-m", "RR").rows
    assert [row["run"] for row in rows] == ["tied", "other/tied", "tied#2"]
    rows = tiewise("evaluate", "qrels.txt", "tied.trec", "strict.trec", "--name", "A", "--name", "B", "-m", "RR").rows
    assert [row["run"] for row in rows] == ["A", "B"]


# -- files are written whole or not at all --------------------------------------------------------------------


def test_output_by_suffix(tiewise, folder):
    starts = {"json": "{", "md": "tied · 2 queries", "tsv": "run\t", "csv": "run,", "txt": "tied ·", "tex": "%"}
    for name, start in [*((f"out.{suffix}", start) for suffix, start in starts.items()), ("out", "tied ·")]:
        assert not tiewise("evaluate", "qrels.txt", "tied.trec", "-m", "RR", "-o", name).out
        assert (folder / name).read_text().startswith(start)
    tiewise("evaluate", "qrels.txt", "tied.trec", "-m", "RR", "-o", "out.jsonl.gz")
    assert json.loads(gzip.decompress((folder / "out.jsonl.gz").read_bytes()))["expected"] == 0.875
    assert tiewise("evaluate", "qrels.txt", "tied.trec", "-m", "RR", "-o", "-").rows[0]["expected"] == "0.875"


def test_output_is_written_whole_or_not_at_all(tiewise, folder):
    target = folder / "kept.tsv"
    target.write_text("as it was")
    before = {path.name for path in folder.iterdir()}
    tiewise("evaluate", "qrels.txt", "no-such-run", "-o", "kept.tsv", code=2)
    tiewise("evaluate", "qrels.txt", "tied.trec", "-o", "new.tsv", "--columns", "nonsense", code=2)
    tiewise("evaluate", "qrels.txt", "tied.trec", "-o", "no/such/folder.tsv", code=2)
    assert target.read_text() == "as it was"
    assert {path.name for path in folder.iterdir()} == before


def test_output_to_a_device(process, folder):
    with (folder / "log").open("wb", buffering=0) as log:
        log.write(b"before\n")
        process("evaluate", "qrels.txt", "tied.trec", "-m", "RR", "-o", "/dev/stdout", "--format", "tsv", stdout=log)
        log.write(b"after\n")
    lines = (folder / "log").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["before", "run", "tied", "after"]


def test_parquet_holds_the_rows(tiewise, folder):
    command = ("evaluate", "qrels.txt", "tied.trec", "-m", "RR")
    for more in (("-q",), ("--tools",)):
        tiewise(*command, *more, "-o", "out.parquet")
        table = pyarrow.parquet.read_table(folder / "out.parquet")
        rows = [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in table.to_pylist()]
        assert rows == tiewise(*command, *more).rows
    assert str(table.schema.field("value").type) == "double"


# -- bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("evaluate qrels.txt nowhere.trec", "nowhere.trec: there is no such file"),
        ("evaluate qrels.txt tied.trec -m RR AP", "AP: there is no such file. If it is a measure, .*: -m AP"),
        ("evaluate tied.trec qrels.txt", "looks like a run .* qrels come first"),
        ("evaluate qrels.txt nan.trec", r"nan.trec:2: score 'nan' .* NaN has no rank"),
        ("evaluate qrels.txt tied.trec -m NDGC@10", r"Unknown measure 'NDGC@10'. Did you mean 'nDCG@10'\?"),
        ("evaluate qrels.txt tied.trec --oblivious treceval", "Unknown order or tool 'treceval'"),
        ("evaluate qrels.txt tied.trec --columns nonsense", "There is no column 'nonsense'. Use expected, ci, ties"),
        ("evaluate qrels.txt tied.trec --columns nonsense", "residual, cut, rerun."),
        ("why qrels.txt tied.trec --numbers 0.4", "'--numbers' requires 2 arguments. Try 'tiewise why --help'"),
        ("evaluate qrels.txt tied.trec --format xml", "'xml' is not one of .*table.* Try 'tiewise evaluate --help'"),
        ("evaluate qrels.txt tied.trec --fromat tsv", "No such option:? '?--fromat.*--format"),
        ("evaluate qrels.txt tied.trec -M 0", "Invalid value for '-M' / '--depth': 0 is not in the range"),
        ("evaluate qrels.txt tied.trec -n", "Add -q"),
        (
            "evaluate qrels.txt tied.trec --rerun tied.trec --tools",
            "--rerun gives each mean a band: leave out --tools.",
        ),
        ("evaluate qrels.txt tied.trec --rerun tied.trec -q -n", "leave out -n."),
        ("evaluate qrels.txt tied.trec --rerun tied.trec --format trec", "leave out --format trec."),
        ("evaluate qrels.txt tied.trec -q --tools", "--tools has one value for each tool and measure: leave out -q"),
        ("evaluate qrels.txt tied.trec -o out.xlsx", r"out.xlsx: no format is known for '.xlsx'. Use one of .tsv"),
        ("evaluate qrels.txt tied.trec --name a --name b", "Give it once for each"),
        ("break qrels.txt", "looks like qrels .4 columns., not a run"),
        ("evaluate qrels.txt", "Missing argument 'RUN"),
        ("evaluate qrels.txt tied.trec --plugin nowhere.py", "The plugin nowhere.py: there is no such file"),
        ("evaluate qrels.txt tied.trec --fail-if nDCG@10", "this is not a condition"),
        ("measures NDGC", "Did you mean 'nDCG'"),
        ("brake tied.trec", r"No such command 'brake'. Did you mean 'break'\?"),
    ],
)
def test_errors_are_one_line(tiewise, folder, command, message):
    (folder / "nan.trec").write_text("q1 Q0 a 1 0.5 r\nq1 Q0 b 2 nan r\n")
    done = tiewise(*command.split(), code=2)
    assert re.search(message, done.err), done.err
    assert not done.out
    assert done.err.startswith("tiewise: ") and done.err.count("\n") == 1


def test_no_command_shows_help(process):
    assert "evaluate" in process(code=2).out


#: Commands that write to a file, and what they would read: files that are not there.
WRITERS = {
    **dict.fromkeys(("evaluate", "report"), "no-qrels.txt no-run.trec"),
    **dict.fromkeys(("compare", "similarity", "stages"), "no-file no-run.trec other.trec"),
    **dict.fromkeys(("audit", "break"), "no-run.trec"),
    "why": "no-qrels.txt no-run.trec -m AP --tool trec_eval --tool mteb",
    "score": "no-vectors.npz",
    "leaderboard": "no-folder",
    "protocol runs": "no-qrels.txt no-run.trec",
    "protocol vectors": "no-qrels.txt no-queries.npy no-docs.npy",
    "protocol logits": "no-qrels.txt no-pairs.npz",
}


def test_output_path_is_checked_before_anything_is_read(tiewise, folder):
    writers = {
        name for name, one in all_commands().items() if any("-o" in p.opts and not p.is_flag for p in one.params)
    }
    assert writers == {*WRITERS, "protocol model"}  # that one writes into a folder, which it makes
    (folder / "taken.html").mkdir()
    for command, files in WRITERS.items():
        done = tiewise(*command.split(), *files.split(), "-o", "nowhere/made.html", code=2)
        assert "nowhere/made.html: cannot be written: there is no folder nowhere. Make it first." in done.err, command
        done = tiewise(*command.split(), *files.split(), "-o", "taken.html", code=2)
        assert "taken.html: is a folder. Name a file in it." in done.err, command
    with pytest.raises(tw.InputError, match="there is no folder"):
        tw.write_page({}, {}, folder / "nowhere/made.html")


def test_no_input_is_overwritten(tiewise, folder):
    (folder / "link.txt").symlink_to("qrels.txt")
    before = {name: (folder / name).read_bytes() for name in ("qrels.txt", "tied.trec")}
    for command, written in [
        ("evaluate qrels.txt tied.trec -o", "qrels.txt"),
        ("evaluate qrels.txt tied.trec -o", "./qrels.txt"),
        ("evaluate qrels.txt tied.trec -o", "link.txt"),
        ("evaluate link.txt tied.trec -o", "qrels.txt"),
        ("audit tied.trec --qrels qrels.txt -o", "qrels.txt"),
        ("compare qrels.txt tied.trec tied.trec --format tsv -o", "tied.trec"),
        ("break tied.trec -o", "tied.trec"),
    ]:
        done = tiewise(*command.split(), written, code=2)
        shown = written.removeprefix("./")
        assert done.err == f"tiewise: {shown}: is read by this command. Write to another file.\n", command
        assert {name: (folder / name).read_bytes() for name in before} == before, command


@pytest.mark.parametrize("command", ["evaluate qrels.txt nowhere.trec", "evaluate qrels.txt tied.trec --fromat tsv"])
def test_errors_are_exit_codes(process, command):
    done = process(*command.split(), code=2)
    assert done.err.startswith("tiewise: ") and done.err.count("\n") == 1


@pytest.mark.parametrize("command", ["evaluate qrels.txt tied.trec", "break tied.trec", "--version", "--help"])
def test_a_full_disk_is_an_error(process, command):
    with Path("/dev/full").open("wb") as full:
        done = process(*command.split(), code=2, stdout=full)
    assert re.fullmatch(r"tiewise: standard output: cannot be \w+ \(No space left on device\)\.\n", done.err)


@pytest.mark.parametrize(
    ("command", "closed", "message"),
    [
        ("evaluate qrels.txt -", "<&-", "stdin: cannot be read (Bad file descriptor)."),
        ("evaluate qrels.txt tied.trec", ">&-", "standard output: cannot be written (Bad file descriptor)."),
    ],
)
def test_a_closed_stream_is_an_error(folder, command, closed, message):
    line = f"{sys.executable} -m tiewise {command} {closed}"
    done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, f"tiewise: {message}\n")


@pytest.mark.parametrize("command", [f"break {EXAMPLE / 'minilm-bf16.trec.gz'}", "--help", "--version"])
def test_a_closed_pipe_is_not_an_error(process, command):
    read, write = os.pipe()
    os.close(read)
    try:
        assert not process(*command.split(), code=141, stdout=write).err
    finally:
        os.close(write)


def test_an_interrupt_exits_with_130(folder):
    words = [sys.executable, "-m", "tiewise", "evaluate", "qrels.txt", "-"]
    with subprocess.Popen(words, cwd=folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        waiting.stdin.write(TIED)
        waiting.stdin.flush()
        time.sleep(2)  # until it reads
        waiting.send_signal(signal.SIGINT)
        assert (waiting.wait(30), waiting.stderr.read()) == (130, "tiewise: interrupted\n")


# -- conditions and plugins ----------------------------------------------------------------------------------------


def test_a_true_condition_exits_with_3(process):
    done = process(
        "evaluate", "qrels.txt", "strict.trec", "tied.trec", "-m", "AP", "--fail-if", "range(mrr)>.2", code=3
    )
    assert "check failed for run 'tied': 'range(mrr)>.2' is true (range(RR) = 0.25)." in done.err
    assert "for run 'strict'" not in done.err
    assert [row["measure"] for row in done.rows] == [
        "AP"
    ] * 2  # the measures of conditions are not shown, as in compare
    process("evaluate", "qrels.txt", "strict.trec", "--fail-if", "range(RR) > 0", "--fail-if", "std(AP) > 0")


def test_plugin(process, folder):
    (folder / "mine.py").write_text(
        "import numpy as np\n"
        "from tiewise import Measure, measure, param\n"
        "@measure\n"
        "class Fade(Measure):\n"
        '    """The sum of rank to the power of -slope over the relevant documents."""\n'
        "    slope: float = param(0.5)\n"
        "    def payoff(self, rank):\n"
        "        return rank ** -self.slope\n"
    )
    done = process("evaluate", "qrels.txt", "tied.trec", "--plugin", "mine.py", "-m", "Fade(slope=1)@2")
    assert (done.rows[0]["measure"], done.rows[0]["expected"]) == ("Fade(slope=1)@2", "0.875")
    assert "slope=0.5" in process("measures", "--plugin", "mine", "--format", "tsv").out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ny = x / 0\n", "line 2 of broken.py: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(0)\n", "line 2 of broken.py: SystemExit: 0"),
        ("import nowhere_at_all\n", "line 1 of broken.py: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("open('no-such-data')\n", "line 1 of broken.py: FileNotFoundError: .*no-such-data"),
    ],
)
@pytest.mark.parametrize("name", ["broken.py", "broken"])
def test_error_in_a_plugin(tiewise, folder, monkeypatch, text, message, name):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # texts of one size and one second would be taken for one
    (folder / "broken.py").write_text(text)
    done = tiewise("evaluate", "qrels.txt", "tied.trec", "--plugin", name, "--fail-if", "range(RR) > 0", code=2)
    assert re.search(f"The plugin {name}: {message}", done.err), done.err
    assert "Give a file that ends in .py" not in done.err


@pytest.mark.parametrize("name", ["bad.py", "bad"])
def test_error_in_the_measure_of_a_plugin(process, folder, name):
    lines = [
        "import tiewise as tw",
        "@tw.measure",
        "class Bad(tw.ListMeasure):",
        "    def of_gains(self, gains, ideal):",
    ]
    (folder / "bad.py").write_text("\n".join([*lines, "        return gains[10**6]", ""]))
    err = process("evaluate", "qrels.txt", "tied.trec", "--plugin", name, "-m", "Bad@3", code=2).err
    assert len(err.splitlines()) == 1 and f"tiewise: Bad@3 of the plugin {name} fails (line 5 of bad.py): Ind" in err
    (folder / "bad.py").write_text("\n".join([*lines, "        return 'high'", ""]))
    err = process("evaluate", "qrels.txt", "tied.trec", "--plugin", name, "-m", "Bad", code=2).err
    assert f"Bad of the plugin {name} fails: ValueError: could not convert string to float" in err


def test_missing_plugin(tiewise, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    done = tiewise("measures", "--plugin", "nowhere_at_all.mine", code=2)
    assert "No module named 'nowhere_at_all'. Give a file that ends in .py, or a module." in done.err


# -- break ----------------------------------------------------------------------------------------------------


def test_break_is_strict_and_reproducible(tiewise, folder):
    source = EXAMPLE / "minilm-bf16.trec.gz"
    first = tiewise("break", str(source), "--seed", "7")
    tiewise("break", str(source), "--seed", "7", "-o", "again.trec")
    assert (folder / "again.trec").read_text() == first.out
    tiewise("break", str(source), "--seed", "8", "-o", "other.trec.gz")
    given, broken, other = (
        tw.read_run(source),
        tw.read_run(folder / "again.trec"),
        tw.read_run(folder / "other.trec.gz"),
    )
    assert broken.tied_rows == 0 and broken.projected("float32").tied_rows == 0
    assert broken.to_dict() != other.to_dict()
    scores = given.to_dict()
    for query, docs in broken.to_dict().items():
        assert list(docs.values()) == list(range(len(docs), 0, -1))
        before = [scores[query][doc] for doc in docs]
        assert before == sorted(before, reverse=True) and set(docs) == set(scores[query])
    assert broken.rank is not None and broken.rank[:3].tolist() == [1, 2, 3]
    assert "49.4% of 10,147 rows were tied; seed 7." in first.err
    assert broken.to_dict() == tw.break_ties(source, seed=7).to_dict()
    by_id = tiewise("break", str(source), "--order", "docid-desc", "-o", "by-id.trec")
    assert "; order docid-desc." in by_id.err
    assert tw.read_run(folder / "by-id.trec").to_dict() == tw.break_ties(source, order="docid-desc").to_dict()


# -- measures, demo, help -------------------------------------------------------------------------------------


def test_list_of_measures(tiewise):
    listed = {row["name"]: row for row in tiewise("measures", "--format", "tsv").rows}
    assert set(listed) == set(tw.measures())
    assert listed["AP"]["parameters"] == 'rel=1, norm="all"|"cap"' and "average_precision" in listed["AP"]["aliases"]
    short = tiewise("measures").out
    assert re.findall(r"^(\w+)@k", short, re.M)[:3] == ["nDCG", "RR", "AP"] and "YAAP" in short
    assert len(short.splitlines()) <= 45 and "average_precision" in tiewise("measures", "--explain").out
    page = tiewise("measures", "ndcg@10").out
    assert "DCG over the DCG of the best list" in page and 'gains="linear"|"exp"' in page
    entries = {entry["name"]: entry for entry in tiewise("measures", "--format", "json").json}
    assert entries["RBP"]["parameters"]["p"] == {"default": 0.8}
    assert tiewise("measures", "--format", "markdown").out.startswith("| name | cutoff |")


def test_demo_fits_a_screen(tiewise):
    lines = tiewise("demo").out.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 100
    words = "\n".join(lines)
    assert re.search(r"^trec_eval +\.000 .* \.000", words, re.M)
    assert re.search(r"^ir_measures +1\.000 .* \.000", words, re.M)
    assert re.search(r"^sentence-transformers +1\.000 .* 1\.000", words, re.M)
    assert re.search(r"^minilm-bf16 .* 49\.4% +\.387 +\.383 – \.391", words, re.M)
    assert "tiewise evaluate QRELS RUN" in lines[-1]


def test_demo_writes_its_files_to_a_new_folder_only(tiewise, tmp_path):
    folder = tmp_path / "example"
    tiewise("demo", "--write", str(folder))
    kept = {path.name: path.read_bytes() for path in EXAMPLE.glob("*.*") if path.suffix != ".py"}
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept
    (folder / "loss.svg").write_text("made by an example")
    assert "11 files are in" in tiewise("demo", "--write", str(folder)).err  # a page may be begun again
    (folder / "qrels.txt").write_text("mine")
    for target, message in ((folder, "exists already"), (tmp_path / "no/where", "there is no folder")):
        assert message in tiewise("demo", "--write", str(target), code=2).err
    assert (folder / "qrels.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["example"]


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("command", all_commands())
def test_help_fits_the_terminal(tiewise, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    text, _, examples = tiewise(*command.split(), "--help").out.partition("\nExamples:\n")
    assert text.startswith(f"Usage: tiewise {command} ") and "  -h, --help" in text
    assert max(map(len, text.splitlines())) <= min(columns, 100)
    assert max(map(len, ["", *examples.splitlines()])) <= 80
    for param in all_commands()[command].params:
        assert columns < 80 or param.opts[-1] in text or param.metavar in text


@pytest.mark.parametrize("command", ["runs", "vectors", "logits", "model"])
def test_help_of_the_protocol_fits_on_a_screen(tiewise, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    assert tiewise("protocol", command, "--help").out.count("\n") <= 30


def test_options_with_one_text_share_a_line_of_help(tiewise):
    assert "  --yes, --no WORD     The answers" in tiewise("protocol", "model", "--help").out
    assert "  QUERIES, DOCS        Vectors" in tiewise("protocol", "vectors", "--help").out


def test_help_keeps_the_commas_of_a_value(tiewise):
    assert "--encoder NAME=Q,D " in tiewise("protocol", "vectors", "--help").out


def test_help_of_the_program_lists_all_commands(tiewise):
    text = tiewise("-h").out
    assert all(re.search(rf"^  {name} +{re.escape(summary)}$", text, re.M) for name, summary in COMMANDS.items())
    assert "--install-completion [SHELL]" in text


def test_version(process):
    reader = "compiled" if native() else "Python"
    assert process("--version").out == f"tiewise {tw.__version__} ({reader} reader)\n"
    assert process("--version", env={"TIEWISE_READER": "python"}).out == f"tiewise {tw.__version__} (Python reader)\n"


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("-m nD", ["nDCG", "nDCGRel"]),
        ("--oblivious sent", ["sentence-transformers", "sentence-transformers-rerank"]),
        ("--format j", ["json", "jsonl"]),
        ("--no", ["--no-relevant", "--no-summary"]),
    ],
)
def test_shell_completion(process, words, completed):
    place = str(len(words.split()) + 1)
    env = {"_TIEWISE_COMPLETE": "bash_complete", "COMP_WORDS": f"tiewise evaluate {words}", "COMP_CWORD": place}
    assert process(env=env).out.split() == [f"plain,{one}" for one in completed]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed(process, tmp_path, shell):
    home = {"HOME": str(tmp_path), "SHELL": f"/bin/{shell}"}
    script = process("--show-completion", shell).out
    for options in ((), (shell,)):
        assert "is installed in" in process("--install-completion", *options, env=home).out
    path = tmp_path / ".config" / ("fish/completions/tiewise.fish" if shell == "fish" else f"tiewise/complete.{shell}")
    assert "_TIEWISE_COMPLETE" in script and path.read_text().strip() == script.strip()
    if shell != "fish":
        assert (tmp_path / f".{shell}rc").read_text() == f"source '{path}'\n"


def test_completion_of_an_unknown_shell_is_an_error(tiewise):
    assert "no completion for the shell 'tcsh'" in tiewise("--show-completion", "tcsh", code=2).err


def test_a_small_command_loads_nothing_heavy(folder):
    code = (
        "import sys, tiewise.cli\n"
        "sys.argv[1:] = ['evaluate', 'qrels.txt', 'tied.trec']\n"
        "try: tiewise.cli.main()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert not {"rich", "pydantic", "scipy", "pandas", "pyarrow"} & loaded
    assert {name for name in COMMANDS if f"tiewise.cli.{name}" in loaded} == {"evaluate"}
    heavy = {"tiewise.cli.conditions", "tiewise.rankings.pair_measures", "tiewise.analysis.auditing"}
    assert not heavy & loaded


# -- on a terminal --------------------------------------------------------------------------------------------


def test_table_of_one_run(terminal):
    text = terminal("evaluate", "qrels.txt", "tied.trec", "-m", "RR R@1 NumRet")
    assert text.startswith("tied · 2 queries · 40.0% of 5 rows tied\n")
    assert re.search(r"^RR +\.875 +– +\.750 – 1\.000$", text, re.M)
    assert re.search(r"^NumRet +5 +same$", text, re.M)
    untied = terminal("evaluate", "qrels.txt", "strict.trec", "-m", "RR")
    assert re.search(r"^RR +\.750 +same$", untied, re.M)


def test_wide_table(terminal):
    text = terminal("evaluate", "qrels.txt", "tied.trec", "-m", "RR", "--wide")
    heads = r"^measure +value +by tie order +std +range +obl \(trec_eval\) +bias +z$"
    assert re.search(heads, text, re.M)
    assert re.search(r"^RR +\.875 +\.750 – 1\.000 +\.125 +\.250 +\.750 +−\.125 +−1\.0$", text, re.M)
    some = terminal("evaluate", "qrels.txt", "tied.trec", "-m", "RR", "--columns", "oblivious,bias")
    tsv = terminal("evaluate", "qrels.txt", "tied.trec", "-m", "RR", "--columns", "ties,ci", "--format", "tsv")
    assert tsv.splitlines()[0].split() == ["run", "measure", "query", "ci_low", "ci_high", "minimum", "maximum"]
    assert re.search(r"^RR +\.750 +−\.125$", some, re.M)


def test_explain(terminal):
    text = terminal("evaluate", "qrels.txt", "tied.trec", "-m", "RR@10", "--explain")
    assert "What each tool prints" in text and "half of the interval for other queries" in " ".join(text.split())


def test_a_table_that_is_too_wide_has_a_row_for_each_measure(terminal):
    runs = ("tied.trec", "strict.trec", "-m", "RR AP nDCG@10 P@10 RBP(p=0.5)")
    text = terminal("evaluate", "qrels.txt", *runs, columns=80)
    assert max(map(len, text.splitlines())) <= 80
    assert [line.split()[:2] for line in text.splitlines() if line.startswith("AP")] == [
        ["AP", "tied"],
        ["AP", "strict"],
    ]
    wide = terminal("evaluate", "qrels.txt", *runs, columns=200)
    assert re.search(r"^ +RR +AP +nDCG@10 +P@10 +RBP\(p=0\.5\)$", wide, re.M)


def test_colour_and_no_color(terminal):
    assert "\x1b[" in terminal("evaluate", "qrels.txt", "tied.trec", "strict.trec", "-m", "RR", colour=True)
    plain = terminal(
        "evaluate", "qrels.txt", "tied.trec", "strict.trec", "-m", "RR", colour=True, env={"NO_COLOR": "1"}
    )
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", plain)


def test_control_characters_in_names_are_escaped(terminal, folder):
    ids = ["plain", "[bold]x[/bold]", "[/]", "文書", "a|b", "\x1b[31mred", ":smile:"]
    (folder / "hostile.qrels").write_text("".join(f"{name} 0 d 1\n" for name in ids))
    (folder / "[red]run[bold].trec").write_text("".join(f"{name} Q0 d 1 1.0 t\n{name} Q0 e 2 1.0 t\n" for name in ids))
    text = terminal("evaluate", "hostile.qrels", "[red]run[bold].trec", "-q", "-m", "RR", colour=True)
    for name in ids:
        assert name.replace("\x1b", "\\x1b") in text
    assert "\x1b[31m" not in text and "[red]run[bold]" in text


@pytest.mark.parametrize("name", ["alpha_nDCG", "INST", "nDCG"])
def test_the_description_of_a_measure_fits_the_terminal(terminal, name):
    lines = terminal("measures", name, columns=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert ("It needs judgments for subtopics: --qrels-kind diversity." in lines) == (name == "alpha_nDCG")


def test_a_number_that_is_none(tiewise):
    for command, option in (("trec_eval", "-l"), ("evaluate", "--seed")):
        err = tiewise(command, "qrels.txt", "tied.trec", option, "two", code=2).err
        assert "'two' is not a valid whole number." in err
    assert "'two' is not a valid number." in tiewise("evaluate", "qrels.txt", "tied.trec", "-l", "two", code=2).err
