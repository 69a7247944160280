"""The command for tests: in this process, as a process, and on a terminal; always in the module's `folder`."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from tiewise.cli.program import status_of

# How fast a test runs is never what it is about. Property tests try the same examples in every run, so that a change is
# judged by what it changed; TIEWISE_EXPLORE=1 tries others.
settings.register_profile("untimed", deadline=None, derandomize=not os.environ.get("TIEWISE_EXPLORE"))
settings.load_profile("untimed")


@pytest.fixture
def tiewise(folder, monkeypatch, capfdbinary):
    """Runs the command in the folder of the files; `.out`, `.err` and `.code` are what it left."""

    def run(*args: str, code: int = 0, stdin: str = "") -> Result:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        status = status_of(args)
        out, err = capfdbinary.readouterr()
        as_tsv = partial(run, *args, "--format", "tsv", code=code, stdin=stdin)
        return Result(out.decode(), err.decode(), status, as_tsv).checked(code)

    return run


@pytest.fixture
def process(folder):
    """The same as `tiewise`, as the process that a user runs, with streams and settings of one's own."""

    def run(*args: str, code: int = 0, env: dict[str, str] | None = None, **streams: Any) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "tiewise", *args],
            cwd=folder,
            env={**os.environ, **(env or {})},
            timeout=60,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        )
        as_tsv = partial(run, *args, "--format", "tsv", code=code, env=env, **streams)
        found = Result((done.stdout or b"").decode(), (done.stderr or b"").decode(), done.returncode, as_tsv)
        return found.checked(code)

    return run


class Result:
    def __init__(self, out: str, err: str, code: int, as_tsv: Callable[[], Result]):
        self.out, self.err, self.code, self._as_tsv = out, err, code, as_tsv

    def checked(self, code: int) -> Result:
        assert self.code == code, self.err
        assert "Traceback" not in self.err and "Exception" not in self.err
        return self

    @property
    def rows(self) -> list[dict[str, str]]:
        """The rows by column: of a table for people, those that the same command writes as TSV."""
        if "\t" not in self.out.partition("\n")[0]:
            return self._as_tsv().rows
        return list(csv.DictReader(io.StringIO(self.out), delimiter="\t", quoting=csv.QUOTE_NONE))

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def terminal(folder):
    """Runs the command on a terminal of some width; what a person would see, with or without the colours."""
    pty = pytest.importorskip("pty", reason="pseudo-terminals are a matter of POSIX")

    def run(*args: str, columns: int = 100, colour: bool = False, env: dict[str, str] | None = None) -> str:
        main, other = pty.openpty()
        plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        settings = {**plain, "COLUMNS": str(columns), "TERM": "xterm-256color", **(env or {})}
        process = subprocess.Popen([sys.executable, "-m", "tiewise", *args], cwd=folder, stdout=other, env=settings)
        os.close(other)
        seen = b""
        try:
            while part := os.read(main, 65536):
                seen += part
        except OSError:  # Linux reports the end so
            pass
        os.close(main)
        assert process.wait(30) == 0
        text = seen.decode().replace("\r\n", "\n")
        return text if colour else re.sub(r"\x1b\[[0-9;]*m", "", text)

    return run


@pytest.fixture
def on_device(monkeypatch):
    """CPU tensors treated like those of another device."""
    pytest.importorskip("torch")
    from tiewise.scoring.backends import TorchBackend

    original = TorchBackend.__init__

    def start(self, device):
        original(self, device)
        self.on_device = True

    monkeypatch.setattr(TorchBackend, "__init__", start)


@pytest.fixture(scope="session")
def vectors():
    """Vectors of 30 queries and 150 documents, and judgments by row numbers."""
    rng = np.random.default_rng(1)
    docs = rng.normal(size=(150, 24)).astype(np.float32)
    queries = (docs[:30] + rng.normal(scale=0.9, size=(30, 24))).astype(np.float32)
    qrels = {str(i): {str(i): 2, str((i * 7) % 150): 1, str((i * 11 + 3) % 150): 0} for i in range(30)}
    return queries, docs, qrels
