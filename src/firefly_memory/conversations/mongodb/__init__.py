"""Conversations in MongoDB."""
