"""Masks of any number of lanes: predicates have a power of two of bits, and instructions begin at every fourth lane."""

import numpy as np
import pytest

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
