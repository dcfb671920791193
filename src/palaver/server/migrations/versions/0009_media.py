"""Images and sounds that studies show, by content."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "media_file",
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("type", sa.String(20), nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("hash", name="pk_media_file"),
    )
    op.create_table(
        "media_piece",
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(["hash"], ["media_file.hash"], name="fk_media_piece_hash"),
        sa.PrimaryKeyConstraint("hash", "number", name="pk_media_piece"),
    )
