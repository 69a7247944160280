"""Try an installed Tiewise in a few seconds: ``python scripts/smoke_test.py``.

Every built wheel is tried with it, on every system (``[tool.cibuildwheel]`` in pyproject.toml). It needs no test tools.
The compiled modules must load, and the numbers must be right.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import tiewise as tw
from tiewise import _kernels, _reader  # noqa: F401 (the compiled modules must load)
from tiewise.scoring import search


def output(*arguments: str) -> bytes:
    command = [sys.executable, "-m", "tiewise", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def main() -> None:
    found = tw.nDCG.of("(20)10")
    assert (round(found.expected, 4), round(found.minimum, 4), round(found.maximum, 4)) == (0.8100, 0.6697, 0.9502), (
        found
    )

    with tempfile.TemporaryDirectory() as folder:
        qrels, run = Path(folder, "qrels.txt"), Path(folder, "run.trec")
        qrels.write_text("1 0 a 1\n1 0 b 0\n")
        run.write_text("1 Q0 a 1 0.5 x\n1 Q0 b 2 0.5 x\n")
        assert tw.evaluate(qrels, run, ["RR"], complete=True)["RR"].expected == 0.75

    assert search([[1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], 1).to_dict() == {"0": {"1": 1.0}}

    assert b"(compiled reader)" in output("--version")
    assert b"nDCG@10" in output("demo")
    print(f"tiewise {tw.__version__} works on Python {sys.version.split()[0]}, {sys.platform}.")


if __name__ == "__main__":
    main()
