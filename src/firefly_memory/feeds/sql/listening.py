"""How PostgreSQL tells of feeds to which other processes have written."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from logging import getLogger

from firefly_memory.databases.notifications import Arrive, Topic, Wake, no_notifications
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.feeds.sql.notifying import CHANNEL, payload

_TOPIC = Topic(CHANNEL, getLogger("firefly_memory.feeds"))


def listening(executor: Executor, location: str, wake: Wake) -> AbstractAsyncContextManager[Arrive]:
    """Nothing arrives in SQLite, through a blocking engine of the caller's, or in a transaction of the caller's."""
    notifications = executor.notifications
    if notifications is None:
        return no_notifications()
    return notifications.listening(_TOPIC, payload(notifications.scope, location), wake)
