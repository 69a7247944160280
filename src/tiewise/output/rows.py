"""The rows of the machine formats: one for each run, measure and query, with stable column names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tiewise.metrics.estimate import Estimate
from tiewise.output.view import Named, View

__all__ = ["COLUMNS", "SIMILARITY_COLUMNS", "STAGES_COLUMNS", "TOOL_COLUMNS", "records", "rounded"]

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines, in this order, with what they hold. They are stable:
#: a later version may add columns at the end, and never renames or moves one. A cell is empty (null) where it does not
#: apply.
COLUMNS = {
    "run": "the name of the run: its file's name without folder and suffix",
    "measure": "the measure in its canonical spelling",
    "query": "the query's id, or `all` for the mean over queries (the sum, for counts)",
    "expected": "the mean over all orders of the tied documents: the value under a random order",
    "minimum": "the lowest value that an order of the tied documents can give",
    "maximum": "the highest",
    "std": "the standard deviation over all orders",
    "oblivious": "the value that one fixed order gives (`--oblivious`), as a tie-oblivious tool prints it",
    "bias": "oblivious − expected: the effect of that one order",
    "range": "maximum − minimum: how far the order of ties alone can move the value",
    "z": "bias / std: beyond ±4, the order is not blind to the labels",
    "residual": "what unjudged and unseen documents could still add (RBP)",
    "cut_lower": "the lowest that `expected` can be if lists were cut inside their last tie group",
    "cut_upper": "the highest",
}

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines with ``--tools``.
TOOL_COLUMNS = {
    "run": "the name of the run",
    "measure": "the measure in its canonical spelling",
    "tool": "a tool that reports this measure",
    "version": "the versions whose rule is meant",
    "value": "what it prints for this run; empty if that cannot be reproduced",
    "bias": "value − expected",
    "note": "how it differs from the measure's definition here, or why its number cannot be reproduced",
}

#: The columns of ``tiewise similarity``, in the same formats and as stable.
SIMILARITY_COLUMNS = {
    "observed": "the name of one run",
    "reference": "the name of the run it is measured against; a symmetric measure has one row for the two",
    "query": "the query's id, or `all` for the mean over the queries that all runs have",
    "lower": "the value if all that was not seen disagrees: its mean over the orders of ties",
    "lower_minimum": "the lowest that an order of the tied documents can make of that",
    "lower_maximum": "the highest",
    "upper": "the value if what was not seen agrees as far as it can: its mean over the orders of ties",
    "upper_minimum": "the lowest",
    "upper_maximum": "the highest",
    "extrapolated": "the value if what was not seen agrees as much as what was (RBO): its mean",
    "residual": "upper − lower: what the unseen leaves open",
}

#: The columns of ``tiewise recall``, in the same formats and as stable.
STAGES_COLUMNS = {
    "system": "the name of the first stage: its file's name without folder and suffix",
    "query": "the query's id, or `all` for the mean over the queries of the reference",
    "depth": "how many documents the first stage hands on",
    "phi": "the φ of rank-biased recall",
    "rbr_lower": "rank-biased recall if what the reference does not show comes last: its mean over the orders of ties",
    "rbr_upper": "the same if it comes next",
    "rbr_minimum": "the lowest value that an order of the tied documents can give, if it comes last",
    "rbr_maximum": "the highest, if it comes next",
    "recall": "the share of the reference's first k documents that is handed on, expected over the orders of ties",
    "cost": "what both stages take, by `--cost`",
    "pareto": "false if another line of that φ costs no more and its rbr_lower reaches this rbr_upper",
}


def records(reports: Sequence[Named], view: View) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
    """The names of the columns, and every row by column."""
    if view.tools:
        return tuple(TOOL_COLUMNS), _tool_records(reports)
    return tuple(COLUMNS), _estimate_records(reports, view)


def rounded(value: Any, digits: int | None) -> Any:
    """A number, or all numbers of a list or a dictionary, with so many digits behind the point; None leaves them."""
    if digits is None:
        return value
    if isinstance(value, float):
        return round(value, digits)
    if isinstance(value, dict):
        return {key: rounded(one, digits) for key, one in value.items()}
    return [rounded(one, digits) for one in value] if isinstance(value, list) else value


def _estimate_records(reports: Sequence[Named], view: View) -> Iterator[dict[str, Any]]:
    for name, report in reports:
        for measure, found in ((measure, report.per_query(measure)) for measure in report):
            keys = {"run": name, "measure": measure.name}
            if view.per_query:
                yield from (keys | {"query": query} | _statistics(estimate) for query, estimate in found.items())
            if view.summary:
                yield keys | {"query": "all"} | _statistics(report[measure])


def _statistics(estimate: Estimate) -> dict[str, float | None]:
    plain = estimate.to_dict()
    lower, upper = plain.pop("cut") or (None, None)
    return {name: plain[name] for name in COLUMNS if name in plain} | {"cut_lower": lower, "cut_upper": upper}


def _tool_records(reports: Sequence[Named]) -> Iterator[dict[str, Any]]:
    for name, report in reports:
        for row in report.oblivious_by_tool():
            yield {"run": name} | {column: getattr(row, column) for column in TOOL_COLUMNS if column != "run"}
