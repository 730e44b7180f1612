"""Products of matrices, of the table of instructions."""

from __future__ import annotations

import numpy as np

from xegpu_py.numerics.block_scaled import (
    COLUMNS,
    ROWS,
    SCALE_GROUP,
    SCALED_PRECISIONS,
    scale_bytes,
    scaled_types_problem,
)
from xegpu_py.numerics.dpas import operand_bytes, types_problem
from xegpu_py.numerics.formats import PRECISIONS, Array
from xegpu_py.target import Target
from xegpu_py.visa.operands import Raw, Variable, align_bytes, first_byte
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import Choice, InstructionSpec, Number, OperandKind, OperandSpec, Problem, Use


def _matrix(name: str, kind: OperandKind, which: int, types: tuple[str, ...]) -> OperandSpec:
    """B in src1, or A in src2."""

    def size(inst: Instruction, target: Target) -> int:
        return operand_bytes(inst["W"], inst["A"], inst["SD"], inst["RC"], inst.exec_size)[which]

    return OperandSpec(name, kind, types=types, bytes=size)


def _accumulator(name: str, use: Use, types: tuple[str, ...]) -> OperandSpec:
    """The result or the accumulator; each lane holds one column."""

    def size(inst: Instruction, target: Target) -> int:
        return int(inst["RC"] * inst.exec_size * inst[name].var.format.bytes)

    def columns(inst: Instruction, target: Target) -> Array:
        rows = np.arange(size(inst, target)).reshape(inst["RC"], inst.exec_size, -1)
        found: Array = rows.transpose(1, 0, 2).reshape(inst.exec_size, -1)
        return found

    return OperandSpec(name, "raw", use, types, null=use == "read", bytes=size, lane_bytes=columns)


def _check_dpas(inst: Instruction, target: Target) -> Problem:
    w, a = inst["W"], inst["A"]
    for precision in (w, a):
        if precision not in target.dpas_precisions:
            known = ", ".join(target.dpas_precisions)
            return (f"target '{target.name}' does not support precision {precision}", f"it supports {known}")
    if inst["SD"] not in target.dpas_depths:
        depths = ", ".join(map(str, target.dpas_depths))
        return (f"target '{target.name}' supports systolic depth {depths}, but got {inst['SD']}",)
    if inst.exec_size not in target.dpas_exec_sizes:
        sizes = " and ".join(map(str, target.dpas_exec_sizes))
        return (f"target '{target.name}' supports execution size {sizes}, but got {inst.exec_size}",)
    dst, acc = inst["dst"].var.type, inst["src0"].var
    problem = types_problem(w, a, dst, acc.type if acc else dst)
    if problem:
        return (problem, "DPAS.md, legal combinations of types and precisions")
    if not target.dpas_half_accumulators and {dst, acc.type if acc else dst} & {"bf", "hf"}:
        return (f"target '{target.name}' supports only f accumulators for {w}",)
    for name in ("src1", "src2"):
        if (inst[name].var.type == "df") != (w == "df"):
            return (f"{name} of precision {w} must be of type {'df' if w == 'df' else 'd or ud'}",)
    for name in ("dst", "src0", "src1"):
        raw: Raw = inst[name]
        if raw.offset % target.grf_bytes:
            return (f"{name} must begin at a register, but is {raw.offset} bytes behind one", "DPAS.md, alignment")
    row = operand_bytes(w, a, inst["SD"], 1, inst.exec_size)[1]
    alignment = max(row, 4) if PRECISIONS[a].bits < 64 else target.grf_bytes
    start = first_byte(inst["src2"], target.grf_bytes)
    if start % alignment:
        return (f"src2 must begin at a multiple of {alignment} bytes, but is at {start}", "DPAS.md, alignment")
    return None


_DPAS = InstructionSpec(
    "dpas",
    "Multiplies matrix A in `src2` by B in `src1` and adds the accumulator `src0`.",
    "dpas.{W}.{A}.{SD}.{RC} {exec} {dst} {src0} {src1} {src2}",
    (
        _accumulator("dst", "write", ("d", "ud", "f", "bf", "hf", "df")),
        _accumulator("src0", "read", ("d", "ud", "f", "bf", "hf", "df")),
        _matrix("src1", "raw", 0, ("d", "ud", "df")),
        _matrix("src2", "vector", 1, ("d", "ud", "df")),
    ),
    {
        "W": Choice(tuple(PRECISIONS)),
        "A": Choice(tuple(PRECISIONS)),
        "SD": Number((1, 2, 4, 8)),
        "RC": Number(tuple(range(1, 9))),
    },
    category="dpas",
    exec_sizes=(8, 16),
    all_lanes=True,
    check=_check_dpas,
    source="DPAS.md",
)


def _scales(name: str, which: int) -> OperandSpec:
    """The scales of B in src3, or of A in src4. Bytes between the scales of two blocks are not read."""

    def size(inst: Instruction, target: Target) -> int:
        return scale_bytes(inst["W"], inst["A"])[which]

    def blocks(inst: Instruction, target: Target) -> Array:
        places = np.arange(0, size(inst, target), SCALE_GROUP)[:, None] + np.arange((COLUMNS, ROWS)[which])
        return places.reshape(1, -1)

    return OperandSpec(name, "vector", types=("ub",), null=True, bytes=size, lane_bytes=blocks)


def _check_bdpas(inst: Instruction, target: Target) -> Problem:
    w, a, dst, acc = inst["W"], inst["A"], inst["dst"].var.type, inst["src0"].var
    problem = scaled_types_problem(w, a, dst, acc.type if acc else dst)
    if problem:
        return (problem, "both factors must be bf, hf or e2m1, or 8-bit floats (bf8, hf8)")
    for name, granule in (("src3", 16), ("src4", 8)):
        var = inst[name].var
        if not isinstance(var, Variable):
            continue
        root, offset = var.root
        place = (offset + first_byte(inst[name], target.grf_bytes)) % target.grf_bytes
        # The scales of the second block of e2m1 are in the second half of the register.
        limit = target.grf_bytes // 2 if w == "e2m1" else target.grf_bytes
        if place % granule or place >= limit:
            places = ", ".join(map(str, range(0, limit, granule)))
            return (f"{name} must begin at byte {places} of a register, not at {place}",)
        need = target.grf_bytes if w == "e2m1" else granule
        if align_bytes(root.align, target.grf_bytes) < need:
            return (f"{name} must be in a variable aligned to {need} bytes", "declare it with align=GRF")
    return None


_BDPAS = InstructionSpec(
    "bdpas",
    "Multiplies matrix A in `src2` with scales `src4` by B in `src1` with scales `src3`, and adds `src0`; "
    "32 elements of K share a scale, and null scales are ones.",
    "bdpas.{W}.{A}.{SD}.{RC} {exec} {dst} {src0} {src1} {src2} {src3} {src4}",
    (
        _accumulator("dst", "write", ("f", "bf", "hf")),
        _accumulator("src0", "read", ("f", "bf", "hf")),
        _matrix("src1", "raw", 0, ("ud", "bf", "hf")),
        _matrix("src2", "raw", 1, ("ud", "bf", "hf")),
        _scales("src3", 0),
        _scales("src4", 1),
    ),
    {"W": Choice(SCALED_PRECISIONS), "A": Choice(SCALED_PRECISIONS), "SD": Number((8,)), "RC": Number((8,))},
    category="dpas",
    exec_sizes=(16,),
    all_lanes=True,
    check=_check_bdpas,
    source="Intel Graphics Compiler, visa/",
)

MATRIX = (_DPAS, _BDPAS)
