"""The HTML page: one file with everything about some runs. It opens anywhere and loads nothing from the network.

`content` measures, audits and compares the runs, and finds runs of one system in several precisions; `protocol_section`
checks a protocol that was given; `tie_orders` shows a query in many orders of its ties; `charts` prepares the figures
of `tiewise.figures` for the page; `verdicts` has the sentences. `rendering` fills the templates: the page, its style
and its script.
"""

from tiewise.page.rendering import write_page

__all__ = ["write_page"]
