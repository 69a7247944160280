"""``tiewise score``: a run from logits, hidden states or embeddings in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

import tiewise as tw
from tiewise import scoring
from tiewise.cli import options
from tiewise.cli.arrays import ROLES, Arrays, numbered_note
from tiewise.cli.command import INPUT, NOT_NEGATIVE, SCORES, argument, command, option
from tiewise.cli.inputs import collect_warnings
from tiewise.cli.program import print_note
from tiewise.cli.progress import progress
from tiewise.errors import InputError
from tiewise.results.wording import format_percent

EXAMPLES = (
    "tiewise score embeddings.safetensors --fn cosine -k 100 -o run.trec.gz",
    "tiewise score reranker.npz --level head -o run.trec",
    "tiewise score logits.npz --precision native | tiewise audit -",
    "tiewise score tokens.npz --fn maxsim --query-ids queries.txt -o run.trec",
)

#: What can be scored: vectors, or pairs by their logits. And all roles that belong to vectors.
VECTORS, LOGITS = {"queries", "docs"}, {"logits", "hidden"}
VECTOR_ROLES = {*VECTORS, "query_ids", "doc_ids", "query_mask", "doc_mask"}

ACTIVATIONS = ("sigmoid", "softmax")
DEFAULT_K = 100


@command("score", Arrays, examples=EXAMPLES)
@argument("FILE...", "Files with named arrays: .npz, .safetensors or .npy.", into="files")
@option(
    "--fn NAME",
    SCORES,
    "The score function: sigmoid or softmax of logits; dot, cosine, euclidean, maxsim or hamming of vectors.",
    type=click.Choice([*ACTIVATIONS, "dot", "cosine", "euclidean", "maxsim", "hamming"]),
    default_note="dot for vectors, softmax for two or more logits, else sigmoid",
)
@option(
    "--level score|logit|head",
    SCORES,
    "Rank by the score function, by the logit, or by logits computed again from hidden states (head).",
    default_note="head if there are hidden states, else score",
)
@option(
    "--precision TYPE",
    SCORES,
    "Compute in float32, float64, or native: the type of the arrays.",
    type=click.Choice(["float32", "float64", "native"]),
    default="float32",
)
@option(
    "--positive N",
    SCORES,
    "The logit that means relevant, if there are several, counted from 0.",
    type=NOT_NEGATIVE,
    default_note="1, the second",
)
@option(
    "-k, --top-k N",
    INPUT,
    "For vectors: retrieve the N best documents of each query, and all that tie with the last.",
    into="k",
    default_note=str(DEFAULT_K),
)
@option(
    "--array ROLE=NAME",
    INPUT,
    f"The name of an array in the files, if it differs from its role: {', '.join(ROLES)}.",
    into="renamed",
    multiple=True,
)
@option(
    "--query-ids FILE",
    INPUT,
    "Ids of queries, one line for each row of the vectors; for logits, the query of each pair.",
    default_note="the array query_ids, else 0, 1, 2 ...; for logits, the array query",
)
@option(
    "--doc-ids FILE",
    INPUT,
    "Ids of documents, one line for each row of the vectors; for logits, the document of each pair.",
    default_note="the array doc_ids (for logits, doc), else 0, 1, 2 ...",
)
@options.output_path()
@options.quiet
def score(
    arrays: Arrays,
    *,
    fn: str | None,
    level: str | None,
    precision: Any,
    positive: int | None,
    k: int | None,
    path: Path,
    quiet: bool,
) -> None:
    """Make a run from embeddings, from logits, or from hidden states and the weights of the last layer.

    The last step is computed in float32, whatever the type of the arrays. --precision native shows the cost of not
    doing so.

    If the files hold vectors and logits, --fn, --level or --array says which of them to score.
    """
    with collect_warnings() as warned, progress("pairs", quiet=quiet) as callback:
        if _are_vectors(arrays, fn, level):
            if positive is not None:
                raise InputError(f"--positive {positive} chooses a logit, but vectors have none. Omit it.")
            run = _score_vectors(arrays, fn or "dot", level, precision, k or DEFAULT_K, callback)
        else:
            if k is not None:
                raise InputError(f"--top-k {k} is for vectors. All pairs with logits are kept: omit it.")
            run = _score_pairs(arrays, fn, level, precision, positive)
    if not len(run):
        raise InputError(f"There is nothing to rank: {arrays.first_empty()} has no rows.")
    tw.write_run(run, path)
    if not quiet:
        tied = f"{format_percent(run.tied_share)} of {len(run):,} rows are tied."
        if run.complete_lists is not None and run.complete_lists.all():
            tied += " No list is cut inside a tie group: evaluate with --complete."
        print_note(*warned, *numbered_note(arrays.numbered), tied)


def _are_vectors(arrays: Arrays, fn: str | None, level: str | None) -> bool:
    """Whether to score vectors, else pairs by their logits: by the arrays, or, if there are both, by the options."""
    vectors, pairs = not VECTORS.isdisjoint(arrays), not LOGITS.isdisjoint(arrays)
    if vectors != pairs:
        return vectors
    if fn is not None:
        return fn not in ACTIVATIONS
    if level in ("logit", "head"):
        return False
    named = {text.partition("=")[0] in VECTOR_ROLES for text in arrays.renamed}
    if vectors and len(named) == 1:
        return named.pop()
    if vectors:
        raise InputError(
            f"There are vectors ({arrays.names_of(VECTORS)}) and logits ({arrays.names_of(LOGITS)}). Choose: --fn dot, "
            "cosine ... for the vectors; --fn sigmoid or softmax, or --level logit or head, for the logits."
        )
    raise InputError(
        "There is nothing to score: neither 'queries' and 'docs', nor 'logits', nor 'hidden' and 'weight'. The files "
        f"hold {arrays.all_names()}. Give the names with --array ROLE=NAME."
    )


def _score_vectors(arrays: Arrays, fn: str, level: str | None, precision: Any, k: int, callback: Any) -> tw.Run:
    if level not in (None, "score"):
        raise InputError(f"--level {level} is for logits and hidden states, not for vectors.")
    if fn in ACTIVATIONS:
        arrays.require("logits", why=f", which --fn {fn} needs", instead=", or hidden and weight")
    arrays.require("queries", "docs", why=f", which --fn {fn} needs")
    masks = {role: arrays[role] for role in ("query_mask", "doc_mask") if role in arrays}
    if masks and fn != "maxsim":
        mask = arrays.location(next(iter(masks)))
        raise InputError(f"{mask} is a mask of tokens, for --fn maxsim; --fn {fn} has one vector a row.")
    queries, docs = arrays.require_finite("queries", "docs")
    settings: dict[str, Any] = {"fn": fn, "precision": precision, "progress": callback, **masks}
    if queries.ndim and docs.ndim:
        settings["query_ids"] = arrays.ids("query_ids", len(queries), "queries")
        settings["doc_ids"] = arrays.ids("doc_ids", len(docs), "documents")
    return scoring.search(queries, docs, k, **settings)


def _score_pairs(arrays: Arrays, fn: str | None, level: str | None, precision: Any, positive: int | None) -> tw.Run:
    if fn not in (None, *ACTIVATIONS):
        arrays.require("queries", "docs", why=f", which --fn {fn} needs")
    level = level or ("head" if "hidden" in arrays else "score")
    if level == "head":
        arrays.require("hidden", "weight", why=", which --level head needs")
        hidden, weight = arrays.require_finite("hidden", "weight")
        bias = arrays.require_finite("bias")[0] if "bias" in arrays else None
        wide = precision if precision == "native" else "float64"  # log-odds are rounded, not logits
        logits = scoring.head(hidden, weight, bias, precision=wide)
    else:
        arrays.require("logits")
        (logits,) = arrays.require_finite("logits")
    logits, fn, positive = _check_classes(logits, fn, positive)
    compute = scoring.score if level == "score" else scoring.logit
    values = compute(logits, fn=fn, positive=positive, precision=precision)
    arrays.require_ids("query")
    query, docs = (arrays.ids(role, len(values), "pairs") for role in ("query", "doc"))
    docs = np.arange(len(values)) if docs is None else docs
    return tw.Run.from_columns(query, docs, np.asarray(values, dtype=np.float64))


def _check_classes(logits: Any, fn: str | None, positive: int | None) -> tuple[Any, Any, int]:
    """Logits, one or more a row, their function, and the class that means relevant."""
    if logits.ndim not in (1, 2):
        raise InputError(f"Logits of shape {logits.shape} are not (rows,) or (rows, classes).")
    logits = logits[:, 0] if logits.ndim == 2 and logits.shape[1] == 1 else logits
    several = logits.ndim == 2
    if fn is not None and (fn == "softmax") != several:
        how = "several classes: use --fn softmax" if several else "one class: use --fn sigmoid"
        raise InputError(f"Logits of shape {logits.shape} have {how}.")
    if positive is not None and not several:
        raise InputError(f"--positive {positive} chooses among several logits, but there is one a row. Omit it.")
    if positive is not None and positive >= logits.shape[1]:
        raise InputError(f"--positive {positive}: the logits have {logits.shape[1]} classes, counted from 0.")
    return logits, "softmax" if several else "sigmoid", 1 if positive is None else positive
