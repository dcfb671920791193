"""One comparison a row: two systems and who won, as arenas and judges of pairs write it.

What files call the sides, the winner and a tie is declared here; `find_pairs` finds the columns, `outcomes`
makes `win`, `tie` and `loss` of the first side out of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from palaver.readers.rating_options import RatingOptions

SIDES = (
    *((f"{noun}_a", f"{noun}_b") for noun in ("model", "system", "bot", "team")),
    *((f"{noun}_1", f"{noun}_2") for noun in ("model", "system", "bot", "generator")),
    *((f"{noun}1", f"{noun}2") for noun in ("model", "system", "bot", "team")),
    ("chosen_model", "rejected_model"),
    ("a", "b"),
)
"""Names of the two columns of systems, folded; the first pair that is there counts."""
_WINNERS = ("winner", "preference", "preferred", "vote", "verdict", "choice")
"""Names of the column that says who won, folded."""
_GAMES = ("g1_winner", "g2_winner")
"""FastChat asks a judge twice, with the sides changed over; both columns name the model that won."""
_FIRST = {"a", "1", "1.0", "left", "first", "win", "[[a]]", "model_a", "model_1", "system_a", "system_1"}
_SECOND = {"b", "2", "2.0", "right", "second", "loss", "[[b]]", "model_b", "model_2", "system_b", "system_2"}
_TIES = {"tie", "tie (bothbad)", "tie (both bad)", "both_bad", "bothbad", "both bad", "both good", "equal"}
_TIES |= {"both_good", "both", "neither", "draw", "same", "1.5", "c", "[[c]]"}
_NOTHING = ("error", "invalid")
"""The judge's answer could not be read."""
_UNNAMED = "preference"
"""The criterion of a file that names none."""
_NO_PART = "no part of a comparison"

OUTCOMES = ("win", "tie", "loss")
WHO_WON = "expected the system that won, model_a, model_b or tie"
NO_WINNER = "two systems a row need a column `winner` with the system, model_a, model_b or tie; "
NO_WINNER += "another name: --column value=NAME"


class Comparison(NamedTuple):
    """The columns of a file with a comparison a row."""

    columns: dict[str, str]
    """Field -> column; `system` and `against` are the two sides."""
    criteria: dict[str, tuple[str, ...]]
    """Criterion -> the columns that say who won: one, one for each game, or one for each outcome."""
    left: dict[str, str]
    """Column that is not read -> why."""


def sides_of(folded: Mapping[str, str]) -> tuple[str, str] | None:
    """The columns of the two systems; `folded` is folded name -> column."""
    return next(((folded[a], folded[b]) for a, b in SIDES if a in folded and b in folded), None)


def find_pairs(
    fields: Mapping[str, str],
    folded: Mapping[str, str],
    options: RatingOptions,
    sample: Mapping[str, pl.Series],
) -> Comparison | None:
    """What is read, if there are two systems in a row and something that says who won."""
    sides = sides_of(folded)
    if sides is not None and options.shape == "auto" and _are_judgements(sides, fields, sample):
        return None
    if sides is None and options.shape == "pairs" and {"system", "against"} <= fields.keys():
        sides = fields["system"], fields["against"]
    if sides is None:
        return None
    taken = ("system", "against", "value", "output", "shown_position")
    about = {field: column for field, column in fields.items() if field not in (*taken, *sides)}
    if "item" not in about and "id" in folded:
        about["item"] = folded["id"]
    criteria = _winners(sides, folded, options, sample)
    if criteria is None:
        return None
    read = {*sides, *about.values(), *(column for columns in criteria.values() for column in columns)}
    left = {column: _NO_PART for column in reversed(list(folded.values())) if column not in read}
    return Comparison({**about, "system": sides[0], "against": sides[1]}, criteria, left)


def _are_judgements(
    sides: tuple[str, str], fields: Mapping[str, str], sample: Mapping[str, pl.Series]
) -> bool:
    """Whether columns called `a` and `b` are no systems: they hold numbers, or stand beside a system."""
    if {side.lower() for side in sides} != {"a", "b"}:
        return False
    given = [sample[side].cast(pl.Float64, strict=False) for side in sides if side in sample]
    return "system" in fields or all(values.null_count() == 0 for values in given)


def _winners(
    sides: tuple[str, str],
    folded: Mapping[str, str],
    options: RatingOptions,
    sample: Mapping[str, pl.Series],
) -> dict[str, tuple[str, ...]] | None:
    names = options.criteria or options.asked or ()
    name = names[0] if len(names) == 1 else _UNNAMED
    said = options.columns.get("value")
    if said is not None:
        return {name: (said,)}
    if all(game in folded for game in _GAMES):
        return {name: tuple(folded[game] for game in _GAMES)}
    each = tuple(folded.get(f"winner_{side}") for side in (*sides, "tie"))
    if each[0] is not None and each[1] is not None:
        return {name: tuple(column for column in each if column is not None)}
    named = next((folded[word] for word in _WINNERS if word in folded), None)
    if named is not None:
        return {name: (named,)}
    if sides[0] == folded.get("chosen_model"):
        return {name: ()}
    words = {"left", "right", *(side.lower() for side in sides)} - {"a", "b"}  # these may be places as well
    told: dict[str, tuple[str, ...]] = {
        column: (column,) for column, values in sample.items() if _says_who_won(values, words)
    }
    return told or None


def _says_who_won(values: pl.Series, words: Collection[str]) -> bool:
    given = set(values.cast(pl.String).str.to_lowercase())
    return bool(given & set(words)) and given <= {*words, *_TIES}


def outcomes(first: str, second: str, columns: Sequence[str]) -> Iterator[pl.Expr]:
    """`win`, `tie` or `loss` of the system in the column `first`, once for each game; other words stay."""
    if not columns:  # the first side is the one that was chosen
        yield pl.lit("win")
    elif columns[0].lower() == f"winner_{first}".lower():
        won, lost, *tied = (pl.col(c).str.to_lowercase().is_in(["1", "1.0", "true"]) for c in columns)
        outcome = pl.when(won).then(pl.lit("win")).when(lost).then(pl.lit("loss"))
        yield outcome.when(tied[0] if tied else ~won).then(pl.lit("tie"))
    else:
        yield from (_outcome(first, second, pl.col(column)) for column in columns)


def _outcome(first: str, second: str, given: pl.Expr) -> pl.Expr:
    """By the name of a system, or by a place. A word that names one and is the place of the other stays."""
    word = given.str.to_lowercase()
    is_one, is_nought = (word.is_in([digit, f"{digit}.0"]) for digit in "10")
    is_score = is_one & is_nought.any() & ~word.is_in(["2", "2.0"]).any()  # or the second, counted from 0
    is_first = word.is_in([*_FIRST, first.lower()]), (given == pl.col(first)).fill_null(False)
    is_second = word.is_in([*_SECOND, second.lower()]), (given == pl.col(second)).fill_null(False)
    is_unclear = (is_first[0] & is_second[1] & ~is_first[1]) | (is_second[0] & is_first[1] & ~is_second[1])
    return (
        pl.when(is_unclear)
        .then(pl.format("{} (the name of one, the place of the other)", given))
        .when(is_score & ~is_first[1] & ~is_second[1])
        .then(given)
        .when(is_first[0] | is_first[1])
        .then(pl.lit("win"))
        .when(is_second[0] | is_second[1])
        .then(pl.lit("loss"))
        .when(word.is_in(list(_TIES)))
        .then(pl.lit("tie"))
        .when(~word.is_in(_NOTHING))
        .then(given)
    )
