"""Do the tests bite? Changes the library in one place at a time, and runs the tests that reach the line."""
