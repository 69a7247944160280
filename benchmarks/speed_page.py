"""The page about speed, its aims and its figure, made from results of `python -m benchmarks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.start import NUMPY, TABLE

Result = dict[str, Any]

INTRODUCTION = """# Speed

This page is made by `make bench` from what it measured. Contenders take turns, each in a process of its own, so that a
slow moment of the machine is slow for all; the best turn counts. Times are CPU seconds, user and system. In brackets is
how many times as long as Tiewise it took.

* All compute {measures}
  for every query. Tiewise gives expectation, lowest, highest and standard deviation of each besides.
* Tiewise reads in one thread here unless the row says otherwise. By itself it takes a thread for each core, eight at
  most, once a file is larger than 8 MB; the variable `OMP_NUM_THREADS` sets a bound.
* The clock of a Python package runs from the end of imports to the last value; for that, each process first evaluates
  another, small run. That of a program runs from its start.
* Before a time counts, the means are compared: those of trec_eval, pytrec_eval and ir_measures must be, to four digits,
  what Tiewise calls oblivious.
"""

MISSES = """
An aim is a ratio that was fixed before anything was measured; a miss changes no number. In *large* every hundred lines
bring a query with two judgments: about a third of its time goes into 200,000 judgments and 2.5 million values, however
the lines are read, and one thread does that. Next to what a call costs, some milliseconds, lines weigh little below a
hundred thousand."""

FILES = """## From files to means

*marco*: 6,980 queries × 1,000 documents, one judged; *large*: 100,000 × 100; *dl*: 50 × 1,000, 200 graded judgments a
query; *miracl*: 717 × 100. The Python reader serves where the compiled one could not be built. `wc -l` only counts
lines: it is the least that reading can cost. Memory is the peak of the process, interpreter and imports included. A
dash stands for what took too long; trec_eval looks every query up in a list of all queries, so it grows with their
square.
"""

THREADS = """## Two threads

The result does not depend on how many threads read the file. Wall seconds here, as somebody waits for them; CPU seconds
in brackets.
"""

DICTS = """## From dictionaries

The dictionaries are there when the clock starts.
"""

COLUMNS = """## From columns

`Qrels` and `Run`, and Arrow tables, are there when the clock starts. trm is the other package that knows ties; it takes
lists of scores and flags.
"""

START = """## The start

Whole commands on two lists of five documents: wall time, median of {turns} turns.
"""

LINES = """## What a line costs

Lists of 1,000 documents, one of them judged. A call costs {call}, whatever it reads; what lines cost beyond that stands
in a column of its own. Each time is the fastest of the calls that fit into half a second, or of one.

![CPU time for each line, from ten thousand lines on](img/speed-lines.svg)
"""


# -- the page ---------------------------------------------------------------------------------------------------------


def page(result: Result) -> str:
    """The page of a result, with a section for each thing measured."""
    parts = [INTRODUCTION.format(measures=", ".join(result["measures"])), _where(result), _aims(result)]
    doors = [row["door"] for row in result["results"]]
    if "files" in doors:
        parts += [FILES, _door(result, "files"), THREADS, _threads(result)]
    if "dicts" in doors:
        parts += [DICTS, _door(result, "dicts")]
    if "columns" in doors:
        parts += [COLUMNS, _door(result, "columns")]
    if result["start"]:
        parts += [START.format(**result["start"][0]), _start(result["start"])]
    if result["lines"]:
        parts += [LINES.format(call=seconds(_call(result["lines"]))), _lines(result["lines"])]
    return "\n".join(part.strip() + "\n" for part in parts)


def _where(result: Result) -> str:
    found = result["environment"]
    absent = "ranx" if not any(row["tool"] == "ranx" for row in result["results"]) else ""
    there = [f"{name} {version}" for name, version in found["packages"].items() if version and name != absent]
    said = f"{found['device']}, {found['date']}; load {found['load'][0]:.1f} before and {found['load'][1]:.1f} after"
    quick = " A quick run, with small shapes." if result["quick"] else ""
    return f"{said}; {', '.join(there)}.{quick}"


def _aims(result: Result) -> str:
    found = list(aims(result))
    judged = [aim for aim in found if aim.measured is not None]
    missed = sum(not aim.met for aim in judged)
    unknown = len(found) - len(judged)
    said = "All aims are met." if not missed else f"{len(judged) - missed} of {len(judged)} aims are met."
    said += f" {unknown} could not be measured here." if unknown else ""
    lines = [f"| {aim.name} | {aim.said} | {aim.shown} | {aim.verdict} |" for aim in found]
    table = ["| what | aim | measured | |", "|---|---|---|---|", *lines]
    return "\n".join(["## Aims", "", said, "", *table, *([MISSES] if missed else [])])


def _door(result: Result, door: str) -> str:
    rows = [row for row in result["results"] if row["door"] == door]
    shapes, tools = _distinct(rows, "shape"), _distinct(rows, "tool")
    largest = max(shapes, key=lambda shape: max(row["cpu"] for row in rows if row["shape"] == shape))
    widest = "marco" if "marco" in shapes else largest
    table = []
    for tool in tools:
        cells = [_cell(row, _row(result, door, shape)) for shape in shapes for row in [_row(result, door, shape, tool)]]
        held = (_row(result, door, widest, tool) or {}).get("peak_bytes")
        table.append(f"| {tool} | {' | '.join(cells)} | {megabytes(held) if held else '–'} |")
    head = f"| | {' | '.join(shapes)} | memory, {widest} |"
    return "\n".join([head, "|---|" + "---|" * (len(shapes) + 1), *table])


def _threads(result: Result) -> str:
    table = []
    for shape in _distinct(result["results"], "shape"):
        one, two = (_row(result, "files", shape, tool) for tool in ("tiewise", "tiewise, 2 threads"))
        if one and two:
            cells = [f"{seconds(row['wall'])} ({seconds(row['cpu'])})" for row in (one, two)]
            table.append(f"| {shape} | {' | '.join(cells)} | {one['wall'] / two['wall']:.2f} |")
    return "\n".join(["| | one thread | two threads | times as fast |", "|---|---|---|---|", *table])


def _start(rows: list[Result]) -> str:
    base = next(row["wall"] for row in rows if row["command"] == NUMPY)
    table = [f"| `{row['command']}` | {seconds(row['wall'])} | {row['wall'] / base:.2f} |" for row in rows]
    return "\n".join([f"| command | wall | ÷ `{NUMPY}` |", "|---|---|---|", *table])


def _lines(rows: list[Result]) -> str:
    table = []
    for row in rows:
        whole, beyond, wc = (_each(row, which, _call(rows)) for which in SERIES)
        size = f"{row['bytes'] / 1e9:.2f} GB" if row["bytes"] > 1e8 else f"{row['bytes'] / 1e6:.1f} MB"
        cells = f"{whole:.1f} | {beyond:.1f} | {wc:.1f} | {megabytes(row['peak_bytes'])}"
        table.append(f"| {row['lines']:,} | {size} | {cells} |")
    last = rows[-1]
    short = last["bytes"] < 0.95 * last.get("wanted_bytes", 0)
    note = (
        f"\n\nThe last run was to have {last['wanted_bytes'] / 1e9:g} GB; the disk had no room for it." if short else ""
    )
    head = "| lines | file | ns a line | beyond the call | `wc -l` | memory |"
    return "\n".join([head, "|---|---|---|---|---|---|", *table]) + note


def _call(rows: list[Result]) -> float:
    """What a call costs that reads next to nothing: the least that any process found."""
    return min(row["call"] for row in rows)


def _each(row: Result, which: str, call: float) -> float:
    """Nanoseconds for each line."""
    spent = {"whole": row["cpu"], "beyond": row["cpu"] - call, "wc": row["wc"]}[which]
    return spent / row["lines"] * 1e9


def _cell(row: Result | None, ours: Result | None) -> str:
    if row is None:
        return "–"
    if ours is None:
        return seconds(row["cpu"])
    ratio = row["cpu"] / ours["cpu"]
    return f"{seconds(row['cpu'])} ({f'{ratio:.0f}' if ratio >= 100 else f'{ratio:.2g}'}×)"


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    return f"{value:.3g} s" if value >= 0.9995 else f"{value * 1e3:.3g} ms"


def megabytes(value: float) -> str:
    """A size in memory."""
    return f"{value / 1e6:,.0f} MB"


def _row(result: Result, door: str, shape: str, tool: str = "tiewise") -> Result | None:
    wanted = (door, shape, tool)
    return next((row for row in result["results"] if (row["door"], row["shape"], row["tool"]) == wanted), None)


def _distinct(rows: list[Result], key: str) -> list[str]:
    return list(dict.fromkeys(row[key] for row in rows))


# -- aims -------------------------------------------------------------------------------------------------------------


IDLE = 1.5  # the load before: with more of it, a second thread has no core of its own


class Aim(NamedTuple):
    """A number that should be at most, or with `least` at least, a bound; None if it was not measured."""

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
    def said(self) -> str:
        return f"{'≥' if self.least else '≤'} {self.bound:g}{self.unit}"

    @property
    def shown(self) -> str:
        return "–" if self.measured is None else f"{self.measured:.3g}{self.unit}"

    @property
    def verdict(self) -> str:
        return "not measured" if self.measured is None else "met" if self.met else "**missed**"


def aims(result: Result) -> Iterator[Aim]:
    """What was aimed at, and what came of it."""

    def over(door: str, shape: str, tool: str, base: str, key: str = "cpu") -> float | None:
        one, other = _row(result, door, shape, tool), _row(result, door, shape, base)
        return one[key] / other[key] if one and other else None

    def held(shape: str) -> float | None:
        row = _row(result, "files", shape)
        return row["peak_bytes"] / 1e6 if row else None

    for shape in ("marco", "large"):
        yield Aim(f"{shape}: trec_eval over Tiewise", over("files", shape, "trec_eval", "tiewise"), 15, least=True)
        yield Aim(f"{shape}: pytrec_eval over Tiewise", over("files", shape, "pytrec_eval", "tiewise"), 18, least=True)
        yield Aim(f"{shape}: Tiewise over `wc -l`", over("files", shape, "tiewise", "wc -l"), 7)
        yield Aim(f"{shape}: memory", held(shape), 100, unit=" MB")
    yield Aim("a line of large over a line of marco", _slower(result), 1.25)
    for shape in ("dl", "miracl"):
        yield Aim(f"{shape}: Tiewise over trec_eval", over("files", shape, "tiewise", "trec_eval"), 1)
    dicts = over("dicts", "marco", "pytrec_eval", "tiewise")
    yield Aim("marco, dictionaries: pytrec_eval over Tiewise", dicts, 10, least=True)
    yield Aim(f"the whole command on a tiny input over `{NUMPY}`", _started(result), 2.5)
    yield Aim("the dearest over the cheapest line, 10⁴ to 10⁸, beyond the call", _uneven(result), 1.5)
    for shape in ("marco", "large"):
        threads = over("files", shape, "tiewise", "tiewise, 2 threads", "wall")
        idle = result["environment"]["load"][0] < IDLE
        yield Aim(f"{shape}: one thread over two, wall time, on idle cores", threads if idle else None, 1.7, least=True)
    yield Aim("memory of a run of 10 GB", _large_memory(result), 500, unit=" MB")


def _slower(result: Result) -> float | None:
    large, marco = _row(result, "files", "large"), _row(result, "files", "marco")
    return large["cpu"] / large["lines"] / (marco["cpu"] / marco["lines"]) if large and marco else None


def _started(result: Result) -> float | None:
    wall = {row["command"]: row["wall"] for row in result["start"]}
    return wall[TABLE] / wall[NUMPY] if wall else None


def _uneven(result: Result) -> float | None:
    rows = [row for row in result["lines"] if "wanted_bytes" not in row]
    if not any(row["lines"] == 10**8 for row in rows):
        return None
    each = [_each(row, "beyond", _call(rows)) for row in rows]
    return max(each) / min(each) if min(each) > 0 else None


def _large_memory(result: Result) -> float | None:
    return next((row["peak_bytes"] / 1e6 for row in result["lines"] if row["bytes"] > 9.5e9), None)


# -- the figure -------------------------------------------------------------------------------------------------------

SERIES = {"whole": "Tiewise, the whole call", "beyond": "Tiewise, beyond the cost of a call", "wc": "wc -l"}


def figure(result: Result) -> Any:
    """What a line costs, over the number of lines."""
    from tiewise.figures.theme import PALETTE, WIDTH, apply_theme, inline_data, load_altair

    alt = load_altair()
    drawn = [
        {"lines": row["lines"], "ns": _each(row, which, _call(result["lines"])), "what": name}
        for row in result["lines"]
        for which, name in SERIES.items()
    ]
    names = list(SERIES.values())
    scale = alt.Scale(domain=names, range=list(PALETTE[:3]))
    legend = alt.Legend(title=None, orient="top", labelLimit=300, symbolType="stroke", symbolSize=400)
    powers = [10**power for power in range(10)]
    chart = (
        alt.Chart(inline_data({key: [row[key] for row in drawn] for key in drawn[0]}))
        .mark_line(point=alt.OverlayMarkDef(filled=True, size=60))
        .encode(
            alt.X(
                "lines:Q",
                title="lines",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~s", grid=False, values=powers),
            ),
            alt.Y(
                "ns:Q",
                title="CPU time for each line, ns",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(values=powers),
            ),
            alt.Color("what:N", scale=scale, legend=legend),
            alt.StrokeDash("what:N", scale=alt.Scale(domain=names, range=[[1, 0], [6, 3], [2, 3]]), legend=legend),
        )
        .properties(width=WIDTH, height=260, title="What a line costs")
    )
    ends = drawn[0]["lines"], drawn[-1]["lines"]
    return apply_theme(chart, f"CPU nanoseconds for each line, from {ends[0]:,} to {ends[1]:,} lines.")
