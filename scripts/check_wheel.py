"""Say which files of the package a built wheel lacks: ``python scripts/check_wheel.py dist/tiewise-*.whl``.

An editable install shows every file of the source folder, so tests cannot see that a template, a style sheet or the
example data was left out of what users install. Here every file under ``src/tiewise`` must be in the wheel, whatever
built it; ``make wheel`` builds one and asks.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "tiewise"


def lacking(wheel: Path, source: Path = SOURCE) -> list[str]:
    """The files of the package that a wheel does not hold, or holds with other bytes."""
    files = [path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    wanted = {f"{source.name}/{path.relative_to(source).as_posix()}": path for path in sorted(files)}
    with zipfile.ZipFile(wheel) as held:
        there = set(held.namelist())
        return [name for name, path in wanted.items() if name not in there or held.read(name) != path.read_bytes()]


def main(arguments: list[str]) -> int:
    if not arguments:
        print("Give the wheel: python scripts/check_wheel.py dist/tiewise-*.whl", file=sys.stderr)
        return 2
    missing = [f"{wheel}: lacks {name}" for wheel in arguments for name in lacking(Path(wheel))]
    print("\n".join(missing) or f"{', '.join(arguments)}: every file of the package is there.")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
