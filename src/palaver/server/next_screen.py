"""The next screen for a rater: the one in hand, training, a check that is due, or real work."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from sqlalchemy import Connection, select

from palaver.schema import Pairwise, Study
from palaver.server import leases
from palaver.server.catalogue import UNLIMITED, Catalogue
from palaver.server.rater_checks import screen_out
from palaver.server.records import Rater, answers_of, change_rater, log, rater_of, stop_reason
from palaver.server.tables import answer, assignment, rater, screen
from palaver.statistics.trueskill import TrueSkillSettings, trueskill
from palaver.studies.checks import met

_SETTINGS = TrueSkillSettings(tau=0.0, draw_probability="observed")
_OUTCOME = {word: round(2 * score - 1) for word, score in Pairwise.SCORES.items()}
"""What TrueSkill calls them: 1, 0 and -1."""


def next_screen(
    connection: Connection, catalogue: Catalogue, me: Rater, standing: leases.Standing, now: float
) -> leases.Lease | None:
    """Hand out the next screen; None when there is nothing (more) for this rater."""
    seconds = min(catalogue.study.lease_minutes * 60, leases.SIGN_OF_LIFE)
    if standing.held is not None:
        held = leases.hold(connection, me.id, standing.held)
        if leases.renew(connection, me, held, now, seconds):
            return held
    if me.state == "training":
        trained, taken = _training(connection, catalogue, me, now)
    else:
        trained, taken = True, None
    if trained:
        taken = _due_check(connection, catalogue, me, standing)
        most = quota_of(catalogue.study, me)
        if taken is None and (most is None or standing.done < most):
            return _work(connection, catalogue, me, now, seconds)
    if taken is None:
        return None
    leases.occupy(connection, me, taken)  # checks and training have room for everybody
    kind = catalogue.content(taken).kind
    return leases.give(connection, me.id, taken, kind, now, seconds)


def _work(
    connection: Connection, catalogue: Catalogue, me: Rater, now: float, seconds: float
) -> leases.Lease | None:
    """Real work; one group of questions until nothing of it is left, so that criteria stay apart."""
    if catalogue.study.stop == "when-sure" and stop_reason(connection) is not None:
        return None
    taken = _occupy(connection, catalogue, me, me.group_no) if me.group_no is not None else None
    while taken is None:
        group = leases.neediest_group(connection, me.id)
        if group is None:
            return None
        change_rater(connection, me.id, group_no=group)
        taken = _occupy(connection, catalogue, me, group)
    return leases.give(connection, me.id, taken, "main", now, seconds)


def _occupy(connection: Connection, catalogue: Catalogue, me: Rater, group: int) -> int | None:
    """Take a place at a screen of this group: the next one, or the one that tells most."""
    if catalogue.study.assignment != "active":
        return leases.occupy_next(connection, me, group)
    while free := leases.free_screens(connection, me.id, "main", group):
        chosen = _most_telling(connection, catalogue, free)
        if leases.occupy(connection, me, chosen):
            return chosen
    return None


def _most_telling(connection: Connection, catalogue: Catalogue, free: list[int]) -> int:
    rows = connection.execute(select(screen.c.id, screen.c.item).where(screen.c.id.in_(free)))
    pairs = {s: tuple(o.system for o in catalogue.items[item].outputs) for s, item in rows}
    told = connection.execute(
        select(answer.c.system, answer.c.against, answer.c.value)
        .join(assignment, assignment.c.id == answer.c.assignment_id)
        .join(screen, screen.c.id == assignment.c.screen_id)
        .join(rater, rater.c.id == answer.c.rater_id)
        .where(answer.c.against.is_not(None), screen.c.kind == "main", ~rater.c.excluded)
        .order_by(answer.c.number)
    )
    return most_telling(pairs, [(a, b, value) for a, b, value in told])


def _due_check(
    connection: Connection, catalogue: Catalogue, me: Rater, standing: leases.Standing
) -> int | None:
    """A check is due every 1/rate real screens, at a place that differs from rater to rater."""
    checks, given = catalogue.study.checks, standing.checks
    if standing.done == 0 or checks_due(catalogue.study, me.id, standing.done) <= given:
        return None
    known = leases.free_screens(connection, me.id, "check", me.group_no)
    if known:
        return known[int(check_offset(me.id) * 997 + given) % len(known)]
    return _broken_copy(connection, me) if checks.degraded else None


def quota_of(study: Study, me: Rater) -> int | None:
    """How many real screens this rater may answer; None for all."""
    most = study.items_per_rater
    return None if most is None else most + (me.extra or 0)


def checks_due(study: Study, rater_id: str, done: int) -> int:
    """How many checks a rater is to have had after so many real screens."""
    return min(int(done * study.checks.rate + check_offset(rater_id)), most_checks(study))


def most_checks(study: Study) -> int:
    """How many checks a rater can have; broken copies do not run out."""
    return UNLIMITED if study.checks.degraded else len(study.checks.items)


def check_offset(rater_id: str) -> float:
    """A number from 0 to 1 that is the rater's own."""
    return int(hashlib.sha256(rater_id.encode()).hexdigest()[:8], 16) / 2**32


def _broken_copy(connection: Connection, me: Rater) -> int | None:
    """A screen this rater has answered, again, with one output spoiled."""
    answered = connection.execute(
        select(screen.c.item, screen.c.group_no)
        .join(assignment, assignment.c.screen_id == screen.c.id)
        .where(assignment.c.rater_id == me.id, assignment.c.status == "done", screen.c.kind == "main")
    )
    mine = {(item, group) for item, group in answered}
    free = leases.free_screens(connection, me.id, "degraded", me.group_no, limit=len(mine) * 50)
    rows = connection.execute(
        select(screen.c.id, screen.c.item, screen.c.group_no).where(screen.c.id.in_(free))
    )
    copies = {s: (item, group) for s, item, group in rows}
    return next((s for s in free if copies[s] in mine), None)  # a database may give rows in any order


def _training(connection: Connection, catalogue: Catalogue, me: Rater, now: float) -> tuple[bool, int | None]:
    """(passed, next training screen). Failing the last attempt screens the rater out."""
    training = catalogue.study.training
    if training is None:
        return True, None
    rows = connection.execute(
        select(screen.c.id, assignment.c.id, assignment.c.status)
        .outerjoin(assignment, (assignment.c.screen_id == screen.c.id) & (assignment.c.rater_id == me.id))
        .where(screen.c.kind == "training", screen.c.block_no == me.attempts)
        .order_by(screen.c.id)
    ).all()
    unanswered = [s for s, held, status in rows if held is None or status not in ("done", "late")]
    if unanswered:
        return False, unanswered[0]
    right: list[bool] = []
    for screen_id, held, _ in rows:
        right += met(catalogue.content(screen_id).expected, answers_of(connection, held))
    score = f"{sum(right)} of {len(right)}"
    if sum(right) >= training.pass_mark * len(right):
        change_rater(connection, me.id, state="working")
        log(connection, now, me.id, "trained", score)
        return True, None
    change_rater(connection, me.id, attempts=me.attempts + 1)
    log(connection, now, me.id, "training failed", score)
    if me.attempts + 1 >= training.attempts:
        screen_out(connection, me, "failed the training", now)
        return False, None
    return _training(connection, catalogue, rater_of(connection, me.id), now)


def most_telling(pairs: Mapping[int, tuple[str, ...]], answers: Sequence[tuple[str, str, str]]) -> int:
    """Of the screens in `pairs` (screen -> its two systems), the one whose outcome is most open.

    TrueSkill's match quality (Herbrich et al. 2006, section 4), weighted by how unsure both skills are:
    two systems that are known to be equal have little left to say.
    """
    systems = sorted(
        {name for pair in pairs.values() for name in pair} | {n for a, b, _ in answers for n in (a, b)}
    )
    code = {name: i for i, name in enumerate(systems)}
    mu, sigma = np.full(len(systems), _SETTINGS.mu), np.full(len(systems), _SETTINGS.sigma)
    if answers:
        first, second, outcome = (
            np.array(column)
            for column in zip(*((code[a], code[b], _OUTCOME[v]) for a, b, v in answers), strict=True)
        )
        skills = trueskill((first, second, outcome), len(systems), _SETTINGS)
        mu, sigma = skills.mu, skills.sigma

    def worth(screen: int) -> float:
        a, b = (code[name] for name in pairs[screen])
        spread = sigma[a] ** 2 + sigma[b] ** 2
        total = 2 * _SETTINGS.beta**2 + spread
        return float(np.exp(-((mu[a] - mu[b]) ** 2) / (2 * total)) * spread)

    return max(pairs, key=lambda s: (worth(s), -s))
