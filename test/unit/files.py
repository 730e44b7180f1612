"""The MLIR files of the tests and examples."""

import re

from markdown import ROOT

VALID = [
    path
    for path in sorted([*(ROOT / "test").rglob("*.mlir"), *(ROOT / "examples").glob("*.mlir")])
    if not re.search(r"split-input-file|verify-diagnostics|not xegpu|import-upstream", path.read_text())
    and "Inputs" not in path.parts
]
"""The files that contain one valid module."""
