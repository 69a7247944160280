"""What people read of a protocol: a table for each measure, a few sentences, and the table of a paper.

Numbers are points, hundredths of a measure with two digits (`POINTS`), or fractions with four (`SHORT`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tiewise.analysis.significance import ATOL, queries_for_loss
from tiewise.errors import InputError
from tiewise.metrics.definition import Measure
from tiewise.results.estimates import is_wide
from tiewise.results.latex import fits_page
from tiewise.results.model import BEST, CUT, Cell, Column, Hint, Paragraph, Section, Table
from tiewise.results.view import View
from tiewise.results.wording import MISSING, THREE, NumberFormat, count_noun, format_percent, join_names, spell_option
from tiewise.ties.orders import ORDER_NAMES

if TYPE_CHECKING:
    from tiewise.analysis.protocol_result import Difference, Protocol

POINTS = NumberFormat(2, leading_zero=False, factor=100)

# -- tables -----------------------------------------------------------------------------------------------------------


def protocol_section(found: Protocol, numbers: NumberFormat, view: View) -> Section:
    """A table for each measure, or one of similarity without judgments, and the sentences below."""
    tables = [_table(found, measure, numbers, view) for measure in found.measures or [None]]
    said = [Paragraph(sentence) for sentence in [describe_protocol(found, numbers)] if sentence]
    if found.measures and found.max_loss is None and len(found.rows) > 1:
        said.append(Hint(f"For a choice add {spell_option('max_loss', 0.01)}."))
    return Section([*tables, *said], "", found.notes)


def _table(found: Protocol, measure: Measure | None, numbers: NumberFormat, view: View) -> Table:
    columns = _row_columns(found)
    if measure is None:
        title = f"similarity to {found.reference} · no judgments"
        return Table.of_rows(columns | _cost_columns(found, wide=False), found.rows, view, title=title)
    obl = "" if found.oblivious is None else f" · obl: {describe_order(found.oblivious)}"
    title = f"{_unit(measure, numbers)} · {_queries(found)}{obl} · reference {found.reference}"
    columns |= _statistic_columns(found, measure, numbers)
    if len(found.rows) > 1:
        columns |= _difference_columns(found, measure, numbers)
    columns |= _cost_columns(found, wide=True)
    if found.max_loss is not None and measure == found.measures[0]:
        columns[Column("verdict", shown="wide")] = found.verdict
    chosen = f"{BEST} chosen." if found.choice is not None else ""
    legend = _legend(found) if measure == found.measures[-1] and (view.wide or view.explain) else ""
    return Table.of_rows(columns, found.rows, view, title=title, notes=tuple(filter(None, (chosen, legend))))


Cells = dict[Column, Callable[[str], Any]]  #: what each column shows of a row by its name


def _row_columns(found: Protocol) -> Cells:
    choice = found.choice
    return {
        Column("row", shown="always"): lambda name: Cell(name, mark=BEST if name == choice else ""),
        _number("tied_share", "tied"): lambda name: _percent(found.row(name).tied_share),
    }


def _statistic_columns(found: Protocol, measure: Measure, numbers: NumberFormat) -> Cells:
    each = {name: found.estimate(name, measure) for name in found.rows}

    def expected(name: str) -> Cell:
        return Cell(numbers.number(each[name].expected), mark=CUT if is_wide(each[name].open_cut) else "")

    def variation(name: str) -> str:
        std = each[name].std
        return format_percent(std / (each[name].expected or 1) if std else 0.0)

    columns: Cells = {
        _number("oblivious", "obl"): lambda name: numbers.number(each[name].oblivious),
        _number("expected", "E"): expected,
        _number("range"): lambda name: format_size(each[name].range, numbers),
        _number("bias"): lambda name: numbers.signed(each[name].bias),
        _number("std", wide=True): lambda name: format_size(each[name].std, numbers),
        _number("cv", "CV", wide=True): variation,
    }
    without = ("oblivious", "bias") if found.oblivious is None else ()
    return {column: show for column, show in columns.items() if column.name not in without}


def _difference_columns(found: Protocol, measure: Measure, numbers: NumberFormat) -> Cells:
    def of_difference(show: Callable[[Difference], str]) -> Callable[[str], str]:
        return lambda name: "" if name == found.reference else show(found.difference(name, measure))

    return {
        _number("difference", f"to {found.reference} ±95%"): of_difference(lambda one: _with_half_width(one, numbers)),
        _number("differs", "differ"): of_difference(lambda one: f"{one.differs:,}"),
        _number("bounds", wide=True): of_difference(
            lambda one: f"{numbers.signed(one.lower)}, {numbers.signed(one.upper)}"
        ),
    }


def _cost_columns(found: Protocol, *, wide: bool) -> Cells:
    """Similarity to the reference, bytes and seconds: those that are known and say something."""
    rows = [found.row(name) for name in found.rows]
    columns: Cells = {}
    for part, heading in (("rbo", "RBO"), ("rbr", "RBR"), ("overlap", f"overlap@{found.cutoff}")):
        shown = {row.name: THREE.number(getattr(row.agreement, part, None)) for row in rows}
        same = part == "rbr" and len(set(shown.values())) == 1  # rerankers have the same documents
        if not same and set(shown.values()) != {MISSING}:
            columns[_number(part, heading, wide=wide)] = shown.__getitem__
    for part, spec in (("bytes", ",.0f"), ("seconds", ".3g")):
        costs = {row.name: getattr(row, part) for row in rows}
        if any(cost is not None for cost in costs.values()):
            texts = {name: MISSING if cost is None else format(cost, spec) for name, cost in costs.items()}
            columns[_number(part, wide=wide)] = texts.__getitem__
    return columns


def _legend(found: Protocol) -> str:
    timed = " and ".join(dict.fromkeys(row.timed for name in found.rows if (row := found.row(name)).timed))
    losses = {f"{found._worst_loss(measure):g}": None for measure in found.measures}
    return (
        "CV: std / E. differ: queries with another value. bounds: 95% on each side, for all rows at once, with one "
        f"more query that loses or gains {' or '.join(losses)}. RBO, RBR, overlap: with the ranking of "
        f"{found.reference}. RBR of k documents is at most 1 − φᵏ, and a row with ties is not quite like itself."
        f"{f' seconds: {timed}, all queries.' if timed else ''}"
    )


def paper_section(documents: Mapping[str, Mapping[str, Any]], numbers: NumberFormat) -> Section:
    """The table of a paper: models by name, in their first measure. If a line is too wide, each row has its own.

    `documents` are those of `Protocol.to_dict`.
    """
    if not documents:
        raise InputError("There is no model to show. Give one or more by name.")
    if any("measure" not in one["rows"][0] for one in documents.values()):
        raise InputError("A table of a paper needs judgments: give qrels.")
    kinds = {(one["rows"][0]["measure"], one["reference"], one["oblivious"]) for one in documents.values()}
    if len(kinds) > 1:
        raise InputError("The models differ in measure, reference or order of ties. A table shows one of each.")
    ((measure, reference, oblivious),) = kinds
    models = {
        model: {row["row"]: row for row in one["rows"] if row["measure"] == measure} for model, one in documents.items()
    }
    shown: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "obl": lambda row: numbers.number(row["oblivious"]),
        "E": lambda row: numbers.number(row["expected"]),
        "range": lambda row: format_size(row["range"], numbers),
        "bias": lambda row: numbers.signed(row["bias"]),
    }
    obl = bias = ""
    if oblivious is None:
        del shown["obl"], shown["bias"]
    else:
        obl, bias = f"obl: {describe_order(oblivious)}; ", "; bias: obl − E"
    legend = f"{obl}E: expected over all orders of ties; range: highest − lowest{bias}"
    names = list(dict.fromkeys([reference, *(name for rows in models.values() for name in rows)]))

    def cells(row: Mapping[str, Any] | None) -> list[str]:
        return [MISSING if row is None else show(row) for show in shown.values()]

    groups = [_number(title, group=_level_name(name, names)) for name in names[1:] for title in shown]
    lines = [
        [model, shown["E"](rows[reference]), *(cell for name in names[1:] for cell in cells(rows.get(name)))]
        for model, rows in models.items()
    ]
    table = _with_models((_number("E", group=reference), *groups), lines)
    if not fits_page(table):
        lines = [
            [model if place == 0 else "", name, *cells(rows[name])]
            for model, rows in models.items()
            for place, name in enumerate(name for name in names if name in rows)
        ]
        table = _with_models((Column("row"), *map(_number, shown)), lines)
    return Section([table._replace(notes=(legend,))], _unit(measure, numbers))


def _with_models(columns: Sequence[Column], lines: Sequence[Sequence[str]]) -> Table:
    """A table of lines that start with the name of a model; one model may have no name."""
    table = Table((Column("model"), *columns), lines)
    return table if any(line[0] for line in lines) else table.take_columns(range(1, len(table.columns)))


def _level_name(name: str, names: Sequence[str]) -> str:
    """The heading of a row: "+ HPS" where it follows the row that it is added to."""
    base, plus, level = name.rpartition(" + ")
    is_added = plus and base in names[1 : names.index(name)]
    return f"+ {level.upper() if level == 'hps' else level}" if is_added else name


# -- sentences --------------------------------------------------------------------------------------------------------


def describe_protocol(found: Protocol, numbers: NumberFormat) -> str:
    """What the table says, in a few sentences."""
    if not found.measures:
        return _describe_overlap(found)
    parts = (describe(found, numbers) for describe in (_describe_bias, _describe_levels, _describe_choice))
    return " ".join(filter(None, parts)) or _describe_changes(found, numbers)


def _describe_changes(found: Protocol, numbers: NumberFormat) -> str:
    """How far ties and rows change the value, where there is no more to say."""
    ranges = {name: found.estimate(name).range or 0.0 for name in found.rows}
    widest = max(ranges, key=ranges.__getitem__)
    ties = "No order of ties changes a digit shown"
    if numbers.differ(ranges[widest], 0.0):
        ties = f"Ties change {widest} by up to {numbers.number(ranges[widest])}"
    others = {name: found.difference(name) for name in found.rows if name != found.reference}
    if not others:
        return f"{ties}."
    name = max(others, key=lambda one: (abs(others[one].mean), others[one].differs))
    if not others[name].differs:
        return f"{ties}, and every row has the values of {found.reference}."
    return f"{ties}; {name} is the farthest from {found.reference}: {_with_half_width(others[name], numbers)}."


def _describe_overlap(found: Protocol) -> str:
    """Which row has the fewest of the reference's first documents."""
    shares = {name: row.agreement.overlap for name in found.rows if (row := found.row(name)).agreement}
    shares.pop(found.reference, None)
    if not shares:
        return ""
    name = min(shares, key=shares.__getitem__)
    share = format_percent(shares[name])
    return f"Without judgments: {name} has {share} of the first {found.cutoff} documents of {found.reference}."


def _describe_bias(found: Protocol, numbers: NumberFormat) -> str:
    """The row that the one order of the table moves most, if that shows."""
    each = {name: found.estimate(name) for name in found.rows}
    name = max(each, key=lambda one: abs(each[one].bias or 0.0))
    expected, printed, whole = each[name].expected, each[name].oblivious, each[found.reference].expected
    assert expected is not None and whole is not None
    if printed is None or not numbers.differ(printed, expected):
        return ""
    side = ""
    if name != found.reference and (printed > whole) != (expected > whole):
        side = f" ({'above' if printed > whole else 'below'} {found.reference})"
    where = f"{ORDER_NAMES.get(found.oblivious or '', found.oblivious)}{side}"
    value, mean = numbers.number(printed), numbers.number(expected)
    return f"Largest effect of ties: {name} has {value} in {where}, {mean} expected."


def _describe_levels(found: Protocol, numbers: NumberFormat) -> str:
    """What high-precision scoring makes of the range of each row, beside that of the reference."""
    parts, whole = [], found.estimate(found.reference).range or 0.0
    for name in found.rows:
        base, _, level = name.rpartition(" + ")
        if base in found.rows and (before := found.estimate(base).range):
            after = found.estimate(name).range
            change = "no ties left" if found.row(name).tied_share == 0 else "no tie matters"
            if after:
                shown = numbers.number(before), numbers.number(after)
                change = f"range stays {shown[0]}" if shown[0] == shown[1] else f"range {shown[0]} → {shown[1]}"
                if base != found.reference and whole > after - ATOL:
                    change += f" ({found.reference}: {numbers.number(whole)})"
            parts.append(f"{base} + {level}: {change}")
    return f"{'; '.join(parts)}." if parts else ""


def _describe_choice(found: Protocol, numbers: NumberFormat) -> str:
    """What to choose, or how many queries could tell."""
    if found.max_loss is None or len(found.rows) < 2:
        return ""
    loss, choice = _amount(found.max_loss, found.measures[0], numbers), found.choice
    whole = found.row(found.reference).bytes
    if choice is not None:
        difference = found.difference(choice)
        row = found.row(choice)
        also = f" ({row.note.partition('. ')[0].removesuffix('.')})" if row.note else ""
        size = f": {row.bytes:,.0f} bytes a vector instead of {whole:,.0f}{also}"
        bound = f"95% bound for all rows, one more query lost: {numbers.signed(difference.lower)}"
        return f"Choose {choice}{size}. It loses less than {loss}{', if any' * (difference.mean >= 0)} ({bound})."
    if not found._candidates:
        return f"Stay with {found.reference}: no row has smaller vectors."
    needed = queries_for_loss(found.max_loss, found._worst_loss(found.measures[0]))
    unknown = [name for name in found._candidates if found.verdict(name) == "unknown"]
    if unknown and len(found.estimates(found.reference)) < needed:
        return f"{_queries(found)} cannot show that a loss is below {loss}; at least {needed:,} could."
    kept = [name for name in found.rows if found.verdict(name) == "keeps"]
    if whole is None:
        return _describe_verdicts(found, kept, unknown, loss)
    but = f"{join_names(kept)} keep{'s' * (len(kept) == 1)} the quality, but not in fewer bytes. " if kept else ""
    if unknown:
        names = join_names(unknown, "or")
        return f"{but}{_queries(found)} do not show that {names} loses less than {loss}. Stay with {found.reference}."
    others = "every row with smaller vectors" if kept else "every other row"
    return f"{but}Stay with {found.reference}: {others} loses more than {loss}."


def _describe_verdicts(found: Protocol, kept: Sequence[str], unknown: Sequence[str], loss: str) -> str:
    """Which rows keep the quality, where it is not known which of them saves bytes."""
    lost = [name for name in found.rows if found.verdict(name) == "loses"]
    than, parts = f" than {loss}", []
    if kept:
        parts.append(f"{join_names(kept)} lose{'s' * (len(kept) == 1)} less{than} (95% bounds for all rows)")
        than = ""
    if unknown:
        parts.append(f"{_queries(found)} do not show that {join_names(unknown, 'or')} loses less{than}")
        than = ""
    if lost:
        parts.append(f"{join_names(lost)} lose{'s' * (len(lost) == 1)} more{than}")
    return f"{'; '.join(parts)}."


# -- words ------------------------------------------------------------------------------------------------------------


def format_size(value: float | None, numbers: NumberFormat) -> str:
    """A range or a standard deviation; exactly zero is 0."""
    return numbers.number(value) if value is None or value > ATOL else "0"


def _with_half_width(difference: Difference, numbers: NumberFormat) -> str:
    """A difference and the half width of its interval."""
    mean = numbers.signed(difference.mean)
    if not difference.differs or difference.ci_low is None or difference.ci_high is None:
        return mean
    return f"{mean} ±{format_size((difference.ci_high - difference.ci_low) / 2, numbers)}"


def _unit(measure: Measure | str, numbers: NumberFormat) -> str:
    """The name of a measure, and what its numbers are multiplied by."""
    return f"{measure} ×100" if numbers == POINTS else str(measure)


def _amount(value: float, measure: Measure, numbers: NumberFormat) -> str:
    """An amount of a measure, in a sentence: "1 point of nDCG@10", ".01 nDCG@10"."""
    text = f"{numbers.factor * value:.4g}"
    points = f" point{'s' * (text != '1')} of" if numbers == POINTS else ""
    return f"{text.removeprefix('0')}{points} {measure}"


def _queries(found: Protocol) -> str:
    return count_noun(len(found.estimates(found.reference)), "query", "queries")


def describe_order(oblivious: str) -> str:
    """What the order of the oblivious values is called."""
    return ORDER_NAMES.get(oblivious, f"as {oblivious} prints it")


def _number(name: str, heading: str | None = None, *, wide: bool = False, group: str = "") -> Column:
    return Column(name, heading, "right", shown="wide" if wide else "default", group=group)


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{share:.0%}" if not 0 < share < 0.005 else "<1%"
