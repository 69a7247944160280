"""The whole run from its shards: a first pass, a second pass where shards share queries, and sums of counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

import numpy as np

from tiewise.adapters.ray.cluster import Workers
from tiewise.adapters.ray.counting import ShardCounter, ShardSummary
from tiewise.adapters.ray.shard_files import describe_shards
from tiewise.data.columns import Codes, Floats, project
from tiewise.data.runs import Qrels, Source
from tiewise.errors import InputError
from tiewise.tables.wording import count_noun, list_examples
from tiewise.ties.counted import Counted
from tiewise.ties.groups import TieGroups
from tiewise.ties.shards import Total

__all__ = ["ShardedRun", "merge_shards"]


@dataclass(frozen=True, eq=False)
class ShardedRun(Counted):
    """A run that was counted in shards: `tiewise.evaluate` takes it in place of a run."""

    shards: int = 0
    cut: Literal["query", "document"] = "query"  # "query": no judged query is in two shards
    moved: int = 0  # bytes of scores and counts that workers sent

    def __repr__(self) -> str:
        rows = "" if self.n_rows is None else f", {self.n_rows:,} rows"
        return f"<ShardedRun: {count_noun(self.shards, 'shard')} cut by {self.cut}{rows}, {self.moved:,} bytes moved>"


def merge_shards(counter: ShardCounter, workers: Workers, names: Sequence[str]) -> ShardedRun:
    """The whole run; `names` are those of the shards, for error messages."""
    qrels = counter.qrels
    shards, sums = workers.count()
    _check_bytes(shards, names)
    scores = _merge_scores(qrels, shards, names)
    queries = np.concatenate([shard.queries for shard in shards])
    unjudged = counter.unjudged.union(*(shard.unjudged for shard in shards))
    _check_matches(qrels, scores, queries, unjudged, shards)
    cut: Literal["query", "document"] = "query" if len(np.unique(queries)) == len(queries) else "document"
    moved = sum(shard.nbytes for shard in shards)
    if cut == "document" or counter.complete:
        _check_no_ranks(counter)
        second, sums = workers.count(scores)
        _check_unchanged(shards, second, names)
    totals = {dtype: Total(len(qrels), len(qrels.queries), orders) for dtype, orders in counter.orders.items()}
    for counts, nbytes in sums:
        moved += nbytes
        for dtype, one in counts.items():
            totals[dtype].add(one)
    ties = {
        dtype: TieGroups(
            qrels=qrels,
            score=scores if dtype == "float64" else project(scores, dtype),
            **total.columns(),
            unjudged=unjudged,
            complete=counter.complete,
        )
        for dtype, total in totals.items()
    }
    facts = {} if counter.complete else _facts(counter, shards, names, ties_known=cut == "query")
    return ShardedRun(
        ties,
        **facts,
        score_dtype=counter.score_dtype,
        judged_only=counter.judged_only,
        shards=len(shards),
        cut=cut,
        moved=moved,
    )


def _merge_scores(qrels: Qrels, shards: Sequence[ShardSummary], names: Sequence[str]) -> Floats:
    """The score of every judged document, NaN where no shard has it; raises if two shards have it."""
    scores, shard_of = np.full(len(qrels), np.nan), np.full(len(qrels), -1, dtype=np.int32)
    for number, shard in enumerate(shards):
        twice = shard.judged[shard_of[shard.judged] >= 0]
        if len(twice):
            query, doc = qrels.row(int(twice[0]))
            raise InputError(
                f"{names[number]}: document '{doc}' of query '{query}' is in {names[shard_of[twice[0]]]} too "
                f"({count_noun(len(twice), 'such document')}). Shards must not share documents. Was one given twice?"
            )
        scores[shard.judged], shard_of[shard.judged] = shard.scores, number
    return scores


def _facts(
    counter: ShardCounter, shards: Sequence[ShardSummary], names: Sequence[str], ties_known: bool
) -> dict[str, Any]:
    """Rows, ties and provenance. Ties between rows of different shards are not counted: then they are None."""
    hashes = [shard.sha256 for shard in shards]
    source = None
    if all(hashes):
        whole = hashes[0] if len(hashes) == 1 else sha256("\n".join(hashes).encode()).hexdigest()
        source = Source(describe_shards(names), whole, ", ".join(sorted({shard.format for shard in shards})))
    rows = sum(shard.rows for shard in shards)
    distinct = frozenset[str]().union(*(shard.unjudged for shard in shards))
    if not ties_known or sum(len(shard.unjudged) for shard in shards) > len(distinct):
        return {"source": source, "n_rows": rows}
    new_ties = None if counter.score_dtype is None else sum(shard.new_ties for shard in shards)
    tied_rows = sum(shard.tied_rows for shard in shards)
    return {"source": source, "n_rows": rows, "tied_rows": tied_rows, "new_ties": new_ties}


def _check_bytes(shards: Sequence[ShardSummary], names: Sequence[str]) -> None:
    """Raise if two files are equal."""
    seen: dict[str, str] = {}
    for shard, name in zip(shards, names, strict=True):
        if shard.sha256 and seen.setdefault(shard.sha256, name) != name:
            raise InputError(
                f"{name}: has the same bytes as {seen[shard.sha256]}, so every document would count twice. List each "
                "shard once."
            )


def _check_matches(
    qrels: Qrels, scores: Floats, queries: Codes, unjudged: frozenset[str], shards: Sequence[ShardSummary]
) -> None:
    """Raise if the qrels and the shards share no query or no document."""
    if not len(qrels.queries):
        raise InputError("The qrels are empty: there is nothing to measure against.")
    if not len(queries) and not unjudged:
        raise InputError("The run is empty: it has no query.")
    if not len(queries):
        raise InputError(
            f"The run and the qrels have no query in common. Queries of the run: {list_examples(sorted(unjudged))}; of "
            f"the qrels: {list_examples(qrels.queries)}."
        )
    if np.isnan(scores).all():
        docs = next((shard.docs for shard in shards if shard.docs), ())
        raise InputError(
            f"The run and the qrels have no document in common. Documents of the run: {list_examples(docs)}; of the "
            f"qrels: {list_examples(qrels.ids(np.arange(min(3, len(qrels)))))}."
        )


def _check_no_ranks(counter: ShardCounter) -> None:
    if any("rank" in orders for orders in counter.orders.values()):
        raise InputError(
            "There are queries in more than one shard, and the rank columns of shards do not make one ranking. Use "
            "oblivious='given' or another order."
        )


def _check_unchanged(first: Sequence[ShardSummary], second: Sequence[ShardSummary], names: Sequence[str]) -> None:
    """Raise if the second pass did not read what the first one read."""
    for before, after, name in zip(first, second, names, strict=True):
        if before.sha256 != after.sha256 or not np.array_equal(before.judged, after.judged):
            raise InputError(f"{name}: the shard changed during the evaluation. Evaluate again.")
