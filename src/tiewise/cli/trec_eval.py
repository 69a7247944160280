"""``tiewise trec_eval``: the command line and the output of trec_eval 10, or 9."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from tiewise.analysis.reports import method_notes
from tiewise.analysis.trec_format import format_line, format_number
from tiewise.analysis.trec_lists import TrecLists
from tiewise.caching import cached_property
from tiewise.cli import options
from tiewise.cli.command import INPUT, MEASURES, OUTPUT, TIES, GnuCommand, WholeNumber, command, complete_from, option
from tiewise.cli.output import write
from tiewise.cli.program import EAGER, print_note, show_version
from tiewise.data.columns import Floats
from tiewise.errors import InputError, MeasureError
from tiewise.io import as_qrels, as_source
from tiewise.io.compression import PathLike, opened
from tiewise.io.text import line_blocks
from tiewise.metrics.catalogue.parts import LevelGains
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.trec_eval_names import (
    LONG_MAX,
    NAMES,
    NEW_IN_10,
    NICKNAMES,
    OFFSETS,
    OUT_OF_SCOPE,
    names_of_version,
    parse_long,
)

EXAMPLES = (
    "tiewise trec_eval qrels.txt run.trec",
    "tiewise trec_eval -q -m map -m P.5,10 -m ndcg_cut qrels.txt run.trec",
    "tiewise trec_eval --compat 9 -m map -m ndcg_cut.10 qrels.txt run.trec",
    "tiewise trec_eval -c -M 1000 -m official --expected --range qrels.txt run.trec",
)
RELSTRING_LENGTH = 10
#: With parameters after these names, trec_eval -c evaluates one unjudged document in place of a missing list.
FILLED = ("utility", "rbp_resid", "relstring")
#: Names for which trec_eval sorts gains.
SORTED_GAINS = ("G", "ndcg", "ndcg_rel", "Rndcg")


class _Long(WholeNumber):
    """A C long that is not negative: what is larger is the largest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return min(super().convert(value, param, ctx), LONG_MAX)


class _Level(_Long):
    """The lowest label that is relevant; trec_eval takes negative ones, and contradicts itself."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if str(value).startswith("-"):
            raise InputError(
                f"-l {value}: below 0, unjudged documents are relevant in some measures of trec_eval, and not in "
                "others. Use -l 0 or more."
            )
        return super().convert(value, param, ctx)


_LONG = _Long(min=0)


def _refuse(what: str) -> Any:
    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value not in (None, param.default):
            raise InputError(f"{what} Use trec_eval itself for it.")

    return callback


@command("trec_eval", examples=EXAMPLES, cls=GnuCommand)
@options.qrels
@options.run
@option(
    "-m, --measure NAME[.PARAMS]",
    MEASURES,
    "A measure of trec_eval: map, P.5,10, ndcg.1=5,2=9, or a nickname: official, all_trec, set.",
    into="names",
    multiple=True,
    default_note="official",
    shell_complete=complete_from(lambda: [*NICKNAMES, *NAMES]),
)
@option("-l, --level_for_rel N", MEASURES, "The lowest label that is relevant.", type=_Level(), default=1)
@option("-N, --Number_docs_in_coll N", MEASURES, "Documents in the collection.", type=_LONG, default=0)
@option("-c, --complete_rel_info_wanted", INPUT, "Judged queries that are not in the run count as 0.")
@option("-M, --Max_retrieved_per_topic N", INPUT, "Use only the first N ranks of each list.", type=_LONG)
@option("-J, --Judged_docs_only", INPUT, "Remove unjudged documents, after -M.")
@option(
    "-R, --Rel_info_format FORMAT",
    INPUT,
    "The format of the judgments: only qrels.",
    default="qrels",
    expose_value=False,
    callback=_refuse("The preference formats of judgments (prefs, qrels_prefs, qrels_jg) are out of scope."),
)
@option(
    "-T, --Results_format FORMAT",
    INPUT,
    "The format of the run: only trec_results.",
    default="trec_results",
    expose_value=False,
    callback=_refuse("Only runs of the format trec_results are read here."),
)
@option(
    "--compat VERSION",
    OUTPUT,
    "The version whose bytes are printed: 10, or 9 (9.0.8 and before).",
    type=click.Choice(["9", "10"]),
    default="10",
)
@option("--expected", TIES, "Print expectations over all orders of ties, not the values of one order.")
@option("--range", TIES, "Add lines NAME.min and NAME.max: the range over all orders of ties.", into="with_range")
@option("-q, --query_eval_wanted", OUTPUT, "Print each query.")
@option("-n, --nosummary", OUTPUT, "Do not print the means over queries.")
@option("-o", OUTPUT, "Nothing: obsolete, as in trec_eval.", into="_", expose_value=False)
@option("-v, --version", OUTPUT, "Show the version of Tiewise.", **EAGER, callback=show_version)
@option(
    "-Z, --Zscore FILE",
    OUTPUT,
    "Z-scores: out of scope, and an error.",
    expose_value=False,
    callback=_refuse("Z-scores (-Z) are out of scope."),
)
def trec_eval(
    qrels: Path,
    run: Path,
    *,
    names: Sequence[str],
    level_for_rel: int,
    number_docs_in_coll: int,
    complete_rel_info_wanted: bool,
    max_retrieved_per_topic: int | None,
    judged_docs_only: bool,
    compat: str,
    expected: bool,
    with_range: bool,
    query_eval_wanted: bool,
    nosummary: bool,
) -> None:
    """Print what trec_eval prints, byte for byte, or the expectation over all orders of tied documents.

    Options, names of measures, order of lines and numbers are those of trec_eval 10. With --compat 9 they are those of
    9.0.8: scores are read as float32, and queries that the run lacks are left out without -c.
    """
    version = int(compat)
    chosen = _choose(names or ["official"], version, rel=level_for_rel, collection=number_docs_in_coll)
    judged, source = as_qrels(qrels), as_source(run)
    notes = []
    if not judged.has_whole_labels:
        notes.append(
            "Labels are cut to whole numbers, as in trec_eval: 2.7 is 2. tiewise evaluate counts them as they are."
        )
        judged = judged.with_whole_labels()
    lists = TrecLists.of(
        judged,
        source,
        complete=complete_rel_info_wanted,
        version=version,
        all_judged=judged_docs_only or any(one.needs_all_judged for one in chosen),
        depth=max_retrieved_per_topic,
        judged_only=judged_docs_only,
    )
    columns = _Columns(
        lists,
        version=version,
        complete=complete_rel_info_wanted,
        expected=expected,
        with_range=with_range,
        with_queries=query_eval_wanted,
    )
    table = [column for one in chosen for column in columns.of(one)]
    if any(one.name == "runid" for one in chosen):
        tag = _read_tag(run) if run.is_file() else source.rows().name  # a pipe can be read only once
        table.insert(0, _Column("runid", (), tag or run.stem))
    write("".join(_lines(table, lists.queries if query_eval_wanted else (), summary=not nosummary)))
    print_note(*notes, *columns.notes)


# -- names --------------------------------------------------------------------------------------------------------


class _Chosen(NamedTuple):
    """A measure to print."""

    name: str  # of trec_eval
    text: str | None  # its parameters, if there are any
    printed: str
    measure: Measure | None  # None: a text

    @property
    def needs_all_judged(self) -> bool:
        return self.name == "relstring" if self.measure is None else self.measure.needs_all_judged


def _choose(words: Sequence[str], version: int, **settings: float) -> list[_Chosen]:
    """The measures of some words, in trec_eval's order; of the parameters of a name, those given first count."""
    known = names_of_version(version)
    texts: dict[str, str | None] = {}
    for word in words:
        name, dot, text = word.partition(".")
        if re.fullmatch(OUT_OF_SCOPE, name):
            raise MeasureError(f"'{name}' needs preference judgments, which are out of scope. Use trec_eval for it.")
        if name in NEW_IN_10 and name not in known:
            raise MeasureError(f"trec_eval {version} has no measure '{name}': it is new in 10. Leave --compat out.")
        if name not in (known | NICKNAMES):
            close = difflib.get_close_matches(name, [*known, *NICKNAMES], 1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            raise MeasureError(f"trec_eval has no measure '{word}'.{hint} Parameters follow a dot, as in P.5,10.")
        if (dot and not text) or (dot and name in NICKNAMES):
            raise MeasureError(f"'{word}': give parameters after the dot." if not text else f"'{name}' takes none.")
        for one in NICKNAMES.get(name, (name,)):
            texts[one] = texts.get(one) or text or None
    return [
        _Chosen(name, texts[name], printed, measure)
        for name, entry in known.items()
        if name in texts
        for printed, measure in entry.expand(name, texts[name], offset=OFFSETS[version], **settings)
    ]


# -- values -------------------------------------------------------------------------------------------------------


class _Column(NamedTuple):
    """The values of a name: of each query, if it has them, and the one for all of them."""

    name: str
    of_queries: Sequence[str]
    summary: str | None


class _Columns:
    """The values of measures as text."""

    def __init__(
        self, lists: TrecLists, *, version: int, complete: bool, expected: bool, with_range: bool, with_queries: bool
    ):
        self._lists, self._version, self._complete, self._with_queries = lists, version, complete, with_queries
        self._expected, self._with_range = expected, with_range
        self._means: dict[str, Estimate] = {}  # by the printed names
        self._undefined: list[str] = []
        self._notes: list[str] = []

    @cached_property
    def _filled(self) -> TrecLists:
        return self._lists.fill_missing()

    @property
    def notes(self) -> list[str]:
        """How expectations and ranges were found, if not exactly; where trec_eval prints nan; what is left out."""
        nan = (
            f"Where a list is empty, or no relevant document has a gain, trec_eval divides 0 by 0 and prints nan, also "
            f"for all queries: {', '.join(self._undefined)}. 0.0000 is printed instead; --expected counts it as 0."
        )
        shown = [*(["expected"] if self._expected else []), *(["extremes"] if self._with_range else [])]
        how = method_notes(self._means, shown, marks=False)
        return [*how, *([nan] if self._undefined else []), *self._notes]

    def of(self, chosen: _Chosen) -> Iterator[_Column]:
        """The columns of a measure: one, or three with its range."""
        fills = self._version > 9 and chosen.text is not None and chosen.name in FILLED
        lists = self._filled if fills else self._lists
        measure, printed = chosen.measure, chosen.printed
        if chosen.name == "11pt_avg" and chosen.text:
            points = [float(point) for point in chosen.text.split(",")]
            if points != sorted(points):
                unsorted = "trec_eval prints another number, because it needs points in ascending order."
                self._notes.append(f"11pt_avg: {unsorted}")
        if chosen.name in SORTED_GAINS and isinstance(measure, LevelGains) and _has_close_gains(measure):
            close = "trec_eval compares gains as whole numbers, so it takes some of these as equal, and its number"
            self._notes.append(f"{printed}: {close} depends on their order and on the C library.")
        if measure is None:
            if chosen.name == "relstring" and self._expected:
                self._notes.append("relstring is a text, which has no expectation. It is left out.")
            elif chosen.name == "relstring":
                texts = lists.relevance_strings(_parse_length(chosen.text))
                yield _Column(printed, [f"'{text}'" for text in texts], None)
            return
        if not self._expected:
            yield self._format(printed, chosen, values := lists.values(measure), self._summarize(chosen, values))
        if self._expected or self._with_range:
            each, total = lists.estimates(measure), self._summarized(chosen)
            self._means[printed] = mean = each.mean() if measure == total else lists.estimates(total).mean()
            if self._expected:
                yield self._format(printed, chosen, each.expected[lists.places], mean.expected)
            if self._with_range:
                yield self._format(f"{printed}.min", chosen, each.minimum[lists.places], mean.minimum)
                yield self._format(f"{printed}.max", chosen, each.maximum[lists.places], mean.maximum)

    def _summarize(self, chosen: _Chosen, values: Floats) -> float:
        """The value for all queries, with trec_eval's exceptions."""
        measure = self._summarized(chosen)
        if measure != chosen.measure:
            values = self._lists.values(measure)
        if self._lists.is_undefined(measure):  # nan in trec_eval
            self._undefined.append(chosen.printed)
            return 0.0
        total = float(np.cumsum(measure.aggregation.terms(values))[-1])  # one after another, as trec_eval adds
        return measure.aggregation.of_sum(total, len(values))

    def _summarized(self, chosen: _Chosen) -> Measure:
        """The measure of which the value for all queries is printed."""
        assert chosen.measure is not None
        if self._complete and chosen.name == "num_rel":  # with -c it counts labels from 1 on, whatever -l says
            return chosen.measure(rel=1)
        return chosen.measure

    def _format(self, name: str, chosen: _Chosen, values: Floats, summary: float | None) -> _Column:
        assert chosen.measure is not None and summary is not None
        format = partial(format_number, is_count=chosen.measure.total)
        has_queries = self._with_queries and NAMES[chosen.name].shown != "summary"
        shown = values[self._lists.shown].tolist() if has_queries else []
        return _Column(name, [*map(format, shown)], format(summary))


def _has_close_gains(measure: LevelGains) -> bool:
    """Whether two of the gains that were given, and 0, differ by less than 1."""
    return any(0 < two - one < 1 for one, two in pairwise(sorted({0.0, *measure.levels.values()})))


def _parse_length(text: str | None) -> int:
    if text is not None and not (text.isdecimal() and text.isascii()):
        raise MeasureError(f"relstring.{text}: give the number of documents.")
    return RELSTRING_LENGTH if text is None else parse_long(text)


def _lines(table: Sequence[_Column], queries: Sequence[str], *, summary: bool) -> Iterator[str]:
    """The lines of each query, then those of all queries."""
    starts = [(f"{column.name:<22s}\t", column.of_queries) for column in table if column.of_queries]
    for place, query in enumerate(queries):
        yield from (f"{start}{query}\t{values[place]}\n" for start, values in starts)
    if summary:
        yield from (format_line(one.name, "all", one.summary) for one in table if one.summary is not None)


def _read_tag(path: PathLike) -> str | None:
    """The tag in the last line of a run, which trec_eval prints as its runid; None if it has less than six columns."""
    with opened(path, hashed=False) as stream:
        if not stream.compressed:
            with Path(path).open("rb") as file:
                start = max(file.seek(0, 2) - (1 << 14), 0)  # where the last line is looked for first
                file.seek(start)
                lines = file.read().partition(b"\n")[2] if start else file.read()
            if any(map(_is_row, lines.split(b"\n"))):  # else a long line, or many comments
                return _last_tag([lines])
        return _last_tag(line_blocks(stream.chunks(), stream.name))


def _last_tag(blocks: Iterable[bytes]) -> str | None:
    """The tag of the last row in blocks of whole lines."""
    last = b""
    for block in blocks:
        last = next(filter(_is_row, reversed(block.split(b"\n"))), last)
    cells = last.split()
    return cells[5].decode(errors="replace") if len(cells) > 5 else None


def _is_row(line: bytes) -> bool:
    """Whether a line is neither empty nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith(b"#")
