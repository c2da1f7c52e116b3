"""Fuzzing: what is stored, imported or given as a URL is bent anywhere, and must end in a typed error or be right.

A target is a module with ``bodies(place)``: for each backend, what is done with one example of Hypothesis. A short run of
each is part of the suite (``tests/fuzzing/test_targets.py``), ``make fuzz`` runs them for as long as one likes.
"""
