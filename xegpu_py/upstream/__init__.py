"""Upstream MLIR's XeGPU programs: reading them, and rebuilding their kernels in our dialects.

`import_upstream` reads a program in the dialect of LLVM 22.1.8, of its main branch or of IMEX, and gives a module in
which each kernel is in `xegpu` or `xetile` and all else is as it was.
"""

from xegpu_py.upstream.export import export_upstream
from xegpu_py.upstream.importer import import_upstream, looks_upstream
from xegpu_py.upstream.via import lower_by_upstream, mlir_opt
from xegpu_py.upstream.xevm import looks_xevm

__all__ = ["export_upstream", "import_upstream", "looks_upstream", "looks_xevm", "lower_by_upstream", "mlir_opt"]
