"""What workers import, and the vocabularies they count with, once for all of them."""

from __future__ import annotations

import gc
import pkgutil
import warnings
from contextlib import suppress
from importlib import import_module

import tiktoken

import firefly_memory
from tests.support import pymongo_pauses
from tests.support.tiktoken_vocabularies import VOCABULARIES

_RUNS_WHEN_IMPORTED = ("__main__", "alembic_branch")

warnings.simplefilter("error")
pymongo_pauses.shorten()
for module in pkgutil.walk_packages(firefly_memory.__path__, f"{firefly_memory.__name__}."):
    if not any(part in _RUNS_WHEN_IMPORTED for part in module.name.split(".")):
        with suppress(ImportError):  # pydantic-ai's ConversationStore is newer than the oldest pydantic-ai
            import_module(module.name)
for name in (
    "alembic.command",
    "alembic.config",
    "asyncpg",
    "motor.motor_asyncio",
    "psycopg",
    "rich.console",
    "rich.table",
    "tqdm",
    "tests.support.agent_worker",
    "tests.support.command_line",
    "tests.support.copy_worker",
    "tests.support.documentation",
    "tests.support.forget_worker",
    "tests.support.history_stores",
    "tests.support.mongodb_append_worker",
    "tests.support.mongodb_feed_worker",
    "tests.support.prune_worker",
    "tests.support.store_worker",
):
    import_module(name)
with suppress(ImportError):
    import_module("tests.support.agent_history_worker")
for name in VOCABULARIES:
    tiktoken.get_encoding(name)
gc.freeze()  # so the collector of a worker looks at the objects of that worker only
