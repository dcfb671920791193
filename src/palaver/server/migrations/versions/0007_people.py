"""Named admins with roles, decisions about disputed items, and more screens for one rater."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "admin",
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("role", sa.String(8), nullable=False),
        sa.Column("token_hash", sa.String(64)),
        sa.Column("added_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_admin"),
    )
    op.create_table(
        "decision",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("system", sa.Text, nullable=False),
        sa.Column("against", sa.Text),
        sa.Column("criterion", sa.Text, nullable=False),
        sa.Column("value", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("admin", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_decision"),
    )
    op.add_column("admin_session", sa.Column("admin", sa.String(80)))
    op.add_column("rater", sa.Column("extra", sa.Integer))
