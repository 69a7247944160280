"""One contender, once, in a process of its own: prints CPU seconds, peak memory and its nDCG@10 as JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from benchmarks.contenders import CONTENDERS


def main() -> None:
    door, name, qrels, run = sys.argv[1:]
    prepare, timed = CONTENDERS[door][name](Path(qrels), Path(run))
    held = prepare()
    before = time.process_time()
    value = timed(held)
    cpu = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"cpu": cpu, "peak_bytes": peak, "nDCG@10": value}))


if __name__ == "__main__":
    main()
