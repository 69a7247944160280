"""What is counted for judged documents in the ranking of a whole collection, and the tie groups that come of it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Codes, Floats
from tiewise.errors import InputError, counted
from tiewise.scoring.blocks import Blocks
from tiewise.scoring.judgments import Judged, Slots
from tiewise.ties.groups import TieGroups

__all__ = ["TieCounts"]


class TieCounts(ABC):
    """What has been counted, along the judgments and the queries of the qrels."""

    def __init__(self, judged: Judged, orders: tuple[str, ...], given: Floats | None):
        self.judged, self.orders = judged, orders
        self.given = given  # the scores of all shards, if this is one of them

    @abstractmethod
    def add(self, blocks: Blocks) -> None:
        """Count for all blocks of queries and documents."""

    def begin_tables(self) -> None:
        """Make room for what is counted, and check that there is something to count for."""
        judged, given = self.judged, self.given
        judged.check_queries()
        n, queries = len(judged.qrels), len(judged.qrels.queries)
        self.score = np.full(n, np.nan) if given is None else given
        self.start, self.size = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.floor, self.floor_size = np.full(queries, np.nan), np.zeros(queries, np.int64)
        self.present = judged.place >= 0
        self.length, self.unjudged = np.where(self.present, judged.docs.n, 0), judged.unjudged
        counted = {"docid-asc": "docid-desc"}  # one follows from the other
        self.before = {counted.get(order, order): np.zeros(n, np.int64) for order in self.orders}
        if given is None:  # a shard may hold no judged document
            judged.check_docs()

    def check_given(self, mine: Codes, score: Floats) -> None:
        """Raise if judged documents have other scores here than those that all shards count for."""
        wrong = mine[self.score[mine] != score]
        if len(wrong):
            query, doc = self.judged.qrels.row(int(wrong[0]))
            raise InputError(
                f"The score given for document '{doc}' of query '{query}' is not the one it has here "
                f"({counted(len(wrong), 'such document')}). Gather judged_scores() with the same queries and options, "
                "on the same kind of device."
            )

    def set_floor(self, queries: Codes | slice, floor: Floats, floor_size: Codes) -> None:
        """The lowest score of some queries of the qrels, and how many documents have it."""
        self.floor[queries], self.floor_size[queries] = floor, floor_size

    def may_be_behind(self, slots: Slots, size: Codes) -> NDArray[np.bool_]:
        """Which judged documents may have tied ones before them.

        One that ties with itself alone has none; one of another shard may tie with a single one here.
        """
        return size > 1 if self.given is None else (size > 1) | ((size > 0) & ~slots.known)

    def break_ties(self, slots: Slots, group: Codes, tied: Codes, doc: Codes) -> None:
        """Count the tied documents before each judged one: those of a greater id, and those of an earlier row.

        `group` has the group of each slot, `tied` the groups of the documents `doc`.
        """
        judged, wanted = self.judged, slots.judged
        if "docid-desc" in self.before and len(tied):
            keys, own = judged.docs.keys(doc, judged.doc[wanted], lambda: judged.qrels.ids(wanted))
            self.before["docid-desc"][wanted] = _ahead(keys, tied, own, group)
        if "given" in self.orders and len(tied):
            here = judged.known[wanted]
            last = judged.docs.n  # an earlier row is the greater key
            self.before["given"][wanted[here]] = _ahead(last - doc, tied, last - judged.doc[wanted[here]], group[here])

    def groups(self) -> TieGroups:
        """The tie groups."""
        judged, qrels = self.judged, self.judged.qrels
        before = dict(self.before)
        if "docid-asc" in self.orders:
            before["docid-asc"] = np.where(self.size > 0, self.size - judged.known - before["docid-desc"], 0)
        return TieGroups(
            qrels=qrels,
            score=self.score,
            start=self.start,
            size=self.size,
            length=self.length,
            present=self.present,
            floor=self.floor,
            floor_size=self.floor_size,
            before={order: before[order] for order in self.orders},
            owned=None if self.given is None else judged.known,
            unjudged=self.unjudged,
            complete=True,  # all documents were counted
        )


def _ahead(keys: Codes, group: Codes, own: Codes, of: Codes) -> Codes:
    """For each judged document, how many tied documents of its group have a greater key; keys are from 0 on."""
    span = max(int(keys.max()), int(own.max(initial=0))) + 1
    ordered = np.sort(group * span + keys)
    return np.searchsorted(ordered, (of + 1) * span) - np.searchsorted(ordered, of * span + own, side="right")
