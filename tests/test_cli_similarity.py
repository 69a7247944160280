"""``tiewise similarity``: the numbers of the library in every format."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import tiewise as tw
from tiewise.cli import progress
from tiewise.cli.program import status_of
from tiewise.rankings.run_similarity import QUESTIONS, SIMILARITY_COLUMNS, SIMILARITY_KEYS

A = "q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.5 t\nq1 Q0 c 3 0.5 t\nq2 Q0 d 1 0.9 t\nq2 Q0 e 2 0.8 t\nq3 Q0 f 1 1 t\n"
B = "q1 Q0 a 1 0.9 t\nq1 Q0 c 2 0.8 t\nq1 Q0 x 3 0.1 t\nq2 Q0 e 1 0.9 t\nq2 Q0 d 2 0.8 t\n"
C = "q1 Q0 x 1 0.9 t\nq1 Q0 a 2 0.9 t\nq2 Q0 d 1 0.9 t\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("similarity")
    for name, text in (("A.trec", A), ("B.trec", B), ("C.trec", C), ("other.trec", "q9 Q0 a 1 1 t\n")):
        (folder / name).write_text(text)
    return folder


LEFT_OUT = "1 query is not in all runs and left out."
CUT = "1 of 4 lists may have been cut inside a tie group, which the numbers ignore."
TSV = ("--format", "tsv")


def expected(folder: Path, names: str, measure: str, **options) -> tw.Similarity:
    return tw.similarity({name: tw.read_run(folder / f"{name}.trec") for name in names}, measure, **options)


def test_column_names():
    assert (
        " ".join(SIMILARITY_COLUMNS)
        == "observed reference query expected minimum maximum lower lower_minimum lower_maximum upper upper_minimum "
        "upper_maximum residual ceiling"
    )


def test_row_of_two_runs(tiewise, folder):
    done = tiewise("similarity", "A.trec", "B.trec", "--phi", "0.8", *TSV)
    assert done.out.split("\n")[0].split("\t") == list(SIMILARITY_COLUMNS)
    (row,) = done.rows
    bounds = expected(folder, "AB", "RBO(phi=0.8)").pair("A", "B")
    assert list(row.values()) == [
        "A",
        "B",
        "all",
        *(
            repr(getattr(part, name))
            for part in (bounds.extrapolated, bounds.lower, bounds.upper)
            for name in ("expected", "minimum", "maximum")
        ),
        repr(bounds.residual),
        "",
    ]
    first, second = done.err.splitlines()
    assert first == f"note: {LEFT_OUT}" and second.startswith(f"note: {CUT}")
    assert tiewise("similarity", "A.trec", "B.trec", "--complete", *TSV).err == f"note: {LEFT_OUT}\n"
    assert not tiewise("similarity", "A.trec", "B.trec", "--quiet", *TSV).err


@pytest.mark.parametrize(
    ("options", "measure"),
    [
        ("", "RBO(phi=0.9)"),
        ("-m rbo --phi 0.7 --depth 1", "RBO(phi=0.7)@1"),
        ("-m RBO(phi=0.95)", "RBO(phi=0.95)"),
        ("-m RBO(ties='w')@1 --phi 0.7 -M 1", "RBO(phi=0.7, ties='w')@1"),
        ("-m RBA", "RBA(phi=0.9)"),
        ("-m RBR@2 --phi 0.5", "RBR(phi=0.5)@2"),
        ("-m MED-RBP --phi 0.8", "MED_RBP(phi=0.8)"),
    ],
)
def test_spellings_of_the_measure(tiewise, folder, options, measure):
    found = tiewise("similarity", "A.trec", "B.trec", *options.split(), "--format", "json").json
    assert found["measure"] == str(tw.parse(measure))
    similarity = expected(folder, "AB", measure)
    for pair in found["pairs"]:
        bounds = similarity.pair(pair["observed"], pair["reference"])
        assert (pair["lower"], pair["residual"]) == (bounds.lower.expected, bounds.residual)
    directions = [("A", "B"), ("B", "A")] if "RBR" in measure else [("A", "B")]
    assert [(pair["observed"], pair["reference"]) for pair in found["pairs"]] == directions


@pytest.mark.parametrize("measure", ["tau", "tau_ap", "MED_RBP"])
def test_value_of_the_lists_as_they_are(tiewise, folder, measure):
    done = tiewise("similarity", "A.trec", "B.trec", "-m", measure, "-q", *TSV)
    found = expected(folder, "AB", measure)
    for row in done.rows:
        value = (found.pair if row["query"] == "all" else _per_query(found, row["query"]))(
            row["observed"], row["reference"]
        ).value
        numbers = [row[name] for name in ("expected", "minimum", "maximum")]
        assert numbers == [repr(value.expected), repr(value.minimum), repr(value.maximum)]
        assert (row["lower"] == row["upper"] == row["residual"] == "") == (measure != "MED_RBP")
    table = plain(tiewise("similarity", "A.trec", "B.trec", "-m", measure, "--explain"))
    assert ("unseen tail" in table) == ("is a distance: 0" in table) == (measure == "MED_RBP")
    matrix = tiewise("similarity", "A.trec", "B.trec", "C.trec", "-m", measure, "--format", "latex", "-p", "6").out
    for place, (name, row) in enumerate(zip("ABC", expected(folder, "ABC", measure).matrix(), strict=True)):
        cells = ("{–}" if place == other else f"{value:.6f}" for other, value in enumerate(row))
        assert rf"{name} & {' & '.join(cells)} \\" in matrix.replace("{--}", "{–}")


def _per_query(found: tw.Similarity, query: str):
    return lambda observed, reference: found.per_query(observed, reference)[query]


def test_edge(tiewise, folder):
    for edge in ("extend", "shrink"):
        row = tiewise("similarity", "A.trec", "B.trec", "--depth", "2", "--edge", edge, *TSV).rows[0]
        assert float(row["lower"]) == expected(folder, "AB", "RBO@2", edge=edge).pair("A", "B").lower.expected
    stopped = tiewise("similarity", "A.trec", "B.trec", "--depth", "2", "--edge", "error", code=2)
    assert "Depth 2 ends inside a group of 2 tied items of query 'q1'" in stopped.err


def test_undefined_values_are_empty(tiewise):
    options = ("similarity", "A.trec", "C.trec", "--depth", "1", "--edge", "shrink", "-q")
    rows = tiewise(*options, *TSV).rows  # of q1, nothing is left of C
    assert [bool(row["expected"]) for row in rows] == [False, True, True]  # the mean is that of q2
    assert "NaN" not in tiewise(*options, "--format", "json").out
    assert "nan" not in tiewise(*options, "--format", "markdown").out
    assert "nan" not in tiewise(*options[:-1], "B.trec", "--format", "markdown").out


def test_machine_formats_hold_the_same_rows(tiewise, folder):
    command = ("similarity", "A.trec", "B.trec", "C.trec", "-q")
    tsv = tiewise(*command, *TSV).rows
    pairs = [("A", "B"), ("A", "C"), ("B", "C")]
    assert [(row["observed"], row["reference"], row["query"]) for row in tsv] == [
        (*pair, query) for pair in pairs for query in ("q1", "q2", "all")
    ]
    assert list(csv.DictReader(io.StringIO(tiewise(*command, "--format", "csv").out))) == tsv
    tiewise(*command, "-o", "out.parquet")
    document = tiewise(*command, "--format", "json").json
    lines = [json.loads(line) for line in tiewise(*command, "--format", "jsonl").out.splitlines()]
    for rows in (lines, document["pairs"], pyarrow.parquet.read_table(folder / "out.parquet").to_pylist()):
        assert [{key: "" if value is None else str(value) for key, value in row.items()} for row in rows] == tsv
    assert [run["path"] for run in document["runs"]] == ["A.trec", "B.trec", "C.trec"]
    assert (document["queries"], document["queries_left_out"]) == (2, 1)
    assert document["notes"][0] == LEFT_OUT and document["notes"][1].startswith(CUT.replace("1 of 4", "2 of 6"))
    assert tiewise(*command, "-p", "2", *TSV).rows[0]["lower"] == f"{float(tsv[0]['lower']):.2f}"


@pytest.mark.parametrize("names", ["AB", "ABC"])
@pytest.mark.parametrize("measure", ["RBO(phi=0.9)", "RBR(phi=0.8)@2", "tau"])
def test_python_shows_what_the_command_shows(tiewise, folder, monkeypatch, names, measure):
    command = ("similarity", *(f"{name}.trec" for name in names), "-m", measure, "--complete")
    monkeypatch.chdir(folder)
    found = tw.similarity({name: f"{name}.trec" for name in names}, measure, complete=True)
    document = tiewise(*command, "--format", "json").json
    assert document == found.to_dict() == json.loads(found.to_json())
    assert list(document) == ["schema", *SIMILARITY_KEYS] and document["schema"] == "tiewise/similarity/1"
    for name, text in (("table", found.to_text()), ("markdown", found.to_markdown()), ("latex", found.to_latex())):
        assert tiewise(*command, "--format", name).out == text.replace("explain=True", "--explain")
    assert list(found.to_frame()["minimum"]) == [row["minimum"] for row in document["pairs"]]
    assert "<table" in found._repr_html_()


def test_one_line_and_one_sentence(tiewise):
    text = tiewise("similarity", "A.trec", "B.trec", "--complete").out
    lines = text.splitlines()
    assert lines[0] == "RBO(phi=0.9) · 2 queries"
    assert lines[1].split("  ")[0] == "run" and lines[1].endswith("by tie order  by unseen tail")
    assert re.fullmatch(r"A +B +\.\d{3} +\.\d{3} – \.\d{3} +\.\d{3} – \.\d{3}", lines[2])
    assert lines[3:] == [
        "by tie order, by unseen tail: lowest – highest",
        "The unseen tail leaves RBO open, .350 – .925: use longer lists or a smaller phi.",
        "How to read this, which measure to use: --explain",
        f"note: {LEFT_OUT}",
    ]
    assert max(map(len, lines)) <= 100 and len(text.split()) <= 70


def test_a_short_tail_is_said_in_the_sentence(tiewise, folder):
    for name, last in (("long", 30), ("longer", 31)):
        rows = (f"q Q0 d{i} 1 {last - i} t\n" for i in range(last))
        (folder / f"{name}.trec").write_text("".join(rows))
    text = tiewise("similarity", "long.trec", "longer.trec").out
    found = expected(folder, ("long", "longer"), "RBO").pair("long", "longer")
    moved = f"{found.extrapolated.expected - found.lower.expected:.3f}".removeprefix("0")
    assert f"\nReport RBO 1.000; the unseen tail changes it by at most {moved}.\n" in text
    alike = tiewise("similarity", "long.trec", "longer.trec", "-m", "RBR(phi=0.9)@20").out
    assert "\nReport RBR .878 of long against longer, at most .878.\n" in alike
    assert re.search(r"^run +against +value +at most +by tie order$", alike, re.M)


def test_a_query_each(tiewise):
    queries = tiewise("similarity", "A.trec", "B.trec", "-m", "RBA", "-q", "--format", "markdown").out
    assert re.findall(r"^\| A \| B \| (\w+) \|", queries, re.M) == ["q1", "q2", "all"]


def test_explained(tiewise):
    """Legends and the choice of a measure are there if they are asked for, and not before."""
    asked = ("similarity", "A.trec", "B.trec", "C.trec", "-m", "RBR@2", "--explain")
    text, short = plain(tiewise(*asked)), plain(tiewise(*asked[:-1]))
    for question, measure in QUESTIONS.items():
        assert question in text and measure in text
    assert "1 − φᵏ" in text and "1 − φᵏ" not in short
    assert text.count("by tie order") == 3 and "How to read this, ranges by tie order: --explain" in short
    assert "Highest possible: .190." in short


@pytest.mark.parametrize("measure", ["RBO", "RBA", "RBR"])
def test_matrix_of_three_runs(tiewise, folder, measure):
    runs = ("similarity", "A.trec", "B.trec", "C.trec", "-m", measure, "-p", "6")
    text = tiewise(*runs).out
    matrix = expected(folder, "ABC", measure).matrix()
    for place, (name, row) in enumerate(zip("ABC", matrix, strict=True)):
        cells = ["–" if place == other else f"{value:.6f}".removeprefix("0") for other, value in enumerate(row)]
        assert re.search(rf"^{name} +" + " +".join(map(re.escape, cells)) + "$", text, re.M)
    outside = matrix[~np.eye(3, dtype=bool)]
    found = re.search(r"Most alike: \w \w+ \w \((\S+)\); least: \w \w+ \w \((\S+)\)\.", text)
    assert [float(number) for number in found.groups()] == pytest.approx([outside.max(), outside.min()], abs=1e-6)
    assert ("against\n" in text) == (measure == "RBR")
    assert len(tiewise(*runs, "--quiet", "--complete").out.splitlines()) <= 9


def test_a_distance_is_least_where_runs_are_most_alike(tiewise, folder):
    text = tiewise("similarity", "A.trec", "B.trec", "C.trec", "-m", "MED_RBP").out
    matrix = expected(folder, "ABC", "MED_RBP").matrix()
    nearest = matrix[~np.eye(3, dtype=bool)].min()
    assert f"({nearest:.3f});".replace("0.", ".") in text.partition("Most alike")[2]


def plain(shown) -> str:
    return " ".join(shown.out.split())


def test_long_names_are_numbered_in_a_matrix(tiewise):
    names = [word for name in ("a-run-with-a-long-name", "B", "C") for word in ("--name", name)]
    text = tiewise("similarity", "A.trec", "B.trec", "C.trec", *names, "--format", "table").out
    assert re.search(r"^ +run +1 +2 +3$", text, re.M)
    assert re.search(r"^1 +a-run-with-a-long-name +– +[\d.]+", text, re.M)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("A.trec", "Similarity needs two runs or more; 1 was given"),
        ("A.trec nowhere.trec", "nowhere.trec: there is no such file"),
        ("A.trec other.trec", "no query in common"),
        ("- -", "can be read once"),
        ("A.trec B.trec -m nDCG@10", "nDCG@10 needs judgments: use `tiewise evaluate`"),
        ("A.trec B.trec -m RBX", "Unknown measure 'RBX'"),
        ("A.trec B.trec -m P", "Measures of two runs: RBO, RBA, RBR, MED_RBP, tau, tau_ap"),
        ("A.trec B.trec -m tau --phi 0.5", "tau has no parameter 'phi'"),
        ("A.trec B.trec -m MED_RBP(phi=2)", "phi=2 is not possible. It must lie above 0 and below 1"),
        ("A.trec B.trec -m tau --depth 2 --edge error", "Depth 2 ends inside a group of 2 tied items of query 'q1'"),
        ("A.trec B.trec -m RBO,RBA", "names 2 measures"),
        ("A.trec B.trec --phi 1", "phi=1.0 is not possible. It must lie above 0 and below 1"),
        ("A.trec B.trec -m RBO(phi=0.95) --phi 0.7", r"RBO\(phi=0.95\) has a phi, and --phi 0.7 was given too"),
        ("A.trec B.trec -m RBO@5 --depth 6", r"RBO\(phi=0.9\)@5 has a cutoff, and --depth 6 was given too"),
        ("A.trec B.trec --format trec", "'trec' is not one of 'table', 'tsv'"),
        ("A.trec B.trec --edge cut", "'cut' is not one of 'extend', 'shrink', 'error'"),
        ("A.trec B.trec -o out.xlsx", "no format is known"),
        ("A.trec B.trec --name one", "Give it once for each"),
    ],
)
def test_errors_are_one_line(tiewise, options, message):
    done = tiewise("similarity", *options.split(), code=2)
    assert re.search(message, done.err), done.err
    assert not done.out
    assert done.err.startswith("tiewise: ") and done.err.count("\n") == 1


def test_progress_bar(monkeypatch):
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return True

    def shown(stream: io.StringIO, **options: bool) -> str:
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.progress("queries", **options) as tell:
            for done in range(1, 4) if tell else ():
                tell(done, 3)
        return stream.getvalue()

    assert not shown(Stream())
    monkeypatch.setattr(progress, "DELAY", -1)
    monkeypatch.setenv("TERM", "xterm")
    assert "queries" in shown(Stream())
    assert not shown(Stream(), quiet=True)
    assert not shown(io.StringIO())


@pytest.mark.parametrize("command", ["evaluate qrels A.trec B.trec -m AP", "stages A.trec B.trec C.trec --depths 1"])
def test_progress_of_commands_that_read_several_runs(command, folder, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    (folder / "qrels").write_text("q1 0 a 1\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(progress, "DELAY", -1)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    status_of([*command.split(), "-o", "out.tsv"])
    assert "runs" in sys.stderr.getvalue() and "/2" in sys.stderr.getvalue()


def test_process_and_terminal(process, terminal):
    assert process("similarity", "A.trec", "B.trec", "-m", "RBR", *TSV).rows[1]["observed"] == "B"
    assert terminal("similarity", "A.trec", "B.trec") == process("similarity", "A.trec", "B.trec").out
