"""Sessions of the admin, browsers that want to go on as somebody known, and where the study is served."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("study", sa.Column("address", sa.Text))
    op.create_table(
        "admin_session",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("began_at", sa.Double, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.Column("browser", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_admin_session"),
    )
    op.create_table(
        "resume_request",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("rater_id", sa.String(32), nullable=False),
        sa.Column("device", sa.String(32), nullable=False),
        sa.Column("asked_at", sa.Double, nullable=False),
        sa.Column("is_allowed", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resume_request"),
        sa.ForeignKeyConstraint(["rater_id"], ["rater.id"], name="fk_resume_request_rater_id"),
        sa.UniqueConstraint("rater_id", "device", name="uq_resume_request_rater_id_device"),
    )
