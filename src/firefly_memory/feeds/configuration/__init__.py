"""Memories that a configuration describes: by a preset, or by YAML, with variables."""
