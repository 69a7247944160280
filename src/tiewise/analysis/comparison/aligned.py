"""One measure of all systems side by side, over the queries that all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.comparison.system import System
from tiewise.data.columns import Floats
from tiewise.errors import InputError
from tiewise.metrics.definition import Measure

__all__ = ["Columns", "aligned"]


@dataclass(frozen=True)
class Columns:
    """The estimates of a measure: a row for each query, a column for each system."""

    queries: tuple[str, ...]
    kept: NDArray[np.bool_]  # (n_judged_queries,): which of all judged queries those are
    scale: float  # from a mean to what is shown: 1, or the number of queries for counts
    expected: Floats  # (n_queries, n_systems)
    minimum: Floats
    maximum: Floats
    variance: Floats
    oblivious: Floats | None

    def mean(self, values: Floats) -> Floats:
        """The mean over queries, as it is shown."""
        return np.asarray(values.mean(axis=0) * self.scale)

    def difference(self, i: int, j: int) -> Floats:
        """The expected difference of two systems in each query."""
        return np.asarray(self.expected[:, i] - self.expected[:, j])


def aligned(systems: Sequence[System], measure: Measure) -> Columns:
    """The columns of a measure."""
    own = [system.kept(measure) for system in systems]
    kept = np.logical_and.reduce(own)
    if not kept.any():
        raise InputError(f"The systems have no query in common for {measure}: there is nothing to compare.")
    found = [system.estimates[measure] for system in systems]
    some = [kept[mask] for mask in own]

    def column(name: str) -> Floats:
        return np.stack([getattr(one, name)[mask] for one, mask in zip(found, some, strict=True)], axis=1)

    queries = tuple(query for query, keep in zip(found[0].queries, some[0].tolist(), strict=True) if keep)
    return Columns(
        queries,
        kept,
        float(len(queries)) if measure.total else 1.0,
        column("expected"),
        column("minimum"),
        column("maximum"),
        column("variance"),
        None if any(one.oblivious is None for one in found) else column("oblivious"),
    )
