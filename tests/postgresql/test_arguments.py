"""The arguments of ``PostgreSQLStore``, such as the names of schemas."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import create_engine

from firefly_memory import ConfigurationError, MemoryEntry, PostgreSQLStore
from tests.support.servers import EmbeddedPostgreSQL
from tests.support.stoppable_postgresql import everything_shown


@pytest.mark.parametrize("name", ["", "1st", "a-b", "a b", 'a"b', "a;drop", "pg_mine", "ü", "x" * 64, "a.b", None])
def test_an_invalid_schema_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="schema_name"):
        PostgreSQLStore("postgresql://localhost/x", schema_name=name)


def test_a_schema_name_may_have_capitals_and_be_a_reserved_word(server: EmbeddedPostgreSQL) -> None:
    for name in ("MySchema", "select", "_x$1"):
        with PostgreSQLStore(server.url, schema_name=name) as store:
            store.save("n", MemoryEntry(content=name))
            assert [entry.content for entry in store.load("n")] == [name]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "either url or engine"),
        ({"url": "postgresql://h/x", "engine": create_engine("sqlite://")}, "either url or engine"),
        ({"engine": create_engine("sqlite://")}, "the engine is for sqlite"),
        ({"url": "postgresql://h/x", "pool_size": 0}, "pool_size"),
        ({"url": "postgresql://h/x", "timeout": 0}, "timeout"),
        ({"url": "mysql://h/x"}, "'mysql' is not PostgreSQL's"),
        ({"url": "h/x"}, "not a PostgreSQL URL"),
        ({"url": "postgresql://h:99999/x"}, "port"),
        ({"url": "postgresql://h:0/x"}, "port"),
        ({"url": "postgresql://h,i:1/x?port=1,2,3"}, "one port for all hosts"),
        ({"url": "postgresql://h/x?connect_timeout=abc"}, "connect_timeout"),
        ({"url": "postgresql://h/x?connect_timeout=-5"}, "connect_timeout"),
        ({"url": "postgresql://h/x?keepalives_idle=1.5"}, "keepalives_idle"),
        ({"url": "postgresql://h/x?sslmode=nonsense"}, "sslmode .* must be one of allow, disable"),
        ({"url": "postgresql://h/x?ssl=nonsense"}, "sslmode"),
        ({"url": "postgresql://h/x?target_session_attrs=nonsense"}, "target_session_attrs"),
        ({"url": "postgresql://u:n%00nsense@h/x"}, "%00"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        PostgreSQLStore(**arguments)
    assert "nsense" not in everything_shown(caught.value), "it may be a part of the password"
