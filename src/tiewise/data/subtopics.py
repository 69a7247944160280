"""`Subtopics`: labels of documents for the subtopics of their query, as diversity measures use them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiewise.caching import cached_property
from tiewise.data.columns import Codes, Floats, freeze, ranges


@dataclass(frozen=True, eq=False)
class Subtopics:
    """A label for each subtopic for which a document was judged, document by document.

    >>> two = Subtopics(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([1.0, 2.0, 1.0]), ("a", "b"))
    >>> two.row, two.take(np.array([1])).code, two.highest
    (array([0, 0, 1]), array([1]), array([2., 1.]))
    """

    offsets: Codes  # (n_documents + 1,): labels offsets[i] to offsets[i + 1] are those of document i
    code: Codes  # (n_labels,): the subtopic, as a place in `names`
    label: Floats  # (n_labels,)
    names: tuple[str, ...]  # the ids of subtopics; queries may share an id, not a subtopic

    def __post_init__(self) -> None:
        for field in fields(self):
            column = getattr(self, field.name)
            if isinstance(column, np.ndarray):
                object.__setattr__(self, field.name, freeze(column))

    def __len__(self) -> int:
        return len(self.label)

    @cached_property
    def row(self) -> Codes:
        """The document of each label, (n_labels,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @property
    def highest(self) -> Floats:
        """The highest label of each document, which has at least one, (n_documents,)."""
        highest: Any = np.maximum.reduceat(self.label, self.offsets[:-1]) if len(self) else np.zeros(0)
        return highest

    def take(self, rows: NDArray[Any]) -> Subtopics:
        """Those of some documents."""
        n = np.diff(self.offsets)[rows]
        labels = ranges(self.offsets[rows], n)
        return Subtopics(np.append(0, np.cumsum(n)), self.code[labels], self.label[labels], self.names)
