"""Hooks of the site. `docs/api.md` names in comments what mkdocstrings shows, so that it can be read elsewhere too."""

from __future__ import annotations

import re


def on_page_markdown(markdown: str, **context: object) -> str:
    """The page with a directive of mkdocstrings for each name in a comment."""
    return re.sub(r"^<!-- ::: (.+) -->$", lambda found: directives(found[1].split()), markdown, flags=re.MULTILINE)


def directives(names: list[str]) -> str:
    """What mkdocstrings reads for some names."""
    return "\n\n".join(f"::: {name}" for name in names)
