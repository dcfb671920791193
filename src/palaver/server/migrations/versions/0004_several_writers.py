"""PostgreSQL: several raters at once.

Answers draw their numbers from a sequence, screens with room are found by an index, and what nearly every
request does is one call: `palaver_take_screen` and `palaver_store_answers` (see `palaver.server.shortcuts`).
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TAKE_SCREEN = """
CREATE FUNCTION palaver_take_screen(
    gate bigint, by_rater text, now float8, lease float8, of_version integer,
    quota integer, check_rate float8, check_offset float8, most_checks integer
) RETURNS TABLE (
    id text, code text, platform text, parameters text,
    assignment_id integer, screen_id integer, turn integer, shown bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    me rater;
    mine record;
    checks_due float8;
    chosen integer;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(gate);
    SELECT * INTO me FROM rater WHERE id = by_rater FOR NO KEY UPDATE;
    IF NOT FOUND OR me.blocked OR me.state <> 'working' OR me.group_no IS NULL
        OR me.waiting_since IS NOT NULL
        OR (SELECT max(number) FROM study_version) <> of_version
        OR EXISTS (SELECT FROM assignment WHERE status = 'open' AND expires_at <= now) THEN
        RETURN;
    END IF;
    SELECT
        count(*) FILTER (WHERE a.status IN ('open', 'expired')) AS held,
        count(*) FILTER (WHERE a.status IN ('done', 'late') AND s.kind = 'main') AS done,
        count(*) FILTER (WHERE a.status IN ('done', 'late') AND s.kind <> 'training') AS shown,
        count(*) FILTER (WHERE s.kind IN ('check', 'degraded')) AS checks
    INTO mine
    FROM assignment a JOIN screen s ON s.id = a.screen_id WHERE a.rater_id = by_rater;
    checks_due := least(floor(mine.done * check_rate + check_offset), most_checks);
    IF mine.held > 0 OR mine.done >= quota OR mine.done > 0 AND checks_due > mine.checks THEN
        RETURN;
    END IF;
    SELECT s.id INTO chosen FROM screen s
        WHERE s.kind = 'main' AND s.group_no = me.group_no AND s.taken < s.target
        AND NOT EXISTS (SELECT FROM assignment a WHERE a.screen_id = s.id AND a.rater_id = by_rater)
        ORDER BY s.block_no, s.taken, s.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE rater SET seen_at = now WHERE id = by_rater;
    IF NOT me.excluded THEN
        UPDATE screen SET taken = taken + 1 WHERE id = chosen;
    END IF;
    RETURN QUERY
        INSERT INTO assignment AS a (screen_id, rater_id, status, turn, given_at, expires_at)
        VALUES (
            chosen, by_rater, 'open', (SELECT count(*) FROM assignment b WHERE b.screen_id = chosen),
            now, now + lease
        )
        RETURNING
            me.id::text, me.code::text, me.platform::text, me.parameters,
            a.id, a.screen_id, a.turn, mine.shown;
END $$
"""

STORE_ANSWERS = """
CREATE FUNCTION palaver_store_answers(
    gate bigint, by_rater text, of_assignment integer, now float8, of_version integer, given jsonb
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    me rater;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(gate);
    SELECT * INTO me FROM rater WHERE id = by_rater FOR NO KEY UPDATE;
    IF NOT FOUND OR me.blocked OR me.state IN ('declined', 'withdrawn')
        OR (SELECT max(number) FROM study_version) <> of_version THEN
        RETURN false;
    END IF;
    PERFORM FROM assignment
        WHERE id = of_assignment AND rater_id = by_rater AND status = 'open' FOR NO KEY UPDATE;
    IF NOT FOUND OR EXISTS (SELECT FROM answer WHERE assignment_id = of_assignment) THEN
        RETURN false;
    END IF;
    UPDATE rater SET seen_at = now WHERE id = by_rater;
    INSERT INTO answer (
        id, number, assignment_id, rater_id, item, system, against, output, criterion, value,
        given_at, received_at, seconds, shown_position, version
    )
    SELECT
        id, nextval('answer_number'), of_assignment, by_rater, item, system, against, output, criterion,
        value, given_at, now, seconds, shown_position, of_version
    FROM jsonb_to_recordset(given) AS g(
        id text, item text, system text, against text, output text, criterion text, value text,
        given_at float8, seconds float8, shown_position integer
    );
    UPDATE assignment SET status = 'done', done_at = now WHERE id = of_assignment;
    RETURN true;
END $$
"""


def upgrade() -> None:
    has_room = sa.text("taken < target")
    op.create_index(
        "ix_screen_free",
        "screen",
        ["kind", "group_no", "block_no", "taken", "id"],
        sqlite_where=has_room,
        postgresql_where=has_room,
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE answer_number AS integer OWNED BY answer.number")
        op.execute("SELECT setval('answer_number', (SELECT coalesce(max(number), 0) + 1 FROM answer), false)")
        op.execute(TAKE_SCREEN)
        op.execute(STORE_ANSWERS)
