"""A Markdown page as something to run: its console examples, the files it shows, its links and its headings.

A console example is a line that begins with ``$ `` in a fenced block marked ``console``; what follows is its output, in
which ``...`` stands for anything. ``$ cat > FILE <<'END'`` makes a file that the examples of the page use, with the
lines up to ``END``.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

__all__ = ["WIDTH", "Example", "Page", "alike", "on_terminal"]

WIDTH = 80  # of the terminal: what the column of the site has room for
#: What a slow machine shows of its progress, until it is done.
BAR = re.compile(r"[a-z ]+ [━╸╺]+ +\d+/\d+ [-:\d]+ *[\r\n]*")
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


def alike(wanted: str, shown: str) -> bool:
    """Whether two texts agree, blanks and the lengths of rules apart; ``...`` stands for anything."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(*(re.sub("─+", "─", text) for text in (wanted, shown)), flags)


def on_terminal(command: str, folder: Path) -> tuple[str, int, Path]:
    """What a command shows on a terminal, without its colours, its exit status, its last folder."""
    import pty

    ours, theirs = pty.openpty()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "COLUMNS": str(WIDTH), "TERM": "xterm", "PYTHONWARNINGS": "ignore"}
    streams = {"stdin": subprocess.DEVNULL, "stdout": theirs, "stderr": theirs}
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as end:
        process = subprocess.Popen(
            ["bash", "-c", f"trap 'pwd > {end.name}' EXIT\n{command}"], cwd=folder, env=env, **streams
        )
        os.close(theirs)
        shown = b""
        while chunk := read(ours):
            shown += chunk
        os.close(ours)
        status, folder = process.wait(), Path(end.read().strip())
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")
    return BAR.sub("", text), status, folder


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # whoever wrote to it has gone
        return b""
