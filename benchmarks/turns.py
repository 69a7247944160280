"""Contenders take turns, so that a slow moment of the machine is slow for all; the best turn of each counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Found = dict[str, Any]


def best(contenders: Mapping[str, Callable[[], Found | None]], repeat: int, enough: float) -> dict[str, Found]:
    """The turn of each contender with the least CPU time, the least wall time of all, and how many turns it had.

    A contender that failed has no further turn, nor has one whose turns took `enough` seconds already.
    """
    kept: dict[str, Found] = {}
    spent = dict.fromkeys(contenders, 0.0)
    for _ in range(repeat):
        for name, turn in contenders.items():
            if spent[name] >= enough:
                continue
            began = time.perf_counter()
            found = turn()
            spent[name] += time.perf_counter() - began if found else enough
            if found:
                before = kept.get(name, found | {"turns": 0})
                wall = min(before["wall"], found["wall"])
                least = min(before, found, key=lambda turn: turn["cpu"])
                kept[name] = least | {"wall": wall, "turns": before["turns"] + 1}
    return kept


def process(words: Sequence[str], name: str, limit: float) -> Found | None:
    """What a module of Python prints as JSON; None, with the reason on stderr, if it fails or takes too long."""
    started = subprocess.Popen(
        [sys.executable, "-m", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that what it started can be ended with it
    )
    try:
        out, err = started.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        print(f"  {name}: more than {limit:g} s", file=sys.stderr)
        return None
    if started.returncode:
        print(f"  {name}: {(err.strip().splitlines() or ['failed without a word'])[-1]}", file=sys.stderr)
        return None
    found: Found = json.loads(out.splitlines()[-1])
    return found
