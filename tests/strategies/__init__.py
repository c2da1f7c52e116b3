"""Tests of the memory strategies."""
