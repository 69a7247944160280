"""`MappedRun`: a run that stays in the user's ``{query: {document: score}}``.

Most runs in Python are dictionaries already. To measure one, judged documents are looked up by their ids as they are,
and scores are counted: no id is coded, and nothing but scores is copied. What needs rows and codes asks for `to_run`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats, project
from tiewise.data.runs import Lists, Qrels, Row, Run, all_text, check_numbers, mapped_columns, plain_columns
from tiewise.errors import InputError

__all__ = ["MappedRun"]

R = TypeVar("R", "Run", "MappedRun")


class MappedRun(Lists):
    """A run still in the user's ``{query: {document: score}}``: no id is coded, nothing but scores is copied.

    It answers what `tiewise.ties.groups` asks of a `Run`, several times faster than a `Run` can be built.
    """

    rank = None
    source = None

    def __init__(self, table: Mapping[str, Mapping[str, float]], columns: tuple[Floats, Codes] | None = None):
        self._table = table
        self._dtypes: tuple[str, ...] = ()
        self.queries = tuple(table)
        self.value, self.offsets = columns or plain_columns(table) or mapped_columns(Run, table)
        check_numbers(Run, self.value, self._row, None)

    @classmethod
    def of(cls, table: Mapping[Any, Any]) -> MappedRun | None:
        """The run in a mapping, if its ids are text already, so that they can be looked up as they are."""
        columns = plain_columns(table)
        return None if columns is None and not all_text(table) else cls(table, columns)

    def _row(self, row: int) -> Row:
        place = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return Row(self.queries[place], list(self._table[self.queries[place]])[row - int(self.offsets[place])])

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

    def projected(self, dtype: str) -> MappedRun:
        """The run as a reader sees it that keeps scores in another type: see `Run.projected`."""
        run = MappedRun.__new__(MappedRun)
        run._table, run.queries, run.offsets = self._table, self.queries, self.offsets
        run._dtypes, run.value = (*self._dtypes, dtype), project(self.value, dtype)
        return run

    def judged_only(self, qrels: Qrels) -> MappedRun:
        """The run without unjudged documents and those of a negative label: see `Run.judged_only`."""
        judged: dict[str, set[str]] = {query: set() for query in self.queries}
        for query, doc, label in qrels:
            if label >= 0 and query in judged:
                judged[query].add(doc)
        return self._read_alike(
            MappedRun({q: {d: s for d, s in docs.items() if d in judged[q]} for q, docs in self._table.items()})
        )

    def check_unchanged(self) -> None:
        """Raise if the user's dictionary is no longer the one that was read first."""
        now = self._read_alike(MappedRun(self._table))
        lists = np.array_equal(now.offsets, self.offsets) and np.array_equal(now.value, self.value)
        if now.queries != self.queries or not lists:
            raise InputError("The run's dictionary was changed after it was evaluated. Evaluate it again.")

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

    def to_run(self) -> Run:
        """The same run with coded ids."""
        return self._read_alike(Run.from_dict(self._table))

    def _read_alike(self, run: R) -> R:
        """Another run with its scores read as those of this one are."""
        for dtype in self._dtypes:
            run = run.projected(dtype)
        return run
