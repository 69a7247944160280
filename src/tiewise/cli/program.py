"""The program around the commands: the app, its exit status, and complaints on standard error.

Whatever a command raises becomes one paragraph for people and an exit code. Exit codes: 0 done, 2 bad input or usage
(or no room to write), 3 a gate closed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, cast

import typer

from tiewise._version import __version__
from tiewise.cli.commands import Program
from tiewise.errors import TiewiseError
from tiewise.tables.wording import escape_controls

__all__ = ["GATE_CLOSED", "app", "complain", "main", "say", "status_of"]

BAD_INPUT, GATE_CLOSED, INTERRUPTED, PIPE_CLOSED = 2, 3, 130, 141  # the last two as a shell reports the signals

app = typer.Typer(
    name="tiewise",
    cls=Program,
    help="How far can a retrieval score be trusted? Exact, tie-aware evaluation of ranked runs.",
    epilog="Exit codes: 0 done, 2 bad input or usage, 3 a --fail-if gate closed.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line of this process and exit with its status."""
    _stand_in()
    status = status_of(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:  # said already; what is left has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)


def _stand_in() -> None:
    """Take the places of streams that the caller closed, so that no file gets their numbers and their use fails."""
    for name, flags, mode in (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def status_of(args: Sequence[str]) -> int:
    """The exit status of a command line; errors become one paragraph on standard error."""
    usage_error = cast("type[Exception]", typer.BadParameter.__base__)  # click's UsageError, wherever typer keeps it
    try:
        status = app(args=list(args), prog_name="tiewise", standalone_mode=False)
        sys.stdout.flush()
    except usage_error as error:
        return _refuse(error)
    except TiewiseError as error:
        complain(str(error))
        return BAD_INPUT
    except BrokenPipeError:
        return PIPE_CLOSED
    except OSError as error:  # of help and version; all else writes with `save`
        complain(f"{error.filename or 'standard output'}: cannot be used ({error.strerror or error}).")
        return BAD_INPUT
    except SystemExit as left:
        if left.code != 1:
            raise
        return PIPE_CLOSED  # so typer and rich leave when whoever reads has stopped (``| head``); nothing else does
    except (typer.Abort, KeyboardInterrupt):
        complain("interrupted")
        return INTERRUPTED
    return status if isinstance(status, int) else 0


def _refuse(error: Any) -> int:
    command = error.ctx.command_path if error.ctx else "tiewise"
    message = " ".join(error.format_message().split())
    complain(f"{message}{'' if message.endswith(('.', '?')) else '.'} Try '{command} --help'.")
    return BAD_INPUT


def complain(message: str) -> None:
    """Write what is wrong to standard error, each line under our name."""
    for line in message.split("\n"):
        say(f"tiewise: {escape_controls(line)}")


def say(line: str) -> None:
    """Write a line to standard error, unless nobody reads it."""
    with suppress(BrokenPipeError):
        print(line, file=sys.stderr, flush=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        from tiewise.data.native import native

        print(f"tiewise {__version__} ({'compiled' if native() else 'Python'} reader)")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _tiewise(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help(), end="")
        raise typer.Exit(BAD_INPUT)
