"""``python -m firefly_memory.cli``."""

import sys

from firefly_memory.cli import main

sys.exit(main())
