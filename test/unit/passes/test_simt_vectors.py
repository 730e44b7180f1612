"""Ops on the vectors of work items: each lane's are its own."""

from __future__ import annotations

import numpy as np
import pytest

import xegpu_py

ITEMS = 40
ITEM = np.arange(ITEMS)
LANE = ITEM % 16


def below() -> np.ndarray:
    """Which of the four elements of each lane are below the lane's number modulo 5."""
    return np.arange(4)[None] < (np.arange(ITEMS) % 16 % 5)[:, None]


def padded(x: np.ndarray) -> np.ndarray:
    """Rows from the last one backwards, two of them at a time, with sevens behind the last."""
    rows = np.concatenate([x, np.full((1, 4), 7, np.float32)])
    return np.stack([rows[i : i + 2].T for i in range(ITEMS)])[::-1]


def shuffled_by_table(x: np.ndarray) -> np.ndarray:
    table = np.array([3, 2, 1, 0, 7, 7, 99, 5, 0, 8, 0, 0, 15, 14, 13, 12])[LANE]
    lane = np.where(table < 16, np.arange(ITEMS) // 16 * 16 + table, 0)
    return np.where(table < 16, x[lane, 1], np.float32(7))


def scattered(x: np.ndarray) -> np.ndarray:
    """Masked elements negated, and then put where the places say."""
    found = np.where(below(), -x, x)
    moved = found.copy()
    for i in range(ITEMS):
        for n, place in enumerate([3, 1, 0, 2]):
            if below()[i, n]:
                moved[i, place] = found[i, n]
    return moved


CASES = {
    "reduction": (
        "%r = vector.reduction <add>, %x : vector<4xf32> into f32\n%y = vector.broadcast %r : f32 to vector<4xf32>",
        lambda x: np.repeat(((x[:, 0] + x[:, 2]) + (x[:, 1] + x[:, 3]))[:, None], 4, 1),
    ),
    "reduction of three": (
        "%t = vector.extract_strided_slice %x {offsets = [1], sizes = [3], strides = [1]} "
        ": vector<4xf32> to vector<3xf32>\n"
        "%r = vector.reduction <maximumf>, %t : vector<3xf32> into f32\n"
        "%y = vector.broadcast %r : f32 to vector<4xf32>",
        lambda x: np.repeat(x[:, 1:].max(1)[:, None], 4, 1),
    ),
    "transpose": (
        "%m = vector.shape_cast %x : vector<4xf32> to vector<2x2xf32>\n"
        "%t = vector.transpose %m, [1, 0] : vector<2x2xf32> to vector<2x2xf32>\n"
        "%y = vector.shape_cast %t : vector<2x2xf32> to vector<4xf32>",
        lambda x: x[:, [0, 2, 1, 3]],
    ),
    "bitcast": (
        "%i = vector.bitcast %x : vector<4xf32> to vector<8xi16>\n"
        "%c = arith.constant dense<[1, 0, 2, 0, 3, 0, 4, 0]> : vector<8xi16>\n"
        "%a = arith.addi %i, %c : vector<8xi16>\n"
        "%y = vector.bitcast %a : vector<8xi16> to vector<4xf32>",
        lambda x: (x.view(np.uint16).reshape(-1, 8) + np.array([1, 0, 2, 0, 3, 0, 4, 0], np.uint16)).view(np.float32),
    ),
    "shuffle": (
        "%y = vector.shuffle %x, %x [3, 2, 5, 0] : vector<4xf32>, vector<4xf32>",
        lambda x: x[:, [3, 2, 1, 0]],
    ),
    "interleave": (
        "%a = vector.extract_strided_slice %x {offsets = [0], sizes = [2], strides = [1]} "
        ": vector<4xf32> to vector<2xf32>\n"
        "%b = vector.extract_strided_slice %x {offsets = [2], sizes = [2], strides = [1]} "
        ": vector<4xf32> to vector<2xf32>\n"
        "%y = vector.interleave %a, %b : vector<2xf32> -> vector<4xf32>",
        lambda x: x[:, [0, 2, 1, 3]],
    ),
    "deinterleave": (
        "%a, %b = vector.deinterleave %x : vector<4xf32> -> vector<2xf32>\n"
        "%z = arith.constant dense<0.0> : vector<4xf32>\n"
        "%c = vector.insert_strided_slice %a, %z {offsets = [2], strides = [1]} : vector<2xf32> into vector<4xf32>\n"
        "%y = vector.insert_strided_slice %b, %c {offsets = [0], strides = [1]} : vector<2xf32> into vector<4xf32>",
        lambda x: x[:, [1, 3, 0, 2]],
    ),
    "elements": (
        "%a, %b, %c, %d = vector.to_elements %x : vector<4xf32>\n"
        "%n = arith.negf %a : f32\n"
        "%y = vector.from_elements %d, %c, %n, %f : vector<4xf32>",
        lambda x: np.stack([x[:, 3], x[:, 2], -x[:, 0], np.full(ITEMS, 7, np.float32)], 1),
    ),
    "insert and extract": (
        "%a = vector.extract %x[2] : f32 from vector<4xf32>\n%y = vector.insert %a, %x[0] : f32 into vector<4xf32>",
        lambda x: np.stack([x[:, 2], x[:, 1], x[:, 2], x[:, 3]], 1),
    ),
    "uniform vectors": (
        "%c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>\n%y = arith.addf %x, %c : vector<4xf32>",
        lambda x: x + np.array([1, 2, 3, 4], np.float32),
    ),
    "fma": (
        "%s = vector.broadcast %f : f32 to vector<4xf32>\n%y = vector.fma %x, %s, %x : vector<4xf32>",
        lambda x: (x.astype(np.float64) * 7 + x).astype(np.float32),
    ),
    "mask": (
        "%k = arith.remui %lane, %c5 : index\n%m = vector.create_mask %k : vector<4xi1>\n"
        "%z = arith.constant dense<0.0> : vector<4xf32>\n"
        "%y = arith.select %m, %x, %z : vector<4xi1>, vector<4xf32>",
        lambda x: np.where(np.arange(4)[None] < (np.arange(ITEMS) % 16 % 5)[:, None], x, 0),
    ),
    "choice of a lane": (
        "%k = arith.remui %lane, %c5 : index\n%odd = arith.cmpi eq, %k, %c1 : index\n"
        "%n = arith.negf %x : vector<4xf32>\n%y = arith.select %odd, %x, %n : vector<4xf32>",
        lambda x: np.where((np.arange(ITEMS) % 16 % 5 == 1)[:, None], x, -x),
    ),
    "rows and columns": (
        "%m = vector.shape_cast %x : vector<4xf32> to vector<2x2xf32>\n"
        "%z = arith.constant dense<0.0> : vector<2xf32>\n"
        "%r = vector.multi_reduction <add>, %m, %z [1] : vector<2x2xf32> to vector<2xf32>\n"
        "%b = vector.broadcast %r : vector<2xf32> to vector<2x2xf32>\n"
        "%y = vector.shape_cast %b : vector<2x2xf32> to vector<4xf32>",
        lambda x: np.tile(x.reshape(-1, 2, 2).sum(2), (1, 2)),
    ),
    "shared memory": (
        "%s = memref.alloca() : memref<64xf32, 3>\n"
        "%e = vector.extract %x[1] : f32 from vector<4xf32>\n"
        "memref.store %e, %s[%item] : memref<64xf32, 3>\n"
        "gpu.barrier\n"
        "%last = arith.constant 39 : index\n"
        "%o = arith.subi %last, %item : index\n"
        "%g = memref.load %s[%o] : memref<64xf32, 3>\n"
        "%y = vector.broadcast %g : f32 to vector<4xf32>",
        lambda x: np.repeat(x[::-1, 1:2], 4, 1),
    ),
    "broadcast by one lane": (
        "%e = vector.extract %x[1] : f32 from vector<4xf32>\n"
        "%three = arith.constant 3 : i32\n"
        "%g = gpu.subgroup_broadcast %e, specific_lane %three : f32\n"
        "%y = vector.broadcast %g : f32 to vector<4xf32>",
        lambda x: np.repeat(x[np.arange(ITEMS) // 16 * 16 + 3, 1:2], 4, 1),
    ),
    "clusters": (
        "%e = vector.extract %x[0] : f32 from vector<4xf32>\n"
        "%g = gpu.subgroup_reduce minimumf %e cluster(size = 4) : (f32) -> f32\n"
        "%y = vector.broadcast %g : f32 to vector<4xf32>",
        lambda x: np.repeat(np.repeat(x[:, 0].reshape(-1, 4).min(1), 4)[:, None], 4, 1),
    ),
    "transfers": (
        "%seven = arith.constant 7.0 : f32\n"
        "%b = arith.subi %c39, %item : index\n"
        "%t = vector.transfer_read %in[%b, %c1], %seven : memref<?x4xf32>, vector<2x2xf32>\n"
        "%u = vector.transfer_read %in[%b, %c1], %seven "
        "{in_bounds = [true, true], permutation_map = affine_map<(a, b) -> (b, 0)>} "
        ": memref<?x4xf32>, vector<2x2xf32>\n"
        "%s = arith.addf %t, %u : vector<2x2xf32>\n"
        "%y = vector.shape_cast %s : vector<2x2xf32> to vector<4xf32>",
        lambda x: padded(x)[:, 1:3].transpose(0, 2, 1).reshape(ITEMS, 4) + np.repeat(x[::-1, 1:3], 2, 1),
    ),
    "writes": (
        "%two = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : vector<2x2xf32>\n"
        "%w = arith.constant 2 : index\n"
        "%s = memref.alloca() : memref<80x4xf32, 3>\n"
        "%d = arith.muli %item, %w : index\n"
        "vector.store %x, %s[%d, %c0] : memref<80x4xf32, 3>, vector<4xf32>\n"
        "vector.transfer_write %two, %s[%d, %c3] {in_bounds = [true, false]} : vector<2x2xf32>, memref<80x4xf32, 3>\n"
        "%y = vector.load %s[%d, %c0] : memref<80x4xf32, 3>, vector<4xf32>",
        lambda x: np.concatenate([x[:, :3], np.ones((ITEMS, 1), np.float32)], 1),
    ),
    "gathers": (
        "%p = arith.constant dense<[3, 1, 0, 2]> : vector<4xindex>\n"
        "%k = arith.remui %lane, %c5 : index\n%m = vector.create_mask %k : vector<4xi1>\n"
        "%y = vector.gather %in[%item, %c0] [%p], %m, %x "
        ": memref<?x4xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>",
        lambda x: np.where(below(), x[:, [3, 1, 0, 2]], x),
    ),
    "masked accesses": (
        "%k = arith.remui %lane, %c5 : index\n%m = vector.create_mask %k : vector<4xi1>\n"
        "%n = arith.negf %x : vector<4xf32>\n"
        "%s = memref.alloca() : memref<40x4xf32, 3>\n"
        "vector.store %x, %s[%item, %c0] : memref<40x4xf32, 3>, vector<4xf32>\n"
        "vector.maskedstore %s[%item, %c0], %m, %n : memref<40x4xf32, 3>, vector<4xi1>, vector<4xf32>\n"
        "%p = arith.constant dense<[3, 1, 0, 2]> : vector<4xindex>\n"
        "%o = vector.maskedload %s[%item, %c0], %m, %x : memref<40x4xf32, 3>, vector<4xi1>, vector<4xf32> "
        "into vector<4xf32>\n"
        "vector.scatter %s[%item, %c0] [%p], %m, %o "
        ": memref<40x4xf32, 3>, vector<4xindex>, vector<4xi1>, vector<4xf32>\n"
        "%y = vector.load %s[%item, %c0] : memref<40x4xf32, 3>, vector<4xf32>",
        lambda x: scattered(x),
    ),
    "a place that follows from the lane": (
        "%p = arith.divui %lane, %c5 : index\n"
        "%e = vector.extract %x[%p] : f32 from vector<4xf32>\n"
        "%y = vector.broadcast %e : f32 to vector<4xf32>",
        lambda x: np.repeat(x[ITEM, LANE // 5][:, None], 4, 1),
    ),
    "a place of its own for each lane": (
        "%m = vector.broadcast %x : vector<4xf32> to vector<4x4xf32>\n"
        "%t = vector.transpose %m, [1, 0] : vector<4x4xf32> to vector<4x4xf32>\n"
        "%l = vector.shape_cast %t : vector<4x4xf32> to vector<16xf32>\n"
        "%e = vector.extract %l[%lane] : f32 from vector<16xf32>\n"
        "%r = vector.shape_cast %t : vector<4x4xf32> to vector<8x2xf32>\n"
        "%h = arith.divui %lane, %c2 : index\n"
        "%g = vector.extract %r[%h] : vector<2xf32> from vector<8x2xf32>\n"
        "%w = vector.broadcast %e : f32 to vector<2xf32>\n"
        "%i = vector.interleave %w, %g : vector<2xf32> -> vector<4xf32>\n"
        "%y = vector.shuffle %i, %i [0, 2, 1, 3] : vector<4xf32>, vector<4xf32>",
        lambda x: np.repeat(x[ITEM, LANE // 4][:, None], 4, 1),
    ),
    "rows at a place that follows from the lane": (
        "%p = arith.andi %lane, %c1 : index\n"
        "%m = vector.shape_cast %x : vector<4xf32> to vector<2x2xf32>\n"
        "%e = vector.extract %m[%p] : vector<2xf32> from vector<2x2xf32>\n"
        "%w = vector.broadcast %e : vector<2xf32> to vector<2x2xf32>\n"
        "%y = vector.shape_cast %w : vector<2x2xf32> to vector<4xf32>",
        lambda x: np.tile(x.reshape(-1, 2, 2)[ITEM, LANE % 2], 2),
    ),
    "a place that is known as it runs": (
        "%p = arith.remui %item, %c3 : index\n"
        "%m = vector.shape_cast %x : vector<4xf32> to vector<2x2xf32>\n"
        "%q = arith.remui %item, %c2 : index\n"
        "%e = vector.extract %x[%p] : f32 from vector<4xf32>\n"
        "%g = vector.extract %m[%q, 1] : f32 from vector<2x2xf32>\n"
        "%s = arith.addf %e, %g : f32\n"
        "%y = vector.broadcast %s : f32 to vector<4xf32>",
        lambda x: np.repeat((x[ITEM, ITEM % 3] + x[:, 1::2][ITEM, ITEM % 2])[:, None], 4, 1),
    ),
    "a table": (
        "%t = arith.constant dense<[[1.5, 2.5], [3.5, 4.5], [-1.0, 0.0]]> : vector<3x2xf32>\n"
        "%p = arith.remui %lane, %c3 : index\n"
        "%e = vector.extract %t[%p] : vector<2xf32> from vector<3x2xf32>\n"
        "%w = vector.broadcast %e : vector<2xf32> to vector<2x2xf32>\n"
        "%y = vector.shape_cast %w : vector<2x2xf32> to vector<4xf32>",
        lambda x: np.tile(np.array([[1.5, 2.5], [3.5, 4.5], [-1, 0]], np.float32)[LANE % 3], 2),
    ),
    "the same vector at other places": (
        "%u = vector.load %in[%c3, %c0] : memref<?x4xf32>, vector<4xf32>\n"
        "%p = arith.andi %lane, %c3 : index\n"
        "%q = arith.andi %item, %c1 : index\n"
        "%e = vector.extract %u[%p] : f32 from vector<4xf32>\n"
        "%g = vector.extract %u[%q] : f32 from vector<4xf32>\n"
        "%y = vector.from_elements %e, %g, %e, %g : vector<4xf32>",
        lambda x: np.tile(np.stack([x[3, LANE % 4], x[3, ITEM % 2]], 1), 2),
    ),
    "insertion at a place that follows from the lane": (
        "%p = arith.andi %lane, %c3 : index\n%y = vector.insert %f, %x[%p] : f32 into vector<4xf32>",
        lambda x: np.where(np.arange(4) == LANE[:, None] % 4, np.float32(7), x),
    ),
    "insertion at a place that is known as it runs": (
        "%p = arith.remui %item, %c3 : index\n%y = vector.insert %f, %x[%p] : f32 into vector<4xf32>",
        lambda x: np.where(np.arange(4) == ITEM[:, None] % 3, np.float32(7), x),
    ),
    "shuffle by a table": (
        "%t = arith.constant dense<[3, 2, 1, 0, 7, 7, 99, 5, 0, 8, 0, 0, 15, 14, 13, 12]> : vector<16xi32>\n"
        "%p = vector.extract %t[%lane] : i32 from vector<16xi32>\n"
        "%w = arith.constant 16 : i32\n"
        "%e = vector.extract %x[1] : f32 from vector<4xf32>\n"
        "%g, %v = gpu.shuffle idx %e, %p, %w : f32\n"
        "%z = arith.select %v, %g, %f : f32\n"
        "%y = vector.broadcast %z : f32 to vector<4xf32>",
        lambda x: np.repeat(shuffled_by_table(x)[:, None], 4, 1),
    ),
    "shuffle by arithmetic on the lane": (
        "%l = arith.index_cast %lane : index to i32\n"
        "%five = arith.constant 5 : i32\n"
        "%p = arith.muli %l, %five : i32\n"
        "%eight = arith.constant 8 : i32\n"
        "%q = arith.remui %p, %eight : i32\n"
        "%e = vector.extract %x[0] : f32 from vector<4xf32>\n"
        "%g, %v = gpu.shuffle idx %e, %q, %eight : f32\n"
        "%y = vector.broadcast %g : f32 to vector<4xf32>",
        lambda x: np.repeat(x[ITEM // 8 * 8 + LANE * 5 % 8, 0:1], 4, 1),
    ),
    "broadcast of a lane's vector": (
        "%l = arith.constant 2 : i32\n%y = gpu.subgroup_broadcast %x, specific_lane %l : vector<4xf32>",
        lambda x: x[ITEM // 16 * 16 + 2],
    ),
    "shuffle of a vector from one lane": (
        "%l = arith.constant 2 : i32\n%w = arith.constant 16 : i32\n"
        "%y, %v = gpu.shuffle idx %x, %l, %w : vector<4xf32>",
        lambda x: x[ITEM // 16 * 16 + 2],
    ),
    "the number of lanes": (
        "%n = gpu.subgroup_size : index\n%i = arith.index_cast %n : index to i32\n"
        "%e = arith.sitofp %i : i32 to f32\n%y = vector.broadcast %e : f32 to vector<4xf32>",
        lambda x: np.full_like(x, 16),
    ),
    "a vector without dimensions": (
        "%v = vector.transfer_read %in[%item, %c1], %f : memref<?x4xf32>, vector<f32>\n"
        "%e = vector.extract %v[] : f32 from vector<f32>\n%y = vector.broadcast %e : f32 to vector<4xf32>",
        lambda x: np.repeat(x[:, 1:2], 4, 1),
    ),
    "rotation": (
        "%e = vector.extract %x[0] : f32 from vector<4xf32>\n"
        "%g, %v = gpu.rotate %e, 3, 8 : f32\n"
        "%y = vector.broadcast %g : f32 to vector<4xf32>",
        lambda x: np.repeat(x[np.arange(ITEMS) // 8 * 8 + (np.arange(ITEMS) + 3) % 8, 0:1], 4, 1),
    ),
}


def kernel(body: str) -> str:
    return f"""gpu.module @k {{
  gpu.func @f(%in: memref<?x4xf32>, %out: memref<?x4xf32>, %f: f32)
      kernel attributes {{xegpu.subgroup_size = 16 : i32}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c5 = arith.constant 5 : index
    %c39 = arith.constant 39 : index
    %lane = gpu.lane_id
    %item = gpu.thread_id x
    %x = vector.load %in[%item, %c0] : memref<?x4xf32>, vector<4xf32>
    {body}
    vector.store %y, %out[%item, %c0] : memref<?x4xf32>, vector<4xf32>
    gpu.return
  }}
}}"""


@pytest.mark.parametrize("name", CASES)
def test_vectors_of_work_items(name):
    body, rule = CASES[name]
    x = np.random.default_rng(5).standard_normal((ITEMS, 4)).astype(np.float32)
    out = np.zeros_like(x)
    xegpu_py.compile(kernel(body))(x, out, np.float32(7), block=ITEMS)
    np.testing.assert_array_equal(out, rule(x))
