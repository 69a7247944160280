"""The command line: ``tiewise evaluate``, ``compare``, ``audit``, ``similarity``, ``recall``, ``report`` and more.

A command is a module: it declares its options, calls the library, and writes what `tiewise.results` makes of it.
`program` has the list of commands, exit codes and error messages; `command` and `options` declare what commands
share. The values of shared options come as objects: `Inputs`, `Selection` and `Output`. A small command starts quickly,
because commands and what only some options need are imported when they are used.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit with its status.

    A signal that ends the process becomes an exception, so that files are not left half written, and what is imported
    from here on can be interrupted too.
    """
    gc.disable()  # what imports make is no garbage: enabled when a command starts
    received: list[int] = []

    def stop(number: int, frame: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has not all of them
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, stop)
    status = 0
    try:
        from tiewise.cli.program import run_process

        status = run_process()
    except BaseException:
        if not received:
            raise
        print("tiewise: interrupted", file=sys.stderr)
    gc.freeze()  # the process ends, so nothing needs to be searched for garbage
    gc.enable()
    if received:  # the threads of other libraries (Ray) can crash or hang while the interpreter ends
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(128 + received[0])
    sys.exit(status)
