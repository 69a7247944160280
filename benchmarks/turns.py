"""Contenders take turns, so a slow moment of the machine is slow for all of them. The best turn of each counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = dict[str, Any]  # one measurement


def best_turns(contenders: Mapping[str, Callable[[], Row | None]], repeat: int, enough: float) -> dict[str, Row]:
    """For each contender: the turn with the least CPU time, the least wall time of all turns, and their number.

    A contender that failed has no further turn, and neither has one whose turns have taken `enough` seconds.
    """
    best: dict[str, Row] = {}
    spent = dict.fromkeys(contenders, 0.0)
    for _ in range(repeat):
        for name, turn in contenders.items():
            if spent[name] >= enough:
                continue
            start = time.perf_counter()
            row = turn()
            spent[name] += time.perf_counter() - start if row else enough
            if row:
                before = best.get(name, row | {"turns": 0})
                wall = min(before["wall"], row["wall"])
                least = min(before, row, key=lambda turn: turn["cpu"])
                best[name] = least | {"wall": wall, "turns": before["turns"] + 1}
    return best


def run_module(words: Sequence[str], name: str, limit: float) -> Row | None:
    """The JSON that a Python module prints; None, with the reason on stderr, if it fails or takes too long."""
    started = subprocess.Popen(
        [sys.executable, "-m", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that its child processes end with it
    )
    try:
        out, err = started.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        print(f"  {name}: more than {limit:g} s", file=sys.stderr)
        return None
    if started.returncode:
        print(f"  {name}: {(err.strip().splitlines() or ['failed without a message'])[-1]}", file=sys.stderr)
        return None
    row: Row = json.loads(out.splitlines()[-1])
    return row
