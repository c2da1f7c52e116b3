"""What turns texts into vectors: the protocol, adapters for embedders of other libraries, and the default one."""
