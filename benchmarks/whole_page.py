"""docs/speed.md: one page about speed, from the results of all benchmarks: calls and files, growth, scoring."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks import growth_page, scoring_page, speed_page

ROOT = Path(__file__).parent.parent
RESULTS, PAGE = ROOT / "benchmarks/results", ROOT / "docs/speed.md"
#: The results of `benchmarks.scoring`, in the order of the page.
SCORING = ("scoring-h200", "scoring-collection", "scoring-cpu")


def whole_page(speed: dict[str, Any] | None = None) -> str:
    """The page of the results that are kept, or of other results of `python -m benchmarks`."""
    speed = speed or _kept("speed")
    parts = [growth_page.page(_kept("growth")), scoring_page.page([_kept(name) for name in SCORING])]
    aims = speed_page.aim_section(all_aims(speed))
    return "\n".join([speed_page.page(speed), *map(_as_section, parts), aims])


def all_aims(speed: dict[str, Any]) -> list[speed_page.Aim]:
    """The aims of `python -m benchmarks` and of scoring."""
    return [*speed_page.aims(speed), *scoring_page.aims([_kept(name) for name in SCORING])]


def _kept(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _as_section(page: str) -> str:
    """A page as a section of another: its headings are one level lower."""
    return re.sub(r"^(#+ )", r"#\1", page, flags=re.MULTILINE)
