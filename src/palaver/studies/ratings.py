"""Ratings as one checked table: who rated, on what scale, and which of two answers counts.

Questions that need no table are answered in constant memory (see `palaver.studies.describe`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from palaver.errors import DataError, UserError, count_of, in_python, nearest
from palaver.progress import Progress, no_progress
from palaver.readers.rating_columns import FIELDS
from palaver.readers.rating_files import ratings_frame
from palaver.readers.rating_options import Labels, LabelsGiven, RatingOptions, Shape, make_labels
from palaver.readers.ratings import (
    BAD,
    FILE,
    ORDER,
    TYPES,
    RatingFrame,
    Source,
    bad_rows,
    read_rating_frame,
)
from palaver.schema import Rating, Study
from palaver.schema.rating import KINDS, Kind
from palaver.studies.conditions import apply_conditions
from palaver.studies.judgement_keys import drop_earlier, tell_repeats_apart, without_numbers
from palaver.studies.results import Reading
from palaver.studies.treatment import Treatment, ordered_words, treat, usual_order
from palaver.tables import TableSource, open_frame
from palaver.tabular import Tabular, few
from palaver.text_columns import ROW

ASKED: tuple[Kind, ...] = ("human", "user")
"""They answer the questions of the study and no others."""
ON_THE_SCALE: tuple[Kind, ...] = (*ASKED, "llm")
"""They answer on the scale of the study. Metrics and trained models measure in units of their own."""

BY: dict[Kind, str] = {
    "human": "people",
    "user": "users",
    "metric": "a metric",
    "model": "a trained model",
    "llm": "a language model",
}
"""Who rated, in words."""

TEXTS: dict[str, Any] = {
    **dict.fromkeys(("criterion", "item", "system"), pl.String),
    "turn": pl.Int32,
    **dict.fromkeys(("rater", "text"), pl.String),
}
"""The columns of answers in free text."""

_MOST_LISTED = 10


@dataclass(frozen=True, repr=False)
class RatingTable(Tabular):
    """Ratings as columns: codes for names, `value` for numbers, `text` for words (boxes, win/tie/loss).

    A criterion that several kinds rated is several criteria, one for each kind: `quality`, `quality (llm)`.
    """

    frame: pl.DataFrame
    treatments: Mapping[str, Treatment]
    kinds: Mapping[str, Kind]
    """Criterion -> who rated it."""
    names: Mapping[str, str]
    """Criterion -> its name in the files."""
    reading: Reading
    bad: pl.DataFrame
    """Rows left out because something in them is wrong: file, row, column, value, problem."""
    hashes: Mapping[str, str]
    is_wide: bool = False
    """Whether a row of a file may be several ratings."""
    texts: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=TEXTS))
    """Answers in free text: they have no numbers, so nothing else of the table sees them."""

    @property
    def criteria(self) -> tuple[str, ...]:
        """In order of first appearance."""
        return tuple(self.treatments)

    def _headline(self) -> str:
        rated = f"{count_of(self.frame.height, 'rating')} of {few(self.criteria)}"
        return f"{rated}; {few(self.reading.files)}"

    def _tables(self) -> dict[str, Any]:
        return {"ratings": self.frame.drop(ORDER), "bad": self.bad}

    def of(self, criterion: str) -> pl.DataFrame:
        """The rows of one criterion."""
        if self.criteria == (criterion,):
            return self.frame
        return self.frame.filter(pl.col("criterion") == criterion)


def read_ratings(
    sources: Source | Sequence[Source],
    *,
    study: Study | None = None,
    columns: Mapping[str, str] | None = None,
    shape: Shape = "auto",
    criteria: Sequence[str] | None = None,
    labels: LabelsGiven | None = None,
    missing: Sequence[str] = (),
    sheet: str | None = None,
    kinds: Mapping[str, Kind] | None = None,
    skip_bad: bool = False,
    progress: Progress = no_progress,
) -> RatingTable:
    """Read one or more rating files into a table.

    `columns` says which column is which field (`{"rater": "worker"}`), `shape` how the file is laid out,
    `criteria` which criteria to read, `labels` what words stand for (`["Poor", "Fair", "Good"]`, lowest
    first, `{"Poor": 1, "Good": 4}`, or criterion -> one of these), `missing` which further words mean no
    answer, `sheet` which sheet of a spreadsheet to read. `kinds` says who rated a file and overrules its
    column.

    Rows and cells that cannot be used raise `DataError` naming them, or with `skip_bad` are left out, counted
    and kept in `RatingTable.bad`.
    """
    options = RatingOptions(
        columns=columns or {},
        shape=shape,
        labels=make_labels(labels),
        missing=_names(missing),
        criteria=None if criteria is None else _names(criteria),
        sheet=sheet,
    )
    return read_rating_table(sources, options, study=study, kinds=kinds, skip_bad=skip_bad, progress=progress)


def read_rating_table(
    sources: Source | Sequence[Source],
    options: RatingOptions,
    *,
    study: Study | None = None,
    kinds: Mapping[str, Kind] | None = None,
    skip_bad: bool = False,
    progress: Progress = no_progress,
) -> RatingTable:
    """The same with what is said about the files as one value."""
    if study is not None:
        options = _with_study(options, study)
    ratings = read_rating_frame(sources, options, kinds=kinds, progress=progress)
    return _build(ratings, study, options.labels, skip_bad)


def ratings_from_frame(
    frame: Any,
    *,
    name: str = "frame",
    study: Study | None = None,
    columns: Mapping[str, str] | None = None,
    shape: Shape = "auto",
    criteria: Sequence[str] | None = None,
    labels: LabelsGiven | None = None,
    missing: Sequence[str] = (),
    kinds: Mapping[str, Kind] | None = None,
    skip_bad: bool = False,
) -> RatingTable:
    """The same from a polars or pandas frame (or anything that hands out Arrow) in one of the shapes.

    `name` is what errors and reports call it.
    """
    return read_ratings(
        open_frame(frame, name),
        study=study,
        columns=columns,
        shape=shape,
        criteria=criteria,
        labels=labels,
        missing=missing,
        kinds=kinds,
        skip_bad=skip_bad,
    )


def as_rating_table(source: Any, study: Study | None = None) -> RatingTable:
    """The ratings of a file, several files, a frame, a list of `Rating`, a judge or a simulation."""
    if isinstance(source, RatingTable):
        return source
    try:
        return _read_anything(source, study)
    except UserError as error:
        if in_python(error.hint) != error.hint:
            error.hint += "\ngive this to `read_ratings` or `ratings_from_frame`, and `analyse` their result"
        raise


def _read_anything(source: Any, study: Study | None) -> RatingTable:
    several = list(source) if isinstance(source, list | tuple) else [source]
    if several and all(isinstance(one, str | Path | TableSource) for one in several):
        return read_ratings(several, study=study)
    if several and all(isinstance(one, Rating) for one in several):
        return ratings_from_frame(ratings_frame(several), name="ratings", study=study)
    if isinstance(source, Tabular):
        frame = source.to_polars("ratings")
        return ratings_from_frame(frame, name=type(source).__name__, study=study)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "columns"):
        return ratings_from_frame(source, study=study)
    kinds = ", ".join(sorted({type(one).__name__ for one in several}))
    raise UserError(
        f"expected ratings, found {type(source).__name__}" + (f" of {kinds}" if several != [source] else ""),
        "give the path of a file, what `read_ratings` gives, a frame, or a list of `Rating`",
    )


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    """A single name is a list of one."""
    return (given,) if isinstance(given, str) else tuple(given)


def _with_study(options: RatingOptions, study: Study) -> RatingOptions:
    """With what a study says about its ratings."""
    return replace(
        options,
        labels=_with_scales(options.labels, study),
        words=frozenset(_words_of(study)),
        texts=frozenset(q.criterion.lower() for q in study.questions if q.scale.form == "text"),
        asked=[question.criterion for question in study.questions],
    )


def _words_of(study: Study) -> Iterator[str]:
    """The answers that the study's scales of words offer: a box may be called `NA`."""
    for question in study.questions:
        if question.scale.form != "number":
            yield from (choice.value for choice in question.scale.choices())


def _with_scales(labels: Labels, study: Study) -> Labels:
    """With the words that a study's scales have for their steps."""
    numbers = dict(labels.numbers)
    for question in study.questions:
        if question.scale.form == "number":
            steps = {c.label.lower(): float(c.value) for c in question.scale.choices() if c.label != c.value}
            if steps:
                numbers[question.criterion.lower()] = {**steps, **labels.of(question.criterion)}
    return replace(labels, numbers=numbers)


def _build(ratings: RatingFrame, study: Study | None, labels: Labels, skip_bad: bool) -> RatingTable:
    named = ", ".join(ratings.paths)
    table, criteria, wrong = _check_values(ratings, study, labels)
    bad = pl.concat([ratings.bad, wrong]).sort(FILE, ROW, maintain_order=True)
    is_wide = any(layout.kind != "long" for layout in ratings.layouts)
    if bad.height and not skip_bad:
        raise DataError(
            f"{named}: {count_bad(bad, is_wide)} of {ratings.n_rows:,} cannot be used",
            "mend them, or add --skip-bad to `study analyse` to leave them out "
            "(they are counted and written to bad-rows.csv); "
            "other commands take the ratings.parquet that it writes",
            _listed(bad, ratings.paths),
        )
    table, n_duplicates = drop_earlier(table)
    conditions = apply_conditions(table, study)
    table, texts = _take_texts(conditions.table, criteria)
    dropped = {
        "ratings that could not be used": ratings.n_bad + wrong.height,
        "no value given": ratings.n_missing,
        "earlier answers replaced by a later one": n_duplicates,
        "answers to a question that a changed answer no longer asks": conditions.n_dropped,
    }
    if table.is_empty() and texts.is_empty():
        raise DataError(f"{named}: no usable rating is left", problems=_listed(bad, ratings.paths))
    lost = [c.label for c in criteria if not c.n_ratings]
    left = set(table["criterion"].unique().cast(pl.String))
    held = [c for c in criteria if c.label in left]
    notes = [
        *ratings.notes,
        *(f"{label}: no usable rating is left" for label in lost),
        *conditions.notes,
        *_notes_on_kinds(held),
    ]
    table, notes_on_repeats = tell_repeats_apart(table)
    reading = Reading(
        files=ratings.paths,
        layout="; ".join(
            f"{name}: {layout.describe()}"
            for name, layout in zip(ratings.files, ratings.layouts, strict=True)
        ),
        n_rows=ratings.n_rows,
        n_ratings=table.height,
        dropped=tuple((reason, n) for reason, n in dropped.items() if n),
        notes=(*notes, *notes_on_repeats),
        conditions=conditions.rows,
    )
    return RatingTable(
        frame=table.select(ORDER, *TYPES),
        treatments={c.label: c.treatment for c in held},
        kinds={c.label: c.kind for c in held},
        names={c.label: c.name for c in held},
        reading=reading,
        bad=bad,
        hashes=ratings.files,
        is_wide=is_wide,
        texts=texts,
    )


def _take_texts(table: pl.DataFrame, criteria: Sequence[_Criterion]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The table without its criteria in free text, and these."""
    labels = [c.label for c in criteria if c.treatment.kind == "text"]
    if not labels:
        return table, pl.DataFrame(schema=TEXTS)
    is_text = pl.col("criterion").cast(pl.String).is_in(labels)
    texts = table.filter(is_text).select(pl.col(name).cast(kind) for name, kind in TEXTS.items())
    return table.filter(~is_text), texts


def count_bad(bad: pl.DataFrame, is_wide: bool) -> str:
    """`2 rows`, or of a wide file, where a row is several ratings, `3 cells in 2 rows`."""
    rows = count_of(bad.select(FILE, ROW).n_unique(), "row")
    return f"{count_of(bad.height, 'cell')} in {rows}" if is_wide else rows


@dataclass(frozen=True)
class _Criterion:
    """A criterion as one kind rated it."""

    name: str
    kind: Kind
    label: str
    treatment: Treatment
    n_ratings: int


def _check_values(
    ratings: RatingFrame, study: Study | None, words: Labels
) -> tuple[pl.DataFrame, list[_Criterion], pl.DataFrame]:
    """Decide how each criterion is treated and split off values outside its scale."""
    table = ratings.frame
    screens = {layout.kind for layout in ratings.layouts} == {"screens"}
    criteria: list[_Criterion] = []
    fitting: list[pl.DataFrame] = []
    wrong = [pl.DataFrame(schema=BAD)]
    asked = [question.criterion for question in study.questions] if study else []
    unordered: dict[str, dict[str, int]] = {}
    labels = _labels(table)
    for (name, kind), label in labels.items():
        rows = table
        if len(labels) > 1:
            rows = table.filter((pl.col("criterion") == name) & (pl.col("kind") == kind))
        if study is not None and name not in asked and kind in ASKED:
            expected = f"the study asks for {', '.join(asked)}{nearest(name, asked)}"
            wrong += _marked(ratings, rows, "criterion", pl.lit(name), f"unknown criterion: {expected}")
            continue
        scale = None
        if study is not None and name in asked and kind in ON_THE_SCALE:
            scale = study.question(name).scale
        if scale is not None and scale.form == "boxes":  # a box may be called "1"
            rows = rows.with_columns(_as_given().cast(pl.Categorical).alias("text"))
        if scale is None and name.lower() not in words.nominal:
            unordered.update({name: counts} if (counts := ordered_words(name, rows)) else {})
        treatment, fits, problem = treat(rows, scale, screens=screens)
        if scale is None and treatment.kind == "text":  # a number among sentences is one of them
            rows = rows.with_columns(_as_given().cast(pl.Categorical).alias("text"))
        good = rows.select(fits).to_series()
        if words.of(name) and treatment.kind == "number":
            problem += f" or one of {', '.join(words.of(name))}"
        if not good.all():
            wrong += _marked(ratings, rows.filter(~good), "value", _as_given(), problem)
            rows = rows.filter(good)
        if label != name:
            rows = rows.with_columns(pl.lit(label).cast(pl.Categorical).alias("criterion"))
        fitting.append(rows)
        criteria.append(_Criterion(name, kind, label, treatment, rows.height))
    if unordered:
        raise _no_order(", ".join(ratings.paths), unordered)
    if len(fitting) != 1:  # one is in order already
        fitting = [pl.concat([table.clear(), *fitting]).sort(ORDER)]
    return fitting[0], criteria, pl.concat(wrong)


def _no_order(named: str, criteria: Mapping[str, Mapping[str, int]]) -> DataError:
    """The words that were met, and what to type."""
    met = [
        f"{name}: {', '.join(f'{word!r} ({n:,})' for word, n in counts.items())}"
        for name, counts in criteria.items()
    ]
    words = {word.lower(): word for counts in criteria.values() for word in counts}
    orders = {"": usual_order(words.values())}
    if not orders[""]:
        orders = {name: usual_order(counts) for name, counts in criteria.items()}
    lines = []
    for name, order in orders.items():
        scope = f"{name}:" if name and len(criteria) > 1 else ""
        lines.append(f'--labels "{scope}{",".join(order or ("LOWEST", "…", "HIGHEST"))}"')
    return DataError(
        f"{named}: values are words, and nothing says which number each stands for",
        f"give their order, lowest first: {' '.join(lines)} (or with numbers: Poor=1,Good=4); "
        f'if they have no order: --labels "{next(iter(criteria))}:nominal"',
        met,
    )


def _labels(table: pl.DataFrame) -> dict[tuple[str, Kind], str]:
    """Each criterion and kind under a name of its own. Alone, or rated by people, it keeps its name."""
    codes = pl.col("criterion").to_physical().cast(pl.Int64) * len(KINDS) + pl.col("kind").to_physical()
    first = table.select(codes.arg_unique()).to_series().sort()
    pairs = table.select(pl.col("criterion", "kind").gather(first).cast(pl.String)).rows()
    labels: dict[tuple[str, Kind], str] = {}
    taken = {name for name, _ in pairs}
    for name, kind in pairs:
        label = name
        if kind != "human" and sum(other == name for other, _ in pairs) > 1:
            label = f"{name} ({kind})"
            while label in taken:  # some file has a criterion of that very name
                label += "*"
            taken.add(label)
        labels[name, kind] = label
    return labels


def _notes_on_kinds(criteria: Sequence[_Criterion]) -> Iterator[str]:
    by_name: dict[str, list[_Criterion]] = {}
    for criterion in criteria:
        by_name.setdefault(criterion.name, []).append(criterion)
    for name, several in by_name.items():
        if len(several) > 1:
            who = ", ".join(f"{BY[c.kind]} ({c.label})" for c in several)
            yield f"{name}: rated by {who}; kinds of raters are not mixed, each is a criterion of its own"


def names_in_files(table: RatingTable) -> pl.DataFrame:
    """The frame with the names that items, raters and criteria have in the files."""
    frame = without_numbers(table.frame)
    if any(label != name for label, name in table.names.items()):
        frame = frame.with_columns(pl.col("criterion").cast(pl.String).replace(dict(table.names)))
    return frame


def _as_given() -> pl.Expr:
    """The value as it stood in the file, give or take a trailing .0."""
    number = pl.col("value").cast(pl.String).str.replace(r"\.0$", "")
    return pl.coalesce(pl.col("text").cast(pl.String), number)


def _marked(
    ratings: RatingFrame, rows: pl.DataFrame, field: str, value: pl.Expr, problem: str
) -> list[pl.DataFrame]:
    """The rows as bad rows, file by file."""
    files = list(ratings.files)
    return [
        bad_rows(of_file, ratings.layouts[number], files[number], field, value, problem)
        for (number,), of_file in rows.group_by(FILE, maintain_order=True)
    ]


def _listed(bad: pl.DataFrame, paths: Sequence[str]) -> list[str]:
    """The first bad rows, each with its file where several were read."""
    several = len(paths) > 1
    listed = []
    for row in bad.head(_MOST_LISTED).iter_rows(named=True):
        place = f"{row[FILE]}, row {row[ROW]}" if several else f"row {row[ROW]}"
        if row["column"] and row["column"] not in FIELDS:
            place += f", column {row['column']!r}"
        value = f", found {row['value']!r}" if row["value"] and "expected" in row["problem"] else ""
        listed.append(f"{place}: {row['problem']}{value}")
    if bad.height > _MOST_LISTED:
        listed.append(f"… and {bad.height - _MOST_LISTED:,} more")
    return listed
