"""Embeddings in shards: Parquet files with a column of ids and a column of vectors, scored where they are.

Every shard scores all queries against its own documents (`tiewise.scoring`), counts, and drops the scores. A worker
with a GPU and torch computes there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiewise import scoring
from tiewise.adapters.ray.shards import Shard, ShardCounter, ShardCounts, ShardSummary
from tiewise.caching import cached_property
from tiewise.data.columns import Floats, positions
from tiewise.errors import InputError, prefix_errors
from tiewise.io.vectors import find_vector_columns, ids_to_list, vectors_to_matrix
from tiewise.results.optional import need
from tiewise.results.wording import list_examples
from tiewise.scoring.judgments import Ids
from tiewise.scoring.options import check_pair_function, check_precision
from tiewise.scoring.storage import make_storage
from tiewise.scoring.vector_files import ParquetVectors
from tiewise.ties.counted import EXAMPLES, Counted
from tiewise.ties.shards import Counts, fingerprint_ids, small

if TYPE_CHECKING:
    import pyarrow

QueryVectors: TypeAlias = "str | os.PathLike[str] | pyarrow.Table | tuple[Sequence[Any], ArrayLike]"


@dataclass(frozen=True)
class Vectors:
    """Ids and their vectors, one a row."""

    ids: list[Any]
    matrix: NDArray[Any]  # (n_rows, n_dimensions)
    source: str  # for error messages

    @staticmethod
    def from_table(table: pyarrow.Table, source: str) -> Vectors:
        """The ids and vectors of an Arrow table."""
        ids, vectors = find_vector_columns(table.column_names, source)
        matrix = vectors_to_matrix(table.column(vectors), f"{source}: column '{vectors}'")
        return Vectors(ids_to_list(table.column(ids), f"{source}: column '{ids}'"), matrix, source)


@dataclass(frozen=True)
class VectorCounter(ShardCounter):
    """Scores and counts the shards of a collection; scores are "float64" as they are."""

    queries: Vectors
    fn: str = "dot"
    precision: str = "float32"
    gpu: bool = False  # each worker has one
    complete = True

    @cached_property
    def unjudged(self) -> frozenset[str]:
        """The queries without judgments."""
        return frozenset(map(str, self.queries.ids)) - self.qrels.query_index.keys()

    def count(
        self, shard: Shard, scores: Floats | None = None, fingerprint_limit: int = 0
    ) -> tuple[ShardSummary, ShardCounts]:
        """A shard's summary; its counts only for the judged `scores` of all shards."""
        docs = _read(shard)
        index = {str(query): place for place, query in enumerate(self.queries.ids)}
        queries = np.flatnonzero(positions(index, self.qrels.queries) >= 0)
        own = np.full(len(self.qrels), np.nan)
        counts: dict[str, Counts] = {}
        if docs.ids and len(queries):
            operands = self._query_matrix, self._to_device(docs.matrix), self.qrels
            options: dict[str, Any] = {"fn": self.fn, "precision": self.precision}
            options |= {"query_ids": self.queries.ids, "doc_ids": docs.ids}
            with prefix_errors(docs.source):
                if scores is None:
                    own = scoring.judged_scores(*operands, **options)
                else:
                    ties = scoring.tie_groups(*operands, **options, scores=scores, orders=self.orders["float64"])
                    assert ties.in_shard is not None
                    own, counts["float64"] = np.where(ties.in_shard, scores, np.nan), ties.counts()
        judged = np.flatnonzero(~np.isnan(own))
        facts = Counted(
            {},
            n_rows=len(docs.ids),
            docs=tuple(map(str, docs.ids[:EXAMPLES])),
            fingerprints=fingerprint_ids(map(str, docs.ids), fingerprint_limit) if fingerprint_limit else None,
        )
        return ShardSummary(small(judged), own[judged], small(queries), facts), counts

    @cached_property
    def _query_matrix(self) -> Any:
        """The query vectors on the device, copied once for all shards of a worker."""
        return self._to_device(self.queries.matrix)

    def _to_device(self, matrix: NDArray[Any]) -> Any:
        """A matrix on this worker's GPU, if it has one and torch can use it."""
        if not self.gpu:
            return matrix
        torch = need("torch", "Scoring on a GPU", "torch")
        return torch.as_tensor(matrix).to("cuda") if torch.cuda.is_available() else matrix


def read_query_vectors(given: QueryVectors, fn: str = "dot", precision: str = "float32") -> Vectors:
    """The vectors of the queries from a Parquet file, an Arrow table, or a pair of ids and a matrix.

    They are checked here, so that later errors concern a shard.
    """
    check_pair_function(fn)
    check_precision(precision)
    if isinstance(given, (str, os.PathLike)):
        queries = _read(os.fspath(given))
    elif hasattr(given, "column_names"):
        queries = Vectors.from_table(given, "queries")
    else:
        try:
            ids, matrix = given
        except (TypeError, ValueError):
            raise InputError("Give the queries as a Parquet file, an Arrow table, or a pair (ids, matrix).") from None
        queries = Vectors(list(ids), np.asarray(matrix), "queries")
    with prefix_errors(queries.source):
        storage: Any = make_storage(queries.matrix, "queries", fn)
        scoring.Collection(storage, fn=fn, precision=precision).scorer(storage)
        Ids(queries.ids, len(queries.matrix), "query")
        finite = np.isfinite(queries.matrix.astype(np.float64, copy=False)).all(axis=1)
        if not finite.all():
            raise InputError(f"Row {int(np.argmin(finite))} of the queries holds NaN or infinity. Drop or correct it.")
    return queries


def _read(shard: Shard) -> Vectors:
    """The vectors of a Parquet file, or of a block of a data set."""
    if not isinstance(shard, str):
        block = Vectors.from_table(shard, "data set")
        return replace(
            block, source=f"data set, in the block that begins with {list_examples(block.ids[:1]) or 'nothing'}"
        )
    matrix, ids = ParquetVectors(shard).read()
    return Vectors(ids, matrix, shard)
