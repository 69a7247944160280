"""Extension of griffe for the site: examples in docstrings become code blocks, as Markdown would take them for text."""

from __future__ import annotations

import re

import griffe

#: Lines from ``>>>`` to the next empty line.
EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


class FenceExamples(griffe.Extension):
    """Puts a fence around each example."""

    def on_object(self, *, obj: griffe.Object, **kwargs: object) -> None:
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(fence, obj.docstring.value)


def fence(found: re.Match[str]) -> str:
    return f"{found[1]}```pycon\n{found[0]}\n{found[1]}```"
