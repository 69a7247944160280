"""``tiewise compare``: runs against each other on the same judgments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tiewise as tw
from tiewise.cli import options
from tiewise.cli.command import MEASURES, command, option
from tiewise.cli.inputs import Inputs, collect_warnings
from tiewise.cli.output import Output, failed_checks
from tiewise.cli.progress import progress
from tiewise.cli.selection import Selection

if TYPE_CHECKING:
    from tiewise.analysis.comparison import Compared, PairComparison

EXAMPLES = (
    "tiewise compare qrels.txt bm25.trec dense.trec",
    "tiewise compare qrels.txt runs/*.trec --baseline bm25 -m nDCG@10,AP",
    "tiewise compare qrels.txt a.trec b.trec --orders shared --format json",
    "tiewise compare qrels.txt a.trec b.trec --fail-if 'not certain(b>a, AP)'",
)


@command("compare", Inputs, Selection, Output, examples=EXAMPLES)
@options.qrels
@options.two_runs
@options.measures("nDCG@10", " More measures make intervals wider.")
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
@options.formats
@options.significance
@options.names
@options.columns
@options.explain("how to read it, all pairs, every tool, what unjudged documents leave open")
@options.output()
def compare(inputs: Inputs, selection: Selection, output: Output, **how: Any) -> None:
    """Show which run is better, whether these queries show it, and whether the order of ties changes it.

    For two runs it shows a row for each measure. For more it shows a ranking for each, every run against the best or
    against the baseline.
    """
    from tiewise.analysis.comparison import DEFAULT_MEASURES

    conditions = selection.conditions(systems=list(inputs.files))
    chosen, checked = selection.resolve(DEFAULT_MEASURES), selection.resolve(DEFAULT_MEASURES, conditions)
    with collect_warnings() as warned, progress("runs", quiet=output.quiet) as callback:
        every = tw.compare(inputs.read_qrels(), inputs.open_runs(), checked, progress=callback, **how)
        found = every.select([measure for measure in chosen if measure in every.measures])
        failed = failed_checks(conditions, {"": _Checked(found, every)})
    output.show(found, warned, failed=failed)


@dataclass(frozen=True)
class _Checked:
    """The pairs for conditions: p-values of a measure that only conditions name are adjusted within that measure."""

    shown: Compared
    every: Compared

    def pair(self, a: str, b: str, measure: tw.Measure) -> PairComparison:
        found = self.shown if measure in self.shown.measures else self.every.select(measure)
        return found.pair(a, b, measure)
