"""The commands by name, each loaded when it is asked for.

To run one command is to import its module and what that needs, and no other's. Help and completion go through them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer

from tiewise.cli.quick import QuickCommand, QuickGroup

__all__ = ["Commands", "Program"]

#: Where the function of each command stands, in the order in which help lists them.
PLACES = {
    "evaluate": "evaluate.evaluate",
    "compare": "compare.compare",
    "audit": "audit.audit",
    "similarity": "similarity.similarity",
    "recall": "recall.recall",
    "score": "score.score",
    "report": "report.report",
    "break": "breaking.break_ties",
    "measures": "measures.list_measures",
    "demo": "demo.demo",
}


class Commands(Mapping[str, Any]):
    """Every command by its name; one is made of its module's function, and the examples there, when it is taken."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            place, function = PLACES[name].split(".")
            module = import_module(f"tiewise.cli.{place}")
            alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
            alone.command(name, cls=QuickCommand, epilog=getattr(module, "EXAMPLES", None))(getattr(module, function))
            self._made[name] = typer.main.get_command(alone)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(PLACES)

    def __len__(self) -> int:
        return len(PLACES)

    def __contains__(self, name: object) -> bool:
        return name in PLACES


class Program(QuickGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"commands": Commands()})

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, none of which is loaded for it."""
        return list(self.commands)
