"""The options of an evaluation, each declared once: name, type, default and help.

`Options` checks them. `takes_options` puts them into the signature and the documentation of a function, the command
line makes its own options from them, and a report's provenance holds them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

import numpy as np

from tiewise.data.columns import project
from tiewise.errors import InputError
from tiewise.metrics.definition import SAMPLING, Sampling
from tiewise.metrics.tool_rules import TOOLS
from tiewise.results.wording import spell_dtypes

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack  # for the signatures of functions with `**options`
else:
    Unpack = Any

Missing = Literal["zero", "skip", "error"]
NoRelevant = Literal["zero", "skip"]
Function = TypeVar("Function", bound=Callable[..., Any])


class OptionNames(TypedDict, total=False):
    """The options as keywords, for type checkers: see `Options`."""

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
    seed: int


def _option(default: Any, spec: str, help: str) -> Any:
    """A field with the spelling of an option on the command line, and its help."""
    return field(default=default, metadata={"spec": spec, "help": help})


@dataclass(frozen=True)
class Options:
    """How a run is evaluated.

    >>> Options(depth=10).to_dict()["depth"]
    10
    """

    oblivious: str | None = _option(
        "trec_eval",
        "--oblivious NAME",
        "The order of ties whose value is reported beside the expectation: that of a tool (trec_eval, pytrec_eval, "
        "ir_measures, sentence-transformers ...), given, docid-desc, docid-asc, rank (the rank column), or none.",
    )
    missing: Missing = _option(  # noqa: RUF009 (it returns a field)
        "zero",
        "--missing zero|skip|error",
        "Judged queries that are not in the run count as 0, are skipped, or are an error.",
    )
    no_relevant: NoRelevant = _option(  # noqa: RUF009
        "zero", "--no-relevant zero|skip", "Queries without a relevant document count as 0, or are skipped."
    )
    score_dtype: str | None = _option(
        None,
        "--score-dtype TYPE",
        "Round scores to float32, float16, bfloat16 or decimal:N first. This can create ties.",
    )
    depth: int | None = _option(None, "-M, --depth N", "Use only the first N ranks of each run.")
    judged_only: bool = _option(
        False,
        "-J, --judged-only",
        "Remove unjudged documents, and those with a negative label, from the runs, as trec_eval does.",
    )
    complete: bool = _option(
        False, "--complete", "The lists are complete: none was truncated inside its last tie group."
    )
    drop_self: bool = _option(
        False, "--drop-self", "Remove documents that have the id of their query, as BEIR and some tasks of MTEB do."
    )
    distances: bool = _option(False, "--distances", "The scores are distances, lowest first: negate them.")
    samples: int = _option(
        SAMPLING.samples,
        "--samples N",
        "The number of random orders for statistics that have no closed form and too many arrangements to enumerate.",
    )
    seed: int = _option(SAMPLING.seed, "--seed N", "The seed of random draws.")

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
            object.__setattr__(self, "score_dtype", spell_dtypes(self.score_dtype))
            project(np.zeros(0), self.score_dtype)  # an unknown type is an error

    @classmethod
    def of(cls, function: str, names: OptionNames) -> Options:
        """Options from the keywords of a function; an unknown one is a TypeError, as for any function."""
        for name in names:
            if name not in cls.__dataclass_fields__:
                raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        return cls(**names) if names else _DEFAULTS

    @property
    def sampling(self) -> Sampling:
        """`samples` and `seed`."""
        return Sampling(self.samples, self.seed)

    def to_dict(self) -> dict[str, Any]:
        """The options by name."""
        return asdict(self)


_DEFAULTS = Options()


def takes_options(*without: str) -> Callable[[Function], Function]:
    """Decorator: the signature of a function with `**options` shows each of them, and `{options}` their documentation.

    They are those of `Options` but `without` some, and without the parameters that the function declares by itself.

    >>> @takes_options("seed")
    ... def measure(run: str, *, depth: int = 5, **options: Any) -> None:
    ...     pass
    >>> list(inspect.signature(measure).parameters)[:4]
    ['run', 'depth', 'oblivious', 'missing']
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        taken = [one for one in fields(Options) if one.name not in {*signature.parameters, *without}]
        parameters = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        parameters += [
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
            for one in taken
        ]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        text = "\n    ".join(f"- `{one.name}`: {one.metadata['help']}" for one in taken)
        function.__doc__ = (function.__doc__ or "").replace("{options}", text)
        return function

    return decorate
