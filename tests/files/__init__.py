"""Tests of stores that are files."""
