"""The command line: ``tiewise evaluate``, ``compare``, ``audit``, ``similarity``, ``recall``, ``report`` and more.

A command is a module: it reads its options, calls the library, and writes what `tiewise.output` made of the result.
`commands` lists them. What they share stands beside them: `program` (exit codes and complaints), `options`, `asked`
(measures), `inputs` and `output`. So that a small command starts quickly, a command is loaded when it is asked for, a
module loads what only some of its options need when they are given, and rich only to draw for people.
"""

from tiewise.cli.program import app, main

__all__ = ["app", "main"]
