"""``tiewise compare``: the numbers of the library in every format, tables, and conditions."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from pathlib import Path

import pyarrow.parquet
import pytest

import tiewise as tw
from tiewise.analysis.comparison.result import COMPARISON_COLUMNS
from tiewise.results.wording import spelled_for_shell

QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 a 1\nq2 0 b 0\nq3 0 a 1\n"
# One score for all: trec_eval puts the relevant document last, ascending ids put it first.
TIED = "".join(f"q{q} Q0 {doc} 1 1 t\n" for q in (1, 2, 3) for doc in "abc")
SECOND = "".join(f"q{q} Q0 {doc} {rank} {9 - rank} t\n" for q in (1, 2, 3) for rank, doc in enumerate("bac", 1))
LAST = "".join(f"q{q} Q0 {doc} {rank} {9 - rank} t\n" for q in (1, 2, 3) for rank, doc in enumerate("bxyza", 1))
RR = ("-m", "RR@10", "--complete")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    for name, text in (("qrels.txt", QRELS), ("tied.trec", TIED), ("second.trec", SECOND), ("last.trec", LAST)):
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def pair(folder) -> tw.comparison.PairComparison:
    runs = {name: folder / f"{name}.trec" for name in ("tied", "second")}
    return tw.compare(folder / "qrels.txt", runs, "RR@10", complete=True).pair("tied", "second")


def test_column_names():
    assert (
        " ".join(COMPARISON_COLUMNS)
        == "measure a b queries a_expected b_expected difference p_value ci_low ci_high family shown any_tie_order "
        "minimum maximum std exact_range certain probability probability_equal probability_less method "
        "probability_error std_error ci_order_low ci_order_high effect wins losses equal flip verdict"
    )


def test_one_row_per_pair(tiewise, pair):
    done = tiewise("compare", "qrels.txt", "tied.trec", "second.trec", *RR, "--format", "tsv")
    (row,) = done.rows
    assert list(row) == list(COMPARISON_COLUMNS)
    assert (row["a"], row["b"], row["queries"], row["certain"], row["flip"]) == ("tied", "second", "3", "False", "True")
    assert float(row["difference"]) == pair.difference.expected
    assert float(row["probability"]) == pair.probability
    assert float(row["p_value"]) == pair.p_value
    assert row["verdict"] == pair.verdict
    assert (row["any_tie_order"], row["shown"]) == ("no", "no")


def test_json_has_the_attribute_names(tiewise, pair):
    found = tiewise("compare", "qrels.txt", "tied.trec", "second.trec", *RR, "--format", "json").json
    (plain,) = found["pairs"]
    assert plain == json.loads(json.dumps(pair.to_dict()))
    assert plain["difference"]["expected"] == pair.difference.expected
    for name in ("certain", "probability", "flip", "p_value", "verdict"):
        assert plain[name] == getattr(pair, name)
    assert [run["name"] for run in found["runs"]] == ["tied", "second"] and found["runs"][0]["path"] == "tied.trec"
    assert found["schema"] == "tiewise/comparison/1"
    assert " ".join(found) == "schema version runs queries baseline test confidence orders seed rankings pairs notes"
    assert (found["orders"], found["test"], found["confidence"], found["seed"]) == ("independent", "max-t", 0.95, 0)
    board = found["rankings"]["RR@10"]
    assert [row["system"] for row in board["rows"]] == ["tied", "second"] and "tau" in board
    assert (
        " ".join(board["rows"][0])
        == "rank system expected minimum maximum oblivious difference ci_low ci_high p_value rank_best rank_worst "
        "ranks_reached rank_low rank_high"
    )


@pytest.mark.parametrize("names", [("tied", "second"), ("tied", "second", "last")])
def test_python_and_the_command_line_show_the_same(tiewise, folder, names):
    files = [f"{name}.trec" for name in names]
    runs = {name: folder / f"{name}.trec" for name in names}
    command = ("compare", "qrels.txt", *files, "-m", "RR@10", "-m", "P@2", "--complete")
    found = tw.compare(folder / "qrels.txt", runs, ["RR@10", "P@2"], complete=True)
    plain = tiewise(*command, "--format", "json").json
    for run, file in zip(plain["runs"], files, strict=True):
        assert run["path"] == file
        run["path"] = str(folder / file)
    assert plain == json.loads(found.to_json())
    assert tiewise(*command, "--format", "latex").out == found.to_latex()
    for options, chosen in (((), {}), (("--wide",), {"wide": True}), (("--explain",), {"explain": True})):
        with spelled_for_shell():
            wanted = found.to_markdown(**chosen), found.to_text(**chosen)
        assert tiewise(*command, *options, "--format", "markdown").out == wanted[0]
        assert tiewise(*command, *options).out == wanted[1]
    explained = tiewise(*command, "--explain", "--format", "json").json
    assert explained["unjudged"] == json.loads(
        json.dumps({name: one.to_dict() for name, one in found.unjudged().items()})
    )
    frame = tw.compare(folder / "qrels.txt", runs, "RR@10", complete=True).to_frame()
    assert list(frame.columns) == list(COMPARISON_COLUMNS)


def test_machine_formats_hold_the_same_rows(tiewise, folder):
    command = ("compare", "qrels.txt", "tied.trec", "second.trec", "last.trec", *RR, "-m", "AP")
    tsv = tiewise(*command, "--format", "tsv").rows
    assert [(row["measure"], row["a"], row["b"]) for row in tsv] == [
        (measure, *two)
        for measure in ("RR@10", "AP")
        for two in (("tied", "second"), ("tied", "last"), ("second", "last"))
    ]
    assert list(csv.DictReader(io.StringIO(tiewise(*command, "--format", "csv").out))) == tsv
    tiewise(*command, "-o", "out.parquet")
    lines = [json.loads(line) for line in tiewise(*command, "--format", "jsonl").out.splitlines()]
    for rows in (lines, pyarrow.parquet.read_table(folder / "out.parquet").to_pylist()):
        assert [{key: "" if value is None else str(value) for key, value in row.items()} for row in rows] == tsv
    assert len(tiewise(*command, "--baseline", "last", "--format", "tsv").rows) == 4


def test_table_of_two_runs(tiewise, pair):
    text = tiewise("compare", "qrels.txt", "tied.trec", "second.trec", *RR).out
    lines = text.splitlines()
    assert lines[0] == "RR@10 · tied (A) against second (B) · 3 queries"
    assert lines[1].split() == ["A", "B", "A", "−", "B", "[95%]", "p", "in", "every", "order", "of", "ties?"]
    assert re.fullmatch(r"\.611 +\.500 +\+\.111 +– +\.250 +no, A ahead in \d\d\.\d%", lines[2].strip())
    assert pair.verdict in " ".join(text.split())
    assert lines[-1] == "How to read this, every tool: --explain"


def test_the_table_and_the_sentence_have_one_sign(tiewise):
    """Every difference is that of A minus B, the baseline if there is one."""
    command = ("compare", "qrels.txt", "tied.trec", "last.trec", *RR)
    for first, second, sign, word, baseline in (
        ("tied", "last", r"\+", "higher", "last"),
        ("last", "tied", "−", "lower", "tied"),
    ):
        text = " ".join(tiewise(*command, "--baseline", baseline).out.split())
        assert f"{first} (A) against {second} (B)" in text
        assert re.search(rf" {sign}\.\d{{3}} – ", text) and re.search(rf"ties \({sign}\.\d{{4}}, from {sign}", text)
        assert f"{first} scores {word} than {second} in RR@10 in every order of ties" in text


def test_ranking_of_three_runs(tiewise):
    command = ("compare", "qrels.txt", "second.trec", "last.trec", "tied.trec", *RR)
    text = tiewise(*command, "--format", "markdown").out
    heads = r"| rank | run | value | difference | \[95%, all rows\] | p | rank by tie order |"
    assert text.startswith(f"RR@10 · 3 queries · each run against the best:\n\n{heads}")
    assert re.search(r"^\| 1 \| tied \| \.611 \|  \|  \|  \| 1–2 \|$", text, re.M)
    assert re.search(r"^\| 3 \| last \| \.200 \| −\.411 \| – \| \.750 \| 3 \|$", text, re.M)
    assert (
        "Not shown: that any is better. Ranks 1 and 2 depend on the order of ties; tools disagree about them." in text
    )
    explained = tiewise(*command, "--explain", "--format", "markdown").out
    assert "tied or second? Tools disagree, because they break ties differently: trec\\_eval" in explained
    assert "In the order of trec\\_eval the runs stand differently (Kendall's τ .333 with this table)." in explained
    based = tiewise(*command, "--baseline", "second", "-m", "AP").out
    assert based.startswith("3 runs · 3 queries · each run against second\nRR@10\nrank  run ")
    assert "Not shown: that any differs from second." in based


def spread(folder, tiewise, runs=("bm25", "dense", "sparse")) -> tuple[str, ...]:
    """Forty queries in which three runs find one relevant document at different ranks."""
    rng = random.Random(1)
    (folder / "forty.txt").write_text("".join(f"q{q} 0 d 1\n" for q in range(40)))
    for step, name in enumerate(runs):
        lines = []
        for q in range(40):
            place = rng.choice([1, 1, 2, 3 + step, 4 + 2 * step])
            lines += [f"q{q} Q0 {'d' if rank == place else f'x{rank}'} {rank} {19 - rank} t\n" for rank in range(1, 11)]
        (folder / f"{name}.trec").write_text("".join(lines))
    return ("compare", "forty.txt", *(f"{name}.trec" for name in runs), "-m", "nDCG@10,AP", "--complete")


def test_three_runs_and_two_measures_fit_on_a_screen(tiewise, terminal, folder):
    command = spread(folder, tiewise)
    text = tiewise(*command).out
    lines = text.splitlines()
    assert len(lines) <= 20 and len(text.split()) <= 130
    for width in (80, 120):
        shown = terminal(*command, columns=width)
        assert max(map(len, shown.splitlines())) <= width and len(shown.splitlines()) <= 20
    rows = [line.split() for line in lines if line[:1] in "123" and not line.startswith("3 runs")]
    assert len(rows) == 6 and len({len(row[2]) for row in rows[:3]}) == 1  # the values of a table have equal digits


def test_neighbours_look_different(tiewise, folder):
    """As many digits as separate neighbours, at least three; -p sets them."""
    ranks = {"one": [1] * 199 + [7], "two": [1] * 199 + [8], "three": [2] * 200}
    (folder / "many.txt").write_text("".join(f"q{q} 0 d 1\n" for q in range(200)))
    for name, places in ranks.items():
        text = "".join(
            f"q{q} Q0 {'d' if r == k else f'x{r}'} {r} {9 - r} t\n" for q, k in enumerate(places) for r in range(1, 9)
        )
        (folder / f"{name}.trec").write_text(text)
    command = ("compare", "many.txt", "one.trec", "two.trec", "three.trec", "-m", "RR", "--complete")
    values = [line.split()[2] for line in tiewise(*command).out.splitlines()[2:5]]
    assert values == [".9957", ".9956", ".5000"]
    assert [line.split()[2] for line in tiewise(*command, "-p", "2").out.splitlines()[2:5]] == ["1.00", "1.00", ".50"]


def test_wide_and_chosen_columns(tiewise):
    command = ("compare", "qrels.txt", "second.trec", "last.trec", "tied.trec", *RR)
    head = tiewise(*command, "--columns", "rank_ci,difference").out.splitlines()[1]
    assert head.split("  ") == ["run", "   difference", "rank, 95%"] or head.split() == [
        "run",
        "difference",
        "rank,",
        "95%",
    ]
    wide = tiewise(*command, "--wide").out.splitlines()[1]
    for heading in ("rank, 95%", "by tie order", "as trec_eval prints it", "ahead", "std", "effect", "wins", "losses"):
        assert heading in wide
    assert "There is no column 'x'" in tiewise(*command, "--columns", "x", code=2).err


def test_holes_that_may_explain_a_difference_are_noted(tiewise, folder):
    """The run behind has fewer judged documents among its first ten."""
    (folder / "pool.txt").write_text("".join(f"q{q} 0 d{i} {int(i < 2)}\n" for q in range(4) for i in range(10)))
    for name, ids in (("pooled", range(10)), ("other", (3, 0, *range(50, 58))), ("alike", (4, *range(10)[:9]))):
        text = "".join(f"q{q} Q0 d{i} {r} {20 - r} t\n" for q in range(4) for r, i in enumerate(dict.fromkeys(ids), 1))
        (folder / f"{name}.trec").write_text(text)
    command = ("compare", "pool.txt", "pooled.trec", "other.trec", "-m", "nDCG@10,AP", "--complete")
    note = "Judged@10: pooled 1.00, other .20: unjudged documents may be a part of the difference."
    assert tiewise(*command).out.count(note) == 1
    assert tiewise(*command, "--format", "json").json["notes"] == [note]
    assert "Judged" not in tiewise("compare", "pool.txt", "pooled.trec", "alike.trec", "-m", "AP", "--complete").out
    assert "Judged" not in tiewise(*command, "-J").out  # unjudged documents were removed


def test_a_true_condition_exits_with_3(tiewise):
    command = ("compare", "qrels.txt", "tied.trec", "second.trec", *RR)
    passed = tiewise(*command, "--fail-if", "certain(tied>second, RR@10)", "--fail-if", "p(tied>second, AP) > 2")
    assert passed.out.startswith("RR@10 · ")  # a measure that only a condition names is not shown
    failed = tiewise(*command, "--fail-if", "not certain(tied>second, RR@10)", "--format", "json", code=3)
    assert failed.json["pairs"]
    assert "is true (certain(tied>second, RR@10) = no)." in failed.err
    stopped = tiewise(*command, "--fail-if", "not certain(tied>first, RR@10)", code=2)
    assert (
        "Write (A>B, nDCG@10) with two of 'second', 'tied'" in stopped.err or "two of 'tied', 'second'" in stopped.err
    )


def test_a_measure_of_a_condition_does_not_change_other_p_values(tiewise, folder):
    command = spread(folder, tiewise)[:-3]
    alone = tiewise(*command, "-m", "nDCG@10", "--complete", "--format", "json").json
    checked = tiewise(*command, "-m", "nDCG@10", "--complete", "--fail-if", "p(bm25>dense, AP) > 2", "--format", "json")
    assert checked.json == alone
    both = tiewise(*command, "-m", "nDCG@10,AP", "--complete", "--format", "json").json
    assert [pair["p_value"] for pair in both["pairs"][:3]] != [pair["p_value"] for pair in alone["pairs"]]
    of_ap = tiewise(*command, "-m", "AP", "--complete", "--format", "json").json["pairs"]  # its own pairs alone
    wanted = next(pair for pair in of_ap if {pair["a"], pair["b"]} == {"bm25", "dense"})
    a, b = (wanted["a"], wanted["b"]) if wanted["difference"]["expected"] > 0 else (wanted["b"], wanted["a"])
    check = f"p({a}>{b}, AP) > 0 and p({a}>{b}, nDCG@10) < 2"
    failed = tiewise(*command, "-m", "nDCG@10", "--complete", "--fail-if", check, code=3)
    assert f"p({a}>{b}, AP) = {wanted['p_value']:.6g}" in failed.err


def test_orders_tests_and_confidence(tiewise, folder):
    ranks = {"left": (1, 1, 2, 1, 3, 1), "right": (2, 4, 1, 3, 1, 1)}  # of the relevant document, query by query
    (folder / "varied.txt").write_text("".join(f"q{q} 0 d 1\n" for q in range(6)))
    for name, places in ranks.items():
        lines = [
            f"q{q} Q0 {'d' if rank == place else f'x{rank}'} {rank} {9 - rank} t\n"
            for q, place in enumerate(places)
            for rank in range(1, 6)
        ]
        (folder / f"{name}.trec").write_text("".join(lines))
    command = ("compare", "varied.txt", "left.trec", "right.trec", "-m", "RR@10", "--complete")
    shared = tiewise(*command, "--orders", "shared", "--format", "json").json
    assert shared["orders"] == "shared" and any("One order of all documents" in note for note in shared["notes"])
    per_query = tiewise(*command, "--orders", "per-query", "--format", "json").json
    assert per_query["orders"] == "per-query" and any("In each query one order" in note for note in per_query["notes"])
    rows = [tiewise(*command, "--test", test, "--format", "tsv").rows[0] for test in ("max-t", "tukey")]
    assert rows[0]["p_value"] != rows[1]["p_value"]
    assert len({row["difference"] for row in rows}) == 1
    narrow = tiewise(*command, "--confidence", "0.5", "--seed", "1", "--format", "tsv").rows[0]
    assert float(narrow["ci_high"]) - float(narrow["ci_low"]) < float(rows[0]["ci_high"]) - float(rows[0]["ci_low"])
    assert "[50%]" in tiewise(*command, "--confidence", "0.5").out


def test_report_takes_test_and_confidence(tiewise, folder):
    pytest.importorskip("vl_convert", reason="the page needs tiewise[report]")
    from tiewise.page.content import collect_content

    command = ("report", "qrels.txt", "tied.trec", "last.trec", "-m", "RR@10", "--complete", "--test", "tukey")
    tiewise(*command, "-o", "page.html")
    assert (folder / "page.html").is_file()
    for reference, code in (("tied", 0), ("tied.trec", 0), ("other", 2)):  # its name or its file
        tiewise(*command, "--reference", reference, "-o", "page.html", code=code)
    assert "confidence lies between 0 and" in tiewise(*command, "--confidence", "5", "-o", "page.html", code=2).err
    runs = {name: folder / f"{name}.trec" for name in ("tied", "last")}
    compared = collect_content(
        folder / "qrels.txt", runs, "RR@10", test="tukey", confidence=0.9, complete=True
    ).compared
    assert (compared.test, compared.confidence) == ("tukey", 0.9)


def test_bounds_over_labels_are_explained(tiewise, folder):
    command = ("compare", "qrels.txt", "second.trec", "last.trec", "-m", "P@2,AP", "--complete")
    found = tiewise(*command, "--explain", "--format", "json").json
    assert list(found["unjudged"]["second"]) == ["P@2"]  # AP has no bounds
    assert found["unjudged"]["second"]["P@2"]["upper"]["expected"] == pytest.approx(4 / 6)
    wanted = tw.unjudged(folder / "qrels.txt", folder / "last.trec", "P@2", complete=True)
    assert found["unjudged"]["last"] == json.loads(json.dumps(wanted.to_dict()))
    text = " ".join(tiewise(*command, "--explain").out.split())
    assert "last: P@2 lies between .000 and .667, whatever unjudged documents are worth" in text
    assert "unjudged" not in tiewise(*command, "--format", "json").json


def test_errors_name_the_run(tiewise, folder):
    (folder / "other.trec").write_text("q1 Q0 nothing 1 1 t\nq2 Q0 here 1 1 t\n")
    for command in ("compare", "evaluate"):
        done = tiewise(command, "qrels.txt", "tied.trec", "other.trec", *RR, code=2)
        assert "Run 'other': The run and the qrels have no document in common" in done.err
    (folder / "few.trec").write_text("q1 Q0 a 1 1 t\nq1 Q0 b 2 0 t\n")
    done = tiewise("compare", "qrels.txt", "few.trec", "tied.trec", *RR, "--missing", "error", code=2)
    assert "Run 'few': 2 judged queries are missing from the run: 'q2', 'q3'." in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("tied.trec", "between two systems or more; 1 was given"),
        ("tied.trec nowhere.trec", "nowhere.trec: there is no such file"),
        ("tied.trec second.trec --baseline third", "The baseline 'third' is not one of the systems: 'tied', 'second'"),
        ("tied.trec second.trec -m RBO", "compares two rankings"),
        ("tied.trec second.trec --orders both", "'both' is not one of 'independent', 'per-query', 'shared'"),
        ("tied.trec second.trec --test u", "'u' is not one of 'max-t', 'tukey'"),
        ("tied.trec second.trec --confidence 95", "confidence lies between 0 and 0.999"),
        ("tied.trec second.trec --fail-if p>1", "this is not a condition. Compare a statistic of two systems"),
        ("- -", "can be read once"),
    ],
)
def test_errors_are_one_line(tiewise, options, message):
    done = tiewise("compare", "qrels.txt", *options.split(), code=2)
    assert message in done.err, done.err
    assert not done.out
    assert done.err.startswith("tiewise: ") and done.err.count("\n") == 1


def test_standard_input_and_terminal(tiewise, terminal):
    assert (
        tiewise("compare", "qrels.txt", "-", "second.trec", *RR, "--format", "tsv", stdin=TIED).rows[0]["a"] == "stdin"
    )
    text = terminal("compare", "qrels.txt", "tied.trec", "second.trec", "last.trec", *RR, columns=80)
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text


def test_a_measure_without_relevant_documents_is_left_out(tiewise):
    """No document has label 3: the other measures are compared."""
    command = ("compare", "qrels.txt", "second.trec", "last.trec", "--no-relevant", "skip")
    done = tiewise(*command, "-m", "P@2 P(rel=3)@2", "--format", "tsv")
    assert [row["measure"] for row in done.rows] == ["P@2"]
    assert "There is no query to compare by P(rel=3)@2: left out." in done.err
    done = tiewise(*command, "-m", "P(rel=3)@2", code=2)
    assert "No query is left to compare by 'P(rel=3)@2'" in done.err


def test_captions_name_lists_that_may_be_cut_and_missing_queries(tiewise, folder):
    (folder / "cut.qrels").write_text("1 0 a 1\n1 0 b 1\n2 0 a 1\n")
    (folder / "one.trec").write_text("1 Q0 x 1 1 t\n1 Q0 a 2 1 t\n1 Q0 y 3 1 t\n")
    (folder / "two.trec").write_text("1 Q0 a 1 2 t\n1 Q0 b 2 1 t\n2 Q0 a 1 1 t\n")
    text = tiewise("compare", "cut.qrels", "one.trec", "two.trec", "-m", "R@3", "--format", "latex").out
    caption = next(line for line in text.splitlines() if line.startswith(r"\caption"))
    assert "R@3 of 2 runs, 2 queries, expected over all orders of ties." in caption
    assert r"$\circ$ Lists of one may have been cut inside a tie group." in caption and "*" not in caption
    assert "Missing judged queries count as 0: 1 of one." in caption


def test_the_page_has_the_bounds_of_all_its_measures_and_report_prints_them(tiewise, folder):
    pytest.importorskip("vl_convert")
    (folder / "cut.qrels").write_text("1 0 a 1\n1 0 b 1\n")
    (folder / "one.trec").write_text("1 Q0 x 1 1 t\n1 Q0 a 2 1 t\n1 Q0 y 3 1 t\n")
    (folder / "two.trec").write_text("1 Q0 b 1 2 t\n1 Q0 x 2 1 t\n")
    done = tiewise("report", "cut.qrels", "one.trec", "two.trec", "-m", "P@1,R@3,GMAP", "-o", "cut.html")
    assert "R@3 .000 – 1.000, so which is higher is open" in " ".join(done.err.split())
    assert "R@3 0.000 – 1.000" in (folder / "cut.html").read_text(encoding="utf-8")
    tiewise("report", "cut.qrels", "one.trec", "two.trec", "-m", "R@3", "-o", "first.html")
    page = (folder / "first.html").read_text(encoding="utf-8")
    assert "one, two" not in page and "equal in every tie order of the documents listed" in page


def test_who_is_shown_to_be_better():
    """A is ahead of B and C in 20 queries; B and C are equal, so that neither is better than the other."""
    qrels = {f"q{i}": {"r": 1} for i in range(20)}
    first, second = ({q: {"x": 2.0, "r": score, "y": 1.5} for q in qrels} for score in (3.0, 1.0))
    runs = {"A": first, "B": second, "C": dict(second)}
    text = tw.compare(qrels, runs, "RR", complete=True).to_markdown()
    assert "Shown: A is better than all others. No order of ties changes a rank." in text
    del runs["A"]
    runs["D"] = {q: {"x": 2.0, "r": 0.5, "z": 0.7, "y": 1.5} for q in qrels}
    text = tw.compare(qrels, runs, "RR", complete=True).to_markdown()
    assert "Shown: B is better than D. Not shown: that it is better than C." in text
    text = tw.compare(qrels, runs, "RR", complete=True, baseline="D").to_markdown()
    assert "Shown: B and C are better than D." in text
    text = tw.compare(qrels, runs, "RR", complete=True, baseline="C").to_markdown()
    assert "Shown: D is worse than C. Not shown: that B differs from C." in text


def test_a_shown_difference_that_ties_can_reverse_is_an_alarm():
    """A ties the relevant document with two others, so it is better than B on average, but not in every order."""
    qrels = {f"q{i}": {"a": 1} for i in range(8)}
    tied, second = dict.fromkeys("abc", 1.0), {"b": 2.0, "a": 1.0, "c": 0.5}
    runs = {"A": tied, "B": second, "C": {"b": 2.0, "c": 1.0, "a": 0.5}}
    found = tw.compare(qrels, {name: dict.fromkeys(qrels, run) for name, run in runs.items()}, "RR@10", complete=True)
    text = found.to_text()
    assert "But some orders of ties put B ahead of A: report the expected values." in text
    assert "Shown: A is better than all others." in text
    two = tw.compare(
        FEW, {"A": dict.fromkeys(FEW, tied), "B": dict.fromkeys(FEW, second), "C": dict.fromkeys(FEW, second)}
    )
    assert "But some" not in two.to_text()  # nothing is shown that ties could reverse


FEW = {"q1": {"a": 1}, "q2": {"a": 1}}
