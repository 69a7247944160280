"""`Estimate`: a measure's value over all orders of the tied documents; `Estimates`: one for each query.

Five uncertainties have five names and are never merged: range and std (the order of ties), cut (a list that ends
inside a tie group), residual (what was not judged or not seen), ci (which queries were sampled), and rerun (the same
system scored again).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, fields, replace
from functools import cache, partial
from itertools import compress
from math import exp, inf, isfinite, isnan
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Floats, freeze
from tiewise.metrics.aggregation import MEAN, SUM, Aggregation, sum_over_queries
from tiewise.metrics.student import t_quantile
from tiewise.results.base import Result
from tiewise.results.view import View
from tiewise.results.wording import count_noun

if TYPE_CHECKING:
    from typing_extensions import Self

    from tiewise.metrics.noise import Noise, Rerun
    from tiewise.results.model import Section, Table

#: How a statistic was found, from the strongest to the weakest: it is exact; the extremes lie within it; it is that of
#: random orders.
WORDS = ("exact", "bound", "sampled")
EXACT, BOUND, SAMPLED = range(3)


class Method(Mapping[str, str]):
    """How the statistics of an estimate were found: ``exact``, ``bound`` or ``sampled``, each on its own.

    >>> Method(std="sampled")
    {'expected': 'exact', 'extremes': 'exact', 'std': 'sampled'}
    """

    __slots__ = ("_words",)

    def __init__(self, *, expected: str = "exact", extremes: str = "exact", std: str = "exact"):
        self._words = {"expected": expected, "extremes": extremes, "std": std}

    def __getitem__(self, name: str) -> str:
        return self._words[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def __len__(self) -> int:
        return len(self._words)

    def __hash__(self) -> int:
        return hash(tuple(self._words.values()))

    def __repr__(self) -> str:
        return repr(self._words)

    def mark(self, statistic: str) -> str:
        """What stands before a statistic: ~ if it comes from random orders, ≥ or ≤ if it is a bound, else nothing.

        >>> [Method(extremes="bound").mark(name) for name in ("expected", "minimum", "maximum")]
        ['', '≥', '≤']
        """
        found = {self[name] for name in _FOUND_FROM.get(statistic, ())}
        if "sampled" in found:
            return "~"
        return ("≥" if statistic == "minimum" else "≤") if "bound" in found else ""


#: What a statistic is computed from. The value of one order, a residual and a cut need no sampling.
_FOUND_FROM = {
    "expected": ("expected",),
    "minimum": ("extremes",),
    "maximum": ("extremes",),
    "range": ("extremes",),
    "std": ("std",),
    "bias": ("expected",),
    "z": ("expected", "std"),
}


EXACT_METHOD = Method()


class OverQueries(NamedTuple):
    """How far the mean over queries may lie from that of other queries of the same kind."""

    error: float  #: the standard deviation of the queries' expected values, over √n
    freedom: int  #: n − 1
    limits: tuple[float, float]  #: what the measure can reach
    is_geometric: bool = False  #: the error is that of the logarithm

    @property
    def half_width(self) -> float:
        """Half the width of the 95% interval: Student's t."""
        return t_quantile(self.freedom) * self.error

    def interval(self, mean: float) -> tuple[float, float]:
        """The interval around a mean, clipped to what the measure can reach."""
        low, high = mean - self.half_width, mean + self.half_width
        if self.is_geometric:
            low, high = mean * exp(-self.half_width), mean * exp(self.half_width)
        return max(low, self.limits[0]), min(high, self.limits[1])


class _DeferredStd:
    """The default of `Estimate.std`: None, or computed when it is looked at, if it was deferred."""

    def __get__(self, estimate: Estimate | None, owner: type | None = None) -> float | None:
        found: float | None = None if estimate is None else vars(estimate)["_compute_std"]()
        return found


@dataclass(frozen=True, repr=False)
class Estimate(Result):
    """What a measure is worth when tied documents may stand in any order. A field that does not apply is None.

    It is not a number, so ``float(estimate)`` is an error: take `expected`, or `oblivious` for what a tool prints.

    >>> Estimate(expected=0.81, minimum=0.67, maximum=0.95, oblivious=0.95, measure="nDCG@10")
    nDCG@10 0.8100 [0.6700, 0.9500]
    """

    expected: float | None = None  #: the mean over all orders: the value under a random order, not "the true one"
    minimum: float | None = None  #: the lowest value that an order can give
    maximum: float | None = None  #: the highest
    std: float | None = cast(Any, _DeferredStd())  #: the standard deviation over all orders
    oblivious: float | None = None  #: the value that one fixed order gives, as a tie-oblivious tool prints it
    residual: float | None = None  #: what the unjudged and the unseen could still add
    cut: tuple[float, float] | None = None  #: bounds on `expected` if lists were cut inside a tie group
    cut_likely: bool = False  #: whether that happened in one list or more, by the share of tied documents
    measure: str | None = None
    method: Method = EXACT_METHOD  #: how expected, extremes and std were found: exact, bound or sampled
    standard_error: float | None = None  #: of `expected`, if that was sampled
    rerun: Rerun | None = None  #: what the same system scored again would print, of a mean with `rerun=`
    noise: Noise | None = None  #: what noise of a given size would do, of a mean with `noise=`
    _over_queries: OverQueries | None = None

    @property
    def ci(self) -> tuple[float, float] | None:
        """The 95% interval of a mean for other queries of the same kind: Student's t on the expected values of queries.

        It is clipped to what the measure can reach. None for one query and for counts that are added up. It is about
        one run alone: two runs have the same queries, so compare them by `compare`.

        >>> from tiewise import evaluate
        >>> qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}
        >>> runs = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 2.0, "b": 1.0}, "q3": {"b": 2.0, "a": 1.0}}
        >>> mean = evaluate(qrels, runs, "RR")["RR"]
        >>> f"{mean.expected:.3f}, {mean.ci[0]:.3f} to {mean.ci[1]:.3f}, ±{mean.half_width:.3f}"
        '0.833, 0.116 to 1.000, ±0.717'
        """
        over = self._over_queries
        return None if over is None or self.expected is None else over.interval(self.expected)

    @property
    def half_width(self) -> float | None:
        """Half the width of `ci` before it is clipped: what tables show as ±95%; None for a geometric mean."""
        over = self._over_queries
        return None if over is None or over.is_geometric else over.half_width

    @property
    def range(self) -> float | None:
        """maximum − minimum: how far the order of ties alone can move the value."""
        return None if self.maximum is None or self.minimum is None else self.maximum - self.minimum

    @property
    def bias(self) -> float | None:
        """oblivious − expected: the effect of that one order (Yang et al., Eq. 5)."""
        return None if self.oblivious is None or self.expected is None else self.oblivious - self.expected

    @property
    def z(self) -> float | None:
        """bias / std: beyond ±4, check whether the order depends on the labels."""
        return self.bias / self.std if self.bias is not None and self.std else None

    @property
    def open_cut(self) -> tuple[float, float] | None:
        """`cut`, where it is likely: what tables mark and notes tell."""
        return self.cut if self.cut_likely else None

    @property
    def tied(self) -> bool:
        """Whether the order of ties can change the value at all."""
        return bool(self.range)

    def _defer_std(self, compute: Callable[[], float | None]) -> Self:
        """This estimate, whose `std` takes long: it is computed when it is first looked at."""
        del vars(self)["std"]
        vars(self)["_compute_std"] = cache(compute)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return vars(self if "std" in vars(self) else replace(self)).copy()

    def __float__(self) -> float:
        raise TypeError("An Estimate is not one number. Take .expected, or .oblivious for what a tool prints.")

    def to_dict(self) -> dict[str, Any]:
        """All fields, with `ci`, `range`, `bias` and `z`; None where one does not apply."""
        plain, ci = self.__getstate__(), self.ci
        del plain["measure"], plain["_over_queries"]
        plain["ci"] = None if ci is None else list(ci)
        plain["cut"] = None if self.cut is None else list(self.cut)
        plain["method"] = self.method._words.copy()
        for name, found in (("rerun", self.rerun), ("noise", self.noise)):
            plain[name] = None if found is None else asdict(found)
        return plain | {"range": self.range, "bias": self.bias, "z": self.z}

    @property
    def _row(self) -> dict[str, Any]:
        """All statistics as the columns of one row, in the order of a report's."""
        names = ("minimum", "maximum", "std", "oblivious", "bias", "range", "z", "residual")
        columns: dict[str, Any] = {"expected": self.expected}
        columns |= zip(("ci_low", "ci_high"), self.ci or (None, None), strict=True)
        columns |= {name: getattr(self, name) for name in names}
        columns |= zip(("cut_lower", "cut_upper"), self.cut or (None, None), strict=True)
        columns |= {f"{name}_method": word for name, word in self.method.items()}
        columns |= {"standard_error": self.standard_error}
        for name, parts in (("rerun", ("low", "high", "std")), ("noise", ("expected", "std"))):
            columns |= {f"{name}_{part}": getattr(getattr(self, name), part, None) for part in parts}
        return columns | {f.name: getattr(self, f.name) for f in fields(self)[len(fields(Estimate)) :]}

    def __format__(self, spec: str) -> str:
        """The expectation, and the range behind it where there is one: ``f"{estimate:.3f}"``."""
        if self.expected is None:
            return "-"

        def show(name: str) -> str:
            return self.method.mark(name) + format(getattr(self, name) or 0.0, spec or ".4f")

        ends = f" [{show('minimum')}, {show('maximum')}]" if self.tied else ""
        return show("expected") + ends

    def __repr__(self) -> str:
        more = (f" · {one!r}" for one in (self.rerun, self.noise) if one is not None)
        return f"{self.measure or 'Estimate'} {self:.4f}{''.join(more)}"

    def _section(self, view: View) -> Section:
        from tiewise.results.estimates import estimate_section

        return estimate_section("measure", [(self.measure or "", self)], view)

    def _records(self, view: View) -> Table:
        from tiewise.results.model import Table

        return Table.of_record({"measure": self.measure} | self._row)


@dataclass(frozen=True, repr=False)
class Bounds(Result):
    """What a measure of unbounded rankings is worth at least and at most, when only their heads are seen.

    `lower` resolves what is unseen or unjudged against the score, `upper` in its favour; each is an Estimate over the
    orders of ties. `upper` is None where there is no such bound; `extrapolated` assumes that what follows is as what
    was seen (RBO). `value` is that of the rankings as they are, if nothing follows them (MED_RBP and τ of runs).

    >>> import tiewise as tw
    >>> found = tw.rbo("a (b c)", "a c d", phi=0.9)
    >>> found
    RBO 0.7075, from 0.3892 to 0.9505
    >>> found.lower, found.residual
    (RBO 0.3892 [0.3667, 0.4117], 0.561...)
    """

    lower: Estimate
    upper: Estimate | None
    extrapolated: Estimate | None = None
    measure: str | None = None
    value: Estimate | None = None

    @property
    def residual(self) -> float | None:
        """upper.expected − lower.expected: what the unseen and the unjudged leave open."""
        if self.upper is None or self.upper.expected is None or self.lower.expected is None:
            return None
        return self.upper.expected - self.lower.expected

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        parts = {"lower": self.lower, "upper": self.upper, "extrapolated": self.extrapolated}
        if self.value is not None:
            parts = {"value": self.value, **parts}
        return {name: part and part.to_dict() for name, part in parts.items()} | {"residual": self.residual}

    def __repr__(self) -> str:
        parts = (self.extrapolated or self.value, self.lower, self.upper)
        best, low, high = ("?" if one is None or one.expected is None else f"{one.expected:.4f}" for one in parts)
        score = "" if best == "?" else f" {best},"
        return f"{self.measure or 'Bounds'}{score} from {low} to {high}"

    def _section(self, view: View) -> Section:
        from tiewise.results.estimates import estimate_section

        notes = () if self.residual is None else (f"What is not seen leaves {self.residual:.4f} open.",)
        return estimate_section("bound", self._parts.items(), view, title=self.measure or "Bounds", notes=notes)

    def _records(self, view: View) -> Table:
        from tiewise.results.model import Table

        rows = [{"bound": name} | part._row for name, part in self._parts.items()]
        return Table.of_records(rows[0], rows)

    @property
    def _parts(self) -> dict[str, Estimate]:
        """The estimates that there are, in the order in which they are shown."""
        parts = {"value": self.value, "lower": self.lower, "extrapolated": self.extrapolated, "upper": self.upper}
        return {name: part for name, part in parts.items() if part is not None}


class Methods(NamedTuple):
    """How the statistics of each query were found, as places in `WORDS`, and the standard errors of expectations."""

    expected: NDArray[np.int8]
    extremes: NDArray[np.int8]
    std: NDArray[np.int8]
    standard_error: Floats  # NaN where the expectation was not sampled

    def take(self, kept: Any) -> Methods:
        """Those of some queries."""
        return Methods(*(column[kept] for column in self))

    def only(self, places: NDArray[Any]) -> Methods:
        """The same at some places; elsewhere every statistic is exact."""
        held = np.zeros(len(self.expected), dtype=bool)
        held[places] = True
        words = (self.expected, self.extremes, self.std)
        expected, extremes, std = (np.where(held, word, EXACT).astype(np.int8) for word in words)
        return Methods(expected, extremes, std, np.where(held, self.standard_error, np.nan))

    @classmethod
    def concatenate(cls, each: Sequence[Methods | None], n: int) -> Methods | None:
        """Those of several runs of n queries one below the other; None if every statistic of all runs is exact."""
        if all(one is None for one in each):
            return None
        zeros = np.zeros(n, dtype=np.int8)
        exact = Methods(zeros, zeros, zeros, np.full(n, np.nan))
        filled = [exact if one is None else one for one in each]
        return cls(*map(np.concatenate, zip(*filled, strict=True)))

    def describe(self, estimate: Estimate, scale: float = 1.0) -> Estimate:
        """A mean with the weakest word of its queries; their sum was multiplied by `scale`."""
        words = {name: WORDS[int(getattr(self, name).max())] for name in ("expected", "extremes", "std")}
        error = float(np.sqrt(np.nansum(self.standard_error**2))) * scale if words["expected"] == "sampled" else None
        return replace(estimate, method=Method(**words), standard_error=error)


#: The columns of `Estimates`, besides the two of `cut`.
COLUMNS = ("expected", "minimum", "maximum", "variance", "oblivious", "residual")


@dataclass(eq=False, repr=False)
class Estimates(Result, Mapping[str, Estimate]):
    """The estimates of one measure, by query id; its columns are arrays over `queries`."""

    measure: str
    queries: tuple[str, ...]
    _: KW_ONLY
    expected: Floats
    minimum: Floats
    maximum: Floats
    variance: Floats
    oblivious: Floats | None = None
    residual: Floats | None = None
    cut: tuple[Floats, Floats] | None = None
    cut_likely: bool = True
    method: Methods | None = None  #: None: every statistic is exact
    aggregation: Aggregation = MEAN  #: how the values of queries become one
    #: The estimates of the value to a power, for aggregations that need them.
    powers: Callable[[float], Estimates] | None = None
    limits: tuple[float, float] = (-inf, inf)
    known_sums: Mapping[str, float] | None = None  #: `sums`, if they were computed before

    def __post_init__(self) -> None:
        for name in COLUMNS:
            column = getattr(self, name)
            if column is not None and column.flags.writeable:
                setattr(self, name, freeze(column))
        if self.cut is not None:
            self.cut = freeze(self.cut[0]), freeze(self.cut[1])

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __getitem__(self, query: str) -> Estimate:
        at = self._index[query]
        found = self.summary(lambda _, column: float(column[at]), float(np.sqrt(self.variance[at])))
        return found if self.method is None else self.method.take(slice(at, at + 1)).describe(found)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.queries)}

    def __repr__(self) -> str:
        return f"<Estimates of {self.measure} for {count_noun(len(self), 'query', 'queries')}>"

    def _section(self, view: View) -> Section:
        from tiewise.results.estimates import estimate_section

        title = f"{self.measure} for {count_noun(len(self), 'query', 'queries')}: {self.mean():.4f}"
        return estimate_section("query", self.items(), view, title=title, total=len(self))

    def _records(self, view: View) -> Table:
        from tiewise.results.model import Table

        names = ("expected", "minimum", "maximum", "std", "oblivious")
        each = list(self.values())
        columns = {name: [getattr(one, name) for one in each] for name in names}
        return Table.of_columns({"query": list(self.queries), **columns})

    @property
    def total(self) -> bool:
        """Whether the values are added up over queries, not averaged."""
        return self.aggregation is SUM

    @property
    def sums(self) -> Mapping[str, float]:
        """The sum of each column over queries; those of `cut` are called low and high."""
        if self.known_sums is not None:
            return self.known_sums
        low, high = self.cut or (None, None)
        columns = {name: getattr(self, name) for name in COLUMNS} | {"low": low, "high": high}
        distinct = {id(one): one for one in columns.values() if one is not None}  # without ties several are one array
        sums = dict(zip(distinct, sum_over_queries(np.array(list(distinct.values())).T).tolist(), strict=True))
        return {name: sums[id(one)] for name, one in columns.items() if one is not None}

    def mean(self) -> Estimate:
        """The estimate of the mean over queries (of the sum, for counts; of the geometric mean, for GMAP)."""
        return self.aggregation.of_estimates(self) if len(self) else Estimate(measure=self.measure)

    def take(self, kept: NDArray[Any]) -> Estimates:
        """The estimates of some of the queries, given as a mask."""
        if np.count_nonzero(kept) == len(kept):
            return self
        powers, columns = self.powers, {name: getattr(self, name) for name in COLUMNS}
        some: dict[str, Any] = {name: column[kept] for name, column in columns.items() if column is not None}
        return replace(
            self,
            queries=tuple(compress(self.queries, kept.tolist())),
            **some,
            cut=None if self.cut is None else (self.cut[0][kept], self.cut[1][kept]),
            method=None if self.method is None else self.method.take(kept),
            powers=None if powers is None else partial(_take_powers, powers, kept),
            known_sums=None,
        )

    def summary(
        self, pick: Callable[[str, Floats], float], spread: float, over_queries: OverQueries | None = None
    ) -> Estimate:
        """One estimate: `pick` gives a number from a column and its name, and `spread` is its standard deviation."""

        def value(name: str) -> float | None:
            column: Floats | None = getattr(self, name)
            number = None if column is None else pick(name, column)
            return None if number is None or isnan(number) else number

        cut = None if self.cut is None else (pick("low", self.cut[0]), pick("high", self.cut[1]))
        cut = cut if cut is None or (isfinite(cut[0]) and isfinite(cut[1])) else None
        return Estimate(
            expected=value("expected"),
            minimum=value("minimum"),
            maximum=value("maximum"),
            std=None if isnan(spread) else spread,
            oblivious=value("oblivious"),
            residual=value("residual"),
            cut=cut,
            cut_likely=cut is not None and self.cut_likely,
            measure=self.measure,
            _over_queries=over_queries,
        )


def _take_powers(powers: Callable[[float], Estimates], kept: NDArray[Any], exponent: float) -> Estimates:
    return powers(exponent).take(kept)
