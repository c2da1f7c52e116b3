"""What looking needs of a facet: its resources, each with a reader.

A :class:`Resource` is one kind of rows that people list, show, count and delete: entries, conversations, turns. The
service (:mod:`firefly_memory.service`) names no facet. It walks the registry, checks what it is asked for by the
declared fields, and asks the :class:`Reader` of the resource, which is made for a store. A row is a dict of JSON
values. Some resources also have a :class:`Search`, which finds rows by a question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from firefly_memory.errors import NotSupportedError
from firefly_memory.facets import Facet, LogOf, facet_named, load, load_name
from firefly_memory.protocols import StoreView

if TYPE_CHECKING:
    from firefly_memory.search.embedders.protocol import Embedder
    from firefly_memory.search.hits import Hit, Request
    from firefly_memory.search.searching import Work

Row = dict[str, Any]
"""The fields of a row as JSON values, by name."""

Position = tuple[Any, ...]
"""The place of a row in an order: texts, whole numbers and instants."""

RowId = tuple[str, ...]
"""What identifies a row: a text for each of :attr:`Resource.identity`."""

Where = Mapping[str, Any]
"""Fields, and the value that each has to have."""


class Type(Enum):
    """What a field holds."""

    TEXT = "text"
    NUMBER = "number"
    INSTANT = "instant"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a row."""

    name: str
    type: Type = Type.TEXT
    is_filter: bool = True
    """Whether rows can be selected by it."""
    in_table: bool = True
    """Whether a table of rows shows it."""


class Placed(NamedTuple):
    """A row, and its place in the order."""

    position: Position
    row: Row


class Size(NamedTuple):
    """How much there is of a resource."""

    rows: int
    tokens: int | None = None
    """``None`` if its rows have no tokens."""


@dataclass(frozen=True, slots=True)
class Query:
    """A page of a resource."""

    where: Where
    """Values of fields that the resource has an index for: one of :attr:`Resource.indexed`."""
    order: str
    after: Position | None
    """The rows come after this place; it has the types of :attr:`Resource.orders`, and may be made up by anybody."""
    limit: int


class Reader(Protocol):
    """The rows of one resource in one store. What has expired does not exist. Reading writes nothing."""

    async def page(self, query: Query) -> Sequence[Placed]:
        """The first ``limit`` rows of the order. It reads one range of an index where the store has indexes."""

    async def get(self, row_id: RowId) -> Row | None:
        """One row with all its fields."""

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        """Delete these rows; how many of them were there."""

    async def size(self, where: Where) -> Size:
        """How many rows there are; ``NotSupportedError`` if the store cannot tell. ``where`` has the fields of one of
        :attr:`Resource.counted`."""


class RowSearcher(Protocol):
    """The search over the rows of one resource in one store. What has expired does not exist. Searching writes
    nothing."""

    async def hits(self, request: Request, where: Mapping[str, str]) -> Sequence[Hit]:
        """The ``top_k`` best rows, best first. ``NotSupportedError`` for a mode that it does not have.

        ``where`` has a text for each filter that :attr:`Search.needs`, and for none that the :class:`Search` does not
        name. The id of a hit is that of its row, as :func:`firefly_memory.service.get` takes it. With ``explain`` each
        hit has its explanation.
        """


@dataclass(frozen=True, slots=True)
class Search:
    """How the rows of a resource are searched."""

    searcher: str
    """The dotted name of ``(view, work, embedder)``, a :class:`RowSearcher` for any store. ``work`` says where it
    computes: at once for blocking callers, beside the event loop for the others. ``embedder`` makes the vectors of
    questions; without one they are searched for as text."""
    needs: tuple[str, ...] = ()
    """The filters without which rows cannot be searched, such as the name of a collection. Each has a text."""
    takes: tuple[str, ...] = ()
    """Further filters."""
    shows: tuple[str, ...] = ()
    """The fields that a list of hits shows beside the text."""

    @property
    def filters(self) -> tuple[str, ...]:
        """All of them, the needed ones first."""
        return (*self.needs, *self.takes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resource:
    """One kind of rows."""

    kind: str
    """Its noun on the command line, as ``working-facts``. No two resources have the same."""
    title: str
    """What the rows are, in a sentence."""
    fields: tuple[Field, ...]
    identity: tuple[str, ...]
    """The fields that identify a row."""
    orders: Mapping[str, tuple[type, ...]]
    """The names of its orders, each with the types of its positions. The first order is the usual one."""
    reader: str
    """The dotted name of ``(view, direct)``, a :class:`Reader` for any store. ``direct`` is what :attr:`direct` makes,
    or ``None``."""
    direct: Mapping[str, str] = field(default_factory=dict)
    """For kinds of stores (``sql``, ``mongodb``), the dotted name of what reads without a detour. It is made with the
    same arguments as the facet's operations for such a store."""
    indexed: tuple[tuple[str, ...], ...] = ()
    """The sets of fields that an index finds rows by, the best first. By other fields, rows are selected while they are
    read."""
    counted: tuple[tuple[str, ...], ...] = ((),)
    """The sets of fields by which :meth:`Reader.size` counts. Other rows are counted one by one."""
    needs: tuple[str, ...] = ()
    """The fields without which rows cannot be listed."""
    why_kept: str | None = None
    """Why a row cannot be deleted by itself; ``None`` if it can."""
    search: Search | None = None
    """How its rows are searched; ``None`` if they are not."""

    def field(self, name: str) -> Field | None:
        """The field of this name, or ``None``."""
        return next((each for each in self.fields if each.name == name), None)


@dataclass(frozen=True, slots=True)
class DirectOf(LogOf[Any]):
    """Asks a store for what :attr:`Resource.direct` names: ``view.log(DirectOf("entries", "entries"))``."""

    kind: str

    def declared(self, store: str) -> Any:
        resource = next(each for each in resources_of(facet_named(self.facet)) if each.kind == self.kind)
        name = resource.direct.get(store)
        if name is None:
            raise NotSupportedError(f"{self.kind} are read by the operations of the facet in such a store")
        return load_name(name)


def resources_of(facet: Facet) -> tuple[Resource, ...]:
    """The resources of a facet."""
    return load(facet.looking, "resources") or ()


def reader_of(view: StoreView, facet: Facet, resource: Resource) -> Reader:
    """The reader of a resource, for a store."""
    direct = None
    if resource.direct:
        try:
            direct = view.log(DirectOf(facet.name, resource.kind))
        except NotSupportedError:
            direct = None  # then the operations that every store has will do
    reader: Reader = load_name(resource.reader)(view, direct)
    return reader


def searcher_of(view: StoreView, search: Search, work: Work, embedder: Embedder | None) -> RowSearcher:
    """The searcher of a resource, for a store."""
    searcher: RowSearcher = load_name(search.searcher)(view, work, embedder)
    return searcher
