"""Every public name, by the module that it is imported from."""

from __future__ import annotations

PACKAGE = "firefly_memory"

NAMES = {
    PACKAGE: """
        ABSENT AsyncMemoryStore Capability ConditionError ConfigurationError ConflictError ConversationInfo
        ConversationMemory ConversationPage ConversationTurn CorruptDataError DatabaseConnectionError DatabaseStoreError
        EntryOwnershipError EntryStore ErasedError FileStore FireflyMemoryError InMemoryStore InvalidEntryError
        LanguageModelError MemoryEntry MemoryManager MemoryScope MemorySettings MemoryStore MissingDependencyError MongoDBStore NotSupportedError
        OutcomeUnknownError Page PostgreSQLStore SQLiteStore SchemaMismatchError StaleConversationError StepError
        StoreClosedError StoreTimeoutError StoreView TokenEstimator TurnConflictError TurnsDroppedError
        UnknownConversationError Window WorkingMemory __version__ adapt connect create_llm_summarizer
    """,
    "firefly_memory.agents": """
        FireflyAgent Memory MongoConversationStore SQLConversationStore feed_memory from_model_messages
        to_model_messages
    """,
    "firefly_memory.agents.delegation": """
        AnyAgent CapabilityStrategy DelegationRouter LeastBusyStrategy RandomStrategy RoundRobinStrategy RouteRequest
        Strategy
    """,
    "firefly_memory.alembic": "LeaveOut VERSION_LOCATION include_name include_object steps_of",
    "firefly_memory.archive": """
        FORMAT MAX_LINE Progress async_export_jsonl async_import_jsonl export_jsonl import_jsonl
    """,
    "firefly_memory.cli": "main",
    "firefly_memory.clock": "now",
    "firefly_memory.copying": "async_copy_store copy_store",
    "firefly_memory.database_store": "DatabaseConnectionError DatabaseStoreError MongoDBStore PostgreSQLStore",
    "firefly_memory.errors": """
        ConditionError ConfigurationError ConflictError CorruptDataError DatabaseConnectionError DatabaseStoreError
        EntryOwnershipError FireflyMemoryError InvalidEntryError LanguageModelError MissingDependencyError
        NotSupportedError
        OutcomeUnknownError SchemaMismatchError StaleConversationError StepError StoreClosedError StoreTimeoutError
        TurnConflictError TurnsDroppedError UnknownConversationError
    """,
    "firefly_memory.erasure": "Receipt async_erase async_find_text async_readmit erase find_text readmit",
    "firefly_memory.facets": """
        Absent FACETS Facet FacetLogs HasLogs LogOf Looking Moving Name Operations Packaging People Purged STORES Storage
        VARIABLE absent all_facets facet_at facet_named load load_name log_if_there names_in register register_named
        registered
    """,
    "firefly_memory.pipeline": """
        AgentStep FunctionStep Parallel PipelineContext PipelineEngine PipelineResult PipelineStep ReasoningStep
    """,
    "firefly_memory.pipeline.context": "PipelineContext",
    "firefly_memory.protocols": "ABSENT AsyncMemoryStore Capability MemoryStore Page SAME_METADATA StoreView",
    "firefly_memory.reasoning": """
        Plan PlanAndExecutePattern ReActPattern ReasoningPattern ReasoningResult ReasoningStepDone Thought
    """,
    "firefly_memory.schema": "HEAD POSTGRESQL_SCHEMA REVISIONS VERSION_TABLE is_later_and_compatible metadata",
    # What `migrations/env.py` imports: a project may have a copy of that file.
    "firefly_memory.stores.sql.alembic_env": "run_in_alembic",
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
    "firefly_memory.knowledge": "Chunk ChunkHit ChunkPage Explanation Hit KnowledgeStore StoredChunk",
    "firefly_memory.retention": "Pruned async_prune prune",
    "firefly_memory.sweeper": "Sweeper",
    "firefly_memory.search.embedders.adapters": "CallableEmbedder LangChainEmbedder PydanticAIEmbedder",
    "firefly_memory.search.embedders.protocol": "Embedder StaticEmbedder",
    "firefly_memory.service": """
        Accelerator AcceleratorState Field IndexState MOST_ROWS Resource Row RowPage Size Stats accelerators
        async_accelerators async_count async_delete async_delete_vectors async_disable_accelerator
        async_embed_missing async_enable_accelerator async_get async_index_states async_list
        async_rebuild_indexes async_search async_stats count delete delete_vectors disable_accelerator
        embed_missing enable_accelerator get index_states list rebuild_indexes resources search stats
    """,
    "firefly_memory.strategies": """
        FlushPlan Interaction KeepPlan KnowledgeBase KnowledgeBases LongTermMemoryStrategyBase MemoryMaxTokensStrategy
        MemoryProfile NeuralyzerStrategy ShortTermMemoryStrategyBase SummarizerStrategy TextSplitterConfig
        interactions_of json_schema register_strategy
    """,
    "firefly_memory.summarization": "create_llm_summarizer",
    "firefly_memory.testing": """
        Check Colour HistoryReport Mode StoppedClock Subject Weather check_histories checks stopped
    """,
    "firefly_memory.tokens": "EstimatedTokensWarning PER_MESSAGE PER_TOOL TokenEstimator file_tokens",
}
