"""`xegpu-inline`: kernels have what they call in them, and the constants of tables that they read."""

from collections.abc import Sequence

from mlir import ir

from xegpu_py.ir.builtin import dense_elements
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Contents, Pass, register_pass
from xegpu_py.passes.analysis.ir_queries import CALL, Functions, calls, chosen_kernels
from xegpu_py.passes.rewriting import builders as build

_TABLE = "memref.get_global"


@register_pass("xegpu-inline")
class XeGPUInline(Pass):
    """Inline the functions that kernels call.

    Kernels have no stack, so that no function may call itself, and each function is one block: see `xegpu-lift-cf`.
    Functions that are only declared are left to the passes that know them. With `kernel` only calls in that kernel are
    replaced. The functions themselves stay. A load of a constant `memref.global` becomes an element of a vector.

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

    def concerns(self, contents: Contents) -> bool:
        return not contents.names.isdisjoint((CALL, _TABLE))

    def run(self, op: ir.Operation) -> None:
        for func in chosen_kernels(op, self.kernel):
            functions, ops = Functions(func), walk(func)
            called = [op for op in ops if op.name == CALL]
            for call in called:
                self._inline(call, functions, ())
            for table in [op for op in (walk(func) if called else ops) if op.name == _TABLE]:
                self._read_table(table, functions)

    def _read_table(self, op: ir.Operation, functions: Functions) -> None:
        """Make loads of a constant table elements of a vector: kernels have no memory for constants."""
        table = functions.named(ir.FlatSymbolRefAttr(op.attributes["name"]).value)
        kind = ir.MemRefType(op.results[0].type)
        value = next((attr for name, attr in table.attributes.items() if name == "initial_value"), None)
        if "constant" not in table.attributes or not isinstance(value, ir.DenseElementsAttr):
            self.fail(op, "refers to memory that is no constant with a value", "pass the memref as an argument")
        for use in list(op.results[0].uses):
            load = use.owner.operation
            if load.name != "memref.load":
                self.fail(op, f"is a constant table that '{load.name}' uses", "kernels can only load its elements")
            with ir.InsertionPoint(load), load.location:
                vector = build.vector_type(kind.shape, kind.element_type)
                numbers = ir.DenseElementsAttr.get(dense_elements(value), vector)
                whole = build.flatten(build.make("arith.constant", vector, value=numbers))
                at: build.Index = 0
                for extent, index in zip(kind.shape, list(load.operands)[1:]):
                    at = build.add(build.multiply(at, extent), index)
                element = build.extract_at(whole, build.index(at))
            build.replace_op(load, element)
        op.erase()

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
        operands = dict(zip(blocks[0].arguments, call.operands))
        inside = []
        with ir.InsertionPoint(call):
            for inner in body:
                inside += calls(build.clone(inner, operands))
        build.replace_op(call, *(operands[value] for value in end.operands))
        for inner in inside:
            self._inline(inner, functions, (*around, callee))
