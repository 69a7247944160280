"""The section about the speed of scoring, made from results of `benchmarks.scoring`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.speed_page import Aim

Result = dict[str, Any]

LEVELS = ("score", "logit", "head")

INTRODUCTION = """# Scoring

What exact scores cost, in milliseconds; in brackets, the ratio to the call that they are compared with. Calls take
turns in random order, and the median counts.
"""

CROSS_ENCODER = """## Cross-encoders

A model of the shape of Qwen3-Reranker-0.6B with random bfloat16 weights: one forward pass with its last step, softmax
over two logits in bfloat16 (native) or one of the [levels](scoring.md#three-levels), as a ratio. Passes of 20 to 30 ms
are limited by Python.
"""

COLLECTION = """## All scores of a collection

{documents:,} documents of {dims} dimensions in bfloat16, on the device. `bfloat16` is the bare product, whose
rounding makes the ties; `float32 out` is one call of torch; `tiles` is the product of Tiewise, with the same bits for
any block or shard; `score` also checks that every score is a number; `upcast first` multiplies float32 copies.
"""

PREPARED = """## A prepared collection

Calls of a [`Collection`](scoring.md#collections) on the device, beside the bare bfloat16 product: search for the 100
best and all that tie, and tie groups for 10 judged documents a query; 2,000,000 documents of 1,024 dimensions unless
the row says otherwise. `float32 and top-k` (or sort, for 1,000 judged documents) loses the ties with the k-th.
`reproducible` gives the bits of the CPU. Two blocks of scores are kept: at most 8 GiB on a device with 64 GiB or more,
4 GiB on others, less with `block`.
"""

CPU = """## On a CPU

{documents:,} documents of {dims} dimensions in float32, NumPy. Search for the {k} best and all that tie, beside a
plain product and partition of the whole matrix; tie groups for {judged} judged documents a query, beside the product.
`search` is a single call, the others are calls of a `Collection`.
"""

HAMMING = """## Bits on a CPU

{documents:,} documents of {bits:,} bits, Hamming distances: search of a `Collection` for the {k} best and all that
tie, beside FAISS (`IndexBinaryFlat`), which returns {k}.
"""


#: By row and call: how many times as long as the bare product, or for the small collection as product and top-k.
PREPARED_AIMS = {
    "1 query": {"search, dot": 1.6, "tie_groups, cosine": 1.6, "tie_groups, dot": 1.3},
    "64 queries": {"search, dot": 3.5, "tie_groups, cosine": 1.8, "tie_groups, dot": 1.35},
    "1,024 queries": {"search, dot": 8, "tie_groups, cosine": 2.2, "tie_groups, dot": 1.85},
    "64 queries, text ids": {"tie_groups, dot": 3},
    "64 queries, 1,000 judged": {"tie_groups, dot": 8},
    "512 queries, 10,000 documents of 768 dimensions": {"search, dot": 3},
}


def page(results: Sequence[Result]) -> str:
    """The page of some results, with a section for each measurement."""
    parts = [INTRODUCTION, *dict.fromkeys(map(_where, results))]
    for result in results:
        if "cross_encoder" in result:
            parts += [CROSS_ENCODER, _cross_encoder(result["cross_encoder"])]
        if "collection" in result:
            rows = result["collection"]
            parts += [COLLECTION.format(**rows[0]), _products(rows)]
        if "prepared" in result:
            parts += [PREPARED, _prepared(result["prepared"])]
        if "cpu" in result:
            parts += [CPU.format(judged=10, **result["cpu"][0]), _cpu(result["cpu"])]
        if result.get("hamming"):
            rows = result["hamming"]
            parts += [HAMMING.format(**rows[0]), _table(rows, "FAISS", ["search, hamming"])]
    return "\n".join(part.strip() + "\n" for part in parts)


def aims(results: Sequence[Result]) -> list[Aim]:
    """All aims, with the measured ratios."""
    return [aim for result in results for aim in _aims(result)]


def _aims(result: Result) -> Iterator[Aim]:
    for row in result.get("cross_encoder", []):
        name = f"cross-encoder, {row['batch']} × {row['length']}, the slowest level"
        yield Aim(name, max(row["ratio"][level][0] for level in LEVELS), 1.01)
    for row in result.get("collection", []):
        ms, many = row["ms"], row["queries"] > 64
        yield Aim(f"product, {_queries(row)}", _ratio(ms, "tiles", "bfloat16"), 1.35 if many else 1.25)
        yield Aim(f"upcasting first over product, {_queries(row)}", _ratio(ms, "upcast first", "tiles"), 6, least=True)
        yield Aim(f"tie_groups, {_queries(row)}", _ratio(ms, "tie_groups", "bfloat16"), 2 if many else 1.5)
    for row in result.get("prepared", []):
        for call, bound in PREPARED_AIMS.get(row["what"], {}).items():
            base = "float32 and top-k" if row["what"].startswith("512") else "bfloat16"
            yield Aim(f"{call}, {row['what']}, prepared", _ratio(row["ms"], call, base), bound)
    for row in result.get("cpu", []):
        ratio = _ratio(row["ms"], "search", "product and partition")
        yield Aim(f"search on a CPU, {_queries(row)}", ratio, 1.5)
        for fn in ("dot", "cosine"):
            yield Aim(
                f"tie_groups, {fn}, on a CPU, {_queries(row)}", _ratio(row["ms"], f"tie_groups, {fn}", "product"), 2
            )
    for row in result.get("hamming", []):
        yield Aim(f"Hamming distances on a CPU, {_queries(row)}", _ratio(row["ms"], "search, hamming", "FAISS"), 2)


def _queries(row: Result) -> str:
    return f"{row['queries']:,} {'query' if row['queries'] == 1 else 'queries'}"


def _cross_encoder(rows: list[Result]) -> str:
    table = []
    for row in rows:
        cells = [f"{row['batch']} × {row['length']}", f"{row['ms']['native']:.2f}"]
        cells += [f"{row['ratio'][level][0]:.3f}" for level in LEVELS]
        table.append(f"| {' | '.join(cells)} |")
    return "\n".join(
        [f"| batch × tokens | native | {' | '.join(LEVELS)} |", "|---|---|" + "---|" * len(LEVELS), *table]
    )


def _products(rows: list[Result]) -> str:
    names = ("float32 out", "tiles", "score", "upcast first")
    return _table(rows, "bfloat16", names)


def _prepared(rows: list[Result]) -> str:
    names = ("float32 and top-k", "search, dot", "search, cosine", "tie_groups, dot", "tie_groups, cosine")
    lines = [f"| | bfloat16 | {' | '.join(names)} |", "|---|" + "---|" * (1 + len(names))]
    for row in rows:
        ms = {name.replace("and sort", "and top-k"): value for name, value in row["ms"].items()}
        cells = [_cell(ms, name, "bfloat16") if name in ms else "" for name in names]
        lines.append(f"| {row['what']} | {ms['bfloat16']:.2f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cpu(rows: list[Result]) -> str:
    searches, ties = ("search", "search, dot", "search, cosine"), ("tie_groups, dot", "tie_groups, cosine")
    names = ("product and partition", *searches, "product", *ties)
    lines = [f"| queries | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for row in rows:
        ms = row["ms"]
        cells = [f"{ms['product and partition']:.1f}", *(_cell(ms, name, "product and partition") for name in searches)]
        cells += [f"{ms['product']:.1f}", *(_cell(ms, name, "product") for name in ties)]
        lines.append(f"| {row['queries']:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _table(rows: list[Result], base: str, names: Sequence[str]) -> str:
    lines = [f"| queries | {base} | {' | '.join(names)} |", "|---|" + "---|" * (1 + len(names))]
    for row in rows:
        cells = [f"{row['ms'][base]:.2f}", *(_cell(row["ms"], name, base) for name in names)]
        lines.append(f"| {row['queries']:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(ms: dict[str, float], name: str, base: str, decimals: int = 2) -> str:
    return f"{ms[name]:.2f} ({_ratio(ms, name, base):.{decimals}f}×)"


def _ratio(ms: dict[str, float], name: str, base: str) -> float:
    return ms[name] / ms[base]


def _where(result: Result) -> str:
    packages = ("python", "numpy", "torch", "triton", "transformers", "faiss-cpu")
    environment = result["environment"]
    versions = ", ".join(
        f"{name} {environment[name]}" for name in packages if environment.get(name, "not installed") != "not installed"
    )
    quick = " A quick run, with small shapes." if result.get("quick") else ""
    return f"{environment['device']}, {environment['date']}; {versions}.{quick}"
