"""Printed numbers: the simplest settings that print them.

First the tools as they are, then with one switch turned, then with two. Numbers of few digits have many explanations:
what is found is consistent with them, and others that are as simple are named too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from tiewise.analysis.causes import Cause, Why, describe_position, find_causes
from tiewise.analysis.measuring import Evaluation
from tiewise.analysis.settings import EXPECTED, SWITCHES, Numbers, Settings, rank_by
from tiewise.analysis.tool_settings import OURS, parse_tool
from tiewise.errors import InputError
from tiewise.metrics.definition import Measure
from tiewise.metrics.tool_rules import TOOLS
from tiewise.results.estimates import format_measured
from tiewise.results.wording import ATOL, SHORT, NumberFormat, join_names
from tiewise.ties.orders import ORDERS, TOOL_ORDERS, find_reordered

MAX_TURNED = 2  #: how many switches are turned beside those of a tool
DEPTHS = (10, 20, 50, 100, 200, 500, 1000)  #: to which lists are cut
MAX_MATCHES = 12  #: of each number, the first ones


class Candidate(NamedTuple):
    """Settings, the tools and orders of ties that have them, and how many switches are not those of a tool."""

    settings: Settings
    names: tuple[str, ...]
    turned: int


class Printed(NamedTuple):
    """A printed number, as a share, and the digits after its point."""

    text: str
    value: float
    digits: int
    in_points: bool  # whether its text is 100 times its value

    def matches(self, value: float | None) -> bool:
        """Whether this value is printed so."""
        return value is not None and self.is_between(value, value)

    def is_between(self, low: float, high: float) -> bool:
        """Whether some value from `low` to `high` is printed so."""
        half = 0.5 * 10.0**-self.digits + ATOL
        return low - half <= self.value <= high + half


def explain_numbers(numbers: Numbers, measure: Measure, printed: Sequence[Any], tools: Sequence[str]) -> Why:
    """The simplest settings that print both numbers; of the tools, one prints the first number and one the second."""
    if len(printed) != 2:
        raise InputError("Give two numbers, as text with all their digits.")
    if len(tools) > 2:
        raise InputError(f"Two numbers are printed by at most two tools, not {len(tools)}.")
    one, two = (_parse_number(text, measure) for text in printed)
    texts, difference, decimals = (one.text, two.text), two.value - one.value, max(one.digits, two.digits)
    in_points = one.in_points and two.in_points
    explain = partial(Why, measure.name, texts, (one.value, two.value), decimals=decimals, in_points=in_points)
    searched, asked = _Search(numbers, measure), (tools[0], tools[-1]) if tools else (None, None)
    found = [searched.find(number, tool) for number, tool in zip((one, two), asked, strict=True)]
    if not all(found):
        missing = [pair for pair, some in zip(zip((one, two), asked, strict=True), found, strict=True) if not some]
        cause = Cause("not explained", "", "", difference)
        digits = max(SHORT.digits, decimals) - 2 * in_points
        notes = searched.describe(missing, NumberFormat(digits, leading_zero=False, factor=100 if in_points else 1))
        return explain((cause,), notes, unexplained=searched.explain_nothing(missing))
    explanations: dict[tuple[str, ...], list[tuple[Candidate, Candidate]]] = {}  # by their causes
    for a, b in product(*found):
        steps = find_causes(numbers, a.settings, b.settings)
        effective = tuple(cause.cause for cause in steps if abs(cause.contribution) > ATOL)
        explanations.setdefault(effective, []).append((a, b))
    fewest = min(map(len, explanations))
    pairs, *others = (some for effective, some in explanations.items() if len(effective) == fewest)
    causes = list(find_causes(numbers, *(one.settings for one in pairs[0])))
    rounding = difference - sum(cause.contribution for cause in causes)
    may_be_chance = found[0][0].turned + found[1][0].turned > 1 and not (tools or others)
    note = f"Some of {searched.n_tried:,} settings match by chance: name the tools too, if they are known."
    return explain(
        (*causes, Cause("printed digits", *texts, rounding)),
        (note,) if may_be_chance else (),
        consistent_with=_name_readings(texts, pairs),
        alternatives=tuple(_name_readings(texts, some[:1]) for some in others),
    )


def _name_readings(texts: tuple[str, str], pairs: Sequence[tuple[Candidate, Candidate]]) -> str:
    """What prints each of the numbers: the first reading, or all tools and orders of ties that do as they are."""
    named = []
    for some in zip(*pairs, strict=True):
        names = [*dict.fromkeys(name for one in some if not one.turned or one is some[0] for name in one.names)]
        named.append(join_names(names, "or", 4 if len(names) == 4 else 3))
    if named[0] == named[1]:
        return f"both as {named[0]}"
    return "; ".join(f"{text} as {names}" for text, names in zip(texts, named, strict=True))


def _parse_number(text: Any, measure: Measure) -> Printed:
    """A printed number; one above 1 may be in per cent, with its sign or without."""
    plain = str(text).strip().removesuffix("%")
    try:
        number = Decimal(plain)
    except InvalidOperation:
        raise InputError(f"{str(text)!r} is not a number.") from None
    if not number.is_finite():
        raise InputError(f"{str(text)!r} is not a finite number.")
    digits = -int(number.as_tuple().exponent)
    is_share = measure.limits[1] == 1 and not measure.total
    in_points = plain != str(text).strip() or (number > 1 and is_share)
    if in_points:
        number, digits = number / 100, digits + 2
    if number < measure.limits[0] or (number > 1 and is_share):
        raise InputError(f"{text} is not a value of {measure}, even in per cent.")
    return Printed(str(text), float(number), digits, in_points)


class _Search:
    """The numbers of candidates, each computed once."""

    def __init__(self, numbers: Numbers, measure: Measure):
        self._numbers, self._measure = numbers, measure
        self._alternatives = list(_alternatives(numbers.given, measure))
        self._tried: dict[str | None, dict[Settings, Candidate]] = {}

    @property
    def n_tried(self) -> int:
        """How many settings were tried."""
        return len({settings for tried in self._tried.values() for settings in tried})

    def find(self, printed: Printed, tool: str | None) -> list[Candidate]:
        """The settings that print a number, of those of one tool or of all, with as few switches turned as possible."""
        tried = self._tried.setdefault(tool, {})
        for turned in range(MAX_TURNED + 1):
            for settings, name in self._candidates(tool, turned):
                known = tried.get(settings)
                if known is None:
                    tried[settings] = Candidate(settings, (name,), turned)
                elif not turned and name not in (*known.names, *ORDERS):  # an order is named where no tool has it
                    tried[settings] = known._replace(names=(*known.names, name))
            found = [
                one
                for one in tried.values()
                if one.turned == turned and printed.matches(self._numbers.value(one.settings))
            ]
            if found:
                return found[:MAX_MATCHES]
        return []

    def explain_nothing(self, missing: Sequence[tuple[Printed, str | None]]) -> str:
        """The answer where some numbers, of one tool or of any, are printed by nothing."""
        possible = [one.text for one, tool in missing if tool is None and self._is_in_range(one)]
        others = [one.text for one, _ in missing if one.text not in possible]
        sentences = []
        if possible:
            ranx = ", such as that of ranx" if TOOLS["ranx"].rule(self._measure) else ""
            numbers = join_names([*dict.fromkeys(possible)])
            sentences.append(f"{numbers}: possible in another order of ties{ranx}; it cannot be confirmed.")
        if others:
            is_cut = self._measure.cutoff is not None  # no other cutoff is tried
            tried = (name for switch, name in SWITCHES.items() if not (is_cut and switch == "cutoff"))
            numbers = f"{others[0]}: not" if possible else "Not"
            sentences.append(f"{numbers} explained by any of these, alone or two at once: {', '.join(tried)}.")
        return " ".join(sentences)

    def describe(self, missing: Sequence[tuple[Printed, str | None]], numbers: NumberFormat) -> tuple[str, ...]:
        """The numbers next to those that are missing, and what other orders of ties can print."""
        texts = join_names([*dict.fromkeys(one.text for one, _ in missing)], "or")
        nearest = join_names([*dict.fromkeys(self._find_nearest(*one, numbers) for one in missing)])
        note = f"None of {self.n_tried:,} settings prints {texts}. Nearest of the tools as they are: {nearest}."
        low, high = self._range
        if not numbers.differ(low, high):
            return (note,)
        return note, f"Other orders of ties give {numbers.number(low)} to {numbers.number(high)}."

    def _find_nearest(self, printed: Printed, tool: str | None, numbers: NumberFormat) -> str:
        """The number next to a printed one that some tool prints as it is."""
        known = [
            (self._numbers.value(one.settings), one.names[0]) for one in self._tried[tool].values() if not one.turned
        ]
        some = [(x, name) for x, name in known if x is not None]
        if not some:
            raise InputError(f"There is no number of {tool} for this run: no query is left.")
        value, name = min(some, key=lambda one: abs(one[0] - printed.value))
        return f"{format_measured(value, numbers, is_count=self._measure.total)} ({name})"

    def _is_in_range(self, printed: Printed) -> bool:
        """Whether a number is one that some order of ties may give."""
        low, high = self._range
        return low is not None and high is not None and printed.is_between(low, high)

    @property
    def _range(self) -> tuple[float | None, float | None]:
        mean = self._numbers.given.estimates([self._measure])[self._measure].mean()
        return mean.minimum, mean.maximum

    def _candidates(self, tool: str | None, count: int) -> Iterator[tuple[Settings, str]]:
        """Settings with this many switches that are not those of a tool."""
        for base, name in self._bases(tool):
            for turns in combinations(self._alternatives, count):
                if len({switch for switch, _ in turns}) == count and all(base.get(s) != p for s, p in turns):
                    settings = base
                    for switch, position in turns:
                        settings = settings.turn(switch, position)
                    turned = (f"{SWITCHES.get(s, s)}: {describe_position(s, p)}" for s, p in turns)
                    yield settings, ", ".join([name, *turned])

    def _bases(self, tool: str | None) -> Iterator[tuple[Settings, str]]:
        if tool is not None:
            yield parse_tool(tool, self._measure, self._numbers.given), tool
            return
        tools = (name for name, one in TOOLS.items() if one.rule(self._measure))
        for name in (OURS, *tools, *_orders(self._numbers.given)):
            for text in (name, f"{name} -c"):  # some print no mean without -c if judged queries are missing
                try:
                    yield parse_tool(text, self._measure, self._numbers.given), text
                    break
                except InputError:  # it prints no number for these files, or one that cannot be reproduced
                    continue


def _alternatives(evaluation: Evaluation, measure: Measure) -> Iterable[tuple[str, Any]]:
    """Positions of switches that can change the number of a run."""
    label = evaluation.qrels.label
    yield from (("ranked_by", order) for order in ("rank", "given") if _contradicts(evaluation, order))
    if evaluation.self_queries:
        yield from (("drop_self", True), ("drop_self", False))
    if not evaluation.ties.present.all():
        yield from (("missing", "zero"), ("missing", "skip"))
    if not evaluation.has_relevant(measure).all():
        yield from (("no_relevant", "zero"), ("no_relevant", "skip"))
    if not evaluation.qrels.has_whole_labels:
        yield from (("labels", position) for position in ("any", "cut", "round"))
    for name, one in measure.params.items():
        if name == "rel":
            yield from (("rel", float(level)) for level in np.unique(label[label > 0])[:6])
        else:
            yield from ((name, choice) for choice in one.choices)
    yield from (("judged_only", True), ("retrieved_only", True))
    yield from (("depth", depth) for depth in DEPTHS if depth < evaluation.counted.longest)
    yield from (("score_dtype", dtype) for dtype in ("float64", "float32", "float16", "bfloat16"))
    yield from (("order", order) for order in (EXPECTED, *_orders(evaluation)))


def _orders(evaluation: Evaluation) -> list[str]:
    """The orders of ties of this run, first those that stand in its file."""
    return [order for order in ("given", "rank", *TOOL_ORDERS[:2]) if order in evaluation.ties.before]


def _contradicts(evaluation: Evaluation, order: str) -> bool:
    """Whether the rank column, or the order of the rows, puts documents in another order than the scores."""
    if (source := evaluation.readable) is None:
        return False
    run = source.rows()
    if order == "rank" and run.rank is None:
        return False
    return len(find_reordered(run.query, run.value, rank_by(run, order).value)) > 0
