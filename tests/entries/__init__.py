"""Tests of memory entries and of the store methods that keep them."""
