"""Tests of what concerns every database or server."""
