"""The experiments on low precision: rows from saved tensors, the lines of the tables, and what is said where something
is missing. Nothing here needs a network or the data that the page's numbers come from."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from experiments import low_precision, numberformats, table1
from experiments.low_precision import Experiment
from experiments.low_precision_stages import HandedOn

import tiewise as tw

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/protocol.md"


# -- tables ------------------------------------------------------------------------------------------------------------


def test_a_line_in_the_layout_of_the_paper():
    qrels = {"q": {"a": 1.0, "b": 0.0, "c": 0.0}, "r": {"d": 0.0, "e": 1.0}}
    exact = tw.Run.from_dict({"q": {"a": 0.9, "b": 0.8, "c": 0.1}, "r": {"d": 0.2, "e": 0.7}})
    tied = tw.Run.from_dict({"q": {"a": 0.8, "b": 0.8, "c": 0.1}, "r": {"d": 0.2, "e": 0.7}})
    one = Experiment("m", qrels, {"float32": tw.Row(exact), "bfloat16": tw.Row(tied), "bfloat16 + hps": tw.Row(exact)})
    shown = ["m, RR@10", "100.00", "100.00", "87.50", "25.00", "+12.50", "100.00", "100.00", "0", "0"]
    assert table1.paper_line(one, "RR@10") == shown  # ½ or 1 for q, 1 for r
    without = Experiment("m", qrels, {name: row for name, row in one.rows.items() if name != "float32"})
    assert table1.paper_line(without, "RR@10")[1] == "–"


def test_a_table_goes_between_its_marks_and_nowhere_else():
    page = "a\n<!-- table: x -->\n\nold\n<!-- end table -->\nb\n<!-- table: y -->\n<!-- end table -->\n"
    assert table1.insert_table(page, "x", "new") == page.replace("old\n", "new\n\n")
    assert table1.insert_table(page, "z", "new") == page


# -- from saved tensors ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder as `experiments.low_precision` reads it: a made cross-encoder whose logits tie, and BM25 scores."""
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    folder = tmp_path_factory.mktemp("data")
    (folder / "tensors").mkdir()
    (folder / "askubuntu").mkdir()
    made = torch.Generator().manual_seed(0)
    hidden = torch.randn(120, 16, generator=made)
    weight, bias = torch.full((1, 16), 0.5), torch.tensor([4.0])
    found = {"query": torch.arange(120) // 20, "label": (torch.arange(120) % 20 < 5).int()}
    found["fp32_bs16_logits"] = hidden @ weight.T + bias
    for short, dtype in (("fp16", torch.float16), ("bf16", torch.bfloat16)):
        parts = [part.to(dtype) for part in (hidden, weight, bias)]
        found[f"{short}_hidden"], found[f"head_weight_{short}"], found[f"head_bias_{short}"] = parts
        for size in (16, 128):
            found[f"{short}_bs{size}_logits"] = torch.nn.functional.linear(*parts)
    found["bf16_bs128_logits"][7] += 1
    safetensors.save_file(found, folder / "tensors/cross_encoder_sigmoid_trecqa.safetensors")
    row = {"qid": "7", "cands": ["a", "b"], "labels": [1, 0], "bm25": [20.03, 20.01]}
    for part in ("dev", "test"):
        with gzip.open(folder / f"askubuntu/{part}_bm25.jsonl.gz", "wt") as file:
            file.write(json.dumps(row) + "\n" + json.dumps(row | {"labels": [0, 0]}) + "\n")
    return folder


def cells(table: str) -> dict[str, list[str]]:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {first: rest for first, *rest in lines[2:]}


def test_levels_of_a_saved_model(data, capsys):
    assert table1.main(["--data", str(data), "cross-encoder"]) == 0
    found = cells(capsys.readouterr().out.partition("cross-encoder\n\n")[2].strip())
    levels = ("", " + hps", " + head")
    assert list(found) == ["float32", *(f"{dtype}{level}" for dtype in ("float16", "bfloat16") for level in levels)]
    tied = {name: int(row[0].strip("<%")) for name, row in found.items()}
    assert tied["bfloat16"] > tied["bfloat16 + hps"] > tied["bfloat16 + head"]
    assert tied["float32"] == 0
    assert float(found["bfloat16"][3]) > 0


def test_ids_that_count_up_make_trec_eval_list_the_relevant_last(data):
    random, _ = low_precision.cross_encoder(data, "sigmoid")
    counted, _ = low_precision.cross_encoder(data, "sigmoid", make_id="{:06d}".format)
    found = counted.protocol(rows=["bfloat16"], oblivious="docid-desc").estimate("bfloat16")
    assert found.oblivious == pytest.approx(found.minimum)
    other = random.protocol(rows=["bfloat16"], oblivious="docid-desc").estimate("bfloat16")
    assert other.expected == pytest.approx(found.expected)
    assert other.oblivious > found.minimum


def test_batch_sizes_are_compared(data):
    small, tensors = low_precision.cross_encoder(data, "sigmoid")
    large, _ = low_precision.cross_encoder(data, "sigmoid", 128)
    for short, row, shown in (("fp16", "float16", ["0.0", "0"]), ("bf16", "bfloat16", ["0.8", "1"])):  # 1 of 120
        logits = (tensors[f"{short}_bs{size}_logits"] for size in (16, 128))
        (line,) = table1.batch_lines(small, large, [row], *logits)
        assert line[:3] == [f"{small.name}, {row}", *shown]


def test_scores_that_are_cast(data):
    found = low_precision.askubuntu(data)
    assert len(found.qrels) == 2  # queries without a relevant candidate are left out
    assert {name: found.run(name).tied_rows for name in found.rows} == {"float32": 0, "bfloat16": 4, "float8": 4}
    oblivious = found.protocol("RR", rows=["bfloat16"]).estimate("bfloat16").oblivious
    assert oblivious == 1.0  # the relevant candidate is listed first


def test_static_vectors_are_those_of_the_package():
    """With whatever version is installed, whose constructors differ."""
    pytest.importorskip("sentence_transformers")
    inference = pytest.importorskip("wordllama.inference")
    tokenizers, safetensors = pytest.importorskip("tokenizers"), pytest.importorskip("safetensors.numpy")
    texts = ["who wrote Emma?", "A delta is where a river ends. " * 30, "naïve Σ 🦦"]
    queries = {str(place): text for place, text in enumerate(texts)}
    collection = low_precision.TextCollection("texts", queries, {"d": "Emma"}, tw.Qrels.from_dict({"0": {"d": 1}}))
    folder = Path(inference.__file__).parent
    own = object.__new__(inference.WordLlamaInference)
    own.binary, own.tokenizer = False, tokenizers.Tokenizer.from_file(str(folder / low_precision.STATIC_FILES[0]))
    own.tokenizer.no_truncation()
    own.tokenizer.enable_padding()
    own.embedding = safetensors.load_file(folder / low_precision.STATIC_FILES[1])["embedding.weight"].astype(np.float32)
    found, _ = low_precision.static_vectors(collection)
    np.testing.assert_allclose(found.numpy(), own.embed(texts), rtol=1e-5, atol=1e-6)


# -- a first stage -----------------------------------------------------------------------------------------------------


def test_what_a_first_stage_may_hand_on():
    judged = {"q": {"a": 1.0, "d": 1.0}}
    first = tw.Run.from_dict({"q": {"a": 3.0, "b": 2.0, "c": 2.0, "d": 2.0, "e": 1.0}})
    second = tw.Run.from_dict({"q": {"a": 0.2, "b": 0.9, "c": 0.1, "d": 0.8, "e": 0.7}})
    sets = HandedOn(first, second, judged, 2, "RR@10")
    assert sets.most() == 1.0  # a and d: d, a
    assert sets.least() == 0.5  # a and b: b, a
    assert 0.5 <= sets.mean() <= 1.0


# -- what is missing ---------------------------------------------------------------------------------------------------


def test_missing_data_is_named_and_the_rest_goes_on(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- table: llm -->\n\nkept\n<!-- end table -->\n<!-- table: made-with -->\n<!-- end table -->\n")
    pytest.importorskip("safetensors")
    pytest.importorskip("torch")
    assert table1.main(["--data", str(tmp_path), "--page", str(page), "llm", "made-with"]) == 0
    assert re.search(r"llm: left out: .*llm_yes_no_trecqa\.safetensors", capsys.readouterr().err)
    assert "kept" in page.read_text()
    assert f"tiewise {tw.__version__}" in page.read_text()
    assert table1.main(["--data", str(tmp_path), "llm"]) == 2  # nothing was made


# -- the pages ---------------------------------------------------------------------------------------------------------


def test_the_page_has_a_place_for_every_table_and_figure():
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- table: ([\w-]+) -->", text)) == set(table1.TABLES)
    for name in table1.FIGURES:
        assert f"](img/{name})" in text
    for name in (*table1.FIGURES, "number-lines.svg", "number-lines-sigmoid.svg"):
        assert (ROOT / "docs/img" / name).stat().st_size < 200_000


def test_numbers_of_formats():
    known = numberformats.formats()
    inside = {name: int(((x >= 0) & (x <= 1)).sum()) for name, x in known.items()}
    assert inside == {
        "float16": 15361,
        "bfloat16": 16257,
        "float8 e4m3": 57,
        "float8 e5m2": 61,
        "int8 codes": 256,
        "int4 codes": 16,
        "1-bit codes": 2,
    }


# -- the figures -------------------------------------------------------------------------------------------------------


@pytest.fixture
def number_lines():
    pytest.importorskip("altair")
    from experiments.number_lines import number_lines

    return number_lines


def test_number_lines_draw_each_number_or_a_bar(number_lines):
    chart = number_lines({"few": [0.0, 0.5, 1.0, 2.0], "many": np.linspace(0, 0.01, 50)}, points=[0.3]).to_dict()
    rows = [row for part in chart["datasets"].values() for row in part]
    strokes = [row["low"] for row in rows if set(row) == {"line", "low"} and row["line"] == "few"]
    assert strokes == [0.0, 0.5, 1.0]
    (bar,) = [row for row in rows if "high" in row]
    assert (bar["line"], bar["low"], bar["high"]) == ("many", 0.0, 0.01)
    assert {row["line"]: row["count"] for row in rows if "count" in row} == {"few": "3", "many": "50", "points": "1"}


def test_invalid_number_lines(number_lines):
    with pytest.raises(tw.InputError, match="lower end first"):
        number_lines({"a": [0.0]}, domain=(1, 0))
    with pytest.raises(tw.InputError, match="no format"):
        number_lines({})
