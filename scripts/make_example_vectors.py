"""Make the small vectors of the example in `tiewise.example`: ``queries.npz`` and ``docs.npz``.

They are the float32 embeddings of `make_example.py` along the directions in which those of the documents vary most, the
strongest first. The files stay below 300 kB together. Run it as `make_example.py`, in the same environment::

    python scripts/make_example_vectors.py

The last bits of the vectors differ between processors; the array ``made_with`` in each file says what was used.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
import transformers
from make_example import MODULES, QUERIES, build_collection, embed, made_with, qrels_lines
from numpy.typing import NDArray

FOLDER = Path(__file__).resolve().parents[1] / "src" / "tiewise" / "example"
DIMS = 32


def main() -> None:
    """Write the two files."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.utils.logging.disable_progress_bar()
    collection = build_collection(MODULES, QUERIES)
    if (FOLDER / "qrels.txt").read_bytes() != "".join(qrels_lines(collection)).encode("ascii"):
        raise SystemExit("qrels.txt is of another collection. Use the Python it was made with.")
    full = embed(collection, torch.float32)
    queries, docs = (one.double().numpy() for one in (full.queries, full.documents))
    directions = np.linalg.svd(docs, full_matrices=False)[2][:DIMS]
    largest = np.abs(directions).argmax(axis=1)
    directions *= np.sign(directions[np.arange(DIMS), largest])[:, None]  # a direction could point either way
    save("queries", queries @ directions.T, "query_ids", collection.queries)
    save("docs", docs @ directions.T, "doc_ids", collection.documents)


def save(name: str, vectors: NDArray[np.float64], id_name: str, ids: Iterable[str]) -> None:
    """Write vectors in float32 with their ids."""
    arrays = {name: vectors.astype(np.float32), id_name: np.array(list(ids)), "made_with": np.array(made_with())}
    path = FOLDER / f"{name}.npz"
    np.savez_compressed(path, **arrays)
    print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
