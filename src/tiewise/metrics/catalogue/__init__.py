"""The measures, a module for each family. To add one, write a class in the module of its family.

Each class is a definition on a list without ties, Eq. (1) of `tiewise.metrics.definition`. It becomes a value under its
name without the underscore; the class attribute `aliases` holds the spellings of other tools. Where a class has a
`moments` of its own, that is the closed form for a tie group of `size` documents (`inside` of them within the cutoff)
after `start` others, with `relevant` relevant documents in it and `seen` above it.

The measures are listed everywhere in the order of these imports.
"""

from tiewise.metrics.catalogue.sets import F, F1, Hits, Judged, NumRel, NumRelRet, NumRet, P, R, Rprec, SetP, SetR
from tiewise.metrics.catalogue.first_relevant import RR, Success
from tiewise.metrics.catalogue.average_precision import AP
from tiewise.metrics.catalogue.discounted_gain import DCG, RBP, nDCG
from tiewise.metrics.catalogue.cascades import ERR, nERR
from tiewise.metrics.catalogue.preferences import AUC, Bpref
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
    "Bpref",
    "DCG",
    "ERR",
    "ERR_IA",
    "F",
    "F1",
    "Hits",
    "Judged",
    "NRBP",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "P_IA",
    "R",
    "RBP",
    "RR",
    "Rprec",
    "STREC",
    "SetP",
    "SetR",
    "Success",
    "alpha_DCG",
    "alpha_nDCG",
    "nDCG",
    "nERR",
    "nERR_IA",
    "nNRBP",
]
