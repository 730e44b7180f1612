"""The rules of a program: those of each instruction's declaration, of regions and registers, and of the kernel."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from xegpu_py.ir.diagnostics import Diagnostic, Position
from xegpu_py.numerics.formats import TYPES
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import callees
from xegpu_py.visa.fp_modes import Unknown, with_modes
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.legacy_messages import expand_legacy
from xegpu_py.visa.messages import address_lanes, holds_payload
from xegpu_py.visa.operands import (
    BUILTINS,
    CHANGEABLE,
    HORIZONTAL_STRIDES,
    VERTICAL_STRIDES,
    WIDTHS,
    Address,
    AddressOf,
    Destination,
    Flag,
    Immediate,
    Indirect,
    Operand,
    Predicate,
    Raw,
    Region,
    Variable,
    Vector,
    align_bytes,
    first_byte,
)
from xegpu_py.visa.program import Instruction, Program, pickled_analysis
from xegpu_py.visa.spec import LANES, OperandSpec, Problem

_STRIDES = (1, 2, 4)

_WORDS = """
    arg call fret switchjmp fbl fbh bfe bfi bfrev rol ror movs addr_add pow frc lrp dp4a sqrtm divm line wait
    yield sample avs media_ld oword_ld gather scatter raw_send sampler_cache_flush asin acos
    atan plane dp2 dp3 dp4 dph mod addc subb avg sad2 sad2add madw add3 ifcall fcall faddr vme_ime flat bss ss bti
"""

_TAKEN = frozenset(
    [
        *(name for name, spec in INSTRUCTIONS.items() if name.replace("_", "").isalnum() and not spec.is_label),
        *_WORDS.split(),
        *(f"V{n}" for n in range(22)),
        *("T1", "T2", "S31"),
    ]
)
"""Names that Intel's finalizer keeps: words of its syntax, and variables of its own."""

_KEEPS = "the name is reserved by Intel's finalizer"

_NUMBERS = ("SimdSize", "SLMSize", "NBarrierCnt")
"""Kernel attributes that are numbers."""


class Issue(Struct, frozen=True):
    """A broken rule: its location, message and notes. `instruction` is None if the rule concerns the whole kernel."""

    where: Position
    message: str
    notes: tuple[str, ...] = ()
    instruction: Instruction | None = None

    def diagnostic(self) -> Diagnostic:
        """The issue as an error."""
        name = f"'{self.instruction.name}' " if self.instruction else ""
        notes = tuple(Diagnostic("note", n, self.where) for n in self.notes)
        return Diagnostic("error", f"{name}{self.message}", self.where, notes)


def misaligned_payloads(program: Program, target: Target) -> list[Issue]:
    """The messages whose addresses native code reads from other registers than the engines; see `holds_payload`."""
    messages = []
    for inst in program.instructions:
        address = inst.values.get("address")
        if isinstance(address, Address) and not holds_payload(address, inst, target):
            lanes = address_lanes(inst, target)
            message = f"operand 'address' must begin at a register, in a variable with space for {lanes} lanes"
            rule = "the finalizer neither moves nor pads addresses, and hardware reads whole registers"
            messages.append(Issue(inst.where, message, (rule,), inst))
    return messages


@pickled_analysis
def verify(program: Program, target: Target) -> list[Issue]:
    """The rules that a program breaks on a target, in order; an empty list if none."""
    issues = list(_attributes(program))
    if issues:
        return issues
    issues = list(_declarations(program, target))
    for inst in program.instructions:
        problem = instruction_problem(inst, target)
        spec = INSTRUCTIONS[inst.name]
        for label in spec.targets(inst) if problem is None else ():
            if label not in program.labels:
                problem = (f"jumps to undefined label '{label}'",)
        if problem is None and spec.calls:
            unknown = [name for name in callees(inst, program) if name not in program.labels]
            if unknown:
                problem = (f"calls '{unknown[0]}', which the program does not have", "link the function's text")
        if problem is None and spec.named_barrier:
            problem = _named_barrier(inst, program)
        if problem:
            issues.append(Issue(inst.where, problem[0], problem[1:], inst))
    if not issues:
        try:
            with_modes(executed := expand_legacy(program, target), target, False)
        except Unknown as unknown:
            inst = executed.instructions[unknown.args[0]]
            message = "has modes in %cr0 that depend on the run"
            rule = "change it by and, or or xor (M1_NM, 1) with a constant, and back within the block"
            issues.append(Issue(inst.where, message, (rule,), inst))
    labels: set[str] = set()
    for inst in program.instructions:
        if INSTRUCTIONS[inst.name].is_label:
            name = inst["label"]
            if name in labels:
                issues.append(Issue(inst.where, f"redefinition of label '{name}'", (), inst))
            if name in _TAKEN:
                issues.append(Issue(inst.where, f"'{name}' cannot have this name", (_KEEPS,), inst))
            labels.add(name)
    if not issues and not _ends(program):
        where = program.instructions[-1].where if program.instructions else program.where
        issues.append(Issue(where, f"kernel '{program.name}' does not end with 'ret'", ("end it with 'ret (M1, 1)'",)))
    return issues


def _ends(program: Program) -> bool:
    """Whether the last instruction ends lanes or jumps. IGC leaves labels behind it, to which nothing jumps."""
    count = len(program.instructions)
    while count and INSTRUCTIONS[program.instructions[count - 1].name].is_label:
        count -= 1
    if not count:
        return False
    last_inst = program.instructions[count - 1]
    later_labels = {inst["label"] for inst in program.instructions[count:]}
    jumps = {label for inst in program.instructions[:count] for label in INSTRUCTIONS[inst.name].targets(inst)}
    spec = INSTRUCTIONS[last_inst.name]
    return (spec.ends or (spec.goes_together(last_inst) and last_inst.guard is None)) and not later_labels & jumps


def _attributes(program: Program) -> Iterator[Issue]:
    for name in _NUMBERS:
        value = program.attributes.get(name, 0)
        if not isinstance(value, int) or value < 0:
            yield Issue(program.where, f"kernel attribute {name} must be a number, but got {value!r}")


def _named_barrier(inst: Instruction, program: Program) -> Problem:
    declared = int(program.attributes.get("NBarrierCnt", 0))
    number = inst["id"]
    if not declared:
        return ("requires the kernel attribute NBarrierCnt, the number of named barriers",)
    if isinstance(number, Immediate) and number.bits >= declared:
        return (f"uses named barrier {number.bits}, but the kernel allocates {declared}", "set NBarrierCnt")
    return None


def _declarations(program: Program, target: Target) -> Iterator[Issue]:
    names: set[str] = set()
    declared: list[Variable | Predicate] = [*program.variables, *program.predicates]
    for var in declared:
        where = program.declared.get(var.name, program.where)
        if var.name in names:
            yield Issue(where, f"redefinition of variable '{var.name}'")
        names.add(var.name)
        if var.name in _TAKEN:
            yield Issue(where, f"variable '{var.name}' cannot have this name", (_KEEPS,))
        problem = variable_problem(var, target) if isinstance(var, Variable) else None
        if problem:
            yield Issue(where, problem[0], problem[1:])
    input_ranges: list[tuple[int, int, str]] = []
    for item in program.inputs:
        subject = f"input '{item.var.name}'"
        if item.size != item.var.bytes:
            yield Issue(item.where, f"{subject} has {item.size} bytes, but its variable has {item.var.bytes}")
        if item.offset % item.var.format.bytes:
            yield Issue(item.where, f"{subject} is at {item.offset}, which is not a multiple of its element's size")
        if item.offset < 32:
            yield Issue(item.where, f"{subject} is at {item.offset}, in the thread's header", ("it has 32 bytes",))
        required_size = 12 if item.kind else item.size
        if item.size != required_size:
            yield Issue(item.where, f"{subject} of kind {item.kind} must have {required_size} bytes")
        for input_start, input_end, other_name in input_ranges:
            if item.offset < input_end and input_start < item.offset + item.size:
                yield Issue(item.where, f"{subject} overlaps input '{other_name}'")
        input_ranges.append((item.offset, item.offset + item.size, item.var.name))
    if program.simd_size not in (8, 16, 32):
        yield Issue(program.where, f"kernel attribute SimdSize must be 8, 16 or 32, but got {program.simd_size}")
    if program.slm_bytes > target.slm_bytes:
        limit = target.slm_bytes >> 10
        yield Issue(program.where, f"SLMSize is {program.slm_bytes >> 10} KiB, but {target.name} has {limit} KiB")
    barriers = int(program.attributes.get("NBarrierCnt", 0))
    if barriers > target.named_barriers:
        yield Issue(program.where, f"NBarrierCnt is {barriers}, but {target.name} has {target.named_barriers}")


def variable_problem(var: Variable, target: Target) -> Problem:
    """Why a declaration is not legal; None if it is."""
    if var.count < 1:
        return (f"variable '{var.name}' has no elements",)
    limit = target.grf_counts[-1] * target.grf_bytes
    if var.bytes > limit and var.alias is None:
        text = f"variable '{var.name}' has {var.bytes} bytes, but a thread has {limit}"
        return (text, "make it smaller; kernels of tiles need smaller tiles, or more subgroups")
    if var.alias is None:
        return None
    base, offset = var.alias
    if offset < 0 or offset + var.bytes > base.bytes:
        return (
            f"alias '{var.name}' reaches from byte {offset} to {offset + var.bytes}, but '{base.name}' has "
            f"{base.bytes} bytes",
        )
    if var.root[1] % var.format.bytes:
        where = f"byte {var.root[1]}, which is not a multiple of its element's size"
        return (f"alias '{var.name}' of type {var.type} is at {where}",)
    base_align = align_bytes(var.root[0].align, target.grf_bytes)
    required_align = align_bytes(var.align, target.grf_bytes)
    if required_align > base_align or var.root[1] % required_align:
        return (
            f"alias '{var.name}' is aligned to {var.align}, but lies at byte {var.root[1]} of '{var.root[0].name}', "
            f"which is aligned to {var.root[0].align}",
        )
    return None


def instruction_problem(inst: Instruction, target: Target) -> Problem:
    """Why an instruction is not legal on a target; None if it is. Rules that depend on the kernel are not checked."""
    # Instructions are immutable. The result is kept, because the verifier of the program checks the instruction again.
    if inst.known.get("legal on") is target:
        return None
    problem = _instruction_problem(inst, target)
    if problem is None:
        inst.known["legal on"] = target
    return problem


def _instruction_problem(inst: Instruction, target: Target) -> Problem:
    spec = INSTRUCTIONS[inst.name]
    if inst.name in target.absent:
        return (f"is not supported on target '{target.name}'",)
    if spec.exec_sizes and inst.exec_size not in spec.exec_sizes:
        return (f"has execution size {', '.join(map(str, spec.exec_sizes))}, not {inst.exec_size}",)
    if inst.first_lane + inst.exec_size > LANES:
        return (f"of execution size {inst.exec_size} and mask {inst.mask} reaches over lane {LANES - 1}",)
    if inst.exec_size > 4 and inst.first_lane % inst.exec_size:
        masks = ", ".join(f"M{1 + i // 4}" for i in range(0, LANES, inst.exec_size))
        return (f"of execution size {inst.exec_size} has the mask {masks}, not {inst.mask}",)
    for slot in spec.slots:
        if problem := _type_problem(slot, inst):
            return problem
    if problem := spec.check(inst, target):
        return problem
    for slot in spec.slots:
        if problem := _reach_problem(slot, inst, target):
            return problem
    guard = inst.guard
    if guard is not None:
        if not isinstance(guard.var, Predicate):
            return (f"is predicated by '{guard.var.name}', which is not a predicate",)
        if not guard.control and not spec.goes_together(inst) and (problem := _bits_problem(guard.var, inst)):
            return problem
    if spec.selects and guard is None:
        return ("needs a predicate",)
    if spec.no_mask_only(inst) and not inst.no_mask:
        return ("must use NoMask", f"write ({inst.mask}_NM, {inst.exec_size}); {spec.source}")
    return None


def _type_problem(slot: OperandSpec, inst: Instruction) -> Problem:
    value: Operand = inst[slot.name]
    # To ask `isinstance` of records takes seven times as long.
    if type(value) is Immediate:
        if slot.types and value.format.name not in slot.types:
            return (f"operand '{slot.name}' must be of type {_words(slot.types)}, but got {value.type}",)
        unpacked = inst.name in ("add3", "setp") or (value.type == "vf" and inst.name not in ("mov", "sel"))
        if value.is_packed and unpacked:
            return (f"operand '{slot.name}' cannot be a packed constant of type {value.type}", "IGC 2.40")
        if value.type == "bf":
            return (f"operand '{slot.name}' cannot be a constant of bf", "use one of f")
        return None
    if type(value) is Flag:
        if type(value.var) is not Predicate:
            return (f"operand '{slot.name}' is '{value.var.name}', which is not a predicate",)
        return None if slot.all_bits else _bits_problem(value.var, inst)
    if value.var is None:
        return None
    if type(value.var) is not Variable:
        return (f"operand '{slot.name}' is the predicate '{value.var.name}', but must be a general variable",)
    root = value.var.root[0]
    if slot.use == "write" and root.name not in CHANGEABLE and root is BUILTINS.get(root.name):
        return (f"writes {value.var.name}, which can only be read",)
    if type(value) is AddressOf:
        return None
    if value.var.kind == "A" and type(value) is not Indirect:
        if slot.addresses:
            return None
        return (f"operand '{slot.name}' is the address variable '{value.var.name}', but must be a general variable",)
    operand_type = value.type if type(value) is Indirect else value.var.type
    if slot.types and operand_type not in slot.types:
        return (f"operand '{slot.name}' must be of type {_words(slot.types)}, but got {operand_type}",)
    return None


def _reach_problem(slot: OperandSpec, inst: Instruction, target: Target) -> Problem:
    value: Operand = inst[slot.name]
    if type(value) is Immediate or type(value) is Flag or value.var is None:
        return None
    if type(value) is AddressOf:
        return _bounds_problem(slot, value.var, value.offset)
    if type(value) is Indirect:
        if not value.bases:
            return (f"operand '{slot.name}' is at addresses in '{value.var.name}', which get no variable's place",)
        return _bounds_problem(slot, value.var, 4 * (value.col + value.addresses(inst.exec_size)))
    if type(value) is Destination and value.stride != 1 and value.var.type == "df" and inst.name != "mov":
        return (f"operand '{slot.name}' of f64 must be packed", "Intel's finalizer fails on others")
    if type(value) is Region or type(value) is Destination:
        return _region_problem(slot, value, 1 if slot.kind == "scalar" else inst.exec_size, target)
    return _extent_problem(slot, value, inst, target)


def _bits_problem(predicate: Predicate, inst: Instruction) -> Problem:
    """A predicate has a bit for each of the instruction's lanes, which are those of the thread."""
    lanes = inst.first_lane + inst.exec_size
    if predicate.count < lanes:
        return (f"reaches lane {lanes - 1}, but the predicate '{predicate.name}' has {predicate.count} bits",)
    return None


def _region_problem(slot: OperandSpec, value: Region | Destination, lanes: int, target: Target) -> Problem:
    if type(value) is Region:
        if value.modifier and value.modifier not in slot.modifiers:
            return (f"operand '{slot.name}' cannot have the modifier ({value.modifier})",)
        if value.modifier in ("~",) and TYPES[value.var.type].is_float:
            return (f"operand '{slot.name}' of type {value.var.type} cannot have the modifier (~)",)
        if not (value.vstride in VERTICAL_STRIDES and value.width in WIDTHS and value.hstride in HORIZONTAL_STRIDES):
            return _stride_problem(slot, value)
    elif value.stride not in _STRIDES:
        return (f"operand '{slot.name}' has stride {value.stride}; it can be 1, 2 or 4",)
    elif value.stride == 4 and value.var.format.bits == 64 and lanes > 1:
        return (
            f"operand '{slot.name}' of 64 bits has stride 4; it can be 1 or 2",
            "Intel's finalizers crash on others",
        )
    size = value.var.format.bytes
    start = first_byte(value, target.grf_bytes)
    last_byte = start + (value.reach(lanes)[0] + 1) * size
    if value.col * size >= target.grf_bytes:
        return (
            f"operand '{slot.name}' begins at element {value.col} of a register, which has {target.grf_bytes // size}",
        )
    return _bounds_problem(slot, value.var, last_byte)


def _stride_problem(slot: OperandSpec, value: Region) -> Problem:
    for field, stride, legal in (
        ("vertical stride", value.vstride, VERTICAL_STRIDES),
        ("width", value.width, WIDTHS),
        ("horizontal stride", value.hstride, HORIZONTAL_STRIDES),
    ):
        if stride not in legal:
            return (f"operand '{slot.name}' has {field} {stride}; it can be {_words(tuple(map(str, legal)))}",)
    return None


def _bounds_problem(slot: OperandSpec, var: Variable, last_byte: int) -> Problem:
    if last_byte > var.bytes:
        return (f"operand '{slot.name}' reaches to byte {last_byte} of '{var.name}', which has {var.bytes}",)
    return None


def _extent_problem(slot: OperandSpec, value: Raw | Vector | Address, inst: Instruction, target: Target) -> Problem:
    assert slot.bytes
    size, start = slot.bytes(inst, target), first_byte(value, target.grf_bytes)
    if type(value) is not Vector:
        if slot.kind == "raw" and start % target.grf_bytes:
            return (f"operand '{slot.name}' must begin at a register, but is at byte {start}",)
        element = 8 if slot.kind == "address" and inst["address_size"] == "a64" else 4
        if start % element:
            return (f"operand '{slot.name}' is at byte {start}, which is not a multiple of {element}",)
    covers_registers = slot.kind == "raw" or (slot.kind == "address" and size > 8)
    if covers_registers and align_bytes(value.var.root[0].align, target.grf_bytes) < target.grf_bytes:
        return (
            f"operand '{slot.name}' must begin at a register, but '{value.var.name}' is aligned to "
            f"{value.var.root[0].align}",
            "declare it with align=GRF",
        )
    if covers_registers and (value.var.root[1] + start) % target.grf_bytes:
        return (f"operand '{slot.name}' must begin at a register, but '{value.var.name}' is an alias at another byte",)
    return _bounds_problem(slot, value.var, start + size)


def _words(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
