"""Collections: every kind of storage against plain float64, ties of copies, shards, files, and a device."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tiewise as tw
from tiewise import scoring
from tiewise.errors import InputError, TiewiseWarning
from tiewise.ties.groups import TieGroups

ml_dtypes = pytest.importorskip("ml_dtypes")
sparse = pytest.importorskip("scipy.sparse")

N, DIMS, QUERIES = 400, 24, 6
COPIES = [7, 200, 399]  # of document 0
rng = np.random.default_rng(5)


def dense(n: int, dims: int = DIMS):
    vectors = rng.normal(size=(n, dims)).astype(np.float32)
    if n == N:
        vectors[COPIES] = vectors[0]
    return vectors


def random_sparse(n: int):
    vectors = dense(n, 90)
    vectors[rng.random((n, 90)) < 0.85] = 0
    if n == N:
        vectors[COPIES] = vectors[0]
    return vectors


def tokens(n: int):
    rows = [dense(int(length)) for length in rng.integers(1, 6, n)]
    if n == N:
        for copy in COPIES:
            rows[copy] = rows[0].copy()
    return rows


def plain(queries, docs, fn: str):
    """All scores in float64, by the plainest formula."""
    if fn == "maxsim":
        return np.array([[(q.astype("f8") @ d.astype("f8").T).max(1).sum() for d in docs] for q in queries])
    q, d = np.asarray(queries, "f8"), np.asarray(docs, "f8")
    if fn == "euclidean":
        return -np.sqrt(((q[:, None] - d) ** 2).sum(-1))
    if fn == "hamming":
        return (q[:, None] == d).sum(-1).astype("f8")
    product = q @ d.T
    return product if fn == "dot" else product / np.linalg.norm(q, axis=1)[:, None] / np.linalg.norm(d, axis=1)


def low_precision(name: str):
    def make():
        q, d = (x.astype(getattr(ml_dtypes, name, name)) for x in (dense(QUERIES), dense(N)))
        return q, d, q.astype("f8"), d.astype("f8")

    return make


def quantised(kind: str, fn: str):
    def make():
        q, d = dense(QUERIES), scoring.quantize(dense(N), kind)
        if fn == "hamming":
            q = scoring.quantize(q, kind)
            return q, d, q.decode(), d.decode()
        return q, d, q, d.decode()

    return make


def ragged(make_vectors):
    def make():
        q, d = tokens(QUERIES), tokens(N)
        return *make_vectors(q, d), q, d

    return make


def ragged_quantised():
    q, d = tokens(QUERIES), tokens(N)
    codes = scoring.quantize(np.concatenate(d), "int8")
    lengths = [len(row) for row in d]
    decoded = np.split(codes.decode(), np.cumsum(lengths)[:-1])
    return q, scoring.TokenVectors(codes, lengths), q, decoded


def sparse_kind(convert, convert_query=lambda q: q):
    def make():
        q, d = random_sparse(QUERIES), random_sparse(N)
        return convert_query(q), convert(d), q, d

    return make


def torch_csr(x):
    return pytest.importorskip("torch").from_numpy(x).to_sparse_csr()


KINDS = {
    **{name: (low_precision(name), "dot") for name in ("float32", "float16", "bfloat16", "float8_e4m3fn")},
    "float64": (low_precision("float64"), "euclidean"),
    "cosine": (low_precision("bfloat16"), "cosine"),
    **{f"{kind}, {fn}": (quantised(kind, fn), fn) for kind in ("int8", "int4", "binary") for fn in ("dot", "cosine")},
    "hamming": (quantised("binary", "hamming"), "hamming"),
    "ragged": (ragged(lambda q, d: (q, d)), "maxsim"),
    "token vectors": (ragged(lambda q, d: (q, scoring.TokenVectors.from_rows(d))), "maxsim"),
    "ragged, int8": (ragged_quantised, "maxsim"),
    "sparse": (sparse_kind(sparse.csr_array), "dot"),
    "sparse, cosine": (sparse_kind(sparse.csc_matrix, sparse.coo_matrix), "cosine"),
    "torch CSR": (sparse_kind(torch_csr), "dot"),
}
QRELS = tw.Qrels.from_dict({str(i): {str(j): 1 for j in (0, 5 + i, 17, 100 + i)} for i in range(QUERIES)})


def check(collection, queries, truth) -> None:
    """A collection's results against all scores in float64, rounded."""
    scores = truth.astype(np.float32).astype(np.float64)
    run = collection.search(queries, 10).to_dict()
    for i, row in enumerate(scores):
        found = run[str(i)]
        assert len(found) >= 10
        np.testing.assert_allclose(list(found.values()), [row[int(doc)] for doc in found], rtol=3e-6, atol=1e-6)
        outside = np.delete(row, [int(doc) for doc in found])
        assert outside.max() <= min(found.values()) + 1e-5 * max(abs(min(found.values())), 1)
    ties = collection.tie_groups(queries, QRELS, orders=("docid-desc", "given"))
    query, doc = QRELS.query, np.array([int(doc) for doc in QRELS.ids(np.arange(len(QRELS)))])
    np.testing.assert_allclose(ties.score, scores[query, doc], rtol=3e-6, atol=1e-6)
    slack = 1e-5 * np.abs(scores).max()
    above = [int((scores[q] > ties.score[i] + slack).sum()) for i, q in enumerate(query)]
    not_below = [int((scores[q] >= ties.score[i] - slack).sum()) for i, q in enumerate(query)]
    assert (ties.start >= above).all() and (ties.start + ties.size <= not_below).all()
    assert (ties.size[doc == 0] >= 4).all()  # it ties with its copies
    np.testing.assert_array_equal(collection.judged_scores(queries, QRELS), ties.score)
    again = collection.rescore(run, queries).to_dict()
    assert again == run


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_agrees_with_float64(kind):
    make, fn = KINDS[kind]
    queries, docs, wide_queries, wide_docs = make()
    collection = scoring.Collection(docs, fn=fn)
    truth = plain(wide_queries, wide_docs, fn)
    for _ in range(2):  # the second time, norms are known
        check(collection, queries, truth)
    assert len(collection) == N and fn in repr(collection)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "sparse" not in kind and "CSR" not in kind])
def test_every_kind_on_a_device(kind, on_device):
    make, fn = KINDS[kind]
    queries, docs, wide_queries, wide_docs = make()
    check(scoring.Collection(docs, fn=fn, device="cpu"), queries, plain(wide_queries, wide_docs, fn))


@pytest.mark.parametrize(
    "kind", ["float32", "bfloat16", "float8_e4m3fn", "cosine", "int8, cosine", "hamming", "ragged"]
)
def test_reproducible_scores_of_a_device_have_the_bits_of_the_cpu(kind, on_device):
    make, fn = KINDS[kind]
    queries, docs, *_ = make()
    truth = scoring.Collection(docs, fn=fn)
    device = scoring.Collection(docs, fn=fn, device="cpu", reproducible=True)
    for block in (None, 50):
        assert device.search(queries, 10, block=block).to_dict() == truth.search(queries, 10).to_dict()
        ties, same = (one.tie_groups(queries, QRELS, orders=("given",), block=block) for one in (device, truth))
        for name in ("score", "start", "size", "lowest", "lowest_size"):
            np.testing.assert_array_equal(getattr(ties, name), getattr(same, name), err_msg=name)
        np.testing.assert_array_equal(ties.before["given"], same.before["given"])
    assert device.rescore(device.search(queries, 9), queries).to_dict() == device.search(queries, 9).to_dict()


@pytest.mark.parametrize("kind", ["bfloat16", "int8, cosine", "hamming", "ragged", "sparse"])
def test_shards_equal_the_whole(kind):
    make, fn = KINDS[kind]
    queries, docs, *_ = make()
    whole = scoring.Collection(docs, fn=fn).tie_groups(queries, QRELS)
    for cut in (1, 150):
        parts = []
        for rows in (slice(0, cut), slice(cut, N)):
            part = (
                docs[rows]
                if not isinstance(docs, scoring.Quantized)
                else type(docs)(docs.codes[rows], docs.kind, docs.dims, docs.low, docs.step)
            )
            parts.append(scoring.Collection(part, fn=fn, doc_ids=range(N)[rows]))
        scores = np.fmax.reduce([part.judged_scores(queries, QRELS) for part in parts])
        merged = TieGroups.merge([part.tie_groups(queries, QRELS, scores=scores) for part in parts])
        for name in ("score", "start", "size", "lowest", "lowest_size"):
            np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name), err_msg=name)


@pytest.mark.parametrize("fn", ["dot", "cosine", "euclidean"])
def test_methods_have_the_bits_of_the_functions(fn):
    queries, docs = dense(3), dense(N)
    names = [f"d{i * 7 % N}" for i in range(N)]
    judged = {"0": {"d3": 1, "d14": 0}, "2": {"d7": 1}}
    collection = scoring.Collection(docs, doc_ids=names, fn=fn)
    for number in (3, 1):  # few queries have their own products
        some, qrels = queries[:number], {query: judged[query] for query in ("0", "2") if int(query) < number}
        assert collection.search(some, 5).to_dict() == scoring.search(some, docs, 5, doc_ids=names, fn=fn).to_dict()
        ties, same = collection.tie_groups(some, qrels), scoring.tie_groups(some, docs, qrels, doc_ids=names, fn=fn)
        np.testing.assert_array_equal(ties.start, same.start)
        np.testing.assert_array_equal(ties.score, same.score)


def test_first_dimensions():
    queries, docs = dense(QUERIES), dense(N)
    for kind in (
        docs,
        scoring.quantize(docs, "int8"),
        scoring.quantize(docs, "int4"),
        scoring.quantize(docs, "binary"),
    ):
        view = scoring.Collection(kind, dims=13, fn="cosine")
        decoded = kind.decode() if isinstance(kind, scoring.Quantized) else kind
        whole = scoring.Collection(decoded[:, :13].copy(), fn="cosine")
        assert view.search(queries, 5).to_dict() == whole.search(queries[:, :13], 5).to_dict()
        assert view.search(queries[:, :13], 5).to_dict() == whole.search(queries[:, :13], 5).to_dict()
    bits = scoring.quantize(docs, "binary")
    near = scoring.Collection(bits, dims=13, fn="hamming").search(scoring.quantize(queries, "binary"), 4).to_dict()
    equal = ((queries[:, None, :13] > 0) == (docs[:, :13] > 0)).sum(-1)
    assert all(equal[int(q), int(d)] == score for q, found in near.items() for d, score in found.items())
    with pytest.raises(InputError, match="24 dimensions, fewer than dims=99"):
        scoring.Collection(docs, dims=99)
    with pytest.raises(InputError, match="queries have 5 dimensions, fewer than dims=13"):
        scoring.Collection(docs, dims=13).search(queries[:, :5], 1)


def test_files(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    queries, docs = dense(QUERIES), dense(N)
    expected = scoring.search(queries, docs, 5, fn="cosine").to_dict()
    np.save(tmp_path / "docs.npy", docs)
    safetensors.save_file({"docs": docs, "other": docs[:2]}, tmp_path / "docs.safetensors")
    for name in ("docs.npy", "docs.safetensors"):
        collection = scoring.Collection(tmp_path / name, fn="cosine")
        assert isinstance(collection._docs.array, np.memmap) or collection._docs.array.base is not None
        assert collection.search(queries, 5, block=37).to_dict() == expected
    parts = []
    for number, rows in enumerate((slice(0, 3), slice(3, 250), slice(250, N))):
        parts.append(tmp_path / f"part{number}.npy")
        np.save(parts[-1], docs[rows])
    shards = scoring.Collection(parts, fn="cosine")
    for block in (None, 90):
        assert shards.search(queries, 5, block=block).to_dict() == expected
    assert (
        shards.judged_scores(queries, QRELS).tolist()
        == scoring.judged_scores(queries, docs, QRELS, fn="cosine").tolist()
    )
    assert scoring.Collection(parts, fn="cosine", dims=7).search(queries, 5).to_dict() == (
        scoring.search(queries[:, :7], docs[:, :7].copy(), 5, fn="cosine").to_dict()
    )


def test_token_vectors_from_files(tmp_path):
    queries, docs = tokens(QUERIES), tokens(N)
    expected = scoring.search(queries, docs, 5, fn="maxsim").to_dict()
    paths = []
    for number, rows in enumerate((slice(0, 10), slice(10, N))):
        paths.append(tmp_path / f"{number}.npz")
        np.savez(paths[-1], docs=np.concatenate(docs[rows]), lengths=[len(row) for row in docs[rows]])
    assert scoring.Collection(paths, fn="maxsim").search(queries, 5).to_dict() == expected
    assert scoring.Collection(paths, fn="maxsim").rescore(expected, queries).to_dict() == expected


def test_parquet_shards(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    queries, docs = dense(QUERIES), dense(N)
    names, paths = [f"d{i}" for i in range(N)], []
    for number, rows in enumerate((slice(0, 170), slice(170, N))):
        table = arrow.table({"id": names[rows], "vector": arrow.array(list(docs[rows]))})
        paths.append(str(tmp_path / f"{number}.parquet"))
        parquet.write_table(table, paths[-1], row_group_size=50)
    collection = scoring.Collection(paths)
    assert (
        collection.search(queries, 5, block=64).to_dict() == scoring.search(queries, docs, 5, doc_ids=names).to_dict()
    )
    qrels = {"0": {"d3": 1, "d390": 1}}
    np.testing.assert_array_equal(
        collection.judged_scores(queries, qrels), scoring.judged_scores(queries, docs, qrels, doc_ids=names)
    )
    short = scoring.Collection(paths, dims=9).search(queries, 5).to_dict()
    assert short == scoring.search(queries[:, :9], docs[:, :9].copy(), 5, doc_ids=names).to_dict()


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1, 2], [3, 4], [5, None]], "column 'vector' lacks a number in row 2. Drop the row, or fill it in."),
        ([[1, 2], [3, 4], None], r"column 'vector' has no vector in row 2 \(1 such row\). Drop it."),
        ([[1, 2], [3, 4], [5, 6, 7]], "column 'vector' has vectors of 2 numbers and, in row 2, of 3. Use one length."),
        ([[1, 2], [3, 4], [5]], "column 'vector' has vectors of 2 numbers and, in row 2, of 1. Use one length."),
        ([[1, 2], [3, 4], []], "column 'vector' has an empty vector in row 2. Drop it."),
    ],
)
def test_parquet_errors_do_not_depend_on_row_groups(vectors, message, rows, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for kind in ("int8", "float32"):
        column = arrow.array(vectors, arrow.list_(arrow.type_for_alias(kind)))
        table = arrow.table({"id": ["a", "b", "c"], "vector": column})
        parquet.write_table(table, tmp_path / "docs.parquet", row_group_size=rows)
        for dims in (None, 1):
            with pytest.raises(InputError, match=rf"docs\.parquet: {message}$"):
                scoring.Collection(tmp_path / "docs.parquet", dims=dims).search([[1.0, 1.0]], 2)


@pytest.mark.parametrize("change", ["cut", "replace"])
def test_a_parquet_file_that_changes_during_a_search(change, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "docs.parquet"
    table = arrow.table({"id": [str(i) for i in range(N)], "vector": arrow.array(list(dense(N)))})
    parquet.write_table(table, path, row_group_size=20)
    collection = scoring.Collection(path)
    if change == "cut":
        os.truncate(path, 100)
    else:
        path.unlink()
        parquet.write_table(table.slice(1), path)
    with pytest.raises(InputError, match=r"docs\.parquet: was changed after it was first read\. Read it again\."):
        collection.search(dense(QUERIES), 5)


@pytest.mark.parametrize("when", ["before", "during"])
@pytest.mark.parametrize("name", ["docs.npy", "docs.safetensors", "bits.npy"])
def test_a_mapped_file_that_becomes_shorter(name, when, tmp_path):
    """Reading beyond its end would kill the process (SIGBUS), so this is a process of its own."""
    docs = dense(20_000)
    np.save(tmp_path / "docs.npy", docs)
    np.save(tmp_path / "bits.npy", np.packbits(docs > 0, axis=1))
    pytest.importorskip("safetensors.numpy").save_file({"docs": docs}, tmp_path / "docs.safetensors")
    code = """
import os, sys, numpy as np, tiewise as tw
from tiewise import scoring
path, when = sys.argv[1:]
bits = "bits" in path
collection = scoring.Collection(path, fn="hamming" if bits else "dot")
queries = np.zeros((2, 3), np.uint8) if bits else np.ones((2, 24), np.float32)
cut = lambda *done: os.truncate(path, 1000)
if when == "before":
    cut()
try:
    collection.search(queries, 3, block=8000, progress=cut)
except tw.InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / name, when], capture_output=True, text=True)
    assert done.stdout == f"{tmp_path / name}: became shorter while it was read. Try again.\n", done


def test_a_mapped_file_may_be_deleted_or_replaced(tmp_path):
    queries, docs, path = dense(QUERIES), dense(N), tmp_path / "docs.npy"
    np.save(path, docs)
    collection, expected = scoring.Collection(path), scoring.search(queries, docs, 5).to_dict()
    path.unlink()
    assert collection.search(queries, 5).to_dict() == expected
    np.save(path, docs[:2])
    assert collection.search(queries, 5).to_dict() == expected


def test_files_on_a_device(tmp_path, on_device):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    queries, docs = dense(QUERIES), dense(N)
    names = [str(i) for i in range(N)]
    arrays, tables = [tmp_path / "0.npy", tmp_path / "1.npy"], [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    for number, rows in enumerate((slice(0, 170), slice(170, N))):
        np.save(arrays[number], docs[rows])
        table = arrow.table({"id": names[rows], "vector": arrow.array(list(docs[rows]))})
        parquet.write_table(table, tables[number], row_group_size=50)
    truth = scoring.Collection(docs, device="cpu").search(queries, 5).to_dict()
    for paths in (arrays, tables):
        collection = scoring.Collection(paths, device="cpu")
        assert collection._docs.array is not None  # copied once
        assert collection.search(queries, 5).to_dict() == truth
    streamed = scoring.Collection(arrays).search(pytest.importorskip("torch").from_numpy(queries), 5, block=100)
    assert streamed.to_dict() == truth


def test_errors(tmp_path):
    docs = dense(10)
    np.save(tmp_path / "wide.npy", dense(4, 9))
    np.save(tmp_path / "docs.npy", docs)
    np.savez(tmp_path / "two.npz", a=docs, b=docs)
    (tmp_path / "bad.parquet").write_text("no")
    bad = sparse.csr_array(docs)
    bad.data[7] = np.nan
    ragged_rows = [docs[:2], docs[2:5]]
    for call, match in [
        (lambda: scoring.Collection(tmp_path / "nothing.npy"), "nothing.npy: there is no such file"),
        (lambda: scoring.Collection([tmp_path / "docs.npy", tmp_path / "wide.npy"]), "wide.npy has 9 dimensions"),
        (lambda: scoring.Collection(tmp_path / "two.npz"), "two.npz: has no array called 'docs'. It has: 'a', 'b'"),
        (lambda: scoring.Collection(tmp_path / "bad.parquet"), "bad.parquet: is not readable as Parquet"),
        (lambda: scoring.Collection(tmp_path / "docs.npy", fn="maxsim"), "docs.npy: The documents have shape"),
        (lambda: scoring.Collection(docs, fn="sigmoid"), "Unknown score function 'sigmoid'"),
        (lambda: scoring.Collection(docs, precision="half"), "Unknown precision 'half'"),
        (lambda: scoring.Collection(docs, dims=0), "dims must be None or an integer"),
        (lambda: scoring.Collection(docs, doc_ids=["a"]), "1 document id for 10 document vectors"),
        (lambda: scoring.Collection(bad).search(docs, 1), "Row 0 of the documents holds NaN"),
        (lambda: scoring.Collection(bad, fn="euclidean"), "does not take sparse vectors"),
        (lambda: scoring.Collection(docs).search(docs[:, :3], 1), "Queries have 3 dimensions and documents 24"),
        (lambda: scoring.Collection(scoring.TokenVectors(docs, [4, 5]), fn="maxsim"), "add up to 9, but there are 10"),
        (lambda: scoring.Collection(scoring.TokenVectors(docs, [10, 0]), fn="maxsim"), "Row 1 of the documents has 0"),
        (lambda: scoring.Collection(scoring.TokenVectors(docs, [5, 5])), "token vectors, which fn='dot' does not take"),
        (lambda: scoring.Collection(ragged_rows, fn="maxsim", doc_mask=[[1]]).search(ragged_rows, 1), "take no mask"),
        (lambda: scoring.TokenVectors.from_rows([docs, docs[0]]), "row 1 have shape"),
        (lambda: scoring.TokenVectors.from_rows([]), "There are no token vectors"),
    ]:
        with pytest.raises(InputError, match=match):
            call()


def test_a_device_that_does_not_exist():
    pytest.importorskip("torch")
    with pytest.raises(InputError, match="There is no device 'toaster'"):
        scoring.Collection(dense(10), device="toaster")


def test_zero_vectors_are_counted_in_every_call():
    docs = dense(10)
    docs[4] = 0
    collection = scoring.Collection(docs, fn="cosine")
    for _ in range(2):
        with pytest.warns(TiewiseWarning, match="1 of the documents") as caught:
            collection.search(docs[:1], 2)
        assert caught[0].filename == __file__
    with pytest.warns(TiewiseWarning, match="1 of the documents") as caught:
        scoring.search(docs[:1], docs, 2, fn="cosine")
    assert caught[0].filename == __file__


def test_pickling():
    collection = scoring.Collection(dense(20), doc_ids=[f"d{i}" for i in range(20)], fn="cosine")
    queries, qrels = dense(2), tw.Qrels.from_dict({"0": {"d3": 1}})
    ties = collection.tie_groups(queries, qrels)
    again = pickle.loads(pickle.dumps(collection))
    assert again.search(queries, 3).to_dict() == collection.search(queries, 3).to_dict()
    np.testing.assert_array_equal(again.tie_groups(queries, qrels).start, ties.start)
