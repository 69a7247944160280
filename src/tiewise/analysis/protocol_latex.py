"""The table of a paper: a line for each model, with obl, E, range and bias of each row beside the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from tiewise._version import __version__
from tiewise.analysis.protocol_result import Scaled, describe_order
from tiewise.errors import InputError
from tiewise.results.latex import LETTER, SMALLEST, Layout, escape_latex
from tiewise.results.wording import add_zeros

__all__ = ["paper_table"]


class _Tabular(NamedTuple):
    """The heads of a table as LaTeX, the titles of its columns, and its cells, in blocks of lines."""

    heads: Sequence[str]
    titles: Sequence[str]
    blocks: Sequence[Sequence[Sequence[str]]]

    @property
    def layout(self) -> Layout:
        columns = zip(self.titles, *chain.from_iterable(self.blocks), strict=True)
        return Layout.of([LETTER * max(map(len, column)) for column in columns])

    def lines(self) -> Iterator[str]:
        texts = sum(title in ("model", "row") for title in self.titles)
        yield rf"\begin{{tabular}}{{{'l' * texts}{'r' * (len(self.titles) - texts)}}}"
        yield from (r"\toprule", *self.heads, _line(self.titles))
        for block in self.blocks:
            yield r"\midrule"
            yield from (_line([escape_latex(cell) for cell in cells]) for cells in block)
        yield from (r"\bottomrule", r"\end{tabular}")


class Model(NamedTuple):
    """What the table shows of a model: its rows in the first measure, as `Protocol.to_dict` has them."""

    measure: str
    reference: str
    oblivious: str | None
    rows: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Model:
        """The model of the document of a protocol."""
        measure = document["rows"][0].get("measure")
        if measure is None:
            raise InputError("A table of a paper needs judgments: give qrels.")
        rows = {row["row"]: row for row in document["rows"] if row["measure"] == measure}
        return cls(measure, document["reference"], document["oblivious"], rows)

    @property
    def titles(self) -> list[str]:
        return ["E", "range"] if self.oblivious is None else ["obl", "E", "range", "bias"]

    def statistics(self, row: str, numbers: Scaled) -> list[str]:
        if row not in self.rows:
            return ["–"] * len(self.titles)
        found = self.rows[row]
        shown = {
            "obl": numbers.number(found["oblivious"]),
            "E": numbers.number(found["expected"]),
            "range": numbers.size(found["range"]),
            "bias": numbers.signed(found["bias"]),
        }
        return [add_zeros(shown[title]) for title in self.titles]


def paper_table(documents: Mapping[str, Mapping[str, Any]], numbers: Scaled) -> str:
    """The table of some models by name, in their first measure. If a line is too wide, each row has its own.

    `documents` are those of `Protocol.to_dict`.
    """
    models = {name: Model.of(document) for name, document in documents.items()}
    if not models:
        raise InputError("There is no model to show. Give one or more by name.")
    first = next(iter(models.values()))
    if any(one[:3] != first[:3] for one in models.values()):
        raise InputError("The models differ in measure, reference or order of ties. A table shows one of each.")
    others = list(dict.fromkeys(name for one in models.values() for name in one.rows if name != first.reference))
    table = _lines_of_models(models, others, numbers)
    if table.layout.size == SMALLEST:  # hard to read
        table = _lines_of_rows(models, [first.reference, *others], numbers)
    obl, bias = "", ""
    if first.oblivious is not None:
        obl, bias = f" obl: {describe_order(first.oblivious)};", "; bias: obl − E"
    unit = numbers.unit(first.measure)
    caption = f"{unit}.{obl} E: expected over all orders of ties; range: highest − lowest{bias}."
    return "\n".join(
        [
            rf"% tiewise {__version__}; needs \usepackage{{booktabs}}",
            *table.layout.begin(),
            rf"\caption{{{escape_latex(caption)}}}",
            *table.lines(),
            table.layout.end(),
            "",
        ]
    )


def _lines_of_models(models: Mapping[str, Model], others: Sequence[str], numbers: Scaled) -> _Tabular:
    first, named = next(iter(models.values())), any(models)  # one model may have no name
    titles = first.titles
    heads, rules = [""] * named + [escape_latex(first.reference)], []
    for place, name in enumerate(others):
        base, plus, level = name.rpartition(" + ")
        title = f"+ {level.upper() if level == 'hps' else level}" if plus and base in others[:place] else name
        heads.append(rf"\multicolumn{{{len(titles)}}}{{c}}{{{escape_latex(title)}}}")
        start = 2 + named + len(titles) * place
        rules.append(rf"\cmidrule(lr){{{start}-{start + len(titles) - 1}}}")
    block = []
    for model, one in models.items():
        cells = [model] * named + [add_zeros(numbers.number(one.rows[first.reference]["expected"]))]
        block.append([*cells, *(cell for name in others for cell in one.statistics(name, numbers))])
    return _Tabular([_line(heads), "".join(rules)], ["model"] * named + ["E", *titles * len(others)], [block])


def _lines_of_rows(models: Mapping[str, Model], names: Sequence[str], numbers: Scaled) -> _Tabular:
    named, blocks = any(models), []
    for model, one in models.items():
        rows = [name for name in names if name in one.rows]
        labels = [model, *[""] * len(rows)][: len(rows)]
        cells = [[name, *one.statistics(name, numbers)] for name in rows]
        blocks.append([[label] * named + row for label, row in zip(labels, cells, strict=True)])
    return _Tabular([], ["model"] * named + ["row", *next(iter(models.values())).titles], blocks)


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
