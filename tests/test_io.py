"""Files: every format and compression is read as what it says and written so that it is read back unchanged."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tiewise.analysis.evaluating import evaluate
from tiewise.data.judgments import Qrels
from tiewise.data.native import native
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.io import as_qrels, as_run, as_source, read_qrels, read_run, write_qrels, write_run
from tiewise.io.formats import MSMARCO_RUN, TREC_RUN
from tiewise.io.memory_run import DictRun, MemoryRun
from tiewise.io.text import line_blocks, read_columns
from tiewise.io.text_python import MAX_WIDTH

TREC = "q1 Q0 d1 1 0.5 bm25\nq1 Q0 d2 2 0.25 bm25\nq2 Q0 d1 1 -3 bm25\n"
TABLE = {"q1": {"d1": 0.5, "d2": 0.25}, "q2": {"d1": -3.0}}
LABELS = {"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"d1": 1.0}}


def saved(folder: Path, content: str | bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# -- text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        TREC,
        TREC.replace(" ", "\t"),
        TREC.replace(" ", " \t  "),
        TREC.replace("\n", "\r\n"),
        TREC.replace("\n", " \n"),
        TREC.rstrip("\n"),
        "\ufeff" + TREC,
        "# a comment\n\n  \n" + TREC,
        TREC.replace("q2", "# q1 Q0 d3 1 2.0 bm25\n\nq2"),
        "\n  # indented\n" + TREC + "#",
        TREC.replace("bm25\n", "bm25\x0b\n"),
    ],
)
def test_trec_run(tmp_path: Path, content: str) -> None:
    run = read_run(saved(tmp_path, content))
    assert run.to_dict() == TABLE
    assert run.rank is not None
    assert run.rank.tolist() == [1, 2, 1]
    assert run.rank.dtype == np.int64
    assert run.name == "bm25"
    assert run.source is not None
    assert run.source.format == "trec"


def test_ids_are_utf8_and_only_ascii_blanks_end_them(tmp_path: Path) -> None:
    ids = ["é", "日本", "a\u00a0b", "x\u2003y", "x\x1cy", "x\x85y", "msmarco_v2#3", "\x01"]
    content = "".join(f"ü Q0 {doc} {rank} {-rank} t\n" for rank, doc in enumerate(ids, 1))
    run = read_run(saved(tmp_path, content))
    assert run.to_dict() == {"ü": {doc: -float(rank) for rank, doc in enumerate(ids, 1)}}


def test_queries_need_not_be_contiguous(tmp_path: Path) -> None:
    run = read_run(saved(tmp_path, "b Q0 1 1 4 t\na Q0 1 1 3 t\nb Q0 2 7 2 t\na Q0 2 9 1 t\n"))
    assert run.queries == ("b", "a")
    assert list(run) == [("b", "1", 4.0), ("b", "2", 2.0), ("a", "1", 3.0), ("a", "2", 1.0)]
    assert run.rank is not None
    assert run.rank.tolist() == [1, 7, 1, 9]


@pytest.mark.parametrize("rank", ["x", "1.5", "-", "1_0", "99999999999999999999"])
def test_ranks_that_are_not_integers_are_dropped(tmp_path: Path, rank: str) -> None:
    assert read_run(saved(tmp_path, TREC.replace("2 0.25", f"{rank} 0.25"))).rank is None


@pytest.mark.parametrize("reader", ["python", "compiled"] if native() else ["python"])
@pytest.mark.parametrize("tail", [" more", " more  words\tand more ", " 0.5 7", f" {'x ' * 3000}", "  # a remark"])
def test_words_after_the_tag_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str, tail: str
) -> None:
    """As trec_eval leaves them, in the first line and in any other."""
    monkeypatch.setenv("TIEWISE_READER", reader)
    rows = ["q1 Q0 d1 1 2.5 t", "q1 Q0 d2 2 1e-1 t", "q2 Q0 d1 +1 3 t"]
    expected = read_run(saved(tmp_path, "\n".join(rows)))
    for number in range(len(rows)):
        lines = [row + tail * (place == number) for place, row in enumerate(rows)]
        found = read_run(saved(tmp_path, "\n".join(lines)))
        assert found.to_dict() == expected.to_dict() and found.name == "t"
        assert found.rank is not None and found.rank.tolist() == [1, 2, 1]
    longer = saved(tmp_path, "".join(f"{row}{tail}\n" for row in rows))
    qrels = {"q1": {"d2": 1}, "q2": {"d1": 1}}
    assert evaluate(qrels, longer, "RR")["RR"].expected == 0.75


def test_a_tag_that_differs_is_dropped(tmp_path: Path) -> None:
    run = read_run(saved(tmp_path, TREC.replace("0.25 bm25", "0.25 other")))
    assert run.name is None
    assert run.to_dict() == TABLE


@pytest.mark.parametrize("score", ["inf", "-inf", "+Infinity", "1e-320", ".5", "5.", "+7", "-0.0", "1E3", "00012"])
def test_numbers_are_what_float_reads(tmp_path: Path, score: str) -> None:
    run = read_run(saved(tmp_path, f"q Q0 d 1 {score} t\n"))
    assert run.value.tolist() == [float(score)]


def test_msmarco_run(tmp_path: Path) -> None:
    run = read_run(saved(tmp_path, "1\td7\t1\n1\td3\t2\n2\td7\t1\n"))
    assert run.to_dict() == {"1": {"d7": -1.0, "d3": -2.0}, "2": {"d7": -1.0}}
    assert run.rank is not None
    assert run.rank.tolist() == [1, 2, 1]
    assert run.source is not None
    assert run.source.format == "msmarco"


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ("q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n", "trec"),
        ("q1\t0\td1\t2\r\nq1\t0\td2\t0\r\nq2\t0\td1\t1", "trec"),
        ("q1\td1\t2\nq1\td2\t0\nq2\td1\t1\n", "msmarco"),
        ("q1 d1 2\nq1 d2 0\nq2 d1 1\n", "msmarco"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td1\t1\n", "beir"),
        ("# BEIR: query-id\tcorpus-id\tscore\n\nquery-id\tcorpus-id\tscore\r\nq1\td1\t2\nq1\td2\t0\nq2\td1\t1", "beir"),
        (json.dumps(LABELS), "json"),
    ],
)
def test_qrels(tmp_path: Path, content: str, format: str) -> None:
    path = saved(tmp_path, content)
    for forced in (None, format):
        qrels = read_qrels(path, format=forced)
        assert qrels.to_dict() == LABELS
        assert qrels.source is not None
        assert qrels.source.format == format


def test_msmarco_qrels_may_have_four_columns(tmp_path: Path) -> None:
    assert read_qrels(saved(tmp_path, "q 0 d 1\n"), format="msmarco").to_dict() == {"q": {"d": 1.0}}


def test_ids_between_tabs_may_contain_spaces(tmp_path: Path) -> None:
    qrels = read_qrels(saved(tmp_path, "query-id\tcorpus-id\tscore\nmy query\tThe Doc\t1\n"))
    assert qrels.to_dict() == {"my query": {"The Doc": 1.0}}
    run = read_run(saved(tmp_path, "my query\tThe Doc\t1\nmy query\td\t2\n"))
    assert run.to_dict() == {"my query": {"The Doc": -1.0, "d": -2.0}}
    for query in ("2 words", "4 words are six"):  # as many words as TREC has columns: say which it is
        run = read_run(saved(tmp_path, f"{query}\tdoc\t1\n"), format="msmarco")
        assert run.to_dict() == {query: {"doc": -1.0}}


# -- the fast cut and the slow one --------------------------------------------------------------------------

LETTERS = st.characters(codec="utf-8", exclude_characters="\0\t\n\x0b\x0c\r ")
IDS = st.text(LETTERS, min_size=1, max_size=12) | st.sampled_from(["d1", "d2", "x" * MAX_WIDTH, "y" * 300, "a_b"])
GAPS = st.sampled_from([" ", "\t", "  ", " \t", "\x0b"])
ENDS = st.sampled_from(["\n", "\r\n", " \n", "\n\n", "\n# comment\n", "\n \t\n"])


class Line(NamedTuple):
    query: str
    doc: str
    rank: int
    score: float
    tag: str


LINES = st.lists(
    st.builds(
        Line,
        st.sampled_from(["q1", "q2", "ü", "long" * 30]),
        IDS,
        st.integers(-5, 5000),
        st.floats(allow_nan=False),
        st.sampled_from(["t", "t2"]),
    ),
    max_size=30,
)


@given(LINES, st.data(), st.integers(1, 4000))
def test_any_blanks_separate_columns(lines: list[Line], data: st.DataObject, cut: int) -> None:
    lines = [line for line in lines if not line.doc.startswith("\ufeff")] or [Line("q", "d", 1, 0.5, "t")]
    gap = data.draw(GAPS)
    text, expected, number = "", [], 1
    for line in lines:
        cells = [line.query, "Q0", line.doc, str(line.rank), repr(line.score), line.tag]
        expected.append((*line[:4], number))
        text += gap.join(cells) + (end := data.draw(ENDS))
        number += end.count("\n")
    raw = text.encode()
    chunks = [raw[start : start + cut] for start in range(0, len(raw), cut)]
    found = read_columns(line_blocks(chunks, "run"), TREC_RUN, "run")
    assert found.rank is not None
    rows = zip(
        found.query.tolist(), found.documents.codes.tolist(), found.rank.tolist(), found.value.tolist(), strict=True
    )
    assert [
        (found.queries[query], found.documents.names[doc], rank, score, found.line(row))
        for row, (query, doc, rank, score) in enumerate(rows)
    ] == expected
    assert found.tag == (lines[0].tag if len({line.tag for line in lines}) == 1 else None)
    assert len(set(found.documents.names)) == len(found.documents.names)


@given(st.lists(st.tuples(IDS, IDS, st.integers(1, 99)), min_size=1), st.sampled_from(["\n", "\r\n"]))
def test_tab_separated_rows_are_read_alike(rows: list[tuple[str, str, int]], end: str) -> None:
    rows = [(f"q {query}", f"{doc} d", rank) for query, doc, rank in rows]
    raw = "".join(f"{query}\t{doc}\t{rank}{end}" for query, doc, rank in rows).encode()
    found = read_columns([raw], MSMARCO_RUN._replace(tabs=True), "run")
    coded = zip(found.query.tolist(), found.documents.codes.tolist(), found.value.tolist(), strict=True)
    assert [(found.queries[query], found.documents.names[doc], -score) for query, doc, score in coded] == rows


def test_one_long_id_does_not_widen_the_rest(tmp_path: Path) -> None:
    long = "x" * 30_000
    rows = [(f"q{i % 7}", f"d{i}" if i != 500 else long, float(-i)) for i in range(3000)]
    path = saved(tmp_path, "".join(f"{query} Q0 {doc} 1 {score} t\n" for query, doc, score in rows))
    assert sorted(read_run(path)) == sorted(rows)


def test_two_ids_with_the_same_hash_are_distinct(tmp_path: Path) -> None:
    def word(text: bytes) -> int:
        return int.from_bytes(text, sys.byteorder)

    def mixed(text: bytes) -> int:
        return (word(text) ^ word(text) >> 32) * 0x9E3779B97F4A7C15

    first, tail = b"aaaaaaaa", b"bbbbbbbb"
    for i in range(1_000_000):  # an id of another first word whose second makes up for it
        other = b"%08d" % i
        rest = ((mixed(first) + word(tail) - mixed(other)) % 2**64).to_bytes(8, sys.byteorder)
        if all(33 <= letter < 127 for letter in rest):
            break
    twins = [(first + tail).decode(), (other + rest).decode()]
    assert twins[0] != twins[1]
    run = read_run(saved(tmp_path, "".join(f"q Q0 {doc} 1 1 t\n" for doc in twins)))
    assert run.to_dict() == {"q": {twins[0]: 1.0, twins[1]: 1.0}}


# -- compression --------------------------------------------------------------------------------------------

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("method", PACK)
def test_compression_is_recognised_from_the_first_bytes(tmp_path: Path, method: str) -> None:
    whole = PACK[method](TREC.encode())
    halves = PACK[method](TREC[:13].encode()) + PACK[method](TREC[13:].encode())
    for content in (whole, halves):
        path = saved(tmp_path, content, "run.txt")
        run = read_run(path)
        assert run.to_dict() == TABLE
        assert run.source is not None
        assert run.source.sha256 == hashlib.sha256(content).hexdigest()
        assert run.source.path == str(path)


def test_gzip_may_be_padded(tmp_path: Path) -> None:
    assert read_run(saved(tmp_path, gzip.compress(TREC.encode()) + bytes(512))).to_dict() == TABLE


def test_large_compressed_files_come_in_pieces(tmp_path: Path) -> None:
    rows = "".join(f"q{i // 1000} Q0 d{i} {i % 1000} {i * 7919 % 10007} t\n" for i in range(60_000))
    path = saved(tmp_path, gzip.compress(rows.encode()))
    plain = saved(tmp_path, rows, "plain")
    assert list(read_run(path)) == list(read_run(plain))
    assert len(read_run(path)) == 60_000


# -- JSON and Parquet ---------------------------------------------------------------------------------------


def test_json_run(tmp_path: Path) -> None:
    for content in (json.dumps(TABLE), json.dumps(TABLE, indent=2), "\ufeff\n " + json.dumps(TABLE)):
        run = read_run(saved(tmp_path, content))
        assert run.to_dict() == TABLE
        assert run.source is not None
        assert run.source.format == "json"


def test_json_keeps_queries_without_documents(tmp_path: Path) -> None:
    assert read_run(saved(tmp_path, '{"q1": {"d": 1}, "q2": {}}')).queries == ("q1", "q2")


def test_mteb_predictions(tmp_path: Path) -> None:
    meta = {"mteb_model_meta": {"model_name": "m", "revision": "r"}}
    one = saved(tmp_path, json.dumps({**meta, "default": {"test": TABLE}}), "one.json")
    assert read_run(one).to_dict() == TABLE
    assert read_run(one, format="mteb:default/test").to_dict() == TABLE
    two = saved(tmp_path, json.dumps({**meta, "en": {"dev": {"q": {"d": 1}}, "test": TABLE}}), "two.json")
    assert read_run(two, format="mteb:en/test").to_dict() == TABLE
    with pytest.raises(InputError) as error:
        read_run(two)
    pick = "Pick one: --input-format mteb:en/dev (in Python, format='mteb:en/dev')."
    assert str(error.value) == f"{two}: has 2 parts, en/dev, en/test. {pick}"


def test_sentence_transformers_predictions(tmp_path: Path) -> None:
    lines = [
        {
            "query_id": query,
            "query": "what?",
            "results": [{"corpus_id": d, "score": s} for d, s in docs.items()],
        }
        for query, docs in TABLE.items()
    ]
    run = read_run(saved(tmp_path, "\n".join(map(json.dumps, lines)) + "\n"))
    assert run.to_dict() == TABLE
    assert run.source is not None
    assert run.source.format == "sentence-transformers"


@pytest.mark.parametrize("names", [("query_id", "doc_id", "score"), ("qid", "docno", "score")])
@pytest.mark.parametrize("coded", [False, True])
def test_parquet_run(tmp_path: Path, names: tuple[str, str, str], coded: bool) -> None:
    columns: list[Any] = [pyarrow.array(["q1", "q1", "q2"]), pyarrow.array(["d1", "d2", "d1"])]
    if coded:
        columns = [column.dictionary_encode() for column in columns]
    table = pyarrow.table(dict(zip(names, [*columns, [0.5, 0.25, -3.0]], strict=True)) | {"text": ["a", "b", "c"]})
    path = tmp_path / "run"
    pyarrow.parquet.write_table(table, path)
    run = read_run(path)
    assert run.to_dict() == TABLE
    assert run.source is not None
    assert run.source.format == "parquet"


def test_parquet_keeps_the_rank_column_if_it_is_one(tmp_path: Path) -> None:
    path = saved(tmp_path, "q Q0 a 2 5.0 t\nq Q0 b 1 5.0 t\n")
    write_run(read_run(path), tmp_path / "run.parquet")
    run = read_run(tmp_path / "run.parquet")
    assert run.rank is not None
    assert run.rank.tolist() == [2, 1]
    assert run.rank.dtype == np.int64
    assert as_run(pandas.DataFrame(COLUMNS | {"rank": [1, 2.5, 1]})).rank is None


def test_parquet_qrels(tmp_path: Path) -> None:
    path = tmp_path / "qrels.parquet"
    polars.DataFrame({"query_id": [1, 1], "doc_id": [7, 8], "relevance": [1, 0]}).write_parquet(path)
    assert read_qrels(path).to_dict() == {"1": {"7": 1.0, "8": 0.0}}


# -- objects ------------------------------------------------------------------------------------------------


class ScoredDoc(NamedTuple):
    query_id: str
    doc_id: str
    score: float


class Qrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


COLUMNS = {"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d2", "d1"], "score": [0.5, 0.25, -3.0]}
ROWS = [(query, doc, score) for query, docs in TABLE.items() for doc, score in docs.items()]


@pytest.mark.parametrize(
    "given_run",
    [
        pandas.DataFrame(COLUMNS),
        polars.DataFrame(COLUMNS),
        polars.LazyFrame(COLUMNS),
        pyarrow.table(COLUMNS),
        ROWS,
        [ScoredDoc(*row) for row in ROWS],
        (row for row in ROWS),
        Run.from_dict(TABLE),
    ],
)
def test_as_run(given_run: Any) -> None:
    run = as_run(given_run)
    assert isinstance(run, Run)
    assert run.to_dict() == TABLE


def test_as_source_keeps_dictionaries_and_as_run_keeps_runs() -> None:
    source = as_source(TABLE)
    assert isinstance(source, MemoryRun if native() is None else DictRun)
    assert as_source(source) is source
    run = Run.from_dict(TABLE)
    assert as_run(run) is run
    numbered = as_run({1: {7: 0.5}})
    assert isinstance(numbered, Run)
    assert numbered.to_dict() == {"1": {"7": 0.5}}


def test_as_qrels(tmp_path: Path) -> None:
    rows = [Qrel(query, doc, int(label)) for query, docs in LABELS.items() for doc, label in docs.items()]
    for given_qrels in (LABELS, rows, saved(tmp_path, json.dumps(LABELS)), str(saved(tmp_path, json.dumps(LABELS)))):
        assert as_qrels(given_qrels).to_dict() == LABELS


def test_rows_of_ir_measures_are_rows() -> None:
    ir_measures = pytest.importorskip("ir_measures")
    assert as_run([ir_measures.ScoredDoc(*row) for row in ROWS]).queries == ("q1", "q2")
    assert as_qrels([ir_measures.Qrel("q", "d", 1)]).to_dict() == {"q": {"d": 1.0}}


# -- writing ------------------------------------------------------------------------------------------------

SCORES = st.floats(allow_nan=False)
RUNS = st.dictionaries(
    st.text(LETTERS, min_size=1).filter(lambda name: name[0] not in "#\ufeff{["),
    st.dictionaries(st.text(LETTERS, min_size=1), SCORES, min_size=1, max_size=5),
    min_size=1,
    max_size=4,
)


@given(table=RUNS, suffix=st.sampled_from(["", ".gz", ".json", ".json.xz", ".parquet"]))
def test_runs_are_read_back_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, dict[str, float]], suffix: str
) -> None:
    path = tmp_path_factory.mktemp("run") / f"run{suffix}"
    write_run(table, path)
    back = read_run(path)
    assert back.to_dict() == table
    ordered = {query: sorted(docs, key=docs.__getitem__, reverse=True) for query, docs in table.items()}
    if suffix in ("", ".gz"):  # falling scores, ties as given
        assert {query: list(docs) for query, docs in back.to_dict().items()} == ordered
        assert back.rank is not None
        assert back.rank.tolist() == [rank for docs in table.values() for rank in range(1, len(docs) + 1)]


@pytest.mark.parametrize("packed", ["", *(f".{method}" for method in PACK)])
@pytest.mark.parametrize("format", ["trec", "json", "parquet"])
def test_every_format_and_compression_is_read_back(tmp_path: Path, format: str, packed: str) -> None:
    path = tmp_path / f"run.{format}{packed}"
    write_run(Run.from_dict(TABLE), path)
    run = read_run(path)
    assert run.to_dict() == TABLE
    assert run.source is not None
    assert run.source.format == format
    again = tmp_path / f"again.{format}{packed}"
    write_run(run, again, tag="tiewise")
    if format != "parquet":
        assert again.read_bytes() == path.read_bytes()
    if packed:
        magic = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7z", ".zst": b"\x28\xb5\x2f"}[packed]
        assert path.read_bytes().startswith(magic)


@pytest.mark.parametrize("format", ["trec", "beir", "json", "parquet"])
def test_qrels_are_read_back(tmp_path: Path, format: str) -> None:
    path = tmp_path / "qrels"
    table = {"q1": {"d1": 2.0, "d2": -1.0, "d3": 0.125}, "q2": {"ü": 1.0}}
    write_qrels(table, path, format=format)
    qrels = read_qrels(path)
    assert qrels.to_dict() == table
    assert qrels.source is not None
    assert qrels.source.format == format


def test_trec_rows_keep_their_order_and_their_ranks(tmp_path: Path) -> None:
    text = "q Q0 a 2 5.0 t\nq Q0 b 1 5.0 t\nq Q0 c 9 7.0 t\n"
    path = saved(tmp_path, text)
    write_run(read_run(path), path)
    assert path.read_text() == text


def test_labels_are_written_as_trec_eval_wants_them(tmp_path: Path) -> None:
    write_qrels(Qrels.from_dict({"q": {"d": 3.0}}), tmp_path / "qrels")
    assert (tmp_path / "qrels").read_text() == "q 0 d 3\n"


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = saved(tmp_path, TREC)
    with pytest.raises(InputError):
        write_run({"q": {"a b": 1.0}}, path)
    assert path.read_text() == TREC
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_and_permissions_are_the_usual(tmp_path: Path) -> None:
    target = saved(tmp_path, "old", "target")
    link = tmp_path / "link"
    link.symlink_to(target)
    write_run(TABLE, link, tag="bm25")
    assert link.is_symlink()
    assert read_run(target).to_dict() == TABLE
    (fresh := tmp_path / "fresh").touch()
    assert target.stat().st_mode == fresh.stat().st_mode


def test_a_device_is_not_replaced() -> None:
    write_run(TABLE, "/dev/null")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(InputError, match=r"^/dev/full: cannot be written \(No space left on device\)"):
        write_run(TABLE, "/dev/full")


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "pipe")
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as reader:
        write_run(TABLE, path, tag="bm25")
        assert reader.stdout is not None
        assert reader.stdout.read().decode() == TREC.replace("-3", "-3.0")
    assert path.is_fifo()


@pytest.mark.parametrize("number", [None, 1])
def test_an_open_file_is_written_at_its_position(tmp_path: Path, number: int | None) -> None:
    with (tmp_path / "log").open("w+b", buffering=0) as log:
        log.write(b"before\n")
        kept = os.dup(1)
        os.dup2(log.fileno(), 1)
        try:
            write_run(TABLE, f"/dev/fd/{log.fileno()}" if number is None else "/dev/stdout", tag="bm25")
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        log.write(b"after\n")
    assert (tmp_path / "log").read_text() == "before\n" + TREC.replace("-3", "-3.0") + "after\n"


@pytest.mark.parametrize("query", ["[1]", "{1}", "[x", "{q:1}"])
def test_an_id_may_begin_with_a_bracket(tmp_path: Path, query: str) -> None:
    assert read_run(saved(tmp_path, f"{query} Q0 d 1 0.5 t\n")).to_dict() == {query: {"d": 0.5}}
    assert read_qrels(saved(tmp_path, f"{query} 0 d 1\n")).to_dict() == {query: {"d": 1.0}}


def test_a_dash_is_standard_input_and_output() -> None:
    code = "from tiewise.io import *; write_run(read_run('-'), '-')"
    packed = gzip.compress(TREC.encode())
    done = subprocess.run([sys.executable, "-c", code], input=packed, capture_output=True, check=True)
    assert done.stdout.decode() == TREC.replace("-3", "-3.0")
