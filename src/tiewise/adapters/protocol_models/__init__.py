"""`model`: the rows of `protocol` from a model in several types, its scores at several levels, and texts.

One forward pass gives all levels. What the model gives is saved as it comes, so a call that was stopped goes on where
it was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tiewise import scoring
from tiewise.adapters.protocol_models.loading import KINDS, Loader, check_told, find_kind, find_model, takes_instruction
from tiewise.adapters.protocol_models.text_collections import TextCollection, read_collection
from tiewise.adapters.transformers import QWEN3_RERANKER
from tiewise.analysis.protocols import Row
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.errors import InputError, first_line, warn
from tiewise.io import read_run, write_run
from tiewise.io.compression import PathLike, remove_stale, save
from tiewise.results.optional import need
from tiewise.results.wording import spell_dtypes, spell_option
from tiewise.scoring.options import require_int
from tiewise.scoring.row_makers.logits import LEVELS, name_row, resolve_levels

__all__ = ["DEFAULT_DEPTH", "TextCollection", "check_options", "model", "read_collection"]

DTYPES = ("float32", "float16", "bfloat16")
DEFAULT_LEVELS = ("native", "score", "head")
DEFAULT_DEPTH = 1000
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
    yes: str | None = None,
    no: str | None = None,
    depth: int = DEFAULT_DEPTH,
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
      ``question`` of a yes/no model, whose words are `yes` and `no`. What a kind does not use is an error; the
      `instruction` of a collection is for those models that use one.
    - `progress`: called with the number of texts or pairs done and their total.

    >>> model("no/such/folder", "texts")
    Traceback (most recent call last):
    tiewise.errors.InputError: no/such/folder: there is no such folder. Give one, or the name of a model of the hub.
    """
    report_progress = check_progress(progress)
    told = {"instruction": instruction, "yes": yes, "no": no}
    numbers = {"batch_size": batch_size, "depth": depth, "max_length": max_length}
    names = {"dtypes": dtypes, "levels": levels, "kind": kind, "device": device, "revision": revision}
    check_options(prompts=prompts, trust_remote_code=trust_remote_code, **names, **numbers, **told)
    chosen = resolve_levels(levels)
    folder, found_revision = find_model(model, revision)
    kind = kind or find_kind(folder, model)
    check_told(kind, folder, prompts, **told)
    if kind == "bi-encoder" and not {"native", "score"} & set(chosen):
        raise InputError(f"A {kind} has the levels native and score, not {', '.join(chosen)}.")
    device = _resolve_device(device)
    types = _resolve_dtypes(dtypes, device)
    texts = data if isinstance(data, TextCollection) else read_collection(data)
    if instruction is None and takes_instruction(kind, folder, prompts):
        instruction = texts.instruction
    yes, no = yes or QWEN3_RERANKER.yes, no or QWEN3_RERANKER.no
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
    made = _Rows(loader, texts, SavedScores(save, settings), depth, len(types), report_progress)
    rows: dict[str, Row] = {}
    for dtype in types:
        rows |= made.of(dtype, ("native",) if dtype == "float32" else chosen)
    return rows


def check_options(*, prompts: Any = None, trust_remote_code: Any = False, **options: Any) -> None:
    """Require options of `model` that are possible, as far as the model need not be known."""
    for name in ("batch_size", "depth", "max_length"):
        require_int(options.get(name, 1), name, optional=name == "max_length")
    resolve_levels(options.get("levels", DEFAULT_LEVELS))
    if (dtypes := options.get("dtypes")) is not None:
        _check_dtypes(dtypes)
    if (kind := options.get("kind")) is not None and kind not in KINDS:
        raise InputError(f"{spell_option('kind', kind)} is not one of {', '.join(KINDS)}.")
    for name in ("instruction", "yes", "no", "revision", "device"):
        value = options.get(name)
        if value is not None and (not isinstance(value, str) or (not value and name != "instruction")):
            raise InputError(f"{spell_option(name, value)} is not possible. Give a text.")
    if prompts is not None and not (
        isinstance(prompts, Mapping) and all(isinstance(one, str) for pair in prompts.items() for one in pair)
    ):
        raise InputError(f"{spell_option('prompts', prompts)} is not possible. Give texts by role.")
    if not isinstance(trust_remote_code, bool):
        raise InputError(f"{spell_option('trust_remote_code', trust_remote_code)} is not possible. Give true or false.")
    if options.get("device") is not None:
        _resolve_device(options["device"])


def _resolve_dtypes(dtypes: Iterable[str] | None, device: str) -> list[str]:
    if dtypes is None:
        if device.partition(":")[0] != "cpu":
            return list(DTYPES)
        warn("float16 is very slow on a CPU and was left out. Name it in dtypes (--dtype) to run it.")
        return [dtype for dtype in DTYPES if dtype != "float16"]
    return _check_dtypes(dtypes)


def _check_dtypes(dtypes: Iterable[str]) -> list[str]:
    given = [dtypes] if isinstance(dtypes, str) else dtypes
    wanted = list(dict.fromkeys(spell_dtypes(one) if isinstance(one, str) else one for one in given))
    for dtype in wanted:
        if dtype not in DTYPES:
            raise InputError(f"Unknown type {dtype!r} of a model. Use some of: {', '.join(DTYPES)}.")
    if not wanted:
        raise InputError(f"No type was given. Give some of: {', '.join(DTYPES)}.")
    return wanted


def _resolve_device(device: str | None) -> str:
    torch = need("torch", "Running a model", "transformers")
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.ones(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # unknown, or not on this machine
        problem = f"{spell_option('device', device)} cannot be used here"
        raise InputError(f"{problem} ({first_line(error)}).") from None
    return device


class _Rows:
    def __init__(
        self, loader: Loader, texts: TextCollection, saved: SavedScores, depth: int, types: int, progress: Progress
    ):
        self._loader, self._texts, self._saved, self._depth, self._progress = loader, texts, saved, depth, progress
        queries = list(dict.fromkeys(query for query, _ in texts.pairs)) if texts.candidates else texts.judged
        docs = list(dict.fromkeys(doc for _, doc in texts.pairs)) if texts.candidates else list(texts.docs)
        self._ids = {"queries": queries, "docs": docs}
        self._size = PART * loader.batch_size
        self._work = len(texts.pairs) if loader.is_reranker else len(queries) + len(docs)
        self._done, self._total = 0, types * self._work

    def of(self, dtype: str, levels: Sequence[str]) -> dict[str, Row]:
        names = {level: name_row(dtype, level) for level in levels}
        if self._loader.is_reranker:
            return self._reranked(dtype, names)
        return self._embedded(dtype, {level: name for level, name in names.items() if level in ("native", "score")})

    def _report(self, amount: int) -> None:
        self._done += amount
        self._progress(self._done, self._total)

    # -- rerankers ----------------------------------------------------------------------------------------------------

    def _reranked(self, dtype: str, names: Mapping[str, str]) -> dict[str, Row]:
        pairs, load = self._texts.pairs, cache(self._loader.reranker)
        parts = math.ceil(len(pairs) / self._size)

        def compute(part: int) -> dict[str, Any]:
            score, layer = load(dtype)
            chunk = pairs[part * self._size : (part + 1) * self._size]
            scores = score([(self._texts.queries[query], self._texts.docs[doc]) for query, doc in chunk])
            return {**vars(scores), **(layer.weights() if part + 1 == parts else {})}

        def done(part: int) -> None:
            self._report(min(self._size, len(pairs) - part * self._size))

        found = self._saved.tensors(dtype, parts, compute, done)
        self._check_size(dtype, {level: found.get(level) for level in LEVELS}, len(pairs))
        rows = {}
        for level, name in names.items():
            # In float32 torch's bits depend on the place in a batch, so its own scores can differ where logits tie.
            key = "score" if (dtype, level) == ("float32", "native") else level
            run = self._kept(name, len(pairs), lambda key=key: self._run_of_pairs(found[key].double().numpy()))
            rows[name] = Row(run)
        return rows

    def _run_of_pairs(self, scores: Any) -> Run:
        queries, docs = zip(*self._texts.pairs, strict=True)
        return Run.from_columns(queries, docs, scores)

    # -- bi-encoders --------------------------------------------------------------------------------------------------

    def _embedded(self, dtype: str, names: Mapping[str, str]) -> dict[str, Row]:
        load = cache(self._loader.encoder)
        chunks = [
            (key, role, ids[start : start + self._size])
            for key, role, ids in (("queries", "query", self._ids["queries"]), ("docs", "document", self._ids["docs"]))
            for start in range(0, len(ids), self._size)
        ]

        def compute(part: int) -> dict[str, Any]:
            key, role, ids = chunks[part]
            texts = self._texts.queries if role == "query" else self._texts.docs
            return {key: load(dtype)([texts[one] for one in ids], role)}

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


# -- saved scores ---------------------------------------------------------------------------------------------------
# What a model gives is computed in parts of a fixed size. A part is written under a temporary name and then renamed,
# so a file is complete or not there. When all parts are there, they become one file. So it does not matter for any
# byte where an earlier call stopped.

Tensors = dict[str, Any]
AGAIN = "Delete it, and it is computed again."


class SavedScores:
    """A folder of tensors and of the settings that they were computed with; without a folder, nothing is kept."""

    def __init__(self, folder: PathLike | None, settings: Mapping[str, Any]):
        self.folder, self._settings = None if folder is None else Path(folder), dict(settings)
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be made ({error.strerror or error}).") from None
        remove_stale(self.folder)
        if (self.folder / "settings.json").exists():
            self._check_settings(self.folder / "settings.json")

    def _check_settings(self, path: Path) -> None:
        """Require the settings of earlier calls."""
        try:
            earlier = dict(json.loads(path.read_text(encoding="utf-8")))
        except ValueError:
            raise InputError(f"{path}: is damaged. Delete the folder, and it is computed again.") from None
        for name, value in self._settings.items():
            if earlier.get(name) != value:
                what = {"model_revision": "another revision of the model", "data_files": "other texts"}.get(name)
                what = what or f"{spell_option(name, earlier.get(name))}, not {value!r}"
                raise InputError(f"{path}: these scores are of {what}. Choose another folder, or delete this one.")

    def tensors(self, name: str, parts: int, compute: Callable[[int], Tensors], done: Callable[[int], None]) -> Tensors:
        """The tensors of all parts, joined; `compute` makes those of a part that is not there yet."""
        torch = need("torch", "Running a model", "transformers")
        whole = self._path(name)
        paths = [self._path(f"{name}.part{part:05}") for part in range(parts)]
        if whole is not None and whole.exists():
            joined = self._read(whole, name)
            for part in range(parts):
                done(part)
        else:
            made = []
            for part, path in enumerate(paths):
                if path is not None and path.exists():
                    made.append(self._read(path, name))
                else:
                    made.append({key: value.detach().cpu().contiguous() for key, value in compute(part).items()})
                    self._write(path, name, made[-1])
                done(part)
            keys = dict.fromkeys(key for one in made for key in one)
            joined = {key: torch.cat([one[key] for one in made if key in one]) for key in keys}
            self._write(whole, name, joined)
        for path in paths:
            if path is not None:
                path.unlink(missing_ok=True)
        return joined

    def _path(self, stem: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{stem}.safetensors"

    def _write(self, path: Path | None, name: str, tensors: Tensors) -> None:
        if path is None:
            return
        library = need("safetensors.torch", "Saving scores", "precision")
        settings = path.parent / "settings.json"
        if not settings.exists():  # not before there are scores: a call that fails leaves none
            save(settings, [json.dumps(self._settings, indent=1, ensure_ascii=False).encode(), b"\n"])
        save(path, [library.save(tensors, metadata={"dtype": name})])

    def _read(self, path: Path, name: str) -> Tensors:
        safetensors = need("safetensors", "Reading saved scores", "precision")
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                found = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 – it is not a mapping
        except (OSError, ValueError, safetensors.SafetensorError) as error:
            problem = " ".join(str(error).split())
            raise InputError(f"{path}: is damaged ({problem}). {AGAIN}") from None
        if metadata.get("dtype") != name:
            raise InputError(f"{path}: holds scores of {metadata.get('dtype')}, not of {name}. {AGAIN}")
        return found
