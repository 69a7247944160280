"""How tied a run is, in what precision its scores were, whether that matters, and what to do about it.

`grids` has the numbers on which scores may lie and `functions` what is done to them; `origins` finds from which numbers
scores were made, `scaled` sees that they come in even steps, and `scores` says what speaks for a grid; `grouping` looks
at all tie groups, `spacing` at how near scores lie, `identity` at identical documents, `fidelity` at a reference run;
`verdict` weighs the evidence, `remedies` has the way out, and `auditing` puts all of it together.
"""

from tiewise.analysis.auditing.remedies import LIBRARIES
from tiewise.analysis.auditing.result import CUTOFFS, Audit, audit

__all__ = ["CUTOFFS", "LIBRARIES", "Audit", "audit"]
