"""`python -m footprint` is the command."""

import sys

from footprint.cli import main

if __name__ == "__main__":
    sys.exit(main())
