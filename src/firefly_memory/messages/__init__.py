"""Messages of conversations: how they are stored, told to a model again, and linked to each other."""
