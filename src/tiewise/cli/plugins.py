"""A user's own measures on the command line: ``--plugin mine.py`` imports a file before measure names are read."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from tiewise.errors import InputError
from tiewise.metrics.definition import Measure

#: The plugins that were imported, by the names of their modules.
_loaded: dict[str, str] = {}


def load_plugin(name: str) -> None:
    """Import a Python file, or a module by its dotted name, also from the current folder."""
    path = Path(name)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise InputError(f"The plugin {name}: there is no such file.")
    module = f"tiewise_plugin_{path.stem}" if is_file else name
    _loaded[module] = name
    try:
        if is_file:
            _import_file(path, module)
        else:
            with _current_folder_on_path():
                import_module(name)
    except (Exception, SystemExit) as error:  # a plugin can raise anything
        if isinstance(error, ModuleNotFoundError) and not is_file and f"{name}.".startswith(f"{error.name}."):
            raise InputError(f"The plugin {name}: {error}. Give a file that ends in .py, or a module.") from None
        raise InputError(f"The plugin {name}: {_line_of(error)}{type(error).__name__}: {error}") from None


@contextmanager
def _current_folder_on_path() -> Iterator[None]:
    """Import from the current folder, last and only here: no other file of the folder shall run by its name."""
    added = [] if "" in sys.path else [""]
    sys.path += added
    try:
        yield
    finally:
        for one in added:
            sys.path.remove(one)


def _import_file(path: Path, name: str) -> None:
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)


def _line_of(error: BaseException) -> str:
    """Where in the plugin an error was raised, for a message."""
    ours = ("importlib", __file__)
    places = [
        one for one in traceback.extract_tb(error.__traceback__) if not any(name in one.filename for name in ours)
    ]
    return f"line {places[-1].lineno} of {Path(places[-1].filename).name}: " if places else ""


def explain_plugin_error(error: Exception) -> str | None:
    """The message on an error in a measure of a plugin, with the measure and the line; None for any other error."""
    found, line = None, ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        owner = frame.f_locals.get("self", frame.f_locals.get("measure"))
        if isinstance(owner, Measure) and type(owner).__module__ in _loaded:
            found = owner
        if frame.f_globals.get("__name__") in _loaded:
            line = f" (line {number} of {Path(frame.f_code.co_filename).name})"
    if found is None and not line:
        return None
    what = f"{found} of the plugin {_loaded[type(found).__module__]}" if found is not None else "A plugin"
    return f"{what} fails{line}: {type(error).__name__}: {error}"
