"""Precision and recall at a cutoff where not all items are judged, by trying every order and every judgment."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiewise as tw
from tiewise import rankings

STATISTICS = ("expected", "minimum", "maximum")
GAINS = st.sampled_from([0, 0.5, 1, 3])


@dataclass(frozen=True)
class Case:
    """A ranking in tie groups, the gains of some items, ranked or not, a cutoff, and how many others there are."""

    groups: list[list[str]]
    gains: dict[str, float]
    k: int
    others: int

    @property
    def ranked(self) -> list[str]:
        return [item for group in self.groups for item in group]

    def orders(self) -> Iterator[list[str]]:
        """The ranking in every order of its ties."""
        for parts in itertools.product(*(itertools.permutations(group) for group in self.groups)):
            yield [item for part in parts for item in part]

    def precision(self) -> tw.Bounds:
        return rankings.precision_at(self.groups, self.gains, self.k)

    def recall(self) -> tw.Bounds:
        return rankings.recall_at(self.groups, self.gains, self.k, others=self.others)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    items = list("abcdef")[: draw(st.integers(0, 5))]
    groups: list[list[str]] = []
    for item in draw(st.permutations(items)):
        if groups and draw(st.booleans()):
            groups[-1].append(item)
        else:
            groups.append([item])
    judged = draw(st.lists(st.sampled_from([*items, "x", "y"]), unique=True))
    return Case(groups, {item: draw(GAINS) for item in judged}, draw(st.integers(1, 7)), draw(st.integers(0, 2)))


# -- every judgment, naively ----------------------------------------------------------------------------------------


def some(items: list[str], most: int | None = None) -> Iterator[set[str]]:
    """Every subset, of so many items at most."""
    for size in range(min(len(items), len(items) if most is None else most) + 1):
        yield from map(set, itertools.combinations(items, size))


def share(part: int, whole: int) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(0)


def precisions(case: Case, order: list[str]) -> Iterator[Fraction]:
    """P@k for every judgment of the unjudged, and with every number of relevant items at ranks that are not shown."""
    head = order[: case.k]
    for relevant in judgments(case, []):
        for unseen in range(case.k - len(head) + 1):
            yield Fraction(sum(item in relevant for item in head) + unseen, case.k)


def recalls(case: Case, order: list[str]) -> Iterator[Fraction]:
    """R@k for every judgment of the unjudged and of the others; at ranks not shown may be any item not yet ranked."""
    head, others = order[: case.k], [f"other{number}" for number in range(case.others)]
    unranked = [item for item in case.gains if item not in order] + others
    for relevant in judgments(case, others):
        for unseen in some(unranked, most=case.k - len(head)):
            yield share(len(relevant & {*head, *unseen}), len(relevant))


def judgments(case: Case, others: list[str]) -> Iterator[set[str]]:
    """Every set of relevant items that the gains allow."""
    known = {item for item, gain in case.gains.items() if gain > 0}
    for more in some([item for item in case.ranked if item not in case.gains] + others):
        yield known | more


def statistics(values: list[Fraction]) -> dict[str, Fraction]:
    return {"expected": sum(values, Fraction(0)) / len(values), "minimum": min(values), "maximum": max(values)}


def assert_bounds(found: tw.Bounds, case: Case, values: Callable[[Case, list[str]], Iterator[Fraction]]) -> None:
    by_order = [set(values(case, order)) for order in case.orders()]
    for bound, extreme in ((found.lower, min), (found.upper, max)):
        for name, truth in statistics([extreme(one) for one in by_order]).items():
            assert getattr(bound, name) == pytest.approx(float(truth), abs=1e-12), (extreme, name)


@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_precision_over_every_order_and_judgment(case):
    assert_bounds(case.precision(), case, precisions)


@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_recall_over_every_order_and_judgment(case):
    assert_bounds(case.recall(), case, recalls)


# -- by hand --------------------------------------------------------------------------------------------------------


def test_a_cutoff_that_splits_a_tie_group():
    found = rankings.precision_at("a (b c) d", {"a": 1, "b": 0, "d": 1}, 2)
    assert [getattr(found.lower, name) for name in STATISTICS] == [0.5, 0.5, 0.5]  # b or c: neither is surely relevant
    assert [getattr(found.upper, name) for name in STATISTICS] == [0.75, 0.5, 1]
    assert str(found) == "P@2 from 0.5000 to 0.7500" and found.residual == 0.25
    found = rankings.recall_at("a (b c) d", {"a": 1, "b": 0, "d": 1}, 2)
    assert [getattr(found.lower, name) for name in STATISTICS] == pytest.approx([5 / 12, 1 / 3, 1 / 2])
    assert [getattr(found.upper, name) for name in STATISTICS] == pytest.approx([7 / 12, 1 / 2, 2 / 3])


@pytest.mark.parametrize(
    ("ranking", "gains", "k", "others", "bounds"),
    [
        ("", {}, 3, 0, (0, 0)),  # nothing is relevant, so nothing is found
        ("a", {"a": 0}, 3, 0, (0, 0)),
        ("a", {"a": 0}, 3, 1, (0, 1)),  # the other may be relevant and come next
        ("a", {"a": 1, "b": 1}, 2, 0, (0.5, 1)),  # b may come next
        ("a", {"a": 1, "b": 1}, 1, 0, (0.5, 0.5)),
        ("a", {"a": 1, "b": 1, "c": 1}, 2, 5, (1 / 8, 2 / 3)),  # one rank, taken by b or c: an other would add to all
        ("a", {"a": 1, "b": 1}, 4, 1, (1 / 3, 1)),
        ("a b", {"a": 1}, 1, math.inf, (0, 1)),
        ("a b", {"a": 1}, 1, 0, (0.5, 1)),  # b counts as relevant against the score, and then not
        ("a b", {"b": 1}, 1, 0, (0, 0.5)),
        ("a", {"b": 1}, 3, math.inf, (0, 1)),
    ],
)
def test_recall_by_hand(ranking, gains, k, others, bounds):
    found = rankings.recall_at(ranking, gains, k, others=others)
    assert (found.lower.expected, found.upper.expected) == pytest.approx(bounds)
    assert not found.lower.tied and not found.upper.tied


def test_precision_of_a_short_ranking():
    found = rankings.precision_at(["a", "b"], {"a": 2, "b": 0}, 5)
    assert (found.lower.expected, found.upper.expected) == (0.2, 0.8)
    assert rankings.precision_at([], {}, 4).upper.expected == 1


def test_rounding_stays_within_the_extremes():
    lower = rankings.precision_at("a (b c d e)", {"a": 1, "b": 0, "c": 0}, 3).lower
    assert lower.expected == lower.minimum == lower.maximum == 1 / 3


def test_large_groups_are_counted_and_not_enumerated():
    group, relevant, not_relevant = list(range(2000)), dict.fromkeys(range(20), 1), dict.fromkeys(range(60, 2000), 0)
    found = rankings.precision_at([group], relevant | not_relevant, 100)  # 40 are unjudged
    assert found.lower.expected == pytest.approx(20 / 2000) and found.upper.expected == pytest.approx(60 / 2000)
    assert (found.lower.maximum, found.upper.maximum) == (0.2, 0.6)
    found = rankings.recall_at([group], relevant | not_relevant | dict.fromkeys(range(20, 60), 0), 100)
    assert found.lower == found.upper
    assert found.lower.expected == pytest.approx(100 / 2000) and found.lower.maximum == 1


# -- laws -----------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(case=cases())
def test_bounds_and_extremes_are_ordered(case):
    for found in (case.precision(), case.recall()):
        for bound in (found.lower, found.upper):
            assert 0 <= bound.minimum <= bound.expected <= bound.maximum <= 1
        assert all(getattr(found.lower, name) <= getattr(found.upper, name) + 1e-15 for name in STATISTICS)
        if all(len(group) == 1 for group in case.groups):
            assert not found.lower.tied and not found.upper.tied


@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_the_lower_bounds_are_the_measures_where_unjudged_is_not_relevant(case):
    levels = {item: -float(place) for place, group in enumerate(case.groups) for item in group}
    labels = {item: int(gain > 0) for item, gain in case.gains.items()} or {"x": 0}
    report = tw.evaluate({"q": labels}, {"q": levels}, [tw.P @ case.k, tw.R @ case.k], complete=True)
    judged = case.gains | {item: 0.0 for item in case.ranked if item not in case.gains}
    for measure, found in (
        (tw.P @ case.k, case.precision()),
        (tw.R @ case.k, rankings.recall_at(case.groups, judged, case.k)),
    ):
        truth = report[measure]
        assert found.measure == measure.name
        for name in STATISTICS:
            assert getattr(found.lower, name) == pytest.approx(getattr(truth, name), abs=1e-12)
            if case.k <= len(case.ranked) and not set(case.ranked) - set(case.gains):
                assert getattr(found.upper, name) == pytest.approx(getattr(truth, name), abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(case=cases(), gain=GAINS)
def test_a_judgment_never_widens_the_bounds(case, gain):
    unjudged = [item for item in case.ranked if item not in case.gains]
    wide = (case.precision(), case.recall())
    for item in unjudged:
        judged = Case(case.groups, case.gains | {item: gain}, case.k, case.others)
        for before, after in zip(wide, (judged.precision(), judged.recall()), strict=True):
            assert after.lower.expected >= before.lower.expected - 1e-12
            assert after.upper.expected <= before.upper.expected + 1e-12


@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_others_widen_the_bounds_of_recall(case):
    def found(others: float) -> tw.Bounds:
        return rankings.recall_at(case.groups, case.gains, case.k, others=others)

    assert found(1).lower.maximum <= found(0).lower.maximum
    assert found(1).upper.minimum >= found(0).upper.minimum
    assert found(math.inf).lower.maximum == 0
    assert found(math.inf).upper == found(case.k).upper


@settings(max_examples=50, deadline=None)
@given(case=cases(), shuffle=st.randoms(use_true_random=False))
def test_names_and_the_order_within_groups_do_not_matter(case, shuffle):
    groups = [shuffle.sample(group, len(group)) for group in case.groups]
    renamed = Case(
        [[f"{item}!" for item in group] for group in groups],
        {f"{item}!": gain for item, gain in case.gains.items()},
        case.k,
        case.others,
    )
    assert renamed.precision() == case.precision()
    assert renamed.recall() == case.recall()


# -- invalid arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [rankings.precision_at, rankings.recall_at])
@pytest.mark.parametrize(
    ("ranking", "gains", "k", "message"),
    [
        ("a b", {"a": 1}, 0, "k=0 is not possible"),
        ("a b", {"a": 1}, -2, "k=-2 is not possible"),
        ("a b", {"a": 1}, 1.5, "k=1.5 is not possible"),
        ("a b", {"a": 1}, True, "k=True is not possible"),
        ("a b", {"a": 1}, None, "k=None is not possible"),
        ("a b", {"a": -1}, 1, "The gain -1 of 'a' is not possible"),
        ("a b", {"b": 1, "z": math.nan}, 1, "The gain nan of 'z' is not possible"),
        ("a b", {"a": math.inf}, 1, "The gain inf of 'a' is not possible"),
        ("a b a", {"a": 1}, 1, "'a' occurs twice"),
        (["a", {"b"}, ["b"]], {"a": 1}, 1, "'b' occurs twice"),
        ({"a": 1.0}, {"a": 1}, 1, "is not a ranking"),
    ],
)
def test_invalid_arguments(measure, ranking, gains, k, message):
    with pytest.raises(tw.InputError, match=message):
        measure(ranking, gains, k)


@pytest.mark.parametrize("others", [-1, -0.5, math.nan])
def test_invalid_others(others):
    with pytest.raises(tw.InputError, match=f"others={others} is not a number of items"):
        rankings.recall_at("a", {"a": 1}, 1, others=others)


# -- sets -----------------------------------------------------------------------------------------------------------


@given(observed=st.sets(st.integers(0, 6)), reference=st.sets(st.integers(0, 6)))
def test_recall_is_precision_with_the_roles_exchanged(observed, reference):
    assert rankings.recall(observed, reference) == rankings.precision(reference, observed)
    hits = sum(item in reference for item in observed)
    assert rankings.precision(observed, reference) * len(observed) == pytest.approx(hits)
    assert rankings.recall(observed, reference) * len(reference) == pytest.approx(hits)
    if not observed or not reference:
        assert rankings.precision(observed, reference) == rankings.recall(observed, reference) == 0


def test_an_item_counts_once_in_a_set():
    assert rankings.precision(["a", "a", "b"], iter("ac")) == 0.5
    assert rankings.recall("a b", ["a", "a", "a", "c"]) == 0.5
