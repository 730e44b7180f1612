"""Passes that make a kernel one plain function: xegpu-inline, xegpu-lift-cf, xegpu-lower-loops, xegpu-dce."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import scf

from xegpu_py.ir.builtin import dense_elements
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.module import functions, walk
from xegpu_py.ir.operation import Operation
from xegpu_py.ir.passes import Pass, Step, register_pass, run_upstream
from xegpu_py.passes.analysis.ir_queries import Functions, calls, chosen_kernels, is_used
from xegpu_py.passes.rewriting import builders as build

# `xegpu-inline`: kernels have what they call in them, and the constants of tables that they read.


@register_pass("xegpu-inline")
@dataclass
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

    def run(self, op: ir.Operation) -> None:
        for func in chosen_kernels(op, self.kernel):
            functions = Functions(func)
            for call in calls(func):
                self._inline(call, functions, ())
            for found in walk(func):
                if found.name == "memref.get_global":
                    self._read_table(found, functions)

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
                whole = build.flat(build.make("arith.constant", vector, value=numbers))
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
        known = dict(zip(blocks[0].arguments, call.operands))
        inside = []
        with ir.InsertionPoint(call):
            for inner in body:
                inside += calls(build.clone(inner, known))
        build.replace_op(call, *(known[value] for value in end.operands))
        for inner in inside:
            self._inline(inner, functions, (*around, callee))


# `xegpu-lift-cf`: branches between blocks become scf ops.

_FUNCTION = "func.func"

_RETURNS = {"gpu.func": "gpu.return", _FUNCTION: "func.return"}


@register_pass("xegpu-lift-cf")
@dataclass
class XeGPULiftCf(Pass):
    """Raise branches between blocks to `scf` ops.

    Kernels, and functions in modules of kernels, are changed. The loops and conditions are found by upstream's
    `lift-cf-to-scf`, which knows `func.func` alone, and are simplified by `canonicalize`. Functions of one block stay
    as they are. With `kernel` no other kernel is changed.

        cf.br ^loop(%v : vector<8x16xf32>)
      ^loop(%x: vector<8x16xf32>):
        %more = ...
        cf.cond_br %more, ^body, ^end
      ^body:
        %y = arith.addf %x, %x : vector<8x16xf32>
        cf.br ^loop(%y : vector<8x16xf32>)
      ^end:

    becomes

        %r = scf.while (%x = %v) : (vector<8x16xf32>) -> vector<8x16xf32> {
          %more = ...
          scf.condition(%more) %x : vector<8x16xf32>
        } do {
        ^bb0(%x: vector<8x16xf32>):
          %y = arith.addf %x, %x : vector<8x16xf32>
          scf.yield %y : vector<8x16xf32>
        }
    """

    kernel: str = ""

    def run(self, op: ir.Operation) -> None:
        for func in functions(op):
            name = ir.StringAttr(func.attributes["sym_name"]).value
            inside = walk(func)
            lowered = func.name == "gpu.func" or func.parent.name == "gpu.module"
            lowered |= any(o.name.startswith("xetile.") for o in inside)
            chosen = self.kernel in ("", name) or func.name == _FUNCTION
            if lowered and chosen and any(len(r.blocks) > 1 for o in inside if len(o.regions) for r in o.regions):
                lift(func)


def lift(func: ir.Operation) -> None:
    """Make the branches of a function `scf` ops.

    Raises:
        DiagnosticError: where they cannot be.
    """
    region = func.regions[0]
    arguments = [a.type for a in region.blocks[0].arguments]
    returns = [o for o in walk(func) if o.name == _RETURNS[func.name]]
    if not returns:
        emit_error(func, f"never ends: no block ends with '{_RETURNS[func.name].removeprefix('func.')}'")
    results = [v.type for v in returns[0].operands]
    with ir.InsertionPoint(func), func.location:
        kind = ir.TypeAttr.get(ir.FunctionType.get(arguments, results))
        attributes = {"sym_name": func.attributes["sym_name"], "function_type": kind}
        carrier = ir.Operation.create(_FUNCTION, [], [], attributes, regions=1)
    _move(region, carrier.regions[0], _RETURNS[_FUNCTION])
    for name in ("lift-cf-to-scf", "canonicalize", "cse"):
        run_upstream(Step(name), carrier)
    _move(carrier.regions[0], region, _RETURNS[func.name])
    carrier.erase()


def _move(source: ir.Region, target: ir.Region, end: str) -> None:
    """Move the blocks of a function to another one, whose blocks return by an op of the name `end`."""
    for block in list(source.blocks):
        last = list(block.operations)[-1].operation
        if last.name in _RETURNS.values() and last.name != end:
            with ir.InsertionPoint(last), last.location:
                ir.Operation.create(end, operands=list(last.operands))
            last.erase()
        block.append_to(target)


# `xegpu-lower-loops`: loops of affine, linalg and parallel `scf` ops become `scf.for`.

_PARALLEL = ("scf.forall", "scf.parallel")

_COPY = "memref.copy"

_UPSTREAM = (
    ("convert-linalg-to-loops", lambda name: name.startswith("linalg.") or name == _COPY),
    ("lower-affine", lambda name: name.startswith("affine.")),
    ("scf-forall-to-for", lambda name: name == "scf.forall"),
)
"""Passes of upstream's, and the ops for which each is run."""


@register_pass("xegpu-lower-loops")
@dataclass
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
        made = ir.Operation.create("linalg.copy", operands=list(copy.operands), attributes=groups, regions=1)
        body = made.regions[0].blocks.append(*elements, arg_locs=[where] * 2)
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
    place = ir.InsertionPoint(op)
    for argument, lower, upper, step in zip(body.arguments, lowers, uppers, steps):
        with place, op.location:
            loop = scf.ForOp(lower, upper, step, carried)
        argument.replace_all_uses_with(loop.induction_variable)
        carried, place = list(loop.inner_iter_args), ir.InsertionPoint(loop.body)
        loops.append(loop)
    *inside, reduce = (inner.operation for inner in body.operations)
    with place, op.location:
        end = scf.YieldOp([]).operation
    for inner in inside:
        inner.move_before(end)
    for i, (region, value) in enumerate(zip(reduce.regions, reduce.operands)):
        combining = region.blocks[0]
        for argument, known in zip(combining.arguments, (carried[i], value)):
            argument.replace_all_uses_with(known)
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


# `xegpu-dce`: dead-code elimination that knows the effects of our ops.


@register_pass("xegpu-dce")
@dataclass
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
        for loop in [o for o in walk(op) if o.name == "scf.for"]:
            kept = [i for i in range(len(loop.results)) if not _only_for_itself(loop, i)]
            if len(kept) < len(loop.results):
                build.without_carried(loop.opview, kept)
        harmless = frozenset[str]() if self.keep_loads else frozenset(["read"])
        # Users come after what they use, so that one pass from the end finds chains of dead ops too.
        for inner in reversed(walk(op)):
            if any(is_used(result) for result in inner.results):
                continue
            view = inner.opview
            own = isinstance(view, Operation) and view.effects is not None and view.effects <= harmless
            if own or _computes(inner):
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
    """Whether an op of upstream's does nothing but give numbers."""
    if not len(op.results) or len(op.regions) or not op.name.startswith(("arith.", "math.", "index.", "vector.")):
        return False
    return not any(isinstance(v.type, ir.MemRefType) for v in op.operands)
