"""The quantile of Student's t for intervals over queries, without SciPy: its import takes longer than a small call."""

from __future__ import annotations

from math import atan, cos, exp, lgamma, log, pi, sin, sqrt

NORMAL_QUANTILE = 1.959963984540054  #: of the normal distribution, 97.5 %
MANY = 300  #: from so many degrees of freedom on, the expansion is exact to twelve digits


def t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, for two-sided intervals of 95 %.

    >>> [round(t_quantile(freedom), 3) for freedom in (1, 2, 10, 199)]
    [12.706, 4.303, 2.228, 1.972]
    """
    found = _expand(freedom)
    if freedom >= MANY:
        return found
    if freedom < 3:
        return (12.706204736174694, 4.302652729749462)[freedom - 1]
    scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(freedom * pi)
    for _ in range(8):  # Newton's method
        density = 2 * scale * exp(-(freedom + 1) / 2 * log(1 + found**2 / freedom))
        step = (_central_probability(found, freedom) - 0.95) / density
        found -= step
        if abs(step) < 1e-14 * found:
            break
    return found


def _expand(freedom: int) -> float:
    """The expansion in powers of 1 / freedom (Abramowitz & Stegun, 26.7.5)."""
    x, n = NORMAL_QUANTILE, freedom
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + sum(term / n**power for power, term in enumerate(terms, 1))


def _central_probability(t: float, freedom: int) -> float:
    """P(|T| ≤ t) for a whole number of degrees of freedom (Abramowitz & Stegun, 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    square, odd = cos(angle) ** 2, freedom % 2
    term = cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= square * (k - 1) / k
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
