"""`Rows`: a table that is a sequence of dictionaries, and of columns by name."""

from __future__ import annotations

import pandas
import pytest

from tiewise.tables.records import Rows

COLUMNS = {"system": ["A", "B", "C"], "depth": [10, None, 5], "score": [0.5, 1.0, None], "kept": [True, False, True]}


def test_rows_and_columns():
    rows = Rows(COLUMNS)
    assert len(rows) == 3 and rows.columns == ("system", "depth", "score", "kept")
    assert [row["system"] for row in rows] == rows["system"] == ["A", "B", "C"]
    assert rows[-1] == {"system": "C", "depth": 5, "score": None, "kept": True}
    assert list(rows[1:]) == [rows[1], rows[2]] and isinstance(rows[1:], Rows)
    with pytest.raises(IndexError):
        rows[3]
    with pytest.raises(KeyError):
        rows["nothing"]


def test_the_columns_that_were_given_stay_as_they_are():
    given = {"depth": (1, 2)}
    rows = Rows(given)
    rows["depth"].append(3)
    assert given == {"depth": (1, 2)}


def test_as_text():
    lines = repr(Rows(COLUMNS)).splitlines()
    assert [line.split() for line in lines] == [
        ["system", "depth", "score", "kept"],
        ["A", "10", "0.5000", "yes"],
        ["B", "-", "1.0000", "no"],
        ["C", "5", "-", "yes"],
    ]
    assert len({line.index(word) for line, word in zip(lines, ["score", "0.5", "1.0", "-"], strict=True)}) == 1
    assert not any(line.endswith(" ") for line in lines)


def test_nothing():
    assert len(Rows({})) == len(Rows({"a": []})) == 0
    assert (repr(Rows({})), repr(Rows({"a": []}))) == ("", "a")


def test_a_data_frame():
    frame = Rows(COLUMNS).to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(COLUMNS) and frame["score"].iloc[0] == 0.5
