"""The compiled reader, where it is installed: `tiewise._reader`, or nothing.

It is built when the package is installed. Where that failed for want of a compiler, Python does the same work.
"""

from __future__ import annotations

import os
from typing import Any

from tiewise.errors import TiewiseError

_reader: Any
try:
    from tiewise import _reader  # type: ignore[attr-defined,no-redef]
except ImportError:
    _reader = None

__all__ = ["native"]


def native() -> Any | None:
    """The compiled module, or None; ``TIEWISE_READER`` in the environment demands ``compiled`` or ``python``."""
    wanted = os.environ.get("TIEWISE_READER", "")
    if wanted not in ("", "compiled", "python"):
        raise TiewiseError(f"TIEWISE_READER is {wanted!r}. Say 'compiled' or 'python', or nothing.")
    if wanted == "compiled" and _reader is None:
        raise TiewiseError(
            "TIEWISE_READER demands the compiled reader, which was not built. Install a C++ compiler first."
        )
    return None if wanted == "python" else _reader
