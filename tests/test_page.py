"""The page of ``tiewise report``: what it says, that names stay text, and, in a browser, that it moves."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import tiewise as tw
from browser import Browser, chromium
from tiewise import figures
from tiewise.errors import InputError
from tiewise.example import file

pytest.importorskip("jinja2")
pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from tiewise.page.charts import LANES
from tiewise.page.content import collect_content, find_families
from tiewise.page.rendering import BUNDLES, _json, _programs
from tiewise.page.tie_orders import STOPS, replay_query

HOSTILE = "<script>window.hacked=1</script>"
BREAKOUT = "</script><img src=x onerror='window.hacked=2'>"
NAMES = ("bf16", "hps", "fp32")
READY = "document.documentElement.dataset.ready"
LIMIT = 3_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def example(folder):
    """The page of one model in three precisions, by the command line."""
    runs = [file(f"minilm-{name}.trec.gz") for name in NAMES]
    path = folder / "example.html"
    command = ["report", file("qrels.txt"), *runs, "--complete", "-m", "nDCG@10 RR@10", "-o", path]
    subprocess.run([sys.executable, "-m", "tiewise", *map(str, command)], check=True)
    return path


@pytest.fixture(scope="module")
def hostile(folder):
    """A page on which every id and name is an attack."""
    docs = {f"{HOSTILE}{n}": 1.0 if n < 6 else 0.5 for n in range(12)} | {BREAKOUT: 1.0, "\u2028\x1b[31m\u202e": 1.0}
    qrels = {HOSTILE: {BREAKOUT: 2, f"{HOSTILE}1": 1, f"{HOSTILE}7": 1}, BREAKOUT: {BREAKOUT: 1}}
    runs = {HOSTILE: {HOSTILE: docs, BREAKOUT: docs}, BREAKOUT: {HOSTILE: {BREAKOUT: 2.0, **docs}, BREAKOUT: docs}}
    path = folder / "hostile.html"
    tw.write_page(qrels, runs, path, ["nDCG@10", "AP"], complete=True, title=HOSTILE, command=BREAKOUT)
    return path


def shown(path: Path) -> str:
    """The text of a page, scripts and styles apart."""

    class Text(HTMLParser):
        words, inside = "", ""

        def handle_starttag(self, tag, attrs):
            self.inside = tag

        def handle_endtag(self, tag):
            self.inside = ""

        def handle_data(self, data):
            self.words += "" if self.inside in ("script", "style") else f"{data} "

    reader = Text()
    reader.feed(path.read_text(encoding="utf-8"))
    return " ".join(reader.words.split())


def data_of(path: Path) -> dict:
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


# -- what it says ------------------------------------------------------------------------------------------------------


def test_it_opens_with_the_verdict_and_shows_where_it_comes_from(example):
    words = shown(example)
    assert "fp32 has the highest expected nDCG@10 of 3 runs" in words or "hps has the highest" in words
    assert "In every order of ties? No: some tie orders put" in words
    assert "Shown? No: these 200 queries do not show that" in words
    assert "decided" not in words
    assert not re.findall(r"(?<![\w.])\.\d+", words)  # every number has a zero before the point
    assert (
        words.index("In every order of ties?") < words.index("runs side by side") < words.index("How to read this page")
    )
    for name in NAMES:
        assert tw.read_run(file(f"minilm-{name}.trec.gz")).source.sha256 in words
    assert "tiewise report" in words and "--complete -m 'nDCG@10 RR@10'" in words
    assert "the model may stay in bfloat16" in words  # the remedy of the audit
    assert example.stat().st_size < LIMIT


def test_it_is_one_file_that_asks_nobody(example):
    text = example.read_text(encoding="utf-8")
    head = text[: text.index('<script type="module">')]
    assert not re.findall(r"""(?:src|href)=(?!"#)""", head)
    assert "@import" not in head and "url(" not in head
    policy = re.search('Content-Security-Policy" content="([^"]*)"', unescape(head))[1].split("; ")
    assert {"default-src 'none'", "base-uri 'none'", "form-action 'none'"} <= set(policy)


def test_it_has_the_licences_of_the_programs_in_it(example):
    text = unescape(example.read_text(encoding="utf-8"))
    for line in (
        "Vega. Copyright (c) 2015-2023, University of Washington",
        "D3, internmap. Copyright 2010-2024 Mike Bostock",
        "d3-delaunay. Copyright 2018-2021 Observable, Inc., Copyright 2021 Mapbox",
        "topojson-client. Copyright 2012-2019 Michael Bostock",
        "semver. Copyright (c) Isaac Z. Schlueter and Contributors",
        "2019, 2021, 2022 Simon Lydell",
        "Cynthia Brewer, Mark Harrower, and The Pennsylvania State University",
        "THIS SOFTWARE IS PROVIDED BY",
    ):
        assert line in text


def test_equal_input_makes_equal_pages(folder):
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5, "c": 0.5}}
    for name in ("one.html", "two.html"):
        tw.write_page(qrels, {"run": run}, folder / name, "RR", complete=True)
    assert (folder / "one.html").read_bytes() == (folder / "two.html").read_bytes()
    assert "RR of run is 0.6111 on average over the orders of its ties" in shown(folder / "one.html")


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ({"a": 1.0, "b": 0.5}, {"b": 1.0, "a": 0.5}, "Yes: A is ahead in every tie order."),
        ({"a": 1.0, "b": 0.5}, {"a": 1.0, "b": 0.5}, "A and B are equal in every tie order."),
        ({"a": 1.0, "b": 0.5}, {"a": 1.0, "b": 1.0, "c": 0.5}, "No: some tie orders put B level with A, none puts it"),
        (
            {"b": 1.0, "a": 0.5},
            {"a": 1.0, "b": 1.0, "c": 1.0},
            "No: some tie orders put A (in 33.3% of random orders) ahead of B.",
        ),
        ({"a": 1.0, "b": 0.5}, {"x": 1.0, "y": 0.7, "z": 0.5, "a": 0.5}, "Yes: A is ahead in every tie order."),
    ],
)
def test_the_verdict_answers_two_questions(first, second, verdict):
    found = collect_content({"q": {"a": 1}}, {"A": {"q": first}, "B": {"q": second}}, "RR", complete=True)
    on_ties, on_queries = found.answers.values()
    assert verdict in on_ties and on_queries == "Unknown: there is only one query."


@pytest.mark.parametrize(
    ("queries", "first", "second", "headline"),
    [
        (8, {"a": 2.0, "b": 1.0}, {"b": 2.0, "a": 1.0}, "A has the highest expected RR of 2 runs, 1.0000."),
        (2, {"a": 2.0, "b": 1.0}, {"b": 2.0, "a": 1.0}, "other queries could reverse the lead of A over B"),
        (8, {"a": 1.0, "b": 1.0, "c": 1.0}, {"b": 2.0, "a": 1.0}, "some orders of ties undo the lead of A over B"),
        (2, {"a": 1.0, "b": 1.0, "c": 1.0}, {"b": 2.0, "a": 1.0}, "A and B cannot be told apart"),
        (1, {"a": 1.0, "b": 1.0, "c": 1.0}, {"b": 2.0, "a": 1.0}, "A and B cannot be told apart"),
        (1, {"a": 2.0, "b": 1.0}, {"b": 2.0, "a": 1.0}, "A has the highest expected RR of 2 runs, 1.0000."),
        (8, {"a": 1.0}, {"a": 1.0}, "A and B have the same expected RR, 1.0000."),
    ],
)
def test_the_headline_says_whether_a_run_is_clearly_first(queries, first, second, headline):
    names = [f"q{n}" for n in range(queries)]
    runs = {"A": dict.fromkeys(names, first), "B": dict.fromkeys(names, second)}
    found = collect_content({q: {"a": 1} for q in names}, runs, "RR", complete=True)
    if headline.endswith("."):
        assert found.verdict == headline
    else:
        assert found.verdict.startswith(f"No run is clearly first: {headline}. A has the highest expected RR of 2 runs")


def test_the_headline_names_every_run_that_may_be_first():
    best, level = {"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 1.0}
    runs = {"A": {"p": best, "q": best}, "B": {"p": best, "q": level}, "C": {"p": {"b": 2.0, "a": 1.0}, "q": best}}
    found = collect_content({"p": {"a": 1}, "q": {"a": 1}}, runs, "RR", complete=True)
    assert "other queries could reverse the lead of A over C" in found.verdict and "A and B cannot be" in found.verdict


def test_short_lists_are_named_beside_the_curves(folder):
    long, short = ({"q": {f"d{n}": -float(n) for n in range(many)}} for many in (60, 20))
    found = collect_content({"q": {"d3": 1}}, {"long": long, "short": short}, "RR")
    assert found.short_runs.startswith("Runs with lists that are all shorter than k = 50: short (20).")
    assert "Whiskers of two runs may overlap" in found.forest()["caption"]
    assert not collect_content({"q": {"d3": 1}}, {"long": long}, "RR").short_runs
    tw.write_page({"q": {"d3": 1}}, {"long": long, "short": short}, folder / "short.html", "RR")
    assert found.short_runs in shown(folder / "short.html")


def test_only_two_times_yes_has_the_colour_of_success(folder):
    """A lead in every order of ties that may be chance is not green; nor is a significant one that ties can undo."""
    first, second, tied = {"a": 2.0, "b": 1.0}, {"b": 2.0, "a": 1.0}, dict.fromkeys("abc", 1.0)
    eight, two = ([f"q{n}" for n in range(many)] for many in (8, 2))
    for queries, other, answers in (
        (eight, first, ("yes", "yes")),
        (two, first, ("yes", "no")),
        (eight, tied, ("no", "yes")),
        (two, tied, ("no", "no")),
    ):
        runs = {"A": dict.fromkeys(queries, other), "B": dict.fromkeys(queries, second)}
        tw.write_page({q: {"a": 1} for q in queries}, runs, folder / "tone.html", "RR", complete=True)
        badges = re.findall('<span class="badge ([a-z-]+)">(yes|no)</span>', (folder / "tone.html").read_text())
        tone = "good" if answers == ("yes", "yes") else "plain-tone"
        assert badges == [(tone, answer) for answer in answers]


def test_all_measures_and_audits_stand_in_the_order_of_the_ranking(folder):
    first, second = {"a": 2.0, "b": 1.0}, {"b": 2.0, "a": 1.0}
    tw.write_page({"q": {"a": 1}}, {"low": {"q": second}, "high": {"q": first}}, folder / "order.html", ["RR", "AP"])
    text = (folder / "order.html").read_text(encoding="utf-8")
    for part in ("<h3>All measures</h3>", '<section id="health">'):
        after = text[text.index(part) :]
        assert after.index("high") < after.index("low")
    for curve in data_of(folder / "order.html")["curves"]:
        points = next(iter(curve["spec"]["datasets"].values()))
        assert list(dict.fromkeys(point["system"] for point in points)) == ["high", "low"]


def test_an_untied_run_has_no_crosses():
    qrels = {"q": {"a": 1}}
    runs = {"tied": {"q": {"a": 1.0, "b": 1.0}}, "late": {"q": {"b": 1.0, "c": 0.9, "a": 0.8}}}
    datasets = collect_content(qrels, runs, "RR", complete=True).forest()["spec"]["datasets"].values()
    crossed = {row["name"] for rows in datasets for row in rows if "printed" in row}
    assert crossed == {"tied"}


def test_paths_are_names_unless_asked_for(folder, tiewise_example):
    for words, shown_path in (((), False), (("--full-paths",), True)):
        done = tiewise_example(folder / "paths.html", *words)
        assert f"The page is in {folder / 'paths.html'}." in done.stderr
        assert (str(file("qrels.txt")) in (folder / "paths.html").read_text(encoding="utf-8")) is shown_path
        assert (str(folder) in (folder / "paths.html").read_text(encoding="utf-8")) is shown_path


@pytest.fixture
def tiewise_example():
    """A page of one run of the example, by the command line."""

    def run(path, *words):
        inputs = (file("qrels.txt"), file("minilm-bf16.trec.gz"))
        command = [sys.executable, "-m", "tiewise", "report", *map(str, inputs), "-m", "RR", *words, "-o", str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    return run


def test_runs_that_ties_can_reorder_are_bracketed():
    qrels = {"q": {"a": 1}}
    runs = {"tied": {"q": {"a": 1.0, "b": 1.0}}, "late": {"q": {"b": 1.0, "c": 0.9, "a": 0.8}}}
    spec = collect_content(qrels, runs, "RR", complete=True).forest()
    assert spec["brackets"] == 0  # 1/2 or 1 against 1/3, whatever the order
    runs["open"] = {"q": {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}}
    spec = collect_content(qrels, runs, "RR", complete=True).forest()
    assert dotted(spec) == [["tied", "open"], ["open", "late"]]
    caption = collect_content(qrels, runs, "RR", complete=True).forest()["caption"]
    assert "of the runs with a dot, none is ahead of another" in caption and "no room" not in caption


def dotted(forest):
    """The runs of each bracket."""
    layers = [layer for layer in forest["spec"]["layer"] if layer["mark"]["type"] == "point" and "data" in layer]
    return [[row["name"] for row in layer["data"]["values"]] for layer in layers if "values" in layer["data"]]


def test_a_bracket_passes_by_a_run_that_is_settled():
    first, second, tied = {"a": 2.0, "b": 1.0}, {"b": 2.0, "a": 1.0}, dict.fromkeys("abcdef", 1.0)
    runs = {"A": {"1": first, "2": second}, "B": {"1": second, "2": second}, "C": {"1": second, "2": tied}}
    found = collect_content({"1": {"a": 1}, "2": {"a": 1}}, runs, "RR", complete=True)
    assert [row["system"] for row in found.ranking] == ["A", "B", "C"]  # C reaches from below B to A
    assert dotted(found.forest()) == [["A", "C"], ["B", "C"]]
    assert "put C level with A" in found.answers["In every order of ties?"]


def test_the_number_of_brackets_is_limited():
    qrels = {"q": {f"r{n}": 1 for n in range(20)}}

    def run(sure):  # so many relevant documents, and up to five more, are above the cutoff
        above = {f"r{n}": 3.0 for n in range(sure)} | {f"x{n}": 2.0 for n in range(15 - sure)}
        return {"q": above | {f"r{n}": 1.0 for n in range(sure, sure + 5)} | {f"y{n}": 1.0 for n in range(5)}}

    spec = collect_content(qrels, {f"run {n}": run(n) for n in range(13)}, "P@20", complete=True).forest()
    assert spec["brackets"] == LANES < 6 == len(dotted(spec)) and "no room for 2 more brackets" in spec["caption"]


def test_the_reference_is_given_or_found_by_names(folder):
    runs = {name: file(f"minilm-{name}.trec.gz") for name in ("fp32", "bf16")}
    found = collect_content(file("qrels.txt"), runs, "nDCG@10", complete=True)
    assert [family.reference for family in found.families] == ["fp32"]
    assert found.audits["bf16"].fidelity and not found.audits["fp32"].fidelity
    found = collect_content(
        file("qrels.txt"), {"a": runs["fp32"], "b": runs["bf16"]}, "nDCG@10", complete=True, reference="b"
    )
    assert found.audits["a"].fidelity and not found.audits["b"].fidelity
    coarse = {**runs, "1bit": file("minilm-1bit.trec.bz2")}  # its lists end inside tie groups at the depth of RBO
    assert collect_content(file("qrels.txt"), coarse, "nDCG@10", complete=True).audits["1bit"].fidelity.rbo < 0.9
    assert not collect_content(
        file("qrels.txt"), {"a": runs["fp32"], "b": runs["bf16"]}, "nDCG@10", complete=True
    ).families


def test_a_precision_may_stand_beside_hps():
    names = ["m_fp32", "m_bf16", "m_bf16_hps", "m-int8-fp32", "other"]
    assert [family.members for family in find_families(names)] == [("m_fp32", "m_bf16_hps", "m_bf16")]


def test_the_gap_to_the_reference_is_that_of_the_values_shown(folder):
    qrels = {"q": {"a": 1, "b": 1}}
    runs = {"m-fp32": {"q": {"a": 3.0, "b": 2.0}}, "m-bf16": {"q": {"a": 3.0, "x": 2.5, "b": 2.0}}}
    for depth, gap in ((None, "−0.1667"), (2, "−0.5000"), (1, "0.0000")):
        tw.write_page(qrels, runs, folder / "gap.html", "AP", depth=depth, complete=True)
        assert f"gap to m-fp32 {gap}" in shown(folder / "gap.html")


def test_ties_that_move_a_further_measure_are_not_without_effect():
    qrels, run = {"q": {"a": 1, "b": 1}}, {"q": {"a": 3.0, "b": 1.0, "x": 1.0}}
    assert collect_content(qrels, {"run": run}, "RR", complete=True).audits["run"].grade == "none"
    found = collect_content(qrels, {"run": run}, ["RR", "AP"], complete=True).audits["run"]
    assert found.grade == "changes_number" and "Ties change AP by about" in found.verdict


def test_a_page_on_one_run_shows_what_one_order_gives(folder):
    tw.write_page({"q": {"a": 1}}, {"run": {"q": {"a": 1.0, "b": 1.0}}}, folder / "one.html", "RR", complete=True)
    words = shown(folder / "one.html")
    assert "highest trec_eval 1 run 0.7500 0.5000 1.0000 0.5000" in words and "ranks over" not in words


# -- the orders of one query -------------------------------------------------------------------------------------------

OPTIONS = {"depth": None, "judged_only": False, "score_dtype": None}


MEASURES = ["nDCG@5", "AP", "RR", "ERR@7", "RBP(p=0.8)", "Rprec", "P(rel=2)@3", "Bpref", "AUC"]
READINGS = [{}, {"judged_only": True}, {"score_dtype": "decimal:1"}, {"depth": 6}]


@pytest.mark.parametrize(
    ("measure", "options"),
    [(m, o) for m in MEASURES for o in READINGS if tw.parse(m).takes_depth or "depth" not in o],
)
def test_orders_run_from_the_lowest_value_to_the_highest(measure, options):
    rng = np.random.default_rng(3)
    docs = {f"d{n}": float(rng.integers(0, 40)) / 20 for n in range(25)}
    qrels = tw.Qrels.from_dict({"q": {f"d{n}": float(rng.integers(-1, 4)) for n in range(0, 30, 2)}})
    run = tw.Run.from_dict({"q": docs})
    found = replay_query(qrels, run, "q", [tw.parse(measure), tw.parse("RR")], OPTIONS | options)
    estimate = tw.evaluate(qrels, run, measure, complete=True, oblivious=None, **options)[measure]
    values = [stop["values"][0] for stop in found["stops"]]
    assert values == sorted(values) and len(values) == STOPS + 2
    assert values[0] == pytest.approx(estimate.minimum, abs=1e-12)
    assert values[-1] == pytest.approx(estimate.maximum, abs=1e-12)


def test_documents_stay_in_their_groups():
    run = tw.Run.from_dict({"q": {"a": 2.0, "b": 1.0, "x": 1.0, "y": 1.0, "c": 0.5, "z": 0.1, "w": 0.1}})
    qrels = tw.Qrels.from_dict({"q": {"a": 1, "b": 1, "c": 0}})
    found = replay_query(qrels, run, "q", [tw.parse("AP")], OPTIONS)
    assert found["docs"] == [["a", 1.0], ["b", 1.0], ["c", 0.0]]
    shape = [(one["start"], one["size"], one["groups"], one["labels"]) for one in found["groups"]]
    assert shape == [(0, 1, 1, [[1.0, 1]]), (1, 3, 1, [[1.0, 1]]), (4, 1, 1, [[0.0, 1]]), (5, 2, 1, [])]
    for stop in found["stops"]:
        assert stop["slots"][0] == 0 and sorted(stop["slots"][1:4]) == [-1, -1, 1] and stop["slots"][4:] == [2, -1, -1]
    assert [stop["slots"].index(1) for stop in (found["stops"][0], found["stops"][-1])] == [3, 1]


def test_an_example_query_is_one_that_the_run_has():
    qrels = {f"q{n}": {"a": 1} for n in range(6)}
    found = collect_content(
        qrels, {"run": {"q5": {"a": 1.0}}}, "RR", complete=True
    )  # it lacks the first ones, and has no ties
    assert found.widest_queries == [("q5", "run")] and not found.is_moved


def test_a_list_without_a_judged_document_is_worth_the_same_in_every_order():
    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1, "b": 0}}
    runs = {"A": {"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 2.0}}, "B": {"q1": {"x": 2.0, "y": 2.0}, "q2": {"a": 2.0}}}
    lists = collect_content(qrels, runs, ["RR", "Judged@2"], complete=True).replays()[0]["lists"]
    assert [one["run"] for one in lists] == ["A", "B"]
    assert {tuple(stop["values"]) for stop in lists[1]["stops"]} == {(0.0, 0.0)} and lists[1]["docs"] == []


def test_with_skipped_queries_every_number_is_about_the_same_ones(folder):
    qrels = {f"q{i}": {"a": 1, "b": 0} for i in range(4)}
    high, low = {"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 2.0}
    runs = {"A": {"q0": high, "q1": low, "q2": high}, "B": {"q1": high, "q2": low, "q3": high}}
    page = collect_content(qrels, runs, "RR", missing="skip", complete=True)
    datasets = page.forest()["spec"]["datasets"].values()
    drawn = {row["name"]: row["expected"] for rows in datasets for row in rows if "expected" in row}
    assert drawn == {"A": 0.75, "B": 0.75}  # over the queries of both, as the ranking
    found = page.per_query()
    assert found["queries"] == ["q1", "q2"] and page.queries == 2
    assert [one["expected"] for one in found["runs"]] == [[0.5, 1.0], [1.0, 0.5]]
    assert [report["RR"].expected for report in page.reports.values()] == [0.75, 0.75]
    assert page.notes[0] == "Only the 2 of 4 judged queries that every run has are on this page."
    tw.write_page(qrels, runs, folder / "skipped.html", "RR", missing="skip", complete=True)
    words = shown(folder / "skipped.html")
    assert "2 runs · 2 of 4 judged queries · RR" in words and "judgments in memory 4 8 –" in words
    with pytest.raises(InputError, match="no judged query in common"):
        collect_content(qrels, {"A": {"q0": high}, "B": {"q1": high}}, "RR", missing="skip")


def test_skipped_queries_keep_the_subtopics_of_the_others():
    judgments = {f"q{i}": {"a": {"1": 1}, "b": {"2": 1}} for i in range(3)}
    runs = {
        name: {query: {"a": 2.0, "b": 1.0} for query in queries}
        for name, queries in {"A": ["q0", "q2"], "B": ["q1", "q2"]}.items()
    }
    page = collect_content(judgments, runs, "alpha_nDCG@20", missing="skip", complete=True)
    assert page.queries == 1 and page.qrels.to_dict() == {"q2": judgments["q2"]}


def test_differences_that_are_rounding_are_none():
    data = figures.differences({"q1": 0.1 + 0.2, "q2": 0.5}, {"q1": 0.3, "q2": 0.25}).to_dict()["datasets"].values()
    assert [row["query"] for rows in data for row in rows if "query" in row] == ["q2"]


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"path": "report.pdf"}, "End the name in .html"),
        ({"reference": "nobody"}, "not one of the runs"),
        ({"seed": -1}, "seed is a whole number"),
        ({"seed": "one"}, "seed is a whole number"),
        ({"orders": "same"}, "Unknown orders 'same'"),  # also of one run, which is compared with none
        ({"test": "z"}, "Unknown test 'z'"),
        ({"confidence": 3}, "confidence lies between 0 and 0.999"),
        ({"progress": True}, "progress is a function"),
        ({"runs": {}}, "Give the runs as"),
        ({"runs": {1: {"q": {"a": 1.0}}, "1": {"q": {"a": 1.0}}}}, "Two of the runs are called '1'"),
        ({"measures": "NumRet"}, "is a count"),
        ({"runs": {str(n): {"q": {"a": 1.0}} for n in range(51)}}, "50 runs at most"),
    ],
)
def test_invalid_input_of_a_page_is_an_error(changed, message, folder):
    given = {"qrels": {"q": {"a": 1}}, "runs": {"run": {"q": {"a": 1.0}}}, "path": folder / "refused.html"} | changed
    with pytest.raises(InputError, match=message):
        tw.write_page(**given)
    assert not (folder / "refused.html").exists()


def test_data_in_a_script_cannot_end_it():
    text = _json({"<": [f"{BREAKOUT}&\u2028\u2029", 0.123456789, 2.0, None]})
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == {"<": [f"{BREAKOUT}&\\u2028\\u2029", 0.123457, 2, None]}


def test_hostile_names_are_text_in_the_source(hostile):
    text = hostile.read_text(encoding="utf-8").partition('<script type="module">')[0]  # before the page's own scripts
    for attack in (HOSTILE, "<img", "\x1b", "\u202e"):
        assert attack not in text
    assert data_of(hostile)["runs"] == [HOSTILE, BREAKOUT]


def test_a_page_of_ten_systems_and_a_thousand_queries_is_small(folder, monkeypatch):
    rng, queries = np.random.default_rng(0), [f"query-{n:04d}" for n in range(1000)]
    docs = [f"document-{n:06d}" for n in range(20)]
    column = np.repeat(queries, len(docs)), np.tile(docs, len(queries))
    qrels = tw.Qrels.from_columns(*column, rng.integers(0, 3, len(column[0])).astype(float))
    runs = {f"system-{n}": tw.Run.from_columns(*column, rng.integers(0, 9, len(column[0])) / 8.0) for n in range(10)}
    # Chances by few random orders: the size is the same.
    tw.write_page(qrels, runs, folder / "large.html", "nDCG@10", complete=True, samples=20)
    assert (folder / "large.html").stat().st_size < LIMIT
    assert len(data_of(folder / "large.html")["perQuery"]["queries"]) == 1000


#: Texts whose contrast with what is behind them is below 4.5, as WCAG counts it.
FAINT_TEXTS = """(() => {
  const light = (colour) => {
    const part = (x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = colour.match(/[\\d.]+/g).map((x) => part(x / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    const ground = getComputedStyle(one).backgroundColor;
    return ground === "rgba(0, 0, 0, 0)" && one.parentElement ? behind(one.parentElement) : ground;
  };
  const worded = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const faint = (one) => {
    const style = getComputedStyle(one);
    const [a, b] = [one instanceof SVGElement ? style.fill : style.color, behind(one)].map(light);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5 || Number(style.opacity) < 1;
  };
  const seen = [...document.querySelectorAll("body *")].filter((one) => worded(one) && one.getClientRects().length);
  return seen.filter((one) => !["OPTION", "SCRIPT"].includes(one.tagName) && faint(one)).map((one) => one.outerHTML);
})()"""

# -- in a browser ------------------------------------------------------------------------------------------------------

needs_browser = pytest.mark.skipif(chromium() is None, reason="needs Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def browser():
    with Browser() as one:
        yield one


@pytest.fixture
def page(browser, example):
    browser.open(example, "?theme=light", ready=READY)
    yield browser
    assert browser.complaints == []
    assert browser.fetched == [f"{example.as_uri()}?theme=light"]


def texts(page, selector):
    return page.do(f"[...document.querySelectorAll({json.dumps(selector)})].map(one => one.textContent.trim())")


def choose(page, selector, value):
    page.do(
        f"(s => {{s.value = {json.dumps(value)}; for (const kind of ['input', 'change']) "
        f"s.dispatchEvent(new Event(kind, {{bubbles: true}}))}})(document.querySelector({json.dumps(selector)}))"
    )


@needs_browser
def test_charts_are_drawn_and_curves_drawn_anew(page):
    assert page.do("document.querySelectorAll('.chart svg').length") == 2
    assert "tie order open" in texts(page, "#forest svg text")
    line = "document.querySelector('#curve svg .mark-line path').getAttribute('d')"
    row = texts(page, "#curve-values tbody th").index("minilm-bf16") + 1
    before, first = page.do(line), texts(page, f"#curve-values tbody tr:nth-child({row}) td")
    choose(page, "#curve-measure", "1")
    page.wait_for("document.querySelector('#curve').dataset.drawn === '2'")
    assert page.do(line) != before
    choose(page, "#curve-cutoff", "10")
    page.wait_for("document.querySelector('#curve').dataset.drawn === '3'")
    assert texts(page, "#curve-values thead th[scope=col]")[:2] == ["run", "RR@10"]
    report = tw.evaluate(file("qrels.txt"), file("minilm-bf16.trec.gz"), "RR@10", complete=True)["RR@10"]
    values = [f"{value:.4f}" for value in (report.expected, report.minimum, report.maximum, report.oblivious)]
    assert texts(page, f"#curve-values tbody tr:nth-child({row}) td") == values != first


@needs_browser
def test_tables_sort_and_say_so(page):
    column = "#systems table.sortable:first-of-type tbody tr th"
    heads = "#systems table.sortable thead th"
    best = texts(page, column)[:3]
    page.click(f"{heads}:nth-child(3) button")  # expected, already descending by rank
    assert page.do(f"document.querySelector('{heads}:nth-child(3)').getAttribute('aria-sort')") == "descending"
    assert texts(page, column)[:3] == best
    page.press("Enter", 13)  # the button has the focus
    assert page.do(f"document.querySelector('{heads}:nth-child(3)').getAttribute('aria-sort')") == "ascending"
    assert texts(page, column)[:3] == best[::-1]
    assert page.do(f"document.querySelectorAll('{heads}[aria-sort]').length") == 1


@needs_browser
def test_queries_sort_and_filters_filter(page):
    ranges = [float(text) for text in texts(page, "#query-table tbody td:nth-child(6)")]
    assert ranges == sorted(ranges, reverse=True) and ranges[0] > 0
    page.click("#query-table thead th:nth-child(1) button")
    names = texts(page, "#query-table tbody th")
    assert names == sorted(names, key=str.lower)
    page.click("#query-text")
    page.type("Signature")
    assert all("signature" in name.lower() for name in texts(page, "#query-table tbody th"))
    choose(page, "#query-run", "2")
    assert set(texts(page, "#query-table tbody td:nth-child(2)")) == {"minilm-hps"}
    choose(page, "#query-run", "0")
    page.click("#query-moved")
    assert texts(page, "#query-table tbody td:nth-child(2)") == ["minilm-bf16"]
    assert texts(page, "#query-count") == ["1 of 1 rows shown."]
    page.do("document.querySelector('#query-text').value = ''")
    page.click("#query-moved")
    assert len(texts(page, "#query-table tbody tr")) == 25
    page.click("#query-more")
    assert len(texts(page, "#query-table tbody tr")) == 125


@needs_browser
def test_the_slider_reorders_documents_and_moves_the_value(page):
    query = texts(page, "#play-query option")[0]
    estimate = tw.evaluate(file("qrels.txt"), file("minilm-bf16.trec.gz"), "nDCG@10", complete=True).per_query(
        "nDCG@10"
    )
    assert estimate[query].range == max(one.range for one in estimate.values())
    assert texts(page, "#play-value strong") == [f"{estimate[query].minimum:.4f}"]
    worst = texts(page, "#play-groups .tied .chip")
    page.do("document.querySelector('#play-order').focus()")
    page.press("End", 35)
    assert texts(page, "#play-value strong") == [f"{estimate[query].maximum:.4f}"]
    best = texts(page, "#play-groups .tied .chip")
    assert best != worst and any("unjudged" in text for text in best)
    none = "[...document.querySelectorAll('#play-groups .tied .chip.none')]"
    chips = page.do(f"{none}.map((chip) => [...chip.children].map((part) => part.textContent))")
    assert chips and all(("–" in rank) == (what != "unjudged") for rank, what in chips)  # one is not counted
    page.press("ArrowLeft", 37)
    label = page.do("document.querySelector('#play-order').getAttribute('aria-valuetext')")
    assert label.startswith(f"random order {STOPS} of {STOPS}")


@needs_browser
def test_the_switch_shows_one_precision_with_its_fidelity(page):
    visible = ".panel:not([hidden])"
    assert "of its rows are tied" in texts(page, visible)[0] and "pairs inverted" in texts(page, visible)[0]
    page.click(".switch input[value='minilm-hps']")
    assert len(texts(page, visible)) == 1 and texts(page, f"{visible} h3") == ["minilm-hps"]
    assert "the other way round" in texts(page, visible)[0]
    assert page.do("document.querySelector('#play-run').selectedOptions[0].textContent") == "minilm-hps"
    page.press("ArrowUp", 38)  # by keyboard, as radio buttons go
    assert texts(page, f"{visible} h3") == ["minilm-fp32"] and "reference" in texts(page, visible)[0]


@needs_browser
def test_light_and_dark(page):
    colour = "getComputedStyle(document.querySelector('#forest svg .role-axis-label text')).fill"
    light = page.do(colour)
    page.click("#theme")
    assert page.do("document.documentElement.dataset.theme") == "dark"
    assert page.do(colour) != light  # charts take the colours of the page
    assert page.do("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"


@needs_browser
def test_on_a_desk_no_table_is_cut_off(page):
    cut = "[...document.querySelectorAll('.scroll, pre')].filter(one => one.scrollWidth > one.clientWidth).length"
    assert page.do(cut) == 0


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_enough_contrast(browser, example, theme):
    browser.open(example, f"?theme={theme}", ready=READY)
    assert browser.do("document.querySelectorAll('#forest text').length") > 10
    assert browser.do(FAINT_TEXTS) == []


@needs_browser
def test_the_page_fits_a_phone(browser, example):
    browser.open(example, width=390, height=844, ready=READY)
    assert browser.do("document.documentElement.scrollWidth") == 390
    wide = "[...document.querySelectorAll('svg')].filter(one => one.getBoundingClientRect().right > 390).length"
    assert browser.do(wide) == 0 and browser.complaints == []
    cut = "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth).length"
    assert browser.do(cut) == 0  # each row is a block, so that no number is cut
    first = "document.querySelector('#systems tbody tr')"
    assert browser.do(f"{first}.textContent") and browser.do(f"{first}.querySelector('th').offsetWidth") > 300
    named = "[...document.querySelectorAll('.scroll tbody td')].every(one => one.dataset.label)"
    shown_name = "getComputedStyle(document.querySelector('#systems tbody td'), '::before').content"
    assert browser.do(named) and browser.do(shown_name) == '"rank"'


@needs_browser
def test_a_chart_fits_before_it_is_drawn_anew(browser, example):
    browser.open(example, width=1280, ready=READY)
    browser.do("clearTimeout = () => 0, setTimeout = () => 0")  # nothing is drawn anew
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.ask("Emulation.setDeviceMetricsOverride", **size)
    assert browser.do("[...document.querySelectorAll('svg')].every(one => one.getBoundingClientRect().right < 390)")


@needs_browser
def test_on_a_phone_the_legend_is_whole(browser, folder):
    tied = {"q": dict.fromkeys("abcde", 1.0)}
    runs = {"a-run-with-a-long-name": tied, "another-with-a-long-name": tied}
    tw.write_page({"q": {"e": 1}}, runs, folder / "legend.html", "nDCG@10", complete=True)
    browser.open(folder / "legend.html", width=390, height=844, ready=READY)
    assert any(text.startswith("sentence-transformers, ") for text in texts(browser, "#forest text"))
    edge = "document.querySelector('#forest').getBoundingClientRect().right"
    past = f"[...document.querySelectorAll('#forest text')].filter(one => one.getBoundingClientRect().right > {edge})"
    assert browser.do(f"{past}.map(one => one.textContent)") == []


@needs_browser
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_cell_reaches_into_the_next(browser, folder, width):
    """Also where a chance is by random orders, and so has a margin."""
    rng, docs = np.random.default_rng(1), [f"d{n}" for n in range(40)]
    qrels = {f"q{q}": {doc: int(rng.integers(3)) for doc in docs[:30]} for q in range(9)}
    names = ("input.MU03rob01", "input.UAmsT03RDesc", "input.rutcor03100")
    runs = {name: {q: {doc: float(rng.integers(3)) for doc in docs} for q in qrels} for name in names}
    tw.write_page(qrels, runs, folder / "cells.html", "nDCG@10", complete=True)
    browser.open(folder / "cells.html", width=width, height=844, ready=READY)
    assert any(re.search("A ahead in .*% ± ", text) for text in texts(browser, "#pairs td"))
    wide = "[...document.querySelectorAll('.scroll tbody td')].filter(one => one.scrollWidth > one.clientWidth)"
    assert browser.do(f"{wide}.map(one => one.textContent)") == []


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_long_names_differ_in_the_charts(browser, folder, width):
    names = [f"a-model-with-a-name-that-is-far-too-long-for-any-chart-{end}" for end in ("bf16", "fp32")]
    runs = dict(zip(names, ({"q": dict.fromkeys("abc", 1.0)}, {"q": {"a": 2.0, "b": 1.0}}), strict=True))
    tw.write_page({"q": {"b": 1}}, runs, folder / "long.html", "RR", complete=True)
    browser.open(folder / "long.html", width=width, height=844, ready=READY)
    for chart in ("#forest", "#curve"):
        for end in ("bf16", "fp32"):
            assert any(text.endswith(end) for text in texts(browser, f"{chart} svg text")), chart
    past = "[...document.querySelectorAll('svg text')].filter(one => one.getBoundingClientRect().right > innerWidth)"
    assert browser.do(f"{past}.length") == 0


@needs_browser
def test_two_cards_leave_no_column_empty(browser, folder):
    runs = {"one": {"q": {"a": 1.0}}, "two": {"q": {"b": 1.0}}}
    tw.write_page({"q": {"a": 1}}, runs, folder / "cards.html", "RR", complete=True)
    browser.open(folder / "cards.html", width=1280, ready=READY)
    edge = "(one => document.querySelector(one).getBoundingClientRect().right)"
    assert browser.do(f"{edge}('.cards .card:last-child')") == pytest.approx(browser.do(f"{edge}('.cards')"), abs=1)


@needs_browser
def test_it_prints(browser, example, folder):
    browser.open(example, "?theme=dark", ready=READY)
    browser.print(folder / "page.pdf")
    assert (folder / "page.pdf").read_bytes().startswith(b"%PDF")
    browser.ask("Emulation.setEmulatedMedia", media="print")
    assert browser.do("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert browser.do("[...document.querySelectorAll('.panel')].every(one => one.offsetHeight > 0)")
    assert browser.do("[...document.querySelectorAll('.switch, .screen')].every(one => one.offsetHeight === 0)")
    head = "document.querySelector('thead button')"  # a button would keep the heads from being on each page
    assert browser.do(f"getComputedStyle({head}).display") == "contents" and browser.do(f"{head}.textContent")
    assert browser.do("getComputedStyle(document.querySelector('#play-chosen')).display") == "block"
    chosen = browser.do("document.querySelector('#play-chosen').textContent")
    assert chosen == "Query {}, run {}".format(
        *browser.do("['play-query', 'play-run'].map(id => document.getElementById(id).selectedOptions[0].textContent)")
    )
    assert browser.do("document.querySelector('#curve-chosen').offsetHeight") > 0
    assert browser.do("document.querySelector('#query-chosen').offsetHeight") == 0  # all queries are shown
    browser.ask("Emulation.setEmulatedMedia", media="")


@needs_browser
def test_hostile_names_are_escaped(browser, hostile):
    browser.open(hostile, ready=READY)
    choose(browser, "#play-query", "1")
    choose(browser, "#play-order", "7")
    choose(browser, "#curve-measure", "1")
    browser.wait_for("document.querySelector('#curve').dataset.drawn === '2'")
    browser.do(
        "document.querySelector('#curve svg .mark-symbol path').dispatchEvent(new PointerEvent('pointermove', "
        "{bubbles: true, clientX: 300, clientY: 300}))"
    )
    assert browser.do("window.hacked === undefined && !document.querySelector('main img, main script')")
    assert HOSTILE in texts(browser, "#query-table tbody th") and HOSTILE in texts(browser, "h1")
    assert any(HOSTILE in text for text in texts(browser, "#play-groups .chip .id"))
    assert browser.complaints == [] and browser.fetched == [hostile.as_uri()]


def test_the_chart_library_is_kept_and_made_again_if_the_file_was_changed(tmp_path, monkeypatch):
    def programs(folder: Path) -> str:
        monkeypatch.setenv("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", str(folder))
        _programs.cache_clear()
        return _programs()

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    made, version = programs(tmp_path / "first"), pytest.importorskip("vl_convert").__version__
    assert BUNDLES.get(version, digest(made)) == digest(made)
    monkeypatch.setitem(BUNDLES, version, digest(made))
    assert programs(tmp_path) == made
    (kept,) = (tmp_path / "tiewise").iterdir()
    text = kept.read_text(encoding="utf-8")
    assert text == made and "vegaEmbed" in made
    for damaged in (text[:-1], text.replace("vegaEmbed", "vegaembed"), "", f"{digest('alert(1)')}\nalert(1)"):
        kept.write_text(damaged, encoding="utf-8")
        assert programs(tmp_path) == made
        assert kept.read_text(encoding="utf-8") == text
    kept.write_bytes(b"\xff")
    assert programs(tmp_path) == made
    (tmp_path / "file").touch()
    assert programs(tmp_path / "file") == made  # nothing can be kept there
    monkeypatch.delitem(BUNDLES, version)
    kept.write_text("alert(1)", encoding="utf-8")
    assert programs(tmp_path) == made  # of an unknown version nothing is kept or trusted
    assert kept.read_text(encoding="utf-8") == "alert(1)"
    _programs.cache_clear()


def test_marks_of_sampled_values_and_of_bounds(folder):
    rng = np.random.default_rng(5)
    docs = [f"d{i:02d}" for i in range(30)]
    rows = [(f"q{q}", doc, 1, name) for q in range(2) for doc in docs for name in "ab" if rng.random() < 0.4]
    runs = {
        name: {f"q{q}": {doc: float(rng.integers(2)) for doc in docs} for q in range(2)} for name in ("one", "other")
    }
    qrels, measures = tw.Qrels.from_rows(rows, kind="diversity"), ["alpha_nDCG@20", "LogAP"]
    mean = tw.evaluate(qrels, runs["one"], measures, complete=True)["alpha_nDCG@20"]
    for some in (runs, {"one": runs["one"]}):
        tw.write_page(qrels, some, folder / "marks.html", measures, complete=True)
        text = unescape((folder / "marks.html").read_text(encoding="utf-8"))
        assert f">≥{mean.minimum:.4f}<" in text and f">≤{mean.maximum:.4f}<" in text  # the ranking
        assert f"≥{mean.minimum:.4f} – ≤{mean.maximum:.4f}" in text and re.search(r">~−\d\.\d{4} ", text)
    assert f"a single order can move it at most between {mean.minimum:.4f} and" in text


@needs_browser
def test_tables_that_the_script_fills_have_marks(browser, folder):
    rng = np.random.default_rng(5)
    docs = [f"d{i:02d}" for i in range(30)]
    rows = [("q1", doc, 1, topic) for doc in docs for topic in "ST" if rng.random() < 0.4] + [("q2", "a", 1, "S")]
    run = {"q1": dict.fromkeys(docs, 1.0), "q2": {"a": 1.0}}  # too many tied documents to find the extremes
    qrels = tw.Qrels.from_rows(rows, kind="diversity")
    tw.write_page(qrels, {"run": run}, folder / "filled.html", "alpha_nDCG@20", complete=True)
    each = tw.evaluate(qrels, run, "alpha_nDCG@20", complete=True).per_query("alpha_nDCG@20")
    assert each["q1"].method["extremes"] == "bound" and each["q2"].method["extremes"] == "exact"
    browser.open(folder / "filled.html", ready=READY)
    tied, plain = (texts(browser, f"#query-table tbody tr:nth-child({n}) > *") for n in (1, 2))
    lowest, highest = each["q1"].minimum, each["q1"].maximum
    assert tied[3:6] == [f"≥{lowest:.4f}", f"≤{highest:.4f}", f"≤{highest - lowest:.4f}"]
    assert plain[2:6] == ["1.0000", "1.0000", "1.0000", "0.0000"]
    assert [value[0] for value in texts(browser, "#curve-values tbody td")[1:3]] == ["≥", "≤"]


def test_the_headline_names_another_leader_only_if_it_is_higher(tmp_path):
    qrels = {f"q{i}": {"d1": 1, "d2": 1} for i in range(4)}
    ranks = {"A": ["d3", "d1", "d2", "d4", "d5"], "B": ["d1", "d3", "d4", "d5", "d2"]}
    runs = {name: {q: {d: -float(r) for r, d in enumerate(order)} for q in qrels} for name, order in ranks.items()}
    tw.write_page(qrels, runs, tmp_path / "page.html", ["RR", "R@5", "Success@5", "R@3"])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "B has the highest expected RR of 2 runs, 1.0000. By R@3, the highest is A." in text
    assert "the highest is B" not in text and "Success@5, the highest" not in text
