"""Building IR in Python: `with` blocks create the ops around a kernel and set the insertion point.

with build.module() as module, build.gpu_module("kernels"):
    with build.kernel("copy", "memref<64x64xf16>") as (matrix,):
        block = xegpu.create_nd_tdesc(matrix, [0, 0], tdesc=xegpu.TensorDesc((8, 16), "f16"), mode="vc")
        xegpu.prefetch_nd(block, mode="vc")
print(module)

Kernels of XeTile are written as Python functions, in `xegpu_py.language`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mlir.dialects
from mlir import ir
from mlir.dialects import gpu

from xegpu_py.ir.bindings import tracebacks_leave_out
from xegpu_py.ir.context import Context
from xegpu_py.ir.definition import parse_type
from xegpu_py.ir.diagnostics import DiagnosticError, sources_of
from xegpu_py.ir.module import Module

# An op's location is the code that called the builder, not a line of the builder itself.
for _path in (*mlir.dialects.__path__, str(Path(__file__).parent), contextlib.__file__):
    tracebacks_leave_out(_path)


@contextmanager
def module(context: Context | None = None) -> Iterator[Module]:
    """A new module. In the block, its context, the end of its body, and locations in Python code are current.

    Args:
        context: the context of the module; by default a new one.

    Raises:
        DiagnosticError: at the end of the block, if the module is not valid. Positions are those of Python code.
    """
    with context or Context.from_pool(), ir.Location.unknown(), ir.loc_tracebacks():
        made = Module(ir.Module.create())
        with ir.InsertionPoint(made.body):
            yield made
        try:
            made.verify()
        except DiagnosticError as e:
            e.sources = sources_of(d.position for d in e.diagnostics)
            raise


@contextmanager
def gpu_module(name: str) -> Iterator[ir.Operation]:
    """A `gpu.module`."""
    op = gpu.GPUModuleOp(name)
    with ir.InsertionPoint(op.bodyRegion.blocks.append()):
        yield op.operation


@contextmanager
def kernel(name: str, *types: ir.Type | str) -> Iterator[tuple[ir.Value, ...]]:
    """A kernel, that is a `gpu.func`, with its arguments; the return is added at the end of the block.

    Args:
        types: the arguments' types, MLIR's or as text.
    """
    inputs = [parse_type(t) if isinstance(t, str) else t for t in types]
    # `gpu.GPUFuncOp` is not used, because its parameters differ between releases of LLVM.
    attributes: dict[str, ir.Attribute] = {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, [])),
        gpu.GPUFuncOp.KERNEL_ATTR_NAME: ir.UnitAttr.get(),
    }
    func = ir.Operation.create("gpu.func", attributes=attributes, regions=1)
    entry = func.regions[0].blocks.append(*inputs)
    with ir.InsertionPoint(entry):
        yield tuple(entry.arguments)
        gpu.return_([])
