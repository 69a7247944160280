"""`parse_tool`: the settings of a tool that is named with its options, as in ``trec_eval -c -l 2``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from tiewise.analysis.measuring import Evaluation
from tiewise.analysis.options import Options
from tiewise.analysis.settings import EXPECTED, Settings
from tiewise.errors import InputError
from tiewise.metrics.definition import Measure
from tiewise.metrics.tool_rules import TOOLS, Rule, Tool
from tiewise.results.wording import count_noun
from tiewise.ties.counted import Counted, RunSource
from tiewise.ties.orders import NO_RANKS, ORDERS

OURS = "tiewise"  #: our own number, the expected value
DEEPEST = 1000  #: the largest cutoff that BEIR and MTEB print by themselves

#: The options that may follow the name of a tool, each with its switch, and its position if it takes no value.
FLAGS: dict[str, tuple[str, Any]] = {
    "-c": ("missing", "zero"),
    "-J": ("judged_only", True),
    "-l": ("rel", None),
    "-M": ("depth", None),
    "--missing": ("missing", None),
    "--no-relevant": ("no_relevant", None),
    "--drop-self": ("drop_self", True),
    "--keep-self": ("drop_self", False),
    "--labels": ("labels", None),
    "--score-dtype": ("score_dtype", None),
    "--order": ("order", None),
}
CHOICES = {
    "missing": ("zero", "skip"),
    "no_relevant": ("zero", "skip"),
    "labels": ("any", "cut", "round"),
    "order": (EXPECTED, *ORDERS),
}


def parse_tool(text: str, measure: Measure, evaluation: Evaluation) -> Settings:
    """The settings of a tool with options, for a measure of a run."""
    name, turned = _read(text, measure)
    if (turned.get("order") or name) == "rank" and "rank" not in evaluation.ties.before:
        raise InputError(NO_RANKS)
    settings = _settings_of(name, measure, evaluation, is_missing_set="missing" in turned)
    for switch, position in turned.items():
        settings = settings.turn(switch, position)
    if settings.order == EXPECTED and settings.measure.judged_only and settings.depth is not None:
        raise InputError(f"{text}: -J and -M together have no expected value. Give an order: --order docid-desc.")
    return _simplify(settings, evaluation)


def _simplify(settings: Settings, evaluation: Evaluation) -> Settings:
    """The same without switches that cannot matter for this run and these judgments."""
    if not evaluation.self_queries:
        settings = settings.turn("drop_self", False)
    if evaluation.ties.present.all() and not settings.drop_self:
        settings = settings.turn("missing", "zero")
    if evaluation.qrels.has_whole_labels:
        settings = settings.turn("labels", "any")
        if evaluation.has_relevant(settings.measure).all() and not settings.retrieved_only:
            settings = settings.turn("no_relevant", "zero")
    return settings


def reads_ranks(texts: Iterable[str]) -> bool:
    """Whether one of some tools orders ties by the rank column."""
    return any("rank" in text.replace("=", " ").split() for text in texts)


def has_ranks(source: RunSource) -> bool:
    """Whether a run has a rank column."""
    return not isinstance(source, Counted) and source.rows().rank is not None


def describe_self(texts: Iterable[str], evaluation: Evaluation) -> Iterable[str]:
    """Notes on tools of which only some tasks drop documents with the id of their query."""
    for text in texts:
        tool, is_set = TOOLS.get(text.split()[0]), "-self" in text
        if tool is None or is_set or not evaluation.self_queries:
            continue
        if tool.drops_self_from(evaluation.counted.source) is None and evaluation.self_stands_first:
            lists = count_noun(evaluation.self_queries, "list")
            drop = f"some tasks of {tool.name} drop it: '{text} --drop-self'"
            yield f"{lists} hold the document with the id of the query; {drop}."


def _read(text: str, measure: Measure) -> tuple[str, dict[str, Any]]:
    """The name of a tool, and the switches that its options turn."""
    try:
        words = [part for word in shlex.split(text) for part in word.split("=", 1)]
    except ValueError:
        words = []
    if not words:
        raise InputError(f"{text!r} is not the name of a tool with its options, such as 'trec_eval -c -l 2'.")
    name, *flags = words
    turned: dict[str, Any] = {}
    while flags:
        flag = flags.pop(0)
        own = flag.removeprefix("--")
        if flag not in FLAGS and own not in measure.params:
            known = [*FLAGS, *(f"--{one}" for one in measure.params if one != "rel")]
            raise InputError(f"Unknown option {flag!r} of {name}. Use {', '.join(known)}.")
        switch, position = FLAGS.get(flag, (own, None))
        if switch == "rel" and "rel" not in measure.params:
            raise InputError(f"{measure} has no label threshold: leave out {flag}.")
        if position is None:
            if not flags:
                raise InputError(f"{flag} of {name} needs a value.")
            position = _convert(switch, flag, flags.pop(0), measure)
        turned[switch] = position
    return name, turned


def _convert(switch: str, flag: str, text: str, measure: Measure) -> Any:
    """The value of an option."""
    choices = CHOICES.get(switch, ())
    if choices and text not in choices:
        raise InputError(f"{flag} is {', '.join(choices[:-1])} or {choices[-1]}, not {text!r}.")
    is_number = switch == "depth" or isinstance(getattr(measure.params.get(switch), "default", ""), (int, float))
    try:
        position = int(text) if switch == "depth" else float(text) if is_number else text
    except ValueError:
        raise InputError(f"{flag} needs a number, not {text!r}.") from None
    if switch == "depth" or (switch == "score_dtype" and position != "float64"):
        return getattr(Options(**{switch: position}), switch)  # type: ignore[arg-type]  # checks it, and spells it out
    return position


def _settings_of(name: str, measure: Measure, evaluation: Evaluation, *, is_missing_set: bool) -> Settings:
    """The settings of a tool without options."""
    if name == OURS:
        return Settings(measure)
    if name in ORDERS:
        return Settings(measure, order=name)
    if name not in TOOLS:
        raise InputError(f"Unknown tool {name!r}. Use {OURS}, {', '.join(TOOLS)}; or an order: {', '.join(ORDERS)}.")
    tool = TOOLS[name]
    rule, measure = _rule_of(tool, measure, evaluation)
    if rule.labels == "error" and not evaluation.qrels.has_whole_labels:
        raise InputError(f"{name} refuses labels that are not whole numbers.")
    settings = Settings.of_rule(rule, measure, drop_self=bool(tool.drops_self_from(evaluation.counted.source)))
    if rule.missing == "error":
        if not is_missing_set and not evaluation.ties.present.all():
            raise InputError(f"{name} prints no mean if judged queries are missing from the run. Write '{name} -c'.")
        return settings.turn("missing", "zero")
    return settings


def _rule_of(tool: Tool, measure: Measure, evaluation: Evaluation) -> tuple[Rule, Measure]:
    """The rule of a tool for a measure; for one that it prints with a cutoff only, that of the deepest cutoff."""
    rule = tool.rule(measure)
    if rule is None and measure.takes_cutoff and measure.cutoff is None:
        measure = measure @ DEEPEST
        rule = tool.rule(measure)
    if rule is None:
        raise InputError(f"{tool.name} does not have {measure.uncut if measure.cutoff == DEEPEST else measure}.")
    if rule.is_ours:
        rule = rule.settle(evaluation.estimates([measure])[measure].mean())
    if rule.order is None:
        raise InputError(
            f"What {tool.name} prints for {measure} cannot be reproduced: {rule.why}. Give two printed numbers, "
            "without the name of this tool."
        )
    return rule, measure
