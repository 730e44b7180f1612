"""`xegpu-lower-loops`: loops of affine, linalg and parallel `scf` ops become `scf.for`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlir import ir

from xegpu_py.deferred import deferred
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Contents, Pass, Step, register_pass, run_upstream
from xegpu_py.passes.analysis.ir_queries import chosen_kernels
from xegpu_py.passes.rewriting import builders as build

if TYPE_CHECKING:
    from mlir.dialects import scf
else:
    scf = deferred("mlir.dialects.scf")

_PARALLEL = ("scf.forall", "scf.parallel")

_COPY = "memref.copy"

_UPSTREAM = (
    ("convert-linalg-to-loops", lambda name: name.startswith("linalg.") or name == _COPY),
    ("lower-affine", lambda name: name.startswith("affine.")),
    ("scf-forall-to-for", lambda name: name == "scf.forall"),
)
"""Passes of upstream's, and the ops for which each is run."""


@register_pass("xegpu-lower-loops")
class XeGPULowerLoops(Pass):
    """Lower parallel, affine and linalg ops to loops.

    In kernels, these ops and copies of memrefs become `scf.for`. Each thread, in SIMT kernels each work item, runs all
    iterations one after the other. Loops that are mapped to blocks or threads are refused, since mapping them changes
    the launch. With `kernel` no other kernel is changed.

        scf.forall (%i) in (64) {
          memref.store %x, %m[%i] : memref<64xf32>
        }

    becomes

        scf.for %i = %c0 to %c64 step %c1 {
          memref.store %x, %m[%i] : memref<64xf32>
        }
    """

    kernel: str = ""

    def concerns(self, contents: Contents) -> bool:
        return "scf.parallel" in contents.names or any(any(map(concerns, contents.names)) for _, concerns in _UPSTREAM)

    def run(self, op: ir.Operation) -> None:
        for func in chosen_kernels(op, self.kernel):
            inside = walk(func)
            names = {o.name for o in inside}
            needed = [step for step, concerns in _UPSTREAM if any(map(concerns, names))]
            if not needed and "scf.parallel" not in names:
                continue
            for inner in inside:
                self._check(inner)
                if inner.name == _COPY:
                    _as_linalg(inner)
            for step in needed:
                run_upstream(Step(step), func)
            # lower-affine makes them of affine.parallel.
            for inner in reversed([o for o in walk(func) if o.name == "scf.parallel"]):
                _nest(inner)

    def _check(self, op: ir.Operation) -> None:
        if op.name in _PARALLEL and "mapping" in op.attributes:
            self.fail(
                op,
                "is mapped to blocks or threads",
                "first run transform.gpu.map_nested_forall_to_threads or convert-parallel-loops-to-gpu",
            )
        tensors = any(str(v.type).startswith("tensor<") for v in (*op.operands, *op.results))
        if tensors and (op.name in _PARALLEL or op.name.startswith("linalg.")):
            self.fail(op, "works on tensors", "kernels require memrefs; run one-shot-bufferize first")


def _as_linalg(copy: ir.Operation) -> None:
    """Make a `linalg.copy` of a `memref.copy`, without `mlir.dialects.linalg`, whose import takes 50 ms."""
    copy.context.get_dialect_descriptor("linalg")
    elements = [ir.MemRefType(value.type).element_type for value in copy.operands]
    with ir.InsertionPoint(copy), copy.location as where:
        groups = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])}
        linalg_copy = ir.Operation.create("linalg.copy", operands=list(copy.operands), attributes=groups, regions=1)
        body = linalg_copy.regions[0].blocks.append(*elements, arg_locs=[where] * 2)
    with ir.InsertionPoint(body), copy.location:
        ir.Operation.create("linalg.yield", operands=[body.arguments[0]])
    copy.erase()


def _nest(op: ir.Operation) -> None:
    """Make a loop for each dimension of a parallel loop; what it reduces is carried, in the order of the iterations."""
    counts = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    operands = list(op.operands)
    lowers, uppers, steps, carried = (operands[sum(counts[:i]) : sum(counts[: i + 1])] for i in range(4))
    body = op.regions[0].blocks[0]
    loops: list[scf.ForOp] = []
    point = ir.InsertionPoint(op)
    for argument, lower, upper, step in zip(body.arguments, lowers, uppers, steps):
        with point, op.location:
            loop = scf.ForOp(lower, upper, step, carried)
        argument.replace_all_uses_with(loop.induction_variable)
        carried, point = list(loop.inner_iter_args), ir.InsertionPoint(loop.body)
        loops.append(loop)
    *inside, reduce = (inner.operation for inner in body.operations)
    with point, op.location:
        end = scf.YieldOp([]).operation
    for inner in inside:
        inner.move_before(end)
    for i, (region, value) in enumerate(zip(reduce.regions, reduce.operands)):
        combining = region.blocks[0]
        for argument, operand in zip(combining.arguments, (carried[i], value)):
            argument.replace_all_uses_with(operand)
        *ops, last = (inner.operation for inner in combining.operations)
        for inner in ops:
            inner.move_before(end)
        carried[i] = last.operands[0]
    with ir.InsertionPoint(end), op.location:
        scf.YieldOp(carried)
    end.erase()
    for outer, loop in zip(reversed(loops[:-1]), reversed(loops[1:])):
        with ir.InsertionPoint(outer.body), op.location:
            scf.YieldOp(list(loop.results))
    build.replace_op(op, *loops[0].results)
