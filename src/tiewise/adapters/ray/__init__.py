"""Past one machine: runs and embeddings in shards, counted where they lie on the machines of a Ray cluster.

    from tiewise.adapters import ray
    report = ray.evaluate("qrels.txt", "shards/", ["nDCG@10", "RR@10"])

Counts of shards add up, so a report is equal, to the last bit, to that of the whole run on one machine. Shards may be
cut by query or by document, which is found out. In a first pass each shard counts for itself and returns the scores of
its judged documents. If no query was seen in two shards, that is all. Otherwise the judged scores of all shards are
sent to each, every shard counts for them, and the counts are summed. Rows never leave the machine that reads them.

`evaluate` takes runs, as files or as a Ray data set; `count` does the same and leaves the measuring to
`tiewise.evaluate`; `evaluate_vectors` takes embeddings, and needs no run at all.
"""

from tiewise.adapters.ray.evaluating import count, evaluate, evaluate_vectors

__all__ = ["count", "evaluate", "evaluate_vectors"]
