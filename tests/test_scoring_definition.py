"""The score of a pair is a function of its two vectors: on every CPU, in every block, with every setting."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiewise as tw
from scoring_reference import (
    FUNCTIONS,
    changed_setting,
    definition_digests,
    dot,
    head_by_definition,
    judgments,
    maxsim_by_definition,
    score_by_definition,
    vectors,
)
from tiewise import scoring
from tiewise.errors import InputError
from tiewise.scoring.definition import HalfRows, Rounding, float32_rounding
from tiewise.scoring.environment import ieee_arithmetic
from tiewise.ties import tie_groups as from_run

ml_dtypes = pytest.importorskip("ml_dtypes")
X86 = platform.machine() in ("x86_64", "AMD64")
LOWERED = {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default"}


@pytest.fixture(params=["compiled", "python"])
def kernels(request, monkeypatch):
    """The compiled kernels, and the NumPy code that replaces them."""
    if request.param == "compiled":
        pytest.importorskip("tiewise._kernels")
    monkeypatch.setenv("TIEWISE_KERNELS", request.param)
    return request.param


@cache
def expected_digests() -> dict[str, str]:
    return definition_digests()


# -- CPUs and threads -----------------------------------------------------------------------------------------------


def run_worker(library: str, **variables: str) -> dict:
    script = Path(__file__).parent / "scoring_reference.py"
    done = subprocess.run(
        [sys.executable, str(script), library], capture_output=True, text=True, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("core", ["Haswell", "Nehalem", "Prescott", ""])
def test_every_openblas_kernel_gives_the_bits_of_the_definition(core, threads):
    pytest.importorskip("threadpoolctl")
    if core and not X86:
        pytest.skip("OpenBLAS has this kernel on x86 only")
    variables = {"OPENBLAS_CORETYPE": core} if core else {}
    found = run_worker("numpy", OPENBLAS_NUM_THREADS=threads, OMP_NUM_THREADS=threads, **variables)
    if core and found["cores"]:
        names = {core, "Katmai"} if core == "Prescott" else {core}  # OpenBLAS calls it by its older name
        assert names & set(found["cores"]) or (core == "Haswell" and not _has_avx2()), found["cores"]
    assert found["digests"] == expected_digests()


def _has_avx2() -> bool:
    info = Path("/proc/cpuinfo")
    return not info.exists() or "avx2" in info.read_text()


@pytest.mark.parametrize("variables", [{}, LOWERED, {"OMP_NUM_THREADS": "1", **LOWERED}])
def test_torch_gives_the_bits_of_the_definition(variables):
    pytest.importorskip("torch")
    pytest.importorskip("threadpoolctl")
    assert run_worker("torch", **variables)["digests"] == expected_digests()


def test_numpy_without_compiled_kernels_gives_the_bits_of_the_definition():
    assert run_worker("numpy", TIEWISE_KERNELS="python")["digests"] == expected_digests()


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_products_of_float64_are_rounded_before_they_are_added(fn, kernels):
    """A fused multiply-add, which compilers use on ARM unless -ffp-contract=off forbids it, skips this rounding."""
    rng = np.random.default_rng(3)
    q, d = rng.normal(size=(4, 300)), rng.normal(size=(100, 300))
    found = scoring.score(q, d, fn=fn, precision="float64")
    assert (found == score_by_definition(q, d, fn, "f8")).all()


# -- half precision -------------------------------------------------------------------------------------------------


def half_vectors(dtype: str, dims: int, n_queries: int, library: str):
    """Queries and documents with copies, zeros of both signs, subnormal and large numbers; and both in float32."""
    rng = np.random.default_rng(5)
    q, d = rng.normal(size=(n_queries, dims)), rng.normal(size=(150, dims))
    d[::5], d[7], d[8], d[9] = d[0], 0.0, -0.0, -d[0]
    d[10:20] *= 1e-6  # subnormal in float16
    d[20:30] *= 1e3
    d[30:34] = rng.integers(-3, 4, (4, dims)) * (2.0**-24 if dtype == "float16" else 2.0**-133)
    q, d = (np.asarray(x).astype(dtype) for x in (q, d))
    wide = q.astype("f4"), d.astype("f4")
    if library == "torch":
        torch = pytest.importorskip("torch")
        q, d = (torch.from_numpy(x).to(getattr(torch, dtype)) for x in wide)
    return (q, d), wide


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("fn", FUNCTIONS)
@pytest.mark.parametrize(("dims", "n_queries"), [(1, 1), (7, 3), (40, 1), (40, 12)])
def test_half_precision_documents_have_the_scores_of_the_definition(dims, n_queries, fn, dtype, library, kernels):
    given, wide = half_vectors(dtype, dims, n_queries, library)
    expected = score_by_definition(*wide, fn)
    qrels = judgments(n_queries, len(wide[1]))
    for block in (None, 16):
        with pytest.warns(tw.TiewiseWarning) if fn == "cosine" else nullcontext():
            run = scoring.search(*given, 10, fn=fn, block=block).to_dict()
            ties = scoring.tie_groups(*given, qrels, fn=fn, block=block, doc_ids=[str(i) for i in range(150)])
        own = np.concatenate([expected[int(query), [int(doc) for doc in docs]] for query, docs in qrels.items()])
        of_query = expected[np.repeat(np.arange(n_queries), 10)]
        assert (ties.score == own).all()
        assert (ties.start == (of_query > own[:, None]).sum(1)).all()
        assert (ties.size == (of_query == own[:, None]).sum(1)).all()
        for query, row in enumerate(expected.astype("f8").tolist()):
            tenth = sorted(row)[-10]
            assert run[str(query)] == {str(doc): score for doc, score in enumerate(row) if score >= tenth}


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_half_precision_documents_must_be_finite(value, dtype, library, kernels):
    (q, d), _ = half_vectors(dtype, 40, 1, library)
    d[17, 3] = value
    with pytest.raises(InputError, match="Row 17 of the documents holds NaN or infinity"):
        scoring.search(q, d, 10)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_every_half_precision_number_is_converted(dtype):
    pytest.importorskip("tiewise._kernels")
    bits = np.arange(2**16, dtype=np.uint16)
    expected = bits.view(dtype).astype("f4")
    for dims in (1, 2**16):  # one number, and many with vector instructions
        rows = bits.reshape(-1, dims)
        found = np.concatenate(
            [HalfRows(row[None] if dtype == "bfloat16" else row[None].view("f2")).astype("f4")[0] for row in rows]
        )
        assert np.array_equal(found, expected, equal_nan=True)
        assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


# -- vectors that are hard to score ---------------------------------------------------------------------------------


def hard_vectors(kind: str, dims: int):
    rng = np.random.default_rng(7)
    q, d = rng.normal(size=(12, dims)).astype("f4"), rng.normal(size=(200, dims)).astype("f4")
    if kind == "cancelling":  # large terms that cancel, so that little but rounding is left
        half = dims // 2
        q[:, half : 2 * half], d[:, half : 2 * half] = q[:, :half], -d[:, :half]
        d[::3] *= np.float32(1e4)
    elif kind == "subnormal":
        q, d = (q * np.float32(1e-22)), (d * np.float32(1e-22))
        d[::2] = np.frombuffer(rng.integers(0, 2**20, d[::2].size).astype("i4").tobytes(), "f4").reshape(d[::2].shape)
    elif kind == "scales":  # from 1e-30 to 1e30 beside each other
        q *= np.float32(10.0) ** rng.integers(-3, 4, q.shape).astype("f4")
        d *= np.float32(10.0) ** rng.integers(-30, 31, (200, 1)).astype("f4")
    elif kind == "overflowing":  # products beyond float32 whose sum is not
        q, d = q * np.float32(1e19), d * np.float32(1e19)
        half = dims // 2
        q[:, half : 2 * half], d[:, half : 2 * half] = q[:, :half], -d[:, :half]
        q[:, 2 * half :] = 1
    elif kind == "equal":
        d[:] = d[0]
        d[::2] = np.nextafter(d[0], np.float32(9))
    elif kind == "far":  # long vectors that lie close together
        q, d = q + np.float32(1000), d + np.float32(1000)
    return q, d


KINDS = ("cancelling", "subnormal", "scales", "overflowing", "equal", "far")


@pytest.mark.parametrize("fn", FUNCTIONS)
@pytest.mark.parametrize("dims", [2, 33, 257])
@pytest.mark.parametrize("kind", KINDS)
def test_hard_vectors_have_the_scores_of_the_definition(kind, dims, fn, kernels):
    q, d = hard_vectors(kind, dims)
    truth = score_by_definition(q, d, fn)
    np.testing.assert_array_equal(scoring.score(q, d, fn=fn), truth)
    qrels = tw.Qrels.from_dict(judgments(len(q), len(d)))
    run = tw.Run.from_columns(np.repeat(np.arange(len(q)), len(d)), np.tile(np.arange(len(d)), len(q)), truth.ravel())
    ours, theirs = scoring.tie_groups(q, d, qrels, fn=fn, block=64), from_run(qrels, run)
    for name in ("score", "start", "size", "lowest", "lowest_size"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    for place, found in enumerate(scoring.search(q, d, 9, fn=fn, block=64).to_dict().values()):
        bound = np.sort(truth[place])[::-1][8]
        assert found == {str(j): float(truth[place, j]) for j in np.flatnonzero(truth[place] >= bound)}


@pytest.mark.parametrize("fn", [*FUNCTIONS, "maxsim"])
@pytest.mark.parametrize("dims", [3, 384, 1023])
@pytest.mark.parametrize("kind", KINDS)
def test_products_stay_within_their_error_bounds(kind, dims, fn):
    """Eqs. 29 to 31, and their sum over tokens, for the BLAS of this machine, on the scale of the filter."""
    q, d = hard_vectors(kind, dims)
    if fn == "maxsim":
        q, d = q.reshape(4, 3, dims), d.reshape(100, 2, dims)
    scorer = scoring.Collection(d, fn=fn).scorer(q)
    left, right = scorer.query_block(slice(0, len(q))), scorer.doc_block(slice(0, len(d)))
    i, j = (part.ravel() for part in np.indices((len(q), len(d))))
    with np.errstate(all="ignore"):
        if fn == "maxsim":
            exact = np.cumsum(dot(q[:, :, None, None], d[None, None]).max(-1), axis=1)[:, -1]
        else:
            exact = score_by_definition(q, d, fn, "f8")
        if fn == "euclidean":
            exact = (dot(q, q)[:, None] - exact**2) / 2
        for dtype in (np.float32, np.float64):
            found = scorer.function.approximate(left, right, dtype)
            off = np.abs(found.matrix.astype("f8") - exact)[i, j]
            assert (off <= found.error(i, j))[np.isfinite(found.matrix)[i, j]].all()


def test_scores_beyond_float32_are_an_error_and_sums_beyond_it_are_not():
    q, d = np.float32([[1e30, 1e30]]), np.float32([[1e30, -1e30], [1e-30, 1.0]])
    assert scoring.score(q, d, fn="dot").tolist() == [[0.0, float(np.float32(1e30))]]
    assert scoring.search(q, d, 1).to_dict() == {"0": {"1": float(np.float32(1e30))}}
    for call in (
        lambda: scoring.score(q, q, fn="dot"),
        lambda: scoring.search(q, q, 1),
        lambda: scoring.tie_groups(q, q, {"0": {"0": 1}}),
        lambda: scoring.judged_scores(q, q, {"0": {"0": 1}}),
    ):
        with pytest.raises(InputError, match=r"1 of the scores are too large for float32\. Use precision='float64'"):
            call()
    assert scoring.score(q, q, fn="dot", precision="float64")[0, 0] == dot(q[0], q[0])


@pytest.mark.parametrize("exponent", [-300, -160, 0, 160, 300])
@pytest.mark.parametrize("fn", FUNCTIONS)
def test_float64_vectors_of_any_magnitude(fn, exponent):
    rng = np.random.default_rng(3)
    q, d = rng.normal(size=(4, 40)), rng.normal(size=(60, 40))
    d[50] = d[3]
    scale = 10.0**exponent
    other = scale if fn == "euclidean" else 1 / scale
    found = scoring.score(q * scale, d * other, fn=fn, precision="float64")
    exact = {
        "dot": (q.astype(np.longdouble) @ d.T.astype(np.longdouble)).astype(float),
        "cosine": q @ d.T / np.outer(np.linalg.norm(q, axis=1), np.linalg.norm(d, axis=1)),
        "euclidean": -np.linalg.norm(q[:, None] - d[None], axis=-1) * scale,
    }[fn]
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-13 * np.abs(exact).max())
    assert (found[:, 50] == found[:, 3]).all()
    if fn == "cosine":
        np.testing.assert_array_equal(scoring.score(q * scale, d * other, fn=fn), found.astype("f4"))


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dims=st.integers(1, 40),
    docs=st.integers(1, 90),
    judged=st.integers(1, 70),
    fn=st.sampled_from(FUNCTIONS),
    spread=st.sampled_from([0.0, 1.0, 30.0]),
    block=st.sampled_from([None, 7, 64]),
    compiled=st.booleans(),
)
def test_counts_and_lists_agree_with_all_scores(seed, dims, docs, judged, fn, spread, block, compiled):
    rng = np.random.default_rng(seed)
    q, d = rng.normal(size=(3, dims)).astype("f4"), rng.normal(size=(docs, dims)).astype("f4")
    d *= np.exp(spread * rng.normal(size=(docs, 1)) / 2).astype("f4")
    d = d[rng.integers(0, docs, docs)]  # copies
    truth = score_by_definition(q, d, fn)
    if not np.isfinite(truth).all():
        truth = None
    qrels = tw.Qrels.from_dict({str(i): {str(j): 1 for j in rng.integers(0, docs, judged)} for i in range(3)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIEWISE_KERNELS", "" if compiled else "python")
        if truth is None:
            with pytest.raises(InputError, match="too large"):
                scoring.score(q, d, fn=fn)
            return
        run = tw.Run.from_columns(np.repeat(np.arange(3), docs), np.tile(np.arange(docs), 3), truth.ravel())
        orders = ("docid-desc", "docid-asc", "given")
        ours, theirs = scoring.tie_groups(q, d, qrels, fn=fn, orders=orders, block=block), from_run(qrels, run, orders)
        for name in ("score", "start", "size", "lowest", "lowest_size"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
        for order in orders:
            np.testing.assert_array_equal(ours.before[order], theirs.before[order], err_msg=order)
        k = int(rng.integers(1, docs + 1))
        for place, found in enumerate(scoring.search(q, d, k, fn=fn, block=block).to_dict().values()):
            bound = np.sort(truth[place])[::-1][k - 1]
            assert found == {str(j): float(truth[place, j]) for j in np.flatnonzero(truth[place] >= bound)}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("fn", [*FUNCTIONS, "maxsim"])
def test_copies_tie_in_native_precision(dtype, fn):
    rng = np.random.default_rng(0)
    q, d = (rng.normal(size=(n, 33)).astype("f4").astype(dtype) for n in (4, 64))
    if fn == "maxsim":
        q, d = q.reshape(2, 2, 33), d.reshape(32, 2, 33)
    many = np.concatenate([d, d[::-1], d])
    scores = scoring.score(q, many, fn=fn, precision="native").astype("f4")
    n = len(d)
    np.testing.assert_array_equal(scores[:, :n], scores[:, n : 2 * n][:, ::-1])
    np.testing.assert_array_equal(scores[:, :n], scoring.score(q, d, fn=fn, precision="native").astype("f4"))
    if fn != "maxsim":
        wide = scoring.score(q, d, fn=fn)
        close = {"bfloat16": 0.02, "float16": 3e-3, "float8_e4m3fn": 0.2, "float8_e5m2": 0.3}[dtype]
        np.testing.assert_allclose(scores[:, :n], wide, rtol=close, atol=close)


def test_head_and_late_interaction():
    rng = np.random.default_rng(2)
    hidden, weight = rng.normal(size=(500, 129)).astype("f4"), rng.normal(size=(3, 129)).astype("f4")
    bias = rng.normal(size=3).astype("f4")
    np.testing.assert_array_equal(scoring.head(hidden, weight, bias), head_by_definition(hidden, weight, bias))
    strided = np.asfortranarray(hidden)[:, ::1]
    np.testing.assert_array_equal(scoring.head(strided, weight, bias), head_by_definition(hidden, weight, bias))
    q, d = rng.normal(size=(3, 5, 24)).astype("f4"), rng.normal(size=(70, 6, 24)).astype("f4")
    truth = maxsim_by_definition(q, d)
    np.testing.assert_array_equal(scoring.score(q, d, fn="maxsim"), truth)
    run = scoring.search(q, d, 5, fn="maxsim", block=16).to_dict()
    assert [max(one.values()) for one in run.values()] == truth.max(1).tolist()
    qrels = {"1": {str(j): 1 for j in range(0, 70, 7)}}
    ties = scoring.tie_groups(q, d, qrels, fn="maxsim", block=16)
    np.testing.assert_array_equal(ties.score, truth[1, ::7])
    np.testing.assert_array_equal(ties.start, (truth[1] > truth[1, ::7][:, None]).sum(1))


def test_memory_layout_and_other_rows_change_nothing():
    q, d = vectors(257)
    truth = scoring.score(q, d, fn="cosine")
    for other in (np.asfortranarray(d), np.repeat(d, 2, axis=0)[::2], np.pad(d, [(3, 0), (0, 5)])[3:, :-5]):
        np.testing.assert_array_equal(scoring.score(q, other, fn="cosine"), truth)
    for j in (0, 17, 299):
        np.testing.assert_array_equal(scoring.score(q[5:6], d[j : j + 1], fn="cosine"), truth[5:6, j : j + 1])


# -- border cases ------------------------------------------------------------------------------------------------


def test_scores_halfway_between_two_float32_numbers(kernels):
    """They round to the even one, for any number of queries in a block."""
    q, d = np.repeat(np.float32([[1, 2**-24]]), 3, 0), np.float32([[1 + 2**-23, 1], [1 + 2**-23, 0]])
    assert score_by_definition(q[:1], d, "dot")[0, 0] > score_by_definition(q[:1], d, "dot")[0, 1]
    for size in (1, 2, 3):
        ties = scoring.tie_groups(q, d, {str(i): {"1": 1} for i in range(3)}, query_block=size)
        assert (ties.start.tolist(), ties.size.tolist()) == ([1, 1, 1], [1, 1, 1])


def test_tied_documents_are_counted_once(kernels):
    q = np.array([[1, 2**-9]] * 3).astype("bfloat16")
    d = np.array([[1.5, 0], [1.5, 1.75], [1.5, 0], [0, 4000], [1.5, 1.75], [1.5, 0]]).astype("bfloat16")
    ties = scoring.tie_groups(q, d, {"0": {"5": 1}}, precision="native", orders=("given",))
    assert ties.size.tolist() == [5] and ties.before["given"].tolist() == [4]


@pytest.mark.parametrize("scales", [(1e155, 1e150), (1e-160, 1e-150), (1.0, 1e155)])
def test_squares_that_overflow_decide_nothing(scales, kernels):
    rng = np.random.default_rng(0)
    q, d = rng.normal(size=(3, 4)) * scales[0], rng.normal(size=(50, 4)) * scales[1]
    scores = scoring.score(q, d, fn="euclidean", precision="float64")
    ties = scoring.tie_groups(q, d, {"0": {"3": 1}}, fn="euclidean", precision="float64")
    assert ties.start.tolist() == [(scores[0] > scores[0, 3]).sum()]
    assert ties.size.tolist() == [(scores[0] == scores[0, 3]).sum()]
    found = scoring.search(q, d, 4, fn="euclidean", precision="float64").to_dict()["0"]
    assert sorted(found.values()) == sorted(scores[0])[-4:]


def test_an_error_bound_that_is_nan(kernels):
    ties = scoring.tie_groups(np.full((3, 4), 1.5e308), np.zeros((5, 4)), {"0": {"2": 1}})
    assert (ties.start.tolist(), ties.size.tolist()) == ([0], [5])
    assert len(scoring.search(np.full((3, 4), 1.5e308), np.zeros((5, 4)), 1)) == 15


def test_a_maximum_over_tokens_does_not_hide_overflow(kernels):
    q = np.full((3, 1, 4), 1e19, "f4")
    a, b = np.float32([[-2e19, -2e19, 2.1e19, 2.1e19], [0] * 4]), np.float32([[1e16, 0, 0, 0], [0] * 4])
    d = np.stack([a, b, b * 2])
    scores = scoring.score(q, d, fn="maxsim")
    np.testing.assert_array_equal(scores, maxsim_by_definition(q, d))
    assert scoring.search(q, d, 1, fn="maxsim").to_dict()["0"] == {"0": float(scores[0, 0])}
    assert scoring.tie_groups(q, d, {"0": {"0": 1}}, fn="maxsim").size.tolist() == [1]


def test_types_without_infinity_overflow_like_others():
    torch = pytest.importorskip("torch")
    wide = np.full((3, 8), 10.0, "f4")
    for q in (torch.from_numpy(wide).to(torch.float8_e4m3fn), wide.astype("float8_e4m3fn")):
        with pytest.raises(InputError, match=r"too large for float8_e4m3fn\. Use precision='float32'"):
            scoring.score(q, q, fn="dot", precision="native")


def test_native_late_interaction_of_tiny_numbers(kernels):
    q, d = np.full((3, 8, 1), 2**-6, "f2"), np.full((2, 1, 1), 2**-20, "f2")
    options = {"fn": "maxsim", "precision": "native"}
    score = scoring.score(q, d, **options).astype("f8")
    np.testing.assert_array_equal(scoring.judged_scores(q, d, {"0": {"1": 1}}, **options), score[0, 1:])
    assert scoring.tie_groups(q, d, {"0": {"1": 1}}, **options).size.tolist() == [2]


def test_zeros_have_the_sign_of_the_definition():
    q, d = np.float32([[0, 0], [1e-40, 0]]), np.float32([[1, 1], [-1e-40, 0], [0, 0]])
    truth = score_by_definition(q, d, "dot")
    assert np.signbit(truth).tolist() == [[False, False, False], [False, True, False]]
    np.testing.assert_array_equal(np.signbit(scoring.score(q, d, fn="dot")), np.signbit(truth))
    np.testing.assert_array_equal(np.signbit(scoring.head(d, q)), np.signbit(truth.T))
    assert not np.signbit(scoring.search(q[:1], d, 3).score).any()


@pytest.mark.parametrize("size", [1, 3])
def test_scores_that_overflow_are_an_error_in_every_block(size, kernels):
    q = np.float32([[1e30]] * 3)
    for d in (np.float32([[-1e30], [1]]), np.float64([[-1e30], [1]])):
        with pytest.raises(InputError, match="too large for float32"):
            scoring.search(q.astype(d.dtype), d, 1, query_block=size)


def test_k_may_exceed_the_collection():
    q, d = np.ones((2, 3), "f4"), np.eye(3, dtype="f4")
    assert len(scoring.search(q, d, 2**70)) == len(scoring.search(q, d, 10**9, cap=2**80)) == 6


def test_memory_is_bounded_if_all_documents_are_near():
    rng = np.random.default_rng(0)
    d = (1e4 + 1e-3 * rng.normal(size=(4096, 16))).astype("f4")
    q = d[:8]
    qrels = {str(i): {str(j): 1 for j in range(0, 400, 10)} for i in range(8)}
    tracemalloc.start()
    ties = scoring.tie_groups(q, d, qrels, fn="euclidean", block=4096)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    truth = score_by_definition(q[:1], d, "euclidean")[0]
    assert ties.start[:3].tolist() == [int((truth > truth[j]).sum()) for j in (0, 10, 20)]
    assert peak < 64 * 2**20  # 8 queries × 4,096 documents × 40 thresholds would be more than a million near pairs


def test_rescoring_warns_about_zero_vectors():
    with pytest.warns(tw.TiewiseWarning, match="1 of the documents"):
        scoring.rescore({"0": {"0": 1.0, "1": 2.0}}, [[1.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]], fn="cosine")


def test_errors_name_the_option():
    q = np.ones((2, 3))
    for call, match in [
        (lambda: scoring.tie_groups(q, q, {"0": {"0": 1}}, scores=["a"]), "scores must be numbers"),
        (lambda: scoring.tie_groups(q, q, {"0": {"0": 1}}, scores=[[1.0], [1.0, 2.0]]), "scores must be numbers"),
        (lambda: scoring.tie_groups(q, q, {"0": {"0": 1}}, orders=None), "orders must be a list"),
        (lambda: scoring.tie_groups(q, q, {"0": {"0": 1}}, orders="given"), "orders must be a list .* not 'given'"),
        (lambda: scoring.quantize(q, to=["int8"]), "cannot be quantised to"),
        (
            lambda: scoring.score(np.float16([[3e4] * 9]), np.float16([[3e4] * 9]), fn="cosine", precision="native"),
            "1 vector has a norm too large for float16",
        ),
    ]:
        with pytest.raises(InputError, match=match):
            call()
    assert scoring.head(np.int8([[1, 2]]), np.int8([[3, 4]]), [0.5], precision="native").tolist() == [[11.5]]


# -- rounding -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
def test_intervals_of_rounding(name):
    """Scores that round to a value are in its outer interval; those in its inner interval round to it."""
    dtype = np.dtype(name)
    info = ml_dtypes.finfo(dtype)
    ours = (
        float32_rounding()
        if name == "float32"
        else Rounding(name, lambda x: np.asarray(x, "f4").astype(dtype).astype("f8"), info)
    )
    rng = np.random.default_rng(0)
    some = rng.normal(size=2000) * 10.0 ** rng.uniform(-8 if name != "float8_e4m3fn" else -3, 1, 2000)
    some = np.concatenate([some, [0.0, 1.0, -1.0, 2.0, -4.0, 0.5], -some])
    value = ours(some)
    low_out, low_in, high_in, high_out = ours.interval(value)
    assert ((low_out <= some) & (some <= high_out)).all()
    for end, inside in ((low_in, high_in), (high_in, low_in)):
        middle = end + (inside - end) * 1e-6
        kept = low_in < high_in
        assert (ours(middle)[kept] == value[kept]).all()
    beyond = high_out + np.abs(high_out) * 1e-6 + (1e-300 if name == "float32" else 3e-45)
    assert (ours(beyond) > value)[np.isfinite(ours(beyond))].all()


# -- settings -------------------------------------------------------------------------------------------------------


@contextmanager
def flush_to_zero(torch):
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def settings_of(torch):
    matmul = torch.backends.cuda.matmul
    return {
        "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        "autocast, float16": lambda: torch.autocast("cpu", dtype=torch.float16),
        "inference mode": torch.inference_mode,
        "no_grad": torch.no_grad,
        "flushed subnormals": lambda: flush_to_zero(torch),
        "default dtype": lambda: changed_setting(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
        "default dtype, half": lambda: changed_setting(
            torch.get_default_dtype, torch.set_default_dtype, torch.bfloat16
        ),
        "TF32": lambda: changed_setting(
            lambda: matmul.fp32_precision, lambda value: setattr(matmul, "fp32_precision", value), "tf32"
        ),
        "medium": lambda: changed_setting(
            torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"
        ),
        "deterministic": lambda: changed_setting(
            torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
        ),
        "NumPy raises": lambda: np.errstate(all="raise"),
    }


SETTINGS = (
    "autocast",
    "autocast, float16",
    "inference mode",
    "no_grad",
    "flushed subnormals",
    "default dtype",
    "default dtype, half",
    "TF32",
    "medium",
    "deterministic",
    "NumPy raises",
)


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_around_a_call_change_nothing(name):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    q, d = rng.normal(size=(9, 40)).astype("f4"), rng.normal(size=(80, 40)).astype("f4")
    q[0] *= np.float32(1e-30)
    d[0] *= np.float32(1e-9)  # its score with the first query is subnormal
    tiny = torch.from_numpy(d * np.float32(1e-37))
    calls = {
        **{fn: lambda a, b, fn=fn: scoring.score(a, b, fn=fn) for fn in FUNCTIONS},
        "native": lambda a, b: scoring.score(a.bfloat16(), b.bfloat16(), fn="dot", precision="native").float(),
        "sigmoid": lambda a, b: scoring.score(a, fn="sigmoid"),
        "softmax": lambda a, b: scoring.score(a, fn="softmax"),
        "logit": lambda a, b: scoring.logit(a, fn="softmax"),
        "head": lambda a, b: scoring.head(b, a[:3], torch.zeros(3)),
        "quantize": lambda a, b: scoring.quantize(tiny).codes,
        "decode": lambda a, b: scoring.quantize(tiny).decode(),
        "search": lambda a, b: scoring.search(a, b, 5).score,
        "tie_groups": lambda a, b: scoring.tie_groups(a, b, {"0": {"0": 1, "7": 1}}).score,
        "rescore": lambda a, b: scoring.rescore({"0": {"0": 1.0, "7": 1.0}}, a, b).score,
    }
    tensors = torch.from_numpy(q), torch.from_numpy(d)
    truth = {what: np.asarray(call(*tensors)) for what, call in calls.items()}
    np.testing.assert_array_equal(truth["dot"], score_by_definition(q, d, "dot"))
    assert 0 < abs(truth["dot"][0, 0]) < np.finfo(np.float32).smallest_normal
    with settings_of(torch)[name]():
        found = {what: np.asarray(call(*tensors)) for what, call in calls.items()}
    for what in calls:
        np.testing.assert_array_equal(found[what], truth[what], err_msg=what)


def test_settings_are_changed_once_for_all_threads(monkeypatch):
    """Two threads that start and end in turns leave the settings unchanged."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    matmul = torch.backends.cuda.matmul
    matmul.fp32_precision = "tf32"
    try:
        first, second = ieee_arithmetic(), ieee_arithmetic()
        with ThreadPoolExecutor(1) as a, ThreadPoolExecutor(1) as b:
            a.submit(first.__enter__).result()
            b.submit(second.__enter__).result()
            a.submit(first.__exit__, None, None, None).result()
            assert matmul.fp32_precision == "ieee"
            b.submit(second.__exit__, None, None, None).result()
        assert matmul.fp32_precision == "tf32"
    finally:
        matmul.fp32_precision = "none"


def test_errors_of_tensors_without_dense_values():
    torch = pytest.importorskip("torch")
    plain = torch.ones(3, 2)
    for tensor, match in [
        (torch.ones(3, 2, device="meta"), "on the meta device"),
        (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested tensor"),
        (plain.to_sparse(), "sparse tensor"),
        (plain.to_sparse_csr(), "sparse tensor"),
        (plain.to(torch.complex64), "complex64"),
    ]:
        takes_sparse = [
            lambda t: scoring.search(plain, t, 1),
            lambda t: scoring.tie_groups(plain, t, {"0": {"0": 1}}),
            lambda t: scoring.rescore({"0": {"0": 1.0}}, plain, t),
        ]
        for call in (
            *(takes_sparse if match != "sparse tensor" else []),
            lambda t: scoring.score(t, plain, fn="dot"),
            lambda t: scoring.score(plain, t, fn="dot"),
            lambda t: scoring.score(t, fn="sigmoid"),
            lambda t: scoring.logit(t),
            lambda t: scoring.head(t, plain),
            lambda t: scoring.head(plain, t),
            lambda t: scoring.quantize(t),
        ):
            with pytest.raises(InputError, match=match):
                call(tensor)


def test_log_odds_beyond_float32_are_an_error():
    with pytest.raises(InputError, match=r"log-odds are too large for float32\. Use precision='float64'"):
        scoring.logit([[3e38, -3e38]])
    assert scoring.logit([[3e38, -3e38]], precision="float64").tolist() == [-6e38]


def test_equal_logits_have_equal_scores_at_any_position():
    rng = np.random.default_rng(0)
    z = rng.normal(size=50).astype("f4") * 8
    many = np.concatenate([z, z[::-1], np.repeat(z, 3)])
    for logits in (many, np.repeat(many, 2)[::2]):
        found = scoring.score(logits, fn="sigmoid")
        np.testing.assert_array_equal(found[:50], found[50:100][::-1])
        np.testing.assert_array_equal(found[:50], found[100::3])
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(
        scoring.score(torch.from_numpy(many), fn="sigmoid"), scoring.score(many, fn="sigmoid")
    )
