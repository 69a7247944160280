"""Ranking notation: a ranking with ties in one short line."""

from __future__ import annotations

from tiewise.data.runs import Qrels, Run
from tiewise.errors import InputError
from tiewise.ties.counting import count_ties
from tiewise.ties.groups import TieGroups
from tiewise.ties.orders import TOOL_ORDERS

__all__ = ["notation"]


def notation(text: str) -> TieGroups:
    """Tie groups from a ranking in short: digits are labels, ``-`` is unjudged, brackets tie.

    What follows a ``|`` was judged but not retrieved. The order written is the `given` order.

    >>> notation("(20)-1|1")
    <TieGroups: 1 query, 3 judged documents retrieved, 2 of them tied>
    """
    listed, _, unretrieved = text.replace(" ", "").partition("|")
    scores, labels, group, open_ = [], [], 0, False
    for place, sign in enumerate(listed):
        if sign in "()" and (sign == "(") != open_:
            open_ = not open_
            group += 1
        elif sign.isdecimal() or sign == "-":
            scores.append(-group)
            labels.append(None if sign == "-" else int(sign))
            group += not open_
        else:
            raise InputError(
                f"'{sign}' at position {place + 1} of {text!r} is not ranking notation: digits are labels, "
                "'-' is unjudged, brackets tie, and brackets do not nest."
            )
    if open_ or not set(unretrieved) <= set("0123456789"):
        raise InputError(f"{text!r} is not ranking notation: a bracket is left open, or '|' is not followed by labels.")
    names = [f"d{place:03d}" for place in range(len(labels) + len(unretrieved))]
    judged = {name: float(label) for name, label in zip(names, labels, strict=False) if label is not None}
    judged |= {name: float(label) for name, label in zip(names[len(labels) :], unretrieved, strict=True)}
    run = Run.from_dict({"q": dict(zip(names, map(float, scores), strict=False))})
    return count_ties(Qrels.from_dict({"q": judged}), run, TOOL_ORDERS)["float64"]
