"""First stages of the example against a real model as the second stage: the figures of docs/stages.md.

python -m experiments.firststages [--out docs/img]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import tiewise as tw
from tiewise.example import file
from tiewise.figures import save

SYSTEMS = ("bm25", "overlap", "minilm-1bit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/img"), metavar="FOLDER")
    out = parser.parse_args().out
    runs = {name: file(f"{name}.trec.bz2") for name in SYSTEMS}
    costs = json.loads(file("costs.json").read_text(encoding="utf-8"))
    found = tw.stages(
        file("minilm-deep.trec.bz2"), runs, depths=[10, 20, 50], phi=[0.8, 0.9], cost=costs, recall_at=10, complete=True
    )
    print(found)
    save(found.plot.pareto(), out / "pareto.svg")
    save(found.plot.spread(0.8, depth=20), out / "spread.svg")


if __name__ == "__main__":
    main()
