"""The pictures of docs/figures.md, drawn from the example data.

python -m experiments.figures [--out docs/img]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tiewise as tw
from experiments.drawing import draw
from tiewise import figures
from tiewise.example import file

#: The model in three precisions, and two rankings with coarser scores.
FILES = {
    "bfloat16": "minilm-bf16.trec.gz",
    "bfloat16, product in float32": "minilm-hps.trec.gz",
    "float32": "minilm-fp32.trec.gz",
    "1 bit": "minilm-1bit.trec.bz2",
    "word overlap": "overlap.trec.bz2",
}


def pictures() -> dict[str, Any]:
    """The figures by the names of their files."""
    qrels = tw.read_qrels(file("qrels.txt"))
    reports = {name: tw.evaluate(qrels, file(path), "nDCG@10", complete=True) for name, path in FILES.items()}
    drawn = {name: reports[name] for name in ("bfloat16", "float32", "1 bit")}
    rows = figures.forest_rows(reports, "nDCG@10", tools=["trec_eval", "pytrec_eval", "mteb", "sentence-transformers"])
    return {
        "curve.svg": figures.curve(drawn, "nDCG", range(1, 31)),
        "forest.svg": figures.forest(rows, measure="nDCG@10"),
        "differences.svg": reports["bfloat16"].plot.differences(reports["float32"], names=("bfloat16", "float32")),
        "group-sizes.svg": figures.group_sizes(tw.audit(file(FILES["1 bit"])), title="Tie groups of 1-bit vectors"),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the figures."""
    draw("experiments.figures", __doc__, pictures, arguments)


if __name__ == "__main__":
    main()
