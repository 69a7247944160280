"""`read_costs`: the costs of the stages of a search, from JSON and from lines of text, and errors in files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiewise as tw
from tiewise.example import file
from tiewise.rankings.costs import read_costs

COSTS = {"bm25": 1.2, "dense": {10: 3.0, 100: 4.5}, "rerank": 0.4}


def read(folder: Path, text: str | bytes, name: str = "costs") -> dict[str, float | dict[int, float]]:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_costs(path)


@pytest.mark.parametrize(
    "text",
    [
        '{"bm25": 1.2, "dense": {"10": 3, "100": 4.5}, "rerank": 0.4}',
        ' \n{"bm25": "1.2", "dense": {"010": 3e0, "100": 4.5}, "rerank": 0.4}\n',
        "bm25 1.2\ndense 10 3\ndense 100 4.5\nrerank 0.4",
        "dense 100 4.5\nbm25 1.2\nrerank .4\ndense 10 3.0\n",  # the lines of a system may stand apart
        "system depth cost\nbm25 1.2\ndense 10 3\ndense 100 4.5\nrerank 0.4\n",
        "system,cost\nbm25,1.2\ndense,10,3\ndense,100,4.5\nrerank,0.4\n",
        "bm25, 1.2\r\ndense, 10, 3\r\ndense ,100\t4.5\r\nrerank\t0.4\r\n",
        "# milliseconds\n\nbm25 1.2  # a guess\ndense 10 3\n   \n\tdense 100 4.5#\nrerank 0.4\n",
        "\N{BYTE ORDER MARK}bm25 1.2\ndense 10 3\ndense 100 4.5\nrerank 0.4\n",
    ],
)
def test_one_table_in_many_spellings(tmp_path, text):
    assert read(tmp_path, text) == COSTS
    assert read(tmp_path, gzip.compress(text.encode())) == COSTS


def test_the_header_is_only_at_the_top(tmp_path):
    assert read(tmp_path, "# times\nsystem cost\nbm25 1\n") == {"bm25": 1}
    with pytest.raises(tw.InputError, match=r"costs:2: the cost 'cost' is not a number"):
        read(tmp_path, "bm25 1\nsystem cost\n")


def test_a_system_may_have_any_name(tmp_path):
    assert read(tmp_path, "system 3\n") == {"system": 3}
    assert read(tmp_path, "a/bm25 3\n10 20 4\nφ 0\n") == {"a/bm25": 3, "10": {20: 4}, "φ": 0}
    assert read(tmp_path, '{"with blanks, and #": 0}') == {"with blanks, and #": 0}


def test_the_costs_of_the_example():
    costs = read_costs(file("costs.json"))
    assert set(costs) == {"bm25", "overlap", "minilm-1bit", "rerank"}
    assert all(isinstance(cost, float) and cost > 0 for cost in costs.values())


COST = st.floats(0, 1e300)
NAMES = st.text("abc-_./:01", min_size=1).filter(lambda name: name != "system")


@settings(max_examples=100, deadline=None)
@given(costs=st.dictionaries(NAMES, COST | st.dictionaries(st.integers(1, 10**6), COST, min_size=1), min_size=1))
def test_every_number_round_trips(tmp_path_factory, costs):
    lines = [
        f"{system} {words} {cost!r}"
        for system, one in costs.items()
        for words, cost in (one.items() if isinstance(one, dict) else [("", one)])
    ]
    assert read(tmp_path_factory.getbasetemp(), "\n".join(lines)) == costs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "costs: holds no costs. Write a line 'bm25 1.2' for each system, and 'rerank 0.4'."),
        ("# nothing\n\nsystem cost\n", "costs: holds no costs."),
        ("{}", "costs: holds no costs."),
        ("bm25 1\ndense\n", "costs:2: 1 word. Expected a system, perhaps a depth, and a cost."),
        ("bm25 10 1 ms\n", "costs:1: 4 words. Expected"),
        ("bm25 1\n\n# remark\ndense fast\n", "costs:4: the cost 'fast' is not a number."),
        ("bm25 1.5 2\n", "costs:1: '1.5' is not a depth. A depth is a number of documents, 1 or more."),
        ("bm25 0 2\n", "costs:1: '0' is not a depth."),
        ("bm25 all 2\n", "costs:1: 'all' is not a depth."),
        ("bm25 -1\n", "costs:1: the cost -1 is not possible. Costs are finite numbers, 0 or more."),
        ("bm25 nan\n", "costs:1: the cost nan is not possible."),
        ("bm25 10 inf\n", "costs:1: the cost inf is not possible."),
        ("bm25 1\nbm25 1\n", "costs:2: 'bm25' has a cost already. Keep one of the lines."),
        ("bm25 1\nbm25 10 1\n", "costs:2: 'bm25' has a cost already."),
        ("bm25 10 1\nbm25 1\n", "costs:2: 'bm25' has a cost already."),
        ("bm25 10 1\nbm25 20 1\nbm25 010 2\n", "costs:3: 'bm25' has a cost already."),
        ('{"bm25": 1,\n "dense" 2}', "costs:2:10: is not JSON: "),
        ('{"bm25": 1', "costs:1:11: is not JSON: "),
        ('{"bm25": 1} {"dense": 2}', "costs:1:13: is not JSON: "),
        ("[1, 2]", 'costs: is a JSON list. Expected an object: {"bm25": 1.2, "rerank": 0.4}.'),
        ('{"bm25": 1, "bm25": 2}', "costs: 'bm25' occurs twice in one JSON object. Keep one of them."),
        ('{"bm25": {"10": 2, "20": 3, "10": 2}}', "costs: '10' occurs twice in one JSON object."),
        ('{"bm25": "fast"}', "costs: 'bm25': the cost 'fast' is not a number."),
        ('{"bm25": true}', "costs: 'bm25': the cost True is not a number."),
        ('{"bm25": null}', "costs: 'bm25': the cost None is not a number."),
        ('{"bm25": [1]}', "costs: 'bm25': the cost [1.0] is not a number."),
        ('{"bm25": {"10": {"x": 1}}}', "costs: 'bm25': the cost {'x': 1.0} is not a number."),
        ('{"bm25": {"deep": 1}}', "costs: 'bm25': 'deep' is not a depth."),
        ('{"bm25": {"-10": 1}}', "costs: 'bm25': '-10' is not a depth."),
        ('{"bm25": -0.5}', "costs: 'bm25': the cost -0.5 is not possible."),
        ('{"bm25": NaN}', "costs: 'bm25': the cost nan is not possible."),
        ('{"bm25": 1' + "0" * 5000 + "}", "costs: 'bm25': the cost inf is not possible."),
        ('{"bm25": ' * 100_000, "costs: is nested too deep."),
        (b"bm25 \xff\n", "costs: is not UTF-8 text."),
        (b"\x1f\x8b cut short", "costs: the gzip data is corrupt"),
    ],
)
def test_errors_name_the_place_and_the_problem(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tw.InputError) as caught:
        read(Path(), text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(tw.InputError, match="there is no such file"):
        read_costs(tmp_path / "nowhere")
    with pytest.raises(tw.InputError, match="is a folder"):
        read_costs(tmp_path)
