"""The command line: ``tiewise evaluate``, ``compare``, ``audit``, ``similarity``, ``recall``, ``report`` and more.

A command is a module: it reads its options, calls the library, and writes what `tiewise.reporting` made of the result.
What commands share stands beside them: `program` (exit codes and complaints), `options`, `asked` (measures), `inputs`
and `output`. So that a small command starts quickly, a module loads what only its own command needs when that runs,
and rich only to draw for people.
"""

from tiewise.cli import audit, breaking, compare, demo, evaluate, measures, recall, report, score, similarity
from tiewise.cli.program import app, main
from tiewise.cli.quick import QuickCommand

__all__ = ["app", "main"]

# In the order in which help lists them.
app.command("evaluate", cls=QuickCommand, epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command("compare", cls=QuickCommand, epilog=compare.EXAMPLES)(compare.compare)
app.command("audit", cls=QuickCommand, epilog=audit.EXAMPLES)(audit.audit)
app.command("similarity", cls=QuickCommand, epilog=similarity.EXAMPLES)(similarity.similarity)
app.command("recall", cls=QuickCommand, epilog=recall.EXAMPLES)(recall.recall)
app.command("score", cls=QuickCommand, epilog=score.EXAMPLES)(score.score)
app.command("report", cls=QuickCommand, epilog=report.EXAMPLES)(report.report)
app.command("break", cls=QuickCommand, epilog=breaking.EXAMPLES)(breaking.break_ties)
app.command("measures", cls=QuickCommand)(measures.list_measures)
app.command("demo", cls=QuickCommand)(demo.demo)
