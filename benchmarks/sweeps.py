"""The cost against the number of judgments for each query, and against the share of tied rows.

Lists are 100 × 1,000. Tiewise and pytrec_eval start from dictionaries; Tiewise and trec_eval start from files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks.contenders import TREC_EVAL, check_means
from benchmarks.shapes import JUDGED_SWEEP, TIED_SWEEP, files
from benchmarks.turns import Row, best_turns, run_module

SWEEPS = {"judged": JUDGED_SWEEP, "tied": TIED_SWEEP}
#: Kind of input and tool.
TOOLS = (("dicts", "tiewise"), ("dicts", "pytrec_eval"), ("files", "tiewise"), ("files", "trec_eval"))


def sweep_costs(folder: Path, repeat: int, enough: float, limit: float, *, quick: bool) -> Iterator[Row]:
    """A row for each value of each sweep and each tool; `quick` measures one value of each."""
    tools = [tool for tool in TOOLS if tool[1] != "trec_eval" or TREC_EVAL in os.environ]
    for sweep, values in SWEEPS.items():
        for value in values[:1] if quick else values:
            paths = [str(path) for path in files(f"{sweep}-{value}", folder)]
            turns = {
                " ".join(tool): lambda tool=tool, paths=paths: run_module(
                    ["benchmarks.worker", *tool, *paths], tool[1], limit
                )
                for tool in tools
            }
            best = best_turns(turns, repeat, enough)
            for source, tool in tools:
                if row := best.get(f"{source} {tool}"):
                    check_means(tool, row["values"], best["dicts tiewise"]["values"])
                    yield {"sweep": sweep, "value": value, "input": source, "tool": tool} | row
