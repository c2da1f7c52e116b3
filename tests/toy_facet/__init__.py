"""A facet of its own, as another package would add one: notes that are searched and may expire.

It has no search of its own: it declares what of its notes is searched, and who are neighbours.

It is registered by the tests and named nowhere in the library. There may be several, numbered: tests of many facets at
once register ten.
"""
