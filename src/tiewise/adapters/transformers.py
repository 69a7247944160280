"""High-precision scores of rerankers in plain transformers, at three levels from one forward pass.

    from tiewise.adapters.transformers import high_precision
    scores = high_precision(model, tokenizer).predict([(query, document), …])
    scores.head

`high_precision` takes a model for sequence classification (``…ForSequenceClassification``) or a causal language model
that answers yes or no (``…ForCausalLM``, by default with the prompt of Qwen3-Reranker). The model runs as it is, in
bfloat16 or float16, and is never changed, not even while it runs. `Scores` holds the model's own scores (`native`) and
the levels of `tiewise.scoring`:

- `score`: the activation in float32, on the model's logits;
- `logit`: those logits, without an activation, which only makes ties (for yes and no, the difference of the two);
- `head`: logits computed again from the hidden state. Rank by these.

This module does not import transformers.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from tiewise import scoring
from tiewise.adapters.last_layer import (
    LastLayer,
    find_classifier,
    find_language_head,
    labels_are_independent,
    resolve_label,
)
from tiewise.adapters.replicas import make_replica, unwrap_compiled, without_autocast
from tiewise.errors import InputError
from tiewise.results.optional import need
from tiewise.results.wording import count_noun
from tiewise.scoring.functions import exp_log_softmax
from tiewise.scoring.options import HIGH_PRECISIONS, check_choice, require_int
from tiewise.scoring.row_makers.logits import LEVELS

__all__ = ["QWEN3_RERANKER", "Prompt", "Reranker", "Scores", "high_precision"]


@dataclass(frozen=True)
class Prompt:
    """The prompt of a yes/no model: the form of the question, and the texts before and after it.

    `question` is filled with ``instruction``, ``query`` and ``document``. If a pair is too long, the question is
    shortened; the texts before and after it are kept. `yes` and `no` are single tokens of the tokenizer.

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

    native: Any  #: the model's own scores, in its own precision
    score: Any  #: the activation in high precision
    logit: Any  #: the model's logits, or log-odds, in high precision
    head: Any  #: logits, or log-odds, computed again from the hidden state
    logits: Any = None  #: the model's own logits, (n, labels), or of no and yes, (n, 2), if they are kept
    hidden: Any = None  #: the hidden states before the last layer, (n, width), if they are kept

    def at(self, level: str) -> Any:
        """The scores of a level, by its name."""
        check_choice(level, LEVELS, f"level {level!r}")
        return getattr(self, level)

    def distinct(self) -> dict[str, int]:
        """The number of different values of each level."""
        return {level: len(self.at(level).unique()) for level in LEVELS}

    def __len__(self) -> int:
        return len(self.native)

    def __repr__(self) -> str:
        distinct = ", ".join(f"{level} {count:,}" for level, count in self.distinct().items())
        return f"<Scores of {count_noun(len(self), 'pair')}; distinct values: {distinct}>"


def high_precision(
    model: Any,
    tokenizer: Any = None,
    *,
    precision: str = "float32",
    positive: int | str | None = None,
    fn: str | None = None,
    prompt: Prompt = QWEN3_RERANKER,
    max_length: int | None = None,
) -> Reranker:
    """A `Reranker` around a model, which is used as it is and not changed.

    - `tokenizer`: needed to `predict` from texts, and for the tokens of yes and no.
    - `precision`: of the scores, ``"float32"`` or ``"float64"``.
    - `positive`: the label that means relevant, by number or name, for a classifier with three labels or more; of two
      it is the second.
    - `fn`: ``"sigmoid"`` if the labels of a classifier are independent, ``"softmax"`` if they compete. By default
      softmax for two labels or more, unless its configuration says ``multi_label_classification``.
    - `prompt`: for a yes/no model. `max_length`: the longest input in tokens; by default the model's limit.
    """
    _torch()
    _check_model(model)
    name = _class_name(model)
    check_choice(precision, HIGH_PRECISIONS, f"precision {precision!r}")
    require_int(max_length, "max_length", optional=True)
    if model.get_output_embeddings() is None:
        if prompt is not QWEN3_RERANKER:
            raise InputError(f"A prompt is for yes/no models; {name} is given the pair alone.")
        return _Classifier(model, tokenizer, precision, max_length, positive, fn)
    if positive is not None or fn is not None:
        raise InputError(f"{name} answers yes or no, and has no labels. Name its words in a Prompt: yes=…, no=….")
    return _YesNo(model, tokenizer, precision, max_length, prompt)


def _check_model(model: Any) -> None:
    name, packages = type(model).__name__, {base.__module__.partition(".")[0] for base in type(model).__mro__}
    if "sentence_transformers" in packages:
        raise InputError(f"{name} is not a transformers model. Use tiewise.adapters.sentence_transformers for it.")
    if isinstance(model, str):
        raise InputError(f"{model!r} is a name. Load the model first: AutoModelFor….from_pretrained({model!r}).")
    if getattr(model, "config", None) is None or not hasattr(model, "base_model"):
        raise InputError(f"{name} is not a transformers model. Give a …ForSequenceClassification or a …ForCausalLM.")
    if getattr(model.config, "is_encoder_decoder", False) and model.get_output_embeddings() is not None:
        raise InputError(f"{name} decodes text. Supported are sequence classification and causal language models.")


class Reranker(ABC):
    """A model whose last step is computed in high precision; made by `high_precision`.

    `score` takes a batch from the tokenizer, `predict` pairs of texts.
    """

    fn: str  # the function of the logits
    positive: int  # the label that means relevant
    score_text: str  # the model's own score, in words
    logit_text: str  # the score of the levels logit and head, in words

    def __init__(self, model: Any, tokenizer: Any, layer: LastLayer, precision: str, max_length: int | None):
        self.model, self.tokenizer, self.layer, self.precision = model, tokenizer, layer, precision
        self.max_length = max_length

    def __repr__(self) -> str:
        return f"<High-precision {_class_name(self.model)}: {self.layer!r} in {self.precision}>"

    def explain(self) -> str:
        """A text that says what is computed in which precision."""
        compiled = ""
        if getattr(self.model, "_compiled_call_impl", None) is not None:
            compiled = " The model was compiled by model.compile() and runs uncompiled here; give torch.compile(model)."
        return (
            f"native is {self.score_text} as {_class_name(self.model)} computes it, in {self.layer.own_dtype}. score "
            f"is the same in {self.precision}, on the model's logits; logit is {self.logit_text} in {self.precision}, "
            f"without an activation; head is that of logits of {self.layer!r}, computed again in {self.precision}. "
            f"Rank by head.{compiled}"
        )

    def score(self, batch: Mapping[str, Any], *, keep: bool = False) -> Scores:
        """The scores of a batch of inputs (``input_ids``, ``attention_mask`` …), from one forward pass.

        `keep` keeps the logits and hidden states that they were computed from.
        """
        torch = _torch()
        inputs = {name: value.to(self.model.device) for name, value in _check_batch(batch).items()}
        recorder = self.layer.recorder()
        model = make_replica(self.model, {self.layer.module: recorder.replace})  # in evaluation mode
        with torch.inference_mode():
            options = {} if self.layer.rows is None else _last_position_options(self.model, self.tokenizer, inputs)
            output = model(**inputs, **options, return_dict=True)
            own, hidden = recorder.read(output.logits)
            precision = "float64" if self.fn == "softmax" else self.precision  # log-odds are rounded, not logits
            with without_autocast(own):
                scores = self._scores(own, self.layer.logits(hidden, precision))
            return replace(scores, logits=own, hidden=hidden) if keep else scores

    def predict(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        batch_size: int = 32,
        instruction: str | None = None,
        keep: bool = False,
    ) -> Scores:
        """The scores of pairs ``(query, document)``, in the order of the pairs; `keep` as for `score`."""
        if self.tokenizer is None:
            raise InputError("Texts need a tokenizer: high_precision(model, tokenizer).")
        require_int(batch_size, "batch_size")
        pairs = _check_pairs(pairs)
        longest_first = sorted(range(len(pairs)), key=lambda at: -len(pairs[at][0]) - len(pairs[at][1]))
        parts = []
        for start in range(0, len(pairs), batch_size):
            batch = [pairs[place] for place in longest_first[start : start + batch_size]]
            parts.append(self.score(self._tokenize(batch, instruction), keep=keep))
        torch = _torch()
        order = torch.argsort(torch.as_tensor(longest_first)).to(parts[0].native.device)  # back to that of the pairs
        kept = LEVELS if not keep else [field.name for field in fields(Scores)]
        return Scores(**{name: torch.cat([getattr(part, name) for part in parts])[order] for name in kept})

    def _limit(self) -> int | None:
        """The longest input; None if there is no limit (tokenizers then have a huge number)."""
        limit = self.max_length or getattr(self.tokenizer, "model_max_length", None)
        return None if limit is None or limit > 10**9 else int(limit)

    @abstractmethod
    def _tokenize(self, pairs: Sequence[tuple[str, str]], instruction: str | None) -> Mapping[str, Any]:
        """A batch of inputs from pairs of texts."""

    def _native(self, own: Any) -> Any:
        return own.sigmoid() if self.fn == "sigmoid" else own.softmax(-1)[:, self.positive]

    def _scores(self, own: Any, recomputed: Any) -> Scores:
        options: dict[str, Any] = {"fn": self.fn, "positive": self.positive, "precision": self.precision}
        if self.fn == "sigmoid":
            own, recomputed = own[:, self.positive], recomputed[:, self.positive]
        return Scores(
            native=self._native(own),
            score=scoring.score(own, **options),
            logit=scoring.logit(own, **options),
            head=scoring.logit(recomputed, **options),
        )


class _Classifier(Reranker):
    """A sequence classification model: sigmoid of one logit, or softmax over several."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        precision: str,
        max_length: int | None,
        positive: int | str | None,
        fn: str | None,
    ):
        super().__init__(model, tokenizer, find_classifier(model), precision, max_length)
        labels, config = int(model.config.num_labels), model.config
        self.positive = resolve_label(positive, labels, getattr(config, "id2label", None))
        self.fn = fn or ("sigmoid" if labels == 1 or labels_are_independent(config) else "softmax")
        if self.fn not in (("sigmoid", "softmax") if labels > 1 else ("sigmoid",)):
            several = "'sigmoid' or 'softmax'" if labels > 1 else "'sigmoid', because there is one label"
            raise InputError(f"fn is {several}, not {fn!r}.")
        of = "" if labels == 1 else f" of label {self.positive}"
        kind = "logit" if self.fn == "sigmoid" else "log-odds"
        self.logit_text = f"the {kind}{of}"
        self.score_text = f"the sigmoid of {self.logit_text}" if self.fn == "sigmoid" else f"the softmax{of}"

    def _tokenize(self, pairs: Sequence[tuple[str, str]], instruction: str | None) -> Mapping[str, Any]:
        if instruction is not None:
            raise InputError("An instruction is for yes/no models; a classifier is given the pair alone.")
        texts, limit = map(list, zip(*pairs, strict=True)), self._limit()
        options = {"truncation": limit is not None, "max_length": limit}
        return self.tokenizer(*texts, padding=True, return_tensors="pt", **options)


class _YesNo(Reranker):
    """A causal language model that answers a prompt with its next token: softmax over no and yes."""

    fn, positive, logit_text = "softmax", 1, "the difference of the two logits"

    def __init__(self, model: Any, tokenizer: Any, precision: str, max_length: int | None, prompt: Prompt):
        if tokenizer is None:
            raise InputError("A yes/no model needs its tokenizer: high_precision(model, tokenizer).")
        tokens = [_find_token(tokenizer, word) for word in (prompt.no, prompt.yes)]
        super().__init__(model, tokenizer, find_language_head(model, tokens), precision, max_length)
        self.prompt, self.score_text = prompt, f"the softmax of {prompt.yes!r} against {prompt.no!r}"
        self._before, self._after = (
            tokenizer.encode(text, add_special_tokens=False) for text in (prompt.before, prompt.after)
        )

    def _tokenize(self, pairs: Sequence[tuple[str, str]], instruction: str | None) -> Mapping[str, Any]:
        questions = [self.prompt.asked(query, document, instruction) for query, document in pairs]
        limit = self._limit()
        longest = None if limit is None else limit - len(self._before) - len(self._after)
        if longest is not None and longest < 1:
            raise InputError(f"The prompt alone takes {limit} tokens or more. Raise max_length.")
        tokens = self.tokenizer(
            questions, add_special_tokens=False, truncation=longest is not None, max_length=longest
        )["input_ids"]
        inputs = [[*self._before, *question, *self._after] for question in tokens]
        return self.tokenizer.pad({"input_ids": inputs}, padding=True, padding_side="left", return_tensors="pt")

    def _native(self, own: Any) -> Any:
        return exp_log_softmax(own)  # as the model card computes it


def _last_position_options(model: Any, tokenizer: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a language model that limit its logits to the last position, which must not be padding."""
    mask, ids, padding = inputs.get("attention_mask"), inputs.get("input_ids"), tokenizer.pad_token_id
    if mask is None and ids is not None and padding is not None:
        mask = ids != padding
    padded = [] if mask is None else (mask[:, -1] == 0).tolist()
    if any(padded):
        raise InputError(
            f"Row {padded.index(True)} of the batch ends in padding ({sum(padded)} of {len(padded)} rows), but "
            "the answer is read at the last position. Pad on the left: tokenizer.padding_side = 'left'."
        )
    parameters = inspect.signature(unwrap_compiled(model).forward).parameters
    return {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}


def _check_pairs(given: Any) -> list[tuple[str, str]]:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InputError(f"Pairs come in a list, [(query, document), …], not as a {type(given).__name__}.")
    pairs = [_check_pair(pair, number) for number, pair in enumerate(given)]
    if not pairs:
        raise InputError("There is no pair to score.")
    return pairs


def _check_pair(given: Any, number: int) -> tuple[str, str]:
    if isinstance(given, str):
        raise InputError(f"Pair {number} is a text, {given[:40]!r}. Put each pair in brackets: [(query, document), …].")
    texts = tuple(given) if isinstance(given, Iterable) and not isinstance(given, (bytes, Mapping)) else None
    if texts is None or len(texts) != 2:
        what = f"a {type(given).__name__}" if texts is None else f"{len(texts)} long"
        raise InputError(f"Pair {number} is {what}. A pair is a query and a document: (query, document).")
    for text, name in zip(texts, ("query", "document"), strict=True):
        if not isinstance(text, str):
            raise InputError(f"The {name} of pair {number} is a {type(text).__name__}, not a text.")
    return texts[0], texts[1]


def _check_batch(given: Any) -> Mapping[str, Any]:
    """A batch from a tokenizer, or an error that says how to make one."""
    example = "tokenizer(queries, documents, padding=True, truncation=True, return_tensors='pt')"
    if not isinstance(given, Mapping):
        raise InputError(f"A batch is what a tokenizer makes, not a {type(given).__name__}: {example}. Texts: predict.")
    odd = [name for name, value in given.items() if not hasattr(value, "to")]
    if odd or not given:
        what = f"{odd[0]!r} of the batch is a {type(given[odd[0]]).__name__}" if odd else "The batch is empty"
        raise InputError(f"{what}; it holds tensors: {example}.")
    ids = given.get("input_ids")
    if ids is not None and ids.ndim != 2:
        raise InputError(f"'input_ids' has shape {tuple(ids.shape)}. Give a row of tokens for each pair: {example}.")
    return given


def _find_token(tokenizer: Any, word: str) -> int:
    """The id of a word that is one token."""
    number = tokenizer.convert_tokens_to_ids(word)
    if number is None or number == getattr(tokenizer, "unk_token_id", None):
        raise InputError(f"The tokenizer has no token {word!r}. Give a Prompt with words that it has: yes=…, no=….")
    return int(number)


def _class_name(model: Any) -> str:
    return type(unwrap_compiled(model)).__name__


def _torch() -> Any:
    return need("torch", "Scoring with transformers", "transformers")
