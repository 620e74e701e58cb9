"""`python3 -m ctxbench mine.py[:name]`: runs the strategy of a file for ctxbench."""

import sys

from .run import load, run

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 -m ctxbench FILE.py[:NAME]")
    run(load(sys.argv[1]))
