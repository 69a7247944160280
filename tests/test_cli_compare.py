"""``tiewise compare``: the numbers of the library in every format, tables, and conditions."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pyarrow.parquet
import pytest

import tiewise as tw
from tiewise.output import OutputOptions, render
from tiewise.output.comparison_tables import COMPARISON_COLUMNS, ComparisonTables
from tiewise.output.page.content import collect_content

QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 a 1\nq2 0 b 0\nq3 0 a 1\n"
# One score for all: trec_eval puts the relevant document last, ascending ids put it first.
TIED = "".join(f"q{q} Q0 {doc} 1 1 t\n" for q in (1, 2, 3) for doc in "abc")
SECOND = "".join(f"q{q} Q0 {doc} {rank} {9 - rank} t\n" for q in (1, 2, 3) for rank, doc in enumerate("bac", 1))
LAST = "".join(f"q{q} Q0 {doc} {rank} {9 - rank} t\n" for q in (1, 2, 3) for rank, doc in enumerate("bxyza", 1))
RR = ("-m", "RR@10", "--complete", "--resamples", "500")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    for name, text in (("qrels.txt", QRELS), ("tied.trec", TIED), ("second.trec", SECOND), ("last.trec", LAST)):
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def pair(folder) -> tw.comparison.PairComparison:
    runs = {name: folder / f"{name}.trec" for name in ("tied", "second")}
    return tw.compare(folder / "qrels.txt", runs, "RR@10", complete=True, resamples=500).pair("tied", "second")


def test_column_names():
    assert (
        " ".join(COMPARISON_COLUMNS)
        == "measure a b queries a_expected b_expected difference minimum maximum std certain probability "
        "probability_equal probability_less method p_value p_holm ci_low ci_high ci_order_low ci_order_high effect "
        "wins losses ties flip verdict a_lower a_upper a_condensed b_lower b_upper b_condensed "
        "exact_range probability_error std_error any_tie_order other_queries"
    )


def test_one_row_per_pair(tiewise, pair):
    done = tiewise("compare", "qrels.txt", "tied.trec", "second.trec", *RR)
    (row,) = done.rows
    assert list(row) == list(COMPARISON_COLUMNS)
    assert (row["a"], row["b"], row["queries"], row["certain"], row["flip"]) == ("tied", "second", "3", "False", "True")
    assert float(row["difference"]) == pair.difference.expected
    assert float(row["probability"]) == pair.probability
    assert (float(row["ci_low"]), float(row["ci_high"])) == pair.ci
    assert row["verdict"] == pair.verdict
    assert (row["any_tie_order"], row["other_queries"]) == ("no", "unclear")


def test_json_has_the_attribute_names(tiewise, pair):
    found = tiewise("compare", "qrels.txt", "tied.trec", "second.trec", *RR, "--format", "json").json
    (plain,) = found["pairs"]
    assert plain == json.loads(json.dumps(pair.to_dict()))
    assert plain["difference"]["expected"] == pair.difference.expected
    for name in ("certain", "probability", "flip", "p_value", "verdict"):
        assert plain[name] == getattr(pair, name)
    assert [run["name"] for run in found["runs"]] == ["tied", "second"] and found["runs"][0]["path"] == "tied.trec"
    assert (found["orders"], found["test"], found["resamples"], found["seed"]) == ("independent", "permutation", 500, 0)
    board = found["leaderboards"]["RR@10"]
    assert [row["system"] for row in board["rows"]] == ["tied", "second"] and "tau" in board


def test_machine_formats_hold_the_same_rows(tiewise, folder):
    command = ("compare", "qrels.txt", "tied.trec", "second.trec", "last.trec", *RR, "-m", "AP")
    tsv = tiewise(*command).rows
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
    assert len(tiewise(*command, "--baseline", "last").rows) == 4


def test_table_of_two_runs(tiewise, pair):
    text = tiewise("compare", "qrels.txt", "tied.trec", "second.trec", *RR, "--format", "table").out
    assert text.startswith("RR@10 · tied against second · 3 queries\n")
    assert re.search(r"^tied +second +difference +all orders +other queries +95% interval$", text, re.M)
    assert re.search(
        r"^\.\d{3} \[\.\d{3}, 1\.000\] +\.500 +\+\.\d{3} \[−\.\d{3}, \.500\] +no, tied ahead in \d\d\.\d% +unclear \(",
        text,
        re.M,
    )
    assert pair.verdict in " ".join(text.split())


def test_the_table_and_the_sentence_have_one_sign(tiewise):
    """Every difference is that of the first run in the heading minus the second, the baseline if there is one."""
    command = ("compare", "qrels.txt", "tied.trec", "last.trec", *RR, "--format", "table")
    for first, second, sign, word, baseline in (
        ("tied", "last", r"\+", "higher", "last"),
        ("last", "tied", "−", "lower", "tied"),
    ):
        text = " ".join(tiewise(*command, "--baseline", baseline).out.split())
        assert f" {first} {second} difference " in text and f"difference: {first} minus {second}," in text
        assert re.search(rf" {sign}\.\d{{3}} \[", text) and re.search(rf"ordered \({sign}\.\d{{4}}, from {sign}", text)
        assert f"{first} scores {word} than {second} in RR@10 however ties are ordered" in text


def test_leaderboard_of_three_runs(tiewise):
    command = ("compare", "qrels.txt", "second.trec", "last.trec", "tied.trec", *RR)
    text = tiewise(*command, "--format", "markdown").out
    assert text.startswith("RR@10 · 3 runs · 3 queries:\n\n| rank | run | expected | by queries | against the next |")
    assert re.search(r"^\| 1 \(1–2\) \| tied \| \.\d+ \[\.333, 1\.000\] \|", text, re.M)
    assert re.search(r"^\| 3 \| last \| \.200 \| 3 \| – \|", text, re.M)
    assert "However ties are ordered? No: tie order can change the order of tied, second (second leads tied in " in text
    assert "Would it hold for other queries? " in text
    assert "tied or second? Tools disagree, because they break ties differently: trec\\_eval" in text
    assert "In the order of trec\\_eval the runs stand differently (Kendall's τ .333 with this table)." in text
    based = tiewise(*command, "--baseline", "second", "-m", "AP", "--format", "markdown").out
    assert "| against second | all orders | other queries |" in based and "| RR@10 | 2 (1–2) | second | .500 |" in based
    assert r"\begin{tabular}" in tiewise(*command, "--format", "latex").out


def test_a_true_condition_exits_with_3(tiewise):
    command = ("compare", "qrels.txt", "tied.trec", "second.trec", *RR)
    passed = tiewise(*command, "--fail-if", "certain(tied>second, RR@10)", "--fail-if", "p(tied>second, AP) > 2")
    assert [row["measure"] for row in passed.rows] == ["RR@10"]  # a measure that only a condition names is not shown
    failed = tiewise(*command, "--fail-if", "not certain(tied>second, RR@10)", "--format", "json", code=3)
    assert failed.json["pairs"]
    assert "is true (certain(tied>second, RR@10) = no)." in failed.err
    stopped = tiewise(*command, "--fail-if", "not certain(tied>first, RR@10)", code=2)
    assert (
        "Write (A>B, nDCG@10) with two of 'second', 'tied'" in stopped.err or "two of 'tied', 'second'" in stopped.err
    )


def test_a_measure_of_a_condition_does_not_change_p_holm(tiewise):
    command = ("compare", "qrels.txt", "tied.trec", "second.trec", "last.trec", "-m", "RR@10", "--complete")
    alone = tiewise(*command, "--format", "json").json
    checked = tiewise(*command, "--fail-if", "p_holm(tied>last, AP) > 2", "--format", "json").json
    assert checked == alone
    both = tiewise(*command, "-m", "AP", "--format", "json").json
    assert [pair["p_holm"] for pair in both["pairs"][:3]] != [pair["p_holm"] for pair in alone["pairs"]]
    of_ap = tiewise(*command[:-2], "AP", "--complete", "--format", "json").json["pairs"]  # its own pairs alone
    wanted = next(pair["p_holm"] for pair in of_ap if {pair["a"], pair["b"]} == {"tied", "last"})
    failed = tiewise(*command, "--fail-if", "p_holm(tied>last, AP) > 0 and p(tied>last, RR@10) < 2", code=3)
    assert f"p_holm(tied>last, AP) = {wanted:.6g}" in failed.err


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
    rows = [tiewise(*command, "--test", test).rows[0] for test in ("permutation", "t", "wilcoxon")]
    assert rows[0]["p_value"] != rows[1]["p_value"] != rows[2]["p_value"]
    assert len({row["difference"] for row in rows}) == 1
    narrow = tiewise(*command, "--confidence", "0.5", "--seed", "1").rows[0]
    assert float(narrow["ci_high"]) - float(narrow["ci_low"]) <= float(rows[0]["ci_high"]) - float(rows[0]["ci_low"])


def test_report_takes_test_and_resamples(tiewise, folder):
    pytest.importorskip("vl_convert", reason="the page needs tiewise[report]")
    command = ("report", "qrels.txt", "tied.trec", "last.trec", "-m", "RR@10", "--complete", "--test", "t")
    tiewise(*command, "--resamples", "200", "-o", "page.html")
    assert (folder / "page.html").is_file()
    for reference, code in (("tied", 0), ("tied.trec", 0), ("other", 2)):  # its name or its file
        tiewise(*command, "--resamples", "200", "--reference", reference, "-o", "page.html", code=code)
    assert (
        "resamples is a whole number from 100" in tiewise(*command, "--resamples", "5", "-o", "page.html", code=2).err
    )
    runs = {name: folder / f"{name}.trec" for name in ("tied", "last")}
    compared = collect_content(
        folder / "qrels.txt", runs, "RR@10", test="wilcoxon", resamples=300, complete=True
    ).compared
    assert (compared.test, compared.resamples) == ("wilcoxon", 300)


def test_unjudged(tiewise, folder):
    command = ("compare", "qrels.txt", "second.trec", "last.trec", "-m", "P@2,AP", "--complete", "--unjudged")
    found = tiewise(*command, "--format", "json").json
    assert found["unjudged"]["second"]["P@2"]["upper"]["expected"] == pytest.approx(4 / 6)
    text = tiewise(*command, "--format", "table").out
    assert "last: P@2 lies in [.000, .667] whatever unjudged documents are worth" in " ".join(text.split())
    assert "Unjudged documents put no bounds on AP: it divides" in " ".join(text.split())
    assert "unjudged" not in tiewise(*command[:-1], "--format", "json").json
    bounded, unbounded = tiewise(*command).rows
    wanted = tw.unjudged(folder / "qrels.txt", folder / "last.trec", "P@2", complete=True)
    names = ("b_lower", "b_upper", "b_condensed")
    values = (wanted["P@2"].lower, wanted["P@2"].upper, wanted.condensed["P@2"])
    assert [float(bounded[name]) for name in names] == [one.expected for one in values]
    assert float(bounded["a_upper"]) == pytest.approx(4 / 6)
    assert {unbounded[name] for name in names} == {""}  # AP has none
    assert {row[name] for row in tiewise(*command[:-1]).rows for name in names} == {""}


def test_errors_name_the_run(tiewise, folder):
    (folder / "other.trec").write_text("q1 Q0 nothing 1 1 t\nq2 Q0 here 1 1 t\n")
    done = tiewise("compare", "qrels.txt", "tied.trec", "other.trec", *RR, code=2)
    assert "Run 'other': The run and the qrels have no document in common" in done.err
    (folder / "few.trec").write_text("q1 Q0 a 1 1 t\nq1 Q0 b 2 0 t\n")
    done = tiewise("compare", "qrels.txt", "few.trec", "tied.trec", *RR, "--missing", "error", code=2)
    assert "Run 'few': 2 judged queries are missing from the run: 'q2', 'q3'." in done.err


def test_too_many_pairs_are_an_error_before_reading(tiewise):
    nowhere = [f"nowhere{i}.trec" for i in range(201)]
    done = tiewise("compare", "qrels.txt", *nowhere, code=2)
    assert "201 systems make 20,100 pairs. Name a baseline" in done.err
    assert "no such file" in tiewise("compare", "qrels.txt", *nowhere, "--format", "table", code=2).err
    assert "no such file" in tiewise("compare", "qrels.txt", *nowhere, "--baseline", "nowhere1", code=2).err


def test_progress_counts_pairs(folder):
    runs = {name: folder / f"{name}.trec" for name in ("tied", "second", "last")}
    found = tw.compare(folder / "qrels.txt", runs, ["RR@10", "AP"], complete=True, resamples=100)
    for format in ("tsv", "json", "table"):
        steps = []
        render(
            ComparisonTables(found, progress=lambda *step, steps=steps: steps.append(step)),
            OutputOptions(format=format),
        )
        assert steps == [(done, 6) for done in range(1, 7)], format


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("tied.trec", "between two systems or more; 1 was given"),
        ("tied.trec nowhere.trec", "nowhere.trec: there is no such file"),
        ("tied.trec second.trec --baseline third", "The baseline 'third' is none of the systems: 'tied', 'second'"),
        ("tied.trec second.trec -m RBO", "compares two rankings"),
        ("tied.trec second.trec --orders both", "'both' is not one of 'independent', 'per-query', 'shared'"),
        ("tied.trec second.trec --test u", "'u' is not one of 'permutation', 't', 'wilcoxon'"),
        ("tied.trec second.trec --confidence 95", "confidence lies between 0 and 1"),
        ("tied.trec second.trec --resamples 10", "resamples is a whole number from 100"),
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
    assert tiewise("compare", "qrels.txt", "-", "second.trec", *RR, stdin=TIED).rows[0]["a"] == "stdin"
    text = terminal("compare", "qrels.txt", "tied.trec", "second.trec", "last.trec", *RR, columns=80)
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text


def test_a_measure_without_relevant_documents_is_left_out(tiewise):
    """No document has label 3: the other measures are compared, with the bounds of unjudged documents."""
    command = ("compare", "qrels.txt", "second.trec", "last.trec", "--no-relevant", "skip", "--resamples", "200")
    done = tiewise(*command, "--unjudged", "-m", "P@2 P(rel=3)@2")
    (row,) = done.rows
    assert (row["measure"], row["a_lower"], row["b_lower"]) == ("P@2", "0.5", "0.0")
    assert float(row["b_upper"]) == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    assert "There is no query to compare by P(rel=3)@2: left out." in done.err
    done = tiewise(*command, "-m", "P(rel=3)@2", code=2)
    assert "No query is left to compare by 'P(rel=3)@2'" in done.err


def test_captions_name_lists_that_may_be_cut_and_missing_queries(tiewise, folder):
    (folder / "cut.qrels").write_text("1 0 a 1\n1 0 b 1\n2 0 a 1\n")
    (folder / "one.trec").write_text("1 Q0 x 1 1 t\n1 Q0 a 2 1 t\n1 Q0 y 3 1 t\n")
    (folder / "two.trec").write_text("1 Q0 a 1 2 t\n1 Q0 b 2 1 t\n2 Q0 a 1 1 t\n")
    command = ("cut.qrels", "one.trec", "two.trec", "-m", "R@3", "--format", "latex")
    for text in (tiewise("compare", *command).out, tiewise("evaluate", *command).out):
        caption = next(line for line in text.splitlines() if line.startswith(r"\caption"))
        assert "R@3 of 2 runs over 2 queries: means over all orders of tied documents." in caption
        assert "Lists of one may have been cut inside a tie group." in caption and "*" not in caption
        assert "Missing judged queries count as 0: 1 of one." in caption
    alone = tiewise("evaluate", "cut.qrels", "two.trec", "-m", "R@3", "--format", "latex").out
    assert r"\caption{R@3 of two over 2 queries: means over all orders of tied documents.}" in alone


def test_the_page_has_the_bounds_of_all_its_measures_and_report_prints_them(tiewise, folder):
    pytest.importorskip("vl_convert")
    (folder / "cut.qrels").write_text("1 0 a 1\n1 0 b 1\n")
    (folder / "one.trec").write_text("1 Q0 x 1 1 t\n1 Q0 a 2 1 t\n1 Q0 y 3 1 t\n")
    (folder / "two.trec").write_text("1 Q0 b 1 2 t\n1 Q0 x 2 1 t\n")
    done = tiewise("report", "cut.qrels", "one.trec", "two.trec", "-m", "P@1,R@3,GMAP", "-o", "cut.html")
    assert "expected R@3 lies within .0000–1.0000 (one), so which is higher is open" in " ".join(done.err.split())
    assert "expected R@3 lies within 0.0000–1.0000 (one)" in (folder / "cut.html").read_text(encoding="utf-8")
    tiewise("report", "cut.qrels", "one.trec", "two.trec", "-m", "R@3", "-o", "first.html")
    page = (folder / "first.html").read_text(encoding="utf-8")
    assert "one, two" not in page and "equal in every tie order of the documents listed" in page


def test_who_is_first():
    """A is ahead of B and C in 20 queries; B and C are equal, so that neither is better than the other."""
    qrels = {f"q{i}": {"r": 1} for i in range(20)}
    first, second = ({q: {"x": 2.0, "r": score, "y": 1.5} for q in qrels} for score in (3.0, 1.0))
    runs = {"A": first, "B": second, "C": dict(second)}
    text = tw.compare(qrels, runs, "RR", resamples=1000, complete=True).to_markdown()
    assert "Who is first? A: ahead of all others in every order of ties, and significantly over queries." in text
    del runs["A"]
    runs["D"] = {q: {"x": 2.0, "r": 0.5, "y": 1.5} for q in qrels}
    text = tw.compare(qrels, runs, "RR", resamples=1000, complete=True).to_markdown()
    assert "Who is first? B has the highest expected value, but it is not shown to be better than C or D." in text
    text = tw.compare(qrels, runs, "RR", resamples=1000, complete=True, baseline="D").to_markdown()
    assert "Who is first?" not in text
    tied = {q: {"x": 2.0, "r": 1.0, "z": 1.0} for q in qrels}
    with pytest.warns(tw.CutWarning):
        text = tw.compare(qrels, {"A": first, "T": tied, "U": tied}, "RR", resamples=1000).to_markdown()
    assert "ahead of all others in every order of the documents listed, and significantly" in text
