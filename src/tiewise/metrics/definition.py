"""A measure is a value: ``P(rel=2)@10`` is code, command-line word, dictionary key and column title at once.

Its definition is one small class that says what a document is worth (`gain`), what a rank is worth (`payoff`) and
what the sum is divided by (`divisor`):

    M(q) = Σ_r gain(label_r) · payoff(r, seen_{r−1}) / divisor(q)                                        (1)

Expectation, extremes and variance over the orders of tied documents follow from that in `engine`; a class
overrides `terms` and `moments` only where it is not of this form, or has a cheaper one. `@measure` enters the class
into the registry, from which parser, command line, documentation and tests take it.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import math
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tiewise.data.columns import Floats
from tiewise.errors import MeasureError

if TYPE_CHECKING:
    from typing_extensions import Self

    from tiewise.metrics.engine import Order, Urn, Urns
    from tiewise.metrics.estimate import Estimate

__all__ = ["Measure", "measure", "measures", "param", "parse", "parse_all"]


class Param(NamedTuple):
    """A parameter of a measure: its default, what it may be, and whether the name always shows it."""

    name: str
    default: Any
    choices: tuple[str, ...]
    above: float
    below: float
    least: float
    shown: bool

    def check(self, who: str, value: object) -> None:
        """Raise if the parameter cannot take this value."""
        if self.choices:
            if value not in self.choices:
                known = " or ".join(f'"{choice}"' for choice in self.choices)
                raise MeasureError(f"{who}: {self.name}={value!r} is not possible. Use {known}.")
            return
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not number or not math.isfinite(value):  # type: ignore[arg-type]
            raise MeasureError(f"{who}: {self.name}={value!r} is no number.")
        if not self.above < value < self.below:  # type: ignore[operator]
            bounds = f"above {self.above:g}" + ("" if math.isinf(self.below) else f" and below {self.below:g}")
            raise MeasureError(f"{who}: {self.name}={value!r} is not possible. It must lie {bounds}.")
        if value < self.least:  # type: ignore[operator]
            raise MeasureError(f"{who}: {self.name}={value!r} is not possible. It must be {self.least:g} or more.")


def param(
    default: float | str,
    *,
    choices: Sequence[str] = (),
    above: float = -math.inf,
    below: float = math.inf,
    least: float = -math.inf,
    shown: bool = False,
) -> Any:
    """A parameter in the body of a measure: ``rel: float = param(1)``; a number in bounds, or one of some words.

    The number lies above `above`, below `below`, and is at least `least`. `shown` parameters stand in the measure's
    name even at their default.
    """
    return Param("", default, tuple(choices), above, below, least, shown)


class Measure:
    """The base of all measures, which are values: call one to set parameters, ``@`` a cutoff.

    >>> from tiewise import P
    >>> P(rel=2) @ 10
    P(rel=2)@10
    >>> (P @ 2).of("(10)1")
    P@2 0.5000
    """

    cutoff: int | None = None

    params: ClassVar[dict[str, Param]] = {}  #: by name, from the class body
    aliases: ClassVar[Sequence[str]] = ()  #: other spellings, `name` or `name:param=value`
    takes_cutoff: ClassVar[bool] = True
    takes_depth: ClassVar[bool] = True  #: exact even where only part of a tie group is seen
    compares: ClassVar[bool] = False  #: a measure of two rankings, not of a run against judgments
    total: ClassVar[bool] = False  #: added up over queries, not averaged (a count)
    #: The lowest and the highest value there can be, of a measure that a better document in the list can lower.
    value_range: ClassVar[tuple[float, float] | None] = None
    uses_seen: ClassVar[bool] = False  #: set by `@measure` from the signature of `payoff`
    #: Whether it tells judged non-relevant documents from unjudged ones, other than by a gain for label 0.
    distinguishes_unjudged: ClassVar[bool] = False

    # -- the definition: what a subclass writes ---------------------------------------------------------------

    def gain(self, label: Floats) -> Floats:
        """What a document of this label is worth; unjudged documents are worth 0. Here: 1 if relevant."""
        relevant: Floats = ((label >= getattr(self, "rel", 1)) & (label >= 0)).astype(np.float64)
        return relevant

    def scaled_gain(self, documents: Urns | Order) -> Floats:
        """The gains of some documents in a unit of their query, which is that of `divisor` too. Here: as they are."""
        return self.gain(documents.label)

    def relevant(self, label: Floats) -> NDArray[np.bool_]:
        """Which documents are relevant, for queries that have none. Here: those with a gain."""
        return self.gain(label) > 0

    def payoff(self, rank: Floats, seen: Floats) -> Floats:
        """What a gain counts at a rank when `seen` documents with a gain stand above it. Here: 1."""
        return np.ones_like(rank)

    def divisor(self, q: Urns) -> NDArray[Any]:
        """What the sum is divided by, for each query; 0 makes the value 0. Here: 1."""
        return np.ones(q.n_queries)

    def base(self, q: Urns) -> Floats:
        """What is added for each query, whatever the order. Here: 0."""
        return np.zeros(q.n_queries)

    def depth(self, q: Urns) -> NDArray[Any]:
        """How many ranks of each list the measure looks at. Here: the cutoff, at most the list's length."""
        return q.length if self.cutoff is None else np.minimum(q.length, self.cutoff)

    def key(self, label: Floats) -> Floats:
        """By what to sort for the best order, unjudged documents at 0. Here: the label."""
        return label

    def terms(self, order: Order) -> Floats:
        """The summand of every judged document in one order, Eq. (1) before it is divided."""
        gain = self.scaled_gain(order)
        seen = order.count_before(gain != 0) if self.uses_seen else order.rank
        return gain * self.payoff(order.rank, seen)

    def moments(self, urn: Urn) -> tuple[Floats, Floats]:
        """Expectation and variance of the sum of a tie group's terms over its orders, Eqs. (2) and (3)."""
        from tiewise.metrics import engine

        return engine.moments(self, urn)

    def companion(self) -> Measure | None:
        """A measure of the judged documents' weight, if 1 − its expectation is a residual of this one."""
        return None

    @cached_property
    def needs_all_judged(self) -> bool:
        """Whether documents of label 0 matter; if not, they may be treated like unjudged ones."""
        zero = np.zeros(1)
        if self.distinguishes_unjudged or bool(self.gain(zero)[0]) or bool(self.relevant(zero)[0]):
            return True
        companion = self.companion()
        return companion is not None and companion.needs_all_judged

    # -- the value --------------------------------------------------------------------------------------------

    def __init_subclass__(cls) -> None:
        own = {name: one._replace(name=name) for name, one in vars(cls).items() if isinstance(one, Param)}
        cls.params = cls.params | own
        for name, one in own.items():
            setattr(cls, name, one.default)

    def __init__(self, /, *, cutoff: int | None = None, **params: Any):
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
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
        vars(self).update(plain, cutoff=cutoff)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A measure does not change. Make another one: {self.stem}({name}=…)")

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.params}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measure) or type(self) is not type(other):
            return NotImplemented
        return self.cutoff == other.cutoff and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self.cutoff, *self._values().values()))

    def __call__(self, /, **params: Any) -> Self:
        """The same measure with other parameters; `cutoff` may be one of them."""
        return type(self)(**({"cutoff": self.cutoff} | self._values() | params))

    def __matmul__(self, cutoff: int | None) -> Self:
        return type(self)(cutoff=cutoff, **self._values())

    @property
    def uncut(self) -> Self:
        """The same measure of the whole list."""
        return self @ None

    @property
    def stem(self) -> str:
        """The name without parameters and cutoff."""
        return type(self).__name__.lstrip("_")

    @property
    def name(self) -> str:
        """The canonical spelling, which `parse` reads back."""
        shown = [
            f"{name}={_spelled(value)}"
            for name, value in self._values().items()
            if value != self.params[name].default or self.params[name].shown
        ]
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
        return parse, (self.name,)

    def of(self, ranking: str, k: int | None = None) -> Estimate:
        """The estimate for one ranking in notation: digits are labels, ``-`` is unjudged, brackets tie.

        >>> from tiewise import nDCG
        >>> nDCG.of("(20)10")
        nDCG 0.8100 [0.6697, 0.9502]
        """
        from tiewise.metrics import engine
        from tiewise.ties.ranking_notation import notation

        measure = self if k is None else self @ k
        return engine.estimates(measure, engine.Urns(notation(ranking)), oblivious="given").mean()


M = TypeVar("M", bound=Measure)
_registry: dict[str, Measure] = {}
_aliases: dict[str, str] = {}


def measure(cls: type[M]) -> M:
    """Enter a subclass of `Measure` into the registry, and return it as a value ready for use.

    It is a decorator. Where a type checker should know that the name is a value and no longer a class, as mypy does
    not, write ``Fade = measure(_Fade)``: underscores in front of a class's name are not part of the measure's.

    >>> import numpy as np
    >>> @measure
    ... class Fade(Measure):
    ...     '''The sum of 1/√rank over the relevant documents.'''
    ...     def payoff(self, rank):
    ...         return 1 / np.sqrt(rank)
    >>> (Fade @ 2).of("(10)1")
    Fade@2 0.8536 [0.7071, 1.0000]
    >>> parse("Fade@2") == Fade @ 2
    True
    >>> _ = _registry.pop("Fade")
    """
    if not (isinstance(cls, type) and issubclass(cls, Measure)):
        raise MeasureError(f"{getattr(cls, '__name__', cls)} is no measure: let it inherit from tiewise.Measure.")
    if not cls.__module__.startswith("tiewise."):
        _enter_ours()
    known = _registry.get(cls.__name__.lstrip("_"))
    if known is not None and type(known).__module__.startswith("tiewise."):
        raise MeasureError(f"'{known}' is a measure of Tiewise. Call yours something else.")
    for name in cls.params:
        if hasattr(Measure, name):
            raise MeasureError(
                f"{cls.__name__}: '{name}' is an attribute of every measure. Call the parameter otherwise."
            )
    plain: Any = cls.payoff
    asked = inspect.signature(plain).parameters
    cls.uses_seen = "seen" in asked and plain is not Measure.payoff
    if len(asked) == 2:  # payoff(self, rank): the engine gives it `seen` all the same

        def payoff(self: Measure, rank: Floats, _: Floats) -> Floats:
            return plain(self, rank)

        cls.payoff = payoff  # type: ignore[assignment,method-assign]
    made = cls()
    _registry[made.stem] = made
    for alias in (made.stem, *cls.aliases):
        spelling, _, params = alias.partition(":")
        _aliases.setdefault(spelling.lower(), f"{made.stem}:{params}")
    return made


#: The modules that hold our measures: of a run against judgments, and, seldom asked for, of two rankings.
_OURS = ("tiewise.metrics.catalogue", "tiewise.rankings.run_similarity")


def _enter_ours(modules: Iterable[str] = _OURS) -> bool:
    """Have the measures of Tiewise register: a name may be asked for before their modules were. Whether any is new."""
    known = len(_registry)
    for module in modules:
        import_module(module)
    return len(_registry) > known


def measures() -> dict[str, Measure]:
    """The catalogue: every registered measure by name.

    >>> [name for name in measures() if name.startswith("n")]
    ['nDCG', 'nERR']
    """
    _enter_ours()
    return dict(_registry)


def parse(name: str | Measure) -> Measure:
    """The measure of a name, in our spelling or that of trec_eval, ir_measures, ranx, MTEB or BEIR.

    A name of several, such as ``nDCG@10,20``, is an error here; `parse_all` takes it.

    >>> parse("ndcg_cut_10"), parse('AP(norm="cap") @ 100'), parse("map@100-l2"), parse("rbp.95")
    (nDCG@10, AP(norm="cap")@100, AP(rel=2)@100, RBP(p=0.95))
    """
    if isinstance(name, Measure):
        return name
    found = parse_all(name)
    if len(found) != 1:
        raise MeasureError(f"'{name}' names {len(found)} measures: {', '.join(map(str, found))}. Give one of them.")
    return found[0]


def parse_all(names: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    """The measures of a text or of several: split at blanks and commas outside brackets.

    A number by itself is one more cutoff of the measure before it.

    >>> parse_all("nDCG@10,20 RR ndcg_cut.5,10")
    [nDCG@10, nDCG@20, RR, nDCG@5]
    """
    if isinstance(names, Measure):
        return [names]
    if not isinstance(names, str):
        if not isinstance(names, Iterable) or isinstance(names, bytes):
            raise MeasureError(f"{names!r} is no measure. Give names such as 'nDCG@10', or measures.")
        found = list(dict.fromkeys(one for name in names for one in parse_all(name)))
        if not found:
            raise MeasureError("No measure was asked for. `tiewise measures` lists them.")
        return found
    _enter_ours(_OURS[:1])
    words = split_names(names)
    if not words:
        raise MeasureError("An empty measure name. `tiewise measures` lists them.")
    return list(dict.fromkeys(one for word in words for one in _parse_word(word)))


#: trec_eval's measures that are nothing without a cutoff, and the cutoffs that it takes where none is given.
TREC_CUTS = {"ndcg_cut": "nDCG", "map_cut": "AP"}
TREC_CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)


# -- spelling -------------------------------------------------------------------------------------------------


def split_names(text: str) -> list[str]:
    """Measure names in a text; the cutoffs of ``nDCG@5,10`` or trec_eval's ``ndcg_cut.5,10`` stay with their name."""
    text = re.sub(r"\s*@\s*", "@", re.sub(r"\s+\(", "(", text))
    word = r"[^\s,()]+(?:\([^()]*\))?[^\s,()]*"
    if re.sub(word, "", text).strip(" ,\t\r\n"):
        raise _unknown(text)
    words: list[str] = []
    for found in re.findall(word, text):
        if found.isdecimal() and words and re.search(r"\.[^()]*$|[@_]\d+(,\d+)*$", words[-1]):
            words[-1] += f",{found}"
        else:
            words.append(found)
    return words


def _parse_word(word: str) -> list[Measure]:
    plain = word.strip()
    many = re.fullmatch(r"(.+[@_])(\d+(?:,\d+)+)", plain)
    if many:
        return [one for cutoff in many[2].split(",") for one in _parse_word(many[1] + cutoff)]
    level = re.fullmatch(r"(.+)-l(\d+)", plain)  # ranx: map@100-l2
    if level:
        return [one(rel=int(level[2])) for one in _parse_word(level[1])]
    if plain.lower() in _aliases:
        return [_resolve(plain, word)]
    if plain.lower() in TREC_CUTS:
        return [_resolve(TREC_CUTS[plain.lower()], word) @ cutoff for cutoff in TREC_CUTOFFS]
    at = re.search(r"@([^()]*)$", plain)
    if at and not (at[1].isascii() and at[1].isdecimal()):
        raise MeasureError(f"'{word}': a cutoff is one whole number from 1 on, as in nDCG@10.")
    try:
        return [_from_ast(ast.parse(plain, mode="eval").body, word)]
    except SyntaxError:
        pass
    dotted = re.fullmatch(r"(\w+)\.(.+)", plain)  # trec_eval: ndcg_cut.5,10 and rbp.p=0.8; ranx: rbp.95
    if dotted:
        return [_with_argument(_resolve(dotted[1], word), part, word) for part in dotted[2].split(",")]
    raise _unknown(word)


def _from_ast(node: ast.expr, word: str) -> Measure:
    match node:
        case ast.BinOp(left=left, op=ast.MatMult(), right=ast.Constant(value=int(cutoff))):
            found = _from_ast(left, word)
            if found.cutoff not in (None, cutoff):
                raise MeasureError(f"'{word}' has two cutoffs, {found.cutoff} and {cutoff}. Give one of them.")
            return found @ cutoff
        case ast.BinOp(left=left, op=ast.MatMult()):
            raise MeasureError(f"'{word}': a cutoff is a whole number from 1 on.")
        case ast.Call(func=ast.Name(id=name), args=[], keywords=keywords) if all(one.arg for one in keywords):
            names = [str(one.arg) for one in keywords]
            for twice in (one for one in names if names.count(one) > 1):
                raise MeasureError(f"'{word}': '{twice}' is given twice.")
            given = {str(one.arg): _literal(one.value, word) for one in keywords}
            if given.get("dcg") in ("log2", "exp-log2"):  # ir_measures
                given["gains"] = {"log2": "linear", "exp-log2": "exp"}[given.pop("dcg")]
            return _resolve(name, word)(**given)
        case ast.Call(func=ast.Name(id=name)):
            raise MeasureError(f"'{word}': parameters have names, as in P(rel=2).")
        case ast.Name(id=name):
            return _resolve(name, word)
        case ast.Attribute(value=ast.Name(id=name), attr=part):
            return _with_argument(_resolve(name, word), part, word)
    raise _unknown(word)


def _resolve(name: str, word: str) -> Measure:
    if name in _registry:
        return _registry[name]
    known = _aliases.get(name.lower())
    if known:
        canonical, _, params = known.partition(":")
        found = _registry[canonical]
        return _with_argument(found, params, word) if params else found
    if name.lower() in TREC_CUTS:  # with its cutoff after a dot
        return _resolve(TREC_CUTS[name.lower()], word)
    cut = re.fullmatch(r"(.+?)(?:_at)?_(\d+)", name)  # MTEB: ndcg_at_10; trec_eval prints ndcg_cut_10
    if cut and cut[1].lower() in (_aliases | TREC_CUTS):
        return _resolve(cut[1], word) @ int(cut[2])
    if _enter_ours():
        return _resolve(name, word)
    raise _unknown(word)


def _with_argument(found: Measure, text: str, word: str) -> Measure:
    name, equals, value = text.partition("=")
    if equals:
        try:
            return found(**{name: _literal(ast.parse(value, mode="eval").body, word)})
        except SyntaxError:
            raise MeasureError(f"'{word}': '{value}' is no value for {name}.") from None
    if not text.isdecimal():
        raise MeasureError(f"'{word}': '{text}' is neither a cutoff nor a parameter.")
    if "p" in found.params:
        return found(p=float(f"0.{text}"))  # ranx: rbp.95
    return found @ int(text)


def _literal(node: ast.expr, word: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise MeasureError(f"'{word}': a parameter is a number or a quoted word.") from None


def _unknown(word: str) -> MeasureError:
    _enter_ours()
    stem, at, tail = word.partition("@")
    names = {alias: alias for alias in _aliases} | {name.lower(): name for name in _registry}
    close = difflib.get_close_matches(stem.lower(), names, 1, 0.6) if len(stem) > 1 else []
    hint = f" Did you mean '{names[close[0]]}{at}{tail}'?" if close else ""
    return MeasureError(f"Unknown measure '{word}'.{hint} `tiewise measures` lists them.")


def _spelled(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return f'"{value}"' if isinstance(value, str) else repr(value)
