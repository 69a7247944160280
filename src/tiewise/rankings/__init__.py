"""One set or ranking against another: precision, recall, RBP, RBR, RBO, RBA, MED-RBP, τ, and weights of ranks.

`tiewise` itself has what is about whole runs (`similarity`, `stages`, the measures `RBO`, `RBA`, `RBR` and `MED_RBP`),
and the functions of this module that most people want. A name is imported from its module when it is first used.
"""

from tiewise.results.optional import lazy_names, names_in_stub

_MODULES = names_in_stub(__file__)
__all__ = sorted(name for names in _MODULES.values() for name in names.split())
__getattr__ = lazy_names(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
