"""Reading and writing runs and judgments: files, dictionaries, Arrow tables, columns in memory."""

from typing import TYPE_CHECKING

from tiewise.io.reading import read_qrels, read_run
from tiewise.io.sources import as_qrels, as_run, as_source
from tiewise.results.optional import lazy_names

if TYPE_CHECKING:
    from tiewise.io.writing import write_qrels, write_run

__all__ = ["as_qrels", "as_run", "as_source", "read_qrels", "read_run", "write_qrels", "write_run"]

__getattr__ = lazy_names(__name__, {"tiewise.io.writing": "write_qrels write_run"})
