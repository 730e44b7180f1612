"""The entry point of the child process; see `process`."""

import sys

from xegpu_py.programs.child import main

main(int(sys.argv[1]))
