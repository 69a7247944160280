"""Tiewise tells how far a retrieval score can be trusted.

Every measure comes back as its exact expectation over all orders of the tied documents, with the lowest and the highest
value that an order could give, the standard deviation, and the bias of the number that another tool prints.

A public name is imported from its module when it is first asked for, so that ``import tiewise`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tiewise._version import __version__

if TYPE_CHECKING:  # the same names for those who read without running
    from tiewise import figures as figures
    from tiewise import scoring as scoring
    from tiewise.catalogue import (
        AP,
        AUC,
        DCG,
        ERR,
        F1,
        RBP,
        RR,
        Bpref,
        F,
        Hits,
        Judged,
        NumRel,
        NumRelRet,
        NumRet,
        P,
        R,
        Rprec,
        SetP,
        SetR,
        Success,
        nDCG,
        nERR,
    )
    from tiewise.comparison import Compared, compare
    from tiewise.correlation import tau, tau_ap
    from tiewise.data import Qrels, Run
    from tiewise.errors import CutWarning, InputError, MeasureError, MissingExtraError, TiewiseError, TiewiseWarning
    from tiewise.estimate import Bounds, Estimate, Estimates
    from tiewise.evaluation import evaluate
    from tiewise.firststage import Stages, stages
    from tiewise.incomplete import unjudged
    from tiewise.io import read_qrels, read_run, write_qrels, write_run
    from tiewise.likeness import RBA, RBO, RBR, Similarity, similarity
    from tiewise.page import write_report
    from tiewise.rankbiased import (
        phi_for_discount,
        phi_for_reverse_rba,
        rba,
        rbo,
        rbp,
        rbr,
        top_weight,
    )
    from tiewise.ranking import Ranking
    from tiewise.registry import Measure, measure, measures, param, parse, parse_all
    from tiewise.report import Provenance, Report
    from tiewise.shares import precision, precision_at, recall, recall_at
    from tiewise.tieaudit import Audit, audit
    from tiewise.ties import TieGroups, judged_scores, notation, tie_groups

_HOMES = {
    "tiewise.catalogue": "AP AUC Bpref DCG ERR F F1 Hits Judged NumRel NumRelRet NumRet P R RBP RR Rprec SetP SetR "
    "Success nDCG nERR",
    "tiewise.comparison": "Compared compare",
    "tiewise.correlation": "tau tau_ap",
    "tiewise.data": "Qrels Run",
    "tiewise.errors": "CutWarning InputError MeasureError MissingExtraError TiewiseError TiewiseWarning",
    "tiewise.estimate": "Bounds Estimate Estimates",
    "tiewise.evaluation": "evaluate",
    "tiewise.firststage": "Stages stages",
    "tiewise.incomplete": "unjudged",
    "tiewise.io": "read_qrels read_run write_qrels write_run",
    "tiewise.likeness": "RBA RBO RBR Similarity similarity",
    "tiewise.page": "write_report",
    "tiewise.rankbiased": "phi_for_discount phi_for_reverse_rba rba rbo rbp rbr top_weight",
    "tiewise.ranking": "Ranking",
    "tiewise.registry": "Measure measure measures param parse parse_all",
    "tiewise.report": "Provenance Report",
    "tiewise.shares": "precision precision_at recall recall_at",
    "tiewise.tieaudit": "Audit audit",
    "tiewise.ties": "TieGroups judged_scores notation tie_groups",
}
_ROOMS = ("figures", "scoring")  # modules that are called by their own name
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "AP",
    "AUC",
    "DCG",
    "ERR",
    "F1",
    "RBA",
    "RBO",
    "RBP",
    "RBR",
    "RR",
    "Audit",
    "Bounds",
    "Bpref",
    "Compared",
    "CutWarning",
    "Estimate",
    "Estimates",
    "F",
    "Hits",
    "InputError",
    "Judged",
    "Measure",
    "MeasureError",
    "MissingExtraError",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "Provenance",
    "Qrels",
    "R",
    "Ranking",
    "Report",
    "Rprec",
    "Run",
    "SetP",
    "SetR",
    "Similarity",
    "Stages",
    "Success",
    "TieGroups",
    "TiewiseError",
    "TiewiseWarning",
    "__version__",
    "audit",
    "compare",
    "evaluate",
    "judged_scores",
    "measure",
    "measures",
    "nDCG",
    "nERR",
    "notation",
    "param",
    "parse",
    "parse_all",
    "phi_for_discount",
    "phi_for_reverse_rba",
    "precision",
    "precision_at",
    "rba",
    "rbo",
    "rbp",
    "rbr",
    "read_qrels",
    "read_run",
    "recall",
    "recall_at",
    "similarity",
    "stages",
    "tau",
    "tau_ap",
    "tie_groups",
    "top_weight",
    "unjudged",
    "write_qrels",
    "write_report",
    "write_run",
]


if not TYPE_CHECKING:  # a checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name in _ROOMS:
            return import_module(f"tiewise.{name}")
        if name not in _HOME_OF:
            raise AttributeError(f"module 'tiewise' has no attribute {name!r}")
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
