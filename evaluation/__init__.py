"""How well a search finds what was said: conversations, questions with their evidence, and the figures."""
