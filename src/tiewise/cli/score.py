"""``tiewise score``: from logits, hidden states or embeddings in files to a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from tiewise.cli.arrays import ROLES, Arrays, Ids
from tiewise.cli.inputs import heeded
from tiewise.cli.options import MEASURES, QUERIES, Output, Quiet
from tiewise.cli.output import note
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io import write_run
from tiewise.output.paths import check_writable
from tiewise.tables.wording import format_percent

__all__ = ["EXAMPLES", "score"]

EXAMPLES = (
    "Examples\n\n"
    "  tiewise score embeddings.safetensors --fn cosine -k 100 -o run.trec.gz\n\n"
    "  tiewise score reranker.npz --level head -o run.trec\n\n"
    "  tiewise score reranker.npz --array logits=bf16_logits --precision native | tiewise audit -\n\n"
    "  tiewise score tokens.npz --fn maxsim --query-ids queries.txt --doc-ids docs.txt -o run.trec"
)

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
ArrayNames = Annotated[
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
    array: ArrayNames = None,
    query_ids: QueryIds = None,
    doc_ids: DocIds = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Make a run from what a model left: embeddings, logits, or hidden states and the weights of the last layer.

    The last step is computed in float32, whatever the model's own type; --precision native shows what it costs not to.

    Where files hold vectors and logits, --fn, --level or --array says which of them to score.
    """
    from tiewise.output.progress import progress

    check_writable("-" if output is None else output)
    found = Arrays(files, array or ())
    ids = Ids(found, {"--query-ids": query_ids, "--doc-ids": doc_ids})
    with heeded() as warned, progress("pairs", quiet=quiet) as tell:
        if _are_vectors(found, fn, level):
            if positive is not None:
                raise InputError(f"--positive {positive} chooses among logits. Vectors have none: leave it out.")
            run = _searched(found, ids, fn or "dot", level, precision, k or USUAL_DEPTH, tell)
        else:
            if k is not None:
                raise InputError(f"--depth {k} is for vectors, which are searched. All pairs with logits are kept.")
            run = _classified(found, ids, fn, level, precision, positive)
    if not len(run):
        raise InputError(f"There is nothing to rank: {found.empty()} has no rows.")
    write_run(run, "-" if output is None else output)
    if not quiet:
        note(*warned, *ids.notes(), f"{format_percent(run.tied_share)} of {len(run):,} rows are tied.")


def _are_vectors(found: Arrays, fn: str | None, level: str | None) -> bool:
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


def _searched(found: Arrays, ids: Ids, fn: str, level: str | None, precision: str, k: int, tell: Any) -> Run:
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
    found: Arrays, ids: Ids, fn: str | None, level: str | None, precision: str, positive: int | None
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
