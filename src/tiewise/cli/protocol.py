"""``tiewise protocol``: one model, index or reranker in several precisions, each against a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.arrays import IDS, PAIR_ROLES, Pairs, numbered_note, read_lines
from tiewise.cli.command import NOT_NEGATIVE, SHORT, CommandGroup, argument, command, option
from tiewise.cli.inputs import Inputs, collect_warnings
from tiewise.cli.output import Output
from tiewise.cli.progress import progress
from tiewise.cli.protocol_model import max_loss, model_command
from tiewise.errors import InputError
from tiewise.results.wording import spell_dtypes

#: The text of --wide and --fractions, which share a line of help.
VECTORS = "Vectors: .npy, .npz, .safetensors or .parquet."
WIDE = "All columns (std, CV, RBO …); fractions, not points."

qrels = argument("QRELS", "Judgments; none: only compare with the reference.")
query_ids = option("--query-ids FILE", SHORT, "Ids of queries, one a line.")
doc_ids = option("--doc-ids FILE", SHORT, "Ids of documents, one a line.")

protocol_options = options.apply_all(
    option(
        "-m, --measure NAMES",
        SHORT,
        "Measures.",
        into="measures",
        multiple=True,
        default=["nDCG@10"],
        default_note="nDCG@10",
    ),
    option("--reference ROW", SHORT, "The row to compare with.", default_note="the first"),
    max_loss,
    option("--worst NUMBER", SHORT, "What one query can lose.", default_note="1"),
    option("--oblivious NAME", SHORT, "The tie order of obl.", default="auto", default_note="the data's"),
    option("--missing NAME", SHORT, "Queries a row lacks: zero, skip, error.", default="zero"),
    option("--drop-self", SHORT, "Drop documents that have the id of their query."),
    option("--wide", SHORT, WIDE),
    option("--fractions", SHORT, WIDE),
    option("--figure FILE", SHORT, "Draw losses (with --max-loss), else cutoffs."),
    options.short_output(SHORT),
)


def write_protocol(
    qrels: Path | None,
    rows: Mapping[str, Any],
    output: Output,
    notes: Sequence[str] = (),
    *,
    fractions: bool,
    oblivious: str,
    **how: Any,
) -> None:
    """Measure the rows, and write table, figure and notes; `how` are the options of `tiewise.protocol`."""
    judged, order = None if str(qrels) == "none" else qrels, None if oblivious == "none" else oblivious
    with collect_warnings() as warned, progress("rows", quiet=output.quiet) as callback:
        found = tw.protocol(judged, rows, progress=callback, oblivious=order, **how)
    found = found.in_fractions() if fractions else found
    output.show(found, [*notes, *warned], draw=found.plot.cutoffs if found.max_loss is None else found.plot.loss)


@click.group("protocol", cls=CommandGroup)
def protocol() -> None:
    """Compare a system in several precisions with a reference: expected value, range, bias and loss of each."""


@command("runs", Inputs, Output, examples=("tiewise protocol runs qrels.txt fp32.trec bf16.trec --max-loss 0.01",))
@qrels
@argument("RUN...", "One or more runs, the reference first.", into="runs")
@option("--name NAME", SHORT, "The name of a run, for each.", into="names", multiple=True)
@option("--complete", SHORT, "No list was cut inside its last tie group.")
@protocol_options
def runs_command(inputs: Inputs, output: Output, *, reference: str | None, **how: Any) -> None:
    """Compare runs, such as those of a model in several precisions."""
    write_protocol(inputs.qrels, inputs.open_runs(), output, reference=inputs.name_of(reference), **how)


@command("vectors", Output, examples=("tiewise protocol vectors qrels.txt q.npy d.npy --row float32 --row int8",))
@qrels
@argument("QUERIES", VECTORS)
@argument("DOCS", VECTORS)
@option(
    "--row NAME",
    SHORT,
    "int8, float32:int8, float32/bfloat16, float32@256, binary+100 …",
    into="rows",
    multiple=True,
    default_note="a selection",
)
@option("--encoder NAME=Q,D", SHORT, "Vectors of the model in another type.", into="encoders", multiple=True)
@option("--fn NAME", SHORT, "cosine, dot or euclidean.", default="cosine")
@option("--repeats N", SHORT, "Time the search N times.", type=NOT_NEGATIVE, default=0)
@query_ids
@doc_ids
@protocol_options
def vectors_command(
    qrels: Path,
    queries: Path,
    docs: Path,
    *,
    rows: Sequence[str],
    encoders: Sequence[str],
    fn: str,
    repeats: int,
    query_ids: Path | None,
    doc_ids: Path | None,
    reference: str | None,
    output: Output,
    **how: Any,
) -> None:
    """Compare ways to store vectors and compute scores."""
    with collect_warnings() as warned:
        query_vectors, query_names = _read(queries, "queries", "query_ids", query_ids)
        doc_vectors, doc_names = _read(docs, "docs", "doc_ids", doc_ids)
        made = tw.rows.vectors(
            query_vectors,
            doc_vectors,
            rows or None,
            fn=fn,
            query_ids=query_names,
            doc_ids=doc_names,
            encoders=dict(map(_read_encoder, encoders)),
            repeats=repeats,
        )
    how["reference"] = reference and spell_dtypes(reference)
    if str(qrels) != "none":
        ids = {"query_ids": query_names, "doc_ids": doc_names}
        warned += numbered_note([role for role, names in ids.items() if names is None])
    write_protocol(qrels, made, output, warned, **how)


def _read(path: Path, vectors: str, ids: str, id_file: Path | None) -> tuple[Any, Any]:
    from tiewise.scoring.vector_files import read_matrix

    matrix, found = read_matrix(path, vectors, ids)
    return matrix, found if id_file is None else read_lines(id_file)


def _read_encoder(text: str) -> tuple[str, tuple[Any, Any]]:
    name, _, paths = text.partition("=")
    queries, _, docs = paths.partition(",")
    if not (name and queries and docs):
        raise InputError(f"--encoder {text}: write NAME=QUERIES,DOCS, with two files of vectors.")
    return name, (_read(Path(queries), "queries", "", None)[0], _read(Path(docs), "docs", "", None)[0])


@command("logits", Pairs, Output, examples=("tiewise protocol logits qrels.txt pairs.npz --array reference=fp32",))
@qrels
@argument("FILE...", "logits, or hidden and weight: .npz, .safetensors, .npy.", into="files")
@option("--level NAME", SHORT, "native, score, logit, head.", into="levels", multiple=True, default_note="all")
@option("--fn NAME", SHORT, "sigmoid, softmax, log_softmax, identity.", default_note="by the number of logits")
@option("--positive N", SHORT, "The logit that means relevant.", type=NOT_NEGATIVE, default_note="1")
@option("--array ROLE=NAME", SHORT, f"Roles: {', '.join(PAIR_ROLES)}.", into="renamed", multiple=True)
@query_ids
@doc_ids
@protocol_options
def logits_command(
    pairs: Pairs,
    output: Output,
    *,
    qrels: Path,
    levels: Sequence[str],
    fn: str | None,
    positive: int | None,
    **how: Any,
) -> None:
    """Compare ways to compute the last step of a reranker from saved logits."""
    if "logits" not in pairs and "hidden" not in pairs:
        pairs.require("logits", instead=", or those of hidden and weight")
    given = {role: pairs.require_finite(role)[0] for role in PAIR_ROLES if role in pairs and role not in IDS}
    first = given["logits" if "logits" in given else "hidden"]
    count = len(first) if first.ndim else 1  # a single number has no pairs: the call says so
    for role in IDS:
        pairs.require_ids(role)
    ids = [pairs.ids(role, count, "pairs") for role in IDS]
    rows = tw.rows.logits(*ids, **given, fn=fn, positive=positive, levels=levels or None)
    write_protocol(qrels, rows, output, **how)


for one in (runs_command, vectors_command, logits_command, model_command):
    protocol.add_command(one)
