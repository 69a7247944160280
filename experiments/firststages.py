"""First stages of the example against a real model as the second stage: the figures of docs/stages.md.

python -m experiments.firststages [--out docs/img]

`spread` is Figure 3 of Moffat et al. (SIGIR-AP 2024): sets of equal recall that differ in rank-biased recall.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import tiewise as tw
from tiewise.example import file
from tiewise.figures import save
from tiewise.figures.theme import FAINT, INK, PALETTE, inline_data, layer_chart, load_altair

if TYPE_CHECKING:
    import altair as alt

SYSTEMS = ("bm25", "overlap", "minilm-1bit")

#: The lines of the figure, from the top down: label, dashes and colour of each column.
SPREAD_LINES = {
    "ceiling": ("ceiling", [6, 4], INK),
    "base_upper": ("base plus residual", [2, 2], PALETTE[4]),
    "full": ("full", [1, 0], PALETTE[1]),
    "base": ("base", [1, 0], PALETTE[0]),
}


def spread(
    reference: tw.Run, runs: Mapping[str, tw.Run], recall: float, *, depth: int, phi: float, k: int = 10
) -> list[dict[str, object]]:
    """Sets of equal recall that differ in rank-biased recall.

    A row for each system and query whose set of `depth` documents holds exactly this share of the reference's first `k`
    documents in every tie order. `base` counts only those ranks; `base_upper` adds what the other documents could add
    if the reference continued with them; `full` is measured against the whole reference; `ceiling` is the best value
    that such a set can reach. Rows are sorted by `base`, then `full`.
    """
    rows = []
    for system, run in runs.items():
        for query in reference.queries:
            ranking = tw.Ranking.from_run(reference, query)
            observed = tw.Ranking.from_run(run, query) if query in run.query_index else tw.Ranking([])
            n = min(k, len(ranking.items))
            found = tw.rbr(observed, ranking, depth=depth, weights=[1] * n).lower if n else tw.Estimate(0.0, 0.0, 0.0)
            if max(abs(found.minimum - recall), abs(found.maximum - recall)) > 1e-9:
                continue
            hits, size = round(recall * n), min(depth, len(observed.items))
            residual = phi**n * (1 - phi ** (size - hits))  # Eq. 9
            head = [phi**rank for rank in range(n)]
            base = (1 - phi**n) * tw.rbr(observed, ranking, depth=depth, weights=head).lower.expected if n else 0.0
            full = tw.rbr(observed, ranking, phi=phi, depth=depth)
            rows.append(
                {
                    "system": system,
                    "query": query,
                    "base": base,
                    "base_upper": base + residual,
                    "full": full.lower.expected,
                    "full_upper": full.upper.expected,
                    "ceiling": 1 - phi**hits + residual,
                }
            )
    return sorted(rows, key=lambda row: (row["base"], row["full"]))


def draw_spread(rows: list[dict[str, object]], title: str, phi: float) -> alt.LayerChart:
    """The rows of `spread` as lines."""
    alt = load_altair()
    place = list(range(1, len(rows) + 2))  # a step ends where the next begins
    data = inline_data({"place": place} | {name: [row[name] for row in [*rows, rows[-1]]] for name in SPREAD_LINES})
    x = alt.X("place:Q", title=f"{len(rows):,} sets of equal recall, in ascending order", axis=alt.Axis(grid=False))
    y = alt.Y("value:Q", title=f"rank-biased recall (φ = {phi:g})", scale=alt.Scale(zero=False, padding=10))
    labels, dashes, colors = (list(values) for values in zip(*SPREAD_LINES.values(), strict=True))
    label_of = ", ".join(f"{name}: '{label}'" for name, (label, _, _) in SPREAD_LINES.items())
    base = alt.Chart(data)
    folded = base.transform_fold(list(SPREAD_LINES), as_=["line", "value"])
    lines = folded.transform_calculate(what="{" + label_of + "}[datum.line]").mark_line(
        strokeWidth=1.8, interpolate="step-after"
    )
    area = base.mark_area(color=FAINT, opacity=0.8, interpolate="step-after")
    legend = alt.Legend(orient="top", symbolType="stroke")
    color = alt.Color("what:N", title=None, scale=alt.Scale(domain=labels, range=colors), legend=legend)
    dash = alt.StrokeDash("what:N", title=None, scale=alt.Scale(domain=labels, range=dashes))
    return layer_chart(
        [area.encode(x, alt.Y("base:Q"), alt.Y2("base_upper:Q")), lines.encode(x, y, color, dash)],
        title=title,
        description="Rank-biased recall of sets that all have the same recall.",
        height=300,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/img"), metavar="FOLDER")
    out = parser.parse_args().out
    reference, runs = (
        tw.read_run(file("minilm-deep.trec.bz2")),
        {name: tw.read_run(file(f"{name}.trec.bz2")) for name in SYSTEMS},
    )
    costs = json.loads(file("costs.json").read_text(encoding="utf-8"))
    found = tw.stages(reference, runs, depths=[10, 20, 50], phi=[0.8, 0.9], cost=costs, recall_at=10, complete=True)
    print(found)
    save(found.plot.pareto(), out / "pareto.svg")
    rows = spread(reference, runs, 0.8, depth=20, phi=0.8)
    save(draw_spread(rows, "Sets of 20 documents, all with recall 0.8 of the first 10", 0.8), out / "spread.svg")


if __name__ == "__main__":
    main()
