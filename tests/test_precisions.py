"""Which precision can be afforded: every row against a plain computation, the bounds by simulation, the command."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest

import tiewise as tw
from tiewise import scoring
from tiewise.errors import InputError
from tiewise.example import file
from tiewise.scoring import host_scorer, quantised
from tiewise.scoring.precision_trials import setups, trial
from tiewise.tables.wording import add_zeros

ml_dtypes = pytest.importorskip("ml_dtypes")

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float8": ml_dtypes.float8_e4m3fn}


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(1)
    docs = rng.normal(size=(150, 24)).astype(np.float32)
    queries = (docs[:30] + rng.normal(scale=0.9, size=(30, 24))).astype(np.float32)
    qrels = {str(i): {str(i): 2, str((i * 7) % 150): 1, str((i * 11 + 3) % 150): 0} for i in range(30)}
    return queries, docs, qrels


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
    setup = tw.Setup.parse(name)
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
    found = tw.precisions(queries, docs, qrels, rows=[name], repeats=0, resamples=100).row(name)
    truth = expected(qrels, plain(name, queries, docs))
    for field in ("expected", "minimum", "maximum", "std"):
        assert getattr(found.estimate, field) == pytest.approx(getattr(truth, field), abs=1e-9), field


def test_lengths_do_not_matter_to_cosine(vectors):
    queries, docs, qrels = vectors
    options = {"rows": ["float32:int4", "int4", "int8"], "repeats": 0, "samples": 100}
    short = docs * np.float32(2.0) ** np.arange(-5, 5).repeat(15)[:, None]  # powers of two: the same directions
    whole, other = (tw.precisions(queries, some, qrels, **options) for some in (docs, short))
    assert [row.expected for row in other.rows] == [row.expected for row in whole.rows]
    euclidean = tw.precisions(queries, docs, qrels, rows=["int8"], fn="euclidean", repeats=0, samples=100).rows[1]
    codes = scoring.quantize(docs)
    ties = scoring.tie_groups(scoring.quantize(queries, calibration=codes), codes, qrels, fn="euclidean")
    assert euclidean.expected == tw.evaluate(None, ties, "nDCG@10", complete=True)["nDCG@10"].expected


def test_a_row_of_one_low_precision_type_is_native_scoring(vectors):
    queries, docs, qrels = vectors
    found = tw.precisions(queries, docs, qrels, rows=["bfloat16/bfloat16"], repeats=0, resamples=100).rows[1]
    ties = scoring.tie_groups(
        queries.astype(ml_dtypes.bfloat16), docs.astype(ml_dtypes.bfloat16), qrels, fn="cosine", precision="native"
    )
    assert found.expected == tw.evaluate(None, ties, "nDCG@10", complete=True)["nDCG@10"].expected
    assert found.tied_share > 0.1


def test_rescoring_finds_the_float32_order_of_its_candidates(vectors):
    queries, docs, qrels = vectors
    row = tw.precisions(queries, docs, qrels, rows=["binary+20"], repeats=0, resamples=100).row("binary+20")
    bits, exact = plain("binary", queries, docs), cosine(queries, docs).astype(np.float32)
    run = {}
    for q, coarse in enumerate(bits):
        kept = np.flatnonzero(coarse >= np.sort(coarse)[-20])
        run[str(q)] = {str(d): float(exact[q, d]) for d in kept}
    truth = tw.evaluate(qrels, run, "nDCG@10", complete=True)["nDCG@10"]
    assert row.expected == pytest.approx(truth.expected, abs=1e-12)
    assert row.bytes == 3


def test_bytes_with_scales(vectors):
    queries, docs, qrels = vectors
    rows = ["float16", "float8", "int8", "int4", "binary", "float32@12"]
    found = tw.precisions(queries, docs, qrels, rows=rows, repeats=0, resamples=100)
    assert [row.bytes for row in found.rows] == [96, 48, 28, 24 + 8 * 24 / 150, 12 + 8 * 24 / 150, 3, 48]


def test_without_judgments_the_float32_ranking_is_the_reference(vectors):
    queries, docs, _ = vectors
    found = tw.precisions(queries, docs, measures="R@5", rows=["binary"], repeats=0, resamples=100)
    assert found.rows[0].expected == 1 and found.rows[1].expected < 1
    assert "There are no judgments" in found.notes[0]


def test_the_vectors_of_another_encoder(vectors):
    queries, docs, qrels = vectors
    other = docs.astype(np.float16).astype(np.float32)
    found = tw.precisions(
        queries, docs, qrels, rows=["half>float32"], encoders={"half": (queries, other)}, repeats=0, resamples=100
    )
    assert found.rows[1].expected == expected(qrels, cosine(queries, other).astype(np.float32)).expected
    with pytest.raises(InputError, match="no vectors of an encoder 'other'"):
        tw.precisions(queries, docs, qrels, rows=["other>float32"])
    with pytest.raises(InputError, match="'half' has vectors of 30 queries and 149 documents"):
        tw.precisions(queries, docs, qrels, encoders={"half": (queries, other[1:])})


def test_the_paired_difference_and_what_to_choose(vectors):
    queries, docs, qrels = vectors
    found = tw.precisions(queries, docs, qrels, rows=["float16", "float32:int8", "binary"], max_loss=0.12, repeats=0)
    one, reference = (found.row(name).estimates[found.measure].expected for name in ("binary", "float32"))
    difference = found.difference("binary")
    assert difference.mean == pytest.approx(float(np.mean(one - reference)))
    assert difference.losing == np.mean(one - reference < -0.1)
    assert difference.low < difference.mean < difference.high
    assert difference.lower < difference.mean < difference.upper
    assert found.verdict("float32") == "reference" and found.verdict("float16") == "keeps"
    assert found.verdict("binary") == "unknown"
    assert str(found.choice.setup) == "float32:int8"
    assert found.sentence.startswith("Choose float32:int8: 25.3 bytes a vector instead of 96.")
    hard = tw.precisions(queries, docs, qrels, rows=["binary"], max_loss=0.18, repeats=0)
    assert hard.verdict("binary") == "unknown" and hard.choice is None
    assert hard.sentence.startswith("30 queries cannot tell")
    sure = tw.precisions(queries, docs, qrels, rows=["binary"], max_loss=0.001, repeats=0)
    assert sure.verdict("binary") == "loses" and sure.sentence.startswith("Stay with float32")


def test_the_table_shows_the_bounds_that_decide(vectors):
    rows = ["float16", "float32:int4", "binary"]
    found = tw.precisions(*vectors, rows=rows, max_loss=0.3, repeats=0)
    shown = found.to_markdown()
    for name in rows:
        line = next(line for line in shown.splitlines() if name in line)
        one = found.difference(name)
        assert f"| [−{-one.lower:.5f}, " in line and f" | {one.differs} | " in line
    assert str(found.choice.setup) == "float32:int4"
    bound = f"−{-found.difference('float32:int4').lower:.4f}".replace("0.", ".")
    assert f"It loses less than .3 nDCG@10: the 95% lower bound for all 3 rows at once is {bound}." in found.sentence
    assert "verdict: whether they exclude a loss of .3 or more; unknown: there are too few queries" in shown
    assert "bounds" not in tw.precisions(*vectors, rows=rows, repeats=0).to_markdown()


def test_rescoring_reads_full_vectors_too(vectors):
    words = "rescoring also reads full vectors from disk, 96 bytes each."
    assert words in tw.precisions(*vectors, rows=["binary+20"], repeats=0, resamples=100).to_markdown()
    assert words not in tw.precisions(*vectors, rows=["binary"], repeats=0, resamples=100).to_markdown()


def test_without_judgments_it_is_agreement_and_not_a_loss(vectors):
    found = tw.precisions(*vectors[:2], rows=["binary"], max_loss=0.02, repeats=0)
    shown = found.to_markdown()
    assert "Agreement with the float32 ranking (nDCG@10 against its first documents)" in shown
    assert "agrees less |" in shown and "less: queries that agree less by more than 0.1" in shown
    assert found.sentence == (
        "Stay with float32: every row with smaller vectors agrees less with the float32 ranking, by more than .02 "
        "nDCG@10."
    )
    assert not {"loses", "losing"} & set(shown.replace("|", " ").split())
    assert found.verdict("binary") == "loses" and found.to_dict()["has_judgments"] is False
    title = found.plot.loss().to_dict()["title"]["text"]
    assert title == "Agreement with the float32 ranking"


def test_only_smaller_vectors_are_chosen(vectors):
    same = tw.precisions(*vectors, rows=["float32/bfloat16"], max_loss=0.5, repeats=0)
    assert not same.difference("float32/bfloat16").differs and same.choice is None
    assert same.sentence == "Stay with float32: no row has smaller vectors."


def test_of_equally_small_vectors_those_with_the_highest_lower_bound_are_chosen():
    queries, docs = (np.load(file(name)) for name in ("queries.npz", "docs.npz"))
    ids = {"query_ids": queries["query_ids"], "doc_ids": docs["doc_ids"]}
    arrays = queries["queries"], docs["docs"], file("qrels.txt")
    found = tw.precisions(*arrays, **ids, rows=["bfloat16/bfloat16", "float16"], max_loss=0.12, repeats=0)
    rounded, half = map(found.difference, ("bfloat16/bfloat16", "float16"))
    assert rounded.mean > half.mean == 0 and found.verdict("bfloat16/bfloat16") == "keeps"
    assert rounded.lower < half.lower and str(found.choice.setup) == "float16"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": ["int9"]}, "documents cannot have the type 'int9'"),
        ({"rows": ["int8:float32"]}, "int8 queries need int8 documents"),
        ({"rows": ["float32@25"]}, "the vectors have 24 dimensions only"),
        ({"rows": ["float32@0"]}, "whole numbers from 1 on"),
        ({"rows": ["a b"]}, "is not a way to store vectors"),
        ({"max_loss": 2}, "max_loss lies between 0 and 1"),
        ({"measures": []}, "No measure was asked for"),
        ({"fn": "maxsim"}, "fn='maxsim' is not possible"),
        ({"repeats": -1}, "repeats"),
    ],
)
def test_invalid_options(vectors, options, message):
    with pytest.raises(tw.TiewiseError, match=message):
        tw.precisions(*vectors, **options)


def test_invalid_vectors(vectors):
    queries, docs, _ = vectors
    with pytest.raises(InputError, match="24 dimensions and documents 23"):
        tw.precisions(queries, docs[:, 1:])
    large = np.full((5, 8), 1e38)
    with pytest.raises(InputError, match=r"Row 0 of the documents holds a number too large for float16. Leave float16"):
        tw.precisions(large[:2], large, rows=["float16"], repeats=0)
    with pytest.raises(
        InputError, match="Row 0 of the queries holds NaN or infinity, or a number too large for float32"
    ):
        tw.precisions(large[:2] * 10, large, repeats=0)
    with pytest.raises(InputError, match="Row 2 of the queries holds NaN"):
        tw.precisions(np.where(np.arange(30)[:, None] == 2, np.nan, queries), docs)
    with pytest.raises(InputError, match="too large for float8"):
        tw.precisions(1000 * queries, docs, fn="dot", rows=["float32/float8"])


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def test_the_command(tiewise, vectors, folder):
    queries, docs, qrels = vectors
    np.savez(folder / "v.npz", queries=queries, docs=docs)
    (folder / "q.txt").write_text(
        "".join(f"{q} 0 {d} {label}\n" for q, some in qrels.items() for d, label in some.items())
    )
    command = ("precisions", "v.npz", "v.npz", "q.txt", "--repeats", "0")
    rows = ("--row", "float16", "--row", "binary")
    done = tiewise(*command, *rows, "--max-loss", "0.12", "--format", "json")
    document = json.loads(done.out)
    found = tw.precisions(queries, docs, qrels, rows=["float16", "binary"], max_loss=0.12, repeats=0)
    assert document["choice"] == "float16" == str(found.choice.setup)
    assert [row["expected"] for row in document["rows"]] == [row.expected for row in found.rows]
    shown = tiewise(*command, *rows, "--format", "latex").out
    assert "\\toprule" in shown
    np.savez(folder / "other.npz", a=queries, b=docs)
    assert (
        "Give a file that ends in .npy, .npz, .safetensors, .parquet" in tiewise("precisions", "q.txt", "r", code=2).err
    )
    assert "has no array called 'docs'" in tiewise("precisions", "v.npz", "other.npz", code=2).err


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
    for module in (quantised, setups, trial):
        monkeypatch.setattr(module, "BLOCK", 2**16)
    monkeypatch.setattr(host_scorer, "CHUNK", 2**18)
    monkeypatch.setattr(host_scorer, "DOCUMENTS", 512)
    stored = {"float16": 1 / 2, "float8": 1 / 4 + 1 / 64, "int8": 1 / 4, "float32:int4": 1 / 8}.get(name, 1 / 32)
    whole = mapped.nbytes
    tracemalloc.start()
    found = tw.precisions(queries, mapped, rows=[name], measures="R@10", repeats=0, resamples=100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < whole * (stored + 1 / 3)
    in_memory = tw.precisions(queries, docs, rows=[name], measures="R@10", repeats=0, resamples=100)
    assert found.row(name).expected == in_memory.row(name).expected


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_vectors_of_a_narrow_type_are_not_widened(vectors, kind):
    """The rows are those of the same numbers in float32."""
    queries, docs, qrels = (x.astype(TYPES[kind]) if isinstance(x, np.ndarray) else x for x in vectors)
    rows = ["float32/float8", "float8", "int8", "binary"]
    wide = [x.astype(np.float32) for x in (queries, docs)]
    found, truth = (
        tw.precisions(*both, qrels, rows=rows, repeats=0, resamples=100) for both in ((queries, docs), wide)
    )
    assert [row.expected for row in found.rows] == [row.expected for row in truth.rows]


# -- the figure and the page -------------------------------------------------------------------------------------------


def test_the_figure_shows_the_bounds(vectors, tmp_path):
    pytest.importorskip("altair")
    queries, docs, qrels = vectors
    rows = ["float16", "bfloat16", "binary"]
    found = tw.precisions(queries, docs, qrels, rows=rows, max_loss=0.01, repeats=0, resamples=100)
    spec = found.plot.loss().to_dict()
    points = {row["name"]: row for data in spec["datasets"].values() for row in data if "name" in row}
    for row in found.rows:
        difference, point = found.difference(row.setup), points[str(row.setup)]
        assert (point["difference"], point["lower"], point["upper"]) == (
            difference.mean,
            difference.lower,
            difference.upper,
        )
        assert point["bytes"] == row.bytes
    assert points["binary"]["kind"] == "loses" and points["float32"]["kind"] == "reference"
    assert 48 / 1.15 < points["float16"]["place"] < points["bfloat16"]["place"] < 48 * 1.15  # side by side
    assert {"at": -0.01} in [row for data in spec["datasets"].values() for row in data]
    assert tw.figures.precision_losses(found.to_dict()).to_dict() == spec
    with pytest.raises(InputError, match="only the reference"):
        tw.precisions(queries, docs, qrels, rows=[], repeats=0, resamples=100).plot.loss()


def test_a_table_on_the_page(tiewise, vectors, folder):
    pytest.importorskip("altair")
    pytest.importorskip("jinja2")
    queries, docs, qrels = vectors
    np.savez(folder / "v.npz", queries=queries, docs=docs)
    tw.write_qrels(qrels, folder / "q.txt")
    run = scoring.search(queries, docs, 20)
    tw.write_run(run, folder / "run.trec")
    command = ("precisions", "v.npz", "v.npz", "q.txt", "--repeats", "0", "--row", "binary", "--max-loss", "0.05")
    tiewise(*command, "-o", "p.json", "--figure", "loss.svg")
    assert "<svg" in (folder / "loss.svg").read_text(encoding="utf-8")
    page = ("report", "q.txt", "run.trec", "-m", "RR", "-o", "page.html", "--precisions")
    tiewise(*page, "p.json")
    text = (folder / "page.html").read_text(encoding="utf-8")
    found = tw.precisions(queries, docs, qrels, rows=["binary"], max_loss=0.05, repeats=0)
    assert "Which precision can I afford?" in text and add_zeros(found.sentence) in text
    assert "<em>bounds</em>: lower and upper 95% bounds of the difference" in text and "Rescoring" not in text
    same = tw.precisions(queries, docs, qrels, rows=["float16"], max_loss=0.05, repeats=0)
    assert same.difference("float16").differs == 0
    tw.write_report(qrels, {"run": run}, folder / "same.html", "RR", precisions=same)
    text = (folder / "same.html").read_text(encoding="utf-8")
    assert 'class="badge plain-tone">unknown</span>' in text
    unjudged = tw.precisions(queries, docs, rows=["binary", "binary+20"], max_loss=0.05, repeats=0)
    tw.write_report(qrels, {"run": run}, folder / "other.html", "RR", precisions=unjudged)
    text = (folder / "other.html").read_text(encoding="utf-8")
    assert (
        add_zeros(unjudged.sentence) in text and "nDCG@10 is agreement with the float32 ranking, not quality." in text
    )
    assert ">agrees less</span>" in text and "reads full vectors from disk, 96 bytes each" in text
    for content, message in (
        ("[]", "p.json: is not a table of precisions: it has no list 'rows'"),
        ('{"rows": [{}, {}]}', "row 0 has no text 'setup'"),
        ("{", "p.json: is not JSON"),
    ):
        (folder / "p.json").write_text(content)
        (folder / "page.html").unlink(missing_ok=True)
        assert message in tiewise(*page, "p.json", code=2).err
        assert not (folder / "page.html").exists()
    assert "there is no such file" in tiewise(*page, "nothing.json", code=2).err
    with pytest.raises(InputError, match="must be a result of"):
        tw.write_report(qrels, {"run": run}, folder / "other.html", "RR", precisions=3)


def test_a_figure_that_cannot_be_written(tiewise, vectors, folder):
    pytest.importorskip("altair")
    np.savez(folder / "v.npz", queries=vectors[0], docs=vectors[1])
    bad = tiewise("precisions", "v.npz", "v.npz", "--figure", "x.gif", "-o", "out.json", code=2)
    assert "cannot be saved as '.gif'" in bad.err and not (folder / "out.json").exists()
