"""Which responses a reader should look at: the best, the worst, and those that judges dispute."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from palaver.evaluation.results import Example, JudgedValue, Verdict
from palaver.tabular import few

_TURNS = 4
"""So many of the last turns of a context are shown."""
_LONGEST = 2000
KEYS = ["item", "system"]


def standard_scores(ratings: pl.DataFrame, verdicts: Sequence[Verdict]) -> pl.DataFrame:
    """One row a response, judge and criterion: the mean value, and how far above the average it is.

    Only what has a better end counts, and only judgements of single responses.
    """
    signs = {(v.judge, v.criterion): -1.0 if v.direction == "lower" else 1.0 for v in verdicts if v.ranking}
    known = pl.DataFrame(
        {
            "judge": [judge for judge, _ in signs],
            "criterion": [criterion for _, criterion in signs],
            "sign": list(signs.values()),
        },
        schema={"judge": pl.String, "criterion": pl.String, "sign": pl.Float64},
    )
    single = ratings.filter(pl.col("against").is_null()).with_columns(
        pl.col("value").cast(pl.Float64, strict=False)
    )
    means = (
        single.drop_nulls("value")
        .join(known, on=["judge", "criterion"], how="inner", maintain_order="left")
        .group_by("judge", "criterion", *KEYS, maintain_order=True)
        .agg(pl.col("value").mean(), pl.col("sign").first())
    )
    value, groups = pl.col("value"), ["judge", "criterion"]
    spread = value.std().over(groups)
    gap = pl.col("sign") * (value - value.mean().over(groups)) / spread
    return means.with_columns(pl.when(spread > 0).then(gap).otherwise(0.0).fill_nan(0.0).alias("standard"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A response to show, and why."""

    item: str
    system: str
    why: str
    score: float
    spread: float


def choose_examples(scores: pl.DataFrame, n: int, people: str) -> list[Choice]:
    """The best, the worst and the most disputed, a third of `n` each.

    The score is people's where people rated, else the mean of the judges.
    """
    if not scores.height or n < 1:
        return []
    by_people = scores.filter(pl.col("judge") == people)
    rated = by_people if by_people.height else scores
    of_judges = scores.group_by("judge", *KEYS).agg(pl.col("standard").mean())
    spread = of_judges.group_by(KEYS).agg(
        (pl.col("standard").max() - pl.col("standard").min()).alias("spread"), pl.len().alias("n_judges")
    )
    means = rated.group_by(KEYS).agg(pl.col("standard").mean().alias("score"))
    table = means.join(spread, on=KEYS, how="left").with_columns(
        pl.col("score").round(9),
        pl.col("spread").round(9),  # sums in another order must not change the choice
    )
    each = max(1, n // 3)
    high_first = [True, False, False]
    rankings = {
        "best": table.sort("score", *KEYS, descending=high_first),
        "worst": table.sort("score", *KEYS),
        "disputed": table.filter(pl.col("n_judges") > 1).sort("spread", *KEYS, descending=high_first),
    }
    chosen: dict[tuple[str, str], Choice] = {}
    for why, rows in rankings.items():
        taken = 0
        for row in rows.head(3 * each).iter_rows(named=True):
            key = (row["item"], row["system"])
            if taken < each and key not in chosen:
                chosen[key] = Choice(
                    item=key[0], system=key[1], why=why, score=row["score"], spread=row["spread"]
                )
                taken += 1
    return list(chosen.values())


def make_examples(
    chosen: Sequence[Choice],
    scores: pl.DataFrame,
    responses: Path,
    worst_turns: Mapping[tuple[str, str], int | None],
) -> list[Example]:
    """The chosen responses with their texts and everything that was said about them."""
    wanted = {(choice.item, choice.system) for choice in chosen}
    texts = read_lines(responses, wanted)
    names = pl.DataFrame({"item": [item for item, _ in wanted], "system": [system for _, system in wanted]})
    values: dict[tuple[str, str], list[JudgedValue]] = {}
    if wanted:
        for row in scores.join(names, on=KEYS, how="semi", maintain_order="left").iter_rows(named=True):
            value = JudgedValue(
                judge=row["judge"], criterion=row["criterion"], value=row["value"], standard=row["standard"]
            )
            values.setdefault((row["item"], row["system"]), []).append(value)
    examples = []
    for choice in chosen:
        key = (choice.item, choice.system)
        fields = texts.get(key)
        if fields is None:
            continue  # people rated what is no response of this run
        turns = [(turn["speaker"], _cut(turn["text"])) for turn in fields["context"]]
        reference = fields.get("reference") or ""
        examples.append(
            Example(
                id=choice.item, system=choice.system, why=choice.why, context=tuple(turns[-_TURNS:]),
                n_turns=len(turns), response=_cut(fields["response"] or ""),
                knowledge=_cut(fields.get("knowledge") or ""),
                reference=_cut(reference if isinstance(reference, str) else few(reference)),
                values=tuple(values.get(key, ())), score=choice.score, spread=choice.spread,
                worst_turn=worst_turns.get(key),
            )
        )  # fmt: skip
    return examples


def read_lines(responses: Path, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of these responses."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    if not wanted:
        return rows
    heads = {f'{{"id": {json.dumps(item, ensure_ascii=False)}'.encode() for item, _ in wanted}
    with responses.open("rb") as file:
        for line in file:
            if line.partition(b', "system": ')[0] in heads:  # the id stands first
                fields = json.loads(line)
                if (fields["id"], fields["system"]) in wanted:
                    rows[fields["id"], fields["system"]] = fields
    return rows


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
