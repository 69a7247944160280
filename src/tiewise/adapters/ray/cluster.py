"""Ray: joining or starting it, and dividing the work among its machines.

`Tasks` gives each file to a task, or to an actor that has a GPU; `Blocks` lets Ray Data bring the blocks of a data set.
Both make two passes, and both yield answers as bytes. A worker that dies is replaced by Ray and its shard is counted
again, which changes nothing: counting has no effects. What is wrong in the end is said of the shard it happened to.
"""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache, partial
from importlib import import_module
from math import isqrt
from typing import Any, Protocol

from tiewise.adapters.ray.working import Answer, Counter, added, answered, unpacked
from tiewise.data.columns import Floats
from tiewise.errors import InputError, TiewiseError
from tiewise.tables.optional import need

__all__ = ["Blocks", "Division", "Progress", "Tasks", "joined", "said"]

Progress = Callable[[int, int], None]
First = tuple[int, bytes, Callable[[], bytes]]  # a shard's number, what it says of itself, what fetches its counts

PATIENCE = 10.0  # seconds that a cluster may take to answer
RETRIES = 3  # how often a shard is tried again whose worker died
BATCH = 1 << 18  # rows of a data set that a GPU is given at once
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # as gRPC begins, which Ray speaks
SETTINGS = b"\x04"  # the kind of frame with which it answers, in its fourth byte
FEW = 8  # shards whose counts are summed at once, at the least

ADVICE = (
    " The head's own port (6379) is written host:6379, that of Ray Client (10001) ray://host:10001, which needs "
    "pip install 'ray[client]'. A cluster that asks for a token must have been given it in Ray's own way."
)


@contextmanager
def joined(address: str | None) -> Iterator[Any]:
    """Ray: the one that this process uses, the one at an address or in RAY_ADDRESS, or one started here for a while."""
    ray = need("ray", "Evaluating on Ray", "ray")
    if ray.is_initialized():
        if address is not None and address not in ("auto", ray.get_runtime_context().gcs_address):
            here = ray.get_runtime_context().gcs_address
            raise InputError(
                f"This process uses the Ray at '{here}' already, not '{address}'. Leave it first, or the address out."
            )
        yield ray
        return
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    _check_reachable(where)
    here = {"include_dashboard": False} if where == "local" else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # on what Ray will do to variables of GPUs
            ray.init(address=where, log_to_driver=False, logging_level=logging.ERROR, **here)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(f"Ray at '{where}' cannot be used ({_brief(error)}).{ADVICE * (where != 'local')}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(where: str) -> None:
    """Raise if no Ray listens at an address: Ray itself would go on trying for minutes."""
    host, _, port = where.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():  # "auto", "local", a name that Ray knows
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE) as line:
            if os.environ.get("RAY_USE_TLS", "0") != "0":  # what is said there is not for us to read
                return
            line.sendall(HELLO)
            answer = line.recv(len(HELLO))
    except (OSError, OverflowError) as error:
        raise InputError(f"No Ray cluster answers at '{where}' ({_brief(error)}).") from None
    if answer[3:4] != SETTINGS:
        raise InputError(f"What answers at '{where}' is no Ray cluster. Is this the port that `ray start` showed?")


def _watchable(where: str) -> str | None:
    """An address, if a Ray answers there; that of a cluster behind a gate may not be for us to reach."""
    with suppress(InputError):
        _check_reachable(where)
        return where
    return None


class Division(Protocol):
    """Work divided among machines."""

    def first(self) -> Generator[First]:
        """The answers of shards to the first pass, in the order in which they are done."""

    def second(self, scores: Floats, sha256: Mapping[int, str]) -> Generator[tuple[bytes, int]]:
        """Sums of counts in the order of the shards, and how many bytes the counts of the shards took."""


class Tasks:
    """Files, each of them a task; or, where there are GPUs and they help, given to actors that have one each."""

    def __init__(
        self, ray: Any, counter: Counter, shards: Sequence[str], progress: Progress | None = None, gpus: int = 0
    ):
        self._ray, self._shards, self._progress, self._done = ray, shards, progress, 0
        self._sizes = len(counter.qrels), len(counter.qrels.queries)
        self._shared = [ray.put(counter)]  # in a list, so that workers fetch it once and not for every shard
        remote = ray.remote(num_gpus=1, max_restarts=-1, max_task_retries=RETRIES)
        self._actors = [remote(_Actor).remote() for _ in range(min(gpus, len(shards)))]
        self._head = _watchable(ray.get_runtime_context().gcs_address)

    def first(self) -> Generator[First]:
        """The answers of shards to the first pass, in the order in which they are done."""
        sent = [self._sent("first", number) for number in range(len(self._shards))]
        notes, counts = [note for note, _ in sent], {number: ref for number, (_, ref) in enumerate(sent)}
        del sent  # so that Ray forgets counts that nobody fetches
        for number, answer in self._done_first(notes):
            yield number, answer, partial(self._got, counts.pop(number), number)

    def second(self, scores: Floats, sha256: Mapping[int, str]) -> Generator[tuple[bytes, int]]:
        """Sums of counts in the order of the shards, and how many bytes the counts of the shards took."""
        everywhere = self._ray.put(scores)
        sent = [self._sent("second", number, everywhere, sha256[number]) for number in range(len(self._shards))]
        notes, counts = (list(refs) for refs in zip(*sent, strict=True))
        many = max(FEW, isqrt(len(counts)))  # about as many sums as shards a sum
        add = self._ray.remote(_sum).options(name="tiewise sum", max_retries=RETRIES)
        heads = range(0, len(counts), many)
        sums = [add.remote(self._sizes, *counts[head : head + many]) for head in heads]
        del sent, counts  # Ray forgets counts once they are summed
        with closing(self._done_first(notes)) as done:
            moved = sum(said(answer).size for _, answer in done)
        for head, ref in zip(heads, sums, strict=True):
            yield self._got(ref, head), moved
            moved = 0

    def _sent(self, method: str, number: int, *more: Any) -> tuple[Any, Any]:
        """Have a shard counted: what it says of itself, and its counts, as references."""
        shard = self._shards[number]
        if self._actors:
            actor = self._actors[number % len(self._actors)]
            found: tuple[Any, Any] = actor.counted.options(num_returns=2).remote(self._shared, method, shard, *more)
        else:
            options = {"num_returns": 2, "max_retries": RETRIES, "scheduling_strategy": "SPREAD"}
            task = self._ray.remote(_counted).options(name=f"tiewise {shard}", **options)
            found = task.remote(self._shared, method, shard, *more)
        return found

    def _done_first(self, refs: list[Any]) -> Generator[tuple[int, bytes]]:
        """Answers as they come; if nobody wants more of them, the rest of the work is called off."""
        number_of, waiting = {ref: number for number, ref in enumerate(refs)}, list(refs)
        refs.clear()
        try:
            while waiting:
                done, waiting = self._ray.wait(waiting, num_returns=1, timeout=PATIENCE)
                if not done:
                    self._check_alive()
                for ref in done:
                    number = number_of.pop(ref)
                    answer = self._got(ref, number)
                    self._done += 1
                    if self._progress:
                        self._progress(self._done, 2 * len(self._shards))
                    yield number, answer
        finally:
            for ref in waiting:
                with suppress(Exception):  # it may be done by now
                    self._ray.cancel(ref)

    def _check_alive(self) -> None:
        """Raise if the cluster has gone, before Ray ends this process for it."""
        if self._head is not None and _watchable(self._head) is None:
            raise TiewiseError(f"The Ray cluster at '{self._head}' no longer answers. Start it and evaluate again.")

    def _got(self, ref: Any, number: int) -> bytes:
        """What a reference stands for, or why there is nothing, said of the shard."""
        failures, shard = self._ray.exceptions, self._shards[number]
        try:
            found: bytes = self._ray.get(ref)
        except failures.RayTaskError as error:
            cause = error.cause or error
            raise TiewiseError(f"{shard}: a worker failed ({type(cause).__name__}: {_brief(cause)}).") from None
        except failures.RayError as error:
            raise TiewiseError(
                f"{shard}: the worker died, and again in each of {RETRIES} more attempts ({type(error).__name__}). If "
                "it ran out of memory, cut the shards finer."
            ) from None
        return found


class Blocks:
    """A data set of Ray, block by block; Ray Data decides how it is read and where."""

    def __init__(self, ray: Any, counter: Counter, dataset: Any, *, ordered: bool, gpus: int = 0):
        self._ray, self._dataset, self._ordered, self._gpus = ray, dataset, ordered, gpus
        self._shared = [ray.put(counter)]

    def first(self) -> Generator[First]:
        """The answers of blocks to the first pass, in the order in which they are done."""
        for number, (note, counts) in enumerate(self._answers("first")):
            yield number, note, partial(bytes, counts)

    def second(self, scores: Floats, sha256: Mapping[int, str]) -> Generator[tuple[bytes, int]]:
        """The counts of blocks, in their order if that matters, and how many bytes these took."""
        for note, counts in self._answers("second", self._ray.put(scores)):
            yield counts, said(note).size

    def _answers(self, method: str, *more: Any) -> Iterator[tuple[bytes, bytes]]:
        what = (self._shared, method, [*more])
        if self._gpus:
            actors = import_module("ray.data").ActorPoolStrategy(size=self._gpus)
            gpus = {"num_gpus": 1, "compute": actors, "batch_size": BATCH}
            asked = self._dataset.map_batches(_Block, fn_constructor_args=what, batch_format="pyarrow", **gpus)
        else:
            asked = self._dataset.map_batches(_block, fn_args=what, batch_format="pyarrow", batch_size=None)
        with self._settings(asked.context):
            try:
                for row in asked.iter_rows():
                    yield row["note"], row["counts"]
            except self._ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None) or error
                raise TiewiseError(f"data set: cannot be read ({type(cause).__name__}: {_brief(cause)}).") from None

    @contextmanager
    def _settings(self, context: Any) -> Iterator[None]:
        """Blocks in their order where it matters, and no bars; afterwards as before."""
        options = context.execution_options
        before = options.preserve_order, context.enable_progress_bars
        options.preserve_order, context.enable_progress_bars = self._ordered or before[0], False
        try:
            yield
        finally:
            options.preserve_order, context.enable_progress_bars = before


def said(note: bytes) -> Answer:
    """What a shard says of itself, and how many bytes its counts take; what is wrong with it is raised."""
    answer: Answer = unpacked(note)
    if answer.problem:
        raise InputError(*answer.problem.split("\n"))
    return answer


def _counted(shared: list[Any], method: str, shard: Any, *more: Any) -> tuple[bytes, bytes]:
    return answered(partial(getattr(_fetched(shared[0]), method), shard, *more))


def _sum(sizes: tuple[int, int], *answers: bytes) -> bytes:
    return added(sizes, answers)


class _Actor:
    """A worker that keeps its GPU, and what it put there, from shard to shard."""

    def counted(self, shared: list[Any], method: str, shard: Any, *more: Any) -> tuple[bytes, bytes]:
        return _counted(shared, method, shard, *more)


class _Block:
    """The same for the blocks of a data set."""

    def __init__(self, shared: list[Any], method: str, more: list[Any]):
        self._work = shared, method, more

    def __call__(self, table: Any) -> Any:
        return _block(table, *self._work)


def _block(table: Any, shared: list[Any], method: str, more: list[Any]) -> Any:
    """The answer to a block, as a table of one row; of none for an empty block."""
    arrow = import_module("pyarrow")
    rest = [*import_module("ray").get(more), ""] if more else []
    answers = [_counted(shared, method, table, *rest)] if table.num_rows else []
    columns = zip(("note", "counts"), zip(*answers, strict=True) if answers else ((), ()), strict=True)
    return arrow.table({name: arrow.array(column, arrow.large_binary()) for name, column in columns})


@lru_cache(maxsize=1)
def _fetched(reference: Any) -> Any:
    """What a reference stands for, fetched once in the life of a worker."""
    return import_module("ray").get(reference)


def _brief(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"
