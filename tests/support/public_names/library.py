"""The public names of what has no file of its own."""

NAMES = {
    "firefly_memory": """
        ABSENT AsyncMemoryStore Capability ConditionError ConfigurationError ConflictError ConversationInfo
        ConversationMemory ConversationPage ConversationTurn CorruptDataError DatabaseConnectionError DatabaseStoreError
        EntryOwnershipError EntryStore ErasedError FileStore FireflyMemoryError InMemoryStore InvalidEntryError
        LanguageModelError MemoryEntry MemoryManager MemoryScope MemorySettings MemoryStore MissingDependencyError MongoDBStore NotSupportedError
        OutcomeUnknownError Page PostgreSQLStore SQLiteStore SchemaMismatchError StaleConversationError StepError
        StoreClosedError StoreTimeoutError StoreView TokenEstimator TurnConflictError TurnsDroppedError
        UnknownConversationError UnknownRecordError Window WorkingMemory __version__ adapt connect create_llm_summarizer
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
        TurnConflictError TurnsDroppedError UnknownConversationError UnknownRecordError
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

REVISIONS = ["0001", "0002", "0003", "0004", "0005", "0006_0005", "0007_0005", "0009_0005"]
