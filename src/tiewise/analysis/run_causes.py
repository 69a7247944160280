"""Two runs as one tool reads them: queries, documents, ties and the order of the scores as causes of a difference.

On the way from the first run to the second, the lists of the first lose what the second lacks; their ties are broken as
the second orders them; the second's order replaces theirs, its ties broken by the first; then come its own ties, and
its other documents and queries.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.causes import Why, add_up, compute_value
from tiewise.analysis.measuring import Evaluation
from tiewise.analysis.options import Options
from tiewise.analysis.settings import Numbers, Settings
from tiewise.analysis.tool_settings import parse_tool
from tiewise.data.columns import Floats, positions
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io.edited_run import edit_run
from tiewise.metrics.definition import Measure
from tiewise.results.wording import count_noun, format_percent, list_examples
from tiewise.ties.counted import RunSource
from tiewise.ties.orders import find_reordered


def explain_runs(
    qrels: Qrels, sources: tuple[RunSource, RunSource], measure: Measure, tool: str, options: Options
) -> Why:
    """The causes of the difference of two runs in a measure, both read by one tool."""
    each = [parse_tool(tool, measure, Evaluation.of(qrels, source, options, [measure])) for source in sources]
    a, b = (_read(source, settings, options) for source, settings in zip(sources, each, strict=True))
    missing = "skip" if "skip" in (one.missing for one in each) else "zero"  # it was dropped where no query is missing
    settings = replace(each[0], missing=missing, drop_self=False, score_dtype="float64")  # they are read already
    same_a, same_b = a.select_queries(b.queries), b.select_queries(a.queries)
    if not same_a.queries:
        raise InputError(
            f"The two runs have no query in common. Queries of run: {list_examples(a.queries)}; of other: "
            f"{list_examples(b.queries)}."
        )
    rows = same_b.find(same_a, positions(same_b.query_index, same_a.queries))[1]  # of b, for each row of a
    common_a, common_b = same_a.take(np.flatnonzero(rows >= 0)), same_b.take(np.sort(rows[rows >= 0]))
    score_a, score_b = common_a.score, same_b.score[rows[rows >= 0]]  # (n_common,), as the rows of a
    lists = common_a.query
    stages = (
        a,
        same_a,
        common_a,
        replace(common_a, value=_rank(lists, score_a, score_b)),
        replace(common_a, value=_rank(lists, score_b, score_a)),
        common_b,
        same_b,
        b,
    )
    numbers = [Numbers.of_edited(qrels, one) for one in stages]
    reordered = len(find_reordered(lists, score_a, score_b))
    of_lists = count_noun(len(same_a.queries), "list")
    causes = (
        ("queries in run only", f"{len(a.queries) - len(same_a.queries):,}", ""),
        ("documents in run only", f"{len(same_a) - len(common_a):,}", ""),
        ("ties of run", f"{format_percent(common_a.tied_share)} of rows", "as other orders them"),
        ("order of the scores", "", f"another order in {reordered:,} of {of_lists}"),
        ("ties of other", "as run orders them", f"{format_percent(common_b.tied_share)} of rows"),
        ("documents in other only", "", f"{len(same_b) - len(common_b):,}"),
        ("queries in other only", "", f"{len(b.queries) - len(same_b.queries):,}"),
    )
    values = (compute_value(numbers[0], "run", settings), compute_value(numbers[-1], "other", settings))
    steps = [(*cause, found.value(settings)) for cause, found in zip(causes, numbers[1:], strict=True)]
    notes = []
    if not reordered:
        notes.append("No two documents are in opposite order: scores differ by a monotone change, or in ties.")
    return Why(measure.name, ("run", "other"), values, tuple(add_up(values[0], steps)), tuple(notes))


def _read(source: RunSource, settings: Settings, options: Options) -> Run:
    """The rows of a run as a tool reads them."""
    run = edit_run(source.rows(), drop_self=settings.drop_self, distances=options.distances)
    return run if settings.score_dtype == "float64" else run.projected(settings.score_dtype)


def _rank(lists: NDArray[np.int64], first: Floats, then: Floats) -> Floats:
    """Scores that rank the documents of each list by `first`, and ties by `then`; ties in both stay."""
    order = np.lexsort((then, first, lists))
    new = np.ones(len(order), dtype=bool)
    keys = (key[order] for key in (lists, first, then))
    new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    rank = np.empty(len(order))
    rank[order] = np.cumsum(new)
    return rank
