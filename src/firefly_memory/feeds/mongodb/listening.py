"""How MongoDB tells of feeds to which other processes have written."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from logging import getLogger

from firefly_memory.databases.mongodb.access import MongoAccess
from firefly_memory.databases.notifications import Arrive, Topic, Wake, no_notifications
from firefly_memory.feeds.mongodb.documents import FEEDS

_TOPIC = Topic(FEEDS, getLogger("firefly_memory.feeds"))


def listening(access: MongoAccess, location: str, wake: Wake) -> AbstractAsyncContextManager[Arrive]:
    """Nothing arrives on a standalone server, without the right to open change streams, or through a blocking client of
    the caller's."""
    notifications = access.notifications
    return no_notifications() if notifications is None else notifications.listening(_TOPIC, location, wake)
