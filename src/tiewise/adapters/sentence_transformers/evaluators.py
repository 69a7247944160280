"""The common part of the tie-aware evaluators."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiewise.metrics.estimate import Estimate

__all__ = ["TieAwareEvaluator"]

STATISTICS = ("expected", "minimum", "maximum", "bias")


class TieAwareEvaluator:
    """Adds statistics to the library's numbers, writes them to a file, and makes the expectation the primary metric.

    The library calls `prefix_name_to_metrics` before it stores or returns its numbers: ours are added there.
    """

    _estimates: Mapping[str, Estimate] = {}  # by the library's key without the evaluator's name
    _primary: str | None = None
    name: str
    csv_file: str
    write_csv: bool

    @property
    def primary_metric(self) -> str | None:
        """The key of the number that chooses checkpoints: an expectation."""
        return self._primary

    @primary_metric.setter
    def primary_metric(self, key: str | None) -> None:
        self._primary = key and key.removesuffix("_expected") + "_expected"

    def prefix_name_to_metrics(self, metrics: dict[str, Any], name: str) -> dict[str, Any]:
        """The library's numbers and ours by name."""
        added: dict[str, Any] = {}
        for key, estimate in self._estimates.items():
            if key in metrics:
                added |= _statistics(key, estimate, metrics[key])
        return super().prefix_name_to_metrics(metrics | added, name)  # type: ignore[misc]

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1, *args: Any, **kwargs: Any
    ) -> dict[str, float]:
        """Evaluates a model. Our numbers go to a file of their own beside the library's."""
        metrics: dict[str, float] = super().__call__(model, output_path, epoch, steps, *args, **kwargs)  # type: ignore[misc]
        if output_path is not None and self.write_csv:
            row = {key: value for key, value in metrics.items() if key.rpartition("_")[2] in STATISTICS}
            path = Path(output_path) / self.csv_file.replace("_results", "_ties")
            _append_row(path, {"epoch": epoch, "steps": steps} | row)
        return metrics


def _statistics(key: str, estimate: Estimate, own: Any) -> dict[str, Any]:
    """The statistics of a measure; no bias where the library's number is a text, as for model cards."""
    statistics = {f"{key}_{name}": getattr(estimate, name) for name in STATISTICS[:3]}
    if not isinstance(own, str) and estimate.expected is not None:
        statistics[f"{key}_bias"] = float(own) - estimate.expected
    return statistics


def _append_row(path: Path, row: Mapping[str, Any]) -> None:
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)
