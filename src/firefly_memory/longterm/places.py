"""Where facts live: each in one scope of one space, which has a word of its own in the index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import stored_name
from firefly_memory.longterm.types import SCOPES, Scope
from firefly_memory.reprs import shown
from firefly_memory.search.scopes import scope_word

LONGEST_SPACE = 128
"""Characters of the name of a tenant, so that an index can hold it beside the id of a person."""


EVERY_AGENT = "global"
"""In the place of the id of an agent: no agent in particular."""


class Place(NamedTuple):
    """Where a fact lives. All texts are in their stored form."""

    space: str
    scope: Scope
    scope_id: str
    """The id that the scope names; empty for ``global``."""

    @property
    def word(self) -> str:
        """The word of the scope in the index, which is another one for each place."""
        return scope_word(self.space, self.scope, self.scope_id)


class Lookup(NamedTuple):
    """The words of the places where a key is looked up, the most specific first."""

    session: str | None
    user: str | None
    """That of the person who was named, who may have been merged into another one."""
    agent: str | None
    everybody: str | None

    @property
    def shape(self) -> tuple[bool, ...]:
        """Which of them are there."""
        return tuple([each is not None for each in self])

    @property
    def words(self) -> list[str]:
        """Those that are there."""
        return [each for each in self if each is not None]


def stored_space(space: Any) -> str:
    """The stored form of the name of a tenant."""
    name = stored_name("space", space)
    if len(space) > LONGEST_SPACE:
        raise InvalidEntryError("space", f"is {len(space)} characters long; at most {LONGEST_SPACE} are allowed")
    return name


def person_place(space: str, canonical_id: str) -> Place:
    """Where the facts of a person live."""
    return Place(space, "user", canonical_id)


def place_of(space: str, scope: Any, ids: Mapping[str, Any]) -> Place:
    """The place of a scope. ``ids`` has ``session_id``, ``user_id`` and ``agent_id`` as the caller gave them."""
    if scope not in SCOPES:
        raise InvalidEntryError("scope", f"must be {', '.join(map(repr, SCOPES[:-1]))} or 'global', not {shown(scope)}")
    if scope == "global":
        return Place(space, "global", "")
    name = f"{scope}_id"
    if not _is_named(scope, ids):
        raise InvalidEntryError(name, f"is needed for the scope {scope!r}")
    return Place(space, cast("Scope", scope), stored_name(name, ids[name]))


def most_specific(ids: Mapping[str, Any]) -> Scope:
    """The scope of a fact for which somebody names these ids, and no scope: with an id it is never global."""
    return next((scope for scope in SCOPES if _is_named(scope, ids)), "global")


def _is_named(scope: str, ids: Mapping[str, Any]) -> bool:
    """Whether somebody names an id of a scope. The agent ``global`` is no agent in particular."""
    named = ids.get(f"{scope}_id")
    return named is not None and (scope, named) != ("agent", EVERY_AGENT)


def lookup_in(place: Place) -> Lookup:
    """Where somebody looks who wants the facts of one place only."""
    word = place.word
    return Lookup(*[word if place.scope == scope else None for scope in SCOPES])


def lookup_of(space: str, ids: Mapping[str, Any]) -> Lookup:
    """Where somebody looks who has these ids: for those that are ``None``, nowhere."""
    session, user, agent = (
        place_of(space, scope, ids).word if _is_named(scope, ids) else None for scope in ("session", "user", "agent")
    )
    return Lookup(session, user, agent, Place(space, "global", "").word)
