"""Tests of the registry: what a facet of another package gets without a change to the library."""
