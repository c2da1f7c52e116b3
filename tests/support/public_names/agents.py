"""The public names of agents with memory."""

NAMES = {
    "firefly_memory.agents": """
        FireflyAgent LongTermMemory Memory MongoConversationStore SQLConversationStore feed_memory from_model_messages
        long_term_tools to_model_messages
    """,
    "firefly_memory.agents.delegation": """
        AnyAgent CapabilityStrategy DelegationRouter LeastBusyStrategy RandomStrategy RoundRobinStrategy RouteRequest
        Strategy
    """,
}
