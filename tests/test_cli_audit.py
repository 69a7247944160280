"""``tiewise audit``: the result of the library, as text with the answer first, as rows and as JSON."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet
import pytest

import tiewise as tw
from tiewise.analysis.auditing import Audits
from tiewise.analysis.auditing.audits import AUDIT_COLUMNS, AUDIT_KEYS
from tiewise.example import file

RUNS = ("minilm-bf16.trec.gz", "minilm-fp32.trec.gz")
JUDGED = ("--qrels", "qrels.txt", "-m", "nDCG@10")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    for name in ("qrels.txt", "minilm-bf16.trec.gz", "minilm-fp32.trec.gz"):
        shutil.copy(file(name), folder)
    (folder / "empty.trec").write_text("")
    (folder / "nan.trec").write_text("q1 Q0 a 1 nan t\n")
    return folder


def audit_of(folder: Path, name: str, **options) -> tw.Audit:
    """The same audit in Python, under the name that the command gives to the run."""
    return replace(tw.audit(folder / name, **options), name=name.partition(".")[0])


@pytest.mark.parametrize("runs", [RUNS[:1], RUNS])
@pytest.mark.parametrize("format", ["table", "markdown", "latex", "json"])
def test_python_and_command_line_show_the_same(tiewise, folder, runs, format):
    options = {"qrels": folder / "qrels.txt", "measures": "nDCG@10"}
    if len(runs) > 1:
        files = {name.partition(".")[0]: folder / name for name in runs}
        options["comparisons"] = [tw.compare(folder / "qrels.txt", files, "nDCG@10").pair(*files)]
    found = {name: audit_of(folder, name, **options) for name in runs}
    result = Audits({one.name: one for one in found.values()}) if len(runs) > 1 else found[runs[0]]
    shown = {"table": result.to_text, "markdown": result.to_markdown, "latex": result.to_latex, "json": result.to_json}
    printed = tiewise("audit", *runs, *JUDGED, "--format", format).out
    expected = shown[format]().replace("explain=True", "--explain")
    if format == "json":
        document, in_python = json.loads(printed), json.loads(expected)
        assert document.pop("schema") == in_python.pop("schema") == "tiewise/audit/1"
        for one, other in zip(document.get("runs", [document]), in_python.get("runs", [in_python]), strict=True):
            assert Path(other["source"].pop("path")).name == one["source"].pop("path")
        assert document == in_python
        assert list(document.get("runs", [document])[0]) == list(AUDIT_KEYS)
    else:
        assert printed.strip() == expected.strip()


def test_json_holds_the_estimates_of_the_library(tiewise, folder):
    document = tiewise("audit", "minilm-bf16.trec.gz", "--format", "json").json
    assert document["grid"] == "bfloat16" and document["measures"] is None and document["fidelity"] is None
    judged = tiewise("audit", "minilm-bf16.trec.gz", "--qrels", "qrels.txt", "-m", "RR@10", "--format", "json").json
    report = tw.evaluate(folder / "qrels.txt", folder / "minilm-bf16.trec.gz", "RR@10", complete=True)
    assert judged["measures"]["RR@10"]["expected"] == report["RR@10"].expected


def test_the_answer_comes_first_and_is_short(tiewise):
    text = tiewise("audit", "minilm-bf16.trec.gz", *JUDGED).out
    assert text.splitlines() == [
        "minilm-bf16 · 200 queries · 10,147 rows",
        "Ties change nDCG@10 by about .003; other queries would change it by .056.",
        "cause    scores rounded to bfloat16 (all 10,147 lie on its grid)",
        "tied     49.4% of rows; 16.0% of lists across rank 10; largest group 7",
        "nDCG@10  .446, by tie order .442 – .450; trec_eval prints .448",
        "do       Compute the last step in float32; the model may stay in bfloat16.",
        "         tiewise.scoring.score(queries, docs, fn='cosine')",
        "How to read this, tie groups, every tool: --explain",
    ]


@pytest.mark.parametrize(
    ("words", "lines", "most"),
    [
        ("minilm-bf16.trec.gz", 7, 70),
        ("minilm-bf16.trec.gz --qrels qrels.txt", 14, 140),
        ("minilm-bf16.trec.gz --qrels qrels.txt --reference minilm-fp32.trec.gz -m nDCG@10", 9, 95),
        ("minilm-bf16.trec.gz minilm-fp32.trec.gz --qrels qrels.txt -m nDCG@10", 8, 60),
        ("minilm-fp32.trec.gz --qrels qrels.txt -m nDCG@10", 6, 60),
    ],
)
def test_lines_and_words_of_the_default(terminal, words, lines, most):
    text = terminal("audit", *words.split(), columns=80)
    assert len(text.splitlines()) <= lines and len(text.split()) <= most
    assert max(map(len, text.splitlines())) <= 80


def test_explain_shows_what_stands_behind_it(tiewise):
    command = ("audit", "minilm-bf16.trec.gz", *JUDGED, "--reference", "minilm-fp32.trec.gz")
    default, explained = (tiewise(*command, *more).out for more in ((), ("--explain",)))
    for part in (
        "only one in 65,536",
        "group size",
        "lists with a tie",
        "documents score 0.34375, from rank 34 on",
        "can change the winner: x reaches",
        "What each tool prints",
        "pairs         242,737",
        "for a vector index:",
    ):
        assert part in " ".join(explained.split(" ")) and part not in default, part
    assert "--explain" in default and "--explain" not in explained


def test_a_library_has_its_own_line_of_code(tiewise):
    text = tiewise("audit", "minilm-bf16.trec.gz", "--library", "own").out
    assert "tiewise.scoring.score(queries, docs, fn='cosine')" in text and "sentence_transformers" not in text
    assert "judgments show what that changes: --qrels FILE." in text


def test_float32_scores_need_no_remedy(tiewise):
    document = tiewise("audit", "minilm-fp32.trec.gz", "--qrels", "qrels.txt", "-m", "nDCG@10", "--format", "json").json
    assert document["grid"] == "float32" and document["grade"] == "none" and document["remedy"] is None


def test_several_runs_are_compared(tiewise):
    """The two runs are one model in two precisions; ties of the one reverse who is ahead, which is not significant."""
    command = (
        "audit",
        "minilm-bf16.trec.gz",
        "minilm-fp32.trec.gz",
        "--qrels",
        "qrels.txt",
        "-m",
        "nDCG@10",
        "--complete",
    )
    bf16, fp32 = tiewise(*command, "--format", "json").json["runs"]
    assert (bf16["name"], bf16["grade"], fp32["grade"]) == ("minilm-bf16", "changes_number", "none")
    (reversal,) = bf16["reversals"]
    assert reversal["result"] == "minilm-fp32 against minilm-bf16 in nDCG@10" and "trec_eval" in reversal["tools"]
    assert reversal["shown"] is False
    alone = tiewise("audit", "minilm-bf16.trec.gz", *command[3:], "--format", "json").json
    assert alone["grade"] == "changes_number" and alone["reversals"] == []
    assert tiewise(*command).out.splitlines() == [
        "2 runs",
        "                                nDCG@10",
        "run           tied  cause       value  ±95%  by tie order   effect of ties",
        "minilm-bf16  49.4%  precision    .446  .056  .442 – .450    changes the number",
        "minilm-fp32   0.2%  unclear      .446  .056  same           none",
        "minilm-bf16: Ties change nDCG@10 by about .003; other queries would change it by .056.",
        "How to read this, each run's cause and remedy: --explain",
    ]
    assert "(not shown) is reversed by 40.5% of random orders" in tiewise(*command, "--explain").out
    assert {row["run"] for row in tiewise(*command, "--format", "tsv").rows} == {"minilm-bf16", "minilm-fp32"}
    assert tiewise(*command, "--fail-if", "changes_winner").err == ""  # nobody claims the difference
    failed = tiewise(*command, "--fail-if", "changes_winner or nDCG@10 < 0.445", code=3)
    assert "run 'minilm-bf16'" in failed.err and "run 'minilm-fp32'" not in failed.err
    unjudged = tiewise(*command[:3]).out
    assert "Judgments show what ties change: --qrels FILE." in unjudged and "by tie order" not in unjudged


def test_columns_are_chosen_by_name(tiewise):
    text = tiewise("audit", *RUNS, *JUDGED, "--columns", "cause,std").out
    assert text.splitlines()[2].split() == ["run", "cause", "std"]
    assert "largest" in tiewise("audit", RUNS[0], *JUDGED, "--wide").out
    assert "no column 'tide'" in tiewise("audit", *RUNS, "--columns", "tide", code=2).err


def test_a_check_of_a_measure_is_a_result_too(tiewise):
    command = (
        "audit",
        "minilm-bf16.trec.gz",
        "--qrels",
        "qrels.txt",
        "-m",
        "nDCG@10",
        "--complete",
        "--format",
        "json",
    )
    near = tiewise(*command, "--fail-if", "nDCG@10 < 0.445", "--fail-if", "0.1 > nDCG@10").json
    assert near["grade"] == "changes_winner" and [one["result"] for one in near["reversals"]] == [
        "the check of nDCG@10 at .445"
    ]
    assert tiewise(*command, "--fail-if", "nDCG@10 < 0.4").json["grade"] == "changes_number"


def test_a_reference_shows_fidelity(tiewise):
    command = ("audit", "minilm-bf16.trec.gz", "--reference", "minilm-fp32.trec.gz")
    fidelity = tiewise(*command, "--format", "json").json["fidelity"]
    assert 0 < fidelity["inverted"] < 0.01 and 0.98 < fidelity["rbo"] < 1
    assert "faithful  yes: RBO .987, 0.5% of pairs inverted" in tiewise(*command).out


def test_distances_are_negated_once_beside_another_run(tiewise, folder):
    for sign, name in ((1.0, "scores"), (-1.0, "distances")):
        rows = tw.read_run(folder / "minilm-fp32.trec.gz").to_dict().items()
        tw.write_run(
            {query: {doc: sign * x for doc, x in docs.items()} for query, docs in rows}, folder / f"{name}.trec"
        )
    found = []
    for name, options in (("scores", ()), ("distances", ("--distances",))):
        other = f"{name}.trec"
        command = ("audit", other, *JUDGED, "--reference", other, "--rerun", other, *options, "--format", "json")
        found.append(tiewise(*command).json)
    wanted, negated = found
    assert (negated["fidelity"], negated["noise"]) == (wanted["fidelity"], wanted["noise"])
    assert wanted["fidelity"]["inverted"] == 0 and wanted["fidelity"]["gap"] == {"nDCG@10": 0}
    assert wanted["noise"]["documents"] > 0


def test_other_runs_are_read_in_the_format_of_the_run(tiewise, folder):
    (folder / "odd.txt").write_text("0.5 q a\n0.4 q b\n")
    found = tiewise(
        *("audit", "odd.txt", "--reference", "odd.txt", "--rerun", "odd.txt", "--format", "json"),
        *("--input-format", "columns", "--input-columns", "score,query,doc"),
    ).json
    assert found["fidelity"]["pairs"] == 1 and not found["noise"]["reorders"]


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "markdown", "latex"])
def test_every_format_has_the_verdict(tiewise, kind):
    text = tiewise("audit", "minilm-bf16.trec.gz", "--format", kind).out
    assert "judgments show what that changes" in text
    if kind == "jsonl":
        (row,) = map(json.loads, text.splitlines())
        assert list(row) == list(AUDIT_COLUMNS) and row["measure"] is None


def test_parquet_holds_a_row_for_each_measure(tiewise, folder):
    tiewise("audit", "minilm-bf16.trec.gz", "--qrels", "qrels.txt", "-m", "nDCG@10 RR", "-o", "audit.parquet")
    first, second = pyarrow.parquet.read_table(folder / "audit.parquet").to_pylist()
    assert (first["measure"], second["measure"]) == ("nDCG@10", "RR") and first["tied_rows"] == 5015
    assert first["grid"] == "bfloat16" and first["grade"] == first["effect"] == "changes_number"


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("tied_share > 0.1", 3),
        ("tied_share > 0.9", 0),
        ("cut_lists > 0 and largest_group >= 7", 3),
        ("range(nDCG@10) > 0.001", 3),
        ("inverted > 0.5", 0),
        ("changes_winner", 0),
        ("unfaithful > 0", 0),
    ],
)
def test_conditions(tiewise, condition, code):
    inputs = ("--qrels", "qrels.txt", "--reference", "minilm-fp32.trec.gz")
    done = tiewise("audit", "minilm-bf16.trec.gz", *inputs, "--fail-if", condition, code=code)
    assert ("check failed for run 'minilm-bf16'" in done.err) == (code == 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("missing.trec", "there is no such file"),
        ("empty.trec", "is empty"),
        ("nan.trec", "NaN has no rank"),
        ("minilm-bf16.trec.gz --cutoff 0", "0 is not in the range x>=1"),
        ("minilm-bf16.trec.gz --fail-if tied>1", "tied"),
        ("minilm-bf16.trec.gz --fail-if range(nDCG@10)>0", "needs judgments"),
        ("minilm-bf16.trec.gz --fail-if rbo<1", "reference"),
        ("minilm-bf16.trec.gz --library keras", "keras"),
    ],
)
def test_errors_write_no_file(tiewise, folder, words, message):
    done = tiewise("audit", *words.split(), "-o", "failed.json", code=2)
    assert message in done.err and not done.out
    assert not (folder / "failed.json").exists()


def test_an_audit_counts_the_queries_of_its_means(tiewise, tmp_path):
    """40 of 200 judged queries are in the run."""
    whole = tw.read_run(file("minilm-bf16.trec.gz"))
    few = tw.Run.from_dict(dict(list(whole.to_dict().items())[:40]))
    tw.write_run(few, tmp_path / "few.trec")
    command = ("audit", str(tmp_path / "few.trec"), "--qrels", "qrels.txt", "-m", "nDCG@10", "--complete")
    note = "160 judged queries are missing from the run and {}."
    shown = tiewise(*command, "--explain").out
    assert "few · 40 queries" in shown and "Means over 200 queries" in shown
    assert note.format("counted as 0") in " ".join(shown.split())
    for missing, queries, how in (("zero", 200, "counted as 0"), ("skip", 40, "left out")):
        found = tiewise(*command, "--missing", missing, "--format", "json").json
        expected = tw.evaluate(file("qrels.txt"), few, "nDCG@10", missing=missing, complete=True)["nDCG@10"].expected
        assert found["measured_queries"] == queries and note.format(how) in found["notes"]
        assert found["measures"]["nDCG@10"]["expected"] == expected
    assert "200 judged" not in tiewise(*command, "--missing", "error", code=2).out
    assert note.format("left out") in tw.audit(few, qrels=file("qrels.txt"), missing="skip").notes
