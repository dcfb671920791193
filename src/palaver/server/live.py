"""Agreement, ranking and raters' habits while a study runs, kept up to date in the background.

What is kept is a cache of what the database says: every process can have its own, and losing it costs only
the time to compute it again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import polars as pl
from sqlalchemy import func, select

from palaver.errors import DataError
from palaver.readers.ratings import ORDER
from palaver.schema import Study
from palaver.server.database import Database
from palaver.server.export import EVERYBODY, FOR_ANALYSIS, Selection, read_answers, study_of
from palaver.server.records import count_answers, stop_reason
from palaver.server.stopping import watch_study
from palaver.server.tables import answer, assignment, rater, screen
from palaver.statistics.bootstrap import Resampling
from palaver.studies.agreement import agree
from palaver.studies.judgements import Judgements, judgements_of
from palaver.studies.rankings import rank_systems
from palaver.studies.raters import describe_raters
from palaver.studies.ratings import RatingTable, read_ratings
from palaver.studies.results import AgreementRow, RankingRow, RaterRow
from palaver.studies.trust_plan import dialogues_of
from palaver.studies.trust_sequence import Watch

CONFIDENCE = 0.95
REPLICATES = 400
"""Fewer than in a report: these numbers are looked at, not published."""
MOST_WATCHED, MOST_ANSWERS = 5, 5000
"""Systems and answers of a study that is watched although it does not stop by itself."""
POINTS = 8
"""How many earlier moments the course of the agreement shows."""
PAUSE = 4.0
"""Seconds between two computations, at the least."""


@dataclass(frozen=True, slots=True)
class Point:
    """The agreement when `answers` answers were there."""

    answers: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionNow:
    """What is known of one criterion so far."""

    criterion: str
    agreement: AgreementRow | None
    course: tuple[Point, ...]
    rankings: tuple[RankingRow, ...]
    """By bootstrap over items; for boxes one per box."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything that takes a while to compute, as of `answers` answers."""

    answers: int = 0
    took: float = 0.0
    criteria: tuple[CriterionNow, ...] = ()
    raters: Mapping[str, RaterRow] = field(default_factory=dict)
    screen_seconds: float = np.nan
    """Median active time on one screen."""
    problem: str = ""
    watches: tuple[Watch, ...] = ()
    """Every two systems, with intervals that hold at all looks."""
    planned: int = 0
    """Dialogues that the whole study has."""
    judge: str = ""
    """Whose scores help these intervals."""
    stops: bool = False
    """Whether the study stops when it is sure."""
    stopped: str | None = None
    """Why it stopped, if it did."""


def compute_findings(database: Database, study: Study, answers: int = 0, *, out: bool = True) -> Findings:
    """Compute all of it now. Excluded raters (`out`: there are some) have flags, but no say in the rest."""
    began = time.perf_counter()
    table = _table(database, study, FOR_ANALYSIS)
    everybody = _table(database, study, EVERYBODY) if out else table
    criteria = tuple(_criterion(table, name) for name in table.criteria) if table else ()
    judged = [judgements_of(everybody, name) for name in everybody.criteria] if everybody else []
    stops = study.stop == "when-sure"
    stopped = None
    if stops:
        with database.reading() as connection:
            stopped = stop_reason(connection)
    return Findings(
        watches=tuple(watch_study(database, study)) if _is_watched(study, answers) else (),
        planned=len(dialogues_of(study)),
        judge=(study.stop_judge.judge or "") if study.stop_judge is not None else "",
        stops=stops,
        stopped=stopped,
        answers=answers,
        took=time.perf_counter() - began,
        criteria=criteria,
        raters={row.rater: row for row in describe_raters(judged)} if judged else {},
        screen_seconds=_screen_seconds(database),
    )


def _is_watched(study: Study, answers: int) -> bool:
    """A study that stops by itself; another one while that costs little."""
    if study.stop == "when-sure":
        return True
    small = len(study.systems) <= MOST_WATCHED and answers <= MOST_ANSWERS
    return small and study.deciding_criterion is not None and len(study.systems) > 1


def _table(database: Database, study: Study, selection: Selection) -> RatingTable | None:
    try:
        return read_ratings(read_answers(database, selection), study=study, skip_bad=True)
    except DataError:  # nobody has answered yet
        return None


def _criterion(table: RatingTable, name: str) -> CriterionNow:
    judged = judgements_of(table, name)
    boxes = judged.treatment.kind == "boxes"
    rankings = rank_systems(judged, _resampling())
    return CriterionNow(
        criterion=name,
        agreement=_headline(judged),
        course=tuple(_course(table, name)),
        rankings=tuple(rankings if boxes else islice(rankings, 1)),
    )


def _resampling() -> Resampling:
    return Resampling(CONFIDENCE, REPLICATES, np.random.default_rng(0))


def _headline(judged: Judgements) -> AgreementRow | None:
    """Stops at the row it wants, so that what comes after it is not computed."""
    return next((row for row in agree(judged, _resampling()) if row.headline), None)


def _course(table: RatingTable, name: str) -> Sequence[Point]:
    """The agreement after an eighth, two eighths … of the answers."""
    rows = table.of(name)
    n = rows.height
    points: list[Point] = []
    for part in range(1, POINTS + 1):
        upto = n * part // POINTS
        if upto < 2 or (points and points[-1].answers == upto):
            continue
        last = rows[ORDER][upto - 1]
        early = replace(table, frame=table.frame.filter(pl.col(ORDER) <= last))
        row = _headline(judgements_of(early, name))
        if row is not None and np.isfinite(row.value):
            points.append(Point(upto, row.value, row.low, row.high))
    return points


def _screen_seconds(database: Database) -> float:
    """The answers of a page arrive together and each has the page's time; a screen may be several pages."""
    page = (
        select(answer.c.assignment_id, func.max(answer.c.seconds).label("seconds"))
        .join(assignment, assignment.c.id == answer.c.assignment_id)
        .join(screen, screen.c.id == assignment.c.screen_id)
        .join(rater, rater.c.id == answer.c.rater_id)
        .where(screen.c.kind == "main", assignment.c.status == "done", rater.c.excluded.is_(False))
        .where(answer.c.seconds.is_not(None))
        .group_by(answer.c.assignment_id, answer.c.received_at)
        .subquery()
    )
    with database.reading() as connection:
        rows = connection.execute(select(func.sum(page.c.seconds)).group_by(page.c.assignment_id)).scalars()
        seconds = [float(s) for s in rows]
    return float(np.median(seconds)) if seconds else np.nan


class Live:
    """The newest findings, without waiting for them."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database, self._clock = database, clock
        self._lock = threading.Lock()
        self._known: Findings | None = None
        self._key: object = None
        self._busy = False
        self._again_at = 0.0

    def current(self) -> Findings | None:
        """What was computed last; begins to compute anew if there is news, and not too often."""
        key = self._news()
        with self._lock:
            if key != self._key and not self._busy and self._clock() >= self._again_at:
                self._busy = True
                threading.Thread(
                    target=self._compute, args=(key,), daemon=True, name="live statistics"
                ).start()
            return self._known

    def wait(self) -> Findings:
        """What is true now, computed in this thread."""
        key = self._news()
        with self._lock:
            if self._known is not None and key == self._key:
                return self._known
        return self._compute(key)

    def _news(self) -> tuple[int, tuple[str, ...]]:
        with self._database.reading() as connection:
            last = count_answers(connection)
            out = connection.execute(select(rater.c.id).where(rater.c.excluded.is_(True))).scalars()
            return last, tuple(sorted(out))

    def _compute(self, key: tuple[int, tuple[str, ...]]) -> Findings:
        try:
            study = study_of(self._database)  # it may have been amended
            findings = compute_findings(self._database, study, key[0], out=bool(key[1]))
        except Exception:  # a page without statistics is better than none; the next answer tries again
            logging.getLogger(__name__).exception("the live statistics failed")
            findings = Findings(answers=key[0], problem="the statistics could not be computed; see the log")
        with self._lock:
            self._known, self._key, self._busy = findings, key, False
            # Raters come first: however large the study, this takes a fifth of one core at most.
            self._again_at = self._clock() + max(PAUSE, 5 * findings.took)
        return findings
