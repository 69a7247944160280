"""``tiewise stages``: the numbers of `stages` in all formats, figures, and errors that write no file."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pyarrow.parquet
import pytest

import tiewise as tw
from tiewise.rankings.first_stages import STAGE_COLUMNS, STAGE_KEYS

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
COMMAND = ("stages", "second.trec", "bm25.trec", "dense.trec", "--depths", "1,2,3", "--phi", "0.5,0.9")
TSV = ("--format", "tsv")
MISSING = "bm25 passes on nothing for 1 of 3 queries, which count as 0."
OTHER = "1 query of bm25 is not in the reference and left out."


CUT = "1 list of the reference and 1 list of bm25 may have been cut inside a tie group, which the numbers ignore."


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("stages")
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
        == "system query depth phi rbr_lower rbr_upper rbr_minimum rbr_maximum rbr_ceiling recall cost pareto"
    )


def test_rows_equal_the_result_of_the_library(tiewise, folder):
    done = tiewise(*COMMAND, *TSV)
    assert done.out.split("\n")[0].split("\t") == list(STAGE_COLUMNS)
    assert done.rows == summaries(expected(folder))
    assert len(done.rows) == 2 * 3 * 2
    assert done.err.startswith(f"note: {MISSING}\nnote: {OTHER}\nnote: {CUT}") and done.err.count("note:") == 3
    assert not tiewise(*COMMAND, "--quiet", *TSV).err


def test_numbers_by_hand(tiewise):
    row = tiewise(
        "stages", "second.trec", "dense.trec", "--depths", "1", "--phi", "0.5", "--recall-at", "2", *TSV
    ).rows[0]
    assert float(row["rbr_lower"]) == pytest.approx((0.5 + 0.5 + 0) / 3)  # q3: e is not what the second stage has
    assert float(row["rbr_upper"]) == pytest.approx((0.5 + 0.5 + 0.25) / 3)  # or it has e next
    assert float(row["recall"]) == pytest.approx((0.5 + 0.5 + 0) / 3)
    assert (row["cost"], row["pareto"]) == ("", "True")


def test_per_query(tiewise, folder):
    rows = tiewise(*COMMAND, "-q", *TSV).rows
    stages = expected(folder)
    assert rows == as_text(stages.per_query()) + summaries(stages)
    assert [row["query"] for row in rows[:3]] == ["q1", "q2", "q3"]


@pytest.mark.parametrize("costs", ["costs.json", "costs.txt"])
def test_costs(tiewise, folder, costs):
    rows = tiewise(*COMMAND, "--cost", costs, *TSV).rows
    assert rows == summaries(expected(folder, cost=COSTS))
    assert [float(row["cost"]) for row in rows[::2]] == [0.75, 1, 1.25, 0.5, 1, 3.75]


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("", {"depths": (10, 20, 50, 100), "phi": (0.8, 0.9)}),
        ("--recall-at 2 --depths 2 --phi .7", {"depths": [2], "phi": 0.7, "recall_at": 2}),
        ("--depths 3,1,3 --phi 0.9,0.5", {"depths": [3, 1], "phi": [0.9, 0.5]}),
        ("--depths all", {"depths": None, "phi": (0.8, 0.9)}),
        ("--depths 1,all --phi 0.5", {"depths": [1, None], "phi": 0.5}),
    ],
)
def test_options(tiewise, folder, options, settings):
    rows = tiewise("stages", "second.trec", "bm25.trec", "dense.trec", *options.split(), *TSV).rows
    assert rows == summaries(expected(folder, **settings))


def test_lists_separated_by_blanks(tiewise):
    assert tiewise(*COMMAND[:4], "--depths", "1 2, 3", "--phi", "0.5 0.9", *TSV).rows == tiewise(*COMMAND, *TSV).rows


def test_names(tiewise):
    named = tiewise(*COMMAND, "--name", "words", "--name", "vectors", *TSV).rows
    assert [row["system"] for row in named] == ["words"] * 6 + ["vectors"] * 6
    twice = tiewise("stages", "second.trec", "bm25.trec", "bm25.trec", "--depths", "1", "--phi", "0.5", *TSV).rows
    assert [row["system"] for row in twice] == ["bm25", "bm25#2"]


def test_a_run_may_have_the_name_of_the_reference(tiewise):
    document = tiewise("stages", "second.trec", "second.trec", "--depths", "all", "--format", "json").json
    assert document["reference"]["path"] == "second.trec"
    assert [run["name"] for run in document["runs"]] == ["second"]
    assert all(point["recall"] == 1 for point in document["points"])


def test_standard_input_can_be_read_once(tiewise):
    rows = tiewise(*COMMAND, *TSV).rows
    from_stdin = tiewise("stages", "-", *COMMAND[2:], *TSV, stdin=SECOND)
    assert from_stdin.rows == rows
    first = tiewise("stages", "second.trec", "-", *COMMAND[3:], *TSV, stdin=BM25).rows
    assert [row["system"] for row in first] == ["stdin"] * 6 + ["dense"] * 6
    assert [row["rbr_lower"] for row in first] == [row["rbr_lower"] for row in rows]
    priced = tiewise(*COMMAND, "--cost", "-", *TSV, stdin=FILES["costs.txt"]).rows
    assert priced == tiewise(*COMMAND, "--cost", "costs.txt", *TSV).rows
    assert "can be read once" in tiewise(*COMMAND[:2], "-", "--cost", "-", code=2).err


def test_missing_queries_are_noted(tiewise, folder):
    (folder / "short.trec").write_text("q2 Q0 a 1 1 t\n")
    done = tiewise(
        "stages", "second.trec", "short.trec", "dense.trec", "bm25.trec", "--depths", "1", "--complete", *TSV
    )
    assert done.err.splitlines() == [
        "note: short passes on nothing for 2 of 3 queries, which count as 0.",
        f"note: {MISSING}",
        f"note: {OTHER}",
    ]
    document = tiewise(*COMMAND, "--format", "json")
    assert document.json["notes"][:2] == [MISSING, OTHER] and document.json["notes"][2].startswith(CUT)
    assert MISSING in document.err
    assert not tiewise("stages", "second.trec", "dense.trec", "--complete", *TSV).err


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
    assert as_text(table.to_pylist()) == tiewise(*command, *TSV).rows
    types = [str(field.type) for field in table.schema]
    assert types == ["string", "string", "int64", *["double"] * 8, "bool"]


def test_json_provenance(tiewise):
    document = tiewise(*COMMAND, "--recall-at", "2", "--format", "json", "-p", "2").json
    assert (document["queries"], document["recall_at"]) == (3, 2)
    assert document["reference"]["path"] == "second.trec"
    assert [run["path"] for run in document["runs"]] == ["bm25.trec", "dense.trec"]
    assert all(re.fullmatch("[0-9a-f]{64}", run["sha256"]) for run in document["runs"])
    assert all(point["rbr_lower"] == round(point["rbr_lower"], 2) for point in document["points"])


def test_depth_all_is_empty_in_machine_formats(tiewise):
    command = ("stages", "second.trec", "dense.trec", "--depths", "2,all", "--phi", "0.5")
    assert [row["depth"] for row in tiewise(*command, *TSV).rows] == ["2", ""]
    assert [point["depth"] for point in tiewise(*command, "--format", "json").json["points"]] == [2, None]
    assert re.search(r"^dense +all ", tiewise(*command, "--format", "table").out, re.M)


def test_costs_of_other_systems_are_noted(tiewise, folder):
    (folder / "more.txt").write_text("bm25 1\ndense 1\nsplade 1\n")
    done = tiewise(*COMMAND, "--cost", "more.txt", *TSV)
    assert "note: The costs of 'splade' are not used: no run has that name." in done.err


def test_table(tiewise, folder):
    text = tiewise(*COMMAND, "--recall-at", "2", "--cost", "costs.txt").out
    assert text.startswith("RBR against second.trec · 3 queries\n")
    heads = r"^phi +run +depth +cost +RBR +at most +by tie order +by unseen tail +recall@2 +pareto$"
    assert re.search(heads, text, re.M)
    lines = re.findall(r"^0\.\d +(?:bm25|dense) .*$", text, re.M)
    rows = sorted(expected(folder, cost=COSTS, recall_at=2).table(), key=lambda row: row["phi"])
    for line, row in zip(lines, rows, strict=True):
        phi, system, depth, cost, rbr, ceiling, ties, tail, recall, pareto = re.sub(" – ", "–", line).split()
        assert [phi, system, depth] == [str(row["phi"]), row["system"], str(row["depth"])]
        assert float(cost) == row["cost"] and pareto == ("yes" if row["pareto"] else "no")
        assert [rbr, ceiling, recall] == [short(row[name]) for name in ("rbr_lower", "rbr_ceiling", "recall")]
        assert ties == extremes(row["rbr_minimum"], row["rbr_maximum"])
        assert tail == extremes(row["rbr_lower"], row["rbr_upper"])
    assert {row["pareto"] for row in rows} == {True, False}
    assert f"note: {MISSING}" in text


def short(number: float) -> str:
    return f"{number:.3f}".removeprefix("0")


def extremes(low: float, high: float) -> str:
    return "same" if short(low) == short(high) else f"{short(low)}–{short(high)}"


def test_columns_that_do_not_apply_are_left_out(tiewise):
    text = tiewise("stages", "second.trec", "second.trec", "--depths", "1", "--phi", "0.8", "--complete").out
    assert re.search(r"^run +depth +RBR +at most +by tie order +pareto$", text, re.M)


def test_the_sentence_names_the_cheapest_that_is_near_the_highest(tiewise, folder):
    def said(*options: str) -> str:
        text = tiewise("stages", "deep.trec", "good.trec", "bad.trec", "--phi", "0.8", "--complete", *options).out
        return text.splitlines()[-2]

    rows = {"deep": range(60), "good": range(60), "bad": range(59, -1, -1)}
    for name, docs in rows.items():
        lines = (f"q Q0 d{doc} 1 {100 - place} t\n" for place, doc in enumerate(docs))
        (folder / f"{name}.trec").write_text("".join(lines))
    assert said("--depths", "5,10,20,40") == (
        "good at depth 20 has RBR .988, within .05 of the highest, 1.000: good at depth 40."
    )
    assert said("--depths", "5,10") == "good at depth 10 has RBR .893, the highest."
    (folder / "dear.txt").write_text("good 100\nbad 1\nrerank 1\n")
    cheapest = "bad at depth 60 (cost 61.00) has RBR 1.000, the highest."
    assert said("--depths", "60", "--cost", "dear.txt") == cheapest


def test_lines_and_words_of_the_default(tiewise):
    text = tiewise(*COMMAND[:-2], "--phi", "0.5", "--recall-at", "2", "--cost", "costs.txt", "--complete").out
    lines = text.splitlines()
    assert len(lines) <= 14 and max(map(len, lines)) <= 100  # title, headings, rows, legend, sentence, hint, notes
    assert lines[-3] == "How to read this: --explain" and len(text.split()) <= 160


def test_python_shows_what_the_command_shows(tiewise, folder, monkeypatch):
    monkeypatch.chdir(folder)
    runs = {name: f"{name}.trec" for name in ("bm25", "dense")}
    found = tw.stages("second.trec", runs, [1, 2, 3], [0.5, 0.9], "costs.txt", recall_at=2, complete=True)
    command = (*COMMAND, "--cost", "costs.txt", "--recall-at", "2", "--complete")
    document = tiewise(*command, "--format", "json").json
    assert document == found.to_dict() == json.loads(found.to_json())
    assert list(document) == ["schema", *STAGE_KEYS] and document["schema"] == "tiewise/stages/1"
    for name, text in (("table", found.to_text()), ("markdown", found.to_markdown()), ("latex", found.to_latex())):
        assert tiewise(*command, "--format", name).out == text.replace("explain=True", "--explain")
    assert list(found.to_frame()) == list(STAGE_COLUMNS) and "<table" in found._repr_html_()


def test_explained(tiewise):
    text = " ".join(tiewise(*COMMAND, "--recall-at", "2", "--explain").out.split())
    assert "the share of the reference's first 2 documents that is passed on" in text and "1 − φ^depth" in text
    assert "1 − φ^depth" not in tiewise(*COMMAND).out


def test_latex_and_markdown(tiewise, folder):
    for name, end in (("latex", r"\\"), ("markdown", "|")):
        text = tiewise(*COMMAND, "-p", "5", "--format", name).out
        for row in expected(folder).table():
            zero = "" if name == "latex" else "0"  # siunitx writes it
            values = [f"{row[column]:.5f}".removeprefix(zero) for column in ("rbr_lower", "rbr_ceiling")]
            keys = [f"{row['phi']:g}", row["system"], str(row["depth"])]
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
    assert process(*COMMAND, "--recall-at", "1", *TSV).rows[0]["system"] == "bm25"
    command = (*COMMAND, "--cost", "costs.txt")
    assert terminal(*command) == process(*command).out
    assert "tiewise stages reranker.trec bm25.trec" in process("stages", "--help").out


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
    done = tiewise(*COMMAND, "--cost", "costs.txt", "--figure", f"figure.{suffix}", *TSV)
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
    assert [value["pareto"] for value in values] == [row["pareto"] for row in rows]
    assert "cost of both stages" in chart
    values, chart = drawn()
    assert [value["cost"] for value in values] == [1, 2, 3] * 2  # without costs, the depth
    assert "documents passed on" in chart


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
    done = tiewise("stages", *arguments.split(), "-o", "kept.tsv", code=2)
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
    assert process(*COMMAND, *TSV, **without).rows  # the numbers need no extra


def test_repeated_numbers_add_up(tiewise):
    apart = ("--depths", "1", "--depths", "2,3", "--phi", "0.5", "--phi", "0.9")
    assert tiewise(*COMMAND[:4], *apart, "--format", "csv").out == tiewise(*COMMAND, "--format", "csv").out
