"""MongoDB: one document per entry, typed dates, the documented indexes."""
