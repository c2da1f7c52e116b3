"""pydantic-ai's conversations in MongoDB."""
