"""Ops of TTIR in forms that Triton's programs rarely have, against numpy."""

import math
import operator
import re

import ml_dtypes
import numpy as np
import pytest

import xegpu_py

N = 16

KERNEL = """
module {{
  tt.func public @k(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %u: !tt.ptr<f32>, %w: !tt.ptr<f32>, %out: !tt.ptr<i32>,
                    %n: i32) {{
    %lane = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32>
    %one = arith.constant dense<1> : tensor<{n}xi32>
    %seven = arith.constant dense<7> : tensor<{n}xi32>
    %px = tt.splat %x : !tt.ptr<i32> -> tensor<{n}x!tt.ptr<i32>>
    %ax = tt.addptr %px, %lane : tensor<{n}x!tt.ptr<i32>>, tensor<{n}xi32>
    %a = tt.load %ax : tensor<{n}x!tt.ptr<i32>>
    %py = tt.splat %y : !tt.ptr<i32> -> tensor<{n}x!tt.ptr<i32>>
    %ay = tt.addptr %py, %lane : tensor<{n}x!tt.ptr<i32>>, tensor<{n}xi32>
    %b = tt.load %ay : tensor<{n}x!tt.ptr<i32>>
    %pu = tt.splat %u : !tt.ptr<f32> -> tensor<{n}x!tt.ptr<f32>>
    %au = tt.addptr %pu, %lane : tensor<{n}x!tt.ptr<f32>>, tensor<{n}xi32>
    %f = tt.load %au : tensor<{n}x!tt.ptr<f32>>
    %pw = tt.splat %w : !tt.ptr<f32> -> tensor<{n}x!tt.ptr<f32>>
    %aw = tt.addptr %pw, %lane : tensor<{n}x!tt.ptr<f32>>, tensor<{n}xi32>
    %g = tt.load %aw : tensor<{n}x!tt.ptr<f32>>
    %m = arith.cmpi slt, %a, %b : tensor<{n}xi32>
    %k = arith.cmpi ult, %a, %b : tensor<{n}xi32>
    %po = tt.splat %out : !tt.ptr<i32> -> tensor<{n}x!tt.ptr<i32>>
    {body}
    tt.return
  }}
}}
"""

T = f"tensor<{N}xi32>"
F = f"tensor<{N}xf32>"
P = f"tensor<{N}x!tt.ptr<i32>>"
TRUTH = f"tensor<{N}xi1>"
E5M2 = ml_dtypes.float8_e5m2


def of_truth(op):
    return f"%v = {op} : {TRUTH}\n%r = arith.extui %v : {TRUTH} to {T}"


def of_floats(op, to="f8E5M2"):
    """An op on numbers of 8 bits, as a number of f32."""
    narrow = f"tensor<{N}x{to}>"
    conversions = (
        f"%{v} = tt.fp_to_fp %{source}, rounding = rtne : {F} -> {narrow}\n" for v, source in (("h", "f"), ("i", "g"))
    )
    return "".join(conversions) + op.format(narrow)


def widened(narrow=f"tensor<{N}xf8E5M2>"):
    return f"\n%z = tt.fp_to_fp %v : {narrow} -> {F}\n%r = arith.bitcast %z : {F} to {T}"


def rounded(x):
    return x.astype(E5M2).astype(np.float32)


def rounded_by(mode):
    """Numbers of f32 in f16 by a rounding of `arith.truncf`."""
    half = f"tensor<{N}xf16>"
    text = f"%h = arith.truncf %f {mode} : {F} to {half}\n%w2 = arith.extf %h : {half} to {F}\n"
    text += f"%r = arith.bitcast %w2 : {F} to {T}"

    def compute(a, b, f, g):
        nearest = f.astype(np.float16)
        towards = {"downward": -np.inf, "upward": np.inf, "toward_zero": 0}.get(mode)
        if towards is not None:
            # The exact number is on the other side of the nearest one.
            past = np.sign(nearest - f) * np.sign(towards - f) < 0
            nearest = np.where(past, np.nextafter(nearest, np.float16(towards)), nearest)
        return nearest.astype(np.float32).view(np.int32)

    return text, compute


def pairs(shape, axis, inserted, op="xori", other="%h"):
    """The exclusive or of a tensor and its elements combined along an axis, as Triton's sort has it, or nearly so."""
    left = [n for i, n in enumerate(shape) if i != axis]
    shapes = (left, [*left[:inserted], 1, *left[inserted:]], shape)
    folded, one, full = (f"tensor<{'x'.join(map(str, s))}xi32>" for s in shapes)
    text = f"""%h = tt.reshape %a : {T} -> {full}
    %i = tt.reshape %b : {T} -> {full}
    %s = "tt.reduce"(%h) <{{axis = {axis} : i32}}> ({{
    ^bb0(%l: i32, %t: i32):
      %c = arith.{op} %l, %t : i32
      tt.reduce.return %c : i32
    }}) : ({full}) -> {folded}
    %e = tt.expand_dims %s {{axis = {inserted} : i32}} : {folded} -> {one}
    %d = tt.broadcast %e : {one} -> {full}
    %v = arith.xori %d, {other} : {full}
    %r = tt.reshape %v : {full} -> {T}"""

    def compute(a, b, f, g):
        combine = np.bitwise_xor if op == "xori" else np.bitwise_or
        found = np.expand_dims(combine.reduce(a.reshape(shape), axis), inserted)
        return (np.broadcast_to(found, shape) ^ (a if other == "%h" else b).reshape(shape)).ravel()

    return text, compute


def mask_of_indices(lines, computed, mask, compute):
    """Elements of `a` where a mask holds that is repeated to four dimensions, and of `b` elsewhere.

    Args:
        lines: for each range the first number and the shape.
        computed: ops that make the mask `%mask` of the ranges `%i0`, `%i1` and so on.
        mask: the shape of the mask.
        compute: what numpy makes of the ranges.
    """
    full = "tensor<2x2x2x2xi32>"
    text = f"%p = tt.reshape %a : {T} -> {full}\n%q = tt.reshape %b : {T} -> {full}\n"
    ranges = []
    for i, (first, shape) in enumerate(lines):
        size, kind = max(shape), f"tensor<{'x'.join(map(str, shape))}xi32>"
        text += f"%l{i} = tt.make_range {{start = {first} : i32, end = {first + size} : i32}} : tensor<{size}xi32>\n"
        text += f"%i{i} = tt.reshape %l{i} : tensor<{size}xi32> -> {kind}\n"
        ranges.append(np.arange(first, first + size).reshape(shape))
    text += f"""{computed}
    %wide = tt.broadcast %mask : tensor<{"x".join(map(str, mask))}xi1> -> tensor<2x2x2x2xi1>
    %v = arith.select %wide, %p, %q : tensor<2x2x2x2xi1>, {full}
    %r = tt.reshape %v : {full} -> {T}"""

    def expected(a, b, f, g):
        return np.where(np.broadcast_to(compute(*ranges), (2, 2, 2, 2)).ravel(), a, b)

    return text, expected


OUTER, INNER = "tensor<2x1x1x1xi32>", "tensor<1x1x2x1xi32>"
CROSSED = "tensor<2x1x2x1xi32>"

COMPARED = {
    "eq": operator.eq, "ne": operator.ne, "slt": operator.lt, "sle": operator.le, "sgt": operator.gt,
    "sge": operator.ge, "ult": operator.lt, "ule": operator.le, "ugt": operator.gt, "uge": operator.ge,
}  # fmt: skip


def truth_compared(predicate):
    """A comparison of truth values: true is -1 where they have a sign."""
    signs = np.int8([0, -1]) if predicate.startswith("s") else np.int8([0, 1])
    return (
        of_truth(f"arith.cmpi {predicate}, %m, %k"),
        lambda a, b, f, g: COMPARED[predicate](signs[(a < b).astype(int)], signs[below(a, b).astype(int)]),
    )


ONE_TRUTH = {
    "addi": (0, 1, 1, 0), "subi": (0, 1, 1, 0), "muli": (0, 0, 0, 1), "minsi": (0, 1, 1, 1), "maxsi": (0, 0, 0, 1),
    "minui": (0, 0, 0, 1), "maxui": (0, 1, 1, 1), "andi": (0, 0, 0, 1), "ori": (0, 1, 1, 1), "xori": (0, 1, 1, 0),
}  # fmt: skip
"""The results for two truth values: of both false, of one true, of the other, and of both true."""


def of_one_truth(op, *values):
    """All results of an op on single truth values, side by side in a number."""
    text = "%z = arith.constant 0 : i32\n%yes = arith.cmpi sgt, %n, %z : i32\n%no = arith.cmpi slt, %n, %z : i32\n"
    total = "%z"
    for i, (x, y) in enumerate((("no", "no"), ("no", "yes"), ("yes", "no"), ("yes", "yes"))):
        text += f"%v{i} = arith.{op} %{x}, %{y} : i1\n%w{i} = arith.extui %v{i} : i1 to i32\n"
        text += f"%k{i} = arith.constant {i} : i32\n%s{i} = arith.shli %w{i}, %k{i} : i32\n"
        text += f"%t{i} = arith.addi {total}, %s{i} : i32\n"
        total = f"%t{i}"
    number = sum(v << i for i, v in enumerate(values))
    return f"{text}%r = tt.splat {total} : i32 -> {T}", lambda a, b, f, g: np.full(N, number)


def reduced_to(given, number):
    """A reduction whose block combines its arguments, and gives another value.

    Args:
        number: the result of a row of numbers.
    """
    text = f"""%h = tt.reshape %a : {T} -> tensor<4x4xi32>
    %s = "tt.reduce"(%h) <{{axis = 1 : i32}}> ({{
    ^bb0(%l: i32, %t: i32):
      %c = arith.addi %l, %t : i32
      tt.reduce.return {given} : i32
    }}) : (tensor<4x4xi32>) -> tensor<4xi32>
    %e = tt.expand_dims %s {{axis = 1 : i32}} : tensor<4xi32> -> tensor<4x1xi32>
    %d = tt.broadcast %e : tensor<4x1xi32> -> tensor<4x4xi32>
    %r = tt.reshape %d : tensor<4x4xi32> -> {T}"""
    return text, lambda a, b, f, g: np.repeat([number(row) for row in a.reshape(4, 4)], 4)


ROWS = [3, -1, 2**31 - 1, -(2**31), *range(12)]

FORMS = {
    "the others of outer pairs": pairs((2, 2, 2, 2), 0, 0),
    "the others of inner pairs": pairs((2, 2, 2, 2), 3, 3),
    "pairs of another axis": pairs((2, 2, 4), 0, 1),
    "more than pairs": pairs((4, 4), 1, 1),
    "pairs of another tensor": pairs((8, 2), 1, 1, other="%i"),
    "pairs with another op": pairs((8, 2), 1, 1, "ori"),
    "a mask of two dimensions": mask_of_indices(
        [(0, (2, 1, 1, 1)), (0, (1, 1, 2, 1))],
        f"%o = tt.broadcast %i0 : {OUTER} -> {CROSSED}\n%n2 = tt.broadcast %i1 : {INNER} -> {CROSSED}\n"
        f"%x2 = arith.xori %o, %n2 : {CROSSED}\n%z = arith.constant dense<0> : {CROSSED}\n"
        f"%mask = arith.cmpi ne, %x2, %z : {CROSSED}",
        (2, 1, 2, 1),
        lambda i, j: i ^ j,
    ),
    "a mask of the outermost dimension": mask_of_indices(
        [(0, (2, 1, 1, 1))],
        f"%z = arith.constant dense<1> : {OUTER}\n%mask = arith.cmpi sge, %i0, %z : {OUTER}",
        (2, 1, 1, 1),
        lambda i: i >= 1,
    ),
    "a mask of a range that does not begin at 0": mask_of_indices(
        [(5, (1, 1, 2, 1))],
        f"%z = arith.constant dense<5> : {INNER}\n%mask = arith.cmpi eq, %i0, %z : {INNER}",
        (1, 1, 2, 1),
        lambda i: i == 5,
    ),
    "a mask of a range along two dimensions": mask_of_indices(
        [(0, (1, 4, 1))],
        "%h = tt.reshape %i0 : tensor<1x4x1xi32> -> tensor<1x2x1x2xi32>\n"
        "%z = arith.constant dense<2> : tensor<1x2x1x2xi32>\n%mask = arith.cmpi ult, %h, %z : tensor<1x2x1x2xi32>",
        (1, 2, 1, 2),
        lambda i: i.reshape(1, 2, 1, 2) < 2,
    ),
    "a mask of a range and different constants": mask_of_indices(
        [(0, (1, 1, 2, 1))],
        f"%z = arith.constant dense<[[[[1], [0]]]]> : {INNER}\n%mask = arith.cmpi slt, %i0, %z : {INNER}",
        (1, 1, 2, 1),
        lambda i: i < np.array([1, 0]).reshape(1, 1, 2, 1),
    ),
    "a mask of a range that a loop carries": mask_of_indices(
        [(0, (2, 1, 1, 1))],
        f"""%unit = arith.constant dense<1> : {OUTER}\n%two = arith.constant dense<2> : {OUTER}
        %off = arith.constant dense<false> : tensor<2x2x1x1xi1>
        %k0 = arith.constant 0 : i32\n%k1 = arith.constant 1 : i32\n%k3 = arith.constant 3 : i32
        %s:2 = scf.for %step = %k0 to %k3 step %k1 iter_args(%t = %i0, %last = %off)
            -> ({OUTER}, tensor<2x2x1x1xi1>) : i32 {{
          %m1 = arith.cmpi sgt, %t, %two : {OUTER}
          %m2 = tt.broadcast %m1 : tensor<2x1x1x1xi1> -> tensor<2x2x1x1xi1>
          %t2 = arith.xori %t, %unit : {OUTER}
          %t3 = arith.muli %t2, %two : {OUTER}
          scf.yield %t3, %m2 : {OUTER}, tensor<2x2x1x1xi1>
        }}
        %mask = arith.ori %s#1, %off : tensor<2x2x1x1xi1>""",
        (2, 2, 1, 1),
        # 0 and 1 become 2 and 0, and these 6 and 2.
        lambda i: ((((i ^ 1) * 2) ^ 1) * 2) > 2,
    ),
    "a mask of the innermost dimension and another one": mask_of_indices(
        [(0, (1, 1, 1, 2)), (0, (1, 2, 1, 1))],
        "%o = tt.broadcast %i0 : tensor<1x1x1x2xi32> -> tensor<1x2x1x2xi32>\n"
        "%n2 = tt.broadcast %i1 : tensor<1x2x1x1xi32> -> tensor<1x2x1x2xi32>\n"
        "%z = arith.constant dense<2> : tensor<1x2x1x2xi32>\n%d = arith.muli %n2, %z : tensor<1x2x1x2xi32>\n"
        "%x2 = arith.addi %o, %d : tensor<1x2x1x2xi32>\n%mask = arith.cmpi eq, %x2, %z : tensor<1x2x1x2xi32>",
        (1, 2, 1, 2),
        lambda i, j: i + 2 * j == 2,
    ),
    **{f"truth values compared by {predicate}": truth_compared(predicate) for predicate in COMPARED},
    "the first element of each row": reduced_to("%l", lambda row: row[0]),
    "the last element of each row": reduced_to("%t", lambda row: row[-1]),
    "the sum of each row": reduced_to("%c", np.sum),
    "the greater truth value": (of_truth("arith.maxui %m, %k"), lambda a, b, f, g: (a < b) | below(a, b)),
    "the lesser truth value": (of_truth("arith.minui %m, %k"), lambda a, b, f, g: (a < b) & below(a, b)),
    "the greater truth value with a sign": (of_truth("arith.maxsi %m, %k"), lambda a, b, f, g: (a < b) & below(a, b)),
    "the lesser truth value with a sign": (of_truth("arith.minsi %m, %k"), lambda a, b, f, g: (a < b) | below(a, b)),
    "a sum of truth values": (of_truth("arith.addi %m, %k"), lambda a, b, f, g: (a < b) ^ below(a, b)),
    "a difference of truth values": (of_truth("arith.subi %m, %k"), lambda a, b, f, g: (a < b) ^ below(a, b)),
    "a product of truth values": (of_truth("arith.muli %m, %k"), lambda a, b, f, g: (a < b) & below(a, b)),
    **{f"one truth value by {op}": of_one_truth(op, *values) for op, values in ONE_TRUTH.items()},
    "a sum of the truth values of each row": (
        f"""%h = tt.reshape %m : {TRUTH} -> tensor<4x4xi1>
        %s = "tt.reduce"(%h) <{{axis = 1 : i32}}> ({{
        ^bb0(%l: i1, %t: i1):
          %c = arith.addi %l, %t : i1
          tt.reduce.return %c : i1
        }}) : (tensor<4x4xi1>) -> tensor<4xi1>
        %e = tt.expand_dims %s {{axis = 1 : i32}} : tensor<4xi1> -> tensor<4x1xi1>
        %d = tt.broadcast %e : tensor<4x1xi1> -> tensor<4x4xi1>
        %v = tt.reshape %d : tensor<4x4xi1> -> {TRUTH}\n%r = arith.extui %v : {TRUTH} to {T}""",
        lambda a, b, f, g: np.repeat((a < b).reshape(4, 4).sum(1) % 2, 4),
    ),
    "the lowest bits": (
        f"%v = arith.trunci %a : {T} to {TRUTH}\n%r = arith.extui %v : {TRUTH} to {T}",
        lambda a, b, f, g: a & 1,
    ),
    "elements of a constant": (
        f"%c = arith.constant dense<{ROWS}> : {T}\n%r = arith.addi %c, %a : {T}",
        lambda a, b, f, g: np.array(ROWS, np.int32) + a,
    ),
    "a position that a condition chooses": (
        f"%o = arith.select %m, %lane, %seven : {TRUTH}, {T}\n%p = tt.addptr %px, %o : {P}, {T}\n%r = tt.load %p : {P}",
        lambda a, b, f, g: a[np.where(a < b, np.arange(N), 7)],
    ),
    "a pointer that conditions choose in one array": (
        f"%q = tt.addptr %px, %seven : {P}, {T}\n%p = arith.select %m, %ax, %q : {TRUTH}, {P}\n%r = tt.load %p : {P}",
        lambda a, b, f, g: a[np.where(a < b, np.arange(N), 7)],
    ),
    "a pointer that conditions choose in two arrays": (
        f"%p = arith.select %m, %ax, %ay : {TRUTH}, {P}\n%r = tt.load %p : {P}",
        lambda a, b, f, g: np.where(a < b, a, b),
    ),
    "a pointer that one condition chooses": (
        f"%z = arith.constant 5 : i32\n%is = arith.cmpi slt, %n, %z : i32\n"
        f"%p = arith.select %is, %ax, %ay : {P}\n%r = tt.load %p : {P}",
        lambda a, b, f, g: a,
    ),
    "addresses as integers": (
        f"%i = tt.ptr_to_int %ax : {P} -> tensor<{N}xi64>\n%p = tt.int_to_ptr %i : tensor<{N}xi64> -> {P}\n"
        f"%r = tt.load %p : {P}",
        lambda a, b, f, g: a,
    ),
    "integers at pointers to floats": (
        f"%p = tt.bitcast %au : tensor<{N}x!tt.ptr<f32>> -> {P}\n%r = tt.load %p : {P}",
        lambda a, b, f, g: f.view(np.int32),
    ),
    "what is not defined times zero": (
        f"%p = ub.poison : {T}\n%z = arith.constant dense<0> : {T}\n%r = arith.muli %p, %z : {T}",
        lambda a, b, f, g: a * 0,
    ),
    "a sum of floats of 8 bits": (
        of_floats("%v = arith.addf %h, %i : {0}") + widened(),
        lambda a, b, f, g: rounded(rounded(f) + rounded(g)).view(np.int32),
    ),
    "floats of 8 bits compared": (
        of_floats(f"%v = arith.cmpf olt, %h, %i : {{0}}\n%r = arith.extui %v : {TRUTH} to {T}"),
        lambda a, b, f, g: rounded(f) < rounded(g),
    ),
    "a root of floats of 8 bits": (
        of_floats("%s = math.absf %h : {0}\n%v = math.sqrt %s : {0}") + widened(),
        lambda a, b, f, g: rounded(np.sqrt(np.abs(rounded(f)))).view(np.int32),
    ),
    "a power of floats of 8 bits": (
        of_floats(f"%e = arith.constant dense<3> : {T}\n%v = math.fpowi %h, %e : {{0}}, {T}") + widened(),
        lambda a, b, f, g: rounded(rounded(f) ** 3).view(np.int32),
    ),
    "normal floats of 8 bits": (
        of_floats(
            f"%e = arith.constant dense<8.0e-6> : {F}\n%d = arith.mulf %f, %e : {F}\n"
            f"%j = tt.fp_to_fp %d, rounding = rtne : {F} -> {{0}}\n%v = math.isnormal %j : {{0}}\n"
            f"%r = arith.extui %v : {TRUTH} to {T}"
        ),
        lambda a, b, f, g: np.abs(rounded(f * np.float32(8e-6))) >= 2.0**-14,
    ),
    **{f"floats rounded {mode}": rounded_by(mode) for mode in ("downward", "upward", "toward_zero", "to_nearest_even")},
    "pairs of elements": (
        f'''%r = "tt.map_elementwise"(%a, %b) <{{pack = 2 : i32}}> ({{
        ^bb0(%a0: i32, %a1: i32, %b0: i32, %b1: i32):
          %s = arith.addi %a0, %b1 : i32
          %d = arith.subi %a1, %b0 : i32
          tt.map_elementwise.return %s, %d : i32, i32
        }}) : ({T}, {T}) -> {T}''',
        lambda a, b, f, g: np.stack([a[::2] + b[1::2], a[1::2] - b[::2]], 1).ravel(),
    ),
    "atomic loads and stores": (
        f"%v = tt.atomic_load acquire, gpu, %ax, %m : ({P}, {TRUTH}) -> {T}\n%z = arith.constant dense<0> : {T}\n"
        f"tt.atomic_store release, gpu, %ay, %a, %m : {P}\n%w2 = tt.load %ay : {P}\n"
        f"%r = arith.select %m, %v, %w2 : {TRUTH}, {T}",
        lambda a, b, f, g: np.where(a < b, a, b),
    ),
}  # fmt: skip


BOUNDS = """%five = arith.constant 5 : i32
%is = arith.cmpi slt, %n, %five : i32
%no = arith.cmpi sgt, %n, %five : i32
"""

BRANCHES = {
    "a pointer that a branch chooses in one array": (
        BOUNDS
        + f"""%p = scf.if %is -> ({P}) {{ %q = tt.addptr %px, %lane : {P}, {T}
        scf.yield %q : {P} }} else {{
          %q = tt.addptr %px, %seven : {P}, {T}
        scf.yield %q : {P} }}
        %r = tt.load %p : {P}""",
        lambda a, b, f, g: a,
    ),
    "a pointer that a branch chooses in two arrays": (
        BOUNDS
        + f"""%p = scf.if %no -> ({P}) {{ scf.yield %ax : {P} }} else {{ scf.yield %ay : {P} }}
        %r = tt.load %p : {P}""",
        lambda a, b, f, g: b,
    ),
    "one pointer that a branch chooses": (
        BOUNDS
        + f"""%p = scf.if %is -> (!tt.ptr<i32>) {{ scf.yield %x : !tt.ptr<i32> }} else {{ scf.yield %y : !tt.ptr<i32> }}
        %pp = tt.splat %p : !tt.ptr<i32> -> {P}
        %q = tt.addptr %pp, %lane : {P}, {T}
        %r = tt.load %q : {P}""",
        lambda a, b, f, g: a,
    ),
    "one pointer that a branch moves": (
        BOUNDS
        + f"""%p = scf.if %no -> (!tt.ptr<i32>) {{ scf.yield %x : !tt.ptr<i32> }} else {{
          %o = tt.addptr %y, %n : !tt.ptr<i32>, i32
        scf.yield %o : !tt.ptr<i32> }}
        %pp = tt.splat %p : !tt.ptr<i32> -> {P}
        %q = tt.addptr %pp, %lane : {P}, {T}
        %mm = arith.cmpi slt, %lane, %seven : {T}
        %c0 = arith.constant dense<0> : {T}
        %r = tt.load %q, %mm, %c0 : {P}""",
        lambda a, b, f, g: np.where(np.arange(N) < 7, b[(np.arange(N) + 3) % 16], 0),
    ),
    "a position that a branch chooses": (
        BOUNDS
        + f"""%o = scf.if %no -> (i32) {{ scf.yield %five : i32 }} else {{
          %k2 = arith.addi %n, %n : i32
        scf.yield %k2 : i32 }}
        %oo = tt.splat %o : i32 -> {T}
        %w2 = arith.addi %oo, %lane : {T}
        %q = tt.addptr %px, %w2 : {P}, {T}
        %mm = arith.cmpi slt, %lane, %seven : {T}
        %c0 = arith.constant dense<0> : {T}
        %r = tt.load %q, %mm, %c0 : {P}""",
        lambda a, b, f, g: np.where(np.arange(N) < 7, a[(np.arange(N) + 6) % 16], 0),
    ),
    "a wide position that a branch chooses": (
        BOUNDS
        + f"""%o = scf.if %is -> (i32) {{ scf.yield %five : i32 }} else {{
          %k2 = arith.muli %n, %n : i32
        scf.yield %k2 : i32 }}
        %l64 = arith.extsi %o : i32 to i64
        %p1 = tt.addptr %x, %l64 : !tt.ptr<i32>, i64
        %v = tt.load %p1 : !tt.ptr<i32>
        %r = tt.splat %v : i32 -> {T}""",
        lambda a, b, f, g: np.full(N, a[5]),
    ),
    "a position that is narrowed": (
        BOUNDS
        + f"""%e = arith.extsi %n : i32 to i64
        %three = arith.constant 3 : i64
        %m3 = arith.muli %e, %three : i64
        %t = arith.trunci %m3 : i64 to i32
        %p1 = tt.addptr %x, %t : !tt.ptr<i32>, i32
        %v = tt.load %p1 : !tt.ptr<i32>
        %r = tt.splat %v : i32 -> {T}""",
        lambda a, b, f, g: np.full(N, a[9]),
    ),
    "a counter without sign": (
        BOUNDS
        + f"""%c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %s = scf.for unsigned %i = %c0 to %n step %c1 iter_args(%acc = %c0) -> (i32) : i32 {{
          %k2 = arith.addi %acc, %i : i32
        scf.yield %k2 : i32 }}
        %r = tt.splat %s : i32 -> {T}""",
        lambda a, b, f, g: np.full(N, 3),
    ),
    "a counter without sign above the signed ones": (
        BOUNDS
        + f"""%c0 = arith.constant -3 : i32
        %c1 = arith.constant 1 : i32
        %c9 = arith.constant -1 : i32
        %z0 = arith.constant 0 : i32
        %s = scf.for unsigned %i = %c0 to %c9 step %c1 iter_args(%acc = %z0) -> (i32) : i32 {{
          %k2 = arith.addi %acc, %i : i32
        scf.yield %k2 : i32 }}
        %r = tt.splat %s : i32 -> {T}""",
        lambda a, b, f, g: np.full(N, -5),
    ),
    "a pointer that is not defined": (
        BOUNDS
        + f"""%u0 = ub.poison : {P}
        %p = arith.select %is, %ax, %u0 : {P}
        %r = tt.load %p : {P}""",
        lambda a, b, f, g: a,
    ),
    "pointers that are not defined": (
        BOUNDS
        + f"""%u0 = ub.poison : {P}
        %pm = arith.constant dense<true> : {TRUTH}
        %p = arith.select %pm, %ax, %u0 : {TRUTH}, {P}
        %r = tt.load %p : {P}""",
        lambda a, b, f, g: a,
    ),
    "a pointer that a branch in a loop moves": (
        BOUNDS
        + f"""%c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %s:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %ax, %acc = %lane) -> ({P}, {T}) : i32 {{
          %p2 = scf.if %is -> ({P}) {{ %q = tt.addptr %p, %one : {P}, {T}
   scf.yield %q : {P} }} else {{ scf.yield %p : {P} }}
          %mm = arith.cmpi slt, %lane, %seven : {T}
          %zz = arith.constant dense<0> : {T}
          %v = tt.load %p2, %mm, %zz : {P}
          %k2 = arith.addi %acc, %v : {T}
          scf.yield %p2, %k2 : {P}, {T} }}
        %r = arith.addi %s#1, %one : {T}""",
        lambda a, b, f, g: np.where(
            np.arange(N) < 7, np.arange(N) + 1 + sum(np.roll(a, -k) for k in (1, 2, 3)), np.arange(N) + 1
        ),
    ),
    "a pointer to bytes and back": (
        f"""%p = tt.bitcast %x : !tt.ptr<i32> -> !tt.ptr<i8>
        %q = tt.bitcast %p : !tt.ptr<i8> -> !tt.ptr<f32>
        %q2 = tt.bitcast %q : !tt.ptr<f32> -> !tt.ptr<i32>
        %pp = tt.splat %q2 : !tt.ptr<i32> -> {P}
        %q3 = tt.addptr %pp, %lane : {P}, {T}
        %r = tt.load %q3 : {P}""",
        lambda a, b, f, g: a,
    ),
    "a truth value in place of elements": (
        f"""%pb = tt.bitcast %ax : {P} -> tensor<{N}x!tt.ptr<i1>>
        %fa = arith.constant dense<true> : {TRUTH}
        %nn = arith.constant dense<false> : {TRUTH}
        %v = tt.load %pb, %nn, %fa : tensor<{N}x!tt.ptr<i1>>
        %r = arith.extui %v : {TRUTH} to {T}""",
        lambda a, b, f, g: np.ones(N),
    ),
    "a block at an address": (
        f"""%i = tt.ptr_to_int %x : !tt.ptr<i32> -> i64
        %p = tt.int_to_ptr %i : i64 -> !tt.ptr<i32>
        %c4 = arith.constant 4 : i32
        %s4 = arith.constant 4 : i64
        %s1 = arith.constant 1 : i64
        %d = tt.make_tensor_descriptor %p, [%c4, %c4], [%s4, %s1] : !tt.ptr<i32>, !tt.tensordesc<4x4xi32>
        %c1 = arith.constant 1 : i32
        %v = tt.descriptor_load %d[%c1, %c1] : !tt.tensordesc<4x4xi32> -> tensor<4x4xi32>
        %r = tt.reshape %v : tensor<4x4xi32> -> {T}""",
        lambda a, b, f, g: np.pad(a.reshape(4, 4)[1:, 1:], ((0, 1), (0, 1))).ravel(),
    ),
    "a block stored at an address": (
        f"""%i = tt.ptr_to_int %y : !tt.ptr<i32> -> i64
        %p = tt.int_to_ptr %i : i64 -> !tt.ptr<i32>
        %c4 = arith.constant 4 : i32
        %s4 = arith.constant 4 : i64
        %s1 = arith.constant 1 : i64
        %d = tt.make_tensor_descriptor %p, [%c4, %c4], [%s4, %s1] : !tt.ptr<i32>, !tt.tensordesc<4x4xi32>
        %c1 = arith.constant 1 : i32
        %v = tt.reshape %a : {T} -> tensor<4x4xi32>
        tt.descriptor_store %d[%c1, %c1], %v : !tt.tensordesc<4x4xi32>, tensor<4x4xi32>
        %r = tt.load %ay : {P}""",
        lambda a, b, f, g: np.block(
            [[b.reshape(4, 4)[:1]], [b.reshape(4, 4)[1:, :1], a.reshape(4, 4)[:3, :3]]]
        ).ravel(),
    ),
    "blocks of one and of three dimensions": (
        f"""%c2 = arith.constant 2 : i32
        %c4 = arith.constant 4 : i32
        %s2 = arith.constant 2 : i64
        %s8 = arith.constant 8 : i64
        %s1 = arith.constant 1 : i64
        %c16 = arith.constant 16 : i32
        %c1 = arith.constant 1 : i32
        %d = tt.make_tensor_descriptor %x, [%c2, %c4, %c2], [%s8, %s2, %s1] : !tt.ptr<i32>, !tt.tensordesc<2x4x2xi32>
        %v3 = tt.descriptor_load %d[%c1, %c1, %c1] : !tt.tensordesc<2x4x2xi32> -> tensor<2x4x2xi32>
        %e = tt.make_tensor_descriptor %y, [%c16], [%s1] : !tt.ptr<i32>, !tt.tensordesc<{N}xi32>
        %v1 = tt.descriptor_load %e[%c4] : !tt.tensordesc<{N}xi32> -> {T}
        %v = tt.reshape %v3 : tensor<2x4x2xi32> -> {T}
        %r = arith.xori %v, %v1 : {T}""",
        lambda a, b, f, g: (
            np.pad(a.reshape(2, 4, 2)[1:, 1:, 1:], ((0, 1), (0, 1), (0, 1))).ravel() ^ np.pad(b[4:], (0, 4))
        ),
    ),
    "constants without sign": (
        f"""%c = arith.constant dense<-5> : {T}
        %q = arith.divui %a, %c : {T}
        %k5 = arith.constant dense<4294967290> : {T}
        %q2 = arith.remui %a, %k5 : {T}
        %r = arith.addi %q, %q2 : {T}""",
        lambda a, b, f, g: (a.view(np.uint32) // np.uint32(2**32 - 5) + a.view(np.uint32) % np.uint32(4294967290)).view(
            np.int32
        ),
    ),
    "a constant of 8 bits": (
        f"""%c = arith.constant dense<0x7E> : tensor<{N}xf8E4M3FN>
        %z = tt.fp_to_fp %c : tensor<{N}xf8E4M3FN> -> {F}
        %r = arith.bitcast %z : {F} to {T}""",
        lambda a, b, f, g: np.full(N, 448, np.float32).view(np.int32),
    ),
}
"""Choices of branches, positions that are narrowed, and blocks at addresses."""


def below(a, b):
    return a.view(np.uint32) < b.view(np.uint32)


@pytest.mark.parametrize("name", [*FORMS, *BRANCHES])
def test_forms(name):
    body, oracle = {**FORMS, **BRANCHES}[name]
    store = f"\n%ao = tt.addptr %po, %lane : {P}, {T}\ntt.store %ao, %r : {P}"
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-(2**31), 2**31, N).astype(np.int32) for _ in range(2))
    f, g = (rng.uniform(-9, 9, N).astype(np.float32) for _ in range(2))
    out = np.zeros(N, np.int32)
    xegpu_py.compile(KERNEL.format(n=N, body=body + store), cache="off")(a.copy(), b.copy(), f, g, out, 3)
    np.testing.assert_array_equal(out, np.asarray(oracle(a, b, f, g)).astype(np.int32))


ATOMIC = """module {{ tt.func public @k(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %t: i64) {{
  %v = tt.load %y : !tt.ptr<i32>
  %m = arith.constant true
  {}
  tt.store %y, %v : !tt.ptr<i32>
  tt.return
}} }}"""
ORDERED = {
    "atomic_rmw add, {}, {}, %x, %v, %m : (!tt.ptr<i32>, i32, i1) -> i32": ("relaxed", "acquire", "release", "acq_rel"),
    "atomic_cas {}, {}, %x, %v, %v : (!tt.ptr<i32>, i32, i32) -> i32": ("relaxed", "acquire", "release", "acq_rel"),
    "atomic_load {}, {}, %x, %m : (!tt.ptr<i32>, i1) -> i32": ("relaxed", "acquire"),
    "atomic_store {}, {}, %x, %v, %m : !tt.ptr<i32>": ("relaxed", "release"),
}


@pytest.mark.parametrize("op", ORDERED)
def test_atomic_accesses_are_ordered(op):
    """`release` orders them after earlier accesses, and `acquire` before later ones."""
    for sem in ORDERED[op]:
        for scope, fenced in (("cta", "workgroup"), ("gpu", "gpu"), ("sys", "gpu")):
            result = "" if "store" in op else "%r = "
            kernel = xegpu_py.compile(ATOMIC.format(f"{result}tt.{op.format(sem, scope)}"), cache="off")
            found = re.findall(r"xetile\.(load|store|atomic)|fence \{scope = (\w+)", kernel.ir("xetile"))
            before = [fenced] * (sem in ("release", "acq_rel"))
            after = [fenced] * (sem in ("acquire", "acq_rel"))
            assert [a or b for a, b in found] == ["load", *before, "atomic", *after, "store"], (sem, scope)


@pytest.mark.parametrize(("timeout", "loads"), [(0, 1), (999, 1), (1000, 2), (5500, 6)])
def test_polls_load_once_a_microsecond(timeout, loads):
    text = ATOMIC.format("%a = tt.atomic_poll relaxed, gpu, %x, %v timeout %t : !tt.ptr<i32>, i32 -> i1")
    kernel = xegpu_py.compile(text, cache="off")
    x = np.zeros(1, np.int32)
    kernel(x, np.ones(1, np.int32), timeout)
    assert kernel.stats.traffic["ugm", "atomic"] == 4 * loads
    kernel(x, np.zeros(1, np.int32), timeout)
    assert kernel.stats.traffic["ugm", "atomic"] == 4


def test_a_block_of_a_descriptor_of_the_host_is_updated():
    text = """module { tt.func public @k(%d: !tt.tensordesc<4x4xi32>) {
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %v = arith.constant dense<5> : tensor<4x4xi32>
      tt.descriptor_reduce add, %d[%one, %two], %v : !tt.tensordesc<4x4xi32>, tensor<4x4xi32>
      tt.return
    } }"""
    x = np.arange(40, dtype=np.int32).reshape(5, 8)
    expected = x.copy()
    # The tensor has four rows of seven elements; the rest of each row is not of it.
    expected[1:4, 2:6] += 5
    xegpu_py.compile(text, cache="off")(x.reshape(-1), 4, 7, 8, 1)
    np.testing.assert_array_equal(x, expected)


CALLS = """module {{
  tt.func public @k(%x: !tt.ptr<i32>) {{
    %v = tt.load %x : !tt.ptr<i32>
    %a = tt.call @outer(%v) : (i32) -> i32
    %b = tt.call @inner(%a) : (i32) -> i32
    %c = tt.call @outer(%b) : (i32) -> i32
    tt.store %x, %c : !tt.ptr<i32>
    tt.return
  }}
  tt.func private @outer(%n: i32) -> i32 {{
    %a = tt.call @inner(%n) : (i32) -> i32
    %r = arith.muli %a, %n : i32
    tt.return %r : i32
  }}
  tt.func private @inner(%n: i32) -> i32 {{
    {}
    tt.return %r : i32
  }}
}}"""


def test_functions_are_called_again_but_not_by_themselves():
    x = np.full(1, 2, np.int32)
    text = CALLS.format("%one = arith.constant 1 : i32\n%r = arith.addi %n, %one : i32")
    xegpu_py.compile(text, cache="off")(x)
    # 2 becomes 3 times 2, this 7, and this 8 times 7.
    assert x[0] == 56
    with pytest.raises(xegpu_py.DiagnosticError, match="calls 'outer', which calls itself"):
        xegpu_py.compile(CALLS.format("%r = tt.call @outer(%n) : (i32) -> i32"), cache="off")


FUNCTIONS = {
    "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "acosh": np.arccosh, "asinh": np.arcsinh,
    "atanh": np.arctanh, "sinh": np.sinh, "cosh": np.cosh, "cbrt": np.cbrt,
    "erfc": np.vectorize(math.erfc), "sincos": (np.sin, np.cos),
}  # fmt: skip


def test_functions_that_programs_of_triton_call_by_their_symbols():
    lines = [f"%k16 = arith.constant dense<0.0625> : {F}", f"%small = arith.mulf %f, %k16 : {F}"]
    lines += [
        f"%size = math.absf %f : {F}",
        f"%u1 = arith.constant dense<1.0> : {F}",
        f"%big = arith.addf %size, %u1 : {F}",
    ]
    operands = {"acos": "small", "asin": "small", "atanh": "small", "acosh": "big"}
    results, wanted = [], []
    f = np.random.default_rng(5).uniform(-9, 9, N).astype(np.float32)
    values = {"f": f, "small": f / 16, "big": np.abs(f) + 1}
    for name, functions in FUNCTIONS.items():
        operand = operands.get(name, "f")
        both = functions if isinstance(functions, tuple) else (functions,)
        names = [f"%r{len(results) + i}" for i in range(len(both))]
        lines.append(f"{', '.join(names)} = math.{name} %{operand} : {F}")
        results += names
        wanted += [function(values[operand].astype(np.float64)) for function in both]
    for row, name in enumerate(results):
        lines += [
            f"%n{row} = arith.constant dense<{row * N}> : {T}", f"%o{row} = arith.addi %lane, %n{row} : {T}",
            f"%p{row} = tt.addptr %po, %o{row} : {P}, {T}", f"%b{row} = arith.bitcast {name} : {F} to {T}",
            f"tt.store %p{row}, %b{row} : {P}",
        ]  # fmt: skip
    out, ints = np.zeros((len(results), N), np.float32), np.zeros(N, np.int32)
    kernel = xegpu_py.compile(KERNEL.format(n=N, body="\n".join(lines)), cache="off")
    kernel(ints, ints, f, f, out.ravel().view(np.int32), 3)
    np.testing.assert_allclose(out, wanted, rtol=1e-6)
