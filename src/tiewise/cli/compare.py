"""``tiewise compare``: runs against each other on the same judgments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.command import MEASURES, command, option
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
@options.measures("nDCG@10", " More measures make intervals wider.")
@options.relevance
@options.plugins
@option(
    "--baseline NAME",
    MEASURES,
    "Compare the other runs with this one, given by its name.",
    default_note="the best; all pairs are tested at once",
)
@options.fail_if(
    "'not certain(A>B, nDCG@10)', 'p(A>B, nDCG@10) > 0.05', 'difference(A>B, AP) < -0.01'. The statistics of two runs "
    "are certain, flip, difference, minimum, maximum, std, probability, p, ci_low, ci_high and effect. A measure that "
    "is only in a condition is not shown and does not change other p-values."
)
@options.evaluation
@options.input_format
@options.qrels_format
@options.qrels_kind
@options.significance
@options.names
@options.columns
@options.explain("how to read it, all pairs, every tool, what unjudged documents leave open")
@options.output("one object with 'rankings' and 'pairs'")
def compare(
    qrels: Path,
    runs: Sequence[Path],
    *,
    measures: Sequence[str],
    rel: float | None,
    baseline: str | None,
    fail_if: Sequence[str],
    evaluation: dict[str, Any],
    input_format: str | None,
    qrels_format: str | None,
    qrels_kind: Kind,
    names: Sequence[str],
    columns: tuple[str, ...],
    wide: bool,
    explain: bool,
    output: Output,
    **significance: Any,
) -> None:
    """Show which run is better, whether these queries show it, and whether the order of ties changes it.

    For two runs it shows a row for each measure. For more it shows a ranking for each, every run against the best or
    against the baseline.
    """
    from tiewise.analysis import comparison
    from tiewise.cli.progress import progress

    files = runs_by_name(runs, names)
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
        failed = failed_checks(conditions, [("", _Checked(found, every))])
        view = output.view(columns=columns, wide=wide, explain=explain)
    output.show(found, view, warned)
    exit_if_failed(failed)


@dataclass(frozen=True)
class _Checked:
    """The pairs for conditions: p-values of a measure that only conditions name are adjusted within that measure."""

    shown: Compared
    every: Compared

    def pair(self, a: str, b: str, measure: tw.Measure) -> PairComparison:
        found = self.shown if measure in self.shown.measures else self.every.select(measure)
        return found.pair(a, b, measure)
