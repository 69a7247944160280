"""Tiny models with random weights, made from their configurations: nothing is downloaded, each takes milliseconds."""

from __future__ import annotations

import random

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
