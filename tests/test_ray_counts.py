"""What workers count and how it is put together, without Ray: any cut, any grouping of sums, any order of answers."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tiewise.adapters.ray.cluster import said
from tiewise.adapters.ray.evaluating import _passes
from tiewise.adapters.ray.gathering import Sums
from tiewise.adapters.ray.working import Reading, RunCounter, added, answered, bits, flags
from tiewise.data.runs import Qrels, Run
from tiewise.errors import InputError
from tiewise.ties import TieGroups, judged_scores, tie_groups
from tiewise.ties.shards import Counts, Total, small

ORDERS = ("docid-desc", "docid-asc", "given")

ids = st.sampled_from([f"d{i}" for i in range(12)])
queries = st.sampled_from(["q1", "q2", "q3", "10"])
scores = st.sampled_from([0.0, -0.0, 0.5, 0.5 + 1e-9, 1.5, float("inf"), float("-inf")])
runs = st.dictionaries(queries, st.dictionaries(ids, scores, min_size=1, max_size=12), min_size=1)
judgments = st.dictionaries(queries, st.dictionaries(ids, st.sampled_from([0, 1, 2, -1]), min_size=1), min_size=1)


class Here:
    """Shards that are data frames, counted in this process, with answers in any order and sums of any neighbours."""

    def __init__(self, counter, shards, seed):
        self.counter, self.shards, self.random = counter, shards, random.Random(seed)

    def first(self):
        for number in self.random.sample(range(len(self.shards)), len(self.shards)):
            note, counts = answered(lambda n=number: self.counter.first(self.shards[n]))
            yield number, note, lambda counts=counts: counts

    def second(self, scores, sha256):
        answers = [answered(lambda s=shard: self.counter.second(s, scores, "")) for shard in self.shards]
        assert all(said(note).size == len(counts) for note, counts in answers)
        sizes, left = (len(self.counter.qrels), len(self.counter.qrels.queries)), [counts for _, counts in answers]
        while left:
            many = self.random.randint(1, len(left))
            yield added(sizes, left[:many]), sum(map(len, left[:many]))
            left = left[many:]


class Frame:
    """A block of a data set, as far as it matters here."""

    def __init__(self, rows):
        self._columns = dict(zip(("query_id", "doc_id", "score"), map(list, zip(*rows, strict=True)), strict=True))
        self.columns = list(self._columns)

    def __getitem__(self, name):
        return self._columns[name]


@settings(max_examples=150, deadline=None)
@given(table=runs, judged=judgments, seed=st.integers(0, 999), pieces=st.integers(1, 5), by_query=st.booleans())
def test_any_cut_adds_up_to_the_whole(table, judged, seed, pieces, by_query):
    rng, of = random.Random(seed), {}
    parts: list[list[tuple[str, str, float]]] = [[] for _ in range(pieces)]
    for q, docs in table.items():
        for d, s in docs.items():
            parts[of.setdefault(q if by_query else (q, d), rng.randrange(pieces))].append((q, d, s))
    parts = [part for part in parts if part]
    whole: dict[str, dict[str, float]] = {}
    for q, d, s in (row for part in parts for row in part):
        whole.setdefault(q, {})[d] = s
    qrels, run = Qrels.from_dict(judged), Run.from_dict(whole)
    assume(not np.isnan(judged_scores(qrels, run)).all())
    counter = RunCounter(qrels, {"float64": ORDERS, "float32": ORDERS})
    kept = {one: counter.orders_of(one) for one in counter.readings}
    gathered, sums, cut, moved = _passes(Here(counter, [Frame(part) for part in parts], seed), counter, None, kept)
    assert cut == "query" or not by_query
    assert moved > 0 and gathered.shards == len(parts)
    found = sums.groups(gathered.scores, frozenset(gathered.unjudged))
    for dtype, ties in found.items():
        assert_equal(ties, tie_groups(qrels, run if dtype == "float64" else run.projected(dtype), ORDERS))
    assert gathered.facts("here", False).rows == len(run)
    if cut == "query" and gathered.facts("here", False).tied_rows is not None:
        assert gathered.facts("here", False).tied_rows == run.tied_rows


def assert_equal(a: TieGroups, b: TieGroups) -> None:
    for name in ("score", "start", "size", "length", "present", "floor", "floor_size"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert (a.unjudged, a.owned, set(a.before)) == (b.unjudged, None, set(b.before))
    for order in a.before:
        np.testing.assert_array_equal(a.before[order], b.before[order], err_msg=order)


def test_counts_are_small():
    n = 1000
    zeros, start = np.zeros(n, np.int64), np.arange(n) // 10
    counts = Counts.of(
        start, zeros, zeros > 0, {}, np.ones(2, bool), np.array([5, 2**40]), np.zeros(2), np.ones(2, int)
    )
    assert len(counts.rows) == n - 10 and counts.start.dtype == np.uint8 and counts.rows.dtype == np.uint16
    assert counts.length.dtype == np.int64  # what no smaller type holds stays
    total = Total(n, 2, ())
    total.add(counts)
    total.add(counts)
    assert (total.start == 2 * start).all() and total.length.tolist() == [10, 2**41]
    assert small(np.zeros(0, np.int64)).dtype == np.uint8


@given(st.lists(st.booleans(), max_size=40))
def test_a_bit_a_query(present):
    there = np.array(present, dtype=bool)
    assert flags(bits(there), len(there)).tolist() == np.flatnonzero(there).tolist()


def test_a_file_that_changes_between_the_passes(tmp_path):
    path: Path = tmp_path / "part.trec"
    path.write_text("q Q0 a 1 0.5 x\n")
    counter = RunCounter(Qrels.from_dict({"q": {"a": 1, "b": 1}}), {"float64": ()})
    found, _ = counter.first(str(path))
    counter.second(str(path), np.array([0.5, np.nan]), found.sha256)
    path.write_text("q Q0 a 1 0.25 x\n")
    with pytest.raises(InputError, match=r"part\.trec: was changed while it was being evaluated"):
        counter.second(str(path), np.array([0.5, np.nan]), found.sha256)
    with pytest.raises(InputError, match="did not find the judged documents of the first"):
        Sums(counter.qrels, {Reading("float64"): ()}).check_whole(np.array([0.5, np.nan]))
