"""Search: words, ranking, vectors, embedders."""
