"""The compiled reader, where it is installed: `tiewise._reader`, or nothing.

It is built when the package is installed. Where that failed for want of a compiler, Python does the same work.
"""

from __future__ import annotations

import os
from typing import Any

try:
    from tiewise import _reader
except ImportError:
    _reader = None

__all__ = ["native"]


def native() -> Any | None:
    """The compiled module, or None; ``TIEWISE_READER=python`` in the environment does without it."""
    return None if os.environ.get("TIEWISE_READER") == "python" else _reader
