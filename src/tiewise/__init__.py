"""Tiewise tells how far a retrieval score can be trusted.

Every measure comes back as its exact expectation over all orders of the tied documents, with the lowest and the highest
value that an order could give, the standard deviation, and the bias of the number that another tool prints.

A public name is imported from its module when it is first asked for, so that ``import tiewise`` costs next to nothing.
`__init__.pyi` lists the names, and `tiewise.metrics.catalogue` the measures.
"""

from typing import Any

from tiewise._version import __version__ as __version__
from tiewise.results.optional import lazy_names, names_in_stub

_MODULES = names_in_stub(__file__)
_NAMES = [name for names in _MODULES.values() for name in names.split()]
_import = lazy_names(__name__, _MODULES, hints="tiewise.metrics.names")


def __getattr__(name: str) -> Any:
    if name in _NAMES or (name.startswith("_") and name != "__all__"):
        return _import(name)
    from tiewise.metrics import catalogue

    if name == "__all__":
        return sorted(["__version__", *catalogue.MEASURES, *_NAMES])
    return getattr(catalogue, name) if name in catalogue.MEASURES else _import(name)


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))
