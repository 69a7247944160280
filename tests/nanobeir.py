"""Small collections in the shape of NanoBEIR, as files that `datasets.load_dataset` reads from a folder."""

from __future__ import annotations

import json
from pathlib import Path

import tiny

#: Two datasets of NanoBEIR, by the name of their split.
SPLITS = ("NanoMSMARCO", "NanoNQ")


def write(folder: Path) -> str:
    """Write the subsets ``corpus``, ``queries``, ``qrels`` and ``bm25``, each with a split for each dataset."""
    subsets: dict[str, dict[str, list[dict[str, object]]]] = {
        name: {} for name in ("corpus", "queries", "qrels", "bm25")
    }
    for at, split in enumerate(SPLITS):
        docs = [f"{split}-d{i}" for i in range(30)]
        queries = [f"{split}-q{i}" for i in range(5)]
        subsets["corpus"][split] = [{"_id": doc, "text": tiny.sentence(doc, 4 + i % 5)} for i, doc in enumerate(docs)]
        subsets["queries"][split] = [{"_id": query, "text": tiny.sentence(query, 3)} for query in queries]
        subsets["qrels"][split] = [
            {"query-id": query, "corpus-id": docs[(7 * i + 3 * j + at) % 30]}
            for i, query in enumerate(queries)
            for j in range(1 + i % 3)
        ]
        subsets["bm25"][split] = [
            {"query-id": query, "corpus-ids": [docs[(i + 2 * j) % 30] for j in range(12)]}
            for i, query in enumerate(queries)
        ]
    configs = []
    for subset, splits in subsets.items():
        (folder / subset).mkdir(parents=True)
        files = []
        for split, rows in splits.items():
            path = folder / subset / f"{split}.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            files.append(f"  - split: {split}\n    path: {subset}/{split}.jsonl\n")
        configs.append(f"- config_name: {subset}\n  data_files:\n{''.join(files)}")
    (folder / "README.md").write_text(f"---\nconfigs:\n{''.join(configs)}---\n", encoding="utf-8")
    return str(folder)
