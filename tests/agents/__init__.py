"""Tests of agents with memory, and of reasoning and pipelines."""
