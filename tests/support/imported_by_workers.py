"""What workers import, and the vocabularies they count with, once for all of them."""

from __future__ import annotations

import gc
import pkgutil
import warnings
from contextlib import suppress
from importlib import import_module

import tiktoken

import firefly_memory
import tests.support
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
    "tests.support.command_line",
    "tests.support.documentation",
    "tests.support.history_stores",
):
    import_module(name)
for module in pkgutil.iter_modules(tests.support.__path__, f"{tests.support.__name__}."):
    if module.name.endswith("_worker"):
        with suppress(ImportError):  # as above; a worker that cannot be imported fails where it is started
            import_module(module.name)
for name in VOCABULARIES:
    tiktoken.get_encoding(name)
gc.freeze()  # so the collector of a worker looks at the objects of that worker only
