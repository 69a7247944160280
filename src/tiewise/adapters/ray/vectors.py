"""Embeddings in shards: Parquet files with a column of ids and a column of vectors, scored where they lie.

Every shard scores all queries against its own documents (`tiewise.scoring`), counts, and forgets the scores. On a
worker with a GPU and torch, the vectors go there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise import scoring
from tiewise.adapters.ray.working import Counted, Found, Reading, bits
from tiewise.data.columns import Floats, positions
from tiewise.data.runs import DOC_NAMES, QUERY_NAMES, Qrels
from tiewise.errors import InputError, counted, listed
from tiewise.scoring.ids import Ids
from tiewise.scoring.options import check_pair_function, check_precision
from tiewise.scoring.scorers import make_scorer
from tiewise.tables.optional import need
from tiewise.ties.shards import small

__all__ = ["VectorCounter", "Vectors", "query_vectors"]

ID_NAMES = ("id", "_id", *DOC_NAMES, *QUERY_NAMES)
VECTOR_NAMES = ("vector", "embedding", "embeddings", "vectors", "emb", "values")


@dataclass(frozen=True)
class Vectors:
    """Ids and their vectors, one a row."""

    ids: list[Any]
    matrix: NDArray[Any]  # (n_rows, n_dimensions)
    name: str = "vectors"  # where they came from, for messages

    @staticmethod
    def of_table(table: Any, name: str) -> Vectors:
        """The ids and vectors of an Arrow table; `name` says in messages where it came from."""
        ids, vectors = _columns(table.column_names, name)
        matrix = _matrix(table.column(vectors), f"{name}: column '{vectors}'")
        return Vectors(table.column(ids).to_pylist(), matrix, name)


@dataclass(frozen=True)
class VectorCounter:
    """How the shards of a collection are scored and counted."""

    qrels: Qrels
    queries: Vectors
    orders: Sequence[str]
    fn: str = "dot"
    precision: str = "float32"
    gpu: bool = False  # workers have one each
    once = False  # all queries are in all shards, so all need the scores of the others

    def first(self, shard: Any) -> tuple[Found, Counted]:
        """The scores of the judged documents that a shard holds."""
        docs = _read(shard)
        present = positions(self._places, self.qrels.queries) >= 0
        score = np.full(len(self.qrels), np.nan)
        if docs.ids and present.any():
            with _blamed(docs):
                score = scoring.judged_scores(*self._operands(docs), **self._how, doc_ids=docs.ids)
        held = np.flatnonzero(~np.isnan(score))
        return (
            Found(
                rows=small(held),
                score=score[held],
                present=bits(present),
                unjudged=frozenset() if present.any() else self.unjudged,  # for a message
                length=len(docs.ids),
                docs=tuple(str(one) for one in docs.ids[:3]),
            ),
            {},
        )

    def second(self, shard: Any, scores: Floats, sha256: str) -> tuple[None, Counted]:
        """What a shard counts for the judged scores of all."""
        docs = _read(shard)
        if not docs.ids:
            return None, {}
        with _blamed(docs):
            ties = scoring.tie_groups(
                *self._operands(docs), **self._how, doc_ids=docs.ids, scores=scores, orders=tuple(self.orders)
            )
        return None, {Reading("float64"): ties.counts()}

    @property
    def unjudged(self) -> frozenset[str]:
        """The queries that have no judgments."""
        return frozenset(self._places) - self.qrels.query_index.keys()

    @property
    def _how(self) -> dict[str, Any]:
        return {"fn": self.fn, "precision": self.precision, "query_ids": self.queries.ids}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {str(one): place for place, one in enumerate(self.queries.ids)}

    @cached_property
    def _there(self) -> Any:
        """The queries, where products are made: fetched once for all shards of a worker."""
        return self._placed(self.queries.matrix)

    def _operands(self, docs: Vectors) -> tuple[Any, Any, Qrels]:
        return self._there, self._placed(docs.matrix), self.qrels

    def _placed(self, matrix: NDArray[Any]) -> Any:
        """A matrix on this worker's GPU, if it has one and torch can use it."""
        if not self.gpu:
            return matrix
        torch = need("torch", "Scoring on a GPU", "torch")
        return torch.as_tensor(matrix).to("cuda") if torch.cuda.is_available() else matrix


def query_vectors(given: Any, fn: str = "dot", precision: str = "float32") -> Vectors:
    """The vectors of the queries, checked, so that whatever is wrong later is wrong with a shard.

    They are a Parquet file, an Arrow table, or a pair of ids and a matrix.
    """
    check_pair_function(fn)
    check_precision(precision)
    queries = _queries(given)
    with _blamed(queries):
        make_scorer(queries.matrix, queries.matrix, fn, precision)
        Ids(queries.ids, len(queries.matrix), "query")
        finite = np.isfinite(queries.matrix.astype(np.float64, copy=False)).all(axis=1)
        if not finite.all():
            raise InputError(
                f"Row {int(np.argmin(finite))} of the queries holds NaN or infinity. Leave it out or mend it."
            )
    return queries


def _queries(given: Any) -> Vectors:
    if isinstance(given, Vectors):
        return given
    if isinstance(given, (str, os.PathLike)):
        return _read(os.fspath(given))
    if hasattr(given, "column_names"):
        return Vectors.of_table(given, "queries")
    try:
        ids, matrix = given
    except (TypeError, ValueError):
        raise InputError("Give the queries as a Parquet file, an Arrow table, or a pair (ids, matrix).") from None
    return Vectors(list(ids), np.asarray(matrix), "queries")


@contextmanager
def _blamed(vectors: Vectors) -> Iterator[None]:
    """What is found to be wrong, said of where the vectors came from."""
    try:
        yield
    except InputError as error:
        raise InputError(*(f"{vectors.name}: {problem}" for problem in error.problems)) from None


def _columns(found: Sequence[str], name: str) -> tuple[str, str]:
    """The columns of ids and of vectors among some."""
    ids = _first(found, ID_NAMES, f"{name}: has no column of ids")
    return ids, _first(found, VECTOR_NAMES, f"{name}: has no column of vectors")


def _first(found: Sequence[str], known: Sequence[str], problem: str) -> str:
    for name in known:
        if name in found:
            return name
    names = f"{', '.join(known[:-1])} or {known[-1]}"
    raise InputError(f"{problem}, called {names}. It has: {', '.join(found) or 'none'}. Rename one.")


def _read(shard: Any) -> Vectors:
    if not isinstance(shard, str):
        found = Vectors.of_table(shard, "data set")
        return replace(found, name=f"data set, in the block that begins with {listed(found.ids[:1]) or 'nothing'}")
    arrow = need("pyarrow", "Parquet", "arrow")
    parquet = need("pyarrow.parquet", "Parquet", "arrow")
    try:
        with parquet.ParquetFile(shard) as file:
            table = file.read(columns=_columns(file.schema_arrow.names, shard))
    except FileNotFoundError:
        raise InputError(f"{shard}: there is no such file.") from None
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"{shard}: is not readable as Parquet ({str(error).splitlines()[0].rstrip('.')}).") from None
    return Vectors.of_table(table, shard)


def _matrix(column: Any, where: str) -> NDArray[Any]:
    """A column of lists of one length as a matrix."""
    arrow = need("pyarrow", "Parquet", "arrow")
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if isinstance(array, arrow.ChunkedArray):
        array = arrow.concat_arrays(array.chunks) if array.num_chunks else arrow.array([], array.type.value_type)
    if hasattr(array, "storage") and not hasattr(array, "flatten"):
        array = array.storage  # a tensor of Ray or Arrow
    if not hasattr(array, "flatten"):
        raise InputError(f"{where} holds {array.type}, not vectors.")
    if array.null_count:
        row = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{where} has no vector in row {row} ({counted(array.null_count, 'such row')}). Drop it.")
    values = array.flatten().to_numpy(zero_copy_only=False)
    rows = len(array)
    if hasattr(array, "offsets") and rows:
        lengths = np.diff(array.offsets.to_numpy())
        odd = np.flatnonzero(lengths != lengths[0])
        if len(odd):
            row = int(odd[0])
            raise InputError(
                f"{where} has vectors of {lengths[0]} numbers and, in row {row}, of {lengths[row]}. Use one length."
            )
    return values.reshape(rows, -1) if rows else np.zeros((0, 1), dtype=np.float32)
