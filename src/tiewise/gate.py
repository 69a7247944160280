"""The language of ``--fail-if``: a condition on a report or an audit that closes a gate in other people's CI.

    range(nDCG@10) > 0.01
    abs(bias(AP)) > 0.005 or expected(nDCG@10) < 0.35
    tied_share > 0.1 or cut_lists > 0
    unreliable or unfaithful

A statistic of a measure, in any spelling that `parse` accepts, or a fact of an audit is compared with a number; a fact
that is true or false may stand alone. `abs`, `and`, `or`, `not` and round brackets do what they say. Nothing is ever
evaluated as Python.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tiewise.errors import InputError
from tiewise.estimate import Estimate
from tiewise.registry import Measure, parse

__all__ = ["FACTS", "STATISTICS", "Fact", "Found", "Gate", "Term"]

#: What a gate can ask of a measure.
STATISTICS = ("expected", "minimum", "maximum", "std", "oblivious", "bias", "range", "z", "residual")

#: What a gate can ask of an audit, besides the statistics of measures.
FACTS = (
    "tied_share",
    "tied_rows",
    "largest_group",
    "distinct",
    "cut_lists",
    "constant_queries",
    "nearly_constant_queries",
    "float32_ties",
    "unreliable",
    "inverted",
    "rbo",
    "tau",
    "unfaithful",
)

#: Facts that are true or false, so that they are a condition by themselves; as numbers they are 1 and 0.
FLAGS = ("unreliable", "unfaithful")

Values = Mapping[str, float]  # the value of each term, by the name that stands for it in the condition

_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class Found(Protocol):
    """What a gate looks at: a report, or an audit."""

    def __getitem__(self, measure: Measure, /) -> Estimate: ...


@dataclass(frozen=True)
class Term:
    """A statistic of a measure, such as ``range(nDCG@10)``."""

    statistic: str
    measure: Measure

    def __str__(self) -> str:
        return f"{self.statistic}({self.measure})"

    def of(self, found: Found) -> float:
        """Its value; an error if the measure does not have this statistic, for a gate never guesses."""
        estimate = found[self.measure]
        value: float | None = getattr(estimate, self.statistic)
        if value is None and self.statistic == "z":
            value = _untied_z(estimate)
        if value is None:
            raise InputError(f"The gate asks for {self}, but {self.measure} has no {self.statistic} here.")
        return value


@dataclass(frozen=True)
class Fact:
    """A number that an audit has, such as ``tied_share``."""

    name: str

    def __str__(self) -> str:
        return self.name

    def of(self, found: Found) -> float:
        """Its value; an error if it was not found out."""
        value: float | None = getattr(found, self.name)
        if value is None:
            raise InputError(f"The gate asks for {self}, which needs a reference run: give one (--reference).")
        return value


@dataclass(frozen=True)
class Gate:
    """A condition that closes a gate where it holds.

    >>> gate = Gate.parse("range(ndcg_cut.10) > 0.01 and not std(RR) < 0.1")
    >>> gate.measures
    (nDCG@10, RR)
    >>> Gate.parse("tied_share > 0.1", facts=FACTS).terms
    (Fact(name='tied_share'),)
    """

    text: str
    terms: tuple[Term | Fact, ...]
    condition: Callable[[Values], bool]

    @classmethod
    def parse(cls, text: str, named: Callable[[str], Measure] = parse, facts: Sequence[str] = ()) -> Gate:
        """The gate of a text; `named` finds the measure of a name, and `facts` are asked for by their names alone."""
        plain, found = _named_terms(text, facts)
        terms = {
            name: Fact(word) if measure is None else Term(word, named(measure))
            for name, (word, measure) in found.items()
        }
        try:
            tree = ast.parse(plain.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            raise _unclear(text, facts) from None
        return cls(text, tuple(terms.values()), _Reader(text, terms, facts).condition(tree))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that it asks for."""
        return tuple(dict.fromkeys(term.measure for term in self.terms if isinstance(term, Term)))

    def closed_by(self, found: Found) -> str | None:
        """The values that close the gate, in words; None if it stays open."""
        values = {_placeholder(place): term.of(found) for place, term in enumerate(self.terms)}
        if not self.condition(values):
            return None
        shown = dict(zip(map(str, self.terms), values.values(), strict=True))
        return ", ".join(f"{term} = {value:.6g}" for term, value in shown.items())


def _untied_z(estimate: Estimate) -> float | None:
    """bias / std where std is 0: no tie, no bias, unless a reader's rounding made one."""
    if estimate.std is None or estimate.bias is None:
        return None
    return math.copysign(math.inf, estimate.bias) if estimate.bias else 0.0


def _placeholder(place: int) -> str:
    return f"_{place}"


def _named_terms(text: str, facts: Sequence[str]) -> tuple[str, dict[str, tuple[str, str | None]]]:
    """The text with a name in place of each ``statistic(measure)`` and each fact, and what the names stand for.

    Measures have spellings that are not Python (``ndcg_cut.10``), so they are taken out before it is parsed.
    """
    found: dict[str, tuple[str, str | None]] = {}
    plain, at = "", 0
    asked = re.compile(rf"\b(?:({'|'.join(STATISTICS)})\s*\(|({'|'.join(facts) or '(?!)'})\b(?!\s*\())")
    while match := asked.search(text, at):
        name = _placeholder(len(found))
        if match[1]:
            end = _closing(text, match.end())
            found[name] = match[1], text[match.end() : end].strip()
        else:
            end = match.end() - 1
            found[name] = match[2], None
        plain, at = plain + text[at : match.start()] + name, end + 1
    return plain + text[at:], found


def _closing(text: str, start: int) -> int:
    """Where the bracket closes that was opened before `start`."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place
    raise InputError(f"The gate {text!r}: a bracket is not closed.")


@dataclass(frozen=True)
class _Reader:
    """Turns the tree of a condition into a function of the terms' values."""

    text: str
    terms: Mapping[str, Term | Fact]
    facts: Sequence[str]

    def condition(self, node: ast.expr) -> Callable[[Values], bool]:
        match node:
            case ast.BoolOp(op=op, values=parts):
                conditions = [self.condition(part) for part in parts]
                whole = all if isinstance(op, ast.And) else any
                return lambda values: whole(condition(values) for condition in conditions)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                negated = self.condition(part)
                return lambda values: not negated(values)
            case ast.Name(id=name) if name in self.terms and str(self.terms[name]) in FLAGS:
                return lambda values: bool(values[name])
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
                sides = [self.number(side) for side in (left, *others)]
                steps = list(zip([_COMPARISONS[type(op)] for op in ops], sides[:-1], sides[1:], strict=True))
                return lambda values: all(holds(low(values), high(values)) for holds, low, high in steps)
        raise _unclear(self.text, self.facts)

    def number(self, node: ast.expr) -> Callable[[Values], float]:
        match node:
            case ast.Constant(value=bool()):
                raise _unclear(self.text, self.facts)
            case ast.Constant(value=int() | float() as constant):
                return lambda values: constant
            case ast.Name(id=name) if name in self.terms:
                return lambda values: values[name]
            case ast.Name(id=name) if self.facts and not name.startswith("_"):
                raise _unknown(self.text, name, self.facts)
            case ast.UnaryOp(op=ast.USub(), operand=part):
                positive = self.number(part)
                return lambda values: -positive(values)
            case ast.Call(func=ast.Name(id="abs"), args=[part], keywords=[]):
                signed = self.number(part)
                return lambda values: abs(signed(values))
            case ast.Call(func=ast.Name(id=name)) if name != "abs" and "@" not in ast.unparse(node.func):
                raise _unknown(self.text, name, self.facts)
        raise _unclear(self.text, self.facts)


def _unknown(text: str, name: str, facts: Sequence[str]) -> InputError:
    known = (*STATISTICS, *facts)
    close = difflib.get_close_matches(name, known, 1)
    hint = f" Did you mean '{close[0]}'?" if close else f" Use one of {', '.join(known)}."
    return InputError(f"The gate {text!r}: unknown {'name' if facts else 'statistic'} '{name}'.{hint}")


def _unclear(text: str, facts: Sequence[str]) -> InputError:
    either = f"; facts, by their names alone: {', '.join(facts)}" if facts else ""
    return InputError(
        f"The gate {text!r} is no condition. Compare a statistic of a measure with a number, as in "
        "'range(nDCG@10) > 0.01' or 'abs(bias(AP)) > 0.005 or expected(RR) < 0.5'; statistics: "
        f"{', '.join(STATISTICS)}{either}."
    )
