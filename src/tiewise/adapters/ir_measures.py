"""A drop-in for ir_measures, and a provider that brings Tiewise into ir_measures and PyTerrier.

    import tiewise.adapters.ir_measures as ir_measures

`calc_aggregate`, `iter_calc`, `calc` and `evaluator` take ir_measures' measures, ours, or names, and return what
ir_measures (0.4) returns, under the keys that they were given. Numbers are the same too: most measures read scores as
float32 and list tied documents by descending id, ``RR@k`` and ``Judged`` as float64 by ascending id.
``value="expected"`` returns the expectation over all orders of the ties instead. Measures that Tiewise does not have
are computed by ir_measures' own providers, which know one order only (``value="oblivious"``). Where ir_measures is
installed, all its other names are available here too, and its submodules, which are entered into `sys.modules` under
the name of this one; where it is not, measures here are Tiewise's.
Differences:

- ``ERR@k`` and ``nDCG(dcg="exp-log2")@k`` are not rounded to 5 decimals and need no perl, and ids need not be numbers;
- a number does not depend on the other measures of the call (ir_measures 0.4.3 may count ``NumRet`` on the lists of a
  ``judged_only`` measure, or compute ``nDCG`` with the gains of another nDCG, depending on Python's hash seed);
- labels may be fractions, and a document that is twice in a list is an error;
- ``NumRel(rel=2)``, ``RBP(rel=1)``, ``ERR``, ``RR(judged_only=True)@k`` and ``nDCG(dcg="exp-log2")`` need no extra;
- ``IPrec`` of an empty list is 0, not nan;
- diversity measures need no pyndeval, and take any cutoff; with one of them, documents have the highest of their labels
  for all measures (ir_measures uses the last one), and judgments without subtopics are an error. ``alpha_DCG@1`` and
  ``ERR_IA@1`` are divided by the number of subtopics as at other cutoffs, which ndeval forgets;
- ``RBP`` is not cut at rank 1,000, nor are the numbers of a `CwlMetric` beside it;
- a user of ``BPM`` who has found exactly ``T`` stops (in cwl_eval, a sum such as 2/3 + 1 + 1/3 may stay just below 2);
- ``Accuracy`` leaves out a query whose documents are all relevant, as one without a relevant document;
- ``Compat`` does not depend on the sign of scores, and its ideal ranking has ties in the order of the run.

The methods of ir_measures' own measures (``nDCG.calc_aggregate(qrels, run)``) and PyTerrier use its default pipeline:
``TiewiseProvider().install()`` puts Tiewise first there, for the measures that it has.
"""

from __future__ import annotations

import ast
import math
import sys
from collections import namedtuple
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np

from tiewise._version import __version__
from tiewise.adapters.tool_measures import FixedValue, ToolEvaluator, ToolMeasure, check_value
from tiewise.analysis.evaluating import evaluate
from tiewise.caching import cached_property
from tiewise.data.columns import Floats
from tiewise.data.judgments import Qrels
from tiewise.data.native import native
from tiewise.data.table import DOC_NAMES, Table
from tiewise.errors import InputError, MeasureError, TiewiseError, warn
from tiewise.io import as_qrels, as_run, read_qrels, read_run
from tiewise.io.types import QrelsLike, RunLike
from tiewise.metrics import catalogue as c
from tiewise.metrics import definition
from tiewise.metrics import names as registry
from tiewise.metrics.aggregation import GEOMETRIC_MEAN
from tiewise.metrics.catalogue.user_models import UserModel, explain_clipped_labels
from tiewise.metrics.grouped_judgments import Order
from tiewise.metrics.tool_rules import Rule, rule_for
from tiewise.results.optional import installed

__all__ = [
    "CalcResults",
    "CwlMetric",
    "Evaluator",
    "Metric",
    "Qrel",
    "ScoredDoc",
    "TiewiseProvider",
    "__version__",
    "calc",
    "calc_aggregate",
    "evaluator",
    "iter_calc",
    "parse_measure",
    "parse_trec_measure",
]


_theirs: Any = installed("ir_measures")  # None where it is not installed


def _named_tuple(name: str, *fields: str, **options: Any) -> Any:
    """ir_measures' own type where it is installed."""
    return getattr(_theirs, name, None) or namedtuple(name, fields, **options)


Qrel = _named_tuple("Qrel", "query_id", "doc_id", "relevance", "iteration", defaults=("0",))
ScoredDoc = _named_tuple("ScoredDoc", "query_id", "doc_id", "score")
Metric = _named_tuple("Metric", "query_id", "measure", "value")
CalcResults = _named_tuple("CalcResults", "aggregated", "per_query")
#: The numbers of cwl_eval beside the value of a user model, less the cost of a document, which is 1.
BESIDE = ("expected_total_utility", "expected_total_cost", "expected_items")
CwlMetric = _named_tuple("CwlMetric", *Metric._fields, BESIDE[0], "expected_cost", *BESIDE[1:])


# -- evaluation -----------------------------------------------------------------------------------------------


def calc_aggregate(
    measures: Iterable[Any], qrels: QrelsLike, run: RunLike, *, value: str = "oblivious"
) -> dict[Any, float]:
    """``{measure: number}``: the mean over the judged queries, 0 for those missing from the run; the sum of a count.

    >>> qrels = {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 1}}
    >>> run = {"q1": {"d1": 0.5, "d2": 0.5}}
    >>> calc_aggregate(["RR@10", "AP"], qrels, run)  # one puts d1 first, the other d2
    {'RR@10': 0.5, 'AP': 0.25}
    >>> calc_aggregate(["RR@10", "AP"], qrels, run, value="expected")
    {'RR@10': 0.375, 'AP': 0.375}
    """
    return Evaluator(measures, qrels, value=value).calc_aggregate(run)


def iter_calc(measures: Iterable[Any], qrels: QrelsLike, run: RunLike, *, value: str = "oblivious") -> Iterator[Any]:
    """A `Metric` ``(query_id, measure, value)`` for every measure and judged query, those of the run first.

    >>> [tuple(metric) for metric in iter_calc(["RR"], {"q1": {"d1": 1}, "q2": {"d1": 1}}, {"q2": {"d1": 0.5}})]
    [('q2', 'RR', 1.0), ('q1', 'RR', 0.0)]
    """
    return Evaluator(measures, qrels, value=value).iter_calc(run)


def calc(measures: Iterable[Any], qrels: QrelsLike, run: RunLike, *, value: str = "oblivious") -> Any:
    """`CalcResults`: what `calc_aggregate` and `iter_calc` return, as `aggregated` and `per_query`."""
    return Evaluator(measures, qrels, value=value).calc(run)


def evaluator(measures: Iterable[Any], qrels: QrelsLike, *, value: str = "oblivious") -> Evaluator:
    """An `Evaluator` of these measures against these judgments, for many runs."""
    return Evaluator(measures, qrels, value=value)


class Evaluator:
    """Evaluates runs against one set of judgments.

    Judgments and runs are ``{query: {document: number}}``, data frames or iterables of named tuples with ir_measures'
    columns (``query_id, doc_id, relevance`` and ``score``), or anything else that `tiewise.evaluate` takes.
    """

    value = FixedValue()

    def __init__(self, measures: Iterable[Any], qrels: QrelsLike, *, value: str = "oblivious"):
        if isinstance(measures, str):
            raise MeasureError(f"Give a list of measures, such as [{measures!r}], not one name.")
        measures = list(measures)
        for given in measures:
            if not isinstance(given, Hashable):
                raise MeasureError(f"{given!r} is not a measure. Give names, or measures of ir_measures.")
        check_value(value)
        self._value, self.measures = value, list(dict.fromkeys(measures))
        self._ours: dict[Any, ToolMeasure] = {}
        self._theirs: dict[Any, Any] = {}  # measures that ir_measures' own providers compute
        for given in self.measures:
            try:
                self._ours[given] = _resolve(given)
            except MeasureError as error:
                self._theirs[given] = _resolve_theirs(given, value, error)
        qrels = _as_list(qrels)
        self._qrels: Qrels | None = None
        self.qrel_qids: set[str] = set()
        if self._theirs:
            unique = list(dict.fromkeys(self._theirs.values()))
            self._providers = _theirs.DefaultPipeline.evaluator(unique, _for_providers(qrels, as_qrels))
            self.qrel_qids = set(self._providers.qrel_qids)
        if self._ours or not self._theirs:
            diverse = [given for given, tool in self._ours.items() if tool.measure.needs_subtopics]
            self._qrels = _read_judgments(qrels, subtopics=bool(diverse))
            for given in diverse:
                self._qrels.check_subtopics(given)
            for note in explain_clipped_labels((tool.measure for tool in self._ours.values()), self._qrels.label):
                warn(note)
            self.qrel_qids = set(self._qrels.queries)

    @cached_property
    def _beside(self) -> dict[Any, ToolMeasure]:
        """Measures for the numbers beside those of user models, by measure and name."""
        return {
            (given, name): replace(tool, measure=_Beside(tool.measure, name))
            for given, tool in self._ours.items()
            if isinstance(tool.measure, UserModel) and self.value in ("oblivious", "expected")
            for name in BESIDE
        }

    @cached_property
    def _alone(self) -> ToolEvaluator[Any]:
        assert self._qrels is not None
        return ToolEvaluator(self._qrels, self._ours, self.value)

    @cached_property
    def _with_beside(self) -> ToolEvaluator[Any]:
        assert self._qrels is not None
        return ToolEvaluator(self._qrels, self._ours | self._beside, self.value) if self._beside else self._alone

    def iter_calc(self, run: RunLike) -> Iterator[Any]:
        """A `Metric` for every measure and judged query: those of the run in its order, then the others at 0."""
        run = _as_list(run)
        if self._qrels is not None:
            beside = self._beside
            queries, columns = self._with_beside.evaluate(_to_lists(run, "score"))
            numbers = {given: column.tolist() for given, column in columns.items()}
            for place, query in enumerate(queries):
                for given, tool in self._ours.items():
                    number = numbers[given][place]
                    if not math.isnan(number):  # else it is not defined for this list
                        more = [numbers[given, name][place] for name in BESIDE if (given, name) in beside]
                        yield _make_metric(query, given, number, tool.measure, more)
            for given in sorted((one for one, tool in self._ours.items() if not tool.leaves_out_missing), key=str):
                for query in sorted(self.qrel_qids.difference(queries)):
                    yield Metric(query, given, 0.0)
        if self._theirs:
            for metric in self._providers.iter_calc(_for_providers(run, as_run)):
                for given, measure in self._theirs.items():
                    if measure == metric.measure:
                        yield metric._replace(measure=given)

    def calc_aggregate(self, run: RunLike) -> dict[Any, float]:
        """``{measure: number}``: the mean over the judged queries, or the sum of a count."""
        run, numbers = _as_list(run), dict[Any, float]()
        if self._qrels is not None:
            _, columns = self._alone.evaluate(_to_lists(run, "score"))
            numbers = {given: self._aggregate(given, column, run) for given, column in columns.items()}
        if self._theirs:
            theirs = self._providers.calc_aggregate(_for_providers(run, as_run))
            numbers |= {given: theirs[measure] for given, measure in self._theirs.items()}
        return {given: numbers[given] for given in self.measures}

    def calc(self, run: RunLike) -> Any:
        """`CalcResults` with both."""
        run = _as_list(run)
        metrics = list(self.iter_calc(run))
        numbers: dict[Any, list[float]] = {given: [] for given in self.measures}
        for metric in metrics:
            numbers[metric.measure].append(metric.value)
        aggregated = {given: self._aggregate(given, np.array(column), run) for given, column in numbers.items()}
        return CalcResults(aggregated, metrics)

    def _aggregate(self, given: Any, numbers: Floats, run: Any) -> float:
        if given in self._theirs:
            aggregator = self._theirs[given].aggregator()
            for number in numbers.tolist():
                aggregator.add(number)
            return aggregator.result()
        assert self._qrels is not None
        measure = self._ours[given].measure
        if measure.aggregation is GEOMETRIC_MEAN:  # which does not follow from the expectations of queries
            report = evaluate(self._qrels, _to_lists(run, "score"), measure, oblivious="ir_measures", complete=True)
            return float(getattr(report[measure], self.value))
        numbers = numbers[~np.isnan(numbers)]
        if self.value == "std":  # queries are independent: their variances add up
            total = float(np.sqrt(np.sum(numbers**2)))
        else:  # one after another, as ir_measures adds
            total = float(np.cumsum(numbers)[-1]) if len(numbers) else 0.0
        if measure.total:
            return total
        n = len(numbers) if self._ours[given].leaves_out_missing else len(self._qrels.queries)
        return total / n if n else float("nan")


def _make_metric(query: str, given: Any, number: float, measure: definition.Measure, beside: list[float]) -> Any:
    """A `Metric`; for user models a `CwlMetric`. For RBP, a reader sees 1/(1 − p) documents."""
    if isinstance(measure, type(c.RBP)) and measure.cutoff is None:
        items = 1 / (1 - measure.p)
        beside = [number * items, items, items]
    if not beside:
        return Metric(query, given, number)
    utility, cost, items = beside
    return CwlMetric(query, given, number, utility, 1.0, cost, items)


class _Beside(definition.Measure):
    """One of the numbers of cwl_eval beside the value of a user model."""

    additive = False
    sorted_extremes = False

    def __init__(self, model: UserModel, number: str):
        super().__init__(judged_only=model.judged_only)
        vars(self).update(model=model, number=number, gain=model.gain, kinds=model.kinds, depth=model.depth)

    model: UserModel
    number: str

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return self.model, self.number

    def values(self, order: Order) -> Floats:
        """The number of each query in one order."""
        reading = self.model.read(order)
        if self.number == "expected_items":
            return reading.ranks
        if self.number == "expected_total_cost":
            return reading.ranks - self.model.ranks * reading.unstopped
        return reading.gain - reading.unstopped * order.sum(self.model.found_gain(order))


# -- measures that only ir_measures has -----------------------------------------------------------------------


def _resolve_theirs(given: Any, value: str, error: MeasureError) -> Any:
    """The measure of ir_measures for one that Tiewise does not have; raises `error` if there is none."""
    measure = _parse_theirs(given)
    cutoff = None if measure is None else measure.params.get("cutoff")
    if cutoff is not None and (not isinstance(cutoff, int) or cutoff < 1):  # other tools stop the process
        raise MeasureError(f"{given}: a cutoff is a whole number of ranks from 1 on, not {cutoff!r}.")
    if measure is None or (measure.NAME in _MEASURES and not _theirs.DefaultPipeline.supports(measure)):
        raise error
    try:
        _theirs.DefaultPipeline.evaluator([measure], {})
    except ValueError as reason:
        raise MeasureError(
            f"Tiewise does not have {measure}, nor has ir_measures as it is installed: {reason}"
        ) from None
    if value != "oblivious":
        raise MeasureError(
            f"{given}: Tiewise does not have it, and ir_measures' own providers know one order of ties only. Leave it "
            "out, or ask for it with value='oblivious'."
        )
    return measure


def _parse_theirs(given: Any) -> Any:
    """A measure of ir_measures, or the one of this name; None if there is none, or if it lacks a parameter."""
    if _theirs is None:
        return None
    try:
        measure = _theirs.parse_measure(given) if isinstance(given, str) else given
        if isinstance(measure, _theirs.Measure):
            measure.validate_params()
            return measure
    except (ValueError, NameError, TypeError, AssertionError):
        pass
    return None


def _for_providers(given: Any, read: Callable[[Any], Table]) -> Any:
    """Judgments or a run as ir_measures takes them: its own forms as they are, all others as a dictionary."""
    columns = set(map(str, getattr(given, "columns", ())))
    # A measure that a user defined in ir_measures may look at other columns, and at no document at all.
    frame = hasattr(given, "itertuples") and "query_id" in columns and not columns & set(DOC_NAMES[1:])
    if isinstance(given, dict) or _is_named(given) or frame:
        return given
    table = read(given).to_dict()
    return {
        query: {doc: int(value) if value.is_integer() else value for doc, value in docs.items()}
        for query, docs in table.items()
    }


def _as_list(given: Any) -> Any:
    """Rows as a list, so that they can be read twice; anything else as it is."""
    has_names = isinstance(given, (str, Mapping, Table)) or hasattr(given, "columns")
    return given if has_names or not isinstance(given, Iterable) else list(given)


def _is_named(rows: Any) -> bool:
    """Whether these are named tuples, such as `Qrel` and `ScoredDoc`."""
    return isinstance(rows, list) and len(rows) > 0 and hasattr(rows[0], "_fields")


def _to_lists(given: Any, number: str) -> Any:
    """Named tuples as ``{query: {document: number}}``, or as rows if there is a problem; anything else as it is."""
    if not _is_named(given):
        return given
    names, fields, module = ("query_id", "doc_id", number), given[0]._fields, native()
    if module is not None and set(names) <= set(fields):
        table = module.lists_of_rows(given, *map(fields.index, names))
        if table is not None:
            return table
    return list(map(attrgetter(*names), given))


def _read_judgments(given: Any, *, subtopics: bool) -> Qrels:
    """Judgments; ir_measures' iteration is the subtopic, if there are several or a diversity measure needs them."""
    iterations: set[Any] = set()
    if hasattr(given, "columns"):
        iterations = set(given["iteration"]) if "iteration" in given.columns else set()
    elif _is_named(given):
        iterations = {getattr(row, "iteration", None) for row in given}
    if subtopics or len(iterations) > 1:
        return as_qrels(given, kind="diversity" if hasattr(given, "columns") or _is_named(given) else "adhoc")
    return as_qrels(_to_lists(given, "relevance"))


# -- measures -------------------------------------------------------------------------------------------------


def _ndcg(dcg: str = "log2", gains: str | None = None, **params: Any) -> definition.Measure:
    gains_of = {"log2": "linear", "exp-log2": "exp"}
    if dcg not in gains_of:
        raise MeasureError(f"nDCG: dcg={dcg!r} is not possible. Use 'log2' or 'exp-log2'.")
    return c.nDCG(gains=gains or gains_of[dcg], **params)


def _rbp(rel: int | None = None, **params: Any) -> definition.Measure:
    if rel is None:
        raise MeasureError("RBP without rel is graded, on an unnamed scale. Give RBP(rel=1), or tiewise.RBP.")
    return c.RBP(rel=rel, **params)


_NAMES = (
    "nDCG NDCG AP MAP RR MRR P Precision R Recall Success Rprec RPrec Bpref BPref RBP SetP SetR SetF SetAP NumRet "
    "NumRelRet NumRel NumQ infAP Accuracy Compat SDCG INSQ INST BPM NERR8 NERR9 NERR10 NERR11 alpha_DCG α_DCG "
    "alpha_nDCG α_nDCG ERR_IA nERR_IA NRBP nNRBP AP_IA MAP_IA P_IA StRecall"
)
#: Our measures by ir_measures' names.
_MEASURES: dict[str, definition.Measure] = {
    **{name: registry.parse(name) for name in _NAMES.split()},
    "ERR": c.ERR(max=4),
    "Judged": c.Judged(norm="cap"),
    "IPrec": c.IPrec(offset=0.9),  # as in trec_eval 9
    "SetRelP": c.SetRelativeP,
}
#: Where their parameters are not ours: our measure from theirs, by our name.
_TRANSLATED: dict[str, Callable[..., definition.Measure]] = {
    "nDCG": _ndcg,
    "RBP": _rbp,
    "SetP": lambda relative=False, **params: (c.SetRelativeP if relative else c.SetP)(**params),
    "SetF": lambda beta=1.0, **params: c.SetF(x=beta, **params),  # their beta is trec_eval's x, which is β²
    "NumRet": lambda rel=None: c.NumRet if rel is None else c.NumRelRet(rel=rel),
    "NumQ": lambda: c.NumQ,
}
#: RBP comes from cwl_eval, which keeps the order of the run.
_RULES = {"RBP": Rule("given", missing="zero")}


def _resolve(given: Any) -> ToolMeasure:
    """The measure of a name, of a measure of ir_measures, or of one of ours."""
    if isinstance(given, definition.Measure):
        return ToolMeasure(given, rule_for("ir_measures", given))
    if isinstance(given, str):
        return _resolve_name(given)
    if _theirs is not None and isinstance(given, _theirs.Measure):
        return _translate_measure(given)
    raise MeasureError(f"{given!r} is a {type(given).__name__}, no measure. Give a name such as 'nDCG@10'.")


@lru_cache(maxsize=1024)  # evaluators are made for every call in many loops
def _translate_measure(given: Any) -> ToolMeasure:
    """Our measure for a measure of ir_measures."""
    try:
        given.validate_params()
    except AssertionError as error:
        raise MeasureError(f"{given}: {str(error).split('=<object')[0]}.") from None
    if given.NAME not in _MEASURES:
        raise MeasureError(f"Tiewise does not have {given}.")
    return _translate(given.NAME, given.params)


def _resolve_name(text: str) -> ToolMeasure:
    """The measure of a name of ir_measures, or else of Tiewise.

    >>> _resolve_name("Judged@10").measure, _resolve_name("F1@10").measure
    (Judged(norm="cap")@10, F1@10)
    """
    parsed = _parse_name(text)
    if parsed is None or (parsed[0] == "RBP" and "rel" not in parsed[1]):
        return _resolve(registry.parse(text))
    return _translate(*parsed)


def _parse_name(text: str) -> tuple[str, dict[str, Any]] | None:
    """The name and the parameters of ``Name(key=value)@cutoff``; None if the name is not one of ir_measures'."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
        params: dict[str, Any] = {}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            params["cutoff"] = ast.literal_eval(node.right)
            node = node.left
        if isinstance(node, ast.Call) and not node.args:
            params |= {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
            node = node.func
    except (SyntaxError, ValueError):
        return None
    name = node.id if isinstance(node, ast.Name) else ""
    if name == "IPrec" and "cutoff" in params:
        params["recall"] = params.pop("cutoff")
    return (name, params) if name in _MEASURES else None


def _translate(name: str, params: Mapping[str, Any]) -> ToolMeasure:
    """Our measure for the name and the parameters of one of ir_measures."""
    params = dict(params)
    labels = params.pop("gains") if isinstance(params.get("gains"), Mapping) else {}
    try:
        measure = _TRANSLATED.get(_MEASURES[name].stem, _MEASURES[name])(**params)
    except TypeError:
        raise MeasureError(f"{name} does not take all of these parameters: {', '.join(params)}.") from None
    rule = _RULES.get(name) or rule_for("ir_measures", measure)
    return ToolMeasure(measure, rule, tuple(labels.items()))


def parse_measure(measure: Any) -> Any:
    """The measure of a name: ir_measures' where it is installed, else ours."""
    if _theirs is not None:
        return _theirs.parse_measure(measure)
    tool = _resolve(measure)
    if tool.labels:
        raise MeasureError(f"{measure}: a measure of Tiewise has no gains by label. Give the name itself.")
    return tool.measure


def parse_trec_measure(measure: str) -> list[Any]:
    """The measures of trec_eval's names, such as ``ndcg_cut.5,10``: ir_measures' where it is installed, else ours."""
    return list(registry.parse_all(measure)) if _theirs is None else list(_theirs.parse_trec_measure(measure))


#: The other names of ir_measures, where it is not installed.
_OTHERS: dict[str, Any] = {
    **_MEASURES,
    "Measure": definition.Measure,
    "read_trec_qrels": read_qrels,
    "read_trec_run": read_run,
}


def __getattr__(name: str) -> Any:
    """Every other name of ir_measures; where it is not installed, the measures of Tiewise."""
    if _theirs is not None and not name.startswith("__"):
        return getattr(_theirs, name)
    if name in _OTHERS:
        return _OTHERS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _submodules() -> dict[str, Any]:
    """The modules of ir_measures by name; where it is not installed, this one in the place of its public ones."""
    if _theirs is None:
        return dict.fromkeys(("measures", "util"), sys.modules[__name__])
    loaded = [(name.partition("."), module) for name, module in sys.modules.items()]
    return {name: module for (package, _, name), module in loaded if package == "ir_measures" and name}


# ``from tiewise.adapters.ir_measures.measures import nDCG`` finds a module here, as ``import os.path`` does.
sys.modules |= {f"{__name__}.{name}": module for name, module in _submodules().items()}

__all__ += sorted({*_OTHERS, *getattr(_theirs, "__all__", ())}.difference(__all__))


# -- the provider ---------------------------------------------------------------------------------------------

_Provider: Any = object if _theirs is None else _theirs.providers.Provider


class TiewiseProvider(_Provider):  # type: ignore[misc]  # its base is known when ir_measures is
    """Tiewise as a provider of ir_measures: once installed, ir_measures and PyTerrier use it for the measures it has.

    `value` is ``"oblivious"``, ``"expected"``, ``"minimum"`` or ``"maximum"``, but not a bias or a standard deviation:
    ir_measures would mix them with plain values of other providers, and take the mean of standard deviations.

    >>> import ir_measures
    >>> qrels, run = {"q": {"a": 1, "b": 0}}, {"q": {"a": 0.5, "b": 0.5}}
    >>> provider = TiewiseProvider(value="expected").install()
    >>> ir_measures.calc_aggregate([ir_measures.RR], qrels, run)
    {RR: 0.75}
    >>> provider.uninstall()
    >>> ir_measures.calc_aggregate([ir_measures.RR], qrels, run)
    {RR: 0.5}
    """

    NAME = "tiewise"

    def __init__(self, value: str = "oblivious"):
        if _theirs is None:
            raise TiewiseError("TiewiseProvider serves ir_measures, which is not installed: pip install ir_measures")
        super().__init__()
        check_value(value)
        if value in ("std", "bias"):
            raise InputError(
                f"A provider gives values of measures, and value={value!r} is none: ir_measures would mix it with "
                "values of other providers, and take its mean. Use tiewise.evaluate, or calc_aggregate, calc and "
                "iter_calc of tiewise.adapters.ir_measures with this value."
            )
        self.value = value

    def supports(self, measure: Any) -> bool:
        """Whether Tiewise has a measure with these parameters."""
        try:
            _resolve(measure)
        except MeasureError:
            return False
        return True

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> Evaluator:
        # ir_measures gives a set, whose order differs between processes, and PyTerrier makes columns of it.
        return Evaluator(sorted(measures, key=str), qrels, value=self.value)

    def install(self) -> TiewiseProvider:
        """Put this provider first in ir_measures' default pipeline, in place of any other of this class."""
        self.uninstall()
        _theirs.DefaultPipeline.providers.insert(0, self)
        return self

    @staticmethod
    def uninstall() -> None:
        """Remove providers of this class from the default pipeline."""
        pipeline = _theirs.DefaultPipeline
        pipeline.providers = [other for other in pipeline.providers if not isinstance(other, TiewiseProvider)]
