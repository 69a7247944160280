"""The compiled modules: `tiewise._reader` for files and `tiewise._kernels` for scoring.

They are built when the package is installed. If there was no compiler, Python does the same work.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Any, Literal

from tiewise.errors import TiewiseError


@cache
def _module(name: str) -> Any | None:
    try:
        return import_module(f"tiewise._{name}")
    except ImportError:
        return None


def native(name: Literal["reader", "kernels"] = "reader") -> Any | None:
    """A compiled module; None if it is not installed.

    The environment variables ``TIEWISE_READER`` and ``TIEWISE_KERNELS`` force ``compiled`` or ``python``.
    """
    module, variable = _module(name), f"TIEWISE_{name.upper()}"
    choice = os.environ.get(variable, "")
    if choice not in ("", "compiled", "python"):
        raise TiewiseError(f"{variable} is {choice!r}. Use 'compiled' or 'python', or leave it unset.")
    if choice == "compiled" and module is None:
        raise TiewiseError(f"{variable} asks for the compiled {name}, which was not built. Install a C++ compiler.")
    return None if choice == "python" else module
