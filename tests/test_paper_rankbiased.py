"""Moffat et al. (SIGIR-AP 2024): what the paper prints, computed again, and the figures drawn from it."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from experiments import rankbiased as paper
from experiments.rankbiased_figures import agreement, chooser

import tiewise as tw
from tiewise.errors import InputError

ROOT = Path(__file__).parent.parent
PICTURES = ("chooser.svg", "rba-range.svg", "tau-rbo-rba.svg")

# -- Tables 1 to 3 -----------------------------------------------------------------------------------------------------


def test_table_1():
    for item, printed in paper.OBSERVED.items():
        assert round(tw.rbr([item], paper.REFERENCE, phi=0.6).lower.expected, 3) == printed
    found = tw.rbr(paper.OBSERVED, paper.REFERENCE, phi=0.6)
    assert round(found.lower.expected, 3) == 0.711
    assert round(found.residual, 3) == 0.002
    assert round(found.upper.expected, 3) == 0.713
    assert (round(found.lower.expected, 4), round(found.residual, 5)) == (0.7105, 0.00242)


def test_table_1_with_ties():
    found = tw.rbr(paper.OBSERVED, paper.TIED_REFERENCE, phi=0.6).lower
    assert round(found.expected, 3) == 0.583
    assert (round(found.minimum, 4), round(found.maximum, 4)) == (0.4338, 0.7105)
    weight = {item: tw.rbr([item], paper.TIED_REFERENCE, phi=0.6).lower.expected for item in paper.REFERENCE.split()}
    assert {round(weight[item], 3) for item in ("D07", "D04", "D11")} == {0.261}
    assert {round(weight[item], 3) for item in ("D10", "D15")} == {0.041}


@pytest.mark.parametrize("name", paper.TABLE_2)
def test_table_2(name):
    ranks, mild, steep, recall = paper.TABLE_2[name]
    for f, printed in ((0.5, mild), (0.3, steep)):
        found = tw.rbr(ranks, range(1, 11), phi=tw.phi_for_discount(f, 3))
        assert round(found.lower.expected, 3) == printed
        assert found.residual == 0
    assert math.floor(1000 * tw.rankings.recall(ranks, {1, 2, 3})) / 1000 == recall  # the paper cuts 2/3 off


@pytest.mark.parametrize("observed", paper.TABLE_3)
def test_table_3(observed):
    assert [round(value, 2) for value in paper.permuted(observed)] == list(paper.TABLE_3[observed])


@pytest.mark.parametrize("phi", [0.1, 0.5, 0.8, 0.99])
def test_rbo_does_not_distinguish_halves_from_a_reversal_but_rba_does(phi):
    *_, halves, reverse = paper.TABLE_3
    straight = range(1, 11)
    of_halves, of_reverse = (tw.rbo(ranking, straight, phi=phi).lower.expected for ranking in (halves, reverse))
    assert of_halves == pytest.approx(of_reverse, rel=1e-14)
    assert tw.rba(halves, straight, phi=phi).lower.expected > tw.rba(reverse, straight, phi=phi).lower.expected


# -- worked examples ---------------------------------------------------------------------------------------------------


def test_figure_5():
    found = tw.rba(*paper.FIGURE_5, phi=0.7)
    assert round(found.lower.expected, 3) == 0.835
    assert round(0.7**11, 3) == 0.020
    assert round(found.residual - 0.7**11, 3) == 0.097
    four = sum(0.7**mean for mean in (7.5, 9, 7, 9.5))
    assert found.residual - 0.7**11 == pytest.approx(0.3 / 0.7 * four, abs=1e-12)  # not 0.3 · four


def test_figure_5_is_one_of_three_that_fit():
    left, right = [1, 2, 3, 4, 6, 8, 9], [1, 2, 3, 5, 6, 7, 9]  # the ranks of the items that both have
    means = (np.array(list(itertools.permutations(right))) + left) / 2
    base = 0.3 / 0.7 * (0.7**means).sum(axis=1)
    assert (np.round(base, 3) == 0.835).sum() == 3
    assert np.abs(base - tw.rba(*paper.FIGURE_5, phi=0.7).lower.expected).min() < 1e-12


def test_residual_of_the_experiment_in_section_3():
    observed = [*range(1, 9), *(f"other {i}" for i in range(12))]
    assert tw.rankings.recall(observed, range(1, 11)) == 0.8
    assert round(tw.rbr(observed, range(1, 11), phi=0.8).residual, 4) == 0.1000
    assert round(tw.rbr(observed[:10], range(1, 11), phi=0.8).residual, 4) == 0.0387  # two others


@pytest.mark.parametrize(
    ("f", "k", "printed"), [(0.5, 3, 0.794), (0.3, 3, 0.669), (0.1, 10, 0.794), (0.05, 100, 0.970)]
)
def test_equation_10(f, k, printed):
    phi = tw.phi_for_discount(f, k)
    assert round(phi, 3) == printed
    best, next_best = (tw.rbr(part, range(2 * k), phi=phi).lower.expected for part in (range(k), range(k, 2 * k)))
    assert best == pytest.approx(1 - f)
    assert next_best == pytest.approx(f * best)


@pytest.mark.parametrize("k", [2, 3, 10, 50])
@pytest.mark.parametrize("phi", [0.3, 0.7, 0.9, 0.99])
def test_equation_12(k, phi):
    straight = range(k)
    reverse, same = (tw.rba(x, straight, phi=phi).lower.expected for x in (straight[::-1], straight))
    assert reverse == pytest.approx((1 - phi) / phi * k * phi ** ((k + 1) / 2), abs=1e-12)
    assert same == pytest.approx(1 - phi**k, abs=1e-12)


@pytest.mark.parametrize("k", [2, 10, 50, 100])
def test_equation_12_rises_to_its_peak_and_falls(k):
    def reverse(phi):
        return tw.rba(range(k), range(k)[::-1], phi=phi).lower.expected

    peak = (k - 1) / (k + 1)
    assert reverse(peak) > max(reverse(peak - 1e-3), reverse(peak + 1e-3))
    assert 2 / math.e < reverse(peak) < 0.77
    assert tw.phi_for_reverse_rba(reverse(peak) - 1e-12, k) == pytest.approx(peak, abs=1e-5)


# -- Table 4 -----------------------------------------------------------------------------------------------------------


def test_each_step_of_the_simulation_exchanges_two_items():
    ranks = paper.disturbed(seed=3, sequences=50)
    start = np.broadcast_to(np.arange(1, 26), (50, 1, 25))
    moved = np.diff(np.concatenate([start, ranks], axis=1), axis=1) != 0
    assert ranks.shape == (50, 25, 25)
    assert np.all(moved.sum(axis=2) == 2)
    assert np.all(np.sort(ranks, axis=2) == np.arange(1, 26))
    assert not np.array_equal(ranks, paper.disturbed(seed=4, sequences=50))


@pytest.mark.parametrize("phi", [0.7, 0.9])
def test_scores_of_many_permutations_equal_the_library(phi):
    ranks = paper.disturbed(seed=5, sequences=4, swaps=6)
    found = paper.scores(ranks, phi)
    for place in np.ndindex(ranks.shape[:2]):
        observed, reference = (np.argsort(ranks[place]) + 1).tolist(), range(1, 26)
        assert found["τ"][place] == pytest.approx(tw.tau(observed, reference).expected, abs=1e-11)
        assert found["RBO"][place] == pytest.approx(tw.rbo(observed, reference, phi=phi).lower.expected, abs=1e-11)
        assert found["RBA"][place] == pytest.approx(tw.rba(observed, reference, phi=phi).lower.expected, abs=1e-11)


def by_scipy(ranks: np.ndarray) -> np.ndarray:
    """Table 4 from another's τ_b."""
    kendall = pytest.importorskip("scipy.stats").kendalltau
    columns = [paper.scores(ranks, phi) for phi in paper.TABLE_4_PHI]
    return np.array([[kendall(c[x].ravel(), c[y].ravel()).statistic for c in columns] for x, y in paper.TABLE_4])


def test_table_4():
    """The paper's numbers are one simulation, with a sampling error. Eight of ours show how large that is: the mean of
    eight and the paper's number differ by about sd · √(1 + 1/8), and by the rounding to three digits."""
    found = np.array([by_scipy(paper.disturbed(seed)) for seed in range(8)])
    error = found.std(axis=0, ddof=1) * math.sqrt(1 + 1 / 8)
    printed = np.array(list(paper.TABLE_4.values()))
    assert np.all(np.abs(found.mean(axis=0) - printed) <= 4 * error + 0.0005)
    assert error.max() < 0.012  # so that the test can fail: columns differ by .05 and more
    batches = paper.standard_errors(paper.disturbed(8, sequences=300), batches=10) * math.sqrt(300 / 1000)
    assert np.all((error / 4 < batches) & (batches < 4 * error))


def test_table_4_by_our_tau():
    ranks = paper.disturbed(seed=1, sequences=60)
    assert paper.correlations(ranks) == pytest.approx(by_scipy(ranks), abs=1e-12)


def test_first_rank_agreement_parts_the_scores_of_rbo():
    ranks = paper.disturbed(seed=0, sequences=200)
    rbo, agree = paper.scores(ranks, 0.7)["RBO"], ranks[..., 0] == 1
    worth = tw.rbo("a", "a", phi=0.7).lower.expected
    assert worth == pytest.approx(0.3 / 0.7 * math.log(1 / 0.3))
    assert rbo[agree].min() >= worth
    assert np.mean((rbo > 1 - worth) & (rbo < worth)) < 0.02


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_experiment_prints_what_the_page_shows(figures, tmp_path, capsys):
    paper.main(["--out", str(tmp_path / "new")])
    page = (ROOT / "docs/rank-biased-paper.md").read_text(encoding="utf-8")
    parts = capsys.readouterr().out.split("## ")[1:]
    assert len(parts) == 5
    for part in parts:
        title, table = part.split("\n\n", 1)
        assert table.strip() in page, f"{title} on the page is not what python -m experiments.rankbiased prints"
    for folder in (tmp_path / "new", ROOT / "docs/img"):
        for name in PICTURES:
            assert (folder / name).stat().st_size < 300_000
            assert ET.parse(folder / name).getroot().tag.endswith("svg")


# -- figures -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def figures():
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    from tiewise import figures

    return figures


@pytest.fixture(scope="module")
def charts(figures):
    one = {name: column.ravel() for name, column in paper.scores(paper.disturbed(0, sequences=40), 0.7).items()}
    return [chooser(), figures.rba_range(), agreement(one["τ"], one["RBO"], one["RBA"])]


def data_of(chart) -> list[list[dict]]:
    return list(chart.to_dict()["datasets"].values())


def test_charts_are_valid_and_share_one_look(charts):
    for chart in charts:
        made = chart.to_dict()  # checked against the schema of Vega-Lite
        assert made["config"]["background"] == "#ffffff"
        assert made["description"]
        other = chart.configure_axis(labelFontSize=20).to_dict()["config"]
        assert other["axis"]["labelFontSize"] == 20
        assert other["title"] == made["config"]["title"]


def test_rba_range_shows_rba(figures):
    made = figures.rba_range((5, 20), phi=(0.5, 0.99))
    lines, peaks = sorted(data_of(made), key=len, reverse=True)
    for row in lines[::37]:
        k = int(row["length"].split()[0])
        other = range(k)[::-1] if row["order"].startswith("reversed") else range(k)
        assert row["score"] == pytest.approx(tw.rba(range(k), other, phi=row["phi"]).lower.expected, abs=2e-4)
    assert [row["phi"] for row in peaks] == pytest.approx([4 / 6, 19 / 21])


def test_agreement_counts_every_pair(figures):
    rbo, rba = [0.0, 0.11, 0.12, 1.0, 1.0 + 1e-12], [0.0, 0.51, 0.58, 1.0, 1.0]
    made = agreement([-1.0, -0.2, 0.5, 1.0, 1.0], rbo, rba, bins=10)
    cells, lines = sorted(data_of(made), key=len)
    assert {(row["x"], row["y"]): row["pairs"] for row in cells} == {(0, 0): 1, (0.1, 0.5): 2, (0.9, 0.9): 2}
    for name, column in (("τ", [-1.0, -0.2, 0.5, 1.0, 1.0]), ("RBA", rba)):
        for row in (row for row in lines if row["measure"] == name):
            assert row["share"] == pytest.approx(np.mean(np.array(column) <= row["score"]))


@pytest.mark.parametrize(
    ("suffix", "magic"),
    [("svg", b"<svg"), ("png", b"\x89PNG\r\n\x1a\n"), ("pdf", b"%PDF-"), ("html", b"<!DOCTYPE html>"), ("json", b"{")],
)
def test_a_figure_becomes_a_file(charts, figures, tmp_path, suffix, magic):
    for place, chart in enumerate(charts):
        path = tmp_path / f"chart {place}.{suffix}"
        figures.save(chart, path)
        assert path.read_bytes().lstrip().startswith(magic)
    assert len(list(tmp_path.iterdir())) == len(charts)


def test_html_needs_no_network_and_json_is_the_chart(charts, figures, tmp_path):
    figures.save(charts[1], tmp_path / "chart.html")
    text = (tmp_path / "chart.html").read_text(encoding="utf-8")
    assert len(text) > 300_000  # the programs that draw it are inside
    assert 'src="http' not in text
    figures.save(charts[1], tmp_path / "chart.JSON")
    assert json.loads((tmp_path / "chart.JSON").read_text(encoding="utf-8")) == charts[1].to_dict()


@pytest.mark.parametrize("name", ["chart.bmp", "chart", "chart.svg.gz"])
def test_an_unknown_suffix_is_refused(charts, figures, tmp_path, name):
    with pytest.raises(InputError, match=rf"{name}: a figure cannot be saved as .*\.svg, \.png, \.pdf, \.html, \.json"):
        figures.save(charts[0], tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_where_a_figure_fails(charts, figures, tmp_path):
    import altair

    kept = tmp_path / "kept.svg"
    kept.write_text("before")
    broken = altair.Chart(altair.InlineData(values=[{"a": 1}])).mark_bar().encode(x=altair.X("a:Q", scale="none"))
    with pytest.raises(Exception, match="scale"):
        figures.save(broken, kept)
    with pytest.raises(InputError, match="cannot be written"):
        figures.save(charts[0], tmp_path / "no folder" / "chart.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["kept.svg"]
    assert kept.read_text() == "before"


def test_invalid_figures(figures):
    for lengths in ((), (1, 10)):
        with pytest.raises(InputError, match="two items or more"):
            figures.rba_range(lengths)
    with pytest.raises(InputError, match="between 0 and 1"):
        figures.rba_range(phi=(0.9, 0.5))
    with pytest.raises(InputError, match=r"one length.*RBO \(2,\)"):
        agreement([1.0], [1.0, 1.0], [1.0])
    with pytest.raises(InputError, match="one length, not empty"):
        agreement([], [], [])
    for rbo in (1.5, float("nan")):
        with pytest.raises(InputError, match="RBO must lie between 0 and 1"):
            agreement([0.0], [rbo], [0.5])
    with pytest.raises(InputError, match="RBA must lie between 0 and 1"):
        agreement([-0.5], [0.5], [-0.5])
    with pytest.raises(InputError, match="bins=0"):
        agreement([0.0], [0.5], [0.5], bins=0)


def test_altair_is_imported_when_a_figure_is_drawn():
    code = (
        "import sys\n"
        "from tiewise import figures\n"
        "print('altair' in sys.modules)\n"
        "sys.modules['altair'] = None\n"  # as if it were not installed
        "figures.rba_range()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n"
    assert done.stderr.rstrip().endswith("Drawing a figure needs an extra: pip install 'tiewise[report]'")
