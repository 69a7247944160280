"""Shards on a Ray cluster of two workers: results equal those of the whole run, and errors name the shard."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import socketserver
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault(
    "RAY_DATA_USE_DATASOURCE_V2", "0"
)  # Ray's new way to list files waits ten seconds without a network
pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("ray.data", reason="ray[data] is not installed")

import ray
import ray.data

import tiewise as tw
from pages import FENCE
from tiewise import scoring
from tiewise.adapters import ray as sharded
from tiewise.adapters.ray.shards import list_shards
from tiewise.errors import InputError
from tiewise.io.vectors import VECTOR_NAMES

pytestmark = [
    pytest.mark.filterwarnings("ignore::tiewise.CutWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

ROOT = Path(__file__).parent.parent
MEASURES = ["nDCG@10", "AP", "RR@10", "P@5", "R@20", "Bpref", "RBP(p=0.8)"]
ORDERS = ["trec_eval", "pytrec_eval", "given", "docid-asc", "ir_measures", None]
SCORES = [0.25, 0.5, 0.5 + 1e-9, 0.5 - 1e-9, 1.0, float("-inf")]  # some tie only as float32

Rows = list[tuple[str, str, float]]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Two workers; the GPU exists in name only, which is enough for scheduling."""
    ray.init(
        address="local",
        num_cpus=2,
        num_gpus=1,
        include_dashboard=False,
        object_store_memory=120_000_000,
        log_to_driver=False,
        logging_level="ERROR",
    )
    ray.data.DataContext.get_current().read_op_min_num_blocks = 2  # not two hundred for a few rows
    yield
    ray.shutdown()


def make_data(seed: int, queries: int = 12, documents: int = 40) -> tuple[dict, Rows]:
    """Judgments, some of them negative, and rows with many ties; some queries are only in one of them."""
    rng = random.Random(seed)
    docs = [f"d{i}" for i in range(documents)]
    qrels = {f"q{i}": {d: rng.choice([0, 0, 1, 2, -1]) for d in rng.sample(docs, 9)} for i in range(queries)}
    listed = [f"q{i}" for i in range(2, queries + 3)]
    rows = [(q, d, rng.choice(SCORES)) for q in listed for d in rng.sample(docs, rng.randint(1, documents))]
    return qrels, rows


def cut(rows: Rows, how: str, pieces: int, seed: int) -> list[Rows]:
    """Rows divided by query, by document, or at random; no piece is empty."""
    rng = random.Random(seed)
    of: dict[str, int] = {}
    parts: list[Rows] = [[] for _ in range(pieces)]
    for row in rows:
        key = {"query": row[0], "document": row[1]}.get(how, f"{row[0]} {row[1]}")
        parts[of.setdefault(key, rng.randrange(pieces))].append(row)
    return [part for part in parts if part]


def as_dict(rows: Rows) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for query, doc, score in rows:
        table.setdefault(query, {})[doc] = score
    return table


def write(parts: list[Rows], folder: Path, suffixes=(".trec", ".parquet", ".trec.gz", ".json")) -> list[Path]:
    """The parts as files, in several formats in turn; text files keep the order of the rows."""
    folder.mkdir(exist_ok=True)
    files = []
    for number, part in enumerate(parts):
        path = folder / f"part-{number:03}{suffixes[number % len(suffixes)]}"
        if ".trec" in path.suffixes:
            text = "".join(f"{q} Q0 {d} {n} {s!r} made\n" for n, (q, d, s) in enumerate(part, 1)).encode()
            path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
        else:
            tw.write_run(as_dict(part), path)
        files.append(path)
    return files


def assert_same(ours: tw.Report, theirs: tw.Report, unknown: tuple[str, ...] = ()) -> None:
    """Assert equal values of all queries to the last bit, equal notes, and equal provenance except paths."""
    mine, other = ours.to_dict(per_query=True), theirs.to_dict(per_query=True)
    assert mine["queries"] == other["queries"]
    assert mine["measures"] == other["measures"]
    assert mine["notes"] == other["notes"]
    for name, value in other["provenance"].items():
        if name not in ("run", "qrels"):
            assert mine["provenance"][name] == (None if name in unknown else value), name


@pytest.mark.parametrize("how", ["query", "document", "any"])
@pytest.mark.parametrize("seed", range(4))
def test_every_cut_equals_the_whole(how, seed, tmp_path):
    qrels, rows = make_data(seed)
    rng = random.Random(seed)
    parts = cut(rows, how, rng.choice([2, 5, 11]), seed)
    files = write(parts, tmp_path / "shards")
    whole = as_dict([row for part in parts for row in part])
    shared = len(parts) > 1 and how != "query"
    for oblivious in ORDERS:
        options = {
            "oblivious": oblivious,
            "missing": rng.choice(["zero", "skip"]),
            "no_relevant": rng.choice(["zero", "skip"]),
            "depth": rng.choice([None, 7]),
            "judged_only": rng.choice([False, True]),
            "score_dtype": rng.choice([None, "float16", "float32"]),
            "complete": rng.choice([False, True]),
        }
        measures = [name for name in MEASURES if options["depth"] is None or name != "Bpref"]
        ours = sharded.evaluate(qrels, files, measures, **options)
        theirs = tw.evaluate(qrels, whole, measures, **options)
        if shared:  # ties across shards are not counted, so the note on them is missing
            lacking = [note for note in theirs.notes if not note.startswith("Read as ")]
            assert list(ours.notes) == lacking
            vars(theirs)["other_notes"] = ours.other_notes
        assert_same(ours, theirs, unknown=("tied_rows", "tied_share", "new_ties") if shared else ())


def test_values_of_other_tools(tmp_path):
    qrels, rows = make_data(7)
    parts = cut(rows, "any", 4, 7)
    files, whole = write(parts, tmp_path / "shards"), as_dict([row for part in parts for row in part])
    ours = sharded.evaluate(qrels, files, MEASURES, tools=True)
    assert ours.oblivious_by_tool() == tw.evaluate(qrels, whole, MEASURES).oblivious_by_tool()
    with pytest.raises(InputError, match="do not hold the scores"):
        sharded.evaluate(qrels, files, MEASURES).oblivious_by_tool()


def test_shards_cut_by_query_keep_their_ranks(tmp_path):
    qrels, rows = make_data(3)
    parts = cut(rows, "query", 3, 3)
    (whole,) = write([[row for part in parts for row in part]], tmp_path / "whole", [".trec"])
    ranks = {tuple(line.split()[::2][:2]): line.split()[3] for line in whole.read_text().splitlines()}
    files = write(parts, tmp_path / "shards", [".trec"])
    for path in files:
        lines = [line.split() for line in path.read_text().splitlines()]
        path.write_text("".join(f"{q} Q0 {d} {ranks[q, d]} {s} x\n" for q, _, d, _, s, _ in lines))
    assert_same(
        sharded.evaluate(qrels, files, MEASURES, oblivious="rank"),
        tw.evaluate(qrels, whole, MEASURES, oblivious="rank"),
    )
    with pytest.raises(InputError, match="do not make one ranking"):
        sharded.evaluate(qrels, write(cut(rows, "any", 3, 3), tmp_path / "any", [".trec"]), oblivious="rank")


def test_ray_dataset(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    qrels, rows = make_data(5)
    parts = [*cut(rows, "any", 3, 5), []]
    names = [("query_id", pyarrow.string()), ("doc_id", pyarrow.string()), ("score", pyarrow.float64())]
    tables = [
        pyarrow.table(
            [pyarrow.array(column, kind) for column, (_, kind) in zip(columns, names, strict=True)],
            schema=pyarrow.schema(names),
        )
        for columns in ([[row[i] for row in part] for i in range(3)] for part in parts)
    ]
    dataset = ray.data.from_arrow(tables)
    whole = as_dict([row for part in parts for row in part])
    for oblivious in ("pytrec_eval", "given"):
        ours = sharded.evaluate(qrels, dataset, MEASURES, oblivious=oblivious)
        theirs = tw.evaluate(qrels, whole, MEASURES, oblivious=oblivious)
        assert_same(ours, theirs, unknown=("tied_rows", "tied_share"))
    twice = ray.data.from_arrow([tables[0], tables[0].slice(0, 1)])
    with pytest.raises(InputError, match=r"block 1: document 'd\d+' of query 'q\d+' is in block 0 too"):
        sharded.evaluate({q: dict.fromkeys(docs, 1) for q, docs in as_dict(rows).items()}, twice)
    bad = ray.data.from_arrow([tables[0].drop_columns(["score"])])
    with pytest.raises(InputError, match="data set: The run has no column 'score'"):
        sharded.evaluate(qrels, bad)


def test_killed_workers_are_retried(tmp_path):
    """Workers are killed while they count; the result does not change."""
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("workers are found in /proc, which needs Linux")
    qrels, rows = make_data(11, queries=40)
    parts = cut(rows, "any", 120, 11)
    files, whole = write(parts, tmp_path / "shards"), as_dict([row for part in parts for row in part])
    reports, killed = [], []
    work = threading.Thread(target=lambda: reports.append(sharded.evaluate(qrels, files, MEASURES)))
    work.start()
    until = time.monotonic() + 60
    while work.is_alive() and len(killed) < 2 and time.monotonic() < until:
        for pid in find_workers(str(tmp_path)):
            if pid not in killed and work.is_alive():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                break
    work.join(60)
    assert killed, "no worker was seen"
    assert not work.is_alive() and reports
    assert_same(reports[0], tw.evaluate(qrels, whole, MEASURES), unknown=("tied_rows", "tied_share"))


def find_workers(folder: str) -> list[int]:
    """The processes that count a shard of a folder. Ray names a process after its task."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                title = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:  # it has ended
                continue
            if title.startswith(f"ray::tiewise {folder}"):
                found.append(int(entry.name))
    return found


def test_errors_name_the_shard_and_line(tmp_path):
    qrels, rows = make_data(1)
    files = write(cut(rows, "any", 4, 1), tmp_path / "shards", [".trec"])
    files[2].write_text(files[2].read_text() + "q1 Q0 d1 oops\n")
    lines = files[2].read_text().count("\n")
    with pytest.raises(InputError) as raised:
        sharded.evaluate(qrels, files)
    assert str(raised.value).startswith(f"{files[2]}:{lines}: 4 columns instead of 6")
    assert "Ray" not in str(raised.value) and "Traceback" not in str(raised.value)
    assert raised.value.__cause__ is None
    with pytest.raises(InputError, match="there is no such file"):
        sharded.evaluate(qrels, [files[0], tmp_path / "gone.trec"])
    files[3].write_bytes(b"")
    with pytest.raises(InputError, match=r"part-003\.trec: is empty"):
        sharded.evaluate(qrels, [files[0], files[3]])


def test_duplicate_shards(tmp_path):
    qrels, rows = make_data(1)
    folder = tmp_path / "shards"
    files = write(cut(rows, "document", 3, 1), folder, [".trec"])
    with pytest.raises(InputError, match=r"part-000\.trec: this shard is listed twice"):
        sharded.evaluate(qrels, [folder, files[0]])
    copy = tmp_path / "copy.trec"
    copy.write_bytes(files[1].read_bytes())
    with pytest.raises(InputError, match=r"copy\.trec: has the same bytes as .*part-001\.trec"):
        sharded.evaluate(qrels, [*files, copy])
    packed = tmp_path / "copy.trec.gz"
    packed.write_bytes(gzip.compress(files[1].read_bytes()))
    with pytest.raises(InputError, match=r"copy\.trec\.gz: document 'd\d+' of query 'q\d+' is in .*part-001\.trec too"):
        sharded.evaluate(qrels, [*files, packed])


def test_no_query_or_document_in_common(tmp_path):
    _, rows = make_data(1)
    files = write(cut(rows, "any", 2, 1), tmp_path / "shards")
    with pytest.raises(InputError, match="no query in common"):
        sharded.evaluate({"x": {"d1": 1}}, files)
    with pytest.raises(InputError, match=r"No list holds a document judged for its query\. Documents of the run: 'd"):
        sharded.evaluate({"q3": {"x": 1}}, files)
    for options in ({"missing": "no"}, {"oblivious": "no"}, {"depth": 0}, {"score_dtype": "float12"}):
        with pytest.raises(InputError):
            sharded.evaluate({"q3": {"d1": 1}}, files, **options)
    with pytest.raises(InputError, match="not a list of shards"):
        sharded.evaluate({"q3": {"d1": 1}}, 3)


def test_bytes_moved_do_not_grow_with_rows(tmp_path):
    """Ten times the documents with the same judgments move the same number of counts."""
    rng = random.Random(0)
    qrels = {f"q{i}": {f"d{j}": 1 for j in range(10)} for i in range(20)}
    moved = []
    for documents in (300, 3000):
        rows = [(q, f"d{j}", rng.random()) for q in qrels for j in range(documents)]
        files = write(cut(rows, "document", 4, 1), tmp_path / str(documents), [".trec"])
        run = sharded.count(qrels, files)
        assert (run.cut, run.shards, run.n_rows) == ("document", 4, len(rows))
        moved.append(run.moved)
    assert moved[1] < 1.5 * moved[0] < 100_000


def test_paths_folders_and_patterns(tmp_path):
    for name in ("b/2.trec", "b/1.trec", "a.trec", "_SUCCESS", "b/.hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    names = [str(tmp_path / name) for name in ("a.trec", "b/1.trec", "b/2.trec")]
    assert list_shards(tmp_path) == names
    assert list_shards(f"{tmp_path}/**/*.trec") == names
    assert list_shards([tmp_path / "b", tmp_path / "a.trec"]) == [*names[1:], names[0]]
    for given, words in (
        ("-", "Standard input"),
        (f"{tmp_path}/*.no", "no file matches"),
        ("s3://x/y", "read_parquet"),
        ([], "no shards"),
    ):
        with pytest.raises(InputError, match=words):
            list_shards(given)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/_SUCCESS").touch()
    with pytest.raises(InputError, match=r"no files to read\. .* begins with '\.' or '_'; 1 skipped"):
        list_shards(tmp_path / "empty")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_embeddings_in_shards(device, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    queries, docs = rng.integers(-2, 3, (9, 4)).astype(np.float32), rng.integers(-2, 3, (200, 4)).astype(np.float32)
    doc_ids, query_ids = [f"d{i}" for i in range(200)], [f"q{i}" for i in range(9)]
    qrels = {q: {d: int(rng.integers(0, 3)) for d in rng.choice(doc_ids, 12, replace=False)} for q in query_ids[:-1]}
    for number, part in enumerate(np.array_split(np.arange(200), 3)):
        flat = pyarrow.FixedSizeListArray.from_arrays(docs[part].ravel(), 4)
        column = flat if number else pyarrow.array(docs[part].tolist(), pyarrow.list_(pyarrow.float32()))
        table = pyarrow.table({"id": [doc_ids[i] for i in part], "embedding": column, "text": ["?"] * len(part)})
        parquet.write_table(table, tmp_path / f"docs-{number}.parquet")
    for oblivious in ("trec_eval", "given") if device == "cpu" else ("given",):
        orders = ["docid-desc" if oblivious == "trec_eval" else "given"]
        ties = scoring.tie_groups(queries, docs, qrels, query_ids=query_ids, doc_ids=doc_ids, orders=orders)
        ours = sharded.evaluate_vectors(
            qrels, (query_ids, queries), f"{tmp_path}/docs-*.parquet", MEASURES, oblivious=oblivious, device=device
        )
        assert_same(ours, tw.evaluate(None, ties, MEASURES, oblivious=oblivious))
    if device == "cuda":
        return
    dataset = ray.data.read_parquet(str(tmp_path / "docs-1.parquet"))
    some = scoring.tie_groups(queries, docs[67:134], qrels, query_ids=query_ids, doc_ids=doc_ids[67:134])
    assert_same(
        sharded.evaluate_vectors(qrels, (query_ids, queries), dataset, MEASURES, device="cpu"),
        tw.evaluate(None, some, MEASURES),
    )
    odd = pyarrow.table({"id": ["a", "b"], "vector": [[1.0, 2.0], [1.0]]})
    parquet.write_table(odd, tmp_path / "odd.parquet")
    parquet.write_table(odd.drop_columns(["vector"]), tmp_path / "none.parquet")
    for name, words in (
        ("odd", r"odd.parquet: column 'vector' has vectors of 2 numbers and, in row 1, of 1"),
        ("none", r"none.parquet: has no column of vectors, called vector, .* It has: id\. Rename one"),
        ("gone", "no such file"),
    ):
        with pytest.raises(InputError, match=words):
            sharded.evaluate_vectors(qrels, (query_ids, queries), tmp_path / f"{name}.parquet", device="cpu")


def test_errors_name_the_shard_and_row_of_embeddings(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    qrels, queries = {"q": {"a": 1, "c": 0}}, (["q"], np.ones((1, 2), np.float32))
    good = {"id": ["a", "b"], "vector": [[1.0, 2.0], [2.0, 1.0]]}
    parquet.write_table(pyarrow.table(good), tmp_path / "good.parquet")
    bad = tmp_path / "bad.parquet"
    for changed, words in (
        ({"vector": [[1.0, 2.0, 3.0]] * 2}, "Queries have 2 dimensions and documents 3"),
        ({"vector": [[1.0, 2.0], [1.0, float("nan")]]}, "Row 1 of the documents holds NaN or infinity"),
        ({"vector": [[1.0, 2.0], None]}, r"column 'vector' has no vector in row 1 \(1 such row\)"),
        ({"id": ["c", None]}, "row 1: the document id is missing"),
        ({"id": ["c", "c"]}, "1 document id occurs more than once: 'c'"),
        ({"vector": ["x", "y"]}, "column 'vector' holds string, not vectors"),
    ):
        parquet.write_table(pyarrow.table({"id": ["c", "d"], "vector": good["vector"]} | changed), bad)
        with pytest.raises(InputError, match=rf"bad\.parquet: {words}"):
            sharded.evaluate_vectors(qrels, queries, [tmp_path / "good.parquet", bad], device="cpu")
    parquet.write_table(pyarrow.table({"key": ["c"], "dense": [[1.0, 2.0]]}), bad)
    with pytest.raises(InputError, match=r"bad\.parquet: has no column of ids, called id, .* It has: key, dense\."):
        sharded.evaluate_vectors(qrels, queries, bad, device="cpu")
    bad.write_text("no Parquet")
    with pytest.raises(InputError, match=r"bad\.parquet: is not readable as Parquet"):
        sharded.evaluate_vectors(qrels, queries, bad, device="cpu")
    block = ray.data.from_arrow(pyarrow.table({"id": ["a", "b"], "vector": [[1.0, 2.0], [1.0, float("inf")]]}))
    with pytest.raises(InputError, match=r"data set, in the block that begins with 'a': Row 1 of the documents"):
        sharded.evaluate_vectors(qrels, queries, block, device="cpu")


def test_errors_in_queries_do_not_name_a_shard(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"id": ["a"], "vector": [[1.0, 2.0]]}), tmp_path / "docs.parquet")
    some = np.array([[1.0, 2.0], [np.nan, 1.0]])
    for queries, options, words in (
        ((["q", "p"], some), {}, "^queries: Row 1 of the queries holds NaN"),
        ((["q", "q"], some), {}, "^queries: 1 query id occurs more than once"),
        ((["q"], some), {}, "^queries: 1 query id for 2 query vectors"),
        ((["q"], some[0]), {}, "^queries: The queries have shape"),
        ((["q"], some[:1]), {"fn": "dit"}, "^Unknown score function 'dit'"),
        ((["q"], some[:1]), {"precision": "half"}, "^Unknown precision 'half'"),
        (pyarrow.table({"id": [None], "vector": [[1.0, 2.0]]}), {}, "^queries: row 0: the query id is missing"),
        (tmp_path / "docs.parquet", {"fn": "maxsim"}, r"docs\.parquet: The queries have shape"),
    ):
        with pytest.raises(InputError, match=words):
            sharded.evaluate_vectors({"q": {"a": 1}}, queries, tmp_path / "docs.parquet", device="cpu", **options)


def test_column_names_are_documented():
    page = (ROOT / "docs/scale.md").read_text(encoding="utf-8")
    for name in ("id", "_id", *VECTOR_NAMES):
        assert f"`{name}`" in page, name
        assert f"``{name}``" in sharded.evaluate_vectors.__doc__, name


def test_command_line(tmp_path, capfd):
    from tiewise.cli.program import status_of

    qrels, rows = make_data(2)
    tw.io.write_qrels(qrels, tmp_path / "qrels.txt")
    parts = cut(rows, "query", 3, 2)
    write(parts, tmp_path / "shards", [".trec"])
    (whole,) = write([[row for part in parts for row in part]], tmp_path / "whole", [".trec"])
    common = ["evaluate", str(tmp_path / "qrels.txt"), "--format", "json", "--name", "made"]
    for more in ("-q", "--tools"):
        assert status_of([*common, more, str(tmp_path / "shards"), "--engine", "ray"]) == 0
        ours = capfd.readouterr().out
        assert status_of([*common, more, str(whole)]) == 0
        theirs = capfd.readouterr().out
        lines = [
            [line for line in text.splitlines() if '"path"' not in line and '"sha256"' not in line]
            for text in (ours, theirs)
        ]
        assert lines[0] == lines[1]
    assert status_of([*common, str(whole), "--address", "auto"]) == 2
    assert "--engine ray" in capfd.readouterr().err
    assert status_of([*common, "-", "--engine", "ray"]) == 2
    assert "Standard input" in capfd.readouterr().err


def test_page_runs(tmp_path, monkeypatch):
    """The Python code of docs/scale.md, on small files."""
    blocks = [
        code
        for kind, code in FENCE.findall((ROOT / "docs/scale.md").read_text(encoding="utf-8"))
        if kind == "python" and not code.startswith(">>>")  # those are doctests
    ]
    assert blocks
    qrels, rows = make_data(4)
    tw.io.write_qrels(qrels, tmp_path / "qrels.txt")
    write(cut(rows, "any", 3, 4), tmp_path / "shards", [".trec.gz"])
    write(cut(rows, "any", 2, 5), tmp_path / "tables", [".parquet"])
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "embeddings").mkdir()
    for name, ids in (("queries", sorted({q for q, _, _ in rows})), ("embeddings/0", sorted({d for _, d, _ in rows}))):
        vectors = np.random.default_rng(0).normal(size=(len(ids), 4)).astype(np.float32).tolist()
        parquet.write_table(pyarrow.table({"id": ids, "vector": vectors}), tmp_path / f"{name}.parquet")
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    for code in blocks:
        exec(compile(code.replace("/data/", f"{tmp_path}/"), "docs/scale.md", "exec"), space)


def test_address_without_a_listener():
    """In another process, because this one is connected to a cluster."""
    code = "from tiewise.adapters import ray; ray.evaluate({'q': {'d': 1}}, 'x', address='127.0.0.1:1')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "InputError: No Ray cluster answers at '127.0.0.1:1'" in done.stderr


def test_address_of_a_web_server():
    with socketserver.TCPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = f"127.0.0.1:{server.server_address[1]}"
        code = f"from tiewise.adapters import ray; ray.evaluate({{'q': {{'d': 1}}}}, 'x', address='{where}')"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        server.shutdown()
    assert f"InputError: A web server answers at '{where}', not a Ray cluster." in done.stderr


def test_dead_cluster(tmp_path):
    """In a process with its own cluster. The shard is a pipe without a writer, so counting never ends."""
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("processes are found in /proc, which needs Linux")
    os.mkfifo(tmp_path / "run.trec")
    (tmp_path / "qrels.txt").write_text("q 0 d 1\n")
    command = [sys.executable, "-m", "tiewise", "evaluate", "qrels.txt", "run.trec", "--engine", "ray"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            until = time.monotonic() + 60
            while not find_workers(str(tmp_path)) and time.monotonic() < until:
                time.sleep(0.1)
            (head,) = (pid for pid in children(process.pid) if Path(f"/proc/{pid}/comm").read_text() == "gcs_server\n")
            os.kill(head, signal.SIGKILL)
            _, err = process.communicate(timeout=60)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # it, and what it started
    assert process.returncode == 2
    assert "tiewise: The Ray cluster at " in err and "no longer answers" in err


@pytest.fixture
def waiting(tmp_path):
    """A command on the cluster of the tests whose shard is a pipe, and the worker that waits for it."""
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("workers are found in /proc, which needs Linux")
    os.mkfifo(tmp_path / "run.trec")
    (tmp_path / "qrels.txt").write_text("q 0 d 1\n")
    command = [sys.executable, "-m", "tiewise", "evaluate", "qrels.txt", "run.trec", "-m", "AP", "--format", "json"]
    command += ["--engine", "ray", "--address", ray.get_runtime_context().gcs_address]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    default = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731  # whoever runs the tests may ignore it
    with subprocess.Popen(command, cwd=tmp_path, preexec_fn=default, **pipes) as process:
        try:
            yield process, wait_for_worker(tmp_path, 0)
        finally:
            process.kill()
            for pid in find_workers(str(tmp_path)):
                os.kill(pid, signal.SIGKILL)


def wait_for_worker(folder: Path, before: int) -> int:
    """The process of a worker that counts a shard of a folder, once there is another one than `before`."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for pid in find_workers(str(folder)):
            if pid != before:
                return pid
        time.sleep(0.05)
    raise TimeoutError("no worker was seen")


def test_a_dead_worker_leaves_standard_output_to_the_result(waiting, tmp_path):
    process, worker = waiting
    os.kill(worker, signal.SIGKILL)
    wait_for_worker(tmp_path, worker)
    time.sleep(1)  # Ray's message comes in its own time
    (tmp_path / "run.trec").write_text("q Q0 d 1 1 x\n")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert json.loads(out)["measures"]["AP"]["expected"] == 1
    assert "worker died" in err


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_while_workers_count(name, waiting):
    process, _ = waiting
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (128 + getattr(signal, name), "", "tiewise: interrupted\n")


def test_a_cluster_that_does_not_start(tmp_path):
    """Its processes end for want of address space. The message does not wait until Ray gives up, after 30 s."""
    resource = pytest.importorskip("resource", reason="limits of memory are a matter of POSIX")
    (tmp_path / "qrels.txt").write_text("q 0 d 1\n")
    (tmp_path / "run.trec").write_text("q Q0 d 1 1 x\n")
    done = subprocess.run(
        [sys.executable, "-m", "tiewise", "evaluate", "qrels.txt", "run.trec", "--engine", "ray"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tiewise: Cannot use Ray at 'local' (its process 'raylet' ended). Ray needs memory")
    assert done.stderr.count("\n") == 1


def children(pid: int) -> list[int]:
    """The child processes of a process."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for one in lists for child in one.read_text().split()]


def test_ray_is_optional(tmp_path):
    """Without Ray the error says what to install; importing the adapter does not import Ray."""
    code = (
        "import sys; from tiewise.adapters import ray; assert 'ray' not in sys.modules; sys.modules['ray'] = None\n"
        "try: ray.evaluate({'q': {'d': 1}}, 'x')\n"
        "except ImportError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Evaluating on Ray needs an extra: pip install 'tiewise[ray]'"
