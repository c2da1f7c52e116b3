"""Long-term memory in the memory of this process."""
