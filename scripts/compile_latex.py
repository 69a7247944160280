"""Compiles the LaTeX tables of the example in a two-column document, where a LaTeX is installed.

    python scripts/compile_latex.py [FOLDER]

The tables of a comparison, reports, an audit and a protocol must compile without an error and fit into a column, or
into both if they are wide. FOLDER keeps the document (tables.tex, tables.pdf); without it, nothing is kept.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tiewise as tw
from tiewise.example import file

MEASURES = ["nDCG@10", "AP", "RR@10"]
RUNS = {
    "minilm-fp32": "minilm-fp32.trec.gz",
    "minilm-bf16": "minilm-bf16.trec.gz",
    "bm25": "bm25.trec.bz2",
    "overlap_100%": "overlap.trec.bz2",
}


def example_tables() -> list[str]:
    """LaTeX of a comparison, with and without marks and intervals, of reports, of an audit and of protocols."""
    runs = {name: file(path) for name, path in RUNS.items()}
    compared = tw.compare(file("qrels.txt"), runs, MEASURES, complete=True)
    report = tw.evaluate(file("qrels.txt"), runs["minilm-bf16"], MEASURES, complete=True)
    audit = tw.audit(runs["minilm-bf16"], qrels=file("qrels.txt"), measures=MEASURES, complete=True)
    rows = {name: runs[path] for name, path in (("float32", "minilm-fp32"), ("bfloat16", "minilm-bf16"))}
    rows |= {f"bfloat16 + {level}": file("minilm-hps.trec.gz") for level in ("hps", "logit", "head")}
    protocol, many = tw.protocol(file("qrels.txt"), rows, complete=True), rows | {"bm25": runs["bm25"]}
    return [
        protocol.to_latex(),
        protocol.in_fractions().to_latex(),
        tw.Protocol.latex_of({"all-MiniLM-L6-v2": protocol, "the same_100%": protocol}),
        tw.Protocol.latex_of({"all-MiniLM-L6-v2": tw.protocol(file("qrels.txt"), many, complete=True)}),
        tw.protocol(None, rows, complete=True).to_latex(),
        compared.to_latex(),
        compared.to_latex(baselines=["bm25", "overlap_100%"]),
        compared.to_latex(baselines="overlap_100%", intervals="ties"),
        compared.to_latex(intervals="queries"),
        report.to_latex(),
        audit.to_latex(),
    ]


def compile_tables(folder: Path, compiler: str) -> list[str]:
    """The errors of the compiler, warnings of siunitx, and boxes that do not fit into their column."""
    document = [
        r"\documentclass[twocolumn]{article}",
        r"\usepackage{booktabs,siunitx}",
        r"\begin{document}",
        *example_tables(),
        r"\end{document}",
    ]
    (folder / "tables.tex").write_text("\n".join(document), encoding="utf-8")
    command = [compiler, "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    output = done.stdout.decode("utf-8", "replace")
    problems = re.findall(r"^(?:!|Overfull \\hbox|Package siunitx Warning).*$", output, re.M)
    return problems or ([output[-2000:]] if done.returncode else [])


def main(folder: Path | None = None) -> int:
    """Compile, print what happened, and return the exit code."""
    compiler = next(filter(None, map(shutil.which, ("pdflatex", "lualatex"))), None)
    if compiler is None:
        print("LaTeX tables: not compiled, because neither pdflatex nor lualatex is installed.")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        problems = compile_tables(folder or Path(temporary), compiler)
    print("\n".join(problems) or f"LaTeX tables: compiled with {Path(compiler).name}; all fit.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
