"""``python -m firefly_memory``: the command ``firefly-memory``."""

import sys

from firefly_memory.cli import main

sys.exit(main())
