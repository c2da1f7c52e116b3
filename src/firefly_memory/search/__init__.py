"""How rows are found: words, ranking, vectors, hits. No facet and no database is known here.

A facet declares which of its texts are searched, in which scope, and which of them are neighbours.
"""
