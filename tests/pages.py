"""A Markdown page as something to run: its console examples, the files it shows, its links and its headings.

A console example is a line that begins with ``$ `` in a fenced block marked ``console``; what follows is its output, in
which ``...`` stands for anything. ``$ cat > FILE <<'END'`` makes a file that the examples of the page use, with the
lines up to ``END``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

__all__ = ["Example", "Page"]

FENCE = re.compile(r"^```(\w*).*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
HERE_DOCUMENT = re.compile(r"cat > (\S+) <<'END'\n(.*)END", re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A command and the output that the page shows for it."""

    command: str
    output: str

    @property
    def file(self) -> tuple[str, str] | None:
        """The name and the text of the file that the command makes."""
        found = HERE_DOCUMENT.fullmatch(self.command)
        return (found[1], found[2]) if found else None

    @property
    def runs(self) -> bool:
        """Whether the command is ours to run: installing and building is not."""
        return not self.command.startswith(("pip ", "make ", "git "))


class Page:
    """A Markdown page."""

    def __init__(self, path: Path):
        self.path, self.text = path, path.read_text(encoding="utf-8")

    @cached_property
    def examples(self) -> list[Example]:
        """The console examples, in order."""
        return [example for kind, block in FENCE.findall(self.text) if kind == "console" for example in _parsed(block)]

    @cached_property
    def prose(self) -> str:
        """The page without its fenced blocks."""
        return FENCE.sub("", self.text)

    @cached_property
    def anchors(self) -> set[str]:
        """What a link can name after ``#``, spelled as GitHub spells headings."""
        headings = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}

    @cached_property
    def links(self) -> list[str]:
        """The targets of links and pictures, those of other sites apart."""
        plain = re.sub(r"`[^`]*`", "", self.prose)
        found = re.findall(r"\]\(([^)\s]+)\)", plain) + re.findall(r'(?:src|href)="([^"]+)"', plain)
        return [link for link in found if not re.match(r"[a-z]+:", link)]

    def write_files(self, folder: Path) -> None:
        """Write the files that the page shows."""
        for example in self.examples:
            if example.file:
                name, text = example.file
                (folder / name).write_text(text, encoding="utf-8")


def _parsed(block: str) -> list[Example]:
    found: list[tuple[list[str], list[str]]] = []
    for line in block.splitlines():
        command = found[-1][0] if found else []
        if command and command[0].endswith("<<'END'") and command[-1] != "END":
            command.append(line)
        elif line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and command and command[-1].endswith("\\"):
            command.append(line[2:])
        elif found:
            found[-1][1].append(line)
    return [Example("\n".join(command), "".join(f"{line}\n" for line in output)) for command, output in found]
