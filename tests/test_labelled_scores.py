"""`evaluate_scores`: arrays and tensors of all shapes and types against `evaluate`, enumeration, sklearn, torchmetrics
and trm."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import tiewise as tw
from tiewise.scoring import sorted_lists

MEASURES = ["nDCG@10", "AP", "RR", "P@3", "R@5", "Bpref", "ERR(max=3)@5", "Judged@5", "Rprec"]


def draw(seed=0, queries=9, documents=12, levels=5):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-levels, levels, (queries, documents)) / 4
    labels = rng.choice([0, 0, 0, 1, 2, 3], (queries, documents))
    return scores, labels, rng.random((queries, documents)) < 0.8


def as_dicts(scores, labels, mask=None):
    mask = np.ones(scores.shape, dtype=bool) if mask is None else mask
    rows = range(len(scores))
    return [
        {str(q): {f"{d:03}": table[q, d].item() for d in np.flatnonzero(mask[q])} for q in rows}
        for table in (np.asarray(labels, dtype=float), np.asarray(scores, dtype=float))
    ]


def assert_same(found, expected, measures=MEASURES):
    for measure in measures:
        ours, theirs = found.per_query(measure), expected.per_query(measure)
        for name in ("expected", "minimum", "maximum", "variance", "oblivious"):
            columns = getattr(ours, name), getattr(theirs, name)
            np.testing.assert_allclose(*columns, atol=1e-12, err_msg=f"{measure} {name}")


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("block", [1, 30, 2**22])
def test_a_matrix_equals_evaluate(masked, block, monkeypatch):
    monkeypatch.setattr(sorted_lists, "HOST_BLOCK", block)
    scores, labels, mask = draw()
    mask = mask if masked else None
    found = tw.evaluate_scores(scores, labels, MEASURES, mask=mask)
    expected = tw.evaluate(*as_dicts(scores, labels, mask), MEASURES, oblivious="given", complete=True)
    assert_same(found, expected)
    for name in ("rows", "tied_rows", "tied_share", "judged_queries", "missing_queries", "queries_without_relevant"):
        assert getattr(found.provenance, name) == getattr(expected.provenance, name)
    assert_same(tw.evaluate_scores(scores, labels, MEASURES[:3], mask=mask), expected, MEASURES[:3])  # fewer counts


def test_queries_without_a_relevant_document_are_noted_once():
    report = tw.evaluate_scores(draw()[0], np.zeros((9, 12), dtype=int), ["RR"])
    assert report.notes == ("9 queries have no relevant document: counted with the rest.",)


def test_scores_in_one_column_are_flat_if_the_labels_are():
    scores, labels, _ = draw()
    indexes = np.repeat(np.arange(len(scores)), scores.shape[1])
    flat = tw.evaluate_scores(scores.reshape(-1), labels.reshape(-1), MEASURES, indexes=indexes)
    column = scores.reshape(-1, 1)
    assert_same(tw.evaluate_scores(column, labels.reshape(-1), MEASURES, indexes=indexes), flat)
    assert_same(tw.evaluate_scores(column, labels.reshape(-1), MEASURES, group=[scores.shape[1]] * len(scores)), flat)
    with pytest.raises(tw.InputError, match="The scores are flat"):
        tw.evaluate_scores(column, labels.reshape(-1), MEASURES)


def test_exchanged_scores_and_labels_are_an_error():
    scores, labels = [0.73, 0.51, 0.2], [1, 0, 0]
    for convert in (np.array, list, pytest.importorskip("torch").tensor):
        with pytest.raises(tw.InputError, match=r"labels like scores \(0.73\). Scores come first"):
            tw.evaluate_scores(convert(labels), convert(scores), "RR", group=[3])
    assert tw.evaluate_scores(np.array(labels, dtype=float), scores, "nDCG", group=[3]) is not None


def test_flat_rows_equal_a_matrix():
    scores, labels, mask = draw(1)
    expected = tw.evaluate_scores(scores, labels, MEASURES, mask=mask)
    query = np.nonzero(mask)[0]
    flat = scores[mask], labels[mask]
    assert_same(tw.evaluate_scores(*flat, MEASURES, group=mask.sum(1)), expected)
    assert_same(tw.evaluate_scores(*flat, MEASURES, indexes=query + 5), expected)
    order = np.random.default_rng(0).permutation(len(query))  # queries are not contiguous
    mixed = tw.evaluate_scores(flat[0][order], flat[1][order], MEASURES, indexes=query[order])
    for measure in MEASURES:
        np.testing.assert_allclose(mixed.per_query(measure).expected, expected.per_query(measure).expected, atol=1e-12)
    assert [*tw.evaluate_scores(*flat, "RR", indexes=query + 5).per_query("RR")] == [str(q + 5) for q in range(9)]
    kept = scores.ravel() < 0.8
    repeated = np.repeat(np.arange(9), 12)
    inside = tw.evaluate_scores(scores.ravel(), labels.ravel(), MEASURES, indexes=repeated, mask=kept)
    assert_same(inside, tw.evaluate_scores(scores, labels, MEASURES, mask=scores < 0.8))
    both = {"group": [12] * 9, "mask": kept}
    assert_same(tw.evaluate_scores(scores.ravel(), labels.ravel(), MEASURES, **both), inside)


def test_lists_of_size_0_and_negated_distances():
    report = tw.evaluate_scores([3.0, 1.0, 1.0], [0, 1, 0], ["RR", "P@1"], group=[0, 3, 0], distances=True)
    assert [e.expected for e in report.per_query("RR").values()] == [0.0, 0.75, 0.0]
    assert report["RR"].expected == pytest.approx(0.25)
    hidden = tw.evaluate_scores(np.ones((2, 2)), [[1, 0], [1, 1]], "RR", mask=[[True, True], [False, False]])
    assert [e.expected for e in hidden.per_query("RR").values()] == [0.75, 0.0]


def test_infinity_is_a_score_and_nan_may_be_masked():
    scores = np.array([[-np.inf, 1.0, np.nan, -np.inf], [np.inf, np.inf, 0.0, -0.0]])
    labels = np.array([[1, 0, 9, 0], [1, 0, 1, 0]])
    mask = ~np.isnan(scores)
    report = tw.evaluate_scores(scores, labels, ["RR", "AP"], mask=mask)
    expected = tw.evaluate(*as_dicts(scores, labels, mask), ["RR", "AP"], oblivious="given", complete=True)
    assert_same(report, expected, ["RR", "AP"])
    assert report.per_query("RR")["0"].expected == pytest.approx((1 / 2 + 1 / 3) / 2)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6),
    name=st.sampled_from(["nDCG@3", "AP", "RR", "P@2", "R@2"]),
)
def test_every_order_is_counted(rows, name):
    scores, labels = zip(*rows, strict=True)
    measure = tw.parse(name)
    values = [
        oracle.value(measure.stem, order, [], measure.cutoff, **{p: getattr(measure, p) for p in measure.params})
        for order in oracle.orders(list(map(float, scores)), list(labels))
    ]
    found = tw.evaluate_scores([scores], [labels], measure)[measure]
    assert found.expected == pytest.approx(np.mean(values), abs=1e-12)
    assert (found.minimum, found.maximum) == pytest.approx((min(values), max(values)), abs=1e-12)
    assert found.std == pytest.approx(np.std(values), abs=1e-7)


def test_sklearn_averages_ties_too():
    metrics = pytest.importorskip("sklearn.metrics")
    scores, labels, _ = draw(2, 40, 15)
    found = tw.evaluate_scores(scores, labels, ["nDCG@5", "nDCG"])
    assert found["nDCG@5"].expected == pytest.approx(metrics.ndcg_score(labels, scores, k=5), abs=1e-12)
    assert found["nDCG"].expected == pytest.approx(metrics.ndcg_score(labels, scores), abs=1e-12)


def test_trm_agrees():
    trm = pytest.importorskip("trm")
    scores, labels, _ = draw(3, 20, 10)
    names = {"ndcg": 'nDCG(gains="binary")@5', "mrr": "RR@5", "map": "AP@5", "recall": "R@5"}
    theirs = trm.evaluate(scores.tolist(), (labels > 0).tolist(), metrics=list(names), k_list=[5])
    for theirs_name, ours in names.items():
        found, peer = tw.evaluate_scores(scores, labels, ours)[ours], theirs.metrics[theirs_name][5]
        assert (found.expected, found.minimum, found.maximum) == pytest.approx(
            (peer.expected, peer.minimum, peer.maximum), abs=1e-9
        ), ours


def test_names_options_and_later_measures():
    scores, labels, _ = draw(4, 3)
    report = tw.evaluate_scores(scores, labels, "RR", query_ids=["x", "y", "z"], depth=2)
    assert [*report.per_query("RR")] == ["x", "y", "z"]
    assert report.provenance.options["depth"] == 2 and report.provenance.options["complete"]
    assert "by tie order" in report.to_text(explain=True)
    at_two = tw.evaluate_scores(scores, labels, "RR@2")["RR@2"]
    assert (report["RR"].expected, report["RR"].range) == (at_two.expected, at_two.range)
    again = pickle.loads(pickle.dumps(report))
    assert again["RR"].expected == report["RR"].expected and again.to_dict() == report.to_dict()
    assert tw.evaluate_scores(scores, labels, "RR").at("AP")["AP"].expected > 0
    with pytest.raises(tw.InputError, match="without the documents of label 0"):
        tw.evaluate_scores(scores, labels, "RR").at("Bpref")
    assert tw.evaluate_scores(scores, labels, ["RR", "Bpref"], oblivious=None)["RR"].oblivious is None
    assert tw.evaluate_scores([[1, 1]], [[0.25, 0]], "nDCG")["nDCG"].maximum == 1.0


ONES = np.ones((2, 3))
BAD = {
    "shapes": ((ONES, np.ones((3, 2))), {}, r"The scores are of shape \(2, 3\), and the labels of shape \(3, 2\)"),
    "flat": ((ONES[0], ONES[0]), {}, r"The scores are flat, of shape \(3,\). Give group="),
    "three": ((np.ones((1, 2, 3)),) * 2, {}, r"of shape \(1, 2, 3\). Give them as \(queries, documents\)"),
    "no queries": ((np.ones((0, 3)),) * 2, {}, "there is nothing to evaluate"),
    "no documents": ((np.ones((3, 0)),) * 2, {}, "there is nothing to evaluate"),
    "no rows": ((np.ones(0),) * 2, {"indexes": np.ones(0, int)}, "nothing to evaluate"),
    "ragged": (([[1.0, 2.0], [1.0]], ONES), {}, "different lengths. Give them flat, with group="),
    "ragged arrays": (([np.ones(2), np.ones(1)], ONES), {}, "different lengths. Give them flat, with group="),
    "text": (([["a"]], [[1]]), {}, "The scores have type str"),
    "nan": ((np.array([[1.0, 2.0, 3.0], [1.0, np.nan, 2.0]]), ONES), {}, "Query 1, document 1: the score is nan"),
    "masked": (
        (np.ma.masked_less(ONES * [0, 1, 1], 1), ONES),
        {},
        "The scores are a masked array",
    ),
    "nan label": ((ONES, ONES * np.nan), {}, r"Query 0, document 0: the label is nan, one of 6 such"),
    "negative": ((ONES, ONES - 2), {}, "the label is -1, one of 6 such. .* give mask=labels >= 0"),
    "infinite": ((ONES, ONES * np.inf), {}, "the label is inf"),
    "mask of numbers": ((ONES, ONES), {"mask": ONES}, "The mask is float64, not bool. Where 1 means a document"),
    "mask of another shape": ((ONES, ONES), {"mask": np.ones(3, bool)}, r"and the mask of shape \(3,\)"),
    "group of a matrix": ((ONES, ONES), {"group": [3, 3]}, "group is for flat scores"),
    "sum of group": ((ONES[0], ONES[0]), {"group": [2, 2]}, "group has 2 sizes, 4 rows together, but there are 3"),
    "group of ids": ((ONES[0], ONES[0]), {"group": [7, 7, 8]}, "If it is the query of each row, give indexes="),
    "group of floats": ((ONES[0], ONES[0]), {"group": [1.5, 1.5]}, "group must be whole numbers"),
    "both": ((ONES[0], ONES[0]), {"group": [3], "indexes": [1, 1, 1]}, "not both"),
    "indexes of floats": ((ONES[0], ONES[0]), {"indexes": [0.5, 1, 1]}, "The indexes are float64, not whole numbers"),
    "few indexes": ((ONES[0], ONES[0]), {"indexes": [1, 1]}, r"and the indexes of shape \(2,\)"),
    "ids": ((ONES, ONES), {"query_ids": ["a"]}, "1 query_ids for 2 queries"),
    "same ids": ((ONES, ONES), {"query_ids": ["a", "a"]}, "query_ids are given twice: 'a'"),
    "order": ((ONES, ONES), {"oblivious": "trec_eval"}, "oblivious='trec_eval': without ids of documents"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line(case):
    arrays, options, message = BAD[case]
    with pytest.raises(tw.InputError, match=message) as raised:
        tw.evaluate_scores(*arrays, "RR", **options)
    assert "\n" not in str(raised.value)


def test_options_of_runs_are_unknown():
    with pytest.raises(TypeError, match="unexpected keyword argument 'missing'"):
        tw.evaluate_scores(ONES, ONES, "RR", missing="skip")
    with pytest.raises(tw.InputError, match="subtopics"):
        tw.evaluate_scores(ONES, ONES, "StRecall@5")


# -- types and tensors ---------------------------------------------------------------------------------------------


def test_types_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    scores, labels, mask = draw(5)
    expected = tw.evaluate_scores(scores, labels, MEASURES, mask=mask)
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.float16, np.float32):
        assert_same(tw.evaluate_scores(scores.astype(dtype), labels.astype(dtype), MEASURES, mask=mask), expected)
    whole = (scores * 4).astype(int) + 100
    for dtype in (np.int8, np.uint8, np.int64, np.uint64):
        assert_same(tw.evaluate_scores(whole.astype(dtype), labels, MEASURES, mask=mask), expected)
    small = tw.evaluate_scores(np.array([[-128, 5, -128]], np.int8), [[1, 0, 0]], "RR", mask=[[True, True, True]])
    assert small["RR"].expected == pytest.approx((1 / 2 + 1 / 3) / 2)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int64", "int8", "uint8"]
)
@pytest.mark.parametrize("masked", [False, True])
def test_tensors_equal_arrays(torch, dtype, masked):
    scores, labels, mask = draw(6, levels=4)
    scores = scores * 4 + 4  # the same in all types
    expected = tw.evaluate_scores(scores, labels, MEASURES, mask=mask if masked else None)
    given = [torch.tensor(scores).to(getattr(torch, dtype)), torch.tensor(labels), torch.tensor(mask)]
    found = tw.evaluate_scores(*given[:2], MEASURES, mask=given[2] if masked else None)
    assert_same(found, expected)
    assert_same(tw.evaluate_scores(given[0], labels, MEASURES, mask=mask if masked else None), expected)
    flat = given[0][given[2]], given[1][given[2]].bfloat16()
    query = torch.tensor(np.nonzero(mask)[0])
    if masked:
        assert_same(tw.evaluate_scores(*flat, MEASURES, indexes=query), expected)
        assert_same(tw.evaluate_scores(*flat, MEASURES, group=torch.bincount(query)), expected)
        assert_same(tw.evaluate_scores(*flat, MEASURES, group=mask.sum(1)), expected)


def test_tensors_with_gradients_and_views(torch):
    scores, labels, _ = draw(7)
    leaf = torch.tensor(scores, requires_grad=True)
    expected = tw.evaluate_scores(scores, labels, MEASURES)
    assert_same(tw.evaluate_scores(leaf * 2, torch.tensor(labels).bool() * torch.tensor(labels), MEASURES), expected)
    assert_same(tw.evaluate_scores(leaf.T.contiguous().T, torch.tensor(labels).T.contiguous().T, MEASURES), expected)


def test_tensors_that_are_refused(torch):
    ones = torch.ones(2, 3)
    for scores, message in (
        (ones.to_sparse(), "sparse tensor"),
        (ones.to("meta"), "on the meta device"),
        (ones * 1j, "have type complex64"),
        (ones * float("nan"), "Query 0, document 0: the score is nan"),
    ):
        with pytest.raises(tw.InputError, match=message):
            tw.evaluate_scores(scores, torch.ones(2, 3), "RR")
    with pytest.raises(tw.InputError, match="The scores are on cpu, and the labels on meta"):
        tw.evaluate_scores(ones, ones.to("meta"), "RR")
    with pytest.raises(tw.InputError, match="The scores are on cpu, and the mask on meta"):
        tw.evaluate_scores(ones, ones, "RR", mask=ones.bool().to("meta"))
    with pytest.raises(tw.InputError, match="The mask is int64, not bool"):
        tw.evaluate_scores(ones, ones, "RR", mask=ones.long())


def test_torchmetrics_agrees_where_nothing_ties(torch):
    retrieval = pytest.importorskip("torchmetrics.retrieval", reason="torchmetrics is not installed")
    generator = torch.Generator().manual_seed(0)
    scores, labels = torch.rand(8, 10, generator=generator), torch.rand(8, 10, generator=generator) < 0.3
    labels[:, 0] = True
    query = torch.arange(8).repeat_interleave(10)
    rows = scores.reshape(-1), labels.long().reshape(-1)
    for theirs, ours in (
        (retrieval.RetrievalNormalizedDCG(top_k=5), "nDCG@5"),
        (retrieval.RetrievalMAP(), "AP"),
        (retrieval.RetrievalMRR(), "RR"),
        (retrieval.RetrievalPrecision(top_k=3), "P@3"),
        (retrieval.RetrievalRecall(top_k=3), "R@3"),
    ):
        found = tw.evaluate_scores(*rows, ours, indexes=query)[ours]
        assert found.expected == pytest.approx(float(theirs(*rows, indexes=query)), abs=1e-6)
        assert found.range == 0


def test_counts_on_a_gpu(torch, monkeypatch):
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    scores, labels, mask = draw(8, 200, 50, levels=4)
    scores = scores * 4 + 4
    expected = tw.evaluate_scores(scores, labels, MEASURES, mask=mask)
    for block in (1, 2**26):
        monkeypatch.setattr(sorted_lists, "DEVICE_BLOCK", block)
        for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64):
            given = torch.tensor(scores, device="cuda").to(dtype), torch.tensor(labels, device="cuda")
            assert_same(tw.evaluate_scores(*given, MEASURES, mask=torch.tensor(mask, device="cuda")), expected)
    flat = given[0].reshape(-1), given[1].reshape(-1)
    query = torch.arange(200, device="cuda").repeat_interleave(50)
    assert_same(
        tw.evaluate_scores(*flat, MEASURES, indexes=query.flip(0), mask=torch.tensor(mask, device="cuda").reshape(-1)),
        tw.evaluate_scores(*(one.cpu() for one in flat), MEASURES, indexes=query.flip(0).cpu(), mask=mask.reshape(-1)),
    )
    with pytest.raises(tw.InputError, match="The scores are on cuda:0, and the labels on cpu"):
        tw.evaluate_scores(given[0], given[1].cpu(), "RR")
    large = torch.rand(64, 2**20, device="cuda").bfloat16()
    sparse = torch.zeros(64, 2**20, device="cuda", dtype=torch.bool)
    sparse[:, 7] = True
    torch.cuda.reset_peak_memory_stats()
    copied = tw.evaluate_scores(large, sparse, "RR")
    assert copied["RR"].expected > 0 and torch.cuda.max_memory_allocated() < 2**34
