"""The options of an evaluation: one frozen object. Python, the command line and reports use the same names."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from numbers import Integral
from typing import Any, Literal, TypedDict

import numpy as np

from tiewise.data.columns import project
from tiewise.errors import InputError
from tiewise.metrics.definition import SAMPLING, Sampling
from tiewise.metrics.tool_rules import TOOLS

__all__ = ["EvaluateNames", "OptionNames", "Options"]

Missing = Literal["zero", "skip", "error"]
NoRelevant = Literal["zero", "skip"]


class OptionNames(TypedDict, total=False):
    """The options as keywords: see `Options`."""

    oblivious: str | None
    missing: Missing
    no_relevant: NoRelevant
    score_dtype: str | None
    depth: int | None
    judged_only: bool
    complete: bool
    drop_self: bool
    distances: bool
    samples: int


class EvaluateNames(OptionNames, total=False):
    """The options of `evaluate` as keywords: see `Options`."""

    seed: int


@dataclass(frozen=True)
class Options:
    """How a run is evaluated.

    - `oblivious`: the order whose value is reported beside the expectation: the name of a tool, or ``"given"``,
      ``"docid-desc"``, ``"docid-asc"``, ``"rank"`` (the file's rank column); None for none. For a measure that a tool
      does not have, its usual order is used; for diversity measures ``"trec_eval"`` means the order of ndeval.
    - `missing`: judged queries that the run does not have score 0 (``"zero"``), are left out (``"skip"``), or are an
      ``"error"``. `no_relevant`: the same for queries without a relevant document.
    - `score_dtype`: round scores to ``"float32"``, ``"float16"``, ``"bfloat16"`` or ``"decimal:3"`` first.
    - `depth`: only the first ranks count.
    - `judged_only`: unjudged documents, and those with a label below 0, are removed first, as ``trec_eval -J`` does.
    - `complete`: the lists are complete, so a list that ends inside a tie group was not truncated there.
    - `drop_self`: documents with the id of their query are removed first. BEIR does that, so it is on where `oblivious`
      is ``"beir"``.
    - `distances`: the scores are distances, lowest first; they are negated.
    - `samples` and `seed`: the number of random orders, and their seed, for statistics that have no closed form and too
      many arrangements of ties to enumerate.

    >>> Options(depth=10).to_dict()["depth"]
    10
    """

    oblivious: str | None = "trec_eval"
    missing: Missing = "zero"
    no_relevant: NoRelevant = "zero"
    score_dtype: str | None = None
    depth: int | None = None
    judged_only: bool = False
    complete: bool = False
    drop_self: bool = False
    distances: bool = False
    samples: int = SAMPLING.samples
    seed: int = SAMPLING.seed

    def __post_init__(self) -> None:
        if self.missing not in ("zero", "skip", "error") or self.no_relevant not in ("zero", "skip"):
            raise InputError("missing is 'zero', 'skip' or 'error'; no_relevant is 'zero' or 'skip'.")
        depth = self.depth
        if depth is not None:
            if not isinstance(depth, Integral) or isinstance(depth, bool) or not 1 <= depth <= 2**53:
                raise InputError(f"depth is a whole number of ranks from 1 on, not {depth!r}.")
            object.__setattr__(self, "depth", int(depth))
        for name, value, least in (("samples", self.samples, 2), ("seed", self.seed, 0)):
            if not isinstance(value, Integral) or isinstance(value, bool) or not least <= value < 2**63:
                raise InputError(f"{name} is a whole number from {least} on, not {value!r}.")
            object.__setattr__(self, name, int(value))
        for name in ("judged_only", "complete", "drop_self", "distances"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise InputError(f"{name} is True or False, not {getattr(self, name)!r}.")
        if not isinstance(self.oblivious, (str, type(None))) or not isinstance(self.score_dtype, (str, type(None))):
            raise InputError("oblivious and score_dtype are names, or None.")
        if self.oblivious in TOOLS and TOOLS[self.oblivious].drops_self:
            object.__setattr__(self, "drop_self", True)  # so that bias is the effect of tie order alone
        if self.score_dtype is not None:
            project(np.zeros(0), self.score_dtype)  # an unknown type is an error

    @classmethod
    def of(cls, function: str, names: OptionNames | EvaluateNames) -> Options:
        """Options from the keywords of a function; an unknown one is a TypeError, as for any function."""
        known = {field.name for field in fields(cls)}
        for name in names:
            if name not in known:
                raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        return cls(**names)

    @property
    def sampling(self) -> Sampling:
        """`samples` and `seed`."""
        return Sampling(self.samples, self.seed)

    def to_dict(self) -> dict[str, Any]:
        """The options by name."""
        return asdict(self)
