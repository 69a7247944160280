"""The rows of the protocol: each against a plain computation."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest

import tiewise as tw
from tiewise import scoring
from tiewise.errors import InputError, TiewiseError
from tiewise.scoring import host_scorer, quantised
from tiewise.scoring.row_makers import vectors as vector_rows

ml_dtypes = pytest.importorskip("ml_dtypes")

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float8": ml_dtypes.float8_e4m3fn}


def cosine(queries, docs):
    a, b = (np.asarray(x, np.float64) for x in (queries, docs))
    return (a @ b.T) / np.linalg.norm(a, axis=1)[:, None] / np.linalg.norm(b, axis=1)


def as_run(scores):
    return {str(q): {str(d): float(s) for d, s in enumerate(row)} for q, row in enumerate(scores)}


def expected(qrels, scores):
    return tw.evaluate(qrels, as_run(scores), "nDCG@10", complete=True)["nDCG@10"]


def unit(x):
    wide = x.astype(np.float64)
    return (wide / np.sqrt(np.cumsum(wide * wide, axis=1)[:, -1:])).astype(np.float32)


def plain(name, queries, docs):
    """The scores of a row, computed without the code under test."""
    setup = vector_rows.Setup.parse(name)
    if setup.dims:
        queries, docs = queries[:, : setup.dims], docs[:, : setup.dims]

    def stored(x, kind, like):
        if kind in ("float16", "bfloat16"):
            return x.astype(TYPES[kind]).astype(np.float64)
        if kind == "float8":
            scale = np.abs(x).max(1, keepdims=True) / np.float32(448)
            return (x / scale).astype(TYPES[kind]).astype(np.float32) * scale
        if kind in ("int8", "int4"):
            levels = 256 if kind == "int8" else 16
            x, like = (unit(one) for one in (x, like))  # for cosine
            low, high = like.min(0), like.max(0)
            step = (high - low) / np.float32(levels - 1)
            codes = np.clip(np.round((x - low) / step), 0, levels - 1)
            return codes - levels // 2 if setup.queries == setup.docs else codes * step + low
        return np.where(x > 0, 1.0, -1.0) if kind == "binary" else x

    a, b = stored(queries, setup.queries, docs), stored(docs, setup.docs, docs)
    scores = a @ b.T if setup.queries == setup.docs == "binary" else cosine(a, b)
    scores = scores.astype(np.float32)
    return scores if setup.scores == "float32" else scores.astype(TYPES[setup.scores]).astype(np.float64)


@pytest.mark.parametrize(
    "name",
    [
        "float32",
        "float16",
        "bfloat16",
        "float8",
        "float32/bfloat16",
        "float32/float16",
        "float32/float8",
        "float32@12",
        "float32:int8",
        "int8",
        "float32:int4",
        "int4",
        "float32:binary",
        "binary",
        "float16@12/bfloat16",
    ],
)
def test_every_row_is_what_a_plain_computation_gives(vectors, name):
    queries, docs, qrels = vectors
    found = tw.protocol(qrels, tw.rows.vectors(queries, docs, [name])).estimate(name)
    truth = expected(qrels, plain(name, queries, docs))
    for field in ("expected", "minimum", "maximum", "std"):
        assert getattr(found, field) == pytest.approx(getattr(truth, field), abs=1e-9), field


def measured(vectors, *names, **options):
    """The expected nDCG@10 of some rows of vectors."""
    queries, docs, qrels = vectors
    rows = tw.rows.vectors(queries, docs, names, **options)
    found = tw.protocol(qrels, rows)
    return [found.estimate(name).expected for name in rows]


def test_the_oblivious_value_is_that_of_the_whole_ranking(vectors):
    queries, docs, qrels = vectors
    rows = tw.rows.vectors(queries, docs, ["binary"], depth=5)
    for oblivious in ("given", "trec_eval", "docid-asc", None):
        found = tw.protocol(qrels, rows, "RR", oblivious=oblivious).estimate("binary")
        truth = tw.evaluate(qrels, as_run(plain("binary", queries, docs)), "RR", oblivious=oblivious, complete=True)
        assert found.oblivious == truth["RR"].oblivious


def test_documents_with_the_id_of_their_query_can_be_dropped(vectors):
    queries, docs, qrels = vectors
    rows = tw.rows.vectors(queries, docs, ["binary", "binary+20"], depth=5)
    found = tw.protocol(qrels, rows, "RR", drop_self=True)
    truth = tw.evaluate(qrels, as_run(plain("binary", queries, docs)), "RR", drop_self=True, complete=True)
    assert found.estimate("binary").expected == truth["RR"].expected
    assert not any(query in docs for query, docs in found_run(rows["binary+20"]).without_self().to_dict().items())
    assert found.estimate("binary+20").expected < tw.protocol(qrels, rows, "RR").estimate("binary+20").expected


def found_run(row):
    return row.run.rows()


def test_lengths_do_not_matter_to_cosine(vectors):
    queries, docs, qrels = vectors
    names = ["float32:int4", "int4", "int8"]
    short = docs * np.float32(2.0) ** np.arange(-5, 5).repeat(15)[:, None]  # powers of two: the same directions
    assert measured((queries, short, qrels), *names) == measured(vectors, *names)
    codes = scoring.quantize(docs)
    ties = scoring.tie_groups(scoring.quantize(queries, calibration=codes), codes, qrels, fn="euclidean")
    truth = tw.evaluate(None, ties, "nDCG@10", complete=True)["nDCG@10"].expected
    assert measured(vectors, "int8", fn="euclidean") == [truth]


def test_a_row_of_one_low_precision_type_is_native_scoring(vectors):
    queries, docs, qrels = vectors
    ties = scoring.tie_groups(
        queries.astype(ml_dtypes.bfloat16), docs.astype(ml_dtypes.bfloat16), qrels, fn="cosine", precision="native"
    )
    truth = tw.evaluate(None, ties, "nDCG@10", complete=True)["nDCG@10"].expected
    assert measured(vectors, "bfloat16/bfloat16") == [truth]
    assert found_run(tw.rows.vectors(queries, docs, "bfloat16/bfloat16")["bfloat16/bfloat16"]).tied_share > 0.1


def test_rescoring_finds_the_float32_order_of_its_candidates(vectors):
    queries, docs, qrels = vectors
    bits, exact = plain("binary", queries, docs), cosine(queries, docs).astype(np.float32)
    run = {}
    for q, coarse in enumerate(bits):
        kept = np.flatnonzero(coarse >= np.sort(coarse)[-20])
        run[str(q)] = {str(d): float(exact[q, d]) for d in kept}
    truth = tw.evaluate(qrels, run, "nDCG@10", complete=True)["nDCG@10"]
    assert measured(vectors, "binary+20") == [pytest.approx(truth.expected, abs=1e-12)]
    row = tw.rows.vectors(queries, docs, ["binary+20"])["binary+20"]
    assert row.bytes == 3
    count = sum(map(len, run.values())) / len(run)
    assert count > 20
    assert row.note == (
        f"also reads full vectors, 96 bytes each. It scores {count:.1f} documents a query: ties across rank 20 are all "
        "rescored."
    )
    whole = tw.rows.vectors(queries, docs, ["binary+150"])["binary+150"]
    assert whole.note == "also reads full vectors, 96 bytes each."


def test_rounded_vectors_are_told(vectors):
    """Those of a model in 16 bits are no reference in float32; whole numbers may be of any model."""
    queries, docs, _ = vectors

    def note(docs, *names):
        rows = tw.rows.vectors(queries, docs, names or ["float32", "float32@12"], encoders={"x": (queries, docs)})
        return [row.note for row in rows.values()]

    for kind in ("bfloat16", "float16"):
        rounded = docs.astype(TYPES[kind])
        told = (
            f"the vectors hold only numbers of {kind}. If a model in {kind} made them, give those of the model in "
            "float32, and these as an encoder."
        )
        assert note(rounded) == note(rounded.astype(np.float32)) == [told, ""]
        assert note(rounded, "x>float32", kind) == ["", ""]
    assert note(docs) == note(np.round(docs)) == ["", ""]


def test_integers_are_not_taken_for_float32(vectors):
    """int8 vectors take a byte for each number; uint8 may be packed bits, as `score` warns."""
    queries, docs, _ = vectors
    small = [np.round(20 * one).astype(np.int8) for one in (queries, docs)]
    rows = tw.rows.vectors(*small, ["float32", "bfloat16", "binary+100"])
    assert [row.bytes for row in rows.values()] == [24, 48, 3]
    assert rows["float32"].note == (
        "the vectors hold only numbers of int8, 24 bytes each. Give the float vectors that they were made of, and "
        "these as an encoder."
    )
    assert rows["binary+100"].note.startswith("also reads full vectors, 24 bytes each.")
    assert tw.rows.vectors(queries, docs, ["x>float32"], encoders={"x": small})["x>float32"].bytes == 24
    bits = [np.packbits(one > 0, axis=1) for one in (queries, docs)]
    with pytest.warns(tw.TiewiseWarning, match="are uint8 and are scored as numbers.*give the float vectors"):
        assert tw.rows.vectors(*bits, ["float32"])["float32"].bytes == 3


def test_bytes_with_scales(vectors):
    queries, docs, _ = vectors
    names = ["float32", "float16", "float8", "int8", "int4", "binary", "float32@12"]
    found = tw.rows.vectors(queries, docs, names)
    assert [row.bytes for row in found.values()] == [96, 48, 28, 24 + 8 * 24 / 150, 12 + 8 * 24 / 150, 3, 48]


def test_the_default_is_a_selection_and_a_search_is_timed_on_request(vectors):
    queries, docs, _ = vectors
    found = tw.rows.vectors(queries, docs)
    assert next(iter(found)) == "float32" and "binary+100" in found
    assert all(row.seconds is None for row in found.values())
    timed = tw.rows.vectors(queries, docs, ["float32"], repeats=2)["float32"]
    assert timed.seconds > 0 and timed.timed == "Tiewise's search"


def test_short_names_of_types(vectors):
    queries, docs, _ = vectors
    rows = tw.rows.vectors(queries, docs, ["bf16", "fp32:int8", "bf16>fp32/fp16"], encoders={"bf16": (queries, docs)})
    assert list(rows) == ["bfloat16", "float32:int8", "bf16>float32/float16"]
    scores = {"q": {"a": 1.0, "b": 1.001}}
    assert tw.evaluate({"q": {"a": 1}}, scores, "RR", score_dtype="bf16", complete=True)["RR"].expected == 0.75


def test_default_rows_that_need_an_extra_are_left_out(vectors, monkeypatch):
    queries, docs, qrels = vectors
    everything = list(tw.rows.vectors(queries, docs))
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.warns(tw.TiewiseWarning) as told:
        found = tw.rows.vectors(queries, docs)
    lost = [name for name in everything if "bfloat16" in name or "float8" in name]
    assert list(found) == [name for name in everything if name not in lost] and len(lost) == 5
    assert [str(one.message) for one in told] == [
        f"Left out, because they need an extra: {', '.join(lost)}. Install it: pip install 'tiewise[precision]'"
    ]
    tw.protocol(qrels, found)
    with pytest.raises(tw.MissingExtraError, match="Storing vectors in bfloat16 needs an extra"):
        tw.rows.vectors(queries, docs, ["bfloat16"])
    with pytest.raises(tw.MissingExtraError, match="Rounding scores to float8 needs an extra"):
        tw.protocol(qrels, tw.rows.vectors(queries, docs, ["float32/float8"]))


def test_the_vectors_of_another_encoder(vectors):
    queries, docs, qrels = vectors
    other = docs.astype(np.float16).astype(np.float32)
    found = measured(vectors, "half>float32", encoders={"half": (queries, other)})
    assert found == [expected(qrels, cosine(queries, other).astype(np.float32)).expected]
    with pytest.raises(InputError, match="no vectors of an encoder 'other'"):
        tw.rows.vectors(queries, docs, ["other>float32"])
    with pytest.raises(InputError, match="'half' has vectors of 30 queries and 149 documents"):
        tw.rows.vectors(queries, docs, encoders={"half": (queries, other[1:])})


def test_an_encoder_has_its_own_vectors_and_dimensions(vectors):
    """Documents are scored again with the vectors of the encoder, and bytes are those of its vectors."""
    queries, docs, qrels = vectors
    rng = np.random.default_rng(1)
    encoders = {
        name: tuple(rng.normal(size=(len(x), dims)).astype(np.float32) for x in (queries, docs))
        for name, dims in (("small", 16), ("big", 64))
    }
    names = ["small>float32", "small>binary+150", "big>float32@40", "big>int8", "big>binary+150"]
    rows = tw.rows.vectors(queries, docs, names, encoders=encoders)
    assert [row.bytes for row in rows.values()] == [64, 2, 160, 64 + 8 * 64 / 150, 8]
    assert rows["big>binary+150"].note == "also reads full vectors, 256 bytes each."
    assert found_run(rows["small>binary+150"]).to_dict() == {
        query: pytest.approx(docs) for query, docs in as_run(cosine(*encoders["small"])).items()
    }
    found = tw.protocol(qrels, rows)
    assert found.estimate("small>binary+150").expected == found.estimate("small>float32").expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["int9"]}, "documents cannot have the type 'int9'"),
        ({"names": ["int8:float32"]}, "int8 queries need int8 documents"),
        ({"names": ["float32@25"]}, "the vectors have 24 dimensions only"),
        ({"names": ["float32@0"]}, "whole numbers from 1 on"),
        ({"names": ["a b"]}, "is not a way to store vectors"),
        ({"fn": "maxsim"}, "fn='maxsim' is not possible"),
        ({"repeats": -1}, "repeats"),
        ({"doc_ids": ["a"]}, "1 document id for 150 document vectors"),
    ],
)
def test_invalid_options(vectors, options, message):
    with pytest.raises(TiewiseError, match=message):
        tw.rows.vectors(*vectors[:2], **options)


def test_invalid_vectors(vectors):
    queries, docs, _ = vectors
    with pytest.raises(InputError, match="24 dimensions and documents 23"):
        tw.rows.vectors(queries, docs[:, 1:])
    large = np.full((5, 8), 1e38)
    with pytest.raises(
        InputError, match=r"Row 'float16': Row 0 of the documents holds a number too large for float16. Leave float16"
    ):
        tw.protocol(None, tw.rows.vectors(large[:2], large, ["float32", "float16"]))
    with pytest.raises(
        InputError, match="Row 0 of the queries holds NaN or infinity, or a number too large for float32"
    ):
        tw.rows.vectors(large[:2] * 10, large)
    with pytest.raises(InputError, match="Row 2 of the queries holds NaN"):
        tw.rows.vectors(np.where(np.arange(30)[:, None] == 2, np.nan, queries), docs)
    with pytest.raises(InputError, match="too large for float8"):
        tw.protocol(None, tw.rows.vectors(1000 * queries, docs, ["float32/float8"], fn="dot"))
    with pytest.raises(InputError, match="has no other scores or documents"):
        tw.evaluate(vectors[2], tw.rows.vectors(queries, docs, ["binary"])["binary"].run, judged_only=True)


# -- scores in a type --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fn", ["dot", "cosine", "euclidean"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float8"])
def test_a_collection_rounds_its_scores(vectors, fn, kind):
    """Search and tie groups are those of all scores in float32, rounded afterwards."""
    queries, docs, qrels = vectors
    collection = scoring.Collection(docs, fn=fn, score_dtype=kind)
    scores = scoring.score(queries, docs, fn=fn).astype(TYPES[kind]).astype(np.float64)
    assert len(np.unique(scores)) < scores.size  # there are ties
    found = collection.tie_groups(queries, qrels, block=37)
    truth = tw.tie_groups(qrels, as_run(scores))
    for name in ("start", "size", "lowest", "lowest_size"):
        assert np.array_equal(getattr(found, name), getattr(truth, name)), name
    run = collection.search(queries, 7, block=37).to_dict()
    for q, row in enumerate(scores):
        kept = np.flatnonzero(row >= np.sort(row)[-7])
        assert run[str(q)] == {str(d): row[d] for d in kept}


def test_a_collection_of_bits_rounds_its_scores():
    rng = np.random.default_rng(5)
    bits = rng.random((60, 800)) < 0.5
    found = scoring.Collection(bits, fn="hamming", score_dtype="bfloat16").search(bits[:3], 60).to_dict()
    exact = (bits[:3, None] == bits).sum(-1).astype(np.float32)
    assert found == as_run(exact.astype(ml_dtypes.bfloat16).astype(float))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float8"])
@pytest.mark.parametrize("reproducible", [False, True])
def test_a_device_rounds_its_scores(on_device, kind, reproducible):
    """Products of whole numbers are exact, so that the device has the scores of main memory."""
    rng = np.random.default_rng(6)
    docs, queries = (rng.integers(-4, 5, size=(n, 32)).astype(np.float32) for n in (400, 6))
    qrels = {str(q): {str(d): 1 for d in range(q, 400, 40)} for q in range(6)}
    host, device = (
        scoring.Collection(docs, score_dtype=kind, device=where, reproducible=reproducible) for where in (None, "cpu")
    )
    for block in (None, 100):
        assert device.search(queries, 9, block=block).to_dict() == host.search(queries, 9).to_dict()
        found, truth = (one.tie_groups(queries, qrels, block=block) for one in (device, host))
        for name in ("score", "start", "size", "lowest", "lowest_size"):
            assert np.array_equal(getattr(found, name), getattr(truth, name)), name
    if kind != "bfloat16":  # which has the range of float32
        with pytest.raises(InputError, match=f"too large for {kind}"):
            scoring.Collection(docs * np.float32(1e5), score_dtype=kind, device="cpu").search(queries, 9)


def test_scores_that_cannot_be_rounded():
    with pytest.raises(InputError, match="Use one of: float16, bfloat16, float8"):
        scoring.Collection([[1.0]], score_dtype="int8")
    with pytest.raises(InputError, match="Omit it, or score_dtype"):
        scoring.Collection([[1.0]], precision="native", score_dtype="float16")
    with pytest.raises(InputError, match="1 of the scores are too large for float16"):
        scoring.Collection([[1e6]], score_dtype="float16").search([[1.0]], 1)


# -- documents larger than memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32/bfloat16", "float16", "float8", "int8", "float32:int4", "binary+20"])
def test_documents_in_a_file_are_never_copied_as_a_whole(tmp_path, monkeypatch, name):
    """The most that is allocated, beside the vectors in the type that is tried, is less than a third of the file."""
    rng = np.random.default_rng(0)
    docs = rng.normal(size=(20_000, 256)).astype(np.float32)
    np.save(tmp_path / "docs.npy", docs)
    queries, mapped = docs[:5].copy(), np.load(tmp_path / "docs.npy", mmap_mode="r")
    for module in (quantised, vector_rows):
        monkeypatch.setattr(module, "BLOCK", 2**16)
    monkeypatch.setattr(host_scorer, "CHUNK", 2**18)
    monkeypatch.setattr(host_scorer, "DOCUMENTS", 512)
    qrels = {str(i): {str(i): 1, str(i + 100): 1} for i in range(5)}
    stored = {"float16": 1 / 2, "float8": 1 / 4 + 1 / 64, "int8": 1 / 4, "float32:int4": 1 / 8}.get(name, 1 / 32)
    whole = mapped.nbytes
    tracemalloc.start()
    found = tw.protocol(qrels, tw.rows.vectors(queries, mapped, [name]), "R@10")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < whole * (stored + 1 / 3)
    in_memory = tw.protocol(qrels, tw.rows.vectors(queries, docs, [name]), "R@10")
    assert found.estimate(name).expected == in_memory.estimate(name).expected


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_vectors_of_a_narrow_type_are_not_widened(vectors, kind):
    """The rows are those of the same numbers in float32."""
    narrow = [x.astype(TYPES[kind]) for x in vectors[:2]]
    names = ["float32", "float32/float8", "float8", "int8", "binary"]
    wide = [x.astype(np.float32) for x in narrow]
    assert measured((*narrow, vectors[2]), *names) == measured((*wide, vectors[2]), *names)


@pytest.fixture
def folder(tmp_path):
    return tmp_path


# -- logits ------------------------------------------------------------------------------------------------------------

QUERIES, CANDIDATES, WIDTH = 40, 12, 16


class Pairs:
    """A float16 model of two classes or one: hidden states, weights, and the logits that it computes from them."""

    def __init__(self, classes):
        rng = np.random.default_rng(classes)
        self.query = np.repeat([f"q{i}" for i in range(QUERIES)], CANDIDATES)
        self.doc = np.tile([f"d{i}" for i in range(CANDIDATES)], QUERIES)
        self.hidden = (rng.normal(size=(QUERIES * CANDIDATES, WIDTH)) + 0.6).astype(np.float16)
        self.weight = rng.normal(size=(classes, WIDTH), scale=0.4).astype(np.float16)
        self.weight[-1] += np.float16(0.5)
        self.bias = rng.normal(size=classes).astype(np.float16)
        self.exact = self.hidden.astype(np.float64) @ self.weight.astype(np.float64).T + self.bias.astype(np.float64)
        self.logits = self.exact.astype(np.float16)
        odds = self.exact[:, -1] - (self.exact[:, 0] if classes == 2 else 0)
        relevant = odds + rng.normal(size=len(odds)) > np.quantile(odds, 0.7)
        self.qrels = {}
        for query, doc, label in zip(self.query, self.doc, relevant, strict=True):
            self.qrels.setdefault(str(query), {})[str(doc)] = int(label)

    def plain(self, level):
        """The scores of a level, computed without the code under test."""
        z = self.exact if level == "head" else self.logits
        wide = z.astype(np.float64)
        odds = wide[:, 0] if wide.shape[1] == 1 else wide[:, 1] - wide[:, 0]
        if level in ("head", "logit"):
            return odds.astype(np.float32)
        return (1 / (1 + np.exp(-odds))).astype(np.float32 if level == "score" else np.float16)

    def run(self, scores):
        found = {}
        for query, doc, value in zip(self.query, self.doc, scores, strict=True):
            found.setdefault(str(query), {})[str(doc)] = float(value)
        return found

    def rows(self, **options):
        layer = {"hidden": self.hidden, "weight": self.weight, "bias": self.bias}
        return tw.rows.logits(self.query, self.doc, **{"logits": self.logits, **layer, **options})


ROWS = {"float16": "native", "float16 + hps": "score", "float16 + logit": "logit", "float16 + head": "head"}


@pytest.fixture(scope="module", params=[1, 2], ids=["sigmoid", "softmax"])
def pairs(request):
    return Pairs(request.param)


def test_every_level_is_what_a_plain_computation_gives(pairs):
    rows = pairs.rows()
    assert list(rows) == list(ROWS)
    found = tw.protocol(pairs.qrels, rows)
    assert not found.notes  # the lists are complete
    for name, level in ROWS.items():
        run = pairs.run(pairs.plain(level))
        truth = tw.evaluate(pairs.qrels, run, "nDCG@10", complete=True, oblivious="given")["nDCG@10"]
        for field in ("expected", "minimum", "maximum", "std", "oblivious"):
            assert getattr(found.estimate(name), field) == pytest.approx(getattr(truth, field), abs=1e-9), (name, field)
        assert found.row(name).tied_share == tw.Run.from_dict(run).tied_share
    tied = [found.row(f"float16{level}").tied_share for level in (" + head", " + logit", "")]
    assert tied == sorted(tied) and tied[0] < tied[2]


def test_head_rounds_the_difference_of_logits_once(tiewise, tmp_path):
    """Two large logits: rounded to float32 one by one, their differences tie."""
    hidden = np.float32([[1, 1.0], [1, 1.125], [1, 1.25]])
    layer = {"hidden": hidden, "weight": np.float32([[2**24, 0], [2**24, 1]])}
    rows = tw.rows.logits(["q"] * 3, ["a", "b", "c"], **layer, levels="head")
    assert rows["float32 + head"].run.to_dict() == {"q": {"a": 1.0, "b": 1.125, "c": 1.25}}
    np.savez(tmp_path / "model.npz", query=["q"] * 3, doc=["a", "b", "c"], **layer)
    tiewise("score", str(tmp_path / "model.npz"), "-o", str(tmp_path / "run.trec"))
    assert tw.read_run(tmp_path / "run.trec").to_dict() == {"q": {"a": 1.0, "b": 1.125, "c": 1.25}}


def test_the_reference_is_the_model_in_float32(pairs):
    rows = pairs.rows(reference=pairs.exact, levels=["head", "native"])
    assert list(rows) == ["float32", "float16", "float16 + head"]
    odds = pairs.exact[:, -1] - (pairs.exact[:, 0] if pairs.exact.shape[1] == 2 else 0)
    truth = pairs.run(1 / (1 + np.exp(-odds)))  # the score, as in the other rows, not the logit
    assert rows["float32"].run.to_dict() == {query: pytest.approx(docs, abs=1e-12) for query, docs in truth.items()}
    with pytest.raises(InputError, match="The logits are in float32 as the reference is"):
        pairs.rows(logits=pairs.exact.astype(np.float32), reference=pairs.exact)


def test_rows_of_several_types_are_joined(pairs):
    other = pairs.rows(logits=pairs.exact.astype(ml_dtypes.bfloat16), levels=["native", "score"])
    assert list(pairs.rows(levels="native") | other) == ["float16", "bfloat16", "bfloat16 + hps"]


def test_high_precision_is_at_least_that_of_the_logits():
    """Logits in float64 that differ in the tenth digit tie at no level."""
    given = {"logits": [1.0, 1.0 + 1e-9], "hidden": np.array([[1.0], [1.0 + 1e-9]]), "weight": np.array([[1.0]])}
    rows = tw.rows.logits(["q", "q"], ["a", "b"], **given)
    assert {name: row.run.tied_share for name, row in rows.items()} == dict.fromkeys(
        ["float64", "float64 + hps", "float64 + logit", "float64 + head"], 0
    )


def test_the_function_of_the_logits(pairs):
    """Classes that do not compete, and a logit that is the score itself."""
    last, options = pairs.logits[:, -1], {"levels": ["native", "score", "logit"]}
    several = {"positive": 1} if pairs.logits.shape[1] == 2 else {}
    found = pairs.rows(fn="identity", **several, **options)
    assert [row.run.to_dict() for row in found.values()] == [pairs.run(last)] * 3
    found = pairs.rows(fn="sigmoid", **several, **options)
    wide = 1 / (1 + np.exp(-last.astype(np.float64)))
    assert found["float16"].run.to_dict() == pairs.run(wide.astype(np.float16))
    assert found["float16 + hps"].run.to_dict() == pairs.run(wide.astype(np.float32))


def test_scores_do_not_depend_on_their_place():
    """Equal logits in float32 tie: torch itself gives them other bits at the end of a tensor."""
    torch = pytest.importorskip("torch")
    values = torch.randn(50, generator=torch.Generator().manual_seed(0)) * 4
    rows = tw.rows.logits(["q"] * 450, list(map(str, range(450))), logits=values.repeat(9), levels="native")
    found = rows["float32"].run.to_dict()["q"]
    assert len(set(found.values())) == 50


def test_logits_from_hidden_states_alone(pairs):
    alone, whole = (tw.protocol(pairs.qrels, pairs.rows(**some)) for some in ({"logits": None}, {}))
    assert alone.estimate("float16").expected == pytest.approx(whole.estimate("float16").expected, abs=1e-9)


def test_tensors_give_the_same(pairs):
    torch = pytest.importorskip("torch")
    given = {name: torch.from_numpy(getattr(pairs, name)) for name in ("logits", "hidden", "weight", "bias")}
    found, truth = pairs.rows(**given), pairs.rows()
    assert {name: row.run.to_dict() for name, row in found.items()} == {
        name: row.run.to_dict() for name, row in truth.items()
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"logits": None, "hidden": None, "weight": None, "bias": None}, "There is nothing to score"),
        ({"hidden": None, "weight": None}, "There is a bias without hidden and weight"),
        ({"weight": None}, "Give both, or neither"),
        ({"levels": ["nativ"]}, "Unknown level 'nativ'. Use some of: native, score, logit, head"),
        ({"levels": []}, "No level was given"),
        ({"hidden": None, "weight": None, "bias": None, "levels": "head"}, "needs hidden states"),
        ({"logits": np.ones((480, 1, 1))}, "have shape"),
        ({"logits": np.ones((480, 5))}, "and those of the last layer"),
        ({"reference": np.ones(3)}, "reference has shape .3,., and the logits .480, 2."),
        ({"reference": np.ones((480, 2), np.float16)}, "reference has the type float16"),
        ({"positive": 7}, "positive must be the index of a class"),
        ({"positive": 7, "fn": "sigmoid"}, "positive must be the index of a class, 0 to 1, not 7"),
        ({"fn": "tanh"}, "fn='tanh' is not possible here. Use one of: sigmoid, softmax, log_softmax, identity"),
    ],
)
def test_invalid_options_of_logits(options, message):
    with pytest.raises(TiewiseError, match=message):
        Pairs(2).rows(**options)


@pytest.mark.parametrize("logits", [np.float16([1.0, 2.0]), np.float16([[1.0], [2.0]])])
def test_positive_with_one_logit_is_an_error(logits):
    for positive in (0, 1):
        with pytest.raises(InputError, match=f"is {positive}: it chooses among several logits, but there is one a pai"):
            tw.rows.logits(["q", "q"], ["a", "b"], logits=logits, positive=positive)


def test_invalid_ids():
    one = {"logits": np.float16([1.0, 2.0])}
    with pytest.raises(InputError, match="1 queries and 2 documents"):
        tw.rows.logits(["q"], ["a", "b"], **one)
    with pytest.raises(InputError, match="as a list of ids"):
        tw.rows.logits("qq", ["a", "b"], **one)
    with pytest.raises(InputError, match="ids of 3 pairs, and scores of 2"):
        tw.rows.logits(["q"] * 3, ["a", "b", "c"], **one)
    with pytest.raises(InputError, match="Row 'float16': The run and the qrels have no query in common"):
        tw.protocol({"r": {"a": 1}}, tw.rows.logits(["q", "q"], ["a", "b"], **one))
