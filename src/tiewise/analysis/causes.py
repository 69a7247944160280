"""`Why`: the causes of the difference of two numbers, and how much each of them contributes.

A number has settings (`Settings`). From those of the first number, one switch at a time is turned, in a fixed order,
until they are those of the second. What a step changes is the contribution of its cause, so contributions add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tiewise.analysis.settings import EXPECTED, SWITCHES, Numbers, Settings
from tiewise.errors import InputError
from tiewise.results.base import Result
from tiewise.results.estimates import format_measured
from tiewise.results.model import Cell, Column, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import ATOL, NumberFormat, capitalize_first, join_names

JOINT = " and "  #: between causes that have one contribution
MAX_CAUSES = 4  #: the rows of the table without --explain, fewer beside notes; the smallest share the last

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines.
WHY_COLUMNS = {
    "cause": "what differs",
    "a": "how it is in the first number",
    "b": "how it is in the second",
    "contribution": "what it adds to the difference, b − a",
}

#: The keys of `Why.to_dict`.
WHY_KEYS = {
    "measure": "the measure in its canonical spelling",
    "a": "the first number: `name` and `value`",
    "b": "the second",
    "difference": "b − a",
    "remainder": "what the contributions leave: rounding, below 1e-12",
    "explained": "false if printed numbers were not found",
    "causes": "in the order in which they were applied",
    "alternatives": "other explanations of printed numbers that are as simple",
    "sentence": "the answer",
    "notes": "what a reader should know",
}

#: What positions of switches are called.
POSITIONS: dict[str, dict[Any, str]] = {
    "drop_self": {False: "kept", True: "dropped"},
    "missing": {"zero": "count as 0", "skip": "left out"},
    "no_relevant": {"zero": "count as 0", "skip": "left out"},
    "labels": {"any": "kept", "cut": "fraction cut off", "round": "rounded"},
    "retrieved_only": {False: "known", True: "unknown"},
    "norm": {"all": "all relevant", "cap": "at most the cutoff"},
    "judged_only": {False: "kept", True: "removed"},
    "depth": {None: "whole"},
    "cutoff": {None: "none"},
    "ranked_by": {"score": "scores", "rank": "rank column", "given": "as in the input"},
    "order": {
        EXPECTED: "mean of all orders",
        "docid-desc": "ids descending",
        "docid-asc": "ids ascending",
        "given": "as in the input",
        "rank": "rank column",
    },
}

#: What a cause is, and what to do about it.
ADVICE = {
    "self-documents": "documents with the id of their query. Drop them if queries are documents of the collection.",
    "missing queries": "judged queries that the run lacks. Count them as 0, or systems gain by failing.",
    "queries without relevant documents": "they are 0 for every system. Say whether they count.",
    "fractional labels": "a label of 2.7 is 2.7, 2 or 3. Use whole labels, or the same tool.",
    "unretrieved documents": "relevant ones are unknown to a tool that sees the lists alone. Give it all judgments.",
    "label threshold": "the lowest label that is relevant (-l). Say which, as in AP(rel=2).",
    "gain": "what a label is worth in nDCG: the label, 2^label − 1, or 1. Say which.",
    "divisor": "by what AP@k is divided: the relevant documents, or at most k. Say which.",
    "unjudged documents": "kept, or removed from the lists (-J). Say which.",
    "lists cut": "only the first ranks of each list were read (-M). Give both tools the same lists.",
    "cutoff": "the tool prints this measure with a cutoff only. Compare at one cutoff.",
    "list order": "some read the rank column, or the lists as they come, not the scores. Let all three agree.",
    "score type": "scores that differ as float64 tie as float32. Compute the last step in high precision.",
    "order of ties": "equal scores have no order, and the tools choose different ones. Report the expected value.",
    "printed digits": "what rounding to the printed digits leaves.",
    "queries in run only": "they are in one of the two runs. Evaluate both on the same queries.",
    "queries in other only": "they are in one of the two runs. Evaluate both on the same queries.",
    "documents in run only": "what dropping them from its lists changes.",
    "documents in other only": "what adding them to its lists changes.",
    "ties of run": "what changes if they are broken as the other run orders them.",
    "ties of other": "what changes if they are no longer broken as the first run orders them.",
    "order of the scores": "documents that the two runs put in opposite order. Is it noise? See evaluate --rerun.",
}


@dataclass(frozen=True)
class Cause:
    """One cause of a difference, how it is in both numbers, and what it contributes."""

    cause: str
    a: str
    b: str
    contribution: float


@dataclass(frozen=True)
class Why(Result):
    """Why two numbers differ: `values`, their `difference` (second − first), and `causes`, which add up to it."""

    _schema = "tiewise/why/1"

    measure: str
    names: tuple[str, str]
    values: tuple[float, float]
    causes: tuple[Cause, ...]
    notes: tuple[str, ...] = ()
    consistent_with: str = ""  #: of printed numbers: what prints them
    alternatives: tuple[str, ...] = ()  #: of printed numbers: other explanations that are as simple
    unexplained: str = ""  #: of printed numbers that nothing explains: what was tried
    decimals: int | None = None  #: of printed numbers: how many they have, as shares
    in_points: bool = False  #: whether both numbers were printed as hundredths, such as 36.57 or 36.57%

    @property
    def explained(self) -> bool:
        """False for printed numbers that were not found."""
        return not self.unexplained

    @property
    def difference(self) -> float:
        """The second number minus the first."""
        return self.values[1] - self.values[0]

    @property
    def remainder(self) -> float:
        """What the causes leave of the difference: rounding."""
        return self.difference - float(np.sum([one.contribution for one in self.causes]))

    @property
    def sentence(self) -> str:
        """The answer."""
        if self.unexplained:
            return self.unexplained
        if self.consistent_with:
            return f"Consistent with this, within the printed digits: {self.consistent_with}."
        found = sorted(self._effective, key=lambda one: -abs(one.contribution))
        if not found:
            idle = join_names([one.cause for one in self.causes], "or", 4) if self.causes else ""
            return f"Both numbers are the same{f': no difference from {idle}' if idle else ''}."
        if len(found) == 1:
            return f"{capitalize_first(found[0].cause)}: the whole difference."
        if abs(self.difference) <= ATOL:
            return f"Both numbers are the same: {join_names([one.cause for one in found])} cancel."
        opposite = {one.contribution > 0 for one in found} == {True, False}
        others = join_names([one.cause for one in found[1:]])
        return f"Largest cause: {found[0].cause}; then {others}{'; they partly cancel' if opposite else ''}."

    @property
    def _effective(self) -> list[Cause]:
        return [one for one in self.causes if abs(one.contribution) > ATOL]

    def __repr__(self) -> str:
        return self.to_text().rstrip()

    def _section(self, view: View) -> Section:
        numbers = NumberFormat(self._digits if view.digits is None else view.digits, leading_zero=False)
        if self.in_points:
            numbers = NumberFormat(max(numbers.digits - 2, 0), leading_zero=False, factor=100)
        first, second = (
            name if self._is_printed else f"{name} {format_measured(value, numbers, is_count=self._is_count)}"
            for name, value in zip(self.names, self.values, strict=True)
        )
        title = f"{self.measure}: {first}, {second}, difference {numbers.signed(self.difference)}"
        most = MAX_CAUSES - self._is_printed - max(0, len(self.notes) - 1)
        rows = [
            (one.cause, one.a, one.b, Cell(numbers.signed(one.contribution, tiny="≈0"), value=one.contribution))
            for one in (self.causes if view.explain else _shorten(self._effective, most))
        ]
        a, b = (Column(key, name) for key, name in zip("ab", self.names, strict=True))
        columns = Column("cause"), a, b, Column("contribution", align="right")
        parts = [Table(columns, rows, title) if rows and self.explained else title, self.sentence]
        if view.explain:
            return Section([*parts, *self._explanations()], notes=self.notes)
        if self.alternatives:
            more = len(self.alternatives) - 1
            parts.append(f"As simple: {self.alternatives[0]}{f'; {more:,} more' if more else ''}.")
        return Section(parts, notes=self.notes)

    def _explanations(self) -> Iterator[str]:
        if self.alternatives:
            yield f"As simple: {'; '.join(self.alternatives)}."
        for one in self._effective:
            yield from (f"{name}: {ADVICE[name]}" for name in one.cause.split(JOINT) if name in ADVICE)
        yield "Each contribution is what its cause changes after the causes above it."

    @property
    def _is_printed(self) -> bool:
        return self.decimals is not None

    @property
    def _is_count(self) -> bool:
        """Whether the numbers are counts, which are above every value of a measure between 0 and 1."""
        return all(value > 1 and value == int(value) for value in self.values)

    @property
    def _digits(self) -> int:
        """Two digits of the difference, or of the largest contribution where there is none; none of counts.

        Of printed numbers as many as they have.
        """
        if self._is_count and all(one.contribution == int(one.contribution) for one in self.causes):
            return 0
        if self.decimals is not None:
            return min(max(4, self.decimals), 9)
        sizes = [abs(one.contribution) for one in self._effective]
        size = abs(self.difference) if abs(self.difference) > ATOL else max(sizes, default=1.0)
        return min(max(4, int(np.ceil(-np.log10(size))) + 1), 9)

    def _records(self, view: View) -> Table:
        return Table.of_records(WHY_COLUMNS, map(asdict, self.causes))

    def _document(self, view: View) -> dict[str, Any]:
        a, b = ({"name": name, "value": x} for name, x in zip(self.names, self.values, strict=True))
        return {
            "measure": self.measure,
            "a": a,
            "b": b,
            "difference": self.difference,
            "remainder": self.remainder,
            "explained": self.explained,
            "causes": self._records(view).records(),
            "alternatives": list(self.alternatives),
            "sentence": self.sentence,
            "notes": list(self.notes),
        }


def compute_value(numbers: Numbers, name: str, settings: Settings) -> float:
    """The number of some settings; an error if there is none."""
    value = numbers.value(settings)
    if value is None:
        raise InputError(f"There is no number of {name} for this run: no query is left.")
    return value


def find_causes(numbers: Numbers, a: Settings, b: Settings) -> Iterator[Cause]:
    """The causes of the difference of two settings of one run."""
    steps, before = [], a
    for switch, settings in a.steps(b):
        places = describe_position(switch, before.get(switch)), describe_position(switch, settings.get(switch))
        steps.append((SWITCHES.get(switch, switch), *places, numbers.value(settings)))
        before = settings
    return add_up(compute_value(numbers, "the first", a), steps)


def add_up(start: float, steps: Iterable[tuple[str, str, str, float | None]]) -> Iterator[Cause]:
    """Causes with what each adds, from their names and the numbers after them.

    Where no query is left there is no number: such a cause has one contribution together with the next.
    """
    joined: list[tuple[str, str, str]] = []
    for *cause, value in steps:
        joined.append((cause[0], cause[1], cause[2]))
        if value is not None:
            name, a, b = (JOINT.join(texts) for texts in zip(*joined, strict=True))
            yield Cause(name, a, b, value - start)
            start, joined = value, []


def describe_position(switch: str, position: Any) -> str:
    """How a switch stands, in words."""
    if switch in ("depth", "cutoff") and position is not None:
        return f"first {position:,}"
    return POSITIONS.get(switch, {}).get(position) or (
        f"{position:g}" if isinstance(position, float) else str(position)
    )


def _shorten(causes: list[Cause], most: int) -> list[Cause]:
    """The largest causes, in their order, and the sum of the others."""
    if len(causes) <= most:
        return causes
    limit = sorted((abs(one.contribution) for one in causes), reverse=True)[most - 2]
    large = [one for one in causes if abs(one.contribution) >= limit][: most - 1]
    others = [one for one in causes if one not in large]
    return [*large, Cause(f"{len(others)} others", "", "", float(np.sum([one.contribution for one in others])))]
