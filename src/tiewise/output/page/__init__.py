"""The page: one HTML file with all that is known of some runs, which opens anywhere and asks nobody for anything.

`findings` measures, audits and compares; `precisions` finds runs of one system in several precisions; `orders` plays a
query through the orders of its ties; `charts` takes figures of `tiewise.figures` and lets them follow the colours of
the page; `words` has the sentences. `rendering` puts all of it into what stands in `template`: the page, its style and
its script.
"""

from tiewise.output.page.rendering import write_report

__all__ = ["write_report"]
