"""Tombstones: what refuses the data of people who were erased."""
