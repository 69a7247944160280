"""Tiewise tells how far a retrieval score can be trusted.

Every measure comes back as its exact expectation over all orders of the tied documents, with the lowest and the highest
value that an order could give, the standard deviation, and the bias of the number that another tool prints.
"""

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
from tiewise.data import Qrels, Run
from tiewise.errors import TiewiseError
from tiewise.estimate import Estimate
from tiewise.measure import Measure, measure, measures, parse

__all__ = [
    "AP",
    "AUC",
    "DCG",
    "ERR",
    "F1",
    "RBP",
    "RR",
    "Bpref",
    "Estimate",
    "F",
    "Hits",
    "Judged",
    "Measure",
    "NumRel",
    "NumRet",
    "P",
    "Qrels",
    "R",
    "Rprec",
    "Run",
    "SetP",
    "SetR",
    "Success",
    "TiewiseError",
    "measure",
    "measures",
    "nDCG",
    "nERR",
    "parse",
]
