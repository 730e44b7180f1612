"""BDPAS: elements are widened to f64 and scaled once. Their products are exact in f64, and are added as by `fma`."""

from __future__ import annotations

from xegpu_py.engines.jit.code import PTR, Code, Value, vector
from xegpu_py.engines.jit.emitter import Emitter
from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.numbers import narrow
from xegpu_py.engines.jit.products import Extent, Shape, accumulator, widen_a, widen_b
from xegpu_py.engines.table import Table
from xegpu_py.numerics.block_scaled import BLOCK, COLUMNS, ROWS, SCALE_GROUP, scaled_depth
from xegpu_py.numerics.formats import TYPES
from xegpu_py.visa.program import Instruction

RULES = Table()
"""The rule of each instruction."""

_NAN64 = TYPES["df"].nan
_DOUBLE = 8
"""Bytes of an f64."""


@RULES.of("bdpas")
def bdpas(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Multiply and add block-scaled matrices."""
    masked = emitter.active is not None and not inst.no_mask
    if emitter.model != "fma" or masked:
        # These models and disabled lanes are rare.
        emitter.golden(at)
        return
    code, acc, depth = emitter.code, inst["src0"].var, scaled_depth(inst["W"], inst["A"])
    # A shape with several terms widens its matrices to f64.
    shape = Shape(
        inst["W"], inst["A"], depth, inst["SD"], ROWS, COLUMNS, inst["dst"].var.type, acc.type if acc else "", terms=2
    )
    a_bytes = ROWS * depth * _DOUBLE + Extent.BYTES
    scratch = emitter.scratch(a_bytes + depth * COLUMNS * _DOUBLE + Extent.BYTES)
    a, b = scratch, code.at(scratch, a_bytes)
    a_name, b_name = f"widen_scaled_a_{shape.A}", f"widen_scaled_b_{shape.W}"
    emitter.helper(a_name, lambda: widen_a(a_name, shape, ROWS * depth, emitter.host))
    emitter.helper(b_name, lambda: widen_b(b_name, shape, emitter.host))
    code.call(a_name, a, code.at(emitter.thread, emitter.place(inst["src2"])))
    code.call(b_name, b, code.at(emitter.thread, emitter.place(inst["src1"])))
    for name, slot, matrix, write in (("a", "src4", a, scale_a), ("b", "src3", b, scale_b)):
        if inst[slot].var is not None:
            function = f"scale_{name}_{depth}"
            emitter.helper(function, lambda f=function, w=write: w(f, depth, emitter.host))  # type: ignore[misc]
            code.call(function, matrix, code.at(emitter.thread, emitter.place(inst[slot])))
    function = f"multiply_scaled_{depth}_{shape.dst}_{shape.acc or 'none'}"
    emitter.helper(function, lambda: multiplier(function, shape, emitter.host))
    before = code.at(emitter.thread, emitter.place(inst["src0"]) if acc else 0)
    code.call(function, before, code.at(emitter.thread, emitter.place(inst["dst"])), a, b)


def _power(code: Code, scales: Value) -> Value:
    """Scales of E8M0, i8, as f64."""
    wide = code.resize(scales, 64, False)
    bits = code.shl(code.add(wide, code.const(1023 - 127, wide.type)), 52)
    nan = code.icmp("eq", wide, 0xFF)
    return code.cast("bitcast", code.select(nan, code.const(_NAN64, wide.type), bits), "f64")


def scale_a(name: str, depth: int, host: Host) -> str:
    """The function that multiplies A, rows of f64, with the scales of its rows."""
    code = host.function(name, [PTR, PTR])
    matrix, scales = code.arguments
    length = min(depth, BLOCK)
    lanes = min(host.lanes(_DOUBLE), length)
    for block in range(-(-depth // BLOCK)):
        powers = _power(code, code.load(code.at(scales, block * SCALE_GROUP), vector(ROWS, "i8")))
        for row in range(ROWS):
            factor = code.splat(code.extract(powers, row), lanes)
            for k in range(0, length, lanes):
                place = code.at(matrix, (row * depth + block * BLOCK + k) * _DOUBLE)
                code.store(code.bin("fmul", code.load(place, factor.type), factor), place)
    code.ret()
    return code.text()


def scale_b(name: str, depth: int, host: Host) -> str:
    """The function that multiplies B, rows of f64, with the scales of its columns."""
    code = host.function(name, [PTR, PTR])
    matrix, scales = code.arguments
    for block in range(-(-depth // BLOCK)):
        powers = _power(code, code.load(code.at(scales, block * SCALE_GROUP), vector(COLUMNS, "i8")))
        for k in range(min(depth, BLOCK)):
            place = code.at(matrix, (block * BLOCK + k) * COLUMNS * _DOUBLE)
            code.store(code.bin("fmul", code.load(place, powers.type), powers), place)
    code.ret()
    return code.text()


def multiplier(name: str, shape: Shape, host: Host) -> str:
    """The function that adds scaled products, each in increasing k with one rounding to f32.

    It takes pointers to accumulator, result, A and B. Products are exact in f64. Rounding a sum to f64 before it is
    rounded to f32 changes nothing: if the first rounding is inexact, one term has at most 24 bits and is at least 2^28
    times the other. The sum is then nearer to this term, which is an f32 number, than to any midpoint of two f32
    numbers, before and after the first rounding.
    """
    code = host.function(name, [PTR] * 4)
    acc, dst, a, b = code.arguments
    fmt, kind = TYPES[shape.dst], vector(COLUMNS, "f64")
    slots = [code.alloca(COLUMNS * 4, 64) for _ in range(ROWS)]
    for row, slot in enumerate(slots):
        code.store(accumulator(code, shape, acc, row, 0, COLUMNS), slot, 64)

    def step(k: Value) -> None:
        right = code.load(code.at(b, code.mul(k, code.const(COLUMNS * _DOUBLE, "i64"))), kind)
        left = code.at(a, code.mul(k, code.const(_DOUBLE, "i64")))
        for row, slot in enumerate(slots):
            one = code.splat(code.load(code.at(left, row * shape.depth * _DOUBLE), "f64"), COLUMNS)
            product = code.bin("fmul", one, right)
            before = code.cast("fpext", code.load(slot, vector(COLUMNS, "f32"), 64), "f64")
            wide = code.bin("fadd", product, before)
            code.store(code.cast("fptrunc", wide, "f32"), slot, 64)

    code.repeat(code.const(shape.depth, "i64"), step)
    for row, slot in enumerate(slots):
        pattern = narrow(code, code.load(slot, vector(COLUMNS, "f32"), 64), fmt)
        code.store(pattern, code.at(dst, row * COLUMNS * fmt.bytes))
    code.ret()
    return code.text()
