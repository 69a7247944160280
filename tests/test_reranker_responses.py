"""Responses of rerankers behind an API, read as runs."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import tiewise as tw
from tiewise.io import as_run

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


@pytest.mark.filterwarnings("ignore:.*numbered")
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


# -- services and language models -----------------------------------------------------------------------------------

SCORES = {"d7": 0.25, "d2": 0.98, "d9": 0.01}
PROBABILITIES = list(SCORES.values())
#: Two responses, each to the next documents, best first.
COHERE_PARTS = [
    [{"index": 1, "relevance_score": 0.98}, {"index": 0, "relevance_score": 0.25}],
    [{"index": 0, "relevance_score": 0.01}],
]
ODDS = {doc: math.log(p) - math.log(1 - p) for doc, p in SCORES.items()}
TOP = [{"Yes": -0.5, "No": -1.5}, {"no": -0.5, " yes": -2.5}, {"yes": -1.0, "NO": -4.0, "maybe": -5.0}]
TRUE_FALSE = [{"▁true": -0.5, "▁false": -1.5}, {"false": -0.5, "true": -2.5}, {"True": -1.0, "False": -4.0, "yes": -3}]
OF_TOP = {"d7": 1.0, "d2": -2.0, "d9": 3.0}
ORDER = {"d9": -1.0, "d7": -2.0, "d2": -3.0}


def results(**names):
    """Results as of Cohere, with other names."""
    return [{"index": place, names["score"]: score} for place, score in enumerate(PROBABILITIES)]


def steps(top, token="token", logprob="logprob"):
    """The first token of an answer, with what was likely in its place."""
    likely = [{token: word, logprob: value} for word, value in top.items()]
    return [{**likely[0], "bytes": [1], "top_logprobs": likely}]


def chat(top):
    message = {"role": "assistant", "content": next(iter(top))}
    choice = {"index": 0, "message": message, "logprobs": {"content": steps(top)}, "finish_reason": "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": {}}


def completion(tops):
    choices = [
        {
            "index": place,
            "text": next(iter(top)),
            "logprobs": {"tokens": [next(iter(top))], "token_logprobs": [max(top.values())], "top_logprobs": [top]},
        }
        for place, top in enumerate(tops)
    ]
    return {"id": "cmpl-1", "object": "text_completion", "choices": choices}


def tgi(top):
    likely = [{"id": 1, "text": word, "logprob": value, "special": False} for word, value in top.items()]
    return {"generated_text": next(iter(top)), "details": {"tokens": likely[:1], "top_tokens": [likely]}}


def gemini(top):
    likely = [{"token": word, "logProbability": value} for word, value in top.items()]
    return {"candidates": [{"content": {}, "logprobsResult": {"topCandidates": [{"candidates": likely}]}}]}


def llama_cpp(top, name, token):
    likely = [{token: word, "prob": math.exp(value)} for word, value in top.items()]
    step = {"content": next(iter(top)), name: [*likely, {token: "never", "prob": 0.0}]}
    return {"index": 0, "content": step["content"], "completion_probabilities": [step]}


def classes(probabilities, names):
    return [
        {"index": place, "label": names[p > 0.5], "probs": [1 - p, p], "num_classes": 2}
        for place, p in enumerate(probabilities)
    ]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"object": "list", "data": results(score="score"), "top_k": 3}, SCORES),  # Mixedbread, Pinecone
        ({"rankings": results(score="logit")}, SCORES),  # NVIDIA NIM
        ({"results": results(score="relevanceScore")}, SCORES),  # Bedrock
        ({"output": {"results": results(score="relevance_score")}, "request_id": "r"}, SCORES),  # DashScope
        ({"rerank": results(score="relevance_score")}, SCORES),  # Elasticsearch
        ({"records": [{"id": doc, "score": score, "title": ""} for doc, score in SCORES.items()]}, SCORES),  # Google
        ([{"id": doc, "score": score, "text": ""} for doc, score in SCORES.items()], SCORES),  # FlashRank
        ([{"corpus_id": place, "score": score} for place, score in enumerate(PROBABILITIES)], SCORES),  # CrossEncoder
        ({"scores": PROBABILITIES, "input_tokens": 5}, SCORES),  # DeepInfra
        (PROBABILITIES, SCORES),
        (
            {
                "hits": {
                    "hits": [
                        {"_id": doc, "_score": SCORES[doc]} for doc in sorted(SCORES, key=lambda doc: -SCORES[doc])
                    ]
                }
            },
            SCORES,
        ),
        ({"data": [{"index": i, "label": "LABEL_0", "probs": [p]} for i, p in enumerate(PROBABILITIES)]}, SCORES),
        ({"data": classes(PROBABILITIES, ("LABEL_0", "LABEL_1"))}, ODDS),  # vLLM /classify
        ({"data": classes(PROBABILITIES, ("no", "yes"))}, ODDS),
        ({"data": classes([0.5] * len(PROBABILITIES), ("no", "yes"))}, dict.fromkeys(ODDS, 0.0)),
        ({"data": [{"index": i, "object": "pooling", "data": [p]} for i, p in enumerate(PROBABILITIES)]}, SCORES),
        ({"data": [{"index": i, "object": "pooling", "data": p} for i, p in enumerate(PROBABILITIES)]}, SCORES),
        ([[{"label": "LABEL_0", "score": p}] for p in PROBABILITIES], SCORES),  # TEI /predict
        ([{"label": "LABEL_0", "score": p / 64} for p in PROBABILITIES], {d: s / 64 for d, s in SCORES.items()}),  # HF
        ({"result": {"response": [{"id": i, "score": p} for i, p in enumerate(PROBABILITIES)]}}, SCORES),  # Cloudflare
        ({"results": [{"index": i, "relevance_score": str(p)} for i, p in enumerate(PROBABILITIES)]}, SCORES),
        (
            [{"node": {"id_": doc}, "score": SCORES[doc]} for doc in sorted(SCORES, key=lambda doc: -SCORES[doc])],
            SCORES,
        ),  # LlamaIndex
        (
            [{"page_content": "…", "metadata": {"id": doc, "relevance_score": score}} for doc, score in SCORES.items()],
            SCORES,
        ),
        ([[{"label": "LABEL_1", "score": p}, {"label": "LABEL_0", "score": 1 - p}] for p in PROBABILITIES], ODDS),
        ([chat(top) for top in TOP], OF_TOP),
        ([{"status_code": 200, "body": chat(top)}["body"] for top in TOP], OF_TOP),
        (completion(TOP), OF_TOP),
        (completion(TRUE_FALSE), OF_TOP),
        ([tgi(top) for top in TOP], OF_TOP),
        ([gemini(top) for top in TOP], OF_TOP),
        ([{"output": [{"type": "message", "content": [{"logprobs": steps(top)}]}]} for top in TOP], OF_TOP),
        ([{"index": 0, "content": "yes", "completion_probabilities": steps(top)} for top in TOP], OF_TOP),  # llama.cpp
        ([llama_cpp(top, "top_probs", "token") for top in TOP], OF_TOP),  # with post_sampling_probs
        ([llama_cpp(top, "probs", "tok_str") for top in TOP], OF_TOP),  # until 2024
        ([[tgi(top)] for top in TOP], OF_TOP),
        ([{"message": {}, "done": True, "logprobs": steps(top)} for top in TOP], OF_TOP),  # Ollama
        (
            [{"text": "", "meta_info": {"output_top_logprobs": [[[v, 5, w] for w, v in top.items()]]}} for top in TOP],
            OF_TOP,
        ),  # SGLang
        ("[3] > [1] > [2]", ORDER),
        ("The order is [C] > [A] > [B].", ORDER),
        ({"choices": [{"message": {"content": "[3] > [1] > [2]"}, "logprobs": None}]}, ORDER),
        ({"type": "message", "content": [{"type": "text", "text": "[3] > [1] > [2]"}]}, ORDER),  # Anthropic
        ({"message": {"role": "assistant", "content": "[3] > [1] > [2]"}, "done": True}, ORDER),  # Ollama
        ({"candidates": [{"content": {"parts": [{"text": "[3] > [1] > [2]"}]}}]}, ORDER),  # Gemini
        ("<think>[1] > [2]?</think>\n[3] > [1] > [2]", ORDER),
        ({"output": [{"type": "reasoning"}, {"type": "message", "content": [{"text": "[3] > [1] > [2]"}]}]}, ORDER),
        ({"permutation": [2, 0, 1]}, ORDER),
        ([{"results": COHERE_PARTS[0]}, {"results": COHERE_PARTS[1]}], SCORES),
        (COHERE_PARTS, SCORES),  # TEI takes 32 documents in a request
        ([{"result_index": i, "score": p, "rank": 1} for i, p in enumerate(PROBABILITIES)], SCORES),  # RAGatouille
        ({"scores": [[p] for p in PROBABILITIES]}, SCORES),  # logits of a model
        ({"permutation": [3, 1, 2]}, ORDER),
    ],
)
def test_responses_of_services_and_language_models(response, expected, tmp_path):
    found = tw.read_run(write(tmp_path / "a.jsonl", line(response))).to_dict()["q1"]
    assert found == pytest.approx(expected)


def test_a_response_for_each_document(tmp_path):
    each = [{"query_id": "q1", "doc_id": doc, "response": chat(top)} for doc, top in zip(IDS, TOP, strict=True)]
    several = [line({"status_code": 200, "body": chat(top)}, doc_ids=[doc]) for doc, top in zip(IDS, TOP, strict=True)]
    together = [{"query_id": "q1", "doc_ids": IDS, "responses": [chat(top) for top in TOP]}]
    for lines in (each, several, together):
        assert tw.read_run(write(tmp_path / "a.jsonl", *lines)).to_dict() == {"q1": OF_TOP}
    with pytest.raises(tw.InputError, match=r"a.jsonl:4: query 'q1' appears twice"):
        tw.read_run(write(tmp_path / "a.jsonl", *each, each[0]))
    with pytest.raises(tw.InputError, match="query 'q1' appears twice"):  # orders of parts cannot be compared
        tw.read_run(write(tmp_path / "a.jsonl", *(line("[2] > [1]", doc_ids=[a, a + "x"]) for a in IDS)))


def test_a_blank_token_before_the_answer(tmp_path):
    answer = chat({"yes": -0.5, "no": -1.5})
    content = answer["choices"][0]["logprobs"]["content"]
    content.insert(0, {"token": "\n", "logprob": 0.0, "top_logprobs": []})
    assert tw.read_run(write(tmp_path / "a.jsonl", line([answer], doc_ids=["a"]))).to_dict() == {"q1": {"a": 1.0}}


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ([chat(top) for top in TOP[:2]], "2 answers for 3 doc_ids"),
        ([chat({"yes": -0.5})] * 3, "the logprobs have no 'no'"),
        ([{"content": [{"type": "text", "text": "Yes"}]}] * 3, "the response is a text, 'Yes', without the log-prob"),
        ({"message": {"content": "Yes"}, "done": True}, "the response is a text, 'Yes', without the log-prob"),
        ([chat({"<think>": -0.1, "yes": -3.0})] * 3, "the logprobs have no 'no'"),
        ({"choices": [{"message": {"content": "yes"}, "logprobs": None}]}, "no logprobs of its first token"),
        ({"choices": chat(TOP[0])["choices"] * 2}, "2 choices, which are answers to one prompt"),
        ({"choices": []}, "no choices"),
        ([{"output": [{"type": "reasoning"}], "status": "incomplete"}] * 3, "no logprobs of its first token"),
        ([{"index": 0, "logprobs": {"yes": -1, "no": -2, "true": -1, "false": -2}}], "both yes and no, and true"),
        ("[3] > [1]", "the order has 2 of 3 documents"),
        ("[3] > [1] > [1]", "or one of them twice"),
        ("[3] > [1] = [2]", "expected one order"),
        ({"permutation": [1, 2, 4]}, "the order has 3 of 3"),
        ([2, 0, 1], "may be scores or an order"),
        ([0.5, 0.25], "2 answers for 3 doc_ids"),
        ([{"label": "LABEL_0", "score": 0.9}] * 3, "a result has no index"),
        ([{"id": "other", "score": 0.9}], "the id 'other', which is not one of the doc_ids"),
        ({"data": [{"index": 0, "label": "entailment", "probs": [0.1, 0.9]}]}, "does not say which is relevant"),
        ({"data": [{"index": 0, "label": "yes", "probs": ["x"]}]}, "probs must be a list of numbers"),
        ([[{"label": "a", "score": 0.5}, {"label": "b", "score": 0.5}]] * 3, "the labels 'a', 'b' do not say"),
        ([[{"name": "a"}]] * 3, "expected for each document"),
        ({"data": [{"index": 0, "object": "pooling", "data": [0.1, 0.2]}]}, "a pooled vector is not a score"),
        ({"data": [{"index": 0, "object": "pooling", "data": "AAAA"}]}, "a pooled vector is not a score"),
        ({"data": [{"index": 0, "object": "embedding", "embedding": [0.1]}]}, "neither relevance_score, score nor"),
        ({"error": {"message": "rate limit"}}, "is it an error message"),
        ({"message": "rate limit"}, "is it an error message: 'rate limit'"),
        (
            [{"label": "LABEL_1", "score": 0.9}, {"label": "LABEL_0", "score": 0.75}] * 2,
            "Ask for all classes: top_k=None",
        ),
        ("rate limit", "no list of results"),
        ([[{"index": 1, "score": 0.5}], [{"index": 0, "score": 0.5}]], "Write a line with its own doc_ids for each"),
        ([[{"index": 0, "id": "d2", "score": 0.5}]] * 3, "has index 0 and the id 'd2', but doc_ids has 'd7' there"),
        ("<think>[3] > [1] > [2]", "the model was cut while it was thinking. Allow it more tokens"),
        ({"results": [{"id": "other", "score": 0.9}]}, "the id 'other', which is not one of the doc_ids"),
        ({"hits": {"hits": [{"_id": "other", "_score": 0.9}]}}, "the id 'other', which is not one of the doc_ids"),
        ([{"node": {"id_": "other"}, "score": 0.9}], "the id 'other', which is not one of the doc_ids"),
        ({"result": {"points": [{"id": 0, "score": 0.9}]}}, "the id '0', which is not one of the doc_ids"),
        ([{"index": 0, "document": {"id": "d2"}, "score": 0.9}], "index 0 and the id 'd2', but doc_ids has 'd7'"),
        ([{"label": "no", "score": 0.01}] * 3, "the labels 'no' do not say which is relevant"),
        ([[{"label": "irrelevant", "score": 0.5}]] * 3, "the labels 'irrelevant' do not say which is relevant"),
        ({"data": [{"index": 0, "label": "no", "probs": [0.1]}]}, "do not say which is relevant"),
    ],
)
def test_responses_that_are_refused(response, message, tmp_path):
    with pytest.raises(tw.InputError, match=message) as error:
        tw.read_run(write(tmp_path / "a.jsonl", line(response)))
    assert "a.jsonl:1: " in str(error.value) and "\n" not in str(error.value)


# -- batches, bounds, numbers -----------------------------------------------------------------------------------------


def batch(make, ids=IDS, query="q1", **more):
    """The output of OpenAI's batch interface."""
    return [
        {
            "id": f"batch_req_{place}",
            "custom_id": make(query, doc),
            "response": {"status_code": 200, "request_id": "r", "body": chat(top)},
            "error": None,
            **more,
        }
        for place, (doc, top) in enumerate(zip(ids, TOP, strict=True))
    ]


@pytest.mark.parametrize("make", ["{}_{}", "{}-{}", "{}/{}", "{}|{}", "{}__{}", "{}::{}"])
def test_the_ids_of_a_batch_name_queries_and_documents(make, tmp_path):
    path = write(tmp_path / "a.jsonl", *batch(make.format))
    with pytest.warns(tw.TiewiseWarning, match=r"a.jsonl: custom_id '.*' is read as query 'q1', document 'd7'"):
        assert tw.read_run(path).to_dict() == {"q1": OF_TOP}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (batch("{}{}".format), "a.jsonl:1: custom_id 'q1d7' names no query and document. Write query_id and doc_id"),
        (batch("request-{1}".format, ids=["1", "2", "3"]), "custom_id 'request-1' names no query and document"),
        (batch("task-{}-{}".format), "custom_id 'task-q1-d7' names no query and document"),
        (batch("q-{}_{}".format), "custom_id 'q-q1_d7' may be divided at '_' or '-'"),
        ([*batch("{}_{}".format), *batch("{}-{}".format)], "names no query and document"),
        (batch("{1}_{0}".format), "the first parts differ more than the second"),
        ([*batch("{}_{}".format), {"custom_id": "q1_d1"}], "a.jsonl:4: has no custom_id with a response"),
        (batch("{}_{}".format, response=None, error={"code": "expired"}), "a.jsonl:1: .* is it an error message"),
        (
            [{"custom_id": "q1_d7", "result": {"message": {"content": [{"type": "text", "text": "Yes"}]}}}],
            "a.jsonl:1: the response is a text, 'Yes', without the log-probabilities",
        ),
        (
            [{"custom_id": "q1_d7", "response": {"body": {"choices": [{"message": {}, "logprobs": None}]}}}],
            "a.jsonl:1: the response has no logprobs of its first token. Ask for them: logprobs=True, top_logprobs=20",
        ),
        ([chat(top) for top in TOP], "a.jsonl:1: is a response without the ids of its query and document. Expected"),
        ([{"choices": [{"message": {"content": "yes"}}]}], "a.jsonl:1: is a response without the ids of its query"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*is read as query")
def test_batches_that_are_refused(lines, message, tmp_path):
    with pytest.raises(tw.InputError, match=message):
        tw.read_run(write(tmp_path / "a.jsonl", *lines))


def test_a_response_beside_its_ids(tmp_path):
    each = [{"query_id": "q1", "doc_id": doc, **chat(top)} for doc, top in zip(IDS, TOP, strict=True)]
    assert tw.read_run(write(tmp_path / "a.jsonl", *each)).to_dict() == {"q1": OF_TOP}
    assert tw.read_run(write(tmp_path / "b.jsonl", {"query_id": "q1", "doc_ids": IDS, **COHERE})).to_dict() == {
        "q1": {"d2": 0.98, "d7": 0.25}
    }


def test_a_word_that_is_not_listed_makes_a_bound(tmp_path):
    sure = [{"Yes": -0.25, "Yeah": -2.0, "Sure": -5.0}, {"No": -0.5, "Nope": -2.5, "<bad>": -9999.0}]
    path = write(tmp_path / "a.jsonl", line([chat(top) for top in (*TOP, *sure)], doc_ids=[*IDS, "a", "b"]))
    with pytest.warns(tw.TiewiseWarning, match=r"a.jsonl: 2 of 5 answers have only one of yes and no among their"):
        assert tw.read_run(path).to_dict() == {"q1": {**OF_TOP, "a": 4.75, "b": -2.0}}
    path = write(tmp_path / "a.jsonl", line([chat(top) for top in (TOP[0], *sure)]))
    with pytest.raises(tw.InputError, match=r"a.jsonl: 2 of 3 answers have only one of yes and no .* Ask for more"):
        tw.read_run(path)
    path = write(tmp_path / "a.jsonl", line([*map(chat, TOP), chat({"Maybe": -0.1, "yes": -3.0})], doc_ids=[*IDS, "a"]))
    with pytest.raises(tw.InputError, match="the logprobs have no 'no'"):  # it is no answer
        tw.read_run(path)


def test_answers_that_begin_with_another_word_are_noted(tmp_path):
    other = chat({"Relevant": -0.1, "yes": -3.0, "no": -5.0})
    path = write(tmp_path / "a.jsonl", line([*map(chat, TOP[:2]), other]))
    with pytest.warns(tw.TiewiseWarning, match=r"a.jsonl: 1 of 3 answers do not begin with yes or no; their scores"):
        assert tw.read_run(path).to_dict()["q1"]["d9"] == 2.0
    path = write(tmp_path / "b.jsonl", line([chat(TOP[0]), other, other]))
    with pytest.raises(tw.InputError, match=r"b.jsonl: 2 of 3 answers do not begin .* \{\"yes\": …, \"no\": …\}"):
        tw.read_run(path)


def test_documents_without_a_score_are_noted(tmp_path):
    path = write(tmp_path / "a.jsonl", line(COHERE), line({"results": COHERE["results"][:1]}, "q2"), line(YES_NO, "q3"))
    with pytest.warns(tw.TiewiseWarning, match=r"a.jsonl: 4 of 9 doc_ids have no score in 3 responses \(top_n\?\)"):
        tw.read_run(path)
    parts = [line(COHERE, doc_ids=["a", "b"]), line(COHERE, doc_ids=["c", "d"])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(tw.read_run(write(tmp_path / "b.jsonl", *parts))) == 4


@pytest.mark.parametrize("response", [COHERE, TEI])
def test_a_response_as_text_is_parsed(tmp_path, response):
    path = write(tmp_path / "a.jsonl", line(json.dumps(response), doc_ids=IDS[:2]))
    assert tw.read_run(path).to_dict() == {"q1": {"d2": 0.98, "d7": 0.25}}
    with pytest.raises(tw.InputError, match="no list of results"):
        tw.read_run(write(tmp_path / "b.jsonl", line('{"results": [')))


@pytest.mark.parametrize("error", [{"message": "rate limit"}, {"error": {"message": "rate limit", "code": 429}}])
def test_an_error_message_of_a_service(tmp_path, error):
    for lines, place in (([error], 1), ([error, line(TEI)], 1), ([line(TEI), error], 2)):
        path = write(tmp_path / "a.jsonl", *lines)
        with pytest.raises(tw.InputError, match=rf"a.jsonl:{place}: looks like an error message .* 'rate limit'"):
            tw.read_run(path)


@pytest.mark.filterwarnings("ignore:.*numbered")
def test_numbered_documents_that_are_not_judged(tmp_path):
    path = write(tmp_path / "a.jsonl", {"query_id": "q1", "response": TEI})
    with pytest.raises(tw.InputError, match=r"no document in common.* without doc_ids are numbered: add doc_ids"):
        tw.evaluate({"q1": {"d7": 1}}, path)
    with pytest.raises(tw.InputError, match=r"no document in common.* of the qrels: 'other'\.$"):
        tw.evaluate({"q1": {"other": 1}}, write(tmp_path / "b.jsonl", line(TEI, doc_ids=IDS[:2])))


def test_other_names_of_queries_and_documents(tmp_path):
    documents = [{"id": doc, "text": "…"} for doc in IDS]
    for names in ({"topic_id": "q1"}, {"query": {"id": "q1"}}, {"id": "q1", "query": "what?"}):
        for docs in ({"doc_ids": IDS}, {"documents": documents}):
            line = {**names, **docs, "response": results(score="score")}
            assert tw.read_run(write(tmp_path / "a.jsonl", line)).to_dict() == {"q1": SCORES}


def test_documents_that_are_numbered_are_noted(tmp_path):
    texts = {"query_id": "q", "documents": ["a text", "another"], "response": TEI}
    with pytest.warns(tw.TiewiseWarning, match=r"lines without doc_ids: their documents are numbered 0, 1, 2 …"):
        assert tw.read_run(write(tmp_path / "a.jsonl", texts)).to_dict() == {"q": {"1": 0.98, "0": 0.25}}
    with pytest.raises(tw.InputError, match=r"the documents look like ids. Call them doc_ids"):
        tw.read_run(write(tmp_path / "a.jsonl", {**texts, "documents": ["d7", "d2"]}))
    inside = [{"index": 1, "relevance_score": 0.5, "document": {"id": "d2", "text": "…"}}]
    run = tw.read_run(write(tmp_path / "a.jsonl", {"query_id": "q", "response": {"results": inside}}))
    assert run.to_dict() == {"q": {"d2": 0.5}}


def responses_of(scores):
    lists = [{"index": place, "score": float(score)} for place, score in enumerate(scores)]
    return {"query_id": "q", "response": lists}


@pytest.mark.filterwarnings("ignore:.*numbered")
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


@pytest.mark.parametrize("name", ["docids", "docid", "document_ids", "ids", "pids", "corpus_ids"])
def test_ids_of_another_name_are_not_replaced_by_numbers(tmp_path, name):
    line = {"query_id": "q", name: ["7", "2"], "response": [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.5}]}
    assert tw.read_run(write(tmp_path / "a.jsonl", line)).to_dict() == {"q": {"2": 0.9, "7": 0.5}}


@pytest.mark.parametrize("name", ["candidates", "hits", "documents", "retrieved"])
def test_lists_beside_a_response_that_may_be_ids_are_not_ignored(tmp_path, name):
    line = {"query_id": "q", name: ["7", "2"], "response": [{"index": 1, "score": 0.9}]}
    with pytest.raises(tw.InputError, match=f"the {name} look like ids. Call them doc_ids; if they are texts, leave"):
        tw.read_run(write(tmp_path / "a.jsonl", line))
    with_texts = {**line, name: [{"docid": "7", "text": "…"}, {"docid": "2", "text": "…"}]}
    assert tw.read_run(write(tmp_path / "b.jsonl", with_texts)).to_dict() == {"q": {"2": 0.9}}


# -- the number or the order that a model wrote ----------------------------------------------------------------------


def written(text):
    """A chat response with a text, without log-probabilities."""
    message = {"role": "assistant", "content": text, "refusal": None}
    choices = [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}]
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": choices}


NUMBERS = [
    *(0.75, "0.75", {"score": 0.75}, {"relevance_score": "0.75"}),
    *(written("0.75"), written(" 0.75\n"), written('{"score": 0.75}'), written('```json\n{"score": 0.75}\n```')),
    {"content": [{"type": "text", "text": "0.75"}], "role": "assistant"},
    {"candidates": [{"content": {"parts": [{"text": "0.75"}], "role": "model"}}]},
    {"logprobs": {"yes": -0.5, "no": -1.25}},
]


@pytest.mark.parametrize("response", NUMBERS, ids=str)
def test_one_document_with_a_number(tmp_path, response):
    lines = [{"qid": "q", "pid": "d7", "response": response}, {"qid": "q", "pid": "d2", "response": 0.5}]
    assert tw.read_run(write(tmp_path / "a.jsonl", *lines)).to_dict() == {"q": {"d7": 0.75, "d2": 0.5}}


def test_a_number_that_was_written_does_not_stand_for_the_log_probabilities_of_its_token(tmp_path):
    line = {"query_id": "q", "doc_id": "d7", "response": chat({"1": -0.1, "0": -2.5})}
    with pytest.raises(tw.InputError, match=r"neither yes nor no, but '1', '0'. Let the model answer yes or no; of ot"):
        tw.read_run(write(tmp_path / "a.jsonl", line))


@pytest.mark.parametrize("response", ["0.75 or less", True, None, {"rating": 3}, written("Yes")], ids=str)
def test_what_is_no_number_is_refused(tmp_path, response):
    with pytest.raises(tw.InputError, match=r"a.jsonl:1: "):
        tw.read_run(write(tmp_path / "a.jsonl", {"query_id": "q", "doc_id": "d7", "response": response}))


def test_a_number_is_not_the_answer_to_several_documents(tmp_path):
    with pytest.raises(tw.InputError, match="1 answers for 3 doc_ids"):
        tw.read_run(write(tmp_path / "a.jsonl", line(written("0.75"))))


ORDERS = ["[3] > [1] > [2]", "3 > 1 > 2", {"permutation": [3, 1, 2]}, {"order": [2, 0, 1]}, [IDS[2], IDS[0], IDS[1]]]
ORDERS += [*(written(one if isinstance(one, str) else json.dumps(one)) for one in ORDERS)]
ORDERS += [written("```json\n" + json.dumps({"permutation": [3, 1, 2]}) + "\n```")]


@pytest.mark.parametrize("response", ORDERS, ids=str)
def test_orders_of_all_documents(tmp_path, response):
    expected = {"q1": {IDS[2]: -1.0, IDS[0]: -2.0, IDS[1]: -3.0}}
    assert tw.read_run(write(tmp_path / "a.jsonl", line(response))).to_dict() == expected


@pytest.mark.parametrize(
    "response", [written("[3, 1, 2]"), written('{"ranking": [3, 1, 2]}'), written("3, 1, 2")], ids=str
)
def test_orders_that_may_be_ranks_or_scores_are_refused(tmp_path, response):
    with pytest.raises(tw.InputError, match=r"a.jsonl:1: "):
        tw.read_run(write(tmp_path / "a.jsonl", line(response)))


# -- where lines have a response ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["result", "output", "body", "results"])
def test_a_response_under_the_name_that_a_batch_gives_it(tmp_path, name):
    whole = {
        "query_id": "q1",
        "doc_ids": IDS,
        name: {"results": [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.5}]},
    }
    assert tw.read_run(write(tmp_path / "a.jsonl", whole)).to_dict() == {"q1": {IDS[1]: 0.9, IDS[0]: 0.5}}


def test_a_batch_of_anthropic_with_orders(tmp_path):
    message = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "[3] > [1] > [2]"}]}
    whole = {"custom_id": "q1", "result": {"type": "succeeded", "message": message}}
    with pytest.raises(tw.InputError, match="Write query_id and doc_id beside it, or doc_ids of an answer that orders"):
        tw.read_run(write(tmp_path / "a.jsonl", whole))
    run = tw.read_run(write(tmp_path / "b.jsonl", {**whole, "query_id": "q1", "doc_ids": IDS}))
    assert run.to_dict() == {"q1": {IDS[2]: -1.0, IDS[0]: -2.0, IDS[1]: -3.0}}


def test_ids_of_google_that_are_numbers_of_the_request(tmp_path):
    records = [{"id": str(place), "title": "…", "score": score} for place, score in ((2, 0.9), (0, 0.5), (1, 0.1))]
    expected = {"q1": {IDS[2]: 0.9, IDS[0]: 0.5, IDS[1]: 0.1}}
    assert tw.read_run(write(tmp_path / "a.jsonl", line({"records": records}))).to_dict() == expected
    with pytest.raises(tw.InputError, match="the id '2', which is not one of the doc_ids"):  # from 0 or from 1?
        tw.read_run(write(tmp_path / "b.jsonl", line({"records": records[:2]})))


def test_responses_of_clients_in_memory():
    found = [SimpleNamespace(index=i, relevance_score=p) for i, p in enumerate(PROBABILITIES)]
    for response in (SimpleNamespace(results=found, meta=None), found, np.array(PROBABILITIES)):
        assert as_run([line(response)]).to_dict() == {"q1": SCORES}


def test_lines_in_memory():
    lines = [line(TEI), line([0.5, 0.25, 0.75], "q2")]
    with pytest.warns(tw.TiewiseWarning, match="run: 1 of 3 doc_ids have no score in 1 response"):
        report = tw.evaluate({"q1": {"d2": 1}, "q2": {"d2": 1}}, lines, "RR")
    assert report["RR"].expected == (1 + 1 / 3) / 2
    with pytest.raises(tw.InputError, match=r"run:1: 2 answers for 3 doc_ids"):
        tw.evaluate({"q1": {"d2": 1}}, [lines[0], line([0.5, 0.25], "q2")], "RR")


def test_ids_in_the_request_are_not_ignored(tmp_path):
    results = {"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.5}]}
    whole = {"query_id": "q", "request": {"query": "…", "documents": ["7", "2"]}, "response": results}
    with pytest.raises(tw.InputError, match=r"the documents look like ids. Call them doc_ids; if"):
        tw.read_run(write(tmp_path / "a.jsonl", whole))
    whole["request"] = {"query": "…", "documents": [{"id": "7", "text": "…"}, {"id": "2", "text": "…"}]}
    assert tw.read_run(write(tmp_path / "b.jsonl", whole)).to_dict() == {"q": {"2": 0.9, "7": 0.5}}


def test_what_may_be_ids_or_places(tmp_path):
    ids = {"query_id": "q", "doc_ids": ["3", "1", "2"]}
    with pytest.raises(tw.InputError, match="the order '1 > 3 > 2' may be of doc_ids or of places"):
        tw.read_run(write(tmp_path / "a.jsonl", {**ids, "response": "1 > 3 > 2"}))
    assert tw.read_run(write(tmp_path / "b.jsonl", {**ids, "response": ["1", "3", "2"]})).to_dict() == {
        "q": {"1": -1.0, "3": -2.0, "2": -3.0}
    }


@pytest.mark.parametrize("response", [{"order": [3, 1, 2]}, "[3] > [1] > [2]", {"permutation": [3, 1, 2]}], ids=str)
def test_doc_ids_that_may_be_places(tmp_path, response):
    with pytest.raises(tw.InputError, match=r"may be of doc_ids or of places\. Give a list of doc_ids as text"):
        tw.read_run(write(tmp_path / "a.jsonl", line(response, doc_ids=[2, 3, 1])))
    run = tw.read_run(write(tmp_path / "b.jsonl", line(response, doc_ids=[1, 2, 3])))  # both are the same
    assert run.to_dict() == {"q1": {"3": -1.0, "1": -2.0, "2": -3.0}}


@pytest.mark.parametrize(
    "beside",
    [
        {"candidates": [["7", 0.5], ["2", 0.25]]},
        {"candidates": {"7": "a text", "2": "a text"}},
        {"request": {"body": {"documents": {"7": "a text", "2": "a text"}}}},
        {"docs": [{"doc_id": "7"}, {"doc_id": "2"}], "chunks": [{"id": "7#1"}, {"id": "2#1"}]},
        {"doc_ids": None},
    ],
    ids=str,
)
def test_documents_beside_which_ids_may_stand_are_not_numbered(tmp_path, beside):
    response = {"results": [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.5}]}
    with pytest.raises(tw.InputError, match="doc_ids"):
        tw.read_run(write(tmp_path / "a.jsonl", {"query_id": "q", **beside, "response": response}))


@pytest.mark.parametrize("documents", [[{"meta": {"id": "7"}}, {"meta": {"id": "2"}}], [{"id": "7"}, {"id": "2"}]])
def test_ids_of_documents_in_the_body_of_a_request(tmp_path, documents):
    response = {"results": [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.5}]}
    whole = {"query_id": "q", "request": {"body": {"documents": documents}}, "response": response}
    assert tw.read_run(write(tmp_path / "a.jsonl", whole)).to_dict() == {"q": {"2": 0.9, "7": 0.5}}


def test_indexes_beside_doc_ids_are_no_ids(tmp_path):
    results = [{"corpus_id": 1, "score": 0.9}, {"corpus_id": 0, "score": 0.5}]  # of CrossEncoder.rank
    path = write(tmp_path / "a.jsonl", {"query_id": "q", "doc_ids": IDS[:2], "results": results})
    assert tw.read_run(path).to_dict() == {"q": {IDS[1]: 0.9, IDS[0]: 0.5}}


def test_an_order_and_scores_of_one_query_are_not_merged(tmp_path):
    lines = [line("[2] > [1]", doc_ids=["a", "b"]), line([0.5, 0.25], doc_ids=["c", "d"])]
    for both in (lines, lines[::-1]):
        with pytest.raises(tw.InputError, match=r"a\.jsonl:2: query 'q1' appears twice"):
            tw.read_run(write(tmp_path / "a.jsonl", *both))


def test_a_number_with_its_reason(tmp_path):
    text = json.dumps({"score": 3, "reason": "It names the year."})
    for response in (json.loads(text), text, written(text)):
        one = {"query_id": "q", "doc_id": "d7", "response": response}
        assert tw.read_run(write(tmp_path / "a.jsonl", one)).to_dict() == {"q": {"d7": 3.0}}


def test_scores_that_are_named_may_be_whole_numbers_in_any_order(tmp_path):
    path = write(tmp_path / "a.jsonl", line({"scores": [3, 1, 2]}))
    assert tw.read_run(path).to_dict() == {"q1": dict(zip(IDS, (3.0, 1.0, 2.0), strict=True))}
