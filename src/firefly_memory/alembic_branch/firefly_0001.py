"""firefly-memory's revision 0001, for the Alembic of an application.

Revision ID: firefly_0001
Revises:
"""

from firefly_memory.databases.sql.schema.host_branch import steps_of

revision = "firefly_0001"
down_revision = None
branch_labels = ("firefly_memory",)
depends_on = None

upgrade, downgrade = steps_of("0001")
