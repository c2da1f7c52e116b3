"""Tests of MongoDB only."""
