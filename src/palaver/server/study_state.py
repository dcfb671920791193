"""What raters do, as calls: come in, agree, train, answer, leave. Every call is one transaction.

Pages and programs go through here; nothing about a study's course is kept in the process.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection, func, insert, select, update

from palaver.errors import Sentence, UserError
from palaver.schema import Item, Question, Study
from palaver.schema.delivery import SurveyQuestion
from palaver.server import leases, shortcuts
from palaver.server.answers import (
    CHANGES,
    RawAnswer,
    answer_row,
    check_order,
    drop_unasked,
    is_complete,
    store,
    values_of,
)
from palaver.server.database import Database
from palaver.server.editions import (
    Edition,
    add_version,
    begin_study,
    is_version,
    more_screens,
    newest_version,
    read_edition,
)
from palaver.server.entry import Browser, check_return
from palaver.server.media import keep_files
from palaver.server.next_screen import checks_due, next_screen, quota_of
from palaver.server.rater_checks import judge_check
from palaver.server.records import (
    LEFT,
    AnswerKey,
    Rater,
    answers_of,
    change_rater,
    log,
    meet,
    rater_of,
    stop_reason,
)
from palaver.server.refusal import Refusal, storable
from palaver.server.stopping import Stopping
from palaver.server.tables import comment, rater, screen
from palaver.server.tables import study as study_table
from palaver.studies.amendment import Amendment, compare_studies
from palaver.studies.checks import met
from palaver.studies.turns import count_answers

Clock = Callable[[], float]
MAX_COMMENT = 5000
MOST_COMMENTS = 100
"""On one screen, of one rater."""


@dataclass(frozen=True, slots=True)
class Task:
    """A screen in a rater's hands, with everything its page shows."""

    assignment: int
    kind: str
    item: Item
    questions: tuple[Question, ...]
    order: tuple[int, ...]
    """Outputs by shown position."""
    answered: Mapping[tuple[str, int, int | None], str]
    """(criterion, position, turn) -> value, as far as it was answered before."""
    done: int
    """Screens answered so far; checks count like all others."""
    total: int
    attempt: int = 0
    """Which attempt at the training this is, from 1."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Where a rater stands."""

    rater: str
    state: str
    """consent, instructions, training, working, waiting, survey, done, unneeded, declined, withdrawn,
    screened or blocked.

    `waiting`: others hold all screens that are left. `unneeded`: somebody who came when none was left.
    """
    task: Task | None
    code: str | None
    url: str | None
    platform: str
    parameters: Mapping[str, str]
    has_worked: bool = False
    seconds_to_wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a submission did: the ids that need not be sent again, and whether the screen is finished."""

    saved: tuple[str, ...]
    finished: bool
    has_feedback: bool = False
    """A training screen, whose answers are explained on a page of their own."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a trainee hears about a screen: the screen with the answers, whether all are right, and hints."""

    task: Task
    passed: bool
    hints: tuple[str, ...]


class StudyState:
    """One study in its database: where everybody stands, and every step that somebody takes."""

    def __init__(self, database: Database, clock: Clock = time.time) -> None:
        self.database = database
        self.clock = clock
        with database.reading() as connection:
            self._edition = read_edition(connection)
            self.secret: str = connection.execute(select(study_table.c.secret)).scalar_one()
        self._given = shortcuts.RecentLeases()
        self._stopping = Stopping(database)

    @property
    def study(self) -> Study:
        return self._edition.study

    @property
    def version(self) -> int:
        return self._edition.version

    @property
    def source(self) -> str:
        """The study's file as it was written."""
        return self._edition.source

    @property
    def hash(self) -> str:
        return self._edition.hash

    def newest(self) -> Edition:
        """The study as it is now: it may have been amended, by whatever process."""
        with self.database.reading() as connection:
            return self._edition_of(connection, newest_version(connection))

    def _edition_of(self, connection: Connection, version: int) -> Edition:
        """The study as it is; if it was amended meanwhile, by whatever process, it is read again."""
        if version != self._edition.version:
            self._edition = read_edition(connection)
        return self._edition

    @classmethod
    def create(
        cls,
        database: Database,
        study: Study,
        source: str,
        clock: Clock = time.time,
        folder: Path | None = None,
    ) -> StudyState:
        """Open the study in this database, putting it there first if the database is new.

        `folder` is where the study file is, beside which its images and sounds are.
        """
        with database.writing() as connection:
            row = connection.execute(select(study_table.c.name)).first()
            if row is None:
                begin_study(connection, study, source, clock(), folder)
                database.note_sizes(connection)
            elif not is_version(connection, study):  # an earlier one, too: the admin's page may have amended
                raise UserError(
                    f"the database holds the study {row.name!r} as it began, and the file has changed since",
                    "palaver study amend says what can be taken over; or serve it with another --database",
                )
        return cls(database, clock)

    def amend(self, study: Study, source: str, *, folder: Path | None = None, by: str = "") -> Amendment:
        """Change the study while it runs. What was answered keeps the version it was answered under."""
        now = self.clock()
        with self.database.writing() as connection:
            before = read_edition(connection)
            amendment = compare_studies(before.study, study)
            if amendment.refusals:
                raise UserError(
                    "this would make answers incomparable",
                    "serve it as a study of its own, with another --database",
                    amendment.refusals,
                )
            if not amendment.changes:
                return amendment
            keep_files(connection, study, folder)
            number = before.version + 1
            version = add_version(connection, number, study, source, now)
            connection.execute(update(study_table).values(**version))
            connection.execute(
                update(screen).where(screen.c.kind == "main").values(target=study.raters_per_item)
            )
            if amendment.new_items:
                connection.execute(insert(screen), more_screens(connection, study, amendment.new_items))
                self.database.note_sizes(connection)
            changes = "; ".join([*amendment.changes, f"by {by}"] if by else amendment.changes)
            log(connection, now, None, "amended", f"version {number}: {changes}")
            self._edition = read_edition(connection)
        return amendment

    def enter(
        self,
        platform: str = "link",
        external: str | None = None,
        parameters: Mapping[str, str] | None = None,
        browser: Browser | None = None,
    ) -> str:
        """The rater's id: a new one, or the one this person had before, if the browser may go on as it."""
        now = self.clock()
        kept = json.dumps({k: storable(v, k, 500) for k, v in (parameters or {}).items()})
        if external is not None:
            storable(external, Sentence("name"), 200)
        with self.database.writing() as connection:
            if external is not None:
                known = connection.execute(
                    select(rater).where(rater.c.platform == platform, rater.c.external == external)
                ).first()
                if known is not None:  # perhaps with another assignment of the platform's
                    check_return(connection, known, parameters or {}, browser)
                    if known.state not in LEFT:  # who has left keeps the assignment that was worked on
                        change_rater(connection, known.id, parameters=kept)
                    return str(known.id)
            new = secrets.token_hex(16)
            connection.execute(
                insert(rater).values(
                    id=new,
                    external=external,
                    platform=platform,
                    parameters=kept,
                    state="consent" if self.study.consent else "instructions",
                    entered_at=now,
                    seen_at=now,
                    attempts=0,
                    checks_failed=0,
                    blocked=False,
                    excluded=False,
                    code=secrets.token_hex(4).upper(),
                )
            )
            log(connection, now, new, "entered", platform)
            return new

    def visit(self, rater_id: str) -> Visit:
        """Where the rater stands; hands out the next screen to somebody who is working."""
        now = self.clock()
        visit = self._take_next(rater_id, now) or self._step_in(rater_id, now)
        while visit is None:
            with self.database.writing() as connection:
                leases.reclaim(connection, now)
            visit = self._step_in(rater_id, now)
        return visit

    def state_of(self, rater_id: str) -> str:
        """The state of a rater who may go on; `blocked` for one who may not. No screen is handed out."""
        with self.database.step() as connection:
            me = meet(connection, rater_id, self.clock())
            return "blocked" if me.blocked and me.state not in LEFT else str(me.state)

    def _take_next(self, rater_id: str, now: float) -> Visit | None:
        """The usual case in one call: somebody at work gets the next screen. None in all others."""
        edition = self._edition
        taken = shortcuts.take_screen(self.database, edition.study, edition.version, rater_id, now)
        if taken is None:
            return None
        held = leases.Lease(
            taken.assignment_id, rater_id, taken.screen_id, "main", taken.turn, "open", fresh=True
        )
        self._given[held.id] = held
        return self._visit(taken, "working", _task(edition, held, {}, taken.shown))

    def _step_in(self, rater_id: str, now: float) -> Visit | None:
        """None if leases ran out that have to be taken back first."""
        with self.database.step() as connection:
            me = meet(connection, rater_id, now)
            standing = leases.standing_of(connection, rater_id, now)
            edition = self._edition_of(connection, me.study_version)
            if me.blocked and me.state not in LEFT:
                return self._visit(me, "blocked")
            if me.state not in ("training", "working", "consent", "instructions"):
                return self._visit(me, me.state)
            if standing.some_ran_out:
                return None
            if me.state in ("consent", "instructions"):
                return self._visit(me, me.state if self._is_work_left(connection, me.id) else "unneeded")
            held = next_screen(connection, edition.catalogue, me, standing, now)
            if held is None:
                return self._without_work(connection, rater_of(connection, me.id), standing.done, now)
            if me.waiting_since is not None:
                change_rater(connection, me.id, waiting_since=None)
            state = "working" if held.kind != "training" else me.state  # the training may just be passed
            answers = {} if held.fresh else answers_of(connection, held.id)
            return self._visit(me, state, _task(edition, held, answers, standing.shown))

    def _visit(self, me: Rater, state: str, task: Task | None = None) -> Visit:
        end = self.study.completion
        code, url = end.code or me.code, end.url
        if state == "screened":
            code, url = end.screen_out_code or me.code, end.screen_out_url
        elif state == "unneeded":
            code, url = end.no_work_code, end.no_work_url
        elif state in ("declined", "withdrawn"):
            code, url = None, None
        return Visit(me.id, state, task, code, url, me.platform, json.loads(me.parameters))

    def _is_work_left(self, connection: Connection, rater_id: str) -> bool:
        if self._has_stopped(connection):
            return False
        return leases.neediest_group(connection, rater_id) is not None or leases.others_hold_work(
            connection, rater_id
        )

    def _has_stopped(self, connection: Connection) -> bool:
        return self.study.stop == "when-sure" and stop_reason(connection) is not None

    def _without_work(self, connection: Connection, me: Rater, n_done: int, now: float) -> Visit:
        """There is no screen for this rater: wait for one that others hold, or leave."""
        if me.state not in ("training", "working"):  # just screened out
            return self._visit(me, me.state)
        most = quota_of(self.study, me)
        may_do_more = (most is None or n_done < most) and not self._has_stopped(connection)
        if may_do_more and leases.others_hold_work(connection, me.id):
            since = now if me.waiting_since is None else me.waiting_since
            if me.waiting_since is None:
                change_rater(connection, me.id, waiting_since=now)
                log(connection, now, me.id, "waiting")
            left = since + self.study.wait_minutes * 60 - now
            if left > 0:
                visit = self._visit(me, "waiting")
                return replace(visit, has_worked=n_done > 0, seconds_to_wait=left)
        if n_done == 0:  # not written down: more items, or somebody excluded, may bring work
            return self._visit(me, "unneeded")
        state = "survey" if self.study.survey and me.survey is None else "done"
        change_rater(connection, me.id, state=state)
        log(connection, now, me.id, state)
        return self._visit(me, state)

    def agree(self, rater_id: str) -> None:
        """Consent is given."""
        self._advance(rater_id, "consent", "instructions")

    def decline(self, rater_id: str) -> None:
        """Consent is not given."""
        self._advance(rater_id, "consent", "declined")

    def withdraw(self, rater_id: str) -> None:
        """The rater leaves before the end: the rows stay and are marked, the places are free for others."""
        with self.database.writing() as connection:
            if rater_of(connection, rater_id).state not in LEFT:
                leases.set_excluded(connection, rater_id, True)
                change_rater(connection, rater_id, state="withdrawn")
                log(connection, self.clock(), rater_id, "withdrawn")

    def begin(self, rater_id: str) -> None:
        """The instructions are read."""
        self._advance(rater_id, "instructions", "training" if self.study.training else "working")

    def _advance(self, rater_id: str, before: str, after: str) -> None:
        now = self.clock()
        with self.database.step() as connection:
            if meet(connection, rater_id, now).state == before:  # twice is once
                change_rater(connection, rater_id, state=after)
                log(connection, now, rater_id, after)

    def answer_survey(
        self, rater_id: str, answers: Mapping[str, str], shown: Sequence[SurveyQuestion] = ()
    ) -> None:
        """The questions at the end; `shown` in the rater's language, in which what is missing is named."""
        asked = {q.name: q for q in shown or self.study.survey}
        kept = {n: storable(text, n, MAX_COMMENT) for n, text in answers.items() if n in asked and text}
        lacking = [q.text for q in asked.values() if q.required and q.name not in kept]
        if lacking:
            raise Refusal(Sentence("please answer: {questions}", questions="; ".join(lacking)), 422)
        for name, text in kept.items():
            if asked[name].options and text not in asked[name].options:
                raise Refusal(
                    Sentence("{question}: choose one of the options", question=asked[name].text), 422
                )
        now = self.clock()
        with self.database.step() as connection:
            if meet(connection, rater_id, now).state == "survey":
                change_rater(connection, rater_id, state="done", survey=json.dumps(kept))
                log(connection, now, rater_id, "done")

    def submit(
        self,
        rater_id: str,
        assignment_id: int,
        answers: Sequence[RawAnswer],
        remark: str = "",
        remark_on: int | None = None,
    ) -> Receipt:
        """Store answers. The same answer (by its id) sent again is one row, and is acknowledged again.

        `remark_on` is the position of the output that the remark is about; None for the whole page.
        """
        receipt = self._submit(rater_id, assignment_id, answers, remark, remark_on)
        if receipt.finished and self.study.stop == "when-sure":
            self._stopping.consider(self.study, self.clock())
        return receipt

    def _submit(
        self,
        rater_id: str,
        assignment_id: int,
        answers: Sequence[RawAnswer],
        remark: str,
        remark_on: int | None,
    ) -> Receipt:
        now = self.clock()
        ids = tuple(a.id for a in answers)
        if not remark and self._store_all(rater_id, assignment_id, answers, now):
            return Receipt(ids, True)
        with self.database.step() as connection:
            me = meet(connection, rater_id, now)
            if me.blocked:
                raise Refusal("you can no longer take part in this study", 403)
            if me.state in ("declined", "withdrawn"):
                raise Refusal("you have left this study", 403)
            held = leases.hold(connection, rater_id, assignment_id)
            edition = self._edition_of(connection, me.study_version)
            content = edition.catalogue.content(held.screen)
            order = edition.order(content, held)
            given = [answer_row(a, content, held.id, rater_id, order, now, edition.version) for a in answers]
            most = CHANGES * count_answers(content.item, content.questions)
            n_new, values = store(connection, held, given, content.questions, most)
            if n_new and content.kind == "training" and held.status in ("done", "late"):
                raise Refusal("this part of the training is over: its answers cannot be changed", 409)
            if remark.strip() and edition.study.comments:
                if remark_on is not None and remark_on >= len(order):
                    raise Refusal(Sentence("there is no output in place {place}", place=remark_on), 422)
                about = None if remark_on is None else content.item.outputs[order[remark_on]].system
                text = storable(remark.strip(), Sentence("comment"), MAX_COMMENT)
                _keep_comment(connection, held, about, text, now)
            is_training = content.kind == "training"
            if held.status in ("done", "late"):
                return Receipt(ids, True, has_feedback=is_training)
            if not is_complete(values, content.item, content.questions):
                leases.renew(connection, me, held, now, edition.study.lease_minutes * 60)
                return Receipt(ids, False)
            leases.finish(connection, me, held, now)
            if content.kind in ("check", "degraded"):
                judge_check(connection, edition.catalogue, me, content, held.id, now)
            return Receipt(ids, True, has_feedback=is_training)

    def _store_all(self, rater_id: str, assignment_id: int, answers: Sequence[RawAnswer], now: float) -> bool:
        """The usual case in one call: all that a real screen asks for, at once. False in all others."""
        edition, held = self._edition, self._given.get(assignment_id)
        if held is None or held.rater != rater_id:
            return False
        content = edition.catalogue.content(held.screen)
        order = edition.order(content, held)
        rows = [answer_row(a, content, held.id, rater_id, order, now, edition.version) for a in answers]
        values = values_of(rows)
        rows = drop_unasked(rows, values, content.questions)
        if len(values) < len(answers) or not is_complete(values, content.item, content.questions):
            return False
        check_order(values, content.questions)
        if not shortcuts.store_answers(self.database, edition.version, rater_id, held.id, now, rows):
            return False
        self._given.pop(held.id, None)
        return True

    def show_life(self, rater_id: str, assignment_id: int) -> None:
        """Somebody is at the page of this screen: it stays theirs."""
        now = self.clock()
        with self.database.step() as connection:
            me = meet(connection, rater_id, now)
            held = leases.hold(connection, rater_id, assignment_id)
            if held.status in ("open", "expired"):
                leases.renew(connection, me, held, now, self.study.lease_minutes * 60)

    def look_back(self, rater_id: str, position: int) -> tuple[Task, int] | None:
        """The page before the one at `position` of the screen in hand: its screen, and the place there.

        None for somebody who has answered nothing yet, or has left.
        """
        with self.database.reading() as connection:
            me = rater_of(connection, rater_id)
            if me.blocked or me.state != "working":
                return None
            standing = leases.standing_of(connection, rater_id, self.clock())
            edition = self._edition_of(connection, me.study_version)
            if standing.held is not None and position > 0:
                held = leases.lease_of(connection, rater_id, standing.held)
                if held.kind != "training":
                    answers = answers_of(connection, held.id)
                    return _task(edition, held, answers, standing.shown), position - 1
            latest = leases.latest_answered(connection, rater_id)
            if latest is None:
                return None
            task = _task(edition, latest, answers_of(connection, latest.id), standing.shown)
            return task, len(task.order) - 1

    def feedback(self, rater_id: str, assignment_id: int) -> Feedback:
        """How a training screen went that this rater has answered."""
        with self.database.reading() as connection:
            me = rater_of(connection, rater_id)
            held = leases.lease_of(connection, rater_id, assignment_id)
            if held.kind != "training" or held.status not in ("done", "late"):
                raise Refusal("there is nothing to say about this screen", 404)
            standing = leases.standing_of(connection, rater_id, self.clock())
            edition = self._edition_of(connection, me.study_version)
            expected = edition.catalogue.content(held.screen).expected
            answers = answers_of(connection, held.id)
            right = met(expected, answers)
            hints = [e.feedback for e, ok in zip(expected, right, strict=True) if not ok]
            task = _task(edition, held, answers, standing.shown)
            return Feedback(task, all(right), tuple(hint for hint in hints if hint))


def _task(edition: Edition, held: leases.Lease, answers: Mapping[AnswerKey, str], n_shown: int) -> Task:
    """The screen in a rater's hands who has answered so many."""
    study, catalogue = edition.study, edition.catalogue
    content = catalogue.content(held.screen)
    order = edition.order(content, held)
    place = {content.item.outputs[o].system: position for position, o in enumerate(order)}
    comparisons = {q.criterion for q in content.questions if q.scale.form == "pair"}
    answered = {
        (criterion, 0 if criterion in comparisons else place[system], turn): value
        for (criterion, system, turn), value in answers.items()
    }
    n_screens = min(study.items_per_rater or catalogue.n_screens, catalogue.n_screens)
    return Task(
        assignment=held.id,
        kind=held.kind,
        item=content.item,
        questions=content.questions,
        order=order,
        answered=answered,
        done=n_shown,
        total=max(n_shown + 1, n_screens + checks_due(study, held.rater, n_screens)),
        attempt=content.screen.place + 1 if held.kind == "training" else 0,
    )


def _keep_comment(
    connection: Connection, held: leases.Lease, about: str | None, text: str, now: float
) -> None:
    """Comments stand beside each other; the same one sent twice is one."""
    row = {"assignment_id": held.id, "rater_id": held.rater, "system": about, "text": text}
    same = [comment.c[name].is_not_distinct_from(value) for name, value in row.items()]
    if connection.execute(select(comment.c.id).where(*same)).first() is None:
        mine = select(func.count()).where(comment.c.assignment_id == held.id)
        if connection.execute(mine).scalar_one() >= MOST_COMMENTS:
            raise Refusal("there are too many comments on this screen", 429)
        connection.execute(insert(comment).values(**row, received_at=now))
