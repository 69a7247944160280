"""Runs and embeddings in shards, counted by the workers of a Ray cluster.

    from tiewise.adapters import ray
    report = ray.evaluate("qrels.txt", "shards/", ["nDCG@10", "RR@10"])

Counts of shards add up, so a report is equal, to the last bit, to that of the whole run on one machine. Shards may be
cut by query or by document; Tiewise detects which. In the first pass each shard counts for itself and returns the
scores of its judged documents. If no query was in two shards, that is all. Otherwise the judged scores of all shards
are sent to each shard, every shard counts for them, and the counts are added. Rows never leave the worker that reads
them.

`evaluate` takes runs, as files or as a Ray data set; `count` does the same and leaves the measuring to
`tiewise.evaluate`; `evaluate_vectors` takes embeddings and needs no run.
"""

from tiewise.adapters.ray.evaluating import count, evaluate, evaluate_vectors

__all__ = ["count", "evaluate", "evaluate_vectors"]
