"""Which kind of model a folder holds, and how it is loaded in a type.

- ``bi-encoder``: a SentenceTransformer, static ones too; it embeds texts;
- ``cross-encoder``: a CrossEncoder of sentence-transformers;
- ``classifier``: a ``…ForSequenceClassification`` of transformers;
- ``yes-no``: a ``…ForCausalLM`` of transformers, asked for yes or no.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tiewise.adapters.last_layer import LastLayer
from tiewise.adapters.protocol_models.text_collections import reaching_the_hub
from tiewise.adapters.transformers import QWEN3_RERANKER, Scores, high_precision
from tiewise.errors import InputError
from tiewise.io.compression import PathLike
from tiewise.results.optional import need
from tiewise.results.wording import spell_option

KINDS = ("bi-encoder", "cross-encoder", "classifier", "yes-no")
#: What can be written before or around a text, for each kind.
PROMPTS = {"bi-encoder": ("query", "document"), "yes-no": ("before", "after", "question")}
#: What the hub's repositories hold besides: other formats of the same weights.
NOT_NEEDED = ("*.onnx", "*.onnx_data", "onnx/*", "openvino/*", "*.h5", "*.ot", "*.msgpack", "*.gguf", "*.tflite")


def find_model(name: PathLike, revision: str | None = None) -> tuple[Path, str]:
    """The folder of a model, loaded from the hub if there is none, and its revision: there the commit."""
    if not isinstance(name, (str, os.PathLike)) or not str(name):
        raise InputError(f"Give the model as a folder, or by its name on the Hugging Face hub, not {name!r}.")
    folder = Path(name)
    if folder.is_dir():
        if revision is not None:
            raise InputError(
                f"{name}: is a folder, which has no revision. Leave out {spell_option('revision', revision)}."
            )
        return folder, f"sha256:{_hash_files(folder)}"
    if folder.is_absolute() or str(name).count("/") > 1 or str(name).startswith("."):
        raise InputError(f"{name}: there is no such folder. Give one, or the name of a model of the hub.")
    hub = need("huggingface_hub", "A model of the hub", "transformers")
    with reaching_the_hub(str(name), "model"):
        snapshot = Path(hub.snapshot_download(str(name), revision=revision, ignore_patterns=list(NOT_NEEDED)))
    return snapshot, snapshot.name


def _hash_files(folder: Path) -> str:
    """The SHA-256 of the files of a model, by which another model in the same folder is noticed."""
    hashed = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            hashed.update(f"{path.relative_to(folder).as_posix()} {path.stat().st_size}\n".encode())
            with path.open("rb") as file:
                while chunk := file.read(1 << 20):
                    hashed.update(chunk)
    return hashed.hexdigest()


def find_kind(folder: Path, name: PathLike) -> str:
    """The kind of the model of a folder, from its configuration."""
    modules, config = _read_json(folder / "modules.json"), _read_json(folder / "config.json")
    if (_read_json(folder / "config_sentence_transformers.json") or {}).get("model_type") == "CrossEncoder":
        return "cross-encoder"
    if modules is not None:
        return "bi-encoder"
    if config is None:
        raise InputError(f"{name}: holds neither config.json nor modules.json, so it is not a model that can be run.")
    if "sentence_transformers" in config:  # a CrossEncoder of 5.3 or before
        return "cross-encoder"
    classes = [str(one) for one in config.get("architectures") or []]
    for kind, ending in (("classifier", "ForSequenceClassification"), ("yes-no", "ForCausalLM")):
        if any(one.endswith(ending) for one in classes):
            return kind
    known = " or ".join(spell_option("kind", kind) for kind in KINDS[:2])
    raise InputError(
        f"{name}: its kind cannot be told from {', '.join(classes) or 'config.json'}. Say it: {known}, say."
    )


def takes_instruction(kind: str, folder: Path, prompts: Mapping[str, str] | None) -> bool:
    """Whether a model is told an instruction: a bi-encoder, where a prompt has a place for it."""
    if kind != "bi-encoder":
        return kind != "classifier"
    own = (_read_json(folder / "config_sentence_transformers.json") or {}).get("prompts") or {}
    used = {**own, **(prompts or {})}
    return any("{instruction}" in (used.get(role) or "") for role in PROMPTS[kind])


def check_told(kind: str, folder: Path, prompts: Mapping[str, str] | None, **told: str | None) -> None:
    """Require that a model uses what it is told: prompts, an `instruction`, and the words `yes` and `no`."""
    known = PROMPTS.get(kind, ())
    for role in prompts or ():
        if role not in known:
            which = f"those of a {kind} are {', '.join(known)}" if known else f"a {kind} has none"
            raise InputError(f"There is no prompt '{role}': {which}.")
    instruction = told.pop("instruction")
    if instruction is not None and not takes_instruction(kind, folder, prompts):
        where = "" if kind == "classifier" else " without {instruction} in a prompt"
        raise InputError(
            f"{spell_option('instruction', instruction)}: a {kind}{where} does not use it. A cross-encoder and a "
            "yes-no model do, and a bi-encoder where a prompt has {instruction}."
        )
    for name, word in told.items():
        if word is not None and kind != "yes-no":
            raise InputError(f"{spell_option(name, word)}: a {kind} does not use it. Only a yes-no model does.")


def _read_json(path: Path) -> Any:
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise InputError(f"{path}: is not JSON. Save or download the model again.") from None


@dataclass(frozen=True)
class Loader:
    """How a model is loaded, and what it is told besides the texts."""

    name: str
    folder: Path
    kind: str
    device: str
    instruction: str | None = None
    prompts: Mapping[str, str] | None = None
    max_length: int | None = None
    batch_size: int = 16
    yes: str = QWEN3_RERANKER.yes
    no: str = QWEN3_RERANKER.no
    trust_remote_code: bool = False

    @property
    def is_reranker(self) -> bool:
        """Whether it scores pairs, not texts."""
        return self.kind != "bi-encoder"

    @property
    def fn(self) -> str:
        """The score function that a bi-encoder was made for."""
        config = _read_json(self.folder / "config_sentence_transformers.json") or {}
        found = str(config.get("similarity_fn_name") or "cosine")
        if found not in ("cosine", "dot", "euclidean"):
            raise InputError(f"{self.name}: compares vectors by {found}. Supported are cosine, dot and euclidean.")
        return found

    def encoder(self, dtype: str) -> Callable[[Sequence[str], str], Any]:
        """A bi-encoder in a type: vectors of the texts of a role, query or document, in the model's own type."""
        model = self._load_sentence_transformers("SentenceTransformer", dtype)
        if self.max_length is not None and getattr(model, "max_seq_length", None):
            model.max_seq_length = min(self.max_length, model.max_seq_length)
        prompts = {**(getattr(model, "prompts", None) or {}), **(self.prompts or {})}
        options = {"batch_size": self.batch_size, "convert_to_tensor": True, "show_progress_bar": False}

        def encode(texts: Sequence[str], role: str) -> Any:
            prompt = (prompts.get(role) or "").replace("{instruction}", self.instruction or "")
            return model.encode(list(texts), prompt=prompt, **options)

        return encode

    def reranker(self, dtype: str) -> tuple[Callable[[Sequence[tuple[str, str]]], Scores], LastLayer]:
        """A reranker in a type: scores of pairs, with the logits and hidden states behind them, and its last layer."""
        options: dict[str, Any] = {"batch_size": self.batch_size, "keep": True}
        if self.kind != "classifier":
            options["instruction"] = self.instruction
        if self.kind == "cross-encoder":
            from tiewise.adapters.sentence_transformers import high_precision as view_of

            model = self._load_sentence_transformers("CrossEncoder", dtype)
            if self.max_length is not None:
                model.max_length = self.max_length
            view = view_of(model)
            return partial(view.scores, **options), view._last_layer()
        torch, library = (need(name, "Running a model", "transformers") for name in ("torch", "transformers"))
        kind = library.AutoModelForCausalLM if self.kind == "yes-no" else library.AutoModelForSequenceClassification
        with _loading(self.name):
            tokenizer = library.AutoTokenizer.from_pretrained(self.folder, trust_remote_code=self.trust_remote_code)
            model = kind.from_pretrained(
                self.folder, dtype=getattr(torch, dtype), trust_remote_code=self.trust_remote_code
            )
        prompt = QWEN3_RERANKER
        if self.kind == "yes-no":
            prompt = replace(prompt, yes=self.yes, no=self.no, **(self.prompts or {}))
        limits = self.max_length, getattr(tokenizer, "model_max_length", None)
        max_length = min((limit for limit in limits if limit is not None), default=None)
        found = high_precision(model.to(self.device).eval(), tokenizer, max_length=max_length, prompt=prompt)
        return partial(found.predict, **options), found.layer

    def _load_sentence_transformers(self, kind: str, dtype: str) -> Any:
        library = need("sentence_transformers", "Running a model", "sentence-transformers")
        torch = need("torch", "Running a model", "transformers")
        with _loading(self.name):
            model = getattr(library, kind)(
                str(self.folder),
                device=self.device,
                model_kwargs={"dtype": getattr(torch, dtype)},
                trust_remote_code=self.trust_remote_code,
            )
        for module in model:
            if type(module).__name__ == "StaticEmbedding":  # it is loaded in the type of its file
                module.to(getattr(torch, dtype))
        return model


@contextmanager
def _loading(name: str) -> Iterator[None]:
    """A model that cannot be loaded is an error in one line."""
    try:
        yield
    except Exception as error:  # the libraries raise anything for a damaged or unknown model
        said = " ".join(str(error).split())
        raise InputError(f"{name}: the model cannot be loaded ({type(error).__name__}: {said[:200]}).") from None
