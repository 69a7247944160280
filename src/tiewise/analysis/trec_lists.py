"""The lists of a run as trec_eval 10 sees them.

It orders a list by score and then by descending id, keeps the first ranks (-M), and then removes unjudged documents
(-J). So a list is cut before it is condensed, and where it is cut inside a tie group, chance decides which judged
documents are left. A missing list (-c) is an empty one, but for a few names, where it is one unjudged document.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from tiewise.data.columns import Codes, Floats
from tiewise.data.runs import Qrels
from tiewise.errors import InputError
from tiewise.metrics import engine
from tiewise.metrics.aggregation import GEOMETRIC_MEAN
from tiewise.metrics.catalogue.interpolated_precision import Interpolated
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimates, Methods
from tiewise.metrics.grouped_judgments import GroupedJudgments, Order
from tiewise.metrics.hypergeometric import hypergeometric
from tiewise.tables.wording import count_noun, list_examples
from tiewise.ties.counted import RunSource
from tiewise.ties.groups import TieGroups

__all__ = ["TrecLists"]

ORDER = "docid-desc"


class TrecLists:
    """The judged queries of a run, sorted by their ids as bytes, and the value of any measure for each of them."""

    def __init__(self, ties: TieGroups, *, depth: int | None = None, judged_only: bool = False):
        self._ties, self._depth, self._judged_only = ties, depth, judged_only
        queries = ties.qrels.queries
        self.places = np.array(sorted(range(len(queries)), key=lambda place: queries[place].encode()))
        self.queries = tuple(queries[place] for place in self.places.tolist())

    @classmethod
    def of(cls, qrels: Qrels, source: RunSource, *, complete: bool, all_judged: bool, **limits: Any) -> TrecLists:
        """Count a run: with `complete` it may lack judged queries, with `all_judged` documents of label 0 count."""
        ties = source.count(qrels if all_judged else qrels.nonzero, (ORDER,), ("float64",)).ties["float64"]
        absent = [qrels.queries[place] for place in np.flatnonzero(~ties.present).tolist()]
        if len(absent) == len(qrels.queries):
            raise InputError(
                "The run and the qrels have no query in common. Queries of the run: "
                f"{list_examples(sorted(ties.unjudged))}; of the qrels: {list_examples(qrels.queries)}."
            )
        if absent and not complete:
            number = count_noun(len(absent), "judged query is", "judged queries are")
            them = "it" if len(absent) == 1 else "them"
            raise InputError(f"{number} missing from the run: {list_examples(absent)}. Add -c to count {them} as 0.")
        return cls(ties, **limits)

    def fill_missing(self) -> TrecLists:
        """The same with one unjudged document in each missing list."""
        length = np.where(self._ties.present, self._ties.length, 1)
        return TrecLists(replace(self._ties, length=length), depth=self._depth, judged_only=self._judged_only)

    # -- one order ----------------------------------------------------------------------------------------------

    @cached_property
    def _ordered(self) -> TieGroups:
        """The lists in trec_eval's order of ties, cut and condensed."""
        ties, query = self._ties, self._ties.qrels.query
        rank, length, kept = ties.start + 1 + ties.before[ORDER], ties.length, ties.size > 0
        if self._depth is not None:
            kept, length = kept & (rank <= self._depth), np.minimum(length, self._depth)
        if self._judged_only:
            kept = kept & (ties.qrels.label >= 0)
            rows = np.flatnonzero(kept)
            rows = rows[np.lexsort((rank[rows], query[rows]))]
            length = np.bincount(query[rows], minlength=len(length))
            rank = rank.copy()
            rank[rows] = np.arange(len(rows)) - (np.cumsum(length) - length)[query[rows]] + 1
        return replace(ties, start=np.where(kept, rank - 1, 0), size=kept.astype(np.int64), length=length, before={})

    @cached_property
    def _orders(self) -> dict[bool, tuple[GroupedJudgments, Order]]:
        """The lists for measures that need documents of label 0 (True), and for others."""
        ties = self._ordered
        few = ties if ties.qrels.pool is not None else ties.with_nonzero_labels()
        both = {True: GroupedJudgments(ties), False: GroupedJudgments(few)}
        return {key: (one, one.in_places(np.zeros(len(one.label), dtype=np.int64))) for key, one in both.items()}

    def values(self, measure: Measure) -> Floats:
        """The value of each query in trec_eval's order of ties, (n_queries,)."""
        grouped, order = self._orders[measure.needs_all_judged]
        return engine.value(measure, grouped, order)[self.places]

    def is_undefined(self, measure: Measure) -> bool:
        """Whether trec_eval divides 0 by 0 for a query: it prints nan there and in the mean."""
        if not self._judged_only or not isinstance(measure, Interpolated):
            return False  # no list is empty
        grouped, _ = self._orders[measure.needs_all_judged]
        return bool(measure.is_undefined(grouped).any())

    def relevance_strings(self, length: int) -> Iterator[str]:
        """For each query a character for each of the first documents: its label, ``>`` if above 9.

        ``-`` is a document without a label, and ``.`` is one with a negative label, as in trec_eval.
        """
        ties = self._ordered
        qrels = ties.qrels
        shown = (ties.size > 0) & (ties.start < length)
        for place in self.places.tolist():
            rows = np.arange(qrels.offsets[place], qrels.offsets[place + 1])
            rows = rows[shown[rows]]
            text = ["-"] * int(min(length, ties.length[place]))
            for at, label in zip(ties.start[rows].tolist(), qrels.label[rows].tolist(), strict=True):
                text[at] = "." if label < 0 else ">" if label > 9 else str(int(label))
            yield "".join(text)

    # -- all orders ---------------------------------------------------------------------------------------------

    def estimates(self, measure: Measure) -> Estimates:
        """The estimates of each query over all orders of ties, in the order of the qrels."""
        return self._estimates(measure, self._tied) if self._cut is None else self._mixture(measure)

    def _estimates(self, measure: Measure, ties: TieGroups) -> Estimates:
        few = ties if measure.needs_all_judged or ties.qrels.pool is not None else ties.with_nonzero_labels()
        return engine.estimates(measure, GroupedJudgments(few))

    @cached_property
    def _tied(self) -> TieGroups:
        """The lists with their ties: cut, or condensed but not cut."""
        if not self._judged_only:
            return self._ties.to_depth(self._depth)
        ties, query = self._ties, self._ties.qrels.query
        rows = np.flatnonzero((ties.size > 0) & (ties.qrels.label >= 0))
        rows = rows[np.lexsort((ties.start[rows], query[rows]))]
        length = np.bincount(query[rows], minlength=len(ties.length))
        place = np.arange(len(rows)) - (np.cumsum(length) - length)[query[rows]]
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (query[rows][1:] != query[rows][:-1]) | (ties.start[rows][1:] != ties.start[rows][:-1])
        group, first = np.cumsum(new) - 1, np.flatnonzero(new)
        start, size = np.zeros((2, len(query)), dtype=np.int64)
        start[rows], size[rows] = place[first][group], np.bincount(group)[group]
        return replace(ties, start=start, size=size, length=length, before={})

    @cached_property
    def _cut(self) -> tuple[Codes, Floats] | None:
        """For condensed lists of a limited depth: how many documents may be left of each, and how probable that is.

        Both are (n_queries, n_numbers). None if no list is both condensed and cut.
        """
        if not self._judged_only or self._depth is None:
            return None
        whole, condensed = self._ties, self._tied
        query = whole.qrels.query
        kept = (condensed.size > 0) & (whole.start < self._depth)
        above = kept & (whole.start + whole.size <= self._depth)  # of these, all are left
        left = np.bincount(query[above], minlength=len(whole.length))
        parts = np.flatnonzero(kept & ~above)  # one group at the most in a list
        size, judged, inside = np.ones(len(left)), np.zeros(len(left)), np.zeros(len(left))
        size[query[parts]], judged[query[parts]] = whole.size[parts], condensed.size[parts]
        inside[query[parts]] = self._depth - whole.start[parts]
        chance = hypergeometric(size, judged, inside)
        return left[:, None] + np.arange(chance.shape[1]), chance

    def _mixture(self, measure: Measure) -> Estimates:
        """The estimates of lists that are cut and then condensed, from those of each number of documents left."""
        assert self._cut is not None
        lengths, chances = self._cut
        n = len(lengths)
        mean, square, low, high = np.zeros(n), np.zeros(n), np.full(n, np.inf), np.full(n, -np.inf)
        methods: list[Methods] = []
        for length, chance in zip(lengths.T, chances.T, strict=True):
            possible = chance > 0
            each = self._estimates(measure, replace(self._tied, length=np.where(possible, length, 0)))
            mean += chance * each.expected
            square += chance * (each.variance + each.expected**2)
            low = np.where(possible, np.minimum(low, each.minimum), low)
            high = np.where(possible, np.maximum(high, each.maximum), high)
            if each.method is not None:
                methods.append(each.method)
        return Estimates(
            measure.name,
            self._ties.qrels.queries,
            expected=mean,
            minimum=low,
            maximum=high,
            variance=np.maximum(square - mean**2, 0.0),
            method=_weakest(methods),
            aggregation=measure.aggregation,
            powers=partial(self._power, measure) if measure.aggregation is GEOMETRIC_MEAN else None,
        )

    def _power(self, measure: Measure, exponent: float) -> Estimates:
        return self._mixture(measure.to_power(exponent))


def _weakest(methods: list[Methods]) -> Methods | None:
    """The weakest word of each query, and the largest standard error."""
    if not methods:
        return None
    expected, extremes, std = (
        np.max([getattr(one, name) for one in methods], axis=0) for name in ("expected", "extremes", "std")
    )
    return Methods(expected, extremes, std, np.fmax.reduce([one.standard_error for one in methods]))
