"""What moves a judge of pairs besides quality: the place, length, formatting, its own family."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palaver.errors import DataError
from palaver.judges.families import UNKNOWN, families_of, own_family
from palaver.readers.responses import read_responses
from palaver.schema import Pairwise, Response, RunRecord, record_run
from palaver.schema.rating import pair_context
from palaver.schema.run import plain
from palaver.statistics.order_effects import Flips, OrderFit, count_flips, fit_order
from palaver.studies.ratings import ASKED, RatingTable, as_rating_table, names_in_files
from palaver.tabular import Tabular, columns_of, few

Floats = NDArray[np.float64]
_MARKS = re.compile(r"^\s*(?:[-*•]|\d+[.)]|#+)\s|\*\*|^\s*```", re.MULTILINE)
"""Lists, headings, bold and code."""
_PACKAGES = ("palaver", "numpy", "scipy", "polars")
PEOPLE = "people"
"""All persons together, beside a judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasRow:
    """One judge's habits. Effects are log-odds; nan with a reason where they cannot be told."""

    judge: str
    n: int
    """Verdicts."""
    n_ties: int
    first_share: float
    """How often what stood first won, a tie as half."""
    position: float
    position_low: float
    position_high: float
    first_of_equals: float
    """The chance that the first of two equal outputs wins: one half without bias."""
    n_both_orders: int
    consistency: float
    """The share of comparisons with the same verdict in both orders."""
    decided_by_place: float
    """The share that flips to one place more often than to the other: bias."""
    decided_by_chance: float
    """The share that flips as often to one place as to the other: noise."""
    length: float
    """For each doubling of the first's length."""
    length_low: float
    length_high: float
    longer_wins: float
    formatting: float
    """For one more mark in a hundred words: a list, a heading, bold."""
    formatting_low: float
    formatting_high: float
    own: float
    """How much more often outputs of its own family win by it than by people, as a share; without people,
    than by the other judges."""
    own_low: float
    own_high: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WinRate:
    """How often a system wins by one judge: asked in one order, in both, and with the place taken out."""

    judge: str
    system: str
    one_order: float
    """What a naive count gives: each pair asked once, the systems in alphabetical order."""
    both_orders: float
    without_place: float
    """The chance against an average system by the fitted strengths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePair:
    """How far two judges, or a judge and people, give the same verdict once both orders are joined."""

    a: str
    b: str
    same: float
    kappa: float
    n: int


@dataclass(frozen=True, repr=False)
class BiasReport(Tabular):
    """Habits of judges. Tables: bias, win_rates, judges."""

    run: RunRecord
    rows: tuple[BiasRow, ...]
    win_rates: tuple[WinRate, ...]
    pairs: tuple[JudgePair, ...]
    notes: tuple[str, ...]

    def _headline(self) -> str:
        told = [f"{row.judge}: first of equals wins {row.first_of_equals:.0%}" for row in self.rows]
        return few(told)

    def _tables(self) -> dict[str, Any]:
        return {
            "bias": columns_of(BiasRow, self.rows, leave_out=("reasons",)),
            "win_rates": columns_of(WinRate, self.win_rates),
            "judges": columns_of(JudgePair, self.pairs),
        }

    def to_json(self) -> str:
        """The results file: undefined numbers are null, beside them stands the reason."""
        tables = {
            "bias": self.rows, "win_rates": self.win_rates, "judges": self.pairs, "notes": self.notes
        }  # fmt: skip
        record = {"signature": self.run.signature, "run": self.run.model_dump(mode="json")}
        return json.dumps({**record, **plain(tables)}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def bias_report(
    verdicts: RatingTable | str | Path | Any,
    *,
    responses: str | Path | Sequence[Response] | None = None,
    families: Mapping[str, str] | None = None,
    confidence: float = 0.95,
) -> BiasReport:
    """The habits of every judge that compared pairs and of which it is known what stood first.

    `responses` give the texts whose length and formatting may have mattered. `families` names the family of
    judges and systems; without it the family is the first word of a name (`gemma` of `Gemma-4-12B-it`).
    """
    table = as_rating_table(verdicts)
    everybody = _comparisons(table)
    frame, people = everybody.filter(~pl.col("asked")), everybody.filter("asked")
    texts = _texts(responses)
    notes = []
    n_unknown = int(frame["place"].null_count())
    if n_unknown:
        notes.append(f"{n_unknown:,} verdicts do not say what stood first (shown_position): left out")
        frame = frame.filter(pl.col("place").is_not_null())
    if frame.is_empty():
        raise DataError(
            f"{', '.join(table.reading.files)}: no pairwise verdict says what stood first",
            "expected `against`, a value of win, tie or loss, and `shown_position` (0: `system` stood first)",
        )
    systems = sorted({*frame["first"].to_list(), *frame["second"].to_list()})
    systems_of_people = [*people["first"].to_list(), *people["second"].to_list()]
    family = families_of([*systems, *systems_of_people, *frame["judge"].unique().to_list()], families or {})
    rows: list[BiasRow] = []
    win_rates: list[WinRate] = []
    for (judge,), own in frame.group_by("judge", maintain_order=True):
        others = frame.filter(pl.col("judge") != judge)
        rows.append(_bias(str(judge), own, others, people, systems, texts, family, confidence))
        win_rates += _win_rates(str(judge), own, systems)
    together = people.with_columns(pl.lit(PEOPLE).alias("judge"))
    agreement = tuple(_agreement(pl.concat([together, frame])))
    config = {"confidence": confidence, "families": dict(families or {})}
    run = record_run("meta --habits", seed=0, config=config, data=dict(table.hashes), packages=_PACKAGES)
    return BiasReport(run, tuple(rows), tuple(win_rates), agreement, tuple(notes))


def _comparisons(table: RatingTable) -> pl.DataFrame:
    """A row a verdict: judge, item, first, second, place, outcome of the first, whether a person gave it."""
    pairs = [name for name, treatment in table.treatments.items() if treatment.kind == "pair"]
    if not pairs:
        raise DataError(
            f"{', '.join(table.reading.files)}: there is no pairwise criterion",
            "position and length bias are read off verdicts on pairs: win, tie or loss `against` a system",
        )
    plain = names_in_files(table)
    kept = table.frame.with_columns(plain["rater"].cast(pl.String).alias("judge"))
    kept = kept.filter(pl.col("criterion").cast(pl.String).is_in(pairs))
    word = pl.col("text").cast(pl.String).str.to_lowercase()
    outcome = pl.coalesce(
        word.replace_strict(Pairwise.SCORES, default=None, return_dtype=pl.Float64), pl.col("value")
    )
    asked = pl.col("kind").cast(pl.String).is_in(list(ASKED))
    # of people only the verdict counts: where the place is not known, it is as if `system` stood first
    first = (pl.col("shown_position") == 0) | (asked & pl.col("shown_position").is_null())
    named = kept.select(
        "judge",
        pl.col("item").cast(pl.String),
        pl.col("context").cast(pl.String),
        pl.col("system").cast(pl.String),
        pl.col("against").cast(pl.String),
        pl.col("shown_position").alias("place"),
        outcome.alias("outcome"),
        first.alias("is_first"),
        asked.alias("asked"),
    )
    contexts = [
        context or pair_context(item, system, against) or item
        for item, system, against, context in named.select("item", "system", "against", "context").iter_rows()
    ]
    return named.with_columns(
        pl.Series("item", contexts, dtype=pl.String),
        pl.when("is_first").then("system").otherwise("against").alias("first"),
        pl.when("is_first").then("against").otherwise("system").alias("second"),
        pl.when("is_first").then("outcome").otherwise(1 - pl.col("outcome")).alias("outcome"),
    ).drop("is_first", "system", "against", "context")


def _bias(
    judge: str,
    own: pl.DataFrame,
    others: pl.DataFrame,
    people: pl.DataFrame,
    systems: Sequence[str],
    texts: Mapping[tuple[str, str], str],
    family: Mapping[str, str],
    confidence: float,
) -> BiasRow:
    y = own["outcome"].to_numpy()
    reasons: list[str] = []
    plain = _fit(own, systems, {}, confidence)
    if plain.reason:
        reasons.append(plain.reason)
    position = plain.effects["position"]
    covariates, longer = _covariates(own, texts)
    length = marks = UNKNOWN
    if covariates:
        both = _fit(own, systems, covariates, confidence)
        if both.reason and both.reason not in reasons:
            reasons.append(f"length and formatting: {both.reason}")
        length, marks = both.effects["length"], both.effects.get("formatting", UNKNOWN)
    else:
        reasons.append("length and formatting: the texts of the responses are not there")
    preference, reason = own_family(judge, own, others, people, family, confidence)
    if reason:
        reasons.append(f"own family: {reason}")
    flips = _flips(own)
    return BiasRow(
        judge=judge,
        n=own.height,
        n_ties=int((y == 0.5).sum()),
        first_share=float(y.mean()),
        position=position.value,
        position_low=position.low,
        position_high=position.high,
        first_of_equals=_share(position.value),
        n_both_orders=flips.n,
        consistency=flips.consistency,
        decided_by_place=flips.bias,
        decided_by_chance=flips.noise,
        length=length.value,
        length_low=length.low,
        length_high=length.high,
        longer_wins=longer,
        formatting=marks.value,
        formatting_low=marks.low,
        formatting_high=marks.high,
        own=preference.value,
        own_low=preference.low,
        own_high=preference.high,
        reasons=tuple(reasons),
    )


def _fit(
    frame: pl.DataFrame, systems: Sequence[str], covariates: Mapping[str, Floats], confidence: float
) -> OrderFit:
    code = {name: number for number, name in enumerate(systems)}
    return fit_order(
        [code[name] for name in frame["first"]],
        [code[name] for name in frame["second"]],
        frame["outcome"].to_numpy(),
        frame["item"].rank("dense").to_numpy().astype(np.int64),
        covariates=covariates,
        confidence=confidence,
    )


def _covariates(frame: pl.DataFrame, texts: Mapping[tuple[str, str], str]) -> tuple[dict[str, Floats], float]:
    """Doublings of length and marks of formatting, first minus second; the share that the longer one wins."""
    pairs = []
    for item, first, second in frame.select("item", "first", "second").iter_rows():
        one, other = texts.get((item, first)), texts.get((item, second))
        if one is None or other is None:
            return {}, math.nan
        pairs.append((one, other))
    length = np.array([math.log2((len(a.split()) + 1) / (len(b.split()) + 1)) for a, b in pairs])
    marks = np.array([_marks(a) - _marks(b) for a, b in pairs])
    y = frame["outcome"].to_numpy()
    unequal = length != 0
    longer = np.where(length > 0, y, 1 - y)[unequal]
    covariates = {"length": length}
    if marks.any():
        covariates["formatting"] = marks
    return covariates, float(longer.mean()) if longer.size else math.nan


def _marks(text: str) -> float:
    return 100 * len(_MARKS.findall(text)) / (len(text.split()) + 1)


def _flips(frame: pl.DataFrame) -> Flips:
    """Each comparison's mean verdict about one output when it stood first and when it stood second."""
    seen: dict[tuple[str, str, str], dict[bool, list[float]]] = {}
    for item, first, second, outcome in frame.select("item", "first", "second", "outcome").iter_rows():
        a, b = sorted((first, second))
        stood_first = first == a
        seen.setdefault((item, a, b), {}).setdefault(stood_first, []).append(
            outcome if stood_first else 1 - outcome
        )
    both = [sides for sides in seen.values() if len(sides) == 2]
    return count_flips([(float(np.mean(sides[True])), float(np.mean(sides[False]))) for sides in both])


def _win_rates(judge: str, frame: pl.DataFrame, systems: Sequence[str]) -> Iterator[WinRate]:
    strengths = _fit(frame, systems, {}, 0.95).strengths
    first, second = frame["first"].to_numpy(), frame["second"].to_numpy()
    y = frame["outcome"].to_numpy()
    for code, system in enumerate(systems):
        wins = np.concatenate([y[first == system], 1 - y[second == system]])
        others = np.concatenate([second[first == system], first[second == system]])
        stood_first = (
            np.concatenate([np.ones((first == system).sum()), np.zeros((second == system).sum())]) > 0
        )
        naive = stood_first == (system < others)
        yield WinRate(
            judge=judge, system=system,
            one_order=float(wins[naive].mean()) if naive.any() else math.nan,
            both_orders=float(wins.mean()) if wins.size else math.nan,
            without_place=_share(float(strengths[code])),
        )  # fmt: skip


def _agreement(frame: pl.DataFrame) -> Iterator[JudgePair]:
    """Every two judges on comparisons both made; both orders joined into win, tie or loss."""
    verdicts: dict[str, dict[tuple[str, str, str], list[float]]] = {}
    for judge, item, first, second, outcome in frame.select(
        "judge", "item", "first", "second", "outcome"
    ).iter_rows():
        a, b = sorted((first, second))
        about_a = outcome if first == a else 1 - outcome
        verdicts.setdefault(judge, {}).setdefault((item, a, b), []).append(about_a)
    joined = {
        judge: {key: float(np.sign(np.mean(values) - 0.5)) for key, values in of_judge.items()}
        for judge, of_judge in verdicts.items()
    }
    names = list(joined)
    from palaver.statistics.kappa import cohen_kappa

    for place, a in enumerate(names):
        for b in names[place + 1 :]:
            shared = [key for key in joined[a] if key in joined[b]]
            if not shared:
                continue
            x, y = [joined[a][key] for key in shared], [joined[b][key] for key in shared]
            kappa = cohen_kappa(np.array(x), np.array(y)).value
            same = float(np.mean(np.array(x) == np.array(y)))
            yield JudgePair(a=a, b=b, same=same, kappa=float(kappa), n=len(shared))


def _texts(responses: str | Path | Sequence[Response] | None) -> dict[tuple[str, str], str]:
    if responses is None:
        return {}
    read = read_responses(Path(responses)) if isinstance(responses, str | Path) else responses
    return {(response.id, response.judged_system): response.response or "" for response in read}


def _share(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds)) if math.isfinite(log_odds) else math.nan
