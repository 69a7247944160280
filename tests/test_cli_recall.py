"""``tiewise recall``: the numbers of `stages` in all formats, figures, and errors that write no file."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import tiewise as tw
from tiewise.output.stage_tables import STAGE_COLUMNS

SECOND = "".join(f"q1 Q0 {doc} {rank} {9 - rank} t\n" for rank, doc in enumerate("abcdef", start=1))
SECOND += "q2 Q0 a 1 3 t\nq2 Q0 b 2 2 t\nq2 Q0 c 3 2 t\nq3 Q0 d 1 1 t\n"
BM25 = "q1 Q0 b 1 9 t\nq1 Q0 a 2 5 t\nq1 Q0 x 3 5 t\nq1 Q0 f 4 5 t\nq2 Q0 c 1 2 t\nq2 Q0 y 2 1 t\nq9 Q0 a 1 1 t\n"
DENSE = "q1 Q0 a 1 9 t\nq1 Q0 b 2 8 t\nq1 Q0 c 3 7 t\nq2 Q0 a 1 9 t\nq2 Q0 b 2 8 t\nq3 Q0 e 1 1 t\n"
COSTS = {"bm25": 0.5, "dense": {1: 0.25, 2: 0.5, 3: 3.0}, "rerank": 0.25}
FILES = {
    "second.trec": SECOND,
    "bm25.trec": BM25,
    "dense.trec": DENSE,
    "other.trec": "q8 Q0 a 1 1 t\n",
    "costs.json": json.dumps(COSTS),
    "costs.txt": "system depth cost\nbm25 0.5\ndense 1 0.25\ndense 2 0.5\ndense 3 3\nrerank .25  # a document\n",
}
COMMAND = ("recall", "second.trec", "bm25.trec", "dense.trec", "--depths", "1,2,3", "--phi", "0.5,0.9")
MISSING = "bm25 hands on nothing for 1 of 3 queries, which count as 0."
OTHER = "1 query of bm25 is not in the reference and left out."


CUT = (
    "1 list of the reference and 1 list of bm25 may have been cut inside a tie group that counts here; bounds and "
    "ranges are of the documents listed. If your lists were not truncated, add complete=True (--complete)."
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("recall")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def expected(folder: Path, depths=(1, 2, 3), phi=(0.5, 0.9), cost=None, **options) -> tw.Stages:
    runs = {name: tw.read_run(folder / f"{name}.trec") for name in ("bm25", "dense")}
    return tw.stages(tw.read_run(folder / "second.trec"), runs, depths, phi, cost, **options)


def as_text(rows) -> list[dict[str, str]]:
    """Rows of the library or of a document as TSV has them."""
    return [{name: "" if row[name] is None else str(row[name]) for name in STAGE_COLUMNS} for row in rows]


def summaries(stages: tw.Stages) -> list[dict[str, str]]:
    return as_text({**row, "query": "all"} for row in stages.table())


# -- numbers --------------------------------------------------------------------------------------------------------


def test_column_names():
    assert (
        " ".join(STAGE_COLUMNS)
        == "system query depth phi rbr_lower rbr_upper rbr_minimum rbr_maximum recall cost pareto"
    )


def test_rows_equal_the_result_of_the_library(tiewise, folder):
    done = tiewise(*COMMAND)
    assert done.out.split("\n")[0].split("\t") == list(STAGE_COLUMNS)
    assert done.rows == summaries(expected(folder))
    assert len(done.rows) == 2 * 3 * 2
    assert done.err == f"note: {MISSING}\nnote: {OTHER}\nnote: {CUT}\n"
    assert not tiewise(*COMMAND, "--quiet").err


def test_numbers_by_hand(tiewise):
    row = tiewise("recall", "second.trec", "dense.trec", "--depths", "1", "--phi", "0.5", "--recall-at", "2").rows[0]
    assert float(row["rbr_lower"]) == pytest.approx((0.5 + 0.5 + 0) / 3)  # q3: e is not what the second stage has
    assert float(row["rbr_upper"]) == pytest.approx((0.5 + 0.5 + 0.25) / 3)  # or it has e next
    assert float(row["recall"]) == pytest.approx((0.5 + 0.5 + 0) / 3)
    assert (row["cost"], row["pareto"]) == ("", "True")


def test_per_query(tiewise, folder):
    rows = tiewise(*COMMAND, "-q").rows
    stages = expected(folder)
    assert rows == as_text(stages.per_query()) + summaries(stages)
    assert [row["query"] for row in rows[:3]] == ["q1", "q2", "q3"]


@pytest.mark.parametrize("costs", ["costs.json", "costs.txt"])
def test_costs(tiewise, folder, costs):
    rows = tiewise(*COMMAND, "--cost", costs).rows
    assert rows == summaries(expected(folder, cost=COSTS))
    assert [float(row["cost"]) for row in rows[::2]] == [0.75, 1, 1.25, 0.5, 1, 3.75]


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("", {"depths": (10, 20, 50, 100), "phi": (0.8, 0.9)}),
        ("--recall-at 2 --depths 2 --phi .7", {"depths": [2], "phi": 0.7, "k": 2}),
        ("--depths 3,1,3 --phi 0.9,0.5", {"depths": [3, 1], "phi": [0.9, 0.5]}),
        ("--depths all", {"depths": None, "phi": (0.8, 0.9)}),
        ("--depths 1,all --phi 0.5", {"depths": [1, None], "phi": 0.5}),
    ],
)
def test_options(tiewise, folder, options, settings):
    rows = tiewise("recall", "second.trec", "bm25.trec", "dense.trec", *options.split()).rows
    assert rows == summaries(expected(folder, **settings))


def test_lists_separated_by_blanks(tiewise):
    assert tiewise(*COMMAND[:4], "--depths", "1 2, 3", "--phi", "0.5 0.9").rows == tiewise(*COMMAND).rows


def test_names(tiewise):
    named = tiewise(*COMMAND, "--name", "words", "--name", "vectors").rows
    assert [row["system"] for row in named] == ["words"] * 6 + ["vectors"] * 6
    twice = tiewise("recall", "second.trec", "bm25.trec", "bm25.trec", "--depths", "1", "--phi", "0.5").rows
    assert [row["system"] for row in twice] == ["bm25", "bm25#2"]


def test_a_run_may_have_the_name_of_the_reference(tiewise):
    document = tiewise("recall", "second.trec", "second.trec", "--depths", "all", "--format", "json").json
    assert document["reference"]["name"] == "second"
    assert [run["name"] for run in document["runs"]] == ["second"]
    assert all(point["recall"] == 1 for point in document["points"])


def test_standard_input_can_be_read_once(tiewise):
    rows = tiewise(*COMMAND).rows
    from_stdin = tiewise("recall", "-", *COMMAND[2:], stdin=SECOND)
    assert from_stdin.rows == rows
    first = tiewise("recall", "second.trec", "-", *COMMAND[3:], stdin=BM25).rows
    assert [row["system"] for row in first] == ["stdin"] * 6 + ["dense"] * 6
    assert [row["rbr_lower"] for row in first] == [row["rbr_lower"] for row in rows]
    priced = tiewise(*COMMAND, "--cost", "-", stdin=FILES["costs.txt"]).rows
    assert priced == tiewise(*COMMAND, "--cost", "costs.txt").rows
    assert "can be read once" in tiewise(*COMMAND[:2], "-", "--cost", "-", code=2).err


def test_missing_queries_are_noted(tiewise, folder):
    (folder / "short.trec").write_text("q2 Q0 a 1 1 t\n")
    done = tiewise("recall", "second.trec", "short.trec", "dense.trec", "bm25.trec", "--depths", "1", "--complete")
    assert done.err.splitlines() == [
        "note: short hands on nothing for 2 of 3 queries, which count as 0.",
        f"note: {MISSING}",
        f"note: {OTHER}",
    ]
    document = tiewise(*COMMAND, "--format", "json")
    assert document.json["notes"] == [MISSING, OTHER, CUT] and MISSING in document.err
    assert not tiewise("recall", "second.trec", "dense.trec", "--complete").err


# -- formats --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [[], ["-q"], ["--cost", "costs.txt"]])
def test_machine_formats_hold_the_same_rows(tiewise, more):
    command = (*COMMAND, *more)
    tsv = tiewise(*command, "--format", "tsv").rows
    assert list(csv.DictReader(io.StringIO(tiewise(*command, "--format", "csv").out))) == tsv
    points = tiewise(*command, "--format", "json").json["points"]
    lines = [json.loads(line) for line in tiewise(*command, "--format", "jsonl").out.splitlines()]
    for rows in (lines, points):
        assert all(list(row) == list(STAGE_COLUMNS) for row in rows)
        assert as_text(rows) == tsv
    assert {type(point["depth"]) for point in points} == {int}
    assert {type(point["pareto"]) for point in points} == {bool}


@pytest.mark.parametrize("more", [[], ["-q"], ["--cost", "costs.txt"], ["--depths", "1,all"]])
def test_parquet_holds_the_rows(tiewise, folder, more):
    command = (*COMMAND, *more)
    tiewise(*command, "-o", "out.parquet")
    table = pyarrow.parquet.read_table(folder / "out.parquet")
    assert table.column_names == list(STAGE_COLUMNS)
    assert as_text(table.to_pylist()) == tiewise(*command).rows
    types = [str(field.type) for field in table.schema]
    assert types == ["string", "string", "int64", *["double"] * 7, "bool"]


def test_json_provenance(tiewise):
    document = tiewise(*COMMAND, "--recall-at", "2", "--format", "json", "-p", "2").json
    assert (document["measure"], document["queries"], document["k"]) == ("RBR", 3, 2)
    assert (document["reference"]["name"], document["reference"]["path"]) == ("second", "second.trec")
    assert [run["path"] for run in document["runs"]] == ["bm25.trec", "dense.trec"]
    assert all(re.fullmatch("[0-9a-f]{64}", run["sha256"]) for run in document["runs"])
    assert all(point["rbr_lower"] == round(point["rbr_lower"], 2) for point in document["points"])


def test_depth_all_is_empty_in_machine_formats(tiewise):
    command = ("recall", "second.trec", "dense.trec", "--depths", "2,all", "--phi", "0.5")
    assert [row["depth"] for row in tiewise(*command).rows] == ["2", ""]
    assert [point["depth"] for point in tiewise(*command, "--format", "json").json["points"]] == [2, None]
    assert re.search(r"^0\.5 +dense +all ", tiewise(*command, "--format", "table").out, re.M)


def test_costs_of_other_systems_are_noted(tiewise, folder):
    (folder / "more.txt").write_text("bm25 1\ndense 1\nsplade 1\n")
    done = tiewise(*COMMAND, "--cost", "more.txt")
    assert "note: The costs of 'splade' are not used: no run has that name." in done.err


def test_table(tiewise, folder):
    text = tiewise(*COMMAND, "--recall-at", "2", "--cost", "costs.txt", "--format", "table").out
    assert text.startswith("RBR against second · 3 queries\n")
    assert re.search(r"^phi +system +depth +RBR +upper +over ties +recall@2 +at most +cost +dominated$", text, re.M)
    lines = re.findall(r"^0\.\d +(?:bm25|dense) .*$", text, re.M)
    rows = sorted(expected(folder, cost=COSTS, k=2).table(), key=lambda row: row["phi"])
    for line, row in zip(lines, rows, strict=True):
        words = re.sub(r"\[(\S+), (\S+)\]", r"[\1,\2]", line).split()
        assert words[:3] == [str(row["phi"]), row["system"], str(row["depth"])]
        numbers = (f"{row[name]:.3f}".removeprefix("0") for name in ("rbr_lower", "rbr_upper", "recall"))
        assert [words[3], words[4], words[6]] == list(numbers)
        highest = np.mean([min(row["depth"], length) / length for length in (2, 2, 1)])
        assert words[7] == f"{highest:.3f}".removeprefix("0")
        assert float(words[8]) == row["cost"] and words[9:] == ["no" if row["pareto"] else "yes"]
    assert {row["pareto"] for row in rows} == {True, False}
    assert "reaches its upper value at no higher cost" in " ".join(text.split())
    assert f"note: {MISSING}" in text


def test_columns_that_do_not_apply_are_left_out(tiewise):
    text = tiewise("recall", "second.trec", "dense.trec", "--depths", "1", "--format", "table").out
    assert re.search(r"^phi +system +depth +RBR +upper +recall of 1–6 +at most +dominated$", text, re.M)
    assert "reaches its upper value with no more documents" in " ".join(text.split()) and "over ties" not in text
    alike = tiewise("recall", "dense.trec", "bm25.trec", "--depths", "3", "--format", "table").out
    assert "recall of 1–3" in alike and "at most" not in alike  # three documents can be all of the reference


def test_range_over_ties_only_for_tied_sets(tiewise):
    text = tiewise(*COMMAND[:4], "--depths", "1,2", "--phi", "0.5", "--format", "markdown").out
    cells = [line.split("|") for line in text.splitlines() if re.match(r"\| 0\.5 +\| (bm25|dense)", line)]
    over_ties = {(cell[2].strip(), cell[3].strip()): cell[6].strip() for cell in cells}
    assert over_ties["dense", "1"] == "–"  # bounds differ there, for what the reference does not show
    assert re.fullmatch(r"\[\.\d{3}, \.\d{3}\]", over_ties["bm25", "2"])  # the second may be a, x or f


def test_latex_and_markdown(tiewise, folder):
    for name, end in (("latex", r"\\"), ("markdown", "|")):
        text = tiewise(*COMMAND, "-p", "5", "--format", name).out
        for row in expected(folder).table():
            zero = "" if name == "latex" else "0"  # siunitx writes it
            values = [f"{row[column]:.5f}".removeprefix(zero) for column in ("rbr_lower", "rbr_upper")]
            keys = [str(row["phi"]), row["system"], str(row["depth"])]
            between = r" & " if name == "latex" else " | "
            assert between.join([*keys, *values]) in text
        assert len([line for line in text.splitlines() if line.endswith(end)]) >= 12
    assert r"\begin{tabular}" in tiewise(*COMMAND, "--format", "latex").out
    queries = tiewise(*COMMAND, "-q", "--format", "markdown").out
    assert re.findall(r"^\| 0\.9 \| dense \| (\w+) \| 3 \|", queries, re.M) == ["q1", "q2", "q3", "all"]


def test_output_by_suffix(tiewise, folder):
    starts = {"json": "{", "md": "RBR against", "tsv": "system\t", "csv": "system,", "txt": "RBR against", "tex": "%"}
    for suffix, start in starts.items():
        assert not tiewise(*COMMAND, "-o", f"out.{suffix}").out
        assert (folder / f"out.{suffix}").read_text().startswith(start), suffix


def test_process_and_terminal(process, terminal):
    assert process(*COMMAND, "--recall-at", "1").rows[0]["system"] == "bm25"
    wide = terminal(*COMMAND, "--cost", "costs.txt")
    assert wide.startswith("RBR against second · 3 queries\n") and "dominated" in wide
    narrow = terminal(*COMMAND, "--cost", "costs.txt", columns=40)
    assert max(map(len, narrow.splitlines())) <= 44 and "…" not in narrow
    assert "tiewise recall reranker.trec bm25.trec" in process("recall", "--help").out


# -- figures --------------------------------------------------------------------------------------------------------

MAGIC = {
    "svg": b"<svg",
    "png": b"\x89PNG\r\n\x1a\n",
    "pdf": b"%PDF-",
    "html": b"<!DOCTYPE html>",
    "json": b"{",
}


@pytest.mark.parametrize("suffix", MAGIC)
def test_figure(tiewise, folder, suffix):
    done = tiewise(*COMMAND, "--cost", "costs.txt", "--figure", f"figure.{suffix}")
    assert done.rows == summaries(expected(folder, cost=COSTS))
    assert (folder / f"figure.{suffix}").read_bytes().lstrip().startswith(MAGIC[suffix])


def points(path: Path) -> list[dict]:
    """The rows that a saved chart draws, wherever altair has put them."""
    chart = json.loads(path.read_text())
    return chart["data"]["values"] if "values" in chart["data"] else chart["datasets"][chart["data"]["name"]]


def test_figure_shows_the_numbers(tiewise, folder):
    def drawn(*options: str) -> tuple[list[dict], str]:
        tiewise(*COMMAND, *options, "--figure", "numbers.json", "-o", "numbers.tsv")
        return points(folder / "numbers.json"), (folder / "numbers.json").read_text()

    values, chart = drawn("--cost", "costs.txt")
    rows = [row for row in expected(folder, cost=COSTS).table() if row["phi"] == 0.5]  # the first
    for name in ("system", "depth", "cost", "rbr_lower", "rbr_upper", "rbr_minimum", "rbr_maximum", "recall"):
        assert [value[name] for value in values] == [row[name] for row in rows]
    assert [value["worth"] for value in values] == [row["pareto"] for row in rows]
    assert "cost of both stages" in chart
    values, chart = drawn()
    assert [value["cost"] for value in values] == [1, 2, 3] * 2  # without costs, the depth
    assert "documents handed on" in chart


def test_whole_lists_are_drawn_after_all_depths(tiewise, folder):
    (folder / "flat.txt").write_text("bm25 1\ndense 1\nrerank 1\n")
    command = (*COMMAND[:4], "--depths", "all,1", "--cost", "flat.txt", "--quiet")
    tiewise(*command, "--figure", "all.svg")
    drawn = (folder / "all.svg").read_text()
    assert drawn.count(">all</text>") == drawn.count(">1</text>") == 2 and "null" not in drawn
    tiewise(*command, "--figure", "all.json")
    assert [(one["label"], one["reach"]) for one in points(folder / "all.json")] == [("all", 2), ("1", 1)] * 2


def test_free_first_stages_can_be_drawn(tiewise, folder):
    (folder / "free.txt").write_text("bm25 0\ndense 0\n")
    tiewise(*COMMAND, "--cost", "free.txt", "--figure", "free.svg")
    assert b"NaN" not in (folder / "free.svg").read_bytes()
    tiewise(*COMMAND[:4], "--depths", "2,all", "--cost", "free.txt", "--figure", "free.svg")


# -- what cannot be used ----------------------------------------------------------------------------------------------

BAD_COSTS = {
    "lacking.txt": "bm25 1\nrerank 1\n",
    "shallow.json": '{"bm25": 1, "dense": {"1": 1, "3": 2}}',
    "twice.txt": "bm25 1\ndense 1\nbm25 2\n",
    "twice.json": '{"bm25": 1, "dense": 1, "bm25": 2}',
    "words.txt": "bm25 1\ndense about 3 ms\n",
    "fast.txt": "# ms\nbm25 fast\n",
    "bad.json": '{"bm25": 1,\n"dense": }',
    "negative.txt": "bm25 1\ndense 1\nrerank -1\n",
    "nothing.txt": "# to be measured\n",
}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--phi 1", "phi=1.0 is not possible. It must lie above 0 and below 1"),
        ("--phi 0.5,0", "phi=0.0 is not possible"),
        ("--phi nan", "phi=nan is not possible"),
        ("--phi 0.5,high", "'0.5,high' is not a list of numbers. Write it like 0.8"),
        ("--phi ,", "',' is not a list of numbers"),
        ("--depths 0", "depth=0 is not possible: it must be a whole number, 1 or more"),
        ("--depths 10,-1", "depth=-1 is not possible"),
        ("--depths 1.5", "Invalid value for '--depths': '1.5' is not a list of numbers. Write it like 10,20"),
        ("--depths ten", "'ten' is not a list of numbers"),
        ("--depths ,", "',' is not a list of numbers"),
        ("--recall-at 0", "Invalid value for '--recall-at'"),
        ("--cost nowhere.json", "nowhere.json: there is no such file"),
        ("--cost lacking.txt", "There is no cost for 'dense'. Give one for every system"),
        ("--cost shallow.json", "There is no cost of 'dense' at depth 2. Give one for every depth"),
        ("--cost twice.txt", "twice.txt:3: 'bm25' has a cost already. Keep one of the lines"),
        ("--cost twice.json", "twice.json: 'bm25' occurs twice in one JSON object. Keep one of them"),
        ("--cost words.txt", "words.txt:2: 4 words. Expected a system, perhaps a depth, and a cost"),
        ("--cost fast.txt", "fast.txt:2: the cost 'fast' is not a number"),
        ("--cost bad.json", "bad.json:2:10: is not JSON: Expecting value"),
        ("--cost negative.txt", "negative.txt:3: the cost -1 is not possible. Costs are finite numbers, 0 or more"),
        ("--cost nothing.txt", "nothing.txt: holds no costs"),
        ("--cost .", r"\.: is a folder"),
        ("--name one", "Give it once for each"),
        ("--name rerank --name dense --cost costs.txt", "A system cannot be called 'rerank' where costs are given"),
        ("--format trec", "'trec' is not one of 'table', 'tsv'"),
        ("--input-format xml", "Unknown format 'xml'"),
        ("--figure kept.gif", r"kept.gif: a figure cannot be saved as '.gif'. Give the file one of the suffixes .svg"),
        ("--figure kept", "kept: a figure cannot be saved as ''"),
        ("--figure kept.svg.gz", "kept.svg.gz: a figure cannot be saved as '.gz'"),
        ("--figure no/such/figure.svg", "no/such/figure.svg: cannot be written"),
        ("-o no/such/folder.tsv", "no/such/folder.tsv: cannot be written"),
        ("-o kept.xlsx", "kept.xlsx: no format is known for '.xlsx'"),
        ("-o kept.json --figure ./kept.json", "cannot hold the figure and the numbers"),
        ("--depths all", "Sets of whole lists have no depth to draw them by. Give depths, or costs"),
    ],
)
def test_errors_write_no_file(tiewise, folder, options, message):
    for name, text in BAD_COSTS.items():
        (folder / name).write_text(text)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    words = options.split()
    output = [] if "-o" in words else ["-o", "kept.tsv"]
    figure = [] if "--figure" in words else ["--figure", "kept.svg"]
    command = COMMAND[:4] if {"--phi", "--depths"} & {*words} else COMMAND
    done = tiewise(*command, *words, *output, *figure, code=2)
    assert re.search(message, done.err), done.err
    assert done.err.startswith("tiewise: ") and done.err.count("\n") == 1
    assert not done.out
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "Missing argument 'REFERENCE"),
        ("second.trec", "Missing argument 'RUN"),
        ("nowhere.trec bm25.trec", "nowhere.trec: there is no such file"),
        ("second.trec nowhere.trec", "nowhere.trec: there is no such file"),
        ("second.trec bm25.trec other.trec", "'other' has no query of the reference. Do their query ids match"),
        ("empty.trec bm25.trec", "empty"),
        ("second.trec nan.trec", "nan.trec:1: score 'nan'"),
    ],
)
def test_errors_are_one_line(tiewise, folder, arguments, message):
    (folder / "empty.trec").write_text("")
    (folder / "nan.trec").write_text("q1 Q0 a 1 nan t\n")
    done = tiewise("recall", *arguments.split(), "-o", "kept.tsv", code=2)
    assert re.search(message, done.err), done.err
    assert done.err.startswith("tiewise: ") and done.err.count("\n") == 1
    assert not done.out and not (folder / "kept.tsv").exists()


@pytest.mark.parametrize(
    ("package", "message"),
    [
        ("altair", "Drawing a figure needs an extra: pip install 'tiewise[report]'"),
        ("vl_convert", "Saving a figure needs an extra: pip install 'tiewise[report]'"),
        ("pyarrow", "Parquet needs an extra: pip install 'tiewise[arrow]'"),
    ],
)
def test_missing_extra_is_an_error_before_writing(process, folder, tmp_path, package, message):
    (tmp_path / f"{package}.py").write_text("raise ImportError('not installed')")
    output, figure = folder / "whole.parquet", folder / "whole.svg"
    without = {"env": {"PYTHONPATH": str(tmp_path)}}
    done = process(*COMMAND, "-o", output.name, "--figure", figure.name, code=2, **without)
    assert done.err == f"tiewise: {message}\n"
    assert not done.out and not output.exists() and not figure.exists()
    assert process(*COMMAND, **without).rows  # the numbers need no extra


def test_repeated_numbers_add_up(tiewise):
    apart = ("--depths", "1", "--depths", "2,3", "--phi", "0.5", "--phi", "0.9")
    assert tiewise(*COMMAND[:4], *apart, "--format", "csv").out == tiewise(*COMMAND, "--format", "csv").out
