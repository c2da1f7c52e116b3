"""What Alembic does not see of chunks."""

from firefly_memory.knowledge.log import CHUNKS
from firefly_memory.search.sql.accelerators.subjects import SearchAccelerators
from firefly_memory.search.sql.objects import index_objects

OBJECTS = tuple(index_objects(CHUNKS))

ACCELERATORS = SearchAccelerators(CHUNKS)
