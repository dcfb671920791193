"""How a criterion's values are understood: by its scale, or, without a study file, by looking at them.

A guess is always said aloud, with the option that overrules it.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from palaver.schema import Binary, Likert, Ordinal, Pairwise, RankMagnitude, Real, Scale
from palaver.schema.scale import LARGEST, Bounds, Form, Level

MAX_OPTIONS = 30
_NUMBER = f"expected {Real().describe()}"


@dataclass(frozen=True)
class Treatment:
    """What kind of judgement a criterion is and how it enters statistics."""

    criterion: str
    kind: Form
    """A number, a pair (win, tie or loss against another system) or boxes."""
    level: Level
    scale: Scale | None
    guessed: str
    """Why, when no study file said so; empty otherwise."""
    options: tuple[str, ...] = ()
    exclusive: tuple[str, ...] = ()

    @property
    def is_magnitude(self) -> bool:
        return self.level == "ratio"

    @property
    def reference(self) -> float:
        return 100.0 if self.scale is None else self.scale.reference_value

    @property
    def default_normalisation(self) -> str:
        """Magnitudes are ratios, so their logarithms are what can be averaged."""
        return "raw" if self.scale is None else self.scale.default_normalisation

    def describe(self, normalisation: str) -> str:
        """One sentence for reports."""
        what = (
            self.scale.describe()
            if self.scale is not None
            else {
                "number": "numbers",
                "pair": "win, tie or loss",
                "boxes": f"any of {', '.join(self.options)}",
            }[self.kind]
        )
        how = (
            "" if normalisation == "raw" or self.kind != "number" else f", scores are {normalisation} values"
        )
        return f"{what} ({self.level}{how})" + (f"; {self.guessed}" if self.guessed else "")


def treat(
    criterion: str, rows: pl.DataFrame, scale: Scale | None, *, screens: bool
) -> tuple[Treatment, pl.Expr, str]:
    """How `criterion` is treated, which rows fit (as an expression), and what was expected of the others."""
    if scale is None:
        return _guess(criterion, rows, screens)
    choices = scale.choices()
    treatment = Treatment(
        criterion,
        scale.form,
        scale.level,
        scale,
        guessed="",
        options=tuple(c.value for c in choices) if scale.form == "boxes" else (),
        exclusive=tuple(c.value for c in choices if c.alone),
    )
    expected = f"expected {scale.describe()}"
    if scale.form == "pair":
        return treatment, _outcome_fits(scale), f"{expected} and the other system in the column 'against'"
    if scale.form == "boxes":
        texts = rows["text"].unique().drop_nulls().to_list()
        fitting = [text for text in texts if _parses(scale, text)]
        return treatment, pl.col("text").cast(pl.String).is_in(fitting).fill_null(False), expected
    return treatment, _number_fits(scale.bounds), expected


def _number_fits(bounds: Bounds) -> pl.Expr:
    value = pl.col("value")
    fits = value.is_finite() & value.is_between(bounds.low, bounds.high)
    if bounds.step is not None:
        steps = (value - bounds.low) / bounds.step
        fits = fits & ((steps - steps.round()).abs() <= bounds.tolerance)
    return fits.fill_null(False)


def _parses(scale: Scale, text: str) -> bool:
    try:
        scale.parse(text)
    except ValueError:
        return False
    return True


def _outcome_fits(scale: Scale) -> pl.Expr:
    """Words or their numbers. Without `against` there is nothing to compare with."""
    word = pl.col("text").cast(pl.String).str.to_lowercase().is_in(list(scale.outcomes))
    number = pl.col("value").is_in(list(scale.outcomes.values()))
    fits = word.fill_null(False) | number.fill_null(False)
    other = pl.col("against").cast(pl.String) != pl.col("system").cast(pl.String)
    return fits & other.fill_null(False)


def _usable() -> pl.Expr:
    return (pl.col("value").is_finite() & (pl.col("value").abs() <= LARGEST)).fill_null(False)


def _guess(criterion: str, rows: pl.DataFrame, screens: bool) -> tuple[Treatment, pl.Expr, str]:
    if rows["against"].null_count() < rows.height:
        scale = Pairwise()
        treatment = Treatment(
            criterion, "pair", scale.level, scale, "a pairwise criterion, as 'against' is given"
        )
        expected = f"expected {scale.describe()} and the other system in 'against'"
        return treatment, _outcome_fits(scale), expected
    n_numbers = rows.height - rows["value"].null_count()  # nan and inf are meant as numbers, too
    if n_numbers * 2 >= rows.height:
        return _guess_number(criterion, rows.filter(_usable())["value"], screens), _usable(), _NUMBER
    texts = rows["text"].cast(pl.String).unique().drop_nulls().to_list()
    options = sorted(
        {part.strip() for text in texts for part in text.replace("\n", "|").split("|") if part.strip()}
    )
    if 0 < len(options) <= MAX_OPTIONS:
        alone = ("ok",) if "ok" in options and len(options) > 1 else ()
        treatment = Treatment(
            criterion,
            "boxes",
            "nominal",
            None,
            "words, so a choice among the ones that occur",
            tuple(options),
            alone,
        )
        return treatment, pl.col("text").is_not_null(), "expected a choice"
    return Treatment(criterion, "number", "interval", None, "mostly text"), _usable(), _NUMBER


def _guess_number(criterion: str, values: pl.Series, screens: bool) -> Treatment:
    low, high = float(values.min() or 0), float(values.max() or 0)  # type: ignore[arg-type]
    whole = bool((values == values.round()).all())
    if screens and low > 0:
        digits = min(max(6, len(str(int(high)))), 15)
        magnitude = RankMagnitude(whole_numbers=whole, max_digits=digits)
        return Treatment(
            criterion, "number", "ratio", magnitude, "several outputs on a screen, so read as RankME"
        )
    if whole and low >= 0 and high <= 1:
        return Treatment(criterion, "number", "nominal", Binary(), "only 0 and 1 occur")
    if whole and low >= 0 and high <= 10 and high > low:
        steps = Ordinal if low == 0 else Likert
        why = f"whole numbers from {low:.0f} to {high:.0f} occur"
        return Treatment(criterion, "number", "ordinal", steps(low=int(low), high=int(high)), why)
    return Treatment(
        criterion,
        "number",
        "interval",
        None,
        "no study file says more; for magnitude estimates give one, or --normalise log",
    )
