"""The compiled modules, where they are installed: `tiewise._reader` for files and `tiewise._kernels` for scoring.

They are built when the package is installed. Where that failed for want of a compiler, Python does the same work.
"""

from __future__ import annotations

import os
from typing import Any, Literal

from tiewise.errors import TiewiseError

_reader: Any
_kernels: Any
try:
    from tiewise import _reader
except ImportError:
    _reader = None
try:
    from tiewise import _kernels
except ImportError:
    _kernels = None

__all__ = ["native"]


def native(name: Literal["reader", "kernels"] = "reader") -> Any | None:
    """A compiled module, or None.

    ``TIEWISE_READER`` and ``TIEWISE_KERNELS`` in the environment demand ``compiled`` or ``python``.
    """
    module, variable = (_reader, "TIEWISE_READER") if name == "reader" else (_kernels, "TIEWISE_KERNELS")
    wanted = os.environ.get(variable, "")
    if wanted not in ("", "compiled", "python"):
        raise TiewiseError(f"{variable} is {wanted!r}. Use 'compiled' or 'python', or leave it unset.")
    if wanted == "compiled" and module is None:
        raise TiewiseError(
            f"{variable} demands the compiled {name}, but it was not built. Install a C++ compiler first."
        )
    return None if wanted == "python" else module
