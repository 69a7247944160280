"""``tiewise audit``: how tied a run is, why, whether it matters, and what to do."""

from __future__ import annotations

from tiewise.analysis import auditing as tieaudit
from tiewise.cli.asked import asked
from tiewise.cli.gates import FACTS
from tiewise.cli.inputs import heeded, names, read_once
from tiewise.cli.options import (
    AuditFailIf,
    AuditFormat,
    Complete,
    Cutoffs,
    Digits,
    InputFormat,
    JudgedBy,
    Level,
    Library,
    Measures,
    Names,
    Output,
    Plugins,
    QrelsFormat,
    Quiet,
    ReferenceFile,
    RunFile,
)
from tiewise.cli.output import closed, leave_if, note_beside, screen, target, write
from tiewise.errors import InputError
from tiewise.io import read_qrels, read_run
from tiewise.output import OutputOptions

__all__ = ["EXAMPLES", "audit"]

EXAMPLES = (
    "Examples\n\n"
    "  tiewise audit run.trec\n\n"
    "  tiewise audit bf16.trec --qrels qrels.txt --reference fp32.trec\n\n"
    "  tiewise audit run.trec --format json | jq .verdict\n\n"
    "  tiewise audit run.trec --fail-if 'tied_share > 0.1 or cut_lists > 0'\n\n"
    "  tiewise audit run.trec --qrels qrels.txt --fail-if unreliable"
)


def audit(
    run: RunFile,
    qrels: JudgedBy = None,
    reference: ReferenceFile = None,
    measure: Measures = None,
    level: Level = None,
    plugin: Plugins = None,
    cutoff: Cutoffs = None,
    fail_if: AuditFailIf = None,
    library: Library = None,
    input_format: InputFormat = None,
    qrels_format: QrelsFormat = None,
    complete: Complete = False,
    format: AuditFormat = None,
    digits: Digits = None,
    name: Names = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Say how tied a run is, in what precision its scores were, whether that matters, and what to do about it.

    With judgments it shows how far the order of ties can move each measure, and what each tool prints; with a
    reference run, such as the same scores in float32, how far the order differs from that one.
    """
    from tiewise.output import render
    from tiewise.output.audit_tables import AuditTables

    kind, output = target(format, output)
    if measure and qrels is None:
        raise InputError("-m needs judgments: give --qrels.")
    title = names([run], name or ())[0]
    chosen, gates = asked(measure, fail_if or (), level, plugin or (), facts=FACTS)
    read_once([path for path in (run, qrels, reference) if path])
    with heeded() as warned:
        found = tieaudit.audit(
            read_run(run, format=input_format),
            qrels=None if qrels is None else read_qrels(qrels, format=qrels_format),
            reference=None if reference is None else read_run(reference),
            measures=chosen,
            cutoffs=cutoff or tieaudit.CUTOFFS,
            complete=complete,
            library=library,
        )
    view = OutputOptions(format=kind, digits=digits, notes=tuple(warned), **screen(output))
    complaints = closed(gates, [(title, found)])
    write(render(AuditTables(title, found), view), output)
    note_beside(view, view.notes, quiet)
    leave_if(complaints)
