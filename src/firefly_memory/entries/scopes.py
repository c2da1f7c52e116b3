"""How the scopes of working memory are named, so that no two of them can be taken for one another."""

from __future__ import annotations

import hashlib

from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import MAX_LENGTH, original_name, stored_name, stored_text
from firefly_memory.tombstones.log import Identity, namespace_identity

NAMESPACE = "working:"
"""What the namespaces of working memory begin with."""

CLAIMS = "firefly-memory:claims"
"""The namespace of entries that say which process does what only one of them should. They are not moved along."""

OF_CONVERSATION = "conversation:"
"""What the scopes of conversations begin with, and no other scope."""

FACTS_OF_CONVERSATIONS = f"{NAMESPACE}{OF_CONVERSATION}"
"""What the namespaces begin with that the facts of conversations are in."""

BY_A_MODEL = {"written_by": "model"}
"""The metadata of a fact that a model wrote; one with more or less in it counts as the application's."""

_HASHED = "sha256:"
_LONGEST_ID = MAX_LENGTH - len(FACTS_OF_CONVERSATIONS)


def scope_of(conversation_id: str) -> str:
    """The scope of the facts of one conversation, which no other conversation has, and nothing else."""
    stored_name("conversation_id", conversation_id)
    # An id that looks like the hash of another one is hashed as well.
    if len(conversation_id) <= _LONGEST_ID and not conversation_id.startswith(_HASHED):
        return f"{OF_CONVERSATION}{conversation_id}"
    hashed = hashlib.sha256(conversation_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{OF_CONVERSATION}{_HASHED}{hashed}"


def checked_scope(scope_id: str) -> str:
    """``scope_id``, which must not be the name of a conversation's scope: it may come from anywhere."""
    stored_name("scope_id", scope_id)
    if scope_id.startswith(OF_CONVERSATION):
        raise InvalidEntryError(
            "scope_id",
            f"must not begin with {OF_CONVERSATION!r}: these are the scopes of conversations, "
            "which conversation_id= names",
        )
    stored_name(f"scope_id, with {NAMESPACE!r} before it,", f"{NAMESPACE}{scope_id}")
    return scope_id


def stored_facts_of(stored_conversation_id: str) -> str:
    """The namespace of the facts of a conversation. Both names are in their stored form."""
    return stored_text(f"{NAMESPACE}{scope_of(original_name(stored_conversation_id))}")


def identities_of_namespace(stored_namespace: str) -> tuple[Identity, ...]:
    """What must not be erased if entries are to be saved in a namespace: a scope, if it is one of working memory."""
    return (namespace_identity(stored_namespace),) if stored_namespace.startswith(NAMESPACE) else ()
