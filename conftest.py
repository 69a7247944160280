"""How the examples in Markdown pages are run: in a folder of their own that holds the files their page shows."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pages import Page
from tiewise.metrics import names as registry

_parse = doctest.DocTestParser.parse


def _parse_fenced(self: doctest.DocTestParser, string: str, name: str = "<string>") -> list[Any]:
    """A code fence ends the output of the example above it, as an empty line does."""
    return _parse(self, re.sub(r"^```.*$", "", string, flags=re.MULTILINE), name)


doctest.DocTestParser.parse = _parse_fenced  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def page_folder(request: pytest.FixtureRequest) -> Iterator[None]:
    """A folder with the page's files, and a registry that forgets the measures that a page defines."""
    if request.path.suffix != ".md":
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        folder = request.getfixturevalue("tmp_path")
        Page(request.path).write_files(folder)
        patch.chdir(folder)
        registry.measures()  # all of ours register now: what a page loads would be forgotten with what it defines
        patch.setattr(registry, "_registry", dict(registry._registry))
        patch.setattr(registry, "_aliases", dict(registry._aliases))
        yield
