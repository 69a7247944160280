"""What made the ties of a run, and what to do about it. A cause is named only if there is evidence of it.

`PROBLEMS` has, for each cause, its name in words, and the remedy with a line of code for each library that may have
made the scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.auditing.even_steps import EvenSteps, find_even_steps
from tiewise.analysis.auditing.quantization import ScoreGrid
from tiewise.analysis.auditing.tie_statistics import Pile, TieStatistics
from tiewise.analysis.grids import FLOAT32, MIN_DISTINCT, Grid
from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.results.wording import format_percent

MIN_ROWS = 50  # fewer rows are an example, not a run
IDENTICAL_SHARE = 0.9  # of tied rows: from this share on, identical documents are the cause

#: The libraries with lines of code, and their names in a sentence.
LIBRARIES = {
    "sentence-transformers": "a model of sentence-transformers",
    "transformers": "a model of transformers",
    "index": "a vector index",
    "reranker": "a reranker behind an API",
    "own": "your own code",
}


@dataclass(frozen=True)
class Remedy:
    """What to do, and the line of code for each library that has one.

    >>> print(Remedy("Write scores with all their digits.", {"own": "f'{score:.9g}'"}))
    Write scores with all their digits.
      your own code: f'{score:.9g}'
    """

    text: str
    code: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"  {LIBRARIES[library]}: {line}" for library, line in self.code.items()]
        return "\n".join([self.text, *lines])


class Problem(NamedTuple):
    """Why documents are tied, and what to do. `Evidence.facts` fills the braces."""

    reason: str
    remedy: str
    code: Mapping[str, str] = {}


# A reranker's own service has these options; where a service has none, nothing but its scores can be had.
_RAW_SCORES = 'ask for raw logits: "raw_scores": true (TEI), "use_activation": false (vLLM), logprobs of yes and no'
_SERVE_FLOAT32 = 'serve the model with --dtype float32 (TEI, vLLM), and ask for raw logits: "raw_scores": true (TEI)'

_IN_FLOAT32 = {
    "own": "tiewise.scoring.score(queries, docs, fn='cosine')  # of a last layer: head(hidden, weight, bias)",
    "sentence-transformers": "tiewise.adapters.sentence_transformers.high_precision(model)",
    "transformers": "tiewise.adapters.transformers.high_precision(model)",
    "index": "tiewise.scoring.rescore(run, queries, docs, fn='cosine')  # with query_ids= and doc_ids=",
    "reranker": _SERVE_FLOAT32,
}
_LAST_LAYER = {
    "sentence-transformers": _IN_FLOAT32["sentence-transformers"],
    "transformers": _IN_FLOAT32["transformers"],
    "reranker": _SERVE_FLOAT32,
    "own": "tiewise.scoring.head(hidden, weight, bias)",
}
_LOGITS = {
    "sentence-transformers": "model.predict(pairs, activation_fn=torch.nn.Identity())",
    "transformers": "scores = model(**inputs).logits  # and no sigmoid or softmax",
    "reranker": _RAW_SCORES,
    "own": "tiewise.scoring.score(logits, fn='sigmoid', precision='float64')  # or rank by the logits",
}
_FLOAT64 = {"own": "tiewise.scoring.score(queries, docs, fn='cosine', precision='float64')"}
_ALL_DIGITS = {"reranker": _RAW_SCORES, "own": "f'{score:.9g}'  # 9 digits hold a float32, 17 a float64"}
_FINER_SCORES = {"own": "tiewise.scoring.head(hidden, weight, bias)  # or score(queries, docs, fn='cosine')"}
_RESCORE = {"index": _IN_FLOAT32["index"], "own": "tiewise.scoring.search(queries, docs, k, fn='cosine')"}

PROBLEMS = {
    "precision": Problem(
        "scores rounded to {type}{after}",
        "Compute the last step in float32; the model may stay in {type}.",
        _IN_FLOAT32,
    ),
    "logits": Problem(
        "logits rounded to {type}{after}",
        "Compute the last layer in float32 too; the score function was computed well.",
        _LAST_LAYER,
    ),
    "precision or counts": Problem(
        "scores rounded to {type}{or_counts}",
        "Compute the last step in float32; if these are counts, rank again by finer scores.",
        _IN_FLOAT32,
    ),
    "before transformation": Problem(
        "numbers rounded to {type}{or_counts}{after}",
        "Compute the step before the score function in float32 too; the model may stay in {type}.",
        _IN_FLOAT32,
    ),
    "only gaps": Problem(
        "unclear: scores keep apart as rounded numbers or counts do",
        "If anything was in low precision before the score function, compute the last step in float32. If these are "
        "counts, rank again by finer scores.",
        _FINER_SCORES,
    ),
    "scaled": Problem(
        "{even_steps}",
        "If numbers were rounded to low precision before they were scaled, compute them in float32. If they are "
        "counts, rank again by finer scores.",
        _IN_FLOAT32,
    ),
    "decimals": Problem("scores {rounding}", "Write scores with all their digits.", _ALL_DIGITS),
    "float32": Problem(
        "float32 has no numbers between the scores",
        "Compute scores in float64, if differences so small mean anything.",
        _FLOAT64,
    ),
    "float64": Problem(
        "float64 has no numbers between the scores",
        "Look at the score function: differences so small are lost in it, not in the scores.",
    ),
    "integer": Problem(
        "scores {made_from} whole numbers",
        "Higher precision changes nothing: order equal scores by a second one (float vectors for bits, BM25 for counts "
        "of words, sums for votes).",
        {"index": _IN_FLOAT32["index"]},
    ),
    "steps": Problem(
        "{preimage} come in even steps of {step}",
        "Rank again by finer scores, such as those of float vectors; for differences of logits, compute the last layer "
        "in float32.",
        {**_RESCORE, **_FINER_SCORES},
    ),
    "printed saturation": Problem(
        "scores pile up at {limit}{printed}",
        "Write scores with all their digits, or rank by the logit, which does not level off.",
        {**_LOGITS, **_ALL_DIGITS},
    ),
    "saturation": Problem(
        "scores pile up at {limit}", "Rank by the logit, or compute the score function in float64.", _LOGITS
    ),
    "constant": Problem(
        "{constant_lists} all documents, or nearly all, one score",
        "Look at what the scorer was given: a list of equal scores ranks nothing.",
    ),
    "few": Problem(
        "only {distinct} distinct scores",
        "Score on a finer scale: the expected rating under a model's probabilities, say, not the likeliest.",
    ),
    "identical": Problem(
        "identical documents, not rounding", "Keep one of each set of identical documents, or judge them as one."
    ),
    "genuine": Problem(
        "unknown from the scores alone",
        "If logits or vectors were in low precision before, compute the last step in float32. Else report the expected "
        "value and its range, or break ties by a second score.",
        _FINER_SCORES,
    ),
    "order": Problem(
        "",
        "Find what differs from the reference: score a few pairs both ways; compare precision, prompt, how texts are "
        "cut, and the index.",
    ),
    "unclear": Problem(
        "unknown from the scores alone", "Report the expected value, and its lowest and highest by tie order."
    ),
}


@dataclass(frozen=True)
class Evidence:
    """The evidence in a run's scores and ties, and the cause that follows from it."""

    scores: ScoreGrid
    ties: TieStatistics
    identical_rows: int | None  #: rows that are tied with identical documents only
    piles: tuple[Pile, ...]  #: scores at the limits 1 and 0
    saturation: Pile | None  #: the limit with most of the tied rows, if the score function levels off there
    rounding: tuple[float, Grid] | None  #: the share of tied pairs that rounding explains, and the grid
    even_steps: EvenSteps | None  #: of scores that were scaled, all of them or list by list
    small_gaps: float | None  #: relative to chance; None if there are too few ties to say

    @cached_property
    def cause(self) -> str | None:
        """What made most of the ties; None if there are none."""
        ties, scores, quantization = self.ties, self.scores, self.scores.quantization
        if not ties.tied_rows:
            return None
        if 2 * (ties.constant + ties.nearly_constant) >= ties.rankings:
            return "constant"
        if self.identical_rows is not None and self.identical_rows >= IDENTICAL_SHARE * ties.tied_rows:
            return "identical"
        if quantization and not (self.saturation and quantization.transformation.of_logits):
            return "precision" if quantization.precision else "integer" if quantization.grid.name == "1" else "steps"
        if scores.name == "integer" and scores.is_significant:
            return "integer"
        if self.saturation:
            return "saturation"
        if scores.distinct < MIN_DISTINCT:
            return "few" if scores.rows >= MIN_ROWS else "unclear"
        if self.even_steps:
            return "scaled"
        if ties.tied_pairs < MIN_DISTINCT or self.rounding is None:
            return "unclear"
        share, grid = self.rounding
        if share >= 0.5:
            return grid.name if grid.name in ("float32", "float64") else "decimals"
        by_chance = self.small_gaps is not None and self.small_gaps >= BY_CHANCE
        return "genuine" if by_chance or ties.is_unmatched else "unclear"

    def refine(self, cause: str) -> str:
        """The entry of `PROBLEMS` for a cause, by what else is known of the scores."""
        quantization = self.scores.quantization
        if cause == "precision" and quantization:
            if quantization.transformation.of_logits:
                return "logits"
            if quantization.transformation.name:
                return "before transformation"
            return "precision or counts" if quantization.steps else cause
        if cause == "saturation" and self.saturation and self.saturation.printed:
            return "printed saturation"
        keep_apart = self.small_gaps is not None and self.small_gaps < BY_CHANCE
        return "only gaps" if cause == "unclear" and keep_apart and self.scores.distinct >= MIN_DISTINCT else cause

    @property
    def rounded_share(self) -> float | None:
        """The share of tied pairs that printing or float32 explains; None if something else does."""
        is_explained = self.scores.name == "integer" or self.scores.quantization or self.even_steps
        return self.rounding[0] if self.rounding and not is_explained else None

    @property
    def facts(self) -> dict[str, Any]:
        """What fills the braces of a `Problem`."""
        scores, ties, quantization, printings = self.scores, self.ties, self.scores.quantization, self.scores.printings
        steps, transformation = (quantization.steps, quantization.transformation) if quantization else (None, None)
        lists = ties.constant + ties.nearly_constant
        return {
            "type": scores.precision or "low precision",
            "or_counts": f", or counts divided by {steps.name.removeprefix('1/')}" if steps else "",
            "after": self._describe_later_steps(),
            "preimage": transformation.preimage if transformation else "",
            "step": quantization.grid.name if quantization else "",
            "made_from": "were made from" if transformation and transformation.name else "are",
            "limit": f"{self.saturation.at:.0f}" if self.saturation else "",
            "printed": f" and {printings[0].description}" if printings else "",
            "constant_lists": f"{lists:,} of {ties.rankings:,} lists {'gives' if lists == 1 else 'give'}",
            "even_steps": self.even_steps.description if self.even_steps else "",
            "rounding": self.rounding[1].description if self.rounding else "",
            "distinct": scores.distinct,
        }

    def _describe_later_steps(self) -> str:
        """What was done to rounded numbers; if nothing was, how many of the scores are such numbers."""
        scores, quantization = self.scores, self.scores.quantization
        if quantization is None:
            return ""
        later = "".join(f", then {step}" for step in quantization.later_steps)
        share = "all" if scores.share == 1 else f"{format_percent(scores.share)} of"
        return later or f" ({share} {scores.rows:,} lie on its grid)"

    def explain(self) -> str | None:
        """What made the ties, in words; None if there are none."""
        return None if self.cause is None else PROBLEMS[self.refine(self.cause)].reason.format(**self.facts)

    def find_remedy(self, problem: str, library: str | None) -> Remedy:
        """The remedy for a problem; only the line of code for `library`, if there is one."""
        found = PROBLEMS[problem]
        code = {name: line for name, line in found.code.items() if name != "reranker"}  # few runs come from one
        if library and library in found.code:
            code = {library: found.code[library]}
        return Remedy(found.remedy.format(**self.facts), code)


def collect_evidence(scores: ScoreGrid, ties: TieStatistics, identical_rows: int | None) -> Evidence:
    """The evidence in the scores and ties of a run."""
    piles = ties.piles(next(iter(scores.printings), None))
    saturated = [pile for pile in piles if pile.levels_off]
    saturation = next((pile for pile in saturated if 2 * pile.tied_rows >= ties.tied_rows), None)
    rounding = ties.explain_by_rounding(scores.roundings, [pile.at for pile in saturated if pile.printed])
    steps = None
    if not scores.quantization and scores.name != "integer":
        steps = find_even_steps(ties.sample_tied_lists(), scores.sample, ties.lists, scores.printings)
    return Evidence(scores, ties, identical_rows, piles, saturation, rounding, steps, measure_small_gaps(ties))


# -- gaps between distinct scores -----------------------------------------------------------------------------------
# Rounded numbers are at least one step apart, and a smooth function keeps them apart, known or not: where ties are
# frequent, no two distinct scores are much nearer than their neighbours are. Documents that tie for another reason,
# such as copies, leave the gaps between other scores as chance made them: some gaps are small.
#
# The size of the rounding step follows from the ties. If a step holds λ documents on average, a share λ / (e^λ − 1) of
# the non-empty steps holds exactly one document, and 1 − e^−λ of all steps are not empty.

BY_CHANCE = 0.6  # from this share of the expected small gaps on, rounding did not make the ties
MIN_EXPECTED = 10  # small gaps that must be expected for the share to mean anything
NEIGHBOURS = 4  # on either side: the gaps with which a gap is compared
SMALL_GAP = 0.6  # of a step; in one power of two and the next, steps differ by a factor of 2
GEOMETRIC_MEAN = 0.62  # the expected geometric mean of eight exponential variables of mean 1
TIED_NEIGHBOURS = 8  # on either side: the tied groups from which the local frequency of ties is estimated
EQUAL_ULPS = 4  # float32 steps: scores that are no further apart may come from one number

_LOAD = np.linspace(12.0, 1e-3, 4000)  # λ, documents per step
_SINGLE_SHARE = _LOAD / np.expm1(_LOAD)  # of the non-empty steps, those with one document


def measure_small_gaps(ties: TieStatistics) -> float | None:
    """The number of gaps between scores that are smaller than rounding would leave, relative to that by chance.

    It is about 1 if chance made the gaps, about 0 after rounding, None if there are too few ties or distinct scores.

    >>> from tiewise.io import as_run
    >>> places = np.arange(400.0)
    >>> copies = np.append(places, places[::10]) ** 2 * 0.6180339887 % 1
    >>> rounded = np.tanh(np.round(copies, 2))
    >>> for scores in (copies, rounded):
    ...     run = as_run({"q": {f"d{i}": score for i, score in enumerate(scores)}})
    ...     print(round(measure_small_gaps(TieStatistics.of(run)), 1))
    1.2
    0.0
    """
    query, score, tied = _merge_nearly_equal(*ties.sample_groups())
    counts = _count_small_gaps(query, score, tied)
    sign = 1 if score.min(initial=0.0) == 0 else -1 if score.max(initial=0.0) == 0 else 0
    if sign:  # the steps of a softmax are even only on a logarithmic scale
        query, score, tied = (column[score != 0] for column in (query, score, tied))
        counts += _count_small_gaps(query, sign * np.log(sign * score), tied)
    small, expected = min(counts, key=lambda one: one[0] / max(one[1], 1.0))
    return small / expected if expected >= MIN_EXPECTED else None


def _merge_nearly_equal(query: Codes, score: Floats, size: Codes) -> tuple[Codes, Floats, NDArray[np.bool_]]:
    """Distinct scores of each list, best first, and whether several documents have each.

    Scores that are equal up to the error of a transformation count as one.
    """
    new = np.ones(len(score), dtype=bool)
    new[1:] = (query[1:] != query[:-1]) | (score[:-1] - score[1:] > EQUAL_ULPS * FLOAT32.spacing(score[1:]))
    first = np.flatnonzero(new)
    return query[first], score[first], (np.add.reduceat(size, first) if len(first) else size) > 1


def _count_small_gaps(query: Codes, score: Floats, tied: NDArray[np.bool_]) -> list[tuple[int, float]]:
    """The gaps that are smaller than rounding would leave, and the expected number of them.

    The gaps are looked at in two orders: by list, and by score. The same gap in several lists is one observation.
    """
    above = np.flatnonzero(query[1:] == query[:-1])  # the score above each gap
    gap, of_list = score[above] - score[above + 1], query[above]
    inner = NEIGHBOURS + np.flatnonzero(of_list[2 * NEIGHBOURS :] == of_list[: -2 * NEIGHBOURS])  # enough gaps around
    logs = np.log(gap)
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    around = (sums[inner + NEIGHBOURS + 1] - sums[inner - NEIGHBOURS] - logs[inner]) / (2 * NEIGHBOURS)
    relative, is_tied = gap[inner] / np.exp(around), tied[above[inner]]
    rank = _rank(score)
    pair = rank[above[inner]] * len(score) + rank[above[inner] + 1]
    by_score = np.argsort(pair)
    heads = np.flatnonzero(np.diff(pair[by_score], prepend=-1))
    once = np.minimum.reduceat(by_score, heads) if len(heads) else by_score
    counts = []
    for order in (np.sort(once), once):
        limit = _limits(is_tied[order])
        small = int(np.count_nonzero(relative[order] < limit))
        counts.append((small, float(-np.expm1(-GEOMETRIC_MEAN * limit).sum())))
    return counts


def _rank(score: Floats) -> Codes:
    """The number of smaller distinct scores."""
    order = np.argsort(score)
    ordered, rank = score[order], np.empty(len(score), np.int64)
    rank[order] = np.cumsum(np.append(False, ordered[1:] != ordered[:-1])[: len(score)])
    return rank


def _limits(tied: NDArray[np.bool_]) -> Floats:
    """The size below which rounding would leave no gap, relative to the gaps around, by the frequency of ties there.

    It is 0 without ties.
    """
    where = np.flatnonzero(tied)
    if not len(where):
        return np.zeros(len(tied))
    before: Codes = np.cumsum(tied) - tied
    low, high = before - TIED_NEIGHBOURS, before + TIED_NEIGHBOURS
    start = np.where(low < 0, 0, where[np.maximum(low, 0)])
    stop = np.where(high > len(where), len(tied), where[np.minimum(high, len(where)) - 1] + 1)
    single = 1 - (np.minimum(high, len(where)) - np.maximum(low, 0)) / (stop - start)
    occupied = -np.expm1(-np.interp(single, _SINGLE_SHARE, _LOAD))
    return np.asarray(SMALL_GAP * occupied)
