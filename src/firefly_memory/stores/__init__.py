"""The stores: one file, or one package, for each kind of backend."""
