"""DuckDB: a search in SQL. ``rank()`` keeps all documents that tie with the k-th, ``row_number()`` would cut them."""

from __future__ import annotations

import duckdb
import pyarrow as pa

import tiewise as tw
from recipes.example import DOCS, QUERIES, K, check_against_exact

SEARCH = f"""
    SELECT queries.id AS query_id, docs.id AS doc_id, array_inner_product(queries.vector, docs.vector) AS score
    FROM queries, docs
    QUALIFY rank() OVER (PARTITION BY queries.id ORDER BY score DESC) <= {K}
    ORDER BY queries.rowid, score DESC
"""


def main() -> None:
    """Search in DuckDB and read its Arrow table as a run."""
    database = duckdb.connect()
    for name, vectors in (("docs", DOCS), ("queries", QUERIES)):
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
        rows = pa.table({"id": [str(row) for row in range(len(vectors))], "vector": column})
        database.register("rows", rows)
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
    run = tw.Run.from_frame(database.sql(SEARCH).to_arrow_table())
    check_against_exact(run)


if __name__ == "__main__":
    main()
