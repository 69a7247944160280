"""One query played through the orders of its ties: from the worst order over random ones to the best.

An order of ties is a run without ties, so `evaluate` says what it scores, by whatever measure. The random orders are
seeded and sorted by their value, so that the value rises from stop to stop. What is shown are the tie groups that hold
a judged document; all else is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiewise.analysis.evaluating import evaluate
from tiewise.data.columns import Codes, Floats
from tiewise.data.runs import Qrels, Run
from tiewise.metrics import engine
from tiewise.metrics.definition import Measure
from tiewise.ties.counting import count_ties
from tiewise.ties.orders import group_rows

__all__ = ["RANDOM", "SHOWN", "STOPS", "played"]

#: How many random orders are drawn, and how many of these, evenly by their value, become stops.
RANDOM, STOPS = 99, 19
#: So many ranks are shown document by document at the most.
SHOWN = 40


def played(
    qrels: Qrels, run: Run, query: str, measures: Sequence[Measure], options: Mapping[str, Any]
) -> dict[str, Any] | None:
    """A query of a run in several orders of its ties, by the first measure, as plain values; None if it has no list.

    `stops` run from the worst order to the best. Each has the values of all measures, and in `slots`, rank by rank, the
    place in `docs` of the document that stands there, −1 for one that was not judged.
    """
    listed = _List.of(qrels, run, query, measures[0], options)
    if listed is None:
        return None
    orders = listed.orders(np.random.default_rng(0))
    values = listed.values(orders, measures, options["depth"])
    by_value = 1 + np.argsort(values[1:-1, 0], kind="stable")
    step = (RANDOM + 1) // (STOPS + 1)
    chosen = [0, *by_value[step - 1 :: step].tolist(), len(orders) - 1]
    shown = min(listed.depth, SHOWN, len(listed.docs))
    slots = np.where(listed.judged, np.arange(len(listed.docs)), -1)[orders[chosen][:, :shown]]
    held = sorted(set(slots.ravel().tolist()) - {-1})
    place = {doc: at for at, doc in enumerate(held)} | {-1: -1}
    return {
        "query": query,
        "depth": listed.depth,
        "shown": shown,
        "length": len(listed.docs),
        "docs": [[listed.docs[doc], float(listed.label[doc])] for doc in held],
        "groups": listed.groups(shown),
        "stops": [
            {"values": values[order].tolist(), "slots": [place[doc] for doc in row]}
            for order, row in zip(chosen, slots.tolist(), strict=True)
        ],
    }


@dataclass(frozen=True)
class _List:
    """The list of one query, best first; rows of arrays are its documents."""

    query: str
    docs: list[str]
    score: Floats
    start: Codes  # (n_docs,): documents above the tie group
    label: Floats  # (n_docs,): 0 if it was not judged
    judged: np.ndarray[Any, np.dtype[np.bool_]]
    key: Floats  # (n_docs,): by what to sort for the best order
    depth: int  # how many ranks the measure looks at
    labels: dict[str, float]  # of all judged documents, retrieved or not

    @classmethod
    def of(cls, qrels: Qrels, run: Run, query: str, measure: Measure, options: Mapping[str, Any]) -> _List | None:
        own = run.query_index.get(query)
        labels = _labels(qrels, query)
        if own is None:
            return None
        rows = np.arange(run.offsets[own], run.offsets[own + 1])
        alone = Qrels.from_dict({query: labels})
        read = Run.from_columns([query] * len(rows), run.ids(rows), run.value[rows])
        read = read.judged_only(alone) if options["judged_only"] else read
        read = read.projected(options["score_dtype"]) if options["score_dtype"] else read
        if not len(read):
            return None
        down, start, _ = group_rows(read)
        docs = read.ids(down)
        judged = np.array([doc in labels for doc in docs])
        label = np.array([labels.get(doc, 0.0) for doc in docs])
        if judged.any():
            ties = count_ties(alone, read, ())["float64"]
        else:  # a list with a judged document beside it, for there must be one
            other = f"{query}'"
            both = Run.from_columns([query] * len(docs) + [other], [*docs, next(iter(labels))], np.zeros(len(docs) + 1))
            ties = count_ties(Qrels.from_dict({query: labels, other: labels}), both, ())["float64"]
        urns = engine.Urns(ties.to_depth(options["depth"]))
        key = np.where(judged, measure.key(label), 0.0)
        return cls(query, docs, read.value[down], start, label, judged, key, int(measure.depth(urns)[0]), labels)

    def orders(self, rng: np.random.Generator) -> Codes:
        """The worst order, random ones, and the best: (n_orders, n_docs), each by the places of its documents."""
        worst = np.lexsort((self.judged, self.key, self.start))
        best = np.lexsort((~self.judged, -self.key, self.start))
        chance = (np.lexsort((rng.random(len(self.docs)), self.start)) for _ in range(RANDOM))
        return np.stack([worst, *chance, best])

    def values(self, orders: Codes, measures: Sequence[Measure], depth: int | None) -> Floats:
        """What each order scores by each measure, (n_orders, n_measures): every order is a query of its own."""
        if not self.judged.any():  # all are worth the same
            return np.tile(self._worth(orders[0], measures, depth), (len(orders), 1))
        number, n = orders.shape
        names = [str(order) for order in range(number)]
        run = Run.from_codes(
            np.repeat(np.arange(number), n),
            names,
            orders.ravel(),
            self.docs,
            np.tile(-np.arange(n, dtype=np.float64), number),
            unique=True,
        )
        judged = Qrels.from_dict(dict.fromkeys(names, self.labels))
        report = evaluate(judged, run, measures, oblivious=None, complete=True, depth=depth)
        return np.stack([report.per_query(measure).expected for measure in measures], axis=1)

    def _worth(self, order: Codes, measures: Sequence[Measure], depth: int | None) -> Floats:
        """What a list scores that holds no judged document, (n_measures,)."""
        listed = {self.docs[doc]: -float(rank) for rank, doc in enumerate(order.tolist())}
        judged = {"none": self.labels, "some": self.labels}  # evaluating takes one list with a judged document
        run = {"none": listed, "some": {next(iter(self.labels)): 0.0}}
        report = evaluate(judged, run, measures, oblivious=None, complete=True, depth=depth)
        found = (report.per_query(measure) for measure in measures)
        return np.array([each.expected[list(each.queries).index("none")] for each in found])

    def groups(self, shown: int) -> list[dict[str, Any]]:
        """The tie groups within the ranks shown, with their labels counted; those without a judged document joined."""
        heads = np.flatnonzero(np.diff(self.start, prepend=-1))
        found: list[dict[str, Any]] = []
        for head, end in zip(heads.tolist(), [*heads[1:].tolist(), len(self.docs)], strict=True):
            if head >= shown:
                break
            labels = Counter(self.label[head:end][self.judged[head:end]].tolist())
            if not labels and found and not found[-1]["labels"]:
                found[-1]["size"] += end - head
                found[-1]["groups"] += 1
                continue
            counted = [[label, number] for label, number in sorted(labels.items(), reverse=True)]
            size = {"start": head, "size": end - head, "groups": 1, "score": f"{self.score[head]:.9g}"}
            found.append({**size, "labels": counted})
        return found


def _labels(qrels: Qrels, query: str) -> dict[str, float]:
    place = qrels.query_index[query]
    rows = np.arange(qrels.offsets[place], qrels.offsets[place + 1])
    return dict(zip(qrels.ids(rows), qrels.label[rows].tolist(), strict=True))
