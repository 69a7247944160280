"""The conditions of ``--fail-if``: checks of a report, an audit or a comparison, for example in continuous integration.

    nDCG@10 < 0.45
    range(nDCG@10) > 0.01
    abs(bias(AP)) > 0.005 or expected(nDCG@10) < 0.35
    tied_share > 0.1 or cut_lists > 0
    changes_winner or unfaithful
    not certain(new>main, nDCG@10) or difference(new>main, AP) < -0.01

A condition compares numbers: a statistic of a measure, in any spelling that `parse` accepts, a fact of an audit, or a
statistic of one system against another. A measure alone, in a spelling without blanks, is its
expected value. A value that is true or false can stand alone; as a number it is 1 or 0. `abs`, `and`, `or`, `not` and
round brackets mean what they mean in Python, but nothing is ever evaluated as Python.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from tiewise.errors import InputError, TiewiseError
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import parse

#: The statistics of a measure.
STATISTICS = ("expected", "minimum", "maximum", "std", "oblivious", "bias", "range", "z", "residual")

#: The facts of an audit.
FACTS = (
    "tied_share",
    "tied_rows",
    "largest_group",
    "distinct",
    "cut_lists",
    "constant_queries",
    "nearly_constant_queries",
    "float32_ties",
    "changes_winner",
    "inverted",
    "rbo",
    "tau",
    "unfaithful",
)

#: The statistics of a pair of systems in a measure: ``p(A>B, nDCG@10)``.
PAIR_STATISTICS: dict[str, Callable[[Any], float | bool | None]] = {
    "certain": lambda pair: pair.certain and pair.difference.expected > 0 and not pair.open_by_cuts,
    "flip": lambda pair: pair.flip,
    "difference": lambda pair: pair.difference.expected,
    "minimum": lambda pair: pair.difference.minimum,
    "maximum": lambda pair: pair.difference.maximum,
    "std": lambda pair: pair.difference.std,
    "probability": lambda pair: pair.probability,
    "p": lambda pair: pair.p_value if pair.difference.expected > 0 else 1.0,
    "ci_low": lambda pair: pair.ci and pair.ci[0],
    "ci_high": lambda pair: pair.ci and pair.ci[1],
    "effect": lambda pair: pair.effect,
}

#: Why a fact of an audit is unknown; others need a reference run.
_UNKNOWN = {"changes_winner": "documents are tied, and only judgments (--qrels) show what that changes"}

#: What is true or false, so that it is a condition by itself.
FLAGS = ("changes_winner", "unfaithful", "certain", "flip")

MAX_DEPTH = 100  # of a condition

Values = Mapping[str, float]  # the value of each term, by its placeholder in the condition

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
    """A value in a condition: a fact, a statistic of a measure, or a statistic of a pair of systems in a measure."""

    name: str
    measure: Measure | None = None
    pair: tuple[str, str] | None = None

    def __str__(self) -> str:
        if self.measure is None:
            return self.name
        return f"{self.name}({'>'.join(self.pair) + ', ' if self.pair else ''}{self.measure})"

    def value(self, result: Any) -> float:
        """The value in a report, an audit or a comparison; an error if it is unknown."""
        if self.pair:
            found, why = PAIR_STATISTICS[self.name](result.pair(*self.pair, self.measure)), "it is not known here"
        elif self.measure is not None:
            estimate = result[self.measure]
            found, why = getattr(estimate, self.name), f"{self.measure} has no {self.name} here"
            if self.name == "z" and found is None and estimate.std is not None and estimate.bias is not None:
                # std is 0: a tool that rounds scores can have a bias without a spread
                found = math.copysign(math.inf, estimate.bias) if estimate.bias else 0.0
        else:
            found, why = getattr(result, self.name), _UNKNOWN.get(self.name, "it needs a reference run: --reference")
        if found is None:
            raise InputError(f"The condition needs {self}, but {why}.")
        return float(found)

    def format(self, value: float) -> str:
        """A value of this term, for a message."""
        if self.name in FLAGS:
            return "yes" if value else "no"
        return f"{value:.6g}"


@dataclass(frozen=True)
class Condition:
    """A condition of ``--fail-if``.

    >>> Condition.parse("range(ndcg_cut.10) > 0.01 and not std(RR) < 0.1").measures
    (nDCG@10, RR)
    >>> [str(term) for term in Condition.parse("nDCG@10 < 0.45 or tied_share > 0.1", facts=FACTS).terms]
    ['expected(nDCG@10)', 'tied_share']
    >>> Condition.parse("not certain(new > main, AP)", systems=["main", "new"]).terms
    (Term(name='certain', measure=AP, pair=('new', 'main')),)
    """

    text: str
    terms: tuple[Term, ...]
    holds: Callable[[Values], bool]
    limits: tuple[tuple[Measure, float], ...] = ()  #: measures whose expected value is compared with a number

    @classmethod
    def parse(
        cls,
        text: str,
        parse_measure: Callable[[str], Measure] = parse,
        facts: Sequence[str] = (),
        systems: Sequence[str] = (),
    ) -> Condition:
        """The condition of a text, which may use the names of `facts`; with `systems` it is about a comparison."""
        parser = _Parser(text, parse_measure, tuple(facts), tuple(systems))
        tree = parser.parse_tree()
        holds = partial(parser.evaluate_condition, tree)
        holds(dict.fromkeys(parser.terms, 0.0))  # raises if the tree is not a condition
        return cls(text, tuple(parser.terms.values()), holds, tuple(parser.find_limits(tree)))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that it needs."""
        return tuple(dict.fromkeys(term.measure for term in self.terms if term.measure is not None))

    def explain(self, result: Any) -> str | None:
        """The values that make the condition true for a report, an audit or a comparison; None if it is false."""
        values = {f"_{place}": term.value(result) for place, term in enumerate(self.terms)}
        if not self.holds(values):
            return None
        shown = {str(term): term.format(value) for term, value in zip(self.terms, values.values(), strict=True)}
        return ", ".join(f"{term} = {value}" for term, value in shown.items())


_OPERATORS = {"and", "or", "not", "abs", "in", "is", "if", "else", "lambda", "True", "False", "None"}
_NAME, _BRACKET, _CUTOFF = (
    re.compile(p) for p in (r"([A-Za-z]\w*)(?:-[A-Za-z]\w*)*", r"\s*\(", r"\s*@\s*\w+|(?:\.\d+)+")
)


class _Parser:
    """Parses and evaluates one condition.

    Measures have spellings that are not Python (``ndcg_cut.10``). So each term is replaced by a placeholder first; then
    the text is parsed as a Python expression, and its tree is evaluated with the values of the terms.
    """

    def __init__(
        self, text: str, parse_measure: Callable[[str], Measure], facts: tuple[str, ...], systems: tuple[str, ...]
    ):
        self.text, self.parse_measure, self.facts, self.systems = text, parse_measure, facts, systems
        self.statistics = tuple(PAIR_STATISTICS) if systems else STATISTICS
        self.terms: dict[str, Term] = {}

    def parse_tree(self) -> ast.expr:
        """The expression; one that is nested so deeply that it cannot be evaluated is an error."""
        expression = self.replace_terms()
        try:
            tree = ast.parse(expression.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            raise self.not_a_condition() from None
        nodes: list[ast.AST] = [tree]
        for _ in range(MAX_DEPTH):
            nodes = [part for node in nodes for part in ast.iter_child_nodes(node)]
        if nodes:
            raise self.error(f"it is nested more than {MAX_DEPTH} times. Write it with fewer brackets and 'not'.")
        return tree

    # -- terms

    def replace_terms(self) -> str:
        facts = "|".join(self.facts) or "(?!)"
        word = re.compile(rf"\b(?:({'|'.join(self.statistics)})\s*\(|({facts})\b(?!\s*\()|[A-Za-z]\w*)")
        replaced, at = "", 0
        while match := word.search(self.text, at):
            replaced += self.text[at : match.start()]
            at = match.end()
            if match[1]:
                end = self.closing_bracket(at)
                replaced += self.add(self.statistic(match[1], self.text[at:end].strip()))
                at = end + 1
            elif match[2]:
                replaced += self.add(Term(match[2]))
            elif measure := self.measure_at(match.start()):
                replaced += self.add(Term("expected", self.parse_measure(measure)))
                at = match.start() + len(measure)
            else:  # an operator, or an error, which is found later
                replaced += match[0]
        return replaced + self.text[at:]

    def add(self, term: Term) -> str:
        name = f"_{len(self.terms)}"
        self.terms[name] = term
        return name

    def statistic(self, name: str, inside: str) -> Term:
        if not self.systems:
            return Term(name, self.parse_measure(inside))
        a, b, measure = self.split_pair(inside)
        return Term(name, self.parse_measure(measure), (a, b))

    def measure_at(self, start: int) -> str:
        """The spelling of the measure that begins at a place of the text; empty if none does."""
        name = _NAME.match(self.text, start)
        if self.systems or name is None or name[1] in _OPERATORS:
            return ""
        end, params = name.end(), ""
        if bracket := _BRACKET.match(self.text, end):
            end = self.closing_bracket(bracket.end()) + 1
            params = self.text[bracket.end() : end - 1]
        if cutoff := _CUTOFF.match(self.text, end):
            end = cutoff.end()
        found = self.text[start:end]
        try:
            self.parse_measure(found)
        except TiewiseError:
            if "=" in params or "@" in found.replace(params, "", 1):
                raise  # it can only be a measure
            return ""
        return found

    def split_pair(self, inside: str) -> tuple[str, str, str]:
        """The two systems and the measure of ``A>B, nDCG@10``; ``A<B`` is B against A. Names may hold any character."""
        longest_first = sorted(self.systems, key=len, reverse=True)  # a name may be the beginning of another
        name = f"({'|'.join(map(re.escape, longest_first))})"
        pair = re.match(rf"{name}\s*([<>])\s*{name}\s*,", inside)
        if pair and pair[1] != pair[3]:
            a, b = (pair[1], pair[3]) if pair[2] == ">" else (pair[3], pair[1])
            return a, b, inside[pair.end() :].strip()
        known = ", ".join(f"'{name}'" for name in self.systems[:5]) + (" …" if len(self.systems) > 5 else "")
        raise self.error(
            f"'{inside}' is not a pair of systems and a measure. Write (A>B, nDCG@10) with two of {known}."
        )

    def closing_bracket(self, start: int) -> int:
        """Where the bracket ends that was opened before `start`."""
        depth = 1
        for place in range(start, len(self.text)):
            depth += {"(": 1, ")": -1}.get(self.text[place], 0)
            if not depth:
                return place
        raise self.error("a bracket is not closed.")

    # -- the expression; all of it is evaluated, so that every error is found

    def evaluate_condition(self, node: ast.expr, values: Values) -> bool:
        match node:
            case ast.BoolOp(op=op, values=parts):
                found = [self.evaluate_condition(part, values) for part in parts]
                return all(found) if isinstance(op, ast.And) else any(found)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return not self.evaluate_condition(part, values)
            case ast.Name(id=name) if name in self.terms and self.terms[name].name in FLAGS:
                return bool(values[name])
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
                sides = [self.evaluate_number(side, values) for side in (left, *others)]
                if not any(isinstance(part, ast.Name) and part.id in self.terms for part in ast.walk(node)):
                    raise self.error("a comparison has numbers only. Name a measure, as in 'nDCG@10 < 0.45'.")
                return all(_COMPARISONS[type(op)](*two) for op, two in zip(ops, pairwise(sides), strict=True))
        raise self.not_a_condition()

    def evaluate_number(self, node: ast.expr, values: Values) -> float:
        match node:
            case ast.Constant(value=int() | float() as constant) if not isinstance(constant, bool):
                return constant
            case ast.Name(id=name) if name in self.terms:
                return values[name]
            case ast.Name(id=name) if not name.startswith("_"):
                raise self.unknown_name(name)
            case ast.UnaryOp(op=ast.USub(), operand=part):
                return -self.evaluate_number(part, values)
            case ast.Call(func=ast.Name(id="abs"), args=[part], keywords=[]):
                return abs(self.evaluate_number(part, values))
            case ast.Call(func=ast.Name(id=name)) if name != "abs":
                raise self.unknown(name)
        raise self.not_a_condition()

    def find_limits(self, tree: ast.expr) -> Iterator[tuple[Measure, float]]:
        """Each measure whose expected value is compared with a number, and the number."""
        for node in ast.walk(tree):
            sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            for two in pairwise(sides):
                for side, other in (two, two[::-1]):
                    term = self.terms.get(side.id) if isinstance(side, ast.Name) else None
                    is_number = not any(isinstance(part, ast.Name) for part in ast.walk(other))
                    if is_number and term and term.name == "expected" and term.measure and not term.pair:
                        yield term.measure, self.evaluate_number(other, {})

    # -- errors

    def error(self, message: str) -> InputError:
        return InputError(f"Condition {self.text!r}: {message}")

    def unknown(self, name: str) -> InputError:
        known = (*self.statistics, *self.facts)
        import difflib

        close = difflib.get_close_matches(name, known, 1)
        hint = f"Did you mean '{close[0]}'?" if close else f"Use one of {', '.join(known)}."
        return self.error(f"unknown {'name' if self.facts else 'statistic'} '{name}'. {hint}")

    def unknown_name(self, name: str) -> TiewiseError:
        if self.facts:
            return self.unknown(name)
        if not self.systems and name not in self.statistics:
            try:
                self.parse_measure(name)
            except TiewiseError as error:
                return error
        return self.not_a_condition()

    def not_a_condition(self) -> InputError:
        what, examples = "a measure, or a statistic of one", "'nDCG@10 < 0.45' or 'abs(bias(AP)) > 0.005'"
        if self.systems:
            what, examples = "a statistic of two systems", "'p(A>B, nDCG@10) > 0.05' or 'not certain(A>B, nDCG@10)'"
        facts = f"; facts: {', '.join(self.facts)}" if self.facts else ""
        return self.error(
            f"this is not a condition. Compare {what}, with a number, as in {examples}. Statistics: "
            f"{', '.join(self.statistics)}{facts}."
        )
