"""Leaderboards: means and Borda points against MTEB, standard errors against scipy, ranks against the truth."""

from __future__ import annotations

import itertools
import json
import re

import numpy as np
import pytest
from experiments import rank_coverage
from scipy import stats

import tiewise as tw
from tiewise.analysis import simultaneous
from tiewise.analysis.leaderboard_result import CELL_COLUMNS, LEADERBOARD_COLUMNS
from tiewise.analysis.rank_intervals import over_queries, over_units, rank_intervals, unit_means
from tiewise.analysis.simultaneous import Draws, Family, Model

SYSTEMS = ("bm25", "dense", "hybrid", "splade")


def make_run(rng, quality: float, queries: int) -> dict[str, dict[str, float]]:
    """Ten documents a query, of which the first two are relevant; some scores are tied."""
    scores = np.round(rng.normal(size=(queries, 10)) + quality * (np.arange(10) < 2), 1)
    return {f"q{q}": {f"d{i}": float(row[i]) for i in np.argsort(-row, kind="stable")} for q, row in enumerate(scores)}


def make_board(
    collections: int = 7, queries: int = 12, missing: tuple[tuple[str, int], ...] = (), steps: float = 0.5
) -> dict[str, tuple[dict, dict]]:
    rng, found = np.random.default_rng(3), {}
    for place in range(collections):
        qrels = {f"q{q}": {"d0": 1, "d1": 2} for q in range(queries + place)}
        runs = {name: make_run(rng, steps * i, queries + place) for i, name in enumerate(SYSTEMS)}
        found[f"c{place}"] = (qrels, {name: run for name, run in runs.items() if (name, place) not in missing})
    return found


MISSING = (("bm25", 1), ("dense", 1), ("dense", 2))


@pytest.fixture(scope="module")
def board() -> tw.Leaderboard:
    return tw.leaderboard(make_board(), "nDCG@5", complete=True)


@pytest.fixture(scope="module")
def gaps() -> tw.Leaderboard:
    return tw.leaderboard(make_board(missing=MISSING), "nDCG@5", complete=True)


# -- numbers ----------------------------------------------------------------------------------------------------------


def test_cells_are_those_of_evaluate(board):
    for name, (qrels, runs) in make_board().items():
        for system, run in runs.items():
            mean = tw.evaluate(qrels, run, "nDCG@5", complete=True)["nDCG@5"]
            (cell,) = [one for one in board.cells() if (one["collection"], one["system"]) == (name, system)]
            assert (cell["expected"], cell["queries"]) == (mean.expected, len(qrels))
            assert (cell["minimum"], cell["maximum"]) == (pytest.approx(mean.minimum), pytest.approx(mean.maximum))
            half = stats.t.ppf(0.975, len(qrels) - 1) * cell["standard_error"]
            assert half == pytest.approx(mean.half_width)


@pytest.mark.parametrize("missing", [(), MISSING])
def test_means_and_borda_are_those_of_mteb(missing):
    polars = pytest.importorskip("polars")
    mteb = pytest.importorskip("mteb.benchmarks._create_table")
    found = tw.leaderboard(make_board(missing=missing), "P@1", complete=True)  # many values are equal
    cells = [one for one in found.cells() if one["expected"] is not None]
    long = polars.DataFrame(
        [{"model_name": one["system"], "task_name": one["collection"], "score": one["expected"]} for one in cells]
    )
    wide = long.pivot("task_name", index="model_name", values="score")
    names = [name for name in wide.columns if name != "model_name"]
    means = dict(zip(wide["model_name"], wide.select(mteb._skipna_false_mean(names)).to_series(), strict=True))
    theirs = dict(mteb._borda_rank_from_long(long).rows())
    by_column = dict(zip(wide["model_name"], wide.select(mteb._get_borda_rank(names)).to_series(), strict=True))
    points = {row["system"]: row["borda"] for row in found.rows()}
    ours = {name: 1 + sum(one > points[name] for one in points.values()) for name in points}
    assert ours == theirs == by_column
    assert {row["system"]: row["mean"] for row in found.rows()} == pytest.approx(means, abs=1e-14)
    assert len({one["expected"] for one in cells}) < len(cells)


def test_ranks_lie_in_their_intervals(board):
    assert list(board.to_frame().columns) == list(LEADERBOARD_COLUMNS)
    assert list(board.cells().columns) == list(CELL_COLUMNS)
    assert [row["rank"] for row in board.rows()] == [1, 2, 3, 4]
    for row in board.rows():
        assert row["rank_collections_low"] <= row["rank_queries_low"] <= row["rank"]
        assert row["rank"] <= row["rank_queries_high"] <= row["rank_collections_high"]
        assert row["minimum"] <= row["mean"] <= row["maximum"]
    assert board.is_shown("splade", "bm25") and not board.is_shown("bm25", "splade")
    assert board.may_be_first() == ("splade",)


def values_of(board: tw.Leaderboard) -> list[np.ndarray]:
    return [one.expected for one in board._collections]


def test_standard_errors_are_those_of_scipy(board):
    values, units = values_of(board), range(7)
    queries, collections = over_queries(values, units), over_units(unit_means(values, units))
    for a, b in itertools.combinations(range(4), 2):
        gaps = [each[:, a] - each[:, b] for each in values]
        variances = np.array([gap.var(ddof=1) / len(gap) for gap in gaps])
        freedom = variances.sum() ** 2 / sum(v**2 / (len(gap) - 1) for v, gap in zip(variances, gaps, strict=True))
        means = [gap.mean() for gap in gaps]
        assert queries.gap[a, b] == pytest.approx(np.mean(means)) == collections.gap[a, b]
        assert queries.error[a, b] == pytest.approx(np.sqrt(variances.sum()) / 7)
        assert queries.freedom[a, b] == pytest.approx(freedom)
        tested = stats.ttest_1samp(means, 0)
        assert collections.gap[a, b] / collections.error[a, b] == pytest.approx(tested.statistic)
        assert collections.freedom[a, b] == tested.df


def test_a_pair_has_the_collections_that_both_have(gaps):
    values, units = values_of(gaps), range(7)
    places = [SYSTEMS.index(name) for name in ("bm25", "dense")]
    both = [each[:, places] for at, each in enumerate(values) if at not in (1, 2)]
    for found, alone in (
        (over_queries(values, units), over_queries(both, range(5))),
        (over_units(unit_means(values, units)), over_units(unit_means(both, range(5)))),
    ):
        for name in ("gap", "error", "freedom", "n"):
            assert getattr(found, name)[tuple(places)] == pytest.approx(getattr(alone, name)[0, 1]), name
    rows = {row["system"]: row for row in gaps.rows()}
    assert {name: row["mean"] is None for name, row in rows.items()} == dict.fromkeys(SYSTEMS, False) | {
        "bm25": True,
        "dense": True,
    }
    assert gaps.notes[0].startswith("3 of 28 cells are missing: bm25 (c1) and dense (c1 and c2). ")
    assert {row["rank"] for row in rows.values()} == {1, 2, 3, 4}


def test_systems_without_a_common_collection_have_no_rank():
    board = make_board(2)
    a, b = board["c0"], board["c1"]
    found = tw.leaderboard({"c0": (a[0], {"bm25": a[1]["bm25"]}), "c1": (b[0], {"dense": b[1]["dense"]})}, "RR")
    assert [(row["rank"], row["rank_queries_low"], row["rank_collections_low"]) for row in found.rows()] == [
        (None, None, None)
    ] * 2
    assert "has no rank" in " ".join(found.notes)
    assert "no interval" in found.sentence


def test_pairs_with_different_collections_may_form_a_cycle():
    qrels = {f"q{i}": {"a": 1} for i in range(40)}
    good, bad = (dict.fromkeys(qrels, docs) for docs in ({"a": 0.9, "b": 0.5}, {"b": 0.9, "a": 0.5}))
    pairs = {"x": ("A", "B"), "y": ("B", "C"), "z": ("C", "A")}
    found = tw.leaderboard({name: (qrels, {a: good, b: bad}) for name, (a, b) in pairs.items()}, "RR", complete=True)
    assert all(found.is_shown(a, b) for a, b in pairs.values()) and found.may_be_first() == ()
    assert found.sentence.startswith("Other queries: every neighbour can be told apart; every system is behind another")
    assert "No two systems share two collections, which says nothing about other collections" in " ".join(found.notes)


def test_identical_systems_share_everything():
    boards = {
        name: (qrels, {"one": runs["bm25"], "two": runs["bm25"], "best": runs["splade"]})
        for name, (qrels, runs) in make_board(steps=1.0).items()
    }
    rows = {row.pop("system"): row for row in map(dict, tw.leaderboard(boards, "nDCG@5", complete=True).rows())}
    assert rows["one"] == rows["two"] and rows["best"]["borda"] == 14 and rows["one"]["borda"] == 3.5
    for other in ("queries", "collections"):
        assert (rows["one"][f"rank_{other}_low"], rows["one"][f"rank_{other}_high"]) == (2, 3)


def test_one_collection_is_a_comparison_without_other_collections():
    (name, (qrels, runs)), *_ = make_board(steps=0.7).items()
    found, compared = tw.leaderboard({name: (qrels, runs)}, "nDCG@5"), tw.compare(qrels, runs, "nDCG@5")
    known = {row["system"]: row for row in compared.ranking()}
    for row in found.rows():
        other = known[row["system"]]
        assert row["mean"] == other["expected"] and row["rank"] == other["rank"]
        assert other["rank_low"] <= row["rank_queries_low"] and row["rank_queries_high"] <= other["rank_high"]
        assert row["rank_collections_low"] is row["rank_collections_high"] is None
    assert "One collection says nothing about other collections: there is no interval." in found.notes
    assert found.may_be_first("collections") is None and found.is_shown("bm25", "dense", "collections") is None


def test_two_systems_are_told_apart_by_students_t():
    rng = np.random.default_rng(8)
    for shift in np.linspace(0.01, 0.12, 12):
        values = rng.normal(0, 0.1, (30, 2)) + np.array([shift, 0])
        found = rank_intervals(over_queries([values], [0]), 0.95)
        assert found.shown[0, 1] == (
            stats.ttest_rel(*values.T).pvalue < 0.05 and values[:, 0].mean() > values[:, 1].mean()
        )


# -- groups -----------------------------------------------------------------------------------------------------------


def test_a_group_counts_as_one_collection(board):
    parts = make_board()
    copies = parts | {f"{name} again": one for name, one in parts.items()}
    together = tw.leaderboard(copies, "nDCG@5", groups={f"g{i}": f"c{i}*" for i in range(7)}, complete=True)
    apart = tw.leaderboard(copies, "nDCG@5", complete=True)
    for one, other in zip(together.rows(), board.rows(), strict=True):
        assert one["mean"] == pytest.approx(other["mean"]) and one["borda"] == other["borda"]
        assert (one["system"], one["rank"]) == (other["system"], other["rank"])
    few, many = (over_units(each._means).error for each in (together, apart))
    assert (few[~np.eye(4, dtype=bool)] > 1.3 * many[~np.eye(4, dtype=bool)]).all()
    assert "14 collections in 7 groups" in together.to_text()
    one = tw.leaderboard(parts, "nDCG@5", groups={"all": "c*"}, complete=True)
    assert "One group says nothing about other groups: there is no interval." in one.notes


# -- draws ------------------------------------------------------------------------------------------------------------


def test_the_first_step_shows_what_a_family_shows():
    rng = np.random.default_rng(11)
    for n in (8, 40):
        values = rng.normal(0, 0.1, (n, 6)) + np.linspace(0, 0.25, 6)
        values = values[:, simultaneous.sort_by_values([values])]
        family = Family([values], [np.ones(n, dtype=bool)]).shown()
        for found in (over_queries([values], [0]), over_units(values)):
            shown = rank_intervals(found, 0.95).shown
            assert (shown | ~family).all() and shown.any() and not (shown & shown.T).any()


def step_down(statistics: np.ndarray, covariance: np.ndarray, undecided: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Which normal scores i − j exceed the quantile of the largest one, which are near it in a step, and the steps."""
    drawn = np.random.default_rng(5).multivariate_normal(np.zeros(len(covariance)), covariance, 20_000, method="eigh")
    left, steps = set(itertools.permutations(range(len(covariance)), 2)), 0
    shown, near = np.zeros((2, *covariance.shape), dtype=bool)
    rejected = left
    while rejected:
        scores = [
            (drawn[:, i] - drawn[:, j]) / np.sqrt(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j])
            for i, j in left
        ]
        quantile = max(np.quantile(np.max(scores, axis=0), 0.95), stats.norm.ppf(0.95))
        rejected = {pair for pair in left if statistics[pair] > quantile}
        for pair in left:
            near[pair] |= abs(statistics[pair] - quantile) < undecided
            shown[pair] = pair in rejected
        left, steps = left - rejected, steps + 1
    return shown, near, steps


@pytest.mark.parametrize("target", ["other queries", "other collections"])
def test_what_is_shown_is_that_of_a_naive_step_down(target):
    """Few collections of different sizes, with the covariance of the systems' means written out."""
    rng, decided, late = np.random.default_rng(0), 0, 0
    for _ in range(20):
        systems, sizes = int(rng.integers(3, 7)), rng.integers(4, 40, rng.integers(3, 9))
        values = [
            rng.choice([0.03, 0.1]) * np.arange(systems) + rng.normal(0, 0.2, (n, 1)) + rng.normal(0, 0.1, (n, systems))
            for n in sizes
        ]
        means = np.array([each.mean(axis=0) for each in values])
        if target == "other queries":
            found, n = over_queries(values, range(len(sizes))), sum(sizes)
            covariance = sum(np.cov(each.T) / len(each) for each in values)
        else:
            found, n, covariance = over_units(means), len(means), np.cov(means.T)
        centre, share = np.eye(systems) - 1 / systems, systems / (systems + n)
        covariance = centre @ covariance @ centre
        noise = np.diag(np.diag(covariance)) * systems / (systems - 1)
        t = found.gap / np.where(np.eye(systems), 1, found.error)  # errors and degrees of freedom are tested above
        statistics = stats.norm.isf(stats.t.sf(t, found.freedom))
        naive, near, steps = step_down(statistics, (1 - share) * covariance + share * noise, 0.05)
        shown = rank_intervals(found, 0.95).shown
        assert (shown == naive)[~near].all()
        decided, late = decided + int((~near & shown).sum()), late + (steps > 2)
    assert decided > 40 and late > 2


@pytest.mark.parametrize("is_missing", [False, True])
def test_the_largest_of_some_differences_is_that_of_a_naive_computation(is_missing):
    rng = np.random.default_rng(2)
    parts = [rng.normal(size=(5, 4)), rng.normal(size=(3, 4))]
    if is_missing:
        parts[1][:, 2] = np.nan
    model, tested = Model(parts, 0.2), rng.random((4, 4)) < 0.5
    np.fill_diagonal(tested, False)
    found = Draws(4, 0.05, 7).normal([model], 6, tested)[:50]
    again = np.random.default_rng([7, 4])
    held = max(8, 4)
    weights = again.standard_normal((min(simultaneous.BLOCK // held, simultaneous.MAX_DRAWS), 8))
    drawn = model.draw(weights, again)
    for at in range(50):
        largest = [0.0]
        for i, j in itertools.permutations(range(4), 2):
            gap = sum(part[at, i] - part[at, j] for part, has in drawn if has[i] and has[j])
            largest += [gap * model.factor[i, j]] if tested[i, j] else []
        assert found[at] == pytest.approx(max(largest))


@pytest.mark.parametrize("target", ["other queries", "other collections"])
def test_intervals_hold_for_all_systems_at_once(monkeypatch, target):
    """A small version of `experiments.rank_coverage`, which the page summarises."""
    monkeypatch.setattr(simultaneous, "MAX_DRAWS", 1000)
    monkeypatch.setattr(rank_coverage, "SYSTEMS", 8)
    rng, held, shown = np.random.default_rng(1), 0, 0
    for trial in range(60):
        drawn = rank_coverage.draw(rng, (0.002, 0.006)[trial % 2], rank_coverage.NOISES["normal"], systems=8)
        queries = over_queries(drawn.values, range(15))
        if target == "other queries":
            found, truth = queries, drawn.of_queries
        else:
            found, truth = over_units(unit_means(drawn.values, range(15)), queries.error), drawn.of_collections
        intervals, (first, last) = rank_intervals(found, 0.95, seed=trial), rank_coverage.true_ranks(truth)
        held += bool(((intervals.low <= first) & (last <= intervals.high)).all())
        shown += intervals.shown.sum()
    assert held >= 0.93 * 60 and shown > 60


def test_names_and_order_of_systems_change_nothing(board):
    given = {name: (qrels, dict(reversed(runs.items()))) for name, (qrels, runs) in make_board().items()}
    assert tw.leaderboard(given, "nDCG@5", complete=True).to_frame().equals(board.to_frame())


# -- what is shown ----------------------------------------------------------------------------------------------------


def test_one_table_and_one_sentence(board):
    text = board.to_text()
    assert text.splitlines()[0] == "nDCG@5 · 7 collections · 4 systems"
    assert re.search(r"^1 +splade +\.\d{3} +\d+\.0 +1 +1(–2)?$", text, re.M)
    assert re.match(
        r"Other queries: (\d of 3 neighbours cannot|every neighbour can) be told apart; splade is first\. Other "
        r"collections: .*\.$",
        board.sentence,
    )
    explained = board.to_text(explain=True)
    assert "values are expected over all orders of ties" in " ".join(explained.split())
    assert "Each collection: mean over queries (standard error)" in explained
    assert "explain=True" in text and "by tie order" in board.to_text(wide=True)


def test_collections_with_one_query_tell_no_pair_apart():
    board = make_board(3)
    board["c0"] = ({"q0": {"d0": 1}}, board["c0"][1])
    found = tw.leaderboard(board, "RR", complete=True)
    assert "c0 has one query" in " ".join(found.notes)
    assert found.may_be_first("queries") is None
    assert found.cells()[0]["standard_error"] is None


def test_skipped_queries_are_skipped_for_all():
    board = make_board(2)
    del board["c0"][1]["bm25"]["q1"]
    found = tw.leaderboard(board, "RR", missing="skip", complete=True)
    assert found.cells()[0]["queries"] == 11
    assert "c0: 11 of 12 queries count, those that all its systems have." in found.notes


def test_the_figure_has_both_intervals_and_the_ranks(board):
    pytest.importorskip("altair")
    chart = board.plot.ranks().to_dict()
    queries, collections, ranks = (
        layer["data"].get("values") or chart["datasets"][layer["data"]["name"]] for layer in chart["layer"]
    )
    for other, bars in (("queries", queries), ("collections", collections)):
        ends = [(row["system"], row[f"rank_{other}_low"], row[f"rank_{other}_high"]) for row in board.rows()]
        assert [(bar["system"], bar["low"], bar["high"]) for bar in bars] == ends
    assert [row["rank"] for row in ranks] == [1, 2, 3, 4]
    assert board.sentence in chart["description"]


# -- bad input --------------------------------------------------------------------------------------------------------


def test_errors_name_what_was_found():
    good = make_board(2)
    (qrels, runs), other = good["c0"], good["c1"]
    for given, options, message in (
        ({}, {}, "Give the collections as"),
        ({"c": qrels}, {}, "Collection 'c' is not a pair"),
        ({"c": (qrels, {})}, {}, "Collection 'c' has no run"),
        ({"c": (qrels, {"bm25": runs["bm25"]})}, {}, "only 'bm25'"),
        ({"c": (qrels, runs | {"lost": None})}, {}, "No collection has a run of 'lost'"),
        ({"c": (qrels, {"a": runs["bm25"], 1: runs["bm25"], "1": runs["bm25"]})}, {}, "Two of the systems are called"),
        ({"c": (qrels, {"a": runs["bm25"], "b": {"x": {"d0": 1.0}}})}, {}, "Collection 'c': Run 'b': "),
        (good, {"measure": "nDCG@5,10"}, "has one measure, not 2"),
        (good, {"measure": "num_rel_ret"}, "is not a mean over queries"),
        (good, {"confidence": 1}, "confidence"),
        (good, {"groups": {"g": ["c0", "c9"]}}, "there is no collection 'c9'"),
        (good, {"groups": {"g": ["c0"], "h": "c*"}}, "is in two groups"),
        (good, {"groups": {"c1": ["c0"]}}, "are called 'c1'"),
        (good, {"groups": ["c0"]}, "Give the groups as"),
        (good, {"groups": {"g": []}}, "Group 'g' has no collection."),
        (good, {"groups": {"g": 5}}, "Group 'g' has no collection."),
        ({"c": (runs, qrels)}, {}, "Collection 'c': "),
        ({"c0": (qrels, {"a": runs["bm25"], "b": runs["dense"]}), "c1": (other[0], {"b": runs["dense"]})},
         {"groups": {"g": "c*"}}, "'a' has only parts of groups"),
    ):  # fmt: skip
        with pytest.raises(tw.TiewiseError, match=re.escape(message)) as caught:
            tw.leaderboard(given, **options)
        assert "\n" not in str(caught.value)


# -- command line -----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    for name, (qrels, runs) in make_board(3).items():
        (tmp_path / "all" / name).mkdir(parents=True)
        tw.write_qrels(tw.Qrels.from_dict(qrels), tmp_path / "all" / name / "qrels.txt")
        for system, run in runs.items():
            tw.write_run(tw.Run.from_dict(run), tmp_path / "all" / name / f"{system}.trec")
    return tmp_path


def test_the_command_prints_what_the_function_returns(tiewise, folder):
    command = ("leaderboard", "all", "-m", "nDCG@5", "--complete", "--groups", "g=c0,c1")
    found = tw.leaderboard(make_board(3), "nDCG@5", complete=True, groups={"g": ["c0", "c1"]})
    assert json.loads(tiewise(*command, "--format", "json").out) == json.loads(found.to_json())
    rows = tiewise(*command, "--format", "tsv").rows
    assert list(rows[0]) == list(LEADERBOARD_COLUMNS) and [row["system"] for row in rows] == list(found.systems)
    assert "3 collections in 2 groups" in tiewise(*command).out
    (narrow,) = {tuple(row) for row in tiewise(*command, "--columns", "rank_queries", "--format", "tsv").rows}
    assert narrow == ("system", "rank_queries_low", "rank_queries_high")


def test_files_that_describe_the_data_are_no_systems(tiewise, folder):
    before = tiewise("leaderboard", "all", "-m", "RR").out
    for name in ("all/README.md", "all/c1/README.md", "all/c1/LICENSE", "all/c1/readme.txt", "all/c1/.hidden"):
        (folder / name).write_text("# What this is\n")
    assert tiewise("leaderboard", "all", "-m", "RR").out == before


def test_a_folder_that_cannot_be_used_is_one_message(tiewise, folder):
    root = folder / "all"

    def fail(*args: str) -> str:
        err = tiewise("leaderboard", "all", *args, code=2).err
        assert err.count("\n") == 1
        return err

    assert "--groups g: write NAME=PART" in fail("--groups", "g")
    (root / "c1/bm25.run").write_text("q0 Q0 d0 1 1 t\n")
    assert "are both called 'bm25'" in fail()
    (root / "c1/bm25.run").unlink()
    (root / "c1/qrels.tsv").write_text("")
    assert "there are 2 files of judgments" in fail()
    (root / "c1/qrels.tsv").unlink()
    (root / "c1/bm25.trec").write_text("q0 Q0 other 1 1 t\n")
    assert "Collection 'c1': Run 'bm25'" in fail()
    (root / "c1/qrels.txt").unlink()
    assert "there is no qrels.*" in fail()
    (root / "c1").rename(folder / "elsewhere")
    (root / "c1").mkdir()
    (root / "c1/qrels.txt").write_text("q0 0 d0 1\n")
    assert "there is no run beside qrels.txt" in fail()
    assert "there is no such folder" in tiewise("leaderboard", "nowhere", code=2).err
