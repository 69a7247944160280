"""IEEE arithmetic while scores are computed, whatever settings the process has.

- Flushing subnormal numbers to zero (`torch.set_flush_denormal`, libraries compiled with -ffast-math) is a state of the
  CPU in the calling thread.
- `torch.autocast` computes products in low precision. It is a state of the calling thread.
- TF32 products, float16 accumulation, reduced-precision reductions and deterministic mode are global settings of torch.
  They are changed only where there is a GPU, and once for all threads that compute scores; the last thread restores
  them.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, TypeAlias

import numpy as np


@contextmanager
def ieee_arithmetic() -> Iterator[None]:
    """A context, or a decorator, in which settings of the process do not change scores. It may be nested."""
    with ExitStack() as stack:
        stack.enter_context(np.errstate(all="ignore"))  # overflow is found in the results
        if _flushes_subnormals():
            stack.enter_context(_keep_subnormals())
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "autocast"):
            has_gpu = torch.cuda.is_initialized() or torch.cuda.is_available()  # the second takes longer
            for device_type in ("cpu", "cuda") if has_gpu else ("cpu",):
                if torch.is_autocast_enabled(device_type):
                    stack.enter_context(torch.autocast(device_type, enabled=False))
            if has_gpu:
                stack.enter_context(_exact_gpu_products(torch))
        yield


@contextmanager
def _keep_subnormals() -> Iterator[None]:
    torch = sys.modules.get("torch")
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        saved = ctypes.create_string_buffer(256)  # larger than fenv_t
        library.fegetenv(saved)
        library.fesetenv(ctypes.c_void_p(-1))  # FE_DFL_ENV of glibc and musl
        try:
            yield
        finally:
            library.fesetenv(saved)
    elif torch is not None and torch.set_flush_denormal(False):
        try:
            yield
        finally:
            torch.set_flush_denormal(True)
    else:
        yield


_smallest = 5e-324  # a variable, so that its product is not computed when this module is compiled


def _flushes_subnormals() -> bool:
    """Whether this thread treats subnormal numbers as zero; one state of the CPU decides for all types."""
    return _smallest * 2 == 0


#: The functions that get and set a global setting of torch, and the value with which products are exact.
_Setting: TypeAlias = tuple[Callable[[], Any], Callable[[Any], None], Any]

_lock = threading.Lock()
_active_threads = 0
_saved: list[tuple[Callable[[Any], None], Any, Any]] = []


@contextmanager
def _exact_gpu_products(torch: Any) -> Iterator[None]:
    global _active_threads
    settings = _torch_settings(torch)
    with _lock:
        if not _active_threads:
            _saved[:] = [(put, value, exact) for get, put, exact in settings if (value := get()) != exact]
            for put, _, exact in _saved:
                put(exact)
        _active_threads += 1
    try:
        yield
    finally:
        with _lock:
            _active_threads -= 1
            if not _active_threads:
                for put, value, _ in reversed(_saved):
                    put(value)


@cache
def _torch_settings(torch: Any) -> tuple[_Setting, ...]:
    matmul = torch.backends.cuda.matmul

    def attribute(name: str, exact: Any) -> _Setting:
        return lambda: getattr(matmul, name), lambda value: setattr(matmul, name, value), exact

    def has(name: str) -> bool:
        try:
            return getattr(matmul, name) is not None
        except (AttributeError, AssertionError):
            return False

    def deterministic_mode() -> tuple[bool, bool]:
        return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()

    def set_deterministic_mode(value: tuple[bool, bool]) -> None:
        torch.use_deterministic_algorithms(value[0], warn_only=value[1])

    reductions = ("fp16_accumulation", "fp16_reduced_precision_reduction", "bf16_reduced_precision_reduction")
    return (
        attribute("fp32_precision", "ieee")  # torch 2.9 and later; the older setting must not be used with it
        if hasattr(matmul, "fp32_precision")
        else (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"),
        *(attribute(f"allow_{name}", False) for name in reductions if has(f"allow_{name}")),
        (deterministic_mode, set_deterministic_mode, (False, False)),
    )
