"""A measure is a value: ``P(rel=2)@10`` is code, command-line word, dictionary key and column title at once.

Its definition is one small class that says what a document is worth (`gain`), what a rank is worth (`payoff`) and
what the sum is divided by (`divisor`):

    M(q) = Σ_r gain(label_r) · payoff(r, seen_{r−1}) / divisor(q)                                        (1)

Expectation, extremes and variance over the orders of tied documents follow from that in `engine`; a class
overrides `terms` and `law` only where it is not of this form, or has a cheaper one. `measure` in
`tiewise.metrics.names` enters the class into the registry, from which the parser, the command line, the documentation
and the tests take it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Floats
from tiewise.errors import MeasureError
from tiewise.metrics.aggregation import MEAN, SUM, Aggregation

if TYPE_CHECKING:
    from typing_extensions import Self

    from tiewise.metrics.estimate import Estimate
    from tiewise.metrics.grouped_judgments import GroupedJudgments, Order


class Law(NamedTuple):
    """What the order of ties does to a measure in some parts of lists, by closed forms; NaN where there is none.

    The functions are called if somebody asks for what they return, so that an expectation costs nothing else.
    """

    mean: Floats
    variance: Callable[[], Floats] | None = None
    #: Minimum and maximum, and which are only bounds, of a measure whose orders by `key` are not its extremes.
    extremes: Callable[[], tuple[Floats, Floats, NDArray[np.bool_] | bool]] | None = None


class Sampling(NamedTuple):
    """How many random orders are drawn where a statistic cannot be computed, and from which seed."""

    samples: int = 1000
    seed: int = 0


SAMPLING = Sampling()


def check_size(number: float) -> float:
    """The number; a ValueError if it is so large or so small that sums and squares with it would not be finite."""
    if number != 0 and not 1e-12 <= abs(number) <= 1e12:
        raise ValueError("Numbers are 0, or from 1e-12 to 1e12 in size.")
    return number


class Param(NamedTuple):
    """A parameter of a measure: its default, what it may be, and whether the name always shows it."""

    name: str
    default: Any
    choices: tuple[str, ...]
    above: float
    below: float
    least: float
    most: float
    shown: bool
    text: Callable[[str], str] | None

    def canonical(self, value: Any) -> Any:
        """A value that is possible, in one spelling."""
        if isinstance(value, np.generic):
            return value.item()
        return self.text(str(value)) if self.text is not None and value not in self.choices else value

    def check(self, who: str, value: Any) -> None:
        """Raise if the parameter cannot take this value."""
        if problem := self._find_problem(value):
            raise MeasureError(f"{who}: {self.name}={value!r} {problem}")

    def _find_problem(self, value: Any) -> str:
        """Why the parameter cannot take this value, as the end of a sentence; empty if it can."""
        known = [f'"{choice}"' for choice in self.choices]
        is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if self.text is not None and value not in self.choices:
            try:
                self.text(str(value))
            except ValueError as error:
                others = f"Use {', '.join(known)}, or this: " if known else ""
                return f"is not possible. {others}{error}"
        elif isinstance(self.default, bool):
            return "" if isinstance(value, (bool, np.bool_)) else "is not possible. Use True or False."
        elif self.choices:
            return "" if value in self.choices else f"is not possible. Use {' or '.join(known)}."
        elif not is_number or not abs(value) < math.inf:
            return "is not a number."
        elif not self.above < value < self.below:
            bounds = f"above {self.above:g}" + ("" if math.isinf(self.below) else f" and below {self.below:g}")
            return f"is not possible. It must lie {bounds}."
        elif value < self.least:
            return f"is not possible. It must be {self.least:g} or more."
        elif value > self.most:
            return f"is not possible. It must be {self.most:g} or less."
        elif not (math.isfinite(self.above) and math.isfinite(self.below)):
            try:
                check_size(value if isinstance(value, int) else float(value))
            except ValueError as error:
                return f"is not possible. {error}"
        return ""


def param(
    default: float | str | bool,
    *,
    choices: Sequence[str] = (),
    above: float = -math.inf,
    below: float = math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    shown: bool = False,
    text: Callable[[str], str] | None = None,
) -> Any:
    """A parameter in the body of a measure: ``rel: float = param(1)``; a number in bounds, a word of some, or a bool.

    The number lies above `above` and below `below`, or from `least` to `most`. `shown` parameters stand in the
    measure's name even at their default. `text` gives the canonical spelling of a text that is none of the `choices`,
    and raises a ValueError for a wrong one.
    """
    return Param("", default, tuple(choices), above, below, least, most, shown, text)


class Measure:
    """The base of all measures, which are values: call one to set parameters, ``@`` a cutoff.

    >>> from tiewise import P
    >>> P(rel=2) @ 10
    P(rel=2)@10
    >>> (P @ 2).of("(10)1")
    P@2 0.5000
    """

    cutoff: int | None = None
    judged_only: bool = False  #: measured on lists without unjudged documents and those with a label below 0

    params: ClassVar[dict[str, Param]] = {}  #: by name, from the class body
    aliases: ClassVar[Sequence[str]] = ()  #: other spellings, `name` or `name:param=value`
    other_names: ClassVar[Mapping[str, str]] = {}  #: other names of parameters, each with its own
    takes_cutoff: ClassVar[bool] = True
    after_at: ClassVar[str] = "cutoff"  #: what a number after @ sets
    takes_depth: ClassVar[bool] = True  #: exact even where only part of a tie group is seen
    compares: ClassVar[bool] = False  #: a measure of two rankings, not of a run against judgments
    total: ClassVar[bool] = False  #: added up over queries, not averaged (a count)
    #: Whether it is a sum over documents, Eq. (1). A term depends on which documents stand above, but neither on their
    #: order nor on what stands below.
    additive: ClassVar[bool] = True
    #: Whether the orders by `key` are the best and the worst one. If not, the extremes are those of `law`; where it
    #: has none, orders are enumerated or sampled for them.
    sorted_extremes: ClassVar[bool] = True
    #: The form of its terms, which are then computed in C++ unless a subclass overrides one of its methods: see
    #: `tiewise.metrics.compiled`. What it is made of follows from the judgments alone. Only the depth may depend on the
    #: length of the list, and the divisor may be that length.
    form: ClassVar[str | None] = None
    uses_seen: ClassVar[bool] = False  #: set by `@measure` from the signature of `payoff`
    #: Whether it tells judged non-relevant documents from unjudged ones, other than by a gain for label 0. None: it
    #: does if it overrides a method that may look at all judged documents, such as `terms` or `divisor`.
    distinguishes_unjudged: ClassVar[bool | None] = None
    limits: ClassVar[tuple[float, float]] = (-math.inf, math.inf)  #: what a value can reach: intervals end there

    # -- the definition: what a subclass writes ---------------------------------------------------------------

    def gain(self, label: Floats) -> Floats:
        """What a document of this label is worth; unjudged documents are worth 0. Here: 1 if relevant."""
        least = getattr(self, "rel", 1)
        relevant: Floats = (label >= max(least, 0)).astype(np.float64)
        return relevant

    def scaled_gain(self, documents: GroupedJudgments | Order) -> Floats:
        """The gains of some documents in a unit of their query, which is that of `divisor` too. Here: as they are."""
        return self.gain(documents.label)

    def relevant(self, label: Floats) -> NDArray[np.bool_]:
        """Which documents are relevant, for queries that have none. Here: those with a gain."""
        return self.gain(label) > 0

    def payoff(self, rank: Floats, seen: Floats) -> Floats:
        """What a gain counts at a rank when `seen` documents with a gain stand above it. Here: 1."""
        return np.ones_like(rank)

    def passing(self, gain: Floats) -> Floats | None:
        """By what a document multiplies all terms below it, if the reader may stop at it. Here: None, by nothing."""
        return None

    def divisor(self, q: GroupedJudgments) -> NDArray[Any]:
        """What the sum is divided by, for each query; 0 makes the value 0. Here: 1."""
        return np.ones(q.n_queries)

    def base(self, q: GroupedJudgments) -> Floats:
        """What is added for each query, whatever the order. Here: 0."""
        return np.zeros(q.n_queries)

    def depth(self, q: GroupedJudgments) -> NDArray[Any]:
        """How many ranks of each list the measure looks at. Here: the cutoff, at most the list's length."""
        return q.length if self.cutoff is None else np.minimum(q.length, self.cutoff)

    def key(self, label: Floats) -> Floats:
        """By what to sort for the best order, unjudged documents at 0. Here: the label, unless `sorts_by_label`
        is set to False: then the gain."""
        return label if self.sorts_by_label else self.gain(label)

    @property
    def sorts_by_label(self) -> bool:
        """Whether `key` is the label: such measures share their orders. Here: unless it has a key of its own."""
        return type(self).key is Measure.key and type(self).sort_key is Measure.sort_key

    def sort_key(self, documents: GroupedJudgments) -> Floats:
        """The key of some documents, of a measure that looks at more than their labels. Here: `key`."""
        return self.key(documents.label)

    def terms(self, order: Order) -> Floats:
        """The summand of every judged document in one order, Eq. (1) before it is divided."""
        gain = self.scaled_gain(order)
        seen = order.count_before(gain != 0) if self.uses_seen else order.rank
        return gain * self.payoff(order.rank, seen)

    def law(self, parts: Any) -> Law:
        """What the order of ties does to each part of the lists. Here: Eqs. (2) and (3), if it is a sum.

        The parts of a sum are tie groups, in a `GroupBlock`: the law is that of the sum of a group's terms, as columns.
        The parts of another measure are lists, `GroupedJudgments`: the law is that of their values.
        """
        from tiewise.metrics import engine

        return engine.law_of_payoff(self, parts) if self.additive else Law(np.full(parts.n_queries, np.nan))

    def values(self, order: Order) -> Floats:
        """The value of each query in one order, of a measure that is not a sum; NaN where it is not defined."""
        raise NotImplementedError

    @property
    def value_range(self) -> tuple[float, float] | None:
        """The lowest and the highest value there can be, of a measure that a better document in the list can lower.

        NaN where there are none. Here: None, because a better document raises the value, or leaves it.
        """
        return None

    @property
    def aggregation(self) -> Aggregation:
        """How the values of queries become one. Here: by their mean, or by their sum if `total`."""
        return SUM if self.total else MEAN

    def to_power(self, exponent: float) -> Measure:
        """This measure with its value to the power of `exponent`, of a measure with a geometric mean."""
        raise NotImplementedError

    def kinds(self, documents: GroupedJudgments) -> tuple[Floats, float]:
        """By what the measure tells documents apart, and the number of unjudged ones. Here: the gain, or the label."""
        if type(self).terms is Measure.terms and self.additive:
            return self.scaled_gain(documents), 0.0
        return documents.label, -math.inf

    @property
    def part(self) -> Measure | None:
        """Of a diversity measure, which is a sum over subtopics: the measure of one subtopic."""
        return None

    @property
    def needs_subtopics(self) -> bool:
        """Whether it is a diversity measure, which needs judgments for subtopics."""
        return self.part is not None

    def residual(self, q: GroupedJudgments) -> Floats | None:
        """What unjudged and unseen documents could still add, expected, for each query. Here: not known."""
        return None

    @cached_property
    def needs_all_judged(self) -> bool:
        """Whether documents of label 0 matter; if not, they may be treated like unjudged ones."""
        if self.judged_only:
            return True
        zero, cls = np.zeros(1), type(self)
        distinguishes = self.distinguishes_unjudged
        if distinguishes is None:
            names = ("terms", "law", "divisor", "base", "depth", "scaled_gain")
            distinguishes = any(getattr(cls, name) is not getattr(Measure, name) for name in names)
        return bool(distinguishes or self.gain(zero)[0] or self.relevant(zero)[0])

    # -- the value --------------------------------------------------------------------------------------------

    def __init_subclass__(cls) -> None:
        own = {name: one._replace(name=name) for name, one in vars(cls).items() if isinstance(one, Param)}
        cls.params = cls.params | own
        for name, one in own.items():
            setattr(cls, name, one.default)

    def __init__(self, /, *, cutoff: int | None = None, judged_only: bool = False, **params: Any):
        if not isinstance(judged_only, (bool, np.bool_)):
            raise MeasureError(f"{self.stem}: judged_only={judged_only!r} is not possible. Use True or False.")
        if judged_only and self.compares:
            raise MeasureError(f"{self.stem} compares two rankings without judgments: it has no judged_only.")
        if cutoff is not None:
            if not self.takes_cutoff:
                raise MeasureError(f"{self.stem} takes no cutoff: it looks at the whole list.")
            if not isinstance(cutoff, (int, np.integer)) or isinstance(cutoff, bool) or not 1 <= cutoff <= 2**53:
                raise MeasureError(f"A cutoff is a whole number from 1 on, not {cutoff!r}.")
            cutoff = int(cutoff)
        for name, value in params.items():
            if name not in self.params:
                takes = f"takes {', '.join(self.params)}" if self.params else "takes no parameters"
                raise MeasureError(f"{self.stem} has no parameter '{name}'; it {takes}.")
            self.params[name].check(self.stem, value)
        plain = {name: self.params[name].canonical(value) for name, value in params.items()}
        vars(self).update(plain, cutoff=cutoff, judged_only=bool(judged_only))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A measure does not change. Make another one: {self.stem}({name}=…)")

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.params}

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        """What tells it from other measures of its class."""
        return self.cutoff, self.judged_only, *self._values().values()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measure) or type(self) is not type(other):
            return NotImplemented
        return self._key == other._key

    @cached_property
    def _hash(self) -> int:
        return hash((type(self), self._key))

    def __hash__(self) -> int:
        return self._hash

    def __call__(self, /, *unnamed: Any, **params: Any) -> Self:
        """The same measure with other parameters; `cutoff` and `judged_only` may be among them."""
        if unnamed:
            raise MeasureError(f"{self.stem}({unnamed[0]!r}): parameters have names. A cutoff: {self.stem} @ 10.")
        for other, name in self.other_names.items():
            if {other, name} <= params.keys():
                first, last = sorted((other, name))
                raise MeasureError(f"{self.stem}: {first} and {last} are two names of one parameter. Give one of them.")
        named = {self.other_names.get(name, name): value for name, value in params.items()}
        own = {"cutoff": self.cutoff, "judged_only": self.judged_only}
        return type(self)(**(own | self._values() | named))

    def __matmul__(self, cutoff: float | None) -> Self:
        sets = "cutoff" if cutoff is None else self.after_at
        own = {"cutoff": self.cutoff, "judged_only": self.judged_only}
        return type(self)(**(own | self._values() | {sets: cutoff}))

    @property
    def uncut(self) -> Self:
        """The same measure of the whole list."""
        return self @ None

    @property
    def stem(self) -> str:
        """The name without parameters and cutoff."""
        return type(self).__name__.lstrip("_")

    @cached_property
    def name(self) -> str:
        """The canonical spelling, which `parse` reads back."""
        shown = [
            f"{name}={_spelled(value)}"
            for name, value in self._values().items()
            if value != self.params[name].default or self.params[name].shown
        ]
        shown += ["judged_only=True"] if self.judged_only else []
        brackets = f"({', '.join(shown)})" if shown else ""
        return f"{self.stem}{brackets}" + ("" if self.cutoff is None else f"@{self.cutoff}")

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return (inspect.getdoc(type(self)) or "").split("\n")[0]

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        from tiewise.metrics.names import parse

        return parse, (self.name,)

    def of(self, ranking: str, k: int | None = None) -> Estimate:
        """The estimate for one ranking in notation: digits are labels, ``-`` is unjudged, brackets tie.

        >>> from tiewise import nDCG
        >>> nDCG.of("(20)10")
        nDCG 0.8100 [0.6697, 0.9502]
        """
        from tiewise.metrics import engine
        from tiewise.ties.counting import notation

        measure = self if k is None else self @ k
        return engine.estimates(measure, engine.group(notation(ranking), measure.judged_only), oblivious="given").mean()


class ListMeasure(Measure):
    """The base of measures that are a function of one ordered list, and need not be a sum over its documents.

    A subclass needs nothing but `of_gains`. Expectation, extremes and standard deviation are exact where the ties have
    few arrangements, else they are sampled (`Estimate.method` says which).

    >>> from tiewise import measure
    >>> @measure
    ... class Gap(ListMeasure):
    ...     '''The number of ranks between the first and the last relevant document.'''
    ...     def of_gains(self, gains, ideal):
    ...         ranks = gains.nonzero()[0]
    ...         return float(ranks[-1] - ranks[0]) if len(ranks) else 0.0
    >>> Gap.of("(10)1"), Gap.of("(10)1").method["expected"]
    (Gap 1.5000 [1.0000, 2.0000], 'exact')
    >>> from tiewise.metrics import names
    >>> _ = names._registry.pop("Gap")
    """

    additive = False
    sorted_extremes = False

    def of_gains(self, gains: Floats, ideal: Floats) -> float:
        """The value of one list: `gains` has what each rank holds, 0 where a document is unjudged.

        `ideal` has the gains of all judged documents, retrieved or not, in descending order.
        """
        raise MeasureError(f"{self.stem} has no definition. Give its class a method of_gains(self, gains, ideal).")

    def values(self, order: Order) -> Floats:
        """The value of each query in one order."""
        q, gain, depth = order.grouped, self.gain(order.label), self.depth(order.grouped)
        bounds = np.searchsorted(order.query, np.arange(order.n_queries + 1))
        found = np.zeros(order.n_queries)
        for query, ideal in enumerate(self._ideal_gains(q)):
            rows = slice(*bounds[query : query + 2])
            gains, rank = np.zeros(int(depth[query])), order.rank[rows].astype(np.int64) - 1
            within = rank < len(gains)
            gains[rank[within]] = gain[rows][within]
            found[query] = self.of_gains(gains, ideal)
        return found

    def _ideal_gains(self, q: GroupedJudgments) -> list[Floats]:
        """The gains of all judged documents of each query, in descending order."""
        qrels = q.ties.qrels
        gain = self.gain(qrels.label)
        gain = gain[np.lexsort((-gain, qrels.query))]
        return np.split(gain, qrels.offsets[1:-1])

    def kinds(self, documents: GroupedJudgments) -> tuple[Floats, float]:
        """The gain, where only `of_gains` is defined."""
        is_plain = type(self).values is ListMeasure.values
        return (self.gain(documents.label), 0.0) if is_plain else (documents.label, -math.inf)


def _spelled(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return f'"{value}"' if isinstance(value, str) else repr(value)
