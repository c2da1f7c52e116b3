"""Servers that talk to nobody without TLS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme

from tests.support.pgbouncer import PgBouncer
from tests.support.servers import EmbeddedMongoDB

SERVER_NAME = "127.0.0.1"
"""The name in the servers' certificate. They also answer as "localhost", which is not in it."""


@dataclass(frozen=True)
class Certificates:
    """Files in PEM."""

    authority: Path
    """Whoever trusts this one trusts the server."""
    other_authority: Path
    key: Path
    certificate: Path
    key_and_certificate: Path


def make_certificates(directory: Path) -> Certificates:
    authority, other = trustme.CA(), trustme.CA()
    server = authority.issue_cert(SERVER_NAME)
    files = {
        "authority": authority.cert_pem,
        "other_authority": other.cert_pem,
        "key": server.private_key_pem,
        "certificate": server.cert_chain_pems[0],
        "key_and_certificate": server.private_key_and_cert_chain_pem,
    }
    paths = {name: directory / f"{name}.pem" for name in files}
    for name, pem in files.items():
        pem.write_to_path(str(paths[name]))
    return Certificates(**paths)


@contextmanager
def postgresql_with_tls(server_url: str, certificates: Certificates) -> Iterator[str]:
    """The embedded PostgreSQL has no TLS: PgBouncer, which has it, stands in front of the server at ``server_url``."""
    pooler = PgBouncer(server_url, "session", pool_size=20, ignore_startup_parameters="options")
    for name in ("key", "certificate"):  # PgBouncer runs as another user
        copy = pooler.directory / f"{name}.pem"
        copy.write_bytes(getattr(certificates, name).read_bytes())
        copy.chmod(0o644)
    pooler.settings |= {
        "client_tls_sslmode": "require",
        "client_tls_key_file": str(pooler.directory / "key.pem"),
        "client_tls_cert_file": str(pooler.directory / "certificate.pem"),
    }
    try:
        pooler.start()
        yield pooler.url
    finally:
        pooler.remove()


@contextmanager
def mongodb_with_tls(certificates: Certificates) -> Iterator[str]:
    """The URL without its options for TLS."""
    server = EmbeddedMongoDB(certificate=certificates.key_and_certificate, authority=certificates.authority)
    try:
        server.start()
        yield server.url.partition("&tls")[0]
    finally:
        server.remove()
