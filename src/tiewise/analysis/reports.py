"""`Report`: the estimates of an evaluation, what they were made from, what to know about them, and the ways out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial, reduce
from importlib import import_module
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from tiewise._version import __version__
from tiewise.analysis.incomplete_runs import describe_bounds
from tiewise.analysis.measuring import Evaluation, resolve_measures
from tiewise.analysis.options import Options
from tiewise.caching import LazyMapping, cached_property
from tiewise.errors import InputError, MeasureError
from tiewise.metrics import engine
from tiewise.metrics.catalogue.user_models import explain_clipped_labels
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate, Estimates
from tiewise.metrics.names import MeasureLike, parse, parse_all
from tiewise.metrics.tool_rules import TOOLS, Tool, printed_by, rule_for, tool_for
from tiewise.results.base import Result
from tiewise.results.estimates import is_wide
from tiewise.results.optional import data_frame, need
from tiewise.results.view import View
from tiewise.results.wording import (
    SHORT,
    NumberFormat,
    cached_by_spelling,
    count_noun,
    cut_lists_note,
    describe_chance,
    join_names,
    spell_option,
    trend_note,
)
from tiewise.ties.orders import name_order

if TYPE_CHECKING:
    from tiewise.analysis.report_tables import Reports
    from tiewise.analysis.rerun.bands import NoiseEffects
    from tiewise.analysis.tool_values import ToolTable, ToolValue
    from tiewise.results.model import Section, Table

#: From here on, an order is so far from random that it may depend on the labels.
Z_LIMIT = 4.0

_TEXTS = {"measure", "query", "expected_method", "extremes_method", "std_method"}


@dataclass(frozen=True)
class Provenance(Result):
    """From what a report was made, and how much of it was there."""

    version: str
    qrels: dict[str, str] | None  #: path, sha256 and format of the file
    run: dict[str, str] | None
    options: dict[str, Any]
    judged_queries: int
    retrieved_queries: int  #: judged queries that the run has
    missing_queries: int  #: judged queries that it does not have
    unjudged_queries: int  #: queries of the run that were not judged
    queries_without_relevant: int  #: for one of the measures, at the most
    rows: int | None
    tied_rows: int | None  #: rows that share their score with another row of their query
    tied_share: float | None
    new_ties: int | None  #: tied rows that `score_dtype` made
    cut_lists: int  #: lists that end with two or more tied documents, so may have been cut there

    def _section(self, view: View) -> Section:
        from tiewise.results.model import Section, Table

        return Section([Table.of_facts(self.to_dict())], "Provenance")

    def _document(self, view: View) -> dict[str, Any]:
        return asdict(self)


class Report(Result, Mapping[Measure, Estimate]):
    """The estimates of all measures: ``report["nDCG@10"]`` is the mean, `per_query` has each query."""

    _schema = "tiewise/evaluation/1"

    def __init__(
        self, evaluation: Evaluation, estimates: Mapping[Measure, Estimates], effects: NoiseEffects | None = None
    ):
        self._evaluation, self._estimates, self._effects = evaluation, estimates, effects

    @cached_property
    def _means(self) -> dict[Measure, Estimate]:
        means = {measure: found.mean() for measure, found in self._estimates.items()}
        return means if self._effects is None else self._effects.add_to(self._estimates, means)

    def with_noise(self, *, rerun: Any = None, noise: Any = None) -> Report:
        """The same report with what noise of the scores does: `rerun` and `noise` are those of `evaluate`."""
        from tiewise.analysis.rerun.bands import NoiseEffects

        report = Report(self._evaluation, self._estimates, NoiseEffects(self._evaluation, rerun=rerun, noise=noise))
        _ = report._means  # now: later the runs may have changed
        return report

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
        try:
            return isinstance(measure, (str, Measure)) and parse(measure) in self._estimates
        except MeasureError:
            return False

    def get(self, measure: str | Measure, default: Any = None) -> Any:
        """The mean of a measure, or the default if it was not measured."""
        if measure not in self:
            return default
        return self[measure]

    def per_query(self, measure: str | Measure) -> Estimates:
        """``{query id: Estimate}`` of a measure; its columns are arrays."""
        return self._estimates[self._known(measure)]

    def _known(self, measure: str | Measure) -> Measure:
        wanted = parse(measure)
        if wanted not in self._estimates:
            raise InputError(f"{wanted} was not measured. The report has {', '.join(map(str, self.measures))}.")
        return wanted

    def at(self, measures: str | Measure | Iterable[str | Measure]) -> Report:
        """The same evaluation by other measures.

        Nothing is read or counted again, except for the few measures that tell judged non-relevant documents from
        unjudged ones (Bpref, Judged, the residual of RBP): if the report has none of them, the run is counted again. A
        dictionary may have changed, so it must be evaluated again with the measure.

        >>> from tiewise import evaluate
        >>> report = evaluate({"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5, "c": 0.1}}, "RR")
        >>> report.at(["P@1", "P@2"])
        P@1 0.5000 [0.0000, 1.0000]
        P@2 0.5000
        """
        return Report(self._evaluation, self._evaluation.estimates(resolve_measures(measures)), self._effects)

    def select(self, measures: MeasureLike | Iterable[MeasureLike]) -> Report:
        """The same report with some of its measures: notes are about these alone.

        >>> from tiewise import evaluate
        >>> evaluate({"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.1}}, ["RR", "AP"]).select("RR").measures
        (RR,)
        """
        some = LazyMapping(map(self._known, parse_all(measures)), self._estimates.__getitem__)
        return Report(self._evaluation, some, self._effects)

    @property
    def _options(self) -> Options:
        return self._evaluation.options

    @property
    def oblivious_orders(self) -> dict[str, list[Measure]]:
        """The tools, or the orders, of the oblivious values, each with its measures; empty if there are none."""
        given = self._options.oblivious
        orders: dict[str, list[Measure]] = {}
        if given is not None:
            for measure in self.measures:
                orders.setdefault(tool_for(given, measure), []).append(measure)
        return orders

    @property
    def oblivious_names(self) -> str:
        """What prints the oblivious values: tools, or orders; empty if there are none."""
        order, absent = self._options.oblivious, self._tally.missing_queries
        if order is None or not absent:
            return ", ".join(self.oblivious_orders)
        return ", ".join(dict.fromkeys(printed_by(order, one, self._options.missing) for one in self.measures))

    @property
    def plot(self) -> Any:
        """Figures of this report: `curve()`, `forest()`, `differences()` and `group_sizes()`."""
        return import_module("tiewise.figures.plots").ReportPlots(self, self._evaluation.source)

    def __repr__(self) -> str:
        return "\n".join([*map(repr, self._means.values()), *filter(None, [self.rerun_sentence]), *self.notes])

    def _section(self, view: View) -> Section:
        return self._shown._section(view)

    def _latex(self, view: View) -> str:
        return self._shown._latex(view)

    @property
    def _shown(self) -> Reports:
        from tiewise.analysis.report_tables import Reports

        return Reports({"": self})

    @property
    def sentence(self) -> str:
        """What ties do to these numbers, and what to report.

        >>> from tiewise import evaluate
        >>> evaluate({"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5, "c": 0.1}}, "RR", complete=True).sentence
        'Ties move RR: report .750 and its range, .500 to 1.000.'
        """
        return self._shown.sentence(View().numbers)

    @property
    def rerun_sentence(self) -> str:
        """What this run would print if it were scored again; empty without a rerun band."""
        return self._rerun_sentence(SHORT)

    def _rerun_sentence(self, numbers: NumberFormat) -> str:
        """The same, beside numbers that are shown so."""
        return "" if self._effects is None else self._effects.sentence(self._means, numbers)

    # -- what stands behind it --------------------------------------------------------------------------------

    @property
    def queries(self) -> int:
        """The number of queries that the means are over (those of the first measure, if measures differ).

        >>> from tiewise import evaluate
        >>> evaluate({"q1": {"a": 1}, "q2": {"a": 1}}, {"q1": {"a": 0.5}}, "RR", missing="skip").queries
        1
        """
        return len(self._estimates[self.measures[0]])

    @cached_property
    def provenance(self) -> Provenance:
        """Files, options, and how many queries and rows were there, missing, or tied."""
        files = self._evaluation.qrels.source, self._evaluation.counted.source
        qrels, run = (None if one is None else one.to_dict() for one in files)
        return replace(self._tally, qrels=qrels, run=run)

    @cached_property
    def _tally(self) -> Provenance:
        """The same without the files, which are hashed when their provenance is asked for."""
        ties, run = self._evaluation.ties, self._evaluation.counted
        present, ends_tied = int(np.count_nonzero(ties.present)), ties.may_be_truncated & (ties.lowest_size > 1)
        return Provenance(
            version=__version__,
            qrels=None,
            run=None,
            options=self._options.to_dict(),
            judged_queries=len(ties.present),
            retrieved_queries=present,
            missing_queries=len(ties.present) - present,
            unjudged_queries=len(ties.unjudged),
            queries_without_relevant=max(self._without_relevant.values(), default=0),
            rows=run.n_rows,
            tied_rows=run.tied_rows,
            tied_share=None if run.n_rows is None or run.tied_rows is None else run.tied_rows / max(run.n_rows, 1),
            new_ties=run.new_ties,
            cut_lists=0 if self._options.complete else int(np.count_nonzero(ends_tied)),
        )

    @cached_property
    def constant_lists(self) -> int:
        """How many lists give all their documents, two or more, one score."""
        ties = self._evaluation.ties
        return int(np.count_nonzero(ties.present & (ties.last_start == 0) & (ties.lowest_size > 1)))

    @property
    def is_constant(self) -> bool:
        """Whether so many lists are constant that the means say nothing about the system."""
        return self.constant_lists > self._tally.retrieved_queries / 2

    @property
    def is_cut(self) -> bool:
        """Whether lists were probably cut inside a tie group, and this shows, or it is not known how far."""
        if self._options.complete or not self._evaluation.cut_is_likely:
            return False
        return bool(self._open_bounds) or bool(self.without_bounds)

    @cached_property
    def _bounds(self) -> dict[Measure, tuple[float, float] | None]:
        """`Estimate.cut` of the means, which need not be made for the bounds alone."""
        return {one: self._evaluation.mean_bounds(one) or self._means[one].cut for one in self.measures}

    @cached_property
    def _open_bounds(self) -> dict[Measure, tuple[float, float] | None]:
        """Those that leave a digit open."""
        return {one: cut for one, cut in self._bounds.items() if is_wide(cut)}

    @property
    def missing_as_zero(self) -> int:
        """How many judged queries are missing from the run and count as 0."""
        return 0 if self._options.missing == "skip" else self._tally.missing_queries

    @property
    def without_bounds(self) -> list[str]:
        """The measures that lists which may have been cut can change, but by an unknown amount."""
        if self._options.complete:
            return []
        unknown = [one for one in self.measures if self._bounds[one] is None]
        return [str(one) for one in unknown if self._evaluation.reaches_last_group(one).any()]

    @property
    def cut_note(self) -> str:
        """The note on lists that may have been cut inside a tie group, with the bounds on E; empty if none."""
        if not self.is_cut:
            return ""
        retrieved = self._evaluation.counted.n_present
        reached = reduce(or_, map(self._evaluation.reaches_last_group, self.measures))
        bounds = describe_bounds({str(one): {"": cut} for one, cut in self._open_bounds.items()}, self.without_bounds)
        return cut_lists_note(f"° {np.count_nonzero(reached):,} of {count_noun(retrieved, 'list')}", bounds)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: cut lists, queries left out, an order that may depend on labels."""
        return (*([self.cut_note] if self.cut_note else []), *self.other_notes)

    @cached_by_spelling
    def other_notes(self) -> tuple[str, ...]:
        """The notes without that on cut lists, which several runs have together."""
        return (*self.input_notes, *self._result_notes())

    @cached_by_spelling
    def input_notes(self) -> tuple[str, ...]:
        """The notes on what was given: queries left out, ids that do not match, scores that may be distances."""
        from_, notes = self._tally, []
        if from_.missing_queries:
            how = "left out" if self._options.missing == "skip" else "counted as 0"
            notes.append(f"{_queries(from_.missing_queries, 'judged')} missing from the run and {how}.")
        if from_.unjudged_queries:
            notes.append(f"{_queries(from_.unjudged_queries)} not judged and left out.")
        qrels = self._evaluation.qrels
        positive = qrels.label[qrels.label > 0]
        low = [m for m in self.measures if self._has_lost_labels(m)]
        for level in dict.fromkeys(float(getattr(m, "rel", 1)) for m in low):
            names = [m for m in low if getattr(m, "rel", 1) == level]
            below = positive[positive < level]
            labels = f"{len(below):,} of {len(positive):,} positive" if len(below) < len(positive) else "All"
            lower = float(f"{np.median(below):.2g}")
            notes.append(
                f"{labels} labels are below rel={level:g}, so these documents are not relevant for "
                f"{', '.join(map(str, names))}. If they are, add -l {lower:g}, or write {names[0](rel=lower)}."
            )
        without = {m: n for m, n in self._without_relevant.items() if m not in low or m.relevant(positive).any()}
        for number in sorted(set(without.values()) - {0}):
            some = [str(m) for m, n in without.items() if n == number]
            whom = f" for {', '.join(some)}" if len(some) < len(self.measures) else ""
            how = "left out" if self._options.no_relevant == "skip" else "counted with the rest"
            have = count_noun(number, "query has", "queries have")
            notes.append(f"{have} no relevant document{whom}: {how}.")
        for measure in self.measures:
            undefined = int(np.count_nonzero(self._evaluation.kept(measure))) - len(self._estimates[measure])
            if undefined:
                queries = count_noun(undefined, "query, which is", "queries, which are")
                notes.append(f"{measure} is not defined for {queries} left out.")
        if self._unfound > max(1, from_.retrieved_queries / 2):
            notes.append(
                f"In {self._unfound:,} of {from_.retrieved_queries:,} queries no judged document was retrieved."
                + " Do the ids of run and qrels match?" * (self._unfound > 0.9 * from_.retrieved_queries)
            )
        return (*notes, *self._suspicions())

    def _result_notes(self) -> list[str]:
        """The notes on what was made of it."""
        from_, qrels, notes = self._tally, self._evaluation.qrels, list[str]()
        if from_.new_ties:
            more = count_noun(from_.new_ties, "more row is", "more rows are")
            notes.append(f"Read as {self._options.score_dtype}, {more} tied.")
        for order, measures in self.oblivious_orders.items():
            zs = {m: z for m in measures if (z := self._z(m)) is not None}
            for first, sign in (("relevant", 1), ("non-relevant", -1)):
                if far := [str(m) for m, z in zs.items() if sign * z > Z_LIMIT]:  # numbers differ from run to run
                    notes.append(
                        f"In {name_order(order)} {first} documents stand higher among documents of the same score "
                        f"than in a random order, by more than {Z_LIMIT:g} standard deviations of {join_names(far)}; "
                        f"{describe_chance([sign * Z_LIMIT])}. Check whether the order depends on the labels: "
                        "candidates may have been listed so, or ids may go with their sources."
                    )
            rules = {rule_for(order, measure).labels for measure in measures if not measure.needs_subtopics}
            if rules - {"any"} and not qrels.has_whole_labels:
                does = "cuts them to" if "cut" in rules else "takes only"
                notes.append(f"Labels are not whole numbers: {order} {does} whole ones. Tiewise keeps them.")
        notes.extend(explain_clipped_labels(self.measures, qrels.label))
        if any(measure.needs_subtopics for measure in self.measures) and qrels.has_one_subtopic_each:
            notes.append(
                "The judgments have one subtopic in every query, so diversity measures say nothing about diversity. Is "
                "the second column of their file the subtopic?"
            )
        notes.extend(method_notes({str(measure): mean for measure, mean in self._means.items()}))
        if self._effects is not None:
            notes.extend(self._effects.notes(self._means))
        return notes

    def _has_lost_labels(self, measure: Measure) -> bool:
        """Whether positive labels are not relevant to a measure by mistake: fractions below 1, or all of them."""
        level, label = getattr(measure, "rel", None), self._evaluation.qrels.label
        if level is None:
            return False
        positive = label[label > 0]
        below = positive[positive < level]
        by_mistake = len(below) and (len(below) == len(positive) or below.min() < 1)
        return bool(by_mistake) and not measure.relevant(below).any()

    def _suspicions(self) -> Iterator[str]:
        """What the run may hold by mistake, where that changes a number."""
        evaluation, trend = self._evaluation, self._evaluation.counted.trend
        negated = self._options.distances
        note = "" if trend is None else trend_note(trend, distances=negated)
        if note and (negated or self._changes(evaluation.edited(distances=True))):
            yield note
        queries, lists = evaluation.self_queries, self._tally.retrieved_queries
        if queries > lists / 100 and evaluation.self_stands_first and self._changes(evaluation.without_self):
            yield (
                f"In {queries:,} of {count_noun(lists, 'list')} there is a document with the id of the query. BEIR and "
                f"some tasks of MTEB drop it. If the queries are documents too, add {spell_option('drop_self')}."
            )

    def _changes(self, other: Evaluation | None) -> bool:
        """Whether another evaluation changes a digit that is shown; True if that cannot be known."""
        if other is None:
            return True
        means = {measure: found.mean() for measure, found in other.estimates(self.measures).items()}
        fields = ("expected", "minimum", "maximum")
        values = (
            (getattr(mean, name), getattr(self._means[one], name)) for one, mean in means.items() for name in fields
        )
        return any(a != b if a is None or b is None else is_wide((a, b)) for a, b in values)

    @cached_property
    def _without_relevant(self) -> dict[Measure, int]:
        """For how many queries a measure has no relevant document."""
        return {m: int(np.count_nonzero(~self._evaluation.has_relevant(m))) for m in self.measures}

    @property
    def _unfound(self) -> int:
        """In how many lists there is no judged document."""
        ties, found = self._evaluation.ties, self._evaluation.counted.found
        if found is None:  # only tie groups are known
            found = np.bincount(ties.qrels.query, weights=ties.size > 0, minlength=len(ties.present)) > 0
        return int(np.count_nonzero(ties.present & ~found))

    def _z(self, measure: Measure) -> float | None:
        """How far an order lies from a random one, of the scores as that order's tool reads them."""
        order, mean = self._options.oblivious, self._means[measure]
        if order is None or mean.oblivious is None:
            return None
        dtype = rule_for(order, measure).dtype
        if dtype == "float64":
            return mean.z
        grouped, sampling = self._evaluation.grouped(measure, dtype), self._options.sampling
        each = engine.estimates(measure, grouped, sampling=sampling)
        read = each.take(self._evaluation.counts(measure, each)).mean()
        return None if not read.std or read.expected is None else (mean.oblivious - read.expected) / read.std

    def oblivious_by_tool(self) -> ToolTable:
        """What each known tool would have printed for this run, and its bias against the expectation."""
        from tiewise.analysis.tool_values import ToolTable

        if not self._knows_tools:
            raise InputError(
                "Tie groups and arrays do not hold the scores and ids that other tools would read. Evaluate the run "
                "itself; of shards, say tools=True."
            )
        values = (self._printed(tool, measure) for measure in self.measures for tool in TOOLS.values())
        return ToolTable(tuple(value for value in values if value is not None), self._means)

    @property
    def _knows_tools(self) -> bool:
        rules = [rule for measure in self.measures for tool in TOOLS.values() if (rule := tool.rule(measure))]
        return all(self._evaluation.knows(rule) for rule in rules if rule.order)

    def _printed(self, tool: Tool, measure: Measure) -> ToolValue | None:
        from tiewise.analysis.settings import Numbers, Settings
        from tiewise.analysis.tool_values import ToolValue

        rule = tool.rule(measure)
        if rule is None:
            return None
        mean, absent = self._means[measure].expected, self._tally.missing_queries
        evaluation, self_note = self._as_read_by(tool)
        rule = rule.settle(self._means[measure])
        unknown = partial(ToolValue, tool.name, tool.version, measure.name, None, None)
        if evaluation is None:
            return unknown(f"{self_note}: add {spell_option('drop_self')}")
        if rule.missing == "error" and absent:
            return unknown(f"exits with status 4 without -c: {_queries(absent, 'judged')} missing from the run")
        if rule.labels == "error" and not evaluation.qrels.has_whole_labels:
            return unknown("refuses labels that are not whole numbers")
        own = rule.measure or measure
        settings = Settings.of_rule(rule, measure, depth=evaluation.options.depth) if rule.order else None
        printed = None if settings is None else Numbers(evaluation).value(settings)
        if printed is None or mean is None:
            return unknown(rule.why or "no query is left")
        unpaired = rule.missing == "zero" and tool.completed_by and (absent or self._tally.unjudged_queries)
        option = f"with {tool.completed_by}" if unpaired else ""
        note = "; ".join(filter(None, [self_note, option, f"computes {own}" if own != measure else "", rule.why]))
        return ToolValue(tool.name, tool.version, measure.name, printed, printed - mean, note)

    def drops_self(self, tool: Tool) -> bool | None:
        """Whether a tool drops documents of this run that have the id of their query; None if some of its tasks do."""
        evaluation = self._evaluation
        return tool.drops_self_from(evaluation.counted.source) if evaluation.self_queries else False

    def _as_read_by(self, tool: Tool) -> tuple[Evaluation | None, str]:
        """The run without what a tool drops, and a note on that; None if the run cannot be read any more."""
        evaluation, drops = self._evaluation, self.drops_self(tool)
        documents = f"documents with the id of their query, in {count_noun(evaluation.self_queries, 'list')}"
        if drops:
            return evaluation.without_self, f"drops {documents}"
        some = f"some of its tasks drop {documents}: add {spell_option('drop_self')} for these"
        return evaluation, some if drops is None else ""

    # -- doors out --------------------------------------------------------------------------------------------

    def _document(self, view: View) -> dict[str, Any]:
        out: dict[str, Any] = {
            "provenance": self.provenance.to_dict(),
            "sentence": self.sentence,
            "notes": list(self.notes),
        }
        if view.summary:
            out["measures"] = {measure.name: mean.to_dict() for measure, mean in self._means.items()}
        if view.per_query:
            out["queries"] = {measure.name: found for measure, found in self._estimates.items()}
        return out

    def _records(self, view: View) -> Table:
        return self._shown._records(view).drop("run")

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Everything as plain values: provenance, notes, the means and, if asked for, each query."""
        plain = self._to_dict(View(per_query=per_query))
        for name, found in plain.get("queries", {}).items():
            plain["queries"][name] = {query: estimate.to_dict() for query, estimate in found.items()}
        return plain

    def to_json(self, *, per_query: bool = False, indent: int | None = 2) -> str:
        """`to_dict` as JSON; what does not apply is null."""
        import json

        return json.dumps(self.to_dict(per_query=per_query), indent=indent, ensure_ascii=False)

    def to_frame(self, *, per_query: bool = False) -> Any:
        """The rows as a pandas data frame (polars where pandas is missing); what does not apply is NaN in numbers."""
        return data_frame(self._columns(per_query))

    def to_arrow(self, *, per_query: bool = False) -> Any:
        """The rows as an Arrow table."""
        arrow = need("pyarrow", "An Arrow table", "arrow")
        return arrow.table({n: arrow.array(c, from_pandas=True) for n, c in self._columns(per_query).items()})

    def _columns(self, per_query: bool) -> dict[str, Any]:
        table = self._records(View(per_query=per_query))
        columns = {column.name: table.values(column.name) for column in table.columns}
        return {n: c if n in _TEXTS else np.array(c, dtype=np.float64) for n, c in columns.items()}


_STATISTICS = {"expected": "expected value", "extremes": "range", "std": "std"}


def method_notes(
    means: Mapping[str, Estimate], statistics: Iterable[str] = tuple(_STATISTICS), *, marks: bool = True
) -> Iterator[str]:
    """Which statistics of measures, by name, are sampled or bounds; with `marks`, how tables show that."""
    shown = {part: _STATISTICS[part] for part in statistics}
    sampled: dict[str, list[str]] = {}
    for name, mean in means.items():
        if found := [word for part, word in shown.items() if mean.method[part] == "sampled"]:
            sampled.setdefault(join_names(found), []).append(name)
    for what, names in sampled.items():
        errors = {name: means[name].standard_error for name in names if means[name].standard_error is not None}
        known = f"; standard error of the expected value: {', '.join(f'{x:.2g} for {m}' for m, x in errors.items())}"
        yield (
            f"The {what} of {', '.join(names)} {'are' if ' and ' in what else 'is'} sampled from random orders"
            f"{' (~)' * marks}, where ties have too many arrangements to enumerate{known * bool(errors)}."
        )
    if bounds := [name for name, mean in means.items() if "extremes" in shown and mean.method["extremes"] == "bound"]:
        yield (
            f"The range of {', '.join(bounds)} is a bound{' (≥, ≤)' * marks}: no order leaves it, but perhaps none "
            "reaches its ends."
        )


def _queries(number: int, kind: str = "") -> str:
    """So many queries are …"""
    so_many = count_noun(number, f"{kind} query".strip(), f"{kind} queries".strip())
    return f"{so_many} {'is' if number == 1 else 'are'}"
