"""High-precision scores of rerankers in plain transformers, at three levels from one forward pass.

    from tiewise.adapters.transformers import high_precision
    scores = high_precision(model, tokenizer).predict([(query, document), …])
    scores.head

`high_precision` takes a model for sequence classification (``…ForSequenceClassification``) or a causal language model
that answers yes or no (``…ForCausalLM``, by default with the prompt of Qwen3-Reranker). The model runs as it is, in
bfloat16 or float16, and is not changed, not even while it runs. `Scores` holds what it gives by itself (`native`) and
the levels of `tiewise.scoring`:

- `score`: the activation in float32, on the model's logits;
- `logit`: those logits, for which an activation only makes ties (the difference of the two for yes and no);
- `head`: logits computed again from the hidden state. This is what to rank by.

transformers itself is not imported here; the model brings it along.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

from tiewise import scoring
from tiewise.adapters.last_layer import LastLayer, check_precision, classifier_of, label_of, language_head_of
from tiewise.adapters.replicas import make_replica, uncompiled, without_autocast
from tiewise.errors import InputError, MissingExtraError, counted

__all__ = ["QWEN3_RERANKER", "Prompt", "Reranker", "Scores", "high_precision"]


@dataclass(frozen=True)
class Prompt:
    """How a yes/no model is asked: what stands before and after the question, and the question's form.

    `question` is filled with ``instruction``, ``query`` and ``document``. A pair that is too long is shortened in the
    question; what stands before and after it is kept. `yes` and `no` are single tokens of the tokenizer.

    >>> QWEN3_RERANKER.asked("who wrote Emma?", "Jane Austen did.", "Find the author.").splitlines()
    ['<Instruct>: Find the author.', '<Query>: who wrote Emma?', '<Document>: Jane Austen did.']
    """

    before: str
    after: str
    question: str
    instruction: str
    yes: str = "yes"
    no: str = "no"

    def asked(self, query: str, document: str, instruction: str | None = None) -> str:
        """The question for one pair."""
        return self.question.format(instruction=instruction or self.instruction, query=query, document=document)


#: The prompt that Qwen3-Reranker was trained with, as its model card gives it.
QWEN3_RERANKER = Prompt(
    before="<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n',
    after="<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    question="<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}",
    instruction="Given a web search query, retrieve relevant passages that answer the query",
)


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """The scores of some pairs at every level, (n,) each, as tensors on the model's device."""

    native: Any  #: what the model gives by itself, in its own precision
    score: Any  #: the activation in high precision
    logit: Any  #: the model's logits, or log-odds, in high precision
    head: Any  #: logits, or log-odds, computed again from the hidden state

    def at(self, level: str) -> Any:
        """The scores of a level, by its name."""
        return getattr(self, _known(level, ("native", *scoring.LEVELS)))

    def distinct(self) -> dict[str, int]:
        """How many different values each level has."""
        return {level: len(values.unique()) for level, values in self._levels()}

    def __len__(self) -> int:
        return len(self.native)

    def __repr__(self) -> str:
        shown = ", ".join(f"{level} {count:,}" for level, count in self.distinct().items())
        return f"<Scores of {counted(len(self), 'pair')}; distinct values: {shown}>"

    def _levels(self) -> list[tuple[str, Any]]:
        return [(one.name, getattr(self, one.name)) for one in fields(self)]

    def _map(self, change: Any) -> Scores:
        return Scores(**{level: change(level, values) for level, values in self._levels()})


def high_precision(
    model: Any,
    tokenizer: Any = None,
    *,
    precision: str = "float32",
    positive: int | str | None = None,
    prompt: Prompt = QWEN3_RERANKER,
    max_length: int | None = None,
) -> Reranker:
    """A `Reranker` around a model, which is used as it is and not changed.

    - `tokenizer`: needed to `predict` from texts, and to find the tokens of yes and no.
    - `precision`: of the scores, ``"float32"`` or ``"float64"``.
    - `positive`: the label that means relevant, its number or its name, for a classifier of three labels or more; of
      two it is the second.
    - `prompt`: how a yes/no model is asked. `max_length`: the longest input in tokens; by default the model's.
    """
    _torch()
    _check(model)
    name = type(uncompiled(model)).__name__
    check_precision(precision)
    if max_length is not None:
        _count(max_length, "max_length")
    if model.get_output_embeddings() is None:
        if prompt is not QWEN3_RERANKER:
            raise InputError(f"A prompt is for yes/no models; {name} is given the pair alone.")
        return _Classifier(model, tokenizer, precision, max_length, positive)
    if positive is not None:
        raise InputError(f"{name} answers yes or no, and has no labels. Name its words in a Prompt: yes=…, no=….")
    return _YesNo(model, tokenizer, precision, max_length, prompt)


def _check(model: Any) -> None:
    """Refuse what is no model of transformers that ranks, with the reason."""
    name, homes = type(model).__name__, {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    if "sentence_transformers" in homes:
        raise InputError(f"{name} is not a transformers model. Use tiewise.adapters.sentence_transformers for it.")
    if isinstance(model, str):
        raise InputError(f"{model!r} is a name. Load the model first: AutoModelFor….from_pretrained({model!r}).")
    if getattr(model, "config", None) is None or not hasattr(model, "base_model"):
        raise InputError(f"{name} is not a transformers model. Give a …ForSequenceClassification or a …ForCausalLM.")
    if getattr(model.config, "is_encoder_decoder", False) and model.get_output_embeddings() is not None:
        raise InputError(f"{name} decodes text. Supported are sequence classification and causal language models.")


class Reranker:
    """A model whose last step is computed in high precision; `high_precision` makes it.

    `score` takes a batch as the tokenizer makes it, `predict` pairs of texts.
    """

    def __init__(self, model: Any, tokenizer: Any, layer: LastLayer, precision: str, max_length: int | None):
        self.model, self.tokenizer, self.layer, self.precision = model, tokenizer, layer, precision
        self.max_length = max_length

    def __repr__(self) -> str:
        return f"<High-precision {self._name()}: {self.layer!r} in {self.precision}>"

    def explain(self) -> str:
        """What is computed in which precision here, and what the model does by itself."""
        compiled = ""
        if getattr(self.model, "_compiled_call_impl", None) is not None:
            compiled = " The model was compiled by model.compile() and runs uncompiled here; give torch.compile(model)."
        return (
            f"native is {self._words()} as {self._name()} computes it, in {self._own_type()}. score is "
            f"the same in {self.precision}, on the model's logits; logit is {self._ranked()} in {self.precision}, "
            f"without an activation; head is that of logits of {self.layer!r}, computed again in {self.precision}. "
            f"Rank by head.{compiled}"
        )

    def score(self, batch: Mapping[str, Any]) -> Scores:
        """The scores of a batch of inputs (``input_ids``, ``attention_mask`` …), from one forward pass."""
        torch = _torch()
        inputs = {name: value.to(self.model.device) for name, value in _batch(batch).items()}
        tap = self.layer.tap()
        model = make_replica(self.model, {self.layer.module: tap.replace})  # without dropout, and nobody else's
        with torch.inference_mode():
            output = model(**inputs, **self._options(inputs), return_dict=True)
            own, hidden = tap.read(output.logits)
            with without_autocast(own):
                return self._scores(own, self.layer.logits(hidden, self.precision))

    def predict(
        self, pairs: Iterable[tuple[str, str]], *, batch_size: int = 32, instruction: str | None = None
    ) -> Scores:
        """The scores of pairs ``(query, document)``, in their order."""
        if self.tokenizer is None:
            raise InputError("Texts need a tokenizer: high_precision(model, tokenizer).")
        _count(batch_size, "batch_size")
        pairs = _pairs(pairs)
        longest_first = sorted(range(len(pairs)), key=lambda at: -len(pairs[at][0]) - len(pairs[at][1]))
        parts = []
        for at in range(0, len(pairs), batch_size):
            some = [pairs[place] for place in longest_first[at : at + batch_size]]
            parts.append(self.score(self._tokenized(some, instruction)))
        torch = _torch()
        back = torch.empty(len(pairs), dtype=torch.long)
        back[torch.as_tensor(longest_first)] = torch.arange(len(pairs))
        return parts[0]._map(
            lambda level, values: torch.cat([part.at(level) for part in parts])[back.to(values.device)]
        )

    def _options(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def _limit(self) -> int | None:
        """The longest input; None where nobody says (tokenizers then name a number beyond reason)."""
        limit = self.max_length or getattr(self.tokenizer, "model_max_length", None)
        return None if limit is None or limit > 10**9 else int(limit)

    def _name(self) -> str:
        return type(uncompiled(self.model)).__name__

    def _own_type(self) -> str:
        return str(self.layer.module.weight.dtype).removeprefix("torch.")

    def _words(self) -> str:
        """The model's own score in words."""
        raise NotImplementedError

    def _ranked(self) -> str:
        """What stands in its place at the levels logit and head, in words."""
        raise NotImplementedError

    def _tokenized(self, pairs: Sequence[tuple[str, str]], instruction: str | None) -> Mapping[str, Any]:
        raise NotImplementedError

    def _scores(self, own: Any, again: Any) -> Scores:
        raise NotImplementedError


class _Classifier(Reranker):
    """A model for sequence classification: sigmoid of one logit, or softmax over two and more."""

    def __init__(self, model: Any, tokenizer: Any, precision: str, max_length: int | None, positive: int | str | None):
        super().__init__(model, tokenizer, classifier_of(model), precision, max_length)
        self.fn = "sigmoid" if model.config.num_labels == 1 else "softmax"
        self.positive = label_of(positive, model.config.num_labels, getattr(model.config, "id2label", None))

    def _words(self) -> str:
        return "the sigmoid of the logit" if self.fn == "sigmoid" else f"the softmax of label {self.positive}"

    def _ranked(self) -> str:
        return "the logit" if self.fn == "sigmoid" else f"the log-odds of label {self.positive}"

    def _tokenized(self, pairs: Sequence[tuple[str, str]], instruction: str | None) -> Mapping[str, Any]:
        if instruction is not None:
            raise InputError("An instruction is for yes/no models; a classifier is given the pair alone.")
        queries, documents = zip(*pairs, strict=True)
        limit = self._limit()
        found: Mapping[str, Any] = self.tokenizer(
            list(queries),
            list(documents),
            padding=True,
            truncation=limit is not None,
            max_length=limit,
            return_tensors="pt",
        )
        return found

    def _scores(self, own: Any, again: Any) -> Scores:
        how: dict[str, Any] = {"fn": self.fn, "positive": self.positive}
        native = own.sigmoid()[:, 0] if self.fn == "sigmoid" else own.softmax(-1)[:, self.positive]
        own, again = (own[:, 0], again[:, 0]) if self.fn == "sigmoid" else (own, again)
        return Scores(
            native=native,
            score=scoring.score(own, precision=self.precision, **how),
            logit=scoring.logit(own, precision=self.precision, **how),
            head=scoring.logit(again, precision=self.precision, **how),
        )


class _YesNo(Reranker):
    """A causal language model that is asked, and whose next token is read: softmax over no and yes."""

    def __init__(self, model: Any, tokenizer: Any, precision: str, max_length: int | None, prompt: Prompt):
        if tokenizer is None:
            raise InputError("A yes/no model needs its tokenizer: high_precision(model, tokenizer).")
        tokens = [_token(tokenizer, word) for word in (prompt.no, prompt.yes)]
        super().__init__(model, tokenizer, language_head_of(model, tokens), precision, max_length)
        self.prompt = prompt
        self._before, self._after = (
            tokenizer.encode(text, add_special_tokens=False) for text in (prompt.before, prompt.after)
        )

    def _words(self) -> str:
        return f"the softmax of {self.prompt.yes!r} against {self.prompt.no!r}"

    def _ranked(self) -> str:
        return "the difference of the two logits"

    def _options(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Logits of the last position alone, where the model can; its last token must not be padding."""
        mask = inputs.get("attention_mask")
        padded = [] if mask is None else (mask[:, -1] == 0).tolist()
        if any(padded):
            raise InputError(
                f"Row {padded.index(True)} of the batch ends in padding ({sum(padded)} of {len(padded)} rows), but "
                "the answer is read at the last position. Pad on the left: tokenizer.padding_side = 'left'."
            )
        taken = inspect.signature(uncompiled(self.model).forward).parameters
        return {"logits_to_keep": 1} if "logits_to_keep" in taken else {}

    def _tokenized(self, pairs: Sequence[tuple[str, str]], instruction: str | None) -> Mapping[str, Any]:
        asked = [self.prompt.asked(query, document, instruction) for query, document in pairs]
        limit = self._limit()
        room = None if limit is None else limit - len(self._before) - len(self._after)
        if room is not None and room < 1:
            raise InputError(f"The prompt alone takes {limit} tokens or more. Raise max_length.")
        parts = self.tokenizer(asked, add_special_tokens=False, truncation=room is not None, max_length=room)[
            "input_ids"
        ]
        whole = [[*self._before, *part, *self._after] for part in parts]
        found: Mapping[str, Any] = self.tokenizer.pad(
            {"input_ids": whole}, padding=True, padding_side="left", return_tensors="pt"
        )
        return found

    def _scores(self, own: Any, again: Any) -> Scores:
        how: dict[str, Any] = {"fn": "softmax", "positive": 1, "precision": self.precision}
        return Scores(
            native=own.log_softmax(-1)[:, 1].exp(),  # as the model card computes it
            score=scoring.score(own, **how),
            logit=scoring.logit(own, **how),
            head=scoring.logit(again, **how),
        )


def _pairs(given: Any) -> list[tuple[str, str]]:
    """Pairs of texts, out of anything that holds some."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InputError(f"Pairs come in a list, [(query, document), …], not as a {type(given).__name__}.")
    pairs = [_pair(one, at) for at, one in enumerate(given)]
    if not pairs:
        raise InputError("There is no pair to score.")
    return pairs


def _pair(given: Any, at: int) -> tuple[str, str]:
    if isinstance(given, str):
        raise InputError(f"Pair {at} is a text, {given[:40]!r}. Put each pair in brackets: [(query, document), …].")
    texts = tuple(given) if isinstance(given, Iterable) and not isinstance(given, (bytes, Mapping)) else None
    if texts is None or len(texts) != 2:
        what = f"a {type(given).__name__}" if texts is None else f"{len(texts)} long"
        raise InputError(f"Pair {at} is {what}. A pair is a query and a document: (query, document).")
    for text, name in zip(texts, ("query", "document"), strict=True):
        if not isinstance(text, str):
            raise InputError(f"The {name} of pair {at} is a {type(text).__name__}, not a text.")
    return texts[0], texts[1]


def _batch(given: Any) -> Mapping[str, Any]:
    """A batch as a tokenizer makes it, or an error that says how to make one."""
    made = "tokenizer(queries, documents, padding=True, truncation=True, return_tensors='pt')"
    if not isinstance(given, Mapping):
        raise InputError(f"A batch is what a tokenizer makes, not a {type(given).__name__}: {made}. Texts: predict.")
    odd = [name for name, value in given.items() if not hasattr(value, "to")]
    if odd or not given:
        what = f"{odd[0]!r} of the batch is a {type(given[odd[0]]).__name__}" if odd else "The batch is empty"
        raise InputError(f"{what}; it holds tensors: {made}.")
    ids = given.get("input_ids")
    if ids is not None and ids.ndim != 2:
        raise InputError(f"'input_ids' has shape {tuple(ids.shape)}. Give a row of tokens for each pair: {made}.")
    return given


def _count(given: Any, name: str) -> None:
    if isinstance(given, bool) or not isinstance(given, Integral) or given < 1:
        raise InputError(f"{name} is a whole number from 1 on, not {given!r}.")


def _token(tokenizer: Any, word: str) -> int:
    """The number of a word that is one token."""
    number = tokenizer.convert_tokens_to_ids(word)
    if number is None or number == getattr(tokenizer, "unk_token_id", None):
        raise InputError(f"The tokenizer has no token {word!r}. Give a Prompt with words that it has: yes=…, no=….")
    return int(number)


def _known(level: str, levels: Sequence[str]) -> str:
    if level not in levels:
        raise InputError(f"Unknown level {level!r}. Use one of: {', '.join(levels)}.")
    return level


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError("Scoring with transformers", "transformers") from None
    return torch
