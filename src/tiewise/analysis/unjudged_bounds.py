"""`unjudged`: what documents that nobody judged could make of a measure.

The usual value takes an unjudged document as not relevant. That is the lower bound; the upper one takes every unjudged
document of the run as relevant. For measures that divide by nothing that depends on the judgments, any other labelling
lies between the two. These bounds are about judgments and say nothing about ties: each is an Estimate over the orders
of ties.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tiewise.analysis.evaluating import evaluate
from tiewise.analysis.options import OptionNames
from tiewise.data.columns import positions
from tiewise.data.runs import Qrels, Run
from tiewise.errors import CutWarning, InputError, MeasureError
from tiewise.io import as_qrels, as_run
from tiewise.io.types import QrelsLike, RunLike
from tiewise.metrics import catalogue as c
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Bounds, Estimate
from tiewise.metrics.names import MeasureLike, parse, parse_all
from tiewise.tables.model import Bar, Column, Section, Table
from tiewise.tables.results import Result
from tiewise.ties.groups import TieGroups

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Unjudged", "reason_against", "unjudged"]

#: Measures that only rise when an unjudged document of the run turns out to be relevant, and have a highest label.
BOUNDED = (c.P, c.Hits, c.Success, c.RR, c.RBP, c.Judged, c.SetP)
#: Measures that divide by what is relevant in all, retrieved or not.
SHARES = (c.AP, c.nDCG, c.R, c.F, c.F1, c.Rprec, c.SetR, c.Bpref, c.nERR)


class Unjudged(Result, Mapping[str, Bounds]):
    """For each measure its bounds over all judgments of the unjudged; `condensed` has the value without them."""

    def __init__(self, bounds: Mapping[str, Bounds], condensed: Mapping[str, Estimate]):
        self._bounds = dict(bounds)
        self.condensed = dict(condensed)  #: the measure on condensed lists: unjudged documents are taken out first

    def __getitem__(self, measure: str | Measure) -> Bounds:
        return self._bounds[parse(measure).name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._bounds)

    def __len__(self) -> int:
        return len(self._bounds)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._bounds.values()))

    def _section(self) -> Section:
        rows = []
        for name, one in self._bounds.items():
            three = (one.lower, self.condensed[name], one.upper)
            low, middle, high = (None if part is None else part.expected for part in three)
            rows.append((name, *(part and f"{part:.4f}" for part in three), Bar(low, middle, high)))
        heads = ("measure", "unjudged worth nothing", "without them", "worth most", "")
        note = "Bar: from the lower to the upper bound; line: the value without unjudged documents (condensed lists)."
        return Section([Table(tuple(map(Column, heads)), rows)], "What unjudged documents leave open", [note])

    def _records(self) -> Table:
        return Table.of_columns(
            {
                "measure": list(self),
                "lower": [one.lower.expected for one in self.values()],
                "condensed": [self.condensed[name].expected for name in self],
                "upper": [None if one.upper is None else one.upper.expected for one in self.values()],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            name: bounds.to_dict() | {"condensed": self.condensed[name].to_dict()}
            for name, bounds in self._bounds.items()
        }


def unjudged(
    qrels: QrelsLike, run: RunLike, measures: MeasureLike | Iterable[MeasureLike], **options: Unpack[OptionNames]
) -> Unjudged:
    """The lowest and the highest value of measures over all judgments of the run's unjudged documents.

    `options` are those of `evaluate`, but for `judged_only`: `condensed` has that. Both bounds are means over the same
    queries: with ``no_relevant="skip"`` those in which a relevant document is known. RBP counts what a list does not
    show as unjudged too, so that upper − lower is its residual. Measures that divide by the number of relevant
    documents are refused: see `reason_against`.

    >>> qrels = {"q": {"a": 1, "b": 0}}
    >>> run = {"q": {"a": 3.0, "x": 2.0, "b": 1.0}}
    >>> unjudged(qrels, run, ["P@3", "RBP(p=0.5)"])
    P@3 [0.3333, 0.6667]
    RBP(p=0.5) [0.5000, 0.8750]
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
            "judged_only (-J) takes unjudged documents out of the lists, so there is nothing left to bound. Leave it "
            "out: the values without them stand beside the bounds as `condensed`."
        )
    judged, whole = as_qrels(qrels), as_run(run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutWarning)
        lower = evaluate(judged, whole, chosen, **options)
        condensed = evaluate(judged, whole, chosen, **(options | {"judged_only": True}))
        upper: dict[Measure, Estimate] = {}
        kinds: dict[tuple[float, tuple[str, ...]], list[Measure]] = {}
        for measure in chosen:
            kinds.setdefault((_highest(measure), tuple(lower.per_query(measure).queries)), []).append(measure)
        for (label, queries), some in kinds.items():
            if not queries:  # no query is left to take the mean over
                upper |= {measure: lower[measure] for measure in some}
                continue
            found = evaluate(_all_judged(judged, whole, label, set(queries)), whole, some, **options)
            upper |= {measure: _with_unseen(found[measure]) for measure in some}
    bounds = {m.name: Bounds(lower[m], upper[m], measure=m.name) for m in chosen}
    return Unjudged(bounds, {m.name: condensed[m] for m in chosen})


def reason_against(measure: Measure) -> str | None:
    """Why a measure has no such bounds; None if it has.

    >>> reason_against(c.P @ 10) is None
    True
    """
    if any(type(measure) is type(one) for one in BOUNDED):
        return None
    if any(type(measure) is type(one) for one in SHARES):
        return (
            "what divides by all that is relevant may be lowered, down to 0, by every unjudged document outside the "
            "list, and raised or lowered by one inside. Use condensed lists (judged_only=True, -J), or bound P, RBP, "
            "Success or RR."
        )
    return f"these are known for {', '.join(one.stem for one in BOUNDED)} alone."


def _highest(measure: Measure) -> float:
    """The label that an unjudged document is given in the best case."""
    if getattr(measure, "gains", "") == "graded":
        return float(getattr(measure, "max", 1))
    return float(getattr(measure, "rel", 1))


def _with_unseen(found: Estimate) -> Estimate:
    """The estimate with what is still unknown when all documents shown are judged (RBP beyond the list's end)."""
    more = found.residual
    if not more or found.expected is None or found.minimum is None or found.maximum is None:
        return found
    return replace(
        found, expected=found.expected + more, minimum=found.minimum + more, maximum=found.maximum + more, residual=0.0
    )


def _all_judged(qrels: Qrels, run: Run, label: float, kept: Set[str]) -> Qrels:
    """The judgments of some queries, and `label` for every document of the run that has none."""
    places = positions(run.query_index, qrels.queries)
    _, found = run.find(qrels, places)
    open_ = np.zeros(len(run) + 1, dtype=bool)
    there = places[places >= 0]
    for low, high in zip(run.offsets[there].tolist(), run.offsets[there + 1].tolist(), strict=True):
        open_[low:high] = True
    open_[found[found >= 0]] = False
    rows = np.flatnonzero(open_[:-1])
    queries = [qrels.queries[place] for place in qrels.query.tolist()] + [
        run.queries[place] for place in run.query[rows].tolist()
    ]
    docs = qrels.ids(np.arange(len(qrels))) + run.ids(rows)
    labels = np.append(qrels.label, np.full(len(rows), label))
    some = [place for place, query in enumerate(queries) if query in kept]
    return Qrels.from_columns([queries[at] for at in some], [docs[at] for at in some], labels[some])
