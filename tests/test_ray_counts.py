"""Counting and merging shards, without Ray: any cut, and any grouping of sums."""

from __future__ import annotations

import os
import random
import socket
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tiewise as tw
from tiewise.adapters.ray.cluster import add_counts
from tiewise.adapters.ray.shards import RunCounter, list_shards, merge_shards
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.ties import TieGroups, judged_scores, tie_groups
from tiewise.ties.shards import MAX_SAMPLE, Counts, Total, fingerprint_ids, fingerprint_rows, sample_limit, small

ORDERS = ("docid-desc", "docid-asc", "given")

ids = st.sampled_from([f"d{i}" for i in range(12)])
queries = st.sampled_from(["q1", "q2", "q3", "10"])
scores = st.sampled_from([0.0, -0.0, 0.5, 0.5 + 1e-9, 1.5, float("inf"), float("-inf")])
runs = st.dictionaries(queries, st.dictionaries(ids, scores, min_size=1, max_size=12), min_size=1)
judgments = st.dictionaries(queries, st.dictionaries(ids, st.sampled_from([0, 1, 2, -1]), min_size=1), min_size=1)


class LocalWorkers:
    """Counts shards in this process, and adds the counts of neighbours in groups of random size."""

    def __init__(self, counter, shards, seed):
        self.counter, self.shards, self.random = counter, shards, random.Random(seed)

    def count(self, scores=None, fingerprint_limit=0):
        found = (self.counter.count(shard, scores, fingerprint_limit) for shard in self.shards)
        summaries, counts = zip(*found, strict=True)
        return list(summaries), self.add_up(list(counts))

    def add_up(self, counts):
        while counts:
            size = self.random.randint(1, len(counts))
            yield add_counts(len(self.counter.qrels), len(self.counter.qrels.queries), *counts[:size])
            counts = counts[size:]


class Frame:
    """A data frame, in place of a block of a data set."""

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
    shards = [Frame(part) for part in parts]
    merged = merge_shards(counter, LocalWorkers(counter, shards, seed).count, [f"shard {n}" for n in range(len(parts))])
    assert merged.cut == "query" or not by_query
    assert merged.moved > 0 and merged.shards == len(parts)
    for dtype, ties in merged.ties.items():
        assert_equal(ties, tie_groups(qrels, run if dtype == "float64" else run.projected(dtype), ORDERS))
    assert merged.n_rows == len(run)
    assert merged.tied_rows in (None, run.tied_rows)
    assert merged.tied_rows is not None or not by_query


def assert_equal(a: TieGroups, b: TieGroups) -> None:
    for name in ("score", "start", "size", "length", "present", "lowest", "lowest_size"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert (a.unjudged, a.in_shard, set(a.before)) == (b.unjudged, None, set(b.before))
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


def test_a_file_that_changes_between_the_passes(tmp_path):
    path: Path = tmp_path / "part.trec"

    class Changing(LocalWorkers):
        def count(self, scores=None, fingerprint_limit=0):
            path.write_text(f"q Q0 a 1 {0.5 if scores is None else 0.25} x\nq Q0 c 2 0.1 x\n")
            return super().count(scores, fingerprint_limit)

    other = tmp_path / "other.trec"
    other.write_text("q Q0 b 1 0.5 x\n")
    counter = RunCounter(Qrels.from_dict({"q": {"a": 1, "b": 1}}), {"float64": ()})
    files = [str(path), str(other)]
    with pytest.raises(InputError, match=r"part\.trec: the shard changed during the evaluation"):
        merge_shards(counter, Changing(counter, files, 0).count, files)


@pytest.mark.parametrize("reader", ["compiled", "python"])
@pytest.mark.parametrize("seed", range(5))
def test_an_unjudged_document_in_two_shards_is_noticed(reader, seed, tmp_path, monkeypatch):
    """One row of a hundred is in two shards: of text, JSON, Parquet or a block of a data set."""
    monkeypatch.setenv("TIEWISE_READER", reader)
    rng = random.Random(seed)
    rows = [(f"q{i % 3}", f"doc-é-{i}-{'x' * (i % 30)}", float(i % 7)) for i in range(100)]
    counter = RunCounter(
        Qrels.from_dict({f"q{i}": {row[1]: 1 for row in rows[i : i + 1]} for i in range(3)}), {"float64": ()}
    )
    of = [rng.randrange(3) for _ in rows]
    of[:3] = 0, 1, 2
    twice = rng.randrange(3, 100)
    parts = [[row for row, part in zip(rows, of, strict=True) if part == number] for number in range(3)]
    merge_shards(counter, LocalWorkers(counter, written(parts, tmp_path / "right"), seed).count, ["a", "b", "c"])
    other = (of[twice] + 1) % 3
    parts[other].append((*rows[twice][:2], 0.5))  # with another score
    names = ["a", "b", "c"]
    low, high = sorted([of[twice], other])
    with pytest.raises(InputError, match=f"^{names[high]}: has 1 document without a judgment, .* {names[low]} has the"):
        merge_shards(counter, LocalWorkers(counter, written(parts, tmp_path / "wrong"), seed).count, names)


def written(parts, folder):
    folder.mkdir()
    tables = [{} for _ in parts]
    for table, part in zip(tables, parts, strict=True):
        for query, doc, score in part:
            table.setdefault(query, {})[doc] = score
    tw.write_run(tables[0], folder / "a.trec")
    tw.write_run(tables[1], folder / "b.json")
    return [str(folder / "a.trec"), str(folder / "b.json"), Frame(parts[2])]


@given(
    st.lists(st.tuples(st.text(max_size=20), st.text(max_size=40)), min_size=1, unique=True), st.integers(1, 2**64 - 1)
)
def test_fingerprints_do_not_depend_on_the_reader(rows, limit):
    native = pytest.importorskip("tiewise._reader")
    table: dict[str, dict[str, float]] = {}
    for query, doc in rows:
        table.setdefault(query, {})[doc] = 1.0
    block = native.Block()
    assert block.read_lists(list(table.items()))
    run = Run.from_rows([(query, doc, 1.0) for query, docs in table.items() for doc in docs])
    np.testing.assert_array_equal(block.fingerprints(limit), fingerprint_rows(run, limit))


def test_fingerprints_of_a_large_run_are_a_sample():
    found = fingerprint_ids(map(str, range(20_000)), sample_limit(100 * MAX_SAMPLE))
    assert 120 < len(found) < 290 and found.max() < 2**64 / 100
    assert len(np.unique(fingerprint_ids(map(str, range(20_000)), sample_limit(1)))) == 20_000


# -- listings: every entry is read, or refused by its name --------------------------------------------------------


@pytest.fixture
def shards(tmp_path):
    for name in ("b/1.trec", "a.trec"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("q Q0 a 1 1 x\n")
    return tmp_path


def dangling(path: Path) -> None:
    path.symlink_to("gone.trec")


def a_socket(path: Path) -> None:
    socket.socket(socket.AF_UNIX).bind(str(path))


@pytest.mark.parametrize("listing", ["", "*", "**", "**/*", "b", "b/*", "b/[0-9]*"])
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (dangling, "is a link to 'gone.trec', which does not exist"),
        (os.mkfifo, "is neither a file nor a folder"),
        (a_socket, "is neither a file nor a folder"),
        (lambda path: path.symlink_to(path.name), r"cannot be read \(Too many levels of symbolic links\)"),
    ],
)
def test_an_entry_that_is_no_file_is_refused_by_name(listing, make, words, shards, monkeypatch):
    monkeypatch.chdir(shards)  # a socket has a short path
    make(Path("b/2.trec"))
    with pytest.raises(InputError, match=f"b/2.trec: {words}"):
        list_shards(shards / listing)


def test_names_that_are_skipped_may_be_anything(shards):
    os.mkfifo(shards / "_pipe")
    (shards / "b/.link").symlink_to("gone")
    assert [Path(path).name for path in list_shards(shards)] == ["a.trec", "1.trec"]


def test_linked_files_and_folders_are_read(shards):
    (shards / "c").mkdir()
    (shards / "c/folder").symlink_to("../b")
    (shards / "c/file.trec").symlink_to("../a.trec")
    found = [str(shards / "c" / name) for name in ("file.trec", "folder/1.trec")]
    assert list_shards(shards / "c") == list_shards(shards / "c/*") == list_shards(shards / "c/**") == found
    with pytest.raises(InputError, match=r"c/folder: is the same folder as .*/b\. Remove it"):
        list_shards(shards)


def test_a_link_to_a_folder_around_it_is_refused(shards):
    (shards / "b/up").symlink_to("..")
    with pytest.raises(InputError, match="b/up: is the same folder as"):
        list_shards(shards)


def test_a_folder_that_matches_a_pattern_means_its_files(shards):
    assert [Path(path).name for path in list_shards(shards / "*")] == ["a.trec", "1.trec"]
    (shards / "empty").mkdir()
    assert len(list_shards(shards / "*")) == 2
    with pytest.raises(InputError, match="no file matches this pattern"):
        list_shards(shards / "e*")


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="permissions of POSIX")
@pytest.mark.parametrize("listing", ["", "*", "**", "*/*", "**/*.trec", "*/1.trec"])
def test_a_folder_that_cannot_be_read_is_refused_by_name(listing):
    """Also if the tests run as a user whom no permission stops."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "b").mkdir()
        (folder / "b/1.trec").touch()
        (folder / "a.trec").touch()
        (folder / "b").chmod(0)
        try:
            os.seteuid(user or 65534)
            with pytest.raises(InputError, match=r"/b: (the folder )?cannot be read"):
                list_shards(folder / listing)
        finally:
            os.seteuid(user)
            (folder / "b").chmod(0o755)


def test_shards_are_edited_before_they_are_counted(tmp_path):
    """Each query is a document too; scores are distances."""
    rows = {f"q{q}": {f"q{d}": float(abs(q - d) // 2) for d in range(12)} for q in range(6)}
    qrels = Qrels.from_dict({f"q{q}": {f"q{q + 1}": 1, f"q{q + 4}": 1} for q in range(6)})
    parts = [{query: dict(list(docs.items())[at::3]) for query, docs in rows.items()} for at in range(3)]
    edits = {"drop_self": True, "distances": True}
    for options in ({}, edits):
        counter = RunCounter(qrels, {"float64": ORDERS, "float32": ORDERS}, **options)
        frames = [Frame([(q, d, s) for q in part for d, s in part[q].items()]) for part in parts]
        merged = merge_shards(counter, LocalWorkers(counter, frames, 1).count, ["a", "b", "c"])
        found = tw.evaluate(None, merged, ["nDCG@5", "AP"], complete=True, **options)
        wanted = tw.evaluate(qrels, rows, ["nDCG@5", "AP"], complete=True, **options)
        assert all(found.per_query(measure) == wanted.per_query(measure) for measure in found)
    with pytest.raises(InputError, match="give drop_self or distances a run"):
        tw.evaluate(None, merged, "AP")
    unedited = RunCounter(qrels, {"float64": ORDERS, "float32": ORDERS})
    merged = merge_shards(unedited, LocalWorkers(unedited, frames, 1).count, ["a", "b", "c"])
    beir = [row for row in tw.evaluate(None, merged, "nDCG@5").oblivious_by_tool() if row.tool == "beir"]
    assert beir[0].value is None and beir[0].note.endswith("in 6 lists: add drop_self=True")
