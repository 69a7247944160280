"""The protocol: intervals, bounds and overlap against independent computations, tables, figures, the page, commands."""

from __future__ import annotations

import itertools
import json
import pickle
import re

import numpy as np
import pytest
from scipy import stats

import tiewise as tw
from tiewise import scoring
from tiewise.errors import CutWarning, InputError, TiewiseError
from tiewise.example import file
from tiewise.rankings.run_similarity import RunPair
from tiewise.results.wording import add_zeros

QRELS = {"q": {"a": 1, "b": 0}, "r": {"a": 1}, "s": {"c": 2, "d": 1}}
FLOAT32 = {"q": {"a": 0.51, "b": 0.5}, "r": {"a": 0.4, "b": 0.41}, "s": {"c": 0.3, "d": 0.2}}
BFLOAT16 = {"q": {"b": 0.5, "a": 0.5}, "r": {"a": 0.4, "b": 0.4}, "s": {"c": 0.2, "d": 0.2}}
RUNS = {"float32": FLOAT32, "bfloat16": BFLOAT16, "bfloat16 + hps": FLOAT32}


def measured(**options):
    return tw.protocol(QRELS, RUNS, **{"measures": "RR", "complete": True, **options})


def compared(vectors, *names, **options):
    """Rows of vectors, with float32 as the first."""
    queries, docs, qrels = vectors
    return tw.protocol(qrels, tw.rows.vectors(queries, docs, ["float32", *names]), **options)


# -- values ------------------------------------------------------------------------------------------------------------


def test_each_row_is_what_evaluate_says_in_the_order_of_the_data():
    found = measured()
    for name, run in RUNS.items():
        truth = tw.evaluate(QRELS, run, "RR", oblivious="given", complete=True)
        assert found.estimate(name) == truth["RR"] and found.row(name).tied_share == tw.Run.from_dict(run).tied_share
    assert found.oblivious == "given" and found.reference == "float32"
    assert measured(oblivious="trec_eval").estimate("bfloat16").oblivious == (
        tw.evaluate(QRELS, BFLOAT16, "RR", complete=True)["RR"].oblivious
    )


def test_tie_groups_without_the_order_of_the_data_are_read_as_trec_eval_does():
    rows = {"float32": FLOAT32, "bfloat16": tw.tie_groups(QRELS, BFLOAT16, ["docid-desc"])}
    found = tw.protocol(QRELS, rows, "RR", complete=True)
    assert found.oblivious == "trec_eval" and found.estimate("bfloat16").oblivious == pytest.approx(2 / 3)
    assert found.row("bfloat16").tied_share is found.row("bfloat16").agreement is None
    assert "obl: as trec\\_eval prints it" in found.to_markdown()
    with pytest.raises(InputError, match="Row 'bfloat16': The tie groups were counted for other qrels"):
        tw.protocol({"q": {"a": 1}}, rows, "RR")


def test_the_interval_of_one_row_is_that_of_students_t(vectors):
    found = compared(vectors, "binary")
    values = found.estimates("binary").expected - found.estimates("float32").expected
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    assert found.difference("binary")[:3] == pytest.approx((values.mean(), low, high), abs=1e-12)
    assert found.difference("binary").differs == np.count_nonzero(np.abs(values) > 1e-12)


def test_intervals_hold_for_all_rows_at_once(vectors):
    """The critical value is the 95% quantile of the largest |t| of correlated rows, as scipy draws them."""
    names = ["float32:int4", "binary", "float32@8"]
    found = compared(vectors, *names)
    each = np.stack([found.estimates(name).expected - found.estimates("float32").expected for name in names], axis=1)
    n = len(each)
    drawn = stats.multivariate_t(shape=np.corrcoef(each.T), df=n - 1, seed=5).rvs(200_000)
    critical = np.quantile(np.abs(drawn).max(axis=1), 0.95)
    for place, name in enumerate(names):
        one = found.difference(name)
        half = critical * stats.sem(each[:, place])
        assert (one.ci_high - one.ci_low) / 2 == pytest.approx(half, rel=0.01)
        assert (one.ci_high + one.ci_low) / 2 == pytest.approx(one.mean)


def test_bounds_are_those_with_one_more_query(vectors):
    found = compared(vectors, "binary", worst=2.0)
    values = found.estimates("binary").expected - found.estimates("float32").expected
    for side, bound in ((-1, found.difference("binary").lower), (1, found.difference("binary").upper)):
        more = np.append(values, side * 2.0)
        assert bound == pytest.approx(more.mean() + side * stats.t.ppf(0.95, len(values)) * stats.sem(more))
    with pytest.raises(InputError, match=r"worst=0.1 is less than what one query loses, "):
        compared(vectors, "binary", worst=0.1)


def test_overlap_is_the_mean_over_all_pairs_of_orders():
    runs = {"x": {"a": 3.0, "b": 2.0, "c": 2.0, "d": 2.0, "e": 1.0}, "y": {"b": 2.0, "e": 2.0, "a": 1.0, "f": 1.0}}
    x, y = (tw.Run.from_dict({"q": run}) for run in runs.values())

    def orders(run):
        return [
            order
            for order in itertools.permutations(run)
            if all(run[one] >= run[next_] for one, next_ in itertools.pairwise(order))
        ]

    for k in (1, 2, 3, 4, 9):
        shares = [len({*a[:k]} & {*b[:k]}) / min(k, 5) for a in orders(runs["x"]) for b in orders(runs["y"])]
        assert RunPair(x, y).overlap(k) == pytest.approx(np.mean(shares), abs=1e-12)


def test_similarity_is_that_of_the_lists_of_judged_queries():
    runs = {
        "a": {"q": {"x": 2.0, "y": 1.0}, "other": {"x": 1.0}},
        "b": {"q": {"y": 2.0, "x": 1.0}, "other": {"z": 1.0}},
    }
    found = tw.protocol({"q": {"x": 1}}, runs, "RR@1", complete=True)
    pair = {name: {"q": run["q"]} for name, run in runs.items()}
    rbo = tw.similarity(pair, "RBO(phi=0.9)", complete=True).pair("b", "a").extrapolated.expected
    assert found.row("b").agreement == (pytest.approx(rbo), pytest.approx(1 - 0.9**2), 0.0)
    assert tw.protocol(None, runs, "RR@1").row("b").agreement.rbo < rbo


def test_without_judgments_only_rankings_are_compared(vectors):
    queries, docs, _ = vectors
    found = tw.protocol(None, tw.rows.vectors(queries, docs, ["float32", "int8", "binary"]), max_loss=0.1)
    assert list(found.to_frame().columns) == ["row", "tied_share", "rbo", "rbr", "overlap", "bytes", "seconds"]
    assert found.choice is None and found.verdict("binary") is None and not found.measures
    assert found.row("float32").agreement.overlap == 1 > found.row("int8").agreement.overlap
    share = found.row("binary").agreement.overlap
    assert found.sentence == f"Without judgments: binary has {share:.1%} of the first 10 documents of float32."
    for ask in (lambda: found.estimate("binary"), found.plot.cutoffs, found.plot.loss):
        with pytest.raises(InputError, match="give qrels"):
            ask()


def test_a_missing_query_counts_as_zero_or_is_left_out():
    rows = {"float32": FLOAT32, "bfloat16": {name: BFLOAT16[name] for name in ("q", "r")}}
    zero, skip = (tw.protocol(QRELS, rows, "RR", complete=True, missing=one) for one in ("zero", "skip"))
    assert zero.difference("bfloat16").mean == pytest.approx((-0.25 + 0.25 - 1) / 3)
    assert skip.difference("bfloat16").mean == pytest.approx(0) and len(skip.estimates("float32")) == 2


def test_rows_without_a_common_query():
    apart = {"a": {"q": {"a": 1.0}}, "b": {"r": {"a": 1.0}}}
    found = tw.protocol(QRELS, apart, "RR", complete=True)
    assert found.row("b").agreement is None and found.difference("b").mean == 0
    with pytest.raises(InputError, match="No query is left for RR: the rows have none in common"):
        tw.protocol(QRELS, apart, "RR", complete=True, missing="skip")
    with pytest.raises(InputError, match="Row 'b': It has no query in common with the reference 'a'"):
        tw.protocol(None, apart)
    with pytest.raises(InputError, match="Row 'a': Tie groups hold counts"):
        tw.protocol(QRELS, {"a": tw.tie_groups(QRELS, FLOAT32)}, drop_self=True)
    with pytest.raises(InputError, match="Row 'a': Tie groups hold no documents to compare"):
        tw.protocol(None, {"a": tw.tie_groups(QRELS, FLOAT32)})


def test_one_query_and_one_row():
    alone = tw.protocol({"q": {"a": 1}}, RUNS, "RR", complete=True, max_loss=0.1)
    assert alone.difference("bfloat16")[:3] == (-0.25, None, None) and alone.verdict("bfloat16") == "unknown"
    single = tw.protocol(QRELS, {"float32": FLOAT32}, "RR", complete=True, oblivious=None)
    assert single.to_markdown().splitlines()[2] == "| row | tied | E | range |"


def test_lists_that_may_have_been_cut():
    cut = {str(q): {str(d): float(d // 2) for d in range(6)} for q in range(20)}
    qrels = {str(q): {"0": 1, "9": 1} for q in range(20)}
    with pytest.warns(CutWarning, match="may have been cut inside a tie group"):
        found = tw.protocol(qrels, {"a": cut}, "R@6")
    assert "may have been cut" in found.notes[0]


# -- verdicts ----------------------------------------------------------------------------------------------------------


def test_verdicts_and_what_to_choose(vectors):
    found = compared(vectors, "float16", "float32:int8", "binary", max_loss=0.12)
    assert {name: found.verdict(name) for name in found.rows} == {
        "float32": "reference",
        "float16": "keeps",
        "float32:int8": "keeps",
        "binary": "unknown",
    }
    assert found.choice == "float32:int8"
    bound = f"−{-100 * found.difference('float32:int8').lower:.2f}"
    assert found.sentence.endswith(
        "Choose float32:int8: 25 bytes a vector instead of 96. It loses less than 12 points of nDCG@10, if "
        f"any (95% bound for all rows, one more query lost: {bound})."
    )
    sure = compared(vectors, "binary", max_loss=0.001)
    assert sure.verdict("binary") == "loses" and sure.choice is None
    assert sure.sentence.endswith("Stay with float32: every other row loses more than .1 points of nDCG@10.")
    few = compared(vectors, "float16", max_loss=0.01)
    assert few.verdict("float16") == "unknown" and few.difference("float16").differs == 0
    assert few.sentence == ("30 queries cannot show that a loss is below 1 point of nDCG@10; at least 265 could.")
    assert compared(vectors, "binary", max_loss=0.18).sentence.endswith(
        "30 queries do not show that binary loses less than 18 points of nDCG@10. Stay with float32."
    )
    assert compared(vectors, "binary").choice is None


def test_a_choice_that_also_reads_full_vectors_says_so(vectors):
    sentence = compared(vectors, "binary+20", max_loss=0.5).sentence
    assert "Choose binary+20: 3 bytes a vector instead of 96 (also reads full vectors, 96 bytes each). It" in sentence


def test_only_smaller_vectors_are_chosen(vectors):
    same = compared(vectors, "float32/bfloat16", max_loss=0.5)
    assert not same.difference("float32/bfloat16").differs and same.choice is None
    assert same.sentence.endswith("Stay with float32: no row has smaller vectors.")


def test_a_row_that_keeps_without_smaller_vectors_is_named(vectors):
    """A verdict of the table is never denied by the sentence."""
    found = compared(vectors, "float32/float16", "binary", max_loss=0.18)
    assert [found.verdict(name) for name in found.rows] == ["reference", "keeps", "unknown"] and found.choice is None
    assert found.sentence.endswith(
        "float32/float16 keeps the quality, but not in fewer bytes. 30 queries do not show that binary loses less than "
        "18 points of nDCG@10. Stay with float32."
    )
    rng = np.random.default_rng(0)
    many = {str(q): {"a": 1} for q in range(400)}
    good = {query: {"a": 2.0, "b": 1.0} for query in many}
    bad = {query: {"a": 1.0, "b": 2.0} if rng.random() < 0.5 else docs for query, docs in good.items()}
    rows = {"whole": tw.Row(good, bytes=4), "same": tw.Row(good, bytes=4), "small": tw.Row(bad, bytes=1)}
    assert tw.protocol(many, rows, "RR", complete=True, max_loss=0.01).sentence == (
        "same keeps the quality, but not in fewer bytes. Stay with whole: every row with smaller vectors loses more "
        "than 1 point of RR."
    )


def test_a_row_that_gains_loses_nothing_in_the_sentence():
    many = {str(q): {"a": 1} for q in range(400)}
    good = {query: {"a": 2.0, "b": 1.0} for query in many}
    rows = {"first": tw.Row(good, bytes=2), "same": tw.Row(good, bytes=1)}
    found = tw.protocol(many, rows, "RR", complete=True, max_loss=0.01)
    bound = "95% bound for all rows, one more query lost: −"
    assert f"instead of 2. It loses less than 1 point of RR, if any ({bound}" in found.sentence


def test_of_equally_small_vectors_those_with_the_highest_lower_bound_are_chosen():
    queries, docs = (np.load(file(name)) for name in ("queries.npz", "docs.npz"))
    names = ["float32", "bfloat16/bfloat16", "float16"]
    ids = {"query_ids": queries["query_ids"], "doc_ids": docs["doc_ids"]}
    rows = tw.rows.vectors(queries["queries"], docs["docs"], names, **ids)
    found = tw.protocol(file("qrels.txt"), rows, max_loss=0.12)
    rounded, half = map(found.difference, names[1:])
    assert rounded.mean > half.mean == 0 and found.verdict("bfloat16/bfloat16") == "keeps"
    assert rounded.lower < half.lower and found.choice == "float16"


def test_of_runs_without_bytes_none_is_chosen():
    """The sentence names those that keep the quality, those that may, and those that do not."""
    many = {str(q): {"a": 1} for q in range(400)}
    good, swapped = {query: {"a": 2.0, "b": 1.0} for query in many}, {"a": 1.0, "b": 2.0}
    rows = {
        "first": good,
        "same": good,
        "worse": {**good, "0": swapped},
        "open": {query: swapped if int(query) % 20 == 0 else docs for query, docs in good.items()},
        "bad": {query: swapped if int(query) % 2 else docs for query, docs in good.items()},
    }

    def sentence(*names):
        found = tw.protocol(many, {name: rows[name] for name in names}, "RR", complete=True, max_loss=0.03)
        assert found.choice is None and "chosen" not in found.to_markdown()
        return found.sentence

    assert sentence(*rows) == (
        "same and worse lose less than 3 points of RR (95% bounds for all rows); 400 queries do not show that open "
        "loses less; bad loses more."
    )
    assert sentence("first", "bad", "open") == (
        "400 queries do not show that open loses less than 3 points of RR; bad loses more."
    )
    assert sentence("first", "bad") == "bad loses more than 3 points of RR."


# -- what is shown -----------------------------------------------------------------------------------------------------


def test_equal_notes_of_rows_are_one():
    """Rows in which an order is far from random, by other numbers of standard deviations."""
    qrels = {str(q): {"a": 1} for q in range(50)}
    rows = {f"{n} tied": {query: dict.fromkeys("abcde"[:n], 1.0) | {"z": 0.5} for query in qrels} for n in (3, 5)}
    (note,) = tw.protocol(qrels, rows, "RR", complete=True).notes
    assert note == (
        "3 tied, 5 tied: In the order of the data relevant documents stand higher among documents of the same score "
        "than in a random order, by more than 4 standard deviations of RR; whatever the distribution, at most one "
        "random order in 17 is so high. Check whether the order depends on the labels: candidates may have been listed "
        "so, or ids may go with their sources."
    )


def test_a_page_does_not_ask_whether_equal_rows_of_its_protocol_are_one_run(folder):
    pytest.importorskip("jinja2")
    runs, asked = dict.fromkeys(["bfloat16", "bfloat16 + hps"], FLOAT32), "is it one run, given more than once?"
    for protocol, note in ((None, True), (measured(), False), (tw.protocol(QRELS, {"other": FLOAT32}), True)):
        tw.write_page(QRELS, runs, folder / "page.html", "RR", protocol=protocol)
        assert (asked in (folder / "page.html").read_text(encoding="utf-8")) == note


def test_the_table_and_its_sentence():
    lines = measured().to_markdown().splitlines()
    assert lines[0] == "RR ×100 · 3 queries · obl: the order of the data · reference float32:"
    assert lines[2] == "| row | tied | obl | E | range | bias | to float32 ±95% | differ |"
    assert lines[4:7] == [
        "| float32 | 0% | 83.33 | 83.33 | 0 | 0 |  |  |",
        "| bfloat16 | 100% | 83.33 | 83.33 | 33.33 | 0 | 0 ±62.84 | 2 |",
        "| bfloat16 + hps | 0% | 83.33 | 83.33 | 0 | 0 | 0 | 0 |",
    ]
    biased = {**RUNS, "bfloat16": {**BFLOAT16, "q": {"a": 0.5, "b": 0.5}}}
    found = tw.protocol(QRELS, biased, "RR", complete=True)
    assert found.sentence == (
        "Largest effect of ties: bfloat16 has 100.00 in the order of the data (above float32), 83.33 expected. "
        "bfloat16 + hps: no ties left."
    )
    by_id = tw.protocol(QRELS, biased, "RR", complete=True, oblivious="trec_eval")
    assert by_id.sentence.startswith("Largest effect of ties: bfloat16 has 66.67 in trec_eval, 83.33 expected.")
    wide = found.in_fractions().to_markdown(wide=True)
    assert "| std | CV | to float32 ±95% | differ | bounds | RBO | overlap@10 |" in wide and "×100" not in wide


def test_there_is_a_sentence_without_bias_levels_and_largest_loss():
    rows = {"a": FLOAT32, "b": FLOAT32}
    assert tw.protocol(QRELS, rows, "RR", complete=True).sentence == (
        "No order of ties changes a digit shown, and every row has the values of a."
    )
    changed = {**rows, "c": {**FLOAT32, "r": {"a": 1.0, "b": 0.5}}}
    found = tw.protocol(QRELS, changed, "RR", complete=True)
    assert found.sentence == "No order of ties changes a digit shown; c is the farthest from a: +16.67 ±71.71."
    assert found.to_text().rstrip().endswith("±71.71.\nFor a choice add max_loss=0.01.")
    assert "For a choice" not in found.to_markdown()
    assert "For a choice" not in tw.protocol(QRELS, changed, "RR", complete=True, max_loss=0.1).to_text()
    tied = tw.protocol(QRELS, {"a": FLOAT32, "b": BFLOAT16}, "RR", complete=True)
    assert tied.sentence == "Ties change b by up to 33.33; b is the farthest from a: 0 ±62.10."
    alone = tw.protocol(QRELS, {"a": FLOAT32}, "RR", complete=True)
    assert alone.sentence == "No order of ties changes a digit shown." and "For a choice" not in alone.to_text()


def test_a_range_that_the_reference_has_too_is_told():
    tied = {**FLOAT32, "s": {"c": 0.3, "d": 0.3}}
    qrels = {**QRELS, "s": {"c": 1}}
    found = tw.protocol(qrels, {"float32": tied, "bf16": BFLOAT16, "bf16 + hps": tied}, "RR", complete=True)
    assert found.sentence.endswith("bf16 + hps: range 50.00 → 16.67 (float32: 16.67).")


def test_rbr_of_the_reference_is_that_of_its_length(vectors):
    """It is no rounding error: what follows k documents is not seen."""
    queries, docs, qrels = vectors
    found = tw.protocol(qrels, tw.rows.vectors(queries, docs, ["float32", "int8"], depth=20), depth=20)
    assert found.row("float32").agreement == (pytest.approx(1), pytest.approx(1 - 0.9**20), 1)
    assert "RBR of k documents is at most 1 − φᵏ" in found.to_markdown(wide=True)


def test_records_have_the_documented_columns(vectors):
    found = compared(vectors, "int8", measures=["nDCG@10", "RR"], max_loss=0.1)
    frame = found.to_frame()
    assert " ".join(frame.columns) == (
        "row measure expected minimum maximum range std oblivious bias tied_share difference ci_low ci_high lower "
        "upper differs verdict rbo rbr overlap bytes seconds"
    )
    assert list(frame["row"]) == ["float32", "int8"] * 2 and list(frame["measure"]) == ["nDCG@10"] * 2 + ["RR"] * 2
    assert list(frame["verdict"])[:2] == ["reference", "keeps"]
    assert found.to_dict()["rows"][1]["lower"] == found.difference("int8").lower
    assert found.to_dict()["schema"] == "tiewise/protocol/1"
    assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()


def _columns_of_latex(text):
    """The kinds of columns of the first table, without what siunitx is told about them."""
    return re.sub(r"\[[^\]]*\]", "", re.search(r"\\begin\{tabular\}\{(.*)\}", text)[1])


def test_the_table_of_a_paper(vectors):
    found = measured()
    text = tw.Protocol.latex_of({"MiniLM_6": found, "other": measured()})
    assert r"{float32} & \multicolumn{4}{c}{bfloat16} & \multicolumn{4}{c}{+ HPS} \\" in text
    assert r"\cmidrule(lr){2-2}\cmidrule(lr){3-6}\cmidrule(lr){7-10}" in text
    assert r"MiniLM\_6 & 83.33 & 83.33 & 83.33 & 33.33 & 0 & 83.33 & 83.33 & 0 & 0 \\" in text
    columns = _columns_of_latex(text)
    lines = [line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {line.count("&") + 1 for line in lines} == {len(columns)}
    assert tw.Protocol.latex_of({"MiniLM": found}).count("MiniLM") == 1
    many = compared(vectors, "float16", "int8", "int4", "binary", "float8")
    named = tw.Protocol.latex_of({"MiniLM": many})
    assert (_columns_of_latex(many.to_latex()), _columns_of_latex(named)) == ("lSSSS", "llSSSS")
    assert "$\\times$100" in many.to_latex() and "times" not in many.in_fractions().to_latex()
    assert _columns_of_latex(found.to_latex()) == "SSSSSSSSS" and "model" not in found.to_latex()
    alone = tw.Protocol.latex_of({"MiniLM": measured(oblivious=None)})
    assert r"MiniLM & 83.33 & 83.33 & 33.33 & 83.33 & 0 \\" in alone and "obl" not in alone and "bias" not in alone
    with pytest.raises(InputError, match="differ in measure"):
        tw.Protocol.latex_of({"a": found, "b": measured(measures="AP")})


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ({}, {}, "Give the rows as"),
        ([FLOAT32], {}, "Give the rows as"),
        (RUNS, {"reference": "fp32"}, "The reference 'fp32' is not one of the rows"),
        (RUNS, {"max_loss": 0}, "max_loss=0 is not possible"),
        (RUNS, {"max_loss": "1%"}, "max_loss='1%' is not possible. Give a number above 0; one point is 0.01."),
        (RUNS, {"max_loss": 1}, "max_loss=1 is all that nDCG@10 can lose. Give a fraction: 0.01 is one point."),
        (tw.rows.vectors(np.eye(3), np.eye(3), ["binary"]), {"oblivious": "rank"}, "no rank column"),
        (RUNS, {"worst": float("nan")}, "worst=nan is not possible"),
        (RUNS, {"measures": "NumRelRet"}, "NumRelRet is not a mean over queries"),
        (RUNS, {"measures": "GMAP"}, "GMAP is not a mean over queries"),
        (RUNS, {"measures": []}, "No measure was asked for"),
        ({"a": 3}, {}, "Row 'a': "),
    ],
)
def test_invalid_options(rows, options, message):
    with pytest.raises(TiewiseError, match=message):
        tw.protocol(QRELS, rows, **options)
    with pytest.raises(InputError, match="There is no row 'x'"):
        measured().estimate("x")
    with pytest.raises(InputError, match="AP was not measured"):
        measured().estimate("float32", "AP")


# -- figures and the page ----------------------------------------------------------------------------------------------


def test_the_figure_of_losses_shows_the_bounds(vectors):
    pytest.importorskip("altair")
    found = compared(vectors, "float16", "bfloat16", "binary", max_loss=0.01)
    spec = found.plot.loss().to_dict()
    points = {row["name"]: row for data in spec["datasets"].values() for row in data if "name" in row}
    for name in found.rows:
        one, point = found.difference(name), points[name]
        assert (point["difference"], point["lower"], point["upper"]) == (one.mean, one.lower, one.upper)
        assert point["bytes"] == found.row(name).bytes
    assert points["binary"]["kind"] == "loses" and points["float32"]["kind"] == "reference"
    assert 48 / 1.15 < points["float16"]["place"] < points["bfloat16"]["place"] < 48 * 1.15  # side by side
    assert {"at": -0.01} in [row for data in spec["datasets"].values() for row in data]
    assert tw.figures.losses(found.to_dict()).to_dict() == spec
    with pytest.raises(InputError, match="only the reference"):
        compared(vectors).plot.loss()


def test_the_figure_of_cutoffs_shows_every_row(vectors):
    pytest.importorskip("altair")
    found = compared(vectors, "binary", measures="RR@10")
    spec = found.plot.cutoffs([1, 5]).to_dict()
    points = {(row["system"], row["cutoff"]): row for data in spec["datasets"].values() for row in data}
    truth = tw.protocol(vectors[2], {"binary": tw.rows.vectors(*vectors[:2], ["binary"])["binary"]}, "RR@5")
    assert points["binary", 5]["expected"] == truth.estimate("binary").expected and len(points) == 4
    assert " ".join(spec["title"]["subtitle"]).endswith("Crosses: the order of the data.")


def test_a_section_of_the_page(tiewise, vectors, folder):
    pytest.importorskip("altair")
    pytest.importorskip("jinja2")
    queries, docs, qrels = vectors
    np.savez(folder / "v.npz", queries=queries, docs=docs)
    tw.write_qrels(qrels, folder / "q.txt")
    run = scoring.search(queries, docs, 20)
    tw.write_run(run, folder / "run.trec")
    command = ("protocol", "vectors", "q.txt", "v.npz", "v.npz", "--row", "float32", "--row", "binary")
    tiewise(*command, "--max-loss", "0.05", "-o", "p.json", "--figure", "loss.svg")
    assert "<svg" in (folder / "loss.svg").read_text(encoding="utf-8")
    page = ("report", "q.txt", "run.trec", "-m", "RR", "-o", "page.html", "--protocol")
    tiewise(*page, "p.json")
    text = (folder / "page.html").read_text(encoding="utf-8")
    found = compared(vectors, "binary", max_loss=0.05)
    assert "Which precision can I afford?" in text and add_zeros(found.to_dict()["sentence"]) in text
    assert "<em>obl</em>: in the order of the data;" in text
    assert "<em>bounds</em>: 95% on each side" in text and '<span class="badge bad">loses</span>' not in text
    same = compared(vectors, "float16", max_loss=0.05)
    tw.write_page(qrels, {"run": run}, folder / "same.html", "RR", protocol=same)
    text = (folder / "same.html").read_text(encoding="utf-8")
    assert 'class="badge plain-tone">unknown</span>' in text
    tw.write_page(qrels, {"run": run}, folder / "runs.html", "RR", protocol=tw.protocol(QRELS, RUNS, complete=True))
    assert "bfloat16 + hps" in (folder / "runs.html").read_text(encoding="utf-8")
    for content, message in (
        ("[]", "p.json: is not a protocol: it has no list 'rows'"),
        ('{"rows": [{}, {}]}', "row 0 has no text 'row'"),
        ("{", "p.json: is not JSON"),
    ):
        (folder / "p.json").write_text(content)
        (folder / "page.html").unlink(missing_ok=True)
        assert message in tiewise(*page, "p.json", code=2).err
        assert not (folder / "page.html").exists()
    assert "there is no such file" in tiewise(*page, "nothing.json", code=2).err
    with pytest.raises(InputError, match="must be a result of"):
        tw.write_page(qrels, {"run": run}, folder / "other.html", "RR", protocol=3)


# -- commands ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    tw.write_qrels(QRELS, tmp_path / "qrels.txt")
    for name, run in (("fp32", FLOAT32), ("bf16", BFLOAT16)):
        tw.write_run(tw.Run.from_dict(run), tmp_path / f"{name}.trec")
    return tmp_path


def test_runs(tiewise, folder):
    command = ("protocol", "runs", "qrels.txt", "bf16.trec", "fp32.trec", "-m", "RR", "--complete")
    document = json.loads(tiewise(*command, "--reference", "fp32", "--format", "json").out)
    found = tw.protocol(QRELS, {"bf16": BFLOAT16, "fp32": FLOAT32}, "RR", reference="fp32", complete=True)
    assert document == found.to_dict()
    assert json.loads(tiewise(*command, "--reference", "fp32.trec", "--format", "json").out) == document
    table = tiewise(*command, "--format", "table").out
    assert "to bf16 ±95%" in table and "83.33" in table
    assert ".8333" in tiewise(*command, "--format", "table", "--fractions", "--wide").out
    assert " obl " not in tiewise(*command, "--format", "table", "--oblivious", "none").out
    named = tiewise(*command, "--name", "x", "--name", "y", "--format", "latex", "-o", "t.tex")
    assert not named.out and r"\multicolumn{4}{c}{y}" in (folder / "t.tex").read_text()
    assert "--worst 0.1 is less than" in tiewise(*command, "--worst", "0.1", code=2).err
    assert "--max-loss -1.0 is not possible" in tiewise(*command, "--max-loss", "-1", code=2).err
    assert "--max-loss 1.0 is all that RR can lose" in tiewise(*command, "--max-loss", "1", code=2).err
    assert "'1%' is not a number. Write 0.01 for one point." in tiewise(*command, "--max-loss", "1%", code=2).err
    assert tiewise(*command[:5], "-m", "DCG@10", "--max-loss", "1").out  # its values go beyond 1
    assert tiewise(*command).out.endswith("\nFor a choice add --max-loss 0.01.\n")
    similar = tiewise("protocol", "runs", "none", "fp32.trec", "bf16.trec", "--format", "table").out
    assert similar.startswith("similarity to fp32 · no judgments") and "overlap@10" in similar


def test_vectors(tiewise, vectors, folder):
    queries, docs, qrels = vectors
    np.savez(folder / "v.npz", queries=queries, docs=docs)
    tw.write_qrels(qrels, folder / "q.txt")
    command = ("protocol", "vectors", "q.txt", "v.npz", "v.npz")
    rows = ("--row", "float32", "--row", "float16", "--row", "binary")
    document = json.loads(tiewise(*command, *rows, "--max-loss", "0.12", "--format", "json").out)
    found = compared(vectors, "float16", "binary", max_loss=0.12)
    assert document["choice"] == "float16" == found.choice and document["rows"] == found.to_dict()["rows"]
    assert "float16*" in tiewise(*command, *rows, "--max-loss", "0.12", "--format", "table").out
    half = tiewise(*command, "--row", "float32", "--row", "h>float32", "--encoder", "h=v.npz,v.npz", "--repeats", "1")
    assert [row["row"] for row in half.rows] == ["float32", "h>float32"] and float(half.rows[0]["seconds"]) > 0
    short = tiewise(
        *command, "--row", "fp32", "--row", "fp32/bf16", "--row", "bf16>fp32", "--encoder", "bf16=v.npz,v.npz"
    )
    assert [row["row"] for row in short.rows] == ["float32", "float32/bfloat16", "bf16>float32"]
    same = tiewise(*command, *rows, "--reference", "fp16", "--format", "json")
    assert json.loads(same.out)["reference"] == "float16"
    assert "write NAME=QUERIES,DOCS" in tiewise(*command, "--encoder", "h", code=2).err
    np.savez(folder / "other.npz", a=queries, b=docs)
    wrong = tiewise("protocol", "vectors", "q.txt", "q.txt", "v.npz", code=2).err
    assert "Give a file that ends in .npy, .npz, .safetensors, .parquet" in wrong
    assert "has no array called 'docs'" in tiewise("protocol", "vectors", "q.txt", "v.npz", "other.npz", code=2).err


def test_made_up_ids_are_told(tiewise, vectors, folder):
    queries, docs, qrels = vectors
    np.savez(folder / "v.npz", queries=queries, docs=docs)
    tw.write_qrels(qrels, folder / "q.txt")
    command = ("protocol", "vectors", "q.txt", "v.npz", "v.npz", "--row", "float32")
    told = "The queries and documents are numbered 0, 1, 2 ... Name them with --query-ids and --doc-ids, or in arrays"
    assert told in " ".join(tiewise(*command).out.split())
    (folder / "ids.txt").write_text("".join(f"{i}\n" for i in range(len(docs))))
    told = "The queries are numbered 0, 1, 2 ... Name them with --query-ids, or in an array query_ids."
    assert told in " ".join(tiewise(*command, "--doc-ids", "ids.txt").out.split())


def test_a_figure_that_cannot_be_written(tiewise, vectors, folder):
    pytest.importorskip("altair")
    np.savez(folder / "v.npz", queries=vectors[0], docs=vectors[1])
    bad = tiewise("protocol", "vectors", "none", "v.npz", "v.npz", "--figure", "x.gif", "-o", "out.json", code=2)
    assert "cannot be saved as '.gif'" in bad.err and not (folder / "out.json").exists()


def test_logits(tiewise, folder):
    query, doc = np.repeat(["q", "r"], 3), np.tile(["a", "b", "c"], 2)
    logits, exact = np.float16([8.0, 8.25, 1.0, 2.0, 1.0, 3.0]), np.float32([8.0, 8.25, 1.0, 2.0, 1.0, 3.0])
    np.savez(folder / "pairs.npz", query=query, doc=doc, logits=logits, model=exact)
    command = ("protocol", "logits", "qrels.txt", "pairs.npz", "--array", "reference=model", "--missing", "skip")
    document = json.loads(tiewise(*command, "--format", "json").out)
    rows = tw.rows.logits(query, doc, logits=logits, reference=exact)
    assert document["rows"] == tw.protocol(QRELS, rows, missing="skip").to_dict()["rows"]
    assert [row["row"] for row in document["rows"]] == ["float32", "float16", "float16 + hps", "float16 + logit"]
    some = tiewise(*command, "--level", "native", "--level", "score").rows
    assert [row["row"] for row in some] == ["float32", "float16", "float16 + hps"]
    one = tiewise(*command, "--positive", "1", code=2)
    assert "positive (--positive) is 1: it chooses among several logits, but there is one a pair." in one.err
    bad = tiewise(*command, "--array", "logits=nothing", "-o", "out.json", code=2)
    assert "There is no array 'nothing'" in bad.err and not (folder / "out.json").exists()
    np.savez(folder / "other.npz", logits=np.ones(2), query=np.array(["q", "q"]))
    assert "There is no array 'doc'" in tiewise("protocol", "logits", "qrels.txt", "other.npz", code=2).err


def test_help_without_a_command(tiewise):
    assert "runs     Compare runs" in tiewise("protocol", code=2).out
    assert "No such command 'run'" in tiewise("protocol", "run", code=2).err


# -- what a review found ------------------------------------------------------------------------------------------


def test_lists_that_may_be_cut_leave_the_verdict_open():
    """Documents tied with the last one listed may be missing: with them the row loses more than is allowed."""
    qrels = {f"q{i}": {f"d{j}": 1 for j in range(5)} for i in range(300)}
    whole = {query: {f"d{j}": 10.0 - j for j in range(10)} for query in qrels}
    tied = {query: {f"d{j}": 10.0 - j if j < 3 else 1.0 for j in range(10)} for query in qrels}
    with pytest.warns(tw.CutWarning):
        found = tw.protocol(qrels, {"a": whole, "b": tied}, max_loss=0.2)
    assert found.verdict("b") == "unknown" and found.choice is None and "°" in found.to_markdown()
    complete = tw.protocol(qrels, {"a": whole, "b": tied}, max_loss=0.2, complete=True)
    assert complete.verdict("b") == "keeps"


def test_a_row_of_unknown_size_is_not_chosen_over_known_ones():
    qrels, run = {f"q{i}": {"a": 1} for i in range(400)}, {f"q{i}": {"a": 2.0, "b": 1.0} for i in range(400)}
    rows = {"float32": tw.Row(run, bytes=1536), "int8": tw.Row(run, bytes=384), "bm25": run}
    assert tw.protocol(qrels, rows, max_loss=0.05, complete=True).choice == "int8"


def test_ties_that_are_not_known_are_not_called_none():
    qrels = {"q": {"a": 1, "c": 1}, "r": {"a": 1}}
    base = {"q": {"a": 1.0, "b": 1.0, "c": 1.0}, "r": {"a": 1.0}}
    finer = {"q": {"a": 3.0, "c": 2.0, "b": 1.0, "d": 0.5, "e": 0.5}, "r": {"a": 1.0}}
    groups = tw.tie_groups(qrels, finer)
    for row in (finer, groups):
        assert "no tie matters" in tw.protocol(qrels, {"x": base, "x + hps": row}, "RR", complete=True).sentence


def test_queries_that_a_row_lacks_are_told_without_judgments():
    whole = {f"q{i}": {"a": 2.0, "b": 1.0} for i in range(100)}
    found = tw.protocol(None, {"ref": whole, "x": {"q0": whole["q0"]}})
    assert any("99 of 100 queries are missing" in note for note in found.notes)


def test_skipped_queries_count_in_no_column():
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    both = {"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 3.0, "b": 2.0, "c": 1.0}}
    found = tw.protocol(qrels, {"x": both, "y": {"q1": both["q1"]}}, "RR", missing="skip", complete=True)
    x, y = (found.row(name) for name in found.rows)
    assert x.tied_share == y.tied_share == 1.0 and x.agreement == y.agreement


def test_measures_below_0_have_bounds():
    qrels = {f"q{i}": {f"d{j}": j % 2 for j in range(6)} for i in range(5)}
    rows = {
        "a": {q: {"d1": 2.0, "d3": 1.0} for q in qrels},
        "b": {q: {f"d{j}": 6.0 - j for j in range(6)} for q in qrels},
    }
    found = tw.protocol(qrels, rows, "Utility", complete=True)
    assert found.difference("b").lower <= found.difference("b").mean and "Utility" in found.to_markdown(wide=True)


def test_the_legend_names_what_each_measure_can_lose():
    qrels, run = {"q": {f"d{j}": 1 for j in range(6)}}, {"q": {f"d{j}": 6.0 - j for j in range(6)}}
    text = tw.protocol(qrels, {"a": run, "b": run}, ["nDCG@10", "Hits@10"], complete=True).to_markdown(wide=True)
    assert "loses or gains 1 or 6" in text


@pytest.mark.parametrize(
    ("row", "match"),
    [({"bytes": "x"}, "bytes='x'"), ({"bytes": -5}, "bytes=-5"), ({"seconds": float("nan")}, "seconds=nan")],
)
def test_costs_are_numbers(row, match):
    with pytest.raises(InputError, match=match):
        tw.Row({}, **row)


def test_rows_have_names():
    with pytest.raises(InputError, match="empty name"):
        tw.protocol(QRELS, {"": FLOAT32})
    with pytest.raises(InputError, match="max_loss=True"):
        tw.protocol(QRELS, {"a": FLOAT32}, max_loss=True)
