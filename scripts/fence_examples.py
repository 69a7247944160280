"""Extension of griffe for the site.

Examples in docstrings become code blocks, as Markdown would take them for text. Functions that take the options of an
evaluation show each of them.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import griffe

#: Lines from ``>>>`` to the next empty line.
EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


class FenceExamples(griffe.Extension):
    """Puts a fence around each example."""

    def on_object(self, *, obj: griffe.Object, **kwargs: object) -> None:
        if isinstance(obj, griffe.Function) and any("takes_options" in str(one.value) for one in obj.decorators):
            spell_options(obj)
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(fence, obj.docstring.value)


def spell_options(function: griffe.Function) -> None:
    """Replace ``**options`` by the options."""
    found = getattr(import_module(function.module.path), function.name)
    if function.docstring:
        function.docstring.value = inspect.cleandoc(found.__doc__)
    del function.parameters["options"]
    for one in inspect.signature(found).parameters.values():
        if one.name not in function.parameters:
            kind = griffe.ParameterKind.keyword_only
            made = griffe.Parameter(one.name, annotation=str(one.annotation), kind=kind, default=repr(one.default))
            function.parameters.add(made)


def fence(found: re.Match[str]) -> str:
    return f"{found[1]}```pycon\n{found[0]}\n{found[1]}```"
