"""Every measure again, naively: textbook definitions on one ordered list, and all orders of the ties tried.

Nothing here is clever and nothing is imported from `src`, so agreement with it is evidence. A ranked list
holds labels in rank order, None where a document is unjudged; `unretrieved` holds the labels of judged
documents outside the list. No closed form appears: what ties do to a measure is found by trying every
order.

>>> estimate("RR", [3, 3], [0, 1], k=2)
Statistics(expected=0.75, minimum=0.5, maximum=1.0, std=0.25, oblivious=0.5)
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

Label = float | None  # None = unjudged
Labels = Sequence[Label]

__all__ = ["MEASURES", "Statistics", "cut_expectations", "cut_fills", "estimate", "orders", "value"]


# Labels


def relevant(label: Label, rel: float) -> bool:
    """Whether a document is relevant: never if unjudged or labelled below 0, whatever `rel` is."""
    return label is not None and label >= 0 and label >= rel


def count_relevant(labels: Labels, rel: float) -> int:
    return sum(relevant(label, rel) for label in labels)


def judged_labels(ranked: Labels, unretrieved: Labels) -> list[float]:
    """All judged labels, best first: the ideal list."""
    return sorted((label for label in [*ranked, *unretrieved] if label is not None), reverse=True)


def ratio(numerator: float, denominator: float) -> float:
    """The quotient, and 0 where the denominator is 0 (no relevant documents, or an empty list)."""
    return numerator / denominator if denominator else 0.0


def linear(label: Label) -> float:
    return 0.0 if label is None else max(label, 0.0)


def exponential(label: Label) -> float:
    gain = linear(label)
    # 2^g - 1; expm1 because the subtraction would cancel for a small fractional label.
    return 2.0**gain - 1 if gain >= 1 else math.expm1(gain * math.log(2))


GAINS = {"linear": linear, "exp": exponential}


def check_maximum(ranked: Labels, unretrieved: Labels, maximum: float) -> None:
    if any(label > maximum for label in judged_labels(ranked, unretrieved)):
        raise ValueError(f"a label exceeds max={maximum}")


# Measures of one ordered list. `ranked[:k]` is the whole list where k is None or beyond it.


def hits(ranked, unretrieved, k, *, rel=1):
    return float(count_relevant(ranked[:k], rel))


def success(ranked, unretrieved, k, *, rel=1):
    return 1.0 if hits(ranked, unretrieved, k, rel=rel) >= 1 else 0.0


def precision(ranked, unretrieved, k, *, rel=1):
    return ratio(hits(ranked, unretrieved, k, rel=rel), len(ranked) if k is None else k)


def recall(ranked, unretrieved, k, *, rel=1):
    return ratio(hits(ranked, unretrieved, k, rel=rel), num_rel(ranked, unretrieved, k, rel=rel))


def f_beta(ranked, unretrieved, k, *, beta, rel=1):
    depth = len(ranked) if k is None else k
    n_relevant = num_rel(ranked, unretrieved, k, rel=rel)
    return ratio((1 + beta**2) * hits(ranked, unretrieved, k, rel=rel), depth + beta**2 * n_relevant)


def f1(ranked, unretrieved, k, *, rel=1):
    return f_beta(ranked, unretrieved, k, beta=1, rel=rel)


def reciprocal_rank(ranked, unretrieved, k, *, rel=1):
    for rank, label in enumerate(ranked[:k], start=1):
        if relevant(label, rel):
            return 1 / rank
    return 0.0


def average_precision(ranked, unretrieved, k, *, rel=1, norm="all"):
    n_relevant = num_rel(ranked, unretrieved, k, rel=rel)
    # Without a cutoff there is nothing to cap the divisor with.
    divisor = {"all": n_relevant, "cap": n_relevant if k is None else min(n_relevant, k)}[norm]
    precisions = [
        count_relevant(ranked[:rank], rel) / rank
        for rank, label in enumerate(ranked[:k], start=1)
        if relevant(label, rel)
    ]
    return ratio(math.fsum(precisions), divisor)


def r_precision(ranked, unretrieved, k, *, rel=1):
    n_relevant = int(num_rel(ranked, unretrieved, k, rel=rel))
    return ratio(count_relevant(ranked[:n_relevant], rel), n_relevant)


def dcg(ranked, unretrieved, k, *, gains="linear"):
    gain = GAINS[gains]
    return math.fsum(gain(label) / math.log2(rank + 1) for rank, label in enumerate(ranked[:k], start=1))


def ndcg(ranked, unretrieved, k, *, gains="linear"):
    if "=" in gains:
        return ndcg_with_levels(ranked, unretrieved, k, gains=gains)
    ideal = dcg(judged_labels(ranked, unretrieved), (), k, gains=gains)
    return ratio(dcg(ranked, unretrieved, k, gains=gains), ideal)


def rbp(ranked, unretrieved, k, *, p=0.8, rel=1, gains="binary", max=1):
    if gains == "graded":
        check_maximum(ranked, unretrieved, max)
        payoffs = [linear(label) / max for label in ranked[:k]]
    elif gains == "binary":
        payoffs = [float(relevant(label, rel)) for label in ranked[:k]]
    else:
        raise ValueError(f"gains={gains!r}")
    return (1 - p) * math.fsum(p ** (rank - 1) * payoff for rank, payoff in enumerate(payoffs, start=1))


def rbp_residual(ranked, unretrieved, k, *, p=0.8):
    top = ranked[:k]
    unjudged = math.fsum(p ** (rank - 1) for rank, label in enumerate(top, start=1) if label is None)
    return (1 - p) * unjudged + p ** len(top)


def err(ranked, unretrieved, k, *, max=4):
    check_maximum(ranked, unretrieved, max)
    terms, still_reading = [], 1.0
    for rank, label in enumerate(ranked[:k], start=1):
        stops = exponential(label) / 2**max
        terms.append(still_reading * stops / rank)
        still_reading *= 1 - stops
    return math.fsum(terms)


def normalized_err(ranked, unretrieved, k, *, max=4):
    ideal = err(judged_labels(ranked, unretrieved), (), k, max=max)
    return ratio(err(ranked, unretrieved, k, max=max), ideal)


def bpref(ranked, unretrieved, k, *, rel=1):
    def nonrelevant(label):  # judged so: unjudged and negative labels are skipped, as in trec_eval
        return label is not None and 0 <= label < rel

    n_relevant = num_rel(ranked, unretrieved, k, rel=rel)
    n_nonrelevant = sum(nonrelevant(label) for label in [*ranked, *unretrieved])
    terms = []
    for offset, label in enumerate(ranked):
        if relevant(label, rel):
            above = sum(nonrelevant(other) for other in ranked[:offset])
            terms.append(1 - min(above, n_relevant) / min(n_nonrelevant, n_relevant) if above else 1.0)
    return ratio(math.fsum(terms), n_relevant)


def auc(ranked, unretrieved, k, *, rel=1):
    pairs = [
        relevant(upper, rel)  # the pair is in the right order
        for upper, lower in itertools.combinations(ranked, 2)
        if relevant(upper, rel) != relevant(lower, rel)
    ]
    return ratio(sum(pairs), len(pairs))


def accuracy(ranked, unretrieved, k, *, rel=1):
    top = [relevant(label, rel) for label in ranked[:k]]
    pairs = [upper for upper, lower in itertools.combinations(top, 2) if upper != lower]
    return sum(pairs) / len(pairs) if pairs else math.nan  # not defined


def compatibility(ranked, unretrieved, k, *, p=0.95, normalize=True):
    """The highest rank-biased overlap with any ideal ranking: documents of one label may stand there in any order."""
    docs = [*ranked, *unretrieved]
    positive = sorted({label for label in docs if linear(label) > 0}, reverse=True)
    depth = max(len(ranked), sum(linear(label) > 0 for label in docs))

    def weight_from(first):  # of the depths at which a document is in both rankings
        return math.fsum(p ** (d - 1) / d for d in range(first, depth + 1))

    total = ideal = above = 0.0
    for level in positive:
        members = [place + 1 for place, label in enumerate(docs) if label == level]
        places = range(int(above) + 1, int(above) + len(members) + 1)
        ranks = [rank if rank <= len(ranked) else depth + 1 for rank in members]
        overlap = np.array([[weight_from(max(rank, place)) for place in places] for rank in ranks])
        total += overlap[linear_sum_assignment(overlap, maximize=True)].sum()  # the best order of the level
        ideal += math.fsum(map(weight_from, places))
        above += len(members)
    return ratio(total, ideal if normalize else math.fsum(p**d for d in range(depth)))


# Users who read a list from the top, as in cwl_eval, whose lists have 1,000 ranks.


def user_model(goes_on):
    """The mean gain of what is read by a user who goes on after each rank with probability goes_on(rank, gain, sum)."""

    @functools.lru_cache(maxsize=100_000)
    def read(ranked, k, min_rel=0, max_rel=1, **params):
        labels = np.full(k or 1000, float(min_rel))
        labels[: len(ranked)] = ranked[: len(labels)]
        gain = (np.clip(labels, min_rel, max_rel) - min_rel) / (max_rel - min_rel)
        on = goes_on(np.arange(1.0, len(labels) + 1), gain, np.cumsum(gain), **params)
        read = np.append(1.0, np.cumprod(on)[:-1])
        return float(np.sum(read * gain) / np.sum(read))

    return lambda ranked, unretrieved, k, **params: read(tuple(map(linear, ranked)), k, **params)


sdcg = user_model(lambda rank, gain, total: np.log2(rank + 1) / np.log2(rank + 2))
insq = user_model(lambda rank, gain, total, T=1.0: ((rank + 2 * T - 1) / (rank + 2 * T)) ** 2)
inst = user_model(lambda rank, gain, total, T=1.0: ((rank + 2 * T - total - 1) / (rank + 2 * T - total)) ** 2)
bpm = user_model(lambda rank, gain, total, T=1.0: total < T - 1e-12)
nerr8 = user_model(lambda rank, gain, total: 1 - gain)
nerr9 = user_model(lambda rank, gain, total: rank / (rank + 1) * (1 - gain))
nerr10 = user_model(lambda rank, gain, total, p=0.9: p * (1 - gain))
nerr11 = user_model(lambda rank, gain, total, T=1.0: ((rank + 2 * T - 1) / (rank + 2 * T)) ** 2 * (1 - gain))


def judged(ranked, unretrieved, k):
    return ratio(sum(label is not None for label in ranked[:k]), len(ranked) if k is None else k)


def set_precision(ranked, unretrieved, k, *, rel=1):
    return ratio(count_relevant(ranked, rel), len(ranked))


def set_recall(ranked, unretrieved, k, *, rel=1):
    return ratio(count_relevant(ranked, rel), num_rel(ranked, unretrieved, k, rel=rel))


def num_ret(ranked, unretrieved, k):
    return float(len(ranked))


def num_rel(ranked, unretrieved, k, *, rel=1):
    return float(count_relevant([*ranked, *unretrieved], rel))


def num_rel_ret(ranked, unretrieved, k, *, rel=1):
    return float(count_relevant(ranked, rel))


# trec_eval's measures, from the description of each. Gains by label replace the label's own.


def level_gain(label: Label, gains: str) -> float:
    by_label = {float(pair.split("=")[0]): float(pair.split("=")[1]) for pair in gains.split(",") if "=" in pair}
    return 0.0 if label is None or label < 0 else by_label.get(label, label)


def ideal_gains(ranked: Labels, unretrieved: Labels, gains: str) -> list[float]:
    """The positive gains of all judged documents, highest first."""
    return sorted((g for x in [*ranked, *unretrieved] if (g := level_gain(x, gains)) > 0), reverse=True)


def discounted(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def ndcg_with_levels(ranked, unretrieved, k, *, gains):
    ideal = ideal_gains(ranked, unretrieved, gains)
    return ratio(discounted([level_gain(label, gains) for label in ranked[:k]]), discounted(ideal[:k]))


def r_precision_multiple(ranked, unretrieved, k, *, multiple=1.0, rel=1):
    rank = math.floor(multiple * num_rel(ranked, unretrieved, k, rel=rel) + 0.9)
    return ratio(count_relevant(ranked[:rank], rel), rank)


def relative_precision(ranked, unretrieved, k, *, rel=1):
    depth = len(ranked) if k is None else k
    return ratio(count_relevant(ranked[:k], rel), min(depth, num_rel(ranked, unretrieved, k, rel=rel)))


def set_relative_precision(ranked, unretrieved, k, *, rel=1):
    return relative_precision(ranked, unretrieved, None, rel=rel)


def set_f(ranked, unretrieved, k, *, x=1.0, rel=1):
    p, r = set_precision(ranked, unretrieved, k, rel=rel), set_recall(ranked, unretrieved, k, rel=rel)
    return ratio((x + 1) * p * r, x * p + r)


def set_ap(ranked, unretrieved, k, *, rel=1):
    return set_precision(ranked, unretrieved, k, rel=rel) * set_recall(ranked, unretrieved, k, rel=rel)


def utility(ranked, unretrieved, k, *, a=1.0, b=-1.0, c=0.0, d=0.0, collection=0, rel=1):
    retrieved, missed = count_relevant(ranked, rel), count_relevant(unretrieved, rel)
    others = len(ranked) - retrieved
    return a * retrieved + b * others + c * missed + d * (collection - retrieved - others - missed)


def num_nonrel_judged_ret(ranked, unretrieved, k, *, rel=1):
    return float(sum(label is not None and 0 <= label < rel for label in ranked))


def unj(ranked, unretrieved, k):
    unjudged = sum(label is None or label < 0 for label in ranked[:k])
    return ratio(unjudged, len(ranked) if k is None else k)


def inferred_ap(ranked, unretrieved, k, *, rel=1):
    epsilon, total = 0.00001, 0.0
    for above, label in enumerate(ranked):
        if not relevant(label, rel):
            continue
        before = [other for other in ranked[:above] if other is not None]
        found, judged = count_relevant(before, rel), sum(other >= 0 for other in before)
        expected = (found + epsilon) / (judged + 2 * epsilon) * len(before) / above if above else 0.0
        total += (1 + above * expected) / (above + 1)
    return ratio(total, num_rel(ranked, unretrieved, k, rel=rel))


def yaap(ranked, unretrieved, k, *, rel=1):
    n_relevant = num_rel(ranked, unretrieved, k, rel=rel)
    found = average_precision(ranked, unretrieved, None, rel=rel) * n_relevant
    return math.log((1 + found) / (1 + n_relevant - found))


def interpolated_precision(ranked, unretrieved, k, *, recall=0.0, rel=1, offset=0.5):
    needed = math.floor(recall * num_rel(ranked, unretrieved, k, rel=rel) + offset)
    found = [count_relevant(ranked[:rank], rel) for rank in range(1, len(ranked) + 1)]
    return max((hits / rank for rank, hits in enumerate(found, start=1) if hits >= needed), default=0.0)


def eleven_point_ap(ranked, unretrieved, k, *, points="0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1", **params):
    shares = [float(share) for share in points.split(",")]
    values = [interpolated_precision(ranked, unretrieved, k, recall=share, **params) for share in shares]
    return math.fsum(values) / len(shares)


def bin_g(ranked, unretrieved, k, *, rel=1):
    others = [rank - count_relevant(ranked[:rank], rel) for rank in range(len(ranked))]
    terms = [1 / math.log2(2 + above) for above, x in zip(others, ranked, strict=True) if relevant(x, rel)]
    return ratio(math.fsum(terms), num_rel(ranked, unretrieved, k, rel=rel))


def normalized_gain(ranked, unretrieved, k, *, gains="linear"):
    own, ideal = [level_gain(label, gains) for label in ranked], ideal_gains(ranked, unretrieved, gains)
    total = 0.0
    for rank, gain in enumerate(own, start=1):
        cost = sum(max(best, 1) for best in ideal[:rank]) + max(rank - len(ideal), 0)
        total += gain / math.log2(2 + cost - sum(own[:rank]))
    return ratio(total, sum(ideal))


def r_ndcg(ranked, unretrieved, k, *, gains="linear", rel=1):
    own, ideal = [level_gain(label, gains) for label in ranked], ideal_gains(ranked, unretrieved, gains)
    if not num_rel(ranked, unretrieved, k, rel=rel) or not ideal:
        return 0.0
    cuts = [rank for rank, gain in enumerate(ideal, start=1) if rank == len(ideal) or ideal[rank] != gain]
    if len(ranked) > len(ideal) + 1:
        cuts.append(len(ranked))
    return math.fsum(discounted(own[:cut]) / discounted(ideal[:cut]) for cut in cuts) / len(cuts)


def ndcg_at_relevant(ranked, unretrieved, k, *, gains="linear"):
    own, ideal = [level_gain(label, gains) for label in ranked], ideal_gains(ranked, unretrieved, gains)
    if not ideal:
        return 0.0
    at = [rank for rank, gain in enumerate(own, start=1) if gain > 0]
    at += [max(len(own), len(ideal))] * (len(ideal) - len(at))
    return max(math.fsum(discounted(own[:rank]) / discounted(ideal[:rank]) for rank in at) / len(ideal), 0.0)


def trec_rbp(ranked, unretrieved, k, *, p=0.9, gains="linear"):
    given = [float(pair.split("=")[1]) for pair in gains.split(",") if "=" in pair]
    top = max([1.0, *given, *ideal_gains(ranked, unretrieved, gains)])
    own = [level_gain(label, gains) / top for label in ranked]
    return (1 - p) * math.fsum(p ** (rank - 1) * gain for rank, gain in enumerate(own, start=1))


def trec_rbp_residual(ranked, unretrieved, k, *, p=0.9):
    unjudged = [rank for rank, label in enumerate(ranked, start=1) if label is None or label < 0]
    return (1 - p) * math.fsum(p ** (rank - 1) for rank in unjudged) + p ** len(ranked) if unjudged else 0.0


def geometric_ap(ranked, unretrieved, k, *, rel=1, root=1):
    return max(average_precision(ranked, unretrieved, None, rel=rel), 0.00001) ** (1 / root)


def geometric_bpref(ranked, unretrieved, k, *, rel=1, root=1):
    return max(bpref(ranked, unretrieved, None, rel=rel), 0.00001) ** (1 / root)


# Rprec, Bpref, AUC, SetP, SetR, NumRet, NumRel and NumRelRet have no cutoff and ignore k.
MEASURES: dict[str, Callable[..., float]] = {
    "nDCG": ndcg,
    "DCG": dcg,
    "AP": average_precision,
    "RR": reciprocal_rank,
    "P": precision,
    "R": recall,
    "F1": f1,
    "F": f_beta,
    "Hits": hits,
    "Success": success,
    "Rprec": r_precision,
    "Bpref": bpref,
    "AUC": auc,
    "RBP": rbp,
    "RBPresidual": rbp_residual,
    "ERR": err,
    "nERR": normalized_err,
    "SDCG": sdcg,
    "INSQ": insq,
    "INST": inst,
    "BPM": bpm,
    "NERR8": nerr8,
    "NERR9": nerr9,
    "NERR10": nerr10,
    "NERR11": nerr11,
    "Accuracy": accuracy,
    "Compat": compatibility,
    "Judged": judged,
    "SetP": set_precision,
    "SetR": set_recall,
    "NumRet": num_ret,
    "NumRel": num_rel,
    "NumRelRet": num_rel_ret,
    "RprecMult": r_precision_multiple,
    "RelativeP": relative_precision,
    "SetRelativeP": set_relative_precision,
    "SetF": set_f,
    "SetAP": set_ap,
    "Utility": utility,
    "NumQ": lambda ranked, unretrieved, k: 1.0,
    "NumNonrelJudgedRet": num_nonrel_judged_ret,
    "Unj": unj,
    "infAP": inferred_ap,
    "YAAP": yaap,
    "IPrec": interpolated_precision,
    "ElevenPointAP": eleven_point_ap,
    "binG": bin_g,
    "G": normalized_gain,
    "RnDCG": r_ndcg,
    "nDCGRel": ndcg_at_relevant,
    "TrecRBP": trec_rbp,
    "RBPresid": trec_rbp_residual,
    "GMAP": geometric_ap,
    "GMBpref": geometric_bpref,
    "LogAP": lambda *given, **params: math.log(geometric_ap(*given, **params)),
    "LogBpref": lambda *given, **params: math.log(geometric_bpref(*given, **params)),
}


# Orders of ties, and statistics over them


class Statistics(NamedTuple):
    """A measure over all orders of the ties, each equally likely, and its value in the order given."""

    expected: float
    minimum: float
    maximum: float
    std: float  # of the population of all orders
    oblivious: float


def value(name: str, ranked: Labels, unretrieved: Labels = (), k: int | None = None, **params) -> float:
    """The measure on one fully ordered list."""
    return MEASURES[name](list(ranked), list(unretrieved), k, **params)


def estimate(
    name: str,
    scores: Sequence[float],
    labels: Labels,
    unretrieved: Labels = (),
    k: int | None = None,
    **params,
) -> Statistics:
    """The measure's statistics over every order of the tied documents in which it is defined."""
    values = [value(name, ranked, unretrieved, k, **params) for ranked in orders(scores, labels)]
    values = _defined(values)
    mean = math.fsum(values) / len(values)
    variance = math.fsum((v - mean) ** 2 for v in values) / len(values)
    given = list(itertools.chain.from_iterable(tie_groups(scores, labels)))
    oblivious = value(name, given, unretrieved, k, **params)
    return Statistics(mean, min(values), max(values), math.sqrt(variance), oblivious)


def _defined(values: list[float]) -> list[float]:
    """The values of the orders in which a measure is defined; NaN if there is none."""
    return [one for one in values if not math.isnan(one)] or [math.nan]


def orders(scores: Sequence[float], labels: Labels) -> Iterator[list[Label]]:
    """Every ranked list of labels that the ties allow, each equally likely.

    >>> list(orders([1, 2, 1, 1], [0, 5, 1, 0]))
    [[5, 0, 0, 1], [5, 0, 1, 0], [5, 1, 0, 0]]
    """
    for arranged in itertools.product(*map(arrangements, tie_groups(scores, labels))):
        yield list(itertools.chain.from_iterable(arranged))


def tie_groups(scores: Sequence[float], labels: Labels) -> list[list[Label]]:
    """The labels of each tie group, by descending score, in the given order inside a group."""
    by_score = sorted(zip(scores, labels, strict=True), key=lambda row: row[0], reverse=True)  # stable
    return [[label for _, label in rows] for _, rows in itertools.groupby(by_score, key=lambda row: row[0])]


def arrangements(group: Labels) -> Iterator[tuple[Label, ...]]:
    """The distinct orders of a group's labels.

    Measures see labels only, so permutations that swap equal labels give one list. Of the n!
    permutations of a group in which label x occurs m_x times, each distinct arrangement is the
    image of exactly Π m_x! (permute the equal labels among themselves). That number is the same for
    all arrangements, so they are equally likely, and a plain mean over them is the mean over all
    permutations.
    """
    left = Counter(group)

    def extend(prefix: tuple[Label, ...]) -> Iterator[tuple[Label, ...]]:
        if len(prefix) == len(group):
            yield prefix
        for label in left:
            if left[label]:
                left[label] -= 1
                yield from extend((*prefix, label))
                left[label] += 1

    return extend(())


# Lists that were cut inside their last tie group


def cut_expectations(
    name: str, scores: Sequence[float], labels: Labels, unretrieved: Labels = (), k: int | None = None, **params
) -> Iterator[float]:
    """The measure's expectation for every tie group of which the list's last one may be a part.

    Any of the judged documents that were not retrieved may have stood in it, and unjudged ones (up to two are tried).
    Every order of the whole list is as likely, and the list shows as many ranks of it as it has.

    >>> [round(e, 4) for e in cut_expectations("R", [1, 1], [1, None], [1])]
    [0.5, 0.3333, 0.25, 0.6667, 0.5, 0.4]
    """
    shown, lowest = len(scores), min(scores)
    for joined in itertools.product((False, True), repeat=len(unretrieved)):
        hidden = [label for label, joins in zip(unretrieved, joined, strict=True) if joins]
        rest = [label for label, joins in zip(unretrieved, joined, strict=True) if not joins]
        for unjudged in range(3):
            more = [*hidden, *[None] * unjudged]
            values = []
            for ranked in orders([*scores, *[lowest] * len(more)], [*labels, *more]):
                lost = [label for label in ranked[shown:] if label is not None]
                values.append(value(name, ranked[:shown], [*rest, *lost], k, **params))
            values = _defined(values)
            yield math.fsum(values) / len(values)


def cut_fills(
    name: str,
    scores: Sequence[float],
    labels: Labels,
    unretrieved: Labels = (),
    k: int | None = None,
    *,
    condensed: bool = False,
    **params,
) -> Iterator[float]:
    """The measure's expectation for every way to fill the ranks of the list's last tie group.

    They are filled from the group, from the judged documents that were not retrieved, and with unjudged documents, of
    which there are enough. The order of the groups above is random. With `condensed` the lists are condensed then.

    >>> sorted(set(cut_fills("R", [1, 1], [1, None], [1])))
    [0.0, 0.5, 1.0]
    """
    lowest = min(scores)
    above = [(score, label) for score, label in zip(scores, labels, strict=True) if score > lowest]
    last = [label for score, label in zip(scores, labels, strict=True) if score == lowest]
    pool = Counter([*(label for label in [*last, *unretrieved] if label is not None), *[None] * len(last)])
    heads = list(orders([score for score, _ in above], [label for _, label in above]))
    for fill in sequences(pool, len(last)):
        rest = [label for label in (pool - Counter(fill)).elements() if label is not None]
        lists = [([*head, *fill], rest) for head in heads]
        values = [value(name, *(condense(*one) if condensed else one), k, **params) for one in lists]
        yield math.fsum(values) / len(values)


def condense(ranked: Labels, unretrieved: Labels) -> tuple[Labels, Labels]:
    """A list without unjudged documents and those with a negative label, which then count as not retrieved."""
    negative = [label for label in ranked if label is not None and label < 0]
    return [label for label in ranked if label is not None and label >= 0], [*unretrieved, *negative]


def sequences(pool: Counter[Label], length: int) -> Iterator[tuple[Label, ...]]:
    """The distinct sequences of some length that can be drawn from a pool."""
    if not length:
        yield ()
        return
    for label in [label for label, left in pool.items() if left]:
        for rest in sequences(pool - Counter([label]), length - 1):
            yield (label, *rest)
