"""`xegpu-dce`: dead-code elimination that knows the effects of our ops."""

from mlir import ir

from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import Operation
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis.ir_queries import is_used
from xegpu_py.passes.rewriting import builders as build


@register_pass("xegpu-dce")
class XeGPUDce(Pass):
    """Remove unused ops of our dialects.

    Upstream's dead-code elimination does not remove them, because IRDL definitions cannot declare side effects. The
    pass removes unused ops without side effects, and unused loads; with `keep-loads` loads stay, because a load may
    serve to fill a cache. Unused ops of upstream's dialects on numbers and vectors are removed too, so that chains of
    ops of several dialects are removed at once, and so are values that a loop carries only to compute them again.

        %0 = xegpu.create_nd_tdesc %m[%i, %j] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
        %1 = xegpu.load_nd %0 {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
        xegpu.compile_hint

    becomes

        xegpu.compile_hint
    """

    keep_loads: bool = False

    def run(self, op: ir.Operation) -> None:
        ops = walk(op)
        for loop in [o for o in ops if o.name == "scf.for"]:
            live = [i for i in range(len(loop.results)) if not _only_for_itself(loop, i)]
            if len(live) < len(loop.results):
                build.drop_loop_carried(loop.opview, live)
                ops = []
        harmless = frozenset[str]() if self.keep_loads else frozenset(["read"])
        # Users come after what they use, so that one pass from the end finds chains of dead ops too.
        for inner in reversed(ops or walk(op)):
            if any(map(is_used, inner.results)):
                continue
            view = inner.opview
            is_harmless = isinstance(view, Operation) and view.effects is not None and view.effects <= harmless
            if is_harmless or _computes(inner):
                inner.erase()


def _only_for_itself(loop: ir.Operation, number: int) -> bool:
    """Whether nothing depends on a value that a loop carries but the same value of the next iteration."""
    if is_used(loop.results[number]):
        return False
    waiting = [loop.regions[0].blocks[0].arguments[1 + number]]
    while waiting:
        for use in waiting.pop().uses:
            op = use.owner.operation
            if op.name == "scf.yield" and op.parent.operation == loop and use.operand_number == number:
                continue
            if not _computes(op):
                return False
            waiting += op.results
    return True


def _computes(op: ir.Operation) -> bool:
    if not len(op.results) or len(op.regions) or not op.name.startswith(("arith.", "math.", "index.", "vector.")):
        return False
    return not any(isinstance(v.type, ir.MemRefType) for v in op.operands)
