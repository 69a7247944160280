"""Shell completion: print the script of a shell, or install it."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from tiewise.cli.program import COMPLETION, app
from tiewise.errors import InputError

SHELLS = ("bash", "zsh", "fish")


def show(shell: str) -> None:
    """Print the completion script of a shell; ``auto`` is the user's."""
    click.echo(_script(_resolve_shell(shell)))


def install(shell: str) -> None:
    """Save the completion script where the shell finds it: for bash and zsh, a line in their start-up file loads it."""
    shell = _resolve_shell(shell)
    home = Path.home()
    path = home / ".config" / ("fish/completions/tiewise.fish" if shell == "fish" else f"tiewise/complete.{shell}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_script(shell), encoding="utf-8")
    if shell != "fish":
        startup, line = home / f".{shell}rc", f"source '{path}'"
        before = startup.read_text(encoding="utf-8") if startup.exists() else ""
        if line not in before.splitlines():
            startup.write_text(f"{before.rstrip()}\n\n{line}\n".lstrip(), encoding="utf-8")
    click.echo(f"Completion for {shell} is installed in {path}. Start a new shell to use it.")


def _resolve_shell(shell: str) -> str:
    if shell == "auto":
        shell = Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise InputError(f"There is no completion for the shell '{shell}'. Name one of {', '.join(SHELLS)}.")
    return shell


def _script(shell: str) -> str:
    found = get_completion_class(shell)
    assert found is not None
    return found(app, {}, "tiewise", COMPLETION).source()
