"""firefly-memory's revision 0011_0005, for the Alembic of an application.

Revision ID: firefly_0011_0005
Revises: firefly_0010_0005
"""

from firefly_memory.databases.sql.schema.host_branch import steps_of

revision = "firefly_0011_0005"
down_revision = "firefly_0010_0005"
branch_labels = None
depends_on = None

upgrade, downgrade = steps_of("0011_0005")
