"""`drop_self` and `distances`: runs that are edited before they are counted, and the notes that suggest it."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import tiewise as tw
from tiewise.cli.program import status_of
from tiewise.data.runs import Trend
from tiewise.errors import InputError
from tiewise.io import as_source
from tiewise.io.edited_run import edit_run, edit_source

MEASURES = ["nDCG@10", "AP@100", "P@10", "R@100", "RR@10"]


def arguana(n: int = 60, *, every: int = 1) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Queries that are documents too, as in ArguAna: each finds itself first. Scores have few digits, so they tie."""
    rng = np.random.default_rng(3)
    qrels, run = {}, {}
    for at in range(n):
        docs = [f"a{one}" for one in rng.choice(np.setdiff1d(np.arange(200), [at]), 20, replace=False)]
        scores = np.round(rng.random(20) * 0.8, 1)
        found = dict(zip(docs, scores.tolist(), strict=True))
        if at % every == 0:
            found = {f"a{at}": 1.0, **found}
        run[f"a{at}"] = dict(sorted(found.items(), key=lambda item: -item[1]))
        qrels[f"a{at}"] = {docs[int(rng.integers(8))]: 1}
    return qrels, run


def without_self(run: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {query: {doc: score for doc, score in docs.items() if doc != query} for query, docs in run.items()}


def write(run: dict[str, dict[str, float]], path: Path, *, ranks: bool = True) -> Path:
    rows = ((query, doc, rank, run[query][doc]) for query in run for rank, doc in enumerate(run[query], 1))
    path.write_text("".join(f"{q} Q0 {doc} {rank if ranks else 'x'} {score!r} t\n" for q, doc, rank, score in rows))
    return path


def sources(run: dict[str, dict[str, float]], folder: Path) -> dict[str, object]:
    """The same run in every form."""
    columns = list(zip(*tw.Run.from_dict(run), strict=True))
    found: dict[str, object] = {"dict": run, "file": write(run, folder / "run.trec"), "Run": tw.Run.from_dict(run)}
    (folder / "run.json").write_text(json.dumps(run))
    found["json"] = folder / "run.json"
    arrow = pytest.importorskip("pyarrow")
    found["arrow"] = arrow.table(dict(zip(("query_id", "doc_id", "score"), columns, strict=True)))
    return found


# -- documents with the id of their query -------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"judged_only": True}, {"depth": 5}, {"score_dtype": "float16"}])
def test_drop_self_equals_a_run_without_them(options, tmp_path):
    qrels, run = arguana()
    wanted = tw.evaluate(qrels, without_self(run), MEASURES, complete=True, **options)
    for name, given in sources(run, tmp_path).items():
        found = tw.evaluate(qrels, given, MEASURES, drop_self=True, complete=True, **options)
        for measure in MEASURES:
            assert found.per_query(measure) == wanted.per_query(measure), name
        assert found.provenance.options["drop_self"] and found.provenance.rows == wanted.provenance.rows
        assert not [note for note in found.notes if "drop" in note]


def test_python_reader_drops_self(monkeypatch):
    qrels, run = arguana()
    wanted = tw.evaluate(qrels, run, MEASURES, drop_self=True)
    whole = tw.evaluate(qrels, run, MEASURES)
    monkeypatch.setattr("tiewise.io.sources.native", lambda: None)
    monkeypatch.setattr("tiewise.io.memory_run.native", lambda: None)
    assert tw.evaluate(qrels, run, MEASURES, drop_self=True).to_dict() == wanted.to_dict()
    assert tw.evaluate(qrels, run, MEASURES).notes == whole.notes


def test_a_list_that_ends_with_the_dropped_document_was_not_cut():
    run = tw.Run.from_dict({"q": {"a": 1.0, "b": 1.0, "q": 0.5}, "p": {"a": 1.0, "b": 0.5, "p": 0.5, "c": 0.5}})
    edited = edit_run(run, drop_self=True)
    assert edited.ends_tied.tolist() == [False, True]
    assert edit_run(tw.Run.from_dict({"q": {"q": 1.0}}), drop_self=True).to_dict() == {"q": {}}


def test_beir_drops_them():
    beir = pytest.importorskip("beir.retrieval.evaluation")
    qrels, run = arguana(every=2)
    ndcg, ap, recall, precision = beir.EvaluateRetrieval.evaluate(qrels, copy.deepcopy(run), [10, 100])
    real = {
        "nDCG@10": ndcg["NDCG@10"],
        "AP@100": ap["MAP@100"],
        "P@10": precision["P@10"],
        "R@100": recall["Recall@100"],
    }
    results = copy.deepcopy(run)
    beir.EvaluateRetrieval.evaluate(qrels, results, [10])  # it removes them from the results
    real["RR@10"] = beir.EvaluateRetrieval.evaluate_custom(qrels, results, [10], "mrr")["MRR@10"]
    report = tw.evaluate(qrels, run, MEASURES)
    printed = {row.measure: row for row in report.oblivious_by_tool() if row.tool == "beir"}
    as_beir = tw.evaluate(qrels, run, MEASURES, oblivious="beir")
    dropped = tw.evaluate(qrels, without_self(run), MEASURES, oblivious="beir")
    for measure, value in real.items():
        assert printed[measure].value == pytest.approx(value, abs=6e-6)
        assert printed[measure].note.startswith("drops documents with the id of their query, in 30 lists")
        assert as_beir[measure].oblivious == pytest.approx(value, abs=6e-6)
        for name in ("expected", "minimum", "maximum", "oblivious"):  # bias is the effect of tie order alone
            values = [getattr(one.per_query(measure), name) for one in (as_beir, dropped)]
            np.testing.assert_array_equal(*values)
    assert abs(report["nDCG@10"].expected - real["nDCG@10"]) > 0.01


def test_mteb_drops_them_in_some_tasks(tmp_path):
    evaluator = pytest.importorskip("mteb._evaluators.retrieval_evaluator")
    qrels, run = arguana()
    answers = {
        drops: evaluator.RetrievalEvaluator.evaluate(None, qrels, copy.deepcopy(run), [10, 100], drops)
        for drops in (True, False)
    }
    for task, drops in (("ArguAna", True), ("SciFact", False)):
        path = tmp_path / f"{task}_predictions.json"
        path.write_text(json.dumps({"mteb_model_meta": {"model_name": "m"}, "default": {"test": run}}))
        report = tw.evaluate(qrels, path, MEASURES)
        row = next(row for row in report.oblivious_by_tool() if (row.tool, row.measure) == ("mteb", "nDCG@10"))
        wanted = tw.evaluate(qrels, without_self(run) if drops else run, MEASURES, oblivious="mteb")
        assert row.value == wanted["nDCG@10"].oblivious and ("drops" in row.note) == drops
        assert tw.evaluate(qrels, path, MEASURES, oblivious="mteb").per_query("AP@100") == wanted.per_query("AP@100")
        assert row.value == pytest.approx(answers[drops].ndcg["NDCG@10"], abs=6e-6)
    unnamed = tw.evaluate(qrels, run, MEASURES).oblivious_by_tool()
    row = next(row for row in unnamed if (row.tool, row.measure) == ("mteb", "nDCG@10"))
    assert "add drop_self=True for these" in row.note


def test_the_note_on_self_documents_where_a_number_changes(tmp_path, capsys):
    qrels, run = arguana()
    note = (
        "In 60 of 60 lists there is a document with the id of the query. BEIR and some tasks of MTEB drop it. If the "
        "queries are documents too, add {}."
    )
    assert note.format("drop_self=True") in tw.evaluate(qrels, run, "nDCG@10", complete=True).notes
    last = {query: {**without_self(run)[query], query: -1.0} for query in run}  # below all cutoffs
    assert not tw.evaluate(qrels, last, "nDCG@10", complete=True).notes
    few = arguana(300, every=300)  # one list of 300
    assert not tw.evaluate(*few, "nDCG@10", complete=True).notes
    files = [str(write(run, tmp_path / "run.trec")), str(tmp_path / "qrels.txt")]
    Path(files[1]).write_text("".join(f"{q} 0 {doc} 1\n" for q in qrels for doc in qrels[q]))
    assert status_of(["evaluate", files[1], files[0], "-m", "nDCG@10", "--complete"]) == 0
    assert note.format("--drop-self") in " ".join(capsys.readouterr().out.split())
    assert status_of(["evaluate", files[1], files[0], "-m", "nDCG@10", "--complete", "--drop-self"]) == 0
    shown = capsys.readouterr()
    expected = tw.evaluate(qrels, without_self(run), "nDCG@10")["nDCG@10"].expected
    assert not shown.err and f"{expected:.3f}"[1:] in shown.out


def test_only_self_documents_may_be_judged():
    qrels, run = {query: {query: 1} for query in "abc"}, {query: {query: 1.0, "x": 0.5} for query in "abc"}
    report = tw.evaluate(qrels, run, "RR", complete=True)
    assert report["RR"].expected == 1 and len(report.notes) == 1
    assert tw.evaluate(qrels, run, "RR", drop_self=True)["RR"].expected == 0


def test_compare_drops_self():
    qrels, run = arguana()
    runs = {
        "a": run,
        "b": {query: dict(zip(docs, reversed(docs.values()), strict=True)) for query, docs in run.items()},
    }
    for orders in ("independent", "shared"):
        found = tw.compare(qrels, runs, "nDCG@10", drop_self=True, orders=orders).pair("a", "b")
        plain = {name: without_self(one) for name, one in runs.items()}
        wanted = tw.compare(qrels, plain, "nDCG@10", orders=orders).pair("a", "b")
        assert found.difference == wanted.difference and found.probability == wanted.probability


def test_a_report_knows_beir_after_pickling():
    qrels, run = arguana()
    report = tw.evaluate(qrels, run, "nDCG@10")
    wanted = report.oblivious_by_tool()
    run.clear()
    assert pickle.loads(pickle.dumps(report)).oblivious_by_tool() == wanted


@pytest.mark.parametrize("dtype", ["float32", "int8"])  # of integers, many tie
def test_tie_groups_of_vectors_without_self(dtype):
    from tiewise import scoring
    from tiewise.adapters import index

    rng = np.random.default_rng(5)
    vectors = rng.integers(-1, 2, (40, 4)).astype(dtype)
    docs, queries = [f"d{at}" for at in range(40)], [f"d{at}" for at in range(0, 40, 3)] + ["other"]
    matrix = np.vstack([vectors[::3], vectors[:1]])
    qrels = {query: {docs[one]: 1 for one in rng.choice(40, 6, replace=False)} for query in queries}
    options = {"query_ids": queries, "doc_ids": docs, "orders": ["docid-desc", "docid-asc", "given"]}
    ties = scoring.tie_groups(matrix, vectors, qrels, drop_self=True, **options)
    full = scoring.search(matrix, vectors, 40, query_ids=queries, doc_ids=docs)
    for order in ("docid-desc", "docid-asc"):
        found = tw.evaluate(None, ties, ["nDCG@10", "AP", "R@5"], oblivious=order)
        wanted = tw.evaluate(qrels, full, ["nDCG@10", "AP", "R@5"], oblivious=order, complete=True, drop_self=True)
        for measure in found:
            assert found.per_query(measure) == wanted.per_query(measure)
    collection = scoring.Collection(vectors, doc_ids=docs)

    def search(queries, k):
        scores = np.asarray(queries, dtype=float) @ vectors.T.astype(float)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(scores, best, 1), best

    checked = index.check(search, collection, matrix, 40, qrels=qrels, query_ids=queries, drop_self=True)
    assert checked.exact.report["nDCG@10"].expected == wanted["nDCG@10"].expected
    assert checked.index.report["nDCG@10"].expected == wanted["nDCG@10"].expected
    with pytest.raises(tw.InputError, match="drop_self needs the whole collection"):
        collection.tie_groups(matrix, qrels, query_ids=queries, scores=np.zeros(3), drop_self=True)


# -- distances ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"judged_only": True}, {"drop_self": True}])
def test_distances_are_negated(options, tmp_path):
    qrels, run = arguana()
    wanted = tw.evaluate(qrels, run, MEASURES, complete=True, **options)
    negative = {query: {doc: 1.5 - score for doc, score in docs.items()} for query, docs in run.items()}
    for name, given in sources(negative, tmp_path).items():
        found = tw.evaluate(qrels, given, MEASURES, complete=True, distances=True, **options)
        for measure in MEASURES:
            assert found.per_query(measure).expected == pytest.approx(wanted.per_query(measure).expected), name


def test_trend_of_lists():
    rows, offsets = np.array([1.0, 2.0, 2.0, 3.0, 1.0, 5.0, 5.0, 1.0, 3.0, 2.0]), np.array([0, 3, 5, 7, 10])
    assert Trend.of(rows, offsets) == Trend(1, 1, 3, 1)
    assert Trend.of(rows, offsets, np.array([3, 2, 1, 1, 2, 1, 2, 1, 3, 2])) == Trend(1, 2, 3, 2, True)
    assert Trend.of(np.zeros(0), np.array([0])) == Trend(0, 0, 0, 0)


def test_both_readers_count_the_same_trend_and_self_documents(monkeypatch, tmp_path):
    from tiewise.io import as_qrels, as_source

    qrels, run = arguana(every=3)
    run["a1"] = dict(reversed(run["a1"].items()))
    counted = [as_source(given).count(as_qrels(qrels), ()) for given in sources(run, tmp_path).values()]
    monkeypatch.setattr("tiewise.io.memory_run.native", lambda: None)
    counted.append(as_source(tw.Run.from_dict(run)).count(as_qrels(qrels), ()))
    assert len({one.trend for one in counted}) == 1 and counted[0].trend[:3] == (1, 59, 60)
    assert all(np.array_equal(one.has_self, np.arange(60) % 3 == 0) for one in counted)


def distances() -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    qrels, run = arguana()
    return qrels, {query: {doc: 1 - score for doc, score in docs.items()} for query, docs in without_self(run).items()}


RISE = "In 60 of 60 lists the scores rise {}. If they are distances or ranks, add {}."
BY_ROW, BY_RANK = "from the first row to the last", "with the rank column"


def test_the_note_on_distances(tmp_path, capsys):
    qrels, run = distances()
    for name, given in sources(run, tmp_path).items():
        note = RISE.format(BY_RANK if name == "file" else BY_ROW, "distances=True")
        assert note in tw.evaluate(qrels, given, "nDCG@10").notes, name
        assert not any("rise" in note for note in tw.evaluate(qrels, given, "nDCG@10", distances=True).notes), name
    assert not any("rise" in note for note in tw.evaluate(qrels, run, "NumRet").notes)  # it cannot change
    compared = tw.compare(qrels, {"a": run, "b": arguana()[1]}, "nDCG@10")
    assert f"a: {RISE.format(BY_ROW, 'distances=True')}" in compared.notes
    judged = tmp_path / "qrels.txt"
    judged.write_text("".join(f"{q} 0 {doc} 1\n" for q in qrels for doc in qrels[q]))
    for command in (["evaluate", str(judged), str(tmp_path / "run.trec")], ["audit", str(tmp_path / "run.trec")]):
        for more, says in (([], True), (["--distances"], False)):
            assert status_of([*command, *more]) == 0
            shown = " ".join(capsys.readouterr().out.split())
            assert (RISE.format(BY_RANK, "--distances") in shown) == says, command


def test_the_rank_column_says_more_than_the_order_of_rows(tmp_path):
    qrels, run = distances()
    lines = write(run, tmp_path / "run.trec").read_text().splitlines(keepends=True)
    rng = np.random.default_rng(1)
    (tmp_path / "shuffled.trec").write_text("".join(sorted(rng.permutation(lines), key=lambda line: line.split()[0])))
    note = RISE.format(BY_RANK, "distances=True")
    assert note in tw.evaluate(qrels, tmp_path / "shuffled.trec", "nDCG@10").notes
    # From the last rank to the first, as ranks and scores say.
    right = {
        query: dict(sorted(docs.items(), key=lambda item: item[1]))
        for query, docs in without_self(arguana()[1]).items()
    }
    upside_down = (
        f"{query} Q0 {doc} {len(docs) - at} {score!r} t\n"
        for query, docs in right.items()
        for at, (doc, score) in enumerate(docs.items())
    )
    (tmp_path / "down.trec").write_text("".join(upside_down))
    assert not any("rise" in note for note in tw.evaluate(qrels, tmp_path / "down.trec", "nDCG@10").notes)


def test_swapped_rank_and_score(tmp_path):
    qrels, run = arguana()
    swapped = "".join(
        f"{query} Q0 {doc} {score!r} {rank} t\n"
        for query, docs in without_self(run).items()
        for rank, (doc, score) in enumerate(docs.items(), 1)
    )
    (tmp_path / "run.trec").write_text(swapped)
    with pytest.raises(tw.InputError, match="the columns look like query,-,doc,score,rank,-"):
        tw.evaluate(qrels, tmp_path / "run.trec", "nDCG@10")
    report = tw.evaluate(qrels, tw.read_run(tmp_path / "run.trec", format="trec"), "nDCG@10")
    assert RISE.format(BY_ROW, "distances=True") in report.notes


def test_bits_without_rescoring_are_distances():
    """sentence-transformers returns Hamming distances as scores here, the nearest first."""
    pytest.importorskip("faiss")
    quantization = pytest.importorskip("sentence_transformers.quantization")
    rng = np.random.default_rng(2)
    docs = np.packbits(rng.random((200, 64)) < 0.5, axis=1)
    queries = docs[:20].copy()
    queries[:, 0] ^= 3  # near their documents
    options = {"corpus_precision": "ubinary", "top_k": 10, "rescore": False}
    results, *_ = quantization.semantic_search_faiss(queries, docs, **options)
    run = {f"q{q}": {f"d{hit['corpus_id']}": float(hit["score"]) for hit in hits} for q, hits in enumerate(results)}
    qrels = {f"q{q}": {f"d{q}": 1} for q in range(20)}
    report = tw.evaluate(qrels, run, "RR", complete=True)
    note = RISE.format(BY_ROW, "distances=True").replace("60 of 60", "20 of 20")
    assert report.notes == (note,) and report["RR"].expected < 0.2
    assert tw.evaluate(qrels, run, "RR", complete=True, distances=True)["RR"].expected == 1


def test_the_page_and_unjudged_bounds_take_both(tmp_path, capsys):
    qrels, run = arguana()
    paths = {name: tmp_path / name for name in ("qrels.txt", "near.trec", "far.trec", "page.html")}
    paths["qrels.txt"].write_text("".join(f"{q} 0 {doc} 1\n" for q in qrels for doc in qrels[q]))
    write({query: {doc: 1 - score for doc, score in docs.items()} for query, docs in run.items()}, paths["near.trec"])
    write({query: {doc: 2 + at for at, doc in enumerate(docs)} for query, docs in run.items()}, paths["far.trec"])
    files = [str(paths[name]) for name in ("qrels.txt", "near.trec", "far.trec")]
    options = ["--distances", "--drop-self", "--complete", "-m", "P@5"]
    assert status_of(["report", *files, *options, "-o", str(paths["page.html"])]) == 0
    assert status_of(["compare", *files, *options, "--explain", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = tw.evaluate(qrels, without_self(run), "P@5")["P@5"].expected
    assert f"{wanted:.4f}" in paths["page.html"].read_text() and not any("rise" in one for one in found["notes"])
    bounds = tw.unjudged(qrels, files[1], "P@5", distances=True, drop_self=True, complete=True)["P@5"]
    assert bounds.lower.expected == pytest.approx(wanted) and bounds.upper.expected == 1
    other = tw.similarity({"a": files[1], "b": files[2]}, "RBO", distances=True, complete=True).pair("a", "b")
    same = tw.similarity({"a": run, "b": tw.read_run(files[2]).negated()}, "RBO", complete=True).pair("a", "b")
    assert other.extrapolated.expected == pytest.approx(same.extrapolated.expected)
    stages = [tw.stages(files[1], {"b": files[2]}, [5], 0.8, distances=True, complete=True)]
    stages.append(tw.stages(run, {"b": tw.read_run(files[2]).negated()}, [5], 0.8, complete=True))
    assert stages[0].to_frame().equals(stages[1].to_frame())


def test_unordered_lists_have_no_note():
    rng = np.random.default_rng(0)
    run = {f"q{q}": {f"d{d}": float(score) for d, score in enumerate(rng.random(3))} for q in range(40)}
    qrels = {query: {"d0": 1} for query in run}
    assert not tw.evaluate(qrels, run, "RR").notes
    assert not tw.evaluate({"q": {"a": 1}}, {"q": {"a": 0.1, "b": 0.2, "c": 0.3}}, "RR").notes


# -- swapped arguments --------------------------------------------------------------------------------------------


def test_swapped_arguments_are_an_error():
    scores, labels = {"q": {"a": 0.73, "b": 0.51}}, {"q": {"a": 1, "b": 0}}
    with pytest.raises(tw.InputError, match=r"The qrels look like a run \(label 0.73\), and the run like qrels"):
        tw.evaluate(scores, labels, "nDCG@10")
    with pytest.raises(tw.InputError, match=r"Run 'a'.*qrels come first"):
        tw.compare(scores, {"a": labels, "b": labels}, "nDCG@10")
    one_each = {query: {f"d{query}": 1} for query in "xyz"}
    with pytest.raises(tw.InputError, match="qrels come first"):
        tw.evaluate(
            {query: {f"d{query}": 0.25 + at / 7, "e": at / 9} for at, query in enumerate("xyz")}, one_each, "RR"
        )
    many = {f"q{query}": {f"d{doc}": (128 + (7 * query + doc) % 120) / 256 for doc in range(100)} for query in range(9)}
    judged = {query: {"d1": 1, "d2": 0} for query in many}  # scores in bfloat16: many are equal
    with pytest.raises(tw.InputError, match=r"The qrels look like a run \(label 0\.5\)"):
        tw.evaluate(many, judged, "nDCG@10")
    as_floats = {query: {doc: float(label) for doc, label in docs.items()} for query, docs in labels.items()}
    tw.evaluate(scores, as_floats, "nDCG@10", complete=True)


@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        ({"a": 0.9, "b": 0.4}, {"a": 2, "b": 1}),  # ranks from the last one
        ({"a": 0.9, "b": 0.4}, {"a": 40, "b": 40}),
        ({"a": 0.9, "b": 0.4}, {"a": 1.0, "b": 1.0}),  # a constant scorer
        ({"a": 0.5, "b": 0.5, "c": 1, "d": 0}, {"a": 1, "b": 0, "c": 3, "d": 3}),  # ratings
        ({"a": 1, "b": 0}, {"a": 1, "b": 0}),
        ({"a": 0.9, "b": 0.4}, {"a": 0.5, "b": 0.5}),
    ],
)
def test_fractional_labels_and_whole_scores_are_allowed(qrels, run):
    assert tw.evaluate({"q": qrels}, {"q": run}, "nDCG@10", complete=True)["nDCG@10"].expected


def test_distances_of_a_task_that_drops_its_queries_are_negated_once(tmp_path):
    pytest.importorskip("mteb")
    path = tmp_path / "ArguAna_predictions.json"
    lists = {"q": {"q": 0.0, "a": 0.1, "b": 0.5, "c": 0.9}}
    path.write_text(json.dumps({"mteb_model_meta": {}, "default": {"test": lists}}))
    report = tw.evaluate({"q": {"a": 1}}, path, "RR", oblivious="mteb", distances=True)
    assert report["RR"].expected == report["RR"].oblivious == 1.0


def test_tie_groups_in_the_order_of_a_tool_that_drops_queries():
    run = {"q": {"q": 3.0, "a": 2.0, "b": 1.0}}
    ties = tw.tie_groups({"q": {"a": 1}}, tw.Run.from_dict(run).without_self())
    assert tw.evaluate(None, ties, "RR", oblivious="beir")["RR"].expected == 1.0
    with pytest.raises(InputError, match="drop_self"):
        tw.evaluate(None, ties, "RR", drop_self=True)


def test_dropping_keeps_what_lengths_say_of_truncation():
    qrels = {f"q{i}": {"a": 1, "z": 1} for i in range(20)}
    lists = {query: {query: 20.0} | {f"d{j}": float(10 - j) for j in range(8)} | {"a": 0.5} for query in qrels}
    lists["q0"] = {f"d{j}": float(10 - j) for j in range(9)} | {"a": 0.5}
    cuts = [tw.evaluate(qrels, lists, "R@10", drop_self=drop)["R@10"].cut for drop in (False, True)]
    assert cuts[0] == cuts[1] == (0.0, 0.5)


def test_merged_shards_do_not_keep_what_one_shard_says_of_truncation():
    qrels = {f"q{i}": {"a": 1, "z": 1} for i in range(4)}
    first = {query: {query: 9.0, "a": 2.0} for query in qrels}  # its lists look truncated, those of all shards do not
    second = {query: {f"d{j}": 1.0 - j / 10 for j in range(place)} for place, query in enumerate(qrels)}
    shards = [edit_source(as_source(run), drop_self=True) for run in (first, second)]
    merged = tw.TieGroups.from_shards(qrels, shards)
    assert merged.length.tolist() == [1, 2, 3, 4] and not merged.may_be_truncated.any()


def test_ids_that_coincide_by_chance_are_no_self_documents():
    rng = np.random.default_rng(0)
    qrels = {str(i): {str(j): 1 for j in rng.integers(1, 200, 5)} for i in range(1, 51)}
    run = {query: {str(doc): float(rng.random()) for doc in rng.choice(200, 40, replace=False)} for query in qrels}
    assert not any("id of the query" in note for note in tw.evaluate(qrels, run, "nDCG@10").notes)
    own = {query: docs | {query: 2.0} for query, docs in run.items()}
    assert any("In 50 of 50 lists there is a document" in note for note in tw.evaluate(qrels, own, "nDCG@10").notes)


def test_row_numbers_that_coincide_are_no_self_documents():
    """A query and the text that answers it often have the same row in two matrices."""
    docs = np.random.default_rng(0).normal(size=(60, 16)).astype(np.float32)
    queries, qrels = docs[:40] + 0.1, {str(i): {str(i): 1} for i in range(40)}
    found = tw.scoring.search(queries, docs, 10, fn="cosine")
    lists = found.to_dict().values()
    indices, scores = ([list(each(one))[:10] for one in lists] for each in (lambda one: map(int, one), dict.values))
    for run in (found, tw.Run.from_neighbors(scores, indices)):
        assert not any("id of the query" in note for note in tw.evaluate(qrels, run, "RR@10").notes)
    rows = tw.rows.vectors(queries, docs, ["float32", "binary+20"])
    assert not any("id of the query" in note for note in tw.protocol(qrels, rows, "RR@10").notes)
    assert any("id of the query" in note for note in tw.evaluate(qrels, found.to_dict(), "RR@10").notes)


def test_short_lists_in_any_order_are_no_distances():
    rng = np.random.default_rng(0)
    qrels = {f"q{i}": {"a": 1} for i in range(50)}
    for _ in range(100):
        run = {query: {"a": float(rng.random()), "b": float(rng.random())} for query in qrels}
        assert not any("the scores rise" in note for note in tw.evaluate(qrels, run, "RR").notes)


@pytest.mark.parametrize("name", ["judged_only", "complete", "drop_self", "distances"])
def test_options_that_are_neither_true_nor_false(name):
    with pytest.raises(InputError, match=f"{name} is True or False, not 'x'"):
        tw.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "RR", **{name: "x"})
