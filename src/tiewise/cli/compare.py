"""``tiewise compare``: runs against each other on the same judgments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.command import INPUT, MEASURES, command, option
from tiewise.cli.inputs import check_stdin_once, collect_warnings, runs_by_name
from tiewise.cli.output import Output, exit_if_failed, failed_checks
from tiewise.cli.selection import parse_conditions, resolve_measures
from tiewise.data.judgments import Kind
from tiewise.io import as_qrels

if TYPE_CHECKING:
    from tiewise.analysis.comparison import Compared, PairComparison

__all__ = ["compare"]

EXAMPLES = (
    "tiewise compare qrels.txt bm25.trec dense.trec",
    "tiewise compare qrels.txt runs/*.trec --baseline bm25 -m nDCG@10,AP",
    "tiewise compare qrels.txt a.trec b.trec --orders shared --format json",
    "tiewise compare qrels.txt a.trec b.trec --fail-if 'not certain(b>a, AP)'",
)


@command("compare", examples=EXAMPLES)
@options.qrels
@options.two_runs
@options.measures("nDCG@10", " More measures make corrected p-values larger.")
@options.relevance
@options.plugins
@option(
    "--baseline NAME",
    MEASURES,
    "Compare the other runs with this one only, given by its name.",
    default_note="all pairs",
)
@options.fail_if(
    "'not certain(A>B, nDCG@10)', 'p(A>B, nDCG@10) > 0.05', 'difference(A>B, AP) < -0.01'. The statistics of two runs "
    "are certain, flip, difference, minimum, maximum, std, probability, p, p_holm, ci_low, ci_high and effect. A "
    "measure that is only in a condition is not shown and does not change other p-values."
)
@options.evaluation
@option(
    "--unjudged",
    INPUT,
    "Also show the bounds of P, RBP, Success, RR, Hits, SetP and Judged over all labels of unjudged documents.",
)
@options.input_format
@options.qrels_format
@options.qrels_kind
@options.significance
@options.names
@options.output("one object with the list 'pairs'")
def compare(
    qrels: Path,
    runs: Sequence[Path],
    *,
    measures: Sequence[str],
    rel: float | None,
    baseline: str | None,
    fail_if: Sequence[str],
    evaluation: dict[str, Any],
    unjudged: bool,
    input_format: str | None,
    qrels_format: str | None,
    qrels_kind: Kind,
    names: Sequence[str],
    output: Output,
    **significance: Any,
) -> None:
    """Show which run is better, and whether tie order, the sample of queries or a tool's rule decides that.

    For two runs it shows one line per measure. For more it shows a leaderboard, with the ranks that ties and queries
    allow.
    """
    from tiewise.analysis import comparison
    from tiewise.cli.progress import progress
    from tiewise.output import render
    from tiewise.output.comparison_tables import ComparisonTables

    files = runs_by_name(runs, names)
    if output.format not in ("table", "markdown", "latex"):
        comparison.check_pairs(len(files), baseline)  # before anything is read
    conditions = parse_conditions(fail_if, rel, systems=list(files))
    chosen = resolve_measures(measures or comparison.DEFAULT_MEASURES, rel)
    checked = resolve_measures(measures or comparison.DEFAULT_MEASURES, rel, conditions)
    check_stdin_once([qrels, *runs])
    with collect_warnings() as warned:
        judged = as_qrels(qrels, format=qrels_format, kind=qrels_kind)
        # A path is read when it is needed. Standard input, and a file whose format was given, are read now.
        whole = {
            name: tw.read_run(path, format=input_format) if input_format or str(path) == "-" else path
            for name, path in files.items()
        }
        with progress("runs", quiet=output.quiet) as callback:
            every = tw.compare(
                judged,
                whole,
                checked,
                baseline=baseline,
                progress=callback,
                **significance,
                **evaluation,
            )
        found = every.select([measure for measure in chosen if measure in every.measures])
        with progress("unjudged documents", quiet=output.quiet) as callback:
            bounds, remarks = _bound_unjudged(judged, whole, chosen, evaluation, callback) if unjudged else ({}, ())
        with progress("pairs", quiet=output.quiet) as callback:
            tables = ComparisonTables(found, bounds, remarks, callback)
            view = output.view(notes=tables.notes)
            failed = failed_checks(conditions, [("", _Checked(found, every))])
            content = render(tables, view)
    output.write(content, [*warned, *view.notes])
    exit_if_failed(failed)


@dataclass(frozen=True)
class _Checked:
    """The pairs for conditions: p-values of a measure that only conditions name are corrected within that measure."""

    shown: Compared
    every: Compared

    def pair(self, a: str, b: str, measure: tw.Measure) -> PairComparison:
        found = self.shown if measure in self.shown.measures else self.every.select(measure)
        return found.pair(a, b, measure)


def _bound_unjudged(
    qrels: tw.Qrels,
    runs: Mapping[str, Any],
    measures: Sequence[tw.Measure],
    evaluation: dict[str, Any],
    callback: Callable[[int, int], None] | None,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The bounds that unjudged documents leave for each run, and why some measures have none."""
    from tiewise.analysis.unjudged_bounds import reason_against

    reasons: dict[str | None, list[tw.Measure]] = {}
    for measure in measures:
        reasons.setdefault(reason_against(measure), []).append(measure)
    bounded = reasons.pop(None, [])
    remarks = tuple(
        f"Unjudged documents put no bounds on {', '.join(map(str, some))}: {reason}" for reason, some in reasons.items()
    )
    found = {}
    for name, run in runs.items() if bounded else ():
        found[name] = tw.unjudged(qrels, run, bounded, **evaluation)
        if callback is not None:
            callback(len(found), len(runs))
    return found, remarks
