"""Tie groups: counting against looking, shards against the whole, dicts against columns, every tie-break order."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiewise as tw
from tiewise.data.columns import project
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io import as_source
from tiewise.io.memory_run import DictRun
from tiewise.ties import TieGroups, judged_scores, notation, tie_groups
from tiewise.ties.counted import Request, count_lists
from tiewise.ties.counting import count_ties

ORDERS = ("docid-desc", "docid-asc", "given", "rank")

ids = st.text(alphabet="abzAé10-", min_size=1, max_size=3)
scores = st.sampled_from([0.0, -0.0, 0.5, 1.0, 1.5, float("inf"), float("-inf")])
tables = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "10"]), st.dictionaries(ids, scores, max_size=9), min_size=1, max_size=4
)
judgments = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "10"]),
    st.dictionaries(ids, st.sampled_from([0, 1, 2, -1]), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
)


def looked_up(qrels: Qrels, run: dict[str, dict[str, float]], ranks: dict[str, dict[str, int]], order: str):
    """Start, size and the tied documents ahead, by looking at each list."""
    for query, doc, _ in qrels:
        listed = run.get(query, {})
        if doc not in listed:
            yield 0, 0, 0
            continue
        tied = [other for other in listed if listed[other] == listed[doc]]
        given = list(listed)
        keys = {
            "docid-desc": lambda d: (*(-b for b in d.encode()), 1),
            "docid-asc": lambda d: d.encode(),
            "given": given.index,
            "rank": lambda d, query=query: ranks[query][d],
        }
        ahead = sorted(tied, key=keys[order]).index(doc)
        yield sum(score > listed[doc] for score in listed.values()), len(tied), ahead


def with_ranks(run: Run, ranks: dict[str, dict[str, int]]) -> Run:
    column = np.array([ranks[query][doc] for query, doc, _ in run], dtype=np.int64)
    return Run(run.queries, run.offsets, run.documents, run.value, rank=column)


@settings(max_examples=300, deadline=None)
@given(table=tables, judged=judgments, seed=st.integers(0, 99), ordered=st.booleans())
def test_counting_finds_what_looking_finds(table, judged, seed, ordered):
    if ordered:  # the bisecting path: lists from high to low
        table = {q: dict(sorted(d.items(), key=lambda item: -item[1])) for q, d in table.items()}
    shuffled = random.Random(seed)
    ranks = {q: dict(zip(d, shuffled.sample(range(1, 99), len(d)), strict=True)) for q, d in table.items()}
    qrels, run = Qrels.from_dict(judged), with_ranks(Run.from_dict(table), ranks)
    found, in_python = tie_groups(qrels, run, ORDERS), count_ties(qrels, run, ORDERS)["float64"]
    assert_equal(found, in_python)
    for order in ORDERS:
        truth = list(looked_up(qrels, table, ranks, order))
        assert list(zip(found.start, found.size, found.before[order], strict=True)) == truth
    for place, query in enumerate(qrels.queries):
        values = list(table.get(query, {}).values())
        assert found.present[place] == (query in table)
        assert found.length[place] == len(values)
        if values:
            assert found.lowest[place] == min(values)
            assert found.lowest_size[place] == values.count(min(values))


@settings(max_examples=100, deadline=None)
@given(table=tables, judged=judgments)
def test_a_dict_counts_like_a_run(table, judged):
    qrels = Qrels.from_dict(judged)
    dtypes = ("float64", "float32", "float16", "decimal:0")
    run = Run.from_dict(table)
    reference = count_lists(run, Request(qrels, ORDERS[:3], dtypes, "decimal:2"))
    assert list(DictRun(table).rows()) == list(run)  # in the given order, too
    for source in (as_source(table), as_source(run)):
        counted = source.count(qrels, ORDERS[:3], dtypes, score_dtype="decimal:2")
        for dtype in dtypes:
            assert_equal(counted.ties[dtype], reference.ties[dtype])
        assert counted.found.tolist() == reference.found.tolist()
        assert (counted.tied_rows, counted.new_ties) == (reference.tied_rows, reference.new_ties)


@settings(max_examples=100, deadline=None)
@given(table=tables, judged=judgments)
def test_documents_of_label_0_need_not_be_counted(table, judged):
    """The other documents have the same counts, and a list with any judged document is known as such."""
    qrels = Qrels.from_dict(judged)
    rows = np.flatnonzero(qrels.label)
    run = Run.from_dict(table)
    everything = as_source(run).count(qrels, ORDERS[:3])
    for source in (as_source(table), as_source(run)):
        counted = source.count(qrels.nonzero, ORDERS[:3])
        assert counted.found.tolist() == everything.found.tolist()
        for dtype, ties in counted.ties.items():
            assert_equal(ties, everything.ties[dtype].take(rows))
    reference = count_lists(run, Request(qrels.nonzero, ORDERS[:3], ("float64",)))
    assert reference.found.tolist() == everything.found.tolist()


@settings(max_examples=200, deadline=None)
@given(table=tables, judged=judgments, seed=st.integers(0, 99), pieces=st.integers(1, 4))
def test_shards_add_up_to_the_whole(table, judged, seed, pieces):
    """Cut by document into any pieces, the counts of the pieces are those of the whole, in every order."""
    cut = random.Random(seed)
    shards: list[dict[str, dict[str, float]]] = [{} for _ in range(pieces)]
    for query, docs in table.items():
        for doc, score in docs.items():
            shards[cut.randrange(pieces)].setdefault(query, {})[doc] = score
    whole = {q: {d: s for shard in shards for d, s in shard.get(q, {}).items()} for q in table if table[q]}
    qrels = Qrels.from_dict(judged)
    merged = TieGroups.from_shards(qrels, [Run.from_dict(shard) for shard in shards], ORDERS[:3])
    assert_equal(merged, tie_groups(qrels, Run.from_dict(whole), ORDERS[:3]))


def assert_equal(a: TieGroups, b: TieGroups) -> None:
    for name in ("score", "start", "size", "length", "present", "lowest", "lowest_size"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert set(a.before) == set(b.before)
    for order in a.before:
        np.testing.assert_array_equal(a.before[order], b.before[order], err_msg=order)


def test_tie_groups_of_whatever_evaluate_takes(tmp_path):
    import pandas

    table, judged = {"q": {"a": 1.0, "b": 1.0, "c": 2.0}}, {"q": {"a": 1, "c": 0}}
    tw.io.write_qrels(judged, tmp_path / "qrels.txt")
    tw.write_run(table, tmp_path / "run.trec")
    rows = [(q, d, s) for q, docs in table.items() for d, s in docs.items()]
    frame = pandas.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    for run in (str(tmp_path / "run.trec"), table, frame, rows, Run.from_dict(table)):
        ties = tw.tie_groups(str(tmp_path / "qrels.txt"), run)
        assert (ties.start.tolist(), ties.size.tolist()) == ([1, 0], [2, 1])
        assert tw.judged_scores(judged, run).tolist() == [1.0, 2.0]
        assert TieGroups.from_shards(judged, [run, {"q": {"z": 3.0}}]).start.tolist() == [2, 1]
    with pytest.raises(InputError, match="is not a run"):
        tw.tie_groups(judged, 3)


def test_one_is_said_in_the_singular():
    ties = tie_groups({"q": {"a": 1}}, {"q": {"a": 1.0}})
    assert repr(ties) == "<TieGroups: 1 query, 1 judged document retrieved, 0 of them tied>"
    with pytest.raises(InputError, match=r"\(1 such document\)"):
        TieGroups.from_shards({"q": {"a": 1}}, [{"q": {"a": 1.0}}] * 2)


def test_shards_that_cannot_be_merged():
    qrels = Qrels.from_dict({"q": {"a": 1, "b": 1}})
    left, right = Run.from_dict({"q": {"a": 1.0}}), Run.from_dict({"q": {"b": 2.0}})
    with pytest.raises(InputError, match="different scores"):
        TieGroups.merge([tie_groups(qrels, left), tie_groups(qrels, right)])
    with pytest.raises(InputError, match="given twice"):
        TieGroups.from_shards(qrels, [left, left])
    other = Qrels.from_dict({"q": {"a": 1, "c": 1}})
    with pytest.raises(InputError, match="different qrels"):
        TieGroups.merge([tie_groups(qrels, left), tie_groups(other, left)])
    ranked = with_ranks(left, {"q": {"a": 1}})
    with pytest.raises(InputError, match="one ranking"):
        TieGroups.from_shards(qrels, [ranked], ["rank"])
    with pytest.raises(InputError, match="no rank column of whole numbers"):
        tie_groups(qrels, left, ["rank"])
    with pytest.raises(InputError, match="Unknown tie-break order"):
        tie_groups(qrels, left, ["random"])
    with pytest.raises(InputError, match="no shards"):
        TieGroups.from_shards(qrels, [])
    with pytest.raises(InputError, match="different tie-break orders"):
        scores = judged_scores(qrels, left)
        TieGroups.merge([tie_groups(qrels, left, orders, scores=scores) for orders in (["given"], ["docid-asc"])])
    assert_equal(TieGroups.from_shards(qrels, [{"q": {"a": 1.0}}, right]), TieGroups.from_shards(qrels, [left, right]))
    assert judged_scores(qrels, left).tolist()[0] == 1.0


def test_notation():
    ties = notation("(2-0) 1|3")
    assert ties.qrels.label.tolist() == [2, 0, 1, 3]
    assert (ties.start.tolist(), ties.size.tolist()) == ([0, 0, 3, 0], [3, 3, 1, 0])
    assert ties.before["given"].tolist() == [0, 2, 0, 0]
    for bad in ("(1", "1)", "((1))", "1x", "1|x", "()("):
        with pytest.raises(InputError, match="ranking notation"):
            notation(bad)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_projection_is_the_types_own_rounding(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.random.default_rng(0).normal(size=10_000) * 10.0 ** np.random.default_rng(1).integers(-9, 9, 10_000)
    values = np.concatenate([values, [0.0, -0.0, np.inf, -np.inf, 1e300, 1.00390625, 1.01171875, 3.4e38, 65504, 65520]])
    kind = {"bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype)
    with np.errstate(over="ignore"):
        truth = values.astype(np.float32).astype(kind) if dtype == "bfloat16" else values.astype(kind)
    np.testing.assert_array_equal(project(values, dtype), truth.astype(np.float64))


def test_projection_to_decimals():
    assert project(np.array([0.12349, 0.1235]), "decimal:3").tolist() == [0.123, 0.124]
    with pytest.raises(InputError, match="score_dtype"):
        project(np.array([1.0]), "float12")


@pytest.mark.parametrize(("scores", "same"), [((3.0, 2.0, 2.0, 1.0), True), ((3.0, 2.0, 2.0 + 1e-12, 1.0), False)])
def test_a_score_type_that_gives_no_document_another_place(scores, same):
    run = Run.from_dict({"q": dict(zip("abcd", scores, strict=True))})
    counted = count_lists(run, Request(Qrels.from_dict({"q": {"a": 1, "b": 1, "e": 1}}), ORDERS[:3]))
    assert counted.ties["float32"].same_places(counted.ties["float64"]) is same
    assert not counted.ties["float32"].only(["given"]).same_places(counted.ties["float64"])


@pytest.mark.parametrize("order", ["docid-desc", "docid-asc"])
def test_ids_that_differ_behind_their_first_sixteen_bytes(order, tmp_path):
    """And ids of which one begins another: they are ordered by all of their bytes."""
    docs = [f"{'x' * shared}{end}" for shared in (14, 15, 16, 17, 40) for end in ("", "a", "b", "é", "a1", "B")]
    (tmp_path / "run.trec").write_text("".join(f"q Q0 {doc} 1 1.0 r\n" for doc in docs), encoding="utf-8")
    ranked = sorted(docs, key=str.encode, reverse=order == "docid-desc")
    found = tie_groups({"q": dict.fromkeys(docs, 1)}, tmp_path / "run.trec", [order])
    assert found.before[order].tolist() == [ranked.index(doc) for doc in docs]


@pytest.mark.parametrize("order", ["docid-desc", "docid-asc", "given"])
def test_a_run_with_broken_ties_has_the_oblivious_value_of_that_order(order):
    rng = random.Random(5)
    docs = [f"d{i}" for i in range(12)]
    run = {f"q{q}": {doc: float(rng.randint(0, 3)) for doc in rng.sample(docs, 9)} for q in range(20)}
    qrels = {query: {doc: rng.randint(0, 2) for doc in rng.sample(docs, 5)} for query in run}
    broken = tw.break_ties(run, order=order)
    before = tw.evaluate(qrels, run, ["nDCG@3", "AP"], oblivious=order, complete=True)
    after = tw.evaluate(qrels, broken, ["nDCG@3", "AP"], complete=True)
    assert broken.tied_rows == 0
    for measure in before:
        assert before[measure].range > 0.01
        assert after[measure].expected == pytest.approx(before[measure].oblivious, abs=1e-12)


def test_ties_broken_by_the_rank_column_and_by_an_order_that_is_unknown():
    run = Run.from_columns(["q"] * 3, ["a", "b", "c"], [1.0, 1.0, 1.0], rank=[3, 1, 2])
    assert list(tw.break_ties(run, order="rank").to_dict()["q"]) == ["b", "c", "a"]
    nearest = tw.break_ties({"q": {"a": 1.0, "b": 2.0, "c": 1.0}}, order="docid-asc", distances=True)
    assert list(nearest.to_dict()["q"]) == ["a", "c", "b"]
    with pytest.raises(InputError, match="no rank column"):
        tw.break_ties({"q": {"a": 1.0}}, order="rank")
    with pytest.raises(InputError, match="Unknown tie-break order 'sideways'"):
        tw.break_ties(run, order="sideways")


@pytest.mark.parametrize("step", [0.5, 1e-9])
def test_counts_that_are_kept_share_equal_arrays_and_no_others(step: float) -> None:
    run = {"q": {"a": 1.0, "b": 1.0 + step, "c": 0.5, "d": 0.5}}  # the small step vanishes in float32
    counted = as_source(run).count(Qrels.from_dict({"q": dict.fromkeys("abcd", 1)}), ORDERS[:3])
    kept = counted.compact()
    for dtype, ties in counted.ties.items():
        for name in ("score", "start", "size", "lowest", "lowest_size", "length"):
            assert np.array_equal(getattr(kept.ties[dtype], name), getattr(ties, name)), (dtype, name)
        assert all(np.array_equal(kept.ties[dtype].before[order], ties.before[order]) for order in ORDERS[:3])
    exact, rounded = kept.ties["float64"], kept.ties["float32"]
    assert (rounded.start is exact.start) == (rounded.size is exact.size) == (step == 0.5)
    assert rounded.lowest_size is exact.lowest_size
