"""Known answers and broken outputs: what they say about a rater, and how somebody leaves politely."""

from __future__ import annotations

from sqlalchemy import Connection, select

from palaver.server import leases
from palaver.server.catalogue import Catalogue, ScreenContent
from palaver.server.records import AnswerKey, Rater, answers_of, change_rater, log
from palaver.server.tables import assignment, screen
from palaver.studies.checks import broken_output, met, rated_lower


def judge_check(
    connection: Connection,
    catalogue: Catalogue,
    me: Rater,
    content: ScreenContent,
    assignment_id: int,
    now: float,
) -> None:
    """Mark a failed check; too many and the rater is screened out."""
    answers = answers_of(connection, assignment_id)
    if content.kind == "check":
        passed = all(met(content.expected, answers))
    else:
        passed = _broken_is_lower(connection, catalogue, me, content, answers)
    if passed:
        return
    failed = me.checks_failed + 1
    change_rater(connection, me.id, checks_failed=failed)
    log(connection, now, me.id, "check failed", content.item.id)
    if failed > catalogue.study.checks.allowed_failures:
        screen_out(connection, me, "failed checks", now)


def _broken_is_lower(
    connection: Connection,
    catalogue: Catalogue,
    me: Rater,
    content: ScreenContent,
    answers: dict[AnswerKey, str],
) -> bool:
    sound = connection.execute(
        select(assignment.c.id)
        .join(screen, screen.c.id == assignment.c.screen_id)
        .where(
            screen.c.kind == "main",
            screen.c.item == content.item.id,
            screen.c.group_no == content.screen.group,
            assignment.c.rater_id == me.id,
        )
    ).scalar()
    if sound is None:
        return True
    item = catalogue.items[content.item.id]
    system = item.outputs[broken_output(item, catalogue.study.seed)].system
    before = {
        c: value for (c, s, t), value in answers_of(connection, sound).items() if s == system and t is None
    }
    after = {c: value for (c, s, t), value in answers.items() if s == system and t is None}
    lowest = {q.criterion: q.scale.bounds.low for q in content.questions if q.scale.form == "number"}
    return rated_lower(before, after, lowest)


def screen_out(connection: Connection, me: Rater, why: str, now: float) -> None:
    """The rater leaves; the rows stay and are marked, the places are free for others."""
    leases.set_excluded(connection, me.id, True)
    change_rater(connection, me.id, state="screened")
    log(connection, now, me.id, "screened", why)
