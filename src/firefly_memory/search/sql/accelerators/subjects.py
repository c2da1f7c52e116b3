"""The accelerators of one kind of rows: which there are on a dialect, and who makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlalchemy import Connection

from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.schema.accelerators import Accelerator, Progress, Wanted
from firefly_memory.errors import ConfigurationError
from firefly_memory.facets import load_name
from firefly_memory.search.index import Subject

_OF_DIALECTS = {
    "postgresql": (
        "firefly_memory.search.sql.accelerators.pgvector:VectorColumns",
        "firefly_memory.search.sql.accelerators.pg_trgm:Trigrams",
    ),
    "sqlite": (),
}


class _Maker(Protocol):
    name: str

    def states(self, connection: Connection, schema_name: str | None) -> list[Accelerator]: ...

    def enable(
        self, connection: Connection, db_name: DatabaseName, wanted: Wanted, timeout: float, progress: Progress | None
    ) -> None: ...

    def disable(self, connection: Connection, db_name: DatabaseName, wanted: Wanted, timeout: float) -> None: ...


class SearchAccelerators:
    """What a facet declares: :class:`~firefly_memory.databases.sql.schema.accelerators.Accelerators` of its subject."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.kind = subject.kind

    def names(self, dialect: str) -> Sequence[str]:
        return [each.name for each in self._makers(dialect)]

    def states(self, connection: Connection, schema_name: str | None) -> list[Accelerator]:
        return [
            state for each in self._makers(connection.dialect.name) for state in each.states(connection, schema_name)
        ]

    def enable(
        self, connection: Connection, db_name: DatabaseName, wanted: Wanted, timeout: float, progress: Progress | None
    ) -> None:
        self._maker(connection, wanted.name).enable(connection, db_name, wanted, timeout, progress)

    def disable(self, connection: Connection, db_name: DatabaseName, wanted: Wanted, timeout: float) -> None:
        self._maker(connection, wanted.name).disable(connection, db_name, wanted, timeout)

    def owns(self, name: str) -> bool:
        from firefly_memory.search.sql.accelerators import pg_trgm, pgvector

        prefix = pgvector.index_name(self._subject, "")
        its_column = name.removeprefix(prefix)
        return name == pg_trgm.index_name(self._subject) or pgvector.COLUMN.fullmatch(its_column) is not None

    def _makers(self, dialect: str) -> list[_Maker]:
        return [load_name(each)(self._subject) for each in _OF_DIALECTS[dialect]]

    def _maker(self, connection: Connection, name: str) -> _Maker:
        makers = {each.name: each for each in self._makers(connection.dialect.name)}
        if name not in makers:
            known = ", ".join(makers) or "nothing"
            raise ConfigurationError(f"{self.kind} have no accelerator {name!r} on this database; there is {known}")
        return makers[name]
