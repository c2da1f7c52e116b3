"""Feeds in MongoDB."""
