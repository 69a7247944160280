"""Runs of one system in several precisions, told by their names, and how faithful each is to the finest of them.

A run without ties is not a right one: scores may be rounded early and only look precise. So where ``minilm-bf16``
stands beside ``minilm-fp32``, the page says how far the order of one differs from that of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Family", "families"]

#: What names call a precision, by the number of bits that are meant; of equal bits, the one with more digits first.
_WORDS = {
    64: "float64 fp64 f64 double",
    32: "float32 fp32 f32 single full",
    31: "hps",  # products in float32 of vectors in less
    16: "float16 fp16 f16 half",
    15: "bfloat16 bf16",
    8: "float8 fp8 f8 e4m3 e5m2 int8 uint8 i8 8bit sq8 q8",
    4: "int4 uint4 i4 4bit nf4 fp4 q4",
    1: "1bit binary ubinary bit sign",
}
_BITS = {word: bits for bits, words in _WORDS.items() for word in words.split()}
_HPS = _BITS["hps"]


@dataclass(frozen=True)
class Family:
    """One system in several precisions; the others are compared with the reference."""

    name: str
    reference: str
    members: tuple[str, ...]  #: from the finest to the coarsest, the reference among them


def families(names: Iterable[str], reference: str | None = None) -> list[Family]:
    """The families among some runs, by their names; a reference that is in none of these makes one of all runs.

    >>> families(["minilm-bf16", "bm25", "minilm-fp32"])
    [Family(name='minilm', reference='minilm-fp32', members=('minilm-fp32', 'minilm-bf16'))]
    >>> families(["new", "old"], reference="old")[0].members
    ('old', 'new')
    """
    given = list(names)
    found: dict[str, list[tuple[int, int, str]]] = {}
    for name in given:
        stem, bits = _parts(name)
        if bits is not None:
            found.setdefault(stem, []).append((-bits, given.index(name), name))
    made = [_family(stem, [name for *_, name in sorted(some)], reference) for stem, some in found.items()]
    made = [family for family in made if len(family.members) > 1]
    if reference is not None and not any(reference in family.members for family in made):
        others = tuple(name for name in given if name != reference)
        made = [Family("", reference, (reference, *others))] if others else []
    return made


def _family(stem: str, members: list[str], reference: str | None) -> Family:
    return Family(stem, reference if reference in members else members[0], tuple(members))


def _parts(name: str) -> tuple[str, int | None]:
    """A name without its precision, and the precision in bits; None if the name says none, or two.

    The precision of a model that is scored by HPS may stand beside that word:

    >>> _parts("minilm_bf16_hps"), _parts("minilm-hps")
    (('minilm', 31), ('minilm', 31))
    """
    words = [word for word in re.split(r"[-_./\s]+", name) if word]
    said = [_BITS[word.lower()] for word in words if word.lower() in _BITS]
    if len(said) == 2 and _HPS in said:
        said = [_HPS]
    if len(said) != 1:
        return name, None
    return "-".join(word for word in words if word.lower() not in _BITS), said[0]
