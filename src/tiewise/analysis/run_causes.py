"""Two runs as one tool reads them: queries, documents, ties and the order of the scores as causes of a difference.

On the way from the first run to the second, the lists of the first lose what the second lacks; their ties are broken as
the second orders them; the second's order replaces theirs, its ties broken by the first; then come its own ties, and
its other documents and queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.causes import Cause, Why, add_up, compute_value
from tiewise.analysis.measuring import Evaluation
from tiewise.analysis.options import Options
from tiewise.analysis.settings import Numbers, Settings
from tiewise.analysis.tool_settings import parse_tool
from tiewise.data.columns import Floats, is_first, positions
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import InputError, prefix_errors
from tiewise.io.edited_run import edit_run
from tiewise.metrics.definition import Measure
from tiewise.metrics.segments import safe_divide
from tiewise.results.wording import SHORT, count_noun, format_percent, list_examples
from tiewise.ties.counted import RunSource
from tiewise.ties.orders import find_reordered

RUNS = "run", "other"  #: what the two runs are called


def explain_runs(
    qrels: Qrels, sources: tuple[RunSource, RunSource], measure: Measure, tool: str, options: Options
) -> Why:
    """The causes of the difference of two runs in a measure, both read by one tool."""
    given: list[Evaluation] = []
    each: list[Settings] = []
    for name, source in zip(RUNS, sources, strict=True):
        with prefix_errors(name):
            given.append(Numbers.of(qrels, source, measure, options).given)
            each.append(parse_tool(tool, measure, given[-1]))
    a, b = (_read(source, settings, options) for source, settings in zip(sources, each, strict=True))
    missing = "skip" if "skip" in (one.missing for one in each) else "zero"  # it was dropped where no query is missing
    settings = each[0]._replace(missing=missing, drop_self=False, score_dtype="float64")  # they are read already
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
    ranks = _rank(lists, score_a, score_b), _rank(lists, score_b, score_a)
    orders = (replace(common_a, value=one) for one in ranks)
    stages = (a, same_a, common_a, *orders, common_b, same_b, b)
    numbers = [Numbers.of_edited(qrels, one) for one in stages]
    reordered = len(find_reordered(lists, score_a, score_b))
    queries = len(a.queries) - len(same_a.queries), len(b.queries) - len(same_b.queries)
    documents = len(same_a) - len(common_a), len(same_b) - len(common_b)
    ties = common_a.tied_share, common_b.tied_share
    causes = (  # with how much there is of each
        (queries[0], ("queries in run only", f"{queries[0]:,}", "")),
        (documents[0], ("documents in run only", f"{documents[0]:,}", "")),
        (ties[0], ("ties of run", f"{format_percent(ties[0])} of rows", "as other orders them")),
        (reordered, ("order of the scores", "", f"differs in {count_noun(reordered, 'list')}")),
        (ties[1], ("ties of other", "as run orders them", f"{format_percent(ties[1])} of rows")),
        (documents[1], ("documents in other only", "", f"{documents[1]:,}")),
        (queries[1], ("queries in other only", "", f"{queries[1]:,}")),
    )
    values = (compute_value(numbers[0], "run", settings), compute_value(numbers[-1], "other", settings))
    steps = ((*cause, one.value(settings)) for (some, cause), one in zip(causes, numbers[1:], strict=True) if some)
    found = tuple(add_up(values[0], steps))
    notes = *_describe_cancelling(found), *_describe_self(given), *_describe_scores(lists, score_a, score_b)
    return Why(measure.name, RUNS, values, found, notes)


def _describe_cancelling(causes: Sequence[Cause]) -> Iterator[str]:
    """The sums of causes in one run and in the other, where one hides a good part of the other."""
    size, sums = {one.cause: one.contribution for one in causes}, []
    for what, where in (("queries", "in {} only"), ("documents", "in {} only"), ("ties", "of {}")):
        both = [where.format(name) for name in RUNS]
        one, two = (size.get(f"{what} {there}", 0.0) for there in both)
        if one * two < 0 and min(abs(one), abs(two)) > max(abs(one), abs(two)) / 4:
            sums.append(f"{what} {' and '.join(both)} {SHORT.signed(one + two, tiny='≈0')}")
    if sums:
        yield f"Added up: {', '.join(sums)}."


def _describe_self(given: Sequence[Evaluation]) -> Iterator[str]:
    """In how many lists there are documents with the id of their query, where one run alone has most of them."""
    has = [one.self_queries > one.counted.n_present / 2 and one.self_stands_first for one in given]
    if has[0] != has[1]:
        first, second = (count_noun(one.self_queries, "list") for one in given)
        yield f"Documents with their query's id: in {first} of run, in {second} of other."


def _describe_scores(lists: NDArray[np.int64], first: Floats, second: Floats) -> Iterator[str]:
    """What is to be said of the scores of the documents of both runs."""
    if not len(first):
        yield "The two runs have no document in common."
    elif np.array_equal(first, second):
        yield "Documents of both runs have the same scores."
    elif not len(find_reordered(lists, first, second)):
        yield "Scores differ only by a monotone change, or in ties."
    elif _correlate(lists, _rank(lists, first, second), _rank(lists, second, first)) < -0.5:
        yield "Most documents are in opposite order: one of the runs may hold distances."


def _read(source: RunSource, settings: Settings, options: Options) -> Run:
    """The rows of a run as a tool reads them."""
    run = edit_run(source.rows(), drop_self=settings.drop_self, distances=options.distances)
    return run if settings.score_dtype == "float64" else run.projected(settings.score_dtype)


def _correlate(lists: NDArray[np.int64], first: Floats, second: Floats) -> float:
    """The correlation of two scores within lists."""
    one, two = (x - (np.bincount(lists, weights=x) / np.bincount(lists).clip(1))[lists] for x in (first, second))
    return float(safe_divide(one @ two, np.sqrt((one @ one) * (two @ two))))


def _rank(lists: NDArray[np.int64], first: Floats, then: Floats) -> Floats:
    """Scores that rank the documents of each list by `first`, and ties by `then`; ties in both stay."""
    order = np.lexsort((then, first, lists))
    rank = np.empty(len(order))
    rank[order] = np.cumsum(is_first(lists[order], first[order], then[order]))
    return rank
