"""URLs of any form, and settings: a store or a ConfigurationError, and a password nowhere."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from firefly_memory import connect
from firefly_memory.errors import ConfigurationError, FireflyMemoryError
from firefly_memory.settings import read_settings
from firefly_memory.target import Given, target
from firefly_memory.urls import without_password
from tests.fuzzing.limits import bounded
from tests.fuzzing.mutations import odd_texts
from tests.support.backends import Place

PASSWORD = "XyzzyPlugh"
"""In no part of a URL but the password, and in no line of the library."""

SCHEMES = [
    "postgresql", "postgres", "postgresql+asyncpg", "postgresql+psycopg", "mongodb", "memory", "mysql", "http", "", "POSTGRESQL",
]  # fmt: skip

OPTIONS = [
    "sslmode", "ssl", "tls", "tlsCAFile", "authMechanism", "authSource", "replicaSet", "application_name", "options", "host", "port",
    "user", "password", "sslpassword", "timeout", "connect_timeout", "target_session_attrs", "maxPoolSize", "w", "readPreference",
    "tlsCertificateKeyFilePassword", "authMechanismProperties", "directConnection", "nonsense",
]  # fmt: skip

_words = st.sampled_from(
    ["h", "localhost", "u", "d", "a b", "é", "%20", "%00", "%", "[::1]", "h:1", "h1,h2", "true", "1", "require", "."]
)

_separators = st.sampled_from(
    [":", "/", "@", "?", "&", "=", "#", ";", ",", "//", "://", "%40", "%2F", " ", "\n", "\x00"]
)

_options = st.builds("{}={}".format, st.sampled_from(OPTIONS), _words | odd_texts)


@contextmanager
def bodies(_: Place, backends: Collection[str] | None = None) -> Iterator[dict[str, Callable[[st.DataObject], None]]]:
    targets = {"connect": _connect, "settings": _settings}
    yield {name: body for name, body in targets.items() if not backends or name in backends}


@st.composite
def urls(draw: Any) -> tuple[str, str]:
    """A URL, and the password in it."""
    password = PASSWORD
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(PASSWORD)))
        password = password[:at] + draw(_separators | _words) + password[at:]
    password = f"{PASSWORD[:4]}{password}{PASSWORD[-4:]}"
    credentials = draw(st.sampled_from([f"u:{password}@", f":{password}@", f"u:{password}", "", "u@"]))
    query = "&".join(draw(st.lists(_options, max_size=3)))
    parts = [
        draw(st.sampled_from(SCHEMES)),
        "://",
        credentials,
        draw(_words),
        draw(st.sampled_from(["/d", "", "/", "/a/b"])),
    ]
    url = "".join(parts) + (f"?{query}" if query else "")
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(url)))
        url = url[:at] + draw(_separators) + url[at + draw(st.integers(0, 1)) :]
    return url, password


def _is_quiet(shown: str, password: str) -> None:
    whole = any(
        each.lower() in shown.lower()
        for each in {password, PASSWORD, PASSWORD[:4] + PASSWORD[:2], PASSWORD[-2:] + PASSWORD[-4:]}
    )
    assert not whole, f"this shows the password: {shown}"


def _messages(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield f"{error} {error!r} {error.args}"
        error = error.__cause__ or error.__context__


def _connect(data: st.DataObject) -> None:
    url, password = data.draw(urls())
    with bounded():
        try:
            store = connect(url)
        except ConfigurationError as error:
            for message in _messages(error):
                _is_quiet(message, password)
        else:
            if f":{password}@" in url:  # else it may be the name of a host, which nobody could tell from one
                _is_quiet(repr(store), password)
                _is_quiet(without_password(url), password)
            store.close_sync()


def _settings(data: st.DataObject) -> None:
    url, password = data.draw(urls())
    of_urls = st.dictionaries(
        st.sampled_from(["URL", "POSTGRES_URL", "MONGODB_URL"]), st.just(url) | odd_texts, max_size=2
    )
    names = ["BACKEND", "POSTGRES_SCHEMA", "SQLITE_PATH", "MONGODB_COLLECTION", "MIGRATE"]
    others = st.dictionaries(st.sampled_from(names), odd_texts | _words, max_size=2)
    chosen = data.draw(of_urls) | data.draw(others)
    variables = {
        f"FIREFLY_AGENTIC_MEMORY_{name}": value.replace("\0", "").encode("utf-8", "replace").decode()
        for name, value in chosen.items()
    }
    with warnings.catch_warnings(), mock.patch.dict(os.environ, variables), bounded():
        warnings.simplefilter("ignore")
        _from_environment(password)


def _from_environment(password: str) -> None:
    try:
        found = target(read_settings(), Given(None, None, option="--{}"))
        store = None if found is None else connect(found.url, **found.options)
    except FireflyMemoryError as error:
        for message in _messages(error):
            _is_quiet(message, password)
    else:
        if store is not None:
            store.close_sync()
