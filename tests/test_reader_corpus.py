"""Both readers give the same results for the files that fuzzing collected."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import tiewise as tw
from readers import differences, reading
from tiewise.data.native import native
from tiewise.io.formats import TREC_RUN
from tiewise.io.streaming import Counting
from tiewise.io.text import Problems, parse
from tiewise.ties.counted import Request

pytestmark = pytest.mark.skipif(native() is None, reason="the compiled reader is not installed")

CORPUS = sorted((Path(__file__).parents[1] / "fuzz" / "corpus").iterdir())


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_the_readers_agree(path: Path) -> None:
    for chunk in (1 << 20, 61):
        assert not differences(path, chunk)


def test_the_readers_agree_on_compressed_files_cut_anywhere(tmp_path: Path) -> None:
    whole = gzip.compress(b"q1 Q0 d1 1 0.5 t\nq2 Q0 d1 1 0.5 t\nq1 Q0 d2 1 0.5 t\n", mtime=0)
    for size in range(0, len(whole) + 1, 5):
        path = tmp_path / str(size)
        path.write_bytes(whole[:size])
        assert not differences(path, 61)


def test_the_readers_agree_on_files_cut_anywhere(tmp_path: Path) -> None:
    whole = b"q1 Q0 d1 1 1.5 t\n#\nq2 Q0 \xe6\x97\xa5 1 -2e0 t\r\nq1 Q0 d2 2 0.5 t"
    for size in range(len(whole) + 1):
        path = tmp_path / str(size)
        path.write_bytes(whole[:size])
        assert not differences(path, 17)


@pytest.mark.parametrize("reader", ["python", "compiled"])
@pytest.mark.parametrize("first", [b"", b"q1 Q0 d1 1 0.5 t\n"])
def test_a_line_of_many_words_is_not_counted_to_its_end(tmp_path: Path, reader: str, first: bytes) -> None:
    path = tmp_path / "run"
    path.write_bytes(first + b"x " * 5000)
    with reading(reader), pytest.raises(tw.InputError, match="over 100 columns"):
        tw.read_run(path)


def test_a_query_is_counted_once() -> None:
    """A thread that meets a query of another thread's part leaves its places alone: rows are those of one part."""
    qrels = tw.Qrels.from_dict({"q": {"d": 1}})

    def load(block, part: bytes) -> None:
        parse(block, [part], Problems(TREC_RUN, "run"), 1)

    counting = Counting(Request(qrels, (), ("float64",)), 1)
    long, short = b"q Q0 a 1 2 t\nq Q0 b 1 2 t\nq Q0 d 1 1 t\n", b"q Q0 d 1 1 t\n"
    assert not counting.count([long, short], load) and counting.problem == "not contiguous"
    assert counting.counted().ties["float64"].start.tolist() == [2]
