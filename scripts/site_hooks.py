"""Hooks of the site: what GitHub cannot show or would show worse.

`docs/api.md` names in comments what mkdocstrings shows. Python with prompts is a session, whose prompts and outputs the
copy button leaves out (docs/css/site.css).
"""

from __future__ import annotations

import re


def on_page_markdown(markdown: str, **context: object) -> str:
    """The page with a directive of mkdocstrings for each name in a comment, and its Python sessions marked."""
    markdown = markdown.replace("```python\n>>> ", "```pycon\n>>> ")
    return re.sub(r"^<!-- ::: (.+) -->$", lambda found: directives(found[1].split()), markdown, flags=re.MULTILINE)


def directives(names: list[str]) -> str:
    """What mkdocstrings reads for some names."""
    return "\n\n".join(f"::: {name}" for name in names)
