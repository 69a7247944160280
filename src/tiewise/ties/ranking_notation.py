"""Ranking notation: a ranking with ties in one short line."""

from __future__ import annotations

import re

from tiewise.data.judgments import Qrels
from tiewise.data.runs import Run
from tiewise.errors import InputError
from tiewise.ties.counting import count_ties
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import TOOL_ORDERS

#: A bracket, a label, a document that was not judged, or one that is relevant for subtopics.
TOKEN = re.compile(r"[()\d-]|[a-z]|\{[a-z]+\}")


def notation(text: str) -> TieGroups:
    """Tie groups from a ranking in short: digits are labels, ``-`` is unjudged, brackets tie.

    What follows a ``|`` was judged but not retrieved. The order written is the `given` order. For diversity measures,
    letters instead of digits are subtopics for which a document is relevant, several of them in braces.

    >>> notation("(20)-1|1")
    <TieGroups: 1 query, 3 judged documents retrieved, 2 of them tied>
    >>> notation("({ab}a)-b").qrels.to_dict()
    {'q': {'d000': {'a': 1.0, 'b': 1.0}, 'd001': {'a': 1.0}, 'd003': {'b': 1.0}}}
    """
    listed, _, unretrieved = text.replace(" ", "").partition("|")
    scores, labels, group, open_, place = [], list[str](), 0, False, 0
    while place < len(listed):
        match = TOKEN.match(listed, place)
        sign = match[0] if match else listed[place]
        if sign in ("(", ")") and (sign == "(") != open_:
            open_ = not open_
            group += 1
        elif match and sign not in ("(", ")"):
            scores.append(-group)
            labels.append(sign)
            group += not open_
        else:
            raise InputError(
                f"'{sign}' at position {place + 1} of {text!r} is not ranking notation: digits are labels, "
                "'-' is unjudged, brackets tie, and brackets do not nest. Letters are subtopics, several in braces."
            )
        place += len(sign)
    if open_ or re.sub(TOKEN, "", unretrieved) or set(unretrieved) & set("()-"):
        raise InputError(f"{text!r} is not ranking notation: a bracket is left open, or '|' is not followed by labels.")
    labels += TOKEN.findall(unretrieved)
    if len({sign.isdecimal() for sign in labels if sign != "-"}) > 1:
        raise InputError(f"{text!r} is not ranking notation: digits are labels, letters are subtopics. Use either.")
    names = [f"d{place:03d}" for place in range(len(labels))]
    judged = {name: _label(sign) for name, sign in zip(names, labels, strict=True) if sign != "-"}
    run = Run.from_dict({"q": dict(zip(names, map(float, scores), strict=False))})
    return count_ties(Qrels.from_dict({"q": judged}), run, TOOL_ORDERS)["float64"]


def _label(sign: str) -> float | dict[str, float]:
    return float(sign) if sign.isdecimal() else dict.fromkeys(sign.strip("{}"), 1.0)
