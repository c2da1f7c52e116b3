"""PostgreSQL URLs as people write them, in the words of the driver that will use them."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from sqlalchemy import URL

from firefly_memory.errors import ConfigurationError
from firefly_memory.reprs import even_half_built
from firefly_memory.url_text import is_ambiguous, is_option

_SCHEMES = {
    "postgres": None,
    "postgresql": None,
    "postgres+asyncpg": "asyncpg",
    "postgresql+asyncpg": "asyncpg",
    "postgresql+psycopg": "psycopg",
    "postgresql+psycopg_async": "psycopg",
    "postgresql+psycopg2": "psycopg",
}

_SHAPE = re.compile(
    r"(?P<scheme>[^:/?#]+)://(?P<server>[^/?]*)(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?", re.DOTALL
)

# What asyncpg reads from a URL, and what it may pass on to the server, which knows these as settings.
_ASYNCPG_READS = {
    "host", "port", "user", "password", "dbname", "passfile", "service", "sslmode", "sslcert", "sslkey",
    "sslrootcert", "sslnegotiation", "sslcrl", "sslpassword", "ssl_min_protocol_version",
    "ssl_max_protocol_version", "target_session_attrs", "krbsrvname", "gsslib", "connect_timeout",
    "application_name", "options", "client_encoding",
}  # fmt: skip

# What libpq and asyncpg take for these, so that a slip is found before anybody connects.
_TAKES = {
    "sslmode": {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"},
    "sslnegotiation": {"postgres", "direct"},
    "gssencmode": {"disable", "prefer", "require"},
    "channel_binding": {"disable", "prefer", "require"},
    "target_session_attrs": {"any", "read-write", "read-only", "primary", "standby", "prefer-standby"},
    "load_balance_hosts": {"disable", "random"},
}

# Where one is missing, libpq and asyncpg go on with less than was asked for, unless sslmode asks for more.
_FILES = {"sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir"}

# Harmless to leave out where the driver does not know them: they keep idle connections alive.
_KEEPALIVES = {"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"}

# What libpq knows beside those. It refuses any other name, but says so only where it connects.
_ONLY_LIBPQ_KNOWS = {
    "hostaddr", "fallback_application_name", "replication", "gssencmode", "gssdelegation", "channel_binding",
    "require_auth", "requirepeer", "requiressl", "load_balance_hosts", "servicefile", "sslcompression", "sslcertmode",
    "sslcrldir", "sslsni", "sslkeylogfile", "min_protocol_version", "max_protocol_version", "scram_client_key",
    "scram_server_key", "oauth_issuer", "oauth_client_id", "oauth_client_secret", "oauth_scope", "authtype", "tty",
}  # fmt: skip

_KNOWN = _ASYNCPG_READS | _KEEPALIVES | _ONLY_LIBPQ_KNOWS

_DEFAULT_PORT = 5432

# Errors show no part of a URL: with a stray "/" or "@" in it, the password may be what was taken for the port.
_LOOKS_LIKE = (
    "it should look like postgresql://user:password@host:5432/name, "
    "with special characters in the password percent-encoded"
)

_IN_TWO_WAYS = (
    f"the PostgreSQL URL can be read in two ways: {_LOOKS_LIKE} (/ as %2F, ? as %3F, @ as %40), and with every other @ "
    "of a database's name or a parameter percent-encoded as well"
)

# Keywords of SQLAlchemy's and asyncpg's own URLs that mean something libpq calls otherwise.
_SSL_WORDS = {"true": "require", "1": "require", "false": "disable", "0": "disable"}


@dataclass(frozen=True)
class PostgreSQLUrl:
    """Connection parameters under libpq's names. Never shows the password."""

    parameters: dict[str, str]
    driver: str | None
    """The driver that the URL names, if it names one."""

    @property
    def only_libpq_understands(self) -> set[str]:
        """Parameters that asyncpg does not know: with them, psycopg serves both modes."""
        return set(self.parameters) - _ASYNCPG_READS - _KEEPALIVES

    @property
    def options(self) -> str:
        """The server's command-line options, which the methods below leave out."""
        return self.parameters.get("options", "")

    def for_psycopg(self) -> dict[str, str]:
        parameters = {name: value for name, value in self.parameters.items() if name != "options"}
        return parameters | {"client_encoding": "UTF8"}  # whatever the URL or the environment says

    def for_asyncpg(self) -> dict[str, Any]:
        # It speaks UTF-8 by itself.
        named = {"host", "port", "user", "password", "dbname", "connect_timeout", "client_encoding", "options"}
        named |= _KEEPALIVES
        query = {name: value for name, value in self.parameters.items() if name not in named}
        arguments: dict[str, Any] = {"dsn": f"postgresql://?{urlencode(query)}"} if query else {}
        for name, argument in (("user", "user"), ("password", "password"), ("dbname", "database")):
            if name in self.parameters:
                arguments[argument] = self.parameters[name]
        if "host" in self.parameters:
            arguments["host"] = self.parameters["host"].split(",")
        if "port" in self.parameters:
            ports = [int(port or _DEFAULT_PORT) for port in self.parameters["port"].split(",")]
            arguments["port"] = ports[0] if len(ports) == 1 else ports
        return arguments

    @property
    def connect_timeout(self) -> float | None:
        return float(self.parameters["connect_timeout"]) if "connect_timeout" in self.parameters else None

    @even_half_built
    def __repr__(self) -> str:
        shown = self.parameters
        user = f"{shown['user']}{':***' if 'password' in shown else ''}@" if "user" in shown else ""
        hosts, ports = shown.get("host", "").split(","), shown.get("port", "").split(",")
        if len(ports) == 1:
            ports *= len(hosts)
        servers = [host + (f":{port}" if port else "") for host, port in zip(hosts, ports, strict=False)]
        return f"postgresql://{user}{','.join(servers)}/{shown.get('dbname', '')}"

    __str__ = __repr__


def postgresql_url(url: str | URL) -> PostgreSQLUrl:
    """Read ``url``: any of the usual schemes, several hosts, unix sockets, libpq's and SQLAlchemy's parameters."""
    if isinstance(url, URL):
        url = url.render_as_string(hide_password=False)
    found = _SHAPE.fullmatch(url) if isinstance(url, str) else None
    if found is None:
        raise ConfigurationError(f"this is not a PostgreSQL URL; {_LOOKS_LIKE}")
    scheme = found["scheme"].lower()
    if scheme not in _SCHEMES:
        raise ConfigurationError(f"the URL scheme {scheme!r} is not PostgreSQL's; use postgresql://")
    if "@" in (found["database"] or "") or is_ambiguous(url):
        raise ConfigurationError(_IN_TWO_WAYS)
    parameters: dict[str, str] = {}
    credentials, _, servers = found["server"].rpartition("@")
    user, _, password = credentials.partition(":")
    hosts, ports = _hosts_and_ports(servers)
    parts = {
        "host": hosts,
        "port": ports,
        "user": unquote(user),
        "password": unquote(password),
        "dbname": unquote(found["database"] or ""),
    }
    parameters.update({name: value for name, value in parts.items() if value})
    _add_query(parameters, _query(found["query"] or ""))
    _check_names(parameters)
    _check(parameters)
    read = PostgreSQLUrl(parameters, _SCHEMES[scheme])
    if read.driver == "asyncpg" and read.only_libpq_understands:
        unknown = ", ".join(sorted(read.only_libpq_understands))
        raise ConfigurationError(f"asyncpg does not know {unknown} of the PostgreSQL URL; use postgresql:// instead")
    return read


def _query(text: str) -> list[tuple[str, str]]:
    if not text:
        return []
    with suppress(ValueError):  # whose text may have a part of the password in it
        query = parse_qsl(text, keep_blank_values=True, strict_parsing=True)
        if all(is_option(name) for name, _ in query):
            return query
    raise ConfigurationError("the part of the PostgreSQL URL after '?' is not name=value&name=value")


def _check_names(parameters: dict[str, str]) -> None:
    for name in sorted(parameters.keys() - _KNOWN):
        raise ConfigurationError(f"{name!r} in the PostgreSQL URL is no parameter that a driver knows; leave it out")


def _check(parameters: dict[str, str]) -> None:
    if any("\0" in value for value in parameters.values()):
        raise ConfigurationError("the PostgreSQL URL contains %00, which no part of it may")
    ports = parameters.get("port", "").split(",")
    if not all(port == "" or (re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 2**16) for port in ports):
        raise ConfigurationError(f"a port of the PostgreSQL URL is not a number from 1 to 65535; {_LOOKS_LIKE}")
    if len(ports) not in (1, len(parameters.get("host", "").split(","))):
        raise ConfigurationError("the PostgreSQL URL must give one port for all hosts, or one for each")
    for name in parameters.keys() & (_KEEPALIVES | {"connect_timeout"}):
        if not re.fullmatch("[0-9]{1,9}", parameters[name]):
            raise ConfigurationError(f"{name} in the PostgreSQL URL must be a whole number, 0 or more")
    for name in parameters.keys() & _TAKES.keys():
        if parameters[name] not in _TAKES[name]:
            raise ConfigurationError(f"{name} in the PostgreSQL URL must be one of {', '.join(sorted(_TAKES[name]))}")
    for name in parameters.keys() & _FILES:
        is_system = name == "sslrootcert" and parameters[name] == "system"
        if not (is_system or os.access(parameters[name], os.R_OK)):
            raise ConfigurationError(f"{name} in the PostgreSQL URL names a file that cannot be read")


def _hosts_and_ports(servers: str) -> tuple[str, str]:
    hosts: list[str] = []
    ports: list[str] = []
    for server in servers.split(","):
        found = re.fullmatch(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>.*))?", server)
        if found is None:
            raise ConfigurationError(f"a host of the PostgreSQL URL cannot be read; {_LOOKS_LIKE}")
        hosts.append(unquote(found["host"].strip("[]")))
        ports.append(found["port"] or "")
    return ",".join(hosts), ",".join(ports) if any(ports) else ""


def _add_query(parameters: dict[str, str], query: list[tuple[str, str]]) -> None:
    servers: list[str] = []
    given: dict[str, str] = {}
    for name, value in query:
        meant = "sslmode" if name == "ssl" else name
        if meant != "host" and given.setdefault(meant, value) != value:
            raise ConfigurationError(f"{meant} is in the PostgreSQL URL twice, with different values")
        if name == "host" and ":" in value and not value.startswith("/"):  # SQLAlchemy: host=a:1&host=b:2
            servers.append(value)
        elif name == "ssl":  # asyncpg's word
            parameters["sslmode"] = _SSL_WORDS.get(value.lower(), value)
        elif name == "database":
            parameters["dbname"] = value
        elif name == "timeout":
            parameters["connect_timeout"] = value
        else:
            parameters[name] = value
    if servers:
        parameters["host"], ports = _hosts_and_ports(",".join(servers))
        if ports:
            parameters["port"] = ports
