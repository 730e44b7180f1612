// Blocks of XeGPU that upstream's lowering makes messages of: an error with the check, and otherwise right, with a warning.

// RUN: xegpu-run %s arange:i32:7x13 zeros:i32:8x16 --target bmg --print 1 2>&1 | FileCheck %s --check-prefix=REPAIRED
// REPAIRED: warning: {{.*}}surfaces.mlir:20:10: upstream's lowering makes a 2D block message of this, which bmg does not take: the tensor has rows of 52 bytes, but 2D block messages need 64.
// REPAIRED-NOT: warning
// RUN: xegpu-run %s arange:i32:7x13 zeros:i32:8x16 --target bmg --print 1 2>/dev/null | FileCheck %s --check-prefix=PVC

// RUN: not xegpu-run %s arange:i32:7x13 zeros:i32:8x16 --target bmg --check=surfaces 2>&1 | FileCheck %s --check-prefix=CHECKED
// CHECKED: surfaces.mlir:20:10: error: 'lsc_load_block2d' accesses a surface whose pitch is below 64 bytes:
// CHECKED: note: rule block2d-pitch-least: the pitch of a 2D block message is at least 64 bytes; bmg and lnl return undefined data; pvc and pvcxt accept it;

// Ponte Vecchio takes it.
// RUN: xegpu-run %s arange:i32:7x13 zeros:i32:8x16 --check=surfaces --print 1 2>&1 | FileCheck %s --check-prefix=PVC
// PVC-NOT: warning
// PVC: {{\[\[}} 0  1  2
gpu.module @kernels {
  gpu.func @copy(%a: memref<7x13xi32>, %o: memref<8x16xi32>) kernel {
    %d = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<7x13xi32> -> !xegpu.tensor_desc<8x16xi32>
    // The place of the error.
    %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xi32> -> vector<8x16xi32>
    %e = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<8x16xi32> -> !xegpu.tensor_desc<8x16xi32>
    xegpu.store_nd %v, %e {mode = vc} : vector<8x16xi32>, !xegpu.tensor_desc<8x16xi32>
    gpu.return
  }
}
