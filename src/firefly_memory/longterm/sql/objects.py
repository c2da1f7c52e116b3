"""What Alembic does not see of facts."""

from firefly_memory.longterm.rows import FACTS
from firefly_memory.search.sql.accelerators.subjects import SearchAccelerators
from firefly_memory.search.sql.objects import index_objects

OBJECTS = tuple(index_objects(FACTS))

ACCELERATORS = SearchAccelerators(FACTS)
