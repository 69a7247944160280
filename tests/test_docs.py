"""The documentation: console examples and notebooks print what they show, what is generated is up to date, every public
name and option is mentioned, links lead somewhere, and the site is built. Python examples are doctests, which pytest
collects."""

from __future__ import annotations

import inspect
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import tiewise as tw
from pages import WIDTH, Page, alike, on_terminal
from tiewise.cli.program import all_commands, app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
#: Public names that have no section of their own in the Python reference: types for annotations, and the version.
TYPES = {"__version__", "MeasureLike", "Method", "QrelsLike", "RunLike"}
CONSOLE = [path for path in PAGES if any(example.runs for example in Page(path).examples)]


@pytest.mark.parametrize("path", CONSOLE, ids=[str(path.relative_to(ROOT)) for path in CONSOLE])
def test_console_examples_print_what_the_page_shows(path, tmp_path):
    """Follow the page from its first line, in an empty folder, as a reader would."""
    pytest.importorskip("pty", reason="a terminal to print to")
    examples = Page(path).examples
    commands = [example.command for example in examples] + [""]
    folder, status = tmp_path, 0
    for example, following in zip(examples, commands[1:], strict=True):
        if example.command == "echo $?":
            assert example.output.strip() == str(status), path.name
        elif example.runs:
            shown, status, folder = on_terminal(example.command, folder)
            said = f"{path.name}: $ {example.command}\n{shown}exit code {status}"
            assert status == 0 or following == "echo $?", said
            assert alike(example.output, shown), f"{said}\n\nThe page shows\n{example.output}"


@pytest.mark.parametrize("path", CONSOLE, ids=[str(path.relative_to(ROOT)) for path in CONSOLE])
def test_console_examples_fit_the_column_of_the_site(path):
    blocks = re.findall(r"^```console\n(.*?)^```", Page(path).text, re.M | re.S)
    assert not [line for block in blocks for line in block.splitlines() if len(line) > WIDTH]


def test_pages_that_are_run_together_find_the_measures_that_each_finds_alone(tmp_path):
    example = ">>> import tiewise as tw\n>>> tw.evaluate({'q': {'a': 1}}, {'q': {'a': 1.0}}, 'AP')\nAP 1.0000\n"
    for name in ("one.md", "two.md"):
        (tmp_path / name).write_text(f"# A page\n\n```python\n{example}```\n", encoding="utf-8")
    assert "2 passed" in run_pages(tmp_path, "one.md", "two.md")


def test_an_example_is_skipped_if_a_large_library_is_not_installed(tmp_path):
    hide = ">>> import sys; sys.modules['torch'] = sys.modules['numpy_'] = None\n"
    need = "from tiewise.results.optional import need; need('torch', 'This', 'torch')"
    for name, example in {"a.md": "import torch", "b.md": need, "c.md": "import numpy_", "d.md": "1 / 0"}.items():
        (tmp_path / name).write_text(f"{hide}>>> {example}\n", encoding="utf-8")
    assert "2 failed, 2 skipped" in run_pages(tmp_path, "a.md", "b.md", "c.md", "d.md", code=1)


def run_pages(folder: Path, *pages: str, code: int = 0) -> str:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "--doctest-glob=*.md", *pages],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def test_generated_pages_are_up_to_date():
    made = runpy.run_path(str(ROOT / "scripts/make_docs.py"))["documents"]()
    stale = [str(path.relative_to(ROOT)) for path, text in made.items() if path.read_text(encoding="utf-8") != text]
    assert not stale, f"{', '.join(stale)}: run `make docs`"


def test_every_public_name_is_mentioned():
    code = " ".join(re.findall(r"`[^`\n]+`", everything())) + " ".join(
        re.findall(r"^(?:>>>|\.\.\.) .+$", everything(), re.M)
    )
    missing = [name for name in tw.__all__ if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", code)]
    assert not missing, f"the documentation does not mention {', '.join(missing)}"


def test_every_command_and_option_is_mentioned():
    commands = all_commands()
    by_hand = "\n".join(Page(path).text for path in PAGES if path.name != "cli.md")
    assert not [name for name in commands if f"tiewise {name}" not in by_hand]
    options = {option for command in (app, *commands.values()) for one in command.params for option in one.opts}
    missing = [
        one for one in options if one.startswith("-") and not re.search(rf"(?<![\w-]){one}(?![\w-])", everything())
    ]
    assert not missing, f"the documentation does not mention {', '.join(missing)}"


def test_the_map_shows_every_folder():
    modules = {path.stem for path in Path(tw.__file__).parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    rooms = {name for name in modules if not name.startswith("__")} - {"_version"}
    rows = re.findall(
        r"^\| (`[^|]+`) \|",
        Page(ROOT / "docs/architecture.md").prose.partition("## The layers")[2].partition("\n## ")[0],
        re.M,
    )
    shown = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert rooms == shown, f"docs/architecture.md differs in {', '.join(sorted(rooms ^ shown))}"


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_links_lead_somewhere(path):
    for link in Page(path).links:
        target, _, anchor = link.partition("#")
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), f"{path.name} links to {link}"
        assert not anchor or anchor in Page(there).anchors, f"{path.name} links to {link}"


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_every_page_can_be_reached(path):
    reached, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            left += [(page.parent / link.partition("#")[0]).resolve() for link in Page(page).links if link[0] != "#"]
    assert path in reached, f"no link leads from the README to {path.name}"


def test_the_site_shows_every_page():
    """`make site` checks it too, and the links; this needs no mkdocs."""
    shown = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in PAGES if path.is_relative_to(ROOT / "docs")]
    assert sorted(shown) == sorted(pages)


def test_the_python_reference_has_every_public_name():
    shown = {
        name.rpartition(".")[2]
        for names in re.findall(r"^<!-- ::: (.+) -->$", Page(ROOT / "docs/api.md").text, re.M)
        for name in names.split()
    }
    values = {name for name in tw.__all__ if isinstance(getattr(tw, name), tw.Measure)}  # on the page of measures
    modules = {name for name in tw.__all__ if inspect.ismodule(getattr(tw, name))}
    assert set(tw.__all__) - values - modules - TYPES <= shown


def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in tmp_path.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img|iframe)[^>]* src=\"?(https?:[^\"> ]+)|<link[^>]* href=\"?(https?:[^\"> ]+)",
            page.read_text(),
        )
        assert not loaded, page.name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebooks_print_what_they_show(path):
    pytest.importorskip("altair")
    notebook = runpy.run_path(str(ROOT / "scripts/run_notebooks.py"))["run"](path)
    for now, saved in zip(notebook["cells"], json.loads(path.read_text(encoding="utf-8"))["cells"], strict=True):
        printed, shown = (
            "".join(text for one in cell.get("outputs", ()) for text in one["text"]) for cell in (now, saved)
        )
        assert alike(shown, printed), f"{printed}\nThe notebook shows\n{shown}"


def everything() -> str:
    return "\n".join(Page(path).text for path in PAGES)


@pytest.mark.parametrize("path", CONSOLE, ids=[str(path.relative_to(ROOT)) for path in CONSOLE])
def test_pasted_console_examples_overwrite_no_file(path):
    """A shell reads ``> name`` of a pasted block as a redirection, so a second line begins with an option."""
    blocks = re.findall(r"^```console\n(.*?)^```", Page(path).text, re.M | re.S)
    assert not [line for block in blocks for line in block.splitlines() if re.match(r">\s*[^-\s>]", line)]
