"""The measures and conditions that a command line asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tiewise.metrics.definition import Measure
from tiewise.metrics.names import parse, parse_all, split_names

if TYPE_CHECKING:
    from tiewise.cli.conditions import Condition


@dataclass(eq=False, repr=False)
class Selection:
    """The options that name measures: ``--measure``, ``--rel`` and ``--fail-if``."""

    measures: Sequence[str] = ()
    rel: float | None = None  #: the lowest relevant label of measures that have one and whose name does not set it
    fail_if: Sequence[str] = ()

    def resolve(self, default: Sequence[str], conditions: Sequence[Condition] = ()) -> list[Measure]:
        """The measures that are named, else the default, then those of the conditions, each once."""
        named = [one for text in self.measures or default for one in _parse_with_rel(text, self.rel)]
        return list(dict.fromkeys([*named, *(one for condition in conditions for one in condition.measures)]))

    def conditions(self, facts: Sequence[str] = (), systems: Sequence[str] = ()) -> list[Condition]:
        """The conditions; `facts` and `systems` are what they may name besides measures."""
        if not self.fail_if:
            return []
        from tiewise.cli.conditions import Condition

        def parse_one(name: str) -> Measure:
            found = _parse_with_rel(name, self.rel)
            return found[0] if len(found) == 1 else parse(name)  # an error: it names several measures

        return [Condition.parse(text, parse_one, facts, systems) for text in self.fail_if]


def explain_names(names: Sequence[str]) -> list[str]:
    """Notes on names that are other measures here than in trec_eval: of the whole list, or RBP.

    >>> explain_names(["P RR", "recall.5"])
    ['P is that of the whole list. In trec_eval it has cutoffs: write P.5,10, or use `tiewise trec_eval`.']
    >>> explain_names(["rbp.p=0.5"])
    ['rbp.p=0.5 is RBP here. That of trec_eval, of which rbp_resid is the residual, is TrecRBP.']
    """
    words = {word for text in names for word in split_names(text)}
    rbp = [word for word in sorted(words) if word == "rbp" or word.startswith("rbp.")]
    notes = [f"{word} is RBP here. That of trec_eval, of which rbp_resid is the residual, is TrecRBP." for word in rbp]
    found = [name for name in ("P", "recall", "success", "relative_P", "unj") if name in words]
    if not found:
        return notes
    which = f"{found[0]} is that" if len(found) == 1 else f"{', '.join(found)} are those"
    has = "it has" if len(found) == 1 else "they have"
    advice = f"write {found[0]}.5,10, or use `tiewise trec_eval`"
    return [f"{which} of the whole list. In trec_eval {has} cutoffs: {advice}.", *notes]


def _parse_with_rel(text: str, rel: float | None) -> list[Measure]:
    found = []
    for word in split_names(text) or [text]:
        explicit = rel is None or re.search(r"\brel\s*=|-l\d+$", word)
        found += [one if explicit or "rel" not in one.params else one(rel=rel) for one in parse_all(word)]
    return found
