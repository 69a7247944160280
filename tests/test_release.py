"""What a release publishes: one version everywhere, and a README that PyPI can show."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import tiewise as tw

ROOT = Path(__file__).parent.parent
README = runpy.run_path(str(ROOT / "scripts/pypi_readme.py"))


def test_links_of_the_readme_are_absolute():
    readme = README["dynamic_metadata"]("readme", {"repository": "https://r.org"})
    targets = re.findall(r"\]\(([^)]+)\)|(?:src|srcset|href)=[\"']([^\"']+)", readme["text"])
    relative = [one for pair in targets for one in pair if one and not one.startswith(("https://", "#"))]
    assert targets and not relative, f"PyPI cannot show {', '.join(relative)}"
    assert "![" not in readme["text"] or f"(https://r.org/raw/v{tw.__version__}/docs/img/" in readme["text"]


def test_links_and_images_go_to_the_tag():
    text = "[a](docs/a.md#b) ![i](i.svg) [![n](n.svg)](n.md) [c](#c) [d](https://d.org)"
    files = "https://r.org/blob/v1"
    images = "https://r.org/raw/v1"
    assert README["absolute_links"](text, "https://r.org", "v1") == (
        f"[a]({files}/docs/a.md#b) ![i]({images}/i.svg) [![n]({images}/n.svg)]({files}/n.md) [c](#c) [d](https://d.org)"
    )


def test_changelog_begins_with_the_version():
    heading = re.search(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert heading and heading[1] == tw.__version__


def test_citation_has_the_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.M)[1] == tw.__version__


def test_what_makes_a_release_is_pinned():
    """Packages by version, actions by commit."""
    for name in ("wheels.yml", "release.yml"):
        workflow = (ROOT / ".github/workflows" / name).read_text(encoding="utf-8")
        packages = " ".join(re.findall(r"pip install ((?:[\w=.]+ ?)+)$", workflow, re.M)).split()
        assert all("==" in package for package in packages), packages
        actions = re.findall(r"uses: ([^.\s]\S+)", workflow)
        assert all(re.search(r"@[0-9a-f]{40}$", action) for action in actions), actions
