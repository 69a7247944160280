"""What type checkers see of the package: `make types` has mypy read this, and nothing of it runs.

An error that is expected is ignored by its name, and mypy reports one that does not occur.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tiewise as tw

if TYPE_CHECKING:
    tw.evalute  # type: ignore[attr-defined]  # noqa: B018
    report: tw.Report = tw.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, [tw.nDCG @ 10, "RR"], complete=True)
    expected: float | None = report["RR"].expected
    scored = tw.scoring.score
    drawn = tw.figures.curve
    bounds: tw.Bounds = tw.rbp("a (b c)", {"a": 1}, p=0.8)
    overlap: tw.Bounds = tw.rbo(["a", {"b", "c"}], [["a"], ["b", "c"]])
    correlation: float | None = tw.tau(range(3), tw.Ranking("0 1 2")).tau_b
    tw.rbo("a", 3)  # type: ignore[arg-type]
    tw.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, depht=5)  # type: ignore[call-arg]
