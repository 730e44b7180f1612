"""The command-line programs, one file each."""

import sys

from xegpu_py import interrupts
from xegpu_py.deferred import bind_lazily
from xegpu_py.tools import working_child

# A process that has imported MLIR takes 20 ms more for its fork. Python starts processes for a search whose first
# argument is the tool's too, but not on their command lines.
if interrupts.is_tool() and sys.argv[0] in sys.orig_argv:
    working_child.begin()
    bind_lazily()
