"""Runs whose ties have a known cause, as a benchmark of audits. This module uses nothing of the project.

A low-precision run is made as a scoring pipeline makes one: numbers are rounded to a coarse type before or after a
score function, which is computed in float32, and then printed. In a clean run, rounding made no ties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np

Matrix = np.ndarray  # (lists, documents)
Run = dict[str, dict[str, float]]


def run_of(scores: Matrix) -> Run:
    return {f"q{q}": {f"d{i}": s for i, s in enumerate(row)} for q, row in enumerate(scores.tolist())}


# -- low precision --------------------------------------------------------------------------------------------------


def _integers(bits: int) -> Callable[[Matrix], Matrix]:
    """Symmetric quantisation to whole numbers times one scale."""
    most = 2 ** (bits - 1) - 1

    def rounded(x: Matrix) -> Matrix:
        scale = np.float32(np.abs(x).max() / most)
        return np.clip(np.rint(x / scale), -most - 1, most).astype(np.float32) * scale

    return rounded


def _floats(kind: type) -> Callable[[Matrix], Matrix]:
    return lambda x: x.astype(kind).astype(np.float32)


ROUNDED: dict[str, Callable[[Matrix], Matrix]] = {
    "bfloat16": _floats(ml_dtypes.bfloat16),
    "float16": _floats(np.float16),
    "float8_e4m3": _floats(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": _floats(ml_dtypes.float8_e5m2),
    "int8": _integers(8),
    "int4": _integers(4),
}


def _softmax(x: Matrix) -> Matrix:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _min_max(x: Matrix) -> Matrix:
    low, high = x.min(axis=1, keepdims=True), x.max(axis=1, keepdims=True)
    return (x - low) / (high - low)


def _sigmoid(x: Matrix) -> Matrix:
    return np.float32(1) / (1 + np.exp(-x))


@dataclass(frozen=True)
class Function:
    """A score function, and the numbers it is applied to: cosines or logits."""

    of: str
    apply: Callable[[Matrix], Matrix]


FUNCTIONS = {
    "identity": Function("cosine", lambda x: x),
    "identity of logits": Function("logit", lambda x: x),
    "negated": Function("cosine", lambda x: -x),
    "sigmoid": Function("logit", _sigmoid),
    "softmax": Function("logit", _softmax),
    "log-softmax": Function("logit", lambda x: np.log(_softmax(x))),
    "log-sigmoid": Function("logit", lambda x: -np.log1p(np.exp(-x))),
    "log-odds": Function("probability", lambda p: np.log(p) - np.log1p(-p)),
    "tanh": Function("small logit", np.tanh),
    "log": Function("probability", np.log),
    "exp": Function("small logit", np.exp),
    "1-c": Function("cosine", lambda c: 1 - c),
    "-(1-c)": Function("cosine", lambda c: -(1 - c)),
    "sqrt(2-2c)": Function("cosine", lambda c: np.sqrt(2 - 2 * c)),
    "-sqrt(2-2c)": Function("cosine", lambda c: -np.sqrt(2 - 2 * c)),
    "1/(1+d)": Function("distance", lambda d: 1 / (1 + d)),
    "1/(1+sqrt(2-2c))": Function("cosine", lambda c: 1 / (1 + np.sqrt(2 - 2 * c))),
    "-d": Function("distance", lambda d: -d),
    "min-max": Function("cosine", _min_max),
    "x100": Function("cosine", lambda c: c * np.float32(100)),
    "(x+1)/2": Function("cosine", lambda c: (c + 1) / 2),
    "arccos": Function("cosine", lambda c: 1 - np.arccos(c) / np.float32(np.pi)),
}

PRINTED: dict[str, Callable[[float], float]] = {
    "repr": lambda s: s,
    **{text: (lambda s, text=text: float(text % s)) for text in ("%.6f", "%.4f", "%.3g", "%.4g", "%g")},
}


def numbers(of: str, lists: int, length: int, seed: int) -> Matrix:
    """Outputs of a model in float32."""
    chance = np.random.default_rng(seed)
    centre = chance.normal(size=(lists, 1))
    spread = chance.normal(size=(lists, length))
    if of == "cosine":
        return np.clip(0.35 + 0.08 * centre + 0.12 * spread, -0.99, 0.99).astype(np.float32)
    if of == "distance":
        return np.abs(1.1 + 0.1 * centre + 0.1 * spread).astype(np.float32)
    if of == "probability":
        return np.float32(1) / (1 + np.exp(-(1.0 * centre + 1.5 * spread).astype(np.float32)))
    return {"logit": 1.0, "small logit": 0.3}[of] * (centre - 1 + 2.5 * spread).astype(np.float32)


@dataclass(frozen=True)
class Pipeline:
    """How the scores of a run are made; `rounds` is "before" or "after" the function, or "never"."""

    dtype: str
    function: str
    rounds: str
    printed: str
    lists: int
    length: int
    seed: int

    def scores(self) -> Matrix:
        function, rounded = FUNCTIONS[self.function], ROUNDED.get(self.dtype, lambda x: x)
        x = numbers(function.of, self.lists, self.length, self.seed)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            x = rounded(x) if self.rounds == "before" else x
            x = function.apply(x).astype(np.float32)
            x = rounded(x) if self.rounds == "after" else x
        x = np.nan_to_num(x, nan=0.0).astype(float)
        return x if self.printed == "repr" else np.vectorize(PRINTED[self.printed])(x)


SIZES = ((40, 50), (20, 200), (5, 1000), (1, 5000), (1, 50))


def low_precision(seeds: range) -> Iterator[Pipeline]:
    """Every pipeline that loses precision."""
    for seed in seeds:
        for lists, length in SIZES:
            for dtype in ROUNDED:
                for function in FUNCTIONS:
                    for rounds in ("before", "after"):
                        for printed in PRINTED:
                            yield Pipeline(dtype, function, rounds, printed, lists, length, seed)


# -- clean ----------------------------------------------------------------------------------------------------------


def _bm25(chance: np.random.Generator, lists: int, length: int) -> Matrix:
    """Documents with equal term statistics tie."""
    idf = chance.uniform(2, 8, size=(lists, 3))
    tf, size = chance.integers(0, 4, (lists, length, 3)), chance.integers(5, 12, (lists, length, 1)) / 8
    return (idf[:, None] * tf * 2.2 / (tf + 0.3 + 0.9 * size)).sum(axis=2)


def _duplicated(x: Matrix, chance: np.random.Generator, share: float = 0.1) -> Matrix:
    """Scores in which a share of the documents of each list are copies of others."""
    x = x.copy()
    n = x.shape[1]
    for row in x:
        copies = chance.permutation(n)[: int(share * n)]
        row[copies] = row[chance.integers(0, n, len(copies))]
    return x


def _dense(chance: np.random.Generator, lists: int, length: int) -> Matrix:
    return numbers("cosine", lists, length, int(chance.integers(2**31)))


def _rrf(chance: np.random.Generator, lists: int, length: int) -> Matrix:
    """Reciprocal rank fusion of two rankings; a document may be missing from one."""
    ranks = np.stack([np.stack([chance.permutation(length) + 1 for _ in range(lists)]) for _ in range(2)])
    parts = np.where(ranks <= 0.8 * length, 1 / (60 + ranks), 0)
    return parts.sum(axis=0)


def _trees(chance: np.random.Generator, lists: int, length: int, trees: int = 6, leaves: int = 4) -> Matrix:
    """The sum of a few small regression trees."""
    values = chance.normal(size=(trees, leaves)).astype(np.float32) * np.float32(0.1)
    leaf = chance.integers(0, leaves, (lists, length, trees))
    return np.take_along_axis(values.T, leaf.reshape(-1, trees), axis=0).sum(axis=1).reshape(lists, length)


CLEAN: dict[str, Callable[[np.random.Generator, int, int], Matrix]] = {
    "bm25": _bm25,
    "dense": _dense,
    "dense, copies": lambda c, n, m: _duplicated(_dense(c, n, m), c),
    "dense, many copies": lambda c, n, m: _duplicated(_dense(c, n, m), c, 0.5),
    "sigmoid, copies": lambda c, n, m: _duplicated(_sigmoid(3 * _dense(c, n, m)), c, 0.2),
    "min-max, copies": lambda c, n, m: _duplicated(_min_max(_dense(c, n, m)), c, 0.2),
    "softmax, copies": lambda c, n, m: _duplicated(_softmax(3 * _dense(c, n, m)), c, 0.2),
    "log-softmax, copies": lambda c, n, m: _duplicated(np.log(_softmax(3 * _dense(c, n, m))), c, 0.2),
    "sqrt(2-2c), copies": lambda c, n, m: _duplicated(np.sqrt(2 - 2 * _dense(c, n, m)), c, 0.2),
    "float64, copies": lambda c, n, m: _duplicated(c.normal(size=(n, m)), c, 0.2),
    "reciprocal rank fusion": _rrf,
    "reciprocal ranks": lambda c, n, m: 1 / (60 + np.sort(c.integers(1, m, (n, m)), axis=1)),
    "trees": _trees,
    "many trees": lambda c, n, m: _trees(c, n, m, trees=40, leaves=16),
    "hamming": lambda c, n, m: -c.binomial(384, 0.4, (n, m)).astype(float),
    "votes": lambda c, n, m: c.integers(0, 12, (n, m)).astype(float),
    "overlap": lambda c, n, m: c.binomial(30, 0.3, (n, m)).astype(float),
    "jaccard": lambda c, n, m: (lambda k: k / (60 - k))(c.binomial(30, 0.3, (n, m))),
    "nothing matched": lambda c, n, m: np.where(np.arange(m) < 0.3 * m, _dense(c, n, m) + 1, 0),
    "tf-idf": lambda c, n, m: (c.integers(0, 3, (n, m, 4)) * c.uniform(1, 9, (n, 1, 4))).sum(axis=2),
    "constant": lambda c, n, m: np.full((n, m), 0.37),
}


#: The kinds whose scores are counts, or made from counts or ranks: an audit may say so.
COUNTED = ("hamming", "votes", "overlap", "jaccard", "reciprocal rank fusion", "reciprocal ranks")


@dataclass(frozen=True)
class Clean:
    """A run without ties from rounding: its kind, the type of its scores, and its printing."""

    kind: str
    dtype: str
    printed: str
    lists: int
    length: int
    seed: int

    def exact(self) -> Matrix:
        chance = np.random.default_rng((self.seed, self.lists, self.length, list(CLEAN).index(self.kind)))
        x = CLEAN[self.kind](chance, self.lists, self.length)
        return x.astype(np.float32).astype(float) if self.dtype == "float32" else x.astype(float)

    def scores(self) -> Matrix:
        x = self.exact()
        return x if self.printed == "repr" else np.vectorize(PRINTED[self.printed])(x)

    @property
    def printing_ties(self) -> bool:
        """Whether printing made a good part of the tied pairs."""
        return tied_pairs(self.scores()) > 1.5 * tied_pairs(self.exact())


def tied_pairs(scores: Matrix) -> int:
    sizes = np.concatenate([np.unique(row, return_counts=True)[1] for row in scores])
    return int((sizes * (sizes - 1) // 2).sum())


def clean(seeds: range) -> Iterator[Clean]:
    """Every clean run, in float32 and float64, with all digits and with about six."""
    for seed in seeds:
        for lists, length in SIZES:
            for kind in CLEAN:
                for dtype in ("float32", "float64"):
                    for printed in ("repr", "%.6f", "%g"):
                        yield Clean(kind, dtype, printed, lists, length, seed)
