"""Which column is which: the shapes that rating files have.

long      one judgement a row: `item, system, rater, criterion, value`
screens   one screen a row: `team1..3`, `quality1..3` (the RankME release)
criteria  one judged output a row, one column per criterion: `team`, `naturalness`, `quality`
forms     one rater a row, one column per judged output: `Q01 [alpha]`, `Q01 [beta]` (Google Forms)
pairs     one comparison a row: `model_a`, `model_b`, `winner` (see `palaver.readers.rating_pairs`)

Columns that are not read are named with the reason, and a column of numbers that looks like an index, an age
or a duration is asked about before it is taken for a judgement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from palaver.errors import DataError, nearest
from palaver.readers.rating_layouts import Cell, Layout
from palaver.readers.rating_options import RatingOptions
from palaver.readers.rating_pairs import NO_WINNER, find_pairs, sides_of
from palaver.readers.shapes import other_file

REQUIRED = ("item", "system", "rater", "criterion", "value")
WIDE = ("item", "system", "rater", "against", "output", "study", "given_at", "seconds", "shown_position")
"""The fields that a wide file may have."""

SCHEMA: dict[str, Any] = {
    **dict.fromkeys(
        ("study", "item", "system", "against", "output", "rater", "criterion", "value"), pl.String
    ),
    "given_at": pl.Datetime("us"),
    "seconds": pl.Float64,
    "shown_position": pl.Int32,
    **dict.fromkeys(("kind", "signature", "context"), pl.String),
    **dict.fromkeys(("turn", "repeat"), pl.Int32),
    "version": pl.String,
    **dict.fromkeys(("probability", "sampling_probability"), pl.Float64),
}
"""The columns of the long format and their types, as they are written."""
FIELDS = (*REQUIRED, *(name for name in SCHEMA if name not in REQUIRED))

ALIASES = {
    "item": (
        *("item_id", "mr_id", "segment", "segment_id", "doc_id", "mr", "question", "question_id"),
        *("prompt_id", "dialogue", "dialogue_id", "conversation", "conversation_id", "hitid"),
    ),
    "system": ("team", "model", "system_id", "bot", "model_id", "bot_id", "system_name", "model_name"),
    "rater": (
        *("rater_id", "worker", "worker_id", "_worker_id", "annotator", "annotator_id", "judge", "judge_id"),
        *("participant", "participant_id", "evaluator", "evaluator_id", "email", "email_address"),
        *("_annotator_id", "prolific_pid", "prolific_id", "user_id"),
    ),
    "criterion": ("dimension", "aspect"),
    "value": ("rating", "score"),
    "given_at": ("_created_at", "created_at", "timestamp", "recorded_date"),
    "seconds": ("lead_time", "work_time_in_seconds"),
}
"""Other names people use, tried in this order when the field's own name is absent. Capitals do not matter."""
_RATER_OF_A_FORM = (
    "response_id",
    "username",
    "user_name",
    "e_mail",
    "e_mail_address",
    "name",
    "your_name",
    "id",
    "user",
)
"""Names that mean the rater where a row is one."""

SHORT = {"inf": "informativeness", "nat": "naturalness", "qual": "quality", "check_those_that_apply": "check"}
"""The RankME release's abbreviations."""

_OF_ONE_OUTPUT = ("system", "criterion", "value", "against", "output", "shown_position")
_NUMBERED = re.compile(r"^(.*\D)(\d+)$")
_NOT_CRITERIA = re.compile(r"^_|(^|_)id$|^(mr|ref|primary|text|context|output|reference|study)\d*$")
_OURS = ("score", "excluded", "screened", "late", "screen")
"""Columns besides the fields that our own files have; that they are not read needs no word."""

_ID = "an id or a text, by its name"

_INPUT, _ANSWER = "Input.", "Answer."
"""Mechanical Turk's marks of what a task held and of what was answered."""
_WORKER = "WorkerId"
_NO_ANSWER = "no 'Answer.' before its name"

_CELL = re.compile(r"^(?P<item>[^\[\]]*)\[(?P<system>[^\[\]]*[^\[\]\s])\s*\](?P<criterion>[^\[\]]*)$")
_UNNAMED = "rating"
"""The criterion of a form that names none."""
FORM_SHAPE = "expected columns such as 'Q01 [alpha]', 'Q01 [beta]': the item, and the system in brackets"

_FEW_WORDS = 7
"""So many at most are the steps of a scale."""
_INDEX_FROM = 10
"""So many rows numbered one after the other are no accident."""
_WORDS_OF: dict[str, frozenset[str]] = {
    "an index": frozenset(("index", "idx", "no", "nr", "number", "order", "trial", "row", "position")),
    "an age": frozenset(("age", "alter")),
    "a year": frozenset(("year", "birth", "birthyear", "yob")),
    "a date or a time": frozenset(("date", "time", "timestamp", "datetime", "day", "month")),
    "a duration": frozenset(
        ("seconds", "secs", "sec", "duration", "minutes", "mins", "ms", "milliseconds", "elapsed", "rt")
    ),
    "a count or a length": frozenset(
        (
            "count",
            "counts",
            "length",
            "len",
            "words",
            "wordcount",
            "tokens",
            "characters",
            "chars",
            "turns",
            "n",
        )
    ),
}
"""What a column holds if one of these words is in its name."""


def find_layout(
    columns: Sequence[str],
    path: Path,
    options: RatingOptions | None = None,
    sample: Mapping[str, pl.Series] | None = None,
) -> Layout:
    """Recognise the layout, or take the one that the user names.

    `sample` has values of the columns as plain text, without empty cells.
    """
    options = options or RatingOptions()
    fields = _fields(columns, path, options.columns)
    folded = {_folded(column): column for column in reversed(columns)}
    numbered = _numbered(columns)
    screen = next((s for s in ("system", "team", "model") if len(numbered.get(s, ())) > 1), None)
    cells = {column: match for column in columns if (match := _CELL.match(column))}
    shape: str = options.shape
    by_model = _is_judged_by_model(fields, folded)
    is_other = fields.keys() >= set(REQUIRED) or (
        screen is not None and _are_rated(numbered, screen, sample or {}, options)
    )
    if shape == "pairs" or (shape == "auto" and not is_other):
        known = (*WIDE, "criterion", "turn", *options.columns)
        about = {f: column for f, column in fields.items() if f in known}
        pairs = find_pairs(about, folded, options, sample or {})
        if pairs is not None:
            layout = Layout("pairs", pairs.columns, pairs.criteria, left=pairs.left, by_model=by_model)
            return _only(options, layout, path)
    if shape == "pairs":
        raise DataError(f"{path}: no column says who won; found {', '.join(columns)}", NO_WINNER)
    if shape == "auto":
        shape = _shape(fields, columns, screen is not None, bool(cells))
    if shape == "long":
        _demand(REQUIRED, fields, columns, path)
        read = {*fields.values(), *_OURS}
        return Layout("long", fields, {}, left={c: _NO_FIELD for c in columns if c not in read})
    known = (*WIDE, *options.columns, *(("turn",) if by_model else ()))
    wide = {f: column for f, column in fields.items() if f in known}
    if shape == "forms":
        return _forms(wide, cells, columns, path, options)
    if shape == "screens":
        if screen is None:
            raise DataError(
                f"{path}: there are no numbered columns of systems; found {', '.join(columns)}",
                "expected a screen a row: item, rater, team1, team2, quality1, quality2",
            )
        layout = _screens(wide, numbered, screen, columns, path)
    else:
        layout = _criteria(wide, fields, columns, path, options, sample or {})
    return _only(options, replace(layout, by_model=by_model), path)


_NO_FIELD = "no field of a rating has this name"


def _fields(columns: Sequence[str], path: Path, renamed: Mapping[str, str]) -> dict[str, str]:
    """Field -> column: as the user says, by the field's own name, or by another name people use."""
    fields = dict(renamed)
    for name, column in fields.items():
        if name not in FIELDS:
            raise DataError(
                f"there is no field {name!r}{nearest(name, FIELDS)}", f"known: {', '.join(FIELDS)}"
            )
        if column not in columns:
            raise DataError(f"{path} has no column {column!r}{nearest(column, columns)}")
    folded = {_folded(column): column for column in reversed(columns)}
    is_label_studio = {"annotation_id", "annotator"} <= folded.keys()
    for name in FIELDS:
        if name in fields:
            continue
        aliases = (*ALIASES.get(name, ()), *(("id",) if name == "item" and is_label_studio else ()))
        for alias in (name, *aliases):
            known = alias if alias in columns else folded.get(alias)
            if known is not None and known not in fields.values():
                fields[name] = known
                break
    return fields


def _folded(column: str) -> str:
    """`Worker ID` as `worker_id`, and Mechanical Turk's `WorkerId`, `Input.worker_id` as well."""
    name = column.strip().removeprefix(_INPUT).removeprefix(_ANSWER)
    return re.sub(r"[\s-]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def _is_judged_by_model(fields: Mapping[str, str], folded: Mapping[str, str]) -> bool:
    """Whether FastChat wrote it (MT-Bench): what a language model was asked stands beside what it said."""
    asked = {"user_prompt", "judgment"} <= folded.keys() or {"g1_user_prompt", "g1_judgment"} <= folded.keys()
    return asked and _folded(fields.get("rater", "")) == "judge"


def _shape(fields: Mapping[str, str], columns: Sequence[str], screens: bool, cells: bool) -> str:
    if screens and "value" not in fields:
        return "screens"
    if cells and "system" not in fields and "value" not in fields:
        return "forms"
    if "criterion" not in fields and "system" in fields:
        free = [c for c in columns if c not in fields.values()]
        is_misspelt = "value" in fields and nearest("criterion", free)
        if not is_misspelt:
            return "criteria"
    return "long"


def _only(options: RatingOptions, layout: Layout, path: Path) -> Layout:
    """`layout` with the criteria that the user names, or the study's.

    With all it has if the study asks for none of them, so that the mistake shows.
    """
    named = _named(options)
    if named is None:
        return layout
    reason = _NOT_ASKED if options.criteria is None else _NOT_NAMED
    asked = {name: by for name, by in layout.criteria.items() if name.lower() in named}
    if options.criteria is not None and not asked:
        met = [*layout.criteria, *layout.left]
        close = nearest(options.criteria[0], met)
        raise DataError(
            f"{path}: none of the criteria {','.join(options.criteria)} is there{close}",
            f"found {', '.join(met)}",
        )
    left = {column: reason for name, by in layout.criteria.items() if name not in asked for column in by}
    return replace(layout, criteria=asked, left={**layout.left, **left}) if asked and left else layout


_NOT_NAMED = "not among --criteria"
_NOT_ASKED = "not asked for by the study"


def _named(options: RatingOptions) -> set[str] | None:
    """The criteria that the user or the study names, in lower case; nothing if nobody does."""
    wanted = options.asked if options.criteria is None else options.criteria
    return None if wanted is None else {SHORT.get(name, name).lower() for name in wanted}


def _numbered(columns: Sequence[str]) -> dict[str, list[str]]:
    """`quality1, quality2, quality3` under `quality`, when the numbers run from 1 (or 0) without a gap."""
    stems: dict[str, dict[int, str]] = {}
    for column in columns:
        if match := _NUMBERED.match(column):
            stems.setdefault(match[1].rstrip("_"), {})[int(match[2])] = column
    return {
        stem: [by[n] for n in sorted(by)]
        for stem, by in stems.items()
        if min(by) in (0, 1) and len(by) == max(by) - min(by) + 1
    }


def _are_rated(
    numbered: Mapping[str, Sequence[str]],
    screen: str,
    sample: Mapping[str, pl.Series],
    options: RatingOptions,
) -> bool:
    """Whether the numbered systems are a screen: more than two of them, or each has numbers of its own."""
    systems = numbered[screen]
    return len(systems) > 2 or any(
        len(by) == len(systems) and not any(why_no_criterion(c, sample.get(c), options) for c in by)
        for stem, by in numbered.items()
        if stem != screen
    )


def _screens(
    wide: Mapping[str, str], numbered: dict[str, list[str]], screen: str, columns: Sequence[str], path: Path
) -> Layout:
    systems = numbered[screen]
    criteria = {
        SHORT.get(stem, stem): tuple(by)
        for stem, by in numbered.items()
        if stem != screen and not _NOT_CRITERIA.match(stem) and len(by) == len(systems)
    }
    if not criteria:
        raise DataError(
            f"{path} has several systems on a screen ({', '.join(systems)}) but no criterion to go with them",
            f"expected columns such as quality1 … quality{len(systems)}",
        )
    fields = {f: c for f, c in wide.items() if f not in _OF_ONE_OUTPUT}
    _demand(("item", "rater"), fields, columns, path)
    read = {*fields.values(), *systems, *(column for by in criteria.values() for column in by)}
    reason = f"it is not numbered as the {len(systems)} systems of a screen are"
    left = {c: _ID if _NOT_CRITERIA.search(c) else reason for c in columns if c not in read}
    return Layout("screens", fields, criteria, tuple(systems), left=left)


# --- one column per criterion -------------------------------------------------------------------------------


def _criteria(
    wide: Mapping[str, str],
    fields: Mapping[str, str],
    columns: Sequence[str],
    path: Path,
    options: RatingOptions,
    sample: Mapping[str, pl.Series],
) -> Layout:
    wide = {f: c for f, c in wide.items() if f not in ("criterion", "value")}
    _demand(("item", "system", "rater"), wide, columns, path)
    named = _named(options) or set()
    criteria: dict[str, tuple[str, ...]] = {}
    left: dict[str, str] = {}
    has_answers = _WORKER in columns and any(column.startswith(_ANSWER) for column in columns)
    for column in columns:
        if column in wide.values():
            continue
        bare = column.removeprefix(_ANSWER) if has_answers else column
        name = SHORT.get(bare, bare)
        reason = ""
        if name.lower() not in named:
            reason = why_no_criterion(bare, sample.get(column), options)
            if has_answers and bare == column:
                reason = _NO_ANSWER
            if options.criteria is not None and column != fields.get("value"):
                reason = _NOT_NAMED
        if reason:
            left[column] = reason
        else:
            criteria[name] = (column,)
    value = fields.get("value", "")
    if options.criteria is not None and list(criteria.values()) == [(value,)]:
        criteria = {options.criteria[0]: (value,)}  # `rating` or `score`, to which the user gives a name
    if not criteria and options.criteria is None:
        raise DataError(
            f"{path}: there is no column of ratings besides {', '.join(wide.values())}",
            "say which columns are: --criteria NAME,NAME; words that stand for numbers need their order: "
            '--labels "Poor,Fair,Good"',
            [f"{column!r}: {reason}" for column, reason in left.items()],
        )
    is_asked = options.criteria is None and named & {name.lower() for name in criteria}
    for column, reason in left.items():
        if reason.startswith(_LOOKS_LIKE):
            taken = ",".join((*criteria, column))
            left[column] = _NOT_ASKED if is_asked else f'{reason}; add --criteria "{taken}" to take it'
    return Layout("criteria", wide, criteria, left=left)


_LOOKS_LIKE = "it looks like"
_LONGEST_SHOWN = 40


def _cut(word: str) -> str:
    return word if len(word) <= _LONGEST_SHOWN else f"{word[:_LONGEST_SHOWN]}…"


def why_no_criterion(column: str, values: pl.Series | None, options: RatingOptions) -> str:
    """Why a column is not taken for a criterion unless the user says so; nothing if it is one."""
    if column.startswith("check"):
        return ""
    if _NOT_CRITERIA.search(column):
        return _ID
    if values is None or values.is_empty():
        return "it is empty"
    if options.labels.name(column):
        return ""
    numbers = values.cast(pl.Float64, strict=False)
    if numbers.null_count() >= len(values) / 2:
        counts = values.alias("word").value_counts()
        words = counts.sort("count", "word", descending=[True, False])["word"].to_list()
        shown = ", ".join(repr(_cut(word)) for word in words[:5]) + (", …" if len(words) > 5 else "")
        ordered = "; if they have an order, give it with --labels" if 1 < len(words) <= _FEW_WORDS else ""
        return f"words ({shown}), not numbers{ordered}"
    looks = _looks_like(column, numbers.drop_nulls())
    return f"{_LOOKS_LIKE} {looks}" if looks else ""


def _looks_like(column: str, values: pl.Series) -> str:
    """What else than a judgement a column of numbers may be, by its name or its values."""
    words = set(re.split(r"[\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column).lower()))
    for what, names in _WORDS_OF.items():
        if words & names:
            return what
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    is_unique = high - low + 1 == len(values) == values.n_unique()
    if len(values) > _INDEX_FROM and is_unique and low in (0, 1):
        return "an index"
    if low >= 1900 and high <= 2100 and (values == values.round()).all():
        return "a year"
    return "a date or a time" if low > 1e9 else ""


# --- one rater a row ----------------------------------------------------------------------------------------


def _forms(
    wide: Mapping[str, str],
    matches: Mapping[str, re.Match[str]],
    columns: Sequence[str],
    path: Path,
    options: RatingOptions,
) -> Layout:
    if not matches:
        raise DataError(
            f"{path}: no column names a system in brackets; found {', '.join(columns)}", FORM_SHAPE
        )
    fields = {f: c for f, c in wide.items() if f not in (*_OF_ONE_OUTPUT, "item") and c not in matches}
    folded = {_folded(c): c for c in reversed(columns) if c not in matches and c not in fields.values()}
    rater = next((folded[name] for name in _RATER_OF_A_FORM if name in folded), None)
    if "rater" not in fields and rater is not None:
        fields["rater"] = rater
    only = options.criteria[0] if options.criteria is not None and len(options.criteria) == 1 else _UNNAMED
    cells = _cells(matches, only)
    criteria: dict[str, tuple[str, ...]] = {}
    for column, cell in cells.items():
        criteria[cell.criterion] = (*criteria.get(cell.criterion, ()), column)
    left = {c: "no [system] in its name" for c in columns if c not in cells and c not in fields.values()}
    layout = _only(options, Layout("forms", fields, criteria, left=left), path)
    return replace(layout, cells={c: cell for c, cell in cells.items() if cell.criterion in layout.criteria})


def _cells(matches: Mapping[str, re.Match[str]], unnamed: str) -> dict[str, Cell]:
    """`item [system]`, `item [system] criterion` or `criterion: item [system]`.

    A colon parts a criterion from an item only where every criterion goes with every item; otherwise it
    belongs to the item (`Q01: How good is it? [alpha]`).
    """
    splits = {column: match["item"].partition(":") for column, match in matches.items()}
    before = {split[0].strip() for split in splits.values()}
    after = {split[2].strip() for split in splits.values()}
    pairs = {(split[0].strip(), split[2].strip()) for split in splits.values()}
    prefixed = len(after) > 1 and "" not in before | after and len(pairs) == len(before) * len(after)
    cells = {}
    for column, match in matches.items():
        item, criterion = match["item"].strip(), match["criterion"].strip(" :-")
        if prefixed and not criterion:
            criterion, item = splits[column][0].strip(), splits[column][2].strip()
        cells[column] = Cell(item or "1", match["system"].strip(), criterion or unnamed)
    return cells


def _demand(required: Sequence[str], fields: Mapping[str, str], columns: Sequence[str], path: Path) -> None:
    missing = [f for f in required if f not in fields]
    if not missing:
        return
    problems = []
    for name in missing:
        close = nearest(name, [c for c in columns if c not in fields.values()])
        problems.append(f"no column {name!r}{close.replace('did you mean', 'is it')}")
    word = "a column is" if len(missing) == 1 else f"{len(missing)} columns are"
    raise DataError(
        f"{path}: {word} missing. Expected {', '.join(REQUIRED)}; found {', '.join(columns) or 'none'}",
        other_file(columns, sought=("ratings", "responses") if "rater" in fields else ("ratings",))
        or (NO_WINNER if sides_of({_folded(c): c for c in columns}) else "")
        or f"rename the column, or say which one it is: --column {missing[0]}=NAME",
        problems,
    )
