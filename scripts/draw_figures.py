"""Draws the pictures of docs/figures.md by running the code of that page.

    python scripts/draw_figures.py [FOLDER]

After each block of code, the variable `chart` is saved under the name of the picture that follows the block. FOLDER is
where the pictures go, docs/img by default.
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path
from typing import Any

from tiewise import figures

PAGE = Path(__file__).parent.parent / "docs/figures.md"
BLOCK = re.compile(r"```python\n(?P<code>.*?)```|!\[[^]]*\]\(img/(?P<picture>[\w-]+\.svg)\)", re.S)


def draw(folder: Path) -> list[str]:
    """Run the page, save its charts, and return the names of the pictures."""
    names: dict[str, Any] = {}
    drawn = []
    for part in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        if part["code"]:
            for example in doctest.DocTestParser().get_examples(part["code"]):
                exec(example.source, names)  # the code of our own page
        else:
            figures.save(names.pop("chart"), folder / part["picture"])
            drawn.append(part["picture"])
    return drawn


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE.parent / "img"
    print("\n".join(f"written: {target / name}" for name in draw(target)))
