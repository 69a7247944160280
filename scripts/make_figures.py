"""Draw the pictures of the documentation as plain SVG, with nothing but the standard library.

A picture brings its own background, so that it can be read on a light page and on a dark one; it follows the reader's
choice of theme where the viewer tells it. `make_docs.py` writes the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["figures"]

WIDTH, LEFT, RIGHT = 760, 176, 728  # of the picture, and where its axes begin and end
CROWDED = 110  # dots nearer than this have their labels pointing away from each other

STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de }
  text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .title { font-size: 16px; font-weight: 600 }
  .name { font-weight: 600 }
  .small { font-size: 12px; fill: #59636e }
  .axis { stroke: #8c959f; stroke-width: 1 }
  .rival { stroke: #59636e; stroke-width: 1.5; stroke-dasharray: 4 4 }
  .range { fill: #0072b2; fill-opacity: .22 }
  .expected { stroke: #0072b2; stroke-width: 3 }
  .blue { fill: #0072b2; font-weight: 600 }
  .tool { fill: #d55e00 }
  .plain { fill: #59636e }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d }
    text { fill: #f0f6fc }
    .small { fill: #9198a1 }
    .axis { stroke: #656c76 }
    .rival { stroke: #9198a1 }
    .range { fill: #56b4e9; fill-opacity: .3 }
    .expected { stroke: #56b4e9 }
    .blue { fill: #56b4e9 }
    .tool { fill: #ff9e5e }
    .plain { fill: #9198a1 }
  }
"""


@dataclass(frozen=True)
class Axis:
    """A scale from the first tick to the last, drawn at a height."""

    ticks: Sequence[float]
    height: float
    digits: int

    def x(self, value: float) -> float:
        """Where a value lies."""
        low, high = self.ticks[0], self.ticks[-1]
        return LEFT + (RIGHT - LEFT) * (value - low) / (high - low)

    def drawn(self) -> Iterable[str]:
        """The line, its ticks and their labels."""
        yield line(LEFT, self.height, RIGHT, self.height, "axis")
        for tick in self.ticks:
            yield line(self.x(tick), self.height, self.x(tick), self.height + 5, "axis")
            yield words(self.x(tick), self.height + 19, number(tick, self.digits), "small", "middle")


@dataclass(frozen=True)
class Spread:
    """A run's range over the orders of its ties, its expectation, and what single orders give, by their names."""

    name: str
    tied: str
    minimum: float
    expected: float
    maximum: float
    orders: dict[str, float]

    def drawn(self, axis: Axis, height: float) -> Iterable[str]:
        """A bar with a line at the expectation, and a dot for each order."""
        yield from name(self.name, self.tied, height)
        low, middle, high = (axis.x(value) for value in (self.minimum, self.expected, self.maximum))
        yield f'<rect class="range" x="{low:.1f}" y="{height - 11}" width="{high - low:.1f}" height="22" rx="3"/>'
        yield line(middle, height - 16, middle, height + 16, "expected")
        yield words(middle, height + 31, f"expected {number(self.expected)}", "blue", "middle")
        yield words(low, height + 31, f"lowest {number(self.minimum)}", "small", "middle")
        yield words(high, height + 31, f"highest {number(self.maximum)}", "small", "middle")
        for order, value in self.orders.items():
            x = axis.x(value)
            crowded = any(0 < abs(axis.x(other) - x) < CROWDED for other in self.orders.values())
            side = ("start" if value > self.expected else "end") if crowded else "middle"
            shift = {"start": -6, "end": 6, "middle": 0}[side]
            yield f'<circle class="tool" cx="{x:.1f}" cy="{height}" r="6"/>'
            yield words(x + shift, height - 20, f"{order} {number(value)}", "", side)


def two_winners() -> str:
    """Three runs of TREC 2003 Robust, nDCG@10: what is printed, and what the order of ties can do.

    Measured on the runs and judgments of the track, which are not ours to ship; docs/why.md tells the story.
    """
    near = Axis([0.358, 0.360, 0.362, 0.364, 0.366, 0.368], 222, 3)
    far = Axis([0.0, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30], 352, 2)
    orders = {"file order": 0.3598, "by rank": 0.3636, "trec_eval": 0.3657}
    first = Spread("MU03rob01", "97.5 % of rows tied", 0.3587, 0.3629, 0.3675, orders)
    third = Spread(
        "rutcor03100", "100 % of rows tied", 0.0742, 0.1345, 0.2693, {"file order": 0.1213, "trec_eval": 0.1531}
    )
    rival = near.x(0.3613)
    parts = [
        words(20, 30, "Same run, same judgments: the order of tied documents picks the winner", "title"),
        words(20, 50, "nDCG@10, TREC 2003 Robust, 100 topics", "small"),
        line(rival, 78, rival, 222, "rival"),
        words(rival - 8, 78, "◂ UAms wins", "small", "end"),
        words(rival + 8, 78, "MU wins ▸", "small", "start"),
        *first.drawn(near, 126),
        *name("UAmsT03RDesc", "3 % of rows tied", 192),
        f'<circle class="plain" cx="{rival:.1f}" cy="192" r="6"/>',
        words(rival + 12, 196.5, "every order .3613", "", "start"),
        *near.drawn(),
        *third.drawn(far, 300),
        *far.drawn(),
    ]
    return svg(parts, 388, "Three TREC 2003 runs: single orders of ties against the expectation and its range")


def name(text: str, note: str, height: float) -> list[str]:
    """A run's name and a note below it, left of the axis."""
    return [words(20, height - 2, text, "name"), words(20, height + 15, note, "small")]


def number(value: float, digits: int = 4) -> str:
    """A number without the nought before its point, as the tables print it."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if value else "0"


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def words(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text."""
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def svg(parts: Iterable[str], height: int, title: str) -> str:
    """A picture from its parts."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n'
        f'<rect class="card" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>\n{body}\n</svg>\n'
    )


def figures() -> dict[str, str]:
    """Every picture by its file's name."""
    return {"two-winners.svg": two_winners()}
