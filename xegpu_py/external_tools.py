"""Programs of others that results are compared with or made by. No kernel needs them to be lowered or executed.

All code and all tests find them here, so that one variable hides them: with `XEGPU_PY_ORACLES=off` an installation
behaves as on a machine that has none of them. `XEGPU_PY_ORACLES=DIR` names a folder (or one with a folder `bin`) whose
programs come before all others.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

VARIABLE = "XEGPU_PY_ORACLES"

ORACLES = {
    "ocloc": "Intel's OpenCL C compiler, IGC 2.40: the newest finalizer",
    "ocloc-2022": "Intel's OpenCL C compiler of Debian 12, IGC 1.0.12504, which newer ones are compared with",
    "GenX_IR-2024": "Intel's finalizer of IGC 1.0.17791",
    "GenX_IR": "Intel's finalizer of Debian, in Debian 12 of IGC 1.0.12504",
    "iga64": "Intel's assembler of native code",
    "mlir-opt": "stock MLIR, for --via=upstream",
    "iree-opt": "IREE's passes",
    "oclgrind-kernel": "an OpenCL simulator with checks, a peer of benchmarks",
    "chromium": "a browser, for tests of the documentation site",
}
"""Each program, and what it is for."""

INSTALLED = Path(__file__).parent.parent / "build" / "oracles" / "bin"
"""Where `make oracles` installs programs, in a clone of the repository."""


def find(name: str) -> str | None:
    """The path of a program; None if it is not installed, or hidden.

    Programs that pip or `make oracles` installed come before those on PATH, whose releases may be others.
    """
    if name not in ORACLES:
        raise KeyError(name)
    given = os.environ.get(VARIABLE, "")
    if given == "off":
        return None
    folders = [Path(given), Path(given) / "bin"] if given else []
    folders += [Path(sys.executable).parent, *(Path(d) / "mlir" / "bin" for d in sys.path if d), INSTALLED]
    return shutil.which(name, path=os.pathsep.join(map(str, folders))) or shutil.which(name)
