"""The figures of docs/precisions.md: which numbers the formats have, and what they leave of 200 scores.

python -m experiments.numberformats [--out docs/img]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from experiments.drawing import draw
from experiments.number_lines import number_lines

Floats = NDArray[np.float64]


def numbers_of(dtype: Any) -> Floats:
    """All numbers of a floating-point type of 8 or 16 bits.

    >>> len(numbers_of(ml_dtypes.float8_e4m3fn)), float(numbers_of(np.float16).max())
    (253, 65504.0)
    """
    bits = 8 * np.dtype(dtype).itemsize
    patterns = np.arange(2**bits, dtype=f"uint{bits}").view(dtype)
    with np.errstate(invalid="ignore"):
        found: Floats = np.unique(patterns.astype(np.float64))
    return found[np.isfinite(found)]


def formats() -> dict[str, Floats]:
    """The numbers of each format; codes of 8, 4 and 1 bit are spread over the range of a dimension, here 0 to 1."""
    codes = {f"{name} codes": np.linspace(0, 1, count) for name, count in (("int8", 256), ("int4", 16), ("1-bit", 2))}
    return {
        "float16": numbers_of(np.float16),
        "bfloat16": numbers_of(ml_dtypes.bfloat16),
        "float8 e4m3": numbers_of(ml_dtypes.float8_e4m3fn),
        "float8 e5m2": numbers_of(ml_dtypes.float8_e5m2),
        **codes,
    }


def sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def pictures() -> dict[str, Any]:
    """The figures by the names of their files."""
    known = formats()
    near = {name: known[name] for name in ("float16", "bfloat16", "float8 e4m3", "float8 e5m2")}
    return {
        "number-lines.svg": number_lines(
            known,
            title="The numbers between 0 and 1",
            subtitle="A stroke for each number, solid where they stand too close to be drawn, and how many there are.",
        ),
        "number-lines-sigmoid.svg": number_lines(
            near,
            domain=(0.98, 1.0),
            points=sigmoid(np.linspace(4, 9, 200)),
            points_name="200 scores",
            title="The numbers between .98 and 1",
            subtitle="Above, in orange: the sigmoids of 200 logits from 4 to 9, which each format must tell apart.",
        ),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the figures."""
    draw("experiments.numberformats", __doc__, pictures, arguments)


if __name__ == "__main__":
    main()
