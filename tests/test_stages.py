"""First stages of a cascade against the ranking of the second, by an oracle that tries every set and every order."""

from __future__ import annotations

import itertools
import json
import math
import random
import warnings
from dataclasses import dataclass, replace

import pandas
import pytest
from experiments import firststages
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle_stages as oracle
import tiewise as tw
from tiewise.errors import InputError

PHI = st.sampled_from([0.1, 0.5, 0.8, 0.9, 0.99])
STATISTICS = ("rbr_lower", "rbr_upper", "rbr_minimum", "rbr_maximum", "recall")
COLUMNS = ["system", "depth", "phi", *STATISTICS[:-1], "rbr_ceiling", "recall", "cost", "pareto"]


def spread(reference, runs, recall: float, depth: int, phi: float, k: int) -> list[dict]:
    """Sets of equal recall, from runs or ranked lists in dictionaries."""

    def as_run(run) -> tw.Run:
        scores = {query: {doc: -place for place, doc in enumerate(docs)} for query, docs in run.items()}
        return tw.Run.from_dict(scores if any(isinstance(docs, list) for docs in run.values()) else run)

    found = {name: as_run(run) for name, run in runs.items()}
    return firststages.spread(as_run(reference), found, recall, depth=depth, phi=phi, k=k)


@dataclass(frozen=True)
class Case:
    """A reference, first stages, depths and values of φ, all small."""

    reference: dict[str, dict[str, float]]
    runs: dict[str, dict[str, dict[str, float]]]
    depths: list[int | None]
    phis: list[float]
    k: int | None

    def stages(self, **options):
        options = {"recall_at": self.k} | options
        return tw.stages(self.reference, self.runs, self.depths, self.phis, **options)

    def groups(self, system: str, query: str) -> tuple[list[list[str]], list[list[str]]]:
        """The tie groups of the reference and of a first stage, which may not have the query."""
        return oracle.groups(self.reference[query]), oracle.groups(self.runs[system].get(query, {}))

    def row(self, system: str, query: str, depth: int | None, phi: float) -> dict[str, float]:
        return oracle.row(*self.groups(system, query), depth, phi, self.k)

    def recalls(self, system: str, query: str, depth: int | None, k: int) -> set[float]:
        """The recall of the reference's first k documents in every order of the ties."""
        return {oracle.recall(draw, k) for draw in oracle.draws(*self.groups(system, query), depth)}

    def sizes(self, system: str) -> list[int]:
        """The sizes of the whole lists."""
        return [len(self.runs[system].get(query, {})) for query in self.reference]

    def spread(self, recall: float, depth: int, phi: float, k: int) -> list[dict]:
        return spread(self.reference, self.runs, recall, depth, phi, k)

    @property
    def points(self) -> list[tuple[str, int | None, float]]:
        """System, depth and φ of the rows of the table, in their order."""
        return list(itertools.product(self.runs, self.depths, self.phis))


@st.composite
def lists(draw: st.DrawFn, most: int = 6, items: str = "abcdefgh", largest: int = 6) -> dict[str, float]:
    """Up to `most` documents with scores, in any order; at most `largest` of them have the same one."""
    docs = draw(st.permutations(items))[: draw(st.integers(0, most))]
    levels = [draw(st.integers(0, 3)) for _ in docs]
    assume(all(levels.count(level) <= largest for level in levels))
    return {doc: level / 4 for doc, level in zip(docs, levels, strict=True)}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    queries = [f"q{number}" for number in range(draw(st.integers(1, 3)))]
    reference = {query: draw(lists(largest=4)) for query in queries}
    runs = {}
    for name in ("one", "two", "three")[: draw(st.integers(1, 3))]:
        held = draw(st.lists(st.sampled_from(queries), unique=True, min_size=1))
        runs[name] = {query: draw(lists()) for query in [*held, *draw(st.sampled_from([[], ["other"]]))]}
    depths = draw(st.lists(st.one_of(st.none(), st.integers(1, 7)), min_size=1, max_size=3, unique=True))
    phis = draw(st.lists(PHI, min_size=1, max_size=2, unique=True))
    return Case(reference, runs, depths, phis, draw(st.one_of(st.none(), st.integers(1, 7))))


def close(found: float, truth: float) -> bool:
    return found == pytest.approx(truth, abs=1e-12)


def by_query(stages) -> dict[tuple[str, str, int | None, float], dict]:
    return {(row["system"], row["query"], row["depth"], row["phi"]): row for row in stages.per_query()}


def untied(case: Case) -> Case:
    """The case with ties broken by the documents' names."""

    def broken(scores: dict[str, float]) -> dict[str, float]:
        return {doc: score + 0.01 * (ord("z") - ord(doc)) / 26 for doc, score in scores.items()}

    def all_broken(run: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        return {query: broken(scores) for query, scores in run.items()}

    runs = {name: all_broken(run) for name, run in case.runs.items()}
    return Case(all_broken(case.reference), runs, case.depths, case.phis, case.k)


# -- against the oracle --------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_every_set_and_every_order(case):
    stages = case.stages()
    found = by_query(stages)
    rows = list(stages.table())
    assert [(row["system"], row["depth"], row["phi"]) for row in rows] == case.points
    assert len(found) == len(list(stages.per_query())) == len(case.points) * len(case.reference)
    for row, (system, depth, phi) in zip(rows, case.points, strict=True):
        truths = {query: case.row(system, query, depth, phi) for query in case.reference}
        for column in STATISTICS:
            for query, truth in truths.items():
                assert close(found[system, query, depth, phi][column], truth[column]), (query, column)
            mean = math.fsum(truth[column] for truth in truths.values()) / len(truths)
            assert close(row[column], mean), column


@st.composite
def spreads(draw: st.DrawFn, certain: bool) -> tuple[Case, int, float, int, float]:
    """A case, and a depth, φ, k and recall to ask for; whether the recall is the same in all orders of ties."""
    case, k = draw(cases()), draw(st.integers(1, 7))
    depth, phi = draw(st.integers(1, 7)), draw(st.sampled_from(case.phis))
    case = replace(case, depths=[depth])
    recalls = {
        round(oracle.spread(*case.groups(*key), depth, phi, k)["recall"], 12)
        for key in itertools.product(case.runs, case.reference)
        if len(case.recalls(*key, depth, k)) == 1 or not certain
    }
    assume(recalls)
    return case, depth, phi, k, draw(st.sampled_from(sorted(recalls)))


@settings(max_examples=100, deadline=None)
@given(chosen=spreads(certain=True))
def test_spread_over_every_set_and_every_order(chosen):
    case, depth, phi, k, recall = chosen
    rows = case.spread(recall, depth, phi, k)
    found = {(row["system"], row["query"]): row for row in rows}
    assert len(found) == len(rows)
    for key in itertools.product(case.runs, case.reference):
        truth = oracle.spread(*case.groups(*key), depth, phi, k)
        recalls = case.recalls(*key, depth, k)
        if len(recalls) == 1:  # in every order of the ties
            assert (key in found) == (abs(truth["recall"] - recall) < 1e-9)
        if key in found:
            for column in ("base", "base_upper", "full", "full_upper"):
                assert close(found[key][column], truth[column]), column
    for row in rows:
        assert list(row) == ["system", "query", "base", "base_upper", "full", "full_upper", "ceiling"]
        ascending = [row[column] for column in ("base", "full", "full_upper", "base_upper", "ceiling")]
        assert all(less <= more + 1e-12 for less, more in itertools.pairwise(ascending))
    for row, after in itertools.pairwise(rows):
        same_base = close(row["base"], after["base"])
        assert row["base"] < after["base"] or (same_base and row["full"] <= after["full"] + 1e-12)


@settings(max_examples=100, deadline=None)
@given(chosen=spreads(certain=False))
def test_spread_holds_the_queries_that_have_the_recall_in_every_order(chosen):
    case, depth, phi, k, recall = chosen
    rows = case.spread(recall, depth, phi, k)
    expected = [
        (system, query)
        for system, query in itertools.product(case.runs, case.reference)
        if all(abs(one - recall) < 1e-9 for one in case.recalls(system, query, depth, k))
    ]
    assert sorted((row["system"], row["query"]) for row in rows) == sorted(expected)


@pytest.mark.parametrize("phi", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("depth", [1, 3, 5])
@pytest.mark.parametrize("length", [4, 12])
def test_the_ceiling_of_a_recall_is_reached_by_some_set_and_passed_by_none(length, depth, k, phi):
    """Every set of `depth` documents from the reference's first twelve; where it is shorter, it may yet go on so."""
    reference = {"q": {f"d{rank:02d}": -rank for rank in range(1, length + 1)}}
    for hits in range(max(0, depth - 12 + k), min(k, depth) + 1):
        best = oracle.optimum(hits, k, depth, phi, length=12)
        assert close(oracle.ceiling(hits, k, depth, phi), best)
        for last in (k + 1, 12 - (depth - hits) + 1):  # the rest right after k, and at the end
            ranks = [*range(1, hits + 1), *range(last, last + depth - hits)]
            sets = {"q": [f"d{rank:02d}" for rank in ranks]}
            (row,) = spread(reference, {"s": sets}, hits / k, depth, phi, k)
            assert close(row["ceiling"], best)
            assert row["full_upper"] <= best + 1e-12
            assert last != k + 1 or close(row["full_upper"], best)


def test_the_ceiling_is_that_of_a_set_as_large_as_the_observed_one():
    """One document, though three were asked for: at rank 1 it is as good as can be."""
    reference = {"q": {"a": 4, "b": 3, "c": 2, "d": 1}}
    (row,) = spread(reference, {"s": {"q": ["a"]}}, 0.5, 3, 0.5, 2)
    assert row["ceiling"] == row["full"] == 0.5


def test_long_lists_with_a_large_tie_group_at_the_cut():
    """400 of 700 tied documents are taken; a tenth of those are unknown to the reference."""
    reference = {f"d{place}": -place for place in range(900)}
    group = [f"d{place}" for place in range(30, 660)] + [f"u{place}" for place in range(70)]
    head = [f"d{place}" for place in range(20)] + ["u70", "u71"]
    run = dict.fromkeys(head, 2.0) | dict.fromkeys(group, 1.0) | {"d700": 0.5}
    (row,) = tw.stages({"q": reference}, {"a": {"q": run}}, len(head) + 400, 0.999, recall_at=35).table()
    weight = [0.001 * 0.999**place for place in range(900)]
    assert close(row["rbr_lower"], math.fsum(weight[:20]) + 400 / 700 * math.fsum(weight[30:660]))
    residual = oracle.expected_residual(900, 700, 400, 2, 70, 0.999)
    assert row["rbr_upper"] - row["rbr_lower"] == pytest.approx(residual, abs=1e-12)
    assert close(row["recall"], (20 + 5 * 400 / 700) / 35)
    assert close(row["rbr_minimum"], math.fsum(weight[:20] + weight[330:660]))
    assert close(row["rbr_maximum"], math.fsum(weight[:20] + weight[30:430]))


# -- by hand -------------------------------------------------------------------------------------------------------


def test_the_papers_first_table():
    reference = {f"D{doc:02d}": -rank for rank, doc in enumerate([7, 4, 11, 12, 10, 15, 6, 22, 19, 28])}
    observed = {"D06", "D23", "D10", "D07", "D04"}
    (row,) = tw.stages({"q": reference}, {"B": {"q": observed}}, None, 0.6).table()
    assert row["rbr_lower"] == pytest.approx(0.7105, abs=5e-5)
    assert row["rbr_upper"] - row["rbr_lower"] == pytest.approx(0.00242, abs=5e-6)
    assert row["recall"] == 0.4


def test_a_cut_inside_a_tie_group_by_hand():
    """One of b and x is taken after a: ranks 1 and 2 of R weigh a half and a quarter."""
    (row,) = tw.stages({"q": {"a": 2, "b": 1}}, {"s": {"q": {"a": 9, "b": 4, "x": 4}}}, 2, 0.5).table()
    found = {name: row[name] for name in STATISTICS}
    truth = (0.625, 0.6875, 0.5, 0.75, 0.75)  # with b .75; with x .5, or .5 + .25·.5 at best
    assert found == pytest.approx(dict(zip(STATISTICS, truth, strict=True)), abs=1e-15)


def test_recall_at_a_cutoff_inside_a_tie_group_of_the_reference():
    """R_2 is a and one of b, c, d: each is in it in one order of three."""
    reference = {"q": {"a": 3, "b": 2, "c": 2, "d": 2}}
    (row,) = tw.stages(reference, {"s": {"q": {"a", "c"}}}, None, 0.5, recall_at=2).table()
    assert row["recall"] == pytest.approx((1 + 1 / 3) / 2, abs=1e-15)


def test_figure_3_by_hand():
    """Observations of 20 documents with 8 of R10, at φ = .8: the twelve others add .1000 at the most."""
    reference = {"q": {f"d{rank:03d}": -rank for rank in range(1, 101)}}
    others = [f"x{place}" for place in range(12)]
    missed = {"first": (1, 2), "last": (9, 10)}
    runs = {
        name: {"q": [doc for doc in list(reference["q"])[:10] if int(doc[1:]) not in gone] + others}
        for name, gone in missed.items()
    }
    runs["deep"] = {"q": list(reference["q"])[2:22]}
    first, deep, last = spread(reference, runs, 0.8, 20, 0.8, 10)
    assert [row["system"] for row in (first, deep, last)] == ["first", "deep", "last"]
    assert first["base"] == deep["base"] == pytest.approx(0.8**2 - 0.8**10, abs=1e-12)
    assert last["base"] == pytest.approx(1 - 0.8**8, abs=1e-12)
    assert first["base_upper"] - first["base"] == pytest.approx(0.1000, abs=5e-5)
    assert first["full"] == pytest.approx(first["base"], abs=1e-12)
    assert deep["full"] == pytest.approx(0.8**2 - 0.8**22, abs=1e-12)
    assert deep["full"] == pytest.approx(deep["base_upper"], abs=1e-12)
    for row in (first, deep, last):
        assert close(row["ceiling"], 1 - 0.8**8 + 0.8**10 - 0.8**22)


# -- laws ----------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_bounds_enclose_each_other(case):
    stages = case.stages()
    for row in [*stages.table(), *stages.per_query()]:
        assert 0 <= row["rbr_minimum"] <= row["rbr_lower"] + 1e-12
        assert row["rbr_lower"] <= row["rbr_upper"] + 1e-12
        assert row["rbr_lower"] <= row["rbr_maximum"] + 1e-12
        assert max(row["rbr_upper"], row["rbr_maximum"]) <= 1 + 1e-12
        assert 0 <= row["recall"] <= 1 + 1e-12


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_without_ties_there_are_no_extremes(case):
    for row in untied(case).stages().per_query():
        assert close(row["rbr_minimum"], row["rbr_lower"])
        assert close(row["rbr_maximum"], row["rbr_lower"])


@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_deeper_sets_are_never_worse(case):
    """With the tie group that a depth cuts, each set of a depth is part of sets of the next."""
    depths = [1, 2, 3, 4, 5, 6, 7, None]
    found = by_query(tw.stages(case.reference, case.runs, depths, case.phis, recall_at=case.k))
    for system, query, phi in itertools.product(case.runs, case.reference, case.phis):
        for less, more in itertools.pairwise(depths):
            for column in STATISTICS:
                assert found[system, query, less, phi][column] <= found[system, query, more, phi][column] + 1e-12


@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_a_whole_list_is_a_set_as_for_rbr(case):
    found = by_query(tw.stages(case.reference, case.runs, [6, 100, None], case.phis))
    for (system, query, _, phi), row in found.items():
        reference = tw.Ranking.from_scores(case.reference[query])
        observed = set(case.runs[system].get(query, {}))
        bounds = tw.rbr(observed, reference, phi=phi)
        assert close(row["rbr_lower"], bounds.lower.expected)
        assert close(row["rbr_upper"], bounds.upper.expected)
        assert close(row["rbr_minimum"], bounds.lower.minimum)
        assert close(row["rbr_maximum"], bounds.lower.maximum)
        assert close(row["recall"], tw.rankings.recall(observed, case.reference[query]))


@settings(max_examples=60, deadline=None)
@given(case=cases(), kind=st.sampled_from([set, frozenset, list, tuple]))
def test_a_set_is_a_run_with_all_documents_tied(case, kind):
    sets = {name: {query: kind(docs) for query, docs in run.items()} for name, run in case.runs.items()}
    order = sorted if kind in (set, frozenset) else list
    tied = {name: {q: dict.fromkeys(order(docs), 1.0) for q, docs in run.items()} for name, run in case.runs.items()}
    as_sets = tw.stages(case.reference, sets, None, case.phis, recall_at=case.k)
    as_runs = tw.stages(case.reference, tied, None, case.phis, recall_at=case.k)
    assert list(as_sets.table()) == list(as_runs.table())
    assert list(as_sets.per_query()) == list(as_runs.per_query())


@pytest.mark.parametrize("phi", [0.5, 0.9])
def test_the_reference_itself_reaches_all_that_its_depth_allows(phi):
    reference = {"q": {f"d{place}": -place for place in range(40)}}
    depths = [1, 7, 39, 40, 50, None]
    for row in tw.stages(reference, {"same": reference}, depths, phi).table():
        depth = min(row["depth"] or 40, 40)
        for column in STATISTICS[:4]:
            assert close(row[column], 1 - phi**depth)
        assert close(row["recall"], depth / 40)


@settings(max_examples=60, deadline=None)
@given(case=cases(), random=st.randoms(use_true_random=False))
def test_neither_names_nor_the_order_of_rows_matter(case, random):
    def shuffled(scores: dict[str, float]) -> dict[str, float]:
        rows = [(f"doc-{ord('z') - ord(doc)}", 10 * score - 3) for doc, score in scores.items()]
        random.shuffle(rows)
        return dict(rows)

    def all_shuffled(run: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        return {query: shuffled(scores) for query, scores in run.items()}

    runs = {name: all_shuffled(run) for name, run in case.runs.items()}
    other = Case(all_shuffled(case.reference), runs, case.depths, case.phis, case.k)
    for here, there in zip(case.stages().per_query(), other.stages().per_query(), strict=True):
        for column in STATISTICS:
            assert close(here[column], there[column])


def test_a_query_that_a_first_stage_lacks_counts_as_nothing_found_and_others_are_ignored():
    reference = {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}}
    full, part = {"q1": {"a": 1}, "q2": {"c": 1}}, {"q1": {"a": 1}, "q9": {"c": 1}}
    stages = tw.stages(reference, {"full": full, "part": part}, 10, 0.5)
    assert stages.table()["rbr_lower"] == pytest.approx([0.5, 0.25], abs=1e-15)
    found = by_query(stages)
    assert {query for _, query, _, _ in found} == {"q1", "q2"}
    assert [found["part", "q2", 10, 0.5][column] for column in STATISTICS] == [0, 0, 0, 0, 0]


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_no_set_is_above_the_ceiling_of_its_depth(case):
    for row in (*case.stages().table(), *case.stages().per_query()):
        if row["depth"] is None:
            assert row["rbr_ceiling"] is None
        else:
            assert row["rbr_ceiling"] == 1 - row["phi"] ** row["depth"]
            assert max(row["rbr_upper"], row["rbr_maximum"]) <= row["rbr_ceiling"] + 1e-12


# -- cost and the Pareto frontier ----------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(case=cases(), data=st.data())
def test_cost_and_frontier(case, data):
    amount = st.sampled_from([0, 0.25, 1, 3])
    costs = {
        system: data.draw(amount) if data.draw(st.booleans()) else {depth: data.draw(amount) for depth in case.depths}
        for system in case.runs
    }
    if data.draw(st.booleans()):
        costs["rerank"] = data.draw(amount)
    stages = case.stages(cost=costs)
    for query in (None, *case.reference):  # a query has the costs of the table, and a frontier of its own
        rows = list(stages.table()) if query is None else [row for row in stages.per_query() if row["query"] == query]
        for row in rows:
            assert close(row["cost"], oracle.cost(costs, row["system"], row["depth"], case.sizes(row["system"])))
        assert_frontier(rows, case, [row["cost"] for row in rows])


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_without_costs_the_depth_is_the_cost(case):
    """And the mean size of the sets, where a depth of None takes them whole."""
    stages = case.stages()
    size = {system: sum(case.sizes(system)) / len(case.reference) for system in case.runs}
    for query in (None, *case.reference):
        rows = list(stages.table()) if query is None else [row for row in stages.per_query() if row["query"] == query]
        assert {row["cost"] for row in rows} == {None}
        assert_frontier(rows, case, [row["depth"] or size[row["system"]] for row in rows])


def assert_frontier(rows, case, costs):
    """The rule by the definition, on the numbers of the table or on what is left without rounding, for each φ alone."""
    for phi in case.phis:
        same = [(row, cost) for row, cost in zip(rows, costs, strict=True) if row["phi"] == phi]
        points = [oracle.Point(row["rbr_lower"], row["rbr_upper"], cost) for row, cost in same]
        rounded = [oracle.Point(*(round(number, 12) for number in point)) for point in points]
        assert [row["pareto"] for row, _ in same] in (oracle.pareto(points), oracle.pareto(rounded))


REFERENCE = {"q": {"a": 4, "b": 3, "c": 2, "d": 1}}
RUN = {"q": {"a": 3, "b": 2, "c": 1}}


def frontier(runs, depths=(1, 2), cost=None, phi=0.5) -> list[bool]:
    return tw.stages(REFERENCE, runs, depths, phi, cost).table()["pareto"]


def test_identical_points_both_stay():
    assert list(frontier({"one": RUN, "two": RUN})) == [True, True, True, True]
    assert list(frontier({"one": RUN, "two": RUN}, cost={"one": 1, "two": 1, "rerank": 1})) == [True] * 4


def test_a_dearer_equal_point_is_dropped():
    assert list(frontier({"one": RUN, "two": RUN}, 2, {"one": 1, "two": 2})) == [True, False]
    assert list(frontier({"one": RUN}, [3, 4])) == [True, False]  # nothing is left for the fourth place


@pytest.mark.parametrize("phi", [0.5, 0.9])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_dearer_equal_point_is_dropped_whatever_the_rounding(depth, phi):
    """Any of three documents that the reference ties is worth as much as a random one."""
    tied, untied = {"q": {"a": 1, "b": 1, "c": 1}}, {"q": {"a": 3, "b": 2, "c": 1}}
    table = tw.stages(tied, {"one": untied, "two": tied}, depth, phi, {"one": 1, "two": 2}).table()
    assert list(table["pareto"]) == [True, False]


def test_a_better_point_of_equal_cost_drops_the_other():
    better, worse = {"q": {"a": 1}}, {"q": {"b": 1}}
    assert list(frontier({"worse": worse, "better": better}, 1)) == [False, True]


def test_a_point_that_may_be_as_good_stays():
    """x may be the next document of R: .75 + φ⁴/2 is more than .75."""
    sure, open_ = {"q": {"a": 2, "b": 1}}, {"q": {"a": 3, "b": 2, "x": 1}}
    assert list(frontier({"sure": sure, "open": open_}, None, {"sure": 1, "open": 2})) == [True, True]


def test_each_phi_has_a_frontier_of_its_own():
    """a alone against b, c and d, which weigh more together if φ is large."""
    runs = {"top": {"q": {"a"}}, "rest": {"q": {"b", "c", "d"}}}
    table = tw.stages(REFERENCE, runs, None, [0.3, 0.9], {"top": 1, "rest": 1}).table()
    kept = {(row["system"], row["phi"]): row["pareto"] for row in table}
    assert kept == {("top", 0.3): True, ("rest", 0.3): False, ("top", 0.9): False, ("rest", 0.9): True}


def test_costs_by_hand():
    runs = {"bm25": RUN, "dense": RUN}
    cost = {"bm25": 0.5, "dense": {1: 2, 3: 4}, "rerank": 0.25}
    assert list(tw.stages(REFERENCE, runs, [1, 3], 0.5, cost).table()["cost"]) == [0.75, 1.25, 2.25, 4.75]
    cost.pop("rerank")
    assert list(tw.stages(REFERENCE, runs, [1, 3], 0.5, cost).table()["cost"]) == [0.5, 0.5, 2, 4]


def test_without_a_depth_reranking_costs_by_the_mean_size_of_the_sets():
    reference = {"q1": {"a": 1}, "q2": {"a": 1}}
    runs = {"s": {"q1": ["a", "b", "c"], "other": ["a", "b"]}}
    (row,) = tw.stages(reference, runs, None, 0.5, {"s": 1, "rerank": 2}).table()
    assert row["cost"] == 1 + 2 * 1.5


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phi", [0, 1, -0.5, 1.5, math.nan, [0.8, 1.5]])
def test_phi_lies_between_0_and_1(phi):
    with pytest.raises(InputError, match=f"(?i)(phi|φ).*{re_number(phi)}"):
        tw.stages(REFERENCE, {"s": RUN}, 10, phi)


@pytest.mark.parametrize("depth", [0, -1, 2.5, [10, 0], "10"])
def test_depths_are_whole_and_positive(depth):
    with pytest.raises(InputError, match=f"(?i)depth.*{re_number(depth)}"):
        tw.stages(REFERENCE, {"s": RUN}, depth, 0.5)


def re_number(value) -> str:
    return str(value[-1] if isinstance(value, list) else value).replace(".", r"\.")


@pytest.mark.parametrize(
    ("cost", "fragments"),
    [
        ({"one": 1}, ["two", "cost"]),
        ({"one": 1, "two": -1}, ["two", "-1"]),
        ({"one": 1, "two": math.nan}, ["two", "nan"]),
        ({"one": 1, "two": "much"}, ["two", "much"]),
        ({"one": 1, "two": 2, "rerank": -3}, ["rerank", "-3"]),
        ({"one": 1, "two": 2, "rerank": "much"}, ["rerank", "much"]),
        ({"one": 1, "two": 2, "three": 3}, ["three"]),
        ({"one": 1, "two": {10: 1}}, ["two", "20"]),
        ({"one": 1, "two": {10: 1, 20: -7}}, ["two", "-7"]),
    ],
)
def test_costs_fit_the_systems_and_the_depths(cost, fragments):
    with pytest.raises(InputError) as error:
        tw.stages(REFERENCE, {"one": RUN, "two": RUN}, [10, 20], 0.5, cost)
    assert all(fragment in str(error.value).lower() for fragment in fragments), str(error.value)


def test_a_system_called_rerank_has_no_cost_of_its_own():
    with pytest.raises(InputError, match="rerank"):
        tw.stages(REFERENCE, {"rerank": RUN}, 10, 0.5, {"rerank": 1})
    assert len(list(tw.stages(REFERENCE, {"rerank": RUN}, 10, 0.5).table())) == 1


@pytest.mark.parametrize("k", [0, -1, 2.5])
def test_the_cutoff_of_recall_is_whole_and_positive(k):
    with pytest.raises(InputError, match=f"recall_at.*{re_number(k)}"):
        tw.stages(REFERENCE, {"s": RUN}, 10, 0.5, recall_at=k)


@pytest.mark.parametrize("empty", ["depths", "phi"])
def test_a_depth_and_a_phi_are_required(empty):
    with pytest.raises(InputError, match=empty):
        tw.stages(REFERENCE, {"s": RUN}, **({"depths": 10, "phi": 0.5} | {empty: []}))


def test_a_first_stage_is_required():
    with pytest.raises(InputError, match=r"(?i)run|first stage"):
        tw.stages(REFERENCE, {}, 10, 0.5)


def test_a_run_has_a_query_of_the_reference_but_sets_need_not():
    with pytest.raises(InputError, match=r"(?s)'?s'?.*quer"):
        tw.stages(REFERENCE, {"s": {"other": {"a": 1.0}}}, 10, 0.5)
    (row,) = tw.stages(REFERENCE, {"s": {"other": {"a"}}}, None, 0.5).table()
    assert row["rbr_upper"] == 0


# -- forms in and out ----------------------------------------------------------------------------------------------

TIED = {"q1": {"a": 2.0, "b": 1.0, "x": 1.0, "c": 1.0}, "q2": {"b": 0.5}}
DEEP = {"q1": {"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0}, "q2": {"a": 2.0, "b": 1.0}}


def written(path, run) -> str:
    lines = [f"{q} Q0 {d} 0 {s} t\n" for q, scores in run.items() for d, s in scores.items()]
    path.write_text("".join(lines))
    return str(path)


@pytest.mark.parametrize("form", ["text", "path", "run", "columns", "frame"])
def test_every_form_of_a_run(form, tmp_path):
    def given_as(run, name):
        columns = list(zip(*((q, d, s) for q, scores in run.items() for d, s in scores.items()), strict=True))
        if form in ("text", "path"):
            path = written(tmp_path / name, run)
            return path if form == "text" else tmp_path / name
        if form == "run":
            return tw.Run.from_dict(run)
        if form == "columns":
            return tw.Run.from_columns(*columns)
        return pandas.DataFrame(dict(zip(("query_id", "doc_id", "score"), columns, strict=True)))

    plain = tw.stages(DEEP, {"s": TIED}, [1, 2, None], [0.5, 0.9], recall_at=2)
    found = tw.stages(
        given_as(DEEP, "deep.run"), {"s": given_as(TIED, "tied.run")}, [1, 2, None], [0.5, 0.9], recall_at=2
    )
    assert list(found.table()) == list(plain.table())
    assert list(found.per_query()) == list(plain.per_query())


def test_one_depth_and_one_phi_need_no_list():
    one, several = tw.stages(DEEP, {"s": TIED}, 2, 0.5), tw.stages(DEEP, {"s": TIED}, (2,), (0.5,))
    assert list(one.table()) == list(several.table())


def test_the_defaults():
    table = tw.stages(DEEP, {"s": TIED}).table()
    points = [(row["depth"], row["phi"]) for row in table]
    assert points == list(itertools.product([10, 20, 50, 100], [0.8, 0.9]))


def test_runs_and_sets_side_by_side():
    table = tw.stages(DEEP, {"run": TIED, "set": {"q1": ["a"], "q2": ("a", "b")}}, None, 0.5).table()
    assert list(table["system"]) == ["run", "set"]
    assert table["rbr_lower"][1] == pytest.approx((0.5 + 0.75) / 2, abs=1e-15)


def test_rows_and_columns():
    stages = tw.stages(DEEP, {"s": TIED, "t": DEEP}, [1, 3], 0.5, {"s": 1, "t": 2})
    table, queries = stages.table(), stages.per_query()
    for rows, columns in ((table, COLUMNS), (queries, ["system", "query", *COLUMNS[1:]])):
        assert all(list(row) == columns for row in rows)
        for column in columns:
            assert list(rows[column]) == [row[column] for row in rows]
    assert len(table) == 4
    assert len(queries) == 8
    assert json.loads(json.dumps([dict(row) for row in table])) == [dict(row) for row in table]  # plain numbers


def test_a_data_frame():
    table = tw.stages(DEEP, {"s": TIED, "t": DEEP}, [1, 3], [0.5, 0.9], {"s": 1, "t": 2}).table()
    frame = table.to_frame()
    assert list(frame.columns) == COLUMNS
    assert frame.to_dict("records") == list(table)


def test_progress_is_reported_to_the_end():
    calls = []
    tw.stages(
        DEEP, {"s": TIED, "t": DEEP}, [1, 3], [0.5, 0.9], progress=lambda done, total: calls.append((done, total))
    )
    assert calls
    done, totals = zip(*calls, strict=True)
    assert len(set(totals)) == 1
    assert list(done) == sorted(done)
    assert done[-1] == totals[-1] > 0


def test_queries_are_measured_in_blocks(monkeypatch):
    """The result does not depend on the size of a block, with empty lists and ties that a depth splits."""
    rng = random.Random(4)
    docs = [f"d{i}" for i in range(9)]

    def draw(chance: float) -> dict[str, dict[str, float]]:
        return {
            f"q{i}": {doc: float(rng.randint(0, 3)) for doc in rng.sample(docs, rng.randint(1, 9))}
            for i in range(30)
            if rng.random() < chance
        }

    second, runs = draw(1), {"a": draw(0.8), "b": draw(0.6)}
    whole = tw.stages(second, runs, [1, 3, None], [0.8, 0.5], recall_at=2)
    for rows in (1, 7, 40):
        monkeypatch.setattr("tiewise.ties.pairs.BLOCK", rows)
        found = tw.stages(second, runs, [1, 3, None], [0.8, 0.5], recall_at=2)
        assert list(found.per_query()) == list(whole.per_query())
        assert list(found.table()) == list(whole.table())


# -- lists that may have been cut inside a tie group ----------------------------------------------------------------


TIED_END = {"q": {"a": 3.0, "b": 2.0, "c": 1.0, "d": 1.0}}
UNTIED = {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}


@pytest.mark.parametrize(
    ("reference", "first", "options", "number"),
    [
        (UNTIED, TIED_END, {"depths": [2]}, {}),  # the set is a and b
        (UNTIED, TIED_END, {"depths": [3]}, {"first": 1}),
        (UNTIED, TIED_END, {"depths": [4]}, {"first": 1}),  # which two of the tied ones were listed
        (UNTIED, TIED_END, {"depths": [None]}, {}),  # the set is what the list holds
        (UNTIED, TIED_END, {"depths": [4], "complete": True}, {}),
        (UNTIED, {"q": {"a", "b"}}, {"depths": [4]}, {}),  # a set is complete
        (TIED_END, UNTIED, {"depths": [2]}, {"the reference": 1}),
        (TIED_END, UNTIED, {"depths": [2], "phi": 0.001}, {}),  # its weight does not show
        (TIED_END, UNTIED, {"depths": [2], "phi": 0.001, "recall_at": 3}, {"the reference": 1}),
        (TIED_END, TIED_END, {"depths": [4]}, {"the reference": 1, "first": 1}),
    ],
)
def test_lists_that_may_have_been_cut_are_counted_where_they_matter(reference, first, options, number):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = tw.stages(reference, {"first": first}, **options)
    assert found.cut_lists == number
    assert [str(one.message) for one in caught if one.category is tw.CutWarning] == [found.cut_note] * bool(number)
    assert (found.cut_note in found.notes) == bool(number)
