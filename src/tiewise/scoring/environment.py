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
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ieee_arithmetic"]


@contextmanager
def ieee_arithmetic() -> Iterator[None]:
    """A context, or a decorator, in which settings of the process do not change scores. It may be nested."""
    with ExitStack() as stack:
        stack.enter_context(np.errstate(all="ignore"))  # overflow is found in the results
        stack.enter_context(_keep_subnormals())
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "autocast"):
            device_types = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
            for device_type in device_types:
                if torch.is_autocast_enabled(device_type):
                    stack.enter_context(torch.autocast(device_type, enabled=False))
            if "cuda" in device_types:
                stack.enter_context(_exact_gpu_products(torch))
        yield


# -- subnormal numbers ------------------------------------------------------------------------------------------------


@contextmanager
def _keep_subnormals() -> Iterator[None]:
    if not _flushes_subnormals():
        yield
        return
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


def _flushes_subnormals() -> bool:
    """Whether this thread treats subnormal numbers as zero."""
    smallest = np.array([1], dtype=np.int32).view(np.float32)
    return float((smallest * np.float32(2))[0]) == 0


# -- torch on a GPU ---------------------------------------------------------------------------------------------------


class _Setting(NamedTuple):
    """A global setting of torch, and the value with which products are exact."""

    get: Callable[[], Any]
    set: Callable[[Any], None]
    exact: Any


_lock = threading.Lock()
_active_threads = 0
_saved: list[Any] = []


@contextmanager
def _exact_gpu_products(torch: Any) -> Iterator[None]:
    global _active_threads
    settings = _torch_settings(torch)
    with _lock:
        if not _active_threads:
            _saved[:] = [setting.get() for setting in settings]
            for setting in settings:
                setting.set(setting.exact)
        _active_threads += 1
    try:
        yield
    finally:
        with _lock:
            _active_threads -= 1
            if not _active_threads:
                for setting, value in reversed(list(zip(settings, _saved, strict=True))):
                    setting.set(value)


@cache
def _torch_settings(torch: Any) -> tuple[_Setting, ...]:
    matmul = torch.backends.cuda.matmul
    settings = []

    def add_attribute(name: str, exact: Any) -> None:
        settings.append(_Setting(lambda: getattr(matmul, name), lambda value: setattr(matmul, name, value), exact))

    if hasattr(matmul, "fp32_precision"):  # torch 2.9 and later; the older setting must not be used with it
        add_attribute("fp32_precision", "ieee")
    else:
        settings.append(_Setting(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"))
    for name in (
        "allow_fp16_accumulation",
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    ):
        try:
            getattr(matmul, name)
        except (AttributeError, AssertionError):
            continue
        add_attribute(name, False)

    def deterministic_mode() -> tuple[bool, bool]:
        return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()

    def set_deterministic_mode(value: tuple[bool, bool]) -> None:
        torch.use_deterministic_algorithms(value[0], warn_only=value[1])

    settings.append(_Setting(deterministic_mode, set_deterministic_mode, (False, False)))
    return tuple(settings)
