"""Qdrant in its local mode: scores of k + more neighbours, so that it is known where a tie at the k-th ends."""

from __future__ import annotations

from qdrant_client import QdrantClient, models

import tiewise as tw
from recipes.example import DOCS, QUERIES, K, check_against_exact


def main() -> None:
    """Search in Qdrant, and read scores and ids as a run."""
    client = QdrantClient(":memory:")
    size = models.VectorParams(size=DOCS.shape[1], distance=models.Distance.DOT)
    client.create_collection("docs", vectors_config=size)
    client.upsert("docs", [models.PointStruct(id=row, vector=vector.tolist()) for row, vector in enumerate(DOCS)])
    found = [client.query_points("docs", query=query.tolist(), limit=K + 5).points for query in QUERIES]
    scores = [[point.score for point in points] for points in found]
    indices = [[point.id for point in points] for points in found]
    run = tw.Run.from_neighbors(scores, indices, metric="ip", k=K)
    assert run.complete_lists is not None and run.complete_lists.all()
    check_against_exact(run)


if __name__ == "__main__":
    main()
