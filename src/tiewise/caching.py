"""`cached_property` without a lock, and `cached_method`.

The property of Python 3.10 and 3.11 holds a lock of the class while it computes: another thread waits for it, whatever
its object, and a process forked at that moment waits forever. Without the lock two threads may both compute a value;
the first one is kept. Python 3.12 has no lock either.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar, cast

__all__ = ["cached_method", "cached_property"]

Method = TypeVar("Method", bound=Callable[..., Any])

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """A property that is computed once for each object.

        >>> class Square:
        ...     side = 3
        ...     @cached_property
        ...     def area(self):
        ...         print("computed")
        ...         return self.side**2
        >>> square = Square()
        >>> square.area + square.area
        computed
        18
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            return vars(instance).setdefault(self.attrname, self.func(instance))


def cached_method(method: Method) -> Method:
    """A method that is computed once for each object and its hashable arguments; others, arrays, follow from these."""
    name = f"_cached_{method.__name__}"

    @functools.wraps(method)
    def wrapper(self: Any, *arguments: Any) -> Any:
        found, key = vars(self).setdefault(name, {}), tuple(one for one in arguments if isinstance(one, Hashable))
        if key not in found:
            found[key] = method(self, *arguments)
        return found[key]

    return cast(Method, wrapper)
