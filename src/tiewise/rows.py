"""Makers of the rows of `protocol`, from vectors, from the logits of a reranker, or from a model.

Each returns a dictionary of names to rows. Dictionaries can be joined: ``rows.vectors(…) | {"bm25": run}``.
"""

from typing import TYPE_CHECKING

from tiewise.results.optional import lazy_names

if TYPE_CHECKING:
    from tiewise.adapters.protocol_models import model
    from tiewise.scoring.row_makers.logits import logits
    from tiewise.scoring.row_makers.vectors import vectors

_MODULES = {
    "tiewise.adapters.protocol_models": "model",
    "tiewise.scoring.row_makers.logits": "logits",
    "tiewise.scoring.row_makers.vectors": "vectors",
}

__all__ = ["logits", "model", "vectors"]

__getattr__ = lazy_names(__name__, _MODULES)
