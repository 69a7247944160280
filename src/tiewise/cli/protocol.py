"""``tiewise protocol``: one model, index or reranker in several precisions, each against a reference."""

from __future__ import annotations

import click

from tiewise.cli.protocol_model import protocol_model

__all__ = ["protocol"]


@click.group("protocol")
def protocol() -> None:
    """Compare a system in several precisions with a reference: expected value, range, bias and loss of each."""


protocol.add_command(protocol_model)
