"""The definition of a score, word for word, for tests; nothing of it is shared with the package.

As a script it scores fixed vectors with every function of the package and prints a digest of all bits, so that
processes with different BLAS kernels, instruction sets and numbers of threads can be compared.
"""

from __future__ import annotations

import hashlib
import json
import sys

import numpy as np

FUNCTIONS = ("dot", "cosine", "euclidean")


def dot(x, y):
    return np.cumsum(x.astype("f8") * y.astype("f8"), axis=-1)[..., -1] + 0.0


def defined(queries, docs, fn: str, dtype: str = "f4"):
    """All scores of vectors up to float32."""
    q, d = queries[:, None], docs[None]
    with np.errstate(all="ignore"):
        if fn == "dot":
            found = dot(q, d)
        elif fn == "cosine":
            norms = np.sqrt(dot(q, q) * dot(d, d))
            found = np.where(norms == 0, 0.0, dot(q, d) / norms)
        else:
            apart = q.astype("f8") - d.astype("f8")
            found = 0.0 - np.sqrt(np.cumsum(apart * apart, axis=-1)[..., -1])
        return found.astype(dtype)


def defined_head(hidden, weight, bias):
    return (dot(hidden[:, None], weight[None]) + bias.astype("f8")).astype("f4")


def defined_maxsim(queries, docs):
    every = dot(queries[:, :, None, None], docs[None, None])  # (queries, query tokens, documents, tokens)
    return np.cumsum(every.max(-1), axis=1)[:, -1].astype("f4")


def vectors(dims: int, docs: int = 300, seed: int = 0):
    """Queries and documents, with copies of documents at many places, and pairs that cancel."""
    chance = np.random.default_rng(seed)
    q, d = chance.normal(size=(48, dims)).astype("f4"), chance.normal(size=(docs, dims)).astype("f4")
    d[chance.choice(np.arange(1, docs), 20, replace=False)] = d[0]
    d[-1] = -d[0]
    q[1] = -q[0]
    return q, d


def judgments(queries: int, docs: int):
    chance = np.random.default_rng(1)
    return {str(i): {str(j): 1 for j in chance.choice(docs, 10, replace=False)} for i in range(queries)}


def bits_of_package(library: str) -> dict[str, str]:
    """A digest of all scores of the package, by function."""
    from tiewise import scoring

    found: dict[str, str] = {}
    for dims in (5, 33, 257, 384):
        q, d = vectors(dims)
        qrels, ids = judgments(len(q), len(d)), [str(i) for i in range(len(d))]
        given = q, d
        if library == "torch":
            import torch

            given = torch.from_numpy(q), torch.from_numpy(d)
        for fn in FUNCTIONS:
            scores = np.asarray(scoring.score(*given, fn=fn))
            found[f"score {fn} {dims}"] = _digest(scores)
            run = scoring.search(*given, 20, fn=fn)
            found[f"search {fn} {dims}"] = _digest(
                np.array([score for one in run.to_dict().values() for score in one.values()])
            )
            ties = scoring.tie_groups(*given, qrels, fn=fn)
            found[f"tie_groups {fn} {dims}"] = _digest(ties.score, ties.start, ties.size, ties.floor, ties.floor_size)
            found[f"judged_scores {fn} {dims}"] = _digest(scoring.judged_scores(*given, qrels, fn=fn))
            again = scoring.rescore({"3": dict.fromkeys(ids, 1.0)}, *given, fn=fn).to_dict()["3"]
            found[f"rescore {fn} {dims}"] = _digest(np.array([again[one] for one in ids]))
        found[f"head {dims}"] = _digest(np.asarray(scoring.head(given[1], given[0][:2], np.float32([0.1, -0.3]))))
        tokens = [one[: len(one) // 4 * 4].reshape(-1, 4, dims) for one in given]
        found[f"maxsim {dims}"] = _digest(np.asarray(scoring.score(*tokens, fn="maxsim")))
    return found


def bits_of_definition() -> dict[str, str]:
    """The same from the definition and from plain counting."""
    found: dict[str, str] = {}
    for dims in (5, 33, 257, 384):
        q, d = vectors(dims)
        qrels = judgments(len(q), len(d))
        for fn in FUNCTIONS:
            scores = defined(q, d, fn)
            found[f"score {fn} {dims}"] = _digest(scores)
            top = []
            for row in scores:
                bound = np.sort(row)[::-1][19]
                kept = [(-score, j) for j, score in enumerate(row.astype("f8")) if score >= bound]
                top += [-score for score, _ in sorted(kept)]
            found[f"search {fn} {dims}"] = _digest(np.array(top))
            own = np.array([[scores[int(i), int(j)] for j in docs] for i, docs in qrels.items()], dtype="f8")
            above = (scores[:, None, :] > own[:, :, None]).sum(-1)
            same = (scores[:, None, :] == own[:, :, None]).sum(-1)
            floor = scores.min(1)
            size = (scores == floor[:, None]).sum(1)
            found[f"tie_groups {fn} {dims}"] = _digest(own, above, same, floor.astype("f8"), size)
            found[f"judged_scores {fn} {dims}"] = _digest(own)
            found[f"rescore {fn} {dims}"] = _digest(scores[3].astype("f8"))
        found[f"head {dims}"] = _digest(defined_head(d, q[:2], np.float32([0.1, -0.3])))
        tokens = [one[: len(one) // 4 * 4].reshape(-1, 4, dims) for one in (q, d)]
        found[f"maxsim {dims}"] = _digest(defined_maxsim(*tokens))
    return found


def _digest(*arrays) -> str:
    joined = b"".join(np.ascontiguousarray(one).tobytes() for one in arrays)
    return hashlib.sha256(joined).hexdigest()[:16]


if __name__ == "__main__":
    from threadpoolctl import threadpool_info

    digests = bits_of_package(sys.argv[1])
    pools = [one for one in threadpool_info() if one["user_api"] == "blas" and "numpy" in one["filepath"]]
    print(json.dumps({"digests": digests, "cores": [one["architecture"] for one in pools]}))
