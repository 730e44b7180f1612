"""Kernels that upstream's own passes lower: the bytes are those of our lowering."""

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py import parse
from xegpu_py.ir.diagnostics import DiagnosticError, Position, Source
from xegpu_py.upstream import import_upstream, importer, lower_by_upstream
from xegpu_py.upstream.importer import pipeline


def kernel(arguments, body, attributes=""):
    """A module with a kernel, which has constants, and of its workgroup the ids and the place of a block of 8 x 16."""
    return f"""
gpu.module @kernels {{
  gpu.func @kernel({arguments}) kernel {attributes} {{
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %x, %c8 : index
    %n = arith.muli %y, %c16 : index
{body}
    gpu.return
  }}
}}
"""


GEMM_F16_OF_LANES = kernel(
    "%a: memref<32x64xf16>, %b: memref<64x32xf16>, %c: memref<32x32xf32>",
    """
    %da = xegpu.create_nd_tdesc %a : memref<32x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %db = xegpu.create_nd_tdesc %b : memref<64x32xf16> -> !xegpu.tensor_desc<16x16xf16>
    %dc = xegpu.create_nd_tdesc %c : memref<32x32xf32> -> !xegpu.tensor_desc<8x16xf32>
    %zero = xegpu.load_nd %dc[%m, %n] : !xegpu.tensor_desc<8x16xf32> -> vector<8xf32>
    %sum = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %zero) -> (vector<8xf32>) {
      %va = xegpu.load_nd %da[%m, %k] : !xegpu.tensor_desc<8x16xf16> -> vector<8xf16>
      %vb = xegpu.load_nd %db[%k, %n] <{packed}> : !xegpu.tensor_desc<16x16xf16> -> vector<16xf16>
      %next = xegpu.dpas %va, %vb, %acc : vector<8xf16>, vector<16xf16>, vector<8xf32> -> vector<8xf32>
      scf.yield %next : vector<8xf32>
    }
    xegpu.store_nd %sum, %dc[%m, %n] : vector<8xf32>, !xegpu.tensor_desc<8x16xf32>""",
)

GEMM_BF16 = kernel(
    "%a: memref<32x64xbf16>, %b: memref<64x32xbf16>, %c: memref<32x32xf32>",
    """
    %da = xegpu.create_nd_tdesc %a : memref<32x64xbf16> -> !xegpu.tensor_desc<8x16xbf16>
    %db = xegpu.create_nd_tdesc %b : memref<64x32xbf16> -> !xegpu.tensor_desc<16x16xbf16>
    %dc = xegpu.create_nd_tdesc %c : memref<32x32xf32> -> !xegpu.tensor_desc<8x16xf32>
    %zero = xegpu.load_nd %dc[%m, %n] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %sum = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %zero) -> (vector<8x16xf32>) {
      xegpu.prefetch_nd %da[%m, %k] : !xegpu.tensor_desc<8x16xbf16>
      %va = xegpu.load_nd %da[%m, %k] : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
      %vb = xegpu.load_nd %db[%k, %n] : !xegpu.tensor_desc<16x16xbf16> -> vector<16x16xbf16>
      %next = xegpu.dpas %va, %vb, %acc : vector<8x16xbf16>, vector<16x16xbf16>, vector<8x16xf32> -> vector<8x16xf32>
      scf.yield %next : vector<8x16xf32>
    }
    xegpu.store_nd %sum, %dc[%m, %n] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>""",
)

GEMM_I8 = kernel(
    "%a: memref<8x64xi8>, %b: memref<64x16xi8>, %c: memref<8x16xi32>",
    """
    %da = xegpu.create_nd_tdesc %a : memref<8x64xi8> -> !xegpu.tensor_desc<8x32xi8>
    %db = xegpu.create_nd_tdesc %b : memref<64x16xi8> -> !xegpu.tensor_desc<32x16xi8>
    %dc = xegpu.create_nd_tdesc %c : memref<8x16xi32> -> !xegpu.tensor_desc<8x16xi32>
    %zero = arith.constant dense<0> : vector<8x16xi32>
    %sum = scf.for %k = %c0 to %c64 step %c32 iter_args(%acc = %zero) -> (vector<8x16xi32>) {
      %va = xegpu.load_nd %da[%c0, %k] : !xegpu.tensor_desc<8x32xi8> -> vector<8x32xi8>
      %vb = xegpu.load_nd %db[%k, %c0] : !xegpu.tensor_desc<32x16xi8> -> vector<32x16xi8>
      %next = xegpu.dpas %va, %vb, %acc : vector<8x32xi8>, vector<32x16xi8>, vector<8x16xi32> -> vector<8x16xi32>
      scf.yield %next : vector<8x16xi32>
    }
    xegpu.store_nd %sum, %dc[%c0, %c0] : vector<8x16xi32>, !xegpu.tensor_desc<8x16xi32>""",
)

GATHER = """
gpu.module @kernels {
  gpu.func @gather(%a: memref<256xf32>, %b: memref<256xf32>) kernel {
    %x = gpu.block_id x
    %c16 = arith.constant 16 : index
    %c3 = arith.constant 3 : index
    %c255 = arith.constant 255 : index
    %lane = gpu.lane_id
    %base = arith.muli %x, %c16 : index
    %i = arith.addi %base, %lane : index
    %j = arith.muli %i, %c3 : index
    %k = arith.andi %j, %c255 : index
    %off = vector.broadcast %k : index to vector<1xindex>
    %to = vector.broadcast %i : index to vector<1xindex>
    %c7 = arith.constant 7 : index
    %p = arith.cmpi ne, %lane, %c7 : index
    %m = vector.broadcast %p : i1 to vector<1xi1>
    %v = xegpu.load %a[%off], %m : memref<256xf32>, vector<1xindex>, vector<1xi1> -> vector<1xf32>
    %e = math.exp %v : vector<1xf32>
    xegpu.store %e, %b[%to], %m : vector<1xf32>, memref<256xf32>, vector<1xindex>, vector<1xi1>
    gpu.return
  }
}
"""

TRANSPOSE_BY_SHARED_MEMORY = """
gpu.module @kernels {
  gpu.func @slm(%a: memref<16x16xf16>, %b: memref<16x16xf16>) kernel {
    %c0 = arith.constant 0 : index
    %lane = gpu.lane_id
    %sg = gpu.subgroup_id : index
    %m = memref.alloca() : memref<512xi8, 3>
    %d = xegpu.create_mem_desc %m : memref<512xi8, 3> -> !xegpu.mem_desc<16x16xf16>
    %da = xegpu.create_nd_tdesc %a : memref<16x16xf16> -> !xegpu.tensor_desc<1x16xf16>
    %v = xegpu.load_nd %da[%sg, %c0] : !xegpu.tensor_desc<1x16xf16> -> vector<1xf16>
    %s = vector.extract %v[0] : f16 from vector<1xf16>
    xegpu.store_matrix %s, %d[%sg, %lane] : f16, !xegpu.mem_desc<16x16xf16>, index, index
    xegpu.fence memory_kind = slm, fence_scope = workgroup
    gpu.barrier
    %t = xegpu.load_matrix %d[%lane, %sg] : !xegpu.mem_desc<16x16xf16>, index, index -> f16
    %one = vector.broadcast %t : f16 to vector<1xf16>
    %db = xegpu.create_nd_tdesc %b : memref<16x16xf16> -> !xegpu.tensor_desc<1x16xf16>
    xegpu.store_nd %one, %db[%sg, %c0] : vector<1xf16>, !xegpu.tensor_desc<1x16xf16>
    gpu.return
  }
}
"""

ELEMENTWISE = kernel(
    "%a: memref<32x32xbf16>, %b: memref<32x32xf32>",
    """
    %da = xegpu.create_nd_tdesc %a : memref<32x32xbf16> -> !xegpu.tensor_desc<8x16xbf16>
    %db = xegpu.create_nd_tdesc %b : memref<32x32xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %da[%m, %n] : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
    %f = arith.extf %v : vector<8x16xbf16> to vector<8x16xf32>
    %e = math.exp %f : vector<8x16xf32>
    %one = arith.constant dense<1.0> : vector<8x16xf32>
    %d = arith.addf %e, %one : vector<8x16xf32>
    %q = arith.divf %e, %d : vector<8x16xf32>
    %w = arith.maximumf %q, %f : vector<8x16xf32>
    xegpu.store_nd %w, %db[%m, %n] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>""",
)

TRANSPOSED_LOAD = """
gpu.module @kernels {
  gpu.func @tr(%a: memref<32x64xf32>, %b: memref<64x32xf32>) kernel {
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %x, %c16 : index
    %n = arith.muli %y, %c8 : index
    %da = xegpu.create_nd_tdesc %a : memref<32x64xf32> -> !xegpu.tensor_desc<16x8xf32>
    %db = xegpu.create_nd_tdesc %b : memref<64x32xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %da[%m, %n] <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x8xf32> -> vector<8xf32>
    xegpu.store_nd %v, %db[%n, %m] : vector<8xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""

REDUCTION_AND_ATOMICS = kernel(
    "%a: memref<64x16xf32>, %b: memref<64xf32>, %c: memref<64xi32>",
    """
    %lane = gpu.lane_id
    %t = gpu.block_id x
    %row = arith.muli %t, %c8 : index
    %da = xegpu.create_nd_tdesc %a : memref<64x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %da[%row, %c0] : !xegpu.tensor_desc<8x16xf32> -> vector<8xf32>
    %s = vector.reduction <add>, %v : vector<8xf32> into f32
    %w = arith.constant 16 : i32
    %o1 = arith.constant 1 : i32
    %o2 = arith.constant 2 : i32
    %o4 = arith.constant 4 : i32
    %o8 = arith.constant 8 : i32
    %x1, %p1 = gpu.shuffle xor %s, %o1, %w : f32
    %s1 = arith.addf %s, %x1 : f32
    %x2, %p2 = gpu.shuffle xor %s1, %o2, %w : f32
    %s2 = arith.addf %s1, %x2 : f32
    %x4, %p4 = gpu.shuffle xor %s2, %o4, %w : f32
    %s4 = arith.addf %s2, %x4 : f32
    %x8, %p8 = gpu.shuffle xor %s4, %o8, %w : f32
    %s8 = arith.addf %s4, %x8 : f32
    %is = arith.cmpi eq, %lane, %c0 : index
    scf.if %is {
      memref.store %s8, %b[%t] : memref<64xf32>
    }
    %c3 = arith.constant 3 : i32
    %old = memref.atomic_rmw addi %c3, %c[%t] : (i32, memref<64xi32>) -> i32""",
    attributes="attributes {intel_reqd_sub_group_size = 16 : i32}",
)

GEMM_OF_WORKGROUPS = """
#a = #xegpu.layout<sg_layout = [2, 2], sg_data = [16, 16], inst_data = [8, 16]>
#b = #xegpu.layout<sg_layout = [2, 2], sg_data = [16, 16], inst_data = [16, 16]>
#c = #xegpu.layout<sg_layout = [2, 2], sg_data = [16, 16], inst_data = [8, 16]>
gpu.module @kernels {
  gpu.func @wg(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %c: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %x, %c32 : index
    %n = arith.muli %y, %c32 : index
    %da = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<32x16xf16, #a>
    %db = xegpu.create_nd_tdesc %b : memref<64x64xf16> -> !xegpu.tensor_desc<16x32xf16, #b>
    %dc = xegpu.create_nd_tdesc %c : memref<64x64xf32> -> !xegpu.tensor_desc<32x32xf32, #c>
    %z = xegpu.load_nd %dc[%m, %n] <{layout = #c}> : !xegpu.tensor_desc<32x32xf32, #c> -> vector<32x32xf32>
    %sum = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %z) -> (vector<32x32xf32>) {
      %va = xegpu.load_nd %da[%m, %k] <{layout = #a}> : !xegpu.tensor_desc<32x16xf16, #a> -> vector<32x16xf16>
      %vb = xegpu.load_nd %db[%k, %n] <{layout = #b}> : !xegpu.tensor_desc<16x32xf16, #b> -> vector<16x32xf16>
      %next = xegpu.dpas %va, %vb, %acc {layout_a = #a, layout_b = #b, layout_cd = #c}
        : vector<32x16xf16>, vector<16x32xf16>, vector<32x32xf32> -> vector<32x32xf32>
      scf.yield %next : vector<32x32xf32>
    }
    xegpu.store_nd %sum, %dc[%m, %n] <{layout = #c}> : vector<32x32xf32>, !xegpu.tensor_desc<32x32xf32, #c>
    gpu.return
  }
}
"""

OURS = """
gpu.module @kernels {
  gpu.func @scale(%a: memref<32x32xf32>, %b: memref<32x32xf32>) kernel {
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %x = gpu.block_id x
    %row = arith.muli %x, %c8 : index
    %y = gpu.thread_id x
    %column = arith.muli %y, %c16 : index
    %from = xegpu.create_nd_tdesc %a[%row, %column] {mode = vc} : memref<32x32xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %from {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %w = arith.addf %v, %v : vector<8x16xf32>
    %to = xegpu.create_nd_tdesc %b[%row, %column] {mode = vc} : memref<32x32xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %w, %to {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""
"""A kernel of subgroups in our dialect, two subgroups a workgroup."""

RFC_GEMM = kernel(
    "%a: memref<32x64xf16>, %b: memref<64x32xf16>, %c: memref<32x32xf32>",
    """
    %da = xegpu.create_nd_tdesc %a[%m, 0] {mode = vc} : memref<32x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %db = xegpu.create_nd_tdesc %b[0, %n] {mode = vc} : memref<64x32xf16> -> !xegpu.tensor_desc<16x16xf16>
    %dc = xegpu.create_nd_tdesc %c[%m, %n] {mode = vc} : memref<32x32xf32> -> !xegpu.tensor_desc<8x16xf32>
    %z = xegpu.load_nd %dc {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %r:3 = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %z, %pa = %da, %pb = %db)
        -> (vector<8x16xf32>, !xegpu.tensor_desc<8x16xf16>, !xegpu.tensor_desc<16x16xf16>) {
      %va = xegpu.load_nd %pa {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
      %vb = xegpu.load_nd %pb {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>
      %next = xegpu.dpas %acc, %va, %vb {mode = vc}
        : vector<8x16xf32>, vector<8x16xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
      %na = xegpu.update_nd_offset %pa, [0, 16] {mode = vc}
        : !xegpu.tensor_desc<8x16xf16> -> !xegpu.tensor_desc<8x16xf16>
      %nb = xegpu.update_nd_offset %pb, [16, 0] {mode = vc}
        : !xegpu.tensor_desc<16x16xf16> -> !xegpu.tensor_desc<16x16xf16>
      scf.yield %next, %na, %nb : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf16>, !xegpu.tensor_desc<16x16xf16>
    }
    xegpu.store_nd %r#0, %dc {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>""",
)
"""Descriptors that a loop moves, and a factor that is packed as it is loaded."""

CALL = """
gpu.module @kernels {
  func.func @twice(%x: f32) -> f32 {
    %y = arith.addf %x, %x : f32
    return %y : f32
  }
  gpu.func @first(%a: memref<32xf32>) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    %i = gpu.global_id x
    %x = memref.load %a[%i] : memref<32xf32>
    %y = func.call @twice(%x) : (f32) -> f32
    memref.store %y, %a[%i] : memref<32xf32>
    gpu.return
  }
}
"""

TILES = """
#r = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 32]>
gpu.module @kernels {
  gpu.func @gemm(%a: memref<64x64xf16>, %b: memref<64x128xf16>, %c: memref<64x128xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %m = arith.muli %bx, %c32 : index
    %n = arith.muli %by, %c64 : index
    %ta = xetile.init_tile %a[%m, %c0] : memref<64x64xf16> -> !xetile.tile<32x32xf16>
    %tb = xetile.init_tile %b[%c0, %n] : memref<64x128xf16> -> !xetile.tile<32x64xf16>
    %tc = xetile.init_tile %c[%m, %n] : memref<64x128xf32> -> !xetile.tile<32x64xf32>
    %z = xetile.load_tile %tc : !xetile.tile<32x64xf32> -> vector<32x64xf32>
    %r:3 = scf.for %k = %c0 to %c64 step %c32 iter_args(%x = %ta, %y = %tb, %acc = %z)
        -> (!xetile.tile<32x32xf16>, !xetile.tile<32x64xf16>, vector<32x64xf32>) {
      %va = xetile.load_tile %x : !xetile.tile<32x32xf16> -> vector<32x32xf16>
      %vb = xetile.load_tile %y : !xetile.tile<32x64xf16> -> vector<32x64xf16>
      %d = xetile.tile_mma %va, %vb, %acc {wg_map_c = #r}
        : vector<32x32xf16>, vector<32x64xf16>, vector<32x64xf32> -> vector<32x64xf32>
      %x2 = xetile.update_tile_offset %x, [%c0, %c32] : !xetile.tile<32x32xf16>
      %y2 = xetile.update_tile_offset %y, [%c32, %c0] : !xetile.tile<32x64xf16>
      scf.yield %x2, %y2, %d : !xetile.tile<32x32xf16>, !xetile.tile<32x64xf16>, vector<32x64xf32>
    }
    xetile.store_tile %r#2, %tc : vector<32x64xf32>, !xetile.tile<32x64xf32>
    gpu.return
  }
}
"""

DTYPES = {"f16": np.float16, "f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i32": np.int32}

KERNELS = {
    "gemm f16 of lanes": (GEMM_F16_OF_LANES, (4, 2), 16, 16),
    "gemm bf16": (GEMM_BF16, (4, 2), 1, 16),
    "gemm i8": (GEMM_I8, 1, 1, 16),
    "gather": (GATHER, 16, 16, 16),
    "transpose by shared memory": (TRANSPOSE_BY_SHARED_MEMORY, 1, 256, 256),
    "elementwise": (ELEMENTWISE, (4, 2), 1, 16),
    "transposed load": (TRANSPOSED_LOAD, (2, 8), 16, 16),
    "reduction and atomics": (REDUCTION_AND_ATOMICS, 8, 16, 16),
    "call of a function": (CALL, 2, None, None),
    "gemm of workgroups": (GEMM_OF_WORKGROUPS, (2, 2), None, None),
}
"""Text, grid, and the block of our lowering and of upstream's, which counts work items."""


def arrays(types):
    """Random arrays for a kernel's arguments."""
    r = np.random.default_rng(1)
    made = []
    for kind in types:
        *shape, element = str(kind)[len("memref<") : -1].split("x")
        numbers = r.standard_normal([int(n) for n in shape]) * (9 if element[0] == "i" else 1)
        made.append(numbers.astype(DTYPES[element]))
    return made


def run(module, grid, block, **options):
    """The arrays after a kernel's run on random arrays, and whether it wrote any."""
    kernel = xegpu_py.compile(module, cache="off", **options)
    given = arrays(kernel.types)
    kernel(*given, grid=grid, block=block)
    changed = [not np.array_equal(a, b) for a, b in zip(given, arrays(kernel.types))]
    return [a.tobytes() for a in given], any(changed)


@pytest.mark.needs("mlir-opt")
@pytest.mark.parametrize("name", KERNELS)
def test_bytes_are_those_of_our_lowering(name):
    text, grid, block, lanes = KERNELS[name]
    expected, is_written = run(import_upstream(text), grid, block)
    assert is_written
    for to_llvm in (True, False):
        lowered = lower_by_upstream(Source(text, "kernel.mlir"), to_llvm=to_llvm)
        assert run(lowered, grid, lanes)[0] == expected


OF_OURS = {
    "blocks": (OURS, 4, 2, 32),
    "gemm": (RFC_GEMM, (4, 2), 1, 16),
    "tiles": (TILES, (2, 2), 4, 64),
    "gemm of lanes": (str(import_upstream(GEMM_F16_OF_LANES)), (4, 2), 16, 16),
    "transposed load of lanes": (str(import_upstream(TRANSPOSED_LOAD)), (2, 8), 16, 16),
    "shared memory of lanes": (str(import_upstream(TRANSPOSE_BY_SHARED_MEMORY)), 1, 256, 256),
}
"""Kernels in our dialects, which are exported before upstream lowers them."""


@pytest.mark.needs("mlir-opt")
@pytest.mark.parametrize("name", OF_OURS)
def test_kernels_of_ours(name):
    text, grid, block, lanes = OF_OURS[name]
    expected, is_written = run(parse(text), grid, block)
    assert is_written
    assert run(import_upstream(text, via="upstream"), grid, lanes)[0] == expected


@pytest.mark.needs("mlir-opt")
def test_calls_and_ops_of_xevm_are_what_upstream_makes():
    text = lower_by_upstream(Source(GEMM_BF16, "kernel.mlir")).text(debuginfo=True)
    assert "xevm." not in text
    assert "xegpu.dpas" in text
    assert 'loc("kernel.mlir":' in text


@pytest.mark.needs("mlir-opt")
def test_what_upstream_does_not_lower_is_said_with_its_words():
    text = REDUCTION_AND_ATOMICS.replace("attributes {intel_reqd_sub_group_size = 16 : i32}", "")
    with pytest.raises(DiagnosticError) as e:
        import_upstream(text, via="upstream", name="kernel.mlir")
    (found,) = e.value.diagnostics
    assert found.message == "kernel 'kernel' is not lowered by upstream's passes of LLVM 22.1.8"
    assert "gpu.shuffle" in found.notes[0].message
    assert "gpu.shuffle" in text.splitlines()[found.notes[0].position.line - 1]


@pytest.mark.parametrize(
    ("script", "notes"),
    [
        ("echo 'a.cpp:1: Assertion `no mulf' >&2; echo 'a stack' >&2; exit 1", [("`no mulf", 7)]),
        ("echo 'a.mlir:3:4: error: no mulf' >&2; echo 'a.cpp:1: Assertion `x' >&2; exit 1", [("no mulf", 3)]),
        ("echo 'a.mlir:3:4: note: see current operation: x' >&2; exit 1", []),
        ("echo 'a.cpp:1: Assertion `x' >&2; kill -ABRT $$", [("`x", 7), ("mlir-opt was stopped by SIGABRT", 7)]),
        ("cat", "text"),
    ],
)
def test_the_words_of_an_mlir_opt_that_fails(script, notes, tmp_path):
    tool = tmp_path / "mlir-opt"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    where = Position("a.mlir", 7, 1)
    if notes == "text":
        assert importer._run(str(tool), "text", "builtin.module()", where, "k") == "text"
        return
    with pytest.raises(DiagnosticError) as failed:
        importer._run(str(tool), "text", "builtin.module()", where, "k")
    (found,) = failed.value.diagnostics
    assert found.message.startswith("kernel 'k' is not lowered by upstream's passes of LLVM")
    assert [(note.message, note.position.line) for note in found.notes] == notes


def test_without_mlir_opt(monkeypatch):
    monkeypatch.setenv("XEGPU_PY_ORACLES", "off")
    with pytest.raises(DiagnosticError, match="no mlir-opt") as e:
        import_upstream(GATHER, via="upstream")
    assert "pip install" in e.value.diagnostics[0].notes[0].message


def test_pipelines_stop_where_asked():
    assert "convert-to-llvm" in pipeline("lane")
    assert "convert-to-llvm" not in pipeline("subgroup", to_llvm=False)
