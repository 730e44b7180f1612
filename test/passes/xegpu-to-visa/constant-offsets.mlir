// RUN: xegpu-opt %s --xegpu-to-visa='target=pvc max-bytes=2147418112 max-index=1073741824' | FileCheck %s
// RUN: xegpu-opt %s --xegpu-to-visa=target=pvc | FileCheck %s --check-prefix=FAR

// Messages add the constants of indices to addresses, so that blocks at constant distances share one address.

!lanes = !xegpu.tensor_desc<16xf32, #xegpu.scattered>
!shared = !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>>
!line = !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<boundary_check = false>>

gpu.module @m {
  // CHECK-LABEL: gpu.func @lines(
  // CHECK: visa.mul (M1_NM, 1) {{%\w+}}(0,0)<1> %in1(0,0)<0;1,0> 0x100:d
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

  // Factors, strides and the size of elements become one factor, also of sums with constants, if all uses are places of
  // single elements and of lines; in shared local memory only if the product has 64 bits.
  // CHECK-LABEL: gpu.func @factors(
  // CHECK: visa.shl (M1_NM, 1) [[AT:%\w+]](0,0)<1> {{%\w+}}(0,0)<0;1,0> 0xa:d
  // CHECK: visa.lsc_load.slm {{.*}} flat[{{%\w+}}[0]]:a32
  // CHECK: visa.lsc_load.slm {{.*}} flat[{{%\w+}}[0]+0x1000]:a32
  // CHECK: visa.mul (M1_NM, 1) [[ROW:%\w+]](0,0)<1> %in1(0,0)<0;1,0> 0x10:d
  // CHECK-NEXT: visa.mov.sat (M1_NM, 1) {{%\w+}}(0,0)<1> [[ROW]](0,0)<0;1,0>
  // CHECK: visa.shl (M1_NM, 1) [[OTHER:%\w+]](0,0)<1> {{%\w+}}(0,0)<0;1,0> 0x5:d
  // CHECK: visa.shl (M1_NM, 1) {{%\w+}}(0,0)<1> [[OTHER]](0,0)<0;1,0> 0x4:d
  // CHECK: visa.lsc_load_block2d
  // CHECK: visa.shl (M1_NM, 1) {{%\w+}}(0,0)<1> {{%\w+}}_ud(0,0)<0;1,0> 0x2:uw
  // FAR-LABEL: gpu.func @factors(
  // FAR: visa.mul.sat (M1_NM, 1) {{%\w+}}(0,0)<1> {{%\w+}}(0,0)<0;1,0> 0x4:w
  gpu.func @factors(%m: memref<64x64xf32>, %i: index, %out: memref<64xf32>)
      workgroup(%s: memref<4096x4xf32, 3>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c15 = arith.constant 15 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %c32 = arith.constant 32 : index
    %some = arith.andi %i, %c15 : index
    %at = arith.muli %some, %c64 : index
    %next = arith.addi %at, %c256 : index
    %x = memref.load %s[%at, %c0] : memref<4096x4xf32, 3>
    %y = memref.load %s[%next, %c0] : memref<4096x4xf32, 3>
    %z = memref.load %s[%i, %c0] : memref<4096x4xf32, 3>
    %row = arith.muli %some, %c32 : index
    %u = memref.load %s[%row, %c0] : memref<4096x4xf32, 3>
    %a0 = arith.addf %x, %y : f32
    %a = arith.addf %a0, %u : f32
    %b = arith.addf %a, %z : f32
    %below = arith.addi %row, %c1 : index
    %t = xegpu.create_nd_tdesc %m[%below, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<1x16xf32>
    %v = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<1x16xf32> -> vector<1x16xf32>
    %w = vector.extract %v[0, 0] : f32 from vector<1x16xf32>
    %c = arith.addf %b, %w : f32
    memref.store %c, %out[%some] : memref<64xf32>
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

  // Lanes have one vector of offsets in bytes for all constants of an array, which are added to its address; but sums
  // that are offsets into several arrays are scaled once.
  // CHECK-LABEL: gpu.func @lanes(
  // CHECK: visa.mul (M1_NM, 16) [[AT:%\w+]](0,0)<1> %in2(0,0)<1;1,0> 0x4:d
  // CHECK-NEXT: visa.add (M1_NM, 16) {{%\w+}}(0,0)<1> [[AT]](0,0)<1;1,0> %in0(0,0)<0;1,0>
  // CHECK: visa.add (M1_NM, 1) [[NEXT:%\w+]](0,0)<1> %in0(0,0)<0;1,0> 0x14:q
  // CHECK-NEXT: visa.add (M1_NM, 16) {{%\w+}}(0,0)<1> [[AT]](0,0)<1;1,0> [[NEXT]](0,0)<0;1,0>
  // CHECK: visa.add (M1_NM, 16) [[SUM:%\w+]](0,0)<1> %in2(0,0)<1;1,0> 0x7:d
  // CHECK: visa.mul (M1_NM, 16) [[BOTH:%\w+]](0,0)<1> [[SUM]](0,0)<1;1,0> 0x4:d
  // CHECK-NEXT: visa.add (M1_NM, 16) {{%\w+}}(0,0)<1> [[BOTH]](0,0)<1;1,0> %in0(0,0)<0;1,0>
  // CHECK: visa.add (M1_NM, 16) {{%\w+}}(0,0)<1> [[BOTH]](0,0)<1;1,0> %in1(0,0)<0;1,0>
  gpu.func @lanes(%m: memref<4096xf32>, %n: memref<4096xf32>, %at: vector<16xindex>) kernel {
    %all = arith.constant dense<true> : vector<16xi1>
    %c2 = arith.constant dense<2> : vector<16xindex>
    %c3 = arith.constant dense<3> : vector<16xindex>
    %c7 = arith.constant dense<7> : vector<16xindex>
    %two = arith.addi %at, %c2 : vector<16xindex>
    %five = arith.addi %two, %c3 : vector<16xindex>
    %a = xegpu.create_tdesc %m, %at {mode = vc} : memref<4096xf32>, vector<16xindex> -> !lanes
    %b = xegpu.create_tdesc %m, %five {mode = vc} : memref<4096xf32>, vector<16xindex> -> !lanes
    %x = xegpu.load_gather %a, %all {mode = vc} : !lanes, vector<16xi1> -> vector<16xf32>
    xegpu.store_scatter %x, %b, %all {mode = vc} : vector<16xf32>, !lanes, vector<16xi1>
    %seven = arith.addi %at, %c7 : vector<16xindex>
    %c = xegpu.create_tdesc %m, %seven {mode = vc} : memref<4096xf32>, vector<16xindex> -> !lanes
    %d = xegpu.create_tdesc %n, %seven {mode = vc} : memref<4096xf32>, vector<16xindex> -> !lanes
    %y = xegpu.load_gather %c, %all {mode = vc} : !lanes, vector<16xi1> -> vector<16xf32>
    xegpu.store_scatter %y, %d, %all {mode = vc} : vector<16xf32>, !lanes, vector<16xi1>
    gpu.return
  }

  // Messages add the constants of lanes in shared local memory, unless control flow merges the descriptors, or an offset
  // may be negative.
  // CHECK-LABEL: gpu.func @shared_lanes(
  // CHECK: visa.lsc_load.slm (M1_NM, 16) {{.*}} flat[{{%\w+}}[0]+0xc]:a32
  // CHECK: visa.lsc_load.slm (M1_NM, 16) {{.*}} flat[{{%\w+}}[0]]:a32
  // CHECK: visa.lsc_load.slm (M1_NM, 16) {{.*}} flat[{{%\w+}}[0]]:a32
  gpu.func @shared_lanes(%n: vector<16xindex>, %often: index, %out: memref<1024xf32>)
      workgroup(%s: memref<1024xf32, 3>) kernel {
    %all = arith.constant dense<true> : vector<16xi1>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant dense<3> : vector<16xindex>
    %few = arith.constant dense<1023> : vector<16xindex>
    %at = arith.andi %n, %few : vector<16xindex>
    %three = arith.addi %at, %c3 : vector<16xindex>
    %a = xegpu.create_tdesc %s, %three {mode = vc} : memref<1024xf32, 3>, vector<16xindex> -> !shared
    %x = xegpu.load_gather %a, %all {mode = vc} : !shared, vector<16xi1> -> vector<16xf32>
    %zero = arith.constant dense<0> : vector<16xindex>
    %less = arith.subi %zero, %at : vector<16xindex>
    %back = arith.addi %less, %few : vector<16xindex>
    %b = xegpu.create_tdesc %s, %back {mode = vc} : memref<1024xf32, 3>, vector<16xindex> -> !shared
    %y = xegpu.load_gather %b, %all {mode = vc} : !shared, vector<16xi1> -> vector<16xf32>
    %sum = arith.addf %x, %y : vector<16xf32>
    %c = xegpu.create_tdesc %s, %three {mode = vc} : memref<1024xf32, 3>, vector<16xindex> -> !shared
    %r:2 = scf.for %i = %c0 to %often step %c1 iter_args(%t = %c, %v = %sum) -> (!shared, vector<16xf32>) {
      %z = xegpu.load_gather %t, %all {mode = vc} : !shared, vector<16xi1> -> vector<16xf32>
      %w = arith.addf %v, %z : vector<16xf32>
      %u = xegpu.update_offset %t, %c3 {mode = vc} : !shared, vector<16xindex> -> !shared
      scf.yield %u, %w : !shared, vector<16xf32>
    }
    %o = xegpu.create_nd_tdesc %out[%c0] {mode = vc} : memref<1024xf32> -> !line
    xegpu.store_nd %r#1, %o {mode = vc} : vector<16xf32>, !line
    gpu.return
  }
}
