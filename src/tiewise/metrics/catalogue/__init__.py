"""The measures, a module for each family. To add one, write a class in the module of its family.

Each class is a definition on a list without ties, Eq. (1) of `tiewise.metrics.definition`. At the end of the module it
becomes a value, under its name without the underscore; the class attribute `aliases` holds the spellings of other
tools. Where a class has a `law` of its own, that is the closed form for a tie group of `size` documents (`inside` of
them within the cutoff) after `start` others, with `relevant` relevant documents in it and `seen` above it.

The measures are listed everywhere in the order of these imports; `__all__` of a family names its measures.
"""

from tiewise.metrics.catalogue import sets, first_relevant, average_precision, discounted_gain, cascades
from tiewise.metrics.catalogue import user_models, preferences, geometric_means, diversity
from tiewise.metrics.catalogue.sets import *
from tiewise.metrics.catalogue.first_relevant import *
from tiewise.metrics.catalogue.average_precision import *
from tiewise.metrics.catalogue.discounted_gain import *
from tiewise.metrics.catalogue.cascades import *
from tiewise.metrics.catalogue.user_models import *
from tiewise.metrics.catalogue.preferences import *
from tiewise.metrics.catalogue.geometric_means import *
from tiewise.metrics.catalogue.diversity import *

#: The names of the measures by family.
FAMILIES: dict[str, list[str]] = {
    "sets and counts": sets.__all__,
    "first relevant document": first_relevant.__all__,
    "average and interpolated precision": average_precision.__all__,
    "gains": discounted_gain.__all__,
    "cascades": cascades.__all__,
    "user models (C/W/L)": user_models.__all__,
    "preferences and compatibility": preferences.__all__,
    "geometric means": geometric_means.__all__,
    "diversity": diversity.__all__,
}
#: The names of all measures. There is no `__all__`: type checkers cannot add up lists.
MEASURES = tuple(name for names in FAMILIES.values() for name in names)
