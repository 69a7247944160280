"""Answers of a language model to "is this document relevant?": log-odds from the log-probabilities of the answer.

The responses are those of OpenAI's chat and completion interfaces, which vLLM, SGLang and others share, and of TGI,
Ollama, llama.cpp and Gemini. The answer is the first token that is not blank: yes or no, or true or false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf, log
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

#: The words of an answer; the first one of each pair means relevant.
PAIRS = (("yes", "no"), ("true", "false"))
LLAMA_CPP = "completion_probabilities"
AROUND = " \t\n\r\"'*▁Ġ."  # a token may have them around its word
EXPECTED = 'logprobs must be {"yes": number, "no": number}, or a list of tokens.'


#: Tokens that were forbidden have a logprob that is none.
LOWEST = -1000.0


class BoundedLogOdds(float):
    """Log-odds of which only a bound is known, since one of the two words is not among the likely tokens."""


class UnlikelyLogOdds(float):
    """Log-odds of two words of which neither is the likeliest token: the answer begins with something else."""


class Answer(NamedTuple):
    """A generated token, None if it is not known, and the log-probabilities of all tokens in its place."""

    token: str | None
    logprobs: Any


def is_generation(value: Any) -> bool:
    """Whether a value is the response of a language model."""
    if not isinstance(value, Mapping) or ("index" in value and LLAMA_CPP not in value):  # which numbers its answers
        return False
    return any(name in value for name in GENERATIONS)


def find_answers(response: Mapping[str, Any]) -> dict[int, Answer]:
    """The answers of a response, by the number of their prompt: a completion may have several prompts.

    >>> top = [{"token": "Yes", "logprob": -0.5}, {"token": "No", "logprob": -1.5}]
    >>> content = [{"token": "Yes", "logprob": -0.5, "top_logprobs": top}]
    >>> answer = find_answers({"choices": [{"index": 0, "message": {}, "logprobs": {"content": content}}]})[0]
    >>> log_odds(answer.logprobs, answer.token)
    1.0
    """
    name = next(name for name in GENERATIONS if name in response)
    try:
        return GENERATIONS[name](response[name])
    except (KeyError, TypeError, IndexError, AttributeError, StopIteration):
        raise ValueError(
            "the response has no logprobs of its first token. Ask for them: logprobs=True, top_logprobs=20."
        ) from None


def log_odds(logprobs: Any, token: str | None = None, *, is_top: bool = False) -> float:
    """log P(yes) - log P(no), or those of true and false; spellings of a word add up. `token` was generated.

    If these are the likeliest tokens (`is_top`), and the likeliest is one of the two words, the other word is at most
    as likely as the last token: the result is a bound.

    >>> log_odds({"Yes": -0.25, "Yeah": -2.0, "Sure": -5.0}, is_top=True)
    4.75
    """
    found = {word: -inf for pair in PAIRS for word in pair}
    tokens = [*_read_tokens(logprobs)]
    for text, value in tokens:
        word = _word(text)
        if word in found:
            found[word] = float(np.logaddexp(found[word], value))
    pairs = [pair for pair in PAIRS if found[pair[0]] > -inf and found[pair[1]] > -inf]
    if len(pairs) > 1:
        pairs = [pair for pair in pairs if token is not None and _word(token) in pair]
        if not pairs:
            raise ValueError("the logprobs have both yes and no, and true and false. Keep those of the answer.")
    if not pairs:
        begun = next((pair for pair in PAIRS if max(found[pair[0]], found[pair[1]]) > -inf), PAIRS[0])
        listed = [value for _, value in tokens if value > LOWEST]
        if is_top and len(listed) > 1 and _word(max(tokens, key=itemgetter(1))[0]) in begun:
            yes, no = (max(found[word], min(listed)) for word in begun)
            return BoundedLogOdds(yes - no)
        if is_top and not any(found[word] > -inf for word in begun):
            shown = ", ".join(repr(text) for text, _ in tokens[:3])
            raise ValueError(
                f"the logprobs have neither yes nor no, but {shown}. Let the model answer yes or no; of other words, "
                'give {"index": …, "logprobs": {"yes": …, "no": …}}.'
            )
        missing = next(word for word in begun if found[word] == -inf)
        raise ValueError(
            f"the logprobs have no '{missing}'. Ask for more of them (top_logprobs), or restrict the answer to "
            f"{begun[0]} and {begun[1]}."
        )
    (positive, negative), *_ = pairs
    odds = found[positive] - found[negative]
    is_answer = not is_top or _word(max(tokens, key=itemgetter(1))[0]) in (positive, negative)
    return odds if is_answer else UnlikelyLogOdds(odds)


def _word(token: str) -> str:
    return token.strip(AROUND).lower()


def _read_tokens(logprobs: Any) -> Iterator[tuple[str, float]]:
    """Tokens with their log-probabilities, from ``{token: logprob}`` or ``[{"token": …, "logprob": …}, …]``."""
    try:
        pairs = (
            logprobs.items() if isinstance(logprobs, Mapping) else [(one["token"], one["logprob"]) for one in logprobs]
        )
        yield from [(str(token), read_number(value)) for token, value in pairs]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError(EXPECTED) from None


def read_number(value: Any) -> float:
    """A number; anything else is a TypeError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _first(tokens: list[Any], name: str = "token") -> int:
    """The place of the first token that is not blank."""
    texts = [one if isinstance(one, str) else one[name] for one in tokens]
    return next(place for place, text in enumerate([*texts, "x"]) if text.strip(AROUND))


def _of_list(tokens: list[Any], top: str, text: str = "token", logprob: str = "logprob") -> Answer:
    """The answer in a list of tokens, each with the list `top` of what was likely in its place."""
    one = tokens[_first(tokens, text)]
    likely = {other[text]: other[logprob] for other in one[top]}
    return Answer(one[text], {one[text]: one[logprob], **likely} if logprob in one else likely)


def _of_choices(choices: Any) -> dict[int, Answer]:
    if not isinstance(choices, list) or not choices:
        raise ValueError("the response has no choices; is it an error message? Ask again.")
    if len(choices) > 1 and "message" in choices[0]:
        raise ValueError(f"{len(choices)} choices, which are answers to one prompt. Ask for one (n=1).")
    found: dict[int, Answer] = {}
    for choice in choices:
        place = choice.get("index", 0)
        if place in found:
            raise ValueError(f"two choices have the index {place}.")
        found[place] = _of_choice(choice["logprobs"])
    return found


def _of_choice(logprobs: Mapping[str, Any]) -> Answer:
    if isinstance(logprobs.get("content"), list):  # chat
        return _of_list(logprobs["content"], "top_logprobs")
    place = _first(logprobs["tokens"])
    token, likely = logprobs["tokens"][place], logprobs["top_logprobs"][place]
    return Answer(token, {token: logprobs["token_logprobs"][place], **likely})


def _of_responses(output: Any) -> dict[int, Answer]:
    """The interface of OpenAI that is called Responses."""
    message = next(one for one in output if one.get("type", "message") == "message")
    return {0: _of_list(message["content"][0]["logprobs"], "top_logprobs")}


def _of_tgi(details: Any) -> dict[int, Answer]:
    place = _first(details["tokens"], "text")
    token, likely = details["tokens"][place], details["top_tokens"][place]
    return {0: Answer(token["text"], {token["text"]: token["logprob"], **{o["text"]: o["logprob"] for o in likely}})}


def _of_gemini(candidates: Any) -> dict[int, Answer]:
    result = candidates[0].get("logprobsResult") or candidates[0]["logprobs_result"]
    steps = result.get("topCandidates") or result["top_candidates"]
    lists = [one["candidates"] for one in steps]
    likely = lists[_first([one[0] for one in lists])]
    name = "logProbability" if "logProbability" in likely[0] else "log_probability"
    return {0: Answer(likely[0]["token"], {one["token"]: one[name] for one in likely})}


def _of_sglang(meta: Any) -> dict[int, Answer]:
    likely = meta["output_top_logprobs"][0]  # (logprob, number of the token, text)
    return {0: Answer(None, {text: logprob for logprob, _, text in likely})}


def _of_llama_cpp(tokens: Any) -> dict[int, Answer]:
    """The answer of llama.cpp, which has probabilities after sampling, or in older versions."""
    for name, text in (("top_probs", "token"), ("probs", "tok_str")):
        if name in tokens[0]:
            place = _first(tokens, "token" if "token" in tokens[0] else "content")
            likely = {one[text]: log(one["prob"]) for one in tokens[place][name] if one["prob"] > 0}
            return {0: Answer(max(likely, key=likely.__getitem__), likely)}
    return {0: _of_list(tokens, "top_logprobs")}


def _of_logprobs(tokens: Any) -> Answer:
    """The list of Ollama, or the log-probabilities of the words as somebody wrote them."""
    return Answer(None, tokens) if isinstance(tokens, Mapping) else _of_list(tokens, "top_logprobs")


#: What tells the responses of language models apart, and what reads them.
GENERATIONS: dict[str, Callable[[Any], dict[int, Answer]]] = {
    "choices": _of_choices,
    "details": _of_tgi,
    LLAMA_CPP: _of_llama_cpp,
    "candidates": _of_gemini,
    "meta_info": _of_sglang,
    "output": _of_responses,
    "logprobs": lambda tokens: {0: _of_logprobs(tokens)},
}
