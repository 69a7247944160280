"""`model`: the rows of `protocol` from a model in several types, its scores at several levels, and texts.

One forward pass gives all levels. What the model gives is saved as it comes, so a call that was stopped goes on where
it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from tiewise import scoring
from tiewise.adapters.protocol_models.loading import KINDS, PROMPTS, Loader, find_kind, find_model
from tiewise.adapters.protocol_models.saved_scores import AGAIN, SavedScores
from tiewise.adapters.protocol_models.text_collections import TextCollection, read_collection
from tiewise.adapters.transformers import LEVELS, Scores
from tiewise.analysis.protocols import Row
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.errors import InputError, warn
from tiewise.io import read_run, write_run
from tiewise.io.compression import PathLike
from tiewise.scoring.options import require_int
from tiewise.scoring.row_makers.logits import LEVEL_NAMES
from tiewise.tables.optional import need
from tiewise.tables.wording import spell_option

__all__ = ["TextCollection", "model", "read_collection"]

DTYPES = ("float32", "float16", "bfloat16")
DEFAULT_LEVELS = ("native", "score", "head")
PART = 16  # batches: what a call that is stopped can lose


def model(
    model: PathLike,
    data: PathLike | TextCollection,
    *,
    dtypes: Iterable[str] | None = None,
    levels: Iterable[str] = DEFAULT_LEVELS,
    save: PathLike | None = None,
    kind: str | None = None,
    revision: str | None = None,
    instruction: str | None = None,
    prompts: Mapping[str, str] | None = None,
    max_length: int | None = None,
    batch_size: int = 16,
    device: str | None = None,
    yes: str = "yes",
    no: str = "no",
    depth: int = 1000,
    trust_remote_code: bool = False,
    progress: Progress | None = None,
) -> dict[str, Row]:
    """The rows of a model for `protocol`: ``float32``, ``bfloat16``, ``bfloat16 + hps``, ``bfloat16 + head`` …

    - `model`: a folder, or a name of the Hugging Face hub, at `revision`. `trust_remote_code` runs code that the model
      brings.
    - `data`: a folder with queries.jsonl, corpus.jsonl, qrels.* and, for a reranker, candidates.*; or a data set of the
      hub; or a `TextCollection`. A bi-encoder without candidates searches the whole corpus for `depth` documents.
    - `dtypes`: of the model; by default float32, float16 and bfloat16, without float16 on a CPU, where it is slow.
    - `levels`: ``"native"`` (row ``X``), ``"score"`` (``X + hps``), ``"logit"`` (``X + logit``) and ``"head"`` (``X +
      head``), those that the kind of model has; a bi-encoder has the first two. float32 has one row.
    - `save`: a folder for what the model gives (``X.safetensors``) and for the rows (``X+hps.trec``). What is in it is
      not computed again.
    - `kind`: ``"bi-encoder"``, ``"cross-encoder"``, ``"classifier"`` or ``"yes-no"``, where the folder does not tell.
    - `instruction`: for a yes/no model, the prompt of a cross-encoder, and ``{instruction}`` in the prompts of a
      bi-encoder. `prompts`: texts before a ``query`` and a ``document`` of a bi-encoder; ``before``, ``after`` and
      ``question`` of a yes/no model, whose words are `yes` and `no`.
    - `progress`: called with the number of texts or pairs done and their total.

    >>> model("no/such/folder", "texts")
    Traceback (most recent call last):
    tiewise.errors.InputError: no/such/folder: there is no such folder. Give one, or the name of a model of the hub.
    """
    check_progress(progress)
    for name, value in (("batch_size", batch_size), ("depth", depth)):
        require_int(value, name)
    require_int(max_length, "max_length", optional=True)
    chosen = _resolve_levels(levels)
    if kind is not None and kind not in KINDS:
        raise InputError(f"{spell_option('kind', kind)} is none of {', '.join(KINDS)}.")
    folder, found_revision = find_model(model, revision)
    kind = kind or find_kind(folder, model)
    _check_prompts(kind, prompts)
    device = device or _default_device()
    types = _resolve_dtypes(dtypes, device)
    texts = data if isinstance(data, TextCollection) else read_collection(data)
    loader = Loader(
        str(model), folder, kind, device, instruction, prompts, max_length, batch_size, yes, no, trust_remote_code
    )
    if loader.is_reranker and texts.candidates is None:
        raise InputError(
            f"{texts.name}: a {kind} needs candidates to rerank. Add candidates.*, a run of a first stage, to it."
        )
    settings = {
        "kind": kind,
        "model_revision": found_revision,
        "data_files": texts.fingerprint,
        "instruction": instruction,
        "prompts": None if prompts is None else dict(prompts),
        "max_length": max_length,
        "batch_size": batch_size,
        "device": device.partition(":")[0],
        **({"yes": yes, "no": no} if kind == "yes-no" else {}),
        **({"depth": depth} if texts.candidates is None else {}),
    }
    made = _Rows(loader, texts, SavedScores(save, settings), depth, len(types), progress)
    rows: dict[str, Row] = {}
    for dtype in types:
        rows |= made.of(dtype, ("native",) if dtype == "float32" else chosen)
    return rows


def _resolve_levels(levels: Iterable[str]) -> tuple[str, ...]:
    wanted = [levels] if isinstance(levels, str) else list(levels)
    for level in wanted:
        if level not in LEVEL_NAMES:
            raise InputError(f"Unknown level {level!r}. Use some of: {', '.join(LEVEL_NAMES)}.")
    if not wanted:
        raise InputError(f"No level was given. Give some of: {', '.join(LEVEL_NAMES)}.")
    return tuple(level for level in LEVEL_NAMES if level in wanted)


def _resolve_dtypes(dtypes: Iterable[str] | None, device: str) -> list[str]:
    if dtypes is None:
        if device.partition(":")[0] != "cpu":
            return list(DTYPES)
        warn("float16 is very slow on a CPU and was left out. Name it in dtypes (--dtype) to run it.")
        return [dtype for dtype in DTYPES if dtype != "float16"]
    wanted = [dtypes] if isinstance(dtypes, str) else list(dict.fromkeys(dtypes))
    for dtype in wanted:
        if dtype not in DTYPES:
            raise InputError(f"Unknown type {dtype!r} of a model. Use some of: {', '.join(DTYPES)}.")
    if not wanted:
        raise InputError(f"No type was given. Give some of: {', '.join(DTYPES)}.")
    return wanted


def _default_device() -> str:
    torch = need("torch", "Running a model", "transformers")
    return "cuda" if torch.cuda.is_available() else "cpu"


def _check_prompts(kind: str, prompts: Mapping[str, str] | None) -> None:
    known = PROMPTS.get(kind, ())
    for role in prompts or ():
        if role not in known:
            which = f"those of a {kind} are {', '.join(known)}" if known else f"a {kind} has none"
            raise InputError(f"There is no prompt '{role}': {which}.")


class _Rows:
    """The rows of one model on one collection."""

    def __init__(
        self,
        loader: Loader,
        texts: TextCollection,
        saved: SavedScores,
        depth: int,
        types: int,
        progress: Progress | None,
    ):
        self._loader, self._texts, self._saved, self._depth = loader, texts, saved, depth
        self._progress = progress
        queries = list(dict.fromkeys(query for query, _ in texts.pairs)) if texts.candidates else texts.judged
        docs = list(dict.fromkeys(doc for _, doc in texts.pairs)) if texts.candidates else list(texts.docs)
        self._ids = {"queries": queries, "docs": docs}
        self._size = PART * loader.batch_size
        self._work = len(texts.pairs) if loader.is_reranker else len(queries) + len(docs)
        self._done, self._total = 0, types * self._work

    def of(self, dtype: str, levels: Sequence[str]) -> dict[str, Row]:
        """The rows of a type."""
        names = {level: f"{dtype}{LEVEL_NAMES[level]}" for level in levels}
        if self._loader.is_reranker:
            return self._reranked(dtype, names)
        names = {level: name for level, name in names.items() if level in ("native", "score")}
        if not names:
            raise InputError(f"A {self._loader.kind} has the levels native and score, not {', '.join(levels)}.")
        return self._embedded(dtype, names)

    def _report(self, amount: int) -> None:
        self._done += amount
        if self._progress is not None:
            self._progress(self._done, self._total)

    # -- rerankers ----------------------------------------------------------------------------------------------------

    def _reranked(self, dtype: str, names: Mapping[str, str]) -> dict[str, Row]:
        pairs, loaded = self._texts.pairs, dict[str, Any]()
        parts = math.ceil(len(pairs) / self._size)

        def compute(part: int) -> dict[str, Any]:
            if not loaded:
                loaded["model"] = self._loader.reranker(dtype)
            chunk = pairs[part * self._size : (part + 1) * self._size]
            texts = [(self._texts.queries[query], self._texts.docs[doc]) for query, doc in chunk]
            scores = loaded["model"].score(texts)
            found = {field.name: getattr(scores, field.name) for field in fields(Scores)}
            return found if part + 1 < parts else found | loaded["model"].last_layer()

        def done(part: int) -> None:
            self._report(min(self._size, len(pairs) - part * self._size))

        found = self._saved.tensors(dtype, parts, compute, done)
        self._check_size(dtype, {level: found.get(level) for level in LEVELS}, len(pairs))
        rows = {}
        for level, name in names.items():
            run = self._kept(name, len(pairs), lambda level=level: self._run_of_pairs(found[level].double().numpy()))
            rows[name] = Row(run)
        return rows

    def _run_of_pairs(self, scores: Any) -> Run:
        queries, docs = zip(*self._texts.pairs, strict=True)
        return Run.from_columns(queries, docs, scores)

    # -- bi-encoders --------------------------------------------------------------------------------------------------

    def _embedded(self, dtype: str, names: Mapping[str, str]) -> dict[str, Row]:
        loaded = dict[str, Any]()
        chunks = [
            (key, role, ids[start : start + self._size])
            for key, role, ids in (("queries", "query", self._ids["queries"]), ("docs", "document", self._ids["docs"]))
            for start in range(0, len(ids), self._size)
        ]

        def compute(part: int) -> dict[str, Any]:
            if not loaded:
                loaded["model"] = self._loader.encoder(dtype)
            key, role, ids = chunks[part]
            texts = self._texts.queries if role == "query" else self._texts.docs
            return {key: loaded["model"].encode([texts[one] for one in ids], role)}

        found = self._saved.tensors(dtype, len(chunks), compute, lambda part: self._report(len(chunks[part][2])))
        for key, ids in self._ids.items():
            self._check_size(dtype, {key: found.get(key)}, len(ids))
        rows, docs = {}, found["docs"]
        for level, name in names.items():
            precision = "native" if level == "native" else "float32"
            run = self._kept(name, None, lambda precision=precision: self._run_of_vectors(found, precision))
            rows[name] = Row(run, bytes=docs.shape[1] * docs.element_size())
        return rows

    def _run_of_vectors(self, found: Mapping[str, Any], precision: str) -> Run:
        fn, queries, docs = self._loader.fn, found["queries"], found["docs"]
        ids: dict[str, Any] = {"query_ids": self._ids["queries"], "doc_ids": self._ids["docs"]}
        if self._texts.candidates is None:
            return scoring.search(queries, docs, self._depth, fn=fn, precision=precision, **ids)
        places = {doc: place for place, doc in enumerate(self._ids["docs"])}
        scores = []
        for place, query in enumerate(self._ids["queries"]):
            rows = [places[doc] for doc in self._texts.candidates[query]]
            scores.append(scoring.score(queries[place], docs[rows], fn=fn, precision=precision).double().numpy())
        return self._run_of_pairs(np.concatenate(scores))

    # -- files --------------------------------------------------------------------------------------------------------

    def _check_size(self, dtype: str, tensors: Mapping[str, Any], rows: int) -> None:
        for key, tensor in tensors.items():
            if tensor is None or len(tensor) != rows:
                found = "is missing" if tensor is None else f"has {len(tensor)} rows, not {rows}"
                raise InputError(f"{self._saved.folder}/{dtype}.safetensors: {key} {found}. {AGAIN}")

    def _kept(self, name: str, rows: int | None, make: Any) -> Run:
        """The run of a row, read from its file if that is there, else made and written."""
        if self._saved.folder is None:
            run: Run = make()
        else:
            path = Path(self._saved.folder) / f"{name.replace(' ', '')}.trec"
            if not path.exists():
                write_run(make(), path, tag=path.stem)
            run = read_run(path)
            if rows is not None and len(run) != rows:
                raise InputError(f"{path}: has {len(run):,} rows, not {rows:,}. {AGAIN}")
        return replace(run, complete_lists=np.ones(len(run.queries), dtype=bool))  # no list is cut inside a tie group
