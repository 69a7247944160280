"""How often rerun bands hold what they promise: coverage on replicates of real systems, for the page on reruns.

A replicate is the same system scored again. One run gets a band from a few queries of another replicate; the numbers of
all further replicates lie in it or not. Averages are over the calibrations whose band is not refused.

python -m experiments.rerun rounding VECTORS.safetensors QRELS        replicates by stochastic rounding of vectors
python -m experiments.rerun logits TENSORS.safetensors               one model at batch sizes 16 and 128
python -m experiments.rerun scores QRELS SCORES.npz...                those of `experiments.rerun_kernels`
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tiewise as tw

MEASURES = ("nDCG@10", "RR@10", "AP", "P@5")
STEPS = (2.0**-10, 2.0**-7, 2.0**-5)
CANDIDATES, TWICE = 200, 20  # documents of a list, and queries scored twice


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def candidates(scores: np.ndarray, qrels: tw.Qrels) -> np.ndarray:
    """The best documents of each query and its relevant ones: the same in all replicates, (n_queries, n)."""
    raised = scores.copy()
    for query, document, label in qrels:
        raised[int(query) - 1, int(document) - 1] += 1e3 * (label > 0)
    return np.argsort(-raised, axis=1)[:, :CANDIDATES]


def as_run(scores: np.ndarray, chosen: np.ndarray) -> tw.Run:
    """A run of these documents; ids are row numbers from 1 on, as in Cranfield."""
    return list_run(np.take_along_axis(scores, chosen, axis=1), chosen)


def list_run(scores: np.ndarray, chosen: np.ndarray) -> tw.Run:
    """A run of lists of scores, (n_queries, n)."""
    n, width = chosen.shape
    return tw.Run.from_columns(np.repeat(np.arange(n), width) + 1, chosen.ravel() + 1, scores.ravel())


def rounded(vectors: np.ndarray, step: float, rng: np.random.Generator) -> np.ndarray:
    """Vectors rounded up or down at random, so that the mean is right."""
    return np.floor(vectors / step + rng.random(vectors.shape)) * step


def coverage(
    qrels: tw.Qrels, runs: Sequence[tw.Run], calibrations: int, kinds: Sequence[str] = (), *, other_kinds: bool = True
) -> dict[str, Any]:
    """By measure: the share of other runs within the band, the share of bands refused, the std of a difference.

    With `kinds` of runs, such as kernels, the second run and the others are of other kinds than the first, or of the
    same kind.
    """
    rng, numbers = np.random.default_rng(1), np.arange(len(runs))
    kind = np.array(kinds) if kinds else numbers
    reports = [tw.evaluate(qrels, run, MEASURES, complete=True) for run in runs]
    table = np.array([[report[name].expected for name in MEASURES] for report in reports])  # (n_runs, n_measures)
    alike = {
        one: found[found != one]
        for one in numbers
        if len(found := np.flatnonzero((kind != kind[one]) == other_kinds)) > 2
    }
    held: dict[str, list[float]] = {name: [] for name in MEASURES}
    for number in range(calibrations):
        first = rng.choice([*alike])
        second = rng.choice(alike[first])
        few = rng.choice(np.array(qrels.queries), min(TWICE, len(qrels.queries)), replace=False).tolist()
        again = runs[second].select_queries(few)
        report = tw.evaluate(qrels, runs[first], MEASURES, rerun=again, complete=True, seed=number)
        others = table[alike[first][alike[first] != second]]
        for column, name in enumerate(MEASURES):
            band = report[name].rerun
            if band is not None:
                inside = (others[:, column] >= band.low - 1e-12) & (others[:, column] <= band.high + 1e-12)
                held[name].append(float(inside.mean()))
    differences = np.concatenate([table[some] - table[one] for one, some in alike.items()])
    spread = np.sqrt(np.mean(differences**2, axis=0))
    return {
        name: (float(np.mean(held[name])) if held[name] else None, 1 - len(held[name]) / calibrations, spread[column])
        for column, name in enumerate(MEASURES)
    }


def show(heading: str, found: dict[str, Any]) -> None:
    cells = (
        f"{'–' if share is None else f'{share:.2f}'} (refused {refused:.0%}, std {spread:.4f})"
        for share, refused, spread in found.values()
    )
    print(f"| {heading} | {' | '.join(cells)} |", flush=True)


def of_rounding(options: argparse.Namespace) -> None:
    from safetensors.numpy import load_file

    vectors = {name: unit(one.astype(np.float64)) for name, one in load_file(options.vectors).items()}
    qrels, rng = tw.read_qrels(options.qrels), np.random.default_rng(0)
    queries, docs = vectors["queries"], vectors["docs"]
    chosen = candidates(queries @ docs.T, qrels)
    for step in STEPS:
        runs = []
        for _ in range(options.replicates):
            runs.append(as_run(rounded(queries, step, rng) @ rounded(docs, step, rng).T, chosen))
        show(f"rounded to 2^{np.log2(step):.0f}", coverage(qrels, runs, options.calibrations))


def of_scores(options: argparse.Namespace) -> None:
    """Different replicates of each precision: another kernel, and the same kernel in other batches."""
    qrels = tw.read_qrels(options.qrels)
    for path in options.scores:
        found = dict(np.load(path))
        chosen = found.pop("candidates").astype(int)
        different = {scores.tobytes(): name for name, scores in reversed(found.items())}
        names = [name for name in found if name in different.values()]
        runs, kernels = [list_run(found[name], chosen) for name in names], [name.split("-")[0] for name in names]
        for what, other_kinds in (("other kernels", True), ("the same kernel", False)):
            heading = f"{path.stem}, {what} ({len(runs)} of {len(found)} differ)"
            show(heading, coverage(qrels, runs, options.calibrations, kernels, other_kinds=other_kinds))


def of_logits(options: argparse.Namespace) -> None:
    """One model at two batch sizes: whether the number of one lies in the band of the other."""
    from safetensors.torch import load_file

    tensors = {name: one.double().numpy() for name, one in load_file(options.tensors).items()}
    query, label, rng = tensors["query"].astype(int), tensors["label"], np.random.default_rng(0)
    docs = np.arange(len(query))
    judged = [one for one in np.unique(query) if 0 < label[query == one].sum() < (query == one).sum()]
    kept = np.isin(query, judged)
    qrels = tw.Qrels.from_columns(query[kept], docs[kept], label[kept])
    for precision in ("fp16", "bf16"):
        logits = [tensors[f"{precision}_bs{batch}_logits"] for batch in (16, 128)]
        scores = [one[:, 1] - one[:, 0] if one.ndim == 2 and one.shape[1] == 2 else one.ravel() for one in logits]
        runs = [tw.Run.from_columns(query[kept], docs[kept], one[kept]) for one in scores]
        held: dict[str, list[bool]] = {name: [] for name in MEASURES}
        differences = dict.fromkeys(MEASURES, 0.0)
        for number in range(options.calibrations):
            run, other = runs if number % 2 else runs[::-1]
            few = rng.choice(np.array(qrels.queries), TWICE, replace=False).tolist()
            value = tw.evaluate(qrels, other, MEASURES, complete=True)
            again = other.select_queries(few)
            report = tw.evaluate(qrels, run, MEASURES, rerun=again, complete=True, seed=number)
            for name in MEASURES:
                band, seen = report[name].rerun, value[name].expected
                differences[name] = abs(seen - report[name].expected)
                if band is not None:
                    held[name].append(band.low - 1e-12 <= seen <= band.high + 1e-12)
        found = {
            name: (
                float(np.mean(held[name])) if held[name] else None,
                1 - len(held[name]) / options.calibrations,
                differences[name],
            )
            for name in MEASURES
        }
        show(f"{precision}, batch sizes 16 and 128", found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calibrations", type=int, default=24)
    commands = parser.add_subparsers(required=True)
    rounding = commands.add_parser("rounding")
    rounding.add_argument("vectors")
    rounding.add_argument("qrels")
    rounding.add_argument("--replicates", type=int, default=30)
    rounding.set_defaults(run=of_rounding)
    kernels = commands.add_parser("scores")
    kernels.add_argument("qrels")
    kernels.add_argument("scores", nargs="+", type=Path)
    kernels.set_defaults(run=of_scores)
    logits = commands.add_parser("logits")
    logits.add_argument("tensors")
    logits.set_defaults(run=of_logits)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
