"""The compiled reader and the one in Python give the same results and errors for every file."""

from __future__ import annotations

import itertools
import os
import platform
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tiewise as tw
from tiewise.data.native import native
from tiewise.io import as_qrels, as_source, file_run, read_run, streaming
from tiewise.io import text as text_reader
from tiewise.ties.orders import ORDERS, TOOL_ORDERS

pytestmark = pytest.mark.skipif(native() is None, reason="the compiled reader is not installed")

DTYPES = ("float64", "float32", "decimal:1")
IDS = ["d1", "d2", "d3", "D-very-long-identifier-0001", "ü", "日本", "d1x", "a", "ab", "abc", "abcd", "0"]
NUMBERS = [
    "0.5",
    "1",
    "-1",
    "+2.25",
    "1e-3",
    "2.",
    ".5",
    "0.1234567890123456789",
    "17.000000000000001",
    "1E5",
    "inf",
    "-inf",
    "123456789012345678901234567890",
    "0.30000000000000004",
    "0e-400",
    "5e-324",
    "00001.50",
    "-0.0",
    "0.12345678",
    *("12.345600", "0.269787", "1234567.12345678", "123456789.5", "9007199254740.991", "90071992547409.93"),
    *("9.007199254740993", "123456789012345", ".123456789", "1234567890.", "99999999", "9999999.9", "-00000000012.5"),
]
ODD = [
    "nan",
    "9007199254740993",
    "1234567890-",
    "12345678e",
    ".12345678.",
    "1e400",
    "1e-400",
    "1_000",
    "0x10",
    "abc",
    "1,5",
    "--1",
    "٣",
    "1.2.3",
    ".",
]

STRANGE = [
    *(b"", b"# note", b"   ", b"\r", b" q1 Q0 d9 1 0.5 tag ", b"q1 Q0 d1 1 0.5 other", b"q1 Q0 d2 1"),
    *(
        b"q1 Q0 d8 1 0.5 tag more",
        b"q1 Q0 d 8 1 0.5 tag",
        b"q1\rQ0 d6 1 0.5 tag",
        b"# note\rq1 Q0 d5 1 0.5 tag",
        b"\r\r",
    ),
    *(b"q1 Q0 \xff 1 0.5 tag", b"\xfe Q0 d1 1 0.5 tag", b"q1 Q0 d\x001 1 0.5 tag"),
    *(f"q2 Q0 d7 1 {odd} tag".encode() for odd in ODD),
]

ARRAYS = ("score", "start", "size", "length", "lowest", "lowest_size")

rows = st.tuples(
    st.sampled_from(["q1", "q2", "q3", "q-long-name", "é"]),
    st.sampled_from(IDS),
    st.sampled_from(["1", "2", "10", "+3", "1.0", "x"]),
    st.sampled_from(NUMBERS),
)
blank = st.sampled_from([" ", " ", " ", "\t", "  ", " \t", "\x0b"])


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """A run file, mostly correct."""
    lines = []
    tidy = draw(st.booleans())
    for query, doc, rank, number in draw(st.lists(rows, min_size=1, max_size=40, unique_by=lambda row: row[:2])):
        gap = " " if tidy else draw(blank)
        rank = "1" if tidy else rank
        lines.append(gap.join([query, "Q0", doc, rank, number, "tag"]).encode())
    if draw(st.booleans()):
        lines.sort(key=lambda line: line.split()[0])
    if not tidy:
        for line in draw(st.lists(st.sampled_from(STRANGE), max_size=3)):
            lines.insert(draw(st.integers(0, len(lines))), line)
    text = draw(st.sampled_from([b"\n", b"\r\n"])).join(lines) + draw(st.sampled_from([b"", b"\n"]))
    return text[: draw(st.integers(1, len(text)))] if draw(st.integers(0, 9)) == 0 else text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reader")


QRELS = tw.Qrels.from_dict(
    {"q1": {"d1": 1, "d2": 0, "ü": 2, "zz": 1}, "q2": dict.fromkeys(IDS, 1), "é": {"0": 1, "日本": 1}, "q9": {"d1": 1}}
)


def counted(path: Path, reader: str, monkeypatch: pytest.MonkeyPatch, scores: object = None) -> object:
    """All that is counted in a file, or what is wrong with it."""
    monkeypatch.setenv("TIEWISE_READER", reader)
    try:
        run = as_source(path)
        assert isinstance(run, file_run.FileRun) == (reader == "compiled")
        for orders in (ORDERS, TOOL_ORDERS):
            try:
                whole = run.count(QRELS, orders, DTYPES)
                break
            except tw.InputError as error:
                if "rank column" not in str(error):
                    raise
        groups = {
            dtype: [
                *((getattr(ties, name) + 0).tolist() for name in ARRAYS),  # + 0: a lowest of −0.0 is 0
                {order: before.tolist() for order, before in ties.before.items()},
                sorted(ties.unjudged),
            ]
            for dtype, ties in whole.ties.items()
        }
        rounded = run.count(QRELS, (), score_dtype="decimal:1")
        has_judged = whole.found.tolist()
        facts = (whole.queries, whole.n_queries, whole.docs, whole.n_rows, whole.tied_rows, has_judged, whole.source)
        return repr(groups), *facts, rounded.tied_rows, rounded.new_ties
    except tw.InputError as error:
        return str(error)


def columns(path: Path, reader: str, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("TIEWISE_READER", reader)
    try:
        run = read_run(path)
        return run.to_dict(), None if run.rank is None else run.rank.tolist(), run.name, run.source
    except tw.InputError as error:
        return str(error)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts())
@example(b"q1 Q0 d1 1 0.5 t\nq2 Q0 d1 1 0.5 t\nq1 Q0 d2 1 0.5 t\nq1 Q0 d1 2 0.4 t\n")
@example(b"q1\td 1\t1\nq1\td 2\t2\n\nq2\td 1\t1\n")
@example(b"\xef\xbb\xbfq1 Q0 d1 1 0.5 t")
def test_the_readers_agree(folder: Path, text: bytes) -> None:
    path = folder / "run"
    path.write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        assert counted(path, "compiled", patch) == counted(path, "python", patch)
        assert columns(path, "compiled", patch) == columns(path, "python", patch)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_results_do_not_depend_on_blocks_threads_and_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, interleaved: bool
) -> None:
    """A file of many blocks, its queries contiguous or interleaved, read by one thread or by several."""
    rng = np.random.default_rng(7)
    lists = [
        [f"q{q} Q0 d{d} {r} {rng.integers(40) / 8} t\n" for r, d in enumerate(rng.permutation(300)[:200])]
        for q in range(60)
    ]
    text = (
        "".join(line for row in zip(*lists, strict=True) for line in row)
        if interleaved
        else "".join(map("".join, lists))
    )
    path = tmp_path / "run"
    path.write_text(text)
    qrels = tw.Qrels.from_dict({f"q{q}": {f"d{d}": int(d) % 3 for d in range(0, 300, 7)} for q in range(0, 60, 2)})
    monkeypatch.setenv("TIEWISE_READER", "python")
    want = as_source(path).count(qrels, ORDERS, DTYPES).ties
    monkeypatch.setenv("TIEWISE_READER", "compiled")
    monkeypatch.setattr(file_run, "SMALL", 0 if threads > 1 else 1 << 40)
    monkeypatch.setattr(streaming, "THREADS", threads)
    monkeypatch.setattr(file_run, "SHARE", 1 << 17)
    monkeypatch.setattr("tiewise.io.compression.CHUNK", 5000)
    monkeypatch.setattr("tiewise.io.text.BLOCK", 5000)
    monkeypatch.setattr(file_run, "PIECE", 7000)
    run = as_source(path)
    counts = run.count(qrels, ORDERS, DTYPES)
    assert counts.queries and counts.n_rows == 12_000
    have = counts.ties
    for dtype, ties in want.items():
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(have[dtype], name), getattr(ties, name), err_msg=f"{dtype} {name}")
        for order, before in ties.before.items():
            np.testing.assert_array_equal(have[dtype].before[order], before, err_msg=f"{dtype} {order}")
        assert have[dtype].unjudged == ties.unjudged


def test_a_changed_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_text("q1 Q0 d1 1 0.5 t\n")
    report = tw.evaluate({"q1": {"d1": 1}}, path, "RR")
    path.write_text("q1 Q0 d1 1 0.25 t\nq1 Q0 d2 1 0.5 t\n")
    assert {row.value for row in report.oblivious_by_tool()} == {1.0, None}  # all tools were counted at once
    with pytest.raises(tw.InputError, match="was changed after it was first read"):
        report.to_json()  # with the SHA-256 of the file


def test_shards_count_for_the_scores_of_all_shards(tmp_path: Path) -> None:
    """Files that hold parts of the same lists add up to the whole."""
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_text("q Q0 a 1 2 t\nq Q0 b 2 1 t\n")
    right.write_text("q Q0 d 1 3 t\nq Q0 c 2 1 t\n")
    qrels = tw.Qrels.from_dict({"q": {"a": 1, "c": 1}})
    whole = tw.TieGroups.from_shards(qrels, [as_source(left), as_source(right)])
    assert whole.start.tolist() == [1, 2]
    assert whole.size.tolist() == [1, 2]


@pytest.mark.parametrize("library", ["pyarrow", "polars", "pandas"])
@pytest.mark.parametrize("coded", [False, True])
def test_arrow_columns_are_counted_where_they_are(library: str, coded: bool) -> None:
    """A table in small chunks, cut inside lists, gives what a run in columns gives."""
    arrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(3)
    rows = [(f"q{q}", f"d{d}", float(rng.integers(9))) for q in range(30) for d in rng.permutation(90)[:40]]
    query, doc, score = map(list, zip(*rows, strict=True))
    names = ["query_id", "doc_id", "score"]
    table = arrow.table(dict(zip(names, (query, doc, score), strict=True)))
    if coded:
        table = table.set_column(0, "query_id", table["query_id"].dictionary_encode())
    table = arrow.concat_tables([table.slice(at, 77) for at in range(0, len(rows), 77)])
    if library == "polars":
        frame = pytest.importorskip("polars").from_arrow(table)
    else:
        frame = table.to_pandas() if library == "pandas" else table
    qrels = tw.Qrels.from_dict({f"q{q}": {f"d{d}": 1 for d in range(0, 90, 9)} for q in range(0, 30, 2)})
    want = as_source(tw.Run.from_columns(query, doc, score)).count(qrels, TOOL_ORDERS, DTYPES).ties
    counts = as_source(frame).count(qrels, TOOL_ORDERS, DTYPES)
    assert (counts.n_rows, counts.n_queries) == (1200, 30)
    have = counts.ties
    for dtype, ties in want.items():
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(have[dtype], name), getattr(ties, name), err_msg=f"{dtype} {name}")
        for order, before in ties.before.items():
            np.testing.assert_array_equal(have[dtype].before[order], before, err_msg=f"{dtype} {order}")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("q", "a", 1.0), ("q", "a", 2.0)], "document 'a' appears twice in the run for query 'q'"),
        ([("q", "a", float("nan"))], "score 'nan' for query 'q', document 'a'"),
        ([("q", None, 1.0)], "row 0: the document id is missing"),
    ],
)
def test_errors_of_arrow_columns_are_those_of_any_run(rows: list, message: str) -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table(dict(zip(("qid", "docno", "score"), map(list, zip(*rows, strict=True)), strict=True)))
    with pytest.raises(tw.InputError, match=message):
        tw.evaluate({"q": {"a": 1}}, table, "RR")


def test_arrow_columns_with_queries_that_are_not_contiguous() -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"qid": ["p", "q", "p"], "docno": ["a", "a", "b"], "score": [1.0, 1.0, 1.0]})
    assert tw.evaluate({"p": {"b": 1}, "q": {"a": 1}}, table, "RR", complete=True)["RR"].expected == 0.875


def test_parquet_is_read_batch_by_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "run.parquet"
    table = arrow.table(
        {
            "qid": [q for q in range(40) for _ in range(9)],
            "docno": [f"d{d}" for _ in range(40) for d in range(9)],
            "score": np.arange(360, dtype=np.float32) % 4,
            "text": ["…"] * 360,
        }
    )
    parquet.write_table(table, path, row_group_size=50)
    monkeypatch.setattr("tiewise.ties.counted.ROWS", 25)
    qrels = {str(q): {"d3": 1, "d4": 2} for q in range(40)}
    streamed, whole = tw.evaluate(qrels, path, complete=True), tw.evaluate(qrels, read_run(path), complete=True)
    assert streamed.to_dict(per_query=True) == whole.to_dict(per_query=True)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(tw.InputError, match="not readable as Parquet"):
        tw.evaluate(qrels, path)


def test_shards_read_as_another_type_count_for_rounded_scores(tmp_path: Path) -> None:
    """0.1 and its nearest float32 are one score to a float32 reader, whichever shard holds which."""
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_text("q Q0 a 1 0.1 t\n")
    right.write_text("q Q0 b 1 0.10000000149011612 t\n")
    qrels = tw.Qrels.from_dict({"q": {"a": 1, "b": 1}})
    scores = np.array([0.1, 0.10000000149011612])
    for path in (left, right):
        ties = as_source(path).count(qrels, (), scores=scores).ties
        assert sorted(ties["float64"].size.tolist()) == [0, 1]
        assert ties["float32"].size.tolist() == [1, 1]


FRAME = {"qid": ["q", "q"], "docno": ["a", "b"], "score": [2.0, 1.0]}


def test_a_data_frame_without_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert tw.evaluate({"q": {"b": 1}}, pandas.DataFrame(FRAME), "RR")["RR"].expected == 0.5


def test_columns_that_arrow_cannot_represent() -> None:
    """A column that nobody asked for may hold anything; ids may be integers and text."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FRAME | {"docno": [1, "b"], "meta": [1, "x"]})
    assert tw.evaluate({"q": {"b": 1}}, frame, "RR")["RR"].expected == 0.5


def test_a_code_without_an_id_is_an_error() -> None:
    arrow = pytest.importorskip("pyarrow")
    docs = arrow.DictionaryArray.from_arrays(arrow.array([0, 1], arrow.int32()), arrow.array(["a", None]))
    with pytest.raises(tw.InputError, match="row 1: the document id is missing"):
        tw.evaluate({"q": {"a": 1}}, arrow.table(FRAME | {"docno": docs}), "RR")


def test_a_deleted_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run"
    path.write_text("q1 Q0 d1 1 0.5 t\n")
    monkeypatch.chdir(tmp_path)
    here = tw.evaluate({"q1": {"d1": 1}}, "run", "RR")
    monkeypatch.chdir("/")
    assert here.provenance.run["path"] == "run"  # found where it was
    gone = tw.evaluate({"q1": {"d1": 1}}, path, "RR")
    path.unlink()
    with pytest.raises(tw.InputError, match="cannot be read again"):
        gone.to_json()


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run"
    path.write_text("q1 Q0 d1 1 0.5 t\n")
    count = streaming.Counting.count

    def counts_slowly(self: streaming.Counting, parts: object, load: object) -> bool:
        path.write_text("q1 Q0 d2 1 0.5 t\nq1 Q0 d3 1 0.5 t\n")
        return count(self, parts, load)

    monkeypatch.setattr(streaming.Counting, "count", counts_slowly)
    with pytest.raises(tw.InputError, match="was changed"):
        tw.evaluate({"q1": {"d1": 1}}, path, "RR")


def test_text_instead_of_a_path_is_an_error() -> None:
    with pytest.raises(tw.InputError, match="is text, not a path"):
        tw.evaluate({"q": {"d": 1}}, "q Q0 d 1 0.5 t\n" * 1000, "RR")


def test_chunks_that_end_with_their_list_are_blocks() -> None:
    """Concatenated compressed files, one for each query, are not in memory at once."""
    members = [b"".join(b"q%d Q0 d%d 1 0.5 t\n" % (q, d) for d in range(3000)) for q in range(60)]
    parts = [b"".join(texts) for texts in text_reader.list_blocks(members)]
    assert b"".join(parts) == b"".join(members)
    assert max(map(len, parts)) < 2 * text_reader.BLOCK


def test_the_environment_chooses_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIEWISE_READER", "fast")
    with pytest.raises(tw.TiewiseError, match="Use 'compiled' or 'python'"):
        tw.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, "RR")
    monkeypatch.setenv("TIEWISE_READER", "compiled")
    monkeypatch.setattr("tiewise.data.native._module", lambda name: None)
    with pytest.raises(tw.TiewiseError, match="was not built"):
        tw.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, "RR")


@pytest.mark.parametrize("reader", ["compiled", "python"])
def test_integers_that_float64_cannot_hold(tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIEWISE_READER", reader)
    path = tmp_path / "run"
    path.write_text("q Q0 d 1 9007199254740993 t\nq Q0 e 1 9007199254740992 t\n")
    message = f"{path}:1: score '9007199254740993' for query 'q', document 'd'. Beyond 2..53 an integer has no exact"
    for read in (read_run, lambda path: tw.evaluate({"q": {"d": 1}}, path, "RR")):
        with pytest.raises(tw.InputError, match=message):
            read(path)
    path.write_text("q Q0 d 1 9007199254740994 t\nq Q0 e 1 1e300 t\n")
    assert read_run(path).to_dict() == {"q": {"d": 9007199254740994.0, "e": 1e300}}
    assert tw.evaluate({"q": {"d": 1}}, path, "RR")["RR"].expected == 0.5


def test_a_data_frame_that_was_sorted() -> None:
    """Its index is no range any more, and comes along as a column."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FRAME).sort_values("score")
    assert tw.evaluate({"q": {"b": 1}}, frame, "RR")["RR"].expected == 0.5


def test_a_damaged_column_does_not_crash() -> None:
    """Offsets that go back lead out of the bytes of a column."""
    column = text_reader.reader().Column(np.frombuffer(b"ab", np.uint8), np.array([2, 1, 0], np.int32), None)
    with pytest.raises(IndexError):
        text_reader.reader().Block().columns([(column, column, np.array([1.0, 2.0]), 0, 2)])
    with pytest.raises(IndexError):
        text_reader.reader().Block().columns([(column, column, np.array([1.0]), 0, 2)])
    text, ends = np.frombuffer(b"ab", np.uint8), np.array([0, 1, 2], np.int32)
    coded = text_reader.reader().Column(text, ends, np.array([1], np.int32))
    with pytest.raises(IndexError):
        text_reader.reader().Block().columns([(coded, coded, np.array([1.0, 2.0]), 0, 2)])
    with pytest.raises(TypeError):
        text_reader.reader().Column(text, ends, np.array([1], np.int64))


def test_an_unknown_layout_is_an_error() -> None:
    with pytest.raises(ValueError, match="layout"):
        text_reader.reader().Block().parse([b"a b c\n"], 5, "score", False, False, False, b"")


def test_a_table_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    passes, count = [], streaming.Counting.count
    monkeypatch.setattr(
        streaming.Counting, "count", lambda self, parts, load: passes.append(1) or count(self, parts, load)
    )
    tw.evaluate({"q": {"a": 1}}, table, "RR")
    assert len(passes) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells in a file what a processor can do")
def test_the_environment_disables_avx2() -> None:
    """`make test-portable` builds the reader for machines without AVX2, and says so in the environment."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    able = platform.machine() == "x86_64" and {"avx2", "bmi2"} <= flags
    assert native().avx2 is (able and os.environ.get("TIEWISE_AVX2") != "no")


def test_an_interrupt_ends_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one thread runs into ends the others, however much is left to read: they finish what they have begun."""
    path = tmp_path / "run"
    path.write_text("".join(f"q{q} Q0 d{d} 1 {1 / (1 + d)} t\n" for q in range(400) for d in range(20)))
    monkeypatch.setattr(file_run, "SMALL", 0)
    monkeypatch.setattr(streaming, "THREADS", 2)
    monkeypatch.setattr("tiewise.io.text.BLOCK", 1000)
    numbers, piece = itertools.count(1), streaming.Counting._count_block

    def interrupted(self: streaming.Counting, block: object, part: object, load: object) -> object:
        if next(numbers) == 3:
            raise KeyboardInterrupt
        return piece(self, block, part, load)

    monkeypatch.setattr(streaming.Counting, "_count_block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tw.tie_groups({"q1": {"d1": 1}}, path)
    assert next(numbers) <= 10  # of more than a hundred parts


def test_no_space_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run"
    path.write_text("".join(f"q{q} Q0 d{d} 1 {1 / (1 + d)} t\n" for d in range(200) for q in range(20)))
    monkeypatch.setattr(file_run, "SHARE", 1 << 12)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(
        tw.InputError, match=r"the temporary folder has no space .* Sort the file by query, or set TMPDIR"
    ):
        tw.tie_groups({"q1": {"d1": 1}}, path)


@pytest.mark.parametrize("width", [*range(60, 68), *range(124, 132)])
@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", "  \n", "\t\n"])
def test_lines_of_every_width_and_end(tmp_path: Path, width: int, end: str) -> None:
    """Blanks are looked for 64 bytes at a time; a line may end at any of their edges."""
    path = tmp_path / "run"
    rows = [f"q1 Q0 {'d' * (width - 20 - len(end))}{place:03} 1 {place}.25 t{end}" for place in range(300)]
    path.write_bytes("".join(rows).encode())
    with pytest.MonkeyPatch.context() as patch:
        assert columns(path, "python", patch) == columns(path, "compiled", patch)


@pytest.mark.parametrize("falls", [True, False])
def test_a_long_list_is_indexed_in_parts(falls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    docs, score = rng.permutation(20_000), rng.integers(0, 300, 20_000)
    rows = [f"q Q0 d{doc} 1 {value} t\n" for doc, value in zip(docs, -np.sort(-score) if falls else score, strict=True)]
    rows[12_345] = rows[12_345].replace(f" d{docs[12_345]} ", " q ")
    path, qrels = tmp_path / "run", {"q": {f"d{doc}": doc % 3 for doc in range(0, 30_000, 50)}, "other": {"d1": 1}}
    path.write_text("other Q0 d1 1 0.5 t\n" + "".join(rows))
    found = {}
    for reader in ("compiled", "python"):
        monkeypatch.setenv("TIEWISE_READER", reader)
        counted = as_source(path).count(as_qrels(qrels), TOOL_ORDERS)
        assert counted.has_self is not None and counted.has_self.tolist() == [True, False]
        found[reader] = [{name: vars(ties)[name] for name in (*ARRAYS, "before")} for ties in counted.ties.values()]
    np.testing.assert_equal(found["compiled"], found["python"])
    for first, last in ((0, 19_999), (7_000, 7_001)):  # a document twice
        path.write_text("".join([*rows[:last], rows[first], *rows[last:]]))
        messages = []
        for reader in ("compiled", "python"):
            monkeypatch.setenv("TIEWISE_READER", reader)
            with pytest.raises(tw.InputError, match="document") as error:
                tw.evaluate(qrels, path, "RR")
            messages.append(str(error.value))
        assert messages[0] == messages[1]
