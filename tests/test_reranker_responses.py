"""Responses of rerankers behind an API, read as runs."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest

import tiewise as tw

IDS = ["d7", "d2", "d9"]
COHERE = {
    "id": "07734bd2",
    "results": [{"index": 1, "relevance_score": 0.98}, {"index": 0, "relevance_score": 0.25}],
    "meta": {"api_version": {"version": "2", "is_deprecated": False}},
}
JINA = {
    "model": "jina-reranker-v2-base-multilingual",
    "usage": {"total_tokens": 15},
    "results": [{"index": i, "document": {"text": "…"}, "relevance_score": s} for i, s in ((1, 0.98), (0, 0.25))],
}
VLLM = {"id": "rerank-1", "model": "m", "results": [{**r, "document": {"text": "…"}} for r in COHERE["results"]]}
VLLM_SCORE = {"object": "list", "data": [{"index": 0, "object": "score", "score": 0.25}, {"index": 1, "score": 0.98}]}
TEI = [{"index": 1, "score": 0.98}, {"index": 0, "score": 0.25, "text": "…"}]
YES_NO = [
    {"index": 0, "logprobs": {"yes": -1.5, "no": -0.25, "maybe": -4}},
    {"index": 1, "logprobs": [{"token": " Yes", "logprob": -0.5}, {"token": "No", "logprob": -1.0}]},
]


def write(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def line(response, query="q1", **more):
    return {"query_id": query, "doc_ids": IDS, "response": response, **more}


@pytest.mark.parametrize(
    "response", [COHERE, JINA, VLLM, VLLM_SCORE, TEI], ids=["Cohere", "Jina", "vLLM", "score", "TEI"]
)
def test_the_shapes_of_services_are_read(response, tmp_path):
    path = write(tmp_path / "responses.jsonl", line(response), line(response, "q2"))
    run = tw.read_run(path)
    assert run.source.format == "reranker"
    assert run.to_dict() == {query: {"d2": 0.98, "d7": 0.25} for query in ("q1", "q2")}
    assert tw.read_run(path, format="reranker").to_dict() == run.to_dict()


def test_yes_and_no_become_log_odds(tmp_path):
    run = tw.read_run(write(tmp_path / "a.jsonl", line(YES_NO)))
    assert run.to_dict() == {"q1": {"d7": -1.25, "d2": 0.5}}
    twice = {"yes": math.log(0.3), "Yes": math.log(0.3), "no": math.log(0.2)}
    run = tw.read_run(write(tmp_path / "b.jsonl", line([{"index": 2, "logprobs": twice}])))
    assert run.to_dict()["q1"]["d9"] == pytest.approx(math.log(3))


def test_without_ids_documents_have_their_numbers(tmp_path):
    run = tw.read_run(write(tmp_path / "a.jsonl", {"query_id": 5, "response": TEI}))
    assert run.to_dict() == {"5": {"1": 0.98, "0": 0.25}}


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"message": "rate limit"}, "a.jsonl:2: the response has no list of results; is it an error message"),
        ([{"score": 1.0}], "a.jsonl:2: a result has no index"),
        ([{"index": True, "score": 1.0}], "a result has no index"),
        ([{"index": 3, "score": 1.0}], "index 3, but there are 3 doc_ids"),
        ([{"index": 1, "score": 1.0}] * 2, "document 'd2' appears twice"),
        ([{"index": 1, "text": "…"}], "neither relevance_score, score nor logprobs"),
        ([{"index": 1, "score": "high"}], "high"),
        ([{"index": 1, "score": None}], "None"),
        ([{"index": 1, "score": True}], "not a number"),
        ([{"index": 1, "logprobs": {"yes": -0.1}}], "the logprobs have no 'no'. Ask for more of them"),
        ([{"index": 1, "logprobs": {"yes": "x", "no": 1}}], "logprobs must be"),
        ([{"index": 1, "logprobs": 7}], "logprobs must be"),
        ([{"index": 1, "logprobs": {"yes": "-1_0", "no": -1}}], "logprobs must be"),
        ([{"index": 1, "logprobs": {"yes": True, "no": -1}}], "logprobs must be"),
        ([{"index": 1, "logprobs": [{"token": "yes", "logprob": False}]}], "logprobs must be"),
        ([{"index": 1, "logprobs": {"yes": -(10**400), "no": -1}}], "logprobs must be"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(response, message, tmp_path):
    path = write(tmp_path / "a.jsonl", line(TEI), line(response, "q2"))
    with pytest.raises(tw.InputError, match=message):
        tw.read_run(path)


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (line(TEI), "a.jsonl:2: query 'q1' appears twice"),
        ({"query_id": "q2"}, "a.jsonl:2: expected"),
        (line(TEI, doc_ids="d1"), "doc_ids must be a list"),
        (line(TEI, doc_ids=[["a"], ["b"], ["c"]]), "where an id is text or a whole number"),
        (line(TEI, query=["q"]), "where an id is text or a whole number"),
    ],
)
def test_lines_that_are_refused(last, message, tmp_path):
    with pytest.raises(tw.InputError, match=message):
        tw.read_run(write(tmp_path / "a.jsonl", line(TEI), last))


def test_responses_are_no_judgments(tmp_path):
    with pytest.raises(tw.InputError, match="a run"):
        tw.read_qrels(write(tmp_path / "a.jsonl", line(TEI)))


def test_the_command_line_evaluates_them(tmp_path):
    write(tmp_path / "responses.jsonl", line(TEI))
    (tmp_path / "qrels.txt").write_text("q1 0 d7 1\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "tiewise",
        "evaluate",
        "qrels.txt",
        "responses.jsonl",
        "-m",
        "RR",
        "--format",
        "tsv",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1].split("\t")[:4] == ["responses", "RR", "all", "0.5"]


def responses_of(scores):
    lists = [{"index": place, "score": float(score)} for place, score in enumerate(scores)]
    return {"query_id": "q", "response": lists}


def test_the_audit_says_when_to_ask_for_raw_logits(tmp_path):
    logits = np.random.default_rng(0).normal(20, 8, 400)
    saturated = (1 / (1 + np.exp(-logits.astype(np.float32)))).astype(np.float32)
    audit = tw.audit(write(tmp_path / "a.jsonl", responses_of(saturated)))
    assert "raw_scores" in str(audit.advice) and "use_activation" in str(audit.advice)
    assert "sentence_transformers" not in str(audit.advice)
    fine = tw.audit(write(tmp_path / "b.jsonl", responses_of(logits)))
    assert fine.advice is None


def test_the_audit_of_other_files_does_not_speak_of_services(tmp_path):
    logits = np.random.default_rng(0).normal(20, 8, 400)
    saturated = (1 / (1 + np.exp(-logits.astype(np.float32)))).astype(np.float32)
    run = {"q": {str(place): float(score) for place, score in enumerate(saturated)}}
    assert "raw_scores" not in str(tw.audit(run).advice)
    assert "raw_scores" in str(tw.audit(run, library="reranker").advice)
