"""`python -m dspy_mama.cli` is `mama`."""

import sys

from dspy_mama.cli.main import run

sys.exit(run())
