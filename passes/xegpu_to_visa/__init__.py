"""`xegpu-to-visa`: lowers kernels of XeGPU and upstream dialects to vISA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlir import ir
from msgspec.structs import replace

from xegpu_py.dialects import visa
from xegpu_py.ir.builtin import is_print
from xegpu_py.ir.control_flow import UnionFind
from xegpu_py.ir.diagnostics import error_at, position_of
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import BodyPass, register_pass
from xegpu_py.ir.pending_functions import PendingFunctions
from xegpu_py.passes.analysis.integer_analysis import Integers, Limits, limits_of
from xegpu_py.passes.analysis.ir_queries import symbol_of, target_for, work_items
from xegpu_py.passes.analysis.target_rules import verify
from xegpu_py.passes.xegpu_to_visa import (  # noqa: F401  (define the rules)
    arith,
    casts_and_math,
    control_and_gpu,
    memory_messages,
    vector,
)
from xegpu_py.passes.xegpu_to_visa.addresses import allocate_slm
from xegpu_py.passes.xegpu_to_visa.emitter import COPY, Emitter
from xegpu_py.passes.xegpu_to_visa.lowering import Lowering
from xegpu_py.passes.xegpu_to_visa.register_values import Reg
from xegpu_py.target import GRID_LIMIT, Target
from xegpu_py.visa.dataflow import ControlFlowGraph, accesses, referenced_variables
from xegpu_py.visa.fp_modes import keep_subnormals
from xegpu_py.visa.operands import Variable
from xegpu_py.visa.program import PRINT_BUFFER, Instruction, Program


@register_pass("xegpu-to-visa")
class XeGPUToVisa(BodyPass):
    """Lower kernels in VC mode to vISA.

    Every `gpu.func` with the attribute `kernel` is lowered, for the GPU that `target` names, or else `visa.target` of
    the kernel or of an op around it. Its signature does not change. Its arguments become inputs: a memref becomes its
    address and its dynamic extents and strides. Host functions do not change. With `kernel` only the kernel of that
    name is lowered. An op that the target does not support is an error; the rules are those of xegpu-verify-target.

    `index` has 64 bits. A value takes 32 bits in registers if its range fits. Range analysis starts from limits that
    every launch must satisfy: an array spans at most `max-bytes` bytes, which also limits its extents and strides; an
    argument of type index has an absolute value of at most `max-index`; a grid has at most `max-grid` workgroups in
    each dimension. 0 means no limit. The kernel records them as `visa.limits`.

        gpu.func @double(%m: memref<16xf32>) kernel {
          %d = xegpu.create_nd_tdesc %m[0] {mode = vc} : memref<16xf32> -> !xegpu.tensor_desc<16xf32, ...>
          %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<16xf32, ...> -> vector<16xf32>
          %y = arith.addf %x, %x : vector<16xf32>
          xegpu.store_nd %y, %d {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, ...>
          gpu.return
        }

    becomes

        gpu.func @double(%m: memref<16xf32>) kernel attributes {visa.attributes = {SimdSize = 16 : i64, ...}} {
          %in0 = visa.decl "in0", uq x 1, align = qword
          %v1 = visa.decl "v1", f x 16, align = GRF
          %v2 = visa.decl "v2", f x 16, align = GRF
          visa.input %in0, offset = 64, size = 8
          visa.lsc_load.ugm (M1_NM, 1) %v1[0]:d32x16t flat[%in0[0]]:a64
          visa.add (M1_NM, 16) %v2(0,0)<1> %v1(0,0)<1;1,0> %v1(0,0)<1;1,0>
          visa.lsc_store.ugm (M1_NM, 1) flat[%in0[0]]:a64 %v2[0]:d32x16t
          visa.ret (M1, 1)
          gpu.return
        }
    """

    target: str = ""
    kernel: str = ""
    max_bytes: int = 0
    max_index: int = 0
    max_grid: int = GRID_LIMIT

    def run_with(self, op: ir.Operation, bodies: PendingFunctions) -> None:
        functions = [
            f for f in visa.kernels(op) if self.kernel in ("", visa.name_of(f)) and not visa.is_lowered(f, bodies)
        ]
        functions_and_targets = [(func, target_for(func, self.target, op)) for func in functions]
        verify(functions_and_targets)
        for func, gpu in functions_and_targets:
            if self.target:
                func.attributes[visa.TARGET] = ir.StringAttr.get(self.target, func.context)
            limits = {"bytes": self.max_bytes, "index": self.max_index, "grid": self.max_grid}
            i64 = ir.IntegerType.get_signless(64, func.context)
            numbers = {name: ir.IntegerAttr.get(i64, n) for name, n in limits.items()}
            func.attributes[visa.LIMITS] = ir.DictAttr.get(numbers, func.context)
            program = lower_kernel(func, gpu, Limits(self.max_bytes, self.max_index, self.max_grid))
            bodies.put(func, visa.KernelBody(program))


# Lowers one kernel to a `visa.Program`.


def lower_kernel(func: ir.Operation, target: Target, limits: Limits | None = None) -> Program:
    """Lower a `gpu.func` that is a kernel.

    Args:
        limits: the limits of its launches.

    Raises:
        DiagnosticError: at the op that cannot be lowered.
    """
    location = position_of(func.location)
    body = func.regions[0].blocks
    name = symbol_of(func)
    if len(body) != 1:
        message = f"kernel '{name}' has unstructured control flow, which cannot be lowered"
        raise error_at(location, message, "run xegpu-lift-cf first, which converts branches to scf ops")
    block = body[0]
    emit = Emitter(target, where=location)
    limits = limits_of(func, target, limits or Limits())
    ops = walk(func)
    low = Lowering(target, emit, Integers(limits), limits, any(op.name == "gpu.barrier" for op in ops))
    count = len(ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value).inputs)
    for i, argument in enumerate(block.arguments):
        try:
            if i < count:
                low.values[argument] = low.argument(i, argument)
                continue

            low.values[argument] = allocate_slm(low, ir.MemRefType(argument.type))
        except ValueError as e:
            raise error_at(location, str(e)) from None
    if any(op.name in ("cf.assert", "gpu.printf") or is_print(op) for op in ops):
        # Implicit inputs follow the explicit ones.
        low.print_buffer()
    low.block(block)
    emit.where = position_of(list(block.operations)[-1].location)
    emit.emit("ret", no_mask=False)
    fixed = frozenset(i.var for i in emit.inputs)
    merged = coalesce(emit.instructions, target, fixed)
    expand(emit, merged)
    return _program(name, emit, low, merged, location, work_items(func))


def _program(
    name: str, emit: Emitter, low: Lowering, merged: dict[Variable, Variable], location: Any, items: int
) -> Program:
    """The program after coalescing, without unused variables."""
    renamed: dict[Any, Any] = dict(merged)
    for var in emit.variables:
        if var.alias and var.alias[0] in merged:
            renamed[var] = Variable(var.name, var.type, var.count, var.align, (merged[var.alias[0]], var.alias[1]))
    instructions = [i.renamed(renamed) for i in emit.instructions] if renamed else emit.instructions
    used = referenced_variables(instructions)
    inputs = [i for i in emit.inputs if i.var in used or not (i.kind or i.var.name == PRINT_BUFFER)]
    used.update(i.var for i in inputs)
    all_variables = dict.fromkeys(renamed.get(v, v) for v in emit.variables)
    variables = [v for v in all_variables if v in used]
    variables.sort(key=lambda v: v.alias is not None)
    attributes: dict[str, int | str] = {"Target": "cm", "SimdSize": 16 if low.target.grf_bytes == 64 else 8}
    if items:
        attributes = {"Target": "3d", "SimdSize": items}
    if low.slm_bytes:
        attributes["SLMSize"] = -(-low.slm_bytes // 1024)
    if low.barriers:
        attributes["NBarrierCnt"] = low.barriers
    return Program(
        name,
        tuple(variables),
        tuple(p for p in emit.predicates if p in used),
        tuple(inputs),
        dict(sorted(attributes.items())),
        (replace(keep_subnormals(low.target), where=location), *instructions),
        location,
    )


# Coalescing: copies between variables that can share registers are removed, other copies become moves.

_PLACEHOLDER = Instruction("fence_sw", {})


def coalesce(
    instructions: Sequence[Instruction], target: Target, fixed: frozenset[Variable]
) -> dict[Variable, Variable]:
    """Map variables to the variables whose registers they share, so that copies between them can be removed.

    Two variables can share registers if neither is written while the other is live, except by the copy itself. A
    result of dpas and its accumulator also share registers if possible.

    Args:
        fixed: variables that never share registers, such as inputs.
    """
    pairs = [(i["dst"].var, i["src0"].var) for i in instructions if i.name == COPY]
    pairs += _dpas_accumulators(instructions)
    tracked = {v: n for n, v in enumerate(dict.fromkeys(v for pair in pairs for v in pair))}
    if not tracked:
        return {}
    # For each variable: those that are live at a write of its registers, and those that share its registers.
    live = _live_at_writes(instructions, target, tracked)
    members = [1 << n for n in range(len(tracked))]
    merged: UnionFind[Variable] = UnionFind()
    for target_var, source in pairs:
        a, b = merged.find(target_var), merged.find(source)
        n, m = tracked[a], tracked[b]
        if a == b or {a, b} & fixed or live[n] & members[m] or live[m] & members[n]:
            continue
        merged.join((a, b))
        live[n] |= live[m]
        members[n] |= members[m]
    return {v: merged.find(v) for v in tracked if merged.find(v) != v}


def _dpas_accumulators(instructions: Sequence[Instruction]) -> list[tuple[Variable, Variable]]:
    """The results and accumulators of dpas: a chain of products needs only one set of registers if they share."""
    pairs = []
    for inst in instructions:
        if inst.name in ("dpas", "bdpas") and inst["src0"].var is not None:
            to, acc = inst["dst"], inst["src0"]
            plain = not (to.offset or acc.offset or to.var.alias or acc.var.alias)
            if plain and to.var != acc.var and (to.var.type, to.var.count) == (acc.var.type, acc.var.count):
                pairs.append((to.var, acc.var))
    return pairs


def _read_write_masks(inst: Instruction, target: Target, tracked: dict[Variable, int]) -> tuple[int, int, int]:
    """Bit masks of the variables that an instruction reads, writes, and writes completely."""
    reads = writes = whole = 0
    if inst.name == COPY:
        return 1 << tracked[inst["src0"].var], 1 << tracked[inst["dst"].var], 1 << tracked[inst["dst"].var]
    for access in accesses(inst, target):
        number = tracked.get(access.var)
        if number is None:
            continue
        if access.writes:
            writes |= 1 << number
            if access.whole and access.end - access.start >= access.var.bytes:
                whole |= 1 << number
        else:
            reads |= 1 << number
    return reads, writes, whole


def _first_writes(uses: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The same masks, with a variable's first write treated as a complete one.

    A value is written at its definition, possibly by several instructions, and no earlier contents are read.
    """
    written = 0
    masks = []
    for reads, writes, whole in uses:
        masks.append((reads, writes, whole | (writes & ~written)))
        written |= writes
    return masks


def _live_at_writes(instructions: Sequence[Instruction], target: Target, tracked: dict[Variable, int]) -> list[int]:
    """For each tracked variable, the bit mask of the variables that are live at one of its writes."""
    uses = _first_writes([_read_write_masks(i, target, tracked) for i in instructions])
    # Copies do not affect control flow.
    flow = ControlFlowGraph(
        Program("", instructions=tuple(_PLACEHOLDER if i.name == COPY else i for i in instructions))
    )
    live_in = [0] * len(flow.blocks)
    changed = True
    while changed:
        changed = False
        for n in reversed(range(len(flow.blocks))):
            live = 0
            for successor in flow.successors[n]:
                live |= live_in[successor]
            block = flow.blocks[n]
            for reads, _, whole in reversed(uses[block.start : block.stop]):
                live = (live & ~whole) | reads
            if live != live_in[n]:
                live_in[n] = live
                changed = True
    live_at_writes = [0] * len(tracked)
    for block, successors in zip(flow.blocks, flow.successors):
        live = 0
        for successor in successors:
            live |= live_in[successor]
        for at in reversed(block):
            reads, writes, whole = uses[at]
            inst = instructions[at]
            live_others = live & ~reads if inst.name == COPY else live
            for number in _bits(writes):
                live_at_writes[number] |= live_others | (writes & ~whole)
            live = (live & ~whole) | reads
    return live_at_writes


def _bits(mask: int) -> Iterator[int]:
    """The positions of the set bits."""
    while mask:
        at = mask.bit_length() - 1
        mask ^= 1 << at
        yield at


def expand(emit: Emitter, merged: dict[Variable, Variable]) -> None:
    """Remove copies within shared registers, and emit moves for the others."""
    instructions, emit.instructions = emit.instructions, []
    for inst in instructions:
        if inst.name != COPY:
            emit.instructions.append(inst)
            continue
        target_var, source = (merged.get(inst[n].var, inst[n].var) for n in ("dst", "src0"))
        if target_var != source:
            emit.where = inst.where
            emit.apply(
                "mov",
                target_var.type,
                target_var.count,
                Reg(source, 0, source.count),
                into=Reg(target_var, 0, target_var.count),
            )
