"""The tables and figures of Moffat, Mackenzie, Mallia & Petri (SIGIR-AP 2024), computed again.

``python -m experiments.rankbiased`` prints what the paper prints beside what Tiewise computes, as Markdown, and draws
Figures 1, 6 and 7. Tables 1 to 3 and the worked examples are exact. Table 4 is a simulation: of two equal rankings of
25 items one is disturbed by 25 random swaps, and measured after each; this is done 1,000 times.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tiewise as tw
from experiments.rankbiased_figures import agreement, chooser
from tiewise import figures
from tiewise.rankings.weights import weight_table

Floats = NDArray[np.float64]
Ranks = NDArray[np.int64]

SEED = 2024

# -- what the paper prints ---------------------------------------------------------------------------------------------

#: Table 1: a reference ranking, the same with ties (under "Ties"), and an observed set with its contributions, φ = 0.6.
REFERENCE = "D07 D04 D11 D12 D10 D15 D06 D22 D19 D28"
TIED_REFERENCE = "(D07 D04 D11) D12 (D10 D15) D06 (D22 D19 D28)"
OBSERVED = {"D06": 0.019, "D23": 0.000, "D10": 0.052, "D07": 0.400, "D04": 0.240}

#: Table 2: the ranks that each set holds, RBR with f = 0.5 and f = 0.3 for k = 3, and Recall@3 from the text.
TABLE_2 = {
    "B1": ((1, 2, 3), 0.500, 0.700, 1.000),
    "B2": ((2, 3, 4), 0.397, 0.469, 0.666),
    "B3": ((3, 4, 5), 0.315, 0.314, 0.333),
    "B4": ((4, 5, 6), 0.250, 0.210, 0.000),
    "B5": ((2, 4, 5, 6), 0.414, 0.431, 0.333),
    "B6": ((1, 2, 5, 7, 10), 0.529, 0.657, 0.666),
}

#: Table 3: an observed permutation of 1 … 10, then τ, RBO and RBA with φ = 0.6, 0.7, 0.8.
TABLE_3 = {
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 10): (1.00, 1.00, 0.99, 0.97, 0.99, 0.97, 0.89),
    (2, 1, 4, 3, 6, 5, 8, 7, 10, 9): (0.78, 0.54, 0.62, 0.70, 0.96, 0.96, 0.89),
    (5, 4, 3, 2, 1, 10, 9, 8, 7, 6): (0.11, 0.23, 0.33, 0.46, 0.78, 0.86, 0.85),
    (6, 7, 8, 9, 10, 1, 2, 3, 4, 5): (-0.11, 0.04, 0.10, 0.22, 0.51, 0.68, 0.77),
    (10, 9, 8, 7, 6, 5, 4, 3, 2, 1): (-1.00, 0.04, 0.10, 0.22, 0.40, 0.60, 0.73),
}
TABLE_3_PHI = (0.6, 0.7, 0.8)

#: Table 4: τ_b between the scores of two measures over the simulated pairs, with φ = 0.7, 0.8, 0.9.
TABLE_4 = {
    ("τ", "RBO"): (0.536, 0.589, 0.659),
    ("τ", "RBA"): (0.680, 0.774, 0.863),
    ("RBO", "RBA"): (0.775, 0.739, 0.718),
}
TABLE_4_PHI = (0.7, 0.8, 0.9)

#: Figure 5 is a picture, but the text gives the mean ranks of the items without a partner, 7.5, 9, 7 and 9.5, and 11
#: items in all. In the order of Algorithm 1 that leaves one reading: nine items each, B's at ranks 5 and 7 and R's at
#: ranks 4 and 8 without a partner. Of the 5,040 ways to pair the other seven, three give the base score .835: one of
#: them is this.
FIGURE_5 = ("a b c d w e x f g", "a c b y d e f z g")


# -- Tables 1 to 3 and the worked examples -----------------------------------------------------------------------------


def table_1() -> str:
    """Table 1: what each item of an observed set adds to RBR."""
    items = list(OBSERVED)
    added = [lower(tw.rbr([item], REFERENCE, phi=0.6)) for item in items]
    rows = [("paper", *(f"{value:.3f}" for value in OBSERVED.values()), "0.711")]
    rows += [("here", *(f"{value:.5f}" for value in added), f"{sum(added):.5f}")]
    return markdown(["", *items, "RBR"], rows)


def table_2() -> str:
    """Table 2: RBR of six sets for two discounts, with Recall@3 from the text below it."""
    ranking = range(1, 11)
    rows = []
    for name, (ranks, *printed) in TABLE_2.items():
        found = [lower(tw.rbr(ranks, ranking, phi=tw.phi_for_discount(f, 3))) for f in (0.5, 0.3)]
        found.append(tw.rankings.recall(ranks, ranking[:3]))
        rows.append((name, " ".join(map(str, ranks)), *beside(printed, found, 3)))
    return markdown(["set", "ranks", "RBR, φ = 0.5^(1/3)", "RBR, φ = 0.3^(1/3)", "Recall@3"], rows)


def table_3() -> str:
    """Table 3: τ, RBO and RBA of five permutations."""
    names = ["τ", *(f"{name} {phi}" for name in ("RBO", "RBA") for phi in TABLE_3_PHI)]
    rows = [(" ".join(map(str, x)), *beside(printed, permuted(x), 2)) for x, printed in TABLE_3.items()]
    return markdown(["observed", *names], rows)


def permuted(observed: Sequence[int]) -> list[float]:
    """τ, then RBO and RBA for the three φ, of a permutation against 1, 2, 3, …: a line of Table 3."""
    reference = range(1, len(observed) + 1)
    measures: list[Callable[..., tw.Bounds]] = [tw.rbo, tw.rba]
    tau = tw.tau(observed, reference).expected
    assert tau is not None
    return [tau, *(lower(measure(observed, reference, phi=phi)) for measure in measures for phi in TABLE_3_PHI)]


def lower(bounds: tw.Bounds) -> float:
    """The base score, in the paper's word: what is unseen counts as absent."""
    assert bounds.lower.expected is not None
    return bounds.lower.expected


def worked_examples() -> str:
    """Numbers that stand in the text, or under a figure."""
    plain, tied = (tw.rbr(OBSERVED, ranking, phi=0.6) for ranking in (REFERENCE, TIED_REFERENCE))
    share = [lower(tw.rbr([item], TIED_REFERENCE, phi=0.6)) for item in ("D07", "D10")]
    pair = tw.rba(*FIGURE_5, phi=0.7)
    assert pair.residual is not None
    tail = 0.7**11
    rows = [
        ("Table 1: RBR", "0.711", lower(plain)),
        ("Eq. 9: its residual", "0.002", plain.residual),
        ("Ties: weight of D07, D04 and D11", "0.261", share[0]),
        ("Ties: weight of D10 and D15", "0.041", share[1]),
        ("Ties: RBR of Table 1 with ties", "0.583", lower(tied)),
        ("Eq. 10: φ for f = 0.5, k = 3", "0.794", tw.phi_for_discount(0.5, 3)),
        ("Eq. 10: φ for f = 0.3, k = 3", "0.669", tw.phi_for_discount(0.3, 3)),
        ("Eq. 10: φ for f = 0.1, k = 10", "0.794", tw.phi_for_discount(0.1, 10)),
        ("Eq. 10: φ for f = 0.05, k = 100", "0.970", tw.phi_for_discount(0.05, 100)),
        ("Figure 5: base score", "0.835", lower(pair)),
        ("Figure 5: residual of the four items", "0.097", pair.residual - tail),
        ("Figure 5: residual of the tail", "0.020", tail),
    ]
    return markdown(["", "paper", "here"], [(what, printed, f"{found:.5f}") for what, printed, found in rows])


# -- Table 4 and Figure 7: the simulation ------------------------------------------------------------------------------


def disturbed(seed: int, sequences: int = 1000, swaps: int = 25, items: int = 25) -> Ranks:
    """The ranks of the items after each swap of two of them, (sequences, swaps, items), beginning with 1, 2, 3, …"""
    rng = np.random.default_rng(seed)
    ranks = np.tile(np.arange(1, items + 1), (sequences, 1))
    found = np.empty((sequences, swaps, items), dtype=np.int64)
    every = np.arange(sequences)
    for step in range(swaps):
        one = rng.integers(0, items, sequences)
        other = (one + rng.integers(1, items, sequences)) % items  # any item but the first
        ranks[every, one], ranks[every, other] = ranks[every, other], ranks[every, one]
        found[:, step] = ranks
    return found


def scores(ranks: Ranks, phi: float) -> dict[str, Floats]:
    """τ, RBO and RBA of many permutations (…, items) against 1, 2, 3, …, all at once.

    RBO and RBA are rounded to 12 digits: the order of a sum would part scores that are equal.
    """
    n = ranks.shape[-1]
    reference = np.arange(1, n + 1)
    discordant = sum((ranks[..., i : i + 1] > ranks[..., i + 1 :]).sum(axis=-1) for i in range(n - 1))
    overlaps = weight_table(phi, n).tail[np.maximum(ranks, reference) - 1].sum(axis=-1)
    aligned = (phi ** ((ranks + reference) / 2)).sum(axis=-1)
    scale = (1 - phi) / phi
    return {
        "τ": 1 - 4 * discordant / (n * (n - 1)),
        "RBO": np.round(overlaps, 12),
        "RBA": np.round(scale * aligned, 12),
    }


def correlations(ranks: Ranks) -> Floats:
    """τ_b between each two of the measures, for each φ: Table 4, (3 pairs, 3 φ)."""
    found = np.empty((len(TABLE_4), len(TABLE_4_PHI)))
    for column, phi in enumerate(TABLE_4_PHI):
        order = {name: as_ranking(values) for name, values in scores(ranks, phi).items()}
        found[:, column] = [tw.tau(order[x], order[y]).tau_b for x, y in TABLE_4]
    return found


def as_ranking(values: Floats) -> tw.Ranking:
    """Points, by their numbers, in the order of their scores; equal ones are tied."""
    return tw.Ranking.from_scores(dict(enumerate(values.ravel().tolist())))


def standard_errors(ranks: Ranks, batches: int = 20) -> Floats:
    """The standard error of each number of Table 4: sequences are independent, so batches of them are too."""
    found = [correlations(part) for part in np.array_split(ranks, batches)]
    return np.std(found, axis=0, ddof=1) / np.sqrt(batches)


def table_4(ranks: Ranks) -> str:
    """Table 4: τ_b between the measures, with the standard error of each number."""
    found, error = correlations(ranks), standard_errors(ranks)
    rows = [
        (f"τ_b({x}, {y})", *(f"{p:.3f} · {v:.3f} ± {e:.3f}" for p, v, e in zip(printed, value, errors, strict=True)))
        for ((x, y), printed), value, errors in zip(TABLE_4.items(), found, error, strict=True)
    ]
    return markdown(["", *(f"φ = {phi}" for phi in TABLE_4_PHI)], rows)


# -- Markdown, and the pictures ----------------------------------------------------------------------------------------


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def beside(printed: Iterable[float], found: Iterable[float], digits: int) -> list[str]:
    """What is printed, and what was found with two digits more."""
    return [f"{p:.{digits}f} · {f:.{digits + 2}f}" for p, f in zip(printed, found, strict=True)]


def tables(ranks: Ranks) -> dict[str, str]:
    """All tables as Markdown, by their titles."""
    return {
        "Table 1": table_1(),
        "Table 2": table_2(),
        "Table 3": table_3(),
        "Table 4": table_4(ranks),
        "Worked examples": worked_examples(),
    }


def pictures(ranks: Ranks) -> dict[str, Any]:
    """The figures by the names of their files."""
    one = {name: values.ravel() for name, values in scores(ranks, 0.7).items()}
    title = "Random swaps from two equal rankings of 25 items, φ = 0.7"
    return {
        "chooser.svg": chooser(),
        "rba-range.svg": figures.rba_range(),
        "tau-rbo-rba.svg": agreement(one["τ"], one["RBO"], one["RBA"], title=title),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables and draw the figures."""
    first_line = str(__doc__).partition("\n")[0]
    options = argparse.ArgumentParser("python -m experiments.rankbiased", description=first_line)
    options.add_argument("--seed", type=int, default=SEED, help="of the simulation (default: %(default)s)")
    options.add_argument("--out", type=Path, default=Path("docs/img"), help="folder for figures (default: %(default)s)")
    chosen = options.parse_args(arguments)
    ranks = disturbed(chosen.seed)
    for title, table in tables(ranks).items():
        print(f"## {title}\n\n{table}\n")
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures(ranks).items():
        figures.save(picture, chosen.out / name)


if __name__ == "__main__":
    main()
