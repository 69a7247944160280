"""The language of ``--fail-if``: a condition on a report, an audit or a comparison that closes a gate in someone's CI.

    nDCG@10 < 0.45
    range(nDCG@10) > 0.01
    abs(bias(AP)) > 0.005 or expected(nDCG@10) < 0.35
    tied_share > 0.1 or cut_lists > 0
    unreliable or unfaithful
    not certain(new>main, nDCG@10) or difference(new>main, AP) < -0.01

A statistic of a measure, in any spelling that `parse` accepts, a fact of an audit, or what is known of one system
against another is compared with a number. A measure alone, in a spelling without blanks, dots or minus signs, is its
expected value. What is true or false may stand alone.
`abs`, `and`, `or`, `not` and round brackets do what they say. Nothing is ever evaluated as Python.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tiewise.errors import InputError, TiewiseError
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.names import parse

__all__ = ["DUELS", "FACTS", "STATISTICS", "Duel", "Fact", "Found", "Gate", "Term"]

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

#: What a gate can ask of a comparison, of one system against another in a measure: ``p(A>B, nDCG@10)``.
DUELS: dict[str, Callable[[Any], float | bool | None]] = {
    "certain": lambda duel: duel.certain and duel.difference.expected > 0,
    "flip": lambda duel: duel.flip,
    "difference": lambda duel: duel.difference.expected,
    "minimum": lambda duel: duel.difference.minimum,
    "maximum": lambda duel: duel.difference.maximum,
    "std": lambda duel: duel.difference.std,
    "probability": lambda duel: duel.probability,
    "p": lambda duel: duel.p_value if duel.difference.expected > 0 else 1.0,
    "p_holm": lambda duel: duel.p_holm if duel.difference.expected > 0 or duel.p_holm is None else 1.0,
    "ci_low": lambda duel: duel.ci and duel.ci[0],
    "ci_high": lambda duel: duel.ci and duel.ci[1],
    "effect": lambda duel: duel.effect,
}
#: Of these, what is true or false.
TRUTHS = ("certain", "flip")

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
class Duel:
    """What is known of one system against another in a measure, such as ``p(A>B, nDCG@10)``."""

    word: str
    a: str
    b: str
    measure: Measure

    def __str__(self) -> str:
        return f"{self.word}({self.a}>{self.b}, {self.measure})"

    def of(self, found: Any) -> float:
        """Its value, 1 or 0 for what is true or false; an error if it is not known."""
        value = DUELS[self.word](found.pair(self.a, self.b, self.measure))
        if value is None:
            raise InputError(f"The gate asks for {self}, which is not known here.")
        return float(value)


@dataclass(frozen=True)
class Gate:
    """A condition that closes a gate where it holds.

    >>> gate = Gate.parse("range(ndcg_cut.10) > 0.01 and not std(RR) < 0.1")
    >>> gate.measures
    (nDCG@10, RR)
    >>> Gate.parse("nDCG@10 < 0.45").terms
    (Term(statistic='expected', measure=nDCG@10),)
    >>> Gate.parse("tied_share > 0.1", facts=FACTS).terms
    (Fact(name='tied_share'),)
    >>> Gate.parse("not certain(new > main, AP)", systems=["main", "new"]).terms
    (Duel(word='certain', a='new', b='main', measure=AP),)
    """

    text: str
    terms: tuple[Term | Fact | Duel, ...]
    condition: Callable[[Values], bool]

    @classmethod
    def parse(
        cls,
        text: str,
        named: Callable[[str], Measure] = parse,
        facts: Sequence[str] = (),
        systems: Sequence[str] = (),
    ) -> Gate:
        """The gate of a text; `named` finds the measure of a name, and `facts` are asked for by their names alone.

        With `systems` it is the gate of a comparison, and asks for one of them against another.
        """
        words = _Words(text, tuple(DUELS) if systems else STATISTICS, tuple(facts), bool(systems), named)
        plain, found = _named_terms(words)
        terms: dict[str, Term | Fact | Duel] = {}
        for name, (word, inside) in found.items():
            if inside is None:
                terms[name] = Fact(word)
            elif systems:
                a, b, measure = _sides(words, inside, systems)
                terms[name] = Duel(word, a, b, named(measure))
            else:
                terms[name] = Term(word, named(inside))
        try:
            tree = ast.parse(plain.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            raise words.unclear() from None
        return cls(text, tuple(terms.values()), _Reader(words, terms).condition(tree))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that it asks for."""
        return tuple(dict.fromkeys(term.measure for term in self.terms if not isinstance(term, Fact)))

    def closed_by(self, found: Found) -> str | None:
        """The values that close the gate, in words; None if it stays open."""
        values = {_placeholder(place): term.of(found) for place, term in enumerate(self.terms)}
        if not self.condition(values):
            return None
        shown = {str(term): _shown(term, value) for term, value in zip(self.terms, values.values(), strict=True)}
        return ", ".join(f"{term} = {value}" for term, value in shown.items())


def _shown(term: Term | Fact | Duel, value: float) -> str:
    if isinstance(term, Duel) and term.word in TRUTHS:
        return "yes" if value else "no"
    return f"{value:.6g}"


def _untied_z(estimate: Estimate) -> float | None:
    """bias / std where std is 0: no tie, no bias, unless a reader's rounding made one."""
    if estimate.std is None or estimate.bias is None:
        return None
    return math.copysign(math.inf, estimate.bias) if estimate.bias else 0.0


def _placeholder(place: int) -> str:
    return f"_{place}"


@dataclass(frozen=True)
class _Words:
    """A text, the words that it may use with something in brackets, and those that stand alone."""

    text: str
    statistics: tuple[str, ...]
    facts: tuple[str, ...]
    duels: bool
    named: Callable[[str], Measure]

    def unknown(self, name: str) -> InputError:
        """The error for a word that is none of them."""
        known = (*self.statistics, *self.facts)
        close = difflib.get_close_matches(name, known, 1)
        hint = f" Did you mean '{close[0]}'?" if close else f" Use one of {', '.join(known)}."
        return InputError(f"The gate {self.text!r}: unknown {'name' if self.facts else 'statistic'} '{name}'.{hint}")

    def unknown_name(self, name: str) -> TiewiseError:
        """The error for a name that stands alone and is neither a fact nor a measure."""
        if self.facts:
            return self.unknown(name)
        if self.duels or name in self.statistics:
            return self.unclear()
        try:
            self.named(name)
        except TiewiseError as error:
            return error
        return self.unclear()

    def unclear(self) -> InputError:
        """The error for a text that is no condition."""
        either = f"; facts, by their names alone: {', '.join(self.facts)}" if self.facts else ""
        like = "'nDCG@10 < 0.45', 'range(nDCG@10) > 0.01' or 'abs(bias(AP)) > 0.005 or expected(RR) < 0.5'"
        what = "a measure or a statistic of one"
        if self.duels:
            like = "'p(A>B, nDCG@10) > 0.05' or 'not certain(A>B, nDCG@10)'"
            what = "what is known of one system against another"
        return InputError(
            f"The gate {self.text!r} is no condition. Compare {what} with a number, as in {like}; statistics: "
            f"{', '.join(self.statistics)}{either}."
        )


def _named_terms(words: _Words) -> tuple[str, dict[str, tuple[str, str | None]]]:
    """The text with a name in place of each ``statistic(measure)``, measure and fact, and what the names stand for.

    Measures have spellings that are not Python (``ndcg_cut.10``), so they are taken out before it is parsed.
    """
    found: dict[str, tuple[str, str | None]] = {}
    text, plain, at = words.text, "", 0
    facts = "|".join(words.facts) or "(?!)"
    term = re.compile(rf"\b(?:({'|'.join(words.statistics)})\s*\(|({facts})\b(?!\s*\()|[A-Za-z]\w*)")
    while match := term.search(text, at):
        plain += text[at : match.start()]
        what: tuple[str, str | None] | None = None
        if match[1]:
            end = _closing(text, match.end())
            what = match[1], text[match.end() : end].strip()
            at = end + 1
        elif match[2]:
            what, at = (match[2], None), match.end()
        elif measure := _measure_at(words, match.start()):
            what, at = ("expected", measure), match.start() + len(measure)
        else:  # a word that Python knows, or one that is an error; there may be a measure in its brackets
            plain, at = plain + match[0], match.end()
        if what is not None:
            name = _placeholder(len(found))
            found[name], plain = what, plain + name
    return plain + text[at:], found


_OPERATORS = {"and", "or", "not", "abs", "in", "is", "if", "else", "lambda", "True", "False", "None"}


def _measure_at(words: _Words, start: int) -> str:
    """The measure that stands alone at a place of the text; empty if none does."""
    text = words.text
    head = re.compile(r"[A-Za-z]\w*").match(text, start)
    if words.duels or head is None or head[0] in _OPERATORS:
        return ""
    end, params = head.end(), ""
    if bracket := re.compile(r"\s*\(").match(text, end):
        end = _closing(text, bracket.end()) + 1
        params = text[bracket.end() : end - 1]
    if cutoff := re.compile(r"\s*@\s*\w+|(?:\.\d+)+").match(text, end):
        end = cutoff.end()
    try:
        words.named(text[start:end])
    except TiewiseError:
        if "=" in params or "@" in text[start:end].replace(params, "", 1):
            raise  # it cannot be anything else
        return ""
    return text[start:end]


def _sides(words: _Words, inside: str, systems: Sequence[str]) -> tuple[str, str, str]:
    """The two systems and the measure of ``A>B, nDCG@10``; ``A<B`` is B against A. Names may hold any sign."""
    longest_first = sorted(systems, key=len, reverse=True)  # a name may begin another
    for first in longest_first:
        rest = inside.removeprefix(first).lstrip()
        if not inside.startswith(first) or not rest.startswith((">", "<")):
            continue
        other = rest[1:].lstrip()
        for second in longest_first:
            measure = other.removeprefix(second).lstrip()
            if second != first and other.startswith(second) and measure.startswith(","):
                sides = (first, second) if rest[0] == ">" else (second, first)
                return *sides, measure[1:].strip()
    known = ", ".join(f"'{name}'" for name in systems[:5]) + (" …" if len(systems) > 5 else "")
    raise InputError(
        f"The gate {words.text!r}: '{inside}' is not one system against another in a measure. Write (A>B, nDCG@10) "
        f"with two of {known}."
    )


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

    words: _Words
    terms: Mapping[str, Term | Fact | Duel]

    def condition(self, node: ast.expr) -> Callable[[Values], bool]:
        match node:
            case ast.BoolOp(op=op, values=parts):
                conditions = [self.condition(part) for part in parts]
                whole = all if isinstance(op, ast.And) else any
                return lambda values: whole(condition(values) for condition in conditions)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                negated = self.condition(part)
                return lambda values: not negated(values)
            case ast.Name(id=name) if self.is_truth(name) or str(self.terms.get(name)) in FLAGS:
                return lambda values: bool(values[name])
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
                sides = [self.number(side) for side in (left, *others)]
                steps = list(zip([_COMPARISONS[type(op)] for op in ops], sides[:-1], sides[1:], strict=True))
                return lambda values: all(holds(low(values), high(values)) for holds, low, high in steps)
        raise self.words.unclear()

    def is_truth(self, name: str) -> bool:
        """Whether a term is true or false, so that it is a condition by itself and no number."""
        term = self.terms.get(name)
        return isinstance(term, Duel) and term.word in TRUTHS

    def number(self, node: ast.expr) -> Callable[[Values], float]:
        match node:
            case ast.Constant(value=bool()):
                raise self.words.unclear()
            case ast.Constant(value=int() | float() as constant):
                return lambda values: constant
            case ast.Name(id=name) if name in self.terms and not self.is_truth(name):
                return lambda values: values[name]
            case ast.Name(id=name) if not name.startswith("_"):
                raise self.words.unknown_name(name)
            case ast.UnaryOp(op=ast.USub(), operand=part):
                positive = self.number(part)
                return lambda values: -positive(values)
            case ast.Call(func=ast.Name(id="abs"), args=[part], keywords=[]):
                signed = self.number(part)
                return lambda values: abs(signed(values))
            case ast.Call(func=ast.Name(id=name)) if name != "abs" and "@" not in ast.unparse(node.func):
                raise self.words.unknown(name)
        raise self.words.unclear()
