"""Comparisons again, naively: every order of the ties of both runs is tried.

Orders are ``"independent"`` (each list of each run on its own), ``"per-query"`` (one order of a query's documents for
both runs) or ``"shared"`` (one order of all documents for all queries and both runs).

Nothing is imported from `src`: measures are those of `oracle`, lists are sorted in plain Python, and the distribution
of a mean difference is a dictionary from values to exact probabilities.

>>> judged, left, right = {"q": {"a": 1, "b": 0}}, {"q": {"a": 1, "b": 1}}, {"q": {"a": 1, "b": 1}}
>>> sorted(differences("RR", None, judged, left, right, orders="independent").items())
[(-0.5, Fraction(1, 4)), (0.0, Fraction(1, 2)), (0.5, Fraction(1, 4))]
>>> differences("RR", None, judged, left, right, orders="per-query")
{0.0: Fraction(1, 1)}
>>> twice = {"q": judged["q"], "r": {"b": 1, "a": 0}}  # either order of a and b gives one 1 and one 1/2
>>> differences("RR", None, twice, {"q": left["q"], "r": left["q"]}, {"q": {"a": 1}, "r": {"b": 1}}, orders="shared")
{-0.25: Fraction(1, 1)}
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction

import oracle

Judged = dict[str, dict[str, float]]
Lists = dict[str, dict[str, float]]
Distribution = dict[float, Fraction]


def value(name: str, k: int | None, labels: dict[str, float], docs: list[str], **params) -> float:
    """A measure of one list of documents."""
    rest = [label for doc, label in labels.items() if doc not in docs]
    return oracle.value(name, [labels.get(doc) for doc in docs], rest, k, **params)


def by_priority(scores: dict[str, float], priority: tuple[str, ...]) -> list[str]:
    """The documents by descending score, tied ones by their place in `priority`."""
    return sorted(scores, key=lambda doc: (-scores[doc], priority.index(doc)))


def orders(scores: dict[str, float]) -> Iterator[list[str]]:
    """Every list that the ties of a run allow, each equally likely."""
    levels = sorted(set(scores.values()), reverse=True)
    groups = [[doc for doc in scores if scores[doc] == level] for level in levels]
    for arranged in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [doc for group in arranged for doc in group]


def difference(name, k, labels, a: list[str], b: list[str], **params) -> float:
    """What one list of documents scores more than another."""
    return value(name, k, labels, a, **params) - value(name, k, labels, b, **params)


def of_query(name, k, labels, left, right, orders_: str, **params) -> Distribution:
    """The distribution of the difference in one query."""
    if orders_ == "per-query":
        docs = sorted({*left, *right})
        pairs = [(by_priority(left, p), by_priority(right, p)) for p in itertools.permutations(docs)]
    else:
        pairs = list(itertools.product(orders(left), orders(right)))
    found: Distribution = defaultdict(Fraction)
    for a, b in pairs:
        found[round(difference(name, k, labels, a, b, **params), 10)] += Fraction(1, len(pairs))
    return found


def global_orders(*runs: Lists) -> list[tuple[str, ...]]:
    """Every order of all documents that stand in any list."""
    return list(itertools.permutations(sorted({doc for run in runs for docs in run.values() for doc in docs})))


def differences(
    name: str, k: int | None, judged: Judged, left: Lists, right: Lists, *, orders: str, **params
) -> Distribution:
    """The distribution of the mean difference over queries; a run that lacks a query scores 0 there."""
    if orders == "shared":
        return _in_one_order(name, k, judged, left, right, **params)
    total: Distribution = {0.0: Fraction(1)}
    for query, labels in judged.items():
        one = of_query(name, k, labels, left.get(query, {}), right.get(query, {}), orders, **params)
        summed: Distribution = defaultdict(Fraction)
        for (x, p), (y, q) in itertools.product(total.items(), one.items()):
            summed[round(x + y, 9)] += p * q
        total = summed
    return {gap / len(judged): chance for gap, chance in total.items()}


def _in_one_order(name, k, judged: Judged, left: Lists, right: Lists, **params) -> Distribution:
    every = global_orders(left, right)
    found: Distribution = defaultdict(Fraction)
    for priority in every:
        total = 0.0
        for query, labels in judged.items():
            a, b = (by_priority(run.get(query, {}), priority) for run in (left, right))
            total += difference(name, k, labels, a, b, **params)
        found[round(total, 9) / len(judged)] += Fraction(1, len(every))
    return dict(found)


def means(name: str, k: int | None, judged: Judged, run: Lists) -> list[float]:
    """Every mean that the ties of one run allow."""
    each = [
        {round(value(name, k, labels, docs), 10) for docs in orders(run[query])} for query, labels in judged.items()
    ]
    return sorted({sum(some) / len(judged) for some in itertools.product(*each)})


def rank_intervals(name: str, k: int | None, judged: Judged, runs: dict[str, Lists]) -> dict[str, tuple[int, int]]:
    """The best and the worst rank of each system over all orders of all their ties."""
    ranks: dict[str, list[int]] = {system: [] for system in runs}
    for some in itertools.product(*(means(name, k, judged, run) for run in runs.values())):
        for system, own in zip(runs, some, strict=True):
            ranks[system].append(1 + sum(other > own + 1e-9 for other in some))
    return {system: (min(found), max(found)) for system, found in ranks.items()}


def rank_intervals_together(
    name, k, judged: Judged, runs: dict[str, Lists], *, orders: str
) -> dict[str, tuple[int, int]]:
    """The same when one order, of each query's documents or of all, breaks the ties of all systems."""
    if orders == "shared":
        return _ranked(runs, (_totals(name, k, judged, runs, order) for order in global_orders(*runs.values())))
    each = []
    for query, labels in judged.items():
        docs = sorted({doc for run in runs.values() for doc in run[query]})
        each.append(
            {
                tuple(round(value(name, k, labels, by_priority(run[query], order)), 10) for run in runs.values())
                for order in itertools.permutations(docs)
            }
        )
    return _ranked(runs, ([sum(values) for values in zip(*some, strict=True)] for some in itertools.product(*each)))


def _totals(name, k, judged: Judged, runs: dict[str, Lists], order: tuple[str, ...]) -> list[float]:
    return [
        sum(round(value(name, k, labels, by_priority(run[query], order)), 10) for query, labels in judged.items())
        for run in runs.values()
    ]


def _ranked(runs: dict[str, Lists], outcomes: Iterable[list[float]]) -> dict[str, tuple[int, int]]:
    ranks: dict[str, list[int]] = {system: [] for system in runs}
    for totals in outcomes:
        for system, own in zip(runs, totals, strict=True):
            ranks[system].append(1 + sum(other > own + 1e-9 for other in totals))
    return {system: (min(found), max(found)) for system, found in ranks.items()}
