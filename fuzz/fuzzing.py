"""What the fuzzers share: their options, the search for an input that fails, and making it small."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

__all__ = ["Finding", "Fuzzer", "main", "search", "shrink"]


class Fuzzer(NamedTuple):
    """Inputs, which are bytes of some kind, and what is wrong with one."""

    draw: Callable[[random.Random], tuple[str, bytes]]  # the kind of an input (a suffix of files) and its bytes
    failure: Callable[[bytes, str, Path], str]  # what is wrong with an input; a folder for files. Empty if nothing is


class Finding(NamedTuple):
    """The number of inputs that were tried, and one that fails, with its kind and its failure, if there is one."""

    tried: int
    kind: str = ""
    data: bytes = b""
    failure: str = ""


def search(fuzzer: Fuzzer, seed: int, *, inputs: int | None = None, seconds: float = 0) -> Finding:
    """Try so many inputs, or for so many seconds."""
    rng, end, tried = random.Random(seed), time.monotonic() + seconds, 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        while tried < inputs if inputs is not None else time.monotonic() < end:
            kind, data = fuzzer.draw(rng)
            tried += 1
            if fuzzer.failure(data, kind, folder):
                data = shrink(data, lambda less, kind=kind: bool(fuzzer.failure(less, kind, folder)))
                return Finding(tried, kind, data, fuzzer.failure(data, kind, folder))
    return Finding(tried)


def shrink(data: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """An input that still fails, without all that can be taken away."""
    size = max(len(data) // 2, 1)
    while size:
        for at in range(0, len(data), size):
            less = data[:at] + data[at + size :]
            if less != data and fails(less):
                data = less
                break
        else:
            size //= 2
    return data


def main(fuzzer: Fuzzer, description: str | None, held: str) -> None:
    """Search for so many seconds, and keep what fails; `held` says what all inputs did."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = search(fuzzer, options.seed, seconds=options.seconds)
    if found.failure:
        kept = Path(f"failure-{options.seed}{found.kind}")
        kept.write_bytes(found.data)
        sys.exit(f"{found.tried} inputs. {kept} holds {found.data!r}\n{found.failure}")
    print(f"{found.tried} inputs, and {held}.")
