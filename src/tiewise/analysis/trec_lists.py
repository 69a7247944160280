"""The lists of a run as trec_eval sees them.

It orders a list by score and then by descending id, keeps the first ranks (-M), and then removes unjudged documents
(-J). So a list is cut before it is condensed, and where it is cut inside a tie group, chance decides which judged
documents are left. A missing list (-c) is an empty one, but for a few names, where it is one unjudged document.

Version 9 reads scores as float32. Without -c it leaves missing lists out, where version 10 stops. With -c they count as
0 in the means, also in those of measures that give an empty list another value, and are not printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.analysis.measuring import check_common_queries
from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats
from tiewise.data.judgments import Qrels
from tiewise.errors import InputError
from tiewise.metrics import engine
from tiewise.metrics.aggregation import GEOMETRIC_MEAN
from tiewise.metrics.catalogue.average_precision import Interpolated
from tiewise.metrics.catalogue.discounted_gain import RnDCG
from tiewise.metrics.definition import SAMPLING, Measure, Sampling
from tiewise.metrics.estimate import SAMPLED, Estimates, Methods
from tiewise.metrics.grouped_judgments import GroupedJudgments, Order
from tiewise.metrics.hypergeometric import hypergeometric, is_possible
from tiewise.results.wording import count_noun, list_examples
from tiewise.ties.counted import RunSource
from tiewise.ties.groups import TieGroups

ORDER = "docid-desc"
#: The fewest random orders for lists of one length, of which there are many.
MIN_SAMPLES = 2


class _Cut(NamedTuple):
    """The numbers of documents that may be left of each list, (n_numbers, n_queries)."""

    length: Codes
    chance: Floats
    possible: NDArray[np.bool_]  # a chance may be too small for a float


class TrecLists:
    """The judged queries of a run, sorted by their ids as bytes, and the value of any measure for each of them."""

    def __init__(
        self, ties: TieGroups, *, show_missing: bool = True, depth: int | None = None, judged_only: bool = False
    ):
        self._ties, self._depth, self._judged_only, self._show_missing = ties, depth, judged_only, show_missing
        queries = ties.qrels.queries
        self.places = np.array(sorted(range(len(queries)), key=lambda place: queries[place].encode()))
        #: The queries that are printed, as places in `places`.
        self.shown = np.flatnonzero(ties.present[self.places] | show_missing)
        self.queries = tuple(queries[place] for place in self.places[self.shown].tolist())

    @classmethod
    def of(
        cls, qrels: Qrels, source: RunSource, *, complete: bool, all_judged: bool, version: int = 10, **limits: Any
    ) -> TrecLists:
        """Count a run: with `complete` it may lack judged queries, with `all_judged` documents of label 0 count."""
        old = version == 9
        dtype = "float32" if old else "float64"
        ties = source.count(qrels if all_judged else qrels.nonzero, (ORDER,), (dtype,)).ties[dtype]
        absent = [qrels.queries[place] for place in np.flatnonzero(~ties.present).tolist()]
        check_common_queries(qrels, len(qrels.queries) - len(absent), sorted(ties.unjudged), len(ties.unjudged))
        if absent and not complete and old:
            ties = ties.select_queries(np.flatnonzero(ties.present))
        elif absent and not complete:
            number = count_noun(len(absent), "judged query is", "judged queries are")
            them = "it" if len(absent) == 1 else "them"
            raise InputError(f"{number} missing from the run: {list_examples(absent)}. Add -c to count {them} as 0.")
        return cls(ties, show_missing=not old, **limits)

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
        values = engine.value(measure, grouped, order)
        return np.where(self._count_as_zero(measure), 0.0, values)[self.places]

    def _count_as_zero(self, measure: Measure) -> NDArray[np.bool_]:
        """Missing lists that are 0 whatever the measure gives an empty list, (n_queries,)."""
        adds_zero = not self._show_missing and not measure.total and measure.aggregation is not GEOMETRIC_MEAN
        return ~self._ties.present & adds_zero

    def is_undefined(self, measure: Measure) -> bool:
        """Whether trec_eval divides 0 by 0 for a query: it prints nan there and in the mean."""
        may_be_empty = self._judged_only or self._depth == 0
        if not isinstance(measure, (type(RnDCG), Interpolated) if may_be_empty else type(RnDCG)):
            return False
        grouped, _ = self._orders[measure.needs_all_judged]
        return bool(measure.is_undefined(grouped)[self.places[self.shown]].any())

    def relevance_strings(self, length: int) -> Iterator[str]:
        """For each query a character for each of the first documents: its label, ``>`` if above 9.

        ``-`` is a document without a label, and ``.`` is one with a negative label, as in trec_eval.
        """
        ties = self._ordered
        qrels = ties.qrels
        shown = (ties.size > 0) & (ties.start < length)
        for place in self.places[self.shown].tolist():
            rows = np.arange(qrels.offsets[place], qrels.offsets[place + 1])
            rows = rows[shown[rows]]
            text = ["-"] * int(min(length, ties.length[place]))
            for at, label in zip(ties.start[rows].tolist(), qrels.label[rows].tolist(), strict=True):
                text[at] = "." if label < 0 else ">" if label > 9 else str(int(label))
            yield "".join(text)

    # -- all orders ---------------------------------------------------------------------------------------------

    def estimates(self, measure: Measure) -> Estimates:
        """The estimates of each query over all orders of ties, in the order of the qrels."""
        each = self._estimates(measure, self._tied) if self._cut is None else self._mixture(measure)
        zero = self._count_as_zero(measure)
        if not zero.any():
            return each
        expected, minimum, maximum = (np.where(zero, 0.0, one) for one in (each.expected, each.minimum, each.maximum))
        return replace(each, expected=expected, minimum=minimum, maximum=maximum)

    def _estimates(self, measure: Measure, ties: TieGroups, sampling: Sampling = SAMPLING) -> Estimates:
        few = ties if measure.needs_all_judged or ties.qrels.pool is not None else ties.with_nonzero_labels()
        return engine.estimates(measure, GroupedJudgments(few), sampling=sampling)

    @cached_property
    def _tied(self) -> TieGroups:
        """The lists with their ties: cut, or condensed but not cut."""
        return self._ties.condensed() if self._judged_only else self._ties.to_depth(self._depth)

    @cached_property
    def _cut(self) -> _Cut | None:
        """How many documents may be left of lists that are cut and then condensed; None if lists are not both."""
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
        chance, possible = hypergeometric(size, judged, inside), is_possible(size, judged, inside)
        return _Cut(left + np.arange(chance.shape[1])[:, None], chance.T, possible.T)

    def _mixture(self, measure: Measure) -> Estimates:
        """The estimates of lists that are cut and then condensed, from those of each number of documents left.

        Random orders are shared out among the numbers by their probabilities.
        """
        assert self._cut is not None
        chance, possible = self._cut.chance, self._cut.possible
        each = []
        for seed, share in enumerate(chance.max(axis=1).tolist()):  # independent samples need seeds of their own
            sampling = Sampling(max(math.ceil(SAMPLING.samples * share), MIN_SAMPLES), seed)
            lists = replace(self._tied, length=np.where(possible[seed], self._cut.length[seed], 0))
            each.append(self._estimates(measure, lists, sampling))
        mean = np.sum([p * one.expected for p, one in zip(chance, each, strict=True)], axis=0)
        spread = [p * (one.variance + (one.expected - mean) ** 2) for p, one in zip(chance, each, strict=True)]
        return Estimates(
            measure.name,
            self._ties.qrels.queries,
            expected=mean,
            minimum=np.min(np.where(possible, [one.minimum for one in each], np.inf), axis=0),
            maximum=np.max(np.where(possible, [one.maximum for one in each], -np.inf), axis=0),
            variance=np.sum(spread, axis=0),
            method=_mix_methods([one.method for one in each], chance),
            aggregation=measure.aggregation,
            powers=partial(self._power, measure) if measure.aggregation is GEOMETRIC_MEAN else None,
            limits=measure.limits,
        )

    def _power(self, measure: Measure, exponent: float) -> Estimates:
        return self._mixture(measure.to_power(exponent))


def _mix_methods(methods: list[Methods | None], chance: Floats) -> Methods | None:
    """The weakest word of each query, and the standard error of a sum of independent samples."""
    found = [(p, one) for p, one in zip(chance, methods, strict=True) if one is not None]
    if not found:
        return None
    expected, extremes, std = (
        np.max([getattr(one, name) for _, one in found], axis=0) for name in ("expected", "extremes", "std")
    )
    squares = np.sum([np.nan_to_num(p * one.standard_error) ** 2 for p, one in found], axis=0)
    return Methods(expected, extremes, std, np.where(expected == SAMPLED, np.sqrt(squares), np.nan))
