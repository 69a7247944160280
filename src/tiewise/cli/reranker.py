"""``tiewise reranker``: how the last step of a reranker is computed, and what each way costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.arrays import PAIR_ROLES, Arrays
from tiewise.cli.command import INPUT, SCORES, argument, command, option
from tiewise.cli.inputs import collect_warnings
from tiewise.cli.output import Output
from tiewise.cli.precisions import write_precisions

__all__ = ["reranker"]

EXAMPLES = (
    "tiewise reranker qrels.txt reranker.npz --max-loss 0.005",
    "tiewise reranker qrels.txt pairs.npz --array logits=bf16_logits",
    "tiewise reranker qrels.txt pairs.npz head.npz -m RR@10",
)


@command("reranker", examples=EXAMPLES)
@options.qrels
@argument(
    "FILE...",
    "Files with named arrays: .npz, .safetensors or .npy. They hold logits, or hidden and weight, or both.",
    into="files",
    type=options.PATH,
)
@options.precision_trial("RBO")
@option("--row NAME", SCORES, "native, score, logit or head.", into="rows", multiple=True, default_note="all possible")
@option(
    "--positive N",
    SCORES,
    "The logit that means relevant, if there are several, counted from 0.",
    type=options.NOT_NEGATIVE,
    default_note="1, the second",
)
@option(
    "--array ROLE=NAME",
    INPUT,
    f"The name of an array in the files, if it differs from its role: {', '.join(PAIR_ROLES)}. The role reference is "
    "for logits of the model in float32, with which the others are compared.",
    into="renamed",
    multiple=True,
)
@option("--query-ids FILE", INPUT, "The query of each pair, one a line.", type=options.PATH, default_note="array query")
@option("--doc-ids FILE", INPUT, "The document of each pair, one a line.", type=options.PATH, default_note="array doc")
@options.figure("the loss of each row")
@options.output("one object with the list 'rows'")
def reranker(
    qrels: Path,
    files: Sequence[Path],
    *,
    measures: Sequence[str],
    max_loss: float | None,
    phi: float,
    seed: int,
    rows: Sequence[str],
    positive: int | None,
    renamed: Sequence[str],
    query_ids: Path | None,
    doc_ids: Path | None,
    figure: Path | None,
    output: Output,
) -> None:
    """Compare ways to compute the scores of a reranker from its saved logits or hidden states.

    Only the last step is computed again: the activation in the type of the logits (native) or in float32 (score), no
    activation (logit), or the last layer in float32 (head).
    """
    output.check_figure(figure)
    arrays = Arrays(files, renamed, {"--query-ids": query_ids, "--doc-ids": doc_ids}, PAIR_ROLES)
    if "logits" not in arrays and "hidden" not in arrays:
        arrays.require("logits", instead=", or those of hidden and weight")
    given = {
        role: arrays.require_finite(role)[0] for role in PAIR_ROLES if role in arrays and role not in ("query", "doc")
    }
    first = given["logits" if "logits" in given else "hidden"]
    pairs = len(first) if first.ndim else 1  # a single number has no pairs: the call says so
    if query_ids is None:
        arrays.require("query", instead=", or give --query-ids FILE")
    if doc_ids is None:
        arrays.require("doc", instead=", or give --doc-ids FILE")
    ids = (
        arrays.ids("queries", "--query-ids", "query", pairs, "pairs"),
        arrays.ids("documents", "--doc-ids", "doc", pairs, "pairs"),
    )
    with collect_warnings() as warned:
        found = tw.reranker_precisions(
            *ids,
            qrels,
            **given,
            positive=positive,
            measures=measures,
            rows=rows or None,
            max_loss=max_loss,
            phi=phi,
            seed=seed,
        )
    write_precisions(found, warned, figure, output)
