"""SQLite: one file, worker threads for the asynchronous mode."""
