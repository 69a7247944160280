"""Settings of the process that would change scores, set aside while scores are computed.

- Flushing subnormal numbers to zero (`torch.set_flush_denormal`, libraries compiled with -ffast-math) is a state of the
  CPU's registers in the calling thread.
- `torch.autocast` computes products in a low precision. It is a state of the calling thread.
- TF32 products, float16 accumulation, reduced-precision reductions and deterministic mode are global settings of torch.
  They are changed only for work on a device, and only once for all threads that are at work there; the last thread
  restores them.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

__all__ = ["unaffected", "unaffected_by_settings"]

P = ParamSpec("P")
R = TypeVar("R")


def unaffected_by_settings(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose results do not depend on settings around the call."""

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        with unaffected():
            return function(*args, **options)

    return call


@contextmanager
def unaffected() -> Iterator[None]:
    """Set aside what would change scores; work that is done in here again changes nothing."""
    with ExitStack() as stack:
        stack.enter_context(np.errstate(all="ignore"))  # what overflows is found by its result
        stack.enter_context(_subnormals_kept())
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "autocast"):
            kinds = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
            for kind in kinds:
                if torch.is_autocast_enabled(kind):
                    stack.enter_context(torch.autocast(kind, enabled=False))
            if len(kinds) > 1:
                stack.enter_context(_device_settings(torch))
        yield


# -- subnormal numbers ------------------------------------------------------------------------------------------------


@contextmanager
def _subnormals_kept() -> Iterator[None]:
    if not _flushes():
        yield
        return
    torch = sys.modules.get("torch")
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        before = ctypes.create_string_buffer(256)  # larger than fenv_t
        library.fegetenv(before)
        library.fesetenv(ctypes.c_void_p(-1))  # FE_DFL_ENV of glibc and musl
        try:
            yield
        finally:
            library.fesetenv(before)
    elif torch is not None and torch.set_flush_denormal(False):
        try:
            yield
        finally:
            torch.set_flush_denormal(True)
    else:
        yield


def _flushes() -> bool:
    """Whether this thread takes subnormal numbers for zero."""
    least = np.array([1], dtype=np.int32).view(np.float32)
    return float((least * np.float32(2))[0]) == 0


# -- torch on a device ------------------------------------------------------------------------------------------------


class _Settings:
    """Global settings of torch while some threads score on a device."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.before: list[tuple[Callable[[Any], None], Any]] = []


_settings = _Settings()


@contextmanager
def _device_settings(torch: Any) -> Iterator[None]:
    with _settings.lock:
        if not _settings.users:
            _settings.before = [(put, get()) for get, put, _ in _switches(torch)]
            for _, put, wanted in _switches(torch):
                put(wanted)
        _settings.users += 1
    try:
        yield
    finally:
        with _settings.lock:
            _settings.users -= 1
            if not _settings.users:
                for put, value in reversed(_settings.before):
                    put(value)


@cache
def _switches(torch: Any) -> tuple[tuple[Callable[[], Any], Callable[[Any], None], Any], ...]:
    """How each setting is read and written, and the value under which products are exact."""
    matmul = torch.backends.cuda.matmul
    found = []

    def attribute(name: str, wanted: Any) -> None:
        def put(value: Any) -> None:
            setattr(matmul, name, value)

        found.append((lambda: getattr(matmul, name), put, wanted))

    if hasattr(matmul, "fp32_precision"):  # torch 2.9 and later; the older switch must not be touched beside it
        attribute("fp32_precision", "ieee")
    else:
        found.append((torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"))
    for name in (
        "allow_fp16_accumulation",
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    ):
        try:
            getattr(matmul, name)
        except (AttributeError, AssertionError):
            continue
        attribute(name, False)

    def mode() -> tuple[bool, bool]:
        return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()

    def set_mode(value: tuple[bool, bool]) -> None:
        torch.use_deterministic_algorithms(value[0], warn_only=value[1])

    found.append((mode, set_mode, (False, False)))
    return tuple(found)
