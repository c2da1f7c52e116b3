"""Out of one store and into another: archives, copies, and what predecessors wrote."""
