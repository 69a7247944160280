"""How often the intervals of a comparison hold what they should: a simulation, for docs/compare.md.

A large population of queries stands for all there are; its mean difference is the truth. Samples of it are compared as
`tiewise.compare` would compare them. `ci` should hold the expected difference of the population, `ci_order` that of one
random order of ties over as many queries: both in 95 of 100 samples. `level` is how often the test, at .05, finds a
difference where there is none.

python -m experiments.coverage [--trials 2000]
"""

from __future__ import annotations

import argparse
from statistics import NormalDist

import numpy as np

from tiewise.analysis.significance import bootstrap_intervals, p_values

POPULATION, SAMPLES = 200_000, 1000


def populations(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Differences of queries as measures have them: smooth, full of zeros, and of few values."""
    smooth = np.clip(rng.normal(0.02, 0.15, POPULATION), -1, 1)
    zeros = np.where(rng.random(POPULATION) < 0.7, 0.0, rng.normal(0.03, 0.25, POPULATION))
    ranks = 1 / rng.integers(1, 11, (2, POPULATION))  # reciprocal ranks
    return {"nDCG-like": smooth, "70% zeros": zeros, "RR-like": ranks[0] - ranks[1] + 0.01}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    trials = parser.parse_args().trials
    rng = np.random.default_rng(0)
    wide = NormalDist().inv_cdf(0.975)
    print(f"{'differences':<12} {'queries':>7} {'ci':>6} {'order':>6} {'level':>6}")
    for name, population in populations(rng).items():
        truth, spread = population.mean(), 0.1  # the standard deviation that ties add to a query
        for n in (10, 25, 50, 100, 250):
            drawn = population[rng.integers(0, POPULATION, (n, trials))]
            low, high = bootstrap_intervals(drawn, samples=SAMPLES, seed=1)
            ci = np.mean((low <= truth) & (truth <= high))
            half = wide * np.sqrt(drawn.var(axis=0, ddof=1) / n + spread**2 / n)
            deployed = truth + rng.normal(0, spread / np.sqrt(n), trials)  # the order's own deviation, over n queries
            order = np.mean(np.abs(drawn.mean(axis=0) - deployed) <= half)
            alike = drawn * rng.choice([-1.0, 1.0], drawn.shape)  # as likely either way round: no system is better
            level = np.mean(p_values(alike, samples=SAMPLES, seed=2) <= 0.05)
            print(f"{name:<12} {n:>7} {ci:>6.3f} {order:>6.3f} {level:>6.3f}")


if __name__ == "__main__":
    main()
