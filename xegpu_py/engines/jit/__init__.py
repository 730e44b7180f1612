"""The JIT: native code for programs, with results that are bit-identical to those of the interpreter.

A program is translated to functions in LLVM IR, which LLVM compiles for a CPU (`host`, `native_code`). Workgroups run
on several threads of the operating system (`engine`). docs/jit.md describes the design.
"""

from xegpu_py.engines.jit.engine import Jit
from xegpu_py.engines.jit.native_launch import Outcome

__all__ = ["Jit", "Outcome"]
