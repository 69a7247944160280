"""LanceDB: distances of k + more neighbours, so that it is known where a tie at the k-th ends."""

from __future__ import annotations

import tempfile

import lancedb

import tiewise as tw
from recipes.example import DOCS, QUERIES, K, check_against_exact


def main() -> None:
    """Search in LanceDB, and read distances and rows as a run."""
    with tempfile.TemporaryDirectory() as folder:
        database = lancedb.connect(folder)
        rows = [{"row": row, "vector": vector.tolist()} for row, vector in enumerate(DOCS)]
        table = database.create_table("docs", rows)
        found = [table.search(query).distance_type("dot").limit(K + 5).to_list() for query in QUERIES]
    distances = [[one["_distance"] for one in neighbours] for neighbours in found]
    indices = [[one["row"] for one in neighbours] for neighbours in found]
    run = tw.Run.from_neighbors(distances, indices, metric="ip", k=K)
    assert run.complete_lists is not None and run.complete_lists.all()
    check_against_exact(run)


if __name__ == "__main__":
    main()
