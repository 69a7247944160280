"""`python -m benchmarks.ray [--workers 2] [--out benchmarks/results/ray.json]`: what evaluating in shards costs.

Run: generated runs in shards, split by query and by document, on a Ray cluster of this machine. The same judgments with
more and more rows show that bytes moved do not grow with rows; more judgments and more shards show what they do grow
with. Every report is compared with that of the whole run first. Simulated: the sums of a thousand shards for a million
judged pairs. The counts of a few shards are generated and added up in one process; the others cost the same.
`docs/scale.md` takes its figures from the file that this writes: run it again, then `make docs`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pickle
import platform
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import tiewise as tw
from tiewise.adapters import ray as sharded
from tiewise.adapters.ray.cluster import add_counts
from tiewise.adapters.ray.shards import RunCounter
from tiewise.data.judgments import Qrels
from tiewise.ties.shards import Counts, Total

MEASURES = ["nDCG@10", "AP", "RR@10"]
ORDERS = {"float64": ("docid-desc",)}


def make_shards(
    folder: Path, queries: int, depth: int, judged: int, shards: int, cut: str
) -> tuple[dict[str, Any], list[Path]]:
    """Judgments and a run in shards. Scores have four decimals, so that some tie."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    files = [folder / f"part-{number:04}.trec" for number in range(shards)]
    lines: list[list[str]] = [[] for _ in files]
    qrels = {}
    for query in range(queries):
        docs, scores = rng.permutation(4 * depth)[:depth], np.sort(rng.random(depth).round(4))[::-1]
        qrels[f"q{query}"] = {f"D{doc:08}": int(doc) % 3 for doc in docs[:: depth // judged][:judged]}
        where = np.full(depth, query % shards) if cut == "query" else docs % shards
        for doc, score, rank, shard in zip(docs, scores, range(1, depth + 1), where, strict=True):
            lines[shard].append(f"q{query} Q0 D{doc:08} {rank} {score} made\n")
    for path, some in zip(files, lines, strict=True):
        path.write_text("".join(some))
    return qrels, files


def measure(queries: int, depth: int, judged: int, shards: int, cut: str) -> dict[str, Any]:
    """One evaluation in shards, compared with that of the whole run."""
    with tempfile.TemporaryDirectory() as name:
        qrels, files = make_shards(Path(name) / "shards", queries, depth, judged, shards, cut)
        clock_start = time.perf_counter()
        run = sharded.count(qrels, files, MEASURES)
        spent = time.perf_counter() - clock_start
        whole = Path(name) / "whole.trec"
        whole.write_bytes(b"".join(path.read_bytes() for path in files))
        ours, theirs = (tw.evaluate(*given, MEASURES, complete=True) for given in ((None, run), (qrels, whole)))
        assert run.cut == cut
        assert ours.to_dict(per_query=True)["queries"] == theirs.to_dict(per_query=True)["queries"]
        size = whole.stat().st_size
    pairs = queries * judged
    return {"cut": cut, "rows": queries * depth, "pairs": pairs, "shards": shards, "bytes": size} | {
        "moved": run.moved,
        "seconds": spent,
    }


def line_ns(lines: int = 400_000) -> float:
    """Nanoseconds a line of one pass over a shard, in one process: reading and counting. The best of three."""
    with tempfile.TemporaryDirectory() as name:
        qrels, (path,) = make_shards(Path(name) / "shards", lines // 1000, 1000, 10, 1, "document")
        counter = RunCounter(Qrels.from_dict(qrels), ORDERS)
        spent = []
        for _ in range(3):
            clock_start = time.process_time()
            counter.count(str(path))
            spent.append(time.process_time() - clock_start)
    return 1e9 * min(spent) / lines


def simulate(pairs: int, queries: int, shards: int, together: int) -> dict[str, Any]:
    """Bytes of the counts of a million pairs, and the time to add them up, including a sum of sums."""
    rng = np.random.default_rng(0)
    judged = [f"D{number:09}" for number in range(pairs)]
    qrels = Qrels.from_columns(np.repeat(np.arange(queries), pairs // queries), judged, np.ones(pairs))
    shards_counts = []
    for _ in range(together):
        owned = rng.random(pairs) < 1 / shards
        size = (rng.random(pairs) < 0.01).astype(np.int64) | owned
        start, before = rng.integers(0, 100_000 // shards * 50, pairs), {"docid-desc": size - owned}
        per_query = (
            np.ones(queries, bool),
            rng.integers(50, 150, queries),
            rng.random(queries),
            np.ones(queries, np.int64),
        )
        shards_counts.append({"float64": Counts.of(start, size, owned, before, *per_query)})
    clock_start = time.process_time()
    part, nbytes = add_counts(pairs, queries, *shards_counts)
    spent = time.process_time() - clock_start
    total = Total(pairs, queries, ORDERS["float64"])
    clock_start = time.process_time()
    for _ in range(together):
        total.add(part["float64"])
    last = time.process_time() - clock_start
    columns = total.columns() | total.before | {"in_shard": total.in_shard}
    return {
        "pairs": pairs,
        "queries": queries,
        "together": together,
        "bytes_a_pair": nbytes / together / pairs,
        "bytes_a_pair_of_sums": add_counts(pairs, queries, part)[1] / pairs,
        "add_ns": 1e9 * spent / together / pairs,
        "last_add_ns": 1e9 * last / together / pairs,
        "sum_bytes": sum(array.nbytes for name, array in columns.items() if name != "before"),
        "shared_bytes": len(pickle.dumps(RunCounter(qrels, ORDERS))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/ray.json"))
    options = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    result: dict[str, Any] = {
        "environment": {
            "date": str(datetime.date.today()),
            "machine": f"{platform.machine()}, {options.workers} workers",
            "python": platform.python_version(),
            "ray": version("ray"),
            "numpy": version("numpy"),
        },
        "line_ns": line_ns(),
        "simulated": simulate(1_000_000, 10_000, 1000, 8),
        "runs": [],
    }
    how: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    ray.init(address="local", num_cpus=options.workers, object_store_memory=200_000_000, **how)
    print(f"{'cut':<9} {'rows':>9} {'pairs':>7} {'shards':>6} {'bytes read':>12} {'bytes moved':>11} {'seconds':>8}")
    try:
        measure(10, 100, 10, 2, "query")  # workers start
        for cut in ("query", "document"):
            shapes = [
                (200, 250, 10, 8),
                (200, 1000, 10, 8),
                (200, 4000, 10, 8),
                (200, 1000, 40, 8),
                (200, 1000, 10, 32),
            ]
            for shape in shapes:
                row = measure(*shape, cut)
                result["runs"].append(row)
                print(
                    "{cut:<9} {rows:>9,} {pairs:>7,} {shards:>6} {bytes:>12,} {moved:>11,} {seconds:>8.2f}".format(
                        **row
                    )
                )
    finally:
        ray.shutdown()
    print(json.dumps({name: result[name] for name in ("line_ns", "simulated")}, indent=1))
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
