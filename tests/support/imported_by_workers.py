"""What workers import, and the vocabularies they count with, once for all of them."""

from __future__ import annotations

import warnings
from contextlib import suppress
from importlib import import_module

import tiktoken

from tests.support import pymongo_pauses
from tests.support.tiktoken_vocabularies import VOCABULARIES

warnings.simplefilter("error")
pymongo_pauses.shorten()
for name in (
    "asyncpg",
    "motor.motor_asyncio",
    "firefly_memory.testing",
    "psycopg",
    "tests.support.command_line",
    "tests.support.history_stores",
    "tests.support.store_worker",
    "tests.support.mongodb_append_worker",
):
    import_module(name)
with suppress(ImportError):  # pydantic-ai's ConversationStore is newer than the oldest pydantic-ai
    import_module("tests.support.agent_history_worker")
for name in VOCABULARIES:
    tiktoken.get_encoding(name)
