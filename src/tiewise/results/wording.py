"""How numbers, intervals, differences, percentages, p-values and lists of names are written, everywhere.

A `NumberFormat` says how many digits there are and whether there is a zero before the point: ``.363`` in all
tables and sentences, ``0.3629`` in the reprs of Python and on the HTML page (`PLAIN`). What people read has a minus
(``−.004``); formats for programs and the reprs of numbers do not come from here and have the hyphen of the keyboard.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import floor
from numbers import Integral, Real
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")

LINE_WIDTH = 100  #: paragraphs on a terminal are not wider than this
MINUS = "−"  #: the sign of a negative number
MISSING = "–"  #: written for a value that does not apply
ATOL = 1e-12  #: numbers that differ by at most this are equal: the rest is rounding of their sums
MIN_STEPS, MIN_STEPS_BY_RANK = 8, 4  #: fewer steps may rise by chance: rows may have no order
MAX_NAMED = 5  #: the most runs that a note names
MIN_WIDTH = 0.00005  #: narrower bounds, or ranges, do not show in four digits
SHORT_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}  #: other names of types


class NumberFormat(NamedTuple):
    """Numbers with a fixed number of digits after the point."""

    digits: int = 4
    leading_zero: bool = True
    factor: float = 1  #: by which numbers are multiplied: points are hundredths

    def number(self, value: float | None) -> str:
        """A number; a negative one that rounds to zero has no sign.

        >>> short = NumberFormat(3, leading_zero=False)
        >>> short.number(0.36294), short.number(-0.36294), short.number(1), short.number(-0.00001), PLAIN.number(0.25)
        ('.363', '−.363', '1.000', '.000', '0.2500')
        """
        if value is None:
            return MISSING
        text = f"{abs(self.factor * value):.{self.digits}f}"
        sign = MINUS if value < 0 and float(text) else ""
        return sign + (text.removeprefix("0") if not self.leading_zero and text.startswith("0.") else text)

    def short(self, value: float) -> str:
        """A number without zeros at its end.

        >>> short = NumberFormat(4, leading_zero=False)
        >>> short.short(0.0109), short.short(0.001), short.short(1)
        ('.0109', '.001', '1')
        """
        text = self.number(value)
        return text.rstrip("0").rstrip(".") or "0" if "." in text else text

    def signed(self, value: float | None, tiny: str = "") -> str:
        """A difference with its sign; exactly zero is ``0``, and what rounds to zero is `tiny`, if that is given.

        >>> short = NumberFormat(3, leading_zero=False)
        >>> short.signed(0.0028), short.signed(-0.0028), short.signed(-0.00026), short.signed(0.0)
        ('+.003', '−.003', '−.000', '0')
        >>> short.signed(-0.00026, tiny="≈0")
        '≈0'
        """
        if value is None:
            return MISSING
        if abs(value) <= ATOL:
            return "0"
        if tiny and not self.differ(value, 0.0):
            return tiny
        return f"{MINUS if value < 0 else '+'}{self.number(abs(value))}"

    def end(self, value: float) -> str:
        """An end of an interval of differences with its sign; what rounds to zero says on which side of zero it is.

        >>> short = NumberFormat(3, leading_zero=False)
        >>> short.end(-0.0042), short.end(-0.00026), short.end(0.0), short.end(0.00026)
        ('−.004', '<0', '0', '>0')
        """
        return self.signed(value, tiny="<0" if value < 0 else ">0")

    def interval(self, low: float | None, high: float | None) -> str:
        """Two ends in brackets.

        >>> PLAIN.interval(0.25, 0.5), NumberFormat(3, leading_zero=False).interval(0.3587, 0.3676)
        ('[0.2500, 0.5000]', '[.359, .368]')
        """
        if low is None or high is None:
            return MISSING
        return f"[{self.number(low)}, {self.number(high)}]"

    def differ(self, low: float | None, high: float | None) -> bool:
        """Whether two values look different in these digits."""
        return low is not None and high is not None and self.number(low) != self.number(high)

    def extremes(self, low: float | None, high: float | None) -> str:
        """The lowest and the highest value, or that they look the same.

        >>> short = NumberFormat(3, leading_zero=False)
        >>> short.extremes(0.442, 0.45), short.extremes(0.39996, 0.40003), short.extremes(None, None)
        ('.442 – .450', 'same', '–')
        """
        if low is None or high is None:
            return MISSING
        return f"{self.number(low)} – {self.number(high)}" if self.differ(low, high) else "same"

    def p_value(self, value: float | None, name: str = "") -> str:
        """A p-value with three digits, or that it is smaller; with its name, as in a sentence.

        >>> PLAIN.p_value(0.0421), PLAIN.p_value(0.0000421), PLAIN.p_value(0.0000421, "p")
        ('0.042', '<0.001', 'p < 0.001')
        """
        if value is None:
            return MISSING
        three, small = NumberFormat(3, self.leading_zero), value < 0.001
        text = three.number(0.001 if small else value)
        return f"{name} {'<' if small else '='} {text}" if name else f"{'<' * small}{text}"


_NO_ZERO = r"(?:^|(?<=[ (\[,–]))([+−±≥≤~<>-]*)\.(?=\d+(?:%|\b))"

PLAIN = NumberFormat()  #: 0.3629, as Python, notebooks and the HTML page write numbers
SHORT = NumberFormat(4, leading_zero=False)  #: .3629, as sentences write numbers
THREE = NumberFormat(3, leading_zero=False)  #: .363, as tables write them


def add_zeros(text: str) -> str:
    """A text in which every number has a zero before the point, as where all other numbers do.

    >>> add_zeros("+.0016, from −.0026 to +.0062 (p = .042; .5% of v1.5 and alpha=.5)")
    '+0.0016, from −0.0026 to +0.0062 (p = 0.042; 0.5% of v1.5 and alpha=.5)'
    """
    return re.sub(_NO_ZERO, r"\g<1>0.", text)


def format_z(z: float) -> str:
    """A distance in standard deviations.

    >>> format_z(-4.25)
    '−4.2'
    """
    return NumberFormat(1).signed(z)


def describe_chance(zs: Collection[float]) -> str:
    """How often a random order is as far from the expected value as each of these, at most, for any distribution.

    The bound is Cantelli's inequality, for one side; Chebyshev's, if there are distances on both sides.

    >>> describe_chance([4.2, 7.0])
    'whatever the distribution, at most one random order in 18 is so high'
    >>> describe_chance([4.0, -5.0])
    'whatever the distribution, at most one random order in 16 is so far away'
    """
    square = min(z * z for z in zs)
    if min(zs) < 0 < max(zs):
        return f"whatever the distribution, at most one random order in {floor(square):,} is so far away"
    side = "high" if max(zs) > 0 else "low"
    return f"whatever the distribution, at most one random order in {floor(1 + square):,} is so {side}"


def format_percent(share: float | None, *, in_words: bool = False) -> str:
    """A share as a percentage; it reads 0% or 100% only if it is exactly that.

    >>> format_percent(0.4936), format_percent(0.0), format_percent(0.0001), format_percent(0.9999)
    ('49.4%', '0%', '<0.1%', '>99.9%')
    >>> format_percent(0.0001, in_words=True), format_percent(0.9999, in_words=True)
    ('fewer than 0.1%', 'over 99.9%')
    """
    if share is None:
        return MISSING
    if share in (0, 1):
        return f"{share:.0%}"
    less, more = ("fewer than ", "over ") if in_words else ("<", ">")
    return f"{less}0.1%" if share < 0.0005 else f"{more}99.9%" if share > 0.9995 else f"{share:.1%}"


def format_level(confidence: float) -> str:
    """The confidence of intervals, as titles of columns have it.

    >>> format_level(0.95), format_level(0.999)
    ('95%', '99.9%')
    """
    return format_percent(confidence).replace(".0%", "%")


def format_share(share: float, samples: int | None = None, *, in_words: bool = False) -> str:
    """A share of orders that is neither none nor all; if no sampled order was one, it is below 3 of their number.

    That is the upper end of its 95% interval.

    >>> format_share(0.5948), format_share(0.0), format_share(1.0)
    ('59.5%', '<0.1%', '>99.9%')
    >>> format_share(0.5 / 1001, 1000, in_words=True), format_share(1 - 0.5 / 1001, 1000)
    ('fewer than 0.3%', '>99.7%')
    """
    rarest = 0.0 if samples is None else 3 / samples
    is_unseen = samples is not None and min(share, 1 - share) * (samples + 1) < 1
    if rarest > 0.001 and is_unseen:
        less, more = ("fewer than ", "over ") if in_words else ("<", ">")
        return f"{less}{rarest:.1%}" if share < 0.5 else f"{more}{1 - rarest:.1%}"
    return format_percent(min(max(share, 1e-9), 1 - 1e-9), in_words=in_words)


def format_ranks(best: int, worst: int) -> str:
    """One rank, or the first and the last of several.

    >>> format_ranks(2, 2), format_ranks(1, 3)
    ('2', '1–3')
    """
    return f"{best:,}" if best == worst else f"{best:,}–{worst:,}"


def format_value(value: object) -> str:
    """Any plain value as text: the default of a table's columns.

    >>> [format_value(value) for value in (0.25, 1200, 1200.0, True, None, "a")]
    ['0.2500', '1,200', '1,200', 'yes', '–', 'a']
    """
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        number = float(value)
        is_count = abs(number) >= 1000 and number.is_integer()  # counts that were added up
        return f"{number:,.0f}" if is_count else PLAIN.number(number)
    return str(value)


def join_names(names: Sequence[str], last: str = "and", limit: int = 3) -> str:
    """Names as in a sentence; beyond the limit, how many more there are.

    >>> join_names(["A"]), join_names(["A", "B"], "or"), join_names(list("ABCDE"))
    ('A', 'A or B', 'A, B, C and 2 more')
    """
    *first, final = [*names[:limit], *([f"{len(names) - limit:,} more"] if len(names) > limit else [])]
    return f"{', '.join(first)} {last} {final}" if first else final


def capitalize_first(sentence: str) -> str:
    """A sentence with a capital letter at its start; the rest stays.

    >>> capitalize_first("over 99.9% of BM25 scores")
    'Over 99.9% of BM25 scores'
    """
    return sentence[:1].upper() + sentence[1:]


#: What to write for our signs where a terminal has none of them.
_ASCII = str.maketrans(
    {
        "─": "-",
        "━": "=",
        MINUS: "-",
        MISSING: "-",
        "·": "|",
        "…": "...",
        "≈": "~",
        "≥": ">=",
        "≤": "<=",
        "±": "+/-",
        "↑": "^",
        "↓": "v",
        "→": "->",
        "°": "o",
        "†": "+",
        "‡": "++",
        "τ": "tau",
        "φ": "phi",
        "’": "'",
        "×": "x",
    }
)


def encodable(text: str, encoding: str | None) -> str:
    """The text with ASCII for our signs, if the encoding lacks them, and escapes for other characters that it lacks.

    >>> encodable("−.004 ± .001 · é", "utf-8"), encodable("−.004 ± .001 · é", "ascii")
    ('−.004 ± .001 · é', '-.004 +/- .001 | \\\\xe9')
    """
    code, signs = encoding or "utf-8", "".join(map(chr, _ASCII))
    if signs.encode(code, "replace").decode(code) != signs:
        text = text.translate(_ASCII)
    return text.encode(code, "backslashreplace").decode(code)


def escape_controls(text: str) -> str:
    """Text in which control characters, and those that change the writing direction, are shown as escapes.

    >>> escape_controls("q\\x1b[31m1"), escape_controls("naïve 文")
    ('q\\\\x1b[31m1', 'naïve 文')
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def escape_lines(text: str) -> str:
    """The same for several lines, which keep their line breaks and tabs."""
    return text if text.isprintable() else "".join(c if c in "\n\t" else escape_controls(c) for c in text)


def count_noun(number: int, singular: str, plural: str = "") -> str:
    """A number and its noun.

    >>> count_noun(1, "row"), count_noun(1200, "row"), count_noun(2, "query", "queries")
    ('1 row', '1,200 rows', '2 queries')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def cut_lists_note(lists: str, effect: str = "") -> str:
    """The note on lists that may have been cut inside a tie group, with what this leaves open, and what to do.

    >>> cut_lists_note("2 of 50 lists", ": AP .393 – .397")
    '2 of 50 lists may have been cut inside a tie group: AP .393 – .397. If none was cut, add complete=True.'
    """
    return f"{lists} may have been cut inside a tie group{effect}. If none was cut, add {spell_option('complete')}."


_IN_SHELL = ContextVar("in_shell", default=False)


@contextmanager
def spelled_for_shell(in_shell: bool = True) -> Iterator[None]:
    """Inside, messages name options as the command line spells them, or as Python does (False)."""
    token = _IN_SHELL.set(in_shell)
    try:
        yield
    finally:
        _IN_SHELL.reset(token)


def is_in_shell() -> bool:
    """Whether messages name options as the command line spells them."""
    return _IN_SHELL.get()


class cached_by_spelling(Generic[T]):
    """A property that is computed once for the shell and once for Python: its text names options."""

    def __init__(self, function: Callable[[Any], T]):
        self._function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        key = f"_{self._name}, {'shell' if _IN_SHELL.get() else 'Python'}"
        found: dict[str, T] = instance.__dict__
        if key not in found:
            found[key] = self._function(instance)
        return found[key]


def spell_option(name: str, value: object = True) -> str:
    """An option with its value, as the reader spells it.

    >>> spell_option("drop_self"), spell_option("worst", 0.5)
    ('drop_self=True', 'worst=0.5')
    >>> with spelled_for_shell():
    ...     spell_option("drop_self"), spell_option("worst", 0.5)
    ('--drop-self', '--worst 0.5')
    """
    if not _IN_SHELL.get():
        return f"{name}={value!r}"
    return f"--{name.replace('_', '-')}{'' if value is True else f' {value}'}"


def spell_dtypes(text: str) -> str:
    """A text in which the short names of types are written out, but for the name of an encoder.

    >>> spell_dtypes("bf16>fp32/bf16")
    'bf16>float32/bfloat16'
    """
    encoder, of, rest = text.rpartition(">")
    return encoder + of + re.sub("|".join(SHORT_DTYPES), lambda found: SHORT_DTYPES[found[0]], rest)


def spell_command(name: str) -> str:
    """A command, or the function that does the same, as the reader spells it.

    >>> spell_command("compare")
    'tiewise.compare'
    >>> with spelled_for_shell():
    ...     spell_command("compare")
    'tiewise compare'
    """
    return f"tiewise {name}" if _IN_SHELL.get() else f"tiewise.{name}"


def trend_note(trend: tuple[int, int, int, int, bool], *, distances: bool = False) -> str:
    """The note on a run in which most lists rise; empty if they do not, or too few do to tell.

    With `distances` the scores were negated.

    >>> trend_note((198, 2, 200, 19_000, True))
    'In 198 of 200 lists the scores rise with the rank column. If they are distances or ranks, add distances=True.'
    """
    rising, _, lists, steps, by_rank = trend
    is_chance = rising < 0.9 * lists and steps < 3 * rising  # a list of two rises in one of two cases
    if rising <= lists / 2 or is_chance or steps < (MIN_STEPS_BY_RANK if by_rank else MIN_STEPS):
        return ""
    where = "with the rank column" if by_rank else "from the first row to the last"
    some, option = f"In {rising:,} of {count_noun(lists, 'list')}", spell_option("distances")
    if distances:
        return f"{some} the scores fall {where} and were negated. If they are similarities, leave out {option}."
    return f"{some} the scores rise {where}. If they are distances or ranks, add {option}."


def list_examples(items: Iterable[object], limit: int = 3, total: int | None = None) -> str:
    """The first few items in quotes, for a message; `total` is the number of all items, if not all are given.

    >>> list_examples(["a", "b", "c", "d", "e"])
    "'a', 'b', 'c' and 2 more"
    """
    quoted = [repr(str(item)) for item in items]
    rest = (len(quoted) if total is None else total) - limit
    return ", ".join(quoted[:limit]) + (f" and {rest} more" if rest > 0 else "")


def merge_notes(notes: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """The notes of several runs, each once, after the names of the runs that have it.

    >>> merge_notes([("A", ["2 queries are missing."]), ("B", ["2 queries are missing.", "It is tied."])])
    ['A, B: 2 queries are missing.', 'B: It is tied.']
    """
    runs, names_by_note = 0, dict[str, list[str]]()
    for name, own in notes:
        runs += 1
        for note in own:
            names_by_note.setdefault(note, []).append(name)

    def describe(names: list[str]) -> str:
        if MAX_NAMED < len(names) == runs:
            return f"all {runs:,} runs"
        more = len(names) - MAX_NAMED
        return ", ".join(names[:MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")

    return [f"{describe(names)}: {note}" for note, names in names_by_note.items()]
