"""action.yml: its steps, run as GitHub runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("altair")
ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEP = next(step for step in ACTION["runs"]["steps"] if step["name"].startswith("Evaluate"))


def run_step(folder: Path, **given: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """The step that evaluates, in the shell and with the environment of a job, and the text on the job's page."""
    inputs = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | {
        name.replace("_", "-"): value for name, value in given.items()
    }
    environment = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], value)
        for name, value in STEP["env"].items()
    }
    summary = folder / "summary.md"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", STEP["run"]],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(folder),
            "GITHUB_STEP_SUMMARY": str(summary),
            **environment,
        },
        capture_output=True,
        text=True,
    )
    return done, summary.read_text(encoding="utf-8") if summary.exists() else ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "qrels.txt").write_text("".join(f"q{q} 0 d1 1\nq{q} 0 d2 0\n" for q in range(8)), encoding="utf-8")
    for name, wrong in (("main run", 1), ("new", 4)):
        rows = [f"q{q} Q0 d{d} {d} {(1 if q < wrong else -1) * d} {name[:4]}\n" for q in range(8) for d in (1, 2)]
        (tmp_path / f"{name}.trec").write_text("".join(rows), encoding="utf-8")
    return tmp_path


def test_tables_go_to_the_jobs_page_and_a_page_is_written(folder: Path) -> None:
    done, summary = run_step(folder, qrels="qrels.txt", runs="main run.trec\n\n  \nnew.trec\n", baseline="main run")
    assert done.returncode == 0, done.stderr
    assert summary.count("nDCG@10") >= 2 and "| new" in summary and "main run" in summary
    assert "\n\nnDCG@10 · new (A) against main run (B)" in summary  # a paragraph of its own
    assert "<html" in (folder / "tiewise.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "gate",
    [
        {"fail_if": "nDCG@10 < 0.1\nnDCG@10 < 0.9"},
        {"baseline": "main run", "fail_if_compared": "difference(new>main run, nDCG@10) < -0.1"},
    ],
)
def test_a_condition_fails_the_job_after_everything_is_written(folder: Path, gate: dict[str, str]) -> None:
    done, summary = run_step(folder, qrels="qrels.txt", runs="main run.trec\nnew.trec", **gate)
    assert done.returncode == 3 and "check failed" in done.stderr
    assert "nDCG@10" in summary and (folder / "tiewise.html").exists()
    failed = [line for line in done.stderr.splitlines() if "check failed" in line]
    assert "\n".join(f"    {line.removeprefix('tiewise: ')}" for line in failed) + "\n\n" in summary  # a block of code


def test_options_and_bad_input(folder: Path) -> None:
    done, summary = run_step(
        folder, qrels="qrels.txt", runs="new.trec", options="-l 2\n--complete\n", measures="P@1 RR"
    )
    assert done.returncode == 0 and "P(rel=2)@1" in summary and "RR(rel=2)" in summary and "°" not in summary
    missing, summary = run_step(folder, qrels="none.txt", runs="$(touch broken)", page="none.html")
    assert missing.returncode == 2 and "none.txt" in missing.stderr
    assert not (folder / "none.html").exists() and not (folder / "broken").exists()
    option, _ = run_step(folder, qrels="qrels.txt", runs="--help")
    assert option.returncode == 2 and "--help: there is no such file" in option.stderr


def test_the_workflow_of_the_documentation(tmp_path: Path) -> None:
    """On files with the names that it uses; it fails where the new run is worse."""
    page = (ROOT / "docs/how-to/ci-gate.md").read_text(encoding="utf-8")
    workflow = yaml.safe_load(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1])
    given = next(step["with"] for step in workflow["jobs"]["check"]["steps"] if "tiewise" in step.get("uses", ""))
    assert set(given) <= set(ACTION["inputs"])
    given = {name.replace("-", "_"): value for name, value in given.items()}
    good = "q Q0 a 1 2 t\nq Q0 b 2 1 t\n"
    for name, text in {"qrels.txt": "q 0 a 1\n", "main.trec": good, "new.trec": good}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert run_step(tmp_path, **given)[0].returncode == 0
    a_is_last = "".join(f"q Q0 {doc} 0 {score} t\n" for score, doc in enumerate("abcdefghijkl"))
    (tmp_path / "new.trec").write_text(a_is_last, encoding="utf-8")
    done, _ = run_step(tmp_path, **given)
    assert done.returncode == 3 and done.stderr.count("check failed") == 2


def test_actions_are_pinned() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "uses" not in step or re.search(r"@[0-9a-f]{40}$", step["uses"])
        assert "${{" not in step.get("run", ""), "inputs go through the environment, not into the script"
