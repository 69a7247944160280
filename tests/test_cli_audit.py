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
    assert words.index("Not reliable: 49.4% of rows are tied") < words.index("scoring.score(")
    assert "sentence_transformers" not in words


def test_float32_scores_are_harmless(tiewise):
    document = tiewise("audit", "minilm-fp32.trec.gz", "--format", "json").json
    assert document["grid"] == "float32" and document["level"] == "harmless" and document["remedy"] is None


def test_a_reference_shows_fidelity(tiewise):
    command = ("audit", "minilm-bf16.trec.gz", "--reference", "minilm-fp32.trec.gz")
    fidelity = tiewise(*command, "--format", "json").json["fidelity"]
    assert 0 < fidelity["inverted"] < 0.01 and 0.98 < fidelity["rbo"] < 1
    assert "Against the reference" in tiewise(*command, "--format", "table").out


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "markdown", "latex"])
def test_every_format_has_the_verdict(tiewise, kind):
    text = tiewise("audit", "minilm-bf16.trec.gz", "--format", kind).out
    assert "Not reliable" in text
    if kind == "jsonl":
        assert all(isinstance(json.loads(line), dict) for line in text.splitlines())


def test_parquet_holds_the_rows(tiewise, folder):
    tiewise("audit", "minilm-bf16.trec.gz", "-o", "audit.parquet")
    rows = {row["name"]: row["value"] for row in pyarrow.parquet.read_table(folder / "audit.parquet").to_pylist()}
    assert rows["grid"] == "bfloat16" and rows["verdict"].startswith("Not reliable")


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("tied_share > 0.1", 3),
        ("tied_share > 0.9", 0),
        ("cut_lists > 0 and largest_group >= 7", 3),
        ("range(nDCG@10) > 0.001", 3),
        ("inverted > 0.5", 0),
        ("unreliable", 3),
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
