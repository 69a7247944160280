"""Audits: how tied a run is, in what precision its scores were, whether that matters, and what to do about it.

- `audits`: `audit` and its result, `Audit`; `sections`: what people read of it, and of several (`Audits`)
- `tie_statistics`: the tie groups of all rows, and identical documents
- `grids`: number types and printing
- `quantization`, `even_steps`: the tests that find rounding in scores, and the functions from numbers to scores
- `causes`, `consequences`: what made the ties; what their order changes, the comparison with a reference run, the
  verdict and a remedy
"""

from tiewise.analysis.auditing.audits import CUTOFFS, Audit, audit
from tiewise.analysis.auditing.causes import LIBRARIES, Remedy
from tiewise.analysis.auditing.consequences import GRADES, Effect, Fidelity, Reversal
from tiewise.analysis.auditing.sections import Audits

__all__ = ["CUTOFFS", "GRADES", "LIBRARIES", "Audit", "Audits", "Effect", "Fidelity", "Remedy", "Reversal", "audit"]
