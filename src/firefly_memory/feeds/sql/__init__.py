"""Feeds in SQL."""
