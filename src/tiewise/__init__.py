"""Tiewise tells how far a retrieval score can be trusted.

Every measure comes back as its exact expectation over all orders of the tied documents, with the lowest and the highest
value that an order could give, the standard deviation, and the bias of the number that another tool prints.

A public name is imported from its module when it is first asked for, so that ``import tiewise`` costs next to nothing.
"""

from typing import TYPE_CHECKING

from tiewise._version import __version__
from tiewise.tables.optional import lazy_names

if TYPE_CHECKING:  # the same names for those who read without running
    from tiewise import figures as figures
    from tiewise import rows as rows
    from tiewise import scoring as scoring
    from tiewise.analysis.auditing import Audit, audit
    from tiewise.analysis.comparison import Compared, PairComparison, compare
    from tiewise.analysis.evaluating import evaluate
    from tiewise.analysis.protocols import Protocol, Row, protocol
    from tiewise.analysis.reports import Provenance, Report
    from tiewise.analysis.unjudged_bounds import Unjudged, unjudged
    from tiewise.data.judgments import Qrels
    from tiewise.data.runs import Run
    from tiewise.errors import CutWarning, InputError, MeasureError, MissingExtraError, TiewiseError, TiewiseWarning
    from tiewise.io import read_qrels, read_run, write_qrels, write_run
    from tiewise.io.types import QrelsLike, RunLike
    from tiewise.metrics.catalogue import (
        AP,
        AP_IA,
        AUC,
        BPM,
        DCG,
        ERR,
        ERR_IA,
        F1,
        GMAP,
        INSQ,
        INST,
        NERR8,
        NERR9,
        NERR10,
        NERR11,
        NRBP,
        P_IA,
        RBP,
        RR,
        SDCG,
        STREC,
        YAAP,
        Accuracy,
        Bpref,
        Compat,
        ElevenPointAP,
        F,
        G,
        GMBpref,
        Hits,
        IPrec,
        Judged,
        LogAP,
        LogBpref,
        NumNonrelJudgedRet,
        NumQ,
        NumRel,
        NumRelRet,
        NumRet,
        P,
        R,
        RBPresid,
        RelativeP,
        RnDCG,
        Rprec,
        RprecMult,
        SetAP,
        SetF,
        SetP,
        SetR,
        SetRelativeP,
        Success,
        TrecRBP,
        Unj,
        Utility,
        alpha_DCG,
        alpha_nDCG,
        binG,
        infAP,
        nDCG,
        nDCGRel,
        nERR,
        nERR_IA,
        nNRBP,
    )
    from tiewise.metrics.definition import ListMeasure, Measure, param
    from tiewise.metrics.estimate import Bounds, Estimate, Estimates, Method
    from tiewise.metrics.names import MeasureLike, measure, measures, parse, parse_all
    from tiewise.output.page import write_report
    from tiewise.rankings.alignment import rba
    from tiewise.rankings.correlation import tau, tau_ap
    from tiewise.rankings.effectiveness import med_rbp
    from tiewise.rankings.first_stages import Stages, stages
    from tiewise.rankings.overlap import rbo
    from tiewise.rankings.pair_measures import MED_RBP, RBA, RBO, RBR
    from tiewise.rankings.rank_biased import rbp, rbr
    from tiewise.rankings.ranking import Ranking
    from tiewise.rankings.run_similarity import Similarity, similarity
    from tiewise.rankings.set_measures import precision, precision_at, recall, recall_at
    from tiewise.rankings.weights import Weights, phi_for_discount, phi_for_reverse_rba, phi_for_weight, top_weight
    from tiewise.ties import TieGroups, judged_scores, notation, tie_groups

_MODULES = {
    "tiewise.metrics.catalogue": "AP AP_IA AUC Accuracy BPM Bpref Compat DCG ERR ERR_IA ElevenPointAP F F1 G GMAP "
    "GMBpref Hits INSQ INST IPrec Judged LogAP LogBpref NERR10 NERR11 NERR8 NERR9 NRBP NumNonrelJudgedRet NumQ NumRel "
    "NumRelRet NumRet P P_IA R RBP RBPresid RR RelativeP RnDCG Rprec RprecMult SDCG STREC SetAP SetF SetP SetR "
    "SetRelativeP Success TrecRBP Unj Utility YAAP alpha_DCG alpha_nDCG binG infAP nDCG nDCGRel nERR nERR_IA nNRBP",
    "tiewise.analysis.comparison": "Compared PairComparison compare",
    "tiewise.rankings.correlation": "tau tau_ap",
    "tiewise.data.judgments": "Qrels",
    "tiewise.data.runs": "Run",
    "tiewise.errors": "CutWarning InputError MeasureError MissingExtraError TiewiseError TiewiseWarning",
    "tiewise.metrics.estimate": "Bounds Estimate Estimates Method",
    "tiewise.analysis.evaluating": "evaluate",
    "tiewise.rankings.first_stages": "Stages stages",
    "tiewise.analysis.unjudged_bounds": "Unjudged unjudged",
    "tiewise.io": "read_qrels read_run write_qrels write_run",
    "tiewise.io.types": "QrelsLike RunLike",
    "tiewise.rankings.run_similarity": "Similarity similarity",
    "tiewise.output.page": "write_report",
    "tiewise.rankings.alignment": "rba",
    "tiewise.rankings.effectiveness": "med_rbp",
    "tiewise.rankings.overlap": "rbo",
    "tiewise.rankings.pair_measures": "MED_RBP RBA RBO RBR",
    "tiewise.rankings.rank_biased": "rbp rbr",
    "tiewise.rankings.ranking": "Ranking",
    "tiewise.metrics.definition": "ListMeasure Measure param",
    "tiewise.metrics.names": "MeasureLike measure measures parse parse_all",
    "tiewise.analysis.reports": "Provenance Report",
    "tiewise.analysis.protocols": "Protocol Row protocol",
    "tiewise.rankings.set_measures": "precision precision_at recall recall_at",
    "tiewise.rankings.weights": "Weights phi_for_discount phi_for_reverse_rba phi_for_weight top_weight",
    "tiewise.analysis.auditing": "Audit audit",
    "tiewise.ties": "TieGroups judged_scores notation tie_groups",
}
_SUBMODULES = ("figures", "rows", "scoring")

__all__ = [
    "AP",
    "AP_IA",
    "AUC",
    "BPM",
    "DCG",
    "ERR",
    "ERR_IA",
    "F1",
    "GMAP",
    "INSQ",
    "INST",
    "MED_RBP",
    "NERR8",
    "NERR9",
    "NERR10",
    "NERR11",
    "NRBP",
    "P_IA",
    "RBA",
    "RBO",
    "RBP",
    "RBR",
    "RR",
    "SDCG",
    "STREC",
    "YAAP",
    "Accuracy",
    "Audit",
    "Bounds",
    "Bpref",
    "Compared",
    "Compat",
    "CutWarning",
    "ElevenPointAP",
    "Estimate",
    "Estimates",
    "F",
    "G",
    "GMBpref",
    "Hits",
    "IPrec",
    "InputError",
    "Judged",
    "ListMeasure",
    "LogAP",
    "LogBpref",
    "Measure",
    "MeasureError",
    "MeasureLike",
    "Method",
    "MissingExtraError",
    "NumNonrelJudgedRet",
    "NumQ",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "PairComparison",
    "Protocol",
    "Provenance",
    "Qrels",
    "QrelsLike",
    "R",
    "RBPresid",
    "Ranking",
    "RelativeP",
    "Report",
    "RnDCG",
    "Row",
    "Rprec",
    "RprecMult",
    "Run",
    "RunLike",
    "SetAP",
    "SetF",
    "SetP",
    "SetR",
    "SetRelativeP",
    "Similarity",
    "Stages",
    "Success",
    "TieGroups",
    "TiewiseError",
    "TiewiseWarning",
    "TrecRBP",
    "Unj",
    "Unjudged",
    "Utility",
    "Weights",
    "__version__",
    "alpha_DCG",
    "alpha_nDCG",
    "audit",
    "binG",
    "compare",
    "evaluate",
    "infAP",
    "judged_scores",
    "measure",
    "measures",
    "med_rbp",
    "nDCG",
    "nDCGRel",
    "nERR",
    "nERR_IA",
    "nNRBP",
    "notation",
    "param",
    "parse",
    "parse_all",
    "phi_for_discount",
    "phi_for_reverse_rba",
    "phi_for_weight",
    "precision",
    "precision_at",
    "protocol",
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


if not TYPE_CHECKING:  # a checker would accept any name
    __getattr__ = lazy_names(__name__, _MODULES, _SUBMODULES, hints="tiewise.metrics.names")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
