"""Kernels of the vector dialect with layouts, distributed, lowered, and run on the simulated machine."""

import re

import numpy as np
import pytest
from effort import examples

import xegpu_py
from xegpu_py.runtime.host_arrays import DTYPES

from .lanes import Workgroup
from .layout_programs import OWN, SHARED, Program, make
from .single import butterfly, exp


def kernel_of(program):
    """The program as a kernel."""
    head, _, body = program.text.partition(" {\n")
    size = f"known_block_size = array<i32: {program.subgroups * program.lanes}, 1, 1>"
    head = head.replace("func.func", "gpu.func")
    body = re.sub(r"\breturn\n", "gpu.return\n", body)
    return f"gpu.module @kernels {{\n{head} kernel attributes {{{size}}} {{\n{body}}}\n"


def run(text, arrays, subgroups, lanes):
    """Distribute a kernel, compile it, and run one workgroup."""
    module = xegpu_py.parse(text)
    xegpu_py.run_pipeline(module, f"builtin.module(vector-distribute{{subgroup-size={lanes}}},canonicalize,cse)")
    compiled = xegpu_py.compile(str(module), target="pvcxt", check="races")
    compiled(*arrays, grid=(1,), block=(subgroups * lanes,))


@pytest.mark.parametrize("kind", [*SHARED, *OWN], ids=lambda kind: kind.__name__)
def test_random_kernels(kind):
    for seed in range(examples(4)):
        program = make(kind, seed, writes_result=True)
        expected, arrays = ([a.copy() for a in program.arrays] for _ in range(2))
        module = xegpu_py.parse(program.text)
        (func,) = [op.operation for op in module.ops() if op.operation.name == "func.func"]
        Workgroup().run(func, expected)
        run(kernel_of(program), arrays, program.subgroups, program.lanes)
        for a, b in zip(expected, arrays):
            assert np.array_equal(a, b)


def nested(subgroup, batch, thread, element, subgroup_strides, thread_strides):
    lists = {
        "subgroup_tile": subgroup, "batch_tile": batch, "outer_tile": [1] * len(batch), "thread_tile": thread,
        "element_tile": element, "subgroup_strides": subgroup_strides, "thread_strides": thread_strides,
    }  # fmt: skip
    return f"#iree_vector_ext.nested_layout<{', '.join(f'{k} = {list(v)}' for k, v in lists.items())}>"


@pytest.mark.parametrize("subgroups", [1, 2, 4])
def test_row_softmax(subgroups):
    layout = nested([subgroups, 1], [8 // subgroups, 2], [1, 16], [1, 1], [1, 0], [0, 1])
    text = f"""
      func.func @run(%from: memref<8x32xf32>, %to: memref<8x32xf32>) {{
        %c0 = arith.constant 0 : index
        %zero = arith.constant 0.0 : f32
        %none = arith.constant dense<0xFF800000> : vector<8xf32>
        %nil = arith.constant dense<0.0> : vector<8xf32>
        %read = vector.transfer_read %from[%c0, %c0], %zero {{in_bounds = [true, true]}}
          : memref<8x32xf32>, vector<8x32xf32>
        %x = iree_vector_ext.to_layout %read to layout({layout}) : vector<8x32xf32>
        %most = vector.multi_reduction <maximumf>, %x, %none [1] : vector<8x32xf32> to vector<8xf32>
        %wide = vector.broadcast %most : vector<8xf32> to vector<32x8xf32>
        %back = vector.transpose %wide, [1, 0] : vector<32x8xf32> to vector<8x32xf32>
        %less = arith.subf %x, %back : vector<8x32xf32>
        %e = math.exp %less : vector<8x32xf32>
        %sum = vector.multi_reduction <add>, %e, %nil [1] : vector<8x32xf32> to vector<8xf32>
        %wide2 = vector.broadcast %sum : vector<8xf32> to vector<32x8xf32>
        %back2 = vector.transpose %wide2, [1, 0] : vector<32x8xf32> to vector<8x32xf32>
        %y = arith.divf %e, %back2 : vector<8x32xf32>
        vector.transfer_write %y, %to[%c0, %c0] {{in_bounds = [true, true]}} : vector<8x32xf32>, memref<8x32xf32>
        return
      }}
"""
    x = np.random.default_rng(0).standard_normal((8, 32)).astype(np.float32)
    y = np.zeros_like(x)
    run(kernel_of(Program(text, [x, y], subgroups, 16)), [x, y], subgroups, 16)
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    assert np.allclose(y, exact, rtol=1e-6, atol=0)
    # To the bit: a lane adds its two batches, then lanes are added.
    powers = exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_array_equal(y, powers / butterfly(powers[:, :16] + powers[:, 16:]))


@pytest.mark.parametrize("subgroups", [1, 2, 4])
def test_reduction_of_both_dimensions(subgroups):
    """Column sums, which go over subgroups, and the sum of all."""
    layout = nested([subgroups, 1], [8 // subgroups, 1], [2, 8], [1, 4], [1, 0], [8, 1])
    text = f"""
      func.func @run(%from: memref<16x32xi32>, %columns: memref<32xi32>, %total: memref<1xi32>) {{
        %c0 = arith.constant 0 : index
        %zero = arith.constant 0 : i32
        %nil = arith.constant dense<0> : vector<32xi32>
        %read = vector.transfer_read %from[%c0, %c0], %zero {{in_bounds = [true, true]}}
          : memref<16x32xi32>, vector<16x32xi32>
        %x = iree_vector_ext.to_layout %read to layout({layout}) : vector<16x32xi32>
        %sums = vector.multi_reduction <add>, %x, %nil [0] : vector<16x32xi32> to vector<32xi32>
        vector.transfer_write %sums, %columns[%c0] {{in_bounds = [true]}} : vector<32xi32>, memref<32xi32>
        %all = vector.multi_reduction <add>, %x, %zero [0, 1] : vector<16x32xi32> to i32
        memref.store %all, %total[%c0] : memref<1xi32>
        return
      }}
"""
    x = np.random.default_rng(0).integers(-(1 << 31), 1 << 31, (16, 32)).astype(np.int32)
    columns, total = np.zeros(32, np.int32), np.zeros(1, np.int32)
    run(kernel_of(Program(text, [x, columns, total], subgroups, 16)), [x, columns, total], subgroups, 16)
    assert np.array_equal(columns, x.sum(axis=0, dtype=np.int32))
    assert total[0] == x.sum(dtype=np.int32)


@pytest.mark.parametrize("subgroups", [1, 2, 4])
def test_matmul(subgroups):
    """Small integers in f32, so that every sum is exact."""
    rows = 16 * subgroups
    a_layout = nested([subgroups, 1], [1, 1], [8, 1], [2, 16], [1, 0], [2, 0])
    b_layout = nested([1, 1], [1, 1], [1, 2], [16, 8], [0, 0], [0, 1])
    c_layout = nested([subgroups, 1], [1, 1], [8, 2], [2, 8], [1, 0], [2, 1])
    tile, square = f"{rows}x16xf32", "16x16xf32"
    text = f"""
      func.func @run(%a: memref<{tile}>, %b: memref<{square}>, %c: memref<{tile}>) {{
        %c0 = arith.constant 0 : index
        %pad = arith.constant 0.0 : f32
        %zero = arith.constant dense<0.0> : vector<{tile}>
        %x = vector.transfer_read %a[%c0, %c0], %pad {{in_bounds = [true, true]}} : memref<{tile}>, vector<{tile}>
        %y = vector.transfer_read %b[%c0, %c0], %pad {{in_bounds = [true, true]}} : memref<{square}>, vector<{square}>
        %l = iree_vector_ext.to_layout %x to layout({a_layout}) : vector<{tile}>
        %r = iree_vector_ext.to_layout %y to layout({b_layout}) : vector<{square}>
        %z = iree_vector_ext.to_layout %zero to layout({c_layout}) : vector<{tile}>
        %m = vector.contract {{
          indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                           affine_map<(m, n, k) -> (m, n)>],
          iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>
        }} %l, %r, %z : vector<{tile}>, vector<{square}> into vector<{tile}>
        vector.transfer_write %m, %c[%c0, %c0] {{in_bounds = [true, true]}} : vector<{tile}>, memref<{tile}>
        return
      }}
"""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((rows, 16), (16, 16)))
    c = np.zeros((rows, 16), np.float32)
    run(kernel_of(Program(text, [a, b, c], subgroups, 16)), [a, b, c], subgroups, 16)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("element", ["f16", "bf16", "f8E5M2"])
def test_constants_of_small_floats(element):
    """One row of a table for each lane of each subgroup, and the exchange of elements for the store's layout."""
    numbers = [(i * 5 % 64 - 30) / 4 for i in range(64)]
    blocked, cyclic = nested([2], [1], [16], [2], [1], [1]), nested([2], [2], [16], [1], [1], [1])
    text = f"""
      func.func @run(%to: memref<64x{element}>) {{
        %c0 = arith.constant 0 : index
        %table = arith.constant dense<{numbers}> : vector<64x{element}>
        %x = iree_vector_ext.to_layout %table to layout({blocked}) : vector<64x{element}>
        %one = vector.shape_cast %x : vector<64x{element}> to vector<1x64x{element}>
        %back = vector.shape_cast %one : vector<1x64x{element}> to vector<64x{element}>
        %y = iree_vector_ext.to_layout %back to layout({cyclic}) : vector<64x{element}>
        vector.transfer_write %y, %to[%c0] {{in_bounds = [true]}} : vector<64x{element}>, memref<64x{element}>
        return
      }}
"""
    out = np.zeros(64, DTYPES[element])
    run(kernel_of(Program(text, [out], 2, 16)), [out], 2, 16)
    np.testing.assert_array_equal(out, np.array(numbers).astype(out.dtype))


BLOCKED, CYCLIC = nested([2], [1], [16], [2], [1], [1]), nested([2], [2], [16], [1], [1], [1])


@pytest.mark.parametrize("element", ["i8", "i16", "i64", "f16", "bf16", "f64"])
def test_lanes_hand_each_other_any_type(element):
    """Pairs of neighbours are distributed one by one."""
    text = f"""
      func.func @run(%from: memref<64x{element}>, %to: memref<64x{element}>) {{
        %c0 = arith.constant 0 : index
        %pad = arith.constant {"0" if element[0] == "i" else "0.0"} : {element}
        %x = vector.transfer_read %from[%c0], %pad {{in_bounds = [true]}} : memref<64x{element}>, vector<64x{element}>
        %pairs = iree_vector_ext.to_layout %x to layout({BLOCKED}) : vector<64x{element}>
        %ones = iree_vector_ext.to_layout %pairs to layout({CYCLIC}) : vector<64x{element}>
        vector.transfer_write %ones, %to[%c0] {{in_bounds = [true]}} : vector<64x{element}>, memref<64x{element}>
        return
      }}
"""
    given = np.random.default_rng(2).integers(-100, 100, 64).astype(DTYPES[element])
    out = np.zeros_like(given)
    run(kernel_of(Program(text, [given, out], 2, 16)), [given, out], 2, 16)
    np.testing.assert_array_equal(out, given)


def test_lanes_hand_each_other_truth_values_and_indices():
    text = f"""
      func.func @run(%from: memref<64xi32>, %to: memref<64xi32>, %places: memref<64xi32>) {{
        %c0 = arith.constant 0 : index
        %pad = arith.constant 0 : i32
        %none = arith.constant dense<-1> : vector<64xi32>
        %x = vector.transfer_read %from[%c0], %pad {{in_bounds = [true]}} : memref<64xi32>, vector<64xi32>
        %pairs = iree_vector_ext.to_layout %x to layout({BLOCKED}) : vector<64xi32>
        %positive = arith.cmpi sgt, %pairs, %none : vector<64xi32>
        %flags = iree_vector_ext.to_layout %positive to layout({CYCLIC}) : vector<64xi1>
        %y = iree_vector_ext.to_layout %pairs to layout({CYCLIC}) : vector<64xi32>
        %z = arith.select %flags, %y, %none : vector<64xi1>, vector<64xi32>
        vector.transfer_write %z, %to[%c0] {{in_bounds = [true]}} : vector<64xi32>, memref<64xi32>
        %index = arith.index_cast %pairs : vector<64xi32> to vector<64xindex>
        %moved = iree_vector_ext.to_layout %index to layout({CYCLIC}) : vector<64xindex>
        %back = arith.index_cast %moved : vector<64xindex> to vector<64xi32>
        vector.transfer_write %back, %places[%c0] {{in_bounds = [true]}} : vector<64xi32>, memref<64xi32>
        return
      }}
"""
    given = np.random.default_rng(2).integers(-100, 100, 64).astype(np.int32)
    out, places = np.zeros_like(given), np.zeros_like(given)
    run(kernel_of(Program(text, [given, out, places], 2, 16)), [given, out, places], 2, 16)
    np.testing.assert_array_equal(out, np.maximum(given, -1))
    np.testing.assert_array_equal(places, given)
