"""The measures, a module for each family. To add one, write a class in the module of its family.

Each class is a definition on a list without ties, Eq. (1) of `tiewise.metrics.definition`. It becomes a value under its
name without the underscore; the class attribute `aliases` holds the spellings of other tools. Where a class has a
`moments` of its own, that is the closed form for a tie group of `size` documents (`inside` of them within the cutoff)
after `start` others, with `relevant` relevant documents in it and `seen` above it.

The measures are listed everywhere in the order of these imports.
"""

from tiewise.metrics.catalogue.sets import (
    F,
    F1,
    Hits,
    Judged,
    NumNonrelJudgedRet,
    NumQ,
    NumRel,
    NumRelRet,
    NumRet,
    P,
    R,
    RelativeP,
    Rprec,
    RprecMult,
    SetAP,
    SetF,
    SetP,
    SetR,
    SetRelativeP,
    Unj,
    Utility,
)
from tiewise.metrics.catalogue.first_relevant import RR, Success
from tiewise.metrics.catalogue.average_precision import AP, YAAP, infAP
from tiewise.metrics.catalogue.interpolated_precision import ElevenPointAP, IPrec
from tiewise.metrics.catalogue.discounted_gain import DCG, RBP, RBPresid, TrecRBP, nDCG
from tiewise.metrics.catalogue.normalized_gain import G, RnDCG, nDCGRel
from tiewise.metrics.catalogue.cascades import ERR, nERR
from tiewise.metrics.catalogue.user_models import BPM, INSQ, INST, NERR8, NERR9, NERR10, NERR11, SDCG
from tiewise.metrics.catalogue.preferences import AUC, Accuracy, Bpref, binG
from tiewise.metrics.catalogue.compatibility import Compat
from tiewise.metrics.catalogue.geometric_means import GMAP, GMBpref, LogAP, LogBpref
from tiewise.metrics.catalogue.diversity import (
    AP_IA,
    ERR_IA,
    NRBP,
    P_IA,
    STREC,
    alpha_DCG,
    alpha_nDCG,
    nERR_IA,
    nNRBP,
)

__all__ = [
    "AP",
    "AP_IA",
    "AUC",
    "Accuracy",
    "BPM",
    "Bpref",
    "Compat",
    "DCG",
    "ERR",
    "ERR_IA",
    "ElevenPointAP",
    "F",
    "F1",
    "G",
    "GMAP",
    "GMBpref",
    "Hits",
    "INSQ",
    "INST",
    "IPrec",
    "Judged",
    "LogAP",
    "LogBpref",
    "NERR8",
    "NERR9",
    "NERR10",
    "NERR11",
    "NRBP",
    "NumNonrelJudgedRet",
    "NumQ",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "P_IA",
    "R",
    "RBP",
    "RBPresid",
    "RR",
    "RelativeP",
    "RnDCG",
    "Rprec",
    "RprecMult",
    "SDCG",
    "STREC",
    "SetAP",
    "SetF",
    "SetP",
    "SetR",
    "SetRelativeP",
    "Success",
    "TrecRBP",
    "Unj",
    "Utility",
    "YAAP",
    "alpha_DCG",
    "alpha_nDCG",
    "binG",
    "infAP",
    "nDCG",
    "nDCGRel",
    "nERR",
    "nERR_IA",
    "nNRBP",
]
