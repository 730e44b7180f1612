"""How host code becomes LLVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mlir import ir
from mlir.dialects import arith, func, memref, scf
from mlir.passmanager import PassManager

from xegpu_py.extensions.programs.host_libraries import LibraryFunction
from xegpu_py.extensions.programs.native import check_native
from xegpu_py.ir.diagnostics import DiagnosticError, Position, emit_error, error_at, position_of
from xegpu_py.ir.module import Module, from_mlir, walk
from xegpu_py.ir.passes import Runner, parse_pipeline
from xegpu_py.passes.analysis.ir_queries import attributes_of, constant_of, defining_op, segments, symbol_of
from xegpu_py.passes.rewriting.builders import reinterpret_cast
from xegpu_py.runtime.parameters import Parameter, parameters_of

# Lowering of host code: gpu ops become calls of the runtime, and MLIR's passes lower the rest to LLVM.

PREFIX = "xegpu_runtime_"
"""The prefix of the runtime's functions."""

_TO_F32 = (
    "convert-linalg-to-loops,lower-affine,func.func(lower-vector-multi-reduction),convert-vector-to-scf,"
    "func.func(math-extend-to-supported-types),"
    "func.func(arith-emulate-unsupported-floats{source-types=bf16 target-type=f32})"
)
"""The pipeline that replaces arithmetic on bf16, which hosts lack."""

_TO_LLVM = (
    "arith-expand{include-bf16=true},convert-scf-to-cf,memref-expand,"
    "expand-strided-metadata,lower-affine,convert-vector-to-llvm,finalize-memref-to-llvm,convert-math-to-llvm,"
    "convert-math-to-libm,convert-to-llvm,reconcile-unrealized-casts"
)
"""The pipeline that lowers the rest to the LLVM dialect."""

_KNOWN = frozenset(("builtin", "func", "arith", "math", "index", "vector", "memref", "scf", "cf", "affine", "linalg",
                    "ub", "complex", "llvm", "gpu"))  # fmt: skip
"""The dialects allowed in host code."""

_IGNORED = ("gpu.wait", "gpu.host_register", "gpu.host_unregister", "gpu.set_default_device")
"""Ops without an effect: execution is synchronous, and the only device shares the host's memory."""


@dataclass(frozen=True)
class LaunchFunc:
    """A `gpu.launch_func` of host code.

    Attributes:
        module, kernel: the names of the `gpu.module` and of the `gpu.func` in it.
        where: its source position.
        parameters: those of the kernel.
    """

    module: str
    kernel: str
    where: Position
    parameters: tuple[Parameter, ...]


@dataclass
class HostCode:
    """Lowered host code.

    Attributes:
        module: the code in the LLVM dialect.
        entry: the function to call.
        inputs, results: types of the entry before the lowering.
        kernels: the `gpu.module`s by name, each in a module of its own.
        sites: the ops that call the runtime, by the name of the called function: launches, and the positions of
            other ops with their element types; see `device`.
        called: the library functions that are called.
    """

    module: ir.Module
    entry: str
    inputs: list[ir.Type]
    results: list[ir.Type]
    kernels: dict[str, Module]
    sites: dict[str, Site]
    called: list[LibraryFunction]


@dataclass(frozen=True)
class Site:
    """An op of host code that calls the runtime.

    Attributes:
        action: the method of `Device` that is called.
        where: the op's position.
        words: the types of the arguments: "memref" or a scalar type.
        element: the element type of the op, if it has one.
        launch: the launch, if the op is one.
        message: the message of an assertion.
    """

    action: str
    where: Position
    words: tuple[str, ...]
    element: str = ""
    launch: LaunchFunc | None = None
    message: str = ""


def lower(module: Module, entry: str, library: dict[str, LibraryFunction], allow_native: bool = False) -> HostCode:
    """Lower a program's host code.

    Args:
        module: the program, which is not changed.
        entry: the function that will be called.
        library: the external functions that it may call.
        allow_native: whether it may also call any other function of the process and contain inline assembly.

    Raises:
        DiagnosticError: at an op that cannot be part of a program.
    """
    host_module = module.copy()
    handler = host_module.context.attach_diagnostic_handler(lambda d: True)
    try:
        with host_module.context, ir.Location.unknown():
            return _Lowering(host_module, entry, library, allow_native).run()
    except ir.MLIRError as e:
        raise DiagnosticError(from_mlir(e, host_module.context), module.sources) from None
    except DiagnosticError as e:
        e.sources = e.sources or list(module.sources)
        raise
    finally:
        handler.detach()


@dataclass
class _Lowering:
    module: Module
    entry: str
    library: dict[str, LibraryFunction]
    allow_native: bool
    sites: dict[str, Site] = field(default_factory=dict)
    signatures: dict[tuple[str, str], tuple[Parameter, ...]] = field(default_factory=dict)

    def run(self) -> HostCode:
        if any(op.name == "gpu.launch" for op in walk(self.module.operation)):
            Runner(verify_each=False).run(parse_pipeline("builtin.module(gpu-kernel-outlining)"), self.module)
        kernels = {symbol_of(op): own_module(op, self.module) for op in self._top("gpu.module")}
        self.signatures = {
            (module, symbol_of(kernel)): _parameters(kernel)
            for module, own in kernels.items()
            for kernel in walk(own.operation)
            if kernel.name == "gpu.func"
        }
        for op in self._top("gpu.module"):
            op.erase()
        entry = self._check_entry()
        called = self._library_functions()
        for op in list(walk(self.module.operation)):
            self._check(op)
        for op in list(walk(self.module.operation)):
            self._rewrite(op)
        _forget_spaces(self.module.operation)
        self._lower()
        if not self.allow_native:
            interfaces = (*self.sites, *(PREFIX + function.name for function in called))
            printing = (name for name, function in self.library.items() if not function.has_memrefs)
            check_native(self.module.operation, {*(f"_mlir_ciface_{name}" for name in interfaces), *printing})
        return HostCode(self.module.ir, self.entry, entry.inputs, entry.results, kernels, self.sites, called)

    def _top(self, name: str) -> list[ir.Operation]:
        return [op.operation for op in self.module.body.operations if op.operation.name == name]

    def _check_entry(self) -> ir.FunctionType:
        functions = {symbol_of(f): f for f in self._top("func.func") if _has_body(f)}
        function = functions.get(self.entry)
        if function is None:
            names = ", ".join(functions) or "none"
            where = position_of(self.module.operation.location)
            message = f"there is no host function '{self.entry}' with a body; there are: {names}"
            raise error_at(where, message)
        function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        return ir.FunctionType(_plain(ir.TypeAttr(function.attributes["function_type"]).value))

    def _library_functions(self) -> list[LibraryFunction]:
        """The called external functions; each must be in the library, with its type.

        They are renamed, since MLIR's lowering of vector.print declares functions with the library's names.
        """
        calls: dict[str, list[ir.Operation]] = {}
        for op in walk(self.module.operation):
            if op.name == "func.call":
                calls.setdefault(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, []).append(op)
        library_functions = []
        for declared in self._top("func.func"):
            name = symbol_of(declared)
            if _has_body(declared):
                continue
            if name not in calls:
                declared.erase()
                continue
            function = self.library.get(name)
            if function is None and self.allow_native:
                continue
            if function is None:
                emit_error(
                    declared,
                    f"declares function '{name}', which has no body and is not in the runtime library",
                    f"the library has {', '.join(sorted(self.library))}",
                )
            kind = ir.FunctionType(ir.TypeAttr(declared.attributes["function_type"]).value)
            takes = [str(_plain(t)) for t in kind.inputs]
            gives = [str(t) for t in kind.results]
            if takes != list(function.takes) or gives != ([function.gives] if function.gives else []):
                emit_error(declared, f"declares function '{name}' of type {kind}, but it is {function.signature}")
            declared.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
            declared.attributes["sym_name"] = ir.StringAttr.get(PREFIX + name)
            for call in calls[name]:
                call.attributes["callee"] = ir.FlatSymbolRefAttr.get(PREFIX + name)
            library_functions.append(function)
        return library_functions

    def _check(self, op: ir.Operation) -> None:
        if op.name in ("func.constant", "func.call_indirect"):
            emit_error(
                op, "makes a program with pointers to functions, which is refused", "call the function by its name"
            )
        if op.name.partition(".")[0] not in _KNOWN:
            emit_error(op, f"cannot be part of host code; its dialects are {', '.join(sorted(_KNOWN))}")

    def _rewrite(self, op: ir.Operation) -> None:
        if op.name in _IGNORED:
            self._replace(op, [])
        elif op.name in _REWRITES:
            with ir.InsertionPoint(op), op.location:
                results = _REWRITES[op.name](self, op)
            self._replace(op, results)
        elif op.name.startswith("gpu."):
            names = sorted(n for n in (*_REWRITES, *_IGNORED) if n.startswith("gpu."))
            emit_error(
                op, f"cannot be part of host code; of the gpu dialect there may be {', '.join(names)}, gpu.launch"
            )
        elif op.name == "memref.memory_space_cast":
            self._replace(op, [op.operands[0]])

    @staticmethod
    def _replace(op: ir.Operation, results: Sequence[ir.Value]) -> None:
        """Replace an op's results. Tokens become zeros, because execution is synchronous."""
        left = list(results)
        for result in op.results:
            if _is_token(result.type):
                with ir.InsertionPoint(op), op.location:
                    new = arith.constant(ir.IntegerType.get_signless(64), 0)
            else:
                new = left.pop(0)
            result.replace_all_uses_with(new)
        op.erase()

    def _call(self, op: ir.Operation, action: str, arguments: Sequence[ir.Value], **more: Any) -> None:
        """Call the runtime; memrefs are passed unranked."""
        words, values = [], []
        for value in arguments:
            if isinstance(value.type, ir.MemRefType):
                kind = ir.MemRefType(value.type)
                value = memref.cast(ir.UnrankedMemRefType.get(kind.element_type, kind.memory_space), value)
            words.append("memref" if isinstance(value.type, ir.UnrankedMemRefType) else str(value.type))
            values.append(value)
        name = f"{PREFIX}{action}_{len(self.sites)}"
        self.sites[name] = Site(action, position_of(op.location), tuple(words), **more)
        with ir.InsertionPoint.at_block_begin(self.module.body):
            kind = ir.FunctionType.get([v.type for v in values], [])
            declared = func.FuncOp(name, kind, visibility="private")
            declared.operation.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        func.CallOp([], ir.FlatSymbolRefAttr.get(name), values)

    def _lower(self) -> None:
        root = self.module.operation
        for op in walk(root):
            for name in [n for n in op.attributes if n.startswith("gpu.")]:
                del op.attributes[name]
        self.module.verify()
        self.module = Module(jam_loops(self.module.ir), self.module.sources)
        root = self.module.operation
        runner = Runner(verify_each=False)
        runner.run(parse_pipeline(f"builtin.module({_TO_F32})"), self.module)
        for op in walk(self.module.operation):
            # They have a flag that allows folding intermediate rounding to bf16.
            if op.name in ("arith.extf", "arith.truncf") and "fastmath" in op.attributes:
                del op.attributes["fastmath"]
        runner.run(parse_pipeline(f"builtin.module({_TO_LLVM})"), self.module)
        for op in walk(self.module.operation):
            if not op.name.startswith(("llvm.", "builtin.module")):
                emit_error(op, "in host code is not lowered to LLVM by upstream's passes")


def own_module(op: ir.Operation, module: Module) -> Module:
    """A module with a copy of a `gpu.module` of another."""
    with module.context, op.location:
        new_module = ir.Module.create()
        op.clone(ir.InsertionPoint(new_module.body))
        new_module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
    return Module(new_module, module.sources)


def _has_body(function: ir.Operation) -> bool:
    return len(function.regions[0].blocks) > 0


def _parameters(kernel: ir.Operation) -> tuple[Parameter, ...]:
    kind = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    return parameters_of(kind.inputs)


def _is_token(kind: ir.Type) -> bool:
    return str(kind) == "!gpu.async.token"


def _index(value: ir.Value) -> ir.Value:
    kind = ir.IndexType.get()
    return value if value.type == kind else arith.index_cast(kind, value)


def _data(op: ir.Operation, count: int) -> list[ir.Value]:
    return list(op.operands)[-count:]


def _allocate(lowering: _Lowering, op: ir.Operation) -> list[ir.Value]:
    _, sizes, symbols = segments(op)
    kind = ir.MemRefType(next(r.type for r in op.results if not _is_token(r.type)))
    if symbols:
        emit_error(op, "has symbols in the layout of its memref, which is refused", "allocate without a layout")
    plain = ir.MemRefType.get(kind.shape, kind.element_type, memory_space=kind.memory_space)
    if kind.layout == plain.layout:
        allocated = memref.alloc(kind, sizes, [], alignment=_ALIGNMENT)
        lowering._call(op, "allocate", [allocated], element=str(kind.element_type))
        return [allocated]
    strides, offset = _strides(op, kind)
    reach = offset + 1 + sum((n - 1) * s for n, s in zip(kind.shape, strides))
    flat = ir.MemRefType.get([reach], kind.element_type, memory_space=kind.memory_space)
    allocated = memref.alloc(flat, [], [], alignment=_ALIGNMENT)
    lowering._call(op, "allocate", [allocated], element=str(kind.element_type))
    return [reinterpret_cast(allocated, offset, kind.shape, strides, kind)]


_ALIGNMENT = 4096
"""Alignment of allocations in bytes, which satisfies the rules of 2D surfaces."""


def _strides(op: ir.Operation, kind: ir.MemRefType) -> tuple[list[int], int]:
    try:
        strides, offset = kind.get_strides_and_offset()
    except RuntimeError:
        emit_error(op, f"allocates {kind}, whose layout has no strides")
    # Strides that are not static are symbols.
    if not kind.has_static_shape:
        emit_error(op, f"allocates {kind}, whose layout is not known", "allocate without a layout, and make a subview")
    return list(strides), offset


def _deallocate(lowering: _Lowering, op: ir.Operation) -> list[ir.Value]:
    (data,) = _data(op, 1)
    lowering._call(op, "deallocate", [data])
    return []


def _copy(lowering: _Lowering, op: ir.Operation) -> list[ir.Value]:
    to, source = _data(op, 2)
    lowering._call(op, "copy", [to, source], element=str(ir.MemRefType(to.type).element_type))
    return []


def _fill(lowering: _Lowering, op: ir.Operation) -> list[ir.Value]:
    to, value = _data(op, 2)
    with _scope() as to_stack:
        lowering._call(op, "fill", [to, to_stack(value)], element=str(ir.MemRefType(to.type).element_type))
    return []


@contextmanager
def _scope() -> Iterator[Callable[[ir.Value], ir.Value]]:
    """A scope of the stack, and the function that passes a value in its memory."""

    def held(value: ir.Value) -> ir.Value:
        slot = memref.alloca(ir.MemRefType.get([1], value.type), [], [])
        memref.store(value, slot, [arith.constant(ir.IndexType.get(), 0)])
        return slot

    scope = ir.Operation.create("memref.alloca_scope", regions=1)
    with ir.InsertionPoint(scope.regions[0].blocks.append()):
        yield held
        ir.Operation.create("memref.alloca_scope.return")


def _launch(lowering: _Lowering, op: ir.Operation) -> list[ir.Value]:
    symbol = ir.SymbolRefAttr(op.attributes["kernel"]).value
    _, *sizes, cluster_x, cluster_y, cluster_z, shared, arguments, _ = segments(op)
    if cluster_x or cluster_y or cluster_z:
        emit_error(op, "launches clusters of workgroups, which is refused", "Xe GPUs have none")
    if len(symbol) != 2 or tuple(symbol) not in lowering.signatures:
        emit_error(op, f"launches {op.attributes['kernel']}, which is not a kernel of this module")
    parameters = lowering.signatures[symbol[0], symbol[1]]
    launch = LaunchFunc(symbol[0], symbol[1], position_of(op.location), parameters)
    with _scope() as to_stack:
        words = [_index(s) for (s,) in sizes]
        words.append(_index(shared[0]) if shared else arith.constant(ir.IndexType.get(), 0))
        values = [v if isinstance(v.type, ir.MemRefType) else to_stack(v) for v in arguments]
        lowering._call(op, "launch", [*words, *values], launch=launch)
    return []


def _assert(lowering: _Lowering, op: ir.Operation) -> list[ir.Value]:
    true = arith.constant(ir.IntegerType.get_signless(1), 1)
    broken = scf.IfOp(arith.xori(op.operands[0], true))
    with ir.InsertionPoint(broken.then_block):
        lowering._call(op, "refute", [], message=ir.StringAttr(op.attributes["msg"]).value)
        scf.YieldOp([])
    return []


_REWRITES: dict[str, Callable[[_Lowering, ir.Operation], list[ir.Value]]] = {
    "gpu.alloc": _allocate,
    "gpu.dealloc": _deallocate,
    "gpu.memcpy": _copy,
    "gpu.memset": _fill,
    "gpu.launch_func": _launch,
    "cf.assert": _assert,
}


def _forget_spaces(root: ir.Operation) -> None:
    """Remove memory spaces from all types, because all memory is the host's. Tokens become integers."""
    for op in walk(root):
        for name, attribute in attributes_of(op).items():
            if isinstance(attribute, ir.TypeAttr):
                op.attributes[name] = ir.TypeAttr.get(_plain(attribute.value))
        for result in op.results:
            result.set_type(_plain(result.type))
        for region in op.regions:
            for block in region:
                for argument in block.arguments:
                    argument.set_type(_plain(argument.type))


def _plain(kind: ir.Type) -> ir.Type:
    if isinstance(kind, ir.MemRefType):
        original = ir.MemRefType(kind)
        return ir.MemRefType.get(original.shape, _plain(original.element_type), original.layout)
    if isinstance(kind, ir.UnrankedMemRefType):
        return ir.UnrankedMemRefType.get(_plain(ir.UnrankedMemRefType(kind).element_type), None)
    if isinstance(kind, ir.FunctionType):
        original = ir.FunctionType(kind)
        return ir.FunctionType.get([_plain(t) for t in original.inputs], [_plain(t) for t in original.results])
    return ir.IntegerType.get_signless(64) if _is_token(kind) else kind


# Unroll-and-jam of loops in host code that access columns of matrices.
#
# Programs compute expected results on the host, most often by three nested loops: for each element of a matrix product,
# a sum along a row of A and a column of B. Neighbours in a column are far apart in memory, so each step misses the
# caches. The loop around the sum is unrolled and jammed, so that a step accesses neighbours in a row. The order of each
# sum, and with it every bit, does not change.

TOGETHER = (32, 16, 8, 4)
"""Unroll factors to try, largest first."""

_PURE = ("arith", "math", "index")

_MARK = "xegpu.jam"

_SCHEDULE = """
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: !transform.any_op {{transform.readonly}}) {{
{steps}    transform.yield
  }}
}}
"""

_STEP = """\
    %{factor} = transform.structured.match ops{{["scf.for"]}} attributes{{{mark} = {factor} : i64}} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.loop.unroll_and_jam %{factor} {{factor = {factor}}} : !transform.any_op
"""


def jam_loops(module: ir.Module) -> ir.Module:
    """Unroll and jam the loops of a module where this is profitable and changes no value."""
    ops = list(walk(module.operation))
    # Memrefs of different element types are assumed to be different memory, which these ops could violate.
    if any(op.name == "memref.view" or op.name.startswith("llvm.") for op in ops):
        return module
    factors = set()
    for op in ops:
        factor = _together(op) if op.name == "scf.for" else None
        if factor:
            op.attributes[_MARK] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, op.context), factor)
            factors.add(factor)
    if not factors:
        return module
    schedule = _SCHEDULE.format(steps="".join(_STEP.format(factor=factor, mark=_MARK) for factor in sorted(factors)))
    # MLIR's transform interpreter loads upstream's xegpu, which cannot coexist with this project's.
    with ir.Context():
        jammed = ir.Module.parse(module.operation.get_asm(enable_debug_info=True))
        steps = ir.Module.parse(schedule)
        sequence = steps.body.operations[0].operation.clone(ir.InsertionPoint(jammed.body))
        jammed.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
        PassManager.parse("builtin.module(transform-interpreter)").run(jammed.operation)
        sequence.erase()
        del jammed.operation.attributes["transform.with_named_sequence"]
        for op in walk(jammed.operation):
            if _MARK in op.attributes:
                del op.attributes[_MARK]
        text = jammed.operation.get_asm(enable_debug_info=True)
    with module.context:
        return ir.Module.parse(text)


def _together(loop: ir.Operation) -> int | None:
    """The unroll factor of a loop; None if unrolling is not known to be valid, or not profitable."""
    count = _trip_count(loop)
    factor = next((n for n in TOGETHER if count and count % n == 0), None)
    if factor is None or len(loop.operands) > 3:
        return None
    block = loop.regions[0].blocks[0]
    nested = [op.operation for op in block.operations]
    inner = [op for outer in nested if outer.name == "scf.for" for op in walk(outer)]
    stores = [op for op in nested if op.name == "memref.store"]
    if not inner or not stores:
        return None
    loads = [op for op in (*nested, *inner) if op.name == "memref.load"]
    allowed = {"memref.load", "scf.for", "scf.yield"}
    if not all(op.name in allowed or _is_pure(op) for op in inner):
        return None
    if not all(op.name in allowed or op.name == "memref.store" or _is_pure(op) for op in nested):
        return None
    iteration = block.arguments[0]
    for store in stores:
        _, to, *indices = store.operands
        if not any(index == iteration for index in indices):
            return None
        for load in loads:
            source, *at = load.operands
            if not _are_apart(source, to) and not (source == to and at == indices and load in nested):
                return None
        for other in stores:
            _, second, *at = other.operands
            if not _are_apart(second, to) and not (second == to and at == indices):
                return None
    return factor


def _is_pure(op: ir.Operation) -> bool:
    return op.name.partition(".")[0] in _PURE and not op.regions


def _are_apart(a: ir.Value, b: ir.Value) -> bool:
    """Whether two memrefs are known to share no memory."""
    if ir.MemRefType(a.type).element_type != ir.MemRefType(b.type).element_type:
        return True
    first, second = _origin(a), _origin(b)
    return first is not None and second is not None and first != second


def _origin(memref: ir.Value) -> str | None:
    """The allocation or global that a memref is a view of; None if it is not known."""
    op = defining_op(memref)
    if op is None:
        return None
    if op.name == "memref.get_global":
        return str(op.attributes["name"])
    return f"allocation {hash(op)}" if op.name == "memref.alloc" else None


def _trip_count(loop: ir.Operation) -> int | None:
    bounds = [constant_of(v) for v in list(loop.operands)[:3]]
    start, end, step = bounds
    if start is None or end is None or not step or step < 1 or end <= start:
        return None
    return -(-(end - start) // step)
