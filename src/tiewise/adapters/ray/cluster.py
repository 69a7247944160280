"""Connecting to a Ray cluster, and counting shards on its workers.

Each shard is one task, or goes to one of several actors with a GPU each. If a worker dies, Ray starts another one and
the shard is counted again, which changes nothing: counting has no side effects. A problem with a shard is returned as
an `InputError`, so that the user sees its message and no traceback of a remote worker.
"""

from __future__ import annotations

import http.client
import logging
import os
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tiewise.adapters.ray.shards import Shard, ShardCounter, ShardCounts, ShardSummary
from tiewise.data.columns import Floats
from tiewise.data.progress import Progress, check_progress
from tiewise.errors import InputError, TiewiseError, first_line
from tiewise.results.optional import need
from tiewise.ties.shards import Total

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.data import Dataset

Answer: TypeAlias = tuple[ShardSummary | InputError, ShardCounts]

TIMEOUT = 10.0  # seconds that a cluster may take to answer
RETRIES = 3  # how often a shard is counted again if its worker died
WATCH = 0.5  # seconds between two looks at the processes of a cluster that starts
DAEMONS = ("gcs_server", "raylet")  # without one of these there is no cluster
MIN_GROUP = 8  # one task adds the counts of at least this many neighbouring shards

ADVICE = (
    " The head's own port (6379) is written host:6379, that of Ray Client (10001) ray://host:10001, which needs "
    "pip install 'ray[client]'. If the cluster requires a token, configure it as Ray's documentation says."
)
START_ADVICE = (
    " Ray needs memory and address space (`ulimit -v`), and room in its temporary folder and in /dev/shm. Its logs are "
    "in the folder ray/session_latest/logs of the temporary folder."
)


@contextmanager
def connect(address: str | None) -> Iterator[Any]:
    """The module `ray`, connected: to this process's cluster, to an address, to RAY_ADDRESS, or to one started here."""
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "1")  # after each second `_watch_start` can look
    ray = need("ray", "Evaluating on Ray", "ray")
    if ray.is_initialized():
        current = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", current):
            raise InputError(
                f"This process is connected to the Ray cluster at '{current}', not '{address}'. Call ray.shutdown() "
                "first, or leave out the address."
            )
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    _check_reachable(address)
    options = {"include_dashboard": False} if address == "local" else {}
    try:
        with warnings.catch_warnings(), _watch_start():
            warnings.simplefilter("ignore", FutureWarning)  # about a future change to environment variables of GPUs
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:  # Ray raises many kinds
        with suppress(Exception):
            ray.shutdown()
        advice = START_ADVICE if address == "local" else ADVICE
        raise InputError(f"Cannot use Ray at '{address}' ({first_line(error)}).{advice}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _watch_start() -> Iterator[None]:
    """Raise as soon as a process of a starting cluster ends, for which Ray would wait half a minute.

    The handlers of signals stay those of the caller: Ray has its own for SIGTERM.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def check(number: int, frame: object) -> None:
        if dead := _dead_daemons():
            raise ChildProcessError(f"its process '{dead[0]}' ended")

    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGALRM)}
    is_free = signal.getitimer(signal.ITIMER_REAL)[0] == 0
    if is_free:
        signal.signal(signal.SIGALRM, check)
        signal.setitimer(signal.ITIMER_REAL, WATCH, WATCH)
    try:
        yield
    finally:
        if is_free:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers.items():
            if handler is not None:  # None: it was set by other code than Python
                signal.signal(number, handler)


def _dead_daemons() -> list[str]:
    """The names of child processes of a cluster that ended; none where there is no /proc."""
    found = []
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            with suppress(OSError):
                name, _, state = Path(f"/proc/{pid}/stat").read_text().partition(" (")[2].rpartition(") ")
                if state[0] == "Z" and name in DAEMONS:
                    found.append(name)
    return found


def _check_reachable(address: str) -> None:
    """Raise if nothing, or a web server, listens at an address: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():  # "auto", "local", a name that Ray knows
        return
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=TIMEOUT)
    try:
        connection.connect()
    except (OSError, OverflowError) as error:
        raise InputError(f"No Ray cluster answers at '{address}' ({first_line(error)}).") from None
    try:
        connection.request("GET", "/")
        connection.getresponse()
    except (OSError, http.client.HTTPException):  # Ray does not speak HTTP/1
        return
    finally:
        connection.close()
    raise InputError(f"A web server answers at '{address}', not a Ray cluster. Give the port that `ray start` printed.")


def _is_reachable(address: str) -> bool:
    with suppress(InputError):
        _check_reachable(address)
        return True
    return False


def load_blocks(ray: Any, dataset: Dataset, *, ordered: bool) -> list[ObjectRef]:
    """References to the blocks of a data set as Arrow tables. Ray's object store holds them, and spills to disk."""
    context = dataset.context
    options = context.execution_options
    before = options.preserve_order, context.enable_progress_bars
    options.preserve_order, context.enable_progress_bars = ordered or before[0], False
    try:
        blocks: list[ObjectRef] = dataset.materialize().to_arrow_refs()
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None) or error
        raise TiewiseError(f"data set: cannot be read ({type(cause).__name__}: {first_line(cause)}).") from None
    finally:
        options.preserve_order, context.enable_progress_bars = before
    return blocks


class Workers:
    """Counts shards, which are paths or references to blocks, on the workers of a cluster."""

    def __init__(
        self,
        ray: Any,
        counter: ShardCounter,
        shards: Sequence[str | ObjectRef],
        names: Sequence[str],
        progress: Progress | None = None,
        gpus: int = 0,
    ):
        self._ray, self._shards, self._names, self._done = ray, shards, names, 0
        self._progress = check_progress(progress)
        self._sizes = len(counter.qrels), len(counter.qrels.queries)
        self._counter = [ray.put(counter)]  # in a list, where Ray does not resolve it: a worker fetches it once
        options = {"num_returns": 2, "max_retries": RETRIES, "scheduling_strategy": "SPREAD"}
        self._task = ray.remote(**options)(_count_shard)
        self._add = ray.remote(max_retries=RETRIES, name="tiewise sum")(add_counts)
        actor = ray.remote(num_gpus=1, max_restarts=-1, max_task_retries=RETRIES)(_GpuWorker)
        self._actors = [actor.remote() for _ in range(min(gpus, len(shards)))]
        head = ray.get_runtime_context().gcs_address
        self._head = head if _is_reachable(head) else None  # Ray Client may not reach the head itself

    def count(
        self, scores: Floats | None = None, fingerprint_limit: int = 0
    ) -> tuple[list[ShardSummary], Iterator[tuple[ShardCounts, int]]]:
        """The summaries of all shards, and sums of their counts with the bytes of what was added.

        Without `scores` every shard counts for its own judged scores. Sums are in the order of the shards. Tasks add
        the counts of about √n neighbours, so that the driver receives about √n sums.
        """
        shared = self._ray.put(scores)
        refs = [self._submit(number, shared, fingerprint_limit) for number in range(len(self._shards))]
        waiting = {summary: number for number, (summary, _) in enumerate(refs)}
        size = max(MIN_GROUP, isqrt(len(refs)))
        groups = {start: [counts for _, counts in refs[start : start + size]] for start in range(0, len(refs), size)}
        sums = {start: self._add.remote(*self._sizes, *counts) for start, counts in groups.items()}
        del refs, groups  # so that Ray drops counts after they were added
        return self._collect(waiting), (self._get(ref, start) for start, ref in sums.items())

    def _collect(self, waiting: dict[ObjectRef, int]) -> list[ShardSummary]:
        """The summaries behind references, by number; if one is an error, the other tasks are cancelled."""
        summaries: dict[int, ShardSummary] = {}
        try:
            while waiting:
                done, _ = self._ray.wait(list(waiting), timeout=TIMEOUT)
                if not done:
                    self._check_alive()
                for ref in done:
                    number = waiting.pop(ref)
                    summaries[number] = self._get(ref, number)
                    self._done += 1
                    self._progress(self._done, 2 * len(self._shards))
        finally:
            for ref in waiting:
                with suppress(Exception):  # it may be done by now
                    self._ray.cancel(ref)
        return [summaries[number] for number in sorted(summaries)]

    def _submit(self, number: int, scores: ObjectRef, limit: int) -> tuple[ObjectRef, ObjectRef]:
        if self._actors:
            task = self._actors[number % len(self._actors)].count.options(num_returns=2)
        else:
            task = self._task.options(name=f"tiewise {self._names[number]}")
        return task.remote(self._counter, self._shards[number], scores, limit)

    def _check_alive(self) -> None:
        """Raise if the cluster is gone, before Ray ends this process for it."""
        if self._head is not None and not _is_reachable(self._head):
            raise TiewiseError(f"The Ray cluster at '{self._head}' no longer answers. Start it and evaluate again.")

    def _get(self, ref: ObjectRef, number: int) -> Any:
        """The value of a reference, or an error that names the shard."""
        failures, name = self._ray.exceptions, self._names[number]
        try:
            value = self._ray.get(ref)
        except failures.RayTaskError as error:
            cause = error.cause or error
            raise TiewiseError(f"{name}: a worker failed ({type(cause).__name__}: {first_line(cause)}).") from None
        except failures.RayError as error:
            raise TiewiseError(
                f"{name}: the worker died, and again in each of {RETRIES} more attempts ({type(error).__name__}). If "
                "it ran out of memory, make the shards smaller."
            ) from None
        if isinstance(value, InputError):
            raise value
        return value


class _GpuWorker:
    """An actor that keeps its GPU, and the query vectors on it, from shard to shard."""

    def count(self, counter: list[ObjectRef], shard: Shard, scores: Floats | None, limit: int) -> Answer:
        return _count_shard(counter, shard, scores, limit)


def _count_shard(counter: list[ObjectRef], shard: Shard, scores: Floats | None, limit: int) -> Answer:
    try:
        return _fetch(counter[0]).count(shard, scores, limit)
    except TiewiseError as error:
        return InputError(*str(error).split("\n")), {}


def add_counts(n_judged: int, n_queries: int, *shards: ShardCounts) -> tuple[ShardCounts, int]:
    """The sum of the counts of neighbouring shards, and the bytes of their arrays."""
    totals: dict[str, Total] = {}
    nbytes = 0
    for shard in shards:
        for dtype, counts in shard.items():
            totals.setdefault(dtype, Total(n_judged, n_queries, counts.before)).add(counts)
            columns = {**counts._asdict(), **counts.before}
            nbytes += sum(array.nbytes for name, array in columns.items() if name != "before")
    return {dtype: total.counts() for dtype, total in totals.items()}, nbytes


@lru_cache(maxsize=1)
def _fetch(reference: ObjectRef) -> ShardCounter:
    """The counter behind a reference, fetched once in the life of a worker."""
    return import_module("ray").get(reference)
