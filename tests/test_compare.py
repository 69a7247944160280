"""Comparisons against enumeration and random orders; rankings; tools that disagree; what is shown; limits."""

from __future__ import annotations

import json
import math
import random
import re
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import oracle_compare as oracle
import tiewise as tw
from tiewise.analysis.comparison import distribution, result, shared_order, tie_orders
from tiewise.analysis.comparison.distribution import Distribution, add_distributions, compare_distributions
from tiewise.analysis.comparison.pair import Answers
from tiewise.analysis.significance import ATOL
from tiewise.metrics import enumeration
from tiewise.metrics.definition import Sampling
from tiewise.metrics.grouped_judgments import GroupedJudgments

DOCS = "abcde"
MEASURES = [
    ("nDCG@2", "nDCG", 2, {}),
    ("nDCG", "nDCG", None, {}),
    ("AP", "AP", None, {}),
    ("RR", "RR", None, {}),
    ("P@2", "P", 2, {}),
    ("Success@1", "Success", 1, {}),
    ("ERR(max=2)", "ERR", None, {"max": 2}),
    ("Bpref", "Bpref", None, {}),
    ("AUC", "AUC", None, {}),
    ("RBP(p=0.5)", "RBP", None, {"p": 0.5}),
    ("Judged@2", "Judged", 2, {}),
    ("Rprec", "Rprec", None, {}),
]


def lists(queries: int, most: int) -> st.SearchStrategy:
    """Lists with ties; the last document of each is judged, so that run and judgments have one in common."""
    one = st.dictionaries(st.sampled_from(DOCS[:most]), st.sampled_from([1.0, 2.0]), min_size=1)
    return st.fixed_dictionaries({f"q{i}": one.map(lambda docs: docs | {"z": 0.0}) for i in range(queries)})


def judgments(queries: int) -> st.SearchStrategy:
    one = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0, 1, 2]), min_size=1)
    return st.fixed_dictionaries({f"q{i}": one.map(lambda docs: docs | {"z": 0}) for i in range(queries)})


def compared(judged, left, right, measure, **options) -> tw.Compared:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tw.CutWarning)
        runs = {"A": left, "B": right} if right is not None else left
        return tw.compare(judged, runs, measure, **options)


def facts(found: dict[float, Fraction]) -> dict[str, float]:
    mean = float(sum(gap * chance for gap, chance in found.items()))
    spread = math.sqrt(float(sum((gap - mean) ** 2 * float(chance) for gap, chance in found.items())))
    return {
        "expected": mean,
        "minimum": min(found),
        "maximum": max(found),
        "std": spread,
        "probability": float(sum(chance for gap, chance in found.items() if gap > 1e-7)),
        "probability_less": float(sum(chance for gap, chance in found.items() if gap < -1e-7)),
        "certain": min(found) > 1e-7 or max(found) < -1e-7,
    }


def check(pair, wanted: dict[str, float]) -> None:
    for name in ("expected", "minimum", "maximum", "std"):
        assert getattr(pair.difference, name) == pytest.approx(wanted[name], abs=1e-7), name
    for name in ("probability", "probability_less"):
        assert getattr(pair, name) == pytest.approx(wanted[name], abs=1e-9), name
    assert pair.probability + pair.probability_equal + pair.probability_less == pytest.approx(1)
    assert pair.certain is wanted["certain"]
    assert pair.method == "exact"


@pytest.mark.parametrize("orders", ["independent", "per-query"])
@pytest.mark.parametrize(("measure", "name", "k", "params"), MEASURES, ids=[one[0] for one in MEASURES])
@settings(max_examples=15, deadline=None)
@given(judged=judgments(2), left=lists(2, 4), right=lists(2, 4))
def test_independent_and_per_query_orders_equal_enumeration(orders, measure, name, k, params, judged, left, right):
    wanted = oracle.differences(name, k, judged, left, right, orders=orders, **params)
    pair = compared(judged, left, right, measure, orders=orders).pair("A", "B")
    check(pair, facts(wanted))
    assert pair.exact_range
    back = compared(judged, left, right, measure, orders=orders).pair("B", "A")
    assert back.probability == pytest.approx(pair.probability_less)
    assert back.difference.minimum == pytest.approx(-pair.difference.maximum)


# -- one order of all documents ---------------------------------------------------------------------------------------

TWO = {"q1": {"a": 1, "b": 0}, "q2": {"b": 1, "a": 0}}
LEVEL = {query: {"a": 1.0, "b": 1.0} for query in TWO}
A_FIRST = {query: {"a": 2.0, "b": 1.0} for query in TWO}


def test_one_order_of_all_documents_links_queries():
    """Whichever of a and b is first, it is relevant in one query and not in the other: both systems score .75."""
    found = compared(TWO, LEVEL, A_FIRST, "RR", orders="shared", complete=True)
    pair = found.pair("A", "B")
    assert (pair.difference.minimum, pair.difference.maximum, pair.difference.std) == (0, 0, 0)
    assert pair.probability_equal == 1 and pair.exact_range
    alone = found.estimate("A")
    assert (alone.minimum, alone.expected, alone.maximum, alone.std) == (0.75, 0.75, 0.75, 0)
    assert found.ranking()["minimum"] == found.ranking()["maximum"] == [0.75, 0.75]
    apart = compared(TWO, LEVEL, A_FIRST, "RR", orders="per-query", complete=True).pair("A", "B")
    assert (apart.difference.minimum, apart.difference.maximum) == (-0.25, 0.25)
    assert apart.difference.std == pytest.approx(math.sqrt(2 / 16) / 2) and apart.exact_range


@pytest.mark.parametrize(("measure", "name", "k", "params"), MEASURES, ids=[one[0] for one in MEASURES])
@settings(max_examples=15, deadline=None)
@given(judged=judgments(3), left=lists(3, 4), right=lists(3, 4))
def test_shared_orders_equal_enumeration(measure, name, k, params, judged, left, right):
    wanted = oracle.differences(name, k, judged, left, right, orders="shared", **params)
    found = compared(judged, left, right, measure, orders="shared")
    pair = found.pair("A", "B")
    check(pair, facts(wanted))
    assert pair.exact_range and pair.std_error is None and pair.probability_error is None
    alone = facts(oracle.differences(name, k, judged, left, {}, orders="shared", **params))
    mine = found.estimate("A")
    for part in ("expected", "minimum", "maximum", "std"):
        assert getattr(mine, part) == pytest.approx(alone[part], abs=1e-7), part


@settings(max_examples=40, deadline=None)
@given(judged=judgments(3), left=lists(3, 4), right=lists(3, 4))
def test_shared_orders_with_many_arrangements_are_bounded_and_sampled(judged, left, right):
    """With few arrangements allowed, single queries are still enumerated, but queries that share documents are not."""
    wanted = facts(oracle.differences("nDCG", 2, judged, left, right, orders="shared"))
    wide = compared(judged, left, right, "nDCG@2", orders="per-query").pair("A", "B")
    for most in (3, 24):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(enumeration, "MAX_ARRANGEMENTS", most)
            enumeration.arrange.cache_clear()
            pair = compared(judged, left, right, "nDCG@2", orders="shared").pair("A", "B")
        enumeration.arrange.cache_clear()
        low, high = pair.difference.minimum, pair.difference.maximum
        assert low <= wanted["minimum"] + 1e-9 and wanted["maximum"] <= high + 1e-9
        if pair.exact_range:
            assert (low, high) == pytest.approx((wanted["minimum"], wanted["maximum"]), abs=1e-9)
        if most == 24:
            assert low >= wide.difference.minimum - 1e-9 and high <= wide.difference.maximum + 1e-9
        assert pair.difference.expected == pytest.approx(wanted["expected"], abs=1e-7)
        if pair.method == "exact":
            assert pair.probability == pytest.approx(wanted["probability"], abs=1e-9)
        else:
            assert pair.method == "sampled (n=1,000)"
            assert pair.probability == pytest.approx(wanted["probability"], abs=5 * pair.probability_error + 1e-3)
        if pair.std_error is not None:
            assert pair.difference.std == pytest.approx(wanted["std"], abs=5 * pair.std_error + 1e-3)


def chain(*groups: str) -> tuple[dict, dict, dict]:
    """A query for each group of tied documents, of which the first is relevant; the other run has it second."""
    judged = {f"q{i}": {docs[0]: 1} for i, docs in enumerate(groups)}
    tied = {f"q{i}": dict.fromkeys(docs, 1.0) for i, docs in enumerate(groups)}
    return judged, tied, {f"q{i}": {"x": 2.0, docs[0]: 1.0} for i, docs in enumerate(groups)}


@pytest.mark.parametrize(
    ("groups", "reached"),
    [
        (("ab", "bc", "cd"), True),  # a chain: any orders of the three pairs go together
        (("ab", "cb", "db", "eb"), True),
        (("ab", "bc", "ca"), False),  # no two queries have a pair in common, but a before b, b before c, c before a
        (("ab", "ba"), False),
    ],
)
def test_a_range_is_exact_where_documents_link_queries_without_a_cycle(monkeypatch, groups, reached):
    judged, tied, second = chain(*groups)
    wanted = facts(oracle.differences("RR", None, judged, tied, second, orders="shared"))
    exact = compared(judged, tied, second, "RR", orders="shared", complete=True).pair("A", "B")
    check(exact, wanted)
    monkeypatch.setattr(enumeration, "MAX_ARRANGEMENTS", 2)
    enumeration.arrange.cache_clear()
    pair = compared(judged, tied, second, "RR", orders="shared", complete=True).pair("A", "B")
    enumeration.arrange.cache_clear()
    if len(set("".join(groups))) > 2:
        assert pair.method == "sampled (n=1,000)" and pair.exact_range is reached
    ends = pair.difference.minimum, pair.difference.maximum
    assert (ends == pytest.approx((wanted["minimum"], wanted["maximum"]))) is (reached or groups == ("ab", "ba"))


def test_shared_orders_equal_per_query_orders_without_common_documents():
    judged, left, right = large(5, 8, seed=3, levels=3)
    apart = [
        {q: {f"{q}{doc}": number for doc, number in docs.items()} for q, docs in table.items()}
        for table in (judged, left, right)
    ]
    for tables, same in ((apart, True), ((judged, left, right), False)):
        pairs = [compared(*tables, "nDCG@2", orders=orders).pair("A", "B") for orders in ("per-query", "shared")]
        assert (pairs[0].to_dict() == pairs[1].to_dict()) is same


def test_systems_called_as_their_columns_are_named_once():
    run = {"q": {"d": 1.0, "e": 0.5}}
    assert tw.compare({"q": {"d": 1}}, {"A": run, "B": run}, "RR").to_text().startswith("RR · A against B · 1 query")


def test_unknown_orders_name_all_three():
    with pytest.raises(tw.InputError, match="Use 'independent', 'per-query' or 'shared'"):
        compared(TWO, LEVEL, A_FIRST, "RR", orders="global")


def test_equal_runs_are_equal_in_one_order_but_not_in_independent_orders():
    judged, run = {"q": {"a": 1, "b": 0}}, {"q": {"a": 1.0, "b": 1.0}}
    together = compared(judged, run, dict(run), "RR", orders="shared").pair("A", "B")
    assert (together.difference.minimum, together.difference.maximum, together.probability_equal) == (0, 0, 1)
    assert not together.certain  # level is not ahead
    apart = compared(judged, run, dict(run), "RR").pair("A", "B")
    assert (apart.difference.minimum, apart.difference.maximum) == (-0.5, 0.5)
    assert (apart.probability, apart.probability_equal, apart.probability_less) == (0.25, 0.5, 0.25)


def large(queries: int, depth: int, seed: int, levels: int) -> tuple[dict, dict, dict]:
    """Judgments and two runs with large tie groups."""
    rng = random.Random(seed)
    judged = {f"q{i}": {f"d{j}": rng.choice([0, 0, 1, 2]) for j in range(depth // 2)} for i in range(queries)}
    runs = [
        {query: {f"d{j}": float(rng.randrange(levels)) for j in range(depth)} for query in judged} for _ in range(2)
    ]
    return judged, *runs


def random_differences(judged, left, right, k, orders, draws=4000) -> np.ndarray:
    """Mean differences of nDCG@k in random orders, sampled without the library."""
    rng = random.Random(5)
    sampled = []
    for _ in range(draws):
        total = 0.0
        docs = sorted({doc for run in (left, right) for some in run.values() for doc in some})
        one = tuple(rng.sample(docs, len(docs)))
        for query, labels in judged.items():
            one = one if orders == "shared" else tuple(rng.sample(docs, len(docs)))
            two = tuple(rng.sample(docs, len(docs))) if orders == "independent" else one
            total += oracle.value("nDCG", k, labels, oracle.by_priority(left[query], one))
            total -= oracle.value("nDCG", k, labels, oracle.by_priority(right[query], two))
        sampled.append(total / len(judged))
    return np.array(sampled)


@pytest.mark.parametrize(
    ("queries", "depth", "k", "orders", "levels", "seed", "method"),
    [
        (4, 12, 5, "independent", 3, 6, "exact"),
        (25, 12, 5, "independent", 3, 2, "sampled (n=10,000)"),
        (6, 30, None, "independent", 2, 0, "sampled (n=2,000)"),  # too many orders to enumerate: lists are sampled
        (40, 30, None, "independent", 2, 0, "sampled (n=2,000)"),
        (6, 16, 5, "per-query", 3, 2, "sampled (n=2,000)"),
        (6, 16, 5, "shared", 3, 2, "sampled (n=2,000)"),
        (60, 12, 5, "shared", 3, 1, "sampled (n=2,000)"),
    ],
)
def test_larger_cases_agree_with_random_orders(queries, depth, k, orders, levels, seed, method):
    judged, left, right = large(queries, depth, seed, levels)
    measure = "nDCG" if k is None else f"nDCG@{k}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tw.CutWarning)
        pair = tw.compare(judged, {"A": left, "B": right}, measure, orders=orders, samples=2000).pair("A", "B")
    assert pair.method == method
    sampled = random_differences(judged, left, right, k, orders, draws=1500 if queries < 30 else 400)
    error = 0.5 / math.sqrt(len(sampled))
    assert 0.2 < pair.probability < 0.8  # or the case would show nothing
    assert pair.probability == pytest.approx(np.mean(sampled > 1e-9), abs=4 * error)
    assert pair.difference.expected == pytest.approx(sampled.mean(), abs=4 * sampled.std() / math.sqrt(len(sampled)))
    assert pair.difference.std == pytest.approx(sampled.std(), rel=6 * error)
    assert pair.difference.minimum <= sampled.min() and sampled.max() <= pair.difference.maximum


def test_samples_are_random_orders_in_compare_as_in_evaluate():
    """BPM has no closed form: its statistics come from random orders of ties, in `compare` as in `evaluate`."""
    rng = np.random.default_rng(0)
    labels = {f"d{i:02}": int(label) for i, label in enumerate(rng.integers(0, 4, 30))}
    qrels = {"q": labels, "r": labels}
    tied = {query: dict.fromkeys(labels, 1.0) for query in qrels}
    runs = {"tied": tied, "same": tied}
    options = {"complete": True, "seed": 3}
    name = "BPM(max_rel=3)@20"
    for samples in (100, 1000):
        alone = tw.evaluate(qrels, tied, name, samples=samples, **options)[name]
        found = tw.compare(qrels, runs, name, samples=samples, **options).estimate("tied")
        assert alone.method["std"] == "sampled" and (found.expected, found.std) == (alone.expected, alone.std)
        more = tw.compare(qrels, runs, name, samples=samples, **options).estimate("tied")
        assert more == found
    few = tw.compare(qrels, runs, name, samples=100, **options).estimate("tied")
    assert few.standard_error > 2 * found.standard_error


def constant_run(queries: int = 40, n: int = 1000):
    """One relevant document among many tied ones, against a run that has it where its reciprocal rank is the mean."""
    judged = {f"q{i}": {"d": 1} for i in range(queries)}
    at = round(n / sum(1 / rank for rank in range(1, n + 1)))
    tied = {query: {"d": 1.0} | {f"x{i}": 1.0 for i in range(n - 1)} for query in judged}
    fixed = {query: {f"x{i}": float(n - i) for i in range(at - 1)} | {"d": 0.0} for query in judged}
    return judged, tied, fixed, at


def test_skewed_measures_are_sampled():
    judged, tied, fixed, at = constant_run()
    pair = compared(judged, tied, fixed, "RR", complete=True, oblivious=None).pair("A", "B")
    sampled = (1 / np.random.default_rng(0).integers(1, 1001, (20_000, 40))).mean(axis=1)
    assert pair.method == "sampled (n=1,000)"
    assert pair.probability == pytest.approx(np.mean(sampled > 1 / at), abs=0.04)  # a normal distribution says .5


def test_an_event_that_no_sample_shows_is_not_impossible():
    found = compare_distributions(Distribution.of_samples(np.ones(99)), Distribution.of_constant(0.0))
    assert (found.greater, found.equal, found.less) == pytest.approx((0.995, 0, 0.005))
    assert found.restrict(0.0, 1.0).less == 0 and found.restrict(0.0, 1.0).equal == pytest.approx(0.005)
    assert found.restrict(-1.0, 1.0) == found


def test_always_and_never_are_about_all_orders():
    judged = {f"q{i}": {"a": 1} for i in range(12)}
    tied = {query: {"a": 2.0} | dict.fromkeys("bcdefghi", 2.0) for query in judged}
    late = {query: {"b": 9.0} | {f"x{i}": 8.0 for i in range(6)} | {"a": 1.0} for query in judged}
    found = compared(judged, tied, late, "RR", complete=True)
    pair = found.pair("A", "B")
    assert pair.probability > 0.9995 and not pair.certain  # all twelve must fall on the last rank
    assert "some tie orders put B ahead" in pair.verdict and "A leads in >99.9% of random orders" in pair.verdict
    text = found.to_markdown()
    assert ">99.9%" in text and "always" not in text


def test_equal_runs_do_not_change_their_order():
    sure = {query: {"a": 3.0, "b": 2.0, "c": 1.0} for query in FLIP}
    text = compared(FLIP, {"A": sure, "B": sure, "C": sure}, None, "RR", complete=True).to_text(explain=True)
    assert "No order of ties changes a rank." in text and "stand differently" not in text
    text = compared(FLIP, {"A": TIED, "B": SECOND, "C": sure}, None, "RR@10", complete=True).to_text()
    assert "Ranks 2 and 3 depend on the order of ties; tools disagree about them." in text


def test_how_to_read_says_what_was_tested_at_once():
    runs = {"A": TIED, "B": SECOND, "C": SECOND}
    text = compared(FLIP, runs, None, "RR", baseline="A", complete=True).to_markdown(explain=True)
    assert "Intervals and p are by the largest paired t-statistic (max-t), at once for all runs against A." in text
    text = compared(FLIP, runs, None, ["RR", "AP"], complete=True, test="tukey").to_markdown(explain=True)
    assert "(randomised Tukey HSD), at once for all pairs of runs in all 2 measures, because the best one is" in text
    text = compared(FLIP, TIED, SECOND, "RR", complete=True).to_markdown(explain=True)
    assert "by Student's paired t-test" in text


def test_exact_range_is_false_if_the_range_is_a_bound():
    judged, left, right = large(6, 16, seed=1, levels=2)
    pair = compared(judged, left, right, "nDCG@5", orders="shared").pair("A", "B")
    wide = compared(judged, left, right, "nDCG@5").pair("A", "B")
    assert not pair.exact_range and wide.exact_range
    assert pair.difference.minimum >= wide.difference.minimum - 1e-12
    assert pair.difference.maximum <= wide.difference.maximum + 1e-12


def test_samples_do_not_depend_on_other_systems():
    judged, left, right = large(6, 16, seed=2, levels=2)
    alone = compared(judged, left, right, "nDCG@5", orders="shared").pair("A", "B")
    third = {"A": left, "C": {query: {"d1": 1.0, "d0": 1.0} for query in judged}, "B": right}
    among = compared(judged, third, None, "nDCG@5", orders="shared").pair("A", "B")
    assert (alone.probability, alone.difference.std) == (among.probability, among.difference.std)


# -- distributions ----------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=4), min_size=1, max_size=5),
    st.integers(-3, 3),
)
def test_sums_of_distributions(values, constant):
    parts = [Distribution.of_outcomes(np.array(some, float) / 7, np.full(len(some), 1 / len(some))) for some in values]
    total = add_distributions(parts, samples=100, seed=0).shift(constant / 7)
    found = compare_distributions(total, Distribution.of_constant(0.0))
    sums = [constant]
    for some in values:
        sums = [total + one for total in sums for one in some]
    assert found.greater == pytest.approx(np.mean([total > 0 for total in sums]))
    assert found.equal == pytest.approx(np.mean([total == 0 for total in sums]), abs=1e-12)
    assert found.less == pytest.approx(np.mean([total < 0 for total in sums]))
    assert found.method == "exact" and found.error is None


@given(st.lists(st.sets(st.integers(0, 300), min_size=1, max_size=12), min_size=1, max_size=6))
def test_sums_are_sampled_if_a_convolution_has_too_many_terms(values):
    """All convolutions count, in the order of their sizes, whatever is known before the last of them."""
    parts = [Distribution(np.array(sorted(some)) / 7, np.full(len(some), 1 / len(some))) for some in values]
    total, terms = {0}, []
    for some in sorted(values, key=len):
        terms.append(len(total) * len(some))
        total = {one + other for one in total for other in some}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(distribution, "MAX_TERMS", 100)
        assert (add_distributions(parts, samples=10, seed=0).samples is None) == (max(terms) <= 100)


def some_distributions(n: int, values: int, seed: int, lean: float = 1.0) -> list[Distribution]:
    """Distributions of different values; the smaller `lean`, the likelier one of the values."""
    rng = np.random.default_rng(seed)
    return [
        Distribution(np.sort(rng.normal(0, 1, values) * rng.gamma(1)), rng.dirichlet([lean] * values)) for _ in range(n)
    ]


@pytest.mark.parametrize(("n", "values"), [(40, 3), (30, 80), (150, 5), (6, 900), (300, 3)])
def test_sampled_sums_are_within_their_standard_error(n, values):
    """Against a convolution on a fine grid: a value's probability is split between its two neighbours on it."""
    parts = some_distributions(n, values, seed=n)
    total = add_distributions(parts, samples=20_000, seed=0)
    assert total.samples == len(total) == 20_000 and (np.diff(total.values) >= 0).all()
    std = math.sqrt(sum(part.variance for part in parts))
    assert total.mean == pytest.approx(sum(part.mean for part in parts), abs=4 * std / math.sqrt(20_000))
    assert math.sqrt(total.variance) == pytest.approx(std, rel=0.05)
    low, high = sum(part.values[0] for part in parts), sum(part.values[-1] for part in parts)
    cells = 1 << 19
    step = (high - low) / (cells - len(parts) - 2)
    waves = np.ones(cells // 2 + 1, dtype=complex)
    for part in parts:
        place, rest = np.divmod((part.values - part.values[0]) / step, 1)
        grid = np.bincount(place.astype(int), part.probabilities * (1 - rest), cells)
        grid += np.bincount(place.astype(int) + 1, part.probabilities * rest, cells)
        waves *= np.fft.rfft(grid)
    exact = np.cumsum(np.fft.irfft(waves, cells))
    for quantile in (0.001, 0.02, 0.2, 0.5, 0.77, 0.99):
        at = low + step * np.searchsorted(exact, quantile)
        found = compare_distributions(Distribution.of_constant(at), total)
        assert found.greater == pytest.approx(quantile, abs=4 * found.error)


def test_sampled_sums_may_be_equal():
    parts = some_distributions(18, 3, seed=1, lean=0.02)  # each is nearly certain
    a = add_distributions(parts, samples=20_000, seed=0)
    b = add_distributions([*parts, Distribution(np.array([0.0, np.pi]), np.array([0.5, 0.5]))], samples=20_000, seed=1)
    equal = 0.5 * math.prod(float((part.probabilities**2).sum()) for part in parts)  # all parts have the same value
    assert a.samples == b.samples == 20_000
    assert equal > 0.1 and compare_distributions(a, b).equal == pytest.approx(equal, abs=4 * 0.5 / math.sqrt(20_000))


def test_many_distributions_with_few_sums_are_exact():
    total = add_distributions([Distribution(np.array([0.0, 0.1]), np.array([0.5, 0.5]))] * 500, samples=100, seed=0)
    assert total.samples is None and len(total) == 501
    assert compare_distributions(total, Distribution.of_constant(25.0)).equal == pytest.approx(
        math.comb(500, 250) / 2**500
    )


def test_arrangements_are_all_orders_with_their_probabilities():
    found = enumeration.arrange((2, 1, 2), 3)
    assert found.probabilities.sum() == pytest.approx(1)
    assert len({tuple(kinds) for kinds in found.kinds.tolist()}) == len(found)
    probability = dict(zip(map(tuple, found.kinds.tolist()), found.probabilities.tolist(), strict=True))
    assert probability[0, 1, 0] == pytest.approx(2 / 5 * 1 / 4 * 1 / 3)
    assert enumeration.arrange((20, 20), 40) is None


# -- queries ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three() -> tw.Compared:
    judged, left, right = large(30, 10, seed=3, levels=8)
    last = {query: {**{f"x{j}": 9.0 - j for j in range(6)}, "d0": 1.0} for query in judged}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tw.CutWarning)
        return tw.compare(judged, {"A": left, "B": right, "none": last}, ["nDCG@5", "AP"])


def test_a_pair_agrees_with_its_per_query_differences(three):
    pair, rows = three.pair("A", "B", "AP"), three.per_query("A", "B", "AP")
    each = np.array(rows["difference"])
    assert pair.difference.expected == pytest.approx(each.mean())
    assert (pair.wins, pair.losses) == ((each > 1e-12).sum(), (each < -1e-12).sum())
    assert pair.wins + pair.losses + pair.equal == pair.queries == len(rows) == 30
    assert pair.effect == pytest.approx(each.mean() / each.std(ddof=1))
    assert pair.ci[0] < pair.difference.expected < pair.ci[1]
    variance = each.var(ddof=1) / 30 + pair.difference.std**2
    freedom = variance**2 / ((each.var(ddof=1) / 30) ** 2 / 29)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(variance)
    assert pair.ci_order == pytest.approx([each.mean() - half, each.mean() + half], rel=1e-12)
    report = three.estimate("A", "AP")
    assert report.expected - three.estimate("B", "AP").expected == pytest.approx(pair.difference.expected)


def test_both_directions_agree(three):
    ahead, behind = three.pair("A", "none", "AP"), three.pair("none", "A", "AP")
    assert ahead.p_value == behind.p_value and behind.ci == pytest.approx((-ahead.ci[1], -ahead.ci[0]))
    assert (ahead.wins, ahead.losses) == (behind.losses, behind.wins)
    assert ahead.certain and behind.certain and ahead.probability == behind.probability_less == 1


def test_all_pairs_and_measures_are_one_family(three):
    """In every row the interval excludes 0 exactly if p < .05; a family of more differences has wider intervals."""
    pairs = list(three.pairs())
    assert [pair.family for pair in pairs] == [6] * 6
    for pair in pairs:
        assert pair.is_shown is (pair.p_value < 0.05) is (not pair.ci[0] <= 0 <= pair.ci[1])
        alone = three.unadjusted_tests(pair.a, pair.b, pair.measure)
        assert alone["t"] <= pair.p_value <= 1 and set(alone) == {"t", "permutation", "wilcoxon"}


def test_selected_measures_are_tested_on_their_own(three):
    alone = three.select("AP")
    assert alone.measures == (tw.AP,) and alone.systems == three.systems
    for pair in alone.pairs():
        both = three.pair(pair.a, pair.b, "AP")
        assert pair.family == 3 and pair.difference == both.difference
        assert pair.p_value <= both.p_value and pair.ci[1] - pair.ci[0] < both.ci[1] - both.ci[0]
    with pytest.raises(tw.MeasureError, match="RR was not compared"):
        three.select(["AP", "RR"])


def test_with_a_baseline_the_others_are_compared_with_it(three):
    judged, left, right = large(15, 6, seed=4, levels=8)
    runs = {"A": left, "B": right, "C": {query: dict.fromkeys(docs, 1.0) for query, docs in left.items()}}
    found = compared(judged, runs, None, "RR", baseline="B", complete=True)
    assert [(pair.a, pair.b, pair.family) for pair in found.pairs()] == [("A", "B", 2), ("C", "B", 2)]
    whole = compared(judged, runs, None, "RR", complete=True)
    rows, pairs = found.pair("B", "A").ci, whole.pair("B", "A").ci
    assert rows[1] - rows[0] < pairs[1] - pairs[0]
    assert found.pair("A", "C").to_dict() == whole.pair("A", "C").to_dict()  # it is no row: it is one of all pairs
    assert found.ranking()["rank_low"] == whole.ranking()["rank_low"]


@pytest.mark.parametrize("test", ["max-t", "tukey"])
def test_tests_do_not_depend_on_names_or_on_the_order_of_runs_and_measures(three, test):
    judged, left, right = large(30, 10, seed=3, levels=8)
    last = {query: {"d1": 2.0, "d0": 1.0} for query in judged}
    found = compared(judged, {"A": left, "B": right, "C": last}, None, ["RR", "AP"], test=test, complete=True)
    renamed = compared(judged, {"z": last, "y": right, "x": left}, None, ["AP", "RR"], test=test, complete=True)
    for a, b, x, y in (("A", "B", "x", "y"), ("C", "A", "z", "x")):
        one, other = found.pair(a, b, "AP"), renamed.pair(x, y, "AP")
        assert (one.p_value, one.ci) == (other.p_value, other.ci)


def test_ranks_follow_from_the_differences_that_are_shown(three):
    for measure in three.measures:
        for row in three.ranking(measure):
            others = [three.pair(row["system"], name, measure) for name in three.systems if name != row["system"]]
            better = sum(pair.is_shown and pair.difference.expected < 0 for pair in others)
            worse = sum(pair.is_shown and pair.difference.expected > 0 for pair in others)
            assert (row["rank_low"], row["rank_high"]) == (1 + better, len(three.systems) - worse)


# -- rankings -----------------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(judged=judgments(2), runs=st.fixed_dictionaries({name: lists(2, 3) for name in "ABC"}))
def test_rank_intervals_equal_enumeration(judged, runs):
    board = compared(judged, runs, None, "nDCG@2").ranking()
    wanted = oracle.rank_intervals("nDCG", 2, judged, runs)
    assert {row["system"]: (row["rank_best"], row["rank_worst"]) for row in board} == wanted
    assert board["expected"] == sorted(board["expected"], reverse=True)


@settings(max_examples=20, deadline=None)
@given(judged=judgments(2), runs=st.fixed_dictionaries({name: lists(2, 4) for name in "ABC"}))
@pytest.mark.parametrize("orders", ["per-query", "shared"])
def test_rank_bounds_in_one_order_contain_enumerated_ranks(orders, judged, runs):
    board = compared(judged, runs, None, "nDCG@2", orders=orders).ranking()
    wanted = oracle.rank_intervals_together("nDCG", 2, judged, runs, orders=orders)
    wide = {row["system"]: row for row in compared(judged, runs, None, "nDCG@2").ranking()}
    for row in board:
        best, worst = wanted[row["system"]]
        assert row["rank_best"] <= best <= worst <= row["rank_worst"]
        assert wide[row["system"]]["rank_best"] <= row["rank_best"]
        assert row["rank_worst"] <= wide[row["system"]]["rank_worst"]
        assert not row["ranks_reached"] or (row["rank_best"], row["rank_worst"]) == (best, worst)


def test_equal_runs_share_their_rank_in_one_order(monkeypatch):
    runs = {"A": TIED, "B": dict(TIED), "C": SECOND}
    board = compared(FLIP, runs, None, "RR", orders="shared", complete=True).ranking()
    assert {row["system"]: (row["rank_best"], row["rank_worst"], row["ranks_reached"]) for row in board} == {
        "A": (1, 2, True),
        "B": (1, 2, True),
        "C": (1, 3, True),
    }
    apart = compared(FLIP, runs, None, "RR", complete=True).ranking()
    assert [row["rank_worst"] for row in apart] == [3, 3, 3] and all(apart["ranks_reached"])
    monkeypatch.setattr(result, "MAX_RANKED_BY_PAIRS", 2)
    many = compared(FLIP, runs, None, "RR", orders="shared", complete=True)
    assert [row["rank_worst"] for row in many.ranking()] == [3, 3, 3] and not any(many.ranking()["ranks_reached"])
    assert "rank by tie order, at most" in many.to_markdown()


def test_ranks_of_nearly_equal_means():
    means = np.random.default_rng(3).integers(0, 4, (200, 6)) / 4 + np.random.default_rng(4).choice(
        [0, 1e-14], (200, 6)
    )
    naive = [[1 + sum(other > own + ATOL for other in row) for own in row] for row in means.tolist()]
    assert tie_orders._ranks(means).tolist() == naive


def test_every_mean_lies_within_its_range():
    """The mean over queries is one sum everywhere: another order of additions leaves the range by a last bit."""
    rng = np.random.default_rng(5)
    for trial in range(20):
        judged = {f"q{i}": {f"d{j}": int(rng.random() < 0.3) for j in range(12)} for i in range(30 + trial)}
        runs = {name: {q: {d: rng.random() for d in docs} for q, docs in judged.items()} for name in "ABC"}
        found = tw.compare(judged, runs, ["nDCG@10", "AP", "RR"], complete=True)
        for measure in found.measures:
            for row in found.ranking(measure):
                assert row["minimum"] <= row["expected"] <= row["maximum"]
                assert row["expected"] == found.estimate(row["system"], measure).expected
            alone = tw.evaluate(judged, runs["A"], measure, complete=True)[measure]
            assert found.estimate("A", measure).expected == alone.expected == alone.minimum


def test_a_ranking_has_differences_from_the_best(three):
    board = three.ranking("AP")
    assert board[2]["system"] == "none" and board[2]["rank_low"] == board[2]["rank_high"] == 3
    assert (board[0]["rank_low"], board[0]["rank_high"]) == (1, 2)
    assert [board[0][name] for name in ("difference", "ci_low", "ci_high", "p_value")] == [None] * 4
    pair = three.pair("none", board[0]["system"], "AP")
    assert board[2]["difference"] == pytest.approx(pair.difference.expected)
    assert (board[2]["ci_low"], board[2]["ci_high"], board[2]["p_value"]) == (*pair.ci, pair.p_value)
    assert board[0]["oblivious"] < board[1]["oblivious"]  # the order of trec_eval turns the first two round
    assert three.tau("AP") == pytest.approx(1 / 3)


def test_tau_falls_if_one_order_changes_the_ranking():
    judged = {"q": {"a": 1, "z": 1}}
    runs = {"A": {"q": {"a": 1.0, "b": 1.0, "z": 0.0}}, "B": {"q": {"x": 2.0, "a": 1.0}}, "C": {"q": {"y": 1.0}}}
    found = compared(judged, runs, None, "RR", complete=True)  # trec_eval puts b before a, so A is level with B
    assert found.ranking()["system"] == ["A", "B", "C"]
    assert found.tau() == pytest.approx(2 / 3)
    assert compared(judged, runs, None, "RR", complete=True, oblivious=None).tau() is None


# -- tools ------------------------------------------------------------------------------------------------------------

FLIP = {"q1": {"a": 1, "b": 0, "c": 0}, "q2": {"a": 1, "b": 0, "c": 0}}
#: A ties everything; B ranks the relevant document second.
TIED = {query: {"a": 1.0, "b": 1.0, "c": 1.0} for query in FLIP}
SECOND = {query: {"b": 3.0, "a": 2.0, "c": 1.0} for query in FLIP}


def test_ranx_is_a_tool_of_two_runs_whose_ties_change_nothing():
    qrels = {"q": {"a": 1}, "p": {"a": 1}}
    runs = {"A": {q: {"a": 3.0, "b": 2.0} for q in qrels}, "B": {q: {"a": 1.0, "b": 2.0} for q in qrels}}
    pair = tw.compare(qrels, runs, "RR", complete=True).pair("A", "B")
    assert dict(zip(pair.tools["tool"], pair.tools["winner"], strict=True))["ranx"] == "A"


@pytest.mark.parametrize("measure", ["RR@10", "nDCG@10"])
def test_two_tools_name_different_winners(measure):
    """A run of one score is first or last, as its ids fall: by descending id the relevant document is last."""
    pair = compared(FLIP, TIED, SECOND, measure, complete=True).pair("A", "B")
    assert pair.flip and not pair.certain
    winners = dict(zip(pair.tools["tool"], pair.tools["winner"], strict=True))
    assert (winners["trec_eval"], winners["sentence-transformers"]) == ("B", "A")
    assert "Tools disagree, because they break ties differently: trec_eval, " in pair.verdict
    assert pair.verdict.endswith(" more name A.")
    printed = {row.tool: row.value for row in tw.evaluate(FLIP, TIED, measure, complete=True).oblivious_by_tool()}
    for row in pair.tools:
        if row["tool"] in printed:
            assert row["a"] == pytest.approx(printed[row["tool"]])
    assert not compared(FLIP, SECOND, TIED | {"q1": {"c": 2.0}}, "RR@10", complete=True).pair("A", "B").certain


def test_another_definition_is_not_a_flip():
    """Labels of 2 weigh more for most tools, and not for sentence-transformers: that is no matter of ties."""
    judged = {"q": {"a": 2, "b": 1, "c": 1, "d": 0, "e": 0}}
    graded = {"q": {"a": 9.0, "d": 8.0, "e": 7.0}}
    broad = {"q": {"b": 9.0, "c": 8.0, "d": 7.0}}
    pair = compared(judged, graded, broad, "nDCG@3").pair("A", "B")
    winners = dict(zip(pair.tools["tool"], pair.tools["winner"], strict=True))
    assert winners["trec_eval"] == "A" and winners["sentence-transformers"] == "B"
    assert not pair.flip and pair.certain


@pytest.mark.parametrize("orders", ["independent", "per-query", "shared"])
@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "ERR@10"])
def test_probabilities_do_not_depend_on_names_or_on_the_order_of_runs_and_rows(measure, orders):
    """Names, the order of the runs and the order of their rows change no bit of a sampled probability."""
    judged, left, right = large(25, 14, seed=1, levels=3)
    rng = random.Random(2)
    shuffled = {query: dict(rng.sample(list(docs.items()), len(docs))) for query, docs in left.items()}
    options = {"orders": orders, "complete": True}
    pair = tw.compare(judged, {"A": left, "B": right}, measure, **options).pair("A", "B")
    assert pair.method.startswith("sampled")
    other = tw.compare(judged, {"first": right, "last": shuffled}, measure, **options)
    for renamed in (other.pair("last", "first"), other.pair("first", "last")):
        same = renamed.a == "last"
        found = (renamed.probability, renamed.probability_less)
        assert found == ((pair.probability, pair.probability_less)[:: 1 if same else -1])
        assert renamed.difference.std == pair.difference.std
    assert pair.probability + pair.probability_equal + pair.probability_less == pytest.approx(1)


# -- sentences --------------------------------------------------------------------------------------------------------


def test_verdicts():
    """Both questions are answered in words, in each of the four cases and where there is nothing to answer."""
    level = compared(FLIP, SECOND, SECOND, "RR").pair("A", "B")
    assert level.verdict == "A and B have the same RR over these 2 queries."
    assert level.answers == Answers("equal", "no")
    # open, not significant
    pair = compared(FLIP, TIED, SECOND, "RR", complete=True).pair("B", "A")
    assert pair.answers == Answers("no", "no")
    assert (
        "B and A cannot be told apart in RR: some tie orders reverse the difference (−.1111, from −.5000 to +.1667), "
        "and so could other queries (p = .500). "
        "A leads in 55.6% of random orders."
    ) in pair.verdict
    # settled, significant
    judged, left, _ = large(30, 10, seed=3, levels=1000)
    last = {query: {"x": 2.0, "d0": 1.0} for query in judged}
    firm = compared(judged, left, last, "nDCG@10", complete=True).pair("B", "A")
    assert firm.answers == Answers("yes", "yes") and firm.answers.both_yes
    assert re.fullmatch(
        r"B scores lower than A in nDCG@10 in every order of ties \(.N(, from .N to .N)?\), and the difference is "
        r"significant over these 30 queries \(p [<=] \.\d{3}; 95% interval .N to .N\)\.".replace(".N", r"−\.\d{4}"),
        firm.verdict,
    )
    # settled, not significant
    first, second = {"a": 2.0, "b": 1.0}, {"b": 2.0, "a": 1.0}
    few = {f"q{n}": {"a": 1} for n in range(3)}
    chance = compared(few, dict.fromkeys(few, first), {**dict.fromkeys(few, first), "q0": second}, "RR")
    assert chance.pair("A", "B").answers == Answers("yes", "no")
    assert chance.pair("A", "B").verdict == (
        "On these 3 queries A scores higher than B in RR in every order of ties (+.1667), but other queries could "
        "reverse it (p = .423; 95% interval −.5504 to +.8838). This is not enough evidence that A is better."
    )
    # open, significant
    many = {f"q{n}": {"a": 1} for n in range(8)}
    tied = dict.fromkeys(many, dict.fromkeys("abc", 1.0))
    open_ = compared(many, tied, dict.fromkeys(many, second), "RR", complete=True, confidence=0.9).pair("A", "B")
    assert open_.answers == Answers("no", "yes") and not open_.answers.both_yes
    assert (
        "Averaged over tie orders A scores higher than B in RR, significantly over these 8 queries (+.1111; p = .008; "
        "90% interval +.1111 to +.1111), but some tie orders put B ahead (−.1667 to +.5000); A leads in 83.6% of "
        "random orders. Report the expected values."
    ) in open_.verdict
    # one query
    alone = compared({"q": {"a": 1}}, {"q": first}, {"q": second}, "RR").pair("A", "B")
    assert alone.answers == Answers("yes", "unknown") and "One query says nothing" in alone.verdict
    assert not any("decide" in one.verdict for one in (level, pair, firm, open_, alone))


def test_ties_that_only_make_two_systems_equal_do_not_reverse_them():
    judged = {"q": {"a": 1}}
    found = compared(judged, {"q": {"a": 1.0, "b": 0.5}}, {"q": {"a": 1.0, "b": 1.0}}, "RR", complete=True)
    assert "some tie orders make them equal (+.2500, from 0 to +.5000)" in found.pair("A", "B").verdict


def test_latex_marks_what_differs_significantly_from_a_baseline():
    """Eight queries of +1/2 are significant; ties that can undo it put the sign in brackets; two queries are not."""
    first, second, tied = {"a": 2.0, "b": 1.0}, {"b": 2.0, "a": 1.0}, dict.fromkeys("abc", 1.0)
    many = {f"q{n}": {"a": 1} for n in range(8)}
    runs = {name: dict.fromkeys(many, one) for name, one in (("base", second), ("tied", tied), ("first", first))}
    found = tw.compare(many, runs, "RR", baseline="base", complete=True)
    text = found.to_latex()
    assert r"first & \bfseries 1.000{\textsuperscript{$\dagger$}} \\" in text
    assert r"tied & 0.611{\textsuperscript{$\triangle$($\dagger$)}} \\" in text and r"base & 0.500 \\" in text
    caption = next(line for line in text.splitlines() if line.startswith(r"\caption"))
    assert caption == (
        r"\caption{RR of 3 runs, 8 queries, expected over all orders of ties. Bold: highest; $\triangle$ may be "
        r"highest in another order of ties. $\dagger$ higher than base (max-t over all rows, p \textless{} 0.05), in "
        r"brackets if not in every order.}"
    )
    lower = tw.compare(many, runs, "RR", baseline="first", complete=True).to_latex()
    assert r"base & 0.500{\textsuperscript{$\downarrow$$\dagger$}} \\" in lower and "higher than" not in lower
    assert "$\\downarrow$$\\dagger$ lower than first (max-t over all rows" in lower
    both = tw.compare(many, runs, "RR", complete=True)
    assert r"\bfseries 1.000{\textsuperscript{$\dagger$($\ddagger$)}}" in both.to_latex(baselines=["base", "tied"])
    assert "(max-t over all pairs, p" in both.to_latex(baselines=["base", "tied"])
    assert "dagger" not in both.to_latex() and "{[}0.333, 1.000]" in both.to_latex(intervals="ties")
    assert "In square brackets: 95\\% interval over queries" in both.to_latex(intervals="queries")
    few = {query: many[query] for query in ("q0", "q1")}
    two = {name: {query: run[query] for query in few} for name, run in runs.items() if name != "tied"}
    chance = tw.compare(few, two, "RR").to_latex()  # the first of two is the baseline
    assert "1.000 \\\\" in chance and "No difference from base is shown (paired t, p" in chance
    assert "dagger" not in chance and "approx" not in chance
    for baselines, words in ((["x"], "not one of the systems"), (["tied"], "those of differences from 'base'")):
        with pytest.raises(tw.InputError, match=words):
            found.to_latex(baselines=baselines)
    with pytest.raises(tw.InputError, match="intervals='both'"):
        found.to_latex(intervals="both")


def test_to_dict(three):
    plain = three.pair("A", "B", "nDCG@5").to_dict()
    for name in ("difference", "certain", "probability", "flip", "p_value", "ci", "verdict", "tools", "method"):
        assert name in plain
    assert set(plain["difference"]) == {"expected", "minimum", "maximum", "std", "method"}
    assert plain["difference"]["method"] == {"expected": "exact", "extremes": "exact", "std": "exact"}


# -- queries that are missing, counts, many systems -------------------------------------------------------------------


def test_queries_that_are_missing_from_one_system():
    judged = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}
    left = {"q1": {"a": 1.0}, "q2": {"a": 1.0}}
    right = {"q2": {"b": 2.0, "a": 1.0}, "q3": {"a": 1.0}}
    zero = compared(judged, left, right, "RR").pair("A", "B")
    assert zero.queries == 3 and zero.difference.expected == pytest.approx((1 + 0.5 - 1) / 3)
    skip = compared(judged, left, right, "RR", missing="skip")
    assert skip.queries == 1 and skip.pair("A", "B").difference.expected == pytest.approx(0.5)
    assert len(zero.tools) and not len(skip.pair("A", "B").tools)  # tools would count other queries for each
    assert any("queries that others lack" in note for note in skip.notes)
    with pytest.raises(tw.InputError, match="no query in common for RR"):
        compared(judged, {"q1": {"a": 1.0}}, {"q3": {"a": 1.0}}, "RR", missing="skip").pair("A", "B")


def test_only_some_of_the_compared_queries_are_tied():
    judged = {"q0": {"a": 1}, "q1": {"a": 1}, "q2": {"a": 1}}
    left = {"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 1.0}}
    right = {"q0": {"a": 1.0}, "q1": {"b": 1.0, "a": 1.0}, "q2": {"b": 1.0, "a": 1.0}}
    for orders in ("independent", "per-query", "shared"):
        pair = compared(judged, left, right, "RR", missing="skip", orders=orders, complete=True).pair("A", "B")
        some = {query: judged[query] for query in ("q1", "q2")}
        check(pair, facts(oracle.differences("RR", None, some, left, right, orders=orders)))


def test_counts_are_added_up():
    judged = {"q1": {"a": 1, "b": 1}, "q2": {"a": 1}}
    left, right = {"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 1.0}}, {"q1": {"a": 1.0}, "q2": {"a": 1.0}}
    found = compared(judged, left, right, "NumRelRet", complete=True)
    assert found.pair("A", "B").difference.expected == 1
    assert found.ranking()["expected"] == [3, 2]


def test_pairs_of_many_systems_are_those_with_the_best(monkeypatch):
    monkeypatch.setattr(result, "MAX_SYSTEMS", 3)
    monkeypatch.setattr(result, "MAX_CACHED", 0)
    judged, left, right = large(3, 5, seed=6, levels=3)
    runs = {"A": left, "B": right, "C": left, "D": right}
    found = compared(judged, runs, None, "nDCG@3", complete=True)
    best = found.ranking()["system"][0]
    assert [(pair.a, pair.b, pair.family) for pair in found.pairs()] == [
        (name, best, 6) for name in runs if name != best
    ]
    assert len(found.ranking()) == 4 and len(found.to_dict()["pairs"]) == 3
    assert len(list(compared(judged, runs, None, "nDCG@3", baseline="A", complete=True).pairs())) == 3


@pytest.mark.parametrize(("size", "held"), [(60, 3), (9, 5), (4, 4), (30, 1)])
def test_random_ranks_are_uniform_in_their_group(size, held):
    judged = tw.Qrels.from_dict({"q": {f"d{i}": i + 1 for i in range(held)}, "p": {"d0": 1, "z": 0}})
    run = {"q": dict.fromkeys((f"d{i}" for i in range(size)), 1.0), "p": {"x": 2.0, "d0": 1.0, "z": 1.0}}
    grouped = GroupedJudgments(tw.tie_groups(judged, tw.Run.from_dict(run)))
    draws = 3000
    orders = [order for order, _ in enumeration.sample_orders(grouped, Sampling(draws), least=1)]
    of_q = np.array([order.rank[order.query == 0][np.argsort(order.label[order.query == 0])] for order in orders])
    assert of_q.shape == (draws, held)
    assert all(len(set(row)) == held for row in of_q.tolist())
    for column in of_q.astype(int).T:
        seen = np.bincount(column, minlength=size + 1)[1:]
        assert len(seen) == size and abs(seen - draws / size).max() < 5 * math.sqrt(draws / size)


def test_tie_groups_are_compared_but_have_no_documents():
    judged = tw.Qrels.from_dict(FLIP)
    groups = tw.tie_groups(judged, tw.Run.from_dict(TIED))
    found = compared(judged, {"A": groups, "B": SECOND}, None, "RR", complete=True)
    assert found.pair("A", "B").probability == pytest.approx(5 / 9)
    assert not found.pair("A", "B").flip and not len(found.pair("A", "B").tools)
    with pytest.raises(tw.InputError, match="Run 'A': Tie groups hold counts, not rows"):
        compared(judged, {"A": groups, "B": SECOND}, None, "RR", complete=True, orders="shared")


def test_truncated_lists_are_named_once():
    with pytest.warns(tw.CutWarning, match="^Lists of A may have been cut inside a tie group: AP") as caught:
        found = tw.compare(FLIP, {"A": TIED, "B": SECOND}, "AP")
    assert len(caught) == 1
    assert sum("may have been cut" in note for note in found.notes) == 1


def cut_runs():
    """Three queries with two relevant documents. A finds both; B ends with a tie, so that one may have been cut off."""
    judged = {f"q{n}": {"a": 1, "b": 1} for n in range(3)}
    one, other = {"a": 3.0, "b": 2.0, "x": 1.0}, {"x": 3.0, "a": 1.0, "y": 1.0}
    return judged, {"A": dict.fromkeys(judged, one), "B": dict.fromkeys(judged, other)}


def test_lists_that_may_be_cut_are_in_the_verdict_and_the_note():
    judged, runs = cut_runs()
    with pytest.warns(tw.CutWarning):
        found = tw.compare(judged, runs, ["R@3", "P@1"])
    pair = found.pair("A", "B", "R@3")
    assert pair.certain and pair.may_be_cut and (pair.a_cut, pair.b_cut) == ((1.0, 1.0), (0.0, 1.0))
    assert "A scores higher than B in R@3 in every order of the documents listed (+.5000)" in pair.verdict
    assert not pair.open_by_cuts  # B can have the same value at best
    assert "R@3 .000 – 1.000. If none was cut, add complete=True." in found.notes[0]
    above = found.pair("A", "B", "P@1")
    assert not above.may_be_cut and "in every order of ties" in above.verdict
    whole = tw.compare(judged, runs, "R@3", complete=True).pair("A", "B")
    assert not whole.may_be_cut and "in every order of ties" in whole.verdict


def test_documents_that_may_be_missing_leave_the_order_open():
    judged, runs = cut_runs()
    first, last = {"a": 3.0, "x": 1.0}, {"x": 4.0, "y": 3.0, "z": 2.0, "a": 1.0}
    runs = {"A": dict.fromkeys(judged, first), "B": runs["B"], "C": dict.fromkeys(judged, last)}
    with pytest.warns(tw.CutWarning, match="1.000, so the order of A and B is open"):
        found = tw.compare(judged, runs, "R@3")
    assert found.open_by_cuts() == [["A", "B"]] and found.pair("A", "B").open_by_cuts
    text = found.to_markdown()
    assert found.pair("A", "B").verdict.endswith("counting what may be missing, which is higher is open.")
    assert "No order of the documents listed changes a rank; documents that may be missing could." in text
    with pytest.warns(tw.CutWarning):
        pair = tw.compare(judged, {name: runs[name] for name in "AB"}, "R@3")
    assert "open if cut, else equal" in pair.to_markdown()
    with pytest.warns(tw.CutWarning):
        pair = tw.compare(judged, {name: runs[name] for name in "BC"}, "R@3")
    assert "yes (of those listed)" in pair.to_markdown()


def test_a_run_given_twice_is_named():
    found = compared(FLIP, TIED, TIED, "RR", complete=True)
    assert any("A and B have the same values in every query" in note for note in found.notes)
    assert "the expected values are equal in every query" in found.pair("A", "B").verdict
    assert "other queries" not in found.pair("A", "B").verdict
    assert not any("same values" in note for note in compared(FLIP, TIED, SECOND, "RR", complete=True).notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"runs": {"A": TIED}}, "between two systems or more; 1 was given"),
        ({"runs": [TIED, SECOND]}, "Give the runs as {name: run}, not as a list"),
        ({"runs": "a.trec", "measures": "b.trec"}, "Give the runs as {name: run}, not as a str"),
        ({"runs": {1: TIED, "1": SECOND}}, "Two of the systems are called '1'"),
        ({"runs": {"A": TIED, "B": {"q1": {"a": "high"}}}}, "Run 'B': "),
        ({"baseline": "C"}, "The baseline 'C' is not one of the systems"),
        ({"orders": "same"}, "Unknown orders 'same'. Use 'independent', 'per-query' or 'shared'"),
        ({"test": "z"}, "Unknown test 'z'"),
        ({"confidence": 95}, "confidence lies between 0 and 0.999"),
        ({"confidence": "95%"}, "confidence lies between 0 and 0.999"),
        ({"confidence": 0.9999}, "confidence lies between 0 and 0.999"),
        ({"progress": True}, r"called with \(done, total\), or None, not True"),
        ({"seed": -1}, "seed is a whole number from 0 on"),
        ({"measures": "RBO"}, "compares two rankings"),
    ],
)
def test_invalid_input(change, message):
    with pytest.raises(tw.TiewiseError, match=message):
        tw.compare(FLIP, **({"runs": {"A": TIED, "B": SECOND}, "measures": "RR"} | change))


def test_a_list_of_paths_is_named_after_the_files(tmp_path):
    paths = [tmp_path / "tied.trec.gz", str(tmp_path / "second.trec")]
    for path, run in zip(paths, (TIED, SECOND), strict=True):
        tw.write_run(run, path)
    pair = tw.compare(FLIP, paths, "RR", complete=True).pair("tied", "second")
    assert pair.difference == compared(FLIP, TIED, SECOND, "RR", complete=True).pair("A", "B").difference
    assert tw.similarity(paths, complete=True).systems == ("tied", "second")


def test_a_note_on_several_systems_is_shown_once():
    judged = {**FLIP, "missing": {"a": 1}}
    runs = {"A": TIED, "B": SECOND, "C": {**SECOND, "missing": {"a": 1.0}, "unjudged": {"a": 1.0}}}
    notes = tw.compare(judged, runs, "RR", complete=True).notes
    assert [note for note in notes if "judged" in note] == [
        "A, B: 1 judged query is missing from the run and counted as 0.",
        "C: 1 query is not judged and left out.",
    ]
    many = tw.compare(judged, {f"s{place}": TIED for place in range(7)} | {"last": runs["C"]}, "RR", complete=True)
    assert any(note.startswith("s0, s1, s2, s3, s4 and 2 more: 1 judged query") for note in many.notes)
    all_ = tw.compare(judged, {f"s{place}": TIED for place in range(7)}, "RR", complete=True)
    assert any(note.startswith("all 7 runs: 1 judged query") for note in all_.notes)


def test_options_may_be_numpy_numbers():
    given = {"seed": np.int32(3), "confidence": np.float32(0.9)}
    found = tw.compare(FLIP, {"A": TIED, "B": SECOND}, "RR", complete=True, **given)
    assert json.dumps([found.seed]) == "[3]" and isinstance(found.confidence, float)


def test_unknown_systems_and_measures():
    found = compared(FLIP, TIED, SECOND, ["RR", "AP"], complete=True)
    for ask, message in (
        (lambda: found.pair("A", "C", "RR"), "no system 'C'"),
        (lambda: found.per_query("A", "C", "RR"), "no system 'C'"),
        (lambda: found.estimate("C", "RR"), "no system 'C'"),
        (lambda: found.pair("A", "A", "RR"), "compared with itself"),
        (lambda: found.pair("A", "B"), "Name a measure: RR, AP"),
        (lambda: found.pair("A", "B", "P@5"), "P@5 was not compared"),
    ):
        with pytest.raises(tw.TiewiseError, match=message):
            ask()


def test_too_many_documents_for_a_shared_order(monkeypatch):
    monkeypatch.setattr(shared_order, "MAX_TIED", 5)
    with pytest.raises(tw.InputError, match="6 tied documents matter to RR; one order for all runs takes at most 5"):
        compared(FLIP, TIED, SECOND, "RR", orders="shared", complete=True).pair("A", "B")


@pytest.mark.parametrize("orders", ["per-query", "shared"])
def test_components_with_too_many_documents_are_sampled(monkeypatch, orders):
    judged, left, right = large(3, 6, seed=1, levels=2)
    queries = {query: {f"{query}{doc}": label for doc, label in docs.items()} for query, docs in judged.items()}
    runs = [{q: {f"{q}{doc}": x for doc, x in docs.items()} for q, docs in run.items()} for run in (left, right)]
    exact = compared(queries, *runs, "nDCG@3", orders=orders).pair("A", "B")
    monkeypatch.setattr(shared_order, "MAX_LINKED", 1)
    found = compared(queries, *runs, "nDCG@3", orders=orders)
    sampled = found.pair("A", "B")
    assert (exact.method, sampled.method) == ("exact", "sampled (n=1,000)")
    assert exact.exact_range and not sampled.exact_range
    assert sampled.probability == pytest.approx(exact.probability, abs=4 * sampled.probability_error)
    assert sampled.difference.std == pytest.approx(exact.difference.std, abs=4 * sampled.std_error)
    assert sampled.probability_error == pytest.approx(math.sqrt(sampled.probability * (1 - sampled.probability) / 1000))
    assert exact.probability_error is None and exact.std_error is None
    text = found.to_markdown(explain=True)
    assert f"{100 * sampled.probability:.1f}% ± {100 * sampled.probability_error:.1f}" in text
    assert "± the standard error, where orders were sampled" in text


def test_priorities_that_differ_in_their_last_bits_only():
    judged = tw.Qrels.from_dict({"q": {"a": 1, "b": 2, "c": 0}, "r": {"a": 1, "b": 0}, "s": {"a": 1, "b": 0}})
    run = tw.Run.from_dict({q: {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0} for q in "qrs"})
    tied = distribution.TiedGroups(
        tw.parse("DCG"), GroupedJudgments(tw.tie_groups(judged, run)), np.ones(3, dtype=bool)
    )
    members = shared_order.TiedDocuments(tied, run, across_queries=True)
    rng = np.random.default_rng(0)
    for priority in (
        rng.permutation(12).astype(np.uint64),  # small numbers: alike in all but the last bits
        rng.integers(0, 2**64, 12, dtype=np.uint64),
    ):
        before = members.count_before(priority)
        for place, (at, group) in enumerate(zip(members.judged, members.group[members.judged], strict=True)):
            others = priority[members.group == group]
            assert before[place] == np.count_nonzero(others < priority[at])


def test_one_run_under_two_names_is_equal_to_itself():
    found = compared(FLIP, SECOND, SECOND, ["RR", "AP"], complete=True)
    for measure in ("RR", "AP"):
        pair = found.pair("A", "B", measure)
        assert (pair.difference.expected, pair.p_value, pair.effect, pair.ci) == (0, 1, None, (0, 0))
        assert (pair.probability, pair.probability_equal, pair.probability_less) == (0, 1, 0)
        assert (pair.wins, pair.losses, pair.equal, pair.certain, pair.flip) == (0, 0, 2, False, False)
    assert [(row["rank"], row["rank_best"], row["rank_worst"]) for row in found.ranking("RR")] == [(1, 1, 1)] * 2


def test_one_query_has_no_interval():
    judged = {"q": FLIP["q1"]}
    for test in ("max-t", "tukey"):
        pair = compared(judged, {"q": TIED["q1"]}, {"q": SECOND["q1"]}, "RR", test=test, complete=True).pair("A", "B")
        assert (pair.ci, pair.ci_order, pair.effect, pair.p_value) == (None, None, None, 1)
        assert "One query says nothing about other queries." in pair.verdict


def test_names_of_systems_may_be_numbers():
    runs = {1: {"q": {"a": 2.0, "b": 1.0}}, 2: {"q": {"a": 1.0, "b": 2.0}}}
    found = tw.compare({"q": {"a": 1}}, runs, "RR", baseline=1)
    assert found.systems == ("1", "2") and found.pair(2, 1) == found.pair("2", "1")
    assert found.estimate(1).expected == 1.0
    with pytest.raises(tw.InputError, match="There is no system '3'"):
        found.pair(1, 3)


def test_an_order_in_which_a_measure_is_not_defined_leaves_the_query_out():
    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1, "b": 0}}
    a = {"q1": {"b": 1.0, "c": 1.0, "a": 1.0}, "q2": {"a": 2.0, "b": 1.0}}
    runs = {"A": a, "B": {"q1": {"a": 2.0, "b": 1.0}, "q2": {"b": 2.0, "a": 1.0}}}
    options = {"oblivious": "given", "complete": True}
    found = tw.compare(qrels, runs, "Accuracy@2", **options)
    for row in found.ranking():
        report = tw.evaluate(qrels, runs[row["system"]], "Accuracy@2", **options)
        assert row["oblivious"] == report["Accuracy@2"].oblivious
    assert found.tau() == 1
    printed = dict(zip(found.pair("A", "B").tools["tool"], found.pair("A", "B").tools["a"], strict=True))
    assert printed["the order by descending ids"] == printed["ir_measures"] == 1
