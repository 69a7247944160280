"""One query in many orders of its ties: the worst order, random ones, and the best.

An order of ties is a run without ties, so `evaluate` gives its value, by any measure. The random orders are seeded and
sorted by their value, so that the value rises from stop to stop of the slider. The page shows the tie groups that hold
a judged document, and counts the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiewise.analysis.evaluating import evaluate
from tiewise.data.columns import Codes, Floats
from tiewise.data.documents import Documents
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.metrics.definition import Measure
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.ties.counting import count_ties
from tiewise.ties.orders import group_rows, random_priorities

#: How many random orders are sampled, and how many of them, evenly by their value, become stops of the slider.
RANDOM_ORDERS, STOPS = 99, 19
#: The most ranks that are shown document by document.
SHOWN_RANKS = 40


def replay_query(
    qrels: Qrels, run: Run, query: str, measures: Sequence[Measure], options: Mapping[str, Any]
) -> dict[str, Any] | None:
    """A query of a run in several orders of its ties, by the first measure, as plain values; None if it has no list.

    `stops` go from the worst order to the best. Each has the values of all measures, and in `slots`, rank by rank, the
    place in `docs` of the document at that rank, −1 for one that was not judged.
    """
    ranking = _Ranking.of_query(qrels, run, query, measures[0], options)
    if ranking is None:
        return None
    orders = ranking.orders()
    values = ranking.values(orders, measures, options["depth"])
    ends = ["the worst order", "the best order"]
    if measures[0].needs_subtopics or not measures[0].sorted_extremes:  # the orders by label need not be the ends
        by_value = np.argsort(values[:, 0], kind="stable")
        orders, values = orders[by_value], values[by_value]
        ends = ["the worst order of those tried", "the best order of those tried"]
    by_value = 1 + np.argsort(values[1:-1, 0], kind="stable")
    step = (RANDOM_ORDERS + 1) // (STOPS + 1)
    chosen = [0, *by_value[step - 1 :: step].tolist(), len(orders) - 1]
    shown = min(ranking.depth, SHOWN_RANKS, len(ranking.docs))
    slots = np.where(ranking.judged, np.arange(len(ranking.docs)), -1)[orders[chosen][:, :shown]]
    visible = sorted(set(slots.ravel().tolist()) - {-1})
    place = {doc: at for at, doc in enumerate(visible)} | {-1: -1}
    return {
        "query": query,
        "depth": ranking.depth,
        "shown": shown,
        "length": len(ranking.docs),
        "docs": [[ranking.docs[doc], float(ranking.label[doc])] for doc in visible],
        "groups": ranking.groups(shown),
        "ends": ends,
        "stops": [
            {"values": values[order].tolist(), "slots": [place[doc] for doc in row]}
            for order, row in zip(chosen, slots.tolist(), strict=True)
        ],
    }


@dataclass(frozen=True)
class _Ranking:
    """The documents of one query, best first; arrays have an entry for each document."""

    query: str
    docs: list[str]
    score: Floats
    start: Codes  # (n_docs,): the number of documents above the tie group
    label: Floats  # (n_docs,): 0 if it was not judged
    judged: np.ndarray[Any, np.dtype[np.bool_]]
    key: Floats  # (n_docs,): the sort key of the best order
    depth: int  # how many ranks the measure uses
    judgments: dict[str, Any]  # of all judged documents, retrieved or not: labels, or labels for subtopics

    @classmethod
    def of_query(
        cls, qrels: Qrels, run: Run, query: str, measure: Measure, options: Mapping[str, Any]
    ) -> _Ranking | None:
        place = run.query_index.get(query)
        judgments, labels = _judgments(qrels, query)
        if place is None:
            return None
        rows = np.arange(run.offsets[place], run.offsets[place + 1])
        scores = Run.from_columns([query] * len(rows), run.ids(rows), run.value[rows])
        if options["judged_only"] or measure.judged_only:
            scores = scores.judged_only(Qrels.from_dict({query: judgments}))
        scores = scores.projected(options["score_dtype"]) if options["score_dtype"] else scores
        if not len(scores):
            return None
        down, start, _ = group_rows(scores)
        docs = scores.ids(down)
        judged = np.array([doc in labels for doc in docs])
        label = np.array([labels.get(doc, 0.0) for doc in docs])
        # Counting needs a retrieved document that is judged, so a second query has one.
        other, first = f"{query}'", next(iter(labels))
        both = Run.from_columns([query] * len(docs) + [other], [*docs, first], np.append(scores.value[down], 0.0))
        ties = count_ties(Qrels.from_dict({query: judgments, other: judgments}), both, ())["float64"]
        grouped = GroupedJudgments(ties.to_depth(options["depth"]))
        key = np.where(judged, measure.key(label), 0.0)
        depth = int(measure.depth(grouped)[0])
        return cls(query, docs, scores.value[down], start, label, judged, key, depth, judgments)

    def orders(self) -> Codes:
        """The worst order, random ones, and the best: (n_orders, n_docs) positions of documents."""
        worst = np.lexsort((self.judged, self.key, self.start))
        best = np.lexsort((~self.judged, -self.key, self.start))
        places = np.arange(len(self.docs))
        priorities = (random_priorities(places, seed=0, number=number) for number in range(RANDOM_ORDERS))
        return np.stack([worst, *(np.lexsort((one, self.start)) for one in priorities), best])

    def values(self, orders: Codes, measures: Sequence[Measure], depth: int | None) -> Floats:
        """The value of each order by each measure, (n_orders, n_measures); every order is evaluated as a query.

        NaN: the measure is not defined for this order.
        """
        n_orders, n = orders.shape
        first = next(iter(self.judgments))  # evaluating needs a retrieved judged document: one more query has it
        docs = list(dict.fromkeys([*self.docs, first]))
        names = [str(order) for order in range(n_orders + 1)]
        run = Run.from_codes(
            np.append(np.repeat(np.arange(n_orders), n), n_orders),
            names,
            Documents(np.append(orders.ravel(), docs.index(first)), docs),
            np.append(np.tile(-np.arange(n, dtype=np.float64), n_orders), 0.0),
            unique=True,
        )
        qrels = Qrels.from_dict(dict.fromkeys(names, self.judgments))
        report = evaluate(qrels, run, measures, oblivious=None, complete=True, depth=depth)
        values = np.full((n_orders + 1, len(measures)), np.nan)
        for place, measure in enumerate(measures):
            found = report.per_query(measure)
            values[[int(name) for name in found.queries], place] = found.expected
        return values[:n_orders]

    def groups(self, shown: int) -> list[dict[str, Any]]:
        """The tie groups within the ranks shown, with counts of labels; groups without a judged document are joined."""
        heads = np.flatnonzero(np.diff(self.start, prepend=-1))
        groups: list[dict[str, Any]] = []
        for head, end in zip(heads.tolist(), [*heads[1:].tolist(), len(self.docs)], strict=True):
            if head >= shown:
                break
            labels = Counter(self.label[head:end][self.judged[head:end]].tolist())
            if not labels and groups and not groups[-1]["labels"]:
                groups[-1]["size"] += end - head
                groups[-1]["groups"] += 1
                continue
            counts = [[label, number] for label, number in sorted(labels.items(), reverse=True)]
            size = {"start": head, "size": end - head, "groups": 1, "score": f"{self.score[head]:.9g}"}
            groups.append({**size, "labels": counts})
        return groups


def _judgments(qrels: Qrels, query: str) -> tuple[dict[str, Any], dict[str, float]]:
    """The judgments of a query, and the labels of its documents."""
    place = qrels.query_index[query]
    rows = np.arange(qrels.offsets[place], qrels.offsets[place + 1])
    labels = dict(zip(qrels.ids(rows), qrels.label[rows].tolist(), strict=True))
    return labels if qrels.subtopics is None else qrels.take(rows).to_dict()[query], labels
