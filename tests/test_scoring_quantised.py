"""Quantised vectors: codes and back, exact scores of codes, search, and rescoring of candidates."""

from __future__ import annotations

import numpy as np
import pytest

import tiewise as tw
from tiewise import scoring
from tiewise.errors import InputError
from tiewise.ties import tie_groups as from_run

KINDS = ("int8", "int4", "binary")
RNG = np.random.default_rng(5)
DOCS, QUERIES = RNG.normal(size=(600, 37)).astype(np.float32), RNG.normal(size=(5, 37)).astype(np.float32)


def as_kind(array, library: str):
    return array if library == "numpy" else pytest.importorskip("torch").from_numpy(array)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("to", KINDS)
def test_quantize_and_decode(to, library):
    coded = scoring.quantize(as_kind(DOCS, library), to)
    back = np.asarray(coded.decode())
    assert coded.shape == back.shape == DOCS.shape and len(coded) == 600 and back.dtype == np.float32
    assert coded.nbytes == 600 * {"int8": 37, "int4": 19, "binary": 5}[to]
    if to == "binary":
        np.testing.assert_array_equal(back, np.where(DOCS > 0, 1, -1))
        np.testing.assert_array_equal(np.asarray(coded.codes), np.packbits(DOCS > 0, axis=1))
    else:
        step = (DOCS.max(0) - DOCS.min(0)) / (255 if to == "int8" else 15)
        assert (np.abs(back - DOCS) <= step / 2 * (1 + 1e-4)).all()
    np.testing.assert_array_equal(np.asarray(coded.decode([3, 1])), back[[3, 1]])
    np.testing.assert_array_equal(np.asarray(coded.codes), np.asarray(scoring.quantize(DOCS, to).codes))


def test_calibration():
    docs = scoring.quantize(DOCS, "int8")
    ends = np.stack([DOCS.min(0), DOCS.max(0)])
    for calibration in (docs, DOCS, ends):
        np.testing.assert_array_equal(
            scoring.quantize(QUERIES, "int8", calibration=calibration).codes,
            scoring.quantize(np.concatenate([QUERIES, ends]).clip(*ends), "int8").codes[:5],
        )
    wide = scoring.quantize(10 * ends, "int8", calibration=docs)
    assert set(np.unique(wide.codes)) <= {-128, 127}
    constant = scoring.quantize(np.full((3, 2), 7.5), "int4")
    assert (constant.decode() == 7.5).all()


def test_calibration_from_another_library():
    torch = pytest.importorskip("torch")
    ours, sample = scoring.quantize(DOCS), torch.from_numpy(DOCS)
    truth = scoring.quantize(QUERIES, calibration=ours).codes
    for vectors, calibration in (
        (QUERIES, scoring.quantize(sample)),
        (QUERIES, sample),
        (torch.from_numpy(QUERIES), ours),
        (torch.from_numpy(QUERIES), DOCS),
    ):
        mixed = scoring.quantize(vectors, calibration=calibration)
        np.testing.assert_array_equal(mixed.codes, truth)
        assert type(mixed.codes) is type(mixed.step) is type(vectors)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("to", KINDS)
def test_codes_are_scored_exactly(to, library):
    docs = scoring.quantize(as_kind(DOCS, library), to)
    queries = scoring.quantize(as_kind(QUERIES, library), to, calibration=None if to == "binary" else docs)
    truth = np.asarray(queries.values()).astype(np.int64) @ np.asarray(docs.values()).astype(np.int64).T
    found = scoring.score(queries, docs, fn="dot", precision="native")
    assert str(found.dtype).endswith("int32")
    np.testing.assert_array_equal(np.asarray(found), truth)
    if to == "binary":
        np.testing.assert_array_equal(np.asarray(scoring.score(queries, docs, fn="hamming")), (37 + truth) // 2)
    qrels = tw.Qrels.from_dict({str(i): {str(j): 1 for j in range(0, 600, 50)} for i in range(5)})
    run = tw.Run.from_columns(np.repeat(np.arange(5), 600), np.tile(np.arange(600), 5), truth.ravel().astype(float))
    ours, theirs = scoring.tie_groups(queries, docs, qrels), from_run(qrels, run)
    for name in ("score", "start", "size", "lowest", "lowest_size"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert to == "int8" or (ours.size > 1).any()


@pytest.mark.parametrize("to", KINDS)
def test_float_queries_against_codes(to):
    docs = scoring.quantize(DOCS, to)
    found = scoring.score(QUERIES, docs, fn="dot")
    truth = QUERIES.astype(np.float64) @ docs.decode().astype(np.float64).T
    np.testing.assert_allclose(found, truth, rtol=1e-5, atol=1e-4)
    cosine = truth / np.linalg.norm(QUERIES, axis=1)[:, None] / np.linalg.norm(docs.decode(), axis=1)
    np.testing.assert_allclose(scoring.score(QUERIES, docs, fn="cosine"), cosine, atol=1e-6)
    found = scoring.search(QUERIES, docs, 10, block=1)
    assert len(found) == 50 and found.score[0] == scoring.score(QUERIES, docs, fn="dot")[0].max()


def ranked(run: tw.Run, query: str) -> list[str]:
    return list(run.to_dict()[query])


def test_rescoring_orders_by_the_original_vectors():
    codes, queries = scoring.quantize(DOCS, "binary"), scoring.quantize(QUERIES, "binary")
    run = scoring.search(queries, codes, 50, fn="hamming")
    assert run.tied_rows > 100
    original = scoring.score(QUERIES, DOCS, fn="dot")
    again = scoring.rescore(run, QUERIES, DOCS)
    for place, (query, docs) in enumerate(again.to_dict().items()):
        assert docs.keys() == run.to_dict()[query].keys()
        assert (
            docs == {doc: original[place, int(doc)] for doc in docs}
            and list(docs.values()) == sorted(docs.values())[::-1]
        )
    coded = scoring.rescore(run, QUERIES, codes)
    assert coded.tied_rows == 0
    np.testing.assert_allclose(
        sorted(coded.to_dict()["3"].values()),
        sorted(scoring.score(QUERIES, codes, fn="dot")[3, [int(doc) for doc in run.to_dict()["3"]]]),
        rtol=1e-5,
    )


def test_rescoring_lists_of_any_length(monkeypatch):
    """They are scored in batches, and no list gets the scores of another."""
    rng = np.random.default_rng(1)
    lengths = [0, 600, 1, 0, *rng.integers(0, 40, 37)]
    queries = rng.normal(size=(len(lengths), 37)).astype(np.float32)
    run = {
        str(i): {str(doc): float(rng.integers(4)) for doc in rng.choice(600, n, replace=False)}
        for i, n in enumerate(lengths)
    }
    seen: list[tuple[int, int]] = []
    scoring.rescore(run, queries, DOCS, progress=lambda *done: seen.append(done))
    assert seen[-1] == (41, 41) and seen == sorted(set(seen))
    for fn in ("dot", "cosine", "euclidean"):
        scores = scoring.score(queries, DOCS, fn=fn)
        for most in (2**16, 50):  # with 50 the longest list is scored alone
            monkeypatch.setattr("tiewise.scoring.collections.MAX_CANDIDATES", most)
            found = scoring.rescore(run, queries, DOCS, fn=fn).to_dict()
            for query, listed in run.items():
                assert found[query].keys() == listed.keys()
                wanted = [scores[int(query), int(doc)] for doc in found[query]]
                np.testing.assert_allclose(list(found[query].values()), wanted, rtol=1e-5, atol=1e-5)


def test_overflow_with_candidates_of_another_query_is_ignored():
    """On a device queries are multiplied with the candidates of others; these products are not used."""
    queries, docs = np.float32([[1e30], [1.0]]), np.float32([[1.0], [1e30], [2.0]])
    found = scoring.rescore({"0": {"0": 1.0, "2": 1.0}, "1": {"1": 1.0}}, queries, docs).to_dict()
    assert list(found["0"]) == ["2", "0"] and found["1"] == {"1": float(np.float32(1e30))}
    with pytest.raises(InputError, match="1 of the scores"):
        scoring.rescore({"0": {"0": 1.0, "1": 1.0}, "1": {"1": 1.0}}, queries, docs)
    docs[2] = np.nan
    with pytest.raises(InputError, match="Row 2 of the documents holds NaN"):
        scoring.rescore({"1": {"0": 1.0, "2": 1.0}}, queries, docs)


RUN = {"q": {"a": 9.0, "b": 7.0, "c": 7.0, "d": 7.0, "e": 1e-9, "f": 1e-9, "g": -5.0, "h": -6.0}}
VECTORS = np.array([[0.1], [0.5], [0.5], [0.9], [2.0], [3.0], [4.0], [5.0]])
IDS = {"query_ids": ["q"], "doc_ids": list("abcdefgh"), "precision": "float64"}


def test_rescoring_to_a_depth():
    """A group in which the depth ends is scored as a whole; the rest keeps its order and its ties."""
    found = scoring.rescore(RUN, [[-1.0]], VECTORS, depth=2, **IDS).to_dict()["q"]
    assert list(found.items()) == [
        ("a", -0.1), ("b", -0.5), ("c", -0.5), ("d", -0.9), ("e", -2.0), ("f", -2.0), ("g", -3.0), ("h", -4.0)
    ]  # fmt: skip
    deep = scoring.rescore(RUN, [[-1.0]], VECTORS, depth=99, **IDS).to_dict()["q"]
    assert deep == {name: -float(x[0]) for name, x in zip("abcdefgh", VECTORS, strict=True)}
    assert deep == scoring.rescore(RUN, [[-1.0]], VECTORS, **IDS).to_dict()["q"]


@pytest.mark.parametrize("scale", [1.0, 3.3e6, 6e8, 1e20, 1e35])
@pytest.mark.parametrize("sign", [-1, 1])
def test_documents_below_the_depth_stay_distinct_in_float32(scale, sign):
    options = {**IDS, "precision": "float32", "depth": np.int64(2)}
    found = scoring.rescore(RUN, [[sign * scale]], VECTORS, **options).to_dict()["q"]
    read = {doc: float(np.float32(score)) for doc, score in found.items()}
    assert list(found)[-4:] == ["e", "f", "g", "h"]
    assert min(read[doc] for doc in "abcd") > read["e"] == read["f"] > read["g"] > read["h"]


def test_rescoring_only_ties():
    found = scoring.rescore(RUN, [[1.0]], VECTORS, only="tied", **IDS).to_dict()["q"]
    assert list(found.items()) == [
        ("a", 8.0), ("d", 7.0), ("b", 6.0), ("c", 6.0), ("f", 5.0), ("e", 4.0), ("g", 3.0), ("h", 2.0)
    ]  # fmt: skip
    some = scoring.rescore(RUN, [[1.0]], VECTORS, only="tied", depth=3, **IDS).to_dict()["q"]
    assert list(some)[:4] == ["a", "d", "b", "c"] and some["e"] == some["f"]
    untied = scoring.rescore({"q": {"a": 2.0, "h": 1.0}}, [[1.0]], VECTORS, only="tied", **IDS)
    assert ranked(untied, "q") == ["a", "h"]
    assert scoring.rescore({"q": {}}, [[1.0]], VECTORS, **IDS).to_dict() == {"q": {}}


def test_errors():
    docs, binary = scoring.quantize(DOCS), scoring.quantize(DOCS, "binary")
    bad = DOCS.copy()
    bad[4, 0] = np.nan
    for call, match in [
        (lambda: scoring.quantize(DOCS, "int3"), "cannot be quantised to 'int3'"),
        (lambda: scoring.quantize(DOCS[0]), "Give a matrix"),
        (lambda: scoring.quantize(bad), "Row 4 of the vectors holds NaN.* .1 such row[)]"),
        (lambda: scoring.quantize([[0.0, 3e38], [1.0, -3e38]]), "range of dimension 1 .* too wide for float32"),
        (
            lambda: scoring.rescore(RUN, [[1.0]], VECTORS, depth=2.0, **IDS),
            "depth must be None or an integer of at least 1",
        ),
        (lambda: scoring.rescore(RUN, [[1.0]], VECTORS, doc_mask=[[1]] * 8, **IDS), "Masks are for"),
        (lambda: scoring.quantize(docs.codes), "are already integers"),
        (lambda: scoring.quantize(docs), "already quantised, to int8.*decode"),
        (lambda: scoring.quantize(DOCS, "binary", calibration=DOCS), "take no calibration"),
        (lambda: scoring.quantize(DOCS, "int8", calibration=binary), "calibration is binary"),
        (lambda: scoring.quantize(DOCS, "int8", calibration=DOCS[:, :3]), "calibration vectors have shape"),
        (lambda: scoring.score(scoring.quantize(QUERIES), docs, fn="dot"), "different scales"),
        (lambda: scoring.score(binary, docs, fn="dot"), "different scales"),
        (lambda: scoring.score(QUERIES, docs, fn="hamming"), "compares bits"),
        (lambda: scoring.score(docs, docs, fn="hamming"), "compares bits"),
        (lambda: scoring.score(scoring.quantize(QUERIES), docs, fn="hamming"), "compares bits"),
        (lambda: scoring.score(scoring.quantize(QUERIES[:, :3]), docs, fn="dot"), "3 dimensions and documents"),
        (lambda: scoring.score(QUERIES[:, None], docs, fn="maxsim"), "does not take quantised vectors"),
        (
            lambda: scoring.rescore(RUN, [[1.0]], VECTORS, depth=0, **IDS),
            "depth must be None or an integer of at least 1",
        ),
        (lambda: scoring.rescore(RUN, [[1.0]], VECTORS, only="ties", **IDS), "only must be 'tied'"),
        (lambda: scoring.rescore(RUN, [[1.0]], VECTORS), "1 query of the run has no vector: 'q'"),
        (
            lambda: scoring.rescore(RUN, [[1.0]], VECTORS[:7], query_ids=["q"], doc_ids=list("abcdefg")),
            "no vector: 'h'",
        ),
    ]:
        with pytest.raises(InputError, match=match):
            call()
    assert "int8" in repr(docs)


def test_documents_without_a_vector_are_counted_once():
    names = [f"d{place}" for place in range(20)]
    run = {f"q{place}": dict(zip(names, range(20, 0, -1), strict=True)) for place in range(40)}
    vectors = np.ones((20, 2))
    ids = {"query_ids": list(run), "doc_ids": ["d0", "d5", *(f"x{place}" for place in range(18))]}
    with pytest.raises(InputError, match="18 documents of the run have no vector: 'd1', 'd2', 'd3' and 15 more"):
        scoring.rescore(run, np.ones((40, 2)), vectors, **ids)
    with pytest.raises(InputError, match=r"^2 documents of the run have no vector: 'd1', 'd2'"):
        scoring.rescore(run, np.ones((40, 2)), vectors, depth=3, **ids)
    assert scoring.rescore(run, np.ones((40, 2)), vectors, depth=1, **ids).to_dict()["q39"]["d0"] == 2.0


def test_normalized_vectors():
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(40, 7)).astype(np.float32) * rng.uniform(0.1, 9, size=(40, 1)).astype(np.float32)
    vectors[3] = 0
    wide = vectors.astype(np.float64)
    norms = np.sqrt(np.cumsum(wide * wide, axis=1)[:, -1:])
    unit = (wide / np.where(norms > 0, norms, 1)).astype(np.float32)
    for kind in ("int8", "int4", "binary"):
        found, plain = scoring.quantize(vectors, kind, normalize=True), scoring.quantize(unit, kind)
        assert np.array_equal(found.codes, plain.codes) and found.same_scale(plain)
        torch = pytest.importorskip("torch")
        assert np.array_equal(scoring.quantize(torch.from_numpy(vectors), kind, normalize=True).codes, plain.codes)
    sample = scoring.quantize(vectors[:9], calibration=vectors[9:], normalize=True)
    assert np.array_equal(sample.codes, scoring.quantize(unit[:9], calibration=unit[9:]).codes)
    assert np.array_equal(scoring.quantize(vectors[:9], calibration=sample, normalize=True).codes, sample.codes)


def test_bytes_of_sentence_transformers():
    """Packed bits multiplied as numbers are named, and signed ones are refused with what converts them."""
    library = pytest.importorskip("sentence_transformers.quantization", reason="sentence-transformers is not installed")
    rng = np.random.default_rng(8)
    docs, queries = rng.normal(size=(30, 64)).astype(np.float32), rng.normal(size=(4, 64)).astype(np.float32)
    wanted = scoring.search(*(scoring.quantize(x, "binary") for x in (queries, docs)), 5, fn="hamming").to_dict()
    packed = [library.quantize_embeddings(x, "ubinary") for x in (queries, docs)]
    assert scoring.search(*packed, 5, fn="hamming").to_dict() == wanted
    with pytest.warns(
        tw.TiewiseWarning, match=r"are uint8 and are scored as numbers.*use fn='hamming' \(--fn hamming\)"
    ):
        scoring.Collection(packed[1]).search(packed[0], 5)
    signed = [library.quantize_embeddings(x, "binary") for x in (queries, docs)]
    with pytest.raises(InputError, match=r"are int8, .*precision='binary' become such bytes by x.view\(uint8\) \^ 128"):
        scoring.search(*signed, 5, fn="hamming")
    assert np.array_equal(signed[1].view(np.uint8) ^ 128, packed[1])
