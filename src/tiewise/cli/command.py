"""How a command is declared: options in groups, described arguments and examples, all shown by ``--help``."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click

from tiewise.errors import InputError

Function = TypeVar("Function", bound=Callable[..., Any])

MEASURES, INPUT, TIES = "Measures", "Queries and documents", "Ties"
SCORES, SIGNIFICANCE, EXECUTION, OUTPUT = "Scores", "Significance", "Execution", "Output"

#: The group of the options of a command whose help must be short: its arguments stand in it too.
SHORT = "Arguments and options"

BAD_INPUT = 2  # the exit code
MAX_WIDTH = 100  # of the help text

#: A command with at most this many options shows them under one heading, without their groups.
FEW_OPTIONS = 6


class InputPath(click.Path):
    """A file that is read, ``-`` for standard input; the reader checks whether it can be read."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)


class WholeNumber(click.IntRange):
    """A whole number within limits; click calls it an "integer range" in messages."""

    name = "whole number"


class Number(click.FloatRange):
    """A number within limits."""

    name = "number"


PATH, NOT_NEGATIVE = click.Path(path_type=Path, readable=False), WholeNumber(min=0)

#: The types of values, by how help calls them; any other is a text.
TYPES: dict[str, Any] = dict.fromkeys(["FILE", "FILE.json", "QRELS", "RUN", "SECOND"], InputPath())
TYPES |= {"N": WholeNumber(min=1), "RANK": WholeNumber(min=1), "NUMBER": float}


#: The parameters that name a file to write.
WRITTEN = ("path", "figure")


class Option(click.Option):
    """An option that belongs to a `group` in the help text.

    `default_note` describes a default that is not a fixed value.
    """

    def __init__(self, *args: Any, group: str, default_note: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.group = group
        default = None if self.is_flag else settings.get("default")
        self.default_note = default_note or ("" if default is None else str(default))

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The names of the option; its help and its default."""
        record = super().get_help_record(ctx)
        default = f" [default: {self.default_note}]" if self.default_note else ""
        return None if record is None else (record[0], f"{self.help}{default}")


class Argument(click.Argument):
    """An argument with a description."""

    def __init__(self, *args: Any, description: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.description = description


class HelpContext(click.Context):
    """A context whose help is as wide as the terminal; the width is found out when help is shown."""

    def make_formatter(self) -> click.HelpFormatter:
        """What writes the help."""
        from shutil import get_terminal_size

        self.terminal_width = min(get_terminal_size().columns, MAX_WIDTH) - 2
        return super().make_formatter()


class Command(click.Command):
    """A command that shows its arguments, its options by group, and its examples.

    Neighbours that have the same text share a line. `collected` are dataclasses: each takes the values that have the
    names of its fields, and becomes an argument of the command's function, `Output` as ``output``.
    """

    context_class = HelpContext

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), collected: Sequence[type[Any]] = (), **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.examples, self.collected = examples, collected

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; an error of the parser knows its command, whose help the message names."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Check that standard input is read once and no input is written, collect values, and call the function."""
        names = [str(one.name) for one in self.params if isinstance(one.type, InputPath) and one.name not in WRITTEN]
        read = [ctx.params.get(name) for name in names]
        paths = [path for value in read for path in (value if isinstance(value, tuple) else [value])]
        if paths.count(Path("-")) > 1:
            raise InputError("Standard input (-) can be read once. Give files for the others.")
        for written in filter(None, map(ctx.params.get, WRITTEN)):
            if any(path is not None and _is_same_file(path, written) for path in paths):
                raise InputError(f"{written}: is read by this command. Write to another file.")
        for kind in self.collected:
            names = [one.name for one in fields(kind) if one.name in ctx.params]
            ctx.params[kind.__name__.lower()] = kind(**{name: ctx.params.pop(name) for name in names})
        if not gc.isenabled():  # see `tiewise.cli.main`
            gc.freeze()
            gc.enable()
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for the arguments and one for each group of options."""
        params = self.get_params(ctx)
        options = [p for p in params if isinstance(p, click.Option)]
        title = SHORT if getattr(options[0], "group", "") == SHORT else "Arguments"
        sections: dict[str, list[tuple[str, str]]] = {title: []}
        for one in params:
            if isinstance(one, Argument):
                _add_record(sections[title], (str(one.metavar), one.description))
        last = options[-2].group if len(options) > 1 and isinstance(options[-2], Option) else OUTPUT
        for one in options:
            group = getattr(one, "group", last) if len(options) > FEW_OPTIONS + 1 else "Options"  # and --help
            if record := one.get_help_record(ctx):
                _add_record(sections.setdefault(group, []), record)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=min(30, formatter.width * 2 // 5))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, never broken, so that they can be copied."""
        one_line = f"Example: {''.join(self.examples)}"
        if len(self.examples) == 1 and len(one_line) <= formatter.width:
            formatter.write(f"\n{one_line}\n")
        elif self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def _is_same_file(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file; a pipe or a device may be read and written, and - is no file."""
    files = (path, other)
    return Path("-") not in files and all(map(os.path.isfile, files)) and path.samefile(other)


def _add_record(rows: list[tuple[str, str]], record: tuple[str, str]) -> None:
    """Add what help shows; names that have the text of the line before go into that line."""
    names, text = record
    if rows and rows[-1][1] == text:
        before, value = rows.pop()[0], names.rpartition(" ")[2]
        names = f"{before.removesuffix(f' {value}')}, {names}"
    rows.append((names, text))


class CommandGroup(click.Group):
    """Commands under one name, in the order in which they were added; without one of them it shows its help."""

    context_class = HelpContext

    def __init__(self, *args: Any, **settings: Any) -> None:
        settings |= {"invoke_without_command": True, "subcommand_metavar": "COMMAND [ARGS]..."}
        super().__init__(*args, **settings)

    @property
    def summaries(self) -> Mapping[str, str]:
        """What each command does, by its name."""
        return {name: str(one.help).partition("\n\n")[0] for name, one in self.commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return list(self.summaries)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Call a command."""
        done = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())
            ctx.exit(BAD_INPUT)
        return done


class GnuCommand(Command):
    """A command whose long options may be shortened to any unique beginning, as GNU programs allow."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Complete shortened options, then parse."""
        names = [name for one in self.get_params(ctx) for name in one.opts if name.startswith("--")]
        for place, arg in enumerate(args[: args.index("--")] if "--" in args else args):
            start, equals, value = arg.partition("=")
            found = [name for name in names if len(start) > 2 and name.startswith(start)]
            if start.startswith("--") and len(found) == 1:
                args[place] = found[0] + equals + value
        return super().parse_args(ctx, args)


def command(
    name: str, *collected: type[Any], examples: Sequence[str] = (), cls: type[Command] = Command
) -> Callable[[Callable[..., Any]], Command]:
    """Decorator: make a function a command, with its docstring as help; see `Command` for what is `collected`."""
    return click.command(name, cls=cls, examples=examples, collected=collected)


def option(
    spec: str, group: str, help: str, *, into: str = "", repeatable: bool = True, **settings: Any
) -> Callable[[Function], Function]:
    """Decorator: add an `Option`, written as help shows it: ``-l, --rel LABEL``, ``--missing zero|skip``, ``--wide``.

    The value goes `into` the parameter of that name, if it is not that of the option; `TYPES` has its type. An option
    with `multiple` values that is not `repeatable` collects them so that the command can refuse a second one.
    """
    words = spec.replace(", ", " ").split()
    names = [word for word in words if word.startswith("-")]
    value = words[-1] if len(names) < len(words) else ""
    if "|" in value:
        settings["type"] = click.Choice(value.split("|"))
    elif value:
        settings = {"metavar": value, "type": TYPES.get(value)} | settings
    else:
        settings["is_flag"] = True
    if settings.get("multiple") and repeatable:
        help += " Repeatable."
    return click.option(*names, *([into] if into else []), cls=Option, group=group, help=help, **settings)


def argument(spec: str, description: str, **settings: Any) -> Callable[[Function], Function]:
    """Decorator: add an `Argument`, written as help shows it: ``RUN``, ``RUN...`` for one or more, ``[NAME]``.

    Without a `type` it is a file.
    """
    if spec.endswith("..."):
        settings["nargs"] = -1
    name = settings.pop("into", re.sub(r"\W", "", spec).lower())
    settings = {"metavar": spec, "required": not spec.startswith("["), "type": InputPath()} | settings
    return click.argument(name, cls=Argument, description=description, **settings)


def complete_from(values: Callable[[], Iterable[str] | Mapping[str, str]]) -> Callable[..., list[Any]]:
    """Shell completion of an option from its possible values, perhaps with a description each."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        known = values()
        texts = known if isinstance(known, Mapping) else dict.fromkeys(known)
        start = incomplete.lower()
        return [CompletionItem(one, help=text) for one, text in texts.items() if one.lower().startswith(start)]

    return complete
