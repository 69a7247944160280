"""``tiewise audit``: the result of the library as text with a verdict, as rows and as JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet
import pytest

import tiewise as tw
from tiewise.example import file

NAMES = ("grid", "tied_share", "largest_group", "distinct", "cut_lists", "verdict", "remedy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    for name in ("qrels.txt", "minilm-bf16.trec.gz", "minilm-fp32.trec.gz"):
        shutil.copy(file(name), folder)
    (folder / "empty.trec").write_text("")
    (folder / "nan.trec").write_text("q1 Q0 a 1 nan t\n")
    return folder


def test_json_equals_the_result_of_the_library(tiewise, folder):
    document = tiewise("audit", "minilm-bf16.trec.gz", "--format", "json").json
    found = tw.audit(folder / "minilm-bf16.trec.gz")
    assert {name: document[name] for name in NAMES} == {name: getattr(found, name) for name in NAMES}
    assert document["grid"] == "bfloat16" and document["measures"] is None and document["fidelity"] is None
    judged = tiewise("audit", "minilm-bf16.trec.gz", "--qrels", "qrels.txt", "-m", "RR@10", "--format", "json").json
    report = tw.evaluate(folder / "qrels.txt", folder / "minilm-bf16.trec.gz", "RR@10", complete=True)
    assert judged["measures"]["RR@10"]["expected"] == report["RR@10"].expected


def test_table_ends_with_verdict_and_remedy(tiewise):
    text = tiewise("audit", "minilm-bf16.trec.gz", "--library", "own", "--format", "table").out
    words = " ".join(text.split())
    assert "lie on the bfloat16 grid" in words
    assert words.index("unknown without judgments: 49.4% of rows are tied") < words.index("scoring.score(")
    assert "sentence_transformers" not in words


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
    assert (bf16["name"], bf16["grade"], fp32["grade"]) == ("minilm-bf16", "report", "none")
    (reversal,) = bf16["reversals"]
    assert reversal["result"] == "minilm-fp32 against minilm-bf16 in nDCG@10" and "trec_eval" in reversal["tools"]
    assert reversal["significant"] is False
    alone = tiewise("audit", "minilm-bf16.trec.gz", *command[3:], "--format", "json").json
    assert alone["grade"] == "report" and alone["reversals"] == []
    text = tiewise(*command, "--format", "table").out
    assert text.startswith("2 runs\nrun ") and "worst case" in text and "minilm-fp32: Its ties change nothing" in text
    assert {row["run"] for row in tiewise(*command).rows} == {"minilm-bf16", "minilm-fp32"}
    assert "(not significant over queries) is reversed by 40.5% of random orders" in bf16["verdict"]
    assert "reversal" not in text
    assert tiewise(*command, "--fail-if", "decides").err == ""  # nobody claims the difference
    failed = tiewise(*command, "--fail-if", "decides or nDCG@10 < 0.445", code=3)
    assert "run 'minilm-bf16'" in failed.err and "run 'minilm-fp32'" not in failed.err
    unjudged = tiewise(*command[:3], "--format", "table").out
    assert "effect of ties" in unjudged and "unknown" in unjudged and "worst case" not in unjudged


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
    assert near["grade"] == "decides" and [one["result"] for one in near["reversals"]] == [
        "the check of nDCG@10 at .445"
    ]
    assert tiewise(*command, "--fail-if", "nDCG@10 < 0.4").json["grade"] == "report"


def test_a_reference_shows_fidelity(tiewise):
    command = ("audit", "minilm-bf16.trec.gz", "--reference", "minilm-fp32.trec.gz")
    fidelity = tiewise(*command, "--format", "json").json["fidelity"]
    assert 0 < fidelity["inverted"] < 0.01 and 0.98 < fidelity["rbo"] < 1
    assert "Against the reference" in tiewise(*command, "--format", "table").out


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "markdown", "latex"])
def test_every_format_has_the_verdict(tiewise, kind):
    text = tiewise("audit", "minilm-bf16.trec.gz", "--format", kind).out
    assert "without judgments" in text
    if kind == "jsonl":
        assert all(isinstance(json.loads(line), dict) for line in text.splitlines())


def test_parquet_holds_the_rows(tiewise, folder):
    tiewise("audit", "minilm-bf16.trec.gz", "-o", "audit.parquet")
    rows = {row["name"]: row["value"] for row in pyarrow.parquet.read_table(folder / "audit.parquet").to_pylist()}
    assert rows["grid"] == "bfloat16" and rows["verdict"].startswith("Effect of ties unknown")


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("tied_share > 0.1", 3),
        ("tied_share > 0.9", 0),
        ("cut_lists > 0 and largest_group >= 7", 3),
        ("range(nDCG@10) > 0.001", 3),
        ("inverted > 0.5", 0),
        ("decides", 0),
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
    shown = tiewise(*command, "--format", "table").out
    assert "few · 40 queries" in shown and "Means over 200 queries." in shown
    assert note.format("counted as 0") in " ".join(shown.split())
    for missing, queries, how in (("zero", 200, "counted as 0"), ("skip", 40, "left out")):
        found = tiewise(*command, "--missing", missing, "--format", "json").json
        expected = tw.evaluate(file("qrels.txt"), few, "nDCG@10", missing=missing, complete=True)["nDCG@10"].expected
        assert found["measured_queries"] == queries and note.format(how) in found["notes"]
        assert found["measures"]["nDCG@10"]["expected"] == expected
    assert "200 judged" not in tiewise(*command, "--missing", "error", code=2).out
    assert note.format("left out") in tw.audit(few, qrels=file("qrels.txt"), missing="skip").notes
