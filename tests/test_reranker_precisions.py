"""The last step of a reranker in several ways: every row against a plain computation, and the command."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tiewise as tw
from tiewise.errors import InputError, TiewiseError

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

    def plain(self, row):
        """The scores of a row, computed without the code under test."""
        z = self.exact if row == "head" else self.logits
        wide = z.astype(np.float64)
        odds = wide[:, 0] if wide.shape[1] == 1 else wide[:, 1] - wide[:, 0]
        if row in ("head", "logit"):
            return odds.astype(np.float32)
        return (1 / (1 + np.exp(-odds))).astype(np.float32 if row == "score" else np.float16)

    def run(self, scores):
        found = {}
        for query, doc, value in zip(self.query, self.doc, scores, strict=True):
            found.setdefault(str(query), {})[str(doc)] = float(value)
        return found

    def precisions(self, **options):
        layer = {"hidden": self.hidden, "weight": self.weight, "bias": self.bias}
        given = {"logits": self.logits, **layer, "resamples": 200, **options}
        return tw.reranker_precisions(self.query, self.doc, self.qrels, **given)


@pytest.fixture(scope="module", params=[1, 2], ids=["sigmoid", "softmax"])
def pairs(request):
    return Pairs(request.param)


def test_every_row_is_what_a_plain_computation_gives(pairs):
    found = pairs.precisions()
    assert [row.setup for row in found.rows] == ["head", "logit", "score", "native"]
    for row in found.rows:
        run = pairs.run(pairs.plain(row.setup))
        truth = tw.evaluate(pairs.qrels, run, "nDCG@10", complete=True)["nDCG@10"]
        for field in ("expected", "minimum", "maximum", "std"):
            assert getattr(row.estimate, field) == pytest.approx(getattr(truth, field), abs=1e-9), (row.setup, field)
        assert row.tied_share == tw.Run.from_dict(run).tied_share
    assert found.row("head").tied_share < found.row("logit").tied_share < found.row("native").tied_share


def test_head_rounds_the_difference_of_logits_once(tiewise, tmp_path):
    """Two large logits: rounded to float32 one by one, their differences tie."""
    hidden = np.float32([[1, 1.0], [1, 1.125], [1, 1.25]])
    weight = np.float32([[2**24, 0], [2**24, 1]])
    layer = {"hidden": hidden, "weight": weight}
    qrels = {"q": {"b": 1}}
    found = tw.reranker_precisions(["q"] * 3, ["a", "b", "c"], qrels, **layer, rows=["head"], measures="RR")
    assert (found.rows[0].expected, found.rows[0].tied_share) == (0.5, 0)
    np.savez(tmp_path / "model.npz", query=["q"] * 3, doc=["a", "b", "c"], **layer)
    tiewise("score", str(tmp_path / "model.npz"), "-o", str(tmp_path / "run.trec"))
    assert tw.read_run(tmp_path / "run.trec").to_dict() == {"q": {"a": 1.0, "b": 1.125, "c": 1.25}}


def test_the_paired_difference_and_similarity_to_the_reference(pairs):
    found = pairs.precisions(reference=pairs.exact)
    assert found.reference == "float32" and found.rows[0].expected == pairs.precisions().row("head").expected
    own, first = (found.row(name).estimates[found.measure].expected for name in ("native", "float32"))
    difference = found.difference("native")
    assert difference.mean == pytest.approx(np.mean(own - first))
    assert difference.losing == np.mean(own - first < -0.1) and difference.differs == np.sum(
        np.abs(own - first) > 1e-12
    )
    assert difference.lower <= difference.mean <= difference.upper
    runs = {"a": pairs.run(pairs.plain("native")), "b": pairs.run(pairs.plain("head"))}
    rbo = tw.similarity(runs, "RBO(phi=0.9)", edge="extend").pair("a", "b")
    assert found.row("native").rbo.extrapolated.expected == pytest.approx(rbo.extrapolated.expected, abs=1e-12)


def test_what_to_choose(pairs):
    found = pairs.precisions(reference=pairs.exact, max_loss=0.12)
    assert found.verdict("head") == "keeps" and found.choice.setup == "head"
    assert found.sentence.startswith("Choose head: logits computed again in float32 from the last hidden state. ")
    without = pairs.precisions(hidden=None, weight=None, bias=None, rows=["native", "logit"], max_loss=1e-6)
    assert [row.setup for row in without.rows] == ["logit", "native"]
    assert without.choice.setup == "logit" and without.sentence.startswith("Choose logit: ")
    unsure = pairs.precisions(reference=pairs.exact, rows=["native"], max_loss=1e-6)
    assert unsure.choice is None and unsure.sentence.startswith(
        ("40 queries cannot show a loss below 1e-06", "Stay with float32")
    )


def test_logits_from_hidden_states_alone(pairs):
    found = pairs.precisions(logits=None)
    assert found.row("native").expected == pytest.approx(pairs.precisions().row("native").expected, abs=1e-9)


def test_only_judged_queries_count(pairs):
    some = {query: pairs.qrels[query] for query in list(pairs.qrels)[:10]}
    found = tw.reranker_precisions(pairs.query, pairs.doc, some, logits=pairs.logits, resamples=100)
    scores = pairs.run(pairs.plain("logit"))
    assert found.rows[0].tied_share == tw.Run.from_dict({query: scores[query] for query in some}).tied_share


def test_without_judgments_the_reference_is_right(pairs):
    found = tw.reranker_precisions(pairs.query, pairs.doc, logits=pairs.logits, measures="P@3", resamples=100)
    assert found.rows[0].expected == 1 > found.row("native").expected
    assert found.notes == (
        "There are no judgments: the first documents of the logit ranking are taken for relevant. "
        "So the values show agreement with that ranking, not quality.",
    )


def test_tensors_give_the_same(pairs):
    torch = pytest.importorskip("torch")
    given = {name: torch.from_numpy(getattr(pairs, name)) for name in ("logits", "hidden", "weight", "bias")}
    found, truth = pairs.precisions(**given), pairs.precisions()
    assert [row.expected for row in found.rows] == [row.expected for row in truth.rows]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"logits": None, "hidden": None, "weight": None, "bias": None}, "There is nothing to score"),
        ({"hidden": None, "weight": None}, "There is a bias without hidden and weight"),
        ({"measures": "NumRelRet"}, "NumRelRet is not a mean over queries"),
        ({"measures": "GMAP"}, "GMAP is not a mean over queries"),
        ({"weight": None}, "Give both, or neither"),
        ({"rows": ["nativ"]}, "Unknown row 'nativ'. Use some of: head, logit, score, native"),
        ({"rows": []}, "No row was given"),
        ({"hidden": None, "weight": None, "bias": None, "rows": "head"}, "needs hidden states"),
        ({"logits": np.ones((480, 1, 1))}, "have shape"),
        ({"logits": np.ones((480, 5))}, "and those of the last layer"),
        ({"reference": np.ones(3)}, "reference has shape .3,., and the logits .480, 2."),
        ({"reference": np.ones((480, 2), np.float16)}, "reference has the type float16"),
        ({"max_loss": 1.5}, "max_loss lies between 0 and 1"),
        ({"positive": 7}, "positive must be the index of a class"),
    ],
)
def test_invalid_options(options, message):
    with pytest.raises(TiewiseError, match=message):
        Pairs(2).precisions(**options)


@pytest.mark.parametrize("logits", [np.float16([1.0, 2.0]), np.float16([[1.0], [2.0]])])
def test_positive_with_one_logit_is_an_error(logits):
    for positive in (0, 1):
        with pytest.raises(InputError, match=f"is {positive}: it chooses among several logits, but there is one a pai"):
            tw.reranker_precisions(["q", "q"], ["a", "b"], logits=logits, positive=positive)


def test_invalid_ids():
    one = {"logits": np.float16([1.0, 2.0])}
    with pytest.raises(InputError, match="1 queries and 2 documents"):
        tw.reranker_precisions(["q"], ["a", "b"], **one)
    with pytest.raises(InputError, match="as a list of ids"):
        tw.reranker_precisions("qq", ["a", "b"], **one)
    with pytest.raises(InputError, match="of the pairs 'q', of the qrels 'r'"):
        tw.reranker_precisions(["q", "q"], ["a", "b"], {"r": {"a": 1}}, **one)


def test_the_command(tiewise, pairs, folder):
    names = ("query", "doc", "logits", "hidden", "weight", "bias")
    np.savez(folder / "pairs.npz", **{name: getattr(pairs, name) for name in names}, model=pairs.exact)
    lines = [f"{query} 0 {doc} {label}\n" for query, some in pairs.qrels.items() for doc, label in some.items()]
    (folder / "q.txt").write_text("".join(lines))
    command = ("reranker", "q.txt", "pairs.npz", "--array", "reference=model", "--max-loss", "0.12")
    document = json.loads(tiewise(*command, "--format", "json").out)
    found = pairs.precisions(reference=pairs.exact, max_loss=0.12, resamples=10_000)
    assert document["choice"] == "head" and document["rows"] == found.to_dict()["rows"]
    assert "bytes" not in document["rows"][0] and "rbr" not in document["rows"][0]
    table = tiewise(*command, "--format", "table").out
    assert "head*" in table and "Choose head" in table
    assert "There is no array 'doc'" in tiewise("reranker", "q.txt", "other.npz", code=2).err
    one = tiewise("reranker", "q.txt", "one.npz", "--positive", "1", code=2)
    assert "positive (--positive) is 1: it chooses among several logits, but there is one a pair." in one.err
    bad = tiewise(*command, "--array", "logits=nothing", "-o", "out.json", code=2)
    assert "There is no array 'nothing'" in bad.err and not (folder / "out.json").exists()


@pytest.fixture
def folder(tmp_path):
    np.savez(tmp_path / "other.npz", logits=np.ones(2), query=np.array(["q", "q"]))
    np.savez(tmp_path / "one.npz", logits=np.ones(2), query=np.array(["q", "q"]), doc=np.array(["a", "b"]))
    return tmp_path
