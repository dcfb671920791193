"""What one process tells the others and nobody keeps: who types, what arrived, a bot's words so far."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "chat_signal",
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("room", sa.Integer, nullable=False),
        sa.Column("sender", sa.String(32), nullable=False),
        sa.Column("frame", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_chat_signal"),
        sqlite_autoincrement=True,
    )
