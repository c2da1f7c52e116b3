"""Databases that the predecessors of this library wrote, taken over into one of its stores."""
