"""What the command line stands on: every facet, looked at in one way."""
