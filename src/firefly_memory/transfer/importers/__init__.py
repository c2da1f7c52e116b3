"""What other libraries wrote, read into a store of this one."""
