"""Instructions of PTX in inline assembly, against numpy by the rules of NVIDIA's "PTX ISA", section 9.7."""

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
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


def each(function: Callable[..., int]) -> Callable[..., Any]:
    """A function of Python's integers without sign on arrays."""
    return lambda x, y, z: np.array([function(*map(int, row)) % 2**32 for row in zip(x, y, z)], np.uint64)


def of_sign(n: int, width: int = 32) -> int:
    return n - (n >> width - 1 << width)


def field(x: int, position: int, length: int, is_signed: bool) -> int:
    """The pseudocode of `bfe`."""
    position, length = position & 255, length & 255
    sign = x >> min(position + length - 1, 31) & 1 if is_signed and length else 0
    return sum((x >> position + i & 1 if i < length and position + i <= 31 else sign) << i for i in range(32))


def inserted(x: int, y: int, position: int, length: int) -> int:
    """The pseudocode of `bfi`."""
    position, length = position & 255, length & 255
    for i in range(length):
        if position + i <= 31:
            y = y & ~(1 << position + i) | (x >> i & 1 if i < 32 else 0) << position + i
    return y


def permuted(x: int, y: int, selector: int) -> int:
    data, result = x | y << 32, 0
    for n in range(4):
        byte = data >> 8 * (selector >> 4 * n & 7) & 255
        result |= (255 * (byte >> 7) if selector >> 4 * n & 8 else byte) << 8 * n
    return result


def logical(table: int) -> Callable[..., Any]:
    return each(
        lambda x, y, z: sum((table >> (x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1) & 1) << i for i in range(32))
    )


def dot(x: int, y: int, z: int, signs: tuple[bool, bool]) -> int:
    parts = [[v >> 8 * n & 255 for n in range(4)] for v in (x, y)]
    values = [[of_sign(v, 8) if sign else v for v in part] for part, sign in zip(parts, signs)]
    return z + sum(a * b for a, b in zip(*values))


def highest(x: int) -> int:
    return x.bit_length() - 1


INTEGERS: dict[str, Callable[..., Any]] = {
    **{
        f"lop3.b32 $0, $1, $2, $3, {table:#x}": logical(table)
        for table in (0, 0xFF, 0x96, 0xE8, 0xEA, 0xCA, 0x1D, 0x6B)
    },
    "prmt.b32 $0, $1, $2, $3": each(permuted),
    "prmt.b32 $0, $1, $2, 0x9F40": each(lambda x, y, z: permuted(x, y, 0x9F40)),
    "bfe.u32 $0, $1, $2, $3": each(lambda x, y, z: field(x, y, z, False)),
    "bfe.s32 $0, $1, $2, $3": each(lambda x, y, z: field(x, y, z, True)),
    "bfe.s32 $0, $1, 4, 8": each(lambda x, y, z: field(x, 4, 8, True)),
    "bfi.b32 $0, $1, $2, $3, 7": each(lambda x, y, z: inserted(x, y, z, 7)),
    "bfi.b32 $0, $1, $2, 3, $3": each(lambda x, y, z: inserted(x, y, 3, z)),
    "brev.b32 $0, $1": each(lambda x, y, z: int(f"{x:032b}"[::-1], 2)),
    "bfind.u32 $0, $1": each(lambda x, y, z: highest(x)),
    "bfind.s32 $0, $1": each(lambda x, y, z: highest(~of_sign(x) if x >> 31 else x)),
    **{
        f"dp4a.{a}32.{b}32 $0, $1, $2, $3": each(lambda x, y, z, s=(a == "s", b == "s"): dot(x, y, z, s))
        for a in "us"
        for b in "us"
    },
    "mad.hi.s32 $0, $1, $2, $3": each(lambda x, y, z: (of_sign(x) * of_sign(y) >> 32) + z),
    **{
        f".reg .b64 a; cvt.s64.s32 a, $1; add.s64 a, a, {n}; mov.b64 {{_, $0}}, a": each(
            lambda x, y, z, n=n: of_sign(x, 32) + n >> 32
        )
        for n in (-5, -(1 << 31), -(1 << 31) - 1, (1 << 32) - 1, 1 << 32, -(1 << 63), (1 << 64) - 1)
    },
    "mul.wide.u16 $0, $1, $2": each(lambda x, y, z: (x & 0xFFFF) * (y & 0xFFFF)),
    "mul.wide.s16 $0, $1, $2": each(lambda x, y, z: of_sign(x & 0xFFFF, 16) * of_sign(y & 0xFFFF, 16)),
    "mad.wide.u16 $0, $1, $2, $3": each(lambda x, y, z: (x & 0xFFFF) * (y & 0xFFFF) + z),
    ".reg .b64 w; mul.wide.u32 w, $1, $2; shr.u64 w, w, 32; cvt.u32.u64 $0, w": each(lambda x, y, z: x * y >> 32),
    ".reg .b64 w; mul.wide.s32 w, $1, $2; mul.hi.s64 w, w, w; cvt.u32.u64 $0, w": each(
        lambda x, y, z: (of_sign(x) * of_sign(y)) ** 2 >> 64
    ),
    ".reg .b64 w; mov.b64 w, {$1, $2}; mul.hi.u64 w, w, w; cvt.u32.u64 $0, w": each(
        lambda x, y, z: (x | y << 32) ** 2 >> 64
    ),
    ".reg .b32 a, b; { mov.b64 {a, b}, 0x123456789ABCDEF0; xor.b32 $0, a, b; }": each(
        lambda x, y, z: 0x12345678 ^ 0x9ABCDEF0
    ),
    ".reg .b16 a, b; mov.b32 {a, b}, $1; mov.b32 $0, {b, a}": each(lambda x, y, z: x >> 16 | x << 16),
    "shf.l.clamp.b32 $0, $1, $2, $3": each(lambda x, y, z: (x | y << 32) << min(z, 32) >> 32),
    "shf.r.clamp.b32 $0, $1, $2, $3": each(lambda x, y, z: (x | y << 32) >> min(z, 32)),
    **{
        f".reg .pred p; setp.{name}.{t}32 p, $1, $2; selp.b32 $0, $3, 7, p": each(
            lambda x, y, z, c=compare, s=t == "s": z if c(*((of_sign(v) if s else v) for v in (x, y))) else 7
        )
        for name, t, compare in (
            ("eq", "s", operator.eq),
            ("ne", "u", operator.ne),
            ("lt", "s", operator.lt),
            ("lt", "u", operator.lt),
            ("ge", "s", operator.ge),
            ("hi", "u", operator.gt),
            ("ls", "u", operator.le),
        )
    },
    ".reg .pred p; setp.gt.u32 p, $1, $2; mov.b32 $0, $3; @p add.u32 $0, $1, 1": each(
        lambda x, y, z: x + 1 if x > y else z
    ),
    ".reg .pred p; setp.gt.u32 p, $1, $2; mov.b32 $0, $3; @!p add.u32 $0, $1, 1": each(
        lambda x, y, z: z if x > y else x + 1
    ),
    "add.u16x2 $0, $1, $2": each(lambda x, y, z: (x + y & 0xFFFF) | ((x >> 16) + (y >> 16) & 0xFFFF) << 16),
    "min.s16x2 $0, $1, $2": each(
        lambda x, y, z: sum(
            (min(of_sign(x >> n & 0xFFFF, 16), of_sign(y >> n & 0xFFFF, 16)) & 0xFFFF) << n for n in (0, 16)
        )
    ),
    "mov.b32 $0, $1": lambda x, y, z: x,
    "mov.u32 $0, 0x10": lambda x, y, z: np.full_like(x, 16),
    "mov.u32 $0, 017U": lambda x, y, z: np.full_like(x, 15),
    "mov.s32 $0, -0b110": lambda x, y, z: np.full_like(x, 2**32 - 6),
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


def halves(x: Any, kind: Any) -> list[Any]:
    """The numbers in the lower and the upper halves."""
    return [(x.view(np.uint32) >> np.uint32(n)).astype(np.uint16).view(kind) for n in (0, 16)]


def packed(function: Callable[..., Any], kind: Any = np.float16) -> Callable[..., Any]:
    """A function of both halves; results that are NaN have the canonical pattern."""

    def apply(*values: Any) -> Any:
        results = [np.asarray(function(*half), kind) for half in zip(*(halves(v, kind) for v in values))]
        nan = 0x7E00 if kind == np.float16 else 0x7FC0
        low, high = (
            np.where(np.isnan(r.astype(np.float32)), nan, r.view(np.uint16)).astype(np.uint32) for r in results
        )
        return low | high << np.uint32(16)

    return apply


def joined(low: Any, high: Any, kind: Any) -> Any:
    width = np.dtype(kind).itemsize * 8
    word = np.uint16 if width == 16 else np.uint8
    low, high = (np.asarray(v).astype(kind).view(word).astype(np.uint32) for v in (low, high))
    return low | high << np.uint32(width)


BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


def limited(x: Any, kind: Any) -> Any:
    most = float(ml_dtypes.finfo(kind).max)
    return np.clip(x, -most, most)


def smaller(x: Any, y: Any) -> Any:
    """numpy's minimum, with -0 below 0."""
    return np.where((x == y) & np.signbit(x), x, np.minimum(x, y))


REALS: dict[str, Callable[..., Any]] = {
    "add.f16x2 $0, $1, $2": packed(lambda x, y, z: x + y),
    "sub.rn.f16x2 $0, $1, $2": packed(lambda x, y, z: x - y),
    "mul.bf16x2 $0, $1, $2": packed(lambda x, y, z: (x.astype(np.float32) * y.astype(np.float32)).astype(BF16), BF16),
    "fma.rn.f16x2 $0, $1, $2, 0x3C003C00": packed(
        lambda x, y, z: (x.astype(np.float64) * y.astype(np.float64) + 1).astype(np.float16)
    ),
    "neg.f16x2 $0, $1": lambda x, y, z: x.view(np.uint32) ^ np.uint32(0x80008000),
    "cvt.rn.f16x2.f32 $0, $1, $2": lambda x, y, z: joined(y, x, np.float16),
    "cvt.rn.bf16x2.f32 $0, $1, $2": lambda x, y, z: joined(y, x, BF16),
    "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2": lambda x, y, z: joined(limited(y, E4M3), limited(x, E4M3), E4M3),
    "cvt.rn.satfinite.e5m2x2.f32 $0, $1, $2": lambda x, y, z: joined(limited(y, E5M2), limited(x, E5M2), E5M2),
    "cvt.rn.f16x2.e4m3x2 $0, $1": lambda x, y, z: joined(
        *((x.view(np.uint32) >> np.uint32(n)).astype(np.uint8).view(E4M3).astype(np.float16) for n in (0, 8)),
        np.float16,
    ),
    "min.NaN.f32 $0, $1, $2": lambda x, y, z: bits(smaller(x, y)),
    "copysign.f32 $0, $1, $2": lambda x, y, z: bits(np.copysign(y, x)),
    **{
        f".reg .pred p; setp.{name}.f32 p, $1, $2; selp.b32 $0, 1, 0, p": compare
        for name, compare in {
            "lt": lambda x, y, z: x < y,
            "ne": lambda x, y, z: (x < y) | (x > y),
            "geu": lambda x, y, z: ~(x < y),
            "num": lambda x, y, z: ~(np.isnan(x) | np.isnan(y)),
            "nan": lambda x, y, z: np.isnan(x) | np.isnan(y),
        }.items()
    },
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
        "cvt.rni.f16.f32 $0, $1", "cvt.s32.f32 $0, $1", "cvt.rz.f32.s32 $0, $1", "cvt.rn.f32 $0, $1",
        "mul.wide.u64 $0, $1, $2", "mul.wide.f32 $0, $1, $2", "prmt.b32.f4e $0, $1, $2, $3", "add.f32 $0, $1",
        "not.b32 $0, $1, $2", "mov.b32 $0", "lop3.b32 $0, $1, $2, $3", "lop3.b32 $0, $1, $2, $3, $1",
        "setp.hi.f32 $0, $1, $2", "selp.b32 $0, $1, $2, $3", "selp.b32 $0, $1, $2",
        "@$1 mov.b32 $0, $1", "@q mov.b32 $0, $1",
        "dp4a.u8.s32 $0, $1, $2, $3", "cvt.rn.e4m3x2.f32 $0, $1, $2", "add.e4m3x2 $0, $1, $2", "cvt.f32.f16x2 $0, $1",
        "ld.global.b32 $0, [$1]",
        "add.s32 $0, $1, 08",
        "add.s32 $0, $1, 0x10000000000000000", "add.s32 $0, $1, -0x8000000000000001",
        "cvt.f16x2.e4m3x2 $0, $1", "cvt.rn.relu.f16x2.e4m3x2 $0, $1", "cvt.rn.satfinite.f16x2.e5m2x2 $0, $1",
        "cvt.rn.bf16x2.e4m3x2 $0, $1",
    ],
)  # fmt: skip
def test_other_instructions_are_refused(text: str) -> None:
    words = r"has the instruction '.*(of PTX, which is not|operands are not) known"
    with pytest.raises(xegpu_py.DiagnosticError, match=words):
        results([f"{{ {text}; }}"], [pairs(WORDS, 0)] * 3)


def test_elements_that_share_registers() -> None:
    """Four bytes in a register, beside four registers of 32 bits, as in Triton's documentation."""
    arrays = {"a": "i8", "b": "f32", "c": "i32", "d": "f32", "e": "i8"}
    parameters = ", ".join(f"%{name}: !tt.ptr<{t}>" for name, t in arrays.items())
    pointers = "\n".join(
        f"%s{name} = tt.splat %{name} : !tt.ptr<{t}> -> tensor<{N}x!tt.ptr<{t}>>\n"
        f"%p{name} = tt.addptr %s{name}, %lane : tensor<{N}x!tt.ptr<{t}>>, tensor<{N}xi32>"
        for name, t in arrays.items()
    )
    converted = " ".join(
        f"cvt.u32.u8 ${n}, t{n}; cvt.rn.f32.s32 ${4 + n}, ${n}; max.f32 ${4 + n}, ${4 + n}, ${9 + n};" for n in range(4)
    )
    four = f"{{ .reg .b8 t<4>; mov.b32 {{t0, t1, t2, t3}}, $8; {converted} }}"
    text = f"""
    module {{ tt.func public @k({parameters}) {{
        %lane = tt.make_range {{end = {N} : i32, start = 0 : i32}} : tensor<{N}xi32>
        {pointers}
        %va = tt.load %pa : tensor<{N}x!tt.ptr<i8>>
        %vb = tt.load %pb : tensor<{N}x!tt.ptr<f32>>
        %vc, %vd = tt.elementwise_inline_asm "{four}"
            {{constraints = "=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r", packed_element = 4 : i32, pure = true}}
            %va, %vb : tensor<{N}xi8>, tensor<{N}xf32> -> tensor<{N}xi32>, tensor<{N}xf32>
        %ve = tt.elementwise_inline_asm "and.b32 $0, $1, 0x1F1F1F1F; shl.b32 $0, $0, 3;"
            {{constraints = "=r,r", packed_element = 4 : i32, pure = true}} %va : tensor<{N}xi8> -> tensor<{N}xi8>
        tt.store %pc, %vc : tensor<{N}x!tt.ptr<i32>>
        tt.store %pd, %vd : tensor<{N}x!tt.ptr<f32>>
        tt.store %pe, %ve : tensor<{N}x!tt.ptr<i8>>
        tt.return
    }} }}"""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, N).astype(np.int8), rng.uniform(0, 255, N).astype(np.float32)
    c, d, e = np.zeros(N, np.int32), np.zeros(N, np.float32), np.zeros(N, np.int8)
    xegpu_py.compile(xegpu_py.parse(text), cache="off")(a, b, c, d, e)
    np.testing.assert_array_equal(c, a.view(np.uint8))
    np.testing.assert_array_equal(d, np.maximum(a.view(np.uint8).astype(np.float32), b))
    np.testing.assert_array_equal(e, a << 3)
