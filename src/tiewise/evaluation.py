"""`evaluate`: judgments and a run in, a `Report` out, with every measure as an estimate over the orders of ties."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tiewise import engine
from tiewise._version import __version__
from tiewise.columns import Floats, data_frame, need
from tiewise.data import MappedRun, Qrels, Run
from tiewise.errors import CutWarning, InputError, listed
from tiewise.estimate import Estimate, Estimates
from tiewise.io import as_qrels, as_run
from tiewise.profiles import TOOLS, Rule, Tool, rule_for
from tiewise.registry import Measure, parse, parse_all
from tiewise.ties import TieGroups, tie_groups

__all__ = ["DEFAULT_MEASURES", "Provenance", "Report", "ToolTable", "ToolValue", "evaluate"]

#: What is measured when nothing is asked for.
DEFAULT_MEASURES = ("nDCG@10", "AP", "RR", "P@10", "R@100")

#: From here on, an order is so far from random that it must know the labels.
KNOWING = 4.0

_FIELDS = ("expected", "minimum", "maximum", "std", "oblivious", "bias", "range", "z", "residual")


def evaluate(
    qrels: Any,
    run: Any,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    oblivious: str | None = "trec_eval",
    missing: Literal["zero", "skip", "error"] = "zero",
    no_relevant: Literal["zero", "skip"] = "zero",
    score_dtype: str | None = None,
    depth: int | None = None,
    judged_only: bool = False,
    complete: bool = False,
) -> Report:
    """A `Report` of the measures of a run, each exact over all orders of its tied documents.

    `qrels` and `run` are a path, ``{query: {document: number}}``, a data frame, rows of three values, or `Qrels` and
    `Run`; a run may also be `TieGroups`.

    - `oblivious`: the order whose value stands beside the expectation: the name of a tool, or ``"given"``,
      ``"docid-desc"``, ``"docid-asc"``, ``"rank"`` (the file's rank column); None for none.
    - `missing`: judged queries that the run does not have score 0 (``"zero"``), are left out (``"skip"``), or are an
      ``"error"``. `no_relevant`: the same for queries without a relevant document.
    - `score_dtype`: read scores as ``"float32"``, ``"float16"``, ``"bfloat16"`` or ``"decimal:3"`` first.
    - `depth`: only the first ranks count. `judged_only`: unjudged documents are taken out of the lists first.
    - `complete`: the lists are whole, so one that ends inside a tie group was not cut there.

    >>> import tiewise as tw
    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}
    >>> run = {"q1": {"a": 0.5, "b": 0.5, "x": 0.1}, "q2": {"c": 0.9, "y": 0.8}}
    >>> report = tw.evaluate(qrels, run, ["RR", "nDCG@10"])
    >>> report["RR"]
    RR 0.8750 [0.7500, 1.0000]
    >>> report.per_query("RR")["q1"].oblivious  # trec_eval lists tied documents by descending id: b, a
    0.5
    """
    chosen = parse_all(measures)
    if missing not in ("zero", "skip", "error") or no_relevant not in ("zero", "skip"):
        raise InputError("missing is 'zero', 'skip' or 'error'; no_relevant is 'zero' or 'skip'.")
    if depth is not None and depth < 1:
        raise InputError(f"depth is a number of ranks from 1 on, not {depth}.")
    options = {
        "oblivious": oblivious,
        "missing": missing,
        "no_relevant": no_relevant,
        "score_dtype": score_dtype,
        "depth": depth,
        "judged_only": judged_only,
        "complete": complete,
    }
    inputs = _Inputs(qrels, run, score_dtype=score_dtype, judged_only=judged_only, depth=depth)
    rules = {measure: _order_of(rule_for(oblivious, measure)) for measure in chosen} if oblivious else {}
    inputs.count({rule for rule in rules.values() if rule})
    if inputs.run is not None:
        _check_found(inputs.qrels, inputs.run, inputs.ties)
    absent = [q for q, there in zip(inputs.qrels.queries, inputs.ties.present.tolist(), strict=True) if not there]
    if absent and missing == "error":
        raise InputError(f"{len(absent)} judged queries are missing from the run: {listed(absent)}.")
    found = {measure: _measured(measure, inputs, rules.get(measure), complete) for measure in chosen}
    kept = {measure: found[measure].where(_kept(measure, inputs, missing, no_relevant)) for measure in chosen}
    report = Report(kept, inputs, options)
    if not complete and report.cut_lists:
        warnings.warn(report.cut_note, CutWarning, stacklevel=2)
    return report


def _order_of(rule: Rule) -> Rule:
    """A rule's order and score type alone: `bias` is the effect of an order, not of another definition."""
    return Rule(rule.order, rule.dtype)


class _Inputs:
    """Judgments and a run, with tie groups counted once for every reading of the scores."""

    def __init__(self, qrels: Any, run: Any, *, score_dtype: str | None, judged_only: bool, depth: int | None):
        self.depth, self.dtype = depth, score_dtype
        self.run: Run | MappedRun | None = None
        self.unprojected: Run | MappedRun | None = None
        self._urns: dict[str, engine.Urns] = {}
        if isinstance(run, TieGroups):
            if score_dtype or judged_only:
                raise InputError("Tie groups hold counts, not scores: give score_dtype or judged_only a run.")
            self.qrels = run.qrels
            self._urns["float64"] = engine.Urns(run.to_depth(depth))
            return
        self.qrels = as_qrels(qrels)
        self.run = as_run(run)
        _check_common(self.qrels, self.run)
        if judged_only:
            self.run = (self.run.to_run() if isinstance(self.run, MappedRun) else self.run).judged_only(self.qrels)
        self.unprojected = self.run
        if score_dtype:
            self.run = self.run.projected(score_dtype)

    @property
    def ties(self) -> TieGroups:
        return self.urns("float64").ties

    def urns(self, dtype: str, orders: Iterable[str] = ()) -> engine.Urns:
        """The tie groups of scores read as `dtype`, counted for these orders among others."""
        have = self._urns.get(dtype)
        wanted = set(orders)
        if self.run is not None and (have is None or not wanted <= set(have.ties.before)):
            run = self.run if dtype == "float64" else self.run.projected(dtype)
            known = set(have.ties.before) if have else set()
            ties = tie_groups(self.qrels, run, sorted(wanted | known))
            self._urns[dtype] = have = engine.Urns(ties.to_depth(self.depth))
        assert have is not None
        return have

    @cached_property
    def continued(self) -> tuple[engine.Urns, list[engine.Urns]]:
        """The lists as they could go on if they were cut inside their last tie group.

        It does worst if that group goes on without end; best if relevant documents that were not retrieved are in it,
        as many of the best ones as help: those of the highest label, of the two highest, and so on.
        """
        ties = self.ties
        joining = (ties.size == 0) & ties.open_ended[ties.qrels.query] & (ties.qrels.label > 0)
        labels = np.unique(ties.qrels.label[joining])[::-1]
        return engine.Urns(ties.without_last_group()), [engine.Urns(ties.with_joined(label)) for label in labels]

    def count(self, rules: Iterable[Rule]) -> None:
        """Count for all the orders that some rules need, each reading of the scores once."""
        if self.run is None:
            return
        self.urns("float64", {rule.order for rule in rules if rule.dtype == "float64" and rule.order})
        for dtype in {rule.dtype for rule in rules} - {"float64"}:
            self.urns(dtype, {rule.order for rule in rules if rule.dtype == dtype and rule.order})

    def in_order(self, measure: Measure, rule: Rule) -> Floats | None:
        """The value of a measure for each query when ties are broken by a rule; None if that is not known."""
        if rule.order is None or (self.run is None and rule.order not in self.ties.before):
            return None
        if self.run is None and rule.dtype != "float64":
            return None
        urns = self.urns(rule.dtype, {rule.order})
        if rule.retrieved_only:
            urns = engine.Urns(urns.ties.retrieved_only())
        return engine.value(measure, urns, urns.oblivious(rule.order))


def _measured(measure: Measure, inputs: _Inputs, rule: Rule | None, complete: bool) -> Estimates:
    urns = inputs.urns("float64")
    found = engine.estimates(measure, urns)
    if rule is not None:
        found.oblivious = inputs.in_order(measure, rule)
    if not complete:
        found.cut = _cut(measure, inputs, found.expected)
    return found


def _looked_into(measure: Measure, urns: engine.Urns) -> NDArray[np.bool_]:
    """Whether a measure looks into the last tie group of a list that may have been cut there."""
    ties = urns.ties
    return ties.open_ended & (measure.depth(urns) > ties.length - ties.floor_size)


def _cut(measure: Measure, inputs: _Inputs, expected: Floats) -> tuple[Floats, Floats] | None:
    """Bounds on the expectation if lists were cut inside their last tie group; None if none can have been."""
    looked = _looked_into(measure, inputs.urns("float64"))
    if not looked.any() or not measure.takes_depth or measure.total:
        return None
    longest, joined = inputs.continued
    lower = engine.expected(measure, longest)[0]
    upper = np.maximum.reduce([expected, *(engine.expected(measure, urns)[0] for urns in joined)])
    return np.where(looked, np.minimum(lower, expected), expected), np.where(looked, upper, expected)


def _kept(measure: Measure, inputs: _Inputs, missing: str, no_relevant: str) -> NDArray[np.bool_]:
    kept = np.ones(len(inputs.qrels.queries), dtype=bool)
    if missing == "skip":
        kept &= inputs.ties.present
    if no_relevant == "skip":
        kept &= inputs.urns("float64").relevant(measure) > 0
    return kept


def _check_common(qrels: Qrels, run: Run | MappedRun) -> None:
    if not len(qrels.queries):
        raise InputError("The qrels are empty: there is nothing to measure against.")
    if not len(run.queries):
        raise InputError("The run is empty: it has no query.")
    shared = [query for query in qrels.queries if query in run.query_index]
    if not shared:
        raise InputError(
            f"The run and the qrels have no query in common. Queries of the run: {listed(run.queries)}; "
            f"of the qrels: {listed(qrels.queries)}."
        )


def _check_found(qrels: Qrels, run: Run | MappedRun, ties: TieGroups) -> None:
    """No judged document in any list: ids that do not match, unless it is one query made by hand."""
    several = np.count_nonzero(ties.present) > 1 or qrels.source is not None or run.source is not None
    if several and not ties.size.any() and len(run) and len(qrels):
        raise InputError(
            "The run and the qrels have no document in common. Documents of the run: "
            f"{listed(run.ids(np.arange(min(3, len(run)))))}; of the qrels: "
            f"{listed(qrels.ids(np.arange(min(3, len(qrels)))))}."
        )


@dataclass(frozen=True)
class Provenance:
    """From what a report was made, and how much of it was there."""

    version: str
    qrels: dict[str, str] | None  #: path, sha256 and format of the file
    run: dict[str, str] | None
    options: dict[str, Any]
    judged_queries: int
    retrieved_queries: int  #: judged queries that the run has
    missing_queries: int  #: judged queries that it does not have
    unjudged_queries: int  #: queries of the run that were not judged
    queries_without_relevant: int  #: no judged document with a label of 1 or more
    rows: int | None
    tied_rows: int | None  #: rows that share their score with another row of their query
    tied_share: float | None
    new_ties: int | None  #: tied rows that `score_dtype` made
    cut_lists: int  #: lists that end with two or more tied documents, so may have been cut there


class Report:
    """The estimates of all measures: ``report["nDCG@10"]`` is the mean, `per_query` has each query."""

    def __init__(self, estimates: Mapping[Measure, Estimates], inputs: _Inputs, options: dict[str, Any]):
        self._estimates, self._inputs, self._options = dict(estimates), inputs, options
        self._means = {measure: found.mean() for measure, found in self._estimates.items()}

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures, in the order in which they were asked for."""
        return tuple(self._estimates)

    def __getitem__(self, measure: str | Measure) -> Estimate:
        return self._means[self._known(measure)]

    def __iter__(self) -> Iterator[Measure]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    def __contains__(self, measure: object) -> bool:
        return isinstance(measure, (str, Measure)) and parse(measure) in self._estimates

    def per_query(self, measure: str | Measure) -> Estimates:
        """``{query id: Estimate}`` of a measure; its columns are at hand as arrays."""
        return self._estimates[self._known(measure)]

    def _known(self, measure: str | Measure) -> Measure:
        wanted = parse(measure)
        if wanted not in self._estimates:
            raise InputError(f"{wanted} was not measured. The report has {', '.join(map(str, self.measures))}.")
        return wanted

    def __repr__(self) -> str:
        return "\n".join([*(f"{estimate!r}" for estimate in self._means.values()), *self.notes])

    # -- what stands behind it --------------------------------------------------------------------------------

    @cached_property
    def provenance(self) -> Provenance:
        """Files, options, and how many queries and rows were there, missing, or tied."""
        inputs, ties = self._inputs, self._inputs.ties
        present = int(np.count_nonzero(ties.present))
        relevant = np.bincount(inputs.qrels.query, inputs.qrels.label >= 1, minlength=len(ties.present))
        run, before = inputs.run, inputs.unprojected
        return Provenance(
            version=__version__,
            qrels=_source(inputs.qrels),
            run=_source(inputs.run),
            options=self._options,
            judged_queries=len(ties.present),
            retrieved_queries=present,
            missing_queries=len(ties.present) - present,
            unjudged_queries=ties.unjudged_queries,
            queries_without_relevant=int(np.count_nonzero(relevant == 0)),
            rows=None if run is None else len(run),
            tied_rows=None if run is None else run.tied_rows,
            tied_share=None if run is None else run.tied_share,
            new_ties=run.tied_rows - before.tied_rows if run is not before and run and before else None,
            cut_lists=0 if self._options["complete"] else int(np.count_nonzero(ties.open_ended & ties.present)),
        )

    @cached_property
    def cut_lists(self) -> int:
        """How many lists may have been cut inside a tie group into which one of the measures looks."""
        if self._options["complete"]:
            return 0
        urns = self._inputs.urns("float64")
        looked = [_looked_into(measure, urns) for measure in self.measures]
        return int(np.count_nonzero(np.logical_or.reduce(looked))) if looked else 0

    @property
    def cut_note(self) -> str:
        """The sentence on lists that may have been cut inside a tie group, with the bounds this puts on E."""
        wide = [(m, e) for m, e in self._means.items() if e.cut and e.cut[1] - e.cut[0] > 5e-5]
        bounds = "; ".join(f"E of {m} within [{e.cut[0]:.4f}, {e.cut[1]:.4f}]" for m, e in wide if e.cut)
        lists = f"{self.cut_lists:,} of {self.provenance.retrieved_queries:,} lists end with tied documents"
        return (
            f"{lists} and may have been cut inside a tie group{': ' + bounds if bounds else ''}. "
            "Say complete=True (--complete) if nothing was cut."
        )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: cut lists, missing queries, an order that knows the labels, what is not exact."""
        from_, notes = self.provenance, []
        if self.cut_lists:
            notes.append(self.cut_note)
        if from_.missing_queries:
            how = {"zero": "count as 0", "skip": "are left out", "error": ""}[self._options["missing"]]
            notes.append(f"{from_.missing_queries:,} judged queries are missing from the run and {how}.")
        if from_.unjudged_queries:
            notes.append(f"{from_.unjudged_queries:,} queries of the run are not judged and are left out.")
        if from_.queries_without_relevant:
            how = {"zero": "count as they are", "skip": "are left out"}[self._options["no_relevant"]]
            notes.append(f"{from_.queries_without_relevant:,} queries have no relevant document and {how}.")
        if from_.new_ties:
            notes.append(f"Read as {self._options['score_dtype']}, {from_.new_ties:,} more rows are tied.")
        for measure, mean in self._means.items():
            if mean.z is not None and abs(mean.z) > KNOWING:
                notes.append(
                    f"{measure}: the order of '{self._options['oblivious']}' is {mean.z:+.1f} standard deviations from "
                    f"a random one. It knows the labels: {'' if mean.z > 0 else 'non-'}relevant documents stand first "
                    "among equals, by the way they were listed or by their ids."
                )
            if mean.std is None and mean.expected is not None:
                notes.append(f"{measure}: the standard deviation is left out; its tie groups are too large for it.")
        return tuple(notes)

    def oblivious_by_tool(self) -> ToolTable:
        """What each known tool would have printed for this run, and its bias against the expectation."""
        if self._inputs.run is None:
            raise InputError("Tie groups do not hold the scores that other tools would read. Evaluate the run itself.")
        values = [self._printed(tool, measure) for measure in self.measures for tool in TOOLS.values()]
        return ToolTable(tuple(value for value in values if value is not None))

    def _printed(self, tool: Tool, measure: Measure) -> ToolValue | None:
        rule = tool.rule(measure)
        if rule is None:
            return None
        mean, inputs = self._means[measure].expected, self._inputs
        own = rule.measure or measure
        per_query = inputs.in_order(own, rule)
        kept = np.ones(len(inputs.qrels.queries), dtype=bool)
        if rule.missing == "skip":
            kept &= inputs.ties.present
        if rule.skips_no_relevant:
            kept &= inputs.urns("float64").relevant(own) > 0
        if per_query is None or mean is None or not kept.any():
            return ToolValue(tool.name, tool.version, measure.name, None, None, rule.why or "no query is left")
        printed = float(per_query[kept].sum() if measure.total else per_query[kept].mean())
        note = f"computes {own}" if own != measure else rule.why
        return ToolValue(tool.name, tool.version, measure.name, printed, printed - mean, note)

    # -- doors out --------------------------------------------------------------------------------------------

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Everything as plain values: provenance, notes, the means and, if asked for, each query."""
        out: dict[str, Any] = {
            "provenance": asdict(self.provenance),
            "notes": list(self.notes),
            "measures": {measure.name: mean.to_dict() for measure, mean in self._means.items()},
        }
        if per_query:
            out["queries"] = {
                measure.name: {query: estimate.to_dict() for query, estimate in found.items()}
                for measure, found in self._estimates.items()
            }
        return out

    def to_json(self, *, per_query: bool = False, indent: int | None = 2) -> str:
        """`to_dict` as JSON; what does not apply is null."""
        return json.dumps(self.to_dict(per_query=per_query), indent=indent, ensure_ascii=False)

    def rows(self, *, per_query: bool = False) -> Iterator[tuple[str, str, Estimate]]:
        """``(measure, query, estimate)``; the query of a mean is ``"all"``."""
        for measure, found in self._estimates.items():
            if per_query:
                yield from ((measure.name, query, estimate) for query, estimate in found.items())
            yield measure.name, "all", self._means[measure]

    def to_columns(self, *, per_query: bool = False) -> dict[str, list[Any]]:
        """The rows as columns: measure, query, and one for each statistic."""
        rows = list(self.rows(per_query=per_query))
        columns: dict[str, list[Any]] = {"measure": [row[0] for row in rows], "query": [row[1] for row in rows]}
        for name in _FIELDS:
            columns[name] = [getattr(estimate, name) for _, _, estimate in rows]
        return columns

    def to_frame(self, *, per_query: bool = False) -> Any:
        """The rows as a pandas data frame (polars where pandas is missing)."""
        return data_frame(self.to_columns(per_query=per_query))

    def to_arrow(self, *, per_query: bool = False) -> Any:
        """The rows as an Arrow table."""
        return need("pyarrow", "An Arrow table", "arrow").table(self.to_columns(per_query=per_query))


@dataclass(frozen=True)
class ToolValue:
    """What one tool would print for one measure; None, with the reason in `note`, if that cannot be known."""

    tool: str
    version: str
    measure: str
    value: float | None
    bias: float | None
    note: str


class ToolTable(tuple[ToolValue, ...]):
    """What the known tools would print, one row for each tool and measure."""

    __slots__ = ()

    def __repr__(self) -> str:
        lines = [f"{'measure':<12} {'tool':<32} {'prints':>8} {'bias':>8}"]
        for row in self:
            value = "-" if row.value is None else f"{row.value:.4f}"
            bias = "-" if row.bias is None else f"{row.bias:+.4f}"
            lines.append(f"{row.measure:<12} {row.tool:<32} {value:>8} {bias:>8}  {row.note}".rstrip())
        return "\n".join(lines)


def _source(table: Run | MappedRun | Qrels | None) -> dict[str, str] | None:
    source = getattr(table, "source", None)
    return None if source is None else asdict(source)
