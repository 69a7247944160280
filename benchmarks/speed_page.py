"""The page about speed, its aims and its figures, made from results of `python -m benchmarks`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.analyses import MANY_SYSTEMS, SYSTEM_COUNT
from benchmarks.calls import ALONE, DROP_INS, IR_MEASURES, KEPT, OBJECTS, PYTREC_EVAL
from benchmarks.contenders import PREPARED
from benchmarks.shapes import CALL_DOCUMENTS
from benchmarks.start import NUMPY, TABLE
from benchmarks.sweeps import TOOLS

Result = dict[str, Any]

INTRODUCTION = """# Speed

{sentences}

How many times as long as Tiewise other tools take; it also computes expectation, extremes, standard deviation and the
bounds for truncated lists:

{summary}

All compute {measures} for every query. Times are CPU seconds; in brackets, divided by that of
Tiewise. The tools take turns, the best turn counts, and means must be equal to four digits. The clock starts after the
imports of a Python package, and with the process of a program. Tiewise uses one thread here; by default it uses one for
each core, at most eight, for files larger than 8 MB (`OMP_NUM_THREADS` sets a limit).
"""

#: Work that the first table compares: its name, and the rows for it by kind of input and shape, or by the number of
#: queries of a small call and who answers it.
WORK: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("a file of 1,000 rows", ("files", "call-10")),
    ("a file of 100,000 rows, most of them tied", ("files", "robust")),
    ("a file of 7,000,000 rows, 6,980 queries", ("files", "marco")),
    ("a file of 10,000,000 rows, 100,000 queries", ("files", "large")),
    ("dictionaries of 100,000 rows, most of them tied", ("dicts", "robust")),
    ("dictionaries of 7,000,000 rows", ("dicts", "marco")),
    ("`evaluate` in a loop, 1 list of 100", (1, ALONE, KEPT)),
    ("`evaluate` in a loop, 10 lists of 100", (10, ALONE, KEPT)),
    ("`evaluate` in a loop, 400 lists of 20", (400, ALONE, KEPT)),
    ("the tool's [drop-in](migrate-python.md) in a loop, 1 list of 100", (1, None, KEPT)),
    ("the tool's drop-in in a loop, 10 lists of 100", (10, None, KEPT)),
    ("the tool's drop-in in a loop, 400 lists of 20", (400, None, KEPT)),
    ("the drop-in with a new evaluator in each call, 1 list of 100", (1, None, "")),
    ("the drop-in with a new evaluator in each call, 400 lists of 20", (400, None, "")),
)
PEERS = ("trec_eval", PYTREC_EVAL, IR_MEASURES)

#: Shapes that are in no table of inputs: one is in the first table, the other in an aim.
LEFT_OUT = ("call-10", "one-list")

FILES = """## From files

*robust* and *robust-untied* are made like TREC Robust 2003: 100 queries × 1,000 documents with 1,288 judgments for each
query; 97% and 3% of the rows are tied. *dl*: 50 × 1,000 with 200 graded judgments. *miracl*: 717 × 100. *marco*:
6,980 × 1,000 with one judgment. *large*: 100,000 × 100. The Python reader serves where the compiled one could not be
built; `wc -l` only counts lines. A dash: too slow.
"""

DICTS = """## From dictionaries

For *prepared Qrels* the judgments are a `Qrels`. The drop-in replaces pytrec_eval and returns its numbers only.
"""

CALLS = """## Small calls

One call in a loop, with 20 judgments for each query. *prepared Qrels*: the same `Qrels` in all calls. *evaluate alone*
reads no number, the others read all. *one evaluator* is made once for all calls, as in a training loop.
"""

ANALYSES = """## Other work

`compare` also computes differences, paired tests and intervals; `write_page` writes the HTML page, with imports.
"""

SWEEPS = """## Judgments and ties

100 lists of 1,000 documents, in the first panel with 30% of the rows tied, in the second with 1,288 judgments for
each query. {ratios}

![CPU time against judgments for each query and against the share of tied rows](img/speed-sweeps.svg)
"""

START = """## The start

Whole commands on two lists of five documents, with the start of Python.
"""

LINES = """## The cost of a line

A line costs {least:.0f} to {most:.0f} ns in runs of {first:,} to {last:,} lines, and memory does not grow ({memory}).

![CPU time for each line, from ten thousand lines on](img/speed-lines.svg)
"""

AIMS = """## Aims

Aims are fixed before a measurement: {summary}. Those that are missed:

{missed}

`python -m benchmarks --from benchmarks/results/speed.json` prints all.
"""


# -- the page ---------------------------------------------------------------------------------------------------------


def page(result: Result) -> str:
    """The page of a result, with a section for each part that was measured."""
    texts = {"sentences": _sentences(result), "summary": _summary(result)}
    head = INTRODUCTION.format(measures=", ".join(result["measures"]), **texts)
    parts = [head, _environment(result)]
    sources = [_source(row) for row in result["results"]]
    if "files" in sources:
        parts += [FILES, "\n\n".join(filter(None, [_input_table(result, "files"), _threads(result)]))]
    if "dicts" in sources:
        parts += [DICTS, _input_table(result, "dicts")]
    if rows := result.get("calls"):
        parts += [CALLS, _call_table(rows)]
    if rows := result.get("analyses"):
        parts += [ANALYSES, _analysis_table(rows)]
    if rows := result.get("sweeps"):
        parts += [SWEEPS.format(ratios=_sweep_ratios(rows))]
    if rows := result["start"]:
        parts += [START, _start_table(rows)]
    if rows := result["lines"]:
        parts += [_describe_lines(rows)]
    return "\n".join(part.strip() + "\n" for part in parts)


def _sentences(result: Result) -> str:
    """How many times as long other tools take for files and dictionaries, from the least to the most."""
    sentences = []
    for source, words in SOURCES.items():
        rows = [row for row in result["results"] if _source(row) == source and row["shape"] not in LEFT_OUT]
        parts = []
        for tool in PEERS[:2]:
            found = [_tool_ratio(result, source, shape, tool, "tiewise") for shape in _distinct(rows, "shape")]
            if ratios := [ratio for ratio in found if ratio is not None]:
                least, most = f"{min(ratios):.2g}", f"{max(ratios):.2g}"
                parts.append(f"{least if least == most else f'{least} to {most}'} times as fast as {tool}")
        if parts:
            sentences.append(f"From {words} Tiewise is {' and '.join(parts)}.")
    return "\n".join([*sentences, "A call with a few lists may take longer than with these tools."])


def _summary(result: Result) -> str:
    """How many times as long the other tools take, for each kind of work."""
    cells = []
    for name, work in WORK:
        ratios = [_work_ratio(result, tool, *work) for tool in PEERS]
        if any(ratio is not None for ratio in ratios):
            cells.append([name, *map(_ratio_cell, ratios)])
    return _table(["", *PEERS], cells)


def _work_ratio(result: Result, tool: str, *work: Any) -> float | None:
    """The time of a tool divided by that of Tiewise, None if one was not measured."""
    if len(work) == 2:
        return _tool_ratio(result, *work, tool, "tiewise")
    queries, ours, kept = work
    times = {(row["queries"], row["tool"]): row["cpu"] for row in result.get("calls", [])}
    return _over(times, (queries, tool + kept), (queries, ours or DROP_INS.get(tool + kept)))


def _environment(result: Result) -> str:
    environment = result["environment"]
    absent = "ranx" if not any(row["tool"] == "ranx" for row in result["results"]) else ""
    versions = [f"{name} {version}" for name, version in environment["packages"].items() if version and name != absent]
    before, after = environment["load"]
    machine = f"{environment['device']}, {environment['date']}; load {before:.1f} before and {after:.1f} after"
    quick = " A quick run, with small inputs." if result["quick"] else ""
    return f"{machine}; {', '.join(versions)}.{quick}"


def aim_section(every: Sequence[Aim]) -> str:
    """How many aims are met, and those that are not."""
    measured = [aim for aim in every if aim.measured is not None]
    absent = len(every) - len(measured)
    summary = f"{sum(aim.met for aim in measured)} of {len(measured)} are met"
    missed = _table(["", "aim", "measured"], [[aim.name, aim.target, aim.value] for aim in measured if not aim.met])
    return AIMS.format(summary=summary + f", {absent} were not measured" * bool(absent), missed=missed)


def _input_table(result: Result, source: str) -> str:
    rows = [row for row in result["results"] if _source(row) == source and row["shape"] not in LEFT_OUT]
    shapes, tools = _distinct(rows, "shape"), _distinct([row for row in rows if "threads" not in row["tool"]], "tool")
    largest = max(shapes, key=lambda shape: max(row["cpu"] for row in rows if row["shape"] == shape))
    widest = "marco" if "marco" in shapes else largest
    cells = []
    for tool in tools:
        times = [_time_cell(_row(result, source, shape, tool), _row(result, source, shape)) for shape in shapes]
        memory = (_row(result, source, widest, tool) or {}).get("peak_bytes")
        cells.append([tool, *times, format_memory(memory) if memory else "–"])
    return _table(["", *shapes, f"memory, {widest}"], cells)


def _threads(result: Result) -> str:
    """How much two threads shorten the wall time; nothing if the machine was busy."""
    parts: list[str] = []
    for shape in () if _is_busy(result) else _distinct(result["results"], "shape"):
        one, two = (_row(result, "files", shape, tool) for tool in ("tiewise", "tiewise, 2 threads"))
        if one and two and one["lines"] >= 10**6 and shape not in LEFT_OUT:
            times = f"{format_seconds(one['wall'])} with one thread and {format_seconds(two['wall'])} with two"
            parts.append(f"{shape} takes {times}")
    return f"Wall time: {', '.join(parts)}." if parts else ""


def _call_table(rows: list[Result]) -> str:
    tools = [tool for tool in _distinct(rows, "tool") if tool != OBJECTS and IR_MEASURES not in tool]
    sizes = _distinct(rows, "queries")
    times = {(row["queries"], row["tool"]): row["cpu"] for row in rows}
    cells = [[tool, *(format_seconds(times[size, tool]) for size in sizes)] for tool in tools]
    return _table(["", *(f"{size} × {CALL_DOCUMENTS[size]}" for size in sizes)], cells)


def _later_share(row: Result) -> float:
    share: float = row["later"] / (row["prepare"] + row["first"])
    return share


ACTIONS = {
    "evaluate": "`evaluate`, one call for each run",
    "compare": "`compare`",
    "report": "`write_page`",
    "means": "`evaluate`",
    "judged only": "`evaluate`, `judged_only=True`",
    "audit": "`audit`",
    "table": "`tiewise evaluate`, TSV",
    "per-query": "`tiewise evaluate --per-query`, TSV",
    "json": "`tiewise evaluate --per-query`, JSON",
    "pairs": "`compare`, all pairs",
    "rbo": "`rbo` of scores, 100 times",
    "rbo package": "package rbo of scores, sorted first, 100 times",
    "rbo untied": "`rbo`, without ties",
    "rbo package untied": "package rbo, without ties",
}


def _analysis_table(rows: list[Result]) -> str:
    cells = []
    for row in rows:
        size = f"{row['runs']} run{'s' * (row['runs'] > 1)} of {row['queries']:,} × {row['documents']:,}"
        memory = format_memory(row["peak_bytes"]) if "peak_bytes" in row else "–"
        cells.append([ACTIONS[row["action"]], size, format_seconds(row["cpu"]), memory])
    return _table(["", "input", "CPU", "memory"], cells)


SWEEP_TITLES = {"judged": "judgments for each query", "tied": "tied rows, %"}
SOURCES = {"files": "files", "dicts": "dictionaries"}


def _sweep_ratios(rows: list[Result]) -> str:
    """How many times as long other tools take, from the least to the most."""
    times = {(row["sweep"], row["value"], row["input"], row["tool"]): row["cpu"] for row in rows}
    parts = []
    for source, tool in TOOLS:
        points = [key[:2] for key in times if key[2:] == (source, tool) and tool != "tiewise"]
        ratios = [times[(*point, source, tool)] / times[(*point, source, "tiewise")] for point in points]
        if ratios:
            parts.append(f"{tool} {min(ratios):.2g} to {max(ratios):.2g} ({SOURCES[source]})")
    return f"The time of the others, divided by that of Tiewise: {', '.join(parts)}."


def _start_table(rows: list[Result]) -> str:
    base = next(row["cpu"] for row in rows if row["command"] == NUMPY)
    cells = [[f"`{row['command']}`", format_seconds(row["cpu"]), f"{row['cpu'] / base:.2f}"] for row in rows]
    return _table(["command", "CPU", f"÷ `{NUMPY}`"], cells)


def _describe_lines(rows: list[Result]) -> str:
    costs = [_line_cost(row, "lines", _call_cost(rows)) for row in rows]
    memory = format_memory(max(row["peak_bytes"] for row in rows))
    first, last = rows[0]["lines"], rows[-1]["lines"]
    return LINES.format(least=min(costs), most=max(costs), first=first, last=last, memory=memory)


def _call_cost(rows: list[Result]) -> float:
    """The cost of a call that reads almost nothing: the least of all processes."""
    return min(row["call"] for row in rows)


def _line_cost(row: Result, series: str, call: float) -> float:
    """Nanoseconds for each line."""
    spent = {"whole": row["cpu"], "lines": row["cpu"] - call, "wc": row["wc"]}[series]
    return spent / row["lines"] * 1e9


def _time_cell(row: Result | None, ours: Result | None) -> str:
    if row is None:
        return "–"
    if ours is None:
        return format_seconds(row["cpu"])
    return f"{format_seconds(row['cpu'])} ({_ratio_cell(row['cpu'] / ours['cpu'])})"


def _ratio_cell(ratio: float | None) -> str:
    return "–" if ratio is None else f"{f'{ratio:.0f}' if ratio >= 100 else f'{ratio:.2g}'}×"


def format_seconds(value: float) -> str:
    """A time in seconds, milliseconds or microseconds."""
    if value >= 0.9995:
        return f"{value:.3g} s"
    return f"{value * 1e3:.3g} ms" if value >= 0.9995e-3 else f"{value * 1e6:.3g} µs"


def format_memory(value: float) -> str:
    """A size in megabytes."""
    return f"{value / 1e6:,.0f} MB"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    first = "| |" if heads[0] == "" else f"| {heads[0]} |"
    rest = "".join(f" {head} |" if head else " |" for head in heads[1:])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([first + rest, "|" + "---|" * len(heads), *lines])


def _row(result: Result, source: str, shape: str, tool: str = "tiewise") -> Result | None:
    key = (source, shape, tool)
    return next((row for row in result["results"] if (_source(row), row["shape"], row["tool"]) == key), None)


def _source(row: Result) -> str:
    """The kind of input. Older results call it `door`."""
    source: str = row["input"] if "input" in row else row["door"]
    return source


def _distinct(rows: list[Result], key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in rows))


def _over(times: dict[Any, float], one: Any, other: Any) -> float | None:
    """The ratio of two times, if both were measured."""
    return times[one] / times[other] if one in times and other in times else None


# -- aims -------------------------------------------------------------------------------------------------------------


MAX_LOAD = 1.5  # with a higher load at the start, two threads have no idle cores

#: pytrec_eval's time over that of Tiewise in the measurement of 15 November 2026, by kind of input and shape.
EARLIER_RATIOS = {
    ("files", "dl"): 2.88,
    ("files", "miracl"): 4.45,
    ("files", "marco"): 27.1,
    ("files", "large"): 18.8,
    ("dicts", "dl"): 0.988,
    ("dicts", "miracl"): 1.24,
    ("dicts", "marco"): 11.7,
}
NOISE = 0.05  # of a ratio between two measurements


class Aim(NamedTuple):
    """A number that should be at most a bound, or at least one with `least`; None if it was not measured."""

    name: str
    measured: float | None
    bound: float
    least: bool = False
    unit: str = "×"

    @property
    def met(self) -> bool:
        assert self.measured is not None
        return self.measured >= self.bound if self.least else self.measured <= self.bound

    @property
    def target(self) -> str:
        return f"{'≥' if self.least else '≤'} {self.bound:g}{self.unit}"

    @property
    def value(self) -> str:
        return "–" if self.measured is None else f"{self.measured:.4g}{self.unit}"

    @property
    def verdict(self) -> str:
        return "not measured" if self.measured is None else "met" if self.met else "**missed**"


def aims(result: Result) -> Iterator[Aim]:
    """All aims, with the measured values."""
    yield from _pool_aims(result)
    yield from _call_aims(result)
    yield from _analysis_aims(result)
    yield from _file_aims(result)
    yield from _other_aims(result)
    for (source, shape), earlier in EARLIER_RATIOS.items():
        name = f"{shape}, {SOURCES[source]}: pytrec_eval over Tiewise, not less than before"
        bound = float(f"{earlier * (1 - NOISE):.3g}")
        yield Aim(name, _tool_ratio(result, source, shape, "pytrec_eval", "tiewise"), bound, least=True)


def _tool_ratio(result: Result, source: str, shape: str, one: str, other: str, key: str = "cpu") -> float | None:
    rows = _row(result, source, shape, one), _row(result, source, shape, other)
    return rows[0][key] / rows[1][key] if rows[0] and rows[1] else None


def _pool_aims(result: Result) -> Iterator[Aim]:
    for shape, whole, prepared, files in (("robust", 1.2, 2, 3), ("robust-untied", 2, 4, 6)):
        ratio = _tool_ratio(result, "dicts", shape, "pytrec_eval", "tiewise")
        yield Aim(f"{shape}, dictionaries: pytrec_eval over Tiewise", ratio, whole, least=True)
        ratio = _tool_ratio(result, "dicts", shape, "pytrec_eval", PREPARED)
        yield Aim(f"{shape}, prepared `Qrels`: pytrec_eval over Tiewise", ratio, prepared, least=True)
        ratio = _tool_ratio(result, "files", shape, "trec_eval", "tiewise")
        yield Aim(f"{shape}, files: trec_eval over Tiewise", ratio, files, least=True)


def _call_aims(result: Result) -> Iterator[Aim]:
    times = {(row["queries"], row["tool"]): row["cpu"] for row in result.get("calls", [])}
    for queries, bound in ((50, 1.0), (1, 0.5)):
        for tool, drop_in in DROP_INS.items():
            ratio = _over(times, (queries, tool), (queries, drop_in))
            yield Aim(f"drop-in, {queries} × 100: {tool} over Tiewise", ratio, bound, least=True)
    kept = PYTREC_EVAL + KEPT
    for queries, alone, replaced in ((1, 0.4, 1.0), (10, 2.0, 4.0), (400, 3.0, 4.0)):
        size = f"{queries} × {CALL_DOCUMENTS[queries]}"
        ratio = _over(times, (queries, kept), (queries, ALONE))
        yield Aim(f"`evaluate` alone, {size}: {kept} over Tiewise", ratio, alone, least=True)
        ratio = _over(times, (queries, kept), (queries, DROP_INS[kept]))
        yield Aim(f"drop-in kept, {size}: {kept} over Tiewise", ratio, replaced, least=True)
    tuples = {row["tool"]: row["cpu"] for row in result.get("tuples", [])}
    ratio = _over(tuples, IR_MEASURES + KEPT, DROP_INS[IR_MEASURES + KEPT])
    yield Aim("drop-in kept, named tuples, 100 × 1,000: ir_measures over Tiewise", ratio, 1.2, least=True)
    call = times.get((10, OBJECTS))
    yield Aim("one call of `evaluate`, 10 × 100, in memory", call and call * 1e3, 0.6, unit=" ms")
    rows = [row for row in result.get("many_runs", []) if row["tool"] == "tiewise"]
    for shape in ("robust", "robust-untied"):
        share = next((_later_share(row) for row in rows if row["shape"] == shape), None)
        yield Aim(f"{shape}, many runs: a later run over the first with its `Qrels`", share, 0.5)


def _analysis_aims(result: Result) -> Iterator[Aim]:
    rows = [] if result["quick"] else result.get("analyses", [])
    reports = {row["runs"]: row for row in rows if row["action"] == "report"}
    times = {row["action"]: row["cpu"] for row in rows}
    memory = {row["action"]: row["peak_bytes"] / 1e6 for row in rows if "peak_bytes" in row}
    few, many = reports.get(SYSTEM_COUNT, {}), reports.get(MANY_SYSTEMS, {})
    size = many["peak_bytes"] / 1e6 if many else None
    yield Aim("`compare`, 2 × 1,000,000 rows: over two calls of `evaluate`", _over(times, "compare", "evaluate"), 1.2)
    yield Aim("`write_page`, 10 systems × 1,000 queries", few.get("cpu"), 5, unit=" s")
    yield Aim("`write_page`, 50 systems × 1,000 queries", many.get("cpu"), 6, unit=" s")
    yield Aim("`write_page`, 50 systems × 1,000 queries: memory", size, 300, unit=" MB")
    yield Aim("`evaluate` of marco, judged_only: over `evaluate`", _over(times, "judged only", "means"), 1.5)
    yield Aim("`evaluate` of marco, judged_only: memory", memory.get("judged only"), 100, unit=" MB")
    yield Aim("`audit` of marco: over `evaluate`", _over(times, "audit", "means"), 3)
    yield Aim("`audit` of marco: memory", memory.get("audit"), 200, unit=" MB")
    yield Aim("large, `--per-query` as TSV: over the means alone", _over(times, "per-query", "table"), 2)
    yield Aim("large, `--per-query` as TSV: memory over that of the means", _over(memory, "per-query", "table"), 1.1)
    yield Aim("`compare`, all pairs of 200 runs × 100 queries", times.get("pairs"), 1.5, unit=" s")
    for ties in ("", " untied"):
        ratio = _over(times, f"rbo package{ties}", f"rbo{ties}")
        yield Aim(f"`rbo`, 1,000 documents{ties and ', no ties'}: package rbo over Tiewise", ratio, 1, least=True)


def _is_busy(result: Result) -> bool:
    return bool(result["environment"]["load"][0] >= MAX_LOAD)


def _file_aims(result: Result) -> Iterator[Aim]:
    for tool in ("trec_eval", "pytrec_eval"):
        ratio = _tool_ratio(result, "files", "call-10", tool, "tiewise")
        yield Aim(f"10 × 100, files: {tool} over Tiewise", ratio, 1.5, least=True)
    for shape, threads in (("marco", 1.7), ("large", 1.6)):
        ratio = _tool_ratio(result, "files", shape, "trec_eval", "tiewise")
        yield Aim(f"{shape}: trec_eval over Tiewise", ratio, 15, least=True)
        ratio = _tool_ratio(result, "files", shape, "pytrec_eval", "tiewise")
        yield Aim(f"{shape}: pytrec_eval over Tiewise", ratio, 18, least=True)
        yield Aim(f"{shape}: Tiewise over `wc -l`", _tool_ratio(result, "files", shape, "tiewise", "wc -l"), 7)
        row = _row(result, "files", shape)
        yield Aim(f"{shape}: memory", row["peak_bytes"] / 1e6 if row else None, 100, unit=" MB")
        ratio = _tool_ratio(result, "files", shape, "tiewise", "tiewise, 2 threads", "wall")
        ratio = None if _is_busy(result) else ratio
        yield Aim(f"{shape}: one thread over two, wall time, on idle cores", ratio, threads, least=True)
    for shape in ("dl", "miracl"):
        yield Aim(f"{shape}: Tiewise over trec_eval", _tool_ratio(result, "files", shape, "tiewise", "trec_eval"), 1)
    ratio = _tool_ratio(result, "dicts", "marco", "pytrec_eval", "tiewise")
    yield Aim("marco, dictionaries: pytrec_eval over Tiewise", ratio, 10, least=True)


def _other_aims(result: Result) -> Iterator[Aim]:
    large, marco = _row(result, "files", "large"), _row(result, "files", "marco")
    ratio = large["cpu"] / large["lines"] / (marco["cpu"] / marco["lines"]) if large and marco else None
    yield Aim("a line of large over a line of marco", ratio, 1.25)
    one = _row(result, "files", "one-list")
    ratio = one["cpu"] / one["lines"] / (marco["cpu"] / marco["lines"]) if one and marco else None
    yield Aim("a line of one list of 10⁶ rows over a line of marco", ratio, 1.5)
    start = {row["command"]: row["cpu"] for row in result["start"]}
    yield Aim(f"the whole command on a tiny input over `{NUMPY}`", _over(start, TABLE, NUMPY), 1.6)
    name = "the most over the least expensive line, 10⁴ to 10⁸, without the call"
    yield Aim(name, _line_cost_ratio(result["lines"]), 1.5)
    memory = next((row["peak_bytes"] / 1e6 for row in result["lines"] if row["bytes"] > 9.5e9), None)
    yield Aim("memory of a run of 10 GB", memory, 500, unit=" MB")


def _line_cost_ratio(rows: list[Result]) -> float | None:
    rows = [row for row in rows if "wanted_bytes" not in row]
    if not any(row["lines"] == 10**8 for row in rows):
        return None
    costs = [_line_cost(row, "lines", _call_cost(rows)) for row in rows]
    return max(costs) / min(costs) if min(costs) > 0 else None


# -- figures ----------------------------------------------------------------------------------------------------------

SERIES = {"whole": "Tiewise, the whole call", "lines": "Tiewise, without the cost of a call", "wc": "wc -l"}


def line_figure(result: Result) -> Any:
    """The cost of a line against the number of lines."""
    from tiewise.figures.theme import apply_theme, load_altair

    alt, rows = load_altair(), result["lines"]
    points = [
        {"x": row["lines"], "y": _line_cost(row, series, _call_cost(rows)), "series": name}
        for row in rows
        for series, name in SERIES.items()
    ]
    x = alt.X("x:Q", title="lines", scale=alt.Scale(type="log"), axis=_powers("~s", grid=False))
    y = alt.Y("y:Q", title="CPU time for each line, ns", scale=alt.Scale(type="log"), axis=_powers())
    chart = _line_chart(points, x, y, list(SERIES.values())).properties(height=260, title="The cost of a line")
    ends = rows[0]["lines"], rows[-1]["lines"]
    return apply_theme(chart, f"CPU nanoseconds for each line, from {ends[0]:,} to {ends[1]:,} lines.")


def sweep_figure(result: Result) -> Any:
    """The cost against judgments for each query and against the share of tied rows."""
    from tiewise.figures.theme import apply_theme, load_altair

    alt, rows = load_altair(), result["sweeps"]
    names = {tool: f"{tool[1]}, {SOURCES[tool[0]]}" for tool in TOOLS}
    used = [name for tool, name in names.items() if any((row["input"], row["tool"]) == tool for row in rows)]
    charts = []
    for sweep, title in SWEEP_TITLES.items():
        points = [
            {"x": row["value"], "y": row["cpu"] * 1e3, "series": names[row["input"], row["tool"]]}
            for row in rows
            if row["sweep"] == sweep
        ]
        x = alt.X("x:Q", title=title)
        if sweep == "judged":
            x = alt.X("x:Q", title=title, scale=alt.Scale(type="log"), axis=_powers("~s", grid=False))
        y = alt.Y("y:Q", title="CPU time, ms", scale=alt.Scale(type="log"))
        charts.append(_line_chart(points, x, y, used).properties(width=250, height=260))
    chart = alt.hconcat(*charts).properties(title="Cost against judgments and against ties")
    return apply_theme(chart, "CPU milliseconds for 100 lists of 1,000 documents.")


def _powers(format: str = "", grid: bool = True) -> Any:
    from tiewise.figures.theme import load_altair

    return load_altair().Axis(format=format, grid=grid, values=[10**power for power in range(10)])


def _line_chart(points: list[Result], x: Any, y: Any, names: list[str]) -> Any:
    """Lines with points, one for each series; the series differ in colour and in dashes."""
    from tiewise.figures.theme import PALETTE, WIDTH, inline_data, load_altair

    alt = load_altair()
    color = alt.Scale(domain=names, range=list(PALETTE[: len(names)]))
    dash = alt.Scale(domain=names, range=[[1, 0], [6, 3], [2, 3], [8, 2, 2, 2]][: len(names)])
    legend = alt.Legend(title=None, columns=4, orient="top", labelLimit=300, symbolType="stroke", symbolSize=400)
    data = inline_data({key: [point[key] for point in points] for key in ("x", "y", "series")})
    mark = alt.Chart(data).mark_line(point=alt.OverlayMarkDef(filled=True, size=60))
    series = alt.Color("series:N", scale=color, legend=legend), alt.StrokeDash("series:N", scale=dash, legend=legend)
    return mark.encode(x, y, *series).properties(width=WIDTH)
