"""The definition of a score, written again for tests; it shares no code with the package.

As a script it scores fixed vectors with every function of the package and prints a digest of all bits, so that
processes with different BLAS kernels, instruction sets and numbers of threads can be compared.
"""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import contextmanager

import numpy as np

FUNCTIONS = ("dot", "cosine", "euclidean")


def dot(x, y):
    return np.cumsum(x.astype("f8") * y.astype("f8"), axis=-1)[..., -1] + 0.0


def score_by_definition(queries, docs, fn: str, dtype: str = "f4"):
    """All scores, for vectors up to float32, and for float64 vectors whose squares are in its range."""
    q, d = queries[:, None], docs[None]
    with np.errstate(all="ignore"):
        if fn == "dot":
            scores = dot(q, d)
        elif fn == "cosine":
            norms = np.sqrt(dot(q, q) * dot(d, d))
            scores = np.where(norms == 0, 0.0, dot(q, d) / norms)
        else:
            difference = q.astype("f8") - d.astype("f8")
            scores = 0.0 - np.sqrt(np.cumsum(difference * difference, axis=-1)[..., -1])
        return scores.astype(dtype)


def head_by_definition(hidden, weight, bias):
    return (dot(hidden[:, None], weight[None]) + bias.astype("f8")).astype("f4")


def maxsim_by_definition(queries, docs):
    products = dot(queries[:, :, None, None], docs[None, None])  # (queries, query tokens, documents, tokens)
    return np.cumsum(products.max(-1), axis=1)[:, -1].astype("f4")


def vectors(dims: int, docs: int = 300, seed: int = 0):
    """Queries and documents, with copies of one document at many positions, and pairs that cancel."""
    rng = np.random.default_rng(seed)
    q, d = rng.normal(size=(48, dims)).astype("f4"), rng.normal(size=(docs, dims)).astype("f4")
    d[rng.choice(np.arange(1, docs), 20, replace=False)] = d[0]
    d[-1] = -d[0]
    q[1] = -q[0]
    return q, d


def judgments(queries: int, docs: int):
    rng = np.random.default_rng(1)
    return {str(i): {str(j): 1 for j in rng.choice(docs, 10, replace=False)} for i in range(queries)}


@contextmanager
def changed_setting(get, put, value):
    """A global setting with another value, which must still have it at the end."""
    before = get()
    put(value)
    try:
        yield
        assert get() == value, "the setting was not restored"
    finally:
        put(before)


def package_digests(library: str) -> dict[str, str]:
    """A digest of all scores of the package, by function."""
    from tiewise import scoring

    digests: dict[str, str] = {}
    for dims in (5, 33, 257, 384):
        q, d = vectors(dims)
        qrels, ids = judgments(len(q), len(d)), [str(i) for i in range(len(d))]
        given = q, d
        if library == "torch":
            import torch

            given = torch.from_numpy(q), torch.from_numpy(d)
        for fn in FUNCTIONS:
            scores = np.asarray(scoring.score(*given, fn=fn))
            digests[f"score {fn} {dims}"] = _digest(scores)
            run = scoring.search(*given, 20, fn=fn)
            digests[f"search {fn} {dims}"] = _digest(
                np.array([score for one in run.to_dict().values() for score in one.values()])
            )
            ties = scoring.tie_groups(*given, qrels, fn=fn)
            digests[f"tie_groups {fn} {dims}"] = _digest(
                ties.score, ties.start, ties.size, ties.lowest, ties.lowest_size
            )
            digests[f"judged_scores {fn} {dims}"] = _digest(scoring.judged_scores(*given, qrels, fn=fn))
            again = scoring.rescore({"3": dict.fromkeys(ids, 1.0)}, *given, fn=fn).to_dict()["3"]
            digests[f"rescore {fn} {dims}"] = _digest(np.array([again[one] for one in ids]))
        digests[f"head {dims}"] = _digest(np.asarray(scoring.head(given[1], given[0][:2], np.float32([0.1, -0.3]))))
        tokens = [one[: len(one) // 4 * 4].reshape(-1, 4, dims) for one in given]
        digests[f"maxsim {dims}"] = _digest(np.asarray(scoring.score(*tokens, fn="maxsim")))
    return digests


def definition_digests() -> dict[str, str]:
    """The same digests from the definition and from simple counting."""
    digests: dict[str, str] = {}
    for dims in (5, 33, 257, 384):
        q, d = vectors(dims)
        qrels = judgments(len(q), len(d))
        for fn in FUNCTIONS:
            scores = score_by_definition(q, d, fn)
            digests[f"score {fn} {dims}"] = _digest(scores)
            top = []
            for row in scores:
                bound = np.sort(row)[::-1][19]
                kept = [(-score, j) for j, score in enumerate(row.astype("f8")) if score >= bound]
                top += [-score for score, _ in sorted(kept)]
            digests[f"search {fn} {dims}"] = _digest(np.array(top))
            own = np.array([[scores[int(i), int(j)] for j in docs] for i, docs in qrels.items()], dtype="f8")
            above = (scores[:, None, :] > own[:, :, None]).sum(-1)
            same = (scores[:, None, :] == own[:, :, None]).sum(-1)
            lowest = scores.min(1)
            size = (scores == lowest[:, None]).sum(1)
            digests[f"tie_groups {fn} {dims}"] = _digest(own, above, same, lowest.astype("f8"), size)
            digests[f"judged_scores {fn} {dims}"] = _digest(own)
            digests[f"rescore {fn} {dims}"] = _digest(scores[3].astype("f8"))
        digests[f"head {dims}"] = _digest(head_by_definition(d, q[:2], np.float32([0.1, -0.3])))
        tokens = [one[: len(one) // 4 * 4].reshape(-1, 4, dims) for one in (q, d)]
        digests[f"maxsim {dims}"] = _digest(maxsim_by_definition(*tokens))
    return digests


def _digest(*arrays) -> str:
    joined = b"".join(np.ascontiguousarray(one).tobytes() for one in arrays)
    return hashlib.sha256(joined).hexdigest()[:16]


if __name__ == "__main__":
    from threadpoolctl import threadpool_info

    result = package_digests(sys.argv[1])
    pools = [one for one in threadpool_info() if one["user_api"] == "blas" and "numpy" in one["filepath"]]
    print(json.dumps({"digests": result, "cores": [one["architecture"] for one in pools]}))
