"""A misspelt name is an error: the names of the package are loaded lazily, and checkers know them all the same."""

from __future__ import annotations

from typing import assert_type

import firefly_memory
import firefly_memory.agents
from firefly_memory import PostgresStore  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from firefly_memory.agents import Memry  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from firefly_memory.tokens import TokenEstimator

assert_type(firefly_memory.SQLiteStore(":memory:"), firefly_memory.SQLiteStore)
assert_type(firefly_memory.agents.Memory(firefly_memory.MemoryManager()).tools, bool)
assert_type(TokenEstimator().estimate("hello"), int)
assert_type(firefly_memory.__version__, str)
firefly_memory.MemoryManger(PostgresStore, Memry)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
