"""What was computed elsewhere and saved: logits and hidden states of rerankers, vectors of a collection, BM25 scores.

The folder is given with ``--data`` and is no part of the repository. It holds ``tensors/*.safetensors`` and the
collections that the tensors belong to; `Missing` says what it lacks.
"""

from __future__ import annotations

import gzip
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import tiewise as tw
from experiments.scored import Batches, Judged, Missing, Scored, listed
from tiewise import scoring

TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def needed(module: str, package: str = "") -> Any:
    """A module, or the line that installs it."""
    try:
        return import_module(module)
    except ImportError:
        raise Missing(f"the package {package or module} is not installed: pip install {package or module}") from None


def there(path: Path) -> Path:
    """The path, if there is such a file."""
    if not path.exists():
        raise Missing(f"{path} is not there: give the folder that holds it with --data")
    return path


def tensors(folder: Path, name: str) -> dict[str, Any]:
    """The tensors of a file, as torch tensors: NumPy alone knows no bfloat16."""
    needed("torch")
    path = there(folder / "tensors" / f"{name}.safetensors")
    loaded: dict[str, Any] = needed("safetensors.torch", "safetensors").load_file(path)
    return loaded


# -- rerankers ---------------------------------------------------------------------------------------------------------


def levels(logits: Any, hidden: Any, weight: Any, bias: Any, fn: str) -> dict[str, Any]:
    """The scores of a reranker at every level, from its logits and the hidden states that they came from."""

    def one(z: Any) -> Any:
        return z[:, 0] if fn == "sigmoid" else z  # a single logit needs no axis

    found = {
        "native": scoring.score(one(logits), fn=fn, precision="native"),
        "score": scoring.score(one(logits), fn=fn),
        "logit": scoring.logit(one(logits), fn=fn),
    }
    if hidden is not None:
        found["head"] = scoring.logit(one(scoring.head(hidden, weight, bias, precision="float64")), fn=fn)
    return found


def answerable(query: Any, label: Any) -> set[int]:
    """The queries with a relevant candidate and one that is not: for others every order is as good."""
    query, label = np.asarray(query), np.asarray(label)
    return {int(one) for one in np.unique(query) if 0 < label[query == one].mean() < 1}


def cross_encoder(folder: Path, fn: str, batch: int = 16) -> Scored:
    """A cross-encoder on TrecQA in three types: the fp32 logits, and logits and hidden states of fp16 and bf16."""
    t = tensors(folder, f"cross_encoder_{fn}_trecqa")
    scores: dict[tuple[str, str], Any] = {
        ("float32", "native"): levels(t["fp32_bs16_logits"], None, None, None, fn)["native"]
    }
    for short in ("fp16", "bf16"):
        parts = (
            t[f"{short}_bs{batch}_logits"],
            t[f"{short}_hidden"],
            t[f"head_weight_{short}"],
            t[f"head_bias_{short}"],
        )
        scores |= {(TYPES[short], level): values for level, values in levels(*parts, fn).items()}
    kind = {"sigmoid": "one logit", "softmax": "two logits"}[fn]
    return paired(f"cross-encoder, {kind}", t, scores)


def language_model(folder: Path) -> Scored:
    """A small language model that answers yes or no, in bf16 alone."""
    t = tensors(folder, "llm_yes_no_trecqa")
    parts = levels(t["logits_no_yes_bf16"], t["hidden_bf16"], t["head_no_yes_bf16"], None, "softmax")
    return paired("LLM, yes/no", t, {("bfloat16", level): values for level, values in parts.items()})


def paired(model: str, t: dict[str, Any], scores: dict[tuple[str, str], Any], data: str = "TrecQA") -> Scored:
    """Scores of pairs as runs, over the queries that can tell orders apart."""
    query = t["query"].tolist()
    keep = answerable(t["query"], t["label"])
    runs = {kind: tw.Run.from_dict(listed(query, values.tolist(), keep)) for kind, values in scores.items()}
    return Scored(model, data, listed(query, t["label"].tolist(), keep), runs)


def batch_sizes(folder: Path, fn: str) -> list[Batches]:
    """A cross-encoder's logits at batch sizes 16 and 128, on the same machine (the paper's footnote 5)."""
    t = tensors(folder, f"cross_encoder_{fn}_trecqa")
    found = {size: cross_encoder(folder, fn, size) for size in (16, 128)}
    return [
        Batches(
            f"{found[16].model}, {short} (GPU)",
            found[16].judged,
            {size: t[f"{short}_bs{size}_logits"].double().numpy() for size in found},
            {level: [one.runs[TYPES[short], level] for one in found.values()] for level in ("native", "score")},
        )
        for short in ("fp16", "bf16")
    ]


# -- collections -------------------------------------------------------------------------------------------------------


def cranfield_qrels(folder: Path) -> Judged:
    """Cranfield's judgments, 0 or 1: a single label of 3 is taken as 1."""
    qrels = tw.read_qrels(there(folder / "cranfield" / "qrels.txt")).to_dict()
    return {query: {doc: float(label >= 1) for doc, label in labels.items()} for query, labels in qrels.items()}


def cranfield_texts(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Queries and documents by their numbers."""
    queries = jsonl(folder / "cranfield" / "queries.jsonl.gz")
    documents = jsonl(folder / "cranfield" / "docs.jsonl.gz")
    return {one["num"]: one["text"] for one in queries}, {one["id"]: one["text"] for one in documents}


def cranfield_vectors(folder: Path, short: str) -> tuple[Any, Any]:
    """The vectors of queries and documents by all-MiniLM-L6-v2 in fp32 or bf16, not normalised."""
    t = tensors(folder, f"minilm_cranfield_{short}")
    return t["queries"], t["docs"]


def cranfield_ids(queries: int, documents: int) -> dict[str, list[str]]:
    """Rows are in the order of the files, whose numbers begin with 1."""
    return {"query_ids": numbers(queries), "doc_ids": numbers(documents)}


def numbers(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]


def cranfield_minilm(folder: Path) -> Scored:
    """All-MiniLM-L6-v2 over the whole of Cranfield, its vectors in fp32 and bf16."""
    runs = {}
    for short in ("fp32", "bf16"):
        queries, documents = cranfield_vectors(folder, short)
        runs |= dense(queries, documents, TYPES[short], **cranfield_ids(len(queries), len(documents)))
    return Scored("MiniLM", "Cranfield", cranfield_qrels(folder), runs)


def dense(queries: Any, documents: Any, dtype: str, **ids: Any) -> dict[tuple[str, str], tw.Run]:
    """The cosine of all queries with all documents: in the vectors' own type, and with a float32 product."""
    precisions = {"native": "native"} if dtype == "float32" else {"native": "native", "score": "float32"}
    return {
        (dtype, level): scoring.search(queries, documents, len(documents), fn="cosine", precision=precision, **ids)
        for level, precision in precisions.items()
    }


def askubuntu_bm25(folder: Path) -> Scored:
    """Real BM25 scores of AskUbuntu's candidates, as they are and cast to narrow types.

    The candidates are listed as MTEB's reranking task lists them, the relevant ones first: the files have them by
    score, an order that would undo the rounding.
    """
    narrow = needed("ml_dtypes")
    lists = [one for part in ("dev", "test") for one in jsonl(folder / "askubuntu" / f"{part}_bm25.jsonl.gz")]
    asked = {f"{place}:{one['qid']}": one for place, one in enumerate(lists) if any(one["labels"])}
    judged = {query: dict(zip(one["cands"], map(float, one["labels"]), strict=True)) for query, one in asked.items()}
    types = {
        "float32": np.float32,
        "float16": np.float16,
        "bfloat16": narrow.bfloat16,
        "float8 e4m3": narrow.float8_e4m3fn,
        "float8 e5m2": narrow.float8_e5m2,
    }
    runs = {
        (name, ""): tw.Run.from_dict({q: cast(one, dtype) for q, one in asked.items()}) for name, dtype in types.items()
    }
    return Scored("BM25", "AskUbuntu", judged, runs, ("float32", ""))


def cast(one: dict[str, Any], dtype: Any) -> dict[str, float]:
    scores = np.asarray(one["bm25"], dtype=np.float32).astype(dtype).astype(np.float64)
    rows = zip(one["cands"], scores.tolist(), one["labels"], strict=True)
    return {doc: score for doc, score, _ in sorted(rows, key=lambda row: -row[2])}


def jsonl(path: Path) -> list[dict[str, Any]]:
    """The lines of a compressed file of JSON."""
    with gzip.open(there(path), "rt", encoding="utf-8") as file:
        return [json.loads(text) for text in file]
