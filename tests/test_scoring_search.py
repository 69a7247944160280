"""Search and tie groups straight from embeddings: against brute force, in blocks and shards of every size."""

from __future__ import annotations

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiewise as tw
from scoring_reference import score_by_definition
from tiewise import scoring
from tiewise.adapters.index import check
from tiewise.errors import InputError, TiewiseWarning
from tiewise.scoring import device_scorer, host_functions, host_scorer
from tiewise.scoring.backends import TorchBackend
from tiewise.scoring.device_counting import ScoreBlock
from tiewise.scoring.judgments import Ids
from tiewise.scoring.selecting_kernels import LAST_DOCUMENT, NO_DOCUMENT, Selection, lowest_equal_key, unpack_keys
from tiewise.ties import tie_groups as from_run
from tiewise.ties.groups import TieGroups

ml_dtypes = pytest.importorskip("ml_dtypes")
ORDERS = ("docid-desc", "docid-asc", "given")
QUERIES, DOCS, DIMS = 21, 20_000, 24


@pytest.fixture(scope="module")
def collection():
    """Vectors in bfloat16 with copies among them, ids in no order, and sparse judgments."""
    rng = np.random.default_rng(7)
    queries, docs = (rng.normal(size=(n, DIMS)).astype(ml_dtypes.bfloat16) for n in (QUERIES, DOCS))
    docs[15_000:15_300] = docs[:300]
    query_ids, doc_ids = [f"q{i}" for i in range(QUERIES)], [f"d{i * 7919 % DOCS}" for i in range(DOCS)]
    judged = {"nobody": {"d3": 1}}
    for query in query_ids[::2]:
        some = rng.choice(400, rng.integers(1, 40), replace=False)
        judged[query] = {doc_ids[j]: int(rng.integers(0, 3)) for j in some}
    judged["q0"]["elsewhere"] = 1
    return queries, docs, {"query_ids": query_ids, "doc_ids": doc_ids}, tw.Qrels.from_dict(judged)


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles and blocks of a few rows, so that little data has many of them."""
    shrink_tiles(monkeypatch)


def shrink_tiles(patch) -> None:
    for name, value in {"query_tile": 4, "doc_tile": 8, "block": 16}.items():
        patch.setattr(TorchBackend, name, value)
    patch.setattr(host_scorer, "QUERIES", 4)
    patch.setattr(host_scorer, "DOCUMENTS", 16)


def full_run(scores, ids) -> tw.Run:
    queries, docs = np.repeat(ids["query_ids"], len(ids["doc_ids"])), np.tile(ids["doc_ids"], len(ids["query_ids"]))
    return tw.Run.from_columns(queries, docs, np.asarray(scores, dtype=np.float64).ravel())


def assert_equal(a: TieGroups, b: TieGroups) -> None:
    for name in ("score", "start", "size", "length", "present", "lowest", "lowest_size"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.before.keys() == b.before.keys() and a.unjudged == b.unjudged and a.in_shard is None
    for order in a.before:
        np.testing.assert_array_equal(a.before[order], b.before[order], err_msg=order)


def best(scores, docs, k: int) -> dict[str, float]:
    """By brute force: the k best and all that tie with the k-th."""
    bound = np.sort(scores)[::-1][min(k, len(scores)) - 1]
    return {docs[j]: float(scores[j]) for j in np.flatnonzero(scores >= bound)}


def as_library(kind: str, *vectors):
    if kind == "numpy":
        return vectors
    torch = pytest.importorskip("torch")
    return tuple(torch.from_numpy(x.astype(np.float32)).bfloat16() for x in vectors)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("precision", ["float32", "native"])
@pytest.mark.parametrize("fn", ["dot", "cosine", "euclidean"])
def test_search_and_tie_groups_agree_with_all_scores(collection, kind, fn, precision):
    *vectors, ids, qrels = collection
    queries, docs = as_library(kind, *vectors)
    options = {"fn": fn, "precision": precision}
    scores = scoring.score(queries, docs, **options)
    scores = scores.astype(np.float64) if kind == "numpy" else scores.double().numpy()
    truth = from_run(qrels, full_run(scores, ids), ORDERS)
    assert (truth.size > 1).any()
    for sizes in ({}, {"block": 777, "query_block": 4}, {"block": 10_000}):
        assert_equal(scoring.tie_groups(queries, docs, qrels, orders=ORDERS, **ids, **options, **sizes), truth)
    for k in (1, 50, DOCS + 1):
        found = scoring.search(queries, docs, k, block=3000, **ids, **options)
        assert found.descending
        for place, docs_of in enumerate(found.to_dict().values()):
            assert docs_of == best(scores[place], ids["doc_ids"], k)


@pytest.mark.parametrize("precision", ["float32", "native"])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("cuts", [[8192], [1], [17, 9000], [15_100], [5, 6, 7, 19_999]])
def test_shards_add_up(collection, cuts, kind, precision):
    """Wherever the collection is cut, inside a tile or not, to the last bit."""
    *vectors, ids, qrels = collection
    queries, docs = as_library(kind, *vectors)
    options = {"fn": "cosine", "precision": precision, "query_ids": ids["query_ids"]}
    edges = [0, *cuts, DOCS]
    parts = [(docs[low:high], ids["doc_ids"][low:high]) for low, high in pairwise(edges)]
    scores = np.fmax.reduce([scoring.judged_scores(queries, d, qrels, doc_ids=names, **options) for d, names in parts])
    shards = [
        scoring.tie_groups(queries, d, qrels, doc_ids=names, scores=scores, orders=ORDERS, **options)
        for d, names in parts
    ]
    whole = scoring.tie_groups(queries, docs, qrels, doc_ids=ids["doc_ids"], orders=ORDERS, **options)
    assert_equal(TieGroups.merge(shards), whole)


seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=60, deadline=None)
@given(seed=seeds, queries=st.integers(1, 9), docs=st.integers(1, 60), spread=st.integers(1, 3))
def test_blocks_change_nothing(seed, queries, docs, spread):
    """Vectors of small integers have many ties, and their products are exact."""
    rng = np.random.default_rng(seed)
    q, d = (rng.integers(-spread, spread + 1, (n, 3)).astype(np.float32) for n in (queries, docs))
    names = [f"n{i}" for i in rng.permutation(docs)]
    judged = {str(i): {f"n{j}": 1 for j in rng.integers(0, docs + 2, 5)} for i in range(queries)}
    judged["0"]["n0"] = 1
    qrels, ids = tw.Qrels.from_dict(judged), {"query_ids": [str(i) for i in range(queries)], "doc_ids": names}
    scores = q @ d.T
    truth, k = from_run(qrels, full_run(scores, ids), ORDERS), int(rng.integers(1, docs + 2))
    with pytest.MonkeyPatch.context() as patch:
        shrink_tiles(patch)
        for block in (None, 8, 24, 1000):
            assert_equal(scoring.tie_groups(q, d, qrels, doc_ids=names, orders=ORDERS, block=block), truth)
            found = scoring.search(q, d, k, doc_ids=names, block=block, query_block=4).to_dict()
            assert [found[str(i)] for i in range(queries)] == [best(scores[i], names, k) for i in range(queries)]


def test_device_code_on_cpu_tensors(collection, on_device, small_tiles):
    *vectors, ids, qrels = collection
    queries, docs = as_library("torch", vectors[0], vectors[1][:150])
    ids = {**ids, "doc_ids": ids["doc_ids"][:150]}
    for precision in ("float32", "native"):
        scores = scoring.score(queries, docs, fn="dot", precision=precision).double().numpy()
        truth = from_run(qrels, full_run(scores, ids), ORDERS)
        for block in (None, 1, 1000):
            found = scoring.tie_groups(queries, docs, qrels, precision=precision, orders=ORDERS, block=block, **ids)
            assert_equal(found, truth)
        for k in (1, 30, 200):
            run = scoring.search(queries, docs, k, precision=precision, **ids)
            for place, docs_of in enumerate(run.to_dict().values()):
                assert docs_of == best(scores[place], ids["doc_ids"], k)


@pytest.mark.parametrize("fn", ["dot", "cosine", "euclidean"])
@pytest.mark.parametrize("kernels", ["compiled", "python"])
def test_product_errors_within_their_bound_change_no_result(collection, small_tiles, monkeypatch, fn, kernels):
    """The error of a product may be as large as its bound, with any sign, and a product may be NaN or infinite."""
    if kernels == "compiled":
        pytest.importorskip("tiewise._kernels")
    monkeypatch.setenv("TIEWISE_KERNELS", kernels)
    *vectors, ids, qrels = collection
    queries, docs = (x.astype(np.float32) for x in (vectors[0], vectors[1][:500]))
    docs[40:80] = docs[:40]
    ids = {**ids, "doc_ids": ids["doc_ids"][:500]}
    truth = score_by_definition(queries, docs, fn)
    assert (scoring.score(queries, docs, fn=fn) == truth).all()
    run, product, rng = full_run(truth, ids), host_functions._product, np.random.default_rng(0)

    def wrong_product(a, b, dtype):
        bound = host_functions.relative_error(a.shape[1] + 2, np.float32) * np.outer(
            np.linalg.norm(a.astype(np.float64), axis=1), np.linalg.norm(b.astype(np.float64), axis=1)
        )
        found = product(a, b, np.float64) + bound * rng.choice([-0.95, 0.0, 0.95], size=bound.shape)
        found[rng.random(found.shape) < 0.01] = rng.choice([np.inf, -np.inf, np.nan])
        return found.astype(dtype)

    monkeypatch.setattr(
        host_functions, "_product", lambda *args: (product if args[2] == np.float64 else wrong_product)(*args)
    )
    for share in (1, 8, 10**9):  # rows with many near documents are scored in another way
        monkeypatch.setattr(host_scorer, "NEAR_SHARE", share)
        assert_equal(
            scoring.tie_groups(queries, docs, qrels, fn=fn, orders=ORDERS, **ids), from_run(qrels, run, ORDERS)
        )
        found = scoring.search(queries, docs, 7, fn=fn, **ids).to_dict()
        assert list(found.values()) == [best(row, ids["doc_ids"], 7) for row in truth.astype(np.float64)]


def test_a_device_whose_products_depend_on_the_position(collection, small_tiles, on_device, monkeypatch):
    """Then the scores of the blocks are used: a document ties with itself, whatever the library does."""
    *vectors, ids, qrels = collection
    queries, docs = as_library("torch", vectors[0], vectors[1][:150])
    queries, docs, torch = queries.float(), docs.float(), pytest.importorskip("torch")
    ids = {**ids, "doc_ids": ids["doc_ids"][:150]}
    monkeypatch.setattr(
        TorchBackend, "product", lambda self, a, b: (a @ b.T) * (1 + torch.arange(len(b), dtype=torch.float32) / 64)
    )
    monkeypatch.setattr(TorchBackend, "product_into", lambda self, out, a, b: False)
    scores = scoring.score(queries, docs, fn="dot").numpy()
    assert (scores != scoring.score(queries, docs.flip(0), fn="dot").numpy()[:, ::-1]).any()
    found = scoring.tie_groups(queries, docs, qrels, orders=ORDERS, block=8, **ids)
    assert_equal(found, from_run(qrels, full_run(scores, ids), ORDERS))
    given = scoring.judged_scores(queries, docs, qrels, **ids)
    with pytest.raises(InputError, match="differs from its score here"):
        scoring.tie_groups(queries, docs, qrels, scores=given, **ids)


def test_a_device_whose_products_depend_on_the_shape(collection, small_tiles, on_device, monkeypatch):
    """Then documents are multiplied tile by tile, and not all at once."""
    *vectors, ids, qrels = collection
    queries, docs = as_library(
        "torch", np.pad(vectors[0], [(0, 0), (0, 8)]), np.pad(vectors[1][:501], [(0, 0), (0, 8)])
    )
    queries, docs, torch = queries.float(), docs.float(), pytest.importorskip("torch")
    ids = {**ids, "doc_ids": ids["doc_ids"][:501]}
    truth = scoring.tie_groups(queries, docs, qrels, orders=ORDERS, **ids)

    def product_into(self, out, a, b):
        torch.mm(a, b.T, out=out)
        out *= 1 if len(b) == self.doc_tile else 2
        return True

    monkeypatch.setattr(TorchBackend, "can_write_product", lambda self, dtype, out_dtype: True)
    monkeypatch.setattr(TorchBackend, "product_into", product_into)
    monkeypatch.setattr(device_scorer, "_same_bits", {})
    assert_equal(scoring.tie_groups(queries, docs, qrels, orders=ORDERS, block=1000, **ids), truth)
    assert {same for shapes in device_scorer._same_bits.values() for same in shapes.values()} == {False}


@pytest.mark.filterwarnings("ignore:Zero vectors")
@pytest.mark.parametrize("n", [5, 501])
@pytest.mark.parametrize("fn", ["dot", "cosine"])
def test_products_of_documents_in_place(small_tiles, on_device, monkeypatch, fn, n):
    """Of fewer documents than a tile has, and of many; the second call uses what the first one prepared."""
    torch, rng = pytest.importorskip("torch"), np.random.default_rng(0)
    queries, docs = (torch.from_numpy(rng.integers(-2, 3, (m, 16)).astype(np.float32)) for m in (6, n))
    docs[3], queries[1] = docs[0], 0
    qrels = tw.Qrels.from_dict({str(i): {"0": 1, "3": 1, str(n - 1): 1} for i in range(6)})
    plain = scoring.Collection(docs, fn=fn)
    truth, found = plain.tie_groups(queries, qrels, orders=ORDERS), plain.search(queries, 4).to_dict()
    monkeypatch.setattr(TorchBackend, "can_write_product", lambda self, dtype, out_dtype: True)
    monkeypatch.setattr(TorchBackend, "product_into", lambda self, out, a, b: torch.mm(a, b.T, out=out) is not None)
    monkeypatch.setattr(device_scorer, "_same_bits", {})
    prepared = scoring.Collection(docs, fn=fn)
    for _ in range(2):
        assert_equal(prepared.tie_groups(queries, qrels, orders=ORDERS), truth)
        assert prepared.search(queries, 4).to_dict() == found


def test_a_document_ties_with_its_copy_at_any_position(collection):
    queries, docs, _, _ = collection
    many = np.concatenate([docs, docs[::-1]]).astype(np.float32)
    scores = scoring.score(queries.astype(np.float32), many, fn="dot")
    np.testing.assert_array_equal(scores[:, :DOCS], scores[:, DOCS:][:, ::-1])
    alone = scoring.search(queries.astype(np.float32), many[:1], 1)
    np.testing.assert_array_equal(alone.score, scores[:, 0])


def test_evaluate_without_a_run(collection):
    queries, docs, ids, qrels = collection
    scores = scoring.score(queries, docs, fn="dot", precision="native").astype(np.float64)
    ties = scoring.tie_groups(queries, docs, qrels, precision="native", **ids)
    ours = tw.evaluate(None, ties, ["nDCG@10", "AP", "RR"], oblivious="docid-desc", complete=True)
    theirs = tw.evaluate(qrels, full_run(scores, ids), ["nDCG@10", "AP", "RR"], oblivious="docid-desc", complete=True)
    for name in ("nDCG@10", "AP", "RR"):
        assert ours[name] == theirs[name]
    assert ours["AP"].range > 0


def test_ties_at_the_end_of_a_list_are_kept_without_a_cap():
    docs = np.array([[1.0], [2.0], [1.0], [1.0], [0.0]])
    assert scoring.search([[1.0]], docs, 2).to_dict() == {"0": {"1": 2.0, "0": 1.0, "2": 1.0, "3": 1.0}}
    with pytest.warns(TiewiseWarning, match="2 documents that tie"):
        cut = scoring.search([[1.0]], docs, 2, cap=2)
    assert cut.to_dict() == {"0": {"1": 2.0, "0": 1.0}}
    assert len(scoring.search([[1.0]], docs, 2, cap=4)) == 4
    with pytest.warns(TiewiseWarning, match=r"^cap=3 left out 1 document that ties with the last one"):
        scoring.search([[1.0]], docs, 2, cap=3)


def test_a_search_knows_which_lists_end_inside_a_tie_group():
    docs = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0], [1.0, 3.0]])
    assert scoring.search(np.eye(2), docs, 2).complete_lists.tolist() == [True, True]
    with pytest.warns(TiewiseWarning, match="cap=3"):
        cut = scoring.search(np.eye(2), docs, 2, cap=3)
    assert cut.complete_lists.tolist() == [False, False]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tw.evaluate({"0": {"0": 1}}, scoring.search(np.eye(2), docs, 2), "AP")
    with pytest.warns(tw.CutWarning, match="2 of 2 lists"):
        tw.evaluate({"0": {"0": 1}, "1": {"0": 1}}, cut, "AP")


def test_queries_without_judgments(collection):
    """The qrels have fewer queries than there are vectors, or the same number with other ids."""
    *vectors, ids, _ = collection
    queries, docs = (x.astype(np.float32) for x in (vectors[0][:4], vectors[1][:500]))
    ids = {"query_ids": ids["query_ids"][:4], "doc_ids": ids["doc_ids"][:500]}
    run = full_run(scoring.score(queries, docs, fn="dot"), ids)
    some = dict.fromkeys(ids["doc_ids"][:9], 1)
    for others in ([], ["x", "y"], ["x", "y", "z", "0"]):
        qrels = tw.Qrels.from_dict(dict.fromkeys([*others, "q3", "q1"], some))
        found = scoring.tie_groups(queries, docs, qrels, orders=ORDERS, **ids)
        assert_equal(found, from_run(qrels, run, ORDERS))
        assert found.unjudged == {"q0", "q2"}


def test_options_may_be_numpy_integers(collection, small_tiles):
    *vectors, ids, qrels = collection
    queries, docs = (x.astype(np.float32) for x in (vectors[0], vectors[1][:200]))
    ids = {**ids, "doc_ids": ids["doc_ids"][:200]}
    sizes = {"block": np.int64(24), "query_block": np.int32(4)}
    plain = scoring.search(queries, docs, 3, cap=5, **ids).to_dict()
    assert scoring.search(queries, docs, np.int64(3), cap=np.int64(5), **sizes, **ids).to_dict() == plain
    assert_equal(
        scoring.tie_groups(queries, docs, qrels, **sizes, **ids), scoring.tie_groups(queries, docs, qrels, **ids)
    )


def test_empty_operands():
    assert scoring.search(np.zeros((2, 3)), np.zeros((0, 3)), 5).to_dict() == {"0": {}, "1": {}}
    assert scoring.search(np.zeros((0, 3)), np.zeros((4, 3)), 5).to_dict() == {}
    ties = scoring.tie_groups(np.ones((1, 3)), np.zeros((0, 3)), {"0": {"1": 1}})
    assert (ties.length.tolist(), ties.size.tolist(), ties.present.tolist()) == ([0], [0], [True])


@pytest.mark.parametrize("call", [scoring.search, scoring.tie_groups])
def test_progress_ends_with_the_total(collection, call, small_tiles):
    *vectors, ids, qrels = collection
    seen: list[tuple[int, int]] = []
    last = 5 if call is scoring.search else qrels
    ids = {**ids, "doc_ids": ids["doc_ids"][:500]}
    call(vectors[0], vectors[1][:500], last, progress=lambda done, total: seen.append((done, total)), **ids)
    assert len(seen) > 3 and seen == sorted(seen) and seen[-1][0] == seen[-1][1]
    assert [done for done, total in seen].count(seen[-1][1]) == 1


def test_errors():
    q, d = np.ones((2, 3)), np.ones((4, 3))
    bad = d.copy()
    bad[2, 1] = np.nan
    qrels = {"0": {"1": 1}}
    for call, match in [
        (lambda: scoring.search(q, d, 0), "k must be an integer of at least 1"),
        (lambda: scoring.search(q, d, 2.0), "k must be an integer of at least 1"),
        (lambda: scoring.search(q, d, 2, cap=1), "cap must be None or an integer of at least 2, not 1"),
        (lambda: scoring.search(q, d, 2, block=0), "block must be None or an integer of at least 1, not 0"),
        (lambda: scoring.search(q, d, 2, query_block=2.0), "query_block must be None or an integer"),
        (lambda: scoring.search(q, bad, 1), "Row 2 of the documents holds NaN"),
        (lambda: scoring.search(q, d, 1, fn="sigmoid"), "of two operands"),
        (lambda: scoring.search(q, d, 1, doc_ids=["a"]), "1 document id for 4 document vectors"),
        (lambda: scoring.search(q, d, 1, doc_ids="abcd"), "list with one id per row, not 'abcd'"),
        (lambda: scoring.search(q, d, 1, query_ids=np.int64(7)), "list with one id per row, not 7"),
        (lambda: scoring.search(q, d, 1, progress=True), r"called with \(done, total\), or None, not True"),
        (lambda: scoring.tie_groups(q, d, {"0": {"1": 1}}, progress=True), "progress is a function"),
        (lambda: scoring.rescore({"0": {"1": 1.0}}, q, d, progress=True), "progress is a function"),
        (lambda: scoring.search(q, d, 1, doc_ids=["a", "b", "a", "c"]), "1 document id occurs more than once: 'a'"),
        (lambda: scoring.search(q, d, 1, query_ids=[1.5, 2]), "Ids are text or integers"),
        (lambda: scoring.tie_groups(q, d, {"x": {"1": 1}}), "none of the queries.*query_ids .*missing"),
        (lambda: scoring.tie_groups(q, d, {"0": {"01": 1}}), "none of the documents.*doc_ids .*missing"),
        (lambda: scoring.tie_groups(q, d, qrels, orders=["rank"]), "Unknown tie-break order 'rank'"),
        (lambda: scoring.tie_groups(q, d, qrels, scores=np.zeros(3)), "scores have shape"),
        (lambda: scoring.tie_groups(q, d, qrels, scores=np.zeros(1)), "differs from its score here"),
        (lambda: scoring.tie_groups(q, bad, {"0": {"1": 1}}), "Row 2 of the documents"),
        (lambda: scoring.tie_groups(np.where(q > 0, np.inf, q), d, qrels), "Row 0 of the queries"),
    ]:
        with pytest.raises(InputError, match=match):
            call()


def test_default_ids_are_row_numbers():
    d = np.arange(12.0)[:, None]
    assert list(scoring.search([[1.0]], d, 2).to_dict()["0"]) == ["11", "10"]
    ties = scoring.tie_groups([[1.0]], np.ones((12, 1)), {"0": {"9": 1, "10": 1}}, orders=ORDERS)
    assert ties.before["docid-desc"].tolist() == [0, 10 - 1] and ties.before["given"].tolist() == [9, 10]
    assert scoring.search([[1.0]], d, 1, doc_ids=np.arange(12) + 100).to_dict() == {"0": {"111": 11.0}}


@pytest.mark.parametrize(
    "other", ["12", "07", "+7", "-1", "", " 7", "7 8", "7_0", "x", "٧", "²", "9" * 18, "9" * 30, "1e1", "0x7"]
)
def test_row_numbers_are_parsed_strictly(other):
    """Plain numbers are parsed at once. Any other text is no row, and does not affect the others."""
    ids = Ids(None, 12, "document")
    assert ids.find_rows(["11", "0", "7"]).tolist() == [11, 0, 7] and ids.find_rows([]).tolist() == []
    assert ids.find_rows(["11", other, "0", "7"]).tolist() == [11, -1, 0, 7]
    assert ids.find_rows(["0", "1", "2"]).tolist() == [0, 1, 2] and ids.find_rows(["0", "1", other]).tolist() == [
        0,
        1,
        -1,
    ]
    assert ids.find_rows([other]).tolist() == [-1]


def test_on_a_gpu(collection):
    """The same, with products of bfloat16 that give float32; documents on the GPU or in main memory."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    *vectors, ids, qrels = collection
    queries, docs = (x.cuda() for x in as_library("torch", *vectors))
    exact = scoring.score(*vectors, fn="dot", precision="float64")
    for fn, precision in (("dot", "float32"), ("dot", "native"), ("cosine", "float32"), ("euclidean", "float32")):
        options = {"fn": fn, "precision": precision}
        found = scoring.score(queries, docs, **options)
        assert found.is_cuda
        scores = found.double().cpu().numpy()
        if options == {"fn": "dot", "precision": "float32"}:
            np.testing.assert_allclose(scores, exact, rtol=1e-5, atol=2e-5)
            assert len(np.unique(scores)) > 20 * len(np.unique((queries @ docs.T).double().cpu().numpy()))
        truth = from_run(qrels, full_run(scores, ids), ORDERS)
        for stored in (docs, docs.cpu(), vectors[1]):
            for block in (None, 1):
                found = scoring.tie_groups(queries, stored, qrels, orders=ORDERS, block=block, **ids, **options)
                assert_equal(found, truth)
        run = scoring.search(queries, docs, 50, **ids, **options).to_dict()
        assert [*run.values()] == [best(row, ids["doc_ids"], 50) for row in scores]


@pytest.mark.parametrize("judged", [3, 40])
def test_many_tiles_on_a_gpu(judged):
    """Products of all documents at once, or in blocks of tiles, and kernels that count: all as in main memory.

    Vectors of small integers have thousands of ties, and their products are exact.
    """
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    rng = np.random.default_rng(3)
    q, d = (rng.integers(-4, 5, (n, 16)).astype(np.float32) for n in (5, 300_001))
    qrels = tw.Qrels.from_dict(
        {str(i): {str(j): 1 for j in rng.integers(0, len(d) + 5, judged)} for i in range(len(q))}
    )
    truth = scoring.tie_groups(q, d, qrels, orders=ORDERS)
    assert (truth.size > 100).any()
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        queries, docs = (torch.from_numpy(x).cuda().to(dtype) for x in (q, d))
        for block in (None, 1, 140_000):
            assert_equal(scoring.tie_groups(queries, docs, qrels, orders=ORDERS, block=block), truth)
        assert scoring.search(queries, docs, 20).to_dict() == scoring.search(q, d, 20).to_dict()
        single = tw.Qrels.from_dict({"0": {"7": 1}})
        assert_equal(scoring.tie_groups(queries[:1], docs, single), scoring.tie_groups(q[:1], d, single))
    docs[299_999, 3] = float("nan")
    with pytest.raises(InputError, match="Row 299999 of the documents holds NaN"):
        scoring.tie_groups(queries, docs, qrels)


def pack_keys(docs, scores):
    """One integer for each document and its score, as `_select_documents` computes it on a device."""
    bits = np.where(scores == 0, np.float32(0), scores).view(np.int32)
    return ((bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64) << 32) | (LAST_DOCUMENT - docs)


def test_keys_sort_documents_with_their_scores():
    """In the order of a ranking, which Python sorts by score and document; unpacking gives back what was packed."""
    rng = np.random.default_rng(5)
    special = np.float32([0.0, -0.0, np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45, -1e-45, 0.5, -0.5])
    scores = np.concatenate([np.repeat(special, 20), rng.normal(size=200).astype(np.float32)])
    scores = np.concatenate([scores, rng.integers(0, 2**32, 2_000, dtype=np.uint32).view(np.float32)])  # any bits
    scores = rng.permutation(scores[~np.isnan(scores)])
    docs = rng.permutation(len(scores))
    docs[:2] = 2**32 - 1, 2**31
    keys = pack_keys(docs, scores)
    ranking = sorted(range(len(keys)), key=lambda i: (-float(scores[i]), docs[i]))
    assert np.argsort(keys)[::-1].tolist() == ranking
    assert keys.min() > NO_DOCUMENT
    found_docs, found_scores = unpack_keys(keys)
    assert found_docs.tolist() == docs.tolist() and found_scores.tolist() == scores.tolist()
    for i in range(0, len(keys), 37):
        assert ((keys >= lowest_equal_key(keys[i])) == (scores >= scores[i])).all()


def test_the_kernel_that_selects_packs_keys_by_their_definition():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    rng, n = np.random.default_rng(6), 10_007
    rows = [
        rng.normal(size=n),
        -np.abs(rng.normal(size=n)),
        rng.choice([0.0, -0.0, 1e-45, -1e-45], n, p=[0.3, 0.3, 0.002, 0.398]),
        rng.choice([1e-45, 3.4e38, np.inf], n, p=[0.9, 0.097, 0.003]),
        np.full(n, -np.inf),
    ]
    scores = np.stack(rows).astype(np.float32)
    selection = Selection(torch, ScoreBlock(torch.from_numpy(scores).cuda()), 50)
    table, limits = selection.select(n).cpu().numpy(), selection.limit.cpu().numpy()
    for row, limit, found in zip(scores, limits, table, strict=True):
        docs = np.flatnonzero(row >= limit)
        keys = np.sort(pack_keys(docs, row[docs]))[::-1]
        assert found[0] == len(keys) >= 50
        assert found[2:].tolist() == [*keys, *[NO_DOCUMENT] * (n - len(keys))]


# -- ids that were not given ------------------------------------------------------------------------------------------

NUMBERED_DOCS = np.random.default_rng(9).normal(size=(12, 4)).astype(np.float32)
FROM_ONE = {str(i + 1): {str(i + 1): 1} for i in range(5)}  # judgments that count from 1


def test_row_numbers_that_the_judgments_do_not_have():
    """Judged ids outside the numbers of rows are an error; a number 0 that is not judged is a warning."""
    queries, docs = NUMBERED_DOCS[:5], NUMBERED_DOCS
    ids = {"query_ids": range(1, 6), "doc_ids": range(1, 13)}
    outside = r"numbered 0 to 4, but the qrels have others: '5'. Give query_ids \(--query-ids\)"

    def search(vectors, k):
        return np.zeros((5, 1)), np.zeros((5, 1), int)

    for refused in (
        lambda: scoring.tie_groups(queries, docs, FROM_ONE),
        lambda: tw.protocol(FROM_ONE, tw.rows.vectors(queries, docs, ["int8"])),
        lambda: check(search, scoring.Collection(docs), queries, 1, qrels=FROM_ONE),
    ):
        with pytest.raises(InputError, match=outside):
            refused()
    with pytest.raises(InputError, match=r"The documents .* 0 to 11, .* others: '12'. Give doc_ids \(--doc-ids\)"):
        scoring.tie_groups(queries, docs, {"1": {"12": 1, "3": 1}}, query_ids=range(1, 6))
    with pytest.warns(tw.TiewiseWarning) as said:
        scoring.tie_groups(queries, docs, {"1": {"1": 1}})
    assert [str(one.message).partition(":")[0] for one in said] == [
        "Query ids were not given",
        "Document ids were not given",
    ]
    ties = scoring.tie_groups(queries, docs, FROM_ONE | {"99": {"98": 1}}, fn="cosine", **ids)  # others may be judged
    assert tw.evaluate(None, ties, "RR")["RR"].expected == pytest.approx(5 / 6)


def test_runs_of_row_numbers():
    """`evaluate` says of a run from `search` or `from_neighbors` that its ids are row numbers."""
    run = scoring.search(NUMBERED_DOCS[:5], NUMBERED_DOCS, 3)
    neighbours = tw.Run.from_neighbors(np.ones((5, 2)) * [2, 1], np.tile([1, 3], (5, 1)))  # indices may be ids
    for made in (run, pickle.loads(pickle.dumps(run)), neighbours):
        with pytest.warns(tw.TiewiseWarning, match=r"query '0' is not judged.*give query_ids"):
            tw.evaluate({"1": {"0": 1, "1": 1}}, made, "RR", complete=True)
        if made is not neighbours:
            with pytest.warns(tw.TiewiseWarning, match=r"document '0' is not judged.*give doc_ids"):
                tw.evaluate({"0": {"1": 1}}, made, "RR", complete=True)


@pytest.mark.filterwarnings("error")
def test_no_warning_where_ids_are_right():
    docs = NUMBERED_DOCS
    from_zero = {str(i): {str(i): 1} for i in range(5)}
    scoring.tie_groups(docs[:5], docs, from_zero)
    tw.evaluate(from_zero, scoring.search(docs[:5], docs, 3), "RR")
    tw.protocol(None, tw.rows.vectors(docs[:5], docs, ["int8"]))
    run = scoring.search(docs[:5], docs, 3, query_ids=range(1, 6), doc_ids=range(1, 13))
    tw.evaluate(FROM_ONE, run, "RR")
