"""examples/tie_aware.py, the file to carry away, gives what the package gives."""

from __future__ import annotations

import doctest
import runpy
from pathlib import Path

import numpy as np
import pytest

import tiewise as tw

PATH = Path(__file__).parents[1] / "examples" / "tie_aware.py"
FILE = runpy.run_path(str(PATH))
CALLS = {
    "Hits": "hits",
    "P": "precision",
    "R": "recall",
    "F1": "f1",
    "nDCG": "ndcg",
    "RR": "reciprocal_rank",
    "AP": "average_precision",
}
TAKES_UNRETRIEVED = {"R", "F1", "nDCG", "AP"}


@pytest.mark.parametrize("cutoff", [None, 1, 3, 10])
def test_the_file_equals_the_engine_on_random_lists(cutoff: int | None) -> None:
    rng = np.random.default_rng(1 if cutoff is None else cutoff)
    lists, qrels, run = {}, {}, {}
    for query in map(str, range(25_000)):
        size, lost = rng.integers(1, 13), rng.integers(0, 4)
        scores = rng.integers(0, rng.integers(1, 8), size).astype(float)
        labels = rng.integers(-1, 4, size + lost) * (rng.random(size + lost) < 0.5)
        lists[query] = scores.tolist(), labels[:size].tolist(), labels[size:].tolist()
        qrels[query] = {str(doc): int(label) for doc, label in enumerate(labels)}
        run[query] = {str(doc): float(score) for doc, score in enumerate(scores)}
    at = "" if cutoff is None else f"@{cutoff}"
    names = [name for name in CALLS if at or name not in {"P", "F1", "Hits"}]
    report = tw.evaluate(tw.Qrels.from_dict(qrels), tw.Run.from_dict(run), [name + at for name in names], complete=True)
    for name in names:
        call = FILE[CALLS[name]]
        ours = report.per_query(name + at)
        found = np.array(
            [
                call(scores, labels, cutoff, *((lost,) if name in TAKES_UNRETRIEVED else ()))
                for scores, labels, lost in lists.values()
            ]
        )
        expected = np.array([(ours[q].expected, ours[q].minimum, ours[q].maximum) for q in lists])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, err_msg=name)


def test_the_file_is_small_and_its_example_runs() -> None:
    text = PATH.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    test = doctest.DocTestParser().get_doctest(FILE["__doc__"], FILE, "tie_aware", str(PATH), 0)
    assert doctest.DocTestRunner().run(test).failed == 0 and test.examples


def test_whole_lists_and_large_groups() -> None:
    assert FILE["precision"]([2, 1, 1], [1, 0, 1]).expected == pytest.approx(2 / 3)
    scores, labels = [0.0] * 100_000, [1, 1, 1] + [0] * 99_997
    run, qrels = {"q": dict.fromkeys(map(str, range(100_000)), 0.0)}, {"q": {"0": 1, "1": 1, "2": 1}}
    for name in ("RR", "AP@50000", "nDCG@50000"):
        cutoff = 50_000 if "@" in name else None
        ours = tw.evaluate(qrels, run, [name], complete=True)[name]
        theirs = FILE[CALLS[name.partition("@")[0]]](scores, labels, cutoff)
        assert theirs == pytest.approx((ours.expected, ours.minimum, ours.maximum), abs=1e-12)


@pytest.mark.parametrize("bad", [([1.0], [1, 0]), ([float("nan")], [1]), ([[1.0]], [[1]])])
def test_bad_lists_are_refused(bad: tuple[list[float], list[int]]) -> None:
    with pytest.raises(ValueError, match="same length"):
        FILE["hits"](*bad)
    with pytest.raises(ValueError, match="at least 1"):
        FILE["hits"]([1.0], [1], 0)


def test_empty_lists() -> None:
    for name in CALLS.values():
        assert FILE[name]([], [], 5) == (0, 0, 0)
