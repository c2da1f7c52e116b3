"""Tests of conversations and their turns, messages and summaries."""
