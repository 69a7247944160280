"""integrations/: the diffs apply to the installed libraries, and these then print what they should."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tiewise as tw

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
pytest.importorskip("mteb", reason="mteb is not installed")

ROOT = Path(__file__).parents[1]


def apply(diff: str, package: str, folder: Path) -> None:
    """Copy the installed package, by links but for the files that the diff changes, and apply the diff to the copy."""
    path = ROOT / "integrations" / diff
    changed = [line[6:] for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("--- a/")]
    source = Path(importlib.util.find_spec(package).origin).parent
    shutil.copytree(source, folder / package, copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__"))
    for name in changed:
        text = (folder / name).read_text(encoding="utf-8")
        (folder / name).unlink()
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    subprocess.run(["git", "apply", str(path)], cwd=folder, check=True)


def run(code: str, folder: Path) -> object:
    paths = os.pathsep.join([str(folder), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def mean_rr(labels: list[int], scores: list[float], k: int) -> float:
    """The mean reciprocal rank over all orders that the scores allow, by enumeration."""
    orders = [
        order
        for order in itertools.permutations(range(len(labels)))
        if all(scores[i] >= scores[j] for i, j in itertools.pairwise(order))
    ]
    ranks = [next(rank for rank, place in enumerate(order, 1) if labels[place]) for order in orders]
    return float(np.mean([1 / rank if rank <= k else 0.0 for rank in ranks]))


def test_sentence_transformers_prints_the_mean_over_orders_of_ties(tmp_path: Path) -> None:
    apply("sentence-transformers-expected-mrr.diff", "sentence_transformers", tmp_path)
    rng = np.random.default_rng(0)
    lists = []
    while len(lists) < 60:
        labels = rng.integers(0, 2, rng.integers(2, 7)).tolist()
        if any(labels):
            lists.append((labels, rng.integers(0, 3, len(labels)).astype(float).tolist()))
    found = run(
        "import json, warnings; warnings.simplefilter('ignore')\n"
        "from sentence_transformers.cross_encoder.evaluation import CrossEncoderRerankingEvaluator as Evaluator\n"
        f"lists = {lists!r}\n"
        "def rr(one, k): return float(Evaluator([], at_k=k).compute_metrics(*one)[0])\n"
        "print(json.dumps([[rr(one, k) for k in (1, 2, 10)] for one in lists]))",
        tmp_path,
    )
    assert np.allclose(found, [[mean_rr(*one, k) for k in (1, 2, 10)] for one in lists], rtol=0, atol=1e-12)


def test_mteb_prints_the_standard_error_of_each_mean(tmp_path: Path) -> None:
    apply("mteb-standard-errors.diff", "mteb", tmp_path)
    saved = tmp_path / "predictions"
    found = run(
        "import json; from test_adapter_mteb import Tiny, scores_of\n"
        f"print(json.dumps(scores_of(Tiny(), prediction_folder={str(saved)!r})))",
        tmp_path,
    )
    from test_adapter_mteb import RELEVANT

    (path,) = saved.rglob("*predictions.json")
    measures = {"ndcg_at_10": "nDCG@10", "map_at_5": "AP@5", "recall_at_3": "R@3", "hit_rate_at_1": "Success@1"}
    report = tw.evaluate(RELEVANT, path, [*measures.values()], oblivious="mteb", complete=True)
    for name, measure in measures.items():
        values = [one.oblivious for one in report.per_query(measure).values()]
        assert found[name] == pytest.approx(np.mean(values), abs=1e-5)  # MTEB rounds
        assert found[f"{name}_se"] == pytest.approx(np.std(values, ddof=1) / len(values) ** 0.5, abs=1e-6)
