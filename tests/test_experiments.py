"""The experiment on low precision: its tables on made cases, from saved hidden states and from tiny models, and what
it says where something is missing. Nothing here needs a network or the data that the page's numbers come from."""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from experiments import encoders, numberformats, scored, table1
from experiments.scored import Missing, Scored

import tiewise as tw

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/protocol.md"

JUDGED = {"q": {"a": 1.0, "b": 0.0, "c": 0.0}, "r": {"d": 0.0, "e": 1.0}}
EXACT = tw.Run.from_dict({"q": {"a": 0.9, "b": 0.8, "c": 0.1}, "r": {"d": 0.2, "e": 0.7}})
TIED = tw.Run.from_dict({"q": {"a": 0.8, "b": 0.8, "c": 0.1}, "r": {"d": 0.2, "e": 0.7}})


# -- rows and tables ---------------------------------------------------------------------------------------------------


def test_the_row_of_a_tied_run():
    found = scored.row(JUDGED, TIED, EXACT, "RR@10")
    assert (found.expected, found.minimum, found.maximum) == (87.5, 75.0, 100.0)  # ½ or 1 for q, 1 for r
    assert found.range == 25.0
    assert found.std == pytest.approx(12.5)
    assert (found.id_desc, found.given, found.id_asc) == (75.0, 100.0, 100.0)  # trec_eval lists b before a
    assert found.tied == pytest.approx(40.0)  # 2 of 5 rows
    assert found.tied_by_query == pytest.approx(100 * (2 / 3 + 0) / 2)
    assert found.gap == pytest.approx(-12.5)
    assert found.inverted == 0.0
    assert found.rbo < 1


def test_an_inverted_pair_is_counted_though_nothing_is_tied():
    wrong = tw.Run.from_dict({"q": {"a": 0.8, "b": 0.9, "c": 0.1}, "r": {"d": 0.2, "e": 0.7}})
    found = scored.row(JUDGED, wrong, EXACT, "RR@10")
    assert (found.range, found.tied, found.gap) == (0.0, 0.0, -25.0)
    assert found.inverted == pytest.approx(100 / 4)  # 3 pairs for q, 1 for r


def test_the_ablation_shows_what_is_reported():
    one = Scored(
        "m", "d", JUDGED, {("float32", "native"): EXACT, ("bfloat16", "native"): TIED, ("bfloat16", "score"): EXACT}
    )
    line = scored.ablation([one], "RR@10").splitlines()[-1]
    assert line == (
        "| m, d | 100.00 | 100.00 (0) | 75.00 (−25.00) | 100.00 (0) | 100.00 (0) "
        "| 87.50 [75.00, 100.00] (−12.50) | 100.00 (0) | – |"
    )


def test_the_order_of_the_data_is_not_the_best_order():
    """A collection lists relevant documents anywhere, so "neither" is what its own order gives, not the maximum."""
    found = scored.row({"q": {"b": 1.0}}, tw.Run.from_columns(["q"] * 3, ["a", "b", "c"], [1, 1, 1]), None, "RR@10")
    assert (found.given, found.maximum, found.id_desc, found.id_asc) == (50.0, 100.0, 50.0, 50.0)


def test_a_table_goes_between_its_marks_and_nowhere_else():
    page = "a\n<!-- table: x -->\n\nold\n<!-- end table -->\nb\n<!-- table: y -->\n<!-- end table -->\n"
    assert table1.placed(page, "x", "new") == page.replace("old\n", "new\n\n")
    assert table1.placed(page, "z", "new") == page


# -- the static model -------------------------------------------------------------------------------------------------


@pytest.fixture
def static_package(tmp_path, monkeypatch):
    """A package with the files of wordllama and none of its code, of which two versions disagree."""
    tokenizers = pytest.importorskip("tokenizers")
    safetensors = pytest.importorskip("safetensors.numpy")
    words, weights = (tmp_path / name for name in encoders.FILES)
    words.parent.mkdir()
    weights.parent.mkdir()
    vocabulary = {"[UNK]": 0, "river": 1, "delta": 2, "<s>": 3}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 3)])
    tokenizer.enable_truncation(2)
    tokenizer.save(str(words))
    table = np.array([[0, 0], [1, 2], [3, 6], [50, 50]], dtype=np.float16)
    safetensors.save_file({"embedding.weight": table}, weights)
    package = type(encoders)("wordllama")
    package.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setitem(sys.modules, "wordllama", package)
    return package


def test_a_static_vector_is_the_mean_over_the_tokens(static_package):
    torch = pytest.importorskip("torch")
    found = encoders.Static().vectors(["river", "river river river delta", "", "delta stone"], "float32")
    assert found.tolist() == [[1.0, 2.0], [1.5, 3.0], [0.0, 0.0], [1.5, 3.0]]
    assert encoders.Static().vectors(["delta"], "bfloat16").dtype == torch.bfloat16


def test_a_static_model_without_its_files(static_package):
    (Path(static_package.__file__).parent / encoders.FILES[1]).unlink()
    with pytest.raises(Missing, match="wordllama is installed without"):
        encoders.Static()


def test_static_vectors_are_those_of_the_package():
    """Bit for bit, with whatever version is installed."""
    pytest.importorskip("torch")
    inference = pytest.importorskip("wordllama.inference")
    model = encoders.Static()
    texts = ["who wrote Emma?", "", "A delta is where a river ends. " * 30, "naïve Σ 🦦"]
    own = object.__new__(inference.WordLlamaInference)  # its constructor differs between versions
    own.binary, own.embedding, own.tokenizer = False, model.table, model.tokenizer
    model.tokenizer.enable_padding()
    wanted = own.embed(texts)
    model.tokenizer.no_padding()
    assert np.array_equal(model.vectors(texts, "float32").numpy(), wanted)


# -- from saved hidden states ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder as `experiments.saved` reads it: a made cross-encoder whose logits tie, and BM25 scores."""
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
    assert table1.main(["--data", str(data), "cross-encoder-one-logit"]) == 0
    out = capsys.readouterr().out
    found = cells(out.partition("one-logit\n\n")[2])
    assert list(found) == [
        "fp32 · native",
        *(f"{t} · {level}" for t in ("fp16", "bf16") for level in ("native", "score", "logit", "head")),
    ]
    tied = {name: float(row[5].split()[0]) for name, row in found.items()}
    assert tied["bf16 · native"] > tied["bf16 · score"] >= tied["bf16 · logit"] > tied["bf16 · head"]
    assert tied["fp32 · native"] == 0
    assert found["fp32 · native"][6:] == ["0", "0.00", "1.000"]
    assert float(found["bf16 · native"][1]) > 0


def test_batch_sizes_are_compared(data):
    from experiments import saved

    half, brain = saved.batch_sizes(data, "sigmoid")
    table = cells(scored.batch_table([half, brain], "nDCG@10"))
    assert [row[:2] for name, row in table.items() if "fp16" in name] == [["0.0", "0"]] * 2
    assert [row[:2] for name, row in table.items() if "bf16" in name] == [["0.8", "1"]] * 2  # 1 of 120


def test_scores_that_are_cast(data):
    from experiments import saved

    found = saved.askubuntu_bm25(data)
    assert len(found.judged) == 2  # queries without a relevant candidate are left out
    assert {kind: run.tied_rows for (kind, _), run in found.runs.items()} == {
        "float32": 0,
        "float16": 0,
        "bfloat16": 4,
        "float8 e4m3": 4,
        "float8 e5m2": 4,
    }


def test_what_a_first_stage_may_hand_on():
    from experiments.quantised import Handed

    judged = {"q": {"a": 1.0, "d": 1.0}}
    first = tw.Run.from_dict({"q": {"a": 3.0, "b": 2.0, "c": 2.0, "d": 2.0, "e": 1.0}})
    second = tw.Run.from_dict({"q": {"a": 0.2, "b": 0.9, "c": 0.1, "d": 0.8, "e": 0.7}})
    sets = Handed(first, second, judged, 2)
    assert sets.most("RR@10") == 100.0  # a and d: d, a
    assert sets.least("RR@10") == 50.0  # a and b: b, a
    assert 50.0 <= sets.mean("RR@10") <= 100.0


# -- models of one's own -----------------------------------------------------------------------------------------------


@pytest.fixture
def pairs(tmp_path):
    tiny = pytest.importorskip("tiny")
    path = tmp_path / "pairs.jsonl"
    rows = [
        {
            "query": tiny.sentence(f"q{i}", 3),
            "positive": [tiny.sentence(f"p{i}", 5)],
            "negative": [tiny.sentence(f"n{i}{j}", 4 + j % 3) for j in range(6)],
        }
        for i in range(3)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize("kind", ["classifier", "yes-no"])
def test_a_model_of_a_folder_on_pairs_of_a_file(kind, pairs, tmp_path, capsys):
    tiny = pytest.importorskip("tiny")
    folder = tmp_path / "model"
    tokenizer = tiny.bert_tokenizer(tmp_path) if kind == "classifier" else tiny.byte_tokenizer()
    model = tiny.bert(tokenizer) if kind == "classifier" else tiny.qwen(tokenizer)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    options = ["--model", str(folder), "--kind", kind, "--dataset", str(pairs), "--device", "cpu", "--measure", "RR@10"]
    assert table1.main(options) == 0
    out = capsys.readouterr().out
    assert "## model, pairs: RR@10, 3 queries" in out
    assert len(cells(out.partition("queries\n\n")[2].strip())) == 9
    assert table1.main([*options, "--queries", "2"]) == 0
    assert "2 queries" in capsys.readouterr().out


def test_an_embedding_model_of_a_folder(pairs, tmp_path, capsys):
    library = pytest.importorskip("sentence_transformers")
    tiny = pytest.importorskip("tiny")
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    tokenizer = tiny.bert_tokenizer(tmp_path)
    tokenizer.save_pretrained(tmp_path / "bert")
    tiny.bert(tokenizer, kind="BertModel").save_pretrained(tmp_path / "bert")
    words = Transformer(str(tmp_path / "bert"))
    model = library.SentenceTransformer(modules=[words, Pooling(32)], device="cpu")
    model.save(str(tmp_path / "model"))
    options = ["--model", str(tmp_path / "model"), "--kind", "embedding", "--dataset", str(pairs), "--device", "cpu"]
    assert table1.main(options) == 0
    found = cells(capsys.readouterr().out.split("queries\n\n")[1].strip().split("\n\n")[0])
    assert list(found) == ["fp32 · native", "fp16 · native", "fp16 · score", "bf16 · native", "bf16 · score"]


# -- what is missing ---------------------------------------------------------------------------------------------------


def test_missing_data_is_named_and_the_rest_goes_on(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- table: llm -->\n\nkept\n<!-- end table -->\n<!-- table: made-with -->\n<!-- end table -->\n")
    pytest.importorskip("safetensors")
    pytest.importorskip("torch")
    assert table1.main(["--data", str(tmp_path), "--page", str(page), "llm", "made-with"]) == 0
    said = capsys.readouterr().err
    assert re.search(
        r"llm: left out: .*llm_yes_no_trecqa\.safetensors is not there: give the folder .* with --data", said
    )
    assert "kept" in page.read_text()
    assert f"tiewise {tw.__version__}" in page.read_text()


def test_without_a_folder_nothing_is_made(capsys):
    assert table1.main(["llm", "quantised"]) == 2
    assert capsys.readouterr().err.count("give their folder with --data") == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "mine", "--dataset", "x"], "mine is none of the paper's models .* Say what it is with --kind"),
        (["--model", "bge-reranker-v2-m3"], "give both --model and --dataset"),
        (["--model", "Qwen/Qwen3-Reranker-0.6B", "--dataset", "no.jsonl"], "no.jsonl is neither one of"),
        (
            ["--model", "bge-reranker-v2-m3", "--dataset", "no.jsonl"],
            "no.jsonl is neither one of the paper's data sets",
        ),
    ],
)
def test_what_is_wrong_with_a_model_or_data_set(options, said, capsys):
    assert table1.main(options) == 2
    assert re.search(said, capsys.readouterr().err)


def test_a_hub_that_cannot_be_reached_is_said(pairs, tmp_path, capsys, monkeypatch):
    pytest.importorskip("transformers")
    options = ["--model", str(tmp_path / "nowhere"), "--kind", "classifier", "--dataset", str(pairs)]
    assert table1.main(options) == 2  # neither a folder nor a name that a repository can have
    said = capsys.readouterr().err
    assert "nowhere could not be loaded from huggingface.co: is there a network" in said


def test_a_missing_package_says_how_to_install_it():
    from experiments.saved import needed

    with pytest.raises(Missing, match="the package no-such-thing is not installed: pip install no-such-thing"):
        needed("no_such_thing", "no-such-thing")


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
