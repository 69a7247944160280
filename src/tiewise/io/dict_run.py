"""`DictRun`: a run that stays in the user's ``{query: {document: score}}``.

Most runs in Python are dictionaries already. To count one, judged documents are looked up by their ids as they are: no
id is coded, and only scores are copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats, project
from tiewise.data.runs import Qrels, RankedLists, Row, Run, all_text, check_numbers, mapped_columns, plain_columns
from tiewise.ties.counted import Counted, RunSource, count_lists

__all__ = ["DictRun"]


class DictRun(RankedLists, RunSource):
    """A run in the user's dictionary of dictionaries, whose ids are text."""

    rank = None
    source = None

    def __init__(self, table: Mapping[str, Mapping[str, float]], columns: tuple[Floats, Codes] | None = None):
        self._table = table
        self._dtypes: tuple[str, ...] = ()  # the types to which scores are rounded, one after another
        self.queries = tuple(table)
        self.value, self.offsets = columns or mapped_columns(Run, table)
        check_numbers(Run, self.value, self._row, None)

    @classmethod
    def of(cls, table: Mapping[Any, Any]) -> DictRun | None:
        """The run in a mapping; None if an id is not text, so that it cannot be looked up as it is."""
        columns = plain_columns(table)
        return None if columns is None and not all_text(table) else cls(table, columns)

    def _count(
        self,
        qrels: Qrels,
        orders: Sequence[str],
        dtypes: Sequence[str],
        score_dtype: str | None,
        scores: Floats | None,
    ) -> Counted:
        return count_lists(self, qrels, orders, dtypes, score_dtype, scores)

    def rows(self) -> Run:
        """The same run with coded ids."""
        run = Run.from_dict(self._table)
        for dtype in self._dtypes:
            run = run.projected(dtype)
        return run

    def _row(self, row: int) -> Row:
        place = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return Row(self.queries[place], list(self._table[self.queries[place]])[row - int(self.offsets[place])])

    # -- what counting asks for ---------------------------------------------------------------------------------

    def find(self, qrels: Qrels, places: Codes) -> tuple[Floats, None]:
        """The score of every judged document, NaN where it was not retrieved."""
        nothing: Mapping[str, float] = {}
        score = np.full(len(qrels), np.nan)
        docs, offsets = qrels.ids(np.arange(len(qrels))), qrels.offsets.tolist()
        for i, query in enumerate(qrels.queries):
            get = self._table.get(query, nothing).get
            low, high = offsets[i], offsets[i + 1]
            score[low:high] = [get(doc, np.nan) for doc in docs[low:high]]
        for dtype in self._dtypes:
            score = project(score, dtype)
        return score, None

    def rows_of(self, qrels: Qrels, judged: Codes) -> Codes:
        """The rows of some judged documents, which are all retrieved."""
        rows = np.empty(len(judged), dtype=np.int64)
        docs, query = qrels.ids(judged), qrels.query[judged]
        heads = np.append(np.flatnonzero(np.diff(query, prepend=-1)), len(judged)).tolist()
        for low, high in pairwise(heads):
            name = qrels.queries[int(query[low])]
            place = {doc: at for at, doc in enumerate(self._table[name])}
            rows[low:high] = [place[doc] for doc in docs[low:high]]
            rows[low:high] += self.offsets[self.query_index[name]]
        return rows

    def projected(self, dtype: str) -> DictRun:
        """The run as a reader sees it that keeps scores in another type: see `Run.projected`."""
        run = copy(self)
        for cached in ("descending", "tied_rows", "_same_as_previous"):
            vars(run).pop(cached, None)
        run._dtypes, run.value = (*self._dtypes, dtype), project(self.value, dtype)
        return run

    def ids(self, rows: NDArray[Any]) -> list[str]:
        """The document ids of some rows."""
        places = np.searchsorted(self.offsets, rows, side="right") - 1
        order = np.argsort(places, kind="stable")
        found = np.empty(len(rows), dtype=object)
        for some in np.split(order, np.flatnonzero(np.diff(places[order])) + 1):
            if len(some):
                place = int(places[some[0]])
                docs = list(self._table[self.queries[place]])
                found[some] = [docs[row] for row in (rows[some] - self.offsets[place]).tolist()]
        return found.tolist()
