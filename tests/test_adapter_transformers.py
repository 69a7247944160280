"""The adapter of transformers, on tiny models of many architectures: what it reads and computes, and its errors."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

import torch
import transformers

import tiewise as tw
import tiny
from tiewise.adapters.transformers import QWEN3_RERANKER, Prompt, Scores, high_precision

LOW = [torch.bfloat16, torch.float16]
TYPES = [*LOW, torch.float32]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny.bert_tokenizer(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def byte_tokenizer():
    return tiny.byte_tokenizer()


def watched(module):
    """A list that fills with what a module is given, and the handle that ends it."""
    seen = []
    handle = module.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append((args, kwargs)), with_kwargs=True
    )
    return seen, handle


# -- sequence classification ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_classifier_at_all_levels(tokenizer, dtype):
    model = tiny.bert(tokenizer, dtype=dtype)
    pairs = tiny.pairs(200)
    queries, documents = zip(*pairs, strict=True)
    batch = tokenizer(list(queries), list(documents), padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = model(**batch).logits[:, 0]
    passes, one = watched(model.bert)
    given, two = watched(model.classifier)
    scores = high_precision(model, tokenizer).score(batch)
    one.remove()
    two.remove()
    assert len(passes) == 1
    (hidden,) = given[0][0]
    assert hidden.dtype == dtype

    assert torch.equal(scores.native, logits.sigmoid())
    assert scores.native.dtype == dtype
    wide = logits.double().numpy()
    assert np.allclose(scores.score, 1 / (1 + np.exp(-wide)), rtol=1e-6)
    assert torch.equal(scores.logit, logits.float())
    head = hidden.double().numpy() @ model.classifier.weight.detach().double().numpy()[0] + model.classifier.bias.item()
    assert np.allclose(scores.head, head, rtol=0, atol=1e-5)
    assert all(scores.at(level).dtype == torch.float32 for level in ("score", "logit", "head"))
    if dtype in LOW:
        distinct = scores.distinct()
        assert distinct["native"] < distinct["score"] <= distinct["logit"] < distinct["head"] == len(pairs)


def test_double_precision(tokenizer):
    model = tiny.bert(tokenizer, dtype=torch.bfloat16)
    batch = tokenizer([tiny.sentence(i) for i in range(20)], return_tensors="pt", padding=True)
    given, handle = watched(model.classifier)
    scores = high_precision(model, precision="float64").score(batch)
    handle.remove()
    weight = model.classifier.weight.detach().double()
    exact = (given[0][0][0].double() * weight[0]).sum(1) + model.classifier.bias.detach().double()
    assert scores.head.dtype == torch.float64
    assert torch.allclose(scores.head, exact, rtol=1e-13, atol=1e-13)


def test_predict_keeps_the_order_of_pairs(tokenizer):
    model = tiny.bert(tokenizer, dtype=torch.bfloat16)
    reranker = high_precision(model, tokenizer)
    pairs = tiny.pairs(23)
    scores = reranker.predict(pairs, batch_size=5)
    assert len(scores) == 23
    for pair, head in zip(pairs, scores.head.tolist(), strict=True):
        assert reranker.predict([pair]).head.item() == pytest.approx(
            head, abs=0.05
        )  # padding moves a bfloat16 model a bit
    assert "distinct values: native" in repr(scores)
    assert "classifier (32 → 1, bfloat16) in float32" in repr(reranker)


def test_logits_and_hidden_states_on_request(tokenizer, byte_tokenizer):
    for model, words in (
        (tiny.bert(tokenizer, dtype=torch.bfloat16), tokenizer),
        (tiny.qwen(byte_tokenizer, dtype=torch.bfloat16), byte_tokenizer),
    ):
        reranker, pairs = high_precision(model, words), tiny.pairs(11)
        plain, kept = (reranker.predict(pairs, batch_size=4, keep=keep) for keep in (False, True))
        assert plain.logits is plain.hidden is None
        for level in LEVELS:
            assert torch.equal(plain.at(level), kept.at(level))
        assert kept.logits.dtype == kept.hidden.dtype == torch.bfloat16
        again = tw.scoring.head(kept.hidden, reranker.layer.module.weight.detach(), precision="float64")
        columns = again if reranker.layer.rows is None else again[:, reranker.layer.rows]
        assert torch.allclose(columns, kept.logits.double(), rtol=2**-7, atol=2**-7)
        assert torch.equal(
            kept.logit, tw.scoring.logit(kept.logits, fn=reranker.fn, positive=reranker.positive).reshape(-1)
        )


def test_head_scores_do_not_tie(tokenizer):
    pairs = tiny.pairs(120)
    low = high_precision(tiny.bert(tokenizer, dtype=torch.bfloat16), tokenizer).predict(pairs)
    judged = {"q": {str(i): 1 for i in range(0, 120, 5)}}
    ranges = {}
    for level in LEVELS:
        run = {"q": {str(i): score for i, score in enumerate(low.at(level).tolist())}}
        ranges[level] = tw.evaluate(judged, run, "AP", complete=True)["AP"].range
    assert ranges["native"] > ranges["logit"] > ranges["head"] == 0


LEVELS = ("native", "score", "logit", "head")


@pytest.mark.parametrize("dtype", TYPES)
def test_softmax_over_labels(tokenizer, dtype):
    model = tiny.bert(tokenizer, labels=3, dtype=dtype)
    model.config.id2label = {0: "no", 1: "perhaps", 2: "yes"}
    batch = tokenizer([tiny.sentence(i) for i in range(40)], return_tensors="pt", padding=True)
    scores = high_precision(model, positive="yes").score(batch)
    with torch.no_grad():
        logits = model(**batch).logits
    assert torch.equal(scores.native, logits.softmax(-1)[:, 2])
    assert torch.allclose(scores.score, logits.double().softmax(-1)[:, 2].float(), rtol=1e-5)
    odds = logits.double()[:, 2] - logits.double()[:, :2].logsumexp(1)
    assert torch.allclose(scores.logit, odds.float(), rtol=1e-5, atol=1e-5)
    assert torch.equal(high_precision(model, positive=2).score(batch).head, scores.head)
    with pytest.raises(tw.InputError, match=r"the labels .*'perhaps'.*Say which one"):
        high_precision(model)
    with pytest.raises(tw.InputError, match=r"no label 'maybe'. Its labels: no, perhaps, yes"):
        high_precision(model, positive="maybe")


@pytest.mark.parametrize("dtype", TYPES)
def test_independent_labels(tokenizer, dtype):
    """A classifier for several labels at a time is ranked by one sigmoid, whatever the other labels."""
    model = tiny.bert(tokenizer, labels=3, dtype=dtype)
    model.config.problem_type = "multi_label_classification"
    batch = tokenizer([tiny.sentence(i) for i in range(40)], return_tensors="pt", padding=True)
    with torch.no_grad():
        logits = model(**batch).logits
    reranker = high_precision(model, positive=2)
    scores = reranker.score(batch)
    assert torch.equal(scores.native, logits[:, 2].sigmoid())
    assert torch.equal(scores.logit, logits[:, 2].float())
    assert torch.allclose(scores.head, scores.logit, rtol=0, atol=0.05)
    assert "the sigmoid of the logit of label 2" in reranker.explain()
    odds = logits.double()[:, 2] - logits.double()[:, :2].logsumexp(1)
    softmax = high_precision(model, positive=2, fn="softmax").score(batch)
    assert torch.allclose(softmax.logit, odds.float(), rtol=1e-5, atol=1e-5)
    model.config.problem_type = None
    assert torch.equal(high_precision(model, positive=2).score(batch).logit, softmax.logit)
    assert torch.equal(high_precision(model, positive=2, fn="sigmoid").score(batch).logit, scores.logit)
    with pytest.raises(tw.InputError, match="fn is 'sigmoid' or 'softmax', not 'tanh'"):
        high_precision(model, positive=2, fn="tanh")
    with pytest.raises(tw.InputError, match="fn is 'sigmoid', because there is one label, not 'softmax'"):
        high_precision(tiny.bert(tokenizer), fn="softmax")


def test_second_of_two_labels_is_relevant(tokenizer):
    model = tiny.bert(tokenizer, labels=2, dtype=torch.float16)
    batch = tokenizer([tiny.sentence(i) for i in range(10)], return_tensors="pt", padding=True)
    scores = high_precision(model).score(batch)
    with torch.no_grad():
        logits = model(**batch).logits.float()
    assert torch.equal(scores.logit, logits[:, 1] - logits[:, 0])


SMALL = tiny.SHAPE | {"vocab_size": 60, "num_labels": 2, "initializer_range": 0.4}
DECODER = SMALL | {"num_key_value_heads": 2, "pad_token_id": 0}
ARCHITECTURES = {
    "Bert": SMALL,
    "Roberta": SMALL | {"pad_token_id": 1},
    "XLMRoberta": SMALL | {"pad_token_id": 1},
    "Electra": SMALL | {"embedding_size": 32},
    "Albert": SMALL | {"embedding_size": 16},
    "DebertaV2": SMALL | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "MPNet": SMALL,
    "ModernBert": SMALL
    | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2},
    "DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37, "vocab_size": 60, "num_labels": 2},
    "XLNet": {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 37, "vocab_size": 60, "num_labels": 2},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 60, "num_labels": 2, "pad_token_id": 0},
    "Llama": DECODER,
    "Qwen2": DECODER,
    "Qwen3": DECODER | {"head_dim": 8},
    "Mistral": DECODER,
    "Gemma2": DECODER | {"head_dim": 8},
}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architectures(name):
    """Wherever the last layer is and whichever token it reads: native as the model computes it, head close to it."""
    torch.manual_seed(3)
    config = getattr(transformers, f"{name}Config")(**ARCHITECTURES[name])
    model = getattr(transformers, f"{name}ForSequenceClassification")(config).to(torch.bfloat16).eval()
    ids = torch.randint(3, 60, (16, 12))
    mask = torch.ones_like(ids)
    for row in range(0, 16, 2):  # padding on the right: decoders look for the last token
        ids[row, 8:], mask[row, 8:] = config.pad_token_id or 0, 0
    batch = {"input_ids": ids, "attention_mask": mask}
    with torch.no_grad():
        logits = model(**batch).logits
    before = {key: value.clone() for key, value in model.state_dict().items()}
    scores = high_precision(model).score(batch)
    assert torch.equal(scores.native, logits.softmax(-1)[:, 1])
    assert torch.equal(scores.logit, logits[:, 1].float() - logits[:, 0].float())
    size = logits.float().abs().max().item()
    assert torch.allclose(scores.head, scores.logit, rtol=0, atol=0.03 * size + 0.01)
    assert not torch.equal(scores.head, scores.logit)
    with torch.no_grad():
        assert torch.equal(model(**batch).logits, logits)  # nothing is left on the model
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


# -- yes and no ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
def test_yes_and_no_at_all_levels(byte_tokenizer, dtype, tied):
    model = tiny.qwen(byte_tokenizer, dtype, tied)
    pairs = tiny.pairs(40)
    reranker = high_precision(model, byte_tokenizer)
    passes, one = watched(model.model)
    given, two = watched(model.lm_head)
    scores = reranker.predict(pairs, batch_size=len(pairs))
    one.remove()
    two.remove()
    assert len(passes) == 1

    # As the model card of Qwen3-Reranker computes it, step by step.
    sorted_pairs = sorted(pairs, key=lambda pair: -len(pair[0]) - len(pair[1]))
    instruction = "Given a web search query, retrieve relevant passages that answer the query"
    system = (
        "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
        'Note that the answer can only be "yes" or "no".'
    )
    texts = [
        f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n<Instruct>: {instruction}\n<Query>: {query}\n"
        f"<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
        for query, document in sorted_pairs
    ]
    batch = byte_tokenizer(texts, padding=True, padding_side="left", return_tensors="pt")
    yes, no = byte_tokenizer.convert_tokens_to_ids("yes"), byte_tokenizer.convert_tokens_to_ids("no")
    with torch.no_grad():
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, -1]
    two_way = torch.stack([logits[:, no], logits[:, yes]], 1)
    order = [pairs.index(pair) for pair in sorted_pairs]
    assert torch.equal(passes[0][1]["input_ids"], batch["input_ids"])
    assert torch.equal(scores.native[order], torch.nn.functional.log_softmax(two_way, 1)[:, 1].exp())
    assert torch.equal(scores.logit[order], two_way[:, 1].float() - two_way[:, 0].float())
    assert torch.allclose(scores.score[order], two_way.double().softmax(1)[:, 1].float(), rtol=1e-5)

    hidden = given[0][0][0][:, -1].double()
    weight = model.get_output_embeddings().weight.detach().double()
    head = hidden @ weight[yes] - hidden @ weight[no]
    assert torch.allclose(scores.head[order], head.float(), rtol=0, atol=1e-4)
    if dtype == torch.bfloat16:
        distinct = scores.distinct()
        assert distinct["native"] < distinct["logit"] < distinct["head"] == len(pairs)


def language_model(name, tokenizer, dtype, **options):
    """A causal language model of an architecture."""
    torch.manual_seed(4)
    config = getattr(transformers, f"{name}Config")(
        **DECODER | {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, "head_dim": 8} | options
    )
    return getattr(transformers, f"{name.removesuffix('Text')}ForCausalLM")(config).to(dtype).eval()


GEMMA3N = {"laurel_rank": 4, "vocab_size_per_layer_input": 300, "hidden_size_per_layer_input": 4, "layer_types": None}
CAPPED = {
    "Gemma2": {},
    "VaultGemma": {},
    "Gemma3nText": GEMMA3N | {"num_kv_shared_layers": 0, "activation_sparsity_pattern": None},
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", CAPPED)
def test_capped_logits(byte_tokenizer, name, dtype):
    """The order of pairs is that of capped logits, computed in float64 from the model's hidden states."""
    model = language_model(name, byte_tokenizer, dtype, **CAPPED[name], final_logit_softcapping=2.0)
    pairs = tiny.pairs(60)
    given, handle = watched(model.lm_head)
    scores = high_precision(model, byte_tokenizer).predict(pairs, batch_size=len(pairs))
    handle.remove()
    order = sorted(range(len(pairs)), key=lambda at: -len(pairs[at][0]) - len(pairs[at][1]))
    yes, no = (byte_tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
    logits = given[0][0][0][:, -1].double() @ model.lm_head.weight.detach().double()[[no, yes]].T
    capped = 2 * torch.tanh(logits / 2)
    assert torch.allclose(scores.head[order].double(), capped[:, 1] - capped[:, 0], rtol=1e-6, atol=1e-9)
    uncapped = logits[:, 1] - logits[:, 0]
    assert not torch.equal(scores.head[order].argsort(), uncapped.argsort())


@pytest.mark.parametrize("dtype", TYPES)
def test_logits_that_the_model_widens(byte_tokenizer, dtype):
    """Mamba returns float32 logits, computed in its own type."""
    torch.manual_seed(5)
    shape = {"hidden_size": 32, "state_size": 4, "num_hidden_layers": 2, "vocab_size": len(byte_tokenizer)}
    config = transformers.MambaConfig(**shape, initializer_range=0.4, pad_token_id=byte_tokenizer.pad_token_id)
    model = transformers.MambaForCausalLM(config).to(dtype).eval()
    batch = byte_tokenizer(
        [tiny.sentence(i) for i in range(30)], padding=True, padding_side="left", return_tensors="pt"
    )
    given, handle = watched(model.lm_head)
    scores = high_precision(model, byte_tokenizer).score(batch)
    handle.remove()
    yes, no = (byte_tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
    weight = model.lm_head.weight.detach().double()
    exact = given[0][0][0][:, -1].double() @ weight[[no, yes]].T
    assert scores.native.dtype == torch.float32
    assert torch.allclose(scores.head.double(), exact[:, 1] - exact[:, 0], rtol=1e-6, atol=1e-12)


def test_difference_of_logits_is_rounded_once(byte_tokenizer):
    """Two logits of nearly the same size: rounded one by one, their differences tie."""
    model = tiny.qwen(byte_tokenizer, torch.bfloat16, tied=False)
    yes, no = (byte_tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
    with torch.no_grad():
        model.lm_head.weight[yes] = model.lm_head.weight[no]
        model.lm_head.weight[yes, 0] *= 1 + 2**-7
        model.lm_head.weight[[no, yes], 1] = 2.0**16
    given, handle = watched(model.lm_head)
    pairs = tiny.pairs(40)
    scores = high_precision(model, byte_tokenizer).predict(pairs, batch_size=len(pairs))
    handle.remove()
    order = sorted(range(len(pairs)), key=lambda at: -len(pairs[at][0]) - len(pairs[at][1]))
    hidden, weight = given[0][0][0][:, -1].double(), model.lm_head.weight.detach().double()
    exact = hidden[:, 0] * (weight[yes, 0] - weight[no, 0])
    assert torch.allclose(scores.head[order].double(), exact, rtol=1e-6, atol=1e-12)
    assert len(scores.head.unique()) == len(exact.unique())


def test_language_model_computes_logits_of_one_position(byte_tokenizer):
    model = tiny.qwen(byte_tokenizer)
    given, handle = watched(model.lm_head)
    high_precision(model, byte_tokenizer).predict(tiny.pairs(4))
    handle.remove()
    assert given[0][0][0].shape[:2] == (4, 1)


def test_long_document_is_truncated_inside_the_question(byte_tokenizer):
    model = tiny.qwen(byte_tokenizer)
    passes, handle = watched(model.model)
    reranker = high_precision(model, byte_tokenizer, max_length=420)
    reranker.predict([("river", "stone " * 1000), ("river", "stone")], instruction="Find stones.")
    handle.remove()
    ids = passes[0][1]["input_ids"]
    assert ids.shape == (2, 420)
    for row in byte_tokenizer.batch_decode(ids):
        assert row.endswith("<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")
        assert "<Instruct>: Find stones.\n<Query>: river\n<Document>: stone" in row
        assert QWEN3_RERANKER.before in row
    with pytest.raises(tw.InputError, match="The prompt alone takes 50 tokens"):
        high_precision(model, byte_tokenizer, max_length=50).predict([("a", "b")])


def test_tokenizer_is_not_changed(byte_tokenizer):
    byte_tokenizer.padding_side = "right"
    high_precision(tiny.qwen(byte_tokenizer), byte_tokenizer).predict(tiny.pairs(3))
    assert byte_tokenizer.padding_side == "right"


def test_another_prompt(byte_tokenizer):
    model = tiny.qwen(byte_tokenizer)
    prompt = Prompt(before="Q ", after=" A:", question="{query}? {document}", instruction="", yes="y", no="n")
    reranker = high_precision(model, byte_tokenizer, prompt=prompt)
    batch = byte_tokenizer(["Q river? delta A:"], return_tensors="pt")
    assert torch.equal(reranker.predict([("river", "delta")]).head, reranker.score(batch).head)
    assert reranker.layer.rows == [byte_tokenizer.convert_tokens_to_ids(word) for word in ("n", "y")]


# -- the model is left alone ------------------------------------------------------------------------------------------


def reranker_of(kind, tokenizer, byte_tokenizer, dtype=torch.bfloat16):
    """A model with a layer that can be paused, the layer, and a batch of inputs for it."""
    if kind == "classifier":
        model = tiny.bert(tokenizer, dtype=dtype)
        layers, words = model.bert.encoder.layer, tokenizer
    else:
        model = tiny.qwen(byte_tokenizer, dtype)
        layers, words = model.model.layers, byte_tokenizer
    layers[0] = pausing = tiny.Pausing(layers[0])
    batch = words([tiny.sentence(i) for i in range(40)], padding=True, padding_side="left", return_tensors="pt")
    return model.eval(), words, pausing, dict(batch)


KINDS = ["classifier", "yes and no"]


def scores_equal(found, wanted):
    return all(torch.equal(found.at(level), wanted.at(level)) for level in LEVELS)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_model_runs_beside_a_reranker_in_another_thread(tokenizer, byte_tokenizer, kind, training):
    model, words, pausing, batch = reranker_of(kind, tokenizer, byte_tokenizer)
    reranker, another = (high_precision(model, words, precision=precision) for precision in ("float32", "float64"))
    wanted, second = reranker.score(batch), another.score(batch)
    with torch.no_grad():
        own = model(**batch).logits
    model.train(training)
    before = tiny.state(model)
    with tiny.halfway(pausing, lambda: reranker.score(batch)) as found:
        assert tiny.state(model) == before  # during the forward pass of the reranker
        assert scores_equal(another.score(batch), second)
        if not training:
            with torch.no_grad():
                assert torch.equal(model(**batch).logits, own)
        assert tiny.state(model) == before
    assert scores_equal(found[0], wanted)
    assert tiny.state(model) == before
    assert all(module.training is training for module in model.modules())


@pytest.mark.parametrize("kind", KINDS)
def test_model_after_an_exception(tokenizer, byte_tokenizer, kind):
    model, words, pausing, batch = reranker_of(kind, tokenizer, byte_tokenizer)
    reranker = high_precision(model, words)
    wanted, before = reranker.score(batch), tiny.state(model)

    def fail():
        raise RuntimeError("out of memory")

    pausing.rules.append(fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        reranker.score(batch)
    pausing.rules.clear()
    assert tiny.state(model) == before
    assert scores_equal(reranker.score(batch), wanted)


@pytest.mark.parametrize("how", ["model.compile()", "backbone.compile()", "torch.compile(model)"])
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_model(tokenizer, byte_tokenizer, kind, how):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    torch.compiler.reset()
    model, words, _, batch = reranker_of(kind, tokenizer, byte_tokenizer)
    wanted = high_precision(model, words).score(batch)
    if how == "torch.compile(model)":
        model = torch.compile(model, backend=backend)
    else:
        (model if how == "model.compile()" else model.base_model).compile(backend=backend)
    reranker = high_precision(model, words)
    with torch.inference_mode():
        own = model(**batch).logits
    before = tiny.state(model)
    found = reranker.score(batch)
    assert tiny.state(model) == before
    for level in LEVELS:
        assert torch.allclose(found.at(level), wanted.at(level), rtol=0, atol=1e-2 if level == "native" else 1e-5)
    count = len(graphs)
    assert count > 0
    assert scores_equal(reranker.score(batch), found)
    with torch.inference_mode():
        assert torch.equal(model(**batch).logits, own)
    assert len(graphs) == count  # nothing is compiled again
    assert "OptimizedModule" not in repr(reranker) + reranker.explain()
    torch.compiler.reset()


def test_tokenizer_in_another_thread(byte_tokenizer):
    """Another thread may use it meanwhile."""
    seen = []

    class Watched(type(byte_tokenizer)):
        def __setattr__(self, name, value):
            seen.append(name)
            super().__setattr__(name, value)

    mine = tiny.byte_tokenizer()
    mine.__class__ = Watched
    high_precision(tiny.qwen(mine), mine).predict(tiny.pairs(3))
    assert "padding_side" not in seen


# -- settings around a call --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_settings_do_not_change_scores(tokenizer, byte_tokenizer, kind):
    model, words, _, batch = reranker_of(kind, tokenizer, byte_tokenizer)
    for precision in ("float32", "float64"):
        reranker = high_precision(model, words, precision=precision)
        wanted = reranker.score(batch)
        for setting, context in tiny.SETTINGS.items():
            with context():
                found = reranker.score(batch)
            assert scores_equal(found, wanted), setting
            assert found.native.dtype == torch.bfloat16
            assert {found.at(level).dtype for level in LEVELS[1:]} == {getattr(torch, precision)}


@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_under_autocast(tokenizer, byte_tokenizer, kind, low):
    """The forward pass follows autocast, the last step does not."""
    model, words, _, batch = reranker_of(kind, tokenizer, byte_tokenizer, torch.float32)
    layer = model.classifier if kind == "classifier" else model.lm_head
    plain = high_precision(model, words).score(batch)
    for precision, close in (("float32", 1e-5), ("float64", 1e-12)):
        reranker = high_precision(model, words, precision=precision)
        given, handle = watched(layer)
        with torch.autocast("cpu", low):
            found = reranker.score(batch)
        handle.remove()
        hidden, weight = given[0][0][0].double(), layer.weight.detach().double()
        if kind == "classifier":
            exact = hidden @ weight[0] + layer.bias.detach().double()
        else:
            yes, no = (byte_tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
            exact = hidden[:, -1] @ (weight[yes] - weight[no])
        size = exact.abs().max().item()
        assert found.native.dtype == low  # the model's own
        assert found.head.dtype == found.logit.dtype == getattr(torch, precision)
        assert torch.allclose(found.head.double(), exact, rtol=0, atol=close * max(size, 1))
        assert not torch.allclose(found.head.float(), plain.head, rtol=0, atol=1e-6)
        assert torch.allclose(found.score.double(), found.logit.double().sigmoid(), rtol=1e-5, atol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_scores_on_a_gpu_under_autocast_and_tf32(tokenizer):
    model = tiny.bert(tokenizer).cuda()
    batch = tokenizer([tiny.sentence(i) for i in range(40)], padding=True, return_tensors="pt")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    given, handle = watched(model.classifier)
    try:
        with torch.autocast("cuda", torch.bfloat16):
            found = high_precision(model, tokenizer).score(batch)
    finally:
        torch.set_float32_matmul_precision(before)
        handle.remove()
    hidden = given[0][0][0].double()
    exact = hidden @ model.classifier.weight.detach().double()[0] + model.classifier.bias.detach().double()
    assert torch.allclose(found.head.double(), exact, rtol=0, atol=1e-5 * max(1, exact.abs().max().item()))


# -- errors ----------------------------------------------------------------------------------------------------


def test_right_padding_is_an_error(byte_tokenizer):
    model = tiny.qwen(byte_tokenizer)
    batch = byte_tokenizer(["a", "abc", "b"], padding=True, padding_side="right", return_tensors="pt")
    with pytest.raises(
        tw.InputError, match=r"Row 0 of the batch ends in padding \(2 of 3 rows\).*padding_side = 'left'"
    ):
        high_precision(model, byte_tokenizer).score(batch)
    del batch["attention_mask"]
    with pytest.raises(tw.InputError, match=r"Row 0 of the batch ends in padding \(2 of 3 rows\)"):
        high_precision(model, byte_tokenizer).score(batch)


def test_errors(tokenizer, byte_tokenizer):
    with pytest.raises(tw.InputError, match="Linear is not a transformers model"):
        high_precision(torch.nn.Linear(2, 1))
    with pytest.raises(tw.InputError, match=r"'a-model' is a name\. Load the model first"):
        high_precision("a-model")
    with pytest.raises(tw.InputError, match="Use one of: float32, float64"):
        high_precision(tiny.bert(tokenizer), precision="bfloat16")
    with pytest.raises(tw.InputError, match="needs its tokenizer"):
        high_precision(tiny.qwen(byte_tokenizer))
    with pytest.raises(tw.InputError, match="no token 'no'"):
        high_precision(tiny.qwen(byte_tokenizer), tokenizer)
    with pytest.raises(tw.InputError, match="BertModel has no linear layer with 2 outputs behind its backbone"):
        high_precision(transformers.BertModel(transformers.BertConfig(**tiny.SHAPE, vocab_size=60)))
    with pytest.raises(tw.InputError, match="decodes text"):
        shape = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 60}
        heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
        high_precision(transformers.BartForConditionalGeneration(transformers.BartConfig(**shape, **heads)))
    reranker = high_precision(tiny.bert(tokenizer))
    with pytest.raises(tw.InputError, match="Texts need a tokenizer"):
        reranker.predict([("a", "b")])
    with pytest.raises(tw.InputError, match="An instruction is for yes/no models"):
        high_precision(tiny.bert(tokenizer), tokenizer).predict([("a", "b")], instruction="Find it.")
    with pytest.raises(tw.InputError, match="no pair"):
        high_precision(tiny.bert(tokenizer), tokenizer).predict([])


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (("river", "delta"), r"Pair 0 is a text, 'river'. Put each pair in brackets"),
        (["river", "delta"], r"Pair 0 is a text, 'river'"),
        ("ab", r"Pairs come in a list, \[\(query, document\), …\], not as a str"),
        ({"river": "delta"}, r"not as a dict"),
        (7, r"not as a int"),
        ([("river", "delta"), ("river",)], r"Pair 1 is 1 long. A pair is a query and a document"),
        ([("river", "delta", "bank")], r"Pair 0 is 3 long"),
        ([("river", None)], r"The document of pair 0 is a NoneType, not a text"),
        ([None], r"Pair 0 is a NoneType"),
        (iter(()), "There is no pair"),
    ],
)
def test_invalid_pairs(tokenizer, pairs, said):
    with pytest.raises(tw.InputError, match=said):
        high_precision(tiny.bert(tokenizer), tokenizer).predict(pairs)


def test_pairs_may_be_any_iterable(tokenizer):
    reranker = high_precision(tiny.bert(tokenizer), tokenizer)
    pairs = tiny.pairs(5)
    wanted = reranker.predict(pairs).head
    for given in (iter(pairs), tuple(pairs), [list(pair) for pair in pairs], np.array(pairs)):
        assert torch.equal(reranker.predict(given).head, wanted)


def test_invalid_batches(tokenizer):
    reranker = high_precision(tiny.bert(tokenizer), tokenizer)
    with pytest.raises(tw.InputError, match="A batch is what a tokenizer makes, not a str: tokenizer"):
        reranker.score("river")
    with pytest.raises(tw.InputError, match="'input_ids' of the batch is a list; it holds tensors"):
        reranker.score(tokenizer(["river"]))
    with pytest.raises(tw.InputError, match="The batch is empty"):
        reranker.score({})
    with pytest.raises(tw.InputError, match=r"'input_ids' has shape \(3,\)"):
        reranker.score({"input_ids": torch.tensor([1, 2, 3])})
    for size in (0, -1, 2.0, True):
        with pytest.raises(tw.InputError, match=f"batch_size must be an integer of at least 1, not {size}"):
            reranker.predict(tiny.pairs(3), batch_size=size)
    with pytest.raises(tw.InputError, match="max_length must be None or an integer of at least 1, not 0"):
        high_precision(tiny.bert(tokenizer), tokenizer, max_length=0)


def test_labels_and_prompts_need_a_model_that_has_them(tokenizer, byte_tokenizer):
    for positive in (7, -1, 1.0, True):
        with pytest.raises(tw.InputError, match=f"positive={positive} is not one of the model's labels: it has 2"):
            high_precision(tiny.bert(tokenizer, labels=2), tokenizer, positive=positive)
    with pytest.raises(tw.InputError, match="positive=1 is not one of the model's labels: it has one label, 0"):
        high_precision(tiny.bert(tokenizer), tokenizer, positive=1)
    with pytest.raises(tw.InputError, match="Qwen3ForCausalLM answers yes or no, and has no labels"):
        high_precision(tiny.qwen(byte_tokenizer), byte_tokenizer, positive=1)
    with pytest.raises(tw.InputError, match="A prompt is for yes/no models"):
        high_precision(tiny.bert(tokenizer), tokenizer, prompt=Prompt("", "", "{query} {document}", ""))


def test_explain(tokenizer, byte_tokenizer):
    said = high_precision(tiny.bert(tokenizer, dtype=torch.bfloat16), tokenizer).explain()
    assert "native is the sigmoid of the logit as BertForSequenceClassification computes it, in bfloat16." in said
    assert "head is that of logits of classifier (32 → 1, bfloat16), computed again in float32" in said
    two = high_precision(tiny.bert(tokenizer, labels=2), tokenizer, precision="float64").explain()
    assert "the softmax of label 1" in two and "logit is the log-odds of label 1 in float64" in two
    with torch.autocast("cpu", torch.bfloat16):
        cast = high_precision(tiny.bert(tokenizer), tokenizer).explain()
    assert "as BertForSequenceClassification computes it, in bfloat16." in cast
    assert "classifier (32 → 1, float32 in bfloat16 by autocast)" in cast
    asked = high_precision(tiny.qwen(byte_tokenizer), byte_tokenizer).explain()
    assert "the softmax of 'yes' against 'no'" in asked and "the difference of the two logits" in asked


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(tw.MissingExtraError, match=r"pip install 'tiewise\[transformers\]'"):
        high_precision(None)


def test_model_that_changes_its_logits_is_an_error(tokenizer, byte_tokenizer):
    class Scaled(transformers.BertForSequenceClassification):
        def forward(self, *args, **kwargs):
            output = super().forward(*args, **kwargs)
            output.logits = output.logits * 2
            return output

    model = Scaled(tiny.bert(tokenizer).config).eval()
    batch = tokenizer(["river", "delta", "bank"], return_tensors="pt", padding=True)
    with pytest.raises(tw.InputError, match="changes what its last layer 'classifier' computes"):
        high_precision(model).score(batch)

    scaled = language_model("Granite", byte_tokenizer, torch.bfloat16, logits_scaling=1.01)
    with pytest.raises(tw.InputError, match=r"'lm_head' computes. Or rank on the model's own logits"):
        high_precision(scaled, byte_tokenizer).predict([("river", "delta")])


def test_weights_must_be_a_matrix(tokenizer):
    model = tiny.bert(tokenizer)
    with torch.device("meta"):
        model.classifier = torch.nn.Linear(32, 1)
    with pytest.raises(tw.InputError, match="'classifier' holds weights of type float32 on meta"):
        high_precision(model)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_quantised_last_layer(tokenizer, byte_tokenizer):
    for model, given in ((tiny.bert(tokenizer), ()), (tiny.qwen(byte_tokenizer, tied=False), (byte_tokenizer,))):
        quantised = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
        with pytest.raises(tw.InputError, match=r"holds weights of type qint8 on cpu.*without quantising"):
            high_precision(quantised, *given)
    model = tiny.bert(tokenizer)
    model.bert = torch.ao.quantization.quantize_dynamic(model.bert, {torch.nn.Linear}, dtype=torch.qint8)
    batch = tokenizer([tiny.sentence(i) for i in range(9)], return_tensors="pt", padding=True)
    scores = high_precision(model).score(batch)
    assert torch.allclose(scores.head, scores.logit, rtol=1e-5, atol=1e-5)


def test_nan_is_an_error(tokenizer):
    model = tiny.bert(tokenizer)
    batch = tokenizer(["river", "delta"], return_tensors="pt", padding=True)
    with torch.no_grad():
        model.classifier.bias.fill_(float("nan"))
    with pytest.raises(tw.InputError, match=r"Row 0 of the (logits|biases) holds NaN"):
        high_precision(model).score(batch)


def test_model_in_training_mode(tokenizer):
    model = tiny.bert(tokenizer)
    batch = tokenizer(["river", "delta"], return_tensors="pt", padding=True)
    whole = high_precision(model).score(batch)
    model.train()
    assert torch.equal(high_precision(model).score(batch).head, whole.head)
    assert model.training
    assert model.bert.training


def test_levels_by_name():
    scores = Scores(*(torch.tensor([float(i)]) for i in range(4)))
    assert [scores.at(level).item() for level in LEVELS] == [0, 1, 2, 3]
    with pytest.raises(tw.InputError, match=r"Unknown level 'heads'. Use one of: native, score, logit, head"):
        scores.at("heads")
