"""Damaged Parquet files must be read as Arrow reads them, or refused by an error of Tiewise that names the file.

Every file has columns of a run and of vectors, and is read as both: as rows, as counts, as a matrix and by a search.
What is read must be what Arrow's own table holds, without a missing value. Small files, with several row groups,
encodings and types, are changed at random. A file that fails is made as small as it can be, shown, and kept.
"""

from __future__ import annotations

import io
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from fuzzing import Fuzzer, main  # noqa: E402

import tiewise as tw  # noqa: E402
from tiewise import scoring  # noqa: E402
from tiewise.errors import TiewiseError  # noqa: E402
from tiewise.scoring.vector_files import read_matrix  # noqa: E402

CORPUS = HERE / "corpus-parquet"
NUMBERS = [0, 1, 2, 127, 128, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**63]


def write(columns: dict[str, Any], **options: Any) -> bytes:
    """A Parquet file."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file, **options)
    return file.getvalue()


def seeds() -> list[bytes]:
    """Valid files, and the files of the corpus."""
    rows = [[0.5, 1.0], [2.0, -3.0], [4.0, 0.25], [1.0, 1.0], [0.0, 7.0]]
    run = {
        "query_id": ["q1", "q1", "q1", "q2", "q2"],
        "doc_id": [f"d{i}" for i in range(5)],
        "score": [3.0, 2, 2, 1, 1],
    }
    number = {**run, "query_id": [1, 1, 1, 2, 2], "score": pyarrow.array([3, 2, 2, 1, 1], "int32")}
    coded = {**run, "query_id": pyarrow.array(run["query_id"]).dictionary_encode()}
    float32, int8 = (pyarrow.list_(pyarrow.type_for_alias(name)) for name in ("float32", "int8"))
    whole = [[round(value) for value in row] for row in rows]
    return [
        write({**run, "vector": pyarrow.array(rows, float32)}, row_group_size=2),
        write({**coded, "vector": pyarrow.array(whole, int8)}, row_group_size=1, compression="gzip"),
        write({**number, "vector": pyarrow.array(rows, pyarrow.list_(pyarrow.float64(), 2))}, use_dictionary=False),
        write(
            {**run, "vector": pyarrow.array(rows, pyarrow.large_list(pyarrow.float16()))},
            row_group_size=3,
            compression="none",
            data_page_version="2.0",
        ),
        *(path.read_bytes() for path in sorted(CORPUS.iterdir())),
    ]


def changed(data: bytes, rng: random.Random) -> bytes:
    """A file with one change, in its pages or in its footer."""
    place = rng.randrange(max(len(data), 1))
    match rng.randrange(6):
        case 0:
            return data[:place] + rng.randbytes(1) + data[place + 1 :]
        case 1:
            bit = 1 << rng.randrange(8)
            return data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :] if data else data
        case 2:
            return data[:place] + data[place + rng.randint(1, 20) :]
        case 3:
            return data[:place] + rng.randbytes(rng.randint(1, 8)) + data[place:]
        case 4:
            number = rng.choice(NUMBERS).to_bytes(8, "little")[: rng.choice([1, 2, 4, 8])]
            return data[:place] + number + data[place + len(number) :]
        case _:
            return data[:place] if rng.random() < 0.3 else data[:place] + data[-rng.randint(8, 400) :]


def failure(data: bytes, suffix: str, folder: Path) -> str:
    """How a file is misread, or an error that is none of Tiewise's; nothing if there is none."""
    path = folder / "file.parquet"
    path.write_bytes(data)
    for read, named in ((_check_run, True), (_check_matrix, True), (_search, False)):
        try:
            read(path)
        except TiewiseError as error:
            problems = getattr(error, "problems", [str(error)])
            if any("\n" in one or (named and not one.startswith(str(path))) for one in problems):
                return f"{read.__name__}: not a line with its name: {problems}"
        except Exception as error:
            return f"{read.__name__}: {type(error).__name__}: {error}"
    return ""


def _check_run(path: Path) -> None:
    rows = list(tw.read_run(path))
    qrels = {rows[0][0]: {rows[0][1]: 1}}
    assert tw.evaluate(qrels, path, "AP")["AP"] == tw.evaluate(qrels, rows, "AP")["AP"], "rows and counts differ"
    query, doc, score = (_column(path, place) for place in range(3))
    assert None not in [*query, *doc, *score], "a missing value is read"
    assert sorted(rows) == sorted(zip(map(_text, query), map(_text, doc), score, strict=True)), "other rows"


def _check_matrix(path: Path) -> None:
    matrix, ids = read_matrix(path, "docs", "doc_ids")
    found, expected = str(matrix.tolist()), str(_column(path, 3))  # as text, since NaN is not equal to itself
    assert found == expected, f"{found} instead of {expected}"
    assert any(ids == _column(path, place) for place in (1, 0)), f"other ids: {ids}"  # one of them has another name


def _column(path: Path, place: int) -> list[Any]:
    """A column as Arrow reads it."""
    file = pyarrow.parquet.ParquetFile(path)
    values: list[Any] = file.read(columns=[file.schema_arrow.names[place]]).column(0).to_pylist()
    return values


def _text(id: Any) -> str:
    return id.decode() if isinstance(id, bytes) else str(id)


def _search(path: Path) -> None:
    collection = scoring.Collection(path)
    collection.search(np.ones((1, collection._docs.dims), np.float32), 2)


SEEDS = seeds()


def draw(rng: random.Random) -> tuple[str, bytes]:
    """A valid file, or one of the corpus, with some changes."""
    data = rng.choice(SEEDS)
    for _ in range(rng.randint(1, 3)):
        data = changed(data, rng)
    return ".parquet", data


FUZZER = Fuzzer(draw, failure)

if __name__ == "__main__":
    main(FUZZER, __doc__, "each was read as it is, or refused")
