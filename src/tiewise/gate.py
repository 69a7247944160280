"""The language of ``--fail-if``: a condition on a report that closes a gate in other people's CI.

    range(nDCG@10) > 0.01
    abs(bias(AP)) > 0.005 or expected(nDCG@10) < 0.35

A statistic of a measure, in any spelling that `parse` accepts, is compared with a number; `abs`, `and`, `or`, `not`
and round brackets do what they say. Nothing is ever evaluated as Python.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tiewise.errors import InputError
from tiewise.estimate import Estimate
from tiewise.registry import Measure, parse
from tiewise.report import Report

__all__ = ["STATISTICS", "Gate", "Term"]

#: What a gate can ask of a measure.
STATISTICS = ("expected", "minimum", "maximum", "std", "oblivious", "bias", "range", "z", "residual")

Values = Mapping[str, float]  # the value of each term, by the name that stands for it in the condition

_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


@dataclass(frozen=True)
class Term:
    """A statistic of a measure, such as ``range(nDCG@10)``."""

    statistic: str
    measure: Measure

    def __str__(self) -> str:
        return f"{self.statistic}({self.measure})"

    def of(self, report: Report) -> float:
        """Its value in a report; an error if the measure does not have this statistic, for a gate never guesses."""
        estimate = report[self.measure]
        value: float | None = getattr(estimate, self.statistic)
        if value is None and self.statistic == "z":
            value = _untied_z(estimate)
        if value is None:
            raise InputError(f"The gate asks for {self}, but {self.measure} has no {self.statistic} here.")
        return value


@dataclass(frozen=True)
class Gate:
    """A condition that closes a gate where it holds.

    >>> gate = Gate.parse("range(ndcg_cut.10) > 0.01 and not std(RR) < 0.1")
    >>> gate.measures
    (nDCG@10, RR)
    """

    text: str
    terms: tuple[Term, ...]
    condition: Callable[[Values], bool]

    @classmethod
    def parse(cls, text: str, named: Callable[[str], Measure] = parse) -> Gate:
        """The gate of a text; `named` finds the measure of a name."""
        plain, found = _named_terms(text)
        terms = {name: Term(statistic, named(measure)) for name, (statistic, measure) in found.items()}
        try:
            tree = ast.parse(plain.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            raise _unclear(text) from None
        return cls(text, tuple(terms.values()), _Reader(text, terms).condition(tree))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that it asks for."""
        return tuple(dict.fromkeys(term.measure for term in self.terms))

    def closed_by(self, report: Report) -> str | None:
        """The values that close the gate, in words; None if it stays open."""
        values = {_placeholder(place): term.of(report) for place, term in enumerate(self.terms)}
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


def _named_terms(text: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """The text with a name in place of each ``statistic(measure)``, and what the names stand for.

    Measures have spellings that are not Python (``ndcg_cut.10``), so they are taken out before it is parsed.
    """
    found: dict[str, tuple[str, str]] = {}
    plain, at = "", 0
    while match := re.compile(rf"\b({'|'.join(STATISTICS)})\s*\(").search(text, at):
        end = _closing(text, match.end())
        name = _placeholder(len(found))
        found[name] = match[1], text[match.end() : end].strip()
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
    terms: Mapping[str, Term]

    def condition(self, node: ast.expr) -> Callable[[Values], bool]:
        match node:
            case ast.BoolOp(op=op, values=parts):
                conditions = [self.condition(part) for part in parts]
                whole = all if isinstance(op, ast.And) else any
                return lambda values: whole(condition(values) for condition in conditions)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                negated = self.condition(part)
                return lambda values: not negated(values)
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
                sides = [self.number(side) for side in (left, *others)]
                steps = list(zip([_COMPARISONS[type(op)] for op in ops], sides[:-1], sides[1:], strict=True))
                return lambda values: all(holds(low(values), high(values)) for holds, low, high in steps)
        raise _unclear(self.text)

    def number(self, node: ast.expr) -> Callable[[Values], float]:
        match node:
            case ast.Constant(value=bool()):
                raise _unclear(self.text)
            case ast.Constant(value=int() | float() as constant):
                return lambda values: constant
            case ast.Name(id=name) if name in self.terms:
                return lambda values: values[name]
            case ast.UnaryOp(op=ast.USub(), operand=part):
                positive = self.number(part)
                return lambda values: -positive(values)
            case ast.Call(func=ast.Name(id="abs"), args=[part], keywords=[]):
                signed = self.number(part)
                return lambda values: abs(signed(values))
            case ast.Call(func=ast.Name(id=name)) if name != "abs" and "@" not in ast.unparse(node.func):
                raise _unknown(self.text, name)
        raise _unclear(self.text)


def _unknown(text: str, name: str) -> InputError:
    close = difflib.get_close_matches(name, STATISTICS, 1)
    hint = f" Did you mean '{close[0]}'?" if close else f" Use one of {', '.join(STATISTICS)}."
    return InputError(f"The gate {text!r}: unknown statistic '{name}'.{hint}")


def _unclear(text: str) -> InputError:
    return InputError(
        f"The gate {text!r} is no condition. Compare a statistic of a measure with a number, as in "
        "'range(nDCG@10) > 0.01' or 'abs(bias(AP)) > 0.005 or expected(RR) < 0.5'; statistics: "
        f"{', '.join(STATISTICS)}."
    )
