"""A drop-in for pytrec_eval: change the import line, keep the rest.

    import tiewise.adapters.pytrec_eval as pytrec_eval

Names, expansion, shapes and numbers are pytrec_eval's (0.5, trec_eval 9.0.8): scores are read as float32, and tied
documents are listed by descending id. ``RelevanceEvaluator(…, value="expected")`` returns the expectation over all
orders of the ties instead, with scores as float64, as `tiewise.evaluate` does. Differences:

- labels may be fractions, scores any number that NumPy knows, `relevance_level` any number above 0;
- a name that crashes pytrec_eval (``P_0``, ``ndcg_10``) or that it misreads (``P_5x``) is an error; a number that it
  ignores (``recip_rank_10``) is ignored with a warning; a query that has only negative labels scores 0;
- ``iprec_at_recall`` and ``11pt_avg`` of an empty list are 0 where pytrec_eval has nan; ``runid`` is always 0;
- statistics that have no closed form are enumerated, or sampled where ties have too many arrangements.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise._version import __version__
from tiewise.adapters.tool_measures import FixedValue, ToolEvaluator, ToolMeasure, check_value
from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.data.table import Table
from tiewise.errors import InputError, MeasureError, warn
from tiewise.io import as_qrels
from tiewise.io.formats import Layout
from tiewise.io.text import read_columns
from tiewise.metrics import catalogue as c
from tiewise.metrics.definition import Measure
from tiewise.metrics.grouped_judgments import GroupedJudgments
from tiewise.metrics.tool_rules import TOOLS
from tiewise.metrics.trec_eval_names import NAMES, NEW_NAMES, NICKNAMES, OFFSETS, TrecName
from tiewise.results.wording import list_examples

__all__ = [
    "RelevanceEvaluator",
    "__version__",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]


class _Text(Measure):
    """0 for what trec_eval prints as text."""

    takes_cutoff = False
    distinguishes_unjudged = False

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        """No rank matters."""
        return np.zeros(q.n_queries)


#: Where pytrec_eval computes something else than trec_eval 10.
_OWN: dict[str, Measure] = {
    "runid": _Text(),
    "relstring": _Text(),
    "gm_map": c.LogAP,
    "gm_bpref": c.LogBpref,
    "iprec_at_recall": c.IPrec(offset=OFFSETS[9]),
    "11pt_avg": c.ElevenPointAP(offset=OFFSETS[9]),
}


#: With a number after these names, pytrec_eval aborts, returns 0 or takes other points.
_WITHOUT_PARAMETERS = ("ndcg", "G", "Rndcg", "ndcg_rel", "utility", "11pt_avg")

_NAMES = {
    name: entry._replace(measure=_OWN.get(name, entry.measure))
    for name, entry in NAMES.items()
    if name not in NEW_NAMES
}
_NICKNAMES = {nickname: [name for name in names if name in _NAMES] for nickname, names in NICKNAMES.items()}

#: The names of measures, without their parameters.
supported_measures: set[str] = set(_NAMES)

#: The nicknames, each with its measures.
supported_nicknames: dict[str, set[str]] = {nickname: set(names) for nickname, names in _NICKNAMES.items()}


class RelevanceEvaluator:
    """Evaluates runs against one set of judgments, as pytrec_eval's class of this name does.

    `query_relevance` is ``{query: {document: label}}``, or any other qrels that `tiewise.evaluate` takes. `measures`
    are trec_eval's names: ``map``, ``ndcg_cut`` (nine cutoffs), ``ndcg_cut_10``, ``ndcg_cut.5,10``, or a nickname such
    as ``official``. `value` is the number to return: ``"oblivious"``, the number that pytrec_eval gives,
    ``"expected"``, ``"minimum"``, ``"maximum"`` or ``"std"`` over all orders of tied documents, or ``"bias"``
    (oblivious − expected).

    >>> qrel = {"q1": {"d1": 1, "d2": 0}}
    >>> run = {"q1": {"d1": 0.5, "d2": 0.5}}
    >>> RelevanceEvaluator(qrel, {"map", "recip_rank"}).evaluate(run)
    {'q1': {'map': 0.5, 'recip_rank': 0.5}}
    >>> RelevanceEvaluator(qrel, {"map", "recip_rank"}, value="expected").evaluate(run)
    {'q1': {'map': 0.75, 'recip_rank': 0.75}}
    """

    value = FixedValue()

    def __init__(
        self,
        query_relevance: Any,
        measures: Iterable[str],
        relevance_level: float = 1,
        judged_docs_only_flag: bool = False,
        *,
        value: str = "oblivious",
    ):
        check_value(value)
        self._value = value
        qrels = as_qrels(query_relevance)
        named = _expand_names(measures, _check_level(relevance_level), bool(judged_docs_only_flag))
        self._evaluator = ToolEvaluator(qrels, named, value)

    def evaluate(self, scores: Any) -> dict[str, dict[str, float]]:
        """``{query: {name: number}}`` of a run ``{query: {document: score}}``, or any other run that Tiewise reads.

        Queries are those of the run that were judged, in the order of the run. Names are in trec_eval's order.
        """
        return self._evaluator.rows(scores)


def compute_aggregated_measure(measure: str, values: list[float]) -> float:
    """One number for all queries: the sum of a count, the geometric mean for ``gm_…``, else the mean.

    >>> compute_aggregated_measure("map", [0.5, 1.0]), compute_aggregated_measure("num_ret", [2, 3])
    (0.75, 5.0)
    """
    if measure.startswith("num_"):
        return float(np.sum(values))
    if measure.startswith("gm_"):
        return float(np.exp(np.sum(values) / len(values)))
    return float(np.mean(values))


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """``{query: {document: score}}`` from the lines of a TREC run: query, Q0, document, rank, score, tag.

    >>> parse_run(["q1 Q0 d1 1 0.5 bm25", "q1 Q0 d2 2 0.25 bm25"])["q1"]
    {'d1': 0.5, 'd2': 0.25}
    """
    return _parse_lines(Run, f_run, ("query", "Q0", "document", "rank", "score", "tag"))


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, Any]]:
    """``{query: {document: label}}`` from the lines of TREC qrels: query, iteration, document, label.

    Labels are integers; a fraction stays one.

    >>> parse_qrel(["q1 0 d1 2", "q1 0 d2 0.5"])["q1"]
    {'d1': 2, 'd2': 0.5}
    """
    table = _parse_lines(Qrels, f_qrel, ("query", "iteration", "document", "label"))
    for labels in table.values():
        labels.update((doc, int(label)) for doc, label in labels.items() if label.is_integer())
    return table


# -- names ----------------------------------------------------------------------------------------------------


def _expand_names(names: Iterable[str], level: float, judged_only: bool) -> dict[str, ToolMeasure]:
    """The measures by key, in trec_eval's order."""
    if isinstance(names, str):
        raise MeasureError(f"measures={names!r}: give the names in a set or a list, such as {{{names!r}}}.")
    return _expand_all(tuple(sorted(set(names), key=str)), level, judged_only)


@lru_cache(maxsize=64)  # evaluators are made for every call in many loops
def _expand_all(names: tuple[str, ...], level: float, judged_only: bool) -> dict[str, ToolMeasure]:
    parameters = {name: set[float]() for given in names for name in _NICKNAMES.get(given, ())}
    for name, numbers in (_split(given) for given in names if given not in _NICKNAMES):
        parameters.setdefault(name, set()).update(numbers)
    return {
        key: ToolMeasure(measure(judged_only=judged_only), TOOLS["pytrec_eval"].usual)
        for name, entry in _NAMES.items()
        if name in parameters
        for key, measure in _expand(name, entry, parameters[name], level)
    }


def _expand(name: str, entry: TrecName, numbers: set[float], level: float) -> Iterator[tuple[str, Measure]]:
    """The keys of a name and their measures."""
    if entry.joint and len(numbers) > 1:
        given = list_examples(f"{number:g}" for number in sorted(numbers))
        raise MeasureError(f"{name} takes one parameter, not {given}: it has one key.")
    text = ",".join(map(str, numbers)) or None
    for key, measure in entry.expand(name, text, rel=level):
        assert measure is not None, "names of texts are measures here"
        yield (name if entry.joint else key), measure


def _check_level(level: Any) -> float:
    """A relevance level above 0: trec_eval reads a negative one as four billion."""
    if not isinstance(level, Real) or not 0 < float(level) < np.inf:
        raise InputError(f"relevance_level={level!r}: give the lowest label that is relevant, a number above 0.")
    return float(level)


def _split(given: str) -> tuple[str, list[float]]:
    """A name and its parameters: ``ndcg_cut.5,10`` is ``("ndcg_cut", [5, 10])``."""
    match = re.fullmatch(r"(.+?)[._](\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)*)", given)
    name, texts = (given, []) if given in _NAMES or not match else (match[1], match[2].split(","))
    if name not in _NAMES:
        raise MeasureError(
            f"unsupported measure {given}: pytrec_eval has none of that name. Known: {', '.join(_NAMES)}."
        )
    entry = _NAMES[name]
    if entry.each == "cutoff":
        if not all(text.isdecimal() and int(text) for text in texts):
            raise MeasureError(f"{given}: a cutoff is a whole number from 1 on.")
        return name, list(map(int, texts))
    if texts and name in _WITHOUT_PARAMETERS:
        raise MeasureError(f"{given}: {name} takes no parameter." + " Write ndcg_cut_10." * (name == "ndcg"))
    if texts and not entry.each and not entry.joint:
        warn(f"{given} is {name}: trec_eval ignores the number.")
        return name, []
    return name, list(map(float, texts))


# -- files ----------------------------------------------------------------------------------------------------


def _parse_lines(cls: type[Table], lines: Iterable[str], columns: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """``{query: {document: number}}`` from an open file or from lines; as theirs, a defaultdict."""
    name = str(getattr(lines, "name", cls.noun))
    text = "".join(f"{line.rstrip()}\n" for line in lines)
    found = read_columns([text.encode()] if text else [], Layout("trec", columns, cls.nan_advice), name)
    read = found.query, found.queries, found.documents, found.value
    table = cls.from_codes(*read, where=lambda row: f"{name}:{found.line(row)}")
    return defaultdict(dict, table.to_dict())
