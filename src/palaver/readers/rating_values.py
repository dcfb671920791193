"""Cells as values: words that stand for numbers, words for nothing at all, decimal commas."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import polars as pl

from palaver.readers.rating_options import MISSING, RatingOptions
from palaver.text_columns import ROW, as_text

_COMMA = r"^[+-]?\d+,\d+$"
_POINTS_AND_COMMA = r"^[+-]?\d{1,3}(\.\d{3})+,\d+$"
_POINTS = r"^[+-]?\d{1,3}(\.\d{3})+$"
_APOSTROPHE = r"^'([=+\-@])"
_DECIMAL_POINT = r"^[+-]?\d*\.(\d{1,2}|\d{4,})$"


class ValueCleaner:
    """Makes the values of a file plain, frame by frame: a number, a word that is meant, or nothing."""

    def __init__(self, options: RatingOptions, *, decimal_commas: bool) -> None:
        self.options = options
        self.decimal_commas = decimal_commas
        self.n_commas = 0
        """Numbers that had a decimal comma."""
        numbers = pl.Series(list(options.missing), dtype=pl.String).cast(pl.Float64, strict=False)
        self._missing_numbers = numbers.drop_nulls().to_list()  # 99 and -9 are codes for nothing, too

    def clean(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A frame of the long format with `value` made plain. Numbers that are numbers already stay."""
        if not self.options.texts:
            return self._clean(frame)
        written = is_text(frame, self.options.texts)
        if not written.any():
            return self._clean(frame)
        text = as_text(frame["value"].to_frame().with_row_index(ROW), Path("value"))["value"]
        # Our own CSV files keep a formula from spreadsheets by an apostrophe.
        text = text.str.strip_chars().replace("", None).str.replace(_APOSTROPHE, "$1")
        cleaned = self._clean(frame.with_columns(pl.when(~written).then(pl.col("value")).alias("value")))
        value = pl.when(written).then(text).otherwise(cleaned["value"].cast(pl.String))
        return cleaned.with_columns(value.alias("value"))

    def _clean(self, frame: pl.DataFrame) -> pl.DataFrame:
        column = frame["value"]
        if column.dtype.is_numeric():
            if self._missing_numbers:
                column = self._without_codes(column, column.cast(pl.Float64))
            if column.dtype.is_float() and column.is_nan().any():
                column = column.fill_nan(None)
            return frame.with_columns(column)
        text = self.plain_text(column)
        number = text.cast(pl.Float64, strict=False)
        if self._missing_numbers:
            text = self._without_codes(text, number)
        worded = text.is_not_null() & (number.is_null() | number.is_nan())
        frame = frame.with_columns(text.alias("value"))
        if not worded.any():
            return frame
        return frame.with_columns(pl.when(worded).then(self._meant()).otherwise(text).alias("value"))

    def _without_codes(self, column: pl.Series, number: pl.Series) -> pl.Series:
        kept = ~number.is_in(self._missing_numbers).fill_null(False)
        return column.to_frame().select(pl.when(kept).then(pl.col(column.name))).to_series()

    def plain_text(self, column: pl.Series) -> pl.Series:
        """The column as text, with decimal points where it has decimal commas."""
        text = as_text(column.to_frame().with_row_index(ROW), Path(column.name))[column.name]
        if not self.decimal_commas:
            return text
        commas = text.str.contains(_COMMA) | text.str.contains(_POINTS_AND_COMMA)
        n_commas = int(commas.sum())
        if not n_commas:
            return text
        self.n_commas += n_commas
        whole = text.str.contains(_POINTS)  # 1.500 among decimal commas is more than a thousand …
        if text.str.contains(_DECIMAL_POINT).any():
            whole = commas  # … unless decimal points stand there as well
        points = pl.col("text").str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        cells = pl.DataFrame({"text": text, "written_so": commas | whole})
        return cells.select(
            pl.when("written_so").then(points).otherwise("text").alias(column.name)
        ).to_series()

    def _meant(self) -> pl.Expr:
        """What a word stands for. Labels come first: a scale may begin with `None`."""
        word = pl.col("value")
        lower = word.str.to_lowercase()
        missing = (word == "None") | lower.is_in(list(MISSING)) | word.is_in(list(self.options.missing))
        if self.options.words:
            missing = missing & ~word.is_in(list(self.options.words))
        meant = pl.when(missing).then(None).otherwise(word)
        numbers = self.options.labels.numbers
        criterion = pl.col("criterion").cast(pl.String).str.to_lowercase().fill_null("")
        for name, labels in numbers.items():
            texts = {label: repr(number).removesuffix(".0") for label, number in labels.items()}
            number = lower.replace_strict(texts, default=None, return_dtype=pl.String)
            holds = criterion == name if name else ~criterion.is_in([n for n in numbers if n])
            meant = pl.when(holds & number.is_not_null()).then(number).otherwise(meant)
        return meant


def is_text(frame: pl.DataFrame, texts: Collection[str]) -> pl.Series:
    """Whether each row of the long format is an answer in free text."""
    return frame["criterion"].cast(pl.String).str.to_lowercase().is_in(list(texts)).fill_null(False)


def given_values(column: pl.Series, cleaner: ValueCleaner, criterion: str) -> pl.Series:
    """The values of one column of a wide file that are no empty cells."""
    frame = pl.DataFrame({"value": column, "criterion": pl.repeat(criterion, len(column), eager=True)})
    before = cleaner.n_commas
    values = cleaner.clean(frame)["value"].drop_nulls()
    cleaner.n_commas = before  # looked at, not read
    return values
