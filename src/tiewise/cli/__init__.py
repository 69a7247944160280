"""The command line: ``tiewise evaluate``, ``compare``, ``audit``, ``similarity``, ``recall``, ``report`` and more.

A command is a module: it reads its options, calls the library, and writes what `tiewise.output` makes of the result.
`program` has the list of commands, exit codes and error messages; `command` and `options` declare what commands
share; `inputs`, `selection` and `output` hold what they do alike. A small command starts quickly, because commands and
what only some options need are imported when they are used.
"""

from tiewise.cli.program import app, main

__all__ = ["app", "main"]
