"""firefly-memory's revision 0004, for the Alembic of an application.

Revision ID: firefly_0004
Revises: firefly_0003
"""

from firefly_memory.databases.sql.schema.host_branch import steps_of

revision = "firefly_0004"
down_revision = "firefly_0003"
branch_labels = None
depends_on = None

upgrade, downgrade = steps_of("0004")
