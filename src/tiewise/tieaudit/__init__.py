"""How tied a run is, in what precision its scores were, whether that matters, and what to do about it.

`grids` has the numbers on which scores may lie, `origins` finds from which of them scores were made, `scaled` sees that
lists were made from some, each in its own way, and `scores` says what speaks for a grid; `grouping` looks at all tie
groups, `identity` at identical documents and `fidelity` at a reference run; `verdict` weighs the evidence, `remedies`
has the way out, and `auditing` puts all of it together.
"""

from tiewise.tieaudit.auditing import CUTOFFS, Audit, audit
from tiewise.tieaudit.remedies import LIBRARIES

__all__ = ["CUTOFFS", "LIBRARIES", "Audit", "audit"]
