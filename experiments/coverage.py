"""How often bounds, intervals and tests hold what they promise: simulations for the pages compare and precisions.

Differences are drawn from distributions that measures have: few queries that lose much, skewed, of few values. None is
made symmetric, because a test by sign flips is exact for symmetric ones whatever it does.

python -m experiments.coverage [--trials 400]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy import stats

from tiewise.analysis import simultaneous
from tiewise.analysis.significance import loss_bounds, permutation_test, queries_for_loss

Draw = Callable[[np.random.Generator, int], np.ndarray]  # (n_queries, n_rows)


def lose_uniform(share: float, rows: int = 1) -> Draw:
    """A share of the queries loses between 0 and 1."""
    return lambda rng, n: -1.0 * (rng.random((n, rows)) < share) * rng.random((n, rows))


def lose_all(share: float, rows: int = 1) -> Draw:
    """A share of the queries loses 1."""
    return lambda rng, n: -1.0 * (rng.random((n, rows)) < share)


def skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    """+.02 in 96 % of queries, −.48 in 4 %: the mean is 0."""
    return np.where(rng.random((n, 1)) < 0.04, -0.48, 0.02)


def dense_and_sparse(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.hstack([rng.normal(-0.005, 0.05, (n, 4)), lose_uniform(0.04, 2)(rng, n)])


SIZES = np.linspace(0.2, 1.0, 8)


def correlated(rng: np.random.Generator, n: int) -> np.ndarray:
    loses = rng.random((n, 1)) < 0.1
    return np.maximum(-1.0 * loses * rng.random((n, 1)) * SIZES * (0.5 + rng.random((n, 8))), -1.0)


#: Of each case the draws, and the mean of each row in the long run (of the correlated rows, after they are cut at −1).
LOSSES: dict[str, tuple[Draw, np.ndarray, tuple[int, ...]]] = {
    "5% lose U(0, 1), one row": (lose_uniform(0.05), np.array([-0.025]), (20, 50, 200)),
    "4% lose 1, one row": (lose_all(0.04), np.array([-0.04]), (20, 50, 200)),
    "4 dense rows, 2 sparse": (dense_and_sparse, np.array([-0.005] * 4 + [-0.02] * 2), (20, 50, 200)),
    "8 correlated rows, 10% lose": (
        correlated,
        correlated(np.random.default_rng(1), 2_000_000).mean(axis=0),
        (20, 50, 200),
    ),
    "+.02 in 96%, −.48 in 4%": (skewed, np.zeros(1), (20, 50, 200)),
    "8 rows, 2% lose 1": (lose_all(0.02, 8), np.full(8, -0.02), (100, 200, 500)),
}


def cover_losses(rng: np.random.Generator, trials: int) -> None:
    """How often the lower bounds of all rows hold."""
    print("Lower bounds of all rows hold (one more query that loses 1), at least .95")
    for name, (draw, truth, sizes) in LOSSES.items():
        found = []
        for n in sizes:
            held = [bool((loss_bounds(draw(rng, n), seed=trial)[0] <= truth + 1e-12).all()) for trial in range(trials)]
            found.append(f"n={n}: {np.mean(held):.3f}")
        print(f"  {name:<30} {'  '.join(found)}")


def false_keeps() -> None:
    """How often a row that loses exactly the largest loss is said to keep: exact, if a query loses 1 or nothing."""
    print("A row that loses just max_loss is said to keep, at most (one row, a query loses 1 or nothing; exact)")
    for n in (20, 50, 100, 265, 717):
        lower = []
        for losing in range(n + 1):
            values = np.zeros((n, 1))
            values[:losing] = -1.0
            lower.append(float(loss_bounds(values)[0][0]))
        shares = np.linspace(0.5 / n, 12 / n, 200)
        chances = (stats.binom.pmf(np.arange(n + 1), n, share) @ (np.array(lower) > -share) for share in shares)
        print(f"  n={n}: {max(chances):.3f}")
    losses = ", ".join(f"{loss:g} from {queries_for_loss(loss):,}" for loss in (0.02, 0.01, 0.005, 0.002))
    print(f"  without a loss, queries can show one below {losses} queries on")


def levels(rng: np.random.Generator, trials: int) -> None:
    """How often the permutation test finds a difference at .05 where there is none."""
    print("Level of the permutation test at .05, where the mean difference is 0")
    cases: dict[str, Draw] = {
        "symmetric (normal)": lambda rng, n: rng.normal(0, 0.15, (n, 1)),
        "+.02 in 96%, −.48 in 4%": skewed,
    }
    for name, draw in cases.items():
        found = []
        for n in (10, 25, 50, 100, 250):
            drawn = [permutation_test(draw(rng, n)[:, 0], seed=2) <= 0.05 for _ in range(trials)]
            found.append(f"n={n}: {np.mean(drawn):.2f}")
        print(f"  {name:<30} {'  '.join(found)}")


def equal_runs(rng: np.random.Generator, n: int, runs: int) -> np.ndarray:
    """Equal runs that share the difficulty of queries; their errors have different sizes."""
    return rng.random((n, 1)) + rng.normal(0, 1, (n, runs)) * np.linspace(0.05, 0.3, runs)


def alike_runs(rng: np.random.Generator, n: int, runs: int) -> np.ndarray:
    """Equal runs whose errors have one size."""
    return rng.random((n, 1)) + rng.normal(0, 0.2, (n, runs))


def reciprocal_ranks(rng: np.random.Generator, n: int, runs: int) -> np.ndarray:
    """Reciprocal ranks of one document, which half of the queries miss."""
    return np.where(rng.random((n, runs)) < 0.5, 1 / rng.integers(1, 11, (n, runs)), 0.0)


def cover_families(rng: np.random.Generator, trials: int) -> None:
    """How often the best of equal runs is falsely shown to be better, and how often all intervals hold (1 − that)."""
    print(
        "The best of equal runs is shown to be better than another, at most .05; all intervals of pairs hold otherwise"
    )
    simultaneous.MAX_DRAWS = simultaneous.MIN_DRAWS = 2000
    for draw in (equal_runs, alike_runs, reciprocal_ranks):
        for test in simultaneous.TESTS:
            for runs in (3, 6, 10):
                found = []
                for n in (10, 25, 50, 200):
                    false = 0
                    for trial in range(trials):
                        values = draw(rng, n, runs)
                        family = simultaneous.Family([values], [np.ones(n, dtype=bool)], test=test, seed=trial)
                        false += bool(family.shown().any())
                    found.append(f"n={n}: {false / trials:.3f}")
                print(f"  {draw.__name__:<17} {test:<6} {runs:>2} runs  {'  '.join(found)}", flush=True)


def cover_intervals(rng: np.random.Generator, trials: int) -> None:
    """How often 95% intervals of one mean difference, and of that in one order of ties, hold it."""
    print("95% intervals of one mean difference (Student's t), and in one order of ties (ci_order)")
    ranks = 1 / rng.integers(1, 11, (2, 200_000))
    populations = {
        "normal": rng.normal(0.02, 0.15, 200_000),
        "70% zeros": np.where(rng.random(200_000) < 0.7, 0.0, rng.normal(0.03, 0.25, 200_000)),
        "reciprocal ranks": ranks[0] - ranks[1],
    }
    of_order = 0.1  # the standard deviation that ties add to a query
    for name, population in populations.items():
        for n in (3, 10, 25, 50, 250):
            drawn = population[rng.integers(0, len(population), (n, trials))]
            truth, mean = population.mean(), drawn.mean(axis=0)
            of_queries = drawn.var(axis=0, ddof=1) / n
            variance = of_queries + of_order**2 / n
            freedom = (n - 1) * (variance / np.maximum(of_queries, 1e-100)) ** 2
            off = np.abs(mean - truth - rng.normal(0, of_order / np.sqrt(n), trials)) / np.sqrt(variance)
            plain = np.abs(mean - truth) / np.sqrt(np.maximum(of_queries, 1e-100))
            print(
                f"  {name:<17} n={n:<4} ci {np.mean(plain <= stats.t.ppf(0.975, n - 1)):.3f}  "
                f"ci_order {np.mean(off <= stats.t.ppf(0.975, freedom)):.3f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    trials = parser.parse_args().trials
    rng = np.random.default_rng(0)
    cover_losses(rng, trials)
    false_keeps()
    levels(rng, trials)
    cover_families(rng, trials)
    cover_intervals(rng, 10 * trials)


if __name__ == "__main__":
    main()
