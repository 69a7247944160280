"""`python -m benchmarks.scoring [--device cuda|prepared|cpu] [--quick] [--out results.json]`: the cost of exact scores.

On a GPU: the last step of a cross-encoder in high precision beside its own last step, and all scores and tie groups of
a collection beside the bare bfloat16 product and beside upcasting first. On a CPU: search beside a plain product and
partition. The compared calls take turns. A time is the median of the turns, and the clock waits for the device. The
vectors of the collection are far larger than any cache. Counts are checked before they are timed.

`make docs` writes the page from the results in `benchmarks/results`.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import platform
import random
import statistics
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import tiewise as tw
from tiewise import scoring

Contenders = dict[str, Callable[[], Any]]

#: Qwen3-Reranker-0.6B, with random weights.
SHAPE = {
    "hidden_size": 1024,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 3072,
    "vocab_size": 151_669,
}
NO, YES = 2152, 9693
JUDGED, K = 10, 100


def timed(contenders: Contenders, repeat: int, wait: Callable[[], None], warm: int = 2) -> dict[str, float]:
    """The median time of each in milliseconds."""
    return {name: statistics.median(spent) for name, spent in turns(contenders, repeat, wait, warm).items()}


def ratios(times: dict[str, list[float]], base: str) -> dict[str, list[float]]:
    """The median ratio of each to `base` in the same turn, with the ends of its 95 % confidence interval."""
    result = {}
    for name, spent in times.items():
        each = sorted(one / other for one, other in zip(spent, times[base], strict=True))
        off = len(each) ** 0.5  # two standard deviations of the rank of the median
        low, high = max(int(len(each) / 2 - off), 0), min(round(len(each) / 2 + off), len(each) - 1)
        result[name] = [statistics.median(each), each[low], each[high]]
    return result


def turns(contenders: Contenders, repeat: int, wait: Callable[[], None], warm: int = 2) -> dict[str, list[float]]:
    """The times of each in milliseconds. They take turns, in a random order.

    Garbage is collected before the turns and not during them, as in `timeit`.
    """
    names, rng = list(contenders), random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    try:
        for turn in range(-warm, repeat):
            for name in rng.sample(names, len(names)):
                elapsed = _milliseconds(contenders[name], wait)
                if turn >= 0:
                    times[name].append(elapsed)
    finally:
        gc.enable()
    return times


def _milliseconds(call: Callable[[], Any], wait: Callable[[], None]) -> float:
    wait()
    start = time.perf_counter()
    result = call()
    wait()
    elapsed = time.perf_counter() - start
    del result  # after the clock: freeing memory takes time
    return 1e3 * elapsed


# -- cross-encoders ---------------------------------------------------------------------------------------------------


def cross_encoder(torch: Any, quick: bool) -> list[dict[str, Any]]:
    """The whole forward pass with each last step, over batch sizes and lengths."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    shape = SHAPE | ({"num_hidden_layers": 2} if quick else {})
    torch.manual_seed(0)
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = Qwen3ForCausalLM(Qwen3Config(**shape, tie_word_embeddings=True)).eval()
        torch.set_default_dtype(torch.float32)
    weight = model.lm_head.weight[[NO, YES]].detach()
    rows = []
    for batch in (1, 16, 64):
        for length in (128, 512):
            tokens = torch.randint(0, shape["vocab_size"], (batch, length), device="cuda")
            with torch.inference_mode():
                rows.append({"batch": batch, "length": length, **_levels(torch, model, weight, tokens, quick)})
            print("cross-encoder", rows[-1], flush=True)
    return rows


def _levels(torch: Any, model: Any, weight: Any, tokens: Any, quick: bool) -> dict[str, Any]:
    def forward() -> tuple[Any, Any]:
        hidden = model.model(input_ids=tokens, use_cache=False).last_hidden_state[:, -1]
        logits = model.lm_head(hidden)
        return hidden, torch.stack([logits[:, NO], logits[:, YES]], 1)  # a list of columns would stop the device

    steps: dict[str, Callable[[Any, Any], Any]] = {
        "native": lambda hidden, logits: torch.softmax(logits, -1)[:, 1],
        "score": lambda hidden, logits: scoring.score(logits, fn="softmax"),
        "logit": lambda hidden, logits: scoring.logit(logits, fn="softmax"),
        "head": lambda hidden, logits: scoring.logit(scoring.head(hidden, weight), fn="softmax"),
    }
    outputs = forward()
    exact = (outputs[0].double() @ weight.double().T) @ torch.tensor([-1.0, 1.0], device="cuda", dtype=torch.float64)
    error = float((steps["head"](*outputs).double() - exact).abs().max() / exact.abs().max())
    assert error < 1e-5, f"the head's logits are off by {error}"
    repeat = 3 if quick else 301 if tokens.numel() <= 2048 else 121 if tokens.numel() <= 8192 else 61
    whole: Contenders = {name: lambda step=step: step(*forward()).float().cpu() for name, step in steps.items()}
    alone: Contenders = {name: lambda step=step: step(*outputs).float().cpu() for name, step in steps.items()}
    whole["native again"] = whole["native"]  # the difference to itself is noise
    times = turns(whole, repeat, torch.cuda.synchronize, 3)
    return {
        "turns": len(times["native"]),
        "ms": {name: statistics.median(spent) for name, spent in times.items()},
        "ratio": ratios(times, "native"),
        "step_ms": timed(alone, 30, torch.cuda.synchronize),
        "distinct": {name: len(torch.unique(step(*outputs))) for name, step in steps.items()},
    }


# -- a collection on a GPU --------------------------------------------------------------------------------------------


def collection(torch: Any, quick: bool) -> list[dict[str, Any]]:
    """All scores of a collection, and its tie groups."""
    n, dims = (300_000 if quick else 2_000_000), 1024
    torch.manual_seed(0)
    docs = torch.randn(n, dims, device="cuda", dtype=torch.bfloat16)
    return [_of_queries(torch, count, docs, quick) for count in (1, 64, 1024)]


def _of_queries(torch: Any, count: int, docs: Any, quick: bool) -> dict[str, Any]:
    queries = torch.randn(count, docs.shape[1], device="cuda", dtype=torch.bfloat16)
    qrels = judgments(count, len(docs))
    result = {
        "queries": count,
        "documents": len(docs),
        "dims": docs.shape[1],
        **check_counts(torch, queries, docs, qrels),
    }
    result["ms"] = timed(_products(torch, queries, docs, qrels), 5 if quick else 51, torch.cuda.synchronize, 3)
    result["held_bytes"] = _peak_memory(torch, lambda: scoring.tie_groups(queries, docs, qrels))
    upcast: Contenders = {"upcast first": lambda: queries.float() @ docs.float().T}
    result["ms"] |= timed(upcast, 5, torch.cuda.synchronize)
    torch.cuda.empty_cache()
    print("collection", result, flush=True)
    return result


def _products(torch: Any, queries: Any, docs: Any, qrels: tw.Qrels) -> Contenders:
    def tiles() -> Any:
        scorer = scoring.Collection(docs).scorer(queries)
        return scorer.scores(scorer.query_tiles(slice(0, len(queries))), slice(0, len(docs)))

    return {
        "bfloat16": lambda: torch.mm(queries, docs.T),
        "float32 out": lambda: torch.mm(queries, docs.T, out_dtype=torch.float32),
        "tiles": tiles,
        "score": lambda: scoring.score(queries, docs, fn="dot"),
        "tie_groups": lambda: scoring.tie_groups(queries, docs, qrels),
        "tie_groups, no order": lambda: scoring.tie_groups(queries, docs, qrels, orders=()),
    }


def judgments(queries: int, docs: int, judged: int = JUDGED) -> tw.Qrels:
    """Judgments of random documents, so that they are everywhere in the ranking."""
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(queries), judged)
    doc = np.concatenate([rng.choice(docs, judged, replace=False) for _ in range(queries)])
    return tw.Qrels.from_columns(query, doc, rng.integers(0, 2, len(doc)))


def check_counts(torch: Any, queries: Any, docs: Any, qrels: tw.Qrels) -> dict[str, Any]:
    """Count again for some queries, by comparing all scores, and compare these with float64."""
    ties = scoring.tie_groups(queries, docs, qrels)
    assert (ties.size >= 1).all(), "a judged document does not tie with itself"
    worst, checked = 0.0, 0
    for query in sorted({0, len(queries) // 2, len(queries) - 1}):
        scores = scoring.score(queries, docs, fn="dot")[query].clone()
        exact = torch.cat([part.double() @ queries[query].double() for part in docs.split(2**18)])
        worst = max(worst, float((scores.double() - exact).abs().max() / exact.abs().max()))
        for row in np.flatnonzero(qrels.query == qrels.query_index[str(query)]):
            doc = int(qrels.row(int(row))[1])
            assert float(scores[doc]) == ties.score[row], "another score than that of all pairs"
            assert int((scores > scores[doc]).sum()) == ties.start[row], "a wrong count of better documents"
            assert int((scores == scores[doc]).sum()) == ties.size[row], "a wrong count of tied documents"
            assert abs(int((exact > exact[doc]).sum()) - int(ties.start[row])) < 100, "far from the rank in float64"
            checked += 1
    assert worst < 1e-5, f"scores are off by {worst}"
    return {"checked": checked, "worst_error": worst, "tied": int((ties.size > 1).sum()), "judged": len(ties.size)}


def _peak_memory(torch: Any, call: Callable[[], Any]) -> int:
    """The peak of the device's memory during a call, in bytes."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    return int(torch.cuda.max_memory_allocated() - before)


# -- a prepared collection --------------------------------------------------------------------------------------------


def prepared(torch: Any, quick: bool) -> list[dict[str, Any]]:
    """Calls of a prepared `Collection` beside the bare bfloat16 product, and beside a product with float32 output and
    top-k or sort."""
    n, dims = (200_000 if quick else 2_000_000), 1024
    generator = torch.Generator("cuda").manual_seed(0)
    docs = torch.empty((n, dims), dtype=torch.bfloat16, device="cuda")
    for part in docs.split(100_000):
        part.copy_(torch.randn(part.shape, device="cuda", generator=generator))
    queries = torch.randn((1024, dims), device="cuda", generator=generator).bfloat16()
    rows = [
        _prepared(torch, queries[:count].clone(), docs, f"{count:,} {'query' if count == 1 else 'queries'}")
        for count in (1, 64, 1024)
    ]
    some, qrels = queries[:64].clone(), judgments(64, n)
    names = [f"doc-{row:08d}" for row in range(n)]
    named = tw.Qrels.from_columns(
        qrels.query, [names[int(doc)] for doc in qrels.ids(np.arange(len(qrels)))], qrels.value
    )
    collection = scoring.Collection(docs, doc_ids=names)
    calls = {
        "tie_groups, dot": lambda: collection.tie_groups(some, named),
        "search, dot": lambda: collection.search(some, K),
    }
    rows.append(_row(torch, "64 queries, text ids", some, docs, calls))
    many, plain = judgments(64, n, 1000), scoring.Collection(docs)
    calls = {
        "tie_groups, dot": lambda: plain.tie_groups(some, many),
        "float32 and sort": lambda: torch.sort(torch.mm(some, docs.T, out_dtype=torch.float32), dim=1),
    }
    rows.append(_row(torch, "64 queries, 1,000 judged", some, docs, calls))
    for count in (1, 64):
        what = f"{count} {'query' if count == 1 else 'queries'}, reproducible"
        rows.append(_prepared(torch, queries[:count].clone(), docs, what, reproducible=True))
    few, small = (torch.randn((m, 768), device="cuda", generator=generator).bfloat16() for m in (512, 10_000))
    collection = scoring.Collection(small)
    calls = {"search, dot": lambda: collection.search(few, K), "float32 and top-k": lambda: _top_k(torch, few, small)}
    rows.append(_row(torch, "512 queries, 10,000 documents of 768 dimensions", few, small, calls))
    return rows


def _prepared(torch: Any, queries: Any, docs: Any, what: str, *, reproducible: bool = False) -> dict[str, Any]:
    qrels = judgments(len(queries), len(docs))
    collections = {fn: scoring.Collection(docs, fn=fn, reproducible=reproducible) for fn in ("dot", "cosine")}
    calls: Contenders = {"float32 and top-k": lambda: _top_k(torch, queries, docs)}
    calls |= {f"search, {fn}": lambda fn=fn: collections[fn].search(queries, K) for fn in collections}
    calls |= {f"tie_groups, {fn}": lambda fn=fn: collections[fn].tie_groups(queries, qrels) for fn in collections}
    return _row(torch, what, queries, docs, calls, 3 if reproducible else 31)


def _row(torch: Any, what: str, queries: Any, docs: Any, calls: Contenders, repeat: int = 31) -> dict[str, Any]:
    ms = timed({"bfloat16": lambda: torch.mm(queries, docs.T), **calls}, repeat, torch.cuda.synchronize)
    print(what, ms, flush=True)
    return {"what": what, "ms": ms}


def _top_k(torch: Any, queries: Any, docs: Any) -> Any:
    """The product and top-k of 256 queries at a time, copied to main memory; ties with the k-th are lost."""
    found = [torch.topk(torch.mm(part, docs.T, out_dtype=torch.float32), K, dim=1) for part in queries.split(256)]
    return [(best.values.cpu(), best.indices.cpu()) for best in found]


# -- a collection on a CPU --------------------------------------------------------------------------------------------


def on_cpu(quick: bool) -> list[dict[str, Any]]:
    """Search and tie groups beside a plain product in float32 and a partition."""
    n, dims = (20_000 if quick else 200_000), 384
    rng = np.random.default_rng(0)
    docs = rng.normal(size=(n, dims)).astype(np.float32)
    return [_on_cpu(count, docs, quick) for count in (1, 64, 512)]


def _on_cpu(count: int, docs: Any, quick: bool) -> dict[str, Any]:
    n, dims = docs.shape
    queries, qrels = np.random.default_rng(1).normal(size=(count, dims)).astype(np.float32), judgments(count, n)
    scores = queries @ docs.T
    run, ties = scoring.search(queries, docs, K), scoring.tie_groups(queries, docs, qrels)
    np.testing.assert_allclose(run.score[:K], np.sort(scores[0])[::-1][:K], rtol=1e-5)
    assert (ties.size >= 1).all(), "a judged document does not tie with itself"
    mine = scores[qrels.query, [int(doc) for doc in qrels.ids(np.arange(len(qrels)))]]
    above = np.array([(scores[query] > own).sum() for query, own in zip(qrels.query, mine, strict=True)])
    assert np.abs(above - ties.start).max() < 50, "ranks far from those of a plain product"
    dot, cosine = scoring.Collection(docs), scoring.Collection(docs, fn="cosine")
    contenders: Contenders = {
        "product": lambda: queries @ docs.T,
        "product and partition": lambda: np.argpartition(queries @ docs.T, n - K, axis=1)[:, n - K :],
        "search": lambda: scoring.search(queries, docs, K),
        "search, dot": lambda: dot.search(queries, K),
        "search, cosine": lambda: cosine.search(queries, K),
        "tie_groups, dot": lambda: dot.tie_groups(queries, qrels),
        "tie_groups, cosine": lambda: cosine.tie_groups(queries, qrels),
    }
    ms = timed(contenders, 5 if quick else 11, lambda: None)
    print("cpu", count, ms, flush=True)
    return {"queries": count, "documents": n, "dims": dims, "k": K, "ms": ms}


def hamming(quick: bool) -> list[dict[str, Any]]:
    """Search in bits beside FAISS, which keeps no ties with the k-th; nothing where FAISS is not installed."""
    try:
        import faiss
    except ImportError:
        return []
    n, bits = (20_000 if quick else 1_000_000), 1024
    rng = np.random.default_rng(0)
    docs = rng.integers(0, 256, size=(n, bits // 8), dtype=np.uint8)
    index, collection = faiss.IndexBinaryFlat(bits), scoring.Collection(docs, fn="hamming")
    index.add(docs)
    rows = []
    for count in (1, 64):
        queries = rng.integers(0, 256, size=(count, bits // 8), dtype=np.uint8)
        run, distances = collection.search(queries, K), index.search(queries, K)[0]
        assert run.score[:K].tolist() == (bits - distances[0]).tolist(), "other distances than those of FAISS"
        contenders: Contenders = {
            "FAISS": lambda queries=queries: index.search(queries, K),
            "search, hamming": lambda queries=queries: collection.search(queries, K),
        }
        ms = timed(contenders, 5 if quick else 11, lambda: None)
        print("hamming", count, ms, flush=True)
        rows.append({"queries": count, "documents": n, "bits": bits, "k": K, "ms": ms})
    return rows


# -- all --------------------------------------------------------------------------------------------------------------


def environment(torch: Any) -> dict[str, str]:
    """The machine, the date and the versions."""
    packages = {}
    for name in ("tiewise", "numpy", "torch", "triton", "transformers", "faiss-cpu"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "not installed"
    device = _cpu() if torch is None else torch.cuda.get_device_name()
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {"device": device, "date": today, "python": platform.python_version(), **packages}


def _cpu() -> str:
    import os

    names = [line.split(":")[1].strip() for line in _lines(Path("/proc/cpuinfo")) if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def measure(device: str, quick: bool) -> dict[str, Any]:
    """All measurements of a device."""
    if device == "cpu":
        return {"environment": environment(None), "quick": quick, "cpu": on_cpu(quick), "hamming": hamming(quick)}
    import torch

    result: dict[str, Any] = {"environment": environment(torch), "quick": quick}
    if device == "prepared":
        return {**result, "prepared": prepared(torch, quick)}
    result["collection"] = collection(torch, quick)
    result["cross_encoder"] = cross_encoder(torch, quick)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--device", choices=("cuda", "prepared", "cpu"), default="cuda", help="prepared: collections on a GPU"
    )
    parser.add_argument("--quick", action="store_true", help="small shapes and few turns, to see that it runs")
    parser.add_argument("--out", type=Path, help="where to write the results, as JSON")
    options = parser.parse_args()
    result = measure(options.device, options.quick)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
