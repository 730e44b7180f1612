// Upstream's passes work on modules that contain ops of these dialects.

// RUN: xegpu-opt --canonicalize %s | FileCheck %s --check-prefix=CANON
// RUN: xegpu-opt --cse %s | FileCheck %s --check-prefix=CSE
// RUN: xegpu-opt --loop-invariant-code-motion %s | FileCheck %s --check-prefix=LICM
// RUN: xegpu-opt --convert-scf-to-cf %s | FileCheck %s --check-prefix=CF
// RUN: xegpu-opt --gpu-kernel-outlining %s | FileCheck %s --check-prefix=OUTLINE

// CANON-LABEL: func.func @loop
// CANON-NOT: arith.addi
// CANON: xegpu.update_nd_offset
// CSE: %[[C:.*]] = arith.constant 16 : index
// CSE-NOT: arith.constant 16 : index
// LICM-LABEL: func.func @loop
// LICM: arith.muli
// LICM: scf.for
// LICM: xegpu.update_nd_offset
// CF-LABEL: func.func @loop
// CF: ^bb1(%{{.*}}: index, %[[D:.*]]: !xegpu.tensor_desc<8x16xf16>):
// CF: xegpu.update_nd_offset %[[D]], [0, %{{.*}}] {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> !xegpu.tensor_desc<8x16xf16>
func.func @loop(%d: !xegpu.tensor_desc<8x16xf16>, %n: index) -> !xegpu.tensor_desc<8x16xf16> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %again = arith.constant 16 : index
  %0 = scf.for %i = %c0 to %n step %again iter_args(%x = %d) -> !xegpu.tensor_desc<8x16xf16> {
    %step = arith.addi %c16, %c0 : index
    %scaled = arith.muli %n, %c16 : index
    %1 = xegpu.update_nd_offset %x, [0, %scaled] {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> !xegpu.tensor_desc<8x16xf16>
    scf.yield %1 : !xegpu.tensor_desc<8x16xf16>
  }
  return %0 : !xegpu.tensor_desc<8x16xf16>
}

// OUTLINE: gpu.launch_func @host_kernel::@host_kernel
// OUTLINE: gpu.func @host_kernel
// OUTLINE: xegpu.create_nd_tdesc %{{.*}}[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
func.func @host(%m: memref<64x64xf16>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%lx = %c1, %ly = %c1, %lz = %c1) {
    %0 = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    xegpu.prefetch_nd %0 {mode = vc} : !xegpu.tensor_desc<8x16xf16>
    gpu.terminator
  }
  return
}
