"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "study",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("secret", sa.String(64), nullable=False),
        sa.Column("admin_hash", sa.String(64)),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_study"),
    )
    op.create_table(
        "screen",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("criteria", sa.Text, nullable=False),
        sa.Column("group_no", sa.Integer, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("block_no", sa.Integer, nullable=False),
        sa.Column("target", sa.Integer, nullable=False),
        sa.Column("taken", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_screen"),
    )
    op.create_index("ix_screen_order", "screen", ["kind", "group_no", "block_no", "id"])
    op.create_table(
        "rater",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("external", sa.Text),
        sa.Column("platform", sa.String(12), nullable=False),
        sa.Column("parameters", sa.Text, nullable=False),
        sa.Column("state", sa.String(14), nullable=False),
        sa.Column("entered_at", sa.Double, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.Column("group_no", sa.Integer),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("checks_failed", sa.Integer, nullable=False),
        sa.Column("blocked", sa.Boolean, nullable=False),
        sa.Column("excluded", sa.Boolean, nullable=False),
        sa.Column("code", sa.String(16), nullable=False),
        sa.Column("survey", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_rater"),
        sa.UniqueConstraint("platform", "external", name="uq_rater_platform_external"),
    )
    op.create_table(
        "assignment",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("screen_id", sa.Integer, nullable=False),
        sa.Column("rater_id", sa.String(32), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("given_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("done_at", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_assignment"),
        sa.ForeignKeyConstraint(["screen_id"], ["screen.id"], name="fk_assignment_screen_id"),
        sa.ForeignKeyConstraint(["rater_id"], ["rater.id"], name="fk_assignment_rater_id"),
        sa.UniqueConstraint("screen_id", "rater_id", name="uq_assignment_screen_id_rater_id"),
    )
    op.create_index("ix_assignment_status", "assignment", ["status", "expires_at"])
    op.create_index("ix_assignment_rater_id", "assignment", ["rater_id", "status"])
    op.create_table(
        "answer",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("assignment_id", sa.Integer, nullable=False),
        sa.Column("rater_id", sa.String(32), nullable=False),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("system", sa.Text, nullable=False),
        sa.Column("against", sa.Text),
        sa.Column("output", sa.Text),
        sa.Column("criterion", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("given_at", sa.Double, nullable=False),
        sa.Column("received_at", sa.Double, nullable=False),
        sa.Column("seconds", sa.Double),
        sa.Column("shown_position", sa.Integer),
        sa.PrimaryKeyConstraint("id", name="pk_answer"),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignment.id"], name="fk_answer_assignment_id"),
        sa.ForeignKeyConstraint(["rater_id"], ["rater.id"], name="fk_answer_rater_id"),
    )
    op.create_index("ix_answer_assignment_id", "answer", ["assignment_id"])
    op.create_index("ix_answer_number", "answer", ["number"], unique=True)
    op.create_table(
        "comment",
        sa.Column("assignment_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("rater_id", sa.String(32), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("received_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("assignment_id", name="pk_comment"),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignment.id"], name="fk_comment_assignment_id"),
        sa.ForeignKeyConstraint(["rater_id"], ["rater.id"], name="fk_comment_rater_id"),
    )
    op.create_table(
        "event",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("rater_id", sa.String(32)),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
    )
