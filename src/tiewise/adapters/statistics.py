"""Which statistics of an estimate are logged in training, and under which names."""

from __future__ import annotations

from collections.abc import Sequence

from tiewise.errors import InputError
from tiewise.metrics.estimate import Estimate
from tiewise.results.wording import list_examples

#: What can be logged of an estimate.
STATISTICS = ("expected", "minimum", "maximum", "range", "std", "oblivious", "bias")


def check_statistics(given: str | Sequence[str], known: Sequence[str] = STATISTICS) -> tuple[str, ...]:
    """The statistics to log, each once.

    >>> check_statistics("range")
    ('range',)
    """
    chosen = (given,) if isinstance(given, str) else tuple(dict.fromkeys(given))
    wrong = [one for one in chosen if one not in known]
    if wrong or not chosen:
        found = f"Unknown statistics: {list_examples(map(str, wrong))}." if wrong else "There are no statistics to log."
        raise InputError(f"{found} Choose of: {', '.join(known)}.")
    return chosen


def name_statistics(key: str, estimate: Estimate, statistics: Sequence[str]) -> dict[str, float | None]:
    """The statistics by name.

    >>> name_statistics("ndcg@10", Estimate(expected=0.5, minimum=0.25, maximum=1.0), ("expected", "range"))
    {'ndcg@10_expected': 0.5, 'ndcg@10_range': 0.75}
    """
    return {f"{key}_{name}": getattr(estimate, name) for name in statistics}
