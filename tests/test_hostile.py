"""Input from an attacker: bombs, damaged columns, floods of ids, files that change, limits of the machine."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import os
import re
import signal
import subprocess
import sys
import time
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import zstandard

import tiewise as tw
from readers import reading
from tiewise.io import compression, file_run, formats, text
from tiewise.io import reading as read_module
from tiewise.io.tensors import read_tensors
from tiewise.results.data_formats import render_csv
from tiewise.results.model import Table

resource = pytest.importorskip("resource", reason="limits of memory are a matter of POSIX")

QRELS = "q1 0 d1 1\nq1 0 d2 0\n"
RUN = "q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 1.5 tag\n"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("qrels").write_text(QRELS)
    Path("run").write_text(RUN)
    return tmp_path


def limited(folder: Path, megabytes: int, *args: str, free: int = 1 << 28, **env: str) -> Any:
    """The command in an address space of this size; a file may grow to `free` bytes when it is decompressed."""
    size = megabytes << 20
    code = f"""
import sys
from tiewise.cli import main
from tiewise.io import compression
compression.FREE_EXPANSION = {free}
main()
"""
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        cwd=folder,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **env},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
        capture_output=True,
        text=True,
        timeout=120,
    )


# -- memory -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "content"),
    [*((method, b"\n") for method in PACKERS), ("gz", b"q1 Q0 d1 1 2.5 tag\n"), ("zst", b"x"), ("xz", b'{"')],
)
def test_decompression_takes_bounded_steps(method: str, content: bytes, folder: Path) -> None:
    """A small file of four gigabytes is refused, with little memory."""
    piece = PACKERS[method](content * ((1 << 22) // len(content)))
    Path("bomb").write_bytes(piece * 1024)  # a file may consist of several streams
    reader = "python" if content == b"x" else "compiled"
    done = limited(folder, 600, "evaluate", "qrels", "bomb", "-m", "AP", free=1 << 26, TIEWISE_READER=reader)
    assert done.stderr == (
        "tiewise: bomb: grows over 250 times when decompressed. If you trust it, decompress it first.\n"
    )
    assert done.returncode == 2


@pytest.mark.parametrize("packed", [False, True])
def test_blank_lines_and_comments_are_not_kept(packed: bool, folder: Path) -> None:
    """Before the first row they belong to no list, so a block ends among them; line numbers are right."""
    pytest.importorskip("tiewise._reader")
    blank = b"\n" * 50_000 + b" # a comment\n" * 5000 + b"\r\n" * 5000
    data = blank + RUN.encode()
    Path("run").write_bytes(gzip.compress(data) if packed else data)
    with reading("compiled", 1024):
        with compression.opened("run", hashed=False) as stream:
            lines = text.line_blocks(stream.chunks(), stream.name)
            blocks = [b"".join(texts) for texts in text.list_blocks(lines)]
        assert tw.evaluate("qrels", "run", "AP")["AP"].expected == 1
        Path("run").write_bytes(gzip.compress(data + b"no row\n") if packed else data + b"no row\n")
        with pytest.raises(tw.InputError, match=r"^run:60003: 2 columns instead of 6"):
            tw.evaluate("qrels", "run", "AP")
    assert b"".join(blocks) == data
    assert max(map(len, blocks)) <= 4096 and sum(b"Q0" in block for block in blocks) == 1


@pytest.mark.parametrize("method", PACKERS)
def test_pieces_are_small_and_whole(method: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decompressed step by step is what was compressed, wherever a step ends."""
    plain = b"".join(b"%d Q0 d%d 1 2 t\n" % (i // 100, i) for i in range(20_000)) + b"\n" * 3_000_000
    Path("file").write_bytes(b"\0".join(PACKERS[method](part) for part in (plain, b"", plain[:100_001])) + b"\0\0")
    for chunk in (1 << 20, 4096, 4095):
        monkeypatch.setattr(compression, "CHUNK", chunk)
        with compression.opened("file", hashed=False) as stream:
            pieces = list(stream.chunks())
        assert b"".join(pieces) == plain + plain[:100_001]
        if method != "zst":
            assert max(map(len, pieces)) <= chunk + 64


def test_an_xz_file_cannot_ask_for_more_memory_than_is_allowed(folder: Path) -> None:
    data = bytearray(lzma.compress(RUN.encode()))
    place = data.index(b"\x21\x01") + 2  # LZMA2, and one byte of properties: the size of the dictionary
    data[place] = 40  # four gigabytes
    data[place + 4 : place + 8] = zlib.crc32(data[12 : place + 4]).to_bytes(4, "little")  # of the header
    Path("run.xz").write_bytes(data)
    with pytest.raises(tw.InputError, match=r"run\.xz: the xz data is corrupt \(Memory usage limit exceeded\)"):
        tw.read_run("run.xz")


@pytest.mark.parametrize("reader", ["compiled", "python"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_line_has_a_longest_length(reader: str, packed: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_LINE", 1000)
    long = RUN + f"q1 Q0 {'d' * 2000} 3 1 tag\n"
    lists = "".join(f"q1 Q0 d{i} 1 2.5 tag\n" for i in range(1000))  # longer than a line may be, but of short lines
    write = gzip.compress if packed else bytes
    Path("long").write_bytes(write(long.encode()))
    Path("lists").write_bytes(write(lists.encode()))
    with reading(reader, 64):
        for read in (tw.read_run, lambda path: tw.evaluate("qrels", path, "AP")):
            with pytest.raises(
                tw.InputError, match=r"^long: a line is longer than 1,000 bytes. Is this a text file\?$"
            ):
                read("long")
            with warnings.catch_warnings():  # all of its rows are tied
                warnings.simplefilter("ignore")
                read("lists")


@pytest.mark.parametrize(
    ("reader", "content"),
    [("compiled", b"q1 Q0 d1 1 2.5 tag\n" * 12_000_000), ("python", RUN.encode() + b"a " * 50_000_000)],
)
def test_without_memory_the_file_is_named(reader: str, content: bytes, folder: Path) -> None:
    Path("run.gz").write_bytes(gzip.compress(content, 1))
    done = limited(folder, 600, "evaluate", "qrels", "run.gz", "-m", "AP", TIEWISE_READER=reader)
    assert (done.returncode, done.stderr) == (2, "tiewise: run.gz: there is not enough memory for it.\n")


def test_without_memory_for_an_analysis_the_files_are_named(folder, monkeypatch, capsys) -> None:
    import tiewise.analysis.evaluating
    from tiewise.cli.program import status_of

    def fail(*args: object) -> None:
        raise MemoryError

    monkeypatch.setattr(tiewise.analysis.evaluating, "report_of", fail)
    assert status_of(["evaluate", "qrels", "run", "-m", "AP"]) == 2
    assert capsys.readouterr().err == "tiewise: qrels, run: there is not enough memory.\n"


def test_an_archive_of_arrays_is_no_bomb_either(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "FREE_EXPANSION", 1 << 20)
    np.savez_compressed("bomb.npz", docs=np.zeros((1 << 12, 1 << 10), np.float32))
    with pytest.raises(tw.InputError, match=r"^bomb\.npz: 'docs': grows over 250 times when decompressed\."):
        read_tensors("bomb.npz")["docs"]


def test_members_of_an_archive_count_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "FREE_EXPANSION", 1 << 22)
    np.savez_compressed("several.npz", docs=np.ones((2, 3)), **{f"x{i}": np.zeros(1 << 18) for i in range(6)})
    arrays = read_tensors("several.npz")
    assert len(arrays) == 7 and arrays["docs"].shape == (2, 3)
    with pytest.raises(tw.InputError, match=r"^several\.npz: 'x1': grows over 250 times when decompressed\."):
        dict(arrays)


def test_only_needed_members_of_an_archive_are_read(folder: Path) -> None:
    """Six members of 200 MB, which are not needed, in a file of 1.2 MB."""
    large = dict.fromkeys((f"x{i}" for i in range(6)), np.zeros(200_000_000, np.uint8))
    np.savez_compressed("docs.npz", docs=np.eye(3, dtype=np.float32), **large)
    np.savez("queries.npz", queries=np.eye(3, dtype=np.float32))
    for command in ("score", "protocol vectors none"):
        done = limited(folder, 1000, *command.split(), "queries.npz", "docs.npz", "-o", "out")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("value", [b"[]", b"{}", b'{"a":1}', b"1"])
def test_a_small_compressed_document_is_no_bomb(value: bytes, folder: Path) -> None:
    """Lists in lists take 25 times their size in memory."""
    Path("run").write_bytes(gzip.compress(b'{"q": [' + (value + b",") * 4_000_000 + value + b"]}"))
    for read in (tw.read_run, tw.read_qrels, lambda path: tw.evaluate("qrels", path, "AP")):
        with pytest.raises(tw.InputError, match=r"^run: grows over 250 times when decompressed\."):
            read("run")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_while_a_thread_evaluates(folder: Path) -> None:
    """A thread stops within a cached value; a child that needs that of another object must not wait for it."""
    code = """
import os, signal, threading, tiewise as tw
inside, leave = threading.Event(), threading.Event()

@tw.measure
class Slow(tw.Measure):
    def payoff(self, rank):
        return 1 / rank
    def divisor(self, q):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            leave.wait()
        return q.relevant(self)

def evaluate():
    return tw.evaluate({"q": {"a": 2, "b": 1}}, {"q": {"a": 1.0, "b": 1.0}}, ["Slow", "AP"])["AP"].expected

value = evaluate()
thread = threading.Thread(target=evaluate)
thread.start()
assert inside.wait(60)
child = os.fork()
if not child:
    signal.alarm(30)
    os._exit(evaluate() != value)
status = os.waitpid(child, 0)[1]
leave.set()
thread.join()
print(status)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.stdout == "0\n", done.stderr


# -- hashes -----------------------------------------------------------------------------------------------------


def hashes_of_a_process() -> str:
    code = "from tiewise import _reader; print(*map(_reader.hashed, (b'', b'd1', b'document-1', b'd' * 100)))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_every_process_hashes_ids_in_its_own_way() -> None:
    pytest.importorskip("tiewise._reader")
    first, second = hashes_of_a_process().split(), hashes_of_a_process().split()
    assert len(first) == 4 and not set(first) & set(second)


def test_ids_made_to_share_a_hash_do_not() -> None:
    """The constants of the source are known: without a key, these ids would make a factor of the last product zero."""
    native = pytest.importorskip("tiewise._reader")
    prefix = (0x9E3779B97F4A7C15 ^ 16).to_bytes(8, "little")
    assert len({native.hashed(prefix + b"%08d" % place) for place in range(1000)}) == 1000


def test_the_hash_spreads_ids() -> None:
    """All bits depend on all bytes: ids that differ in one place rarely share the highest bits, which choose a slot."""
    native = pytest.importorskip("tiewise._reader")
    for template in (b"%d", b"doc-%d", b"%d-document", b"clueweb12-0000tw-%05d-00000000000000000000"):
        slots = [native.hashed(template % place) >> 44 for place in range(4096)]  # of a million
        assert len(set(slots)) > 4060  # 4,088 by chance


def test_results_do_not_depend_on_the_hash(folder: Path) -> None:
    """Queries in any order, rows that are not contiguous and split into temporary files, examples in messages."""
    rows = [f"q{i * 7 % 50} Q0 d{i} 1 {i % 9} t\n" for i in range(5000)]
    Path("run").write_text("".join(rows))
    Path("qrels").write_text("".join(f"q{i % 50} 0 d{i * 3} {i % 2}\n" for i in range(900)))
    Path("other").write_text("x 0 d1 1\n")
    code = """
import sys, tiewise as tw
from tiewise.io import file_run
file_run.SHARE = 10_000
report = tw.evaluate("qrels", "run", ["AP", "nDCG@10"])
print(report.per_query("AP"), report["nDCG@10"], report.notes)
try: tw.evaluate("other", "run", "AP")
except tw.InputError as error: print(error)
"""
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(3)]
    assert runs[0] == runs[1] == runs[2] and "no query in common" in runs[0]


# -- Arrow ------------------------------------------------------------------------------------------------------


def strings(*offsets: int) -> pyarrow.Array:
    """A column of text whose offsets are not checked."""
    buffers = [None, pyarrow.py_buffer(np.array(offsets, np.int32)), pyarrow.py_buffer(b"d1d2d3d4d5")]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(offsets) - 1, buffers)


def coded(codes: list[int], dtype: str, ids: pyarrow.Array) -> pyarrow.Array:
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes, dtype), ids, safe=False)


FIVE = ["d1", "d2", "d3", "d4", "d5"]
DAMAGED = {
    "falling offsets": strings(0, 4, 2, 6, 8, 10),
    "an offset beyond the text": strings(0, 2, 4, 60, 8, 10),
    "a negative offset": strings(0, 2, 4, -6, 8, 10),
    "a code that wraps": coded([0, 1, 2 + 2**32, 3, 4], "int64", pyarrow.array(FIVE)),
    "a code that wraps as unsigned": coded([0, 1, 2 + 2**32, 3, 4], "uint64", pyarrow.array(FIVE)),
    "a code too large": coded([0, 1, 2, 3, 77], "int8", pyarrow.array(FIVE)),
    "a negative code": coded([0, 1, 2, 3, -1], "int8", pyarrow.array(FIVE)),
    "a damaged dictionary": coded([0, 1, 2, 3, 4], "int8", strings(0, 4, 2, 6, 8, 10)),
    "codes of numbers": coded([0, 1, 2, 3, 77], "int8", pyarrow.array([1, 2, 3, 4, 5])),
}


@pytest.mark.parametrize("column", DAMAGED)
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("reader", ["compiled", "python"])
def test_damaged_arrow_columns_are_refused(
    column: str, place: int, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEWISE_READER", reader)
    ids = [pyarrow.array(FIVE), pyarrow.array(FIVE)]
    ids[place] = DAMAGED[column]
    what = ["query", "document"][place]
    run = pyarrow.table([*ids, pyarrow.array([5.0, 4, 3, 2, 1])], ["query_id", "doc_id", "score"])
    judgments = run.rename_columns(["query_id", "doc_id", "label"])
    for read in (tw.Run.from_frame, lambda table: tw.evaluate({"d1": {"d1": 1}}, table, "AP"), tw.audit):
        with pytest.raises(tw.InputError, match=f"column of {what} ids is damaged"):
            read(run)
    with pytest.raises(tw.InputError, match=f"column of {what} ids is damaged"):
        tw.Qrels.from_frame(judgments)


# -- plugins ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plugin", ["mine", "mine.py"])
def test_a_plugin_does_not_let_other_files_of_the_folder_run(plugin: str, folder: Path) -> None:
    """The folder is on the path while the plugin is imported, behind all others, and no longer."""
    Path("mine.py").write_text("import statistics\n")
    for name in ("zstandard", "statistics"):
        Path(f"{name}.py").write_text(f"import sys; sys.exit('{name}.py was executed')\n")
    Path("run.zst").write_bytes(zstandard.compress(RUN.encode()))
    command = [sys.executable, "-I", "-m", "tiewise", "evaluate", "qrels", "run.zst", "-m", "AP", "--plugin", plugin]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")


# -- output and signals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_file_keeps_its_mode_when_it_is_replaced(mode: int, umask: int, folder: Path) -> None:
    Path("out").write_text("old")
    Path("out").chmod(mode)
    before = os.umask(umask)
    try:
        tw.write_run("run", "out")
        tw.write_run("run", "new")
    finally:
        os.umask(before)
    assert Path("out").stat().st_mode & 0o777 == mode and Path("out").read_text() != "old"
    assert Path("new").stat().st_mode & 0o777 == 0o666 & ~umask


def test_while_it_is_written_a_file_is_no_more_open_than_the_one_it_replaces(folder: Path) -> None:
    Path("out").touch(0o600)
    modes = []

    def chunks():
        modes.extend(path.stat().st_mode & 0o777 for path in folder.glob(".out.*.part"))
        yield b"secret"

    compression.save("out", chunks())
    assert modes == [0o600]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_leaves_no_file_behind(name: str, folder: Path) -> None:
    """The process writes a file that is never complete; it is stopped as soon as that file appears."""
    code = """
import time
from tiewise import cli
from tiewise.cli import program
from tiewise.io.compression import save

def rows():
    while True:
        time.sleep(0.01)
        yield b"row\\n" * 100

program.status_of = lambda args: save("out", rows())
cli.main()
"""
    number = getattr(signal, name)
    default = lambda: signal.signal(number, signal.SIG_DFL)  # noqa: E731  # whoever runs the tests may ignore it
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, preexec_fn=default) as process:
        try:
            while not list(folder.glob(".out.*")) and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(number)
            error = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert (process.returncode, error) == (128 + number, "tiewise: interrupted\n")
    assert sorted(path.name for path in folder.iterdir()) == ["qrels", "run"]


def test_an_ignored_signal_stays_ignored(folder: Path) -> None:
    """As nohup wants it."""
    code = "import signal; from tiewise import cli; from tiewise.cli import program; "
    code += "program.status_of = lambda args: signal.raise_signal(signal.SIGHUP) or 0; cli.main()"
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    done = subprocess.run([sys.executable, "-c", code], preexec_fn=ignore, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("module", ["click", "numpy", "tiewise.analysis.comparison"])
def test_an_interrupt_during_an_import(module: str, folder: Path) -> None:
    """An import that interrupts the process, as a user may at that moment."""
    code = f"""
import signal, sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
sys.argv[1:] = ["compare", "qrels", "run", "run", "-m", "AP"]
from tiewise.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "tiewise: interrupted\n")


@pytest.mark.parametrize("size", [1000, 1 << 20])  # smaller and larger than the buffer of a file
def test_a_full_temporary_folder_is_named(size: int, folder: Path) -> None:
    Path("run").write_text("".join(f"q{i % 7} Q0 d{i} 1 1 t\n" for i in range(20_000)))
    code = (
        f"size = {size}"
        + """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from tiewise.cli.program import status_of
from tiewise.io import compression, file_run, text
file_run.SHARE = 100_000
compression.CHUNK = text.BLOCK = size
sys.exit(status_of(["evaluate", "qrels", "run", "-m", "AP"]))
"""
    )
    env = {**os.environ, "TIEWISE_READER": "compiled"}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("tiewise: run: the rows of a query are not contiguous, and the temporary folder has")
    assert "TMPDIR" in done.stderr and done.stderr.count("\n") == 1


# -- damaged files and odd arguments ----------------------------------------------------------------------------

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))

import arrow_tables as arrow_fuzz  # noqa: E402
import fuzzing  # noqa: E402
import parquet_files as parquet_fuzz  # noqa: E402
import tensors as tensor_fuzz  # noqa: E402


@pytest.mark.parametrize("name", sorted(path.name for path in tensor_fuzz.CORPUS.iterdir()))
@pytest.mark.filterwarnings("ignore::UserWarning")  # of NumPy, about old files
def test_damaged_arrays_of_the_corpus(name: str, tmp_path: Path) -> None:
    path = tensor_fuzz.CORPUS / name
    assert tensor_fuzz.failure(path.read_bytes(), path.suffix, tmp_path) == ""


@pytest.mark.parametrize("name", sorted(path.name for path in arrow_fuzz.CORPUS.iterdir()))
def test_arrow_columns_of_the_corpus(name: str, tmp_path: Path) -> None:
    assert arrow_fuzz.failure((arrow_fuzz.CORPUS / name).read_bytes(), "", tmp_path) == ""


@pytest.mark.parametrize("name", sorted(path.name for path in parquet_fuzz.CORPUS.iterdir()))
def test_parquet_files_of_the_corpus(name: str, tmp_path: Path) -> None:
    assert parquet_fuzz.failure((parquet_fuzz.CORPUS / name).read_bytes(), "", tmp_path) == ""


FUZZERS = {"tensors": tensor_fuzz.FUZZER, "arrow": arrow_fuzz.FUZZER, "parquet": parquet_fuzz.FUZZER}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fuzzer", FUZZERS.values(), ids=FUZZERS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_short_run_of_the_fuzzers(fuzzer: fuzzing.Fuzzer, seed: int) -> None:
    assert fuzzing.search(fuzzer, seed, inputs=200) == fuzzing.Finding(200)


TWICE = {"score": ["query_id", "doc_id", "score", "score"], "query_id": ["query_id", "doc_id", "score", "query_id"]}


@pytest.mark.parametrize("reader", ["compiled", "python"])
@pytest.mark.parametrize("column", TWICE)
def test_a_column_twice_is_an_error(reader: str, column: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIEWISE_READER", reader)
    columns = {"query_id": ["q1", "q1"], "doc_id": ["d1", "d2"], "score": [2.0, 1.0]}
    table = pyarrow.Table.from_arrays([pyarrow.array(columns[name]) for name in TWICE[column]], TWICE[column])
    pyarrow.parquet.write_table(table, "run.parquet")
    for run in ("run.parquet", table):
        with pytest.raises(tw.InputError, match=f"The run has two columns '{column}'. Keep one of them."):
            tw.evaluate("qrels", run, "AP")
    frame = pytest.importorskip("pandas").DataFrame([["q1", "d1", 2.0, "q1"]], columns=TWICE[column])
    with pytest.raises(tw.InputError, match=f"The run has two columns '{column}'. Keep one of them."):
        tw.evaluate("qrels", frame, "AP")


@pytest.mark.parametrize("query", ['["q1"]', '{"a": 1}', "[[]]"])
def test_a_query_of_sentence_transformers_that_is_no_text(query: str, folder: Path) -> None:
    Path("run").write_text(f'{{"query_id": {query}, "results": [{{"corpus_id": "d1", "score": 1}}]}}')
    with pytest.raises(tw.InputError, match=r'^run:1: expected {"query_id": …'):
        tw.read_run("run")


@pytest.mark.parametrize("command", ["evaluate qrels {} -m AP", "compare qrels {} run", "similarity {} run"])
@pytest.mark.parametrize("format", ["parquet", "json", "csv", "tsv", "table", "latex", "markdown"])
def test_a_file_name_that_is_not_utf8(command: str, format: str, folder: Path, tiewise) -> None:
    name = os.fsdecode(b"r\xffn")
    Path(name).write_text(RUN)
    tiewise(*command.format(name).split(), "--format", format, "-o", "out")
    assert Path("out").stat().st_size
    if format == "parquet":
        values = pyarrow.parquet.read_table("out").to_pydict().values()
        assert any("r\\udcffn" in str(value) for column in values for value in column)


def test_ids_without_utf8(folder: Path, tiewise) -> None:
    """JSON can hold a half of a surrogate pair, which no encoding has."""
    Path("qrels").write_text('{"q\\ud800": {"d1": 1}}')
    Path("run").write_text('{"q\\ud800": {"d1": 1.0, "d\\udc00": 1.0}}')
    tiewise("evaluate", "qrels", "run", "-m", "AP", "-q", "-o", "out.parquet")
    assert pyarrow.parquet.read_table("out.parquet")["query"].to_pylist()[0] == "q\\ud800"
    tiewise("compare", "qrels", "run", "run", "-m", "AP", "-o", "out.parquet")
    assert "q\\ud800' cannot be written as Parquet" in tiewise("break", "run", "-o", "out.parquet", code=2).err


LONG = "9" * 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("evaluate qrels run -m \udc80", "Unknown measure '\\udc80'"),
        ("evaluate qrels run -m AP(\udc80=1)", "Unknown measure 'AP(\\udc80=1)'"),
        ("evaluate qrels run -m rbp.p=\udc80", "'\\udc80' is not a value for p"),
        ("measures \udc80", "Unknown measure '\\udc80'"),
        (f"evaluate qrels run -m ndcg_at_{LONG}", "Unknown measure"),
        (f"evaluate qrels run -m map-l{LONG}", "Unknown measure"),
        (f"evaluate qrels run -m ndcg_cut.{LONG}", "is neither a cutoff nor a parameter"),
        (f"evaluate qrels run -m P(rel={'-' * 50_000}1)", "Unknown measure"),
        ("stages run run --recall-at 99999999999999999999", "recall_at=99999999999999999999 is not possible"),
        ("stages run run --depths 99999999999999999999", "depth=99999999999999999999 is not possible"),
    ],
)
def test_arguments_that_are_too_odd(arguments: str, message: str, folder: Path, tiewise) -> None:
    assert message in tiewise(*arguments.split(), code=2).err


# -- files that change ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", ["compiled", "python"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [-1, 1])
def test_a_file_that_changes_while_it_is_read(
    reader: str, packed: bool, size: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file loses its last rows, or gets more, after its first block was read: other numbers would come out."""
    rows = "".join(f"q1 Q0 d{i} 1 {5000 - i} tag\n" for i in range(5000)).encode()

    def change(*args: Any) -> Any:
        os.truncate("run", Path("run").stat().st_size // 2 if size < 0 else 1_000_000)
        return formats.detect_layout(*args)

    for module in (read_module, file_run):
        monkeypatch.setattr(module, "detect_layout", change)
    qrels = tw.Qrels.from_dict({"q1": {"d1": 1}})
    for read in (lambda: tw.evaluate(qrels, "run", "AP"), lambda: tw.read_run("run")):
        Path("run").write_bytes(PACKERS["gz"](rows) if packed else rows)
        with reading(reader, 256), pytest.raises(tw.InputError, match=r"^run: was changed"):
            read()


def test_a_mapped_file_that_becomes_shorter(folder: Path) -> None:
    """The file is truncated while a block is read, which nothing can foresee: SIGBUS would kill the process."""
    pytest.importorskip("tiewise._kernels")
    vectors = np.ones((4000, 64), np.float32)
    np.save("docs.npy", vectors)
    np.save("queries.npy", vectors[:2])
    code = """
import os, sys
from tiewise.cli.program import status_of
from tiewise.scoring import storage
storage._check_mapped = lambda array: os.truncate("docs.npy", 5000)
sys.exit(status_of(["score", "queries.npy", "docs.npy", "-o", "run.trec"]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.stderr == "tiewise: docs.npy, queries.npy: a file became shorter while it was read. Try again.\n"
    assert done.returncode == 2 and not Path("run.trec").exists()


# -- ids on a screen and in a spreadsheet, numbers in JSON ------------------------------------------------------


@pytest.mark.parametrize("id", ["=1+1", "@SUM(1)", "+cmd|' /C calc'!A0", "-2+3", " =1", "=", "-"])
def test_an_id_is_no_formula_of_a_spreadsheet(id: str, folder: Path, tiewise) -> None:
    Path("qrels").write_text(json.dumps({id: {"d1": 1}}))
    Path("run").write_text(json.dumps({id: {"d1": 1.0}}))
    command = ("evaluate", "qrels", "run", "-m", "AP", "-q", "--format")
    cells = [row["query"] for row in csv.DictReader(io.StringIO(tiewise(*command, "csv").out))]
    assert cells == [f"'{id}", "all"]
    assert tiewise(*command, "tsv").rows[0]["query"] == id  # for programs, which see an id as it is


def test_numbers_stay_numbers_in_csv() -> None:
    table = Table.of_columns({"id": ["-5", "+1.5", "-1e3", "d-1"], "value": [-0.25, -1, None, 2.0]})
    assert "".join(render_csv(table)) == "id,value\n-5,-0.25\n+1.5,-1\n-1e3,\nd-1,2.0\n"


HOSTILE = "q\x1b[31m\x07\x9b2J\u202e1"


@pytest.mark.parametrize("format", ["table", "tsv", "csv", "json", "jsonl", "latex", "markdown", "trec"])
def test_no_format_prints_control_characters_on_a_terminal(format: str, folder: Path, terminal) -> None:
    Path("qrels").write_text(json.dumps({HOSTILE: {"d1": 1}}))
    Path("run").write_text(json.dumps({HOSTILE: {"d1": 1.0}}))
    shown = terminal(
        "evaluate", "qrels", "run", "-m", "AP", "-q", "--format", format, columns=200, colour=format != "table"
    )
    assert "31m" in shown and all(c.isprintable() or c in "\n\t\r" for c in shown)


def test_a_run_on_a_terminal(folder: Path, terminal) -> None:
    Path("run").write_text("q1 Q0 d\x1b[31m 1 1 t\n")
    assert terminal("break", "run", "--quiet", colour=True) == "q1 Q0 d\\x1b[31m 1 1.0 t\n"


def test_in_files_and_pipes_ids_stay_as_they_are(folder: Path, tiewise) -> None:
    Path("run").write_text("q1 Q0 d\x1b[31m 1 1 t\n")
    assert tiewise("break", "run", "--quiet").out == "q1 Q0 d\x1b[31m 1 1.0 t\n"


@pytest.mark.parametrize("reader", ["compiled", "python"])
@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("9" * 299 + "e99", "is too large for float64"),
        ("9" * 250 + ".5e99", "is too large for float64"),
        ("1e309", "is too large for float64"),
        ("true", " 'true', not a number. Write 1 or 0"),
        ("false", " 'false', not a number. Write 1 or 0"),
    ],
)
def test_json_numbers_that_are_refused(
    reader: str, number: str, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEWISE_READER", reader)
    contents = [f'{{"q1": {{"d1": 1.0, "d2": {number}}}}}']
    contents.append(f'{{"query_id": "q1", "results": [{{"corpus_id": "d1", "score": {number}}}]}}')
    contents.append(f'{{"mteb_model_meta": {{}}, "default": {{"test": {{"q1": {{"d1": {number}}}}}}}}}')
    for content in contents:
        Path("run").write_text(content)
        with pytest.raises(tw.InputError, match=f"^run(:1)?: .*{re.escape(message)}"):
            tw.evaluate("qrels", "run", "AP")


def test_json_numbers_and_ids_that_are_read(folder: Path) -> None:
    """Large numbers, and text that looks like what is refused."""
    Path("run").write_text(f'{{"q: true": {{"d: false": {"9" * 200}e99, "d": -Infinity}}}}')
    assert tw.read_run("run").to_dict() == {"q: true": {"d: false": float("9" * 200 + "e99"), "d": -math.inf}}


# -- the page ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["report qrels run -o page.html", "stages run run --depths 1 --figure page.svg"])
def test_a_limit_of_address_space_is_named(command: str, folder: Path) -> None:
    """The renderer of charts reserves tens of gigabytes of addresses; without them it would kill the process."""
    pytest.importorskip("vl_convert")
    done = limited(folder, 4000, *command.split())
    assert done.returncode == 2 and not list(folder.glob("*page*"))
    assert done.stderr == (
        "tiewise: Charts cannot be drawn under this limit of address space (4,194,304,000 bytes; the renderer reserves "
        "about 40 GB and uses little of it). Raise it: ulimit -v unlimited\n"
    )
