"""The table model: every format renders the same table, and every result converts by the same code."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiewise as tw
from tiewise.results.base import Result
from tiewise.results.data_formats import render_csv, render_json, render_json_lines, render_tsv, round_floats
from tiewise.results.html import render_html
from tiewise.results.latex import render_latex
from tiewise.results.markdown import render_markdown
from tiewise.results.model import BEST, Bar, Cell, Code, Column, Paragraph, Rows, Section, Table, columns_of
from tiewise.results.text import render_text
from tiewise.results.view import View
from tiewise.results.wording import PLAIN, NumberFormat, encodable

COLUMNS = {"system": ["A", "B", "C"], "depth": [10, None, 5], "score": [0.5, 1.0, None], "kept": [True, False, True]}


def test_rows_are_read_by_number_and_columns_by_name():
    rows = Rows(COLUMNS)
    assert len(rows) == 3 and rows.columns == ("system", "depth", "score", "kept")
    assert [row["system"] for row in rows] == rows["system"] == ["A", "B", "C"]
    assert rows[-1] == {"system": "C", "depth": 5, "score": None, "kept": True}
    assert list(rows[1:]) == [rows[1], rows[2]] and isinstance(rows[1:], Rows)
    with pytest.raises(IndexError):
        rows[3]
    with pytest.raises(KeyError):
        rows["nothing"]


def test_rows_copy_their_columns():
    given = {"depth": (1, 2)}
    rows = Rows(given)
    rows["depth"].append(3)
    assert given == {"depth": (1, 2)}


def test_rows_print_as_aligned_columns():
    lines = repr(Rows(COLUMNS)).splitlines()
    assert [line.split() for line in lines] == [
        ["system", "depth", "score", "kept"],
        ["A", "10", "0.5000", "yes"],
        ["B", "–", "1.0000", "no"],
        ["C", "5", "–", "yes"],
    ]
    assert len({line.index(word) for line, word in zip(lines, ["score", "0.5", "1.0", "–"], strict=True)}) == 1
    assert not any(line.endswith(" ") for line in lines)


def test_empty_rows():
    assert len(Rows({})) == len(Rows({"a": []})) == 0
    assert (repr(Rows({})), repr(Rows({"a": []}))) == ("", "a")


def test_rows_become_a_data_frame():
    frame = Rows(COLUMNS).to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(COLUMNS) and frame["score"].iloc[0] == 0.5


# -- one table in every format -----------------------------------------------------------------------------------------

TABLE = Table(
    columns_of(["run"], ["nDCG@10", "p"]),
    [("a_b|<i>", Cell(".363", "[.359, .368]", BEST), 0.5), ("all", Cell(".362", mark="¹"), None)],
    notes=("¹ a note",),
    summary=frozenset({1}),
)
SECTION = Section(
    [TABLE, Paragraph("A verdict.", "good"), Code({"your own code": "score(x)"})], "Two runs", ["A note."]
)


def test_text():
    lines = render_text(SECTION).splitlines()
    assert lines == [
        "Two runs",
        "run                 nDCG@10       p",
        "a_b|<i>  .363* [.359, .368]  0.5000",
        "─" * 35,
        "all      .362¹                    –",
        "¹ a note",
        "A verdict.",
        "for your own code:",
        "  score(x)",
        "note: A note.",
    ]
    assert "\x1b[1m" in render_text(SECTION, colour=True)


def test_a_row_is_one_line():
    """Numbers are never cut, and rows are never split over tables: only names are folded."""
    wide = Table(columns_of(["run", *[f"column {n}" for n in range(9)]], []), [("x" * 70, *[".123 – .456"] * 9)])
    assert len(render_text(Section([wide]), width=200).splitlines()) == 2
    narrow = render_text(Section([TABLE]), width=30)
    assert narrow.count("a_b|<i>") == 1 and ".363* [.359, .368]" in narrow
    long = render_text(Section([Table(columns_of(["run"], ["AP"]), [("a name " * 12, 0.5)])]), width=40)
    assert max(map(len, long.splitlines())) <= 40 and "0.5000" in long


def test_groups_of_columns():
    columns = (Column("run"), *(Column("value", align="right", group=one) for one in ("nDCG@10", "a long measure")))
    table = Table(columns, [("bm25", ".4", ".5")])
    assert render_text(Section([table])) == (
        "       nDCG@10   a long measure\nrun      value            value\nbm25        .4               .5\n"
    )
    assert "| run | nDCG@10 value | a long measure value |" in render_markdown(Section([table]))
    assert '<th colspan="1"' in render_html(Section([table]))
    assert r"\multicolumn{1}{c}{nDCG@10} & \multicolumn{1}{c}{a long measure} \\" in render_latex(Section([table]))


def test_markdown():
    assert render_markdown(SECTION).split("\n\n") == [
        "Two runs:",
        "| run | nDCG@10 | p |\n| :-- | --: | --: |\n| a\\_b\\|&lt;i> | **.363**\\* [.359, .368] | 0.5000 |\n"
        "| all | .362¹ | – |",
        "¹ a note",
        "A verdict.",
        "```python\n# for your own code\nscore(x)\n```",
        "- A note.\n",
    ]


def test_latex():
    lines = render_latex(SECTION).splitlines()
    assert lines[1:3] == ["% A verdict.", "%   your own code: score(x)"]
    assert lines[6] == r"\caption{Two runs. \textsuperscript{1} a note.}"
    assert r"{lS[table-format=1.3,table-space-text-post={\textsuperscript{1}}]@{\,}lS[table-format=1.4]}" in lines[7]
    assert r"run & \multicolumn{2}{c}{nDCG@10} & {p} \\" in lines and lines[-1] == r"\end{table}"
    name = r"a\_b\textbar{}\textless{}i\textgreater{}"  # | alone would be a dash
    assert rf"{name} & \bfseries 0.363 & {{\scriptsize {{[}}0.359, 0.368]}} & 0.5000 \\" in lines
    assert r"all & 0.362{\textsuperscript{1}} &  & {--} \\" in lines and lines.count(r"\midrule") == 2


def test_latex_has_a_proper_minus():
    table = Table(columns_of(["run-1"], ["gap", "words"]), [("a-b", Cell("−.004", "[−.006, .002]"), "no (−1%)")])
    text = render_latex(Section([table]))
    assert r"S[table-format=+1.3]@{\,}l" in text  # siunitx sets the minus of a number
    assert r"a-b & -0.004 & {\scriptsize {[}$-$0.006, 0.002]} & no ($-$1\%) \\" in text and "run-1" in text


def test_latex_keeps_signs_and_writes_zeros():
    table = Table(columns_of(["run.5"], ["gap", "half"]), [("v.5", "+.004", "±.055")], title="p = .04")
    text = render_latex(Section([table]))
    assert "retain-explicit-plus" in text and r"v.5 & +0.004 & $\pm$0.055 \\" in text and r"\caption{p = 0.04.}" in text


def test_a_pair_shows_the_same_before_and_after_a_comparison_in_two_measures():
    runs = {"A": {"q": {"a": 2.0, "b": 1.0}}, "B": {"q": {"b": 2.0, "a": 1.0}}}
    found = tw.compare({"q": {"a": 1}}, runs, ["RR", "AP"])
    before = found.pair("A", "B", "RR").to_text()
    found.to_text()
    assert found.pair("A", "B", "RR").to_text() == before


def test_wide_tables_span_both_columns_in_latex():
    kinds = []
    for many in (3, 6, 12, 16):
        table = Table(columns_of(["run"], [f"nDCG@{n}" for n in range(10, 10 + many)]), [("a name", *[0.5] * many)])
        lines = render_latex(Section([table])).splitlines()
        kind, size = re.fullmatch(r"\\begin\{(table\*?)\}\[t\] \\centering\\(\w+?)\\.*", " ".join(lines[1:3])).groups()
        assert lines[-1] == rf"\end{{{kind}}}"
        kinds.append((kind, size))
    assert kinds == [("table", "small"), ("table*", "small"), ("table*", "footnotesize"), ("table*", "scriptsize")]


def test_latex_sets_details_of_several_columns_below_the_numbers():
    cells = (Cell(".5", "[.4, .6]", "*†"), Cell(".25", "[.2, .3]", "(‡)"))
    lines = render_latex(Section([Table(columns_of(["run"], ["A", "B"]), [("x", *cells)])])).splitlines()
    first = lines.index(r"x & \bfseries 0.5{\textsuperscript{$\dagger$}} & 0.25{\textsuperscript{($\ddagger$)}} \\")
    assert lines[first + 1] == r" & {\scriptsize {[}0.4, 0.6]} & {\scriptsize {[}0.2, 0.3]} \\"


def test_html_escapes_text_and_draws_bars():
    table = Table((Column("run"), Column("", "")), [("<b>", Bar(0.1, 0.2, 0.3))])
    text = render_html(Section([table, "x < y"], "<title>", ["a & b"]))
    assert (
        "&lt;b&gt;" in text
        and "<svg" in text
        and "x &lt; y" in text
        and "&lt;title&gt;" in text
        and "a &amp; b" in text
    )
    assert "svg" not in render_markdown(Section([table])) and "| run |\n" in render_markdown(Section([table]))


def test_formats_for_programs_keep_full_precision():
    table = Table.of_columns({"a": ["x\ty", None], "b": [1 / 3, 2]})
    assert "".join(render_tsv(table)) == "a\tb\nx\\ty\t0.3333333333333333\n\t2\n"
    assert "".join(render_csv(table, digits=2)) == "a,b\nx\ty,0.33\n,2\n"
    assert [json.loads(line) for line in "".join(render_json_lines(table, 2)).splitlines()] == [
        {"a": "x\ty", "b": 0.33},
        {"a": None, "b": 2},
    ]


def json_documents():
    texts = st.text(st.characters(exclude_categories=["Cs"]))
    values = st.none() | st.booleans() | st.integers() | st.floats() | texts
    return st.recursive(values, lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(texts, inner))


@given(json_documents(), st.none() | st.integers(0, 6))
def test_json_has_the_bytes_of_the_standard_library(document, digits):
    expected = json.dumps(round_floats(document, digits), indent=2, ensure_ascii=False) + "\n"
    assert "".join(render_json(document, digits)) == expected


def test_json_comes_in_blocks_and_makes_each_query_plain_as_it_is_written():
    qrels, run = ({f"q{place}": {"a": 1.0, "b": 0.0} for place in range(3000)} for _ in range(2))
    report = tw.evaluate(qrels, run, ["RR", "nDCG@10"])
    blocks = list(render_json(report._to_dict(View(per_query=True))))
    assert len(blocks) > 10 and "".join(blocks) == report.to_json(per_query=True) + "\n"


@pytest.mark.parametrize("value", [0.0, -0.0, 0.00004, -0.00004, 0.25, -0.25, 1.0, 12.5, 1e-9])
def test_numbers_differ_only_in_the_leading_zero(value):
    short = NumberFormat(4, leading_zero=False)
    for write in ("number", "signed"):
        plain = getattr(PLAIN, write)(value)
        assert getattr(short, write)(value) == re.sub(r"^([+−]?)0\.", r"\1.", plain)
    assert PLAIN.number(value) in ("0.0000", f"{value:.4f}".replace("-", "−"))


# -- results -----------------------------------------------------------------------------------------------------------


def results():
    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}
    runs = {
        "tied": {"q1": {"a": 1.0, "b": 1.0}, "q2": {"c": 2.0, "d": 1.0}},
        "late": {"q1": {"b": 2.0, "a": 1.0}, "q2": {"c": 2.0, "d": 1.0}},
    }
    compared = tw.compare(qrels, runs, "RR", complete=True)
    audit = tw.audit(runs["tied"], qrels=qrels, reference=runs["late"])
    several = tw.compare(qrels, runs | {"again": runs["late"]}, ["RR", "P@1"], complete=True)
    return [
        several,
        compared,
        compared.pair("tied", "late"),
        compared.ranking(),
        audit,
        audit.fidelity,
        tw.similarity(runs, "RBO"),
        tw.stages(runs["late"], {"tied": runs["tied"]}, 1, 0.8),
        tw.unjudged(qrels, runs["tied"], "P@2"),
    ]


@pytest.mark.parametrize("result", results(), ids=lambda result: type(result).__name__)
def test_every_result_converts(result):
    assert isinstance(result, Result)
    assert len(result.to_frame()) >= 1
    json.dumps(result.to_dict())
    assert result.to_markdown().count("| ") > 4
    assert result.to_latex().count(r"\begin{tabular}") == result.to_latex().count(r"\end{tabular}") >= 1
    assert result._repr_html_().startswith("<div")


def test_the_frame_of_an_estimate_has_the_columns_and_numbers_of_its_report():
    qrels, run = {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 1.0, "c": 1.0}, "q2": {"b": 1.0}}
    report = tw.evaluate(qrels, run, "RR", rerun=run, complete=True)
    whole, alone = report.to_frame().drop(columns="query"), report["RR"].to_frame()
    pandas.testing.assert_frame_equal(alone, whole, check_dtype=False, check_exact=True)
    assert (alone["minimum"][0], alone["maximum"][0]) == (0.75, 1.0)


def test_the_frames_of_rank_biased_results_have_numbers():
    bounds = tw.rbo("a (b c)", "b a d")
    frame = bounds.to_frame().set_index("bound")
    assert list(frame.index) == ["lower", "extrapolated", "upper"]
    for name, row in frame.iterrows():
        part = getattr(bounds, name)
        assert [row["minimum"], row["maximum"], row["std"]] == [part.minimum, part.maximum, part.std]
    tau = tw.tau("a (b c)", "a b c")
    (row,) = tau.to_frame().to_dict("records")
    assert (row["minimum"], row["maximum"], row["tau_b"]) == (tau.minimum, tau.maximum, tau.tau_b)


def test_a_comparison_is_its_pairs_to_programs():
    frame = results()[0].to_frame()
    assert list(frame.columns[:3]) == ["measure", "a", "b"] and list(frame["measure"]) == ["RR"] * 3 + ["P@1"] * 3
    pair = results()[2].to_frame()
    assert len(pair) == 1 and pair["difference.expected"].iloc[0] == 0.125


# -- marks of sampled values and of bounds ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weak():
    """A comparison in a measure whose expectation is sampled and in one whose extremes are bounds."""
    rng = np.random.default_rng(5)
    docs = [f"d{i:02d}" for i in range(60)]
    rows = [(f"q{q}", doc, 1, name) for q in range(3) for doc in docs for name in "ab" if rng.random() < 0.4]
    qrels = tw.Qrels.from_rows(rows, kind="diversity")
    runs = {
        name: {f"q{q}": {doc: float(rng.integers(2)) for doc in docs} for q in range(3)} for name in ("one", "other")
    }
    return qrels, runs, tw.compare(qrels, runs, ["LogAP", "alpha_nDCG@20"], complete=True)


@pytest.mark.parametrize("measure", ["LogAP", "alpha_nDCG@20"])
def test_compare_says_how_statistics_were_found(weak, measure):
    qrels, runs, compared = weak
    each = {name: tw.evaluate(qrels, run, measure, complete=True)[measure] for name, run in runs.items()}
    for name, alone in each.items():
        found = compared.estimate(name, measure)
        assert found.method == alone.method and found.standard_error == pytest.approx(alone.standard_error)
    difference = compared.pair("one", "other", measure).difference
    assert difference.method == each["one"].method
    errors = [one.standard_error for one in each.values()]
    assert difference.standard_error == (None if None in errors else pytest.approx(np.hypot(*errors)))


def test_every_format_shows_the_same_marks(weak):
    qrels, runs, compared = weak
    report = tw.evaluate(qrels, runs["one"], ["LogAP", "alpha_nDCG@20"], complete=True)
    assert report["LogAP"].method["expected"] == "sampled" and report["alpha_nDCG@20"].method["extremes"] == "bound"
    for result in (report, compared):
        text = result.to_markdown(wide=True)
        log, alpha = (next(line for line in text.splitlines() if line.startswith(f"| {m}")) for m in ("LogAP", "alpha"))
        assert "| ~−" in log and "≥" in alpha and "≤" in alpha and not re.search(r"\| ~[.\d]", alpha.split("≥")[0])
        tex = compared.to_latex(intervals="ties") if result is compared else result.to_latex()
        assert r"$\geq$" in tex and r"$\leq$" in tex
        assert not set("≥≤") & set("".join(line for line in tex.splitlines() if not line.startswith("%")))
    assert "≥" in report._repr_html_()
    frame = report["LogAP"].to_frame()
    assert frame["expected"][0] == report["LogAP"].expected  # a number, without the mark


def test_what_columns_mean_is_explained_on_demand(weak):
    assert "max-t" in weak[2].to_markdown(explain=True) and "max-t" not in weak[2].to_markdown()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp932", "euc_jp", "cp1252"])
def test_terminals_without_our_signs_get_others(encoding):
    text = encodable("a · −.004 – ≥ .5 ─ ± °", encoding)
    assert text == "a | -.004 - >= .5 - +/- o"
    assert encodable("a · −.004", "utf-8") == "a · −.004" and encodable("\udc80", "utf-8") == "\\udc80"
