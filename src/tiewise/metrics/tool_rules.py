"""How named tools break ties, by tool and measure: what their number would be for a run with ties.

A rule names the order in which a tool lists tied documents and the type in which it reads scores (a float32 reader
makes ties of its own); where its definition differs from ours, the measure that it really computes; and what it does
with judged queries that the run does not have. A tool whose order cannot be reproduced says so instead of guessing.
The rules were found by reading the tools and running them, in the versions named.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tiewise.data.source import Source
from tiewise.errors import InputError
from tiewise.metrics import catalogue as c
from tiewise.metrics.catalogue.user_models import UserModel
from tiewise.metrics.definition import Measure
from tiewise.metrics.estimate import Estimate
from tiewise.metrics.trec_eval_names import NAMES, NEW_NAMES, OFFSETS, TrecName
from tiewise.results.optional import installed
from tiewise.results.wording import ATOL
from tiewise.ties.orders import ORDERS, name_order


class Rule(NamedTuple):
    """How a tool orders ties for a measure; `order` is None if that cannot be known, and `why` says why."""

    order: str | None
    dtype: str = "float64"
    missing: str = "skip"  # judged queries that the run does not have: "zero", "skip" or "error" (it prints nothing)
    measure: Measure | None = None  # what the tool computes under this name, if not the same
    retrieved_only: bool = False  # relevant documents that were not retrieved are unknown to the tool
    skips_no_relevant: bool = False  # queries without a relevant document are left out
    labels: str = "any"  # that are not whole numbers: "any" counts them, "cut" cuts off the fraction, "error" refuses
    why: str = ""
    is_ours: bool = False  # without an order: whether it computes our value where no order of ties changes that

    def settle(self, mean: Estimate) -> Rule:
        """The same; if only the order is unknown, and no order changes the mean, with any one."""
        if self.order or not self.is_ours or mean.range is None or mean.range > ATOL:
            return self
        return self._replace(order="docid-desc", why="")


class Tool(NamedTuple):
    """A tool: its version, its usual rule, and its rules for measures (None if it does not have the measure)."""

    name: str
    version: str
    usual: Rule
    rules: Callable[[Measure], Rule | None]
    completed_by: str = ""  # the option that counts judged queries that the run does not have as 0
    condenses: bool = False  # whether it can leave unjudged documents out of the lists
    drops_self: bool = False  # whether it removes documents with the id of their query
    in_some_tasks: bool = False  # whether it does so in some of its tasks

    def drops_self_from(self, source: Source | None) -> bool | None:
        """Whether it does so with a file; None if some of its tasks do, and the one of the file is not known."""
        return self.drops_self or (self.in_some_tasks and task_drops_self(source))

    def rule(self, measure: Measure) -> Rule | None:
        """The rule for a measure; None if the tool does not have it."""
        if not measure.judged_only:
            return self.rules(measure)
        rule = self.rules(measure(judged_only=False)) if self.condenses else None
        return rule and rule._replace(measure=rule.measure and rule.measure(judged_only=True))


def tool_for(oblivious: str, measure: Measure) -> str:
    """The tool, or the order, of the oblivious value of a measure: trec_eval has no diversity measures, ndeval has.

    >>> tool_for("trec_eval", c.AP), tool_for("trec_eval", c.alpha_nDCG @ 20), tool_for("given", c.alpha_nDCG @ 20)
    ('trec_eval', 'ndeval', 'given')
    """
    return "ndeval" if oblivious == "trec_eval" and measure.needs_subtopics else oblivious


def task_drops_self(source: Source | None) -> bool | None:
    """Whether the MTEB task of a file of predictions drops documents with the id of their query; None if unknown.

    MTEB names the file after the task, and knows which tasks do.
    """
    task = "" if source is None else Path(source.path).name.removesuffix("_predictions.json")
    if source is None or source.format != "mteb" or task == Path(source.path).name:
        return None
    mteb = installed("mteb")
    try:
        return None if mteb is None else bool(mteb.get_task(task).ignore_identical_ids)
    except (KeyError, AttributeError):  # not a task of this version, or not one of retrieval
        return None


@lru_cache(maxsize=1024)
def rule_for(oblivious: str, measure: Measure) -> Rule:
    """The tie rule of an order or of a tool for a measure; for a measure that the tool lacks, its usual rule is used.

    >>> rule_for("ir_measures", c.RR @ 10).order, rule_for("ir_measures", c.nDCG @ 10).order
    ('docid-asc', 'docid-desc')
    """
    oblivious = tool_for(oblivious, measure)
    if oblivious in ORDERS:
        return Rule(oblivious)
    if oblivious not in TOOLS:
        raise InputError(
            f"Unknown order or tool {oblivious!r} for oblivious. Orders: {', '.join(ORDERS)}; "
            f"tools: {', '.join(TOOLS)}."
        )
    tool = TOOLS[oblivious]
    rule = tool.rule(measure) or tool.usual
    if rule.order is None:
        raise InputError(f"What {tool.name} {tool.version} prints for {measure} cannot be reproduced: {rule.why}.")
    return rule


def printed_by(oblivious: str, measure: Measure, missing: str) -> str:
    """What prints the oblivious value of a measure if judged queries are missing from the run: a tool, or its order.

    `missing` is how that value counts these queries.

    >>> [printed_by("trec_eval", c.AP, missing) for missing in ("zero", "skip")]
    ['trec_eval -c', 'the order of trec_eval']
    >>> [printed_by("pytrec_eval", c.AP, missing) for missing in ("zero", "skip")]
    ['the order of pytrec_eval', 'pytrec_eval']
    """
    name = tool_for(oblivious, measure)
    if name in ORDERS or rule_for(name, measure).missing == missing:
        return name
    return f"{name} -c" if missing == "zero" and TOOLS[name].completed_by == "-c" else name_order(name)


def _is(measure: Measure, *names: Measure) -> bool:
    return any(type(measure) is type(name) for name in names)


def _binary(measure: Measure) -> Measure:
    """nDCG as tools compute it that know only sets of relevant documents."""
    return measure(gains="binary") if _is(measure, c.nDCG) else measure


_TREC = Rule("docid-desc", labels="error")
_TREC_10 = Rule("docid-desc", missing="error", labels="cut")
_TREC_9 = Rule("docid-desc", "float32", labels="error")  # as pytrec_eval reads labels
_NDEVAL = Rule("docid-asc")

#: What trec_eval has had since version 9; our Hits is its num_rel_ret.
_OLD_NAMES = (TrecName(c.Hits), *(entry for name, entry in NAMES.items() if name not in NEW_NAMES))


def _in_trec_eval(measure: Measure) -> bool:
    """Whether trec_eval has had the measure since version 9."""
    if _is(measure, c.nDCG):
        return measure.uncut == c.nDCG
    if _is(measure, c.AP):
        return getattr(measure, "norm", "all") == "all"
    needs_cutoff = {entry.each == "cutoff" for entry in _OLD_NAMES if type(entry.measure) is type(measure)}
    return (measure.cutoff is not None) in needs_cutoff


def _trec_eval(measure: Measure) -> Rule | None:
    if measure.cutoff is not None and _is(measure, c.Unj):
        return _TREC_10
    # RR with a cutoff: trec_eval -M 10
    new = _is(measure, c.RR, c.TrecRBP, c.RBPresid, c.YAAP) or measure == c.DCG
    return _TREC_10 if new or _in_trec_eval(measure) else None


def _trec_eval_9(measure: Measure) -> Rule | None:
    has = _is(measure, c.RR, c.YAAP) or _in_trec_eval(measure)
    return _of_9(measure)._replace(labels="cut") if has else None


def _pytrec_eval(measure: Measure) -> Rule | None:
    return _of_9(measure) if _in_trec_eval(measure) else None


def _of_9(measure: Measure) -> Rule:
    if not _is(measure, c.IPrec, c.ElevenPointAP):
        return _TREC_9
    return _TREC_9._replace(measure=measure(offset=OFFSETS[9]))  # version 10 rounds the share to the nearest number


_NOT_IN_IR_MEASURES: tuple[Measure, ...] = (
    *(c.RprecMult, c.RelativeP, c.Utility, c.NumNonrelJudgedRet, c.ElevenPointAP),
    *(c.binG, c.G, c.RnDCG, c.nDCGRel, c.GMAP, c.GMBpref),
)


def _ndeval(measure: Measure) -> Rule | None:
    """ndeval has diversity measures alone, with cutoffs up to 20."""
    has = measure.needs_subtopics and (not measure.takes_cutoff or 1 <= (measure.cutoff or 0) <= 20)
    return _NDEVAL if has else None


def _ir_measures(measure: Measure) -> Rule | None:
    if _ndeval(measure):
        return _NDEVAL._replace(missing="zero")
    if isinstance(measure, UserModel):
        return Rule("given", missing="zero")
    if _is(measure, c.Accuracy):
        return Rule("given")
    if _is(measure, c.Compat):
        return Rule("docid-asc", missing="zero", why="its ideal list may have ties in another order")
    cut = measure.cutoff is not None
    if _is(measure, c.Judged):
        return Rule("docid-asc", missing="zero", measure=measure(norm="cap"))
    if _is(measure, c.RR) and cut:
        return Rule("docid-asc", missing="zero")
    if cut and measure.uncut in (c.ERR(max=4), c.nDCG(gains="exp")):
        return Rule("docid-desc", missing="zero", labels="error", why="rounds to 5 decimals")
    if not _in_trec_eval(measure) or _is(measure, *_NOT_IN_IR_MEASURES):
        return None
    return _of_9(measure)._replace(missing="skip" if measure.total else "zero")


def _beir(measure: Measure) -> Rule | None:
    if measure.cutoff is None:
        return None
    if _is(measure, c.RR, c.Success):
        return Rule("given", missing="zero")
    return _TREC_9 if _is(measure, c.nDCG, c.AP, c.P, c.R) and _in_trec_eval(measure) else None


def _mteb(measure: Measure) -> Rule | None:
    if measure.cutoff is not None and _is(measure, c.RR):
        return _TREC
    return _TREC_9 if measure.cutoff is not None and _in_trec_eval(measure) else None


def _mteb_before(measure: Measure) -> Rule | None:
    if measure.cutoff is not None and _is(measure, c.RR):
        return Rule("given", labels="error")
    return _mteb(measure)


def _sentence_transformers(measure: Measure) -> Rule | None:
    if measure.cutoff is None or not _is(measure, c.nDCG, c.RR, c.AP, c.P, c.R, c.Success):
        return None
    own = measure(norm="cap") if _is(measure, c.AP) else _binary(measure)
    return Rule("docid-asc", missing="zero", measure=own, skips_no_relevant=True)


def _trm(measure: Measure) -> Rule | None:
    if measure.cutoff is None or not _is(measure, c.nDCG, c.RR, c.AP, c.P, c.R, c.F1, c.Hits):
        return None
    if _is(measure, c.P, c.F1):
        return Rule(None, why="beyond a list's end it divides by the list's length, but not the expectation")
    return Rule(
        "given",
        measure=_binary(measure),
        retrieved_only=True,
        why="relevant documents that were not retrieved are unknown to it",
    )


def _unknown(why: str, *names: Measure) -> tuple[Rule, Callable[[Measure], Rule | None]]:
    rule = Rule(None, why=why)
    return rule, lambda measure: rule if _is(measure, *names) else None


_RANX = Rule(
    None, missing="zero", labels="cut", why="it follows an unstable sort from 16 documents on, and the kind of input"
)


def _ranx(measure: Measure) -> Rule | None:
    if not _is(measure, c.nDCG, c.DCG, c.AP, c.RR, c.P, c.R, c.F1, c.Hits, c.Success, c.Rprec, c.Bpref):
        return None
    plain = (measure(rel=1) if "rel" in measure.params else measure).uncut
    graded = (c.nDCG, c.nDCG(gains="exp"), c.DCG, c.DCG(gains="exp"))
    return _RANX._replace(is_ours=plain in (*graded, c.AP, c.RR, c.P, c.R, c.F1, c.Hits, c.Success, c.Rprec))


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("trec_eval", "10", _TREC_10, _trec_eval, completed_by="-c", condenses=True),
        Tool(
            "trec_eval-9",
            "up to 9.0.8",
            _TREC_9._replace(labels="cut"),
            _trec_eval_9,
            completed_by="-c",
            condenses=True,
        ),
        Tool("pytrec_eval", "0.5 (also -terrier)", _TREC_9, _pytrec_eval, condenses=True),
        Tool("ndeval", "as in pyndeval 0.0.8", _NDEVAL, _ndeval),
        Tool("ir_measures", "0.4", _TREC_9._replace(missing="zero"), _ir_measures, condenses=True),
        Tool("pyterrier", "1.1", _TREC_9._replace(missing="zero"), _ir_measures, condenses=True),
        Tool("beir", "2.2", _TREC_9, _beir, drops_self=True),
        Tool("mteb", "from 2.18.19", _TREC_9, _mteb, in_some_tasks=True),
        Tool("mteb-2.18", "up to 2.18.18", _TREC_9, _mteb_before, in_some_tasks=True),
        Tool("sentence-transformers", "from 6.0", Rule("docid-asc", missing="zero"), _sentence_transformers),
        Tool(
            "sentence-transformers-rerank",
            "6.2",
            *_unknown("MRR follows an unstable sort, MAP groups ties, nDCG averages over them", c.RR, c.AP, c.nDCG),
        ),
        Tool("trm", "0.1", Rule("given"), _trm),
        Tool("ranx", "0.3", _RANX, _ranx, completed_by="make_comparable=True"),
        Tool(
            "torchmetrics",
            "1.9",
            *_unknown(
                "torch does not say how topk orders ties; nDCG averages over them",
                *(c.nDCG, c.AP, c.RR, c.P, c.R, c.Success, c.Rprec, c.AUC),
            ),
        ),
    )
}
