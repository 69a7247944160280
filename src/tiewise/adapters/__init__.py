"""Adapters: the interfaces of other packages on the exact arithmetic of Tiewise.

`ir_measures` and `pytrec_eval` are drop-ins: change one import line, and everything else stays the same, including the
numbers, because a drop-in breaks ties as its package does. ``value="expected"`` returns the expectation over all orders
of the ties instead. The package itself need not be installed. `mteb`, `sentence_transformers` and `transformers` extend
those libraries; `ray` evaluates runs in shards; `index` compares an index of vectors with the exact ranking.
"""
