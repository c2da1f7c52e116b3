"""Search in MongoDB."""
