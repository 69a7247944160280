"""`Scored`: one model on one task in several precisions, and the tables that are made of it.

A run is known by the type in which the model ran (``float32``, ``float16``, ``bfloat16``) and by the level at which its
scores were taken (``native``, ``score``, ``logit``, ``head``: see `tiewise.scoring.LEVELS`). Whatever makes such runs,
saved tensors, a packaged model or one of the hub, ends here, and every table begins here. Values are printed in points:
hundredths of a measure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import tiewise as tw
from tiewise.analysis.auditing.fidelity import measure_fidelity

Judged = dict[str, dict[str, float]]

#: What the types of a model are called in the tables.
SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
#: The orders of ties that tools and data have, and that no machine changes.
ORDERS = ("given", "docid-desc", "docid-asc")


class Missing(Exception):
    """Data, a package or a model that is not here; the message says what, and how to get it."""


@dataclass(frozen=True, eq=False)
class Scored:
    """The runs of a model by type and level, with the judgments."""

    model: str
    data: str
    judged: Judged
    runs: Mapping[tuple[str, str], tw.Run]
    reference: tuple[str, str] = ("float32", "native")  # the run that the others should equal

    @property
    def whole(self) -> tw.Run | None:
        """The reference, if there is one."""
        return self.runs.get(self.reference)


@dataclass(frozen=True)
class Row:
    """What a table says of one run; all but `rbo` in points or per cent."""

    expected: float
    minimum: float
    maximum: float
    std: float
    given: float  # ties in the order of the data: the paper's tie-oblivious value
    id_desc: float  # ties by descending id, as trec_eval has them
    id_asc: float  # ties by ascending id, as sentence-transformers has them
    tied: float  # share of rows
    tied_by_query: float  # mean over queries of that share
    gap: float | None = None  # expected, less that of the reference
    inverted: float | None = None  # share of the pairs of documents that the reference orders the other way round
    rbo: float | None = None

    @property
    def range(self) -> float:
        return self.maximum - self.minimum


def row(judged: Judged, run: tw.Run, reference: tw.Run | None, measure: str) -> Row:
    """One line of Table 1: a run against judgments, and against the run that it should equal.

    >>> judged = {"q": {"a": 1, "b": 0}}
    >>> tied = tw.Run.from_dict({"q": {"a": 0.5, "b": 0.5}})
    >>> found = row(judged, tied, tw.Run.from_dict({"q": {"a": 0.6, "b": 0.5}}), "RR@10")
    >>> found.expected, found.range, found.given, found.id_desc, found.tied, found.gap
    (75.0, 50.0, 100.0, 50.0, 100.0, -25.0)
    """
    report = measured(judged, run, measure)
    mean = report[measure]
    ordered = [measured(judged, run, measure, oblivious=order)[measure].oblivious for order in ORDERS]
    numbers = (mean.expected, mean.minimum, mean.maximum, mean.std, *ordered)
    points = [100 * value for value in numbers if value is not None]
    assert len(points) == len(numbers)
    faithful = None
    if reference is not None:
        faithful = measure_fidelity(run, reference, report, measured(judged, reference, measure))
    return Row(
        *points,
        tied=100 * run.tied_share,
        tied_by_query=100 * tied_by_query(run),
        gap=None if faithful is None else 100 * next(iter(faithful.gap.values())),
        inverted=None if faithful is None or faithful.inverted is None else 100 * faithful.inverted,
        rbo=None if faithful is None else faithful.rbo,
    )


def measured(judged: Judged, run: tw.Run, *measures: str, oblivious: str = "trec_eval") -> tw.Report:
    """A report on lists that are whole: candidates of a reranker, or a whole collection."""
    return tw.evaluate(judged, run, measures, complete=True, oblivious=oblivious)


def tied_by_query(run: tw.Run) -> float:
    """The mean over queries of the share of candidates that tie with another."""
    ends = np.flatnonzero(np.diff(run.query)) + 1
    shares = []
    for scores in np.split(run.score, ends):
        counts = np.unique(scores, return_counts=True)[1]
        shares.append(counts[counts > 1].sum() / len(scores))
    return float(np.mean(shares))


@cache
def blind(place: int) -> str:
    """An id that knows nothing of where a candidate stood: data sets often list the relevant ones first."""
    return hashlib.sha256(str(place).encode()).hexdigest()[:12]


def listed(queries: Sequence[Any], values: Iterable[float], keep: set[Any] | None = None) -> Judged:
    """Values of pairs by query and candidate, in the order of the data; `keep` are the queries that count."""
    found: Judged = {}
    for place, (query, value) in enumerate(zip(queries, values, strict=True)):
        if keep is None or query in keep:
            found.setdefault(str(query), {})[blind(place)] = float(value)
    return found


# -- tables ------------------------------------------------------------------------------------------------------------

HEADS = (
    "scores",
    "E",
    "range",
    "std",
    "order of the data (bias)",
    "trec_eval (bias)",
    "tied %",
    "E − fp32",
    "inverted %",
)
LAST = "RBO to fp32"


def table_1(found: Scored, measure: str) -> str:
    """Table 1 for one model: a line for each type and level."""
    lines = [line(kind, row(found.judged, run, found.whole, measure)) for kind, run in found.runs.items()]
    return markdown((*HEADS, LAST), lines)


def line(kind: tuple[str, str], one: Row) -> tuple[str, ...]:
    """A line as it is printed; what does not apply is a dash."""
    dtype, level = kind
    return (
        f"{SHORT.get(dtype, dtype)} · {level}" if level else dtype,
        f"{one.expected:.2f}",
        f"{one.range:.2f}",
        f"{one.std:.2f}",
        off(one.given, one.expected),
        off(one.id_desc, one.expected),
        f"{one.tied:.1f} ({one.tied_by_query:.1f})",
        optional(one.gap, "+.2f"),
        optional(one.inverted, ".2f"),
        optional(one.rbo, ".3f"),
    )


def signed(value: float) -> str:
    """A difference with its sign, a true minus; 0 where it rounds to that.

    >>> signed(-0.254), signed(0.001), signed(1.0)
    ('−0.25', '0', '+1.00')
    """
    return "0" if abs(value) < 0.005 else f"{value:+.2f}".replace("-", "−")


def optional(value: float | None, spec: str) -> str:
    if value is None:
        return "–"
    return signed(value) if spec == "+.2f" else format(value, spec)


def ablation(all_found: Sequence[Scored], measure: str, dtype: str = "bfloat16") -> str:
    """What is reported with neither part of the protocol, with one, with both, and with the last layer redone too.

    In brackets what is reported less what the model in float32 scores. Without tie-aware measures the report is that of
    an order that data or tools have.
    """
    lines = []
    for found in all_found:
        if found.whole is None:
            continue
        full = row(found.judged, found.whole, None, measure).expected
        rows = {
            level: row(found.judged, found.runs[dtype, level], None, measure)
            for level in ("native", "score", "head")
            if (dtype, level) in found.runs
        }
        native, high = rows["native"], rows["score"]
        reported = (native.given, native.id_desc, native.id_asc, high.given)
        cells = [*(off(value, full) for value in reported), tie_aware(native, full), tie_aware(high, full)]
        cells.append(tie_aware(rows["head"], full) if "head" in rows else "–")
        lines.append((f"{found.model}, {found.data}", f"{full:.2f}", *cells))
    neither = (f"neither: {order}" for order in ("order of the data", "id ↓", "id ↑"))
    heads = ("model, data", "fp32", *neither, "HPS only", "TRM only", "HPS + TRM", "head + TRM")
    return markdown(heads, lines)


def off(value: float, full: float) -> str:
    """A value, and how far it is off another."""
    return f"{value:.2f} ({signed(value - full)})"


def tie_aware(one: Row, full: float) -> str:
    return f"{values_of(one)} ({signed(one.expected - full)})"


@dataclass(frozen=True, eq=False)
class Batches:
    """What a model gives for the same inputs in batches of two sizes, the smaller one first."""

    what: str
    judged: Judged
    values: Mapping[int, Any]  # by batch size: logits or vectors, a row for each input
    runs: Mapping[str, Sequence[tw.Run]]  # by level, one for each size


def batch_table(all_found: Sequence[Batches], measure: str) -> str:
    """How far the batch size alone moves what a model gives, and the measure with it."""
    lines = []
    for found in all_found:
        small, large = found.values.values()
        changed = 100 * np.mean((small != large).reshape(len(small), -1).any(axis=1))
        for level, (before, after) in found.runs.items():
            one, other = row(found.judged, before, None, measure), row(found.judged, after, before, measure)
            cells = (f"{changed:.1f}", f"{np.abs(small - large).max():.2g}", values_of(one), values_of(other))
            lines.append((f"{found.what} · {level}", *cells, optional(other.inverted, ".3f")))
    sizes = [f"E at {size}" for size in all_found[0].values]
    return markdown(("scores", "outputs that change %", "largest change", *sizes, "inverted %"), lines)


def values_of(one: Row) -> str:
    return spread(one.expected, one.minimum, one.maximum)


def spread(value: float, least: float, most: float, digits: int = 2) -> str:
    """A value, and in brackets the least and the most it may be, where these can be told apart."""
    shown = [f"{number:.{digits}f}" for number in (value, least, most)]
    return shown[0] if shown[1] == shown[2] else f"{shown[0]} [{shown[1]}, {shown[2]}]"


def markdown(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, numbers to the right."""
    rule = ["---", *["--:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *lines))
