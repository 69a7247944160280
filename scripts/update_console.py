"""Replaces the outputs of console examples in the documentation that are not what their commands print now."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from pages import Page, alike, on_terminal  # noqa: E402


def update(path: Path) -> int:
    """Follow a page from its first line, in an empty folder; the number of outputs that changed."""
    page, changed = Page(path), 0
    text = page.text
    with tempfile.TemporaryDirectory() as empty:
        folder = Path(empty)
        for example in page.examples:
            if not example.runs or example.command == "echo $?":
                continue
            shown, _, folder = on_terminal(example.command, folder)
            if not alike(example.output, shown):
                command = "$ " + example.command.replace("\n", "\n> ") + "\n"
                assert command + example.output in text, f"{path}: {example.command}"
                text = text.replace(command + example.output, command + shown, 1)
                changed += 1
    path.write_text(text, encoding="utf-8")
    return changed


if __name__ == "__main__":
    paths = [Path(name) for name in sys.argv[1:]] or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for path in paths:
        if number := update(path):
            print(f"{path}: {number} outputs changed")
