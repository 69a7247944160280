"""``tiewise precisions``: which precision of vectors and scores can be afforded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.arrays import read_lines
from tiewise.cli.command import INPUT, MEASURES, SCORES, argument, command, option
from tiewise.cli.inputs import collect_warnings
from tiewise.cli.output import Output
from tiewise.errors import InputError

__all__ = ["precisions", "write_precisions"]

EXAMPLES = (
    "tiewise precisions queries.npy docs.npy qrels.txt -m nDCG@10 --max-loss 0.005",
    "tiewise precisions queries.npy docs.npy --row float32:int8 --row binary+100",
    "tiewise precisions q.npy d.npy --encoder bf16=q16.npy,d16.npy -o table.tex",
)


@command("precisions", examples=EXAMPLES)
@argument("QUERIES", "Vectors of queries: .npy, .npz, .safetensors or .parquet.", type=options.PATH)
@argument("DOCS", "Vectors of documents; it may be the same file.", type=options.PATH)
@argument("[QRELS]", "Relevance judgments. Without them, the float32 ranking is the reference.", type=options.PATH)
@options.precision_trial("RBO and RBR")
@option(
    "--row NAME",
    SCORES,
    "A way to store and score, as ENCODER>QUERIES:DOCS@DIMS/SCORES+RESCORE, all but DOCS optional: int8, "
    "float32:binary, float32@256, float32/bfloat16, binary+100.",
    into="rows",
    multiple=True,
    default_note="a selection, as documented",
)
@option(
    "--encoder NAME=QUERIES,DOCS",
    INPUT,
    "Vectors of the same queries and documents from the model in another type.",
    into="encoders",
    multiple=True,
)
@option(
    "--fn NAME",
    SCORES,
    "The score function.",
    type=click.Choice(["cosine", "dot", "euclidean"]),
    default="cosine",
)
@option("--query-ids FILE", INPUT, "Ids of queries, one line for each row.", type=options.PATH)
@option("--doc-ids FILE", INPUT, "Ids of documents, one line for each row.", type=options.PATH)
@option("--depth N", MEASURES, "The length of the lists for RBO and RBR.", type=options.POSITIVE, default=100)
@option("--repeats N", SCORES, "How often a search is timed; 0 for no timing.", type=options.NOT_NEGATIVE, default=3)
@options.figure("the loss against the bytes of a vector")
@options.output("one object with the list 'rows'")
def precisions(
    queries: Path,
    docs: Path,
    qrels: Path | None,
    *,
    measures: Sequence[str],
    max_loss: float | None,
    phi: float,
    seed: int,
    rows: Sequence[str],
    encoders: Sequence[str],
    fn: str,
    query_ids: Path | None,
    doc_ids: Path | None,
    depth: int,
    repeats: int,
    figure: Path | None,
    output: Output,
) -> None:
    """Compare ways to store vectors and compute scores: what each costs in quality, and what it saves.

    Every row is compared with float32, query by query. Bounds hold for all rows at once.
    """
    from tiewise.cli.progress import progress

    output.check_figure(figure)
    with collect_warnings() as warned:
        query_vectors, query_names = _read(queries, "queries", "query_ids", query_ids)
        doc_vectors, doc_names = _read(docs, "docs", "doc_ids", doc_ids)
        with progress("rows", quiet=output.quiet) as callback:
            found = tw.precisions(
                query_vectors,
                doc_vectors,
                qrels,
                query_ids=query_names,
                doc_ids=doc_names,
                measures=measures,
                rows=rows or None,
                encoders=dict(map(_read_encoder, encoders)),
                max_loss=max_loss,
                fn=fn,
                depth=depth,
                phi=phi,
                repeats=repeats,
                seed=seed,
                progress=callback,
            )
    write_precisions(found, warned, figure, output)


def write_precisions(found: tw.Precisions, warned: Iterable[str], figure: Path | None, output: Output) -> None:
    """Write the table of rows, and their figure if there is a file for it."""
    from tiewise.output.precision_tables import PrecisionTables
    from tiewise.output.rendering import render

    notes = (*warned, *found.notes)
    content = render(PrecisionTables(found), output.view(notes=notes))  # first, because it can fail: no figure then
    if figure is not None:
        tw.figures.save(found.plot.loss(), figure)
    output.write(content, notes)


def _read(path: Path, vectors: str, ids: str, id_file: Path | None) -> tuple[Any, Any]:
    """The vectors of a file and their ids."""
    from tiewise.scoring.vector_files import read_matrix

    matrix, found = read_matrix(path, vectors, ids)
    return matrix, found if id_file is None else read_lines(id_file)


def _read_encoder(text: str) -> tuple[str, tuple[Any, Any]]:
    name, _, paths = text.partition("=")
    queries, _, docs = paths.partition(",")
    if not (name and queries and docs):
        raise InputError(f"--encoder {text}: write NAME=QUERIES,DOCS with two files of vectors.")
    return name, (_read(Path(queries), "queries", "", None)[0], _read(Path(docs), "docs", "", None)[0])
