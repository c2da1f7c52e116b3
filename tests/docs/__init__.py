"""Tests of the documentation and the examples."""
