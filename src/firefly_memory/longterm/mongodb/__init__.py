"""Long-term memory in MongoDB."""
