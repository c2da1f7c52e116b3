"""Conversations: their turns, the window that a model sees again, summaries."""
