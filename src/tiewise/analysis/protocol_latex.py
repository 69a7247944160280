"""The table of a paper: a line for each model, with obl, E, range and bias of each row beside the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tiewise._version import __version__
from tiewise.errors import InputError
from tiewise.tables.latex import escape_latex
from tiewise.tables.wording import add_zeros

if TYPE_CHECKING:
    from tiewise.analysis.protocol_result import Protocol, Scaled

__all__ = ["paper_table"]

#: More rows beside the reference than these make a line too wide: each row has a line then.
MAX_GROUPS = 4
STATISTICS = ("obl", "E", "range", "bias")


def paper_table(protocols: Mapping[str, Protocol], numbers: Scaled) -> str:
    """The table of some models by name, in their first measure."""
    some = list(protocols.values())
    if not some or any(not one.measures for one in some):
        raise InputError("A table of a paper needs judgments: give qrels.")
    if len({(one.measures[0], one.reference, one.oblivious) for one in some}) > 1:
        raise InputError("The models differ in measure, reference or order of ties. A table shows one of each.")
    first = some[0]
    others = list(dict.fromkeys(name for one in some for name in one.rows if name != first.reference))
    if len(others) > MAX_GROUPS:
        lines = _lines_of_rows(protocols, [first.reference, *others], numbers)
    else:
        lines = _lines_of_models(protocols, others, numbers)
    unit, order = numbers.unit(first.measures[0]), first.order_name
    caption = f"{unit}. obl: {order}; E: expected over all orders of ties; range: highest − lowest; bias: obl − E."
    return "\n".join(
        [
            rf"% tiewise {__version__}; needs \usepackage{{booktabs}}",
            r"\begin{table*}[t]",
            r"\centering\small",
            rf"\caption{{{escape_latex(add_zeros(caption))}}}",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table*}",
            "",
        ]
    )


def _lines_of_models(protocols: Mapping[str, Protocol], others: Sequence[str], numbers: Scaled) -> list[str]:
    reference = next(iter(protocols.values())).reference
    heads, rules = ["", escape_latex(reference)], []
    for place, name in enumerate(others):
        base, plus, level = name.rpartition(" + ")
        title = f"+ {level.upper() if level == 'hps' else level}" if plus and base in others[:place] else name
        heads.append(rf"\multicolumn{{4}}{{c}}{{{escape_latex(title)}}}")
        rules.append(rf"\cmidrule(lr){{{3 + 4 * place}-{6 + 4 * place}}}")
    lines = [rf"\begin{{tabular}}{{lr{'rrrr' * len(others)}}}", r"\toprule", _line(heads), "".join(rules)]
    lines += [_line(["model", "E", *STATISTICS * len(others)]), r"\midrule"]
    for model, one in protocols.items():
        cells = [escape_latex(model), _number(numbers.number(one.estimate(reference).expected))]
        lines.append(_line([*cells, *(cell for name in others for cell in _statistics(one, name, numbers))]))
    return lines


def _lines_of_rows(protocols: Mapping[str, Protocol], names: Sequence[str], numbers: Scaled) -> list[str]:
    lines = [r"\begin{tabular}{llrrrr}", r"\toprule", _line(["model", "row", *STATISTICS])]
    for model, one in protocols.items():
        lines.append(r"\midrule")
        for place, name in enumerate(name for name in names if name in one.rows):
            label = "" if place else escape_latex(model)
            lines.append(_line([label, escape_latex(name), *_statistics(one, name, numbers)]))
    return lines


def _statistics(one: Protocol, row: str, numbers: Scaled) -> list[str]:
    if row not in one.rows:
        return ["--"] * len(STATISTICS)
    found = one.estimate(row)
    shown = numbers.number(found.oblivious), numbers.number(found.expected)
    return [_number(text) for text in (*shown, numbers.size(found.range), numbers.signed(found.bias))]


def _number(text: str) -> str:
    return escape_latex(add_zeros(text))


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
