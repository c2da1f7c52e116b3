"""Conversations of pydantic-ai's ``ConversationStore``."""
