"""Replicates of an embedding model: kernels of attention, batch sizes, padding, precisions; for `experiments.rerun`.

`autocast` is a model in float32 whose products are computed in bfloat16.

python -m experiments.rerun_kernels prepare MODEL COLLECTION VECTORS.safetensors FOLDER
python rerun_kernels.py embed FOLDER OUT      needs torch, transformers and numpy alone
python -m experiments.rerun scores QRELS OUT/*.npz

The first step writes all that the second one reads, which may run on another machine: weights in float16, the tokens of
queries and documents, and the documents of each list. The second step saves the scores of these documents, in float32
from the model's vectors: one file for each precision, with an array for each replicate.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MAX_TOKENS, PAD = 256, 0
PRECISIONS = {"bf16": "bfloat16", "fp16": "float16", "autocast": "float32", "tf32": "float32", "fp32": "float32"}


class Replicate(NamedTuple):
    """How one replicate is computed."""

    kernel: str
    batch: int
    padding: str  # "sorted" by length, "given": as they come, "full": all to `MAX_TOKENS`, "none": equal lengths

    def __str__(self) -> str:
        return "-".join(map(str, self))


#: flash attention takes no mask, so its batches hold texts of one length.
REPLICATES = (
    *(Replicate("efficient", batch, how) for batch in (256, 64, 16, 4, 1) for how in ("sorted", "given")),
    *(Replicate("math", batch, "sorted") for batch in (256, 64, 16, 4, 1)),
    *(Replicate("flash", batch, "none") for batch in (256, 32, 8, 3, 1)),
    *(Replicate("cudnn", batch, "sorted") for batch in (256, 64, 16, 4)),
    *(Replicate("eager", batch, "sorted") for batch in (128, 32, 8, 2)),
    *(Replicate(kernel, batch, "full") for batch in (256, 100, 32) for kernel in ("efficient", "math")),
    *(Replicate("compiled", batch, "full") for batch in (64, 256)),
)


def prepare(options: argparse.Namespace) -> None:
    from safetensors.numpy import load_file, save_file
    from tokenizers import Tokenizer

    import tiewise as tw
    from experiments.rerun import candidates, unit

    options.folder.mkdir(parents=True, exist_ok=True)
    weights = load_file(options.model / "model.safetensors")
    halves = {name: x.astype(np.float16) if x.dtype.kind == "f" else x for name, x in weights.items()}
    save_file(halves, options.folder / "model.safetensors", metadata={"format": "pt"})
    (options.folder / "config.json").write_text((options.model / "config.json").read_text())
    tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    found: dict[str, np.ndarray] = {}
    for kind in ("queries", "docs"):
        with gzip.open(options.collection / f"{kind}.jsonl.gz", "rt") as lines:
            tokens = [one.ids for one in tokenizer.encode_batch([json.loads(line)["text"] for line in lines])]
        found[kind] = np.concatenate(tokens).astype(np.uint16)
        found[f"{kind}_lengths"] = np.array([len(one) for one in tokens], dtype=np.uint16)
    vectors = {name: unit(one.astype(np.float64)) for name, one in load_file(options.vectors).items()}
    qrels = tw.read_qrels(options.collection / "qrels.txt")
    found["candidates"] = candidates(vectors["queries"] @ vectors["docs"].T, qrels).astype(np.uint16)
    np.savez_compressed(options.folder / "texts.npz", **found)


def batches(lengths: np.ndarray, how: Replicate) -> Iterator[np.ndarray]:
    """The texts of each batch."""
    order = np.arange(len(lengths)) if how.padding == "given" else np.argsort(-lengths, kind="stable")
    borders = np.flatnonzero(np.diff(lengths[order])) + 1 if how.padding == "none" else []
    for part in np.split(order, borders):
        yield from (part[start : start + how.batch] for start in range(0, len(part), how.batch))


def embed_texts(model: Any, texts: list[np.ndarray], how: Replicate, device: str) -> np.ndarray:
    """Means of the vectors of tokens, in the precision of the model, as float64 (n_texts, n_dimensions)."""
    import torch

    lengths, vectors = np.array([len(one) for one in texts]), np.zeros((len(texts), model.config.hidden_size))
    for some in batches(lengths, how):
        width = MAX_TOKENS if how.padding == "full" else int(lengths[some].max())
        ids = np.full((how.batch if how.padding == "full" else len(some), width), PAD, dtype=np.int64)
        mask = np.zeros(ids.shape, dtype=np.int64)
        mask[:, 0] = 1  # rows that fill the last batch
        for row, text in enumerate(some):
            ids[row, : lengths[text]], mask[row, : lengths[text]] = texts[text], 1
        masked = torch.tensor(mask, device=device)
        hidden = model(torch.tensor(ids, device=device), attention_mask=None if mask.all() else masked)[0]
        kept = masked.to(hidden.dtype).unsqueeze(-1)
        means = (hidden * kept).sum(1) / kept.sum(1)
        vectors[some] = means[: len(some)].double().cpu().numpy()
    return vectors


def embed(options: argparse.Namespace) -> None:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from transformers import BertModel
    from transformers.utils import logging

    start, device = time.monotonic(), options.device
    backends = {
        "math": SDPBackend.MATH,
        "flash": SDPBackend.FLASH_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
    }
    given = np.load(options.folder / "texts.npz")
    texts, chosen = {}, given["candidates"].astype(np.int64)
    for kind in ("queries", "docs"):
        ends = np.cumsum(given[f"{kind}_lengths"].astype(np.int64))[:-1]
        texts[kind] = np.split(given[kind].astype(np.int64), ends)
    if options.few:
        texts = {"queries": texts["queries"][: options.few], "docs": texts["docs"][: options.few]}
        chosen = np.tile(np.arange(options.few), (options.few, 1))
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_grad_enabled(False)
    logging.disable_progress_bar()
    for precision in options.precisions:
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        in_bf16 = torch.autocast(device, torch.bfloat16, enabled=precision == "autocast")
        found: dict[str, np.ndarray] = {"candidates": chosen.astype(np.uint16)}
        for how in REPLICATES:
            if how.batch < options.smallest or time.monotonic() - start > options.seconds:
                continue
            if how.kernel == "compiled" and precision not in ("bf16", "fp16"):
                continue
            attention = "eager" if how.kernel == "eager" else "sdpa"
            began = time.monotonic()
            try:
                dtype = getattr(torch, PRECISIONS[precision])
                loaded = BertModel.from_pretrained(options.folder, attn_implementation=attention, dtype=dtype)
                model: Any = loaded.to(device).eval()
                model = torch.compile(model) if how.kernel == "compiled" else model
                with in_bf16, sdpa_kernel(backends[how.kernel]) if how.kernel in backends else nullcontext():
                    queries, docs = (embed_texts(model, texts[kind], how, device) for kind in ("queries", "docs"))
            except Exception as error:  # a kernel that this model, precision or device does not have
                print(f"{precision} {how}: {str(error).splitlines()[:1]}", flush=True)
                continue
            queries, docs = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (queries, docs))
            scores = np.take_along_axis(queries @ docs.T, chosen, axis=1).astype(np.float32)
            found[str(how)] = scores
            changed = np.abs(scores - found[list(found)[1]])
            print(
                f"{precision} {how}: {time.monotonic() - began:.1f} s; {np.mean(changed > 0):.1%} of scores differ "
                f"from the first, at most by {changed.max():.2g}",
                flush=True,
            )
            np.savez(options.out / f"{precision}.npz", **found)  # each time: the machine may stop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("prepare")
    first.add_argument("model", type=Path, help="a folder with config.json, model.safetensors and tokenizer.json")
    first.add_argument("collection", type=Path, help="a folder with queries.jsonl.gz, docs.jsonl.gz and qrels.txt")
    first.add_argument("vectors", type=Path, help="of queries and documents, to choose the documents of each list")
    first.add_argument("folder", type=Path)
    first.set_defaults(run=prepare)
    second = commands.add_parser("embed")
    second.add_argument("folder", type=Path)
    second.add_argument("out", type=Path)
    second.add_argument("--device", default="cuda")
    second.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    second.add_argument("--seconds", type=float, default=400.0, help="begin no replicate after this time")
    second.add_argument("--smallest", type=int, default=1, help="the smallest batch")
    second.add_argument("--few", type=int, default=0, help="embed so many texts alone, to try it")
    second.set_defaults(run=embed)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
