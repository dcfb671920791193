"""How a criterion's values are understood: by its scale, or, without a study file, by looking at them.

A guess is always said aloud, with the option that overrules it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from palaver.schema import Binary, FreeText, Likert, Ordinal, Pairwise, RankMagnitude, Real, Scale
from palaver.schema.scale import Bounds, Form, Level
from palaver.schema.scale.text import LONGEST

MAX_OPTIONS = 30
_NUMBER = f"expected {Real().describe()}"


@dataclass(frozen=True)
class Treatment:
    """What kind of judgement a criterion is and how it enters statistics."""

    scale: Scale | None
    """None: no more is known than that the values are numbers, or words if there are `options`."""
    guessed: str = ""
    """Why, when no study file said so; empty otherwise."""
    options: tuple[str, ...] = ()
    exclusive: tuple[str, ...] = ()

    @property
    def kind(self) -> Form:
        """A number, a pair (win, tie or loss against another system), boxes or a text."""
        if self.scale is not None:
            return self.scale.form
        return "boxes" if self.options else "number"

    @property
    def level(self) -> Level:
        if self.scale is not None:
            return self.scale.level
        return "nominal" if self.options else "interval"

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
        if self.scale is not None:
            what = self.scale.describe()
        else:
            what = f"any of {', '.join(self.options)}" if self.options else "numbers"
        if normalisation != "raw" and self.kind == "number":
            what += f" ({self.level}, scores are {normalisation} values)"
        else:
            what += f" ({self.level})"
        return f"{what}; {self.guessed}" if self.guessed else what


def treat(rows: pl.DataFrame, scale: Scale | None, *, screens: bool) -> tuple[Treatment, pl.Expr, str]:
    """How a criterion is treated, which of its rows fit (as an expression), and what others lack."""
    if scale is None:
        return _guess(rows, screens)
    expected = f"expected {scale.describe()}"
    if scale.form == "pair":
        problem = f"{expected} and the other system in the column 'against'"
        return Treatment(scale), _outcome_fits(scale), problem
    if scale.form == "boxes":
        choices = scale.choices()
        alone = tuple(c.value for c in choices if c.alone)
        treatment = Treatment(scale, options=tuple(c.value for c in choices), exclusive=alone)
        texts = rows["text"].unique().drop_nulls().to_list()
        fitting = [text for text in texts if _parses(scale, text)]
        return treatment, pl.col("text").cast(pl.String).is_in(fitting).fill_null(False), expected
    if scale.form == "text":
        texts = rows["text"].unique().drop_nulls().to_list()
        fitting = [text for text in texts if _parses(scale, text)]
        return Treatment(scale), pl.col("text").cast(pl.String).is_in(fitting).fill_null(False), expected
    return Treatment(scale), _number_fits(scale.bounds), expected


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


_ORDERS = (
    "strongly disagree|disagree|somewhat disagree|slightly disagree|neutral|neither agree nor disagree|"
    "slightly agree|somewhat agree|agree|strongly agree",
    "terrible|awful|very bad|very poor|bad|poor|below average|fair|average|okay|acceptable|good|"
    "above average|very good|great|excellent|perfect",
    "never|rarely|seldom|sometimes|often|usually|very often|always",
    "not at all|slightly|a little|somewhat|moderately|fairly|very|very much|extremely|completely",
    "very low|low|medium|moderate|high|very high",
    "no|partly|maybe|yes",
    "false|true",
    "worse|same|better",
)
"""Scales that need no asking to be written down in their order."""


def usual_order(words: Iterable[str]) -> list[str]:
    """The words from the lowest to the highest, where all of them are of one well-known scale."""
    for order in _ORDERS:
        steps = order.split("|")
        if all(word.lower() in steps for word in words):
            return sorted(words, key=lambda word: steps.index(word.lower()))
    return []


def ordered_words(criterion: str, rows: pl.DataFrame) -> dict[str, int]:
    """The words of a criterion that probably have an order which nobody told us, with their counts.

    Nothing for numbers, for pairs, for text of all sorts, and for boxes: several in one cell, a name that
    begins with `check`, or "ok" among them.
    """
    is_number = (rows.height - rows["value"].null_count()) * 2 >= rows.height
    if is_number or rows["against"].null_count() < rows.height or criterion.startswith("check"):
        return {}
    counts = rows["text"].drop_nulls().cast(pl.String).value_counts(sort=True)
    words = dict(counts.sort("count", "text", descending=[True, False]).rows())
    are_boxes = any("|" in word or "\n" in word for word in words) or "ok" in words
    return (
        {} if are_boxes or _is_prose(list(words), rows.height) or not 1 < len(words) <= MAX_OPTIONS else words
    )


def _is_prose(texts: Sequence[str], n_ratings: int) -> bool:
    """Whether these are people's own words: mostly several of them, and mostly different ones."""
    several = [text for text in texts if len(text.split()) > 2]
    return len(texts) * 2 > n_ratings > 1 and len(several) * 2 > len(texts)


def _guess(rows: pl.DataFrame, screens: bool) -> tuple[Treatment, pl.Expr, str]:
    if rows["against"].null_count() < rows.height:
        scale = Pairwise()
        treatment = Treatment(scale, "a pairwise criterion, as 'against' is given")
        expected = f"expected {scale.describe()} and the other system in 'against'"
        return treatment, _outcome_fits(Pairwise(both_bad="Both are bad")), expected
    usable = _number_fits(Bounds())
    n_numbers = rows.height - rows["value"].null_count()  # nan and inf are meant as numbers, too
    if n_numbers * 2 >= rows.height:
        return _guess_number(rows.filter(usable)["value"], screens), usable, _NUMBER
    texts = rows["text"].cast(pl.String).unique().drop_nulls().to_list()
    if _is_prose(texts, rows.height):
        treatment = Treatment(FreeText(max_length=LONGEST, lines=40), "sentences, most of them different")
        return treatment, pl.lit(True), "expected a text"
    parts = {part.strip() for text in texts for part in text.replace("\n", "|").split("|")}
    options = tuple(sorted(parts - {""}))
    if 0 < len(options) <= MAX_OPTIONS:
        alone = ("ok",) if "ok" in options and len(options) > 1 else ()
        treatment = Treatment(None, "words, so a choice among the ones that occur", options, alone)
        return treatment, pl.col("text").is_not_null(), "expected a choice"
    return Treatment(None, "mostly text"), usable, _NUMBER


def _guess_number(values: pl.Series, screens: bool) -> Treatment:
    low, high = float(values.min() or 0), float(values.max() or 0)  # type: ignore[arg-type]
    whole = bool((values == values.round()).all())
    if screens and low > 0:
        digits = min(max(6, len(str(int(high)))), 15)
        magnitude = RankMagnitude(whole_numbers=whole, max_digits=digits)
        return Treatment(magnitude, "several outputs on a screen, so read as RankME")
    if whole and low >= 0 and high <= 1:
        return Treatment(Binary(), "only 0 and 1 occur")
    if whole and low >= 0 and high <= 10 and high > low:
        steps = Ordinal if low == 0 else Likert
        why = f"whole numbers from {low:.0f} to {high:.0f} occur"
        return Treatment(steps(low=int(low), high=int(high)), why)
    return Treatment(None, "no study file says more; for magnitude estimates give one, or --normalise log")
