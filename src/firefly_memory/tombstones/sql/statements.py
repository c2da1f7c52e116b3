"""The statements of tombstones, and the condition by which the statements of other facets refuse what was erased."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import ColumnElement, Text, and_, bindparam, delete, exists, literal_column, not_, or_, select, update

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.tombstones.log import KEY

TABLE = "memory_tombstones"

_KEY: ColumnElement[str] = literal_column(f"'{KEY}'")


IDENTITIES = ("tombstone", "other_tombstone")
"""The parameters of :func:`not_erased`: a write is of one identity or of two. Each may be null."""


def not_erased(of: FacetStatements, identities: int) -> ColumnElement[bool]:
    """Whether none of the identities is refused that :func:`~firefly_memory.tombstones.sql.refusal.unless_erased` gives
    the parameters for. Also false if the key is not the one that their tombstones were made with."""
    t = of.in_schema(TABLE).c
    refused = [exists().where(t.id == _text(name)) for name in IDENTITIES[:identities]]
    return and_(*[not_(each) for each in refused], _has_this_key(of), _sees_every_tombstone(of))


def none_erased(of: FacetStatements) -> ColumnElement[bool]:
    """The same for any number of identities."""
    t = of.in_schema(TABLE).c
    refused = exists().where(of.dialect.is_one_of(t.id, "tombstones"))
    return and_(not_(refused), _has_this_key(of), _sees_every_tombstone(of))


def _has_this_key(of: FacetStatements) -> ColumnElement[bool]:
    t = of.in_schema(TABLE).c
    return exists().where(t.id == _KEY, t.created_at == of.dialect.native_instant_in("key_made_at"))


def _sees_every_tombstone(of: FacetStatements) -> ColumnElement[bool]:
    """True; an error where tombstones were added since the transaction began to see one and the same state."""
    t = of.in_schema(TABLE).c
    return of.dialect.fails_if_changed(select(t.id).where(t.id == _KEY))


class Key(NamedTuple):
    """The key of a database."""

    secret: str
    made_at: Any
    """By this the database tells whether it is still its key; the secret itself is never sent."""


class TombstoneStatements(FacetStatements):
    """What both dialects have in common."""

    by_dialect: ClassVar[Mapping[str, str]] = {
        "sqlite": "firefly_memory.tombstones.sql.sqlite:SQLiteTombstoneStatements",
        "postgresql": "firefly_memory.tombstones.sql.postgresql:PostgreSQLTombstoneStatements",
    }

    writers: Statement | None = None
    """The transactions under way that have written to the :attr:`guarded` tables; ``None`` where there is one writer at
    a time, and a transaction that writes sees the newest state."""
    scrub: Statement | None = None
    """Overwrites what deleted rows have left behind; ``None`` where nothing can."""

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self._table = self.in_schema(TABLE)

    @property
    def guarded(self) -> Mapping[str, Any]:
        """The parameters of :attr:`writers`."""
        return {}

    @cached_property
    def pause(self) -> Statement:
        """Does nothing for some ``seconds``, with the connection in its hands."""
        raise NotImplementedError

    @cached_property
    def read_key(self) -> Statement:
        t = self._table.c
        return self.compiled(select(t.secret, self.dialect.value_out(t.created_at)).where(t.id == _KEY))

    @cached_property
    def touch_key(self) -> Statement:
        """What :func:`not_erased` fails by in transactions that began before."""
        return self.compiled(update(self._table).where(self._table.c.id == _KEY).values(secret=self._table.c.secret))

    @cached_property
    def refusing(self) -> Statement:
        """The tombstones among some ids, and the secret of the key, if its id is one of these."""
        t = self._table.c
        found = self.dialect.is_one_of(t.id, "tombstones")
        return self.compiled(select(t.id, t.secret).where(found, _sees_every_tombstone(self)))

    @cached_property
    def accepts(self) -> Statement:
        """A row if none of some identities is refused."""
        return self.compiled(select(literal_column("1")).where(none_erased(self)))

    @cached_property
    def among(self) -> Statement:
        """The tombstones among some ids."""
        t = self._table.c
        return self.compiled(select(t.id).where(self.dialect.is_one_of(t.id, "tombstones")))

    @cached_property
    def add(self) -> Statement:
        row = {"id": _text("id"), "owner": _text("owner"), "created_at": self.dialect.instant_in(_text("now"))}
        return self.compiled(self.dialect.insert(self._table).values(row).on_conflict_do_nothing())

    @cached_property
    def remove(self) -> Statement:
        """A person's, and those of what belonged to this person."""
        t = self._table.c
        return self.compiled(delete(self._table).where(or_(t.id == _text("owner"), t.owner == _text("owner"))))


def _text(name: str) -> Any:
    return bindparam(name, type_=Text)
