// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc max-bytes=2147418112 max-index=1073741824' | FileCheck %s
// RUN: xegpu-opt %s --xegpu-to-visa=target=pvc | FileCheck %s --check-prefix=FAR

// Messages add the constants of indices to addresses, so that blocks at constant distances share one address.

!line = !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<boundary_check = false>>

gpu.module @m {
  // CHECK-LABEL: gpu.func @lines(
  // CHECK: visa.mul (M1_NM, 1) {{%\w+}}(0,0)<1> %in1(0,0)<0;1,0> 0x40:d
  // CHECK: visa.mov (M1_NM, 1) [[AT:%\w+]](0,0)<1>
  // CHECK: visa.lsc_load.ugm (M1_NM, 1) {{.*}} flat[[[AT]][0]]:a64
  // CHECK-NOT: visa.mov
  // CHECK: visa.lsc_load.ugm (M1_NM, 1) {{.*}} flat[[[AT]][0]+0x140]:a64
  // CHECK: visa.lsc_store.ugm (M1_NM, 1) flat[[[AT]][0]-0x100]:a64
  gpu.func @lines(%m: memref<4096xf32>, %i: index) kernel {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %back = arith.constant -64 : index
    %at = arith.muli %i, %c64 : index
    %next = arith.addi %i, %c1 : index
    %below = arith.muli %next, %c64 : index
    %right = arith.addi %below, %c16 : index
    %left = arith.addi %at, %back : index
    %a = xegpu.create_nd_tdesc %m[%at] {mode = vc} : memref<4096xf32> -> !line
    %b = xegpu.create_nd_tdesc %m[%right] {mode = vc} : memref<4096xf32> -> !line
    %c = xegpu.create_nd_tdesc %m[%left] {mode = vc} : memref<4096xf32> -> !line
    %x = xegpu.load_nd %a {mode = vc} : !line -> vector<16xf32>
    %y = xegpu.load_nd %b {mode = vc} : !line -> vector<16xf32>
    %z = arith.addf %x, %y : vector<16xf32>
    xegpu.store_nd %z, %c {mode = vc} : vector<16xf32>, !line
    gpu.return
  }

  // An index of shared local memory that may exceed 32 bits saturates as a whole, so that it does not wrap around.
  // CHECK-LABEL: gpu.func @shared(
  // CHECK: visa.lsc_load.slm {{.*}} flat[{{.*}}+0x10]:a32
  // FAR-LABEL: gpu.func @shared(
  // FAR: visa.mov.sat (M1_NM, 1)
  // FAR: visa.lsc_load.slm {{.*}} flat[{{%\w+}}[0]]:a32
  gpu.func @shared(%i: index, %out: memref<1xf32>) workgroup(%s: memref<64xf32, 3>) kernel {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %j = arith.addi %i, %c4 : index
    %x = memref.load %s[%j] : memref<64xf32, 3>
    memref.store %x, %out[%c0] : memref<1xf32>
    gpu.return
  }
}
