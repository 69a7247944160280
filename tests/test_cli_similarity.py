"""``tiewise similarity``: the numbers of the library in every format."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

import tiewise as tw
from tiewise.cli import progress
from tiewise.cli.program import status_of
from tiewise.output.similarity_tables import SIMILARITY_COLUMNS, VALUE_COLUMNS

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
CUT = (
    "1 of 4 lists may have been cut inside a tie group that counts here; bounds and ranges are of the documents "
    "listed. If your lists were not truncated, add complete=True (--complete)."
)


def expected(folder: Path, names: str, measure: str, **options) -> tw.Similarity:
    return tw.similarity({name: tw.read_run(folder / f"{name}.trec") for name in names}, measure, **options)


def test_column_names():
    assert (
        " ".join(SIMILARITY_COLUMNS)
        == "observed reference query lower lower_minimum lower_maximum upper upper_minimum "
        "upper_maximum extrapolated residual"
    )


def test_row_of_two_runs(tiewise, folder):
    done = tiewise("similarity", "A.trec", "B.trec", "--phi", "0.8")
    assert done.out.split("\n")[0].split("\t") == list(SIMILARITY_COLUMNS)
    (row,) = done.rows
    bounds = expected(folder, "AB", "RBO(phi=0.8)").pair("A", "B")
    assert list(row.values()) == [
        "A",
        "B",
        "all",
        *(repr(getattr(bounds.lower, name)) for name in ("expected", "minimum", "maximum")),
        *(repr(getattr(bounds.upper, name)) for name in ("expected", "minimum", "maximum")),
        repr(bounds.extrapolated.expected),
        repr(bounds.residual),
    ]
    assert done.err == f"note: {LEFT_OUT}\nnote: {CUT}\n"
    assert tiewise("similarity", "A.trec", "B.trec", "--complete").err == f"note: {LEFT_OUT}\n"
    assert not tiewise("similarity", "A.trec", "B.trec", "--quiet").err


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
    done = tiewise("similarity", "A.trec", "B.trec", "-m", measure, "-q")
    assert done.out.split("\n")[0].split("\t") == [*SIMILARITY_COLUMNS, *VALUE_COLUMNS]
    found = expected(folder, "AB", measure)
    for row in done.rows:
        value = (found.pair if row["query"] == "all" else _per_query(found, row["query"]))(
            row["observed"], row["reference"]
        ).value
        assert [row[name] for name in VALUE_COLUMNS] == [repr(value.expected), repr(value.minimum), repr(value.maximum)]
        assert (row["lower"] == row["upper"] == row["residual"] == "") == (measure != "MED_RBP")
    table = tiewise("similarity", "A.trec", "B.trec", "-m", measure, "--format", "table").out
    assert "value: of the lists as they are" in table
    assert ("residual" in table) == ("It is a distance" in table.replace("\n", " ")) == (measure == "MED_RBP")
    matrix = tiewise("similarity", "A.trec", "B.trec", "C.trec", "-m", measure, "--format", "latex", "-p", "6").out
    for name, row in zip("ABC", expected(folder, "ABC", measure).matrix(), strict=True):
        cells = (f"{value:.6f}" for value in row)
        assert rf"{name} & {' & '.join(cells)} \\" in matrix


def _per_query(found: tw.Similarity, query: str):
    return lambda observed, reference: found.per_query(observed, reference)[query]


def test_edge(tiewise, folder):
    for edge in ("extend", "shrink"):
        row = tiewise("similarity", "A.trec", "B.trec", "--depth", "2", "--edge", edge).rows[0]
        assert float(row["lower"]) == expected(folder, "AB", "RBO@2", edge=edge).pair("A", "B").lower.expected
    stopped = tiewise("similarity", "A.trec", "B.trec", "--depth", "2", "--edge", "error", code=2)
    assert "Depth 2 ends inside a group of 2 tied items of query 'q1'" in stopped.err


def test_undefined_values_are_empty(tiewise):
    options = ("similarity", "A.trec", "C.trec", "--depth", "1", "--edge", "shrink", "-q")
    rows = tiewise(*options).rows  # of q1, nothing is left of C
    assert [bool(row["extrapolated"]) for row in rows] == [False, True, True]  # the mean is that of q2
    assert "NaN" not in tiewise(*options, "--format", "json").out
    assert "nan" not in tiewise(*options, "--format", "markdown").out
    assert "nan" not in tiewise(*options[:-1], "B.trec", "--format", "markdown").out


def test_machine_formats_hold_the_same_rows(tiewise, folder):
    command = ("similarity", "A.trec", "B.trec", "C.trec", "-q")
    tsv = tiewise(*command).rows
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
    assert (document["queries"], document["queries_left_out"], document["notes"]) == (
        2,
        1,
        [LEFT_OUT, CUT.replace("1 of 4", "2 of 6")],
    )
    assert tiewise(*command, "-p", "2").rows[0]["lower"] == f"{float(tsv[0]['lower']):.2f}"


def test_table_of_two_runs(tiewise):
    text = tiewise("similarity", "A.trec", "B.trec", "--format", "table").out
    assert text.startswith("RBO(phi=0.9) · 2 queries\n")
    assert re.search(r"^observed +reference +lower +upper +extrapolated +residual$", text, re.M)
    assert re.search(r"^A +B +\.\d{3} \[\.\d{3}, \.\d{3}\] +", text, re.M)
    assert "note: 1 query is not in all runs and left out." in text
    queries = tiewise("similarity", "A.trec", "B.trec", "-m", "RBA", "-q", "--format", "markdown").out
    assert re.findall(r"^\| A \| B \| (\w+) \|", queries, re.M) == ["q1", "q2", "all"]
    assert "extrapolated" not in queries  # RBA has none


@pytest.mark.parametrize("measure", ["RBO", "RBA", "RBR"])
def test_matrix_of_three_runs(tiewise, folder, measure):
    latex = tiewise("similarity", "A.trec", "B.trec", "C.trec", "-m", measure, "-p", "6", "--format", "latex").out
    matrix = expected(folder, "ABC", measure).matrix()
    for name, row in zip("ABC", matrix, strict=True):
        cells = " & ".join(f"{value:.6f}" for value in row)
        assert rf"{name} & {cells} \\" in latex
    assert ("The extrapolated value" if measure == "RBO" else "The lower bound") in latex
    assert ("a row is the observed run" in latex) == (measure == "RBR")


def test_the_legend_says_why_a_run_differs_from_itself(tiewise):
    """A and C have ties, B has none."""
    runs = ("similarity", "A.trec", "B.trec", "C.trec", "--format", "table")
    assert "A run can be below 1 against itself: two independent orders of its ties differ." in plain(tiewise(*runs))
    assert "A run can be above 0 against itself: two" in plain(tiewise(*runs, "-m", "MED_RBP"))
    assert "below 1 against itself: what follows its list is not seen, and two" in plain(tiewise(*runs, "-m", "RBA"))
    three = ("similarity", *["B.trec"] * 3, *("--name", "x", "--name", "y", "--name", "z"), "--format", "table")
    assert "against itself" not in plain(tiewise(*three))


def plain(shown) -> str:
    return " ".join(shown.out.split())


def test_long_names_are_numbered_in_a_matrix(tiewise):
    names = [word for name in ("a-run-with-a-long-name", "B", "C") for word in ("--name", name)]
    text = tiewise("similarity", "A.trec", "B.trec", "C.trec", *names, "--format", "table").out
    assert re.search(r"^ +run +1 +2 +3$", text, re.M)
    assert re.search(r"^1 +a-run-with-a-long-name +[\d.]+", text, re.M)


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


@pytest.mark.parametrize("command", ["evaluate qrels A.trec B.trec -m AP", "recall A.trec B.trec C.trec --depths 1"])
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
    assert process("similarity", "A.trec", "B.trec", "-m", "RBR").rows[1]["observed"] == "B"
    text = terminal("similarity", "A.trec", "B.trec", "C.trec", columns=20)
    assert max(map(len, text.splitlines()[:8])) <= 24 and "…" not in text


def test_no_column_stands_alone_on_a_narrow_terminal(folder, terminal):
    """Four columns that do not fit are two and two."""
    for name, factor in {"observed-one": 1, "observed-two": 3}.items():
        (folder / f"{name}.trec").write_text("".join(f"q Q0 d{i} 1 {factor * i % 5} t\n" for i in range(20)))
    text = terminal("similarity", "observed-one.trec", "observed-two.trec", columns=80)
    heads = [line.split() for line in text.splitlines() if line.startswith("observed ")]
    assert heads == [["observed", "reference", "lower", "upper"], ["observed", "reference", "extrapolated", "residual"]]
