"""`protocol`: the rows of an experiment, such as one model in several precisions, against a reference.

The protocol of Yang et al. reports each row by its expected value and range, and by the bias of the order of ties that
a tool or the data has. A row is a run, wherever it comes from: `tiewise.rows` makes rows from vectors and logits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from tiewise.analysis.evaluating import report_of
from tiewise.analysis.measuring import Evaluation, resolve_measures
from tiewise.analysis.options import Missing, Options
from tiewise.analysis.protocol_result import Agreement, MeasuredRow, Protocol
from tiewise.data.columns import by_name, identifier
from tiewise.data.judgments import Qrels
from tiewise.data.progress import Progress, check_progress
from tiewise.data.runs import Run
from tiewise.errors import InputError, MeasureError, prefix_errors, warn_of_cuts
from tiewise.io import as_qrels, as_source
from tiewise.io.edited_run import edit_source
from tiewise.io.types import QrelsLike, RunLike
from tiewise.metrics.aggregation import MEAN
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import MeasureLike
from tiewise.rankings.pair_measures import RBO, RBR
from tiewise.rankings.run_similarity import RunPair
from tiewise.results.wording import count_noun, list_examples, spell_option
from tiewise.ties.counted import Counted, RunSource
from tiewise.ties.groups import TieGroups

#: How many of the first documents are compared with those of the reference, for a measure without a cutoff.
DEFAULT_CUTOFF = 10


@dataclass(frozen=True, eq=False)
class Row:
    """A run of the protocol, with what it costs.

    >>> Row({"q": {"a": 1.0}}, bytes=96).bytes
    96
    """

    run: RunLike | TieGroups | RunSource  #: as `evaluate` takes it
    bytes: float | None = None  #: of a stored document vector
    seconds: float | None = None  #: for all queries
    timed: str = ""  #: what took these seconds, such as "Tiewise's search"
    note: str = ""  #: what a reader should know of this row

    def __post_init__(self) -> None:
        for name in ("bytes", "seconds"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and 0 <= float(value) < float("inf")):
                raise InputError(f"{name}={value!r} of a row is not possible. Give a number from 0 on, or None.")


#: The rows of the protocol by name.
RowsLike = Mapping[Any, "Row | RunLike | TieGroups"]


def protocol(
    qrels: QrelsLike | None,
    rows: RowsLike,
    measures: MeasureLike | Iterable[MeasureLike] = "nDCG@10",
    *,
    reference: str | None = None,
    oblivious: str | None = "auto",
    max_loss: float | None = None,
    worst: float | None = None,
    phi: float = 0.9,
    depth: int = 100,
    missing: Missing = "zero",
    drop_self: bool = False,
    complete: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Protocol:
    """Each row with its expected value, range and bias, and its difference to the reference.

    - `rows`: ``{name: run}``; a run in any form that `evaluate` takes, `TieGroups`, or a `Row`; `tiewise.rows` makes
      some. Without `qrels` (None) rows are only compared with the ranking of the reference.
    - `reference`: the row that others are compared with; by default the first.
    - `oblivious`: one order of ties for the table. ``"auto"``: that of the data, if every row knows it, else
      trec_eval's.
    - `max_loss`: how much of the first measure may be lost; 0.01 is one point. Then rows have a verdict, and `choice`
      is the one to take. `worst`: what one query can lose at most; by default 1, or the reference's largest value if
      that is more.
    - `phi`, `depth`: the persistence of RBO and RBR, and how many ranks they compare.
    - `missing`, `drop_self`, `complete`: as for `evaluate`. `seed`: of the draws behind intervals and bounds.

    >>> qrels = {"q": {"a": 1, "b": 0}}
    >>> rows = {"float32": {"q": {"a": 0.51, "b": 0.5}}, "bfloat16": {"q": {"a": 0.5, "b": 0.5}}}
    >>> found = protocol(qrels, rows, "RR", complete=True)
    >>> found
    <Protocol: 2 rows, RR, 1 query, reference float32>
    >>> found.estimate("bfloat16"), found.difference("bfloat16").mean
    (RR 0.7500 [0.5000, 1.0000], -0.25)
    """
    named = _resolve_rows(rows)
    first = next(iter(named)) if reference is None else identifier(reference, "row")
    if first not in named:
        raise InputError(f"The reference '{first}' is not one of the rows: {list_examples(named, 5)}.")
    chosen = check_settings(measures, max_loss, worst)
    report_progress = check_progress(progress)
    judged = None if qrels is None else as_qrels(qrels)
    given = {}
    for name, row in named.items():
        with prefix_errors(f"Row '{name}'"):
            given[name] = as_source(row.run)
            if judged is None and isinstance(given[name], Counted):
                raise InputError("Tie groups hold no documents to compare. Give qrels, or the run itself.")
    order = _choose_order(given.values()) if oblivious == "auto" else oblivious
    options = Options(oblivious=order, missing=missing, drop_self=drop_self, complete=complete, seed=seed)
    sources = {}
    for name, source in given.items():
        with prefix_errors(f"Row '{name}'"):
            sources[name] = edit_source(source, drop_self=options.drop_self)
    compared = _common_queries(sources, judged, options.missing)
    whole, cutoff = _read_lists(sources[first], compared), chosen[0].cutoff or DEFAULT_CUTOFF
    found = []
    for done, (name, row) in enumerate(named.items(), 1):
        source, report = sources[name], None
        with prefix_errors(f"Row '{name}'"):
            if judged is not None:
                report = report_of(Evaluation.of(judged, source, options, chosen), chosen)
            run = _read_lists(source, compared)
            agreement = _compare(run, whole, phi, depth, cutoff)
            if agreement is None and judged is None:
                raise InputError(f"It has no query in common with the reference '{first}'.")
        tied = None if run is None else run.tied_share
        note = row.note
        if judged is None and run is not None and whole is not None:
            lacks = len(whole.query_index.keys() - run.query_index.keys())
            note += f" {lacks:,} of {count_noun(len(whole.queries), 'query', 'queries')} are missing." if lacks else ""
        found.append(MeasuredRow(name, report, tied, agreement, row.bytes, row.seconds, row.timed, note.strip()))
        report_progress(done, len(named))
    measured = [] if judged is None else chosen
    result = Protocol(found, measured, first, order, cutoff, max_loss=max_loss, worst=worst, seed=seed)
    warn_of_cuts(result.cut_note)
    return result


def _resolve_rows(rows: RowsLike) -> dict[str, Row]:
    if not isinstance(rows, Mapping) or not rows:
        raise InputError("Give the rows as {name: run}, one or more; tiewise.rows makes them.")
    named = by_name(rows, "row")
    if "" in named:
        raise InputError("A row has an empty name. Name each row.")
    return {name: row if isinstance(row, Row) else Row(row) for name, row in named.items()}


def check_settings(
    measures: MeasureLike | Iterable[MeasureLike] = "nDCG@10", max_loss: float | None = None, worst: float | None = None
) -> list[Measure]:
    """The measures of a protocol; an error if one of its settings is not possible."""
    for name, value in (("max_loss", max_loss), ("worst", worst)):
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 < float(value) < float("inf")):
            raise InputError(f"{spell_option(name, value)} is not possible. Give a number above 0; one point is 0.01.")
    chosen = resolve_measures(measures)
    if max_loss is not None and max_loss >= chosen[0].limits[1]:
        problem = f"{spell_option('max_loss', max_loss)} is all that {chosen[0]} can lose"
        raise InputError(f"{problem}. Give a fraction: 0.01 is one point.")
    for one in chosen:
        if one.aggregation is not MEAN:
            raise MeasureError(f"{one} is not a mean over queries, so rows have no mean difference. Use another.")
    return chosen


def _choose_order(sources: Iterable[RunSource]) -> str:
    """The order of the data if every row knows it: that of the paper. Else trec_eval's."""
    knows = all(not isinstance(source, Counted) or source.has("given", "float64") for source in sources)
    return "given" if knows else "trec_eval"


def _common_queries(sources: Mapping[str, RunSource], qrels: Qrels | None, missing: Missing) -> list[str] | None:
    """The queries that are measured: those that were judged and, if others are skipped, that all rows have."""
    if qrels is None:
        return None
    kept = list(qrels.queries)
    if missing == "skip":
        for source in sources.values():
            if not isinstance(source, Counted):
                known = source.rows().query_index
                kept = [query for query in kept if query in known]
    return kept


def _read_lists(source: RunSource, queries: Sequence[str] | None) -> Run | None:
    """The lists of some queries, or all; None if only tie groups are known."""
    if isinstance(source, Counted):
        return None
    return source.rows() if queries is None else source.rows().select_queries(queries)


def _compare(run: Run | None, reference: Run | None, phi: float, depth: int, cutoff: int) -> Agreement | None:
    """How similar the ranking of a row is to that of the reference, expected over the orders of ties.

    None if one of them is not known, or if they have no query in common.
    """
    if run is None or reference is None or run.query_index.keys().isdisjoint(reference.query_index):
        return None
    pair = RunPair(run, reference)
    rbo, rbr = pair.score(RBO(phi=phi) @ depth), pair.score(RBR(phi=phi) @ depth)
    return Agreement(rbo, rbr, pair.overlap(cutoff))
