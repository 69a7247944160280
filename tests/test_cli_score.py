"""``tiewise score``: arrays in files become runs, at every level; and reading such files."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import ml_dtypes
import numpy as np
import pytest

import tiewise as tw
from tiewise import scoring
from tiewise.errors import InputError
from tiewise.io.tensors import read_tensors

RNG = np.random.default_rng(5)
QUERIES, DOCS = RNG.normal(size=(3, 8)).astype("f4"), RNG.normal(size=(20, 8)).astype("f4")
HIDDEN = RNG.normal(size=(12, 8)).astype(ml_dtypes.bfloat16)
WEIGHT, BIAS = RNG.normal(size=(2, 8)).astype(ml_dtypes.bfloat16), np.array([0.5, -0.25], dtype=ml_dtypes.bfloat16)
QUERY = np.repeat([7, 9, 11], 4)
HEADERS = {  # of safetensors files that are none
    "list": [],
    "number": {"x": 7},
    "nowhere": {"x": {"dtype": "F32", "shape": [2]}},
    "text": {"x": {"dtype": "F32", "shape": ["2"], "data_offsets": [0, 8]}},
    "short": {"x": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}},
    "kind": {"x": {"dtype": [], "shape": [2], "data_offsets": [0, 8]}},
    "unknown": {"x": {"dtype": "F8_E8M0", "shape": [8], "data_offsets": [0, 8]}},
}
NAMES = {"float32": "F32", "bfloat16": "BF16", "int64": "I64", "float8_e4m3fn": "F8_E4M3"}


def safetensors(path: Path, **arrays) -> None:
    """Write the format by hand: the header's length, the header, the arrays."""
    header, at, parts = {"__metadata__": {"made": "by a test"}}, 0, []
    for name, array in arrays.items():
        data = array.tobytes()
        kind = NAMES[array.dtype.name]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"".join(parts))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("score")
    np.savez(folder / "vectors.npz", queries=QUERIES, docs=DOCS, doc_ids=np.array([f"d{i:02d}" for i in range(20)]))
    np.save(folder / "queries.npy", QUERIES)
    np.save(folder / "docs.npy", DOCS)
    (folder / "names.txt").write_text("one\ntwo\nthree\n")
    logits = (HIDDEN.astype("f4") @ WEIGHT.astype("f4").T).astype(ml_dtypes.bfloat16)
    safetensors(folder / "model.safetensors", hidden=HIDDEN, weight=WEIGHT, bias=BIAS, query=QUERY, raw=logits)
    safetensors(folder / "small.safetensors", x=np.array([1.5], dtype=ml_dtypes.float8_e4m3fn))
    (folder / "cut.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:300])
    (folder / "text.npz").write_text("no archive")
    np.savez(folder / "nan.npz", logits=np.array([0.5, np.nan]), query=[1, 1])
    np.savez(folder / "nan16.npz", queries=QUERIES, docs=np.where(DOCS > 2, np.inf, DOCS).astype(ml_dtypes.bfloat16))
    np.savez(folder / "one.npz", logits=RNG.normal(size=4), query=[1, 1, 2, 2], doc=["a", "b", "a", "b"])
    np.savez(folder / "both.npz", queries=QUERIES, docs=DOCS, logits=logits.astype("f4"), query=QUERY)
    np.savez(folder / "other.npz", x=QUERIES)
    tokens = {"queries": RNG.normal(size=(2, 3, 4)), "docs": RNG.normal(size=(5, 6, 4))}
    masks = {"query_mask": np.array([[1, 1, 0], [1, 0, 0]]), "doc_mask": np.tri(5, 6, dtype=bool)}
    np.savez(folder / "tokens.npz", **tokens, **masks)
    np.savez(folder / "flat.npz", queries=QUERIES, docs=DOCS, query_mask=np.ones((3, 8)))
    np.savez(folder / "no-docs.npz", queries=QUERIES, docs=DOCS[:0])
    np.savez(folder / "no-pairs.npz", logits=np.zeros(0), query=np.zeros(0, dtype=int))
    np.savez(folder / "objects.npz", queries=QUERIES, docs=DOCS, doc_ids=np.array(["a", None], dtype=object))
    np.save(folder / "objects.npy", np.array(["a", None], dtype=object))
    np.savez(folder / "fp8.npz", x=HIDDEN.astype(ml_dtypes.float8_e5m2))
    np.savez(folder / "fn8.npz", x=HIDDEN.astype(ml_dtypes.float8_e4m3fn))
    (folder / "array.npz").write_bytes((folder / "docs.npy").read_bytes())
    (folder / "archive.npy").write_bytes((folder / "one.npz").read_bytes())
    with ZipFile(folder / "texts.npz", "w") as archive:
        archive.writestr("readme.txt", "no array")
    (folder / "plain").write_text("no ending")
    (folder / "inner").mkdir()
    for name, header in HEADERS.items():
        head = json.dumps(header).encode()
        (folder / f"{name}.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(8))
    return folder


def run_of(done, folder: Path) -> dict[str, dict[str, float]]:
    (folder / "made.trec").write_text(done.out)
    return tw.read_run(folder / "made.trec").to_dict()


def test_vectors_are_searched(tiewise, folder):
    done = tiewise("score", "vectors.npz", "--fn", "cosine", "-k", "4", "--query-ids", "names.txt")
    expected = scoring.search(
        QUERIES, DOCS, 4, fn="cosine", query_ids=["one", "two", "three"], doc_ids=[f"d{i:02d}" for i in range(20)]
    )
    assert run_of(done, folder) == expected.to_dict()
    end = "No list is cut inside a tie group: evaluate with --complete."
    assert " ".join(done.err.split()) == f"note: 0% of 12 rows are tied. {end}"
    assert end not in " ".join(tiewise("score", "one.npz").err.split())  # pairs may be some of more
    short = tiewise("score", "vectors.npz", "-k", "4")
    assert short.err.startswith(
        "note: The queries are numbered 0, 1, 2 ... Name them with --query-ids, or in an array query_ids.\n"
    )
    apart = tiewise("score", "queries.npy", "docs.npy", "-k", "4")
    assert "The queries and documents are numbered" in apart.err and "--query-ids and --doc-ids" in apart.err
    apart = tiewise("score", "queries.npy", "docs.npy", "-k", "4", "--quiet")
    assert run_of(apart, folder) == scoring.search(QUERIES, DOCS, 4).to_dict() and not apart.err


@pytest.mark.parametrize("precision", ["float32", "float64", "native"])
@pytest.mark.parametrize("level", ["head", "logit", "score"])
def test_every_level(tiewise, folder, level, precision):
    options = ("--level", level, "--precision", precision, "--array", "logits=raw")
    found = run_of(tiewise("score", "model.safetensors", *options), folder)
    if level == "head":
        wide = "native" if precision == "native" else "float64"  # the log-odds alone are rounded
        logits = scoring.head(HIDDEN, WEIGHT, BIAS, precision=wide)
    else:
        logits = read_tensors(folder / "model.safetensors")["raw"]
    compute = scoring.score if level == "score" else scoring.logit
    expected = compute(logits, fn="softmax", precision=precision).astype(np.float64)
    assert {doc: score for docs in found.values() for doc, score in docs.items()} == dict(
        zip(map(str, range(12)), expected.tolist(), strict=True)
    )
    assert {query: sorted(docs, key=int) for query, docs in found.items()} == {
        "7": ["0", "1", "2", "3"],
        "9": ["4", "5", "6", "7"],
        "11": ["8", "9", "10", "11"],
    }


def test_head_is_the_default_for_hidden_states(tiewise, folder):
    assert tiewise("score", "model.safetensors").out == tiewise("score", "model.safetensors", "--level", "head").out


def test_choice_of_vectors_or_logits(tiewise, folder):
    vectors = scoring.search(QUERIES, DOCS, 100, fn="dot").to_dict()
    for words in (("--fn", "dot"), ("--array", "queries=queries")):
        assert run_of(tiewise("score", "both.npz", *words), folder) == vectors
    logits = read_tensors(folder / "both.npz")["logits"]
    for words in (("--fn", "softmax"), ("--array", "logits=logits"), ("--level", "logit")):
        found = run_of(tiewise("score", "both.npz", *words), folder)
        compute = scoring.logit if "--level" in words else scoring.score
        assert {**found["7"], **found["9"], **found["11"]} == dict(
            zip(map(str, range(12)), compute(logits, fn="softmax").astype(float).tolist(), strict=True)
        )


def test_token_masks(tiewise, folder):
    arrays = read_tensors(folder / "tokens.npz")
    masks = {role: arrays[role] for role in ("query_mask", "doc_mask")}
    expected = scoring.search(arrays["queries"], arrays["docs"], 3, fn="maxsim", **masks).to_dict()
    assert expected != scoring.search(arrays["queries"], arrays["docs"], 3, fn="maxsim").to_dict()
    assert run_of(tiewise("score", "tokens.npz", "--fn", "maxsim", "-k", "3"), folder) == expected


def test_ids_of_pairs_from_files(tiewise, folder):
    (folder / "pairs.txt").write_text("a\nb\nc\nd\n")
    done = tiewise("score", "one.npz", "--query-ids", "pairs.txt")
    assert {query: list(docs) for query, docs in run_of(done, folder).items()} == {
        "a": ["a"],
        "b": ["b"],
        "c": ["a"],
        "d": ["b"],
    }
    assert done.err == "note: 0% of 4 rows are tied.\n"
    counted = tiewise("score", "both.npz", "--fn", "softmax")
    assert "The documents are numbered 0, 1, 2 ... Name them with --doc-ids, or in an array doc." in counted.err


def test_positive(tiewise, folder):
    options = ("model.safetensors", "--array", "logits=raw", "--level", "logit")
    first, second, usual = (run_of(tiewise("score", *options, *more), folder) for more in (P0, P1, ()))
    assert second == usual
    assert first == {query: {doc: -score for doc, score in docs.items()} for query, docs in second.items()}


P0, P1 = ("--positive", "0"), ("--positive", "1")


def test_audit_of_a_new_run(tiewise, folder):
    made = tiewise("score", "vectors.npz", "-k", "5")
    (folder / "run.trec").write_text(made.out)
    assert tiewise("audit", "run.trec", "--format", "json").json["tied_share"] == 0


def test_array_types_are_kept(folder):
    arrays = read_tensors(folder / "model.safetensors")
    assert arrays["hidden"].dtype == ml_dtypes.bfloat16 and (arrays["hidden"] == HIDDEN).all()
    assert read_tensors(folder / "small.safetensors")["x"].dtype == ml_dtypes.float8_e4m3fn
    np.savez(folder / "bf16.npz", x=HIDDEN)
    assert read_tensors(folder / "bf16.npz")["x"].dtype == ml_dtypes.bfloat16


def test_the_vectors_of_the_example(tiewise, tmp_path, monkeypatch):
    """Both files have an array 'made_with', which is not needed."""
    monkeypatch.chdir(tmp_path)
    tiewise("demo", "--write", "example")
    tiewise("score", "example/queries.npz", "example/docs.npz", "-o", "run.trec")
    arrays = np.load("example/queries.npz"), np.load("example/docs.npz")
    expected = scoring.search(
        arrays[0]["queries"], arrays[1]["docs"], 100, query_ids=arrays[0]["query_ids"], doc_ids=arrays[1]["doc_ids"]
    )
    assert tw.read_run("run.trec").to_dict() == expected.to_dict()
    words = ["example/queries.npz", "example/docs.npz", "--array", "query_ids=made_with"]
    assert "docs.npz: another file has an array 'made_with' too" in tiewise("score", *words, code=2).err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("missing.npz", "there is no such file"),
        ("names.txt", "'.txt' is not a format for arrays"),
        ("text.npz", "is not a complete .npz file"),
        ("cut.safetensors", "is not a complete .safetensors file"),
        ("queries.npy", "There is no array 'docs' (vectors of documents)"),
        ("vectors.npz docs.npy", "another file has an array 'docs' too"),
        ("vectors.npz --level head", "--level head is for logits and hidden states, not for vectors"),
        ("model.safetensors --level logit", "Give its name with --array logits=NAME"),
        ("model.safetensors --array weights=raw", "with one of the roles queries, docs"),
        ("model.safetensors --array logits=rwa", "There is no array 'rwa'"),
        ("model.safetensors --array logits=raw --level score --fn sigmoid", "use --fn softmax"),
        ("vectors.npz --fn sine", "'sine' is not one of"),
        ("vectors.npz --query-ids missing.txt", "there is no such file"),
        ("vectors.npz -k 0", "0 is not in the range x>=1"),
        ("nan.npz", "nan.npz: 'logits' holds NaN or infinity in row 1, counted from 0 (1 of 2 rows). Such a row has"),
        ("nan16.npz", "nan16.npz: 'docs' holds NaN or infinity in row"),
        (".", ".: is a folder. Give a file that ends in .npy"),
        ("inner", "inner: is a folder"),
        ("plain", "plain: the file name has no extension"),
        ("one.npz --fn cosine", "There is no array 'queries' (vectors of queries), which --fn cosine needs. The"),
        ("vectors.npz --fn softmax", "There is no array 'logits' (logits, a row for each pair of query and document)"),
        ("other.npz", "There is nothing to score: neither 'queries' and 'docs', nor 'logits'"),
        ("both.npz", "There are vectors ('queries', 'docs') and logits ('logits'). Choose: --fn dot"),
        ("both.npz --level score", "Choose: --fn dot"),
        ("vectors.npz --positive 1", "--positive 1 chooses a logit, but vectors have none"),
        ("one.npz --positive 1", "--positive 1 chooses among several logits, but there is one a row"),
        ("model.safetensors --positive 2", "--positive 2: the logits have 2 classes, counted from 0"),
        ("one.npz --top-k 5", "--top-k 5 is for vectors"),
        ("one.npz --query-ids names.txt", "names.txt: holds 3 lines for 4 pairs. Give one for each."),
        ("one.npz --doc-ids names.txt", "names.txt: holds 3 lines for 4 pairs"),
        ("vectors.npz --doc-ids names.txt", "names.txt: holds 3 lines for 20 documents"),
        ("vectors.npz --array query_ids=docs", "vectors.npz: 'docs' holds 160 ids for 3 queries"),
        ("one.npz --fn softmax", "Logits of shape (4,) have one class: use --fn sigmoid"),
        ("no-docs.npz", "There is nothing to rank: no-docs.npz: 'docs' has no rows."),
        ("no-pairs.npz", "There is nothing to rank: no-pairs.npz: 'logits' has no rows."),
        ("flat.npz", "flat.npz: 'query_mask' is a mask of tokens, for --fn maxsim; --fn dot has one vector a row"),
    ],
)
def test_errors_write_no_file(tiewise, folder, words, message):
    done = tiewise("score", *words.split(), "-o", "failed.trec", code=2)
    assert message in done.err and not done.out
    assert not (folder / "failed.trec").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fn8.npz", r"^fn8.npz: 'x' holds numbers of a type that NumPy did not save. Save them as safetensors"),
        ("fp8.npz", r"^fp8.npz: 'x' holds numbers of a type that NumPy did not save. Save them as safetensors"),
        ("objects.npz", r"^objects.npz: 'doc_ids' holds Python objects. They are not loaded.*dtype=str"),
        ("objects.npy", r"^objects.npy holds Python objects"),
        ("array.npz", r"^array.npz: is not a complete .npz file \(it is not a zip archive\)"),
        ("archive.npy", r"^archive.npy: is not a complete .npy file \(it does not start like one\)"),
        ("texts.npz", r"^texts.npz: 'readme.txt' is not an array"),
        ("unknown.safetensors", r"^unknown.safetensors: 'x' is of type F8_E8M0, which is not supported. Save it as"),
        ("list.safetensors", r"is not a complete .safetensors file \(invalid JSON in .*Save or download it again"),
        ("number.safetensors", r"invalid type: integer `7`"),
        ("nowhere.safetensors", r"missing field `data_offsets`"),
        ("text.safetensors", r'invalid type: string "2"'),
        ("kind.safetensors", r"invalid type: sequence"),
        ("short.safetensors", r"file not fully covered"),
    ],
)
def test_unreadable_arrays_are_named(folder, monkeypatch, name, message):
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match=message):
        dict(read_tensors(name))
