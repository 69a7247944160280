"""`cached_property` without a lock, `cached_method`, and values that are made when they are looked at.

The property of Python 3.10 and 3.11 holds a lock of the class while it computes: another thread waits for it, whatever
its object, and a process forked at that moment waits forever. Without the lock two threads may both compute a value;
the first one is kept. Python 3.12 has no lock either.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

__all__ = ["LazyMapping", "cached_method", "cached_property"]

Key = TypeVar("Key")
Value = TypeVar("Value")
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
        found = vars(self).get(name)
        if found is None:
            found = vars(self).setdefault(name, {})
        key = arguments
        try:
            return found[key]
        except KeyError:
            pass
        except TypeError:
            key = tuple(one for one in arguments if isinstance(one, Hashable))
        if key not in found:
            found[key] = method(self, *arguments)
        return found[key]

    return cast(Method, wrapper)


class LazyMapping(Mapping[Key, Value]):
    """Values by key, each made when it is first looked at: by a function, or by `_make_value` of a subclass.

    >>> squares = LazyMapping([2, 3], lambda number: number**2)
    >>> list(squares), squares[3]
    ([2, 3], 9)
    """

    def __init__(self, keys: Iterable[Key], make: Callable[[Key], Value] | None = None):
        self._keys, self._make = dict.fromkeys(keys), make
        self._made: dict[Key, Value] = {}

    def _make_value(self, key: Key) -> Value:
        assert self._make is not None
        return self._make(key)

    def __getitem__(self, key: Key) -> Value:
        if key not in self._made:
            if key not in self._keys:
                raise KeyError(key)
            self._made[key] = self._make_value(key)
        return self._made[key]

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __reduce__(self) -> tuple[type[dict[Key, Value]], tuple[dict[Key, Value]]]:
        return dict, (dict(self),)
