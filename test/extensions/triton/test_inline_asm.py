"""Instructions of PTX in inline assembly, against numpy by the rules of NVIDIA's "PTX ISA", section 9.7."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xegpu_py

N = 64

WORDS = np.array([0, 1, 2, 3, 7, 31, 32, 33, 63, 255, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x80000001])

FLOATS = np.array(
    [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.7, 1e-3, -1e10, 3e38, np.inf, -np.inf, np.nan, 255.5, -32768.5], np.float32
)


def pairs(values: np.ndarray, seed: int) -> np.ndarray:
    """Each value, and random ones, in a random order."""
    rng = np.random.default_rng(seed)
    bits = values.view(np.uint32) if values.dtype == np.float32 else values.astype(np.uint32)
    return rng.permutation(np.concatenate([np.tile(bits, 3), rng.integers(0, 1 << 32, N - 48).astype(np.uint32)]))


def results(statements: list[str], inputs: list[np.ndarray]) -> np.ndarray:
    """Run instructions, with the operands $1, $2 and $3, in one kernel: uint32[instruction, element]."""
    body = "\n".join(
        f'''
        %r{i} = tt.elementwise_inline_asm "{text}" {{constraints = "=r,r,r,r", packed_element = 1 : i32, pure = true}}
            %v0, %v1, %v2 : tensor<{N}xi32>, tensor<{N}xi32>, tensor<{N}xi32> -> tensor<{N}xi32>
        %at{i} = arith.constant dense<{i * N}> : tensor<{N}xi32>
        %o{i} = arith.addi %at{i}, %lane : tensor<{N}xi32>
        %w{i} = tt.addptr %to, %o{i} : tensor<{N}x!tt.ptr<i32>>, tensor<{N}xi32>
        tt.store %w{i}, %r{i} : tensor<{N}x!tt.ptr<i32>>'''
        for i, text in enumerate(statements)
    )
    loads = "\n".join(
        f"""
        %s{i} = tt.splat %in{i} : !tt.ptr<i32> -> tensor<{N}x!tt.ptr<i32>>
        %p{i} = tt.addptr %s{i}, %lane : tensor<{N}x!tt.ptr<i32>>, tensor<{N}xi32>
        %v{i} = tt.load %p{i} : tensor<{N}x!tt.ptr<i32>>"""
        for i in range(3)
    )
    text = f"""
    module {{ tt.func public @k(%in0: !tt.ptr<i32>, %in1: !tt.ptr<i32>, %in2: !tt.ptr<i32>, %out: !tt.ptr<i32>) {{
        %lane = tt.make_range {{end = {N} : i32, start = 0 : i32}} : tensor<{N}xi32>
        %to = tt.splat %out : !tt.ptr<i32> -> tensor<{N}x!tt.ptr<i32>>
        {loads}
        {body}
        tt.return
    }} }}"""
    out = np.zeros(len(statements) * N, np.int32)
    kernel = xegpu_py.compile(xegpu_py.parse(text), cache="off")
    kernel(*(v.view(np.int32) for v in inputs), out)
    return out.view(np.uint32).reshape(-1, N)


def signed(x: Any) -> Any:
    return x.view(np.int32).astype(np.int64)


def wide(x: Any) -> Any:
    return x.astype(np.int64)


def shifted_left(x: Any, by: Any) -> Any:
    return np.where(by > 31, 0, wide(x) << np.minimum(wide(by), 31))


def funnel(low: Any, high: Any) -> Any:
    return (high.astype(np.uint64) << np.uint64(32)) | low


def count_leading_zeros(x: Any) -> Any:
    return np.array([32 - int(v).bit_length() for v in x])


INTEGERS: dict[str, Callable[..., Any]] = {
    "mov.b32 $0, $1": lambda x, y, z: x,
    "mov.u32 $0, 0x10": lambda x, y, z: np.full_like(x, 16),
    "add.s32 $0, $1, $2": lambda x, y, z: wide(x) + y,
    "sub.u32 $0, $1, -1": lambda x, y, z: wide(x) + 1,
    "mul.lo.s32 $0, $1, $2": lambda x, y, z: x * y,
    "mul.hi.u32 $0, $1, $2": lambda x, y, z: x.astype(np.uint64) * y >> np.uint64(32),
    "mul.hi.s32 $0, $1, $2": lambda x, y, z: signed(x) * signed(y) >> 32,
    "mul.lo.u16 $0, $1, $2": lambda x, y, z: x * y & 0xFFFF,
    "mul.hi.u16 $0, $1, $2": lambda x, y, z: (x & 0xFFFF) * (y & 0xFFFF) >> 16,
    "mul.hi.s16 $0, $1, $2": lambda x, y, z: x.astype(np.int16).astype(np.int64) * y.astype(np.int16) >> 16,
    "mad.lo.s32 $0, $1, $2, $3": lambda x, y, z: x * y + z,
    "div.u32 $0, $1, 7": lambda x, y, z: x // 7,
    "div.s32 $0, $1, 7": lambda x, y, z: np.trunc(signed(x) / 7),
    "rem.u32 $0, $1, 7": lambda x, y, z: x % 7,
    "rem.s32 $0, $1, 7": lambda x, y, z: np.fmod(signed(x), 7),
    "min.s32 $0, $1, $2": lambda x, y, z: np.minimum(signed(x), signed(y)),
    "min.u32 $0, $1, $2": lambda x, y, z: np.minimum(x, y),
    "max.s32 $0, $1, $2": lambda x, y, z: np.maximum(signed(x), signed(y)),
    "max.u32 $0, $1, $2": lambda x, y, z: np.maximum(x, y),
    "and.b32 $0, $1, $2": lambda x, y, z: x & y,
    "or.b32 $0, $1, $2": lambda x, y, z: x | y,
    "xor.b32 $0, $1, $2": lambda x, y, z: x ^ y,
    "not.b32 $0, $1": lambda x, y, z: ~x,
    "neg.s32 $0, $1": lambda x, y, z: -wide(x),
    "abs.s32 $0, $1": lambda x, y, z: np.abs(signed(x)),
    "shl.b32 $0, $1, $2": lambda x, y, z: shifted_left(x, y),
    "shr.u32 $0, $1, $2": lambda x, y, z: wide(x) >> np.minimum(wide(y), 63),
    "shr.s32 $0, $1, $2": lambda x, y, z: signed(x) >> np.minimum(wide(y), 63),
    "shf.l.wrap.b32 $0, $1, $2, $3": lambda x, y, z: (
        funnel(x, y) << (z & np.uint32(31)).astype(np.uint64) >> np.uint64(32)
    ),
    "shf.r.wrap.b32 $0, $1, $2, $3": lambda x, y, z: funnel(x, y) >> (z & np.uint32(31)).astype(np.uint64),
    "popc.b32 $0, $1": lambda x, y, z: np.bitwise_count(x),
    "clz.b32 $0, $1": lambda x, y, z: count_leading_zeros(x),
    "cvt.u32.u8 $0, $1": lambda x, y, z: x & 0xFF,
    "cvt.s32.s8 $0, $1": lambda x, y, z: x.astype(np.int8),
    "cvt.s32.s16 $0, $1": lambda x, y, z: x.astype(np.int16),
    "cvt.u16.u32 $0, $1": lambda x, y, z: x & 0xFFFF,
    "cvt.rn.f32.s32 $0, $1": lambda x, y, z: signed(x).astype(np.float32).view(np.uint32),
    "cvt.rn.f32.u32 $0, $1": lambda x, y, z: x.astype(np.float32).view(np.uint32),
}


def integer_of(x: Any, rounded: Callable[[Any], Any], kind: Any) -> Any:
    """Numbers as integers: the nearest one of the type where they are too large, and 0 for NaN."""
    info = np.iinfo(kind)
    whole = np.nan_to_num(rounded(x.astype(np.float64)), nan=0.0, posinf=2.0**40, neginf=-(2.0**40))
    return np.clip(whole, info.min, info.max).astype(np.int64)


def bits(x: Any) -> Any:
    return np.asarray(x, np.float32).view(np.uint32)


def saturated(x: Any) -> Any:
    """Clamp numbers to 0 to 1; NaN and -0 give 0."""
    return bits(np.nan_to_num(np.clip(x, 0, 1)) + np.float32(0))


def truncated(x: Any) -> Any:
    """Numbers in f16, rounded toward zero: finite ones do not become infinite."""
    half = x.astype(np.float16)
    beyond = np.abs(half.astype(np.float32)) > np.abs(x)
    return (half.view(np.uint16) - beyond).astype(np.uint16).view(np.float16)


REALS: dict[str, Callable[..., Any]] = {
    "add.f32 $0, $1, $2": lambda x, y, z: bits(x + y),
    "add.rn.f32 $0, $1, 0f3F800000": lambda x, y, z: bits(x + np.float32(1)),
    "sub.f32 $0, $1, $2": lambda x, y, z: bits(x - y),
    "mul.rn.f32 $0, $1, $2": lambda x, y, z: bits(x * y),
    "div.rn.f32 $0, $1, $2": lambda x, y, z: bits(x / y),
    "min.f32 $0, $1, $2": lambda x, y, z: bits(np.fmin(x, y)),
    "max.f32 $0, $1, $2": lambda x, y, z: bits(np.fmax(x, y)),
    "neg.f32 $0, $1": lambda x, y, z: bits(-x),
    "abs.f32 $0, $1": lambda x, y, z: bits(np.abs(x)),
    "sqrt.rn.f32 $0, $1": lambda x, y, z: bits(np.sqrt(x)),
    "rcp.rn.f32 $0, $1": lambda x, y, z: bits(np.float32(1) / x),
    "cvt.rni.s32.f32 $0, $1": lambda x, y, z: integer_of(x, np.rint, np.int32),
    "cvt.rzi.s32.f32 $0, $1": lambda x, y, z: integer_of(x, np.trunc, np.int32),
    "cvt.rmi.s32.f32 $0, $1": lambda x, y, z: integer_of(x, np.floor, np.int32),
    "cvt.rpi.s32.f32 $0, $1": lambda x, y, z: integer_of(x, np.ceil, np.int32),
    "cvt.rzi.u32.f32 $0, $1": lambda x, y, z: integer_of(x, np.trunc, np.uint32),
    "cvt.rni.f32.f32 $0, $1": lambda x, y, z: bits(np.rint(x)),
    "cvt.rzi.f32.f32 $0, $1": lambda x, y, z: bits(np.trunc(x)),
    "cvt.rmi.f32.f32 $0, $1": lambda x, y, z: bits(np.floor(x)),
    "cvt.rpi.f32.f32 $0, $1": lambda x, y, z: bits(np.ceil(x)),
    "cvt.rn.f16.f32 $0, $1": lambda x, y, z: x.astype(np.float16).view(np.uint16),
    "cvt.rz.f16.f32 $0, $1": lambda x, y, z: truncated(x).view(np.uint16),
    "cvt.rz.bf16.f32 $0, $1": lambda x, y, z: np.where(np.isnan(x), 0x7FC0, x.view(np.uint32) >> 16),
    "cvt.f32.f16 $0, $1": lambda x, y, z: bits(x.view(np.uint32).astype(np.uint16).view(np.float16)),
    "cvt.rna.tf32.f32 $0, $1": lambda x, y, z: x.view(np.uint32) + np.uint32(0x1000) & np.uint32(0xFFFFE000),
    "fma.rn.f32 $0, $1, $2, 0f00000000": lambda x, y, z: bits(x * y + np.float32(0)),
    "rsqrt.approx.ftz.f32 $0, 0f40800000": lambda x, y, z: bits(np.full_like(x, 0.5)),
    "add.sat.f32 $0, $1, $2": lambda x, y, z: saturated(x + y),
    "mul.sat.f32 $0, $1, $2": lambda x, y, z: saturated(x * y),
    "cvt.sat.f32.f32 $0, $1": lambda x, y, z: saturated(x),
}


def check(table: dict[str, Callable[..., Any]], inputs: list[np.ndarray], as_inputs: Callable[[Any], Any]) -> None:
    got = results([f"{text};" for text in table], inputs)
    wrong = {}
    with np.errstate(all="ignore"):
        for (text, function), row in zip(table.items(), got):
            expected = np.asarray(function(*map(as_inputs, inputs)))
            expected = (
                expected.astype(np.int64).astype(np.uint32)
                if expected.dtype != np.uint64
                else expected.astype(np.uint32)
            )
            both_nan = np.isnan(row.view(np.float32)) & np.isnan(expected.view(np.float32)) & (".f32 " in text)
            if (differs := np.flatnonzero((row != expected) & ~both_nan)).size:
                at = differs[0]
                wrong[text] = [f"{int(v[at]):#x}" for v in (*inputs, row, expected)]
    assert not wrong


def test_instructions_on_integers() -> None:
    check(INTEGERS, [pairs(WORDS, seed) for seed in range(3)], lambda v: v)


def test_instructions_on_floats() -> None:
    check(REALS, [pairs(FLOATS, seed) for seed in range(3)], lambda v: v.view(np.float32))


@pytest.mark.parametrize(
    "text",
    [
        "add.rz.f32 $0, $1, $2", "add.rni.f32 $0, $1, $2", "add.sat.s32 $0, $1, $2", "cvt.sat.u8.s32 $0, $1",
        "cvt.rni.f16.f32 $0, $1", "cvt.s32.f32 $0, $1", "cvt.rz.f32.s32 $0, $1",
        "cvt.rn.f32 $0, $1", "mul.hi.u64 $0, $1, $2", "mul.wide.u32 $0, $1, $2", "mad.hi.s32 $0, $1, $2, $3",
        "shf.l.clamp.b32 $0, $1, $2, $3", "min.NaN.f32 $0, $1, $2", "min.u16x2 $0, $1, $2", "add.f32 $0, $1",
        "not.b32 $0, $1, $2", "mov.b32 $0", "mov.b64 {$0, $1}, $2", "mov.b64 $0, {$1, $2}",
    ],
)  # fmt: skip
def test_other_instructions_are_refused(text: str) -> None:
    words = r"has the instruction '.*(of PTX, which is not|operands are not) known"
    with pytest.raises(xegpu_py.DiagnosticError, match=words):
        results([f"{{ {text}; }}"], [pairs(WORDS, 0)] * 3)
