"""The compiled modules, where they are installed: `tiewise._reader` for files and `tiewise._kernels` for scoring.

They are built when the package is installed. Where that failed for want of a compiler, Python does the same work.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Any, Literal

from tiewise.errors import TiewiseError

__all__ = ["native"]

VARIABLES = {"reader": "TIEWISE_READER", "kernels": "TIEWISE_KERNELS"}


@cache
def _module(name: str) -> Any | None:
    try:
        return import_module(f"tiewise._{name}")
    except ImportError:
        return None


def native(name: Literal["reader", "kernels"] = "reader") -> Any | None:
    """A compiled module, or None.

    ``TIEWISE_READER`` and ``TIEWISE_KERNELS`` in the environment demand ``compiled`` or ``python``.
    """
    module, variable = _module(name), VARIABLES[name]
    wanted = os.environ.get(variable, "")
    if wanted not in ("", "compiled", "python"):
        raise TiewiseError(f"{variable} is {wanted!r}. Use 'compiled' or 'python', or leave it unset.")
    if wanted == "compiled" and module is None:
        raise TiewiseError(
            f"{variable} demands the compiled {name}, but it was not built. Install a C++ compiler first."
        )
    return None if wanted == "python" else module
