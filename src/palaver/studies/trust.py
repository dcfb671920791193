"""How far to trust an answer: what every `palaver trust` verb gives, and people beside a judge.

A judge's scores are matched to people's ratings by context (or item) and system.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palaver.errors import DataError, UserError, nearest
from palaver.schema import RunRecord, record_run
from palaver.schema.judge import Direction
from palaver.schema.run import plain
from palaver.studies.intervals import clustered_intervals
from palaver.studies.judgements import Floats, Ints, Judgements, contexts_of, judgements_of
from palaver.studies.ratings import ASKED, RatingTable
from palaver.studies.results import IntervalRow
from palaver.tabular import Tabular, columns_of, few, show_fixed, show_interval

PACKAGES = ("palaver", "numpy", "scipy", "polars")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrustReport(Tabular):
    """What a trust method found: rows, what they mean in plain words, and the record of the run."""

    method: str
    run: RunRecord
    rows: tuple[Any, ...]
    row_type: type[Any]
    words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sampling: Mapping[str, float] = field(default_factory=dict)
    """Of a plan that draws dialogues unequally: the probability of each."""
    curves: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """Of a plan: cost and reach of smaller and larger studies, for its picture."""

    def _headline(self) -> str:
        return f"{self.method}: {len(self.rows)} rows; signature {self.run.signature}"

    def _tables(self) -> dict[str, Any]:
        tables: dict[str, Any] = {"rows": columns_of(self.row_type, self.rows)}
        if self.sampling:
            names, chances = zip(*self.sampling.items(), strict=True)
            tables["sampling"] = {"dialogue": list(names), "probability": list(chances)}
        return tables

    def to_json(self) -> str:
        """Undefined numbers are null, beside them stands the reason."""
        content = {
            "method": self.method,
            "signature": self.run.signature,
            "run": self.run.model_dump(mode="json"),
            "rows": [plain(row) for row in self.rows],
            "words": self.words,
            "notes": self.notes,
            **({"sampling": dict(self.sampling)} if self.sampling else {}),
            **({"curves": plain(self.curves)} if self.curves else {}),
        }
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def make_report(
    method: str,
    rows: Sequence[Any],
    row_type: type[Any],
    tables: Sequence[RatingTable],
    config: Mapping[str, object],
    *,
    words: Sequence[str] = (),
    notes: Sequence[str] = (),
    seed: int | None = None,
) -> TrustReport:
    """A report with the record of what it was made from."""
    data = {name: digest for table in tables for name, digest in table.hashes.items()}
    run = record_run(f"trust {method}", seed=seed, config=config, data=data, packages=PACKAGES)
    reading = [note for table in tables for note in table.reading.notes]
    own = [note for row in rows for note in getattr(row, "notes", ())]
    unique = tuple(dict.fromkeys([*reading, *own, *notes, *_criteria_left(tables[0], config)]))
    return TrustReport(
        method=method, run=run, rows=tuple(rows), row_type=row_type, words=tuple(words), notes=unique
    )


def _criteria_left(people: RatingTable, config: Mapping[str, object]) -> Iterator[str]:
    """What a report of one criterion does not look at."""
    criterion = config.get("criterion")
    others = [name for name in criteria_of_people(people) if name != criterion]
    if criterion and others:
        yield f"this is about {criterion}; people rated {few(others)}, too"


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """One criterion as people rated it, with the dialogue of each judgement."""

    judged: Judgements
    dialogue: Ints
    """Codes in `dialogues`."""
    dialogues: tuple[str, ...]

    @property
    def is_pair(self) -> bool:
        return self.judged.treatment.kind == "pair"

    def sampling(self, rows: NDArray[Any]) -> Floats | None:
        """The probability with which these ratings' items were drawn; None where all had the same."""
        return None if self.judged.sampling is None else self.judged.sampling[rows]


def criteria_of_people(table: RatingTable) -> list[str]:
    """What people rated in numbers or pairs, in order of appearance."""
    able = [
        name
        for name in table.criteria
        if table.kinds[name] in ASKED and _has_scores(table, name)
    ]  # fmt: skip
    if not able:
        named = ", ".join(table.hashes)
        raise DataError(
            f"{named}: no criterion was rated by people with numbers or in pairs",
            "say who rated with --kind FILE=human, or give the file of people first",
        )
    return able


def _has_scores(table: RatingTable, criterion: str) -> bool:
    """Numbers (yes and no are 1 and 0) or pairs."""
    return table.treatments[criterion].kind in ("number", "pair")


def shared_criteria(people: RatingTable, judges: RatingTable) -> list[str]:
    """What people rated and a judge rated under the same name."""
    return [name for name in criteria_of_people(people) if name in set(judges.names.values())]


def people_of(
    table: RatingTable,
    criterion: str | None = None,
    *,
    judges: RatingTable | None = None,
    judge_criterion: str | None = None,
) -> People:
    """The ratings of people on `criterion`, or on the first that has numbers or pairs.

    Beside `judges` it is the first that they rated as well, unless their criterion is named.
    """
    able = criteria_of_people(table)
    if criterion is None and judges is not None and judge_criterion is None:
        criterion = next(iter(shared_criteria(table, judges)), None)
    if criterion is not None and criterion not in able:
        raise UserError(
            f"people did not rate {criterion!r}{nearest(criterion, able)}", f"they rated {', '.join(able)}"
        )
    judged = judgements_of(table, criterion or able[0])
    codes = judged.dialogue.astype(np.int64)
    names = _names_of(table, judged, codes)
    return People(judged, codes, names)


def _names_of(table: RatingTable, judged: Judgements, codes: Ints) -> tuple[str, ...]:
    """The name of each dialogue code: its context, or its item where it has none."""
    names: list[str] = [""] * (int(codes.max()) + 1)
    contexts = contexts_of(table)
    items = judged.items.to_list()
    first = np.unique(judged.item, return_index=True)
    for item, at in zip(*first, strict=True):
        names[codes[at]] = contexts.get(items[item], items[item])
    return tuple(names)


def check_size(people: People, size: float | None, what: str) -> None:
    """A difference that is asked about must be above 0 and smaller than the scale."""
    if size is None:
        return
    if not size > 0:
        raise UserError(f"{what} must be above 0, found {size:g}")
    span = span_of(people)
    if size >= span > 0:
        raise UserError(
            f"{what} of {size:g} is as large as the scale ({span:g})",
            "give the smallest difference that would matter",
        )


def span_of(people: People) -> float:
    """How far two scores can lie apart: by the scale, or else in these ratings."""
    judged = people.judged
    if people.is_pair:
        return 0.5
    if judged.treatment.scale is not None and judged.normalisation == "raw":
        bounds = judged.treatment.scale.bounds
        if math.isfinite(bounds.high - bounds.low):
            return bounds.high - bounds.low
    scores = judged.score[np.isfinite(judged.score)]
    return float(np.ptp(scores)) if scores.size else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """A judge's scores: one for each dialogue and system (of pairs: dialogue and both systems)."""

    judge: str
    criterion: str
    scores: Mapping[tuple[str, ...], float]
    signature: str = ""
    certainty: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    """How sure the judge says it is of each score, from 0 to 1; empty where it does not say."""

    def of_people(self, people: People) -> Floats:
        """The judge's score of what each judgement is about; nan where the judge did not rate it."""
        judged = people.judged
        systems = judged.systems
        values = np.full(judged.item.size, np.nan)
        for i in range(judged.item.size):
            name = people.dialogues[people.dialogue[i]]
            system = systems[judged.system[i]]
            if not people.is_pair:
                values[i] = self.scores.get((name, system), np.nan)
                continue
            other = systems[judged.against[i]]
            first, second = sorted((system, other))
            values[i] = self.scores.get((name, first, second), np.nan)
        return values

    def unrated(self, people: People, *systems: str) -> dict[str, float]:
        """Dialogue -> score, for outputs of these systems (a pair's of both) that no person rated."""
        judged = people.judged
        rated: set[str] = set()
        codes = [judged.systems.index(system) for system in systems]
        if people.is_pair:
            first, second = sorted(codes)
            low, high = np.minimum(judged.system, judged.against), np.maximum(judged.system, judged.against)
            rows = (low == first) & (high == second)
        else:
            rows = judged.system == codes[0]
        rated = {people.dialogues[code] for code in people.dialogue[rows]}
        scores = self.scored(people, *systems)
        return {name: score for name, score in scores.items() if name not in rated}

    def scored(self, people: People, *systems: str) -> dict[str, float]:
        """Dialogue -> score, for all outputs of these systems (a pair's of both)."""
        wanted = tuple(sorted(systems)) if people.is_pair else systems
        return {key[0]: score for key, score in self.scores.items() if key[1:] == wanted}


def verdicts_of(
    table: RatingTable, people: People, *, judge: str | None = None, criterion: str | None = None
) -> Verdicts:
    """One judge's scores on one criterion: the named ones, or those that people's criterion suggests."""
    verdicts = read_verdicts(
        table, people.judged.criterion, is_pair=people.is_pair, judge=judge, criterion=criterion
    )
    if not np.isfinite(verdicts.of_people(people)).any():
        raise no_overlap(verdicts, people.dialogues, people.judged.systems, "people")
    return verdicts


def no_overlap(verdicts: Verdicts, dialogues: Sequence[str], systems: Sequence[str], who: str) -> DataError:
    """A judge that rated nothing of what it is set beside."""
    theirs = sorted({key[0] for key in verdicts.scores})[:3]
    rated = sorted({system for key in verdicts.scores for system in key[1:]})
    return DataError(
        f"{verdicts.judge} rated nothing that {who} rated",
        "judgements are matched by context (or item) and system; judge what people judged",
        [f"{who}: {', '.join(dialogues[:3])} … of {', '.join(systems)}",
         f"{verdicts.judge}: {', '.join(theirs)} … of {', '.join(rated)}"],
    )  # fmt: skip


def read_verdicts(
    table: RatingTable,
    asked: str,
    *,
    is_pair: bool,
    judge: str | None = None,
    criterion: str | None = None,
) -> Verdicts:
    """One judge's scores in a rating table; `asked` is what people are asked."""
    names = ", ".join(table.hashes)
    able = [name for name in table.criteria if _fits(table, name, is_pair)]
    if not able:
        kind = "pairs" if is_pair else "numbers"
        hint = "palaver meta takes people's choices in pairs beside numbers of a judge" if is_pair else ""
        raise DataError(f"{names}: no judge rated in {kind}, as people did ({asked})", hint)
    if criterion is not None:
        if criterion not in able:
            raise UserError(
                f"the judges did not rate {criterion!r}{nearest(criterion, able)}",
                f"known: {', '.join(able)}",
            )
        chosen = criterion
    else:
        same = [name for name in able if table.names[name] == asked]
        if not same and len(able) > 1:
            raise UserError(
                f"{names}: several criteria, and none is called {asked!r}",
                f"say which with --judge-criterion: {', '.join(able)}",
            )
        chosen = (same or able)[0]
    judged = judgements_of(table, chosen, "raw")
    raters = list(judged.raters)
    if judge is not None and judge not in raters:
        raise UserError(f"there is no judge {judge!r}{nearest(judge, raters)}", f"known: {', '.join(raters)}")
    if judge is None and len(raters) > 1:
        raise UserError(
            f"{names}: {len(raters)} judges rated {chosen!r}", f"say which with --judge: {', '.join(raters)}"
        )
    name = judge or raters[0]
    own = judged.rater == raters.index(name)
    codes = judged.dialogue.astype(np.int64)
    dialogues = _names_of(table, judged, codes)
    sums: dict[tuple[str, ...], list[float]] = {}
    said: dict[tuple[str, ...], list[float]] = {}
    certainty = table.of(chosen)["probability"].cast(pl.Float64).to_numpy()
    for i in np.flatnonzero(own & np.isfinite(judged.score)):
        key: tuple[str, ...] = (dialogues[codes[i]], judged.systems[judged.system[i]])
        if is_pair:
            first, second = sorted((judged.system[i], judged.against[i]))
            key = (dialogues[codes[i]], judged.systems[first], judged.systems[second])
        sums.setdefault(key, []).append(float(judged.score[i]))
        if np.isfinite(certainty[i]):
            said.setdefault(key, []).append(float(certainty[i]))
    scores = {key: float(np.mean(values)) for key, values in sums.items()}
    sure = {key: float(np.mean(values)) for key, values in said.items()}
    return Verdicts(name, chosen, scores, _signature(table, name, chosen), sure)


def _fits(table: RatingTable, criterion: str, is_pair: bool) -> bool:
    return _has_scores(table, criterion) and (table.treatments[criterion].kind == "pair") == is_pair


def _signature(table: RatingTable, judge: str, criterion: str) -> str:
    rows = table.of(criterion).filter(pl.col("rater").cast(pl.String) == judge)
    signatures = rows["signature"].drop_nulls().cast(pl.String).unique().to_list()
    return signatures[0] if len(signatures) == 1 else ""


def trust_interval(
    table: RatingTable,
    *,
    confidence: float = 0.95,
    directions: Mapping[str, Direction] | None = None,
) -> TrustReport:
    """Every criterion's means and differences, with intervals clustered by dialogue and by rater."""
    rows: list[IntervalRow] = []
    better = dict(directions or {})
    for criterion in criteria_of_people(table):
        people = people_of(table, criterion)
        sign = -1.0 if better.get(criterion) == "lower" else 1.0
        rows += clustered_intervals(people.judged, people.dialogue, confidence, sign)
    words = [sentence for row in rows if row.against for sentence in (describe_difference(row),)]
    config = {"confidence": confidence, **({"directions": better} if better else {})}
    return make_report("interval", rows, IntervalRow, [table], config, words=words)


def describe_difference(row: IntervalRow) -> str:
    """One comparison in plain words."""
    pair = f"{row.criterion}: {row.system} against {row.against}"
    if row.reason:
        return f"{pair}: no interval ({row.reason})"
    share = "share of wins " if row.is_share else ""
    what = f"{share}{show_fixed(row.value)} {show_interval(row.low, row.high)}"
    wider = row.se / row.se_rows if row.se_rows else float("nan")
    equality = 0.5 if row.is_share else 0.0
    verdict = "they differ" if row.excludes_equality else "not told apart"
    if not row.excludes_equality and not row.low <= equality <= row.high:
        verdict = f"not told apart once all pairs are counted (p {show_fixed(row.adjusted_p, 3)})"
    source = "raters" if row.rater_share > row.dialogue_share else "dialogues"
    part = max(row.rater_share, row.dialogue_share)
    more = f"; {part:.0%} of the uncertainty comes from {source}" if part >= 0.5 else ""
    if wider > 1.05:
        more += f"; rows taken as independent would make it {wider:.1f} times too short"
    return f"{pair}: {what}, {verdict}{more}"
