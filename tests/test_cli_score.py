"""``tiewise score``: arrays in files become runs, at every level; and reading such files."""

from __future__ import annotations

import json
from pathlib import Path

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
    return folder


def run_of(done, folder: Path) -> dict[str, dict[str, float]]:
    (folder / "made.trec").write_text(done.out)
    return tw.read_run(folder / "made.trec").to_dict()


def test_vectors_become_the_run_of_search(tiewise, folder):
    done = tiewise("score", "vectors.npz", "--fn", "cosine", "-k", "4", "--query-ids", "names.txt")
    wanted = scoring.search(
        QUERIES, DOCS, 4, fn="cosine", query_ids=["one", "two", "three"], doc_ids=[f"d{i:02d}" for i in range(20)]
    )
    assert run_of(done, folder) == wanted.to_dict()
    assert done.err == "note: 0% of 12 rows are tied.\n"
    apart = tiewise("score", "queries.npy", "docs.npy", "-k", "4", "--quiet")
    assert run_of(apart, folder) == scoring.search(QUERIES, DOCS, 4).to_dict() and not apart.err


@pytest.mark.parametrize("precision", ["float32", "float64", "native"])
@pytest.mark.parametrize("level", ["head", "logit", "score"])
def test_every_level(tiewise, folder, level, precision):
    options = ("--level", level, "--precision", precision, "--array", "logits=raw")
    found = run_of(tiewise("score", "model.safetensors", *options), folder)
    if level == "head":
        logits = scoring.head(HIDDEN, WEIGHT, BIAS, precision=precision)
    else:
        logits = read_tensors(folder / "model.safetensors")["raw"]
    compute = scoring.score if level == "score" else scoring.logit
    wanted = compute(logits, fn="softmax", precision=precision).astype(np.float64)
    assert {doc: score for docs in found.values() for doc, score in docs.items()} == dict(
        zip(map(str, range(12)), wanted.tolist(), strict=True)
    )
    assert {query: sorted(docs, key=int) for query, docs in found.items()} == {
        "7": ["0", "1", "2", "3"],
        "9": ["4", "5", "6", "7"],
        "11": ["8", "9", "10", "11"],
    }


def test_hidden_states_are_scored_by_their_head_unless_told(tiewise, folder):
    assert tiewise("score", "model.safetensors").out == tiewise("score", "model.safetensors", "--level", "head").out


def test_a_run_can_be_audited_at_once(tiewise, folder):
    made = tiewise("score", "vectors.npz", "-k", "5")
    (folder / "run.trec").write_text(made.out)
    assert tiewise("audit", "run.trec", "--format", "json").json["tied_share"] == 0


def test_types_are_kept(folder):
    arrays = read_tensors(folder / "model.safetensors")
    assert arrays["hidden"].dtype == ml_dtypes.bfloat16 and (arrays["hidden"] == HIDDEN).all()
    assert read_tensors(folder / "small.safetensors")["x"].dtype == ml_dtypes.float8_e4m3fn
    np.savez(folder / "bf16.npz", x=HIDDEN)
    assert read_tensors(folder / "bf16.npz")["x"].dtype == ml_dtypes.bfloat16
    np.savez(folder / "fp8.npz", x=HIDDEN.astype(ml_dtypes.float8_e5m2))
    with pytest.raises(InputError, match=r"no whole|did not keep"):
        read_tensors(folder / "fp8.npz")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("missing.npz", "there is no such file"),
        ("names.txt", "'.txt' holds no arrays"),
        ("text.npz", "is no whole .npz file"),
        ("cut.safetensors", "is no whole .safetensors file"),
        ("queries.npy", "There is no array 'docs' (vectors of documents)"),
        ("vectors.npz docs.npy", "an array 'docs' was in another file already"),
        ("vectors.npz --level head", "Vectors have no level 'head'"),
        ("model.safetensors --level logit", "Say which it is: --array logits=NAME"),
        ("model.safetensors --array weights=raw", "with one of the roles queries, docs"),
        ("model.safetensors --array logits=rwa", "There is no array 'rwa'"),
        ("model.safetensors --array logits=raw --level score --fn sigmoid", "use --fn softmax"),
        ("vectors.npz --fn sine", "'sine' is not one of"),
        ("vectors.npz --query-ids missing.txt", "there is no such file"),
        ("vectors.npz -k 0", "0 is below 1"),
        ("nan.npz", "Row 1 of the logits holds NaN"),
    ],
)
def test_a_refusal_says_why_and_leaves_nothing_behind(tiewise, folder, words, said):
    done = tiewise("score", *words.split(), "-o", "refused.trec", code=2)
    assert said in done.err and not done.out
    assert not (folder / "refused.trec").exists()
