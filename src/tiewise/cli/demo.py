"""``tiewise demo``: one screen on why ties matter."""

from __future__ import annotations

from tiewise.cli.output import screen, write

__all__ = ["demo"]


def demo() -> None:
    """One screen on why ties matter: a scorer that knows nothing, and a real model in bfloat16."""
    from tiewise.output.demo import demo as drawn

    write(drawn(**screen(None)), None)
