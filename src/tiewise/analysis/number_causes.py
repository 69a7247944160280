"""`why`: why two numbers differ, of two tools, of two runs, or two printed ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tiewise.analysis.causes import Why, compute_value, find_causes
from tiewise.analysis.measuring import resolve_measures
from tiewise.analysis.options import Options
from tiewise.analysis.printed_numbers import explain_numbers
from tiewise.analysis.run_causes import explain_runs
from tiewise.analysis.settings import Numbers
from tiewise.analysis.tool_settings import OURS, describe_self, has_ranks, parse_tool, reads_ranks
from tiewise.errors import InputError
from tiewise.io import as_qrels, as_source
from tiewise.io.sources import check_not_swapped
from tiewise.io.types import QrelsLike, RunLike
from tiewise.metrics.names import MeasureLike

DEFAULT_MEASURE = "nDCG@10"


def why(
    qrels: QrelsLike,
    run: RunLike,
    measure: MeasureLike | None = None,
    *,
    tools: str | Sequence[str] = (),
    numbers: Sequence[str | float] = (),
    other: RunLike | None = None,
    distances: bool = False,
) -> Why:
    """Why two numbers differ: the causes, whose contributions add up to the difference.

    - `measure`: that of both numbers (default: nDCG@10); printed numbers need it.
    - `tools`: two tools (those of ``evaluate --tools``, ``"tiewise"`` for the expected value, or an order of ties),
      each perhaps with options: ``"trec_eval -c -l 2"``, ``"mteb --drop-self"``. One is compared with the expected
      value.
    - `numbers`: two printed numbers, as text with all their digits. Settings that print them are searched: of all
      tools, or of those in `tools`.
    - `other`: a second run. Both are read as one of the `tools` reads them (default: missing queries count as 0, ties
      are in descending order of ids).
    - `distances`: the scores are distances, lowest first: negate them.

    >>> qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5, "c": 0.1}}
    >>> why(qrels, run, "RR", tools=("trec_eval", "tiewise"))
    RR: trec_eval .5000, tiewise .7500, difference +.2500
    cause          trec_eval       tiewise             contribution
    order of ties  ids descending  mean of all orders        +.2500
    Order of ties: the whole difference.
    """
    names, printed = _as_tuple(tools), _as_tuple(numbers)
    if printed and measure is None:
        raise InputError("Give the measure of the two numbers, such as nDCG@10 (-m).")
    chosen = resolve_measures(DEFAULT_MEASURE if measure is None else measure)
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"tools={tools!r} is not possible. Give names, as in ('trec_eval -c', 'mteb').")
    if len(chosen) != 1:
        raise InputError(f"Give one measure, not {len(chosen)}.")
    if printed and other is not None:
        raise InputError("Give two numbers or another run, not both.")
    judged, source = as_qrels(qrels), as_source(run)
    check_not_swapped(qrels, run, judged)
    reads = reads_ranks(names) or (bool(printed) and has_ranks(source))
    options = Options(distances=distances, oblivious="rank" if reads else "trec_eval")
    if other is not None:
        if len(names) > 1:
            raise InputError(f"Two runs are read by one tool, not {len(names)}.")
        return explain_runs(judged, (source, as_source(other)), chosen[0], names[0] if names else "docid-desc", options)
    if not printed:
        names = (*names, OURS) if len(names) == 1 else names
        if len(names) != 2:
            raise InputError(
                f"Give one tool or two{f', not {len(names)}' if names else ', two numbers or another run'}."
            )
    counted = Numbers.of(judged, source, chosen[0], options)
    if printed:
        return explain_numbers(counted, chosen[0], printed, names)
    a, b = (parse_tool(name, chosen[0], counted.given) for name in names)
    values = compute_value(counted, names[0], a), compute_value(counted, names[1], b)
    notes = tuple(describe_self(names, counted.given))
    return Why(chosen[0].name, (names[0], names[1]), values, tuple(find_causes(counted, a, b)), notes)


def _as_tuple(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
