"""Collections: people who talk with each other, or with bots."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "collection",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("n_plans", sa.Integer),
        sa.PrimaryKeyConstraint("id", name="pk_collection"),
    )
    op.create_table(
        "plan",
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_plan"),
    )
    op.create_table(
        "chat_event",
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.String(12), nullable=False),
        sa.Column("room", sa.Integer),
        sa.Column("person", sa.String(32)),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_chat_event"),
    )
    op.create_table(
        "presence",
        sa.Column("person", sa.String(32), nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("person", name="pk_presence"),
    )
    op.create_index("ix_presence_seen_at", "presence", ["seen_at"])
