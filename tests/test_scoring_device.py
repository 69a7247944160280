"""Scores on a GPU: copies tie, shards equal the whole, and settings around a call change nothing."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest

import tiewise as tw
from scoring_reference import changed_setting
from tiewise import scoring
from tiewise.ties.groups import TieGroups

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
TYPES = {
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
}
NAMES = ("score", "start", "size", "lowest", "lowest_size")


def random_vectors(dims: int, dtype: str, docs: int = 70_003, queries: int = 23):
    """Vectors on the device with copies of one document at many positions, and these positions."""
    rng = np.random.default_rng(dims)
    q, d = rng.normal(size=(queries, dims)).astype("f4"), rng.normal(size=(docs, dims)).astype("f4")
    places = rng.choice(np.arange(1, docs), 300, replace=False)
    d[places] = d[0]
    return *(torch.from_numpy(x).cuda().to(TYPES[dtype]) for x in (q, d)), places


@pytest.mark.parametrize("fn", ["dot", "cosine", "euclidean"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("dims", [33, 257, 1023, 1024])
def test_copies_tie_and_shards_equal_the_whole(dims, dtype, fn):
    q, d, places = random_vectors(dims, dtype)
    for precision in ("float32", "native"):
        scores = scoring.score(q, d, fn=fn, precision=precision)
        assert (scores[:, torch.from_numpy(places).cuda()] == scores[:, :1]).all(), precision
    rng = np.random.default_rng(1)
    judged = np.concatenate([[0], rng.choice(len(d), 9, replace=False)])
    qrels = tw.Qrels.from_dict({str(i): {str(j): 1 for j in judged} for i in range(len(q))})
    whole = scoring.tie_groups(q, d, qrels, fn=fn, orders=("docid-desc", "given"))
    assert (whole.size[:1] >= 301).all()
    wide = scoring.score(q, d, fn=fn)
    own = wide[:, torch.from_numpy(judged).cuda()]
    assert whole.start[: len(judged)].tolist() == (wide[0] > own[0][:, None]).sum(1).tolist()
    assert whole.size[: len(judged)].tolist() == (wide[0] == own[0][:, None]).sum(1).tolist()
    for edges in ([0, 1, 40_000, len(d)], [0, 35_001, len(d)]):
        parts = [(d[low:high], [str(j) for j in range(low, high)]) for low, high in pairwise(edges)]
        given = np.fmax.reduce([scoring.judged_scores(q, part, qrels, fn=fn, doc_ids=ids) for part, ids in parts])
        shards = [
            scoring.tie_groups(q, part, qrels, fn=fn, doc_ids=ids, scores=given, orders=("docid-desc", "given"))
            for part, ids in parts
        ]
        merged = TieGroups.merge(shards)
        for name in NAMES:
            np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name), err_msg=name)
        for order in ("docid-desc", "given"):
            np.testing.assert_array_equal(merged.before[order], whole.before[order], err_msg=order)
    run = scoring.search(q, d, 50, fn=fn).to_dict()
    for place, found in enumerate(run.values()):
        bound = float(wide[place].topk(50).values.min())
        assert found == {str(j): float(wide[place, j]) for j in torch.nonzero(wide[place] >= bound)[:, 0].tolist()}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("dims", [33, 257, 1023])
def test_late_interaction_and_heads(dims, dtype):
    q, d, _ = random_vectors(dims, dtype, docs=2000, queries=8)
    tokens = q.reshape(4, 2, dims), d.reshape(500, 4, dims).clone()
    tokens[1][[7, 250, 499]] = tokens[1][0].clone()
    scores = scoring.score(*tokens, fn="maxsim")
    assert (scores[:, [7, 250, 499]] == scores[:, :1]).all()
    weight = q[:2]
    logits = scoring.head(d, weight)
    many = torch.cat([d, d[:1], d.flip(0)])
    again = scoring.head(many, weight)
    assert (again[: len(d)] == logits).all() and (again[len(d) + 1 :] == logits.flip(0)).all()
    assert (again[len(d)] == logits[0]).all() and (scoring.head(d[5:6], weight) == logits[5]).all()
    exact = d.double() @ weight.double().T
    assert float((logits.double() - exact).abs().max() / exact.abs().max()) < 1e-5


def settings_of():
    matmul = torch.backends.cuda.matmul

    def attribute(name, value):
        return lambda: changed_setting(lambda: getattr(matmul, name), lambda one: setattr(matmul, name, one), value)

    found = {
        "autocast": lambda: torch.autocast("cuda", dtype=torch.bfloat16),
        "autocast, float16": lambda: torch.autocast("cuda", dtype=torch.float16),
        "medium": lambda: changed_setting(
            torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"
        ),
        "inference mode": torch.inference_mode,
        "deterministic": lambda: changed_setting(
            torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
        ),
        "default dtype": lambda: changed_setting(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
        "reduced precision": attribute("allow_fp16_reduced_precision_reduction", True),
    }
    if hasattr(matmul, "fp32_precision"):
        found["TF32"] = attribute("fp32_precision", "tf32")
    if hasattr(matmul, "allow_fp16_accumulation"):
        found["float16 accumulation"] = attribute("allow_fp16_accumulation", True)
    return found


@pytest.mark.parametrize("name", settings_of() if torch.cuda.is_available() else ["none"])
def test_settings_around_a_call_change_nothing(name):
    for dtype in ("float32", "float16", "bfloat16"):
        q, d, _ = random_vectors(257, dtype, docs=5000)
        calls = {
            **{
                fn: lambda fn=fn, q=q, d=d: scoring.score(q, d, fn=fn).double().cpu()
                for fn in ("dot", "cosine", "euclidean")
            },
            "sigmoid": lambda q=q: scoring.score(q, fn="sigmoid").double().cpu(),
            "softmax": lambda q=q: scoring.score(q, fn="softmax").double().cpu(),
            "head": lambda q=q, d=d: scoring.head(d, q[:2], torch.zeros(2, device="cuda")).double().cpu(),
            "search": lambda q=q, d=d: torch.tensor(scoring.search(q, d, 7).score),
            "tie_groups": lambda q=q, d=d: torch.from_numpy(scoring.tie_groups(q, d, {"0": {"3": 1, "9": 1}}).score),
        }
        truth = {what: call() for what, call in calls.items()}
        with settings_of()[name]():
            found = {what: call() for what, call in calls.items()}
        for what in calls:
            assert torch.equal(found[what], truth[what]), (dtype, what)


@pytest.mark.parametrize("kind", ["random", "positive", "one large", "cancelling"])
def test_device_products_stay_within_the_error_bound(kind):
    """|ŝ − s| ≤ 1.01·(d + 2)·2⁻²⁴·‖q‖‖d‖ for low-precision operands with float32 output."""
    for dims in (33, 384, 1024, 4096):
        for dtype in (torch.bfloat16, torch.float16):
            generator = torch.Generator("cuda").manual_seed(dims)
            q, d = (torch.randn(n, dims, device="cuda", generator=generator) for n in (64, 4096))
            if kind == "positive":
                q, d = q.abs(), d.abs()
            elif kind == "one large":
                q[:, 0], d[:, 0] = 1000.0, 30.0
            elif kind == "cancelling":
                half = dims // 2
                q[:, half : 2 * half], d[:, half : 2 * half] = q[:, :half], -d[:, :half]
            q, d = q.to(dtype), d.to(dtype)
            exact = q.double() @ d.double().T
            bound = 1.01 * (dims + 2) * 2.0**-24 * q.double().norm(dim=1)[:, None] * d.double().norm(dim=1)
            off = (scoring.score(q, d, fn="dot").double() - exact).abs()
            assert float((off / bound).max()) <= 1, (dims, dtype)


def tied_table(scores, judged):
    own = scores[:, judged]
    above = torch.stack([(scores > own[:, j : j + 1]).sum(1) for j in range(own.shape[1])], 1)
    equal = torch.stack([(scores == own[:, j : j + 1]).sum(1) for j in range(own.shape[1])], 1)
    return above.ravel().tolist(), equal.ravel().tolist()


@pytest.mark.parametrize("fn", ["dot", "cosine"])
def test_many_judged_documents(fn):
    """Scores are searched among thresholds, of which some are equal."""
    q, d, places = random_vectors(64, "bfloat16", docs=30_001, queries=5)
    judged = np.concatenate([[0], places[:40], np.random.default_rng(0).choice(len(d), 400, replace=False)])
    judged = np.unique(judged)
    qrels = tw.Qrels.from_dict({str(i): {str(j): 1 for j in judged} for i in range(len(q))})
    collection = scoring.Collection(d, fn=fn)
    ties = collection.tie_groups(q, qrels, orders=("docid-desc", "docid-asc", "given"))
    above, equal = tied_table(scoring.score(q, d, fn=fn), torch.from_numpy(judged).cuda())
    assert ties.start.tolist() == above and ties.size.tolist() == equal
    few = tw.Qrels.from_dict({str(i): {str(j): 1 for j in judged[:9]} for i in range(len(q))})
    some = collection.tie_groups(q, few, orders=("docid-desc", "docid-asc", "given"))
    for order in some.before:
        at = np.concatenate([np.arange(9) + i * len(judged) for i in range(len(q))])
        np.testing.assert_array_equal(ties.before[order][at], some.before[order], err_msg=order)


@pytest.mark.parametrize("k", [1, 100, 5000])
def test_search_among_many_ties(k):
    """More documents tie with the k-th than there is room for at first; and the best are all in one place."""
    generator = torch.Generator("cuda").manual_seed(0)
    d = torch.randint(-2, 3, (40_000, 16), device="cuda", generator=generator).bfloat16()
    d[5000:7000] = 3
    q = torch.ones((3, 16), device="cuda").bfloat16()
    q[1, 0], q[2] = 5, -1
    for fn in ("dot", "cosine"):
        scores = scoring.score(q, d, fn=fn)
        run = scoring.Collection(d, fn=fn).search(q, k)
        assert run.descending
        for row, found in enumerate(run.to_dict().values()):
            bound = scores[row].topk(k).values.min()
            expected = torch.nonzero(scores[row] >= bound)[:, 0].tolist()
            assert found == {str(j): float(scores[row, j]) for j in expected}
        blocks = scoring.Collection(d, fn=fn).search(q, k, block=1)
        assert blocks.to_dict() == run.to_dict()


def test_kinds_of_collections():
    """Documents in main memory, on the device, quantised, without padding, and cut to their first dimensions."""
    rng = np.random.default_rng(0)
    q, d = rng.normal(size=(7, 64)).astype("f4"), rng.normal(size=(3000, 64)).astype("f4")
    d[[5, 2999]] = d[0]
    tokens = [rng.normal(size=(n, 32)).astype("f4") for n in rng.integers(1, 9, 500)]
    tokens[499] = tokens[0].copy()
    int8 = scoring.quantize(d, "int8")
    kinds = {
        "numpy": (q, d, "cosine", {}),
        "int8": (q, int8, "dot", {}),
        "int4": (q, scoring.quantize(d, "int4"), "cosine", {}),
        "hamming": (scoring.quantize(q, "binary"), scoring.quantize(d, "binary"), "hamming", {}),
        "dims": (q, d, "cosine", {"dims": 33}),
        "tokens": (tokens[3:6], tokens, "maxsim", {}),
    }
    for name, (queries, docs, fn, options) in kinds.items():
        qrels = {"0": {"0": 1, "7": 1}, "1": {"4": 1}}
        found = scoring.Collection(docs, fn=fn, device="cuda", **options)
        truth = scoring.Collection(docs, fn=fn, precision="float64", device="cpu", **options)
        ties, exact = found.tie_groups(queries, qrels), truth.tie_groups(queries, qrels)
        np.testing.assert_allclose(ties.score, exact.score, rtol=1e-5, atol=1e-5, err_msg=name)
        assert np.abs(ties.start - exact.start).max() <= 2 and (ties.size[:1] >= 2).all(), name
        best, truly = found.search(queries, 10).to_dict(), truth.search(queries, 10).to_dict()
        for query in best:
            np.testing.assert_allclose(list(best[query].values())[:10], list(truly[query].values())[:10], rtol=1e-4)


@pytest.mark.parametrize("fn", ["dot", "cosine"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float8_e4m3fn"])
@pytest.mark.parametrize("dims", [33, 384, 1024])
def test_reproducible_scores_have_the_bits_of_the_cpu(dims, dtype, fn):
    q, d, _ = random_vectors(dims, dtype, docs=20_003, queries=9)
    d[77] = 0
    qrels = tw.Qrels.from_dict({str(i): {str(j): 1 for j in (0, 5 + i, 19_999)} for i in range(len(q))})
    found, truth = scoring.Collection(d, fn=fn, reproducible=True), scoring.Collection(d.cpu(), fn=fn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tw.errors.TiewiseWarning)
        for block in (None, 5000):
            assert found.search(q, 50, block=block).to_dict() == truth.search(q.cpu(), 50).to_dict()
            ties, same = found.tie_groups(q, qrels, block=block), truth.tie_groups(q.cpu(), qrels)
            for name in NAMES:
                np.testing.assert_array_equal(getattr(ties, name), getattr(same, name), err_msg=name)
            np.testing.assert_array_equal(ties.before["docid-desc"], same.before["docid-desc"])
