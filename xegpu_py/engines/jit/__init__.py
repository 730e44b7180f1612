"""The JIT: native code for programs, with the same results as the interpreter in every bit.

A program becomes functions of LLVM IR, which LLVM compiles for a CPU (`host`, `native`). Workgroups run
on several threads of the operating system (`engine`). docs/jit.md tells how.
"""

from xegpu_py.engines.jit.engine import Jit, Outcome
from xegpu_py.engines.jit.kernel import missing_rules

__all__ = ["Jit", "Outcome", "missing_rules"]
