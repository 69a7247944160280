"""Runs and judgments in and out of every shape in memory, and what is refused at the door."""

from __future__ import annotations

import gc
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiewise as tw
from tiewise.data.columns import encode
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io import as_run, as_source
from tiewise.io.memory_run import DictRun

TABLE = {"q2": {"b": 1.0, "a": 2.0}, "q1": {"a": 0.5}}
ROWS = [("q2", "b", 1.0), ("q2", "a", 2.0), ("q1", "a", 0.5)]


class ScoredDoc(NamedTuple):
    query_id: str
    doc_id: str
    score: float


def columns(names=("query_id", "doc_id", "score")):
    return dict(zip(names, map(list, zip(*ROWS, strict=True)), strict=True))


def frames():
    import pandas
    import polars
    import pyarrow

    yield "pandas", pandas.DataFrame(columns())
    yield "pandas, PyTerrier's names", pandas.DataFrame(columns(("qid", "docno", "score")))
    yield "polars", polars.DataFrame(columns())
    yield "polars, lazy", polars.LazyFrame(columns())
    yield "arrow", pyarrow.table(columns())
    yield "an Arrow stream", Stream(pyarrow.table(columns()))


@pytest.mark.parametrize("docs", [["d1", "d2"], [1, 2], ["a text", "d2"]])
def test_a_column_called_document_has_ids_or_texts(docs):
    import pandas
    import polars
    import pyarrow

    table = {"query": ["q", "q"], "Document": docs, "score": [2.0, 1.0]}
    for cls in (Run, Qrels):
        for frame in (pandas.DataFrame(table), polars.DataFrame(table), pyarrow.table(table)):
            if docs[0] == "a text":
                with pytest.raises(InputError, match=r"'Document' looks like texts.* rename it to doc_id"):
                    cls.from_frame(frame)
            else:
                assert cls.from_frame(frame).to_dict() == {"q": {str(docs[0]): 2.0, str(docs[1]): 1.0}}


class Stream:
    """Something that offers the Arrow PyCapsule interface and nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(("name", "frame"), list(frames()), ids=[name for name, _ in frames()])
def test_frames(name, frame):
    assert Run.from_frame(frame).to_dict() == TABLE


def test_every_shape_gives_the_same_run():
    runs = [
        Run.from_dict(TABLE),
        Run.from_columns(*columns().values()),
        Run.from_columns(*map(np.array, columns().values())),
        Run.from_rows(ROWS),
        Run.from_rows([ScoredDoc(*row) for row in ROWS]),
        DictRun(TABLE).rows(),
    ]
    for run in runs:
        assert run.to_dict() == TABLE
        assert list(run) == ROWS
        assert run.queries == ("q2", "q1")


def test_to_frame():
    frame = Run.from_dict(TABLE).to_frame()
    assert list(frame.columns) == ["query_id", "doc_id", "score"]
    assert Run.from_frame(frame).to_dict() == TABLE
    assert list(Qrels.from_dict(TABLE).to_frame().columns) == ["query_id", "doc_id", "relevance"]


def test_integer_ids_become_text():
    assert Run.from_dict({1: {10: 0.5}}).to_dict() == {"1": {"10": 0.5}}
    assert Run.from_columns(np.array([7, 7]), np.array([10**12, 3]), [1, 2]).to_dict() == {
        "7": {str(10**12): 1, "3": 2}
    }
    assert tw.evaluate({1: {10: 1}}, {1: {10: 0.5, 11: 0.7}}, "RR")["RR"].expected == 0.5
    with pytest.raises(InputError, match=r"document id 0.5"):
        Run.from_dict({"q": {0.5: 1.0}})
    with pytest.raises(InputError, match=r"^row 1: The document id 0.5 is a float"):
        Run.from_columns(["q", "q"], ["d", 0.5], [1.0, 2.0])


def test_an_id_that_is_missing_is_named_by_its_row():
    import pandas
    import polars
    import pyarrow

    rows = {"query_id": ["q", "q", None, "p"], "doc_id": ["a", "b", "c", "d"], "score": [1.0, 2.0, 3.0, 4.0]}
    numbered = rows | {"query_id": [1, 2, None, 4]}  # integers, of which pandas makes floats
    for table in (rows, numbered):
        frames = pandas.DataFrame(table), polars.DataFrame(table), pyarrow.table(table)
        for frame in (*frames, pandas.DataFrame(table).convert_dtypes()):
            with pytest.raises(InputError) as raised:
                tw.evaluate({"q": {"a": 1}}, frame)
            assert str(raised.value) == "row 2: the query id is missing. Drop the row, or give it one."


def test_rows_that_are_not_contiguous_are_grouped_by_query():
    run = Run.from_columns(["b", "a", "b", "a"], ["1", "2", "3", "4"], [4, 3, 2, 1], rank=np.array([1, 2, 3, 4]))
    assert run.queries == ("b", "a")
    assert list(run) == [("b", "1", 4), ("b", "3", 2), ("a", "2", 3), ("a", "4", 1)]
    assert run.rank.tolist() == [1, 3, 2, 4]
    assert Run.from_columns(["b", "a", "b"], ["1", "2", "3"], [4, 3, 2], rank=[1, 2, 3]).rank.tolist() == [1, 3, 2]
    with pytest.raises(InputError, match="1 ranks for 2 rows"):
        Run.from_columns(["b", "a"], ["1", "2"], [4, 3], rank=[1])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-5, 2**40), max_size=20))
def test_codes_are_those_of_their_ids(values):
    codes, names = encode(np.array(values, dtype=np.int64), "document")
    assert [names[code] for code in codes] == [str(value) for value in values]


def test_codes_of_small_integer_types():
    codes, names = encode(np.array([-100, 100, -100], dtype=np.int8), "document")
    assert [names[code] for code in codes] == ["-100", "100", "-100"]
    codes, names = encode(np.array([2**64 - 1, 0], dtype=np.uint64), "document")
    assert [names[code] for code in codes] == [str(2**64 - 1), "0"]


def test_ids_of_mixed_types_are_one_id():
    assert tw.evaluate({"q": {"2": 1}}, {"q": {"1": 1.0, 2: 2.0}}, "RR", complete=True)["RR"].expected == 1.0


def test_a_projection_of_a_projection():
    table = {"q": {"a": 0.5001, "b": 0.5002, "c": 0.1}}
    qrels = Qrels.from_dict({"q": {"a": 1}})
    run = Run.from_dict(table)
    assert run.tied_rows == 0
    twice = run.projected("bfloat16").projected("float32")
    assert twice.tied_rows == 2
    assert tw.tie_groups(qrels, twice).size.tolist() == [2]
    for form in (table, Run.from_dict(table)):
        report = tw.evaluate(qrels, form, "RR", score_dtype="bfloat16", oblivious="pytrec_eval", complete=True)
        assert report["RR"].oblivious == 0.5


def test_tables_are_frozen():
    scores = np.array([1.0, 2.0])
    run = Run.from_columns(["q", "q"], ["a", "b"], scores)
    with pytest.raises(ValueError, match="read-only"):
        run.score[0] = 5
    scores[0] = 7  # what is the user's stays the user's


def test_an_empty_list_is_a_query_all_the_same():
    run = Run.from_dict({"a": {}, "b": {"d": 1.0}, "c": {}})
    assert run.queries == ("a", "b", "c")
    assert run.to_dict() == {"a": {}, "b": {"d": 1.0}, "c": {}}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"q": {"d": float("nan")}}, "score 'nan' for query 'q', document 'd'. NaN has no rank"),
        ({"a": {"q": {"d": 1.0}}}, "is not a number. If these are several runs by name, evaluate each"),
        ({"q": {"d": "high"}}, "query 'q', document 'd': score 'high' is not a number"),
        ({"q": {"d": "0.5"}}, "score '0.5' is text, not a number"),
        ({"q": {"d": None}}, "is not a number"),
        ({"q": {"d": 2**53 + 1}}, "beyond 2\\*\\*53"),
        ({1: {"d": 1.0}, "1": {"d": 1.0}}, "same id as text"),
        ({"q": {1: 1.0, "1": 2.0}}, "document '1' appears twice"),
        ({"q": {"1": 1.0, 1: 2.0}}, "document '1' appears twice"),
        ({"q": {"d": np.array([1.0, 2.0]), "e": 1.0}}, "is not a number"),
    ],
)
def test_bad_numbers_in_a_dict(table, message):
    with pytest.raises(InputError, match=message):
        Run.from_dict(table)
    with pytest.raises(InputError, match=message):
        as_run(table)


def test_from_dict_takes_mappings_alone():
    with pytest.raises(InputError, match="The run has a list for query 'q'"):
        Run.from_dict({"q": ["d"]})
    with pytest.raises(InputError, match="query 'q': a str is not a ranking"):
        as_run({"q": "d"})


def test_bad_columns():
    with pytest.raises(InputError, match=r"different lengths: 2 queries, 1 document, 1 score[.]"):
        Run.from_columns(["q", "q"], ["d"], [1.0])
    with pytest.raises(InputError, match="document 'd' appears twice in the run for query 'q'"):
        Run.from_columns(["q", "p", "q"], ["d", "d", "d"], [1.0, 2.0, 1.0])
    with pytest.raises(InputError, match="beyond 2\\*\\*53"):
        Run.from_columns(["q"], ["d"], np.array([2**53 + 2]))
    with pytest.raises(InputError, match="shape"):
        Run.from_columns(["q"], ["d"], np.ones((1, 2)))
    import pandas

    with pytest.raises(InputError, match=r"no column 'score'.*It has: query_id, doc_id, value"):
        Run.from_frame(pandas.DataFrame(columns(("query_id", "doc_id", "value"))))
    with pytest.raises(InputError, match=r"Found qrels \(column 'rating'\).* call the column score"):
        Run.from_frame(pandas.DataFrame(columns(("query_id", "doc_id", "rating"))))
    with pytest.raises(InputError, match="is not a data frame"):
        Run.from_frame(7)
    with pytest.raises(InputError, match="label is a number"):
        Qrels.from_dict({"q": {"d": float("inf")}})


def arrow_columns() -> list[Any]:
    """The same ids in Arrow in many ways."""
    arrow = pytest.importorskip("pyarrow")
    ids = ["a", "b", "a", "c", "b"]
    coded = arrow.array(ids).dictionary_encode()
    twice = arrow.DictionaryArray.from_arrays(arrow.array([0, 1, 2, 3, 1]), arrow.array(["a", "b", "a", "c"]))
    spare = arrow.DictionaryArray.from_arrays(arrow.array([7, 8, 7, 9, 8]), arrow.array([*"zyxwvut", "a", "b", "c"]))
    split = [arrow.array(ids[:2]).dictionary_encode(), arrow.array(ids[2:]).dictionary_encode()]
    shared = [coded.slice(0, 2), coded.slice(2)]
    whole = [arrow.array(ids), arrow.array(ids, arrow.large_string()), coded, twice, spare]
    longer = arrow.array(["x", *ids]).dictionary_encode().slice(1)
    return [
        arrow.chunked_array(one) for one in (*([one] for one in whole), [longer], split, shared, [*shared, coded[:0]])
    ]


@pytest.mark.parametrize("which", range(9))
def test_a_run_uses_the_codes_of_arrow(which: int) -> None:
    arrow = pytest.importorskip("pyarrow")
    docs, scores = arrow_columns()[which], arrow.array([5.0, 4.0, 3.0, 2.0, 1.0])
    run = Run.from_frame(arrow.table({"query_id": arrow.array([*"qqrrr"]), "doc_id": docs, "score": scores}))
    assert run.to_dict() == {"q": {"a": 5.0, "b": 4.0}, "r": {"a": 3.0, "c": 2.0, "b": 1.0}}
    assert np.shares_memory(run.value, scores.to_numpy())


def test_the_codes_of_arrow_are_not_copied() -> None:
    arrow = pytest.importorskip("pyarrow")
    docs = arrow.array(["a", "b", "c"]).dictionary_encode()
    run = Run.from_frame(arrow.table({"query_id": ["q"] * 3, "doc_id": docs, "score": [3.0, 2.0, 1.0]}))
    assert np.shares_memory(run.doc, docs.indices.to_numpy())
    nothing = arrow.table(
        {"query_id": arrow.array([], "string"), "doc_id": docs[:0], "score": arrow.array([], "double")}
    )
    assert len(Run.from_frame(nothing)) == 0


@pytest.mark.parametrize("kind", ["string", "codes", "values"])
def test_arrow_ids_that_are_missing(kind: str) -> None:
    arrow = pytest.importorskip("pyarrow")
    docs = {
        "string": arrow.array(["a", None]),
        "codes": arrow.array(["a", None]).dictionary_encode(),
        "values": arrow.DictionaryArray.from_arrays(arrow.array([0, 1]), arrow.array(["a", None])),
    }[kind]
    with pytest.raises(InputError, match="row 1: the document id is missing"):
        Run.from_frame(arrow.table({"query_id": ["q", "q"], "doc_id": docs, "score": [2.0, 1.0]}))


def test_infinite_scores_are_allowed_and_tie():
    run = Run.from_dict({"q": {"a": float("inf"), "b": float("inf"), "c": 0.0, "d": -0.0, "e": float("-inf")}})
    assert run.tied_rows == 4


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=8), min_size=1, max_size=5))
def test_tied_rows(lists):
    table = {f"q{i}": {f"d{j}": float(s) for j, s in enumerate(scores)} for i, scores in enumerate(lists)}
    truth = sum(scores.count(s) > 1 for scores in lists for s in scores)
    assert Run.from_dict(table).tied_rows == truth
    assert as_source(table).count(Qrels.from_dict({"q0": {"d0": 1}}), ()).tied_rows == truth


def test_torch_tensors_of_low_precision():
    torch = pytest.importorskip("torch")
    run = Run.from_columns(["q", "q"], ["a", "b"], torch.tensor([0.5, 1.5], dtype=torch.bfloat16))
    assert run.score.tolist() == [0.5, 1.5]


def test_ml_dtypes_scores():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    run = Run.from_columns(["q", "q"], ["a", "b"], np.array([0.5, 1.5], dtype=ml_dtypes.bfloat16))
    assert run.score.tolist() == [0.5, 1.5]


def test_arrow_arrays_are_columns_too() -> None:
    arrow = pytest.importorskip("pyarrow")
    docs = arrow.array(["a", "b"])
    for ids in (docs, docs.dictionary_encode(), arrow.chunked_array([docs])):
        assert Run.from_columns(arrow.array(["q", "q"]), ids, arrow.array([2.0, 1.0])).to_dict() == {
            "q": {"a": 2, "b": 1}
        }


def test_damaged_arrow_columns_are_errors() -> None:
    arrow = pytest.importorskip("pyarrow")
    not_utf8 = arrow.StringArray.from_buffers(1, arrow.py_buffer(np.array([0, 1], np.int32)), arrow.py_buffer(b"\xff"))
    with pytest.raises(InputError, match=r"document ids is damaged \(Invalid UTF8 sequence at string index 0\)"):
        Run.from_columns(["q"], not_utf8, [1.0])
    coded = arrow.DictionaryArray.from_arrays(arrow.array([5], "int32"), arrow.array(["a"]), safe=False)
    with pytest.raises(InputError, match=r"document ids is damaged \(Value at position 0 out of bounds"):
        Run.from_columns(["q"], coded, [1.0])


def test_ranks_of_a_frame_that_are_not_integers_are_dropped() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0, 1.0], "rank": [1.0, np.inf]})
    assert Run.from_frame(frame).rank is None


def test_ranks_are_copied() -> None:
    ranks = np.array([1, 2])
    run = Run.from_columns(["q", "q"], ["a", "b"], [2.0, 1.0], rank=ranks)
    ranks[0] = 9
    assert run.rank is not None and run.rank.tolist() == [1, 2]


@pytest.mark.parametrize("rank", [[1.5, 2.0], ["x", "y"], [float("nan"), 1.0], np.array([2**63 + 5, 1], np.uint64)])
def test_ranks_are_integers(rank):
    with pytest.raises(InputError, match="ranks are not all integers"):
        Run.from_columns(["q", "q"], ["a", "b"], [1.0, 1.0], rank=rank)


def test_whole_numbers_are_ranks_whatever_their_type():
    for rank in ([2, 1], [2.0, 1.0], np.array([2, 1], np.uint64)):
        run = Run.from_columns(["q", "q"], ["a", "b"], [1.0, 1.0], rank=rank)
        assert tw.evaluate({"q": {"a": 1}}, run, "RR", oblivious="rank", complete=True)["RR"].oblivious == 0.5


def test_ids_without_utf_8_are_told_apart():
    """A lone surrogate comes from a truncated pair in JSON: each is an id of its own."""
    one, two, three, four = map(chr, range(0xD800, 0xD804))
    lists = {"q": {"x": 9.0, "y": 8.0, "z": 7.0, two: 2.0, "b": 1.0}, three: {"a": 1.0, "b": 0.5}}
    judged = {"q": {one: 1, "b": 1}, three: {"b": 1}, four: {"a": 1}}
    for run in (lists, Run.from_dict(lists)):
        for qrels in (judged, Qrels.from_dict(judged)):
            found = tw.evaluate(qrels, run, "RR", complete=True).per_query("RR")
            assert {query: found[query].expected for query in found} == {"q": 0.2, three: 0.5, four: 0.0}


def test_judgments_are_freed_without_the_garbage_collector():
    gc.disable()
    try:
        qrels = Qrels.from_dict({"q": {"a": 1, "b": 0}})
        tw.evaluate(qrels, {"q": {"a": 1.0, "b": 0.5}}, "RR")
        watched = weakref.ref(qrels)
        del qrels
        assert watched() is None
    finally:
        gc.enable()


def test_the_start_of_the_last_group_with_empty_lists():
    run = tw.Run.from_dict({"p": {"a": 1.0, "b": 1.0}, "q": {"c": 2.0, "d": 1.0}, "r": {"e": 1.0, "f": 1.0}})
    rest = run.take(np.arange(2, 6))
    assert np.diff(rest.offsets).tolist() == [0, 2, 2]
    assert rest.last_start.tolist() == [0, 1, 0] and rest.ends_tied.tolist() == [False, False, True]
