"""``tiewise score``: from logits, hidden states or embeddings in files to a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from tiewise.cli.inputs import heeded
from tiewise.cli.options import MEASURES, QUERIES, Output, Quiet
from tiewise.cli.output import note
from tiewise.data import Run
from tiewise.errors import InputError, listed
from tiewise.io import write_run
from tiewise.io.streams import opened
from tiewise.io.tensors import read_tensors
from tiewise.reporting.numerals import share

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EXAMPLES", "score"]

EXAMPLES = (
    "Examples\n\n"
    "  tiewise score embeddings.safetensors --fn cosine -k 100 -o run.trec.gz\n\n"
    "  tiewise score reranker.npz --level head -o run.trec\n\n"
    "  tiewise score reranker.npz --array logits=bf16_logits --precision native | tiewise audit -\n\n"
    "  tiewise score tokens.npz --fn maxsim --query-ids queries.txt --doc-ids docs.txt -o run.trec"
)

#: What arrays are for, by the name that they have unless --array says another.
ROLES = {
    "queries": "vectors of queries",
    "docs": "vectors of documents",
    "logits": "logits, a row for each pair of query and document",
    "hidden": "hidden states, a row for each pair",
    "weight": "weights of the last layer, a row for each class",
    "bias": "biases of the last layer",
    "query": "the query of each row",
    "doc": "the document of each row",
    "query_ids": "names of the rows of queries",
    "doc_ids": "names of the rows of docs",
    "query_mask": "which tokens of queries count",
    "doc_mask": "which tokens of docs count",
}

#: What there is to score, of two kinds, and all roles that go with the first.
VECTORS, LOGITS = {"queries", "docs"}, {"logits", "hidden"}
BESIDE_VECTORS = {*VECTORS, "query_ids", "doc_ids", "query_mask", "doc_mask"}

ACTIVATIONS = ("sigmoid", "softmax")
USUAL_DEPTH = 100

Functions = Literal["sigmoid", "softmax", "dot", "cosine", "euclidean", "maxsim", "hamming"]

TensorFiles = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Files with arrays by name: .npz, .safetensors or .npy.")
]
Function = Annotated[
    Functions | None,
    typer.Option(
        help="The score function: sigmoid or softmax of logits; dot, cosine, euclidean, maxsim or hamming of vectors.",
        show_default="dot for vectors, softmax for two logits or more, else sigmoid",
        rich_help_panel=MEASURES,
    ),
]
ScoreLevel = Annotated[
    Literal["score", "logit", "head"] | None,
    typer.Option(
        help="What to rank by: the score function, the logit itself, or logits computed again from hidden states.",
        show_default="head where there are hidden states, else score",
        rich_help_panel=MEASURES,
    ),
]
Precision = Annotated[
    Literal["float32", "float64", "native"],
    typer.Option(help="Compute in this type; native is that of the arrays.", rich_help_panel=MEASURES),
]
Positive = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="Which of several logits means relevant, counted from 0.",
        show_default="1, the second",
        rich_help_panel=MEASURES,
    ),
]
Depth = Annotated[
    int | None,
    typer.Option(
        "--depth",
        "-k",
        metavar="N",
        min=1,
        help="Of vectors: so many best documents a query, and all that tie with the last.",
        show_default=f"{USUAL_DEPTH}",
        rich_help_panel=QUERIES,
    ),
]
Arrays = Annotated[
    list[str] | None,
    typer.Option(
        "--array",
        metavar="ROLE=NAME",
        help=f"The name of an array in the files, where it is not that of its role: {', '.join(ROLES)}. Repeatable.",
        rich_help_panel=QUERIES,
    ),
]
QueryIds = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Names of queries, a line for each row of the vectors; of logits, the query of each pair.",
        show_default="the array query_ids, else 0, 1, 2 ...; of logits, the array query",
        rich_help_panel=QUERIES,
    ),
]
DocIds = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Names of documents, likewise; of logits, the document of each pair.",
        show_default="the array doc_ids (of logits, doc), else 0, 1, 2 ...",
        rich_help_panel=QUERIES,
    ),
]


def score(
    files: TensorFiles,
    fn: Function = None,
    level: ScoreLevel = None,
    precision: Precision = "float32",
    positive: Positive = None,
    k: Depth = None,
    array: Arrays = None,
    query_ids: QueryIds = None,
    doc_ids: DocIds = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Make a run from what a model left: embeddings, logits, or hidden states and the weights of the last layer.

    The last step is computed in float32, whatever the model's own type; --precision native shows what it costs not to.

    Where files hold vectors and logits, --fn, --level or --array says which of them to score.
    """
    from tiewise.reporting.progress import progress

    found = _Arrays(files, array or ())
    ids = _Ids(found, {"--query-ids": query_ids, "--doc-ids": doc_ids})
    with heeded() as warned, progress("pairs", quiet=quiet) as tell:
        if _are_vectors(found, fn, level):
            if positive is not None:
                raise InputError(f"--positive {positive} chooses among logits. Vectors have none: leave it out.")
            run = _searched(found, ids, fn or "dot", level, precision, k or USUAL_DEPTH, tell)
        else:
            if k is not None:
                raise InputError(f"--depth {k} is for vectors, which are searched. All pairs with logits are kept.")
            run = _classified(found, ids, fn, level, precision, positive)
    write_run(run, "-" if output is None else output)
    if not quiet:
        note(*warned, *ids.notes(), f"{share(run.tied_share)} of {len(run):,} rows are tied.")


def _are_vectors(found: _Arrays, fn: str | None, level: str | None) -> bool:
    """Whether to compare vectors, or else to score pairs by their logits: by what there is, or by what was asked."""
    vectors, pairs = not VECTORS.isdisjoint(found), not LOGITS.isdisjoint(found)
    if vectors != pairs:
        return vectors
    if fn is not None:
        return fn not in ACTIVATIONS
    if level in ("logit", "head"):
        return False
    named = {role in BESIDE_VECTORS for role in found.named}
    if vectors and len(named) == 1:
        return named.pop()
    if vectors:
        raise InputError(
            f"There are vectors ({found.listed(VECTORS)}) and logits ({found.listed(LOGITS)}). Say which to score: "
            "--fn dot, cosine … for the vectors; --fn sigmoid or softmax, or --level logit or head, for the others."
        )
    raise InputError(
        "There is nothing to score: neither 'queries' and 'docs', nor 'logits', nor 'hidden' and 'weight'. There are: "
        f"{found.all()}. Say which is which: --array ROLE=NAME."
    )


class _Arrays(Mapping[str, "NDArray[Any]"]):
    """The arrays of some files by their role."""

    def __init__(self, files: Iterable[Path], renamed: Iterable[str]):
        self._arrays: dict[str, Any] = {}
        self._files: dict[str, Path] = {}
        for path in files:
            for name, one in read_tensors(path).items():
                if name in self._arrays:
                    raise InputError(f"{path}: an array '{name}' was in another file already. Name them apart.")
                self._arrays[name], self._files[name] = one, path
        self._names = {role: role for role in ROLES if role in self._arrays}
        self.named: set[str] = set()  # the roles that --array gave
        for text in renamed:
            role, _, name = text.partition("=")
            if role not in ROLES or not name:
                raise InputError(f"--array {text}: say ROLE=NAME, with one of the roles {', '.join(ROLES)}.")
            if name not in self._arrays:
                raise InputError(f"There is no array '{name}'. There are: {self.all()}.")
            self._names[role] = name
            self.named.add(role)

    def __getitem__(self, role: str) -> Any:
        return self._arrays[self._names[role]]

    def __iter__(self) -> Any:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def all(self) -> str:
        """The names of all arrays, for a message."""
        return listed(self._arrays, most=20)

    def listed(self, roles: Iterable[str]) -> str:
        """The names of the arrays that have one of some roles, for a message."""
        return listed(self._names[role] for role in ROLES if role in roles and role in self)

    def where(self, role: str) -> str:
        """The file and the name of an array, for a message."""
        return f"{self._files[self._names[role]]}: '{self._names[role]}'"

    def need(self, *roles: str, why: str = "", instead: str = "") -> list[Any]:
        """Some arrays, or an error that says which is missing; `why` it is needed, and what there is `instead`."""
        for role in roles:
            if role not in self:
                there = f"There are: {self.all()}. Say which it is: --array {role}=NAME{instead}."
                raise InputError(f"There is no array '{role}' ({ROLES[role]}){why}. {there}")
        return [self[role] for role in roles]

    def finite(self, *roles: str) -> list[Any]:
        """Some arrays of numbers, or an error that says where one holds what has no rank."""
        for role in roles:
            rows, bad = len(self[role]) if self[role].ndim else 0, _not_finite(self[role])
            if len(bad):
                many = f"{len(bad):,} of {rows:,} rows"
                raise InputError(
                    f"{self.where(role)} holds NaN or infinity in row {bad[0]}, counted from 0 ({many}). Such a row "
                    "has no score: leave it out, or run the model in a wider type if its own overflowed (float16 ends "
                    "at 65,504)."
                )
        return [self[role] for role in roles]


def _not_finite(array: NDArray[Any]) -> NDArray[Any]:
    """The rows that hold NaN or infinity, looked for a block at a time."""
    if array.dtype.kind in "biuSUO" or not array.ndim:
        return np.zeros(0, dtype=np.int64)
    step = max(1, 2**24 // max(1, int(np.prod(array.shape[1:]))))
    blocks = [array[at : at + step] for at in range(0, len(array), step)]
    bad = [~np.isfinite(block).reshape(len(block), -1).all(1) for block in blocks]
    return np.flatnonzero(np.concatenate(bad)) if bad else np.zeros(0, dtype=np.int64)


class _Ids:
    """The ids of rows: the lines of a file, an array, or else counted, which a note says."""

    def __init__(self, found: _Arrays, files: Mapping[str, Path | None]):
        self._found, self._files = found, files
        self._counted: list[tuple[str, str, str]] = []  # what, and the option and the array that would name it

    def of(self, what: str, option: str, role: str, rows: int, each: str) -> Any:
        """The ids of so many rows, each of them a query, a document or a pair; None where they are counted."""
        path = self._files[option]
        if path is not None:
            return _checked(_lines(path), rows, f"{path}: holds {{}} lines", each)
        if role in self._found:
            return _checked(self._found[role], rows, f"{self._found.where(role)} holds {{}} ids", each)
        self._counted.append((what, option, role))
        return None

    def given(self, option: str) -> bool:
        """Whether a file of ids was given."""
        return self._files[option] is not None

    def notes(self) -> list[str]:
        """Which ids were counted, and how to name them."""
        if not self._counted:
            return []
        whats, options, roles = (" and ".join(parts) for parts in zip(*self._counted, strict=True))
        arrays = "an array" if len(self._counted) == 1 else "arrays"
        return [f"The {whats} are counted 0, 1, 2 ... Name them with {options}, or in {arrays} {roles}."]


def _checked(ids: Any, rows: int, found: str, each: str) -> Any:
    if np.ndim(ids) != 1 or len(ids) != rows:
        raise InputError(f"{found.format(f'{np.size(ids):,}')} for {rows:,} {each}. Give one for each.")
    return ids


def _searched(found: _Arrays, ids: _Ids, fn: str, level: str | None, precision: str, k: int, tell: Any) -> Run:
    from tiewise import scoring

    if level not in (None, "score"):
        raise InputError(f"Vectors have no level '{level}': that is for logits and hidden states.")
    if fn in ACTIVATIONS:
        found.need("logits", why=f", of which --fn {fn} is a function", instead=", or hidden and weight")
    found.need("queries", "docs", why=f", which --fn {fn} needs")
    masks = {role: found[role] for role in ("query_mask", "doc_mask") if role in found}
    if masks and fn != "maxsim":
        mask = found.where(next(iter(masks)))
        raise InputError(f"{mask} is a mask of tokens, for --fn maxsim; --fn {fn} has one vector a row.")
    queries, docs = found.finite("queries", "docs")
    options: dict[str, Any] = {"fn": fn, "precision": precision, "progress": tell, **masks}
    if queries.ndim and docs.ndim:
        options["query_ids"] = ids.of("queries", "--query-ids", "query_ids", len(queries), "queries")
        options["doc_ids"] = ids.of("documents", "--doc-ids", "doc_ids", len(docs), "documents")
    return scoring.search(queries, docs, k, **options)


def _classified(
    found: _Arrays, ids: _Ids, fn: str | None, level: str | None, precision: str, positive: int | None
) -> Run:
    from tiewise import scoring

    if fn not in (None, *ACTIVATIONS):
        found.need("queries", "docs", why=f", which --fn {fn} compares")
    level = level or ("head" if "hidden" in found else "score")
    if level == "head":
        found.need("hidden", "weight", why=", which --level head needs")
        hidden, weight = found.finite("hidden", "weight")
        bias = found.finite("bias")[0] if "bias" in found else None
        logits = scoring.head(hidden, weight, bias, precision=precision)
    else:
        found.need("logits")
        (logits,) = found.finite("logits")
    logits, fn, positive = _classes(logits, fn, positive)
    compute = scoring.score if level == "score" else scoring.logit
    values = compute(logits, fn=fn, positive=positive, precision=precision)
    if not ids.given("--query-ids"):
        found.need("query", instead=", or give --query-ids FILE")
    query = ids.of("queries", "--query-ids", "query", len(values), "pairs")
    docs = ids.of("documents", "--doc-ids", "doc", len(values), "pairs")
    docs = np.arange(len(values)) if docs is None else docs
    return Run.from_columns(query, docs, np.asarray(values, dtype=np.float64))


def _classes(logits: Any, fn: str | None, positive: int | None) -> tuple[Any, str, int]:
    """Logits, one or more a row, the function that goes with them, and the class that means relevant."""
    if logits.ndim not in (1, 2):
        raise InputError(f"Logits of shape {logits.shape} are not (rows,) or (rows, classes).")
    logits = logits[:, 0] if logits.ndim == 2 and logits.shape[1] == 1 else logits
    several = logits.ndim == 2
    if fn is not None and (fn == "softmax") != several:
        how = "several classes: use --fn softmax" if several else "one class: use --fn sigmoid"
        raise InputError(f"Logits of shape {logits.shape} are of {how}.")
    if positive is not None and not several:
        raise InputError(f"--positive {positive} chooses among several logits, and there is one a row. Leave it out.")
    if positive is not None and positive >= logits.shape[1]:
        raise InputError(f"--positive {positive}: the logits have {logits.shape[1]} classes, counted from 0.")
    return logits, "softmax" if several else "sigmoid", 1 if positive is None else positive


def _lines(path: Path) -> list[str]:
    with opened(path) as stream:
        try:
            return stream.read().decode().splitlines()
        except UnicodeDecodeError:
            raise InputError(f"{path}: is not UTF-8 text.") from None
