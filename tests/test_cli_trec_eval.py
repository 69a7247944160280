"""``tiewise trec_eval``: the lines of trec_eval 10 against pytrec_eval and the oracle, and all orders of ties."""

from __future__ import annotations

import gzip
import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import tiewise as tw
from cases import cases
from tiewise.analysis.trec_lists import TrecLists
from tiewise.io import as_source
from tiewise.metrics.trec_eval_names import NAMES, NICKNAMES

Table = dict[str, dict[str, float]]


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def draw(seed: int) -> tuple[Table, Table]:
    """Judgments and a run with ties, unjudged documents and labels below 0; every judged query is in the run."""
    rng = random.Random(seed)
    docs = [f"d{i}" for i in range(30)]
    qrels, run = {}, {}
    for query in ("10", "9", "q", "Q", "ä"):
        judged = rng.sample(docs, rng.randint(1, 20))
        qrels[query] = {doc: rng.choice([-1, 0, 0, 1, 1, 2, 3]) for doc in judged} | {"none": 0}
        run[query] = {doc: rng.randrange(8) / 4 for doc in rng.sample(docs, rng.randint(1, 30))}
    run["unjudged"] = {"d1": 1.0}
    return qrels, run


def write(folder: Path, qrels: Table, run: Table) -> tuple[str, str]:
    lines = [f"{q} Q0 {doc} 1 {score} tag" for q, docs in run.items() for doc, score in docs.items()]
    random.Random(0).shuffle(lines)  # queries are not contiguous
    (folder / "run").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    judged = "".join(f"{q} 0 {doc} {label:g}\n" for q, docs in qrels.items() for doc, label in docs.items())
    (folder / "qrels").write_text(judged, encoding="utf-8")
    return str(folder / "qrels"), str(folder / "run")


def ranked(qrels: dict[str, float], run: dict[str, float], depth: int | None, judged_only: bool) -> tuple[list, list]:
    """The labels of a list as trec_eval orders it, and the labels of the other judged documents."""
    docs = sorted(run, key=lambda doc: (run[doc], doc.encode()), reverse=True)[:depth]
    if judged_only:
        docs = [doc for doc in docs if qrels.get(doc, -1) >= 0]
    return [qrels.get(doc) for doc in docs], [label for doc, label in qrels.items() if doc not in docs]


def value(measure: tw.Measure, labels: list, rest: list) -> float:
    params = {name: getattr(measure, name) for name in measure.params}
    return oracle.value(measure.stem, labels, rest, measure.cutoff, **params)


def line(name: str, query: str, number: float | str, measure: tw.Measure | None = None) -> str:
    if isinstance(number, float):
        number = str(int(number)) if measure is not None and measure.total else f"{number:6.4f}"
    return f"{name:<22s}\t{query}\t{number}"


def expected_lines(
    qrels: Table, run: Table, names: list[str], *, rel: int, depth: int | None, judged_only: bool
) -> list[str]:
    """What trec_eval prints, by the oracle."""
    queries = sorted(qrels, key=str.encode)
    lists = {q: ranked(qrels[q], run[q], depth, judged_only) for q in queries}
    chosen = [pair for name in NAMES if name in names for pair in expand(name, rel)]
    per_query: dict[str, list[str]] = {query: [] for query in queries}
    summary = []
    for name, printed, measure in chosen:
        if name == "runid":
            summary.append(line(name, "all", "tag"))
        elif name == "relstring":
            for query in queries:
                per_query[query].append(line(name, query, relevance_string(lists[query][0][:10])))
        else:
            values = [value(measure, *lists[query]) for query in queries]
            total = math.fsum(map(math.log, values) if name.startswith("gm_") else values)
            mean = math.exp(total / len(values)) if name.startswith("gm_") else total / len(values)
            summary.append(line(printed, "all", float(total) if measure.total else mean, measure))
            if name not in ("num_q", "gm_map", "gm_bpref"):
                for query, number in zip(queries, values, strict=True):
                    per_query[query].append(line(printed, query, float(number), measure))
    return [*(one for query in queries for one in per_query[query]), *summary]


def expand(name: str, rel: int) -> list[tuple[str, str, tw.Measure | None]]:
    return [(name, printed, measure) for printed, measure in NAMES[name].expand(name, None, rel=rel)]


def relevance_string(labels: list) -> str:
    return f"'{''.join('-' if x is None else '.' if x < 0 else str(int(x)) for x in labels)}'"


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {}),
        (["-l", "2"], {"rel": 2}),
        (["-l0"], {"rel": 0}),
        (["-M", "6"], {"depth": 6}),
        (["-J"], {"judged_only": True}),
        (["-J", "-M7"], {"judged_only": True, "depth": 7}),
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(3))
def test_all_lines_equal_those_of_the_oracle(seed, arguments, options, tiewise, tmp_path):
    qrels, run = draw(seed)
    files = write(tmp_path, qrels, run)
    found = tiewise("trec_eval", "-q", "-m", "all_trec", "-m", "yaap", *arguments, *files).out.splitlines()
    names = [*NICKNAMES["all_trec"], "yaap"]
    want = expected_lines(qrels, run, names, **{"rel": 1, "depth": None, "judged_only": False} | options)
    empty = options.get("judged_only") and any(
        not ranked(qrels[q], run[q], options.get("depth"), True)[0] for q in qrels
    )
    for ours, theirs in zip(found, want, strict=True):
        undefined = empty and ours.startswith(("iprec", "11pt")) and "\tall\t" in ours
        assert ours == (theirs.rsplit("\t", 1)[0] + "\t0.0000" if undefined and ours != theirs else theirs)


@pytest.mark.parametrize("seed", range(6))
def test_numbers_equal_pytrec_eval(seed, tiewise, tmp_path):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = draw(seed)
    names = pytrec_eval.supported_measures - {"iprec_at_recall", "11pt_avg", "runid", "relstring"}
    arguments = [word for name in names for word in ("-m", name)]
    found = tiewise("trec_eval", "-nq", *arguments, *write(tmp_path, qrels, run)).out.splitlines()
    peer = pytrec_eval.RelevanceEvaluator(
        {q: {d: int(n) for d, n in docs.items()} for q, docs in qrels.items()}, names
    ).evaluate(run)
    printed = {tuple(one.split("\t")[:2]): one.split("\t")[2] for one in found}
    for (name, query), text in printed.items():
        assert float(text) == pytest.approx(peer[query][name.strip()], abs=5.1e-5)
    hidden = ("num_q", "gm_map", "gm_bpref")
    assert len(printed) == sum(len(row) - sum(name in row for name in hidden) for row in peer.values())


@pytest.mark.parametrize("seed", range(6))
def test_numbers_of_version_9_equal_pytrec_eval(seed, tiewise, tmp_path):
    """It contains 9.0.8: float32, interpolated precision, and no query that the run lacks."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = draw(seed)
    del run["q"]
    run["9"] = {doc: 2**24 + (score > 1) for doc, score in run["9"].items()}  # one float32
    names = pytrec_eval.supported_measures - {"runid", "relstring"}
    arguments = [word for name in names for word in ("-m", name)]
    found = tiewise("trec_eval", "--compat", "9", "-nq", *arguments, *write(tmp_path, qrels, run)).out.splitlines()
    peer = pytrec_eval.RelevanceEvaluator(
        {q: {d: int(n) for d, n in docs.items()} for q, docs in qrels.items()}, names
    ).evaluate(run)
    printed = {tuple(one.split("\t")[:2]): one.split("\t")[2] for one in found}
    assert {query for _, query in printed} == {"10", "9", "Q", "ä"}
    for (name, query), text in printed.items():
        assert float(text) == pytest.approx(peer[query][name.strip()], abs=5.1e-5), name


GOLDEN_9 = Path(__file__).parent / "golden/trec_eval-9"
LINES_9 = [json.loads(one) for one in (GOLDEN_9 / "golden.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("golden", LINES_9, ids=lambda golden: golden["args"])
def test_version_9_prints_these_bytes(golden, tiewise):
    files = str(GOLDEN_9 / "qrels"), str(GOLDEN_9 / "run")
    found = tiewise("trec_eval", "--compat", "9", *golden["args"].split(), *files)
    assert found.out == re.sub(r" *-?nan\n", "0.0000\n", golden["stdout"])
    assert ("prints nan" in found.err) == ("nan" in golden["stdout"])


def test_expectations_of_version_9(tiewise, tmp_path):
    """Scores that float32 ties are tied, and missing lists are left out, or count as 0 with -c."""
    qrels = {"a": {"x": 1, "y": 0}, "b": {"x": 1}}
    files = write(tmp_path, qrels, {"a": {"x": 16777217.0, "y": 16777216.0}})
    new = ("trec_eval", "-c", "-m", "map", "-m", "utility", "--expected", "--range", *files)
    values = [row.split("\t")[2] for row in tiewise(*new).out.splitlines()]
    assert values == ["0.5000"] * 3 + ["0.0000"] * 3
    old = [*new[:1], "--compat", "9", *new[1:]]
    assert [row.split("\t")[2] for row in tiewise(*old).out.splitlines()][:3] == ["0.3750", "0.2500", "0.5000"]
    old.remove("-c")
    assert [row.split("\t")[2] for row in tiewise(*old).out.splitlines()][:3] == ["0.7500", "0.5000", "1.0000"]


def test_version_9_lacks_names(tiewise, tmp_path):
    files = write(tmp_path, *draw(0))
    for name in ("rbp", "rbp_resid.p=0.8", "unj.5", "dcg"):
        message = f"trec_eval 9 has no measure '{name.partition('.')[0]}': it is new in 10"
        assert message in tiewise("trec_eval", "--compat", "9", "-m", name, *files, code=2).err
    assert "yaap" in tiewise("trec_eval", "--compat", "9", "-m", "yaap", *files).out
    assert "'8' is not one of '9', '10'" in tiewise("trec_eval", "--compat", "8", *files, code=2).err


@pytest.mark.parametrize(("labels", "ndcg"), [("2.7 1.4 0", "0.7602"), (".9 .4 -.5", "0.0000")])
def test_fractions_of_labels_are_cut_off(labels, ndcg, tiewise, tmp_path):
    rows = [f"q 0 {doc} {label}\n" for doc, label in zip("abc", labels.split(), strict=True)]
    (tmp_path / "qrels").write_text("".join(rows))
    (tmp_path / "run").write_text("q Q0 b 1 3 t\nq Q0 c 2 2 t\nq Q0 a 3 1 t\n")
    found = tiewise("trec_eval", "-m", "ndcg", "qrels", "run")
    assert found.out == line("ndcg", "all", ndcg) + "\n" and "Labels are cut to whole numbers" in found.err
    report = tw.evaluate(tmp_path / "qrels", tmp_path / "run", "nDCG")
    printed = {row.tool: row for row in report.oblivious_by_tool()}
    assert f"{printed['trec_eval'].value:.4f}" == f"{printed['trec_eval-9'].value:.4f}" == ndcg
    assert printed["pytrec_eval"].value is None and "not whole numbers" in printed["ir_measures"].note
    assert report["nDCG"].oblivious == report["nDCG"].expected > float(ndcg)
    assert "trec_eval cuts them to whole ones. Tiewise keeps them." in report.notes[-1]


def test_pytrec_eval_refuses_fractions_of_labels():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    with pytest.raises(TypeError, match="integer"):
        pytrec_eval.RelevanceEvaluator({"q": {"a": 1.5}}, {"map"}).evaluate({"q": {"a": 1.0}})


@pytest.mark.parametrize(
    ("arguments", "same_as"),
    [
        (["-m", "ndcg_cut.10,20,23.4"], ["-m", "ndcg_cut.10,20,23"]),
        (["--query", "--meas=map", "--lev", "2"], ["-q", "-m", "map", "-l", "2"]),
        (["-o", "-m", "map"], ["-m", "map"]),
        (["-M", "9" * 20, "-m", "map"], ["-m", "map"]),
        (["-qn", "-m", f"relstring.{'0' * 5000}5"], ["-qn", "-m", "relstring.5"]),
    ],
    ids=lambda words: " ".join(words)[:30],
)
def test_what_getopt_and_atol_accept(arguments, same_as, tiewise, tmp_path):
    files = write(tmp_path, *draw(0))
    found, want = (tiewise("trec_eval", *words, *files).out for words in (arguments, same_as))
    assert [one.split("\t")[1:] for one in found.splitlines()] == [one.split("\t")[1:] for one in want.splitlines()]


def test_no_rank_at_all(tiewise, tmp_path):
    found = tiewise("trec_eval", "-M", "0", "-m", "all_trec", "--range", *write(tmp_path, *draw(0)))
    values = {name.strip(): value for name, _, value in (one.split("\t") for one in found.out.splitlines())}
    assert {values[name] for name in ("map", "map.max", "ndcg_cut_10", "11pt_avg", "rbp_resid")} == {"0.0000"}
    assert values["num_ret"] == "0" and "prints nan" in found.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-l", "-1"], "-l -1: below 0, unjudged documents are relevant in some measures of trec_eval"),
        (["-m", f"P.{'9' * 5000}"], "a cutoff is a whole number"),
        (["--x"], "No such option"),
    ],
)
def test_what_is_refused(arguments, message, tiewise, tmp_path):
    assert message in tiewise("trec_eval", *arguments, *write(tmp_path, *draw(0)), code=2).err


def test_points_that_do_not_ascend(tiewise, tmp_path):
    files = write(tmp_path, *draw(0))
    assert "ascending order" in tiewise("trec_eval", "-m", "11pt_avg.0.75,0.25", *files).err
    assert not tiewise("trec_eval", "-m", "11pt_avg.0.25,0.75", *files).err


def test_labels_below_the_level():
    report = tw.evaluate({"q": {"a": 0.9, "b": 0.4}}, {"q": {"a": 2.0, "b": 1.0}}, ["AP", "nDCG"], oblivious="given")
    assert report.notes == (
        "All labels are below rel=1, so these documents are not relevant for AP. If they are, add -l 0.65, or write "
        "AP(rel=0.65).",
    )
    some = tw.evaluate({"q": {"a": 0.9, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}, ["AP", "nDCG"], oblivious="given")
    assert some.notes[0].startswith(
        "1 of 2 positive labels are below rel=1, so these documents are not relevant for AP."
    )
    whole = tw.evaluate({"q": {"a": 1, "b": 2}}, {"q": {"a": 2.0, "b": 1.0}}, "P(rel=2)@5", oblivious="given")
    assert not whole.notes  # graded labels, and a level that was asked for


# -- all orders ------------------------------------------------------------------------------------------------------

MEASURES = [
    *(tw.nDCG, tw.AP, tw.P @ 3, tw.RBPresid, tw.infAP, tw.Unj @ 2, tw.SetAP, tw.Utility(c=1), tw.IPrec(recall=0.4)),
    *(tw.GMAP, tw.G, tw.nDCGRel, tw.RnDCG, tw.NumRet, tw.NumNonrelJudgedRet, tw.YAAP),
]


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("judged_only", [False, True])
@settings(max_examples=25, deadline=None)
@given(case=cases(), depth=st.one_of(st.none(), st.integers(1, 6)))
def test_lists_are_cut_and_then_condensed_in_every_order(measure, judged_only, case, depth):
    if not case.labels:
        return
    lists = TrecLists.of(
        case.qrels, as_source(case.run), complete=True, all_judged=True, depth=depth, judged_only=judged_only
    )
    values = []
    for order in oracle.orders(case.scores, case.labels):
        cut = order[:depth]
        kept = [label for label in cut if label is not None and label >= 0] if judged_only else cut
        left = list(order)
        for label in kept:
            left.remove(label)
        rest = [label for label in left if label is not None]
        values.append(value(measure, kept, [*case.unretrieved, *rest]))
    found = lists.estimates(measure).mean()
    assert found.expected == pytest.approx(np.mean(values), abs=1e-12, rel=1e-12)
    assert found.minimum == pytest.approx(min(values), abs=1e-12)
    assert found.maximum == pytest.approx(max(values), abs=1e-12)
    assert found.std == pytest.approx(np.std(values), abs=1e-7)


def test_every_possible_length_is_in_the_range_of_lists_that_are_cut_and_condensed():
    """Most of the numbers of judged documents within the depth have a probability that is 0 as a float."""
    docs = [f"d{place}" for place in range(1200)]
    qrels = tw.Qrels.from_dict({"q": {doc: place % 2 for place, doc in enumerate(docs[:600])}})
    source = as_source({"q": dict.fromkeys(docs, 1.0)})
    lists = TrecLists.of(qrels, source, complete=True, all_judged=True, depth=600, judged_only=True)
    found = lists.estimates(tw.NumRet).mean()
    assert (found.minimum, found.expected, found.maximum) == (0.0, pytest.approx(300.0), 600.0)
    assert found.std == pytest.approx(math.sqrt(600 * 0.5 * 0.5 * 600 / 1199), rel=1e-12)


def test_random_orders_of_lists_that_are_cut_and_condensed():
    """They are shared out among all possible lengths, and agree with the closed form of AP."""
    docs = [f"d{place}" for place in range(240)]
    qrels = tw.Qrels.from_dict({"q": {doc: place % 2 for place, doc in enumerate(docs[:120])}})
    source = as_source({"q": dict.fromkeys(docs, 1.0)})
    lists = TrecLists.of(qrels, source, complete=True, all_judged=True, depth=120, judged_only=True)
    sampled, exact = lists.estimates(tw.GMAP).mean(), lists.estimates(tw.AP).mean()
    assert (sampled.method["expected"], exact.method["expected"]) == ("sampled", "exact")
    assert abs(sampled.expected - exact.expected) < 4 * sampled.standard_error
    assert sampled.standard_error < 1.1 * exact.std / math.sqrt(1000)
    assert sampled.std == pytest.approx(exact.std, rel=0.1)


def test_expectation_and_range(tiewise, tmp_path):
    files = write(tmp_path, {"q": {"a": 1, "b": 0}}, {"q": {"a": 1.0, "b": 1.0}})
    assert tiewise("trec_eval", "-m", "map", *files).out == line("map", "all", 0.5) + "\n"
    assert tiewise("trec_eval", "-m", "map", "--expected", *files).out == line("map", "all", 0.75) + "\n"
    found = tiewise("trec_eval", "-q", "-m", "map", "-m", "relstring", "--range", *files).out.splitlines()
    want = [("map", 0.5), ("map.min", 0.5), ("map.max", 1.0)]
    assert found == [
        *(line(name, "q", number) for name, number in want),
        line("relstring", "q", "'01'"),
        *(line(name, "all", number) for name, number in want),
    ]
    found = tiewise("trec_eval", "-m", "num_rel_ret", "-M1", "--expected", *files).out
    assert found == line("num_rel_ret", "all", 0.5) + "\n"  # a mean of counts


def test_the_expectation_of_a_geometric_mean_is_over_all_orders_of_all_queries(tmp_path):
    qrels = {"a": {"x": 1, "y": 1, "v": 0}, "b": {"x": 1}, "c": {"x": 1, "z": 1}}
    run = {"a": {"x": 1.0, "y": 1.0, "v": 1.0, "w": 1.0}, "b": {"x": 1.0, "y": 1.0}, "c": {"x": 1.0, "y": 2.0}}
    found = tw.evaluate(qrels, run, ["GMAP", "GMBpref"], complete=True)
    for measure, name in (("GMAP", "GMAP"), ("GMBpref", "GMBpref")):
        values = {
            query: [
                oracle.value(name, order, [n for doc, n in qrels[query].items() if doc not in run[query]])
                for order in oracle.orders(list(run[query].values()), [qrels[query].get(doc) for doc in run[query]])
            ]
            for query in qrels
        }
        every = [(x * y * z) ** (1 / 3) for x in values["a"] for y in values["b"] for z in values["c"]]
        estimate = found[measure]
        assert estimate.expected == pytest.approx(np.mean(every), rel=1e-12)
        assert estimate.std == pytest.approx(np.std(every), rel=1e-9)
        assert (estimate.minimum, estimate.maximum) == pytest.approx((min(every), max(every)), rel=1e-12)
        assert estimate.method["expected"] == "exact"


def test_a_sampled_geometric_mean_has_a_standard_error():
    docs = [f"d{i:02d}" for i in range(40)]
    qrels = {query: {doc: (i * 7 + len(query)) % 3 for i, doc in enumerate(docs)} for query in ("a", "bb")}
    run = {query: dict.fromkeys(docs, 1.0) for query in qrels}
    few = tw.evaluate(qrels, run, "GMAP", complete=True, samples=400)["GMAP"]
    many = tw.evaluate(qrels, run, "GMAP", complete=True, samples=20_000, seed=1)["GMAP"]
    assert few.method == {"expected": "sampled", "extremes": "exact", "std": "sampled"}
    assert abs(few.expected - many.expected) < 4 * math.hypot(few.standard_error, many.standard_error)
    assert few.std == pytest.approx(many.std, rel=0.2)
    assert few.standard_error == pytest.approx(few.std / math.sqrt(400), rel=0.1)


# -- names and options -------------------------------------------------------------------------------------------------


def test_names_with_parameters(tiewise, tmp_path):
    files = write(tmp_path, *draw(1))
    words = "P.10,5 P.20 official set_F.2 utility.2,-1,0,0.5 11pt_avg.0.2,0.5 ndcg.1=5,2=9 rbp.p=0.8,1=2 unj.3"
    arguments = [word for name in words.split() for word in ("-m", name)]
    names = [one.split("\t")[0].strip() for one in tiewise("trec_eval", *arguments, "-N100", *files).out.splitlines()]
    assert names[:3] == ["runid", "num_q", "num_ret"]
    assert [name for name in names if name.startswith("P_")] == ["P_5", "P_10"]  # those given first, ascending
    assert names[-6:] == ["utility_2,-1,0,0.5", "11pt_avg_0.2,0.5", "ndcg_1=5,2=9", "set_F_2", "rbp_p=0.8,1=2", "unj_3"]


def test_long_and_joined_options(tiewise, tmp_path):
    files = write(tmp_path, *draw(2))
    short = tiewise("trec_eval", "-qcnJl2", "-M5", "-mmap", *files).out
    long = [
        *(
            "--query_eval_wanted",
            "--complete_rel_info_wanted",
            "--nosummary",
            "--Judged_docs_only",
            "--level_for_rel",
            "2",
        ),
        *("--Max_retrieved_per_topic", "5", "--measure", "map", "--Number_docs_in_coll", "7"),
        *("--Rel_info_format", "qrels", "--Results_format", "trec_results"),
    ]
    assert tiewise("trec_eval", *long, *files).out == short
    assert len(short.splitlines()) == 5


def test_the_default_is_official(tiewise, tmp_path):
    files = write(tmp_path, *draw(2))
    assert tiewise("trec_eval", *files).out == tiewise("trec_eval", "-m", "official", *files).out


def test_num_rel_of_missing_queries_lies_in_its_range(tiewise, tmp_path):
    files = write(tmp_path, {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}, {"q1": {"a": 1.0}})
    arguments = ("trec_eval", "-c", "-l", "2", "-m", "num_rel", "--range", *files)
    for more in ((), ("--expected",)):  # with -c, labels from 1 on count in the sum
        found = [row.split() for row in tiewise(*arguments, *more).out.splitlines()]
        assert [name for name, _, _ in found] == ["num_rel", "num_rel.min", "num_rel.max"]
        assert [float(number) for _, _, number in found] == [2, 2, 2]


def test_missing_queries(tiewise, tmp_path):
    qrels = {"a": {"x": 1, "y": 1}, "b": {"x": 1, "y": 0}}
    files = write(tmp_path, qrels, {"a": {"x": 1.0}})
    found = tiewise("trec_eval", *files, code=2)
    assert not found.out
    assert "1 judged query is missing from the run: 'b'. Add -c" in found.err
    names = "num_q num_ret num_rel map utility unj.5 relstring rbp_resid"
    plain = tiewise("trec_eval", "-cq", *(w for n in names.split() for w in ("-m", n)), *files).out.splitlines()
    assert [one.split("\t")[2] for one in plain if "\tb\t" in one] == [
        "0",
        "1",
        "0.0000",
        "''",
        "0.0000",
        "0.0000",
        "0.0000",
    ]
    # With parameters, trec_eval evaluates one unjudged document.
    names = "utility.1,-1,0,0 relstring.7 rbp_resid.p=0.8"
    given = tiewise("trec_eval", "-cq", *(w for n in names.split() for w in ("-m", n)), *files).out.splitlines()
    assert [one.split("\t")[2] for one in given if "\tb\t" in one] == ["'-'", "-1.0000", "1.0000"]
    # With -c, num_rel of all queries is counted at level 1.
    found = tiewise("trec_eval", "-cq", "-l0", "-m", "num_rel", *files).out.splitlines()
    assert [one.split("\t")[2] for one in found] == ["2", "2", "3"]


def test_the_run_id_is_the_tag_of_the_last_line(tiewise, tmp_path):
    (tmp_path / "qrels").write_text("q 0 a 1\n")
    text = "# a comment\nq Q0 a 1 1.0 first\nq Q0 b 2 0.5 last\n\n# the end\n"
    (tmp_path / "run").write_text(text)
    (tmp_path / "long").write_text(text + "# filler\n" * 4000)
    (tmp_path / "run.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("run", "run.gz", "long"):
        found = tiewise("trec_eval", "-m", "runid", "qrels", name)
        assert found.out == line("runid", "all", "last") + "\n"
    found = tiewise("trec_eval", "-m", "runid", "qrels", "-", stdin=text.replace("first", "last and more"))
    assert found.out == line("runid", "all", "last") + "\n"
    (tmp_path / "run.json").write_text('{"q": {"a": 1.0}}')
    found = tiewise("trec_eval", "-m", "runid", "qrels", "run.json")
    assert found.out == line("runid", "all", "run") + "\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "ndgc"], "trec_eval has no measure 'ndgc'. Did you mean 'ndcg'?"),
        (["-m", "P_5"], "Parameters follow a dot, as in P.5,10"),
        (["-m", "prefs"], "'prefs' needs preference judgments, which are out of scope"),
        (["-m", "map_avgjg"], "out of scope"),
        (["-R", "qrels_jg"], "preference formats of judgments (prefs, qrels_prefs, qrels_jg) are out of scope"),
        (["-T", "other"], "Only runs of the format trec_results"),
        (["-Z", "means"], "Z-scores (-Z) are out of scope"),
        (["-m", "P."], "give parameters after the dot"),
        (["-m", "official.5"], "'official' takes none"),
        (["-m", "P.0"], "a cutoff is a whole number from 1 on"),
        (["-m", "P.5,5"], "a number is given twice"),
        (["-m", "utility.1,2"], "give 4 numbers, not 2"),
        (["-m", "ndcg.x=1"], "'x=1' is not a parameter. Write ndcg.1=5,2=9"),
        (["-m", "map.5"], "map takes no parameters"),
        (["-m", "relstring.x"], "give the number of documents"),
        (["-M", "-1"], "x>=0"),
    ],
)
def test_errors(arguments, message, tiewise, tmp_path):
    found = tiewise("trec_eval", *arguments, *write(tmp_path, *draw(0)), code=2)
    assert not found.out
    assert message in found.err


def test_empty_lists_are_noted_where_trec_eval_prints_nan(tiewise, tmp_path):
    qrels = {"a": {"x": 1}, "b": {"x": 1}}
    files = write(tmp_path, qrels, {"a": {"x": 1.0}, "b": {"y": 1.0}})
    found = tiewise("trec_eval", "-qJ", "-m", "iprec_at_recall.0,0.9", *files)
    assert [one.split("\t")[2] for one in found.out.splitlines()] == [
        "1.0000",
        "1.0000",
        "0.0000",
        "0.0000",
        "0.0000",
        "0.5000",
    ]
    assert "prints nan, also for all queries: iprec_at_recall_0.00" in found.err
    found = tiewise("trec_eval", "-J", "-m", "iprec_at_recall.0", "--expected", *files)
    assert found.out == line("iprec_at_recall_0.00", "all", 0.5) + "\n" and not found.err


# -- tiewise evaluate ------------------------------------------------------------------------------------------------


def test_nicknames_and_a_hint_in_evaluate(tiewise, tmp_path):
    files = write(tmp_path, *draw(4))
    found = tiewise(
        "evaluate", *files, "-m", "set", "-m", "gm_map", "--format", "trec", "--columns", "oblivious", "--complete"
    )
    plain = tiewise("trec_eval", "-m", "set", "-m", "gm_map", *files).out.splitlines()
    assert sorted(found.out.splitlines()) == sorted(one for one in plain if not one.startswith("runid"))
    found = tiewise("evaluate", *files, "-m", "P recall success.5", "--complete")
    assert "P, recall are those of the whole list. In trec_eval they have cutoffs: write P.5,10" in " ".join(
        found.out.split()
    )
    assert "whole list" not in tiewise("evaluate", *files, "-m", "P.5 official").out


def test_the_note_on_sampled_values_has_the_printed_names(folder, tiewise):
    """It is about what is printed, in the names that are printed, and about no mark, for lines have none."""
    qrels, run = write(folder, {"q": {f"d{i}": i % 2 for i in range(60)}}, {"q": {f"d{i}": 1.0 for i in range(60)}})
    both = ("-m", "gm_map", "-m", "infAP", "-m", "iprec_at_recall", qrels, run)
    err = tiewise("trec_eval", "--expected", "--range", *both).err
    assert "~" not in err and "infAP" not in err and "GMAP" not in err and "IPrec" not in err
    assert "gm_map" in err or "iprec_at_recall_0.10" in err


def test_one_missing_query_is_it(folder, tiewise):
    qrels, run = write(folder, {"q": {"a": 1}, "r": {"a": 1}, "s": {"a": 1}}, {"q": {"a": 1.0}, "r": {"a": 1.0}})
    assert (
        "1 judged query is missing from the run: 's'. Add -c to count it as 0."
        in tiewise("trec_eval", qrels, run, code=2).err
    )


def test_where_no_relevant_document_has_a_gain_trec_eval_prints_nan(tiewise, tmp_path):
    """What trec_eval 9.0.4 prints for `-l 0 -q -m Rndcg` is 0.5000, -nan and -nan."""
    run = {"a": {"x": 2.0, "y": 1.0}, "b": {"x": 2.0}}
    files = write(tmp_path, {"a": {"x": 1, "z": 1}, "b": {"x": 0}}, run)
    for version in ("9", "10"):
        found = tiewise("trec_eval", "--compat", version, "-l", "0", "-q", "-m", "Rndcg", *files)
        assert [row.split("\t")[2] for row in found.out.splitlines()] == ["0.6131", "0.0000", "0.0000"]
        assert "prints nan, also for all queries: Rndcg." in found.err


def test_close_gains_have_a_note(tiewise, tmp_path):
    """trec_eval 9.0.4 prints 0.0000, 0.0000, 1.0000: its order of gains is not consistent."""
    files = write(tmp_path, {"q": {"a": 1, "b": 2, "c": 0}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
    for gains in ("1=.9,2=.5", "2=.5,1=.9,0=0", "0=0,2=.5,1=.9"):
        found = tiewise("trec_eval", "--compat", "9", "-m", f"ndcg.{gains}", *files)
        assert found.out.split("\t")[2] == "1.0000\n"
        assert f"ndcg_{gains}: trec_eval compares gains as whole numbers" in found.err
    assert not tiewise("trec_eval", "-m", "ndcg.1=1.5,2=3", "-m", "dcg.1=.5", *files).err
