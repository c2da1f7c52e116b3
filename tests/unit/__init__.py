"""Tests of single modules, which need no database."""
