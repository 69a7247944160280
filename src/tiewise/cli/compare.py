"""``tiewise compare``: runs against each other on the same judgments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tiewise.cli.asked import asked, evaluation_options, measure_of
from tiewise.cli.gates import Gate
from tiewise.cli.inputs import heeded, named, read_once
from tiewise.cli.options import (
    Baseline,
    ChanceSeed,
    ComparedMeasures,
    CompareFailIf,
    Complete,
    Confidence,
    Depth,
    Digits,
    InputFormat,
    JudgedOnly,
    Level,
    ManyRunFiles,
    Missing,
    Names,
    NoRelevant,
    Oblivious,
    Orders,
    Output,
    PairsOutputFormat,
    Plugins,
    QrelsFile,
    QrelsFormat,
    Quiet,
    Samples,
    ScoreType,
    SignificanceTest,
    Unjudged,
)
from tiewise.cli.output import leave_if, note_beside, screen, target, write
from tiewise.data.runs import Qrels
from tiewise.io import read_qrels, read_run
from tiewise.metrics.definition import Measure
from tiewise.output import OutputOptions

if TYPE_CHECKING:
    from tiewise.analysis.comparison import Compared, Duel

__all__ = ["EXAMPLES", "compare"]

EXAMPLES = (
    "Examples\n\n"
    "  tiewise compare qrels.txt bm25.trec dense.trec\n\n"
    "  tiewise compare qrels.txt runs/*.trec --baseline bm25 -m nDCG@10,AP\n\n"
    "  tiewise compare qrels.txt a.trec b.trec --orders shared --format json\n\n"
    "  tiewise compare qrels.txt main.trec new.trec --fail-if 'difference(new>main, nDCG@10) < -0.01' -o comment.md"
)


def compare(
    qrels: QrelsFile,
    runs: ManyRunFiles,
    measure: ComparedMeasures = None,
    level: Level = None,
    plugin: Plugins = None,
    baseline: Baseline = None,
    fail_if: CompareFailIf = None,
    missing: Missing = None,
    no_relevant: NoRelevant = "zero",
    judged_only: JudgedOnly = False,
    unjudged: Unjudged = False,
    depth: Depth = None,
    test: SignificanceTest = "permutation",
    confidence: Confidence = 0.95,
    samples: Samples = 10_000,
    seed: ChanceSeed = 0,
    input_format: InputFormat = None,
    qrels_format: QrelsFormat = None,
    orders: Orders = "independent",
    oblivious: Oblivious = "trec_eval",
    score_dtype: ScoreType = None,
    complete: Complete = False,
    format: PairsOutputFormat = None,
    digits: Digits = None,
    name: Names = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Say which run is ahead, and whether the order of ties, the sample of queries or a tool's rule decides that.

    Two runs are a line for each measure; more are a leaderboard, with the ranks that ties and queries allow.
    """
    from tiewise.analysis import comparison
    from tiewise.output import render
    from tiewise.output.comparison_tables import ComparisonTables
    from tiewise.output.progress import progress

    kind, output = target(format, output)
    files = named(runs, name)
    if kind not in ("table", "markdown", "latex"):
        comparison.check_pairs(len(files), baseline)  # before anything is read
    chosen, gates = _asked(measure or comparison.DEFAULT_MEASURES, fail_if or (), level, plugin or (), list(files))
    options = evaluation_options(
        oblivious=oblivious,
        missing=missing,
        no_relevant=no_relevant,
        score_dtype=score_dtype,
        depth=depth,
        judged_only=judged_only,
        complete=complete,
    )
    read_once([qrels, *runs])
    with heeded() as warned:
        judged = read_qrels(qrels, format=qrels_format)
        # A path is read again when it is needed; standard input, or a format that must be said, is read now.
        whole = {
            one: read_run(p, format=input_format) if input_format or str(p) == "-" else p for one, p in files.items()
        }
        with progress("runs", quiet=quiet) as tell:
            every = comparison.compare(
                judged,
                whole,
                list(dict.fromkeys([*chosen, *(one for gate in gates for one in gate.measures)])),
                baseline=baseline,
                orders=orders,
                test=test,
                confidence=confidence,
                samples=samples,
                seed=seed,
                progress=tell,
                **options,
            )
        # What only a gate asks for is not shown, nor are others corrected for it.
        found = every.select([measure for measure in chosen if measure in every.measures])
        with progress("unjudged documents", quiet=quiet) as tell:
            bounds, remarks = _unjudged(judged, whole, chosen, options, tell) if unjudged else ({}, ())
        with progress("pairs", quiet=quiet) as tell:
            side = ComparisonTables(found, bounds, remarks, tell)
            view = OutputOptions(format=kind, digits=digits, notes=side.notes, **screen(output))
            complaints = _closed(gates, _Asked(found, every))
            drawn = render(side, view)
    write(drawn, output)
    note_beside(view, [*warned, *view.notes], quiet)
    leave_if(complaints)


def _asked(
    texts: Sequence[str], conditions: Sequence[str], level: float | None, plugins: Sequence[str], systems: Sequence[str]
) -> tuple[list[Measure], list[Gate]]:
    """The measures that were asked for, and the gates."""
    chosen, _ = asked(texts, (), level, plugins)
    gates = [Gate.parse(text, lambda name: measure_of(name, level), systems=systems) for text in conditions]
    return list(dict.fromkeys(chosen)), gates


@dataclass(frozen=True)
class _Asked:
    """The pairs that gates ask for: of a measure that only gates ask for, corrected for its own pairs alone."""

    shown: Compared
    every: Compared

    def pair(self, a: str, b: str, measure: Measure) -> Duel:
        found = self.shown if measure in self.shown.measures else self.every.select(measure)
        return found.pair(a, b, measure)


def _closed(gates: Sequence[Gate], found: Any) -> list[str]:
    closed = [(gate, why) for gate in gates if (why := gate.closed_by(found))]
    return [f"the gate '{gate.text}' is closed: {why}." for gate, why in closed]


def _unjudged(
    qrels: Qrels,
    runs: Mapping[str, Any],
    measures: Sequence[Measure],
    options: dict[str, Any],
    tell: Callable[[int, int], None] | None,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What unjudged documents leave open in each run, and why it is not known for some measures."""
    from tiewise.analysis.unjudged_bounds import reason_against, unjudged

    reasons: dict[str | None, list[Measure]] = {}
    for measure in measures:
        reasons.setdefault(reason_against(measure), []).append(measure)
    known = reasons.pop(None, [])
    left_out = tuple(
        f"Unjudged documents put no bounds on {', '.join(map(str, some))}: {reason}" for reason, some in reasons.items()
    )
    found = {}
    for name, run in runs.items() if known else ():
        found[name] = unjudged(qrels, run, known, **options)
        if tell is not None:
            tell(len(found), len(runs))
    return found, left_out
