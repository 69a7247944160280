"""Hooks of the site. `docs/api.md` names in comments what mkdocstrings shows, so that it can be read elsewhere too."""

from __future__ import annotations

import re


def on_page_markdown(markdown: str, **context: object) -> str:
    """The page with directives of mkdocstrings in place of comments."""
    return re.sub(r"^<!-- (::: [\w.]+) -->$", r"\1", markdown, flags=re.MULTILINE)
