"""`Run.from_neighbors`: matrices in the shapes that vector indexes return, against a plain loop."""

from __future__ import annotations

import uuid
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiewise as tw

MASKED = np.ma.masked_array([[2.0, 1.0]], [[False, True]])
QRELS = {"0": {"7": 1, "2": 0}, "1": {"0": 1}}


def naive(scores, indices, k=None):
    """Lists and whether each is known to be whole, by a loop; larger scores are better."""
    run, complete_lists = {}, []
    for query, (row, ids) in enumerate(zip(scores, indices, strict=True)):
        pairs = [(score, index) for score, index in zip(row, ids, strict=True) if index != -1]
        kept = pairs if k is None or len(pairs) < k else [pair for pair in pairs if pair[0] >= pairs[k - 1][0]]
        run[str(query)] = {str(index): score for score, index in kept}
        complete_lists.append(len(kept) < len(row))
    return run, complete_lists


@st.composite
def neighbours(draw):
    n, columns = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    rows = [sorted(draw(st.lists(st.integers(-3, 3), min_size=columns, max_size=columns)))[::-1] for _ in range(n)]
    ids = [draw(st.permutations(range(8)))[:columns] for _ in range(n)]
    for row in ids:
        for place in range(columns - draw(st.integers(0, columns)), columns):
            row[place] = -1
    return rows, ids, draw(st.none() | st.integers(1, columns))


@given(neighbours(), st.sampled_from(["scores", "distances"]), st.sampled_from(["numpy", "list", "uint32"]))
def test_lists_are_those_of_a_plain_loop(made, kind, form):
    rows, ids, k = made
    expected, complete_lists = naive(rows, ids, k)
    given_scores = np.array(rows, dtype=np.float32) * (1 if kind == "scores" else -1)
    indices = {"numpy": np.array, "list": list, "uint32": lambda one: np.array(one).astype(np.uint32)}[form](ids)
    run = tw.Run.from_neighbors(given_scores, indices, metric="ip" if kind == "scores" else "l2", k=k)
    assert run.to_dict() == expected
    assert run.complete_lists.tolist() == complete_lists


def test_distances_of_ip_are_recognised_because_they_rise():
    similar, distant = [[0.9, 0.5]], [[0.1, 0.5]]
    runs = [tw.Run.from_neighbors(scores, [[3, 4]], metric="cosine") for scores in (similar, distant)]
    assert [list(run.to_dict()["0"]) for run in runs] == [["3", "4"]] * 2
    assert all(run.descending for run in runs)


def test_small_distances_do_not_become_ties():
    run = tw.Run.from_neighbors(np.array([[0.0, 1e-20, 2e-20]], dtype=np.float32), [[0, 1, 2]], metric="cosine")
    assert run.tied_rows == 0


def test_counts_say_what_is_filled():
    run = tw.Run.from_neighbors([[0.1, 0.2, np.nan]], np.array([[5, 6, 0]], "u8"), metric="cosine", counts=[2])
    assert run.to_dict() == {"0": {"5": -0.1, "6": -0.2}}
    assert run.complete_lists.tolist() == [True]


def test_ids_are_given():
    run = tw.Run.from_neighbors(
        [[2.0, 1.0], [1.0, 0.5]], [[1, 0], [0, -1]], doc_ids=["a", "b"], query_ids=np.array([7, 8])
    )
    assert run.to_dict() == {"7": {"b": 2.0, "a": 1.0}, "8": {"a": 1.0}}


def test_a_query_without_neighbours_keeps_its_place():
    run = tw.Run.from_neighbors([[-3e38], [1.0]], [[-1], [0]])
    assert run.queries == ("0", "1") and run.to_dict()["0"] == {}


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    scores = torch.tensor([[1.0, 0.5, 0.5]], dtype=torch.bfloat16)
    run = tw.Run.from_neighbors(scores, torch.tensor([[4, 7, 2]]), doc_ids=torch.arange(10) + 100)
    assert run.to_dict() == {"0": {"104": 1.0, "107": 0.5, "102": 0.5}}


def test_text_and_uuids_are_ids():
    key = uuid.uuid4()
    run = tw.Run.from_neighbors([[0.9, 0.5, 0.1], [0.7, 0.2]], [["a", key, "b"], ["b", "a"]], query_ids=["q", "r"])
    assert run.to_dict() == {"q": {"a": 0.9, str(key): 0.5, "b": 0.1}, "r": {"b": 0.7, "a": 0.2}}
    assert run.complete_lists.tolist() == [False, True]
    filled = tw.Run.from_neighbors([[0.9, np.nan]], np.array([["a", None]], object))
    assert filled.to_dict() == {"0": {"a": 0.9}}


def test_lists_may_have_any_length():
    run = tw.Run.from_neighbors([[0.1, 0.2], [], [0.3]], [[4, 5], [], [6]], metric="l2sq")
    assert run.to_dict() == {"0": {"4": -0.1, "5": -0.2}, "1": {}, "2": {"6": -0.3}}


def test_the_names_of_metrics_that_libraries_have():
    faiss, usearch = pytest.importorskip("faiss"), pytest.importorskip("usearch.index")
    distances = [faiss.METRIC_L2, usearch.MetricKind.L2sq, usearch.MetricKind.Hamming, "euclidean", "L2", "Euclid"]
    for metric in distances:
        assert tw.Run.from_neighbors([[0.1, 0.2]], [[1, 2]], metric=metric).to_dict() == {"0": {"1": -0.1, "2": -0.2}}
        with pytest.raises(tw.InputError, match="these fall"):
            tw.Run.from_neighbors([[0.2, 0.1]], [[1, 2]], metric=metric)
    for metric in (faiss.METRIC_INNER_PRODUCT, usearch.MetricKind.IP, usearch.MetricKind.Cos, "cos", "dot", "COSINE"):
        assert tw.Run.from_neighbors([[0.2, 0.1]], [[1, 2]], metric=metric).to_dict() == {"0": {"1": 0.2, "2": 0.1}}
    for metric in (True, None, 99, "1", 1.0):
        with pytest.raises(tw.InputError, match="Unknown metric"):
            tw.Run.from_neighbors([[0.2, 0.1]], [[1, 2]], metric=metric)


# -- lists that are cut -----------------------------------------------------------------------------------------------


def test_one_more_column_tells_where_a_tie_is_cut():
    """Query 0 ties at rank 2 with the last column; query 1 ends with a tie group that is whole."""
    scores, indices = [[0.9, 0.5, 0.5], [0.8, 0.8, 0.1]], [[4, 7, 2], [1, 0, 5]]
    with pytest.warns(tw.CutWarning, match="2 of 2 lists may have been cut"):
        tw.evaluate(
            QRELS, tw.Run.from_neighbors([row[1:] for row in scores[:1]] + [[0.8, 0.8]], [[7, 2], [1, 0]]), "RR"
        )
    with pytest.warns(tw.CutWarning, match="1 of 2 lists may have been cut"):
        report = tw.evaluate(QRELS, tw.Run.from_neighbors(scores, indices, k=2), "RR")
    whole = report.per_query("RR")["1"]
    assert whole.cut is None or whole.cut[0] == whole.cut[1] == whole.expected == 0.75
    assert report.per_query("RR")["0"].cut[1] > report.per_query("RR")["0"].expected


@pytest.mark.parametrize("reader", ["compiled", "python"])
@pytest.mark.parametrize("options", [{}, {"judged_only": True}])
def test_a_list_that_is_known_to_be_whole_brings_no_warning(reader, options, monkeypatch):
    if reader == "python":
        monkeypatch.setattr("tiewise.io.memory_run.native", lambda: None)
    run = tw.Run.from_neighbors([[0.8, 0.8, 0.1]], [[7, 2, 5]], k=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = tw.evaluate({"0": QRELS["0"]}, run, ["RR", "nDCG@10"], **options)
    assert report["RR"].expected == 0.75 and report.provenance.cut_lists == 0


def test_rounded_scores_may_tie_with_what_was_left_out():
    run = tw.Run.from_neighbors([[0.8, 0.8, 0.79999999]], [[7, 2, 5]], k=2)
    with pytest.warns(tw.CutWarning):
        tw.evaluate({"0": QRELS["0"]}, run, "RR", score_dtype="float16")
    assert run.projected("float16").complete_lists is None


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "indices", "options", "message"),
    [
        (np.array([[1.0, 2.0]]), [[1]], {}, r"shape \(1, 2\) and the indices \(1, 1\)"),
        ([[1.0, 2.0]], [[1]], {}, "Row 0: 2 scores for 1 indices"),
        ([[1.0, 0.5], [1.0]], [[0, 1], []], {}, "Row 1: 1 scores for 0 indices"),
        ([[1.0, 0.5]], [["a", 1.5]], {}, "neither integers nor ids"),
        ([[1.0, 0.5]], [["a", "b"]], {"doc_ids": ["x", "y"]}, "are ids already"),
        ([1.0], [1], {}, r"Give both as \(queries, neighbours\)"),
        ([[1]], [[1.0]], {}, "float64, not integers. Scores come first"),
        ([[1.0, np.nan]], [[1, 2]], {}, "Row 0, column 1: the score is NaN"),
        ([[1.0, 0.5]], [[2, 2]], {}, "document '2' appears twice"),
        ([[1.0, 0.5]], [[0, 2]], {"doc_ids": ["a", "b"]}, "Row 0: index 2, but there are 2 document ids"),
        ([[1.0, 0.5]], [[0, 1]], {"doc_ids": ["a", "a"]}, "document 'a' appears twice"),
        ([[1.0, 0.5]], [[0, 1]], {"doc_ids": "ab"}, "must be a list"),
        ([[1.0, 0.5]], [[0, -2]], {}, "index -2. Only -1"),
        ([[1.0, 0.5]], [[0, 1]], {"query_ids": ["a", "b"]}, "2 query ids, 2 of them distinct, for 1 row"),
        ([[1.0], [1.0]], [[0], [1]], {"query_ids": ["a", "a"]}, "1 of them distinct"),
        ([[1.0, 0.5]], [[0, 1]], {"metric": "l2"}, "but these fall"),
        ([[1.0, 0.5], [0.5, 1.0]], [[0, 1], [0, 1]], {}, "best first"),
        ([[1.0]], [[0]], {"metric": "dots"}, "Unknown metric 'dots'"),
        ([[1.0]], [[0]], {"k": 2}, "k=2, but there are 1 column"),
        ([[1.0]], [[0]], {"k": 0}, "k=0"),
        ([[1.0]], [[0]], {"counts": [2]}, "counts must be one number up to 1"),
        ([[1 + 2j, 0.5]], [[0, 1]], {}, "The scores are complex128, not real numbers"),
        (np.array([[2, 1]], "m8[s]"), [[0, 1]], {}, "not real numbers"),
        (MASKED, [[0, 1]], {}, r"The value at \[0, 1\] is masked, one of 1"),
        ([[2.0, 1.0]], MASKED.astype(int), {}, r"The value at \[0, 1\] is masked, one of 1"),
    ],
)
def test_errors(scores, indices, options, message):
    with pytest.raises(tw.InputError, match=message):
        tw.Run.from_neighbors(scores, indices, **options)
