"""The metric of torchmetrics: alone, in Lightning, and in two processes."""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")

import torch
import torchmetrics

import tiewise as tw
from tiewise.adapters import torchmetrics as adapter
from tiewise.adapters.torchmetrics import TieAwareMetric

NAMES = ["nDCG@10", "RR", "Bpref"]


def draw(queries=7, documents=6, seed=0):
    rng = np.random.default_rng(seed)
    scores = torch.tensor(rng.integers(0, 4, (queries, documents)) / 4)
    return scores.bfloat16(), torch.tensor(rng.choice([0, 0, 1, 2], (queries, documents)))


def values(metric):
    return {name: float(value) for name, value in metric.compute().items()}


def expected(scores, labels, statistics=("expected", "range"), **options):
    report = tw.evaluate_scores(scores, labels, NAMES, **options)
    return {f"{name}_{one}": getattr(report[name], one) for name in NAMES for one in statistics}


def test_batches_add_up():
    scores, labels = draw()
    metric = TieAwareMetric(NAMES)
    assert isinstance(metric, torchmetrics.Metric)
    batch = metric(scores[:3], labels[:3])  # forward: the value of the batch
    assert float(batch["RR_expected"]) == pytest.approx(tw.evaluate_scores(scores[:3], labels[:3], "RR")["RR"].expected)
    metric(scores[3:5], labels[3:5])
    metric.update(scores[5:], labels[5:])
    assert values(metric) == pytest.approx(expected(scores, labels))
    assert metric.report["RR"].range == pytest.approx(values(metric)["RR_range"])
    metric.reset()
    metric.update(scores[:1], labels[:1])
    assert values(metric) == pytest.approx(expected(scores[:1], labels[:1]))


def test_all_forms_agree():
    scores, labels = draw()
    query = torch.arange(7)
    flat = scores.reshape(-1), labels.reshape(-1), query.repeat_interleave(6)
    for updates in (
        [(scores[i::2], labels[i::2], query[i::2]) for i in range(2)],
        [tuple(column[i::5] for column in flat) for i in range(5)],
        [(*(column[i::5] for column in flat), torch.arange(42)[i::5]) for i in range(5)],
    ):
        metric = TieAwareMetric(NAMES, oblivious=None)
        for update in updates:
            metric.update(*update)
        assert values(metric) == pytest.approx(expected(scores, labels))
    masked = TieAwareMetric(NAMES)
    masked.update(scores, labels, query, mask=scores < 0.7)
    assert values(masked) == pytest.approx(expected(scores, labels, mask=scores < 0.7))


def test_what_was_given_twice_counts_once():
    scores, labels = draw()
    query = torch.arange(7) + 10
    metric = TieAwareMetric(NAMES)
    metric.update(scores, labels, query)
    metric.update(scores[:2] + 0.001, labels[:2], query[:2])  # other last bits: the first ones count
    assert values(metric) == pytest.approx(expected(scores, labels))
    flat = TieAwareMetric(NAMES)
    documents = torch.arange(42)
    rows = scores.reshape(-1), labels.reshape(-1), query.repeat_interleave(6), documents
    flat.update(*rows)
    flat.update(*(column[5:9] for column in rows))
    assert values(flat) == pytest.approx(expected(scores, labels))
    metric.update(scores[:1], 1 + labels[:1], query[:1])
    with pytest.raises(tw.InputError, match="Document 0 of query 10 was given twice with different values"):
        metric.compute()


def test_statistics_copies_and_pickles():
    scores, labels = draw()
    chosen = ("expected", "minimum", "maximum", "range", "std", "oblivious", "bias")
    metric = TieAwareMetric(NAMES, statistics=chosen)
    metric.update(scores, labels)
    assert values(metric) == pytest.approx(expected(scores, labels, chosen))
    assert values(pickle.loads(pickle.dumps(metric))) == values(metric.clone()) == values(metric)
    none = TieAwareMetric("RR", statistics="bias", oblivious=None)
    none.update(scores, labels)
    assert np.isnan(values(none)["RR_bias"])
    both = torchmetrics.MetricCollection({"a": TieAwareMetric("RR"), "b": TieAwareMetric("AP")})
    both.update(scores, labels)
    assert {"RR_expected", "AP_range"} <= {name.removeprefix("a_").removeprefix("b_") for name in both.compute()}


def test_without_ties_it_equals_torchmetrics():
    generator = torch.Generator().manual_seed(0)
    scores, labels = torch.rand(60, generator=generator), (torch.rand(60, generator=generator) < 0.4).long()
    query = torch.arange(60) % 6
    metric, peer = TieAwareMetric("AP", statistics="expected"), torchmetrics.retrieval.RetrievalMAP()
    both = torchmetrics.MetricCollection({"ours": metric, "theirs": peer})
    for part in (slice(0, 25), slice(25, 60)):
        both.update(preds=scores[part], target=labels[part], indexes=query[part])
    found = both.compute()
    assert float(found["AP_expected"]) == pytest.approx(float(found["theirs"]), abs=1e-6)


def test_errors():
    scores, labels = draw()
    metric = TieAwareMetric(NAMES)
    for arguments, message in (
        ((scores.tolist(), labels.tolist()), "A metric takes tensors"),
        ((scores.reshape(-1), labels.reshape(-1)), "Give indexes= too"),
        ((scores, labels, None, torch.arange(6)), "documents= is for queries that have numbers"),
        ((scores, labels[:2]), "and the labels of shape"),
        ((scores, labels, torch.arange(6)), r"Give indexes of shape \(7,\)"),
        ((scores, labels, torch.arange(7.0)), "The indexes are float32, not whole numbers"),
        ((scores, labels.to("meta")), "and the labels on meta"),
    ):
        with pytest.raises(tw.InputError, match=message):
            metric.update(*arguments)
    with warnings.catch_warnings(), pytest.raises(tw.InputError, match="The metric has no rows"):
        warnings.simplefilter("ignore")  # of torchmetrics, about the same
        metric.compute()
    metric.update(scores, labels)
    metric.update(scores, labels, torch.arange(7))
    with pytest.raises(tw.InputError, match="Give indexes= and documents= always or never"):
        metric.compute()
    with pytest.raises(tw.InputError, match="Unknown statistics: 'mean'"):
        TieAwareMetric("RR", statistics="mean")
    with pytest.raises(tw.MeasureError, match="Unknown measure 'NDGC'"):
        TieAwareMetric("NDGC")
    with pytest.raises(TypeError, match="missing"):
        TieAwareMetric("RR", missing="skip")


# -- two processes -------------------------------------------------------------------------------------------------

WORKER = """
import sys, warnings
import numpy as np, torch, torch.distributed as dist
from torch.utils.data import DistributedSampler
from tiewise.adapters.torchmetrics import TieAwareMetric

rank, port, form = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
rng = np.random.default_rng(0)
scores = torch.tensor(rng.integers(0, 4, (7, 6)) / 4).bfloat16()
labels = torch.tensor(rng.choice([0, 0, 1, 2], (7, 6)))
metric = TieAwareMetric(["nDCG@10", "RR", "Bpref"])
query = torch.arange(7)
flat = scores.reshape(-1), labels.reshape(-1), query.repeat_interleave(6), torch.arange(42)
if form == "matrix":  # 7 queries for 2 processes: one is repeated
    own = list(DistributedSampler(query, num_replicas=2, rank=rank, shuffle=False))
    assert len(own) == 4
    for i in own:
        metric.update(scores[i : i + 1], labels[i : i + 1], query[i : i + 1])
elif form == "lists":  # likewise, with the rows of a query
    for i in DistributedSampler(query, num_replicas=2, rank=rank, shuffle=False):
        metric.update(*(column[6 * i : 6 * i + 6] for column in flat[:3]))
elif form == "rows":  # documents of a query in both processes, some twice
    own = torch.arange(rank, 42, 2)
    metric.update(*(column[own] for column in flat))
    metric.update(*(column[:3] for column in flat))
elif form == "one":  # a process without rows
    if rank == 1:
        metric.update(scores, labels, query)
elif form == "unknown":
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metric.update(scores[rank::2], labels[rank::2])
        metric.compute()
    assert any("count twice" in str(one.message) for one in caught)
print({name: float(value) for name, value in metric.compute().items()})
dist.destroy_process_group()
"""


@pytest.mark.parametrize("form", ["matrix", "lists", "rows", "one", "unknown"])
def test_two_processes(form, tmp_path):
    if not torch.distributed.is_available():
        pytest.skip("torch was built without distributed")
    (tmp_path / "worker.py").write_text(textwrap.dedent(WORKER))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(tmp_path / "worker.py")]
    started = [
        subprocess.Popen(
            [*command, str(rank), str(port), form], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    printed = [process.communicate(timeout=240) for process in started]
    assert [process.returncode for process in started] == [0, 0], printed
    scores, labels = draw()
    for out, _ in printed:
        assert eval(out.splitlines()[-1]) == pytest.approx(expected(scores, labels))


def test_lightning_logs_it(tmp_path):
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")
    scores, labels = draw()

    class Ranker(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.metric = TieAwareMetric(NAMES)

        def validation_step(self, batch, index):
            self.metric.update(*batch)

        def on_validation_epoch_end(self):
            self.log_dict(self.metric.compute())
            self.metric.reset()

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(scores, labels, torch.arange(7)), batch_size=3)
    options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    trainer = lightning.Trainer(default_root_dir=tmp_path, enable_model_summary=False, **options)
    (found,) = trainer.validate(Ranker(), loader, verbose=False)
    assert found == pytest.approx(expected(scores, labels))


def test_import_is_lazy_and_a_missing_package_is_named():
    code = """
        import sys
        import tiewise.adapters.torchmetrics as adapter
        assert "torchmetrics" not in sys.modules and "torch" not in sys.modules
        sys.modules["torchmetrics"] = None
        try:
            adapter.TieAwareMetric
        except ImportError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert "pip install 'tiewise[torchmetrics]'" in done.stdout
    with pytest.raises(AttributeError):
        getattr(adapter, "Other")  # noqa: B009
