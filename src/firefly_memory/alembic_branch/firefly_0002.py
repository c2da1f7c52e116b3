"""firefly-memory's revision 0002, for the Alembic of an application.

Revision ID: firefly_0002
Revises: firefly_0001
"""

from firefly_memory.databases.sql.schema.host_branch import steps_of

revision = "firefly_0002"
down_revision = "firefly_0001"
branch_labels = None
depends_on = None

upgrade, downgrade = steps_of("0002")
