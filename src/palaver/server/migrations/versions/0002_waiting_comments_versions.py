"""Raters who wait, comments that stand beside each other, studies that are amended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rater", sa.Column("waiting_since", sa.Double))
    kept = op.get_bind().execute(sa.text("SELECT assignment_id, rater_id, text, received_at FROM comment"))
    comments = [dict(row) for row in kept.mappings()]
    op.drop_table("comment")
    comment = op.create_table(
        "comment",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("assignment_id", sa.Integer, nullable=False),
        sa.Column("rater_id", sa.String(32), nullable=False),
        sa.Column("system", sa.Text),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("received_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_comment"),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignment.id"], name="fk_comment_assignment_id"),
        sa.ForeignKeyConstraint(["rater_id"], ["rater.id"], name="fk_comment_rater_id"),
    )
    op.create_index("ix_comment_assignment_id", "comment", ["assignment_id"])
    op.bulk_insert(comment, comments)
    op.add_column("answer", sa.Column("version", sa.Integer))
    op.create_table(
        "study_version",
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_study_version"),
    )
    op.execute(
        "INSERT INTO study_version (number, document, source, hash, at) "
        "SELECT 1, document, source, hash, created_at FROM study"
    )
    op.execute("UPDATE answer SET version = 1")
