"""The summaries of conversations in a collection of a ``KnowledgeStore``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from firefly_memory.conversations.policy import Conversation
from firefly_memory.errors import InvalidEntryError
from firefly_memory.knowledge.log import KNOWLEDGE_LOG
from firefly_memory.knowledge.store import KnowledgeStore
from firefly_memory.knowledge.types import Chunk
from firefly_memory.stores.base import EntryStore
from firefly_memory.strategies.knowledge_base import KnowledgeBase

_KNOWLEDGE = "knowledge"


def _knowledge_of(conversation: Conversation) -> KnowledgeStore:
    """The knowledge of the store. It remembers the language of the database, so it is made once for a memory."""
    if _KNOWLEDGE not in conversation.kept:
        conversation.kept[_KNOWLEDGE] = KnowledgeStore(conversation.store)
    knowledge = conversation.kept[_KNOWLEDGE]
    assert isinstance(knowledge, KnowledgeStore)
    return knowledge


def check_knowledge(store: EntryStore) -> None:
    """``NotSupportedError`` if the store has no knowledge."""
    store.blocking.log(KNOWLEDGE_LOG)


async def save_summary(base: KnowledgeBase, chunks: Sequence[str], conversation: Conversation, flush_id: str) -> None:
    """Add the chunks of a summary. Those of one summary are neighbours."""
    knowledge = _knowledge_of(conversation)
    texts = [Chunk(text, group=flush_id) for text in chunks]
    source, owner = _source(conversation), None if base.shared else _owner(conversation)
    if conversation.is_blocking:
        knowledge.add(base.collection_id, texts, source=source, owner=owner)
    else:
        await knowledge.async_add(base.collection_id, texts, source=source, owner=owner)


async def find_summaries(base: KnowledgeBase, query: str, conversation: Conversation) -> list[str]:
    """The texts of the best hits."""
    knowledge, owner = _knowledge_of(conversation), _owner(conversation)
    if conversation.is_blocking:
        hits = knowledge.search(base.collection_id, query, base.top_k, owner=owner)
    else:
        hits = await knowledge.async_search(base.collection_id, query, base.top_k, owner=owner)
    return [hit.text for hit in hits]


async def forget_summaries(base: KnowledgeBase, conversation: Conversation) -> None:
    """Delete the summaries of a conversation."""
    knowledge, source = _knowledge_of(conversation), _source(conversation)
    if conversation.is_blocking:
        knowledge.delete(base.collection_id, source=source)
    else:
        await knowledge.async_delete(base.collection_id, source=source)


def _source(conversation: Conversation) -> dict[str, Any]:
    return {"summary_of": conversation.conversation_id}


_ITSELF = re.compile("conversation:[0-9a-f]{64}")


def _owner(conversation: Conversation) -> str | None:
    """The owner; or the conversation itself, which is another one if it was deleted and made again.

    No person may be called like a conversation: this person would find its summaries.
    """
    owner, created_at = conversation.owner, conversation.created_at
    if owner is not None and _ITSELF.fullmatch(owner):
        raise InvalidEntryError("owner", "is the name that a conversation without an owner has in a knowledge base")
    if owner is not None or created_at is None:
        return owner
    identity = f"{conversation.conversation_id}@{created_at.isoformat()}"
    return f"conversation:{sha256(identity.encode('utf-8', 'surrogatepass')).hexdigest()}"
