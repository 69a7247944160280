"""A user's own measures on the command line: ``--plugin mine.py`` imports a file before measure names are read."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from tiewise.errors import InputError

__all__ = ["load"]


def load(name: str) -> ModuleType:
    """Import a Python file, or a module by its dotted name (the current folder is searched too)."""
    path = Path(name)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise InputError(f"The plugin {name}: there is no such file.")
    try:
        return _from_file(path) if is_file else _from_name(name)
    except (Exception, SystemExit) as error:  # a plugin can raise anything; the user wants to know where
        if isinstance(error, ModuleNotFoundError) and not is_file and f"{name}.".startswith(f"{error.name}."):
            raise InputError(f"The plugin {name}: {error}. Give a file that ends in .py, or a module.") from None
        raise InputError(f"The plugin {name}: {_place(error)}{type(error).__name__}: {error}") from None


def _from_file(path: Path) -> ModuleType:
    name = f"tiewise_plugin_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _from_name(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")
    return import_module(name)


def _place(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    return f"line {frames[-1].lineno} of {Path(frames[-1].filename).name}: " if len(frames) > 2 else ""
