"""Runs the command straight from this checkout: scripts/run.py tour

`make serve` uses it so that a first try needs no build tools: the environment holds the dependencies, this file finds
the package beside it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from angelhair.cli.main import main

if __name__ == "__main__":
    sys.argv[0] = "angelhair"
    sys.exit(main())
