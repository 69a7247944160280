"""The names of measures: the registry, and the parser, which knows the spellings of other tools too."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from importlib import import_module
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from tiewise.data.columns import Floats
from tiewise.errors import MeasureError
from tiewise.metrics.definition import Measure

#: A measure or its name.
MeasureLike = Measure | str
M = TypeVar("M", bound=Measure)
_registry: dict[str, Measure] = {}
_aliases: dict[str, str] = {"ndcg_cut": "nDCG:", "map_cut": "AP:"}  # those of trec_eval need a cutoff
#: The name of a file in the place of a measure.
_PATH = r"/|\.(trec|run|res|txt|tsv|csv|jsonl?|parquet|gz|zst)$"
#: Names that have several meanings, with the usual one, which an error message suggests.
_MEANT = {"hit": "Success", "hr": "Success", "acc": "Success", "f2": "F(beta=2)"}


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
        name = getattr(cls, "__name__", cls)
        if callable(cls) and not isinstance(cls, type):
            raise MeasureError(
                f"{name} is a function. Make a class that inherits from tiewise.ListMeasure, and call it in its "
                "method of_gains(self, gains, ideal), which gets the gains of one list in the order of its ranks."
            )
        raise MeasureError(f"{name} is not a measure: let it inherit from tiewise.Measure or tiewise.ListMeasure.")
    if not _is_ours(cls):
        _register_catalogue()
    known = _registry.get(cls.__name__.lstrip("_"))
    if known is not None and _is_ours(type(known)):
        raise MeasureError(f"'{known}' is a measure of Tiewise. Call yours something else.")
    for name in cls.params:
        if hasattr(Measure, name):
            raise MeasureError(
                f"{cls.__name__}: '{name}' is an attribute of every measure. Call the parameter otherwise."
            )
    plain: Any = cls.payoff
    asked = {} if plain is Measure.payoff else inspect.signature(plain).parameters
    cls.uses_seen = "seen" in asked
    if len(asked) == 2:  # payoff(self, rank): the engine gives it `seen` all the same

        def payoff(self: Measure, rank: Floats, _: Floats) -> Floats:
            return plain(self, rank)

        cls.payoff = payoff  # type: ignore[assignment,method-assign]
    if not _is_ours(cls) and plain is not Measure.payoff:
        cls.payoff = _check_arrays(cls.payoff)  # type: ignore[assignment,method-assign]
    made = cls()
    _registry[made.stem] = made
    _parse_text.cache_clear()
    _parse_texts.cache_clear()
    for alias in (made.stem, *cls.aliases):
        spelling, _, params = alias.partition(":")
        _aliases.setdefault(spelling.lower(), f"{made.stem}:{params}")
    return made


def _is_ours(cls: type[Measure]) -> bool:
    """Whether a measure is one of the catalogue, whose names are taken."""
    return cls.__module__.startswith("tiewise.")


def _check_arrays(payoff: Callable[[Any, Floats, Floats], Floats]) -> Callable[[Any, Floats, Floats], Floats]:
    """A user's payoff that says what to do if it is not written for arrays."""

    @wraps(payoff)
    def checked(self: Measure, rank: Floats, seen: Floats) -> Floats:
        try:
            worth = payoff(self, rank, seen)
            np.broadcast_to(worth, np.broadcast_shapes(rank.shape, seen.shape))
        except (TypeError, ValueError) as error:
            raise MeasureError(
                f"{self.stem}.payoff does not work for many ranks at once. Its arguments are NumPy arrays, and it "
                "returns an array of their shape: write np.where(rank <= 3, 1, 0) in place of if, np.log in place of "
                "math.log. "
                f"({str(error).rstrip('.')}.)"
            ) from error
        return worth

    return checked


#: The modules that hold our measures: of a run against judgments, and of two rankings.
_CATALOGUE = ("tiewise.metrics.catalogue", "tiewise.rankings.pair_measures")


def _register_catalogue(modules: Iterable[str] = _CATALOGUE) -> bool:
    """Import the modules that hold our measures, which registers them; whether any was new."""
    known = len(_registry)
    for module in modules:
        import_module(module)
    return len(_registry) > known


def measures() -> dict[str, Measure]:
    """The catalogue: every registered measure by name.

    >>> [name for name in measures() if name.startswith("n")]
    ['nDCG', 'nDCGRel', 'nERR', 'nERR_IA', 'nNRBP']
    """
    _register_catalogue()
    return dict(_registry)


def parse(name: MeasureLike) -> Measure:
    """The measure of a name, in our spelling or that of trec_eval, ndeval, ir_measures, ranx, MTEB or BEIR.

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


def parse_all(names: MeasureLike | Iterable[MeasureLike]) -> list[Measure]:
    """The measures of a text or of several: split at blanks and commas outside brackets.

    A number by itself is one more cutoff of the measure before it.

    >>> parse_all("nDCG@10,20 RR ndcg_cut.5,10")
    [nDCG@10, nDCG@20, RR, nDCG@5]
    """
    if isinstance(names, Measure):
        return [names]
    if not isinstance(names, str):
        if not isinstance(names, Iterable) or isinstance(names, bytes):
            raise MeasureError(f"{names!r} is not a measure. Give names such as 'nDCG@10', or measures.")
        if isinstance(names, Mapping) and any(isinstance(value, Mapping) for value in names.values()):
            raise MeasureError("A run is not a measure. Give several runs as {name: run}.")
        listing = tuple(names)
        if not listing:
            raise MeasureError("No measure was asked for. `tiewise measures` lists them.")
        if all(type(name) is str for name in listing):
            return list(_parse_texts(listing))
        return list(dict.fromkeys(chain.from_iterable(map(parse_all, listing))))
    return list(_parse_text(names))


@lru_cache
def _parse_text(text: str) -> tuple[Measure, ...]:
    _register_catalogue(_CATALOGUE[:1])
    words = split_names(text)
    if not words:
        raise MeasureError("An empty measure name. `tiewise measures` lists them.")
    return tuple(dict.fromkeys(one for word in words for one in _parse_word(word)))


@lru_cache
def _parse_texts(texts: tuple[str, ...]) -> tuple[Measure, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(map(_parse_text, texts))))


# -- spelling -------------------------------------------------------------------------------------------------


def split_names(text: str) -> list[str]:
    """Measure names in a text; the cutoffs of ``nDCG@5,10`` or trec_eval's ``ndcg_cut.5,10`` stay with their name."""
    text = re.sub(r"\s*@\s*", "@", re.sub(r"\s+\(", "(", text))
    word = r"[^\s,()]+(?:\([^()]*\))?[^\s,()]*"
    if re.sub(word, "", text).strip(" ,\t\r\n"):
        raise _unknown(text)
    words: list[str] = []
    for found in re.findall(word, text):
        if re.fullmatch(r"[-+.\d]+|\d+=\S+", found) and words and re.search(r"\.[^()]*$|[@_][-\d.,=]+$", words[-1]):
            words[-1] += f",{found}"
        else:
            words.append(found)
    return words


def _parse_word(word: str) -> list[Measure]:
    plain = word.strip()
    if of_trec_eval := import_module("tiewise.metrics.trec_eval_names").parse_name(plain):
        return list(of_trec_eval)
    many = re.fullmatch(r"(.+[@_])(\d+(?:,\d+)+)", plain)
    if many:
        return [one for cutoff in many[2].split(",") for one in _parse_word(many[1] + cutoff)]
    level = re.fullmatch(r"(.+)-l(\d{1,18})", plain)  # ranx: map@100-l2
    if level:
        if re.search(r"-l\d+$", level[1]):
            raise MeasureError(f"'{word}' has two levels after -l. Give one of them.")
        return [one(rel=int(level[2])) for one in _parse_word(level[1])]
    if plain.lower() in _aliases:
        return [_resolve(plain, word)]
    stem = re.split(r"[(@]", plain)[0]  # ndeval: alpha-nDCG@10
    if "-" in stem and stem.replace("-", "_").lower() in _aliases:
        return _parse_word(plain.replace(stem, stem.replace("-", "_"), 1))
    at = re.search(r"@([^()]*)$", plain)
    if at and not re.fullmatch(r"\d+(\.\d+)?", at[1], re.ASCII):
        raise MeasureError(f"'{word}': a cutoff is one whole number from 1 on, as in nDCG@10.")
    dotted = re.fullmatch(r"(\w+)\.(.+)", plain)  # trec_eval: ndcg_cut.5,10 and rbp.p=0.8; ranx: rbp.95
    if dotted:
        return [_with_argument(_resolve(dotted[1], word), part, word) for part in dotted[2].split(",")]
    return [_from_ast(_parse_expression(plain), word)]


def _from_ast(node: ast.expr | None, word: str) -> Measure:
    match node:
        case ast.BinOp(left=left, op=ast.MatMult(), right=ast.Constant(value=int(cutoff) | float(cutoff))):
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
            found = _resolve(name, word)
            if given.get("dcg") in ("log2", "exp-log2") and "dcg" not in found.params:  # ir_measures
                given["gains"] = {"log2": "linear", "exp-log2": "exp"}[given.pop("dcg")]
            return found(**given)
        case ast.Call(func=ast.Name(id=name)):
            raise MeasureError(f"'{word}': parameters have names, as in P(rel=2).")
        case ast.Name(id=name):
            return _resolve(name, word)
    raise _unknown(word)


def _resolve(name: str, word: str) -> Measure:
    if name in _registry:
        return _registry[name]
    known = _aliases.get(name.lower())
    if known:
        canonical, _, params = known.partition(":")
        found = _registry[canonical]
        return _with_argument(found, params, word) if params else found
    cut = re.fullmatch(r"(.+?)(?:_at)?_(\d{1,18})", name)  # MTEB: ndcg_at_10; trec_eval prints ndcg_cut_10
    if cut and cut[1].lower() in _aliases:
        return _resolve(cut[1], word) @ int(cut[2])
    if _register_catalogue():
        return _resolve(name, word)
    raise _unknown(word)


def _with_argument(found: Measure, text: str, word: str) -> Measure:
    name, equals, value = text.partition("=")
    if equals:
        expression = _parse_expression(value)
        if expression is None:
            raise MeasureError(f"'{word}': '{value}' is not a value for {name}.")
        return found(**{name: _literal(expression, word)})
    if not re.fullmatch(r"\d{1,18}", text):
        raise MeasureError(f"'{word}': '{text}' is neither a cutoff nor a parameter.")
    if "p" in found.params:
        return found(p=float(f"0.{text}"))  # ranx: rbp.95
    return found @ int(text)


def _parse_expression(text: str) -> ast.expr | None:
    """A text as a Python expression; None if it is none, or too long or too deep."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _literal(node: ast.expr, word: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise MeasureError(f"'{word}': a parameter is a number, True, False or a quoted word.") from None


def suggest(name: str) -> str:
    """Which of our measures a name means, as the end of an error message; empty if it is none.

    >>> suggest("MRR"), suggest("Recall"), suggest("no_measure")
    (". Did you mean 'RR'? Other spellings are for parse()", ". Did you mean 'R'? Other spellings are for parse()", '')
    """
    if name.startswith("_"):
        return ""
    try:
        return f". Did you mean '{parse(name).stem}'? Other spellings are for parse()"
    except MeasureError:
        return ""


def _unknown(word: str) -> MeasureError:
    if re.search(_PATH, word):
        return MeasureError(f"'{word}' is not a measure, but looks like a path. Give several runs as {{name: run}}.")
    hint = f" Did you mean '{close}'?" if (close := _find_close(word)) else ""
    return MeasureError(f"Unknown measure '{word}'.{hint} `tiewise measures` lists them.")


def _find_close(word: str) -> str:
    """The known name that is most like a word, with its cutoff; empty if there is none.

    >>> _find_close("NDGC@10"), _find_close("MRR10"), _find_close("hit@10")
    ('nDCG@10', 'RR@10', 'Success@10')
    """
    import difflib

    _register_catalogue()
    stem, at, tail = word.partition("@")
    number = None if word.lower() in _MEANT else re.fullmatch(r"(.*?[^\W\d])(?:_cut)?[-_.]?(\d{1,18})", word)
    stem = number[1] if number else stem
    names = {alias: known.partition(":")[0] for alias, known in _aliases.items()} | _MEANT
    name = stem.lower()
    if name not in names:
        name = next(iter(difflib.get_close_matches(name, names, 1, 0.6) if len(name) > 1 else ()), "")
    if not name or not number:
        return f"{names[name]}{at}{tail}" if name else ""
    try:
        return str(_with_argument(parse(names[name]), number[2], word))
    except MeasureError:  # it takes no cutoff
        return names[name]
