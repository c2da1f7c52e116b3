"""Threads, event loops and processes: what every part needs to work in any of them."""
