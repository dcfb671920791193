"""Normalisation of magnitude estimates, as for RankME (Novikova, Dušek & Rieser 2018, section 3).

Magnitude estimates are ratios to a standard and each rater picks their own range of numbers (Bard,
Robertson & Sorace 1996), so raters are compared on logarithms, on z scores within the rater, or both.
z uses the sample standard deviation (n - 1). A rater without spread sits at their own mean: z = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics.bootstrap import Floats
from palaver.tabular import Tabular

NORMALISATIONS: dict[str, str] = {
    "raw": "the values as they were given",
    "log": "natural logarithm",
    "z": "z score within each rater: raters' levels and ranges are made equal",
    "log-z": "natural logarithm, then z score within each rater",
    "ratio": "value divided by the value of the reference",
}
"""Name and one line of help, for the command line, the documentation and the report."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Normalised(Tabular):
    """Normalised values in the order given; nan where there is none, counted in `dropped`."""

    values: Floats
    method: str
    n_raters: int
    """Raters with at least one usable value; 0 for methods that do not look at raters."""
    dropped: int
    notes: tuple[str, ...]

    def _headline(self) -> str:
        return f"{len(self.values):,} values, {self.method}; {self.dropped:,} dropped"

    def _tables(self) -> dict[str, Any]:
        return {"values": {"value": self.values}}


def normalise(
    value: ArrayLike, rater: ArrayLike | None, method: str, *, reference: ArrayLike | None = None
) -> Normalised:
    """Normalise `value`, one row per judgement. `rater` (names or codes) is needed for "z" and "log-z" only.

    `reference`, for "ratio" only, is the standard's value: one number, or one per row.

    >>> normalise([50, 200], None, "ratio", reference=100).values.tolist()
    [0.5, 2.0]
    """
    if method not in NORMALISATIONS:
        raise ValueError(f"method must be one of {', '.join(NORMALISATIONS)}, not {method!r}")
    if (method == "ratio") != (reference is not None):
        raise ValueError(f"reference goes with method 'ratio', found method {method!r} and {reference=}")
    values = np.asarray(value, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"value must be 1-D, found shape {values.shape}")

    notes: list[str] = []
    values = _blank(values, ~np.isfinite(values), "missing or infinite values", notes)
    if method in ("log", "log-z", "ratio"):
        values = _blank(values, values <= 0, "values of zero or below", notes)
    if method in ("log", "log-z"):
        values = np.log(values)
    if method == "ratio":
        values = _ratio(values, np.asarray(reference, dtype=np.float64), notes)
    n_raters = 0
    dropped = int(np.isnan(values).sum())
    if method in ("z", "log-z"):
        codes = _rater_codes(rater, values)
        values, n_raters = _z_within_raters(values, codes, notes)
    return Normalised(values=values, method=method, n_raters=n_raters, dropped=dropped, notes=tuple(notes))


def _blank(values: Floats, unusable: NDArray[np.bool_], what: str, notes: list[str]) -> Floats:
    """The values with nan for the unusable ones, of which a note is made."""
    if not unusable.any():
        return values
    notes.append(f"{int(unusable.sum())} {what}")
    return np.where(unusable, np.nan, values)


def _ratio(values: Floats, reference: Floats, notes: list[str]) -> Floats:
    if reference.shape not in ((), values.shape):
        raise ValueError(
            f"reference must be one number or one per value {values.shape}, found {reference.shape}"
        )
    unusable = ~(np.isfinite(reference) & (reference > 0))
    if reference.ndim == 0 and unusable:
        raise ValueError(f"reference must be a positive number, found {reference}")
    standard = _blank(
        np.broadcast_to(reference, values.shape),
        np.broadcast_to(unusable, values.shape),
        "rows whose reference is not positive",
        notes,
    )
    return np.asarray(values / standard)


def _rater_codes(rater: ArrayLike | None, values: Floats) -> NDArray[np.int64]:
    names = np.asarray(rater)
    if rater is None or names.shape != values.shape:
        shape = "none" if rater is None else f"shape {names.shape}"
        raise ValueError(f"rater must name the rater of each of {values.size} values, found {shape}")
    return np.asarray(np.unique(names, return_inverse=True)[1])


def _z_within_raters(values: Floats, codes: NDArray[np.int64], notes: list[str]) -> tuple[Floats, int]:
    """The z scores of the defined values, and how many raters gave one."""
    given = np.flatnonzero(~np.isnan(values))
    x, code = values[given], codes[given]
    count = np.bincount(code)
    centred = x - (np.bincount(code, weights=x) / np.maximum(count, 1))[code]
    sd = np.sqrt(np.bincount(code, weights=centred**2) / np.maximum(count - 1, 1))
    # spread is judged by the values themselves, as equal floats need not have a variance of exactly 0;
    # nor need different ones have more than 0, when their squares are too small to be told from it
    example = np.zeros(count.size)
    example[code] = x  # any one value of each rater
    varies = (np.bincount(code, weights=x != example[code]) > 0) & (sd > 0)
    scores = np.full(values.size, np.nan)
    scores[given] = np.where(varies[code], centred / np.where(varies, sd, 1.0)[code], 0.0)
    single, flat = int((count == 1).sum()), int(((count > 1) & ~varies).sum())
    if single:
        notes.append(f"{single} raters with fewer than two values: z is 0")
    if flat:
        notes.append(f"{flat} raters who gave one value throughout: z is 0")
    return scores, int((count > 0).sum())
