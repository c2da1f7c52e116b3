"""Tests of the schema and its migrations."""
