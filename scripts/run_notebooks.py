"""Run the notebooks of the documentation and save what their cells print; ``--check`` compares and writes nothing.

The cells of a notebook run in one process, in order, in an empty folder. What a cell draws is not saved.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs/notebooks").glob("*.ipynb"))


def run(path: Path) -> dict[str, Any]:
    """The notebook with what its cells print now."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
            for count, cell in enumerate(code, 1):
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile("".join(cell["source"]), f"{path.name}[{count}]", "exec"), names)
                text = printed.getvalue().splitlines(keepends=True)
                outputs = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
                cell.update(execution_count=count, outputs=outputs)
        finally:
            os.chdir(before)
    return notebook


def text_of(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the notebooks and save what they print.")
    parser.add_argument("--check", action="store_true", help="fail if a notebook prints something else; write nothing")
    check, stale = parser.parse_args().check, False
    for path in NOTEBOOKS:
        text = text_of(run(path))
        if text != path.read_text(encoding="utf-8"):
            stale = True
            if not check:
                path.write_text(text, encoding="utf-8")
            print(f"{'out of date' if check else 'written'}: {path.name}")
    sys.exit(stale and check)


if __name__ == "__main__":
    main()
