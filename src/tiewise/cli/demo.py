"""``tiewise demo``: one screen that shows why ties matter."""

from __future__ import annotations

from tiewise.cli.command import command
from tiewise.cli.output import screen, write

__all__ = ["demo"]


@command("demo")
def demo() -> None:
    """Show on one screen why ties matter: a scorer that knows nothing, and a real model in bfloat16."""
    from tiewise.output.demo import demo as draw

    write(draw(**screen()))
