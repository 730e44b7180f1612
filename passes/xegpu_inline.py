"""`xegpu-inline`: kernels have what they call in them."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.common.calls import Functions, calls
from xegpu_py.passes.common.kernels import chosen_kernels
from xegpu_py.passes.common.ops import clone, replace_op


@register_pass("xegpu-inline")
@dataclass
class XeGPUInline(Pass):
    """Inline the functions that kernels call.

    Kernels have no stack, so that no function may call itself, and each function is one block: see `xegpu-lift-cf`.
    Functions that are only declared are left to the passes that know them. With `kernel` only calls in that kernel are
    replaced. The functions themselves stay.

        func.func @square(%x: vector<16xf32>) -> vector<16xf32> {
          %r = arith.mulf %x, %x : vector<16xf32>
          return %r : vector<16xf32>
        }
        gpu.func @k(...) kernel {
          %y = func.call @square(%v) : (vector<16xf32>) -> vector<16xf32>

    becomes

        gpu.func @k(...) kernel {
          %y = arith.mulf %v, %v : vector<16xf32>
    """

    kernel: str = ""

    def run(self, op: ir.Operation) -> None:
        for func in chosen_kernels(op, self.kernel):
            functions = Functions(func)
            for call in calls(func):
                self._inline(call, functions, ())

    def _inline(self, call: ir.Operation, functions: Functions, around: Sequence[ir.Operation]) -> None:
        callee = functions.called(call)
        if callee in around:
            self.fail(call, "is recursive", "vISA kernels do not have a stack")
        blocks = callee.regions[0].blocks
        if len(blocks) == 0:
            return
        if len(blocks) > 1:
            self.fail(
                call,
                "calls a function with unstructured control flow",
                "run xegpu-lift-cf first, which converts branches to scf ops",
            )
        *body, end = (inner.operation for inner in blocks[0].operations)
        known = dict(zip(blocks[0].arguments, call.operands))
        inside = []
        with ir.InsertionPoint(call):
            for inner in body:
                inside += calls(clone(inner, known))
        replace_op(call, *(known[value] for value in end.operands))
        for inner in inside:
            self._inline(inner, functions, (*around, callee))
