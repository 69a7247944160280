"""The paper's five models and two data sets, from the hub, or models and pairs of one's own, from folders and files.

A model is run in float32, float16 and bfloat16 over the candidates of each query; its scores are taken at all levels
and become a `Scored`. Nothing is downloaded that is not named here. Where the hub cannot be reached, `Missing` says
what was asked of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tiewise as tw
from experiments.encoders import embedded, sentence_transformer
from experiments.saved import answerable, needed
from experiments.scored import Missing, Scored, listed
from tiewise import scoring

TYPES = ("float32", "float16", "bfloat16")


# -- models ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """A model of the hub, or a folder, and how it scores a pair."""

    name: str
    kind: str  # "classifier", "yes-no" or "embedding"
    max_length: int = 4096  # as in the paper's Appendix E
    query: str = ""  # what stands before a query; {instruction} is the task's
    document: str = ""
    remote_code: bool = False  # the model's own code, from the hub, has to be run


#: Table 1's models. Prompts are those of the model cards and of MTEB.
MODELS = {
    "Qwen3-Reranker-0.6B": Model("Qwen/Qwen3-Reranker-0.6B", "yes-no"),
    "bge-reranker-v2-m3": Model("BAAI/bge-reranker-v2-m3", "classifier"),
    "gte-multilingual-reranker-base": Model(
        "Alibaba-NLP/gte-multilingual-reranker-base", "classifier", remote_code=True
    ),
    "Qwen3-Embedding-0.6B": Model("Qwen/Qwen3-Embedding-0.6B", "embedding", query="Instruct: {instruction}\nQuery:"),
    "multilingual-e5-large": Model(
        "intfloat/multilingual-e5-large", "embedding", max_length=512, query="query: ", document="passage: "
    ),
}
KINDS = ("classifier", "yes-no", "embedding")


def model_named(name: str, kind: str | None) -> Model:
    """One of the paper's models, by its short name or that of the hub, or any other with its kind.

    >>> model_named("Qwen/Qwen3-Reranker-0.6B", None) is model_named("Qwen3-Reranker-0.6B", None)
    True
    """
    for short, model in MODELS.items():
        if name in (short, model.name):
            return model
    if kind is None:
        raise Missing(f"{name} is none of the paper's models ({', '.join(MODELS)}). Say what it is with --kind")
    return Model(name, kind)


# -- data --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """Queries with their candidates, in the order of the data, and what to tell a model that takes an instruction."""

    name: str
    query: list[str]  # one for each pair
    text: list[tuple[str, str]]  # query and document
    label: list[float]
    instruction: str | None = None

    @classmethod
    def of(cls, name: str, rows: Iterable[tuple[str, Iterable[tuple[str, float]]]], instruction: str | None) -> Pairs:
        """Pairs from queries, each with documents and labels; two rows with one text stay two queries."""
        query, text, label = [], [], []
        for place, (asked, candidates) in enumerate(rows):
            for document, relevant in candidates:
                query.append(str(place))
                text.append((asked, document))
                label.append(float(relevant))
        return cls(name, query, text, label, instruction)

    def first(self, queries: int | None) -> Pairs:
        """The pairs of the first queries alone."""
        if queries is None:
            return self
        kept = [place for place, query in enumerate(self.query) if int(query) < queries]
        query, text, label = ([column[place] for place in kept] for column in (self.query, self.text, self.label))
        return Pairs(self.name, query, text, label, self.instruction)


def askubuntu() -> Pairs:
    """AskUbuntuDupQuestions: 375 queries, positives listed before negatives."""
    rows = load("mteb/askubuntudupquestions-reranking", None, "test")
    return Pairs.of("AskUbuntuDupQuestions", map(judged_row, rows), "Retrieve duplicate questions from AskUbuntu forum")


def judged_row(row: dict[str, Any]) -> tuple[str, list[tuple[str, float]]]:
    """A query with its candidates from the columns ``query``, ``positive`` and ``negative``."""
    return row["query"], [(text, 1.0) for text in row["positive"]] + [(text, 0.0) for text in row["negative"]]


def miracl() -> Pairs:
    """MIRACLReranking, English: 100 candidates for each query.

    The paper's copy (miracl/mmteb-miracl-reranking) is loaded by a script, which `datasets` no longer runs; this is
    MTEB's copy of it, with 787 queries in the place of 799.
    """
    parts = {
        part: load("mteb/MIRACLReranking", f"en-{part}", "dev") for part in ("corpus", "queries", "qrels", "top_ranked")
    }
    documents = {identity(row): f"{row.get('title') or ''} {row['text']}".strip() for row in parts["corpus"]}
    queries = {identity(row): row["text"] for row in parts["queries"]}
    labels = {(str(row["query-id"]), str(row["corpus-id"])): float(row["score"]) for row in parts["qrels"]}

    def rows() -> Iterator[tuple[str, list[tuple[str, float]]]]:
        for row in parts["top_ranked"]:
            query, candidates = str(row["query-id"]), [str(document) for document in row["corpus-ids"]]
            yield queries[query], [(documents[one], labels.get((query, one), 0.0)) for one in candidates]

    instruction = "Given a question, retrieve Wikipedia passages that answer the question"
    return Pairs.of("MIRACLReranking", rows(), instruction)


def identity(row: dict[str, Any]) -> str:
    return str(row["_id"] if "_id" in row else row["id"])


def from_file(path: Path) -> Pairs:
    """Pairs of a file of JSON lines with ``query``, ``positive`` and ``negative``."""
    rows = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines() if text.strip()]
    return Pairs.of(path.stem, map(judged_row, rows), None)


#: Table 1's data sets, with the measures it reports on each.
DATASETS: dict[str, tuple[Callable[[], Pairs], tuple[str, ...]]] = {
    "MIRACLReranking": (miracl, ("nDCG@10", "RR@10")),
    "AskUbuntuDupQuestions": (askubuntu, ("AP@3",)),
}


def data_named(name: str) -> tuple[Pairs, tuple[str, ...]]:
    """One of the paper's data sets, or a file, with the measures to report."""
    if name in DATASETS:
        read, measures = DATASETS[name]
        return read(), measures
    path = Path(name)
    if not path.exists():
        raise Missing(f"{name} is neither one of the paper's data sets ({', '.join(DATASETS)}) nor a file")
    return from_file(path), ("nDCG@10", "RR@10")


def load(name: str, config: str | None, split: str) -> Any:
    """A part of a data set of the hub; where it has one split alone, that one."""
    datasets = needed("datasets")
    with reached(f"the data set {name}" + (f" ({config})" if config else "")):
        splits = datasets.get_dataset_split_names(name, config)
        return datasets.load_dataset(name, config, split=split if split in splits else splits[0])


@contextmanager
def reached(what: str) -> Iterator[None]:
    """Turns what the hub's packages raise when it cannot be reached into `Missing`."""
    try:
        yield
    except (OSError, ValueError) as error:  # no connection, no such repository, or a cache without it
        said = " ".join(str(error).split())
        raise Missing(
            f"{what} could not be loaded from huggingface.co: is there a network, is HF_HUB_OFFLINE unset, is it in "
            f"the cache? ({type(error).__name__}: {said[:200]})"
        ) from error


# -- scores ------------------------------------------------------------------------------------------------------------


def scored(
    model: Model, pairs: Pairs, *, batch: int = 16, device: str | None = None, types: Sequence[str] = TYPES
) -> Scored:
    """The model's runs over the queries that have a relevant candidate and another, in each type and at each level."""
    keep = answerable([int(query) for query in pairs.query], pairs.label)
    wanted = {str(query) for query in keep}
    score = embedding_scores if model.kind == "embedding" else reranker_scores
    runs = {}
    for dtype in types:
        for level, values in score(model, pairs, dtype, batch, device).items():
            if dtype != "float32" or level == "native":
                runs[dtype, level] = tw.Run.from_dict(listed(pairs.query, values, wanted))
    judged = listed(pairs.query, pairs.label, wanted)
    return Scored(Path(model.name).name, pairs.name, judged, runs)


def reranker_scores(model: Model, pairs: Pairs, dtype: str, batch: int, device: str | None) -> dict[str, list[float]]:
    """The scores of a classifier or of a yes/no model at every level, from one pass over the pairs."""
    torch, transformers = needed("torch"), needed("transformers")
    from tiewise.adapters.transformers import high_precision

    kind = "AutoModelForCausalLM" if model.kind == "yes-no" else "AutoModelForSequenceClassification"
    with reached(f"the model {model.name}"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(model.name)
        loaded = getattr(transformers, kind).from_pretrained(
            model.name, dtype=getattr(torch, dtype), trust_remote_code=model.remote_code
        )
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    reranker = high_precision(loaded.to(place), tokenizer, max_length=limit(model, tokenizer))
    asked = {"instruction": pairs.instruction} if model.kind == "yes-no" else {}
    found = reranker.predict(pairs.text, batch_size=batch, **asked)
    return {level: found.at(level).double().tolist() for level in ("native", *scoring.LEVELS)}


def limit(model: Model, tokenizer: Any) -> int:
    """The longest input: the paper's, or what the model can take if that is less."""
    return int(min(model.max_length, getattr(tokenizer, "model_max_length", model.max_length)))


def embedding_scores(model: Model, pairs: Pairs, dtype: str, batch: int, device: str | None) -> dict[str, list[float]]:
    """The cosine of each pair in the model's own type, and as a float32 product; each text is encoded once."""
    with reached(f"the model {model.name}"):
        loaded = sentence_transformer(model.name, dtype, device=device, trust_remote_code=model.remote_code)
    loaded.max_seq_length = min(model.max_length, loaded.max_seq_length or model.max_length)
    before = model.query.format(instruction=pairs.instruction or "")
    queries, documents = (list(dict.fromkeys(side)) for side in zip(*pairs.text, strict=True))
    query_vectors, document_vectors = (
        embedded(loaded, queries, batch, before),
        embedded(loaded, documents, batch, model.document),
    )
    query_at, document_at = ({text: place for place, text in enumerate(side)} for side in (queries, documents))
    found: dict[str, list[float]] = {"native": [], "score": []}
    for query, candidates in by_query(pairs):
        places = [document_at[document] for document in candidates]
        for level, precision in (("native", "native"), ("score", "float32")):
            vectors = query_vectors[query_at[query]], document_vectors[places]
            found[level] += scoring.score(*vectors, fn="cosine", precision=precision).double().tolist()
    return found


def by_query(pairs: Pairs) -> Iterator[tuple[str, list[str]]]:
    """Each query with its candidates, in the order of the pairs."""
    at = 0
    while at < len(pairs.query):
        end = at
        while end < len(pairs.query) and pairs.query[end] == pairs.query[at]:
            end += 1
        yield pairs.text[at][0], [document for _, document in pairs.text[at:end]]
        at = end
