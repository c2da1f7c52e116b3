"""PgBouncer in front of a PostgreSQL server."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.support.servers import Server

_UNPACKED = Path(__file__).parents[2] / ".cache" / "pgbouncer"  # see scripts/pgbouncer
_LIBRARIES = sorted({str(library.parent) for library in _UNPACKED.rglob("*.so*")})


class PgBouncer(Server):
    """Shares ``pool_size`` connections of the server at ``server_url`` among any number of clients."""

    user = "nobody" if os.getuid() == 0 else None  # it refuses to run as root
    environment = {"LD_LIBRARY_PATH": ":".join(_LIBRARIES)} if _LIBRARIES else {}

    def __init__(self, server_url: str, pool_mode: str, *, pool_size: int = 3, **settings: str) -> None:
        super().__init__()
        self._server = {name: str(value) for name, value in conninfo_to_dict(server_url).items()}
        self.settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "auth_type": "any",  # whoever comes works as the user whom the server knows
            "pool_mode": pool_mode,
            "default_pool_size": str(pool_size),
            "max_client_conn": "500",
            "server_round_robin": "1",  # so that a client hardly ever meets the same connection twice
            **settings,
        }

    @property
    def url(self) -> str:
        return f"postgresql://{self._server['user']}@127.0.0.1:{self.port}/{self._server['dbname']}"

    def command(self) -> list[str]:
        server = " ".join(f"{name}='{value}'" for name, value in self._server.items())
        settings = "\n".join(f"{name} = {value}" for name, value in self.settings.items())
        configuration = self.directory / "pgbouncer.ini"
        configuration.write_text(f"[databases]\n* = {server}\n\n[pgbouncer]\n{settings}\n")
        self.directory.chmod(0o755)
        return [_executable(), str(configuration)]

    def ask(self) -> None:
        psycopg.connect(self.url, connect_timeout=2).close()


def _executable() -> str:
    found = shutil.which("pgbouncer", path=f"{_UNPACKED}/usr/sbin:{os.environ['PATH']}:/usr/sbin")
    if found is None:
        raise RuntimeError("there is no pgbouncer here; `make setup` gets it")
    return found
