"""Masks of any number of lanes: predicates have a power of two of bits, and instructions begin at every fourth lane."""

import numpy as np
import pytest

import xegpu_py

from .kernels import apply

COUNTS = [1, 2, 3, 5, 6, 7, 9, 11, 13, 15, 17, 18, 19, 21, 31, 33, 35, 50, 100]
DTYPES = {"i8": "i1", "i16": "i2", "i32": "i4", "f32": "f4", "f64": "f8"}


def numbers(count, dtype="i4"):
    return np.random.default_rng(count).integers(-5, 5, (2, count)).astype(dtype)


@pytest.mark.each_value
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("count", COUNTS)
def test_compare_combine_and_select(count, element):
    a, b = numbers(count, DTYPES[element])
    of, kind = f"vector<{count}x{element}>", element[0]
    body = f"""
        %s = arith.add{kind} %a0, %a1 : {of}
        %p = arith.cmp{kind} {"slt" if kind == "i" else "olt"}, %a0, %a1 : {of}
        %q = arith.cmp{kind} {"sgt" if kind == "i" else "ogt"}, %s, %a1 : {of}
        %pq = arith.xori %p, %q : vector<{count}xi1>
        %r = arith.select %pq, %s, %a1 : vector<{count}xi1>, {of}"""
    expected = np.where((a < b) ^ (a + b > b), a + b, b)
    np.testing.assert_array_equal(apply(body, of, [(of, a), (of, b)]), expected)


@pytest.mark.parametrize("count", [1, 7, 16, 35])
def test_one_condition_for_vectors_of_truth_values(count):
    a, b = numbers(count)
    of = f"vector<{count}xi32>"
    body = f"""
        %p = arith.cmpi slt, %a0, %a1 : {of}
        %q = arith.cmpi eq, %a0, %a1 : {of}
        %x = vector.extract %a0[0] : i32 from {of}
        %y = vector.extract %a1[0] : i32 from {of}
        %c = arith.cmpi sle, %x, %y : i32
        %s = arith.select %c, %p, %q : vector<{count}xi1>
        %r = arith.extui %s : vector<{count}xi1> to {of}"""
    for x, y in ((a, b), (b, a)):
        expected = x < y if x[0] <= y[0] else x == y
        np.testing.assert_array_equal(apply(body, of, [(of, x), (of, y)]), expected)


@pytest.mark.parametrize("count", [n for n in COUNTS if n > 4])
def test_parts_of_masks(count):
    a, b = numbers(count)
    of, part = f"vector<{count}xi32>", count - 3
    body = f"""
        %p = arith.cmpi slt, %a0, %a1 : {of}
        %h = vector.extract_strided_slice %p {{offsets = [3], sizes = [{part}], strides = [1]}}
          : vector<{count}xi1> to vector<{part}xi1>
        %r = arith.extui %h : vector<{part}xi1> to vector<{part}xi32>"""
    np.testing.assert_array_equal(apply(body, f"vector<{part}xi32>", [(of, a), (of, b)]), (a < b)[3:])


@pytest.mark.each_value
@pytest.mark.parametrize("bound", [0, 1, 3, 6, 14, 30])
@pytest.mark.parametrize("count", COUNTS)
def test_create_mask(count, bound):
    a, b = numbers(count)
    of = f"vector<{count}xi32>"
    body = f"""
        %n = arith.constant {bound} : index
        %p = vector.create_mask %n : vector<{count}xi1>
        %r = arith.select %p, %a0, %a1 : vector<{count}xi1>, {of}"""
    expected = np.where(np.arange(count) < bound, a, b)
    np.testing.assert_array_equal(apply(body, of, [(of, a), (of, b)]), expected)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["and", "or", "xor"])
@pytest.mark.parametrize("count", COUNTS)
def test_reductions(count, kind):
    # All set, none, and one that is not as the others, at the end.
    for values in (np.ones(count), np.zeros(count), np.arange(count) == count - 1, np.arange(count) != count - 1):
        of = f"vector<{count}xi32>"
        body = f"""
            %zero = arith.constant dense<0> : {of}
            %p = arith.cmpi ne, %a0, %zero : {of}
            %one = vector.reduction <{kind}>, %p : vector<{count}xi1> into i1
            %e = arith.extui %one : i1 to i32
            %r = vector.broadcast %e : i32 to vector<1xi32>"""
        found = apply(body, "vector<1xi32>", [(of, values.astype("i4"))])
        function = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[kind]
        assert bool(found[0]) == function.reduce(values.astype(bool))


@pytest.mark.parametrize("count", [17, 20, 24, 32, 33, 40])
def test_reductions_that_one_lane_decides(count):
    """Each lane in turn differs from all others; the last predicate has as many lanes as the others, or fewer."""
    rows, of = 2 * count, f"vector<{count}xi1>"
    text = f"""gpu.module @m {{ gpu.func @k(%a: memref<{rows}x{count}xi32>, %o: memref<2x{rows}xi32>) kernel {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %rows = arith.constant {rows} : index
        %zero = arith.constant dense<0> : vector<{count}xi32>
        scf.for %i = %c0 to %rows step %c1 {{
          %v = vector.load %a[%i, %c0] : memref<{rows}x{count}xi32>, vector<{count}xi32>
          %p = arith.cmpi ne, %v, %zero : vector<{count}xi32>
          %all = vector.reduction <and>, %p : {of} into i1
          %any = vector.reduction <or>, %p : {of} into i1
          %all32 = arith.extui %all : i1 to i32
          %any32 = arith.extui %any : i1 to i32
          memref.store %all32, %o[%c0, %i] : memref<2x{rows}xi32>
          memref.store %any32, %o[%c1, %i] : memref<2x{rows}xi32>
        }}
        gpu.return }} }}"""
    a, found = np.r_[np.eye(count), 1 - np.eye(count)].astype("i4"), np.zeros((2, rows), "i4")
    xegpu_py.compile(text, engine="both", cache="off")(a, found)
    np.testing.assert_array_equal(found, [a.all(1), a.any(1)])


@pytest.mark.parametrize("kind", ["and", "or", "xor", "add", "mul", "minui", "maxsi"])
@pytest.mark.parametrize("source", ["%p", "dense<true>", "dense<false>"])
def test_reductions_with_a_start(kind, source):
    """Of truth values and of constants, with a start of either value, dynamic or constant."""
    count = 5
    of, stores = f"vector<{count}xi1>", ""
    constant = f"%s = arith.constant {source} : {of}" if source[0] == "d" else ""
    starts = ("%yes", "%no", "%t", "%f")
    for i, start in enumerate(starts):
        stores += f"""
        %r{i} = vector.reduction <{kind}>, {"%s" if constant else source}, {start} : {of} into i1
        %w{i} = arith.extui %r{i} : i1 to i32
        %i{i} = arith.constant {i} : index
        memref.store %w{i}, %o[%i{i}] : memref<4xi32>"""
    text = f"""gpu.module @m {{ gpu.func @k(%a: memref<{count}xi32>, %one: i32, %o: memref<4xi32>) kernel {{
        %c0 = arith.constant 0 : index
        %zero = arith.constant dense<0> : vector<{count}xi32>
        %z = arith.constant 0 : i32
        %t = arith.constant true
        %f = arith.constant false
        %yes = arith.cmpi ne, %one, %z : i32
        %no = arith.cmpi eq, %one, %z : i32
        %v = vector.load %a[%c0] : memref<{count}xi32>, vector<{count}xi32>
        %p = arith.cmpi ne, %v, %zero : vector<{count}xi32>
        {constant} {stores}
        gpu.return }} }}"""
    # Signed, true is -1.
    functions = {**dict.fromkeys(("and", "mul", "minui", "maxsi"), np.all), "or": np.any}
    function = functions.get(kind, lambda values: values.sum() % 2)
    for a in np.array([[1, 1, 1, 1, 1], [0, 1, 1, 0, 1], [0, 0, 0, 0, 0]], "i4"):
        found = np.zeros(4, "i4")
        xegpu_py.compile(text, engine="both", cache="off")(a, 1, found)
        values = a if source == "%p" else np.full(count, source == "dense<true>", "i4")
        np.testing.assert_array_equal(found, [function(np.r_[values, s]) for s in (1, 0, 1, 0)])
