"""Agent history: the conversations of pydantic-ai's ``ConversationStore``."""
