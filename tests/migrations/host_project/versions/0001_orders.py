"""The application's orders. Its ids may be the same as firefly-memory's."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table("orders", sa.Column("id", sa.Integer, primary_key=True), sa.Column("item", sa.Text, nullable=False))


def downgrade() -> None:
    op.drop_table("orders")
