"""How numbers are written, for the page and the terminal alike. What is undefined is never shown as 0."""

from __future__ import annotations

import math
from collections.abc import Iterable

from palaver import tabular

DASH, MINUS = tabular.DASH, tabular.MINUS
number = tabular.show_fixed


def statistic(value: float) -> str:
    """A coefficient (ICC, alpha, kappa, correlation): two decimals, three where two would say 1 or 0.

    >>> statistic(0.8312), statistic(0.9961), statistic(1.0)
    ('0.83', '0.996', '1.00')
    """
    digits = 3 if 0.995 <= abs(value) < 1 or 0 < abs(value) < 0.005 else 2
    return number(value, digits)


def interval(low: float, high: float, digits: int | None = None) -> str:
    """`[low, high]`; an open end is a dash; empty when neither end is known.

    >>> interval(0.791, 0.862), interval(float("nan"), float("nan"))
    ('[0.79, 0.86]', '')
    """
    if not (math.isfinite(low) or math.isfinite(high)):
        return ""
    write = statistic if digits is None else (lambda value: number(value, digits))
    return f"[{write(low)}, {write(high)}]"


def p_value(p: float) -> str:
    """A p value as papers print it.

    >>> p_value(0.0004), p_value(0.0312), p_value(1.0)
    ('<.001', '.031', '1.000')
    """
    if not math.isfinite(p):
        return DASH
    if p < 0.001:
        return "<.001"
    if p > 0.999 and p < 1:
        return ">.999"
    text = f"{p:.3f}"
    return text[1:] if text.startswith("0") else text


def percent(value: float) -> str:
    """A share in per cent, with no more decimals than it needs.

    >>> percent(0.95), percent(0.999), percent(0.001), percent(1 / 3)
    ('95%', '99.9%', '0.1%', '33%')
    """
    if not math.isfinite(value):
        return DASH
    hundred = 100 * value
    near_an_end = 0 < hundred < 1 or 99 < hundred < 100
    text = f"{hundred:.1f}" if near_an_end else f"{hundred:.0f}"
    return f"{text.removesuffix('.0')}%"


def hundred(value: float) -> str:
    """A share or a cosine in hundredths with two decimals, as tables print them.

    >>> hundred(0.8312)
    '83.12'
    """
    return number(100 * value)


def count(value: int) -> str:
    """A whole number with thousands set apart."""
    return f"{value:,}".replace("-", MINUS)


def some(value: int, noun: str, plural: str = "") -> str:
    """A count with its noun.

    >>> some(1, "rater"), some(1200, "rating")
    ('1 rater', '1,200 ratings')
    """
    return f"{count(value)} {noun if value == 1 else plural or noun + 's'}"


def seconds(value: float) -> str:
    """A duration.

    >>> seconds(8.4), seconds(75), seconds(7200)
    ('8.4 s', '75 s', '120 min')
    """
    if not math.isfinite(value):
        return DASH
    if value < 10:
        return f"{value:.1f} s"
    return f"{value:.0f} s" if value < 300 else f"{value / 60:,.0f} min"


def decimals(values: Iterable[float]) -> int:
    """How many decimals tell `values` (the widths of intervals, or scores) apart: two significant digits."""
    sizes = sorted(abs(v) for v in values if math.isfinite(v) and v)
    if not sizes:
        return 2
    middle = sizes[len(sizes) // 2]
    return min(4, max(0, 1 - math.floor(math.log10(middle))))
