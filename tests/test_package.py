"""The package as a whole: what importing it loads, which way imports run, and what it calls its parts."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import runpy
import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path

import pytest

import tiewise as tw
from tiewise.metrics import catalogue

SOURCE = Path(tw.__file__).parent

#: The folders from the top down: a module imports from its own folder and from folders above it.
LAYERS = (
    "results",
    "data",
    "ties",
    "io",
    "metrics",
    "rankings",
    "analysis",
    "scoring",
    "figures",
    "page",
    "adapters",
    "cli",
)
ROOT = {"__init__", "__main__", "_version", "caching", "errors", "rows"}
EXAMPLE = "example"  # data files

#: Folders that load a module further down by its name, when it is needed.
DEFERRED = {
    ("analysis", "figures"),  # `plot` of a result
    ("rankings", "figures"),
    ("metrics", "rankings"),  # a measure is named before its module was loaded
    ("ties", "io"),  # `tie_groups` and `from_shards` take files and dictionaries
}


def imported(path: Path) -> set[str]:
    """The folders of tiewise that a module imports from."""
    folders = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tiewise":
            parts = node.module.split(".")[1:]
            folders |= {parts[0]} if parts else {alias.name for alias in node.names}
        if isinstance(node, ast.Import):
            folders |= {n.name.split(".")[1] for n in node.names if n.name.startswith("tiewise.")}
    return folders


def named(path: Path) -> set[str]:
    """The folders whose modules are named in text, whole or as the beginning of an f-string, as for `import_module`."""
    folders = set()
    for node in ast.walk(ast.parse(path.read_text())):
        text = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            found = re.fullmatch(r"tiewise\.(\w+)(\.\w+)*\.?", text.value)
            folders |= {found[1]} if found else set()
    return folders


def modules() -> list[tuple[str, Path]]:
    """All modules that stand in a folder, each with the name of the folder."""
    paths = ((path.relative_to(SOURCE).parts, path) for path in SOURCE.rglob("*.py"))
    return [(parts[0], path) for parts, path in paths if len(parts) > 1]


def test_all_modules_stand_in_a_layer():
    assert {path.stem for path in SOURCE.glob("*.py")} == ROOT
    assert {folder for folder, _ in modules()} == {*LAYERS, EXAMPLE}


def test_imports_run_one_way():
    for folder, path in modules():
        for other in imported(path) & set(LAYERS) - {folder}:
            above = LAYERS.index(other) < LAYERS.index(folder)
            exported = path.name == "__init__.py" and (folder, other) in DEFERRED  # for type checkers
            assert above or exported, f"{path} imports from {other}, which lies below it"


def test_modules_that_are_loaded_by_name_stand_above_too():
    upward = set()
    for folder, path in modules():
        others = named(path) & set(LAYERS) - {folder}
        upward |= {(folder, other) for other in others if LAYERS.index(other) > LAYERS.index(folder)}
    assert upward == DEFERRED


def test_an_import_by_name_is_seen(tmp_path):
    (tmp_path / "module.py").write_text(
        'a = import_module("tiewise.page.words")\nb = import_module(f"tiewise.cli.{a}")\nc = "see tiewise.ties"\n'
        'd = {"x": "tiewise.rankings"}\n'
    )
    assert named(tmp_path / "module.py") == {"page", "cli", "rankings"}


def test_cached_values_have_no_lock():
    """That of functools has one in Python 3.10 and 3.11: see `tiewise.caching`."""
    for _, path in modules():
        assert not re.search(r"from functools import .*cached_property|functools\.cached_", path.read_text()), path


def test_import_loads_numpy_and_nothing_heavier():
    code = "import sys, numpy; before = set(sys.modules); import tiewise; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    third_party = {name.split(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"tiewise", "numpy"}
    assert not third_party, third_party
    for heavy in ("importlib.metadata", "asyncio", "multiprocessing", "unittest", "http", "email"):
        assert heavy not in loaded, heavy


def test_measures_of_two_rankings_are_loaded_when_one_is_named():
    code = (
        "import sys, tiewise as tw\n"
        "print(tw.parse('ndcg_cut_10'), 'tiewise.rankings.pair_measures' in sys.modules, tw.parse('rbo_at_5'))\n"
        "print(tw.parse_all('RBR, AP'), list(tw.measures())[-1])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "nDCG@10 False RBO(phi=0.9)@5\n[RBR(phi=0.9), AP] tau_ap\n"


def test_objects_kept_to_the_end_print_nothing() -> None:
    code = (
        "import ctypes, tiewise as tw; report = tw.evaluate({'q': {'a': 1}}, {'q': {'a': 1.0}}, 'RR', complete=True); "
        "ctypes.pythonapi.Py_IncRef(ctypes.py_object(report))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr == ""


def test_a_name_of_ours_is_taken_before_its_measure_is_loaded():
    code = "import tiewise as tw\nclass RBO(tw.Measure): pass\ntw.measure(RBO)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "is a measure of Tiewise. Call yours something else." in done.stderr


def test_no_module_is_called_like_a_public_name():
    """`import tiewise.x` would put the module in the place of the function."""
    modules = {module.name for module in pkgutil.iter_modules([str(SOURCE)])}
    assert all(inspect.ismodule(getattr(tw, name)) for name in modules & set(tw.__all__))


def test_a_wheel_that_lacks_a_template_or_data_is_found_out(tmp_path):
    """`make wheel` asks this of the wheel that was built; here of archives made for it."""
    lacking = runpy.run_path(str(SOURCE.parent.parent / "scripts/check_wheel.py"))["lacking"]
    held = [path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    left_out = {"tiewise/page/template/page.html.j2", "tiewise/example/qrels.txt", "tiewise/py.typed"}
    for name, without in (("whole", set()), ("bare", left_out)):
        with zipfile.ZipFile(tmp_path / f"{name}.whl", "w") as wheel:
            for path in held:
                if (inside := path.relative_to(SOURCE.parent).as_posix()) not in without:
                    wheel.write(path, inside)
        assert set(lacking(tmp_path / f"{name}.whl")) == without


def test_what_the_package_reads_is_beside_its_modules():
    for folder, names in (
        ("tiewise.page", ("template/page.html.j2", "template/page.css", "template/page.js")),
        ("tiewise.example", ("qrels.txt", "costs.json", "minilm-bf16.trec.gz", "bm25.trec.bz2")),
    ):
        for name in names:
            assert resources.files(folder).joinpath(name).is_file(), f"{folder}/{name}"


def test_what_is_there_is_listed():
    assert {"scoring", "figures", "rows", *tw.__all__} <= set(dir(tw))


def test_type_checkers_see_names_and_no_more():
    """mypy, and `tests/typed.py`, read the stub: it has the names that `__getattr__` loads."""
    tree = ast.parse((SOURCE / "__init__.pyi").read_text())
    names = {one.asname for node in tree.body if isinstance(node, ast.ImportFrom) for one in node.names} - {None}
    assert names | set(catalogue.MEASURES) | {"__version__"} == set(tw.__all__)
    assert set(catalogue.MEASURES) == {measure.stem for measure in tw.measures().values() if not measure.compares}


def test_public_names_are_documented_and_there():
    for name in tw.__all__:
        value = getattr(tw, name)
        if name != "__version__":
            assert inspect.getdoc(value if inspect.isfunction(value) or inspect.isclass(value) else type(value)), name


def test_errors_have_one_base():
    assert issubclass(tw.InputError, tw.TiewiseError)
    assert issubclass(tw.MeasureError, tw.TiewiseError)
    assert issubclass(tw.MissingExtraError, tw.TiewiseError)


@pytest.mark.parametrize(("name", "ours"), [("MRR", "RR"), ("MAP", "AP"), ("Recall", "R")])
def test_a_measure_of_another_name_is_suggested(name, ours):
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'\. Did you mean '{ours}'\?"):
        getattr(tw, name)


def test_common_mistakes_have_messages():
    with pytest.raises(tw.MeasureError, match=r"^nDCG\(10\): parameters have names\. A cutoff: nDCG @ 10\.$"):
        tw.nDCG(10)
    with pytest.raises(tw.MeasureError, match="parameters have names"):
        tw.RBP(0.8)
    with pytest.raises(TypeError, match=r"Take \.expected, or \.oblivious"):
        float(tw.AP.of("(10)1"))
    with pytest.raises(tw.InputError, match="These are the lists of one run"):
        tw.compare({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 0.5}, "p": {"a": 1.0}}, "AP")
    with pytest.raises(tw.MeasureError, match="two levels after -l"):
        tw.parse("map" + "-l1" * 3000)
