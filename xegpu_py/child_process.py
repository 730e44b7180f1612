"""Commands that start Python in a child process."""

import json
import sys

_RUN = """\
import sys
sys.path[:] = [folder for folder in sys.path if folder]
import json, runpy, signal
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
_, module, path, *arguments = sys.argv
sys.path[:] = json.loads(path)
sys.argv[:] = [module, *arguments]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module as a program, with the module search path of this process.

    An interrupt, which a terminal sends to the child too, ends it silently: the parent reports it.
    `python -m` would search the working directory first, where a file named as a module of ours would be run.
    """
    return [sys.executable, "-c", _RUN, module, json.dumps(sys.path), *arguments]
