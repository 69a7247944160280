"""Finds runs of one system in several precisions by their names, so that each can be compared with the finest.

A run without ties is not always correct: scores may be rounded early and only look precise. So if ``minilm-bf16`` and
``minilm-fp32`` are both there, the page shows how far the order of one differs from the order of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

#: The words for a precision in names, by its number of bits; of equal bits, the one with more digits first.
_WORDS = {
    64: "float64 fp64 f64 double",
    32: "float32 fp32 f32 single full",
    31: "hps",  # vectors in low precision, products in float32
    16: "float16 fp16 f16 half",
    15: "bfloat16 bf16",
    8: "float8 fp8 f8 e4m3 e5m2 int8 uint8 i8 8bit sq8 q8",
    4: "int4 uint4 i4 4bit nf4 fp4 q4",
    1: "1bit binary ubinary bit sign",
}
_BITS = {word: bits for bits, words in _WORDS.items() for word in words.split()}
_HPS = _BITS["hps"]


@dataclass(frozen=True)
class PrecisionFamily:
    """One system in several precisions; the other runs are compared with the reference."""

    name: str
    reference: str
    members: tuple[str, ...]  #: from the finest to the coarsest, with the reference


def find_families(names: Iterable[str], reference: str | None = None) -> list[PrecisionFamily]:
    """The families among some runs, by their names; a reference outside of them makes one family of all runs.

    >>> find_families(["minilm-bf16", "bm25", "minilm-fp32"])
    [PrecisionFamily(name='minilm', reference='minilm-fp32', members=('minilm-fp32', 'minilm-bf16'))]
    >>> find_families(["new", "old"], reference="old")[0].members
    ('old', 'new')
    """
    given = list(names)
    by_stem: dict[str, list[tuple[int, int, str]]] = {}
    for name in given:
        stem, bits = _split_name(name)
        if bits is not None:
            by_stem.setdefault(stem, []).append((-bits, given.index(name), name))
    families = []
    for stem, some in by_stem.items():
        members = tuple(name for *_, name in sorted(some))
        if len(members) > 1:
            finest = reference if reference is not None and reference in members else members[0]
            families.append(PrecisionFamily(stem, finest, members))
    if reference is not None and not any(reference in family.members for family in families):
        others = tuple(name for name in given if name != reference)
        families = [PrecisionFamily("", reference, (reference, *others))] if others else []
    return families


def _split_name(name: str) -> tuple[str, int | None]:
    """A name without its precision, and the precision in bits; None if the name has none, or two.

    The precision of a model that is scored by HPS may be in the name too:

    >>> _split_name("minilm_bf16_hps"), _split_name("minilm-hps")
    (('minilm', 31), ('minilm', 31))
    """
    words = [word for word in re.split(r"[-_./\s]+", name) if word]
    precisions = [_BITS[word.lower()] for word in words if word.lower() in _BITS]
    if len(precisions) == 2 and _HPS in precisions:
        precisions = [_HPS]
    if len(precisions) != 1:
        return name, None
    return "-".join(word for word in words if word.lower() not in _BITS), precisions[0]
