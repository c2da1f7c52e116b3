"""Memory strategies: which messages a prompt has, and when the oldest ones leave a conversation.

A strategy works on any list of messages: pydantic-ai's, dicts of OpenAI or Anthropic, or dicts with ``role`` and
``content``. :class:`MemoryProfile` reads strategies from a configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firefly_memory.lazy_names import lazily

if TYPE_CHECKING:
    from firefly_memory.messages.interactions import Interaction, interactions_of
    from firefly_memory.strategies.base import LongTermMemoryStrategyBase, ShortTermMemoryStrategyBase
    from firefly_memory.strategies.knowledge_base import KnowledgeBase, KnowledgeBases
    from firefly_memory.strategies.max_tokens import MemoryMaxTokensStrategy
    from firefly_memory.strategies.neuralyzer import NeuralyzerStrategy
    from firefly_memory.strategies.planning import FlushPlan, KeepPlan
    from firefly_memory.strategies.profile import MemoryProfile, json_schema
    from firefly_memory.strategies.registry import register_strategy
    from firefly_memory.strategies.summarizer import SummarizerStrategy
    from firefly_memory.strategies.text_splitter import TextSplitterConfig

__all__ = [
    "FlushPlan",
    "Interaction",
    "KeepPlan",
    "KnowledgeBase",
    "KnowledgeBases",
    "LongTermMemoryStrategyBase",
    "MemoryMaxTokensStrategy",
    "MemoryProfile",
    "NeuralyzerStrategy",
    "ShortTermMemoryStrategyBase",
    "SummarizerStrategy",
    "TextSplitterConfig",
    "interactions_of",
    "json_schema",
    "register_strategy",
]

_PACKAGE = "firefly_memory.strategies"
_WHERE = {
    "FlushPlan": f"{_PACKAGE}.planning",
    "Interaction": "firefly_memory.messages.interactions",
    "KeepPlan": f"{_PACKAGE}.planning",
    "KnowledgeBase": f"{_PACKAGE}.knowledge_base",
    "KnowledgeBases": f"{_PACKAGE}.knowledge_base",
    "LongTermMemoryStrategyBase": f"{_PACKAGE}.base",
    "MemoryMaxTokensStrategy": f"{_PACKAGE}.max_tokens",
    "MemoryProfile": f"{_PACKAGE}.profile",
    "NeuralyzerStrategy": f"{_PACKAGE}.neuralyzer",
    "ShortTermMemoryStrategyBase": f"{_PACKAGE}.base",
    "SummarizerStrategy": f"{_PACKAGE}.summarizer",
    "TextSplitterConfig": f"{_PACKAGE}.text_splitter",
    "interactions_of": "firefly_memory.messages.interactions",
    "json_schema": f"{_PACKAGE}.profile",
    "register_strategy": f"{_PACKAGE}.registry",
}


if not TYPE_CHECKING:  # or no checker would notice a misspelt name

    def __getattr__(name: str) -> Any:
        return lazily(name, _WHERE, globals())
