"""URLs as people write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import URL, create_engine, make_url

import firefly_memory
from firefly_memory import (
    ConfigurationError,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    connect,
)
from firefly_memory.databases.sql.postgresql.url import postgresql_url
from firefly_memory.urls import without_password
from tests.support.backends import Place
from tests.support.error_chains import shown_by


@pytest.mark.parametrize(
    ("url", "kind", "shown"),
    [
        ("memory:", InMemoryStore, "InMemoryStore()"),
        ("memory://", InMemoryStore, "InMemoryStore()"),
        ("file:some/dir", FileStore, "FileStore('some/dir')"),
        ("file:///some/dir", FileStore, "FileStore('/some/dir')"),
        ("file:/some/my%20dir", FileStore, "FileStore('/some/my dir')"),
        ("file:", FileStore, "FileStore('.firefly_memory')"),
        ("sqlite://", SQLiteStore, "SQLiteStore(':memory:')"),
        ("sqlite:///:memory:", SQLiteStore, "SQLiteStore(':memory:')"),
        ("sqlite:///relative/my%20file.db", SQLiteStore, "SQLiteStore('relative/my file.db')"),
        ("sqlite:////absolute.db", SQLiteStore, "SQLiteStore('/absolute.db')"),
        ("sqlite+aiosqlite:///x.db", SQLiteStore, "SQLiteStore('x.db')"),
        ("postgresql://u:p@h/d", PostgreSQLStore, "PostgreSQLStore('postgresql://u:***@h/d', schema_name='firefly_memory')"),
        ("postgres://h/d", PostgreSQLStore, "PostgreSQLStore('postgresql://h/d', schema_name='firefly_memory')"),
        ("postgresql+asyncpg://h1:1,h2:2/d", PostgreSQLStore, "PostgreSQLStore('postgresql://h1:1,h2:2/d', schema_name='firefly_memory')"),
        ("POSTGRESQL://u:p@h/d", PostgreSQLStore, "PostgreSQLStore('postgresql://u:***@h/d', schema_name='firefly_memory')"),
        ("SQLite:///x.db", SQLiteStore, "SQLiteStore('x.db')"),
        ("FILE:some/dir", FileStore, "FileStore('some/dir')"),
        ("Memory:", InMemoryStore, "InMemoryStore()"),
        ("MongoDB://u:p@h/mine?appName=x", MongoDBStore, "MongoDBStore('mongodb://u:***@h/mine', database='mine', collection='entries')"),
        ("mongodb://u:p@h/admin", MongoDBStore, "MongoDBStore('mongodb://u:***@h/admin', database='firefly_memory', collection='entries')"),
        ("mongodb://u:p@h1,h2:5/", MongoDBStore, "MongoDBStore('mongodb://u:***@h1,h2:5/', database='firefly_memory', collection='entries')"),
    ],
)  # fmt: skip
def test_a_url_opens_its_store(url: str, kind: type, shown: str) -> None:
    store = connect(url)
    assert type(store) is kind
    assert repr(store) == shown
    store.close_sync()


def test_options_of_a_url_are_those_of_the_store_class(tmp_path: Path) -> None:
    assert "database='mine'" in repr(connect("mongodb://h/other", database="mine"))
    store = connect("postgresql://h/d", schema_name="mine", pool_size=3)
    assert "schema_name='mine'" in repr(store)
    with pytest.raises(TypeError, match="nonsense"):
        connect(f"sqlite:///{tmp_path}/x.db", nonsense=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql+pymysql://u:s3cret@h/d", r"starts with 'mysql\+pymysql':"),
        ("memory.db", "this is not a URL: use sqlite:///memory.db"),
        ("u:s3cret@h", "no store has a URL that starts with 'u':"),
        ("s3cret@:", "this is not a URL"),
        ("", "this is not a URL"),
        ("memory:x", "starts with 'memory'"),
        ("sqlite:x.db", "not an SQLite URL"),
        ("sqlite:///x.db?timeout=5", "has no parameters here"),
        (None, "not NoneType"),
        (5, "not int"),
    ],
)
def test_an_invalid_url_is_refused_with_a_hint(url: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        connect(url)
    assert "s3cret" not in str(caught.value)


def test_sqlalchemys_own_url_objects_keep_their_password() -> None:
    for url in (make_url("postgresql+asyncpg://u:s3cret@h:5/d"), URL.create("postgresql", "u", "s3cret", "h", 5, "d")):
        assert postgresql_url(url).parameters["password"] == "s3cret"
        assert "s3cret" not in repr(PostgreSQLStore(url))
        assert isinstance(connect(url), PostgreSQLStore)


@pytest.mark.parametrize(
    ("url", "libpq"),
    [
        ("postgresql://", {}),
        ("postgresql:///name", {"dbname": "name"}),
        ("postgresql://user@host", {"user": "user", "host": "host"}),
        ("postgresql://us%40er:p%2Fa%3Fss@host/na%20me", {"user": "us@er", "password": "p/a?ss", "host": "host", "dbname": "na me"}),
        ("postgresql://u:p@ss@host/d", {"user": "u", "password": "p@ss", "host": "host", "dbname": "d"}),
        ("postgresql://h1,h2:5433,[::1]:5/d", {"host": "h1,h2,::1", "port": ",5433,5", "dbname": "d"}),
        ("postgresql://%2Ftmp/d", {"host": "/tmp", "dbname": "d"}),
        ("postgresql:///d?host=/var/run/postgresql&port=5", {"dbname": "d", "host": "/var/run/postgresql", "port": "5"}),
        ("postgresql://u@/d?host=a:1&host=b:2", {"user": "u", "dbname": "d", "host": "a,b", "port": "1,2"}),
        ("postgresql+asyncpg://h/d?ssl=true", {"host": "h", "dbname": "d", "sslmode": "require"}),
        ("postgresql+asyncpg://h/d?ssl=verify-full", {"host": "h", "dbname": "d", "sslmode": "verify-full"}),
        ("postgresql://h/d?sslmode=require&channel_binding=require", {"host": "h", "dbname": "d", "sslmode": "require", "channel_binding": "require"}),
        ("postgres://h/?database=d&timeout=5&application_name=mine", {"host": "h", "dbname": "d", "connect_timeout": "5", "application_name": "mine"}),
        ("POSTGRESQL://h/d", {"host": "h", "dbname": "d"}),
    ],
)  # fmt: skip
def test_postgresql_urls_are_read_as_libpq_would(url: str, libpq: dict[str, str]) -> None:
    assert postgresql_url(url).parameters == libpq


@pytest.mark.parametrize(
    "url",
    ["postgresql://h:x/d", "postgresql://u:p/ss@h/d", "postgresql://[::1/d", "postgresql://h/d?x", "postgresql:", "h"],
)
def test_postgresql_urls_that_cannot_be_read_are_refused_without_showing_them(url: str) -> None:
    with pytest.raises(ConfigurationError, match="PostgreSQL URL") as caught:
        postgresql_url(url)
    assert "ss@" not in str(caught.value).replace("user:password@host", "")


def test_urls_that_only_libpq_understands_go_to_psycopg() -> None:
    assert not postgresql_url("postgresql://h/d?sslmode=require&keepalives=1&application_name=x").only_libpq_understands
    assert postgresql_url("postgresql://h/d?channel_binding=require").only_libpq_understands == {"channel_binding"}
    url = postgresql_url("postgresql://u:p@h1,h2:5433/d?keepalives_idle=5&connect_timeout=7&sslmode=disable")
    assert url.connect_timeout == 7
    assert url.for_asyncpg() == {
        "dsn": "postgresql://?sslmode=disable", "user": "u", "password": "p", "database": "d",
        "host": ["h1", "h2"], "port": [5432, 5433],
    }  # fmt: skip
    assert url.for_psycopg()["keepalives_idle"] == "5"


async def test_a_url_that_only_libpq_understands_works_in_both_modes(place: Place) -> None:
    separator = "&" if "?" in place.postgresql() else "?"
    url = f"{place.postgresql()}{separator}channel_binding=disable"
    async with PostgreSQLStore(url) as store:
        await store.async_save("libpq", MemoryEntry(content=1))
        assert [entry.content for entry in store.load("libpq")] == [1]
        store.clear("libpq")


async def test_parameters_of_the_url_reach_the_server(place: Place) -> None:
    separator = "&" if "?" in place.postgresql() else "?"
    options = quote("-c timezone=Asia/Tokyo")
    store = PostgreSQLStore(f"{place.postgresql()}{separator}application_name=mine&options={options}")
    await store.initialize()
    store.initialize_sync()
    import psycopg

    with psycopg.connect(place.postgresql()) as connection:
        counted = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mine'").fetchone()
    assert counted is not None
    assert counted[0] >= 2
    store.save("options", MemoryEntry())
    assert await store.async_load("options") == store.load("options")
    store.clear("options")
    await store.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///my file.db", "sqlite:///my file.db"),
        ("file:some/dir", "file:some/dir"),
        ("postgresql://h/d?sslmode=require", "postgresql://h/d?sslmode=require"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("postgresql://u:s3cret@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:s3c@ret@h:5/d", "postgresql://u:***@h:5/d"),
        # The query is no part of the password, and a path has none.
        ("postgresql://h:5/d?user=u&password=s3c@ret", "postgresql://h:5/d?user=u&password=***"),
        ("postgresql://h:5/d?pass%77ord=s3cret&user=me@there", "postgresql://h:5/d?pass%77ord=***&user=me@there"),
        ("postgresql://u:s3cret@h/d?application_name=a@b", "postgresql://u:***@h/d?application_name=a@b"),
        ("postgresql://u:s3cret@[::1]:5,h2/d", "postgresql://u:***@[::1]:5,h2/d"),
        ("mongodb://u:s3cret@h/?appName=a@b", "mongodb://u:***@h/?appName=a@b"),
        ("postgresql://h/d?sslkey=/secret/key", "postgresql://h/d?sslkey=/secret/key"),
        ("mongodb://h/?w=1;tlsCertificateKeyFilePassword=s3c;ret", "mongodb://h/?w=***"),
        ("sqlite:///my:notes@home.db", "sqlite:///my:notes@home.db"),
        ("file:my:notes@home?password=1", "file:my:notes@home?password=1"),
        ("sqlite+pysqlcipher://:s3cret@/my.db", "sqlite+pysqlcipher://:***@/my.db"),
        # What can be read in two ways is not shown: a password with a bare "/", "?", "=" or "@".
        ("postgresql://u:s3c@ret/s3cret@h:5/d", "postgresql://***"),
        ("postgresql://u:s3c/ret@h:5/d", "postgresql://***"),
        ("postgresql://u:s3c?ret@h/d", "postgresql://***"),
        ("postgresql://u:s3c@ret?a=s3cret@h/d?sslmode=require", "postgresql://***"),
        ("postgresql://u:s3c@ret?password@h/d?sslmode=require", "postgresql://***"),
        ("postgresql://u:12?s3cret", "postgresql://***"),
        ("postgresql://u:s3cret", "postgresql://***"),
        ("postgresql:u:s3cret@h/d", "postgresql://***"),
        ("u s3cret", "***"),
        ("postgresql:///d?user=u&password=s3cret&sslpassword=s3cret", "postgresql:///d?user=u&password=***&sslpassword=***"),
        ("mongodb://u:s3cret@h1,h2:5/d?replicaSet=r", "mongodb://u:***@h1,h2:5/d?replicaSet=r"),
        ("mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:s3cret", "mongodb://h/?authMechanismProperties=***"),
        ("mongodb://h/?tlsCertificateKeyFilePassword=s3cret", "mongodb://h/?tlsCertificateKeyFilePassword=***"),
    ],
)  # fmt: skip
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg"])
@pytest.mark.parametrize(
    "rest",
    [
        "u:12/s3cret@h/d",
        "u:s3c/ret@h:5/d",
        "u:1@s3c/ret@h/d",
        "u:12/s3c?ret=x@h/d",
        "u:12?s3cret=x@h",
        "u:12?s3cret@h/d",
        "u:12?a=s3cret&b=x@h/d",
        "u:12/@s3cret@h/d",
        "u:12?s3cret",
    ],
)
def test_an_ambiguous_url_is_refused_and_not_shown(scheme: str, rest: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        connect(f"{scheme}://{rest}")
    assert "s3c" not in shown_by(caught.value)
    assert "percent-encoded" in str(caught.value) or "name=value" in str(caught.value)


@pytest.mark.parametrize("password", ["p/w", "p@w", "p#w", "p?w", "p:w", "p%w", "p&w=", "p w"])
def test_a_password_may_have_any_character_if_it_is_percent_encoded(password: str) -> None:
    url = postgresql_url(f"postgresql://u:{quote(password, safe='')}@h/d")
    assert url.parameters["password"] == password
    assert password not in repr(PostgreSQLStore(f"postgresql://u:{quote(password, safe='')}@h/d"))


@pytest.mark.parametrize("password", ["p#w", "p@w", "p:w"])
def test_a_password_may_contain_harmless_characters_unencoded(password: str) -> None:
    url = postgresql_url(f"postgresql://u:{password}@h/d")
    assert url.parameters["password"] == password
    assert password not in repr(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://h/d?password=s3cret",
        "postgresql+psycopg://u:s3cret@h/d",
        "postgresql+psycopg:///d?host=/run&password=s3cret",
    ],
)
def test_an_engine_of_the_caller_is_shown_without_its_secrets(url: str) -> None:
    engine = create_engine(url)
    store = PostgreSQLStore(engine=engine)
    assert "psycopg://" in repr(store)
    assert "s3cret" not in repr(store)
    engine.dispose()


def test_connect_is_a_public_name() -> None:
    assert firefly_memory.connect is connect


@pytest.mark.parametrize(
    "timeout", [0, -1, float("nan"), float("inf"), 10**400, True, "1", None], ids=lambda it: repr(it)[:8]
)
@pytest.mark.parametrize("url", ["sqlite:///x.db", "postgresql://h/x", "mongodb://h/", "file:x"])
def test_a_time_out_of_a_store_is_a_finite_number_above_0(url: str, timeout: Any) -> None:
    with pytest.raises(ConfigurationError, match="must be a number of seconds above 0"):
        connect(url, timeout=timeout)
