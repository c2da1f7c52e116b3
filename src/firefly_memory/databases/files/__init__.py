"""Directories of files: durable writes, locks, diagnosis."""
