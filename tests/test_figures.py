"""Figures of reports, and what notebooks show: the numbers drawn are the report's, and names from files stay text."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import tiewise as tw
from tiewise import rankings
from tiewise.analysis.tool_values import ToolTable
from tiewise.errors import InputError, MeasureError
from tiewise.example import file
from tiewise.results import html
from tiewise.results.base import Result
from tiewise.results.model import Bar, Rows

SCRIPT = "<script>alert(1)</script>"
MAGIC = {"svg": b"<svg", "png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-", "html": b"<!DOCTYPE html>", "json": b"{"}
FILES = {"bf16": "minilm-bf16.trec.gz", "fp32": "minilm-fp32.trec.gz", "1bit": "minilm-1bit.trec.bz2"}
MEASURES = ["nDCG@10", "RBP(p=0.8)", "RR@10", "NumRet"]


@pytest.fixture(scope="module")
def qrels():
    return tw.read_qrels(file("qrels.txt"))


@pytest.fixture(scope="module")
def reports(qrels):
    return {name: tw.evaluate(qrels, file(path), MEASURES, complete=True) for name, path in FILES.items()}


@pytest.fixture(scope="module")
def figures():
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    from tiewise import figures

    return figures


@pytest.fixture(scope="module")
def charts(figures, reports):
    tied = reports["1bit"]
    return {
        "one": tied.plot.curve("RR", range(1, 8)),
        "curve": figures.curve(reports, "nDCG", range(1, 31)),
        "panels": figures.curve(reports, ["nDCG", "P"], [1, 5, 10, 100]),
        "forest": figures.forest(figures.forest_rows(reports, "nDCG@10"), measure="nDCG@10"),
        "measures": tied.plot.forest(),
        "differences": tied.plot.differences(reports["fp32"]),
        "sizes": tied.plot.group_sizes(),
        "several sizes": figures.group_sizes({name: file(path) for name, path in FILES.items()}),
    }


def data_of(chart) -> list[dict]:
    """All rows that a chart draws."""
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def known(rows, *keys):
    return [row for row in rows if all(row.get(key) is not None for key in keys)]


# -- Report.at ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"oblivious": "ir_measures"},
        {"oblivious": None, "complete": True},
        {"missing": "skip", "no_relevant": "skip"},
        {"score_dtype": "float16", "depth": 7},
        {"judged_only": True},
    ],
)
@pytest.mark.filterwarnings("ignore::tiewise.CutWarning")
def test_other_measures_of_the_same_lists(options):
    qrels = {"1": {"a": 1, "b": 0, "c": 2}, "2": {"d": 0}, "3": {"e": 1}}
    run = {"1": {"a": 0.5, "b": 0.5, "x": 0.5, "c": 0.1, "y": 0.1}, "2": {"d": 1.0, "z": 0.5}}
    others = ["nDCG@2", "RR", "P(rel=2)@3"]
    again = tw.evaluate(qrels, run, "AP", **options).at(others)
    assert again.to_dict(per_query=True) == tw.evaluate(qrels, run, others, **options).to_dict(per_query=True)


def test_other_measures_are_of_a_run_and_of_tie_groups(reports):
    with pytest.raises(MeasureError, match="compares two rankings"):
        reports["bf16"].at("RBO(phi=0.9)")
    assert tw.evaluate(None, tw.notation("(10)1"), "RR").at("P@1")["P@1"].expected == 0.5


# -- what is drawn -----------------------------------------------------------------------------------------------------


def test_charts_are_valid_and_share_one_look(charts):
    for name, chart in charts.items():
        made = chart.to_dict()  # checked against the schema of Vega-Lite
        assert made["config"]["background"] == "#ffffff" and made["description"], name
        assert chart.configure_axis(labelFontSize=20).to_dict()["config"]["axis"]["labelFontSize"] == 20
        assert chart.properties(title="mine").to_dict()["title"] == "mine"


@pytest.mark.parametrize("suffix", MAGIC)
def test_charts_become_files(charts, figures, tmp_path, suffix):
    for name in charts if suffix in ("svg", "json") else ("curve", "forest"):
        figures.save(charts[name], tmp_path / f"chart.{suffix}")
        content = (tmp_path / f"chart.{suffix}").read_bytes()
        assert content.lstrip().startswith(MAGIC[suffix])
        assert b"NaN" not in content or suffix in ("html", "png", "pdf"), name


def test_a_curve_shows_the_numbers_of_the_reports(charts, reports, qrels):
    points = data_of(charts["curve"])
    assert {(row["system"], row["cutoff"]) for row in points} == {(name, k) for name in FILES for k in range(1, 31)}
    for name, path in FILES.items():
        plain = tw.evaluate(qrels, file(path), ["nDCG@1", "nDCG@13", "nDCG@30"], complete=True)
        for row in (row for row in points if row["system"] == name and f"nDCG@{row['cutoff']}" in plain):
            e = plain[f"nDCG@{row['cutoff']}"]
            assert (row["expected"], row["minimum"], row["maximum"], row["oblivious"]) == (
                *(e.expected, e.minimum, e.maximum),
                e.oblivious,
            )
    crossed = [row for row in points if row["crossed"]]
    assert {row["system"] for row in crossed} >= {"bf16", "1bit"}
    assert max(sum(row["system"] == name for row in crossed) for name in FILES) <= 20
    assert not any(row["crossed"] for row in points if row["minimum"] == row["maximum"] == row["oblivious"])


def test_panels_and_names(charts, figures, reports):
    assert {(row["measure"], row["cutoff"]) for row in data_of(charts["panels"])} == {
        (measure, k) for measure in ("nDCG", "P") for k in (1, 5, 10, 100)
    }
    one = charts["one"].to_dict()
    assert (
        "legend" not in str(one["layer"][0]["encoding"]["color"])
        or one["layer"][0]["encoding"]["color"]["legend"] is None
    )
    assert len(figures.curve(reports, ["nDCG@3", "nDCG@5"], [1, 2]).to_dict()["layer"]) > 1  # one family, one panel


def test_a_curve_without_crosses(figures, reports, qrels):
    plain = figures.curve(reports, "RR", range(1, 5), oblivious=False).to_dict()
    assert "Crosses" not in plain["title"]["subtitle"] and not any("transform" in layer for layer in plain["layer"])
    unordered = tw.evaluate(qrels, file(FILES["bf16"]), "RR", oblivious=None, complete=True)
    assert "Crosses" not in unordered.plot.curve("RR", [1, 2]).to_dict()["title"]["subtitle"]
    assert not any(row["crossed"] for row in data_of(unordered.plot.curve("RR", [1, 2])))


@pytest.mark.parametrize(
    ("order", "named"),
    [
        ("given", "Crosses: the order of the data."),
        ("docid-asc", "Crosses: the order by ascending ids."),
        ("trec_eval", "Crosses: the order of trec_eval."),
    ],
)
def test_the_order_of_the_crosses_is_named(figures, qrels, order, named):
    report = tw.evaluate(qrels, file(FILES["bf16"]), "RR", oblivious=order, complete=True)
    assert named in " ".join(figures.curve(report, "RR", [1, 2]).to_dict()["title"]["subtitle"])


@pytest.mark.parametrize("number", [6, 7, 30])
def test_lines_differ_in_colour_or_dashes(figures, reports, number):
    many = figures.curve({f"system {i}": reports["bf16"] for i in range(number)}, "P", [1, 2]).to_dict()
    line = next(layer for layer in many["layer"] if layer["mark"]["type"] == "line")["encoding"]
    looks = list(zip(line["color"]["scale"]["range"], map(tuple, line["strokeDash"]["scale"]["range"]), strict=True))
    assert len(set(looks)) == number and len({colour for colour, _ in looks}) <= 6


def test_a_forest_shows_the_numbers_of_the_reports(charts, figures, reports):
    rows = figures.forest_rows(reports, "nDCG@10")
    assert isinstance(rows, Rows) and rows["name"] == list(FILES)
    drawn = {row["name"]: row for row in known(data_of(charts["forest"]), "words")}
    crosses = known(data_of(charts["forest"]), "printed")
    for row in rows:
        e = reports[row["name"]]["nDCG@10"]
        assert (row["expected"], row["minimum"], row["maximum"]) == (e.expected, e.minimum, e.maximum)
        assert {key: drawn[row["name"]][key] for key in ("expected", "minimum", "maximum")} == {
            key: row[key] for key in ("expected", "minimum", "maximum")
        }
        printed = {
            t.tool: t.value for t in reports[row["name"]].at("nDCG@10").oblivious_by_tool() if t.value is not None
        }
        assert row["tools"] == printed
        for tool, value in printed.items():
            is_drawn = any(
                c["name"] == row["name"] and tool in c["tools"].split(", ") and c["printed"] == pytest.approx(value)
                for c in crosses
            )
            assert is_drawn is (e.tied or value != pytest.approx(e.expected, abs=1e-9)), tool  # else it is the circle
    order = charts["forest"].to_dict()["layer"][-1]["encoding"]["y"]["sort"]
    assert order == sorted(FILES, key=lambda name: -reports[name]["nDCG@10"].expected)


def test_a_notebook_shows_figures_without_a_network(charts):
    """altair's own HTML loads scripts from a server; ours is a picture, unless another renderer is chosen."""
    alt = pytest.importorskip("altair")
    for name, chart in charts.items():
        bundle = chart._repr_mimebundle_()
        assert bundle["image/svg+xml"].startswith("<svg") and "text/html" not in bundle, name
        assert type(chart).__name__ in bundle["text/plain"]
    changed = charts["forest"].properties(width=300)
    assert "image/svg+xml" in changed._repr_mimebundle_() and changed.to_dict()["width"] == 300
    with alt.renderers.enable("json"):
        assert "application/json" in str(charts["forest"]._repr_mimebundle_())


def test_rows_of_a_forest(figures, reports):
    some = figures.forest_rows(reports, "RBP(p=0.8)", tools=False, intervals={"bf16": (0.1, 0.2)})
    assert some["tools"] == [{}, {}, {}] and (some["ci_low"], some["ci_high"]) == ([0.1, None, None], [0.2, None, None])
    wide = figures.forest_rows(reports, "RBP(p=0.8)", tools=False, intervals=True)
    assert (wide["ci_low"][0], wide["ci_high"][0]) == reports["bf16"]["RBP(p=0.8)"].ci
    title = reports["bf16"].plot.forest(intervals=True).to_dict()["title"]
    assert "whisker: 95% interval" in " ".join(title["subtitle"])  # in lines
    one = tw.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "RR")
    assert figures.forest_rows({"one": one}, "RR", intervals=True)["ci_low"] == [None]
    assert some["residual"] == [reports[name]["RBP(p=0.8)"].residual for name in FILES]
    drawn = known(data_of(figures.forest(some)), "words")
    assert [row["reach"] for row in drawn] == pytest.approx([row["expected"] + row["residual"] for row in drawn])
    only = figures.forest_rows(reports, "RR@10", tools=["beir"])
    assert all(set(tools) == {"beir"} for tools in only["tools"])
    of_groups = tw.evaluate(None, tw.notation("(10)1"), "RR", oblivious="given")
    assert figures.forest_rows({"x": of_groups}, "RR")["tools"] == [{"given": 1.0}]
    with pytest.raises(InputError, match="Unknown tool 'trec'"):
        figures.forest_rows(reports, "RR@10", tools=["trec"])


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ((0.0, 0.5, 1.0), [0.0, 1.0]),  # no measure is below 0, or above 1, of those that are not
        ((0.3, 0.35, 0.4), [0.296, 0.404]),
        ((-0.5, 0.0, 0.5), [-0.54, 0.54]),
        ((0.5, 2.0, 3.0), [0.4, 3.1]),
        ((0.0, 0.0, 0.0), [0.0, 0.02]),
    ],
)
def test_axes_stay_within_the_range_of_the_measure(figures, values, ends):
    row = dict(zip(("minimum", "expected", "maximum"), values, strict=True))
    made = figures.forest([{"name": "x", **row}]).to_dict()
    assert [layer["encoding"]["x"]["scale"]["domain"] for layer in made["layer"][:-1]] == [pytest.approx(ends)] * 2
    reached = figures.forest([{"name": "x", "expected": 0.1, "residual": 0.4, "tools": {"t": 0.6}}]).to_dict()
    assert reached["layer"][0]["encoding"]["x"]["scale"]["domain"] == pytest.approx([0.08, 0.62])


def test_a_forest_of_plain_numbers(figures):
    tools = {"p": 0.5, "q": 0.5, "r": 0.6, "none": None}
    chart = figures.forest(
        [
            {"name": "low", "expected": 0.25},
            {
                "name": "high",
                "expected": 0.5,
                "minimum": 0.4,
                "maximum": 0.6,
                "ci_low": 0.3,
                "ci_high": 0.7,
                "tools": tools,
            },
        ]
    )
    drawn = known(data_of(chart), "words")
    assert [(row["name"], row["words"]) for row in drawn] == [("high", "0.5000 [0.4000, 0.6000]"), ("low", "0.2500")]
    crosses = {row["tools"]: row["printed"] for row in known(data_of(chart), "printed")}
    assert crosses == {"p, q": 0.5, "r": 0.6}
    assert "whisker" in str(chart.to_dict()["title"]) and "hollow" not in str(chart.to_dict()["title"])


def test_differences_of_queries(figures):
    one, tied = tw.Estimate(0.5, 0.5, 0.5), tw.Estimate(0.4, 0.1, 0.7)
    a = {"same": one, "open": tied, "sure": tw.Estimate(0.9, 0.8, 1.0), "mine": one}
    b = {"same": 0.5, "open": one, "sure": tied, "other": 0.1}
    rows = known(data_of(figures.differences(a, b, names=("X", "Y"))), "query")
    found = {row["query"]: [row[key] for key in ("difference", "low", "high")] + [row["sure"]] for row in rows}
    assert [row["query"] for row in rows] == ["sure", "open"]
    assert found["open"] == pytest.approx([-0.1, -0.4, 0.2, False]) and found["sure"][3]
    assert found["sure"] == pytest.approx([0.5, 0.1, 0.9, True])
    words = " ".join(figures.differences(a, b, names=("X", "Y")).to_dict()["title"]["subtitle"])
    assert "X is better for 1 query, Y for 1." in words and "undo it (1)" in words
    assert "1 does not differ" in words and "2 that only one of the two has" in words
    assert known(data_of(figures.differences({"q": one}, {"q": 0.5})), "query") == []  # nothing to see is no error


def test_differences_of_reports(charts, reports):
    a, b = (reports[name].per_query("nDCG@10") for name in ("1bit", "fp32"))
    rows = known(data_of(charts["differences"]), "query")
    assert rows and [row["difference"] for row in rows] == sorted((row["difference"] for row in rows), reverse=True)
    for row in rows:
        x, y = a[row["query"]], b[row["query"]]
        assert row["difference"] == x.expected - y.expected
        assert (row["low"], row["high"]) == (x.minimum - y.maximum, x.maximum - y.minimum)


def test_sizes_of_tie_groups(charts, figures, reports):
    audit = tw.audit(file(FILES["1bit"]))
    for chart in (charts["sizes"], audit.plot.group_sizes(), figures.group_sizes(file(FILES["1bit"]))):
        rows = data_of(chart)
        assert [(row["groups"], row["rows"]) for row in rows] == [(one.groups, one.rows) for one in audit.group_sizes]
        assert sum(row["share"] for row in rows) == pytest.approx(1)
    small = figures.group_sizes({"q": {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.5}})
    assert [(row["size"], row["groups"], row["rows"]) for row in data_of(small)] == [
        ("1", 1, 1),
        ("2", 0, 0),
        ("3–4", 1, 3),
    ]
    assert {row["run"] for row in data_of(charts["several sizes"])} == set(FILES)
    several = figures.group_sizes({"A": {"q": {"a": 1.0, "b": 1.0}}, "B": {"q": {"a": 1.0}}})
    assert {(row["run"], row["size"], row["groups"]) for row in data_of(several)} >= {("A", "2", 1), ("B", "1", 1)}


def test_an_audit_draws_its_report(qrels):
    audit = tw.audit(file(FILES["bf16"]), qrels=qrels)
    assert data_of(audit.plot.curve("RR", [1, 2])) == data_of(audit.report.plot.curve("RR", [1, 2]))
    with pytest.raises(InputError, match="needs judgments"):
        tw.audit(file(FILES["bf16"])).plot.forest()


def test_invalid_figures(figures, reports):
    one = reports["bf16"]
    for wrong, words in [
        (lambda: figures.curve({}), "no report"),
        (lambda: figures.curve(one, cutoffs=[]), "cutoffs is empty"),
        (lambda: figures.curve(one, cutoffs=[0, 1]), "whole number from 1 on"),
        (lambda: figures.curve(one, "Rprec"), "takes no cutoff"),
        (lambda: figures.forest([{"name": "x"}]), "a name and an expected value"),
        (lambda: figures.forest([{"name": "x", "expected": float("nan")}]), "x: nan cannot be drawn"),
        (lambda: figures.forest([{"name": "x", "expected": 1}, {"name": "x", "expected": 2}]), "same name"),
        (lambda: figures.differences({"a": 1.0}, {"b": 1.0}), "no query in common"),
        (lambda: figures.differences({"a": tw.Estimate()}, {"a": 1.0}), "'a' has no expected value"),
        (lambda: figures.group_sizes({}), "no run|no rows|empty"),
        (lambda: tw.evaluate(None, tw.notation("(10)1"), "RR").plot.group_sizes(), "Tie groups hold counts, not rows"),
    ]:
        with pytest.raises((InputError, MeasureError), match=words):
            wrong()


def test_figures_of_a_comparison_equal_those_of_its_reports(qrels, reports, figures):
    runs = {name: file(FILES[name]) for name in ("bf16", "fp32")}
    found = tw.compare(qrels, runs, ["nDCG@10", "RR@10"], complete=True, confidence=0.9, seed=3)
    drawn = known(data_of(found.plot.forest("nDCG@10")), "expected")
    assert {row["name"] for row in drawn} == set(runs)
    for row in drawn:
        mean = reports[row["name"]]["nDCG@10"]
        assert [row[key] for key in ("expected", "minimum", "maximum")] == pytest.approx(
            [mean.expected, mean.minimum, mean.maximum]
        )
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(mean.ci)  # of one run alone: always 95%
    crosses = known(data_of(found.plot.forest("nDCG@10", tools=["trec_eval"])), "printed")
    assert {row["name"]: row["printed"] for row in crosses} == pytest.approx(
        {"bf16": reports["bf16"]["nDCG@10"].oblivious}  # ties do not move the other run
    )
    bare = found.plot.forest("nDCG@10", tools=False, intervals=False)
    assert not known(data_of(bare), "printed") and known(data_of(bare), "expected")[0]["ci_low"] is None
    ours = found.plot.differences(measure="RR@10")
    theirs = reports["bf16"].plot.differences(reports["fp32"], "RR@10", names=("bf16", "fp32"))
    assert known(data_of(ours), "difference") == known(data_of(theirs), "difference")
    turned = known(data_of(found.plot.differences("fp32", "bf16", "RR@10")), "difference")
    gaps = [row["difference"] for row in known(data_of(ours), "difference")]
    assert sorted(-row["difference"] for row in turned) == sorted(gaps)


def test_invalid_figures_of_a_comparison(figures):
    run = {"q": {"a": 1.0, "b": 1.0}}
    found = tw.compare({"q": {"a": 1}}, {"A": run, "B": run, "C": run}, ["RR", "NumRet"], complete=True)
    for wrong, words in [
        (lambda: found.plot.forest(), "Name a measure"),
        (lambda: found.plot.forest("RR", tools=["nobody"]), "No number of 'nobody' can be compared"),
        (lambda: found.plot.differences(measure="RR"), "Name two systems to draw, of 'A', 'B', 'C'"),
        (lambda: found.plot.differences("A", "A", "RR"), "does not differ from itself"),
        (lambda: found.plot.differences("A", "D", "RR"), "no system 'D'"),
    ]:
        with pytest.raises(InputError, match=words):
            wrong()
    assert known(data_of(found.plot.forest("RR")), "expected")[0]["ci_low"] is None  # one query says nothing of others
    counts = known(data_of(found.plot.forest("NumRet", tools=False)), "expected")
    assert [row["expected"] for row in counts] == [2, 2, 2]


def test_a_name_does_not_end_the_script_of_a_page(figures, tmp_path):
    figures.save(figures.forest([{"name": f"</script>{SCRIPT}", "expected": 0.5}]), tmp_path / "chart.html")
    text = (tmp_path / "chart.html").read_text(encoding="utf-8")
    assert SCRIPT not in text and "alert(1)" in text


def test_the_pictures_of_the_page_are_drawn_by_its_code(tmp_path, figures):
    root = Path(__file__).parent.parent
    subprocess.run([sys.executable, "scripts/draw_figures.py", str(tmp_path)], cwd=root, check=True)
    page = (root / "docs/figures.md").read_text(encoding="utf-8")
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == set(re.findall(r"\]\(img/([\w-]+\.svg)\)", page))
    assert all((root / "docs/img" / name).stat().st_size < 60_000 for name in drawn)
    shown = {name for name in figures.__all__ if name not in ("save", "forest_rows")}
    assert all(f".{name}(" in page for name in (*shown, "pareto"))  # no figure is missing


# -- notebooks ---------------------------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Reads HTML that must be well formed, and collects its text, its tags and the lengths of its tables' lines."""

    def __init__(self, html: str):
        super().__init__()
        self.open, self.tags, self.text, self.lines = [], set(), "", []
        self.feed(html)
        self.close()
        assert not self.open, f"{self.open} is never closed"

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert all(not name.startswith("on") for name, _ in attrs), "no scripts"
        self.open.append(tag)
        if tag == "tr":
            self.lines.append(0)
        elif tag in ("td", "th"):
            self.lines[-1] += 1

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def results():
    """One of everything, with a query, a document and a system whose names are scripts."""
    qrels = {SCRIPT: {SCRIPT: 1, "b": 0}, "q2": {"$x$": 2}}
    run = {SCRIPT: {SCRIPT: 0.5, "b": 0.5, "c": 0.1}, "q2": {"$x$": 1.0, "&amp;": 1.0}}
    report = tw.evaluate(qrels, run, ["nDCG@10", "RR", "RBP(p=0.8)", "NumRet"], complete=True)
    read, judged = tw.Run.from_dict(run), tw.Qrels.from_dict(qrels)
    stages = tw.stages(run, {SCRIPT: run, "other": {"q2": {"$x$": 1.0}}}, depths=[1, 2])
    found = [
        *(report, report["RR"], report.per_query("RR"), report.oblivious_by_tool(), read, judged),
        *(tw.tie_groups(judged, read), tw.similarity({SCRIPT: run, "other": run}, "RBO(phi=0.9)")),
        tw.protocol(qrels, {SCRIPT: run, "other": run}, max_loss=0.1, complete=True),
        tw.protocol(None, tw.rows.vectors(np.eye(3), np.eye(3), ["float16", "binary"], repeats=1)),
        *(
            stages,
            stages.table(),
            Rows({SCRIPT: [SCRIPT, None], "n": [1, 2]}),
            tw.audit(run),
            tw.audit(run, qrels=qrels),
        ),
        *(tw.rbo("a (b c)", "b a c", phi=0.9), tw.rba("a b", "b a", phi=0.9, ties="share"), tw.tau("a (b c)", "b c a")),
        *(
            tw.tau_ap("a (b c)", "b c a"),
            rankings.med_rbp("a (b c)", "b c a"),
            tw.Estimate(),
            Rows({}),
            tw.Run.from_dict({}),
        ),
        tw.audit(run, qrels=qrels, reference={query: dict.fromkeys(docs, 1.0) for query, docs in run.items()}).fidelity,
        *(report.provenance, tw.unjudged(qrels, run, ["P@3", "RBP(p=0.8)"], complete=True)),
        *compared(qrels, run),
        tw.leaderboard({SCRIPT: (qrels, {SCRIPT: run, "other": run}), "second": (qrels, {"other": run})}),
        tw.why(qrels, run, "RR", tools=("trec_eval", "tiewise")),
        tw.score_noise(*({f"q{i}": {f"d{j}": j + i * step for j in range(9)} for i in range(9)} for step in (0, 1e-3))),
    ]
    return {f"{place} {type(one).__name__}": one for place, one in enumerate(found)}


def compared(qrels, run):
    """Comparisons of two and of three systems, and their parts."""
    other = {query: dict(zip(docs, (0.3, 0.2, 0.1), strict=False)) for query, docs in run.items()}
    two = tw.compare(qrels, {SCRIPT: run, "other": other}, ["RR", "AP"], complete=True)
    three = tw.compare(qrels, {SCRIPT: run, "other": other, "third": other}, ["RR", "AP"], complete=True)
    pair = two.pair(SCRIPT, "other", "RR")
    return two, three, pair, pair.answers, three.ranking("RR")


def test_every_result_is_well_formed_text_without_scripts(results):
    for name, one in results.items():
        html = one._repr_html_()
        page = Reader(html)
        assert "script" not in page.tags and "nan" not in page.text.lower().split(), name
        assert len(set(page.lines)) <= 3, name  # tables are rectangles: three of them at the most, in an audit
        assert "white" not in html and "#fff" not in html and "color:" not in html, name
        assert "mathjax_ignore" in html


@pytest.mark.parametrize(
    "kind", ["Estimates", "Run", "Qrels", "TieGroups", "Similarity", "Stages", "Rows", "Compared", "PairComparison"]
)
def test_names_from_files_stay_text(results, kind):
    shown = [one._repr_html_() for name, one in results.items() if name.endswith(f" {kind}")]
    assert SCRIPT in Reader(shown[0]).text and SCRIPT not in shown[0]


#: What public functions give that is no result to look at: operands, what one shard hands to another, measures, which
#: are names, and rows of tables.
NO_RESULTS = {"Quantized", "Counts", "Measure", "Row", "Bin", "Example", "Pile", "MeasuredRow", "Difference", "Trend"}
NO_RESULTS |= {"NoiseLaw"}  # a distribution, which a result names


def returned(function, owner=None):
    """The classes of Tiewise in what a function or a method says it returns."""
    function = inspect.unwrap(function)
    said = getattr(function, "__annotations__", {}).get("return", "")
    lazy = {"ToolTable": ToolTable, "Self": owner}  # ToolTable is imported when it is used
    names = {name: getattr(tw, name) for name in tw.__all__} | function.__globals__ | lazy
    todo = [eval(said, names)] if isinstance(said, str) and said else [said]
    while todo:
        kind = todo.pop()
        todo += get_args(kind)
        if inspect.isclass(kind) and not get_args(kind) and kind.__module__.startswith("tiewise."):
            yield kind


def public_results():
    """Every class that a public function returns, or a public method or property of such a class."""
    found, todo = set(), []
    for room in (tw, tw.scoring):
        functions = (getattr(room, name) for name in room.__all__)
        todo += [kind for one in functions if inspect.isfunction(one) for kind in returned(one)]
    while todo:
        kind = todo.pop()
        if kind in found or kind.__name__ in NO_RESULTS:
            continue
        found.add(kind)
        for name, member in inspect.getmembers(kind):
            plain = getattr(member, "fget", None) or getattr(member, "func", member)
            if not name.startswith("_") and (inspect.isfunction(plain) or inspect.ismethod(plain)):
                todo += returned(getattr(plain, "__func__", plain), kind)
    return found


def test_every_public_result_has_a_table(results):
    found = public_results()
    assert {tw.Report, tw.Compared, tw.Audit, tw.Similarity, tw.Stages, tw.PairComparison, tw.Unjudged, Rows} <= found
    assert not {kind.__name__ for kind in found if not hasattr(kind, "_repr_html_")}
    assert not {kind.__name__ for kind in found} - {type(one).__name__ for one in results.values()}


def test_every_result_converts_to_every_format(results):
    shared = [one for one in results.values() if isinstance(one, Result)]
    assert {tw.Report, tw.Compared, tw.Audit, tw.Similarity, tw.Stages, tw.Estimate} <= {type(one) for one in shared}
    for one in shared:
        if isinstance(one, Rows) and not one.columns:
            continue
        assert re.search(r"\| (:--|--:) \|", one.to_markdown()) and r"\toprule" in one.to_latex(), type(one)
        assert len(one.to_frame().columns) and one.to_dict(), type(one)


def test_a_table_of_a_comparison():
    qrels = {f"q{place}": {"a": 1, "b": 0} for place in range(4)}
    tied, late = ({q: {"a": score, "b": 1.0} for q in qrels} for score in (1.0, 0.5))
    found = tw.compare(qrels, {"tied": tied, "late": late, "late too": late}, "RR", complete=True)
    pair = found.pair("tied", "late")
    page = Reader(pair._repr_html_())
    for words in ("tied (A) against late (B)", "+.2500", "no, A ahead in 93.8%", pair.verdict):
        assert words in page.text
    assert page.lines == [5, 5]
    board = Reader(found._repr_html_())
    assert "RR · 4 queries · each run against the best" in board.text and "1–2" in board.text
    assert board.lines == [7] * 4
    assert "Rank 2 depends on the order of ties" in board.text and "explain=True" in board.text
    two = tw.compare(qrels, {"tied": tied, "late": late}, ["RR", "P@1"], complete=True)
    assert Reader(two._repr_html_()).lines == [7, 7, 7]
    heads = r"| measure | A | B | A − B | \[95%, all rows\] | p | in every order of ties? |"
    assert heads in two.to_markdown()
    plain = tw.compare(qrels, {"late": late, "late too": late}, "RR")
    assert "have the same RR" in Reader(plain._repr_html_()).text


def test_a_table_of_what_is_not_judged():
    found = tw.unjudged({"q": {"a": 1, "b": 0}}, {"q": {"a": 3.0, "x": 2.0, "b": 1.0}}, "P@3")
    page = Reader(found._repr_html_())
    assert "P@3.333.333.667" in re.sub(r"\s", "", page.text) and "svg" in page.tags


def test_a_table_of_a_report(reports):
    page = Reader(reports["1bit"]._repr_html_())
    e = reports["1bit"]["nDCG@10"]
    for number in (e.expected, e.half_width, e.minimum, e.maximum):
        assert f"{number:.3f}".removeprefix("0") in page.text
    assert "21,282" in page.text and "91.8%" in page.text and "svg" in page.tags
    plain = tw.evaluate({"q": {"a": 1}}, {"q": {"a": 2.0, "b": 1.0}}, "RR")
    assert "same" in plain._repr_html_() and "svg" not in Reader(plain._repr_html_()).tags


def test_long_tables_are_truncated(reports):
    page = Reader(reports["1bit"].per_query("RR@10")._repr_html_())
    assert len(page.lines) == 31 and "… and 170 more" in page.text
    assert len(Reader(tw.read_run(file(FILES["1bit"]))._repr_html_()).lines) == 11
    assert len(Reader(Rows({"n": range(30)})._repr_html_()).lines) == 31
    assert "more" not in Rows({"n": range(30)})._repr_html_()
    many = tw.similarity({f"s{i}": {"q": {"a": 1.0, "b": 0.5}} for i in range(35)}, "RBO(phi=0.9)")
    assert set(Reader(many._repr_html_()).lines) == {31} and "… and 5 more" in many._repr_html_()
    assert len(Rows({"text": ["x" * 10_000]})._repr_html_()) < 1000


def test_bars_are_drawn_at_their_values():
    def places(svg):
        rect = re.search(r'<rect x="([\d.]+)" y="3" width="([\d.]+)"', svg)
        line = re.search(r'<line x1="([\d.]+)" x2="\1"', svg)
        return float(rect[1]), float(rect[1]) + float(rect[2]), float(line[1])

    inner = html.WIDTH - 6
    assert places(html.draw_bar(Bar(0.25, 0.5, 0.75))) == pytest.approx(
        (3 + inner / 4, 3 + inner * 3 / 4, 3 + inner / 2), abs=0.1
    )
    assert places(html.draw_bar(Bar(-1.0, 0.0, 1.0))) == pytest.approx((3, 3 + inner, 3 + inner / 2), abs=0.1)
    assert places(html.draw_bar(Bar(0.0, 4.0, 8.0))) == pytest.approx((3, 3 + inner, 3 + inner / 2), abs=0.1)
    assert "path" in html.draw_bar(Bar(0.1, 0.2, 0.3, 0.3)) and "path" not in html.draw_bar(Bar(0.1, 0.2, 0.3))
    for nothing in ((None, 0.5, 1.0), (0.1, float("nan"), 0.3), (0.0, 0.5, float("inf"))):
        assert html.draw_bar(Bar(*nothing)) == ""


def test_neither_the_package_nor_its_tables_import_altair():
    code = (
        "import sys, tiewise as tw\n"
        "from tiewise import figures\n"
        "report = tw.evaluate({'q': {'a': 1}}, {'q': {'a': 1.0, 'b': 1.0}}, 'RR', complete=True)\n"
        "report._repr_html_(), report.plot\n"
        "print('altair' in sys.modules, 'jinja2' in sys.modules)\n"
        "sys.modules['altair'] = None\n"  # as if it were not installed
        "report.plot.curve('RR', [1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False False\n"
    assert done.stderr.rstrip().endswith("Drawing a figure needs an extra: pip install 'tiewise[report]'")
