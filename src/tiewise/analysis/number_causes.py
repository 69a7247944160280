"""`why`: the causes of the difference of two numbers, and how much each of them contributes.

A number has settings (`Settings`). From those of the first number, one switch at a time is turned, in a fixed order,
until they are those of the second. What a step changes is the contribution of its cause, so that contributions add up.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from itertools import combinations
from typing import Any

import numpy as np

from tiewise.analysis.measuring import Evaluation, resolve_measures
from tiewise.analysis.options import Options
from tiewise.analysis.settings import EXPECTED, SWITCHES, Numbers, Settings
from tiewise.errors import InputError
from tiewise.io import as_qrels, as_run, as_source
from tiewise.io.types import QrelsLike, RunLike
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import MeasureLike
from tiewise.metrics.tool_rules import TOOLS, task_drops_self
from tiewise.results.base import Result
from tiewise.results.model import Cell, Column, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import NumberFormat, capitalize_first, join_names
from tiewise.ties.orders import ORDERS

ATOL = 1e-12  #: a smaller contribution is rounding

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines.
WHY_COLUMNS = {
    "cause": "what differs",
    "a": "how it is in the first number",
    "b": "how it is in the second",
    "contribution": "what it adds to the difference, b − a",
}

#: What positions of switches are called.
POSITIONS: dict[str, dict[Any, str]] = {
    "drop_self": {False: "kept", True: "dropped"},
    "missing": {"zero": "count as 0", "skip": "left out"},
    "no_relevant": {"zero": "count as 0", "skip": "left out"},
    "labels": {"any": "kept", "cut": "fraction cut off", "round": "rounded"},
    "retrieved_only": {False: "known", True: "unknown"},
    "judged_only": {False: "kept", True: "removed"},
    "depth": {None: "whole"},
    "order": {
        EXPECTED: "mean of all orders",
        "docid-desc": "ids descending",
        "docid-asc": "ids ascending",
        "given": "as in the input",
        "rank": "rank column",
    },
}

#: The options that may follow the name of a tool, each with its switch, and its position if it takes no value.
FLAGS: dict[str, tuple[str, Any]] = {
    "-c": ("missing", "zero"),
    "-J": ("judged_only", True),
    "-l": ("rel", None),
    "-M": ("depth", None),
    "--missing": ("missing", None),
    "--no-relevant": ("no_relevant", None),
    "--drop-self": ("drop_self", True),
    "--score-dtype": ("score_dtype", None),
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
        found = sorted(self._effective, key=lambda one: -abs(one.contribution))
        if not found:
            return "No cause moves the number: both are the same."
        if len(found) == 1:
            return f"{capitalize_first(found[0].cause)}: the whole difference."
        return f"Most of it: {found[0].cause}; then {join_names([one.cause for one in found[1:]])}."

    @property
    def _effective(self) -> list[Cause]:
        return [one for one in self.causes if abs(one.contribution) > ATOL]

    def __repr__(self) -> str:
        return self.to_text().rstrip()

    def _section(self, view: View) -> Section:
        size = min((abs(one.contribution) for one in self._effective), default=1.0)
        digits = view.digits if view.digits is not None else min(max(4, int(np.ceil(-np.log10(size))) + 1), 9)
        numbers = NumberFormat(digits, leading_zero=False)
        first, second = (f"{name} {numbers.number(x)}" for name, x in zip(self.names, self.values, strict=True))
        title = f"{self.measure}: {first}, {second}, difference {numbers.signed(self.difference)}"
        columns = Column("cause"), Column("a", self.names[0]), Column("b", self.names[1])
        contribution = Column("contribution", align="right")
        rows = [
            (one.cause, one.a, one.b, Cell(numbers.signed(one.contribution), value=one.contribution))
            for one in self._effective
        ]
        idle = [one.cause for one in self.causes if one.cause != "printed digits" and abs(one.contribution) <= ATOL]
        notes = [f"No effect: {', '.join(idle)}."] if idle else []
        table = [Table((*columns, contribution), rows, title)] if rows else [title]
        return Section([*table, self.sentence], notes=[*notes, *self.notes])

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
            "causes": self._records(view).records(),
            "sentence": self.sentence,
            "notes": list(self.notes),
        }


def why(
    qrels: QrelsLike,
    run: RunLike,
    measure: MeasureLike,
    *,
    tools: str | Sequence[str] = (),
    numbers: Sequence[str | float] = (),
    other: RunLike | None = None,
) -> Why:
    """Why two numbers differ: the causes, whose contributions add up to the difference.

    `tools` are two tools (those of ``evaluate --tools``, ``"tiewise"`` for the expected value, or an order of ties),
    each perhaps with options: ``"trec_eval -c -l 2"``, ``"mteb --drop-self"``. `numbers` are two printed numbers, as
    text with all their digits: settings that give them are searched. `other` is a second run, compared as one of the
    `tools` reads both (default: ties by descending id, missing queries as 0).

    >>> qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5, "c": 0.1}}
    >>> why(qrels, run, "RR", tools=("trec_eval", "tiewise"))
    RR: trec_eval .5000, tiewise .7500, difference +.2500
    cause          trec_eval       tiewise             contribution
    order of ties  ids descending  mean of all orders        +.2500
    Order of ties: the whole difference.
    note: No effect: fractional labels.
    """
    chosen = resolve_measures(measure)
    names = (tools,) if isinstance(tools, str) else tuple(tools)
    if len(chosen) != 1:
        raise InputError("Give one measure.")
    if bool(numbers) + (other is not None) + (bool(names) and other is None) != 1:
        raise InputError("Give two tools, two numbers, or another run (perhaps with one tool).")
    judged = as_qrels(qrels)
    if other is not None:
        if len(names) > 1:
            raise InputError("Two runs are read by one tool. Give one.")
        return _explain_runs(judged, run, other, chosen[0], names[0] if names else "docid-desc")
    given = Numbers(Evaluation.of(judged, as_source(run), Options(), chosen))
    if numbers:
        return _explain_numbers(given, chosen[0], numbers)
    if len(names) != 2:
        raise InputError(f"Give two tools, not {len(names)}.")
    first, second = (_parse_tool(name, chosen[0], given.given) for name in names)
    return _explain(given, chosen[0], (names[0], names[1]), first, second)


def _explain(numbers: Numbers, measure: Measure, names: tuple[str, str], a: Settings, b: Settings) -> Why:
    values = _require(numbers, names[0], a), _require(numbers, names[1], b)
    return Why(measure.name, names, values, tuple(_causes(numbers, a, b)))


def _require(numbers: Numbers, name: str, settings: Settings) -> float:
    value = numbers.value(settings)
    if value is None:
        raise InputError(f"{name} prints no number for this run: no query is left.")
    return value


def _causes(numbers: Numbers, a: Settings, b: Settings) -> Iterator[Cause]:
    now, before = numbers.value(a) or 0.0, a
    for switch, settings in a.steps(b):
        value = numbers.value(settings)
        value = 0.0 if value is None else value  # over no query
        places = _describe(switch, before.get(switch)), _describe(switch, settings.get(switch))
        yield Cause(SWITCHES.get(switch, switch), *places, value - now)
        now, before = value, settings


def _describe(switch: str, position: Any) -> str:
    if switch == "depth" and position is not None:
        return f"first {position}"
    return POSITIONS.get(switch, {}).get(position) or (
        f"{position:g}" if isinstance(position, float) else str(position)
    )


def _parse_tool(text: str, measure: Measure, evaluation: Evaluation) -> Settings:
    """The settings of a tool with options, for a measure of a run."""
    words = shlex.split(text)
    name, flags = (words[0], words[1:]) if words else ("", [])
    turned: dict[str, Any] = {}
    while flags:
        flag = flags.pop(0)
        if flag not in FLAGS:
            raise InputError(f"Unknown option {flag!r} of {name}. Use {', '.join(FLAGS)}.")
        switch, position = FLAGS[flag]
        if position is None:
            if not flags:
                raise InputError(f"{flag} of {name} needs a value.")
            position = _convert(switch, flag, flags.pop(0))
        turned[switch] = position
    settings = _settings_of(name, measure, evaluation, turned)
    for switch, position in turned.items():
        if switch == "rel" and "rel" not in measure.params:
            raise InputError(f"{measure} has no label threshold: leave out -l.")
        settings = settings.turn(switch, position)
    return settings


def _convert(switch: str, flag: str, text: str) -> Any:
    if switch in ("missing", "no_relevant") and text not in ("zero", "skip"):
        raise InputError(f"{flag} is zero or skip, not {text!r}.")
    try:
        position = {"rel": float, "depth": int}.get(switch, str)(text)
    except ValueError:
        raise InputError(f"{flag} needs a number, not {text!r}.") from None
    if switch in ("depth", "score_dtype"):
        Options(**{switch: position})  # checks it
    return position


def _settings_of(name: str, measure: Measure, evaluation: Evaluation, turned: Mapping[str, Any]) -> Settings:
    if name == "tiewise":
        return Settings(measure)
    if name in ORDERS:
        return Settings(measure, order=name)
    if name not in TOOLS:
        raise InputError(f"Unknown tool {name!r}. Use tiewise, {', '.join(TOOLS)}; or an order: {', '.join(ORDERS)}.")
    tool = TOOLS[name]
    rule = tool.rule(measure)
    if rule is None:
        raise InputError(f"{name} does not have {measure}.")
    if rule.order is None:
        raise InputError(f"What {name} prints for {measure} cannot be reproduced: {rule.why}.")
    if rule.labels == "error" and not evaluation.qrels.has_whole_labels:
        raise InputError(f"{name} refuses labels that are not whole numbers.")
    if rule.missing == "error" and "missing" not in turned:
        if not evaluation.ties.present.all():
            raise InputError(f"{name} prints no mean if judged queries are missing from the run. Write '{name} -c'.")
        return Settings.of_rule(rule, measure).turn("missing", "zero")
    drops = tool.drops_self or (tool.in_some_tasks and bool(task_drops_self(evaluation.counted.source)))
    return Settings.of_rule(rule, measure, drop_self=drops)


# -- printed numbers ------------------------------------------------------------------------------------------------


def _explain_numbers(numbers: Numbers, measure: Measure, printed: Sequence[str | float]) -> Why:
    """The simplest settings that give both numbers within their digits: fewest switches beside those of a tool."""
    if len(printed) != 2:
        raise InputError(f"Give two numbers, not {len(printed)}.")
    wanted = [_parse_number(text, measure) for text in printed]
    tried: dict[Settings, tuple[str, int]] = {}
    matches: list[list[Settings]] = [[], []]
    for settings, name, turned in _candidates(numbers, measure):
        if turned == 2 and all(matches):
            break
        if settings in tried:
            continue
        tried[settings] = name, turned
        value = numbers.value(settings)
        for (x, half), found in zip(wanted, matches, strict=True):
            if value is not None and abs(value - x) <= half + ATOL:
                found.append(settings)
    values, texts = (wanted[0][0], wanted[1][0]), (str(printed[0]), str(printed[1]))
    if not all(matches):
        missing = [text for text, found in zip(texts, matches, strict=True) if not found]
        row = Cause("not explained", "", "", values[1] - values[0])
        note = f"{join_names(missing)}: not explained by any of {len(tried):,} settings: the tools, with up to two of "
        return Why(measure.name, texts, values, (row,), (f"{note}{', '.join(SWITCHES.values())}.",))

    def cost(pair: tuple[Settings, Settings]) -> tuple[int, int]:
        return tried[pair[0]][1] + tried[pair[1]][1], len(list(pair[0].steps(pair[1])))

    pairs = sorted(((a, b) for a in matches[0] for b in matches[1]), key=cost)
    a, b = pairs[0]
    causes = list(_causes(numbers, a, b))
    rounding = values[1] - values[0] - sum(one.contribution for one in causes)
    causes.append(Cause("printed digits", texts[0], texts[1], rounding))
    ties = sum(cost(pair) == cost(pairs[0]) for pair in pairs) - 1
    also = f" {ties:,} other pairs of settings are as simple." if ties else ""
    note = f"{texts[0]}: as {tried[a][0]}; {texts[1]}: as {tried[b][0]} (of {len(tried):,} settings).{also}"
    return Why(measure.name, texts, values, tuple(causes), (note,))


def _parse_number(text: str | float, measure: Measure) -> tuple[float, float]:
    """A printed number, of which one above 1 may be in per cent, and half a unit of its last digit."""
    try:
        number = Decimal(str(text))
    except InvalidOperation:
        raise InputError(f"{text!r} is not a number.") from None
    if not number.is_finite():
        raise InputError(f"{text!r} is not a finite number.")
    digits = -int(number.as_tuple().exponent)
    if number > 1 and measure.limits[1] == 1:
        number, digits = number / 100, digits + 2
    return float(number), 0.5 * 10.0**-digits


def _candidates(numbers: Numbers, measure: Measure) -> Iterator[tuple[Settings, str, int]]:
    """Settings, what they are called, and how many switches of them are not those of a tool: 0, then 1, then 2."""
    bases: dict[Settings, str] = {}
    for name in ("tiewise", *TOOLS):
        try:
            bases.setdefault(_parse_tool(name, measure, numbers.given), name)
        except InputError:  # it does not print this measure
            continue
    alternatives = list(_alternatives(numbers.given, measure))
    for count in range(3):
        for base, name in bases.items():
            for turns in combinations(alternatives, count):
                if len({switch for switch, _ in turns}) == count and all(base.get(s) != p for s, p in turns):
                    settings = base
                    for switch, position in turns:
                        settings = settings.turn(switch, position)
                    said = "".join(f", {SWITCHES.get(s, s)} {_describe(s, p)}" for s, p in turns)
                    yield settings, f"{name}{said}", count


def _alternatives(evaluation: Evaluation, measure: Measure) -> Iterable[tuple[str, Any]]:
    """Positions of switches that can change the number of a run."""
    label = evaluation.qrels.label
    if evaluation.self_queries:
        yield from (("drop_self", True), ("drop_self", False))
    if not evaluation.ties.present.all():
        yield from (("missing", "zero"), ("missing", "skip"))
    yield from (("no_relevant", "zero"), ("no_relevant", "skip"))
    if not evaluation.qrels.has_whole_labels:
        yield from (("labels", position) for position in ("any", "cut", "round"))
    for name, one in measure.params.items():
        if name == "rel":
            yield from (("rel", float(level)) for level in np.unique(label[label > 0])[:6])
        else:
            yield from ((name, choice) for choice in one.choices)
    yield from (("judged_only", True), ("retrieved_only", True))
    yield from (("depth", depth) for depth in (10, 100, 1000) if depth < evaluation.counted.longest)
    yield from (("score_dtype", dtype) for dtype in ("float64", "float32", "float16", "bfloat16"))
    yield from (("order", order) for order in (EXPECTED, "docid-desc", "docid-asc", "given"))


# -- two runs -------------------------------------------------------------------------------------------------------

Lists = dict[str, dict[str, float]]


def _explain_runs(qrels: Any, run: RunLike, other: RunLike, measure: Measure, tool: str) -> Why:
    """From a run to another over their common documents: queries, documents, ties of each, order of the scores."""
    sources = as_source(run), as_source(other)
    evaluations = [Evaluation.of(qrels, source, Options(), [measure]) for source in sources]
    settings = [_parse_tool(tool, measure, evaluation) for evaluation in evaluations]
    dtype = settings[0].score_dtype
    runs = (as_run(source) for source in sources)
    a, b = ((rows if dtype == "float64" else rows.projected(dtype)).to_dict() for rows in runs)
    in_b, in_a = _common(a, b), _common(b, a)
    lists = [
        {query: docs for query, docs in a.items() if query in b},
        in_b,
        _refine(in_b, in_a, in_b),
        _refine(in_a, in_b, in_b),
        in_a,
        {query: docs for query, docs in b.items() if query in a},
    ]
    values = [_require(Numbers(evaluations[0]), "The tool", settings[0])]
    for one in lists:
        found = Numbers(Evaluation.of(qrels, as_source(one), Options(), [measure])).value(settings[0])
        values.append(0.0 if found is None else found)
    values.append(_require(Numbers(evaluations[1]), "The tool", settings[1]))
    step = np.diff(values).tolist()
    only = [sum(q not in y for q in x) for x, y in ((a, b), (b, a))]
    documents = [sum(map(len, x.values())) - sum(map(len, y.values())) for x, y in ((lists[0], in_b), (lists[5], in_a))]
    causes = (
        Cause("queries in one run only", f"{only[0]:,}", f"{only[1]:,}", step[0] + step[6]),
        Cause("documents in one run only", f"{documents[0]:,}", f"{documents[1]:,}", step[1] + step[5]),
        Cause("ties of run", "in the tool's order", "as other orders them", step[2]),
        Cause("order of the scores", "", "", step[3]),
        Cause("ties of other", "as run orders them", "in the tool's order", step[4]),
    )
    return Why(measure.name, ("run", "other"), (values[0], values[-1]), causes)


def _common(a: Lists, b: Lists) -> Lists:
    """The documents of a that b has too."""
    return {query: {doc: x for doc, x in docs.items() if doc in b[query]} for query, docs in a.items() if query in b}


def _refine(first: Lists, then: Lists, listed: Lists) -> Lists:
    """Ranks by the first scores, ties by the others; documents that tie in both stay tied, in the order `listed`."""
    refined: Lists = {}
    for query, docs in listed.items():
        keys = {doc: (first[query][doc], then[query][doc]) for doc in docs}
        rank = {key: float(place) for place, key in enumerate(sorted(set(keys.values())))}
        refined[query] = {doc: rank[key] for doc, key in keys.items()}
    return refined
