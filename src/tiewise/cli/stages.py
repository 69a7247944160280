"""``tiewise stages``: first stages of retrieval against the reranker that reads their documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.command import MEASURES, argument, command, option
from tiewise.cli.inputs import Inputs, collect_warnings
from tiewise.cli.output import Output
from tiewise.cli.progress import progress
from tiewise.rankings.costs import RERANK, read_costs
from tiewise.results.wording import list_examples

EXAMPLES = (
    "tiewise stages reranker.trec bm25.trec dense.trec --phi 0.9 --depths 10,50",
    "tiewise stages reranker.trec bm25.trec --cost costs.json --figure pareto.svg",
    "tiewise stages reranker.trec bm25.trec --recall-at 10 -q -o queries.csv",
)


def _list_of(convert: Callable[[str], Any], example: str) -> Callable[..., list[Any]]:
    """Converts the texts of a repeatable option to one list."""

    def callback(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> list[Any]:
        found: dict[Any, None] = {}
        for text in value:
            try:
                numbers = [convert(word) for word in text.replace(",", " ").split()]
            except ValueError:
                numbers = []
            if not numbers:
                raise click.BadParameter(f"'{text}' is not a list of numbers. Write it like {example}.")
            found |= dict.fromkeys(numbers)
        return [*found]

    return callback


@command("stages", Inputs, Output, examples=EXAMPLES)
@argument("REFERENCE", "The reranker's deep ranking, as a run; - is standard input.")
@options.runs
@option(
    "--phi NUMBERS",
    MEASURES,
    "One or more persistences, above 0 and below 1: how far down the reference counts.",
    multiple=True,
    default=("0.8,0.9",),
    default_note="0.8,0.9",
    callback=_list_of(float, "0.8,0.9"),
)
@option(
    "--depths NUMBERS",
    MEASURES,
    "How many documents of each run the reranker reads: one or more numbers; 'all' is the whole list.",
    multiple=True,
    default=("10,20,50,100",),
    default_note="10,20,50,100",
    callback=_list_of(lambda word: None if word == "all" else int(word), "10,20"),
)
@option("--recall-at N", MEASURES, "Recall counts the first N documents of the reference.", default_note="all of them")
@option(
    "--cost FILE",
    MEASURES,
    "The cost of each first stage per query, perhaps by depth, and 'rerank', the reranker's cost per document: lines "
    "'bm25 1.2' or 'bm25 100 1.2', or JSON.",
)
@options.input_format
@options.EVALUATION["distances"]
@options.EVALUATION["complete"]
@options.per_query
@options.explain("how to read it")
@options.figure("RBR against cost, for the first phi")
@options.names
@options.output()
def stages(
    inputs: Inputs,
    output: Output,
    *,
    reference: Path,
    phi: list[float],
    depths: list[int | None],
    cost: Path | None,
    **how: Any,
) -> None:
    """Compare first stages by what a reranker finds in their documents (rank-biased recall), and by their cost.

    The first documents of a run are a set. Each is weighted by its rank in the reranker's own ranking.
    """
    with collect_warnings() as warned:
        costs, unused = (None, []) if cost is None else _costs_of_runs(read_costs(cost), inputs.files)
        second, runs = tw.read_run(reference, format=inputs.run_format), inputs.read_runs(quiet=output.quiet)
        with progress("sets", quiet=output.quiet) as callback:
            found = tw.stages(second, runs, depths, phi, costs, progress=callback, **how)
    output.show(found, [*warned, *unused], draw=found.plot.pareto)


def _costs_of_runs(costs: Mapping[str, Any], runs: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """The costs of these runs and of the reranker, and a note about the others."""
    others = [name for name in costs if name not in (*runs, RERANK)]
    notes = [f"The costs of {list_examples(others)} are not used: no run has that name."] if others else []
    return {name: one for name, one in costs.items() if name not in others}, notes
