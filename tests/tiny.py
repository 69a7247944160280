"""Tiny models with random weights, made from their configurations: nothing is downloaded, each takes milliseconds."""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

WORDS = "river delta bank stone water bridge boat fish mill flood sand reed otter heron lock weir".split()  # noqa: SIM905
SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}


def bert_tokenizer(folder):
    """A WordPiece tokenizer of a few words."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join([*special, *WORDS]) + "\n")
    return transformers.BertTokenizer(str(vocabulary), model_max_length=24)


def byte_tokenizer():
    """A tokenizer of bytes with the markers of a chat, and with yes and no as tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    merges = [("n", "o"), ("y", "e"), ("ye", "s")]
    for pair in merges:
        vocabulary["".join(pair)] = len(vocabulary)
    plain = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    marks = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
    plain.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in marks])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<|endoftext|>", eos_token="<|im_end|>", model_max_length=2048
    )


def bert(tokenizer, labels=1, dtype=torch.float32, kind="BertForSequenceClassification"):
    """A BERT with two layers, weights large enough for its scores to differ."""
    torch.manual_seed(1)
    config = transformers.BertConfig(
        **SHAPE, vocab_size=len(tokenizer), num_labels=labels, max_position_embeddings=64, initializer_range=0.5
    )
    return getattr(transformers, kind)(config).to(dtype).eval()


def qwen(tokenizer, dtype=torch.float32, tied=True):
    """A language model of Qwen3's shape with two layers."""
    torch.manual_seed(2)
    config = transformers.Qwen3Config(
        **SHAPE,
        num_key_value_heads=2,
        head_dim=8,
        vocab_size=len(tokenizer),
        max_position_embeddings=2048,
        initializer_range=0.3,
        tie_word_embeddings=tied,
        pad_token_id=tokenizer.pad_token_id,
    )
    return transformers.Qwen3ForCausalLM(config).to(dtype).eval()


def sentence(seed, length=4):
    """Some words in a random order."""
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def pairs(count, queries=1):
    """Pairs of different texts."""
    return [(sentence(f"q{i % queries}", 3), sentence(i, 3 + i % 7)) for i in range(count)]


def state(model):
    """All that a module tree holds, by identity: classes, attributes, hooks, children, and versions of parameters."""
    found = {}
    for path, module in model.named_modules(remove_duplicate=False):
        attributes = {"class": type(module), "forward": getattr(module.forward, "__func__", module.forward)}
        for name, value in vars(module).items():
            held = isinstance(value, dict)  # hooks, parameters, buffers and children
            plain = isinstance(value, bool | int | float | str | None)
            attributes[name] = [(key, id(one)) for key, one in value.items()] if held else value if plain else id(value)
        found[path] = attributes
    for path, parameter in model.named_parameters():
        found[f"parameter {path}"] = {"version": parameter._version, "data": parameter.data_ptr()}
    return found


class Pausing(torch.nn.Module):
    """A layer around another one that stops in the middle of a forward pass, or fails there, in one chosen thread."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.rules = []  # `state` looks at the list's identity alone, so that rules may come and go

    def forward(self, *args, **kwargs):
        for rule in self.rules:
            rule()
        return self.layer(*args, **kwargs)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("layer"), name)


@contextmanager
def halfway(pausing, work):
    """Runs `work` in another thread, enters when that thread is in the middle of a forward pass, then lets it finish.

    Gives a list that holds the result of the work afterwards.
    """
    there, go, results = threading.Event(), threading.Event(), []

    def rule():
        if threading.current_thread() is thread:
            there.set()
            assert go.wait(60)

    def run():
        try:
            results.append(work())
        except BaseException as error:  # told to the test
            results.append(error)
        finally:
            there.set()

    thread = threading.Thread(target=run)
    pausing.rules.append(rule)
    thread.start()
    try:
        assert there.wait(60)
        yield results
    finally:
        go.set()
        thread.join(60)
        pausing.rules.remove(rule)
    if results and isinstance(results[0], BaseException):
        raise results[0]


@contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextmanager
def matmul_precision(precision):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


#: What users set around a call, which must not change what is computed in high precision. Autocast is apart: a model's
#: forward pass follows it.
SETTINGS = {
    "default float64": lambda: default_dtype(torch.float64),
    "default bfloat16": lambda: default_dtype(torch.bfloat16),
    "inference_mode": torch.inference_mode,
    "no_grad": torch.no_grad,
    "deterministic": deterministic,
    "matmul_precision medium": lambda: matmul_precision("medium"),
}
AUTOCAST = {
    "autocast bfloat16": lambda: torch.autocast("cpu", torch.bfloat16),
    "autocast float16": lambda: torch.autocast("cpu", torch.float16),
}
