"""Tests of archives, copies and imports."""
