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
    "  tiewise score reranker.npz --array logits=bf16_logits --precision native | tiewise audit -"
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
}

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
    int, typer.Option(metavar="N", min=0, help="Which of several logits means relevant.", rich_help_panel=MEASURES)
]
Depth = Annotated[
    int,
    typer.Option(
        "--depth",
        "-k",
        metavar="N",
        min=1,
        help="Of vectors: so many best documents a query, and all that tie with the last.",
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
        help="Names of queries, a line for each row of the vectors.",
        show_default="0, 1, 2 ...",
        rich_help_panel=QUERIES,
    ),
]
DocIds = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Names of documents, likewise; of logits, a line for each pair.",
        show_default="0, 1, 2 ...",
        rich_help_panel=QUERIES,
    ),
]


def score(
    files: TensorFiles,
    fn: Function = None,
    level: ScoreLevel = None,
    precision: Precision = "float32",
    positive: Positive = 1,
    k: Depth = 100,
    array: Arrays = None,
    query_ids: QueryIds = None,
    doc_ids: DocIds = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Make a run from what a model left: embeddings, logits, or hidden states and the weights of the last layer.

    The last step is computed in float32, whatever the model's own type; --precision native shows what it costs not to.
    """
    from tiewise.reporting.progress import progress

    found = _Arrays(files, array or ())
    names = {"query_ids": query_ids, "doc_ids": doc_ids}
    given = {role: _lines(path) for role, path in names.items() if path is not None}
    with heeded() as warned, progress("pairs", quiet=quiet) as tell:
        if "queries" in found or "docs" in found:
            run = _searched(found, given, fn or "dot", level, precision, k, tell)
        else:
            run = _classified(found, given, fn, level, precision, positive)
    write_run(run, "-" if output is None else output)
    if not quiet:
        note(*warned, f"{share(run.tied_share)} of {len(run):,} rows are tied.")


class _Arrays(Mapping[str, "NDArray[Any]"]):
    """The arrays of some files by their role."""

    def __init__(self, files: Iterable[Path], renamed: Iterable[str]):
        self._arrays: dict[str, Any] = {}
        for path in files:
            for name, one in read_tensors(path).items():
                if name in self._arrays:
                    raise InputError(f"{path}: an array '{name}' was in another file already. Name them apart.")
                self._arrays[name] = one
        self._names = {role: role for role in ROLES if role in self._arrays}
        for text in renamed:
            role, _, name = text.partition("=")
            if role not in ROLES or not name:
                raise InputError(f"--array {text}: say ROLE=NAME, with one of the roles {', '.join(ROLES)}.")
            if name not in self._arrays:
                raise InputError(f"There is no array '{name}'. There are: {listed(self._arrays, most=20)}.")
            self._names[role] = name

    def __getitem__(self, role: str) -> Any:
        return self._arrays[self._names[role]]

    def __iter__(self) -> Any:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def need(self, *roles: str) -> list[Any]:
        """Some arrays, or an error that says which is missing."""
        for role in roles:
            if role not in self:
                there = f"There are: {listed(self._arrays, most=20)}. Say which it is: --array {role}=NAME."
                raise InputError(f"There is no array '{role}' ({ROLES[role]}). {there}")
        return [self[role] for role in roles]


def _searched(
    found: _Arrays, given: Mapping[str, list[str]], fn: str, level: str | None, precision: str, k: int, tell: Any
) -> Run:
    from tiewise import scoring

    if level not in (None, "score"):
        raise InputError(f"Vectors have no level '{level}': that is for logits and hidden states.")
    queries, docs = found.need("queries", "docs")
    query_ids, doc_ids = (given.get(role, found.get(role)) for role in ("query_ids", "doc_ids"))
    options: dict[str, Any] = {"fn": fn, "precision": precision, "progress": tell}
    return scoring.search(queries, docs, k, query_ids=query_ids, doc_ids=doc_ids, **options)


def _classified(
    found: _Arrays, given: Mapping[str, list[str]], fn: str | None, level: str | None, precision: str, positive: int
) -> Run:
    from tiewise import scoring

    level = level or ("head" if "hidden" in found else "score")
    if level == "head":
        hidden, weight = found.need("hidden", "weight")
        logits = scoring.head(hidden, weight, found.get("bias"), precision=precision)
    else:
        (logits,) = found.need("logits")
    logits = logits[:, 0] if logits.ndim == 2 and logits.shape[1] == 1 else logits
    fn = fn or ("softmax" if logits.ndim == 2 else "sigmoid")
    if fn == "sigmoid" and logits.ndim != 1:
        raise InputError(f"Logits of shape {logits.shape} are of several classes: use --fn softmax.")
    compute = scoring.score if level == "score" else scoring.logit
    values = compute(logits, fn=fn, positive=positive, precision=precision)
    (query,) = found.need("query")
    docs = given.get("doc_ids", found.get("doc", np.arange(len(values))))
    return Run.from_columns(query, docs, np.asarray(values, dtype=np.float64))


def _lines(path: Path) -> list[str]:
    with opened(path) as stream:
        try:
            return stream.read().decode().splitlines()
        except UnicodeDecodeError:
            raise InputError(f"{path}: is not UTF-8 text.") from None
