"""Remedies for ties, by their cause, with a line of code for each library that may have made the scores."""

from __future__ import annotations

from dataclasses import dataclass, field

from tiewise.errors import InputError

__all__ = ["LIBRARIES", "Remedy", "check_library", "find_remedy"]

#: The libraries with lines of code, and what they stand for in a sentence.
LIBRARIES = {
    "sentence-transformers": "a model of sentence-transformers",
    "transformers": "a model of transformers",
    "index": "a vector index",
    "own": "your own code",
}

_IN_FLOAT32 = {
    "sentence-transformers": "tiewise.adapters.sentence_transformers.high_precision(model)",
    "transformers": "tiewise.adapters.transformers.high_precision(model)",
    "index": "tiewise.scoring.rescore(run, queries, docs, fn='cosine', query_ids=..., doc_ids=...)",
    "own": "tiewise.scoring.score(queries, docs, fn='cosine')  # of a last layer: head(hidden, weight, bias)",
}
_LAST_LAYER = {
    "sentence-transformers": _IN_FLOAT32["sentence-transformers"],
    "transformers": _IN_FLOAT32["transformers"],
    "own": "tiewise.scoring.head(hidden, weight, bias)",
}
_LOGITS = {
    "sentence-transformers": "model.predict(pairs, activation_fn=torch.nn.Identity())",
    "transformers": "scores = model(**inputs).logits  # and no sigmoid or softmax",
    "own": "tiewise.scoring.score(logits, fn='sigmoid', precision='float64')  # or rank by the logits",
}
_FLOAT64 = {"own": "tiewise.scoring.score(queries, docs, fn='cosine', precision='float64')"}
_ALL_DIGITS = {"own": "f'{score:.9g}'  # 9 digits hold a float32, 17 a float64"}
_DIGITS_OR_LOGITS = {**_LOGITS, "own": _ALL_DIGITS["own"]}
_FINER_SCORES = {"own": "tiewise.scoring.head(hidden, weight, bias)  # or score(queries, docs, fn='cosine')"}
_RESCORE = {"index": _IN_FLOAT32["index"], "own": "tiewise.scoring.search(queries, docs, k, fn='cosine')"}


@dataclass(frozen=True)
class Remedy:
    """What to do, and the line of code for each library that has one."""

    text: str
    code: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"  {LIBRARIES[library]}: {line}" for library, line in self.code.items()]
        return "\n".join([self.text, *lines])


#: By problem; {type} is the type to which numbers were rounded.
_REMEDIES = {
    "precision": Remedy("The model may stay in {type}: compute the last step of its scores in float32.", _IN_FLOAT32),
    "logits": Remedy(
        "The score function was computed well, but of logits in {type}: compute the last layer in float32 too.",
        _LAST_LAYER,
    ),
    "precision or counts": Remedy(
        "If a model made these scores, it may stay in {type}: compute the last step in float32. If they are counts, "
        "rank the candidates again by finer scores.",
        _IN_FLOAT32,
    ),
    "before transformation": Remedy(
        "The score function was computed well, but of numbers in {type}: compute the step before it in float32 too. "
        "The model may stay in {type}.",
        _IN_FLOAT32,
    ),
    "only gaps": Remedy(
        "Were logits, distances or vectors in low precision before the score function? Then compute the last step in "
        "float32. If these are counts, rank the candidates again by finer scores. Else report the expected value with "
        "its range.",
        _FINER_SCORES,
    ),
    "scaled": Remedy(
        "Were these numbers rounded to low precision before they were scaled? Then compute them in float32: the model "
        "may stay as it is. If they are counts, rank the candidates again by finer scores.",
        _IN_FLOAT32,
    ),
    "decimals": Remedy("Write scores with all their digits.", _ALL_DIGITS),
    "float32": Remedy("Compute scores in float64, if differences so small mean anything.", _FLOAT64),
    "float64": Remedy("Look at the score function: differences so small are lost in it, not in the scores."),
    "integer": Remedy("Rank the candidates again by finer scores, such as those of float vectors.", _RESCORE),
    "steps": Remedy(
        "Rank the candidates again by finer scores, such as those of float vectors; if these are differences of "
        "logits, compute the last layer in float32.",
        {**_RESCORE, "own": _FINER_SCORES["own"]},
    ),
    "printed saturation": Remedy(
        "Write scores with all their digits, or rank by the logit, which does not level off.", _DIGITS_OR_LOGITS
    ),
    "saturation": Remedy("Rank by the logit, or compute the score function in float64.", _LOGITS),
    "constant": Remedy("Look at what the scorer was given: a list of equal scores ranks nothing."),
    "few": Remedy("Score on a finer scale: the expected rating under a model's probabilities, say, not the likeliest."),
    "identical": Remedy("Keep one of each set of identical documents, or judge them as one."),
    "genuine": Remedy(
        "Nothing in the scores tells what made these ties. Were logits or vectors in low precision before? Then "
        "compute the last step in float32. Else report the expected value with its range, or break ties by a second "
        "score.",
        _FINER_SCORES,
    ),
    "order": Remedy(
        "Find what differs: score a few pairs both ways, and compare the model's precision, its prompt, how texts are "
        "cut, and the index. Until then, do not report one run in place of the other."
    ),
    "unclear": Remedy("Report the expected value with its range."),
}


def check_library(library: str | None) -> None:
    """Raise an error for a library without lines of code."""
    if library is not None and library not in LIBRARIES:
        raise InputError(f"Unknown library {library!r}. Use one of {', '.join(LIBRARIES)}.")


def find_remedy(problem: str, precision: str | None, library: str | None) -> Remedy:
    """The remedy for a problem; only the line of code for `library`, if there is one.

    >>> print(find_remedy("precision", "bfloat16", "transformers"))
    The model may stay in bfloat16: compute the last step of its scores in float32.
      a model of transformers: tiewise.adapters.transformers.high_precision(model)
    """
    remedy = _REMEDIES[problem]
    code = {library: remedy.code[library]} if library in remedy.code else remedy.code
    return Remedy(remedy.text.format(type=precision or "low precision"), code)
