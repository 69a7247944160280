"""What cannot be read says so: which file, which line, what was found, and what to do."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import InputError, MissingExtraError
from tiewise.io import as_qrels, as_run, read_qrels, read_run, write_qrels, write_run

GOOD = "302 Q0 FBIS3-1 1 9.5 tag\n"
EXPECTED = (
    "Expected 'query Q0 document rank score tag' or 'query document rank' or 'query document score' or "
    "'query document rank score'."
)
Reader = Callable[..., Any]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # so that messages hold "run" and not a long path


def complaint(read: Reader, content: str | bytes, **options: Any) -> str:
    Path("run").write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError) as error:
        read("run", **options)
    return str(error.value)


# -- lines --------------------------------------------------------------------------------------------------

PLACE = "for query '302', document 'FBIS3-2'"


@pytest.mark.parametrize(
    ("score", "advice"),
    [
        ("nan", "NaN has no rank; drop the row or score it -inf."),
        ("NaN", "NaN has no rank; drop the row or score it -inf."),
        ("0,5", "Write a decimal point: 0.5."),
        ("-1,000.5", "It is not a number."),
        ("0x1F", "Write it as a decimal number."),
        ("1_000", "Write digits only."),
        ("١٢", "Write digits only."),
        ("1e400", "It is too large for float64; scale the numbers."),
        ("-1e999", "It is too large for float64; scale the numbers."),
        ("1e-400", "It is too small for float64, and would be 0; scale the numbers."),
        ("np.float64(0.5)", "Write 0.5 alone."),
        ("high", "It is not a number."),
        ("1.5f", "It is not a number."),
        ("--1", "It is not a number."),
    ],
)
def test_invalid_scores(score: str, advice: str) -> None:
    content = GOOD + f"# comment\n302 Q0 FBIS3-2 2 {score} tag\n" + GOOD.replace("FBIS3-1", "FBIS3-3")
    assert complaint(read_run, content) == f"run:3: score '{score}' {PLACE}. {advice}"


@pytest.mark.parametrize(
    ("label", "advice"),
    [
        ("relevant", "It is not a number."),
        ("nan", "A label is a number; drop the row if it was not judged."),
        ("inf", "A label is finite."),
        ("1,5", "Write a decimal point: 1.5."),
    ],
)
def test_invalid_labels(label: str, advice: str) -> None:
    content = f"1 0 d1 1\n\n1 0 d2 {label}\n"
    assert complaint(read_qrels, content) == f"run:3: label '{label}' for query '1', document 'd2'. {advice}"


def test_a_wrong_number_of_columns() -> None:
    columns = "(query Q0 document rank score tag)"
    assert complaint(read_run, GOOD + "302 Q0 FBIS3-2 2 9.0\n") == (
        f"run:2: 5 columns instead of 6 {columns}: '302 Q0 FBIS3-2 2 9.0'"
    )
    # Five and seven columns are twelve, but no two rows.
    assert complaint(read_run, GOOD + "a b c 1 2\nt a b c 1 2 t\n") == (
        f"run:2: 5 columns instead of 6 {columns}: 'a b c 1 2'\n"
        f"run:3: 7 columns instead of 6 {columns}: 't a b c 1 2 t'. The tag is not 'tag': does an id contain a blank?"
    )
    # More words may follow the tag, but where the fourth is no rank, an id may hold a blank.
    assert complaint(read_run, GOOD + "302 Q0 two words 2 9.0 tag\n") == (
        f"run:2: 7 columns instead of 6 {columns}: '302 Q0 two words 2 9.0 tag'. "
        "The tag is not 'tag': does an id contain a blank?"
    )
    assert complaint(read_run, "302 Q0 two words 2 9.0 tag\n") == (
        f"run:1: 7 columns, which fits no run: '302 Q0 two words 2 9.0 tag'. {EXPECTED}"
    )
    assert complaint(read_run, GOOD + "302 Q0 d 2 high tag more\n") == (
        "run:2: score 'high' for query '302', document 'd'. It is not a number."
    )
    assert complaint(read_run, "1 2 3 4 5\n") == (
        "run:1: 5 columns fit no run: no order of the columns has scores that fall, or ranks that count up, in each "
        "query, and no document twice: '1 2 3 4 5'. Say which columns these are: --input-columns "
        "query,-,doc,rank,score (in Python, input_columns='query,-,doc,rank,score')."
    )
    assert complaint(read_qrels, "#\n\nword\n") == (
        "run:3: 1 column, which fits no qrels: 'word'. "
        "Expected 'query iteration document label' or 'query document label'."
    )


@pytest.mark.parametrize("before", ["", GOOD, "# a comment\r"])
def test_carriage_returns_inside_lines(before: str) -> None:
    problem = "a carriage return inside a line. If lines end in CR alone, convert them: tr '\\r' '\\n' < FILE"
    line = 2 if before == GOOD else 1
    assert complaint(read_run, f"{before}1 Q0 a 1 2 t\r1 Q0 b 2 1 t\r") == f"run:{line}: {problem}"
    assert complaint(read_qrels, before.replace(GOOD, "1 0 a 1\n") + "1 0 b 1\r1 0 c 1\r") == f"run:{line}: {problem}"
    Path("run").write_bytes(b"1 Q0 a 1 2 t\r\r\n1 Q0 b 2 1 t\r")  # only at their ends
    assert read_run("run").to_dict() == {"1": {"a": 2.0, "b": 1.0}}


@pytest.mark.parametrize("lines", [(0, 1), (1, 0), (1, 2)])
def test_an_id_with_a_blank_before_a_number(lines: tuple[int, int]) -> None:
    rows = "q Q0 a 1 9 t\n", "q Q0 Apollo 13 11 8.2 t\n", "q Q0 Apollo 14 12 8.1 t\n"
    assert "'q Q0 Apollo 1" in complaint(read_run, "".join(rows[line] for line in lines))
    Path("run").write_text("q Q0 a 1 9 t and\nq Q0 b 2 8 t more words\n")
    assert read_run("run").to_dict() == {"q": {"a": 9.0, "b": 8.0}}


def test_tabs_and_words_after_the_tag() -> None:
    Path("run").write_text("q1 Q0 a 1\t.5\ttag extra\n")
    assert read_run("run").to_dict() == {"q1": {"a": 0.5}}


def test_an_empty_cell_between_tabs() -> None:
    assert complaint(read_qrels, "q\td\t1\nq\t\t1\n") == (
        "run:2: 2 columns instead of 3 (query document label): 'q\\t\\t1'"
    )


def test_ten_problems_at_once() -> None:
    problems = complaint(read_run, GOOD + "".join(f"1 Q0 d{i} 1 nan t\n" for i in range(30))).splitlines()
    assert len(problems) == 11
    assert [problem.split(": ")[0] for problem in problems[:10]] == [f"run:{line}" for line in range(2, 12)]
    assert problems[10] == "Reading stopped after 10 problems."
    Path("run").write_text(GOOD + "1 Q0 d 1 nan t\n1 Q0 d 1 x t\n")
    with pytest.raises(InputError) as error:
        read_run("run")
    assert len(error.value.problems) == 2


def test_a_document_twice() -> None:
    content = "1 Q0 a 1 3 t\n# comment\n2 Q0 a 1 3 t\n\n1 Q0 b 2 2 t\n1 Q0 a 3 1 t\n"
    assert (
        complaint(read_run, content)
        == "run:6: document 'a' appears twice in the run for query '1'. Keep one of the rows."
    )
    assert complaint(read_qrels, "q 0 a 1\nq 0 a 1\n") == (
        'Documents appear twice. If their rows are for different subtopics, read them with kind="diversity" '
        "(`tiewise evaluate --qrels-kind diversity`).\n"
        "run:2: document 'a' appears twice in the qrels for query 'q'. Keep one of the rows."
    )


@pytest.mark.parametrize("rank", ["0", "-1", "1.5", "inf", "d1", "0,5", "nan"])
def test_three_columns_that_are_neither_ranks_nor_scores(rank: str) -> None:
    problem = complaint(read_run, f"q\ta\t1\nq\tb\t{rank}\n")
    assert problem.startswith("run:1: 3 columns between tabs ")
    assert problem.endswith("--input-columns query,doc,score (in Python, input_columns='query,doc,score').")
    rows = "".join(f"q\td{place}\t{place}\n" for place in range(1, 10_000))
    assert complaint(read_run, f"{rows}q\tb\t{rank}\n").startswith(
        f"run:10000: rank '{rank}' for query 'q', document 'b'. The first rows hold ranks from 1 on."
    )


@pytest.mark.parametrize("read", [read_run, read_qrels])
def test_commas_between_columns(read: Reader) -> None:
    with pytest.raises(InputError, match=r"^run: has no rows\.$|looks like qrels"):
        complaint_of = Path("run").write_text("query-id,corpus-id,score\n") and read("run")
        assert complaint_of is None
    assert complaint(read, "q1,d1\n").startswith("run:1: 1 column, which fits no ")
    assert complaint(read, "q1,Q0,d1,1,0.5,tag\n", format="trec") == (
        "run:1: 1 column instead of "
        + ("6 (query Q0 document rank score tag)" if read is read_run else "4 (query iteration document label)")
        + ": 'q1,Q0,d1,1,0.5,tag'"
    )


def test_arguments_swapped() -> None:
    first = "Where both are given, qrels come first."
    swapped = f"{first[:-1]}; `tiewise audit` takes them as --qrels."
    assert complaint(read_run, "q 0 d 1\n") == f"run:1: looks like qrels (4 columns), not a run. {swapped}"
    assert (
        complaint(read_run, "q 0 d 1\n", format="trec") == f"run:1: looks like qrels (4 columns), not a run. {swapped}"
    )
    assert complaint(read_qrels, "#\n" + GOOD) == f"run:2: looks like a run (6 columns), not qrels. {first}"
    assert complaint(read_run, "query-id\tcorpus-id\tscore\nq\td\t1\n") == (
        f"run:1: looks like qrels (BEIR header), not a run. {swapped}"
    )
    assert complaint(read_run, GOOD, format="beir") == f"Format 'beir' holds qrels, not a run. {swapped}"
    assert complaint(read_qrels, GOOD, format="mteb") == f"Format 'mteb' holds a run, not qrels. {first}"
    predictions = json.dumps({"query_id": "q", "query": "", "results": []})
    assert complaint(read_qrels, predictions) == (f"run: looks like a run (sentence-transformers), not qrels. {first}")
    with pytest.raises(InputError, match=r"^Found qrels, not a run\. Where both"):
        as_run(Qrels.from_dict({"q": {"d": 1}}))
    with pytest.raises(InputError, match=r"^Found a run, not qrels\. Where both"):
        as_qrels(as_run({"q": {"d": 1}}))
    with pytest.raises(InputError, match=r"^Found a run, not qrels\. Where both"):
        as_qrels(Run.from_dict({"q": {"d": 1}}))


def test_ids_that_are_not_utf8() -> None:
    content = GOOD.encode() + b"\n1 Q0 caf\xe9 1 2 t\n\xff Q0 d 1 2 t\n"
    assert complaint(read_run, content) == ("run:4: the query id b'\\xff' is not UTF-8. Convert the file with iconv.")
    content = GOOD.encode() + b"\n1 Q0 caf\xe9 1 2 t\n1 Q0 d 1 2 t\n"
    assert complaint(read_run, content) == (
        "run:3: the document id b'caf\\xe9' is not UTF-8. Convert the file with iconv."
    )


def test_binary_files() -> None:
    what = "Give text, JSON or Parquet, plain or as .gz, .zst, .bz2 or .xz."
    assert complaint(read_run, bytes(range(256)) * 9) == f"run: is a binary file. {what}"
    assert complaint(read_run, GOOD.encode("utf-16")) == "run: is UTF-16 text. Convert it: iconv -f UTF-16 -t UTF-8"
    assert complaint(read_run, GOOD.encode("utf-32")) == "run: is UTF-32 text. Convert it: iconv -f UTF-32 -t UTF-8"
    late = (GOOD * 20_000).encode() + b"1 Q0 \0 1 2 t\n"
    assert complaint(read_run, late) == "run:20001: a NUL byte. Is this a text file?"


@pytest.mark.parametrize("read", [read_run, read_qrels])
def test_files_with_no_rows(read: Reader) -> None:
    assert complaint(read, "").startswith("run: is empty. Expected 'query ")
    assert complaint(read, "# only\n\n").startswith("run: has no rows. Expected 'query ")
    assert complaint(read, "{}") == "run: has no rows."
    assert complaint(read, "", format="json") == "run: is empty. Expected {query: {document: number}}."
    assert complaint(read, gzip.compress(b"")).startswith("run: is empty.")


def test_formats_that_do_not_exist() -> None:
    names = "trec, msmarco, beir, columns, json, mteb, sentence-transformers, reranker, rankings, rows, parquet, arrow"
    assert complaint(read_run, GOOD, format="xml") == (
        f"Unknown format 'xml'. Use one of {names}, or none to have it recognised."
    )
    assert complaint(read_run, GOOD, format="trec:x") == (
        "Format 'trec:x': only 'mteb' takes a part, as in 'mteb:default/test'."
    )


# -- files --------------------------------------------------------------------------------------------------


SHARDED = "for shards of one run, use `tiewise evaluate --engine ray` or tiewise.adapters.ray"


def test_files_that_cannot_be_opened() -> None:
    Path("folder").mkdir()
    for path, message in {
        "none.trec": "none.trec: there is no such file.",
        "folder": f"folder: is a folder. Give a file in it; or, {SHARDED}.",
        "run*.trec": f"run*.trec: there is no such file. Give the files themselves; or, {SHARDED}.",
        GOOD + GOOD: "'302 Q0 FBIS3-1 1 9.5 tag\\n302 Q0 FBIS3-1 '… is text, not a path. "
        "Write it to a file, or give a dictionary.",
    }.items():
        with pytest.raises(InputError) as error:
            as_run(path)
        assert str(error.value) == message


def test_lists_of_paths_are_errors() -> None:
    for name in ("abc", "abd", "abe"):
        Path(name).write_text(GOOD)
    shards = "; or, if they are shards of one run, all to tiewise.adapters.ray.evaluate"
    for given in (["abc", "abd"], ("abc", "abd"), map(Path, ("abc", "abd"))):
        with pytest.raises(InputError) as error:
            as_run(given)
        assert str(error.value) == f"A list of text ('abc', 'abd') is not a run. Give one path{shards}."
    with pytest.raises(InputError, match=r"is not qrels\. Give one path\.$"):
        as_qrels(["abc", "abd"])


def test_files_without_permission() -> None:
    Path("secret").touch(mode=0)
    user = os.geteuid()
    if user == 0:  # the superuser may read everything
        os.seteuid(65534)
    try:
        with pytest.raises(InputError, match=r"^secret: cannot be read \(Permission denied\)\.$"):
            read_run("secret")
    finally:
        os.seteuid(user)


@pytest.mark.parametrize(
    ("method", "pack"),
    [
        ("gzip", gzip.compress),
        ("bzip2", bz2.compress),
        ("xz", lzma.compress),
        ("zstd", zstandard.ZstdCompressor(write_checksum=True).compress),
    ],
)
def test_damaged_compression(method: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack("".join(f"q Q0 d{i} {i} {-i * i} t\n" for i in range(2000)).encode())
    again = "Copy or create the file again."
    for size in (len(packed) - 3, len(packed) // 2, 10):
        assert complaint(read_run, packed[:size]) == f"run: the {method} data stops before its end. {again}"
    broken = bytearray(packed)
    for place in range(len(packed) // 2, len(packed) // 2 + 40):
        broken[place] ^= 0xFF
    message = complaint(read_run, bytes(broken))
    assert message.startswith(f"run: the {method} data is corrupt (")
    assert message.endswith(again)
    assert complaint(read_run, packed + b"garbage after the end").startswith(f"run: the {method} data is corrupt (")


def test_an_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("run").write_bytes(zstandard.ZstdCompressor().compress(GOOD.encode()))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"Reading \.zst needs an extra: pip install 'tiewise\[zstd\]'"):
        read_run("run")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"Parquet needs an extra: pip install 'tiewise\[arrow\]'"):
        write_run({"q": {"d": 1.0}}, "run.parquet")
    assert not Path("run.parquet").exists()


# -- JSON and Parquet ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"q": {"d": 1},\n "r": {"d" 2}}', "run:2:12: is not JSON: Expecting ':' delimiter."),
        ('{"q": {"d": 1}', "run:1:15: is not JSON: Expecting ',' delimiter."),
        ('{"q": {"d": 1, "d": 2}}', "run: the key 'd' appears twice in one JSON object. Keep one of them."),
        ('{"q": {"d": 1}, "q": {}}', "run: the key 'q' appears twice in one JSON object. Keep one of them."),
        ('{"q": {"d": 1}}\n{"r": {}}', "run:2: a second JSON value. Expected one object, {query: {document: number}}."),
        ("{'q': {'d': 1}}", "run:1:2: is not JSON: Expecting property name enclosed in double quotes."),
        ("[1, 2]", "run: is a JSON list. Expected {query: {document: number}}."),
        ('{"q": "d"}', "run: query 'q': a str is not a ranking. Give {document: score}."),
        ('{"q": {"d": null}}', "run: query 'q', document 'd': score None is not a number."),
        ('{"q": {"d": "high"}}', "run: query 'q', document 'd': score 'high' is not a number."),
        ('{"q": {"d": NaN}}', "run: score 'nan' for query 'q', document 'd'. "
         "NaN has no rank; drop the row or score it -inf."),
        ('{"q": {"d": 1e400}}', "run: the number 1e400 is too large for float64; scale the numbers."),
        ('{"q": {"d": 1' + "0" * 400 + "}}", "run: query 'q', document 'd': score 1" + "0" * 400 + " is an integer "
         "without an exact float64 (beyond 2**53), so distinct scores would tie. Scale them."),
        ('{"a": {"test": {"q": {"d": 1}}}}', "run: 'a' is nested too deep. Expected {query: {document: number}}; "
         "MTEB's files: format='mteb'."),
        ("[" * 100_000, "run: is nested too deep. Expected {query: {document: number}}."),
        (b'{"q": {\n"\xe9": 1}}', "run:2: is not UTF-8. Convert the file with iconv."),
        ('{"mteb_model_meta": {}}', "run: has no predictions. "
         "Expected {subset: {split: {query: {document: number}}}}."),
    ],
)  # fmt: skip
def test_json_that_cannot_be_used(content: str | bytes, message: str) -> None:
    assert complaint(read_run, content) == message


def test_an_unknown_part_of_mteb_predictions() -> None:
    content = json.dumps({"mteb_model_meta": {}, "default": {"test": {"q": {"d": 1}}}})
    assert complaint(read_run, content, format="mteb:default/dev") == (
        "run: has no part 'default/dev', but default/test. Pick one: --input-format mteb:default/test (in "
        "Python, format='mteb:default/test')."
    )


def test_sentence_transformers_lines_that_cannot_be_used() -> None:
    def line(query: str, *docs: str) -> str:
        return json.dumps({"query_id": query, "results": [{"corpus_id": doc, "score": 1.0} for doc in docs]})

    content = "\n".join([line("q", "a", "b"), "", line("r", "a", "a"), line("q", "a"), '{"query_id": "s"}'])
    assert complaint(read_run, content).splitlines() == [
        "run:3: document 'a' appears twice. Keep one.",
        "run:4: query 'q' appears twice in the run. Keep one of the lines.",
        'run:5: expected {"query_id": …, "candidates": [{"docid": …, "score": …}, …]}.',
    ]


def test_parquet_that_cannot_be_used() -> None:
    pyarrow.parquet.write_table(pyarrow.table({"query_id": ["q"], "doc_id": ["d"], "relevance": [1]}), "table")
    data = Path("table").read_bytes()
    assert complaint(read_run, data).startswith("run: Found qrels (column 'relevance'), not a run. ")
    assert complaint(read_qrels, data[:-9]).startswith("run: is not readable as Parquet (")
    assert complaint(read_qrels, "q 0 d 1\n", format="parquet").startswith("run: is not readable as Parquet (")


# -- objects and writing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("thing", [5, None, b"run.trec", [1, 2], object()])
def test_objects_that_are_not_runs(thing: Any) -> None:
    with pytest.raises(InputError, match=r"is not a run. Give a path, {query: {document: score}}, a data frame"):
        as_run(thing)


@pytest.mark.parametrize(
    ("run", "named"),
    [
        ({"q": {"a b": 1.0}}, "document id 'a b' cannot"),
        ({"q": {"": 1.0}}, "document id '' cannot"),
        ({"q\t1": {"d": 1.0}}, "query id 'q\\t1' cannot"),
        ({"#1": {"d": 1.0}}, "query id '#1' cannot"),
        ({"q": {"a\n": 1.0, "b\r": 1.0, "c": 1.0}}, "document ids 'a\\n', 'b\\r' cannot"),
        ({"q": {"\ud800": 1.0}}, "document id '\\ud800' cannot"),
    ],
)
def test_ids_that_cannot_be_written(run: dict[str, dict[str, float]], named: str) -> None:
    for write in (write_run, write_qrels):
        with pytest.raises(InputError) as error:
            write(run, "out.trec")
        assert str(error.value).startswith(f"The {named} be written in TREC columns")
    assert not list(Path().iterdir())
    write_run(run, "out.json")
    assert read_run("out.json").to_dict() == run


def test_writing_where_it_cannot_be() -> None:
    Path("folder").mkdir()
    for path, message in {
        "none/run": "none/run: cannot be written (No such file or directory).",
        "folder": "folder: cannot be written (Is a directory).",
    }.items():
        with pytest.raises(InputError) as error:
            write_run({"q": {"d": 1.0}}, path)
        assert str(error.value) == message
    with pytest.raises(InputError, match=r"^Cannot write format 'xml'. Use one of trec, json, parquet\.$"):
        write_run({"q": {"d": 1.0}}, "run", format="xml")
    with pytest.raises(InputError, match="The tag 'my run' is empty or contains blanks"):
        write_run({"q": {"d": 1.0}}, "run", tag="my run")
