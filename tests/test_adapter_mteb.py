"""The MTEB adapter: tasks that return tie-aware numbers beside their own, and predictions that MTEB saved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from typing import ClassVar

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("mteb", reason="mteb is not installed")

import mteb
import numpy as np
import torch
from datasets import Dataset
from mteb.abstasks import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models import ModelMeta
from sentence_transformers import CrossEncoder

import tiewise as tw
import tiny
from tiewise.adapters.mteb import FAMILIES, tie_aware
from tiewise.adapters.sentence_transformers import high_precision

pytestmark = pytest.mark.filterwarnings("ignore::tiewise.CutWarning")  # the tiny task's lists end at 20 documents

QUERIES = {f"q{i}": tiny.sentence(f"query {i}", 3) for i in range(8)}
CORPUS = {f"d{i:02}": tiny.sentence(f"document {i}", 3 + i % 6) for i in range(60)}
RELEVANT = {f"q{i}": {f"d{(7 * i + 11 * j) % 60:02}": 1 + j % 2 for j in range(3 + i)} for i in range(8)}
K = (1, 3, 5, 10, 20)


class Tiny(AbsTaskRetrieval):
    metadata = TaskMetadata(
        name="TinyRetrieval",
        dataset={"path": "none", "revision": "none"},
        description="A task of a few sentences.",
        type="Retrieval",
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
    )
    k_values = K
    top_ranked = None

    def load_data(self, *args, **kwargs):
        def rows(texts):
            return Dataset.from_list([{"id": name, "text": text} for name, text in texts.items()])

        split = {"corpus": rows(CORPUS), "queries": rows(QUERIES), "relevant_docs": RELEVANT}
        self.dataset = {"default": {"test": split | {"top_ranked": self.top_ranked}}}
        self.data_loaded = True


class Coarse:
    """An encoder of words whose similarities lie on a coarse grid."""

    mteb_model_meta = ModelMeta.create_empty(overwrites={"name": "tiny/coarse", "revision": "1"})

    def encode(self, inputs, **kwargs):
        texts = [text for batch in inputs for text in batch["text"]]
        return np.array([[text.split().count(word) for word in tiny.WORDS] for text in texts], dtype=np.float32)

    def similarity(self, left, right):
        return torch.as_tensor(np.asarray(left) @ np.asarray(right).T)

    def similarity_pairwise(self, left, right):
        return self.similarity(left, right).diagonal()


def scores_of(task, model=None, **options):
    found = mteb.evaluate(model or Coarse(), task, cache=None, show_progress_bar=False, **options)
    return found.task_results[0].scores["test"][0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the predictions of the tiny task, and its judgments."""
    path = tmp_path_factory.mktemp("predictions")
    scores_of(Tiny(), prediction_folder=path)
    (path / "qrels.json").write_text(json.dumps(RELEVANT))
    return path


def test_numbers_are_added_to_those_of_mteb():
    usual, found = scores_of(Tiny()), scores_of(tie_aware(Tiny()))
    assert set(usual) < set(found)
    numbers = {key: value for key, value in usual.items() if isinstance(value, float)}
    assert {key: found[key] for key in numbers} == pytest.approx(numbers, nan_ok=True)
    moved = 0
    for word in FAMILIES:
        for k in K:
            key = f"{word}_at_{k}"
            low, expected, high = (found[f"{key}_{name}"] for name in ("minimum", "expected", "maximum"))
            assert low - 1e-12 <= expected <= high + 1e-12
            assert low - 1e-5 <= usual[key] <= high + 1e-5  # MTEB rounds to five decimals
            assert expected + found[f"{key}_bias"] == pytest.approx(usual[key], abs=1e-5), key
            moved += high - low > 1e-3
    assert moved > 20
    assert found["main_score"] == usual["main_score"]


@pytest.mark.parametrize("top_k", [60, 20])
def test_numbers_equal_evaluate_on_saved_predictions(tmp_path, top_k):
    task = tie_aware(Tiny())
    task._top_k = top_k
    with pytest.warns(tw.CutWarning) if top_k < 60 else nullcontext():
        found = scores_of(task, prediction_folder=tmp_path)
        report = tw.evaluate(
            RELEVANT, tmp_path / "TinyRetrieval_predictions.json", ["nDCG@10", "RR@5"], oblivious="mteb"
        )
    for key, measure in (("ndcg_at_10", "nDCG@10"), ("mrr_at_5", "RR@5")):
        for name in ("expected", "minimum", "maximum", "bias"):
            assert found[f"{key}_{name}"] == pytest.approx(getattr(report[measure], name), abs=1e-12)


def test_expectation_of_full_scores():
    """From the model's similarities alone, past everything that MTEB does with them."""
    task = tie_aware(Tiny())
    task._top_k = len(CORPUS)
    found = scores_of(task)

    def vectors(texts):
        return Coarse().encode([{"text": list(texts.values())}])

    scores = Coarse().similarity(vectors(QUERIES), vectors(CORPUS)).tolist()
    run = {query: dict(zip(CORPUS, row, strict=True)) for query, row in zip(QUERIES, scores, strict=True)}
    report = tw.evaluate(RELEVANT, run, ["AP@5", "nDCG@10"], complete=True)
    for key, measure in (("map_at_5", "AP@5"), ("ndcg_at_10", "nDCG@10")):
        assert found[f"{key}_expected"] == pytest.approx(report[measure].expected, abs=1e-12)


def test_complete_lists_give_no_warning(recwarn):
    task = tie_aware(Tiny())
    task._top_k = 1000
    scores_of(task)
    assert not [warning for warning in recwarn if warning.category is tw.CutWarning]


def test_chosen_measures():
    found = scores_of(tie_aware(Tiny(), ["ndcg_at_10", "RBP(p=0.8)"]))
    ours = {key for key in found if key.endswith("_expected")}
    assert ours == {"ndcg_at_10_expected", "RBP(p=0.8)_expected"}
    with pytest.raises(tw.MeasureError, match="Unknown measure"):
        tie_aware(Tiny(), ["ndgc_at_10"])


def test_task_is_not_changed():
    task = Tiny()
    ours = tie_aware(task)
    assert isinstance(ours, Tiny)
    assert type(ours).__name__ == "Tiny"
    assert ours.metadata is task.metadata
    assert "ndcg_at_10_expected" not in scores_of(task)
    with pytest.raises(tw.InputError, match="tie-aware already"):
        tie_aware(ours)
    with pytest.raises(tw.InputError, match=r"list is not a retrieval or reranking task.*\[tie_aware\(task\)"):
        tie_aware([task])


def test_task_with_own_scores_and_skipped_first_result():
    class Special(Tiny):
        skip_first_result = True

        def task_specific_scores(self, scores, qrels, results, hf_split, hf_subset):
            return {"length": float(len(results))}

    usual, found = scores_of(Special()), scores_of(tie_aware(Special()))
    assert found["length"] == 8
    for key in ("ndcg_at_10", "recall_at_20", "mrr_at_3"):
        assert found[f"{key}_expected"] + found[f"{key}_bias"] == pytest.approx(usual[key], abs=1e-5)


def test_results_survive_the_cache(tmp_path):
    cache = mteb.ResultCache(cache_path=tmp_path)
    for _ in range(2):
        found = mteb.evaluate(Coarse(), tie_aware(Tiny()), cache=cache, show_progress_bar=False)
        scores = found.task_results[0].scores["test"][0]
        assert scores["ndcg_at_10_minimum"] < scores["ndcg_at_10_expected"] < scores["ndcg_at_10_maximum"]


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(tw.MissingExtraError, match=r"The MTEB adapter needs an extra: pip install 'tiewise\[mteb\]'"):
        tie_aware(None)


# -- predictions ------------------------------------------------------------------------------------------------


def test_saved_predictions(folder):
    usual = scores_of(Tiny())
    path = folder / "TinyRetrieval_predictions.json"
    run = tw.read_run(path)
    assert set(run.queries) == set(QUERIES)
    with pytest.warns(tw.CutWarning):
        report = tw.evaluate(RELEVANT, path, ["nDCG@10", "AP@20", "R@5", "P@3", "RR@10", "Success@1"], oblivious="mteb")
    for key, measure in {
        "ndcg_at_10": "nDCG@10",
        "map_at_20": "AP@20",
        "recall_at_5": "R@5",
        "precision_at_3": "P@3",
        "mrr_at_10": "RR@10",
        "hit_rate_at_1": "Success@1",
    }.items():
        assert report[measure].oblivious == pytest.approx(usual[key], abs=1e-5)


def test_saved_predictions_on_the_command_line(folder):
    command = [sys.executable, "-m", "tiewise", "evaluate", "qrels.json", "TinyRetrieval_predictions.json"]
    options = ["-m", "nDCG@10", "--format", "json"]
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, check=True)
    run = json.loads((folder / "TinyRetrieval_predictions.json").read_text())["default"]["test"]
    expected = tw.evaluate(RELEVANT, run, "nDCG@10", complete=True)["nDCG@10"].expected
    assert str(round(expected, 6)) in done.stdout


# -- models -------------------------------------------------------------------------------------------------------


class Reranking(Tiny):
    top_ranked: ClassVar = {query: list(CORPUS) for query in QUERIES}
    metadata = Tiny.metadata.model_copy(update={"name": "TinyReranking", "type": "Reranking"})


@pytest.mark.parametrize("autocast", [False, True])
def test_high_precision_cross_encoder(tmp_path, autocast):
    tokenizer = tiny.bert_tokenizer(tmp_path)
    tiny.bert(tokenizer).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    model = CrossEncoder(str(tmp_path / "model"), device="cpu", model_kwargs={"dtype": torch.bfloat16})
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        scores_of(tie_aware(Reranking()), high_precision(model), prediction_folder=tmp_path)
    run = tw.read_run(tmp_path / "TinyReranking_predictions.json").to_dict()
    for query, documents in run.items():
        assert len(set(documents.values())) == len(documents), query
