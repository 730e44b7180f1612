// One flag a pass, in the order given; pipelines that mix passes of ours with upstream's; options; nests.

// RUN: xegpu-opt --canonicalize --xegpu-dce %s | FileCheck %s
// RUN: xegpu-opt -canonicalize -xegpu-dce %s | FileCheck %s
// RUN: xegpu-opt --pass-pipeline='builtin.module(canonicalize,xegpu-dce)' %s | FileCheck %s
// RUN: xegpu-opt --pass-pipeline='builtin.module( func.func( canonicalize{max-iterations=3}, xegpu-dce{keep-loads=false} ) )' %s | FileCheck %s
// RUN: xegpu-opt --pass-pipeline='any(any(canonicalize,xegpu-dce))' %s | FileCheck %s
// RUN: xegpu-opt --xegpu-dce='keep-loads=true' %s | FileCheck %s --check-prefix=LOADS
// RUN: xegpu-opt --xegpu-dce=keep-loads %s | FileCheck %s --check-prefix=LOADS
// RUN: xegpu-opt --canonicalize="max-iterations=3 top-down=false" --xegpu-dce=keep-loads %s | FileCheck %s --check-prefix=LOADS
// RUN: xegpu-opt --pass-pipeline='builtin.module(gpu.module(xegpu-dce))' %s | FileCheck %s --check-prefix=LOADS
// RUN: xegpu-opt --gpu-async-region --dump-pass-pipeline %s 2>&1 | FileCheck %s --check-prefix=NEST

// CHECK: func.func @f
// CHECK-NEXT: return
// LOADS: xegpu.load_nd
// NEST: builtin.module(func.func(gpu-async-region))
func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  %0 = arith.constant 1 : index
  %1 = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return
}
