"""The public names of feeds."""

NAMES = {
    "firefly_memory.feeds": """
        ACTION ASSISTANT_MESSAGE BaseMemory BaseMessageStore COMPLETION_TYPES CONVERSATION_TYPES DefaultHistoryFilter
        ERROR FINAL FeedItem GLOBAL_OBSERVATION HierarchicalMessageStoreMemory HierarchicalSharedMemory HistoryFilter
        InMemoryMemory InMemoryMessageStore ManagerHistoryFilter MessageStoreMemory MessageTypeInfo MongoMessageStore
        OBSERVATION OrchestratorHistoryFilter PLANNING_TYPES SCRIPT_INSTRUCTION SQLMessageStore STRATEGIC_PLAN
        SUGGESTED_PLAN SYNTHESIS SharedInMemoryMemory SharedStateStore StoredMessages TASK TRACE_TYPES USER_MESSAGE
        WorkerHistoryFilter create_action create_action_entry create_assistant_message create_assistant_message_entry
        create_error create_error_entry create_final create_final_entry create_global_observation
        create_global_observation_entry create_observation create_observation_entry create_script_instruction
        create_script_instruction_entry create_strategic_plan create_strategic_plan_entry create_suggested_plan
        create_suggested_plan_entry create_synthesis create_synthesis_entry create_task create_task_entry
        create_user_message create_user_message_entry describe_preset get_memory_preset get_message_type_info
        list_presets load_memory
    """,
    "firefly_memory.feeds.memories": """
        BaseMemory HierarchicalMessageStoreMemory HierarchicalSharedMemory InMemoryMemory MessageStoreMemory
        SharedInMemoryMemory SharedStateStore
    """,
    "firefly_memory.feeds.history_filters": """
        DefaultHistoryFilter HistoryFilter ManagerHistoryFilter OrchestratorHistoryFilter WorkerHistoryFilter
    """,
    "firefly_memory.feeds.constants": """
        ACTION ASSISTANT_MESSAGE COMPLETION_TYPES CONVERSATION_TYPES ERROR FINAL GLOBAL_OBSERVATION OBSERVATION
        PLANNING_TYPES SCRIPT_INSTRUCTION STRATEGIC_PLAN SUGGESTED_PLAN SYNTHESIS TASK TRACE_TYPES USER_MESSAGE
    """,
    "firefly_memory.feeds.message_builder": """
        MessageTypeInfo create_action create_action_entry create_assistant_message create_assistant_message_entry
        create_error create_error_entry create_final create_final_entry create_global_observation
        create_global_observation_entry create_observation create_observation_entry create_script_instruction
        create_script_instruction_entry create_strategic_plan create_strategic_plan_entry create_suggested_plan
        create_suggested_plan_entry create_synthesis create_synthesis_entry create_task create_task_entry
        create_user_message create_user_message_entry get_message_type_info
    """,
}

REVISIONS = ["0010_0005"]
