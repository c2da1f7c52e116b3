"""Tests of what goes with age or number: conversations that are out of bounds, the command that prunes, and the sweeper."""
