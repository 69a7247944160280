"""Fingerprints of rows, by which shards that hold the same row are noticed.

A fingerprint is a number of 64 bits that depends on the query and the document, and is the same on every machine. A
shard sends those below a limit: all of them if the run is small, else a sample. A row in two shards is in the sample of
both or of none. The compiled reader computes the same numbers (count.h).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tiewise.data.runs import Run

Fingerprints = NDArray[np.uint64]

START, FACTOR, BITS = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, (1 << 64) - 1
MAX_SAMPLE = 1 << 20  # fingerprints of a whole run, which are eight bytes each


def sample_limit(n_rows: int) -> int:
    """The limit below which about `MAX_SAMPLE` fingerprints of a run are, or all of a small one.

    >>> sample_limit(1000) == 2**64 - 1, sample_limit(1 << 30) == 2**54
    (True, True)
    """
    return min((MAX_SAMPLE << 64) // max(n_rows, 1), BITS)


def fingerprint(id: str, value: int = START) -> int:
    """The fingerprint of an id after others, whose fingerprint is `value`.

    >>> fingerprint("d1", fingerprint("q1")) != fingerprint("q1", fingerprint("d1"))
    True
    """
    text = id.encode(errors="surrogatepass")
    for at in range(0, len(text), 8):
        value = (value ^ int.from_bytes(text[at : at + 8], "little")) * FACTOR & BITS
        value ^= value >> 32
    value = (value ^ len(text)) * FACTOR & BITS
    return value ^ value >> 32


def fingerprint_ids(ids: Iterable[str], limit: int, value: int = START) -> Fingerprints:
    """The fingerprints of ids that are below a limit."""
    found = (fingerprint(id, value) for id in ids)
    return np.array([one for one in found if one < limit], np.uint64)


def fingerprint_rows(run: Run, limit: int) -> Fingerprints:
    """The fingerprints of the rows of a run that are below a limit."""
    lists = zip(run.queries, run.offsets[:-1].tolist(), run.offsets[1:].tolist(), strict=True)
    parts = [
        fingerprint_ids(run.ids(np.arange(first, last)), limit, fingerprint(query)) for query, first, last in lists
    ]
    return np.concatenate([np.zeros(0, np.uint64), *parts])
