"""Knowledge in MongoDB."""
