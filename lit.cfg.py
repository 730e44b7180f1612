"""lit configuration: `lit test` runs every test below test/ that has RUN lines."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "test"))
import forked_tools
import recorder

from xegpu_py import external_tools

config.name = "xegpu-py"
config.test_format = forked_tools.ShTest(execute_external=False)
config.suffixes = [".mlir", ".visaasm", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = lit_config.params.get("outputs", os.path.join(os.path.dirname(__file__), "build", "lit"))
config.excludes = ["Inputs", "recorded", "unit", ".venv", "build", "examples"]

tools = os.path.dirname(sys.executable)
config.environment["PATH"] = os.pathsep.join([tools, config.environment["PATH"]])
config.environment[external_tools.VARIABLE] = os.environ.get(external_tools.VARIABLE, "")
config.environment[recorder.RUN] = os.environ.get(recorder.RUN, "")
# Tests do not write to the user's cache.
config.environment["XEGPU_PY_CACHE"] = "off"
config.substitutions += [
    ("%python", sys.executable),
    ("%examples", os.path.join(os.path.dirname(__file__), "examples")),
    ("FileCheck", "filecheck"),
]

for name in external_tools.ORACLES:
    if path := external_tools.find(name):
        config.available_features.add(name)
        config.substitutions.append((f"%{name}", path))

forked_tools.install()
