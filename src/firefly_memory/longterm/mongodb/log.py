"""Long-term memory in MongoDB."""

from __future__ import annotations

from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.longterm.mongodb.facts import MongoFactLog
from firefly_memory.longterm.mongodb.people import MongoPeopleLog


class MongoLongTermLog:
    """A :class:`~firefly_memory.longterm.log.LongTermLog` on clients of one mode."""

    def __init__(self, access: MongoAccess) -> None:
        self.facts = MongoFactLog(access)
        self.people = MongoPeopleLog(access)
