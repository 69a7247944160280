"""The levels at which scores of a reranker are computed, and the names of their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tiewise.errors import InputError
from tiewise.scoring import functions

#: The model's own scores, and the levels of `tiewise.scoring`: what is computed again increases.
LEVELS = ("native", *functions.LEVELS)


def name_row(dtype: str, level: str) -> str:
    """The name of the row of a model in a type, at a level.

    >>> name_row("bfloat16", "native"), name_row("bfloat16", "score"), name_row("bfloat16", "head")
    ('bfloat16', 'bfloat16 + hps', 'bfloat16 + head')
    """
    return dtype if level == "native" else f"{dtype} + {'hps' if level == 'score' else level}"


def resolve_levels(levels: str | Iterable[str] | None, possible: Sequence[str] = LEVELS) -> tuple[str, ...]:
    """The levels that were asked for, in the order of `LEVELS`; None means all that are possible."""
    wanted = possible if levels is None else [levels] if isinstance(levels, str) else list(levels)
    for level in wanted:
        if level not in LEVELS:
            raise InputError(f"Unknown level {level!r}. Use some of: {', '.join(LEVELS)}.")
        if level not in possible:
            raise InputError(f"The level '{level}' needs hidden states and the weights of the last layer.")
    if not wanted:
        raise InputError(f"No level was given. Give some of: {', '.join(possible)}.")
    return tuple(level for level in possible if level in wanted)
