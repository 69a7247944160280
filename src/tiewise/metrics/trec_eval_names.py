"""The names of trec_eval 10 and 9: its measures in its order, their parameters and its nicknames.

A name may have parameters after a dot: ``P.5,10`` is two measures, ``utility.1,-1,0,0`` is one. trec_eval prints them
after an underscore: ``P_5``, ``utility_1,-1,0,0``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from tiewise.errors import MeasureError
from tiewise.metrics import catalogue as c
from tiewise.metrics.definition import Measure
from tiewise.results.wording import count_noun

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


LONG_MAX = 2**63 - 1


def parse_long(text: str) -> int:
    """A whole number as C reads it: the digits in front, and at most the largest long.

    >>> parse_long("23.4"), parse_long("+7"), parse_long(".5"), parse_long("9" * 5000) == LONG_MAX
    (23, 7, 0, True)
    """
    sign, digits = re.findall(r"^([-+]?)0*([0-9]*)", text)[0]
    number = LONG_MAX if len(digits) > 18 else int(digits or 0)
    return -number if sign == "-" else number


class TrecName(NamedTuple):
    """What a name of trec_eval computes: a measure, or a text if that is None; and what its parameters are."""

    measure: Measure | None
    each: str = ""  # numbers after the name set this parameter (or "cutoff"), one measure for each number
    defaults: tuple[float, ...] = ()  # the numbers, if there are none after the name
    joint: tuple[str, ...] = ()  # or all numbers after the name set these parameters of one measure
    pairs: tuple[str, ...] = ()  # or pairs set these parameters; a pair of two numbers sets the gain of a label
    shown: Literal["queries", "summary", "both"] = "both"

    @property
    def key(self) -> str:
        """The printed name of one of several measures."""
        return "{}_{}" if self.each == "cutoff" else "{}_{:.2f}"

    def expand(self, name: str, text: str | None, **settings: float) -> Iterator[tuple[str, Measure | None]]:
        """The printed names and the measures of a name with the text of its parameters.

        `settings` are parameters of measures that have them, such as `rel`.
        """
        known = {} if self.measure is None else self.measure.params
        made = {key: value for key, value in settings.items() if key in known}
        if self.measure is None:
            yield (name if text is None else f"{name}_{text}"), None
        elif self.each:
            for value in self.defaults if text is None else self._numbers(name, text):
                yield self.key.format(name, value), self.measure(**made | {self.each: value})
        elif text is None:
            yield name, self.measure(**made)
        else:
            yield f"{name}_{text}", self.measure(**made | self._parameters(name, text))

    def _numbers(self, name: str, text: str) -> list[Any]:
        """The numbers after the name, ascending."""
        parts, cuts = self._split(name, text), self.each == "cutoff"
        numbers: list[Any] = sorted(parse_long(one) if cuts else float(one) for one in parts)
        if cuts and not 1 <= numbers[0] <= numbers[-1] <= 2**53:
            raise MeasureError(f"{name}.{text}: a cutoff is a whole number from 1 on.")
        if len(set(numbers)) < len(numbers):
            raise MeasureError(f"{name}.{text}: a number is given twice.")
        return numbers

    def _split(self, name: str, text: str) -> list[str]:
        parts = text.split(",")
        if not all(re.fullmatch(NUMBER, part) for part in parts):
            raise MeasureError(f"{name}.{text}: give numbers after the dot, with commas between them.")
        return parts

    def _parameters(self, name: str, text: str) -> dict[str, Any]:
        if self.joint == ("points",):
            return {"points": ",".join(self._split(name, text))}
        if self.joint:
            numbers = self._split(name, text)
            if len(numbers) != len(self.joint):
                raise MeasureError(f"{name}.{text}: give {count_noun(len(self.joint), 'number')}, not {len(numbers)}.")
            return dict(zip(self.joint, map(float, numbers), strict=True))
        if not self.pairs:
            raise MeasureError(f"{name}.{text}: {name} takes no parameters.")
        found: dict[str, Any] = {}
        for pair in text.split(","):
            parameter, _, value = pair.partition("=")
            if parameter in self.pairs and re.fullmatch(NUMBER, value):
                found[parameter] = float(value)
            elif "gains" in self.pairs and re.fullmatch(rf"\d+={NUMBER}", pair):
                found["gains"] = f"{found['gains']},{pair}" if "gains" in found else pair
            else:
                example = "1=5,2=9" if "gains" in self.pairs else "p=0.8"
                raise MeasureError(f"{name}.{text}: '{pair}' is not a parameter. Write {name}.{example}.")
        return found


CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)


def _at_cutoffs(measure: Measure, defaults: tuple[int, ...] = CUTOFFS) -> TrecName:
    return TrecName(measure, "cutoff", defaults)


def _with_gains(measure: Measure, *others: str) -> TrecName:
    return TrecName(measure, pairs=(*others, "gains"))


_TENTHS = tuple(i / 10 for i in range(11))

#: All names of trec_eval, in the order in which it prints them.
NAMES: dict[str, TrecName] = {
    "runid": TrecName(None, shown="summary"),
    "num_q": TrecName(c.NumQ, shown="summary"),
    "num_ret": TrecName(c.NumRet),
    "num_rel": TrecName(c.NumRel),
    "num_rel_ret": TrecName(c.NumRelRet),
    "map": TrecName(c.AP),
    "gm_map": TrecName(c.GMAP, shown="summary"),
    "Rprec": TrecName(c.Rprec),
    "bpref": TrecName(c.Bpref),
    "recip_rank": TrecName(c.RR),
    "iprec_at_recall": TrecName(c.IPrec, "recall", _TENTHS),
    "P": _at_cutoffs(c.P),
    "relstring": TrecName(None, shown="queries"),
    "recall": _at_cutoffs(c.R),
    "infAP": TrecName(c.infAP),
    "gm_bpref": TrecName(c.GMBpref, shown="summary"),
    "Rprec_mult": TrecName(c.RprecMult, "multiple", tuple(i / 5 for i in range(1, 11))),
    "utility": TrecName(c.Utility, joint=("a", "b", "c", "d")),
    "11pt_avg": TrecName(c.ElevenPointAP, joint=("points",)),
    "binG": TrecName(c.binG),
    "G": _with_gains(c.G),
    "dcg": _with_gains(c.DCG),
    "ndcg": _with_gains(c.nDCG),
    "ndcg_rel": _with_gains(c.nDCGRel),
    "Rndcg": _with_gains(c.RnDCG),
    "ndcg_cut": _at_cutoffs(c.nDCG),
    "map_cut": _at_cutoffs(c.AP),
    "relative_P": _at_cutoffs(c.RelativeP),
    "success": _at_cutoffs(c.Success, (1, 5, 10)),
    "set_P": TrecName(c.SetP),
    "set_relative_P": TrecName(c.SetRelativeP),
    "set_recall": TrecName(c.SetR),
    "set_map": TrecName(c.SetAP),
    "set_F": TrecName(c.SetF, joint=("x",)),
    "num_nonrel_judged_ret": TrecName(c.NumNonrelJudgedRet),
    "yaap": TrecName(c.YAAP),
    "rbp": _with_gains(c.TrecRBP, "p"),
    "rbp_resid": TrecName(c.RBPresid, pairs=("p",)),
    "unj": _at_cutoffs(c.Unj, (5, 10, 20)),
}

#: Those that version 9 does not have; pytrec_eval, which contains it, has no yaap either.
NEW_IN_10 = ("dcg", "rbp", "rbp_resid", "unj")
NEW_NAMES = (*NEW_IN_10, "yaap")

#: What is added to a share of the relevant documents before it is cut to a whole number, by version.
OFFSETS = {9: 0.9, 10: 0.5}

_OFFICIAL = "runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P"
_SET = "runid num_q num_ret num_rel num_rel_ret utility set_P set_relative_P set_recall set_map set_F"

#: The nicknames, each with its names.
NICKNAMES: dict[str, tuple[str, ...]] = {
    "official": tuple(_OFFICIAL.split()),
    "set": tuple(_SET.split()),
    "all_trec": tuple(name for name in NAMES if name not in ("dcg", "yaap")),
}


def names_of_version(version: int) -> dict[str, TrecName]:
    """The names that a version of trec_eval has, 9 or 10, in the order in which it prints them."""
    return {name: entry for name, entry in NAMES.items() if version > 9 or name not in NEW_IN_10}


#: Names and nicknames of trec_eval that need judgments other than labels of documents.
OUT_OF_SCOPE = r"prefs.*|all_prefs|qrels_jg|.*_avgjg|qrels_prefs"


def split_name(word: str) -> tuple[str, str | None]:
    """A name of trec_eval and the text of its parameters, None without any; ("", None) if it is not such a name.

    >>> split_name("ndcg.1=5,2=9"), split_name("iprec_at_recall_0.10"), split_name("set_P"), split_name("nDCG@10")
    (('ndcg', '1=5,2=9'), ('iprec_at_recall', '0.10'), ('set_P', None), ('', None))
    """
    if word in NAMES:
        return word, None
    name = max((one for one in NAMES if word.startswith((f"{one}.", f"{one}_"))), key=len, default="")
    return (name, word[len(name) + 1 :]) if name else ("", None)


def parse_name(word: str) -> list[Measure]:
    """The measures of a nickname, or of a name with parameters that is not spelled like one of ours; else none.

    ``P``, ``recall`` and others without a cutoff are those of the whole list; ``ndcg_cut`` and ``map_cut`` have nine.

    >>> parse_name("Rprec_mult.0.5,2"), parse_name("set")[-1], parse_name("P")
    ([RprecMult(multiple=0.5), RprecMult(multiple=2)], SetF, [])
    """
    needs_cutoff = word.lower() in ("ndcg_cut", "map_cut")
    if needs_cutoff or word in NICKNAMES:
        names = [word.lower()] if needs_cutoff else NICKNAMES[word]
        pairs = (pair for name in names for pair in NAMES[name].expand(name, None))
        return [measure for _, measure in pairs if measure is not None]
    name, text = split_name(word)
    if not name or name == "rbp":
        return []
    entry = NAMES[name]
    if entry.each == "cutoff" or (text is None and not entry.each):
        return []
    if text is not None and (not (entry.each or entry.joint or entry.pairs) or (entry.pairs and "=" not in text)):
        return []
    return [measure for _, measure in entry.expand(name, text) if measure is not None]


def name_of(measure: Measure, level: float = 1) -> str | None:
    """The name under which trec_eval, called with ``-l level``, prints a measure; None if it has none.

    >>> name_of(c.nDCG @ 10), name_of(c.P(rel=2) @ 5, level=2), name_of(c.P(rel=2) @ 5)
    ('ndcg_cut_10', 'P_5', None)
    """
    for name, entry in NAMES.items():
        if type(entry.measure) is not type(measure):
            continue
        value = getattr(measure, entry.each) if entry.each else None
        text = None if value is None else str(value)
        if (text is None) == bool(entry.each):  # without the cutoff that the name needs
            continue
        for printed, one in entry.expand(name, text, rel=level):
            if one == measure:
                return printed
    return None
