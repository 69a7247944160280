"""How often the rank intervals of a leaderboard hold, for all systems at once: a simulation for the page leaderboard.

Systems stand at equal distances. A collection moves each system (the same for all its queries), a query all systems,
and every value has noise. Truth is the rank by the mean over all queries of these collections (*other queries*), or
over all collections (*other collections*). Percentiles of bootstrapped ranks are shown beside the intervals.

python -m experiments.rank_coverage [--trials 400]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tiewise.analysis import simultaneous
from tiewise.analysis.rank_intervals import over_queries, over_units, rank_intervals, unit_means

SYSTEMS, COLLECTIONS, QUERIES = 20, 15, 50
BY_COLLECTION, BY_QUERY, NOISE = 0.015, 0.2, 0.15  # standard deviations
RESAMPLES = 200

Noise = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]  #: with mean 0 and standard deviation 1

NOISES: dict[str, Noise] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "long tails": lambda rng, shape: rng.standard_t(4, shape) / np.sqrt(2),
    "skewed": lambda rng, shape: rng.exponential(1, shape) - 1,
}


class Drawn(NamedTuple):
    """One leaderboard."""

    values: list[np.ndarray]  # (n_queries, n_systems) each
    of_queries: np.ndarray  # the true means for these collections, (n_systems,)
    of_collections: np.ndarray  # for all collections


def draw(rng: np.random.Generator, gap: float, noise: Noise, systems: int = SYSTEMS) -> Drawn:
    """A leaderboard of systems at equal distances."""
    quality = gap * np.arange(systems)
    moved = BY_COLLECTION * noise(rng, (COLLECTIONS, systems))
    values = [
        quality + own + BY_QUERY * rng.standard_normal((QUERIES, 1)) + NOISE * noise(rng, (QUERIES, systems))
        for own in moved
    ]
    return Drawn(values, quality + moved.mean(axis=0), quality)


def true_ranks(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last rank of each system: equal systems share ranks."""
    higher = means > means[:, None] + 1e-12
    lower = means < means[:, None] - 1e-12
    return 1 + higher.sum(axis=1), len(means) - lower.sum(axis=1)


def bootstrap(rng: np.random.Generator, drawn: Drawn, *, collections: bool) -> tuple[np.ndarray, np.ndarray]:
    """The 2.5th and the 97.5th percentile of each system's rank, if queries or collections are drawn again."""
    if collections:
        means = unit_means(drawn.values, range(COLLECTIONS))
        again = rng.multinomial(COLLECTIONS, [1 / COLLECTIONS] * COLLECTIONS, RESAMPLES) @ means
    else:
        again = sum(rng.multinomial(QUERIES, [1 / QUERIES] * QUERIES, RESAMPLES) @ each for each in drawn.values)
    ranks = 1 + (again[:, None, :] > again[:, :, None]).sum(axis=2)
    return np.percentile(ranks, 2.5, axis=0), np.percentile(ranks, 97.5, axis=0)


def cover(gap: float, noise: Noise, trials: int, seed: int = 0) -> dict[str, tuple[float, float, float]]:
    """By target: how often all intervals hold, how many ranks they have in the mean, how often all percentiles hold."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[tuple[bool, float, bool]]] = {"other queries": [], "other collections": []}
    for trial in range(trials):
        drawn = draw(rng, gap, noise)
        units = range(COLLECTIONS)
        queries = over_queries(drawn.values, units)
        collections = over_units(unit_means(drawn.values, units), queries.error)
        cases = {
            "other queries": (queries, drawn.of_queries),
            "other collections": (collections, drawn.of_collections),
        }
        for target, (differences, truth) in cases.items():
            intervals, (first, last) = rank_intervals(differences, 0.95, seed=trial), true_ranks(truth)
            low, high = bootstrap(rng, drawn, collections=target == "other collections")
            found[target].append(
                (
                    bool(((intervals.low <= first) & (last <= intervals.high)).all()),
                    float((intervals.high - intervals.low + 1).mean()),
                    bool(((low <= first) & (last <= high)).all()),
                )
            )
    return {target: tuple(map(float, np.mean(rows, axis=0))) for target, rows in found.items()}


def table(trials: int) -> str:
    """The table that the page summarises."""
    lines = [
        "| target | distance | values | intervals hold | ranks in one | percentiles hold |",
        "|---|---|---|---|---|---|",
    ]
    rows = {}
    for gap in (0.0, 0.002, 0.006):
        for name, noise in NOISES.items():
            for target, (held, width, percentiles) in cover(gap, noise, trials).items():
                rows[target, gap, name] = f"{held:.3f} | {width:.1f} | {percentiles:.3f}"
    lines += [f"| {target} | {gap:g} | {name} | {row} |" for (target, gap, name), row in sorted(rows.items())]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    given = parser.parse_args()
    simultaneous.MAX_DRAWS = simultaneous.MIN_DRAWS = 2000  # fewer draws than a user has
    print(table(given.trials), end="")


if __name__ == "__main__":
    main()
