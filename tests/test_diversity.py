"""Diversity measures: exact over the orders of ties, equal to ndeval's without ties, from every kind of judgments."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import pickle
import random
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import oracle_diversity as oracle
import tiewise as tw
from oracle_diversity import Document
from tiewise.io import as_source
from tiewise.metrics import engine, enumeration
from tiewise.metrics.enumeration import Sampling
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.metrics.tool_rules import rule_for

NAMES = tuple(oracle.MEASURES)
FIELDS = ("expected", "minimum", "maximum", "std", "oblivious")
EXACT = {"expected": "exact", "extremes": "exact", "std": "exact"}


@dataclass(frozen=True)
class Case:
    """A ranking with ties, in given order, and judged documents that were not retrieved."""

    scores: list[float]
    documents: list[Document]
    unretrieved: list[Document]

    @property
    def labels(self) -> dict[str, dict[str, float]]:
        return {one.id: one.labels for one in [*self.documents, *self.unretrieved] if one.labels}

    @property
    def run(self) -> dict[str, float]:
        return {one.id: score for one, score in zip(self.documents, self.scores, strict=True)}

    def grouped(self) -> GroupedJudgments:
        ties = tw.tie_groups({"q": self.labels}, {"q": self.run}, ("given", "docid-asc"))
        return GroupedJudgments(ties)

    def truth(self, measure: tw.Measure) -> oracle.Statistics:
        params = {name: getattr(measure, name) for name in measure.params}
        return oracle.estimate(measure.stem, self.scores, self.documents, self.unretrieved, measure.cutoff, **params)


def draw_case(rng: random.Random, most: int = 6, score_kinds: int = 3) -> Case:
    subtopics = "abcd"[: rng.randint(1, 4)]

    def document(name: str, judged: float) -> Document:
        labels = {s: float(rng.choice([0, 1, 1, 2, -1, 0.5])) for s in subtopics if rng.random() < 0.5}
        return Document(name, labels if rng.random() < judged else {})

    n = rng.randint(1, most)
    documents = [document(f"d{rng.randint(0, 999)}-{i}", 0.8) for i in range(n)]
    unretrieved = [one for i in range(rng.randint(0, 2)) if (one := document(f"u{i}", 1.0)).labels]
    if not any(one.labels for one in documents):
        unretrieved.append(Document("u", {"a": 1.0}))
    kinds = rng.randint(1, score_kinds)
    return Case([float(rng.randrange(kinds)) for _ in documents], documents, unretrieved)


def draw_measure(rng: random.Random, name: str) -> tw.Measure:
    measure = tw.parse(name)
    choices = {"rel": [1, 1, 2, 0, 0.5], "alpha": [0.5, 0.5, 0.3, 0, 1], "beta": [0.5, 0.9]}
    made = measure(**{param: rng.choice(choices[param]) for param in measure.params})
    return made @ rng.choice([None, 1, 2, 3, 9]) if measure.takes_cutoff else made


# -- over the orders of ties ------------------------------------------------------------------------------------------


def test_every_diversity_measure_is_in_the_oracle():
    assert sorted(NAMES) == sorted(name for name, one in tw.measures().items() if one.needs_subtopics)


@pytest.mark.parametrize("name", NAMES)
def test_statistics_equal_those_of_all_permutations(name):
    rng = random.Random(name)
    for _ in range(40):
        case, measure = draw_case(rng), draw_measure(rng, name)
        found = engine.estimates(measure, case.grouped(), oblivious="given").mean()
        truth = case.truth(measure)
        assert found.method == EXACT
        for field in FIELDS:
            assert math.isclose(getattr(found, field), getattr(truth, field), rel_tol=1e-12, abs_tol=1e-12), (
                measure,
                field,
                case,
            )


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_and_samples_agree(name, monkeypatch):
    """With nothing enumerated: E exact, extremes within the bounds, std sampled or, of STREC and P_IA, exact."""
    monkeypatch.setattr(enumeration, "_arrange", lambda *_: None)
    rng = random.Random(name)
    reached = 0
    for _ in range(12):
        case, measure = draw_case(rng, most=5, score_kinds=2), draw_measure(rng, name)
        found = engine.estimates(measure, case.grouped(), sampling=Sampling(500, 1)).mean()
        truth = case.truth(measure)
        assert math.isclose(found.expected, truth.expected, rel_tol=1e-12, abs_tol=1e-12)
        assert found.minimum <= truth.minimum + 1e-12 and found.maximum >= truth.maximum - 1e-12
        reached += math.isclose(found.maximum, truth.maximum)
        assert found.standard_error is None
        if name in ("STREC", "P_IA"):
            assert found.method["std"] == "exact" and math.isclose(found.std, truth.std, rel_tol=1e-9, abs_tol=1e-9)
        elif truth.std:
            deviation = truth.std / math.sqrt(2 * 500) * 3  # the kurtosis of few values is small
            assert found.method["std"] == "sampled" and abs(found.std - truth.std) < 4 * deviation
        if truth.maximum - truth.minimum > 1e-9:
            assert found.method["extremes"] == ("exact" if name == "P_IA" else "bound")
    assert reached  # bounds are often reached


def test_documents_of_different_numbers_of_subtopics_are_told_apart():
    """x is relevant for two subtopics and y for one: in one of two orders, it stands first and the tie is ahead."""
    qrels = {"q": {"x": {"a": 1, "b": 1}, "y": {"a": 1}}}
    runs = {"tied": {"q": {"x": 1.0, "y": 1.0}}, "late": {"q": {"y": 2.0, "x": 1.0}}}
    pair = tw.compare(qrels, runs, "P_IA@1", complete=True).pair("tied", "late")
    assert (pair.probability, pair.probability_equal, pair.method) == (0.5, 0.5, "exact")


def test_the_order_of_a_group_above_the_cutoff_does_not_matter_to_strec():
    """However many arrangements it has: the range is that of the group that is cut."""
    sets = list(itertools.islice((s for n in (1, 2, 3) for s in itertools.combinations("defghi", n)), 12))
    qrels = {
        "q": {f"a{i:02d}": dict.fromkeys(s, 1) for i, s in enumerate(sets)} | {"x": {"a": 1, "b": 1}, "y": {"c": 1}}
    }
    run = {"q": {f"a{i:02d}": 2.0 for i in range(12)} | {"x": 1.0, "y": 1.0}}
    found = tw.evaluate(qrels, run, "STREC@13", complete=True)["STREC@13"]
    assert found.method == EXACT  # x or y is the last of the 13: six subtopics and two or one of nine
    assert (found.minimum, found.expected, found.maximum) == pytest.approx((7 / 9, 7.5 / 9, 8 / 9), abs=1e-12)
    assert found.std == pytest.approx(0.5 / 9, abs=1e-12)


def test_large_groups():
    """A tie group that nobody can enumerate: E and the std of STREC in closed form, against sampled orders."""
    rng = random.Random(4)
    docs = [f"d{i:02d}" for i in range(18)]
    labels = {d: {s: 1 for s in "abcde" if rng.random() < 0.25} for d in docs}
    qrels = {"q": {d: found for d, found in labels.items() if found}}
    run = dict.fromkeys(docs, 1.0)
    measures = [tw.parse(name) @ 8 if tw.parse(name).takes_cutoff else tw.parse(name) for name in NAMES]
    report = tw.evaluate(qrels, {"q": run}, measures, complete=True, samples=300)
    values: dict[str, list[float]] = {name: [] for name in NAMES}
    documents = [Document(d, labels[d]) for d in docs]
    for _ in range(150):
        rng.shuffle(documents)
        for measure in measures:
            values[measure.stem].append(oracle.value(measure.stem, documents, (), measure.cutoff))
    for measure in measures:
        found, drawn = report[measure], np.array(values[measure.stem])
        assert abs(found.expected - drawn.mean()) < 4 * drawn.std() / math.sqrt(len(drawn)), measure
        assert found.std == pytest.approx(drawn.std(), rel=0.25), measure
        assert found.minimum <= drawn.min() and drawn.max() <= found.maximum + 1e-12
        assert found.method["expected"] == "exact"


def test_an_order_by_the_number_of_subtopics_is_not_the_best():
    measure = tw.alpha_DCG(alpha=0.8) @ 2
    assert measure.of("({ab}{ab}cc)").maximum == pytest.approx(measure.of("{ab}c{ab}c").expected)
    assert measure.of("({ab}{ab}cc)").maximum > measure.of("{ab}{ab}cc").expected


def test_many_queries_at_once_are_each_of_them_alone():
    rng = random.Random(8)
    cases = {f"q{i}": draw_case(rng) for i in range(12)}
    qrels, run = {q: case.labels for q, case in cases.items()}, {q: case.run for q, case in cases.items()}
    measures = [draw_measure(rng, name) for name in NAMES]
    report = tw.evaluate(qrels, run, measures, complete=True, oblivious="given")
    for measure in measures:
        truths = [case.truth(measure) for case in cases.values()]
        for field in ("expected", "minimum", "maximum", "oblivious"):
            mean = math.fsum(getattr(truth, field) for truth in truths) / len(truths)
            assert getattr(report[measure], field) == pytest.approx(mean, abs=1e-12)
        assert report[measure].std == pytest.approx(math.sqrt(sum(t.std**2 for t in truths)) / len(truths), abs=1e-12)
        again = pickle.loads(pickle.dumps(report))
        assert again.per_query(measure)["q3"] == report.per_query(measure)["q3"]


@pytest.mark.filterwarnings("ignore::tiewise.CutWarning")
@pytest.mark.parametrize("name", NAMES)
def test_the_bounds_of_lists_that_were_cut(name):
    """Whatever stood in the last group besides, of the judged documents not retrieved and of others."""
    rng = random.Random(name)
    for _ in range(15):
        case, measure = draw_case(rng, most=4, score_kinds=2), draw_measure(rng, name)
        found = tw.evaluate({"q": case.labels}, {"q": case.run}, measure)[measure]
        low, high = found.cut or (found.expected, found.expected)
        params = {param: getattr(measure, param) for param in measure.params}
        lowest, n = min(case.scores), len(case.documents)
        for joins in itertools.product((False, True), repeat=len(case.unretrieved)):
            hidden = [one for one, joined in zip(case.unretrieved, joins, strict=True) if joined]
            more = [*hidden, Document("unjudged", {})]
            if case.scores.count(lowest) < 2:
                more = []
            every, values = {one.id: one for one in [*case.documents, *case.unretrieved]}, []
            for ranked in oracle.orders([*case.scores, *[lowest] * len(more)], [*case.documents, *more]):
                shown = {one.id for one in ranked[:n]}
                rest = [one for one in every.values() if one.id not in shown and one.labels]
                values.append(oracle.value(name, ranked[:n], rest, measure.cutoff, **params))
            mean = math.fsum(values) / len(values)
            assert low - 1e-9 <= mean <= high + 1e-9, (measure, case)


def test_a_query_without_a_relevant_document():
    qrels = {"q": {"a": {"s": 0}}, "r": {"b": {"s": 1}}}
    run = {"q": {"a": 1.0, "c": 1.0}, "r": {"b": 2.0, "c": 1.0}}
    for name in NAMES:
        assert tw.evaluate(qrels, run, name, complete=True).per_query(name)["q"].expected == 0.0
        assert list(tw.evaluate(qrels, run, name, complete=True, no_relevant="skip").per_query(name)) == ["r"]


# -- peers ------------------------------------------------------------------------------------------------------------

NDEVAL = {"STREC": "strec", "AP_IA": "MAP-IA"}


def draw_qrels(rng: random.Random, docs: list[str]) -> dict[str, dict[str, int]]:
    judged = {d: {s: rng.choice([0, 0, 1, 2]) for s in "123456" if rng.random() < 0.4} for d in docs}
    return {d: labels for d, labels in judged.items() if labels}


def test_untied_runs_equal_ndeval():
    pyndeval = pytest.importorskip("pyndeval")
    rng = random.Random(0)
    for _ in range(60):
        docs = [f"d{i:02d}" for i in range(rng.randint(5, 60))]
        qrels, listed = draw_qrels(rng, docs), rng.sample(docs, rng.randint(1, len(docs)))
        if not any(max(labels.values()) > 0 for labels in qrels.values()):
            continue
        alpha, beta, k = rng.choice([0.5, 0.3, 0.8]), rng.choice([0.5, 0.2, 0.9]), rng.randint(2, 20)
        run = {d: -float(place) for place, d in enumerate(listed)}
        rows = [("q", s, d, label) for d, labels in qrels.items() for s, label in labels.items()]
        names = [one if one in ("AP_IA", "NRBP", "nNRBP") else f"{one}@{k}" for one in NAMES]
        theirs = [one.replace(old, new) for one in names for old, new in [_ndeval_name(one)]]
        truth = pyndeval.ndeval(rows, [("q", d, score) for d, score in run.items()], theirs, alpha=alpha, beta=beta)
        for name, their in zip(names, theirs, strict=True):
            measure = tw.parse(name)
            measure = measure(**{key: {"alpha": alpha, "beta": beta, "rel": 1}[key] for key in measure.params})
            assert tw.parse(their).uncut == tw.parse(name).uncut
            found = tw.evaluate({"q": qrels}, {"q": run}, measure, complete=True)[measure]
            assert found.expected == pytest.approx(truth["q"][their], abs=1e-9), (their, alpha, beta)


def _ndeval_name(name: str) -> tuple[str, str]:
    stem = name.split("@")[0]
    return stem, NDEVAL.get(stem, stem.replace("_", "-"))


def test_ties_in_the_order_of_ndeval():
    """Ascending ids in the run, descending ids in the ideal list."""
    pyndeval = pytest.importorskip("pyndeval")
    rng = random.Random(1)
    for _ in range(30):
        docs = [f"d{i:02d}" for i in range(20)]
        qrels, run = draw_qrels(rng, docs), {d: float(rng.randint(0, 3)) for d in docs}
        rows = [("q", s, d, label) for d, labels in qrels.items() for s, label in labels.items()]
        truth = pyndeval.ndeval(rows, [("q", *one) for one in run.items()], ["alpha-nDCG@10", "nNRBP", "strec@5"])["q"]
        report = tw.evaluate({"q": qrels}, {"q": run}, list(truth), oblivious="ndeval", complete=True, samples=2)
        for name in truth:
            assert report[name].oblivious == pytest.approx(truth[name], abs=1e-9)
            assert report[name].minimum - 1e-9 <= truth[name] <= report[name].maximum + 1e-9


def test_the_rules_of_tools():
    assert rule_for("ndeval", tw.alpha_nDCG @ 20).order == rule_for("ir_measures", tw.NRBP).order == "docid-asc"
    assert rule_for("trec_eval", tw.alpha_nDCG @ 20).order == "docid-asc"  # trec_eval has no such measure: ndeval's
    printed = tw.evaluate({"q": {"a": {"s": 1}}}, {"q": {"a": 1.0}}, ["alpha_nDCG@10", "P_IA@50"]).oblivious_by_tool()
    assert {(row.tool, row.measure) for row in printed} == {
        (tool, "alpha_nDCG@10") for tool in ("ndeval", "ir_measures", "pyterrier")
    }


# -- judgments --------------------------------------------------------------------------------------------------------

LABELS = {"q2": {"a": {"s1": 1.0, "s2": 0.0}, "b": {"s2": 2.0}}, "q1": {"c": {"s1": -2.0}, "a": {"s9": 1.0}}}


@pytest.fixture
def qrels() -> tw.Qrels:
    return tw.Qrels.from_dict(LABELS)


def test_judgments_in_every_form(qrels, tmp_path):
    rows = [(q, d, label, s) for q, docs in LABELS.items() for d, labels in docs.items() for s, label in labels.items()]
    assert qrels.to_dict() == LABELS
    assert qrels.label.tolist() == [1, 2, -2, 1]  # the highest of each document
    assert tw.Qrels.from_rows(rows, kind="diversity").equals(qrels)
    assert tw.Qrels.from_frame(qrels.to_frame()).equals(qrels)
    renamed = qrels.to_frame().rename(columns={"subtopic": "iteration"})
    assert tw.Qrels.from_frame(renamed, kind="diversity").equals(qrels)
    assert pickle.loads(pickle.dumps(qrels)).equals(qrels)
    shuffled = sorted(rows, key=lambda row: row[3])
    assert tw.Qrels.from_rows(shuffled, kind="diversity").to_dict() == {q: LABELS[q] for q in ("q2", "q1")}
    for name in ("qrels.txt", "qrels.txt.gz", "qrels.json", "qrels.parquet"):
        tw.write_qrels(qrels, tmp_path / name)
        assert tw.read_qrels(tmp_path / name, kind="diversity").equals(qrels), name
    assert (tmp_path / "qrels.txt").read_text().startswith("q2 s1 a 1\nq2 s2 a 0\nq2 s2 b 2\n")
    assert not qrels.equals(tw.Qrels.from_dict({**LABELS, "q1": {"c": {"s2": -2.0}, "a": {"s9": 1.0}}}))
    assert repr(qrels) == "<Qrels: 2 queries, 4 rows, 5 labels for subtopics>"


@pytest.mark.parametrize("empty", [{}, {"b": {}}])
def test_a_query_without_labels_counts_as_in_other_judgments(empty):
    qrels = tw.Qrels.from_dict({"q0": empty, "q1": {"a": {"s": 1}}, "q2": empty})
    assert qrels.queries == ("q0", "q1", "q2") and qrels.to_dict()["q1"] == {"a": {"s": 1.0}}
    report = tw.evaluate(qrels, {"q1": {"a": 1.0}, "q2": {"b": 1.0}}, ["AP", "STREC@1"], complete=True)
    assert [report[name].expected for name in ("AP", "STREC@1")] == pytest.approx([1 / 3, 1 / 3])


def test_parts_of_judgments_keep_their_subtopics(qrels):
    assert qrels.take(np.array([1, 3])).to_dict() == {"q2": {"b": {"s2": 2.0}}, "q1": {"a": {"s9": 1.0}}}
    with_zero = tw.Qrels.from_dict({"q": {"a": {"s": 0, "t": 1}, "b": {"s": 0}}})
    assert with_zero.nonzero.to_dict() == {"q": {"a": {"s": 0.0, "t": 1.0}}}


def test_an_ordinary_measure_takes_the_highest_label():
    """A document is relevant if it is for any subtopic."""
    qrels = {"q": {"a": {"s": 1, "t": 3}, "b": {"s": 0, "t": 0}, "c": {"t": 2}}}
    run = {"q": {"a": 2.0, "b": 1.0, "c": 1.0}}
    plain = {"q": {"a": 3, "b": 0, "c": 2}}
    for measure in ("nDCG@10", "AP", "Bpref", "P@2"):
        found, want = (tw.evaluate(labels, run, measure, complete=True)[measure] for labels in (qrels, plain))
        assert found == want


def run_of(docs, seed):
    rng = random.Random(seed)
    return {q: {d: float(rng.randint(0, 3)) for d in docs} for q in ("q1", "q2")}


def test_all_sources_count_the_same(tmp_path):
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    rng = random.Random(2)
    docs = [f"d{i:02d}" for i in range(30)]
    qrels = tw.Qrels.from_dict({q: draw_qrels(rng, docs) for q in ("q1", "q2")})
    run = run_of(docs, 3)
    rows = [(q, d, score) for q, listed in run.items() for d, score in listed.items()]
    frame = pandas.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    tw.write_run(run, tmp_path / "run.trec")
    tw.write_run(run, tmp_path / "run.parquet")
    (tmp_path / "run.trec.gz").write_bytes(gzip.compress((tmp_path / "run.trec").read_bytes()))
    thirds = [docs[0::3], docs[1::3], docs[2::3]]
    shards = [{q: {d: one[d] for d in third} for q, one in run.items()} for third in thirds]
    sources = [
        run,
        tw.Run.from_dict(run),
        frame,
        arrow.table(frame),
        *(tmp_path / name for name in ("run.trec", "run.trec.gz", "run.parquet")),
        tw.TieGroups.from_shards(qrels, shards, orders=("docid-asc", "docid-desc", "given")),
        as_source(run).count(qrels, ("docid-asc", "docid-desc", "given")),
    ]
    names = ["alpha_nDCG@7", "AP_IA", "P_IA@7", "STREC@7"]
    options = {"complete": True, "oblivious": "docid-asc", "samples": 5}
    want = tw.evaluate(qrels, run, names, **options)
    for source in sources:
        found = tw.evaluate(qrels, source, names, **options)
        for name in names:
            assert found[name] == want[name]
    ties = pickle.loads(pickle.dumps(sources[-2]))
    assert tw.evaluate(None, ties, names, **options)[names[0]] == want[names[0]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tw.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "STREC@5"), "STREC@5 needs judgments for subtopics"),
        (lambda: tw.Qrels.from_dict({"q": {"a": {"s": 1}, "b": 1}}), "document 'b': a int, where other documents have"),
        (lambda: tw.Qrels.from_dict({"q": {"a": {"s": {"t": 1}}}}), "is not a number"),
        (lambda: tw.Qrels.from_dict({"q": {"a": {"s": math.nan}}}), "relevance 'nan' for query 'q', document 'a'"),
        (lambda: tw.Qrels.from_rows([("q", "a", 1)], kind="diversity"), r"Give \(query, document, label, subtopic\)"),
        (lambda: tw.Qrels.from_rows([("q", "s", "a", 1)], kind="diversity"), "relevance 'a' is not a number"),
        (lambda: tw.Qrels.from_rows([], kind="web"), "Unknown kind of judgments 'web'. Use 'adhoc' or 'diversity'"),
        (
            lambda: tw.Qrels.from_rows([("q", "a", 1, "s")] * 2, kind="diversity"),
            "document 'a' appears twice in the qrels for query 'q', subtopic 's'. Keep one of the rows.$",
        ),
        (
            lambda: tw.Qrels.from_columns(["q"], ["a"], [1], subtopics=["s", "t"]),
            "1 queries, 1 documents, 2 subtopics, 1 labels",
        ),
    ],
)
def test_bad_judgments(make, message):
    with pytest.raises(tw.InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (b"q s a 1\nq t a 1\n", "adhoc", 'kind="diversity" .*--qrels-kind diversity.*\nqrels:2: document'),
        (b"q s a 1\nq s a 1\n", "diversity", "qrels:2: document 'a' appears twice .*, subtopic 's'. Keep one"),
        (b"q a 1\n", "diversity", "qrels:1: 3 columns, .* Expected 'query subtopic document label'"),
        (b"q s a x\n", "diversity", "qrels:1: label 'x' for query 'q', document 'a'"),
        (b"q \xff a 1\n", "diversity", "qrels:1: the subtopic id b'\\\\xff' is not UTF-8"),
        (b'{"q": {"a": 1}}', "diversity", "qrels: has no subtopics"),
        (b"q s a 1\n", "web", "Unknown kind of judgments 'web'"),
    ],
)
def test_bad_files(content, kind, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels").write_bytes(content)
    with pytest.raises(tw.InputError, match=message):
        tw.read_qrels("qrels", kind=kind)


def test_formats_without_subtopics(qrels, tmp_path):
    with pytest.raises(tw.InputError, match="Format 'beir' has no subtopics"):
        tw.read_qrels(tmp_path / "none", kind="diversity", format="beir")
    with pytest.raises(tw.InputError, match=r"Cannot write format 'beir'. Use one of trec, json, parquet"):
        tw.write_qrels(qrels, tmp_path / "qrels.tsv", format="beir")
    assert not (tmp_path / "qrels.tsv").exists()


def test_tie_groups_of_other_subtopics_are_refused(qrels):
    ties = tw.tie_groups(qrels, {"q2": {"a": 1.0}})
    other = {**LABELS, "q2": {"a": {"s1": 1.0, "s3": 0.0}, "b": {"s2": 2.0}}}
    with pytest.raises(tw.InputError, match="counted for other qrels"):
        tw.evaluate(other, ties, "STREC@5")


# -- parameters, notation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", ["alpha_nDCG(alpha=1.5)", "alpha_nDCG(alpha=-0.1)", "NRBP(beta=1)", "NRBP@5", "P_IA(x=1)"]
)
def test_bad_parameters(bad):
    with pytest.raises(tw.MeasureError):
        tw.parse(bad)


def test_spellings():
    spelled = "alpha-nDCG@10,20 α_nDCG@10 ERR-IA@5 MAP-IA MAP_IA strec@10 StRecall@10 P-IA@5 α-DCG(alpha=0.3)@3"
    found = [tw.alpha_nDCG @ 10, tw.alpha_nDCG @ 20, tw.ERR_IA @ 5, tw.AP_IA, tw.STREC @ 10, tw.P_IA @ 5]
    assert tw.parse_all(spelled) == [*found, tw.alpha_DCG(alpha=0.3) @ 3]


def test_a_deep_cutoff():
    assert (tw.alpha_DCG @ 10**9).of("a").expected == pytest.approx((tw.alpha_DCG @ 10**4).of("a").expected, rel=1e-12)
    with pytest.raises(tw.MeasureError, match="cutoff of 1000000000 is too large with alpha=0"):
        (tw.alpha_DCG(alpha=0) @ 10**9).of("a")


@pytest.mark.parametrize("text", ["({ab)", "{}", "{a b", "a|-", "A", "a1{"])
def test_bad_notation(text):
    with pytest.raises(tw.InputError, match="is not ranking notation"):
        tw.notation(text)


# -- comparison, gates, drop-in, command line -------------------------------------------------------------------------


@pytest.mark.parametrize("orders", ["independent", "per-query", "shared"])
def test_the_difference_of_two_runs_over_all_orders(orders):
    """The mean difference over all orders; and its range and std where the ties of the runs are independent."""
    qrels = {"q": {"a": {"s": 1}, "b": {"s": 1, "t": 1}, "c": {"t": 1}, "d": {"u": 1}}}
    documents = [Document(d, labels) for d, labels in qrels["q"].items()]
    scores = [[1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
    runs = [dict(zip("abcd", one, strict=True)) for one in scores]
    measure = tw.alpha_nDCG @ 3
    first, second = (
        {tuple(d.id for d in one): oracle.value(measure.stem, one, (), 3) for one in oracle.orders(row, documents)}
        for row in scores
    )
    if orders == "independent":
        differences = [x - y for x, y in itertools.product(first.values(), second.values())]
    else:
        priorities = itertools.permutations("abcd")
        sort = [[tuple(sorted("abcd", key=lambda d: (-run[d], p.index(d)))) for run in runs] for p in priorities]
        differences = [first[x] - second[y] for x, y in sort]
    pair = tw.compare(qrels, {"A": {"q": runs[0]}, "B": {"q": runs[1]}}, measure, complete=True, orders=orders).pair(
        "A", "B"
    )
    assert pair.difference.expected == pytest.approx(np.mean(differences), abs=1e-12)
    assert pair.difference.minimum == pytest.approx(min(differences), abs=1e-12)
    assert pair.difference.maximum == pytest.approx(max(differences), abs=1e-12)
    assert pair.difference.std == pytest.approx(np.std(differences), abs=1e-12)
    assert pair.probability == pytest.approx(np.mean(np.array(differences) > 1e-12), abs=1e-12)
    assert pair.exact_range


def test_the_range_of_a_difference_may_be_a_bound():
    rng = random.Random(5)
    docs = [f"d{i:02d}" for i in range(25)]
    qrels = {"q": draw_qrels(rng, docs)}
    runs = {"A": {"q": dict.fromkeys(docs, 1.0)}, "B": {"q": {d: -float(i) for i, d in enumerate(docs)}}}
    pair = tw.compare(qrels, runs, "alpha_nDCG@10", complete=True).pair("A", "B")
    assert not pair.exact_range


def test_the_drop_in_for_ir_measures():
    pytest.importorskip("pyndeval")
    ir_measures = pytest.importorskip("ir_measures")
    from tiewise.adapters import ir_measures as ours

    rng = random.Random(6)
    docs = [f"d{i:02d}" for i in range(10)]
    qrels = [
        ir_measures.Qrel(q, d, label, s)
        for q in ("q1", "q2", "q3")
        for d, labels in draw_qrels(rng, docs).items()
        for s, label in labels.items()
    ]
    run = [ir_measures.ScoredDoc(q, d, score) for q, one in run_of(docs, 7).items() for d, score in one.items()]
    names = ["alpha_DCG@10", "alpha_nDCG@10", "alpha_nDCG(alpha=0.3,rel=2)@20", "α_nDCG@5", "ERR_IA@5", "nERR_IA@20"]
    for name in [*names, "NRBP", "nNRBP(beta=0.8)", "AP_IA", "MAP_IA", "P_IA@5", "StRecall@5"]:
        measure = ir_measures.parse_measure(name)
        truth = ir_measures.calc_aggregate([measure], qrels, run)[measure]
        assert ours.calc_aggregate([name], qrels, run)[name] == pytest.approx(truth, abs=1e-9)
        low, mean, high = (
            ours.calc_aggregate([measure], qrels, run, value=value)[measure]
            for value in ("minimum", "expected", "maximum")
        )
        assert low - 1e-9 <= truth <= high + 1e-9 and low <= mean <= high
    provider = ours.TiewiseProvider(value="expected").install()
    try:
        measure = ir_measures.alpha_nDCG @ 10
        found = ir_measures.calc_aggregate([measure], qrels, run)[measure]
    finally:
        provider.uninstall()
    assert found == ours.calc_aggregate([measure], qrels, run, value="expected")[measure]
    with pytest.raises(tw.InputError, match="alpha_nDCG@5 needs judgments for subtopics"):
        ours.calc_aggregate(["alpha_nDCG@5"], {"q1": {"d01": 1}}, run)


def tiewise(*args) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tiewise", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_command_line(tmp_path):
    rng = random.Random(9)
    docs = [f"d{i:02d}" for i in range(12)]
    qrels = tw.Qrels.from_dict({q: draw_qrels(rng, docs) for q in ("q1", "q2")})
    tw.write_qrels(qrels, tmp_path / "qrels.txt")
    for name, seed in (("a", 1), ("b", 2)):
        tw.write_run(run_of(docs, seed), tmp_path / f"{name}.trec")
    files = tmp_path / "qrels.txt", tmp_path / "a.trec"
    kind = "--qrels-kind", "diversity"
    done = tiewise("evaluate", *files, *kind, "-m", "alpha-nDCG@5", "-m", "STREC@5", "--complete", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["measures"]
    report = tw.evaluate(qrels, files[1], ["alpha_nDCG@5", "STREC@5"], complete=True)
    assert found["alpha_nDCG@5"]["expected"] == report["alpha_nDCG@5"].expected
    assert found["STREC@5"]["maximum"] == report["STREC@5"].maximum
    gate = tiewise("evaluate", *files, *kind, "-m", "STREC@5", "--complete", "--fail-if", "range(alpha_nDCG@5) > 0.001")
    assert gate.returncode == 3 and "range(alpha_nDCG@5)" in gate.stderr
    compared = tiewise("compare", *files, tmp_path / "b.trec", *kind, "-m", "ERR_IA@5", "--complete")
    assert compared.returncode == 0 and "ERR_IA@5" in compared.stdout
    wrong = tiewise("evaluate", *files, "-m", "alpha_nDCG@5")
    assert wrong.returncode == 2 and "--qrels-kind diversity" in wrong.stderr and not wrong.stdout


def test_the_orders_that_the_page_shows():
    from tiewise.page.tie_orders import replay_query

    rng = random.Random(10)
    docs = [f"d{i:02d}" for i in range(9)]
    qrels, run = tw.Qrels.from_dict({"q": draw_qrels(rng, docs)}), tw.Run.from_dict({"q": dict.fromkeys(docs, 1.0)})
    options = {"judged_only": False, "score_dtype": None, "depth": None}
    found = replay_query(qrels, run, "q", [tw.alpha_nDCG @ 5, tw.nDCG @ 5], options)
    values = [stop["values"][0] for stop in found["stops"]]
    estimate = tw.evaluate(qrels, run, "alpha_nDCG@5", complete=True)["alpha_nDCG@5"]
    assert values == sorted(values) and found["ends"][1] == "the best order of those tried"
    assert estimate.minimum - 1e-12 <= values[0] and values[-1] <= estimate.maximum + 1e-12


# -- what people read -------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture
def tied_files(tmp_path):
    """Judgments for two subtopics and a run with many ties: α-nDCG has bounds as extremes, and a sampled std."""
    rng = np.random.default_rng(7)
    labels = [f"q{q} {s} d{i:02d} 1" for q in range(3) for i in range(60) for s in "ab" if rng.random() < 0.4]
    rows = [f"q{q} Q0 d{i:02d} 1 {rng.integers(2)} t" for q in range(3) for i in range(60)]
    for name, lines in {"qrels": labels, "run": rows}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return [str(tmp_path / "qrels"), str(tmp_path / "run"), "--qrels-kind", "diversity", "--complete"]


def test_the_sentence_on_ties(tied_files, tiewise):
    """A bound is not said to be reached, and the order is that of a tool that has the measure."""
    done = tiewise("evaluate", *tied_files, "-m", "alpha_nDCG@20", "--format", "table")
    text = " ".join(done.out.split())
    assert "≥.165 – ≤1.000" in text and "is a bound (≥, ≤): no order leaves it" in text and "trec_eval" not in text
    report = tw.evaluate(tw.read_qrels(tied_files[0], kind="diversity"), tied_files[1], "alpha_nDCG@20", complete=True)
    assert report["alpha_nDCG@20"].oblivious == {row.tool: row.value for row in report.oblivious_by_tool()}["ndeval"]
    wide = tiewise("evaluate", *tied_files, "-m", "alpha_nDCG@20", "--wide", "--format", "table").out
    row = next(line for line in wide.splitlines() if line.startswith("alpha_nDCG@20"))
    assert "obl (ndeval)" in wide and row.count("~") == 2  # std and z; the expected value and the bias are exact


def test_the_note_names_what_is_sampled(tied_files):
    qrels = tw.read_qrels(tied_files[0], kind="diversity")
    notes = tw.evaluate(qrels, tied_files[1], ["alpha_nDCG@20", "LogAP"], complete=True).notes
    assert any(note.startswith("The std of alpha_nDCG@20 is sampled from random orders (~)") for note in notes)
    assert any(note.startswith("The expected value and std of LogAP are sampled") for note in notes)


def test_a_note_if_every_query_has_one_subtopic(tiewise, tmp_path):
    """Ordinary judgments, whose second column is always 0, can be read as judgments for subtopics."""
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 b 0\nq2 0 a 1\n")
    (tmp_path / "run").write_text("q1 Q0 a 1 2 t\nq2 Q0 a 1 2 t\n")
    command = ["evaluate", "qrels", "run", "--qrels-kind", "diversity", "-m"]
    assert "note: The judgments have one subtopic in every query" in tiewise(*command, "alpha_nDCG@10").out
    assert "subtopic" not in tiewise(*command, "AP").out
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 1 b 0\nq2 0 a 1\n")
    assert "subtopic" not in tiewise(*command, "alpha_nDCG@10").out


@pytest.mark.parametrize("command", [["evaluate", "-m", "alpha_nDCG@10"], ["trec_eval"]])
def test_the_hint_at_subtopics_stands_first(tiewise, tied_files, command):
    first, *rest = tiewise(*command, *tied_files[:2], code=2).err.splitlines()
    assert "`tiewise evaluate --qrels-kind diversity`" in first and len(rest) == 10
