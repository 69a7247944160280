"""README.md as PyPI shows it: relative links and images become addresses in the repository, at the tag of the version.

The build backend calls :func:`dynamic_metadata` (``[tool.scikit-build.metadata.readme]`` in pyproject.toml), so
README.md itself keeps the relative links that work in a checkout.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
RELATIVE = r"\((?![a-z]+:|#)([^)\s]+)\)"  # a target that is neither an address nor an anchor of the page itself


def absolute_links(text: str, repository: str, tag: str) -> str:
    """The text, with every relative link and image changed into an address in the repository at a tag."""
    text = re.sub(rf"(!\[[^\]]*\]){RELATIVE}", rf"\1({repository}/raw/{tag}/\2)", text)
    return re.sub(rf"\]{RELATIVE}", rf"]({repository}/blob/{tag}/\1)", text)


def dynamic_metadata(field: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The ``readme`` of the project's metadata; the build backend calls it."""
    version = runpy.run_path(str(ROOT / "src/tiewise/_version.py"))["__version__"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return {"content-type": "text/markdown", "text": absolute_links(text, settings["repository"], f"v{version}")}
