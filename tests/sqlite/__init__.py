"""Tests of SQLite only."""
