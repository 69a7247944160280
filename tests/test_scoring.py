"""Score functions: NumPy against torch, every precision against float64, native precision against torch's own."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tiewise import scoring
from tiewise.errors import InputError, TiewiseWarning

ml_dtypes = pytest.importorskip("ml_dtypes")
LOW = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn}
TYPES = {**LOW, "float32": np.float32, "float64": np.float64}


def random_vectors(*shape: int, seed: int = 0, scale: float = 1.0):
    return np.random.default_rng(seed).normal(size=shape) * scale


def reference(q, d, fn: str):
    q, d = np.asarray(q, dtype=np.float64), np.asarray(d, dtype=np.float64)
    if fn == "euclidean":
        return -np.sqrt(((q[:, None] - d[None]) ** 2).sum(-1))
    product = q @ d.T
    return product if fn == "dot" else product / np.linalg.norm(q, axis=1)[:, None] / np.linalg.norm(d, axis=1)


def tensor(array, dtype: str):
    torch = pytest.importorskip("torch")
    return torch.from_numpy(np.asarray(array, dtype=np.float64)).to(getattr(torch, dtype))


# -- products ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fn", ["dot", "cosine", "euclidean"])
@pytest.mark.parametrize("dtype", TYPES)
def test_products_are_close_to_float64(dtype, fn):
    q, d = random_vectors(5, 40, seed=1).astype(TYPES[dtype]), random_vectors(300, 40, seed=2).astype(TYPES[dtype])
    truth = reference(q, d, fn)
    single, double = (scoring.score(q, d, fn=fn, precision=precision) for precision in ("float32", "float64"))
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single, truth, rtol=2e-6, atol=2e-5)
    np.testing.assert_allclose(double, truth, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("precision", ["float32", "float64", "native"])
@pytest.mark.parametrize("fn", ["dot", "cosine", "euclidean"])
@pytest.mark.parametrize("dtype", TYPES)
def test_torch_and_numpy_give_the_same(dtype, fn, precision):
    q, d = random_vectors(5, 40, seed=1).astype(TYPES[dtype]), random_vectors(300, 40, seed=2).astype(TYPES[dtype])
    ours = scoring.score(q, d, fn=fn, precision=precision)
    theirs = scoring.score(tensor(q, dtype), tensor(d, dtype), fn=fn, precision=precision)
    assert str(theirs.dtype) == f"torch.{ours.dtype.name}"
    ours, theirs = ours.astype(np.float64), theirs.double().numpy()
    if precision == "native" and dtype in LOW:  # a sum in another order may be rounded the other way
        assert (ours != theirs).mean() < 0.02
        coarse = {"bfloat16": 2**-7, "float16": 2**-9, "float8_e4m3fn": 2**-2}[dtype]
        np.testing.assert_allclose(ours, theirs, rtol=coarse, atol=coarse)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=3e-7 if ours.max() < 2 else 1e-6, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_native_products_equal_those_of_torch(dtype):
    torch = pytest.importorskip("torch")
    q, d = tensor(random_vectors(16, 64, seed=1), dtype), tensor(random_vectors(400, 64, seed=2), dtype)
    assert (scoring.score(q, d, fn="dot", precision="native") != q @ d.T).double().mean() < 0.01
    unit = torch.nn.functional.normalize
    assert (scoring.score(q, d, fn="cosine", precision="native") != unit(q) @ unit(d).T).double().mean() < 0.01
    assert len(torch.unique(scoring.score(q, d, fn="dot"))) > len(torch.unique(q @ d.T))


def test_a_single_vector_is_one_row():
    q, d = random_vectors(6), random_vectors(4, 6, seed=1)
    assert scoring.score(q, d, fn="dot").shape == (4,)
    assert scoring.score(d, q, fn="dot").shape == (4,)
    assert scoring.score(q, q, fn="cosine").shape == ()
    np.testing.assert_array_equal(scoring.score(q, d, fn="dot"), scoring.score(q[None], d, fn="dot")[0])


def test_distance_of_vectors_that_are_close_together():
    """Computed from squares in float32 it would be rounding error only."""
    base = random_vectors(64, seed=3) * 10
    moved = base + 1e-4 * np.eye(64)[0]
    found = scoring.score(base[None].astype(np.float32), moved[None].astype(np.float32), fn="euclidean")
    truth = reference(base[None].astype(np.float32), moved[None].astype(np.float32), "euclidean")
    np.testing.assert_allclose(found, truth, rtol=1e-4)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_the_distance_of_a_vector_from_itself_is_zero(kind):
    """There the squares cancel. For vectors that are close together, distances come from the differences."""
    base = random_vectors(3000, 96, seed=3, scale=30)
    near = base[:4] + 1e-7 * random_vectors(4, 96, seed=4)
    q, d = (
        (base[:4], np.concatenate([base, near]))
        if kind == "numpy"
        else (tensor(base[:4], "float64"), tensor(np.concatenate([base, near]), "float64"))
    )
    found = np.asarray(scoring.score(q, d, fn="euclidean", precision="float64"))
    assert not found[range(4), range(4)].any() and not np.signbit(found[range(4), range(4)]).any()
    truth = reference(base[:4], near, "euclidean")
    np.testing.assert_allclose(found[range(4), range(3000, 3004)], truth.diagonal(), rtol=1e-9)
    np.testing.assert_allclose(found[:, 4:3000], reference(base[:4], base[4:], "euclidean"), rtol=1e-12)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize(("dtype", "ends"), [("float32", (1e-38, 1e-25, 1e37)), ("float64", (1e-300, 1e-200, 1e300))])
@pytest.mark.filterwarnings("error")
def test_cosine_of_very_long_and_very_short_vectors(dtype, ends, kind):
    q, d = random_vectors(4, 24, seed=1).astype(dtype), random_vectors(50, 24, seed=2).astype(dtype)
    truth = reference(q, d, "cosine")
    for end in ends:
        for left, right in ((end, end), (1, end), (end, 1)):
            a, b = q * TYPES[dtype](left), d * TYPES[dtype](right)
            kept = b.copy()
            given = (a, b) if kind == "numpy" else (tensor(a, dtype), tensor(b, dtype))
            np.testing.assert_allclose(np.asarray(scoring.score(*given, fn="cosine")), truth, rtol=2e-4, atol=2e-6)
            assert (b == kept).all()
    mixed = np.concatenate([d[:2], d[:2] * TYPES[dtype](ends[0]), np.zeros((1, 24), dtype)])
    with pytest.warns(TiewiseWarning, match="1 of the documents"):
        found = scoring.score(q, mixed, fn="cosine")
    np.testing.assert_allclose(found[:, :2], found[:, 2:4], atol=1e-5)
    assert not found[:, 4].any()


def test_very_long_and_close_vectors_on_a_device(on_device):
    """Vectors are not scaled into a safe range there."""
    torch = pytest.importorskip("torch")
    q, d = (
        tensor(random_vectors(3, 24, scale=30), "float32"),
        tensor(random_vectors(90, 24, seed=1, scale=30), "float32"),
    )
    d[[5, 88]] = q[1]
    found = scoring.score(q, d, fn="euclidean")
    assert found[1, 5] == found[1, 88] == 0
    np.testing.assert_allclose(found, reference(q, d, "euclidean"), rtol=1e-6)
    with pytest.raises(InputError, match=r"too large for float32\. Use precision='float64'"):
        scoring.score(q, d * 1e30, fn="cosine")
    long = scoring.score(q, d * 1e30, fn="cosine", precision="float64")
    assert torch.allclose(long, scoring.score(q, d, fn="cosine", precision="float64"), atol=1e-6)


def test_cosine_of_zero_vectors_is_zero_with_one_warning():
    d = random_vectors(40_000, 3)
    d[[1, 9, 35_000]] = 0
    with pytest.warns(TiewiseWarning, match="3 of the documents") as warned:
        found = scoring.score(random_vectors(2, 3), d, fn="cosine")
    assert len(warned) == 1 and not found[:, [1, 9, 35_000]].any() and np.isfinite(found).all()
    with pytest.warns(TiewiseWarning, match="1 of the queries"):
        scoring.search(np.zeros((1, 3)), random_vectors(4, 3), 2, fn="cosine")
    with pytest.warns(TiewiseWarning, match="3 of the documents"):
        scoring.tie_groups(random_vectors(2, 3), d, {"0": {"1": 1}, "1": {"9": 1}}, fn="cosine", block=7000)


# -- late interaction and bits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_maxsim_follows_its_definition(kind):
    q, d = random_vectors(3, 5, 8, seed=1).astype(np.float32), random_vectors(30, 7, 8, seed=2).astype(np.float32)
    mask, other = np.random.default_rng(3).random((3, 5)) < 0.6, np.random.default_rng(4).random((30, 7)) < 0.5
    mask[:, 0] = other[:, 0] = True
    truth = [
        [sum(max(float(a @ b) for b in d[j][other[j]]) for a in q[i][mask[i]]) for j in range(30)] for i in range(3)
    ]
    q[~mask], d[~other] = 1e30, -1e30  # masked tokens do not matter
    operands = [q, d, mask, other]
    if kind == "torch":
        torch = pytest.importorskip("torch")
        operands = [torch.from_numpy(one) for one in operands]
    found = scoring.score(operands[0], operands[1], fn="maxsim", mask=operands[2], other_mask=operands[3])
    np.testing.assert_allclose(np.asarray(found), truth, rtol=1e-5)
    run = scoring.search(*operands[:2], 4, fn="maxsim", query_mask=operands[2], doc_mask=operands[3], block=1)
    assert len(run) == 12 and run.score[0] == np.asarray(found)[0].max()
    single = scoring.score(operands[0][0], operands[1], fn="maxsim", mask=operands[2][0], other_mask=operands[3])
    np.testing.assert_array_equal(np.asarray(single), np.asarray(found)[0])
    listed = mask[0].tolist(), other[0].tolist()
    one = scoring.score(operands[0][0], operands[1][0], fn="maxsim", mask=listed[0], other_mask=listed[1])
    np.testing.assert_allclose(float(one), truth[0][0], rtol=1e-5)
    again = scoring.rescore(run, *operands[:2], fn="maxsim", query_mask=operands[2], doc_mask=operands[3])
    assert again.doc.tolist() == run.doc.tolist()
    np.testing.assert_allclose(again.score, run.score, rtol=1e-5)


@pytest.mark.parametrize("dims", [8, 13, 64, 250])
def test_hamming_counts_equal_bits(dims):
    bits, others = random_vectors(4, dims) > 0, random_vectors(50, dims, seed=1) > 0
    truth = (bits[:, None] == others[None]).sum(-1)
    assert (scoring.score(bits, others, fn="hamming") == truth).all()
    packed = scoring.score(np.packbits(bits, axis=1), np.packbits(others, axis=1), fn="hamming", precision="native")
    assert packed.dtype == np.int32 and (packed == truth + (-dims) % 8).all()  # bits that fill up the last byte agree
    torch = pytest.importorskip("torch")
    theirs = scoring.score(torch.from_numpy(bits), torch.from_numpy(others), fn="hamming")
    assert (theirs.numpy() == truth).all()
    theirs = scoring.score(*(torch.from_numpy(np.packbits(one, axis=1)) for one in (bits, others)), fn="hamming")
    assert (theirs.numpy() == packed).all()


def test_products_of_bytes_are_exact():
    rng = np.random.default_rng(0)
    for dims in (10, 1024, 4096):
        q, d = (rng.integers(-128, 128, (n, dims), dtype=np.int8) for n in (3, 40))
        q[0], d[0] = -128, -128
        truth = q.astype(np.int64) @ d.astype(np.int64).T
        for precision in ("float32", "native"):
            assert (scoring.score(q, d, fn="dot", precision=precision) == truth).all()


# -- activations ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_activations_are_close_to_float64(dtype):
    z = random_vectors(400, 3, scale=5).astype(TYPES[dtype])
    wide = z.astype(np.float64)
    exponents = np.exp(wide - wide.max(-1, keepdims=True))
    for positive in (0, 1, 2):
        truth = exponents[:, positive] / exponents.sum(-1)
        np.testing.assert_allclose(scoring.score(z, fn="softmax", positive=positive), truth, rtol=2e-6)
        double = scoring.score(z, fn="softmax", positive=positive, precision="float64")
        np.testing.assert_allclose(double, truth, rtol=1e-13)
        odds = scoring.logit(z, fn="softmax", positive=positive, precision="float64")
        np.testing.assert_allclose(odds, np.log(truth) - np.log1p(-truth), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(scoring.score(z, fn="sigmoid"), 1 / (1 + np.exp(-wide)), rtol=1e-6)
    np.testing.assert_array_equal(scoring.logit(z, fn="sigmoid"), z.astype(np.float32))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_activations_equal_those_of_torch(dtype):
    torch = pytest.importorskip("torch")
    z = random_vectors(2000, 2, scale=5).astype(TYPES[dtype])
    theirs = tensor(z, dtype)
    for fn, own in (("sigmoid", torch.sigmoid(theirs)), ("softmax", torch.softmax(theirs, -1)[:, 1])):
        native = scoring.score(theirs, fn=fn, precision="native")
        assert native.dtype == own.dtype
        if dtype in LOW:
            assert torch.equal(native, own)
            assert (
                scoring.score(z, fn=fn, precision="native").astype(np.float64) != own.double().numpy()
            ).mean() < 0.01
        ours, wide = scoring.score(z, fn=fn), scoring.score(theirs, fn=fn).numpy()
        np.testing.assert_allclose(ours, wide, rtol=4e-7)


def test_activations_far_from_0():
    """The exponential of float32 overflows at 89, but scores that small are still distinct."""
    torch = pytest.importorskip("torch")
    z = np.linspace(-100, 100, 201, dtype=np.float32)
    truth = np.exp(-np.logaddexp(0, -z.astype(np.float64)))
    two = np.stack([np.zeros_like(z), z], 1)
    for logits, fn in ((z, "sigmoid"), (two, "softmax")):
        for given in (logits, torch.from_numpy(logits)):
            found = np.asarray(scoring.score(given, fn=fn))
            assert len(np.unique(found[:100])) == 100
            np.testing.assert_allclose(found, truth, rtol=4e-7, atol=2e-45)


def test_activations_lose_distinct_scores():
    """Two hundred distinct logits: how many are distinct after each step."""
    z = np.linspace(4, 9, 200).astype(ml_dtypes.bfloat16)
    kept = len(np.unique(z.astype(np.float32)))
    assert len(np.unique(scoring.score(z, fn="sigmoid", precision="native").astype(np.float32))) < 10
    assert len(np.unique(scoring.score(z, fn="sigmoid"))) == len(np.unique(scoring.logit(z))) == kept
    high = np.linspace(15, 30, 200, dtype=np.float32)
    assert len(np.unique(scoring.score(high, fn="sigmoid"))) < 10
    assert len(np.unique(scoring.score(high, fn="sigmoid", precision="float64"))) == 200
    assert len(np.unique(scoring.logit(high))) == 200
    two = np.stack([-high, high], -1)
    assert (
        len(np.unique(scoring.score(two, fn="softmax"))) == 1
        and len(np.unique(scoring.logit(two, fn="softmax"))) == 200
    )


def test_logits_with_classes_and_single_logits_are_distinguished():
    z = random_vectors(5, 3).astype(np.float32)
    for positive in (0, np.int64(2), np.uint8(1)):
        np.testing.assert_array_equal(
            scoring.logit(z, positive=positive), scoring.logit(z, fn="softmax", positive=int(positive))
        )
    for single in (z[:, :1], z[:, 0], z[0, 0]):
        np.testing.assert_array_equal(scoring.logit(single), single)
    two = scoring.head(z, random_vectors(2, 3, seed=1).astype(np.float32))
    np.testing.assert_array_equal(scoring.logit(two), two[:, 1] - two[:, 0])


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_empty_inputs_give_empty_results(kind):
    none, some, weight = (np.zeros(shape, np.float32) for shape in ((0, 4), (3, 4), (2, 4)))
    if kind == "torch":
        none, some, weight = (tensor(x, "float32") for x in (none, some, weight))
    for fn in ("dot", "euclidean"):
        assert scoring.score(none, some, fn=fn).shape == (0, 3) and scoring.score(some, none, fn=fn).shape == (3, 0)
    assert scoring.score(none, fn="softmax").shape == scoring.logit(none).shape == (0,)
    assert scoring.score(none, fn="sigmoid").shape == (0, 4)
    assert scoring.score(none[:, None], some[:, None], fn="maxsim").shape == (0, 3)
    for precision in ("float32", "native"):
        assert scoring.head(none, weight, precision=precision).shape == (0, 2)
    assert scoring.search(some, none, 5).to_dict() == {"0": {}, "1": {}, "2": {}}


# -- the last layer ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_head(dtype):
    hidden, weight, bias = (
        x.astype(TYPES[dtype])
        for x in (random_vectors(700, 96), random_vectors(2, 96, seed=1), random_vectors(2, seed=2))
    )
    truth = hidden.astype(np.float64) @ weight.astype(np.float64).T + bias.astype(np.float64)
    for operands in ((hidden, weight, bias), tuple(tensor(x, dtype) for x in (hidden, weight, bias))):
        np.testing.assert_allclose(np.asarray(scoring.head(*operands)), truth, rtol=1e-5, atol=2e-5)
        np.testing.assert_allclose(
            np.asarray(scoring.head(*operands, precision="float64")), truth, rtol=1e-12, atol=1e-12
        )
    torch = pytest.importorskip("torch")
    own = torch.nn.functional.linear(*(tensor(x, dtype) for x in (hidden, weight, bias)))
    native = scoring.head(hidden, weight, bias, precision="native")
    assert native.dtype == TYPES[dtype]
    if dtype in LOW:
        assert (native.astype(np.float64) != own.double().numpy()).mean() < 0.01
        assert len(np.unique(scoring.head(hidden, weight, bias))) > len(np.unique(native.astype(np.float32)))
    one = scoring.head(hidden, weight[0], bias[0])
    np.testing.assert_array_equal(one, scoring.head(hidden, weight, bias)[:, 0])


def test_equal_hidden_states_have_equal_logits():
    """At any position, and for any number of states."""
    hidden, weight = random_vectors(1, 300).astype(np.float32), random_vectors(2, 300, seed=1).astype(np.float32)
    alone = scoring.head(hidden, weight)
    many = random_vectors(20_000, 300, seed=2).astype(np.float32)
    places = [0, 1, 6, 777, 8191, 8192, 19_999]
    many[places] = hidden
    assert (scoring.head(many, weight)[places] == alone).all()


# -- errors ----------------------------------------------------------------------------------------------------


def test_errors():
    z, v = random_vectors(4, 2), random_vectors(4, 3)
    bad = z.copy()
    bad[2, 0] = np.nan
    for call, match in [
        (lambda: scoring.score(z, fn="cos"), "Unknown score function 'cos'. Use one of: sigmoid"),
        (lambda: scoring.score(z, fn="sigmoid", precision="float12"), "Unknown precision"),
        (lambda: scoring.score(bad, fn="sigmoid"), "Row 2 of the logits holds NaN"),
        (lambda: scoring.score(z, v, fn="sigmoid"), "takes one operand"),
        (lambda: scoring.score(z, fn="dot"), "give a second operand"),
        (lambda: scoring.score(z[:, :1], fn="softmax"), "two classes or more"),
        (lambda: scoring.score(z, fn="softmax", positive=2), "positive must be the index of a class, 0 to 1"),
        (lambda: scoring.score(z, fn="softmax", positive=-1), "0 to 1, not -1"),
        (lambda: scoring.logit(z, fn="softmax", positive=-1), "0 to 1, not -1"),
        (lambda: scoring.score(z.astype(complex), fn="sigmoid"), "complex128"),
        (lambda: scoring.score(np.array(["a"]), fn="sigmoid"), "cannot be scored"),
        (lambda: scoring.score(np.arange(3), fn="sigmoid"), "are integers"),
        (lambda: scoring.logit(z, fn="dot"), "is not a function of logits"),
        (lambda: scoring.score(z, v, fn="dot"), "2 dimensions and documents 3"),
        (lambda: scoring.search(z, v, 1, fn="maxsim"), "takes .rows, tokens, dimensions"),
        (lambda: scoring.score(z, z, fn="dot", mask=z), "Masks are for"),
        (lambda: scoring.score(z, z, fn="hamming"), "compares bits"),
        (lambda: scoring.score(z, z[None, None], fn="dot"), "have shape"),
        (lambda: scoring.score(z, np.where(z == z[3, 0], np.inf, z), fn="dot"), "Row 3 of the documents"),
        (lambda: scoring.score(bad, z, fn="cosine"), "Row 2 of the queries"),
        (
            lambda: scoring.score(np.float16([[300.0]]), np.float16([[300.0]]), fn="dot", precision="native"),
            "too large",
        ),
        (lambda: scoring.head(z, v), "do not match"),
        (lambda: scoring.head(z, z, np.zeros(3)), "bias of shape"),
        (lambda: scoring.head(bad, z), "Row 2 of the hidden states holds NaN or infinity .1 such row.[.]"),
        (lambda: scoring.head(z, bad), "Row 2 of the weights"),
        (lambda: scoring.head(z, z, [0, 0, np.nan, np.inf]), "Row 2 of the biases holds .* .2 such rows"),
        (lambda: scoring.head(np.float16([[300.0]]), np.float16([[300.0]]), precision="native"), "large for float16"),
        (lambda: scoring.score(z * 1e200, z * 1e200, fn="dot"), "too large for float"),
        (lambda: scoring.score([[1.0, 2.0], [3.0]], z, fn="dot"), "vectors do not form an array: .* different lengths"),
        (lambda: scoring.score([[1.0, 2.0], [3.0]], fn="softmax"), "logits do not form an array"),
        (lambda: scoring.score(np.zeros((2, 0, 3)), v[None], fn="maxsim"), "have shape .2, 0, 3."),
        (lambda: scoring.score(z, fn="softmax", positive=True), "positive must be the index of a class, 0 to 1"),
        (
            lambda: scoring.score(v[None], v[None], fn="maxsim", mask=np.zeros((1, 4))),
            "leaves no token in row 0 of the queries",
        ),
        (lambda: scoring.score(v[None], v[None], fn="maxsim", mask=np.zeros((1, 5))), "mask of the queries has shape"),
    ]:
        with pytest.raises(InputError, match=match):
            call()


def test_torch_is_never_imported_for_numpy():
    code = (
        "import sys, numpy as np; from tiewise import scoring; scoring.score(np.ones(3), fn='sigmoid'); "
        "scoring.tie_groups(np.ones((1, 2)), np.ones((3, 2)), {'0': {'1': 1}}); "
        "scoring.search(np.ones((1, 2)), scoring.quantize(np.ones((3, 2))), 1); "
        "print(*({'torch', 'ml_dtypes', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.split()


def test_lower_matmul_precision_of_torch_is_ignored():
    torch = pytest.importorskip("torch")
    q, d = tensor(random_vectors(16, 64), "float32"), tensor(random_vectors(100, 64, seed=1), "float32")
    truth, before = scoring.score(q, d, fn="dot"), torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        assert torch.equal(scoring.score(q, d, fn="dot"), truth)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_operands_of_different_libraries():
    """The first operand decides about the type of the result and where it is computed."""
    torch = pytest.importorskip("torch")
    q, d = random_vectors(3, 16).astype(ml_dtypes.bfloat16), random_vectors(9, 16, seed=1).astype(ml_dtypes.bfloat16)
    truth = scoring.score(q, d, fn="dot")
    tensors = tensor(q, "bfloat16"), tensor(d, "bfloat16")
    mixed = scoring.score(tensors[0], d, fn="dot")
    assert isinstance(mixed, torch.Tensor)
    np.testing.assert_allclose(mixed.numpy(), truth, rtol=1e-6)
    np.testing.assert_allclose(scoring.score(q, tensors[1], fn="dot"), truth, rtol=1e-6)
    grad = tensors[0].float().requires_grad_()
    np.testing.assert_allclose(scoring.score(grad, tensors[1], fn="dot").numpy(), truth, rtol=1e-6)
