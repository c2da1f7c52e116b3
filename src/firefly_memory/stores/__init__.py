"""The stores: one file, or one package, per kind of place."""
