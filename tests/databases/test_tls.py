"""Stores and commands on servers that require TLS, and on servers without TLS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from firefly_memory import ConfigurationError, DatabaseConnectionError, MemoryEntry, MongoDBStore, PostgreSQLStore
from firefly_memory.testing import Mode
from tests.support.backends import Place
from tests.support.command_line import run
from tests.support.store_caller import MakeStoreCaller
from tests.support.tls_servers import (
    SERVER_NAME,
    Certificates,
    make_certificates,
    mongodb_with_tls,
    postgresql_with_tls,
)

pytestmark = pytest.mark.thorough

DRIVERS = ("asyncpg", "psycopg", "mongodb")


@dataclass(frozen=True)
class Secured:
    """A server of each kind, and what its clients may know."""

    certificates: Certificates
    postgresql: str
    mongodb: str

    def url(self, driver: str, *, authority: Path | None = None, host: str = SERVER_NAME) -> str:
        """Verified against ``authority``, or without TLS."""
        if driver == "mongodb":
            options = "" if authority is None else f"&tls=true&tlsCAFile={authority}"
            return self.mongodb.replace(SERVER_NAME, host) + options
        options = "?sslmode=disable" if authority is None else f"?sslmode=verify-full&sslrootcert={authority}"
        return with_driver(self.postgresql, driver).replace(SERVER_NAME, host) + options


def with_driver(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


def opened(url: str) -> PostgreSQLStore | MongoDBStore:
    return MongoDBStore(url, timeout=2) if url.startswith("mongodb") else PostgreSQLStore(url, timeout=2)


@pytest.fixture(scope="module")
def secured(
    servers_of_the_session: dict[str, Callable[[], str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    with (
        postgresql_with_tls(servers_of_the_session["postgresql"](), certificates) as postgresql,
        mongodb_with_tls(certificates) as mongodb,
    ):
        yield Secured(certificates, postgresql, mongodb)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_server_that_proves_its_name_is_used(
    driver: str, mode: Mode, secured: Secured, using: MakeStoreCaller
) -> None:
    used = using(opened(secured.url(driver, authority=secured.certificates.authority)), mode)
    used("save", "tls", MemoryEntry(entry_id=f"{driver} {mode.value}", content="sealed"))
    assert used("load", "tls")[-1].content == "sealed"


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("who", ["signed by somebody else", "another name"])
def test_a_server_that_cannot_prove_its_name_is_not_used(who: str, driver: str, secured: Secured) -> None:
    known = secured.certificates
    url = (
        secured.url(driver, authority=known.other_authority)
        if who == "signed by somebody else"
        else secured.url(driver, authority=known.authority, host="localhost")
    )
    with pytest.raises(DatabaseConnectionError, match=r"(?i)certificate"), opened(url) as store:
        store.save("tls", MemoryEntry(content="for nobody"))


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_server_that_requires_tls_refuses_plain_connections(driver: str, secured: Secured) -> None:
    with pytest.raises(DatabaseConnectionError), opened(secured.url(driver)) as store:
        store.load("tls")


@pytest.mark.parametrize("driver", DRIVERS)
def test_nothing_is_sent_unencrypted_to_a_server_without_tls(driver: str, place: Place) -> None:
    url = f"{place.mongodb()}&tls=true" if driver == "mongodb" else f"{place.with_driver(driver)}?sslmode=require"
    with pytest.raises(DatabaseConnectionError, match=r"(?i)ssl|tls"), opened(url) as store:
        store.save("tls", MemoryEntry(content="for nobody"))


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_missing_certificate_authority_is_an_error_before_connecting(
    driver: str, secured: Secured, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"(sslrootcert|tlsCAFile).* cannot be read"):
        opened(secured.url(driver, authority=tmp_path / "missing.pem"))


@pytest.mark.parametrize("kind", ["postgresql", "mongodb"])
def test_commands_use_tls_like_stores(kind: str, secured: Secured, tmp_path: Path) -> None:
    driver = "psycopg" if kind == "postgresql" else kind
    for authority, code in [(secured.certificates.authority, 0), (secured.certificates.other_authority, 6)]:
        url = secured.url(driver, authority=authority)
        done = run("db", "upgrade", "--url", url, "--timeout", "3", cwd=tmp_path)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
