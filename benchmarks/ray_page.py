"""The tables of docs/scale.md, from the results of `benchmarks.ray` and, for embeddings, `benchmarks.scoring`.

All measurements come from those files. The assumptions (the size of the task and of the cluster, and prices) are the
constants below.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["arithmetic"]

QUERIES, JUDGED, DEPTH = 10_000, 100, 100_000  # a million judged pairs; a billion rows
DOCUMENTS, DIMENSIONS, BYTES = 1_000_000_000, 1024, 2  # a billion vectors of float16
SHARDS, CORES, GPUS = 1000, 100, 8
CORE_HOUR, GPU_HOUR = 0.05, 4.0  # dollars
PAIR = 12  # bytes: a row of the qrels and a score
DISK = 1e9  # bytes a second that a machine with a GPU reads


def arithmetic(folder: Path) -> str:
    """The arithmetic for a billion documents and a million judged pairs."""
    result, pairs, lines = _ray(folder), QUERIES * JUDGED, QUERIES * DEPTH
    made = result["simulated"]
    first = _first_pass_bytes(result["runs"])
    sums = SHARDS / math.isqrt(SHARDS)
    once = lines * result["line_ns"] / 1e9
    adding = [pairs * made["last_add_ns"] / 1e9, SHARDS * pairs * made["add_ns"] / 1e9]
    last = sums * pairs * made["last_add_ns"] / 1e9  # on the driver, after the others
    cores = [once + adding[0], 2 * once + adding[1]]
    wall = [cores[0] / CORES, cores[1] / CORES + last]
    size = lines * result["runs"][-1]["bytes"] / result["runs"][-1]["rows"]
    runs = [
        ["read", _bytes(size), _bytes(2 * size)],
        ["reading and counting", _seconds(once, "core"), _seconds(2 * once, "core")],
        ["moved, first pass", _bytes(pairs * first), _bytes(pairs * PAIR)],
        ["moved, second pass", "–", _bytes(SHARDS * pairs * made["bytes_a_pair"])],
        ["of that, through the driver", "–", _bytes(sums * pairs * made["bytes_a_pair_of_sums"])],
        ["adding up", _seconds(adding[0], "core"), _seconds(adding[1], "core")],
        [f"in all, on {CORES} cores", _seconds(wall[0]), _seconds(wall[1])],
        ["cost", *(_dollars(spent * CORES / 3600 * CORE_HOUR) for spent in wall)],
    ]
    products = DOCUMENTS * QUERIES / _scores_a_second(folder)
    disk = 2 * DOCUMENTS * DIMENSIONS * BYTES / DISK
    whole = (products + disk) / GPUS
    vectors = [
        ["read, in two passes", _bytes(2 * DOCUMENTS * DIMENSIONS * BYTES)],
        [f"reading, at {_bytes(DISK)} a second for each GPU", _seconds(disk, "machine")],
        ["scoring and counting", _seconds(products, "GPU")],
        ["moved, second pass", _bytes(SHARDS * pairs * made["bytes_a_pair"])],
        [f"in all, on {GPUS} GPUs", _seconds(whole)],
        ["cost", _dollars(whole * GPUS / 3600 * GPU_HOUR)],
    ]
    return (
        f"**A run** of {QUERIES:,} queries × {DEPTH:,} documents, with {JUDGED} judged documents each, in {SHARDS:,} "
        "shards:\n\n"
        + _table(["", "split by query", "split by document"], runs)
        + f"\n**Embeddings** of {DOCUMENTS:,} documents, {DIMENSIONS:,} numbers of {8 * BYTES} bits each, for the same "
        "queries and judgments:\n\n"
        + _table(["", ""], vectors)
        + f"\nCosts are at ${CORE_HOUR} a core-hour and ${GPU_HOUR:g} a GPU-hour: assumptions, like the speed of disks."
    )


def _first_pass_bytes(runs: Sequence[dict[str, Any]]) -> float:
    """Bytes of the first pass for each judged pair, from two runs that differ only in their judged pairs."""
    few, many = (next(run for run in runs if _shape(run) == ("query", 200_000, 8, pairs)) for pairs in (2000, 8000))
    difference: float = (many["moved"] - few["moved"]) / (many["pairs"] - few["pairs"])
    return difference


def _shape(run: dict[str, Any]) -> tuple[str, int, int, int]:
    return run["cut"], run["rows"], run["shards"], run["pairs"]


def _scores_a_second(folder: Path) -> float:
    row = json.loads((folder / "scoring-h200.json").read_text())["collection"][-1]
    rate: float = row["queries"] * row["documents"] / row["ms"]["tie_groups"] * 1000
    return rate


def _ray(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "ray.json").read_text())
    return result


def _bytes(number: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            return f"{number:.0f} {unit}" if number >= 10 or unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    raise AssertionError


def _seconds(number: float, of: str = "") -> str:
    for unit, length in (("hour", 3600), ("minute", 60), ("second", 1)):
        if number >= 2 * length or unit == "second":
            many = number / length
            return f"{f'{many:.1f}' if many < 10 else f'{many:,.0f}'} {of + '-' if of else ''}{unit}s"
    raise AssertionError


def _dollars(number: float) -> str:
    return f"${number:.2f}" if number >= 0.01 else "less than a cent"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in [heads, ["---"] * len(heads), *rows])
