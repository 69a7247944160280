"""A drop-in for pytrec_eval: change the import line, keep the rest.

    import tiewise.adapters.pytrec_eval as pytrec_eval

Names, expansion, shapes and numbers are pytrec_eval's (0.5, trec_eval 9.0.8): scores are read as float32, and tied
documents are listed by descending id. ``RelevanceEvaluator(…, value="expected")`` returns the expectation over all
orders of the ties instead, with scores as float64, as `tiewise.evaluate` does. Differences:

- labels may be fractions, scores any number that NumPy knows, `relevance_level` any number above 0;
- a name that crashes pytrec_eval (``P_0``, ``ndcg_10``) or that it misreads (``P_5x``) is an error; a number that it
  ignores (``recip_rank_10``) is ignored with a warning; a query that has only negative labels scores 0;
- ``iprec_at_recall`` and ``11pt_avg`` of an empty list are 0 where pytrec_eval has nan;
- ``G``, ``Rndcg``, ``ndcg_rel`` and ``relstring`` are missing: asked for by name they are an error, and a nickname
  (``all_trec``) leaves them out with one warning. `supported_measures` lists the measures that exist.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from tiewise._version import __version__
from tiewise.adapters.tool_measures import ToolMeasure, check_value, evaluate_queries
from tiewise.data.columns import Floats
from tiewise.data.runs import Qrels, Run, Table
from tiewise.errors import InputError, MeasureError, TiewiseWarning
from tiewise.io import as_qrels
from tiewise.io.formats import Layout
from tiewise.io.text import read_columns
from tiewise.metrics import catalogue as c
from tiewise.metrics import trec_measures as t
from tiewise.metrics.definition import Measure
from tiewise.metrics.names import TREC_CUTOFFS
from tiewise.metrics.tool_rules import TOOLS
from tiewise.tables.wording import list_examples

__all__ = [
    "RelevanceEvaluator",
    "__version__",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]

_TENTHS = tuple(i / 10 for i in range(11))


def _log(value: Floats) -> Floats:
    """What trec_eval averages for a geometric mean."""
    log: Floats = np.log(np.maximum(value, 0.00001))
    return log


@dataclass(frozen=True)
class _Name:
    """A name of trec_eval: its measure, and the parameter that a number after the name sets."""

    measure: Measure
    parameter: str = ""  # "cutoff", or a parameter of the measure; empty: none
    defaults: tuple[float, ...] = ()
    key: str = "{}"  # the key of a name and a parameter
    transform: Callable[[Floats], Floats] | None = None

    def make(self, level: float, value: float | None) -> Measure:
        """The measure for a relevance level and a value of the parameter."""
        params: dict[str, Any] = {"rel": level} if "rel" in self.measure.params else {}
        return self.measure(**(params | {self.parameter: value} if self.parameter else params))

    def keys(self, name: str, parameters: set[str]) -> Iterator[tuple[str, float | None]]:
        """The keys of a name, each with the value of the parameter, ascending."""
        if self.parameter == "cutoff":
            for text in parameters:
                if not text.isdecimal() or int(text) < 1:
                    raise MeasureError(f"{name}_{text}: a cutoff is a whole number from 1 on.")
        if self.key == "{}" and len(parameters) > 1:
            raise MeasureError(f"{name} takes one parameter, not {list_examples(sorted(parameters))}: it has one key.")
        values = sorted(map(int if self.parameter == "cutoff" else float, parameters)) or self.defaults or (None,)
        return ((self.key.format(name, value), value) for value in values)


def _at_cutoffs(measure: Measure, defaults: tuple[int, ...] = TREC_CUTOFFS) -> _Name:
    return _Name(measure, "cutoff", defaults, "{}_{}")


#: Every name of trec_eval in its order; None: Tiewise does not have it.
_NAMES: dict[str, _Name | None] = {
    "runid": _Name(t.RunId()),
    "num_q": _Name(t.NumQ()),
    "num_ret": _Name(c.NumRet),
    "num_rel": _Name(c.NumRel),
    "num_rel_ret": _Name(c.NumRelRet),
    "map": _Name(c.AP),
    "gm_map": _Name(c.AP, transform=_log),
    "Rprec": _Name(c.Rprec),
    "bpref": _Name(c.Bpref),
    "recip_rank": _Name(c.RR),
    "iprec_at_recall": _Name(t.IPrec(), "recall", _TENTHS, "{}_{:.2f}"),
    "P": _at_cutoffs(c.P),
    "relstring": None,
    "recall": _at_cutoffs(c.R),
    "infAP": _Name(t.InfAP()),
    "gm_bpref": _Name(c.Bpref, transform=_log),
    "Rprec_mult": _Name(t.RprecMult(), "multiple", tuple(i / 5 for i in range(1, 11)), "{}_{:.2f}"),
    "utility": _Name(t.Utility()),
    "11pt_avg": _Name(t.ElevenPointAP()),
    "binG": _Name(t.BinG()),
    "G": None,
    "ndcg": _Name(c.nDCG),
    "ndcg_rel": None,
    "Rndcg": None,
    "ndcg_cut": _at_cutoffs(c.nDCG),
    "map_cut": _at_cutoffs(c.AP),
    "relative_P": _at_cutoffs(t.RelativeP()),
    "success": _at_cutoffs(c.Success, (1, 5, 10)),
    "set_P": _Name(c.SetP),
    "set_relative_P": _Name(t.SetRelP()),
    "set_recall": _Name(c.SetR),
    "set_map": _Name(t.SetAP()),
    "set_F": _Name(t.SetF(), "x", (1.0,)),
    "num_nonrel_judged_ret": _Name(t.NumNonrelRet()),
}

_OFFICIAL = "runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P"
_SET = "runid num_q num_ret num_rel num_rel_ret utility set_P set_relative_P set_recall set_map set_F"
_NICKNAMES = {"official": _OFFICIAL.split(), "set": _SET.split(), "all_trec": list(_NAMES)}

#: The names of measures, without their parameters.
supported_measures: set[str] = {name for name, known in _NAMES.items() if known}

#: The nicknames, each with its supported measures.
supported_nicknames: dict[str, set[str]] = {
    nickname: supported_measures.intersection(names) for nickname, names in _NICKNAMES.items()
}


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
        self.value = value
        self._qrels = as_qrels(query_relevance)
        self._measures = _expand_names(measures, _check_level(relevance_level), bool(judged_docs_only_flag), value)

    def evaluate(self, scores: Any) -> dict[str, dict[str, float]]:
        """``{query: {name: number}}`` of a run ``{query: {document: score}}``, or any other run that Tiewise reads.

        Queries are those of the run that were judged, in the order of the run. Names are in trec_eval's order.
        """
        queries, numbers = evaluate_queries(self._qrels, scores, self._measures, self.value)
        if not numbers:
            return {query: {} for query in queries}
        rows = zip(*(column.tolist() for column in numbers.values()), strict=True)
        return {query: dict(zip(numbers, row, strict=True)) for query, row in zip(queries, rows, strict=True)}


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


def _expand_names(names: Iterable[str], level: float, judged_only: bool, value: str) -> dict[str, ToolMeasure]:
    """The measures by key, in trec_eval's order."""
    if isinstance(names, str):
        raise MeasureError(f"measures={names!r}: give the names in a set or a list, such as {{{names!r}}}.")
    names = list(names)
    parameters = {name: set[str]() for given in names for name in _NICKNAMES.get(given, ())}
    explicit = [_split(given) for given in names if given not in _NICKNAMES]
    for name, numbers in explicit:
        parameters.setdefault(name, set()).update(numbers)
    measures: dict[str, ToolMeasure] = {}
    skipped: dict[str, None] = {}  # names, in order
    for name in filter(parameters.__contains__, _NAMES):
        entry = _NAMES[name]
        if entry is None:
            skipped[name] = None
            continue
        for key, parameter in entry.keys(name, parameters[name]):
            measure = entry.make(level, parameter)
            tool = ToolMeasure(measure(judged_only=judged_only), TOOLS["pytrec_eval"].usual, transform=entry.transform)
            if name in dict(explicit):
                tool.check(name, value)
            if value in tool.known_values:
                measures[key] = tool
            else:
                skipped[name] = None
    if skipped:
        reason = "Tiewise does not have them" if value == "oblivious" else f"no exact value={value!r} of them is known"
        warnings.warn(f"Left out, since {reason}: {', '.join(skipped)}.", TiewiseWarning, stacklevel=3)
    return measures


def _check_level(level: Any) -> float:
    """A relevance level above 0: trec_eval reads a negative one as four billion."""
    if not isinstance(level, Real) or not 0 < float(level) < np.inf:
        raise InputError(f"relevance_level={level!r}: give the lowest label that is relevant, a number above 0.")
    return float(level)


def _split(given: str) -> tuple[str, list[str]]:
    """A name and its parameters: ``ndcg_cut.5,10`` is ``("ndcg_cut", ["5", "10"])``."""
    match = re.fullmatch(r"(.+?)[._](\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)*)", given)
    name, parameters = (given, []) if given in _NAMES or not match else (match[1], match[2].split(","))
    if name not in _NAMES:
        known = ", ".join(name for name, entry in _NAMES.items() if entry)
        raise MeasureError(f"unsupported measure {given}: trec_eval has none of that name. Known: {known}.")
    entry = _NAMES[name]
    if entry is None:
        raise MeasureError(f"unsupported measure {given}: Tiewise does not have {name}. Keep pytrec_eval for it.")
    if parameters and not entry.parameter:
        if name in ("ndcg", "utility", "11pt_avg"):  # pytrec_eval aborts, returns 0, takes other points
            raise MeasureError(f"{given}: {name} takes no parameter." + " Write ndcg_cut_10." * (name == "ndcg"))
        warnings.warn(f"{given} is {name}: trec_eval ignores the number.", TiewiseWarning, stacklevel=4)
        parameters = []
    return name, parameters


# -- files ----------------------------------------------------------------------------------------------------


def _parse_lines(cls: type[Table], lines: Iterable[str], columns: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """``{query: {document: number}}`` from an open file or from lines; as theirs, a defaultdict."""
    name = str(getattr(lines, "name", cls.noun))
    text = "".join(f"{line.rstrip()}\n" for line in lines)
    found = read_columns([text.encode()] if text else [], Layout("trec", columns, cls.nan_advice), name)
    read = found.query, found.queries, found.documents, found.value
    table = cls.from_codes(*read, where=lambda row: f"{name}:{found.line(row)}")
    return defaultdict(dict, table.to_dict())
