"""Sample user code for type checkers: `make types` runs mypy on this file, and nothing of it is executed.

An error that is expected is ignored by its name, and mypy reports one that does not occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import tiewise as tw
from tiewise.analysis.options import OptionNames

if TYPE_CHECKING:
    QRELS = {"q": {"a": 1}}
    RUN = {"q": {"a": 1.0}}

    class Table:
        """Any library's table that exports Arrow data."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return requested_schema

    class Frame:
        """Any library's data frame."""

        @property
        def columns(self) -> list[str]:
            return ["query_id", "doc_id", "score"]

        def __getitem__(self, name: str) -> list[str]:
            return [name]

    def rows() -> Iterator[tuple[str, str, float]]:
        yield "q", "a", 1.0

    def score_all(qrels: tw.QrelsLike, runs: Mapping[str, tw.RunLike], measure: tw.MeasureLike) -> list[float | None]:
        return [tw.evaluate(qrels, run, measure)[measure].expected for run in runs.values()]

    # Every kind of judgments and runs is accepted.
    for qrels in ("qrels.txt", Path("qrels.txt"), QRELS, Table(), Frame(), [("q", "a", 1)], tw.Qrels.from_dict(QRELS)):
        tw.evaluate(qrels, RUN)
    for run in ("run.trec", Path("run.trec"), RUN, Table(), Frame(), rows(), [["q", "a", 1.0]], tw.Run.from_dict(RUN)):
        tw.evaluate(QRELS, run)
        tw.audit(run, qrels=QRELS, reference=run)
        tw.unjudged(QRELS, run, "P@10", missing="skip")
        tw.compare(QRELS, {"A": run, "B": RUN}, [tw.nDCG @ 10, "RR"], judged_only=True)
    tw.evaluate(None, tw.tie_groups(QRELS, {"q": {"a": np.float32(1)}}))
    tw.similarity({"A": RUN, "B": "run.trec"})
    tw.stages(RUN, {"A": RUN, "sets": {"q": {"a", "b"}}})
    tw.write_run(rows(), "run.trec")
    numbers: list[float | None] = score_all(QRELS, {"A": RUN, "B": Path("run.trec")}, tw.nDCG @ 10)
    options: OptionNames = {"missing": "skip", "depth": 10}
    report: tw.Report = tw.evaluate(QRELS, RUN, [tw.nDCG @ 10, "RR"], **options)
    expected: float | None = report["RR"].expected
    scored = tw.scoring.score
    drawn = tw.figures.curve
    bounds: tw.Bounds = tw.rbp("a (b c)", {"a": 1}, p=0.8)
    overlap: tw.Bounds = tw.rbo(["a", {"b", "c"}], [["a"], ["b", "c"]])
    correlation: float | None = tw.tau(range(3), tw.Ranking("0 1 2")).tau_b

    # Mistakes are errors.
    tw.evalute  # type: ignore[attr-defined]  # noqa: B018
    tw.rbo("a", 3)  # type: ignore[arg-type]
    tw.evaluate(3, RUN)  # type: ignore[arg-type]
    tw.evaluate(QRELS, None)  # type: ignore[arg-type]
    tw.evaluate(QRELS, ["a.trec", "b.trec"])  # type: ignore[list-item]
    tw.evaluate(QRELS, {"q": {"a": "high"}})  # type: ignore[arg-type]
    tw.evaluate(QRELS, RUN, 3)  # type: ignore[arg-type]
    tw.evaluate(QRELS, RUN, missing="zeros")  # type: ignore[arg-type]
    tw.evaluate(QRELS, RUN, depht=5)  # type: ignore[call-arg]
    tw.evaluate(tw.Run.from_dict(RUN), tw.Qrels.from_dict(QRELS))  # type: ignore[arg-type]
    tw.unjudged(QRELS, RUN, "P@10", no_relevant="error")  # type: ignore[arg-type]
    tw.compare(QRELS, RUN, "RR")  # type: ignore[arg-type]
    tw.audit(RUN, qrels=3)  # type: ignore[arg-type]
