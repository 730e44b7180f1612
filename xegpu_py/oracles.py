"""Programs of others that results are compared with or made by. No kernel needs them to be lowered or executed.

All code and all tests find them here, so that one variable hides them: with `XEGPU_PY_ORACLES=off` an installation
behaves as on a machine that has none of them.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

VARIABLE = "XEGPU_PY_ORACLES"

ORACLES = {
    "GenX_IR": "Intel's finalizer, for xegpu-translate --mlir-to-gen",
    "iga64": "Intel's assembler of native code",
    "ocloc": "Intel's OpenCL C compiler",
    "mlir-opt": "stock MLIR, for --via=upstream",
    "iree-opt": "IREE's passes",
    "chromium": "a browser, for tests of the documentation site",
}
"""Each program, and what it is for."""


def find(name: str) -> str | None:
    """The path of a program; None if it is not installed, or hidden.

    Programs that pip installed for this Python come before those on PATH, whose releases may be others.
    """
    if name not in ORACLES:
        raise KeyError(name)
    if os.environ.get(VARIABLE) == "off":
        return None
    folders = [Path(sys.executable).parent, *(Path(d) / "mlir" / "bin" for d in sys.path if d)]
    return shutil.which(name, path=os.pathsep.join(map(str, folders))) or shutil.which(name)
