"""Stories of two numbers that should have been one, as people report them. Each cause has a size found by hand."""

from __future__ import annotations

from typing import Any

import pytest

import tiewise as tw
from twelve import Judgments, Lists

#: Ten queries, each with one relevant document.
ONE: Judgments = {f"q{place}": {"r": 1} for place in range(10)}


def lists(*docs: str, scores: list[float] | None = None, queries: int = 10) -> Lists:
    """The same list for each query, best first."""
    values = scores or [1.0 - place / 100 for place in range(len(docs))]
    return {f"q{place}": dict(zip(docs, values, strict=True)) for place in range(queries)}


def story(qrels: Judgments, run: Lists, measure: str, *tools: str, **causes: float) -> Any:
    """One case: two tools, and what the causes add, by their names with _ for blanks."""
    return qrels, run, measure, tools, {name.replace("_", " "): size for name, size in causes.items()}


SELF: Lists = {query: {query: 0.99, "r": 0.8, "x": 0.7} for query in ONE}
GRADED: Judgments = {f"q{place}": {"a": 1, "b": 3} for place in range(10)}
SOME: Judgments = ONE | {f"q{place}": {"x": 0, "r": 0} for place in range(8, 10)}
MANY: Judgments = {f"q{place}": {f"r{one}": 1 for one in range(4)} for place in range(10)}
FRACTIONS: Judgments = {f"q{place}": {"r": 1.0, "s": 0.9} for place in range(10)}
DCG = (1 + 3 / 1.584962500721156) / (3 + 1 / 1.584962500721156)
UNCUT = (0.9 + 1 / 1.584962500721156) / (1 + 0.9 / 1.584962500721156)
CUT = 1 / 1.584962500721156
EXP = (1 + 7 / 1.584962500721156) / (7 + 1 / 1.584962500721156)

STORIES = {
    "MAP .1957 and .1958: scores that tie in float32": story(
        ONE, lists("r", "x", scores=[0.123456789, 0.123456788]), "AP", "trec_eval", "pytrec_eval", score_type=-0.5
    ),
    "ArguAna: the query is a document": story(
        ONE, SELF, "nDCG@10", "pytrec_eval", "beir", **{"self-documents": 1 - 1 / 1.584962500721156}
    ),
    "relevant candidates are listed first": story(
        ONE, lists("r", "a", "b", "c", scores=[1.0] * 4), "RR@10", "mteb-2.18", "tiewise", order_of_ties=25 / 48 - 1
    ),
    "ids ascending or descending": story(
        ONE, lists("r", "x", scores=[1.0, 1.0]), "RR@10", "mteb", "sentence-transformers", order_of_ties=0.5
    ),
    "exponential gain": story(GRADED, lists("a", "b"), "nDCG@10", "trec_eval", "trec_eval --gains exp", gain=EXP - DCG),
    "AP@k of sentence-transformers": story(
        MANY, lists("r0", "r1", "x"), "AP@2", "mteb", "sentence-transformers", divisor=0.5
    ),
    "queries without results": story(
        ONE, lists("r", queries=7), "nDCG@10", "mteb", "ir_measures", missing_queries=-0.3
    ),
    "queries without relevant documents": story(
        SOME, lists("r"), "RR@10", "trec_eval", "sentence-transformers", queries_without_relevant_documents=0.2
    ),
    "judged documents only": story(ONE, lists("x", "r"), "RR", "trec_eval", "trec_eval -J", unjudged_documents=0.5),
    "another label threshold": story(
        GRADED, lists("a", "x", "b"), "RR", "trec_eval", "trec_eval -l 2", label_threshold=1 / 3 - 1
    ),
    "labels that are fractions": story(
        FRACTIONS, lists("s", "r"), "nDCG@10", "docid-asc", "docid-asc --labels cut", fractional_labels=CUT - UNCUT
    ),
    "lists of another depth": story(ONE, lists("x", "y", "r"), "AP", "trec_eval", "trec_eval -M 2", lists_cut=-1 / 3),
    "two conventions at once": story(
        ONE, lists("r", "x", scores=[1.0, 1.0], queries=5), "RR@10", "mteb", "ir_measures",
        missing_queries=-0.25, order_of_ties=0.25,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_a_story(name: str) -> None:
    qrels, run, measure, tools, causes = STORIES[name]
    found = tw.why(qrels, run, measure, tools=tools)
    sizes = {one.cause: one.contribution for one in found.causes if abs(one.contribution) > 1e-12}
    assert sizes == pytest.approx(causes, abs=1e-12)
    assert found.difference == pytest.approx(sum(causes.values()), abs=1e-12)


def test_arguana_as_it_was_printed() -> None:
    """31.5 in a paper and 41.4 on a leaderboard, in per cent: the first kept the query in its own list."""
    found_at = {1: 2, 2: 9, 4: 11, 8: 20, 12: 18}  # the rank of the relevant document without the query: how often
    qrels: Judgments = {}
    run: Lists = {}
    for rank, count in found_at.items():
        for place in range(count):
            query = f"a{rank}-{place}"
            docs = [query, *(f"x{one}" for one in range(rank - 1)), "b"]
            qrels[query], run[query] = {"b": 1}, {doc: 1.0 / (1 + one) for one, doc in enumerate(docs)}
    values = tw.why(qrels, run, "nDCG@10", tools=("mteb", "beir")).values
    printed = [f"{100 * value:.1f}" for value in values]
    found = tw.why(qrels, run, "nDCG@10", numbers=printed, tools=("mteb",))
    assert [one.cause for one in found.causes] == ["self-documents", "printed digits"]
    assert found.consistent_with == f"{printed[0]} as mteb; {printed[1]} as mteb, self-documents: dropped"
    note = "60 lists hold the document with the id of the query; some tasks of mteb drop it: 'mteb --drop-self'."
    assert tw.why(qrels, run, "nDCG@10", tools=("mteb", "tiewise")).notes == (note,)


def test_a_model_in_bfloat16_and_in_float32() -> None:
    """The same two documents are ranked, but bfloat16 ties them."""
    run, other = lists("x", "r", scores=[0.7578, 0.7581]), lists("x", "r", scores=[0.7578125, 0.7578125])
    found = tw.why(ONE, run, "RR", other=other)
    assert {one.cause: one.contribution for one in found.causes if one.contribution} == {"ties of other": -0.5}
    assert not tw.why(ONE, run, "RR", other=other, tools="docid-asc").difference
