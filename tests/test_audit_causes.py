"""The causes that an audit names, on runs with a known cause from `audit_pipelines`.

`python tests/test_audit_causes.py 2000` prints tables of causes for 2,000 rounded and 2,000 unrounded runs.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

import numpy as np
import pytest

import tiewise as tw

ml_dtypes = pytest.importorskip("ml_dtypes")

from audit_pipelines import (  # noqa: E402
    CLEAN,
    COUNTED,
    FUNCTIONS,
    PRINTED,
    ROUNDED,
    SIZES,
    Clean,
    Pipeline,
    clean,
    low_precision,
    numbers,
    run_of,
)

SMALL = [size for size in SIZES if size[0] * size[1] < 5000]  # the largest sizes take longest and are the easiest


def audit_of(made: Pipeline | Clean) -> tw.Audit:
    return tw.audit(run_of(made.scores()))


# -- rounded ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", FUNCTIONS)
def test_low_precision_is_never_called_genuine_or_another_type(function):
    """Each type, rounded before and after the function, with a random printing and size."""
    chance = random.Random(function)
    for dtype in ROUNDED:
        for rounds in ("before", "after"):
            made = Pipeline(dtype, function, rounds, chance.choice(list(PRINTED)), *chance.choice(SMALL), 7)
            found = audit_of(made)
            assert found.cause != "genuine", made
            assert found.precision in (None, "low precision", dtype), made


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3", "float8_e5m2"])
@pytest.mark.parametrize("function", [name for name in FUNCTIONS if name not in ("softmax", "log-softmax", "min-max")])
def test_the_type_behind_a_function_is_named(function, dtype):
    found = audit_of(Pipeline(dtype, function, "before", "repr", 20, 200, 8))
    assert found.distinct < 10 or (found.cause, found.precision) == ("precision", dtype)


@pytest.mark.parametrize("function", ["softmax", "log-softmax", "min-max"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3", "int8"])
def test_functions_of_whole_lists_leave_even_steps(function, dtype):
    assert audit_of(Pipeline(dtype, function, "before", "repr", 20, 200, 9)).cause == "scaled"


@pytest.mark.parametrize("function", ["identity", "1-c", "tanh", "sigmoid", "log-odds", "log", "1/(1+d)", "x100"])
@pytest.mark.parametrize("printed", ["repr", "%.6f"])
def test_integers_times_a_scale_come_in_even_steps(function, printed):
    found = audit_of(Pipeline("int8", function, "before", printed, 20, 200, 10))
    assert found.cause == "scaled" and "come in even steps" in found.reason
    assert "rounded or counted" in found.grid_evidence and found.precision is None


@pytest.mark.parametrize("of", ["cosine", "logit", "probability", "distance"])
@pytest.mark.parametrize("text", ["%.2g", "%.3g", "%.4g"])
def test_few_digits_are_the_cause(of, text):
    """Not only few decimals: the steps of significant digits change with each power of ten."""
    scores = np.vectorize(lambda s: float(text % s))(numbers(of, 5, 1000, 11).astype(float))
    found = tw.audit(run_of(scores))
    assert found.cause == "decimals" and "have at most" in found.reason and found.precision is None


def test_gaps_between_scores_show_rounding_behind_an_unknown_function():
    def unknown(x: np.ndarray) -> np.ndarray:
        return np.log1p(np.cbrt(x + 2)) + x**3 / 7

    coarse = ROUNDED["bfloat16"](numbers("cosine", 20, 200, 12))
    found = tw.audit(run_of(unknown(coarse).astype(float)))
    assert found.cause == "unclear" and found.near_share < 0.2
    assert "keep apart as rounded numbers or counts do" in found.reason and "low precision" in found.remedy
    copies = numbers("cosine", 20, 200, 12)
    copies[:, ::5] = copies[:, 1::5]
    honest = tw.audit(run_of(unknown(copies).astype(float)))
    assert honest.cause == "genuine" and honest.near_share == pytest.approx(1, abs=0.3)
    assert honest.to_dict()["near_share"] == honest.near_share


# -- not rounded --------------------------------------------------------------------------------------------------


def wrongly_called(made: Clean, found: tw.Audit) -> bool:
    """Whether a run without ties from rounding is called rounded, unless its printing made ties."""
    if found.precision or found.cause == "precision":
        return True
    if found.cause in ("scaled", "steps", "integer", "few"):
        return made.kind not in COUNTED
    if found.cause in ("decimals", "float32", "saturation"):
        return not made.printing_ties
    return (found.cause == "constant") != (made.kind == "constant")


@pytest.mark.parametrize("kind", CLEAN)
def test_unrounded_runs_are_never_called_rounded(kind):
    chance = random.Random(kind)
    for dtype in ("float32", "float64"):
        for printed in ("repr", "%.6f", "%g"):
            made = Clean(kind, dtype, printed, *chance.choice(SMALL), 13)
            found = audit_of(made)
            assert not wrongly_called(made, found), (made, found.cause)


@pytest.mark.parametrize("kind", ["bm25", "tf-idf", "nothing matched", *(kind for kind in CLEAN if "copies" in kind)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_genuine_ties_are_called_genuine_if_there_are_enough(kind, dtype):
    found = audit_of(Clean(kind, dtype, "repr", 20, 200, 14))
    assert found.cause == "genuine", (kind, found.cause, found.near_share)


# -- the whole table ----------------------------------------------------------------------------------------------


def table(title: str, rows: dict[str, Counter[str]]) -> None:
    causes = sorted({cause for row in rows.values() for cause in row})
    print(f"\n{title:24}", *(f"{cause[:9]:>9}" for cause in causes))
    for name, row in rows.items():
        print(f"{name:24}", *(f"{row[cause] or '·':>9}" for cause in causes))


def main(number: int) -> None:
    chance = random.Random(0)
    rounded: dict[str, dict[str, Counter[str]]] = {
        "dtype": {},
        "function": {},
        "rounds": {},
        "printed": {},
        "length": {},
    }
    wrong = 0
    for made in chance.sample(list(low_precision(range(3))), number):
        found = audit_of(made)
        wrong += found.precision not in (None, "low precision", made.dtype)
        for part, rows in rounded.items():
            rows.setdefault(str(getattr(made, part)), Counter())[str(found.cause)] += 1
    for part, rows in rounded.items():
        table(f"rounded, by {part}", rows)
    kinds: dict[str, Counter[str]] = {}
    alarms = 0
    every = list(clean(range(3)))
    for made in chance.sample(every, min(number, len(every))):
        found = audit_of(made)
        alarms += wrongly_called(made, found)
        kinds.setdefault(made.kind, Counter())[str(found.cause)] += 1
    table("not rounded, by kind", kinds)
    print(f"\nanother type named: {wrong}; called rounded though not: {alarms}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
