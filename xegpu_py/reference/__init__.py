"""The reference evaluator: what a kernel means at each level of the IR, evaluated op by op.

It runs kernels of XeTile, of XeGPU in both modes, and of MLIR's own dialects, before any pass or between passes, and
shares nothing with passes and engines but `numerics` and `layout`. docs/reference.md says how it works.

Each op is a function in the file of its dialect. `storage` says how numpy holds vectors and memory, and `machine` runs
workgroups.
"""

from xegpu_py.reference.evaluate import kernel_of, run, types_of
from xegpu_py.reference.machine import NotEvaluated

__all__ = ["NotEvaluated", "kernel_of", "run", "types_of"]
