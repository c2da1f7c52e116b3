"""Feeds: the messages of teams of agents, and the memories through which each agent sees its part of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firefly_memory.lazy_names import lazily

if TYPE_CHECKING:
    from firefly_memory.feeds.base_store import (
        BaseMessageStore,
    )
    from firefly_memory.feeds.configuration.loading import (
        load_memory,
    )
    from firefly_memory.feeds.configuration.presets import (
        describe_preset,
        get_memory_preset,
        list_presets,
    )
    from firefly_memory.feeds.constants import (
        ACTION,
        ASSISTANT_MESSAGE,
        COMPLETION_TYPES,
        CONVERSATION_TYPES,
        ERROR,
        FINAL,
        GLOBAL_OBSERVATION,
        OBSERVATION,
        PLANNING_TYPES,
        SCRIPT_INSTRUCTION,
        STRATEGIC_PLAN,
        SUGGESTED_PLAN,
        SYNTHESIS,
        TASK,
        TRACE_TYPES,
        USER_MESSAGE,
    )
    from firefly_memory.feeds.history_filters import (
        DefaultHistoryFilter,
        HistoryFilter,
        ManagerHistoryFilter,
        OrchestratorHistoryFilter,
        WorkerHistoryFilter,
    )
    from firefly_memory.feeds.items import (
        FeedItem,
    )
    from firefly_memory.feeds.memories import (
        BaseMemory,
        HierarchicalMessageStoreMemory,
        HierarchicalSharedMemory,
        InMemoryMemory,
        MessageStoreMemory,
        SharedInMemoryMemory,
        SharedStateStore,
    )
    from firefly_memory.feeds.message_builder import (
        MessageTypeInfo,
        create_action,
        create_action_entry,
        create_assistant_message,
        create_assistant_message_entry,
        create_error,
        create_error_entry,
        create_final,
        create_final_entry,
        create_global_observation,
        create_global_observation_entry,
        create_observation,
        create_observation_entry,
        create_script_instruction,
        create_script_instruction_entry,
        create_strategic_plan,
        create_strategic_plan_entry,
        create_suggested_plan,
        create_suggested_plan_entry,
        create_synthesis,
        create_synthesis_entry,
        create_task,
        create_task_entry,
        create_user_message,
        create_user_message_entry,
        get_message_type_info,
    )
    from firefly_memory.feeds.message_stores import (
        InMemoryMessageStore,
        MongoMessageStore,
        SQLMessageStore,
        StoredMessages,
    )

__all__ = [
    "ACTION",
    "ASSISTANT_MESSAGE",
    "COMPLETION_TYPES",
    "CONVERSATION_TYPES",
    "ERROR",
    "FINAL",
    "GLOBAL_OBSERVATION",
    "OBSERVATION",
    "PLANNING_TYPES",
    "SCRIPT_INSTRUCTION",
    "STRATEGIC_PLAN",
    "SUGGESTED_PLAN",
    "SYNTHESIS",
    "TASK",
    "TRACE_TYPES",
    "USER_MESSAGE",
    "BaseMemory",
    "BaseMessageStore",
    "DefaultHistoryFilter",
    "FeedItem",
    "HierarchicalMessageStoreMemory",
    "HierarchicalSharedMemory",
    "HistoryFilter",
    "InMemoryMemory",
    "InMemoryMessageStore",
    "ManagerHistoryFilter",
    "MessageStoreMemory",
    "MessageTypeInfo",
    "MongoMessageStore",
    "OrchestratorHistoryFilter",
    "SQLMessageStore",
    "SharedInMemoryMemory",
    "SharedStateStore",
    "StoredMessages",
    "WorkerHistoryFilter",
    "create_action",
    "create_action_entry",
    "create_assistant_message",
    "create_assistant_message_entry",
    "create_error",
    "create_error_entry",
    "create_final",
    "create_final_entry",
    "create_global_observation",
    "create_global_observation_entry",
    "create_observation",
    "create_observation_entry",
    "create_script_instruction",
    "create_script_instruction_entry",
    "create_strategic_plan",
    "create_strategic_plan_entry",
    "create_suggested_plan",
    "create_suggested_plan_entry",
    "create_synthesis",
    "create_synthesis_entry",
    "create_task",
    "create_task_entry",
    "create_user_message",
    "create_user_message_entry",
    "describe_preset",
    "get_memory_preset",
    "get_message_type_info",
    "list_presets",
    "load_memory",
]

_NAMES = {
    "base_store": "BaseMessageStore",
    "configuration.loading": "load_memory",
    "configuration.presets": "describe_preset get_memory_preset list_presets",
    "constants": (
        "ACTION ASSISTANT_MESSAGE COMPLETION_TYPES CONVERSATION_TYPES ERROR FINAL "
        "GLOBAL_OBSERVATION OBSERVATION PLANNING_TYPES SCRIPT_INSTRUCTION STRATEGIC_PLAN "
        "SUGGESTED_PLAN SYNTHESIS TASK TRACE_TYPES USER_MESSAGE"
    ),
    "history_filters": (
        "DefaultHistoryFilter HistoryFilter ManagerHistoryFilter OrchestratorHistoryFilter WorkerHistoryFilter"
    ),
    "items": "FeedItem",
    "memories": (
        "BaseMemory HierarchicalMessageStoreMemory HierarchicalSharedMemory InMemoryMemory MessageStoreMemory "
        "SharedInMemoryMemory SharedStateStore"
    ),
    "message_builder": (
        "MessageTypeInfo get_message_type_info create_action create_action_entry "
        "create_assistant_message create_assistant_message_entry create_error create_error_entry "
        "create_final create_final_entry create_global_observation create_global_observation_entry "
        "create_observation create_observation_entry create_script_instruction "
        "create_script_instruction_entry create_strategic_plan create_strategic_plan_entry "
        "create_suggested_plan create_suggested_plan_entry create_synthesis create_synthesis_entry "
        "create_task create_task_entry create_user_message create_user_message_entry"
    ),
    "message_stores": "InMemoryMessageStore MongoMessageStore SQLMessageStore StoredMessages",
}
_WHERE = {name: f"firefly_memory.feeds.{module}" for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    return lazily(name, _WHERE, globals())
