"""firefly-memory's revision 0003, for the Alembic of an application.

Revision ID: firefly_0003
Revises: firefly_0002
"""

from firefly_memory.databases.sql.schema.host_branch import steps_of

revision = "firefly_0003"
down_revision = "firefly_0002"
branch_labels = None
depends_on = None

upgrade, downgrade = steps_of("0003")
