"""A comparison in every format: rows of pairs and JSON for programs, tables and sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tiewise._version import __version__
from tiewise.analysis.comparison import Compared
from tiewise.analysis.comparison.paper_table import paper_section
from tiewise.analysis.comparison.sections import ComparisonSection
from tiewise.analysis.unjudged_bounds import Unjudged
from tiewise.data.progress import Progress
from tiewise.output.options import OutputOptions
from tiewise.tables.data_formats import round_floats
from tiewise.tables.model import Section, Table

__all__ = ["COMPARISON_COLUMNS", "ComparisonTables"]

#: The columns of TSV, CSV and Parquet and the keys of JSON Lines, as stable as those of ``tiewise evaluate``.
COMPARISON_COLUMNS = {
    "measure": "the measure in its canonical spelling",
    "a": "the name of one run",
    "b": "the name of the run it is compared with; every difference is a − b",
    "queries": "how many queries are compared",
    "a_expected": "the expected value of a, as in `tiewise evaluate`",
    "b_expected": "the expected value of b",
    "difference": "the expected difference, over all orders of the tied documents",
    "minimum": "the lowest difference that orders of the tied documents can give",
    "maximum": "the highest",
    "std": "its standard deviation over the orders",
    "certain": "whether one of the two is ahead in every order",
    "probability": "how likely a is ahead in a random order",
    "probability_equal": "how likely they are equal",
    "probability_less": "how likely b is",
    "method": "how these were computed: exact, or sampled (n=…)",
    "p_value": "of the test that `--test` names, on the queries' expected differences, two-sided",
    "p_holm": "the same, corrected for all pairs and measures of the comparison",
    "ci_low": "the interval of the expected difference over the sample of queries (`--confidence`): its lower end",
    "ci_high": "its upper end",
    "ci_order_low": "the interval of the difference in one order of ties, chosen once at random: its lower end",
    "ci_order_high": "its upper end",
    "effect": "the mean of the queries' differences over their standard deviation",
    "wins": "queries in which a's expectation is higher",
    "losses": "queries in which b's is",
    "ties": "queries in which they are equal",
    "flip": "whether two tools name different winners because they break ties differently",
    "verdict": "all of that in sentences",
    "a_lower": "with `--unjudged`, for measures that it bounds: the value of a if unjudged documents are worth nothing",
    "a_upper": "if they are worth as much as can be",
    "a_condensed": "if they are taken out of the lists",
    "b_lower": "the same for b",
    "b_upper": "the same for b",
    "b_condensed": "the same for b",
    "exact_range": "whether orders of the tied documents reach minimum and maximum, or these are only bounds",
    "probability_error": "the standard error of probability, if orders were sampled",
    "std_error": "the standard error of std, if orders were sampled for it",
    "any_tie_order": "whether the same run is ahead however ties are ordered: yes, no, or equal in every order",
    "other_queries": "whether the difference would hold for other queries: yes (p_holm < 0.05), unclear, or unknown "
    "(one query)",
}


@dataclass(frozen=True)
class ComparisonTables:
    """A comparison to show, with the bounds over unjudged documents if there are any."""

    compared: Compared
    unjudged: Mapping[str, Unjudged] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    progress: Progress | None = None  #: called with the number of pairs that are done, and of all

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        return (*self.compared.notes, *self.remarks)

    def section(self, options: OutputOptions) -> Section:
        """A row for each measure or each system, and sentences below; in LaTeX the table of a paper."""
        if options.format == "latex":
            return paper_section(self.compared, numbers=options.numbers)
        shown = ComparisonSection(self.compared, options.numbers, unjudged=self.unjudged, progress=self.progress)
        return shown.build(options.notes)

    def records(self, options: OutputOptions) -> Table:
        """Every pair in every measure."""
        return Table.of_records(COMPARISON_COLUMNS, self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        for pair in self.compared.pairs(self.progress):
            plain = pair.to_dict()
            for side, system in (("a", pair.a), ("b", pair.b)):
                plain[f"{side}_expected"] = self.compared.estimate(system, pair.measure).expected
                plain |= self._unjudged_bounds(side, system, pair.measure)
            plain |= {name: plain["difference"][name] for name in ("minimum", "maximum", "std")}
            plain["difference"] = pair.difference.expected
            for name in ("ci", "ci_order"):
                plain[f"{name}_low"], plain[f"{name}_high"] = plain[name] or (None, None)
            yield plain

    def _unjudged_bounds(self, side: str, system: str, measure: str) -> dict[str, float | None]:
        """The bounds of one run over unjudged documents, as columns."""
        known = self.unjudged.get(system)
        bounds = known.get(measure) if known else None
        parts = (bounds.lower, bounds.upper, known.condensed[measure]) if known and bounds else (None, None, None)
        names = (f"{side}_lower", f"{side}_upper", f"{side}_condensed")
        return {name: None if part is None else part.expected for name, part in zip(names, parts, strict=True)}

    def document(self, options: OutputOptions) -> dict[str, Any]:
        """How the runs were compared, the leaderboards, and every pair with the names of its attributes in Python."""
        found = self.compared
        names = ("baseline", "orders", "test", "confidence", "resamples", "seed", "queries")
        plain: dict[str, Any] = {
            "version": __version__,
            "runs": found.sources,
            **{name: getattr(found, name) for name in names},
            "notes": list(options.notes),
            "leaderboards": {
                measure.name: {"tau": found.tau(measure), "rows": [dict(row) for row in found.leaderboard(measure)]}
                for measure in found.measures
            },
            "pairs": [pair.to_dict() for pair in found.pairs(self.progress)],
        }
        if self.unjudged:
            plain["unjudged"] = {name: one.to_dict() for name, one in self.unjudged.items()}
        document: dict[str, Any] = round_floats(plain, options.digits)
        return document
