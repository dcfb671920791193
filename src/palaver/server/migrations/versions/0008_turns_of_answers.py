"""Answers about single turns of a dialogue."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

STORE_ANSWERS = """
CREATE OR REPLACE FUNCTION palaver_store_answers(
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
        given_at, received_at, seconds, shown_position, version, turn
    )
    SELECT
        id, nextval('answer_number'), of_assignment, by_rater, item, system, against, output, criterion,
        value, given_at, now, seconds, shown_position, of_version, turn
    FROM jsonb_to_recordset(given) AS g(
        id text, item text, system text, against text, output text, criterion text, value text,
        given_at float8, seconds float8, shown_position integer, turn integer
    );
    UPDATE assignment SET status = 'done', done_at = now WHERE id = of_assignment;
    RETURN true;
END $$
"""


def upgrade() -> None:
    op.add_column("answer", sa.Column("turn", sa.Integer))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(STORE_ANSWERS)
