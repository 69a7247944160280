"""The command line: ``tiewise evaluate``, ``similarity``, ``break``, ``measures`` and ``demo``.

A command reads its options, calls the library, and writes what `tiewise.reporting` made of the result. So that a small
command starts quickly, rich is loaded only to draw for people. Exit codes: 0 done, 2 bad input or usage (or no room to
write), 3 a gate closed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from tiewise import evaluation, likeness
from tiewise._command import QuickCommand, QuickGroup
from tiewise._version import __version__
from tiewise.errors import CutWarning, InputError, MeasureError, TiewiseError, TiewiseWarning
from tiewise.gate import Gate
from tiewise.io import read_qrels, read_run, write_run
from tiewise.io.recognise import FORMATS
from tiewise.io.streams import COMPRESSED, save
from tiewise.profiles import TOOLS
from tiewise.registry import Measure, measures, parse, parse_all, split_names
from tiewise.reporting import Format, ListFormat, Named, SheetFormat, Value, View, render
from tiewise.reporting.numerals import share
from tiewise.reporting.view import EXTRAS, SUFFIXES
from tiewise.reporting.words import notes, safe
from tiewise.ties import ORDERS, randomly_broken

__all__ = ["app", "main"]

SHORT_TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
BAD_INPUT, GATE_CLOSED, INTERRUPTED, PIPE_CLOSED = 2, 3, 130, 141  # the last two as a shell reports the signals

app = typer.Typer(
    name="tiewise",
    cls=QuickGroup,
    help="How far can a retrieval score be trusted? Exact, tie-aware evaluation of ranked runs.",
    epilog="Exit codes: 0 done, 2 bad input or usage, 3 a --fail-if gate closed.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line of this process and exit with its status."""
    _stand_in()
    status = _status(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:  # said already; what is left has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)


def _stand_in() -> None:
    """Take the places of streams that the caller closed, so that no file gets their numbers and their use fails."""
    for name, flags, mode in (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def _status(args: Sequence[str]) -> int:
    """The exit status of a command line; errors become one paragraph on standard error."""
    usage_error = cast("type[Exception]", typer.BadParameter.__base__)  # click's UsageError, wherever typer keeps it
    try:
        status = app(args=list(args), prog_name="tiewise", standalone_mode=False)
        sys.stdout.flush()
    except usage_error as error:
        return _refuse(error)
    except TiewiseError as error:
        _complain(str(error))
        return BAD_INPUT
    except BrokenPipeError:
        return PIPE_CLOSED
    except OSError as error:  # of help and version; all else writes with `save`
        _complain(f"{error.filename or 'standard output'}: cannot be used ({error.strerror or error}).")
        return BAD_INPUT
    except SystemExit as left:
        if left.code != 1:
            raise
        return PIPE_CLOSED  # so typer and rich leave when whoever reads has stopped (``| head``); nothing else does
    except (typer.Abort, KeyboardInterrupt):
        _complain("interrupted")
        return INTERRUPTED
    return status if isinstance(status, int) else 0


def _refuse(error: Any) -> int:
    command = error.ctx.command_path if error.ctx else "tiewise"
    message = " ".join(error.format_message().split())
    _complain(f"{message}{'' if message.endswith(('.', '?')) else '.'} Try '{command} --help'.")
    return BAD_INPUT


def _complain(message: str) -> None:
    for line in message.split("\n"):
        _say(f"tiewise: {safe(line)}")


def _say(line: str) -> None:
    """Write a line to standard error, unless nobody reads it."""
    with suppress(BrokenPipeError):
        print(line, file=sys.stderr, flush=True)


# -- options --------------------------------------------------------------------------------------------------


def _complete_measure() -> list[tuple[str, str]]:
    return [(name, measure.summary) for name, measure in measures().items()]


def _complete_comparison() -> list[tuple[str, str]]:
    return [(name, measure.summary) for name, measure in measures().items() if measure.compares]


def _complete_order() -> list[str]:
    return [*TOOLS, *ORDERS, "none"]


def _complete_input_format() -> list[str]:
    return list(FORMATS)


def _complete_columns() -> list[str]:
    return list(EXTRAS)


_MEASURES, _QUERIES, _TIES, _OUTPUT = "What is measured", "Queries and documents", "Ties", "Output"

QrelsFile = Annotated[Path, typer.Argument(metavar="QRELS", help="The judgments; - is standard input.")]
RunFiles = Annotated[list[Path], typer.Argument(metavar="RUN", help="One run or several; - is standard input.")]
ManyRunFiles = Annotated[list[Path], typer.Argument(metavar="RUN", help="Two runs or more; - is standard input.")]
RunFile = Annotated[Path, typer.Argument(metavar="RUN", help="The run; - is standard input.")]

Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        metavar="NAMES",
        help="Measures, split at blanks and commas, in our spelling or that of trec_eval, ir_measures, ranx or MTEB: "
        "nDCG@10, 'P(rel=2)@5', ndcg_cut.5,10. Repeatable; `tiewise measures` lists them.",
        show_default="nDCG@10 AP RR P@10 R@100",
        autocompletion=_complete_measure,
        rich_help_panel=_MEASURES,
    ),
]
Comparison = Annotated[
    str,
    typer.Option(
        "--measure",
        "-m",
        metavar="NAME",
        help="A measure of two rankings: RBO, RBA or RBR, with parameters and a cutoff: 'RBO(phi=0.95)@100'.",
        autocompletion=_complete_comparison,
        rich_help_panel=_MEASURES,
    ),
]
Phi = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="How far down one looks, above 0 and below 1, for a measure that does not say phi= itself.",
        show_default="0.9",
        rich_help_panel=_MEASURES,
    ),
]
Level = Annotated[
    float,
    typer.Option(
        "--level",
        "-l",
        metavar="LABEL",
        help="The lowest label that is relevant, for measures that do not say rel= themselves.",
        rich_help_panel=_MEASURES,
    ),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="A file or module with measures of your own, imported first. Repeatable.",
        rich_help_panel=_MEASURES,
    ),
]
FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="Exit with 3 if this holds for a run: 'range(nDCG@10) > 0.01', 'abs(bias(AP)) > 0.005 or z(RR) > 4'. "
        "Of a measure: expected minimum maximum std oblivious bias range z residual. Repeatable.",
        rich_help_panel=_MEASURES,
    ),
]
Missing = Annotated[
    Literal["zero", "skip", "error"] | None,
    typer.Option(
        help="Judged queries that the run does not have score 0, are left out, or are an error.",
        show_default="zero",
        rich_help_panel=_QUERIES,
    ),
]
CountMissing = Annotated[
    bool, typer.Option("-c", help="The same as --missing zero, as in trec_eval.", rich_help_panel=_QUERIES)
]
NoRelevant = Annotated[
    Literal["zero", "skip"],
    typer.Option(help="Queries without a relevant document count, or are left out.", rich_help_panel=_QUERIES),
]
JudgedOnly = Annotated[
    bool,
    typer.Option("--judged-only", "-J", help="Take unjudged documents out of the lists.", rich_help_panel=_QUERIES),
]
Depth = Annotated[
    int | None,
    typer.Option("--depth", "-M", metavar="N", min=1, help="Only the first N ranks count.", rich_help_panel=_QUERIES),
]
Edge = Annotated[
    Literal["extend", "shrink", "error"],
    typer.Option(
        help="Where a depth ends inside a tie group: take the group whole, leave it out, or stop.",
        rich_help_panel=_TIES,
    ),
]
InputFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="The format of the runs: trec, msmarco, json, mteb (mteb:subset/split), sentence-transformers or parquet.",
        show_default="recognised from the content",
        autocompletion=_complete_input_format,
        rich_help_panel=_QUERIES,
    ),
]
QrelsFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="The format of the judgments: trec, msmarco, beir, json or parquet.",
        show_default="recognised from the content",
        autocompletion=_complete_input_format,
        rich_help_panel=_QUERIES,
    ),
]
Oblivious = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The one order of ties whose value stands beside the expectation: that of a tool (trec_eval, pytrec_eval, "
        "ir_measures, sentence-transformers ...), given, docid-desc, docid-asc, rank, or none.",
        autocompletion=_complete_order,
        rich_help_panel=_TIES,
    ),
]
ScoreType = Annotated[
    str | None,
    typer.Option(
        "--score-dtype",
        metavar="TYPE",
        help="Read scores as float32, float16, bfloat16 (fp32, fp16, bf16) or decimal:N first, which may make ties.",
        autocompletion=lambda: [*SHORT_TYPES.values(), "decimal:"],
        rich_help_panel=_TIES,
    ),
]
Complete = Annotated[
    bool,
    typer.Option(
        "--complete", help="The lists are whole: none was cut inside its last tie group.", rich_help_panel=_TIES
    ),
]
Tools = Annotated[
    bool, typer.Option("--tools", help="Show what each known tool prints for the run.", rich_help_panel=_TIES)
]
PerQuery = Annotated[bool, typer.Option("--per-query", "-q", help="Show each query.", rich_help_panel=_OUTPUT)]
NoSummary = Annotated[
    bool, typer.Option("--no-summary", "-n", help="Leave out the means over queries.", rich_help_panel=_OUTPUT)
]


def _format_option(formats: str) -> Any:
    return typer.Option(
        "--format",
        metavar="FORMAT",
        help=formats,
        show_default="table on a terminal, else tsv; with -o by the file's suffix",
        rich_help_panel=_OUTPUT,
    )


OutputFormat = Annotated[
    Format | None,
    _format_option("table, tsv, csv, json (one object with the list 'runs'), jsonl, latex, markdown, parquet or trec."),
]
SheetOutputFormat = Annotated[
    SheetFormat | None,
    _format_option("table, tsv, csv, json (one object with the list 'pairs'), jsonl, latex, markdown or parquet."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="More columns in table, markdown and latex: minimum maximum range std oblivious bias z residual cut.",
        autocompletion=_complete_columns,
        rich_help_panel=_OUTPUT,
    ),
]
Wide = Annotated[
    bool,
    typer.Option(
        "--wide", help="All of std, oblivious, bias, z, residual and cut that apply.", rich_help_panel=_OUTPUT
    ),
]
ShownValue = Annotated[
    Value | None,
    typer.Option(
        metavar="NAME",
        help="One number a cell in table, markdown, latex and trec: expected, oblivious, minimum or maximum.",
        show_default="expected; with its range where there is room",
        rich_help_panel=_OUTPUT,
    ),
]
Digits = Annotated[
    int | None,
    typer.Option(
        "--digits",
        "-p",
        metavar="N",
        min=0,
        max=17,
        help="Digits behind the point.",
        show_default="3 for people, 4 in trec, else all",
        rich_help_panel=_OUTPUT,
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="What to call a run; once for each, in their order.",
        show_default="the file's name",
        rich_help_panel=_OUTPUT,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to a file, whole or not at all; - is standard output; .gz, .zst, .bz2 and .xz compress.",
        rich_help_panel=_OUTPUT,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No notes on standard error.", rich_help_panel=_OUTPUT)]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Equal seeds break ties equally.")]


# -- commands -------------------------------------------------------------------------------------------------


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"tiewise {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _tiewise(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help(), end="")
        raise typer.Exit(BAD_INPUT)


@app.command(
    cls=QuickCommand,
    epilog="Examples\n\n"
    "  tiewise evaluate qrels.txt run.trec -m nDCG@10 -m RR@10\n\n"
    "  tiewise evaluate qrels.txt bm25.trec dense.trec.gz --wide\n\n"
    "  tiewise evaluate -q -c -M 1000 -m ndcg_cut.10,100 --format trec qrels.txt run.trec\n\n"
    "  tiewise evaluate qrels.txt run.json --tools --oblivious sentence-transformers\n\n"
    "  tiewise evaluate qrels.txt run.trec --fail-if 'range(nDCG@10) > 0.01' || echo too many ties",
)
def evaluate(
    qrels: QrelsFile,
    runs: RunFiles,
    measure: Measures = None,
    level: Level = 1,
    plugin: Plugins = None,
    fail_if: FailIf = None,
    missing: Missing = None,
    count_missing: CountMissing = False,
    no_relevant: NoRelevant = "zero",
    judged_only: JudgedOnly = False,
    depth: Depth = None,
    input_format: InputFormat = None,
    qrels_format: QrelsFormat = None,
    oblivious: Oblivious = "trec_eval",
    score_dtype: ScoreType = None,
    complete: Complete = False,
    tools: Tools = False,
    per_query: PerQuery = False,
    no_summary: NoSummary = False,
    format: OutputFormat = None,
    columns: Columns = None,
    wide: Wide = False,
    value: ShownValue = None,
    digits: Digits = None,
    name: Names = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Measure runs against judgments, exactly over all orders of their tied documents.

    A number alone is, to the digits shown, the same in every order of ties; .363 [.359, .367] adds the lowest and the
    highest there can be.
    """
    format, output = _target(format, output)
    if no_summary and not per_query:
        raise InputError("-n leaves out the means, so that nothing is left without -q. Give -q too.")
    if count_missing and missing not in (None, "zero"):
        raise InputError(f"-c is --missing zero, and --missing {missing} was given too. Give one of them.")
    if tools and per_query and format not in ("table", "markdown", "json"):
        raise InputError(f"In {format}, --tools has no rows for queries. Leave -q out, or use --format json or table.")
    named = dict(zip(_names(runs, name or ()), runs, strict=True))
    chosen, gates = _asked(measure, fail_if or (), level, plugin or ())
    view = View(
        format=format,
        per_query=per_query,
        summary=not no_summary,
        digits=digits,
        value=value,
        tools=tools,
        level=level,
        **_screen(output),
    )
    options = {
        "oblivious": None if oblivious == "none" else oblivious,
        "missing": missing or "zero",
        "no_relevant": no_relevant,
        "score_dtype": SHORT_TYPES.get(score_dtype or "", score_dtype),
        "depth": depth,
        "judged_only": judged_only,
        "complete": complete,
    }
    reports, warned = _evaluated(qrels, named, chosen, options, formats=(qrels_format, input_format))
    view = replace(view, columns=_extras(columns or (), wide, reports), notes=warned)
    _write(render(reports, view), output)
    _note_beside(view, notes(reports, view), quiet)
    _judge(gates, reports)


@app.command(
    cls=QuickCommand,
    epilog="Examples\n\n"
    "  tiewise similarity bm25.trec dense.trec --phi 0.95 --depth 100\n\n"
    "  tiewise similarity runs/*.trec -m RBA -o matrix.md\n\n"
    "  tiewise similarity bm25.trec dense.trec hybrid.trec -q --format csv -o pairs.csv",
)
def similarity(
    runs: ManyRunFiles,
    measure: Comparison = "RBO",
    phi: Phi = None,
    depth: Depth = None,
    input_format: InputFormat = None,
    edge: Edge = "extend",
    per_query: PerQuery = False,
    format: SheetOutputFormat = None,
    digits: Digits = None,
    name: Names = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Compare the rankings of runs with each other, with ties and bounds, over the queries that all of them have.

    Two runs are a line with bounds; more are a matrix, with one number for each pair.
    """
    from tiewise.reporting.progress import progress
    from tiewise.reporting.sheet import draw
    from tiewise.reporting.similar import Similar, is_matrix

    target, output = _target(format, output)
    named = dict(zip(_names(runs, name or ()), runs, strict=True))
    chosen = _comparison(measure, phi, depth)
    view = View(format=target, per_query=per_query, digits=digits, **_screen(output))
    lower_only = chosen.stem == "RBA" and is_matrix(len(named), view)  # then it is one product for all pairs
    _read_once(runs)
    with _heeded() as warned:
        read = {name: read_run(path, format=input_format) for name, path in named.items()}
        with progress("queries", quiet=quiet) as tell:
            found = likeness.similarity(read, chosen, edge=edge, bounds=not lower_only, progress=tell)
    sheet = Similar(found, read, edge)
    view = replace(view, notes=(*warned, *sheet.notes))
    _write(draw(sheet, view), output)
    _note_beside(view, view.notes, quiet)


@app.command("break", cls=QuickCommand, epilog="Example: tiewise break run.trec --seed 7 -o strict.trec.gz")
def break_ties(
    run: RunFile, seed: Seed = 0, input_format: InputFormat = None, output: Output = None, quiet: Quiet = False
) -> None:
    """Write a run whose ties are broken strictly at random, for tools that need one.

    Documents that are not tied keep their order. Scores become n, n - 1 ... 1, so that no reader ties them again.

    One seed gives one order out of many: a tool then measures that order, not the run.
    """
    given = read_run(run, format=input_format)
    write_run(randomly_broken(given, seed), "-" if output is None else output)
    if not quiet:
        _note(f"{share(given.tied_share)} of {len(given):,} rows were tied; seed {seed}.")


@app.command("measures", cls=QuickCommand)
def list_measures(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A measure, to see its documentation.", autocompletion=_complete_measure),
    ] = None,
    format: Annotated[
        ListFormat | None,
        typer.Option(help="How to print.", show_default="table on a terminal, else tsv"),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """List the measures, with their parameters, their defaults and their other names; or show one."""
    import json

    from tiewise.reporting import listing

    _load(plugin or ())
    screen = _screen(None)
    chosen = format or ("table" if screen["width"] else "tsv")
    if name is None:
        _write(listing.listing(chosen, **screen), None)
    elif format == "json":
        _write(json.dumps(listing.entry(parse(name)), indent=2, ensure_ascii=False) + "\n", None)
    else:
        _write(listing.page(parse(name)), None)


@app.command(cls=QuickCommand)
def demo() -> None:
    """One screen on why ties matter: a scorer that knows nothing, and a real model in bfloat16."""
    from tiewise.reporting.demo import demo as screen

    _write(screen(**_screen(None)), None)


# -- what was asked for ---------------------------------------------------------------------------------------


def _load(plugins: Iterable[str]) -> None:
    from tiewise.plugin import load

    for name in plugins:
        load(name)


def _asked(
    names: Sequence[str] | None, conditions: Sequence[str], level: float, plugins: Sequence[str]
) -> tuple[list[Measure], list[Gate]]:
    """The measures that were asked for, those of the gates behind them, and the gates."""
    _load(plugins)
    chosen = [one for text in names or evaluation.DEFAULT_MEASURES for one in _at_level(text, level)]

    def named(text: str) -> Measure:
        found = _at_level(text, level)
        return found[0] if len(found) == 1 else parse(text)

    gates = [Gate.parse(text, named) for text in conditions]
    return list(dict.fromkeys([*chosen, *(one for gate in gates for one in gate.measures)])), gates


def _at_level(text: str, level: float) -> list[Measure]:
    """The measures of a text, at a relevance level where they have one and do not name it."""
    found = []
    for word in split_names(text) or [text]:
        said = re.search(r"\brel\s*=|-l\d+$", word)
        found += [one if said or "rel" not in one.params else one(rel=level) for one in parse_all(word)]
    return found


def _comparison(text: str, phi: float | None, depth: int | None) -> likeness.Comparison:
    """The measure of two rankings that was asked for, with phi and depth where its name says neither."""
    found = parse(text)
    if not isinstance(found, likeness.Comparison):
        raise MeasureError(f"{found} is for a run and judgments: use `tiewise evaluate`. Between runs: RBO, RBA, RBR.")
    if depth is not None and found.cutoff not in (None, depth):
        raise InputError(f"{found} has a cutoff, and --depth {depth} was given too. Give one of them.")
    if phi is not None and "phi" in found.params and not re.search(r"\bphi\s*=", text):
        found = found(phi=phi)
    return found if depth is None else found @ depth


def _extras(names: Sequence[str], wide: bool, reports: Sequence[Named]) -> tuple[Any, ...]:
    """The columns that were asked for by name, then those of --wide that apply to some measure."""
    asked = [name for text in names for name in re.split(r"[\s,]+", text) if name]
    for name in asked:
        if name not in EXTRAS:
            raise InputError(f"Unknown column '{name}'. Use {', '.join(EXTRAS)}.")
    means = [report[measure] for _, report in reports for measure in report]
    for name in ("std", "oblivious", "bias", "z", "residual", "cut") if wide else ():
        if any(getattr(mean, name) is not None for mean in means):
            asked.append(name)
    return tuple(dict.fromkeys(asked))


# -- reading and measuring ------------------------------------------------------------------------------------


def _evaluated(
    qrels: Path,
    runs: Mapping[str, Path],
    chosen: Sequence[Measure],
    options: dict[str, Any],
    formats: tuple[str | None, str | None],
) -> tuple[list[Named], tuple[str, ...]]:
    """The report of each run under its name, and warnings in words."""
    _read_once([qrels, *runs.values()])
    qrels_format, run_format = formats if formats[1] != "beir" else ("beir", None)  # BEIR's format is one of judgments
    with _heeded() as warned:
        judged = read_qrels(qrels, format=qrels_format)
        reports = [
            Named(name, evaluation.evaluate(judged, read_run(path, format=run_format), chosen, **options))
            for name, path in runs.items()
        ]
    return reports, tuple(warned)


def _read_once(paths: Iterable[Path]) -> None:
    if [*map(str, paths)].count("-") > 1:
        raise InputError("Standard input (-) can be read once. Give files for the others.")


@contextmanager
def _heeded() -> Iterator[list[str]]:
    """A list that holds in words, at the end, what was warned of."""
    words: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TiewiseWarning)
        warnings.simplefilter("ignore", CutWarning)  # a note of the report says it
        yield words
    words += [str(one.message) for one in caught if issubclass(one.category, TiewiseWarning)]


_SUFFIXES = {".gz", ".zst", ".bz2", ".xz", ".trec", ".run", ".res", ".txt", ".tsv", ".json", ".jsonl", ".parquet"}


def _names(paths: Sequence[Path], given: Sequence[str] = ()) -> list[str]:
    """A name for each run: the given one, or that of its file, with as many folders as tell it from the others.

    >>> _names([Path("a/run.trec.gz"), Path("b/run.trec"), Path("b/bm25.trec"), Path("b/bm25.trec"), Path("-")])
    ['a/run', 'b/run', 'b/bm25', 'b/bm25#2', 'stdin']
    """
    if given:
        if len(given) != len(paths) or len(set(given)) < len(given):
            raise InputError("--name takes a name of its own for each run. Give it once for each, in their order.")
        return list(given)
    plain = [_without_suffixes(path) for path in paths]
    longest = max(len(path.parts) for path in plain)
    short = [path.name for path in plain]
    for parts in range(1, longest + 1):
        named = ["/".join(path.parts[-parts:]) for path in plain]
        if len(set(named)) == len(set(paths)):
            short = named
            break
    seen: dict[str, int] = {}
    for place, name in enumerate(short):
        seen[name] = seen.get(name, 0) + 1
        short[place] = name if seen[name] == 1 else f"{name}#{seen[name]}"
    return short


def _without_suffixes(path: Path) -> Path:
    if str(path) == "-":
        return Path("stdin")
    while path.suffix.lower() in _SUFFIXES and path.stem:
        path = path.with_suffix("")
    return path


# -- writing --------------------------------------------------------------------------------------------------


def _target(format: Format | None, output: Path | None) -> tuple[Format, Path | None]:
    """The format, and the file to write; None is standard output."""
    output = None if output == Path("-") else output
    chosen = format or _usual_format(output)
    if chosen == "parquet" and output is None and sys.stdout.isatty():
        raise InputError("Parquet is not for a terminal. Write it to a file: -o FILE.parquet.")
    return chosen, output


def _usual_format(output: Path | None) -> SheetFormat:
    """The format when none is asked for: by the suffix of the file, else a table for people and TSV for programs."""
    if output is None:
        return "table" if sys.stdout.isatty() else "tsv"
    plain = output.with_suffix("") if output.suffix in COMPRESSED else output
    if plain.suffix and plain.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise InputError(f"{output}: '{plain.suffix}' says no format. End the name in {known}, or give --format.")
    return SUFFIXES.get(plain.suffix.lower(), "tsv")


def _screen(output: Path | None) -> dict[str, Any]:
    """Width and colour of the terminal, if that is where the text goes."""
    shown = output is None and sys.stdout.isatty()
    return {"width": shutil.get_terminal_size().columns if shown else None, "colour": shown}


def _write(content: str | bytes, output: Path | None) -> None:
    """Write to a file, whole or not at all, or to standard output."""
    if isinstance(content, str):
        encoding = sys.stdout.encoding if output is None and sys.stdout.isatty() else "utf-8"
        content = content.encode(encoding, "backslashreplace")
    save("-" if output is None else output, [content])


def _note_beside(view: View, said: Iterable[str], quiet: bool) -> None:
    """Write notes to standard error, unless the output itself shows them to people."""
    if not quiet and view.format not in ("table", "markdown"):
        _note(*said)


def _note(*notes: str) -> None:
    for note in notes:
        _say(f"note: {safe(note)}")


def _judge(gates: Sequence[Gate], reports: Sequence[Named]) -> None:
    """Exit with 3 if a gate closes for a run, and say which, and by what."""
    closed = [(gate, name, why) for gate in gates for name, report in reports if (why := gate.closed_by(report))]
    for gate, name, why in closed:
        _complain(f"the gate '{gate.text}' is closed by {name}: {why}.")
    if closed:
        raise typer.Exit(GATE_CLOSED)
