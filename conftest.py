"""How examples are run: those of a Markdown page in a folder of their own that holds the files their page shows.

An example that needs a large optional library is skipped where that library is not installed.
"""

from __future__ import annotations

import doctest
import os
import re
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from pages import Page
from tiewise.errors import MissingExtraError
from tiewise.metrics import names as registry

# Some virtual machines announce AMX without letting programs use it: torch's bfloat16 layers would end the process.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")

_parse = doctest.DocTestParser.parse


def _parse_fenced(self: doctest.DocTestParser, string: str, name: str = "<string>") -> list[Any]:
    """A code fence ends the output of the example above it, as an empty line does."""
    return _parse(self, re.sub(r"^```.*$", "", string, flags=re.MULTILINE), name)


doctest.DocTestParser.parse = _parse_fenced  # type: ignore[method-assign]


#: Libraries that `make test` does not install.
NOT_INSTALLED_FOR_TESTS = {"torch", "transformers", "sentence_transformers", "torchmetrics", "mteb", "ray"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip an example that fails because one of these libraries cannot be imported."""
    try:
        return (yield)
    except doctest.UnexpectedException as failure:
        error = failure.exc_info[1]
        cause = error.__context__ if isinstance(error, MissingExtraError) else error
        library = (getattr(cause, "name", None) or "").partition(".")[0]
        if isinstance(cause, ImportError) and library in NOT_INSTALLED_FOR_TESTS:
            pytest.skip(f"{library} is not installed")
        raise


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
