"""Reading and writing runs and judgments: whatever the tools around us write, recognised from its content."""

from tiewise.io.reading import as_qrels, as_run, countable, read_qrels, read_run
from tiewise.io.writing import write_qrels, write_run

__all__ = ["as_qrels", "as_run", "countable", "read_qrels", "read_run", "write_qrels", "write_run"]
