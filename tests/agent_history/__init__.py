"""Tests of agent history: the stores of pydantic-ai's own conversations."""
