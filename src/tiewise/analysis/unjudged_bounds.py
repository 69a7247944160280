"""`unjudged`: the bounds of a measure over all labels that unjudged documents could have.

The usual value counts an unjudged document as not relevant. That is the lower bound. The upper bound counts every
unjudged document of the run as relevant. This is true for measures whose divisor does not depend on the judgments. The
bounds are about judgments, not about ties: each is an Estimate over the orders of ties.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

import numpy as np

from tiewise.analysis.evaluating import evaluate
from tiewise.analysis.options import OptionNames, Options, Unpack, takes_options
from tiewise.data.columns import positions
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import CutWarning, InputError, MeasureError
from tiewise.io import as_qrels, as_run
from tiewise.io.edited_run import edit_run
from tiewise.io.types import QrelsLike, RunLike
from tiewise.metrics import catalogue as c
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.names import MeasureLike, parse, parse_all
from tiewise.results.base import Result
from tiewise.results.model import Bar, Column, Section, Table, columns_of
from tiewise.results.view import View
from tiewise.ties.groups import TieGroups

#: Measures that only rise if an unjudged document of the run is relevant, and that have a highest label.
BOUNDED = (c.P, c.Hits, c.Success, c.RR, c.RBP, c.Judged, c.SetP)
#: Measures that divide by the number of all relevant documents, retrieved or not.
NORMALIZED = (c.AP, c.nDCG, c.R, c.F, c.F1, c.Rprec, c.SetR, c.Bpref, c.nERR)


class Unjudged(Result, Mapping[str, Bounds]):
    """For each measure its bounds over all labels of unjudged documents; `condensed` has the value without them.

    >>> bounds = unjudged({"q": {"a": 1}}, {"q": {"x": 2.0, "a": 1.0}}, "RR", complete=True)
    >>> bounds["RR"].lower.expected, bounds["RR"].upper.expected, bounds.condensed["RR"].expected
    (0.5, 1.0, 1.0)
    """

    def __init__(self, bounds: Mapping[str, Bounds], condensed: Mapping[str, Estimate]):
        self._bounds = dict(bounds)
        self.condensed = dict(condensed)  #: the measure on condensed lists, without unjudged documents

    def __getitem__(self, measure: str | Measure) -> Bounds:
        return self._bounds[parse(measure).name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._bounds)

    def __len__(self) -> int:
        return len(self._bounds)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._bounds.values()))

    def _section(self, view: View) -> Section:
        rows = [(name, *map(view.numbers.number, values), Bar(*values)) for name, *values in self._records(view).rows]
        columns = (*columns_of(["measure"], ["worth nothing", "without them", "worth most"]), Column(""))
        legend = "Bar: from the lower to the upper bound; line: the value without unjudged documents (condensed lists)."
        return Section([Table(columns, rows, bar_legend=legend)], "What unjudged documents leave open")

    def _records(self, view: View) -> Table:
        rows = [
            (name, one.lower.expected, self.condensed[name].expected, None if one.upper is None else one.upper.expected)
            for name, one in self.items()
        ]
        return Table(tuple(map(Column, ("measure", "lower", "condensed", "upper"))), rows)

    def _document(self, view: View) -> dict[str, Any]:
        return {
            name: bounds.to_dict() | {"condensed": self.condensed[name].to_dict()}
            for name, bounds in self._bounds.items()
        }


@takes_options("judged_only")
def unjudged(
    qrels: QrelsLike, run: RunLike, measures: MeasureLike | Iterable[MeasureLike], **options: Unpack[OptionNames]
) -> Unjudged:
    """The lowest and the highest value of measures over all labels of the run's unjudged documents.

    Both bounds are means over the same queries; with ``no_relevant="skip"``, over those with a known relevant
    document. RBP also counts the documents below the end of a list as unjudged, so upper − lower is its residual.
    Measures that divide by the number of relevant documents have no bounds: see `reason_against`.

    {options}

    >>> qrels = {"q": {"a": 1, "b": 0}}
    >>> run = {"q": {"a": 3.0, "x": 2.0, "b": 1.0}}
    >>> unjudged(qrels, run, ["P@3", "RBP(p=0.5)"])
    P@3 from 0.3333 to 0.6667
    RBP(p=0.5) from 0.5000 to 0.8750
    """
    chosen = parse_all(measures)
    for measure in chosen:
        reason = reason_against(measure)
        if reason:
            raise MeasureError(f"{measure} has no bounds over unjudged documents: {reason}")
    if isinstance(run, TieGroups):
        raise InputError("Tie groups do not hold the unjudged documents. Give the run itself.")
    if options.get("judged_only"):
        raise InputError(
            "judged_only (-J) removes unjudged documents from the lists, so there is nothing left to bound. Leave it "
            "out: `condensed` has the values without unjudged documents."
        )
    checked = Options.of("unjudged", options)
    judged, whole = as_qrels(qrels), edit_run(as_run(run), drop_self=checked.drop_self, distances=checked.distances)
    options = {**options, "drop_self": False, "distances": False}
    without: OptionNames = {**options, "judged_only": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutWarning)
        lower = evaluate(judged, whole, chosen, **options)
        condensed = evaluate(judged, whole, chosen, **without)
        upper: dict[Measure, Estimate] = {}
        by_label: dict[tuple[float, tuple[str, ...]], list[Measure]] = {}
        for measure in chosen:
            key = _highest_label(measure), tuple(lower.per_query(measure).queries)
            by_label.setdefault(key, []).append(measure)
        for (label, queries), some in by_label.items():
            if not queries:  # no query is left for a mean
                upper |= {measure: lower[measure] for measure in some}
                continue
            found = evaluate(_judge_all(judged, whole, label, set(queries)), whole, some, **options)
            upper |= {measure: _add_residual(found[measure]) for measure in some}
    bounds = {m.name: Bounds(lower[m], upper[m], measure=m.name) for m in chosen}
    return Unjudged(bounds, {m.name: condensed[m] for m in chosen})


def reason_against(measure: Measure) -> str | None:
    """Why a measure has no bounds over unjudged documents; None if it has bounds.

    >>> reason_against(c.P @ 10) is None
    True
    """
    if measure.judged_only:
        return "with judged_only=True they are not part of the lists. `condensed` has the values without them."
    if any(type(measure) is type(one) for one in BOUNDED):
        return None
    if any(type(measure) is type(one) for one in NORMALIZED):
        return (
            "it divides by the number of relevant documents. Unjudged documents outside the list could lower it down "
            "to 0, and those inside could raise or lower it. Use condensed lists (judged_only=True, -J), or bound P, "
            "RBP, Success or RR."
        )
    return f"they are known only for {', '.join(one.stem for one in BOUNDED)}."


def _highest_label(measure: Measure) -> float:
    """The label of an unjudged document in the best case."""
    if getattr(measure, "gains", "") == "graded":
        return float(getattr(measure, "max", 1))
    return float(getattr(measure, "rel", 1))


def _add_residual(found: Estimate) -> Estimate:
    """The estimate plus what is unknown if all documents of the list are judged (RBP below the end of the list)."""
    more = found.residual
    if not more or found.expected is None or found.minimum is None or found.maximum is None:
        return found
    return replace(
        found, expected=found.expected + more, minimum=found.minimum + more, maximum=found.maximum + more, residual=0.0
    )


def _judge_all(qrels: Qrels, run: Run, label: float, kept: Set[str]) -> Qrels:
    """The judgments of some queries, and `label` for every document of the run that has none."""
    query_of_run = positions(run.query_index, qrels.queries)
    _, found = run.find(qrels, query_of_run)
    is_unjudged = np.isin(run.query, query_of_run[query_of_run >= 0])
    is_unjudged[found[found >= 0]] = False
    rows = np.flatnonzero(is_unjudged)
    queries = [qrels.queries[code] for code in qrels.query.tolist()]
    queries += [run.queries[code] for code in run.query[rows].tolist()]
    docs = qrels.ids(np.arange(len(qrels))) + run.ids(rows)
    labels = np.append(qrels.label, np.full(len(rows), label))
    some = [row for row, query in enumerate(queries) if query in kept]
    return Qrels.from_columns([queries[row] for row in some], [docs[row] for row in some], labels[some])
