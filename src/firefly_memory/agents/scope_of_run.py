"""Whose run it is: the owner of its conversation, and the scope that its model writes facts to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from pydantic_ai import RunContext

from firefly_memory.errors import ConfigurationError
from firefly_memory.identifiers import stored_name
from firefly_memory.manager import MemoryManager
from firefly_memory.reprs import shown
from firefly_memory.validation import checked_text
from firefly_memory.working import WorkingMemory

NamedScope: TypeAlias = Literal["conversation", "manager"]
WorkingScope: TypeAlias = NamedScope | Callable[[RunContext[Any]], str]
Owner: TypeAlias = str | Callable[[RunContext[Any]], str]


def check_options(working_scope: WorkingScope, owner: Owner | None) -> None:
    """Refuse what is no scope or owner, when the capability is made."""
    if not (working_scope in ("conversation", "manager") or callable(working_scope)):
        raise ConfigurationError(
            f"working_scope must be 'conversation', 'manager' or a function of the run's context, "
            f"not {shown(working_scope)}"
        )
    if owner is not None and not callable(owner):
        stored_name("owner", owner)


def owner_of_run(owner: Owner | None, ctx: RunContext[Any]) -> str | None:
    """The person whose run it is; ``None`` if nobody asks."""
    if not callable(owner):
        return owner
    found = owner(ctx)
    if not isinstance(found, str) or not found:  # nobody may be let in without a name, where names are asked for
        raise ConfigurationError(f"owner returned {shown(found)}: it must return the canonical id of a person")
    stored_name("owner", found)
    return found


def scope_of_run(manager: MemoryManager, working_scope: WorkingScope, ctx: RunContext[Any]) -> WorkingMemory:
    """The scope that the model writes to."""
    if working_scope == "manager" or manager.is_fork:
        return manager.working
    if working_scope == "conversation":
        return WorkingMemory(store=manager.store, conversation_id=checked_text("conversation_id", ctx.conversation_id))
    scope = working_scope(ctx)
    if not isinstance(scope, str) or not scope:
        raise ConfigurationError(f"working_scope returned {shown(scope)}: it must return the name of a scope")
    if scope == manager.working.scope_id:  # it may have come from anywhere
        raise ConfigurationError(
            f"working_scope returned {scope!r}, the manager's own scope: put something before each name, such as "
            "'user:', or say working_scope='manager' if a model may write there"
        )
    return WorkingMemory(store=manager.store, scope_id=scope)
