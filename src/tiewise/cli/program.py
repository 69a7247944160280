"""The program ``tiewise``: its commands, its exit codes, and its error messages.

A command is imported when it is called. Every error becomes one message on standard error and an exit code: 0 done,
2 bad input or usage (also an output that cannot be written), 3 a ``--fail-if`` condition is true.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from tiewise._version import __version__
from tiewise.cli.command import BAD_INPUT, CommandGroup, option
from tiewise.errors import InputError, TiewiseError
from tiewise.results.wording import spelled_for_shell

__all__ = ["BAD_INPUT", "CHECK_FAILED", "all_commands", "app", "print_error", "print_note", "run_process", "status_of"]

CHECK_FAILED = 3
INTERRUPTED, PIPE_CLOSED = 130, 141  # what a shell reports for these signals

#: The commands in the order of the help text. A command is the function of its module with the same name.
COMMANDS = {
    "evaluate": "Evaluate runs against relevance judgments.",
    "compare": "Compare runs: which is better, and how certain is that?",
    "leaderboard": "Rank systems over many collections; show what that cannot tell.",
    "why": "Show why two tools, two printed numbers or two runs differ.",
    "audit": "Count the ties of a run, find their cause, suggest a remedy.",
    "similarity": "Compare rankings of runs: RBO, RBA, MED_RBP, tau and others.",
    "stages": "Compare first stages of a reranker by rank-biased recall.",
    "score": "Make a run from embeddings, logits or hidden states.",
    "protocol": "Compare precisions of a model: which can be afforded?",
    "report": "Write an HTML page that compares runs.",
    "break": "Break the ties of a run, at random or in a tool's order.",
    "trec_eval": "Print what trec_eval 10 prints, or expectations instead.",
    "measures": "List the measures, or describe one.",
    "demo": "Show on one screen why ties matter.",
}
MODULES = {"break": "break_ties"}  # where it differs from the command's name: `break` is a keyword

SHELLS = ("bash", "zsh", "fish")  # that have completion
COMPLETION = "_TIEWISE_COMPLETE"  # the variable by which a shell asks for completions


EAGER: dict[str, Any] = {"is_eager": True, "expose_value": False}  # of options that do something and exit


class Program(CommandGroup):
    """All commands, each imported when it is called, and not for help or completion of their names."""

    summaries = COMMANDS

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        if cmd_name not in COMMANDS:
            return None
        name = MODULES.get(cmd_name, cmd_name)
        return getattr(import_module(f"tiewise.cli.{name}"), name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments call; an error suggests similar names."""
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, 1)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean '{close[0]}'?" if close else ""))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """The commands and options that begin so."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


def show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from tiewise.data.native import native

        click.echo(f"tiewise {__version__} ({'compiled' if native() else 'Python'} reader)")
        ctx.exit()


def _set_up_completion(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value and not ctx.resilient_parsing:
        shell = Path(os.environ.get("SHELL", "")).name if value == "auto" else value
        if shell not in SHELLS:
            raise InputError(f"There is no completion for the shell '{shell}'. Name one of {', '.join(SHELLS)}.")
        from click.shell_completion import get_completion_class

        found = get_completion_class(shell)
        assert found is not None
        script = found(app, {}, "tiewise", COMPLETION).source()
        if param.name == "install_completion":
            _install_completion(shell, script)
        else:
            click.echo(script)
        ctx.exit()


def _install_completion(shell: str, script: str) -> None:
    """Save the script where the shell finds it: for bash and zsh, a line in their start-up file loads it."""
    home = Path.home()
    path = home / ".config" / ("fish/completions/tiewise.fish" if shell == "fish" else f"tiewise/complete.{shell}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    if shell != "fish":
        startup, line = home / f".{shell}rc", f"source '{path}'"
        before = startup.read_text(encoding="utf-8") if startup.exists() else ""
        if line not in before.splitlines():
            startup.write_text(f"{before.rstrip()}\n\n{line}\n".lstrip(), encoding="utf-8")
    click.echo(f"Completion for {shell} is installed in {path}. Start a new shell to use it.")


SHELL: dict[str, Any] = EAGER | {
    "is_flag": False,
    "flag_value": "auto",
    "default_note": "your shell",
    "callback": _set_up_completion,
}


@click.group(
    "tiewise",
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 2 bad input or usage, 3 a --fail-if condition is true.",
)
@option("--version", "", "Show the version.", **EAGER, callback=show_version)
@option("--install-completion [SHELL]", "", "Install completion for bash, zsh or fish.", **SHELL)
@option("--show-completion [SHELL]", "", "Print the completion script of a shell.", **SHELL)
def app() -> None:
    """How far can a retrieval score be trusted? Exact, tie-aware evaluation of ranked runs."""


def all_commands() -> dict[str, click.Command]:
    """Every command by its name, those of a group after it: ``protocol``, ``protocol runs``."""
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        one: Any = app.get_command(None, name)
        found[name] = one
        found |= {f"{name} {part}": command for part, command in getattr(one, "commands", {}).items()}
    return found


def run_process() -> int:
    """Run the command line of this process and return its exit status."""
    _replace_closed_streams()
    if instruction := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete

        return shell_complete(app, {}, "tiewise", COMPLETION, instruction)
    status = status_of(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:  # already reported; drop the rest, or Python reports it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _replace_closed_streams() -> None:
    """Replace closed standard streams by ones that fail, so that no other file gets their numbers."""
    for name, flags, mode in (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def status_of(args: Sequence[str]) -> int:
    """The exit status of a command line; an error is one message on standard error."""
    try:
        with spelled_for_shell(), app.make_context("tiewise", list(args)) as context:
            app.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as left:
        return left.exit_code
    except BrokenPipeError:
        return PIPE_CLOSED  # the reader has stopped, as in ``| head``
    except KeyboardInterrupt:
        print_error("interrupted")
        return INTERRUPTED
    except Exception as error:
        message = _explain(error, args)
        if message is None:
            raise
        print_error(message)
        return BAD_INPUT
    return 0


def _explain(error: Exception, args: Sequence[str]) -> str | None:
    """The message on an error; None if it is a defect of this program."""
    match error:
        case click.UsageError():
            command = error.ctx.command_path if error.ctx else "tiewise"
            message = " ".join(error.format_message().split())
            return f"{message}{'' if message.endswith(('.', '?', ')')) else '.'} Try '{command} --help'."
        case TiewiseError():
            return str(error)
        case MemoryError():  # while a file is read, its own error says so
            files = ", ".join(arg for arg in args if os.path.isfile(arg))  # noqa: PTH113 – Path raises on long names
            return f"{files or 'tiewise'}: there is not enough memory."
        case OSError():  # from help and version: results are written by `save`, which has its own message
            return f"{error.filename or 'standard output'}: cannot be used ({error.strerror or error})."
    from tiewise.cli.plugins import explain_plugin_error  # a measure of a plugin can raise anything

    return explain_plugin_error(error)


def print_error(message: str) -> None:
    """Write an error to standard error, each line after the program's name."""
    _print_lines("tiewise", message.split("\n"))


def print_note(*notes: str) -> None:
    """Write notes to standard error."""
    _print_lines("note", notes)


def _print_lines(prefix: str, lines: Sequence[str]) -> None:
    from tiewise.results.wording import encodable, escape_controls

    for line in lines:
        with suppress(BrokenPipeError):
            print(f"{prefix}: {encodable(escape_controls(line), sys.stderr.encoding)}", file=sys.stderr, flush=True)
