"""Every shape of runs and judgments that people have is read as it was meant, or refused with one clear line.

Each shape has a name, which docs/formats.md uses, and content as the tool writes it. Where the tool is installed, the
test lets it write the content.
"""

# ruff: noqa: E501 (a shape is easier to compare with others on one line)
from __future__ import annotations

import contextlib
import io
import json
import os
import tarfile
import threading
import zipfile
from collections import namedtuple
from dataclasses import make_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import pandas
import pytest

import tiewise as tw
from readers import differences
from tiewise.io import as_qrels, as_run, as_source
from tiewise.io.file_run import FileRun

RUN = {"q1": {"d2": 9.5, "d1": 8.25, "d3": -1.0}, "q2": {"d1": 3.5, "d4": 0.5}}
RANKED = {"q1": {"d2": -1.0, "d1": -2.0, "d3": -3.0}, "q2": {"d1": -1.0, "d4": -2.0}}
LABELS = {"q1": {"d1": 2.0, "d9": 0.0}, "q2": {"d4": 1.0}}
RELEVANT = {"q1": {"d1": 1.0, "d2": 1.0}, "q2": {"d4": 1.0}}
ROWS = [(query, doc, rank, score) for query, docs in RUN.items() for rank, (doc, score) in enumerate(docs.items(), 1)]
JUDGED = [(query, doc, int(label)) for query, docs in LABELS.items() for doc, label in docs.items()]


def lines(template: str, header: str = "", rows: Any = None) -> str:
    """A row for each document, from a template with q, d, r and s, after a header."""
    return header + "".join(template.format(q=q, d=d, r=r, s=s) + "\n" for q, d, r, s in rows or ROWS)


def labels(template: str, header: str = "") -> str:
    return header + "".join(template.format(q=q, d=d, l=label) + "\n" for q, d, label in JUDGED)


def per_query(make: Any) -> str:
    """JSON Lines with one value for each query."""
    return "".join(json.dumps(make(query, docs)) + "\n" for query, docs in RUN.items())


def candidates(query: str, docs: dict[str, float]) -> dict[str, Any]:  # rank_llm, Anserini's REST interface
    items = [{"docid": doc, "score": score, "doc": {"contents": "…"}} for doc, score in docs.items()]
    return {"query": {"text": "what?", "qid": query}, "candidates": items}


def rankgpt(query: str, docs: dict[str, float]) -> dict[str, Any]:
    hits = [
        {"content": "…", "qid": query, "docid": doc, "rank": rank, "score": score}
        for rank, (doc, score) in enumerate(docs.items(), 1)
    ]
    return {"query": "what?", "hits": hits}


def contexts(query: str, docs: dict[str, float]) -> dict[str, Any]:  # DPR writes scores as text
    items = [
        {"id": doc, "title": "", "text": "…", "score": str(score), "has_answer": False} for doc, score in docs.items()
    ]
    return {"question": query, "answers": ["…"], "ctxs": items}


def kilt(query: str, docs: dict[str, float]) -> dict[str, Any]:
    return {
        "id": query,
        "input": "…",
        "output": [{"answer": "", "provenance": [{"wikipedia_id": doc} for doc in docs]}],
    }


def elastic(docs: dict[str, float]) -> dict[str, Any]:
    hits = [{"_index": "i", "_id": doc, "_score": score, "_source": {"id": "other"}} for doc, score in docs.items()]
    return {"took": 3, "timed_out": False, "hits": {"total": {"value": 3}, "max_score": 9.5, "hits": hits}}


def each(make: Any) -> str:
    return json.dumps({query: make(docs) for query, docs in RUN.items()})


FRAME = pandas.DataFrame(ROWS, columns=["qid", "docno", "rank", "score"])
PYTERRIER = FRAME.assign(docid=range(5), query="what, is")[["qid", "docid", "docno", "rank", "score", "query"]]

#: Files of runs: the content, and what it means.
RUN_FILES: dict[str, tuple[str, Any]] = {
    "TREC": (lines("{q} Q0 {d} {r} {s} tag"), RUN),
    "TREC with tabs": (lines("{q}\tQ0\t{d}\t{r}\t{s}\ttag"), RUN),
    "TREC with a header": (lines("{q} Q0 {d} {r} {s} tag", "qid Q0 docno rank score tag\n"), RUN),
    "TREC with commas": (lines("{q},Q0,{d},{r},{s},tag"), RUN),
    "TREC without tag": (lines("{q} Q0 {d} {r} {s}"), RUN),
    "pandas, no header": (FRAME[["qid", "docno", "score"]].to_csv(header=False), RUN),
    "pandas, no header, from 1": (FRAME[["qid", "docno", "score"]].set_axis(range(1, 6)).to_csv(header=False, sep="\t"), RUN),
    "JSON rows called document": (lines('{{"query": "{q}", "document": "{d}", "score": {s}}}'), RUN),
    "JSON rows without names": (lines('["{q}", "{d}", {s}]'), RUN),
    "lists with probabilities": ("".join(json.dumps({"query_id": q, "predictions": [{"doc_id": d, "logit": s} for d, s in docs.items()]}) + "\n" for q, docs in RUN.items()), RUN),
    "ids and similarities": ("".join(json.dumps({"query_id": q, "corpus_ids": list(docs), "similarities": list(docs.values())}) + "\n" for q, docs in RUN.items()), RUN),
    "retrieved ids": ("".join(json.dumps({"qid": q, "retrieved_ids": list(docs)}) + "\n" for q, docs in RUN.items()), RANKED),
    "MS MARCO": (lines("{q}\t{d}\t{r}"), RANKED),
    "MS MARCO with blanks": (lines("{q} {d} {r}"), RANKED),
    "ColBERT": (lines("{q}\t{d}\t{r}\t{s}"), RUN),
    "ColBERT with blanks": (lines("{q} {d} {r} {s}"), RUN),
    "scores before ranks": (lines("{q}\t{d}\t{s}\t{r}"), RUN),
    "Tevatron": (lines("{q}\t{d}\t{s}"), RUN),
    "three blanks": (lines("{q}  {d}   {s}"), RUN),
    "three commas": (lines("{q},{d},{s}"), RUN),
    "commas and blanks": (lines("{q}, {d}, {s}"), RUN),
    "quoted": (lines('"{q}","{d}",{s}'), RUN),
    "Excel": ("\ufeff" + lines("{q};{d};{s}", "query_id;doc_id;score\n").replace("\n", "\r\n"), RUN),
    "bars": (lines("{q}|{d}|{s}"), RUN),
    "a header with tabs": (lines("{q}\t{d}\t{s}", "query_id\tdoc_id\tscore\n"), RUN),
    "BEIR's header over scores": (lines("{q}\t{d}\t{s}", "query-id\tcorpus-id\tscore\n"), RUN),
    "a header in another order": (lines("{s},{d},{q}", "Score,DocNo,QID\n"), RUN),
    "a header in one word": (lines("{q},{d},{s}", "queryId,DocID,Score\n"), RUN),
    "a header with a longer name": (lines("{q},{d},{s}", "query_id,msmarco_doc_id,bm25_score\n"), RUN),
    "a header with positions": (lines("{q},{d},{r}", "qid,docid,position\n"), RANKED),
    "a header with quoted tabs": (lines('"{q}"\t"{d}"\t{s}', '"qid"\t"docid"\t"score"\n'), RUN),
    "R": ('"qid" "docno" "score"\n' + "".join(f'"{i}" "{q}" "{d}" {s}\n' for i, (q, d, _, s) in enumerate(ROWS, 1)), RUN),
    "R's CSV": ('"","qid","docno","score"\n' + "".join(f'"{i}","{q}","{d}",{s}\n' for i, (q, d, _, s) in enumerate(ROWS, 1)), RUN),
    "a printed data frame": (FRAME.to_string(), RUN),
    "ranks from 0": (lines("{q}\t{d}\t{r}", rows=[("q", f"d{r}", r, 0) for r in range(5)]), {"q": {f"d{r}": -1.0 - r for r in range(5)}}),
    "a header with ranks from 0": (lines("{q},{d},{r}", "qid,docid,rank\n", [(q, d, r - 1, s) for q, d, r, s in ROWS]), RANKED),
    "ranks from 0 and scores": (lines("{q}\t{d}\t{r}\t{s}", rows=[(q, d, r - 1, s) for q, d, r, s in ROWS]), RUN),
    "a header with blanks": (lines("{q},{d},{s}", "Query ID,Document ID,Score\n"), RUN),
    "a header in full words": (lines("{q};{d};{s}", "query;document;score\n"), RUN),
    "tables on lines": ("".join(json.dumps({query: docs}) + "\n" for query, docs in RUN.items()), RUN),
    "tables beside queries": (per_query(lambda q, docs: {"query_id": q, "docs": docs, "seconds": 0.5}), RUN),
    "a header with ranks alone": (lines("{q},{d},{r}", "qid,docid,rank\n"), RANKED),
    "scores that rise, with a header": (lines("{q},{d},{s}", "qid,docid,score\n", ROWS[::-1]), RUN),
    "pandas CSV": (FRAME.to_csv(), RUN),
    "PyTerrier CSV": (PYTERRIER.to_csv(index=False), RUN),
    "PyTerrier TSV": (PYTERRIER.to_csv(index=False, sep="\t"), RUN),
    "integer scores": (lines("{q} {d} {s}", rows=[("q", "a", 1, 120), ("q", "b", 2, 80)]), {"q": {"a": 120.0, "b": 80.0}}),
    "scores and a tag": (lines("{q} {d} {s} bm25"), RUN),
    "scores after Q0": (lines("{q} Q0 {d} {s}"), RUN),
    "JSON": (json.dumps(RUN), RUN),
    "JSON with numbers as text": (json.dumps({q: {d: str(s) for d, s in docs.items()} for q, docs in RUN.items()}), RUN),
    "a table beside its settings": (json.dumps({"name": "bm25", "k": [10], "results": RUN, "metrics": {"ndcg": 0.5}}), RUN),
    "a run beside qrels": (json.dumps({"qrels": LABELS, "run": RUN}), RUN),
    "JSON with ids alone": (json.dumps({query: list(docs) for query, docs in RUN.items()}), RANKED),
    "JSON with pairs": (json.dumps({query: list(docs.items()) for query, docs in RUN.items()}), RUN),
    "JSON with objects": (each(lambda docs: [{"doc_id": d, "score": s} for d, s in docs.items()]), RUN),
    "rows": (FRAME.to_json(orient="records", lines=True), RUN),
    "rows with numbers as text": (FRAME.astype({"score": str}).to_json(orient="records", lines=True), RUN),
    "rows with ranks alone": (FRAME.drop(columns="score").to_json(orient="records", lines=True), RANKED),
    "pandas JSON, index": (FRAME.to_json(orient="index"), RUN),
    "pandas JSON, table": (FRAME.to_json(orient="table"), RUN),
    "ids on lines": (per_query(lambda q, docs: {"query_id": q, "doc_ids": list(docs)}), RANKED),
    "a list of another name": (per_query(lambda q, docs: {"qid": q, "gold": ["x"], "top_k": [{"doc_id": d, "score": s} for d, s in docs.items()]}), RUN),
    "an array of rows": (FRAME.to_json(orient="records"), RUN),
    "rows without names": (json.dumps([[q, d, s] for q, d, _, s in ROWS]), RUN),
    "pandas JSON": (FRAME.to_json(), RUN),
    "pandas JSON, split": (FRAME.to_json(orient="split"), RUN),
    "JSON columns": (json.dumps(FRAME.to_dict("list")), RUN),
    "rank_llm": (json.dumps([candidates(*one) for one in RUN.items()]), RUN),
    "rank_llm, lines": (per_query(candidates), RUN),
    "RankGPT hits": (json.dumps([rankgpt(*one) for one in RUN.items()]), RUN),
    "DPR": (json.dumps([contexts(*one) for one in RUN.items()]), RUN),
    "DPR with ids": (per_query(lambda q, docs: {**contexts("…", docs), "id": q}), RUN),
    "pyserini's DPR": (each(lambda docs: {"question": "…", "contexts": [{"docid": d, "score": s} for d, s in docs.items()]}), RUN),
    "KILT": (per_query(kilt), RANKED),
    "sentence-transformers": (
        per_query(lambda q, docs: {"query_id": q, "query": "…", "results": [{"corpus_id": d, "score": s} for d, s in docs.items()]}),
        RUN,
    ),
    "Elasticsearch": (each(elastic), RUN),
    "Elasticsearch, lines": (per_query(lambda q, docs: {"query_id": q, "response": elastic(docs)}), RUN),
    "Elasticsearch's evaluation": (
        json.dumps({"metric_score": 0.5, "details": {q: {"metric_score": 0.5, "unrated_docs": [], "hits": [
            {"hit": {"_index": "i", "_id": d, "_score": s}, "rating": None} for d, s in docs.items()]} for q, docs in RUN.items()}, "failures": {}}),
        RUN,
    ),
    "Solr": (each(lambda docs: {"response": {"numFound": 3, "docs": [{"id": d, "score": s} for d, s in docs.items()]}}), RUN),
    "Vespa": (each(lambda docs: {"root": {"children": [{"id": f"id:a:doc::{d}", "relevance": s, "fields": {}} for d, s in docs.items()]}}), RUN),
    "Qdrant": (each(lambda docs: {"result": {"points": [{"id": d, "version": 1, "score": s} for d, s in docs.items()]}, "status": "ok"}), RUN),
    "Pinecone": (each(lambda docs: {"matches": [{"id": d, "score": s} for d, s in docs.items()], "namespace": ""}), RUN),
    "ids and scores": (per_query(lambda q, docs: {"query_id": q, "doc_ids": list(docs), "scores": list(docs.values())}), RUN),
    "LanceDB": (each(lambda docs: [{"id": d, "text": "…", "_distance": -s} for d, s in docs.items()]), RUN),
    "LanceDB, hybrid": (each(lambda docs: [{"id": d, "_relevance_score": s} for d, s in docs.items()]), RUN),
    "Chroma, by query": (each(lambda docs: {"ids": [list(docs)], "documents": [["…"] * len(docs)], "metadatas": None, "distances": [[-s for s in docs.values()]]}), RUN),
    "Weaviate": (each(lambda docs: {"data": {"Get": {"Doc": [{"title": "…", "_additional": {"id": d, "distance": -s}} for d, s in docs.items()]}}}), RUN),
    "Weaviate, BM25": (each(lambda docs: {"data": {"Get": {"Doc": [{"docid": d, "_additional": {"id": "0-0", "score": str(s)}} for d, s in docs.items()]}}}), RUN),
    "Qdrant, ids in the payload": (each(lambda docs: {"points": [{"id": i, "version": 0, "score": s, "payload": {"doc_id": d}} for i, (d, s) in enumerate(docs.items())]}), RUN),
    "Pinecone, search of texts": (each(lambda docs: {"result": {"hits": [{"_id": d, "_score": s, "fields": {}} for d, s in docs.items()]}, "usage": {}}), RUN),
    "OpenAI": (each(lambda docs: {"object": "vector_store.search_results.page", "data": [{"file_id": d, "filename": "…", "score": s} for d, s in docs.items()]}), RUN),
    "Algolia": (each(lambda docs: {"hits": [{"objectID": d, "title": "…"} for d in docs], "nbHits": 3}), RANKED),
    "Azure": (each(lambda docs: {"@odata.context": "…", "value": [{"@search.score": s, "id": d} for d, s in docs.items()]}), RUN),
    "Meilisearch": (each(lambda docs: {"hits": [{"id": d, "_rankingScore": s} for d, s in docs.items()], "query": "?"}), RUN),
    "MTEB": (json.dumps({"mteb_model_meta": {"model_name": "m"}, "default": {"test": RUN}}), RUN),
}  # fmt: skip

#: Files of judgments.
QRELS_FILES: dict[str, tuple[str, Any]] = {
    "TREC": (labels("{q} 0 {d} {l}"), LABELS),
    "TREC with a header": (labels("{q} 0 {d} {l}", "query_id iteration doc_id relevance\n"), LABELS),
    "TREC with commas": (labels("{q},0,{d},{l}"), LABELS),
    "MS MARCO": (labels("{q}\t{d}\t{l}"), LABELS),
    "BEIR": (labels("{q}\t{d}\t{l}", "query-id\tcorpus-id\tscore\n"), LABELS),
    "CSV": (labels("{q},{d},{l}"), LABELS),
    "CSV with a header": (labels("{q},{d},{l}", "qid,docid,label\n"), LABELS),
    "Excel": ("\ufeff" + labels("{d};{q};{l}", "docno;topic;grade\n"), LABELS),
    "BEIR, by pandas": (labels("{q}\t{d}\t{l}.0", "query-id\tcorpus-id\tscore\n"), LABELS),
    "labels with a point": (labels("{q},{d},{l}.0", "qid,did,label\n"), LABELS),
    "another name of labels": (labels("{q},{d},{l}", "query_id,doc_id,judgment\n"), LABELS),
    "JSON": (json.dumps(LABELS), LABELS),
    "pandas, no header": (pandas.DataFrame(JUDGED).to_csv(header=False), LABELS),
    "KILT": (
        "".join(json.dumps({"id": q, "input": "?", "output": [{"answer": "…"}, *({"answer": "…", "provenance": [{"wikipedia_id": d}]} for d in docs)]}) + "\n" for q, docs in RELEVANT.items()),
        RELEVANT,
    ),
    "lists with labels": ("".join(json.dumps({"query_id": q, "judgments": [{"doc_id": d, "label": label} for d, label in docs.items()]}) + "\n" for q, docs in LABELS.items()), LABELS),
    "JSON beside a run": (json.dumps({"qrels": LABELS, "run": RUN}), LABELS),
    "Tevatron": (
        "".join(json.dumps({"query_id": q, "query": "?", "positive_passages": [{"docid": d, "text": "…"} for d in docs], "negative_passages": [{"docid": "n"}]}) + "\n" for q, docs in RELEVANT.items()),
        RELEVANT,
    ),
    "LoTTE": ("".join(json.dumps({"qid": q, "query": "?", "url": "…", "answer_pids": list(docs)}) + "\n" for q, docs in RELEVANT.items()), RELEVANT),
    "relevant documents on lines": ("".join(json.dumps({"qid": q, "relevant_docs": list(docs)}) + "\n" for q, docs in RELEVANT.items()), RELEVANT),
    "booleans": ('{"query_id": "q1", "doc_id": "a", "is_relevant": true}\n{"query_id": "q1", "doc_id": "b", "is_relevant": false}\n', {"q1": {"a": 1.0, "b": 0.0}}),
    "JSON with booleans": ('{"q1": {"a": true, "b": false}}', {"q1": {"a": 1.0, "b": 0.0}}),
    "JSON rows": ("".join(labels('{{"query-id": "{q}", "corpus-id": "{d}", "score": {l}}}')), LABELS),
    "LlamaIndex": (
        json.dumps({"queries": {"q1": "…"}, "corpus": {"d1": "…"}, "relevant_docs": {q: list(d) for q, d in RELEVANT.items()}, "mode": "text"}),
        RELEVANT,
    ),
    "ids of relevant documents": (json.dumps({q: list(d) for q, d in RELEVANT.items()}), RELEVANT),
    "Elasticsearch's ratings": (
        json.dumps({"requests": [{"id": q, "request": {}, "ratings": [{"_index": "i", "_id": d, "rating": label} for d, label in docs.items()]} for q, docs in LABELS.items()]}),
        LABELS,
    ),
}  # fmt: skip


def saved(folder: Path, content: str, name: str = "file") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.mark.parametrize("name", RUN_FILES)
def test_files_of_runs(name: str, tmp_path: Path) -> None:
    content, expected = RUN_FILES[name]
    assert tw.read_run(saved(tmp_path, content.removesuffix("\n"))).to_dict() == expected
    path = saved(tmp_path, content)
    assert tw.read_run(path).to_dict() == expected
    found = as_source(path).count(as_qrels({query: dict.fromkeys(docs, 1) for query, docs in expected.items()}), ())
    assert found.n_rows == sum(map(len, expected.values()))
    assert sorted(found.ties["float64"].score) == sorted(s for docs in expected.values() for s in docs.values())


@pytest.mark.parametrize("name", QRELS_FILES)
def test_files_of_judgments(name: str, tmp_path: Path) -> None:
    content, expected = QRELS_FILES[name]
    for text in (content, content.removesuffix("\n")):  # the last line may lack its line break
        assert tw.read_qrels(saved(tmp_path, text)).to_dict() == expected


@pytest.mark.parametrize("name", [name for name, (content, _) in RUN_FILES.items() if content[0] not in "[{"])
@pytest.mark.parametrize("chunk", [7, 1 << 20])
def test_both_readers_agree(name: str, chunk: int, tmp_path: Path) -> None:
    assert not differences(saved(tmp_path, RUN_FILES[name][0]), chunk)


def test_plain_columns_are_read_where_they_are(tmp_path: Path) -> None:
    rows = [(f"q{q}", f"d{(q * 7 + r) % 1000}", r, 1000 - r + 0.5) for q in range(20) for r in range(1, 501)]
    expected = {q: {d: s for p, d, _, s in rows if p == q} for q in {row[0] for row in rows}}
    for template, header in (("{q}\t{d}\t{s}", ""), ("{q} {d} {r} {s}", ""), ("{s},{q},{d}", "score,qid,docno\n")):
        path = saved(tmp_path, lines(template, header, rows))
        source = as_source(path)
        assert isinstance(source, FileRun) and source.rows().to_dict() == expected
        assert source.count(as_qrels(expected), ()).n_rows == len(rows)


def test_columns_that_are_named(tmp_path: Path, tiewise: Any) -> None:
    path = saved(tmp_path, lines("{d} {q} x {s}"), "run.txt")
    for names in ("doc,query,-,score", ["docno", "qid", "text", "score"]):
        assert tw.read_run(path, input_columns=names).to_dict() == RUN
    assert tw.read_run(path, format="columns:doc,query,-,score").to_dict() == RUN
    report = tw.evaluate(RELEVANT, path, "RR", input_columns="doc,query,-,score")
    assert report["RR"].expected == tw.evaluate(RELEVANT, RUN, "RR")["RR"].expected
    qrels = saved(tmp_path, labels("{l};{d};{q}"), "qrels.txt")
    assert tw.read_qrels(qrels, format="columns:label,doc,query").to_dict() == LABELS
    command = (
        "evaluate",
        str(qrels),
        str(path),
        "-m",
        "RR",
        "--qrels-format",
        "columns:label,doc,query",
        "--format",
        "tsv",
    )
    done = tiewise(*command, "--input-columns", "doc,query,-,score")
    assert done.out.splitlines()[1].split("\t")[:4] == ["run", "RR", "all", "0.5"]
    for names in ("query,doc", "query,doc,score,score", "query,query,score", "a,b,c"):
        with pytest.raises(tw.InputError, match="name query, doc and score or rank once each"):
            tw.read_run(path, input_columns=names)
    with pytest.raises(tw.InputError, match="has not 3 columns"):
        tw.read_run(path, input_columns="doc,query,score")
    with pytest.raises(tw.InputError, match="'trec' has its own columns"):
        tw.read_run(path, format="trec", input_columns="doc,query,score")


OPTION = "--input-columns query,doc,score (in Python, input_columns='query,doc,score')."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q1 d1 0.1\nq1 d2 0.5\n", f"file:1: 3 columns fit no run: no order of the columns has scores that fall, or ranks that count up, in each query, and no document twice, and the numbers rise, as distances do (write these with a minus): 'q1 d1 0.1'. Say which columns these are: {OPTION}"),
        ("q1,d1,1\nq2,d1,1\nq3,d5,1\n", "file:1: 3 columns between commas may be a run or judgments"),  # MS MARCO's judgments
        ("q1 Q0 d1 0.9 1 t\nq1 Q0 d2 0.8 2 t\n", "file:1: the columns look like query,-,doc,score,rank,-: 'q1 Q0 d1 0.9 1 t'. Say which columns these are: --input-columns query,-,doc,score,rank,- (in Python, input_columns='query,-,doc,score,rank,-'). If they are TREC's, say --input-format trec."),
        ("q1 Q0 d1 27 1 t\nq1 Q0 d2 26 2 t\n", "file:1: the columns look like query,-,doc,score,rank,-: "),
        ("q1 Q0 1 7187155 27.5 t\nq1 Q0 2 912 26.5 t\n", "file:1: the columns look like query,-,rank,doc,score,-: "),
        ("d1 Q0 q1 1 0.9 t\nd2 Q0 q1 2 0.8 t\nd1 Q0 q2 1 0.7 t\n", "file:1: the columns look like doc,-,query,rank,score,-: "),
        ("qid,docno,distance\nq1,d1,0.1\n", "the header names no score, but 'qid', 'docno', 'distance'. Of a distance, the score is -distance."),
        ("qid,docno,distance\nq1,d1,0.1\n", "Say which columns these are: --input-columns query,doc,score --distances (in Python, input_columns='query,doc,score', distances=True)."),
        (lines('{{"q": "{q}", "doc-id": "{d}", "s": {s}}}'), "file:1: has the keys 'q', 'doc-id', 's', which do not name a query, a document and a score. Rename them, such as with jq -c '{query_id: .q, doc_id: .\"doc-id\", score: .s}'."),
        ('{"dataset_revision": "r", "task_name": "t", "evaluation_time": 1.5, "scores": {"test": [{"ndcg_at_1": 0.5}]}}', "file: has the results of MTEB, which hold no rankings. Write predictions: mteb.evaluate("),
        ("\n#\nd1\tq1\t0.9\nd2\tq1\t0.8\n", "file:3: 3 columns between tabs look like doc,query,score, an order that no tool writes: 'd1\\tq1\\t0.9'"),
        ("q1 d1 3\nq1 d2 1\n", "file:1: 3 columns may be a run or judgments: 'q1 d1 3'"),
        ("q1 9 20\nq1 8 19\n", "file:1: 3 columns may be query,doc,score or query,score,doc: 'q1 9 20'"),
        ("q1 d1 .9\nq1 d2 .8\nq1 d3 .7\nq1 d4 .6\nq1 d5 high\n", "file:5: score 'high' for query 'q1', document 'd5'"),
        ("q1 1 d1\nq1 2 d2\n", "look like query,rank,doc"),
        ("d1,q1,0.1\nd2,q1,0.9\nd1,q2,0.05\nd3,q2,0.9\n", "may be query,doc,score or doc,query,score"),
        ("0.9,q1,4711\n0.8,q1,9012\n0.9,q2,4711\n", "look like score,query,doc"),
        ("90,q1,4711\n80,q1,9012\n90,q2,21\n", "or score,query,doc: "),
        ("q1 1 d1 0.9\nq1 2 d2 0.8\n", "look like query,rank,doc,score"),
        ("q1;d1;0,9\nq1;d2;0,8\n", "write numbers with a decimal point"),
        ("qid;docid;score\nq1;d1;0,9\n", "file:2: score '0,9' for query 'q1', document 'd1'. Write a decimal point: 0.9."),
        ("q1\td1\t0\nq1\td2\t1\n", "may be a run or judgments (ranks from 0?): 'q1\\td1\\t0'. Say which columns these are: --input-columns query,doc,rank "),
        ("qid,docid,relevance\nq1,d1,0.25\n", "file:1: the header names no score, but 'relevance', as qrels have. If it is one, say which columns these are: --input-columns query,doc,score "),
        ("qid,docid,gold_score\nq1,d1,1\n", "but 'qid', 'docid', 'gold_score'. Say which columns these are: --input-columns query,doc,score "),
        ("qid,docid,a_score,b_score\nq1,d1,1,2\n", "Say which columns these are: --input-columns query,doc,score,- "),
        ("qid docno score\nq1 d1 0.5 x\n", "file:2: 4 columns instead of 3"),
        ('{"results": {"q": {"d": 1}}, "scores": {"q": {"d": 2}}}', "file: holds 'results' and 'scores'. Give one of them"),
        ('{"query_id": "q", "doc_ids": ["a", "b"], "error": "timeout"}\n{"query_id": "r"}', "file:1: looks like an error message of the service: 'timeout'"),
        ('{"query_id": "q", "positive_passages": [{"docid": "a"}]}', "file:1: has relevant documents, but no ranking."),
        ('{"q": {"results": [{"index": 0, "relevance_score": 0.5}]}}', "Of a reranker, write lines with query_id, doc_ids and its response."),
        ("qid,docid,label\nq1,d1,1\n", r"file:1: looks like qrels (column 'label'), not a run."),
        ("query-id\tcorpus-id\tscore\nq1\td1\t1\n", "file:1: looks like qrels (BEIR header)"),
        ("qid,docid,text\nq1,d1,x\n", "the header names no score (score, sim, similarity, relevance_score), but 'qid', 'docid', 'text'"),
        ("qid,docid,score,score\nq1,d1,1,2\n", "two columns are called 'score'"),
        ("q1,0,d1,1\nq1,0,d2,0\n", r"file:1: looks like qrels (4 columns)"),
        ("qid,docid,score\nq1,d1,1\nq1,d2\n", "file:3: 2 columns instead of 3 (query, doc, score): ['q1', 'd2']"),
        ("qid,docid,score\nq1,,1\n", "file:2: an empty document"),
        (lines("{q};{d};{s}", "Anfrage;Dokument;Punkte\n"), f"file:1: looks like a header, but 'Anfrage', 'Dokument', 'Punkte' do not name a query and a document. Say which columns these are: {OPTION}"),
        (lines("{q},{d},{s}", "q1,d9,nan\n"), "file:1: score 'nan' for query 'q1', document 'd9'"),
        ('{"q1": {"d1": 1.5}}\n{"q1": {"d2": 0.5}}\n', "file:2: query 'q1' appears twice in the run"),
        ('{"query_id": "q1", "metrics": {"map": 0.5}}\n{"query_id": "q2", "metrics": {"map": 0.5}}\n', "file:1: is neither a row"),
        ('qid,docid,score\nq1,"d1,1\n', "file:2: unexpected end of data. Check the quotation marks."),
        ("qid,docid,score\nq1,d1,nan\n", "file:2: score 'nan'"),
        ("qid,docid,score\nq1,d1,1\nq1,d1,2\n", "file:3: document 'd1' appears twice"),
        ('qid,docid,score\n"#1",d1,1\n', "file:2: an id has a tab or a line break, or a query begins with '#'"),
        ('qid,docid,score\nq1,"d\n1",1\n', "file:3: an id has a tab or a line break"),
        ('{"took": 1, "hits": {"hits": [{"_id": "d", "_score": 1.5}]}}', "file: is a ranking without the id of its query"),
        ('{"q": {"hits": {"hits": [{"_id": "d", "_score": null, "sort": [1]}]}}}', "'q': document 'd' has the _score None, not a number. A search that is sorted"),
        ('{"q": [["a", 1.5], ["a", 1]]}', "query 'q': document 'a' appears twice"),
        ('{"q": [[1, 2], [3, 4]]}', "which one is the document?"),
        ('{"q": [{"id": "a", "score": 1}, {"id": "b"}]}', "query 'q': some documents have a score, and some"),
        ('{"q": [{"id": "a", "distance": 0.5}]}', "has a distance, which may be a score, too"),
        ('{"q": [{"id": "a", "vector_distance": 0.5}]}', "has a vector_distance, which may be a score, too"),
        ('{"q": {"hits": [{"document": {"id": "a"}, "text_match": 7}]}}', "document 'a' has no score. It has: 'document', 'text_match'"),
        ('{"q": [{"id": "a", "bm25": -3.5}]}', "document 'a' has no score. It has: 'id', 'bm25'"),
        ('{"q": [{"docid": "a", "label": 1}]}', "document 'a' has no score. It has: 'docid', 'label'. Judgments are not a run."),
        ('{"q": {"result": [{"id": 1, "score": 0.1}, {"id": 2, "score": 0.8}]}}', "or these are distances"),  # Qdrant, Euclid
        ('{"q": {"matches": [{"id": "a", "score": 0.1}, {"id": "b", "score": 0.8}]}}', "or these are distances"),  # Pinecone
        ('{"q": [["a", 0.1], ["b", 0.2], ["c", 0.3], ["d", 0.4]]}', "file: The scores of all lists rise, as distances do"),
        ('{"q": {"doc_ids": ["a", "b", "c"], "scores": [2, 1]}}', "query 'q': 3 doc_ids, but 2 scores."),
        ('{"q": {"documents": ["a", "b"], "distances": [0.1, 0.2]}}', "documents beside distances"),
        ('{"q": {"ids": ["a", "b"], "distances": [0.2, 0.1]}}', "query 'q': the documents are not in the order of their scores"),
        ('{"q": {"ids": ["a", "b"], "distances": [0.2]}}', "query 'q': 2 ids, but 1 distances."),
        ('{"ids": [["a", "b"]], "distances": [[0.2], [0.1]]}', "file: 1 lists of ids, but 2 of distances."),
        ('{"q": [{"id": "a", "_distance": 0.5}, {"id": "b", "_distance": 0.25}]}', "the documents are not in the order"),
        ('{"q": [{"id": "a", "_distance": null}]}', "document 'a' has the _distance None, not a number."),
        ('[[{"id": 3, "distance": 0.7, "entity": {"score": 5}}]]', "query '0': document 3 has a distance, which may be a score, too. Give {document: -distance}, or without the minus for IP and COSINE of Milvus; of a file, name the metric: --input-format rankings:l2"),
        ('[{"qid": "q", "docno": "a", "label": 1}, {"qid": "q", "docno": "b", "label": 0}]', "file: is neither a row, {query_id: …, doc_id: …, score: …}"),
        ('{"q": [{"text": "a", "score": 1}]}', "a result has no id of its document. It has: 'text', 'score'"),
        ('{"qid": "q", "candidates": [{"docid": "a", "score": 1}, {"docid": "b", "score": 2}]}', "file:1: the documents are not in the order of their scores"),
        ('{"qid": "q", "docid": "d", "score": 1}\n{"qid": "q", "docid": "e"}\n', "file:2: expected a row"),
        ('{"qid": ["q"], "docid": ["d", "e"], "score": [1]}', "file: columns of different lengths"),
        ('{"relevant_docs": {"q": ["d"]}, "queries": {"q": "?"}}', "file: looks like qrels (relevant_docs)"),
        ('{"q": ["a", "b", "a"]}', "query 'q': document 'a' appears twice"),
        (FRAME.assign(rank=[[], 2, 3, 4, 5]).to_json(orient="records"), "file: row 0: rank [] is not a number."),
        ('{"qid": "q", "docno": "a", "distance": 0.5}\n{"qid": "q", "docno": "b", "distance": 0.75}', "jq -c '{query_id: .qid, doc_id: .docno, score: (-.distance)}'"),
        ('{"s": 1, "docno": "a", "qid": "q"}\n{"s": 0, "docno": "b", "qid": "q"}', "jq -c '{query_id: .qid, doc_id: .docno, score: .s}'"),
        ('{"qid": "q", "candidates": ["a", "b"], "ranking": ["b", "a"]}', "file:1: has the lists 'candidates' and 'ranking'. Keep the one that is the ranking"),
        ('{"qid": "q", "ranking": ["b", "a"], "documents": ["a text", "a text, too"]}', "file:1: has the lists 'ranking' and 'documents'"),
        ('{"qid": "q", "doc_ids": ["a", "b"], "ranking": [1, 0]}', "file:1: has the lists 'doc_ids' and 'ranking'"),
        ('{"qid": "q", "doc_ids": ["a", "b"], "scores": [2, 1], "ranking": ["b", "a"]}', "file:1: has the lists 'doc_ids' and 'ranking'"),
        ('{"qid": "q", "hits": [{"id": "a", "score": 1}], "reranked": [{"id": "b", "score": 2}]}', "file:1: has the lists 'hits' and 'reranked'"),
        ('{"qid": "q", "indices": [5, -1], "distances": [0.1, 3e38]}', "file:1: -1 is no document: the index found fewer neighbours"),
        ('{"q": [{"id": "a", "value": 0.25}, {"id": "b", "value": 0.75}]}', "document 'a' has no score. It has: 'id', 'value'"),
        ('{"qid": ["q", "q"], "docno": ["a", "b"], "label": [1, 0]}', "the columns 'qid', 'docno', 'label' name no score"),
        ('{"columns": ["qid", "docno", "score"], "data": [["q", "a", 0, 5]]}', "file: ['q', 'a', 0, 5] is not a row of the 3 columns 'qid', 'docno', 'score'."),
    ],
)  # fmt: skip
def test_bad_files_of_runs(content: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path, content)
    with pytest.raises(tw.InputError) as error:
        tw.read_run("file")
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q1 d1 .9\nq1 d2 .8\nq1 d3 .1\n", "looks like a run (scores that fall), not qrels"),
        (lines("{q}\t{d}\t{r}", rows=[("q", f"d{i}", i, 0) for i in range(1, 15)]), "looks like a run (ranks that count up)"),
        ("q1 Q0 d1 .9\nq1 Q0 d2 .8\nq1 Q0 d3 .1\n", "looks like a run (scores that fall), not qrels"),
        ("q1 4711 1 0\nq1 4712 0 0\nq2 4713 1 0\n", "file:1: the columns look like query,doc,label,-: 'q1 4711 1 0'. Say which columns these are: --qrels-format columns:query,doc,label,- (in Python, format='columns:query,doc,label,-'). If they are TREC's, say --qrels-format trec."),
        ("q1 0 1 4711\nq2 0 1 4712\n", "file:1: the columns look like query,-,label,doc: "),
        ("q1 1 4711\nq1 2 4712\n", "--qrels-format columns:query,doc,label (in Python, format='columns:query,doc,label')"),
        ("q1\td1\nq1\td2\n", "Of relevant documents alone, add a label: awk -v OFS='\\t' '{print $1, $2, 1}' FILE"),
        ("qid,docid,score\nq1,d1,0.9\nq1,d2,0.8\nq1,d3,.7\n", "looks like a run (scores that fall)"),
        ("q1,d1,0.9\nq1,d2,0.8\n", "looks like a run (scores that fall)"),
        (lines("{q}\t{d}\t{r}", rows=[(q, f"d{i}", i, 0) for q in "ab" for i in range(1, 4)]), "looks like a run (ranks that count up)"),
        ("q1,Q0,d1,1,0.5,tag\n", "looks like a run (6 columns)"),
        ("2 qid:1 1:0.5 # d1\n", "--qrels-format columns:query,-,doc,label,- "),
        ('{"question": "a?", "ground_truths": ["Paris is it."]}\n{"question": "b?", "ground_truths": ["Rome."]}\n', "is neither a row"),
        ('{"query": "a?", "positive": ["One text.", "x"]}\n{"query": "b?", "positive": ["x"]}\n', "is neither a row"),
        ('{"id": "q1", "question": "?", "golden_answers": ["Rome"]}\n{"id": "q2", "golden_answers": ["A"]}\n', "is neither a row"),
    ],
)  # fmt: skip
def test_bad_files_of_judgments(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(tw.InputError) as error:
        tw.read_qrels(saved(tmp_path, content))
    assert message in str(error.value)


#: Answers to two queries, which have no ids.
BATCHES: dict[str, Any] = {
    "Chroma": {"ids": [list(docs) for docs in RUN.values()], "embeddings": None, "documents": None, "included": ["distances"], "distances": [[-s for s in docs.values()] for docs in RUN.values()]},
    "Elasticsearch's msearch": {"took": 3, "responses": [{**elastic(docs), "status": 200} for docs in RUN.values()]},
    "Qdrant": {"result": [{"points": [{"id": d, "score": s} for d, s in docs.items()]} for docs in RUN.values()], "status": "ok"},
    "Qdrant, search": {"result": [[{"id": d, "score": s} for d, s in docs.items()] for docs in RUN.values()], "status": "ok"},
    "Meilisearch": {"results": [{"indexUid": "i", "hits": [{"id": d, "_rankingScore": s} for d, s in docs.items()]} for docs in RUN.values()]},
    "sentence-transformers": [[{"corpus_id": d, "score": s} for d, s in docs.items()] for docs in RUN.values()],
    "responses": [elastic(docs) for docs in RUN.values()],
}  # fmt: skip


@pytest.mark.parametrize("name", BATCHES)
def test_answers_to_several_queries_are_numbered(name: str, tmp_path: Path) -> None:
    expected = dict(zip("01", RUN.values(), strict=True))
    run = as_run(BATCHES[name])
    read = tw.read_run(saved(tmp_path, json.dumps(BATCHES[name])))
    assert run.to_dict() == read.to_dict() == expected and run.numbered == read.numbered == ("query",)
    judged = {"0": {"d1": 1}, "1": {"d4": 1}}
    assert tw.evaluate(judged, BATCHES[name], "RR")["RR"].expected == 0.5


@pytest.mark.parametrize("name", ["index", "query_index", "topic_number", "number"])
def test_answers_that_may_name_their_queries_are_not_numbered(name: str, tmp_path: Path) -> None:
    answers = [{name: 5 - place, **elastic(docs)} for place, docs in enumerate(RUN.values())]
    for given in (answers, {"results": answers}, saved(tmp_path, json.dumps(answers))):
        with pytest.raises(tw.InputError, match=f"the answers have {name!r}, which may name their queries"):
            as_run(given)


@pytest.mark.parametrize(
    "content",
    [
        {"q1": {"d1": 0.25}},
        [{"q1": {"d1": 0.25}}, {"q2": {"d1": 0.25}}],
        {"query_id": "q1", "docs": {"d1": 0.25}},
        [{"qid": "q1", "docno": "d1", "score": 0.25}],
        {"qid": ["q1"], "docno": ["d1"], "score": [0.25]},
        {"query_id": "q1", "doc_ids": ["d1"], "response": [0.25]},
    ],
    ids=str,
)
def test_a_metric_of_rankings_is_not_ignored(content: Any, tmp_path: Path) -> None:
    values = content if isinstance(content, list) else [content]
    path = saved(tmp_path, "".join(f"{json.dumps(one)}\n" for one in values))
    with pytest.raises(tw.InputError, match=r"rankings:l2 is for lists .* --distances \(in Python, distances=True\)"):
        tw.read_run(path, format="rankings:l2")


def test_ranks_beside_ids_are_no_scores() -> None:
    ranked = {"q": [("a", 1), ("b", 2)], "r": [("c", 1)]}
    with pytest.raises(tw.InputError, match="The scores of all lists are 1, 2, 3"):
        as_run(ranked)
    assert as_qrels(ranked).to_dict()["q"] == {"a": 1.0, "b": 2.0}


#: Hits of Milvus, by its metric.
MILVUS = {
    metric: [[{"id": doc, "distance": sign * score, "entity": {"text": "…"}} for doc, score in docs.items()] for docs in RUN.values()]
    for metric, sign in (("l2", -1), ("cosine", 1))
}  # fmt: skip


def test_three_hits_are_no_row(tmp_path: Path) -> None:
    hits = [[{"corpus_id": d, "score": s} for d, s in RUN["q1"].items()]]
    assert tw.read_run(saved(tmp_path, json.dumps(hits))).to_dict() == {"0": RUN["q1"]}


def test_the_metric_of_distances_is_named(tmp_path: Path, tiewise: Any) -> None:
    expected = dict(zip("01", RUN.values(), strict=True))
    for metric, hits in MILVUS.items():
        path = saved(tmp_path, json.dumps(hits), "milvus.json")
        for given in (path, hits):
            with pytest.raises(tw.InputError, match="has a distance, which may be a score, too"):
                as_run(given)
        assert tw.read_run(path, format=f"rankings:{metric}").to_dict() == expected
        rest = [{"code": 0, "data": one} for one in hits]
        path = saved(tmp_path, json.dumps(dict(zip(RUN, rest, strict=True))), "milvus.json")
        assert tw.read_run(path, format=f"rankings:{metric}").to_dict() == RUN
        path = saved(tmp_path, json.dumps(dict(zip(RUN, hits, strict=True))), "milvus.json")
        assert tw.read_run(path, format=f"rankings:{metric}").to_dict() == RUN
        with pytest.raises(tw.InputError, match="not in the order of their scores"):
            tw.read_run(path, format=f"rankings:{'ip' if metric == 'l2' else 'L2'}")
    lines = [{"query_id": q, "points": [{"id": d, "score": -s} for d, s in docs.items()]} for q, docs in RUN.items()]
    path = saved(tmp_path, "\n".join(map(json.dumps, lines)), "qdrant.jsonl")  # its metric Euclid
    assert tw.read_run(path, format="rankings:euclid").to_dict() == RUN
    qrels = saved(tmp_path, labels("{q} 0 {d} {l}"), "qrels.txt")
    done = tiewise("evaluate", str(qrels), str(path), "--input-format", "rankings:l2", "-m", "RR", "--format", "tsv")
    assert done.out.splitlines()[1].split("\t")[:4] == ["qdrant", "RR", "all", "0.5"]
    with pytest.raises(tw.InputError, match="Unknown metric 'best'"):
        tw.read_run(path, format="rankings:best")


def test_objects_of_clients() -> None:
    def weaviate(docs: dict[str, float], name: str, sign: int) -> SimpleNamespace:
        none = {"distance": None, "certainty": None, "score": None, "rerank_score": None}
        hits = [
            SimpleNamespace(
                uuid=UUID(int=i), properties={"docno": d}, metadata=SimpleNamespace(**{**none, name: sign * s})
            )
            for i, (d, s) in enumerate(docs.items())
        ]
        return SimpleNamespace(objects=hits)

    for name, sign in (("distance", -1), ("score", 1), ("certainty", 1)):
        assert as_run({query: weaviate(docs, name, sign) for query, docs in RUN.items()}).to_dict() == RUN
    points = [
        SimpleNamespace(
            points=[SimpleNamespace(id=i, score=s, payload={"doc_id": d}) for i, (d, s) in enumerate(docs.items())]
        )
        for docs in RUN.values()
    ]
    assert as_run(points).to_dict() == dict(zip("01", RUN.values(), strict=True))
    hits = [SimpleNamespace(id=1, distance=0.5, score=0.5)]  # pymilvus, ORM
    with pytest.raises(tw.InputError, match="may be a score, too"):
        as_run({"q": hits})


# -- Python -----------------------------------------------------------------------------------------------------------

HIT = [SimpleNamespace(docid=doc, score=score) for doc, score in RUN["q1"].items()]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({query: list(docs) for query, docs in RUN.items()}, RANKED),
        ({query: list(docs.items()) for query, docs in RUN.items()}, RUN),
        ({query: [(score, doc) for doc, score in docs.items()] for query, docs in RUN.items()}, RUN),
        ({query: np.array(list(docs)) for query, docs in RUN.items()}, RANKED),
        ({query: docs.items() for query, docs in RUN.items()}, RUN),
        ({query: FRAME[FRAME.qid == query][["docno", "score"]] for query in RUN}, RUN),
        ({"q": pandas.DataFrame({"id": ["a", "b"], "_distance": [0.25, 0.5]})}, {"q": {"a": -0.25, "b": -0.5}}),  # LanceDB
        ({query: (list(docs), list(docs.values())) for query, docs in RUN.items()}, RUN),
        ({7: (np.array([3, 1]), np.array([0.5, 0.25]))}, {"7": {"3": 0.5, "1": 0.25}}),
        ({7: [(0.5, 3), (0.5, 1)]}, {"7": {"3": 0.5, "1": 0.5}}),
        ([(query, doc, score) for query, doc, _, score in ROWS], RUN),
        ([(query, doc, str(score)) for query, doc, _, score in ROWS], RUN),  # of csv.reader
        ([["qid", "docno", "rank", "score"], *([*map(str, row)] for row in ROWS)], RUN),
        (FRAME.astype(str).to_dict("records"), RUN),  # of csv.DictReader
        (ROWS, RUN),
        (lines("{q} Q0 {d} {r} {s} tag").splitlines(), RUN),
        (np.array(ROWS), RUN),
        (pandas.DataFrame(ROWS), RUN),  # read with header=None
        ([json.dumps({"qid": query, "docno": doc, "score": score}) for query, doc, _, score in ROWS], RUN),
        (FRAME.rename(columns={"score": "cosine_similarity"}), RUN),
        ({query: pandas.Series(docs) for query, docs in RUN.items()}, RUN),
        (FRAME.to_dict("records"), RUN),
        (FRAME.to_dict("list"), RUN),
        (FRAME.to_dict(), RUN),
        (FRAME, RUN),
        (FRAME.set_index(["qid", "docno"]), RUN),
        (FRAME.set_index(["qid", "docno"])["score"], RUN),
        (FRAME.set_index("docno"), RUN),
        ([candidates(*one) for one in RUN.items()], RUN),
        ({query: elastic(docs) for query, docs in RUN.items()}, RUN),
        ({query: SimpleNamespace(body=elastic(docs)) for query, docs in RUN.items()}, RUN),
        ({"q": {"documents": ["d2", "d1"], "scores": [0.5, 0.5]}}, {"q": {"d2": 0.5, "d1": 0.5}}),
        ({"q1": HIT}, {"q1": RUN["q1"]}),  # pyserini's batch_search
        ({"q1": SimpleNamespace(points=[SimpleNamespace(id=h.docid, score=h.score) for h in HIT])}, {"q1": RUN["q1"]}),
        ({"q1": SimpleNamespace(total=3, docs=HIT)}, {"q1": RUN["q1"]}),  # Redis
        ({"q1": [{"corpus_id": d, "score": np.array(s)} for d, s in RUN["q1"].items()]}, {"q1": RUN["q1"]}),
        ({"q1": [SimpleNamespace(node=SimpleNamespace(node_id=h.docid), score=h.score) for h in HIT]}, {"q1": RUN["q1"]}),
        ([[{"corpus_id": 3, "score": 0.5}], [{"corpus_id": 1, "score": 0.25}]], {"0": {"3": 0.5}, "1": {"1": 0.25}}),
        (json.loads(json.dumps([[{"corpus_id": d, "score": s} for d, s in RUN["q1"].items()]])), {"0": RUN["q1"]}),
    ],
)  # fmt: skip
def test_runs_in_memory(given: Any, expected: Any) -> None:
    assert as_run(given).to_dict() == expected
    judged = {query: {next(iter(docs)): 1} for query, docs in expected.items()}
    assert tw.evaluate(judged, given, "RR")["RR"].expected == tw.evaluate(judged, expected, "RR")["RR"].expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"q": {"b", "a"}}, {"q": {"a": 1.0, "b": 1.0}}),
        ({"q": ["b", "a"]}, {"q": {"b": 1.0, "a": 1.0}}),
        ({"q": [("a", 2)]}, {"q": {"a": 2.0}}),
        ([{"query-id": "q", "corpus-id": "a", "score": 1}], {"q": {"a": 1.0}}),
    ],
)
def test_judgments_in_memory(given: Any, expected: Any) -> None:
    assert list(as_qrels(given)) == [(q, d, label) for q, docs in expected.items() for d, label in docs.items()]


def test_cells_with_blanks_are_not_divided() -> None:
    rows = [("q 1", "a 1", 1, 0.5), ("q 1", "b 1", 2, 0.25)]  # six words, as of TREC
    with pytest.raises(tw.InputError, match=r"have blanks.* Give rows of \(query, document, score\)"):
        as_run(rows)
    assert as_run([(query, doc, score) for query, doc, _, score in rows]).to_dict() == {
        "q 1": {"a 1": 0.5, "b 1": 0.25}
    }


def test_rows_by_the_names_of_their_values() -> None:
    hit = namedtuple("hit", "qid docno rank score")
    data = make_dataclass("data", ["query_id", "doc_id", "score"])
    assert as_run([hit(*row) for row in ROWS]).to_dict() == RUN
    assert as_run([data(query, doc, score) for query, doc, _, score in ROWS]).to_dict() == RUN
    for pairs in (RUN.items(), list(RUN.items()), ((query, list(docs.items())) for query, docs in RUN.items())):
        assert as_run(pairs).to_dict() == RUN
    with pytest.raises(tw.InputError, match="query 'q1' appears twice in the run"):
        as_run([*RUN.items(), ("q1", {})])
    with pytest.raises(tw.InputError, match=r"Found qrels \(column 'label'\), not a run. Where both are given, qrels"):
        as_run(FRAME.rename(columns={"score": "label"}))


@pytest.mark.parametrize("names", [("doc_ids", "scores"), ("docno", "score")])
def test_frames_with_a_ranking_in_each_row(names: tuple[str, str], tmp_path: Path) -> None:
    lists = ([[*docs] for docs in RUN.values()], [[*docs.values()] for docs in RUN.values()])
    columns = {"query_id": list(RUN), **dict(zip(names, lists, strict=True))}
    frame = pandas.DataFrame(columns)
    frame.to_parquet(tmp_path / "run.parquet")
    for given in (frame, tmp_path / "run.parquet", pandas.read_parquet(tmp_path / "run.parquet")):
        assert as_run(given).to_dict() == RUN
        assert tw.evaluate(RELEVANT, given, "RR")["RR"].expected == 0.75
    polars = pytest.importorskip("polars")
    assert as_run(polars.DataFrame(columns)).to_dict() == RUN
    assert as_run(pytest.importorskip("datasets").Dataset.from_dict(columns)).to_dict() == RUN


def test_files_of_arrow(tmp_path: Path) -> None:
    arrow, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    table = arrow.Table.from_pandas(FRAME)
    feather.write_feather(table, str(tmp_path / "run.feather"))
    for name, make in (("run.arrow", arrow.ipc.new_file), ("run.arrows", arrow.ipc.new_stream)):
        with make(str(tmp_path / name), table.schema) as writer:
            writer.write_table(table)
    for name in ("run.feather", "run.arrow", "run.arrows"):
        run = tw.read_run(tmp_path / name)
        assert run.to_dict() == RUN and run.source is not None and run.source.format == "arrow"
        assert tw.evaluate(RELEVANT, tmp_path / name, "RR")["RR"].expected == 0.75
        (tmp_path / "cut").write_bytes((tmp_path / name).read_bytes()[:-200])
        with pytest.raises(tw.InputError, match=r"cut: is not readable as Arrow \("):
            tw.read_run(tmp_path / "cut")


def test_semantic_search_of_sentence_transformers() -> None:
    util, torch = pytest.importorskip("sentence_transformers.util"), pytest.importorskip("torch")
    found = util.semantic_search(torch.eye(2), torch.tensor([[1.0, 0.0], [0.5, 1.0]]), top_k=2)
    run = as_run(found)
    assert {query: list(docs) for query, docs in run.to_dict().items()} == {"0": ["0", "1"], "1": ["1", "0"]}
    assert run.numbered == ("query",)


def test_data_sets() -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"query-id": query, "corpus-id": doc, "score": label} for query, doc, label in JUDGED]
    data = datasets.Dataset.from_list(rows)
    assert as_qrels(data).to_dict() == LABELS == as_qrels(data.to_iterable_dataset()).to_dict()
    run = datasets.Dataset.from_pandas(FRAME)
    assert tw.evaluate(data, run, "RR")["RR"].expected == tw.evaluate(LABELS, RUN, "RR")["RR"].expected
    with pytest.raises(tw.InputError, match=r"one split of a data set. This has 'test': give one"):
        as_qrels(datasets.DatasetDict({"test": data}))


def test_open_files(tmp_path: Path) -> None:
    content = RUN_FILES["TREC"][0]
    path = saved(tmp_path, content)
    for given in (io.StringIO(content), io.BytesIO(content.encode()), path.open(encoding="utf-8"), path.open("rb")):
        with given:
            assert as_run(given).to_dict() == RUN
    assert tw.read_run(io.StringIO(RUN_FILES["rank_llm"][0])).to_dict() == RUN
    with pytest.raises(tw.InputError, match=r"^the open file:1: "):
        as_run(io.StringIO("a b\n"))
    with path.open(encoding="utf-8") as file, pytest.raises(tw.InputError, match=r"file:1: looks like a run"):
        as_qrels(file)
    with pytest.raises(tw.InputError, match="neither text nor bytes"):
        as_run(SimpleNamespace(read=lambda: 5))


def test_zip_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, method in (("TREC", zipfile.ZIP_DEFLATED), ("rank_llm", zipfile.ZIP_STORED), ("Excel", zipfile.ZIP_LZMA)):
        with zipfile.ZipFile("run.zip", "w", method) as archive:
            archive.writestr("folder/", "")
            archive.writestr("folder/run", RUN_FILES[name][0])
            archive.writestr("__MACOSX/folder/._run", "x")
        assert tw.read_run("run.zip").to_dict() == RUN
        assert tw.evaluate(RELEVANT, "run.zip", "RR")["RR"].expected == 0.75
    data = Path("run.zip").read_bytes()
    Path("cut.zip").write_bytes(data[: len(data) // 2])
    with zipfile.ZipFile("two.zip", "w") as archive:
        archive.writestr("a", "x")
        archive.writestr("b", "x")
    with zipfile.ZipFile("table.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "x")
    with zipfile.ZipFile("bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run", b"\n" * (1 << 29))
    for name, message in {
        "cut.zip": "cut.zip: the zip data cannot be read",
        "two.zip": r"two.zip: has 2 files \(a, b\). Unzip it, and give one of them.",
        "table.xlsx": "table.xlsx: is an Office document. Save the table as CSV.",
        "bomb.zip": "bomb.zip: grows over 250 times when decompressed",
    }.items():
        with pytest.raises(tw.InputError, match="^" + message):
            tw.read_run(name)


def test_damaged_zip_archives_are_errors() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run", RUN_FILES["TREC"][0])
    data = content.getvalue()
    for place in range(len(data)):
        damaged = bytes([*data[:place], 255 - data[place], *data[place + 1 :]])
        with contextlib.suppress(tw.TiewiseError):
            assert tw.read_run(io.BytesIO(damaged)).to_dict() == RUN


def test_lz4_of_ranx_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.lz4"
    path.write_bytes(b"\x04\x22\x4d\x18\x40\x40\xc0")
    with pytest.raises(tw.InputError, match=r"run.lz4: is compressed with lz4, which is not read. Decompress it"):
        tw.read_run(path)


def test_from_rankings() -> None:
    run = tw.Run.from_rankings({"q1": ["d2", "d1", "d3"], "q2": ("d1", "d4")})
    assert run.to_dict() == RANKED
    assert tw.Run.from_rankings({1: [5, {7, 6}, 8]}).to_dict() == {"1": {"5": -1.0, "6": -2.0, "7": -2.0, "8": -4.0}}
    for given, message in {
        "list": "not a set of rankings",
        "set": "a set has no order",
        "twice": "document 'a' appears twice",
        "dict": "a dict has no order",
    }.items():
        bad: Any = {"list": ["a"], "set": {"q": {"a"}}, "twice": {"q": ["a", ["b", "a"]]}, "dict": {"q": {"a": 1}}}[
            given
        ]
        with pytest.raises(tw.InputError, match=message):
            tw.Run.from_rankings(bad)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"q": {"a", "b"}}, "query 'q': a set has no order"),
        ({"q": iter(["a", "b"])}, "query 'q': a list_iterator can be read only once. Give a list"),
        ({"q": ([1, 2], [3, 4])}, "which one is the document"),
        ([{"qid": "q", "docno": "d", "distance": 0.5}], "Of distances, rename distance to score and add distances=True"),
        ({"q": "d1"}, "query 'q': a str is not a ranking"),
        ({"q": [(SimpleNamespace(page_content="…"), 0.5)]}, r"a SimpleNamespace is not an id. Give \(id, score\), or \(id, -distance\)"),
        ({"q": {"search_results": [{"id": i} for i in range(999)]}}, r"^.{0,160} Write a list of results as {query: \[{\"id\": …, \"score\": …}, …\]}\.$"),
        ((np.array([[0.5, 0.25]]), np.array([[1, 0]])), r"tw.Run.from_neighbors\(scores, ids\)"),  # of faiss
        ({"query": ["q", "r"], "doc": ["a", "b"]}, "the columns 'query', 'doc' name no score"),
        ({"q": (np.array([5, -1]), np.array([0.5, -3e38]))}, "query 'q': -1 is no document"),
        ({"q": ["a", 1.5]}, "query 'q': 1.5 is not an id, where others are"),
        ([{"qid": "q", "docno": "d", "score": 1}, {"qid": "q", "docno": "e"}], "row 1 has no 'score'"),
        ([{"qid": "q", "score": 1}], "has no column 'doc_id'"),
        ([("q", "d"), ("q", "e")], "The rows have 2 values"),
        (pandas.DataFrame([[5, 2, 7], [4, 9, 3]]), "rows of the run:1: 3 columns between tabs may be a run or judgments"),  # documents in columns
        (FRAME[["qid", "docno"]].assign(dissimilarity=FRAME["score"]), "has no column 'score'"),
        ([("q", 1, "d", 0.5), ("q", 2, "e", 0.25)], "rows of the run:1: 4 columns between tabs look like query,rank,doc,score"),
        ({"q": SimpleNamespace(points=[SimpleNamespace(id=i, score=i) for i in (1, 2)])}, "or these are distances"),
        ({"q": [{"query_id": "a", "docid": "d", "score": 1}, {"query_id": "b", "docid": "e", "score": 1}]}, "several queries"),
    ],
)  # fmt: skip
def test_bad_runs_in_memory(given: Any, message: str) -> None:
    with pytest.raises(tw.InputError, match=message):
        as_run(given)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_named_after_its_tag(tmp_path: Path, tiewise: Any) -> None:
    qrels = saved(tmp_path, labels("{q} 0 {d} {l}"), "qrels.txt")
    pipes = [tmp_path / "63", tmp_path / "62", tmp_path / "61"]
    for path, tag in zip(pipes, ("bm25", "bm25", ""), strict=True):
        os.mkfifo(path)
        content = lines(f"{{q}} Q0 {{d}} {{r}} {{s}} {tag}") if tag else lines("{q}\t{d}\t{r}")
        threading.Thread(target=path.write_text, args=(content,), daemon=True).start()
    done = tiewise("evaluate", str(qrels), *map(str, pipes), "-m", "RR", "--format", "tsv")
    assert [line.split("\t")[0] for line in done.out.splitlines()[1:]] == ["bm25", "bm25#2", "61"]


@pytest.mark.parametrize("kind", ["float32", "int64", "list", "lists", "tensor"])
def test_arrays_without_ids_go_to_evaluate_scores(kind: str) -> None:
    scores: Any = [[0.5, 0.25], [0.75, 0.5]]
    if kind == "tensor":
        scores = pytest.importorskip("torch").tensor(scores)
    else:
        scores = scores[0] if kind == "list" else scores if kind == "lists" else np.array(scores, dtype=kind)
    for qrels, run in ((scores, scores), (LABELS, scores)):
        with pytest.raises(tw.InputError, match=r"has no ids, .* go to tw.evaluate_scores\(scores, labels, measures\)"):
            tw.evaluate(qrels, run, "RR")


def test_what_duckdb_found() -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("frame", FRAME)
    query = "select qid, docno, score from frame"
    judged = {q: {next(iter(docs)): 1} for q, docs in RUN.items()}
    assert as_run(connection.execute(query)).to_dict() == RUN
    assert as_run(connection.sql(query)).to_dict() == RUN
    assert tw.evaluate(judged, connection.sql(query), "RR")["RR"].expected == 1.0


def test_tensors_of_ids() -> None:
    torch = pytest.importorskip("torch")
    assert as_run({7: torch.tensor([3, 1])}).to_dict() == {"7": {"3": -1.0, "1": -2.0}}
    assert as_run({7: (torch.tensor([3, 1]), torch.tensor([0.5, 0.25]))}).to_dict() == {"7": {"3": 0.5, "1": 0.25}}
    assert as_qrels({7: torch.tensor([3, 1])}).to_dict() == {"7": {"3": 1.0, "1": 1.0}}


def test_tar_archives_are_named(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "run.tar.gz", "w:gz") as archive:
        archive.add(saved(tmp_path, lines("{q} Q0 {d} {r} {s} tag")))
    with pytest.raises(tw.InputError, match=r"is a tar archive. Extract the file: tar -xf FILE"):
        tw.read_run(tmp_path / "run.tar.gz")


@pytest.mark.parametrize("kind", ["frame", "csv", "json"])
def test_a_class_beside_its_probability_is_no_score(kind: str, tmp_path: Path) -> None:
    frame = FRAME[["qid", "docno"]].assign(prediction=[1, 1, 0, 1, 0], probability=FRAME["score"])
    texts = {"csv": frame.to_csv(index=False), "json": frame.to_json(orient="records", lines=True)}
    assert as_run(frame if kind == "frame" else saved(tmp_path, texts[kind])).to_dict() == RUN


def test_an_index_counts_rows_of_queries(tmp_path: Path) -> None:
    for columns in (["docno", "qid", "score"], ["qid", "docno", "rank"]):
        path = saved(tmp_path, FRAME[columns].to_csv(header=False))
        with pytest.raises(tw.InputError, match="4 columns between commas fit no run"):
            tw.read_run(path)
