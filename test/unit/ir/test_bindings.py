"""A kernel compiles and runs if the MLIR bindings lack, or spell differently, the names that other releases do."""

import subprocess
import sys

RENAMES = """
import mlir.dialects.irdl
import mlir.ir
from enum import IntEnum
from mlir.dialects import arith, scf

del mlir.dialects.irdl.load_dialects
del mlir.ir.loc_tracebacks

kinds = arith.AtomicRMWKind
arith.AtomicRMWKind = IntEnum("AtomicRMWKind", {k.name: k.value for k in kinds if k.name != "xori"})

init = scf.IfOp.__init__
def renamed(self, cond, results_=None, *, hasElse=False, loc=None, ip=None):
    init(self, cond, results_, has_else=hasElse, loc=loc, ip=ip)
scf.IfOp.__init__ = renamed
"""

SMOKE = """
import numpy as np
import xegpu_py
import xegpu_py.language as xl


def kernel(X, Y, n):
    i = xl.arange(0, 16)
    x = xl.load(X + i)
    if n > 1:
        y = x + 1
    else:
        y = x - 1
    xl.atomic_xor(Y + i, y)


x, y, z = np.arange(16, dtype=np.int32), np.zeros(16, np.int32), np.zeros(16, np.int32)
xegpu_py.jit(kernel, engine="interpreter")[1](x, y, 3)
xegpu_py.jit(kernel, engine="eager")[1](x, z, 3)
print((y == x + 1).all() and (z == y).all())
"""


def test_names_are_looked_up(tmp_path):
    path = tmp_path / "smoke.py"
    path.write_text(RENAMES + SMOKE)
    ran = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert ran.stdout == "True\n", ran.stderr
