// RUN: xegpu-opt %s --split-input-file --xetile-to-visa-pipeline='target=pvc' --verify-diagnostics

// Tiles hundreds of times as large as the registers of a thread are refused before they are lowered.

gpu.module @blocks {
  gpu.func @copy(%A: memref<4096x4096xf16>, %B: memref<4096x4096xf16>) kernel {
    %a = xetile.init_tile %A[0, 0] : memref<4096x4096xf16> -> !xetile.tile<4096x4096xf16>
    %b = xetile.init_tile %B[0, 0] : memref<4096x4096xf16> -> !xetile.tile<4096x4096xf16>
    // expected-error @below {{'xetile.load_tile' op makes a vector<4096x4096xf16> of 33,554,432 bytes, but a thread has 16,384 bytes of registers, 256 of 64 bytes}}
    // expected-note @below {{divide the tile among subgroups by a map, or compute it in smaller tiles}}
    %x = xetile.load_tile %a : !xetile.tile<4096x4096xf16> -> vector<4096x4096xf16>
    xetile.store_tile %x, %b : vector<4096x4096xf16>, !xetile.tile<4096x4096xf16>
    gpu.return
  }
}

// -----

!t = !xetile.tile<2097152xf32, #xetile.tile_attr<scattered = true>>

gpu.module @pointers {
  gpu.func @copy(%A: memref<?xf32>, %B: memref<?xf32>) kernel {
    %s = vector.step : vector<2097152xindex>
    %i = arith.muli %s, %s : vector<2097152xindex>
    %m = arith.constant dense<true> : vector<2097152xi1>
    %a = xetile.init_tile %A, %i : memref<?xf32>, vector<2097152xindex> -> !t
    // expected-error @below {{'xetile.load' op makes a vector<2097152xf32> of 8,388,608 bytes}}
    // expected-note @below {{divide the tile}}
    %x = xetile.load %a, %m : !t, vector<2097152xi1> -> vector<2097152xf32>
    %b = xetile.init_tile %B, %i : memref<?xf32>, vector<2097152xindex> -> !t
    xetile.store %x, %b, %m : vector<2097152xf32>, !t, vector<2097152xi1>
    gpu.return
  }
}

// -----

// At the level of XeGPU too.

gpu.module @descriptors {
  gpu.func @copy(%A: memref<4096x4096xf32>, %B: memref<4096x4096xf32>) kernel {
    %a = xegpu.create_nd_tdesc %A[0, 0] {mode = vc} : memref<4096x4096xf32> -> !xegpu.tensor_desc<4096x4096xf32>
    %b = xegpu.create_nd_tdesc %B[0, 0] {mode = vc} : memref<4096x4096xf32> -> !xegpu.tensor_desc<4096x4096xf32>
    // expected-error @below {{'xegpu.load_nd' op makes a vector<4096x4096xf32> of 67,108,864 bytes}}
    // expected-note @below {{divide the tile}}
    %x = xegpu.load_nd %a {mode = vc} : !xegpu.tensor_desc<4096x4096xf32> -> vector<4096x4096xf32>
    xegpu.store_nd %x, %b {mode = vc} : vector<4096x4096xf32>, !xegpu.tensor_desc<4096x4096xf32>
    gpu.return
  }
}

// -----

// Subgroups may have parts of a tile of that size.

!d = !xetile.tile<1024x1024xf32, #xetile.tile_attr<wg_map = <sg_layout = [8, 8], sg_data = [128, 128]>>>

gpu.module @fits {
  gpu.func @divided(%A: memref<1024x1024xf32>, %B: memref<1024x1024xf32>) kernel {
    %a = xetile.init_tile %A[0, 0] : memref<1024x1024xf32> -> !d
    %b = xetile.init_tile %B[0, 0] : memref<1024x1024xf32> -> !d
    %x = xetile.load_tile %a : !d -> vector<1024x1024xf32>
    xetile.store_tile %x, %b : vector<1024x1024xf32>, !d
    gpu.return
  }
}
